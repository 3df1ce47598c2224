//! Label and field selectors.

use serde_json::Value;

use crate::answer::Refusal;

/// Which objects a list or a watch has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<Requirement>,
}

#[derive(Clone, Debug)]
struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Clone, Debug)]
enum Operator {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
    GreaterThan(i64),
    LessThan(i64),
}

impl Selector {
    /// # Errors
    ///
    /// A text that is no selector, and a field that the kind cannot be selected by.
    pub(crate) fn parse(
        resource: &str,
        labels: Option<&str>,
        fields: Option<&str>,
    ) -> Result<Self, Refusal> {
        let labels = requirements(labels.unwrap_or_default())?;
        let fields = requirements(fields.unwrap_or_default())?;
        for Requirement { key, operator } in &fields {
            let is_known = ["metadata.name", "metadata.namespace"].contains(&key.as_str())
                || fields_of(resource).contains(&key.as_str());
            if !is_known || !matches!(operator, Operator::In(_) | Operator::NotIn(_)) {
                let message = format!("field label not supported: {key}");
                return Err(Refusal::bad(message));
            }
        }
        Ok(Self { labels, fields })
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        let label = |key: &str| object["metadata"]["labels"][key].as_str();
        let has_labels = self
            .labels
            .iter()
            .all(|wanted| wanted.holds(label(&wanted.key)));
        has_labels
            && self.fields.iter().all(|wanted| {
                let place = format!("/{}", wanted.key.replace('.', "/"));
                let value = object.pointer(&place).unwrap_or(&Value::Null);
                let text = match value {
                    Value::Null => String::new(),
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                wanted.holds(Some(&text))
            })
    }
}

impl Requirement {
    fn holds(&self, value: Option<&str>) -> bool {
        let has = |values: &[String]| value.is_some_and(|value| values.iter().any(|v| v == value));
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.operator {
            Operator::In(values) => has(values),
            // As in Kubernetes: also what does not have the label.
            Operator::NotIn(values) => !has(values),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan(least) => number().is_some_and(|number| number > *least),
            Operator::LessThan(most) => number().is_some_and(|number| number < *most),
        }
    }
}

/// `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`: the grammar of Kubernetes' `labels.Parse`.
fn requirements(text: &str) -> Result<Vec<Requirement>, Refusal> {
    let mut depth = 0_usize;
    let parts = text.split(|c| {
        depth = match c {
            '(' => depth + 1,
            ')' => depth.saturating_sub(1),
            _ => depth,
        };
        c == ',' && depth == 0
    });
    let parts = parts.map(str::trim).filter(|part| !part.is_empty());
    parts.map(requirement).collect()
}

fn requirement(text: &str) -> Result<Requirement, Refusal> {
    let wrong = || Refusal::bad(format!("unable to parse requirement: {text:?}"));
    let made = |key: &str, operator| {
        let key = key.trim();
        if key.is_empty() || key.contains(char::is_whitespace) {
            return Err(wrong());
        }
        let key = key.to_owned();
        Ok(Requirement { key, operator })
    };
    let one = |value: &str| vec![value.trim().to_owned()];
    let set = |values: &str| -> Result<Vec<String>, Refusal> {
        let inner = values
            .trim()
            .strip_prefix('(')
            .and_then(|rest| rest.strip_suffix(')'));
        let inner = inner.ok_or_else(wrong)?;
        Ok(inner
            .split(',')
            .map(|value| value.trim().to_owned())
            .collect())
    };
    let number = |text: &str| text.trim().parse().map_err(|_| wrong());
    if let Some((key, values)) = text.split_once(" notin ") {
        made(key, Operator::NotIn(set(values)?))
    } else if let Some((key, values)) = text.split_once(" in ") {
        made(key, Operator::In(set(values)?))
    } else if let Some((key, value)) = text.split_once("!=") {
        made(key, Operator::NotIn(one(value)))
    } else if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        made(key, Operator::In(one(value)))
    } else if let Some((key, least)) = text.split_once('>') {
        made(key, Operator::GreaterThan(number(least)?))
    } else if let Some((key, most)) = text.split_once('<') {
        made(key, Operator::LessThan(number(most)?))
    } else if let Some(key) = text.strip_prefix('!') {
        made(key, Operator::DoesNotExist)
    } else {
        made(text, Operator::Exists)
    }
}

/// The fields besides name and namespace by which a built-in kind can be selected.
fn fields_of(resource: &str) -> &'static [&'static str] {
    match resource {
        "pods" => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        "events" => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        "secrets" => &["type"],
        "namespaces" => &["status.phase"],
        "nodes" => &["spec.unschedulable"],
        "replicasets.apps" => &["status.replicas"],
        "jobs.batch" => &["status.successful"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn selects(selector: &str, labels: &Value) -> bool {
        let selector = Selector::parse("pods", Some(selector), None).unwrap();
        selector.matches(&json!({"metadata": {"labels": labels}}))
    }

    #[test]
    fn each_operator_of_a_label_selector_selects_what_kubernetes_does() {
        let web = json!({"app": "web", "size": "3"});
        for selector in [
            "app=web",
            "app==web",
            "app != db",
            "app in (db, web)",
            "app notin (db)",
            "tier!=front",
            "tier notin (front)",
            "app",
            "!tier",
            "size>2",
            "size<4,app=web",
        ] {
            assert!(selects(selector, &web), "{selector}");
        }
        for selector in [
            "app=db",
            "app!=web",
            "app in (db)",
            "app notin (web)",
            "tier",
            "!app",
        ] {
            assert!(!selects(selector, &web), "{selector}");
        }
        for selector in ["size>3", "size<3", "app=web,tier=front"] {
            assert!(!selects(selector, &web), "{selector}");
        }
    }

    #[test]
    fn what_is_no_selector_is_refused() {
        for selector in ["a in b", "a b", "=x", "a > b"] {
            assert!(
                Selector::parse("pods", Some(selector), None).is_err(),
                "{selector}"
            );
        }
        assert!(Selector::parse("pods", None, Some("spec.unknown=1")).is_err());
        assert!(Selector::parse("pods", None, Some("status.phase=Running")).is_ok());
    }
}
