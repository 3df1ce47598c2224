//! The health of a member, and how it reports errors.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};

use requeue_core::limiter::RateLimiter;
use requeue_core::priority::Priorities;
use requeue_core::storage::Storage;
use requeue_tokio::binding::{Shared, TaskHost};
use tokio::time::Instant;
use tracing::{error, info, warn};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::ownership::Expiry;
use crate::shard::ShardKey;

use super::{Member, Parts};

/// The parts of a member's health that are not in the view.
#[derive(Default)]
pub(super) struct Condition {
    /// The end of the present session.
    pub(super) session: Option<Expiry>,
    /// Why the last session ended before the member left.
    error: Option<String>,
    /// The unreadable values when they were last checked.
    unreadable: BTreeMap<String, String>,
}

impl<K, E, P, L, S> Member<K, E, P, L, S>
where
    K: ShardKey,
    E: Engine,
    P: Priorities + 'static,
    L: RateLimiter + 'static,
    S: Storage + 'static,
    Shared<TaskHost<K, P, L, S>>: Send + Sync,
{
    /// Checks the member, for a health check of your service. O(n) for n unreadable values.
    ///
    /// A member is healthy if it has a session, sees all owners, and finds no unreadable value.
    ///
    /// # Errors
    ///
    /// The reasons, one per line. A member that does not run is not healthy.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io;
    /// use requeue_shards::{EngineError, Memory, Shards};
    /// use requeue_tokio::WorkQueue;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), EngineError> {
    /// let shards = Shards::builder(Memory::new(), "nodes").build();
    /// let relist = |_| async { io::Result::Ok([String::from("node-7")]) };
    /// let member = shards.join(&WorkQueue::new(), relist).await?;
    /// assert_eq!(member.health(), Err(String::from("no member of \"nodes\": it does not run")));
    /// # Ok(())
    /// # }
    /// ```
    pub fn health(&self) -> Result<(), String> {
        let parts = &*self.parts;
        let set = &parts.config.set;
        {
            let condition = parts.condition();
            let until = condition.session.as_ref().map(Expiry::get);
            if until.is_none_or(|until| Instant::now() >= until) {
                let why = condition.error.as_deref().unwrap_or("it does not run");
                return Err(format!("no member of {set:?}: {why}"));
            }
        }
        let view = parts.view.borrow();
        let unknown = format!("who owns what in {set:?} is not known");
        let unknown = (!view.is_complete).then_some(unknown);
        let unreadable = view.unreadable.iter();
        let unreadable = unreadable.map(|(at, value)| format!("unreadable: {at} = {value}"));
        let reasons: Vec<String> = unknown.into_iter().chain(unreadable).collect();
        match reasons.is_empty() {
            true => Ok(()),
            false => Err(reasons.join("\n")),
        }
    }
}

impl<K, E, P, L, S> Parts<K, E, P, L, S>
where
    K: ShardKey,
    E: Engine,
    P: Priorities,
    L: RateLimiter,
    S: Storage,
{
    /// A session has begun. Earlier views may be of a lost state.
    pub(super) fn begins(&self, until: &Expiry) {
        self.condition().session = Some(until.clone());
        self.view.send_modify(|view| view.is_complete = false);
    }

    /// The session has ended before the member left. Nothing is owned.
    pub(super) fn ends(&self, why: &EngineError) {
        let (set, member) = (&self.config.set, &self.config.member);
        let is_lost = matches!(why, EngineError::StateLost(_));
        if is_lost {
            error!(set, member, %why, "the session has ended");
        } else {
            info!(set, member, %why, "the session has ended");
        }
        self.condition().error = Some(why.to_string());
        {
            let mut table = self.table();
            table.counters.sessions_lost += 1;
            table.counters.states_lost += u64::from(is_lost);
        }
        self.lose_all();
        self.config.report(why);
    }

    /// Reports unreadable values that were not reported before.
    pub(super) fn notice_unreadable(&self) {
        let new: Vec<String> = {
            let (view, mut condition) = (self.view.borrow(), self.condition());
            if view.unreadable == condition.unreadable {
                return;
            }
            let before = std::mem::replace(&mut condition.unreadable, view.unreadable.clone());
            let unreadable = view.unreadable.iter();
            let new = unreadable.filter(|(at, value)| before.get(*at) != Some(*value));
            new.map(|(at, value)| format!("{at} = {value}")).collect()
        };
        let count = u64::try_from(new.len()).unwrap_or(u64::MAX);
        self.table().counters.values_unreadable += count;
        for what in new {
            warn!(set = self.config.set, what, "a value that cannot be read");
            self.config.report(&EngineError::Unreadable(what));
        }
    }

    pub(super) fn condition(&self) -> MutexGuard<'_, Condition> {
        let condition = self.condition.lock();
        condition.unwrap_or_else(PoisonError::into_inner)
    }
}
