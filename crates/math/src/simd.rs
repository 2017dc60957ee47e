//! Elementary functions over slices, in loops that the compiler vectorises.
//!
//! Use the functions of this module where exp, ln, asin, erf and the like are needed for many numbers at once, and
//! [`dispatch!`](crate::dispatch) to compile a loop of your own in the same way. No intrinsics and no SIMD crate are used.
//!
//! Each function is written once, as a scalar function in [`scalar`] without branches and calls, and as a loop over a
//! slice. [`dispatch!`](crate::dispatch) compiles the loop twice, for the baseline target and for AVX2, and chooses at run
//! time. **The results are bitwise equal on both code paths**; the choice changes the speed only. The reasons are that
//! fused multiply-add is used exactly where the code says `mul_add`, that the compiler does not reorder floating-point
//! operations, and that `+ − × ÷ √` and `mul_add` are correctly rounded by IEEE 754. On processors without FMA `mul_add`
//! is computed in software, correctly but slowly.
//!
//! Largest errors against `libm`, on the grids of the tests (ulp: unit in the last place):
//!
//! | function | domain | error |
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

/// The instruction set for which a dispatched loop was compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// The instructions that every processor of the compiled target has (SSE2 on x86-64).
    Portable,
    /// AVX2 (256-bit vectors) and FMA, which is used only where the code says `mul_add`.
    Avx2,
}

const UNKNOWN: u8 = 0;
const PORTABLE: u8 = 1;
const AVX2: u8 = 2;

static CHOSEN: AtomicU8 = AtomicU8::new(UNKNOWN);

/// The code path that dispatched loops take. The processor is examined at the first call only; later calls are one relaxed
/// atomic load.
#[inline]
pub fn path() -> Path {
    match CHOSEN.load(Ordering::Relaxed) {
        PORTABLE => Path::Portable,
        AVX2 => Path::Avx2,
        _ => detect(),
    }
}

/// Chooses a code path, for timings and tests. A processor without AVX2 or FMA stays on [`Path::Portable`].
///
/// This acts on the whole process. It is safe at any time, because both code paths give the same numbers.
pub fn choose(path: Path) {
    match path {
        Path::Portable => CHOSEN.store(PORTABLE, Ordering::Relaxed),
        Path::Avx2 => {
            detect();
        }
    }
}

/// Examines the processor and stores the best code path that it supports.
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
/// The body should be a loop that the compiler can vectorise. It may call `#[inline(always)]` functions, such as those of
/// [`simd::scalar`](crate::simd::scalar), and should otherwise have no calls and no branches. Arguments are plain names, and
/// the function cannot be generic.
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

            // Not inlined, so that the registers and the size of callers do not depend on a loop that is rarely used.
            #[inline(never)]
            fn portable($($arg: $type),*) $(-> $out)? {
                body($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                #[inline(never)]
                fn avx2($($arg: $type),*) $(-> $out)? {
                    body($($arg),*)
                }
                if $crate::simd::path() == $crate::simd::Path::Avx2 {
                    // SAFETY: this path is chosen only after AVX2 and FMA were detected.
                    return unsafe { avx2($($arg),*) };
                }
            }
            portable($($arg),*)
        }
    };
}

/// Asks the processor to load the cache line of an address, for reads that its own prefetching does not predict. The address
/// need not be valid, because nothing is read. There is no effect on processors other than x86-64.
#[inline(always)]
pub fn prefetch(address: *const f64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has this instruction, and it does not fault at any address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

dispatch! {
    /// y ← y + factor x, elementwise, up to the length of the shorter slice.
    pub fn add_scaled(y: &mut [f64], factor: f64, x: &[f64]) {
        for (y, x) in y.iter_mut().zip(x) {
            *y = factor.mul_add(*x, *y);
        }
    }
}

/// Number of elements that a loop computes at a time. With a constant length the compiler needs no remainder loop: the last
/// elements, if fewer than a chunk, are padded with zeros to a whole chunk.
const CHUNK: usize = 8;

macro_rules! slice_functions {
    ($($formula:literal $name:ident $in_place:ident;)*) => {$(
        dispatch! {
            #[doc = concat!($formula, ", elementwise. Panics when the lengths differ.")]
            pub fn $name(input: &[f64], output: &mut [f64]) {
                assert_eq!(input.len(), output.len(), "input and output of a slice function have the same length");
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

slice_functions! {
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

/// Runs `work` on one code path while no other test can choose another one.
#[cfg(test)]
pub(crate) fn on_path<T>(path: Path, work: impl FnOnce() -> T) -> T {
    static LOCK: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _guard = LOCK.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    choose(path);
    let result = work();
    detect();
    result
}

#[cfg(test)]
mod tests;
