//! The courier: delivers stored reports after the commit of their cause, at least once, until they are there or given up.
//!
//! It blocks nothing: what it does runs beside dispatch, so many at once and no more, and so few for one job that a
//! receiver which hangs holds up its own reports only. A report is taken in the store before it is delivered, so that of
//! several daemons one does it; another takes it over when that one is dead or its time is over.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;

use super::book::{Book, BookJob};
use super::changes::deliver::{self, Taking};
use super::changes::report;
use super::core::Engine;
use crate::domain::report::{
    Context, Delivery, Effect, EffectState, ReportKind, ReportTarget, WebhookRoute, document, variables,
};
use crate::domain::workflow::definition::CommandLine;
use crate::store::rows::{Delivering, EffectDueRow};
use crate::store::tables::ROUTING_ALERTS;
use crate::store::{Rows, StoreError, effects};
use crate::words::limits;
use crate::words::names::{JobName, NodeName};
use crate::words::time::{BootMillis, Millis};
use crate::worker::outbound::{Alert, Letter, Outbound, ShellJob, post_alert, run_shell, sign_alert};

/// Between two tries to write what became of a delivery.
const WRITE_PAUSE: Duration = Duration::from_secs(1);

/// The loop.
#[derive(Debug)]
pub struct Courier {
    engine: Engine,
    outbound: Outbound,
    tasks: JoinSet<()>,
    under_way: BTreeMap<Id, (u64, JobName, ReportTarget)>,
    /// Deliveries under clocks that cannot be read here, by fence: since when they are seen.
    sightings: BTreeMap<u64, BootMillis>,
}

/// What a look has found.
#[derive(Debug, Default)]
struct Found {
    chosen: Vec<(Effect, Taking)>,
    /// When the next one is due that is not due yet.
    next: Option<Millis>,
    /// Fences of deliveries whose clock cannot be read here.
    unreadable_clocks: BTreeSet<u64>,
}

impl Courier {
    /// A courier with nothing under way.
    pub fn new(engine: Engine) -> Courier {
        Courier {
            engine,
            outbound: Outbound::new(),
            tasks: JoinSet::new(),
            under_way: BTreeMap::new(),
            sightings: BTreeMap::new(),
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
        let found = match self.choose().await {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(cause = %error, "reports cannot be read");
                Found::default()
            }
        };
        for (effect, fence) in self.take(found.chosen).await {
            let place = (effect.seq, effect.job.clone(), effect.target);
            let (engine, outbound) = (self.engine.clone(), self.outbound.clone());
            let task = self
                .tasks
                .spawn(async move { deliver_one(&engine, &outbound, effect, fence).await });
            self.under_way.insert(task.id(), place);
        }
        found.next
    }

    /// What is due and may be this daemon's.
    async fn choose(&mut self) -> Result<Found, StoreError> {
        let mut look = Look {
            engine: self.engine.clone(),
            under_way: self.under_way.values().cloned().collect(),
            sightings: self.sightings.clone(),
            dead: BTreeMap::new(),
        };
        let found = self.engine.read(move |tx| look.choose(tx)).await?;
        let now = self.engine.now().boot;
        self.sightings
            .retain(|fence, _| found.unreadable_clocks.contains(fence));
        for fence in &found.unreadable_clocks {
            self.sightings.entry(*fence).or_insert(now);
        }
        Ok(found)
    }

    /// Makes them this daemon's; those that it got, with their fences.
    async fn take(&self, chosen: Vec<(Effect, Taking)>) -> Vec<(Effect, u64)> {
        if chosen.is_empty() {
            return Vec::new();
        }
        let (effects, wishes): (Vec<Effect>, Vec<Taking>) = chosen.into_iter().unzip();
        let (node, clock) = (self.engine.node.clone(), self.engine.place.clock.clone());
        let taken = self.engine.store.change("take reports", move |tx| {
            deliver::take(tx, &node, &clock, &wishes)
        });
        match taken.await {
            Ok(fences) => effects
                .into_iter()
                .zip(fences)
                .filter_map(|(effect, fence)| Some((effect, fence?)))
                .collect(),
            Err(error) => {
                tracing::debug!(cause = %error, "reports could not be taken");
                Vec::new()
            }
        }
    }

    /// One look, for tests: what this daemon has made its own.
    #[cfg(test)]
    pub(super) async fn take_due(&mut self) -> Vec<(u64, u64)> {
        let found = self.choose().await.expect("a readable store");
        let taken = self.take(found.chosen).await;
        taken
            .into_iter()
            .map(|(effect, fence)| (effect.seq, fence))
            .collect()
    }
}

/// One look at what is due.
struct Look {
    engine: Engine,
    under_way: Vec<(u64, JobName, ReportTarget)>,
    sightings: BTreeMap<u64, BootMillis>,
    /// Which daemons were found dead or alive in this look.
    dead: BTreeMap<NodeName, bool>,
}

impl Look {
    fn choose(&mut self, rows: &mut impl Rows) -> Result<Found, StoreError> {
        let mut room = limits::DELIVERIES_MAX.saturating_sub(self.under_way.len());
        let mut of_job: BTreeMap<(JobName, ReportTarget), usize> = BTreeMap::new();
        for (_, job, target) in &self.under_way {
            *of_job.entry((job.clone(), *target)).or_default() += 1;
        }
        let mut found = Found::default();
        if room == 0 {
            return Ok(found);
        }
        let due = deliver::due(rows, self.engine.now().wall)?;
        found.next = due.next;
        let book = self.engine.book();
        for (seq, row) in due.now {
            if self.under_way.iter().any(|(other, _, _)| *other == seq) {
                continue;
            }
            let count = of_job.entry((row.job.clone(), row.target)).or_default();
            if *count >= limits::DELIVERIES_OF_JOB_MAX {
                continue;
            }
            match self.candidate(rows, &book, (seq, &row), &mut found.unreadable_clocks) {
                Ok(Some(chosen)) => {
                    *count += 1;
                    room -= 1;
                    found.chosen.push(chosen);
                }
                Ok(None) => {}
                Err(error) if error.is_row_fault() => {
                    tracing::debug!(cause = %error, "a report cannot be read");
                }
                Err(error) => return Err(error),
            }
            if room == 0 {
                break;
            }
        }
        Ok(found)
    }

    /// The report, if this daemon may take it and knows where it goes.
    fn candidate(
        &mut self,
        rows: &mut impl Rows,
        book: &Book,
        (seq, row): (u64, &EffectDueRow),
        unreadable_clocks: &mut BTreeSet<u64>,
    ) -> Result<Option<(Effect, Taking)>, StoreError> {
        let held = effects::delivering(rows, seq)?;
        if let Some(held) = &held
            && !self.may_take_over(held, unreadable_clocks)
        {
            return Ok(None);
        }
        let Some(effect) = effects::by_seq(rows, seq)? else {
            return Ok(None);
        };
        let job = book.jobs.get(&row.job);
        let routes = job.and_then(|job| job.reports.of(effect.kind));
        let hold_ms = match effect.target {
            ReportTarget::Webhook if effect.kind == ReportKind::Alert => Some(limits::WEBHOOK_TIMEOUT_MS),
            ReportTarget::Webhook => routes
                .and_then(|routes| routes.webhook.as_ref())
                .map(|_| limits::WEBHOOK_TIMEOUT_MS),
            ReportTarget::Shell => routes
                .and_then(|routes| routes.shell.as_ref())
                .map(|route| route.timeout_ms),
        };
        // A daemon that runs with another configuration gives up nothing that one with the published one can deliver.
        if hold_ms.is_none() && report::is_wanted(rows, &effect)? {
            return Ok(None);
        }
        let taking = Taking {
            seq,
            seen: held.map(|row| row.fence),
            hold_ms: hold_ms
                .unwrap_or_default()
                .saturating_add(limits::DELIVERY_SLACK_MS),
        };
        Ok(Some((effect, taking)))
    }

    /// True for what this name left behind at an earlier start, what a dead daemon left, and what took too long.
    fn may_take_over(&mut self, held: &Delivering, unreadable_clocks: &mut BTreeSet<u64>) -> bool {
        let now = self.engine.now();
        let is_over = held.is_over(&self.engine.place.clock, now).unwrap_or_else(|| {
            unreadable_clocks.insert(held.fence);
            let since = self.sightings.get(&held.fence);
            since.is_some_and(|since| since.until(now.boot) >= held.hold_ms)
        });
        if is_over || held.node == self.engine.node {
            return true;
        }
        if let Some(dead) = self.dead.get(&held.node) {
            return *dead;
        }
        let dead = self.engine.directory.is_node_free(&held.node);
        self.dead.insert(held.node.clone(), dead);
        dead
    }
}

async fn deliver_one(engine: &Engine, outbound: &Outbound, effect: Effect, fence: u64) {
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
            .change("report", move |tx| deliver::settle(tx, seq, fence, &to_write))
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
    if effect.kind == ReportKind::Alert {
        return alert(engine, effect).await;
    }
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

/// The alert of a breached SLA: its address stands in the recipient pool, so it goes through the egress guard.
async fn alert(engine: &Engine, effect: &Effect) -> Delivery {
    let seq = effect.seq;
    let row = engine
        .read(move |tx| tx.get(&ROUTING_ALERTS, &(effects::TENANT, seq)))
        .await;
    let row = match row {
        Ok(Some(row)) => row,
        Ok(None) => return Delivery::Refused("what it tells of is gone".to_owned()),
        Err(error) => return Delivery::Failed(error.to_string()),
    };
    let mut document = row.breached.document();
    document["type"] = effect.kind.type_word().into();
    let (id, timestamp_s) = (effect.id.to_string(), engine.now().wall.0.div_euclid(1_000));
    let (book, body) = (engine.book(), document.to_string().into_bytes());
    let signature = match book.alert_secret.clone() {
        None => None,
        Some(secret) => {
            let (id, body) = (id.clone(), body.clone());
            let signed = tokio::task::spawn_blocking(move || sign_alert(&secret, &id, timestamp_s, &body));
            match signed.await {
                Ok(Ok(signature)) => Some(signature),
                Ok(Err(why)) => return Delivery::Failed(format!("routing.alertSecret: {why}")),
                Err(error) => return Delivery::Failed(error.to_string()),
            }
        }
    };
    let alert = Alert {
        url: &row.url,
        id,
        timestamp_s,
        body,
        signature,
    };
    post_alert(alert, &book.egress).await
}

fn no_route(effect: &Effect) -> Delivery {
    Delivery::Refused(format!(
        "the job has no {}.report.{} any more",
        effect.kind.key(),
        effect.target.word()
    ))
}

fn context_of(job: &BookJob, effect: &Effect, base_url: Option<&str>) -> Context {
    let command = match job.definition.job_step().map(|step| &step.command.command) {
        Some(CommandLine::Shell(script)) => script.clone(),
        Some(CommandLine::List(words)) => words.join(" "),
        // A graph has one in each of its steps.
        None => String::new(),
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
