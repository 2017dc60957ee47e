//! Tables that another program made: `engine = "recorded"` with a path, so that measures, claims, figures and reports serve any training.
//!
//! Two kinds of file are read. A text table (`.csv`) begins with names: `time`, `replica` unless there is one only, and a column per
//! observable; it has a line per replica and time. An archive (`.npz`, as `numpy.savez` writes it) has `times` (T) and an array of
//! replicas × T (or T) per observable. A replica that ended early has fewer lines, or NaN to the end.

use crate::npz;
use crate::source::{Diagnostic, Source};
use crate::spectra::beside;
use crate::store::disk;
use didact_model::files::read_bounded;
use didact_model::observable::{Observable, Snapshot};
use didact_model::trajectory::RecordedColumn;
use didact_model::{
    Clock, Cost, EndState, Engine, EngineError, EngineOptions, Monitor, OptionError, Outcome, Problem,
    Record, Trajectory,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Largest file that is read.
const LARGEST: u64 = 1 << 28;

/// Name of the engine.
const NAME: &str = "recorded";

/// A table that another program made.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RecordedOptions {
    /// The table, `.csv` or `.npz`, relative to the description.
    pub path: String,
}

impl EngineOptions for RecordedOptions {
    const ABOUT: &'static str = "A table that another program made; needs no model, training or record.";

    fn engine(&self) -> Result<Box<dyn Engine>, OptionError> {
        Ok(Box::new(Recorded))
    }
}

/// Stands in the place of an engine. There is nothing to run: the schedule of the run holds the table.
struct Recorded;

impl Engine for Recorded {
    fn name(&self) -> &'static str {
        NAME
    }

    fn admits(&self, _problem: &Problem, _record: &Record) -> Result<(), EngineError> {
        Err(nothing_to_run())
    }

    fn memory(&self, _problem: &Problem, _record: &Record) -> f64 {
        0.0
    }

    fn cost(&self, _problem: &Problem, _record: &Record) -> Cost {
        Cost { steps: None, memory: 0.0, seconds: 0.0 }
    }

    fn run_with_end_states(
        &self,
        _problem: &Problem,
        _record: &Record,
        _monitor: &dyn Monitor,
    ) -> Result<(Trajectory, Vec<EndState>), EngineError> {
        Err(nothing_to_run())
    }
}

fn nothing_to_run() -> EngineError {
    EngineError::Unsupported {
        engine: NAME,
        reason: "it has a table and learns nothing".into(),
        hint: "give the `path` of the table in a [[run]]".into(),
    }
}

/// A column of a table that is not measured of a state.
#[derive(Debug)]
pub(crate) struct NamedColumn(pub(crate) String);

impl Observable for NamedColumn {
    fn name(&self) -> String {
        self.0.clone()
    }
    fn measure(&self, _snapshot: &Snapshot) -> f64 {
        f64::NAN
    }
}

/// The table of a run, and a digest of its file.
pub(crate) fn read(options: &RecordedOptions, source: &Source) -> Result<(Trajectory, String), Diagnostic> {
    let at = |message: String| Diagnostic::new(message).at_key(source, "run.path");
    if options.path.is_empty() {
        return Err(
            at("engine `recorded` has no table".into()).hint("give its `path`, relative to the description")
        );
    }
    let place = beside(source, &options.path);
    let bytes =
        read_bounded(&place, LARGEST).map_err(|e| at(format!("cannot read `{}`: {e}", place.display())))?;
    let digest = disk::digest(&bytes);
    let archive = place.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npz"));
    let table = if archive { of_npz(&bytes) } else { of_text(&bytes) };
    let table = table.and_then(checked);
    let table = table.map_err(|why| {
        at(format!("`{}` is no table of a training: {why}", place.display()))
            .hint("a .csv has the columns `time`, `replica` and one per observable; a .npz has `times` and arrays of replicas x times")
    })?;
    Ok((table, digest))
}

/// What the schedule of such a run says it writes down.
pub(crate) fn record(table: &Trajectory) -> Record {
    let columns = table.column_names().map(|name| Arc::new(NamedColumn(name.into())) as Arc<dyn Observable>);
    Record { replicas: table.replicas() as u32, ..Record::new(table.times.clone(), columns.collect()) }
}

fn table(times: Vec<f64>, columns: Vec<RecordedColumn>) -> Trajectory {
    let replicas = columns.first().map_or(0, |column| column.curves.len());
    Trajectory {
        engine: NAME.into(),
        clock: Clock::Steps,
        times,
        columns,
        events: Vec::new(),
        outcomes: vec![Outcome::Completed; replicas],
        statistics: Vec::new(),
        notes: Vec::new(),
    }
}

fn checked(table: Trajectory) -> Result<Trajectory, String> {
    if table.columns.is_empty() || table.replicas() == 0 || table.times.is_empty() {
        return Err("it has no values".into());
    }
    if table.replicas() > 1_000_000 {
        return Err(format!("it has {} replicas; at most a million are read", table.replicas()));
    }
    // A time that is no number follows nothing.
    let increases = |pair: &(&f64, &f64)| pair.1.partial_cmp(pair.0) == Some(std::cmp::Ordering::Greater);
    let mut steps = table.times.iter().zip(table.times.iter().skip(1));
    if let Some((before, after)) = steps.find(|pair| !increases(pair)) {
        return Err(format!("its times do not increase: {after} follows {before}"));
    }
    if let Some(time) = table.times.iter().find(|time| !(time.is_finite() && **time >= 0.0)) {
        return Err(format!("the time {time} is no finite number from 0 on"));
    }
    Ok(table)
}

fn of_npz(bytes: &[u8]) -> Result<Trajectory, String> {
    let reader =
        npz::Reader::new(bytes).ok_or("it is no whole, uncompressed .npz (numpy.savez writes it)")?;
    let array = |name: &str| {
        reader
            .array(name)
            .ok_or_else(|| format!("its array `{name}` is damaged, or is no array of doubles in C order"))
    };
    if !reader.names().any(|name| name == "times") {
        return Err("it has no array `times`".into());
    }
    let times = array("times")?.values;
    let mut columns: Vec<RecordedColumn> = Vec::new();
    for name in reader.names().filter(|name| *name != "times" && !name.starts_with("event:")) {
        let found = array(name)?;
        let replicas = match found.shape[..] {
            [length] if length == times.len() => 1,
            [replicas, length] if length == times.len() => replicas,
            _ => {
                return Err(format!(
                    "its array `{name}` has the shape {:?}; {} times were expected last",
                    found.shape,
                    times.len()
                ));
            }
        };
        if columns.first().is_some_and(|first| first.curves.len() != replicas) {
            return Err(format!(
                "its array `{name}` has {replicas} replicas, `{}` has {}",
                columns[0].name,
                columns[0].curves.len()
            ));
        }
        let whole = |row: &[f64]| {
            let length = row.iter().rposition(|v| !v.is_nan()).map_or(0, |last| last + 1);
            row[..length].to_vec()
        };
        let curves = found.values.chunks_exact(times.len().max(1)).map(whole).collect();
        columns.push(RecordedColumn { name: name.into(), curves });
    }
    Ok(table(times, columns))
}

/// The cells of a line; names may stand in quotation marks.
fn cells(line: &str) -> Vec<String> {
    let (mut all, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(String::new()),
            c => all.last_mut().expect("a line has a cell").push(c),
        }
    }
    all.iter_mut().for_each(|cell| *cell = cell.trim().to_string());
    all
}

fn of_text(bytes: &[u8]) -> Result<Trajectory, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is no text")?;
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let names = cells(lines.next().ok_or("it is empty")?.1);
    // Tables that `didact` writes name the time by its clock, in the second column.
    let clocks = [Clock::Alpha, Clock::Flow, Clock::FlowPerUnit, Clock::Steps].map(Clock::name);
    let time = names
        .iter()
        .position(|name| name == "time")
        .or_else(|| (names.first()? == "replica" && clocks.contains(&names.get(1)?.as_str())).then_some(1))
        .ok_or_else(|| format!("it has no column `time`, only {}", names.join(", ")))?;
    let replica = names.iter().position(|name| name == "replica");
    let observed: Vec<usize> = (0..names.len()).filter(|i| *i != time && Some(*i) != replica).collect();
    for (n, i) in observed.iter().enumerate() {
        if names[*i].is_empty() || observed[..n].iter().any(|other| names[*other] == names[*i]) {
            return Err(format!("column {} has no name of its own", i + 1));
        }
    }
    // Replicas in the order in which they come, each with its times and values.
    let mut order: Vec<String> = Vec::new();
    let mut rows: BTreeMap<String, Vec<(f64, Vec<f64>)>> = BTreeMap::new();
    for (number, line) in lines {
        let cells = cells(line);
        if cells.len() != names.len() {
            return Err(format!("line {} has {} cells in place of {}", number + 1, cells.len(), names.len()));
        }
        let value = |i: usize| -> Result<f64, String> {
            if cells[i].is_empty() {
                return Ok(f64::NAN);
            }
            cells[i].parse().map_err(|_| format!("line {}: `{}` is no number", number + 1, cells[i]))
        };
        let of = replica.map_or("0", |i| &cells[i]);
        if !rows.contains_key(of) {
            order.push(of.into());
        }
        let values = observed.iter().map(|i| value(*i)).collect::<Result<_, _>>()?;
        rows.entry(of.into()).or_default().push((value(time)?, values));
    }
    let longest = rows.values().max_by_key(|rows| rows.len()).ok_or("it has names and no values")?;
    let times: Vec<f64> = longest.iter().map(|(time, _)| *time).collect();
    for (of, rows) in &rows {
        if let Some((i, (time, _))) = rows.iter().enumerate().find(|(i, (time, _))| *time != times[*i]) {
            return Err(format!(
                "value {} of replica {of} is at time {time}, that of others at {}",
                i + 1,
                times[i]
            ));
        }
    }
    let column = |(slot, i): (usize, &usize)| RecordedColumn {
        name: names[*i].clone(),
        curves: order.iter().map(|of| rows[of].iter().map(|(_, values)| values[slot]).collect()).collect(),
    };
    let columns = observed.iter().enumerate().map(column).collect();
    Ok(table(times, columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "replica,time,loss,\"a, b\"\na,1,0.5,2\nb,1,0.25,3\na,2,0.125,4\n";

    #[test]
    fn a_text_is_a_table_and_a_wrong_one_says_why() {
        let table = of_text(TEXT.as_bytes()).and_then(checked).unwrap();
        assert_eq!((table.times.as_slice(), table.replicas()), (&[1.0, 2.0][..], 2));
        assert_eq!(table.curves("loss").unwrap(), [vec![0.5, 0.125], vec![0.25]]);
        assert_eq!(table.curves("a, b").unwrap(), [vec![2.0, 4.0], vec![3.0]]);
        let alone = of_text(b"time,loss\n0,1\n2,0.5\n").unwrap();
        assert_eq!(alone.curves("loss").unwrap(), [vec![1.0, 0.5]]);
        let why = |text: &str| of_text(text.as_bytes()).and_then(checked).unwrap_err();
        assert!(why("").contains("empty"));
        assert!(why("epoch,loss\n1,2\n").contains("no column `time`"));
        assert!(why("time,loss\n").contains("no values"));
        assert!(why("time,loss\n1\n").contains("line 2 has 1 cells"));
        assert!(why("time,loss\n1,x\n").contains("`x` is no number"));
        assert!(why("time,loss\n2,1\n1,1\n").contains("do not increase"));
        assert!(why("time,loss,loss\n1,1,1\n").contains("column 3"));
        assert!(why("replica,time,loss\n0,1,1\n0,2,1\n1,3,1\n").contains("replica 1 is at time 3"));
        assert!(why("time\n1\n").contains("no values"));
        assert!(why("time,loss\n-1,1\n").contains("-1"));
    }

    #[test]
    fn an_archive_of_the_store_and_the_text_of_the_same_table_agree() {
        let table = of_text(TEXT.as_bytes()).unwrap();
        let npz = crate::store::Encoded::new(&table, "key").unwrap();
        assert_eq!(of_npz(npz.npz_file()).unwrap(), table);
        assert_eq!(of_text(crate::store::csv(&table).replace(",\n", ",NaN\n").as_bytes()).unwrap(), table);
        assert!(of_npz(&npz.npz_file()[1..]).is_err());
        let mut writer = npz::Writer::default();
        writer.add("times", &[2], [0.0, 1.0]).unwrap();
        writer.add("loss", &[3], [0.0; 3]).unwrap();
        assert!(of_npz(&writer.finish().unwrap()).unwrap_err().contains("shape [3]"));
    }
}
