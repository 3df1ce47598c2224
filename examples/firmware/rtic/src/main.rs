#![no_std]
#![no_main]

mod section;

use panic_semihosting as _;
use rtic_monotonics::systick::SystickBackend;

rtic_monotonics::systick_monotonic!(Mono, 1_000);

/// The clock of the queue. Without a `Mono` take embassy-time's: the second program does.
type Clock = requeue_embassy::RticClock<SystickBackend, 1_000>;

#[rtic::app(device = lm3s6965, dispatchers = [SSI0])]
mod app {
    use core::sync::atomic::{AtomicU32, Ordering};
    use core::time::Duration;

    use cortex_m::peripheral::NVIC;
    use cortex_m_semihosting::hprintln;
    use lm3s6965::{Interrupt, interrupt};
    use requeue_embassy::limiter::Exponential;
    use requeue_embassy::priority::Plain;
    use requeue_embassy::raw::CriticalSectionRawMutex;
    use requeue_embassy::{Action, Queue, WorkQueue};

    use super::{Clock, Mono};

    /// What there is to do. A key names the work and carries no data.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Job {
        Read { sensor: u8 },
        Blink,
    }

    /// A job that fails is retried after 10 ms, 20 ms, 40 ms and so on, up to a minute.
    const BACKOFF: Exponential =
        Exponential::new(Duration::from_millis(10), Duration::from_secs(60));

    /// Room for 8 keys and 3 calls that wait.
    type Jobs = WorkQueue<CriticalSectionRawMutex, Job, 8, Plain, Exponential, 3, ((), u8, Clock)>;

    /// Not a resource: every task and interrupt may use it, and none needs a lock.
    static JOBS: Jobs = WorkQueue::from_queue(Queue::new(BACKOFF), Clock::new());

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(context: init::Context) -> (Shared, Local) {
        Mono::start(context.core.SYST, 12_500_000);
        let mut nvic = context.core.NVIC;
        // SAFETY: the handler of this line takes no critical section.
        unsafe {
            nvic.set_priority(Interrupt::GPIOB, 0);
            NVIC::unmask(Interrupt::GPIOB);
        }
        let _ = work::spawn();
        let _ = JOBS.add_after(Job::Blink, Duration::from_millis(100));
        for _ in 0..10 {
            NVIC::pend(Interrupt::GPIOA);
        }
        (Shared {}, Local {})
    }

    /// The sensor has raised its line. Ten edges make one run.
    #[task(binds = GPIOA, priority = 2)]
    fn line_is_raised(_: line_is_raised::Context) {
        let _ = JOBS.add(Job::Read { sensor: 0 });
    }

    #[task(priority = 1)]
    async fn work(_: work::Context) {
        let mut attempts = 0;
        let ended = JOBS.run(async |job: &Job| match job {
            Job::Read { sensor } => {
                attempts += 1;
                if attempts < 4 {
                    hprintln!("{} ms: sensor {} does not reply", now(), sensor);
                    return Err("no reply");
                }
                hprintln!("{} ms: sensor {} is read", now(), sensor);
                Ok(Action::Success)
            }
            Job::Blink => {
                hprintln!("{} ms: blink", now());
                check_the_urgent_line();
                Ok(Action::RequeueAfter(Duration::from_millis(100)))
            }
        });
        // Returns when the queue is shut down.
        let _ = ended.await;
    }

    fn now() -> u64 {
        JOBS.now().as_nanos() / 1_000_000
    }

    /// What the most urgent interrupt does: anything but using the queue.
    #[interrupt]
    fn GPIOB() {
        EDGES.fetch_add(1, Ordering::Relaxed);
    }

    static EDGES: AtomicU32 = AtomicU32::new(0);

    /// The line that is raised while the queue is locked is served at once, and does not wait for
    /// the end of the critical section.
    fn check_the_urgent_line() {
        let before = EDGES.load(Ordering::Relaxed);
        let during = critical_section::with(|_| {
            NVIC::pend(Interrupt::GPIOB);
            cortex_m::asm::isb();
            EDGES.load(Ordering::Relaxed)
        });
        assert_eq!(during, before + 1, "it waits for the critical section");
    }
}
