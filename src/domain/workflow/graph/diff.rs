//! What differs between two documents: steps by their names, edges, and the rest.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::finding::below;

/// What differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diff {
    /// Nothing differs.
    pub same: bool,
    /// Steps, those of scatter bodies too.
    pub steps: StepsDiff,
    /// Edges, those of scatter bodies too.
    pub edges: EdgesDiff,
    /// Everything else of the document.
    pub fields: Vec<FieldDiff>,
}

/// Steps that are in one document only, or differ.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct StepsDiff {
    /// Only on the right.
    pub added: Vec<String>,
    /// Only on the left.
    pub removed: Vec<String>,
    /// In both, and not the same.
    pub changed: Vec<StepDiff>,
}

/// A step that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepDiff {
    /// Its name.
    #[serde(rename = "ref")]
    pub name: String,
    /// Where.
    pub fields: Vec<FieldDiff>,
}

/// A value that differs; null where there is none.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FieldDiff {
    /// Inside of the step, or of the document.
    pub pointer: String,
    /// On the left.
    pub before: Value,
    /// On the right.
    pub after: Value,
}

/// Edges that are in one document only. An edge of another type is another edge.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct EdgesDiff {
    /// Only on the right.
    pub added: Vec<Value>,
    /// Only on the left.
    pub removed: Vec<Value>,
}

/// A document taken apart.
#[derive(Default)]
struct Parts {
    /// In the order of the document; what is inside a body has the name of its scatter with it.
    steps: Vec<(String, Value)>,
    edges: Vec<Value>,
    rest: Value,
}

impl Parts {
    fn of(document: &Value) -> Parts {
        let mut parts = Parts {
            rest: document.clone(),
            ..Parts::default()
        };
        parts.level(document, None);
        if let Value::Object(fields) = &mut parts.rest {
            fields.retain(|name, _| name != "steps" && name != "edges");
        }
        parts
    }

    fn level(&mut self, level: &Value, inside: Option<&str>) {
        let list = |key: &str| level.get(key).and_then(Value::as_array).into_iter().flatten();
        for step in list("steps") {
            let name = step
                .get("ref")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            let mut own = step.clone();
            if let (Some(fields), Some(scatter)) = (own.as_object_mut(), inside) {
                fields.insert("inside".to_owned(), Value::from(scatter));
            }
            // Requests have a body too, which is none of steps.
            let is_scatter = step.get("type").and_then(Value::as_str) == Some("STEP_TYPE_SCATTER");
            let args = own.get_mut("args").and_then(Value::as_object_mut);
            let body = args.filter(|_| is_scatter).and_then(|args| args.remove("body"));
            self.steps.push((name.clone(), own));
            if let Some(body) = body {
                self.level(&body, Some(&name));
            }
        }
        self.edges.extend(list("edges").cloned());
    }
}

/// Compares two documents in the form in which all defaults are filled in.
pub fn diff(left: &Value, right: &Value) -> Diff {
    let (left, right) = (Parts::of(left), Parts::of(right));
    let by_name = |parts: &Parts| -> BTreeMap<String, Value> { parts.steps.iter().cloned().collect() };
    let (before, after) = (by_name(&left), by_name(&right));
    let only = |steps: &[(String, Value)], other: &BTreeMap<String, Value>| -> Vec<String> {
        let refs = steps.iter().map(|(name, _)| name);
        refs.filter(|name| !other.contains_key(*name)).cloned().collect()
    };
    let mut changed = Vec::new();
    for (name, now) in &right.steps {
        if let Some(was) = before.get(name).filter(|was| *was != now) {
            let mut fields = Vec::new();
            compare("", was, now, &mut fields);
            changed.push(StepDiff {
                name: name.clone(),
                fields,
            });
        }
    }
    let steps = StepsDiff {
        added: only(&right.steps, &before),
        removed: only(&left.steps, &after),
        changed,
    };
    let edges = EdgesDiff {
        added: missing(&right.edges, &left.edges),
        removed: missing(&left.edges, &right.edges),
    };
    let mut fields = Vec::new();
    compare("", &left.rest, &right.rest, &mut fields);
    Diff {
        same: steps == StepsDiff::default() && edges == EdgesDiff::default() && fields.is_empty(),
        steps,
        edges,
        fields,
    }
}

fn missing(edges: &[Value], among: &[Value]) -> Vec<Value> {
    let known: BTreeSet<String> = among.iter().map(Value::to_string).collect();
    edges
        .iter()
        .filter(|edge| !known.contains(&edge.to_string()))
        .cloned()
        .collect()
}

/// Objects are compared key by key; of everything else the whole value is told.
fn compare(at: &str, before: &Value, after: &Value, out: &mut Vec<FieldDiff>) {
    if let (Value::Object(was), Value::Object(now)) = (before, after) {
        let names: BTreeSet<&String> = was.keys().chain(now.keys()).collect();
        for name in names {
            let (was, now) = (
                was.get(name).unwrap_or(&Value::Null),
                now.get(name).unwrap_or(&Value::Null),
            );
            compare(&below(at, name), was, now, out);
        }
    } else if before != after {
        out.push(FieldDiff {
            pointer: at.to_owned(),
            before: before.clone(),
            after: after.clone(),
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::workflow::graph::read::read;
    use crate::domain::workflow::graph::read::tests::{everything, hello};

    fn whole(posted: &Value) -> Value {
        serde_json::to_value(read(posted).good().unwrap()).unwrap()
    }

    #[test]
    fn the_same_document_does_not_differ() {
        assert!(diff(&whole(&everything()), &whole(&everything())).same);
        let mut spelled_out = hello();
        spelled_out["steps"][0]["join"] = json!("all_success");
        assert!(
            diff(&whole(&hello()), &whole(&spelled_out)).same,
            "a default is no difference"
        );
        assert!(!diff(&json!({"a": 1}), &json!({"a": 2})).same);
    }

    #[test]
    fn what_differs_is_told_by_steps_edges_and_fields() {
        let mut other = everything();
        other["title"] = json!("other");
        other["steps"][1]["args"]["body"]["steps"][0]["args"]["method"] = json!("PUT");
        other["steps"][2]["args"]["initial"] = json!("1");
        other["steps"].as_array_mut().unwrap().remove(8);
        other["steps"]
            .as_array_mut()
            .unwrap()
            .push(json!({"ref": "new", "type": "STEP_TYPE_WAIT", "args": {"duration": "1s"}}));
        other["edges"][9]["type"] = json!("EDGE_TYPE_ALWAYS");
        let found = serde_json::to_value(diff(&whole(&everything()), &whole(&other))).unwrap();
        let edge = |kind: &str| json!([{"source_ref": "sure", "target_ref": "text", "type": kind}]);
        assert_eq!(
            found,
            json!({"same": false,
                "steps": {"added": ["new"], "removed": ["probe"], "changed": [
                    {"ref": "fetch", "fields": [{"pointer": "/args/method", "before": "POST", "after": "PUT"}]},
                    {"ref": "all", "fields": [{"pointer": "/args/initial", "before": "0", "after": "1"}]}]},
                "edges": {"added": edge("EDGE_TYPE_ALWAYS"), "removed": edge("EDGE_TYPE_SUCCESS")},
                "fields": [{"pointer": "/title", "before": "All types", "after": "other"}]})
        );
    }

    #[test]
    fn the_body_of_a_request_is_compared() {
        let mut other = everything();
        other["steps"][1]["args"]["body"]["steps"][0]["args"]["body"]["a"] = json!(2);
        let found = diff(&whole(&everything()), &whole(&other));
        assert_eq!(found.steps.changed.len(), 1, "{found:?}");
        assert_eq!(found.steps.changed[0].fields[0].pointer, "/args/body/a");
    }

    #[test]
    fn a_step_that_moves_into_a_body_has_changed() {
        let step = json!({"ref": "a", "type": "STEP_TYPE_WAIT", "args": {"duration": "1s"}});
        let outside = json!({"steps": [step]});
        let inside = json!({"steps": [{"ref": "s", "type": "STEP_TYPE_SCATTER", "args": {"items": "x", "body": {"steps": [step]}}}]});
        let found = diff(&outside, &inside);
        assert_eq!(found.steps.added, ["s"]);
        assert_eq!(found.steps.changed[0].fields[0].pointer, "/inside");
    }
}
