//! What each request does to the store: the verbs of the API.

use std::sync::Arc;

use json_patch::PatchOperation;
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use crate::answer::{Answer, Refusal};
use crate::fields::{self, Manager};
use crate::kinds::{Kind, ListType, Place, Scale, Schema, resource_name};
use crate::request::{Asked, Verb};
use crate::schema::admit;
use crate::selector::Selector;
use crate::store::{Deletion, Key, Store, drop_empty_metadata};

/// Carries out a request that is no watch and no discovery.
///
/// # Errors
///
/// As the real server's, and [`Refusal::unsupported`] for what this one does not do.
pub(crate) fn carry_out(store: &mut Store, asked: &Asked, body: &[u8]) -> Answer {
    let kind = kind_of(store, asked)?;
    check_options(asked)?;
    carry_out_of(store, asked, &kind, body).map_err(|mut refusal| {
        // What is wrong with an object is told of its kind.
        let field = &refusal.details["causes"][0]["field"];
        let is_invalid = refusal.code == 422 && field.is_string() && field != "patch";
        if is_invalid && refusal.details["kind"].is_null() {
            let in_body = || {
                json_of(body).ok()?["metadata"]["name"]
                    .as_str()
                    .map(str::to_owned)
            };
            let name = asked.name.clone().or_else(in_body);
            refusal = refusal.about(
                &resource_name(&kind.kind, &kind.group),
                &name.unwrap_or_default(),
            );
        }
        refusal
    })
}

/// # Errors
///
/// An option that the real server refuses before it looks at the object.
fn check_options(asked: &Asked) -> Result<(), Refusal> {
    let (has_manager, forces) = (
        asked.query.get("fieldManager").is_some(),
        asked.query.get("force").is_some(),
    );
    let (field, why) = match asked.query.get("dryRun") {
        Some(value) if value != "All" => ("dryRun", "NotSupported"),
        _ if asked.applies() && !has_manager => ("fieldManager", "Required"),
        _ if forces && asked.verb == Verb::Patch && !asked.applies() => ("force", "Forbidden"),
        _ => return Ok(()),
    };
    let kind = match asked.verb {
        Verb::Create => "CreateOptions",
        Verb::Update => "UpdateOptions",
        Verb::Delete | Verb::DeleteCollection => "DeleteOptions",
        _ => "PatchOptions",
    };
    let mut refusal = Refusal::field(field, why, "the option cannot be used like this");
    refusal.details["group"] = json!("meta.k8s.io");
    refusal.details["kind"] = json!(kind);
    Err(refusal)
}

fn carry_out_of(store: &mut Store, asked: &Asked, kind: &Kind, body: &[u8]) -> Answer {
    match asked.subresource.as_deref() {
        None => {}
        Some("status") if kind.has_status => {}
        Some("scale") if kind.scale.is_some() => {}
        Some("status" | "scale") => return Err(no_resource(asked)),
        Some(name) => {
            let line = &asked.line;
            return Err(Refusal::unsupported(&format!(
                "{line} (subresource `{name}`)"
            )));
        }
    }
    // A dry run is carried out on a copy.
    let mut copy;
    let deletion = deletion(asked, body)?;
    let is_dry = asked.is_dry_run() || deletion.as_ref().is_some_and(|(_, is_dry)| *is_dry);
    let store = if is_dry {
        copy = store.clone();
        &mut copy
    } else {
        store
    };
    if let (Some("scale"), Some(paths)) = (asked.subresource.as_deref(), &kind.scale) {
        return scale(store, asked, kind, paths, body);
    }
    match asked.verb {
        Verb::Get => {
            let key = key_of(asked, kind)?;
            let object = store.find(&key).map(|object| (**object).clone());
            Ok((200, object.ok_or_else(|| missing(&key))?))
        }
        Verb::List => list(store, asked, kind),
        Verb::Create => create(store, asked, kind, json_of(body)?),
        Verb::Update => update(store, asked, kind, json_of(body)?),
        Verb::Patch => patch(store, asked, kind, body),
        Verb::Delete => {
            let key = key_of(asked, kind)?;
            let deletion = deletion.map(|(deletion, _)| deletion).unwrap_or_default();
            let deleted = store.delete(&key, &deletion);
            let (object, is_gone) = deleted.map_err(|mut refusal| {
                if refusal.code == 409 {
                    refusal.details["kind"] = json!(kind.kind);
                }
                refusal
            })?;
            let mut details = Refusal::missing(&key.resource, &key.name).details;
            details["uid"] = object["metadata"]["uid"].clone();
            let answer = if is_gone {
                json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                    "details": details,
                })
            } else {
                (*object).clone()
            };
            Ok((200, answer))
        }
        Verb::DeleteCollection => {
            let (code, all) = list(store, asked, kind)?;
            let deletion = deletion.map(|(deletion, _)| deletion).unwrap_or_default();
            for object in all["items"].as_array().into_iter().flatten() {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let key = Key {
                    resource: kind.resource(),
                    namespace: text(&object["metadata"]["namespace"]),
                    name: text(&object["metadata"]["name"]),
                };
                match store.delete(&key, &deletion) {
                    Ok(_) => {}
                    // It was garbage of another one.
                    Err(refusal) if refusal.code == 404 => {}
                    Err(refusal) => return Err(refusal),
                }
            }
            Ok((code, all))
        }
        Verb::Watch | Verb::Discover => Err(Refusal::unsupported(&asked.line)),
    }
}

/// The kind that an address names.
///
/// # Errors
///
/// It is not served, or the address has a namespace that it should not have.
pub(crate) fn kind_of(store: &Store, asked: &Asked) -> Result<Kind, Refusal> {
    let kind = store.kinds.find(&asked.resource(), &asked.version);
    let kind = kind.ok_or_else(|| no_resource(asked))?;
    let needs_namespace =
        kind.is_namespaced && (asked.name.is_some() || asked.verb == Verb::Create);
    if kind.is_namespaced && needs_namespace && asked.namespace.is_none()
        || !kind.is_namespaced && asked.namespace.is_some()
    {
        return Err(no_resource(asked));
    }
    Ok(kind.clone())
}

pub(crate) fn selector_of(asked: &Asked) -> Result<Selector, Refusal> {
    let query = |name| asked.query.get(name);
    Selector::parse(
        &asked.resource(),
        query("labelSelector"),
        query("fieldSelector"),
    )
}

fn no_resource(asked: &Asked) -> Refusal {
    let message = format!(
        "the server could not find the requested resource: {} (is its CustomResourceDefinition \
         installed?)",
        asked.line
    );
    let mut refusal = Refusal::new(404, "NotFound", message);
    refusal.details = json!({});
    refusal
}

fn missing(key: &Key) -> Refusal {
    Refusal::missing(&key.resource, &key.name)
}

fn key_of(asked: &Asked, kind: &Kind) -> Result<Key, Refusal> {
    let name = asked.name.clone().ok_or_else(|| no_resource(asked))?;
    Ok(Key {
        resource: kind.resource(),
        namespace: asked.namespace.clone().unwrap_or_default(),
        name,
    })
}

pub(crate) fn json_of(body: &[u8]) -> Result<Value, Refusal> {
    serde_json::from_slice(body).map_err(|error| Refusal::bad(format!("the body: {error}")))
}

/// The options of a deletion, and whether it is a dry run.
fn deletion(asked: &Asked, body: &[u8]) -> Result<Option<(Deletion, bool)>, Refusal> {
    if !matches!(asked.verb, Verb::Delete | Verb::DeleteCollection) {
        return Ok(None);
    }
    let options = if body.is_empty() {
        Value::Null
    } else {
        json_of(body)?
    };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let in_query = asked.query.get("propagationPolicy").map(str::to_owned);
    let orphans = options["orphanDependents"] == true || asked.query.is_true("orphanDependents");
    let deletion = Deletion {
        uid: text(&options["preconditions"]["uid"]),
        version: text(&options["preconditions"]["resourceVersion"]),
        propagation: text(&options["propagationPolicy"])
            .or(in_query)
            .or(orphans.then(|| String::from("Orphan"))),
    };
    let is_dry = options["dryRun"]
        .as_array()
        .is_some_and(|all| !all.is_empty());
    Ok(Some((deletion, is_dry)))
}

/// A list is of one moment: its token names the version and where it goes on.
fn list(store: &mut Store, asked: &Asked, kind: &Kind) -> Answer {
    let limit = asked
        .query
        .number::<usize>("limit")?
        .filter(|limit| *limit > 0)
        // A list of any version comes from a cache, which knows no pages.
        .filter(|_| asked.query.get("resourceVersion") != Some("0"));
    let exact = asked.query.get("resourceVersionMatch") == Some("Exact");
    let version = asked.query.number::<u64>("resourceVersion")?;
    if version.is_some_and(|version| version > store.version) {
        let message = "Too large resource version";
        let mut refusal = Refusal::new(504, "Timeout", message.to_owned());
        refusal.details = json!({
            "causes": [{"reason": "ResourceVersionTooLarge", "message": message}],
            "retryAfterSeconds": 1,
        });
        return Err(refusal);
    }
    let (version, after) = match asked.query.get("continue") {
        None if exact => (version.unwrap_or(store.version), None),
        None => (store.version, None),
        Some(token) => {
            let (version, after) = token.split_once('/').unwrap_or((token, ""));
            let version = version
                .parse()
                .map_err(|_| Refusal::bad("continue".to_owned()))?;
            (version, Some(after.to_owned()))
        }
    };
    if version < store.compacted {
        return Err(Refusal::expired(
            "The provided continue parameter is too old",
        ));
    }
    list_at(store, asked, kind, version, limit, after)
}

/// The list of a version.
pub(crate) fn list_at(
    store: &Store,
    asked: &Asked,
    kind: &Kind,
    version: u64,
    limit: Option<usize>,
    after: Option<String>,
) -> Answer {
    let selector = selector_of(asked)?;
    let objects = store.at_version(&kind.resource(), version);
    let place = |key: &Key| format!("{}/{}", key.namespace, key.name);
    let mut items = objects.iter().filter(|(key, object)| {
        asked
            .namespace
            .as_ref()
            .is_none_or(|namespace| *namespace == key.namespace)
            && selector.matches(object)
            && after.as_ref().is_none_or(|after| place(key) > *after)
    });
    let page: Vec<_> = items.by_ref().take(limit.unwrap_or(usize::MAX)).collect();
    let rest = items.count();
    let mut meta = json!({"resourceVersion": version.to_string()});
    if let (Some((last, _)), 1..) = (page.last(), rest) {
        meta["continue"] = json!(format!("{version}/{}", place(last)));
        let selects = ["labelSelector", "fieldSelector"].map(|name| asked.query.get(name));
        if selects == [None, None] {
            meta["remainingItemCount"] = json!(rest);
        }
    }
    let mut items: Vec<Value> = page
        .into_iter()
        .map(|(_, object)| (**object).clone())
        .collect();
    if matches!(kind.schema, Schema::BuiltIn) {
        // Of built-in kinds the list alone says what they are.
        for item in items.iter_mut().filter_map(Value::as_object_mut) {
            item.remove("apiVersion");
            item.remove("kind");
        }
    }
    let list = json!({
        "kind": format!("{}List", kind.kind), "apiVersion": kind.api_version(),
        "metadata": meta, "items": items,
    });
    Ok((200, list))
}

fn create(store: &mut Store, asked: &Asked, kind: &Kind, object: Value) -> Answer {
    let mut object = object;
    check_type(kind, &object)?;
    let namespace = asked.namespace.clone().unwrap_or_default();
    name_object(store, kind, &namespace, &mut object)?;
    let key = Key {
        resource: kind.resource(),
        namespace,
        name: object["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
    };
    if kind.has_status {
        object.as_object_mut().map(|fields| fields.remove("status"));
    }
    if object["metadata"]
        .get("resourceVersion")
        .is_some_and(|version| *version != "")
    {
        let message = "resourceVersion should not be set on objects to be created";
        return Err(Refusal::new(500, "", message.to_owned()));
    }
    finish(store, asked, kind, &json!({}), &mut object)?;
    let object = store.create(kind, key, object)?;
    Ok((201, (*object).clone()))
}

fn name_object(
    store: &mut Store,
    kind: &Kind,
    namespace: &str,
    object: &mut Value,
) -> Result<(), Refusal> {
    let meta = &mut object["metadata"];
    let own = meta["namespace"].as_str().unwrap_or_default();
    if kind.is_namespaced && !own.is_empty() && own != namespace {
        let message = "the namespace of the provided object does not match the request";
        return Err(Refusal::bad(message.to_owned()));
    }
    if kind.is_namespaced {
        meta["namespace"] = json!(namespace);
    }
    let name = meta["name"].as_str().unwrap_or_default().to_owned();
    let name = match meta["generateName"].as_str() {
        Some(prefix) if name.is_empty() => {
            let prefix = prefix.to_owned();
            format!("{prefix}{}", store.next_name())
        }
        _ => name,
    };
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    let is_free = kind.group == "rbac.authorization.k8s.io";
    let fits = name.len() <= 253
        && name.chars().all(is_letter)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric());
    if name.is_empty() {
        let message = "Required value: name or generateName is required";
        return Err(Refusal::field("metadata.name", "Required", message));
    }
    if !fits && !is_free {
        let message = format!("Invalid value: {name:?}: a lowercase RFC 1123 subdomain");
        return Err(Refusal::field("metadata.name", "Invalid", &message));
    }
    object["metadata"]["name"] = json!(name);
    Ok(())
}

fn check_type(kind: &Kind, object: &Value) -> Result<(), Refusal> {
    if !object.is_object() || !object["metadata"].is_object() {
        return Err(Refusal::bad("the object has no metadata".to_owned()));
    }
    let fits = |name: &str, wanted: &str| object.get(name).is_none_or(|own| own == wanted);
    if fits("kind", &kind.kind) && fits("apiVersion", &kind.api_version()) {
        return Ok(());
    }
    let message = format!(
        "the object is a {} {}, the address is that of {} {}",
        object["apiVersion"],
        object["kind"],
        kind.api_version(),
        kind.kind
    );
    Err(Refusal::bad(message))
}

/// What every write ends with: the schema, the type, and who owns what.
fn finish(
    store: &Store,
    asked: &Asked,
    kind: &Kind,
    old: &Value,
    object: &mut Value,
) -> Result<(), Refusal> {
    object["apiVersion"] = json!(kind.api_version());
    object["kind"] = json!(kind.kind);
    if let Schema::Custom(schema) = &kind.schema {
        admit(schema, object)?;
        if let Some(field) = fields::find_ambiguous(&kind.schema, object) {
            return Err(Refusal::field(&field, "Duplicate", "Duplicate value"));
        }
    }
    if kind.resource() == "secrets" {
        encode_text(object)?;
    }
    drop_empty_metadata(object);
    if !asked.applies() {
        let manager = manager(store, asked, kind);
        fields::note_update(&kind.schema, old, object, &manager);
    }
    Ok(())
}

/// What a Secret is written as, as what it is kept as.
fn encode_text(secret: &mut Value) -> Result<(), Refusal> {
    let texts = secret
        .as_object_mut()
        .and_then(|all| all.remove("stringData"));
    for (name, text) in texts
        .as_ref()
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let bytes = ByteString(text.as_str().unwrap_or_default().into());
        let encoded = serde_json::to_value(bytes);
        secret["data"][name] = encoded.map_err(|error| Refusal::bad(error.to_string()))?;
    }
    if secret["type"].is_null() {
        secret["type"] = json!("Opaque");
    }
    Ok(())
}

fn manager(store: &Store, asked: &Asked, kind: &Kind) -> Manager {
    Manager {
        name: asked.manager(),
        api_version: kind.api_version(),
        subresource: asked.subresource.clone(),
        time: store.time(),
    }
}

fn update(store: &mut Store, asked: &Asked, kind: &Kind, object: Value) -> Answer {
    check_type(kind, &object)?;
    let key = key_of(asked, kind)?;
    check_name(&key, &object)?;
    let old = store
        .find(&key)
        .map(Arc::clone)
        .ok_or_else(|| missing(&key))?;
    let version = object["metadata"]["resourceVersion"]
        .as_str()
        .unwrap_or_default();
    let needs_version = matches!(kind.schema, Schema::Custom(_)) || kind.plural == "leases";
    if version.is_empty() && needs_version {
        let message = "Invalid value: 0x0: must be specified for an update";
        let refusal = Refusal::field("metadata.resourceVersion", "Invalid", message);
        return Err(refusal.about(&key.resource, &key.name));
    }
    replace(store, asked, kind, &key, &old, object)
}

/// Replaces an object by what a request made of it.
fn replace(
    store: &mut Store,
    asked: &Asked,
    kind: &Kind,
    key: &Key,
    old: &Arc<Value>,
    object: Value,
) -> Answer {
    let mut object = object;
    let differs = |name: &str| {
        let own = object["metadata"][name].as_str().unwrap_or_default();
        !own.is_empty() && old["metadata"][name] != own
    };
    if differs("resourceVersion") {
        let why = "the object has been modified; please apply your changes to the latest version \
                   and try again";
        return Err(Refusal::conflict(&key.resource, &key.name, why));
    }
    if differs("uid") {
        let why = "Precondition failed: UID in precondition differs";
        return Err(Refusal::conflict(&key.resource, &key.name, why));
    }
    if asked.subresource.as_deref() == Some("status") {
        let (status, managers) = (
            object["status"].take(),
            object["metadata"]["managedFields"].take(),
        );
        object = (**old).clone();
        put(&mut object, "status", status);
        put(&mut object["metadata"], "managedFields", managers);
    } else if kind.has_status {
        put(&mut object, "status", old["status"].clone());
    }
    put(&mut object["metadata"], "name", json!(key.name));
    if kind.is_namespaced {
        put(&mut object["metadata"], "namespace", json!(key.namespace));
    }
    finish(store, asked, kind, old, &mut object)?;
    let object = store.replace(kind, key, object)?;
    Ok((200, (*object).clone()))
}

/// Sets a field, or removes it if there is nothing.
fn put(object: &mut Value, name: &str, value: Value) {
    if value.is_null() {
        object.as_object_mut().map(|fields| fields.remove(name));
    } else {
        object[name] = value;
    }
}

fn patch(store: &mut Store, asked: &Asked, kind: &Kind, body: &[u8]) -> Answer {
    let key = key_of(asked, kind)?;
    if asked.applies() {
        return apply(store, asked, kind, &key, body);
    }
    let old = store
        .find(&key)
        .map(Arc::clone)
        .ok_or_else(|| missing(&key))?;
    let mut object = (*old).clone();
    change(asked, kind, &mut object, body)?;
    check_name(&key, &object)?;
    if old["metadata"]["uid"] != object["metadata"]["uid"] {
        let message = "Invalid value: field is immutable";
        return Err(Refusal::field("metadata.uid", "Invalid", message));
    }
    replace(store, asked, kind, &key, &old, object)
}

fn check_name(key: &Key, object: &Value) -> Result<(), Refusal> {
    if object["metadata"]["name"] == key.name {
        return Ok(());
    }
    let message = "the name of the object does not match the name on the URL";
    Err(Refusal::bad(message.to_owned()))
}

/// Patches an object, but for an apply.
fn change(asked: &Asked, kind: &Kind, object: &mut Value, body: &[u8]) -> Result<(), Refusal> {
    match asked.content_type.split(';').next().unwrap_or_default() {
        "application/json-patch+json" => {
            let patch: json_patch::Patch =
                serde_json::from_slice(body).map_err(|error| Refusal::bad(error.to_string()))?;
            for operation in patch.0 {
                // As the real server: what is absent passes a test for null.
                let passes = match &operation {
                    PatchOperation::Test(test) => {
                        test.value.is_null() && object.pointer(test.path.as_str()).is_none()
                    }
                    _ => false,
                };
                if !passes {
                    let done = json_patch::patch(object, &[operation]);
                    done.map_err(|error| Refusal::invalid(error.to_string()))?;
                }
            }
        }
        "application/merge-patch+json" => {
            let patch = json_of(body)?;
            if !patch.is_object() {
                return Err(Refusal::field("patch", "Invalid", "the patch is no object"));
            }
            json_patch::merge(object, &patch);
        }
        "application/strategic-merge-patch+json" if matches!(kind.schema, Schema::BuiltIn) => {
            merge_strategically(kind.schema.root(), object, &json_of(body)?, &asked.line)?;
        }
        other => {
            let message = format!("the body of the request was in an unknown format: {other}");
            return Err(Refusal::new(415, "UnsupportedMediaType", message));
        }
    }
    Ok(())
}

fn apply(store: &mut Store, asked: &Asked, kind: &Kind, key: &Key, body: &[u8]) -> Answer {
    let mut wanted = json_of(body)?;
    if wanted.is_object() && wanted["metadata"].is_null() {
        // The address names the object.
        wanted["metadata"] = json!({});
    }
    check_type(kind, &wanted)?;
    if wanted["metadata"]["name"].is_string() {
        check_name(key, &wanted)?;
    }
    if let Some(field) = fields::find_ambiguous(&kind.schema, &wanted) {
        let message = format!("failed to create typed patch object: {field}");
        return Err(Refusal::new(500, "", message));
    }
    if !wanted["metadata"]["managedFields"].is_null() {
        return Err(Refusal::bad(
            "metadata.managedFields must be nil".to_owned(),
        ));
    }
    let old = store.find(key).map(Arc::clone);
    if old.is_none() && asked.subresource.is_some() {
        return Err(missing(key));
    }
    let new = json!({"metadata": {"name": key.name}});
    let live = old.as_deref().unwrap_or(&new);
    let mut relevant = wanted.clone();
    if asked.subresource.is_some() {
        relevant = json!({"status": wanted["status"]});
    } else if kind.has_status {
        put(&mut relevant, "status", Value::Null);
    }
    let manager = manager(store, asked, kind);
    let forces = asked.query.is_true("force");
    let mut object = fields::apply(&kind.schema, live, &relevant, &manager, forces)?;
    for name in ["resourceVersion", "uid"] {
        let value = &wanted["metadata"][name];
        if value.is_string() {
            object["metadata"][name] = value.clone();
        }
    }
    match old {
        Some(old) => replace(store, asked, kind, key, &old, object),
        None if wanted["metadata"]["uid"].is_string() => {
            let why = "the object to be applied is not there, and the request names its uid";
            Err(Refusal::conflict(&key.resource, &key.name, why))
        }
        None => {
            object["metadata"]
                .as_object_mut()
                .map(|meta| meta.remove("resourceVersion"));
            create(store, asked, kind, object)
        }
    }
}

/// The replicas of an object, read and written without knowing its kind.
fn scale(store: &mut Store, asked: &Asked, kind: &Kind, paths: &Scale, body: &[u8]) -> Answer {
    let key = key_of(asked, kind)?;
    let old = store.find(&key).map(Arc::clone);
    let old = old.ok_or_else(|| {
        let mut refusal = missing(&key);
        refusal.details["kind"] = json!(format!("{}/scale", kind.plural));
        refusal
    })?;
    let mut shown = paths.show(&old);
    match asked.verb {
        Verb::Get => return Ok((200, shown)),
        Verb::Update => shown = json_of(body)?,
        Verb::Patch if !asked.applies() => change(asked, kind, &mut shown, body)?,
        _ => return Err(Refusal::unsupported(&asked.line)),
    }
    let replicas = match &shown["spec"]["replicas"] {
        Value::Null => 0,
        replicas => replicas.as_i64().unwrap_or(-1),
    };
    if replicas < 0 {
        let message = "Invalid value: must be greater than or equal to 0";
        let refusal = Refusal::field("spec.replicas", "Invalid", message);
        return Err(refusal.about("Scale.autoscaling", &key.name));
    }
    let mut object = (*old).clone();
    paths.set(&mut object, replicas);
    for name in ["resourceVersion", "uid"] {
        let value = shown["metadata"][name].take();
        put(&mut object["metadata"], name, value);
    }
    let (code, object) = replace(store, asked, kind, &key, &old, object)?;
    Ok((code, paths.show(&object)))
}

/// A strategic merge patch without directives.
///
/// # Errors
///
/// A directive.
fn merge_strategically(
    root: Place<'_>,
    object: &mut Value,
    patch: &Value,
    line: &str,
) -> Result<(), Refusal> {
    let mut todo = vec![(root, object, patch)];
    while let Some((place, live, patch)) = todo.pop() {
        match (live, patch) {
            (Value::Object(live), Value::Object(patch)) => {
                if let Some(name) = patch.keys().find(|name| name.starts_with('$')) {
                    return Err(Refusal::unsupported(&format!(
                        "{line} (directive `{name}`)"
                    )));
                }
                for (name, value) in patch {
                    if value.is_null() {
                        live.remove(name);
                    } else if !live.contains_key(name) {
                        let empty = if value.is_object() {
                            json!({})
                        } else {
                            Value::Null
                        };
                        live.insert(name.clone(), empty);
                    }
                }
                for (name, live) in live {
                    if let Some((name, patch)) = patch.get_key_value(name) {
                        todo.push((place.field(name), live, patch));
                    }
                }
            }
            (Value::Array(live), Value::Array(patch)) => match place.list_type() {
                ListType::Map(keys) => {
                    // The merge key of a strategic patch is the first of the keys of a map.
                    let Some(key) = keys.first() else { continue };
                    let is_new = |item: &&Value| !live.iter().any(|own| own[key] == item[key]);
                    let new: Vec<Value> = patch.iter().filter(is_new).cloned().collect();
                    live.splice(0..0, new);
                    for own in live {
                        if let Some(item) = patch.iter().find(|item| own[key] == item[key]) {
                            todo.push((place.item(), own, item));
                        }
                    }
                }
                ListType::Set => {
                    let is_new = |item: &&Value| !live.contains(item);
                    let new: Vec<Value> = patch.iter().filter(is_new).cloned().collect();
                    live.splice(0..0, new);
                }
                ListType::Atomic => live.clone_from(patch),
            },
            (live, patch) => *live = patch.clone(),
        }
    }
    Ok(())
}
