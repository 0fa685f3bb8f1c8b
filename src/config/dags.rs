//! Dags: their own keys, and their tasks put together with what they inherit. `task_order` judges what depends on what.

use std::collections::HashMap;
use std::rc::Rc;

use super::dag_model::{DagConfig, TaskConfig};
use super::fault::{Fault, Place, shown};
use super::job_layer::{JobLayer, LayerReader};
use super::jobs::Timing;
use super::keys::Section;
use super::launch;
use super::model::{PolicyConfig, RetryConfig};
use super::names::{Names, Owner, is_name};
use super::reading::{Field, Fields, Reading};
use super::reports;
use super::schedule_text::{RawSchedule, ScheduleCheck};
use super::slot_pools::SlotPools;
use super::task_order;
use super::tasks::TaskReader;
use super::tree::Node;

/// Dags of one configuration.
pub const DAGS_MAX: usize = 1_000;

/// Tasks of one dag.
pub const TASKS_MAX: usize = 500;

const RETAIN_RUNS_DEFAULT: u32 = 50;

/// What dags are read with.
#[derive(Clone, Copy)]
pub(super) struct Known<'k> {
    pub(super) schedules: &'k dyn ScheduleCheck,
    pub(super) slot_pools: &'k SlotPools,
}

/// Reads dags, file by file.
#[derive(Default)]
pub(super) struct DagReader {
    count: usize,
    pub(super) dags: Vec<DagConfig>,
}

impl DagReader {
    /// Adds those of one file.
    pub(super) fn read(
        &mut self,
        reading: &mut Reading<'_>,
        known: Known<'_>,
        field: &Field,
        defaults: &Rc<JobLayer>,
        names: &mut Names,
    ) {
        for item in reading.list(field).unwrap_or_default() {
            self.count += 1;
            if self.count > DAGS_MAX {
                let message = format!("a configuration may have at most {DAGS_MAX} dags");
                return reading.error("config/too-large", &item.at, message);
            }
            let dag = self.read_one(reading, known, &item, defaults, names);
            self.dags.extend(dag);
        }
    }

    fn read_one(
        &mut self,
        reading: &mut Reading<'_>,
        known: Known<'_>,
        node: &Node,
        defaults: &Rc<JobLayer>,
        names: &mut Names,
    ) -> Option<DagConfig> {
        let fields = reading.fields(node, Section::Dag)?;
        let unnamed = format!("dag {}: ", self.count);
        let fields = fields.with_subject(&unnamed);
        let (name, at) = name(reading, &fields, names);
        let subject = match &name {
            Some(name) => format!("dag '{}': ", shown(name)),
            None => unnamed,
        };
        let fields = fields.with_subject(&subject);
        let mut reader = LayerReader {
            reading,
            schedules: known.schedules,
            subject: &subject,
        };
        let own = reader.read(&fields);
        check_hooks(reading, &subject, &own, defaults);
        let schedule = schedule(
            reading,
            known,
            &fields,
            &subject,
            name.as_deref(),
            (&own, defaults),
        );
        let retain_runs = fields.get("retainRuns").and_then(|field| {
            let text = format!("{subject}retainRuns must be at least 1");
            reading.count(&field, 1..=100_000, &text)
        });
        let dag = name.as_deref().unwrap_or_default();
        let tasks = tasks(reading, known, &fields, (dag, &subject, &at), defaults);
        let reports = own.reports.clone().over(&defaults.reports);
        Some(DagConfig {
            name: name?,
            at,
            schedule: schedule.map(RawSchedule::into_text),
            seconds: own.seconds.or(defaults.seconds).unwrap_or(false),
            day_match: own.day_match.or(defaults.day_match),
            timezone: own.timezone.or_else(|| defaults.timezone.clone()),
            enabled: own.enabled.or(defaults.enabled).unwrap_or(true),
            policy: PolicyConfig {
                only_if_last_succeeded: false,
                retry: RetryConfig::none(),
                ..own.policy.over(&defaults.policy)
            },
            sla: own.sla.over(defaults.sla),
            reports,
            retain_runs: retain_runs.unwrap_or(RETAIN_RUNS_DEFAULT),
            tasks,
        })
    }
}

/// What a job may say of its failures and a dag may not.
fn check_hooks(reading: &mut Reading<'_>, subject: &str, own: &JobLayer, defaults: &JobLayer) {
    if let Some(at) = &own.policy.retry_at {
        let message = format!("{subject}a dag is not tried again as a whole");
        let fault = Fault::error("config/not-for-dags", at, message);
        reading.report(fault.with_help("give its tasks `retries` and `retryDelaySeconds`"));
    }
    let sla = own.sla.over(defaults.sla);
    if let Some(at) = own.reports.late_at.as_ref().filter(|_| sla.is_empty()) {
        let message = format!("{subject}onLate requires sla");
        reading.error("config/missing", at, message);
    }
}

/// The name, unless it is faulty or taken; and where the dag is pointed at.
fn name(reading: &mut Reading<'_>, fields: &Fields, names: &mut Names) -> (Option<String>, Place) {
    let Some(field) = fields.get("name") else {
        reading.error("config/missing", &fields.at, "a dag needs a `name`");
        return (None, fields.at.clone());
    };
    let at = field.at().clone();
    let Some(name) = reading.text(&field) else {
        return (None, at);
    };
    if let Err(fault) = names.take(Owner::Dag, &name, &at) {
        reading.report(fault);
    }
    (is_name(&name).then_some(name), at)
}

fn schedule(
    reading: &mut Reading<'_>,
    known: Known<'_>,
    fields: &Fields,
    subject: &str,
    name: Option<&str>,
    (own, base): (&JobLayer, &JobLayer),
) -> Option<RawSchedule> {
    let field = fields.get("schedule")?;
    let schedule = RawSchedule::read(reading, &field, subject)?;
    if schedule.text.trim().eq_ignore_ascii_case("@reboot") {
        let message = format!("{subject}schedule: `@reboot` is for jobs only");
        reading.error("config/schedule", field.at(), message);
        return None;
    }
    let timing = Timing {
        subject,
        name: name.unwrap_or_default(),
        has_faulty_zone: fields.has("timezone") && own.timezone.is_none(),
        own,
        base,
    };
    timing.check(reading, known.schedules, &schedule);
    Some(schedule)
}

/// The tasks that are good by themselves; what is wrong between them is reported.
fn tasks(
    reading: &mut Reading<'_>,
    known: Known<'_>,
    fields: &Fields,
    (dag, subject, at): (&str, &str, &Place),
    defaults: &Rc<JobLayer>,
) -> Vec<TaskConfig> {
    let Some(field) = fields.get("tasks") else {
        reading.error("config/missing", at, format!("{subject}no tasks"));
        return Vec::new();
    };
    let Some(items) = reading.list(&field) else {
        return Vec::new();
    };
    if items.is_empty() {
        reading.error("config/missing", &field.key_at, format!("{subject}no tasks"));
    }
    if items.len() > TASKS_MAX {
        let message = format!("{subject}more than {TASKS_MAX} tasks");
        reading.error("config/too-large", &field.key_at, message);
        return Vec::new();
    }
    let mut seen: HashMap<String, Place> = HashMap::new();
    let mut read = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let mut reader = TaskReader {
            reading,
            known,
            dag,
            defaults,
        };
        let Some(task) = reader.read(index + 1, item) else {
            continue;
        };
        let Some(id) = &task.id else { continue };
        if let Some(first) = seen.get(id) {
            let message = format!("{subject}duplicate task '{}'", shown(id));
            let fault = Fault::error("config/duplicate-name", &task.at, message);
            reading.report(fault.with_related(first, "the first one stands here"));
            continue;
        }
        seen.insert(id.clone(), task.at.clone());
        read.push(task);
    }
    task_order::check(reading, subject, &read);
    read.into_iter().filter_map(|task| task.config).collect()
}

/// Bytes of text that a dag holds, inherited text included.
pub(super) fn text_bytes(dag: &DagConfig) -> usize {
    let tasks = dag.tasks.iter().map(|task| {
        let work = task
            .work()
            .map_or(0, |work| launch::text_bytes(&work.launch, work.slots.as_ref()));
        let after: usize = task
            .depends_on
            .iter()
            .map(|id| id.len() + launch::ENTRY_BYTES)
            .sum();
        task.id.len() + launch::ENTRY_BYTES + after + work
    });
    let reports = dag.reports.all().into_iter().map(reports::text_bytes);
    tasks.sum::<usize>() + reports.sum::<usize>()
}
