#![no_std]
#![no_main]

mod board;

use core::time::Duration;

use cortex_m_semihosting::hprintln;
use embassy_executor::Spawner;
use embassy_time::{Instant, Timer};
use lm3s6965::interrupt;
use panic_semihosting as _;
use requeue_embassy::Policy;
use requeue_embassy::limiter::Exponential;
use requeue_embassy::priority::WithPolicy;
use requeue_embassy::raw::CriticalSectionRawMutex;
use requeue_embassy::{Action, Queue, QueueClock, RunContext, RunLimits, WorkQueue};

/// What there is to do. A key names the work and carries no data: a run reads the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Job {
    Read { sensor: u8 },
    Upload,
}

/// A job that fails is retried after 10 ms, 20 ms, 40 ms … up to a minute.
const BACKOFF: Exponential = Exponential::new(Duration::from_millis(10), Duration::from_secs(60));

/// A job that has failed waits for its retry, even if its line is raised again.
const POLICY: Policy = Policy::new().hold_failures();

/// Room for 16 keys, and for what the policy keeps of each.
type Jobs = WorkQueue<CriticalSectionRawMutex, Job, 16, WithPolicy>;

static JOBS: Jobs = WorkQueue::from_queue(Queue::new(BACKOFF).with_policy(POLICY), QueueClock);

/// The sensor has raised its line. Ten edges before a worker is free make one run; an edge during
/// that run makes one more.
#[interrupt]
fn GPIOA() {
    // Full or shut down, the queue returns the key as an error.
    let _ = JOBS.add(Job::Read { sensor: 0 });
}

/// Two workers: two jobs may run at once, and never the same job twice at once.
#[embassy_executor::task(pool_size = 2)]
async fn worker() {
    let work = async |job: &Job, run: RunContext| match *job {
        Job::Read { sensor } => {
            read(sensor, run.attempt).await?;
            // However many sensors are read in this second, one upload follows.
            let _ = JOBS.add_after(Job::Upload, Duration::from_secs(1));
            // Read it again in a minute, edge or not.
            Ok(Action::RequeueAfter(Duration::from_secs(60)))
        }
        Job::Upload => upload().await.map(|()| Action::Success),
    };
    let ended = JOBS.run_with(
        RunLimits::new().max_retries(8),
        work,
        |job, _, attempt| hprintln!("{} ms: {:?} failed, attempt {}", now(), job, attempt),
        |job, _| hprintln!("{} ms: {:?} is given up", now(), job),
    );
    // Returns when the queue is shut down.
    ended
        .await
        .expect("the queue has a place for three waiters");
}

#[derive(Debug)]
struct NoReply;

/// This sensor needs some time: it replies at the fourth attempt.
async fn read(sensor: u8, attempt: u32) -> Result<(), NoReply> {
    if attempt < 4 {
        return Err(NoReply);
    }
    hprintln!("{} ms: sensor {} is read", now(), sensor);
    Ok(())
}

async fn upload() -> Result<(), NoReply> {
    hprintln!("{} ms: uploaded", now());
    Ok(())
}

fn now() -> u64 {
    Instant::now().as_millis()
}

#[embassy_executor::main]
async fn main(spawner: Spawner) {
    board::start();
    for _ in 0..2 {
        spawner.spawn(worker().expect("the pool has two"));
    }
    Timer::after_millis(5).await;
    for _ in 0..10 {
        board::raise_line();
    }
    // The sensor keeps asking to be read, every 7 ms.
    for _ in 0..9 {
        Timer::after_millis(7).await;
        board::raise_line();
    }
}
