//! The slowest call of each kind, over all states of a small queue instead of chosen ones.

#![no_std]
#![no_main]

mod states;

use requeue_core::Queue;
use requeue_core::priority::Plain;
use requeue_firmware::end;

use states::{Keys, Kind, LIMITER};

impl Kind for Plain {
    fn queue<const N: usize>() -> Keys<Self, N> {
        Queue::new(LIMITER)
    }
}

#[cfg_attr(target_arch = "arm", cortex_m_rt::entry)]
#[cfg_attr(target_arch = "riscv32", riscv_rt::entry)]
fn main() -> ! {
    let states = states::begin();
    let found = [
        states.explore::<Plain, 1>(),
        states.explore::<Plain, 2>(),
        states.explore::<Plain, 3>(),
    ];
    let title = "instructions of the slowest call in any state";
    states::print(title, "any state", ["N = 1", "N = 2", "N = 3"], &found);
    // There are more of three keys.
    end(found[..2].iter().all(|found| found.is_closed))
}
