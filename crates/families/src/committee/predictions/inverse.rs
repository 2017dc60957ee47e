//! The curves turned around: how many examples, how many features, which exponent.

use super::feature::Features;
use didact_math::roots::brent;
use didact_model::spectrum::{Spectrum, SpectrumError};

/// The first α at which a curve that falls reaches `target`; `None` when it does not within 10¹⁵.
pub fn first_below(curve: impl Fn(f64) -> f64, target: f64) -> Option<f64> {
    if curve(0.0) <= target {
        return Some(0.0);
    }
    let mut high = 1e-6;
    while curve(high) > target {
        high *= 4.0;
        if high > 1e15 {
            return None;
        }
    }
    // Differences of logarithms: the curve spans decades.
    let excess = |x: f64| (curve(x.exp()) / target).ln();
    let low = if high > 1e-6 { high / 4.0 } else { 1e-12 };
    if excess(low.ln()) <= 0.0 {
        return Some(low);
    }
    brent(excess, low.ln(), high.ln(), 1e-12).ok().map(f64::exp)
}

/// The fewest trained directions N_l whose asymptote is at most `target`, by bisection: the asymptote falls with N_l.
///
/// The bases are the eigenbasis at learning rate η, or a Haar-random one at small rate.
pub fn features_needed(
    spectrum: &Spectrum,
    dimension: u64,
    target: f64,
    asymptote: impl Fn(&Features) -> f64,
) -> Result<Option<u64>, SpectrumError> {
    let at = |trained: u64| Features::new(spectrum, dimension, trained).map(|f| asymptote(&f));
    if at(0)? <= target {
        return Ok(Some(0));
    }
    if at(dimension)? > target {
        return Ok(None);
    }
    let (mut too_few, mut enough) = (0, dimension);
    while enough - too_few > 1 {
        let middle = u64::midpoint(too_few, enough);
        if at(middle)? <= target { enough = middle } else { too_few = middle }
    }
    Ok(Some(enough))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::committee::predictions::small_rate::PowerLaw;

    #[test]
    fn the_examples_needed_give_the_error_asked_for() {
        let law = PowerLaw::new(512, 0.8, 0.1, 1.0).unwrap();
        for target in [0.3, 0.01, 1e-5] {
            let alpha = first_below(|a| law.sum(a), target).unwrap();
            assert!((law.sum(alpha) / target - 1.0).abs() < 1e-9, "{target}");
        }
        assert_eq!(first_below(|a| law.sum(a), 2.0), Some(0.0));
        assert_eq!(first_below(|a| 1.0 + 1.0 / (1.0 + a), 0.5), None);
    }

    #[test]
    fn one_feature_less_is_not_enough() {
        let spectrum = Spectrum::power_law(64, 1.0).unwrap();
        let needed = features_needed(&spectrum, 64, 0.01, |f| f.asymptote(1.0)).unwrap().unwrap();
        let at = |n| Features::new(&spectrum, 64, n).unwrap().asymptote(1.0);
        assert!(at(needed) <= 0.01 && at(needed - 1) > 0.01);
        assert_eq!(features_needed(&spectrum, 64, 1.0, |f| f.asymptote(1.0)).unwrap(), Some(0));
    }
}
