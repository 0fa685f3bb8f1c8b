//! One task of a dag: its keys, and which of them its type has.

use std::collections::HashSet;
use std::rc::Rc;

use super::dag_model::{ExpandConfig, OnReject, TaskConfig, TaskKind, TriggerRule, WorkConfig};
use super::dags::Known;
use super::fault::{Place, shown};
use super::job_layer::{JobLayer, LayerReader, Placed, WantedSlotPool};
use super::keys::Section;
use super::launch;
use super::names::is_name;
use super::reading::{Fields, Reading};
use super::tree::Node;

const YEAR_MS: u64 = 31_536_000 * 1000;

/// Bytes of an id: what is made of it for its instances has room in a name.
const ID_BYTES_MAX: usize = 100;

/// Ids under one `dependsOn`; there are not more tasks.
const DEPENDS_MAX: usize = super::dags::TASKS_MAX;

/// Keys that say something about one type only.
const OF_A_TYPE: [(&str, TaskType); 3] = [
    ("pokeIntervalSeconds", TaskType::Sensor),
    ("pokeTimeoutSeconds", TaskType::Sensor),
    ("onReject", TaskType::Approval),
];

/// Keys that an approval may have.
const OF_AN_APPROVAL: [&str; 5] = ["id", "type", "dependsOn", "triggerRule", "onReject"];

const APPROVAL_RULE: &str = "approval gates cannot use pool or verify";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskType {
    Task,
    Sensor,
    Approval,
}

impl TaskType {
    fn word(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Sensor => "sensor",
            Self::Approval => "approval",
        }
    }
}

/// A task that was read. What others need to know of it is there also when it is faulty otherwise.
pub(super) struct ReadTask {
    /// None: faulty, and reported.
    pub(super) id: Option<String>,
    pub(super) at: Place,
    /// `task 'D.T': `.
    pub(super) subject: String,
    pub(super) kind: Option<TaskType>,
    pub(super) depends_on: Vec<Placed<String>>,
    /// The task that `expand` names.
    pub(super) expands: Option<Placed<String>>,
    /// None: something of it is faulty, and reported.
    pub(super) config: Option<TaskConfig>,
}

pub(super) struct TaskReader<'r, 'a> {
    pub(super) reading: &'r mut Reading<'a>,
    pub(super) known: Known<'r>,
    /// The name of its dag; empty when that is faulty.
    pub(super) dag: &'r str,
    pub(super) defaults: &'r Rc<JobLayer>,
}

impl TaskReader<'_, '_> {
    pub(super) fn read(&mut self, number: usize, node: &Node) -> Option<ReadTask> {
        let fields = self.reading.fields(node, Section::Task)?;
        let unnamed = format!("task '{}.{number}': ", shown(self.dag));
        let fields = fields.with_subject(&unnamed);
        let (id, at) = self.id(&fields);
        let subject = match &id {
            Some(id) => format!("task '{}.{}': ", shown(self.dag), shown(id)),
            None => unnamed,
        };
        let fields = fields.with_subject(&subject);
        let kind = self.kind(&fields, &subject);
        let depends_on = self.depends_on(&fields, &subject);
        let rule = fields.get("triggerRule").map(|field| {
            let words = [
                ("all_success", TriggerRule::AllSuccess),
                ("all_done", TriggerRule::AllDone),
            ];
            let text = format!("{subject}unknown triggerRule");
            self.reading.choice(&field, &words, &text)
        });
        let expand = self.expand(&fields, &subject);
        let (expands, expand) = expand.map_or((None, None), |(from, config)| (Some(from), Some(config)));
        if let Some(kind) = kind {
            self.check_keys(&fields, &subject, kind);
        }
        let done = match kind {
            Some(TaskType::Approval) => Some(TaskKind::Approval {
                on_reject: self.on_reject(&fields, &subject),
            }),
            // Of what a task of an unknown type may have, a command is the likeliest.
            Some(TaskType::Task | TaskType::Sensor) | None => {
                let work = self.work(&fields, &subject, &at, expand);
                self.worked(&fields, &subject, kind, work)
            }
        };
        let config = done.zip(id.clone()).map(|(kind, id)| TaskConfig {
            id,
            at: at.clone(),
            depends_on: depends_on.iter().map(|placed| placed.value.clone()).collect(),
            trigger_rule: rule.flatten().unwrap_or(TriggerRule::AllSuccess),
            kind,
        });
        Some(ReadTask {
            id,
            at,
            subject,
            kind,
            depends_on,
            expands,
            config,
        })
    }

    fn id(&mut self, fields: &Fields) -> (Option<String>, Place) {
        let Some(field) = fields.get("id") else {
            self.reading
                .error("config/missing", &fields.at, "a task needs an `id`");
            return (None, fields.at.clone());
        };
        let at = field.at().clone();
        let id = self.reading.text(&field);
        let is_id = |id: &str| is_name(id) && id.len() <= ID_BYTES_MAX;
        if id.as_deref().is_some_and(|id| !is_id(id)) {
            let message =
                format!("task id must have 1 to {ID_BYTES_MAX} bytes and no control character, `/` or `#`");
            self.reading.error("config/bad-value", &at, message);
            return (None, at);
        }
        (id, at)
    }

    /// None: faulty, and reported.
    fn kind(&mut self, fields: &Fields, subject: &str) -> Option<TaskType> {
        let Some(field) = fields.get("type") else {
            return Some(TaskType::Task);
        };
        let words = [TaskType::Task, TaskType::Sensor, TaskType::Approval].map(|kind| (kind.word(), kind));
        let text = format!("{subject}unknown type");
        self.reading.choice(&field, &words, &text)
    }

    /// Each id once.
    fn depends_on(&mut self, fields: &Fields, subject: &str) -> Vec<Placed<String>> {
        let Some(field) = fields.get("dependsOn") else {
            return Vec::new();
        };
        let items = self.reading.list(&field).unwrap_or_default();
        if items.len() > DEPENDS_MAX {
            let message = format!("{subject}dependsOn has more than {DEPENDS_MAX} items");
            self.reading.error("config/too-large", field.at(), message);
            return Vec::new();
        }
        let mut found: Vec<Placed<String>> = Vec::new();
        let mut seen = HashSet::new();
        for item in items {
            let label = format!("{subject}an item of `dependsOn`");
            let Some(value) = self.reading.text_of(&item, &label) else {
                continue;
            };
            if seen.insert(value.clone()) {
                let at = item.at.clone();
                found.push(Placed { value, at });
            }
        }
        found
    }

    fn expand(&mut self, fields: &Fields, subject: &str) -> Option<(Placed<String>, ExpandConfig)> {
        let field = fields.get("expand")?;
        let inner = self.reading.fields(&field.node, Section::Expand)?;
        let inner = inner.with_subject(subject).with_path("expand.");
        let (Some(from), Some(key)) = (inner.get("fromTask"), inner.get("key")) else {
            let message = format!("{subject}expand needs `fromTask` and `key`");
            self.reading.error("config/missing", &field.key_at, message);
            return None;
        };
        let from_task = self.reading.text(&from);
        let key = self.reading.text(&key);
        let (from_task, key) = from_task.zip(key)?;
        let placed = Placed {
            value: from_task.clone(),
            at: from.at().clone(),
        };
        Some((placed, ExpandConfig { from_task, key }))
    }

    /// Keys that the type of the task does not have.
    fn check_keys(&mut self, fields: &Fields, subject: &str, kind: TaskType) {
        for (word, owner) in OF_A_TYPE {
            if let Some(field) = fields.get(word).filter(|_| kind != owner) {
                let article = if owner == TaskType::Approval { "an" } else { "a" };
                let message = format!("{subject}`{word}` needs `type: {}`", owner.word());
                let help = format!("only {article} {} has it", owner.word());
                let fault = super::fault::Fault::error("config/bad-value", &field.key_at, message);
                self.reading.report(fault.with_help(help));
            }
        }
        if kind != TaskType::Approval {
            return;
        }
        for key in Section::Task.known() {
            let Some(field) = fields.get(key.word) else {
                continue;
            };
            let drops = key.word == "pool" && field.node.is_null();
            let is_told = OF_A_TYPE.iter().any(|(word, _)| *word == key.word);
            if drops || is_told || OF_AN_APPROVAL.contains(&key.word) {
                continue;
            }
            let of_slots = ["pool", "poolSlots", "queuePriority", "queueTimeout", "verify"];
            let message = if of_slots.contains(&key.word) {
                format!("{subject}{APPROVAL_RULE}")
            } else {
                format!("{subject}an approval runs nothing and cannot use `{}`", key.word)
            };
            self.reading.error("config/bad-value", &field.key_at, message);
        }
    }

    fn on_reject(&mut self, fields: &Fields, subject: &str) -> OnReject {
        let given = fields.get("onReject").and_then(|field| {
            let words = [("fail", OnReject::Fail), ("skip", OnReject::Skip)];
            let text = format!("{subject}onReject must be fail or skip");
            self.reading.choice(&field, &words, &text)
        });
        given.unwrap_or(OnReject::Fail)
    }

    /// The command and what belongs to it; `defaults` lie below.
    fn work(
        &mut self,
        fields: &Fields,
        subject: &str,
        at: &Place,
        expand: Option<ExpandConfig>,
    ) -> Option<WorkConfig> {
        let base: &JobLayer = self.defaults;
        let mut reader = LayerReader {
            reading: self.reading,
            schedules: self.known.schedules,
            subject,
        };
        let mut own = reader.read(fields);
        let command = if let Some(field) = fields.get("command") {
            reader.command(&field, "command")
        } else {
            let message = format!("{subject}command is missing");
            reader.reading.error("config/missing", at, message);
            None
        };
        let retries = fields.get("retries").and_then(|field| {
            let text = format!("{subject}retries is out of range");
            self.reading.count(&field, 0..=1_000, &text)
        });
        let delay = fields.get("retryDelaySeconds").and_then(|field| {
            let text = format!("{subject}retryDelaySeconds is out of range");
            self.reading.duration(&field, 0..=YEAR_MS, &text)
        });
        // A slot pool that is faulty in `defaults` has been told there.
        let wants = own.slots.slot_pool.as_ref().or(base.slots.slot_pool.as_ref());
        let is_faulty = matches!(wants, Some(WantedSlotPool::Faulty));
        let slots = launch::slots(
            self.reading,
            self.known.slot_pools,
            subject,
            &own.slots,
            &base.slots,
        );
        let verify = launch::verify(self.reading, subject, &own.verify, &base.verify);
        let launch = launch::launch(command?, verify, &mut own, base);
        (!is_faulty).then_some(WorkConfig {
            launch,
            retries: retries.unwrap_or(0),
            retry_delay_ms: delay.unwrap_or(0),
            slots,
            expand,
        })
    }

    fn worked(
        &mut self,
        fields: &Fields,
        subject: &str,
        kind: Option<TaskType>,
        work: Option<WorkConfig>,
    ) -> Option<TaskKind> {
        let mut poke = |word: &str, unset: u64| {
            let Some(field) = fields.get(word) else {
                return unset;
            };
            let text = format!("{subject}{word} must be > 0");
            self.reading.duration(&field, 1..=YEAR_MS, &text).unwrap_or(unset)
        };
        let poke_interval_ms = poke("pokeIntervalSeconds", 30_000);
        let poke_timeout_ms = poke("pokeTimeoutSeconds", 3_600_000);
        let work = Box::new(work?);
        Some(match kind? {
            TaskType::Sensor => TaskKind::Sensor {
                work,
                poke_interval_ms,
                poke_timeout_ms,
            },
            // An approval does not come here.
            TaskType::Task | TaskType::Approval => TaskKind::Task(work),
        })
    }
}
