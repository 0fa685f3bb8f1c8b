//! Bundles as pure data: what changes, what does not, and names on the way there and back.

use serde_json::{Value, json};

use super::{Action, Document, Plan, Topology, plan, yaml};

fn document(change: impl FnOnce(&mut Value)) -> Document {
    let mut value = json!({"apiVersion": "ductor.io/v1", "kind": "RoutingBundle", "metadata": {"name": "b"},
        "pools": [{"name": "front", "config": {"fallback": "overflow", "overflow_pool": "back"}}, {"name": "back"}],
        "recipients": [{"name": "r", "pools": ["front"], "weight": 2}],
        "rules": [{"name": "all", "expression": "true", "action": {"type": "select_pool", "pool": "front"}}],
        "traits": [{"key": "language", "type": "set", "op": "contains"}], "claim_queues": [{"name": "pond"}]});
    change(&mut value);
    Document::read(&value).unwrap()
}

fn actions(plan: &Plan) -> Vec<(&str, &str, Action)> {
    plan.changes.iter().map(|one| (one.kind, one.name.as_str(), one.action)).collect()
}

#[test]
fn test_48_faults_have_places_in_the_document() {
    let bad = document(|value| {
        value["pools"][0]["config"]["overflow_pool"] = json!("nowhere");
        value["pools"][1]["strategy"] = json!("no_such");
        value["recipients"][0]["pools"] = json!(["front", "gone"]);
        value["rules"][0]["expression"] = json!("nobody");
    });
    let told: Vec<(String, &str)> = plan(&Topology::default(), &bad, false)
        .faults
        .into_iter()
        .map(|fault| (fault.pointer, fault.code))
        .collect();
    let expected = [
        ("/pools/0/config/overflow_pool", "pool.not_found"),
        ("/pools/1/strategy", "strategy.unknown"),
        ("/recipients/0/pools/1", "pool.not_found"),
        ("/rules/0/expression", "rule.unknown_reference"),
    ];
    assert_eq!(told, expected.map(|(at, code)| (at.to_owned(), code)));
    let twice = document(|value| value["pools"][1]["name"] = json!("front"));
    assert_eq!(plan(&Topology::default(), &twice, false).faults[0].code, "bundle.twice");
    let bad = Document::read(&json!({"kind": "x", "poools": [], "tests": [{}]})).unwrap_err();
    assert_eq!(bad.len(), 5, "{bad:?}");
}

#[test]
fn a_first_bundle_creates_everything_in_order_of_kind_and_name() {
    let first = plan(&Topology::default(), &document(|_| {}), false);
    assert_eq!(first.faults, vec![]);
    let expected = [
        ("claim_queue", "pond"),
        ("pool", "back"),
        ("pool", "front"),
        ("recipient", "r"),
        ("rule", "all"),
        ("trait", "language"),
    ];
    assert_eq!(actions(&first), expected.map(|(kind, name)| (kind, name, Action::Create)));
    assert_ne!(first.digest_current, first.digest_after);
    assert!(first.digest_after.starts_with("sha256:"));
}

#[test]
fn yaml_is_read_as_what_was_written() {
    let value = json!({"a": [{"b": "true", "c": []}, "x: y", 1.5, null, ["z"]], "d": {}, "e-f": {"g": "multi\nline", "h": ""}});
    let text = yaml(&value);
    let read = crate::config::read_plain("b.yaml", &text).unwrap_or_else(|fault| panic!("{text}\n{fault:?}"));
    assert_eq!(read.value, value, "{text}");
}
