//! The document against the committed file, against its own rules, and against what a real router answers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Map, Value, json};

use super::fixture::{Answer, BEGIN, Face, declared, routed};
use super::openapi;
use super::operation::Operation;
use super::param::{Kind, Param};
use super::router::page;
use crate::domain::workflow::attempt::Outcome;
use crate::domain::workflow::run::RunEvent;
use crate::engine::changes::{nodes, start};
use crate::store::rows::{DeadStep, NodeRecord};
use crate::store::runs::{by_id, replace};
use crate::store::tables::DEAD_STEPS;
use crate::words::ids::{EntryId, RunId, TenantId};
use crate::words::names::JobName;
use crate::words::time::Millis;

const COMMITTED: &str = "config/openapi.json";
const REWRITE: &str = "DUCTOR_UPDATE=1 cargo test --lib http::openapi_tests";
const EXAMPLES: &str = "src/http/examples.json";

/// Questions whose text is no path, so that they are posted.
const ASKS: [&str; 8] = [
    "previewSchedule",
    "validateDocument",
    "validateWorkflow",
    "dryRunWorkflow",
    "dryRunDocument",
    "replayDecision",
    "testRule",
    "diffBundle",
];

/// The nouns of scopes.
#[rustfmt::skip]
const NOUNS: &[&str] = &[
    "audit", "claim", "key", "tenant", "pool", "recipient", "rule", "bundle", "approval", "job",
    "slot", "run", "workflow", "event", "system", "metrics", "bridge", "decision", "assignment",
    "shadow",
];

#[test]
fn the_committed_document_is_this_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(COMMITTED);
    if std::env::var_os("DUCTOR_UPDATE").is_some() {
        std::fs::write(&path, openapi::text()).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == openapi::text(),
        "{COMMITTED} is stale; `{REWRITE}` rewrites it"
    );
}

#[test]
fn every_operation_is_described() {
    let document = openapi::document();
    let mut ids = BTreeSet::new();
    for operation in page().operations {
        let id = operation.id;
        assert!(ids.insert(id), "two operations are called {id}");
        let (noun, verb) = operation
            .scope
            .split_once(':')
            .unwrap_or((operation.scope, "read"));
        assert!(
            ["open", "any"].contains(&operation.scope) || NOUNS.contains(&noun),
            "{id}: scope {}",
            operation.scope
        );
        let is_change = operation.method != "get" && !ASKS.contains(&id);
        if !["open", "any"].contains(&operation.scope) {
            assert_eq!(verb != "read", is_change, "{id}: scope {}", operation.scope);
        }
        assert!(operation.summary.ends_with('.'), "{id}: {}", operation.summary);
        assert!(!operation.successes.is_empty(), "{id} answers nothing");
        let described = &document["paths"][operation.path][operation.method];
        for parameter in described["parameters"].as_array().into_iter().flatten() {
            assert_ne!(parameter["description"], "", "{id}: {parameter}");
        }
        for success in &operation.successes {
            let content = &described["responses"][success.status.to_string()]["content"][success.media];
            let example = &content["example"];
            assert!(!example.is_null(), "{id}: {EXAMPLES} has no `{}`", success.status);
            check(
                &document,
                &content["schema"],
                example,
                &format!("{EXAMPLES} {id}"),
            );
        }
        if !operation.fields.is_empty() || operation.body.is_some() {
            let content = &described["requestBody"]["content"]["application/json"];
            assert!(!content["example"].is_null(), "{id}: {EXAMPLES} has no `body`");
            check(&document, &content["schema"], &content["example"], id);
        }
    }
    let examples: Map<String, Value> = serde_json::from_str(include_str!("examples.json")).unwrap();
    for id in examples.keys() {
        assert!(
            ids.contains(id.as_str()),
            "{EXAMPLES}: no operation is called {id}"
        );
    }
    assert_eq!(document["openapi"], "3.1.0");
    assert!(ids.len() >= 29);
}

/// A face in which everything exists that paths can name.
pub(super) struct Stage {
    pub(super) face: Face,
    ended: String,
    waiting: String,
    retrying: String,
    entry: String,
    /// A run that waits for people.
    open: String,
    /// Another one, which is held.
    held: String,
    /// Of a task that a worker has.
    token: String,
    /// A pool of recipients, another one, a member of the first, a rule, a claim queue, a shadow campaign.
    routing: [String; 6],
    /// What is routed through the first of them, by the word of its path or the operation that wants it.
    routed: BTreeMap<&'static str, String>,
    /// For files that an operation makes: outside of the state directory.
    elsewhere: tempfile::TempDir,
}

pub(super) async fn stage() -> Stage {
    let face = Face::new().await;
    super::health::check(&face.app).await;
    face.post("/jobs/a/start").await;
    let first = face.pass(1).await.remove(0);
    face.write_log(&first, "o hello\n");
    face.clock.advance(1_500);
    face.complete(&first, Outcome::Succeeded).await;
    face.post("/jobs/b/start").await;
    face.pass(1).await;
    let timed = JobName::new("timed").unwrap();
    face.change(move |tx| Ok(start::skip(tx, &timed, BEGIN, "", "pool_full")?))
        .await;
    let again = face
        .post_json("/jobs/c/start", "{\"retries\": true}")
        .await
        .json();
    let failing = face.pass(1).await.remove(0);
    face.complete(&failing, Outcome::Failed).await;
    let last = face.post("/jobs/a/start").await.json();
    let text = |name: &str| last[name].as_str().unwrap().to_owned();
    let ended = first.run.id.to_string();
    let (dead, run) = (first.step.clone(), first.run.id);
    face.change(move |tx| {
        let row = DeadStep {
            job: JobName::new("a").unwrap(),
            at: BEGIN,
            deaths: 5,
        };
        Ok(tx.put(&DEAD_STEPS, &(TenantId::DEFAULT, run, dead.clone()), &row)?)
    })
    .await;
    let record = NodeRecord {
        generated: true,
        host: "h".to_owned(),
        boot_id: "b".to_owned(),
        pid_namespace: 1,
        pid: 1,
        start_ticks: 1,
        started_at: Millis(0),
        last_seen: Millis(0),
    };
    let node = face.app.engine.node.clone();
    face.change(move |tx| nodes::introduce(tx, &node, &record)).await;
    let report = &examples()["putWorkflow"]["body"];
    face.post_json("/api/workflows", &report.to_string()).await;
    face.post("/api/workflows/nightly-report:publish").await;
    let token = claimed_task(&face).await;
    let (open, held) = waiting_runs(&face).await;
    let routing = declared(&face).await;
    let routed = routed(&face).await;
    Stage {
        token,
        routing,
        routed,
        open,
        held,
        ended,
        waiting: text("runId"),
        retrying: again["runId"].as_str().unwrap().to_owned(),
        entry: text("queueId"),
        elsewhere: tempfile::tempdir().unwrap(),
        face,
    }
}

/// Two runs that wait for people; the second is held.
async fn waiting_runs(face: &Face) -> (String, String) {
    let waits = json!({"family_slug": "waits", "steps": [{"ref": "yes", "type": "STEP_TYPE_APPROVAL"},
        {"ref": "no", "type": "STEP_TYPE_APPROVAL"}, {"ref": "form", "type": "STEP_TYPE_CHECKPOINT"}]});
    face.post_json("/api/workflows", &waits.to_string()).await;
    face.post("/api/workflows/waits:publish").await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let begun = face.post("/api/workflows/waits/runs").await.json();
        ids.push(begun["data"]["id"].as_str().unwrap().to_owned());
    }
    let held: RunId = ids[1].parse().unwrap();
    face.change(move |tx| {
        let before = by_id(tx, held)?.unwrap();
        let mut after = before.clone();
        after.state = before.state.next(&RunEvent::Paused, BEGIN).unwrap();
        Ok(replace(tx, &before, &after)?)
    })
    .await;
    (ids.remove(0), ids.remove(0))
}

async fn claimed_task(face: &Face) -> String {
    let remote = json!({"family_slug": "remote",
        "steps": [{"ref": "t", "type": "STEP_TYPE_TASK", "args": {"queue": "work"}}]});
    face.post_json("/api/workflows", &remote.to_string()).await;
    face.post("/api/workflows/remote:publish").await;
    face.post("/api/workflows/remote/runs").await;
    let polled = face
        .post_json("/api/bridge/poll", r#"{"queue": "work", "worker": "w"}"#)
        .await;
    let token = polled.json()["data"]["tasks"][0]["token"].clone();
    token
        .as_str()
        .unwrap_or_else(|| panic!("{}", polled.text))
        .to_owned()
}

impl Stage {
    pub(super) fn filled(&self, operation: &Operation) -> String {
        let run = match operation.method {
            _ if operation.id == "retryRun" => &self.retrying,
            _ if operation.id == "pauseRun" => &self.open,
            _ if operation.id == "resumeRun" => &self.held,
            "post" => &self.waiting,
            _ => &self.ended,
        };
        let is_of_schedule = ["/api/schedules", "/jobs/{job}/fires", "/jobs/{job}/why"]
            .iter()
            .any(|head| operation.path.starts_with(head));
        let answered = match operation.id {
            "approveCheckpoint" => "yes",
            "rejectCheckpoint" => "no",
            _ => "form",
        };
        let letter = format!("step-{}-main", self.ended);
        let checkpoint = format!("{}:{answered}", self.open);
        let [first, second, member, rule, queue, campaign] = &self.routing;
        // The pool that offers to all keeps its offers under its own id.
        let claim_queue = if operation.id == "showClaimQueue" {
            queue
        } else {
            &self.routed["{busy}"]
        };
        let waiting = ["listWaitingWork", "cancelWaitingWork"];
        let recipient_pool = if waiting.contains(&operation.id) {
            &self.routed["{empty}"]
        } else if operation.id == "addMembership" {
            second
        } else {
            first
        };
        let routed = self.routed.get(operation.id).map(String::as_str);
        let names = [
            ("{checkpoint}", checkpoint.as_str()),
            ("{job}", if is_of_schedule { "timed" } else { "a" }),
            ("{pool}", "p"),
            ("{entry}", self.entry.as_str()),
            ("{run}", run.as_str()),
            ("{node}", "n-a"),
            ("{tenant}", "default"),
            ("{step}", "main"),
            ("{attempt}", "1"),
            ("{family_slug}", "nightly-report"),
            ("{version}", "1"),
            ("{token}", self.token.as_str()),
            ("{letter}", letter.as_str()),
            ("{pool_id}", recipient_pool),
            ("{decision_id}", &self.routed["{decision_id}"]),
            (
                "{assignment_id}",
                routed.unwrap_or(&self.routed["acceptAssignment"]),
            ),
            ("{item_id}", routed.unwrap_or(&self.routed["claimOffer"])),
            ("{recipient_id}", member),
            ("{rule_id}", rule),
            ("{claim_queue_id}", claim_queue),
            ("{campaign_id}", campaign),
            ("{trait_key}", "vip"),
            ("{strategy_key}", "round_robin"),
        ];
        names
            .iter()
            .fold(operation.path.to_owned(), |path, (name, value)| {
                path.replace(name, value)
            })
    }

    /// Sends what the operation needs, and `more` of its query.
    async fn send(&self, operation: &Operation, more: &str) -> Answer {
        let needed = operation.query.iter().filter(|param| param.required);
        let mut query: Vec<String> = needed
            .map(|param| format!("{}={}", param.name, sample(param)))
            .collect();
        query.extend((!more.is_empty()).then(|| more.to_owned()));
        let path = format!("{}?{}", self.filled(operation), query.join("&"));
        let fields = operation.fields.iter().filter(|field| field.required);
        let value = |field: &Param| {
            if matches!(field.kind, Kind::Integer) {
                Value::from(1)
            } else if matches!(field.kind, Kind::Flag) {
                Value::Bool(true)
            } else if field.name == "items" {
                json!([])
            } else if field.name == "scopes" {
                json!(["admin"])
            } else if field.name == "document" {
                examples()["putWorkflow"]["body"].clone()
            } else if field.name == "work" {
                json!({"kind": "t"})
            } else if field.name == "recipient_id" {
                Value::from(self.routed["{recipient}"].as_str())
            } else if field.name == "path" {
                let file = self.elsewhere.path().join(EntryId::random().to_string());
                Value::from(file.to_string_lossy())
            } else {
                Value::from(sample(field))
            }
        };
        let fields = fields.map(|field| (field.name.to_owned(), value(field)));
        let shown = ["testRule", "diffBundle", "applyBundle", "changeTenant"].contains(&operation.id);
        let body = if operation.body.is_some() || shown {
            let body = examples()[operation.id]["body"].to_string();
            body.replace("019ad0e0-0001-7000-8000-000000000001", &self.routing[0])
        } else {
            Value::from(fields.collect::<Map<_, _>>()).to_string()
        };
        let method = operation.method.to_ascii_uppercase();
        let (headers, body) = match operation.method {
            "get" => (&[][..], ""),
            _ => (&[("content-type", "application/json")][..], body.as_str()),
        };
        self.face.send(&method, &path, headers, body).await
    }
}

fn examples() -> Value {
    serde_json::from_str(include_str!("examples.json")).unwrap()
}

/// A value that a parameter takes.
fn sample(param: &Param) -> &'static str {
    match (param.name, param.kind) {
        ("offset", _) | ("from", Kind::Integer) => "0",
        (_, Kind::Version) => "1",
        ("expected_version", _) => "0",
        ("at" | "from", _) => "2025-11-29T18:00:00Z",
        ("topics", _) => "runs,slots",
        ("tenant", _) => "default",
        ("after", Kind::Text) => "1.0",
        ("expression", _) => "30 2 * * *",
        ("pagination.cursor", _) => "",
        (_, Kind::Integer) => "1",
        (_, Kind::Flag) => "true",
        (_, Kind::Matching) => "job:nobody",
        (_, Kind::Moment) => "1h",
        (_, Kind::Filter) => "state:pending%20since:1h",
        (_, Kind::Instant) => "2025-11-29T18:00:00Z",
        (_, Kind::OneOf(words)) => words[0],
        (_, Kind::Zone) => "Europe/London",
        (_, Kind::Id) => "019ad0e0-0001-7000-8000-000000000001",
        ("outcome", _) => "assigned",
        (_, Kind::Text | Kind::Any) => "a",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_documented_path_answers_as_described() {
    let document = openapi::document();
    for operation in page().operations {
        let (stage, id) = (stage().await, operation.id);
        if ["beginSession", "revokeKey"].contains(&id) {
            // They need keys: `key_tests` asks for them.
            continue;
        }
        if id == "followChanges" {
            // It ends with the daemon only.
            stage.face.app.stop.cancel();
        }
        let answer = stage.send(&operation, "").await;
        let found = operation
            .successes
            .iter()
            .find(|success| success.status == answer.status);
        let success = found.unwrap_or_else(|| panic!("{id}: {} {}", answer.status, answer.text));
        let media = answer.header("content-type").unwrap_or_default();
        assert!(media.starts_with(success.media), "{id}: {media}");
        let content = &document["paths"][operation.path][operation.method]["responses"]
            [success.status.to_string()]["content"][success.media];
        let body = match success.media {
            "application/json" => answer.json(),
            _ => Value::from(answer.text.clone()),
        };
        check(&document, &content["schema"], &body, id);
        assert_eq!(
            operation.versioned && operation.method == "get",
            answer.header("etag").is_some(),
            "{id}"
        );
        for param in operation.query.iter().filter(|param| !sample(param).is_empty()) {
            let query = format!("{}={}", param.name, sample(param));
            if id == "followLog" && param.name == "fence" {
                continue;
            }
            // What was removed is not there a second time.
            let status = if operation.method == "delete" {
                self::stage().await.send(&operation, &query).await.status
            } else {
                stage.send(&operation, &query).await.status
            };
            assert!(
                status == success.status || param.name == "fence",
                "{id} {query}: {status}"
            );
        }
        if !operation.query.is_empty() || !["open", "metrics:read"].contains(&operation.scope) {
            // With the first key nobody comes in without one.
            let stage = if id == "createKey" {
                self::stage().await
            } else {
                stage
            };
            let unknown = stage.send(&operation, "nonsense=1").await;
            assert_eq!(unknown.status, 400, "{id}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_fields_of_a_body_are_refused_everywhere() {
    for operation in page()
        .operations
        .iter()
        // To say what is wrong with a document is no refusal.
        .filter(|operation| operation.method != "get" && !operation.id.starts_with("validate"))
    {
        let stage = stage().await;
        let path = stage.filled(operation);
        let method = operation.method.to_ascii_uppercase();
        let json = [("content-type", "application/json")];
        let answer = stage.face.send(&method, &path, &json, "{\"nonsense\": 1}").await;
        assert_eq!(
            (answer.status, operation.id),
            (422, operation.id),
            "{}",
            answer.text
        );
        assert!(openapi::refusals(operation).contains(&422));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_is_served() {
    let face = Face::new().await;
    let answer = face.get("/api/openapi.json").await;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.text, openapi::text());
    let tag = answer.header("etag").unwrap();
    let again = face
        .send("GET", "/api/openapi.json", &[("if-none-match", tag)], "")
        .await;
    assert_eq!(again.status, 304);
}

/// What a schema of this document demands of a value; an object may have no other fields than those described.
fn check(document: &Value, schema: &Value, value: &Value, place: &str) {
    if let Err(why) = conforms(document, schema, value) {
        panic!("{place}: {why}\nvalue: {value:#}");
    }
}

fn resolved<'d>(document: &'d Value, schema: &'d Value) -> &'d Value {
    match schema["$ref"].as_str() {
        None => schema,
        Some(reference) => {
            let pointer = reference.trim_start_matches('#');
            let found = document.pointer(pointer);
            resolved(
                document,
                found.unwrap_or_else(|| panic!("{reference} leads nowhere")),
            )
        }
    }
}

fn conforms(document: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let schema = resolved(document, schema);
    for word in ["oneOf", "anyOf"] {
        if let Some(choices) = schema[word].as_array() {
            let tried: Vec<_> = choices
                .iter()
                .map(|choice| conforms(document, choice, value))
                .collect();
            let met = tried.iter().any(Result::is_ok);
            return if met { Ok(()) } else { Err(format!("{tried:?}")) };
        }
    }
    // A schema that demands nothing is met by any JSON.
    let demands = ["type", "properties", "items", "enum", "additionalProperties"];
    if let Some(said) = schema.as_object()
        && !demands.iter().any(|word| said.contains_key(*word))
    {
        return Ok(());
    }
    let types = match &schema["type"] {
        Value::String(one) => vec![one.as_str()],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => vec![],
    };
    if !types.is_empty() && !types.iter().any(|word| is_of(value, word)) {
        return Err(format!("{value} is not {types:?}"));
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        return Err(format!("{value} is none of {words:?}"));
    }
    match value {
        Value::Array(items) => items
            .iter()
            .try_for_each(|item| conforms(document, &schema["items"], item)),
        Value::Object(fields) => object_conforms(document, schema, fields),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

fn is_of(value: &Value, word: &str) -> bool {
    match word {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no such type: {other}"),
    }
}

fn object_conforms(document: &Value, schema: &Value, fields: &Map<String, Value>) -> Result<(), String> {
    let (mut properties, mut required, mut open) = (Map::new(), Vec::new(), false);
    gather(document, schema, &mut properties, &mut required, &mut open);
    for name in required {
        if !fields.contains_key(&name) {
            return Err(format!("`{name}` is missing"));
        }
    }
    for (name, value) in fields {
        match properties.get(name) {
            Some(schema) => conforms(document, schema, value).map_err(|why| format!("{name}: {why}"))?,
            None if open => {}
            None => return Err(format!("`{name}` is not described")),
        }
    }
    Ok(())
}

/// All properties of an object, those of its parts too.
fn gather(
    document: &Value,
    schema: &Value,
    properties: &mut Map<String, Value>,
    required: &mut Vec<String>,
    open: &mut bool,
) {
    let schema = resolved(document, schema);
    for part in schema["allOf"].as_array().into_iter().flatten() {
        gather(document, part, properties, required, open);
    }
    *open |= schema["additionalProperties"] == json!(true) || schema["additionalProperties"].is_object();
    // What is only described in words may be anything.
    let is_anything = |fields: &Map<String, Value>| fields.keys().all(|key| key == "description");
    *open |= schema.as_object().is_some_and(is_anything);
    if let Some(own) = schema["properties"].as_object() {
        properties.extend(own.clone());
    }
    let names = schema["required"].as_array().into_iter().flatten();
    required.extend(names.filter_map(Value::as_str).map(str::to_owned));
}
