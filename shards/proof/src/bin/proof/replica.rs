//! A replica: a process that takes shards, and writes each changed key to the store.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use requeue_shards::{Member, Ownership, Shards, Taken};
use requeue_shards_proof::random::Random;
use requeue_tokio::{Action, CancellationToken, WorkQueue, Workers};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

use crate::engine::Watched;
use crate::plant::Plant;

/// The arguments of a replica.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) set: String,
    pub(crate) shards: u32,
    pub(crate) ttl: Duration,
    pub(crate) endpoints: Vec<String>,
    pub(crate) store: String,
    pub(crate) plant: Plant,
    /// The longest duration of a run, and of one run in 32.
    pub(crate) runs: (Duration, Duration),
}

impl Call {
    pub(crate) fn words(&self) -> Vec<String> {
        vec![
            "replica".to_owned(),
            self.name.clone(),
            self.set.clone(),
            self.shards.to_string(),
            self.ttl.as_millis().to_string(),
            self.endpoints.join(","),
            self.store.clone(),
            self.plant.name().to_owned(),
            self.runs.0.as_millis().to_string(),
            self.runs.1.as_millis().to_string(),
        ]
    }

    pub(crate) fn read(words: &[String]) -> Option<Self> {
        let [name, set, shards, ttl, endpoints, store, plant, usual, slow] = words else {
            return None;
        };
        let millis = |word: &String| Some(Duration::from_millis(word.parse().ok()?));
        Some(Self {
            name: name.clone(),
            set: set.clone(),
            shards: shards.parse().ok()?,
            ttl: millis(ttl)?,
            endpoints: endpoints.split(',').map(str::to_owned).collect(),
            store: store.clone(),
            plant: Plant::read(plant)?,
            runs: (millis(usual)?, millis(slow)?),
        })
    }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Runs until SIGTERM, or until etcd or the store has ended.
pub(crate) async fn run(call: Call) -> Result<(), Failure> {
    let engine = Watched::connect(&call.endpoints, &call.set, call.plant).await?;
    let calls = Arc::clone(&engine.calls);
    let store = Arc::new(Pool {
        address: call.store.clone(),
        hello: format!("hello {}", call.name),
        idle: Mutex::default(),
        random: Mutex::new(Random::new(u64::from(std::process::id()))),
    });
    let mut builder = Shards::builder(engine, &call.set)
        .count(call.shards)
        .ttl(call.ttl)
        .member(&call.name)
        .marks(true);
    if call.plant == Plant::NoDrain {
        builder = builder.drain_timeout(Duration::ZERO);
    }
    let queue = WorkQueue::builder().levels::<2>().build();
    let lists = Arc::clone(&store);
    let relist = move |taken: Taken| {
        let lists = Arc::clone(&lists);
        async move {
            let listed = lists.ask(&format!("list {}", taken.shard)).await?;
            let keys = listed.split(' ').filter(|key| !key.is_empty());
            Ok::<_, io::Error>(keys.map(str::to_owned).collect::<Vec<_>>())
        }
    };
    let member = builder.build().join(&queue, relist).await?;

    let stop = CancellationToken::new();
    let mut terminated = signal(SignalKind::terminate())?;
    let told = stop.clone();
    tokio::spawn(async move {
        terminated.recv().await;
        told.cancel();
    });
    tokio::spawn(watch(Arc::clone(&store), member.clone()));
    let counts = Arc::clone(&store);
    tokio::spawn(async move {
        loop {
            sleep(Duration::from_millis(200)).await;
            let calls = calls.load(Ordering::Relaxed);
            let _ = counts.ask(&format!("count {calls}")).await;
        }
    });
    let running = member.run(
        Workers::new(16),
        stop,
        move |key: String, owned: Ownership| {
            let (store, call) = (Arc::clone(&store), call.clone());
            async move { reconcile(&store, &call, &key, &owned).await }
        },
    );
    Ok(running.await?)
}

/// Adds the keys that change at the source of truth.
async fn watch<P, L, S>(store: Arc<Pool>, member: Member<String, Watched, P, L, S>)
where
    P: requeue_tokio::priority::Priorities + 'static,
    L: requeue_tokio::limiter::RateLimiter + 'static,
    S: requeue_tokio::storage::Storage + 'static,
    requeue_tokio::binding::Shared<requeue_tokio::binding::TaskHost<String, P, L, S>>: Send + Sync,
{
    let Ok(mut connection) = store.connect().await else {
        return;
    };
    if connection.ask("watch").await.is_err() {
        return;
    }
    // Shards that are taken over from now on list earlier changes.
    member.relist();
    while let Ok(Some(key)) = connection.lines.next_line().await {
        // The queue refuses keys once it shuts down.
        let _ = member.add(key);
    }
    // The store ends with the proof, and so do the replicas.
    std::process::exit(1);
}

async fn reconcile(
    store: &Pool,
    call: &Call,
    key: &str,
    owned: &Ownership,
) -> Result<Action, io::Error> {
    let begin = format!("begin {} {} {key}", owned.shard(), owned.fence());
    let mut connection = store.connection().await?;
    let begun = connection.ask(&begin).await?;
    let Some((run, version)) = begun.split_once(' ') else {
        return Err(io::Error::other(begun));
    };
    let is_lost = async {
        match call.plant {
            Plant::NoDrain => std::future::pending().await,
            _ => owned.lost().await,
        }
    };
    tokio::select! {
        biased;
        () = is_lost => {
            connection.ask(&format!("drop {run}")).await?;
            store.give_back(connection);
            Ok(Action::Release)
        }
        () = sleep(store.duration(call.runs)) => {
            let reply = connection.ask(&format!("write {run} {version}")).await?;
            store.give_back(connection);
            match reply.as_str() {
                "accepted" => Ok(Action::Success),
                _ => Err(io::Error::other(reply)),
            }
        }
    }
}

/// Connections to the store.
struct Pool {
    address: String,
    hello: String,
    idle: Mutex<Vec<Connection>>,
    random: Mutex<Random>,
}

struct Connection {
    lines: tokio::io::Lines<BufReader<tokio::net::tcp::OwnedReadHalf>>,
    writer: OwnedWriteHalf,
}

impl Pool {
    async fn connect(&self) -> io::Result<Connection> {
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        let (reader, writer) = stream.into_split();
        let lines = BufReader::new(reader).lines();
        let mut connection = Connection { lines, writer };
        connection.ask(&self.hello).await?;
        Ok(connection)
    }

    async fn connection(&self) -> io::Result<Connection> {
        let idle = self.lock(&self.idle).pop();
        match idle {
            Some(connection) => Ok(connection),
            None => self.connect().await,
        }
    }

    fn give_back(&self, connection: Connection) {
        self.lock(&self.idle).push(connection);
    }

    async fn ask(&self, line: &str) -> io::Result<String> {
        let mut connection = self.connection().await?;
        let reply = connection.ask(line).await?;
        self.give_back(connection);
        Ok(reply)
    }

    /// How long a run takes.
    fn duration(&self, (usual, slow): (Duration, Duration)) -> Duration {
        let mut random = self.lock(&self.random);
        let most = if random.between(0, 32) == 0 {
            slow
        } else {
            usual
        };
        let most = u64::try_from(most.as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(random.between(1, most))
    }

    fn lock<'m, T>(&self, mutex: &'m Mutex<T>) -> std::sync::MutexGuard<'m, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    async fn ask(&mut self, line: &str) -> io::Result<String> {
        self.writer
            .write_all(format!("{line}\n").as_bytes())
            .await?;
        let reply = self.lines.next_line().await?;
        reply.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
    }
}
