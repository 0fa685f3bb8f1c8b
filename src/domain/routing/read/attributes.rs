//! Attributes: each a wrapper that names its kind (`{"string_value": "es"}`). Rules see what is inside.

use serde_json::{Map, Value, json};

use super::fields::escaped;
use crate::domain::routing::fault::Fault;
use crate::words::limits;

const KINDS: [&str; 5] = [
    "string_value",
    "number_value",
    "bool_value",
    "list_value",
    "object_value",
];

/// What attributes are: in their one wrapped form, and as rules see them.
#[derive(Debug, Default)]
pub(super) struct Attributes {
    pub(super) wrapped: Map<String, Value>,
    pub(super) plain: Map<String, Value>,
}

/// Reads the attributes of a recipient; `null` removes a key, and is none here.
pub(super) fn read(at: &str, map: &Map<String, Value>, faults: &mut Vec<Fault>) -> Attributes {
    let mut found = Attributes::default();
    if map.len() > limits::ATTRIBUTES_MAX {
        let detail = format!(
            "has {} keys, and {} are allowed",
            map.len(),
            limits::ATTRIBUTES_MAX
        );
        faults.push(Fault::new(at, "value.too_large", detail));
    }
    for (key, value) in map.iter().filter(|(_, value)| !value.is_null()) {
        let place = format!("{at}/{}", escaped(key));
        match one(value, 0) {
            Ok((wrapped, plain)) => {
                found.wrapped.insert(key.clone(), wrapped);
                found.plain.insert(key.clone(), plain);
            }
            Err((code, detail)) => faults.push(Fault::new(place, code, detail)),
        }
    }
    let bytes = Value::Object(found.wrapped.clone()).to_string().len();
    if bytes > limits::ATTRIBUTES_BYTES_MAX {
        let detail = format!(
            "has {bytes} bytes as JSON, and {} are allowed",
            limits::ATTRIBUTES_BYTES_MAX
        );
        faults.push(Fault::new(at, "value.too_large", detail));
    }
    found
}

type Wrong = (&'static str, String);

/// The wrapper in its one form, and the value in it.
fn one(value: &Value, depth: usize) -> Result<(Value, Value), Wrong> {
    let kind = |detail: String| ("value.kind", detail);
    if depth > limits::ATTRIBUTE_DEPTH_MAX {
        let detail = format!("is nested deeper than {} levels", limits::ATTRIBUTE_DEPTH_MAX);
        return Err(("value.too_large", detail));
    }
    let wrapper = value
        .as_object()
        .ok_or_else(|| kind("must be wrapped in its kind, like {\"string_value\": \"es\"}".to_owned()))?;
    if let Some(other) = wrapper.keys().find(|key| !KINDS.contains(&key.as_str())) {
        let detail = format!("`{other}` is no kind of value; there are {}", KINDS.join(", "));
        return Err(kind(detail));
    }
    let mut kinds = wrapper.iter();
    let (Some((name, inner)), None) = (kinds.next(), kinds.next()) else {
        let detail = format!("has {} kinds, and a value has exactly one", wrapper.len());
        return Err(kind(detail));
    };
    let plain = match name.as_str() {
        "string_value" => inner.as_str().map(Value::from),
        "number_value" => inner
            .as_f64()
            .filter(|number| number.is_finite())
            .map(Value::from),
        "bool_value" => inner.as_bool().map(Value::from),
        "list_value" => return list(inner, depth),
        _ => return object(inner, depth),
    };
    let plain = plain.ok_or_else(|| kind(format!("`{name}` does not hold such a value")))?;
    Ok((json!({name: inner}), plain))
}

fn list(inner: &Value, depth: usize) -> Result<(Value, Value), Wrong> {
    let bare = || {
        inner
            .as_object()
            .filter(|map| map.len() == 1)?
            .get("values")?
            .as_array()
    };
    let empty = inner.as_object().filter(|map| map.is_empty()).map(|_| Vec::new());
    let Some(items) = inner.as_array().or_else(bare).or(empty.as_ref()) else {
        let detail = "`list_value` must hold {\"values\": […]}";
        return Err(("value.kind", detail.to_owned()));
    };
    if items.len() > limits::ATTRIBUTES_MAX {
        let detail = format!(
            "a list has {} values, and {} are allowed",
            items.len(),
            limits::ATTRIBUTES_MAX
        );
        return Err(("value.too_large", detail));
    }
    let (mut wrapped, mut plain) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
    for item in items {
        let (outer, inside) = one(item, depth + 1)?;
        wrapped.push(outer);
        plain.push(inside);
    }
    Ok((json!({"list_value": {"values": wrapped}}), Value::from(plain)))
}

fn object(inner: &Value, depth: usize) -> Result<(Value, Value), Wrong> {
    let map = inner.as_object().ok_or_else(|| {
        let detail = "`object_value` must hold {\"fields\": {…}}";
        ("value.kind", detail.to_owned())
    })?;
    // A bare map may have a value of the name `fields`; then what is in it is a wrapper.
    let fields = map
        .get("fields")
        .filter(|_| map.len() == 1)
        .and_then(Value::as_object);
    let is_value = |fields: &Map<String, Value>| {
        fields.len() == 1
            && fields
                .iter()
                .all(|(key, value)| KINDS.contains(&key.as_str()) && !value.is_object())
    };
    let fields = fields.filter(|fields| !is_value(fields)).unwrap_or(map);
    if fields.len() > limits::ATTRIBUTES_MAX {
        let detail = format!(
            "an object has {} fields, and {} are allowed",
            fields.len(),
            limits::ATTRIBUTES_MAX
        );
        return Err(("value.too_large", detail));
    }
    let (mut wrapped, mut plain) = (Map::new(), Map::new());
    for (key, value) in fields {
        let (outer, inside) = one(value, depth + 1)?;
        wrapped.insert(key.clone(), outer);
        plain.insert(key.clone(), inside);
    }
    Ok((json!({"object_value": {"fields": wrapped}}), Value::from(plain)))
}
