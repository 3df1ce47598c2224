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
use requeue::tokio::{Action, CancellationToken, Leftover, Rejected, RunContext, Workers};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};
use tracing::Span;

use super::Controller;
use super::feeder::Feeder;
use crate::context::Context;
use crate::error::Error;
use crate::keys::{CHANGED, KeyQueue, LISTED, bare};
use crate::lease::Elector;
use crate::metrics;
use crate::reasons::{Cause, Pending, Reasons};
use crate::waiting::{KeyRun, Recorder, Waiting};
use crate::writes::Writes;

/// What the runs of a controller share.
pub(super) struct Crew<K, Q, F>
where
    K: Resource + 'static,
    K::DynamicType: Eq + Hash,
{
    queue: Q,
    pending: Arc<Pending<K>>,
    store: Store<K>,
    reconcile: F,
    tenure: Tenure,
    waiting: Arc<Waiting<K, Q>>,
}

/// For how long this replica may work, and how many of its runs are under way.
#[derive(Default)]
struct Tenure {
    /// `None` if there is no election.
    until: Mutex<Option<Instant>>,
    prolonged: Notify,
    active: watch::Sender<usize>,
}

impl<K, Q, F, R, E> Crew<K, Q, F>
where
    K: Resource + Clone + Debug + Send + Sync + 'static,
    K::DynamicType: Debug + Eq + Hash + Clone + Unpin + Send + Sync,
    Q: KeyQueue<K>,
    E: Send + 'static,
    F: Fn(Option<Arc<K>>, Context<K>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Action, E>> + Send + 'static,
{
    /// Feeds the queue and works it off, in one future: there is nothing that could outlive it.
    pub(super) async fn run(
        controller: Controller<K, Q>,
        workers: Workers<'static, ObjectRef<K>, E>,
        stop: CancellationToken,
        reconcile: F,
    ) -> Result<Vec<Leftover<ObjectRef<K>>>, Error> {
        let Controller { mut parts, queue } = controller;
        let queue = queue(&parts);
        if let Some(policy) = parts.policy.take() {
            queue.set_policy(policy);
        }
        let pending = Arc::new(Pending::new());
        let feeder = Feeder::new(&mut parts, queue.clone(), Arc::clone(&pending));
        let synced = feeder.synced();
        let elector = match parts.leader.take() {
            Some(leader) => Some(Elector::new(leader, parts.health.clone())?),
            None => None,
        };
        let workers = metrics::observe(workers, parts.name.as_deref());
        let crew = Arc::new(Self {
            queue,
            pending,
            store: parts.store,
            reconcile,
            tenure: Tenure::default(),
            waiting: feeder.waiting(),
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
            return Ok(self.queue.leftovers());
        }

        let workers = if workers.shows_keys() {
            workers
        } else {
            workers.trace_keys(|key, f| write!(f, "{key}"))
        };
        let crew = Arc::clone(self);
        let run = self.queue.run(workers, stop, move |key, run| {
            let crew = Arc::clone(&crew);
            async move { crew.reconcile(key, run).await }
        });
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
        let begin = match self.waiting.begin(&key, run.timed_out) {
            Ok(begin) => begin,
            Err(left) => return Ok(Action::Suspend(left)),
        };
        let key_run = KeyRun::new(Arc::clone(&self.waiting), key.clone());
        let object = self.store.get(&key);
        if let Some(object) = &object {
            let own = bare(ObjectRef::from_obj_with(&**object, key.dyntype.clone()));
            if own != key {
                // A cluster-scoped object was named with a namespace. Under its own name it has
                // one place in the queue, and so no two runs at once.
                let level = run.priority.clamp(LISTED, CHANGED);
                self.pending.put_back(&own, self.pending.take(&key));
                if let Err(Rejected::Full(own)) = self.queue.add(own, level) {
                    self.queue.add_wait(own, level).await;
                }
                return Ok(key_run.end(Action::Success));
            }
        }
        let writes = Writes::new(Arc::new(Recorder {
            waiting: Arc::clone(&self.waiting),
            key: key.clone(),
        }));
        let mut unsettled = Unsettled {
            reasons: self.pending.take(&key),
            key: &key,
            pending: &self.pending,
        };
        if run.attempt > 1 {
            unsettled.reasons.push(Cause::Retry.into());
        } else if unsettled.reasons.iter().next().is_none() {
            unsettled.reasons.push(Cause::Requeue.into());
        }
        unsettled.reasons.record(&Span::current());
        let context = Context {
            key: key.clone(),
            attempt: run.attempt,
            waited: run.waited,
            deadline: run
                .deadline
                .and_then(|deadline| self.queue.to_tokio(deadline)),
            changed: unsettled.reasons.has_change(),
            reasons: unsettled.reasons.clone(),
            timed_out: begin.timed_out,
            maybe_stale: begin.maybe_stale,
            writes: writes.clone(),
        };
        // In a box, because the stack of a test in debug is small.
        let ended = Box::pin((self.reconcile)(object, context));
        let ended = writes.scope(ended).await;
        let failed = ended
            .as_ref()
            .map_or(true, |action| action.into_parts().0 == Action::Retry);
        if !failed {
            unsettled.reasons = Reasons::default();
        }
        ended.map(|action| key_run.end(action))
    }
}

/// The reasons of a run, which are those of the next run as well if it fails, panics or is stopped.
struct Unsettled<'r, K: Resource>
where
    K::DynamicType: Eq + Hash + Clone,
{
    reasons: Reasons,
    key: &'r ObjectRef<K>,
    pending: &'r Pending<K>,
}

impl<K: Resource> Drop for Unsettled<'_, K>
where
    K::DynamicType: Eq + Hash + Clone,
{
    fn drop(&mut self) {
        let reasons = std::mem::take(&mut self.reasons);
        if reasons.iter().next().is_some() {
            self.pending.put_back(self.key, reasons);
        }
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
