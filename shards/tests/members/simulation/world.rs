//! Replicas, their faults, and what is expected of them.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use requeue_shards::{EngineError, Member, Memory, Ownership, Shards, Taken, shard_of};
use requeue_tokio::priority::Levels;
use requeue_tokio::{Action, CancellationToken, WorkQueue, Workers};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::link::{Link, Plant, Remote};
use super::store::{Run, Store};
use super::{COUNT, SET, TTL};

pub(crate) type Queue = WorkQueue<String, Levels<2>>;
pub(crate) type Local = Member<String, Remote, Levels<2>>;

/// Everything that one seed sets in motion.
pub(crate) struct World {
    pub(crate) memory: Memory,
    pub(crate) store: Arc<Store>,
    pub(crate) keys: Arc<Vec<String>>,
    pub(crate) rng: fastrand::Rng,
    pub(crate) replicas: BTreeMap<usize, Replica>,
    begun: usize,
    epoch: Instant,
    plant: Plant,
    /// Whether keys are only known by their marks.
    uses_marks: bool,
}

pub(crate) struct Replica {
    pub(crate) link: Arc<Link>,
    pub(crate) member: Arc<OnceLock<Local>>,
    stop: CancellationToken,
    process: JoinHandle<Result<(), EngineError>>,
}

impl World {
    pub(crate) fn new(seed: u64, plant: Plant) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let uses_marks = rng.bool();
        Self {
            memory: Memory::new(),
            store: Arc::new(Store::new(plant)),
            keys: Arc::new((0..24).map(|number| format!("key-{number}")).collect()),
            rng,
            replicas: BTreeMap::new(),
            begun: 0,
            epoch: Instant::now(),
            plant,
            uses_marks,
        }
    }

    fn shards(&self, link: &Arc<Link>, name: &str) -> Shards<Remote> {
        let (memory, link) = (self.memory.clone(), Arc::clone(link));
        let epoch = self.epoch;
        let no_drain = self.plant == Plant::NoDrain;
        Shards::builder(
            Remote {
                memory,
                link,
                plant: self.plant,
            },
            SET,
        )
        .count(COUNT)
        .ttl(TTL)
        .drain_timeout(if no_drain {
            Duration::ZERO
        } else {
            Duration::from_secs(3)
        })
        .relist_limit(Duration::from_secs(4))
        .member(name)
        .marks(self.uses_marks)
        .wall_clock(move || SystemTime::UNIX_EPOCH + epoch.elapsed())
        .build()
    }

    pub(crate) fn start(&mut self) {
        let number = self.begun;
        self.begun += 1;
        // Some come back under the name of one that died.
        let name = format!(
            "replica-{}",
            if number > 3 && self.rng.bool() {
                number - 3
            } else {
                number
            }
        );
        let link = Link::new(self.rng.u64(..));
        let stop = CancellationToken::new();
        let program = Program {
            number,
            shards: self.shards(&link, &name),
            link: Arc::clone(&link),
            store: Arc::clone(&self.store),
            keys: Arc::clone(&self.keys),
            member: Arc::default(),
            stop: stop.clone(),
            ignores_loss: self.plant == Plant::NoDrain,
            uses_marks: self.uses_marks,
        };
        let (process, member) = (Arc::clone(&link), Arc::clone(&program.member));
        let process = tokio::spawn(async move { process.stoppable(program.main()).await });
        let replica = Replica {
            link,
            member,
            stop,
            process,
        };
        self.replicas.insert(number, replica);
    }

    fn any(&mut self) -> Option<usize> {
        let numbers: Vec<usize> = self.replicas.keys().copied().collect();
        self.rng.choice(numbers)
    }

    /// Changes an object, and lets every replica know, or marks it.
    pub(crate) fn change(&mut self) {
        let Some(key) = self.rng.choice(&**self.keys).cloned() else {
            return;
        };
        self.store.change(&key);
        if self.uses_marks {
            let Some(number) = self.any() else { return };
            let link = Link::new(self.rng.u64(..));
            let shards = self.shards(&link, &format!("producer-{number}"));
            let delay =
                Duration::from_millis(self.rng.u64(0..2).saturating_mul(self.rng.u64(0..800)));
            // A producer of its own, which tries until it succeeds.
            tokio::spawn(async move {
                while shards.mark_after(&key, delay).await.is_err() {
                    sleep(Duration::from_millis(100)).await;
                }
            });
            return;
        }
        for replica in self.replicas.values() {
            let (link, member) = (Arc::clone(&replica.link), Arc::clone(&replica.member));
            let key = key.clone();
            tokio::spawn(async move {
                sleep(link.millis(0..200)).await;
                link.resumed().await;
                if let Some(member) = member.get() {
                    // A queue that is shut down belongs to a replica that owns nothing.
                    let _ = member.add(key);
                }
            });
        }
    }

    /// One fault, or the end of one.
    pub(crate) fn disturb(&mut self) {
        let kind = self.rng.u32(0..10);
        if self.replicas.len() < 2 || kind == 0 {
            self.start();
            return;
        }
        let Some(number) = self.any() else { return };
        match kind {
            1 => {
                // kill -9
                if let Some(replica) = self.replicas.remove(&number) {
                    replica.process.abort();
                    self.store.died(number);
                }
            }
            2 => {
                // SIGTERM
                if let Some(replica) = self.replicas.remove(&number) {
                    self.store.stopped(number);
                    replica.link.cut(false);
                    replica.link.stop(false);
                    replica.stop.cancel();
                    tokio::spawn(async move {
                        let _ = replica.process.await;
                    });
                }
            }
            3..=5 => {
                let last = Duration::from_millis(self.rng.u64(100..12_000));
                self.stop(number, last);
            }
            6..=8 => {
                let last = Duration::from_millis(self.rng.u64(100..12_000));
                self.cut(number, last);
            }
            _ => {
                // The engine is out of reach for all.
                let last = Duration::from_millis(self.rng.u64(100..12_000));
                for number in self.replicas.keys().copied().collect::<Vec<_>>() {
                    self.cut(number, last);
                }
            }
        }
    }

    fn stop(&self, number: usize, last: Duration) {
        let Some(replica) = self.replicas.get(&number) else {
            return;
        };
        let (link, store) = (Arc::clone(&replica.link), Arc::clone(&self.store));
        link.stop(true);
        store.stopped(number);
        tokio::spawn(async move {
            sleep(last).await;
            store.stopped(number);
            link.stop(false);
        });
    }

    fn cut(&self, number: usize, last: Duration) {
        let Some(replica) = self.replicas.get(&number) else {
            return;
        };
        let link = Arc::clone(&replica.link);
        link.cut(true);
        tokio::spawn(async move {
            sleep(last).await;
            link.cut(false);
        });
    }

    pub(crate) fn heal(&self) {
        for (number, replica) in &self.replicas {
            self.store.stopped(*number);
            replica.link.cut(false);
            replica.link.stop(false);
        }
    }

    /// Ends all replicas in order. Returns what they say of it.
    pub(crate) async fn finish(self) -> Vec<String> {
        let mut wrong = Vec::new();
        for (number, replica) in self.replicas {
            replica.stop.cancel();
            let ended = tokio::time::timeout(4 * TTL, replica.process).await;
            match ended {
                Ok(Ok(Ok(()))) => {}
                other => wrong.push(format!("replica {number} ended with {other:?}")),
            }
        }
        wrong
    }
}

/// The program of a replica.
struct Program {
    number: usize,
    shards: Shards<Remote>,
    link: Arc<Link>,
    store: Arc<Store>,
    keys: Arc<Vec<String>>,
    /// Set once the replica has joined.
    member: Arc<OnceLock<Local>>,
    stop: CancellationToken,
    ignores_loss: bool,
    uses_marks: bool,
}

impl Program {
    async fn main(self) -> Result<(), EngineError> {
        let queue: Queue = WorkQueue::builder()
            .backoff(Duration::from_millis(50), Duration::from_secs(1))
            .no_retry_rate()
            .levels::<2>()
            .build();
        let program = Arc::new(self);
        let lister = Arc::clone(&program);
        let relist = move |taken| {
            let program = Arc::clone(&lister);
            async move { program.list(taken).await }
        };
        let member = loop {
            match program.shards.join(&queue, relist.clone()).await {
                Ok(member) => break member,
                Err(error) if error.is_transient() && !program.stop.is_cancelled() => {}
                Err(_) => return Ok(()),
            }
        };
        let _ = program.member.set(member.clone());
        let stop = program.stop.clone();
        let reconcile = move |key, owned| {
            let program = Arc::clone(&program);
            async move { program.reconcile(key, owned).await }
        };
        member.run(Workers::new(4), stop, reconcile).await
    }

    async fn list(&self, taken: Taken) -> Result<Vec<String>, &'static str> {
        sleep(self.link.millis(0..100)).await;
        self.link.resumed().await;
        if self.link.chance(8) {
            return Err("the source has failed");
        }
        let of_shard = |key: &&String| shard_of(*key, count()) == taken.shard;
        let keys: Vec<String> = self.keys.iter().filter(of_shard).cloned().collect();
        let owed = self.store.take_over(taken.shard, taken.fence, &keys);
        Ok(if self.uses_marks { Vec::new() } else { owed })
    }

    async fn reconcile(&self, key: String, owned: Ownership) -> Result<Action, &'static str> {
        let run = Run {
            key: key.clone(),
            replica: self.number,
            fence: owned.fence(),
            begin: Instant::now(),
            end: None,
            was_stopped: self.link.is_stopped(),
        };
        let _run = Logged {
            number: self.store.begin(run),
            store: &self.store,
        };
        tokio::select! {
            biased;
            () = owned.lost(), if !self.ignores_loss => Err("the shard is lost"),
            ended = self.work(&key, &owned) => ended,
        }
    }

    async fn work(&self, key: &str, owned: &Ownership) -> Result<Action, &'static str> {
        self.link.resumed().await;
        let version = self.store.version(key);
        sleep(self.link.millis(1..400)).await;
        self.link.resumed().await;
        if self.link.chance(10) {
            return Err("it failed");
        }
        if self.store.write(key, owned.shard(), owned.fence(), version) {
            Ok(Action::Success)
        } else {
            Err("the fence is old")
        }
    }
}

fn count() -> NonZeroU32 {
    NonZeroU32::new(COUNT).unwrap()
}

/// A run that is in the log: ended when it is dropped.
struct Logged<'s> {
    number: usize,
    store: &'s Store,
}

impl Drop for Logged<'_> {
    fn drop(&mut self) {
        self.store.end(self.number);
    }
}
