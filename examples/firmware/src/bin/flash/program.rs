//! A worker that polls a queue with delays and an exponential limiter: the programs whose flash is
//! compared differ only in the type of the queue and its settings.

use requeue_embassy::Instant;
use requeue_embassy::binding::Clock;

/// A clock that takes no flash, so that no driver is counted.
pub struct Foreign;

impl Clock for Foreign {
    fn now(&self) -> Instant {
        Instant::from_nanos(core::hint::black_box(1))
    }
}

/// The program, with a queue of this type that begins with these settings.
macro_rules! program {
    ($P:ty, $queue:expr, $set:expr) => {
        type Parts = ((), u8, program::Foreign);
        type Keys = WorkQueue<CriticalSectionRawMutex, u16, 16, $P, Exponential, 3, Parts>;

        static KEYS: Keys = WorkQueue::from_queue($queue, program::Foreign);

        #[cfg_attr(target_arch = "arm", cortex_m_rt::entry)]
        #[cfg_attr(target_arch = "riscv32", riscv_rt::entry)]
        fn main() -> ! {
            let set: fn(&Keys) = $set;
            set(&KEYS);
            let _ = black_box(KEYS.add(black_box(7)));
            let _ = black_box(KEYS.add_after(black_box(8), Duration::from_millis(black_box(5))));
            while let Some(guard) = KEYS.try_get() {
                let finished = if black_box(true) {
                    guard.success()
                } else {
                    guard.retry()
                };
                let _ = black_box(finished);
            }
            end(true)
        }
    };
}
