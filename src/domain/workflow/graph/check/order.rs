//! What is wrong with names, edges and the order that they make.

use std::collections::BTreeSet;

use super::levels::{Level, Map};
use crate::domain::workflow::graph::finding::{Finding, did_you_mean, shown};
use crate::domain::workflow::graph::kinds::StepKind;
use crate::words::limits;

pub(super) fn check(map: &Map<'_>, findings: &mut Vec<Finding>) {
    sizes(map, findings);
    names(map, findings);
    for (number, level) in map.levels.iter().enumerate() {
        edges(map, number, level, findings);
        match &map.orders[number] {
            Ok(order) => unreachable(map, number, order, findings),
            Err(cycle) => {
                let mut refs: Vec<&str> = cycle
                    .iter()
                    .map(|step| level.steps[*step].name.as_str())
                    .collect();
                refs.extend(refs.first().copied());
                let message = format!("these steps wait for each other: {}", refs.join(" -> "));
                let at = cycle
                    .first()
                    .map_or_else(String::new, |step| level.step_at(*step));
                findings.push(Finding::new(at, "workflow.cycle", message));
            }
        }
    }
}

fn sizes(map: &Map<'_>, findings: &mut Vec<Finding>) {
    let steps: usize = map.levels.iter().map(|level| level.steps.len()).sum();
    let edges: usize = map.levels.iter().map(|level| level.edges.len()).sum();
    for (at, what, found, most) in [
        ("/steps", "steps", steps, limits::STEPS_MAX),
        ("/edges", "edges", edges, limits::EDGES_MAX),
    ] {
        if found > most {
            let message = format!("the definition has {found} {what}, and {most} are allowed");
            findings.push(Finding::new(at, "workflow.limit", message));
        }
    }
}

/// A name stands for one step in the whole definition, bodies included.
fn names(map: &Map<'_>, findings: &mut Vec<Finding>) {
    for (number, level) in map.levels.iter().enumerate() {
        for (index, step) in level.steps.iter().enumerate() {
            let name = step.name.as_str();
            let first = map.seats[name];
            if first != (number, index) {
                let place = map.levels[first.0].step_at(first.1);
                let message = format!("the step at {place} has the name `{name}` already");
                let at = format!("{}/ref", level.step_at(index));
                findings.push(Finding::new(at, "workflow.duplicate_ref", message));
            }
        }
    }
}

fn edges(map: &Map<'_>, number: usize, level: &Level<'_>, findings: &mut Vec<Finding>) {
    let mut seen = BTreeSet::new();
    for (index, edge) in level.edges.iter().enumerate() {
        let ends = [("source_ref", &edge.source_ref), ("target_ref", &edge.target_ref)];
        for (key, name) in ends {
            let at = format!("{}/{key}", level.edge_at(index));
            match map.seats.get(name.as_str()) {
                Some((found, _)) if *found == number => {}
                Some((found, _)) => {
                    let message = format!(
                        "`{name}` stands {}; an edge joins steps of one level",
                        where_is(map, *found)
                    );
                    findings.push(Finding::new(at, "workflow.edge_across_bodies", message));
                }
                None => {
                    let near = did_you_mean(name.as_str(), level.steps.iter().map(|step| step.name.as_str()));
                    let message = format!("there is no step `{}`{near}", shown(name.as_str()));
                    findings.push(Finding::new(at, "workflow.unknown_ref", message));
                }
            }
        }
        let same = (
            &edge.source_ref,
            &edge.target_ref,
            edge.kind.word(),
            &edge.condition,
        );
        if !seen.insert(same) {
            let message = format!(
                "there is such an edge from `{}` to `{}` already",
                edge.source_ref, edge.target_ref
            );
            findings.push(Finding::new(
                level.edge_at(index),
                "workflow.duplicate_edge",
                message,
            ));
        }
    }
}

/// In words: which level this is.
pub(super) fn where_is(map: &Map<'_>, number: usize) -> String {
    match map.levels[number].parent {
        None => "outside of the body".to_owned(),
        Some((level, scatter)) => format!("in the body of `{}`", map.levels[level].steps[scatter].name),
    }
}

/// Every edge into such a step comes from one that ends the run, or from a switch that never chooses it.
fn unreachable(map: &Map<'_>, number: usize, order: &[usize], findings: &mut Vec<Finding>) {
    let level = &map.levels[number];
    let mut dead = BTreeSet::new();
    for step in order {
        let sources = &map.sources[number][*step];
        let name = &level.steps[*step].name;
        let why = |source: &usize| {
            let from = &level.steps[*source];
            if dead.contains(source) {
                return Some(format!("neither is `{}`", from.name));
            }
            if let StepKind::Switch(switch) = &from.kind {
                let chooses = { switch.cases.iter() }.any(|case| case.target == *name)
                    || switch.default.as_ref() == Some(name);
                return (!chooses).then(|| format!("no case of `{}` chooses it", from.name));
            }
            let ends = matches!(from.kind, StepKind::Fail(_) | StepKind::Succeed(_));
            ends.then(|| format!("`{}` ends the run", from.name))
        };
        let reasons: Vec<Option<String>> = sources.iter().map(why).collect();
        if !reasons.is_empty() && reasons.iter().all(Option::is_some) {
            let reasons: Vec<String> = reasons.into_iter().flatten().collect();
            let message = format!("`{name}` is never reached: {}", reasons.join(", "));
            findings.push(Finding::new(
                level.step_at(*step),
                "workflow.unreachable",
                message,
            ));
            dead.insert(*step);
        }
    }
}
