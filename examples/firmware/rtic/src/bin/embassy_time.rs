//! A sensor and a lamp on RTIC, with two workers and a time driver of embassy-time, as a HAL brings
//! it.

#![no_std]
#![no_main]

#[path = "../../../first/src/board.rs"]
mod board;
#[path = "../section.rs"]
mod section;

use panic_semihosting as _;

#[rtic::app(device = lm3s6965, dispatchers = [SSI0, QEI0])]
mod app {
    use core::time::Duration;

    use cortex_m::peripheral::scb::SystemHandler;
    use cortex_m_semihosting::hprintln;
    use requeue_embassy::limiter::Exponential;
    use requeue_embassy::raw::CriticalSectionRawMutex;
    use requeue_embassy::{Action, WorkQueue};

    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Job {
        Read { sensor: u8 },
        Blink,
    }

    const BACKOFF: Exponential =
        Exponential::new(Duration::from_millis(10), Duration::from_secs(60));

    static JOBS: WorkQueue<CriticalSectionRawMutex, Job, 8> = WorkQueue::new(BACKOFF);

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(mut context: init::Context) -> (Shared, Local) {
        // The clock's handler takes a critical section, so a section has to mask it.
        // SAFETY: no section has begun.
        unsafe {
            context
                .core
                .SCB
                .set_priority(SystemHandler::SysTick, 1 << 5)
        };
        crate::board::start();
        let _ = work::spawn();
        let _ = second::spawn();
        let _ = JOBS.add_after(Job::Blink, Duration::from_millis(100));
        for _ in 0..10 {
            crate::board::raise_line();
        }
        (Shared {}, Local {})
    }

    #[task(binds = GPIOA, priority = 3)]
    fn line_is_raised(_: line_is_raised::Context) {
        let _ = JOBS.add(Job::Read { sensor: 0 });
    }

    #[task(priority = 1)]
    async fn work(_: work::Context) {
        let _ = JOBS.run(async |job: &Job| reconcile(job)).await;
    }

    /// More urgent: it interrupts `work`. The queue wakes the worker that has waited longer.
    #[task(priority = 2)]
    async fn second(_: second::Context) {
        let _ = JOBS.run(async |job: &Job| reconcile(job)).await;
    }

    fn reconcile(job: &Job) -> Result<Action, &'static str> {
        let now = embassy_time::Instant::now().as_millis();
        match job {
            Job::Read { sensor } if JOBS.failures(job) < 3 => {
                hprintln!("{} ms: sensor {} does not reply", now, sensor);
                Err("no reply")
            }
            Job::Read { sensor } => {
                hprintln!("{} ms: sensor {} is read", now, sensor);
                Ok(Action::Success)
            }
            Job::Blink => {
                hprintln!("{} ms: blink", now);
                Ok(Action::RequeueAfter(Duration::from_millis(100)))
            }
        }
    }
}
