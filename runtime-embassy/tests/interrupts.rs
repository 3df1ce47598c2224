//! Keys that are added from elsewhere at any moment: threads stand in for interrupts, which a
//! critical section keeps out as it keeps out a thread.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use requeue_embassy::limiter::NoLimit;
use requeue_embassy::priority::Plain;
use requeue_embassy::raw::CriticalSectionRawMutex;
use requeue_embassy::{ManualClock, Queue, WaitError, WorkQueue};

const KEYS: usize = 16;
const ROUNDS: u32 = 2_000;

type ByHand = ((), u8, &'static ManualClock);
type Keys = WorkQueue<CriticalSectionRawMutex, usize, KEYS, Plain, NoLimit, 3, ByHand>;

/// Every key that was added is worked on after it was added: what a worker last saw of a key is the
/// last that was written, whenever the interrupt came.
#[test]
fn no_key_is_lost_and_none_runs_twice_at_once() {
    static CLOCK: ManualClock = ManualClock::new();
    static QUEUE: Keys = WorkQueue::from_queue(Queue::new(NoLimit), &CLOCK);
    static WRITTEN: [AtomicU32; KEYS] = [const { AtomicU32::new(0) }; KEYS];
    static SEEN: [AtomicU32; KEYS] = [const { AtomicU32::new(0) }; KEYS];
    static RUNNING: [AtomicUsize; KEYS] = [const { AtomicUsize::new(0) }; KEYS];

    let work = || {
        block_on(async {
            loop {
                match QUEUE.get().await {
                    Ok(key) => {
                        assert_eq!(RUNNING[*key].fetch_add(1, Ordering::SeqCst), 0);
                        SEEN[*key].store(WRITTEN[*key].load(Ordering::SeqCst), Ordering::SeqCst);
                        RUNNING[*key].fetch_sub(1, Ordering::SeqCst);
                        key.success();
                    }
                    Err(WaitError::Closed) => return,
                    Err(error) => unreachable!("{error}"),
                }
            }
        });
    };
    let interrupt = |keys: std::ops::Range<usize>| {
        move || {
            for round in 1..=ROUNDS {
                for key in keys.clone() {
                    WRITTEN[key].store(round, Ordering::SeqCst);
                    QUEUE.add(key).unwrap();
                }
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
        let interrupts = [0..KEYS / 2, KEYS / 2..KEYS].map(|keys| scope.spawn(interrupt(keys)));
        for handler in interrupts {
            handler.join().unwrap();
        }
        let drained = block_on(QUEUE.drain());
        assert_eq!(drained, Ok(()));
    });
    for seen in &SEEN {
        assert_eq!(seen.load(Ordering::SeqCst), ROUNDS);
    }
}

/// Runs a future on this thread, which sleeps until it is woken: a wake that is lost stays lost.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
