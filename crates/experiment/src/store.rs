//! What a run leaves on disk, written so that a killed run leaves nothing half-valid.
//!
//! Files are written under a temporary name and renamed. `<name>.npz` holds, for NumPy, `times` (T), one array
//! (replicas x T) per column under the column's name (NaN after a replica has ended), and `event:<name>` (replicas; NaN
//! is censored). `<name>.json` says the rest: engine, clock, columns, outcomes, work of the integrator, notes, and the
//! digest of all that the run depends on.

use crate::npz;
use crate::quantities::Rows;
use didact_model::trajectory::{Passages, RecordedColumn};
use didact_model::{Clock, Outcome, Statistics, Trajectory};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What the arrays do not say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Header {
    engine: String,
    clock: Clock,
    columns: Vec<String>,
    events: Vec<String>,
    outcomes: Vec<Outcome>,
    statistics: Vec<Statistics>,
    notes: Vec<String>,
    /// Digest of all that the run depends on.
    key: String,
}

/// Writes `<name>.npz`, `<name>.csv` and, last, `<name>.json`: a table without its header does not exist. `key` is the digest
/// of all that the trajectory depends on.
pub fn write(trajectory: &Trajectory, folder: &Path, name: &str, key: &str) -> io::Result<()> {
    let length = trajectory.times.len();
    let mut npz = npz::Writer::default();
    npz.add("times", &[length], trajectory.times.iter().copied())?;
    for RecordedColumn { name, curves } in &trajectory.columns {
        let padded = |curve: &Vec<f64>| -> Vec<f64> {
            (0..length).map(|time| curve.get(time).copied().unwrap_or(f64::NAN)).collect()
        };
        npz.add(name, &[curves.len(), length], curves.iter().flat_map(padded))?;
    }
    for Passages { name, times } in &trajectory.events {
        let values = times.iter().map(|p| p.unwrap_or(f64::NAN));
        npz.add(&format!("event:{name}"), &[times.len()], values)?;
    }
    let bytes = npz.finish()?;
    write_atomically(&folder.join(format!("{name}.npz")), &bytes)?;
    write_atomically(&folder.join(format!("{name}.csv")), csv(trajectory).as_bytes())?;
    let header = Header {
        engine: trajectory.engine.clone(),
        clock: trajectory.clock,
        columns: trajectory.column_names().map(String::from).collect(),
        events: trajectory.events.iter().map(|e| e.name.clone()).collect(),
        outcomes: trajectory.outcomes.clone(),
        statistics: trajectory.statistics.clone(),
        notes: trajectory.notes.clone(),
        key: key.into(),
    };
    let header = serde_json::to_string_pretty(&header).expect("a header is plain data");
    write_atomically(&folder.join(format!("{name}.json")), header.as_bytes())
}

/// Reads what [`write()`] wrote; `None` when it is not there, not whole, or of a run that depended on something else.
pub fn read(folder: &Path, name: &str, key: &str) -> Option<Trajectory> {
    let header: Header =
        serde_json::from_str(&std::fs::read_to_string(folder.join(format!("{name}.json"))).ok()?).ok()?;
    if header.key != key {
        return None;
    }
    let bytes = std::fs::read(folder.join(format!("{name}.npz"))).ok()?;
    let npz = npz::Reader::new(&bytes)?;
    let times = npz.array("times")?.values;
    let mut columns = Vec::new();
    for name in header.columns {
        let array = npz.array(&name)?;
        let [replicas, length] = array.shape[..] else { return None };
        let curve = |replica: usize| {
            let row = &array.values[replica * length..(replica + 1) * length];
            // Curves end where their replica ended; a value that is truly NaN in the middle stays.
            let length = row.iter().rposition(|v| !v.is_nan()).map_or(0, |last| last + 1);
            row[..length].to_vec()
        };
        columns.push(RecordedColumn { name, curves: (0..replicas).map(curve).collect() });
    }
    let mut events = Vec::new();
    for name in header.events {
        let passages = npz.array(&format!("event:{name}"))?.values;
        let times = passages.iter().map(|t| (!t.is_nan()).then_some(*t)).collect();
        events.push(Passages { name, times });
    }
    Some(Trajectory {
        engine: header.engine,
        clock: header.clock,
        times,
        columns,
        events,
        outcomes: header.outcomes,
        statistics: header.statistics,
        notes: header.notes,
    })
}

/// One line per replica and time.
fn csv(trajectory: &Trajectory) -> String {
    let quoted = |c: &str| if c.contains(',') { format!("\"{c}\"") } else { c.to_string() };
    let names: Vec<String> = trajectory.column_names().map(quoted).collect();
    let mut text = format!("replica,{},{}\n", trajectory.clock.name(), names.join(","));
    for replica in 0..trajectory.replicas() {
        let curves: Vec<&Vec<f64>> = trajectory.columns.iter().map(|c| &c.curves[replica]).collect();
        let length = curves.iter().map(|curve| curve.len()).max().unwrap_or(0);
        for (t, time) in trajectory.times.iter().enumerate().take(length) {
            let row: Vec<String> =
                curves.iter().map(|curve| curve.get(t).map_or(String::new(), f64::to_string)).collect();
            text += &format!("{replica},{time},{}\n", row.join(","));
        }
    }
    text
}

/// The answers of a scan in the order of its grid, or why there is none, as they are kept beside its table.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Answers {
    /// Digest of all that they depend on.
    pub key: String,
    /// One per point of the grid.
    pub rows: Rows,
}

impl Answers {
    /// Reads what [`Answers::write`] wrote; `None` when it is not there or depends on something else.
    pub fn read(path: &Path, key: &str) -> Option<Self> {
        let answers: Self = serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()?;
        (answers.key == key).then_some(answers)
    }

    /// Writes them.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        write_atomically(path, serde_json::to_string(self).expect("answers are plain data").as_bytes())
    }
}

/// Where results of other folders lie, by the digest of what they depend on.
#[derive(Debug, Default)]
pub struct EarlierResults(BTreeMap<String, PathBuf>);

impl EarlierResults {
    /// Tables and answers in these folders, and in those of their points.
    pub fn in_folders(folders: &[PathBuf]) -> Self {
        #[derive(Deserialize)]
        struct Keyed {
            key: String,
        }
        let entries = |folder: &Path| -> Vec<PathBuf> {
            let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
            entries.flatten().map(|entry| entry.path()).collect()
        };
        let mut known = BTreeMap::new();
        for folder in folders {
            let points = entries(folder).into_iter().filter(|path| path.is_dir());
            for place in std::iter::once(folder.clone()).chain(points) {
                for path in entries(&place) {
                    let json = path.extension().is_some_and(|e| e == "json");
                    let text = json.then(|| std::fs::read_to_string(&path).ok()).flatten();
                    if let Some(Keyed { key }) = text.and_then(|text| serde_json::from_str(&text).ok()) {
                        known.insert(key, path);
                    }
                }
            }
        }
        Self(known)
    }

    /// The table of a run that depends on just this, if there is one and it is whole.
    pub fn table(&self, key: &str) -> Option<Trajectory> {
        let path = self.0.get(key)?;
        read(path.parent()?, path.file_stem()?.to_str()?, key)
    }

    /// The answers of a scan that depends on just this.
    pub fn answers(&self, key: &str) -> Option<Answers> {
        Answers::read(self.0.get(key)?, key)
    }
}

/// Writes a file so that it is either whole or absent.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".writing");
    let temporary = path.with_file_name(name);
    let mut file = std::fs::File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)
}
