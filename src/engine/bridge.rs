//! Remote workers: they ask for tasks, say that they are alive, and say how a task ended. Those that are not heard of are
//! the matter of `silence`.
//!
//! A worker that waits gets its task in the commit that makes it ready; what a worker says of many tasks, and what it asks
//! for with it, is one commit.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;

use super::changes::complete::Holder;
use super::changes::graph::EndedClaim;
use super::changes::tasks::{self, ClaimedTask, Heard, Standing, Token};
use super::core::Engine;
use super::mailbox::{Ask, Letter};
use super::moving;
use crate::domain::workflow::attempt::{Attempt, Outcome};
use crate::domain::workflow::graph::key::ValueName;
use crate::domain::workflow::graph::kinds::StepKind;
use crate::domain::workflow::graph::tick::{AttemptEnd, Fact, StepError, Taken};
use crate::store::graph_rows::TaskClaim;
use crate::store::{ChangeError, ReadTx, StoreError, graphs};
use crate::words::ids::RunId;
use crate::words::limits;
use crate::words::payload::JsonText;
use crate::words::time::Millis;

/// What a worker asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Poll {
    /// The queue.
    pub queue: String,
    /// What the worker calls itself.
    pub worker: String,
    /// So many tasks at most.
    pub max: usize,
    /// So long it waits for the first.
    pub wait_ms: u64,
}

impl Poll {
    fn ask(&self) -> Ask {
        Ask {
            queue: self.queue.clone(),
            worker: Some(self.worker.clone()),
            max: self.max,
        }
    }
}

/// A task as its worker gets it.
#[derive(Debug, Clone)]
pub struct Offer {
    /// With which the worker speaks of it.
    pub token: String,
    /// The claimed step.
    pub task: ClaimedTask,
    /// What is to be done, by the definition's own word.
    pub name: String,
    /// Its input.
    pub input: JsonText,
    /// When the attempt is ended for taking too long.
    pub attempt_until: Option<Millis>,
    /// The same for each attempt.
    pub idempotency_key: String,
}

/// Why a worker's request failed.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// A read.
    #[error(transparent)]
    Read(#[from] StoreError),
    /// A change.
    #[error(transparent)]
    Change(#[from] ChangeError),
}

/// How a worker says a task ended.
#[derive(Debug, Clone)]
pub enum TaskEnd {
    /// Well, with this.
    Completed(Arc<Value>),
    /// Not well.
    Failed(StepError),
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// It is written.
    Done,
    /// It was written before, by the same claim.
    Already,
    /// The claim has ended otherwise: nothing was written.
    Stale,
    /// The token is none.
    Unknown,
    /// Nobody can say yet.
    Unclear,
}

/// Tasks that nobody has taken over yet; dropped with some in it, they are put back.
struct Unclaimed {
    engine: Engine,
    tasks: Vec<ClaimedTask>,
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        let tasks = std::mem::take(&mut self.tasks);
        if !tasks.is_empty() {
            tokio::spawn(moving::give_back(self.engine.clone(), tasks));
        }
    }
}

/// Claims tasks for a worker; waits for the first as long as it wants to.
pub async fn poll(engine: &Engine, poll: &Poll) -> Result<Vec<Offer>, BridgeError> {
    let deadline = tokio::time::Instant::now() + Duration::from_millis(poll.wait_ms);
    loop {
        let mut moved = std::pin::pin!(engine.mailboxes.tasks.notified());
        moved.as_mut().enable();
        let queue = poll.queue.clone();
        let waits = engine.read(move |tx| tasks::is_waiting(tx, &queue)).await?;
        if waits && !engine.is_stopping() {
            let pass = moving::pass_of(engine, &poll.ask());
            let claimed = engine
                .store
                .change("claim tasks", move |tx| tasks::claim(tx, &pass));
            let claimed = claimed.await?;
            if !claimed.is_empty() {
                return offers(engine, claimed).await;
            }
        }
        let (seat, told) = engine.waiting_workers.sit(poll.ask());
        let mut told = std::pin::pin!(told);
        let over = tokio::select! {
            biased;
            answered = &mut told => {
                match answered {
                    Ok(claimed) => return offers(engine, claimed).await,
                    // The change that was to fill it has failed.
                    Err(_) => continue,
                }
            }
            () = &mut moved => false,
            () = tokio::time::sleep_until(deadline) => true,
            () = engine.until_stopping() => true,
        };
        // Somebody has taken the seat: the answer is on its way.
        if !seat.leave()
            && let Ok(claimed) = told.await
            && !claimed.is_empty()
        {
            return offers(engine, claimed).await;
        }
        if over {
            return Ok(Vec::new());
        }
    }
}

/// What workers get of their claims. If it cannot be read, they are put back.
async fn offers(engine: &Engine, tasks: Vec<ClaimedTask>) -> Result<Vec<Offer>, BridgeError> {
    if tasks.is_empty() {
        return Ok(Vec::new());
    }
    let mut unclaimed = Unclaimed {
        engine: engine.clone(),
        tasks,
    };
    let (for_read, tasks) = (engine.clone(), unclaimed.tasks.clone());
    let offers = engine.read(move |tx| {
        // It was written with the first claim.
        let key = for_read
            .waiting_workers
            .key(tx)?
            .ok_or_else(|| StoreError::Unreadable {
                table: "meta",
                key: "task_key_0".to_owned(),
                cause: "it is missing".to_owned(),
            })?;
        let each = tasks.iter().map(|task| offer(tx, &for_read, key, task));
        each.collect::<Result<Vec<_>, _>>()
    });
    let offers = offers.await?;
    unclaimed.tasks.clear();
    Ok(offers)
}

fn offer(tx: &mut ReadTx, engine: &Engine, key: [u64; 2], task: &ClaimedTask) -> Result<Offer, StoreError> {
    let holder = task.holder();
    let (run, step) = (task.run.id, &task.step.step);
    let input = match &task.input {
        None => JsonText::of(&Value::Null).expect("null is JSON"),
        Some(payload) => {
            let text = engine.store.blobs().read(payload);
            text.map_err(|error| StoreError::Unreadable {
                table: "values",
                key: format!("{run} taskin {step}"),
                cause: error.to_string(),
            })?
        }
    };
    let graph = engine.graphs.get(tx, &task.run.definition, task.run.version)?;
    let name = graph.and_then(|graph| {
        let (name, _) = step.split_instance()?;
        let kind = &graph.node(graph.find(&name)?).doc.kind;
        if let StepKind::Task(doc) = kind {
            return Some(doc.task.clone());
        }
        None
    });
    let limit = task.step.graph.as_ref().and_then(|graph| graph.attempt_ms);
    Ok(Offer {
        token: Token::of(key, &holder, task.step.attempt).to_string(),
        name: name.unwrap_or_default(),
        input,
        attempt_until: limit.map(|limit| task.claim.claimed_at.plus(limit)),
        idempotency_key: once_key(tx, run, task)?,
        task: task.clone(),
    })
}

/// The key that is the same for each attempt of a step.
fn once_key(tx: &mut ReadTx, run: RunId, task: &ClaimedTask) -> Result<String, StoreError> {
    let own = graphs::value(tx, run, &ValueName::OnceKey(task.step.step.clone()))?;
    let own = own.and_then(|payload| payload.inline()?.read::<String>().ok());
    Ok(own.unwrap_or_else(|| format!("{run}/{}", task.step.step)))
}

/// The claim of a token, if it is one of this store.
async fn genuine(engine: &Engine, text: &str) -> Result<Option<Token>, StoreError> {
    let Some(token) = Token::read(text) else {
        return Ok(None);
    };
    let workers = engine.waiting_workers.clone();
    let key = engine.read(move |tx| workers.key(tx)).await?;
    Ok(Some(token).filter(|token| token.is_genuine(key)))
}

/// A sign of life; `None` for a token that is none.
pub async fn heartbeat(engine: &Engine, token: &str) -> Result<Option<Heard>, BridgeError> {
    let Some(token) = genuine(engine, token).await? else {
        return Ok(None);
    };
    let (holder, number, clock) = (token.holder, token.number, engine.place.clock.clone());
    let (for_read, now) = (holder.clone(), engine.now());
    let found = engine
        .read(move |tx| tasks::standing(tx, &for_read, number))
        .await?;
    let (said, to_write) = tasks::heard(&found, &clock, now);
    if !to_write {
        return Ok(Some(said));
    }
    let changed = engine.store.change("task heard of", move |tx| {
        tasks::renew(tx, &holder, number, &clock)
    });
    Ok(Some(changed.await?))
}

/// What a worker says of its tasks, and what it asks for with it. The answers are in the order of the items.
pub async fn say(
    engine: &Engine,
    items: Vec<(String, TaskEnd)>,
    ask: Option<&Poll>,
) -> Result<(Vec<Said>, Vec<Offer>), BridgeError> {
    let read: Vec<(Option<Token>, TaskEnd)> = items
        .into_iter()
        .map(|(text, end)| (Token::read(&text), end))
        .collect();
    let tokens: Vec<Option<Token>> = read.iter().map(|(token, _)| token.clone()).collect();
    let workers = engine.waiting_workers.clone();
    let found = engine.read(move |tx| {
        let key = workers.key(tx)?;
        let each = tokens.iter().map(|token| match token {
            Some(token) if token.is_genuine(key) => {
                tasks::standing(tx, &token.holder, token.number).map(Some)
            }
            Some(_) | None => Ok(None),
        });
        each.collect::<Result<Vec<_>, _>>()
    });
    let found = found.await?;
    let mut said = Vec::with_capacity(read.len());
    let mut letters = Vec::new();
    let mut waiting = Vec::new();
    for ((token, end), standing) in read.into_iter().zip(found) {
        let (Some(token), Some(standing)) = (token, standing) else {
            said.push(Said::Unknown);
            continue;
        };
        let Standing::Held { live, claim } = standing else {
            said.push(late(&standing, &end));
            continue;
        };
        let (reply, told) = oneshot::channel();
        let cancelled = live.ending.is_some();
        let letter = letter(
            engine,
            &token.holder,
            (&live.claim, &*claim),
            end,
            cancelled,
            reply,
        );
        letters.push((token.holder.run, letter));
        waiting.push((said.len(), told));
        said.push(Said::Unclear);
    }
    let pass = ask
        .filter(|_| !engine.is_stopping())
        .map(|ask| moving::pass_of(engine, &ask.ask()));
    let (claimed, asked) = moving::deliver(engine, letters, pass).await;
    let mut offered = offers(engine, claimed).await?;
    for (place, told) in waiting {
        said[place] = match tokio::time::timeout(Duration::from_millis(limits::OPERATION_MS), told).await {
            Ok(Ok(Taken::Yes)) => Said::Done,
            Ok(Ok(Taken::Stale | Taken::Refused(_))) => Said::Stale,
            Ok(Err(_)) | Err(_) => Said::Unclear,
        };
    }
    if let Some(ask) = ask
        && offered.is_empty()
        && (!asked || ask.wait_ms > 0)
    {
        offered = poll(engine, ask).await?;
    }
    Ok((said, offered))
}

/// What is said of a claim that has ended.
fn late(standing: &Standing, end: &TaskEnd) -> Said {
    match (standing, end) {
        (Standing::Ended(Outcome::Succeeded), TaskEnd::Completed(_))
        | (Standing::Ended(Outcome::Failed | Outcome::Cancelled), TaskEnd::Failed(_)) => Said::Already,
        _ => Said::Stale,
    }
}

fn letter(
    engine: &Engine,
    holder: &Holder,
    (claim, task): (&crate::domain::slots::claim::Claim, &TaskClaim),
    end: TaskEnd,
    cancelled: bool,
    reply: oneshot::Sender<Taken>,
) -> Letter {
    let (outcome, reason, end) = match end {
        // Its row has no place for the worker's name but this sentence.
        TaskEnd::Completed(output) => (
            Outcome::Succeeded,
            Some(format!("done by worker {}", task.worker)),
            AttemptEnd::Succeeded(Some(output)),
        ),
        TaskEnd::Failed(error) if cancelled => {
            let why = format!("worker {} ended it on request: {}", task.worker, error.message);
            (Outcome::Cancelled, Some(why.clone()), AttemptEnd::Cancelled(why))
        }
        TaskEnd::Failed(error) => (
            Outcome::Failed,
            Some(format!("{} (worker {})", error.message, task.worker)),
            AttemptEnd::Failed(error),
        ),
    };
    engine.metrics.count_attempt("task", outcome.word());
    let attempt = Attempt {
        outcome,
        exit_code: None,
        reason,
        node: claim.node.clone(),
        pid: None,
        started_at: claim.claimed_at,
        ended_at: engine.now().wall,
        log_bytes: 0,
    };
    Letter {
        fact: Fact::Attempt {
            step: holder.step.clone(),
            fence: holder.fence,
            end,
        },
        claim: Some(EndedClaim {
            holder: holder.clone(),
            attempt: Some(attempt),
        }),
        reply: Some(reply),
    }
}
