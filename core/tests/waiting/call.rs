//! Calls that wait, and the bells that count their wakes.

use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;
use std::time::Duration;

use requeue_core::Instant;
use requeue_core::binding::*;
use requeue_core::limiter::{DefaultItemBased, default_item_based};
use requeue_core::priority::Plain;
use requeue_core::storage::Fixed;

use crate::common::clock::Hand;
use crate::common::lock::Single;

/// A key that panics when it is hashed, if it is 13.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(pub(crate) u8);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        assert_ne!(self.0, 13, "on purpose");
        state.write_u8(self.0);
    }
}

pub(crate) struct Calls<W>(PhantomData<W>);

impl<W: WaitList> Host for Calls<W> {
    type Key = Key;
    type Priorities = Plain;
    type Limiter = DefaultItemBased;
    type Storage = Fixed<8>;
    type Metrics = ();
    type Waiters = W;
    type Clock = Hand;
    type Lock = Single<State<Self>>;
}

pub(crate) type Keys<W> = Shared<Calls<W>>;

pub(crate) fn queue<W: WaitList + Default>() -> Keys<W> {
    let queue = Queue::new(default_item_based());
    Shared::new(
        Single::new(State::new(queue, W::default())),
        Hand::default(),
    )
}

/// Counts its wakes.
#[derive(Default)]
pub(crate) struct Bell(pub(crate) AtomicUsize);

impl std::task::Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A call and the waker by which it waits.
pub(crate) struct Call<'q, W: WaitList> {
    pub(crate) wait: Wait<Calls<W>, &'q Keys<W>>,
    pub(crate) bell: Arc<Bell>,
    pub(crate) waker: Waker,
}

impl<'q, W: WaitList> Call<'q, W> {
    pub(crate) fn new(wait: Wait<Calls<W>, &'q Keys<W>>) -> Self {
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(Arc::clone(&bell));
        Self { wait, bell, waker }
    }

    pub(crate) fn for_key(queue: &'q Keys<W>) -> Self {
        Self::new(Wait::for_key(queue))
    }

    /// A call that has looked, and waits for a key.
    #[track_caller]
    pub(crate) fn asleep(queue: &'q Keys<W>) -> Self {
        let mut call = Self::for_key(queue);
        assert!(matches!(call.look(), Look::Sleep { .. }));
        call
    }

    pub(crate) fn look(&mut self) -> Look<Work<Key>> {
        let look = self.wait.look(&self.waker, None, |session, getter| {
            session.poll_get(getter)
        });
        let queue = self.wait.queue();
        queue.lock().with(|state| state.queue().assert_valid());
        look
    }

    pub(crate) fn look_before(&mut self, deadline: u64) -> Look<Work<Key>> {
        let deadline = Some(Instant::from_nanos(deadline));
        self.wait.look(&self.waker, deadline, |session, getter| {
            session.poll_get(getter)
        })
    }

    pub(crate) fn wakes(&self) -> usize {
        self.bell.0.load(Ordering::Relaxed)
    }

    #[track_caller]
    pub(crate) fn finds(&mut self, key: u8) -> Work<Key> {
        match self.look() {
            Look::Done(Ok(work)) => {
                assert_eq!(work.key, Key(key));
                work
            }
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn sleeps(&mut self, until: Option<u64>) {
        let until = until.map(Instant::from_nanos);
        assert_eq!(self.look(), Look::Sleep { until });
    }
}

pub(crate) fn add<W: WaitList>(queue: &Keys<W>, key: u8) {
    queue.add(Key(key)).unwrap();
}

pub(crate) fn add_after<W: WaitList>(queue: &Keys<W>, key: u8, nanos: u64) {
    queue
        .add_after(Key(key), Duration::from_nanos(nanos))
        .unwrap();
}

pub(crate) fn sleeping<W: WaitList>(queue: &Keys<W>) -> usize {
    queue.lock().with(|state| state.queue().asleep())
}
