//! Decides when to give up a failing key: after a number of retries, at a permanent error, after a
//! time, or because its reconciler says so. Owns this decision; never ends the run.

use alloc::boxed::Box;

use super::run::Runs;
use super::{Workers, contain};
use crate::failure::Failure;

/// Returns whether a key has failed for too long at this attempt. Without an attempt, the key has
/// succeeded or is given up, and its first failure is forgotten.
pub(super) type IsTooOld<'w, K> = dyn Fn(&K, Option<u32>, &dyn Runs<K>) -> bool + Send + Sync + 'w;

impl<'w, K, E> Workers<'w, K, E> {
    /// Sets how many times a key that failed is retried before it is given up. There is no limit by
    /// default. O(1).
    ///
    /// The count is the rate limiter's. With a limiter that keeps no record of a key
    /// ([`NoLimit`](crate::limiter::NoLimit), a [`TokenBucket`](crate::limiter::TokenBucket) alone)
    /// it stays zero, and a key is given up only if `retries` is zero too.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("../shared/example.txt")]
    /// let workers = Workers::new(1).max_retries(2);
    /// let mut ends = Vec::new();
    /// for _ in 0..3 {
    ///     let _ = queue.add("node-7");
    ///     let guard = queue.try_get().unwrap();
    ///     let run = workers.begin(guard.key(), guard.context(), &queue);
    ///     let action = workers.end(guard.key(), run, Err(Failure::Error("down")), &queue);
    ///     ends.push(action);
    ///     guard.finish(action);
    /// }
    /// assert_eq!(ends, [Action::Retry, Action::Retry, Action::GiveUp]);
    /// ```
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.max_retries = Some(retries);
        self
    }

    /// Gives a key up immediately if `is_last` returns true for its error: no retry would help. It
    /// has failed as any other: [`on_error`](Self::on_error) and [`on_give_up`](Self::on_give_up)
    /// are called. With [`max_retries`](Self::max_retries) or `give_up_after`, what comes first
    /// counts.
    ///
    /// `is_last` runs on the worker while the key is active, and only for errors: not for a run
    /// that panicked, was stopped, or asked for a retry or to be given up. A panic in it is caught,
    /// and the key is retried.
    ///
    /// A reconciler that decides itself returns [`Action::GiveUp`](crate::Action::GiveUp) instead.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::Workers;
    ///
    /// #[derive(Debug)]
    /// enum Error {
    ///     NoRoute,
    ///     InvalidName,
    /// }
    ///
    /// let workers = Workers::new(4)
    ///     .give_up_if(|_: &String, error| matches!(error, Error::InvalidName))
    ///     .on_give_up(|node, failure| eprintln!("{node}: {failure:?}"));
    /// # let _ = (workers, Error::NoRoute);
    /// ```
    #[doc(alias = "TerminalError")]
    pub fn give_up_if(mut self, is_last: impl Fn(&K, &E) -> bool + Send + Sync + 'w) -> Self {
        self.give_up_if = Some(Box::new(is_last));
        self
    }

    /// Sets the hook for keys that are given up. It receives the key, and why its last run failed.
    /// The failures of the key are forgotten: if it is added again, it starts as a new key. Without
    /// this hook it is logged as an error, if the feature `tracing` is on. O(1).
    ///
    /// The hook runs on the worker while the key is active. A panic in the hook is caught and
    /// ignored.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Mutex;
    #[doc = include_str!("../shared/example.txt")]
    ///
    /// let given_up = Mutex::new(Vec::new());
    /// let workers = Workers::new(1).max_retries(0).on_give_up(|node: &&str, failure| {
    ///     given_up.lock().unwrap().push(format!("{node}: {failure}"));
    /// });
    /// let _ = queue.add("node-7");
    /// let guard = queue.try_get().unwrap();
    /// let run = workers.begin(guard.key(), guard.context(), &queue);
    /// workers.end(guard.key(), run, Err(Failure::Error("no route")), &queue);
    /// assert_eq!(*given_up.lock().unwrap(), ["node-7: no route"]);
    /// # guard.success();
    /// ```
    pub fn on_give_up(mut self, hook: impl Fn(&K, Failure<E>) + Send + Sync + 'w) -> Self {
        self.give_up = Some(Box::new(hook));
        self
    }

    /// Decides whether to give up a key that has failed.
    pub(super) fn gives_up(
        &self,
        key: &K,
        failure: &Failure<E>,
        attempt: u32,
        queue: &impl Runs<K>,
    ) -> bool {
        let mut is_last = matches!(failure, Failure::GiveUp);
        is_last |= self.max_retries.is_some_and(|retries| attempt > retries);
        if let (Some(ends), Failure::Error(error)) = (&self.give_up_if, failure) {
            contain(|| is_last |= ends(key, error));
        }
        if let Some(is_too_old) = &self.is_too_old {
            is_last = is_last || is_too_old(key, Some(attempt), queue);
        }
        if is_last {
            self.forget_age(key, queue);
        }
        is_last
    }

    /// Forgets the first failure of a key.
    pub(super) fn forget_age(&self, key: &K, queue: &impl Runs<K>) {
        if let Some(is_too_old) = &self.is_too_old {
            is_too_old(key, None, queue);
        }
    }
}
