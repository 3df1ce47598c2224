//! Lists a range of keys and follows its changes, even if nodes fail.

use std::convert::Infallible;

use etcd_client::{
    Client, EventType, GetOptions, KeyValue, ResponseHeader, WatchOptions, WatchResponse,
    WatchStream,
};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::calls::{Calls, Laps};
use super::format::{self, Named};
use crate::error::EngineError;
use crate::view::View;

/// A range of keys, and how far it has been read.
pub(super) struct Range<'c> {
    calls: &'c Calls,
    from: Vec<u8>,
    to: Vec<u8>,
    /// The last revision that has been read. Zero before the first list.
    pub(super) revision: i64,
    /// The era of that revision.
    era: u64,
    stream: Option<Stream>,
    laps: Laps,
    /// How often in a row a watch was denied.
    denied: u32,
}

/// A watch at one node.
struct Stream {
    watch: WatchStream,
    node: u64,
    /// Whether the node was asked for a sign of life and has not replied.
    is_asked: bool,
}

/// News of a range.
pub(super) enum News {
    /// All stored pairs.
    Listed(Vec<KeyValue>),
    /// The changes of some revisions, in order.
    Changed(WatchResponse),
}

/// Why there are no changes.
enum Stopped {
    /// etcd has compacted them, so the range has to be listed again.
    Compacted,
    Failed(EngineError),
}

/// How often in a row a watch may be denied. An expired token has the same error.
const DENIED_MAX: u32 = 2;
/// How many pairs one reply lists.
const PAGE: i64 = 1000;

/// Shows members and owners. A response of a watch holds all changes of its revisions, so every
/// shown state was once stored.
pub(super) async fn follow(
    calls: &Calls,
    set: &str,
    view: &watch::Sender<View>,
) -> Result<Infallible, EngineError> {
    let prefix = format::prefix(set)?;
    let mut range = Range::new(calls, format::view_range(set)?);
    loop {
        match range.next().await? {
            News::Listed(pairs) => {
                let mut shown = View {
                    is_complete: true,
                    ..View::default()
                };
                for pair in &pairs {
                    put(&mut shown, pair, &prefix);
                }
                view.send_replace(shown);
            }
            News::Changed(response) => change(view, &response, &prefix),
        }
    }
}

fn change(view: &watch::Sender<View>, response: &WatchResponse, prefix: &str) {
    view.send_modify(|view| {
        for event in response.events() {
            let Some(pair) = event.kv() else { continue };
            match event.event_type() {
                EventType::Delete => remove(view, pair, prefix),
                EventType::Put => put(view, pair, prefix),
            }
        }
    });
}

fn remove(view: &mut View, pair: &KeyValue, prefix: &str) {
    match format::read_name(pair, prefix) {
        Some(Named::Member(name)) => drop(view.members.remove(&name)),
        Some(Named::Owner(shard)) => drop(view.owners.remove(&shard)),
        None => return,
    }
    view.unreadable.remove(&format::shown_key(pair));
}

/// Stores a pair in the view. An unreadable value also replaces the old one, and counts as missing.
fn put(view: &mut View, pair: &KeyValue, prefix: &str) {
    remove(view, pair, prefix);
    let is_read = match format::read_name(pair, prefix) {
        Some(Named::Member(name)) => format::read_member(pair)
            .map(|member| view.members.insert(name, member))
            .is_some(),
        Some(Named::Owner(shard)) => format::read_owner(pair)
            .map(|owner| view.owners.insert(shard, owner))
            .is_some(),
        None => true,
    };
    if !is_read {
        let lease = if pair.lease() == 0 {
            ", without a lease"
        } else {
            ""
        };
        let value = format::shown_value(pair) + lease;
        view.unreadable.insert(format::shown_key(pair), value);
    }
}

impl<'c> Range<'c> {
    pub(super) fn new(calls: &'c Calls, (from, to): (Vec<u8>, Vec<u8>)) -> Self {
        Self {
            calls,
            from,
            to,
            revision: 0,
            era: 0,
            stream: None,
            laps: calls.laps(),
            denied: 0,
        }
    }

    /// Returns the list first, and then changes. Lists again if etcd has compacted the changes.
    pub(super) async fn next(&mut self) -> Result<News, EngineError> {
        if self.revision == 0 {
            return self.list().await;
        }
        loop {
            let outcome = self.changes().await;
            let history = &self.calls.history;
            // Another call may have noticed first that the state was lost. Then the watch waits for
            // a revision of the lost history.
            if history.now().era != self.era {
                return Err(history.lost());
            }
            let mut stopped = match outcome {
                Ok(Some(changes)) => return Ok(News::Changed(changes)),
                Ok(None) => continue,
                Err(stopped) => stopped,
            };
            self.stream = None;
            if let Stopped::Compacted = stopped {
                match self.list().await {
                    Ok(news) => return Ok(news),
                    Err(error) => stopped = Stopped::Failed(error),
                }
            }
            match stopped {
                Stopped::Failed(EngineError::Unreachable(why)) => {
                    tracing::debug!(%why, "a watch is resumed");
                    let soon = Instant::now() + self.calls.timeout;
                    self.laps.pause(self.calls.endpoints.len(), soon).await;
                }
                Stopped::Failed(error) => return Err(error),
                Stopped::Compacted => {}
            }
        }
    }

    /// Waits for changes. If there are none for a while, asks the node for a sign of life and
    /// returns `None`.
    async fn changes(&mut self) -> Result<Option<WatchResponse>, Stopped> {
        let calls = self.calls;
        let stream = match self.stream.take() {
            Some(stream) => stream,
            None => self.open().await?,
        };
        let stream = self.stream.insert(stream);
        let node = stream.node;
        let failed = |error| {
            calls.pass_over(node);
            Err(Stopped::Failed(error))
        };
        let patience = calls.timeout / 4;
        let response = match timeout(patience, stream.watch.message()).await {
            Err(_) if stream.is_asked => return failed(calls.silence(node, 2 * patience)),
            Err(_) => {
                stream.is_asked = true;
                return match stream.watch.request_progress().await {
                    Ok(()) => Ok(None),
                    Err(error) => failed(calls.translated(node, error)),
                };
            }
            Ok(Err(error)) => return failed(calls.translated(node, error)),
            Ok(Ok(None)) => return failed(calls.ended(node, "the watch has ended")),
            Ok(Ok(Some(response))) => response,
        };
        stream.is_asked = false;
        if !calls.history.fits(self.revision, response.header()) {
            self.verify().await.map_err(Stopped::Failed)?;
        }
        if response.canceled() {
            return match (response.compact_revision(), response.cancel_reason()) {
                // The token may have expired. The next client gets another one.
                (0, why) if why.contains("permission denied") && self.denied < DENIED_MAX => {
                    self.denied += 1;
                    failed(calls.ended(node, "the watch was denied once"))
                }
                (0, why) => failed(calls.ended(node, why)),
                _ => Err(Stopped::Compacted),
            };
        }
        (self.denied, self.laps) = (0, self.calls.laps());
        // The revision of a sign of life does not count, because etcd before 3.4.25 and 3.5.8 may
        // send it ahead of changes.
        let pairs = response.events().iter().filter_map(etcd_client::Event::kv);
        let last = pairs.map(KeyValue::mod_revision).max();
        let Some(last) = last.filter(|last| *last > self.revision) else {
            return Ok(None);
        };
        self.revision = last;
        Ok(Some(response))
    }

    async fn open(&self) -> Result<Stream, Stopped> {
        let calls = self.calls;
        let options = WatchOptions::new()
            .with_range(self.to.as_slice())
            .with_start_revision(self.revision + 1);
        let (node, attempt) = (calls.node(), calls.attempt(calls.timeout));
        // On the heap, because the client's futures are large.
        let opened = Box::pin(async {
            let mut client = calls.client(node).await?;
            client.watch(self.from.as_slice(), Some(options)).await
        });
        let error = match timeout(attempt, opened).await {
            Ok(Ok(watch)) => {
                return Ok(Stream {
                    watch,
                    node,
                    is_asked: false,
                });
            }
            Ok(Err(error)) => calls.translated(node, error),
            Err(_) => calls.silence(node, attempt),
        };
        calls.pass_over(node);
        Err(Stopped::Failed(error))
    }

    /// Makes a call on which etcd has to agree, and compares its revision with the history.
    async fn verify(&self) -> Result<(), EngineError> {
        let (calls, before) = (self.calls, self.calls.history.now());
        let options = GetOptions::new().with_keys_only();
        let get = |mut client: Client| {
            let (from, options) = (self.from.clone(), options.clone());
            async move { client.get(from, Some(options)).await }
        };
        let got = calls.call(calls.timeout, get).await?;
        calls.history.check(before, got.header())
    }

    /// Lists the range at one revision, in pages.
    async fn list(&mut self) -> Result<News, EngineError> {
        let mut pairs: Vec<KeyValue> = Vec::new();
        let (mut at, before) = (0, self.calls.history.now());
        loop {
            let mut from = self.from.clone();
            if let Some(last) = pairs.last() {
                from = last.key().to_vec();
                from.push(0);
            }
            let options = GetOptions::new()
                .with_range(self.to.as_slice())
                .with_limit(PAGE)
                .with_revision(at);
            let get = |mut client: Client| {
                let (from, options) = (from.clone(), options.clone());
                async move { client.get(from, Some(options)).await }
            };
            let mut page = self.calls.call(self.calls.timeout, get).await?;
            self.calls.history.check(before, page.header())?;
            if at == 0 {
                at = page.header().map_or(0, ResponseHeader::revision);
            }
            pairs.append(&mut page.take_kvs());
            if !page.more() {
                break;
            }
        }
        (self.revision, self.era) = (at, before.era);
        Ok(News::Listed(pairs))
    }
}
