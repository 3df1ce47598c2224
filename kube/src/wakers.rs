//! One waker for many tasks.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};

/// Tasks that poll the same thing, which keeps the waker of the last one only. As a waker it wakes
/// all of them.
#[derive(Default)]
pub(crate) struct Wakers(Mutex<Vec<(u64, Waker)>>);

impl Wakers {
    pub(crate) fn register(&self, id: u64, waker: &Waker) {
        // Cloned and dropped outside of the lock, because a waker is foreign code.
        let own = waker.clone();
        let stale = {
            let mut wakers = self.lock();
            let stale = wakers.iter_mut().find(|(other, _)| *other == id);
            match stale {
                Some((_, stale)) => Some(std::mem::replace(stale, own)),
                None => {
                    wakers.push((id, own));
                    None
                }
            }
        };
        drop(stale);
    }

    pub(crate) fn remove(&self, id: u64) -> Option<(u64, Waker)> {
        let mut wakers = self.lock();
        let index = wakers.iter().position(|(other, _)| *other == id)?;
        Some(wakers.swap_remove(index))
    }

    pub(crate) fn wake_others(&self, id: u64) {
        let wakers = self.lock().clone();
        for (other, waker) in wakers {
            if other != id {
                waker.wake();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u64, Waker)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Wakers {
    fn wake(self: Arc<Self>) {
        let wakers = self.lock().clone();
        wakers.into_iter().for_each(|(_, waker)| waker.wake());
    }
}

/// The tasks of this process that wait until a store is filled. kube's store keeps one waker for
/// all who wait for it, and does not say which store it is.
static FOR_STORES: LazyLock<Arc<Wakers>> = LazyLock::new(Arc::default);

/// A task that waits until a store is filled.
pub(crate) struct StoreWaiter(u64);

impl StoreWaiter {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Polls a future of a store. Its wake is for every waiter.
    pub(crate) async fn poll<F: Future>(&self, mut future: Pin<&mut F>) -> F::Output {
        poll_fn(|context| {
            FOR_STORES.register(self.0, context.waker());
            let all = Waker::from(Arc::clone(&FOR_STORES));
            future.as_mut().poll(&mut Context::from_waker(&all))
        })
        .await
    }
}

impl Drop for StoreWaiter {
    fn drop(&mut self) {
        drop(FOR_STORES.remove(self.0));
    }
}
