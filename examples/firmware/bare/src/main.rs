#![no_std]
#![no_main]

use core::fmt::{self, Write};
use core::panic::PanicInfo;
use core::time::Duration;

use requeue_bare::binding::Clock;
use requeue_bare::limiter::Exponential;
use requeue_bare::{Action, Board, Instant, WorkQueue};
use riscv::interrupt::Interrupt;
use riscv_rt::core_interrupt;

/// What there is to do. A key names the work and carries no data: a run reads the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Job {
    Read { sensor: u8 },
    Blink,
}

/// A job that fails is retried after 10 ms, 20 ms, 40 ms and so on, up to a minute.
const BACKOFF: Exponential = Exponential::new(Duration::from_millis(10), Duration::from_secs(60));

/// Room for 16 keys.
static JOBS: WorkQueue<Virt, Job, 16> = WorkQueue::new(BACKOFF, Virt);

/// The sensor has raised its line. Ten edges make one run.
#[core_interrupt(Interrupt::MachineSoft)]
fn on_line() {
    write(LINE, 0);
    // Full or shut down, the queue returns the key as an error.
    let _ = JOBS.add(Job::Read { sensor: 0 });
}

/// The alarm ends the sleep of the loop, which then sets the next one.
#[core_interrupt(Interrupt::MachineTimer)]
fn on_alarm() {
    Virt.arm(None);
}

#[riscv_rt::entry]
fn main() -> ! {
    Virt.arm(None);
    // SAFETY: the handlers are in place, since the linker put them there.
    unsafe {
        riscv::register::mie::set_msoft();
        riscv::register::mie::set_mtimer();
        riscv::interrupt::enable();
    }
    let _ = JOBS.add_after(Job::Blink, Duration::from_millis(100));
    for _ in 0..10 {
        write(LINE, 1);
    }
    let ended = JOBS.run(|job| match job {
        // This sensor needs some time: it replies at the fourth attempt.
        Job::Read { sensor } if JOBS.failures(job) < 3 => {
            println(format_args!("sensor {sensor} does not reply"));
            Err("no reply")
        }
        Job::Read { sensor } => {
            println(format_args!("sensor {sensor} is read"));
            Ok(Action::Success)
        }
        Job::Blink => {
            println(format_args!("blink"));
            Ok(Action::RequeueAfter(Duration::from_millis(100)))
        }
    });
    // Returns when the queue is shut down.
    panic!("{ended:?}");
}

/// The board: QEMU's `virt`, whose clock has 10 MHz.
struct Virt;

const NANOS_PER_TICK: u64 = 100;
const LINE: usize = 0x0200_0000;
const ALARM: usize = 0x0200_4000;
const TIME: usize = 0x0200_BFF8;

impl Clock for Virt {
    fn now(&self) -> Instant {
        loop {
            let (high, low, again) = (read(TIME + 4), read(TIME), read(TIME + 4));
            if high == again {
                let ticks = u64::from(high) << 32 | u64::from(low);
                return Instant::from_nanos(ticks * NANOS_PER_TICK);
            }
        }
    }
}

impl Board for Virt {
    /// A time that has passed interrupts at once.
    fn arm(&self, at: Option<Instant>) {
        let tick = at.map_or(u64::MAX, |at| at.as_nanos().div_ceil(NANOS_PER_TICK));
        // The upper half first, and far away, so that no time in between rings.
        write(ALARM + 4, u32::MAX);
        write(ALARM, tick as u32);
        write(ALARM + 4, (tick >> 32) as u32);
    }

    fn idle(&self) {
        riscv::asm::wfi();
    }
}

/// Prints a line after its time, to the serial port.
fn println(line: fmt::Arguments<'_>) {
    struct Serial;

    impl Write for Serial {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            // SAFETY: the port's register for a byte to send.
            let mut send = |byte| unsafe { (0x1000_0000 as *mut u8).write_volatile(byte) };
            text.bytes().for_each(&mut send);
            Ok(())
        }
    }

    let millis = JOBS.now().as_nanos() / 1_000_000;
    let _ = writeln!(Serial, "{millis} ms: {line}");
}

#[panic_handler]
fn panic(why: &PanicInfo<'_>) -> ! {
    println(format_args!("{why}"));
    loop {
        riscv::asm::wfi();
    }
}

fn write(address: usize, value: u32) {
    // SAFETY: a register of a device that only this program uses.
    unsafe { (address as *mut u32).write_volatile(value) };
}

fn read(address: usize) -> u32 {
    // SAFETY: as above.
    unsafe { (address as *const u32).read_volatile() }
}
