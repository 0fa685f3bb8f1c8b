//! Places among the runs of a definition and key: who asks for one is judged where it would begin, and who waits for one
//! begins in the commit that makes it free.

use crate::domain::payload::Payload;
use crate::domain::workflow::graph::build::Graph;
use crate::domain::workflow::graph::document::OnLimit;
use crate::domain::workflow::graph::history::{Retention, Transition};
use crate::domain::workflow::graph::key::ValueName;
use crate::domain::workflow::graph::key_limit::{self, KeyCount, KeyPlace, KeyStand, Verdict};
use crate::domain::workflow::run::{Run, RunEvent, RunState, StepState};
use crate::store::graph_rows::StoredFact;
use crate::store::{Abort, Rows, StoreError, Tx, graphs, key_limits, runs};
use crate::words::ids::RunId;
use crate::words::limits;
use crate::words::names::JobName;

/// What a run must pass before it begins, and what is written of it when it does not.
#[derive(Debug, Clone)]
pub struct Gate {
    on_limit: OnLimit,
    /// The run as it was accepted.
    pending: Run,
    /// What it takes over from another run.
    steps: Vec<StepState>,
    /// Its input, and what it takes over.
    values: Vec<(ValueName, Payload)>,
}

impl Gate {
    /// Of a run that is accepted and has not begun; none if its definition limits nothing.
    pub fn of(
        graph: &Graph,
        pending: Run,
        steps: Vec<StepState>,
        values: Vec<(ValueName, Payload)>,
    ) -> Option<Gate> {
        let on_limit = graph.document.concurrency.as_ref()?.on_limit;
        place_of(&pending)?;
        Some(Gate {
            on_limit,
            pending,
            steps,
            values,
        })
    }
}

fn place_of(run: &Run) -> Option<&KeyPlace> {
    run.graph.as_deref()?.key_place.as_ref()
}

/// Judges a run that would begin. `None`: it begins; else what was written of it.
pub fn pass(tx: &mut Tx<'_>, gate: &Gate) -> Result<Option<Run>, Abort> {
    let Some(place) = place_of(&gate.pending).cloned() else {
        return Ok(None);
    };
    let job = &gate.pending.definition;
    let count = key_limits::count(tx, job, &place.key)?;
    let above = holders_above(tx, &gate.pending, &place)?;
    let waits_above = u32::try_from(above.len()).unwrap_or(u32::MAX);
    let run = match key_limit::judge(place.limit, gate.on_limit, count, waits_above) {
        Verdict::Begins => return Ok(None),
        Verdict::Waits => wait(tx, gate, &place, count)?,
        Verdict::Replaces(wanted) => {
            replace(tx, gate, &place, &above, wanted)?;
            let waits = wait(tx, gate, &place, count)?;
            // One that waited under a smaller limit may have been in the way of others.
            advance(tx, &waits)?;
            runs::by_id(tx, waits.id)?.unwrap_or(waits)
        }
        Verdict::Skipped => {
            let holders = shown_holders(tx, job, &place.key)?;
            let reason = key_limit::skipped_reason(&place, &holders, count.holding);
            never(tx, gate, &RunEvent::Withdrawn(reason))?
        }
        Verdict::Deadlock => {
            let nearest = above.first().copied().unwrap_or(gate.pending.id);
            let reason = key_limit::deadlock_reason(&place, nearest);
            never(tx, gate, &RunEvent::Failed(reason))?
        }
        Verdict::Full => {
            let reason = key_limit::full_reason(&place, count.waiting);
            never(tx, gate, &RunEvent::Failed(reason))?
        }
    };
    Ok(Some(run))
}

/// Those who hold a place of the key, oldest first, as far as they are named.
pub fn shown_holders(rows: &mut impl Rows, job: &JobName, key: &str) -> Result<Vec<RunId>, StoreError> {
    let found = key_limits::holders(rows, job, key, limits::KEY_HOLDERS_SHOWN_MAX)?;
    Ok(found.into_iter().map(|(run, _)| run).collect())
}

/// The runs above this one that hold a place of the same key, the nearest first.
pub fn holders_above(rows: &mut impl Rows, run: &Run, place: &KeyPlace) -> Result<Vec<RunId>, StoreError> {
    let mut found = Vec::new();
    let mut parent = parent_of(run);
    for _ in 0..=limits::RUN_DEPTH_MAX {
        let Some(id) = parent else { break };
        let Some(above) = runs::by_id(rows, id)? else {
            break;
        };
        let is_same = key_limits::place_of(&above).is_some_and(|other| other.key == place.key);
        if is_same && above.definition == run.definition {
            found.push(id);
        }
        parent = parent_of(&above);
    }
    Ok(found)
}

fn parent_of(run: &Run) -> Option<RunId> {
    run.graph.as_deref()?.parent.as_ref().map(|(parent, _)| *parent)
}

/// Why a run has not begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitsForKey {
    /// The place that it waits for.
    pub place: KeyPlace,
    /// Those who hold one, oldest first, as far as they are named.
    pub holders: Vec<RunId>,
    /// How many do.
    pub holding: u32,
    /// How many wait longer.
    pub ahead: u64,
    /// The same for people.
    pub sentence: String,
}

/// Why a run has not begun; `None` for one that has, or is about to.
pub fn why(rows: &mut impl Rows, run: &Run) -> Result<Option<WaitsForKey>, StoreError> {
    let Some(place) = key_limits::place_of(run).cloned() else {
        return Ok(None);
    };
    let KeyStand::Waits { number, .. } = place.stand else {
        return Ok(None);
    };
    let count = key_limits::count(rows, &run.definition, &place.key)?;
    let holders = shown_holders(rows, &run.definition, &place.key)?;
    let ahead = key_limits::ahead(rows, &run.definition, &place.key, number)?;
    let sentence = key_limit::waits_sentence(&place, &holders, count.holding, ahead);
    Ok(Some(WaitsForKey {
        place,
        holders,
        holding: count.holding,
        ahead,
        sentence,
    }))
}

/// What a run's history says of it as a whole, counted in its header.
fn line_of(run: &mut Run, why: &str) -> Vec<Transition> {
    let word = run.state.word();
    let counts = run.graph.as_mut().map(|header| &mut header.history);
    let line = counts.map(|counts| counts.line(None, Retention::Pinned, word, why));
    line.into_iter().collect()
}

fn by_end(run: &Run) -> String {
    run.state.reason().unwrap_or_default().to_owned()
}

/// Writes a run that does not begin, and says why in its history.
fn put_aside(tx: &mut Tx<'_>, gate: &Gate, mut run: Run, why: &str) -> Result<Run, Abort> {
    let line = line_of(&mut run, why);
    runs::insert_graph(tx, &run)?;
    for (name, value) in &gate.values {
        graphs::put_value(tx, run.id, name, value.clone())?;
    }
    graphs::put_history(tx, &run, line, None)?;
    Ok(run)
}

/// Writes a run that waits for its turn, with all that it needs to begin later.
fn wait(tx: &mut Tx<'_>, gate: &Gate, place: &KeyPlace, count: KeyCount) -> Result<Run, Abort> {
    let number = tx.next_number("next_key_waiter")?;
    let stand = KeyStand::Waits {
        number,
        since: tx.now().wall,
        replaceable: gate.on_limit == OnLimit::Replace,
    };
    let run = standing(&gate.pending, stand);
    let holders = shown_holders(tx, &run.definition, &place.key)?;
    let sentence = key_limit::waits_sentence(place, &holders, count.holding, u64::from(count.waiting));
    let run = put_aside(tx, gate, run, &sentence)?;
    for step in &gate.steps {
        graphs::put_step(tx, &run, None, step)?;
    }
    Ok(run)
}

/// Writes a run that never begins.
fn never(tx: &mut Tx<'_>, gate: &Gate, event: &RunEvent) -> Result<Run, Abort> {
    let mut run = gate.pending.clone();
    run.record_version += 1;
    run.state = run
        .state
        .next(event, tx.now().wall)
        .expect("a pending run ends so");
    let reason = by_end(&run);
    put_aside(tx, gate, run, &reason)
}

fn standing(run: &Run, stand: KeyStand) -> Run {
    let mut run = run.clone();
    run.record_version += 1;
    let header = run.graph.as_deref_mut();
    if let Some(place) = header.and_then(|header| header.key_place.as_mut()) {
        place.stand = stand;
    }
    run
}

/// Tells older runs to end: holders first, then those that wait and may be replaced. Those above it stay: they wait for it.
fn replace(
    tx: &mut Tx<'_>,
    gate: &Gate,
    place: &KeyPlace,
    above: &[RunId],
    wanted: u32,
) -> Result<(), Abort> {
    let job = &gate.pending.definition;
    let mut left = wanted;
    if left > 0 {
        let most = usize::try_from(limits::CONCURRENCY_MAX).unwrap_or(usize::MAX);
        for (id, holder) in key_limits::holders(tx, job, &place.key, most)? {
            if left == 0 {
                break;
            }
            if !holder.leaves && !above.contains(&id) {
                give_way(tx, id, Some(KeyStand::Leaves), gate.pending.id)?;
                left -= 1;
            }
        }
    }
    if left > 0 {
        for (_, waiter) in key_limits::waiters(tx, job, &place.key, limits::KEY_WALK_MAX)? {
            if left == 0 {
                break;
            }
            if waiter.replaceable {
                give_way(tx, waiter.run, None, gate.pending.id)?;
                left -= 1;
            }
        }
    }
    Ok(())
}

/// Tells a run to end because of a newer one.
fn give_way(tx: &mut Tx<'_>, id: RunId, stand: Option<KeyStand>, newer: RunId) -> Result<(), Abort> {
    let Some(run) = runs::by_id(tx, id)? else {
        return Ok(());
    };
    let by = format!("{newer}, which takes its place");
    match stand {
        Some(stand) => {
            let leaving = standing(&run, stand);
            runs::replace(tx, &run, &leaving)?;
            graphs::append_fact(tx, &leaving, &StoredFact::Cancel { by })?;
        }
        // It has done nothing: it ends at once, and whoever waits for it hears of that.
        None => {
            let mut ended = run.clone();
            ended.record_version += 1;
            let event = RunEvent::Cancelled(format!("cancelled by {by}"));
            ended.state = run
                .state
                .next(&event, tx.now().wall)
                .expect("a pending run ends so");
            let line = line_of(&mut ended, &format!("cancelled by {by}"));
            runs::replace(tx, &run, &ended)?;
            graphs::put_history(tx, &ended, line, None)?;
            tell_parent(tx, &ended)?;
        }
    }
    Ok(())
}

/// Who waits for a run hears that it has ended.
pub fn tell_parent(tx: &mut Tx<'_>, run: &Run) -> Result<(), Abort> {
    let parent = run.graph.as_ref().and_then(|header| header.parent.clone());
    if let (true, Some((parent, step))) = (run.state.is_terminal(), parent)
        && let Some(parent) = runs::by_id(tx, parent)?.filter(|parent| !parent.state.is_terminal())
    {
        let fact = StoredFact::Child { step, run: run.id };
        graphs::append_fact(tx, &parent, &fact)?;
    }
    Ok(())
}

/// Lets those begin whose turn has come, after `run` has ended or begun: they hold their places from now, and their
/// first tick is made by whoever folds the fact.
pub fn advance(tx: &mut Tx<'_>, run: &Run) -> Result<(), Abort> {
    let Some(place) = place_of(run).cloned() else {
        return Ok(());
    };
    for _ in 0..limits::KEY_BEGINS_MAX {
        let count = key_limits::count(tx, &run.definition, &place.key)?;
        if count.waiting == 0 {
            break;
        }
        let head = key_limits::waiters(tx, &run.definition, &place.key, 1)?;
        let Some((_, head)) = head.into_iter().next() else {
            break;
        };
        if !key_limit::is_next(head.limit, count) {
            break;
        }
        let Some(waiting) = runs::by_id(tx, head.run)?.filter(|run| run.state == RunState::Pending) else {
            break;
        };
        let begins = standing(&waiting, KeyStand::Holds);
        runs::replace(tx, &waiting, &begins)?;
        graphs::append_fact(tx, &begins, &StoredFact::Begin)?;
    }
    Ok(())
}
