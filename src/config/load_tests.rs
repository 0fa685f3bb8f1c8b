//! Texts in, configuration or faults out.

use std::path::PathBuf;

use super::render::{Paint, render};
use super::{
    CapacityRaise, Config, Fault, LogFormat, Override, Overrides, ScheduleCheck, ScheduleFault, Sources,
    StateMode, load,
};
use crate::os::zone::HostZone;

/// Knows two zones, counts fields, and dislikes the letter `x`.
pub(super) struct Schedules;

impl ScheduleCheck for Schedules {
    fn check(
        &self,
        _job_name: &str,
        text: &str,
        seconds: bool,
        _timezone: Option<&str>,
    ) -> Result<(), ScheduleFault> {
        let fault = |message: &str, column, length| ScheduleFault {
            message: message.to_owned(),
            column,
            length,
        };
        if let Some(column) = text.chars().position(|letter| letter == 'x') {
            return Err(fault("`x` is no number", Some(column), 1));
        }
        match text.split_whitespace().count() {
            5 => Ok(()),
            1 if text.starts_with('@') => Ok(()),
            6 if seconds => Ok(()),
            6 => Err(fault(
                "6 fields need seconds: true (ductor has no year field)",
                None,
                0,
            )),
            _ => Err(fault("needs 5 fields", None, 0)),
        }
    }

    fn knows_zone(&self, timezone: &str) -> bool {
        ["Europe/Madrid", "America/New_York"].contains(&timezone)
    }

    fn host_zone(&self) -> Result<HostZone, String> {
        Ok(HostZone {
            name: "America/New_York".to_owned(),
            from: "TZ",
        })
    }

    fn looks_like_field(&self, word: &str) -> bool {
        word == "*"
    }
}

pub(super) fn environment(name: &str) -> Option<String> {
    match name {
        "X" => Some("/srv/x".to_owned()),
        "PORT" => Some("9000".to_owned()),
        "TRICK" => Some("a: [b]".to_owned()),
        _ => None,
    }
}

pub(super) fn loaded(files: &[(&str, &str)]) -> Result<(Config, Vec<Fault>), Vec<Fault>> {
    let sources = Sources::in_memory(files);
    load(&sources, &environment, &Overrides::default(), &Schedules)
}

pub(super) fn good(text: &str) -> Config {
    loaded(&[("ductor.yaml", text)])
        .unwrap_or_else(|faults| panic!("{}", shown(text, &faults)))
        .0
}

pub(super) fn shown(text: &str, faults: &[Fault]) -> String {
    let sources = Sources::in_memory(&[("ductor.yaml", text)]);
    render(faults, &sources, Paint::Plain)
}

/// Each fault as `line:column message`, and its help in brackets.
pub(super) fn faults(text: &str) -> Vec<String> {
    let faults = loaded(&[("ductor.yaml", text)]).expect_err("a faulty configuration");
    lines(&faults)
}

fn lines(faults: &[Fault]) -> Vec<String> {
    faults
        .iter()
        .map(|fault| {
            let help = fault
                .help
                .as_ref()
                .map_or_else(String::new, |help| format!(" [{help}]"));
            format!("{}:{} {}{help}", fault.at.line, fault.at.column, fault.message)
        })
        .collect()
}

/// The faults of one job whose extra keys are given.
pub(super) fn job_faults(keys: &str) -> Vec<String> {
    let text = format!(
        "jobs:\n  - name: j\n    command: c\n    {}\n",
        keys.replace('\n', "\n    ")
    );
    faults(&text)
}

#[test]
fn nothing_is_a_daemon_without_jobs() {
    for text in [
        "",
        "{}",
        "# only a comment\n",
        "---\n",
        "jobs:\npools:\nserver:\ndefaults:\n",
        "\u{feff}",
        "null",
    ] {
        let config = good(text);
        assert!(config.jobs.is_empty() && config.slot_pools.is_empty());
        assert_eq!(config.server.listen.to_string(), "127.0.0.1:8470");
        assert_eq!(config.state.path, PathBuf::from("state"));
        assert_eq!(config.retention.runs, 500);
        assert_eq!(config.retention.age_ms, 1_209_600_000);
        assert_eq!(config.shutdown.drain_timeout_ms, 300_000);
        assert_eq!(config.logging.level, "info");
    }
}

#[test]
fn every_key_of_the_daemon() {
    let text = "\
server:
  listen: 0.0.0.0:${PORT}
  publicUrl: https://ops.example.org/ductor/
  allowedHosts: [ops.example.org]
  allowedOrigins: [https://ops.example.org]
  maxBodyBytes: 64KiB
  requestTimeout: 1m30s
state: {path: ../state, mode: exclusive, capacityRaise: immediate, cacheBytes: 1GiB, network: true, lowDiskBytes: 0}
node: {name: n1}
retention: {runs: 10, age: 2d, logs: {bytes: 1GiB}}
shutdown: {drainTimeout: 5}
logging: {level: 'info,ductor::fire=debug', format: json}
egress: {allow: [10.0.0.0/8, 'api.internal:${PORT}']}
";
    let (config, warnings) = loaded(&[("config/ductor.yaml", text)]).unwrap();
    assert!(warnings.is_empty());
    assert_eq!(config.server.listen.port(), 9000);
    assert_eq!(
        config.server.public_url.as_deref(),
        Some("https://ops.example.org/ductor")
    );
    assert_eq!(config.server.allowed_hosts, ["ops.example.org"]);
    assert_eq!(config.server.max_body_bytes, 65_536);
    assert_eq!(config.server.request_timeout_ms, 90_000);
    assert_eq!(config.state.path, PathBuf::from("config/../state"));
    assert_eq!(config.state.mode, StateMode::Exclusive);
    assert_eq!(config.state.capacity_raise, CapacityRaise::Immediate);
    assert!(config.state.network);
    assert_eq!(config.node.name.as_deref(), Some("n1"));
    assert_eq!(config.retention.logs.age_ms, 172_800_000);
    assert_eq!(config.retention.logs.bytes, Some(1 << 30));
    assert_eq!(config.shutdown.drain_timeout_ms, 5000);
    assert_eq!(config.logging.format, LogFormat::Json);
    let json = serde_json::to_value(&config).unwrap();
    assert_eq!(json["server"]["listen"], "0.0.0.0:9000");
    assert_eq!(json["state"]["capacityRaise"], "immediate");
    assert_eq!(
        json["egress"]["allow"],
        serde_json::json!(["10.0.0.0/8", "api.internal:9000"])
    );
}

#[test]
fn unknown_key_is_error() {
    for (text, expected) in [
        (
            "pools:\n  w:\n    slots: 1\n    maxQeued: 100\n",
            "4:5 unknown key `maxQeued` in a slot pool [did you mean `maxQueued`?]",
        ),
        (
            "jbos: []",
            "1:1 unknown key `jbos` in the document [did you mean `jobs`?]",
        ),
        (
            "server: {listn: x}",
            "1:10 unknown key `listn` in `server` [did you mean `listen`?]",
        ),
        (
            "defaults: {name: x}",
            "1:12 unknown key `name` in `defaults` [`name` belongs to each job]",
        ),
        (
            "qqqqqqqqqqqq: 1",
            "1:1 unknown key `qqqqqqqqqqqq` in the document",
        ),
        ("ledger: {}", "1:1 'ledger' is not supported yet"),
        ("receipts: {}", "1:1 'receipts' is not supported yet"),
        ("egress: {deny: []}", "1:10 unknown key `deny` in `egress`"),
        (
            "defaults: {onFailure: {retry: {bad: 1}}}",
            "1:32 unknown key `bad` in `onFailure.retry`",
        ),
        (
            "jobs: [{name: j, command: c, resourceLimits: {cpu: 1}}]",
            "1:47 'resourceLimits.cpu' is not supported yet",
        ),
        (
            "jobs: [{name: j, command: c, schedule: {year: 1}}]",
            "1:41 'year' is not supported yet",
        ),
    ] {
        assert_eq!(faults(text), [expected], "{text}");
    }
    for word in ["concurrencyScope", "utc", "priority"] {
        assert_eq!(
            job_faults(&format!("{word}: x")),
            [format!("4:5 '{word}' is not supported yet")]
        );
    }
}

#[test]
fn sections_of_the_daemon_are_checked() {
    for (text, expected) in [
        (
            "server: {listen: nowhere}",
            "server.listen must be an address and port",
        ),
        (
            "server: {publicUrl: ops}",
            "`server.publicUrl` must begin with http:// or https://",
        ),
        (
            "server: {allowedOrigins: ['*']}",
            "an entry of `server.allowedOrigins` must be an origin",
        ),
        ("server: {maxBodyBytes: 1}", "server.maxBodyBytes must be between"),
        (
            "server: {maxBodyBytes: 1 banana}",
            "`server.maxBodyBytes` must be a size",
        ),
        ("server: 5", "`server` must be a map, not `5`"),
        (
            "state: {mode: solo}",
            "state.mode must be auto, exclusive or shared",
        ),
        (
            "state: {capacityRaise: x}",
            "state.capacityRaise must be drain or immediate",
        ),
        (
            "state: {path: ~/x}",
            "state.path cannot begin with `~` [write ${HOME} instead]",
        ),
        ("state: {path: ''}", "`state.path` is empty"),
        ("state:\npools: {w: {slots: 1}}", "pools require durable state"),
        (
            "state: {path: }\npools: {w: {slots: 1}}",
            "pools require durable state",
        ),
        (
            "node: {name: A}",
            "node name must match [a-z0-9][a-z0-9._-]{0,62}",
        ),
        ("retention: {runs: 0}", "retention.runs must be between"),
        ("retention: {age: 1s}", "retention.age must be at least"),
        ("logging: {level: loud}", "logging.level must be"),
        (
            "logging: {format: jsn}",
            "logging.format must be auto, pretty or json [did you mean `json`?]",
        ),
        (
            "shutdown: {drainTimeout: 1e9}",
            "shutdown.drainTimeout must be between 0 and 24h",
        ),
        ("node: {name: a}\nnode: {name: b}", "2:1 duplicate key `node`"),
    ] {
        let found = faults(text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(expected), "{found:?}");
    }
    let found = loaded(&[("a.yaml", "node: {name: a}"), ("b.yaml", "node: {name: b}")]).unwrap_err();
    assert_eq!(found[0].message, "`node` stands in two files");
}

#[test]
fn twelve_faults_in_one_go() {
    let text = "\
server: {listen: nowhere}
pools:
  warehouse: {slots: 0}
  w2: {slots: 1, maxQeued: 5}
jobs:
  - name: a
    command: ''
    pool: warehose
  - name: a
    command: c
    schedule: 0 x * * *
    timezone: Mars
    executionTimeout: 0
    onMissed: maybe
  - name: b
    command: c
    workingDirectory: ${UNSET}
    shell: sh
    poolSlots: 2
";
    let found = faults(text);
    let places: Vec<&str> = found.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(
        places,
        [
            "1:18", "3:22", "4:18", "7:14", "8:11", "9:11", "11:17", "12:15", "13:23", "14:15", "17:23",
            "18:12", "19:5"
        ],
        "{found:#?}"
    );
}

#[test]
fn f3_an_unquoted_star() {
    for (line, place, help) in [
        (
            "schedule: */30 * * * sat",
            "4:15",
            "put it in quotes: \"*/30 * * * sat\"",
        ),
        ("schedule: * * * * *", "4:15", "put it in quotes: \"* * * * *\""),
        ("schedule: *", "4:15", "put it in quotes: \"*\""),
        ("schedule: @daily", "4:15", "put it in quotes: \"@daily\""),
        ("schedule: {minute: */5}", "4:24", "must stand in quotes"),
    ] {
        let found = job_faults(line);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(place), "{found:?}");
        assert!(found[0].contains(help), "{found:?}");
    }
}

#[test]
fn broken_structure_has_hints() {
    for (text, expected) in [
        (
            "pools:\n  w:\n    slots: 3\n      maxQueued: 5\n",
            "check the indentation of the next line",
        ),
        (
            "pools:\n  w:\n    slots: 3\n      maxQueued\n",
            "check the indentation of the next line",
        ),
        (
            "jobs:\n  - name: x\n   command: y\n",
            "check the indentation of this line",
        ),
        (
            "jobs:\n  - name: x\n    command: echo a: b\n",
            "must stand in quotes",
        ),
        ("jobs:\n\t- name: x\n", "no tabs"),
        ("jobs: 'x\n", "never closed"),
        ("a: &x [*x]\n", "refers to the value it stands in"),
        ("a: !include x\n", "the tag `!include` has no meaning here"),
        (
            "jobs: []\n---\njobs: []\n",
            "2:1 a configuration file holds one YAML document",
        ),
        ("- a\n", "the document must be a map, not a list"),
        ("? [a]\n: b\n", "a key must be a word, not a list"),
    ] {
        let found = faults(text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(expected), "{text}{found:?}");
    }
}

#[test]
fn anchors_and_merge_keys() {
    let text = "\
jobs:
  - &base {name: a, command: c, killTimeout: 5, environment: &e {A: 1}}
  - {<<: *base, name: b, environment: {<<: [{B: 2}, *e], A: own}}
";
    let config = good(text);
    assert_eq!(config.jobs[1].launch.kill_timeout_ms, 5000);
    let pairs: Vec<_> = config.jobs[1]
        .launch
        .environment
        .iter()
        .map(|entry| format!("{}={}", entry.key, entry.value))
        .collect();
    assert_eq!(pairs, ["A=own", "B=2"]);
    assert!(faults("jobs: [{<<: 5, name: a, command: c}]")[0].contains("`<<` takes a map"));
}

#[test]
fn overrides_come_last() {
    let given = |value: &str| {
        Some(Override {
            origin: "--x",
            value: value.to_owned(),
        })
    };
    let overrides = Overrides {
        listen: given("127.0.0.1:1"),
        state_dir: given("elsewhere"),
        ..Overrides::default()
    };
    let text = "server: {listen: '127.0.0.1:2'}\nstate: null\npools: {w: {slots: 1}}\n";
    let sources = Sources::in_memory(&[("config/ductor.yaml", text)]);
    let (config, _) = load(&sources, &environment, &overrides, &Schedules).unwrap();
    assert_eq!(config.server.listen.port(), 1);
    assert_eq!(config.state.path, PathBuf::from("elsewhere"));
}

#[test]
fn every_bad_entry_of_the_egress_list_is_told_with_its_place() {
    let expected = "an entry of `egress.allow` must be a network, a host name, or one of them with a port: \
                    10.0.0.0/8, api.internal:443";
    assert_eq!(
        faults("egress:\n  allow: [10.0.0.0/8, 10.0.0.1/8, api.internal, 'http://x/', '*']\n"),
        ["2:23", "2:49", "2:62"].map(|at| format!("{at} {expected}"))
    );
    assert_eq!(
        faults("egress: {allow: 10.0.0.0/8}"),
        ["1:17 `egress.allow` must be a list, not `10.0.0.0/8`"]
    );
}
