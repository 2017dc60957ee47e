//! An experiment: every point of the sweep and every run at it, checked before anything is written.

use crate::build;
use crate::description::{
    Claim, Description, FigureSpec, MeasureKind, OptimiseSpec, Overrides, RunSpec, ScanSpec,
};
use crate::engines::EngineSpec;
use crate::figure_checks::FigureChecks;
use crate::input_files::InputFiles;
use crate::jobs::NOT_YET;
use crate::left_out::LeftOut;
use crate::names;
use crate::optimise::{self, SearchMemory, Summary};
use crate::overrides;
use crate::points::{self, Point};
use crate::quantities;
use crate::recorded::{self, RecordedOptions};
use crate::schedule::{FLUCTUATIONS, Schedule};
use crate::source::{Diagnostic, Source};
use crate::spectra;
use crate::store::{Places, disk};
use didact_model::{Cost, Monitor, Trajectory};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// Fingerprint of the sources that compute tables and answers, made by the build script.
pub const BUILD: &str = env!("DIDACT_BUILD");

/// Points of a scan whose inputs are checked before anything runs; more would keep `check` from being instant.
const CHECKED_POINTS: usize = 2000;
/// Fingerprint of the sources that make measures, verdicts, figures and reports of them.
const OUTCOME_BUILD: &str = env!("DIDACT_OUTCOME_BUILD");

/// How large a reproduction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
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
    /// The optimisation whose protocol it is trained by, with what is needed to plan it once that is known.
    pub(crate) after: Option<AfterProtocol>,
    /// What an interrupted optimisation leaves.
    pub(crate) memory: Option<Arc<SearchMemory>>,
}

/// A run that waits for a protocol.
pub(crate) struct AfterProtocol {
    /// Name of the table of the optimisation.
    pub(crate) table: String,
    description: Description,
    run: RunSpec,
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
    /// The size that it was made at; `Normal` also where `--quick` changes nothing.
    pub size: Size,
    /// Claims about runs that are there at full size alone: shown as not judged.
    pub(crate) waiting_claims: Vec<Claim>,
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
        let size = if size == Size::Quick && resolved.quick.is_empty() { Size::Normal } else { size };
        // Names are checked while runs still have the positions that they have in the source.
        names::check_names(&resolved, &source)?;
        let waiting: Vec<OptimiseSpec> =
            resolved.optimise.extract_if(.., |o| o.only_full && size != Size::Full).collect();
        let waits = |run: &RunSpec| {
            run.only_full && size != Size::Full
                || run.protocol.as_ref().is_some_and(|p| waiting.iter().any(|o| o.name == *p))
        };
        let mut only_full: Vec<RunSpec> = resolved.run.extract_if(.., |run| waits(run)).collect();
        // An optimisation is a run by the name of its table.
        let tables = waiting.iter().map(|o| OptimiseSpec::table_name(&o.name));
        only_full.extend(tables.map(|name| RunSpec { name, ..RunSpec::default() }));
        let points = points::expand(&resolved.sweep, "sweep", &source)?;
        let mut runs = Vec::new();
        let of_runs = resolved.of_runs();
        for point in &points {
            let here = overrides::with(&of_runs, &point.values, &source, "sweep")?;
            for (index, spec) in
                here.optimise.iter().enumerate().filter(|(_, o)| point.lies_within(&o.within))
            {
                runs.push(prepare_optimisation(&here, spec, index, point, &source)?);
            }
            for run in here.run.iter().filter(|run| point.lies_within(&run.within)) {
                let prepared = match &run.protocol {
                    None => prepare(&here, run, point, &source),
                    Some(protocol) => prepare_after(&here, run, protocol, point, (&runs, &source)),
                };
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
        let waiting_claims = left_out.take_out_of(&mut resolved);
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
        Ok(Self { resolved, source, points, runs, grids, size, waiting_claims, files, name })
    }

    /// What a reader will not find in the legends of the figures: strokes, points and guides without an entry, in words.
    pub fn unexplained(&self) -> Vec<String> {
        let figures = FigureChecks { description: &self.resolved, points: &self.points, runs: &self.runs };
        let of = |figure: &FigureSpec| {
            let faults = didact_figure::unexplained(&figures.draft(figure)).unwrap_or_default();
            faults.into_iter().map(|fault| format!("figure `{}`: {fault}", figure.name)).collect::<Vec<_>>()
        };
        self.resolved.figure.iter().flat_map(of).collect()
    }

    /// The runs of which there is no table below `root`, in journals or finished folders of this experiment or of another.
    pub fn missing_runs(&self, root: &Path) -> Vec<&Run> {
        let places = Places::of(root, self.folder_name());
        self.runs.iter().filter(|run| !places.has_table(&run.key)).collect()
    }

    /// A run that waited for a protocol, planned with the table of the optimisation that found it; `None` for a run that waits for nothing.
    pub(crate) fn planned_with(
        &self,
        run: &Run,
        optimised: Option<&Result<Trajectory, String>>,
    ) -> Result<Option<Run>, String> {
        let Some(after) = &run.after else { return Ok(None) };
        let table = match optimised {
            Some(Ok(table)) => table,
            Some(Err(why)) if why == NOT_YET => return Err(NOT_YET.into()),
            Some(Err(why)) => return Err(format!("its protocol failed: {why}")),
            None => return Err(format!("`{}` is not there", after.table)),
        };
        let changes = Summary::of_table(table)?.changes();
        let planned = overrides::with(&after.description, &changes, &self.source, "protocol")
            .and_then(|here| prepare(&here, &after.run, &run.point, &self.source))
            .map_err(|error| error.message)?;
        Ok(Some(Run { key: run.key.clone(), ..planned }))
    }

    /// The optimisation that a run with a protocol waits for.
    pub(crate) fn optimisation_of(&self, run: &Run) -> Option<&Run> {
        let after = run.after.as_ref()?;
        self.runs.iter().find(|known| known.name == after.table && known.point.index == run.point.index)
    }

    /// The table of the first `[[run]]`, or of the first optimisation where there is no run, without a file.
    pub fn first_table(&self, monitor: &dyn Monitor) -> Result<Trajectory, String> {
        let run = self.runs.iter().find(|run| run.memory.is_none()).or(self.runs.first());
        let run = run.ok_or("the description has no run")?;
        let computed = |run: &Run| run.schedule.run(monitor).map_err(|error| error.to_string());
        match self.planned_with(run, self.optimisation_of(run).map(computed).as_ref())? {
            Some(planned) => computed(&planned),
            None => computed(run),
        }
    }

    /// All claims, those that wait for the full size last.
    pub(crate) fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.resolved.claim.iter().chain(&self.waiting_claims)
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
    if let EngineSpec::Recorded(options) = &run.engine {
        return prepare_recorded(options, run, point, source);
    }
    let here = spectra::resolve_last(overrides::with(description, &run.set, source, "run")?, source)?;
    let engine = run.engine.engine().map_err(|error| {
        let message = format!("the {} of run `{}` {}", error.option, run.name, error.problem);
        Diagnostic::new(message).at_key(source, &format!("run.{}", error.option))
    })?;
    let (record, stages) = build::stages(&here, source)?;
    let engine_alone = RunSpec { engine: run.engine.clone(), ..RunSpec::default() };
    let description = Description { run: vec![engine_alone], optimise: Vec::new(), ..here.of_runs() };
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
    Ok(Run { point: point.clone(), name: run.name.clone(), schedule, key, after: None, memory: None })
}

/// A run whose table another program made. It depends on what the file holds, not on where it lies, and on nothing of the description.
fn prepare_recorded(
    options: &RecordedOptions,
    run: &RunSpec,
    point: &Point,
    source: &Source,
) -> Result<Run, Diagnostic> {
    let alone = |key: &str| {
        let message = format!(
            "run `{}` has a table that another program made, and `{key}` would change nothing",
            run.name
        );
        Diagnostic::new(message).hint(format!("remove `{key}`")).at_key(source, &format!("run.{key}"))
    };
    if !run.set.is_empty() {
        return Err(alone("set"));
    }
    if run.protocol.is_some() {
        return Err(alone("protocol"));
    }
    let (table, file) = recorded::read(options, source).map_err(|e| e.of_run(source, &run.name))?;
    let engine = run.engine.engine().map_err(Diagnostic::new)?;
    let key = digest(&json!({ "recorded": file }), 16);
    let schedule = Schedule::of_table(engine, table);
    Ok(Run { point: point.clone(), name: run.name.clone(), schedule, key, after: None, memory: None })
}

/// Describes an optimisation at one point: a run whose table is what it found.
fn prepare_optimisation(
    description: &Description,
    spec: &OptimiseSpec,
    index: usize,
    point: &Point,
    source: &Source,
) -> Result<Run, Diagnostic> {
    let planned = optimise::plan(description, spec, index, source)?;
    // Names, and which points and sizes it is for, are no part of what it finds.
    let alone = OptimiseSpec {
        name: String::new(),
        set: Overrides::new(),
        only_full: false,
        within: BTreeMap::new(),
        ..spec.clone()
    };
    let here = Description { run: Vec::new(), optimise: vec![alone], ..planned.description.of_runs() };
    Ok(Run {
        point: point.clone(),
        name: OptimiseSpec::table_name(&spec.name),
        schedule: planned.schedule,
        key: digest(&here, 16),
        after: None,
        memory: Some(planned.memory),
    })
}

/// Describes a run that is trained by what an optimisation finds: it is checked with a protocol that stands for the one to come.
fn prepare_after(
    description: &Description,
    run: &RunSpec,
    protocol: &str,
    point: &Point,
    (runs, source): (&[Run], &Source),
) -> Result<Run, Diagnostic> {
    let table = OptimiseSpec::table_name(protocol);
    let spec = description.optimise.iter().find(|o| o.name == protocol);
    let searched = runs.iter().find(|known| known.name == table && known.point.index == point.index);
    let (Some(spec), Some(searched)) = (spec, searched) else {
        return Err(Diagnostic::new(format!(
            "the protocol `{protocol}` is not optimised at {}",
            point.label()
        ))
        .hint("give the run and the optimisation the same `where`")
        .at_key(source, "run.protocol"));
    };
    let with = overrides::with(description, &spec.set, source, "optimise")?;
    let trial = overrides::with(&with, &optimise::placeholder(spec), source, "protocol")?;
    let planned = prepare(&trial, run, point, source)?;
    let key = digest(&(&planned.key, &searched.key), 16);
    let after = AfterProtocol { table, description: with, run: run.clone() };
    Ok(Run { key, after: Some(after), ..planned })
}

fn slug(title: &str) -> String {
    let words = title.to_lowercase();
    let words = words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty());
    let slug: Vec<&str> = words.take(6).collect();
    if slug.is_empty() { "experiment".into() } else { slug.join("-") }
}
