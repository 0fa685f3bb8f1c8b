//! What a reload changes: jobs, slot pools and settings, and which of the settings need a restart.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::config::{Config, ReportsConfig, SlotPoolConfig};
use crate::domain::workflow::definition::Definition;
use crate::words::names::JobName;

/// Settings that a running daemon cannot change: it keeps their values, and says so.
pub(super) const RESTART: [&str; 9] = [
    "auth.bootstrapKeyFile",
    "auth.hashKeyFile",
    "logging.format",
    "node.name",
    "server.listen",
    "state.cacheBytes",
    "state.mode",
    "state.network",
    "state.path",
];

/// Settings that a reload changes at once.
#[cfg(test)]
pub(super) const LIVE: [&str; 27] = [
    "auth.issuers",
    "auth.sessionTtl",
    "crontabs",
    "egress.allow",
    "logging.level",
    "notify.heartbeat",
    "retention.age",
    "retention.audit.age",
    "retention.audit.count",
    "retention.logs.age",
    "retention.logs.bytes",
    "retention.runs",
    "routing.alertSecret",
    "routing.bundles",
    "routing.enforce",
    "routing.pipelineMode",
    "server.allowedHosts",
    "server.allowedOrigins",
    "server.maxBodyBytes",
    "server.publicUrl",
    "server.rateLimit.burst",
    "server.rateLimit.perSecond",
    "server.requestTimeout",
    "shutdown.drainTimeout",
    "state.capacityRaise",
    "state.lowDiskBytes",
    "tenants",
];

/// Everything that a reload changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Difference {
    /// Jobs.
    pub jobs: NameChanges,
    /// Dags.
    pub dags: NameChanges,
    /// Slot pools.
    #[serde(rename = "pools")]
    pub slot_pools: NameChanges,
    /// Settings that are in force now.
    pub settings: Vec<SettingChange>,
    /// Settings that keep their running values until the next start.
    pub needs_restart: Vec<SettingChange>,
}

/// What became of things with names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NameChanges {
    /// New ones.
    pub added: Vec<String>,
    /// Those that differ.
    pub changed: Vec<ChangedName>,
    /// Those that are gone.
    pub removed: Vec<String>,
}

/// A thing that differs, and in what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedName {
    /// Its name.
    pub name: String,
    /// The keys of the file whose values differ.
    pub keys: Vec<String>,
}

/// A setting that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SettingChange {
    /// As in the file: `server.listen`.
    pub key: String,
    /// The value in force before, and with `needs_restart` still.
    pub from: Value,
    /// The value that the file has.
    pub to: Value,
}

impl NameChanges {
    /// Nothing was added, changed or removed.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }

    fn between<T>(
        old: &BTreeMap<String, T>,
        new: &BTreeMap<String, T>,
        keys: impl Fn(&T, &T) -> Vec<String>,
    ) -> NameChanges {
        let absent = |from: &BTreeMap<String, T>, name: &String| !from.contains_key(name);
        let changed = new.iter().filter_map(|(name, after)| {
            let keys = keys(old.get(name)?, after);
            (!keys.is_empty()).then(|| ChangedName {
                name: name.clone(),
                keys,
            })
        });
        NameChanges {
            added: new.keys().filter(|name| absent(old, name)).cloned().collect(),
            changed: changed.collect(),
            removed: old.keys().filter(|name| absent(new, name)).cloned().collect(),
        }
    }
}

impl Difference {
    /// The difference between what is in force and what was read.
    pub(super) fn between(
        (old, old_jobs): (&Config, &BTreeMap<JobName, Definition>),
        (new, new_jobs): (&Config, &BTreeMap<JobName, Definition>),
    ) -> Difference {
        let by_name = |jobs: &BTreeMap<JobName, Definition>, graphs: bool| -> BTreeMap<String, Definition> {
            let wanted = jobs.iter().filter(|(_, job)| job.is_graph() == graphs);
            let named = wanted.map(|(name, job)| (name.to_string(), job.clone()));
            named.collect()
        };
        let slots_by_name = |config: &Config| -> BTreeMap<String, SlotPoolConfig> {
            let named = config
                .slot_pools
                .iter()
                .map(|slots| (slots.name.clone(), slots.clone()));
            named.collect()
        };
        let reports = changed_reports(old, new);
        let (needs_restart, settings) = setting_changes(old, new)
            .into_iter()
            .partition(|change| RESTART.contains(&change.key.as_str()));
        Difference {
            jobs: NameChanges::between(
                &by_name(old_jobs, false),
                &by_name(new_jobs, false),
                |before, after| {
                    let mut keys = changed_keys(before, after);
                    keys.extend(reports.get(after.name.as_str()).into_iter().flatten().cloned());
                    keys.sort_unstable();
                    keys.dedup();
                    keys
                },
            ),
            dags: NameChanges::between(&by_name(old_jobs, true), &by_name(new_jobs, true), changed_keys),
            slot_pools: NameChanges::between(&slots_by_name(old), &slots_by_name(new), changed_slots),
            settings,
            needs_restart,
        }
    }

    /// The file says what is in force already.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
            && self.dags.is_empty()
            && self.slot_pools.is_empty()
            && self.settings.is_empty()
            && self.needs_restart.is_empty()
    }

    /// One line for the log.
    pub fn summary(&self) -> String {
        let mut parts = Vec::new();
        let mut names = |what: &str, changes: &NameChanges| {
            let mut part = |verb: &str, names: Vec<&str>| {
                if !names.is_empty() {
                    parts.push(format!("{what} {verb}: {}", names.join(", ")));
                }
            };
            part("added", changes.added.iter().map(String::as_str).collect());
            part(
                "changed",
                changes
                    .changed
                    .iter()
                    .map(|changed| changed.name.as_str())
                    .collect(),
            );
            part("removed", changes.removed.iter().map(String::as_str).collect());
        };
        names("jobs", &self.jobs);
        names("dags", &self.dags);
        names("pools", &self.slot_pools);
        let keys = |changes: &[SettingChange]| -> String {
            let keys: Vec<&str> = changes.iter().map(|change| change.key.as_str()).collect();
            keys.join(", ")
        };
        if !self.settings.is_empty() {
            parts.push(format!("settings: {}", keys(&self.settings)));
        }
        if !self.needs_restart.is_empty() {
            parts.push(format!("needs a restart: {}", keys(&self.needs_restart)));
        }
        if parts.is_empty() {
            return "nothing changed".to_owned();
        }
        parts.join("; ")
    }
}

fn changed_slots(old: &SlotPoolConfig, new: &SlotPoolConfig) -> Vec<String> {
    let differs = [
        ("slots", old.slots != new.slots),
        ("maxQueued", old.max_queued != new.max_queued),
    ];
    let keys = differs.into_iter().filter(|(_, differs)| *differs);
    keys.map(|(key, _)| key.to_owned()).collect()
}

/// Keys of the file whose values differ between two definitions of one job.
fn changed_keys(old: &Definition, new: &Definition) -> Vec<String> {
    if old == new {
        return Vec::new();
    }
    let (old, new) = (keys_of(old), keys_of(new));
    let words = old.keys().chain(new.keys());
    let mut keys: Vec<String> = words
        .filter(|word| old.get(*word) != new.get(*word))
        .cloned()
        .collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The hooks of each job whose reports differ, also where nothing of them may be shown.
fn changed_reports(old: &Config, new: &Config) -> BTreeMap<String, Vec<String>> {
    let before: BTreeMap<&str, &ReportsConfig> = old
        .jobs
        .iter()
        .map(|job| (job.name.as_str(), &job.reports))
        .collect();
    let keys_of = |before: &ReportsConfig, after: &ReportsConfig| -> Vec<String> {
        let hooks = [
            ("onFailure", before.on_failure != after.on_failure),
            (
                "onPermanentFailure",
                before.on_permanent_failure != after.on_permanent_failure,
            ),
            ("onSuccess", before.on_success != after.on_success),
            ("onLate", before.on_late != after.on_late),
        ];
        let changed = hooks.into_iter().filter(|(_, differs)| *differs);
        changed.map(|(key, _)| key.to_owned()).collect()
    };
    let changes = new.jobs.iter().filter_map(|job| {
        let keys = keys_of(before.get(job.name.as_str())?, &job.reports);
        Some((job.name.clone(), keys))
    });
    changes.collect()
}

/// A definition as the keys of a job in the file.
fn keys_of(definition: &Definition) -> BTreeMap<String, Value> {
    let mut keys = BTreeMap::new();
    // A definition is plain data: it always has a JSON.
    let json = serde_json::to_value(definition).unwrap_or_default();
    let Value::Object(mut members) = json else {
        return keys;
    };
    let steps = members.remove("steps").unwrap_or_default();
    let step = steps.get(0).cloned().unwrap_or_default();
    let part = |name: &str| {
        step.get(name)
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default()
    };
    // The definition knows which reports there are, the configuration where they go.
    members.remove("reports");
    let policy = members.remove("policy").unwrap_or_default();
    let policy = policy.as_object().cloned().unwrap_or_default();
    if let Some(graph) = members.remove("graph") {
        keys.extend(keys_of_graph(&graph));
    }
    let parts = members.into_iter().chain(part("command")).chain(policy);
    for (name, value) in parts.chain(part("slots")) {
        keys.insert(file_word(&name), value);
    }
    keys
}

/// Each task with what leads to it, and how many runs are kept.
fn keys_of_graph(graph: &Value) -> BTreeMap<String, Value> {
    let list = |member: &str| graph[member].as_array().cloned().unwrap_or_default();
    let edges = list("edges");
    let tasks = list("steps").into_iter().map(|step| {
        let leads = |edge: &&Value| edge["target_ref"] == step["ref"];
        let before: Vec<&Value> = edges.iter().filter(leads).collect();
        // All instances of a task are one task.
        let name = step["ref"].as_str().unwrap_or_default().trim_end_matches("[]");
        (format!("tasks.{name}"), json!([step, before]))
    });
    let kept = ("retainRuns".to_owned(), graph["retention"]["runs"].clone());
    tasks.chain([kept]).collect()
}

/// `kill_timeout_ms` as `killTimeout`, and those that the file calls by another name.
fn file_word(name: &str) -> String {
    match name {
        "concurrency" => "concurrencyPolicy".to_owned(),
        "every_node" => "clusterPolicy".to_owned(),
        "retry" => "onFailure".to_owned(),
        "starting_deadline_ms" => "startingDeadlineSeconds".to_owned(),
        "slots" => "poolSlots".to_owned(),
        "priority" => "queuePriority".to_owned(),
        _ => camel(name.trim_end_matches("_ms")),
    }
}

fn camel(name: &str) -> String {
    let mut word = String::new();
    for part in name.split('_') {
        let mut letters = part.chars();
        match letters.next() {
            Some(first) if !word.is_empty() => {
                word.push(first.to_ascii_uppercase());
                word.push_str(letters.as_str());
            }
            _ => word.push_str(part),
        }
    }
    word
}

fn setting_changes(old: &Config, new: &Config) -> Vec<SettingChange> {
    let notify_differs = old.notify != new.notify;
    let (old, new) = (settings_of(old), settings_of(new));
    let mut changes = shown_changes(&old, &new);
    let is_shown = changes.iter().any(|change| change.key.starts_with("notify."));
    let key = "notify.heartbeat.url";
    if let (true, false, Some(url)) = (notify_differs, is_shown, new.get(key)) {
        // What differs is the part of the address that is not shown.
        changes.push(SettingChange {
            key: key.to_owned(),
            from: url.clone(),
            to: url.clone(),
        });
    }
    changes
}

fn shown_changes(old: &BTreeMap<String, Value>, new: &BTreeMap<String, Value>) -> Vec<SettingChange> {
    let changed = new.iter().filter(|(key, value)| old.get(*key) != Some(value));
    changed
        .map(|(key, value)| {
            // No path of the machine leaves the daemon over HTTP.
            let shown =
                |value: Option<&Value>| value.filter(|_| key != "state.path").cloned().unwrap_or_default();
            SettingChange {
                key: key.clone(),
                from: shown(old.get(key)),
                to: shown(Some(value)),
            }
        })
        .collect()
}

/// Everything but jobs and slot pools, by the words of the file.
pub(super) fn settings_of(config: &Config) -> BTreeMap<String, Value> {
    let mut settings = BTreeMap::new();
    if let Ok(Value::Object(mut members)) = serde_json::to_value(config) {
        members.remove("jobs");
        members.remove("dags");
        members.remove("pools");
        flatten("", members, &mut settings);
    }
    settings
}

fn flatten(path: &str, members: Map<String, Value>, settings: &mut BTreeMap<String, Value>) {
    for (name, value) in members {
        if let Value::Object(inner) = value {
            flatten(&format!("{path}{name}."), inner, settings);
            continue;
        }
        let word = name.strip_suffix("Ms");
        let seconds = word.and_then(|_| Some(in_seconds(value.as_u64()?)));
        settings.insert(
            format!("{path}{}", word.unwrap_or(&name)),
            seconds.unwrap_or(value),
        );
    }
}

/// Durations are written in seconds in the file.
fn in_seconds(ms: u64) -> Value {
    if ms.is_multiple_of(1_000) {
        return Value::from(ms / 1_000);
    }
    Value::from(format!("{ms}ms"))
}

/// Puts the values in force of settings that need a restart into what was read.
pub(super) fn keep_running(running: &Config, read: &mut Config) {
    read.server.listen = running.server.listen;
    read.auth
        .bootstrap_key_file
        .clone_from(&running.auth.bootstrap_key_file);
    read.auth.hash_key_file.clone_from(&running.auth.hash_key_file);
    read.state.path.clone_from(&running.state.path);
    read.state.mode = running.state.mode;
    read.state.cache_bytes = running.state.cache_bytes;
    read.state.network = running.state.network;
    read.node.name.clone_from(&running.node.name);
    read.logging.format = running.logging.format;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::workflow::definition::tests::sample;
    use crate::domain::workflow::definition::{CommandLine, ScheduleText};

    fn jobs(definitions: &[Definition]) -> BTreeMap<JobName, Definition> {
        let named = definitions.iter().map(|job| (job.name.clone(), job.clone()));
        named.collect()
    }

    #[test]
    fn every_setting_is_live_or_needs_a_restart() {
        let mut known: Vec<&str> = RESTART.iter().chain(&LIVE).copied().collect();
        known.sort_unstable();
        let settings = settings_of(&Config::default());
        let keys: Vec<&str> = settings.keys().map(String::as_str).collect();
        assert_eq!(
            keys, known,
            "a new setting belongs into RESTART (and keep_running) or LIVE"
        );
    }

    #[test]
    fn what_needs_a_restart_keeps_its_running_value_and_nothing_else_does() {
        let running = Config::default();
        let mut read = Config::default();
        read.server.listen = ([127, 0, 0, 1], 9000).into();
        read.server.max_body_bytes = 1 << 20;
        read.state.path = "elsewhere".into();
        read.state.mode = crate::config::StateMode::Exclusive;
        read.state.cache_bytes = 1 << 20;
        read.state.network = true;
        read.node.name = Some("other".to_owned());
        read.logging.format = crate::config::LogFormat::Json;
        read.auth.bootstrap_key_file = Some("first.key".into());
        read.auth.hash_key_file = Some("hash.key".into());
        read.retention.runs = 7;
        let none = BTreeMap::new();
        let difference = Difference::between((&running, &none), (&read, &none));
        let keys = |changes: &[SettingChange]| -> Vec<String> {
            changes.iter().map(|change| change.key.clone()).collect()
        };
        assert_eq!(keys(&difference.needs_restart), RESTART);
        assert_eq!(
            keys(&difference.settings),
            ["retention.runs", "server.maxBodyBytes"]
        );
        let path = &difference.needs_restart[8];
        assert!(
            path.from.is_null() && path.to.is_null(),
            "no path leaves: {path:?}"
        );
        keep_running(&running, &mut read);
        let after = Difference::between((&running, &none), (&read, &none));
        assert!(after.needs_restart.is_empty());
        assert_eq!(keys(&after.settings), ["retention.runs", "server.maxBodyBytes"]);
    }

    #[test]
    fn jobs_are_told_apart_by_the_keys_of_the_file() {
        let (a, b, c) = (sample("a", Some("p")), sample("b", None), sample("c", Some("p")));
        let mut other = a.clone();
        other.schedule = Some(ScheduleText {
            text: "@daily".to_owned(),
            seconds: false,
            day_match: None,
            timezone: None,
        });
        other.steps[0].command.command = CommandLine::Shell("false".to_owned());
        other.steps[0].command.kill_timeout_ms = 1;
        other.steps[0].slots.as_mut().unwrap().priority = 3;
        let mut free = c.clone();
        free.steps[0].slots = None;
        let config = Config::default();
        let difference = Difference::between(
            (&config, &jobs(&[a, b, c])),
            (&config, &jobs(&[other, free, sample("d", None)])),
        );
        let changed = |name: &str, keys: &[&str]| ChangedName {
            name: name.to_owned(),
            keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        };
        let expected = NameChanges {
            added: vec!["d".to_owned()],
            changed: vec![
                changed("a", &["command", "killTimeout", "queuePriority", "schedule"]),
                changed("c", &["pool", "poolSlots", "queuePriority", "queueTimeout"]),
            ],
            removed: vec!["b".to_owned()],
        };
        assert_eq!(difference.jobs, expected);
        assert_eq!(
            difference.summary(),
            "jobs added: d; jobs changed: a, c; jobs removed: b"
        );
        assert_eq!(Difference::default().summary(), "nothing changed");
    }
}
