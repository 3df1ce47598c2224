//! A future that a test polls itself, and that counts its wakes.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// A future that a test polls itself. Made by [`by_hand`].
pub struct ByHand<F> {
    future: Pin<Box<F>>,
    wakes: Arc<Wakes>,
    /// How many wakes there were before the last poll.
    seen: Option<usize>,
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Takes a future in hand.
///
/// # Examples
///
/// ```
/// use std::task::Poll;
/// use requeue_test_tools::by_hand;
///
/// let mut polls = 0;
/// let mut second = by_hand(std::future::poll_fn(|context| {
///     polls += 1;
///     context.waker().wake_by_ref();
///     if polls == 2 { Poll::Ready(polls) } else { Poll::Pending }
/// }));
/// assert!(second.is_woken(), "it has never been polled");
/// assert!(second.is_pending());
/// assert!(second.is_woken());
/// assert_eq!(second.wakes(), 1);
/// assert_eq!(second.ready(), 2);
/// ```
pub fn by_hand<F: Future>(future: F) -> ByHand<F> {
    ByHand {
        future: Box::pin(future),
        wakes: Arc::default(),
        seen: None,
    }
}

impl<F: Future> ByHand<F> {
    /// Polls it.
    pub fn poll(&mut self) -> Poll<F::Output> {
        self.seen = Some(self.wakes());
        let waker = Waker::from(Arc::clone(&self.wakes));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    /// Polls it with another waker than before.
    pub fn poll_again(&mut self) -> Poll<F::Output> {
        self.wakes = Arc::default();
        self.poll()
    }

    /// How often it has been woken since the last [`poll_again`](Self::poll_again).
    pub fn wakes(&self) -> usize {
        self.wakes.0.load(Ordering::SeqCst)
    }

    /// Whether an executor would poll it: it has been woken since the last poll, or never polled.
    pub fn is_woken(&self) -> bool {
        self.seen != Some(self.wakes())
    }

    /// Polls it, and returns whether it waits.
    pub fn is_pending(&mut self) -> bool {
        self.poll().is_pending()
    }

    /// Polls it, and returns its output, `None` if it waits.
    pub fn ended(&mut self) -> Option<F::Output> {
        match self.poll() {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    /// Polls it for what it has to be ready with.
    ///
    /// # Panics
    ///
    /// If it waits.
    #[track_caller]
    pub fn ready(&mut self) -> F::Output {
        self.ended().unwrap_or_else(|| panic!("it is not ready"))
    }
}

impl<F> fmt::Debug for ByHand<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wakes = self.wakes.0.load(Ordering::SeqCst);
        f.debug_struct("ByHand").field("wakes", &wakes).finish()
    }
}
