//! Measures the depth of the stack: paints it before the work, and looks for the paint afterwards.

use crate::arch;

const PAINT: u32 = 0x5EED_5EED;
/// Bytes that the painter itself saves below the stack pointer that it has read. A smaller depth
/// cannot be measured.
const MARGIN: usize = 48;
/// Bytes that are painted. A larger depth cannot be measured.
const PAINTED: usize = 4096;

/// Returns the bytes of stack that `work` takes, below the frame of this function.
///
/// # Panics
///
/// If `work` takes more than the paint covers.
#[inline(never)]
pub fn depth(work: impl FnOnce()) -> usize {
    let begin = arch::stack_pointer();
    let end = arch::stack().0.max(begin - PAINTED);
    let mut address = begin - MARGIN;
    while address > end {
        address -= 4;
        // SAFETY: this part of the stack is unused, because these loops call no function.
        unsafe { (address as *mut u32).write_volatile(PAINT) };
    }
    work();
    let mut deepest = end;
    // SAFETY: as above.
    while deepest < begin - MARGIN && unsafe { (deepest as *const u32).read_volatile() } == PAINT {
        deepest += 4;
    }
    assert!(deepest > end, "the stack is deeper than its paint");
    begin - deepest
}
