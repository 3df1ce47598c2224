//! An engine that can be unreachable, refuse, lose acknowledged writes, or hold unreadable values.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use requeue_shards::{
    Engine, EngineError, Fence, Mark, Memory, MemorySession, NewMark, Shard, View,
};
use requeue_tokio::CancellationToken;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

/// The fate of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reach {
    #[default]
    Whole,
    /// There is no reply.
    Silent,
    /// There is an error at once.
    Refused,
    /// The credentials are wrong.
    Denied,
    /// The request takes effect, and the reply is this late.
    Slow(Duration),
    /// The request takes effect, and the reply is lost.
    Lost,
}

/// A replica's connection to an engine in memory.
#[derive(Clone, Default)]
pub(crate) struct Switch {
    engine: Arc<Mutex<State>>,
    reach: Arc<watch::Sender<Reach>>,
    /// How often the removal of a mark was requested.
    pub(crate) ends: Arc<AtomicU32>,
    /// The unreadable values in each view.
    pub(crate) unreadable: Arc<watch::Sender<BTreeMap<String, String>>>,
    /// Whether the times of marks cannot be read.
    pub(crate) garbles_marks: Arc<watch::Sender<bool>>,
}

#[derive(Default)]
struct State {
    memory: Memory,
    /// How often the engine was emptied.
    era: u64,
    /// Cancelled when the loss of the engine's state is noticed.
    noticed: CancellationToken,
}

/// A session, and the era that it ends with.
#[derive(Clone, Debug)]
pub(crate) struct SwitchSession {
    era: u64,
    session: MemorySession,
}

impl Switch {
    /// Another connection to the same engine.
    pub(crate) fn another(&self) -> Self {
        Self {
            engine: Arc::clone(&self.engine),
            ..Self::default()
        }
    }

    /// Empties the engine. Its followers get an error, or never get a change again.
    pub(crate) fn empty(&self, is_noticed: bool) {
        let mut engine = self.engine.lock().unwrap();
        engine.memory = Memory::new();
        engine.era += 1;
        if is_noticed {
            std::mem::take(&mut engine.noticed).cancel();
        }
    }

    pub(crate) fn memory(&self) -> Memory {
        self.engine.lock().unwrap().memory.clone()
    }

    /// The engine of a session, if the session began at the present engine.
    fn memory_of<'s>(
        &self,
        session: &'s SwitchSession,
    ) -> Result<(Memory, &'s MemorySession), EngineError> {
        let engine = self.engine.lock().unwrap();
        match engine.era == session.era {
            true => Ok((engine.memory.clone(), &session.session)),
            false => Err(EngineError::SessionEnded),
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

    /// The reply to a request that has taken effect.
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
    type Session = SwitchSession;

    const MARKS: bool = true;

    async fn open(&self, set: &str, count: u32) -> Result<(), EngineError> {
        self.check().await?;
        self.memory().open(set, count).await
    }

    async fn join(
        &self,
        set: &str,
        member: &str,
        ttl: Duration,
    ) -> Result<SwitchSession, EngineError> {
        self.check().await?;
        let era = self.engine.lock().unwrap().era;
        let session = self.memory().join(set, member, ttl).await?;
        Ok(SwitchSession { era, session })
    }

    async fn keep(&self, session: &SwitchSession) -> Result<(), EngineError> {
        self.check().await?;
        let (memory, session) = self.memory_of(session)?;
        let kept = memory.keep(session).await;
        self.reply(kept).await
    }

    async fn retire(&self, session: &SwitchSession) -> Result<(), EngineError> {
        self.check().await?;
        let (memory, session) = self.memory_of(session)?;
        memory.retire(session).await
    }

    async fn leave(&self, session: &SwitchSession) -> Result<(), EngineError> {
        self.check().await?;
        match self.memory_of(session) {
            Ok((memory, session)) => memory.leave(session).await,
            Err(_) => Ok(()),
        }
    }

    async fn claim(
        &self,
        session: &SwitchSession,
        shard: Shard,
    ) -> Result<Option<Fence>, EngineError> {
        self.check().await?;
        let (memory, session) = self.memory_of(session)?;
        memory.claim(session, shard).await
    }

    async fn release(
        &self,
        session: &SwitchSession,
        shard: Shard,
        fence: Fence,
    ) -> Result<(), EngineError> {
        self.check().await?;
        let (memory, session) = self.memory_of(session)?;
        memory.release(session, shard, fence).await
    }

    async fn follow(
        &self,
        set: &str,
        view: &watch::Sender<View>,
    ) -> Result<Infallible, EngineError> {
        self.check().await?;
        let (memory, noticed) = {
            let engine = self.engine.lock().unwrap();
            (engine.memory.clone(), engine.noticed.clone())
        };
        let (sender, mut shown) = watch::channel(View::default());
        let mut unreadable = self.unreadable.subscribe();
        let show = async {
            loop {
                tokio::select! {
                    biased;
                    _ = shown.changed() => {}
                    _ = unreadable.changed() => {}
                }
                let mut seen = shown.borrow_and_update().clone();
                seen.unreadable = unreadable.borrow_and_update().clone();
                view.send_replace(seen);
            }
        };
        tokio::select! {
            biased;
            () = show => std::future::pending().await,
            ended = memory.follow(set, &sender) => ended,
            () = noticed.cancelled() => Err(EngineError::StateLost("it was emptied".to_owned())),
            () = self.broken() => {
                self.check().await?;
                std::future::pending().await
            }
        }
    }

    async fn put_marks(&self, set: &str, marks: &[NewMark]) -> Result<(), EngineError> {
        self.check().await?;
        self.memory().put_marks(set, marks).await
    }

    async fn end_mark(
        &self,
        session: &SwitchSession,
        fence: Fence,
        mark: &Mark,
        again: Option<SystemTime>,
    ) -> Result<bool, EngineError> {
        self.check().await?;
        self.ends.fetch_add(1, Ordering::Relaxed);
        let (memory, session) = self.memory_of(session)?;
        let ended = memory.end_mark(session, fence, mark, again).await;
        self.reply(ended).await
    }

    async fn follow_marks(
        &self,
        set: &str,
        shard: Shard,
        marks: &mpsc::Sender<Mark>,
    ) -> Result<(), EngineError> {
        self.check().await?;
        let memory = self.memory();
        if !*self.garbles_marks.borrow() {
            return memory.follow_marks(set, shard, marks).await;
        }
        let (sender, mut stored) = mpsc::channel::<Mark>(8);
        let relay = async {
            while let Some(mut garbled) = stored.recv().await {
                garbled.not_before = None;
                garbled.unreadable = Some("soon".to_owned());
                if marks.send(garbled).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            biased;
            () = relay => Ok(()),
            ended = memory.follow_marks(set, shard, &sender) => ended,
        }
    }
}
