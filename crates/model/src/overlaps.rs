//! The state of learning: Gram matrices of the rows, one per eigenspace, and the trained scalars.

use crate::rule::Shape;
use crate::spectrum::Spectrum;
use didact_math::linalg::{Mat, is_psd};

/// G_b = W P_b Wᵀ for every eigenspace b (rows: trained first, then frozen) and the scalars.
#[derive(Debug, Clone, PartialEq)]
pub struct Overlaps {
    shape: Shape,
    /// One symmetric P x P Gram per eigenspace.
    pub blocks: Vec<Mat>,
    /// Trained scalars a_j.
    pub scalars: Vec<f64>,
    /// Velocities of rows and scalars, where training has them.
    pub velocities: Option<Velocities>,
}

/// What momentum adds to the state of learning. Velocities are counted per unit of alpha = steps/d: d times those of a step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Velocities {
    /// Per eigenspace the overlaps of the velocities p_i with (w, v, p): trained x (P + trained).
    pub blocks: Vec<Mat>,
    /// Velocities of the scalars.
    pub scalars: Vec<f64>,
    /// Running mean of the squared kick of every row, in units of the eigenvalues, where training keeps it (Adam).
    pub squares: Vec<f64>,
}

/// What is wrong with given overlaps.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum OverlapsError {
    /// Wrong number of eigenspaces.
    #[error("{given} overlap matrices for {expected} eigenspaces")]
    Blocks {
        /// Matrices given.
        given: usize,
        /// Eigenspaces.
        expected: usize,
    },
    /// Wrong shape of one matrix.
    #[error("overlap matrix {block} is {rows} x {cols}, but there are {expected} rows of weights")]
    Size {
        /// Eigenspace.
        block: usize,
        /// Its rows.
        rows: usize,
        /// Its columns.
        cols: usize,
        /// P.
        expected: usize,
    },
    /// Not symmetric.
    #[error("overlap matrix {block} is not symmetric: entries differ from their mirror by up to {by:.3e}")]
    Asymmetric {
        /// Eigenspace.
        block: usize,
        /// Largest difference.
        by: f64,
    },
    /// Not positive semi-definite.
    #[error(
        "overlap matrix {block} is not positive semi-definite, so no rows of weights have these overlaps"
    )]
    NotPositive {
        /// Eigenspace.
        block: usize,
    },
    /// More independent rows than dimensions.
    #[error(
        "overlap matrix {block} has rank {rank}, but its eigenspace has {size} dimensions\n\n\
         hint: use a larger d, or sampled teachers"
    )]
    Rank {
        /// Eigenspace.
        block: usize,
        /// Rank of the matrix.
        rank: usize,
        /// d_b.
        size: u64,
    },
    /// Wrong number of scalars.
    #[error("{given} scalars for a model that trains {expected}")]
    Scalars {
        /// Given.
        given: usize,
        /// Expected.
        expected: usize,
    },
}

impl Overlaps {
    /// Checks shapes, symmetry and positivity.
    pub fn new(
        shape: Shape,
        blocks: Vec<Mat>,
        scalars: Vec<f64>,
        eigenspaces: usize,
    ) -> Result<Self, OverlapsError> {
        if blocks.len() != eigenspaces {
            return Err(OverlapsError::Blocks { given: blocks.len(), expected: eigenspaces });
        }
        if scalars.len() != shape.scalars {
            return Err(OverlapsError::Scalars { given: scalars.len(), expected: shape.scalars });
        }
        for (block, g) in blocks.iter().enumerate() {
            let expected = shape.rows();
            if g.rows() != expected || g.cols() != expected {
                return Err(OverlapsError::Size { block, rows: g.rows(), cols: g.cols(), expected });
            }
            if g.asymmetry() > 1e-10 * g.max_abs() {
                return Err(OverlapsError::Asymmetric { block, by: g.asymmetry() });
            }
            if !is_psd(g) {
                return Err(OverlapsError::NotPositive { block });
            }
        }
        Ok(Self { shape, blocks, scalars, velocities: None })
    }

    /// Overlaps computed by an engine: right by construction, so nothing is checked.
    pub fn from_engine(shape: Shape, blocks: Vec<Mat>, scalars: Vec<f64>) -> Self {
        Self { shape, blocks, scalars, velocities: None }
    }

    /// g_b = w_b [[Q, R], [Rᵀ, T]] in every eigenspace: rows spread over the eigenspaces as their dimensions are.
    pub fn spread(
        shape: Shape,
        spectrum: &Spectrum,
        (q, r, t): (&Mat, &Mat, &Mat),
        scalars: Vec<f64>,
    ) -> Result<Self, OverlapsError> {
        let k = shape.trained;
        let fits = q.rows() == k && r.rows() == k && r.cols() == shape.frozen && t.rows() == shape.frozen;
        if !fits || q.cols() != k || t.cols() != shape.frozen {
            return Err(OverlapsError::Size {
                block: 0,
                rows: q.rows() + t.rows(),
                cols: q.cols() + r.cols(),
                expected: shape.rows(),
            });
        }
        let whole = Mat::from_fn(shape.rows(), shape.rows(), |i, j| match (i < k, j < k) {
            (true, true) => q[(i, j)],
            (true, false) => r[(i, j - k)],
            (false, true) => r[(j, i - k)],
            (false, false) => t[(i - k, j - k)],
        });
        let blocks = spectrum.weights().iter().map(|&w| whole.scaled(w)).collect();
        Self::new(shape, blocks, scalars, spectrum.len())
    }

    /// Rows and scalars.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// m^(l) = Σ_b λ_b^l G_b; order 1 is the covariance of the fields, order 0 the plain scalar products.
    pub fn moment(&self, spectrum: &Spectrum, order: i32) -> Mat {
        let p = self.shape.rows();
        let mut sum = Mat::zeros(p, p);
        for (g, lambda) in self.blocks.iter().zip(spectrum.eigenvalues()) {
            sum.add_scaled(lambda.powi(order), g);
        }
        sum
    }

    /// With velocities of rows and scalars.
    pub fn with_velocities(mut self, velocities: Velocities) -> Self {
        self.velocities = Some(velocities);
        self
    }

    /// The Gram of (w, v, p) in one eigenspace; velocities that there are none of are 0.
    pub fn with_moving_rows(&self, eigenspace: usize) -> Mat {
        let (k, p) = (self.shape.trained, self.shape.rows());
        let velocities = self.velocities.as_ref().and_then(|v| v.blocks.get(eigenspace));
        Mat::from_fn(p + k, p + k, |i, j| match (i < p, j < p) {
            (true, true) => self.blocks[eigenspace][(i, j)],
            (false, _) => velocities.map_or(0.0, |v| v[(i - p, j)]),
            (true, false) => velocities.map_or(0.0, |v| v[(j - p, i)]),
        })
    }

    /// C = Σ_b λ_b G_b.
    pub fn covariance(&self, spectrum: &Spectrum) -> Mat {
        self.moment(spectrum, 1)
    }

    /// True while every number is finite.
    pub fn is_finite(&self) -> bool {
        self.blocks.iter().all(Mat::is_finite) && self.scalars.iter().all(|a| a.is_finite())
    }
}
