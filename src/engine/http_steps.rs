//! Requests of workflows: steps of the type HTTP, sensors that ask an address, and steps that route. This program sends them itself, behind the
//! egress guard and some at a time; what a dead daemon had under way is put back by the hunt.

mod decided;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};

use super::changes::complete;
use super::changes::fold;
use super::changes::graph::EndedClaim;
use super::changes::tasks::{self, ClaimedTask};
use super::core::Engine;
use super::deciding::RouterError;
use super::live::LiveHandle;
use super::mailbox::Ask;
use super::moving;
use crate::domain::slots::entry::reason;
use crate::domain::workflow::attempt::{Attempt, Outcome};
use crate::domain::workflow::graph::key::ValueName;
use crate::domain::workflow::graph::lines::INTERNAL_QUEUE;
use crate::domain::workflow::graph::request::{Wanted, request_of};
use crate::domain::workflow::graph::routed;
use crate::domain::workflow::graph::tick::{AttemptEnd, Fact, StepError, Taken};
use crate::store::{ReadTx, StoreError, graphs};
use crate::words::limits;
use crate::worker::command::Stop;
use crate::worker::http::{self, HttpContext, HttpEnd, HttpFailure};
use crate::worker::outbound::guarded::GuardedClient;

/// The loop.
#[derive(Debug)]
pub struct HttpSteps {
    engine: Engine,
    client: GuardedClient,
    seats: Arc<Semaphore>,
}

impl HttpSteps {
    /// A loop that has sent nothing yet.
    pub fn new(engine: Engine) -> HttpSteps {
        HttpSteps {
            engine,
            client: GuardedClient::new(),
            seats: Arc::new(Semaphore::new(limits::HTTP_STEPS_MAX)),
        }
    }

    /// Works until the daemon stops; what is under way then is waited for like a command.
    pub async fn run(self) {
        let period = Duration::from_millis(limits::PASS_PERIOD_MS);
        while !self.engine.is_stopping() {
            let mut moved = std::pin::pin!(self.engine.mailboxes.requests.notified());
            moved.as_mut().enable();
            match self.pass().await {
                Ok(0) => {}
                Ok(_) => continue,
                Err(error) => tracing::debug!(cause = %error, "requests of workflows wait for the store"),
            }
            let free = self.seats.available_permits();
            if free == 0 {
                tokio::select! {
                    () = self.a_seat() => {}
                    () = self.engine.until_stopping() => {}
                }
                continue;
            }
            // What becomes ready meanwhile is claimed in the very change that makes it ready.
            let (seat, told) = self.engine.waiting_workers.sit(ask(free));
            let mut told = std::pin::pin!(told);
            let mut claimed = None;
            tokio::select! {
                biased;
                // The change that was to fill the seat may have failed.
                answered = &mut told => claimed = Some(answered.unwrap_or_default()),
                () = &mut moved => {}
                () = tokio::time::sleep(period) => {}
                () = self.engine.until_stopping() => {}
            }
            // Somebody has taken the seat: the answer is on its way.
            if !seat.leave() && claimed.is_none() {
                claimed = told.await.ok();
            }
            for task in claimed.unwrap_or_default() {
                self.spawn(task);
            }
        }
    }

    async fn a_seat(&self) {
        drop(self.seats.acquire().await);
    }

    /// Claims what there are seats for; how much that was.
    pub async fn pass(&self) -> Result<usize, String> {
        let free = self.seats.available_permits();
        let waits = self.engine.read(|tx| tasks::is_waiting(tx, INTERNAL_QUEUE)).await;
        if free == 0 || !waits.map_err(|error| error.to_string())? {
            return Ok(0);
        }
        let engine = &self.engine;
        let pass = moving::pass_of(engine, &ask(free));
        let claimed = engine
            .store
            .change("claim requests", move |tx| tasks::claim(tx, &pass));
        let claimed = claimed.await.map_err(|error| error.to_string())?;
        let count = claimed.len();
        for task in claimed {
            self.spawn(task);
        }
        Ok(count)
    }

    fn spawn(&self, task: ClaimedTask) {
        let (stop, stops) = watch::channel(None);
        let (_, log_size) = watch::channel(0);
        let fence = task.claim.fence;
        let handle = LiveHandle {
            run: task.run.id,
            step: task.step.step.clone(),
            job: task.run.definition.clone(),
            number: task.step.attempt,
            claimed_at: task.claim.claimed_at,
            stop,
            log_size,
            lease: None,
        };
        self.engine.live.add(fence, handle);
        let seat = Arc::clone(&self.seats).try_acquire_owned();
        let (engine, client) = (self.engine.clone(), self.client.clone());
        tokio::spawn(async move {
            let errand = Errand {
                engine: engine.clone(),
                client,
                task,
            };
            errand.run(stops).await;
            engine.live.remove(fence);
            drop(seat);
        });
    }
}

fn ask(max: usize) -> Ask {
    Ask {
        queue: INTERNAL_QUEUE.to_owned(),
        worker: None,
        max,
    }
}

/// One claimed request.
struct Errand {
    engine: Engine,
    client: GuardedClient,
    task: ClaimedTask,
}

impl Errand {
    async fn run(self, mut stops: watch::Receiver<Option<Stop>>) {
        let stopped = async {
            let stop = stops.wait_for(Option::is_some).await;
            stop.ok().and_then(|stop| stop.clone())
        };
        let end = tokio::select! {
            biased;
            stop = stopped => match stop {
                Some(Stop::Requested(why)) => AttemptEnd::Cancelled(why),
                Some(Stop::DaemonStopped | Stop::LeaseLost { .. }) | None => return self.give_back().await,
            },
            end = self.execute() => match end {
                Ok(end) => end,
                Err(error) => {
                    tracing::warn!(run_id = %self.task.run.id, cause = %error, "a request could not be prepared; it is tried again");
                    return self.give_back().await;
                }
            },
        };
        self.tell(end).await;
    }

    async fn execute(&self) -> Result<AttemptEnd, RouterError> {
        let (engine, task) = (self.engine.clone(), self.task.clone());
        let prepared = self.engine.read(move |tx| prepare(tx, &engine, &task)).await?;
        match prepared {
            Ok(Prepared::Request(wanted, once)) => Ok(self.request(&wanted, &once).await),
            Ok(Prepared::Work(wanted)) => decided::execute(&self.engine, &self.task, wanted).await,
            Err(error) => Ok(AttemptEnd::Failed(error)),
        }
    }

    async fn request(&self, wanted: &Wanted, once: &str) -> AttemptEnd {
        let book = self.engine.book();
        let context = HttpContext {
            client: &self.client,
            rules: &book.egress,
            idempotency_key: Some(once),
            clock: &*self.engine.clock,
        };
        let HttpEnd { result, passages } = http::perform(&wanted.spec, &context).await;
        for passage in passages {
            tracing::debug!(run_id = %self.task.run.id, step = %self.task.step.step, to = %passage.to, "a request of a workflow went out");
        }
        match result {
            Ok(text) => match text.read() {
                Ok(output) => AttemptEnd::Succeeded(Some(Arc::new(output))),
                Err(error) => AttemptEnd::Failed(StepError::new("http.broken", error.to_string())),
            },
            Err(failure) if wanted.is_sensor && is_no_answer(&failure, wanted.is_limited) => {
                AttemptEnd::NotMet
            }
            Err(failure) => AttemptEnd::Failed(error_of(failure, wanted.is_limited)),
        }
    }

    /// The coordinator decides what the end means for the run, and writes both in one change.
    async fn tell(&self, end: AttemptEnd) {
        let (outcome, why) = match &end {
            AttemptEnd::Succeeded(_) | AttemptEnd::NotMet | AttemptEnd::Routed(_) => {
                (Outcome::Succeeded, None)
            }
            AttemptEnd::Failed(error) => (Outcome::Failed, Some(error.message.clone())),
            AttemptEnd::Cancelled(why) => (Outcome::Cancelled, Some(why.clone())),
        };
        let met = end != AttemptEnd::NotMet;
        let attempt = Attempt {
            outcome,
            exit_code: None,
            reason: why,
            node: self.engine.node.clone(),
            pid: None,
            started_at: self.task.claim.claimed_at,
            ended_at: self.engine.now().wall,
            log_bytes: 0,
        };
        self.engine.metrics.count_attempt("http", outcome.word());
        let holder = self.task.holder();
        let fact = Fact::Attempt {
            step: holder.step.clone(),
            fence: holder.fence,
            end,
        };
        let claim = EndedClaim {
            holder,
            attempt: met.then_some(attempt),
        };
        let run = self.task.run.id;
        if self.engine.mailboxes.tell(run, fact, Some(claim)).await == Ok(Taken::Stale) {
            tracing::debug!(run_id = %run, "the answer to a request came too late: its step has moved on");
        }
    }

    /// It is sent again, by whoever comes first. If this cannot be written, the hunt does it.
    async fn give_back(&self) {
        let holder = self.task.holder();
        let lost = complete::lost_attempt(&self.task.claim, reason::DAEMON_STOPPED, self.engine.now().wall);
        let changed = self.engine.store.change("request back", move |tx| {
            complete::put_back(tx, &holder, reason::DAEMON_STOPPED, false, Some(&lost))
        });
        if let Err(error) = changed.await {
            tracing::warn!(cause = %error, "a request could not be given back; it is found later");
        }
    }
}

/// What is to be done.
enum Prepared {
    /// A request, with the key that makes its receiver do it once.
    Request(Box<Wanted>, String),
    /// A decision.
    Work(routed::Wanted),
}

fn prepare(
    tx: &mut ReadTx,
    engine: &Engine,
    task: &ClaimedTask,
) -> Result<Result<Prepared, StepError>, StoreError> {
    let (run, step) = (&task.run, &task.step.step);
    let own = graphs::value(tx, run.id, &ValueName::OnceKey(step.clone()))?;
    let own = own.and_then(|payload| payload.inline()?.read::<String>().ok());
    let once = own.unwrap_or_else(|| format!("{}/{step}", run.id));
    let Some(graph) = engine.graphs.get(tx, &run.definition, run.version)? else {
        let error = StepError::new("http.invalid", "the definition is missing");
        return Ok(Err(error.for_good()));
    };
    let blobs = engine.store.blobs();
    let mut view = fold::stored(tx, &blobs, run.id);
    let now = engine.now().wall;
    if routed::is_route(&graph, step) {
        let wanted = routed::wanted_of(&graph, run, step, now, &mut view)?;
        return Ok(wanted.map(Prepared::Work));
    }
    let wanted = request_of(&graph, run, step, now, &mut view)?;
    Ok(wanted.map(|wanted| Prepared::Request(Box::new(wanted), once)))
}

/// True for what means "not yet" to a sensor: another status, or an address that does not answer now. What would be the same
/// for ever fails it, and so does its own time limit.
fn is_no_answer(failure: &HttpFailure, is_limited: bool) -> bool {
    let is_own_limit = is_limited && failure.code == http::code::TIMEOUT;
    failure.code.starts_with("http.status_") || failure.retryable && !is_own_limit
}

fn error_of(failure: HttpFailure, is_limited: bool) -> StepError {
    let code = if is_limited && failure.code == http::code::TIMEOUT {
        "timeout.attempt".to_owned()
    } else {
        failure.code
    };
    StepError {
        code,
        message: failure.message,
        retryable: failure.retryable,
        retry_after_ms: failure.retry_after_ms,
    }
}
