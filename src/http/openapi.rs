//! `GET /api/openapi.json`: the OpenAPI 3.1 document, made of the router's own page, the types of the answers and the
//! examples beside this file. It is committed as `config/openapi.json`; a test compares.

use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::credentials::COOKIE;
use super::operation::{Components, Operation, Success};
use super::param::{Kind, Param};
use super::router::page;
use super::version;
use crate::domain::access::scopes::OPEN;

/// Bodies of requests and answers by operation: `body`, or the status.
const EXAMPLES: &str = include_str!("examples.json");

/// Each status of a refusal, and when it comes.
const REFUSALS: [(u16, &str); 16] = [
    (
        400,
        "The request cannot be read: a bad parameter, filter, cursor or JSON text.",
    ),
    (401, "There are keys, and no valid one was sent."),
    (
        403,
        "This origin is not allowed, or the key has not the scope (`errors[].code` is `scope.missing`) or another tenant.",
    ),
    (404, "There is no such thing."),
    (405, "This path does not know this method."),
    (
        409,
        "The state of the thing forbids it, or a request with this key is still in flight (`ABORTED`).",
    ),
    (
        412,
        "The thing has another version; `current_version` says which.",
    ),
    (413, "The body is too large."),
    (415, "The body is not JSON."),
    (421, "This Host is not on the list."),
    (
        422,
        "A field breaks a rule (all of them in `errors`), or the key was used for another request.",
    ),
    (
        429,
        "Too many of these are open, or came at once; `Retry-After` says when.",
    ),
    (500, "A defect; the log has it under the request id."),
    (501, "This feature is off."),
    (503, "The store cannot answer, or ductor is stopping; try again."),
    (504, "Not answered within the time limit."),
];

/// The document for whoever asks.
pub(super) async fn show(headers: HeaderMap) -> Response {
    let mut response = version::with_tag_of(&headers, text());
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response.into_response()
}

/// The document as it is committed.
pub(super) fn text() -> String {
    let mut text = serde_json::to_string_pretty(&document()).expect("the document is plain data");
    text.push('\n');
    text
}

/// The document.
pub(super) fn document() -> Value {
    let examples: Value = serde_json::from_str(EXAMPLES).expect("the examples are JSON");
    let mut components = Components::new();
    let mut paths = Map::new();
    for operation in page().operations {
        let described = describe(&operation, &examples[operation.id], &mut components);
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = described;
    }
    let responses = REFUSALS.iter().map(|(status, about)| {
        let content =
            json!({"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}});
        (
            format!("{status}"),
            json!({"description": about, "content": content}),
        )
    });
    let responses: Map<_, _> = responses.collect();
    components.insert("Problem".to_owned(), problem());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "ductor",
            "version": super::app::VERSION,
            "summary": "Jobs, slot pools, schedules and runs of one daemon.",
            "description": ABOUT,
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "security": [{"key": []}, {"session": []}],
        "components": {
            "schemas": components,
            "responses": responses,
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "An API key, dk_<id>_<secret>. While there are no keys, nothing is asked."},
                "session": {"type": "apiKey", "in": "cookie", "name": COOKIE, "description": "A session of the dashboard."},
            },
        },
    })
}

const ABOUT: &str = "Instants are RFC 3339 in UTC. Every status of 400 or more has a problem document (RFC 9457); branch on \
its `code` and on `errors[].code`. Clients ignore fields they do not know; unknown fields of a request are refused. \
`Idempotency-Key` makes a change safe to send again for 24 hours: the same request is answered as it was the first time, with \
`Idempotency-Replayed: true`. Lists go on with `pagination.next_cursor`.";

fn describe(operation: &Operation, examples: &Value, components: &mut Components) -> Value {
    let mut parameters: Vec<Value> = path_names(operation.path).map(path_parameter).collect();
    parameters.extend(operation.query.iter().map(query_parameter));
    parameters.extend(header_parameters(operation));
    let mut responses = Map::new();
    for success in &operation.successes {
        let status = success.status.to_string();
        let described = success_response(operation, success, &examples[&status], components);
        responses.insert(status, described);
    }
    if operation.versioned && operation.method == "get" {
        responses.insert(
            "304".to_owned(),
            json!({"description": "The caller has just that already."}),
        );
    }
    for status in refusals(operation) {
        let reference = format!("#/components/responses/{status}");
        responses.insert(status.to_string(), json!({"$ref": reference}));
    }
    let mut described = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "tags": [tag(operation.path)],
        "x-scope": operation.scope,
        "responses": responses,
    });
    if operation.scope == OPEN {
        described["security"] = json!([]);
    }
    if !parameters.is_empty() {
        described["parameters"] = Value::from(parameters);
    }
    if !operation.fields.is_empty() {
        described["requestBody"] = request_body(&operation.fields, &examples["body"]);
    }
    if let Some(body) = operation.body {
        described["requestBody"] = json!({
            "required": body.required,
            "content": {"application/json": {"schema": (body.shape)(components), "example": examples["body"]}},
        });
    }
    described
}

/// The statuses with which a route may refuse.
pub(super) fn refusals(operation: &Operation) -> Vec<u16> {
    let mut statuses = vec![403, 421, 500, 503, 504];
    if operation.path.contains('{') {
        statuses.push(404);
    }
    if operation.scope != OPEN {
        statuses.extend([401, 429]);
    }
    if !operation.query.is_empty() || operation.scope != OPEN {
        statuses.push(400);
    }
    if operation.method != "get" {
        statuses.extend([400, 409, 413, 415, 422]);
        statuses.extend(operation.versioned.then_some(412));
    }
    statuses.extend(&operation.refusals);
    statuses.sort_unstable();
    statuses.dedup();
    statuses
}

fn tag(path: &str) -> &str {
    let is_routing = path.starts_with("/api/pools");
    let path = path.strip_prefix("/api").unwrap_or(path);
    match path.trim_start_matches('/').split(['/', ':']).next() {
        Some(
            "recipients" | "rules" | "traits" | "strategies" | "routing" | "claim-queues"
            | "shadow-campaigns",
        ) => "routing",
        Some("pools") if is_routing => "routing",
        Some(noun @ ("jobs" | "pools" | "runs" | "schedules" | "workflows" | "bridge")) => noun,
        Some(_) | None => "daemon",
    }
}

/// `job` and `run` of `/a/{job}/b/{run}`.
pub(super) fn path_names(path: &str) -> impl Iterator<Item = &str> {
    path.split('{')
        .skip(1)
        .filter_map(|rest| Some(rest.split_once('}')?.0))
}

fn path_parameter(name: &str) -> Value {
    let about = match name {
        "job" => "The name of a job.",
        "pool" => "The name of a slot pool.",
        "entry" => "The id of a slot entry (`queueId`).",
        "run" => "The id of a run.",
        "node" => "The name of a daemon.",
        "step" => "The name of a step; `main` for a job.",
        "attempt" => "The number of an attempt, from 1.",
        "family_slug" => "The name of a workflow.",
        "version" => "The number of a version, from 1.",
        "checkpoint" => "The id of a step that waits for somebody: RUN:STEP.",
        "letter" => "The id of a dead letter: report-N, or step-RUN-STEP.",
        "pool_id" => "The id of a pool of recipients.",
        "recipient_id" => "The id of a recipient.",
        "rule_id" => "The id of a rule.",
        "decision_id" => "The id of a decision.",
        "assignment_id" => "The id of an assignment.",
        "item_id" => "The id of work that waits, or is offered.",
        "claim_queue_id" => {
            "The id of a claim queue; what a pool without one offers stands under the id of the pool."
        }
        "campaign_id" => "The id of a shadow campaign.",
        "tenant" => "The name of a tenant.",
        "trait_key" => "The key of a trait: the attribute of both sides.",
        "strategy_key" => "The key of a strategy.",
        "token" => "The token of a claimed task.",
        "key" => "The id of an API key.",
        _ => "",
    };
    json!({"name": name, "in": "path", "required": true, "description": about, "schema": {"type": "string"}})
}

fn query_parameter(param: &Param) -> Value {
    let mut schema = schema_of(param.kind);
    if param.repeated {
        schema = json!({"type": "array", "items": schema});
    }
    json!({
        "name": param.name, "in": "query", "required": param.required, "description": param.about, "schema": schema,
    })
}

fn schema_of(kind: Kind) -> Value {
    match kind {
        Kind::Text => json!({"type": "string"}),
        Kind::Zone => json!({"type": "string", "examples": ["Europe/London"]}),
        Kind::Version => json!({"type": "string", "examples": ["3", "draft"]}),
        Kind::Integer => json!({"type": "integer"}),
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Instant => json!({"type": "string", "format": "date-time"}),
        Kind::Id => json!({"type": "string", "format": "uuid"}),
        Kind::Moment => json!({"type": "string", "examples": ["1h", "2025-11-29T18:00:00Z"]}),
        Kind::Filter => json!({"type": "string", "examples": ["state:failed job:export since:1h"]}),
        Kind::Matching => {
            json!({"oneOf": [{"type": "string"}, {"type": "object", "additionalProperties": true}]})
        }
        Kind::Any => json!({}),
        Kind::OneOf(words) => json!({"type": "string", "enum": words}),
    }
}

fn header_parameters(operation: &Operation) -> Vec<Value> {
    let header = |name: &str, about: &str| json!({"name": name, "in": "header", "description": about, "schema": {"type": "string"}});
    let mut headers = Vec::new();
    if operation.method != "get" {
        let about = "1 to 128 printable ASCII characters; the same request with the same key happens once in 24 hours.";
        headers.push(header("Idempotency-Key", about));
    }
    if operation.versioned {
        headers.push(if operation.method == "get" {
            header(
                "If-None-Match",
                "An `ETag` that the caller has; 304 if it is the same.",
            )
        } else {
            header(
                "If-Match",
                "The `ETag` that the change rests on; 412 if it has moved.",
            )
        });
    }
    if operation
        .successes
        .iter()
        .any(|success| success.media == "text/event-stream")
    {
        headers.push(header("Last-Event-ID", "Goes on behind this event."));
    }
    headers
}

fn success_response(
    operation: &Operation,
    success: &Success,
    example: &Value,
    components: &mut Components,
) -> Value {
    let header = |about: &str| json!({"description": about, "schema": {"type": "string"}});
    let mut headers = Map::new();
    if operation.method != "get" {
        let about = "`true` when this is the answer of an earlier request with the same key.";
        headers.insert("Idempotency-Replayed".to_owned(), header(about));
    }
    if success.status == 202 {
        headers.insert(
            "Location".to_owned(),
            header("Where the accepted work can be watched."),
        );
    }
    if operation.versioned && operation.method == "get" {
        headers.insert(
            "ETag".to_owned(),
            header("The version of the thing, and of what else is shown of it."),
        );
    }
    let about = if success.status == 202 {
        "Accepted."
    } else {
        "Done."
    };
    let content = json!({success.media: {"schema": (success.shape)(components), "example": example}});
    let mut response = json!({"description": about, "content": content});
    if !headers.is_empty() {
        response["headers"] = Value::from(headers);
    }
    response
}

fn request_body(fields: &[Param], example: &Value) -> Value {
    let properties = fields.iter().map(|field| {
        let mut schema = schema_of(field.kind);
        schema["description"] = Value::from(field.about);
        (field.name.to_owned(), schema)
    });
    let properties: Map<_, _> = properties.collect();
    let needed = fields
        .iter()
        .filter(|field| field.required)
        .map(|field| field.name);
    let needed: Vec<&str> = needed.collect();
    let is_required = !needed.is_empty();
    let schema = json!({
        "type": "object", "properties": properties, "required": needed, "additionalProperties": false,
    });
    json!({
        "required": is_required, "content": {"application/json": {"schema": schema, "example": example}},
    })
}

fn problem() -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    json!({
        "type": "object",
        "description": "Why a request is not answered with what it asked for.",
        "properties": {
            "type": text("A URN of the code."),
            "title": text("The code in words."),
            "status": {"type": "integer"},
            "detail": text("What is wrong, for people."),
            "instance": text("The path that was asked."),
            "code": text("Stable; branch on it."),
            "request_id": text("Finds the request in the log."),
            "retryable": {"type": "boolean"},
            "errors": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "pointer": text("The field, as a JSON pointer."),
                    "code": text("Stable; branch on it."),
                    "detail": text("What is wrong with it."),
                },
                "required": ["pointer", "code", "detail"],
            }},
            "error": text("Endpoints without a prefix: the exact sentence."),
            "outcome": text("`unknown` when nobody can say whether the change was applied."),
            "current_version": {"description": "With 412: the version in force."},
        },
        "required": ["type", "title", "status", "detail", "instance", "code", "request_id", "errors", "retryable"],
        "additionalProperties": true,
    })
}
