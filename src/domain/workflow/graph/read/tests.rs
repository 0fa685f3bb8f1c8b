//! What is read, and what is said of what cannot be.

use serde_json::{Value, json};

use super::read;
use crate::domain::workflow::definition::{CommandLine, SecretFrom};
use crate::domain::workflow::graph::document::{Document, EdgeKind};
use crate::domain::workflow::graph::kinds::{Probe, StepKind, Tolerance};
use crate::domain::workflow::graph::span::Span;

pub(in crate::domain::workflow::graph) fn hello() -> Value {
    json!({ "family_slug": "hello-world", "title": "Hello World",
      "input_schema": {"type": "object"},
      "steps": [
        {"ref": "greet", "type": "STEP_TYPE_DATAFLOW", "title": "Build greeting",
         "args": {"operation": "project", "project": {"message": "\"hello\""}}},
        {"ref": "pause", "type": "STEP_TYPE_WAIT", "title": "Short delay", "args": {"duration": "2s"}}],
      "edges": [{"source_ref": "greet", "target_ref": "pause", "type": "EDGE_TYPE_SUCCESS"}] })
}

/// A document that has everything.
pub(in crate::domain::workflow::graph) fn everything() -> Value {
    serde_json::from_str(include_str!("everything.json")).unwrap()
}

fn good(posted: &Value) -> Document {
    read(posted)
        .good()
        .unwrap_or_else(|findings| panic!("{findings:#?}"))
}

#[test]
fn hello_world_is_read_as_it_is() {
    let document = good(&hello());
    assert_eq!(document.family_slug, "hello-world");
    assert_eq!(document.steps[0].title, "Build greeting");
    assert!(document.steps[0].retry.is_none());
    assert!(matches!(&document.steps[1].kind, StepKind::Wait(wait) if wait.duration == Some(Span(2_000))));
}

#[test]
fn everything_is_read_and_its_export_is_read_as_the_same() {
    let document = good(&everything());
    let exported = serde_json::to_value(&document).unwrap();
    let again = good(&exported);
    assert_eq!(again, document);
    assert_eq!(serde_json::from_value::<Document>(exported).unwrap(), document);
}

#[test]
fn friendly_forms_and_defaults_are_filled_in() {
    let document = good(&everything());
    let step = |name: &str| {
        document
            .steps
            .iter()
            .find(|step| step.name.as_str() == name)
            .unwrap()
    };
    let StepKind::Scatter(each) = &step("each").kind else {
        panic!()
    };
    assert_eq!(each.tolerated_failures, Tolerance::Percent(10));
    assert_eq!(
        each.body.edges[0].kind,
        EdgeKind::Condition,
        "a condition says so by itself"
    );
    let fetch = &each.body.steps[0];
    let retry = fetch.retry.as_ref().unwrap();
    assert_eq!((retry.max_attempts, retry.initial_interval.0), (5, 500));
    assert_eq!(
        (retry.coefficient, retry.max_interval.0, retry.jitter),
        (2.0, 50_000, 0.1)
    );
    assert_eq!(retry.retry_if.as_deref(), Some("error.code != 'x'"));
    assert_eq!(fetch.timeouts.attempt, Some(Span(60_000)));
    let StepKind::Http(http) = &fetch.kind else {
        panic!()
    };
    assert_eq!(
        (http.expect.join(" "), http.query["n"].as_str()),
        ("200 3xx".to_owned(), "1")
    );
    let StepKind::Scatter(small) = &step("small").kind else {
        panic!()
    };
    let StepKind::Command(inner) = &small.body.steps[0].kind else {
        panic!()
    };
    assert_eq!(
        inner.command,
        CommandLine::List(vec!["echo".into(), "a".into(), "1".into()])
    );
}

#[test]
fn launch_keys_have_friendly_forms() {
    let document = good(&everything());
    let step = |name: &str| {
        document
            .steps
            .iter()
            .find(|step| step.name.as_str() == name)
            .unwrap()
    };
    let StepKind::Command(run) = &step("run").kind else {
        panic!()
    };
    assert_eq!(
        run.execution_timeout_ms,
        Some(60_000),
        "an attempt is one process"
    );
    assert_eq!(
        (run.kill_timeout_ms, run.resource_limits["memory"]),
        (10_000, 64 << 20)
    );
    assert_eq!(run.environment[1], ("N".to_owned(), "1".to_owned()));
    assert_eq!(
        (run.group.as_deref(), run.verify.as_ref().unwrap().timeout_ms),
        (Some("33"), 5_000)
    );
    assert_eq!(run.secrets[0].from, SecretFrom::File("/run/t".to_owned()));
    assert_eq!(step("run").slots.as_ref().unwrap().queue_timeout_ms, 600_000);
    let StepKind::Sensor(probe) = &step("probe").kind else {
        panic!()
    };
    assert!(
        matches!(&probe.probe, Probe::Command(step) if step.command == CommandLine::Shell("test -f /tmp/x".into()))
    );
    let StepKind::Sensor(ping) = &step("ping").kind else {
        panic!()
    };
    assert_eq!((ping.poke_interval.0, ping.poke_timeout.0), (30_000, 3_600_000));
    let bare = json!({"family_slug": "a", "steps": [{"ref": "t", "type": "STEP_TYPE_TASK", "args": {"queue": "q"}},
        {"ref": "c", "type": "STEP_TYPE_COMMAND", "args": {"command": "x"}}]});
    let bare = good(&bare);
    let attempts: Vec<u32> = { bare.steps.iter() }
        .map(|step| step.retry.as_ref().unwrap().max_attempts)
        .collect();
    assert_eq!(attempts, [3, 1]);
}

/// What is said of `posted`, one line each.
fn said(posted: &Value) -> Vec<String> {
    let findings = read(posted).findings.into_iter();
    findings
        .map(|found| format!("{} {} {}", found.pointer, found.code, found.message))
        .collect()
}

fn set(document: &mut Value, pointer: &str, value: Value) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match document.pointer_mut(parent).unwrap() {
        Value::Object(fields) => drop(fields.insert(key.to_owned(), value)),
        Value::Array(items) => items[key.parse::<usize>().unwrap()] = value,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => panic!("{pointer}"),
    }
}

/// One change of a good document, and what is said of it.
fn check(pointer: &str, value: Value, expected: &str) {
    let mut document = everything();
    set(&mut document, pointer, value);
    assert_eq!(said(&document).join("\n"), expected, "{pointer}");
}

#[test]
fn each_rule_of_the_top_has_its_sentence() {
    check(
        "/stepz",
        json!(1),
        "/stepz workflow.unknown_key unknown key `stepz`; did you mean `steps`?",
    );
    check(
        "/family_slug",
        json!("Hello World"),
        "/family_slug workflow.bad_slug `Hello World` is no name for a workflow; it must match [a-z0-9][a-z0-9-]{0,62}",
    );
    check(
        "/family_slug",
        Value::Null,
        " workflow.missing `family_slug` is missing",
    );
    check(
        "/title",
        json!("x".repeat(201)),
        "/title workflow.too_long must have at most 200 characters",
    );
    check("/title", json!(1), "/title workflow.type must be a text, not `1`");
    check(
        "/run_timeout",
        json!("2 hours"),
        "/run_timeout workflow.bad_duration `2 hours` is no duration; write it like `90s`, `1h30m` or `500ms`, at most 10 years",
    );
    check(
        "/run_timeout",
        json!(60),
        "/run_timeout workflow.type must be a duration as text, like \"90s\" or \"1h30m\", not `60`",
    );
    check(
        "/concurrency/on_limit",
        json!("quue"),
        "/concurrency/on_limit workflow.bad_value must be one of queue, skip, replace, not `quue`; did you mean `queue`?",
    );
    check(
        "/concurrency/limit",
        json!(0),
        "/concurrency/limit workflow.out_of_range must be a whole number from 1 to 100000, not `0`",
    );
}

#[test]
fn each_rule_of_edges_has_its_sentence() {
    check(
        "/triggers",
        json!([{"type": "schedule"}]),
        "/triggers workflow.unsupported 'triggers' is not supported yet",
    );
    check(
        "/edges/0/source_ref",
        json!("not a ref"),
        "/edges/0/source_ref workflow.bad_ref `not a ref` is no step name; it must match [A-Za-z_][A-Za-z0-9_-]{0,62}",
    );
    check(
        "/edges/0/type",
        json!("SUCCESS"),
        "/edges/0/type workflow.bad_value must be one of EDGE_TYPE_SUCCESS, EDGE_TYPE_FAILURE, EDGE_TYPE_ALWAYS, EDGE_TYPE_CONDITION, not `SUCCESS`",
    );
    check(
        "/edges/8/condition",
        json!("true"),
        "/edges/8/condition workflow.conflict only an edge of type EDGE_TYPE_CONDITION has a condition, not EDGE_TYPE_ALWAYS",
    );
    check(
        "/edges/10",
        json!(1),
        "/edges/10 workflow.type must be an object, not `1`",
    );
    check(
        "/defaults/retry/max_interval",
        json!("1ms"),
        "/defaults/retry workflow.conflict `max_interval` (1ms) is shorter than `initial_interval` (500ms)",
    );
    for odd in [json!([]), json!("x"), Value::Null] {
        assert_eq!(said(&odd).len(), 1, "{odd}");
        assert!(read(&odd).document.is_none());
    }
    assert_eq!(
        said(&json!({})),
        [
            " workflow.missing `family_slug` is missing",
            " workflow.missing `steps` is missing"
        ]
    );
}

#[test]
fn each_rule_of_a_step_has_its_sentence() {
    check(
        "/steps/0/type",
        json!("STEP_TYPE_DATFLOW"),
        "/steps/0/type workflow.unknown_step_type unknown step type `STEP_TYPE_DATFLOW`; did you mean `STEP_TYPE_DATAFLOW`?",
    );
    check(
        "/steps/0/type",
        json!("wait"),
        "/steps/0/type workflow.unknown_step_type unknown step type `wait`; did you mean `STEP_TYPE_WAIT`?",
    );
    for later in [
        "EVENT_SET",
        "EMIT",
        "CONTINUE_AS_NEW",
        "ACTION",
        "AI_ACTION",
        "AI_AGENT",
    ] {
        let word = format!("STEP_TYPE_{later}");
        check(
            "/steps/0/type",
            json!(word),
            &format!("/steps/0/type workflow.unsupported '{word}' is not supported yet"),
        );
    }
    check(
        "/steps/0/args/operation",
        json!("mapp"),
        "/steps/0/args/operation workflow.bad_value must be one of project, filter, map, merge, reduce, assert, template, not `mapp`; did you mean `map`?",
    );
    check(
        "/steps/0/args/filter",
        json!({}),
        "/steps/0/args/filter workflow.conflict `filter` means nothing where `operation` is `map`",
    );
    check(
        "/steps/0/args/map/with",
        json!(1),
        "/steps/0/args/map/with workflow.type an expression is a text: write \"1\"",
    );
    check(
        "/steps/0/retry",
        json!({"max_attempts": 2}),
        "/steps/0/retry workflow.not_for_this_type STEP_TYPE_DATAFLOW has no attempts, so `retry` means nothing here",
    );
    check(
        "/steps/1/args/tolerated_failures",
        json!("10"),
        "/steps/1/args/tolerated_failures workflow.bad_value \"10\" is neither a count nor a share like \"5%\"",
    );
    check(
        "/steps/1/args/body/steps/0/args/url",
        json!("ftp://x"),
        "/steps/1/args/body/steps/0/args/url workflow.bad_value `ftp://x` must begin with https:// or http://",
    );
    check(
        "/steps/1/args/body/steps/0/args/method",
        json!("GET"),
        "/steps/1/args/body/steps/0/args/body workflow.conflict a GET request has no body; say `method: \"POST\"`",
    );
    check(
        "/steps/1/args/body/steps/0/args/expect",
        json!("ok"),
        "/steps/1/args/body/steps/0/args/expect workflow.bad_value `ok` is no status; write 200 or \"2xx\"",
    );
}

#[test]
fn each_rule_of_arguments_has_its_sentence() {
    check(
        "/steps/2/args/mode",
        json!("map"),
        "/steps/2/args/initial workflow.conflict `initial` means something only where `mode` is `reduce`\n/steps/2/args/with workflow.conflict `with` means something only where `mode` is `reduce`",
    );
    check(
        "/steps/3/args/body/args/command",
        json!([]),
        "/steps/3/args/body/args/command workflow.missing the command is empty",
    );
    check(
        "/steps/3/args/body/ref",
        json!("9"),
        "/steps/3/args/body/ref workflow.bad_ref `9` is no step name; it must match [A-Za-z_][A-Za-z0-9_-]{0,62}",
    );
    check(
        "/steps/5/args/working_directory",
        json!("srv"),
        "/steps/5/args/working_directory workflow.relative_path `srv` must be an absolute path",
    );
    check(
        "/steps/5/args/resource_limits/memory",
        json!("much"),
        "/steps/5/args/resource_limits/memory workflow.bad_value `much` is no size; write it like \"64MiB\", or as a number of bytes",
    );
    check(
        "/steps/5/args/killTimeout",
        json!("1s"),
        "/steps/5/args/killTimeout workflow.unknown_key unknown key `killTimeout`; did you mean `kill_timeout`?",
    );
    check(
        "/steps/5/args/secrets/0/from_file",
        Value::Null,
        "/steps/5/args/secrets/0 workflow.missing secret 'T': give either `from_file` or `from_env_var`",
    );
    check(
        "/steps/5/slots/slots",
        json!(0),
        "/steps/5/slots/slots workflow.out_of_range must be a whole number from 1 to 10000, not `0`",
    );
    check(
        "/steps/8/args/http",
        json!({"url": "http://x"}),
        "/steps/8/args workflow.conflict give one `command` or one `http` request",
    );
    check(
        "/steps/8/args/command",
        json!(""),
        "/steps/8/args/command workflow.missing the command is empty",
    );
    check(
        "/steps/11/args/duration",
        json!("1s"),
        "/steps/11/args/until workflow.conflict give either `duration` or `until`",
    );
    check(
        "/steps/11/args",
        json!({}),
        "/steps/11/args workflow.missing a wait needs `duration`, like \"2s\", or `until`, an expression that gives an instant",
    );
    check(
        "/steps/15/args/code",
        Value::Null,
        "/steps/15/args workflow.missing `code` is missing",
    );
}

#[test]
fn scatters_stand_two_deep_at_most() {
    let scatter = |name: &str, body: Value| json!({"ref": name, "type": "STEP_TYPE_SCATTER", "args": {"items": "[1]", "body": body}});
    let wait = json!({"ref": "w", "type": "STEP_TYPE_WAIT", "args": {"duration": "1s"}});
    let of = |step: Value| json!({"family_slug": "a", "steps": [step]});
    assert_eq!(said(&of(scatter("a", scatter("b", wait.clone())))), [""; 0]);
    assert_eq!(
        said(&of(scatter("a", scatter("b", scatter("c", wait))))),
        ["/steps/0/args/body/args/body/args/body workflow.limit scatters may stand 2 deep in each other"]
    );
}

#[test]
fn many_findings_are_counted() {
    let steps: Vec<Value> = (0..600).map(|_| json!(1)).collect();
    let found = said(&json!({"family_slug": "a", "steps": steps}));
    assert_eq!(found.len(), 501);
    assert_eq!(
        found[500],
        " workflow.too_many_findings 100 more findings are not shown; mend these first"
    );
}
