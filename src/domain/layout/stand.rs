//! How the steps of a run stand in its picture: one state for each box, counts where a step is executed once for each
//! item, and which edges were taken. None of it moves anything.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::domain::workflow::graph::document::{Document, EdgeDoc, EdgeKind, OnError, StepDoc};
use crate::domain::workflow::graph::kinds::StepKind;
use crate::domain::workflow::graph::state::WaitsFor;
use crate::domain::workflow::run::{StepPhase, StepState};

use super::definition::steps_of;

/// What is known of a run.
#[derive(Debug)]
pub struct Known<'a> {
    /// Its steps that are there; all of them, or those outside of scatters alone.
    pub steps: &'a [StepState],
    /// `steps` has the branches of scatters too.
    pub is_whole: bool,
    /// It has ended.
    pub has_ended: bool,
    /// What switches have chosen, and of how many items ended scatters were, by the names of the steps.
    pub outputs: &'a BTreeMap<String, Value>,
}

/// How one box stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stand {
    /// The word of its state; `None` when the run has ended without it.
    pub state: Option<&'static str>,
    /// Of a step that stands for several.
    pub branches: Option<Counts>,
}

/// Branches by what became of them; the rest has not begun or was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// All.
    pub total: u32,
    /// Those that succeeded.
    pub succeeded: u32,
    /// Those that failed.
    pub failed: u32,
    /// Those that have begun and not ended.
    pub running: u32,
}

/// How all boxes and edges of a run stand.
#[derive(Debug, Default)]
pub struct Stands<'a> {
    boxes: BTreeMap<&'a str, Stand>,
    top: BTreeMap<&'a str, &'a StepState>,
    docs: BTreeMap<&'a str, &'a StepDoc>,
    outputs: BTreeMap<&'a str, &'a Value>,
    incoming: BTreeMap<&'a str, usize>,
}

/// The executions of one step of a body.
#[derive(Default)]
struct Executions {
    counts: Counts,
    skipped: u32,
}

impl Executions {
    fn add(&mut self, phase: &StepPhase) {
        self.counts.total += 1;
        match phase {
            StepPhase::Succeeded { .. } => self.counts.succeeded += 1,
            StepPhase::Failed { .. } | StepPhase::UpstreamFailed { .. } | StepPhase::Cancelled { .. } => {
                self.counts.failed += 1;
            }
            StepPhase::Skipped { .. } => self.skipped += 1,
            StepPhase::Ready { .. }
            | StepPhase::Queued { .. }
            | StepPhase::Running { .. }
            | StepPhase::Retrying { .. }
            | StepPhase::Waiting { .. }
            | StepPhase::Held { .. } => self.counts.running += 1,
        }
    }

    /// One word for all of them, of which there will be `total`.
    fn word(&self, total: u32) -> &'static str {
        let ended = self.counts.succeeded + self.counts.failed + self.skipped;
        if ended < total {
            return "running";
        }
        match self.counts {
            Counts { failed: 1.., .. } => "failed",
            Counts { succeeded: 1.., .. } => "succeeded",
            _ => "skipped",
        }
    }
}

impl<'a> Stands<'a> {
    /// Of a run of a document.
    pub fn of(document: &'a Document, known: &Known<'a>) -> Stands<'a> {
        let mut stands = Stands::default();
        for step in steps_of(document) {
            stands.docs.insert(step.name.as_str(), step);
        }
        for edge in &document.edges {
            *stands.incoming.entry(edge.target_ref.as_str()).or_default() += 1;
        }
        for (name, value) in known.outputs {
            stands.outputs.insert(name, value);
        }
        let mut inside: BTreeMap<&str, Executions> = BTreeMap::new();
        let mut failed: BTreeSet<(&str, &str)> = BTreeSet::new();
        let around = scatters(document);
        for state in known.steps {
            let name = state.step.as_str();
            let (base, path) = name.split_once('#').unwrap_or((name, ""));
            let Some((&base, _)) = stands.docs.get_key_value(base) else {
                continue;
            };
            if path.is_empty() {
                stands.top.insert(base, state);
                continue;
            }
            inside.entry(base).or_default().add(&state.phase);
            let is_bad = matches!(
                state.phase,
                StepPhase::Failed { .. } | StepPhase::Cancelled { .. }
            );
            let branch = path.split('#').next().unwrap_or(path);
            if let Some(scatter) = around.get(base).filter(|_| is_bad) {
                failed.insert((scatter, branch));
            }
        }
        for step in &document.steps {
            let name = step.name.as_str();
            let stand = stands.outer(
                step,
                known,
                count(failed.iter().filter(|(scatter, _)| *scatter == name)),
            );
            stands.boxes.insert(name, stand);
        }
        for (name, scatter) in around {
            let total = stands
                .boxes
                .get(scatter)
                .and_then(|stand| stand.branches)
                .map(|branches| branches.total);
            let stand = inner(inside.get(name), total, known);
            stands.boxes.insert(name, stand);
        }
        stands
    }

    fn outer(&self, step: &StepDoc, known: &Known<'_>, failed: u32) -> Stand {
        let name = step.name.as_str();
        let Some(state) = self.top.get(name) else {
            return unreached(known);
        };
        let branches = match (&state.phase, &step.kind) {
            (
                StepPhase::Waiting {
                    on: WaitsFor::Branches(branches),
                    ..
                },
                _,
            ) => Some(Counts {
                total: branches.total,
                succeeded: branches.succeeded,
                failed: branches.failed,
                running: branches.open(),
            }),
            (phase, StepKind::Scatter(_)) if phase.ended_at().is_some() && known.is_whole => {
                let total = self.outputs.get(name).and_then(|total| total.as_u64());
                total.map(|total| {
                    let total = u32::try_from(total).unwrap_or(u32::MAX);
                    let succeeded = total.saturating_sub(failed);
                    Counts {
                        total,
                        succeeded,
                        failed,
                        running: 0,
                    }
                })
            }
            _ => None,
        };
        Stand {
            state: Some(state.phase.word()),
            branches,
        }
    }

    /// How a box stands.
    pub fn of_step(&self, name: &str) -> Stand {
        self.boxes.get(name).copied().unwrap_or_default()
    }

    /// Whether an edge was taken; `None` as long as that is open, and inside of bodies, where it differs by branch.
    pub fn taken(&self, edge: &EdgeDoc) -> Option<bool> {
        let (from, to) = (edge.source_ref.as_str(), edge.target_ref.as_str());
        let source = self.top.get(from)?;
        source.phase.ended_at()?;
        let doc = self.docs.get(from)?;
        let failed = matches!(source.phase, StepPhase::Failed { .. });
        let succeeded = matches!(source.phase, StepPhase::Succeeded { .. })
            || failed && doc.on_error == OnError::Continue;
        if let (StepKind::Switch(switch), true) = (&doc.kind, succeeded) {
            let is_choice = switch.cases.iter().any(|case| case.target.as_str() == to)
                || switch
                    .default
                    .as_ref()
                    .is_some_and(|default| default.as_str() == to);
            let chosen = self.outputs.get(from).and_then(|chosen| chosen.as_str());
            if is_choice && chosen != Some(to) {
                return Some(false);
            }
        }
        match edge.kind {
            EdgeKind::Success => Some(succeeded),
            EdgeKind::Failure => Some(failed),
            EdgeKind::Always => Some(true),
            EdgeKind::Condition if !succeeded => Some(false),
            // What a condition said is not kept; where it alone decided, the target tells.
            EdgeKind::Condition => {
                let target = self.top.get(to).filter(|_| self.incoming.get(to) == Some(&1))?;
                Some(!matches!(target.phase, StepPhase::Skipped { .. }))
            }
        }
    }
}

/// Each step of a body with the outermost scatter around it.
fn scatters(document: &Document) -> BTreeMap<&str, &str> {
    fn add<'a>(steps: &'a [StepDoc], outermost: Option<&'a str>, all: &mut BTreeMap<&'a str, &'a str>) {
        for step in steps {
            if let Some(outermost) = outermost {
                all.insert(step.name.as_str(), outermost);
            }
            if let StepKind::Scatter(scatter) = &step.kind {
                add(&scatter.body.steps, outermost.or(Some(step.name.as_str())), all);
            }
        }
    }
    let mut all = BTreeMap::new();
    add(&document.steps, None, &mut all);
    all
}

fn unreached(known: &Known<'_>) -> Stand {
    Stand {
        state: (!known.has_ended).then_some("pending"),
        branches: None,
    }
}

/// A step of a body; `total` branches will execute it, if that is known.
fn inner(executions: Option<&Executions>, total: Option<u32>, known: &Known<'_>) -> Stand {
    let Some(executions) = executions.filter(|_| known.is_whole) else {
        return if known.is_whole {
            unreached(known)
        } else {
            Stand::default()
        };
    };
    let total = total.unwrap_or(0).max(executions.counts.total);
    let expected = if known.has_ended {
        executions.counts.total
    } else {
        total
    };
    Stand {
        state: Some(executions.word(expected)),
        branches: Some(Counts {
            total,
            ..executions.counts
        }),
    }
}

fn count<T>(items: impl Iterator<Item = T>) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::workflow::graph::state::{Branches, GraphStep};
    use crate::words::names::StepRef;
    use crate::words::time::Millis;

    fn document() -> Document {
        serde_json::from_value(json!({
            "family_slug": "d", "title": "D",
            "steps": [
                {"ref": "choose", "type": "STEP_TYPE_SWITCH", "args": {"cases": [{"when": "true", "ref": "each"}], "default": "other"}},
                {"ref": "each", "type": "STEP_TYPE_SCATTER", "args": {"items": "[1]", "body": {"steps": [{"ref": "one", "type": "STEP_TYPE_TASK", "args": {"queue": "q"}}, {"ref": "two", "type": "STEP_TYPE_WAIT", "args": {"duration": "1s"}}]}}},
                {"ref": "other", "type": "STEP_TYPE_WAIT", "args": {"duration": "1s"}},
                {"ref": "alarm", "type": "STEP_TYPE_WAIT", "args": {"duration": "1s"}}],
            "edges": [
                {"source_ref": "choose", "target_ref": "each"}, {"source_ref": "choose", "target_ref": "other"},
                {"source_ref": "each", "target_ref": "alarm", "type": "EDGE_TYPE_FAILURE"}]
        }))
        .unwrap()
    }

    fn step(name: &str, phase: StepPhase) -> StepState {
        StepState {
            step: StepRef::new(name).unwrap(),
            attempt: 1,
            deaths: 0,
            phase,
            graph: Some(GraphStep::reached(Millis(1))),
        }
    }

    fn good() -> StepPhase {
        StepPhase::Succeeded { ended_at: Millis(2) }
    }

    fn bad() -> StepPhase {
        StepPhase::Failed {
            ended_at: Millis(2),
            reason: "exit code 1".to_owned(),
        }
    }

    #[test]
    fn boxes_have_one_state_and_bodies_have_counts() {
        let document = document();
        let branches = Branches {
            total: 4,
            begun: 3,
            succeeded: 1,
            failed: 1,
        };
        let steps = [
            step("choose", good()),
            step(
                "each",
                StepPhase::Waiting {
                    since: Millis(1),
                    on: WaitsFor::Branches(branches),
                },
            ),
            step("one#0", good()),
            step("one#1", bad()),
            step("one#2", StepPhase::Ready { since: Millis(1) }),
            step(
                "two#0",
                StepPhase::Skipped {
                    ended_at: Millis(2),
                    reason: String::new(),
                },
            ),
        ];
        let outputs = BTreeMap::from([("choose".to_owned(), json!("each"))]);
        let known = Known {
            steps: &steps,
            is_whole: true,
            has_ended: false,
            outputs: &outputs,
        };
        let stands = Stands::of(&document, &known);
        let of = |name| stands.of_step(name);
        assert_eq!(
            of("choose"),
            Stand {
                state: Some("succeeded"),
                branches: None
            }
        );
        assert_eq!(
            of("each"),
            Stand {
                state: Some("running"),
                branches: Some(Counts {
                    total: 4,
                    succeeded: 1,
                    failed: 1,
                    running: 1
                })
            }
        );
        assert_eq!(
            of("one"),
            Stand {
                state: Some("running"),
                branches: Some(Counts {
                    total: 4,
                    succeeded: 1,
                    failed: 1,
                    running: 1
                })
            }
        );
        assert_eq!(
            of("two"),
            Stand {
                state: Some("running"),
                branches: Some(Counts {
                    total: 4,
                    ..Counts::default()
                })
            }
        );
        assert_eq!(of("alarm").state, Some("pending"));
        let taken: Vec<Option<bool>> = document.edges.iter().map(|edge| stands.taken(edge)).collect();
        assert_eq!(taken, [Some(true), Some(false), None]);
    }

    #[test]
    fn what_an_ended_run_did_not_reach_has_no_state() {
        let document = document();
        let steps = [
            step("choose", good()),
            step("each", bad()),
            step("one#0", good()),
            step("one#1", bad()),
        ];
        let outputs = BTreeMap::from([
            ("choose".to_owned(), json!("each")),
            ("each".to_owned(), json!(2)),
        ]);
        let known = Known {
            steps: &steps,
            is_whole: true,
            has_ended: true,
            outputs: &outputs,
        };
        let stands = Stands::of(&document, &known);
        assert_eq!(
            stands.of_step("each"),
            Stand {
                state: Some("failed"),
                branches: Some(Counts {
                    total: 2,
                    succeeded: 1,
                    failed: 1,
                    running: 0
                })
            }
        );
        assert_eq!(stands.of_step("one").state, Some("failed"));
        assert_eq!(stands.of_step("two"), Stand::default());
        assert_eq!(stands.of_step("other"), Stand::default());
        assert_eq!(stands.taken(&document.edges[2]), Some(true));
        let part = Known {
            steps: &steps[..2],
            is_whole: false,
            has_ended: true,
            outputs: &outputs,
        };
        assert_eq!(
            Stands::of(&document, &part).of_step("one"),
            Stand::default(),
            "not counted, not guessed"
        );
    }
}
