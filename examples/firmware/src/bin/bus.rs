//! Two sensors on one bus, and at most one of them is read at a time: the bus is a group.
//!
//! | time | |
//! |---|---|
//! | 0 ms | three sensors of bus 1 and one of bus 2 have data: each bus has one reader |
//! | 50 ms | bus 1 is flooded by six sensors; a sensor of bus 2 is read at once all the same |
//! | 100 ms | bus 1 is paused, and resumed at 120 ms |
//! | 150 ms | shutdown: the drain honours the limit, and ends |
//!
//! A reading takes 5 ms. Which sensor was read, and when, is asserted.

#![no_std]
#![no_main]

use core::cell::RefCell;

use critical_section::Mutex;
use embassy_executor::Spawner;
use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use embassy_time::{Instant, Timer};
use heapless::Vec;
use portable_atomic::{AtomicU32, Ordering};
use requeue_embassy::GroupLimits;
use requeue_embassy::limiter::{Exponential, default_item_based};
use requeue_embassy::priority::{Groups, Plain};
use requeue_embassy::{Action, Queue, QueueClock, WorkQueue};
use requeue_firmware::{board, end, executor, println};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Sensor {
    bus: u8,
    address: u8,
}

/// Two buses.
/// Room for eight keys; three workers wait, and one call waits for the drain.
type Readings = WorkQueue<CriticalSectionRawMutex, Sensor, 8, Groups<u8, Plain, 2>, Exponential, 4>;

static READINGS: Readings = WorkQueue::from_queue(
    Queue::with_groups(default_item_based(), (), |sensor: &Sensor| sensor.bus),
    QueueClock,
);

const ONE_AT_A_TIME: GroupLimits = GroupLimits::new().max_active(1);
const READING_MS: u64 = 5;

/// How many sensors of each bus are being read.
static ACTIVE: [AtomicU32; 3] = [const { AtomicU32::new(0) }; 3];

/// When a reading began, in milliseconds, and of which sensor: bus and address.
type Begun = (u64, u8, u8);
static BEGUN: Mutex<RefCell<Vec<Begun, 24>>> = Mutex::new(RefCell::new(Vec::new()));

#[embassy_executor::task(pool_size = 3)]
async fn reader() {
    let ended = READINGS.run(async |sensor| read(*sensor).await).await;
    ended.expect("a place for each worker");
}

async fn read(Sensor { bus, address }: Sensor) -> Result<Action, ()> {
    let active = &ACTIVE[usize::from(bus)];
    assert_eq!(
        active.fetch_add(1, Ordering::Relaxed),
        0,
        "bus {bus} is in use"
    );
    let begun = (Instant::now().as_millis(), bus, address);
    critical_section::with(|section| BEGUN.borrow_ref_mut(section).push(begun))
        .expect("room for every reading");
    Timer::after_millis(READING_MS).await;
    active.fetch_sub(1, Ordering::Relaxed);
    Ok(Action::Success)
}

fn have_data<const N: usize>(bus: u8, addresses: [u8; N]) {
    for address in addresses {
        READINGS.add(Sensor { bus, address }).expect("room for it");
    }
}

#[embassy_executor::task]
async fn script() {
    READINGS.limit_groups(ONE_AT_A_TIME);
    have_data(1, [40, 41, 42]);
    have_data(2, [40]);

    at(50).await;
    have_data(1, [43, 44, 45, 46, 47, 48]);
    have_data(2, [41]);

    at(100).await;
    READINGS.pause_group(1).expect("room for two buses");
    have_data(1, [40]);
    at(120).await;
    READINGS.unpause_group(&1);

    at(150).await;
    have_data(1, [40, 41, 42]);
    assert_eq!(READINGS.drain().await, Ok(()));
    judge();
    println!("bus: as expected");
    end(true)
}

/// Compares what has happened with what should have.
fn judge() {
    let begun = critical_section::with(|section| BEGUN.borrow_ref(section).clone());
    println!("readings, as (ms, bus, address): {begun:?}");
    let expected = [
        (0, 1, 40),
        (0, 2, 40),
        (5, 1, 41),
        (10, 1, 42),
        (50, 1, 43),
        (50, 2, 41),
        (55, 1, 44),
        (60, 1, 45),
        (65, 1, 46),
        (70, 1, 47),
        (75, 1, 48),
        (120, 1, 40),
        (150, 1, 40),
        (155, 1, 41),
        (160, 1, 42),
    ];
    assert_eq!(*begun, expected, "the limit, and the other bus");
    let state = READINGS.group(&1);
    assert!(
        state.is_none(),
        "a bus without work takes no place: {state:?}"
    );
}

async fn at(millis: u64) {
    Timer::at(Instant::from_millis(millis)).await;
}

#[cfg_attr(target_arch = "arm", cortex_m_rt::entry)]
#[cfg_attr(target_arch = "riscv32", riscv_rt::entry)]
fn main() -> ! {
    board::start();
    executor::run(|spawner: Spawner| {
        for _ in 0..3 {
            spawner.spawn(reader().expect("one of three"));
        }
        spawner.spawn(script().expect("the only one"));
    })
}
