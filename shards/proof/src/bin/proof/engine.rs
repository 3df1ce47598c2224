//! The engine of a replica: etcd, with counted calls, and with a planted bug if there is one.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use requeue_shards::etcd_client::{Client, DeleteOptions};
use requeue_shards::{Engine, EngineError, Etcd, EtcdSession, Fence, Mark, NewMark, Shard, View};
use tokio::sync::{mpsc, watch};

use crate::plant::Plant;

/// etcd, seen by one replica.
pub(crate) struct Watched {
    etcd: Arc<Etcd>,
    set: String,
    plant: Plant,
    /// For what the engine would not do.
    client: Client,
    /// Counts calls, except those that keep a session.
    pub(crate) calls: Arc<AtomicU64>,
    /// Whether the last message with a reply kept the session.
    was_kept: Arc<AtomicBool>,
}

impl Watched {
    pub(crate) async fn connect(
        endpoints: &[String],
        set: &str,
        plant: Plant,
    ) -> Result<Self, EngineError> {
        let client = Client::connect(endpoints, None).await;
        let client = client.map_err(|error| EngineError::Refused(Arc::new(error)))?;
        Ok(Self {
            etcd: Arc::new(Etcd::connect(endpoints).await?),
            set: set.to_owned(),
            plant,
            client,
            calls: Arc::default(),
            was_kept: Arc::new(AtomicBool::new(true)),
        })
    }

    fn count(&self) -> &Etcd {
        self.calls.fetch_add(1, Ordering::Relaxed);
        &self.etcd
    }
}

impl Engine for Watched {
    type Session = EtcdSession;

    const MARKS: bool = true;

    async fn open(&self, set: &str, count: u32) -> Result<(), EngineError> {
        self.count().open(set, count).await
    }

    async fn join(
        &self,
        set: &str,
        member: &str,
        ttl: Duration,
    ) -> Result<EtcdSession, EngineError> {
        self.was_kept.store(true, Ordering::Relaxed);
        self.count().join(set, member, ttl).await
    }

    async fn keep(&self, session: &EtcdSession) -> Result<(), EngineError> {
        if self.plant != Plant::ExpiryFromReply {
            return self.etcd.keep(session).await;
        }
        // Reports the result of the previous message, as if its reply had just arrived. The member
        // counts from now, but etcd has counted since that message.
        let was_kept = self.was_kept.swap(false, Ordering::Relaxed);
        let (etcd, session, kept) = (self.etcd.clone(), session.clone(), self.was_kept.clone());
        tokio::spawn(async move {
            if etcd.keep(&session).await.is_ok() {
                kept.store(true, Ordering::Relaxed);
            }
        });
        match was_kept {
            true => Ok(()),
            false => Err(EngineError::Unsupported("reply yet")),
        }
    }

    async fn retire(&self, session: &EtcdSession) -> Result<(), EngineError> {
        self.count().retire(session).await
    }

    async fn leave(&self, session: &EtcdSession) -> Result<(), EngineError> {
        self.count().leave(session).await
    }

    async fn claim(
        &self,
        session: &EtcdSession,
        shard: Shard,
    ) -> Result<Option<Fence>, EngineError> {
        self.count().claim(session, shard).await
    }

    async fn release(
        &self,
        session: &EtcdSession,
        shard: Shard,
        fence: Fence,
    ) -> Result<(), EngineError> {
        self.count().release(session, shard, fence).await
    }

    async fn follow(
        &self,
        set: &str,
        view: &watch::Sender<View>,
    ) -> Result<Infallible, EngineError> {
        self.count().follow(set, view).await
    }

    async fn put_marks(&self, set: &str, marks: &[NewMark]) -> Result<(), EngineError> {
        self.count().put_marks(set, marks).await
    }

    async fn end_mark(
        &self,
        session: &EtcdSession,
        fence: Fence,
        mark: &Mark,
        again: Option<SystemTime>,
    ) -> Result<bool, EngineError> {
        if self.plant != Plant::MarksNotCompared {
            return self.count().end_mark(session, fence, mark, again).await;
        }
        let mut key = format!("/requeue/{}/mark/{}/", self.set, mark.shard).into_bytes();
        key.extend_from_slice(&mark.key);
        let options = DeleteOptions::new();
        match self.client.clone().delete(key, Some(options)).await {
            Ok(_) => Ok(true),
            Err(error) => Err(EngineError::Unreachable(Arc::new(error))),
        }
    }

    async fn follow_marks(
        &self,
        set: &str,
        shard: Shard,
        marks: &mpsc::Sender<Mark>,
    ) -> Result<(), EngineError> {
        self.count().follow_marks(set, shard, marks).await
    }
}
