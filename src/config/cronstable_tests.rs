//! Files of cronstable and yacron in, our own jobs out.

use super::crontab_hosts::{Host, schedule_of};
use super::model::{CommandConfig, ConcurrencyPolicy, DayMatch};
use super::{Config, Fault, Overrides, Paint, Severity, Sources, load, render};

const WEB_SHOP: &str = include_str!("../../tests/field/web-shop.cronstable.yaml");

fn read_as(name: &str, text: &str) -> (Config, Vec<Fault>) {
    let sources = Sources::in_memory(&[(name, text)]);
    load(&sources, &|_| None, &Overrides::default(), &Host("Europe/Madrid"))
        .unwrap_or_else(|faults| panic!("{}", render(&faults, &sources, Paint::Plain)))
}

fn read(text: &str) -> (Config, Vec<Fault>) {
    read_as("x.cronstable.yaml", text)
}

/// Each warning as `line:column message`.
fn warnings(faults: &[Fault]) -> Vec<String> {
    faults
        .iter()
        .filter(|fault| fault.severity == Severity::Warning)
        .map(|fault| {
            assert_eq!(fault.code, "cronstable/not-supported");
            format!("{}:{} {}", fault.at.line, fault.at.column, fault.message)
        })
        .collect()
}

#[test]
fn the_web_shop_of_the_field_loads() {
    let (config, faults) = read_as("web-shop.cronstable.yaml", WEB_SHOP);
    let names: Vec<&str> = config.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "poll-orders",
            "stock sync",
            "friday-the-13th",
            "price-export",
            "warm-cache"
        ]
    );
    let [poll, stock, friday, prices, warm] = config.jobs.as_slice() else {
        panic!("five jobs");
    };
    assert_eq!(poll.launch.shell.to_str(), Some("/bin/bash"));
    assert_eq!(poll.concurrency_policy, ConcurrencyPolicy::Forbid);
    assert_eq!(
        (poll.launch.kill_timeout_ms, poll.launch.execution_timeout_ms),
        (20_000, Some(240_000))
    );
    assert_eq!(poll.policy.retry.maximum_retries, Some(5));
    assert!(matches!(&stock.launch.command, CommandConfig::List(words) if words.len() == 2));
    assert_eq!(stock.schedule.as_ref().unwrap().text, "7-59/15 6-22 * * *");
    assert_eq!(stock.launch.environment[1].value, "staging");
    assert_eq!(friday.day_match, Some(DayMatch::And));
    assert_eq!(prices.concurrency_policy, ConcurrencyPolicy::Replace);
    assert!(!warm.enabled && warm.schedule.as_ref().unwrap().text == "@reboot");
    let shell = poll.reports.on_failure.shell.as_ref().unwrap();
    assert_eq!(shell.shell.as_deref(), Some("/bin/sh".as_ref()));
    assert!(prices.reports.on_permanent_failure.webhook.is_some());
    assert!(poll.reports.on_permanent_failure.webhook.is_none());
    assert_eq!(warnings(&faults), [""; 0]);
    let days: Vec<usize> = faults
        .iter()
        .filter(|fault| fault.code == "lint/cronstable-days")
        .map(|fault| fault.at.line)
        .collect();
    assert_eq!(days, [47]);
    // The file says what stderr means, so there is nothing to tell.
    assert!(faults.iter().all(|fault| fault.code != "lint/cronstable-stderr"));
}

#[test]
fn c3_both_day_fields_set_in_an_imported_file() {
    let text = "jobs:\n  - name: j\n    command: c\n    schedule: \"0 0 13 * 5\"\n";
    let fires = |name: &str| -> Vec<String> {
        let (config, _) = read_as(name, text);
        let schedule = schedule_of(&config.jobs[0]);
        let instant = |text: &str| crate::words::time::parse_instant(text).unwrap().0;
        schedule
            .instants(
                instant("2025-12-31T23:59:59Z"),
                instant("2026-12-31T23:59:59Z"),
                100,
            )
            .into_iter()
            .map(|fire| schedule.local_time(fire).unwrap()[..10].to_owned())
            .collect()
    };
    assert_eq!(fires("ours.yaml").len(), 61);
    assert_eq!(
        fires("theirs.yacron.yaml"),
        ["2026-02-13", "2026-03-13", "2026-11-13"]
    );
    let (_, faults) = read(text);
    let note = faults
        .iter()
        .find(|fault| fault.code == "lint/cronstable-days")
        .unwrap();
    assert_eq!(
        (note.severity, note.at.line, note.at.column),
        (Severity::Note, 4, 15)
    );
}

#[test]
fn a_choice_in_the_file_is_kept() {
    let (config, faults) = read(
        "defaults: {dayMatch: or, failsWhen: {producesStderr: yes}}\njobs:\n  - {name: j, command: c, schedule: \"0 0 13 * 5\"}\n",
    );
    assert_eq!(config.jobs[0].day_match, Some(DayMatch::Or));
    assert!(config.jobs[0].launch.fails_when.produces_stderr);
    assert_eq!(faults, []);
    let (config, _) = read("jobs:\n  - {name: j, command: c, dayMatch: or}\n");
    assert_eq!(config.jobs[0].day_match, Some(DayMatch::Or));
    let (config, _) = read("defaults:\njobs:\n  - {name: j, command: c}\n");
    assert_eq!(config.jobs[0].day_match, Some(DayMatch::And));
}

#[test]
fn what_has_no_counterpart_is_told_by_line_and_left_out() {
    let text = "\
web:
  listen: [http://127.0.0.1:8080]
logging:
  version: 1
state:
  path: /var/lib/x
  topology: auto
defaults:
  statsd: {prefix: p, host: h, port: 1}
  utc: true
jobs:
  - name: j
    command: c
    utc: false
    schedule: {minute: 5, year: 2030}
    captureStdout: yes
    streamPrefix: x
    maxLineLength: 100
    redactArchivedSecrets: true
    resourceLimits: {cpu: 50%, memory: 64M}
    onFailure:
      retry: {maximumRetries: 1}
      report:
        mail: {from: a, to: b}
        sentry: {dsn: {value: x}}
        webhook: {url: {value: 'http://127.0.0.1:9'}, method: POST, timeout: 5}
  - name: k
    command: c
    schedule: {minute: 5, year: \"*\"}
    enabled: no
";
    let (config, faults) = read(text);
    assert_eq!(
        warnings(&faults),
        [
            "1:1 'web' is not supported and has no effect",
            "3:1 'logging' is not supported and has no effect",
            "7:3 'state.topology' is not supported and has no effect",
            "9:3 'statsd' is not supported and has no effect",
            "14:5 'utc: false' is not supported: without `timezone` the schedule goes by UTC",
            "15:27 'schedule.year' is not supported and has no effect",
            "17:5 'streamPrefix' is not supported and has no effect",
            "18:5 'maxLineLength' is not supported and has no effect",
            "19:5 'redactArchivedSecrets' is not supported and has no effect",
            "20:22 'resourceLimits.cpu' is not supported and has no effect",
            "24:9 'report.mail' is not supported and has no effect",
            "25:9 'report.sentry' is not supported and has no effect",
            "26:55 'webhook.method' is not supported and has no effect",
            "26:69 'webhook.timeout' is not supported and has no effect",
        ]
    );
    let [j, k] = config.jobs.as_slice() else {
        panic!("two jobs");
    };
    assert!(j.launch.capture_stdout && !k.enabled && j.reports.on_failure.webhook.is_some());
    assert_eq!(j.launch.resource_limits.memory_bytes, Some(64 << 20));
    let notes: Vec<&Fault> = faults
        .iter()
        .filter(|fault| fault.code == "lint/cronstable-stderr")
        .collect();
    assert_eq!(notes.len(), 1);
    assert!(notes[0].message.contains("stderr does not fail"));
}

#[test]
fn a_misspelt_word_is_still_a_fault() {
    let sources = Sources::in_memory(&[("a.yacron.yaml", "jobs:\n  - {name: j, comand: c}\nwebb: 1\n")]);
    let faults = load(&sources, &|_| None, &Overrides::default(), &Host("UTC")).unwrap_err();
    let codes: Vec<&str> = faults
        .iter()
        .filter(|fault| fault.is_error())
        .map(|fault| fault.code)
        .collect();
    assert_eq!(
        codes,
        ["config/missing", "config/unknown-key", "config/unknown-key"]
    );
}

#[test]
fn defaults_of_an_included_file_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write(
        "jobs.yacron.yaml",
        "include:\n  - _inc.yaml\njobs:\n  - {name: j, command: c}\n",
    );
    write("_inc.yaml", "web: {}\ndefaults:\n  shell: /bin/bash\n");
    let sources = Sources::read(&folder.path().join("jobs.yacron.yaml"), &|_| None).unwrap();
    let (config, faults) = load(&sources, &|_| None, &Overrides::default(), &Host("UTC")).unwrap();
    assert_eq!(config.jobs[0].launch.shell.to_str(), Some("/bin/sh"));
    let messages: Vec<(usize, &str)> = faults
        .iter()
        .filter(|fault| fault.severity == Severity::Warning)
        .map(|fault| (fault.at.line, fault.message.as_str()))
        .collect();
    assert_eq!(messages[0], (1, "'web' is not supported and has no effect"));
    assert!(messages[1].1.contains("their own file only"));
}

#[test]
fn odd_documents_survive() {
    for text in [
        "",
        "[]",
        "x",
        "jobs: x",
        "jobs: [x, [y]]",
        "defaults: []",
        "defaults: x",
        "state: []",
        "{[a]: b}",
        "jobs: [{schedule: [x], failsWhen: x, utc: [], onFailure: x, resourceLimits: 1}]",
        "defaults: &d {utc: x}\njobs: [{<<: *d}]",
    ] {
        let sources = Sources::in_memory(&[("a.cronstable.yaml", text)]);
        let loaded = load(&sources, &|_| None, &Overrides::default(), &Host("UTC"));
        if let Err(faults) = loaded {
            assert!(!render(&faults, &sources, Paint::Plain).is_empty());
        }
    }
}
