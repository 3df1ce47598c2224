//! How deep the stack gets: it is painted beforehand and looked at afterwards.

use crate::arch;

const PAINT: u32 = 0x5EED_5EED;
/// What the painter itself may be using.
const MARGIN: usize = 128;

/// Bytes of stack that `work` takes, whatever its caller has.
#[inline(never)]
pub fn depth(work: impl FnOnce()) -> usize {
    let (end, _) = arch::stack();
    let begin = arch::stack_pointer() - MARGIN;
    for address in (end..begin).step_by(4) {
        // SAFETY: below the stack pointer, where nobody's variables are. Interrupts are off or use
        // more of it, which is what is measured.
        unsafe { (address as *mut u32).write_volatile(PAINT) };
    }
    work();
    let mut words = (end..begin).step_by(4);
    // SAFETY: as above.
    let deepest =
        words.find(|&address| unsafe { (address as *const u32).read_volatile() } != PAINT);
    deepest.map_or(0, |deepest| begin + MARGIN - deepest)
}
