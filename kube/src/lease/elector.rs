//! Taking a lease, keeping it, and giving it back.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::Leader;
use super::holders::Holder;
use super::record::{Claim, Record};
use super::write::write;
use crate::error::Error;
use crate::health::Health;
use crate::metrics::LeaderMetrics;

/// One replica's part in an election.
pub(crate) struct Elector {
    leader: Leader,
    record: Option<Record>,
    /// Present while this elector may hold the lease.
    holder: Option<Holder>,
    /// When the workers have to have stopped. In the past until the lease is acquired.
    works_until: Instant,
    health: Health,
    /// The number of this elector there.
    number: usize,
    metrics: LeaderMetrics,
}

/// By how much the time to the next look varies, so that replicas do not look all at once.
const JITTER: f64 = 0.2;
/// How often a replica that waits looks while a lease lasts, at least.
const LOOKS: u32 = 20;

impl Elector {
    pub(crate) fn new(leader: Leader, health: Health) -> Result<Self, Error> {
        leader.check()?;
        let metrics = LeaderMetrics::new(&leader.name);
        metrics.leads(!leader.holders.is_empty());
        let number = health.elector(&leader.path());
        Ok(Self {
            leader,
            record: None,
            holder: None,
            works_until: Instant::now(),
            health,
            number,
            metrics,
        })
    }

    /// When the workers have to have stopped, as known now.
    pub(crate) fn works_until(&self) -> Instant {
        self.works_until
    }

    /// When another may take the lease, as known now.
    pub(crate) fn held_until(&self) -> Instant {
        let times = self.leader.times;
        self.works_until + (times.lease - times.renew_deadline)
    }

    /// Waits until this replica holds the lease.
    ///
    /// # Cancel safety
    ///
    /// A request that was sent may arrive. The lease is then this replica's until it expires, or is
    /// released.
    pub(crate) async fn acquire(&mut self) {
        let lease = self.leader.path();
        tracing::debug!(target: "requeue", lease, identity = self.leader.identity, "waits");
        loop {
            let times = self.leader.times;
            // The lease counts from when its last change was seen. What is seen late ends late.
            let soon = times.retry.min(times.lease / LOOKS);
            let pause = match timeout(self.patience(), self.attempt()).await {
                Ok(Ok(true)) => {
                    tracing::info!(target: "requeue", lease, "is the leader");
                    self.metrics.leads(true);
                    return;
                }
                Ok(Ok(false)) => {
                    self.resign();
                    soon
                }
                Ok(Err(error)) => {
                    tracing::warn!(target: "requeue", lease, %error, "cannot take the lease");
                    times.retry
                }
                Err(_) => {
                    tracing::warn!(target: "requeue", lease, "no answer about the lease");
                    soon
                }
            };
            sleep_until(self.next_attempt(pause)).await;
        }
    }

    /// Renews the lease until it is lost.
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub(crate) async fn keep(&mut self, renewed: impl Fn(Instant)) -> Error {
        let lease = self.leader.path();
        renewed(self.works_until);
        let mut next = Instant::now() + self.leader.times.retry;
        loop {
            sleep_until(next.min(self.works_until)).await;
            let limit = self.works_until.min(Instant::now() + self.patience());
            let attempt = timeout_at(limit, self.attempt()).await;
            next = Instant::now() + self.leader.times.retry;
            match attempt {
                Ok(Ok(true)) => renewed(self.works_until),
                // Another holds it: this replica has been away for longer than the lease lasts.
                Ok(Ok(false)) if !self.is_holder() => break,
                Ok(Ok(false)) => {}
                Ok(Err(error)) => {
                    tracing::warn!(target: "requeue", lease, %error, "cannot renew the lease");
                }
                Err(_) => {
                    tracing::warn!(target: "requeue", lease, "no answer about the lease");
                    next = Instant::now();
                }
            }
            if Instant::now() >= self.works_until {
                break;
            }
        }
        tracing::warn!(target: "requeue", lease, "lost the lease");
        self.resign();
        Error::LeaseLost { lease }
    }

    /// Gives the lease back, if it is held and no clone of the leader needs it, so that another
    /// replica need not wait for its end.
    pub(crate) async fn release(&mut self) {
        self.holder = None;
        let lease = self.leader.path();
        let limit = self.leader.times.renew_deadline;
        match timeout(limit, self.try_release()).await {
            Ok(Ok(true)) => tracing::debug!(target: "requeue", lease, "released the lease"),
            Ok(Ok(false)) => tracing::debug!(target: "requeue", lease, "nothing to release"),
            Ok(Err(error)) => {
                tracing::warn!(target: "requeue", lease, %error, "cannot release the lease");
            }
            Err(_) => tracing::warn!(target: "requeue", lease, "no answer about the lease"),
        }
        self.resign();
    }

    /// How long an attempt waits for replies. A reply that is lost costs no lease, because there is
    /// time for another attempt.
    fn patience(&self) -> Duration {
        self.leader.times.renew_deadline / 2
    }

    fn resign(&mut self) {
        self.holder = None;
        self.health.lease(self.number, None);
        self.metrics.leads(!self.leader.holders.is_empty());
    }

    /// Returns whether the lease was released.
    async fn try_release(&mut self) -> kube::Result<bool> {
        // What is known may be old: a renewal that was cancelled can have arrived.
        self.look().await?;
        // Asked after the look: the write fails if a clone takes the lease from here on.
        if !self.is_holder() || !self.leader.holders.is_empty() {
            return Ok(false);
        }
        let second = Duration::from_secs(1);
        self.write("", second).await
    }

    fn is_holder(&self) -> bool {
        let holder = self.record.as_ref().and_then(Record::holder);
        holder == Some(self.leader.identity.as_str())
    }

    /// Tries to take the lease, or to renew it. Returns whether this replica holds it.
    async fn attempt(&mut self) -> kube::Result<bool> {
        // First of all, so that no clone that stops from here on releases the lease.
        if self.holder.is_none() {
            self.holder = Some(self.leader.holders.join());
        }
        if self.was_renewed() {
            return Ok(true);
        }
        // The holder writes over what it wrote last; only if that fails does it look first.
        if self.is_holder() && Instant::now() < self.works_until && self.claim().await? {
            return Ok(true);
        }
        self.look().await?;
        if self.was_renewed() {
            return Ok(true);
        }
        let identity = self.leader.identity.as_str();
        let record = self.record.as_ref();
        if record.is_some_and(|record| record.is_held_by_another(identity, Instant::now())) {
            return Ok(false);
        }
        // If the write failed, it may have been because of a clone's.
        Ok(self.claim().await? || self.was_renewed())
    }

    /// Whether a clone of the leader has renewed the lease since this one did.
    fn was_renewed(&mut self) -> bool {
        let known = self.works_until.max(Instant::now());
        let until = self.leader.holders.works_until();
        let Some(until) = until.filter(|&until| until > known) else {
            return false;
        };
        self.works(until);
        true
    }

    fn works(&mut self, until: Instant) {
        self.works_until = until;
        self.health.lease(self.number, Some(self.held_until()));
    }

    async fn look(&mut self) -> kube::Result<()> {
        let lease = self.leader.api.get_opt(&self.leader.name).await?;
        let now = Instant::now();
        self.record = lease.map(|lease| Record::read(lease, now, self.record.as_ref()));
        Ok(())
    }

    async fn claim(&mut self) -> kube::Result<bool> {
        let sent = Instant::now();
        let (identity, lease) = (self.leader.identity.clone(), self.leader.times.lease);
        if !self.write(&identity, lease).await? {
            return Ok(false);
        }
        let until = sent + self.leader.times.renew_deadline;
        self.leader.holders.renewed(until);
        self.works(until);
        Ok(true)
    }

    /// Writes over the lease that is known, or creates it. Returns false if it has changed since.
    async fn write(&mut self, identity: &str, duration: Duration) -> kube::Result<bool> {
        let leader = &self.leader;
        let claim = Claim {
            name: &leader.name,
            identity,
            duration,
            wall_time: (leader.wall_clock)(),
        };
        let sent = Instant::now();
        let written = write(&leader.api, &claim, self.record.as_ref()).await?;
        let is_written = written.is_some();
        if let Some(lease) = written {
            self.record = Some(Record::written(lease, sent));
        }
        Ok(is_written)
    }

    /// That long from now or a little less, or when another's lease ends, if that is sooner.
    fn next_attempt(&self, pause: Duration) -> Instant {
        let now = Instant::now();
        let later = now + pause - pause.mul_f64(JITTER * fastrand::f64());
        let held = self
            .record
            .as_ref()
            .filter(|record| record.holder().is_some());
        let ends = held.map(Record::expires).filter(|&ends| ends > now);
        ends.map_or(later, |ends| ends.min(later))
    }
}
