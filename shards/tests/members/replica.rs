//! A replica, and the log of its runs.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use requeue_shards::{Builder, EngineError, Fence, Member, Ownership, Shards, Taken};
use requeue_tokio::priority::Levels;
use requeue_tokio::{Action, CancellationToken, WorkQueue, Workers};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::switch::Switch;

pub(crate) const SET: &str = "members";
pub(crate) const TTL: Duration = Duration::from_secs(6);

pub(crate) type Local<E = Switch> = Member<String, E, Levels<2>>;

/// Runs in the order in which they began: the replica, the key, the fence, beginning and end, and
/// whether the run was told that its shard is lost.
pub(crate) type Log = Arc<Mutex<Vec<Entry>>>;

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) replica: String,
    pub(crate) key: String,
    pub(crate) fence: Fence,
    pub(crate) begin: Instant,
    pub(crate) end: Option<Instant>,
    pub(crate) was_lost: bool,
}

pub(crate) struct Replica {
    pub(crate) member: Local,
    pub(crate) stop: CancellationToken,
    pub(crate) process: JoinHandle<Result<(), EngineError>>,
}

pub(crate) fn builder(engine: &Switch, name: &str) -> Builder<Switch> {
    let builder = Shards::builder(engine.clone(), SET).count(16).ttl(TTL);
    builder.member(name).drain_timeout(Duration::from_secs(20))
}

/// A queue whose failures are retried after a second.
pub(crate) fn queue() -> WorkQueue<String, Levels<2>> {
    let second = Duration::from_secs(1);
    let builder = WorkQueue::builder().backoff(second, second);
    builder.no_retry_rate().levels::<2>().build()
}

/// Starts a replica whose runs take `run`, and which re-lists `keys`.
pub(crate) async fn start(
    builder: Builder<Switch>,
    name: &str,
    log: &Log,
    keys: &[&str],
    run: Duration,
) -> Replica {
    let keys: Vec<String> = keys.iter().map(|&key| key.to_owned()).collect();
    let relist = move |_: Taken| {
        let keys = keys.clone();
        async { Ok::<_, Infallible>(keys) }
    };
    let member = builder.build().join(&queue(), relist).await.unwrap();
    run_member(member, name, log, run)
}

/// A single member, which has taken all shards.
pub(crate) async fn alone(keys: &[&str], run: Duration) -> (Switch, Log, Replica) {
    let (engine, log) = (Switch::default(), Log::default());
    let first = start(builder(&engine, "first"), "first", &log, keys, run).await;
    sleep(Duration::from_secs(1)).await;
    (engine, log, first)
}

pub(crate) fn run_member(member: Local, name: &str, log: &Log, run: Duration) -> Replica {
    let stop = CancellationToken::new();
    let (handle, token, log) = (member.clone(), stop.clone(), Arc::clone(log));
    let name = name.to_owned();
    let reconcile = move |key: String, owned: Ownership| {
        let (log, replica) = (Arc::clone(&log), name.clone());
        async move {
            let place = {
                let mut log = log.lock().unwrap();
                log.push(Entry {
                    replica,
                    key,
                    fence: owned.fence(),
                    begin: Instant::now(),
                    end: None,
                    was_lost: false,
                });
                log.len() - 1
            };
            let was_lost = tokio::select! {
                biased;
                () = owned.lost() => true,
                () = sleep(run) => false,
            };
            let mut log = log.lock().unwrap();
            log[place].end = Some(Instant::now());
            log[place].was_lost = was_lost;
            if was_lost {
                Err("lost")
            } else {
                Ok(Action::Success)
            }
        }
    };
    let process = tokio::spawn(async move { member.run(Workers::new(4), token, reconcile).await });
    Replica {
        member: handle,
        stop,
        process,
    }
}

impl Replica {
    /// How many shards it owns, as the engine shows it.
    pub(crate) fn owned(&self, name: &str) -> usize {
        self.member
            .status()
            .members
            .get(name)
            .map_or(0, |(_, owned)| *owned)
    }
}
