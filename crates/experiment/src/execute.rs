//! Running an experiment: runs in parallel, results kept one by one, the folder renamed when whole.

use crate::claims::{self, Judged, Verdict};
use crate::description::ScanSpec;
use crate::draw::Drawable;
use crate::experiment::{BUILD, Experiment, Run, key_of_scan};
use crate::measures::{self, Estimate, Measured};
use crate::points::Point;
use crate::quantities::{self, Rows, Scan};
use crate::report::Report;
use crate::results::{Missing, Results};
use crate::source::Diagnostic;
use crate::store::{self, Answers, EarlierResults, write_atomically};
use crate::words::Words;
use didact_figure::Figure;
use didact_model::{EngineError, Monitor, Trajectory};
use rayon::prelude::*;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// A finished experiment.
#[derive(Debug)]
pub struct Finished {
    /// Its folder.
    pub folder: PathBuf,
    /// True when it was found, not computed.
    pub reused: bool,
    /// Runs and scans that were taken over from an earlier version of the description: they do not depend on what changed.
    pub taken_over: usize,
    /// Claims with verdicts.
    pub claims: Vec<Judged>,
    /// Points and runs that failed, with reasons.
    pub failures: Vec<String>,
    /// Measures.
    pub measured: Vec<Measured>,
}

/// Why an experiment did not finish.
#[derive(Debug)]
pub enum Failure {
    /// One clear error.
    Error(Diagnostic),
    /// The user stopped it; the folder can be resumed.
    Interrupted(PathBuf),
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::Error(diagnostic)
    }
}

/// Progress of one run or scan as a part of all.
struct ProgressShare<'a> {
    monitor: &'a dyn Monitor,
    part: f64,
}

impl Monitor for ProgressShare<'_> {
    fn advance(&self, fraction: f64) {
        self.monitor.advance(fraction * self.part);
    }
    fn cancelled(&self) -> bool {
        self.monitor.cancelled()
    }
}

impl Experiment {
    /// Runs what is not there yet below `root`, and writes tables, figures and the report.
    pub fn execute(&self, root: &Path, monitor: &dyn Monitor) -> Result<Finished, Failure> {
        match finished(&root.join(self.folder_name())) {
            Some(found) => Ok(found),
            None => self.compute(root, self.earlier_results(root), monitor),
        }
    }

    /// Runs everything anew, whatever is there: a finished folder of the same experiment is replaced once the new one is whole.
    pub fn execute_fresh(&self, root: &Path, monitor: &dyn Monitor) -> Result<Finished, Failure> {
        let partial = self.partial_folder(root);
        match std::fs::remove_dir_all(&partial) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(unwritable(&partial, &error).into())
            }
            _ => self.compute(root, EarlierResults::default(), monitor),
        }
    }

    /// Where results are kept until all are there.
    fn partial_folder(&self, root: &Path) -> PathBuf {
        root.join(format!("{}.partial", self.folder_name()))
    }

    /// Computes what is neither in the partial folder nor among earlier results.
    fn compute(
        &self,
        root: &Path,
        earlier: EarlierResults,
        monitor: &dyn Monitor,
    ) -> Result<Finished, Failure> {
        let folder = root.join(self.folder_name());
        let begun = Instant::now();
        let partial = self.partial_folder(root);
        let unwritable = |error: std::io::Error| unwritable(&partial, &error);
        std::fs::create_dir_all(&partial).map_err(unwritable)?;
        let description = toml::to_string(&self.resolved).expect("a description is plain data");
        write_atomically(&partial.join("description.toml"), description.as_bytes()).map_err(unwritable)?;
        let pieces = self.runs.len() + self.scan_points();
        let share = ProgressShare { monitor, part: 1.0 / pieces.max(1) as f64 };
        let RunResults { mut results, mut failures, mut taken_over } =
            self.run_all(&partial, &earlier, &share)?;
        if self.runs.len() == failures.len() && !failures.is_empty() {
            return Err(Diagnostic::new(failures.join("\n")).into());
        }
        for (spec, grid) in self.resolved.scan.iter().zip(&self.grids) {
            let (rows, known) = answers(spec, grid, &partial, &earlier, &share)?;
            taken_over += usize::from(known);
            let scan = Scan { name: spec.name.clone(), rows: grid.iter().cloned().zip(rows).collect() };
            failures.extend(scan.failures());
            results.scans.push(scan);
        }
        let outcome = self.conclude(&results);
        self.write_outcome(&partial, &outcome, (&results.scans, &failures), &description).map_err(
            |e| match e {
                WriteError::Disk(error) => unwritable(error),
                WriteError::Figure(text) => Diagnostic::new(text),
            },
        )?;
        let provenance = json!({
            "complete": true,
            "didact": env!("CARGO_PKG_VERSION"),
            "build": BUILD,
            "seed": self.resolved.seed(),
            "runs": self.resolved.run.iter().map(|r| json!({"name": r.name, "engine": r.engine.name()})).collect::<Vec<_>>(),
            "points": self.points.len(),
            "size": if self.reduced_to_quick { "quick" } else if self.full { "full" } else { "normal" },
            "failures": failures,
            "threads": rayon::current_num_threads(),
            "wall-seconds": begun.elapsed().as_secs_f64(),
            "target": format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        });
        let text = serde_json::to_string_pretty(&provenance).expect("plain data");
        write_atomically(&partial.join("provenance.json"), text.as_bytes()).map_err(unwritable)?;
        replace_folder(&partial, &folder).map_err(unwritable)?;
        Ok(Finished {
            folder,
            reused: false,
            taken_over,
            claims: outcome.claims,
            failures,
            measured: outcome.measured,
        })
    }

    /// Folder of a point: the experiment's own when there is no sweep.
    pub(crate) fn point_folder(&self, folder: &Path, index: usize) -> PathBuf {
        if self.resolved.sweep.is_empty() {
            folder.to_path_buf()
        } else {
            folder.join(format!("point-{index:04}"))
        }
    }

    /// Results of other versions of this description, whole or not: those in folders with its title.
    fn earlier_results(&self, root: &Path) -> EarlierResults {
        let (prefix, own) = (self.folder_prefix(), self.folder_name());
        let named = |entry: &std::fs::DirEntry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            name.starts_with(&prefix) && !name.starts_with(&own)
        };
        let Ok(entries) = std::fs::read_dir(root) else { return EarlierResults::default() };
        let mut folders: Vec<PathBuf> = entries.flatten().filter(named).map(|entry| entry.path()).collect();
        folders.sort();
        EarlierResults::in_folders(&folders)
    }

    fn run_all(
        &self,
        folder: &Path,
        earlier: &EarlierResults,
        share: &ProgressShare,
    ) -> Result<RunResults, Failure> {
        let taken_over = AtomicUsize::new(0);
        let one = |run: &Run| -> Result<Result<Trajectory, String>, Failure> {
            let place = self.point_folder(folder, run.point.index);
            if let Some(table) = store::read(&place, &run.name, &run.key) {
                share.advance(1.0);
                return Ok(Ok(table));
            }
            let keep = |table: &Trajectory| -> Result<(), Diagnostic> {
                let kept = std::fs::create_dir_all(&place)
                    .and_then(|()| store::write(table, &place, &run.name, &run.key));
                kept.map_err(|error| unwritable(&place, &error))
            };
            if let Some(table) = earlier.table(&run.key) {
                keep(&table)?;
                taken_over.fetch_add(1, Ordering::Relaxed);
                share.advance(1.0);
                return Ok(Ok(table));
            }
            if share.cancelled() {
                return Err(Failure::Interrupted(folder.to_path_buf()));
            }
            match run.schedule.run(share) {
                Ok(table) => {
                    keep(&table)?;
                    Ok(Ok(table))
                }
                Err(EngineError::Interrupted) => Err(Failure::Interrupted(folder.to_path_buf())),
                Err(error) => Ok(Err(error.to_string())),
            }
        };
        let tables: Result<Vec<_>, Failure> = self.runs.par_iter().map(one).collect();
        let mut results = Results { points: self.points.clone(), ..Results::default() };
        let mut failures = Vec::new();
        for (run, table) in self.runs.iter().zip(tables?) {
            if let Err(why) = &table {
                failures.push(format!("{} at {}: {why}", run.name, run.point.label()));
            }
            results.tables.insert((run.point.index, run.name.clone()), table);
        }
        Ok(RunResults { results, failures, taken_over: taken_over.into_inner() })
    }

    fn conclude(&self, results: &Results) -> Outcome {
        let measured = measures::evaluate(&self.resolved.measure, results);
        let claims: Vec<_> = self.resolved.claim.iter().filter(|c| self.full || !c.only_full).collect();
        let claims = claims::judge(&claims, &self.points, &measured);
        let drawable = Drawable { results, measured: &measured };
        let figures = self.resolved.figure.iter().map(|f| (f.name.clone(), drawable.figure(f))).collect();
        Outcome { claims, figures, measured }
    }

    fn write_outcome(
        &self,
        folder: &Path,
        outcome: &Outcome,
        (scans, failures): (&[Scan], &[String]),
        description: &str,
    ) -> Result<(), WriteError> {
        for scan in scans {
            write_atomically(&folder.join(format!("scan-{}.csv", scan.name)), scan.csv().as_bytes())?;
        }
        let mut figures = Vec::new();
        for (name, figure) in &outcome.figures {
            let figure = figure.clone().map_err(WriteError::Figure)?;
            let fault = |e: didact_figure::Error| WriteError::Figure(format!("figure `{name}`: {e}"));
            let svg = didact_figure::to_svg(&figure).map_err(fault)?;
            write_atomically(&folder.join(format!("{name}.svg")), svg.as_bytes())?;
            write_atomically(
                &folder.join(format!("{name}.pdf")),
                &didact_figure::to_pdf(&figure).map_err(fault)?,
            )?;
            write_atomically(
                &folder.join(format!("{name}.png")),
                &didact_figure::to_png(&figure, 200.0).map_err(fault)?,
            )?;
            figures.push((name.clone(), figure));
        }
        let results = json!({"measures": outcome.measured, "claims": outcome.claims});
        let text = serde_json::to_string_pretty(&results).expect("plain data");
        write_atomically(&folder.join("results.json"), text.as_bytes())?;
        let measures: Vec<(String, String)> =
            outcome.measured.iter().flat_map(|m| self.measure_rows(m)).collect();
        let provenance = [
            ("didact".to_string(), env!("CARGO_PKG_VERSION").to_string()),
            ("build".into(), BUILD.into()),
            ("seed".into(), self.resolved.seed().to_string()),
            ("folder".into(), self.folder_name()),
        ];
        let report = Report {
            title: &self.resolved.title,
            about: &self.resolved.about,
            notice: self.notice(),
            words: &Words::new(&self.resolved),
            claims: &outcome.claims,
            figures: &figures,
            measures: &measures,
            scans,
            description,
            provenance: &provenance,
            references: &self.resolved.references(),
            failures,
        };
        let html = report.html().map_err(WriteError::Figure)?;
        write_atomically(&folder.join("report.html"), html.as_bytes())?;
        Ok(())
    }

    /// What a reader of the report must know first.
    fn notice(&self) -> Option<&'static str> {
        match (self.reduced_to_quick, self.full) {
            (true, _) => Some(
                "A quick run (--quick): smaller than the experiment describes, so that it takes seconds. Without --quick it runs as described.",
            ),
            (_, true) => Some("Run at full size (--full): as large as the source."),
            _ => None,
        }
    }

    fn measure_rows(&self, measured: &Measured) -> Vec<(String, String)> {
        let text = |value: &Result<Estimate, Missing>| match value {
            Ok(estimate) => estimate.to_string(),
            Err(why) => why.to_string(),
        };
        if measured.global || self.points.len() == 1 {
            return vec![(measured.name.clone(), text(&measured.values[0]))];
        }
        let first = text(&measured.values[0]);
        if measured.values.len() > 2 && measured.values.iter().all(|value| text(value) == first) {
            return vec![(format!("{} at all {} points", measured.name, self.points.len()), first)];
        }
        let rows = self.points.iter().zip(&measured.values);
        rows.map(|(p, v)| (format!("{} at {}", measured.name, p.label()), text(v))).collect()
    }
}

/// The answers of a scan, and whether they were taken over from an earlier version of the description.
fn answers(
    spec: &ScanSpec,
    grid: &[Point],
    folder: &Path,
    earlier: &EarlierResults,
    share: &ProgressShare,
) -> Result<(Rows, bool), Failure> {
    let (key, path) = (key_of_scan(spec), folder.join(format!("scan-{}.json", spec.name)));
    if let Some(answers) = Answers::read(&path, &key) {
        return Ok((answers.rows, false));
    }
    let known = earlier.answers(&key).map(|answers| answers.rows);
    let taken_over = known.is_some();
    let rows = known.or_else(|| quantities::scan(spec, grid, share));
    let answers = Answers { key, rows: rows.ok_or_else(|| Failure::Interrupted(folder.to_path_buf()))? };
    answers.write(&path).map_err(|error| unwritable(&path, &error))?;
    Ok((answers.rows, taken_over))
}

/// Renames a folder; one that has the new name already is moved out of the way first and then removed.
fn replace_folder(new: &Path, name: &Path) -> std::io::Result<()> {
    if !name.exists() {
        return std::fs::rename(new, name);
    }
    let mut old = name.as_os_str().to_os_string();
    old.push(".replaced");
    std::fs::rename(name, &old)?;
    std::fs::rename(new, name)?;
    std::fs::remove_dir_all(&old)
}

fn unwritable(place: &Path, error: &std::io::Error) -> Diagnostic {
    Diagnostic::new(format!("cannot write to {}: {error}", place.display()))
        .hint("choose another folder with --out")
}

/// What the runs left.
struct RunResults {
    results: Results,
    failures: Vec<String>,
    taken_over: usize,
}

struct Outcome {
    claims: Vec<Judged>,
    figures: Vec<(String, Result<Figure, String>)>,
    measured: Vec<Measured>,
}

/// Why results could not be written.
enum WriteError {
    Disk(std::io::Error),
    Figure(String),
}

impl From<std::io::Error> for WriteError {
    fn from(error: std::io::Error) -> Self {
        Self::Disk(error)
    }
}

/// A folder that is whole: its provenance says so and its results can be read.
pub fn finished(folder: &Path) -> Option<Finished> {
    let read = |name: &str| -> Option<serde_json::Value> {
        serde_json::from_str(&std::fs::read_to_string(folder.join(name)).ok()?).ok()
    };
    let provenance = read("provenance.json")?;
    if provenance["complete"] != json!(true) {
        return None;
    }
    let results = read("results.json")?;
    Some(Finished {
        folder: folder.to_path_buf(),
        reused: true,
        taken_over: 0,
        claims: serde_json::from_value(results["claims"].clone()).ok()?,
        failures: serde_json::from_value(provenance["failures"].clone()).ok()?,
        measured: serde_json::from_value(results["measures"].clone()).ok()?,
    })
}

/// True when no claim fails.
pub fn all_hold(claims: &[Judged]) -> bool {
    claims.iter().all(|c| c.verdict != Verdict::Fails)
}
