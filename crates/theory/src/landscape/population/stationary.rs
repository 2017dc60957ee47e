//! What kind of point of the landscape this is: gradient, index, and the null directions of the Hessian told apart.
//!
//! A null direction is *tangent* when the stationary set continues along it, and *flat* when the risk is merely of
//! higher than second order there. To tell them, the weights are moved by ε along a random null direction and relaxed
//! in all others. What the Hessian then does on the null space (its Schur complement, the others eliminated) is of order
//! ε² on flat directions, where the risk is quartic, and of order ε³ or less on tangent ones.

use super::{self as population, HessianError, RepeatedEigenvalue, merge};
use didact_math::linalg::{Mat, dot, solve, symmetric_eigen};
use didact_math::random::{RngAddress, Stream};
use didact_model::LocalRule;

/// What the risk does around a stationary point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointKind {
    /// The gradient does not vanish.
    NotStationary,
    /// No direction goes down to second order.
    Minimum,
    /// Some directions go down, some do not.
    StrictSaddle,
    /// Every direction goes down.
    Maximum,
}

impl PointKind {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotStationary => "not stationary",
            Self::Minimum => "minimum",
            Self::StrictSaddle => "strict saddle",
            Self::Maximum => "maximum",
        }
    }
}

/// A point of the landscape.
#[derive(Debug, Clone, PartialEq)]
pub struct Classified {
    /// What it is.
    pub kind: PointKind,
    /// The risk there.
    pub risk: f64,
    /// Length of the gradient.
    pub gradient: f64,
    /// Eigenvalues of the Hessian, ascending, equal ones merged.
    pub spectrum: Vec<RepeatedEigenvalue>,
    /// Eigenvalues below zero: the index.
    pub negative: usize,
    /// Eigenvalues of zero.
    pub null: usize,
    /// Eigenvalues above zero.
    pub positive: usize,
    /// Null directions along which the stationary set continues; none are counted where the gradient does not vanish.
    pub tangent: usize,
    /// Null directions along which the risk changes beyond second order.
    pub flat: usize,
}

/// Eigenvalues within this of zero, in units of the largest, are null.
const NULL: f64 = 1e-9;

/// A gradient below this, in units of the largest eigenvalue times the length of the weights, vanishes.
const STATIONARY: f64 = 1e-9;

/// How far the weights are moved, in units of their length.
const STEP: f64 = 1e-3;

/// Directions tried; one is enough unless it happens to lie in the tangent space.
const PROBES: u64 = 3;

/// Classifies the point given by its weights (trained rows first, then frozen ones).
pub fn classify(
    rule: &dyn LocalRule,
    rows: &Mat,
    scalars: &[f64],
    limit: usize,
) -> Result<Classified, HessianError> {
    let hessian = population::hessian(rule, rows, scalars, limit)?;
    let gradient = population::gradient(rule, rows, scalars);
    let gradient = dot(gradient.as_slice(), gradient.as_slice()).sqrt();
    let eigen = symmetric_eigen(&hessian);
    let scale = eigen.values.iter().map(|v| v.abs()).fold(0.0, f64::max);
    let length = dot(rows.as_slice(), rows.as_slice()).sqrt();
    let count = |keep: &dyn Fn(f64) -> bool| eigen.values.iter().filter(|v| keep(**v)).count();
    let negative = count(&|v| v < -NULL * scale);
    let positive = count(&|v| v > NULL * scale);
    let null = eigen.values.len() - negative - positive;
    let stationary = gradient <= STATIONARY * scale * length;
    let kind = match (stationary, negative) {
        (false, _) => PointKind::NotStationary,
        (true, 0) => PointKind::Minimum,
        (true, all) if all == eigen.values.len() => PointKind::Maximum,
        (true, _) => PointKind::StrictSaddle,
    };
    let tangent = if stationary && null > 0 {
        let basis = Basis::new(&eigen.vectors, &eigen.values, NULL * scale);
        Probe { rule, rows, scalars, limit, basis: &basis, scale, length }.tangent_directions()?
    } else {
        0
    };
    let levels = eigen.values.iter().map(|&value| RepeatedEigenvalue { value, count: 1 }).collect();
    Ok(Classified {
        kind,
        risk: population::risk(rule, rows, scalars),
        gradient,
        spectrum: merge(levels),
        negative,
        null,
        positive,
        tangent,
        flat: if stationary { null - tangent } else { 0 },
    })
}

/// Directions of weight space as rows: null ones of the Hessian, and all others.
struct Basis {
    null: Mat,
    other: Mat,
}

impl Basis {
    fn new(vectors: &Mat, values: &[f64], threshold: f64) -> Self {
        let pick = |keep: &dyn Fn(f64) -> bool| {
            let chosen: Vec<usize> = (0..values.len()).filter(|&a| keep(values[a])).collect();
            Mat::from_fn(chosen.len(), vectors.rows(), |a, i| vectors[(i, chosen[a])])
        };
        Self { null: pick(&|v| v.abs() <= threshold), other: pick(&|v| v.abs() > threshold) }
    }
}

struct Probe<'a> {
    rule: &'a dyn LocalRule,
    rows: &'a Mat,
    scalars: &'a [f64],
    limit: usize,
    basis: &'a Basis,
    scale: f64,
    length: f64,
}

impl Probe<'_> {
    /// Null directions on which the Schur complement stays below ε^{5/2}, at every probe.
    fn tangent_directions(&self) -> Result<usize, HessianError> {
        let null = self.basis.null.rows();
        let mut sum = Mat::zeros(null, null);
        for probe in 0..PROBES {
            let complement = self.moved_complement(probe)?;
            // Squares: directions up and down must not cancel.
            sum.add_scaled(1.0 / PROBES as f64, &complement.times(&complement));
        }
        let threshold = self.scale * STEP.powf(2.5);
        Ok(symmetric_eigen(&sum).values.iter().filter(|v| v.max(0.0).sqrt() < threshold).count())
    }

    /// H_nn − H_no H_oo⁻¹ H_on at the weights moved along a random null direction and relaxed in the others.
    fn moved_complement(&self, probe: u64) -> Result<Mat, HessianError> {
        let Basis { null, other } = self.basis;
        let mut stream = Stream::at(RngAddress { seed: 0, replica: 0, step: probe, lane: 0 });
        let direction = Mat::from_fn(1, null.rows(), |_, _| stream.normal());
        let norm = dot(direction.as_slice(), direction.as_slice()).sqrt();
        let mut moved = shifted(self.rows, &direction.scaled(STEP * self.length / norm).times(null));
        // Newton in the other directions; the residue falls from ε² to ε⁴ to rounding.
        for _ in 0..3 {
            let slope = population::gradient(self.rule, &moved, self.scalars);
            let slope = Mat::from_fn(slope.rows() * slope.cols(), 1, |i, _| slope.as_slice()[i]);
            let hessian = within(&self.hessian(&moved)?, other, other);
            let back = solve(&hessian, &other.times(&slope)).scaled(-1.0);
            moved = shifted(&moved, &back.transpose().times(other));
        }
        let hessian = self.hessian(&moved)?;
        let coupling = within(&hessian, other, null);
        let mut complement = within(&hessian, null, null);
        let eliminated = solve(&within(&hessian, other, other), &coupling);
        complement.add_scaled(-1.0, &coupling.transpose().times(&eliminated));
        Ok(Mat::from_fn(null.rows(), null.rows(), |a, b| 0.5 * (complement[(a, b)] + complement[(b, a)])))
    }

    fn hessian(&self, rows: &Mat) -> Result<Mat, HessianError> {
        population::hessian(self.rule, rows, self.scalars, self.limit)
    }
}

/// left · H · rightᵀ.
fn within(hessian: &Mat, left: &Mat, right: &Mat) -> Mat {
    left.times(hessian).times(&right.transpose())
}

/// The weights with a step added to the trained rows, which come first.
fn shifted(rows: &Mat, step: &Mat) -> Mat {
    let mut moved = rows.clone();
    moved.as_mut_slice().iter_mut().zip(step.as_slice()).for_each(|(w, s)| *w += s);
    moved
}
