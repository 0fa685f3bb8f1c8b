//! Ticks of runs, written: the ticks of several runs are computed from one snapshot and are one change, with what is claimed in
//! it for processes, for the program itself and for remote workers that wait.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::changes::claim::Passed;
use super::changes::complete::{self, Holder};
use super::changes::fold::{self, Desk, Posted};
use super::changes::graph::{self, Applied, Moved, Ready};
use super::changes::refused;
use super::changes::tasks::{self, ClaimedTask, TaskPass};
use super::core::Engine;
use super::mailbox::{Ask, Ended, Letter, Waiter};
use super::runner::{self, Quick};
use crate::domain::slots::entry::reason;
use crate::domain::workflow::graph::key::{Key, ValueName};
use crate::domain::workflow::graph::lines::INTERNAL_QUEUE;
use crate::domain::workflow::graph::tick::{Fact, Taken};
use crate::store::{Abort, ChangeError, ReadTx, StoreError, Tx, graphs};
use crate::words::ids::RunId;
use crate::words::limits;
use crate::worker::command::Stop;

/// What is claimed for somebody.
pub fn pass_of(engine: &Engine, ask: &Ask) -> TaskPass {
    TaskPass {
        node: engine.node.clone(),
        place: engine.place.clone(),
        queue: ask.queue.clone(),
        worker: ask.worker.clone(),
        max: ask.max,
        shelf: engine.graphs.clone(),
        turns: engine.turns.clone(),
    }
}

/// Workers that wait, and the change that makes their tasks ready.
#[derive(Debug)]
pub struct Meeting {
    waiters: Vec<Waiter>,
    passes: Arc<Vec<TaskPass>>,
}

impl Meeting {
    /// With the workers that wait for these queues.
    pub fn of(engine: &Engine, queues: &BTreeMap<String, usize>) -> Meeting {
        let waiters = engine.waiting_workers.take(queues);
        let passes = waiters
            .iter()
            .map(|waiter| pass_of(engine, &waiter.ask))
            .collect();
        Meeting {
            waiters,
            passes: Arc::new(passes),
        }
    }

    /// What they ask for, for the change.
    pub fn passes(&self) -> Arc<Vec<TaskPass>> {
        Arc::clone(&self.passes)
    }

    /// The change is written: each gets its tasks. Who got none waits on; who has gone meanwhile gives them back.
    pub fn hand_over(self, engine: &Engine, met: Met) {
        let mut left = Vec::new();
        for (waiter, tasks) in self.waiters.into_iter().zip(met.claimed) {
            if tasks.is_empty() {
                left.push(waiter);
            } else if let Err(tasks) = waiter.reply.send(tasks) {
                tokio::spawn(give_back(engine.clone(), tasks));
            }
        }
        engine.waiting_workers.put_back(left);
        // Whoever looked at a queue while the change was under way may have seen it empty.
        if met.left_tasks {
            engine.mailboxes.tasks.notify_waiters();
        }
        if met.left_requests {
            engine.mailboxes.requests.notify_waiters();
        }
    }
}

/// What was claimed for those who wait.
#[derive(Debug)]
pub struct Met {
    claimed: Vec<Vec<ClaimedTask>>,
    /// There is more than remote workers took.
    left_tasks: bool,
    /// There is more than this program took.
    left_requests: bool,
}

/// Claims for those who wait, inside the change that makes steps ready in `queues`.
pub fn meet(tx: &mut Tx<'_>, passes: &[TaskPass], queues: &BTreeMap<String, usize>) -> Result<Met, Abort> {
    let claimed = passes.iter().map(|pass| tasks::claim(tx, pass));
    let mut met = Met {
        claimed: claimed.collect::<Result<Vec<_>, _>>()?,
        left_tasks: false,
        left_requests: false,
    };
    for queue in queues.keys() {
        let is_left = if queue == INTERNAL_QUEUE {
            &mut met.left_requests
        } else {
            &mut met.left_tasks
        };
        *is_left = *is_left || tasks::is_waiting(tx, queue)?;
    }
    Ok(met)
}

/// Nobody took them over: they go back where they stood.
pub async fn give_back(engine: Engine, tasks: Vec<ClaimedTask>) {
    let holders: Vec<Holder> = tasks.iter().map(ClaimedTask::holder).collect();
    let changed = engine.store.change("tasks back", move |tx| {
        for holder in &holders {
            complete::put_back(tx, holder, reason::LAUNCH_INTERRUPTED, false, None)?;
        }
        Ok(())
    });
    if let Err(error) = changed.await {
        tracing::debug!(cause = %error, "tasks that nobody took are put back when their time is over");
    }
    engine.mailboxes.tasks.notify_waiters();
}

/// What was posted to one run.
#[derive(Debug)]
pub struct Bundle {
    /// The run.
    pub run: RunId,
    /// Letters.
    pub letters: Vec<Letter>,
    /// Timers that are due.
    pub timers: Vec<Fact>,
}

/// What became of a bundle.
#[derive(Debug)]
pub enum Stepped {
    /// It is written, and its letters are answered.
    Done,
    /// The run has moved meanwhile: these are to be folded again.
    Moved(Vec<Letter>),
    /// It could not be read or written.
    Failed(Vec<Letter>, String),
}

/// What became of several bundles, in their order, and what was claimed in the same commit.
#[derive(Debug)]
pub struct Stepping {
    /// What became of each.
    pub stepped: Vec<Stepped>,
    claimed: Vec<ClaimedTask>,
    /// True when the claims were asked for in a commit that is written.
    asked: bool,
}

/// Folds what a worker posts to several runs at once, and claims what it asks for, all in one commit. Runs that somebody
/// works on at this moment get their letters in the usual way, a moment later. True when the claims were asked for.
pub async fn deliver(
    engine: &Engine,
    letters: Vec<(RunId, Letter)>,
    pass: Option<TaskPass>,
) -> (Vec<ClaimedTask>, bool) {
    let mut by_run: BTreeMap<RunId, Vec<Letter>> = BTreeMap::new();
    for (run, letter) in letters {
        by_run.entry(run).or_default().push(letter);
    }
    let mut bundles = Vec::new();
    for (run, letters) in by_run {
        if engine.mailboxes.begin(run) {
            let (mut all, timers) = engine.mailboxes.take(run);
            all.extend(letters);
            bundles.push(Bundle {
                run,
                letters: all,
                timers,
            });
        } else {
            for letter in letters {
                engine.mailboxes.post(run, letter);
            }
        }
    }
    if bundles.is_empty() && pass.is_none() {
        return (Vec::new(), false);
    }
    let runs: Vec<RunId> = bundles.iter().map(|bundle| bundle.run).collect();
    let done = step(engine, bundles, pass).await;
    take_back(engine, runs, done.stepped);
    (done.claimed, done.asked)
}

/// The letters of runs that could not be moved go back into their mailboxes, and all are free again. One that failed is left
/// alone for a moment.
pub fn take_back(engine: &Engine, runs: Vec<RunId>, stepped: Vec<Stepped>) {
    for (run, stepped) in runs.into_iter().zip(stepped) {
        match stepped {
            Stepped::Done => {}
            Stepped::Moved(letters) => engine.mailboxes.put_back(run, letters),
            Stepped::Failed(letters, error) => {
                tracing::warn!(run_id = %run, cause = %error, "this run could not be moved; it is tried again");
                let is_urgent = !letters.is_empty();
                engine.mailboxes.put_back(run, letters);
                if is_urgent {
                    tokio::spawn(rest(engine.clone(), run));
                    continue;
                }
            }
        }
        engine.mailboxes.done(run);
    }
}

async fn rest(engine: Engine, run: RunId) {
    tokio::time::sleep(Duration::from_millis(limits::TICK_AGAIN_MS)).await;
    engine.mailboxes.done(run);
}

/// A run's tick that is computed, with the answers to its letters.
struct Folded {
    place: usize,
    moved: Moved,
    answers: Vec<Taken>,
}

/// Reads with what a tick needs at hand.
pub async fn at_desk<T: Send + 'static>(
    engine: &Engine,
    mut read: impl FnMut(&mut ReadTx, &Desk<'_>) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let (for_read, blobs) = (engine.clone(), engine.store.blobs());
    let reading = engine.read(move |tx| {
        let desk = Desk {
            shelf: &for_read.graphs,
            blobs: &blobs,
            now: for_read.now().wall,
            rules: for_read.rules(),
        };
        read(tx, &desk)
    });
    reading.await
}

/// One tick for each bundle, all of them in one change.
pub async fn step(engine: &Engine, bundles: Vec<Bundle>, pass: Option<TaskPass>) -> Stepping {
    let (found, bundles) = fold_all(engine, bundles).await;
    let mut results: Vec<Option<Result<bool, String>>> = Vec::with_capacity(bundles.len());
    let mut folded = Vec::new();
    for (place, (found, bundle)) in found.into_iter().zip(&bundles).enumerate() {
        match found {
            Err(error) => results.push(Some(Err(error))),
            Ok(None) => results.push(None),
            Ok(Some((moved, stored))) => {
                results.push(Some(Ok(false)));
                folded.push(answered(place, moved, stored, &bundle.letters));
            }
        }
    }
    let (places, answers): (Vec<usize>, Vec<Vec<Taken>>) = folded
        .iter()
        .map(|each| (each.place, each.answers.clone()))
        .unzip();
    let all: Vec<Moved> = folded.into_iter().map(|each| each.moved).collect();
    let (written, claimed, asked) = write_all(engine, all, pass).await;
    for (place, written) in places.iter().zip(written) {
        results[*place] = Some(written);
    }
    let mut answers: BTreeMap<usize, Vec<Taken>> = places.into_iter().zip(answers).collect();
    let each = bundles.into_iter().zip(results).enumerate();
    let stepped = each.map(|(place, (bundle, result))| match result {
        Some(Ok(false)) => Stepped::Moved(bundle.letters),
        Some(Err(error)) => Stepped::Failed(bundle.letters, error),
        Some(Ok(true)) => tell(bundle.letters, answers.remove(&place).unwrap_or_default()),
        // There is no such run.
        None => {
            let stale = vec![Taken::Stale; bundle.letters.len()];
            tell(bundle.letters, stale)
        }
    });
    Stepping {
        stepped: stepped.collect(),
        claimed,
        asked,
    }
}

fn tell(letters: Vec<Letter>, answers: Vec<Taken>) -> Stepped {
    for (letter, answer) in letters.into_iter().zip(answers) {
        if let Some(reply) = letter.reply {
            reply.send(answer).ok();
        }
    }
    Stepped::Done
}

type OneFound = Result<Option<(Moved, usize)>, String>;

/// Ticks in as few changes as may be: one that is too large would keep others from the writer. What is asked for is claimed
/// with the last. True when it was.
async fn write_all(
    engine: &Engine,
    all: Vec<Moved>,
    mut pass: Option<TaskPass>,
) -> (Vec<Result<bool, String>>, Vec<ClaimedTask>, bool) {
    let (mut results, mut claimed, mut asked) = (Vec::with_capacity(all.len()), Vec::new(), false);
    let mut left = all;
    while !left.is_empty() || pass.is_some() {
        let mut rows = 0;
        let fits = |moved: &Moved| {
            rows += moved.changes.steps.len() + moved.values.len();
            rows <= limits::TICK_ROWS_MAX
        };
        let count = left.iter().map(fits).take_while(|fits| *fits).count().max(1);
        let rest = left.split_off(count.min(left.len()));
        let asks = if rest.is_empty() { pass.take() } else { None };
        let is_asked = asks.is_some();
        // What is written together fails together, also for the sake of one damaged row.
        let spare = (left.len() > 1).then(|| left.clone());
        let count = left.len();
        match (write(engine, left, asks).await, spare) {
            (Err(error), Some(each)) if error.is_of_one => results.extend(one_by_one(engine, each).await),
            (Err(error), _) => results.extend((0..count).map(|_| Err(error.text.clone()))),
            (Ok((written, tasks)), _) => {
                claimed.extend(tasks);
                asked |= is_asked;
                results.extend(written.into_iter().map(Ok));
            }
        }
        left = rest;
    }
    (results, claimed, asked)
}

async fn one_by_one(engine: &Engine, all: Vec<Moved>) -> Vec<Result<bool, String>> {
    let mut results = Vec::with_capacity(all.len());
    for moved in all {
        let written = write(engine, vec![moved], None).await;
        results.push(match written {
            Ok((written, _)) => Ok(written.first() == Some(&true)),
            Err(error) => Err(error.text),
        });
    }
    results
}

/// Computes the ticks from one snapshot.
async fn fold_all(engine: &Engine, bundles: Vec<Bundle>) -> (Vec<OneFound>, Vec<Bundle>) {
    let posted: Vec<(RunId, Posted)> = bundles
        .iter()
        .map(|bundle| {
            let letters = &bundle.letters;
            let posted = Posted {
                facts: letters.iter().map(|letter| letter.fact.clone()).collect(),
                claims: letters.iter().filter_map(|letter| letter.claim.clone()).collect(),
                timers: bundle.timers.clone(),
            };
            (bundle.run, posted)
        })
        .collect();
    if posted.is_empty() {
        return (Vec::new(), bundles);
    }
    let count = posted.len();
    let for_read = engine.clone();
    let blobs = engine.store.blobs();
    let folded = engine
        .read(move |tx| {
            let desk = Desk {
                shelf: &for_read.graphs,
                blobs: &blobs,
                now: for_read.now().wall,
                rules: for_read.rules(),
            };
            let each = posted.iter();
            let each = each
                .map(|(run, posted)| fold::fold(tx, &desk, *run, posted).map_err(|error| error.to_string()));
            Ok(each.collect::<Vec<_>>())
        })
        .await;
    let found = folded.unwrap_or_else(|error| vec![Err(error.to_string()); count]);
    (found, bundles)
}

/// Takes the answers to the letters out of a tick.
fn answered(place: usize, mut moved: Moved, stored: usize, letters: &[Letter]) -> Folded {
    let answers = moved.changes.answers.split_off(stored);
    // A word that came too late must not end the claim of somebody else.
    let mut taken = Vec::new();
    for (letter, answer) in letters.iter().zip(&answers) {
        if let (Some(claim), Taken::Yes) = (&letter.claim, answer) {
            taken.push(claim.holder.clone());
        }
    }
    moved.claims.retain(|claim| taken.contains(&claim.holder));
    let answers = answers.into_iter().take(letters.len()).collect();
    Folded {
        place,
        moved,
        answers,
    }
}

/// True when something that waits for slots or for a process may go on: what has ended had them.
fn frees(moved: &Moved) -> bool {
    moved.claims.iter().any(|claim| {
        let key = Key::of_name(&moved.graph, &claim.holder.step);
        let doc = key.map(|key| &moved.graph.node(key.node).doc);
        doc.is_none_or(|doc| doc.slots.is_some() || doc.kind.command().is_some())
    })
}

/// True when there may be a place in the queue of a slot pool: an entry is given up, or its end was seen.
fn frees_places(moved: &Moved) -> bool {
    !moved.folded.is_empty() || !moved.changes.retire.is_empty()
}

/// The end of a run that somebody waits for.
fn end_of(engine: &Engine, moved: &Moved) -> Option<Ended> {
    let run = &moved.changes.run;
    let awaited = run.state.is_terminal() && engine.mailboxes.ends.is_awaited(run.id);
    let result = moved.values.iter().find(|(name, _)| *name == ValueName::Result);
    awaited.then(|| Ended {
        run: run.clone(),
        result: result.map(|(_, payload)| payload.clone()),
    })
}

/// Why ticks could not be written.
struct WriteError {
    text: String,
    /// It may be the matter of one of them.
    is_of_one: bool,
}

impl From<ChangeError> for WriteError {
    fn from(error: ChangeError) -> WriteError {
        let is_of_one = match &error {
            ChangeError::Failed(error) => error.is_row_fault(),
            ChangeError::Panicked(_) => true,
            ChangeError::Withdrawn | ChangeError::Unknown => false,
        };
        WriteError {
            text: error.to_string(),
            is_of_one,
        }
    }
}

/// Tells who waits for the ends of runs, and ends executions that are not wanted any more; which ticks were written.
fn tell_ends(engine: &Engine, outcomes: Vec<Applied>, ended: Vec<Option<Ended>>) -> Vec<bool> {
    let mut written = Vec::with_capacity(outcomes.len());
    for (applied, ended) in outcomes.into_iter().zip(ended) {
        let Applied::Done(fences) = applied else {
            written.push(false);
            continue;
        };
        written.push(true);
        if let Some(ended) = ended {
            engine.mailboxes.ends.ended(ended);
        }
        for fence in fences {
            let stop = Stop::Requested("its run does not want it any more".to_owned());
            engine.live.stop(fence, &stop);
        }
    }
    written
}

/// Writes ticks, and claims in the same commit what they make possible; false for a run that has moved.
async fn write(
    engine: &Engine,
    all: Vec<Moved>,
    pass: Option<TaskPass>,
) -> Result<(Vec<bool>, Vec<ClaimedTask>), WriteError> {
    let point = engine.store.faults().check("tick.before");
    point.map_err(|error| WriteError {
        text: error.to_string(),
        is_of_one: false,
    })?;
    let mut ready = Ready::default();
    for moved in &all {
        ready.add(&moved.graph, &moved.changes, &moved.children);
    }
    let frees = all.iter().any(frees);
    let frees_places = all.iter().any(frees_places);
    let ended: Vec<Option<Ended>> = all.iter().map(|moved| end_of(engine, moved)).collect();
    let timed = all
        .iter()
        .any(|moved| graph::is_timed(&moved.changes, &moved.children));
    let (mut shims, quick) = if ready.processes > 0 {
        let count = ready.processes.min(limits::CLAIMS_PER_CHANGE_MAX);
        Quick::prepare(engine, ready.slot_pool.clone(), count)
    } else {
        Quick::nothing(engine)
    };
    let meeting = Meeting::of(engine, &ready.sought());
    let book = engine.book();
    let (waiting, queues) = (meeting.passes(), ready.sought());
    let (shelf, rules) = (engine.graphs.clone(), engine.rules());
    let changed = engine.store.change("tick", move |tx| {
        let mut applied = Vec::with_capacity(all.len());
        for moved in &all {
            applied.push(graph::apply(tx, &book, moved)?);
        }
        let moves = applied.iter().any(|applied| *applied != Applied::Moved);
        if moves && frees_places {
            refused::let_in_all(tx, &book, &shelf, rules)?;
        }
        let passed = if moves {
            quick.claim(tx)?
        } else {
            Passed::default()
        };
        let claimed = match &pass {
            Some(pass) => tasks::claim(tx, pass)?,
            None => Vec::new(),
        };
        let met = meet(tx, &waiting, &queues)?;
        // A parent hears of an end, an entry has run out: somebody has to fold that.
        let tells = tx.has_told(graphs::FACT);
        Ok((applied, passed, claimed, met, tells))
    });
    let (outcomes, passed, claimed, met, tells) = changed.await?;
    runner::act(engine, passed, &mut shims);
    engine.warm.give_back(shims);
    meeting.hand_over(engine, met);
    let written = tell_ends(engine, outcomes, ended);
    if frees || frees_places {
        engine.wake.notify_one();
    }
    engine.rouse(&ready);
    if timed || tells {
        engine.mailboxes.look();
    }
    tracing::trace!(runs = written.len(), "moved");
    Ok((written, claimed))
}
