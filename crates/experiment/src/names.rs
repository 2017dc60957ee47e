//! Names in a description: unique where they are given, known where they are used.
//!
//! A slip is found before anything runs, and pointed at in the entry that makes it.

use crate::description::{Description, MeasureKind, PanelSpec, Series};
use crate::experiment::Run;
use crate::left_out::LeftOut;
use crate::quantities;
use crate::source::{Diagnostic, Source, nearest};
use didact_model::Record;

/// Names that are given: unique, fit for files, and keys that runs have.
pub(crate) fn check_names(d: &Description, source: &Source) -> Result<(), Diagnostic> {
    let unique = |names: Vec<&str>, what: &str, key: &str| {
        let twice = names.iter().enumerate().find(|(i, n)| names[..*i].contains(n));
        match twice {
            Some((index, name)) => Err(Diagnostic::new(format!("two {what} are called `{name}`"))
                .at_key(source, &format!("{key}.{index}.name"))),
            None => Ok(()),
        }
    };
    unique(d.run.iter().map(|r| r.name.as_str()).collect(), "runs", "run")?;
    unique(d.measure.iter().map(|m| m.name.as_str()).collect(), "measures", "measure")?;
    unique(d.figure.iter().map(|f| f.name.as_str()).collect(), "figures", "figure")?;
    unique(d.scan.iter().map(|f| f.name.as_str()).collect(), "scans", "scan")?;
    for (index, run) in d.run.iter().enumerate() {
        if let Some(key) = run.within.keys().find(|key| !d.sweep.contains_key(*key)) {
            let message = format!("the run `{}` is limited in `{key}`, which is not swept", run.name);
            return Err(Diagnostic::new(message)
                .hint("`where` takes keys of [sweep] and the two ends of a range")
                .at_key(source, &format!("run.{index}.where")));
        }
    }
    let swept = d.sweep.keys().map(|key| (key, "sweep".to_string()));
    let set = d.run.iter().enumerate();
    let set = set.flat_map(|(index, r)| r.set.keys().map(move |key| (key, format!("run.{index}.set"))));
    for (key, owner) in swept.chain(set) {
        let section = key.split('.').next().unwrap_or_default();
        if !Description::SECTIONS_OF_RUNS.contains(&section) {
            let hint = match nearest(section, &Description::SECTIONS_OF_RUNS) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the sections of a run are {}", Description::SECTIONS_OF_RUNS.join(", ")),
            };
            return Err(Diagnostic::new(format!("`{key}` is no key of a run"))
                .hint(hint)
                .at_key(source, &owner));
        }
    }
    for (index, claim) in d.claim.iter().enumerate() {
        if !d.measure.iter().any(|m| m.name == claim.measure) {
            let message = format!("a claim is about the measure `{}`, which does not exist", claim.measure);
            return Err(Diagnostic::new(message).at_key(source, &format!("claim.{index}.measure")));
        }
    }
    let runs = d.run.iter().enumerate().map(|(i, r)| (&r.name, format!("run.{i}.name")));
    let figures = d.figure.iter().enumerate().map(|(i, f)| (&f.name, format!("figure.{i}.name")));
    for (name, key) in runs.chain(figures) {
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
            let message = format!("the name `{name}` becomes a file name");
            return Err(Diagnostic::new(message)
                .hint("use letters, digits, `-`, `_` and `.`")
                .at_key(source, &key));
        }
    }
    Ok(())
}

/// Names that are used: runs, columns, events, measures and scans that measures and figures speak of.
pub(crate) struct References<'a> {
    pub(crate) description: &'a Description,
    pub(crate) runs: &'a [Run],
    /// What waits for `--full`.
    pub(crate) left_out: &'a LeftOut,
    pub(crate) source: &'a Source,
}

impl<'a> References<'a> {
    pub(crate) fn check(&self) -> Result<(), Diagnostic> {
        for (index, measure) in self.description.measure.iter().enumerate() {
            if self.left_out.measure(&measure.kind) {
                continue;
            }
            self.measure(&measure.kind, &|part| format!("measure.{index}.{part}"))?;
        }
        for (f, figure) in self.description.figure.iter().enumerate() {
            for (p, panel) in figure.panel.iter().enumerate() {
                self.panel(panel, &format!("figure.{f}.panel.{p}"))?;
            }
        }
        let always = self.description.claim.iter().position(|c| !c.only_full && self.left_out.claim(c));
        always.map_or(Ok(()), |index| {
            let message =
                "the claim is checked always, but stands on a run that is there only under `--full`";
            Err(Diagnostic::new(message)
                .hint("say `only-full = true` in the claim too")
                .at_key(self.source, &format!("claim.{index}.measure")))
        })
    }

    fn measure(&self, kind: &MeasureKind, key: &dyn Fn(&str) -> String) -> Result<(), Diagnostic> {
        let d = self.description;
        match kind {
            MeasureKind::EventTime { run: of, event }
            | MeasureKind::EventMedian { run: of, event }
            | MeasureKind::EventFraction { run: of, event } => {
                let events: Vec<&str> =
                    self.run(of, &key("run"))?.events.iter().map(|e| e.name.as_str()).collect();
                self.known("event", event, &events, &key("event"))
            }
            MeasureKind::ValueAt { run: of, observable, .. }
            | MeasureKind::PlateauHeight { run: of, observable }
            | MeasureKind::Exponent { run: of, observable, .. }
            | MeasureKind::Rate { run: of, observable, .. }
            | MeasureKind::GrowthRate { run: of, observable, .. } => {
                self.column((of, &key("run")), (observable, &key("observable")))
            }
            MeasureKind::Agreement { theory, simulation, observable, .. } => {
                self.column((theory, &key("theory")), (observable, &key("observable")))?;
                self.column((simulation, &key("simulation")), (observable, &key("observable")))
            }
            MeasureKind::Quantity { quantity, inputs, .. } => quantities::check(quantity, inputs.keys())
                .map_err(|e| Diagnostic::new(e).at_key(self.source, &key("quantity"))),
            MeasureKind::ScanExponent { scan, .. } | MeasureKind::ScanExtremum { scan, .. } => {
                self.scan(scan, &key("scan"))
            }
            MeasureKind::LogLaw { over, .. }
            | MeasureKind::PowerLaw { over, .. }
            | MeasureKind::MeanOver { over, .. } => {
                let swept: Vec<&str> = d.sweep.keys().map(String::as_str).collect();
                self.known("swept key", over, &swept, &key("over"))
            }
            MeasureKind::Elsewhere { .. } | MeasureKind::Formula { .. } => Ok(()),
        }
    }

    fn panel(&self, panel: &PanelSpec, key: &str) -> Result<(), Diagnostic> {
        for (s, series) in panel.series.iter().enumerate() {
            self.series(series, &|part| format!("{key}.series.{s}.{part}"))?;
        }
        for (i, inset) in panel.inset.iter().enumerate() {
            self.panel(&inset.panel, &format!("{key}.inset.{i}.panel"))?;
        }
        Ok(())
    }

    fn series(&self, series: &Series, key: &dyn Fn(&str) -> String) -> Result<(), Diagnostic> {
        if self.left_out.series(series) {
            return Ok(());
        }
        if let Some(of) = &series.run {
            self.column((of, &key("run")), (series.y.as_deref().unwrap_or("loss"), &key("y")))?;
        }
        if let Some(name) = &series.measure {
            let measures: Vec<&str> = self.description.measure.iter().map(|m| m.name.as_str()).collect();
            self.known("measure", name, &measures, &key("measure"))?;
        }
        series.scan.as_ref().map_or(Ok(()), |name| self.scan(name, &key("scan")))
    }

    fn scan(&self, name: &str, key: &str) -> Result<(), Diagnostic> {
        let scans: Vec<&str> = self.description.scan.iter().map(|s| s.name.as_str()).collect();
        self.known("scan", name, &scans, key)
    }

    fn column(&self, (of, run): (&str, &str), (name, key): (&str, &str)) -> Result<(), Diagnostic> {
        let columns: Vec<String> = self.run(of, run)?.observables.iter().map(|o| o.name()).collect();
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        self.known("column", name, &columns, key)
    }

    /// What a run of this name writes down.
    fn run(&self, name: &str, key: &str) -> Result<&'a Record, Diagnostic> {
        if let Some(run) = self.runs.iter().find(|run| run.name == name) {
            return Ok(&run.schedule.record);
        }
        if let Some(index) = self.description.run.iter().position(|r| r.name == name) {
            let message = format!("the run `{name}` has no point of the sweep within its `where`");
            return Err(Diagnostic::new(message)
                .hint("widen `where`, or add points to [sweep]")
                .at_key(self.source, &format!("run.{index}.where")));
        }
        let runs: Vec<&str> = self.description.run.iter().map(|r| r.name.as_str()).collect();
        self.known("run", name, &runs, key)?;
        unreachable!("a run that is known runs somewhere, or has no point")
    }

    fn known(&self, what: &str, name: &str, known: &[&str], key: &str) -> Result<(), Diagnostic> {
        if known.contains(&name) {
            return Ok(());
        }
        let hint = match nearest(name, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", known.join(", ")),
        };
        Err(Diagnostic::new(format!("no {what} `{name}`")).hint(hint).at_key(self.source, key))
    }
}
