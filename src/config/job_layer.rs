//! The keys that a job and its file's `defaults` have in common, read once and then laid over each
//! other. A key that is absent, or faulty and reported, is None.

use std::collections::HashSet;
use std::path::PathBuf;
use std::rc::Rc;

use super::fault::{Fault, Place, shown};
use super::job_policy::{self, PolicyLayer};
use super::keys::Section;
use super::model::{
    CommandConfig, ConcurrencyPolicy, DayMatch, EnvironmentEntry, ResourceLimitsConfig, SecretConfig,
};
use super::reading::{Field, Fields, Reading};
use super::report_model::SlaConfig;
use super::reports::ReportsLayer;
use super::schedule_text::ScheduleCheck;
use super::tree::{Node, Value};

const MIB: u64 = 1024 * 1024;
const YEAR_MS: u64 = 31_536_000 * 1000;

/// Entries of one `environment`, and items of one `command`: far below what exec takes.
const ENTRIES_MAX: usize = 10_000;

/// A value with the place it came from.
#[derive(Clone)]
pub(super) struct Placed<T> {
    pub(super) value: T,
    pub(super) at: Place,
}

/// What stands under `pool`.
#[derive(Clone)]
pub(super) enum WantedSlotPool {
    Named(Placed<String>),
    /// A bare `pool:` drops the one of `defaults`.
    Dropped,
    /// Something that has been reported already.
    Faulty,
}

#[derive(Clone, Default)]
pub(super) struct JobLayer {
    pub(super) seconds: Option<bool>,
    pub(super) day_match: Option<DayMatch>,
    pub(super) timezone: Option<String>,
    pub(super) enabled: Option<bool>,
    pub(super) shell: Option<PathBuf>,
    pub(super) environment: Vec<EnvironmentEntry>,
    pub(super) env_file: Option<PathBuf>,
    pub(super) working_directory: Option<PathBuf>,
    pub(super) user: Option<String>,
    pub(super) group: Option<String>,
    pub(super) resource_limits: ResourceLimitsConfig,
    pub(super) concurrency_policy: Option<ConcurrencyPolicy>,
    pub(super) execution_timeout_ms: Option<u64>,
    pub(super) kill_timeout_ms: Option<u64>,
    pub(super) capture_stdout: Option<bool>,
    pub(super) capture_stderr: Option<bool>,
    pub(super) save_limit: Option<u32>,
    pub(super) fails_when: FailsWhenLayer,
    pub(super) verify: VerifyLayer,
    pub(super) secrets: Vec<SecretConfig>,
    pub(super) slots: SlotsLayer,
    pub(super) policy: PolicyLayer,
    pub(super) sla: SlaConfig,
    pub(super) reports: ReportsLayer,
}

#[derive(Clone, Default)]
pub(super) struct FailsWhenLayer {
    pub(super) nonzero_return: Option<bool>,
    pub(super) produces_stdout: Option<bool>,
    pub(super) produces_stderr: Option<bool>,
    pub(super) always: Option<bool>,
}

#[derive(Clone, Default)]
pub(super) struct VerifyLayer {
    /// Where `verify` stands in this layer.
    pub(super) at: Option<Place>,
    /// `command` stands there, good or not.
    pub(super) has_command: bool,
    pub(super) command: Option<CommandConfig>,
    pub(super) timeout_ms: Option<u64>,
}

#[derive(Clone, Default)]
pub(super) struct SlotsLayer {
    pub(super) slot_pool: Option<WantedSlotPool>,
    /// The first of `poolSlots`, `queuePriority` and `queueTimeout` that stands there.
    pub(super) first_option_at: Option<Place>,
    pub(super) slots: Option<Placed<u32>>,
    pub(super) priority: Option<i32>,
    pub(super) queue_timeout_ms: Option<u64>,
}

/// Reads keys of one layer; `subject` begins its messages: `job 'J': `.
pub(super) struct LayerReader<'r, 'a> {
    pub(super) reading: &'r mut Reading<'a>,
    pub(super) schedules: &'r dyn ScheduleCheck,
    pub(super) subject: &'r str,
}

impl LayerReader<'_, '_> {
    pub(super) fn read(&mut self, fields: &Fields) -> JobLayer {
        let mut layer = JobLayer::default();
        self.time_keys(fields, &mut layer);
        self.launch_keys(fields, &mut layer);
        self.limit_keys(fields, &mut layer);
        self.result_keys(fields, &mut layer);
        layer.verify = self.verify(fields);
        if let Some(field) = fields.get("secrets") {
            layer.secrets = self.secrets(&field);
        }
        layer.slots = self.slots(fields);
        layer.policy = job_policy::read(self, fields);
        layer.sla = self.sla(fields);
        layer.reports = self.reports(fields, layer.policy.failure_report.take());
        layer
    }

    pub(super) fn text(&self, rule: &str) -> String {
        format!("{}{rule}", self.subject)
    }

    fn boolean(&mut self, fields: &Fields, word: &str) -> Option<bool> {
        let field = fields.get(word)?;
        self.reading.boolean(&field)
    }

    fn time_keys(&mut self, fields: &Fields, layer: &mut JobLayer) {
        layer.enabled = self.boolean(fields, "enabled");
        layer.seconds = self.boolean(fields, "seconds");
        if let Some(field) = fields.get("dayMatch") {
            let words = [("or", DayMatch::Or), ("and", DayMatch::And)];
            let text = self.text("dayMatch must be or or and");
            layer.day_match = self.reading.choice(&field, &words, &text);
        }
        if let Some(field) = fields.get("timezone") {
            layer.timezone = self.timezone(&field);
        }
    }

    fn timezone(&mut self, field: &Field) -> Option<String> {
        let zone = self.reading.word(field)?;
        if self.schedules.knows_zone(&zone) {
            return Some(zone);
        }
        let message = self.text(&format!("unknown time zone '{}'", shown(&zone)));
        self.reading.error("config/time-zone", field.at(), message);
        None
    }

    fn launch_keys(&mut self, fields: &Fields, layer: &mut JobLayer) {
        if let Some(field) = fields.get("shell") {
            layer.shell = self.shell(&field);
        }
        if let Some(field) = fields.get("environment") {
            layer.environment = self.environment(&field);
        }
        layer.env_file = self.env_file(fields);
        if let Some(field) = fields.get("workingDirectory") {
            layer.working_directory = self.reading.path(&field);
        }
        if let Some(field) = fields.get("user") {
            layer.user = self.reading.word(&field);
        }
        if let Some(field) = fields.get("group") {
            layer.group = self.reading.word(&field);
        }
    }

    fn shell(&mut self, field: &Field) -> Option<PathBuf> {
        let shell = PathBuf::from(self.reading.text(field)?);
        if shell.is_absolute() {
            return Some(shell);
        }
        let message = self.text("shell must be an absolute path");
        self.reading.error("config/bad-value", field.at(), message);
        None
    }

    fn env_file(&mut self, fields: &Fields) -> Option<PathBuf> {
        let (own, alias) = (fields.get("envFile"), fields.get("env_file"));
        if let (Some(own), Some(alias)) = (&own, &alias) {
            let message = self.text("`envFile` and `env_file` are the same key");
            let fault = Fault::error("config/duplicate-key", &alias.key_at, message);
            self.reading
                .report(fault.with_related(&own.key_at, "the other one stands here"));
        }
        self.reading.path(&own.or(alias)?)
    }

    /// A list of {key, value}, or a map.
    fn environment(&mut self, field: &Field) -> Vec<EnvironmentEntry> {
        let written = match &field.node.value {
            Value::Mapping(_) => self.environment_map(field),
            Value::Scalar { .. } | Value::Sequence(_) => self.environment_list(field),
        };
        if written.len() > ENTRIES_MAX {
            let message = self.text(&format!("environment has more than {ENTRIES_MAX} entries"));
            self.reading.error("config/too-large", field.at(), message);
            return Vec::new();
        }
        let mut seen = HashSet::new();
        let mut entries = Vec::new();
        for (key, key_at, value) in written {
            if !is_environment_key(&key) {
                let message = self.text(&format!("environment key '{}' is invalid", shown(&key)));
                self.reading.error("config/bad-value", &key_at, message);
                continue;
            }
            if !seen.insert(key.clone()) {
                let message = self.text(&format!("environment key '{}' is given twice", shown(&key)));
                self.reading.error("config/duplicate-key", &key_at, message);
                continue;
            }
            let label = self.text(&format!("environment value of '{}'", shown(&key)));
            if let Some(value) = self.reading.substituted_of(&value, &label) {
                entries.push(EnvironmentEntry { key, value });
            }
        }
        entries
    }

    fn environment_map(&mut self, field: &Field) -> Vec<(String, Place, Rc<Node>)> {
        let pairs = self.reading.pairs(&field.node, &field.label);
        pairs
            .unwrap_or_default()
            .into_iter()
            .map(|(word, key, value)| (word, key.at.clone(), value))
            .collect()
    }

    fn environment_list(&mut self, field: &Field) -> Vec<(String, Place, Rc<Node>)> {
        let mut written = Vec::new();
        for item in self.reading.list(field).unwrap_or_default() {
            let Some(fields) = self.reading.fields(&item, Section::EnvironmentItem) else {
                continue;
            };
            let fields = fields.with_subject(self.subject).with_path("environment.");
            let (Some(key), Some(value)) = (fields.get("key"), fields.get("value")) else {
                let message = self.text("an item of `environment` needs `key` and `value`");
                self.reading.error("config/missing", &item.at, message);
                continue;
            };
            if let Some(word) = self.reading.text(&key) {
                written.push((word, key.at().clone(), value.node));
            }
        }
        written
    }

    fn limit_keys(&mut self, fields: &Fields, layer: &mut JobLayer) {
        if let Some(field) = fields.get("resourceLimits") {
            layer.resource_limits = self.resource_limits(&field);
        }
        if let Some(field) = fields.get("concurrencyPolicy") {
            let words = [
                ("Allow", ConcurrencyPolicy::Allow),
                ("Forbid", ConcurrencyPolicy::Forbid),
                ("Replace", ConcurrencyPolicy::Replace),
            ];
            let text = self.text("concurrencyPolicy must be Allow, Forbid or Replace");
            layer.concurrency_policy = self.reading.choice(&field, &words, &text);
        }
        if let Some(field) = fields.get("executionTimeout") {
            let text = self.text("executionTimeout must be > 0");
            layer.execution_timeout_ms = self.reading.duration(&field, 1..=u64::MAX, &text);
        }
        if let Some(field) = fields.get("killTimeout") {
            let text = self.text("killTimeout must be between 0 and 3600");
            layer.kill_timeout_ms = self.reading.duration(&field, 0..=3_600_000, &text);
        }
    }

    fn resource_limits(&mut self, field: &Field) -> ResourceLimitsConfig {
        let Some(fields) = self.reading.fields(&field.node, Section::ResourceLimits) else {
            return ResourceLimitsConfig::default();
        };
        let fields = fields.with_subject(self.subject).with_path("resourceLimits.");
        ResourceLimitsConfig {
            cpu_seconds: self.resource_count(&fields, "cpuSeconds"),
            memory_bytes: self.resource_size(&fields, "memory", MIB, "must be at least 1MiB"),
            processes: self.resource_count(&fields, "processes"),
            open_files: self.resource_count(&fields, "openFiles"),
            file_size_bytes: self.resource_size(&fields, "fileSize", 0, "is out of range"),
            core_bytes: self.resource_size(&fields, "core", 0, "is out of range"),
        }
    }

    fn resource_count(&mut self, fields: &Fields, word: &str) -> Option<u64> {
        let field = fields.get(word)?;
        let text = self.text(&format!(
            "resourceLimits.{word}: must be between 1 and {}",
            u32::MAX
        ));
        self.reading.count(&field, 1..=u32::MAX, &text).map(u64::from)
    }

    fn resource_size(&mut self, fields: &Fields, word: &str, min: u64, why: &str) -> Option<u64> {
        let field = fields.get(word)?;
        let text = self.text(&format!("resourceLimits.{word}: {why}"));
        self.reading.size(&field, min..=u64::MAX, &text)
    }

    fn result_keys(&mut self, fields: &Fields, layer: &mut JobLayer) {
        layer.capture_stdout = self.boolean(fields, "captureStdout");
        layer.capture_stderr = self.boolean(fields, "captureStderr");
        if let Some(field) = fields.get("saveLimit") {
            let text = self.text("saveLimit is out of range");
            layer.save_limit = self.reading.count(&field, 0..=1_000_000, &text);
        }
        let Some(field) = fields.get("failsWhen") else {
            return;
        };
        let Some(fields) = self.reading.fields(&field.node, Section::FailsWhen) else {
            return;
        };
        let fields = fields.with_subject(self.subject).with_path("failsWhen.");
        layer.fails_when = FailsWhenLayer {
            nonzero_return: self.boolean(&fields, "nonzeroReturn"),
            produces_stdout: self.boolean(&fields, "producesStdout"),
            produces_stderr: self.boolean(&fields, "producesStderr"),
            always: self.boolean(&fields, "always"),
        };
    }

    fn verify(&mut self, fields: &Fields) -> VerifyLayer {
        let Some(field) = fields.get("verify") else {
            return VerifyLayer::default();
        };
        let mut layer = VerifyLayer {
            at: Some(field.key_at.clone()),
            ..VerifyLayer::default()
        };
        let Some(fields) = self.reading.fields(&field.node, Section::Verify) else {
            layer.has_command = true;
            return layer;
        };
        let fields = fields.with_subject(self.subject).with_path("verify.");
        layer.has_command = fields.has("command");
        if let Some(field) = fields.get("command") {
            layer.command = self.command(&field, "verify.command");
        }
        if let Some(field) = fields.get("timeout") {
            let text = self.text("verify.timeout must be > 0");
            layer.timeout_ms = self.reading.duration(&field, 1..=u64::MAX, &text);
        }
        layer
    }

    fn slots(&mut self, fields: &Fields) -> SlotsLayer {
        let mut layer = SlotsLayer::default();
        if let Some(field) = fields.get("pool") {
            layer.slot_pool = Some(self.slot_pool(&field));
        }
        let options = ["poolSlots", "queuePriority", "queueTimeout"].map(|word| fields.get(word));
        layer.first_option_at = options.iter().flatten().next().map(|field| field.key_at.clone());
        let [slots, priority, queue_timeout] = options;
        if let Some(field) = slots {
            let text = self.text("poolSlots must be at least 1");
            let number = self.reading.integer(&field, 1..=i64::MAX, &text);
            layer.slots = number.map(|number| Placed {
                // What does not fit exceeds every slot pool, and is told so.
                value: u32::try_from(number).unwrap_or(u32::MAX),
                at: field.at().clone(),
            });
        }
        if let Some(field) = priority {
            let text = self.text("queuePriority is out of range");
            let number = self.reading.integer(&field, -1_000_000..=1_000_000, &text);
            layer.priority = number.and_then(|number| i32::try_from(number).ok());
        }
        if let Some(field) = queue_timeout {
            let text = self.text("queueTimeout must be finite and > 0");
            layer.queue_timeout_ms = self.reading.duration(&field, 1..=YEAR_MS, &text);
        }
        layer
    }

    fn slot_pool(&mut self, field: &Field) -> WantedSlotPool {
        if field.node.is_null() {
            return WantedSlotPool::Dropped;
        }
        let at = field.at().clone();
        match self.reading.text(field) {
            Some(value) => WantedSlotPool::Named(Placed { value, at }),
            None => WantedSlotPool::Faulty,
        }
    }

    /// A text for the shell, or a program with its arguments. Nothing is replaced in either.
    pub(super) fn command(&mut self, field: &Field, word: &str) -> Option<CommandConfig> {
        let empty = self.text(&format!("{word} is empty"));
        if let Value::Sequence(items) = &field.node.value {
            return self.command_list(field, items, &empty);
        }
        if field.node.is_null() {
            self.reading.error("config/bad-value", field.at(), empty);
            return None;
        }
        let text = self.reading.text(field)?;
        if text.trim().is_empty() {
            self.reading.error("config/bad-value", field.at(), empty);
            return None;
        }
        Some(CommandConfig::Shell(text))
    }

    fn command_list(&mut self, field: &Field, items: &[Rc<Node>], empty: &str) -> Option<CommandConfig> {
        if items.len() > ENTRIES_MAX {
            let message = format!("{} has more than {ENTRIES_MAX} items", field.label);
            self.reading.error("config/too-large", field.at(), message);
            return None;
        }
        let mut words = Vec::new();
        for item in items {
            let word = self
                .reading
                .text_of(item, &format!("an item of {}", field.label))?;
            if word.contains("${") {
                let message = self.text("`${…}` in a command list reaches the program as it is");
                let fault = Fault::warning("lint/shell-variable", &item.at, message);
                let help = "no shell reads a list: write the command as one text, or use `environment`";
                self.reading.report(fault.with_help(help));
            }
            words.push(word);
        }
        if words.first().is_none_or(|program| program.trim().is_empty()) {
            self.reading.error("config/bad-value", field.at(), empty);
            return None;
        }
        Some(CommandConfig::List(words))
    }
}

/// What can stand left of `=`: no `=`, no space, no control character.
pub(super) fn is_environment_key(key: &str) -> bool {
    !key.is_empty()
        && key.len() <= 1024
        && !key.contains(|letter: char| letter == '=' || letter.is_whitespace() || letter.is_control())
}
