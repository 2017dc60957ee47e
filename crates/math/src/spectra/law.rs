//! The probability law of the weights G, given by atoms with probabilities.

use thiserror::Error;

/// Why a law of weights, or a spectrum that is computed from it, was refused.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum WeightLawError {
    /// No atom has a positive probability.
    #[error("a law of weights needs at least one atom of positive probability")]
    Empty,
    /// Lists that belong together differ in length.
    #[error("{name} has {given} entries, expected {expected}: one per atom")]
    Length {
        /// Name of the list.
        name: &'static str,
        /// Length that was given.
        given: usize,
        /// Length that was expected.
        expected: usize,
    },
    /// A probability is negative or not finite.
    #[error("probability {index} is {value}; probabilities are finite and not negative")]
    Probability {
        /// Its position.
        index: usize,
        /// Its value.
        value: f64,
    },
    /// A weight or a projection is not finite.
    #[error("{name} {index} is {value}, which is not a finite number")]
    NotFinite {
        /// `weight` or `projection`.
        name: &'static str,
        /// Its position.
        index: usize,
        /// Its value.
        value: f64,
    },
    /// δ is not positive.
    #[error("delta = n/d is {value}; it must be a positive number")]
    Delta {
        /// Value that was given.
        value: f64,
    },
    /// An atom lies outside of the stated support.
    #[error("the {bound} of the weights is stated as {stated}, but an atom lies at {atom}")]
    Bound {
        /// `infimum` or `supremum`.
        bound: &'static str,
        /// Value that was stated.
        stated: f64,
        /// An atom beyond it.
        atom: f64,
    },
}

/// The law of the weights G: atoms with probabilities, and the ends of the support.
///
/// Atoms that are quadrature nodes represent a continuous law whose support is wider than the nodes; its ends are given with
/// [`Self::with_infimum`] and [`Self::with_supremum`]. Otherwise the support ends at the outermost atoms.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightLaw {
    pub(super) probabilities: Vec<f64>,
    pub(super) values: Vec<f64>,
    infimum: f64,
    supremum: f64,
}

impl WeightLaw {
    /// Creates a law from its atoms and their probabilities, which are normalised to sum one.
    pub fn new(probabilities: &[f64], values: &[f64]) -> Result<Self, WeightLawError> {
        Self::from_parts(probabilities.to_vec(), values.to_vec())
    }

    /// Like [`Self::new`], without copying the lists.
    pub fn from_parts(mut probabilities: Vec<f64>, values: Vec<f64>) -> Result<Self, WeightLawError> {
        if probabilities.len() != values.len() {
            let (given, expected) = (probabilities.len(), values.len());
            return Err(WeightLawError::Length { name: "the list of probabilities", given, expected });
        }
        if let Some(index) = probabilities.iter().position(|p| !(p.is_finite() && *p >= 0.0)) {
            return Err(WeightLawError::Probability { index, value: probabilities[index] });
        }
        if let Some(index) = values.iter().position(|g| !g.is_finite()) {
            return Err(WeightLawError::NotFinite { name: "weight", index, value: values[index] });
        }
        let total: f64 = probabilities.iter().sum();
        if total <= 0.0 {
            return Err(WeightLawError::Empty);
        }
        probabilities.iter_mut().for_each(|p| *p /= total);
        let occupied = || values.iter().zip(&probabilities).filter(|(_, p)| **p > 0.0).map(|(g, _)| *g);
        let infimum = occupied().fold(f64::INFINITY, f64::min);
        let supremum = occupied().fold(f64::NEG_INFINITY, f64::max);
        Ok(Self { probabilities, values, infimum, supremum })
    }

    /// Creates the empirical law of a sample: atoms of equal probability.
    pub fn sample(values: &[f64]) -> Result<Self, WeightLawError> {
        Self::from_parts(vec![1.0; values.len()], values.to_vec())
    }

    /// Sets the infimum of the support of the law that the atoms represent.
    pub fn with_infimum(mut self, infimum: f64) -> Result<Self, WeightLawError> {
        if infimum > self.infimum {
            return Err(WeightLawError::Bound { bound: "infimum", stated: infimum, atom: self.infimum });
        }
        self.infimum = infimum;
        Ok(self)
    }

    /// Sets the supremum of the support of the law that the atoms represent.
    pub fn with_supremum(mut self, supremum: f64) -> Result<Self, WeightLawError> {
        if supremum < self.supremum {
            return Err(WeightLawError::Bound { bound: "supremum", stated: supremum, atom: self.supremum });
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

    /// Returns a law of at most `cells` atoms: the range of G is divided into equal cells, and the mass of each is put at its
    /// mean.
    ///
    /// This is for plots of the density of the bulk, where 2000 cells and 10⁵ nodes give the same picture. Edges and outliers
    /// should be computed from the law itself.
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

    /// Always false, because a law has atoms.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The infimum of the support of G.
    pub fn infimum(&self) -> f64 {
        self.infimum
    }

    /// The supremum of the support of G.
    pub fn supremum(&self) -> f64 {
        self.supremum
    }

    /// The average E[f(G)].
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
        assert!(matches!(law.with_infimum(0.0), Err(WeightLawError::Bound { .. })));
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
    fn invalid_laws_are_refused() {
        assert_eq!(WeightLaw::new(&[0.0], &[1.0]), Err(WeightLawError::Empty));
        assert!(matches!(WeightLaw::new(&[0.5], &[1.0, 2.0]), Err(WeightLawError::Length { .. })));
        assert!(matches!(
            WeightLaw::new(&[-0.5, 1.0], &[1.0, 2.0]),
            Err(WeightLawError::Probability { index: 0, .. })
        ));
        assert!(matches!(
            WeightLaw::sample(&[1.0, f64::NAN]),
            Err(WeightLawError::NotFinite { index: 1, .. })
        ));
    }
}
