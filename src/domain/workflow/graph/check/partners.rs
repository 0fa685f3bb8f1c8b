//! What single steps need of others, and of the world: scatters, cases, slots, sub-workflows.

use std::collections::{BTreeMap, BTreeSet};

use super::levels::{Map, Seat};
use super::order::where_is;
use super::world::{Call, World, calls};
use crate::domain::workflow::graph::document::{Document, StepDoc};
use crate::domain::workflow::graph::finding::{Finding, did_you_mean, nearest};
use crate::domain::workflow::graph::kinds::{Body, Gather, GatherMode, StepKind, Subworkflow, Switch};
use crate::words::limits;

/// What a look at one step needs.
pub(super) struct Look<'a> {
    pub(super) document: &'a Document,
    pub(super) map: &'a Map<'a>,
    pub(super) world: &'a World,
    pub(super) doubtful: &'a BTreeSet<String>,
}

impl Look<'_> {
    pub(super) fn check(&self, findings: &mut Vec<Finding>) {
        for (number, level) in self.map.levels.iter().enumerate() {
            for (index, step) in level.steps.iter().enumerate() {
                let args = format!("{}/args", level.step_at(index));
                if let StepKind::Gather(gather) = &step.kind {
                    self.gather(gather, (number, index), &args, findings);
                } else if let StepKind::Switch(switch) = &step.kind {
                    self.switch(switch, (number, index), &args, findings);
                } else if let StepKind::Subworkflow(call) = &step.kind {
                    self.subworkflow(call, &args, findings);
                }
                self.slots(step, &format!("{}/slots", level.step_at(index)), findings);
            }
        }
    }

    fn gather(&self, gather: &Gather, seat: Seat, at: &str, findings: &mut Vec<Finding>) {
        let (number, index) = seat;
        let level = &self.map.levels[number];
        let from = gather.from.as_str();
        let mut refuse = |key: &str, message: String| {
            findings.push(Finding::new(
                format!("{at}/{key}"),
                "workflow.gather_without_scatter",
                message,
            ));
        };
        if self.doubtful.contains(from) {
            return;
        }
        let Some((found, scatter)) = self.map.seats.get(from).copied() else {
            let scatters = { level.steps.iter() }.filter(|step| matches!(step.kind, StepKind::Scatter(_)));
            let near = did_you_mean(from, scatters.map(|step| step.name.as_str()));
            return refuse("from", format!("there is no scatter `{from}`{near}"));
        };
        if found != number {
            let place = where_is(self.map, found);
            return refuse(
                "from",
                format!("`{from}` stands {place}; a gather stands beside its scatter"),
            );
        }
        let StepKind::Scatter(of) = &level.steps[scatter].kind else {
            return refuse("from", format!("`{from}` is no scatter"));
        };
        if self.map.orders[number].is_ok() && !self.map.is_before(number, scatter, index) {
            let name = &level.steps[index].name;
            refuse("from", format!("no way of edges leads from `{from}` to `{name}`"));
        }
        match &gather.step {
            Some(step) if !of.body.steps.iter().any(|inner| inner.name == *step) => {
                let near = did_you_mean(step.as_str(), of.body.steps.iter().map(|step| step.name.as_str()));
                refuse("step", format!("the body of `{from}` has no step `{step}`{near}"));
            }
            None if last_steps(&of.body).len() > 1 => {
                let names = last_steps(&of.body).join(", ");
                refuse(
                    "step",
                    format!(
                        "the body of `{from}` has several last steps ({names}): say in `step` which is meant"
                    ),
                );
            }
            Some(_) | None => {}
        }
        if gather.mode == GatherMode::Reduce && gather.with.is_none() {
            refuse("with", "`with` is missing".to_owned());
        }
    }

    fn switch(&self, switch: &Switch, seat: Seat, at: &str, findings: &mut Vec<Finding>) {
        let (number, index) = seat;
        let own = &self.map.levels[number].steps[index].name;
        let cases = switch.cases.iter().enumerate();
        let cases = cases.map(|(case, of)| (format!("{at}/cases/{case}/ref"), &of.target));
        let default = switch
            .default
            .iter()
            .map(|target| (format!("{at}/default"), target));
        for (at, target) in cases.chain(default) {
            let seat = self.map.seat_in(number, target.as_str());
            if seat.is_some_and(|seat| self.map.sources[number][seat].contains(&index)) {
                continue;
            }
            let message = match seat {
                Some(_) => format!("there is no edge from `{own}` to `{target}`"),
                None => {
                    let names = self.map.levels[number]
                        .steps
                        .iter()
                        .map(|step| step.name.as_str());
                    format!(
                        "there is no step `{target}`{}",
                        did_you_mean(target.as_str(), names)
                    )
                }
            };
            findings.push(Finding::new(at, "workflow.case_without_edge", message));
        }
    }

    fn slots(&self, step: &StepDoc, at: &str, findings: &mut Vec<Finding>) {
        let Some(demand) = &step.slots else { return };
        let wanted = &demand.slot_pool;
        match self.world.slot_pools.get(wanted) {
            None => {
                let known = self.world.slot_pools.keys().map(AsRef::as_ref);
                let message = match nearest(wanted.as_str(), known) {
                    Some(near) => format!("there is no slot pool '{wanted}'; did you mean '{near}'?"),
                    None => {
                        format!("there is no slot pool '{wanted}'; the configuration has them under `pools`")
                    }
                };
                findings.push(Finding::new(
                    format!("{at}/pool"),
                    "workflow.unknown_slot_pool",
                    message,
                ));
            }
            Some(slots) if demand.slots > *slots => {
                let message = format!(
                    "asks for {} slots, and slot pool '{wanted}' has {slots}",
                    demand.slots
                );
                findings.push(Finding::new(
                    format!("{at}/slots"),
                    "workflow.too_many_slots",
                    message,
                ));
            }
            Some(_) => {}
        }
    }

    fn subworkflow(&self, call: &Subworkflow, at: &str, findings: &mut Vec<Finding>) {
        let slug = &call.family_slug;
        let mut refuse = |key: &str, code: &'static str, message: String| {
            findings.push(Finding::new(format!("{at}/{key}"), code, message));
        };
        let is_own = *slug == self.document.family_slug && call.version.is_none();
        let family = self.world.families.get(slug);
        match (family, call.version) {
            _ if is_own => {}
            (None, _) => {
                let near = did_you_mean(slug, self.world.names.iter().map(String::as_str));
                let message = format!("there is no workflow `{slug}`{near}");
                return refuse("family_slug", "workflow.unknown_subworkflow", message);
            }
            (Some(family), None) if family.newest.is_none() => {
                let message =
                    format!("workflow `{slug}` has no published version that may begin; publish it first");
                return refuse("family_slug", "workflow.unknown_subworkflow", message);
            }
            (Some(family), Some(version)) => match family.versions.get(&version) {
                None => {
                    let message = format!("workflow `{slug}` has no version {version}");
                    return refuse("version", "workflow.unknown_subworkflow", message);
                }
                Some(found) if found.deprecated => {
                    let message = format!("version {version} of workflow `{slug}` is deprecated");
                    return refuse("version", "workflow.unknown_subworkflow", message);
                }
                Some(_) => {}
            },
            (Some(_), None) => {}
        }
        let mut way = vec![self.document.family_slug.clone()];
        if let Some(chain) = self.too_deep(&(slug.clone(), call.version), &mut way, &mut BTreeMap::new()) {
            let message = format!(
                "sub-workflows go deeper than {} levels: {}",
                limits::SUBWORKFLOW_DEPTH_MAX,
                chain.join(" -> ")
            );
            refuse("family_slug", "workflow.recursion", message);
        }
    }

    /// A chain of calls that is too long, if there is one. `known` are the levels at which a definition was looked at
    /// without one being found: deeper than that it must be looked at again.
    fn too_deep(
        &self,
        call: &Call,
        way: &mut Vec<String>,
        known: &mut BTreeMap<Call, usize>,
    ) -> Option<Vec<String>> {
        way.push(call.0.clone());
        let depth = way.len() - 1;
        if depth > limits::SUBWORKFLOW_DEPTH_MAX {
            let chain = way.clone();
            way.pop();
            return Some(chain);
        }
        if known.get(call).is_some_and(|seen| *seen >= depth) {
            way.pop();
            return None;
        }
        let inner = if call.0 == self.document.family_slug && call.1.is_none() {
            calls(self.document)
        } else {
            let family = self.world.families.get(&call.0);
            let version = call.1.or_else(|| family.and_then(|family| family.newest));
            let version = version.and_then(|version| family?.versions.get(&version));
            version.map(|version| version.calls.clone()).unwrap_or_default()
        };
        let found = inner.iter().find_map(|call| self.too_deep(call, way, known));
        if found.is_none() {
            known.insert(call.clone(), depth);
        }
        way.pop();
        found
    }
}

/// The names of the steps of a body that no other follows.
fn last_steps(body: &Body) -> Vec<&str> {
    let followed: BTreeSet<&str> = body.edges.iter().map(|edge| edge.source_ref.as_str()).collect();
    let names = body.steps.iter().map(|step| step.name.as_str());
    names.filter(|name| !followed.contains(name)).collect()
}
