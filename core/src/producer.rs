//! The trait for everything that takes keys. Owns what a producer may ask for; never hands out a
//! key.

use core::time::Duration;

use crate::options::AddOptions;
use crate::outcome::{Added, Rejected, Scheduled};
use crate::queue_face;
use crate::shared::{Host, Shared};

/// Takes keys. Every queue of every runtime implements this, and so does a reference, `Box`, `Rc`
/// or `Arc` of a producer.
///
/// The trait is dyn-compatible, so that an event source can hold a queue without naming its type,
/// as `Arc<dyn Producer<K> + Send + Sync>` or `&'static dyn Producer<K>`. It does not debounce: for
/// that, pass a closure.
///
/// # Examples
///
/// ```
/// use requeue::Producer;
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

    /// Adds a key after a delay. The earlier of two deadlines wins. O(log n).
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

/// What points to a producer is one.
macro_rules! forward {
    ([$P:ident: ?Sized] $Pointer:ty) => {
        impl<K, $P: Producer<K> + ?Sized> Producer<K> for $Pointer {
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
    };
}

queue_face! { producer: [H: Host] Shared<H>, H::Key }
forward! { [P: ?Sized] &P }
#[cfg(feature = "alloc")]
forward! { [P: ?Sized] alloc::boxed::Box<P> }
#[cfg(feature = "alloc")]
forward! { [P: ?Sized] alloc::rc::Rc<P> }
#[cfg(feature = "alloc")]
forward! { [P: ?Sized] alloc::sync::Arc<P> }
