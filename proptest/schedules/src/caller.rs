//! How a thread waits for a call of tasks, and how another thread drops or moves it.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use requeue_interrupts::is_critical;

/// A thread that makes calls, one at a time. Other threads can drop the call, or move it.
pub struct Caller {
    look: Look,
    /// The thread, while it waits.
    task: RefCell<Option<Waker>>,
    order: Cell<Option<Order>>,
}

/// Takes the lock of the queue.
type Look = Arc<dyn Fn() + Send + Sync>;

/// What becomes of a call that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// It is dropped.
    Drop,
    /// It is polled though it was not woken, and by another waker from then on, as in another task.
    Move,
}

impl Caller {
    /// A caller whose wakers call this function, which takes the queue's lock. So a thread that wakes
    /// must have released the lock, and others may run before the wake.
    pub fn new(look: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            look: Arc::new(look),
            task: RefCell::default(),
            order: Cell::default(),
        }
    }

    /// Gives an order to the call that waits here. Returns whether there is one.
    pub fn give(&self, order: Order) -> bool {
        let task = self.task.borrow().clone();
        let task = task.map(|task| {
            self.order.set(Some(order));
            task.wake();
        });
        task.is_some()
    }

    /// Waits for a call. Returns `None` if it was dropped.
    pub async fn wait<F: Future>(&self, call: F) -> Option<F::Output> {
        let mut call = pin!(call);
        let mut bell: Option<Arc<Bell>> = None;
        let waited = poll_fn(|context| {
            match (self.order.take(), &bell) {
                (Some(Order::Drop), Some(_)) => return Poll::Ready(None),
                (Some(Order::Move), Some(old)) => {
                    old.is_dead.store(true, Ordering::SeqCst);
                    bell = None;
                }
                _ => {}
            }
            self.task.replace(Some(context.waker().clone()));
            let bell = bell.get_or_insert_with(|| {
                Arc::new(Bell {
                    look: Arc::clone(&self.look),
                    task: context.waker().clone(),
                    is_dead: AtomicBool::new(false),
                })
            });
            let waker = Waker::from(Arc::clone(bell));
            call.as_mut()
                .poll(&mut Context::from_waker(&waker))
                .map(Some)
        });
        let returned = waited.await;
        self.task.replace(None);
        self.order.set(None);
        returned
    }
}

/// The waker of a call, until that moves to another task.
struct Bell {
    look: Look,
    task: Waker,
    /// The call has another waker.
    is_dead: AtomicBool,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        assert!(!is_critical(), "a task is woken within a critical section");
        (self.look)();
        if !self.is_dead.load(Ordering::SeqCst) {
            self.task.wake_by_ref();
        }
    }
}
