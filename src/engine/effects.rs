//! The courier: delivers stored reports after the commit of their cause, at least once, until they are there or given up.
//!
//! It blocks nothing: what it does runs beside dispatch, so many at once and no more, and so few for one job that a
//! receiver which hangs holds up its own reports only. Two daemons may both deliver a report; its id is the same.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;

use super::changes::deliver;
use super::core::Engine;
use crate::domain::report::{
    Context, Delivery, Effect, EffectState, ReportTarget, WebhookRoute, document, variables,
};
use crate::domain::workflow::definition::CommandLine;
use crate::engine::book::BookJob;
use crate::store::{StoreError, effects};
use crate::words::limits;
use crate::words::names::JobName;
use crate::words::time::Millis;
use crate::worker::outbound::{Letter, Outbound, ShellJob, run_shell};

/// Between two tries to write what became of a delivery.
const WRITE_PAUSE: Duration = Duration::from_secs(1);

/// The loop.
#[derive(Debug)]
pub struct Courier {
    engine: Engine,
    outbound: Outbound,
    tasks: JoinSet<()>,
    under_way: BTreeMap<Id, (u64, JobName, ReportTarget)>,
}

/// What a look has found.
#[derive(Debug, Default)]
struct Found {
    chosen: Vec<Effect>,
    /// When the next one is due that is not due yet.
    next: Option<Millis>,
}

impl Courier {
    /// A courier with nothing under way.
    pub fn new(engine: Engine) -> Courier {
        Courier {
            engine,
            outbound: Outbound::new(),
            tasks: JoinSet::new(),
            under_way: BTreeMap::new(),
        }
    }

    /// Delivers until `finish`; then what is due is still tried once, and what is under way is waited for.
    pub async fn run(mut self, finish: CancellationToken) {
        loop {
            let finishing = finish.is_cancelled();
            let next = self.begin_due().await;
            if finishing && self.tasks.is_empty() {
                return;
            }
            let wait = self.wait_until(next);
            tokio::select! {
                Some(ended) = self.tasks.join_next_with_id(), if !self.tasks.is_empty() => {
                    let id = match ended {
                        Ok((id, ())) => id,
                        Err(error) => {
                            tracing::error!(cause = %error, "the delivery of a report ended in a defect");
                            error.id()
                        }
                    };
                    self.under_way.remove(&id);
                }
                () = self.engine.report_wake.notified() => {}
                () = tokio::time::sleep(wait) => {}
                () = finish.cancelled(), if !finishing => {}
            }
        }
    }

    /// A second at most: another daemon, or a change that wakes nobody, may owe a report too.
    fn wait_until(&self, next: Option<Millis>) -> Duration {
        let now = self.engine.now().wall;
        let ms = next.map_or(limits::PASS_PERIOD_MS, |next| next.since(now));
        Duration::from_millis(ms.clamp(1, limits::PASS_PERIOD_MS))
    }

    /// Begins what is due and finds room; when the next one is due.
    async fn begin_due(&mut self) -> Option<Millis> {
        let now = self.engine.now().wall;
        let under_way: Vec<(u64, JobName, ReportTarget)> = self.under_way.values().cloned().collect();
        let found = self.engine.read(move |tx| choose(tx, now, &under_way)).await;
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(cause = %error, "reports cannot be read");
                Found::default()
            }
        };
        for effect in found.chosen {
            let place = (effect.seq, effect.job.clone(), effect.target);
            let (engine, outbound) = (self.engine.clone(), self.outbound.clone());
            let task = self
                .tasks
                .spawn(async move { deliver_one(&engine, &outbound, effect).await });
            self.under_way.insert(task.id(), place);
        }
        found.next
    }
}

fn choose(
    rows: &mut impl crate::store::Rows,
    now: Millis,
    under_way: &[(u64, JobName, ReportTarget)],
) -> Result<Found, StoreError> {
    let mut room = limits::DELIVERIES_MAX.saturating_sub(under_way.len());
    let mut of_job: BTreeMap<(JobName, ReportTarget), usize> = BTreeMap::new();
    for (_, job, target) in under_way {
        *of_job.entry((job.clone(), *target)).or_default() += 1;
    }
    let mut found = Found::default();
    if room == 0 {
        return Ok(found);
    }
    let due = deliver::due(rows, now)?;
    found.next = due.next;
    for (seq, row) in due.now {
        if under_way.iter().any(|(other, _, _)| *other == seq) {
            continue;
        }
        let count = of_job.entry((row.job, row.target)).or_default();
        if *count >= limits::DELIVERIES_OF_JOB_MAX {
            continue;
        }
        match effects::by_seq(rows, seq) {
            Ok(Some(effect)) => {
                *count += 1;
                room -= 1;
                found.chosen.push(effect);
            }
            Ok(None) => {}
            Err(error) if error.is_row_fault() => tracing::debug!(cause = %error, "a report cannot be read"),
            Err(error) => return Err(error),
        }
        if room == 0 {
            break;
        }
    }
    Ok(found)
}

async fn deliver_one(engine: &Engine, outbound: &Outbound, effect: Effect) {
    let delivery = attempt(engine, outbound, &effect).await;
    let word = match &delivery {
        Delivery::Done => "delivered",
        Delivery::Failed(_) => "failed",
        Delivery::Refused(_) => "refused",
    };
    engine.metrics.count_delivery(effect.target.word(), word);
    let seq = effect.seq;
    let after = loop {
        let to_write = delivery.clone();
        let written = engine
            .store
            .change("report", move |tx| deliver::settle(tx, seq, &to_write))
            .await;
        match written {
            Ok(after) => break after,
            // Until it is written the report counts as owed: trying to write is better than sending it again.
            Err(error) => {
                tracing::debug!(cause = %error, "what became of a report could not be written; retrying");
            }
        }
        tokio::time::sleep(WRITE_PAUSE).await;
    };
    if let Some(after) = after {
        log(&after);
    }
}

fn log(effect: &Effect) {
    let (job, key, target) = (&effect.job, effect.kind.key(), effect.target.word());
    match &effect.state {
        EffectState::Waiting {
            tries: 1,
            last_error: Some(why),
            ..
        } => {
            tracing::warn!(job = %job, "Job {job}: its {key} {target} report failed and is tried again: {why}");
        }
        EffectState::Dead { reason, .. } => {
            tracing::error!(job = %job, "Job {job}: its {key} {target} report is given up: {reason}");
        }
        EffectState::Waiting { tries, .. } => {
            tracing::debug!(job = %job, tries, "a report failed again");
        }
        EffectState::Delivered { tries, .. } => tracing::debug!(job = %job, tries, "a report is delivered"),
    }
}

/// One try, by the configuration in force.
async fn attempt(engine: &Engine, outbound: &Outbound, effect: &Effect) -> Delivery {
    let book = engine.book();
    let Some(job) = book.jobs.get(&effect.job) else {
        return Delivery::Refused("the job is not configured any more".to_owned());
    };
    let context = context_of(job, effect, book.notify.base_url.as_deref());
    let routes = job.reports.of(effect.kind);
    match effect.target {
        ReportTarget::Webhook => match routes.and_then(|routes| routes.webhook.as_ref()) {
            Some(route) => post(engine, outbound, effect, route, &context).await,
            None => no_route(effect),
        },
        ReportTarget::Shell => match routes.and_then(|routes| routes.shell.as_ref()) {
            Some(route) => {
                let input = serde_json::to_string(&document(effect, &context)).unwrap_or_default();
                let variables = variables(effect, &context);
                run_shell(ShellJob {
                    route: route.clone(),
                    variables,
                    input,
                })
                .await
            }
            None => no_route(effect),
        },
    }
}

fn no_route(effect: &Effect) -> Delivery {
    Delivery::Refused(format!(
        "the job has no {}.report.{} any more",
        effect.kind.key(),
        effect.target.word()
    ))
}

fn context_of(job: &BookJob, effect: &Effect, base_url: Option<&str>) -> Context {
    let command = match &job.definition.main_step().command.command {
        CommandLine::Shell(script) => script.clone(),
        CommandLine::List(words) => words.join(" "),
    };
    Context {
        url: base_url
            .zip(effect.run)
            .map(|(base, run)| format!("{base}/ui/runs/{run}")),
        command,
        schedule: job
            .schedule
            .as_ref()
            .map(|schedule| schedule.text().to_owned())
            .unwrap_or_default(),
    }
}

async fn post(
    engine: &Engine,
    outbound: &Outbound,
    effect: &Effect,
    route: &WebhookRoute,
    context: &Context,
) -> Delivery {
    let document = document(effect, context);
    let body = match &route.body {
        Some(template) => template.render(&document),
        None => serde_json::to_string(&document).unwrap_or_default(),
    };
    let (route, id) = (route.clone(), effect.id.to_string());
    let timestamp_s = engine.now().wall.0.div_euclid(1_000);
    // It may read files.
    let written =
        tokio::task::spawn_blocking(move || Letter::of_report(&route, &id, timestamp_s, body.into_bytes()));
    match written.await {
        Ok(Ok(letter)) => outbound.send(&letter).await,
        Ok(Err(why)) => Delivery::Failed(why),
        Err(error) => Delivery::Failed(error.to_string()),
    }
}
