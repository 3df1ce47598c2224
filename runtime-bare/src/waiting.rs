//! How a loop looks at the queue and sleeps. Owns the masked section of both; what makes a key ready
//! is core's.

use core::hash::Hash;

use requeue_core::binding::{Access, AsShared, Getter, Index, Look, Next, Wait};
use requeue_core::limiter::RateLimiter;
use requeue_core::metrics::Metrics;
use requeue_core::priority::Priorities;
use requeue_core::storage::Fixed;
use requeue_core::{Action, Instant, IntoAction, WaitError};

use crate::board::Board;
use crate::queue::{BareHost, Guard, Shared, WorkQueue, face, methods};

methods! {
    ["Taking and running keys, sleeping while there is none."]

    /// Looks at the queue once, in one critical section, and never sleeps: for a loop that does
    /// other things as well. O(log n).
    ///
    /// To sleep until `until` or another time of yours without missing an interrupt, look once more
    /// in [`Board::masked`], and arm and sleep there too. Or use [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    /// # let queue = requeue::bare::example();
    /// use requeue::bare::Next;
    ///
    /// let _ = queue.add("node-7");
    /// let mut runs = 0;
    /// loop {
    ///     match queue.look() {
    ///         Next::Work(guard) => {
    ///             runs += 1;
    ///             guard.success();
    ///             queue.shut_down();
    ///         }
    ///         // Do other things, until this time at the latest.
    ///         Next::Wait { until: _ } => {}
    ///         Next::Closed => break,
    ///     }
    /// }
    /// assert_eq!(runs, 1);
    /// ```
    pub fn look(&self) -> Next<Guard<'_, H, K, N, P, L, WAITERS, M, I>>
    where
        K: Clone,
    {
        match self.see(&mut |session, getter| session.poll_get(getter)) {
            Next::Work(work) => Next::Work(Guard::new(work, self.as_shared())),
            Next::Wait { until } => Next::Wait { until },
            Next::Closed => Next::Closed,
        }
    }

    requeue_core::queue_face! {
        taking_blocking: "requeue::bare", "# let queue = requeue::bare::example();", K,
        wait_for_key, Guard<'_, H, K, N, P, L, WAITERS, M, I>
    }

    /// Runs `reconcile` for the keys of the queue, one at a time, sleeping while there is none that
    /// may run. Returns once the queue is shut down and no key is ready.
    ///
    /// `reconcile` returns `()`, an [`Action`], or a `Result` of either. An error counts as
    /// [`Action::Retry`]: handle it before you return it, because the loop does not log it. There is
    /// no limit on retries or time. To give up, return [`Action::GiveUp`] once
    /// [`failures`](Self::failures) is too high. A loop that needs the attempt or the deadline of a
    /// run uses [`get`](Self::get) and the [guard](Guard) instead.
    ///
    /// # Errors
    ///
    /// [`TooManyWaiters`](WaitError::TooManyWaiters) as for [`get`](Self::get). Never, if `WAITERS`
    /// is zero.
    ///
    /// # Examples
    ///
    /// A sensor that replies at the third attempt:
    ///
    /// ```
    /// # let queue = requeue::bare::example();
    /// let _ = queue.add("sensor-17");
    /// let mut attempts = 0;
    /// queue.run(|_sensor| {
    ///     attempts += 1;
    ///     if attempts < 3 {
    ///         return Err("no reply");
    ///     }
    ///     queue.shut_down();
    ///     Ok(())
    /// }).unwrap();
    /// assert_eq!(attempts, 3);
    /// ```
    pub fn run<A: IntoAction>(&self, mut reconcile: impl FnMut(&K) -> A) -> Result<(), WaitError>
    where
        K: Clone,
    {
        let mut next = self.get();
        loop {
            let guard = match next {
                Ok(guard) => guard,
                Err(WaitError::Closed) => return Ok(()),
                Err(error) => return Err(error),
            };
            let action = reconcile(&guard).into_action().unwrap_or(Action::Retry);
            next = self.next(guard, action);
        }
    }
}

methods! {
    ["Looking. None of these waits."]
    face!(looking);

    /// Returns the board. O(1).
    pub const fn board(&self) -> &H {
        self.shared.clock()
    }
}

methods! {
    ["Control."]
    face!(control);
}

methods! {
    ["Limits and groups."]
    face!(limits);
}

methods! {
    ["Shutting down. None of these waits."]
    face!(closing);
}

methods! {
    ["Shutting down, and waiting until the queue is drained."]

    /// Shuts the queue down and waits until no key is ready, dirty or active. Does not wait
    /// for delayed or suspended keys: [`leftovers`](Self::leftovers) returns them.
    ///
    /// Something else has to work on the keys: another core, or interrupts that hold guards. On one
    /// core, shut the queue down and let [`run`](Self::run) end instead.
    ///
    /// # Errors
    ///
    /// [`Interrupted`](WaitError::Interrupted) if another call shuts the queue down meanwhile, and
    /// [`TooManyWaiters`](WaitError::TooManyWaiters) as for [`get`](Self::get). The queue is shut
    /// down all the same.
    ///
    /// # Examples
    ///
    /// ```
    /// # let queue = requeue::bare::example();
    /// let _ = queue.add("node-7");
    /// queue.get().unwrap().success();
    /// assert_eq!(queue.drain(), Ok(()));
    /// ```
    #[doc(alias = "ShutDownWithDrain")]
    pub fn drain(&self) -> Result<(), WaitError> {
        let drain = self.shared.begin_drain();
        let wait = Wait::for_state(self.as_shared());
        let ended = self.block(wait, None, |session, _| session.poll_drain(Some(&drain)));
        ended?.into_result()
    }

    /// Waits until another call has shut the queue down, and no key is ready, dirty or active.
    ///
    /// # Errors
    ///
    /// [`TooManyWaiters`](WaitError::TooManyWaiters) as for [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    /// # let queue = requeue::bare::example();
    /// queue.shut_down();
    /// assert_eq!(queue.wait_drained(), Ok(()));
    /// ```
    pub fn wait_drained(&self) -> Result<(), WaitError> {
        let wait = Wait::for_state(self.as_shared());
        self.block(wait, None, |session, _| session.poll_drain(None))
            .map(|_| ())
    }
}

/// A call that waits.
type Waiting<'q, H, K, const N: usize, P, L, const WAITERS: usize, M, I> =
    Wait<BareHost<H, K, N, P, L, WAITERS, M, I>, &'q Shared<H, K, N, P, L, WAITERS, M, I>>;

// Looking, and sleeping.
methods! {
    []

    /// Looks once. The getter does not stay asleep, so no operation pays for a wake.
    fn see<T>(
        &self,
        look: &mut impl FnMut(
            &mut Access<'_, BareHost<H, K, N, P, L, WAITERS, M, I>>,
            &mut Getter,
        ) -> Next<T>,
    ) -> Next<T> {
        let mut getter = Getter::new();
        self.as_shared().with(|session| {
            let next = look(session, &mut getter);
            session.leave(&mut getter);
            next
        })
    }

    fn wait_for_key(
        &self,
        deadline: Option<Instant>,
    ) -> Result<Guard<'_, H, K, N, P, L, WAITERS, M, I>, WaitError>
    where
        K: Clone,
    {
        let wait = Wait::for_key(self.as_shared());
        let work = self.block(wait, deadline, |session, getter| session.poll_get(getter))?;
        Ok(Guard::new(work, self.as_shared()))
    }

    /// Looks, and sleeps until there is something, or the deadline has passed.
    fn block<T>(
        &self,
        mut wait: Waiting<'_, H, K, N, P, L, WAITERS, M, I>,
        deadline: Option<Instant>,
        mut look: impl FnMut(
            &mut Access<'_, BareHost<H, K, N, P, L, WAITERS, M, I>>,
            &mut Getter,
        ) -> Next<T>,
    ) -> Result<T, WaitError> {
        let board = self.board();
        let waker = board.waker();
        loop {
            // The last look and the sleep are one section. An interrupt that adds a key in between
            // is pending, and ends the sleep.
            let seen = board.masked(|| {
                let seen = match WAITERS {
                    0 => match self.see(&mut look) {
                        Next::Work(found) => Look::Done(Ok(found)),
                        Next::Closed => Look::Done(Err(WaitError::Closed)),
                        Next::Wait { .. } if deadline.is_some_and(|at| at <= board.now()) => {
                            Look::Done(Err(WaitError::TimedOut))
                        }
                        Next::Wait { until } => Look::Sleep {
                            until: [until, deadline].into_iter().flatten().min(),
                        },
                    },
                    _ => wait.look(&waker, deadline, &mut look),
                };
                if let Look::Sleep { until } = seen {
                    board.arm(until);
                    board.idle();
                }
                seen
            });
            if let Look::Done(result) = seen {
                return result;
            }
        }
    }
}
