//! The coordinator: the only writer of what a run of a graph is. It takes everything that happened to a run at once, computes
//! the tick on a thread that may block, and hands the writer one change.

use std::sync::Arc;
use std::time::Duration;

use super::changes::claim::Passed;
use super::changes::fold::{self, Desk, Posted};
use super::changes::graph::{self, Applied, Moved};
use super::changes::maintain::Rules;
use super::core::Engine;
use super::mailbox::Letter;
use super::runner::{self, Quick};
use crate::domain::workflow::graph::tick::{Fact, Taken};
use crate::store::tables::{FACTS, TIMERS};
use crate::store::{ReadTx, Rows, StoreError};
use crate::words::ids::{RunId, TenantId};
use crate::words::limits;
use crate::words::names::StepRef;
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

    /// Works until the daemon stops, and until what was posted before is written.
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
            if self.engine.is_stopping() && self.engine.mailboxes.is_idle() && self.engine.live.is_empty() {
                return;
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
        match step(&engine, run, &letters, timers).await {
            Ok(Some(answers)) => {
                for (letter, answer) in letters.into_iter().zip(answers) {
                    if let Some(reply) = letter.reply {
                        reply.send(answer).ok();
                    }
                }
                break;
            }
            Ok(None) => engine.mailboxes.put_back(run, letters),
            Err(error) => {
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

/// One tick; the answers to the letters, or `None` if the run has moved meanwhile.
async fn step(
    engine: &Engine,
    run: RunId,
    letters: &[Letter],
    timers: Vec<Fact>,
) -> Result<Option<Vec<Taken>>, String> {
    let posted = Posted {
        facts: letters.iter().map(|letter| letter.fact.clone()).collect(),
        claims: letters.iter().filter_map(|letter| letter.claim.clone()).collect(),
        timers,
    };
    let count = letters.len();
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
            fold::fold(tx, &desk, run, &posted)
        })
        .await;
    let Some((mut moved, stored)) = folded.map_err(|error| error.to_string())? else {
        return Ok(Some(vec![Taken::Stale; count]));
    };
    let answers = moved.changes.answers.split_off(stored);
    // A word that came too late must not end the claim of somebody else.
    let mut stale = Vec::new();
    for (letter, answer) in letters.iter().zip(&answers) {
        if let (Some(claim), Taken::Stale) = (&letter.claim, answer) {
            stale.push(claim.holder.clone());
        }
    }
    moved.claims.retain(|claim| !stale.contains(&claim.holder));
    let answers = answers.into_iter().take(count).collect();
    Ok(write(engine, run, moved).await?.then_some(answers))
}

fn rules_of(engine: &Engine) -> Rules {
    Rules {
        expiry_held: engine.clock_watch.holds_expiry(engine.now()),
    }
}

/// Writes a tick, and claims in the same commit what it makes possible; false if the run has moved.
async fn write(engine: &Engine, run: RunId, moved: Moved) -> Result<bool, String> {
    let point = engine.store.faults().check("tick.before");
    point.map_err(|error| error.to_string())?;
    let wants_process = moved.changes.dispatch.iter().any(|(_, node)| {
        let node = moved.graph.node(*node);
        node.doc.kind.command().is_some()
    });
    let slot_pool = moved.changes.dispatch.iter().find_map(|(_, node)| {
        let slots = moved.graph.node(*node).doc.slots.as_ref()?;
        Some(slots.slot_pool.clone())
    });
    let ended = moved.changes.run.state.is_terminal();
    let other_runs = ended || !moved.changes.orphans.is_empty() || !moved.changes.children.is_empty();
    let frees_slots = !moved.claims.is_empty();
    let tasks = !moved.changes.dispatch.is_empty();
    let (mut shims, quick) = if wants_process {
        Quick::prepare(engine, slot_pool)
    } else {
        Quick::nothing(engine)
    };
    let book = engine.book();
    let moved = Arc::new(moved);
    let changed = engine.store.change("tick", move |tx| {
        let applied = graph::apply(tx, &book, &moved)?;
        let passed = match &applied {
            Applied::Done(_) => quick.claim(tx)?,
            Applied::Moved => Passed::default(),
        };
        Ok((applied, passed))
    });
    let (applied, passed) = changed.await.map_err(|error| error.to_string())?;
    runner::act(engine, passed, &mut shims);
    engine.warm.give_back(shims);
    let Applied::Done(fences) = applied else {
        return Ok(false);
    };
    for fence in fences {
        let stop = Stop::Requested("its run does not want it any more".to_owned());
        engine.live.stop(fence, &stop);
    }
    if other_runs {
        engine.mailboxes.look();
    }
    if tasks || frees_slots {
        engine.wake.notify_one();
    }
    if tasks {
        engine.mailboxes.tasks.notify_waiters();
    }
    // A timer may be nearer now than the one that is waited for.
    engine.mailboxes.look();
    tracing::trace!(run_id = %run, "moved");
    Ok(true)
}
