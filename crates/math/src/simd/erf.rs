//! erf(x) and exp(−x²), and the distribution function Φ(z) and density φ(z) of the standard normal.

use super::scalar::{ROUND, exp_moderate, exp_sum, polynomial, power_of_two};
use std::f64::consts::{LN_2, LOG2_E};

/// Mask that keeps the 26 leading bits of the mantissa of a double; the square of the result is then exact.
const LEADING: u64 = !((1 << 27) - 1);

/// exp(−x²) within 2 ulp.
///
/// Rounding x² to a double would cause an error of about x² ulp. With h the leading half of the bits of x, h² is exact and
/// exp(−x²) = exp(−h² − (x−h)(x+h)), where the second term is a small correction.
#[inline(always)]
pub fn exp_minus_square(x: f64) -> f64 {
    let size = x.abs();
    let size = if size > 28.0 { 28.0 } else { size }; // exp(−28²) underflows to 0
    let h = f64::from_bits(size.to_bits() & LEADING);
    exp_sum(-h * h, -((size - h) * (size + h)))
}

/// erf(x) = 2/√π ∫₀ˣ exp(−t²) dt, within 3 ulp (3.4e-16 absolute).
///
/// For |x| < 1 it is x P(x²) with a polynomial P. Otherwise it is 1 − exp(−x²) Q(t) with t = (x−3)/(x+3), the variable in
/// which exp(x²) erfc(x) is close to a polynomial Q on [1, 6] (M. M. Shepherd and J. G. Laframboise 1981). Beyond 5.93 erf
/// rounds to ±1.
#[inline(always)]
pub fn erf(x: f64) -> f64 {
    let size = x.abs();
    let size = if size > 6.0 { 6.0 } else { size };
    let square = size * size;
    // The leading term is added last, so that the rounding errors of the small terms do not matter.
    let near = std::f64::consts::FRAC_2_SQRT_PI * size
        + size
            * (square
                * polynomial!(
                    square;
                    -0.376126389031835404,
                    0.112837916709450063,
                    -0.0268661706432377704,
                    0.00522397760711642273,
                    -0.000854832597538969208,
                    0.000120552949048397079,
                    -0.0000149247369074196603,
                    1.64474247033173624e-6,
                    -1.62084838018717059e-7,
                    1.37200645467776856e-8,
                    -7.79589882700214224e-10,
                ));
    let t = (size - 3.0) / (size + 3.0);
    let scaled_complement = polynomial!(t;
        0.17900115118138995,
        -0.326233560043037175,
        0.245603801712331945,
        -0.150115936500787439,
        0.0716658371977487434,
        -0.0243924993182731931,
        0.00426913634750825636,
        0.000707746444390153731,
        -0.000597062351709328428,
        0.0000452547263548335414,
        0.0000640618207353054674,
        -0.0000128488945125235288,
        -8.00802131941268433e-6,
        2.02360317964175664e-6,
        1.2801900862962662e-6,
    );
    // The rounding of x² causes an error of x² e^{−x²} ulp, which is negligible beside 1.
    let far = 1.0 - exp_moderate(-square) * scaled_complement;
    (if size < 1.0 { near } else { far }).copysign(x)
}

/// The distribution function Φ(z) of the standard normal, from `density` = φ(z) and Mills' ratio; within 4e-16 absolute.
#[inline(always)]
pub fn normal_cdf(z: f64, density: f64, mills_ratio: f64) -> f64 {
    let tail = density * mills_ratio;
    if z < 0.0 { tail } else { 1.0 - tail }
}

/// Mills' ratio Φ(−|z|)/φ(z), accurate enough for Φ within 1e-17 absolute.
///
/// It is a polynomial in t = (|z|−7/2)/(|z|+7/2), a minimax fit for |z| ≤ 8.4 under the weight exp(−z²/2); beyond, Φ(−|z|) < 3e-17.
#[inline(always)]
pub fn mills_ratio(z: f64) -> f64 {
    let size = z.abs();
    let size = if size > 8.4 { 8.4 } else { size };
    let t = (size - 3.5) / (size + 3.5);
    polynomial!(t;
        0.266567768968232762,
        -0.4690896602784912183,
        0.3154723410232064797,
        -0.1545070983219867432,
        0.04779021419126949627,
        -0.003914495677588404672,
        -0.003460984917439242991,
        0.0009830784418486034533,
        0.0003318335717100937483,
        -0.0001418291318730061736,
        -0.00004176595002936894889,
        0.00003313486316476189961,
        0.00002332276470464539317,
        6.099386929770037473e-6,
        6.369458491262620422e-7,
    )
}

/// The density φ(z) = exp(−z²/2)/√(2π) of the standard normal, within 2e-16 absolute.
///
/// With z² = −2k ln 2 + q, φ(z) = 2ᵏ P(q), where P(q) is a polynomial approximation of exp(−q/2)/√(2π). Single doubles are
/// precise enough for z² and ln 2, because a relative error ε of x = z²/2 changes e^{−x} by ε x e^{−x} ≤ ε/e.
#[inline(always)]
pub fn normal_density(z: f64) -> f64 {
    let square = z * z;
    // At z² = 1400 φ is below 1e-300. A NaN fails the comparison and is kept.
    let square = if square > 1400.0 { 1400.0 } else { square };
    let rounded = square.mul_add(-0.5 * LOG2_E, ROUND);
    let k = rounded - ROUND;
    let q = k.mul_add(2.0 * LN_2, square);
    let p = polynomial!(q;
        0.3989422804014326779,
        -0.199471140200716339,
        0.04986778505017919115,
        -0.008311297508363053545,
        0.001038912188541983202,
        -0.0001038912188565550383,
        8.657601605415309606e-6,
        -6.184001017724233667e-7,
        3.864985997943484019e-8,
        -2.147243462429598988e-9,
        1.076454820984190462e-10,
        -4.869903594092036524e-12,
    );
    power_of_two(rounded) * p
}
