//! `ductor workflow diff`: what differs between two versions, a line each.

use serde_json::Value;

use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::session::Session;
use super::workflows::DiffArguments;

/// Compares.
pub(super) async fn diff(session: &Session, arguments: &DiffArguments) -> Result<Exit, Failure> {
    let last = format!("{}:diff", arguments.slug);
    let query = [("from", arguments.from.clone()), ("to", arguments.to.clone())];
    let answer = session.client.get(&["api", "workflows", &last], &query).await?;
    let data = fields::data(&answer.value);
    let is_same = fields::truth(data, &["same"]);
    if session.show.json {
        session.show.document(&answer.text)?;
    } else if is_same {
        session.show.nothing("They are the same.")?;
    } else {
        session.show.data(&lines(data).join("\n"))?;
        session.show.data("\n")?;
    }
    Ok(if is_same { Exit::Done } else { Exit::Negative })
}

fn lines(data: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for field in fields::list(data, &["fields"]) {
        lines.push(changed("~ ", field));
    }
    let steps = data.get("steps").unwrap_or(&Value::Null);
    let names = |kind: &str| fields::list(steps, &[kind]).iter().filter_map(Value::as_str);
    lines.extend(names("removed").map(|name| format!("- step {name}")));
    lines.extend(names("added").map(|name| format!("+ step {name}")));
    for step in fields::list(steps, &["changed"]) {
        lines.push(format!(
            "~ step {}",
            fields::text(step, &["ref"]).unwrap_or_default()
        ));
        lines.extend(
            fields::list(step, &["fields"])
                .iter()
                .map(|field| changed("    ", field)),
        );
    }
    let edges = data.get("edges").unwrap_or(&Value::Null);
    for (kind, sign) in [("removed", '-'), ("added", '+')] {
        lines.extend(
            fields::list(edges, &[kind])
                .iter()
                .map(|each| format!("{sign} edge {}", edge(each))),
        );
    }
    lines
}

/// `a -> b`, and what kind of edge it is unless it is the usual one.
pub(super) fn edge(edge: &Value) -> String {
    let text = |name: &str| fields::text(edge, &[name]).unwrap_or_default();
    let kind = text("type");
    let kind = match kind.trim_start_matches("EDGE_TYPE_") {
        "" | "SUCCESS" => String::new(),
        "CONDITION" => format!(" if {}", text("condition")),
        other => format!(" ({})", other.to_ascii_lowercase()),
    };
    format!("{} -> {}{kind}", text("source_ref"), text("target_ref"))
}

fn changed(indent: &str, field: &Value) -> String {
    let value = |name: &str| {
        field
            .get(name)
            .filter(|value| !value.is_null())
            .map(ToString::to_string)
    };
    let pointer = fields::text(field, &["pointer"]).unwrap_or_default();
    match (value("before"), value("after")) {
        (Some(before), Some(after)) => format!("{indent}{pointer}: {before} -> {after}"),
        (Some(before), None) => format!("{indent}{pointer}: {before} is gone"),
        (None, after) => format!("{indent}{pointer}: {} is new", after.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_difference_is_a_line() {
        let data = json!({"fields": [{"pointer": "/title", "before": "A", "after": "B"}],
            "steps": {"added": ["mail"], "removed": ["old"], "changed": [{"ref": "make", "fields": [
                {"pointer": "/timeouts/attempt", "before": "10m", "after": "20m"},
                {"pointer": "/when", "before": null, "after": "input.go"},
                {"pointer": "/slots", "before": {"pool": "db"}, "after": null}]}]},
            "edges": {"added": [{"source_ref": "make", "target_ref": "mail", "type": "EDGE_TYPE_ALWAYS"}],
                "removed": [{"source_ref": "a", "target_ref": "b", "type": "EDGE_TYPE_CONDITION", "condition": "x > 1"}]}});
        let expected = "\
~ /title: \"A\" -> \"B\"
- step old
+ step mail
~ step make
    /timeouts/attempt: \"10m\" -> \"20m\"
    /when: \"input.go\" is new
    /slots: {\"pool\":\"db\"} is gone
- edge a -> b if x > 1
+ edge make -> mail (always)";
        assert_eq!(lines(&data).join("\n"), expected);
    }
}
