//! The law of the weights G: atoms with probabilities.

use thiserror::Error;

/// Why a spectrum has no answer.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SpectralLawError {
    /// Nothing to average over.
    #[error("a law of weights needs at least one atom of positive probability")]
    Empty,
    /// Lists that belong together differ in length.
    #[error("{name} has {given} entries, expected {expected}: one per atom")]
    Length {
        /// Which list.
        name: &'static str,
        /// Given.
        given: usize,
        /// Expected.
        expected: usize,
    },
    /// A probability below 0, or not a number.
    #[error("probability {index} is {value}; probabilities are finite and not negative")]
    Probability {
        /// Which.
        index: usize,
        /// Its value.
        value: f64,
    },
    /// A weight or a projection that is not finite.
    #[error("{name} {index} is {value}, which is not a finite number")]
    NotFinite {
        /// `weight` or `projection`.
        name: &'static str,
        /// Which.
        index: usize,
        /// Its value.
        value: f64,
    },
    /// δ is not positive.
    #[error("delta = n/d is {value}; it must be a positive number")]
    Delta {
        /// Given.
        value: f64,
    },
    /// A bound of the support that an atom violates.
    #[error("the {bound} of the weights is stated as {stated}, but an atom lies at {atom}")]
    Bound {
        /// `infimum` or `supremum`.
        bound: &'static str,
        /// Stated.
        stated: f64,
        /// An atom beyond it.
        atom: f64,
    },
}

/// The law of G: atoms `values` with `probabilities` (normalised here), and the ends of the true support.
///
/// Quadrature nodes stand for a continuous law whose support is wider than the nodes: state its ends with
/// [`Self::with_infimum`] and [`Self::with_supremum`]. A sample is a law of its own atoms: nothing to state.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightLaw {
    pub(super) probabilities: Vec<f64>,
    pub(super) values: Vec<f64>,
    infimum: f64,
    supremum: f64,
}

impl WeightLaw {
    /// Atoms and their probabilities, which need not sum to one.
    pub fn new(probabilities: &[f64], values: &[f64]) -> Result<Self, SpectralLawError> {
        Self::from_parts(probabilities.to_vec(), values.to_vec())
    }

    /// As [`Self::new`], taking the lists.
    pub fn from_parts(mut probabilities: Vec<f64>, values: Vec<f64>) -> Result<Self, SpectralLawError> {
        if probabilities.len() != values.len() {
            let (given, expected) = (probabilities.len(), values.len());
            return Err(SpectralLawError::Length { name: "the list of probabilities", given, expected });
        }
        if let Some(index) = probabilities.iter().position(|p| !(p.is_finite() && *p >= 0.0)) {
            return Err(SpectralLawError::Probability { index, value: probabilities[index] });
        }
        if let Some(index) = values.iter().position(|g| !g.is_finite()) {
            return Err(SpectralLawError::NotFinite { name: "weight", index, value: values[index] });
        }
        let total: f64 = probabilities.iter().sum();
        if total <= 0.0 {
            return Err(SpectralLawError::Empty);
        }
        probabilities.iter_mut().for_each(|p| *p /= total);
        let occupied = || values.iter().zip(&probabilities).filter(|(_, p)| **p > 0.0).map(|(g, _)| *g);
        let infimum = occupied().fold(f64::INFINITY, f64::min);
        let supremum = occupied().fold(f64::NEG_INFINITY, f64::max);
        Ok(Self { probabilities, values, infimum, supremum })
    }

    /// Atoms of equal probability: a sample.
    pub fn sample(values: &[f64]) -> Result<Self, SpectralLawError> {
        Self::from_parts(vec![1.0; values.len()], values.to_vec())
    }

    /// States the infimum of the support of the law for which the atoms stand.
    pub fn with_infimum(mut self, infimum: f64) -> Result<Self, SpectralLawError> {
        if infimum > self.infimum {
            return Err(SpectralLawError::Bound { bound: "infimum", stated: infimum, atom: self.infimum });
        }
        self.infimum = infimum;
        Ok(self)
    }

    /// States the supremum of the support of the law for which the atoms stand.
    pub fn with_supremum(mut self, supremum: f64) -> Result<Self, SpectralLawError> {
        if supremum < self.supremum {
            return Err(SpectralLawError::Bound { bound: "supremum", stated: supremum, atom: self.supremum });
        }
        self.supremum = supremum;
        Ok(self)
    }

    /// The law of −G.
    pub fn reflected(&self) -> Self {
        Self {
            probabilities: self.probabilities.clone(),
            values: self.values.iter().map(|g| -g).collect(),
            infimum: -self.supremum,
            supremum: -self.infimum,
        }
    }

    /// A law of at most `cells` atoms: equal cells of the range of G, each with its mass at its mean.
    ///
    /// For pictures of the bulk, where 2000 cells are indistinguishable from 10⁵ nodes. Edges and outliers come from the
    /// law itself.
    pub fn coarse(&self, cells: usize) -> Self {
        let (low, high) = self
            .values
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &g| (low.min(g), high.max(g)));
        let width = (high - low) / cells.max(1) as f64;
        let mut mass = vec![(0.0, 0.0); cells.max(1)];
        for (&p, &g) in self.probabilities.iter().zip(&self.values) {
            let cell = if width > 0.0 { (((g - low) / width) as usize).min(mass.len() - 1) } else { 0 };
            mass[cell].0 += p;
            mass[cell].1 += p * g;
        }
        let (probabilities, values) =
            mass.into_iter().filter(|(p, _)| *p > 0.0).map(|(p, pg)| (p, pg / p)).unzip();
        Self { probabilities, values, infimum: self.infimum, supremum: self.supremum }
    }

    /// Number of atoms.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Never: a law has atoms.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// inf supp G.
    pub fn infimum(&self) -> f64 {
        self.infimum
    }

    /// sup supp G.
    pub fn supremum(&self) -> f64 {
        self.supremum
    }

    /// E[f(G)].
    pub fn average(&self, f: impl Fn(f64) -> f64) -> f64 {
        self.probabilities.iter().zip(&self.values).map(|(p, &g)| p * f(g)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_normalised_and_bounds_may_only_widen() {
        let law = WeightLaw::new(&[2.0, 6.0, 0.0], &[-1.0, 3.0, -50.0]).unwrap();
        assert_eq!(law.average(|g| g), 2.0);
        assert_eq!(
            (law.infimum(), law.supremum()),
            (-1.0, 3.0),
            "an atom of no mass is no part of the support"
        );
        assert_eq!(law.clone().with_infimum(-2.0).unwrap().reflected().supremum(), 2.0);
        assert!(matches!(law.with_infimum(0.0), Err(SpectralLawError::Bound { .. })));
    }

    #[test]
    fn a_coarse_law_keeps_mass_and_mean() {
        let values: Vec<f64> = (0..1000).map(|i| f64::from(i).sin()).collect();
        let law = WeightLaw::sample(&values).unwrap();
        let coarse = law.coarse(50);
        assert!(coarse.len() <= 50);
        assert!((coarse.average(|_| 1.0) - 1.0).abs() < 1e-14);
        assert!((coarse.average(|g| g) - law.average(|g| g)).abs() < 1e-14);
        // Cells are 0.04 wide: the second moment is off by at most the variance within a cell, 0.04²/4.
        assert!((coarse.average(|g| g * g) - law.average(|g| g * g)).abs() < 4e-4);
    }

    #[test]
    fn what_is_no_law_is_refused() {
        assert_eq!(WeightLaw::new(&[0.0], &[1.0]), Err(SpectralLawError::Empty));
        assert!(matches!(WeightLaw::new(&[0.5], &[1.0, 2.0]), Err(SpectralLawError::Length { .. })));
        assert!(matches!(
            WeightLaw::new(&[-0.5, 1.0], &[1.0, 2.0]),
            Err(SpectralLawError::Probability { index: 0, .. })
        ));
        assert!(matches!(
            WeightLaw::sample(&[1.0, f64::NAN]),
            Err(SpectralLawError::NotFinite { index: 1, .. })
        ));
    }
}
