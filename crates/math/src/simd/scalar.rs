//! The functions of [`simd`](super) for one number. They have no branches and are `#[inline(always)]`, for use in loops that
//! are compiled by [`dispatch!`](crate::dispatch).
//!
//! The reductions and minimax coefficients of `exp`, `ln` and `asin` are those of fdlibm (Sun Microsystems 1993, freely
//! distributable); those of `sin_cos_turns` and `erf` are Chebyshev fits made for this file with 40 digits.

pub use super::erf::{erf, exp_minus_square, mills_ratio, normal_cdf, normal_density};

/// ln 2 = LN2_HI + LN2_LO. LN2_HI has 21 trailing zero bits, so that k·LN2_HI is exact for |k| < 2²¹.
const LN2_HI: f64 = 6.93147180369123816490e-01;
const LN2_LO: f64 = 1.90821492927058770002e-10;

/// Adding 1.5·2⁵² to a number below 2⁵¹ rounds it to the nearest integer, which is then in the low bits of the mantissa.
pub(super) const ROUND: f64 = 6755399441055744.0;

/// Mask of the mantissa of a double.
const MANTISSA: u64 = (1 << 52) - 1;

/// Σ_i c_i zⁱ by Estrin's scheme, which pairs the terms. The chain of dependent operations, whose latency limits short loops,
/// has length log₂ N instead of N as in Horner's rule. It is a macro because the compiler does not vectorise a loop over
/// elements that contains a loop over coefficients.
macro_rules! polynomial {
    ($z:expr; $only:expr $(,)?) => { $only };
    ($z:expr; $($c:expr),+ $(,)?) => {{
        let z: f64 = $z;
        polynomial!(@pair z; []; $($c,)+)
    }};
    (@pair $z:ident; [$($done:expr,)*]; $a:expr, $b:expr, $($rest:expr,)*) => {
        polynomial!(@pair $z; [$($done,)* f64::mul_add($z, $b, $a),]; $($rest,)*)
    };
    (@pair $z:ident; [$($done:expr,)*]; $($last:expr,)?) => {
        polynomial!($z * $z; $($done,)* $($last,)?)
    };
}
pub(crate) use polynomial;

/// Σ_i c_i zⁱ by Horner's rule, highest coefficient first. It has the fewest operations, for loops that are long enough to
/// hide the latency of its chain of dependent operations.
macro_rules! horner {
    ($z:expr; $highest:expr $(, $c:expr)* $(,)?) => {{
        let z: f64 = $z;
        let sum: f64 = $highest;
        $(let sum = sum.mul_add(z, $c);)*
        sum
    }};
}

/// eˣ, within 1 ulp, including subnormal results; 0 and ∞ where it under- and overflows.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    exp_sum(x, 0.0)
}

/// e^{a+b} with |b| ≪ 1, for an argument that is known to more digits than a double has. With a + b = k ln 2 + r,
/// eʳ = 1 + r + r c/(2 − c), where c = r − r² P(r²) and r coth(r/2) = 2 + r² P(r²).
#[inline(always)]
pub(super) fn exp_sum(a: f64, b: f64) -> f64 {
    // At these limits the result is 0 or ∞ already. A NaN fails both comparisons and is kept.
    let a = if a < -746.0 { -746.0 } else { a };
    let a = if a > 710.0 { 710.0 } else { a };
    let k = (a * std::f64::consts::LOG2_E + ROUND) - ROUND;
    let high = a - k * LN2_HI;
    let low = k * LN2_LO - b;
    let r = high - low;
    let z = r * r;
    let c = r - z * polynomial!(z;
        1.66666666666666019037e-01,
        -2.77777777770155933842e-03,
        6.61375632143793436117e-05,
        -1.65339022054652515390e-06,
        4.13813679705723846039e-08,
    );
    let y = 1.0 + ((r * c / (2.0 - c) - low) + high);
    // 2ᵏ is applied as two factors 2^{k/2}, which are normal numbers even when the result is subnormal or near the largest
    // double.
    let half = k * 0.5 + ROUND;
    let rest = (k - (half - ROUND)) + ROUND;
    y * power_of_two(half) * power_of_two(rest)
}

/// eˣ for |x| ≤ 708, within 2 ulp. It is faster than [`exp`], because it does not handle under- and overflow and needs no
/// division.
#[inline(always)]
pub(super) fn exp_moderate(x: f64) -> f64 {
    let rounded = x.mul_add(std::f64::consts::LOG2_E, ROUND);
    let k = rounded - ROUND;
    let r = k.mul_add(-LN2_LO, k.mul_add(-LN2_HI, x));
    // The minimax polynomial of (eʳ − 1 − r)/r², whose error is 4e-18 of eʳ for |r| ≤ (ln 2)/2.
    let p = horner!(r;
        2.5000013913453014473e-8,
        2.7630306208172276253e-7,
        2.7557586818266118464e-6,
        0.000024801492949755010567,
        0.00019841269505759292153,
        0.0013888888943759844822,
        0.0083333333334949830607,
        0.041666666666529728703,
        0.16666666666666411501,
        0.50000000000000106687,
    );
    let y = 1.0 + (r * r).mul_add(p, r);
    y * power_of_two(rounded)
}

/// eˣ for x ≤ 0, within 2 ulp; below −700 it stays at e^{−700} = 1e-304.
#[inline(always)]
pub fn exp_of_negative(x: f64) -> f64 {
    exp_moderate(if x < -700.0 { -700.0 } else { x })
}

/// (tanh z, 1 − tanh² z), within 3 and 6 ulp for |z| ≤ 350.
///
/// With t = e^{−2|z|}, tanh|z| = (1 − t)/(1 + t) and 1 − tanh² = 4t/(1 + t)². For |z| < 0.45, where
/// 1 − t has lost digits, the value is Lambert's continued fraction z/(1 + z²/(3 + z²/(5 + …))) up to its seventh level, whose
/// error is 5e-17.
#[inline(always)]
pub fn tanh_and_slope(z: f64) -> (f64, f64) {
    let size = z.abs();
    let size = if size > 350.0 { 350.0 } else { size };
    let t = exp_moderate(-2.0 * size);
    let inverse = 1.0 / (1.0 + t);
    let x = size * size;
    // The continued fraction as a ratio, without its leading term z, which is added exactly.
    let above = horner!(x; -27.0, -2772.0, -45_045.0);
    let below = horner!(x; 28.0, 3150.0, 62_370.0, 135_135.0);
    let near = (size * x).mul_add(above / below, size);
    let value = if size < 0.45 { near } else { (1.0 - t) * inverse };
    (value.copysign(z), 4.0 * t * inverse * inverse)
}

/// Returns 2ᵏ from ROUND + k, by moving the low bits of the mantissa into the exponent.
#[inline(always)]
pub(super) fn power_of_two(rounded: f64) -> f64 {
    f64::from_bits(rounded.to_bits().wrapping_add(1023) << 52)
}

/// ln x, within 1 ulp; −∞ at 0, NaN below.
#[inline(always)]
pub fn ln(x: f64) -> f64 {
    let tiny = x < f64::MIN_POSITIVE;
    let scaled = if tiny { x * 18014398509481984.0 } else { x }; // 2⁵⁴ makes subnormal numbers normal
    let y = ln_parts(scaled, if tiny { -54.0 } else { 0.0 });
    let y = if x < f64::INFINITY { y } else { x }; // ∞ and NaN
    let y = if x > 0.0 { y } else { f64::NEG_INFINITY };
    if x >= 0.0 { y } else { f64::NAN }
}

/// ln x for positive, finite, normal x. It is faster than [`ln`], because it handles no special cases.
#[inline(always)]
pub fn ln_normal(x: f64) -> f64 {
    ln_parts(x, 0.0)
}

/// Returns ln(x) + shift·ln 2. With x = 2ᵏ(1+f), 1+f in [√½, √2), and s = f/(2+f),
/// ln(1+f) = f − f²/2 + s (f²/2 + R(s²)).
#[inline(always)]
fn ln_parts(x: f64, shift: f64) -> f64 {
    const SQRT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    const ONE: u64 = 0x3ff0_0000_0000_0000;
    let lifted = x.to_bits().wrapping_add(ONE - SQRT_HALF);
    // The biased exponent is converted to a double by writing it into the mantissa of 2⁵², which is then subtracted.
    let k = f64::from_bits((lifted >> 52) | 0x4330_0000_0000_0000) - (4503599627370496.0 + 1023.0) + shift;
    let f = f64::from_bits((lifted & MANTISSA).wrapping_add(SQRT_HALF)) - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let r = z * polynomial!(z;
        6.666666666666735130e-01,
        3.999999999940941908e-01,
        2.857142874366239149e-01,
        2.222219843214978396e-01,
        1.818357216161805012e-01,
        1.531383769920937332e-01,
        1.479819860511658591e-01,
    );
    let half_square = 0.5 * f * f;
    k * LN2_HI - ((half_square - (s * (half_square + r) + k * LN2_LO)) - f)
}

/// (sin 2πu, cos 2πu) within 2 ulp, for 0 ≤ u < 1 (the error is the same for all |u| < 2⁴⁹).
///
/// Because the angle is given in turns, its reduction is exact: q = round(4u), f = u − q/4 in [−1/8, 1/8].
#[inline(always)]
pub fn sin_cos_turns(u: f64) -> (f64, f64) {
    let rounded = 4.0 * u + ROUND;
    let f = u - 0.25 * (rounded - ROUND);
    let w = f * f;
    // The leading term 2πf is added last, so that it has a single rounding error.
    let s = std::f64::consts::TAU * f
        + f * (w * polynomial!(
            w;
            -41.341702240399636207,
            81.605249275948035209,
            -76.705859704274550647,
            42.058685020160894047,
            -15.093804209987113512,
            3.7808689593022955184,
        ));
    let c = 1.0
        + w * polynomial!(w;
            -19.73920880217871723,
            64.939394022668242743,
            -85.456817206643804246,
            60.244641352702008933,
            -26.426253275854721364,
            7.9032069115696784291,
            -1.6990343940660636356,
        );
    // In odd quadrants q sine and cosine are exchanged; bit 1 of q is the sign of the sine, bit 1 of q + 1 that of the cosine.
    let q = rounded.to_bits();
    let odd = q & 1 == 1;
    let (s, c) = (if odd { c } else { s }, if odd { s } else { c });
    let flip = |value: f64, q: u64| f64::from_bits(value.to_bits() ^ ((q & 2) << 62));
    (flip(s, q), flip(c, q.wrapping_add(1)))
}

/// arcsin x within 2 ulp on [−1, 1], NaN outside.
///
/// For |x| < ½ it is x + x R(x²) with a rational function R. Otherwise it is π/2 − 2 arcsin √z with z = (1 − |x|)/2.
#[inline(always)]
pub fn asin(x: f64) -> f64 {
    const HALF_PI_LOW: f64 = 6.12323399573676603587e-17;
    let size = x.abs();
    let small = size < 0.5;
    let z = if small { x * x } else { 0.5 - 0.5 * size };
    let s = if small { size } else { z.sqrt() };
    let numerator = z * polynomial!(z;
        1.66666666666666657415e-01,
        -3.25565818622400915405e-01,
        2.01212532134862925881e-01,
        -4.00555345006794114027e-02,
        7.91534994289814532176e-04,
        3.47933107596021167570e-05,
    );
    let denominator = polynomial!(z;
        1.0,
        -2.40339491173441421878e+00,
        2.02094576023350569471e+00,
        -6.88283971605453293030e-01,
        7.70381505559019352791e-02,
    );
    let y = s + s * (numerator / denominator);
    let y = if small { y } else { std::f64::consts::FRAC_PI_2 - (2.0 * y - HALF_PI_LOW) };
    y.copysign(x)
}

/// arcsin x within 2 ulp for |x| ≤ 5/9: x + x³ P(x²) with a Chebyshev fit, without square root and division.
///
/// It takes a quarter of the time of [`asin`]. The arguments C_ij/√((1 + C_ii)(1 + C_jj)) in the closed forms of erf units
/// lie in this range for fields of variance C_ii ≤ 5/4. Even and odd terms of P are summed separately, which halves the chain of dependent operations
/// and needs few more registers.
#[inline(always)]
pub fn asin_near(x: f64) -> f64 {
    let z = x * x;
    let w = z * z;
    let even = horner!(w;
        0.044282705028530946883,
        0.035129359996727703743,
        0.012184168212255246083,
        0.01400732255503672022,
        0.022372300949218107854,
        0.044642857197671130074,
        0.16666666666666694393,
    );
    let odd = horner!(w;
        -0.039916722759543525887,
        -0.0017535137590047211434,
        0.011161733099273077333,
        0.017349690697275055856,
        0.030381940567704929201,
        0.074999999999696616971,
    );
    let sum = odd.mul_add(z, even);
    (x * z).mul_add(sum, x)
}
