//! The slowest call of each kind, over all states of two keys with levels, in a group, or with a
//! policy.

#![no_std]
#![no_main]

mod states;

use requeue_core::priority::{Groups, Levels, Plain, WithPolicy};
use requeue_core::{GroupLimits, Instant, Policy, Queue};
use requeue_firmware::end;

use states::{Keys, Kind, LIMITER};

/// Every key can be added at either level.
impl Kind for Levels<2> {
    fn queue<const N: usize>() -> Keys<Self, N> {
        Queue::new(LIMITER)
    }
}

type InGroups = Groups<u8, Plain, 2>;

/// Keys 0 and 1 are a group. At most one of its keys is active.
impl Kind for InGroups {
    fn queue<const N: usize>() -> Keys<Self, N> {
        let mut queue = Queue::with_groups(LIMITER, (), |key| key / 2);
        let limits = GroupLimits::new().max_active(1);
        queue.at(Instant::EPOCH).limit_groups(limits);
        queue
    }
}

/// A failure holds its key.
impl Kind for WithPolicy {
    fn queue<const N: usize>() -> Keys<Self, N> {
        Queue::new(LIMITER).with_policy(Policy::new().hold_failures())
    }
}

#[cfg_attr(target_arch = "arm", cortex_m_rt::entry)]
#[cfg_attr(target_arch = "riscv32", riscv_rt::entry)]
fn main() -> ! {
    let states = states::begin();
    let found = [
        states.explore::<Levels<2>, 2>(),
        states.explore::<InGroups, 2>(),
        states.explore::<WithPolicy, 2>(),
    ];
    let title = "instructions of the slowest call in any state, N = 2";
    let kinds = ["levels", "groups", "policy"];
    states::print(title, "any state of two keys", kinds, &found);
    end(found.iter().all(|found| found.is_closed))
}
