//! The request of an HTTP step or of a sensor's probe, with its places filled.

use std::collections::BTreeMap;

use serde_json::Value;

use super::build::{Graph, HttpWork, Work};
use super::key::Key;
use super::kinds::{Http, Probe, StepKind};
use super::moves::Moving;
use super::reach::error_of;
use super::template::{Template, as_text};
use super::tick::{StepError, View};
use crate::domain::workflow::http_args::{HttpMethod, HttpRequestSpec, StatusWanted};
use crate::domain::workflow::run::Run;
use crate::expr::{Program, Scope};
use crate::words::ids::RunId;
use crate::words::limits;
use crate::words::names::StepRef;
use crate::words::payload::JsonText;
use crate::words::time::Millis;

/// A request that is to be sent.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// It.
    pub spec: HttpRequestSpec,
    /// A status that is not expected is no failure: it is asked again.
    pub is_sensor: bool,
    /// Its time is the step's own limit of one attempt.
    pub is_limited: bool,
}

/// The request of a step, or why it has none.
pub fn request_of<V: View>(
    graph: &Graph,
    run: &Run,
    step: &StepRef,
    now: Millis,
    view: &mut V,
) -> Result<Result<Wanted, StepError>, V::Error> {
    let no_request = || StepError::new("http.invalid", "the definition has no such request").for_good();
    let Some(key) = Key::of_name(graph, step) else {
        return Ok(Err(no_request()));
    };
    let node = graph.node(key.node);
    let (doc, is_sensor) = if let StepKind::Http(http) = &node.doc.kind {
        (http, false)
    } else if let StepKind::Sensor(sensor) = &node.doc.kind
        && let Probe::Http(http) = &sensor.probe
    {
        (http, true)
    } else {
        return Ok(Err(no_request()));
    };
    let Work::Http(work) = &node.work else {
        return Ok(Err(no_request()));
    };
    let mut never = || RunId([0; 16]);
    let mut moving = Moving::new(graph, run, now, view, &mut never);
    let scope = moving.scope(programs(work), &key)?;
    let limit = node.doc.timeouts.attempt.map(|limit| limit.0);
    Ok(filled(doc, work, limit, &scope).map(|spec| Wanted {
        spec,
        is_sensor,
        is_limited: limit.is_some(),
    }))
}

fn programs(work: &HttpWork) -> Vec<&Program> {
    let texts = work.headers.iter().chain(&work.query).map(|(_, text)| text);
    let all = std::iter::once(&work.url).chain(texts).chain(&work.body);
    all.flat_map(Template::programs).collect()
}

fn text(template: &Template, scope: &Scope) -> Result<String, StepError> {
    let value = template.fill(scope).map_err(|fault| error_of(&fault))?;
    Ok(as_text(&value))
}

fn filled(
    doc: &Http,
    work: &HttpWork,
    limit: Option<u64>,
    scope: &Scope,
) -> Result<HttpRequestSpec, StepError> {
    let method = HttpMethod::of_word(&doc.method)
        .ok_or_else(|| StepError::new("http.invalid", format!("`{}` is no method", doc.method)).for_good())?;
    let mut headers = BTreeMap::new();
    for (name, value) in &work.headers {
        headers.insert(name.clone(), text(value, scope)?);
    }
    let mut query = Vec::with_capacity(work.query.len());
    for (name, value) in &work.query {
        query.push((name.clone(), text(value, scope)?));
    }
    let body: Option<Value> = match &work.body {
        Some(body) => Some(body.fill(scope).map_err(|fault| error_of(&fault))?),
        None => None,
    };
    let body = body.map(|body| JsonText::of(&body).expect("a JSON value is JSON"));
    let expect = doc.expect.iter().filter_map(|word| StatusWanted::of_word(word));
    Ok(HttpRequestSpec {
        method,
        url: text(&work.url, scope)?,
        headers,
        query,
        body,
        timeout_ms: limit.unwrap_or(limits::HTTP_TIMEOUT_MS),
        expect: expect.collect(),
        follow_redirects: u32::from(doc.follow_redirects),
        max_response_bytes: doc.max_response_bytes.unwrap_or(limits::HTTP_ANSWER_BYTES),
    })
}
