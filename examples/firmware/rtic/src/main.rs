//! A queue that RTIC's interrupts feed and its software tasks await. No Embassy executor.
//!
//! To link it a firmware adds its `memory.x`, and a time driver of `embassy-time`.

#![no_std]
#![no_main]

use panic_halt as _;

#[rtic::app(device = lm3s6965, dispatchers = [SSI0])]
mod app {
    use requeue_embassy::limiter::default_item_based;
    use requeue_embassy::raw::CriticalSectionRawMutex;
    use requeue_embassy::{Action, WorkQueue};

    /// Not a resource: every task and interrupt may use it, and none needs a lock.
    static TO_READ: WorkQueue<CriticalSectionRawMutex, u8, 16> =
        WorkQueue::new(default_item_based());

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let _ = work::spawn();
        (Shared {}, Local {})
    }

    #[task(binds = GPIOA)]
    fn line_is_raised(_: line_is_raised::Context) {
        let _ = TO_READ.add(3);
    }

    #[task(priority = 1)]
    async fn work(_: work::Context) {
        let read = async |_sensor: &u8| Action::Success;
        let _ = TO_READ.run(read).await;
    }
}
