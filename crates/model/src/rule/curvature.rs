//! What is known of the derivative of the kick.

use super::{Kick, LocalRule, Sample};
use crate::averages;
use didact_math::linalg::Mat;

/// Where `kick` jumps, so that the mean of its derivative is not the mean of `curvature`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Jumps {
    /// Along a trained field: the unit has a kink (relu).
    pub trained: bool,
    /// Along a frozen field: the label jumps (an indicator).
    pub frozen: bool,
}

/// A plane in the space of all fields, normal · h = offset, on which `kick` jumps.
#[derive(Debug, Clone, PartialEq)]
pub struct KinkPlane {
    /// One number per field, trained fields first.
    pub normal: Vec<f64>,
    /// Where the plane is along its normal.
    pub offset: f64,
}

impl KinkPlane {
    /// Among so many fields, the plane on which one of them has this value.
    pub fn of_field(rows: usize, field: usize, value: f64) -> Self {
        let mut normal = vec![0.0; rows];
        normal[field] = 1.0;
        Self { normal, offset: value }
    }

    /// normal · h − offset.
    pub fn height(&self, fields: &[f64]) -> f64 {
        self.normal.iter().zip(fields).map(|(n, h)| n * h).sum::<f64>() - self.offset
    }
}

/// Averages of ∂kick_i/∂h_j over trained i, j: what the population Hessian is made of.
///
/// With isotropic inputs and h = F z, z the coordinates of the input in an orthonormal frame of the space that the rows
/// span, Stein's lemma gives the blocks of the Hessian of `E[loss]` in the weights,
///
///   `H_ij = E[c_ij] 1 + frame · E[c_ij (z zᵀ − 1)] · frameᵀ`,   `c_ij = ∂kick_i/∂h_j`.
#[derive(Debug, Clone)]
pub struct CurvatureAverages {
    /// `E[c_ij]`, trained x trained.
    pub mean: Mat,
    /// `E[c_ij (z zᵀ − 1)]`, a matrix for every pair i, j (row-major).
    pub second: Vec<Mat>,
    /// Estimated absolute error of the worst entry: 0 for closed forms.
    pub error: f64,
}

impl CurvatureAverages {
    /// Zeros for so many trained rows in a span of so many dimensions.
    pub fn new(trained: usize, span: usize) -> Self {
        let second = vec![Mat::zeros(span, span); trained * trained];
        Self { mean: Mat::zeros(trained, trained), second, error: 0.0 }
    }
}

/// Rules that know more of ∂kick_i/∂h_k than its value at a sample.
pub trait CurvatureRule: LocalRule {
    /// Where `kick` jumps.
    fn jumps(&self) -> Jumps {
        Jumps::default()
    }

    /// The planes on which `kick` jumps along a trained field, at these scalars; `None` where it jumps elsewhere too, or where that is
    /// not known.
    fn kink_planes(&self, _scalars: &[f64]) -> Option<Vec<KinkPlane>> {
        if self.jumps().trained { None } else { Some(Vec::new()) }
    }

    /// G_i, the weight of block i of the Hessian (1/n) Σ G_i x xᵀ with respect to row i.
    ///
    /// For one trained row it is ∂kick/∂h. For many rows a family may give what is left of it, in units of the step that moves
    /// a row by O(1), when the number of rows is large.
    fn row_weight(&self, sample: &Sample, row: usize) -> f64 {
        diagonal_curvature(self, sample, row)
    }

    /// Averages of the curvature over h = F z, F rows x span; quadrature of `curvature` unless a closed form is given.
    ///
    /// The curvature must be a function: a kick that jumps (relu) has deltas that quadrature does not see.
    fn curvature_averages(&self, factor: &Mat, scalars: &[f64], out: &mut CurvatureAverages) {
        averages::curvature_by_quadrature(self, factor, scalars, out);
    }
}

/// What engines call: what a rule knows of its curvature, or what follows from `curvature` itself.
impl dyn LocalRule + '_ {
    /// See [`CurvatureRule::jumps`]; nowhere unless the rule says so.
    pub fn jumps(&self) -> Jumps {
        self.curved().map(CurvatureRule::jumps).unwrap_or_default()
    }

    /// See [`CurvatureRule::kink_planes`]; none unless the rule says so.
    pub fn kink_planes(&self, scalars: &[f64]) -> Option<Vec<KinkPlane>> {
        self.curved().map_or(Some(Vec::new()), |rule| rule.kink_planes(scalars))
    }

    /// See [`CurvatureRule::row_weight`].
    pub fn row_weight(&self, sample: &Sample, row: usize) -> f64 {
        match self.curved() {
            Some(rule) => rule.row_weight(sample, row),
            None => diagonal_curvature(self, sample, row),
        }
    }

    /// See [`CurvatureRule::curvature_averages`].
    pub fn curvature_averages(&self, factor: &Mat, scalars: &[f64], out: &mut CurvatureAverages) {
        match self.curved() {
            Some(rule) => rule.curvature_averages(factor, scalars, out),
            None => averages::curvature_by_quadrature(self, factor, scalars, out),
        }
    }
}

fn diagonal_curvature<R: LocalRule + ?Sized>(rule: &R, sample: &Sample, row: usize) -> f64 {
    let shape = rule.shape();
    let mut one = Mat::zeros(shape.trained, shape.rows());
    rule.curvature(sample, &mut one);
    one[(row, row)]
}

/// ∂kick/∂h by central differences with an increment near the cube root of the machine precision; one-sided where a plane on which the
/// kick is known to jump is nearer than that, so that the jump is no part of the derivative.
pub fn central_differences<R: LocalRule + ?Sized>(rule: &R, sample: &Sample, out: &mut Mat) {
    let shape = rule.shape();
    let mut fields = sample.fields.to_vec();
    let (mut above, mut below) = (Kick::new(shape), Kick::new(shape));
    let planes = rule.curved().and_then(|rule| rule.kink_planes(sample.scalars)).unwrap_or_default();
    let heights: Vec<f64> = planes.iter().map(|plane| plane.height(sample.fields)).collect();
    for k in 0..shape.rows() {
        let step = 6e-6 * sample.fields[k].abs().max(1.0);
        let (mut up, mut down) = (step, step);
        for (plane, height) in planes.iter().zip(&heights).filter(|(plane, _)| plane.normal[k] != 0.0) {
            let distance = -height / plane.normal[k];
            if distance.abs() <= step {
                *(if distance >= 0.0 { &mut up } else { &mut down }) = 0.0;
            }
        }
        if up + down == 0.0 {
            // Between two planes that are next to each other, where nothing can be told.
            (0..shape.trained).for_each(|i| out[(i, k)] = 0.0);
            continue;
        }
        fields[k] = sample.fields[k] + up;
        rule.kick(&Sample { fields: &fields, ..*sample }, &mut above);
        fields[k] = sample.fields[k] - down;
        rule.kick(&Sample { fields: &fields, ..*sample }, &mut below);
        fields[k] = sample.fields[k];
        for i in 0..shape.trained {
            out[(i, k)] = (above.rows[i] - below.rows[i]) / (up + down);
        }
    }
}
