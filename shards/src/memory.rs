//! The engine in memory.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep_until};

use crate::engine::{Engine, Mark, NewMark};
use crate::error::EngineError;
use crate::shard::{Fence, Shard};
use crate::view::{Membership, Owner, View};

/// An engine in memory, for one process and for tests.
///
/// Clones are handles to the same engine. Sessions end by Tokio's clock, which a test can pause.
/// Fences start again with each `Memory`. Reset them in a store that outlives it.
///
/// # Examples
///
/// ```
/// use requeue_shards::{Memory, Shards};
///
/// let shards = Shards::builder(Memory::new(), "webhooks").build();
/// assert_eq!(shards.count().get(), 64);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Memory {
    shared: Arc<Shared>,
}

/// A membership in a [`Memory`].
#[derive(Clone, Debug)]
pub struct MemorySession {
    set: String,
    member: String,
    number: u64,
    ttl: Duration,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified after members or owners have changed. A `Notify` wakes tasks in the order in which
    /// they waited, so a simulation is repeatable.
    changed: Notify,
    /// Notified after a mark was stored.
    marked: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Rises with each change of any set. The source of fences and versions.
    revision: u64,
    sets: BTreeMap<String, Set>,
}

#[derive(Debug, Default)]
struct Set {
    count: u32,
    members: BTreeMap<String, Member>,
    owners: BTreeMap<Shard, (u64, Owner)>,
    marks: BTreeMap<(Shard, Vec<u8>), (u64, Option<SystemTime>)>,
}

#[derive(Debug)]
struct Member {
    session: u64,
    shown: Membership,
    until: Instant,
}

impl Memory {
    /// Creates an engine without sets.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends expired sessions, and then makes a change under the lock, at a new revision.
    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        state.end_sessions(Instant::now());
        state.revision += 1;
        change(&mut state)
    }

    /// As [`with`](Self::with), for members and owners.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let value = self.with(change);
        self.shared.changed.notify_waiters();
        value
    }

    /// As [`with`](Self::with), for marks.
    fn mark<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let value = self.with(change);
        self.shared.marked.notify_waiters();
        value
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        let state = self.shared.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn end_sessions(&mut self, now: Instant) {
        for set in self.sets.values_mut() {
            set.members.retain(|_, member| member.until > now);
            let members = &set.members;
            set.owners.retain(|_, (session, owner)| {
                let member = members.get(&owner.member);
                member.is_some_and(|member| member.session == *session)
            });
        }
    }

    fn set(&mut self, name: &str) -> Result<&mut Set, EngineError> {
        let unknown = || EngineError::Unreadable(format!("the set {name:?} was not opened"));
        self.sets.get_mut(name).ok_or_else(unknown)
    }

    fn member(&mut self, session: &MemorySession) -> Result<&mut Member, EngineError> {
        let members = &mut self.set(&session.set)?.members;
        let member = members.get_mut(&session.member);
        let member = member.filter(|member| member.session == session.number);
        member.ok_or(EngineError::SessionEnded)
    }

    /// The view for `follow`, and when the next session ends.
    fn show(&mut self, set: &str) -> Result<(View, Option<Instant>), EngineError> {
        let set = self.set(set)?;
        let members = set.members.iter();
        let owners = set.owners.iter();
        let view = View {
            is_complete: true,
            members: members
                .map(|(name, member)| (name.clone(), member.shown.clone()))
                .collect(),
            owners: owners
                .map(|(shard, (_, owner))| (*shard, owner.clone()))
                .collect(),
            unreadable: BTreeMap::new(),
        };
        let next = set.members.values().map(|member| member.until).min();
        Ok((view, next))
    }
}

impl Engine for Memory {
    type Session = MemorySession;

    const MARKS: bool = true;

    async fn open(&self, set: &str, asked: u32) -> Result<(), EngineError> {
        self.change(|state| {
            let new = Set {
                count: asked,
                ..Set::default()
            };
            let stored = state.sets.entry(set.to_owned()).or_insert(new).count;
            if stored == asked {
                return Ok(());
            }
            let set = set.to_owned();
            Err(EngineError::CountDiffers { set, stored, asked })
        })
    }

    async fn join(
        &self,
        set: &str,
        member: &str,
        ttl: Duration,
    ) -> Result<MemorySession, EngineError> {
        self.change(|state| {
            let number = state.revision;
            let members = &mut state.set(set)?.members;
            if members.contains_key(member) {
                let member = member.to_owned();
                return Err(EngineError::NameTaken { member });
            }
            let shown = Membership {
                since: SystemTime::now(),
                is_retiring: false,
            };
            let until = Instant::now() + ttl;
            members.insert(
                member.to_owned(),
                Member {
                    session: number,
                    shown,
                    until,
                },
            );
            let (set, member) = (set.to_owned(), member.to_owned());
            Ok(MemorySession {
                set,
                member,
                number,
                ttl,
            })
        })
    }

    async fn keep(&self, session: &MemorySession) -> Result<(), EngineError> {
        self.with(|state| {
            state.member(session)?.until = Instant::now() + session.ttl;
            Ok(())
        })
    }

    async fn retire(&self, session: &MemorySession) -> Result<(), EngineError> {
        self.change(|state| {
            state.member(session)?.shown.is_retiring = true;
            Ok(())
        })
    }

    async fn leave(&self, session: &MemorySession) -> Result<(), EngineError> {
        self.change(|state| {
            if let Ok(member) = state.member(session) {
                member.until = Instant::now();
                state.end_sessions(Instant::now());
            }
            Ok(())
        })
    }

    async fn claim(
        &self,
        session: &MemorySession,
        shard: Shard,
    ) -> Result<Option<Fence>, EngineError> {
        self.change(|state| {
            state.member(session)?;
            let fence = Fence(state.revision);
            let owner = Owner {
                member: session.member.clone(),
                fence,
                since: SystemTime::now(),
            };
            let owners = &mut state.set(&session.set)?.owners;
            let (number, owner) = owners.entry(shard).or_insert((session.number, owner));
            Ok((*number == session.number).then_some(owner.fence))
        })
    }

    async fn release(
        &self,
        session: &MemorySession,
        shard: Shard,
        fence: Fence,
    ) -> Result<(), EngineError> {
        self.change(|state| {
            let owners = &mut state.set(&session.set)?.owners;
            if owners
                .get(&shard)
                .is_some_and(|(_, owner)| owner.fence == fence)
            {
                owners.remove(&shard);
            }
            Ok(())
        })
    }

    async fn follow(
        &self,
        set: &str,
        view: &watch::Sender<View>,
    ) -> Result<Infallible, EngineError> {
        loop {
            let changed = self.shared.changed.notified();
            let mut changed = pin!(changed);
            changed.as_mut().enable();
            let (shown, next) = {
                let mut state = self.lock();
                state.end_sessions(Instant::now());
                state.show(set)?
            };
            view.send_if_modified(|view| {
                let differs = *view != shown;
                *view = shown;
                differs
            });
            let expiry = async {
                match next {
                    Some(next) => sleep_until(next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = changed => {}
                () = expiry => {}
            }
        }
    }

    async fn put_marks(&self, set: &str, marks: &[NewMark]) -> Result<(), EngineError> {
        self.mark(|state| {
            let version = state.revision;
            let stored = &mut state.set(set)?.marks;
            for mark in marks {
                let key = (mark.shard, mark.key.clone());
                let (old, not_before) = stored.entry(key).or_insert((version, mark.not_before));
                *old = version;
                // `None`, for at once, is less than any time.
                *not_before = mark.not_before.min(*not_before);
            }
            Ok(())
        })
    }

    async fn end_mark(
        &self,
        session: &MemorySession,
        fence: Fence,
        mark: &Mark,
        again: Option<SystemTime>,
    ) -> Result<bool, EngineError> {
        self.mark(|state| {
            let version = state.revision;
            let set = state.set(&session.set)?;
            let owner = set.owners.get(&mark.shard);
            let is_owner = owner.is_some_and(|(_, owner)| owner.fence == fence);
            let key = (mark.shard, mark.key.clone());
            let is_unchanged = set
                .marks
                .get(&key)
                .is_some_and(|(stored, _)| *stored == mark.version);
            if is_owner && is_unchanged {
                match again {
                    Some(_) => set.marks.insert(key, (version, again)),
                    None => set.marks.remove(&key),
                };
            }
            Ok(is_owner && is_unchanged)
        })
    }

    async fn follow_marks(
        &self,
        set: &str,
        shard: Shard,
        marks: &mpsc::Sender<Mark>,
    ) -> Result<(), EngineError> {
        let (mut sent, mut is_old) = (0, true);
        loop {
            let changed = self.shared.marked.notified();
            let mut changed = pin!(changed);
            changed.as_mut().enable();
            let (news, revision) = {
                let mut state = self.lock();
                let revision = state.revision;
                let stored = state.set(set)?.marks.range((shard, Vec::new())..);
                let stored = stored.take_while(|((of, _), _)| *of == shard);
                let news = stored.filter(|(_, (version, _))| *version > sent);
                let news = news.map(|((shard, key), (version, not_before))| Mark {
                    shard: *shard,
                    key: key.clone(),
                    version: *version,
                    not_before: *not_before,
                    is_old,
                    unreadable: None,
                });
                (news.collect::<Vec<_>>(), revision)
            };
            for mark in news {
                if marks.send(mark).await.is_err() {
                    return Ok(());
                }
            }
            (sent, is_old) = (revision, false);
            changed.await;
        }
    }
}
