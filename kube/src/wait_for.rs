//! Runs that end because they wait for an object.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use kube::Resource;
use kube::runtime::reflector::{ObjectRef, Store};
use requeue::tokio::Action;

use crate::controller::kind_of;
use crate::tracker::Name;
use crate::waiting::Condition;
use crate::writes::{NotCached, Writes};

/// Waits for objects; returned by [`Context::wait_for`](crate::Context::wait_for).
#[must_use = "nothing is waited for until `at_most` is returned by the run"]
pub struct WaitFor<'c> {
    writes: &'c Writes,
    objects: Vec<(Arc<str>, Name)>,
    predicates: Vec<Box<dyn Fn() -> bool + Send + Sync>>,
}

impl<'c> WaitFor<'c> {
    pub(crate) fn new(writes: &'c Writes) -> Self {
        Self {
            writes,
            objects: Vec::new(),
            predicates: Vec::new(),
        }
    }

    /// Waits for another object too, which may be of another kind. The key runs when all
    /// predicates are true at once.
    pub fn and<C>(
        mut self,
        store: &Store<C>,
        reference: ObjectRef<C>,
        predicate: impl Fn(Option<&C>) -> bool + Send + Sync + 'static,
    ) -> Self
    where
        C: Resource + Clone + Send + Sync + 'static,
        C::DynamicType: Eq + Hash + Clone + Send + Sync,
    {
        let name = Name::new(&reference.name, reference.namespace.as_deref());
        self.objects.push((kind_of::<C>(&reference.dyntype), name));
        let store = store.clone();
        let is_met = move || predicate(store.get(&reference).as_deref());
        self.predicates.push(Box::new(is_met));
        self
    }

    /// Returns the action that ends the run, to be returned from it: an [`Action::Suspend`]. After
    /// `timeout` the key runs in any case, and [`Context::timed_out`](crate::Context::timed_out) is
    /// true. If the run ends in another way, nothing is waited for.
    ///
    /// # Errors
    ///
    /// [`NotCached`] if the controller has no store of one of the kinds.
    pub fn at_most(self, timeout: Duration) -> Result<Action, NotCached> {
        let predicates = self.predicates;
        let is_met = move || predicates.iter().all(|predicate| predicate());
        self.writes.wait_for(Condition {
            objects: self.objects,
            is_met: Arc::new(is_met),
        })?;
        Ok(Action::Suspend(timeout))
    }
}

impl fmt::Debug for WaitFor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let objects = &self.objects;
        f.debug_struct("WaitFor")
            .field("objects", objects)
            .finish_non_exhaustive()
    }
}
