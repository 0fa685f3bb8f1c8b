//! The coordinator: the only writer of what a run of a graph is. It takes everything that happened to a run at once, computes
//! the tick on a thread that may block, and hands the writer one change.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::bridge;
use super::changes::claim::Passed;
use super::changes::fold::{self, Desk, Posted};
use super::changes::graph::{self, Applied, Moved};
use super::changes::maintain::Rules;
use super::changes::refused;
use super::changes::tasks::{self, ClaimedTask, TaskPass};
use super::core::Engine;
use super::mailbox::Letter;
use super::runner::{self, Quick};
use crate::domain::workflow::graph::tick::{Fact, Taken};
use crate::store::tables::{FACTS, TIMERS};
use crate::store::{ReadTx, Rows, StoreError};
use crate::words::ids::{RunId, TenantId};
use crate::words::limits;
use crate::words::names::{SlotPoolName, StepRef};
use crate::words::time::Millis;
use crate::worker::command::Stop;

const TENANT: TenantId = TenantId::DEFAULT;

/// The loop.
#[derive(Debug)]
pub struct Coordinator {
    engine: Engine,
}

/// What the tables say is to be done.
#[derive(Debug, Default)]
struct Found {
    facts: Vec<RunId>,
    timers: Vec<(RunId, Fact)>,
    next: Option<Millis>,
}

impl Coordinator {
    /// A loop over this engine.
    pub fn new(engine: Engine) -> Coordinator {
        Coordinator { engine }
    }

    /// Works until it is aborted: whoever stops the daemon does that when nothing runs and every mailbox is empty.
    pub async fn run(self) {
        let mut next = None;
        let mut looked_at = Millis(i64::MIN);
        loop {
            let now = self.engine.now().wall;
            let is_due = next.is_some_and(|next| next <= now);
            let is_old = now.since(looked_at) >= limits::PASS_PERIOD_MS;
            if self.engine.mailboxes.take_look() || is_due || is_old {
                looked_at = now;
                match self.look(now).await {
                    Ok(soonest) => next = soonest,
                    Err(error) => {
                        tracing::debug!(cause = %error, "runs wait for the store");
                        next = None;
                    }
                }
            }
            for run in self.engine.mailboxes.take_runs() {
                tokio::spawn(work(self.engine.clone(), run));
            }
            let now = self.engine.now().wall;
            let ms = next.map_or(limits::PASS_PERIOD_MS, |at| at.since(now).max(1));
            let wait = Duration::from_millis(ms.min(limits::PASS_PERIOD_MS));
            tokio::select! {
                () = self.engine.mailboxes.arrived() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Looks for stored facts and due timers; when the next timer is due.
    async fn look(&self, now: Millis) -> Result<Option<Millis>, StoreError> {
        if self.engine.is_stopping() {
            return Ok(None);
        }
        let found = self.engine.read(move |tx| find(tx, now)).await?;
        for run in found.facts {
            self.engine.mailboxes.due(run, Vec::new());
        }
        for (run, timer) in found.timers {
            self.engine.mailboxes.due(run, vec![timer]);
        }
        Ok(found.next)
    }
}

fn find(tx: &mut ReadTx, now: Millis) -> Result<Found, StoreError> {
    let mut found = Found::default();
    for row in tx.scan_each(&FACTS, &(TENANT,), None, limits::RUNS_DUE_MAX)? {
        if let Ok(((_, run, _), _)) = row.row
            && found.facts.last() != Some(&run)
        {
            found.facts.push(run);
        }
    }
    for row in tx.scan_each(&TIMERS, &(TENANT,), None, limits::RUNS_DUE_MAX)? {
        let Ok(((_, at, run, step), _)) = row.row else {
            continue;
        };
        if at > now {
            found.next = Some(at);
            break;
        }
        let fact = match StepRef::new(&step) {
            Some(step) => Fact::Due { step },
            None => Fact::Deadline,
        };
        found.timers.push((run, fact));
        found.next = Some(at);
    }
    Ok(found)
}

/// Folds everything that was posted to a run, until nothing is left.
async fn work(engine: Engine, run: RunId) {
    let mut pause = Duration::from_millis(20);
    loop {
        let (letters, timers) = engine.mailboxes.take(run);
        let bundle = Bundle { run, letters, timers };
        let mut done = step(&engine, vec![bundle], None).await;
        let Some(stepped) = done.stepped.pop() else { break };
        match stepped {
            Stepped::Done => break,
            Stepped::Moved(letters) => engine.mailboxes.put_back(run, letters),
            Stepped::Failed(letters, error) => {
                tracing::warn!(run_id = %run, cause = %error, "this run could not be moved; it is tried again");
                let urgent = !letters.is_empty();
                engine.mailboxes.put_back(run, letters);
                if !urgent {
                    break;
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(1));
            }
        }
    }
    engine.mailboxes.done(run);
}

/// What was posted to one run.
struct Bundle {
    run: RunId,
    letters: Vec<Letter>,
    timers: Vec<Fact>,
}

/// What became of a bundle.
enum Stepped {
    /// It is written, and its letters are answered.
    Done,
    /// The run has moved meanwhile: these are to be folded again.
    Moved(Vec<Letter>),
    /// It could not be read or written.
    Failed(Vec<Letter>, String),
}

/// What became of several bundles, in their order, and what was claimed in the same commit.
struct Stepping {
    stepped: Vec<Stepped>,
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
    for (run, stepped) in runs.into_iter().zip(done.stepped) {
        match stepped {
            Stepped::Done => {}
            Stepped::Moved(letters) => engine.mailboxes.put_back(run, letters),
            Stepped::Failed(letters, error) => {
                tracing::warn!(run_id = %run, cause = %error, "this run could not be moved; it is tried again");
                engine.mailboxes.put_back(run, letters);
            }
        }
        engine.mailboxes.done(run);
    }
    (done.claimed, done.asked)
}

/// A run's tick that is computed, with the answers to its letters.
struct Folded {
    place: usize,
    moved: Moved,
    answers: Vec<Taken>,
}

/// One tick for each bundle, all of them in one change.
async fn step(engine: &Engine, bundles: Vec<Bundle>, pass: Option<TaskPass>) -> Stepping {
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
    let (mut claimed, mut asked) = (Vec::new(), false);
    if !all.is_empty() || pass.is_some() {
        match write(engine, all, pass).await {
            Ok((written, tasks)) => {
                (claimed, asked) = (tasks, true);
                for (place, written) in places.iter().zip(written) {
                    results[*place] = Some(Ok(written));
                }
            }
            Err(error) => {
                for place in &places {
                    results[*place] = Some(Err(error.clone()));
                }
            }
        }
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
                rules: rules_of(&for_read),
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

fn rules_of(engine: &Engine) -> Rules {
    Rules {
        expiry_held: engine.clock_watch.holds_expiry(engine.now()),
    }
}

/// What some ticks mean for others than their runs.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is told to somebody else")]
struct Echo {
    wants_process: bool,
    slot_pool: Option<SlotPoolName>,
    other_runs: bool,
    frees_slots: bool,
    frees_places: bool,
    tasks: bool,
    queues: BTreeSet<String>,
}

impl Echo {
    fn add(&mut self, moved: &Moved) {
        let changes = &moved.changes;
        for (_, node) in &changes.dispatch {
            let doc = &moved.graph.node(*node).doc;
            self.wants_process |= doc.kind.command().is_some();
            if self.slot_pool.is_none() {
                self.slot_pool = doc.slots.as_ref().map(|slots| slots.slot_pool.clone());
            }
        }
        self.queues.extend(bridge::queues_of(&moved.graph, changes));
        self.other_runs |=
            changes.run.state.is_terminal() || !changes.orphans.is_empty() || !changes.children.is_empty();
        self.frees_slots |= !moved.claims.is_empty();
        self.frees_places |= !moved.folded.is_empty() || !changes.retire.is_empty();
        self.tasks |= !changes.dispatch.is_empty();
    }
}

/// Writes ticks, and claims in the same commit what they make possible; false for a run that has moved.
async fn write(
    engine: &Engine,
    all: Vec<Moved>,
    pass: Option<TaskPass>,
) -> Result<(Vec<bool>, Vec<ClaimedTask>), String> {
    let point = engine.store.faults().check("tick.before");
    point.map_err(|error| error.to_string())?;
    let mut echo = Echo::default();
    for moved in &all {
        echo.add(moved);
    }
    let (mut shims, quick) = if echo.wants_process {
        Quick::prepare(engine, echo.slot_pool.clone())
    } else {
        Quick::nothing(engine)
    };
    let meeting = bridge::Meeting::of(engine, &echo.queues);
    let book = engine.book();
    let waiting = meeting.passes();
    let (frees_places, shelf, rules) = (echo.frees_places, engine.graphs.clone(), rules_of(engine));
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
        let met = bridge::meet(tx, &waiting)?;
        Ok((applied, passed, claimed, met))
    });
    let (outcomes, passed, claimed, met) = changed.await.map_err(|error| error.to_string())?;
    runner::act(engine, passed, &mut shims);
    engine.warm.give_back(shims);
    meeting.hand_over(engine, met);
    let mut written = Vec::with_capacity(outcomes.len());
    for applied in outcomes {
        let Applied::Done(fences) = applied else {
            written.push(false);
            continue;
        };
        written.push(true);
        for fence in fences {
            let stop = Stop::Requested("its run does not want it any more".to_owned());
            engine.live.stop(fence, &stop);
        }
    }
    if echo.tasks || echo.frees_slots || echo.frees_places {
        engine.wake.notify_one();
    }
    if echo.tasks || echo.other_runs {
        engine.mailboxes.tasks.notify_waiters();
    }
    // A timer may be nearer now than the one that is waited for, and other runs may have something to fold.
    engine.mailboxes.look();
    tracing::trace!(runs = written.len(), "moved");
    Ok((written, claimed))
}
