//! The source of truth and the store of the replicas: it checks fences and records the history.
//!
//! A replica sends lines: first `hello NAME`, and then `list SHARD`, `watch`,
//! `begin SHARD FENCE KEY`, `write RUN VERSION`, `drop RUN`, `count CALLS`. When a connection is
//! closed, its runs are dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use requeue_shards::shard_of;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::history::{Entry, Event, History, Pause, RunId};

/// The store. Clones are handles to the same store.
#[derive(Clone, Debug)]
pub struct Store {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    start: Instant,
    /// Whether a write with a smaller fence is refused.
    is_fenced: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    rows: BTreeMap<String, Row>,
    /// The keys that replicas list and watch. Other keys are marked.
    listed: BTreeMap<u32, Vec<String>>,
    history: History,
    open: BTreeMap<RunId, (String, u64)>,
    runs: u64,
    watchers: Vec<mpsc::UnboundedSender<String>>,
    /// How often each replica has called etcd, except to keep its session.
    calls: BTreeMap<String, u64>,
}

#[derive(Debug, Default)]
struct Row {
    is_listed: bool,
    wanted: u64,
    written: u64,
    fence: u64,
}

impl Store {
    /// A store with keys, some of which replicas list and watch.
    pub fn new(count: NonZeroU32, listed: &[String], marked: &[String], is_fenced: bool) -> Self {
        let mut state = State::default();
        for key in listed {
            let shard = shard_of(key, count).0;
            state.listed.entry(shard).or_default().push(key.clone());
        }
        let listed = listed.iter().map(|key| (key, true));
        let keys = listed.chain(marked.iter().map(|key| (key, false)));
        for (key, is_listed) in keys {
            let row = Row {
                is_listed,
                ..Row::default()
            };
            state.rows.insert(key.clone(), row);
        }
        let state = Mutex::new(state);
        Self {
            shared: Arc::new(Shared {
                start: Instant::now(),
                is_fenced,
                state,
            }),
        }
    }

    /// Since the store was made.
    pub fn now(&self) -> Duration {
        self.shared.start.elapsed()
    }

    /// Changes a key. If it is a listed key, tells the watching replicas.
    pub fn change(&self, key: &str) {
        let mut state = self.state();
        let Some(row) = state.rows.get_mut(key) else {
            return;
        };
        row.wanted += 1;
        let (key, version, is_listed) = (key.to_owned(), row.wanted, row.is_listed);
        if is_listed {
            state
                .watchers
                .retain(|watcher| watcher.send(key.clone()).is_ok());
        }
        self.record(&mut state, Event::Changed { key, version });
    }

    /// Returns a copy of the history.
    pub fn history(&self) -> History {
        self.state().history.clone()
    }

    /// Returns the number of recorded events.
    pub fn len(&self) -> usize {
        self.state().history.entries.len()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether every change was written.
    pub fn is_settled(&self) -> bool {
        let state = self.state();
        state.rows.values().all(|row| row.written >= row.wanted)
    }

    /// Returns how often the replicas have called etcd, except to keep their sessions.
    pub fn calls(&self) -> u64 {
        self.state().calls.values().sum()
    }

    /// Records that a replica is now stopped for longer than the TTL.
    pub fn paused(&self, replica: &str) {
        let from = self.now();
        self.state().history.pauses.push(Pause {
            replica: replica.to_owned(),
            from,
            to: None,
        });
    }

    /// Records that the replica continues. Its runs get a while to end.
    pub fn continued(&self, replica: &str, grace: Duration) {
        let to = self.now() + grace;
        let mut state = self.state();
        let mut pauses = state.history.pauses.iter_mut().rev();
        if let Some(pause) = pauses.find(|pause| pause.replica == replica) {
            pause.to = Some(to);
        }
    }

    /// Serves replicas until the future is dropped.
    ///
    /// # Errors
    ///
    /// It cannot accept connections.
    pub async fn serve(&self, listener: TcpListener) -> io::Result<()> {
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let store = self.clone();
            tokio::spawn(async move {
                let mut session = Session {
                    store: store.clone(),
                    replica: String::new(),
                    open: BTreeSet::new(),
                };
                // A replica that dies breaks its connections.
                let _ = session.converse(stream).await;
            });
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let state = self.shared.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the clock under the lock, so that times do not go back.
    fn record(&self, state: &mut State, event: Event) {
        let at = self.now();
        state.history.entries.push(Entry { at, event });
    }

    fn begin(&self, replica: &str, shard: u32, fence: u64, key: &str) -> Option<(RunId, u64)> {
        let mut state = self.state();
        let wanted = state.rows.get(key)?.wanted;
        state.runs += 1;
        let run = RunId(state.runs);
        state.open.insert(run, (key.to_owned(), fence));
        let (key, replica) = (key.to_owned(), replica.to_owned());
        let begun = Event::Begun {
            run,
            key,
            shard,
            fence,
            replica,
        };
        self.record(&mut state, begun);
        Some((run, wanted))
    }

    fn write(&self, run: RunId, version: u64) -> bool {
        let mut state = self.state();
        let Some((key, fence)) = state.open.remove(&run) else {
            return false;
        };
        let Some(row) = state.rows.get_mut(&key) else {
            return false;
        };
        let is_accepted = fence >= row.fence || !self.shared.is_fenced;
        if is_accepted {
            row.fence = row.fence.max(fence);
            row.written = row.written.max(version);
        }
        let event = match is_accepted {
            true => Event::Accepted { run, version },
            false => Event::Refused { run },
        };
        self.record(&mut state, event);
        is_accepted
    }

    fn drop_run(&self, run: RunId) {
        let mut state = self.state();
        if state.open.remove(&run).is_some() {
            self.record(&mut state, Event::Dropped { run });
        }
    }

    /// The keys of a shard that have to run, or any one key, so that each take-over has a run.
    fn list(&self, shard: u32) -> Vec<String> {
        let state = self.state();
        let keys = state.listed.get(&shard).cloned().unwrap_or_default();
        let is_waiting = |key: &&String| {
            let row = state.rows.get(*key);
            row.is_some_and(|row| row.written < row.wanted)
        };
        let waiting: Vec<String> = keys.iter().filter(is_waiting).cloned().collect();
        if waiting.is_empty() {
            keys.into_iter().take(1).collect()
        } else {
            waiting
        }
    }
}

/// One connection.
struct Session {
    store: Store,
    replica: String,
    open: BTreeSet<RunId>,
}

impl Session {
    async fn converse(&mut self, stream: TcpStream) -> io::Result<()> {
        let (reader, mut writer) = stream.into_split();
        let mut lines = BufReader::new(reader).lines();
        while let Some(line) = lines.next_line().await? {
            if line == "watch" {
                let (sender, mut receiver) = mpsc::unbounded_channel();
                self.store.state().watchers.push(sender);
                writer.write_all(b"watched\n").await?;
                while let Some(key) = receiver.recv().await {
                    writer.write_all(format!("{key}\n").as_bytes()).await?;
                }
                return Ok(());
            }
            let reply = self.reply(&line).unwrap_or_else(|| "what?".to_owned());
            writer.write_all(format!("{reply}\n").as_bytes()).await?;
        }
        Ok(())
    }

    fn reply(&mut self, line: &str) -> Option<String> {
        let mut words = line.split(' ');
        let ok = || Some("ok".to_owned());
        let number = |words: &mut std::str::Split<'_, char>| words.next()?.parse::<u64>().ok();
        match words.next()? {
            "hello" => {
                self.replica = words.next()?.to_owned();
                ok()
            }
            "list" => {
                let shard = u32::try_from(number(&mut words)?).ok()?;
                Some(self.store.list(shard).join(" "))
            }
            "begin" => {
                let shard = u32::try_from(number(&mut words)?).ok()?;
                let fence = number(&mut words)?;
                let begun = self.store.begin(&self.replica, shard, fence, words.next()?);
                let (run, version) = begun?;
                self.open.insert(run);
                Some(format!("{} {version}", run.0))
            }
            "write" => {
                let run = RunId(number(&mut words)?);
                let is_accepted = self.store.write(run, number(&mut words)?);
                self.open.remove(&run);
                Some(if is_accepted { "accepted" } else { "refused" }.to_owned())
            }
            "drop" => {
                let run = RunId(number(&mut words)?);
                self.store.drop_run(run);
                self.open.remove(&run);
                ok()
            }
            "count" => {
                let calls = number(&mut words)?;
                let mut state = self.store.state();
                state.calls.insert(self.replica.clone(), calls);
                ok()
            }
            _ => None,
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for run in &self.open {
            self.store.drop_run(*run);
        }
    }
}
