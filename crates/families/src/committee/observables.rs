//! What only committees show: how far the hidden units of the student are from all being equal.

use didact_model::observable::{Observable, Snapshot};
use std::sync::Arc;

/// √(1/(KM) Σ_in (R_in − R̄_n)²), R̄_n the mean over the units i of the student: 0 on the symmetric plateau, and growing as
/// exp(α/τ) on the way out of it (docs/derivations/power-law-spectra.md#s6-3).
#[derive(Debug, Clone, Copy)]
struct Asymmetry;

impl Observable for Asymmetry {
    fn name(&self) -> String {
        "asymmetry".into()
    }

    fn measure(&self, snapshot: &Snapshot) -> f64 {
        let covariance = snapshot.moment(1);
        let k = snapshot.overlaps.shape().trained;
        let m = covariance.rows() - k;
        let spread = |n: usize| {
            let mean = (0..k).map(|i| covariance[(i, k + n)]).sum::<f64>() / k as f64;
            (0..k).map(|i| (covariance[(i, k + n)] - mean).powi(2)).sum::<f64>()
        };
        ((0..m).map(spread).sum::<f64>() / (k * m) as f64).sqrt()
    }
}

/// All observables of the family.
pub(super) fn all() -> Vec<Arc<dyn Observable>> {
    vec![Arc::new(Asymmetry)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Family;
    use crate::committee::Committee;
    use didact_math::linalg::Mat;
    use didact_model::start::Given;
    use didact_model::{Clock, Overlaps, Problem, Spectrum, Training};

    /// R = [[0.3, 0.1], [0.1, 0.5]]: means 0.2 and 0.3, deviations ±0.1 and ±0.2.
    #[test]
    fn the_asymmetry_is_the_spread_of_the_overlaps_over_the_units() {
        let committee = Committee::soft(2, 2, "erf(z/sqrt2)");
        let rule = committee.rule().unwrap();
        let spectrum = Spectrum::isotropic();
        let r = Mat::from_rows(&[vec![0.3, 0.1], vec![0.1, 0.5]]).unwrap();
        let start =
            Overlaps::spread(rule.shape(), &spectrum, (&Mat::identity(2), &r, &Mat::identity(2)), vec![])
                .unwrap();
        let problem = Problem {
            rule,
            about: committee.about(),
            spectrum,
            dimension: None,
            training: Training::online(0.1),
            start: Arc::new(Given(start.clone())),
            clock: Clock::Alpha,
        };
        let value = Asymmetry.measure(&Snapshot::new(&start, &problem));
        assert!((value - 0.025_f64.sqrt()).abs() < 1e-15, "{value}");
    }
}
