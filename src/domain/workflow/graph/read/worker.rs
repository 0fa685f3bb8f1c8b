//! Arguments of sensors, requests and remote tasks.

use serde_json::Value;

use super::command::launch;
use super::fields::{Fields, Out, Spot};
use super::step::{Defaults, texts_by_name};
use crate::domain::workflow::definition::CommandStep;
use crate::domain::workflow::graph::finding::shown;
use crate::domain::workflow::graph::kinds::{Http, Probe, Route, RouteWait, Sensor, StepKind, Task};
use crate::domain::workflow::graph::span::Span;
use crate::words::limits;

/// `{probe: {command: …} or {http: …}, poke_interval, poke_timeout}`; the probe may also stand beside the intervals.
pub(super) fn sensor(spot: &Spot<'_>, _: &Defaults, out: &mut Out) -> Option<StepKind> {
    const KEYS: [&str; 5] = ["probe", "command", "http", "poke_interval", "poke_timeout"];
    let fields = spot.object(&KEYS, &[], out)?;
    let given = fields
        .get("probe")
        .and_then(|spot| spot.object(&["command", "http"], &[], out));
    let place = |name: &str| {
        { given.as_ref() }
            .and_then(|given| given.get(name))
            .or_else(|| fields.get(name))
    };
    let (command, http) = (place("command"), place("http"));
    let is_twice = given.is_some() && (fields.get("command").is_some() || fields.get("http").is_some());
    let probe = match (command, http) {
        (Some(command), None) if !is_twice => {
            probed_command(&command, out).map(|step| Probe::Command(Box::new(step)))
        }
        (None, Some(http)) if !is_twice => request(&http, out).map(Probe::Http),
        (None, None) => {
            let message = "a sensor needs a `command` or an `http` request to ask";
            out.say(&fields.at, "workflow.missing", message);
            None
        }
        (Some(_), _) | (None, Some(_)) => {
            out.say(
                &fields.at,
                "workflow.conflict",
                "give one `command` or one `http` request",
            );
            None
        }
    };
    let mut span = |name: &str, usual: u64| {
        let found = fields.span(name, out);
        if found == Some(Span(0)) {
            let at = format!("{}/{name}", fields.at);
            out.say(&at, "workflow.out_of_range", "must be longer than nothing");
        }
        found.unwrap_or(Span(usual))
    };
    let (poke_interval, poke_timeout) = (span("poke_interval", 30_000), span("poke_timeout", 3_600_000));
    Some(StepKind::Sensor(Box::new(Sensor {
        probe: probe?,
        poke_interval,
        poke_timeout,
    })))
}

/// The arguments of a command, or the command alone.
fn probed_command(spot: &Spot<'_>, out: &mut Out) -> Option<CommandStep> {
    if spot.value.is_object() {
        return launch(spot, out);
    }
    let alone = serde_json::json!({"command": spot.value});
    let inner = Spot {
        value: &alone,
        at: spot.at.clone(),
    };
    let before = out.findings.len();
    let step = launch(&inner, out);
    // What is said of the made-up key is said of the value itself.
    let made_up = format!("{}/command", spot.at);
    for finding in &mut out.findings[before..] {
        if let Some(after) = finding.pointer.strip_prefix(&made_up) {
            finding.pointer = format!("{}{after}", spot.at);
        }
    }
    step
}

pub(super) fn http(spot: &Spot<'_>, _: &Defaults, out: &mut Out) -> Option<StepKind> {
    request(spot, out).map(StepKind::Http)
}

const METHODS: [(&str, &str); 6] = [
    ("GET", "GET"),
    ("HEAD", "HEAD"),
    ("POST", "POST"),
    ("PUT", "PUT"),
    ("PATCH", "PATCH"),
    ("DELETE", "DELETE"),
];

fn request(spot: &Spot<'_>, out: &mut Out) -> Option<Http> {
    const KEYS: [&str; 8] = [
        "method",
        "url",
        "headers",
        "query",
        "body",
        "expect",
        "follow_redirects",
        "max_response_bytes",
    ];
    let fields = spot.object(&KEYS, &[], out)?;
    let method = fields.word("method", &METHODS, "GET", out);
    let redirects = fields
        .count("follow_redirects", (0, limits::REDIRECTS_MAX), out)
        .unwrap_or(0);
    let most = fields.get("max_response_bytes");
    let named = |name: &str, out: &mut Out| {
        fields
            .get(name)
            .map(|spot| texts_by_name(&spot, out))
            .unwrap_or_default()
    };
    if let Some(spot) = fields.get("body").filter(|_| matches!(method, "GET" | "HEAD")) {
        let message = format!("a {method} request has no body; say `method: \"POST\"`");
        out.say(&spot.at, "workflow.conflict", message);
    }
    let (headers, query) = (named("headers", out), named("query", out));
    for name in headers.keys() {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_token) {
            let at = format!("{}/headers", fields.at);
            out.say(
                &at,
                "workflow.bad_value",
                format!("`{}` is no name of a header", shown(name)),
            );
        }
    }
    Some(Http {
        method: method.to_owned(),
        url: url(&fields, out).unwrap_or_default(),
        headers,
        query,
        body: fields.get("body").map(|spot| spot.value.clone()),
        expect: fields
            .get("expect")
            .map(|spot| expected(&spot, out))
            .unwrap_or_default(),
        follow_redirects: u8::try_from(redirects).unwrap_or(u8::MAX),
        max_response_bytes: most.and_then(|spot| spot.integer(1, limits::PAYLOAD_BYTES_MAX, out)),
    })
}

fn url(fields: &Fields<'_>, out: &mut Out) -> Option<String> {
    let spot = fields.need("url", out)?;
    let text = spot.filled(limits::URL_CHARS_MAX, out)?;
    let lower = text.to_ascii_lowercase();
    let is_made = text.trim_start().starts_with("{{");
    if !text.is_empty() && !is_made && !["http://", "https://"].iter().any(|head| lower.starts_with(head)) {
        let message = format!("`{}` must begin with https:// or http://", shown(text));
        out.say(&spot.at, "workflow.bad_value", message);
    }
    Some(text.to_owned())
}

/// Statuses like `200` or `"2xx"`; one of them may stand alone.
fn expected(spot: &Spot<'_>, out: &mut Out) -> Vec<String> {
    let items = match spot.value {
        Value::Array(_) => spot.list_up_to(limits::EXPECTED_STATUSES_MAX, out),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            vec![spot.clone()]
        }
    };
    let mut found = Vec::new();
    for item in items {
        let text = match item.value {
            Value::String(text) => text.to_ascii_lowercase(),
            Value::Number(number) => number.to_string(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                item.wrong("must be a status like 200 or \"2xx\"", out);
                continue;
            }
        };
        let bytes = text.as_bytes();
        let is_class = bytes.len() == 3 && &bytes[1..] == b"xx" && (b'1'..=b'5').contains(&bytes[0]);
        let is_status = bytes.len() == 3
            && text
                .parse::<u16>()
                .is_ok_and(|status| (100..600).contains(&status));
        if is_class || is_status {
            found.push(text);
        } else {
            let message = format!("`{}` is no status; write 200 or \"2xx\"", shown(&text));
            out.say(&item.at, "workflow.bad_value", message);
        }
    }
    found
}

pub(super) fn task(spot: &Spot<'_>, _: &Defaults, out: &mut Out) -> Option<StepKind> {
    let fields = spot.object(&["queue", "task", "input"], &[], out)?;
    let queue = fields.need("queue", out).and_then(|spot| name(&spot, out));
    Some(StepKind::Task(Task {
        queue: queue.unwrap_or_default(),
        task: fields
            .get("task")
            .and_then(|spot| name(&spot, out))
            .unwrap_or_default(),
        input: fields.cel("input", out),
    }))
}

const WAITS: [(&str, RouteWait); 2] = [
    ("decision", RouteWait::Decision),
    ("completion", RouteWait::Completion),
];

/// `{work: {field: CEL}, pool, strategy, wait, timeout}`.
pub(super) fn route(spot: &Spot<'_>, _: &Defaults, out: &mut Out) -> Option<StepKind> {
    let fields = spot.object(&["work", "pool", "strategy", "wait", "timeout"], &[], out)?;
    let mut work = std::collections::BTreeMap::new();
    if let Some(given) = fields.need("work", out).and_then(|spot| spot.map(out)) {
        for (name, spot) in given.each() {
            if name == "id" {
                let message =
                    "the id of work is made of run, step and attempt; say `external_id` for one of your own";
                out.say(&spot.at, "workflow.not_for_this_type", message);
            } else if let Some(text) = spot.cel(out) {
                work.insert(name.to_owned(), text);
            }
        }
        if !given.has("kind") {
            let message = "say what kind of work it is, like `kind: \"'ticket'\"`";
            out.say(&given.at, "workflow.missing", message);
        }
    }
    let named = |name: &str, out: &mut Out| {
        let spot = fields.get(name)?;
        spot.short(limits::ROUTING_NAME_CHARS_MAX, out).map(str::to_owned)
    };
    let (recipient_pool, strategy) = (named("pool", out), named("strategy", out));
    let wait = fields.word("wait", &WAITS, RouteWait::default(), out);
    let timeout = fields.span("timeout", out);
    if timeout.is_some() && wait == RouteWait::Decision {
        let at = format!("{}/timeout", fields.at);
        let message = "a decision is made at once; `timeout` goes with `wait: completion`";
        out.say(&at, "workflow.conflict", message);
    }
    Some(StepKind::Route(Route {
        work,
        recipient_pool,
        strategy,
        wait,
        timeout,
    }))
}

/// The name of a queue or task: printable, so that it can stand in a command line and in a log.
fn name(spot: &Spot<'_>, out: &mut Out) -> Option<String> {
    let text = spot.text(out)?;
    let fits = !text.is_empty()
        && text.len() <= limits::NAME_BYTES_MAX
        && text.bytes().all(|byte| byte.is_ascii_graphic());
    if !fits {
        let message = format!(
            "`{}` must have 1 to {} visible ASCII characters",
            shown(text),
            limits::NAME_BYTES_MAX
        );
        out.say(&spot.at, "workflow.bad_value", message);
    }
    fits.then(|| text.to_owned())
}
