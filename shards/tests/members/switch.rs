//! An engine that can be out of reach, or refuse.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use requeue_shards::{
    Engine, EngineError, Fence, Mark, Memory, MemorySession, NewMark, Shard, View,
};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reach {
    #[default]
    Whole,
    /// No reply comes.
    Silent,
    /// An error comes at once.
    Refused,
    /// The credentials are wrong.
    Denied,
    /// Replies come this much later than what they reply to takes place.
    Slow(Duration),
    /// What is asked for takes place, and the reply is lost.
    Lost,
}

/// A replica's way to an engine in memory.
#[derive(Clone, Default)]
pub(crate) struct Switch {
    pub(crate) memory: Memory,
    reach: Arc<watch::Sender<Reach>>,
    /// How often a mark was to be ended.
    pub(crate) ends: Arc<AtomicU32>,
}

impl Switch {
    /// Another way to the same engine.
    pub(crate) fn another(&self) -> Self {
        Self {
            memory: self.memory.clone(),
            reach: Arc::default(),
            ends: Arc::default(),
        }
    }

    pub(crate) fn set(&self, reach: Reach) {
        self.reach.send_replace(reach);
    }

    async fn check(&self) -> Result<(), EngineError> {
        let reach = *self.reach.borrow();
        match reach {
            Reach::Whole | Reach::Slow(_) | Reach::Lost => Ok(()),
            Reach::Silent => std::future::pending().await,
            Reach::Refused => Err(unreachable()),
            Reach::Denied => {
                let error = io::Error::from(io::ErrorKind::PermissionDenied);
                Err(EngineError::Denied(Arc::new(error)))
            }
        }
    }

    /// The reply to what has taken place.
    async fn reply<T>(&self, result: Result<T, EngineError>) -> Result<T, EngineError> {
        let reach = *self.reach.borrow();
        match reach {
            Reach::Slow(late) => {
                sleep(late).await;
                result
            }
            Reach::Lost => Err(unreachable()),
            _ => result,
        }
    }

    async fn broken(&self) {
        let mut reach = self.reach.subscribe();
        let is_broken =
            |reach: &Reach| matches!(reach, Reach::Silent | Reach::Refused | Reach::Denied);
        let _ = reach.wait_for(is_broken).await;
    }
}

fn unreachable() -> EngineError {
    let error = io::Error::from(io::ErrorKind::ConnectionRefused);
    EngineError::Unreachable(Arc::new(error))
}

impl Engine for Switch {
    type Session = MemorySession;

    const MARKS: bool = true;

    async fn open(&self, set: &str, count: u32) -> Result<(), EngineError> {
        self.check().await?;
        self.memory.open(set, count).await
    }

    async fn join(
        &self,
        set: &str,
        member: &str,
        ttl: Duration,
    ) -> Result<MemorySession, EngineError> {
        self.check().await?;
        self.memory.join(set, member, ttl).await
    }

    async fn keep(&self, session: &MemorySession) -> Result<(), EngineError> {
        self.check().await?;
        let kept = self.memory.keep(session).await;
        self.reply(kept).await
    }

    async fn retire(&self, session: &MemorySession) -> Result<(), EngineError> {
        self.check().await?;
        self.memory.retire(session).await
    }

    async fn leave(&self, session: &MemorySession) -> Result<(), EngineError> {
        self.check().await?;
        self.memory.leave(session).await
    }

    async fn claim(
        &self,
        session: &MemorySession,
        shard: Shard,
    ) -> Result<Option<Fence>, EngineError> {
        self.check().await?;
        self.memory.claim(session, shard).await
    }

    async fn release(
        &self,
        session: &MemorySession,
        shard: Shard,
        fence: Fence,
    ) -> Result<(), EngineError> {
        self.check().await?;
        self.memory.release(session, shard, fence).await
    }

    async fn follow(
        &self,
        set: &str,
        view: &watch::Sender<View>,
    ) -> Result<Infallible, EngineError> {
        self.check().await?;
        tokio::select! {
            biased;
            ended = self.memory.follow(set, view) => ended,
            () = self.broken() => {
                self.check().await?;
                std::future::pending().await
            }
        }
    }

    async fn put_marks(&self, set: &str, marks: &[NewMark]) -> Result<(), EngineError> {
        self.check().await?;
        self.memory.put_marks(set, marks).await
    }

    async fn end_mark(
        &self,
        session: &MemorySession,
        fence: Fence,
        mark: &Mark,
        again: Option<SystemTime>,
    ) -> Result<bool, EngineError> {
        self.check().await?;
        self.ends.fetch_add(1, Ordering::Relaxed);
        let ended = self.memory.end_mark(session, fence, mark, again).await;
        self.reply(ended).await
    }

    async fn follow_marks(
        &self,
        set: &str,
        shard: Shard,
        marks: &mpsc::Sender<Mark>,
    ) -> Result<(), EngineError> {
        self.check().await?;
        self.memory.follow_marks(set, shard, marks).await
    }
}
