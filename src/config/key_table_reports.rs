//! The table of the keys by which somebody is told: reports, `sla`, `notify`. The rest stands in `key_table`.

use super::key_table::{DAY, HOUR, NO_END, SECOND, key, map, text};
use super::keys::Unset::{Is, Nothing, Required};
use super::keys::{Key, Section};
use super::shape::Shape::{Command, Duration, Hidden, HiddenMap, Map, Optional};
use super::shape::{Shape, Text};

pub(super) const ON_FAILURE: &[Key] = &[
    map("retry", Section::Retry, "Trying again"),
    map("report", Section::Report, "Who is told"),
];

pub(super) const HOOK: &[Key] = &[map("report", Section::Report, "Who is told")];

const WEBHOOK_MAP: Shape = Map(Section::Webhook);
const SHELL_REPORT_MAP: Shape = Map(Section::ShellReport);

pub(super) const REPORT: &[Key] = &[
    key(
        "webhook",
        Optional(&WEBHOOK_MAP),
        Nothing,
        "A request to another host; nothing drops that of `defaults`",
    ),
    key(
        "shell",
        Optional(&SHELL_REPORT_MAP),
        Nothing,
        "A command; nothing drops that of `defaults`",
    ),
];

pub(super) const WEBHOOK: &[Key] = &[
    key(
        "url",
        Hidden(Text::WebAddress),
        Required,
        "Where the request goes",
    ),
    key(
        "headers",
        HiddenMap,
        Nothing,
        "Headers of the request, each a text or where it is read",
    ),
    map(
        "secret",
        Section::HiddenSecret,
        "Where the secret is read that signs it",
    ),
    text(
        "body",
        Text::Template,
        Nothing,
        "The text of the request, with fields like `${reason}`; the whole report as JSON when absent",
    ),
];

pub(super) const SHELL_REPORT: &[Key] = &[
    key(
        "command",
        Command,
        Required,
        "What is run, with `DUCTOR_REPORT_` variables and the report as JSON on standard input",
    ),
    text(
        "shell",
        Text::Shell,
        Nothing,
        "The shell of a command that is text; the job's when absent",
    ),
    key("timeout", Duration(1, HOUR), Is("60s"), "Its time"),
];

pub(super) const HIDDEN_TEXT: &[Key] = &[
    text(
        "value",
        Text::Replaced,
        Nothing,
        "The text itself; one of the three is given",
    ),
    text("fromFile", Text::Path, Nothing, "The file that holds it"),
    text(
        "fromEnvVar",
        Text::Variable,
        Nothing,
        "The daemon's variable that holds it",
    ),
];

pub(super) const HIDDEN_SECRET: &[Key] = &[
    text(
        "fromFile",
        Text::Path,
        Nothing,
        "The file that holds it; this or `fromEnvVar`",
    ),
    text(
        "fromEnvVar",
        Text::Variable,
        Nothing,
        "The daemon's variable that holds it",
    ),
];

const LIMIT: Shape = Duration(1, NO_END);

pub(super) const SLA: &[Key] = &[
    key(
        "maxTimeSinceSuccess",
        Optional(&LIMIT),
        Nothing,
        "The longest time without a success",
    ),
    key(
        "maxTimeSinceSuccessSeconds",
        Optional(&LIMIT),
        Nothing,
        "Another spelling of `maxTimeSinceSuccess`",
    ),
    key(
        "lateAfter",
        Optional(&LIMIT),
        Nothing,
        "How late after its fire a run may begin",
    ),
    key(
        "lateAfterSeconds",
        Optional(&LIMIT),
        Nothing,
        "Another spelling of `lateAfter`",
    ),
    key(
        "maxRuntime",
        Optional(&LIMIT),
        Nothing,
        "The longest run; it is told, not ended",
    ),
    key(
        "maxRuntimeSeconds",
        Optional(&LIMIT),
        Nothing,
        "Another spelling of `maxRuntime`",
    ),
];

pub(super) const NOTIFY: &[Key] = &[map(
    "heartbeat",
    Section::Heartbeat,
    "A request at each interval while the daemon is well",
)];

pub(super) const HEARTBEAT: &[Key] = &[
    key(
        "url",
        Hidden(Text::WebAddress),
        Required,
        "Where the request goes",
    ),
    key("every", Duration(SECOND, DAY), Is("60s"), "How often"),
];
