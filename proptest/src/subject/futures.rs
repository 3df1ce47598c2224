//! Calls that are futures, polled by hand: when none is woken any more, everything has settled.

use std::collections::BTreeMap;
use std::convert::identity;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use requeue_core::binding::{Host, Shared, Timer, timeout_at};
use requeue_core::{Rejected, WaitError};

use super::Key;
use super::calls::{Call, CallId, Drive, Returned, returned};
use super::work_queue::handed;

/// A call that is a future.
pub type LocalCall = Pin<Box<dyn Future<Output = Returned>>>;

/// Makes any call with the methods of core's [`Shared`]. If your queue has no methods of its own,
/// this is the [`begin`](super::Runtime::begin) of your binding.
///
/// # Examples
///
/// ```
/// use std::rc::Rc;
/// use requeue_core::binding::{Host, Shared, Timer};
/// use requeue_proptest::subject::{Call, Key, LocalCall, call_on};
///
/// fn begin<H: Host<Key = Key, Clock: Timer> + 'static>(queue: &Rc<Shared<H>>, call: Call) -> LocalCall {
///     call_on(Rc::clone(queue), call)
/// }
/// ```
pub fn call_on<H, Q>(queue: Q, call: Call) -> LocalCall
where
    H: Host<Key = Key, Clock: Timer>,
    Q: Deref<Target = Shared<H>> + 'static,
{
    Box::pin(async move {
        returned!(queue, call, [.await], identity, |limit| {
            let deadline = Some(queue.now() + limit);
            let drained = timeout_at(queue.clock(), deadline, queue.drain()).await;
            drained.unwrap_or(Err(WaitError::TimedOut))
        })
    })
}

/// Calls that are futures.
///
/// Each is polled when it begins, again for as long as it wakes itself, and then whenever its waker
/// has been called, in the order in which that happened, as an executor does. Unlike an executor's,
/// its tasks run only when the test [says so](Drive::settle).
///
/// A wake counts only if it comes by the waker of the last poll, which is all that a future has to
/// call.
#[derive(Default)]
pub struct Futures {
    waiting: BTreeMap<CallId, Task>,
    answers: BTreeMap<CallId, Returned>,
    /// How many wakes there were, of all calls.
    rings: Arc<AtomicU64>,
}

struct Task {
    future: LocalCall,
    bell: Arc<Bell>,
}

/// The waker of one poll or more of a call.
struct Bell {
    rings: Arc<AtomicU64>,
    /// The number of the first wake since the last poll; zero if there was none.
    rung: AtomicU64,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        let ring = 1 + self.rings.fetch_add(1, Ordering::SeqCst);
        // A call that is woken twice is polled once.
        let order = Ordering::SeqCst;
        let _ = self.rung.compare_exchange(0, ring, order, order);
    }
}

impl Bell {
    fn rung(&self) -> Option<u64> {
        Some(self.rung.load(Ordering::SeqCst)).filter(|ring| *ring > 0)
    }
}

/// How often calls are polled before the test concludes that they wake each other for ever.
const POLLS_MAX: usize = 10_000;

impl Futures {
    fn bell(&self) -> Arc<Bell> {
        let (rings, rung) = (Arc::clone(&self.rings), AtomicU64::new(0));
        Arc::new(Bell { rings, rung })
    }

    fn poll(&mut self, id: CallId) {
        let Some(task) = self.waiting.get_mut(&id) else {
            return;
        };
        task.bell.rung.store(0, Ordering::SeqCst);
        let waker = Waker::from(Arc::clone(&task.bell));
        let mut context = Context::from_waker(&waker);
        if let Poll::Ready(answer) = task.future.as_mut().poll(&mut context) {
            self.waiting.remove(&id);
            self.answers.insert(id, answer);
        }
    }
}

impl<R> Drive<R> for Futures {
    type Begun = LocalCall;

    fn start(&mut self, id: CallId, future: LocalCall) {
        let bell = self.bell();
        self.waiting.insert(id, Task { future, bell });
        for _ in 0..POLLS_MAX {
            self.poll(id);
            let task = self.waiting.get(&id);
            if task.and_then(|task| task.bell.rung()).is_none() {
                break;
            }
        }
    }

    fn settle(&mut self, _: &R) -> bool {
        for _ in 0..POLLS_MAX {
            let tasks = self.waiting.iter();
            let woken = tasks.filter_map(|(id, task)| Some((task.bell.rung()?, *id)));
            let Some((_, first)) = woken.min() else {
                return true;
            };
            self.poll(first);
        }
        false
    }

    fn answer(&mut self, id: CallId) -> Option<Returned> {
        self.answers.remove(&id)
    }

    fn cancel(&mut self, id: CallId) {
        self.waiting.remove(&id);
    }

    /// With a new waker, as in another task.
    fn nudge(&mut self, id: CallId) {
        let bell = self.bell();
        if let Some(task) = self.waiting.get_mut(&id) {
            task.bell = bell;
        }
        self.poll(id);
    }
}
