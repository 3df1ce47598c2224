//! The addresses of the Kubernetes API.

use std::collections::BTreeMap;

use http::Uri;
use serde_json::{Value, json};

/// What an address names.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    /// As `deployments.apps`.
    pub(crate) resource: String,
    pub(crate) api_version: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) query: BTreeMap<String, String>,
    /// Whether the client asked for metadata alone.
    pub(crate) metadata_only: bool,
}

impl Path {
    /// `/api/v1/…` or `/apis/GROUP/VERSION/…`, then `namespaces/NAMESPACE/` or not, then the plural
    /// and the name. A subresource is the object itself here.
    pub(crate) fn parse(uri: &Uri) -> Self {
        let mut words = uri
            .path()
            .split('/')
            .filter(|word| !word.is_empty())
            .peekable();
        let group = match words.next() {
            Some("apis") => words.next().unwrap_or_default(),
            _ => "",
        };
        let version = words.next().unwrap_or_default();
        let mut namespace = None;
        let mut plural = words.next().unwrap_or_default();
        let mut name = words.next().map(str::to_owned);
        // Namespaces are objects too.
        if plural == "namespaces" && words.peek().is_some() {
            namespace = name.take();
            plural = words.next().unwrap_or_default();
            name = words.next().map(str::to_owned);
        }
        let (resource, api_version) = if group.is_empty() {
            (plural.to_owned(), version.to_owned())
        } else {
            (format!("{plural}.{group}"), format!("{group}/{version}"))
        };
        let pairs = uri.query().unwrap_or_default().split('&');
        let query = pairs.filter_map(|pair| pair.split_once('='));
        Self {
            resource,
            api_version,
            namespace,
            name,
            query: query
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            metadata_only: false,
        }
    }

    /// Whether a list or watch of this address has the object. Of selectors it knows `label=value`.
    pub(crate) fn selects(&self, object: &Value) -> bool {
        let Some(selector) = self.query.get("labelSelector") else {
            return true;
        };
        let (label, value) = selector.split_once("%3D").unwrap();
        object["metadata"]["labels"][label.replace("%2F", "/")] == value
    }

    /// The object as the client asked for it.
    pub(crate) fn shown(&self, object: &Value) -> Value {
        if !self.metadata_only {
            return object.clone();
        }
        json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": object["metadata"],
        })
    }

    pub(crate) fn key(&self) -> (String, Option<String>, String) {
        let name = self.name.clone().unwrap_or_default();
        (self.resource.clone(), self.namespace.clone(), name)
    }
}
