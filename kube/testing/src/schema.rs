//! What the schema of a custom kind does to an object: defaults, pruning, and the checks that need
//! no language of their own.

use serde_json::Value;

use crate::answer::Refusal;

/// Fills in defaults, drops what the schema does not know, and checks the rest.
///
/// # Errors
///
/// A required field that is missing, a value of another type, or one out of its bounds.
pub(crate) fn admit(schema: &Value, object: &mut Value) -> Result<(), Refusal> {
    if !schema.is_object() {
        return Ok(());
    }
    let mut todo = vec![(String::new(), schema, object)];
    while let Some((path, schema, value)) = todo.pop() {
        if value.is_null() && schema["nullable"] == true {
            continue;
        }
        check(&path, schema, value)?;
        let keeps_unknown = schema["x-kubernetes-preserve-unknown-fields"] == true
            || schema["x-kubernetes-embedded-resource"] == true;
        match value {
            Value::Object(fields) => {
                let known = schema["properties"].as_object();
                for (name, schema) in known.into_iter().flatten() {
                    let is_null = fields.get(name).is_some_and(Value::is_null);
                    if is_null && schema["nullable"] != true {
                        fields.remove(name);
                    }
                    if !fields.contains_key(name) && !schema["default"].is_null() {
                        fields.insert(name.clone(), schema["default"].clone());
                    }
                }
                let other = schema.get("additionalProperties");
                let is_known = |name: &str| {
                    known.is_some_and(|known| known.contains_key(name))
                        || (path.is_empty() && ["apiVersion", "kind", "metadata"].contains(&name))
                };
                if other.is_none() && !keeps_unknown {
                    fields.retain(|name, _| is_known(name));
                }
                let required = schema["required"].as_array().into_iter().flatten();
                for name in required.filter_map(Value::as_str) {
                    if !fields.contains_key(name) {
                        return Err(invalid(
                            &format!("{path}.{name}"),
                            "Required",
                            "Required value",
                        ));
                    }
                }
                for (name, value) in fields {
                    if path.is_empty() && name == "metadata" {
                        continue;
                    }
                    let schema = known.and_then(|known| known.get(name)).or(other);
                    if let Some(schema) = schema.filter(|schema| schema.is_object()) {
                        todo.push((format!("{path}.{name}"), schema, value));
                    }
                }
            }
            Value::Array(items) => {
                if let Some(schema) = schema.get("items") {
                    for (index, item) in items.iter_mut().enumerate() {
                        todo.push((format!("{path}[{index}]"), schema, item));
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn check(path: &str, schema: &Value, value: &Value) -> Result<(), Refusal> {
    let is_int_or_string = schema["x-kubernetes-int-or-string"] == true;
    let fits = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        _ if is_int_or_string => value.is_i64() || value.is_u64() || value.is_string(),
        _ => true,
    };
    if !fits {
        let wanted = schema["type"].as_str().unwrap_or("integer or string");
        return Err(invalid(
            path,
            "Invalid",
            &format!("Invalid value: {value}: must be of type {wanted}"),
        ));
    }
    let values = schema["enum"].as_array();
    if values.is_some_and(|values| !values.contains(value)) {
        return Err(invalid(
            path,
            "NotSupported",
            &format!("Unsupported value: {value}"),
        ));
    }
    let size = match value {
        Value::String(text) => Some(("minLength", "maxLength", text.chars().count() as f64)),
        Value::Array(items) => Some(("minItems", "maxItems", items.len() as f64)),
        Value::Number(number) => number.as_f64().map(|number| ("minimum", "maximum", number)),
        _ => None,
    };
    let Some((least, most, size)) = size else {
        return Ok(());
    };
    let is_small = schema[least].as_f64().is_some_and(|least| size < least);
    let is_large = schema[most].as_f64().is_some_and(|most| size > most);
    if is_small || is_large {
        return Err(invalid(
            path,
            "Invalid",
            &format!("Invalid value: {value}: out of bounds"),
        ));
    }
    Ok(())
}

fn invalid(path: &str, why: &str, message: &str) -> Refusal {
    Refusal::field(path.trim_start_matches('.'), why, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({"type": "object", "required": ["spec"], "properties": {
            "spec": {"type": "object", "required": ["size"], "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 5},
                "mode": {"type": "string", "enum": ["fast", "safe"], "default": "safe"},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }},
        }})
    }

    #[test]
    fn defaults_are_filled_in_and_unknown_fields_dropped() {
        let mut object = json!({
            "metadata": {"name": "a", "anything": 1},
            "spec": {"size": 2, "typo": 1, "free": {"x": 1}}, "other": 1,
        });
        admit(&schema(), &mut object).unwrap();
        let wanted = json!({
            "metadata": {"name": "a", "anything": 1},
            "spec": {"size": 2, "mode": "safe", "free": {"x": 1}},
        });
        assert_eq!(object, wanted);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_its_field() {
        for (object, field) in [
            (json!({}), "spec"),
            (json!({"spec": {}}), "spec.size"),
            (json!({"spec": {"size": 9}}), "spec.size"),
            (json!({"spec": {"size": "2"}}), "spec.size"),
            (json!({"spec": {"size": 2, "mode": "odd"}}), "spec.mode"),
        ] {
            let refusal = admit(&schema(), &mut object.clone()).unwrap_err();
            assert!(refusal.message.starts_with(field), "{}", refusal.message);
            assert_eq!(refusal.code, 422);
        }
    }
}
