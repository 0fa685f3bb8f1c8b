//! Arguments of the steps that the coordinator does itself.

use super::document::{edges, steps};
use super::fields::{Fields, Out, Spot};
use super::step::{self, Defaults};
use crate::domain::workflow::graph::finding::{did_you_mean, shown};
use crate::domain::workflow::graph::kinds::{
    Approval, Assertion, Body, Case, Checkpoint, Dataflow, Each, Fail, Gather, GatherMode, OnReject, Reduce,
    Scatter, StepKind, Subworkflow, Succeed, Switch, Tolerance, Wait,
};
use crate::domain::workflow::graph::span::Span;
use crate::words::limits;

const OPERATIONS: [&str; 7] = [
    "project", "filter", "map", "merge", "reduce", "assert", "template",
];

pub(super) fn dataflow(spot: &Spot<'_>, _: &Defaults, out: &mut Out) -> Option<StepKind> {
    let mut keys = OPERATIONS.to_vec();
    keys.push("operation");
    let fields = spot.object(&keys, &[], out)?;
    let operation = fields.need("operation", out)?;
    let word = operation.text(out)?;
    if !OPERATIONS.contains(&word) {
        let near = did_you_mean(word, OPERATIONS);
        let all = OPERATIONS.join(", ");
        let message = format!("must be one of {all}, not `{}`{near}", shown(word));
        out.say(&operation.at, "workflow.bad_value", message);
        return None;
    }
    for other in OPERATIONS.iter().filter(|other| **other != word) {
        if let Some(spot) = fields.get(other) {
            let message = format!("`{other}` means nothing where `operation` is `{word}`");
            out.say(&spot.at, "workflow.conflict", message);
        }
    }
    if word == "template" {
        // Null is a value like any other here.
        if !fields.has("template") {
            out.say(&fields.at, "workflow.missing", "`template` is missing");
        }
        let template = fields
            .get("template")
            .map(|spot| spot.value.clone())
            .unwrap_or_default();
        return Some(StepKind::Dataflow(Dataflow::Template { template }));
    }
    let what = fields.need(word, out)?;
    operation_of(word, &what, out).map(StepKind::Dataflow)
}

fn operation_of(word: &str, what: &Spot<'_>, out: &mut Out) -> Option<Dataflow> {
    Some(match word {
        "project" => {
            let map = what.map(out)?;
            let named = map
                .each()
                .filter_map(|(name, spot)| Some((name.to_owned(), spot.cel(out)?)));
            let project = named.collect();
            Dataflow::Project { project }
        }
        "filter" => Dataflow::Filter {
            filter: each(what, out)?,
        },
        "map" => Dataflow::Map {
            map: each(what, out)?,
        },
        "merge" => {
            let items = what.list(out);
            let merge = items.iter().filter_map(|item| item.cel(out)).collect();
            Dataflow::Merge { merge }
        }
        "reduce" => {
            let fields = what.object(&["items", "initial", "with"], &[], out)?;
            let reduce = Reduce {
                items: fields.need_cel("items", out),
                initial: fields.cel("initial", out),
                with: fields.need_cel("with", out),
            };
            Dataflow::Reduce { reduce }
        }
        _ => {
            let items = what.list(out);
            let assert = items.iter().filter_map(|item| assertion(item, out)).collect();
            Dataflow::Assert { assert }
        }
    })
}

fn each(spot: &Spot<'_>, out: &mut Out) -> Option<Each> {
    let fields = spot.object(&["items", "with"], &[], out)?;
    Some(Each {
        items: fields.need_cel("items", out),
        with: fields.need_cel("with", out),
    })
}

/// `{that, message}`, or the expression alone.
fn assertion(spot: &Spot<'_>, out: &mut Out) -> Option<Assertion> {
    if spot.value.is_string() {
        return Some(Assertion {
            that: spot.cel(out)?,
            message: String::new(),
        });
    }
    let fields = spot.object(&["that", "message"], &[], out)?;
    Some(Assertion {
        that: fields.need_cel("that", out),
        message: fields.text("message", out).unwrap_or_default(),
    })
}

pub(super) fn switch(spot: &Spot<'_>, _: &Defaults, out: &mut Out) -> Option<StepKind> {
    let fields = spot.object(&["cases", "default"], &[], out)?;
    let cases = fields
        .need("cases", out)
        .map(|spot| spot.list(out))
        .unwrap_or_default();
    let case = |spot: &Spot<'_>, out: &mut Out| {
        let fields = spot.object(&["when", "ref"], &[], out)?;
        let when = fields.need_cel("when", out);
        let target = fields.need("ref", out).and_then(|spot| spot.step_ref(out))?;
        Some(Case { when, target })
    };
    Some(StepKind::Switch(Switch {
        cases: cases.iter().filter_map(|spot| case(spot, out)).collect(),
        default: fields.get("default").and_then(|spot| spot.step_ref(out)),
    }))
}

pub(super) fn wait(spot: &Spot<'_>, _: &Defaults, out: &mut Out) -> Option<StepKind> {
    let fields = spot.object(&["duration", "until"], &[], out)?;
    let (duration, until) = (fields.get("duration"), fields.get("until"));
    match (&duration, &until) {
        (None, None) => out.say(
            &fields.at,
            "workflow.missing",
            "a wait needs `duration`, like \"2s\", or `until`, an expression that gives an instant",
        ),
        (Some(_), Some(until)) => {
            out.say(
                &until.at,
                "workflow.conflict",
                "give either `duration` or `until`",
            );
        }
        (Some(_), None) | (None, Some(_)) => {}
    }
    Some(StepKind::Wait(Wait {
        duration: duration.map(|spot| spot.span(out).unwrap_or(Span(0))),
        until: until.and_then(|spot| spot.cel(out)),
    }))
}

pub(super) fn scatter(spot: &Spot<'_>, defaults: &Defaults, out: &mut Out) -> Option<StepKind> {
    const KEYS: [&str; 4] = ["items", "body", "max_parallel", "tolerated_failures"];
    let fields = spot.object(&KEYS, &[], out)?;
    let nothing = Body {
        steps: Vec::new(),
        edges: Vec::new(),
    };
    let body = fields
        .need("body", out)
        .and_then(|spot| body(&spot, defaults, out));
    Some(StepKind::Scatter(Scatter {
        max_items: None,
        max_bytes: None,
        items: fields.need_cel("items", out),
        body: body.unwrap_or(nothing),
        max_parallel: fields.count("max_parallel", (1, limits::PARALLEL_MAX), out),
        tolerated_failures: tolerance(&fields, out),
    }))
}

/// One step, or a graph of several.
fn body(spot: &Spot<'_>, defaults: &Defaults, out: &mut Out) -> Option<Body> {
    if out.depth >= limits::SCATTER_DEPTH_MAX {
        let message = format!(
            "scatters may stand {} deep in each other",
            limits::SCATTER_DEPTH_MAX
        );
        out.say(&spot.at, "workflow.limit", message);
        return None;
    }
    out.depth += 1;
    let read = inner(spot, defaults, out);
    out.depth -= 1;
    read
}

fn inner(spot: &Spot<'_>, defaults: &Defaults, out: &mut Out) -> Option<Body> {
    let map = spot.map(out)?;
    if map.has("steps") || map.has("edges") {
        let fields = spot.object(&["steps", "edges"], &[], out)?;
        let list = fields.need("steps", out);
        if list
            .as_ref()
            .is_some_and(|spot| spot.value.as_array().is_some_and(Vec::is_empty))
        {
            out.say(&fields.at, "workflow.missing", "a body has at least one step");
        }
        return Some(Body {
            steps: list.map(|spot| steps(&spot, defaults, out)).unwrap_or_default(),
            edges: fields
                .get("edges")
                .map(|spot| edges(&spot, out))
                .unwrap_or_default(),
        });
    }
    out.single_bodies.insert(spot.at.clone());
    Some(Body {
        steps: step::read(spot, defaults, out).into_iter().collect(),
        edges: Vec::new(),
    })
}

fn tolerance(fields: &Fields<'_>, out: &mut Out) -> Tolerance {
    let Some(spot) = fields.get("tolerated_failures") else {
        return Tolerance::default();
    };
    match Tolerance::try_from(spot.value.clone()) {
        Ok(found) => found,
        Err(message) => {
            let code = if spot.value.is_string() || spot.value.is_number() {
                "workflow.bad_value"
            } else {
                "workflow.type"
            };
            out.say(&spot.at, code, message);
            Tolerance::default()
        }
    }
}

const MODES: [(&str, GatherMode); 3] = [
    ("list", GatherMode::List),
    ("map", GatherMode::Map),
    ("reduce", GatherMode::Reduce),
];

pub(super) fn gather(spot: &Spot<'_>, _: &Defaults, out: &mut Out) -> Option<StepKind> {
    const KEYS: [&str; 6] = ["from", "step", "mode", "key", "initial", "with"];
    let fields = spot.object(&KEYS, &[], out)?;
    let from = fields.need("from", out).and_then(|spot| spot.step_ref(out));
    let mode = fields.word("mode", &MODES, GatherMode::List, out);
    let of_modes = [
        ("key", GatherMode::Map),
        ("initial", GatherMode::Reduce),
        ("with", GatherMode::Reduce),
    ];
    for (name, of_mode) in of_modes {
        if let Some(spot) = fields.get(name).filter(|_| mode != of_mode) {
            let (wanted, _) = MODES
                .iter()
                .find(|(_, mode)| *mode == of_mode)
                .unwrap_or(&MODES[0]);
            let message = format!("`{name}` means something only where `mode` is `{wanted}`");
            out.say(&spot.at, "workflow.conflict", message);
        }
    }
    let with = match mode {
        GatherMode::Reduce => Some(fields.need_cel("with", out)),
        GatherMode::List | GatherMode::Map => None,
    };
    Some(StepKind::Gather(Gather {
        from: from?,
        step: fields.get("step").and_then(|spot| spot.step_ref(out)),
        mode,
        key: fields.cel("key", out).filter(|_| mode == GatherMode::Map),
        initial: fields.cel("initial", out).filter(|_| mode == GatherMode::Reduce),
        with,
    }))
}

pub(super) fn subworkflow(spot: &Spot<'_>, _: &Defaults, out: &mut Out) -> Option<StepKind> {
    let fields = spot.object(&["family_slug", "version", "input", "wait"], &[], out)?;
    let slug = fields.need("family_slug", out).and_then(|spot| spot.slug(out));
    Some(StepKind::Subworkflow(Subworkflow {
        family_slug: slug?,
        version: fields.count("version", (1, u32::MAX), out),
        input: fields.cel("input", out),
        wait: fields.flag("wait", true, out),
    }))
}

pub(super) fn checkpoint(spot: &Spot<'_>, _: &Defaults, out: &mut Out) -> Option<StepKind> {
    let fields = spot.object(&["timeout", "schema"], &[], out)?;
    Some(StepKind::Checkpoint(Checkpoint {
        timeout: fields.span("timeout", out),
        schema: fields.get("schema").map(|spot| spot.value.clone()),
    }))
}

const ON_REJECT: [(&str, OnReject); 2] = [("fail", OnReject::Fail), ("skip", OnReject::Skip)];

pub(super) fn approval(spot: &Spot<'_>, _: &Defaults, out: &mut Out) -> Option<StepKind> {
    let fields = spot.object(&["approvers", "on_reject", "timeout"], &[], out)?;
    let approvers = fields.get("approvers");
    Some(StepKind::Approval(Approval {
        approvers: approvers
            .map(|spot| spot.texts(limits::APPROVERS_MAX, limits::LABEL_CHARS_MAX, out))
            .unwrap_or_default(),
        on_reject: fields.word("on_reject", &ON_REJECT, OnReject::Fail, out),
        timeout: fields.span("timeout", out),
    }))
}

pub(super) fn fail(spot: &Spot<'_>, _: &Defaults, out: &mut Out) -> Option<StepKind> {
    let fields = spot.object(&["code", "message"], &[], out)?;
    let code = fields
        .need("code", out)
        .and_then(|spot| spot.filled(limits::LABEL_CHARS_MAX, out));
    Some(StepKind::Fail(Fail {
        code: code.unwrap_or_default().to_owned(),
        message: fields.text("message", out).unwrap_or_default(),
    }))
}

pub(super) fn succeed(spot: &Spot<'_>, _: &Defaults, out: &mut Out) -> Option<StepKind> {
    let fields = spot.object(&["output"], &[], out)?;
    Some(StepKind::Succeed(Succeed {
        output: fields.cel("output", out),
    }))
}
