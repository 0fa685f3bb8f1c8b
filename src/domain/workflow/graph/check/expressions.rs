//! Expressions of a document: whether they compile, and whether the steps that they read come before.

use std::collections::BTreeSet;

use super::levels::Map;
use super::order::where_is;
use super::places::{Place, collect};
use crate::domain::workflow::graph::document::Document;
use crate::domain::workflow::graph::finding::{Finding, did_you_mean, nearest, shown};
use crate::expr::{Profile, Program, line_and_column};

/// What a step shows to others.
const STEP_FIELDS: [&str; 3] = ["output", "status", "error"];
/// What a run shows to its steps.
const RUN_FIELDS: [&str; 3] = ["id", "started_at", "attempt"];

pub(super) fn check(
    document: &Document,
    map: &Map<'_>,
    doubtful: &BTreeSet<String>,
    findings: &mut Vec<Finding>,
) {
    let (places, wrong) = collect(document);
    findings.extend(wrong);
    for place in &places {
        match Program::compile(place.text, Profile::Workflow, place.names) {
            Ok(program) => {
                let mut said = BTreeSet::new();
                for path in program.references() {
                    let Some((code, message)) = fault_of(map, place, path, doubtful) else {
                        continue;
                    };
                    if said.insert(message.clone()) {
                        findings.push(Finding::new(&place.pointer, code, message));
                    }
                }
            }
            Err(fault) => {
                let position = fault.position.map(|position| {
                    let (line, column) = line_and_column(place.text, position);
                    match (line, place.offset) {
                        (1, 0) => format!(" (at column {column})"),
                        (1, _) => format!(" (at column {column} of `{}`)", shown(place.text)),
                        _ => format!(" (at line {line}, column {column})"),
                    }
                });
                let message = format!("{}{}", fault.message, position.unwrap_or_default());
                findings.push(Finding::new(&place.pointer, fault.code, message));
            }
        }
    }
}

/// What is wrong with a path that an expression reads.
fn fault_of(
    map: &Map<'_>,
    place: &Place<'_>,
    path: &[String],
    doubtful: &BTreeSet<String>,
) -> Option<(&'static str, String)> {
    match path {
        [root, ..] if root == "vars" => {
            let message =
                "nothing sets `vars` yet, so it would always be empty; read `input` or the output of a step";
            Some(("workflow.unknown_field", message.to_owned()))
        }
        [root, field, ..] if root == "run" && !RUN_FIELDS.contains(&field.as_str()) => {
            let near = did_you_mean(field, RUN_FIELDS);
            let message = format!(
                "`run` has {}, not `{}`{near}",
                RUN_FIELDS.join(", "),
                shown(field)
            );
            Some(("workflow.unknown_field", message))
        }
        [root, name, rest @ ..] if root == "steps" => {
            let unseen = unseen_step(map, place, name, doubtful);
            if unseen.is_some() {
                return unseen;
            }
            let field = rest
                .first()
                .filter(|field| !STEP_FIELDS.contains(&field.as_str()))?;
            let meant = match nearest(field, STEP_FIELDS) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("did you mean `steps.{name}.output.{}`?", shown(field)),
            };
            let message = format!("a step has output, status and error; {meant}");
            Some(("workflow.unknown_field", message))
        }
        _ => None,
    }
}

/// Why the expression cannot read that step, if it cannot.
fn unseen_step(
    map: &Map<'_>,
    place: &Place<'_>,
    name: &str,
    doubtful: &BTreeSet<String>,
) -> Option<(&'static str, String)> {
    if doubtful.contains(name) {
        return None;
    }
    let Some((found, step)) = map.seats.get(name).copied() else {
        let near = did_you_mean(name, map.seats.keys().copied());
        return Some((
            "workflow.unknown_step",
            format!("there is no step `{}`{near}", shown(name)),
        ));
    };
    let (mut level, mut from) = place.seat?;
    if (found, step) == (level, from) {
        let message = format!("`{name}` has no output yet when this is asked");
        return (!place.is_after).then_some(("workflow.not_upstream", message));
    }
    // Outwards, until the level of that step is reached.
    while found != level {
        match map.levels[level].parent {
            Some((outer, scatter)) => (level, from) = (outer, scatter),
            None => {
                let message = format!(
                    "`{name}` stands {}, once for each branch; a gather collects what branches make",
                    where_is(map, found)
                );
                return Some(("workflow.not_upstream", message));
            }
        }
    }
    // In a circle nobody is first, and the circle is said already.
    if map.orders[level].is_err() || map.is_before(level, step, from) {
        return None;
    }
    let own = &map.levels[level].steps[from].name;
    let message = format!("no way of edges leads from `{name}` to `{own}`, so it may not have run by then");
    Some(("workflow.not_upstream", message))
}
