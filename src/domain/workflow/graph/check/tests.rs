//! What is said of documents whose form is good, and what no document may do.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Family, Version, World, check_input, places};
use crate::domain::workflow::graph::build::Graph;
use crate::domain::workflow::graph::judge::judge;
use crate::domain::workflow::graph::read::read;
use crate::domain::workflow::graph::read::tests::{everything, hello};
use crate::words::names::SlotPoolName;

fn world() -> World {
    let other = |deprecated| Version {
        deprecated,
        calls: Vec::new(),
    };
    let family = Family {
        newest: Some(2),
        versions: BTreeMap::from([(1, other(true)), (2, other(false))]),
    };
    World {
        slot_pools: BTreeMap::from([(SlotPoolName::new("db").unwrap(), 4)]),
        families: BTreeMap::from([
            ("other".to_owned(), family),
            ("draft".to_owned(), Family::default()),
        ]),
        names: BTreeSet::from(["other".to_owned(), "draft".to_owned()]),
    }
}

fn said_in(posted: &Value, world: &World) -> String {
    let judged = judge(posted, world);
    assert_eq!(judged.document.is_some(), judged.findings.is_empty());
    let lines: Vec<String> = { judged.findings.iter() }
        .map(|found| {
            assert!(posted.pointer(&found.pointer).is_some(), "{found:?}");
            format!("{} {} {}", found.pointer, found.code, found.message)
        })
        .collect();
    lines.join("\n")
}

fn said(posted: &Value) -> String {
    said_in(posted, &world())
}

#[test]
fn good_documents_are_good() {
    assert_eq!(said_in(&hello(), &World::default()), "");
    assert_eq!(said(&everything()), "");
}

fn task(name: &str) -> Value {
    json!({"ref": name, "type": "STEP_TYPE_TASK", "args": {"queue": "q"}})
}

fn with(mut step: Value, key: &str, value: Value) -> Value {
    step[key] = value;
    step
}

fn edge(source: &str, target: &str) -> Value {
    json!({"source_ref": source, "target_ref": target})
}

#[expect(clippy::needless_pass_by_value, reason = "tests write them in place")]
fn document(steps: Vec<Value>, edges: Vec<Value>) -> Value {
    json!({"family_slug": "d", "steps": steps, "edges": edges})
}

#[expect(clippy::needless_pass_by_value, reason = "tests write it in place")]
fn typed(name: &str, kind: &str, args: Value) -> Value {
    json!({"ref": name, "type": format!("STEP_TYPE_{kind}"), "args": args})
}

#[test]
fn names_and_edges() {
    let twice = document(vec![task("a"), task("a")], vec![]);
    assert_eq!(
        said(&twice),
        "/steps/1/ref workflow.duplicate_ref the step at /steps/0 has the name `a` already"
    );
    let missing = document(vec![task("fetch")], vec![edge("fetch", "fetsh")]);
    assert_eq!(
        said(&missing),
        "/edges/0/target_ref workflow.unknown_ref there is no step `fetsh`; did you mean `fetch`?"
    );
    let again = document(vec![task("a"), task("b")], vec![edge("a", "b"), edge("a", "b")]);
    assert_eq!(
        said(&again),
        "/edges/1 workflow.duplicate_edge there is such an edge from `a` to `b` already"
    );
    let scatter = typed("s", "SCATTER", json!({"items": "[1]", "body": task("inner")}));
    let across = document(vec![scatter.clone(), task("b")], vec![edge("inner", "b")]);
    assert_eq!(
        said(&across),
        "/edges/0/source_ref workflow.edge_across_bodies `inner` stands in the body of `s`; an edge joins steps of one level"
    );
    let inner_twice = document(vec![scatter, task("inner")], vec![]);
    assert_eq!(
        said(&inner_twice),
        "/steps/0/args/body/ref workflow.duplicate_ref the step at /steps/1 has the name `inner` already"
    );
}

#[test]
fn cycles_name_their_steps_in_order() {
    let steps = ["out", "c", "a", "b"].map(task).to_vec();
    let edges = vec![edge("out", "a"), edge("a", "b"), edge("b", "c"), edge("c", "a")];
    assert_eq!(
        said(&document(steps, edges)),
        "/steps/1 workflow.cycle these steps wait for each other: c -> a -> b -> c"
    );
    let own = document(vec![task("a")], vec![edge("a", "a")]);
    assert_eq!(
        said(&own),
        "/steps/0 workflow.cycle these steps wait for each other: a -> a"
    );
}

#[test]
fn steps_that_are_never_reached() {
    let end = typed("end", "SUCCEED", json!({}));
    let behind = document(
        vec![end, task("a"), task("b")],
        vec![edge("end", "a"), edge("a", "b")],
    );
    assert_eq!(
        said(&behind),
        "/steps/1 workflow.unreachable `a` is never reached: `end` ends the run\n/steps/2 workflow.unreachable `b` is never reached: neither is `a`"
    );
    let switch = typed(
        "which",
        "SWITCH",
        json!({"cases": [{"when": "true", "ref": "a"}], "default": "c"}),
    );
    let edges = vec![edge("which", "a"), edge("which", "b")];
    let unchosen = document(vec![switch, task("a"), task("b"), task("c")], edges);
    assert_eq!(
        said(&unchosen),
        "/steps/2 workflow.unreachable `b` is never reached: no case of `which` chooses it\n/steps/0/args/default workflow.case_without_edge there is no edge from `which` to `c`"
    );
}

#[test]
fn gathers_need_their_scatter() {
    let scatter = typed(
        "each",
        "SCATTER",
        json!({"items": "[1]", "body": {"steps": [task("x"), task("y")]}}),
    );
    let gather = |args: Value| typed("all", "GATHER", args);
    let of = |args: Value, edges: Vec<Value>| {
        said(&document(vec![scatter.clone(), gather(args), task("t")], edges))
    };
    let after = || vec![edge("each", "all")];
    assert_eq!(of(json!({"from": "each", "step": "x"}), after()), "");
    assert_eq!(
        of(json!({"from": "eech", "step": "x"}), after()),
        "/steps/1/args/from workflow.gather_without_scatter there is no scatter `eech`; did you mean `each`?"
    );
    assert_eq!(
        of(json!({"from": "t"}), after()),
        "/steps/1/args/from workflow.gather_without_scatter `t` is no scatter"
    );
    assert_eq!(
        of(json!({"from": "each", "step": "x"}), vec![]),
        "/steps/1/args/from workflow.gather_without_scatter no way of edges leads from `each` to `all`"
    );
    assert_eq!(
        of(json!({"from": "each"}), after()),
        "/steps/1/args workflow.gather_without_scatter the body of `each` has several last steps (x, y): say in `step` which is meant"
    );
    assert_eq!(
        of(json!({"from": "each", "step": "z"}), after()),
        "/steps/1/args/step workflow.gather_without_scatter the body of `each` has no step `z`; did you mean `x`?"
    );
    let broken = json!({"ref": "each", "type": "STEP_TYPE_SCATER"});
    let only = said(&document(vec![broken, gather(json!({"from": "each"}))], after()));
    assert_eq!(
        only,
        "/steps/0/type workflow.unknown_step_type unknown step type `STEP_TYPE_SCATER`; did you mean `STEP_TYPE_SCATTER`?",
        "nothing is said of what stands around a broken step"
    );
}

#[test]
fn slots_and_their_pools() {
    let command = || typed("a", "COMMAND", json!({"command": "true"}));
    let of = |slots: Value| said(&document(vec![with(command(), "slots", slots)], vec![]));
    assert_eq!(of(json!({"pool": "db", "slots": 4})), "");
    assert_eq!(
        of(json!({"pool": "db", "slots": 5})),
        "/steps/0/slots/slots workflow.too_many_slots asks for 5 slots, and slot pool 'db' has 4"
    );
    assert_eq!(
        of(json!({"pool": "bd"})),
        "/steps/0/slots/pool workflow.unknown_slot_pool there is no slot pool 'bd'; did you mean 'db'?"
    );
    // Slots are held by processes: nobody would hold these.
    let http = typed("a", "HTTP", json!({"url": "http://localhost/"}));
    let probe = typed("a", "SENSOR", json!({"http": {"url": "http://localhost/"}}));
    for step in [task("a"), http, probe] {
        let refused = said(&document(
            vec![with(step, "slots", json!({"pool": "db"}))],
            vec![],
        ));
        let expected =
            "/steps/0/slots workflow.not_for_this_type slots of a slot pool are held by processes, and ";
        assert!(refused.starts_with(expected), "{refused}");
    }
}

#[test]
fn sub_workflows_exist_and_end() {
    let of = |args: Value| said(&document(vec![typed("a", "SUBWORKFLOW", args)], vec![]));
    assert_eq!(of(json!({"family_slug": "other"})), "");
    assert_eq!(
        of(json!({"family_slug": "othr"})),
        "/steps/0/args/family_slug workflow.unknown_subworkflow there is no workflow `othr`; did you mean `other`?"
    );
    assert_eq!(
        of(json!({"family_slug": "draft"})),
        "/steps/0/args/family_slug workflow.unknown_subworkflow workflow `draft` has no published version that may begin; publish it first"
    );
    assert_eq!(
        of(json!({"family_slug": "other", "version": 3})),
        "/steps/0/args/version workflow.unknown_subworkflow workflow `other` has no version 3"
    );
    assert_eq!(
        of(json!({"family_slug": "other", "version": 1})),
        "/steps/0/args/version workflow.unknown_subworkflow version 1 of workflow `other` is deprecated"
    );
    assert_eq!(
        of(json!({"family_slug": "d"})),
        "/steps/0/args/family_slug workflow.recursion sub-workflows go deeper than 8 levels: d -> d -> d -> d -> d -> d -> d -> d -> d -> d"
    );
}

#[test]
fn eight_levels_of_sub_workflows_are_allowed() {
    let mut world = World::default();
    for level in 1..=9 {
        let calls = if level < 9 {
            vec![(format!("w{}", level + 1), None)]
        } else {
            Vec::new()
        };
        let version = Version {
            deprecated: false,
            calls,
        };
        let family = Family {
            newest: Some(1),
            versions: BTreeMap::from([(1, version)]),
        };
        world.families.insert(format!("w{level}"), family);
    }
    let of = |slug: &str| {
        said_in(
            &document(
                vec![typed("a", "SUBWORKFLOW", json!({"family_slug": slug}))],
                vec![],
            ),
            &world,
        )
    };
    assert_eq!(of("w2"), "");
    assert!(of("w1").contains("workflow.recursion"), "{}", of("w1"));
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table of cases")]
fn expressions_see_what_comes_before() {
    let reads =
        |name: &str, text: &str| typed(name, "DATAFLOW", json!({"operation": "merge", "merge": [text]}));
    let of = |text: &str| {
        let scatter = typed(
            "each",
            "SCATTER",
            json!({"items": "[1]", "body": reads("inner", "steps.first.output")}),
        );
        let steps = vec![task("first"), task("beside"), scatter, reads("last", text)];
        said(&document(
            steps,
            vec![edge("first", "each"), edge("each", "last")],
        ))
    };
    let at = "/steps/3/args/merge/0";
    assert_eq!(of("steps.first.output.a.b"), "");
    assert_eq!(
        of("steps['first'].status == 'x' ? steps.each.output : steps.first.error"),
        ""
    );
    assert_eq!(
        of("steps.frist.output"),
        format!("{at} workflow.unknown_step there is no step `frist`; did you mean `first`?")
    );
    assert_eq!(
        of("steps.beside.output"),
        format!(
            "{at} workflow.not_upstream no way of edges leads from `beside` to `last`, so it may not have run by then"
        )
    );
    assert_eq!(
        of("steps.last.output"),
        format!("{at} workflow.not_upstream `last` has no output yet when this is asked")
    );
    assert_eq!(
        of("steps.inner.output"),
        format!(
            "{at} workflow.not_upstream `inner` stands in the body of `each`, once for each branch; a gather collects what branches make"
        )
    );
    assert_eq!(
        of("steps.first.message"),
        format!(
            "{at} workflow.unknown_field a step has output, status and error; did you mean `steps.first.output.message`?"
        )
    );
    assert_eq!(
        of("run.ident"),
        format!("{at} workflow.unknown_field `run` has id, started_at, attempt, not `ident`")
    );
    assert_eq!(
        of("vars.region"),
        format!(
            "{at} workflow.unknown_field nothing sets `vars` yet, so it would always be empty; read `input` or the output of a step"
        )
    );
    assert!(
        of("item").starts_with(&format!("{at} expr.unknown_reference")),
        "{}",
        of("item")
    );
    assert!(
        of("1 +").starts_with(&format!("{at} expr.syntax")),
        "{}",
        of("1 +")
    );
    let inside = typed(
        "each",
        "SCATTER",
        json!({"items": "[1]", "body": reads("inner", "steps.beside.output")}),
    );
    assert_eq!(
        said(&document(vec![task("beside"), inside], vec![])),
        "/steps/1/args/body/args/merge/0 workflow.not_upstream no way of edges leads from `beside` to `each`, so it may not have run by then"
    );
}

#[test]
fn every_place_knows_its_names() {
    let mut bad = everything();
    bad["concurrency"]["key"] = json!("steps.list.output");
    bad["defaults"]["retry"]["retry_if"] = json!("eror.code == 1");
    bad["steps"][13]["args"]["template"]["a"] = json!("x {{ input.a }} {{ acc }}");
    bad["steps"][12]["args"]["assert"][0] = json!("error");
    bad["edges"][12]["condition"] = json!("steps.end.output");
    let said = said(&bad);
    let places: Vec<&str> = said.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(
        places,
        [
            "/concurrency/key",
            "/defaults/retry/retry_if",
            "/steps/12/args/assert/0",
            "/steps/13/args/template/a",
            "/edges/12/condition"
        ],
        "{said}"
    );
    bad["steps"][13]["args"]["template"]["a"] = json!("x {{ input.a");
    assert!(
        said_in(&bad, &world())
            .contains("/steps/13/args/template/a workflow.template the `{{` at byte 2 has no `}}`")
    );
}

#[test]
fn places_list_every_expression_of_a_document() {
    let document = read(&everything()).good().unwrap();
    let found = places(&document);
    let pointers: BTreeSet<&str> = found.iter().map(|place| place.pointer.as_str()).collect();
    for pointer in [
        "/concurrency/key",
        "/fairness/key",
        "/steps/0/args/map/items",
        "/steps/1/args/body/steps/0/args/url",
        "/steps/1/args/body/steps/0/args/body/a/0",
        "/steps/1/args/body/steps/1/idempotency_key",
        "/steps/1/args/body/edges/0/condition",
        "/steps/2/args/with",
        "/steps/5/when",
        "/steps/14/args/work/kind",
        "/steps/14/args/work/attributes",
        "/steps/15/args/message",
    ] {
        assert!(pointers.contains(pointer), "{pointer}");
    }
    assert!(found.iter().all(|place| !place.names.is_empty()));
}

#[test]
fn schemas_are_checked_and_so_are_inputs() {
    let mut document = hello();
    document["input_schema"] =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    assert_eq!(said(&document), "");
    let good = read(&document).good().unwrap();
    assert_eq!(check_input(&good, &json!({"n": 1})), []);
    let wrong = check_input(&good, &json!({"n": "x"}));
    assert_eq!(
        (wrong.len(), wrong[0].pointer.as_str(), wrong[0].code),
        (1, "/n", "schema")
    );
    document["input_schema"]["properties"]["n"]["type"] = json!("whole");
    assert!(
        said(&document).starts_with("/input_schema/properties/n/type workflow.schema"),
        "{}",
        said(&document)
    );
    let mut held = everything();
    held["steps"][7]["args"]["schema"] = json!({"$ref": "https://example.org/x"});
    assert!(said(&held).starts_with("/steps/7/args/schema"), "{}", said(&held));
}

#[test]
fn too_many_steps_or_bytes_are_refused() {
    let steps = |count: usize| {
        (0..count)
            .map(|index| task(&format!("s{index}")))
            .collect::<Vec<_>>()
    };
    assert_eq!(said(&document(steps(1_000), vec![])), "");
    assert_eq!(
        said(&document(steps(1_001), vec![])),
        "/steps workflow.limit the definition has 1001 steps, and 1000 are allowed"
    );
    let mut large = hello();
    large["description"] = json!("x".repeat(530_000));
    assert!(
        said(&large).starts_with(" workflow.limit the definition has 53"),
        "{}",
        said(&large)
    );
}

/// A chain of a thousand steps with edges between all neighbours up to five apart.
#[test]
fn a_large_document_is_checked_in_time() {
    let steps = (0..1_000).map(|index| task(&format!("s{index}"))).collect();
    let edges = (0..1_000_usize).flat_map(|index| {
        (index + 1..(index + 6).min(1_000))
            .map(move |target| edge(&format!("s{index}"), &format!("s{target}")))
    });
    assert_eq!(said(&document(steps, edges.collect())), "");
}

/// All places of a value, deepest first.
fn pointers(value: &Value, at: &str, out: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                pointers(field, &format!("{at}/{name}"), out);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointers(item, &format!("{at}/{index}"), out);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    out.push(at.to_owned());
}

fn odd() -> impl Strategy<Value = Value> {
    let texts = prop::sample::select(vec![
        "",
        "each",
        "list",
        "x",
        "STEP_TYPE_WAIT",
        "1 +",
        "{{",
        "9s",
        "\u{1F600}",
        "a/b~c",
    ]);
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        texts.prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([1, "a", {}])),
        Just(json!({"steps": [], "ref": "a", "": 1})),
    ]
}

/// Puts another value in the place of one, or removes it.
fn change(document: &mut Value, at: &str, value: Value, removes: bool) {
    let Some((parent, key)) = at.rsplit_once('/').filter(|_| removes) else {
        if let Some(place) = document.pointer_mut(at) {
            *place = value;
        }
        return;
    };
    let parent = document.pointer_mut(parent).unwrap();
    if let Value::Object(fields) = parent {
        fields.remove(key);
    } else if let Value::Array(items) = parent {
        items.remove(key.parse::<usize>().unwrap());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn changed_documents_are_good_or_told_why_not(changes in prop::collection::vec((any::<prop::sample::Index>(), odd(), any::<bool>()), 1..4)) {
        let mut document = everything();
        for (which, value, removes) in changes {
            let mut all = Vec::new();
            pointers(&document, "", &mut all);
            let at = which.get(&all).clone();
            change(&mut document, &at, value, removes);
        }
        let judged = judge(&document, &world());
        prop_assert_eq!(judged.document.is_some(), judged.findings.is_empty());
        for finding in &judged.findings {
            prop_assert!(!finding.message.is_empty() && finding.code.contains('.'), "{:?}", finding);
        }
        if let Some(good) = judged.document {
            // What is good for the judge is good for the engine.
            let built = Graph::build(good.clone());
            prop_assert!(built.is_ok(), "{:?}", built.err());
            let exported = serde_json::to_value(&good).unwrap();
            let again = judge(&exported, &world());
            prop_assert_eq!(again.document, Some(good), "{:?}", again.findings);
        }
    }
}
