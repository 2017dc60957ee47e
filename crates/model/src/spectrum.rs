//! The input covariance: Σ = ⊕_b λ_b 1_{d_b}.

mod coarse;
pub mod file;
mod measured;

pub use coarse::CoarseError;
pub use measured::MeasuredSpectrum;

/// What is wrong with a spectrum.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SpectrumError {
    /// No eigenvalue at all.
    #[error("the spectrum is empty; give at least one eigenvalue")]
    Empty,
    /// Lists of different lengths.
    #[error("{eigenvalues} eigenvalues but {weights} weights; give one weight per eigenvalue")]
    Lengths {
        /// Number of eigenvalues.
        eigenvalues: usize,
        /// Number of weights.
        weights: usize,
    },
    /// λ ≤ 0 or not finite.
    #[error("eigenvalue {index} is {value}; eigenvalues must be positive and finite")]
    Eigenvalue {
        /// Position in the list.
        index: usize,
        /// The value.
        value: f64,
    },
    /// w ≤ 0 or not finite.
    #[error("weight {index} is {value}; weights must be positive and finite")]
    Weight {
        /// Position in the list.
        index: usize,
        /// The value.
        value: f64,
    },
    /// Σ w ≠ 1.
    #[error("the weights sum to {sum}, not 1; divide them by their sum")]
    Sum {
        /// Their sum.
        sum: f64,
    },
    /// Exponent out of range.
    #[error(
        "beta = {beta} gives no decaying spectrum; use beta > 0, or kind \"isotropic\" for equal eigenvalues"
    )]
    Exponent {
        /// The exponent given.
        beta: f64,
    },
    /// w_b d is not an integer.
    #[error(
        "eigenspace {index} would have {size} dimensions (weight {weight} of d = {dimension}); \
         choose d so that every eigenspace has a whole number of them{fits}"
    )]
    Multiplicity {
        /// Eigenspace.
        index: usize,
        /// Its weight.
        weight: f64,
        /// d.
        dimension: u64,
        /// w_b d.
        size: f64,
        /// Which dimensions fit, in words, where that is simple.
        fits: String,
    },
}

/// Distinct eigenvalues λ_b and the fraction w_b = d_b/d of dimensions that have them.
#[derive(Debug, Clone, PartialEq)]
pub struct Spectrum {
    eigenvalues: Vec<f64>,
    weights: Vec<f64>,
}

impl Spectrum {
    /// Σ = 1.
    pub fn isotropic() -> Self {
        Self { eigenvalues: vec![1.0], weights: vec![1.0] }
    }

    /// Any eigenvalues with their weights. Equal eigenvalues are allowed: they stay separate eigenspaces.
    pub fn new(eigenvalues: Vec<f64>, weights: Vec<f64>) -> Result<Self, SpectrumError> {
        if eigenvalues.is_empty() {
            return Err(SpectrumError::Empty);
        }
        if eigenvalues.len() != weights.len() {
            return Err(SpectrumError::Lengths { eigenvalues: eigenvalues.len(), weights: weights.len() });
        }
        let bad = |v: &f64| !(v.is_finite() && *v > 0.0);
        if let Some(index) = eigenvalues.iter().position(bad) {
            return Err(SpectrumError::Eigenvalue { index, value: eigenvalues[index] });
        }
        if let Some(index) = weights.iter().position(bad) {
            return Err(SpectrumError::Weight { index, value: weights[index] });
        }
        let sum: f64 = weights.iter().sum();
        if (sum - 1.0).abs() > 1e-9 {
            return Err(SpectrumError::Sum { sum });
        }
        Ok(Self { eigenvalues, weights })
    }

    /// λ_l = λ_+/l^{1+β}, l = 1..L, equal weights, normalised to (1/d) Tr Σ = 1, i.e. λ_+ = L/Σ_l l^{−(1+β)}.
    pub fn power_law(levels: usize, beta: f64) -> Result<Self, SpectrumError> {
        if levels == 0 {
            return Err(SpectrumError::Empty);
        }
        if !(beta.is_finite() && beta > 0.0) {
            return Err(SpectrumError::Exponent { beta });
        }
        let decay = |l: usize| (l as f64).powf(-1.0 - beta);
        let largest = levels as f64 / (1..=levels).rev().map(decay).sum::<f64>();
        let eigenvalues = (1..=levels).map(|l| largest * decay(l)).collect();
        Self::new(eigenvalues, vec![1.0 / levels as f64; levels])
    }

    /// Number of eigenspaces.
    pub fn len(&self) -> usize {
        self.eigenvalues.len()
    }

    /// Never: a spectrum has at least one eigenvalue.
    pub fn is_empty(&self) -> bool {
        self.eigenvalues.is_empty()
    }

    /// λ_b.
    pub fn eigenvalues(&self) -> &[f64] {
        &self.eigenvalues
    }

    /// w_b = d_b/d.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// ν_l = (1/d) Tr Σ^l.
    pub fn moment(&self, order: i32) -> f64 {
        self.eigenvalues.iter().zip(&self.weights).map(|(l, w)| w * l.powi(order)).sum()
    }

    /// In words, of which number d has to be a multiple, if the smallest eigenspace has one dimension in that number.
    fn fitting_dimensions(&self) -> String {
        let least = self.weights.iter().copied().fold(1.0, f64::min).recip().round();
        let whole = |weight: &f64| (weight * least - (weight * least).round()).abs() < 1e-6;
        if least < 1e9 && self.weights.iter().all(whole) {
            format!(": a multiple of {least} (features of a data file without variance do not count)")
        } else {
            String::new()
        }
    }

    /// d_b for a finite dimension d: whole numbers, or an error that says which eigenspace is not.
    pub fn multiplicities(&self, dimension: u64) -> Result<Vec<u64>, SpectrumError> {
        let whole = |(index, &weight): (usize, &f64)| {
            let size = weight * dimension as f64;
            let rounded = size.round();
            if rounded < 1.0 || (size - rounded).abs() > 1e-6 * rounded.max(1.0) {
                let fits = self.fitting_dimensions();
                return Err(SpectrumError::Multiplicity { index, weight, dimension, size, fits });
            }
            Ok(rounded as u64)
        };
        self.weights.iter().enumerate().map(whole).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_law_is_normalised_and_decays() {
        let s = Spectrum::power_law(16, 0.7).unwrap();
        assert!((s.moment(0) - 1.0).abs() < 1e-14 && (s.moment(1) - 1.0).abs() < 1e-14);
        let ratio = s.eigenvalues()[0] / s.eigenvalues()[3];
        assert!((ratio - 4f64.powf(1.7)).abs() < 1e-12 * ratio);
    }

    #[test]
    fn multiplicities_must_be_whole() {
        let s = Spectrum::power_law(3, 1.0).unwrap();
        assert_eq!(s.multiplicities(12).unwrap(), [4, 4, 4]);
        assert!(matches!(s.multiplicities(10), Err(SpectrumError::Multiplicity { .. })));
    }

    /// 64 features of which 3 have no variance: the message named neither 64 nor 61.
    #[test]
    fn a_dimension_that_does_not_fit_is_refused_with_those_that_do() {
        let spectrum = Spectrum::new((1..=61).map(f64::from).collect(), vec![1.0 / 61.0; 61]).unwrap();
        let message = spectrum.multiplicities(64).unwrap_err().to_string();
        assert!(message.contains("of d = 64") && message.contains("a multiple of 61 (features"), "{message}");
        let uneven = Spectrum::new(vec![1.0, 2.0], vec![0.4, 0.6]).unwrap();
        assert!(!uneven.multiplicities(7).unwrap_err().to_string().contains("multiple"));
    }

    #[test]
    fn bad_lists_are_refused_with_their_position() {
        let error = Spectrum::new(vec![1.0, -2.0], vec![0.5, 0.5]).unwrap_err();
        assert_eq!(error, SpectrumError::Eigenvalue { index: 1, value: -2.0 });
        assert!(matches!(Spectrum::new(vec![1.0], vec![0.9]), Err(SpectrumError::Sum { .. })));
        assert!(matches!(Spectrum::power_law(4, -1.0), Err(SpectrumError::Exponent { .. })));
    }
}
