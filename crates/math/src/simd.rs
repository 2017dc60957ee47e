//! Elementary functions over slices, vectorised by the compiler: no intrinsics, no SIMD crate.
//!
//! Each kernel is written once, as a branch-free scalar function in [`scalar`] (selects, no calls), and a loop over
//! a slice. [`dispatch!`](crate::dispatch) compiles the loop twice, for the baseline target and for AVX2, and picks
//! at run time. Fused multiply-add is used where the code says `mul_add` and nowhere else, nothing is reassociated, and
//! `+ − × ÷ √` and `mul_add` are correctly rounded by IEEE 754, so **the numbers are bitwise the same on every path**: the
//! choice changes the speed only. Processors without FMA compute it in software, correctly and slowly.
//!
//! Largest errors against `libm`, on the grids of the tests:
//!
//! | kernel | domain | error |
//! |---|---|---|
//! | [`exp`] | all | 1 ulp |
//! | [`ln`] | all | 1 ulp |
//! | [`sin_cos_turns`] | 0 ≤ u < 1 | 2 ulp |
//! | [`asin`] | −1 ≤ x ≤ 1 | 2 ulp |
//! | [`erf`] | all | 3 ulp, so 3.4e-16 absolute |
//! | [`exp_minus_square`] | all | 2 ulp |

mod erf;
pub mod scalar;
pub mod single;

use std::sync::atomic::{AtomicU8, Ordering};

/// The instruction set a dispatched loop runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// What every processor of the compiled target has (SSE2 on x86-64).
    Portable,
    /// 256-bit vectors: AVX2, with FMA enabled for loops that ask for `mul_add` by name.
    Avx2,
}

const UNKNOWN: u8 = 0;
const PORTABLE: u8 = 1;
const AVX2: u8 = 2;

static CHOSEN: AtomicU8 = AtomicU8::new(UNKNOWN);

/// The path that dispatched loops take now; detected once, then one relaxed load.
#[inline]
pub fn path() -> Path {
    match CHOSEN.load(Ordering::Relaxed) {
        PORTABLE => Path::Portable,
        AVX2 => Path::Avx2,
        _ => detect(),
    }
}

/// Asks for a path, for timings and tests; the processor's best is taken when it has not the one asked for.
///
/// Acts on the whole process. No number changes, so this is safe at any time.
pub fn choose(path: Path) {
    match path {
        Path::Portable => CHOSEN.store(PORTABLE, Ordering::Relaxed),
        Path::Avx2 => {
            detect();
        }
    }
}

#[cold]
fn detect() -> Path {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        CHOSEN.store(AVX2, Ordering::Relaxed);
        return Path::Avx2;
    }
    CHOSEN.store(PORTABLE, Ordering::Relaxed);
    Path::Portable
}

/// Compiles a function for the baseline target and for AVX2, and chooses at run time.
///
/// The body should be a loop that the compiler can vectorise: it may call `#[inline(always)]` functions, such as those
/// of [`simd::scalar`](crate::simd::scalar), and nothing else that has branches. Arguments are plain names; types may
/// not be generic.
///
/// ```
/// didact_math::dispatch! {
///     /// y ← y + asin(x), elementwise.
///     pub fn add_asin(x: &[f64], y: &mut [f64]) {
///         for (y, &x) in y.iter_mut().zip(x) {
///             *y += didact_math::simd::scalar::asin(x);
///         }
///     }
/// }
/// let mut y = [1.0; 3];
/// add_asin(&[0.0, 0.0, 0.0], &mut y);
/// assert_eq!(y, [1.0; 3]);
/// ```
#[macro_export]
macro_rules! dispatch {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $out:ty)? $body:block) => {
        $(#[$meta])*
        #[inline]
        $vis fn $name($($arg: $type),*) $(-> $out)? {
            #[inline(always)]
            fn body($($arg: $type),*) $(-> $out)? $body

            // Out of line, so that callers are not compiled around a loop that they hardly ever take.
            #[inline(never)]
            fn portable($($arg: $type),*) $(-> $out)? {
                body($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                #[inline(never)]
                fn wide($($arg: $type),*) $(-> $out)? {
                    body($($arg),*)
                }
                if $crate::simd::path() == $crate::simd::Path::Avx2 {
                    // SAFETY: this path is chosen only after the processor was seen to have AVX2 and FMA.
                    return unsafe { wide($($arg),*) };
                }
            }
            portable($($arg),*)
        }
    };
}

/// Asks the processor to bring the cache line of an address near: for reads that its own prediction misses. The address may
/// lie anywhere, since nothing is read; no effect where there is no such instruction.
#[inline(always)]
pub fn prefetch(address: *const f64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: part of every x86-64 processor; a hint that does not fault, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

dispatch! {
    /// y ← y + factor x, as far as both go.
    pub fn add_scaled(y: &mut [f64], factor: f64, x: &[f64]) {
        for (y, x) in y.iter_mut().zip(x) {
            *y = factor.mul_add(*x, *y);
        }
    }
}

/// Elements that the loops take at a time. A length that the compiler knows leaves no remainder loop: a few elements
/// at the end of a list, or a list of a few, are computed as a whole chunk with idle places.
const CHUNK: usize = 8;

macro_rules! slice_kernels {
    ($($formula:literal $name:ident $in_place:ident;)*) => {$(
        dispatch! {
            #[doc = concat!($formula, ", elementwise. Panics when the lengths differ.")]
            pub fn $name(input: &[f64], output: &mut [f64]) {
                assert_eq!(input.len(), output.len(), "input and output of a kernel have the same length");
                let (whole, rest) = input.as_chunks::<CHUNK>();
                let (whole_out, rest_out) = output.as_chunks_mut::<CHUNK>();
                for (x, y) in whole.iter().zip(whole_out) {
                    for i in 0..CHUNK {
                        y[i] = scalar::$name(x[i]);
                    }
                }
                if !rest.is_empty() {
                    let mut last = [0.0; CHUNK];
                    last[..rest.len()].copy_from_slice(rest);
                    for x in &mut last {
                        *x = scalar::$name(*x);
                    }
                    rest_out.copy_from_slice(&last[..rest.len()]);
                }
            }
        }
        dispatch! {
            #[doc = concat!($formula, ", elementwise and in place.")]
            pub fn $in_place(values: &mut [f64]) {
                let (whole, rest) = values.as_chunks_mut::<CHUNK>();
                for x in whole {
                    for i in 0..CHUNK {
                        x[i] = scalar::$name(x[i]);
                    }
                }
                if !rest.is_empty() {
                    let mut last = [0.0; CHUNK];
                    last[..rest.len()].copy_from_slice(rest);
                    for x in &mut last {
                        *x = scalar::$name(*x);
                    }
                    rest.copy_from_slice(&last[..rest.len()]);
                }
            }
        }
    )*};
}

slice_kernels! {
    "exp(x)" exp exp_in_place;
    "ln(x)" ln ln_in_place;
    "asin(x)" asin asin_in_place;
    "erf(x) = 2/√π ∫₀ˣ exp(−t²) dt" erf erf_in_place;
    "exp(−x²)" exp_minus_square exp_minus_square_in_place;
}

dispatch! {
    /// sin(2πu) and cos(2πu), elementwise, for u in [0, 1). Panics when the lengths differ.
    pub fn sin_cos_turns(turns: &[f64], sine: &mut [f64], cosine: &mut [f64]) {
        assert!(turns.len() == sine.len() && turns.len() == cosine.len(), "the slices of sin_cos_turns have the same length");
        for ((&u, s), c) in turns.iter().zip(sine).zip(cosine) {
            (*s, *c) = scalar::sin_cos_turns(u);
        }
    }
}

/// Runs tests of one path alone: another test that chose a path meanwhile would make the comparison empty.
#[cfg(test)]
pub(crate) fn on_path<T>(path: Path, work: impl FnOnce() -> T) -> T {
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    choose(path);
    let result = work();
    detect();
    result
}

#[cfg(test)]
mod tests;
