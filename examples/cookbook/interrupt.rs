//! A queue in a `static`, fed by an interrupt and emptied by an Embassy task. No allocator.
//!
//! ```text
//! sensor 3 is read
//! sensor 9 is read
//! 1000 edges made 2 reads
//! ```

use embassy_futures::block_on;
use requeue::embassy::WorkQueue;
use requeue::embassy::raw::CriticalSectionRawMutex;
use requeue::limiter::default_item_based;

/// Room for 16 sensors. A failed sensor is read again after 1 ms, 2 ms … or at its next edge.
static TO_READ: WorkQueue<CriticalSectionRawMutex, u8, 16> = WorkQueue::new(default_item_based());

/// Call this in an interrupt handler. It never waits, and a bouncing line causes one read.
fn on_edge(sensor: u8) {
    let _ = TO_READ.add(sensor);
}

/// The body of a task. On a board, spawn it: the executor sleeps until there is work.
async fn worker(reads: &mut u32) {
    let read = async |sensor: &u8| {
        println!("sensor {sensor} is read");
        *reads += 1;
    };
    let _ = TO_READ.run(read).await;
}

fn main() {
    for edge in 0..1000 {
        on_edge(if edge % 2 == 0 { 3 } else { 9 });
    }
    TO_READ.shut_down();
    let mut reads = 0;
    block_on(worker(&mut reads));
    println!("1000 edges made {reads} reads");
}
