//! The words of every section: those that are read (`key_table`), and those that will be one day.
//!
//! When a key arrives its line leaves `LATER`, its row enters the table, and a reader asks for it. A word of neither is
//! an unknown key.

use Section::{
    Dag, Document, Job, Logging, Node, Notify, OnFailure, Report, ResourceLimits, Retention, RetentionLogs,
    Schedule, Server, SlotPool, State, Task, Webhook,
};

use super::key_table as table;
use super::key_table_access as access;
use super::key_table_dags as dags;
use super::key_table_reports as reports;
use super::shape::Shape;

/// One key of the file: what the reader, the schema and the reference page know of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub(super) word: &'static str,
    pub(super) shape: Shape,
    pub(super) unset: Unset,
    /// A sentence for people, without its full stop.
    pub(super) about: &'static str,
}

/// What holds when a key is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unset {
    /// It must not be.
    Required,
    /// Nothing.
    Nothing,
    /// This value, as one would write it.
    Is(&'static str),
}

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
    Egress,
    Auth,
    Issuer,
    Routing,
    RoutingBundle,
    Tenant,
    TenantRouting,
    RateLimit,
    Retention,
    RetentionLogs,
    RetentionAudit,
    Shutdown,
    Logging,
    Crontab,
    Dag,
    Task,
    Expand,
}

/// Known words that are refused for now: where, the word, and how it is named in the fault.
const LATER: &[(Section, &str, &str)] = &[
    (Document, "connections", "connections"),
    (Document, "ledger", "ledger"),
    (Document, "receipts", "receipts"),
    (Document, "statsd", "statsd"),
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
    (Dag, "concurrencyPolicy", "concurrencyPolicy"),
    (Task, "onFailure", "onFailure"),
    (Task, "onPermanentFailure", "onPermanentFailure"),
    (Task, "onSuccess", "onSuccess"),
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
            Self::Egress => "`egress`",
            Self::Auth => "`auth`",
            Self::Issuer => "an item of `auth.issuers`",
            Self::Routing => "`routing`",
            Self::Tenant => "an item of `tenants`",
            Self::TenantRouting => "`routing` of a tenant",
            Self::RoutingBundle => "an item of `routing.bundles`",
            Self::RateLimit => "`server.rateLimit`",
            Self::RetentionAudit => "`retention.audit`",
            Retention => "`retention`",
            RetentionLogs => "`retention.logs`",
            Self::Shutdown => "`shutdown`",
            Logging => "`logging`",
            Self::Crontab => "an item of `crontabs`",
            Dag => "a dag",
            Task => "a task",
            Self::Expand => "`expand`",
        }
    }

    /// Its name among the definitions of the schema.
    pub(super) fn definition(self) -> &'static str {
        match self {
            Document => "document",
            Server => "server",
            State => "state",
            Node => "node",
            SlotPool => "slotPool",
            Self::Defaults => "defaults",
            Job => "job",
            Schedule => "schedule",
            Self::EnvironmentItem => "environmentItem",
            Self::Secret => "secret",
            ResourceLimits => "resourceLimits",
            Self::FailsWhen => "failsWhen",
            Self::Verify => "verify",
            OnFailure => "onFailure",
            Self::OnPermanentFailure => "onPermanentFailure",
            Self::OnSuccess => "onSuccess",
            Self::OnLate => "onLate",
            Self::Retry => "retry",
            Report => "report",
            Webhook => "webhook",
            Self::ShellReport => "shellReport",
            Self::HiddenText => "hiddenText",
            Self::HiddenSecret => "hiddenSecret",
            Self::Sla => "sla",
            Notify => "notify",
            Self::Heartbeat => "heartbeat",
            Self::Egress => "egress",
            Self::Auth => "auth",
            Self::Issuer => "issuer",
            Self::Routing => "routing",
            Self::Tenant => "tenant",
            Self::TenantRouting => "tenantRouting",
            Self::RoutingBundle => "routingBundle",
            Self::RateLimit => "rateLimit",
            Self::RetentionAudit => "retentionAudit",
            Retention => "retention",
            RetentionLogs => "retentionLogs",
            Self::Shutdown => "shutdown",
            Logging => "logging",
            Self::Crontab => "crontab",
            Dag => "dag",
            Task => "task",
            Self::Expand => "expand",
        }
    }

    /// The rows of a map of this kind.
    pub(super) fn keys(self) -> &'static [Key] {
        match self {
            Document => table::DOCUMENT,
            Server => table::SERVER,
            State => table::STATE,
            Node => table::NODE,
            SlotPool => table::SLOT_POOL,
            Self::Defaults | Job => table::JOB,
            Schedule => table::SCHEDULE,
            Self::EnvironmentItem => table::ENVIRONMENT_ITEM,
            Self::Secret => table::SECRET,
            ResourceLimits => table::RESOURCE_LIMITS,
            Self::FailsWhen => table::FAILS_WHEN,
            Self::Verify => table::VERIFY,
            OnFailure => reports::ON_FAILURE,
            Self::OnPermanentFailure | Self::OnSuccess | Self::OnLate => reports::HOOK,
            Self::Retry => table::RETRY,
            Report => reports::REPORT,
            Webhook => reports::WEBHOOK,
            Self::ShellReport => reports::SHELL_REPORT,
            Self::HiddenText => reports::HIDDEN_TEXT,
            Self::HiddenSecret => reports::HIDDEN_SECRET,
            Self::Sla => reports::SLA,
            Notify => reports::NOTIFY,
            Self::Heartbeat => reports::HEARTBEAT,
            Self::Egress => table::EGRESS,
            Self::Auth => access::AUTH,
            Self::Issuer => access::ISSUER,
            Self::Routing => access::ROUTING,
            Self::Tenant => access::TENANT,
            Self::TenantRouting => access::TENANT_ROUTING,
            Self::RoutingBundle => access::ROUTING_BUNDLE,
            Self::RateLimit => access::RATE_LIMIT,
            Self::RetentionAudit => access::RETENTION_AUDIT,
            Retention => table::RETENTION,
            RetentionLogs => table::RETENTION_LOGS,
            Self::Shutdown => table::SHUTDOWN,
            Logging => table::LOGGING,
            Self::Crontab => table::CRONTAB,
            Dag => dags::DAG,
            Task => dags::TASK,
            Self::Expand => dags::EXPAND,
        }
    }

    /// `defaults` knows the words of a job.
    fn family(self) -> Self {
        if self == Self::Defaults { Job } else { self }
    }

    /// True for a row of `LATER` that holds here: what a job will have one day, dags and tasks will have too.
    fn has_later(self, section: Self) -> bool {
        section == self.family() || (matches!(self, Dag | Task) && section == Job)
    }

    pub(super) fn knows(self, word: &str) -> bool {
        self.key(word).is_some() && !self.is_own_of_a_job(word)
    }

    /// The row of a word.
    pub(super) fn key(self, word: &str) -> Option<&'static Key> {
        self.keys().iter().find(|key| key.word == word)
    }

    /// True for a key that each job has for itself.
    pub(super) fn is_own_of_a_job(self, word: &str) -> bool {
        self == Self::Defaults && OWN_OF_A_JOB.contains(&word)
    }

    /// The name of a word that is refused for now.
    pub(super) fn later(self, word: &str) -> Option<&'static str> {
        LATER
            .iter()
            .find(|(section, later, _)| self.has_later(*section) && *later == word)
            .map(|(_, _, name)| *name)
    }

    /// What to do about an unknown word.
    pub(super) fn help(self, word: &str) -> Option<String> {
        if self.is_own_of_a_job(word) {
            return Some(format!("`{word}` belongs to each job"));
        }
        let later = LATER
            .iter()
            .filter(|(section, _, _)| self.has_later(*section))
            .map(|(_, later, _)| *later);
        let words = self
            .keys()
            .iter()
            .map(|key| key.word)
            .filter(|known| self.knows(known));
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
            assert!(section.key(word).is_none(), "{word} is read and refused");
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
