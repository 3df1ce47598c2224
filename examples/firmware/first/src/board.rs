//! What a HAL brings, for QEMU's lm3s6965evb: a time driver, and a line that an interrupt watches.

use core::cell::RefCell;
use core::task::Waker;

use cortex_m::peripheral::NVIC;
use cortex_m::peripheral::syst::SystClkSource;
use critical_section::Mutex;
use embassy_time_driver::{Driver, TICK_HZ};
use embassy_time_queue_utils::Queue;
use lm3s6965::Interrupt;

/// Of the processor, as QEMU emulates it.
const CLOCK_HZ: u32 = 12_500_000;

struct Ticks(Mutex<RefCell<State>>);

struct State {
    now: u64,
    tasks: Queue,
}

embassy_time_driver::time_driver_impl!(static TICKS: Ticks = Ticks(Mutex::new(RefCell::new(State {
    now: 0,
    tasks: Queue::new(),
}))));

impl Driver for Ticks {
    fn now(&self) -> u64 {
        critical_section::with(|section| self.0.borrow_ref(section).now)
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        critical_section::with(|section| {
            // The next tick wakes the task if its time has come by then.
            self.0
                .borrow_ref_mut(section)
                .tasks
                .schedule_wake(at, waker);
        });
    }
}

#[cortex_m_rt::exception]
fn SysTick() {
    critical_section::with(|section| {
        let mut state = TICKS.0.borrow_ref_mut(section);
        state.now += 1;
        let now = state.now;
        state.tasks.next_expiration(now);
    });
}

/// Starts the clock and enables the interrupt of the line.
pub fn start() {
    // SAFETY: nothing else uses SysTick.
    let mut core = unsafe { cortex_m::Peripherals::steal() };
    core.SYST.set_clock_source(SystClkSource::Core);
    core.SYST.set_reload(CLOCK_HZ / TICK_HZ as u32 - 1);
    core.SYST.clear_current();
    core.SYST.enable_interrupt();
    core.SYST.enable_counter();
    // SAFETY: no critical section relies on this interrupt being masked.
    unsafe { NVIC::unmask(Interrupt::GPIOA) };
}

/// Raises the line. No sensor is attached to an emulator.
pub fn raise_line() {
    NVIC::pend(Interrupt::GPIOA);
}
