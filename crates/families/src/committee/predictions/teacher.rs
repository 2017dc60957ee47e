//! The symmetric plateau of K = M erf units for any teacher, and the ways out of it, by the O(η) equations:
//! docs/derivations/power-law-spectra.md#s6-1 and docs/derivations/power-law-spectra.md#s6-2.
//!
//! For teachers with equal overlaps the closed forms of `committee/plateau` and `committee/escape` hold; this solves the
//! general case, of which sampled teachers are one.

use crate::Family;
use crate::committee::{Committee, Output};
use didact_math::linalg::{Mat, eigenvalues_general};
use didact_model::rule::Law;
use std::f64::consts::{FRAC_2_PI, PI};

/// All students are J = Σ_n κ_n B_n.
#[derive(Debug, Clone, PartialEq)]
pub struct Plateau {
    /// κ_n.
    pub mixture: Vec<f64>,
    /// R_n = (T^(1) κ)_n.
    pub cross: Vec<f64>,
    /// Q = κ·R.
    pub student: f64,
    /// ε*.
    pub error: f64,
    /// Diagonal of T^(1).
    lengths: Vec<f64>,
}

/// Teachers whose plateau cannot be found.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TeacherError {
    /// Not symmetric, or with a negative direction.
    #[error("{name} is not a matrix of overlaps: not symmetric, or with a negative direction")]
    NotGram {
        /// Which matrix.
        name: &'static str,
    },
    /// The iteration did not settle.
    #[error("no symmetric plateau was found for these teachers; some may be opposite to each other")]
    NoPlateau,
}

/// Iterations of the damped map; it contracts by about a half each time.
const ITERATIONS: usize = 10_000;

impl Plateau {
    /// Solves κ_m = √(1+2Q)/(M √((1+Q)(1+T_mm) − R_m²)), R = T κ, Q = κ·R, by damped iteration from the equal-overlap
    /// solution.
    pub fn new(teachers: &Mat) -> Result<Self, TeacherError> {
        let m = teachers.rows();
        if !didact_math::linalg::is_psd(teachers) {
            return Err(TeacherError::NotGram { name: "T1" });
        }
        let units = m as f64;
        let diagonal = teachers.trace() / units;
        let row_sum = teachers.as_slice().iter().sum::<f64>() / units;
        let gap = units * (units * (1.0 + diagonal) - row_sum);
        if gap.is_nan() || gap <= 0.0 || row_sum <= 0.0 {
            return Err(TeacherError::NoPlateau);
        }
        let mut mixture = vec![1.0 / gap.sqrt(); m];
        for _ in 0..ITERATIONS {
            let (cross, student) = overlaps(teachers, &mixture);
            let mut change = 0.0_f64;
            for (n, kappa) in mixture.iter_mut().enumerate() {
                let inside = (1.0 + student) * (1.0 + teachers[(n, n)]) - cross[n] * cross[n];
                let next = (1.0 + 2.0 * student).sqrt() / (units * inside.sqrt());
                let damped = 0.5 * (*kappa + next);
                change = change.max((damped / *kappa - 1.0).abs());
                *kappa = damped;
            }
            if change.is_nan() {
                return Err(TeacherError::NoPlateau);
            }
            if change < 1e-15 {
                break;
            }
        }
        let (cross, student) = overlaps(teachers, &mixture);
        let lengths = (0..m).map(|n| teachers[(n, n)]).collect();
        let mut found = Self { mixture, cross, student, error: 0.0, lengths };
        found.error = found.height(teachers);
        Ok(found)
    }

    /// ε_g at C* = [[Q, R], [Rᵀ, T]].
    fn height(&self, teachers: &Mat) -> f64 {
        let m = self.mixture.len();
        let covariance = Mat::from_fn(2 * m, 2 * m, |i, j| match (i < m, j < m) {
            (true, true) => self.student,
            (true, false) => self.cross[j - m],
            (false, true) => self.cross[i - m],
            (false, false) => teachers[(i - m, j - m)],
        });
        let spec = Committee { output: Output::Scaled, ..Committee::soft(m, m, "erf(z/sqrt2)") };
        let rule = spec.rule().expect("a committee of erf units");
        rule.risk(&Law { covariance: &covariance, scalars: &[], label_noise: 0.0 })
    }

    /// (R*^(l), Q*^(l)) of another order, from the teachers' overlaps T^(l) of that order.
    pub fn moments(&self, teachers: &Mat) -> (Vec<f64>, f64) {
        overlaps(teachers, &self.mixture)
    }

    /// The growth rates per α, largest first: the eigenvalues of η T^(2) E, each M−1 times in the full system.
    ///
    /// Perturbations δ_i = x_i φ with Σ_i x_i = 0 and ρ_n = φ Σ B_n/N obey dφ/dα = η Σ Σ_m (Eρ)_m B_m. E is symmetric.
    pub fn growth_rates(&self, second: &Mat, learning_rate: f64) -> Result<Vec<f64>, TeacherError> {
        if !didact_math::linalg::is_psd(second) {
            return Err(TeacherError::NotGram { name: "T2" });
        }
        let product = second.times(&self.response()).scaled(learning_rate);
        let mut rates: Vec<f64> = eigenvalues_general(&product).iter().map(|z| z.0).collect();
        rates.sort_by(|a, b| b.total_cmp(a));
        Ok(rates)
    }

    /// E_mn, the response of the drift to ρ_n, for any teacher (docs/derivations/power-law-spectra.md#eq-44).
    fn response(&self) -> Mat {
        let (m, q) = (self.mixture.len(), self.student);
        let (units, root) = (m as f64, (1.0 + 2.0 * q).sqrt());
        let pre = 2.0 / (PI * units);
        let lambda = |n: usize| (1.0 + q) * (1.0 + self.lengths[n]) - self.cross[n].powi(2);
        let derivative = |a: usize, n: usize| {
            let own = if a == n { 2.0 * self.cross[a] } else { 0.0 };
            2.0 * (1.0 + self.lengths[a]) * self.mixture[n] - own
        };
        let shared = |n: usize| {
            let change: f64 = (0..m).map(|a| self.cross[a] * lambda(a).powf(-1.5) * derivative(a, n)).sum();
            -pre / (1.0 + q) * (lambda(n).powf(-0.5) - 0.5 * change)
                + pre * units * self.mixture[n] * (1.0 - q / (root * root)) / ((1.0 + q) * root)
        };
        let shared: Vec<f64> = (0..m).map(shared).collect();
        Mat::from_fn(m, m, |a, n| {
            -0.5 * pre * lambda(a).powf(-1.5) * derivative(a, n)
                + self.mixture[a] * (pre * units * self.mixture[n] / root.powi(3) + shared[n])
        })
    }
}

fn overlaps(teachers: &Mat, mixture: &[f64]) -> (Vec<f64>, f64) {
    let cross: Vec<f64> =
        (0..mixture.len()).map(|n| didact_math::linalg::dot(teachers.row(n), mixture)).collect();
    let student = didact_math::linalg::dot(&cross, mixture);
    (cross, student)
}

/// The equal-overlap teacher: diagonal T, off-diagonal entries D/(M−1).
pub fn equal_overlaps(units: usize, diagonal: f64, row_sum: f64) -> Mat {
    let off = if units > 1 { row_sum / (units as f64 - 1.0) } else { 0.0 };
    Mat::from_fn(units, units, |i, j| if i == j { diagonal } else { off })
}

/// g_r = (2/π) S/[(A−S)^{1/2} (A+S)^{3/2}], S = T + D, A = M(1+T): the growth rate is η g_r (T2 − D2/(M−1)), and the
/// error falls off the plateau by g_r M²/(2(M−1)) r² (docs/derivations/power-law-spectra.md#eq-46,
/// docs/derivations/power-law-spectra.md#eq-47).
pub fn growth_coefficient(units: f64, diagonal: f64, row_sum: f64) -> f64 {
    let (s, a) = (diagonal + row_sum, units * (1.0 + diagonal));
    FRAC_2_PI * s / ((a - s).sqrt() * (a + s).powf(1.5))
}

/// Length of the plateau, τ (Dc − ln σ_J + ½ ln N): from a start that is asymmetric by c σ_J/√N to an asymmetry B with
/// Dc = ln(B/c) (Eq. 12 of the paper, docs/derivations/power-law-spectra.md#eq-48).
pub fn plateau_length(growth_time: f64, student_deviation: f64, dimension: f64, constant: f64) -> f64 {
    growth_time * (constant - student_deviation.ln() + 0.5 * dimension.ln())
}

#[cfg(test)]
mod tests {
    use super::*;
    use didact_model::rule::{Averages, Needed};

    #[test]
    fn equal_teachers_have_the_closed_form() {
        for (m, t, d) in [(2, 1.0, 0.0), (3, 1.08, 0.12), (4, 0.9, 0.15), (6, 1.0, -0.2)] {
            let found = Plateau::new(&equal_overlaps(m, t, d)).unwrap();
            let (units, s) = (m as f64, t + d);
            let a = units * (1.0 + t);
            assert!((found.student - s / (a - s)).abs() < 1e-14);
            assert!((found.cross[0] - s / (units * (a - s)).sqrt()).abs() < 1e-14);
            let (t2, d2) = (2.4, 0.3);
            let rates = found.growth_rates(&equal_overlaps(m, t2, d2), 0.5).unwrap();
            let want = 0.5 * growth_coefficient(units, t, d) * (t2 - d2 / (units - 1.0));
            assert!((rates[0] / want - 1.0).abs() < 1e-11, "{m}: {} {want}", rates[0]);
            assert!(rates[m - 1].abs() < 1e-12, "uniform teachers leave the symmetric mode neutral");
        }
        // docs/derivations/power-law-spectra.md#s6-2: M = 4, T = 0.9, D = 0.15: c = 0.0273775.
        let c = growth_coefficient(4.0, 0.9, 0.15) * 16.0 / 6.0;
        assert!((c - 0.0273775).abs() < 5e-8, "{c}");
    }

    #[test]
    fn the_plateau_of_any_teacher_is_a_fixed_point() {
        let teachers =
            Mat::from_rows(&[vec![1.3, 0.2, -0.1], vec![0.2, 0.7, 0.15], vec![-0.1, 0.15, 1.05]]).unwrap();
        let found = Plateau::new(&teachers).unwrap();
        let spec = Committee { output: Output::Scaled, ..Committee::soft(3, 3, "erf(z/sqrt2)") };
        let rule = spec.rule().unwrap();
        let mut averages = Averages::new(rule.shape());
        let covariance = Mat::from_fn(6, 6, |i, j| match (i < 3, j < 3) {
            (true, true) => found.student,
            (true, false) => found.cross[j - 3],
            (false, true) => found.cross[i - 3],
            (false, false) => teachers[(i - 3, j - 3)],
        });
        let law = Law { covariance: &covariance, scalars: &[], label_noise: 0.0 };
        rule.averages(&law, Needed::Drift, &mut averages);
        // J = Σ κ B in every eigenspace, so A (κ-combinations) must vanish: Σ_j A_ij κ_n + A_in = 0.
        for i in 0..3 {
            let own: f64 = averages.drift.row(i)[..3].iter().sum();
            for n in 0..3 {
                let motion = own * found.mixture[n] + averages.drift[(i, 3 + n)];
                assert!(motion.abs() < 1e-14, "{motion}");
            }
        }
    }

    #[test]
    fn opposite_teachers_are_refused() {
        let teachers = Mat::from_rows(&[vec![1.0, -1.0], vec![-1.0, 1.0]]).unwrap();
        assert_eq!(Plateau::new(&teachers), Err(TeacherError::NoPlateau));
        let teachers = Mat::from_rows(&[vec![1.0, 2.0], vec![2.0, 1.0]]).unwrap();
        assert!(matches!(Plateau::new(&teachers), Err(TeacherError::NotGram { .. })));
    }
}
