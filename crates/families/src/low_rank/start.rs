//! Instances and starts: the base W, the direction u and where û begins.

use super::StudentKind;
use super::theorem::orthogonal_teacher_gram;
use didact_math::linalg::{Mat, NotPositive, cholesky_psd, dot};
use didact_math::random::{BartlettFactor, RngAddress, Stream};
use didact_model::overlaps::Overlaps;
use didact_model::rule::Shape;
use didact_model::spectrum::Spectrum;
use didact_model::start::{FrozenRows, RandomRows, RowLaw, Setting, Start, StartError, StartSpread};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rows of the base network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "`base` is `orthonormal`, `random`, `separated`, `orthogonal-teacher`, or a Gram matrix"
)]
pub enum Base {
    /// By name.
    Named(NamedBase),
    /// Their Gram matrix G, with unit diagonal.
    Gram(Vec<Vec<f64>>),
}

impl Default for Base {
    fn default() -> Self {
        Self::Named(NamedBase::Orthonormal)
    }
}

/// Bases by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NamedBase {
    /// G = 1.
    Orthonormal,
    /// Rows uniform on the sphere of R^d, drawn from `instance`.
    Random,
    /// Random rows, drawn until every |G_ij| ≤ 1 − ln k/√k.
    Separated,
    /// G_ij = −c_i c_j: the perturbed rows are orthogonal (ξ = 1, quantised c).
    OrthogonalTeacher,
}

/// Where û starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "`start` is `complement`, `uniform`, an overlap such as `0.1`, or `{ scaled = 1.0 }`"
)]
pub enum StartLaw {
    /// By name.
    Named(NamedStart),
    /// m_0 u + √(1−m_0²) e, e orthogonal to W and u.
    Overlap(f64),
    /// The same with m_0 = scaled/√d_⊥.
    Scaled {
        /// m_0 √d_⊥.
        scaled: f64,
    },
}

impl Default for StartLaw {
    fn default() -> Self {
        Self::Named(NamedStart::Complement)
    }
}

/// Random starts by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NamedStart {
    /// Uniform on the unit sphere of the complement of W.
    Complement,
    /// Uniform on the unit sphere of R^d.
    Uniform,
}

/// Lanes of the random numbers of an instance, of its own seed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lane {
    /// c.
    Loading = 1,
    /// ĉ.
    StudentLoading = 2,
    /// W.
    Base = 3,
    /// The part of u inside the span of W.
    Direction = 4,
}

/// The random numbers of an instance.
pub(super) fn instance_stream(instance: u64, lane: Lane) -> Stream {
    Stream::at(RngAddress { seed: instance, replica: 0, step: 0, lane: lane as u16 })
}

/// Overlaps of the frozen rows and of û at the start.
#[derive(Debug, Clone)]
pub(super) struct LowRankStart {
    /// Which student.
    pub student: StudentKind,
    /// W.
    pub base: Base,
    /// c, for the separating instance.
    pub loading: Vec<f64>,
    /// α = |Π_W u|.
    pub inside: f64,
    /// û.
    pub law: StartLaw,
    /// Seed of the instance.
    pub instance: u64,
    /// Length of the rows of a student from scratch.
    pub radius: f64,
    /// Starting scalars.
    pub scalars: Vec<f64>,
}

/// Draws of a separated base before giving up.
const ATTEMPTS: usize = 10_000;

impl LowRankStart {
    fn units(&self) -> usize {
        self.loading.len()
    }

    /// A factor L of G = L Lᵀ, k x r.
    fn base_factor(&self, dimension: Option<u64>) -> Result<Mat, StartError> {
        let k = self.units();
        let named = match &self.base {
            Base::Gram(rows) => {
                let gram = Mat::from_rows(rows).expect("validated with the model");
                return Ok(spanning(&cholesky_psd(&gram)?));
            }
            Base::Named(named) => *named,
        };
        match named {
            NamedBase::Orthonormal => Ok(Mat::identity(k)),
            NamedBase::OrthogonalTeacher => {
                Ok(spanning(&cholesky_psd(&orthogonal_teacher_gram(&self.loading))?))
            }
            NamedBase::Random | NamedBase::Separated => {
                let dimension = dimension.ok_or(StartError::Dimension)?;
                let mut stream = instance_stream(self.instance, Lane::Base);
                let bound = 1.0 - (k as f64).ln() / (k as f64).sqrt();
                for _ in 0..ATTEMPTS {
                    let factor = unit_rows(&mut stream, k, dimension);
                    let gram = factor.gram();
                    let apart = (0..k).all(|i| (0..i).all(|j| gram[(i, j)].abs() <= bound));
                    if named == NamedBase::Random || apart {
                        return Ok(factor);
                    }
                }
                let message = format!(
                    "no {k} random rows in d = {dimension} with |G_ij| <= {bound:.3} were found in {ATTEMPTS} draws\n\n\
                     hint: use a larger dimension, or base = \"random\""
                );
                Err(StartError::Model(message))
            }
        }
    }

    /// The Gram of (W, u), the part of u along W, and the rank of W.
    fn frozen(&self, dimension: Option<u64>) -> Result<(Mat, usize), StartError> {
        let (k, factor) = (self.units(), self.base_factor(dimension)?);
        let rank = factor.cols();
        let mut inside = vec![0.0; rank];
        if self.inside > 0.0 {
            instance_stream(self.instance, Lane::Direction).fill_normal(&mut inside);
            let scale = self.inside / dot(&inside, &inside).sqrt();
            inside.iter_mut().for_each(|x| *x *= scale);
        }
        let along: Vec<f64> = (0..k).map(|i| dot(factor.row(i), &inside)).collect();
        let base = factor.gram();
        let gram = Mat::from_fn(k + 1, k + 1, |i, j| match (i < k, j < k) {
            (true, true) => base[(i, j)],
            (true, false) => along[i],
            (false, true) => along[j],
            (false, false) => 1.0,
        });
        Ok((gram, rank))
    }

    /// d_⊥ = d − rank W.
    fn complement(dimension: Option<u64>, rank: usize) -> Result<f64, StartError> {
        let dimension = dimension.ok_or(StartError::Dimension)?;
        let rest = dimension as f64 - rank as f64;
        if rest < 3.0 {
            let message =
                format!("d = {dimension} leaves {rest} dimensions outside W\n\nhint: use d >= {}", rank + 3);
            return Err(StartError::Model(message));
        }
        Ok(rest)
    }

    /// Random numbers of û. Every instance has a start of its own, so that a mean over instances is one over starts too.
    fn start_stream(&self, setting: &Setting) -> Stream {
        let step = self.instance % (1 << 48);
        Stream::at(RngAddress { seed: setting.seed, replica: setting.replica, step, lane: u16::MAX })
    }

    /// Overlaps of û with (W, u): û = m_0 u + …, or uniform in the complement of W.
    fn direction(&self, setting: &Setting, frozen: &Mat, rank: usize) -> Result<Vec<f64>, StartError> {
        let last = frozen.rows() - 1;
        let overlap = match self.law {
            StartLaw::Overlap(overlap) => overlap,
            StartLaw::Scaled { scaled } => scaled / Self::complement(setting.dimension, rank)?.sqrt(),
            StartLaw::Named(_) => {
                let rest = Self::complement(setting.dimension, rank)?;
                let mut stream = self.start_stream(setting);
                let g = stream.normal();
                let cosine = g / (g * g + stream.chi_square(rest - 1.0)).sqrt();
                let mut row = vec![0.0; last + 1];
                // Outside W the direction u has length √(1 − α²).
                row[last] = (1.0 - self.inside * self.inside).max(0.0).sqrt() * cosine;
                return Ok(row);
            }
        };
        if overlap.abs() > 1.0 {
            return Err(StartError::Model(format!("the starting overlap is {overlap}; |m| <= 1 is needed")));
        }
        Ok((0..=last).map(|n| overlap * frozen[(n, last)]).collect())
    }
}

/// The rank of a Gram matrix: W spans so many dimensions.
pub fn rank_of_gram(gram: &Mat) -> Result<usize, NotPositive> {
    Ok(spanning(&cholesky_psd(gram)?).cols())
}

/// The columns of a Cholesky factor that carry something.
fn spanning(lower: &Mat) -> Mat {
    let used: Vec<usize> = (0..lower.rows()).filter(|&j| lower[(j, j)] > 0.0).collect();
    Mat::from_fn(lower.rows(), used.len(), |i, j| lower[(i, used[j])])
}

/// A factor of the Gram of k rows that are uniform on the unit sphere of R^d.
fn unit_rows(stream: &mut Stream, rows: usize, dimension: u64) -> Mat {
    let bartlett = BartlettFactor::draw(stream, rows, dimension);
    let lengths: Vec<f64> = (0..rows).map(|i| dot(bartlett.row(i), bartlett.row(i)).sqrt()).collect();
    Mat::from_fn(rows, bartlett.columns(), |i, j| bartlett.row(i)[j] / lengths[i])
}

impl Start for LowRankStart {
    fn draw(&self, setting: &Setting) -> Result<Overlaps, StartError> {
        let Shape { trained, frozen, scalars, .. } = setting.shape;
        if self.scalars.len() != scalars {
            return Err(StartError::Scalars { given: self.scalars.len(), expected: scalars });
        }
        let (gram, rank) = if self.student == StudentKind::SingleIndex {
            (Mat::identity(1), 0)
        } else {
            self.frozen(setting.dimension)?
        };
        let random = |law: RowLaw| {
            let frozen = FrozenRows::Gram(gram.clone());
            RandomRows { trained: law, frozen, scalars: self.scalars.clone() }.draw(setting)
        };
        match self.student {
            StudentKind::FromScratch => return random(RowLaw::Sphere { radius: self.radius }),
            StudentKind::LazyFullRank | StudentKind::FirstMoment => {
                let whole = Mat::from_fn(trained + frozen, trained + frozen, |i, j| {
                    if i < trained || j < trained { 0.0 } else { gram[(i - trained, j - trained)] }
                });
                return Ok(Overlaps::from_engine(setting.shape, vec![whole], self.scalars.clone()));
            }
            _ if self.law == StartLaw::Named(NamedStart::Uniform)
                && self.student != StudentKind::SecondLayer =>
            {
                return random(RowLaw::Sphere { radius: 1.0 });
            }
            _ => {}
        }
        // û is the first row, or the last frozen one when only the second layer is trained.
        let row = self.direction(setting, &gram, rank)?;
        let (own, first) = if trained == 0 { (gram.rows(), 0) } else { (0, 1) };
        let whole = Mat::from_fn(gram.rows() + 1, gram.rows() + 1, |i, j| match (i == own, j == own) {
            (true, true) => 1.0,
            (true, false) => row[j - first],
            (false, true) => row[i - first],
            (false, false) => gram[(i - first, j - first)],
        });
        Ok(Overlaps::from_engine(setting.shape, vec![whole], self.scalars.clone()))
    }

    /// Random rows of the base become orthonormal, and a random û orthogonal to all given rows.
    fn limit(&self, shape: Shape, spectrum: &Spectrum) -> Result<Overlaps, StartError> {
        let base = match &self.base {
            Base::Named(NamedBase::Random | NamedBase::Separated) => Base::Named(NamedBase::Orthonormal),
            given => given.clone(),
        };
        let law = match self.law {
            StartLaw::Named(_) | StartLaw::Scaled { .. } => StartLaw::Overlap(0.0),
            StartLaw::Overlap(overlap) => StartLaw::Overlap(overlap),
        };
        let limit = Self { base, law, ..self.clone() };
        if self.student == StudentKind::FromScratch {
            let frozen = FrozenRows::Gram(limit.frozen(None)?.0);
            let trained = RowLaw::Sphere { radius: self.radius };
            return RandomRows { trained, frozen, scalars: self.scalars.clone() }.limit(shape, spectrum);
        }
        limit.draw(&Setting { shape, spectrum, dimension: None, seed: 0, replica: 0 })
    }

    fn spread(&self) -> Option<StartSpread> {
        if !self.is_random() {
            return Some(StartSpread::default());
        }
        // The overlaps of a random base are of order d^{−1/2} in every replica alike, which no covariance of replicas describes; û of
        // a student that trains its second layer alone is a frozen row.
        let random_base = matches!(self.base, Base::Named(NamedBase::Random | NamedBase::Separated));
        if random_base || self.student == StudentKind::SecondLayer {
            return None;
        }
        let outside_w = self.student != StudentKind::FromScratch
            && self.law == StartLaw::Named(NamedStart::Complement)
            && self.student != StudentKind::SingleIndex;
        let radius = if self.student == StudentKind::FromScratch { self.radius } else { 1.0 };
        let orthogonal_to = if outside_w { self.units() } else { 0 };
        Some(StartSpread { rows: Some(RowLaw::Sphere { radius }), orthogonal_to, ..StartSpread::default() })
    }

    fn is_random(&self) -> bool {
        match self.student {
            StudentKind::FromScratch => true,
            StudentKind::LazyFullRank | StudentKind::FirstMoment => false,
            _ => matches!(self.law, StartLaw::Named(_)),
        }
    }
}
