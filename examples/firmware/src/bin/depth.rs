//! Calls whose depth of stack `cargo xtask firmware` reads from the machine code. The image is not
//! run.

#![no_std]
#![no_main]

use core::hint::black_box;
use core::time::Duration;

use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use requeue_embassy::binding::{AsShared, Ticket};
use requeue_embassy::limiter::default_item_based;
use requeue_embassy::{Action, WorkQueue};
use requeue_firmware::end;

static QUEUE: WorkQueue<CriticalSectionRawMutex, u16, 16> = WorkQueue::new(default_item_based());

#[unsafe(no_mangle)]
#[inline(never)]
fn depth_of_add(key: u16) {
    let _ = black_box(QUEUE.add(key));
}

#[unsafe(no_mangle)]
#[inline(never)]
fn depth_of_add_after(key: u16, delay: Duration) {
    let _ = black_box(QUEUE.add_after(key, delay));
}

#[unsafe(no_mangle)]
#[inline(never)]
fn depth_of_forget(key: u16) {
    black_box(QUEUE.forget(&key));
}

#[unsafe(no_mangle)]
#[inline(never)]
fn depth_of_try_get() -> Option<Ticket> {
    QUEUE.try_get()?.into_ticket()
}

#[unsafe(no_mangle)]
#[inline(never)]
fn depth_of_finish(ticket: Ticket, action: Action) {
    black_box(QUEUE.as_shared().finish(ticket, action));
}

#[cfg_attr(target_arch = "arm", cortex_m_rt::entry)]
#[cfg_attr(target_arch = "riscv32", riscv_rt::entry)]
fn main() -> ! {
    depth_of_add(black_box(1));
    depth_of_add_after(black_box(1), black_box(Duration::ZERO));
    depth_of_forget(black_box(1));
    if let Some(ticket) = depth_of_try_get() {
        depth_of_finish(ticket, black_box(Action::Success));
    }
    end(true)
}
