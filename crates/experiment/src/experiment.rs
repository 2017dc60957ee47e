//! An experiment: every point of the sweep and every run at it, checked before anything is written.

use crate::build;
use crate::description::{Description, MeasureKind, RunSpec, ScanSpec};
use crate::figure_checks::FigureChecks;
use crate::input_files::InputFiles;
use crate::left_out::LeftOut;
use crate::names;
use crate::overrides;
use crate::points::{self, Point};
use crate::quantities;
use crate::schedule::{FLUCTUATIONS, Schedule};
use crate::source::{Diagnostic, Source};
use crate::spectra;
use crate::store::{Places, disk};
use didact_model::Cost;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Fingerprint of the sources that compute tables and answers, made by the build script.
pub const BUILD: &str = env!("DIDACT_BUILD");

/// Points of a scan whose inputs are checked before anything runs; more would keep `check` from being instant.
const CHECKED_POINTS: usize = 2000;
/// Fingerprint of the sources that make measures, verdicts, figures and reports of them.
const OUTCOME_BUILD: &str = env!("DIDACT_OUTCOME_BUILD");

/// How large a reproduction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Size {
    /// Seconds.
    Quick,
    /// As described.
    #[default]
    Normal,
    /// As large as the source.
    Full,
}

/// One run at one point of the sweep.
pub struct Run {
    /// Where in the sweep.
    pub point: Point,
    /// Name of the run.
    pub name: String,
    /// Its engine, record and stages, ready to be run.
    pub schedule: Schedule,
    /// Digest of all that the run depends on: titles, figures, claims, other runs and the rest of the sweep are not among it.
    pub key: String,
}

/// A checked experiment.
pub struct Experiment {
    /// The description with size and seed applied, every default written out.
    pub resolved: Description,
    /// Its text.
    pub source: Source,
    /// Points of the sweep.
    pub points: Vec<Point>,
    /// All runs at all points.
    pub runs: Vec<Run>,
    /// The grid of every scan.
    pub grids: Vec<Vec<Point>>,
    /// Under `--full`.
    pub full: bool,
    /// Under `--quick`, and the description says what that changes.
    pub reduced_to_quick: bool,
    /// Files that quantities read.
    pub(crate) files: InputFiles,
    /// Name of the folder.
    name: String,
}

impl Experiment {
    /// Checks a description whole: nothing is written when anything is wrong.
    pub fn new(source: Source, size: Size, seed: Option<u64>) -> Result<Self, Diagnostic> {
        let described = source.description()?;
        Self::of_description(described, source, size, seed)
    }

    /// The same for a description that was read from the source, and perhaps changed since.
    pub(crate) fn of_description(
        described: Description,
        source: Source,
        size: Size,
        seed: Option<u64>,
    ) -> Result<Self, Diagnostic> {
        // A slip in changes for another size is found now, not when that size is asked for.
        for (changes, owner) in [(&described.quick, "quick"), (&described.full, "full")] {
            overrides::with(&described, changes, &source, owner)?;
        }
        let mut resolved = match size {
            Size::Quick => overrides::with(&described, &described.quick, &source, "quick")?,
            Size::Normal => described,
            Size::Full => overrides::with(&described, &described.full, &source, "full")?,
        };
        if let (Some(seed), Some(record)) = (seed, &mut resolved.record) {
            record.seed = seed;
        }
        let full = size == Size::Full;
        let reduced_to_quick = size == Size::Quick && !resolved.quick.is_empty();
        // Names are checked while runs still have the positions that they have in the source.
        names::check_names(&resolved, &source)?;
        let only_full: Vec<RunSpec> = resolved.run.extract_if(.., |r| r.only_full && !full).collect();
        let points = points::expand(&resolved.sweep, "sweep", &source)?;
        let mut runs = Vec::new();
        let of_runs = resolved.of_runs();
        for point in &points {
            let here = overrides::with(&of_runs, &point.values, &source, "sweep")?;
            for run in here.run.iter().filter(|run| point.lies_within(&run.within)) {
                let prepared = prepare(&here, run, point, &source);
                runs.push(prepared.map_err(|e| e.of_run(&source, &run.name))?);
            }
        }
        let left_out = LeftOut::of(&resolved, &only_full);
        names::References {
            description: &resolved,
            runs: &runs,
            points: &points,
            left_out: &left_out,
            source: &source,
        }
        .check()?;
        left_out.take_out_of(&mut resolved);
        let figures = FigureChecks { description: &resolved, points: &points, runs: &runs };
        for (index, figure) in resolved.figure.iter().enumerate() {
            let drawn = figures.trial(figure);
            drawn.map_err(|e| e.at_key(&source, &format!("figure.{index}.name")))?;
        }
        let mut grids = Vec::new();
        for (index, scan) in resolved.scan.iter().enumerate() {
            let inputs = scan.inputs.keys().chain(scan.over.keys()).map(String::as_str);
            quantities::check(&scan.quantity, inputs)
                .map_err(|e| Diagnostic::new(e).at_key(&source, &format!("scan.{index}.quantity")))?;
            let grid = points::expand(&scan.over, &format!("scan.{index}.over"), &source)?;
            for point in grid.iter().take(CHECKED_POINTS) {
                let inputs = scan.inputs.iter().chain(&point.values);
                let inputs = inputs.map(|(key, value)| (key.clone(), value.clone())).collect();
                quantities::admits(&scan.quantity, &inputs)
                    .map_err(|e| Diagnostic::new(e).at_key(&source, &format!("scan.{index}.over")))?;
            }
            grids.push(grid);
        }
        let files = InputFiles::of(&resolved, (&points, &grids), &source)?;
        let name = folder_name(&resolved, &runs, &files);
        Ok(Self { resolved, source, points, runs, grids, full, reduced_to_quick, files, name })
    }

    /// The runs of which there is no table below `root`, in journals or finished folders of this experiment or of another.
    pub fn missing_runs(&self, root: &Path) -> Vec<&Run> {
        let places = Places::of(root, self.folder_name());
        self.runs.iter().filter(|run| !places.has_table(&run.key)).collect()
    }

    /// The size that it was made at; `Normal` also where `--quick` changes nothing.
    pub fn size(&self) -> Size {
        match (self.full, self.reduced_to_quick) {
            (true, _) => Size::Full,
            (_, true) => Size::Quick,
            _ => Size::Normal,
        }
    }

    /// Points of all scans together.
    pub fn scan_points(&self) -> usize {
        self.grids.iter().map(Vec::len).sum()
    }

    /// What every run needs, in the order of `runs`. When an event is expected to end a run is asked of theory at a few points of a sweep
    /// only: to ask at all of them would take as long as a short experiment.
    pub fn costs(&self) -> Vec<Cost> {
        let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, run) in self.runs.iter().enumerate() {
            places.entry(&run.name).or_default().push(index);
        }
        let mut parts = vec![1.0; self.runs.len()];
        for all in places.values() {
            let asked: BTreeSet<usize> = [0, all.len() / 2, all.len() - 1].into_iter().collect();
            let sum: f64 = asked.iter().map(|n| self.runs[all[*n]].schedule.expected_part()).sum();
            all.iter().for_each(|index| parts[*index] = sum / asked.len() as f64);
        }
        self.runs.iter().zip(parts).map(|(run, part)| run.schedule.cost(part)).collect()
    }

    /// What models have to say of their runs before they start, each remark once.
    pub fn remarks(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for run in &self.runs {
            for remark in run.schedule.remarks() {
                let remark = format!("run `{}`: {remark}", run.name);
                if !all.contains(&remark) {
                    all.push(remark);
                }
            }
        }
        all
    }

    /// `<slug>-<hash>`.
    pub fn folder_name(&self) -> &str {
        &self.name
    }

    /// The inputs of a scan at a point of its grid, and the digest of all that its answer depends on.
    pub(crate) fn inputs_at(&self, scan: &ScanSpec, point: &Point) -> (Map<String, Value>, String) {
        let given: Map<String, Value> =
            scan.inputs.iter().chain(&point.values).map(|(k, v)| (k.clone(), v.clone())).collect();
        let key =
            json!({ "point": scan.quantity, "inputs": self.files.digested(&scan.quantity, given.clone()) });
        (self.files.located(&scan.quantity, given), digest(&key, 16))
    }
}

/// `<slug>-<hash>`; the hash is of the whole description, of all that its runs depend on, and of the contents of files that
/// quantities read.
fn folder_name(resolved: &Description, runs: &[Run], files: &InputFiles) -> String {
    // Where a file lies does not matter, only what it holds.
    let mut described = resolved.clone();
    for scan in &mut described.scan {
        let inputs = std::mem::take(&mut scan.inputs).into_iter().collect();
        scan.inputs = files.digested(&scan.quantity, inputs).into_iter().collect();
    }
    for measure in &mut described.measure {
        if let MeasureKind::Quantity(measure) = &mut measure.kind {
            let inputs = std::mem::take(&mut measure.inputs).into_iter().collect();
            measure.inputs = files.digested(&measure.quantity, inputs).into_iter().collect();
        }
    }
    let keys: Vec<&str> = runs.iter().map(|run| run.key.as_str()).collect();
    let all =
        json!({ "description": described, "runs": keys, "files": files.digests(), "outcome": OUTCOME_BUILD });
    format!("{}-{}", slug(&resolved.title), digest(&all, 6))
}

/// Leading bytes of the digest of a part of a description, the version and the build: the same for the same description as long
/// as no code changes that computes results.
fn digest(described: &impl Serialize, bytes: usize) -> String {
    let value: Value = serde_json::to_value(described).expect("a description is plain data");
    let text = format!("didact {} {BUILD}\n{value}", env!("CARGO_PKG_VERSION"));
    let mut digits = disk::digest(text.as_bytes());
    digits.truncate(2 * bytes);
    digits
}

/// Describes one run at one point to its engine: changes, problem, record, stages, schedule.
fn prepare(
    description: &Description,
    run: &RunSpec,
    point: &Point,
    source: &Source,
) -> Result<Run, Diagnostic> {
    let here = spectra::resolve_last(overrides::with(description, &run.set, source, "run")?, source)?;
    let engine = run.engine.engine().map_err(|error| {
        let message = format!("the {} of run `{}` {}", error.option, run.name, error.problem);
        Diagnostic::new(message).at_key(source, &format!("run.{}", error.option))
    })?;
    let (record, stages) = build::stages(&here, source)?;
    let engine_alone = RunSpec { engine: run.engine.clone(), ..RunSpec::default() };
    let description = Description { run: vec![engine_alone], ..here.of_runs() };
    // A stage may change the spectrum to that of a file by its parts: the numbers are what its result depends on.
    let spectra = stages.iter().map(|stage| &stage.draft.spectrum);
    let spectra: Vec<_> = spectra.filter(|own| **own != stages[stages.len() - 1].draft.spectrum).collect();
    let numbers: Vec<_> = spectra.iter().map(|s| (s.eigenvalues(), s.weights())).collect();
    let key =
        if numbers.is_empty() { digest(&description, 16) } else { digest(&(&description, numbers), 16) };
    let schedule = Schedule::new(engine, record, stages, source).map_err(|mut error| {
        if error.key() == Some(FLUCTUATIONS) {
            error.message = format!("run `{}`: {}", run.name, error.message);
        }
        error.of_run(source, &run.name)
    })?;
    Ok(Run { point: point.clone(), name: run.name.clone(), schedule, key })
}

fn slug(title: &str) -> String {
    let words = title.to_lowercase();
    let words = words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty());
    let slug: Vec<&str> = words.take(6).collect();
    if slug.is_empty() { "experiment".into() } else { slug.join("-") }
}
