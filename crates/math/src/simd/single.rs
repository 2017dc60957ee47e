//! Elementary functions in single precision that the f32 normals need, with a random 32-bit word as their argument.

/// −ln u for u = (w + ½)/2³² and a 32-bit word w. The relative error is below 3e-7, also for u close to 0 or to 1.
///
/// A uniform number rounded to f32 would determine 1 − u to 6e-8 only. Read as a signed integer, the word is 2³²u for u below
/// one half and 2³²(u − 1) above it, so that u near 0 and 1 − u near 0 are both converted with full relative precision.
/// The logarithm is then computed as in fdlibm `logf`: u = 2ᵏ(1+f), s = f/(2+f).
#[inline(always)]
pub fn minus_ln_word(word: u32) -> f32 {
    minus_ln_reduced(reduce_word(word))
}

/// The first half of [`minus_ln_word`], which returns (k, f, s); loops that are split in two run faster.
#[inline(always)]
pub fn reduce_word(word: u32) -> (f32, f32, f32) {
    const SCALE: f32 = 1.0 / 4294967296.0;
    const SQRT_HALF: u32 = 0x3f35_04f3;
    const ONE: u32 = 0x3f80_0000;
    let signed = (word as i32 as f32 + 0.5) * SCALE;
    let upper = signed < 0.0;
    let u = if upper { 1.0 + signed } else { signed };
    let lifted = u.to_bits().wrapping_add(ONE - SQRT_HALF);
    let exponent = (lifted >> 23) as i32 - 127;
    let reduced = f32::from_bits((lifted & 0x007f_ffff).wrapping_add(SQRT_HALF)) - 1.0;
    let f = if upper && exponent == 0 { signed } else { reduced };
    (exponent as f32, f, f / (2.0 + f))
}

/// The second half of [`minus_ln_word`]: −ln(2ᵏ(1+f)) from (k, f, s = f/(2+f)).
#[inline(always)]
pub fn minus_ln_reduced((k, f, s): (f32, f32, f32)) -> f32 {
    let z = s * s;
    let r = z * ((0.66666662693 + z * 0.40000972152) + z * z * (0.28498786688 + z * 0.24279078841));
    let half_square = 0.5 * f * f;
    (half_square - (s * (half_square + r) + k * 9.0580006145e-06)) - f - k * 6.9313812256e-01
}

/// (sin 2πu, cos 2πu) of the angle u = w/2³² of a 32-bit word w, to 2e-7 absolute.
///
/// The two leading bits (after rounding) are the quadrant; the remaining bits, as a signed integer, are the angle within it.
#[inline(always)]
pub fn sin_cos_word(word: u32) -> (f32, f32) {
    let q = word.wrapping_add(1 << 29) >> 30;
    let f = word.wrapping_sub(q << 30) as i32 as f32 * (1.0 / 4294967296.0);
    let w = f * f;
    let s = f * ((6.283185288 + w * -41.34166257) + w * w * (81.59254287 + w * -75.4016127));
    let c = 1.0 + w * ((-19.73920879 + w * 64.93936905) + w * w * (-85.44882009 + w * 59.42410598));
    let odd = q & 1 == 1;
    let (s, c) = (if odd { c } else { s }, if odd { s } else { c });
    let flip = |value: f32, q: u32| f32::from_bits(value.to_bits() ^ ((q & 2) << 30));
    (flip(s, q), flip(c, q.wrapping_add(1)))
}
