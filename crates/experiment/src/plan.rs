//! What an experiment would do: every point, every run, checked before anything is written.

use crate::build;
use crate::description::{Description, Overrides, RunSpec, ScanSpec};
use crate::left_out::LeftOut;
use crate::names;
use crate::overrides;
use crate::points::{self, Point};
use crate::quantities;
use crate::schedule::Plan;
use crate::source::{Diagnostic, Source};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

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

/// One run at one point.
pub struct Job {
    /// Where in the sweep.
    pub point: Point,
    /// Name of the run.
    pub run: String,
    /// The schedule, ready to run.
    pub plan: Plan,
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
    pub jobs: Vec<Job>,
    /// The grid of every scan.
    pub grids: Vec<Vec<Point>>,
    /// Under `--full`.
    pub full: bool,
    /// Under `--quick`, and the description says what that changes.
    pub reduced_to_quick: bool,
}

impl Experiment {
    /// Checks a description whole: nothing is written when anything is wrong.
    pub fn new(source: Source, size: Size, seed: Option<u64>) -> Result<Self, Diagnostic> {
        let described = source.description()?;
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
        let only_full: Vec<RunSpec> = resolved.run.extract_if(.., |r| r.only_full && !full).collect();
        names::check_names(&resolved, &source)?;
        let points = points::expand(&resolved.sweep, "sweep", &source)?;
        let mut jobs = Vec::new();
        let of_runs = resolved.of_runs();
        for point in &points {
            let here = overrides::with(&of_runs, &point.values, &source, "sweep")?;
            for run in here.run.iter().filter(|run| point.lies_within(&run.within)) {
                jobs.push(job(&here, run, point, &source)?);
            }
        }
        let left_out = LeftOut::of(&resolved, &only_full);
        names::References { description: &resolved, jobs: &jobs, left_out: &left_out, source: &source }
            .check()?;
        left_out.take_out_of(&mut resolved);
        let mut grids = Vec::new();
        for (index, scan) in resolved.scan.iter().enumerate() {
            quantities::check(&scan.quantity, scan.inputs.keys().chain(scan.over.keys()))
                .map_err(|e| Diagnostic::new(e).at_key(&source, &format!("scan.{index}.quantity")))?;
            grids.push(points::expand(&scan.over, &format!("scan.{index}.over"), &source)?);
        }
        Ok(Self { resolved, source, points, jobs, grids, full, reduced_to_quick })
    }

    /// Points of all scans together.
    pub fn scan_points(&self) -> usize {
        self.grids.iter().map(Vec::len).sum()
    }

    /// What models have to say of their runs before they start, each remark once.
    pub fn remarks(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for job in &self.jobs {
            for remark in job.plan.remarks() {
                let remark = format!("run `{}`: {remark}", job.run);
                if !all.contains(&remark) {
                    all.push(remark);
                }
            }
        }
        all
    }

    /// `<slug>-<hash>`.
    pub fn folder_name(&self) -> String {
        format!("{}{}", self.folder_prefix(), digest(&self.resolved, 6))
    }

    /// What the folders of this experiment have in common as it is edited.
    pub fn folder_prefix(&self) -> String {
        format!("{}-", slug(&self.resolved.title))
    }
}

/// Digest of all that a scan depends on.
pub(crate) fn key_of_scan(scan: &ScanSpec) -> String {
    digest(&ScanSpec { name: String::new(), ..scan.clone() }, 16)
}

/// Leading bytes of the digest of a part of a description and the version: the same for the same description.
fn digest(described: &impl Serialize, bytes: usize) -> String {
    let value: Value = serde_json::to_value(described).expect("a description is plain data");
    let text = format!("didact {}\n{value}", env!("CARGO_PKG_VERSION"));
    Sha256::digest(text.as_bytes()).iter().take(bytes).map(|b| format!("{b:02x}")).collect()
}

fn job(description: &Description, run: &RunSpec, point: &Point, source: &Source) -> Result<Job, Diagnostic> {
    let own: &Overrides = &run.set;
    let here = overrides::with(description, own, source, "run")?;
    let engine = RunSpec {
        name: String::new(),
        set: Overrides::default(),
        only_full: false,
        within: BTreeMap::default(),
        ..run.clone()
    };
    let key = digest(&Description { run: vec![engine], ..here.of_runs() }, 16);
    let plan = Plan::new(&here, build::engine(run, source)?, source)?;
    Ok(Job { point: point.clone(), run: run.name.clone(), plan, key })
}

fn slug(title: &str) -> String {
    let words = title.to_lowercase();
    let words = words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty());
    let slug: Vec<&str> = words.take(6).collect();
    if slug.is_empty() { "experiment".into() } else { slug.join("-") }
}

/// What a job needs, estimated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Steps of all replicas; `None` for integrators, which choose their own.
    pub steps: Option<f64>,
    /// Bytes of state and results.
    pub memory: f64,
    /// Seconds of one core. Rough: from the cost per step of erf units on one machine, good to a factor of a few.
    pub seconds: f64,
}

impl Job {
    /// An estimate from the sizes alone; nothing is computed.
    pub fn cost(&self) -> Cost {
        let (problem, record) = (self.plan.draft(), &self.plan.record);
        let shape = problem.rule.shape();
        let (rows, blocks) = (shape.rows() as f64, problem.spectrum.len() as f64);
        let (replicas, batch) = (f64::from(record.replicas), problem.training.batch as f64);
        let results = replicas * record.times.len() as f64 * record.observables.len() as f64 * 8.0;
        let overlaps = blocks * rows * rows * 8.0;
        let dimension = problem.dimension.unwrap_or(0);
        let steps = record.end() * problem.steps_per_clock(dimension.max(1)) * replicas;
        match self.plan.engine.name() {
            "direct" => {
                let d = dimension as f64;
                let threads = rayon::current_num_threads() as f64;
                let memory = threads.min(replicas) * d * (rows + batch) * 8.0 + results;
                Cost { steps: Some(steps), memory, seconds: steps * batch * d * (2.2e-9 + 0.15e-9 * rows) }
            }
            "full-batch" => {
                let (n, d) = (problem.sample_count().unwrap_or(0) as f64, dimension as f64);
                let work = steps * n * d * shape.trained as f64;
                let memory = n * d * 8.0 * (rayon::current_num_threads() as f64).min(replicas) + results;
                Cost { steps: Some(steps), memory, seconds: work * 4e-10 }
            }
            "dmft" => {
                let (t, m) = (record.end() * problem.steps_per_clock(dimension.max(1)), shape.trained as f64);
                // Of the usual number of samples; a run may ask for others.
                let samples = 4.0 * 16_384.0;
                let work = samples * (t.powi(3) / 6.0 + 20.0 * t) * m.powi(3);
                Cost {
                    steps: Some(4.0 * t),
                    memory: samples * t * m * (2.0 + rows) * 2.0,
                    seconds: work * 1e-9,
                }
            }
            "reduced" => {
                // Fields and kicks of every sample, and the factor of the trained rows; frozen rows cost little beyond that.
                let trained = shape.trained as f64;
                let factor = blocks * trained * trained * rows * 6e-10;
                let seconds = steps * (1.2e-7 + batch * rows * 1.2e-8 + factor);
                Cost { steps: Some(steps), memory: overlaps + results, seconds }
            }
            _ => {
                let call = 2e-7 + blocks * rows.powi(3) * 1e-9 + rows.powi(4) * 2e-10;
                Cost { steps: None, memory: 20.0 * overlaps + results, seconds: replicas * 5e3 * call }
            }
        }
    }
}
