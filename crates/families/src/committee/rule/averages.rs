//! Which averages of a committee are known, and how the others are computed.
//!
//! With the residual e = Σ_k v_k g_k(h_k) and kick_i = −c_i (e + noise) g'_i(h_i):
//!
//!   A_ik = −c_i ( v_k E[g'_i g'_k] + δ_ik Σ_m v_m E[g''_i g_m] ),
//!   N_ij = c_i c_j ( Σ_kl v_k v_l E[g'_i g'_j g_k g_l] + s² E[g'_i g'_j] ),
//!   E[∂loss/∂a_j] = −w Σ_k v_k E[g_k g_j],      E[loss] = (w/2) Σ_kl v_k v_l E[g_k g_l],
//!
//! w being 1 or 2 by the prefactor of the loss and c_i = w a_i (docs/derivations/power-law-spectra.md#eq-5,
//! docs/derivations/power-law-spectra.md#s3-3). Pairs are closed forms, Hermite series or two-dimensional quadrature;
//! only the four-field integral tells the routes apart.

use super::conditional;
use super::erf::ErfCommittee;
use super::{CommitteeRule, activation_of, output_factors};
use didact_math::activation::{Activation, Form};
use didact_math::gauss::pairs::{PairAverages, pair_averages};
use didact_math::gauss::{HermiteSeries, polynomial, relu};
use didact_math::linalg::Mat;
use didact_model::averages::by_quadrature;
use didact_model::rule::{Averages, Law, LocalRule, Needed};
use std::sync::Arc;

/// How the four-field integral is computed.
#[derive(Debug, Clone)]
pub(super) enum Route {
    /// All units erf(κ z): closed forms throughout; √2 κ per field.
    Erf(Vec<f64>),
    /// All units relu: closed up to three distinct fields, a one-dimensional integral for four.
    Relu,
    /// All units polynomials, one per field: exact.
    Polynomial(Vec<Unit>),
    /// Units without kinks: quadrature over two fields, Hermite series for the others.
    Smooth,
    /// Anything else: quadrature of the kick over all fields.
    Quadrature,
}

/// Monomial coefficients of a polynomial unit and of its derivative.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    value: Vec<f64>,
    slope: Vec<f64>,
}

impl Unit {
    fn new(value: Vec<f64>) -> Self {
        Self { slope: polynomial::derivative(&value), value }
    }
}

impl Route {
    pub(super) fn of(
        student: &Arc<dyn Activation>,
        teacher: &Arc<dyn Activation>,
        k: usize,
        m: usize,
    ) -> Self {
        let coefficients = |form: Form| match form {
            Form::Linear => Some(vec![0.0, 1.0]),
            Form::Polynomial(c) => Some(c),
            _ => None,
        };
        match (student.form(), teacher.form()) {
            (Form::Erf { scale: a }, Form::Erf { scale: b }) => {
                let root = std::f64::consts::SQRT_2;
                Self::Erf([vec![root * a; k], vec![root * b; m]].concat())
            }
            (Form::Relu, Form::Relu) => Self::Relu,
            (a, b) => match (coefficients(a), coefficients(b)) {
                (Some(a), Some(b)) => {
                    Self::Polynomial([vec![Unit::new(a); k], vec![Unit::new(b); m]].concat())
                }
                _ if student.kinks().is_empty() && teacher.kinks().is_empty() => Self::Smooth,
                _ => Self::Quadrature,
            },
        }
    }
}

pub(super) fn fill(rule: &CommitteeRule, law: &Law, needed: Needed, out: &mut Averages) {
    let factors = output_factors(rule, law.scalars);
    let (residual, gain) = (&factors.residual, &factors.gain);
    let variance = law.label_noise * law.label_noise;
    if let Route::Erf(scales) = &rule.forms.route {
        let erf = ErfCommittee { scales, residual, gain, noise: variance };
        erf.fill(law.covariance, needed, out);
        for (j, slope) in out.scalars.iter_mut().enumerate() {
            *slope = -rule.forms.weight * erf.error_times_unit(law.covariance, j);
        }
        return;
    }
    out.error = 0.0;
    if needed == Needed::DriftAndNoise && matches!(rule.forms.route, Route::Quadrature) {
        by_quadrature(rule, law, needed, out);
    }
    let shape = rule.shape();
    let known = Pairs::new(rule, law.covariance);
    let pairs: Vec<Vec<PairAverages>> =
        (0..shape.trained).map(|i| (0..shape.rows()).map(|k| known.pair(i, k)).collect()).collect();
    for i in 0..shape.trained {
        let curvature: f64 = (0..shape.rows()).map(|m| residual[m] * pairs[i][m].curvature_value).sum();
        for k in 0..shape.rows() {
            let own = if k == i { curvature } else { 0.0 };
            out.drift[(i, k)] = -gain[i] * (residual[k] * pairs[i][k].slope_slope + own);
        }
    }
    for (j, slope) in out.scalars.iter_mut().enumerate() {
        let product: f64 = (0..shape.rows()).map(|k| residual[k] * pairs[j][k].value_value).sum();
        *slope = -rule.forms.weight * product;
    }
    if needed == Needed::DriftAndNoise && matches!(rule.forms.route, Route::Smooth) {
        let units: Vec<&dyn Activation> =
            (0..shape.rows()).map(|row| activation_of(rule, row).as_ref()).collect();
        let moments = conditional::squared_errors(&units, residual, shape.trained, law.covariance);
        for i in 0..shape.trained {
            for j in 0..shape.trained {
                let scale = gain[i] * gain[j];
                out.noise[(i, j)] = scale * (moments.value[(i, j)] + variance * pairs[i][j].slope_slope);
                out.error = out.error.max((scale * moments.error).abs());
            }
        }
        return;
    }
    let four: &dyn Fn([usize; 4]) -> f64 = match &rule.forms.route {
        Route::Relu => &|fields| relu::i4(&minor(law.covariance, fields)),
        Route::Polynomial(units) => &|fields| {
            let [i, j, k, l] = fields.map(|field| &units[field]);
            let covariance = Mat::from_fn(4, 4, |a, b| law.covariance[(fields[a], fields[b])]);
            polynomial::product(&covariance, &[&i.slope, &j.slope, &k.value, &l.value])
        },
        Route::Erf(_) | Route::Smooth | Route::Quadrature => return,
    };
    if needed == Needed::Drift {
        return;
    }
    for i in 0..shape.trained {
        for j in 0..=i {
            let mut sum = variance * pairs[i][j].slope_slope;
            for k in 0..shape.rows() {
                for l in 0..=k {
                    let twice = if l < k { 2.0 } else { 1.0 };
                    sum += twice * residual[k] * residual[l] * four([i, j, k, l]);
                }
            }
            out.noise[(i, j)] = gain[i] * gain[j] * sum;
            out.noise[(j, i)] = out.noise[(i, j)];
        }
    }
}

pub(super) fn risk(rule: &CommitteeRule, law: &Law) -> f64 {
    let factors = output_factors(rule, law.scalars);
    let residual = &factors.residual;
    let squared = if let Route::Erf(scales) = &rule.forms.route {
        ErfCommittee { scales, residual, gain: &[], noise: 0.0 }.squared_error(law.covariance)
    } else {
        let known = Pairs::new(rule, law.covariance);
        let entries = (0..residual.len()).flat_map(|k| (0..=k).map(move |l| (k, l)));
        let term = |(k, l): (usize, usize)| {
            let twice = if l < k { 2.0 } else { 1.0 };
            twice * residual[k] * residual[l] * known.product(k, l)
        };
        entries.map(term).sum()
    };
    0.5 * rule.forms.weight * squared
}

/// Averages of pairs of units at one covariance: one Hermite series per field where there are any.
struct Pairs<'a> {
    rule: &'a CommitteeRule,
    covariance: &'a Mat,
    series: Vec<Option<HermiteSeries>>,
}

impl<'a> Pairs<'a> {
    fn new(rule: &'a CommitteeRule, covariance: &'a Mat) -> Self {
        let rows = match rule.forms.route {
            Route::Smooth | Route::Quadrature => covariance.rows(),
            Route::Erf(_) | Route::Relu | Route::Polynomial(_) => 0,
        };
        let variance = |row: usize| covariance[(row, row)].max(0.0);
        let mut series: Vec<Option<HermiteSeries>> = Vec::with_capacity(rows);
        for row in 0..rows {
            // Teachers of equal length, and symmetric students, share one series.
            let same = |&k: &usize| {
                Arc::ptr_eq(activation_of(rule, k), activation_of(rule, row)) && variance(k) == variance(row)
            };
            let known = (0..row).find(same).map(|k| series[k].clone());
            series.push(
                known.unwrap_or_else(|| HermiteSeries::of(activation_of(rule, row).as_ref(), variance(row))),
            );
        }
        Self { rule, covariance, series }
    }

    fn series(&self, i: usize, k: usize) -> Option<(&HermiteSeries, &HermiteSeries)> {
        Some((self.series.get(i)?.as_ref()?, self.series.get(k)?.as_ref()?))
    }

    /// E[g_i g_k].
    fn product(&self, i: usize, k: usize) -> f64 {
        match self.series(i, k) {
            Some((a, b)) => a.product(b, self.covariance[(i, k)]),
            None => self.pair(i, k).value_value,
        }
    }

    fn pair(&self, i: usize, k: usize) -> PairAverages {
        if let Some((a, b)) = self.series(i, k) {
            return a.with(b, self.covariance[(i, k)]);
        }
        let (a, b) = (activation_of(self.rule, i), activation_of(self.rule, k));
        pair_averages(a.as_ref(), b.as_ref(), &minor(self.covariance, [i, k]))
    }
}

/// The covariance of a few of the fields.
fn minor<const N: usize>(covariance: &Mat, fields: [usize; N]) -> [[f64; N]; N] {
    fields.map(|a| fields.map(|b| covariance[(a, b)]))
}
