//! Roots and minima of functions of one variable.
//!
//! Use [`brent`] where a sign change is known to lie in an interval, [`bracket_outward`] or [`bracket_upward`] to find such an
//! interval, [`find_roots_by_scan`] for all roots in an interval, and [`minimum`] for a minimum. Brent's methods need no
//! derivative and never leave their bracket: R. P. Brent, *Algorithms for Minimization
//! without Derivatives*, Prentice-Hall (1973), chapters 4 (roots) and 5 (minima).

use thiserror::Error;

/// Why no root was returned. Every variant carries the numbers that explain it.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum RootError {
    /// The function has the same sign at both ends.
    #[error(
        "no sign change: f({low}) = {value_low} and f({high}) = {value_high} have the same sign\n\n\
         hint: widen the interval, or scan it with `find_roots_by_scan`"
    )]
    NoSignChange {
        /// Lower end of the interval.
        low: f64,
        /// Value there.
        value_low: f64,
        /// Upper end of the interval.
        high: f64,
        /// Value there.
        value_high: f64,
    },
    /// The function is NaN or infinite at a point where its sign is needed.
    #[error("f({at}) = {value} is not a finite number\n\nhint: choose an interval on which f is finite")]
    NotFinite {
        /// Argument of the function.
        at: f64,
        /// Value of the function.
        value: f64,
    },
    /// The factor of a bracketing search does not widen the interval, or the starting interval is empty.
    #[error(
        "a bracketing scan needs a factor above 1 and a starting interval of positive length, \
         got factor {factor} on [{low}, {high}]"
    )]
    CannotGrow {
        /// The factor given.
        factor: f64,
        /// Lower end of the starting interval.
        low: f64,
        /// Upper end of the starting interval.
        high: f64,
    },
}

/// Finds a root of f in [low, high], where f(low) and f(high) differ in sign (or one of them is 0).
///
/// Brent (1973, ch. 4): inverse quadratic interpolation and secants, safeguarded by bisection. The result is
/// within `tolerance` + 4 ε |root| of a sign change; `tolerance` = 0 gives all digits.
pub fn brent(mut f: impl FnMut(f64) -> f64, low: f64, high: f64, tolerance: f64) -> Result<f64, RootError> {
    let (value_low, value_high) = (f(low), f(high));
    brent_between(f, (low, value_low), (high, value_high), tolerance)
}

/// Like [`brent`], for ends `(x, f(x))` whose function values are already known.
pub fn brent_between(
    mut f: impl FnMut(f64) -> f64,
    low: (f64, f64),
    high: (f64, f64),
    tolerance: f64,
) -> Result<f64, RootError> {
    for (at, value) in [low, high] {
        // An infinite value has a sign, but secants through it are undefined.
        if !at.is_finite() || !value.is_finite() {
            return Err(RootError::NotFinite { at, value });
        }
    }
    if low.1 != 0.0 && high.1 != 0.0 && (low.1 > 0.0) == (high.1 > 0.0) {
        return Err(RootError::NoSignChange {
            low: low.0,
            value_low: low.1,
            high: high.0,
            value_high: high.1,
        });
    }
    // b is the best point so far, c the other end of the bracket, a the previous b.
    let (mut a, mut fa) = low;
    let (mut b, mut fb) = high;
    if fa == 0.0 {
        return Ok(a);
    }
    let (mut c, mut fc) = (a, fa);
    let mut last = b - a;
    let mut before_last = last;
    loop {
        if fc.abs() < fb.abs() {
            (a, b, c) = (b, c, b);
            (fa, fb, fc) = (fb, fc, fb);
        }
        let resolution = 2.0 * f64::EPSILON * b.abs() + 0.5 * tolerance;
        let half = 0.5 * (c - b);
        if half.abs() <= resolution || fb == 0.0 {
            return Ok(b);
        }
        let mut step = half;
        if before_last.abs() >= resolution && fa.abs() > fb.abs() {
            let s = fb / fa;
            let (mut p, mut q) = if a == c {
                (2.0 * half * s, 1.0 - s)
            } else {
                let (r, u) = (fb / fc, fa / fc);
                (s * (2.0 * half * u * (u - r) - (b - a) * (r - 1.0)), (u - 1.0) * (r - 1.0) * (s - 1.0))
            };
            if p > 0.0 {
                q = -q;
            } else {
                p = -p;
            }
            // The interpolation is accepted only if it lies well inside the bracket and the steps decrease by at least a
            // factor of two every second iteration.
            if 2.0 * p < (3.0 * half * q - (resolution * q).abs()).min((before_last * q).abs()) {
                step = p / q;
                before_last = last;
            } else {
                before_last = half;
            }
        } else {
            before_last = half;
        }
        last = step;
        (a, fa) = (b, fb);
        b += if step.abs() > resolution { step } else { resolution.copysign(half) };
        fb = f(b);
        if fb.is_nan() {
            return Err(RootError::NotFinite { at: b, value: fb });
        }
        if (fb > 0.0) == (fc > 0.0) {
            (c, fc) = (a, fa);
            last = b - a;
            before_last = last;
        }
    }
}

/// Widens [low, high] on the side where |f| is smaller, by `factor` times its length each time, until f changes
/// sign; at most `tries` times. Returns the interval.
pub fn bracket_outward(
    mut f: impl FnMut(f64) -> f64,
    low: f64,
    high: f64,
    factor: f64,
    tries: usize,
) -> Result<(f64, f64), RootError> {
    if !(factor > 1.0 && high > low) {
        return Err(RootError::CannotGrow { factor, low, high });
    }
    let (mut low, mut high) = (low, high);
    let (mut value_low, mut value_high) = (finite(low, f(low))?, finite(high, f(high))?);
    for _ in 0..tries {
        if crosses(value_low, value_high) {
            return Ok((low, high));
        }
        if value_low.abs() < value_high.abs() {
            low -= factor * (high - low);
            value_low = finite(low, f(low))?;
        } else {
            high += factor * (high - low);
            value_high = finite(high, f(high))?;
        }
    }
    if crosses(value_low, value_high) {
        return Ok((low, high));
    }
    Err(RootError::NoSignChange { low, value_low, high, value_high })
}

/// Multiplies x by `factor`, from `start` > 0 on, until f changes sign or `limit` is reached. Returns the last two points. This
/// is for positive roots of unknown size, such as times and rates.
pub fn bracket_upward(
    mut f: impl FnMut(f64) -> f64,
    start: f64,
    factor: f64,
    limit: f64,
) -> Result<(f64, f64), RootError> {
    if !(factor > 1.0 && start > 0.0 && limit > start) {
        return Err(RootError::CannotGrow { factor, low: start, high: limit });
    }
    let first = finite(start, f(start))?;
    let (mut low, mut value_low) = (start, first);
    while low < limit {
        let high = (low * factor).min(limit);
        let value_high = finite(high, f(high))?;
        if crosses(value_low, value_high) {
            return Ok((low, high));
        }
        (low, value_low) = (high, value_high);
    }
    Err(RootError::NoSignChange { low: start, value_low: first, high: low, value_high: value_low })
}

/// Finds all roots of f that cause a sign change between neighbours of a grid of `points` equidistant values on
/// [low, high]. Each is refined to full precision; they are returned in increasing order.
///
/// A sign change towards which |f| grows is a pole and is left out, as are intervals with a non-finite end. Pairs of roots
/// closer than the grid spacing, and roots without sign change, are not found.
pub fn find_roots_by_scan(mut f: impl FnMut(f64) -> f64, low: f64, high: f64, points: usize) -> Vec<f64> {
    let intervals = points.max(2) - 1;
    let grid = |i: usize| {
        let share = i as f64 / intervals as f64;
        low * (1.0 - share) + high * share
    };
    let mut roots = Vec::new();
    let mut left = (grid(0), f(grid(0)));
    if left.1 == 0.0 {
        roots.push(left.0);
    }
    for i in 1..=intervals {
        let right = (grid(i), f(grid(i)));
        if right.1 == 0.0 {
            roots.push(right.0);
        } else if left.1 != 0.0
            && crosses(left.1, right.1)
            && let Ok(root) = brent_between(&mut f, left, right, 0.0)
            && f(root).abs() <= left.1.abs().min(right.1.abs())
        {
            roots.push(root);
        }
        left = right;
    }
    roots
}

/// The position of a minimum, and the value of the function there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Minimum {
    /// Position of the minimum.
    pub at: f64,
    /// Value of the function at `at`.
    pub value: f64,
}

/// Finds a local minimum of f in [low, high], which is the global one there if f is unimodal (Brent 1973, ch. 5).
///
/// The method is golden-section search with parabolic steps. Within about √ε |x| of the minimum f is constant up to rounding,
/// so a `tolerance` below that does not improve the position. NaN values count as +∞.
pub fn minimum(mut f: impl FnMut(f64) -> f64, low: f64, high: f64, tolerance: f64) -> Minimum {
    let mut f = |x: f64| {
        let value = f(x);
        if value.is_nan() { f64::INFINITY } else { value }
    };
    let golden = 0.5 * (3.0 - 5.0_f64.sqrt());
    let (mut a, mut b) = (low.min(high), low.max(high));
    // x is the best point so far, w the second best, v the previous w.
    let mut x = a + golden * (b - a);
    let mut fx = f(x);
    let (mut w, mut v, mut fw, mut fv) = (x, x, fx, fx);
    let (mut step, mut before_last) = (0.0_f64, 0.0_f64);
    loop {
        let middle = 0.5 * (a + b);
        let resolution = f64::EPSILON.sqrt() * x.abs() + tolerance / 3.0 + f64::MIN_POSITIVE;
        if (x - middle).abs() <= 2.0 * resolution - 0.5 * (b - a) {
            return Minimum { at: x, value: fx };
        }
        let mut parabolic = false;
        if before_last.abs() > resolution && fv.is_finite() && fw.is_finite() {
            let r = (x - w) * (fx - fv);
            let q = (x - v) * (fx - fw);
            let mut p = (x - v) * q - (x - w) * r;
            let mut q = 2.0 * (q - r);
            if q > 0.0 {
                p = -p;
            } else {
                q = -q;
            }
            if p.abs() < (0.5 * q * before_last).abs() && p > q * (a - x) && p < q * (b - x) {
                before_last = step;
                step = p / q;
                parabolic = true;
                let u = x + step;
                if u - a < 2.0 * resolution || b - u < 2.0 * resolution {
                    step = resolution.copysign(middle - x);
                }
            }
        }
        if !parabolic {
            before_last = if x < middle { b - x } else { a - x };
            step = golden * before_last;
        }
        let u = x + if step.abs() >= resolution { step } else { resolution.copysign(step) };
        let fu = f(u);
        if fu <= fx {
            if u < x {
                b = x;
            } else {
                a = x;
            }
            (v, w, x) = (w, x, u);
            (fv, fw, fx) = (fw, fx, fu);
        } else {
            if u < x {
                a = u;
            } else {
                b = u;
            }
            if fu <= fw || w == x {
                (v, w) = (w, u);
                (fv, fw) = (fw, fu);
            } else if fu <= fv || v == x || v == w {
                (v, fv) = (u, fu);
            }
        }
    }
}

/// Whether zero lies between (or at) the two values; signs are compared because the product may underflow.
fn crosses(a: f64, b: f64) -> bool {
    (a <= 0.0 && b >= 0.0) || (a >= 0.0 && b <= 0.0)
}

fn finite(at: f64, value: f64) -> Result<f64, RootError> {
    if value.is_finite() { Ok(value) } else { Err(RootError::NotFinite { at, value }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counted(f: impl Fn(f64) -> f64, low: f64, high: f64) -> (f64, usize) {
        let mut calls = 0;
        let root = brent(
            |x| {
                calls += 1;
                f(x)
            },
            low,
            high,
            0.0,
        );
        (root.expect("bracketed"), calls)
    }

    #[test]
    fn brent_finds_smooth_roots_to_all_digits_in_few_calls() {
        let (root, calls) = counted(|x| x.cos() - x, 0.0, 1.0);
        assert!((root - 0.739_085_133_215_160_6).abs() <= 1e-15, "{root}");
        assert!(calls <= 12, "{calls} calls");
    }

    #[test]
    fn brent_converges_on_functions_for_which_secants_fail() {
        // A flat ninth power, a step of width 1e-3, an infinite slope, a jump.
        let (flat, calls) = counted(|x| (x - 0.3).powi(9), -1.0, 4.0);
        assert!((flat - 0.3).abs() < 1e-14, "{flat}");
        assert!(calls < 250, "{calls} calls");
        let (step, calls) = counted(|x| ((x - 0.7) * 1e3).tanh() + 0.5, -10.0, 10.0);
        assert!((step - (0.7 - 0.5_f64.atanh() * 1e-3)).abs() < 1e-14);
        assert!(calls < 60, "{calls} calls");
        let (steep, _) = counted(|x| (x - 0.1).cbrt(), -5.0, 1.0);
        assert!((steep - 0.1).abs() < 1e-15);
        let (jump, _) = counted(|x| if x < 2.5 { -1.0 } else { 3.0 }, 0.0, 10.0);
        assert!((jump - 2.5).abs() < 1e-14);
    }

    #[test]
    fn a_root_at_an_end_is_returned() {
        assert_eq!(brent(|x| x, 0.0, 1.0, 0.0), Ok(0.0));
        assert_eq!(brent(|x| x - 1.0, 0.0, 1.0, 0.0), Ok(1.0));
    }

    #[test]
    fn a_missing_sign_change_reports_both_values() {
        let error = brent(|x| x * x + 1.0, -1.0, 2.0, 0.0).expect_err("no root");
        assert_eq!(error, RootError::NoSignChange { low: -1.0, value_low: 2.0, high: 2.0, value_high: 5.0 });
        assert!(error.to_string().contains("f(2) = 5"));
        let error = brent(|x| 1.0 / x, 0.0, 1.0, 0.0).expect_err("infinite at 0");
        assert_eq!(error, RootError::NotFinite { at: 0.0, value: f64::INFINITY });
    }

    #[test]
    fn bracketing_widens_the_interval_until_it_contains_the_root() {
        let (low, high) = bracket_outward(|x| x + 1000.0, 0.0, 1.0, 1.6, 60).expect("root at -1000");
        assert!(low <= -1000.0 && high >= -1000.0);
        let (low, high) = bracket_upward(|t| t.ln() - 20.0, 1e-3, 10.0, 1e12).expect("root at e^20");
        assert!(low < 20.0_f64.exp() && high > 20.0_f64.exp() && high / low < 10.0 + 1e-9);
        assert!(bracket_outward(|x| x * x + 1.0, 0.0, 1.0, 2.0, 10).is_err());
        assert_eq!(
            bracket_upward(|_| 1.0, 1.0, 2.0, 3.0),
            Err(RootError::NoSignChange { low: 1.0, value_low: 1.0, high: 3.0, value_high: 1.0 })
        );
        assert!(matches!(bracket_upward(|x| x, 1.0, 0.5, 3.0), Err(RootError::CannotGrow { .. })));
    }

    #[test]
    fn a_scan_finds_every_root_once_and_no_pole() {
        let roots = find_roots_by_scan(f64::tan, -5.0, 5.0, 101);
        let pi = std::f64::consts::PI;
        assert_eq!(roots.len(), 3, "{roots:?}");
        for (root, exact) in roots.iter().zip([-pi, 0.0, pi]) {
            assert!((root - exact).abs() < 1e-14, "{root} {exact}");
        }
        // Roots that fall on grid points.
        assert_eq!(find_roots_by_scan(|x| x * (x - 1.0) * (x - 2.0), 0.0, 2.0, 5), vec![0.0, 1.0, 2.0]);
        // Values whose product underflows.
        let tiny = find_roots_by_scan(|x| 1e-200 * (x - 0.3), 0.0, 1.0, 6);
        assert!(tiny.len() == 1 && (tiny[0] - 0.3).abs() < 1e-15, "{tiny:?}");
        assert!(find_roots_by_scan(|_| f64::NAN, 0.0, 1.0, 11).is_empty());
    }

    #[test]
    fn minima_are_found_to_half_of_the_digits() {
        let cusp = minimum(|x| (x - 0.3).abs().sqrt(), -2.0, 5.0, 0.0);
        assert!((cusp.at - 0.3).abs() < 2e-8, "{cusp:?}");
        let quartic = minimum(|x| (x - 1.0).powi(4) + 2.0, -10.0, 3.0, 0.0);
        // (x-1)^4 is lost in the rounding of 2 for |x-1| < ε^(1/4) = 1.2e-4, so the position is not determined better.
        assert!((quartic.at - 1.0).abs() < 2e-4 && quartic.value == 2.0, "{quartic:?}");
        let edge = minimum(|x| x, 2.0, 7.0, 0.0);
        assert!((edge.at - 2.0).abs() < 2e-7, "{edge:?}");
        let barrier = minimum(|x| if x <= 0.0 { f64::NAN } else { x - x.ln() }, -1.0, 4.0, 0.0);
        assert!((barrier.at - 1.0).abs() < 5e-8, "{barrier:?}");
    }

    proptest! {
        #[test]
        fn brent_ends_within_the_tolerance_of_any_cubic_root(
            root in -50.0..50.0f64, width in 0.1..30.0f64, curvature in 0.0..4.0f64, tolerance in 1e-12..1e-2f64,
        ) {
            // Strictly increasing, so the root is unique.
            let f = |x: f64| (x - root) * (1.0 + curvature * (x - root).powi(2));
            let found = brent(f, root - width, root + 0.7 * width, tolerance).expect("bracketed");
            prop_assert!((found - root).abs() <= tolerance + 4.0 * f64::EPSILON * root.abs());
        }

        #[test]
        fn the_minimum_of_a_parabola_is_its_vertex(vertex in -9.0..9.0f64, scale in 1e-3..1e3f64) {
            let found = minimum(|x| scale * (x - vertex).powi(2), -10.0, 10.0, 1e-10);
            prop_assert!((found.at - vertex).abs() < 2e-7, "{found:?}");
        }
    }
}
