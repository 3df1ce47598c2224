//! A controller that runs.

use std::fmt::Debug;
use std::future::poll_fn;
use std::hash::Hash;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::ready;

use futures::future::{Either, select};
use kube::Resource;
use kube::runtime::reflector::{ObjectRef, Store};
use requeue::tokio::{Action, CancellationToken, Leftover, RunContext, Workers};
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};

use super::Controller;
use super::feeder::Feeder;
use crate::context::Context;
use crate::error::Error;
use crate::keys::{CHANGED, Keys, LISTED, add, bare};
use crate::lease::Elector;
use crate::metrics;

/// What the runs of a controller share.
pub(super) struct Crew<K, F>
where
    K: Resource + 'static,
    K::DynamicType: Eq + Hash,
{
    queue: Keys<K>,
    store: Store<K>,
    reconcile: F,
    tenure: Tenure,
}

/// For how long this replica may work, and how many of its runs are under way.
#[derive(Default)]
struct Tenure {
    /// `None` if there is no election.
    until: Mutex<Option<Instant>>,
    prolonged: Notify,
    active: watch::Sender<usize>,
}

impl<K, F, R, E> Crew<K, F>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Debug + Eq + Hash + Clone + Unpin + Send + Sync,
    E: Send + 'static,
    F: Fn(Option<Arc<K>>, Context<K>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Action, E>> + Send + 'static,
{
    /// Feeds the queue and works it off, in one future: there is nothing that could outlive it.
    pub(super) async fn run(
        mut controller: Controller<K>,
        workers: Workers<'static, ObjectRef<K>, E>,
        stop: CancellationToken,
        reconcile: F,
    ) -> Result<Vec<Leftover<ObjectRef<K>>>, Error> {
        let queue = controller.build_queue();
        let feeder = Feeder::new(&mut controller, queue.clone());
        let synced = feeder.synced();
        let elector = match controller.leader.take() {
            Some(leader) => Some(Elector::new(leader, controller.health.clone())?),
            None => None,
        };
        let workers = metrics::observe(workers, controller.name.as_deref());
        let crew = Arc::new(Self {
            queue,
            store: controller.store,
            reconcile,
            tenure: Tenure::default(),
        });
        let work = crew.work(workers, stop, synced, elector);
        match select(pin!(work), pin!(feeder.feed())).await {
            Either::Left((ended, _)) => ended,
            Either::Right((error, _)) => Err(error),
        }
    }

    async fn work(
        self: &Arc<Self>,
        workers: Workers<'static, ObjectRef<K>, E>,
        stop: CancellationToken,
        synced: CancellationToken,
        mut elector: Option<Elector>,
    ) -> Result<Vec<Leftover<ObjectRef<K>>>, Error> {
        let ready = async {
            synced.cancelled().await;
            if let Some(elector) = &mut elector {
                elector.acquire().await;
                self.tenure.prolong(elector.works_until());
            }
        };
        if stop.run_until_cancelled(ready).await.is_none() {
            self.queue.shut_down();
            if let Some(mut elector) = elector {
                elector.release().await;
            }
            return Ok(self.queue.leftovers().collect());
        }

        let workers = if workers.shows_keys() {
            workers
        } else {
            workers.trace_keys(|key, f| write!(f, "{key}"))
        };
        let crew = Arc::clone(self);
        let run = self.queue.run_with(workers, move |key, run| {
            let crew = Arc::clone(&crew);
            async move { crew.reconcile(key, run).await }
        });
        let run = run.shut_down_on(stop);
        match elector {
            None => Ok(run.await),
            Some(elector) => self.lead(elector, run).await,
        }
    }

    /// Works while this replica is the leader.
    async fn lead<T>(
        &self,
        mut elector: Elector,
        run: impl Future<Output = T>,
    ) -> Result<T, Error> {
        let mut run = Box::pin(run);
        let lost = {
            let keep = pin!(elector.keep(|until| self.tenure.prolong(until)));
            match select(&mut run, keep).await {
                Either::Left((left, _)) => Ok(left),
                Either::Right((error, _)) => Err(error),
            }
        };
        match lost {
            Ok(left) => {
                elector.release().await;
                Ok(left)
            }
            Err(error) => {
                // Aborts the workers at their next `await`, and waits until they are there.
                drop(run);
                self.tenure.wait_until_idle(elector.held_until()).await;
                Err(error)
            }
        }
    }

    async fn reconcile(&self, key: ObjectRef<K>, run: RunContext) -> Result<Action, E> {
        let _active = self.tenure.begin();
        let mut run = pin!(self.reconcile_key(key, run));
        let mut prolonged = pin!(self.tenure.prolonged.notified());
        poll_fn(|context| {
            // The lease may be another's by now, for instance because this process was stopped for
            // a while. The run is aborted as soon as that is noticed, or goes on if a renewal that
            // was under way has succeeded.
            while !self.tenure.lasts() {
                ready!(prolonged.as_mut().poll(context));
                prolonged.set(self.tenure.prolonged.notified());
            }
            run.as_mut().poll(context)
        })
        .await
    }

    async fn reconcile_key(&self, key: ObjectRef<K>, run: RunContext) -> Result<Action, E> {
        let object = self.store.get(&key);
        if let Some(object) = &object {
            let own = bare(ObjectRef::from_obj_with(&**object, key.dyntype.clone()));
            if own != key {
                // A cluster-scoped object was named with a namespace. Under its own name it has
                // one place in the queue, and so no two runs at once.
                let level = run.priority.clamp(LISTED, CHANGED);
                add(&self.queue, own, level);
                return Ok(Action::Success);
            }
        }
        let context = Context {
            key,
            attempt: run.attempt,
            waited: run.waited,
            deadline: run
                .deadline
                .and_then(|deadline| self.queue.clock().to_tokio(deadline)),
            changed: run.priority >= CHANGED,
        };
        (self.reconcile)(object, context).await
    }
}

impl Tenure {
    fn prolong(&self, until: Instant) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
        self.prolonged.notify_waiters();
    }

    fn lasts(&self) -> bool {
        let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_none_or(|until| Instant::now() < until)
    }

    fn begin(&self) -> Active<'_> {
        self.active.send_modify(|active| *active += 1);
        Active(&self.active)
    }

    /// Waits until no run is under way, but not longer than until `limit`.
    async fn wait_until_idle(&self, limit: Instant) {
        let mut active = self.active.subscribe();
        // The sender is `self`'s own, so that this cannot fail.
        let _ = timeout_at(limit, active.wait_for(|&active| active == 0)).await;
    }
}

/// A run that is under way, until it is dropped.
struct Active<'a>(&'a watch::Sender<usize>);

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|active| *active -= 1);
    }
}
