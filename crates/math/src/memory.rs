//! Memory for tables of many megabytes, and for loops that would ask for a little of it again and again.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

/// Calls `work` with room for so many numbers, which may hold anything: it belongs to the thread and is handed out again and
/// again. A call inside another one has room of its own.
///
/// ```
/// use didact_math::memory::with_room;
///
/// let sum = with_room(3, |squares| {
///     squares.iter_mut().zip([1.0, 2.0, 3.0]).for_each(|(s, x)| *s = x * x);
///     squares.iter().sum::<f64>()
/// });
/// assert_eq!(sum, 14.0);
/// ```
pub fn with_room<R>(len: usize, work: impl FnOnce(&mut [f64]) -> R) -> R {
    thread_local! {
        static ROOM: Cell<Option<AlignedTable>> = const { Cell::new(None) };
    }
    let mut room = ROOM.take().filter(|room| room.len() >= len).unwrap_or_else(|| AlignedTable::zeros(len));
    let result = work(&mut room[..len]);
    ROOM.set(Some(room));
    result
}

/// Bytes of a cache line on the processors that matter here. A vector that lies across two of them takes twice as long to load.
const LINE: usize = 64;

/// Bytes of a large page on most of them.
const LARGE_PAGE: usize = 1 << 21;

/// Numbers that begin at a cache line, in memory that the system is asked to map in large pages: a table of many megabytes
/// that is read again and again then needs few entries of the processor's page tables, and few interrupts when it is first
/// written.
///
/// ```
/// let table = didact_math::memory::AlignedTable::zeros(1 << 20);
/// assert!(table.len() == 1 << 20 && table.iter().all(|x| *x == 0.0));
/// assert!(table.as_ptr().addr().is_multiple_of(64));
/// ```
#[derive(Debug, Default)]
pub struct AlignedTable {
    /// The numbers, with a few in front of them that are not used.
    numbers: Vec<f64>,
    begin: usize,
}

impl AlignedTable {
    /// So many zeros.
    pub fn zeros(len: usize) -> Self {
        // Large tables fill whole large pages, also at both ends; what is spare there is never touched.
        let (align, whole) = if len * size_of::<f64>() >= LARGE_PAGE / 2 {
            (LARGE_PAGE, len.next_multiple_of(LARGE_PAGE / size_of::<f64>()))
        } else {
            (LINE, len)
        };
        let spare = align / size_of::<f64>() - 1;
        let mut numbers = vec![0.0; whole + spare];
        ask_for_large_pages(&numbers);
        let begin = numbers.as_ptr().align_offset(align).min(spare);
        numbers.truncate(begin + len);
        Self { numbers, begin }
    }
}

impl Deref for AlignedTable {
    type Target = [f64];
    #[inline]
    fn deref(&self) -> &[f64] {
        &self.numbers[self.begin..]
    }
}

impl DerefMut for AlignedTable {
    #[inline]
    fn deref_mut(&mut self) -> &mut [f64] {
        &mut self.numbers[self.begin..]
    }
}

/// A copy begins at a cache line of its own.
impl Clone for AlignedTable {
    fn clone(&self) -> Self {
        let mut copy = Self::zeros(self.len());
        copy.copy_from_slice(self);
        copy
    }
}

/// Asks the system to map numbers in large pages; of use before the first write to them. No effect on what they are, and none at all
/// where they are few or the system knows no such request.
fn ask_for_large_pages(table: &[f64]) {
    #[cfg(target_os = "linux")]
    {
        /// `MADV_HUGEPAGE` of Linux.
        const LARGE_PAGES: i32 = 14;
        /// Requests are for whole pages of the smallest kind, a divisor of this on every processor that Linux runs on.
        const PAGE: usize = 1 << 16;
        unsafe extern "C" {
            fn madvise(address: *mut std::ffi::c_void, length: usize, advice: i32) -> i32;
        }
        let range = table.as_ptr_range();
        let (begin, end) = ((range.start as usize).next_multiple_of(PAGE), range.end as usize / PAGE * PAGE);
        if begin < end {
            // SAFETY: a function of the C library that std links; this advice leaves the contents alone, the range lies inside
            // the table, and a system that refuses it says so in the result, which does not matter here.
            unsafe { madvise(begin as *mut std::ffi::c_void, end - begin, LARGE_PAGES) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = table;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_inside_one_another_are_apart() {
        with_room(4, |outer| {
            outer.fill(1.0);
            with_room(9, |inner| inner.fill(2.0));
            assert_eq!(outer, [1.0; 4]);
        });
        with_room(2, |again| assert_eq!(again.len(), 2));
    }

    #[test]
    fn tables_of_any_size_are_zero_and_keep_what_is_written() {
        for len in [0, 1, 5_000, 20_000, 3_000_000] {
            let mut table = AlignedTable::zeros(len);
            assert!(table.len() == len && table.iter().all(|x| *x == 0.0));
            table.iter_mut().enumerate().for_each(|(i, x)| *x = i as f64);
            ask_for_large_pages(&table);
            for table in [table.clone(), table] {
                assert!(table.iter().enumerate().all(|(i, x)| *x == i as f64));
                assert!(table.as_ptr().addr().is_multiple_of(LINE));
            }
        }
    }
}
