//! The lives of the steps of a graph's run, for its timeline: each step from when it was reached, with its waits and attempts.

use std::collections::BTreeMap;

use super::timeline::{past, waits_for};
use crate::domain::layout;
use crate::domain::workflow::attempt::Outcome;
use crate::domain::workflow::definition::Definition;
use crate::domain::workflow::graph::document::Document;
use crate::domain::workflow::graph::kinds::StepKind;
use crate::domain::workflow::run::{Run, RunState, StepPhase, StepState};
use crate::domain::workflow::step_lines::{StepLine, chosen};
use crate::domain::workflow::timeline::{History, Segment, SegmentKind, Standing, Timeline, timeline};
use crate::engine::book::Book;
use crate::store::tables::{LIVE_ATTEMPTS, STEPS};
use crate::store::{Rows, StoreError, entries, runs};
use crate::words::ids::{RunId, TenantId};
use crate::words::limits;
use crate::words::names::SlotPoolName;
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;

/// What is told of a run of a graph.
pub(super) struct Lives {
    pub(super) run: Timeline,
    /// In the order in which they were reached, with their titles.
    pub(super) steps: Vec<(StepLine, String)>,
    pub(super) more: usize,
}

/// What is said of a step in its definition.
#[derive(Default)]
struct Said {
    order: usize,
    title: String,
    slot_pool: Option<SlotPoolName>,
    /// Other steps or another run do its work.
    is_around: bool,
}

/// The lives of a run and of its steps until `now`.
pub(super) fn of_run(
    rows: &mut impl Rows,
    book: &Book,
    (run, definition): (&Run, Option<&Definition>),
    now: Millis,
) -> Result<Lives, StoreError> {
    let document = definition.and_then(|definition| definition.graph.as_deref());
    let said = document.map(said_of).unwrap_or_default();
    let mut lines = Vec::new();
    for step in steps(rows, run.id, document)? {
        let base = step.step.as_str().split('#').next().unwrap_or_default();
        let of_step = said.get(base);
        let line = life(rows, book, (run, &step), of_step, now)?;
        lines.push(StepLine {
            step: step.step.to_string(),
            order: of_step.map_or(0, |said| said.order),
            state: step.phase.word(),
            line,
        });
    }
    let (lines, more) = chosen(lines, limits::TIMELINE_STEPS_MAX);
    let title = |line: &StepLine| {
        let (base, place) = line.step.split_once('#').unwrap_or((&line.step, ""));
        let title = said.get(base).map_or(base, |said| said.title.as_str());
        if place.is_empty() {
            title.to_owned()
        } else {
            format!("{title} {}", place.replace('#', ", "))
        }
    };
    let steps = lines.into_iter().map(|line| {
        let title = title(&line);
        (line, title)
    });
    Ok(Lives {
        run: whole(run, now),
        steps: steps.collect(),
        more,
    })
}

fn said_of(document: &Document) -> BTreeMap<String, Said> {
    let steps = layout::steps_of(document).into_iter();
    let said = steps.enumerate().map(|(order, step)| {
        let is_around = matches!(step.kind, StepKind::Scatter(_) | StepKind::Subworkflow(_));
        let said = Said {
            order,
            title: layout::title_of(step).to_owned(),
            slot_pool: step.slots.as_ref().map(|demand| demand.slot_pool.clone()),
            is_around,
        };
        (step.name.to_string(), said)
    });
    said.collect()
}

/// All steps of a run if they are not too many, else those outside of scatters.
fn steps(rows: &mut impl Rows, id: RunId, document: Option<&Document>) -> Result<Vec<StepState>, StoreError> {
    let found = rows.scan(&STEPS, &(TENANT, id), None, limits::TIMELINE_STEPS_MAX + 1)?;
    let (true, Some(document)) = (found.len() > limits::TIMELINE_STEPS_MAX, document) else {
        return Ok(found.into_iter().map(|(_, step)| step).collect());
    };
    let mut outer = Vec::with_capacity(document.steps.len());
    for step in &document.steps {
        outer.extend(runs::step(rows, id, &step.name)?);
    }
    Ok(outer)
}

fn life(
    rows: &mut impl Rows,
    book: &Book,
    (run, step): (&Run, &StepState),
    said: Option<&Said>,
    now: Millis,
) -> Result<Timeline, StoreError> {
    let (past, omitted) = past(rows, run.id, &step.step, limits::TIMELINE_STEP_ATTEMPTS_MAX)?;
    let begun = past.first().map(|past| past.attempt.started_at);
    let reached = step.graph.as_ref().map(|graph| graph.reached_at);
    let history = History {
        // What was taken over from another run was reached there.
        created_at: reached.or(begun).unwrap_or(run.created_at),
        trigger: run.trigger.clone(),
        slot_pool: said.and_then(|said| said.slot_pool.clone()),
        attempt: step.attempt,
        past,
        omitted,
        queued_at: BTreeMap::new(),
        retry: None,
        standing: standing(rows, book, run, step, now)?,
    };
    let mut line = timeline(&history, now);
    if said.is_some_and(|said| said.is_around) {
        let outcome = match &step.phase {
            StepPhase::Succeeded { .. } => Some(Outcome::Succeeded),
            StepPhase::Failed { .. } => Some(Outcome::Failed),
            StepPhase::Cancelled { .. } => Some(Outcome::Cancelled),
            StepPhase::Ready { .. }
            | StepPhase::Queued { .. }
            | StepPhase::Running { .. }
            | StepPhase::Retrying { .. }
            | StepPhase::Waiting { .. }
            | StepPhase::Held { .. }
            | StepPhase::Skipped { .. }
            | StepPhase::UpstreamFailed { .. } => None,
        };
        for segment in &mut line.segments {
            segment.kind = SegmentKind::Running;
            segment.outcome = outcome;
        }
    }
    Ok(line)
}

fn standing(
    rows: &mut impl Rows,
    book: &Book,
    run: &Run,
    step: &StepState,
    now: Millis,
) -> Result<Standing, StoreError> {
    let phase = &step.phase;
    if let Some(at) = phase.ended_at() {
        let text = match phase.reason().filter(|why| !why.is_empty()) {
            Some(why) => format!("{}: {why}", phase.word()),
            None => phase.word().to_owned(),
        };
        return Ok(Standing::Ended { at, text });
    }
    Ok(match phase {
        StepPhase::Retrying { due, refused, .. } => Standing::BackOff {
            due: *due,
            refused: refused.clone(),
        },
        StepPhase::Running { started_at, .. } => {
            let live = rows.get(&LIVE_ATTEMPTS, &(TENANT, run.id, step.step.clone()))?;
            Standing::Running {
                since: *started_at,
                node: live.map_or_else(|| book.node.clone(), |live| live.claim.node),
                limit_ms: None,
            }
        }
        StepPhase::Queued { since, entry } => Standing::Queued {
            since: *since,
            text: waits_for(rows, (book, now), run, step)?,
            until: entries::by_seq(rows, *entry)?.map(|entry| entry.expires_at),
        },
        StepPhase::Ready { since } | StepPhase::Waiting { since, .. } | StepPhase::Held { since } => {
            Standing::Queued {
                since: *since,
                text: waits_for(rows, (book, now), run, step)?,
                until: None,
            }
        }
        StepPhase::Succeeded { ended_at }
        | StepPhase::Failed { ended_at, .. }
        | StepPhase::Skipped { ended_at, .. }
        | StepPhase::UpstreamFailed { ended_at, .. }
        | StepPhase::Cancelled { ended_at, .. } => Standing::Ended {
            at: *ended_at,
            text: phase.word().to_owned(),
        },
    })
}

/// The run itself as one piece, with its marks.
fn whole(run: &Run, now: Millis) -> Timeline {
    let ended = run.state.ended_at();
    let word = run.state.word();
    let text = run
        .state
        .reason()
        .map_or_else(|| word.to_owned(), |why| format!("{word}: {why}"));
    let history = History {
        created_at: run.created_at,
        trigger: run.trigger.clone(),
        slot_pool: None,
        attempt: 1,
        past: Vec::new(),
        omitted: 0,
        queued_at: BTreeMap::new(),
        retry: None,
        standing: match ended {
            Some(at) => Standing::Ended {
                at,
                text: text.clone(),
            },
            None => Standing::Queued {
                since: run.created_at,
                text: text.clone(),
                until: None,
            },
        },
    };
    let line = timeline(&history, now);
    let piece = Segment {
        kind: SegmentKind::Running,
        attempt: 1,
        from: line.from,
        to: ended.map(|_| line.to),
        outcome: match &run.state {
            RunState::Succeeded { .. } => Some(Outcome::Succeeded),
            RunState::Failed { .. } => Some(Outcome::Failed),
            RunState::TimedOut { .. } => Some(Outcome::TimedOut),
            RunState::Cancelled { .. } => Some(Outcome::Cancelled),
            RunState::Pending
            | RunState::Running { .. }
            | RunState::Paused { .. }
            | RunState::Skipped { .. } => None,
        },
        node: None,
        text,
    };
    Timeline {
        segments: vec![piece],
        ..line
    }
}
