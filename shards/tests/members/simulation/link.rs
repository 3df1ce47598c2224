//! The link of a replica: a network that delays, cuts and loses messages, and a process that is
//! stopped and continued.

use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::{Duration, SystemTime};

use requeue_shards::{
    Engine, EngineError, Fence, Mark, Memory, MemorySession, NewMark, Shard, View,
};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::sleep;

/// A replica's link, and its process.
pub(crate) struct Link {
    rng: Mutex<fastrand::Rng>,
    is_cut: AtomicBool,
    /// Notified when the link is whole again.
    whole: Notify,
    process: Mutex<Process>,
}

#[derive(Default)]
struct Process {
    is_stopped: bool,
    wakers: Vec<Waker>,
}

impl Link {
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self {
            rng: Mutex::new(fastrand::Rng::with_seed(seed)),
            is_cut: AtomicBool::new(false),
            whole: Notify::new(),
            process: Mutex::default(),
        })
    }

    pub(crate) fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::Relaxed);
        if !is_cut {
            self.whole.notify_waiters();
        }
    }

    fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }

    async fn is_whole(&self) {
        while self.is_cut() {
            self.whole.notified().await;
        }
    }

    pub(crate) fn stop(&self, is_stopped: bool) {
        let mut process = self.process.lock().unwrap();
        process.is_stopped = is_stopped;
        let wakers = std::mem::take(&mut process.wakers);
        drop(process);
        wakers.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn chance(&self, one_in: u32) -> bool {
        self.rng.lock().unwrap().u32(0..one_in) == 0
    }

    pub(crate) fn millis(&self, range: std::ops::Range<u64>) -> Duration {
        Duration::from_millis(self.rng.lock().unwrap().u64(range))
    }

    /// Delivers a message. While the link is cut, the message waits or is lost.
    async fn travel(&self) {
        let slow = if self.chance(20) { 400 } else { 10 };
        sleep(self.millis(0..slow)).await;
        if self.is_cut() {
            if self.chance(2) {
                pending::<()>().await;
            }
            self.is_whole().await;
            sleep(self.millis(0..300)).await;
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.process.lock().unwrap().is_stopped
    }

    /// Waits while the process is stopped.
    pub(crate) async fn resumed(&self) {
        self.stoppable(std::future::ready(())).await;
    }

    /// Polls a future of the process while it is not stopped.
    pub(crate) async fn stoppable<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|context| {
            let mut process = self.process.lock().unwrap();
            if process.is_stopped {
                process.wakers.push(context.waker().clone());
                return Poll::Pending;
            }
            drop(process);
            future.as_mut().poll(context)
        })
        .await
    }

    /// A request and its reply. The request continues if the caller gives up.
    async fn call<T, F>(self: &Arc<Self>, operation: F) -> Result<T, EngineError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, EngineError>> + Send + 'static,
    {
        let link = Arc::clone(self);
        let served = tokio::spawn(async move {
            link.travel().await;
            let result = operation.await;
            link.travel().await;
            result
        });
        served.await.unwrap_or(Err(EngineError::SessionEnded))
    }
}

/// A planted bug, which the checks have to find.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Plant {
    #[default]
    Nothing,
    /// Sessions end at the engine before the member knows, as when it counts from the reply.
    EndsEarly,
    /// Every owner gets the same fence.
    OneFence,
    /// A mark is removed whatever its version.
    EndsAnyMark,
    /// The store does not compare fences.
    FenceUnchecked,
    /// A shard is released while its keys run, and the runs do not stop.
    NoDrain,
}

/// An engine at the other end of a link.
#[derive(Clone)]
pub(crate) struct Remote {
    pub(crate) memory: Memory,
    pub(crate) link: Arc<Link>,
    pub(crate) plant: Plant,
}

impl Engine for Remote {
    type Session = MemorySession;

    const MARKS: bool = true;

    async fn open(&self, set: &str, count: u32) -> Result<(), EngineError> {
        let (memory, set) = (self.memory.clone(), set.to_owned());
        self.link
            .call(async move { memory.open(&set, count).await })
            .await
    }

    async fn join(
        &self,
        set: &str,
        member: &str,
        ttl: Duration,
    ) -> Result<MemorySession, EngineError> {
        let (memory, set, member) = (self.memory.clone(), set.to_owned(), member.to_owned());
        let ttl = if self.plant == Plant::EndsEarly {
            ttl / 2
        } else {
            ttl
        };
        self.link
            .call(async move { memory.join(&set, &member, ttl).await })
            .await
    }

    async fn keep(&self, session: &MemorySession) -> Result<(), EngineError> {
        let (memory, session) = (self.memory.clone(), session.clone());
        self.link
            .call(async move { memory.keep(&session).await })
            .await
    }

    async fn retire(&self, session: &MemorySession) -> Result<(), EngineError> {
        let (memory, session) = (self.memory.clone(), session.clone());
        self.link
            .call(async move { memory.retire(&session).await })
            .await
    }

    async fn leave(&self, session: &MemorySession) -> Result<(), EngineError> {
        let (memory, session) = (self.memory.clone(), session.clone());
        self.link
            .call(async move { memory.leave(&session).await })
            .await
    }

    async fn claim(
        &self,
        session: &MemorySession,
        shard: Shard,
    ) -> Result<Option<Fence>, EngineError> {
        let (memory, session) = (self.memory.clone(), session.clone());
        let claimed = self
            .link
            .call(async move { memory.claim(&session, shard).await })
            .await?;
        let is_planted = self.plant == Plant::OneFence;
        Ok(claimed.map(|fence| if is_planted { Fence(1) } else { fence }))
    }

    async fn release(
        &self,
        session: &MemorySession,
        shard: Shard,
        fence: Fence,
    ) -> Result<(), EngineError> {
        let (memory, session) = (self.memory.clone(), session.clone());
        self.link
            .call(async move { memory.release(&session, shard, fence).await })
            .await
    }

    async fn follow(
        &self,
        set: &str,
        view: &watch::Sender<View>,
    ) -> Result<Infallible, EngineError> {
        let (sender, mut shown) = watch::channel(View::default());
        let relay = async {
            while shown.changed().await.is_ok() {
                self.arrives().await;
                view.send_replace(shown.borrow_and_update().clone());
            }
        };
        tokio::select! {
            biased;
            ended = self.memory.follow(set, &sender) => ended,
            () = relay => Err(EngineError::SessionEnded),
        }
    }

    async fn put_marks(&self, set: &str, marks: &[NewMark]) -> Result<(), EngineError> {
        let (memory, set, marks) = (self.memory.clone(), set.to_owned(), marks.to_vec());
        self.link
            .call(async move { memory.put_marks(&set, &marks).await })
            .await
    }

    async fn end_mark(
        &self,
        session: &MemorySession,
        fence: Fence,
        mark: &Mark,
        again: Option<SystemTime>,
    ) -> Result<bool, EngineError> {
        let (memory, session, mut mark) = (self.memory.clone(), session.clone(), mark.clone());
        let is_planted = self.plant == Plant::EndsAnyMark;
        let ended = async move {
            if is_planted {
                mark.version = stored(&memory, mark.shard, &mark.key).await;
            }
            memory.end_mark(&session, fence, &mark, again).await
        };
        self.link.call(ended).await
    }

    async fn follow_marks(
        &self,
        set: &str,
        shard: Shard,
        marks: &mpsc::Sender<Mark>,
    ) -> Result<(), EngineError> {
        let (sender, mut stored) = mpsc::channel(8);
        let relay = async {
            while let Some(mark) = stored.recv().await {
                self.arrives().await;
                if marks.send(mark).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            biased;
            ended = self.memory.follow_marks(set, shard, &sender) => ended,
            () = relay => Ok(()),
        }
    }
}

impl Remote {
    /// A stream loses nothing, because it is resumed.
    async fn arrives(&self) {
        sleep(self.link.millis(0..20)).await;
        self.link.is_whole().await;
    }
}

/// The version that a mark has now.
async fn stored(memory: &Memory, shard: Shard, key: &[u8]) -> u64 {
    let (sender, mut marks) = mpsc::channel::<Mark>(256);
    tokio::select! {
        biased;
        _ = memory.follow_marks(super::SET, shard, &sender) => 0,
        version = async {
            while let Some(mark) = marks.recv().await {
                if mark.key == key {
                    return mark.version;
                }
            }
            0
        } => version,
        () = sleep(Duration::ZERO) => 0,
    }
}
