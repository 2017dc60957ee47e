//! Averages of a committee without closed forms along a trajectory: most are continued from earlier points of it, the others computed as
//! accurately as they are asked for.
//!
//! Drift and noise are continued apart from each other. The drift is sums over pairs of fields and cheap; the noise is sums over planes and
//! expensive, and where the equations count it less it may have a larger relative error for the same error of what it adds to.

use super::averages::{drift, products_of_slopes, squared_errors, write_noise};
use super::by_panels::KeptPanels;
use super::by_tables::KeptTables;
use super::{CommitteeRule, output_factors};
use didact_model::averages::Nearby;
use didact_model::rule::{Averages, Law, Needed};

/// The share of the accuracy that goes to continuing averages from earlier points.
const CONTINUED: f64 = 0.3;
/// The noise may have a relative error so much larger than the drift at most, however little it counts.
const MOST: f64 = 3.0;
/// The relative accuracy with which the size of the noise is found at the first call.
const ROUGH: f64 = 1e-3;

/// What is kept from one call to the next where averages are sums.
#[derive(Debug, Default)]
struct Kept {
    /// Covariances and scalars of the call.
    place: Vec<f64>,
    drift: Nearby,
    noise: Nearby,
    /// Errors of the last averages that were computed, relative to their largest entries.
    errors: [f64; 2],
    /// By how much the relative error of the noise may be larger than that of the drift, once that is known.
    share: Option<f64>,
    sums: KeptSums,
}

/// How fine sums over planes are, and buffers for them.
#[derive(Debug, Default)]
pub(super) struct KeptSums {
    pub(super) tables: KeptTables,
    pub(super) panels: KeptPanels,
    /// Whether sums have become finer or coarser since this was last asked.
    pub(super) changed: bool,
}

/// The averages at a covariance to a relative accuracy, for activations whose averages are sums over planes.
pub(super) fn continued(
    rule: &CommitteeRule,
    law: &Law,
    needed: Needed,
    accuracy: f64,
    out: &mut Averages,
) {
    let mut memory = std::mem::take(&mut out.memory);
    let kept: &mut Kept = memory.of();
    kept.place.clear();
    for f in 0..law.covariance.rows() {
        kept.place.extend(&law.covariance.row(f)[..=f]);
    }
    kept.place.extend(law.scalars);
    let within = CONTINUED * accuracy;
    let mut pairs = None;
    if let Some(value) = kept.drift.predict(&kept.place, within) {
        let (entries, scalars) = value.split_at(out.drift.as_slice().len());
        out.drift.as_mut_slice().copy_from_slice(entries);
        out.scalars.copy_from_slice(scalars);
        out.error = (kept.errors[0] + within) * out.drift.max_abs();
    } else {
        out.error = 0.0;
        pairs = Some(drift(rule, law, out));
        let value = [out.drift.as_slice(), &out.scalars].concat();
        let ends = [value.len() - out.scalars.len(), value.len()];
        kept.errors[0] = relative(out.error, out.drift.max_abs());
        kept.drift.push(kept.place.clone(), value, &ends);
    }
    if needed == Needed::DriftAndNoise {
        let error = match kept.noise.predict(&kept.place, within * kept.share.unwrap_or(1.0)) {
            Some(value) => {
                out.noise.as_mut_slice().copy_from_slice(value);
                (kept.errors[1] + within * kept.share.unwrap_or(1.0)) * out.noise.max_abs()
            }
            None => {
                let slopes = (law.label_noise != 0.0 && pairs.is_none())
                    .then(|| products_of_slopes(rule, law, out.accuracy));
                let slope = |i: usize, j: usize| match (&slopes, &pairs) {
                    (Some(slopes), _) => slopes[(i, j)],
                    (None, Some(pairs)) => pairs[i][j].slope_slope,
                    (None, None) => 0.0,
                };
                compute_noise(rule, law, accuracy, kept, slope, out)
            }
        };
        out.error = out.error.max(out.noise_weight.unwrap_or(1.0) * error);
    }
    out.memory = memory;
}

/// Writes the noise and returns its absolute error.
fn compute_noise(
    rule: &CommitteeRule,
    law: &Law,
    accuracy: f64,
    kept: &mut Kept,
    slope: impl Fn(usize, usize) -> f64,
    out: &mut Averages,
) -> f64 {
    let factors = output_factors(rule, law.scalars);
    let variance = law.label_noise * law.label_noise;
    let mut within = |accuracy: f64, out: &mut Averages| {
        let moments = squared_errors(rule, law, Some(accuracy), &mut kept.sums).expect("sums over planes");
        write_noise(&moments, &factors.gain, variance, &slope, &mut out.noise)
    };
    let share = |out: &Averages| {
        let ratio = out.noise_weight.map(|weight| out.drift.max_abs() / (weight * out.noise.max_abs()));
        ratio.filter(|ratio| !ratio.is_nan()).map_or(1.0, |ratio| ratio.clamp(1.0, MOST))
    };
    let known = kept.share.unwrap_or_else(|| {
        if out.noise_weight.is_some() {
            within(ROUGH.max(accuracy), out);
        }
        share(out)
    });
    let error = within(accuracy * known, out);
    kept.share = Some(share(out));
    kept.errors[1] = relative(error, out.noise.max_abs());
    if std::mem::take(&mut kept.sums.changed) {
        kept.noise.clear();
    }
    let value = out.noise.as_slice().to_vec();
    let ends = [value.len()];
    kept.noise.push(kept.place.clone(), value, &ends);
    error
}

fn relative(error: f64, size: f64) -> f64 {
    if size > 0.0 { error / size } else { 0.0 }
}
