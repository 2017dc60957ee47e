//! The law of the time at which a run leaves an unstable fixed point.

use didact_math::special::{digamma, trigamma};

/// sqrt(d) y = e^{λ α} Z with Z ~ N(mean, variance) in so many directions; the run has left when |y| passes a level
/// (docs/derivations/fluctuations.md#eq-12, docs/derivations/fluctuations.md#eq-13).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EscapeLaw {
    /// λ, per unit of alpha.
    pub rate: f64,
    /// y_c.
    pub level: f64,
    /// d.
    pub dimension: f64,
    /// v, the variance of Z in every direction.
    pub variance: f64,
    /// |μ|, the length of the mean of Z.
    pub mean: f64,
    /// k, directions with the same rate and variance.
    pub directions: usize,
}

/// Terms of the Poisson sum beyond this many standard deviations from its mean are below rounding.
const REACH: f64 = 12.0;

impl EscapeLaw {
    /// Mean and standard deviation of the time of escape: −2 λ α is the logarithm of a non-central χ² of k degrees of freedom, up to a
    /// constant.
    pub fn mean_and_deviation(&self) -> (f64, f64) {
        let (first, second) = self.log_chi_square();
        let scale = (self.dimension * self.level * self.level / self.variance).ln();
        let mean = (scale - std::f64::consts::LN_2 - first) / (2.0 * self.rate);
        (mean, second.max(0.0).sqrt() / (2.0 * self.rate))
    }

    /// Mean of ln(χ²/2) and variance of ln χ².
    fn log_chi_square(&self) -> (f64, f64) {
        let half = 0.5 * self.directions as f64;
        let shift = 0.5 * self.mean * self.mean / self.variance;
        if shift == 0.0 {
            return (digamma(half), trigamma(half));
        }
        let centre = shift.floor();
        let width = (REACH * shift.sqrt() + REACH * REACH).ceil();
        let from = (centre - width).max(0.0);
        // ln p_j of the Poisson weights, from the largest outwards, so that none over- or underflows first.
        let weights: Vec<(f64, f64)> = {
            let mut log = 0.0;
            let mut up = vec![(centre, 0.0)];
            let mut j = centre;
            while j < centre + width {
                j += 1.0;
                log += (shift / j).ln();
                up.push((j, log));
            }
            let (mut j, mut log) = (centre, 0.0);
            while j > from {
                log += (j / shift).ln();
                j -= 1.0;
                up.push((j, log));
            }
            up
        };
        let total: f64 = weights.iter().map(|(_, log)| log.exp()).sum();
        let average = |f: &dyn Fn(f64) -> f64| -> f64 {
            weights.iter().map(|(j, log)| log.exp() * f(half + j)).sum::<f64>() / total
        };
        let first = average(&digamma);
        let second = average(&|x| trigamma(x) + (digamma(x) - first).powi(2));
        (first, second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use didact_math::random::statistics::Moments;
    use didact_math::random::{RngAddress, Stream};

    const LAW: EscapeLaw =
        EscapeLaw { rate: 0.2, level: 0.3, dimension: 2000.0, variance: 0.07, mean: 0.0, directions: 1 };

    #[test]
    fn the_deviation_of_a_central_law_depends_on_the_rate_alone() {
        let expected = std::f64::consts::PI / (2.0 * std::f64::consts::SQRT_2 * 0.2);
        for (level, dimension) in [(0.3, 2000.0), (0.1, 1e8)] {
            let (_, deviation) = EscapeLaw { level, dimension, ..LAW }.mean_and_deviation();
            assert!((deviation / expected - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn moments_are_those_of_sampled_escapes() {
        let mut stream = Stream::at(RngAddress { seed: 5, replica: 0, step: 0, lane: 0 });
        for (mean, directions) in [(0.0, 1), (0.4, 1), (0.9, 3), (6.0, 2)] {
            let law = EscapeLaw { mean, directions, ..LAW };
            let (mut first, mut second) = (Moments::default(), Moments::default());
            let (expected, deviation) = law.mean_and_deviation();
            for _ in 0..100_000 {
                let square: f64 = (0..directions)
                    .map(|k| {
                        let centre = if k == 0 { mean } else { 0.0 };
                        (centre + law.variance.sqrt() * stream.normal()).powi(2)
                    })
                    .sum();
                let time = (law.level * (law.dimension / square).sqrt()).ln() / law.rate;
                first.push(time);
                second.push((time - expected).powi(2));
            }
            assert!((first.mean() - expected).abs() < 4.0 * first.standard_error(), "{law:?}");
            assert!((second.mean() - deviation.powi(2)).abs() < 4.0 * second.standard_error(), "{law:?}");
        }
    }

    #[test]
    fn a_start_far_from_the_plateau_escapes_at_a_sure_time() {
        // |Z| = μ: α = ln(y_c √d/μ)/λ, with a spread of √v/(λ μ).
        let law = EscapeLaw { mean: 1e3, ..LAW };
        let (mean, deviation) = law.mean_and_deviation();
        assert!((mean - (0.3 * 2000f64.sqrt() / 1e3).ln() / 0.2).abs() < 1e-6);
        assert!((deviation / (0.07f64.sqrt() / (0.2 * 1e3)) - 1.0).abs() < 1e-4);
    }
}
