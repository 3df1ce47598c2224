//! How deep the stack gets: it is painted beforehand and looked at afterwards.

use crate::arch;

const PAINT: u32 = 0x5EED_5EED;
/// What the painter itself saves below the stack pointer that it has read. Less than this cannot be
/// told apart.
const MARGIN: usize = 48;

/// Bytes of stack below this function's own that `work` takes.
#[inline(never)]
pub fn depth(work: impl FnOnce()) -> usize {
    let (end, _) = arch::stack();
    let begin = arch::stack_pointer();
    let mut address = begin - MARGIN;
    while address > end {
        address -= 4;
        // SAFETY: memory of the stack that is not in use, since nothing is called in these loops.
        unsafe { (address as *mut u32).write_volatile(PAINT) };
    }
    work();
    let mut deepest = end;
    // SAFETY: as above.
    while deepest < begin - MARGIN && unsafe { (deepest as *const u32).read_volatile() } == PAINT {
        deepest += 4;
    }
    begin - deepest
}
