//! What happens between the two looks of a call.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use requeue_core::binding::*;
use requeue_core::limiter::{DefaultItemBased, default_item_based};
use requeue_core::priority::Plain;
use requeue_core::storage::Fixed;

use crate::common::clock::Hand;
use crate::waiting::call::{Bell, Key};

/// A lock after whose next release something happens.
struct Interrupted<T> {
    state: RefCell<T>,
    next: RefCell<Option<Box<dyn FnOnce()>>>,
}

struct Disturbed<W>(PhantomData<W>);

impl<W: WaitList> Host for Disturbed<W> {
    type Key = Key;
    type Priorities = Plain;
    type Limiter = DefaultItemBased;
    type Storage = Fixed<8>;
    type Metrics = ();
    type Waiters = W;
    type Clock = Hand;
    type Lock = Interrupted<State<Self>>;
}

impl<T> Lock for Interrupted<T> {
    type State = T;

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let result = work(&mut self.state.borrow_mut());
        let next = self.next.borrow_mut().take();
        if let Some(happens) = next {
            happens();
        }
        result
    }
}

/// A call counts as asleep after its first look, before its waker is in the list.
fn a_wake_between_two_looks_is_seen<W: WaitList + Default + 'static>() {
    let state = State::new(Queue::new(default_item_based()), W::default());
    let lock = Interrupted {
        state: RefCell::new(state),
        next: RefCell::default(),
    };
    let queue = Rc::new(Shared::<Disturbed<W>>::new(lock, Hand::default()));
    let producer = Rc::clone(&queue);
    let added = Box::new(move || assert!(producer.add(Key(1)).is_ok()));
    queue.lock().next.replace(Some(added));

    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    let mut wait = Wait::for_key(&*queue);
    let look = wait.look(&waker, None, |session, getter| session.poll_get(getter));
    let is_woken = bell.0.load(Ordering::Relaxed) == 1;
    assert!(is_woken || matches!(look, Look::Done(Ok(_))), "{look:?}");
}

#[test]
fn an_add_between_two_looks_is_not_lost() {
    a_wake_between_two_looks_is_seen::<FixedWaitList<1>>();
    #[cfg(feature = "alloc")]
    a_wake_between_two_looks_is_seen::<GrowableWaitList>();
}
