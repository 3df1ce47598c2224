//! Requests, and their answers in a form that two API servers have in common.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

/// What went wrong.
pub(crate) type Problem = Box<dyn std::error::Error + Send + Sync>;

/// The requests of one script, in a namespace of its own.
pub(crate) struct Tape {
    client: Client,
    namespace: String,
    /// The pointers that are noted of each answer. None stands for everything.
    keeps: &'static [&'static str],
    answers: Vec<(String, Value)>,
    /// Texts that differ from one server to the next, and what stands for them.
    names: Vec<(String, String)>,
}

/// A watch that is open.
pub(crate) struct Watch(BoxStream<'static, Value>);

impl Tape {
    /// Begins a script: creates its namespace.
    pub(crate) async fn new(script: &str, client: &Client) -> Result<Self, Problem> {
        let namespace = format!("conformance-{script}");
        let mut tape = Self {
            client: client.clone(),
            names: vec![(namespace.clone(), "NS".to_owned())],
            namespace,
            keeps: &[],
            answers: Vec::new(),
        };
        let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "NS"}});
        tape.send("POST", "/api/v1/namespaces", space).await?;
        Ok(tape)
    }

    /// Notes only these of each answer from now on, for objects that a real server fills in.
    pub(crate) fn keep(&mut self, pointers: &'static [&'static str]) {
        self.keeps = pointers;
    }

    /// Sends a request, notes the answer under the name of the step, and returns it.
    pub(crate) async fn ask(
        &mut self,
        step: &str,
        method: &str,
        path: &str,
        body: Value,
    ) -> Result<Value, Problem> {
        let (code, value) = self.send(method, path, body).await?;
        self.note(step, code, &value);
        Ok(value)
    }

    /// Gets an object until the answer has this status: other controllers need their time.
    pub(crate) async fn until(
        &mut self,
        step: &str,
        path: &str,
        wanted: u16,
    ) -> Result<Value, Problem> {
        for _ in 0..600 {
            let (code, value) = self.send("GET", path, Value::Null).await?;
            if code == wanted {
                self.note(step, code, &value);
                return Ok(value);
            }
            sleep(Duration::from_millis(100)).await;
        }
        Err(format!("{step}: {path} is never {wanted}").into())
    }

    /// Opens a watch.
    pub(crate) async fn watch(&mut self, path: &str) -> Result<Watch, Problem> {
        let request = Request::get(path.replace("NS", &self.namespace)).body(Vec::new())?;
        let request = request.map(kube::client::Body::from);
        let body = self.client.send(request).await?.into_body();
        let lines = stream::unfold((body, Vec::new()), |(mut body, mut rest)| async move {
            loop {
                if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = rest.drain(..=end).collect();
                    let event = serde_json::from_slice(&line).unwrap_or(Value::Null);
                    return Some((event, (body, rest)));
                }
                let frame = body.frame().await?.ok()?;
                rest.extend_from_slice(&frame.into_data().unwrap_or_default());
            }
        });
        Ok(Watch(lines.boxed()))
    }

    /// Notes what a watch brings until it ends, has brought so many events, or is quiet for a
    /// second.
    pub(crate) async fn read(&mut self, step: &str, watch: &mut Watch, most: usize) {
        let mut events = Vec::new();
        while events.len() < most {
            match timeout(Duration::from_secs(2), watch.0.next()).await {
                Ok(Some(event)) => events.push(event),
                Ok(None) => {
                    events.push(json!("end"));
                    break;
                }
                Err(_) => {
                    events.push(json!("quiet"));
                    break;
                }
            }
        }
        self.note(step, 200, &Value::Array(events));
    }

    /// Lets a text of this server be called by a name.
    pub(crate) fn call(&mut self, text: &Value, name: &str) {
        if let Some(text) = text.as_str() {
            self.names.push((text.to_owned(), name.to_owned()));
        }
    }

    async fn send(
        &mut self,
        method: &str,
        path: &str,
        body: Value,
    ) -> Result<(u16, Value), Problem> {
        let (path, accept) = path.split_once(' ').unwrap_or((path, "application/json"));
        let (method, content) = match method {
            "JSON" => ("PATCH", "application/json-patch+json"),
            "MERGE" => ("PATCH", "application/merge-patch+json"),
            "STRATEGIC" => ("PATCH", "application/strategic-merge-patch+json"),
            "APPLY" => ("PATCH", "application/apply-patch+yaml"),
            method => (method, "application/json"),
        };
        let text = match &body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let request = Request::builder()
            .method(method)
            .uri(path.replace("NS", &self.namespace))
            .header("content-type", content)
            .header("accept", accept)
            .header("user-agent", "conformance")
            .body(text.replace("NS", &self.namespace).into_bytes())?;
        let response = self.client.send(request.map(kube::client::Body::from));
        let (parts, body) = response.await?.into_parts();
        let bytes = body.collect().await?.to_bytes();
        let value = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| json!(String::from_utf8_lossy(&bytes)));
        Ok((parts.status.as_u16(), value))
    }

    fn note(&mut self, step: &str, code: u16, value: &Value) {
        let is_whole = self.keeps.is_empty() || value["kind"] == "Status";
        let mut kept = if is_whole { value.clone() } else { json!({}) };
        for at in self.keeps.iter().filter(|_| !is_whole) {
            if let Some(value) = value.pointer(at) {
                let names = at.split('/').skip(1);
                *names.fold(&mut kept, |place, name| &mut place[name]) = value.clone();
            }
        }
        let answer = json!({"code": code, "is": kept});
        self.answers.push((step.to_owned(), answer));
    }

    /// Returns the answers by their steps. What differs by its nature is called by a name: uids and
    /// versions in their order, times, and generated names.
    pub(crate) fn into_answers(mut self) -> Vec<(String, Value)> {
        let mut versions = BTreeSet::new();
        let mut uids = Vec::new();
        for (_, answer) in &self.answers {
            collect(answer, &mut versions, &mut uids);
        }
        let versions: Vec<u64> = versions.into_iter().collect();
        for (index, uid) in uids.into_iter().enumerate() {
            self.names.push((uid, format!("uid-{}", index + 1)));
        }
        let answers = std::mem::take(&mut self.answers).into_iter();
        let plain = answers.map(|(step, answer)| {
            let mut text = plain(answer, &versions).to_string();
            for (from, to) in &self.names {
                text = text.replace(from, to);
            }
            (
                step,
                serde_json::from_str(&text).unwrap_or(Value::String(text)),
            )
        });
        plain.collect()
    }
}

/// Gathers the versions of objects, and the uids in the order in which they come.
fn collect(value: &Value, versions: &mut BTreeSet<u64>, uids: &mut Vec<String>) {
    let mut todo = vec![value];
    while let Some(value) = todo.pop() {
        let uid = value["uid"].as_str().filter(|uid| !uid.is_empty());
        if let Some(uid) = uid.filter(|uid| !uids.iter().any(|known| known == uid)) {
            uids.push(uid.to_owned());
        }
        if let (Some(version), true) = (version_of(value), value["uid"].is_string()) {
            versions.insert(version);
        }
        match value {
            Value::Array(items) => todo.extend(items.iter().rev()),
            Value::Object(fields) => todo.extend(fields.values().rev()),
            _ => {}
        }
    }
}

fn version_of(value: &Value) -> Option<u64> {
    value["resourceVersion"].as_str()?.parse().ok()
}

/// An answer without what no two servers have in common.
fn plain(mut answer: Value, versions: &[u64]) -> Value {
    let mut todo = vec![&mut answer];
    while let Some(value) = todo.pop() {
        if let Some(version) = version_of(value) {
            // That of a list or a bookmark also counts the writes of others.
            let name = match versions.binary_search(&version) {
                Ok(rank) if value["uid"].is_string() => format!("version-{}", rank + 1),
                _ => "some".to_owned(),
            };
            value["resourceVersion"] = json!(name);
        }
        match value {
            Value::Array(items) => todo.extend(items),
            Value::Object(fields) => {
                for (name, value) in fields.iter_mut() {
                    match name.as_str() {
                        "creationTimestamp" | "deletionTimestamp" | "lastTransitionTime"
                            if value.is_string() =>
                        {
                            *value = json!("time");
                        }
                        "continue" if value.is_string() => *value = json!("token"),
                        "managedFields" => sort_managers(value),
                        "causes" => sort_causes(value),
                        _ => {}
                    }
                }
                // What a person reads.
                if fields
                    .get("status")
                    .is_some_and(|status| status == "Failure")
                    || fields.contains_key("field")
                {
                    fields.remove("message");
                }
                todo.extend(fields.values_mut());
            }
            _ => {}
        }
    }
    answer
}

/// Which fields are wrong, once each and without the index of an item: servers differ in that.
fn sort_causes(causes: &mut Value) {
    let Some(causes) = causes.as_array_mut() else {
        return;
    };
    for cause in causes.iter_mut() {
        if let Some(field) = cause["field"].as_str() {
            let parts =
                field
                    .trim_start_matches('.')
                    .split('[')
                    .map(|part| match part.split_once(']') {
                        Some((index, rest)) if index.parse::<u32>().is_ok() => rest.to_owned(),
                        Some(_) => format!("[{part}"),
                        None => part.to_owned(),
                    });
            let field: String = parts.collect();
            *cause = json!({"field": field, "reason": cause["reason"]});
        }
    }
    causes.sort_by_key(|cause| cause["field"].to_string());
    causes.dedup();
}

/// Managers by name. Kubernetes names the subresource since 1.22.
fn sort_managers(managers: &mut Value) {
    let Some(entries) = managers.as_array_mut() else {
        return;
    };
    for entry in entries.iter_mut() {
        if let Some(entry) = entry.as_object_mut() {
            entry.remove("time");
            entry.remove("subresource");
        }
    }
    entries.sort_by_key(|entry| {
        let text = |name: &str| entry[name].to_string();
        (text("manager"), text("operation"))
    });
}
