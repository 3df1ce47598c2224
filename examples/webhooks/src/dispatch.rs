//! Adds a key for each change, and delivers what is owed.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use metrics::counter;
use requeue::Instant;
use requeue::priority::Groups;
use requeue::tokio::{Action, Failure, WorkQueue, Workers};
use requeue_inspect::Inspector;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::{Mutex, Notify};
use tokio::time::{sleep, timeout};

use crate::key::Key;
use crate::post::{Poster, Refusal};
use crate::say;
use crate::shares::{Answer, Call, Permission, Shares};
use crate::sign::Secret;
use crate::store::{Change, NewSubscription, PutSubscription, State, Store, StoreError, Task};
use crate::target::Target;
use crate::team::Team;

/// Each subscription is a group: the backlog of one does not delay the others. Failed keys wait
/// longer and longer, each for itself; a rate that all of them share would let one receiver take
/// from the others.
pub(crate) type Queue = WorkQueue<Key, Groups<Arc<str>>>;

/// Adds what has changed to the queue, and works on it.
pub(crate) struct Dispatcher {
    pub(crate) queue: Queue,
    pub(crate) store: Store,
    pub(crate) shares: Arc<Shares>,
    pub(crate) poster: Poster,
    /// Shows the queue and its runs in the window.
    pub(crate) inspector: Inspector<Queue>,
    pub(crate) tries: u32,
    /// The pause after the first failure.
    pub(crate) pause: Duration,
    pub(crate) allow_private: bool,
    /// Held while the subscriptions in the database and those with a share may differ.
    pub(crate) subscribing: Mutex<()>,
    /// Notified after a database error, because the queue may lack what the database has.
    pub(crate) doubt: Notify,
    /// Which subscriptions are delivered to here, if other processes deliver to the rest.
    pub(crate) team: OnceLock<Arc<dyn Team>>,
}

/// A run of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) attempt: u32,
    /// What is recorded carries it, if other processes deliver as well.
    pub(crate) fence: Option<i64>,
}

/// How the call of a receiver ended.
#[derive(Clone, Copy)]
enum Outcome {
    Delivered,
    Retried,
    GivenUp,
    /// It was made, but another process delivers to that receiver now, and records that.
    Refused,
}

/// The name of the figure that counts them.
pub(crate) const DELIVERIES: &str = "webhooks_deliveries_total";

/// How many keys are read from the database at once.
pub(crate) const PAGE_LEN: usize = 1000;

/// What a receiver gets.
#[derive(Serialize)]
struct Event<'a> {
    object: &'a str,
    /// Grows with every change of any object: a smaller one is older.
    version: i64,
    deleted: bool,
    data: Option<&'a RawValue>,
}

impl Dispatcher {
    /// Brings shares and queue in line with the database, at the start and after an error. Returns
    /// how many deliveries are owed here.
    pub(crate) async fn resume(&self) -> Result<usize, StoreError> {
        let subscriptions = self.share_out().await?;
        if self.team.get().is_none() {
            return self.each_owed(None, |keys| self.add_missing(keys)).await;
        }
        let mut owed = 0;
        for id in subscriptions.iter().filter(|id| self.is_ours(id)) {
            owed += self
                .each_owed(Some(id), |keys| self.add_missing(keys))
                .await?;
        }
        Ok(owed)
    }

    /// Puts a subscription. A new receiver is owed every object, a known one what had failed.
    pub(crate) async fn put_subscription(
        &self,
        id: Arc<str>,
        subscription: NewSubscription,
    ) -> Result<PutSubscription, StoreError> {
        let held = self.subscribing.lock().await;
        let rate = subscription.rate;
        let host = self.host_of(&subscription.url);
        let put = self.store.put_subscription(Arc::clone(&id), subscription);
        let put = put.await.inspect_err(|_| self.doubt.notify_one())?;
        if put == PutSubscription::TooMany {
            return Ok(put);
        }
        self.shares.set(&id, &host, rate, self.now());
        drop(held);
        let add = |keys| self.add_asked_for(keys);
        if let Err(error) = self.each_owed(Some(&id), add).await {
            say(&error.to_string());
            self.doubt.notify_one();
        }
        Ok(put)
    }

    /// Deletes a subscription. Returns whether it was there.
    pub(crate) async fn delete_subscription(&self, id: Arc<str>) -> Result<bool, StoreError> {
        let _held = self.subscribing.lock().await;
        let deleted = self.store.delete_subscription(Arc::clone(&id)).await;
        let is_deleted = deleted.inspect_err(|_| self.doubt.notify_one())?;
        // Its keys may stay in the queue: their runs find nothing to do.
        self.shares.remove(&id, self.now());
        Ok(is_deleted)
    }

    pub(crate) async fn put_object(
        &self,
        id: Arc<str>,
        body: String,
    ) -> Result<Change, StoreError> {
        let change = self.store.put_object(Arc::clone(&id), body).await;
        let change = change.inspect_err(|_| self.doubt.notify_one())?;
        self.add_changed(&id, &change);
        Ok(change)
    }

    pub(crate) async fn delete_object(&self, id: Arc<str>) -> Result<bool, StoreError> {
        let change = self.store.delete_object(Arc::clone(&id)).await;
        let change = change.inspect_err(|_| self.doubt.notify_one())?;
        if let Some(change) = &change {
            self.add_changed(&id, change);
        }
        Ok(change.is_some())
    }

    /// Lists again what is owed after each database error, because work that failed may have been
    /// written. Never ends.
    async fn resolve_doubts(&self) {
        loop {
            self.doubt.notified().await;
            // The list reads everything that is owed, so errors in a row share one.
            sleep(self.pause).await;
            if self.resume().await.is_err() {
                self.doubt.notify_one();
            }
        }
    }

    /// Keeps this many workers until the queue is shut down and all have ended. Dropping this
    /// aborts them; their keys stay owed.
    pub(crate) async fn employ(self: Arc<Self>, workers: usize) {
        let dispatcher = Arc::clone(&self);
        let workers = self.crew(workers);
        let run = self.queue.run_with(workers, move |key, context| {
            let dispatcher = Arc::clone(&dispatcher);
            let run = Run {
                attempt: context.attempt,
                fence: None,
            };
            async move { dispatcher.reconcile(&key, run).await }
        });
        self.assist(async { drop(run.await) }).await;
    }

    /// Does what workers need until they end.
    pub(crate) async fn assist(&self, work: impl Future<Output = ()>) {
        tokio::select! {
            () = self.resolve_doubts() => {}
            () = self.end_rests() => {}
            () = self.heed_news() => {}
            () = work => {}
        }
    }

    /// Lets hosts be called again once they have rested. Never ends.
    async fn end_rests(&self) {
        loop {
            let rest = self.shares.resume(self.now());
            let _ = timeout(rest, self.shares.rests.notified()).await;
        }
    }

    /// Returns the workers, whose runs the window shows.
    pub(crate) fn crew(&self, workers: usize) -> Workers<'static, Key, String> {
        let workers = Workers::new(workers).on_error(|key: &Key, failure, _| {
            if let Failure::Panic(_) = failure {
                say(&format!("{key}: {failure}"));
            }
        });
        self.inspector.watch(workers)
    }

    /// Delivers what is owed for a key. The error is the reason why it is tried again.
    pub(crate) async fn reconcile(&self, key: &Key, run: Run) -> Result<Action, String> {
        match self.shares.begin(&key.subscription, self.now()) {
            Permission::Now(call) => {
                let mut calling = Calling {
                    dispatcher: self,
                    call,
                    answer: Answer::Unasked,
                };
                self.deliver(key, run, &mut calling).await
            }
            // It waits in its group. That is no failure, and earlier failures stay on record.
            Permission::Later => Ok(Action::Snooze(Duration::ZERO)),
            Permission::Unknown => Ok(self.look_up(&key.subscription).await),
        }
    }

    /// Delivers the newest version of an object.
    async fn deliver(
        &self,
        key: &Key,
        run: Run,
        calling: &mut Calling<'_>,
    ) -> Result<Action, String> {
        let task = match self.store.task(key).await {
            Ok(Some(task)) => task,
            Ok(None) => return Ok(Action::Success),
            Err(error) => {
                say(&error.to_string());
                // The receiver was not called, so this is not its failure.
                return Ok(Action::Snooze(self.pause));
            }
        };
        if *self.host_of(&task.url) != *calling.call.host {
            // The subscription has a new URL, and its share is about to change.
            return Ok(Action::Snooze(self.pause));
        }
        let posted = self.post(key, &task).await;
        calling.answer = posted
            .as_ref()
            .map_or_else(|(answer, _)| *answer, |()| Answer::Taken);
        if let Err((_, why)) = posted {
            return self.fail(key, run, &task, why).await;
        }
        match self.store.record_delivered(key, &task, run.fence).await {
            Ok(()) => {
                count(Outcome::Delivered);
                Ok(Action::Success)
            }
            // It is delivered twice, which is better than not at all.
            Err(error) => postpone(&error),
        }
    }

    /// Posts a task. The error is how the host answered, and the reason for the operator.
    async fn post(&self, key: &Key, task: &Task) -> Result<(), (Answer, String)> {
        let unasked = |why: String| (Answer::Unasked, why);
        let target = Target::parse(&task.url, self.allow_private);
        let target = target.map_err(|why| unasked(why.to_owned()))?;
        let json = event(key, task).map_err(|error| unasked(error.to_string()))?;
        let secret = task.secret.as_deref().map(Secret::parse).transpose();
        let secret = secret.map_err(|why| unasked(why.to_owned()))?;
        let posted = self.poster.post(&target, json, secret.as_ref()).await;
        posted.map_err(|refusal| {
            let answer = match refusal {
                Refusal::TimedOut => Answer::None,
                _ => Answer::Refused,
            };
            (answer, format!("{target}: {refusal}"))
        })
    }

    async fn fail(&self, key: &Key, run: Run, task: &Task, why: String) -> Result<Action, String> {
        if run.attempt < self.tries {
            count(Outcome::Retried);
            return Err(why);
        }
        let text = format!("gave up {key}, version {}: {why}", task.version);
        match self.store.record_failed(key, task, why, run.fence).await {
            Ok(true) => {
                say(&text);
                count(Outcome::GivenUp);
                Ok(Action::Success)
            }
            // There is a newer version, with its own tries.
            Ok(false) => Ok(Action::Success),
            Err(error) => postpone(&error),
        }
    }

    /// Adds a changed object's keys. A key that failed has all its tries again, but after a pause,
    /// so that a receiver that is down is not called once per change.
    fn add_changed(&self, object: &Arc<str>, change: &Change) {
        let subscriptions = change.subscriptions.iter();
        let key = |id: &Arc<str>| Key::new(Arc::clone(id), Arc::clone(object));
        self.add_newer(subscriptions.map(key));
    }

    /// As [`add_changed`](Self::add_changed), for keys.
    pub(crate) fn add_newer(&self, keys: impl Iterator<Item = Key>) {
        let queue = &self.queue;
        for key in keys.filter(|key| self.owns(key)) {
            // After shutdown it is refused; the next start finds it in the database.
            let _ = match queue.forget(&key) {
                0 => queue.add(key),
                _ => queue.add_after(key, self.pause),
            };
        }
    }

    /// Passes on the keys that are owed to one subscription, or to any, a page at a time. Returns how
    /// many there are.
    pub(crate) async fn each_owed(
        &self,
        subscription: Option<&Arc<str>>,
        mut add: impl FnMut(Vec<Key>),
    ) -> Result<usize, StoreError> {
        let mut added = 0;
        let mut after = subscription.map(|id| Key::new(Arc::clone(id), ""));
        loop {
            let owed = self.store.owed(State::Pending, after, PAGE_LEN).await?;
            let is_last = owed.len() < PAGE_LEN;
            let keys = owed.into_iter().map(|owed| owed.key);
            let keys = keys.take_while(|key| subscription.is_none_or(|id| *id == key.subscription));
            let keys: Vec<Key> = keys.collect();
            after = keys.last().cloned();
            added += keys.len();
            let is_other = keys.len() < PAGE_LEN;
            add(keys);
            if is_last || is_other {
                return Ok(added);
            }
        }
    }

    /// Adds keys that a client asked for: they do not wait for earlier failures.
    pub(crate) fn add_asked_for(&self, keys: Vec<Key>) {
        for key in &keys {
            self.queue.forget(key);
        }
        self.add(keys);
    }

    /// Adds keys that are neither ready nor delayed. An active key is added, because its run may
    /// have read an older version.
    fn add_missing(&self, mut keys: Vec<Key>) {
        keys.retain(|key| {
            let state = self.queue.state(key);
            state.is_none_or(|key| key.active || !key.ready && key.due.is_none())
        });
        self.add(keys);
    }

    fn add(&self, mut keys: Vec<Key>) {
        keys.retain(|key| self.owns(key));
        let _ = self.queue.add_many(keys);
    }

    /// Returns the host of a stored URL. If the URL were invalid, posting to it would say why.
    pub(crate) fn host_of(&self, url: &str) -> Arc<str> {
        Target::parse(url, true).map_or_else(|_| "".into(), |target| target.host())
    }

    pub(crate) fn now(&self) -> Instant {
        self.queue.now()
    }
}

/// Decides on a call that could not be recorded.
fn postpone(error: &StoreError) -> Result<Action, String> {
    say(&error.to_string());
    match error {
        // Another process delivers to this subscription, and has listed what is owed.
        StoreError::Fenced(_) => {
            count(Outcome::Refused);
            Ok(Action::Success)
        }
        _ => Err(error.to_string()),
    }
}

fn count(outcome: Outcome) {
    let name = match outcome {
        Outcome::Delivered => "delivered",
        Outcome::Retried => "retried",
        Outcome::GivenUp => "given_up",
        Outcome::Refused => "refused",
    };
    counter!(DELIVERIES, "outcome" => name).increment(1);
}

/// A call of a host, which ends when this is dropped.
struct Calling<'d> {
    dispatcher: &'d Dispatcher,
    call: Call,
    answer: Answer,
}

impl Drop for Calling<'_> {
    fn drop(&mut self) {
        let Dispatcher { shares, .. } = self.dispatcher;
        shares.end(&self.call, self.answer, self.dispatcher.now());
    }
}

fn event(key: &Key, task: &Task) -> serde_json::Result<Bytes> {
    let body = task.body.as_deref();
    let event = Event {
        object: &key.object,
        version: task.version,
        deleted: body.is_none(),
        data: body.map(serde_json::from_str).transpose()?,
    };
    serde_json::to_vec(&event).map(Bytes::from)
}

#[cfg(test)]
#[path = "../tests/unit/dispatch.rs"]
pub(crate) mod tests;
