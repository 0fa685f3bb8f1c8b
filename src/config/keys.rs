//! The words of every section: those that are read, and those that will be one day.
//!
//! This is the one table to touch when a key arrives: its line leaves `LATER`, its word enters
//! `words`, and a reader asks for it. A word of neither list is an unknown key.

use Section::{
    Document, Job, Logging, Node, Notify, OnFailure, Report, ResourceLimits, Retention, RetentionLogs,
    Schedule, Server, SlotPool, State, Webhook,
};

/// A kind of map in the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Document,
    Server,
    State,
    Node,
    SlotPool,
    Defaults,
    Job,
    Schedule,
    EnvironmentItem,
    Secret,
    ResourceLimits,
    FailsWhen,
    Verify,
    OnFailure,
    OnPermanentFailure,
    OnSuccess,
    OnLate,
    Retry,
    Report,
    Webhook,
    ShellReport,
    HiddenText,
    HiddenSecret,
    Sla,
    Notify,
    Heartbeat,
    Retention,
    RetentionLogs,
    Shutdown,
    Logging,
    Crontab,
}

/// Known words that are refused for now: where, the word, and how it is named in the fault.
const LATER: &[(Section, &str, &str)] = &[
    (Document, "auth", "auth"),
    (Document, "connections", "connections"),
    (Document, "dags", "dags"),
    (Document, "ledger", "ledger"),
    (Document, "receipts", "receipts"),
    (Document, "routing", "routing"),
    (Document, "statsd", "statsd"),
    (Document, "tenants", "tenants"),
    (Server, "rateLimit", "server.rateLimit"),
    (Retention, "audit", "retention.audit"),
    (Job, "archiveOutput", "archiveOutput"),
    (Job, "catchupJitterSeconds", "catchupJitterSeconds"),
    (Job, "concurrencyScope", "concurrencyScope"),
    (Job, "maxLineLength", "maxLineLength"),
    (Job, "monitorResources", "monitorResources"),
    (Job, "pokeJitterSeconds", "pokeJitterSeconds"),
    (Job, "priority", "priority"),
    (Job, "stateAllowedScopes", "stateAllowedScopes"),
    (Job, "statsd", "statsd"),
    (Job, "streamPrefix", "streamPrefix"),
    (Job, "utc", "utc"),
    (Notify, "events", "notify.events"),
    (Notify, "report", "notify.report"),
    (Report, "eventlog", "report.eventlog"),
    (Report, "mail", "report.mail"),
    (Report, "push", "report.push"),
    (Report, "sentry", "report.sentry"),
    (ResourceLimits, "cpu", "resourceLimits.cpu"),
    (ResourceLimits, "required", "resourceLimits.required"),
    (Schedule, "year", "year"),
    (Webhook, "contentType", "webhook.contentType"),
    (Webhook, "method", "webhook.method"),
    (Webhook, "timeout", "webhook.timeout"),
];

/// Keys of a job that its `defaults` cannot hold: they are what makes it that job.
const OWN_OF_A_JOB: [&str; 3] = ["name", "command", "schedule"];

const JOB: &[&str] = &[
    "name",
    "command",
    "schedule",
    "seconds",
    "dayMatch",
    "timezone",
    "enabled",
    "shell",
    "environment",
    "envFile",
    "env_file",
    "workingDirectory",
    "user",
    "group",
    "resourceLimits",
    "concurrencyPolicy",
    "executionTimeout",
    "killTimeout",
    "captureStdout",
    "captureStderr",
    "saveLimit",
    "failsWhen",
    "verify",
    "secrets",
    "pool",
    "poolSlots",
    "queuePriority",
    "queueTimeout",
    "onMissed",
    "startingDeadlineSeconds",
    "onlyIfLastSucceeded",
    "clusterPolicy",
    "onFailure",
    "onPermanentFailure",
    "onSuccess",
    "onLate",
    "sla",
];

const SERVER: &[&str] = &[
    "listen",
    "publicUrl",
    "allowedHosts",
    "allowedOrigins",
    "maxBodyBytes",
    "requestTimeout",
];

const STATE: &[&str] = &[
    "path",
    "mode",
    "capacityRaise",
    "cacheBytes",
    "network",
    "lowDiskBytes",
];

const DOCUMENT: &[&str] = &[
    "server",
    "state",
    "node",
    "pools",
    "defaults",
    "jobs",
    "retention",
    "shutdown",
    "logging",
    "crontabs",
    "include",
    "notify",
];

impl Section {
    /// How a message names a map of this kind.
    pub(super) fn title(self) -> &'static str {
        match self {
            Document => "the document",
            Server => "`server`",
            State => "`state`",
            Node => "`node`",
            SlotPool => "a slot pool",
            Self::Defaults => "`defaults`",
            Job => "a job",
            Schedule => "`schedule`",
            Self::EnvironmentItem => "an item of `environment`",
            Self::Secret => "an item of `secrets`",
            ResourceLimits => "`resourceLimits`",
            Self::FailsWhen => "`failsWhen`",
            Self::Verify => "`verify`",
            OnFailure => "`onFailure`",
            Self::OnPermanentFailure => "`onPermanentFailure`",
            Self::OnSuccess => "`onSuccess`",
            Self::OnLate => "`onLate`",
            Self::Retry => "`onFailure.retry`",
            Report => "`report`",
            Webhook => "`webhook`",
            Self::ShellReport => "`shell` of a report",
            Self::HiddenText => "a map that says where a text is read",
            Self::HiddenSecret => "`secret`",
            Self::Sla => "`sla`",
            Notify => "`notify`",
            Self::Heartbeat => "`heartbeat`",
            Retention => "`retention`",
            RetentionLogs => "`retention.logs`",
            Self::Shutdown => "`shutdown`",
            Logging => "`logging`",
            Self::Crontab => "an item of `crontabs`",
        }
    }

    fn words(self) -> &'static [&'static str] {
        match self {
            Document => DOCUMENT,
            Server => SERVER,
            State => STATE,
            Node => &["name"],
            SlotPool => &["slots", "maxQueued"],
            Self::Defaults | Job => JOB,
            Schedule => &["second", "minute", "hour", "dayOfMonth", "month", "dayOfWeek"],
            Self::EnvironmentItem => &["key", "value"],
            Self::Secret => &["name", "fromFile", "fromEnvVar"],
            ResourceLimits => &[
                "cpuSeconds",
                "memory",
                "processes",
                "openFiles",
                "fileSize",
                "core",
            ],
            Self::FailsWhen => &["nonzeroReturn", "producesStdout", "producesStderr", "always"],
            Self::Verify => &["command", "timeout"],
            OnFailure => &["retry", "report"],
            Self::OnPermanentFailure | Self::OnSuccess | Self::OnLate => &["report"],
            Report => &["webhook", "shell"],
            Webhook => &["url", "headers", "secret", "body"],
            Self::ShellReport => &["command", "shell", "timeout"],
            Self::HiddenText => &["value", "fromFile", "fromEnvVar"],
            Self::HiddenSecret => &["fromFile", "fromEnvVar"],
            Self::Sla => &[
                "maxTimeSinceSuccess",
                "maxTimeSinceSuccessSeconds",
                "lateAfter",
                "lateAfterSeconds",
                "maxRuntime",
                "maxRuntimeSeconds",
            ],
            Notify => &["heartbeat"],
            Self::Heartbeat => &["url", "every"],
            Self::Retry => &[
                "maximumRetries",
                "initialDelay",
                "maximumDelay",
                "backoffMultiplier",
            ],
            Retention => &["runs", "age", "logs"],
            RetentionLogs => &["age", "bytes"],
            Self::Shutdown => &["drainTimeout"],
            Logging => &["level", "format"],
            Self::Crontab => &["path", "user"],
        }
    }

    /// `defaults` knows the words of a job.
    fn family(self) -> Self {
        if self == Self::Defaults { Job } else { self }
    }

    pub(super) fn knows(self, word: &str) -> bool {
        self.words().contains(&word) && !self.is_own_of_a_job(word)
    }

    fn is_own_of_a_job(self, word: &str) -> bool {
        self == Self::Defaults && OWN_OF_A_JOB.contains(&word)
    }

    /// The name of a word that is refused for now.
    pub(super) fn later(self, word: &str) -> Option<&'static str> {
        LATER
            .iter()
            .find(|(section, later, _)| *section == self.family() && *later == word)
            .map(|(_, _, name)| *name)
    }

    /// What to do about an unknown word.
    pub(super) fn help(self, word: &str) -> Option<String> {
        if self.is_own_of_a_job(word) {
            return Some(format!("`{word}` belongs to each job"));
        }
        let later = LATER
            .iter()
            .filter(|(section, _, _)| *section == self.family())
            .map(|(_, later, _)| *later);
        let words = self.words().iter().copied().filter(|known| self.knows(known));
        nearest(word, words.chain(later)).map(|known| format!("did you mean `{known}`?"))
    }
}

/// The nearest of some words when it is near enough: two letters, or a third of the longer word.
/// Letters in another case cost nothing, so `MAXQUEUED` finds `maxQueued`.
pub(super) fn nearest<'w>(word: &str, words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let folded = word.to_lowercase();
    let length = folded.chars().count();
    // No word of ours or of a user's is that long; the distance costs the product of both.
    if length > 128 {
        return None;
    }
    words
        .filter_map(|known| {
            let known_folded = known.to_lowercase();
            let known_length = known_folded.chars().count();
            let allowed = 2.max(length.max(known_length) / 3);
            if length.abs_diff(known_length) > allowed {
                return None;
            }
            let distance = strsim::damerau_levenshtein(&folded, &known_folded);
            // `a` is not a misspelt `b`: something of the word has to be left.
            (distance <= allowed && distance < length).then_some((distance, known))
        })
        .min()
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_is_in_both_lists_and_none_twice() {
        for (index, (section, word, name)) in LATER.iter().enumerate() {
            assert!(!section.words().contains(word), "{word} is read and refused");
            assert!(name.ends_with(word));
            assert!(
                LATER[..index]
                    .iter()
                    .all(|(other, later, _)| (other, later) != (section, word))
            );
        }
    }

    #[test]
    fn nearest_word() {
        let words = ["slots", "maxQueued", "warehouse", "go"];
        for (word, expected) in [
            ("maxQeued", Some("maxQueued")),
            ("MAXQUEUED", Some("maxQueued")),
            ("warehose", Some("warehouse")),
            ("slot", Some("slots")),
            ("xyz", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, words.into_iter()), expected, "{word}");
        }
        assert_eq!(nearest(&"x".repeat(1_000_000), words.into_iter()), None);
    }
}
