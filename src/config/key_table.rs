//! The table of all keys of the file, section by section: word, shape, what holds without it, and a sentence.

use super::keys::Unset::{Is, Nothing, Required};
use super::keys::{Key, Section, Unset};
use super::shape::Shape::{
    Boolean, Command, Duration, Environment, Integer, ListOf, Map, Named, Number, OneOf, Optional, Schedule,
    Size, Texts,
};
use super::shape::{Shape, Text};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;
pub(super) const SECOND: u64 = 1_000;
pub(super) const HOUR: u64 = 3_600 * SECOND;
pub(super) const DAY: u64 = 24 * HOUR;
const YEAR: u64 = 365 * DAY;
pub(super) const NO_END: u64 = u64::MAX;
pub(super) const COUNT_MAX: i64 = u32::MAX as i64;

pub(super) const fn key(word: &'static str, shape: Shape, unset: Unset, about: &'static str) -> Key {
    Key {
        word,
        shape,
        unset,
        about,
    }
}

pub(super) const fn text(word: &'static str, kind: Text, unset: Unset, about: &'static str) -> Key {
    key(word, Shape::Text(kind), unset, about)
}

pub(super) const fn map(word: &'static str, section: Section, about: &'static str) -> Key {
    key(word, Map(section), Nothing, about)
}

pub(super) const DOCUMENT: &[Key] = &[
    map("server", Section::Server, "The HTTP side of the daemon"),
    map("state", Section::State, "Where everything durable lies, and how"),
    map("node", Section::Node, "This daemon among others"),
    key(
        "pools",
        Named(Section::SlotPool),
        Nothing,
        "Slot pools: counted capacity that jobs share",
    ),
    map(
        "defaults",
        Section::Defaults,
        "What the jobs, dags and tasks of this file inherit",
    ),
    key("jobs", ListOf(Section::Job), Nothing, "Commands with schedules"),
    key(
        "dags",
        ListOf(Section::Dag),
        Nothing,
        "Several commands in an order, with one schedule",
    ),
    map("retention", Section::Retention, "How long what has ended is kept"),
    map("shutdown", Section::Shutdown, "How the daemon ends"),
    map("logging", Section::Logging, "The daemon's own log"),
    key(
        "crontabs",
        Shape::FilesOr(Section::Crontab),
        Nothing,
        "Tables of cron that are read as they are",
    ),
    key(
        "include",
        Shape::Files,
        Nothing,
        "Further files or patterns of them",
    ),
    map(
        "notify",
        Section::Notify,
        "What the daemon tells the outside about itself",
    ),
    map(
        "egress",
        Section::Egress,
        "What the HTTP steps of workflows may reach",
    ),
    map("auth", Section::Auth, "Keys, sessions and issuers: who may call"),
    key(
        "tenants",
        ListOf(Section::Tenant),
        Nothing,
        "Tenants that are there from the start on",
    ),
    map(
        "routing",
        Section::Routing,
        "How work is routed where neither pool nor tenant say so",
    ),
];

pub(super) const EGRESS: &[Key] = &[key(
    "allow",
    Texts(Text::EgressRule),
    Is("[]"),
    "Networks, hosts, or one port of them, that such a step may reach although they are not public",
)];

pub(super) const SERVER: &[Key] = &[
    text(
        "listen",
        Text::Address,
        Is("127.0.0.1:8470"),
        "Where the daemon listens; needs a restart",
    ),
    text(
        "publicUrl",
        Text::WebAddress,
        Nothing,
        "The address under which people reach it",
    ),
    key(
        "allowedHosts",
        Texts(Text::Host),
        Is("[]"),
        "Further values of the `Host` header that are answered",
    ),
    key(
        "allowedOrigins",
        Texts(Text::Origin),
        Is("[]"),
        "Origins whose pages may call the API",
    ),
    key(
        "maxBodyBytes",
        Size(KIB, GIB),
        Is("4MiB"),
        "The longest body of a request",
    ),
    key(
        "requestTimeout",
        Duration(100, HOUR),
        Is("30s"),
        "The longest time to an answer",
    ),
    map(
        "rateLimit",
        Section::RateLimit,
        "How much one key may ask; workers and event streams are exempt, and whoever calls without keys",
    ),
];

pub(super) const STATE: &[Key] = &[
    key(
        "path",
        Optional(&Shape::Text(Text::Path)),
        Is("./state"),
        "The state directory, relative to the first file; needs a restart",
    ),
    key(
        "mode",
        OneOf(&["auto", "exclusive", "shared"]),
        Is("auto"),
        "Whether the store is shared by daemons; needs a restart",
    ),
    key(
        "capacityRaise",
        OneOf(&["drain", "immediate"]),
        Is("drain"),
        "Whether a raised number of slots waits until the slot pool is empty",
    ),
    key(
        "cacheBytes",
        Size(MIB, 64 * GIB),
        Is("16MiB"),
        "Memory for the store's pages; needs a restart",
    ),
    key(
        "network",
        Boolean,
        Is("false"),
        "The state directory may stand on a network file system; needs a restart",
    ),
    key(
        "lowDiskBytes",
        Size(0, 1024 * GIB),
        Is("512MiB"),
        "Free bytes below which no new run begins; 0 lets them always begin",
    ),
];

pub(super) const NODE: &[Key] = &[text(
    "name",
    Text::NodeName,
    Nothing,
    "The daemon's name; generated and kept when it is absent; needs a restart",
)];

pub(super) const SLOT_POOL: &[Key] = &[
    key(
        "slots",
        Integer(1, 10_000),
        Required,
        "How many slots may be in use at once",
    ),
    key(
        "maxQueued",
        Integer(1, 10_000),
        Is("1000"),
        "The longest queue; a longer one refuses",
    ),
];

pub(super) const JOB: &[Key] = &[
    text(
        "name",
        Text::JobName,
        Required,
        "1 to 128 bytes without `/`, `#` and control characters, once in all files",
    ),
    key(
        "command",
        Command,
        Required,
        "What is run; nothing is replaced in it",
    ),
    key(
        "schedule",
        Schedule,
        Nothing,
        "When it fires; without one it is started by hand only",
    ),
    key(
        "seconds",
        Boolean,
        Is("false"),
        "The schedule has six fields, the second first",
    ),
    key(
        "dayMatch",
        OneOf(&["or", "and"]),
        Is("or"),
        "Whether one of day-of-month and day-of-week is enough when both are given",
    ),
    text("timezone", Text::TimeZone, Is("UTC"), "The zone of the schedule"),
    key(
        "enabled",
        Boolean,
        Is("true"),
        "False: it neither fires nor starts",
    ),
    text(
        "shell",
        Text::Shell,
        Is("/bin/sh"),
        "The shell of a command that is text",
    ),
    key("environment", Environment, Nothing, "Variables of the command"),
    text(
        "envFile",
        Text::Path,
        Nothing,
        "A file of KEY=VALUE lines, read at each launch",
    ),
    text("env_file", Text::Path, Nothing, "Another spelling of `envFile`"),
    text(
        "workingDirectory",
        Text::Path,
        Nothing,
        "The folder of the command; the daemon's when it is absent",
    ),
    text(
        "user",
        Text::User,
        Nothing,
        "Who runs it; needs a daemon that runs as root",
    ),
    text("group", Text::User, Nothing, "The group that runs it"),
    map(
        "resourceLimits",
        Section::ResourceLimits,
        "Limits of the kernel for each process of the command",
    ),
    key(
        "concurrencyPolicy",
        OneOf(&["Allow", "Forbid", "Replace"]),
        Is("Allow"),
        "What happens while an earlier run of it is live: both run, the new one waits or is skipped, the old one is ended",
    ),
    key(
        "executionTimeout",
        Duration(1, NO_END),
        Nothing,
        "The longest run of the command",
    ),
    key(
        "killTimeout",
        Duration(0, HOUR),
        Is("30s"),
        "From SIGTERM to SIGKILL",
    ),
    key(
        "captureStdout",
        Boolean,
        Is("true"),
        "Keep standard output; else it goes to the daemon's own",
    ),
    key(
        "captureStderr",
        Boolean,
        Is("true"),
        "Keep standard error; else it goes to the daemon's own",
    ),
    key(
        "saveLimit",
        Integer(0, 1_000_000),
        Is("4096"),
        "Lines kept of each stream: the first half and the last",
    ),
    map("failsWhen", Section::FailsWhen, "What counts as a failure"),
    map(
        "verify",
        Section::Verify,
        "A second command that must agree before a run is a success",
    ),
    key(
        "secrets",
        ListOf(Section::Secret),
        Nothing,
        "Variables whose values are read at each launch and masked in output",
    ),
    key(
        "pool",
        Optional(&Shape::Text(Text::SlotPoolName)),
        Nothing,
        "The slot pool in which it waits for slots",
    ),
    key(
        "poolSlots",
        Integer(1, 10_000),
        Is("1"),
        "How many slots it takes; at most those of its slot pool",
    ),
    key(
        "queuePriority",
        Integer(-1_000_000, 1_000_000),
        Is("0"),
        "Higher goes first",
    ),
    key(
        "queueTimeout",
        Duration(1, YEAR),
        Is("1h"),
        "How long it may wait for slots",
    ),
    key(
        "onMissed",
        OneOf(&["skip", "run-once", "run-all"]),
        Is("skip"),
        "What becomes of fires for which no daemon was there",
    ),
    key(
        "startingDeadlineSeconds",
        Duration(SECOND, YEAR),
        Nothing,
        "How late a fire may still begin",
    ),
    key(
        "onlyIfLastSucceeded",
        Boolean,
        Is("false"),
        "A fire is skipped while the newest run is no success",
    ),
    key(
        "clusterPolicy",
        OneOf(&["Leader", "PreferLeader", "EveryNode"]),
        Is("Leader"),
        "Whether a fire is for one daemon or for each",
    ),
    map("onFailure", Section::OnFailure, "What happens after a failed run"),
    map(
        "onPermanentFailure",
        Section::OnPermanentFailure,
        "What happens when no retry is left",
    ),
    map("onSuccess", Section::OnSuccess, "What happens after a success"),
    map(
        "onLate",
        Section::OnLate,
        "What happens when a limit of `sla` is broken",
    ),
    map("sla", Section::Sla, "Limits whose breach is told"),
];

pub(super) const SCHEDULE: &[Key] = &[
    text("second", Text::Field, Nothing, "0 to 59; needs `seconds: true`"),
    text("minute", Text::Field, Is("*"), "0 to 59"),
    text("hour", Text::Field, Is("*"), "0 to 23"),
    text("dayOfMonth", Text::Field, Is("*"), "1 to 31, or L"),
    text("month", Text::Field, Is("*"), "1 to 12, or jan to dec"),
    text("dayOfWeek", Text::Field, Is("*"), "0 to 7, or sun to sat"),
];

pub(super) const ENVIRONMENT_ITEM: &[Key] = &[
    text("key", Text::Variable, Required, "The name of the variable"),
    text("value", Text::Value, Required, "Its value"),
];

pub(super) const SECRET: &[Key] = &[
    text(
        "name",
        Text::Variable,
        Required,
        "The variable that the command gets",
    ),
    text(
        "fromFile",
        Text::Path,
        Nothing,
        "The file that holds the value; this or `fromEnvVar`",
    ),
    text(
        "fromEnvVar",
        Text::Variable,
        Nothing,
        "The daemon's variable that holds the value",
    ),
];

pub(super) const RESOURCE_LIMITS: &[Key] = &[
    key(
        "cpuSeconds",
        Integer(1, COUNT_MAX),
        Nothing,
        "Seconds of processor time",
    ),
    key("memory", Size(MIB, NO_END), Nothing, "Bytes of address space"),
    key(
        "processes",
        Integer(1, COUNT_MAX),
        Nothing,
        "Processes of the user",
    ),
    key("openFiles", Integer(1, COUNT_MAX), Nothing, "Open files"),
    key(
        "fileSize",
        Size(0, NO_END),
        Nothing,
        "Bytes of a file that it writes",
    ),
    key("core", Size(0, NO_END), Nothing, "Bytes of a core dump"),
];

pub(super) const FAILS_WHEN: &[Key] = &[
    key("nonzeroReturn", Boolean, Is("true"), "An exit code other than 0"),
    key(
        "producesStdout",
        Boolean,
        Is("false"),
        "Anything on standard output",
    ),
    key(
        "producesStderr",
        Boolean,
        Is("false"),
        "Anything on standard error",
    ),
    key("always", Boolean, Is("false"), "Always"),
];

pub(super) const VERIFY: &[Key] = &[
    key(
        "command",
        Command,
        Nothing,
        "The command that checks; its code 0 agrees",
    ),
    key("timeout", Duration(1, NO_END), Is("60s"), "Its time"),
];

pub(super) const CRONTAB: &[Key] = &[
    text("path", Text::FilePath, Required, "The file"),
    key(
        "user",
        Boolean,
        Is("false"),
        "It has a column for the user, as the system's own has",
    ),
];

pub(super) const RETRY: &[Key] = &[
    key(
        "maximumRetries",
        Integer(-1, 1_000_000),
        Is("0"),
        "Tries after the first; -1 is without end",
    ),
    key(
        "initialDelay",
        Duration(0, YEAR),
        Is("1s"),
        "Before the first of them",
    ),
    key("maximumDelay", Duration(0, YEAR), Is("5m"), "The longest delay"),
    key(
        "backoffMultiplier",
        Number(1.0, 1_000.0),
        Is("2"),
        "Each delay is the one before times this",
    ),
];

pub(super) const RETENTION: &[Key] = &[
    key(
        "runs",
        Integer(1, 1_000_000),
        Is("500"),
        "Ended runs kept of each job",
    ),
    key(
        "age",
        Duration(60 * SECOND, NO_END),
        Is("14d"),
        "How long an ended run is kept",
    ),
    map("logs", Section::RetentionLogs, "Logs of attempts"),
    map("audit", Section::RetentionAudit, "Who did what"),
];

pub(super) const RETENTION_LOGS: &[Key] = &[
    key(
        "age",
        Duration(60 * SECOND, NO_END),
        Nothing,
        "How long a log is kept; as long as its run when it is absent",
    ),
    key("bytes", Size(MIB, NO_END), Nothing, "Bytes of all logs together"),
];

pub(super) const SHUTDOWN: &[Key] = &[key(
    "drainTimeout",
    Duration(0, DAY),
    Is("5m"),
    "How long running commands are waited for before they are ended",
)];

pub(super) const LOGGING: &[Key] = &[
    text(
        "level",
        Text::LogLevel,
        Is("info"),
        "off, error, warn, info, debug or trace, also by module",
    ),
    key(
        "format",
        OneOf(&["auto", "pretty", "json"]),
        Is("auto"),
        "pretty on a terminal, else json; needs a restart",
    ),
];
