//! Where learning starts: overlaps that are given, or drawn anew for every replica.
//!
//! Random rows are never built in d dimensions: their Gram matrix is drawn from its exact law (Wishart, by Bartlett's
//! factor), so a start in d = 10⁹ costs what a start in d = 10 costs.

use crate::overlaps::{Overlaps, OverlapsError};
use crate::rule::Shape;
use crate::spectrum::{Spectrum, SpectrumError};
use didact_math::linalg::{Mat, NotPositive, cholesky_psd};
use didact_math::random::BartlettFactor;
use didact_math::random::{RngAddress, Stream};
use std::fmt::Debug;
use std::sync::Arc;

/// What a start needs to know.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    /// Rows and scalars.
    pub shape: Shape,
    /// Eigenspaces.
    pub spectrum: &'a Spectrum,
    /// d, if finite.
    pub dimension: Option<u64>,
    /// Seed of the experiment.
    pub seed: u64,
    /// Which replica.
    pub replica: u32,
}

/// Why a start is impossible.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StartError {
    /// Random rows need d.
    #[error(
        "a random start needs a finite dimension: overlaps fluctuate as 1/sqrt(d)\n\nhint: set `dimension` in [data], or give the overlaps"
    )]
    Dimension,
    /// Scalars of a law need d.
    #[error(
        "scalars that start by a law are of size 1/sqrt(d), which needs a finite dimension\n\nhint: set `dimension` in [data], or give \
         the scalars as a list"
    )]
    ScalarDimension,
    /// Too few dimensions in one eigenspace.
    #[error(
        "eigenspace {block} has {size} dimensions, too few for {rows} rows with given overlaps\n\nhint: use `sampled` teachers, or fewer eigenspaces"
    )]
    Eigenspace {
        /// Which.
        block: usize,
        /// d_b.
        size: u64,
        /// Rows that must fit.
        rows: usize,
    },
    /// Teacher Gram of the wrong size.
    #[error("the teacher overlap matrix is {rows} x {cols}, but there are {expected} frozen rows")]
    TeacherSize {
        /// Its rows.
        rows: usize,
        /// Its columns.
        cols: usize,
        /// Frozen rows.
        expected: usize,
    },
    /// Teacher Gram not PSD.
    #[error("the teacher overlap matrix is impossible: {0}")]
    Teacher(#[from] NotPositive),
    /// Scalars of the wrong number.
    #[error("{given} starting scalars for a model that trains {expected}")]
    Scalars {
        /// Given.
        given: usize,
        /// Expected.
        expected: usize,
    },
    /// What a family cannot start from.
    #[error("{0}")]
    Model(String),
    /// Bad spectrum.
    #[error(transparent)]
    Spectrum(#[from] SpectrumError),
    /// Bad overlaps.
    #[error(transparent)]
    Overlaps(#[from] OverlapsError),
}

/// Gives every replica its starting overlaps.
pub trait Start: Send + Sync + Debug {
    /// The start of one replica: the same in every engine.
    fn draw(&self, setting: &Setting) -> Result<Overlaps, StartError>;

    /// True when replicas start in different states.
    fn is_random(&self) -> bool;

    /// The rows themselves (P x d), where more than their overlaps is given.
    fn weights(&self) -> Option<&Mat> {
        None
    }

    /// The state around which the starts of replicas scatter: that of the limit where rows are random, the common one otherwise.
    fn centre(&self, setting: &Setting) -> Result<Overlaps, StartError> {
        if self.is_random() { self.limit(setting.shape, setting.spectrum) } else { self.draw(setting) }
    }

    /// How the starts of replicas scatter around [`centre`](Self::centre) at order d^{−1/2}; `None` where replicas differ by a law whose
    /// covariance is not known.
    fn spread(&self) -> Option<StartSpread> {
        (!self.is_random()).then(StartSpread::default)
    }

    /// The overlaps as d → ∞, where those of random rows no longer fluctuate.
    fn limit(&self, shape: Shape, spectrum: &Spectrum) -> Result<Overlaps, StartError> {
        self.draw(&Setting { shape, spectrum, dimension: None, seed: 0, replica: 0 })
    }
}

/// The law of what differs between replicas at their start, at leading order in 1/d (docs/derivations/fluctuations.md#s4).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StartSpread {
    /// Trained rows that are drawn for every replica.
    pub rows: Option<RowLaw>,
    /// How many of the frozen rows, counted from the first, these are drawn orthogonal to.
    pub orthogonal_to: usize,
    /// Whether the frozen rows are drawn for every replica too, with components N(0, 1/d).
    pub sampled_teachers: bool,
    /// Standard deviation of every trained scalar, in units of d^{−1/2}.
    pub scalar_deviation: f64,
    /// What an earlier stage has accumulated, in place of a law.
    pub earlier: Option<Arc<StateSpread>>,
}

/// How replicas scatter at the end of a stage.
#[derive(Debug, Clone, PartialEq)]
pub struct StateSpread {
    /// d times the covariance of the state, in the order of the equations that a theory integrates.
    pub covariance: Mat,
    /// Drift of the state per unit of the clock, and gradient of the watched observable, where the stage ended because an observable
    /// crossed a level: replicas then change to the next stage at different times.
    pub crossing: Option<(Vec<f64>, Vec<f64>)>,
    /// Whether overlaps of frozen rows are part of the state.
    pub with_teachers: bool,
}

/// The same overlaps in every replica.
#[derive(Debug, Clone)]
pub struct Given(pub Overlaps);

impl Start for Given {
    fn draw(&self, setting: &Setting) -> Result<Overlaps, StartError> {
        let Overlaps { blocks, scalars, .. } = &self.0;
        Ok(Overlaps::new(setting.shape, blocks.clone(), scalars.clone(), setting.spectrum.len())?)
    }
    fn is_random(&self) -> bool {
        false
    }
}

/// Where an earlier stage ended. Kept as it is: rounding may have left it slightly outside the cone of Gram matrices.
#[derive(Debug, Clone)]
pub struct Continued {
    /// The overlaps there.
    pub overlaps: Overlaps,
    /// The rows there, of engines that hand them over.
    pub weights: Option<Arc<Mat>>,
    /// How replicas scatter there, from a theory that follows it.
    pub spread: Option<Arc<StateSpread>>,
}

impl Start for Continued {
    fn draw(&self, _setting: &Setting) -> Result<Overlaps, StartError> {
        Ok(self.overlaps.clone())
    }
    fn is_random(&self) -> bool {
        false
    }
    fn weights(&self) -> Option<&Mat> {
        self.weights.as_deref()
    }
    fn spread(&self) -> Option<StartSpread> {
        Some(StartSpread { earlier: self.spread.clone(), ..StartSpread::default() })
    }
}

/// The law of the trained rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RowLaw {
    /// Components N(0, σ²/d): length σ on average, directions independent.
    Gaussian {
        /// σ.
        deviation: f64,
    },
    /// Uniform on the sphere.
    Sphere {
        /// Length of every row.
        radius: f64,
    },
    /// A Haar-random orthogonal set.
    Orthogonal {
        /// Length of every row.
        radius: f64,
    },
}

impl RowLaw {
    /// The length of a row on average.
    pub fn length(self) -> f64 {
        match self {
            Self::Gaussian { deviation } => deviation,
            Self::Sphere { radius } | Self::Orthogonal { radius } => radius,
        }
    }
}

/// The frozen rows.
#[derive(Debug, Clone, PartialEq)]
pub enum FrozenRows {
    /// Exactly these overlaps, spread over the eigenspaces as their dimensions are: T_b = w_b T.
    Gram(Mat),
    /// Exactly these overlaps, one matrix per eigenspace.
    Blocks(Vec<Mat>),
    /// Components N(0, 1/d), drawn anew for every replica.
    Sampled,
}

/// Trained rows drawn at random, frozen rows given or drawn.
#[derive(Debug, Clone)]
pub struct RandomRows {
    /// Law of the trained rows.
    pub trained: RowLaw,
    /// The frozen rows.
    pub frozen: FrozenRows,
    /// Starting scalars.
    pub scalars: Vec<f64>,
}

/// The lane of the random numbers that starts use; chains use the lanes below.
pub(crate) const START_LANE: u16 = u16::MAX;

impl RandomRows {
    /// The rows of one replica. `beginning` tells the draws of one replica apart: 0 for its start.
    pub(crate) fn draw_at(&self, setting: &Setting, beginning: u64) -> Result<Overlaps, StartError> {
        let Setting { shape, spectrum, .. } = *setting;
        let dimension = setting.dimension.ok_or(StartError::Dimension)?;
        if self.scalars.len() != shape.scalars {
            return Err(StartError::Scalars { given: self.scalars.len(), expected: shape.scalars });
        }
        let address =
            RngAddress { seed: setting.seed, replica: setting.replica, step: beginning, lane: START_LANE };
        let mut stream = Stream::at(address);
        let unit = (dimension as f64).sqrt().recip();
        let sizes = spectrum.multiplicities(dimension)?;
        let mut factors = Vec::new();
        for (block, (&size, &weight)) in sizes.iter().zip(spectrum.weights()).enumerate() {
            let frozen = match &self.frozen {
                FrozenRows::Gram(t) => Some(teacher_factor(t, shape, weight)?),
                FrozenRows::Blocks(blocks) => Some(teacher_factor(&blocks[block], shape, 1.0)?),
                FrozenRows::Sampled => None,
            };
            if frozen.is_some() && size < shape.frozen as u64 {
                return Err(StartError::Eigenspace { block, size, rows: shape.frozen });
            }
            factors.push(gaussian_rows(shape, size, unit, frozen.as_ref(), &mut stream));
        }
        shape_rows(self.trained, shape, &mut factors);
        let blocks = factors.iter().map(Mat::gram).collect();
        Ok(Overlaps::from_engine(shape, blocks, self.scalars.clone()))
    }
}

impl Start for RandomRows {
    fn draw(&self, setting: &Setting) -> Result<Overlaps, StartError> {
        self.draw_at(setting, 0)
    }

    fn is_random(&self) -> bool {
        true
    }

    fn spread(&self) -> Option<StartSpread> {
        let sampled_teachers = self.frozen == FrozenRows::Sampled;
        Some(StartSpread { rows: Some(self.trained), sampled_teachers, ..StartSpread::default() })
    }

    /// Random rows become orthogonal to each other and to all given ones, with the lengths that they have on average.
    fn limit(&self, shape: Shape, spectrum: &Spectrum) -> Result<Overlaps, StartError> {
        if self.scalars.len() != shape.scalars {
            return Err(StartError::Scalars { given: self.scalars.len(), expected: shape.scalars });
        }
        let length = self.trained.length();
        let frozen = match &self.frozen {
            FrozenRows::Gram(t) => {
                teacher_factor(t, shape, 1.0)?;
                t.clone()
            }
            FrozenRows::Blocks(blocks) => {
                let mut sum = Mat::zeros(shape.frozen, shape.frozen);
                blocks.iter().for_each(|block| sum.add_scaled(1.0, block));
                sum
            }
            FrozenRows::Sampled => Mat::identity(shape.frozen),
        };
        let k = shape.trained;
        let gram = Mat::from_fn(shape.rows(), shape.rows(), |i, j| match (i < k, j < k) {
            (true, true) if i == j => length * length,
            (false, false) => frozen[(i - k, j - k)],
            _ => 0.0,
        });
        let blocks = spectrum.weights().iter().map(|w| gram.scaled(*w)).collect();
        Ok(Overlaps::from_engine(shape, blocks, self.scalars.clone()))
    }
}

fn teacher_factor(t: &Mat, shape: Shape, weight: f64) -> Result<Mat, StartError> {
    if t.rows() != shape.frozen || t.cols() != shape.frozen {
        return Err(StartError::TeacherSize { rows: t.rows(), cols: t.cols(), expected: shape.frozen });
    }
    Ok(cholesky_psd(t)?.scaled(weight.sqrt()))
}

fn bartlett(rows: usize, freedom: u64, stream: &mut Stream) -> Mat {
    let factor = BartlettFactor::draw(stream, rows, freedom);
    Mat::from_fn(rows, factor.columns(), |i, j| factor.row(i)[j])
}

/// A factor Y of the Gram of P rows in an eigenspace of n dimensions: P x m, trained rows first.
///
/// Frozen rows span the first coordinates. Trained rows are Gaussian: independent components `unit` along those
/// coordinates, and a Bartlett factor with the remaining degrees of freedom beyond them.
fn gaussian_rows(shape: Shape, size: u64, unit: f64, frozen: Option<&Mat>, stream: &mut Stream) -> Mat {
    let (k, f) = (shape.trained, shape.frozen);
    let drawn;
    let frozen = if let Some(given) = frozen {
        given
    } else {
        drawn = bartlett(f, size, stream).scaled(unit);
        &drawn
    };
    let along = frozen.cols();
    let rest = bartlett(k, size - (along as u64).min(size), stream);
    let mut y = Mat::zeros(k + f, along + rest.cols());
    for i in 0..k {
        stream.fill_normal(&mut y.row_mut(i)[..along]);
        y.row_mut(i)[along..].copy_from_slice(rest.row(i));
        y.row_mut(i).iter_mut().for_each(|v| *v *= unit);
    }
    for n in 0..f {
        y.row_mut(k + n)[..along].copy_from_slice(frozen.row(n));
    }
    y
}

/// Gives Gaussian rows their length, or makes them orthogonal (Gram-Schmidt keeps the Haar law).
fn shape_rows(law: RowLaw, shape: Shape, factors: &mut [Mat]) {
    let k = shape.trained;
    let product = |factors: &[Mat], i: usize, j: usize| -> f64 {
        factors.iter().map(|y| didact_math::linalg::dot(y.row(i), y.row(j))).sum()
    };
    let scale = |factors: &mut [Mat], i: usize, by: f64| {
        for y in factors.iter_mut() {
            y.row_mut(i).iter_mut().for_each(|v| *v *= by);
        }
    };
    match law {
        RowLaw::Gaussian { deviation } => (0..k).for_each(|i| scale(factors, i, deviation)),
        RowLaw::Sphere { radius } => {
            for i in 0..k {
                let length = product(factors, i, i).sqrt();
                scale(factors, i, radius / length);
            }
        }
        RowLaw::Orthogonal { radius } => {
            for i in 0..k {
                // Twice is enough (Kahan, Parlett): the second pass removes what rounding left.
                for _ in 0..2 {
                    for j in 0..i {
                        let along = product(factors, i, j) / (radius * radius);
                        for y in factors.iter_mut() {
                            let other = y.row(j).to_vec();
                            y.row_mut(i).iter_mut().zip(other).for_each(|(a, b)| *a -= along * b);
                        }
                    }
                    let length = product(factors, i, i).sqrt();
                    scale(factors, i, radius / length);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use didact_math::random::statistics::Moments;

    fn setting(spectrum: &Spectrum, dimension: u64, replica: u32) -> Setting<'_> {
        let shape = Shape { trained: 2, frozen: 2, ..Shape::default() };
        Setting { shape, spectrum, dimension: Some(dimension), seed: 11, replica }
    }

    fn start(trained: RowLaw, frozen: FrozenRows) -> RandomRows {
        RandomRows { trained, frozen, scalars: vec![] }
    }

    #[test]
    fn sampled_rows_have_the_variances_of_independent_gaussians() {
        // Var T_nm^(1) = (1 + δ_nm) ν_2/d (docs/derivations/power-law-spectra.md#eq-4), and the same for Q with σ⁴.
        let spectrum = Spectrum::new(vec![2.0, 0.5], vec![0.25, 0.75]).unwrap();
        let law = start(RowLaw::Gaussian { deviation: 0.5 }, FrozenRows::Sampled);
        let (mut diagonal, mut off, mut student) =
            (Moments::default(), Moments::default(), Moments::default());
        for replica in 0..20_000 {
            let c = law.draw(&setting(&spectrum, 16, replica)).unwrap().covariance(&spectrum);
            diagonal.push(c[(2, 2)]);
            off.push(c[(2, 3)]);
            student.push(c[(0, 1)]);
        }
        let (nu1, expected) = (spectrum.moment(1), spectrum.moment(2) / 16.0);
        assert!((diagonal.mean() - nu1).abs() < 4.0 * diagonal.standard_error());
        // The relative standard error of a variance is about sqrt(2/n), times the kurtosis of a product: 5% is > 4 of them.
        assert!((diagonal.variance() / (2.0 * expected) - 1.0).abs() < 0.05);
        assert!((off.variance() / expected - 1.0).abs() < 0.05);
        assert!((student.variance() / (expected / 16.0) - 1.0).abs() < 0.05);
    }

    #[test]
    fn given_teachers_are_exact_and_spheres_have_their_radius() {
        let spectrum = Spectrum::power_law(2, 1.0).unwrap();
        let t = Mat::from_rows(&[vec![1.0, 0.3], vec![0.3, 2.0]]).unwrap();
        let law = start(RowLaw::Sphere { radius: 1.5 }, FrozenRows::Gram(t.clone()));
        let overlaps = law.draw(&setting(&spectrum, 20, 3)).unwrap();
        let plain = overlaps.moment(&spectrum, 0);
        for i in 0..2 {
            assert!((plain[(i, i)] - 2.25).abs() < 1e-12);
            for j in 0..2 {
                assert!((plain[(2 + i, 2 + j)] - t[(i, j)]).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn orthogonal_rows_have_haar_overlaps_with_a_teacher() {
        // E ρ² = 1/d and E ρ⁴ = 3/(d(d+2)) for an entry of a Haar matrix.
        let spectrum = Spectrum::isotropic();
        let law = start(RowLaw::Orthogonal { radius: 1.0 }, FrozenRows::Gram(Mat::identity(2)));
        let (mut second, mut fourth) = (Moments::default(), Moments::default());
        for replica in 0..20_000 {
            let g = law.draw(&setting(&spectrum, 6, replica)).unwrap().moment(&spectrum, 0);
            assert!(g[(0, 1)].abs() < 1e-14);
            second.push(g[(1, 3)].powi(2));
            fourth.push(g[(1, 3)].powi(4));
        }
        assert!((second.mean() - 1.0 / 6.0).abs() < 4.0 * second.standard_error());
        assert!((fourth.mean() - 3.0 / 48.0).abs() < 4.0 * fourth.standard_error());
    }

    #[test]
    fn overlaps_of_random_rows_tend_to_their_limit() {
        let spectrum = Spectrum::new(vec![2.0, 0.5], vec![0.25, 0.75]).unwrap();
        for trained in [RowLaw::Gaussian { deviation: 0.5 }, RowLaw::Sphere { radius: 1.5 }] {
            let law = start(trained, FrozenRows::Sampled);
            let far = law.draw(&setting(&spectrum, 4_000_000_000, 0)).unwrap();
            let limit = law.limit(far.shape(), &spectrum).unwrap();
            for (a, b) in far.blocks.iter().zip(&limit.blocks) {
                // Fluctuations of order 1/√d = 1.6e-5.
                assert!(a.as_slice().iter().zip(b.as_slice()).all(|(a, b)| (a - b).abs() < 2e-4));
            }
        }
    }

    #[test]
    fn a_random_start_without_dimension_is_refused() {
        let spectrum = Spectrum::isotropic();
        let law = start(RowLaw::Gaussian { deviation: 1.0 }, FrozenRows::Sampled);
        let open = Setting { dimension: None, ..setting(&spectrum, 10, 0) };
        assert_eq!(law.draw(&open).unwrap_err(), StartError::Dimension);
    }
}
