//! Spectra from other spectra: merged, truncated, normalised, coarse-grained.

use super::{Spectrum, SpectrumError};

/// Eigenvalues closer than this, relatively, are one: what rounding leaves of equal ones.
const SAME: f64 = 1e-12;

/// What coarse-graining changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CoarseError {
    /// Largest relative error of Σ w λ e^{−λx}, the learning curve of linear units, while the sum is above 10⁻³ of its
    /// start.
    pub curve: f64,
    /// Relative error of ν_2, which sets escape times.
    pub second_moment: f64,
}

impl Spectrum {
    /// One direction per eigenvalue (as from a file), equal ones merged; the number that was merged away comes with it.
    pub fn of_eigenvalues(eigenvalues: &[f64]) -> Result<(Self, usize), SpectrumError> {
        let weight = 1.0 / eigenvalues.len().max(1) as f64;
        let whole = Self::new(eigenvalues.to_vec(), vec![weight; eigenvalues.len()])?;
        let merged = whole.merged();
        let count = whole.len() - merged.len();
        Ok((merged, count))
    }

    /// Equal eigenvalues made one, in decreasing order.
    pub fn merged(&self) -> Self {
        let mut pairs = self.descending();
        pairs.dedup_by(|next, kept| {
            let same = (kept.0 - next.0).abs() <= SAME * kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        Self::from_pairs(&pairs)
    }

    /// Only the `levels` largest eigenvalues, their weights scaled up to 1: the other dimensions are cut off.
    pub fn truncated(&self, levels: usize) -> Result<Self, SpectrumError> {
        if levels == 0 {
            return Err(SpectrumError::Empty);
        }
        let mut pairs = self.descending();
        pairs.truncate(levels);
        let total: f64 = pairs.iter().map(|p| p.1).sum();
        pairs.iter_mut().for_each(|p| p.1 /= total);
        Ok(Self::from_pairs(&pairs))
    }

    /// Scaled to (1/d) Tr Σ = 1.
    pub fn normalised(&self) -> Self {
        let mean = self.moment(1);
        Self {
            eigenvalues: self.eigenvalues.iter().map(|l| l / mean).collect(),
            weights: self.weights.clone(),
        }
    }

    /// `groups` groups of neighbouring eigenvalues, each replaced by its mean: weights and trace are kept.
    ///
    /// Neighbours are merged one pair at a time, the cheapest first (Ward's criterion for ln λ, weighted by the variance
    /// w λ that a group carries): what is merged early is what the learning curve sees least.
    pub fn coarse_grained(&self, groups: usize) -> Result<(Self, CoarseError), SpectrumError> {
        if groups == 0 {
            return Err(SpectrumError::Empty);
        }
        let mut pairs = self.descending();
        let cost = |a: &(f64, f64), b: &(f64, f64)| {
            let (x, y) = (a.0 * a.1, b.0 * b.1);
            x * y / (x + y) * (a.0 / b.0).ln().powi(2)
        };
        let mut costs: Vec<f64> = pairs.windows(2).map(|w| cost(&w[0], &w[1])).collect();
        while pairs.len() > groups {
            let cheapest =
                (0..costs.len()).min_by(|a, b| costs[*a].total_cmp(&costs[*b])).expect("two groups");
            let ((l1, w1), (l2, w2)) = (pairs[cheapest], pairs.remove(cheapest + 1));
            costs.remove(cheapest);
            pairs[cheapest] = ((l1 * w1 + l2 * w2) / (w1 + w2), w1 + w2);
            if cheapest > 0 {
                costs[cheapest - 1] = cost(&pairs[cheapest - 1], &pairs[cheapest]);
            }
            if cheapest + 1 < pairs.len() {
                costs[cheapest] = cost(&pairs[cheapest], &pairs[cheapest + 1]);
            }
        }
        let coarse = Self::from_pairs(&pairs);
        let error = CoarseError {
            curve: self.curve_distance(&coarse),
            second_moment: (coarse.moment(2) / self.moment(2) - 1.0).abs(),
        };
        Ok((coarse, error))
    }

    /// Coarse-grained if a number of groups is given.
    pub fn within_groups(self, groups: Option<usize>) -> Result<Self, SpectrumError> {
        match groups {
            Some(groups) => Ok(self.coarse_grained(groups)?.0),
            None => Ok(self),
        }
    }

    fn curve_distance(&self, other: &Self) -> f64 {
        let sum = |s: &Self, x: f64| -> f64 {
            s.eigenvalues.iter().zip(&s.weights).map(|(l, w)| w * l * (-l * x).exp()).sum()
        };
        let (start, largest) = (self.moment(1), self.eigenvalues.iter().copied().fold(0.0, f64::max));
        // Eight points per decade from where the largest eigenvalue is learned.
        let mut worst = 0.0_f64;
        for step in 0.. {
            let x = 0.01 / largest * 10f64.powf(f64::from(step) / 8.0);
            let exact = sum(self, x);
            if exact < 1e-3 * start {
                break;
            }
            worst = worst.max((sum(other, x) / exact - 1.0).abs());
        }
        worst
    }

    fn descending(&self) -> Vec<(f64, f64)> {
        let mut pairs: Vec<(f64, f64)> =
            self.eigenvalues.iter().copied().zip(self.weights.iter().copied()).collect();
        pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
        pairs
    }

    fn from_pairs(pairs: &[(f64, f64)]) -> Self {
        Self {
            eigenvalues: pairs.iter().map(|p| p.0).collect(),
            weights: pairs.iter().map(|p| p.1).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_eigenvalues_merge_and_are_counted() {
        let (spectrum, merged) = Spectrum::of_eigenvalues(&[1.0, 3.0, 1.0, 0.5, 1.0 + 1e-15]).unwrap();
        assert_eq!((spectrum.eigenvalues(), merged), (&[3.0, 1.0 + 1e-15, 0.5][..], 2));
        assert!((spectrum.weights()[1] - 0.6).abs() < 1e-15);
    }

    #[test]
    fn truncation_keeps_the_largest_and_renormalises_weights() {
        let spectrum = Spectrum::power_law(5, 1.0).unwrap().truncated(2).unwrap();
        assert_eq!(spectrum.len(), 2);
        assert!((spectrum.weights()[0] - 0.5).abs() < 1e-15);
        assert!((spectrum.normalised().moment(1) - 1.0).abs() < 1e-14);
        assert_eq!(spectrum.truncated(0), Err(SpectrumError::Empty));
    }

    #[test]
    fn coarse_graining_keeps_the_trace_and_its_error_falls_with_the_groups() {
        let spectrum = Spectrum::power_law(512, 0.7).unwrap();
        let mut last = f64::INFINITY;
        for groups in [4, 16, 64, 256] {
            let (coarse, error) = spectrum.coarse_grained(groups).unwrap();
            assert_eq!(coarse.len(), groups);
            assert!((coarse.moment(0) - 1.0).abs() < 1e-12 && (coarse.moment(1) - 1.0).abs() < 1e-12);
            assert!(error.curve < last, "{groups}: {error:?}");
            last = error.curve;
        }
        assert!(last < 1e-4, "{last}");
        let (same, error) = spectrum.coarse_grained(512).unwrap();
        assert_eq!((same, error.curve), (spectrum, 0.0));
    }
}
