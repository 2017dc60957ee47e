//! The joint law of Hessian weights and teacher projections at one step of training, and the spectrum it makes.

use super::error::LandscapeError;
use didact_math::spectra::{Bulk, Ceiling, Edge, Outlier, Spiked, WeightLaw};

/// What a Hessian is made of: for every trained row j the law of its weights G_j, and at every atom the projections v of the input on the
/// teacher directions. Atoms are quadrature nodes or samples of the effective process.
#[derive(Clone, Debug)]
pub struct Ensemble {
    laws: Vec<WeightLaw>,
    projections: Vec<Vec<f64>>,
}

/// The Hessian block of one trained row.
#[derive(Clone, Debug, PartialEq)]
pub struct HessianSpectrum {
    /// Left end of the bulk.
    pub edge: Edge,
    /// ψ at min(0, edge): negative if and only if an informative direction of descent exists.
    pub psi: f64,
    /// Directions of descent in the hard subspace, lowest first.
    pub outliers: Vec<Outlier>,
}

impl Ensemble {
    /// `laws[j]` of row j; `projections[n]` on teacher direction n, one entry per atom.
    pub fn new(laws: Vec<WeightLaw>, projections: Vec<Vec<f64>>) -> Result<Self, LandscapeError> {
        // Spiked checks lengths and numbers; ask it once, here.
        for law in &laws {
            Spiked::new(Bulk::new(law, 1.0)?, &projections)?;
        }
        Ok(Self { laws, projections })
    }

    /// From samples: `weights[j]` of row j, probabilities that need not sum to one.
    pub fn from_samples(
        probabilities: &[f64],
        weights: &[Vec<f64>],
        projections: Vec<Vec<f64>>,
    ) -> Result<Self, LandscapeError> {
        let laws = weights.iter().map(|g| WeightLaw::new(probabilities, g)).collect::<Result<_, _>>()?;
        Self::new(laws, projections)
    }

    /// States the infimum of the weights of every row, as far as it lies below the atoms: see [`super::weight_infimum`].
    pub fn with_infimum(self, infimum: f64) -> Result<Self, LandscapeError> {
        let widen = |law: WeightLaw| {
            let infimum = infimum.min(law.infimum());
            law.with_infimum(infimum)
        };
        let laws = self.laws.into_iter().map(widen).collect::<Result<_, _>>()?;
        Ok(Self { laws, projections: self.projections })
    }

    /// Number of trained rows.
    pub fn rows(&self) -> usize {
        self.laws.len()
    }

    /// The law of the weights of row j.
    pub fn law(&self, row: usize) -> &WeightLaw {
        &self.laws[row]
    }

    /// u = U_Hᵀ v for an orthonormal basis of the hard subspace, given as rows.
    fn hard_projections(&self, hard: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let atoms = self.laws.first().map_or(0, WeightLaw::len);
        let along = |direction: &Vec<f64>| {
            let mut u = vec![0.0; atoms];
            for (share, v) in direction.iter().zip(&self.projections) {
                u.iter_mut().zip(v).for_each(|(u, v)| *u += share * v);
            }
            u
        };
        hard.iter().map(along).collect()
    }

    /// ψ of row j at n = δ d.
    pub fn psi(&self, row: usize, delta: f64, hard: &[Vec<f64>]) -> Result<f64, LandscapeError> {
        let u = self.hard_projections(hard);
        Ok(Spiked::new(Bulk::new(&self.laws[row], delta)?, &u)?.psi(Ceiling::Zero))
    }

    /// Edge, ψ and outliers of row j at n = δ d.
    pub fn hessian(
        &self,
        row: usize,
        delta: f64,
        hard: &[Vec<f64>],
    ) -> Result<HessianSpectrum, LandscapeError> {
        let u = self.hard_projections(hard);
        let bulk = Bulk::new(&self.laws[row], delta)?;
        let spiked = Spiked::new(bulk, &u)?;
        let psi = spiked.psi(Ceiling::Zero);
        let outliers = if psi < 0.0 { spiked.outliers(Ceiling::Zero) } else { Vec::new() };
        Ok(HessianSpectrum { edge: bulk.left_edge(), psi, outliers })
    }

    /// The density of the bulk of row j on a grid of `points` values from just left of the bulk to just right of it.
    pub fn density(
        &self,
        row: usize,
        delta: f64,
        points: usize,
    ) -> Result<(Vec<f64>, Vec<f64>), LandscapeError> {
        let bulk = Bulk::new(&self.laws[row], delta)?;
        let (left, right) = (bulk.left_edge().position, bulk.right_edge().position);
        let margin = 0.02 * (right - left);
        let last = points.max(2) - 1;
        let at = |i: usize| left - margin + (right - left + 2.0 * margin) * i as f64 / last as f64;
        let grid: Vec<f64> = (0..=last).map(at).collect();
        let law = self.laws[row].coarse(2000);
        let density = Bulk::new(&law, delta)?.density(&grid);
        Ok((grid, density))
    }
}
