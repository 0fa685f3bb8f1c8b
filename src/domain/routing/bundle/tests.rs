//! Bundles as pure data: what changes, what does not, and names on the way there and back.

use serde_json::{Value, json};

use super::{Action, Document, Plan, Topology, Write, plan, run};
use crate::words::time::Micros;

fn document(change: impl FnOnce(&mut Value)) -> Document {
    let mut value = json!({"apiVersion": "ductor.io/v1", "kind": "RoutingBundle", "metadata": {"name": "b"},
        "pools": [{"name": "front", "config": {"fallback": "overflow", "overflow_pool": "back"}}, {"name": "back"}],
        "recipients": [{"name": "r", "pools": ["front"], "weight": 2}],
        "rules": [{"name": "all", "expression": "true", "action": {"type": "select_pool", "pool": "front"}}],
        "traits": [{"key": "language", "type": "set", "op": "contains"}], "claim_queues": [{"name": "pond"}]});
    change(&mut value);
    Document::read(&value).unwrap_or_else(|faults| panic!("{faults:?}"))
}

/// Plans with ids that are numbers.
fn planned(before: &Topology, document: &Document, prune: bool) -> Plan {
    let mut last = u8::try_from(before.recipient_pools.len() * 16).unwrap();
    let mut fresh = || {
        last += 1;
        let mut id = [0; 16];
        id[15] = last;
        id
    };
    plan(before, document, prune, &mut fresh)
}

fn actions(plan: &Plan) -> Vec<(&str, &str, Action)> {
    plan.changes
        .iter()
        .map(|one| (one.kind, one.name.as_str(), one.action))
        .collect()
}

#[test]
fn test_48_faults_have_places_in_the_document() {
    let bad = document(|value| {
        value["pools"][0]["config"]["overflow_pool"] = json!("nowhere");
        value["pools"][1]["strategy"] = json!("no_such");
        value["recipients"][0]["pools"] = json!(["front", "gone"]);
        value["rules"][0]["expression"] = json!("nobody");
    });
    let told: Vec<(String, &str)> = planned(&Topology::default(), &bad, false)
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
    let twice = planned(&Topology::default(), &twice, false);
    assert!(
        twice.faults.iter().any(|fault| fault.code == "bundle.twice"),
        "{twice:?}"
    );
    let circle = document(|value| {
        value["pools"][0]["parent_pool"] = json!("back");
        value["pools"][1]["parent_pool"] = json!("front");
    });
    let circle = planned(&Topology::default(), &circle, false);
    let codes: Vec<&str> = circle.faults.iter().map(|fault| fault.code).collect();
    assert_eq!(codes, ["pool.too_deep", "pool.too_deep"]);
    let bad = json!({"kind": "x", "poools": [], "tests": [{}]});
    let bad = Document::read(&bad).unwrap_err();
    let told: Vec<&str> = bad.iter().map(|fault| fault.pointer.as_str()).collect();
    let expected = [
        "/poools",
        "/apiVersion",
        "/kind",
        "/metadata",
        "/tests/0/name",
        concat!("/tests/0/", "work"),
        "/tests/0/expect",
    ];
    assert_eq!(told, expected);
}

#[test]
fn test_47_a_second_plan_is_all_noop() {
    let first = planned(&Topology::default(), &document(|_| {}), false);
    assert_eq!(first.faults, vec![]);
    let expected = [
        ("claim_queue", "pond"),
        ("pool", "back"),
        ("pool", "front"),
        ("recipient", "r"),
        ("rule", "all"),
        ("trait", "language"),
    ];
    assert_eq!(
        actions(&first),
        expected.map(|(kind, name)| (kind, name, Action::Create))
    );
    assert_ne!(first.digest_current, first.digest_after);
    assert!(first.digest_after.starts_with("sha256:"));
    let again = planned(&first.after, &document(|_| {}), true);
    assert!(
        again.changes.iter().all(|one| one.action == Action::Noop),
        "{again:?}"
    );
    assert_eq!(
        (again.writes.len(), &again.digest_after),
        (0, &first.digest_after)
    );
    let exported = Document::read(&first.after.document("b")).unwrap();
    assert_eq!(planned(&first.after, &exported, true).writes, vec![]);
}

#[test]
fn test_48_what_a_bundle_no_longer_has_goes_only_when_it_is_pruned() {
    let first = planned(&Topology::default(), &document(|_| {}), false).after;
    let fewer = document(|value| {
        value["pools"] = json!([{"name": "front"}]);
        value["recipients"] = json!([{"name": "r", "pools": ["front"], "external_id": "x"}]);
        value["rules"] = json!([]);
    });
    let kept = planned(&first, &fewer, false);
    assert_eq!(kept.after.recipient_pools.len(), 2);
    let pruned = planned(&first, &fewer, true);
    let gone: Vec<_> = actions(&pruned)
        .into_iter()
        .filter(|(_, _, action)| *action == Action::Delete)
        .collect();
    assert_eq!(
        gone,
        [("pool", "back", Action::Delete), ("rule", "all", Action::Delete)]
    );
    // A recipient that had no id of its owner gets it, and is the same one.
    assert_eq!(
        pruned.after.recipients.keys().collect::<Vec<_>>(),
        first.recipients.keys().collect::<Vec<_>>()
    );
    let fields: Vec<_> = pruned
        .changes
        .iter()
        .filter(|one| one.kind == "recipient")
        .collect();
    assert_eq!(
        fields[0].fields,
        [
            ("/external_id".to_owned(), Value::Null, json!("x")),
            ("/weight".to_owned(), json!(2), Value::Null)
        ]
    );
    let last = pruned.writes.last().unwrap();
    assert!(
        matches!(last, Write::RemoveRecipientPool(_, name) if name == "back"),
        "{last:?}"
    );
    let foreign = document(|value| {
        value["metadata"]["name"] = json!("other");
        value["pools"][1]["description"] = json!("changed");
    });
    let foreign = planned(&first, &foreign, true);
    assert_eq!(foreign.conflicts.len(), 1, "{:?}", foreign.conflicts);
    assert_eq!(foreign.conflicts[0].code, "bundle.owned");
}

#[test]
fn tests_are_decided_over_what_there_would_be() {
    let work = |kind: &str| json!({"kind": kind, "attributes": {}});
    let with_tests = document(|value| {
        value["tests"] = json!([
            {"name": "good", "work": work("t"), "expect": {"pool": "front", "outcome": "assigned", "winner": "r"}},
            {"name": "bad", "work": work("t"), "expect": {"outcome": "dropped"}}]);
    });
    let plan = planned(&Topology::default(), &with_tests, false);
    let now = Micros(1_764_000_000_000_000);
    let tested = run(&plan.after, &with_tests.tests, "default", now).unwrap();
    assert_eq!(tested.iter().map(|one| one.ok).collect::<Vec<_>>(), [true, false]);
    assert!(
        tested[1]
            .detail
            .starts_with("expected outcome dropped; it was assigned"),
        "{tested:?}"
    );
    let unfit = document(|value| {
        value["tests"] = json!([{"name": "n", "work": {"kind": 5}, "expect": {"outcome": "assigned"}}]);
    });
    let faults = run(&plan.after, &unfit.tests, "default", now).unwrap_err();
    assert!(faults[0].pointer.starts_with("/tests/0/"), "{faults:?}");
}
