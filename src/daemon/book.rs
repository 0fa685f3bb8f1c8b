//! From the typed configuration to what the engine works with: definitions, schedules, the book.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use super::dag;
use crate::config::{
    self, CommandConfig, Config, DagConfig, HiddenText, JobConfig, LaunchConfig, ReportConfig, ReportsConfig,
    SecretConfig, SecretSource,
};
use crate::domain::lateness::Sla;
use crate::domain::report::{ReportKind, Routes, RoutesOfKind, ShellRoute, Value, WebhookRoute};
use crate::domain::schedule::{self, ParseOptions, Schedule};
use crate::domain::workflow::definition::{
    CommandLine, CommandStep, ConcurrencyPolicy, DayMatch, Definition, FailsWhen, OnMissed, Policy, Retry,
    ScheduleText, SecretFrom, SecretRef, SlotDemand, Step, Verify,
};
use crate::domain::workflow::graph::build::Graph;
use crate::engine::book::{Book, BookJob, BookSlots, Heartbeat, Notify};
use crate::words::names::{BadName, JobName, NodeName, SlotPoolName, StepRef};

/// The definitions of all jobs and dags. Names were checked when the file was read; a name that is none is an error here
/// too.
pub fn definitions_of(config: &Config) -> Result<Vec<Definition>, BadName> {
    let jobs = config.jobs.iter().map(definition_of);
    jobs.chain(config.dags.iter().map(dag::definition_of)).collect()
}

fn definition_of(job: &JobConfig) -> Result<Definition, BadName> {
    let slots = match &job.slots {
        None => None,
        Some(slots) => Some(demand_of(slots)?),
    };
    Ok(Definition {
        name: JobName::new(&job.name)?,
        enabled: job.enabled,
        schedule: schedule_text(job.schedule.as_ref(), &timing_of(job)),
        concurrency: match job.concurrency_policy {
            config::ConcurrencyPolicy::Allow => ConcurrencyPolicy::Allow,
            config::ConcurrencyPolicy::Forbid => ConcurrencyPolicy::Forbid,
            config::ConcurrencyPolicy::Replace => ConcurrencyPolicy::Replace,
        },
        policy: policy_of(&job.policy),
        sla: sla_of(&job.sla),
        reports: reports_of(job).wishes(),
        graph: None,
        steps: vec![Step {
            name: StepRef::main(),
            command: command_of(&job.launch),
            slots,
        }],
    })
}

pub(super) fn demand_of(slots: &config::SlotsConfig) -> Result<SlotDemand, BadName> {
    Ok(SlotDemand {
        slot_pool: SlotPoolName::new(&slots.slot_pool)?,
        slots: slots.slots,
        priority: slots.priority,
        queue_timeout_ms: slots.queue_timeout_ms,
    })
}

pub(super) fn sla_of(given: &config::SlaConfig) -> Sla {
    Sla {
        max_time_since_success_ms: given.max_time_since_success_ms,
        late_after_ms: given.late_after_ms,
        max_runtime_ms: given.max_runtime_ms,
    }
}

/// How the schedule of a job or dag is read.
pub(super) struct Timing<'t> {
    seconds: bool,
    day_match: Option<config::DayMatch>,
    timezone: Option<&'t str>,
}

fn timing_of(job: &JobConfig) -> Timing<'_> {
    Timing {
        seconds: job.seconds,
        day_match: job.day_match,
        timezone: job.timezone.as_deref(),
    }
}

pub(super) fn timing_of_dag(dag: &DagConfig) -> Timing<'_> {
    Timing {
        seconds: dag.seconds,
        day_match: dag.day_match,
        timezone: dag.timezone.as_deref(),
    }
}

pub(super) fn schedule_text(
    text: Option<&config::ScheduleText>,
    timing: &Timing<'_>,
) -> Option<ScheduleText> {
    text.map(|text| ScheduleText {
        text: text.text.clone(),
        seconds: timing.seconds,
        day_match: timing.day_match.map(day_match),
        timezone: timing.timezone.map(str::to_owned),
    })
}

/// What has a schedule in the configuration.
#[derive(Clone, Copy)]
pub(super) enum Scheduled<'s> {
    Job(&'s JobConfig),
    Dag(&'s DagConfig),
}

/// All that may have one, in the order of the files, dags after jobs.
pub(super) fn scheduled(config: &Config) -> impl Iterator<Item = Scheduled<'_>> {
    let jobs = config.jobs.iter().map(Scheduled::Job);
    jobs.chain(config.dags.iter().map(Scheduled::Dag))
}

impl<'s> Scheduled<'s> {
    pub(super) fn name(self) -> &'s str {
        match self {
            Scheduled::Job(job) => &job.name,
            Scheduled::Dag(dag) => &dag.name,
        }
    }

    /// `job` or `dag`.
    pub(super) fn word(self) -> &'static str {
        match self {
            Scheduled::Job(_) => "job",
            Scheduled::Dag(_) => "dag",
        }
    }

    pub(super) fn enabled(self) -> bool {
        match self {
            Scheduled::Job(job) => job.enabled,
            Scheduled::Dag(dag) => dag.enabled,
        }
    }

    /// As written.
    pub(super) fn text(self) -> Option<&'s config::ScheduleText> {
        match self {
            Scheduled::Job(job) => job.schedule.as_ref(),
            Scheduled::Dag(dag) => dag.schedule.as_ref(),
        }
    }

    /// Parsed. It was checked when the file was read.
    pub(super) fn schedule(self) -> Option<Schedule> {
        let timing = match self {
            Scheduled::Job(job) => timing_of(job),
            Scheduled::Dag(dag) => timing_of_dag(dag),
        };
        parsed(self.name(), &schedule_text(self.text(), &timing)?)
    }
}

pub(super) fn policy_of(given: &config::PolicyConfig) -> Policy {
    Policy {
        on_missed: match given.on_missed {
            config::OnMissed::Skip => OnMissed::Skip,
            config::OnMissed::RunOnce => OnMissed::RunOnce,
            config::OnMissed::RunAll => OnMissed::RunAll,
        },
        starting_deadline_ms: given.starting_deadline_ms,
        only_if_last_succeeded: given.only_if_last_succeeded,
        // There is no leader: without EveryNode, whoever writes the fire's row first has fired it.
        every_node: given.cluster_policy == config::ClusterPolicy::EveryNode,
        retry: Retry {
            retries_max: given.retry.maximum_retries,
            initial_delay_ms: given.retry.initial_delay_ms,
            maximum_delay_ms: given.retry.maximum_delay_ms,
            multiplier: given.retry.backoff_multiplier,
        },
    }
}

fn day_match(given: config::DayMatch) -> DayMatch {
    match given {
        config::DayMatch::Or => DayMatch::Or,
        config::DayMatch::And => DayMatch::And,
    }
}

fn text_of(path: &std::path::Path) -> String {
    path.to_string_lossy().into_owned()
}

fn line_of(command: &CommandConfig) -> CommandLine {
    match command {
        CommandConfig::Shell(script) => CommandLine::Shell(script.clone()),
        CommandConfig::List(words) => CommandLine::List(words.clone()),
    }
}

pub(super) fn command_of(launch: &LaunchConfig) -> CommandStep {
    let limits = &launch.resource_limits;
    let named = [
        ("cpuSeconds", limits.cpu_seconds),
        ("memory", limits.memory_bytes),
        ("processes", limits.processes),
        ("openFiles", limits.open_files),
        ("fileSize", limits.file_size_bytes),
        ("core", limits.core_bytes),
    ];
    CommandStep {
        command: line_of(&launch.command),
        shell: text_of(&launch.shell),
        environment: launch
            .environment
            .iter()
            .map(|entry| (entry.key.clone(), entry.value.clone()))
            .collect(),
        env_file: launch.env_file.as_deref().map(text_of),
        working_directory: launch.working_directory.as_deref().map(text_of),
        user: launch.user.clone(),
        group: launch.group.clone(),
        resource_limits: named
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)))
            .collect(),
        execution_timeout_ms: launch.execution_timeout_ms,
        kill_timeout_ms: launch.kill_timeout_ms,
        capture_stdout: launch.capture_stdout,
        capture_stderr: launch.capture_stderr,
        save_limit: launch.save_limit,
        fails_when: FailsWhen {
            nonzero_return: launch.fails_when.nonzero_return,
            produces_stdout: launch.fails_when.produces_stdout,
            produces_stderr: launch.fails_when.produces_stderr,
            always: launch.fails_when.always,
        },
        verify: launch.verify.as_ref().map(|verify| Verify {
            command: line_of(&verify.command),
            timeout_ms: verify.timeout_ms,
        }),
        secrets: launch.secrets.iter().map(secret_of).collect(),
    }
}

/// A secret's reference; nothing is read.
pub(super) fn secret_of(secret: &SecretConfig) -> SecretRef {
    SecretRef {
        name: secret.name.clone(),
        from: source_of(&secret.from),
    }
}

fn source_of(source: &SecretSource) -> SecretFrom {
    match source {
        SecretSource::File(path) => SecretFrom::File(text_of(path)),
        SecretSource::Variable(name) => SecretFrom::Variable(name.clone()),
    }
}

/// The schedule of a definition, parsed.
pub fn schedule_of(definition: &Definition) -> Option<Arc<Schedule>> {
    let text = definition.schedule.as_ref()?;
    parsed(definition.name.as_str(), text).map(Arc::new)
}

fn parsed(job: &str, text: &ScheduleText) -> Option<Schedule> {
    let options = ParseOptions {
        seconds: text.seconds,
        day_match: text.day_match.map(|choice| match choice {
            DayMatch::Or => schedule::DayMatch::Or,
            DayMatch::And => schedule::DayMatch::And,
        }),
        timezone: text.timezone.as_deref(),
        job_name: job,
    };
    match Schedule::parse(&text.text, options) {
        Ok(schedule) => Some(schedule),
        Err(error) => {
            tracing::error!(job, cause = %error, "this schedule was accepted and cannot be read");
            None
        }
    }
}

/// The slot pools of the configuration.
pub(super) fn slot_pools_of(config: &Config) -> Result<BTreeMap<SlotPoolName, BookSlots>, BadName> {
    let mut found = BTreeMap::new();
    for configured in &config.slot_pools {
        let slots = BookSlots {
            slots: configured.slots,
            max_queued: configured.max_queued,
        };
        found.insert(SlotPoolName::new(&configured.name)?, slots);
    }
    Ok(found)
}

/// The book: `versions` come from publishing the same definitions.
pub fn book_of(
    config: &Config,
    node: NodeName,
    definitions: Vec<Definition>,
    versions: &BTreeMap<JobName, u32>,
    locks_trusted: bool,
) -> Result<Book, BadName> {
    let mut reports: BTreeMap<JobName, Routes> = BTreeMap::new();
    for job in &config.jobs {
        reports.insert(JobName::new(&job.name)?, reports_of(job));
    }
    for dag in &config.dags {
        reports.insert(JobName::new(&dag.name)?, reports_of_dag(dag));
    }
    let jobs = definitions.into_iter().map(|definition| {
        let job = BookJob {
            version: versions.get(&definition.name).copied().unwrap_or(1),
            digest: definition.digest(),
            content: definition.stored().1,
            reports: Arc::new(reports.remove(&definition.name).unwrap_or_default()),
            graph: graph_of(&definition),
            schedule: schedule_of(&definition),
            definition: Arc::new(definition),
        };
        (job.definition.name.clone(), job)
    });
    Ok(Book {
        node,
        jobs: jobs.collect(),
        slot_pools: slot_pools_of(config)?,
        raise_immediately: match config.state.capacity_raise {
            config::CapacityRaise::Immediate => true,
            config::CapacityRaise::Drain => false,
        },
        locks_trusted,
        notify: notify_of(config),
        egress: config.egress.allow.as_slice().into(),
        pipeline_mode: config.routing.pipeline_mode,
        alert_secret: config.routing.alert_secret.as_ref().map(source_of),
    })
}

/// The graph of a dag, compiled. Its parts were checked when the file was read.
fn graph_of(definition: &Definition) -> Option<Arc<Graph>> {
    let document = definition.graph.as_deref()?;
    match Graph::build(document.clone()) {
        Ok(graph) => Some(Arc::new(graph)),
        Err(error) => {
            tracing::error!(dag = %definition.name, cause = %error, "this dag was accepted and cannot be compiled");
            None
        }
    }
}

fn notify_of(config: &Config) -> Notify {
    let heartbeat = config.notify.heartbeat.as_ref().map(|heartbeat| Heartbeat {
        url: hidden(&heartbeat.url.0),
        every_ms: heartbeat.every_ms,
    });
    let public = config.server.public_url.clone();
    Notify {
        heartbeat,
        base_url: public.or_else(|| local_url(config.server.listen)),
    }
}

/// Where a person on this machine finds the daemon; unknown when the port is the kernel's choice.
fn local_url(listen: SocketAddr) -> Option<String> {
    let host = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        other @ (IpAddr::V4(_) | IpAddr::V6(_)) => other,
    };
    (listen.port() != 0).then(|| format!("http://{}", SocketAddr::new(host, listen.port())))
}

/// Where the reports of a job go. Nothing is read here.
fn reports_of(job: &JobConfig) -> Routes {
    routes_of(&job.reports, &job.launch.shell)
}

/// Where the reports of a dag go. It has no shell of its own: its tasks have.
pub(super) fn reports_of_dag(dag: &DagConfig) -> Routes {
    routes_of(&dag.reports, Path::new("/bin/sh"))
}

fn routes_of(reports: &ReportsConfig, shell: &Path) -> Routes {
    let kinds = [
        (ReportKind::Failure, &reports.on_failure),
        (ReportKind::PermanentFailure, &reports.on_permanent_failure),
        (ReportKind::Success, &reports.on_success),
        (ReportKind::Late, &reports.on_late),
    ];
    Routes(
        kinds
            .map(|(kind, report)| (kind, routes_of_kind(report, shell)))
            .into(),
    )
}

fn routes_of_kind(report: &ReportConfig, job_shell: &Path) -> RoutesOfKind {
    RoutesOfKind {
        webhook: report.webhook.as_ref().map(|webhook| WebhookRoute {
            url: hidden(&webhook.url.0),
            headers: webhook
                .headers
                .iter()
                .map(|header| (header.name.clone(), hidden(&header.value)))
                .collect(),
            secret: webhook.secret.as_ref().map(source_of),
            body: webhook.body.clone(),
        }),
        shell: report.shell.as_ref().map(|shell| ShellRoute {
            command: line_of(&shell.command),
            shell: text_of(shell.shell.as_deref().unwrap_or(job_shell)),
            timeout_ms: shell.timeout_ms,
        }),
    }
}

fn hidden(text: &HiddenText) -> Value {
    match text {
        HiddenText::Written(text) => Value::Literal(text.clone()),
        HiddenText::From(from) => Value::From(source_of(from)),
    }
}
