//! Watches.

use std::future::pending;
use std::io;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, StreamExt};
use http::Response;
use http_body::Frame;
use http_body_util::StreamBody;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::answer::{Refusal, ResponseBody, status};
use super::state::Change;
use super::{Cluster, Link};
use crate::path::Path;

impl Cluster {
    pub(super) fn watch(&self, path: &Path, link: Link) -> Response<ResponseBody> {
        let from = path
            .query
            .get("resourceVersion")
            .and_then(|v| v.parse().ok())
            .unwrap_or(0);
        let seconds = path
            .query
            .get("timeoutSeconds")
            .and_then(|v| v.parse().ok())
            .unwrap_or(290);
        let (cuts, too_old) = {
            let state = self.state();
            (state.cuts_of(&path.resource), from < state.compacted)
        };
        let watching = Watching {
            too_old,
            cluster: self.clone(),
            link,
            cuts,
            path: path.clone(),
            seen: from,
            again: None,
            ends: Instant::now() + Duration::from_secs(seconds),
            has_ended: false,
        };
        let lines = stream::unfold(watching, |mut watching| async {
            let line = watching.next().await?;
            let frame = line.map(|line| Frame::data(Bytes::from(format!("{line}\n"))));
            Some((frame, watching))
        });
        Response::new(StreamBody::new(lines.boxed()))
    }
}

struct Watching {
    cluster: Cluster,
    link: Link,
    cuts: u64,
    too_old: bool,
    path: Path,
    seen: u64,
    again: Option<Value>,
    ends: Instant,
    has_ended: bool,
}

impl Watching {
    async fn next(&mut self) -> Option<io::Result<Value>> {
        if let Some(again) = self.again.take() {
            return Some(Ok(again));
        }
        let cluster = self.cluster.clone();
        loop {
            let mut news = pin!(cluster.news.notified());
            news.as_mut().enable();
            if self.has_ended || self.is_cut() {
                return None;
            }
            if self.link.is_deaf() {
                return pending().await;
            }
            match self.look() {
                Some((line, at)) => {
                    self.link.lag(&self.path.resource, at).await;
                    if let Err(error) = self.link.travel().await {
                        self.has_ended = true;
                        return Some(Err(error));
                    }
                    if self.is_cut() {
                        return None;
                    }
                    self.again = self.link.repeats().then(|| line.clone());
                    return Some(Ok(line));
                }
                // A bookmark a minute, and the end at its time.
                None => {
                    let minute = Instant::now() + Duration::from_secs(60);
                    let until = minute.min(self.ends);
                    if timeout_at(until, news).await.is_err() {
                        self.has_ended = Instant::now() >= self.ends;
                        if !self.has_ended {
                            return Some(Ok(self.bookmark()));
                        }
                    }
                }
            }
        }
    }

    fn is_cut(&self) -> bool {
        self.cluster.state().cuts_of(&self.path.resource) != self.cuts
    }

    fn look(&mut self) -> Option<(Value, Instant)> {
        let state = self.cluster.state();
        if self.too_old {
            self.has_ended = true;
            let status = status(&Refusal(
                410,
                "Expired",
                "too old resource version".to_owned(),
            ));
            return Some((json!({"type": "ERROR", "object": status}), Instant::now()));
        }
        let concerns = |change: &&Change| {
            let namespace = change.object["metadata"]["namespace"].as_str();
            let asked = self.path.namespace.as_deref();
            change.resource == self.path.resource
                && (asked.is_none() || asked == namespace)
                && self.path.selects(&change.object)
        };
        let from = state
            .history
            .partition_point(|change| change.version <= self.seen);
        let Some(change) = state.history[from..].iter().find(concerns) else {
            self.seen = self.seen.max(state.version);
            return None;
        };
        self.seen = change.version;
        let line = json!({"type": change.kind, "object": self.path.shown(&change.object)});
        Some((line, change.at))
    }

    fn bookmark(&mut self) -> Value {
        let state = self.cluster.state();
        // Nothing of this resource is newer than what was looked at.
        let version = state.version;
        self.seen = version;
        let object = json!({
            "kind": "Bookmark", "apiVersion": "v1",
            "metadata": {"resourceVersion": version.to_string()}
        });
        json!({"type": "BOOKMARK", "object": object})
    }
}
