//! Thresholds in δ = n/d: where an informative direction of descent appears, and what that becomes at long times
//! (docs/derivations/gd-phase-transitions.md#s5-3).

use super::error::LandscapeError;
use didact_math::roots::brent_between;

/// The scan starts here, goes up by this factor, and gives up there.
const FIRST: f64 = 0.3;
const FACTOR: f64 = 1.5;
const LARGEST: f64 = 1e3;
const SMALLEST: f64 = 1e-3;

/// δ* = inf{δ : ψ(δ) < 0}: the first sign change of ψ that lasts on a scan upwards by factors of 1.5, then its root to `tolerance`.
///
/// `psi(δ)` is ψ(min(0, c)) of a Hessian block, positive below the threshold. When the law of the weights depends on δ through the
/// dynamics, every call must use the same random numbers: noise that differs from call to call has no root.
pub fn threshold(
    tolerance: f64,
    psi: impl FnMut(f64) -> Result<f64, LandscapeError>,
) -> Result<f64, LandscapeError> {
    threshold_from(FIRST, FACTOR, tolerance, psi)
}

/// As [`threshold`], scanning up (or, if ψ < 0 already, down) from `start` by `factor`.
pub(super) fn threshold_from(
    start: f64,
    factor: f64,
    tolerance: f64,
    mut psi: impl FnMut(f64) -> Result<f64, LandscapeError>,
) -> Result<f64, LandscapeError> {
    // Small training sets may make descent diverge, far below the threshold: start where it does not.
    let mut delta = start;
    let mut low = loop {
        match psi(delta) {
            Err(LandscapeError::Diverges { .. }) if delta * factor <= LARGEST => delta *= factor,
            Err(error) => return Err(error),
            Ok(value) => break (delta, value),
        }
    };
    while low.1 < 0.0 {
        let delta = low.0 / factor;
        if delta < SMALLEST {
            return Err(LandscapeError::NoThreshold {
                low: low.0,
                value_low: low.1,
                high: start,
                value_high: low.1,
            });
        }
        low = (delta, psi(delta)?);
    }
    let first = low;
    let mut high = low;
    loop {
        while high.1 >= 0.0 {
            low = high;
            let delta = high.0 * factor;
            if delta > LARGEST {
                let (value_low, value_high) = (first.1, high.1);
                return Err(LandscapeError::NoThreshold {
                    low: first.0,
                    value_low,
                    high: high.0,
                    value_high,
                });
            }
            high = (delta, psi(delta)?);
        }
        // Far below the threshold samples of a nearly unstable descent can make ψ dip below 0. A threshold stays crossed.
        let beyond = high.0 * FACTOR;
        let value = if beyond > LARGEST { high.1 } else { psi(beyond)? };
        if value < 0.0 {
            break;
        }
        high = (beyond, value);
    }
    let mut failure = None;
    let root = brent_between(
        |delta| {
            psi(delta).unwrap_or_else(|error| {
                failure = Some(error);
                f64::NAN
            })
        },
        low,
        high,
        tolerance,
    );
    match (root, failure) {
        (_, Some(error)) => Err(error),
        (Ok(root), None) => Ok(root),
        (Err(_), None) => Err(LandscapeError::NotANumber { delta: low.0 }),
    }
}

/// What δ*(t) tends to, and how much of that is assumption.
#[derive(Clone, Debug, PartialEq)]
pub struct LongTime {
    /// With an approach δ*(t) = δ∞ − c/t through the last two points.
    pub value: f64,
    /// From an approach ∝ t^{−2} and t^{−1/2}: the exponent is not known, so they bracket the answer.
    pub range: (f64, f64),
    /// Half the range, with the error of the points carried along.
    pub uncertainty: f64,
}

/// Exponents p of the approach δ*(t) = δ∞ − c t^{−p} that the range covers; the middle one is the value.
const APPROACHES: [f64; 3] = [2.0, 1.0, 0.5];

/// Extrapolates thresholds at the two last of ascending times. The errors are standard errors of the points.
///
/// Two points and an assumed exponent: nothing in the theory fixes the approach, so the range over `APPROACHES` is the honest answer. It does
/// not cover an approach slower than t^{−1/2}, nor a δ* that grows without bound.
pub fn long_time(times: &[f64], thresholds: &[f64], errors: &[f64]) -> Option<LongTime> {
    let n = times.len();
    if n < 2
        || thresholds.len() != n
        || errors.len() != n
        || times[n - 2] <= 0.0
        || times[n - 1] <= times[n - 2]
    {
        return None;
    }
    let (early, late) = (n - 2, n - 1);
    let limit = |p: f64| {
        let ratio = (times[late] / times[early]).powf(p);
        let gain = 1.0 / (ratio - 1.0);
        let value = thresholds[late] + gain * (thresholds[late] - thresholds[early]);
        (value, ((1.0 + gain) * errors[late]).hypot(gain * errors[early]))
    };
    let all = APPROACHES.map(limit);
    let low = all.iter().map(|l| l.0).fold(f64::INFINITY, f64::min);
    let high = all.iter().map(|l| l.0).fold(f64::NEG_INFINITY, f64::max);
    Some(LongTime { value: all[1].0, range: (low, high), uncertainty: (0.5 * (high - low)).hypot(all[1].1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sign_change_is_the_threshold() {
        // Positive up to 2, negative to 40, positive after: only the first counts.
        let psi = |delta: f64| Ok((2.0 - delta) * (40.0 - delta));
        assert!((threshold(0.0, psi).unwrap() - 2.0).abs() < 1e-12);
        // Below the first point of the scan.
        assert!((threshold(0.0, |delta| Ok(0.05 - delta)).unwrap() - 0.05).abs() < 1e-15);
    }

    #[test]
    fn a_dip_that_does_not_last_is_no_threshold() {
        let psi = |delta: f64| Ok(if (0.6..0.8).contains(&delta) { -0.1 } else { 5.0 - delta });
        assert!((threshold(0.0, psi).unwrap() - 5.0).abs() < 1e-12);
        assert!((threshold_from(0.7, 1.15, 0.0, psi).unwrap() - 5.0).abs() < 1e-12);
    }

    #[test]
    fn training_sets_on_which_descent_diverges_are_passed_over() {
        let psi = |delta: f64| {
            if delta < 1.0 { Err(LandscapeError::Diverges { delta, step: 3 }) } else { Ok(5.0 - delta) }
        };
        assert!((threshold(0.0, psi).unwrap() - 5.0).abs() < 1e-12);
        // Below the first delta without divergence nothing is known.
        let always = |delta: f64| {
            if delta < 1.0 { Err(LandscapeError::Diverges { delta, step: 3 }) } else { Ok(-1.0) }
        };
        assert!(matches!(threshold(0.0, always), Err(LandscapeError::Diverges { .. })));
    }

    #[test]
    fn no_sign_change_and_failures_are_reported() {
        assert!(matches!(
            threshold(0.0, |_| Ok(1.0)),
            Err(LandscapeError::NoThreshold { value_high: 1.0, .. })
        ));
        assert!(matches!(threshold(0.0, |_| Ok(-1.0)), Err(LandscapeError::NoThreshold { .. })));
        let failing = |delta: f64| {
            if delta > 1.0 { Err(LandscapeError::NothingHard) } else { Ok(1.0) }
        };
        assert_eq!(threshold(0.0, failing), Err(LandscapeError::NothingHard));
    }

    #[test]
    fn extrapolation_recovers_its_own_law_and_brackets_others() {
        let times = [10.0, 20.0, 40.0];
        let law = |p: f64| times.map(|t: f64| 9.0 - 30.0 * t.powf(-p));
        let exact = long_time(&times, &law(1.0), &[0.0; 3]).unwrap();
        assert!((exact.value - 9.0).abs() < 1e-12);
        for p in [0.5, 0.7, 1.5, 2.0] {
            let (low, high) = long_time(&times, &law(p), &[0.0; 3]).unwrap().range;
            assert!(low <= 9.0 + 1e-12 && high >= 9.0 - 1e-12, "{p}: {low} {high}");
        }
        assert!(long_time(&times, &law(1.0), &[0.1; 3]).unwrap().uncertainty > exact.uncertainty);
        assert_eq!(long_time(&[1.0], &[2.0], &[0.0]), None);
    }
}
