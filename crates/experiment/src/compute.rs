//! One job computed: some replicas of a run, or the answer of a scan at one point. What goes wrong in it, a panic too, is its own
//! failure.

use crate::description::ScanSpec;
use crate::experiment::Run;
use crate::guard;
use crate::points::Point;
use crate::quantities::{self, Answered, NoAnswer};
use crate::store::journal::RecordKind;
use crate::store::{Encoded, Places, Tiling, disk, parts};
use didact_model::{EngineError, Monitor, Trajectory};
use serde_json::{Map, Value};
use std::ops::Range;

/// Some replicas of a run, as a journal keeps them.
pub(crate) struct ComputedPart {
    /// The key of the whole table where these are all replicas, else that of the part.
    pub(crate) key: String,
    pub(crate) kind: RecordKind,
    pub(crate) payload: Vec<u8>,
    pub(crate) table: Trajectory,
}

/// Why some replicas of a run could not be computed.
pub(crate) enum NoPart {
    /// The monitor asked to stop.
    Interrupted,
    /// They need more memory than there is.
    OutOfMemory(String),
    /// The engine could not go on.
    Error(String),
    /// A fault of the program.
    Panic(String),
}

/// Computes some replicas of a run.
pub(crate) fn compute_part(
    run: &Run,
    replicas: &Range<u32>,
    monitor: &dyn Monitor,
) -> Result<ComputedPart, NoPart> {
    if let Some(after) = &run.after {
        // Its schedule stands for one that is known when the optimisation is done.
        return Err(NoPart::Error(format!("it is trained by a protocol and waits for `{}`", after.table)));
    }
    let engine = run.schedule.engine.name();
    let with = || format!("run `{}` on `{engine}` at {}", run.name, run.point.label());
    let whole = *replicas == (0..run.schedule.replicas());
    let key = if whole { run.key.clone() } else { parts::part_key(&run.key, replicas) };
    let work = || {
        disk::job_begins(&format!("run {}", run.name));
        run.schedule.run_replicas(replicas.clone(), monitor)
    };
    let table = match guard::caught(with, work).map_err(NoPart::Panic)? {
        Ok(table) => table,
        Err(EngineError::Interrupted) => return Err(NoPart::Interrupted),
        Err(error @ (EngineError::TooLarge { .. } | EngineError::Memory { .. })) => {
            return Err(NoPart::OutOfMemory(error.to_string()));
        }
        Err(error) => return Err(NoPart::Error(error.to_string())),
    };
    // The numbers of a table may not fit the file.
    let encoded = Encoded::new(&table, &key).map_err(|error| NoPart::Error(error.to_string()))?;
    let kind = if whole { RecordKind::Table } else { RecordKind::Part };
    Ok(ComputedPart { key, kind, payload: encoded.payload(), table })
}

/// The table of a run whose parts are all there.
pub(crate) fn joined(places: &Places, run: &Run) -> Option<Trajectory> {
    let tiling = Tiling::of(places.parts(&run.key), run.schedule.replicas());
    if !tiling.missing.is_empty() {
        return None;
    }
    let parts: Option<Vec<Trajectory>> = tiling.kept.iter().map(|part| places.part(&run.key, part)).collect();
    Some(run.schedule.join(parts?))
}

/// Answers a scan at one point of its grid.
pub(crate) fn compute_answer(spec: &ScanSpec, inputs: &Map<String, Value>, point: &Point) -> Answered {
    let with = || format!("scan `{}` at {}", spec.name, point.label());
    guard::caught(with, || disk::job_begins(&format!("scan {}", spec.name))).map_err(NoAnswer::Failed)?;
    let answer = quantities::compute(&spec.quantity, inputs)?;
    Ok(answer.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
}

/// Whether an answer, or the refusal of one, is kept: where the program failed it is tried again.
pub(crate) fn is_final(answer: &Answered) -> bool {
    !matches!(answer, Err(NoAnswer::Failed(_)))
}

/// The key of the answers of a whole scan, of those of its points.
pub(crate) fn scan_key(points: &[impl AsRef<str>]) -> String {
    let keys: Vec<&str> = points.iter().map(AsRef::as_ref).collect();
    disk::digest(keys.join(" ").as_bytes())[..32].to_string()
}
