//! The four-field integral of units that are linear between kinks along a run: how fine its sums are, and what error is stated.

use super::by_tables::CALLS_PER_CHECK;
use super::conditional::SquaredErrors;
use super::continued::KeptSums;
use super::kinked::{Fineness, KinkedIntegral, Work};
use didact_math::activation::LinearPieces;
use didact_math::linalg::Mat;
use didact_model::rule::Law;

/// How fine the sums over panels are.
#[derive(Debug)]
pub(super) struct KeptPanels {
    fineness: Fineness,
    calls: u32,
    /// The largest relative difference to finer sums that was seen and accepted.
    difference: f64,
    work: Work,
}

impl Default for KeptPanels {
    fn default() -> Self {
        Self { fineness: Fineness::FIRST, calls: 0, difference: 0.0, work: Work::default() }
    }
}

/// The best relative error of sums over panels that is stated: rounding, magnified where terms cancel.
const PANEL_ACCURACY: f64 = 1e-12;

/// E[e² g'_i g'_j] of units that are linear between kinks, as fine as the accuracy that is asked for needs, and as fine as can be where
/// none is.
pub(super) fn by_panels(
    units: &[LinearPieces],
    (residual, trained): (&[f64], usize),
    law: &Law,
    accuracy: Option<f64>,
    sums: &mut KeptSums,
) -> SquaredErrors {
    if !law.covariance.is_finite() {
        // A diverging run: the integrator finds out from the numbers.
        return SquaredErrors { value: Mat::from_fn(trained, trained, |_, _| f64::NAN), error: f64::NAN };
    }
    let units: Vec<&LinearPieces> = units.iter().collect();
    let integral = KinkedIntegral { units: &units, residual, covariance: law.covariance };
    let KeptSums { panels: kept, changed, .. } = sums;
    if kept.calls.is_multiple_of(CALLS_PER_CHECK) {
        let before = kept.fineness;
        let difference = choose_panels(&integral, trained, accuracy, kept);
        kept.difference = kept.difference.max(difference);
        *changed |= kept.fineness != before;
    }
    kept.calls = kept.calls.wrapping_add(1);
    let value = integral.squared_errors(trained, kept.fineness, &mut kept.work);
    let error = (kept.difference + PANEL_ACCURACY) * value.max_abs();
    SquaredErrors { value, error }
}

/// Makes the sums as fine as they have to be, and as fine as can be where no accuracy is asked for; returns by how much sums of another
/// fineness differ: one step finer, or two steps coarser than the finest.
fn choose_panels(
    integral: &KinkedIntegral,
    trained: usize,
    accuracy: Option<f64>,
    kept: &mut KeptPanels,
) -> f64 {
    let mut sums = |fineness| integral.squared_errors(trained, fineness, &mut kept.work);
    let apart = |mut one: Mat, other: &Mat| {
        one.add_scaled(-1.0, other);
        let size = other.max_abs();
        if size > 0.0 { one.max_abs() / size } else { 0.0 }
    };
    let finest = Fineness::FINEST;
    let mut value = sums(kept.fineness);
    while let Some(accuracy) = accuracy.filter(|_| kept.fineness.finer() != finest) {
        let finer = sums(kept.fineness.finer());
        let difference = apart(value, &finer);
        if difference <= 0.5 * accuracy {
            return difference;
        }
        (kept.fineness, value) = (kept.fineness.finer(), finer);
    }
    kept.fineness = finest;
    apart(sums(finest.two_coarser()), &sums(finest))
}
