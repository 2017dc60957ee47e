//! Incomplete gamma integrals and the zeta function, accurate at the small exponents and on the short intervals that occur
//! in sums over power-law spectra.
//!
//! Formulas: NIST Digital Library of Mathematical Functions (DLMF), chapters 8 (incomplete gamma) and 25 (zeta).

/// The gamma function Γ(s) for s > 0.
pub fn gamma(s: f64) -> f64 {
    libm::tgamma(s)
}

/// ∫_a^b t^{s−1} e^{−t} dt = Γ(s, a) − Γ(s, b) for 0 ≤ a ≤ b (b may be infinite) and s > 0.
///
/// No two large numbers are subtracted, so the result is accurate at small s, on narrow intervals and for a → 0. Below
/// t = 1 the exponential is expanded in a series, whose terms alternate in sign but decrease from the first one on. Above
/// t = 1 the integral is a difference of two continued fractions or, on a short interval, a Gauss-Legendre sum. Returns NaN
/// outside the domain.
pub fn gamma_between(s: f64, a: f64, b: f64) -> f64 {
    if !(s > 0.0 && a >= 0.0 && b >= a) {
        return f64::NAN;
    }
    let below = if a < 1.0 { by_series(s, a, b.min(1.0)) } else { 0.0 };
    if b <= 1.0 {
        return below;
    }
    let from = a.max(1.0);
    let above = if b - from < 1.0 {
        by_quadrature(s, from, b)
    } else {
        by_continued_fraction(s, from) - by_continued_fraction(s, b)
    };
    below + above
}

/// Γ(s, x) = ∫_x^∞ t^{s−1} e^{−t} dt, the upper incomplete gamma function (not divided by Γ(s)).
pub fn gamma_above(s: f64, x: f64) -> f64 {
    gamma_between(s, x, f64::INFINITY)
}

/// The integral of [`gamma_between`] for b ≤ 1: Σ_n (−1)^n (b^{s+n} − a^{s+n}) / (n! (s+n)).
fn by_series(s: f64, a: f64, b: f64) -> f64 {
    let power = |exponent: f64| {
        // b^e − a^e without cancellation when e ln(b/a) is small.
        if a > 0.0 { -b.powf(exponent) * (exponent * (a / b).ln()).exp_m1() } else { b.powf(exponent) }
    };
    if b == 0.0 {
        return 0.0;
    }
    let (mut sum, mut factorial) = (0.0, 1.0);
    for n in 0..30 {
        let exponent = s + f64::from(n);
        let term = power(exponent) / (factorial * exponent);
        sum += term;
        if term.abs() <= 1e-17 * sum.abs() {
            break;
        }
        factorial *= -f64::from(n + 1);
    }
    sum
}

/// Γ(s, x) for x ≥ 1 by its continued fraction (DLMF 8.9.2, modified Lentz recurrence).
fn by_continued_fraction(s: f64, x: f64) -> f64 {
    if x == f64::INFINITY {
        return 0.0;
    }
    let front = (s * x.ln() - x).exp();
    if front == 0.0 {
        return 0.0;
    }
    // A zero in the recurrence, which is possible for s > x, is replaced by the smallest positive number, as in the
    // modified method of Lentz.
    let off_zero = |v: f64| if v == 0.0 { f64::MIN_POSITIVE } else { v };
    let mut b = x + 1.0 - s;
    let mut d = 1.0 / off_zero(b);
    let (mut c, mut fraction) = (f64::INFINITY, d);
    for n in 1..10_000 {
        let n = f64::from(n);
        let numerator = n * (s - n);
        b += 2.0;
        d = 1.0 / off_zero(b + numerator * d);
        c = off_zero(b + numerator / c);
        let factor = c * d;
        fraction *= factor;
        if (factor - 1.0).abs() <= f64::EPSILON {
            break;
        }
    }
    front * fraction
}

/// The integral of [`gamma_between`] on an interval shorter than 1 with a ≥ 1, where the integrand is smooth and 16 nodes
/// give all digits.
fn by_quadrature(s: f64, a: f64, b: f64) -> f64 {
    let rule = crate::gauss::quadrature::gauss_legendre(16);
    let (middle, half) = (f64::midpoint(a, b), 0.5 * (b - a));
    let value = |x: f64| {
        let t = middle + half * x;
        ((s - 1.0) * t.ln() - t).exp()
    };
    half * rule.nodes.iter().zip(&rule.weights).map(|(x, w)| w * value(*x)).sum::<f64>()
}

/// Riemann's ζ(x) = Σ_k k^{−x} for x > 1, NaN otherwise. The terms from k = 20 on are summed by the Euler-Maclaurin formula.
pub fn zeta(x: f64) -> f64 {
    const FROM: f64 = 20.0;
    // B_2k/(2k)!; the first term that is left out is below 1e-17.
    const BERNOULLI: [f64; 6] = [
        1.0 / 12.0,
        -1.0 / 720.0,
        1.0 / 30_240.0,
        -1.0 / 1_209_600.0,
        1.0 / 47_900_160.0,
        -691.0 / 1_307_674_368_000.0,
    ];
    if x.is_nan() || x <= 1.0 {
        return f64::NAN;
    }
    let mut sum: f64 = (1..20).rev().map(|k| f64::from(k).powf(-x)).sum();
    sum += FROM.powf(1.0 - x) / (x - 1.0) + 0.5 * FROM.powf(-x);
    let mut rising = x * FROM.powf(-x - 1.0);
    for (k, b) in BERNOULLI.iter().enumerate() {
        sum += b * rising;
        let k = 2.0 * k as f64;
        rising *= (x + k + 1.0) * (x + k + 2.0) / (FROM * FROM);
    }
    sum
}

/// ψ(x) = Γ′(x)/Γ(x) for x > 0: recurrence up to x ≥ 10, then the asymptotic series.
pub fn digamma(x: f64) -> f64 {
    let (mut x, mut sum) = (x, 0.0);
    while x < 10.0 {
        sum -= 1.0 / x;
        x += 1.0;
    }
    // ln x − 1/(2x) − Σ_k B_2k/(2k x^{2k}); the term left out is below 1e-16 at x = 10.
    let y = 1.0 / (x * x);
    let series = y
        * (1.0 / 12.0
            - y * (1.0 / 120.0
                - y * (1.0 / 252.0
                    - y * (1.0 / 240.0 - y * (1.0 / 132.0 - y * (691.0 / 32760.0 - y / 12.0))))));
    sum + x.ln() - 0.5 / x - series
}

/// ψ′(x) for x > 0, in the same way.
pub fn trigamma(x: f64) -> f64 {
    let (mut x, mut sum) = (x, 0.0);
    while x < 10.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    // 1/x + 1/(2x²) + Σ_k B_2k/x^{2k+1}.
    let y = 1.0 / (x * x);
    let series = y
        * (1.0 / 6.0
            - y * (1.0 / 30.0
                - y * (1.0 / 42.0
                    - y * (1.0 / 30.0 - y * (5.0 / 66.0 - y * (691.0 / 2730.0 - y * 7.0 / 6.0))))));
    sum + (1.0 + 0.5 / x + series) / x
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn incomplete_gamma_matches_known_values() {
        // Γ(1, x) = e^{−x}; Γ(1/2, x) = √π erfc(√x); Γ(s, 0) = Γ(s).
        for x in [1e-6, 0.3, 0.999, 1.0, 1.7, 5.0, 40.0] {
            assert!((gamma_above(1.0, x) / (-x).exp() - 1.0).abs() < 1e-14, "{x}");
            let half = std::f64::consts::PI.sqrt() * libm::erfc(x.sqrt());
            assert!((gamma_above(0.5, x) / half - 1.0).abs() < 1e-13, "{x}");
        }
        for s in [0.0099, 0.3, 0.9, 1.6] {
            assert!((gamma_above(s, 0.0) / gamma(s) - 1.0).abs() < 1e-13, "{s}");
        }
        // Γ(s → 0, x) → E_1(x): E_1(1) = 0.219383934395520.
        assert!((gamma_above(1e-12, 1.0) - 0.219_383_934_395_520_27).abs() < 1e-12);
    }

    #[test]
    fn the_integral_over_a_tiny_interval_is_accurate() {
        for (s, a) in [(0.01f64, 1e-9f64), (0.5, 0.5), (0.4, 1.0), (0.7, 30.0)] {
            let width = 1e-9 * a;
            let integrand = ((s - 1.0) * (a + 0.5 * width).ln() - a - 0.5 * width).exp();
            let exact_width = (a + width) - a;
            let got = gamma_between(s, a, a + width);
            assert!((got / (integrand * exact_width) - 1.0).abs() < 1e-6, "{s} {a}: {got}");
        }
    }

    #[test]
    fn zeta_matches_known_values() {
        let pi = std::f64::consts::PI;
        assert!((zeta(2.0) - pi * pi / 6.0).abs() < 1e-14);
        assert!((zeta(4.0) - pi.powi(4) / 90.0).abs() < 1e-14);
        assert!((zeta(1.5) - 2.612_375_348_685_488).abs() < 1e-13);
        // Near the pole ζ(x) = 1/(x − 1) + γ + …
        assert!((zeta(1.01) - 100.577_943_338_496_87).abs() < 1e-10);
    }

    proptest! {
        #[test]
        fn integrals_add_up(s in 0.005..2.0f64, a in 0.0..3.0f64, d in 0.0..2.0f64, e in 0.0..30.0f64) {
            let (b, c) = (a + d, a + d + e);
            let (left, right, whole) =
                (gamma_between(s, a, b), gamma_between(s, b, c), gamma_between(s, a, c));
            prop_assert!((left + right - whole).abs() <= 1e-13 * whole.abs() + 1e-300);
        }
    }

    #[test]
    fn digamma_and_trigamma_have_their_known_values_and_are_derivatives() {
        const EULER: f64 = 0.577_215_664_901_532_9;
        assert!((digamma(1.0) + EULER).abs() < 1e-14);
        assert!((digamma(0.5) + EULER + 2.0 * std::f64::consts::LN_2).abs() < 1e-14);
        let square = std::f64::consts::PI.powi(2);
        assert!((trigamma(1.0) - square / 6.0).abs() < 1e-14);
        assert!((trigamma(0.5) - square / 2.0).abs() < 1e-13);
        for x in [0.3, 2.7, 9.99, 15.0] {
            let slope = (digamma(x + 1e-4) - digamma(x - 1e-4)) / 2e-4;
            assert!((slope / trigamma(x) - 1.0).abs() < 1e-6, "{x}");
        }
    }
}
