//! Which kinds and versions there are, for those who ask.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::answer::Refusal;
use crate::kinds::Kind;
use crate::request::Asked;
use crate::store::Store;

/// Answers `/version`, `/api`, `/apis`, and what is below them.
///
/// # Errors
///
/// The group or version is not there, or the aggregated form is asked for.
pub(crate) fn discover(store: &Store, asked: &Asked) -> Result<(u16, Value), Refusal> {
    if asked.accept.contains("as=APIGroupDiscoveryList") {
        return Err(Refusal::unsupported(&format!(
            "{} (aggregated discovery)",
            asked.line
        )));
    }
    let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for kind in store.kinds.iter() {
        groups.entry(&kind.group).or_default().insert(&kind.version);
    }
    let group = |name: &str, versions: &BTreeSet<&str>| {
        let versions: Vec<Value> = versions
            .iter()
            .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
            .collect();
        json!({
            "kind": "APIGroup", "apiVersion": "v1", "name": name,
            "preferredVersion": versions.last(), "versions": versions,
        })
    };
    let answer = match (
        asked.plural.as_str(),
        asked.group.as_str(),
        asked.version.as_str(),
    ) {
        ("version", ..) => json!({
            "major": "1", "minor": "36", "gitVersion": "v1.36.0", "gitCommit": "",
            "gitTreeState": "clean", "buildDate": "2026-01-01T00:00:00Z", "goVersion": "",
            "compiler": "", "platform": "memory",
        }),
        ("api", ..) => json!({
            "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [],
        }),
        ("apis", ..) => {
            let groups = groups.iter().filter(|(name, _)| !name.is_empty());
            let groups: Vec<Value> = groups
                .map(|(name, versions)| group(name, versions))
                .collect();
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        }
        (_, name, "") => {
            let versions = groups
                .get(name)
                .ok_or_else(|| Refusal::missing("group", name))?;
            group(name, versions)
        }
        (_, name, version) => {
            let has = |kind: &&Kind| kind.group == name && kind.version == version;
            let kinds: Vec<&Kind> = store.kinds.iter().filter(has).collect();
            if kinds.is_empty() {
                return Err(Refusal::missing("group and version", &asked.line));
            }
            let resources: Vec<Value> = kinds.iter().flat_map(|kind| resources(kind)).collect();
            json!({
                "kind": "APIResourceList", "apiVersion": "v1",
                "groupVersion": kinds[0].api_version(), "resources": resources,
            })
        }
    };
    Ok((200, answer))
}

fn resources(kind: &Kind) -> Vec<Value> {
    let entry = |name: String, verbs: &[&str]| {
        json!({
            "name": name, "singularName": kind.kind.to_lowercase(), "kind": kind.kind,
            "namespaced": kind.is_namespaced, "verbs": verbs,
        })
    };
    let verbs = [
        "create",
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "update",
        "watch",
    ];
    let mut resources = vec![entry(kind.plural.clone(), &verbs)];
    if kind.has_status {
        resources.push(entry(
            format!("{}/status", kind.plural),
            &["get", "patch", "update"],
        ));
    }
    if kind.scale.is_some() {
        let mut scale = entry(
            format!("{}/scale", kind.plural),
            &["get", "patch", "update"],
        );
        scale["kind"] = json!("Scale");
        scale["group"] = json!("autoscaling");
        scale["version"] = json!("v1");
        resources.push(scale);
    }
    resources
}
