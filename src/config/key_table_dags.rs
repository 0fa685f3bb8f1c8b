//! The rows of `dags`: a dag, its tasks, and what a task is expanded over.

use super::key_table::{DAY, JOB, key, map, text};
use super::keys::Unset::{Is, Nothing, Required};
use super::keys::{Key, Section};
use super::shape::Shape::{Command, Duration, Integer, ListOf, OneOf, Texts};
use super::shape::Text;

const YEAR: u64 = 365 * DAY;

/// The row of a job's key, for a key that means the same here.
const fn as_for_jobs(word: &str) -> Key {
    let mut index = 0;
    while index < JOB.len() {
        if is_same(JOB[index].word.as_bytes(), word.as_bytes()) {
            return JOB[index];
        }
        index += 1;
    }
    panic!("a job has no such key")
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut index = 0;
    while index < one.len() {
        if one[index] != other[index] {
            return false;
        }
        index += 1;
    }
    true
}

pub(super) const DAG: &[Key] = &[
    as_for_jobs("name"),
    as_for_jobs("schedule"),
    as_for_jobs("seconds"),
    as_for_jobs("dayMatch"),
    as_for_jobs("timezone"),
    as_for_jobs("enabled"),
    as_for_jobs("onMissed"),
    as_for_jobs("startingDeadlineSeconds"),
    as_for_jobs("clusterPolicy"),
    as_for_jobs("sla"),
    map(
        "onFailure",
        Section::OnFailure,
        "What happens after a failed run: `report` only, its tasks have retries",
    ),
    as_for_jobs("onPermanentFailure"),
    as_for_jobs("onSuccess"),
    as_for_jobs("onLate"),
    key(
        "retainRuns",
        Integer(1, 100_000),
        Is("50"),
        "Ended runs that are kept",
    ),
    key(
        "tasks",
        ListOf(Section::Task),
        Required,
        "What is done, 1 to 500 tasks",
    ),
];

pub(super) const TASK: &[Key] = &[
    text(
        "id",
        Text::TaskId,
        Required,
        "1 to 100 bytes without `/`, `#` and control characters, once in its dag",
    ),
    key(
        "type",
        OneOf(&["task", "sensor", "approval"]),
        Is("task"),
        "A command, a command that is repeated until its code is 0, or a wait for a decision",
    ),
    key(
        "dependsOn",
        Texts(Text::TaskRef),
        Is("[]"),
        "The tasks after which it runs",
    ),
    key(
        "triggerRule",
        OneOf(&["all_success", "all_done"]),
        Is("all_success"),
        "Whether those must have succeeded or only ended",
    ),
    key(
        "command",
        Command,
        Nothing,
        "What is run; every task but an approval needs it; nothing is replaced in it",
    ),
    key("retries", Integer(0, 1_000), Is("0"), "Attempts after the first"),
    key(
        "retryDelaySeconds",
        Duration(0, YEAR),
        Is("0"),
        "Before each of them",
    ),
    key(
        "pokeIntervalSeconds",
        Duration(1, YEAR),
        Is("30s"),
        "Between two pokes of a sensor",
    ),
    key(
        "pokeTimeoutSeconds",
        Duration(1, YEAR),
        Is("1h"),
        "From the first poke of a sensor on; then it fails",
    ),
    key(
        "onReject",
        OneOf(&["fail", "skip"]),
        Is("fail"),
        "What a rejected approval becomes",
    ),
    map(
        "expand",
        Section::Expand,
        "It runs once for each item of a list that another task has written",
    ),
    as_for_jobs("shell"),
    as_for_jobs("environment"),
    as_for_jobs("envFile"),
    as_for_jobs("env_file"),
    as_for_jobs("workingDirectory"),
    as_for_jobs("user"),
    as_for_jobs("group"),
    as_for_jobs("resourceLimits"),
    as_for_jobs("executionTimeout"),
    as_for_jobs("killTimeout"),
    as_for_jobs("captureStdout"),
    as_for_jobs("captureStderr"),
    as_for_jobs("saveLimit"),
    as_for_jobs("failsWhen"),
    as_for_jobs("verify"),
    as_for_jobs("secrets"),
    as_for_jobs("pool"),
    as_for_jobs("poolSlots"),
    as_for_jobs("queuePriority"),
    as_for_jobs("queueTimeout"),
];

pub(super) const EXPAND: &[Key] = &[
    text(
        "fromTask",
        Text::TaskRef,
        Required,
        "The task that writes the list; one of `dependsOn`",
    ),
    text(
        "key",
        Text::Value,
        Required,
        "The key of the list in the JSON object that it writes to the file named by `DUCTOR_OUTPUT`",
    ),
];
