//! Averages of a committee without closed forms along a trajectory: most are continued from earlier points of it, the others computed as
//! accurately as they are asked for.
//!
//! Drift and noise are continued apart from each other: the drift is sums over pairs of fields and cheap, the noise is sums over planes and
//! expensive. The drift is asked to be known better, which costs little, since jumps from one continuation to the next make an integrator
//! take smaller steps.

use super::averages::{drift, squared_errors, write_noise};
use super::by_panels::KeptPanels;
use super::by_tables::KeptTables;
use super::{CommitteeRule, output_factors};
use didact_model::averages::Nearby;
use didact_model::rule::{Averages, Law, Needed};

/// The share of the accuracy that goes to continuing the noise from earlier points,
const CONTINUED: f64 = 0.3;
/// and the drift.
const CONTINUED_DRIFT: f64 = 0.1;

/// What is kept from one call to the next where averages are sums.
#[derive(Debug, Default)]
struct Kept {
    /// Covariances and scalars of the call.
    place: Vec<f64>,
    drift: Nearby,
    noise: Nearby,
    /// Errors of the last averages that were computed, relative to their largest entries.
    errors: [f64; 2],
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
pub(super) fn continued(rule: &CommitteeRule, law: &Law, needed: Needed, accuracy: f64, out: &mut Averages) {
    let mut memory = std::mem::take(&mut out.memory);
    let kept: &mut Kept = memory.of();
    kept.place.clear();
    for f in 0..law.covariance.rows() {
        kept.place.extend(&law.covariance.row(f)[..=f]);
    }
    kept.place.extend(law.scalars);
    let [noise_within, drift_within] = [CONTINUED, CONTINUED_DRIFT].map(|share| share * accuracy);
    let noise = match needed {
        Needed::Drift => Some(&[][..]),
        Needed::DriftAndNoise => kept.noise.predict(&kept.place, noise_within),
    };
    // Pairs are cheap beside planes: where these are computed, those are too, and the drift is continued from as many points.
    let continued = noise.and_then(|_| kept.drift.predict(&kept.place, drift_within));
    let mut pairs = None;
    if let Some(value) = continued {
        let (entries, scalars) = value.split_at(out.drift.as_slice().len());
        out.drift.as_mut_slice().copy_from_slice(entries);
        out.scalars.copy_from_slice(scalars);
        out.error = (kept.errors[0] + drift_within) * out.drift.max_abs();
    } else {
        out.error = 0.0;
        pairs = Some(drift(rule, law, out));
        let value = [out.drift.as_slice(), &out.scalars].concat();
        let ends = [value.len() - out.scalars.len(), value.len()];
        kept.errors[0] = relative(out.error, out.drift.max_abs());
        kept.drift.push(kept.place.clone(), value, &ends);
    }
    if needed == Needed::DriftAndNoise {
        let error = match (noise, &pairs) {
            (Some(value), _) => {
                out.noise.as_mut_slice().copy_from_slice(value);
                (kept.errors[1] + noise_within) * out.noise.max_abs()
            }
            (None, pairs) => {
                let pairs = pairs.as_ref().expect("computed where the noise is");
                compute_noise(rule, law, accuracy, kept, |i, j| pairs[i][j].slope_slope, out)
            }
        };
        out.error = out.error.max(error);
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
    let moments = squared_errors(rule, law, Some(accuracy), &mut kept.sums).expect("sums over planes");
    let error = write_noise(&moments, &factors.gain, variance, slope, &mut out.noise);
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
