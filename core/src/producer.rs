//! The trait for everything that takes keys.

use core::ops::Deref;
use core::time::Duration;

use crate::options::AddOptions;
use crate::outcome::{Added, Rejected, Scheduled};
use crate::shared::{Host, Shared};

/// Takes keys: every queue of every runtime implements this, and so does what dereferences to one:
/// a reference, an `Arc` or a `Box`.
///
/// The trait is dyn-compatible, so that an event source can hold a queue without naming its type,
/// as `Arc<dyn Producer<K> + Send + Sync>` or `&'static dyn Producer<K>`.
///
/// # Examples
///
/// ```
/// use requeue_core::Producer;
///
/// struct Watcher<'q> {
///     changed: &'q dyn Producer<&'static str>,
/// }
///
/// impl Watcher<'_> {
///     fn saw_a_change(&self) {
///         // Only a queue that is full or shutting down rejects the key.
///         let _ = self.changed.add("node-7");
///     }
/// }
#[doc = include_str!("shared/example.txt")]
///
/// Watcher { changed: &queue }.saw_a_change();
/// assert!(queue.contains("node-7"));
/// ```
pub trait Producer<K> {
    /// Marks a key as having work to do. O(1).
    ///
    /// # Errors
    ///
    /// [`Rejected`] returns the key: the queue is shutting down, or the key is new and there is no
    /// room. Nothing has changed then.
    #[doc(alias = "Add")]
    fn add(&self, key: K) -> Result<Added, Rejected<K>>;

    /// Adds a key after a delay. Of two delays the one that ends first counts. O(log n).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    #[doc(alias = "AddAfter")]
    fn add_after(&self, key: K, delay: Duration) -> Result<Added, Rejected<K>>;

    /// Counts a failure of a key, and adds the key when its limiter says so. O(log n).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    #[doc(alias = "AddRateLimited")]
    fn add_rate_limited(&self, key: K) -> Result<Scheduled, Rejected<K>>;

    /// Adds a key as the options say. O(log n).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add), and if the queue has no such priority level.
    fn add_with(&self, key: K, options: AddOptions) -> Result<Scheduled, Rejected<K>>;
}

impl<H: Host> Producer<H::Key> for Shared<H> {
    fn add(&self, key: H::Key) -> Result<Added, Rejected<H::Key>> {
        self.add(key)
    }

    fn add_after(&self, key: H::Key, delay: Duration) -> Result<Added, Rejected<H::Key>> {
        self.add_after(key, delay)
    }

    fn add_rate_limited(&self, key: H::Key) -> Result<Scheduled, Rejected<H::Key>> {
        self.add_rate_limited(key)
    }

    fn add_with(&self, key: H::Key, options: AddOptions) -> Result<Scheduled, Rejected<H::Key>> {
        self.add_with(key, options)
    }
}

/// What dereferences to a producer is one: a runtime's queue, a reference, an `Arc` or a `Box`.
impl<K, D> Producer<K> for D
where
    D: Deref,
    D::Target: Producer<K>,
{
    fn add(&self, key: K) -> Result<Added, Rejected<K>> {
        (**self).add(key)
    }

    fn add_after(&self, key: K, delay: Duration) -> Result<Added, Rejected<K>> {
        (**self).add_after(key, delay)
    }

    fn add_rate_limited(&self, key: K) -> Result<Scheduled, Rejected<K>> {
        (**self).add_rate_limited(key)
    }

    fn add_with(&self, key: K, options: AddOptions) -> Result<Scheduled, Rejected<K>> {
        (**self).add_with(key, options)
    }
}
