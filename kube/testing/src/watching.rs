//! Watches: the history of a resource, as far as a client sees it.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, StreamExt};
use http::Response;
use http_body::Frame;
use http_body_util::StreamBody;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::answer::{Refusal, ResponseBody};
use crate::cluster::{Cluster, shaped};
use crate::kinds::Kind;
use crate::link::Link;
use crate::request::Asked;
use crate::selector::Selector;
use crate::store::Change;
use crate::writes::{kind_of, selector_of};

/// One watch.
struct Watch {
    cluster: Cluster,
    link: Link,
    asked: Asked,
    kind: Kind,
    selector: Selector,
    /// How often the watches of this resource had been ended when it began.
    cuts: u64,
    seen: u64,
    /// What comes next, whatever changes.
    queued: VecDeque<Value>,
    ends: Instant,
    has_ended: bool,
}

impl Cluster {
    pub(crate) fn watch(
        &self,
        asked: &Asked,
        link: &Link,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let seconds = asked.query.number::<u64>("timeoutSeconds")?.unwrap_or(290);
        let from = asked.query.number::<u64>("resourceVersion")?.unwrap_or(0);
        let state = self.state();
        let kind = kind_of(&state.store, asked)?;
        let lag = link.lag_for(&asked.resource());
        let mut watch = Watch {
            cluster: self.clone(),
            link: link.clone(),
            asked: asked.clone(),
            selector: selector_of(asked)?,
            cuts: state.cuts_of(&asked.resource()),
            seen: from,
            queued: VecDeque::new(),
            ends: Instant::now() + Duration::from_secs(seconds),
            has_ended: false,
            kind,
        };
        let sends_first = asked.query.is_true("sendInitialEvents");
        if from > 0 && from < state.store.compacted {
            watch.fail(Refusal::expired("too old resource version"));
        } else if from == 0 || sends_first {
            // What there is, as of what the client can see.
            let version = state.store.version_at(state.now().saturating_sub(lag));
            let objects = state.store.at_version(&watch.kind.resource(), version);
            let concerned = objects.iter().filter(|(key, object)| {
                watch.is_in_namespace(&key.namespace) && watch.selector.matches(object)
            });
            let first: Vec<Value> = concerned
                .map(|(_, object)| event("ADDED", object))
                .collect();
            watch.queued.extend(first);
            watch.seen = version;
            if sends_first {
                let mut end = watch.bookmark();
                end["object"]["metadata"]["annotations"] =
                    json!({"k8s.io/initial-events-end": "true"});
                watch.queued.push_back(end);
            }
        }
        drop(state);
        let lines = stream::unfold(watch, |mut watch| async {
            let line = watch.next().await?;
            Some((
                line.map(|line| Frame::data(Bytes::from(format!("{line}\n")))),
                watch,
            ))
        });
        Ok(Response::new(StreamBody::new(lines.boxed())))
    }
}

impl Watch {
    async fn next(&mut self) -> Option<io::Result<Value>> {
        let cluster = self.cluster.clone();
        let (mut news, mut faults) = (cluster.news(), self.link.changes());
        loop {
            news.mark_unchanged();
            faults.mark_unchanged();
            if self.is_cut() || self.has_ended && self.queued.is_empty() {
                return None;
            }
            let wait = match self.queued.pop_front() {
                Some(line) => Ok(line),
                None => self.look(),
            };
            let until = match wait {
                Ok(mut line) => {
                    if let Err(error) = self.link.travel().await {
                        self.has_ended = true;
                        self.queued.clear();
                        return Some(Err(error));
                    }
                    if self.is_cut() {
                        return None;
                    }
                    if line["type"] != "BOOKMARK" && self.link.repeats() {
                        self.queued.push_front(line.clone());
                    }
                    let object = shaped(&self.asked, line["object"].take());
                    line["object"] = self.link.received(object);
                    return Some(Ok(line));
                }
                Err(until) => until,
            };
            let minute = Instant::now() + Duration::from_secs(60);
            let until = until.unwrap_or(minute).min(minute).min(self.ends);
            tokio::select! {
                biased;
                _ = news.changed() => {}
                _ = faults.changed() => {}
                () = sleep_until(until) => {
                    self.has_ended = Instant::now() >= self.ends;
                    if until == minute && self.asked.query.is_true("allowWatchBookmarks") {
                        self.queued.push_back(self.bookmark());
                    }
                }
            }
        }
    }

    fn is_cut(&self) -> bool {
        self.cluster.state().cuts_of(&self.asked.resource()) != self.cuts
    }

    /// The next event, or the time at which there is one.
    fn look(&mut self) -> Result<Value, Option<Instant>> {
        let cluster = self.cluster.clone();
        let state = cluster.state();
        let lag = self.link.lag_for(&self.asked.resource());
        let from = state
            .store
            .history
            .partition_point(|change| change.version <= self.seen);
        for change in &state.store.history[from..] {
            let Some(event) = self.event_of(change) else {
                continue;
            };
            let visible = change.at.saturating_add(lag);
            if visible > state.now() {
                return Err(Some(state.instant(visible)));
            }
            self.seen = change.version;
            return Ok(event);
        }
        let visible = state.now().saturating_sub(lag);
        self.seen = self.seen.max(state.store.version_at(visible));
        Err(None)
    }

    /// How a client with this selector sees a change.
    fn event_of(&self, change: &Change) -> Option<Value> {
        if change.key.resource != self.kind.resource()
            || !self.is_in_namespace(&change.key.namespace)
        {
            return None;
        }
        let matches = |object: &Option<Arc<Value>>| {
            object
                .as_ref()
                .is_some_and(|object| self.selector.matches(object))
        };
        match (matches(&change.before), matches(&change.after)) {
            (false, true) => Some(event("ADDED", &change.shown)),
            (true, true) => Some(event("MODIFIED", &change.shown)),
            (true, false) => {
                // As it was when it was selected last.
                let before = change.before.as_deref().unwrap_or(&change.shown);
                let mut object = before.clone();
                object["metadata"]["resourceVersion"] = json!(change.version.to_string());
                Some(event("DELETED", &object))
            }
            (false, false) => None,
        }
    }

    fn is_in_namespace(&self, namespace: &str) -> bool {
        self.asked
            .namespace
            .as_ref()
            .is_none_or(|asked| *asked == namespace)
    }

    /// Nothing of this resource that the client can see is newer than what it has seen.
    fn bookmark(&self) -> Value {
        json!({"type": "BOOKMARK", "object": {
            "kind": self.kind.kind, "apiVersion": self.kind.api_version(),
            "metadata": {"resourceVersion": self.seen.to_string()},
        }})
    }

    fn fail(&mut self, refusal: Refusal) {
        self.queued
            .push_back(json!({"type": "ERROR", "object": refusal.status()}));
        self.has_ended = true;
    }
}

fn event(kind: &str, object: &Value) -> Value {
    json!({"type": kind, "object": object})
}
