//! The methods of every runtime's `WorkQueue`, written once with their documentation.
//!
//! [`queue_face!`] writes a part of them into an `impl` block, as std writes those of its integers:
//! so each queue has all methods on its own page, with examples that run under the path that its
//! user writes. Each method is one session, or several, as in [chunks](crate::chunks).

/// Writes a part of the methods of a queue. For runtimes.
///
/// The queue implements [`AsShared`](crate::binding::AsShared), which has to be in scope. The first
/// word says which part: `adding`, `taking`, `looking`, `control`, `limits`, `growing`, `closing`,
/// and for calls that wait `taking_async` and its like for tasks, `taking_blocking` for threads and
/// bare loops. The blocking calls sleep in the queue's own `wait_for_key`. `get` names the queue's
/// method that takes a key until a deadline.
///
/// `krate` is the name of the crate in the examples. `example` and `groups` are their first lines,
/// which make a `queue`.
///
/// `shared` implements the traits of a queue whose field `shared` is core's or a counted pointer to
/// it, and `producer` one of them, [`Producer`](crate::Producer). `shell` is all else that threads
/// and Tokio have alike.
#[doc(hidden)]
#[macro_export]
macro_rules! queue_face {
    (producer: [$($generics:tt)*] $Queue:ty, $K:ty) => {
        impl<$($generics)*> $crate::Producer<$K> for $Queue {
            fn add(&self, key: $K) -> Result<$crate::Added, $crate::Rejected<$K>> {
                self.add(key)
            }

            fn add_after(
                &self,
                key: $K,
                delay: ::core::time::Duration,
            ) -> Result<$crate::Added, $crate::Rejected<$K>> {
                self.add_after(key, delay)
            }

            fn add_rate_limited(
                &self,
                key: $K,
            ) -> Result<$crate::Scheduled, $crate::Rejected<$K>> {
                self.add_rate_limited(key)
            }

            fn add_with(
                &self,
                key: $K,
                options: $crate::AddOptions,
            ) -> Result<$crate::Scheduled, $crate::Rejected<$K>> {
                self.add_with(key, options)
            }
        }
    };
    (shared: [$($generics:tt)*] $Queue:ty, $Host:ty, $K:ty) => {
        impl<$($generics)*> $crate::binding::AsShared for $Queue {
            type Host = $Host;

            fn as_shared(&self) -> &$crate::binding::Shared<$Host> {
                &self.shared
            }
        }

        $crate::queue_face! { producer: [$($generics)*] $Queue, $K }

        impl<$($generics)*> ::core::fmt::Debug for $Queue {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                self.shared.fmt(f)
            }
        }
    };
    (
        shell: $krate:literal, [$($bounds:tt)*] $WorkQueue:ident, $Host:ident, $Runtime:ident,
        $Clock:ty, $Mutex:ident
    ) => {
        /// A mutex as core's [`Lock`](requeue_core::binding::Lock).
        // At the beginning of a cache line, so that the lock and what each add writes are in one.
        #[derive(Debug)]
        #[repr(align(64))]
        pub struct Locked<T>($Mutex<T>);

        impl<T> $crate::binding::Lock for Locked<T> {
            type State = T;

            #[inline(always)]
            fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
                work(&mut self.0.lock())
            }
        }

        impl<$($bounds)*> $crate::binding::Host for $Host<K, P, L, S> {
            type Key = K;
            type Priorities = P;
            type Limiter = L;
            type Storage = S;
            type Metrics = $crate::binding::Reporter;
            type Waiters = $crate::binding::GrowableWaitList;
            type Clock = $Clock;
            type Lock = Locked<$crate::binding::State<Self>>;
        }

        impl $crate::binding::Runtime for $Runtime {
            type Clock = $Clock;
            type WorkQueue<$($bounds)*> = $WorkQueue<K, P, L, S>;

            fn assemble<$($bounds)*>(
                queue: $crate::Queue<K, P, L, S, $crate::binding::Reporter>,
                clock: $Clock,
            ) -> $WorkQueue<K, P, L, S> {
                let waiters = $crate::binding::GrowableWaitList::new();
                let lock = Locked($Mutex::new($crate::binding::State::new(queue, waiters)));
                let shared = ::std::sync::Arc::new($crate::binding::Shared::new(lock, clock));
                $WorkQueue { shared }
            }
        }

        /// A queue of any storage, such as [`Fixed`](requeue_core::storage::Fixed), with metrics, on
        /// a clock of its own.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = concat!("use ", $krate, "::binding::Reporter;")]
        #[doc = concat!("use ", $krate, "::limiter::NoLimit;")]
        #[doc = concat!("use ", $krate, "::metrics::{Metrics, Times};")]
        #[doc = concat!("use ", $krate, "::priority::Plain;")]
        #[doc = concat!("use ", $krate, "::storage::Fixed;")]
        #[doc = concat!("use ", $krate, "::{Queue, WorkQueue};")]
        ///
        /// struct Adds;
        ///
        /// impl Metrics for Adds {
        ///     type Timestamps = Times;
        ///
        ///     fn added(&mut self) {
        ///         println!("a key was added");
        ///     }
        /// }
        ///
        /// let reporter = Reporter::new(Adds);
        /// let bounded: WorkQueue<u16, Plain, NoLimit, Fixed<2>> =
        ///     Queue::with_metrics(NoLimit, reporter).into();
        /// assert_eq!(bounded.add_many(0..3).rejected.len(), 1);
        /// ```
        impl<$($bounds)*> From<$crate::Queue<K, P, L, S, $crate::binding::Reporter>>
            for $WorkQueue<K, P, L, S>
        {
            fn from(queue: $crate::Queue<K, P, L, S, $crate::binding::Reporter>) -> Self {
                <$Runtime as $crate::binding::Runtime>::assemble(queue, <$Clock>::default())
            }
        }

        /// A queue of any storage, such as [`Fixed`](requeue_core::storage::Fixed), without metrics,
        /// on a clock of its own. It is moved, and so should be empty or small.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = concat!("use ", $krate, "::limiter::NoLimit;")]
        #[doc = concat!("use ", $krate, "::priority::Plain;")]
        #[doc = concat!("use ", $krate, "::storage::Fixed;")]
        #[doc = concat!("use ", $krate, "::{Queue, WorkQueue};")]
        ///
        /// let bounded: WorkQueue<u16, Plain, NoLimit, Fixed<2>> = Queue::new(NoLimit).into();
        /// assert_eq!(bounded.add_many(0..3).rejected.len(), 1);
        /// ```
        impl<$($bounds)*> From<$crate::Queue<K, P, L, S>> for $WorkQueue<K, P, L, S> {
            fn from(queue: $crate::Queue<K, P, L, S>) -> Self {
                $crate::Queue::<K, P, L, S, $crate::binding::Reporter>::from(queue).into()
            }
        }

        impl<K: Eq + ::core::hash::Hash> Default for $WorkQueue<K> {
            fn default() -> Self {
                Self::new()
            }
        }

        $crate::queue_face! {
            shared: [$($bounds)*] $WorkQueue<K, P, L, S>, $Host<K, P, L, S>, K
        }

        impl<$($bounds)*> Clone for $WorkQueue<K, P, L, S> {
            fn clone(&self) -> Self {
                let shared = ::std::sync::Arc::clone(&self.shared);
                Self { shared }
            }
        }

        /// The queue with groups of the examples in the documentation.
        #[doc(hidden)]
        pub fn example_groups()
        -> $WorkQueue<(&'static str, u32), $crate::priority::Groups<&'static str>> {
            $WorkQueue::builder().build_with_groups(|(group, _)| *group)
        }
    };
    (adding: $krate:literal, $example:expr, $groups:expr, $K:ty, $P:ty, $S:ty) => {
        /// Marks a key as having work to do. O(1). Waits for nothing except the lock.
        ///
        /// # Errors
        ///
        /// [`Rejected`](requeue_core::Rejected) returns the key: the queue is shutting down, or the
        /// key is new and there is no room. Nothing has changed then.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        #[doc = concat!("use ", $krate, "::{Added, Rejected};")]
        ///
        /// assert_eq!(queue.add("node-7"), Ok(Added::Ready));
        /// assert_eq!(queue.add("node-7"), Ok(Added::Coalesced));
        /// queue.shut_down();
        /// assert_eq!(queue.add("node-7"), Err(Rejected::Closed("node-7")));
        /// ```
        #[doc(alias = "Add")]
        pub fn add(&self, key: $K) -> Result<$crate::Added, $crate::Rejected<$K>> {
            self.as_shared().with(|session| session.add(key))
        }

        /// Delays a key. If you set two delays, the earlier one wins. O(log n).
        ///
        /// As in client-go, a key that is ready or active is not affected until the delay ends. An
        /// [`add`](Self::add) meanwhile does not end the delay.
        /// [`Duration::MAX`](core::time::Duration::MAX) means never.
        ///
        /// Keys run in the order in which their delays end. If many delays end together, keys that
        /// you add meanwhile may run before the last of them:
        /// [`Queue::limit_due_keys`](requeue_core::Queue::limit_due_keys) has the rule.
        ///
        /// # Errors
        ///
        /// As [`add`](Self::add).
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        #[doc = concat!("use ", $krate, "::Added;")]
        /// use core::time::Duration;
        ///
        /// let minute = Duration::from_secs(60);
        /// assert_eq!(queue.add_after("lease-3", minute), Ok(Added::Delayed));
        /// assert_eq!(queue.add_after("lease-3", minute / 2), Ok(Added::Sooner));
        /// assert_eq!(queue.add("lease-3"), Ok(Added::Ready), "now, and once more in 30 s");
        /// ```
        #[doc(alias = "AddAfter")]
        pub fn add_after(
            &self,
            key: $K,
            delay: ::core::time::Duration,
        ) -> Result<$crate::Added, $crate::Rejected<$K>> {
            self.as_shared()
                .timed(true, |session| session.add_after(key, delay))
        }

        /// As [`add_after`](Self::add_after), but the delay may be up to `slack` longer, so that one
        /// wake serves several keys. O(log n).
        ///
        /// The key's deadline is the end of the slack, and workers set their timers for that. The
        /// key may run earlier, but never before `delay`, if something else wakes a worker
        /// meanwhile. [`Session::add_within`](requeue_core::Session::add_within) has the details,
        /// and says which types of queues can do this.
        ///
        /// # Errors
        ///
        /// As [`add`](Self::add).
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        #[doc = concat!("use ", $krate, "::Added;")]
        /// use core::time::Duration;
        ///
        /// let (minute, slack) = (Duration::from_secs(60), Duration::from_secs(30));
        /// assert_eq!(queue.add_within("sensor-1", minute, slack), Ok(Added::Delayed));
        /// assert_eq!(queue.add_after("sensor-1", minute * 2), Ok(Added::Coalesced));
        /// assert_eq!(queue.add_within("sensor-1", minute, slack / 2), Ok(Added::Sooner));
        /// ```
        #[doc(alias("hrtimer_start_range_ns", "timer_slack"))]
        pub fn add_within(
            &self,
            key: $K,
            delay: ::core::time::Duration,
            slack: ::core::time::Duration,
        ) -> Result<$crate::Added, $crate::Rejected<$K>>
        where
            $S: $crate::binding::Slackens<$P>,
        {
            self.as_shared()
                .timed(true, |session| session.add_within(key, delay, slack))
        }

        /// Adds a key at a point in time of this queue's clock, or now if that has passed. O(log
        /// n).
        ///
        /// # Errors
        ///
        /// As [`add`](Self::add).
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        #[doc = concat!("use ", $krate, "::{Added, Instant};")]
        /// use core::time::Duration;
        ///
        /// let full_hour = Instant::EPOCH + Duration::from_secs(3600);
        /// assert_eq!(queue.add_at("report", full_hour), Ok(Added::Delayed));
        /// assert_eq!(queue.state("report").unwrap().due, Some(full_hour));
        /// ```
        pub fn add_at(
            &self,
            key: $K,
            due: $crate::Instant,
        ) -> Result<$crate::Added, $crate::Rejected<$K>> {
            self.as_shared()
                .timed(true, |session| session.add_at(key, due))
        }

        /// Counts a failure of a key, and adds the key when its limiter says so. O(log n).
        ///
        /// # Errors
        ///
        /// As [`add`](Self::add). The limiter is not charged then.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        /// let first = queue.add_rate_limited("node-7").unwrap().delay;
        /// let second = queue.add_rate_limited("node-7").unwrap().delay;
        /// assert_eq!(second, 2 * first);
        /// ```
        #[doc(alias = "AddRateLimited")]
        pub fn add_rate_limited(&self, key: $K) -> Result<$crate::Scheduled, $crate::Rejected<$K>> {
            self.as_shared()
                .timed(true, |session| session.add_rate_limited(key))
        }

        /// Adds a key as the options say: [`Session::add_with`](requeue_core::Session::add_with).
        /// O(log n).
        ///
        /// # Errors
        ///
        /// As [`add`](Self::add), and if the queue has no such priority level.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        #[doc = concat!("use ", $krate, "::{AddOptions, Merge};")]
        ///
        /// let once = AddOptions { merge: Merge::Once, ..AddOptions::new() };
        /// let _ = queue.add_after("node-7", core::time::Duration::from_secs(60));
        /// queue.add_with("node-7", once).unwrap();
        /// assert_eq!(queue.state("node-7").unwrap().due, None, "it runs now, and only now");
        /// ```
        pub fn add_with(
            &self,
            key: $K,
            options: $crate::AddOptions,
        ) -> Result<$crate::Scheduled, $crate::Rejected<$K>> {
            self.as_shared().timed(options.needs_time(), |session| {
                session.add_with(key, options)
            })
        }

        /// Adds a key once these adds stop for `quiet`, and at most `max` after the first of them.
        /// A [`Fixed`](requeue_core::storage::Fixed) queue needs
        /// [`WithPolicy`](requeue_core::priority::WithPolicy) for this.
        /// [`Session::add_debounced`](requeue_core::Session::add_debounced) has the details, and says
        /// how to give the key a higher priority. O(log n).
        ///
        /// # Errors
        ///
        /// As [`add`](Self::add).
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        #[doc = concat!("use ", $krate, "::Added;")]
        /// use core::time::Duration;
        ///
        /// let (quiet, max) = (Duration::from_millis(100), Duration::from_secs(1));
        /// assert_eq!(queue.add_debounced("etc/hosts", quiet, max), Ok(Added::Delayed));
        /// // It changes again: it runs 100 ms after this change.
        /// let _ = queue.add_debounced("etc/hosts", quiet, max);
        /// ```
        pub fn add_debounced(
            &self,
            key: $K,
            quiet: ::core::time::Duration,
            max: ::core::time::Duration,
        ) -> Result<$crate::Added, $crate::Rejected<$K>>
        where
            $S: $crate::binding::Governs<$P>,
        {
            self.as_shared()
                .timed(true, |session| session.add_debounced(key, quiet, max))
        }

        /// As [`add_with`](Self::add_with), but if there is no room, evicts the newest ready key of
        /// the lowest level, and returns it. O(log n).
        ///
        /// Only a key of a lower level than
        /// [`AddOptions::priority`](requeue_core::AddOptions::priority) is evicted, together with
        /// its deadline. You can [restore](Self::restore) it.
        ///
        /// # Errors
        ///
        /// As [`add_with`](Self::add_with). [`Rejected::Full`](requeue_core::Rejected::Full) if no
        /// key can be evicted. Nothing has changed then.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        #[doc = concat!("use ", $krate, "::AddOptions;")]
        ///
        /// // There is room, so no key is evicted.
        /// let added = queue.add_displacing("node-7", AddOptions::new()).unwrap();
        /// assert_eq!(added.1, None);
        /// ```
        pub fn add_displacing(
            &self,
            key: $K,
            options: $crate::AddOptions,
        ) -> Result<($crate::Scheduled, Option<$crate::Leftover<$K>>), $crate::Rejected<$K>>
        where
            $K: Clone,
        {
            self.as_shared().timed(options.needs_time(), |session| {
                session.add_displacing(key, options)
            })
        }

        /// Adds a key that another queue returned, with its remaining delay, its priority level and
        /// its failures. O(log n).
        ///
        /// If the queue already has the key, the earlier deadline, the higher priority level and the
        /// larger number of failures count.
        ///
        /// # Errors
        ///
        /// As [`add_with`](Self::add_with), with the whole leftover. Nothing has changed then.
        ///
        /// # Examples
        ///
        /// A program saves the keys that a shutdown returns, and restores them in that order when it
        /// starts:
        ///
        /// ```
        #[doc = $example]
        #[doc = concat!("use ", $krate, "::Leftover;")]
        /// use core::time::Duration;
        ///
        /// let saved = [("node-8", 0, 0), ("node-7", 250, 3)];
        /// for (node, millis, failures) in saved {
        ///     let mut leftover = Leftover::new(node);
        ///     leftover.left = Duration::from_millis(millis);
        ///     leftover.failures = failures;
        ///     queue.restore(leftover).unwrap();
        /// }
        /// let guard = queue.try_get().unwrap();
        /// assert_eq!(*guard, "node-8");
        /// # guard.success();
        /// assert_eq!((queue.stats().delayed, queue.failures("node-7")), (1, 3));
        /// ```
        pub fn restore(
            &self,
            leftover: $crate::Leftover<$K>,
        ) -> Result<$crate::Added, $crate::Rejected<$crate::Leftover<$K>>> {
            self.as_shared().timed(!leftover.left.is_zero(), |session| {
                session.restore(leftover)
            })
        }

        /// Forgets the failures of a key, and returns how many there were. O(1).
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        /// let _ = queue.add_rate_limited("node-7");
        /// assert_eq!(queue.failures("node-7"), 1);
        /// assert_eq!(queue.forget("node-7"), 1);
        /// assert_eq!(queue.failures("node-7"), 0);
        /// ```
        #[doc(alias = "Forget")]
        pub fn forget<B>(&self, key: &B) -> u32
        where
            $K: ::core::borrow::Borrow<B>,
            B: Eq + ::core::hash::Hash + ?Sized,
        {
            self.as_shared().with(|session| session.forget(key))
        }
    };
    (producing: $krate:literal, $Shared:ty) => {
        /// Returns a handle for an event source, which can only add keys. Its type does not name the
        /// queue's parameters. O(1).
        ///
        /// # Examples
        ///
        /// ```
        /// use std::sync::Arc;
        #[doc = concat!("use ", $krate, "::{Producer, WorkQueue};")]
        ///
        /// struct Watcher {
        ///     changed: Arc<dyn Producer<String> + Send + Sync>,
        /// }
        ///
        /// let queue = WorkQueue::new();
        /// let watcher = Watcher { changed: queue.producer() };
        /// // Refused after shutdown. Then there is nothing left to do with the key.
        /// let _ = watcher.changed.add(String::from("node-7"));
        /// assert!(queue.contains("node-7"));
        /// ```
        pub fn producer(&self) -> ::std::sync::Arc<dyn $crate::Producer<K> + Send + Sync>
        where
            K: 'static,
            P: 'static,
            L: 'static,
            S: 'static,
            $Shared: Send + Sync,
        {
            ::std::sync::Arc::<$crate::binding::Shared<_>>::clone(&self.shared)
        }
    };
    (adding_many: $krate:literal, $example:expr, $groups:expr, $K:ty, $P:ty, $S:ty) => {
        /// Adds many keys, up to
        /// [`KEYS_PER_LOCK`](requeue_core::storage::Storage::KEYS_PER_LOCK) under one lock.
        /// Returns how many were taken, and the keys that were refused. O(1) per key.
        ///
        /// The iterator runs while the queue is not locked. If it panics, the keys of earlier locks
        /// stay added.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        #[doc = concat!("use ", $krate, "::Rejected;")]
        ///
        /// let many = queue.add_many(["node-7", "node-8", "node-7"]);
        /// assert_eq!((many.ready, many.coalesced), (2, 1));
        ///
        /// queue.shut_down();
        /// let many = queue.add_many(["node-9"]);
        /// assert_eq!(many.rejected, [Rejected::Closed("node-9")]);
        /// ```
        #[must_use = "`rejected` has the keys that were refused"]
        pub fn add_many(
            &self,
            keys: impl IntoIterator<Item = $K>,
        ) -> $crate::AddedMany<::std::vec::Vec<$crate::Rejected<$K>>> {
            $crate::chunks::add_all(self.as_shared(), keys)
        }
    };
    (adding_each: $krate:literal, $example:expr, $groups:expr, $K:ty, $P:ty, $S:ty) => {
        /// Adds many keys, up to
        /// [`KEYS_PER_LOCK`](requeue_core::storage::Storage::KEYS_PER_LOCK) under one lock. O(1)
        /// per key.
        ///
        /// Passes every key that is refused to `rejected`: without an allocator there is no list to
        /// return them in. The iterator and `rejected` run while the queue is not locked. If one of
        /// them panics, the keys of earlier locks stay added.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        /// let nodes = ["node-1", "node-2", "node-3", "node-4", "node-5"];
        /// let mut refused = Vec::new();
        /// let many = queue.add_many(nodes, |rejected| refused.push(rejected.into_key()));
        /// assert_eq!(many.ready, 4);
        /// assert_eq!(refused, ["node-5"]);
        /// ```
        pub fn add_many(
            &self,
            keys: impl IntoIterator<Item = $K>,
            rejected: impl FnMut($crate::Rejected<$K>),
        ) -> $crate::AddedMany {
            $crate::chunks::add_many(self.as_shared(), keys, rejected)
        }
    };
    (looking: $krate:literal, $example:expr, $groups:expr, $K:ty, $P:ty, $S:ty) => {
        /// Returns the time of the queue's clock, in which its deadlines are. O(1), without the
        /// lock.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        /// use core::time::Duration;
        ///
        /// let due = queue.now() + Duration::from_secs(60);
        /// let _ = queue.add_at("lease-3", due);
        /// assert_eq!(queue.state("lease-3").unwrap().due, Some(due));
        /// ```
        pub fn now(&self) -> $crate::Instant {
            $crate::binding::Clock::now(self.as_shared().clock())
        }

        /// Returns the number of ready keys: client-go's `Len`. Active and delayed keys do not
        /// count. O(1), and O(log n) for each due key that is not ready yet, a few of them under
        /// each lock.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        /// let _ = queue.add("node-7");
        /// let _ = queue.add("node-8");
        /// let guard = queue.try_get().unwrap();
        /// assert_eq!(queue.len(), 1, "an active key is not ready");
        /// assert!(queue.contains("node-7"), "but the queue has work for it");
        /// # guard.success();
        /// ```
        #[doc(alias = "Len")]
        pub fn len(&self) -> usize {
            $crate::chunks::len(self.as_shared())
        }

        /// Returns whether no key is ready. Active and delayed keys do not count. Costs as
        /// [`len`](Self::len).
        pub fn is_empty(&self) -> bool {
            self.as_shared().with(|session| session.is_empty())
        }

        /// Returns whether a key is ready, active, delayed or suspended. Failures alone do not
        /// count. O(1).
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        /// let _ = queue.add("node-7");
        /// assert!(queue.contains("node-7"));
        /// queue.try_get().unwrap().success();
        /// assert!(!queue.contains("node-7"));
        /// ```
        pub fn contains<B>(&self, key: &B) -> bool
        where
            $K: ::core::borrow::Borrow<B>,
            B: Eq + ::core::hash::Hash + ?Sized,
        {
            self.as_shared().look(|queue| queue.contains(key))
        }

        /// Returns what the queue knows about a key, `None` if it does not have the key. Costs as
        /// [`len`](Self::len).
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        /// let _ = queue.add("node-7");
        /// let guard = queue.try_get().unwrap();
        /// let _ = queue.add("node-7");
        /// let state = queue.state("node-7").unwrap();
        /// assert!(state.active && state.dirty);
        /// # guard.success();
        /// assert!(queue.state("node-8").is_none());
        /// ```
        pub fn state<B>(&self, key: &B) -> Option<$crate::KeyState>
        where
            $K: ::core::borrow::Borrow<B>,
            B: Eq + ::core::hash::Hash + ?Sized,
        {
            self.as_shared().with(|session| session.state(key))
        }

        /// Returns how many failures of a key are on record. O(1). [`forget`](Self::forget) has an
        /// example.
        #[doc(alias = "NumRequeues")]
        pub fn failures<B>(&self, key: &B) -> u32
        where
            $K: ::core::borrow::Borrow<B>,
            B: Eq + ::core::hash::Hash + ?Sized,
        {
            self.as_shared().look(|queue| queue.failures(key))
        }

        /// Returns the counts of the queue, all of one moment. O(1), and O(log n) for each due key
        /// that is not ready yet, a few of them under each lock.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        /// use core::time::Duration;
        ///
        /// let _ = queue.add("node-7");
        /// let _ = queue.add("node-8");
        /// let _ = queue.add_after("lease-3", Duration::from_secs(60));
        /// let guard = queue.try_get().unwrap();
        /// let stats = queue.stats();
        /// assert_eq!((stats.ready, stats.active, stats.delayed), (1, 1, 1));
        /// assert_eq!(stats.total, 3);
        /// # guard.success();
        /// ```
        pub fn stats(&self) -> $crate::Stats {
            $crate::chunks::stats(self.as_shared())
        }

        /// Returns why a key does not run now. O(log n).
        /// [`Session::why`](requeue_core::Session::why) lists the answers in their order.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        #[doc = concat!("use ", $krate, "::Why;")]
        ///
        /// let _ = queue.add("node-7");
        /// assert_eq!(queue.why("node-7"), Why::Ready);
        /// queue.pause();
        /// println!("node-7 {}", queue.why("node-7"));
        /// assert_eq!(queue.why("node-7"), Why::Paused);
        /// assert_eq!(queue.why("node-8"), Why::Idle);
        /// ```
        pub fn why<B>(&self, key: &B) -> $crate::Why
        where
            $K: ::core::borrow::Borrow<B>,
            B: Eq + ::core::hash::Hash + ?Sized,
        {
            self.as_shared().timed(true, |session| session.why(key))
        }

        /// Returns whether no key is ready or active. Delayed keys do not count until they are due,
        /// and suspended keys do not count. O(log n).
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        /// let _ = queue.add("node-7");
        /// let guard = queue.try_get().unwrap();
        /// assert!(!queue.is_idle());
        /// guard.success();
        /// assert!(queue.is_idle());
        /// ```
        pub fn is_idle(&self) -> bool {
            self.as_shared().with(|session| session.is_idle())
        }

        /// Returns whether no key is ready, active, delayed or suspended, so that no key runs again
        /// unless you add it. O(1).
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        /// let _ = queue.add_after("lease-3", core::time::Duration::from_secs(60));
        /// assert!(queue.is_idle() && !queue.is_settled());
        /// ```
        pub fn is_settled(&self) -> bool {
            self.as_shared().look(|queue| queue.is_settled())
        }

        /// Returns the keys that the queue has, with what it knows about each: an iterator that
        /// looks at 32 slots (8 with `Fixed` storage) under each lock, O(1) each. It looks no
        /// further than you ask, for example with `take`. Changes nothing.
        ///
        /// The keys are in no order. A key that the queue has all the time appears exactly once. A key
        /// that is added or removed meanwhile may or may not appear. Each has the state of the moment
        /// at which the iterator reaches it. Keys are cloned while the queue is locked.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        /// let _ = queue.add("node-7");
        /// let _ = queue.add("node-8");
        /// let _ = queue.add_rate_limited("node-9");
        ///
        /// let mut waiting = Vec::new();
        /// for (key, state) in queue.snapshot().take(1_000).filter(|(_, state)| !state.ready) {
        ///     waiting.push((key, state.due.is_some(), state.failures));
        /// }
        /// assert_eq!(waiting, [("node-9", true, 1)]);
        /// ```
        ///
        /// A snapshot that is saved now and then can be [restored](Self::restore) after a crash:
        ///
        /// ```
        #[doc = $example]
        /// let _ = queue.add("node-7");
        /// let now = queue.now();
        /// let keys = queue.snapshot();
        /// let saved: Vec<_> = keys.filter_map(|(key, state)| state.leftover(key, now)).collect();
        /// # queue.clear();
        /// // In the next process.
        /// for leftover in saved {
        ///     queue.restore(leftover).unwrap();
        /// }
        /// # assert_eq!(queue.len(), 1);
        /// ```
        pub fn snapshot(&self) -> impl Iterator<Item = ($K, $crate::KeyState)>
        where
            $K: Clone,
        {
            $crate::chunks::snapshot(self.as_shared())
        }

        /// Reports how long the active keys have been running, as client-go does every 500 ms.
        /// O(1). [`Session::report_running`](requeue_core::Session::report_running) has an example.
        pub fn report_running(&self) {
            self.as_shared()
                .timed(true, |session| session.report_running());
        }

        /// Returns whether the queue keeps up: no ready key has waited for longer than `ready_max`,
        /// no run has lasted longer than `run_max`, and no deadline passed longer than `ready_max`
        /// ago without making its key ready. Feed a watchdog only then. O(1), and O(levels) in a
        /// queue with priorities.
        ///
        /// Returns false if the queue keeps no times: give it metrics, or
        /// [`Times`](requeue_core::metrics::Times) if you need no figures.
        /// [`Session::is_within`](requeue_core::Session::is_within) has an example, and says what
        /// levels, groups and pauses mean for it.
        pub fn is_within(
            &self,
            ready_max: ::core::time::Duration,
            run_max: ::core::time::Duration,
        ) -> bool {
            self.as_shared()
                .timed(true, |session| session.is_within(ready_max, run_max))
        }
    };
    (control: $krate:literal, $example:expr, $groups:expr, $K:ty, $P:ty, $S:ty) => {
        /// Cancels the work of a key: it is no longer ready, dirty, delayed or suspended. O(log n).
        ///
        /// Returns the state that the key had. Returns `None` and changes nothing if the queue does
        /// not [have](Self::contains) the key. A run that has begun continues. It can call
        /// [`Guard::is_cancelled`](requeue_core::Guard::is_cancelled) or [`state`](Self::state).
        /// The failures of the key stay on record, until [`forget`](Self::forget). The other keys
        /// keep their order.
        ///
        /// This works after shutdown, too. A drain ends if it cancels the last key.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        /// let _ = queue.add("node-7");
        /// let _ = queue.add_after("node-7", core::time::Duration::from_secs(60));
        /// let was = queue.cancel("node-7").unwrap();
        /// assert!(was.ready && was.due.is_some());
        /// assert!(queue.try_get().is_none());
        /// assert_eq!(queue.cancel("node-7"), None);
        /// ```
        pub fn cancel<B>(&self, key: &B) -> Option<$crate::KeyState>
        where
            $K: ::core::borrow::Borrow<B>,
            B: Eq + ::core::hash::Hash + ?Sized,
        {
            self.as_shared().with(|session| session.cancel(key))
        }

        /// Cancels the deadline of a key. Returns it, or `None` if the key is not delayed. O(log n).
        ///
        /// A key that is also ready or active stays so. A deadline that has passed has added the key
        /// already. Use [`cancel`](Self::cancel) for such a key.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        /// let _ = queue.add_after("lease-3", core::time::Duration::from_secs(60));
        /// assert!(queue.cancel_delay("lease-3").is_some());
        /// assert!(!queue.contains("lease-3"));
        /// ```
        pub fn cancel_delay<B>(&self, key: &B) -> Option<$crate::Instant>
        where
            $K: ::core::borrow::Borrow<B>,
            B: Eq + ::core::hash::Hash + ?Sized,
        {
            self.as_shared().with(|session| session.cancel_delay(key))
        }

        /// Suspends a key until [`resume`](Self::resume), and for `timeout` at most, from now.
        /// Returns whether the key is suspended now, or will be when its run ends. O(log n).
        ///
        /// Use this if a key waits for an event: its own write must arrive in a cache, or another
        /// object must appear. **Call it before you cause the event**, because it cancels a `resume`
        /// that came earlier in the same run. If a run learns only at its end that it must wait,
        /// return [`Action::Suspend`](requeue_core::Action::Suspend), which obeys an earlier `resume`. A
        /// suspended key is not handed out and takes no worker:
        ///
        /// | what happens to a suspended key | what becomes of it |
        /// |---|---|
        /// | it is added | it runs when the suspension ends, at the highest priority that was asked for; more adds coalesce |
        /// | it is added for a later time | it also runs at that time, or when the suspension ends, if that is later |
        /// | `resume` | it runs if it was added, or was ready before, or if `Action::Suspend` asked for it. Otherwise it is idle |
        /// | the timeout ends | it runs in any case, because an event may have been missed. Its level is the lowest, unless an add asked for a higher one. [The run is told](requeue_core::RunContext) |
        /// | `suspend` | the new timeout counts, even a shorter one |
        /// | [`cancel`](Self::cancel) | its work is cancelled, and it is no longer suspended |
        /// | [`forget`](Self::forget) | it stays suspended |
        /// | [`expedite`](Self::expedite) | its delay ends, as if it was added now, but not its suspension |
        /// | shutdown | a leftover, also if it was added, with the time left until the timeout. If the timeout had passed by then, it runs |
        ///
        /// A key that is ready or delayed is suspended now. An active key is suspended when its run
        /// ends, with any action. The action still counts: a `Retry` counts a failure, and sets its
        /// delay. If the timeout has passed by then, the next operation ends the suspension. If a
        /// [hold](requeue_core::Policy) ends later than the suspension, the key waits for the hold,
        /// also after `resume`.
        ///
        /// Returns `false` and changes nothing if the queue does not have the key or has only its
        /// failures, and after shutdown. With a timeout of
        /// [`Duration::MAX`](core::time::Duration::MAX) the key waits for `resume` alone. A
        /// timeout of zero has ended before the next operation.
        ///
        /// Suspended keys take up room, and count neither as ready nor as delayed, nor among the
        /// active keys of their groups. The queue is not [settled](Self::is_settled) while a key is
        /// suspended. On boards the queue's type needs
        /// [`WithSuspension`](requeue_core::priority::WithSuspension).
        ///
        /// # Examples
        ///
        /// A controller writes an object, and its cache does not show the write yet:
        ///
        /// ```
        #[doc = $example]
        /// use core::time::Duration;
        ///
        /// queue.add("node-7").unwrap();
        /// let guard = queue.try_get().unwrap();
        /// assert!(queue.suspend("node-7", Duration::from_secs(5)));
        /// // Here it writes.
        /// guard.success();
        ///
        /// // Another event asks for a run: it waits, so that it does not act on the old state.
        /// queue.add("node-7").unwrap();
        /// assert!(queue.try_get().is_none());
        ///
        /// // The write arrives.
        /// assert!(queue.resume("node-7"));
        /// assert!(queue.try_get().is_some());
        /// ```
        pub fn suspend<B>(&self, key: &B, timeout: ::core::time::Duration) -> bool
        where
            $K: ::core::borrow::Borrow<B>,
            B: Eq + ::core::hash::Hash + ?Sized,
            $S: $crate::binding::Suspends<$P>,
        {
            self.as_shared()
                .timed(true, |session| session.suspend(key, timeout))
        }

        /// Ends the suspension of a key, or cancels the one that would begin when its run ends.
        /// Returns whether there was one. O(log n).
        ///
        /// The key becomes ready if it was added meanwhile, or was ready before, or if
        /// [`Action::Suspend`](requeue_core::Action::Suspend) has asked for a run. If it was added for a
        /// later time, it is delayed until then.
        ///
        /// Call this when the event arrives that the key waits for. The event may be faster than
        /// the run. So if the key is active, the queue remembers the call until the run ends: an
        /// `Action::Suspend` of that run makes the key ready. A later [`suspend`](Self::suspend) in
        /// the run cancels the call.
        ///
        /// Does nothing for any other key, and after shutdown.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        /// use core::time::Duration;
        ///
        /// queue.add("volume-4").unwrap();
        /// let guard = queue.try_get().unwrap();
        /// // The event is faster than the run that wants to wait for it.
        /// assert!(!queue.resume("volume-4"));
        /// guard.suspend(Duration::from_secs(300));
        /// assert!(queue.try_get().is_some());
        /// ```
        pub fn resume<B>(&self, key: &B) -> bool
        where
            $K: ::core::borrow::Borrow<B>,
            B: Eq + ::core::hash::Hash + ?Sized,
            $S: $crate::binding::Suspends<$P>,
        {
            self.as_shared().with(|session| session.resume(key))
        }

        /// [Cancels](Self::cancel) the keys that `keep` returns `false` for. Returns how many.
        /// O(slots), and O(log n) for each key that is cancelled, a few of them under each lock.
        ///
        /// Calls `keep` for each key that the queue [has](Self::contains), in no order, and perhaps
        /// for keys that are added meanwhile. The other keys keep their order. `keep` runs while
        /// the queue is locked, and must not call it.
        ///
        /// # Examples
        ///
        /// A site is closed, and its nodes need no more runs:
        ///
        /// ```
        #[doc = $example]
        /// let _ = queue.add("ulm/node-1");
        /// let _ = queue.add("bonn/node-1");
        /// let _ = queue.add("ulm/node-2");
        /// assert_eq!(queue.retain(|node| !node.starts_with("ulm/")), 2);
        /// assert_eq!(*queue.try_get().unwrap(), "bonn/node-1");
        /// ```
        pub fn retain(&self, keep: impl FnMut(&$K) -> bool) -> usize {
            $crate::chunks::retain(self.as_shared(), keep)
        }

        /// [Cancels](Self::cancel) all keys. Returns how many. Costs as [`retain`](Self::retain).
        ///
        /// Runs that have begun continue, and failures stay on record. A key that is added meanwhile
        /// may stay.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        /// let _ = queue.add("node-7");
        /// let _ = queue.add("node-8");
        /// assert_eq!(queue.clear(), 2);
        /// assert!(queue.is_empty());
        /// ```
        pub fn clear(&self) -> usize {
            self.retain(|_| false)
        }

        /// Ends the delay of a key now, as if its deadline had passed. Returns whether it had one.
        /// O(log n).
        ///
        /// The key becomes ready, or dirty if it is active. A ready key keeps its place. A
        /// [held](requeue_core::Policy) key waits until its hold ends. Does nothing after shutdown.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        /// let _ = queue.add_after("node-7", core::time::Duration::from_secs(60));
        /// assert!(queue.try_get().is_none());
        /// assert!(queue.expedite("node-7"));
        /// assert_eq!(*queue.try_get().unwrap(), "node-7");
        /// ```
        pub fn expedite<B>(&self, key: &B) -> bool
        where
            $K: ::core::borrow::Borrow<B>,
            B: Eq + ::core::hash::Hash + ?Sized,
        {
            self.as_shared().with(|session| session.expedite(key))
        }

        /// Ends the delays of all keys now, in the order of their deadlines. O(log n) for each, a
        /// few of them under each lock. Does nothing after shutdown.
        ///
        /// With a [policy](requeue_core::Policy) that holds keys, the order is not specified.
        ///
        /// Ends as many delays as there are when it begins. Keys that others delay meanwhile count,
        /// if their deadlines are among the first.
        ///
        /// # Examples
        ///
        /// A cluster is reachable again, and every retry may come now:
        ///
        /// ```
        #[doc = $example]
        /// use core::time::Duration;
        ///
        /// let _ = queue.add_after("node-8", Duration::from_secs(60));
        /// let _ = queue.add_after("node-7", Duration::from_secs(30));
        /// queue.expedite_all();
        /// assert_eq!(*queue.try_get().unwrap(), "node-7");
        /// ```
        pub fn expedite_all(&self) {
            $crate::chunks::expedite_all(self.as_shared());
        }

        /// Hands out no more keys until [`unpause`](Self::unpause): calls that wait for a key wait,
        /// even if keys are ready, and time out as usual. O(1).
        ///
        /// Everything else continues: you can add, cancel and look at keys, delays end, and runs
        /// end as usual. Shutdown ends a pause, because a drain has to end. After shutdown this does
        /// nothing.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        /// queue.pause();
        /// let _ = queue.add("node-7");
        /// assert!(queue.is_paused());
        /// assert!(queue.try_get().is_none());
        /// queue.unpause();
        /// assert_eq!(*queue.try_get().unwrap(), "node-7");
        /// ```
        pub fn pause(&self) {
            self.as_shared().with(|session| session.pause());
        }

        /// Hands keys out again after [`pause`](Self::pause), and wakes a call that waits if there
        /// is something for it. O(1).
        pub fn unpause(&self) {
            self.as_shared().with(|session| session.unpause());
        }

        /// Returns whether the queue is [paused](Self::pause). O(1).
        pub fn is_paused(&self) -> bool {
            self.as_shared().look(|queue| queue.is_paused())
        }

        /// Ends the run of a key, as client-go's `Done`: the key's failures stay as they are. O(1).
        ///
        /// A worker that has the key's guard uses that. A guard whose run was ended by its key has
        /// no effect any more.
        ///
        /// Returns [`Finished::Stale`](requeue_core::Finished::Stale) if the key is not active:
        /// nothing changes. client-go's `Done` does not tell.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        #[doc = concat!("use ", $krate, "::Finished;")]
        ///
        /// let _ = queue.add("node-7");
        /// let guard = queue.try_get().unwrap();
        /// assert_eq!(queue.release_key("node-7"), Finished::Idle);
        /// assert_eq!(queue.release_key("node-7"), Finished::Stale);
        /// assert_eq!(guard.release(), Finished::Stale, "the guard has nothing left to do");
        /// ```
        #[doc(alias = "Done")]
        pub fn release_key<B>(&self, key: &B) -> $crate::Finished
        where
            $K: ::core::borrow::Borrow<B>,
            B: Eq + ::core::hash::Hash + ?Sized,
        {
            self.as_shared().with(|session| session.release_key(key))
        }
    };
    (limits: $krate:literal, $example:expr, $groups:expr, $K:ty, $P:ty, $S:ty) => {
        /// Sets what keys wait for in addition to their delays: see
        /// [`Policy`](requeue_core::Policy). Held keys stay held for as long as the former policy
        /// has said. A queue of a fixed size needs
        /// [`WithPolicy`](requeue_core::priority::WithPolicy) for this. O(1).
        pub fn set_policy(&self, policy: $crate::Policy)
        where
            $S: $crate::binding::Governs<$P>,
        {
            self.as_shared().with(|session| session.set_policy(policy));
        }

        /// Serves keys that have waited for longer than `after` before the younger keys of higher
        /// levels, from now on; with `None`, none of them. For queues with
        /// [`Aging`](requeue_core::priority::Aging). O(1).
        ///
        /// [`Aging`](requeue_core::priority::Aging) has an example.
        pub fn age_after(&self, after: impl Into<Option<::core::time::Duration>>)
        where
            $P: $crate::binding::Ages,
        {
            let after = after.into();
            self.as_shared().with(|session| session.age_after(after));
        }
        /// Sets the limits of all groups, present and future, that have none of their own. Wakes a
        /// waiting call if it can run something now. O(levels) for at most eight groups. The next
        /// get looks at the groups in front that the new limits block, each once: O(groups) if they
        /// block all.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $groups]
        #[doc = concat!("use ", $krate, "::GroupLimits;")]
        ///
        /// queue.limit_groups(GroupLimits::new().max_active(1));
        /// let _ = queue.add(("a", 1));
        /// let _ = queue.add(("a", 2));
        /// let _ = queue.add(("b", 1));
        /// let (first, second) = (queue.try_get().unwrap(), queue.try_get().unwrap());
        /// assert_eq!((*first, *second), (("a", 1), ("b", 1)));
        /// assert!(queue.try_get().is_none());
        /// ```
        pub fn limit_groups(
            &self,
            limits: $crate::GroupLimits<<$P as $crate::priority::Priorities>::Rates>,
        )
        where
            $P: $crate::priority::Grouped,
        {
            self.as_shared()
                .with(|session| session.limit_groups(limits));
        }

        /// Sets the limits of a group by name, which then stays although it may have no keys. With
        /// `None` it has those of all groups again. O(levels).
        ///
        /// # Errors
        ///
        /// The name, if there is no room for one more group. Nothing changes then.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $groups]
        #[doc = concat!("use ", $krate, "::GroupLimits;")]
        ///
        /// // At most ten keys of it a second, and up to three in a row after a rest.
        /// queue.limit_group("a", GroupLimits::new().rate(10.0, 3)).unwrap();
        /// assert_eq!(queue.limit_group("a", None), Ok(()));
        /// ```
        pub fn limit_group<G>(
            &self,
            name: G,
            limits: impl Into<
                Option<$crate::GroupLimits<<$P as $crate::priority::Priorities>::Rates>>,
            >,
        ) -> Result<(), G>
        where
            $P: $crate::priority::Grouped<Group = G>,
        {
            let limits = limits.into();
            self.as_shared()
                .with(|session| session.limit_group(name, limits))
        }

        /// Hands out no more keys of a group until [`unpause_group`](Self::unpause_group). Everything
        /// else continues, and shutdown ends the pause. O(levels).
        ///
        /// # Errors
        ///
        /// The name, if there is no room for one more group. Nothing changes then.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $groups]
        /// let _ = queue.add(("a", 1));
        /// queue.pause_group("a").unwrap();
        /// assert!(queue.try_get().is_none());
        /// queue.unpause_group("a");
        /// assert_eq!(*queue.try_get().unwrap(), ("a", 1));
        /// ```
        pub fn pause_group<G>(&self, name: G) -> Result<(), G>
        where
            $P: $crate::priority::Grouped<Group = G>,
        {
            self.as_shared().with(|session| session.pause_group(name))
        }

        /// Hands out keys of a group again. The group takes its turn last. Wakes a waiting call if
        /// there is a key for it. O(levels). [`pause_group`](Self::pause_group) has an example.
        pub fn unpause_group<B, G>(&self, name: &B)
        where
            $P: $crate::priority::Grouped<Group = G>,
            G: ::core::borrow::Borrow<B>,
            B: Eq + ::core::hash::Hash + ?Sized,
        {
            self.as_shared().with(|session| session.unpause_group(name));
        }

        /// Returns the figures of a group. `None` if it has no keys, no limits of its own and no
        /// pause; a group that has just lost the last of them may remain, with figures of zero,
        /// until its place is needed. A due key counts as ready, and a group with a new token as
        /// not blocked, once an operation has noticed. O(1) expected.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $groups]
        /// let _ = queue.add(("a", 1));
        /// queue.pause_group("a").unwrap();
        /// let a = queue.group("a").unwrap();
        /// assert!(a.ready == 1 && a.paused);
        /// ```
        pub fn group<B, G>(&self, name: &B) -> Option<$crate::GroupState>
        where
            $P: $crate::priority::Grouped<Group = G>,
            G: ::core::borrow::Borrow<B>,
            B: Eq + ::core::hash::Hash + ?Sized,
        {
            self.as_shared().look(|queue| queue.group(name))
        }

        /// Returns the name of the group of a key, also if the queue does not have the key. Costs as
        /// the function that computes it, which runs while the queue is locked.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $groups]
        /// assert_eq!(queue.group_of(&("a", 1)), "a");
        /// ```
        pub fn group_of<G>(&self, key: &$K) -> G
        where
            $P: $crate::priority::Grouped<Group = G>,
        {
            self.as_shared().look(|queue| queue.group_of(key))
        }

        /// Returns the groups, with the figures of each: an iterator that looks at 32 of them (8
        /// with `Fixed` storage) under each lock, O(1) each. Changes nothing.
        ///
        /// The groups are in no order. A group that exists all the time appears exactly once. Names
        /// are cloned while the queue is locked.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $groups]
        /// let _ = queue.add(("a", 1));
        /// let _ = queue.add(("a", 2));
        /// let _ = queue.add(("b", 1));
        /// let longest = queue.groups().max_by_key(|(_, group)| group.ready);
        /// assert_eq!(longest.unwrap().0, "a");
        /// ```
        pub fn groups<G>(&self) -> impl Iterator<Item = (G, $crate::GroupState)>
        where
            $P: $crate::priority::Grouped<Group = G>,
            G: Clone,
        {
            $crate::chunks::groups(self.as_shared())
        }
    };
    (closing: $krate:literal, $example:expr, $groups:expr, $K:ty, $P:ty, $S:ty) => {
        /// Shuts the queue down: it takes no more keys, and getters find it closed once no key is
        /// ready. Ends every wait for a drain. O(1), and O(n) in the calls that wait, which are
        /// woken.
        ///
        /// A dirty key is ready when its run ends. The worker that ended the run gets it, if it
        /// looks for its next key, as in `run`. Other getters may have left: they wait for such
        /// keys only in a [drain](requeue_core::Session::begin_drain).
        ///
        /// Delayed and suspended keys stay until you take the [leftovers](Self::leftovers), or drop
        /// the queue.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        /// let _ = queue.add("node-7");
        /// queue.shut_down();
        /// assert!(queue.is_shutting_down());
        /// let guard = queue.try_get().unwrap();
        /// assert_eq!(*guard, "node-7", "what was ready is handed out");
        /// # guard.success();
        /// ```
        #[doc(alias = "ShutDown")]
        pub fn shut_down(&self) {
            self.as_shared().timed(true, |session| session.shut_down());
        }

        /// Returns whether the queue has been shut down. O(1). [`shut_down`](Self::shut_down) has
        /// an example.
        #[doc(alias = "ShuttingDown")]
        pub fn is_shutting_down(&self) -> bool {
            self.as_shared().look(|queue| queue.is_shutting_down())
        }

        /// Returns when the queue was first shut down, `None` if it was not. O(1).
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        ///
        /// assert_eq!(queue.closed_at(), None);
        /// queue.shut_down();
        /// assert!(queue.closed_at().is_some());
        /// ```
        pub fn closed_at(&self) -> Option<$crate::Instant> {
            self.as_shared().look(|queue| queue.closed_at())
        }

        /// Removes and returns every key that is ready, delayed or suspended, after shutdown: ready
        /// keys first, then the others in the order in which their time ends. Active keys stay.
        /// Empty before shutdown. O(log n) per key, each under a lock of its own.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        /// use core::time::Duration;
        ///
        /// let _ = queue.add_after("lease-3", Duration::from_secs(60));
        /// let _ = queue.add("node-7");
        /// queue.shut_down();
        /// assert!(queue.leftovers().map(|left| left.key).eq(["node-7", "lease-3"]));
        /// ```
        pub fn leftovers(&self) -> impl Iterator<Item = $crate::Leftover<$K>>
        where
            $K: Clone,
        {
            $crate::chunks::leftovers(self.as_shared())
        }
    };
    (taking: $krate:literal, $example:expr, $K:ty, $handle:path, $($Guard:tt)+) => {
        /// Returns the first ready key, or `None` if there is none. O(log n). Waits for nothing
        /// except the lock.
        ///
        /// If the deadlines of several active keys have just passed, a key that is due after them
        /// may take another call. [`Queue::limit_due_keys`](requeue_core::Queue::limit_due_keys) has
        /// the rule.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        /// let _ = queue.add("node-7");
        /// while let Some(guard) = queue.try_get() {
        ///     assert_eq!(*guard, "node-7");
        ///     guard.success();
        /// }
        /// assert!(!queue.contains("node-7"));
        /// ```
        #[doc(alias = "Get")]
        #[inline]
        #[must_use = "a guard that is dropped unreported counts as failed, and its key is retried"]
        pub fn try_get(&self) -> Option<$($Guard)+>
        where
            $K: Clone,
        {
            self.as_shared()
                .with(|session| Some($crate::Guard::new(session.try_get()?, $handle(self))))
        }

        /// Ends a run and returns the first ready key, if there is one, under one lock: one round of
        /// a worker's loop. Costs as the two calls.
        ///
        /// A guard of another queue ends its run in that queue.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        #[doc = concat!("use ", $krate, "::Action;")]
        ///
        /// let _ = queue.add("node-7");
        /// let _ = queue.add("node-8");
        /// let mut next = queue.try_get();
        /// while let Some(guard) = next {
        ///     next = queue.try_next(guard, Action::Success);
        /// }
        /// assert!(!queue.contains("node-8"));
        /// ```
        #[inline]
        #[must_use = "a guard that is dropped unreported counts as failed, and its key is retried"]
        pub fn try_next(&self, guard: $($Guard)+, action: $crate::Action) -> Option<$($Guard)+>
        where
            $K: Clone,
        {
            let work = self.as_shared().finish_and_take(guard, action)?;
            Some($crate::Guard::new(work, $handle(self)))
        }
    };
    (taking_blocking: $krate:literal, $example:expr, $K:ty, $get:ident, $($Guard:tt)+) => {
        /// Returns the first ready key. Waits for one if there is none. Costs as
        /// [`try_get`](Self::try_get) for each look; there is one look for each wake.
        ///
        /// # Errors
        ///
        /// [`Closed`](requeue_core::WaitError::Closed) once the queue is shut down and no key is
        /// ready. [`TooManyWaiters`](requeue_core::WaitError::TooManyWaiters) if there is neither a
        /// key nor a place to wait for one, which happens only on boards with several cores.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        /// let _ = queue.add("node-7");
        /// let guard = queue.get().unwrap();
        /// assert_eq!((*guard, guard.attempt()), ("node-7", 1));
        /// guard.success();
        ///
        /// queue.shut_down();
        /// assert!(queue.get().is_err());
        /// ```
        #[doc(alias = "Get")]
        #[must_use = "a guard that is dropped unreported counts as failed, and its key is retried"]
        pub fn get(&self) -> Result<$($Guard)+, $crate::WaitError>
        where
            $K: Clone,
        {
            self.$get(None)
        }

        /// As [`get`](Self::get), but waits no longer than `timeout`.
        /// [`Duration::MAX`](core::time::Duration::MAX) waits as [`get`](Self::get) does.
        ///
        /// # Errors
        ///
        /// As [`get`](Self::get), and [`TimedOut`](requeue_core::WaitError::TimedOut) if no key was
        /// ready in time.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        #[doc = concat!("use ", $krate, "::WaitError;")]
        /// use core::time::Duration;
        ///
        /// match queue.get_timeout(Duration::ZERO) {
        ///     Ok(guard) => println!("work for {}", *guard),
        ///     Err(WaitError::TimedOut) => println!("nothing to do: time for something else"),
        ///     Err(error) => println!("stopping: {error}"),
        /// }
        /// ```
        pub fn get_timeout(
            &self,
            timeout: ::core::time::Duration,
        ) -> Result<$($Guard)+, $crate::WaitError>
        where
            $K: Clone,
        {
            self.get_deadline(self.now() + timeout)
        }

        /// As [`get`](Self::get), but waits no longer than until `deadline`, on the queue's
        /// [clock](Self::now). A ready key is returned even if the deadline has passed.
        ///
        /// # Errors
        ///
        /// As [`get_timeout`](Self::get_timeout).
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        /// use core::time::Duration;
        ///
        /// let _ = queue.add("node-7");
        /// // One second for a whole round, however long each key takes.
        /// let deadline = queue.now() + Duration::from_secs(1);
        /// while let Ok(guard) = queue.get_deadline(deadline) {
        ///     guard.success();
        ///     queue.shut_down();
        /// }
        /// ```
        pub fn get_deadline(
            &self,
            deadline: $crate::Instant,
        ) -> Result<$($Guard)+, $crate::WaitError>
        where
            $K: Clone,
        {
            self.$get(Some(deadline))
        }

        /// Ends a run and returns the next key: one round of a worker's loop. Waits as
        /// [`get`](Self::get) does. Costs as the two calls, under one lock if a key is ready.
        ///
        /// A guard of another queue ends its run in that queue. Finish the guard yourself to learn
        /// what became of its key.
        ///
        /// # Errors
        ///
        /// As [`get`](Self::get). The run has ended all the same.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        #[doc = concat!("use ", $krate, "::Action;")]
        ///
        /// let _ = queue.add("node-7");
        /// let _ = queue.add("node-8");
        /// queue.shut_down();
        ///
        /// let mut seen = Vec::new();
        /// let mut next = queue.get();
        /// while let Ok(guard) = next {
        ///     seen.push(*guard);
        ///     next = queue.next(guard, Action::Success);
        /// }
        /// assert_eq!(seen, ["node-7", "node-8"]);
        /// ```
        #[must_use = "a guard that is dropped unreported counts as failed, and its key is retried"]
        pub fn next(
            &self,
            guard: $($Guard)+,
            action: $crate::Action,
        ) -> Result<$($Guard)+, $crate::WaitError>
        where
            $K: Clone,
        {
            let found = self.as_shared().finish_and_take(guard, action);
            self.found_or_wait(found, None)
        }

        /// Fast path: most calls find a key.
        #[inline]
        fn found_or_wait(
            &self,
            found: Option<$crate::binding::Work<$K>>,
            deadline: Option<$crate::Instant>,
        ) -> Result<$($Guard)+, $crate::WaitError>
        where
            $K: Clone,
        {
            match found {
                Some(work) => Ok($crate::Guard::new(work, self.as_shared())),
                None => self.wait_for_key(deadline),
            }
        }
    };
    (taking_async: $krate:literal, $begin:expr, $end:expr, $K:ty, $handle:path, $($Guard:tt)+) => {
        /// Returns the first ready key. Waits for one if there is none. Costs as
        /// [`try_get`](Self::try_get) for each look; there is one look for each wake.
        ///
        /// # Errors
        ///
        /// [`Closed`](requeue_core::WaitError::Closed) once the queue is shut down and no key is
        /// ready. [`TooManyWaiters`](requeue_core::WaitError::TooManyWaiters) if there is neither a
        /// key nor a place to wait for one: a queue for boards has a fixed number of places.
        ///
        /// # Cancel safety
        ///
        /// No key is lost: if you drop the future before it is ready, no key leaves the queue. If
        /// the call was woken, or watched the clock, another call takes over. Only its place in the
        /// order is lost.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $begin]
        /// let _ = queue.add("node-7");
        /// let guard = queue.get().await.unwrap();
        /// assert_eq!((*guard, guard.attempt()), ("node-7", 1));
        /// guard.success();
        ///
        /// queue.shut_down();
        /// assert!(queue.get().await.is_err());
        #[doc = $end]
        /// ```
        #[doc(alias = "Get")]
        pub fn get(&self) -> impl Future<Output = Result<$($Guard)+, $crate::WaitError>>
        where
            $K: Clone,
        {
            let guard = move |work| $crate::Guard::new(work, $handle(self));
            self.as_shared().take(None, guard)
        }

        /// As [`get`](Self::get), but waits no longer than `timeout`, counted from the first poll.
        /// [`Duration::MAX`](core::time::Duration::MAX) waits as [`get`](Self::get) does.
        ///
        /// # Errors
        ///
        /// As [`get`](Self::get), and [`TimedOut`](requeue_core::WaitError::TimedOut) if no key was
        /// ready in time.
        ///
        /// # Cancel safety
        ///
        /// As [`get`](Self::get).
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $begin]
        #[doc = concat!("use ", $krate, "::WaitError;")]
        /// use core::time::Duration;
        ///
        /// match queue.get_timeout(Duration::ZERO).await {
        ///     Ok(guard) => println!("work for {}", *guard),
        ///     Err(WaitError::TimedOut) => println!("nothing to do: time for something else"),
        ///     Err(error) => println!("stopping: {error}"),
        /// }
        #[doc = $end]
        /// ```
        pub async fn get_timeout(
            &self,
            timeout: ::core::time::Duration,
        ) -> Result<$($Guard)+, $crate::WaitError>
        where
            $K: Clone,
        {
            self.get_deadline(self.now() + timeout).await
        }

        /// As [`get`](Self::get), but waits no longer than until `deadline`, on the queue's
        /// [clock](Self::now). A ready key is returned even if the deadline has passed.
        ///
        /// # Errors
        ///
        /// As [`get_timeout`](Self::get_timeout).
        ///
        /// # Cancel safety
        ///
        /// As [`get`](Self::get).
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $begin]
        /// use core::time::Duration;
        ///
        /// let _ = queue.add("node-7");
        /// // One second for a whole round, however long each key takes.
        /// let deadline = queue.now() + Duration::from_secs(1);
        /// while let Ok(guard) = queue.get_deadline(deadline).await {
        ///     guard.success();
        ///     queue.shut_down();
        /// }
        #[doc = $end]
        /// ```
        pub fn get_deadline(
            &self,
            deadline: $crate::Instant,
        ) -> impl Future<Output = Result<$($Guard)+, $crate::WaitError>>
        where
            $K: Clone,
        {
            let guard = move |work| $crate::Guard::new(work, $handle(self));
            self.as_shared().take(Some(deadline), guard)
        }

        /// Ends a run and returns the next key, under one lock: one round of a worker's loop. Waits
        /// as [`get`](Self::get) does. Costs as the two calls.
        ///
        /// A guard of another queue ends its run in that queue. Finish the guard yourself to learn
        /// what became of its key.
        ///
        /// # Errors
        ///
        /// As [`get`](Self::get).
        ///
        /// # Cancel safety
        ///
        /// The run ends in any case, even if you drop the future before its first poll. After that
        /// as [`get`](Self::get).
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $begin]
        #[doc = concat!("use ", $krate, "::Action;")]
        ///
        /// let _ = queue.add("node-7");
        /// let _ = queue.add("node-8");
        /// queue.shut_down();
        ///
        /// let mut seen = Vec::new();
        /// let mut next = queue.get().await;
        /// while let Ok(guard) = next {
        ///     seen.push(*guard);
        ///     next = queue.next(guard, Action::Success).await;
        /// }
        /// assert_eq!(seen, ["node-7", "node-8"]);
        #[doc = $end]
        /// ```
        pub fn next(
            &self,
            guard: $($Guard)+,
            action: $crate::Action,
        ) -> impl Future<Output = Result<$($Guard)+, $crate::WaitError>>
        where
            $K: Clone,
        {
            let mut call = $crate::binding::Wait::after(guard, action, self.as_shared());
            async move { Ok($crate::Guard::new(call.take().await?, $handle(self))) }
        }
    };
    (adding_async: $krate:literal, $begin:expr, $end:expr, $K:ty) => {
        /// Adds a key. Waits for room if the key is new and there is none. O(1) for each look. A
        /// queue that grows without a limit always has room.
        ///
        /// Each place that becomes free wakes one call, in the order in which they began to wait. A
        /// key that another call adds meanwhile may take the place first. Then this call waits on,
        /// and stays the first. A key that the queue has needs no room; if another call adds the
        /// key while this one waits, this one waits for a place all the same. Do not call this in
        /// a run: if no other key leaves the queue, the worker waits for its own key for ever.
        ///
        /// # Errors
        ///
        /// [`Rejected::Closed`](requeue_core::Rejected::Closed) returns the key once the queue is
        /// shut down. [`Rejected::TooManyWaiters`](requeue_core::Rejected::TooManyWaiters) returns
        /// it if there is neither room nor a place to wait for it: a queue for boards has a fixed
        /// number of places.
        ///
        /// # Cancel safety
        ///
        /// If you drop the future before it is ready, the key is not added, and is dropped. The
        /// next call that waits takes over. [`add_wait_with`](Self::add_wait_with) returns the key
        /// after a timeout.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $begin]
        #[doc = concat!("use ", $krate, "::Added;")]
        ///
        /// // This queue has room for four keys.
        /// let _ = queue.add("node-1");
        /// let _ = queue.add("node-2");
        /// let _ = queue.add("node-3");
        /// let _ = queue.add("node-4");
        /// let worker = async { queue.get().await.unwrap().success() };
        /// let (added, _) = join(queue.add_wait("node-5"), worker).await;
        /// assert_eq!(added, Ok(Added::Ready));
        #[doc = $end]
        /// ```
        pub async fn add_wait(&self, key: $K) -> Result<$crate::Added, $crate::Rejected<$K>> {
            let options = $crate::AddOptions::new();
            let scheduled = self.as_shared().add_until(key, options, None).await;
            scheduled.map(|scheduled| scheduled.added)
        }

        /// As [`add_with`](Self::add_with), but waits for room as [`add_wait`](Self::add_wait)
        /// does, and no longer than `timeout`, counted from the first poll. A delay begins once
        /// there is room. [`Duration::MAX`](core::time::Duration::MAX) sets no limit.
        ///
        /// # Errors
        ///
        /// As [`add_wait`](Self::add_wait), and if there was no room in time, or the queue has no
        /// such priority level.
        ///
        /// # Cancel safety
        ///
        /// As [`add_wait`](Self::add_wait).
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $begin]
        #[doc = concat!("use ", $krate, "::AddOptions;")]
        /// use core::time::Duration;
        ///
        /// let _ = queue.add("node-1");
        /// let _ = queue.add("node-2");
        /// let _ = queue.add("node-3");
        /// let _ = queue.add("node-4");
        /// let later = AddOptions { after: Some(Duration::from_secs(60)), ..AddOptions::new() };
        /// let added = queue.add_wait_with("lease-3", later, Duration::ZERO).await;
        /// assert_eq!(added.unwrap_err().into_key(), "lease-3");
        #[doc = $end]
        /// ```
        pub async fn add_wait_with(
            &self,
            key: $K,
            options: $crate::AddOptions,
            timeout: ::core::time::Duration,
        ) -> Result<$crate::Scheduled, $crate::Rejected<$K>> {
            let deadline = self.now() + timeout;
            self.as_shared()
                .add_until(key, options, Some(deadline))
                .await
        }
    };
    (looking_async: $krate:literal, $begin:expr, $end:expr, $K:ty, $waited:ident) => {
        /// Waits until no key is ready or active. Does not wait for delayed keys until they are
        /// due, nor for suspended keys. Also works after shutdown. Costs one look, O(log n), each
        /// time the queue may be idle.
        ///
        /// Waits for ever while the queue is [paused](Self::pause). The same holds if a key is
        /// ready and there are no workers, and if a worker calls it while it has a guard. Your
        /// runtime's timeout around the call limits the wait.
        ///
        #[doc = $crate::waited_errors!($waited)]
        ///
        /// # Cancel safety
        ///
        /// Dropping the future ends the wait.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $begin]
        /// let _ = queue.add("node-7");
        /// let worker = async { queue.get().await.unwrap().success() };
        /// let _ = join(queue.wait_idle(), worker).await;
        /// assert!(queue.is_idle());
        #[doc = $end]
        /// ```
        pub async fn wait_idle(&self) -> $crate::waited!($waited: ()) {
            let idle = self.as_shared().watch(|session| session.poll_idle());
            $crate::waited!($waited, idle.await, ())
        }

        /// Waits until no key is ready, active, delayed or suspended, so that no key runs again
        /// unless you add it. O(1) for each look. Otherwise as [`wait_idle`](Self::wait_idle).
        ///
        /// After shutdown delayed and suspended keys stay until you take the
        /// [leftovers](Self::leftovers).
        ///
        #[doc = $crate::waited_errors!($waited)]
        ///
        /// # Cancel safety
        ///
        /// Dropping the future ends the wait.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $begin]
        /// use core::time::Duration;
        ///
        /// let _ = queue.add_after("lease-3", Duration::from_secs(60));
        /// let cancels = async { queue.cancel("lease-3") };
        /// let _ = join(queue.wait_settled(), cancels).await;
        /// assert!(queue.is_settled());
        #[doc = $end]
        /// ```
        pub async fn wait_settled(&self) -> $crate::waited!($waited: ()) {
            let settled = self.as_shared().watch(|session| session.poll_settled());
            $crate::waited!($waited, settled.await, ())
        }

        /// Waits for the runs of a key that are certain at the first poll: its present run, and one
        /// more if the key is ready or dirty. Returns when they have ended or were cancelled, and
        /// immediately if there are none. O(log n) to begin, and O(1) each time a run of any key
        /// has ended meanwhile.
        ///
        /// Does not wait for a delay: [`expedite`](Self::expedite) ends it first. If the key begins
        /// another run just as this looks, it waits for that run too. A worker that has the key's
        /// guard waits for itself.
        ///
        #[doc = $crate::waited_errors!($waited)]
        ///
        /// # Cancel safety
        ///
        /// Dropping the future ends the wait.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $begin]
        /// let _ = queue.add("node-7");
        /// let _ = queue.add("node-8");
        /// let worker = async { queue.get().await.unwrap().success() };
        /// let _ = join(queue.flush("node-7"), worker).await;
        /// assert!(!queue.contains("node-7"));
        /// assert!(queue.contains("node-8"), "it does not wait for the others");
        #[doc = $end]
        /// ```
        pub async fn flush<B>(&self, key: &B) -> $crate::waited!($waited: ())
        where
            $K: ::core::borrow::Borrow<B>,
            B: Eq + ::core::hash::Hash + ?Sized,
        {
            let mut flush = self.as_shared().with(|session| session.begin_flush(key));
            let done = self
                .as_shared()
                .watch(|session| session.poll_flush(key, &mut flush));
            $crate::waited!($waited, done.await, ())
        }

        /// [Cancels](Self::cancel) a key, and waits until its present run has ended. Returns what
        /// the key was, as `cancel` does. Costs as [`flush`](Self::flush).
        ///
        /// The run learns of it by [`Guard::is_cancelled`](requeue_core::Guard::is_cancelled). Does
        /// not wait for keys that are added meanwhile. A worker that has the key's guard waits for
        /// itself.
        ///
        #[doc = $crate::waited_errors!($waited)]
        ///
        /// # Cancel safety
        ///
        /// The first poll cancels the key. Dropping the future ends the wait and changes nothing
        /// else.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $begin]
        /// let _ = queue.add("node-7");
        /// let guard = queue.try_get().unwrap();
        /// let run = async move {
        ///     assert!(guard.is_cancelled());
        ///     guard.success()
        /// };
        /// let _ = join(queue.cancel_and_wait("node-7"), run).await;
        /// assert!(!queue.contains("node-7"));
        #[doc = $end]
        /// ```
        pub async fn cancel_and_wait<B>(
            &self,
            key: &B,
        ) -> $crate::waited!($waited: Option<$crate::KeyState>)
        where
            $K: ::core::borrow::Borrow<B>,
            B: Eq + ::core::hash::Hash + ?Sized,
        {
            let shared = self.as_shared();
            let (was, mut flush) =
                shared.with(|session| (session.cancel(key), session.begin_flush(key)));
            let ended = shared.watch(|session| session.poll_flush(key, &mut flush));
            $crate::waited!($waited, ended.await.map(|()| was), was)
        }

        /// Reports to the metrics how long the active keys have been running: immediately, and then
        /// every `period`, until the queue is shut down. client-go does so every 500 ms. A period
        /// of less than a millisecond counts as one millisecond, so that other tasks can run.
        ///
        /// # Cancel safety
        ///
        /// Dropping the future ends the reports.
        pub async fn report_running_every(&self, period: ::core::time::Duration) {
            let period = period.max(::core::time::Duration::from_millis(1));
            while !self.is_shutting_down() {
                self.report_running();
                let next = self.now() + period;
                $crate::binding::sleep_until(self.as_shared().clock(), next).await;
            }
        }
    };
    (closing_async: $krate:literal, $begin:expr, $end:expr, $waited:ident) => {
        /// Shuts the queue down and waits until no key is ready, dirty or active. Any number of
        /// tasks may wait. O(1) for each look.
        ///
        /// Waits for ever without workers, for a guard that was leaked, and if a worker calls it
        /// while it has a guard. Your runtime's timeout around the call limits the wait. Does not
        /// wait for delayed or suspended keys: [`leftovers`](Self::leftovers) returns them.
        ///
        /// # Errors
        ///
        /// [`Interrupted`](requeue_core::WaitError::Interrupted) if another call shuts the queue
        /// down meanwhile.
        /// [`TooManyWaiters`](requeue_core::WaitError::TooManyWaiters) if the call has to wait and
        /// all places to wait are taken, which happens only on boards. The queue is shut down all
        /// the same.
        ///
        /// # Cancel safety
        ///
        /// The first poll shuts the queue down. Dropping the future ends the wait and changes
        /// nothing else.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $begin]
        /// let _ = queue.add("node-7");
        /// let worker = async {
        ///     while let Ok(guard) = queue.get().await {
        ///         guard.success();
        ///     }
        /// };
        /// let (drained, ()) = join(queue.drain(), worker).await;
        /// assert_eq!(drained, Ok(()));
        /// assert!(!queue.contains("node-7"));
        #[doc = $end]
        /// ```
        #[doc(alias = "ShutDownWithDrain")]
        pub async fn drain(&self) -> Result<(), $crate::WaitError> {
            let drain = self.as_shared().begin_drain();
            let ended = self
                .as_shared()
                .watch(|session| session.poll_drain(Some(&drain)));
            ended.await?.into_result()
        }

        /// Waits until another call has shut the queue down, and no key is ready, dirty or active.
        /// Any number of tasks may wait. O(1) for each look.
        ///
        #[doc = $crate::waited_errors!($waited)]
        ///
        /// # Cancel safety
        ///
        /// Dropping the future ends the wait.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $begin]
        /// let shuts_down = async { queue.shut_down() };
        /// let _ = join(queue.wait_drained(), shuts_down).await;
        #[doc = $end]
        /// ```
        pub async fn wait_drained(&self) -> $crate::waited!($waited: ()) {
            let ended = self
                .as_shared()
                .watch(|session| session.poll_drain(None))
                .await;
            $crate::waited!($waited, ended.map(drop), ())
        }
    };
    (growing: $krate:literal, $example:expr) => {
        /// Sets how many keys the queue has at most; [`usize::MAX`] sets no limit. Wakes a call
        /// that waits for room if there is room now. O(1), and O(1) per evicted failure record.
        ///
        /// A queue that has more keys keeps them, and refuses new keys until there is room again:
        /// [`Session::limit_keys`](requeue_core::Session::limit_keys) has the details.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        #[doc = concat!("use ", $krate, "::Rejected;")]
        ///
        /// queue.limit_keys(1);
        /// let _ = queue.add("node-7");
        /// assert_eq!(queue.add("node-8"), Err(Rejected::Full("node-8")));
        /// queue.limit_keys(usize::MAX);
        /// let _ = queue.add("node-8");
        /// ```
        pub fn limit_keys(&self, keys: usize) {
            self.as_shared().with(|session| session.limit_keys(keys));
        }

        /// Makes room for `additional` more keys, so that adding them does not grow the queue. O(n)
        /// under the lock.
        ///
        /// # Panics
        ///
        /// If memory for so many keys cannot be addressed, as with any collection.
        pub fn reserve(&self, additional: usize) {
            self.as_shared().with(|session| session.reserve(additional));
        }
    };
}

/// The errors of a call that waits for a state of the queue, if it returns a `Result`.
#[doc(hidden)]
#[macro_export]
macro_rules! waited_errors {
    (plain) => {
        ""
    };
    ($checked:ident) => {
        "# Errors\n\n\
         [`TooManyWaiters`](requeue_core::WaitError::TooManyWaiters) if all places to wait are \
         taken. What the call does before it waits is done all the same."
    };
}

/// The type and the value of a call that waits for a state of the queue: a `Result`, or `plain` in a
/// queue that has a place for every call.
#[doc(hidden)]
#[macro_export]
macro_rules! waited {
    (plain: $T:ty) => { $T };
    (checked: $T:ty) => { Result<$T, $crate::WaitError> };
    (plain, $found:expr, $otherwise:expr) => { $found.unwrap_or($otherwise) };
    (checked, $found:expr, $otherwise:expr) => { $found };
}
