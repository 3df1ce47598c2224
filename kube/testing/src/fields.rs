//! Which manager owns which field: sets of fields, server-side apply, and what plain writes own.
//!
//! The rules are those of Kubernetes' [server-side apply] and of `structured-merge-diff`. Here is
//! no store: everything is a function of objects.
//!
//! [server-side apply]: https://kubernetes.io/docs/reference/using-api/server-side-apply/

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use serde_json::{Map, Value, json};

use crate::answer::Refusal;
use crate::kinds::{ListType, Place, Schema};

/// Elements of a path, as `fieldsV1` spells them: `f:spec`, `k:{"name":"web"}`, `v:"x"`.
type FieldPath = Vec<String>;

/// The fields that somebody owns. An item of a list that is merged by keys is a field of its own.
type FieldSet = BTreeSet<FieldPath>;

/// Who writes, and how.
#[derive(Clone, Debug)]
pub(crate) struct Manager {
    pub(crate) name: String,
    pub(crate) api_version: String,
    pub(crate) subresource: Option<String>,
    pub(crate) time: String,
}

/// An entry of `metadata.managedFields`.
#[derive(Clone, Debug)]
struct Entry {
    manager: String,
    operation: String,
    subresource: Option<String>,
    api_version: String,
    time: Value,
    fields: FieldSet,
}

impl Entry {
    fn is_of(&self, manager: &Manager, operation: &str) -> bool {
        self.manager == manager.name
            && self.operation == operation
            && self.subresource == manager.subresource
    }
}

/// Applies `wanted` to `live`.
///
/// # Errors
///
/// Another manager owns a field that `wanted` sets to another value, and `forces` is false.
pub(crate) fn apply(
    schema: &Schema,
    live: &Value,
    wanted: &Value,
    manager: &Manager,
    forces: bool,
) -> Result<Value, Refusal> {
    let mut wanted = wanted.clone();
    strip(&mut wanted);
    let new = fields_of(schema, &wanted, false);
    let mut entries = entries_of(live);
    let mut conflicts = Vec::new();
    for entry in entries
        .iter_mut()
        .filter(|entry| !entry.is_of(manager, "Apply"))
    {
        let differs = |path: &&FieldPath| value_at(live, path) != value_at(&wanted, path);
        let both: Vec<FieldPath> = new
            .intersection(&entry.fields)
            .filter(differs)
            .cloned()
            .collect();
        // A member of a list is shared; what differs are its fields.
        let both = both
            .into_iter()
            .filter(|path| !is_member(path) || is_set_member(path));
        for path in both {
            entry.fields.remove(&path);
            conflicts.push((entry.manager.clone(), path));
        }
    }
    if !conflicts.is_empty() && !forces {
        return Err(conflict_refusal(&conflicts));
    }
    let old = entries
        .iter()
        .position(|entry| entry.is_of(manager, "Apply"));
    let old = old
        .map(|index| entries.remove(index).fields)
        .unwrap_or_default();
    let mut object = live.clone();
    merge(schema.root(), &mut object, &wanted);
    let is_owned = |path: &FieldPath, entries: &[Entry]| {
        let mut owned = entries.iter().flat_map(|entry| &entry.fields).chain(&new);
        owned.any(|owned| owned.starts_with(path))
    };
    // An item before its fields, which name it.
    for path in old.difference(&new) {
        if is_owned(path, &entries) {
            continue;
        }
        remove(&mut object, path);
        // And the maps and lists that are empty now.
        for length in (1..path.len()).rev() {
            let parent = path[..length].to_vec();
            let is_empty = match value_at(&object, &parent) {
                Some(Value::Object(fields)) => fields.is_empty(),
                Some(Value::Array(items)) => items.is_empty(),
                _ => false,
            };
            if is_empty && !is_owned(&parent, &entries) {
                remove(&mut object, &parent);
            }
        }
    }
    if !new.is_empty() {
        entries.push(Entry {
            manager: manager.name.clone(),
            operation: String::from("Apply"),
            subresource: manager.subresource.clone(),
            api_version: manager.api_version.clone(),
            time: json!(manager.time),
            fields: new,
        });
    }
    write_entries(&mut object, entries);
    Ok(object)
}

/// Notes in `new` which fields a write that is no apply has taken over, from all managers of `old`.
pub(crate) fn note_update(schema: &Schema, old: &Value, new: &mut Value, manager: &Manager) {
    let mut entries = entries_of(old);
    if entries.is_empty() && old["metadata"]["uid"].is_string() {
        // Nobody has owned anything so far, which only an apply changes.
        return write_entries(new, entries);
    }
    let before = fields_of(schema, &stripped(old), true);
    let after = fields_of(schema, &stripped(new), true);
    let changed: FieldSet = after
        .iter()
        .filter(|path| !before.contains(*path) || value_at(old, path) != value_at(new, path))
        // Of what has parts they are written, and not it, unless it is new.
        .filter(|path| !(is_member(path) || has_parts(&after, path)) || !before.contains(*path))
        .cloned()
        .collect();
    for entry in &mut entries {
        let is_own = entry.is_of(manager, "Update");
        let keeps = |path: &FieldPath| after.contains(path) && (is_own || !changed.contains(path));
        entry.fields.retain(keeps);
    }
    if !changed.is_empty() {
        match entries
            .iter_mut()
            .find(|entry| entry.is_of(manager, "Update"))
        {
            Some(entry) => {
                entry.fields.extend(changed);
                entry.time = json!(manager.time);
            }
            None => entries.push(Entry {
                manager: manager.name.clone(),
                operation: String::from("Update"),
                subresource: manager.subresource.clone(),
                api_version: manager.api_version.clone(),
                time: json!(manager.time),
                fields: changed,
            }),
        }
    }
    write_entries(new, entries);
}

fn conflict_refusal(conflicts: &[(String, FieldPath)]) -> Refusal {
    let each: Vec<String> = conflicts
        .iter()
        .map(|(manager, path)| format!("conflict with {manager:?}: {}", shown(path)))
        .collect();
    let causes: Vec<Value> = conflicts
        .iter()
        .map(|(manager, path)| {
            json!({
                "reason": "FieldManagerConflict", "field": shown(path),
                "message": format!("conflict with {manager:?}"),
            })
        })
        .collect();
    let count = conflicts.len();
    let message = format!("Apply failed with {count} conflict(s): {}", each.join(", "));
    let mut refusal = Refusal::new(409, "Conflict", message);
    refusal.details = json!({"causes": causes});
    refusal
}

fn shown(path: &FieldPath) -> String {
    let words = path.iter().map(|element| match element.split_once(':') {
        Some(("f", name)) => format!(".{name}"),
        Some(("k", keys)) => match serde_json::from_str(keys) {
            Ok(Value::Object(keys)) => {
                let keys = keys.iter().map(|(name, value)| format!("{name}={value}"));
                format!("[{}]", keys.collect::<Vec<_>>().join(","))
            }
            _ => format!("[{keys}]"),
        },
        Some((_, item)) => format!("[={item}]"),
        None => String::new(),
    });
    words.collect()
}

/// What nobody owns: the identity of an object, and what the server writes.
fn strip(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    fields.remove("apiVersion");
    fields.remove("kind");
    if let Some(meta) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        for name in SERVERS {
            meta.remove(name);
        }
        if meta.is_empty() {
            fields.remove("metadata");
        }
    }
}

fn stripped(object: &Value) -> Value {
    let mut object = object.clone();
    strip(&mut object);
    object
}

const SERVERS: [&str; 10] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
];

/// The fields of an object, and on demand what they are parts of. Walks with a stack of its own: an
/// object may be as deep as it likes.
fn fields_of(schema: &Schema, object: &Value, with_wholes: bool) -> FieldSet {
    let mut fields = FieldSet::new();
    let mut todo = vec![(schema.root(), FieldPath::new(), object)];
    while let Some((place, path, value)) = todo.pop() {
        let has_wholes = with_wholes && !path.is_empty();
        if has_wholes && !is_always_there(schema, &path) {
            fields.insert(path.clone());
        }
        match value {
            Value::Object(map) if !map.is_empty() && !place.is_atomic_map() => {
                for (name, value) in map {
                    let mut path = path.clone();
                    path.push(format!("f:{name}"));
                    todo.push((place.field(name), path, value));
                }
            }
            Value::Array(items) if place.list_type() != ListType::Atomic => {
                for item in items {
                    let Some(element) = element_of(place, item) else {
                        continue;
                    };
                    let mut path = path.clone();
                    path.push(element);
                    fields.insert(path.clone());
                    if item.is_object() {
                        todo.push((place.item(), path, item));
                    }
                }
            }
            _ if path.is_empty() => {}
            _ => {
                fields.insert(path);
            }
        }
    }
    fields
}

/// What an object has from the first, so that nobody can add it.
fn is_always_there(schema: &Schema, path: &FieldPath) -> bool {
    match path.as_slice() {
        [field] => match field.as_str() {
            "f:metadata" => true,
            "f:spec" | "f:status" => matches!(schema, Schema::BuiltIn),
            _ => false,
        },
        _ => false,
    }
}

/// How a path names an item of a list.
fn element_of(place: Place<'_>, item: &Value) -> Option<String> {
    match place.list_type() {
        ListType::Atomic => None,
        ListType::Set => Some(format!("v:{item}")),
        ListType::Map(keys) => {
            let key = |name: &String| {
                let value = item.get(name).cloned();
                let value = value.or_else(|| place.default_of_key(name))?;
                Some((name.clone(), value))
            };
            let keys: Map<String, Value> = keys.iter().filter_map(key).collect();
            Some(format!("k:{}", Value::Object(keys)))
        }
    }
}

fn has_parts(fields: &FieldSet, path: &FieldPath) -> bool {
    let mut later = fields.range((Bound::Excluded(path.clone()), Bound::Unbounded));
    later.next().is_some_and(|next| next.starts_with(path))
}

fn is_member(path: &FieldPath) -> bool {
    path.last().is_some_and(|last| !last.starts_with("f:"))
}

fn is_set_member(path: &FieldPath) -> bool {
    path.last().is_some_and(|last| last.starts_with("v:"))
}

fn is_named(item: &Value, element: &str) -> bool {
    match element.split_once(':') {
        Some(("v", value)) => serde_json::from_str(value).is_ok_and(|value: Value| *item == value),
        Some(("k", keys)) => match serde_json::from_str::<Value>(keys) {
            Ok(Value::Object(keys)) => keys.iter().all(|(name, value)| match item.get(name) {
                Some(own) => own == value,
                // Of all keys only `protocol` has a default.
                None => name == "protocol" && value == "TCP",
            }),
            _ => false,
        },
        _ => false,
    }
}

fn value_at<'v>(object: &'v Value, path: &FieldPath) -> Option<&'v Value> {
    path.iter()
        .try_fold(object, |value, element| match element.strip_prefix("f:") {
            Some(name) => value.get(name),
            None => value
                .as_array()?
                .iter()
                .find(|item| is_named(item, element)),
        })
}

fn remove(object: &mut Value, path: &FieldPath) {
    let Some((last, parents)) = path.split_last() else {
        return;
    };
    let parent =
        parents
            .iter()
            .try_fold(object, |value, element| match element.strip_prefix("f:") {
                Some(name) => value.get_mut(name),
                None => value
                    .as_array_mut()?
                    .iter_mut()
                    .find(|item| is_named(item, element)),
            });
    match (parent, last.strip_prefix("f:")) {
        (Some(Value::Object(fields)), Some(name)) => {
            fields.remove(name);
        }
        (Some(Value::Array(items)), None) => items.retain(|item| !is_named(item, last)),
        _ => {}
    }
}

/// Writes what `wanted` has over `live`, lists by their keys.
fn merge(place: Place<'_>, live: &mut Value, wanted: &Value) {
    let mut todo = vec![(place, live, wanted)];
    while let Some((place, live, wanted)) = todo.pop() {
        let is_merged = match wanted {
            Value::Object(_) => live.is_object() && !place.is_atomic_map(),
            Value::Array(_) => live.is_array() && place.list_type() != ListType::Atomic,
            _ => false,
        };
        if !is_merged {
            live.clone_from(wanted);
            continue;
        }
        match (live, wanted) {
            (Value::Object(live), Value::Object(wanted)) => {
                for name in wanted.keys() {
                    if !live.contains_key(name) {
                        live.insert(name.clone(), Value::Null);
                    }
                }
                for (name, live) in live {
                    if let Some((name, wanted)) = wanted.get_key_value(name) {
                        todo.push((place.field(name), live, wanted));
                    }
                }
            }
            (Value::Array(live), Value::Array(wanted)) => {
                let named: Vec<(String, &Value)> = wanted
                    .iter()
                    .filter_map(|item| Some((element_of(place, item)?, item)))
                    .collect();
                for (element, item) in &named {
                    if !live.iter().any(|own| is_named(own, element)) {
                        live.push((*item).clone());
                    }
                }
                for own in live {
                    if let Some((_, item)) =
                        named.iter().find(|(element, _)| is_named(own, element))
                    {
                        todo.push((place.item(), own, item));
                    }
                }
            }
            _ => {}
        }
    }
}

fn entries_of(object: &Value) -> Vec<Entry> {
    let entries = object["metadata"]["managedFields"].as_array();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entry = |entry: &Value| Entry {
        manager: text(&entry["manager"]),
        operation: text(&entry["operation"]),
        subresource: entry["subresource"].as_str().map(str::to_owned),
        api_version: text(&entry["apiVersion"]),
        time: entry["time"].clone(),
        fields: fields_from_v1(&entry["fieldsV1"]),
    };
    entries.into_iter().flatten().map(entry).collect()
}

fn write_entries(object: &mut Value, entries: Vec<Entry>) {
    let entries = entries.into_iter().filter(|entry| !entry.fields.is_empty());
    let entries = entries.map(|entry| {
        let mut value = json!({
            "manager": entry.manager, "operation": entry.operation, "time": entry.time,
            "apiVersion": entry.api_version, "fieldsType": "FieldsV1",
            "fieldsV1": fields_to_v1(&entry.fields),
        });
        if let Some(subresource) = entry.subresource {
            value["subresource"] = json!(subresource);
        }
        value
    });
    let entries: Vec<Value> = entries.collect();
    if !entries.is_empty() {
        object["metadata"]["managedFields"] = Value::Array(entries);
    } else if let Some(meta) = object["metadata"].as_object_mut() {
        meta.remove("managedFields");
    }
}

/// Returns where a list has an item that cannot be told from another one, as `spec.ports[1]`: it is
/// there twice, or lacks a key.
pub(crate) fn find_ambiguous(schema: &Schema, object: &Value) -> Option<String> {
    let mut todo = vec![(schema.root(), String::new(), object)];
    while let Some((place, path, value)) = todo.pop() {
        match value {
            Value::Object(map) => {
                for (name, value) in map {
                    todo.push((place.field(name), format!("{path}.{name}"), value));
                }
            }
            Value::Array(items) => {
                let keys = match place.list_type() {
                    ListType::Map(keys) => keys,
                    ListType::Set | ListType::Atomic => Vec::new(),
                };
                let mut seen = BTreeSet::new();
                for (index, item) in items.iter().enumerate() {
                    let path = format!("{path}[{index}]");
                    let has = |key: &String| {
                        item.get(key).is_some() || place.default_of_key(key).is_some()
                    };
                    let is_new = element_of(place, item).is_none_or(|name| seen.insert(name));
                    if !is_new || !keys.iter().all(has) {
                        return Some(path.trim_start_matches('.').to_owned());
                    }
                    todo.push((place.item(), path, item));
                }
            }
            _ => {}
        }
    }
    None
}

fn fields_to_v1(fields: &FieldSet) -> Value {
    let mut root = json!({});
    for path in fields {
        let node = path
            .iter()
            .fold(&mut root, |node, element| &mut node[element.as_str()]);
        if node.is_null() {
            *node = json!({});
        }
        if has_parts(fields, path) {
            node["."] = json!({});
        }
    }
    root
}

fn fields_from_v1(root: &Value) -> FieldSet {
    let mut fields = FieldSet::new();
    let mut todo = vec![(FieldPath::new(), root)];
    while let Some((path, node)) = todo.pop() {
        let children: BTreeMap<&String, &Value> = node.as_object().into_iter().flatten().collect();
        if !path.is_empty() && (children.is_empty() || node.get(".").is_some()) {
            fields.insert(path.clone());
        }
        for (element, child) in children.into_iter().filter(|(element, _)| *element != ".") {
            let mut path = path.clone();
            path.push(element.clone());
            todo.push((path, child));
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manager(name: &str) -> Manager {
        Manager {
            name: name.to_owned(),
            api_version: "apps/v1".to_owned(),
            subresource: None,
            time: "2026-01-01T00:00:00Z".to_owned(),
        }
    }

    fn applied(live: &Value, wanted: &Value, by: &str) -> Result<Value, Refusal> {
        apply(&Schema::BuiltIn, live, wanted, &manager(by), false)
    }

    fn deployment(image: &str) -> Value {
        json!({"metadata": {"name": "web"}, "spec": {"replicas": 2, "template": {"spec": {
            "containers": [{"name": "server", "image": image, "ports": [{"containerPort": 80}]}],
        }}}})
    }

    #[test]
    fn a_field_that_is_no_longer_applied_is_removed_if_nobody_else_owns_it() {
        let live = applied(
            &json!({"metadata": {"name": "web"}}),
            &deployment("a"),
            "one",
        )
        .unwrap();
        let mut less = deployment("a");
        less["spec"].as_object_mut().unwrap().remove("replicas");
        let shared = applied(&live, &json!({"spec": {"replicas": 2}}), "two").unwrap();
        let kept = applied(&shared, &less, "one").unwrap();
        assert_eq!(kept["spec"]["replicas"], 2, "two owns it, too");
        let gone = applied(&live, &less, "one").unwrap();
        assert!(gone["spec"].get("replicas").is_none(), "{gone}");
    }

    #[test]
    fn another_managers_value_is_a_conflict_unless_forced() {
        let live = applied(&json!({}), &deployment("a"), "one").unwrap();
        let same = applied(&live, &deployment("a"), "two");
        assert!(same.is_ok(), "the same value is shared");
        let refused = applied(&live, &deployment("b"), "two").unwrap_err();
        assert_eq!(refused.code, 409);
        assert!(refused.message.contains("one"), "{}", refused.message);
        assert!(refused.message.contains(".image"), "{}", refused.message);
        let forced = apply(
            &Schema::BuiltIn,
            &live,
            &deployment("b"),
            &manager("two"),
            true,
        )
        .unwrap();
        let image = &forced["spec"]["template"]["spec"]["containers"][0]["image"];
        assert_eq!(image, "b");
        let again = applied(&forced, &deployment("a"), "one").unwrap_err();
        assert_eq!(again.code, 409, "two owns it now");
    }

    #[test]
    fn items_of_lists_are_merged_by_their_keys_and_leave_with_their_owner() {
        let live = applied(&json!({}), &deployment("a"), "one").unwrap();
        let side = json!({"spec": {"template": {"spec": {"containers": [
            {"name": "sidecar", "image": "s"},
        ]}}}});
        let both = applied(&live, &side, "mesh").unwrap();
        let containers = &both["spec"]["template"]["spec"]["containers"];
        assert_eq!(containers.as_array().unwrap().len(), 2);
        let without = applied(&both, &json!({"spec": {"replicas": 2}}), "mesh").unwrap();
        let containers = &without["spec"]["template"]["spec"]["containers"];
        assert_eq!(containers.as_array().unwrap().len(), 1, "{containers}");
        assert_eq!(containers[0]["name"], "server");
    }

    #[test]
    fn a_plain_write_takes_over_what_it_changes() {
        let live = applied(&json!({}), &deployment("a"), "one").unwrap();
        let mut edited = live.clone();
        edited["spec"]["replicas"] = json!(5);
        note_update(&Schema::BuiltIn, &live, &mut edited, &manager("kubectl"));
        let refused = applied(&edited, &deployment("a"), "one").unwrap_err();
        assert!(refused.message.contains("kubectl"), "{}", refused.message);
        let mut rest = deployment("a");
        rest["spec"].as_object_mut().unwrap().remove("replicas");
        let kept = applied(&edited, &rest, "one").unwrap();
        assert_eq!(kept["spec"]["replicas"], 5, "it is kubectl's");
    }

    #[test]
    fn fields_survive_their_spelling() {
        let fields = fields_of(&Schema::BuiltIn, &deployment("a"), true);
        assert!(!fields.is_empty());
        let spelled = fields_to_v1(&stripped_fields(&fields));
        assert_eq!(fields_from_v1(&spelled), stripped_fields(&fields));
    }

    fn stripped_fields(fields: &FieldSet) -> FieldSet {
        fields
            .iter()
            .filter(|path| path.first().is_some_and(|f| f == "f:spec"))
            .cloned()
            .collect()
    }
}
