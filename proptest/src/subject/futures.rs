//! Calls that are futures, polled by hand: when none is woken any more, everything has settled.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use super::calls::{CallId, Drive, Returned};

/// A call that is a future.
pub type LocalCall = Pin<Box<dyn Future<Output = Returned>>>;

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
    woken: Arc<Woken>,
}

struct Task {
    future: LocalCall,
    waker: Waker,
    /// Counts its wakers.
    generation: u32,
}

/// Who has been woken and not been polled since, each by which waker.
#[derive(Default)]
struct Woken(Mutex<VecDeque<(CallId, u32)>>);

/// How often calls are polled before the test concludes that they wake each other for ever.
const POLLS_MAX: usize = 10_000;

impl Futures {
    fn waker(&self, id: CallId, generation: u32) -> Waker {
        let woken = Arc::clone(&self.woken);
        Waker::from(Arc::new(Bell {
            woken,
            id,
            generation,
        }))
    }

    fn poll(&mut self, id: CallId) {
        let Some(task) = self.waiting.get_mut(&id) else {
            return;
        };
        let mut context = Context::from_waker(&task.waker);
        if let Poll::Ready(answer) = task.future.as_mut().poll(&mut context) {
            self.waiting.remove(&id);
            self.answers.insert(id, answer);
        }
    }
}

impl<R> Drive<R> for Futures {
    type Begun = LocalCall;

    fn start(&mut self, id: CallId, future: LocalCall) {
        let generation = 0;
        let waker = self.waker(id, generation);
        let task = Task {
            future,
            waker,
            generation,
        };
        self.waiting.insert(id, task);
        for _ in 0..POLLS_MAX {
            self.poll(id);
            if !self.woken.take((id, generation)) {
                break;
            }
        }
    }

    fn settle(&mut self, _: &R) -> bool {
        for _ in 0..POLLS_MAX {
            let Some((id, generation)) = self.woken.lock().pop_front() else {
                return true;
            };
            let task = self.waiting.get(&id);
            if task.is_some_and(|task| task.generation == generation) {
                self.poll(id);
            }
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
        let generation = self.waiting.get(&id).map(|task| task.generation + 1);
        let waker = self.waker(id, generation.unwrap_or_default());
        if let (Some(task), Some(generation)) = (self.waiting.get_mut(&id), generation) {
            task.generation = generation;
            task.waker = waker;
        }
        self.poll(id);
    }
}

impl Woken {
    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<(CallId, u32)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a wake out. Returns whether it was there.
    fn take(&self, wake: (CallId, u32)) -> bool {
        let mut woken = self.lock();
        let before = woken.len();
        woken.retain(|other| *other != wake);
        woken.len() < before
    }
}

/// The waker of one poll or more of a call.
struct Bell {
    woken: Arc<Woken>,
    id: CallId,
    generation: u32,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        let mut woken = self.woken.lock();
        let wake = (self.id, self.generation);
        if !woken.contains(&wake) {
            woken.push_back(wake);
        }
    }
}
