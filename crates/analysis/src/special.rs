//! Tails of the normal, χ² and Student laws, to full accuracy far into the tail.

use std::f64::consts::{PI, SQRT_2};

/// P(Z > z) for Z ~ N(0, 1).
pub fn normal_upper_tail(z: f64) -> f64 {
    0.5 * libm::erfc(z / SQRT_2)
}

/// P(|Z| > |z|) for Z ~ N(0, 1).
pub fn normal_two_sided_tail(z: f64) -> f64 {
    libm::erfc(z.abs() / SQRT_2)
}

/// The z with P(Z ≤ z) = `probability`; ∓∞ at 0 and 1, NaN outside.
///
/// Start from the rational approximation 26.2.23 of Abramowitz & Stegun (error below 4.5e-4), then Halley's
/// iteration on the tail: with u = (Q(z) − q)/φ(z), z ← z + u/(1 − z u/2), which triples the digits each
/// time.
pub fn normal_quantile(probability: f64) -> f64 {
    let tail = probability.min(1.0 - probability);
    if tail.is_nan() || tail <= 0.0 {
        return match probability {
            0.0 => f64::NEG_INFINITY,
            1.0 => f64::INFINITY,
            _ => f64::NAN,
        };
    }
    let t = (-2.0 * tail.ln()).sqrt();
    let top = 2.515517 + t * (0.802853 + t * 0.010328);
    let bottom = 1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308));
    let mut z = t - top / bottom;
    for _ in 0..3 {
        let density = (-0.5 * z * z).exp() / (2.0 * PI).sqrt();
        let u = (normal_upper_tail(z) - tail) / density;
        z += u / (1.0 - 0.5 * z * u);
    }
    if probability < 0.5 { -z } else { z }
}

/// P(|T| > |t|) for Student's T with `degrees` > 0 of freedom (not necessarily whole); NaN outside.
///
/// It is I_x(ν/2, 1/2) at x = ν/(ν + t²), the regularised incomplete beta function, by the continued fraction
/// DLMF 8.17.22. Good to a relative 1e-12 up to a thousand degrees of freedom, then losing in proportion to
/// them.
pub fn student_two_sided_tail(t: f64, degrees: f64) -> f64 {
    if !(degrees > 0.0 && degrees.is_finite()) || t.is_nan() {
        return f64::NAN;
    }
    let (a, b) = (0.5 * degrees, 0.5);
    let ratio = t * t / degrees;
    if ratio == 0.0 || ratio == f64::INFINITY {
        return if ratio == 0.0 { 1.0 } else { 0.0 };
    }
    // x = 1/(1 + ratio); the logarithms of x and 1 − x keep their digits at both ends.
    let (x, log_x) = (1.0 / (1.0 + ratio), -ratio.ln_1p());
    let log_beta = libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b);
    let front = (a * log_x + b * (ratio.ln() + log_x) - log_beta).exp();
    // The fraction converges fast below the mean of the beta law; above it the complement does.
    if x < (a + 1.0) / (a + b + 2.0) {
        front / (a * beta_fraction(a, b, x))
    } else {
        1.0 - front / (b * beta_fraction(b, a, ratio * x))
    }
}

/// 1 + d_1/(1 + d_2/(1 + …)) with d_{2m+1} = −(a+m)(a+b+m)x/((a+2m)(a+2m+1)), d_{2m} =
/// m(b−m)x/((a+2m−1)(a+2m)), by Lentz.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    let (mut value, mut c, mut d, mut m) = (1.0, 1.0, 0.0, 0.0);
    loop {
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        m += 1.0;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let mut change = 1.0;
        for numerator in [odd, even] {
            d = 1.0 / (1.0 + numerator * d);
            c = 1.0 + numerator / c;
            change *= c * d;
        }
        value *= change;
        if (change - 1.0).abs() <= f64::EPSILON {
            return value;
        }
    }
}

/// P(X > chi2) for X ~ χ² with `degrees` of freedom (not necessarily a whole number).
pub fn chi2_upper_tail(chi2: f64, degrees: f64) -> f64 {
    gamma_upper(0.5 * degrees, 0.5 * chi2)
}

/// Regularised lower incomplete gamma function  P(a, x) = (1/Γ(a)) ∫_0^x s^{a−1} e^{−s} ds,  a > 0, x ≥ 0;
/// NaN outside.
pub fn gamma_lower(a: f64, x: f64) -> f64 {
    match incomplete_gamma(a, x) {
        Some(Part::Lower(p)) => p,
        Some(Part::Upper(q)) => 1.0 - q,
        None => f64::NAN,
    }
}

/// Regularised upper incomplete gamma function  Q(a, x) = 1 − P(a, x), without cancellation where it is
/// small.
pub fn gamma_upper(a: f64, x: f64) -> f64 {
    match incomplete_gamma(a, x) {
        Some(Part::Lower(p)) => 1.0 - p,
        Some(Part::Upper(q)) => q,
        None => f64::NAN,
    }
}

/// The one of P and Q that is computed directly; the other is its complement.
enum Part {
    Lower(f64),
    Upper(f64),
}

/// With D(a, x) = x^a e^{−x} / Γ(a+1) (DLMF 8.7.1 and 8.9.2):
///
///   P = D Σ_n x^n / ((a+1) … (a+n))                                    for x < a + 1, all terms positive;
///   Q = a D / (x + 1 − a − 1(1−a)/(x + 3 − a − 2(2−a)/(x + 5 − a − …)))  otherwise, by the modified Lentz recurrence.
///
/// Both need of the order of √a terms near x = a, where they are slowest.
fn incomplete_gamma(a: f64, x: f64) -> Option<Part> {
    if !(a > 0.0 && a.is_finite() && x >= 0.0) {
        return None;
    }
    if x == 0.0 {
        return Some(Part::Lower(0.0));
    }
    if x == f64::INFINITY {
        return Some(Part::Upper(0.0));
    }
    let front = power_over_factorial(a, x);
    if front == 0.0 {
        // Underflow: more than 38 standard deviations into one of the tails.
        return Some(if x < a { Part::Lower(0.0) } else { Part::Upper(0.0) });
    }
    if x < a + 1.0 {
        let (mut term, mut sum, mut n) = (1.0, 1.0, a);
        while term > f64::EPSILON * 0.1 * sum {
            n += 1.0;
            term *= x / n;
            sum += term;
        }
        return Some(Part::Lower((front * sum).min(1.0)));
    }
    // x > a keeps every denominator away from zero, so Lentz needs no guard.
    let mut b = x + 1.0 - a;
    let mut d = 1.0 / b;
    let (mut c, mut fraction, mut n) = (f64::INFINITY, d, 0.0);
    loop {
        n += 1.0;
        let numerator = n * (a - n);
        b += 2.0;
        d = 1.0 / (b + numerator * d);
        c = b + numerator / c;
        let factor = c * d;
        fraction *= factor;
        if (factor - 1.0).abs() <= f64::EPSILON {
            return Some(Part::Upper((a * front * fraction).min(1.0)));
        }
    }
}

/// D(a, x) = x^a e^{−x} / Γ(a+1).
///
/// For large a the three factors are huge and cancel; with x = a (1 + μ) and Stirling's series they combine
/// into e^{−a (μ − ln(1+μ))} / √(2πa) · e^{−(1/12a − 1/360a³ + …)}, which keeps its digits.
fn power_over_factorial(a: f64, x: f64) -> f64 {
    if a < 10.0 {
        return (a * x.ln() - x - libm::lgamma(a + 1.0)).exp();
    }
    // B_{2k} / (2k (2k−1)): at a ≥ 10 the first term left out is below 1e-15.
    let stirling = [
        1.0 / 12.0,
        -1.0 / 360.0,
        1.0 / 1260.0,
        -1.0 / 1680.0,
        1.0 / 1188.0,
        -691.0 / 360_360.0,
        1.0 / 156.0,
    ];
    let correction = stirling.iter().rev().fold(0.0, |sum, c| sum / (a * a) + c) / a;
    (-a * excess_over_log((x - a) / a) - correction).exp() / (2.0 * PI * a).sqrt()
}

/// μ − ln(1 + μ), without cancellation at small μ.
fn excess_over_log(mu: f64) -> f64 {
    if mu.abs() > 0.3 {
        return mu - mu.ln_1p();
    }
    // Σ_{k≥2} (−μ)^k / k; 0.3^k/k is below 1e-17 relative to the first term after 32 terms.
    let (mut power, mut sum) = (-mu, 0.0);
    for k in 2..36 {
        power *= -mu;
        sum += power / f64::from(k);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn incomplete_gamma_has_thirteen_digits_from_one_half_to_a_hundred_thousand() {
        // a, x, P, Q by 30-digit arithmetic.
        let table = [
            (0.5, 0.3, 0.561421973919000136, 0.438578026080999864),
            (0.5, 20.0, 0.999999999746037141, 2.53962858947086497e-10),
            (5.0, 3.0, 0.184736755476227934, 0.815263244523772066),
            (5.0, 12.0, 0.992399609318933005, 0.00760039068106699547),
            (50.0, 30.0, 0.000518891462548034293, 0.999481108537451966),
            (50.0, 50.0, 0.518808315472043282, 0.481191684527956718),
            (50.0, 90.0, 0.999998350501498282, 1.64949850171782483e-6),
            (500.0, 480.0, 0.186281973190324601, 0.813718026809675399),
            (500.0, 650.0, 0.99999999961102635, 3.88973649948685248e-10),
            (5000.0, 5100.0, 0.920671118922381023, 0.0793288810776189768),
            (5000.0, 4700.0, 7.59706486194127051e-6, 0.999992402935138059),
            (100000.0, 100500.0, 0.942896730023971289, 0.0571032699760287114),
            (2.5, 0.001, 9.50853459860794981e-9, 0.999999990491465401),
            (0.5, 1.0e-8, 0.000112837916333424871, 0.999887162083666575),
            (12.0, 0.5, 3.21469730334518447e-13, 0.99999999999967853),
        ];
        for (a, x, p, q) in table {
            // The part computed directly has its own relative accuracy; the complement has absolute accuracy.
            let (small, exact) = if x < a + 1.0 { (gamma_lower(a, x), p) } else { (gamma_upper(a, x), q) };
            assert!((small / exact - 1.0).abs() < 1e-13, "{a} {x}: {small}");
            assert!((gamma_lower(a, x) - p).abs() < 1e-13 && (gamma_upper(a, x) - q).abs() < 1e-13);
        }
    }

    #[test]
    fn chi2_with_even_degrees_is_a_poisson_sum() {
        for half in 1..40_i32 {
            let x = 0.37 * f64::from(half) + 1.0;
            let (mut term, mut sum) = (1.0, 1.0);
            for k in 1..half {
                term *= x / f64::from(k);
                sum += term;
            }
            let got = chi2_upper_tail(2.0 * x, 2.0 * f64::from(half));
            assert!((got - (-x).exp() * sum).abs() < 1e-13, "{half}: {got}");
        }
    }

    #[test]
    fn chi2_with_one_degree_is_the_two_sided_normal_tail() {
        for z in [0.01, 0.5, 1.0, 2.0, 5.0, 12.0] {
            let (chi2, normal) = (chi2_upper_tail(z * z, 1.0), normal_two_sided_tail(-z));
            assert!((chi2 / normal - 1.0).abs() < 1e-12, "{z}: {chi2} {normal}");
            assert!((2.0 * normal_upper_tail(z) / normal - 1.0).abs() < 1e-15);
        }
    }

    #[test]
    fn student_tails_match_closed_forms_and_a_table() {
        for t in [1e-3_f64, 0.3, 1.0, 4.0, 1e3] {
            // One degree is the Cauchy law, two have 1 − t/√(2 + t²) = 2/(√(2 + t²)(√(2 + t²) + t)).
            let cauchy = 2.0 / PI * (1.0 / t).atan();
            assert!((student_two_sided_tail(-t, 1.0) / cauchy - 1.0).abs() < 1e-13, "{t}");
            let root = (2.0 + t * t).sqrt();
            assert!((student_two_sided_tail(t, 2.0) * root * (root + t) / 2.0 - 1.0).abs() < 1e-13, "{t}");
        }
        // degrees, t, tail by 30-digit arithmetic.
        let table = [
            (3.0, 0.7, 0.534326998304763629),
            (4.0, 2.5, 0.066766544811988145),
            (9.0, 4.0, 0.00311042831038585539),
            (9.0, 30.0, 2.48370470415826244e-10),
            (29.0, 3.0, 0.00549919213390340615),
            (199.0, 8.0, 1.00614600587769678e-13),
            (999.0, 1.5, 0.133930354711284991),
            (999.0, 20.0, 4.16738449304299772e-75),
            (15.0, 0.01, 0.992153076244034203),
        ];
        for (degrees, t, exact) in table {
            let got = student_two_sided_tail(t, degrees);
            assert!((got / exact - 1.0).abs() < 2e-12, "{degrees} {t}: {got}");
        }
        assert_eq!(
            (student_two_sided_tail(0.0, 3.0), student_two_sided_tail(f64::INFINITY, 3.0)),
            (1.0, 0.0)
        );
        assert!(student_two_sided_tail(1.0, 0.0).is_nan() && student_two_sided_tail(f64::NAN, 3.0).is_nan());
    }

    #[test]
    fn the_domain_ends_are_exact() {
        assert_eq!((gamma_lower(2.0, 0.0), gamma_upper(2.0, 0.0)), (0.0, 1.0));
        assert_eq!((gamma_lower(2.0, f64::INFINITY), gamma_upper(2.0, 1e6)), (1.0, 0.0));
        assert_eq!(gamma_upper(1e5, 1e4), 1.0);
        assert!(gamma_lower(0.0, 1.0).is_nan() && gamma_upper(1.0, -1.0).is_nan());
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(normal_quantile(1.0), f64::INFINITY);
        assert!(normal_quantile(1.5).is_nan() && normal_quantile(f64::NAN).is_nan());
        assert!(normal_quantile(0.5).abs() < 1e-16);
    }

    proptest! {
        #[test]
        fn the_quantile_inverts_the_tail(exponent in -250.0..-0.31f64) {
            let tail = 10f64.powf(exponent);
            let z = normal_quantile(tail);
            // The condition number of the tail is about z²; erfc itself has a few units in the last place.
            prop_assert!((normal_upper_tail(-z) / tail - 1.0).abs() < 1e-15 * (10.0 + z * z));
        }

        #[test]
        fn incomplete_gamma_obeys_its_recurrence(a in 0.3..300.0f64, ratio in 0.3..2.0f64) {
            // P(a+1, x) = P(a, x) − x^a e^{−x} / Γ(a+1).
            let x = a * ratio;
            let step = (a * x.ln() - x - libm::lgamma(a + 1.0)).exp();
            prop_assert!((gamma_lower(a + 1.0, x) - gamma_lower(a, x) + step).abs() < 1e-12);
            prop_assert!((gamma_lower(a, x) + gamma_upper(a, x) - 1.0).abs() < 1e-15);
        }
    }
}
