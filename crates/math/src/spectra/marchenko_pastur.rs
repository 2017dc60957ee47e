//! The Marchenko-Pastur law, in closed form: the limiting spectrum of (1/n) Xᵀ X for an n × d matrix X of independent
//! normals and n = δ d (`delta`), that is of [`spectra`](super) with G = 1.
//!
//! V. A. Marčenko and L. A. Pastur, *Distribution of eigenvalues for some sets of random matrices*, Math. USSR Sb. 1, 457
//! (1967).

use super::complex::Complex;
use std::f64::consts::PI;

/// The support (λ₋, λ₊) (`lambda_minus`, `lambda_plus`) of the continuous part, λ_± = (1 ± 1/√δ)².
pub fn support(delta: f64) -> (f64, f64) {
    let root = 1.0 / delta.sqrt();
    ((1.0 - root).powi(2), (1.0 + root).powi(2))
}

/// Mass of the atom at 0, max(0, 1 − δ).
pub fn atom(delta: f64) -> f64 {
    (1.0 - delta).max(0.0)
}

/// Density of the continuous part, δ √((λ₊ − x)(x − λ₋))/(2π x) with λ₋, λ₊ (`lambda_minus`, `lambda_plus`) of [`support`].
pub fn density(delta: f64, x: f64) -> f64 {
    let (low, high) = support(delta);
    if x <= low || x >= high {
        return 0.0;
    }
    delta * ((high - x) * (x - low)).sqrt() / (2.0 * PI * x)
}

/// The Stieltjes transform α(z) = ∫ dμ(x)/(x − z).
///
/// It is a root of z α² + (zδ + 1 − δ) α + δ = 0: the one with Im α > 0 above the real axis and on the bulk (the limit from
/// above), and elsewhere on the real axis, where Im α is exactly 0, the one with z′(α) > 0, that is |δ + α| > √δ |α|.
pub fn stieltjes(delta: f64, z: Complex) -> Complex {
    let b = z * delta + Complex::from(1.0 - delta);
    let discriminant = b * b - z * (4.0 * delta);
    if z.im == 0.0 {
        if discriminant.re >= 0.0 {
            let roots = real_roots(z.re, b.re, delta, discriminant.re.sqrt());
            let physical = |alpha: &f64| (delta + alpha).abs() > delta.sqrt() * alpha.abs();
            return roots.into_iter().find(physical).unwrap_or(roots[0]).into();
        }
        let im = (-discriminant.re).sqrt() / (2.0 * z.re);
        return Complex::new(-b.re / (2.0 * z.re), im.abs());
    }
    let root = discriminant.sqrt();
    // q = −(b ± root)/2 with the sign for which nothing cancels; the two roots are q/z and δ/q.
    let same = b.re * root.re + b.im * root.im >= 0.0;
    let q = if same { b + root } else { b - root } * -0.5;
    let (first, second) = (q / z, Complex::from(delta) / q);
    let upper = |alpha: Complex| alpha.im * z.im.signum();
    if upper(first) > upper(second) { first } else { second }
}

fn real_roots(z: f64, b: f64, delta: f64, root: f64) -> [f64; 2] {
    let q = -0.5 * (b + root.copysign(b));
    [q / z, delta / q]
}

/// The average E[f(λ)] over the law, including the atom at 0.
///
/// With λ = (λ₊ + λ₋)/2 + (λ₊ − λ₋)/2 cos u (`lambda_plus`, `lambda_minus`) the integrand is periodic and smooth in u, so that
/// the trapezoidal rule of N points converges exponentially. The pole of 1/λ, which comes close to the support as δ → 1,
/// causes an error of order e^{−N |ln δ|}, and N is chosen accordingly.
pub fn average(delta: f64, f: impl Fn(f64) -> f64) -> f64 {
    let points = 512 + if delta == 1.0 { 0 } else { (37.0 / delta.ln().abs()).min(1e7) as usize };
    let (low, high) = support(delta);
    let (middle, half) = (0.5 * (high + low), 0.5 * (high - low));
    let step = PI / points as f64;
    let mut sum = 0.0;
    for i in 1..points {
        let u = step * i as f64;
        let lambda = middle + half * u.cos();
        sum += f(lambda) * (half * u.sin()).powi(2) * delta / (2.0 * PI * lambda);
    }
    // At δ = 1 the density diverges at the hard edge λ₋ = 0, and the end point of the rule has a non-zero value, because
    // sin²u/λ → 2/half there.
    if low == 0.0 {
        sum += 0.5 * f(0.0) * 2.0 * half * delta / (2.0 * PI);
    }
    let zero = atom(delta);
    step * sum + if zero > 0.0 { zero * f(0.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn averages_are_the_moments_of_a_wishart_matrix() {
        for delta in [0.3, 0.9, 0.999, 1.0, 2.0, 7.0] {
            let c = 1.0 / delta;
            assert!((average(delta, |_| 1.0) - 1.0).abs() < 1e-13, "{delta}");
            assert!((average(delta, |x| x) - 1.0).abs() < 1e-13);
            assert!((average(delta, |x| x * x) - (1.0 + c)).abs() < 1e-13 * (1.0 + c));
            assert!((average(delta, |x| x.powi(3)) - (1.0 + 3.0 * c + c * c)).abs() < 1e-12 * (1.0 + c * c));
        }
        // E[1/λ] = δ/(δ − 1).
        assert!((average(3.0, f64::recip) - 1.5).abs() < 1e-13);
    }

    #[test]
    fn the_transform_outside_the_bulk_is_real_and_equals_the_integral() {
        for (delta, z) in
            [(4.0, -0.5), (4.0, 0.1), (4.0, 9.0), (0.4, -0.5), (0.4, 0.1), (0.4, 9.0), (1.0, -0.2)]
        {
            let alpha = stieltjes(delta, Complex::from(z));
            assert_eq!(alpha.im, 0.0);
            let integral = average(delta, |x| 1.0 / (x - z));
            assert!(
                (alpha.re - integral).abs() < 1e-11 * integral.abs(),
                "{delta} {z}: {} {integral}",
                alpha.re
            );
        }
    }

    proptest! {
        #[test]
        fn the_transform_solves_its_equation(delta in 0.1..9.0f64, x in -2.0..9.0f64, y in 0.001..3.0f64) {
            let z = Complex::new(x, y);
            let alpha = stieltjes(delta, z);
            prop_assert!(alpha.im > 0.0);
            let right = Complex::from(delta) / (Complex::from(delta) + alpha);
            prop_assert!((z + alpha.reciprocal() - right).norm() < 1e-11 * (1.0 + alpha.reciprocal().norm()));
        }

        #[test]
        fn the_density_is_the_imaginary_part_on_the_axis(delta in 0.1..9.0f64, share in 0.05..0.95f64) {
            let (low, high) = support(delta);
            let x = low + share * (high - low);
            let alpha = stieltjes(delta, Complex::from(x));
            prop_assert!((alpha.im / PI - density(delta, x)).abs() < 1e-9 * density(delta, x));
        }
    }
}
