#![no_std]
#![no_main]

use core::time::Duration;

use embassy_executor::Spawner;
use panic_halt as _;
use requeue_embassy::core::{ItemExponentialFailure, Retries};
use requeue_embassy::raw::CriticalSectionRawMutex;
use requeue_embassy::{Action, WorkQueue};

/// What there is to do. A key says what, never with which data: the newest is read when its turn
/// comes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Job {
    Read(u8),
    Upload,
}

/// Room for 16 keys. A job that fails comes back after 10 ms, 20 ms, 40 ms … up to a minute.
static JOBS: WorkQueue<CriticalSectionRawMutex, Job, 16> = WorkQueue::new(
    ItemExponentialFailure::new(Duration::from_millis(10), Duration::from_secs(60)),
);

/// The sensor's line has gone up. Ten edges before the worker comes make one run; an edge while it
/// reads makes one more.
#[cortex_m_rt::exception]
unsafe fn DefaultHandler(_number: i16) {
    // With a HAL: `#[interrupt] fn EXTI0()`. Full or shut down, the key comes back as an error.
    let _ = JOBS.add(Job::Read(0));
}

/// As many as there are jobs that may run at once. No two of them ever have the same job.
#[embassy_executor::task(pool_size = 2)]
async fn worker() {
    let give_up = |_job: &Job, _why: Broken| { /* light the red lamp */ };
    let work = async |job: &Job| match job {
        Job::Read(sensor) => {
            read(*sensor).await?;
            // Whatever was added meanwhile, one upload follows.
            let _ = JOBS.add_after(Job::Upload, Duration::from_secs(1));
            // And look again in a minute, edge or not.
            Ok(Action::RequeueAfter(Duration::from_secs(60)))
        }
        Job::Upload => upload().await.map(|()| Action::Success),
    };
    // Ends when the queue is shut down; an error says that there are more workers than places.
    let _ = JOBS.run_with(Retries::at_most(8), work, give_up).await;
}

struct Broken;

async fn read(_sensor: u8) -> Result<(), Broken> {
    Ok(())
}

async fn upload() -> Result<(), Broken> {
    Ok(())
}

#[embassy_executor::main]
async fn main(spawner: Spawner) {
    // Here the HAL starts its clocks and its time driver.
    for _ in 0..2 {
        spawner.spawn(worker().expect("two of them"));
    }
}
