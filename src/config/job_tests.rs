//! Jobs: their keys, what they inherit, what is refused.

use std::path::PathBuf;

use super::load_tests::{faults, good, job_faults, loaded};
use super::{CommandConfig, ConcurrencyPolicy, DayMatch};

#[test]
fn every_key_of_a_job() {
    let text = "\
pools: {warehouse: {slots: 4}}
jobs:
  - name: stock sync
    command: [/srv/sync, --full, 5]
    schedule: {minute: 7-59/15, hour: '6-22'}
    seconds: true
    dayMatch: and
    timezone: Europe/Madrid
    enabled: false
    shell: /bin/bash
    environment: {A: 1, B: '${X}', C: a b}
    env_file: ~/env
    workingDirectory: work
    user: 1000
    group: shop
    resourceLimits: {cpuSeconds: 60, memory: 512M, processes: 10, openFiles: 64, fileSize: 1GiB, core: 0}
    concurrencyPolicy: Replace
    executionTimeout: 240
    killTimeout: 0
    captureStdout: false
    captureStderr: false
    saveLimit: 0
    failsWhen: {producesStderr: true}
    verify: {command: test -s out, timeout: 5m}
    pool: warehouse
    poolSlots: 4
    queuePriority: -3
    queueTimeout: 90s
";
    let config = good(text);
    let job = &config.jobs[0];
    let words = ["/srv/sync", "--full", "5"].map(str::to_owned).to_vec();
    assert_eq!(job.launch.command, CommandConfig::List(words));
    assert_eq!(job.schedule.as_ref().unwrap().text, "7-59/15 6-22 * * *");
    assert_eq!(job.day_match, Some(DayMatch::And));
    assert_eq!((job.seconds, job.enabled), (true, false));
    let pairs: Vec<_> = job
        .launch
        .environment
        .iter()
        .map(|entry| format!("{}={}", entry.key, entry.value))
        .collect();
    assert_eq!(pairs, ["A=1", "B=/srv/x", "C=a b"]);
    assert_eq!(job.launch.env_file, Some(PathBuf::from("~/env")));
    assert_eq!(job.launch.working_directory, Some(PathBuf::from("work")));
    assert_eq!(job.launch.user.as_deref(), Some("1000"));
    assert_eq!(job.launch.resource_limits.memory_bytes, Some(536_870_912));
    assert_eq!(job.launch.resource_limits.core_bytes, Some(0));
    assert_eq!(job.concurrency_policy, ConcurrencyPolicy::Replace);
    assert_eq!(job.launch.execution_timeout_ms, Some(240_000));
    assert_eq!(job.launch.kill_timeout_ms, 0);
    assert_eq!(job.launch.save_limit, 0);
    assert!(job.launch.fails_when.nonzero_return && job.launch.fails_when.produces_stderr);
    let verify = job.launch.verify.as_ref().unwrap();
    assert_eq!(verify.timeout_ms, 300_000);
    let slots = job.slots.as_ref().unwrap();
    assert_eq!(
        (slots.slots, slots.priority, slots.queue_timeout_ms),
        (4, -3, 90_000)
    );
    let json = serde_json::to_value(job).unwrap();
    assert_eq!(json["slots"]["pool"], "warehouse");
    assert_eq!(json["command"][2], "5");
}

#[test]
fn defaults_of_a_job() {
    let config = good("jobs: [{name: j, command: echo hi}]");
    let job = &config.jobs[0];
    assert_eq!(job.launch.command, CommandConfig::Shell("echo hi".to_owned()));
    assert_eq!(job.launch.shell, PathBuf::from("/bin/sh"));
    assert!(job.schedule.is_none() && job.slots.is_none() && job.launch.verify.is_none());
    assert!(job.enabled && job.launch.capture_stdout && job.launch.capture_stderr);
    assert_eq!(
        (job.launch.kill_timeout_ms, job.launch.save_limit),
        (30_000, 4096)
    );
    assert!(!job.launch.fails_when.produces_stderr && !job.launch.fails_when.always);
    assert_eq!(job.day_match, None);
}

#[test]
fn defaults_are_inherited_key_by_key_and_only_in_their_file() {
    let first = "\
defaults:
  shell: /bin/bash
  environment: [{key: A, value: a}, {key: B, value: b}]
  failsWhen: {producesStdout: true}
  resourceLimits: {core: 0}
  verify: {timeout: 5, command: check}
jobs:
  - name: one
    command: c
    environment: {B: own, C: c}
    failsWhen: {nonzeroReturn: false}
    resourceLimits: {memory: 1GiB}
    verify: {timeout: 7}
";
    let second = "jobs: [{name: two, command: c}]";
    let (config, _) = loaded(&[("a.yaml", first), ("b.yaml", second)]).unwrap();
    let [one, two] = &config.jobs[..] else {
        panic!("two jobs");
    };
    let pairs: Vec<_> = one
        .launch
        .environment
        .iter()
        .map(|entry| format!("{}={}", entry.key, entry.value))
        .collect();
    assert_eq!(pairs, ["A=a", "B=own", "C=c"]);
    assert!(one.launch.fails_when.produces_stdout && !one.launch.fails_when.nonzero_return);
    assert_eq!(one.launch.resource_limits.core_bytes, Some(0));
    assert_eq!(one.launch.verify.as_ref().unwrap().timeout_ms, 7000);
    assert_eq!(one.launch.shell, PathBuf::from("/bin/bash"));
    assert_eq!(two.launch.shell, PathBuf::from("/bin/sh"));
    assert!(two.launch.environment.is_empty() && two.launch.verify.is_none());
}

#[test]
fn env_not_in_command() {
    let text = "\
jobs:
  - name: j
    command: echo ${X} ${UNSET}
    shell: /bin/${X}
    workingDirectory: ${X}/work
    envFile: \"${UNSET:-env}\"
    environment: {A: '${TRICK}', B: '$${X}'}
    verify: {command: 'test ${UNSET}'}
";
    let config = good(text);
    let job = &config.jobs[0];
    assert_eq!(
        job.launch.command,
        CommandConfig::Shell("echo ${X} ${UNSET}".to_owned())
    );
    assert_eq!(job.launch.shell, PathBuf::from("/bin/${X}"));
    assert_eq!(job.launch.working_directory, Some(PathBuf::from("/srv/x/work")));
    assert_eq!(job.launch.env_file, Some(PathBuf::from("env")));
    assert_eq!(job.launch.environment[0].value, "a: [b]");
    assert_eq!(job.launch.environment[1].value, "${X}");
    let verify = job.launch.verify.as_ref().unwrap();
    assert_eq!(verify.command, CommandConfig::Shell("test ${UNSET}".to_owned()));
    for (keys, expected) in [
        (
            "workingDirectory: a/${UNSET}/b",
            "4:25 job 'j': `workingDirectory`: variable `UNSET` is not set",
        ),
        (
            "envFile: \"é${UNSET:?set it}\"",
            "4:16 job 'j': `envFile`: variable `UNSET` is not set: set it",
        ),
        (
            "environment: {K: '${'}",
            "4:23 job 'j': environment value of 'K': `${` has no closing `}`",
        ),
    ] {
        assert_eq!(job_faults(keys), [expected], "{keys}");
    }
    let (_, warnings) = loaded(&[("a.yaml", "jobs: [{name: j, command: [echo, '${X}']}]")]).unwrap();
    assert_eq!(warnings[0].code, "lint/shell-variable");
    assert!(!warnings[0].is_error());
}

/// Keys of a job, and what is said about them.
const OUT_OF_RANGE: &[(&str, &str)] = &[
    ("shell: sh", "job 'j': shell must be an absolute path"),
    ("dayMatch: xor", "job 'j': dayMatch must be or or and"),
    ("timezone: Mars/Base", "job 'j': unknown time zone 'Mars/Base'"),
    (
        "concurrencyPolicy: forbid",
        "job 'j': concurrencyPolicy must be Allow, Forbid or Replace",
    ),
    ("executionTimeout: 0", "job 'j': executionTimeout must be > 0"),
    (
        "killTimeout: 3601",
        "job 'j': killTimeout must be between 0 and 3600",
    ),
    (
        "killTimeout: -1",
        "job 'j': killTimeout must be between 0 and 3600",
    ),
    ("saveLimit: 1000001", "job 'j': saveLimit is out of range"),
    (
        "verify: {command: c, timeout: 0}",
        "job 'j': verify.timeout must be > 0",
    ),
    ("verify: {timeout: 1}", "job 'j': verify.command is missing"),
    ("verify: {command: ''}", "job 'j': verify.command is empty"),
    (
        "resourceLimits: {memory: 1}",
        "job 'j': resourceLimits.memory: must be at least 1MiB",
    ),
    (
        "resourceLimits: {openFiles: 0}",
        "job 'j': resourceLimits.openFiles: must be between 1 and 4294967295",
    ),
    (
        "environment: {A=B: 1}",
        "job 'j': environment key 'A=B' is invalid",
    ),
    (
        "environment: [{key: A, value: 1}, {key: A, value: 2}]",
        "job 'j': environment key 'A' is given twice",
    ),
    (
        "environment: [{key: A}]",
        "job 'j': an item of `environment` needs `key` and `value`",
    ),
    (
        "environment: {A: \"x\\0y\"}",
        "job 'j': environment value of 'A' contains a NUL character",
    ),
    (
        "environment: {A: }",
        "job 'j': environment value of 'A' must be text, not nothing",
    ),
    (
        "enabled: yes",
        "job 'j': `enabled` must be true or false, not `yes`",
    ),
    (
        "env_file: a\nenvFile: b",
        "job 'j': `envFile` and `env_file` are the same key",
    ),
    ("schedule: 1 2", "job 'j': schedule: needs 5 fields"),
    (
        "schedule: '0 0 0 * * *'",
        "job 'j': schedule: 6 fields need seconds: true",
    ),
    (
        "schedule: {minute: 0 5}",
        "job 'j': `schedule.minute` must be one field without spaces",
    ),
    (
        "schedule: []",
        "job 'j': `schedule` must be text or a map of fields, not a list",
    ),
    ("user: ''", "job 'j': `user` is empty"),
    ("shell: [a]", "job 'j': `shell` must be text, not a list"),
];

#[test]
fn job_keys_out_of_range() {
    for (keys, expected) in OUT_OF_RANGE {
        let found = job_faults(keys);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(expected), "{found:?}");
    }
}

#[test]
fn schedule_faults_point_into_the_text() {
    for (keys, expected) in [
        ("schedule: 0 x * * *", "4:17"),
        ("schedule: \"0 x * * *\"", "4:18"),
        ("schedule: '0 0 * * x'", "4:24"),
        ("schedule:\n  minute: 0\n  dayOfWeek: 'mon,x'", "6:23"),
        ("schedule: |\n  0 x * * *", "5:7"),
        ("schedule: 1 2", "4:15"),
    ] {
        let found = job_faults(keys);
        assert!(found[0].starts_with(expected), "{found:?}");
    }
}

#[test]
fn names_of_jobs() {
    for (text, expected) in [
        ("jobs: [{command: c}]", vec!["1:8 a job needs a `name`"]),
        (
            "jobs: [{name: a/b, command: c}]",
            vec!["1:15 job name must have 1 to 128 bytes and no control character, `/` or `#`"],
        ),
        ("jobs: [{name: a}]", vec!["1:15 job 'a': command is missing"]),
        (
            "jobs: [{name: a, command: []}]",
            vec!["1:27 job 'a': command is empty"],
        ),
        (
            "jobs: [{name: a, command: ' '}]",
            vec!["1:27 job 'a': command is empty"],
        ),
        (
            "jobs: [{name: a, command: c}, {name: a, command: c}]",
            vec!["1:38 duplicate job 'a'"],
        ),
        (
            "jobs: {a: {command: c}}",
            vec!["1:7 `jobs` must be a list, not a map"],
        ),
        ("jobs: [a]", vec!["1:8 a job must be a map, not `a`"]),
    ] {
        assert_eq!(faults(text), expected, "{text}");
    }
    let job = "jobs:\n  - {name: a, command: c}\n";
    let found = loaded(&[("a.yaml", job), ("b.yaml", job)]).unwrap_err();
    assert_eq!(found[0].at.to_string(), "b.yaml:2:12");
    assert_eq!(found[0].related[0].0.to_string(), "a.yaml:2:12");
}

#[test]
fn the_shop_of_the_field_is_read() {
    let text = "\
defaults:
  shell: /bin/bash
  environment:
    - key: APP_ENV
      value: production
  failsWhen:
    producesStderr: false
  onFailure:
    retry:
      maximumRetries: 5
jobs:
  - name: price-export
    command: |
      set -e
      out=/srv/prices-$(date +%F).csv
    schedule: \"30 2 * * *\"
    timezone: America/New_York
    onPermanentFailure:
      report:
        webhook:
          url: https://hooks.example.org/alerts
          headers:
            X-Team: shop
";
    let job = &good(text).jobs[0];
    assert!(job.reports.on_permanent_failure.webhook.is_some());
    assert_eq!(job.reports.on_failure.webhook, None);
}
