//! The kinds that a cluster serves: a table of the built-in ones, and what custom ones say of
//! themselves. It knows no objects.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::answer::Refusal;

/// A kind, as its address and its manifest name it.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) kind: String,
    pub(crate) is_namespaced: bool,
    /// Whether `status` is a subresource.
    pub(crate) has_status: bool,
    /// Whether `metadata.generation` counts changes of what is wanted.
    pub(crate) has_generation: bool,
    /// Where its replicas are, if it has the subresource `scale`.
    pub(crate) scale: Option<Scale>,
    pub(crate) schema: Schema,
}

impl Kind {
    /// The name of the resource: `deployments.apps`, `configmaps`.
    pub(crate) fn resource(&self) -> String {
        resource_name(&self.plural, &self.group)
    }

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// Where the replicas of a kind are, as JSON pointers.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    wanted: String,
    observed: String,
    selector: Option<String>,
}

impl Scale {
    /// An object as an `autoscaling/v1` scale.
    pub(crate) fn show(&self, object: &Value) -> Value {
        let number = |at: &str| object.pointer(at).and_then(Value::as_i64).unwrap_or(0);
        let meta = &object["metadata"];
        let mut scale = json!({
            "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {}, "spec": {},
            "status": {"replicas": number(&self.observed)},
        });
        for name in [
            "name",
            "namespace",
            "uid",
            "resourceVersion",
            "creationTimestamp",
        ] {
            if let Some(value) = meta.get(name) {
                scale["metadata"][name] = value.clone();
            }
        }
        let wanted = number(&self.wanted);
        if wanted != 0 {
            scale["spec"]["replicas"] = json!(wanted);
        }
        let selector = self.selector.as_ref().and_then(|at| object.pointer(at));
        match selector {
            Some(Value::String(text)) if !text.is_empty() => {
                scale["status"]["selector"] = json!(text);
            }
            Some(selector @ Value::Object(_)) => {
                scale["status"]["selector"] = json!(selector_text(selector));
            }
            _ => {}
        }
        scale
    }

    /// Sets how many replicas are wanted.
    pub(crate) fn set(&self, object: &mut Value, replicas: i64) {
        let mut place = object;
        for name in self.wanted.split('/').skip(1) {
            if !place.is_object() {
                *place = json!({});
            }
            place = &mut place[name];
        }
        *place = json!(replicas);
    }
}

/// A label selector as the query of a list has it.
fn selector_text(selector: &Value) -> String {
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let labels = labels.map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or("")));
    let all = selector["matchExpressions"]
        .as_array()
        .into_iter()
        .flatten();
    let all = all.map(|one| {
        let key = one["key"].as_str().unwrap_or_default();
        let values = one["values"].as_array().into_iter().flatten();
        let values: Vec<&str> = values.filter_map(Value::as_str).collect();
        let values = values.join(",");
        match one["operator"].as_str() {
            Some("In") => format!("{key} in ({values})"),
            Some("NotIn") => format!("{key} notin ({values})"),
            Some("DoesNotExist") => format!("!{key}"),
            _ => key.to_owned(),
        }
    });
    labels.chain(all).collect::<Vec<_>>().join(",")
}

pub(crate) fn resource_name(plural: &str, group: &str) -> String {
    if group.is_empty() {
        plural.to_owned()
    } else {
        format!("{plural}.{group}")
    }
}

/// Where it is written how the lists and maps of a kind are merged.
#[derive(Clone, Debug)]
pub(crate) enum Schema {
    /// In this file.
    BuiltIn,
    /// In the `openAPIV3Schema` of its definition.
    Custom(Value),
}

/// How a list is merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListType {
    Atomic,
    Set,
    /// By the fields that identify an item.
    Map(Vec<String>),
}

/// A place in the schema of a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'s> {
    /// In a built-in kind, or in the metadata of any: what is merged how follows from the names of
    /// the field and of the field around it.
    Named(&'s str, &'s str),
    Custom(&'s Value),
    /// The schema does not say.
    Unknown,
}

impl Schema {
    pub(crate) fn root(&self) -> Place<'_> {
        match self {
            Self::BuiltIn => Place::Named("", ""),
            Self::Custom(schema) => Place::Custom(schema),
        }
    }
}

impl<'s> Place<'s> {
    pub(crate) fn field(self, name: &'s str) -> Self {
        match self {
            Self::Named(_, parent) => Self::Named(parent, name),
            // The metadata of every kind is the same.
            Self::Custom(schema)
                if name == "metadata" && schema.get("x-requeue-root").is_some() =>
            {
                Self::Named("", "metadata")
            }
            Self::Custom(schema) => match schema.pointer("/properties").and_then(|p| p.get(name)) {
                Some(schema) => Self::Custom(schema),
                None => match schema.get("additionalProperties") {
                    Some(schema) if schema.is_object() => Self::Custom(schema),
                    _ => Self::Unknown,
                },
            },
            Self::Unknown => Self::Unknown,
        }
    }

    pub(crate) fn item(self) -> Self {
        match self {
            Self::Named(..) => self,
            Self::Custom(schema) => schema.get("items").map_or(Self::Unknown, Self::Custom),
            Self::Unknown => Self::Unknown,
        }
    }

    /// Whether a map is replaced as a whole.
    pub(crate) fn is_atomic_map(self) -> bool {
        match self {
            Self::Named(_, name) => ATOMIC_MAPS.contains(&name),
            Self::Custom(schema) => schema["x-kubernetes-map-type"] == "atomic",
            Self::Unknown => false,
        }
    }

    pub(crate) fn list_type(self) -> ListType {
        match self {
            Self::Named(parent, name) => built_in_list(parent, name),
            Self::Custom(schema) => match schema["x-kubernetes-list-type"].as_str() {
                Some("set") => ListType::Set,
                Some("map") => {
                    let keys = schema["x-kubernetes-list-map-keys"].as_array();
                    let keys = keys.into_iter().flatten();
                    let keys = keys.filter_map(|key| key.as_str().map(str::to_owned));
                    ListType::Map(keys.collect())
                }
                _ => ListType::Atomic,
            },
            Self::Unknown => ListType::Atomic,
        }
    }

    /// The value of a key that an item may leave out.
    pub(crate) fn default_of_key(self, key: &str) -> Option<Value> {
        match self {
            Self::Named(_, "ports") if key == "protocol" => Some(Value::from("TCP")),
            Self::Custom(schema) => schema
                .get("items")?
                .get("properties")?
                .get(key)?
                .get("default")
                .cloned(),
            _ => None,
        }
    }
}

/// Of the `x-kubernetes-map-type: atomic` of Kubernetes' OpenAPI document, those with a name of
/// their own.
const ATOMIC_MAPS: [&str; 14] = [
    "selector",
    "labelSelector",
    "podSelector",
    "namespaceSelector",
    "nodeSelector",
    "nodeSelectorTerms",
    "configMapKeyRef",
    "secretKeyRef",
    "fieldRef",
    "resourceFieldRef",
    "claimRef",
    "targetRef",
    "involvedObject",
    "roleRef",
];

/// Of its `x-kubernetes-list-map-keys`.
fn built_in_list(parent: &str, name: &str) -> ListType {
    let keys: &[&str] = match (parent, name) {
        ("metadata", "finalizers") => return ListType::Set,
        (_, "containers" | "initContainers" | "ephemeralContainers" | "env" | "volumes")
        | (_, "imagePullSecrets" | "secrets" | "resourceClaims" | "volumeClaimTemplates") => {
            &["name"]
        }
        ("containers" | "initContainers" | "ephemeralContainers", "ports") => {
            &["containerPort", "protocol"]
        }
        (_, "ports") => &["port", "protocol"],
        (_, "volumeMounts") => &["mountPath"],
        (_, "volumeDevices") => &["devicePath"],
        (_, "conditions") => &["type"],
        (_, "ownerReferences") => &["uid"],
        (_, "hostAliases" | "podIPs" | "hostIPs") => &["ip"],
        (_, "topologySpreadConstraints") => &["topologyKey", "whenUnsatisfiable"],
        _ => return ListType::Atomic,
    };
    ListType::Map(keys.iter().map(|&key| key.to_owned()).collect())
}

/// Every kind of a cluster, by resource and version.
#[derive(Clone, Debug)]
pub(crate) struct Kinds(BTreeMap<(String, String), Kind>);

impl Kinds {
    pub(crate) fn built_in() -> Self {
        let kinds = BUILT_IN
            .iter()
            .map(|&(group_version, plural, kind, flags)| {
                let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
                let kind = Kind {
                    group: group.to_owned(),
                    version: version.to_owned(),
                    plural: plural.to_owned(),
                    kind: kind.to_owned(),
                    is_namespaced: flags.contains('n'),
                    has_status: flags.contains('s'),
                    has_generation: flags.contains('g'),
                    scale: flags.contains('r').then(|| Scale {
                        wanted: String::from("/spec/replicas"),
                        observed: String::from("/status/replicas"),
                        selector: Some(String::from("/spec/selector")),
                    }),
                    schema: Schema::BuiltIn,
                };
                ((kind.resource(), kind.version.clone()), kind)
            });
        Self(kinds.collect())
    }

    pub(crate) fn find(&self, resource: &str, version: &str) -> Option<&Kind> {
        self.0.get(&(resource.to_owned(), version.to_owned()))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Kind> {
        self.0.values()
    }

    /// Serves the versions of a `CustomResourceDefinition`.
    pub(crate) fn install(&mut self, definition: &Value) -> Result<(), Refusal> {
        let spec = &definition["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let versions = spec["versions"].as_array().cloned().unwrap_or_default();
        let served: Vec<Value> = versions
            .into_iter()
            .filter(|version| version["served"] == true)
            .collect();
        if served.is_empty() || spec["names"]["plural"].as_str().is_none() {
            let message = "a definition needs spec.names.plural and a version that is served";
            return Err(Refusal::invalid(message.to_owned()));
        }
        for version in served {
            let mut schema = version["schema"]["openAPIV3Schema"].clone();
            if schema.is_object() {
                schema["x-requeue-root"] = Value::Bool(true);
            }
            let scale = &version["subresources"]["scale"];
            // `.spec.replicas`, a path without indexes.
            let pointer = |name| {
                scale[name]
                    .as_str()
                    .map(|path: &str| path.replace('.', "/"))
            };
            let kind = Kind {
                group: text(&spec["group"]),
                version: text(&version["name"]),
                plural: text(&spec["names"]["plural"]),
                kind: text(&spec["names"]["kind"]),
                is_namespaced: spec["scope"] == "Namespaced",
                has_status: version["subresources"]["status"].is_object(),
                has_generation: true,
                scale: scale.is_object().then(|| Scale {
                    wanted: pointer("specReplicasPath").unwrap_or_default(),
                    observed: pointer("statusReplicasPath").unwrap_or_default(),
                    selector: pointer("labelSelectorPath"),
                }),
                schema: Schema::Custom(schema),
            };
            self.0.insert((kind.resource(), kind.version.clone()), kind);
        }
        Ok(())
    }
}

/// Group and version, plural, kind; `n` namespaced, `s` a status subresource, `g` a generation, `r`
/// replicas that are scaled.
const BUILT_IN: [(&str, &str, &str, &str); 38] = [
    ("v1", "configmaps", "ConfigMap", "n"),
    ("v1", "endpoints", "Endpoints", "n"),
    ("v1", "events", "Event", "n"),
    ("v1", "limitranges", "LimitRange", "n"),
    ("v1", "namespaces", "Namespace", "s"),
    ("v1", "nodes", "Node", "s"),
    (
        "v1",
        "persistentvolumeclaims",
        "PersistentVolumeClaim",
        "ns",
    ),
    ("v1", "persistentvolumes", "PersistentVolume", "s"),
    ("v1", "pods", "Pod", "nsg"),
    (
        "v1",
        "replicationcontrollers",
        "ReplicationController",
        "nsgr",
    ),
    ("v1", "resourcequotas", "ResourceQuota", "ns"),
    ("v1", "secrets", "Secret", "n"),
    ("v1", "serviceaccounts", "ServiceAccount", "n"),
    ("v1", "services", "Service", "ns"),
    ("apps/v1", "controllerrevisions", "ControllerRevision", "n"),
    ("apps/v1", "daemonsets", "DaemonSet", "nsg"),
    ("apps/v1", "deployments", "Deployment", "nsgr"),
    ("apps/v1", "replicasets", "ReplicaSet", "nsgr"),
    ("apps/v1", "statefulsets", "StatefulSet", "nsgr"),
    (
        "autoscaling/v2",
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        "ns",
    ),
    ("batch/v1", "cronjobs", "CronJob", "nsg"),
    ("batch/v1", "jobs", "Job", "nsg"),
    ("coordination.k8s.io/v1", "leases", "Lease", "n"),
    (
        "discovery.k8s.io/v1",
        "endpointslices",
        "EndpointSlice",
        "ng",
    ),
    ("events.k8s.io/v1", "events", "Event", "n"),
    (
        "networking.k8s.io/v1",
        "ingressclasses",
        "IngressClass",
        "g",
    ),
    ("networking.k8s.io/v1", "ingresses", "Ingress", "nsg"),
    (
        "networking.k8s.io/v1",
        "networkpolicies",
        "NetworkPolicy",
        "ng",
    ),
    (
        "policy/v1",
        "poddisruptionbudgets",
        "PodDisruptionBudget",
        "nsg",
    ),
    (
        "rbac.authorization.k8s.io/v1",
        "clusterrolebindings",
        "ClusterRoleBinding",
        "",
    ),
    (
        "rbac.authorization.k8s.io/v1",
        "clusterroles",
        "ClusterRole",
        "",
    ),
    (
        "rbac.authorization.k8s.io/v1",
        "rolebindings",
        "RoleBinding",
        "n",
    ),
    ("rbac.authorization.k8s.io/v1", "roles", "Role", "n"),
    (
        "scheduling.k8s.io/v1",
        "priorityclasses",
        "PriorityClass",
        "g",
    ),
    ("storage.k8s.io/v1", "storageclasses", "StorageClass", ""),
    (
        "storage.k8s.io/v1",
        "volumeattachments",
        "VolumeAttachment",
        "s",
    ),
    ("node.k8s.io/v1", "runtimeclasses", "RuntimeClass", ""),
    (
        "apiextensions.k8s.io/v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        "sg",
    ),
];
