//! Averages of a residual D = Σ_p v_p σ(g_p) of units g = M h that are linear in Gaussian fields h.

use super::network::Pairs;
use didact_math::activation::Activation;
use didact_math::linalg::{Mat, dot};
use didact_model::rule::{Averages, Shape};

/// Σ_p weight_p σ(row_p · h).
#[derive(Debug, Clone)]
pub(in crate::low_rank) struct LinearUnits {
    /// M, units x fields.
    pub(in crate::low_rank) rows: Mat,
    /// Output weights.
    pub(in crate::low_rank) weights: Vec<f64>,
}

/// Teacher units first, then student units with negative weights: D = f* − f̂.
struct Residual<'a> {
    rows: Mat,
    weights: Vec<f64>,
    /// M C Mᵀ.
    covariance: Mat,
    pairs: Pairs<'a>,
}

impl<'a> Residual<'a> {
    fn new(activation: &'a dyn Activation, law: &Mat, teacher: &LinearUnits, student: &LinearUnits) -> Self {
        let (t, n) = (teacher.weights.len(), student.weights.len());
        let rows = Mat::from_fn(t + n, law.rows(), |p, h| {
            if p < t { teacher.rows[(p, h)] } else { student.rows[(p - t, h)] }
        });
        let weights = teacher.weights.iter().copied().chain(student.weights.iter().map(|a| -a)).collect();
        let covariance = rows.times(law).times(&rows.transpose());
        let variances: Vec<f64> = (0..t + n).map(|p| covariance[(p, p)].max(0.0)).collect();
        Self { rows, weights, covariance, pairs: Pairs::new(activation, &variances) }
    }
}

/// E[D²] = Σ_pq v_p v_q E[σ(g_p) σ(g_q)].
pub(in crate::low_rank) fn residual_risk(
    activation: &dyn Activation,
    law: &Mat,
    teacher: &LinearUnits,
    student: &LinearUnits,
) -> f64 {
    let it = Residual::new(activation, law, teacher, student);
    let n = it.weights.len();
    let term = |p: usize, q: usize| {
        it.weights[p] * it.weights[q] * it.pairs.at(p, q, it.covariance[(p, q)]).value_value
    };
    (0..n).map(|p| term(p, p) + 2.0 * (0..p).map(|q| term(p, q)).sum::<f64>()).sum()
}

/// E[∂kick_i/∂h_k] and E[∂loss/∂a_l] for kick_i = −2 D Σ_l a_l σ′(s_l) S_li, s = S h the student's units:
///
///   A_ik = −2 Σ_p v_p Σ_l a_l S_li {E[σ′(g_p) σ′(s_l)] M_pk + E[σ(g_p) σ″(s_l)] S_lk}.
///
/// Scalar l moves the pre-activation of unit l by `scalar_gain` times the first trained field h_0; by Stein's lemma
///
///   E[∂loss/∂a_l] = −2 a_l gain Σ_p v_p {E[σ′(g_p) σ′(s_l)] Cov(g_p, h_0) + E[σ(g_p) σ″(s_l)] Cov(s_l, h_0)}.
pub(in crate::low_rank) fn drift(
    activation: &dyn Activation,
    law: &Mat,
    teacher: &LinearUnits,
    student: &LinearUnits,
    shape: Shape,
    scalar_gain: f64,
    out: &mut Averages,
) {
    let it = Residual::new(activation, law, teacher, student);
    let first = teacher.weights.len();
    let h0: Vec<f64> = (0..it.rows.rows()).map(|p| dot(it.rows.row(p), law.row(0))).collect();
    out.drift.fill(0.0);
    for (l, a) in student.weights.iter().enumerate() {
        // Σ_p v_p E[σ′σ′] M_p and Σ_p v_p E[σ σ″].
        let (mut along, mut own, mut with_h0) = (vec![0.0; shape.rows()], 0.0, 0.0);
        for p in 0..it.weights.len() {
            let pair = it.pairs.at(p, first + l, it.covariance[(p, first + l)]);
            let slope = it.weights[p] * pair.slope_slope;
            along.iter_mut().zip(it.rows.row(p)).for_each(|(sum, m)| *sum += slope * m);
            with_h0 += slope * h0[p];
            own += it.weights[p] * pair.value_curvature;
        }
        for (sum, s) in along.iter_mut().zip(student.rows.row(l)) {
            *sum += own * s;
        }
        for i in 0..shape.trained {
            let factor = -2.0 * a * student.rows[(l, i)];
            if factor != 0.0 {
                out.drift.row_mut(i).iter_mut().zip(&along).for_each(|(o, s)| *o += factor * s);
            }
        }
        if let Some(scalar) = out.scalars.get_mut(l) {
            *scalar = -2.0 * a * scalar_gain * (with_h0 + own * h0[first + l]);
        }
    }
}
