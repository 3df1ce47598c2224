//! A small application: sensors that raise an interrupt when they have data, a sensor that fails
//! and recovers, an uplink with a budget, and a processor that sleeps in between.
//!
//! | | |
//! |---|---|
//! | sensor 0 | has data every 10 ms |
//! | sensor 1 | every 25 ms; dead from 500 ms to 1500 ms: read again after 10 ms, 20 ms, 40 ms … |
//! | sensor 2 | bounces: hundreds of edges from 2.1 s on, and again while it is read |
//! | uplink | a report as often as a token bucket allows: three at once, then two a second |
//!
//! At 4.9 s everything is shut down and drained. What has happened, and when, is asserted.

#![no_std]
#![no_main]

mod timeline;
mod world;

use core::time::Duration;

use embassy_executor::Spawner;
use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use embassy_time::{Instant, Timer};
use portable_atomic::{AtomicU32, Ordering};
use requeue_embassy::limiter::{Exponential, TokenBucket};
use requeue_embassy::priority::Plain;
use requeue_embassy::{Action, WorkQueue};
use requeue_firmware::{alarm, board, end, executor, handler, println};

use timeline::Timeline;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Sensor(u8);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Report;

#[derive(Debug)]
struct NoReply;

const FIRST_RETRY: Duration = Duration::from_millis(10);
const LAST_RETRY: Duration = Duration::from_secs(1);

/// Two workers wait for it, and one call waits for the drain.
static TO_READ: WorkQueue<CriticalSectionRawMutex, Sensor, 8> =
    WorkQueue::new(Exponential::new(FIRST_RETRY, LAST_RETRY));

static TO_SEND: WorkQueue<CriticalSectionRawMutex, Report, 2, Plain, TokenBucket, 2> =
    WorkQueue::new(TokenBucket::new(2.0, 3));

const DIES_AT: u64 = 500;
const COMES_BACK_AT: u64 = 1500;
const BOUNCES_AT: u64 = 2100;
const ENDS_AT: u64 = 4900;
/// How long it takes to read sensor 2.
const READING_MS: u64 = 50;

/// The edges of each line, and the reads that they have caused.
static EDGES: [AtomicU32; 3] = [const { AtomicU32::new(0) }; 3];
static READS: [AtomicU32; 3] = [const { AtomicU32::new(0) }; 3];
static ATTEMPTS_ON_THE_DEAD: Timeline<16> = Timeline::new();
static REPORTS: Timeline<16> = Timeline::new();

/// The interrupt handler: adds a key, and returns.
fn on_interrupt(number: u16) {
    if let Some(sensor) = board::LINES.iter().position(|line| *line == number) {
        count(&EDGES[sensor]);
        // After the shutdown an edge has no effect.
        let _ = TO_READ.add(Sensor(sensor as u8));
    }
}

#[embassy_executor::task(pool_size = 2)]
async fn reader() {
    let ended = TO_READ.run(async |sensor| read(*sensor).await).await;
    ended.expect("a place for each worker");
}

async fn read(Sensor(index): Sensor) -> Result<Action, NoReply> {
    let now = Instant::now().as_millis();
    match index {
        1 if (DIES_AT..COMES_BACK_AT).contains(&now) => {
            ATTEMPTS_ON_THE_DEAD.note();
            return Err(NoReply);
        }
        // The first reply after it was dead.
        1 if world::revive() => ATTEMPTS_ON_THE_DEAD.note(),
        2 => Timer::after_millis(READING_MS).await,
        _ => {}
    }
    count(&READS[usize::from(index)]);
    Ok(Action::Success)
}

#[embassy_executor::task]
async fn uplink() {
    while let Ok(report) = TO_SEND.get().await {
        REPORTS.note();
        // The bucket says when the next report may be sent. After the shutdown it is a leftover.
        report.retry();
    }
}

#[embassy_executor::task]
async fn script() {
    TO_SEND.add(Report).expect("room for a report");
    at(DIES_AT).await;
    TO_READ.add(Sensor(1)).expect("room for every sensor");

    at(BOUNCES_AT).await;
    world::bounce();
    // In the middle of the run that this has made.
    at(BOUNCES_AT + READING_MS / 2).await;
    world::bounce();

    at(ENDS_AT).await;
    assert_eq!(TO_READ.drain().await, Ok(()));
    assert_eq!(TO_SEND.drain().await, Ok(()));
    judge();
    println!("sensor-hub: as expected");
    end(true)
}

/// Compares what has happened with what should have.
fn judge() {
    let slept = executor::SLEEPS.load(Ordering::Relaxed);
    let rang = alarm::RINGS.load(Ordering::Relaxed);
    let load = |counts: &[AtomicU32; 3]| counts.each_ref().map(|it| it.load(Ordering::Relaxed));
    let (edges, reads) = (load(&EDGES), load(&READS));
    println!("lines had {edges:?} edges, sensors were read {reads:?} times");
    println!("sensor 1 while it was dead, in ms: {ATTEMPTS_ON_THE_DEAD}");
    println!("reports, in ms: {REPORTS}");
    println!(
        "slept {slept} times; the alarm rang {rang} times, {} ticks of 1 kHz were not taken",
        ENDS_AT - u64::from(rang)
    );

    let doubled = [0, 10, 30, 70, 150, 310, 630, 1270].map(|after| DIES_AT + after);
    ATTEMPTS_ON_THE_DEAD.assert_is(&doubled);
    let burst = [
        0, 0, 0, 0, 500, 1000, 1500, 2000, 2500, 3000, 3500, 4000, 4500,
    ];
    REPORTS.assert_is(&burst);
    assert_eq!(
        (edges[2], reads[2]),
        (2 * world::EDGES, 2),
        "they make two runs"
    );
    assert_eq!(
        reads[0],
        ENDS_AT as u32 / 10 - 1,
        "sensor 0 is read every 10 ms"
    );
    // While it was dead it raised no interrupt. Then it was read when a retry was due.
    let silent = (DIES_AT + 1270) / 25 - DIES_AT / 25 + 1;
    assert_eq!(
        u64::from(reads[1]),
        ENDS_AT / 25 - silent,
        "sensor 1 is read every 25 ms"
    );
    let left = TO_SEND.leftovers().map(|left| left.key);
    assert!(left.eq([Report]), "the next report was due");
    assert_eq!(TO_READ.leftovers().count(), 0);
    // The ticks of the two lines, and seven retries, nine reports, two readings, the script.
    let deadlines = ENDS_AT / 10 + ENDS_AT / 25 + 24;
    assert!(
        u64::from(slept) <= deadlines + u64::from(edges[2]),
        "nothing wakes the processor but a deadline and a line that bounces"
    );
    // The emulator's nRF51 rings twice now and then.
    assert!(
        u64::from(rang) <= 2 * deadlines,
        "the alarm rings for deadlines alone"
    );
}

async fn at(millis: u64) {
    Timer::at(Instant::from_millis(millis)).await;
}

fn count(counter: &AtomicU32) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[cortex_m_rt::entry]
fn main() -> ! {
    handler::set(on_interrupt);
    board::start();
    executor::run(|spawner: Spawner| {
        spawner.spawn(reader().expect("the first of two"));
        spawner.spawn(reader().expect("the second of two"));
        spawner.spawn(uplink().expect("the only one"));
        spawner.spawn(world::line(0, 10).expect("the first of two"));
        spawner.spawn(world::line(1, 25).expect("the second of two"));
        spawner.spawn(script().expect("the only one"));
    })
}
