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

use super::by_panels::by_panels;
use super::by_tables::by_tables;
use super::conditional::{self, SquaredErrors};
use super::continued::{KeptSums, continued};
use super::erf::ErfCommittee;
use super::kinked_risk;
use super::planes::FourFieldIntegral;
use super::two_slopes::TwoSlopes;
use super::{CommitteeRule, activation_of, output_factors};
use didact_math::activation::{Activation, Form, LinearPieces};
use didact_math::gauss::pairs::{PairAverages, pair_averages};
use didact_math::gauss::smoothed::Smoothed;
use didact_math::gauss::{HermiteSeries, polynomial};
use didact_math::linalg::Mat;
use didact_model::averages::{QuadratureEstimate, SAMPLED_ACCURACY, by_quadrature, risk_by_lattice};
use didact_model::rule::{Averages, Law, LocalRule, Needed};
use std::sync::{Arc, OnceLock};

/// How the four-field integral is computed.
#[derive(Debug, Clone)]
pub(super) enum Route {
    /// All units erf(κ z): closed forms throughout; √2 κ per field.
    Erf(Vec<f64>),
    /// All units linear on either side of 0 (ReLU, |z|), with these slopes below and above it, one per field: closed up to three distinct
    /// fields, a one-dimensional integral for four.
    TwoSlopes(Vec<[f64; 2]>),
    /// All units polynomials, one per field: exact.
    Polynomial(Vec<Unit>),
    /// All units linear between kinks of which some are not at 0, one per field: quadrature over two fields, closed forms for the others.
    LinearPieces(Vec<LinearPieces>),
    /// Units without kinks: quadrature over two fields, Hermite series for the others. With tables of the two activations where
    /// these vary slowly enough; made when they are first needed, and shared by all copies of the rule.
    Smooth(Arc<OnceLock<Option<Tables>>>),
    /// Anything else: quadrature of the kick over all fields.
    Quadrature,
}

/// Tables of the smoothed activations of student and teacher.
#[derive(Debug)]
pub(super) struct Tables {
    student: Arc<Smoothed>,
    teacher: Arc<Smoothed>,
}

impl Tables {
    fn new(student: &Arc<dyn Activation>, teacher: &Arc<dyn Activation>) -> Option<Self> {
        let own = Arc::new(Smoothed::new(student.clone())?);
        let same = Arc::ptr_eq(student, teacher);
        let other = if same { own.clone() } else { Arc::new(Smoothed::new(teacher.clone())?) };
        Some(Self { student: own, teacher: other })
    }
}

/// The tables of the two activations, where there are any.
fn tables(rule: &CommitteeRule) -> Option<&Tables> {
    let Route::Smooth(tables) = &rule.forms.route else { return None };
    let make = || Tables::new(&rule.student.activation, &rule.teacher.activation);
    tables.get_or_init(make).as_ref()
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
        let coefficients = |form: &Form| match form {
            Form::Linear => Some(vec![0.0, 1.0]),
            Form::Polynomial(c) => Some(c.clone()),
            _ => None,
        };
        match (student.form(), teacher.form()) {
            (Form::Erf { scale: a }, Form::Erf { scale: b }) => {
                let root = std::f64::consts::SQRT_2;
                Self::Erf([vec![root * a; k], vec![root * b; m]].concat())
            }
            (a, b) => match (coefficients(&a), coefficients(&b)) {
                (Some(a), Some(b)) => {
                    Self::Polynomial([vec![Unit::new(a); k], vec![Unit::new(b); m]].concat())
                }
                _ if let (Some(a), Some(b)) = (a.sides(), b.sides()) => {
                    Self::TwoSlopes([vec![a; k], vec![b; m]].concat())
                }
                _ if let (Some(a), Some(b)) = (student.linear_pieces(), teacher.linear_pieces()) => {
                    let (a, b) = (a.into_owned(), b.into_owned());
                    Self::LinearPieces([vec![a; k], vec![b; m]].concat())
                }
                _ if student.kinks().is_empty() && teacher.kinks().is_empty() => Self::Smooth(Arc::default()),
                _ => Self::Quadrature,
            },
        }
    }
}

pub(super) fn fill(rule: &CommitteeRule, law: &Law, needed: Needed, out: &mut Averages) {
    let accuracy = match &rule.forms.route {
        Route::Smooth(_) => out.accuracy.filter(|a| *a >= TABLE_ACCURACY),
        Route::LinearPieces(_) => out.accuracy,
        Route::Erf(_) | Route::TwoSlopes(_) | Route::Polynomial(_) | Route::Quadrature => None,
    };
    match accuracy {
        Some(accuracy) => continued(rule, law, needed, accuracy, out),
        None => compute(rule, law, needed, out),
    }
}

fn compute(rule: &CommitteeRule, law: &Law, needed: Needed, out: &mut Averages) {
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
    if let Route::TwoSlopes(sides) = &rule.forms.route {
        let units = TwoSlopes { sides, residual, gain, noise: variance };
        units.fill(law.covariance, rule.forms.weight, needed, out);
        return;
    }
    out.error = 0.0;
    if needed == Needed::DriftAndNoise && matches!(rule.forms.route, Route::Quadrature) {
        by_quadrature(rule, law, needed, out);
    }
    let pairs = drift(rule, law, out);
    if needed == Needed::Drift {
        return;
    }
    let accuracy = out.accuracy;
    if let Some(moments) = squared_errors(rule, law, accuracy, out.memory.of()) {
        let error = write_noise(&moments, gain, variance, |i, j| pairs[i][j].slope_slope, &mut out.noise);
        out.error = out.error.max(error);
        return;
    }
    let shape = rule.shape();
    let Route::Polynomial(units) = &rule.forms.route else { return };
    for i in 0..shape.trained {
        for j in 0..=i {
            let mut sum = variance * pairs[i][j].slope_slope;
            for k in 0..shape.rows() {
                for l in 0..=k {
                    let twice = if l < k { 2.0 } else { 1.0 };
                    let fields = [i, j, k, l];
                    let four = Mat::from_fn(4, 4, |a, b| law.covariance[(fields[a], fields[b])]);
                    let product = [&units[i].slope, &units[j].slope, &units[k].value, &units[l].value]
                        .map(Vec::as_slice);
                    sum += twice * residual[k] * residual[l] * polynomial::product(&four, &product);
                }
            }
            out.noise[(i, j)] = gain[i] * gain[j] * sum;
            out.noise[(j, i)] = out.noise[(i, j)];
        }
    }
}

/// A and the scalar gradient from pair averages, which are returned.
pub(super) fn drift(rule: &CommitteeRule, law: &Law, out: &mut Averages) -> Vec<Vec<PairAverages>> {
    let factors = output_factors(rule, law.scalars);
    let (residual, gain) = (&factors.residual, &factors.gain);
    let shape = rule.shape();
    let known = Pairs::new(rule, law.covariance, out.accuracy);
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
    if known.from_tables {
        out.error = out.error.max(TABLE_ERROR * out.drift.max_abs());
    }
    pairs
}

/// N_ij = c_i c_j (E[e² g'_i g'_j] + s² E[g'_i g'_j]); returns the error of the worst entry.
pub(super) fn write_noise(
    moments: &SquaredErrors,
    gain: &[f64],
    variance: f64,
    slopes: impl Fn(usize, usize) -> f64,
    out: &mut Mat,
) -> f64 {
    let mut error = 0.0f64;
    for i in 0..gain.len() {
        for j in 0..gain.len() {
            let scale = gain[i] * gain[j];
            let labels = if variance > 0.0 { variance * slopes(i, j) } else { 0.0 };
            out[(i, j)] = scale * (moments.value[(i, j)] + labels);
            error = error.max((scale * moments.error).abs());
        }
    }
    error
}

/// E[e² g'_i g'_j] where it is a sum over planes; `None` for other routes.
pub(super) fn squared_errors(
    rule: &CommitteeRule,
    law: &Law,
    accuracy: Option<f64>,
    sums: &mut KeptSums,
) -> Option<SquaredErrors> {
    let factors = output_factors(rule, law.scalars);
    let (residual, shape) = (&factors.residual, rule.shape());
    match &rule.forms.route {
        Route::LinearPieces(units) => Some(by_panels(units, (residual, shape.trained), law, accuracy, sums)),
        Route::Smooth(_) => from_tables(rule, residual, law, accuracy, sums).or_else(|| {
            let units: Vec<&dyn Activation> =
                (0..shape.rows()).map(|row| activation_of(rule, row).as_ref()).collect();
            Some(conditional::squared_errors(&units, residual, shape.trained, law.covariance))
        }),
        Route::Erf(_) | Route::TwoSlopes(_) | Route::Polynomial(_) | Route::Quadrature => None,
    }
}

/// E[e² g'_i g'_j] from tables. `None` where more is asked for than they have, or where a field is too wide for them.
fn from_tables(
    rule: &CommitteeRule,
    residual: &[f64],
    law: &Law,
    accuracy: Option<f64>,
    sums: &mut KeptSums,
) -> Option<SquaredErrors> {
    let accuracy = accuracy.filter(|a| *a >= TABLE_ACCURACY)?;
    let tables = tables(rule)?;
    let (student, teacher) = (&rule.student, &rule.teacher);
    let (k, m) = (student.weights.len(), teacher.weights.len());
    let all = [vec![&*tables.student; k], vec![&*tables.teacher; m]].concat();
    let resolutions =
        [vec![student.activation.resolution(); k], vec![teacher.activation.resolution(); m]].concat();
    let integral =
        FourFieldIntegral { tables: &all, resolutions: &resolutions, residual, covariance: law.covariance };
    by_tables(&integral, k, accuracy, sums)
}

/// Tables are not used for relative accuracies below this.
pub(super) const TABLE_ACCURACY: f64 = 1e-7;
/// Relative error of a pair average from tables. Their interpolation is good to 2e-8, but high orders of a series vary faster with
/// the variance than low ones.
const TABLE_ERROR: f64 = 1.5e-6;
/// Lattices are used for kinks beside simulations where their relative error is below this; it is stated. Pairs by quadrature are exact and
/// take 20 times as long.
const SCATTERED: f64 = 1e-3;
/// Relative error of a pair average by quadrature over two fields with kinks.
const KINK_ERROR: f64 = 1e-12;

/// E[loss] from pair averages: from tables where these are good enough for the accuracy that is asked for, which they are not where
/// a student has nearly learned its teacher and the terms cancel.
pub(super) fn risk(rule: &CommitteeRule, law: &Law, accuracy: f64) -> QuadratureEstimate {
    let factors = output_factors(rule, law.scalars);
    let residual = &factors.residual;
    let half = 0.5 * rule.forms.weight;
    if let Route::Erf(scales) = &rule.forms.route {
        let erf = ErfCommittee { scales, residual, gain: &[], noise: 0.0 };
        return QuadratureEstimate::exact(half * erf.squared_error(law.covariance));
    }
    if let Route::TwoSlopes(sides) = &rule.forms.route {
        let units = TwoSlopes { sides, residual, gain: &[], noise: 0.0 };
        return QuadratureEstimate::exact(half * units.squared_error(law.covariance));
    }
    if accuracy >= SAMPLED_ACCURACY && matches!(rule.forms.route, Route::Smooth(_)) {
        let (value, size) = squared_error(&Pairs::new(rule, law.covariance, Some(accuracy)), residual);
        if TABLE_ERROR * size <= accuracy * value {
            return QuadratureEstimate { value: half * value, error: half * TABLE_ERROR * size };
        }
    }
    if matches!(rule.forms.route, Route::Quadrature) && law.covariance.is_finite() {
        let (value, bound) = kinked_risk::squared_error(rule, law.covariance, residual);
        if bound <= accuracy * value {
            return QuadratureEstimate { value: half * value, error: half * bound };
        }
    }
    if accuracy >= SAMPLED_ACCURACY && matches!(rule.forms.route, Route::Quadrature) {
        let estimate = risk_by_lattice(rule, law, accuracy);
        if estimate.error <= SCATTERED * estimate.value {
            return estimate;
        }
    }
    let (value, size) = squared_error(&Pairs::new(rule, law.covariance, None), residual);
    let error = if matches!(rule.forms.route, Route::Quadrature) { half * KINK_ERROR * size } else { 0.0 };
    QuadratureEstimate { value: half * value, error }
}

/// Σ_kl v_k v_l E[g_k g_l], and the sum of the sizes of its terms.
fn squared_error(pairs: &Pairs, residual: &[f64]) -> (f64, f64) {
    let (mut sum, mut size) = (0.0, 0.0);
    for k in 0..residual.len() {
        for l in 0..=k {
            let twice = if l < k { 2.0 } else { 1.0 };
            let term = twice * residual[k] * residual[l] * pairs.product(k, l);
            sum += term;
            size += term.abs();
        }
    }
    (sum, size)
}

/// Averages of pairs of units at one covariance: one Hermite series per field where there are any.
struct Pairs<'a> {
    rule: &'a CommitteeRule,
    covariance: &'a Mat,
    series: Vec<Option<HermiteSeries>>,
    /// Whether some of the series are interpolated.
    from_tables: bool,
}

impl<'a> Pairs<'a> {
    /// Series are interpolated from tables where this relative accuracy allows it.
    fn new(rule: &'a CommitteeRule, covariance: &'a Mat, accuracy: Option<f64>) -> Self {
        let tables = accuracy.filter(|a| *a >= TABLE_ACCURACY).and_then(|_| tables(rule));
        let students = rule.student.weights.len();
        let rows = match rule.forms.route {
            Route::Smooth(_) | Route::Quadrature => covariance.rows(),
            Route::Erf(_) | Route::TwoSlopes(_) | Route::LinearPieces(_) | Route::Polynomial(_) => 0,
        };
        let variance = |row: usize| covariance[(row, row)].max(0.0);
        let mut series: Vec<Option<HermiteSeries>> = Vec::with_capacity(rows);
        for row in 0..rows {
            // Teachers of equal length, and symmetric students, share one series.
            let same = |&k: &usize| {
                Arc::ptr_eq(activation_of(rule, k), activation_of(rule, row)) && variance(k) == variance(row)
            };
            let known = (0..row).find(same).map(|k| series[k].clone());
            let tabulated = |tables: &Tables| {
                let table = if row < students { &tables.student } else { &tables.teacher };
                table.hermite_series(variance(row))
            };
            let exact = || HermiteSeries::of(activation_of(rule, row).as_ref(), variance(row));
            series.push(known.unwrap_or_else(|| tables.and_then(tabulated).or_else(exact)));
        }
        Self { rule, covariance, series, from_tables: tables.is_some() }
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
