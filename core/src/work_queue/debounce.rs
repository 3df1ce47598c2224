//! Adds that wait until no more come.

use core::hash::Hash;
use core::time::Duration;

use crate::limiter::{Debounces, RateLimiter};
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::outcome::{Added, Rejected};
use crate::storage::Storage;
use crate::time::Clock;
use crate::wait::WaitList;

use super::{State, WorkQueue};

impl<K, S, L, M, W, Q, C> WorkQueue<Q, C>
where
    K: Eq + Hash,
    S: Storage,
    L: RateLimiter,
    M: Metrics,
    W: WaitList,
    Q: Lock<State = State<K, S, L, M, W>>,
    C: Clock,
{
    /// Adds a key once no such add of it has come for as long as `quiet`, or `max` after the first
    /// of them, if that is sooner: [`Queue::add_debounced`](crate::Queue::add_debounced). Needs a
    /// limiter that [debounces](crate::WithDebounce). O(log n).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::cell::{Cell, RefCell};
    /// # use requeue_core::binding::{Clock, FixedWaitList, Lock, State, WorkQueue};
    /// # use requeue_core::{Added, Fixed, Instant, NoLimit, Queue, WithDebounce};
    /// # struct Single<T>(RefCell<T>);
    /// # impl<T> Lock for Single<T> {
    /// #     type State = T;
    /// #     fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
    /// #         work(&mut self.0.borrow_mut())
    /// #     }
    /// # }
    /// # struct Manual(Cell<Instant>);
    /// # impl Clock for Manual {
    /// #     fn now(&self) -> Instant {
    /// #         self.0.get()
    /// #     }
    /// # }
    /// # let queue: Queue<&str, Fixed<4>, _> = Queue::new(WithDebounce::new(NoLimit));
    /// # let state = State::new(queue, FixedWaitList::<1>::new());
    /// # let queue = WorkQueue::new(Single(RefCell::new(state)), Manual(Cell::default()));
    /// use core::time::Duration;
    ///
    /// let (quiet, max) = (Duration::from_millis(100), Duration::from_secs(1));
    /// assert_eq!(queue.add_debounced("etc/hosts", quiet, max), Ok(Added::Delayed));
    /// // 50 ms later it changes again.
    /// # queue.clock().0.set(Instant::EPOCH + quiet / 2);
    /// assert_eq!(queue.add_debounced("etc/hosts", quiet, max), Ok(Added::Later));
    /// ```
    pub fn add_debounced(
        &self,
        key: K,
        quiet: Duration,
        max: Duration,
    ) -> Result<Added, Rejected<K>>
    where
        L: Debounces,
    {
        let mut spare = None;
        self.with_now(|queue, now| {
            queue.add_debounced_or_spare(key, quiet, max, now, |key| spare = Some(key))
        })
    }
}
