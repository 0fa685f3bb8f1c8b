//! Jobs: their own keys, and putting them together with what they inherit, once the slot pools of
//! all files are known.

use std::rc::Rc;

use super::fault::{Place, shown};
use super::job_layer::{JobLayer, LayerReader, WantedSlotPool};
use super::keys::Section;
use super::launch::{self, unknown_slot_pool};
use super::model::{CommandConfig, ConcurrencyPolicy, JobConfig};
use super::names::{Names, Owner, is_name};
use super::reading::{Field, Fields, Reading};
use super::reports;
use super::schedule_text::{RawSchedule, ScheduleCheck};
use super::slot_pools::{Found, SlotPools};
use super::tree::Node;

/// Jobs of one configuration.
pub const JOBS_MAX: usize = 10_000;

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
    /// Those of dags too.
    pub(super) names: Names,
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
        match self.names.take(Owner::Job, &name, &at) {
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
        let (subject, base) = (&self.subject, &self.defaults);
        let slots = launch::slots(reading, slot_pools, subject, &self.own.slots, &base.slots);
        let verify = launch::verify(reading, subject, &self.own.verify, &base.verify);
        if let Some(schedule) = &self.schedule {
            let timing = Timing {
                subject,
                name: self.name.as_deref().unwrap_or_default(),
                has_faulty_zone: self.has_faulty_zone,
                own: &self.own,
                base,
            };
            timing.check(reading, schedules, schedule);
        }
        let sla = self.own.sla.over(self.defaults.sla);
        if let Some(at) = self.own.reports.late_at.as_ref().filter(|_| sla.is_empty()) {
            let message = format!("{}onLate requires sla", self.subject);
            reading.error("config/missing", at, message);
        }
        let (mut own, base) = (self.own, &self.defaults);
        Some(JobConfig {
            name: self.name?,
            at: self.at,
            launch: launch::launch(self.command?, verify, &mut own, base),
            schedule: self.schedule.map(RawSchedule::into_text),
            seconds: own.seconds.or(base.seconds).unwrap_or(false),
            day_match: own.day_match.or(base.day_match),
            timezone: own.timezone.or_else(|| base.timezone.clone()),
            timezone_from: None,
            labels: Vec::new(),
            enabled: own.enabled.or(base.enabled).unwrap_or(true),
            concurrency_policy: own
                .concurrency_policy
                .or(base.concurrency_policy)
                .unwrap_or(ConcurrencyPolicy::Allow),
            slots,
            policy: own.policy.over(&base.policy),
            sla,
            reports: own.reports.over(&base.reports),
        })
    }
}

/// When a job or dag fires, before that is checked.
pub(super) struct Timing<'t> {
    /// Begins messages: `job 'J': `.
    pub(super) subject: &'t str,
    pub(super) name: &'t str,
    /// A time zone that is faulty must not make the schedule look so.
    pub(super) has_faulty_zone: bool,
    pub(super) own: &'t JobLayer,
    pub(super) base: &'t JobLayer,
}

impl Timing<'_> {
    pub(super) fn check(
        &self,
        reading: &mut Reading<'_>,
        schedules: &dyn ScheduleCheck,
        schedule: &RawSchedule,
    ) {
        let seconds = self.own.seconds.or(self.base.seconds).unwrap_or(false);
        let timezone = if self.has_faulty_zone {
            None
        } else {
            self.own.timezone.as_deref().or(self.base.timezone.as_deref())
        };
        if let Err(fault) = schedules.check(self.name, &schedule.text, seconds, timezone) {
            schedule.report(reading, self.subject, &fault);
        }
    }
}

/// Bytes of text that a job holds, inherited text included.
pub(super) fn text_bytes(job: &JobConfig) -> usize {
    let labels: usize = job
        .labels
        .iter()
        .map(|label| label.key.len() + label.value.len() + launch::ENTRY_BYTES)
        .sum();
    let reports: usize = job.reports.all().into_iter().map(reports::text_bytes).sum();
    launch::text_bytes(&job.launch, job.slots.as_ref())
        + labels
        + reports
        + job.timezone.as_ref().map_or(0, String::len)
}
