//! Jobs: their own keys, and putting them together with what they inherit, once the slot pools of
//! all files are known.

use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use super::fault::{Fault, Place, shown};
use super::job_layer::{JobLayer, LayerReader, Placed, SlotsLayer, VerifyLayer, WantedSlotPool};
use super::keys::Section;
use super::model::{
    CommandConfig, ConcurrencyPolicy, EnvironmentEntry, FailsWhenConfig, JobConfig, ResourceLimitsConfig,
    SlotsConfig, VerifyConfig,
};
use super::reading::{Field, Fields, Reading};
use super::reports;
use super::schedule_text::{RawSchedule, ScheduleCheck};
use super::secrets;
use super::slot_pools::{Found, SlotPools};
use super::tree::Node;

/// Jobs of one configuration.
pub const JOBS_MAX: usize = 10_000;

/// Bytes of a job's name.
const NAME_BYTES_MAX: usize = 128;

/// What an entry of a list costs beside its text.
const ENTRY_BYTES: usize = 48;

const NAME_RULE: &str = "job name must have 1 to 128 bytes and no control character, `/` or `#`";

/// A job whose own keys are read. A faulty key that a job must have makes it None.
pub(super) struct RawJob {
    /// Which file it stands in.
    pub(super) file: usize,
    name: Option<String>,
    subject: String,
    at: Place,
    command: Option<CommandConfig>,
    schedule: Option<RawSchedule>,
    /// A time zone that is faulty must not make the schedule look so.
    has_faulty_zone: bool,
    own: JobLayer,
    defaults: Rc<JobLayer>,
}

/// All jobs read so far, and which names are taken.
#[derive(Default)]
pub(super) struct RawJobs {
    names: HashMap<String, Place>,
    pub(super) jobs: Vec<RawJob>,
    count: usize,
}

/// The `defaults` of one file.
pub(super) fn read_defaults(
    reading: &mut Reading<'_>,
    schedules: &dyn ScheduleCheck,
    slot_pools: &SlotPools,
    field: &Field,
) -> JobLayer {
    let subject = "defaults: ";
    let Some(fields) = reading.fields(&field.node, Section::Defaults) else {
        return JobLayer::default();
    };
    let fields = fields.with_subject(subject);
    let mut reader = LayerReader {
        reading,
        schedules,
        subject,
    };
    let mut layer = reader.read(&fields);
    if let Some(WantedSlotPool::Named(name)) = &layer.slots.slot_pool
        && matches!(slot_pools.find(&name.value), Found::Unknown)
    {
        unknown_slot_pool(reading, slot_pools, subject, name);
        // Reported once here; the jobs that inherit it are not at fault.
        layer.slots.slot_pool = Some(WantedSlotPool::Faulty);
    }
    layer
}

fn unknown_slot_pool(
    reading: &mut Reading<'_>,
    slot_pools: &SlotPools,
    subject: &str,
    name: &Placed<String>,
) {
    let message = format!("{subject}unknown pool '{}'", shown(&name.value));
    let nearest = reading
        .has_room_for_hints()
        .then(|| slot_pools.nearest(&name.value))
        .flatten();
    let help = nearest.map(|name| format!("did you mean `{}`?", shown(name)));
    let fault = Fault::error("config/unknown-pool", &name.at, message);
    reading.report(fault.with_help_if(help));
}

impl RawJobs {
    /// Adds those of one file.
    pub(super) fn read(
        &mut self,
        reading: &mut Reading<'_>,
        schedules: &dyn ScheduleCheck,
        file: usize,
        field: &Field,
        defaults: &Rc<JobLayer>,
    ) {
        for item in reading.list(field).unwrap_or_default() {
            if !self.has_room(reading, &item.at) {
                return;
            }
            let job = self.read_one(reading, schedules, file, &item, defaults);
            self.jobs.extend(job);
        }
    }

    fn read_one(
        &mut self,
        reading: &mut Reading<'_>,
        schedules: &dyn ScheduleCheck,
        file: usize,
        node: &Node,
        defaults: &Rc<JobLayer>,
    ) -> Option<RawJob> {
        let fields = reading.fields(node, Section::Job)?;
        let unnamed = format!("job {}: ", self.count);
        let fields = fields.with_subject(&unnamed);
        let (name, at) = self.name(reading, &fields);
        let subject = match &name {
            Some(name) => format!("job '{}': ", shown(name)),
            None => unnamed,
        };
        let fields = fields.with_subject(&subject);
        let mut reader = LayerReader {
            reading,
            schedules,
            subject: &subject,
        };
        let own = reader.read(&fields);
        let command = if let Some(field) = fields.get("command") {
            reader.command(&field, "command")
        } else {
            let message = format!("{subject}command is missing");
            reader.reading.error("config/missing", &at, message);
            None
        };
        let schedule = fields
            .get("schedule")
            .and_then(|field| RawSchedule::read(reading, &field, &subject));
        Some(RawJob {
            file,
            name,
            at,
            command,
            schedule,
            has_faulty_zone: fields.has("timezone") && own.timezone.is_none(),
            own,
            defaults: defaults.clone(),
            subject,
        })
    }

    /// The name, unless it is faulty or taken; and where the job is pointed at.
    fn name(&mut self, reading: &mut Reading<'_>, fields: &Fields) -> (Option<String>, Place) {
        let Some(field) = fields.get("name") else {
            reading.error("config/missing", &fields.at, "a job needs a `name`");
            return (None, fields.at.clone());
        };
        let at = field.at().clone();
        let Some(name) = reading.text(&field) else {
            return (None, at);
        };
        match self.take_name(&name, &at) {
            Ok(()) => (Some(name), at),
            Err(fault) => {
                reading.report(fault);
                (is_name(&name).then_some(name), at)
            }
        }
    }

    /// Counts one more job; false when there are too many, which is reported once.
    pub(super) fn has_room(&mut self, reading: &mut Reading<'_>, at: &Place) -> bool {
        self.count += 1;
        if self.count == JOBS_MAX + 1 {
            let message = format!("a configuration may have at most {JOBS_MAX} jobs");
            reading.error("config/too-large", at, message);
        }
        self.count <= JOBS_MAX
    }

    /// Makes a name somebody's; a name that is none, or is somebody's already, is a fault.
    pub(super) fn take_name(&mut self, name: &str, at: &Place) -> Result<(), Fault> {
        if !is_name(name) {
            return Err(Fault::error("config/bad-value", at, NAME_RULE));
        }
        if let Some(first) = self.names.get(name) {
            let message = format!("duplicate job '{}'", shown(name));
            let fault = Fault::error("config/duplicate-name", at, message);
            return Err(fault.with_related(first, "the first one stands here"));
        }
        self.names.insert(name.to_owned(), at.clone());
        Ok(())
    }
}

fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len())
        && !name.trim().is_empty()
        && !name.contains(|letter: char| letter.is_control() || letter == '/' || letter == '#')
}

impl RawJob {
    /// A job of a crontab, which inherits nothing.
    pub(super) fn of_line(
        file: usize,
        name: String,
        at: Place,
        command: CommandConfig,
        schedule: RawSchedule,
        own: JobLayer,
    ) -> Self {
        Self {
            file,
            subject: format!("job '{}': ", shown(&name)),
            name: Some(name),
            at,
            command: Some(command),
            schedule: Some(schedule),
            has_faulty_zone: false,
            own,
            defaults: Rc::default(),
        }
    }

    /// The job with its inheritance, when nothing it needs is faulty.
    pub(super) fn assemble(
        self,
        reading: &mut Reading<'_>,
        schedules: &dyn ScheduleCheck,
        slot_pools: &SlotPools,
    ) -> Option<JobConfig> {
        let slots = self.slots(reading, slot_pools);
        let verify = self.verify(reading);
        self.check_schedule(reading, schedules);
        let sla = self.own.sla.over(self.defaults.sla);
        if let Some(at) = self.own.reports.late_at.as_ref().filter(|_| sla.is_empty()) {
            let message = format!("{}onLate requires sla", self.subject);
            reading.error("config/missing", at, message);
        }
        let (own, base) = (self.own, &self.defaults);
        Some(JobConfig {
            name: self.name?,
            at: self.at,
            command: self.command?,
            schedule: self.schedule.map(RawSchedule::into_text),
            seconds: own.seconds.or(base.seconds).unwrap_or(false),
            day_match: own.day_match.or(base.day_match),
            timezone: own.timezone.or_else(|| base.timezone.clone()),
            timezone_from: None,
            labels: Vec::new(),
            enabled: own.enabled.or(base.enabled).unwrap_or(true),
            shell: own
                .shell
                .or_else(|| base.shell.clone())
                .unwrap_or_else(|| "/bin/sh".into()),
            environment: merged(&base.environment, own.environment),
            env_file: own.env_file.or_else(|| base.env_file.clone()),
            working_directory: own.working_directory.or_else(|| base.working_directory.clone()),
            user: own.user.or_else(|| base.user.clone()),
            group: own.group.or_else(|| base.group.clone()),
            resource_limits: limits(&own.resource_limits, &base.resource_limits),
            concurrency_policy: own
                .concurrency_policy
                .or(base.concurrency_policy)
                .unwrap_or(ConcurrencyPolicy::Allow),
            execution_timeout_ms: own.execution_timeout_ms.or(base.execution_timeout_ms),
            kill_timeout_ms: own.kill_timeout_ms.or(base.kill_timeout_ms).unwrap_or(30_000),
            capture_stdout: own.capture_stdout.or(base.capture_stdout).unwrap_or(true),
            capture_stderr: own.capture_stderr.or(base.capture_stderr).unwrap_or(true),
            save_limit: own.save_limit.or(base.save_limit).unwrap_or(4096),
            fails_when: {
                let (own, base) = (&own.fails_when, &base.fails_when);
                FailsWhenConfig {
                    nonzero_return: own.nonzero_return.or(base.nonzero_return).unwrap_or(true),
                    produces_stdout: own.produces_stdout.or(base.produces_stdout).unwrap_or(false),
                    produces_stderr: own.produces_stderr.or(base.produces_stderr).unwrap_or(false),
                    always: own.always.or(base.always).unwrap_or(false),
                }
            },
            verify,
            secrets: secrets::merged(&base.secrets, own.secrets),
            slots,
            policy: own.policy.over(&base.policy),
            sla,
            reports: own.reports.over(&base.reports),
        })
    }

    fn check_schedule(&self, reading: &mut Reading<'_>, schedules: &dyn ScheduleCheck) {
        let Some(schedule) = &self.schedule else {
            return;
        };
        let base = &self.defaults;
        let seconds = self.own.seconds.or(base.seconds).unwrap_or(false);
        let timezone = if self.has_faulty_zone {
            None
        } else {
            self.own.timezone.as_deref().or(base.timezone.as_deref())
        };
        let name = self.name.as_deref().unwrap_or_default();
        if let Err(fault) = schedules.check(name, &schedule.text, seconds, timezone) {
            schedule.report(reading, &self.subject, &fault);
        }
    }

    fn verify(&self, reading: &mut Reading<'_>) -> Option<VerifyConfig> {
        let VerifyLayer {
            at,
            has_command,
            command,
            timeout_ms,
        } = &self.own.verify;
        let base = &self.defaults.verify;
        let command = command.clone().or_else(|| base.command.clone());
        if let (None, Some(at), false) = (&command, at, *has_command || base.has_command) {
            let message = format!("{}verify.command is missing", self.subject);
            reading.error("config/missing", at, message);
        }
        Some(VerifyConfig {
            command: command?,
            timeout_ms: timeout_ms.or(base.timeout_ms).unwrap_or(60_000),
        })
    }

    fn slots(&self, reading: &mut Reading<'_>, slot_pools: &SlotPools) -> Option<SlotsConfig> {
        let SlotsLayer {
            slot_pool: own_slot_pool,
            first_option_at,
            slots: own_slots,
            priority,
            queue_timeout_ms,
        } = &self.own.slots;
        let base = &self.defaults.slots;
        let name = match own_slot_pool.as_ref().or(base.slot_pool.as_ref()) {
            Some(WantedSlotPool::Named(name)) => name,
            Some(WantedSlotPool::Faulty) => return None,
            Some(WantedSlotPool::Dropped) | None => {
                if let Some(at) = first_option_at {
                    let message = "poolSlots, queuePriority and queueTimeout need pool";
                    reading.error("config/needs-pool", at, message);
                }
                return None;
            }
        };
        let slots = own_slots.as_ref().or(base.slots.as_ref());
        match slot_pools.find(&name.value) {
            Found::Slots(capacity) => {
                if let Some(slots) = slots.filter(|slots| slots.value > capacity) {
                    let message = format!("{}poolSlots exceeds pool capacity", self.subject);
                    let help = format!("`{}` has {capacity} slots", shown(&name.value));
                    let fault = Fault::error("config/out-of-range", &slots.at, message);
                    reading.report(fault.with_help(help));
                }
            }
            Found::Faulty => {}
            Found::Unknown => unknown_slot_pool(reading, slot_pools, &self.subject, name),
        }
        Some(SlotsConfig {
            slot_pool: name.value.clone(),
            slots: slots.map_or(1, |slots| slots.value),
            priority: priority.or(base.priority).unwrap_or(0),
            queue_timeout_ms: queue_timeout_ms.or(base.queue_timeout_ms).unwrap_or(3_600_000),
        })
    }
}

/// Bytes of text that a job holds, inherited text included.
pub(super) fn text_bytes(job: &JobConfig) -> usize {
    let command = |command: &CommandConfig| match command {
        CommandConfig::Shell(text) => text.len(),
        CommandConfig::List(words) => words.iter().map(|word| word.len() + ENTRY_BYTES).sum(),
    };
    let path = |path: &Path| path.as_os_str().len();
    let environment: usize = job
        .environment
        .iter()
        .map(|entry| entry.key.len() + entry.value.len() + ENTRY_BYTES)
        .sum();
    let secrets: usize = job.secrets.iter().map(secrets::text_bytes).sum();
    let labels: usize = job
        .labels
        .iter()
        .map(|label| label.key.len() + label.value.len() + ENTRY_BYTES)
        .sum();
    let reports: usize = job.reports.all().into_iter().map(reports::text_bytes).sum();
    let texts = [&job.timezone, &job.user, &job.group];
    command(&job.command)
        + job.verify.as_ref().map_or(0, |verify| command(&verify.command))
        + environment
        + secrets
        + labels
        + reports
        + texts.into_iter().flatten().map(String::len).sum::<usize>()
        + path(&job.shell)
        + job.env_file.as_deref().map_or(0, path)
        + job.working_directory.as_deref().map_or(0, path)
        + job.slots.as_ref().map_or(0, |slots| slots.slot_pool.len())
}

/// By key: the job's value stands where the default stood, its new keys follow.
fn merged(base: &[EnvironmentEntry], own: Vec<EnvironmentEntry>) -> Vec<EnvironmentEntry> {
    let mut entries = base.to_vec();
    let mut index: HashMap<String, usize> = base
        .iter()
        .enumerate()
        .map(|(index, entry)| (entry.key.clone(), index))
        .collect();
    for entry in own {
        if let Some(index) = index.get(&entry.key) {
            entries[*index] = entry;
        } else {
            index.insert(entry.key.clone(), entries.len());
            entries.push(entry);
        }
    }
    entries
}

fn limits(own: &ResourceLimitsConfig, base: &ResourceLimitsConfig) -> ResourceLimitsConfig {
    ResourceLimitsConfig {
        cpu_seconds: own.cpu_seconds.or(base.cpu_seconds),
        memory_bytes: own.memory_bytes.or(base.memory_bytes),
        processes: own.processes.or(base.processes),
        open_files: own.open_files.or(base.open_files),
        file_size_bytes: own.file_size_bytes.or(base.file_size_bytes),
        core_bytes: own.core_bytes.or(base.core_bytes),
    }
}
