//! A future that a test polls itself, and that counts its wakes.

#![allow(dead_code, reason = "not every file of tests needs all of it")]
#![allow(clippy::panic, reason = "a test that panics has failed")]

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

pub(crate) struct ByHand<F: ?Sized> {
    wakes: Arc<Wakes>,
    future: Pin<Box<F>>,
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

pub(crate) fn by_hand<F: Future>(future: F) -> ByHand<F> {
    ByHand {
        wakes: Arc::default(),
        future: Box::pin(future),
    }
}

impl<F: Future + ?Sized> ByHand<F> {
    pub(crate) fn poll(&mut self) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(&self.wakes));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    /// Polls, with the waker of somebody else than before.
    pub(crate) fn poll_anew(&mut self) -> Poll<F::Output> {
        self.wakes = Arc::default();
        self.poll()
    }

    /// How often it has been woken since the last [`poll_anew`](Self::poll_anew).
    pub(crate) fn wakes(&self) -> usize {
        self.wakes.0.load(Ordering::SeqCst)
    }

    #[track_caller]
    pub(crate) fn is_pending(&mut self) -> bool {
        self.poll().is_pending()
    }

    #[track_caller]
    pub(crate) fn ready(&mut self) -> F::Output {
        match self.poll() {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("it is not ready"),
        }
    }
}
