//! A world: etcd, the store, the replicas, and the tasks that change keys.

use std::fs;
use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use requeue_shards::{Engine, Etcd, Shards, View, shard_of};
use requeue_shards_proof::store::Store;
use requeue_tokio::CancellationToken;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep, timeout};

use crate::cluster::{Cluster, send};
use crate::plant::Plant;
use crate::proxy::Network;
use crate::replica::Call;

/// The settings of a world.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) etcd: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) nodes: usize,
    pub(crate) replicas: usize,
    pub(crate) plant: Plant,
    /// How long a run takes, and how long one run in 32 takes.
    pub(crate) runs: (Duration, Duration),
    /// How many keys change per second, listed and marked ones.
    pub(crate) changes: (u64, u64),
}

pub(crate) const SHARDS: NonZeroU32 = NonZeroU32::new(64).unwrap();
pub(crate) const TTL: Duration = Duration::from_secs(3);
const SET: &str = "proof";
/// How long the runs of a paused replica may take to end.
const GRACE: Duration = Duration::from_millis(500);

pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) cluster: Cluster,
    pub(crate) store: Store,
    pub(crate) slots: Vec<Slot>,
    pub(crate) view: watch::Receiver<View>,
    address: String,
    /// The number of started replicas.
    started: u64,
    /// The tasks of the store, and the one that follows etcd.
    _tasks: JoinSet<()>,
    /// The tasks that change keys.
    load: JoinSet<()>,
    calm: CancellationToken,
}

/// A place for a replica, with its network.
pub(crate) struct Slot {
    pub(crate) network: Network,
    pub(crate) process: Option<Child>,
    pub(crate) name: String,
}

/// How many listed and marked keys each shard has: so many that the next change of a key does not
/// hide a lost one.
const LISTED: usize = 32;
const MARKED: usize = 16;
/// How often a key is marked in a row, so that it is also marked during its run.
const IN_A_ROW: u64 = 3;

/// The keys of each kind, from all shards in turn.
fn keys() -> (Vec<String>, Vec<String>) {
    let keys = |kind: &str, each: usize| {
        let mut shards = vec![Vec::new(); SHARDS.get() as usize];
        let mut names = (0..).map(|number| format!("{kind}{number}"));
        while shards.iter().any(|keys: &Vec<String>| keys.len() < each) {
            let Some(key) = names.next() else { break };
            let shard = shards.get_mut(shard_of(&key, SHARDS).0 as usize);
            if let Some(keys) = shard.filter(|keys| keys.len() < each) {
                keys.push(key);
            }
        }
        let turns = (0..each).map(|turn| shards.iter().filter_map(move |keys| keys.get(turn)));
        turns.flatten().cloned().collect()
    };
    (keys("k", LISTED), keys("m", MARKED))
}

impl World {
    /// Starts everything, and waits until all shards are owned.
    pub(crate) async fn start(plan: Plan) -> io::Result<Self> {
        let cluster = Cluster::start(&plan.etcd, &plan.folder.join("etcd"), plan.nodes).await?;
        let (listed, marked) = keys();
        let store = Store::new(SHARDS, &listed, &marked, plan.plant != Plant::NoFence);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let mut tasks = JoinSet::new();
        let serving = store.clone();
        tasks.spawn(async move {
            let _ = serving.serve(listener).await;
        });
        let sender = watch::Sender::<View>::default();
        let view = sender.subscribe();
        let etcd = connect(&cluster).await?;
        tasks.spawn(async move {
            loop {
                let _ = etcd.follow(SET, &sender).await;
                sleep(Duration::from_millis(100)).await;
            }
        });
        let mut slots = Vec::new();
        for _ in 0..plan.replicas {
            slots.push(Slot {
                network: Network::new(&cluster.addresses()).await?,
                process: None,
                name: String::new(),
            });
        }
        let mut world = Self {
            plan,
            cluster,
            store,
            slots,
            view,
            address,
            started: 0,
            _tasks: tasks,
            load: JoinSet::new(),
            calm: CancellationToken::new(),
        };
        for slot in 0..world.slots.len() {
            world.begin(slot)?;
        }
        world.all_owned(Duration::from_secs(30)).await?;
        world.load(&listed, &marked).await?;
        Ok(world)
    }

    /// Starts the tasks that change keys. They end with the world, or with [`calm`](Self::calm).
    async fn load(&mut self, listed: &[String], marked: &[String]) -> io::Result<()> {
        let (changes, marks) = self.plan.changes;
        let pause = |each_second: u64| {
            let nanos = 1_000_000_000_u64.checked_div(each_second);
            nanos.map(|nanos| interval(Duration::from_nanos(nanos.max(1))))
        };
        if let Some(mut next) = pause(changes) {
            let (store, listed) = (self.store.clone(), listed.to_vec());
            let calm = self.calm.clone();
            self.load.spawn(async move {
                // In turn, so that each shard has about the same number.
                for key in listed.iter().cycle() {
                    next.tick().await;
                    if calm.is_cancelled() {
                        return;
                    }
                    store.change(key);
                }
            });
        }
        if let Some(mut next) = pause(marks) {
            let (store, marked) = (self.store.clone(), marked.to_vec());
            let shards = Shards::builder(connect(&self.cluster).await?, SET)
                .count(SHARDS.get())
                .build();
            let calm = self.calm.clone();
            self.load.spawn(async move {
                for key in marked.iter().cycle() {
                    for _ in 0..IN_A_ROW {
                        next.tick().await;
                        store.change(key);
                        while shards.mark(key).await.is_err() {}
                    }
                    if calm.is_cancelled() {
                        return;
                    }
                }
            });
        }
        Ok(())
    }

    /// Starts a replica in an empty slot, under a new name.
    pub(crate) fn begin(&mut self, slot: usize) -> io::Result<()> {
        self.started += 1;
        let name = format!("r{slot}-{}", self.started);
        let Some(place) = self.slots.get_mut(slot) else {
            return Ok(());
        };
        let call = Call {
            name: name.clone(),
            set: SET.to_owned(),
            shards: SHARDS.get(),
            ttl: TTL,
            endpoints: place.network.endpoints.clone(),
            store: self.address.clone(),
            plant: self.plan.plant,
            runs: self.plan.runs,
        };
        let log = fs::File::create(self.plan.folder.join(format!("{name}.log")))?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(call.words())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true);
        place.process = Some(command.spawn()?);
        place.name = name;
        Ok(())
    }

    /// Restarts replicas that have ended by themselves, if `is_ours` says so.
    pub(crate) fn restart_ended(&mut self, is_ours: impl Fn(usize) -> bool) -> io::Result<()> {
        for slot in 0..self.slots.len() {
            if is_ours(slot) && self.has_ended(slot) {
                self.begin(slot)?;
            }
        }
        Ok(())
    }

    pub(crate) async fn signal(&self, slot: usize, signal: &str) -> io::Result<()> {
        let slot = self.slots.get(slot);
        match slot.and_then(|slot| slot.process.as_ref()) {
            Some(process) => send(process, signal).await,
            None => Ok(()),
        }
    }

    pub(crate) async fn kill(&mut self, slot: usize) -> io::Result<()> {
        let slot = self.slots.get_mut(slot);
        match slot.and_then(|slot| slot.process.take()) {
            Some(mut process) => process.kill().await,
            None => Ok(()),
        }
    }

    /// Whether the replica of a slot has ended.
    pub(crate) fn has_ended(&mut self, slot: usize) -> bool {
        let process = self
            .slots
            .get_mut(slot)
            .and_then(|slot| slot.process.as_mut());
        process.is_none_or(|process| !matches!(process.try_wait(), Ok(None)))
    }

    /// Records that a replica is stopped for longer than the TTL.
    pub(crate) fn paused(&self, slot: usize) {
        if let Some(slot) = self.slots.get(slot) {
            self.store.paused(&slot.name);
        }
    }

    pub(crate) fn continued(&self, slot: usize) {
        if let Some(slot) = self.slots.get(slot) {
            self.store.continued(&slot.name, GRACE);
        }
    }

    pub(crate) async fn all_owned(&mut self, limit: Duration) -> io::Result<()> {
        let all = SHARDS.get() as usize;
        let owned = self.view.wait_for(|view| view.owners.len() == all);
        match timeout(limit, owned).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(io::Error::other(format!(
                "not all shards are owned after {limit:?}"
            ))),
        }
    }

    /// Returns the shards of a replica.
    pub(crate) fn shards_of(&self, slot: usize) -> Vec<u32> {
        let name = self.slots.get(slot).map(|slot| slot.name.clone());
        let view = self.view.borrow();
        let owners = view.owners.iter();
        let own = owners.filter(|(_, owner)| Some(&owner.member) == name.as_ref());
        own.map(|(shard, _)| shard.0).collect()
    }

    /// Stops all changes, and waits until everything is written.
    pub(crate) async fn settle(&mut self, limit: Duration) {
        self.calm.cancel();
        let settled = async {
            // A changed key is marked, however long that takes.
            while self.load.join_next().await.is_some() {}
            while !self.store.is_settled() {
                sleep(Duration::from_millis(50)).await;
            }
        };
        let _ = timeout(limit, settled).await;
    }
}

pub(crate) async fn connect(cluster: &Cluster) -> io::Result<Etcd> {
    let etcd = Etcd::with_options(cluster.endpoints(), cluster.options()).await;
    etcd.map_err(io::Error::other)
}

/// Empties the folder for the files of a run.
pub(crate) fn emptied(folder: &Path) -> io::Result<()> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder)
}
