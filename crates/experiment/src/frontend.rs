//! What front ends other than the command line need: descriptions from plain data, changes before a run, a monitor that
//! another thread can read and stop, and results read back from a finished folder.
//!
//! ```
//! use didact_experiment::frontend::SharedMonitor;
//! use didact_experiment::{Experiment, Size, Source};
//! use serde_json::json;
//!
//! let description = json!({
//!     "title": "A run in memory",
//!     "model": {"family": "committee", "students": 1, "teachers": 1, "activation": "erf(z/sqrt2)"},
//!     "training": {"learning-rate": 1.0},
//!     "start": {"q": [[0.5]], "r": [[0.1]]},
//!     "record": {"times": [0, 5, 10]},
//! });
//! let slower = [("training.learning-rate".to_string(), json!(0.5))].into();
//! let experiment = Experiment::with_changes(Source::of_value(&description), &[slower], Size::Normal, None).unwrap();
//! let monitor = SharedMonitor::default();
//! let trajectory = experiment.runs[0].schedule.run(&monitor).unwrap();
//! assert_eq!((trajectory.times.len(), monitor.fraction()), (3, 1.0));
//! ```

use crate::description::Overrides;
use crate::draw::Drawable;
use crate::experiment::{Experiment, Run, Size};
use crate::measures::Measured;
use crate::quantities::Scan;
use crate::results::Results;
use crate::source::{Diagnostic, Source};
use crate::store::folder::PROVENANCE;
use crate::store::{Answers, Places, disk};
use crate::{overrides, reader, spectra};
use didact_figure::Figure;
use didact_model::{Monitor, Trajectory};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// A monitor that other threads read and stop: the fraction that is done, and the wish to end.
#[derive(Debug, Default)]
pub struct SharedMonitor {
    /// Bits of the fraction, so that no lock is needed.
    fraction: AtomicU64,
    stop: AtomicBool,
}

impl SharedMonitor {
    /// The fraction of the work that is done, between 0 and 1.
    pub fn fraction(&self) -> f64 {
        f64::from_bits(self.fraction.load(Ordering::Relaxed)).clamp(0.0, 1.0)
    }

    /// Asks the work to end; what is finished by then is kept.
    pub fn cancel(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }
}

impl Monitor for SharedMonitor {
    fn advance(&self, fraction: f64) {
        let add = |bits: u64| Some((f64::from_bits(bits) + fraction).to_bits());
        // The closure always gives a number, so that the update cannot fail.
        let _ = self.fraction.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }
    fn cancelled(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}

/// A number of a description that comes from a program: it must be finite, except that the ends of a `window` may be open.
/// `path` is the dotted path of its key.
pub fn number(path: &str, number: f64) -> Result<Value, Diagnostic> {
    reader::number(path, number).map_err(|fault| fault.diagnostic)
}

impl Source {
    /// A description given as plain data. Its text is the same as JSON.
    pub fn of_value(description: &Value) -> Self {
        Self { name: "description.json".into(), text: format!("{description:#}") }
    }
}

impl Diagnostic {
    /// The dotted path of the key that the error is about, where one is known.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }
}

impl Size {
    /// Its name, as [`Size::named`] reads it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Normal => "normal",
            Self::Full => "full",
        }
    }

    /// `quick`, `normal` or `full`.
    pub fn named(name: &str) -> Result<Self, Diagnostic> {
        match name {
            "quick" => Ok(Self::Quick),
            "normal" => Ok(Self::Normal),
            "full" => Ok(Self::Full),
            other => {
                Err(Diagnostic::new(format!("unknown size `{other}`"))
                    .hint("use `quick`, `normal` or `full`"))
            }
        }
    }
}

impl Experiment {
    /// The experiment of a description after changes of its keys, applied one set after the other as if the description had
    /// been edited: `[quick]` and `[full]` come after them.
    pub fn with_changes(
        source: Source,
        changes: &[Overrides],
        size: Size,
        seed: Option<u64>,
    ) -> Result<Self, Diagnostic> {
        let mut described = source.description()?;
        for set in changes {
            let changed = overrides::with(&described, set, &source, "replace");
            described = changed.map_err(|mut error| {
                if let [only] = set.keys().collect::<Vec<_>>()[..] {
                    error.key = Some(only.clone());
                }
                error
            })?;
            described = spectra::resolve(described.complete(), &source)?;
        }
        Self::of_description(described, source, size, seed)
    }

    /// The answers of a scan in a finished folder; `None` when they are not there.
    pub fn scan(&self, folder: &Path, name: &str) -> Option<Scan> {
        let (spec, grid) = self.resolved.scan.iter().zip(&self.grids).find(|(spec, _)| spec.name == name)?;
        let answers = Answers::of_file(&disk::read(&folder.join(format!("scan-{}.json", spec.name))).ok()?)?;
        (answers.rows.len() == grid.len()).then_some(())?;
        Some(Scan { name: name.into(), rows: grid.iter().cloned().zip(answers.rows).collect() })
    }

    /// A figure of a finished folder as data: what the files in the folder were drawn from.
    pub fn figure(&self, folder: &Path, measured: &[Measured], name: &str) -> Result<Figure, String> {
        let spec = self.resolved.figure.iter().find(|figure| figure.name == name);
        let spec = spec.ok_or_else(|| format!("no figure `{name}`"))?;
        let mut results = Results { points: self.points.clone(), ..Results::default() };
        let known = results_in(folder);
        for run in &self.runs {
            let table = known.table(&run.key).map(|known| known.result);
            let table = table.ok_or_else(|| "it has no table".to_string());
            results.tables.insert((run.point.index, run.name.clone()), table);
        }
        results.scans = self.resolved.scan.iter().filter_map(|s| self.scan(folder, &s.name)).collect();
        Drawable { results: &results, measured }.figure(spec)
    }
}

/// Tables of finished folders, one after the other. What a folder has is read once, and again when it has changed: the list of a large
/// sweep is as long as a small table.
#[derive(Debug, Default)]
pub struct TableReader(Mutex<Option<OpenFolder>>);

/// A folder, the date of its provenance, and what it has.
type OpenFolder = (PathBuf, Option<SystemTime>, Arc<Places>);

impl TableReader {
    /// The table of a run in a finished folder; `None` when it is not there.
    pub fn table(&self, folder: &Path, run: &Run) -> Option<Trajectory> {
        self.places(folder).table(&run.key).map(|known| known.result)
    }

    fn places(&self, folder: &Path) -> Arc<Places> {
        let date = std::fs::metadata(folder.join(PROVENANCE)).and_then(|about| about.modified()).ok();
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, dated, places)) = open.as_ref()
            && known == folder
            && *dated == date
        {
            return Arc::clone(places);
        }
        let places = Arc::new(results_in(folder));
        *open = Some((folder.to_path_buf(), date, Arc::clone(&places)));
        places
    }
}

/// Where the tables of a finished folder are looked for.
fn results_in(folder: &Path) -> Places {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    Places::of(folder.parent().unwrap_or_else(|| Path::new("")), &name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn description() -> Value {
        json!({
            "title": "one unit",
            "model": {"family": "committee", "students": 1, "teachers": 1, "activation": "erf(z/sqrt2)"},
            "training": {"learning-rate": 1.0},
            "start": {"q": [[0.5]], "r": [[0.1]]},
            "record": {"times": [0, 5]},
            "quick": {"record.times": [0, 1]},
        })
    }

    fn change(key: &str, value: Value) -> Overrides {
        [(key.to_string(), value)].into()
    }

    #[test]
    fn changes_are_edits_of_the_description_and_come_before_the_size() {
        let source = Source::of_value(&description());
        let sets = [change("record.times", json!([0, 9])), change("training.learning-rate", json!(0.5))];
        let normal = Experiment::with_changes(source.clone(), &sets, Size::Normal, Some(7)).unwrap();
        assert_eq!(normal.runs[0].schedule.record.times, [0.0, 9.0]);
        assert_eq!(
            normal.resolved.training.as_ref().unwrap().learning_rate,
            crate::description::RateSpec::Number(0.5)
        );
        assert_eq!(normal.resolved.seed(), 7);
        let quick = Experiment::with_changes(source.clone(), &sets, Size::Quick, None).unwrap();
        assert_eq!(quick.runs[0].schedule.record.times, [0.0, 1.0]);
        // An edited description is the same experiment as one that says so from the beginning.
        let mut edited = description();
        edited["training"]["learning-rate"] = json!(0.5);
        edited["record"]["times"] = json!([0, 9]);
        let written = Experiment::new(Source::of_value(&edited), Size::Normal, Some(7)).unwrap();
        assert_eq!(written.folder_name(), normal.folder_name());
    }

    #[test]
    fn a_wrong_change_names_its_key() {
        let sets = [change("training.learning-rat", json!(0.5))];
        let error = Experiment::with_changes(Source::of_value(&description()), &sets, Size::Normal, None)
            .err()
            .unwrap();
        assert_eq!(error.key(), Some("training.learning-rat"));
        assert_eq!(error.hint.as_deref(), Some("did you mean `learning-rate`?"));
    }

    #[test]
    fn numbers_of_programs_are_finite_but_for_open_windows() {
        assert_eq!(number("start.q", 0.5).unwrap(), json!(0.5));
        assert_eq!(number("measure.0.window.1", f64::INFINITY).unwrap(), json!(f64::MAX));
        let error = number("training.learning-rate", f64::NAN).unwrap_err();
        assert_eq!(error.message, "`training.learning-rate` is nan, which is not a finite number");
    }

    #[test]
    fn progress_of_many_threads_adds_up() {
        let monitor = SharedMonitor::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..64).for_each(|_| monitor.advance(1.0 / 256.0)));
            }
        });
        assert_eq!(monitor.fraction(), 1.0);
        assert!(!monitor.cancelled());
        monitor.cancel();
        assert!(monitor.cancelled());
    }
}
