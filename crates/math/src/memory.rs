//! Memory for hot loops: scratch buffers that are reused, and large aligned buffers.
//!
//! Use [`with_scratch`] where a function that is called often needs a temporary slice, and [`AlignedBuffer`] for arrays of
//! many megabytes that are read repeatedly by vectorised loops.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

/// Calls `work` with a scratch slice of `len` numbers, whose contents are arbitrary: the memory belongs to the thread and is
/// reused by the next call. A call inside another one gets a slice of its own.
///
/// ```
/// use didact_math::memory::with_scratch;
///
/// let sum = with_scratch(3, |squares| {
///     squares.iter_mut().zip([1.0, 2.0, 3.0]).for_each(|(s, x)| *s = x * x);
///     squares.iter().sum::<f64>()
/// });
/// assert_eq!(sum, 14.0);
/// ```
pub fn with_scratch<R>(len: usize, work: impl FnOnce(&mut [f64]) -> R) -> R {
    thread_local! {
        static SCRATCH: Cell<Option<AlignedBuffer>> = const { Cell::new(None) };
    }
    let mut scratch =
        SCRATCH.take().filter(|scratch| scratch.len() >= len).unwrap_or_else(|| AlignedBuffer::zeros(len));
    let result = work(&mut scratch[..len]);
    SCRATCH.set(Some(scratch));
    result
}

/// Bytes of a cache line on x86-64 and most ARM processors. A vector register that straddles two lines takes twice as long to
/// load.
const CACHE_LINE: usize = 64;

/// Bytes of a huge page on x86-64 and most ARM processors.
const HUGE_PAGE: usize = 1 << 21;

/// A slice of numbers that begins at a cache line, in memory that the system is asked to map in huge pages.
///
/// With huge pages a buffer of many megabytes that is read repeatedly causes fewer misses of the translation lookaside
/// buffer, and fewer page faults when it is first written.
///
/// ```
/// let buffer = didact_math::memory::AlignedBuffer::zeros(1 << 20);
/// assert!(buffer.len() == 1 << 20 && buffer.iter().all(|x| *x == 0.0));
/// assert!(buffer.as_ptr().addr().is_multiple_of(64));
/// ```
#[derive(Debug, Default)]
pub struct AlignedBuffer {
    /// The numbers of the slice, after unused ones that are needed for the alignment.
    numbers: Vec<f64>,
    /// Index of the first number of the slice.
    begin: usize,
}

impl AlignedBuffer {
    /// Creates a buffer of `len` zeros.
    pub fn zeros(len: usize) -> Self {
        // A large buffer is aligned to huge pages and its allocation is rounded up to whole ones; the unused memory at
        // both ends is never written.
        let (align, whole) = if len * size_of::<f64>() >= HUGE_PAGE / 2 {
            (HUGE_PAGE, len.next_multiple_of(HUGE_PAGE / size_of::<f64>()))
        } else {
            (CACHE_LINE, len)
        };
        let spare = align / size_of::<f64>() - 1;
        let mut numbers = vec![0.0; whole + spare];
        advise_huge_pages(&numbers);
        let begin = numbers.as_ptr().align_offset(align).min(spare);
        numbers.truncate(begin + len);
        Self { numbers, begin }
    }
}

impl Deref for AlignedBuffer {
    type Target = [f64];
    #[inline]
    fn deref(&self) -> &[f64] {
        &self.numbers[self.begin..]
    }
}

impl DerefMut for AlignedBuffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [f64] {
        &mut self.numbers[self.begin..]
    }
}

/// The copy is aligned like the original.
impl Clone for AlignedBuffer {
    fn clone(&self) -> Self {
        let mut copy = Self::zeros(self.len());
        copy.copy_from_slice(self);
        copy
    }
}

/// Asks the system to map a slice in huge pages, before it is first written. The contents do not change. Nothing happens for
/// short slices, and on systems other than Linux.
fn advise_huge_pages(buffer: &[f64]) {
    #[cfg(target_os = "linux")]
    {
        /// Value of this constant in the headers of Linux.
        const MADV_HUGEPAGE: i32 = 14;
        /// `madvise` takes whole pages. The page sizes of the processors that Linux supports divide this number of bytes.
        const PAGE: usize = 1 << 16;
        unsafe extern "C" {
            fn madvise(address: *mut std::ffi::c_void, length: usize, advice: i32) -> i32;
        }
        let range = buffer.as_ptr_range();
        let (begin, end) = ((range.start as usize).next_multiple_of(PAGE), range.end as usize / PAGE * PAGE);
        if begin < end {
            // SAFETY: `madvise` is a function of the C library, which std links. This advice does not change the contents,
            // and the range lies inside the buffer. An error code is ignored, because the advice is optional.
            unsafe { madvise(begin as *mut std::ffi::c_void, end - begin, MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = buffer;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_scratch_slices_do_not_overlap() {
        with_scratch(4, |outer| {
            outer.fill(1.0);
            with_scratch(9, |inner| inner.fill(2.0));
            assert_eq!(outer, [1.0; 4]);
        });
        with_scratch(2, |again| assert_eq!(again.len(), 2));
    }

    #[test]
    fn buffers_of_any_size_start_at_zero_and_keep_what_is_written() {
        for len in [0, 1, 5_000, 20_000, 3_000_000] {
            let mut buffer = AlignedBuffer::zeros(len);
            assert!(buffer.len() == len && buffer.iter().all(|x| *x == 0.0));
            buffer.iter_mut().enumerate().for_each(|(i, x)| *x = i as f64);
            advise_huge_pages(&buffer);
            for buffer in [buffer.clone(), buffer] {
                assert!(buffer.iter().enumerate().all(|(i, x)| *x == i as f64));
                assert!(buffer.as_ptr().addr().is_multiple_of(CACHE_LINE));
            }
        }
    }
}
