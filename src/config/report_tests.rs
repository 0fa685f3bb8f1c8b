//! `sla`, reports and the heartbeat in a file.

use serde_json::json;

use super::load_tests::{faults, good, job_faults};
use super::model::{CommandConfig, SecretSource};
use super::report_model::{HiddenText, SlaConfig};

#[test]
fn reports_are_read_inherited_and_dropped() {
    let config = good(
        "\
defaults:
  onFailure:
    report:
      webhook: {url: 'https://srv.example${X}/hook', secret: {fromFile: secret}}
      shell: {command: [notify, --all], timeout: 5s}
  sla: {lateAfter: 10m}
jobs:
  - name: a
    command: c
    onFailure:
      report: {shell: {command: 'echo ${no_variable_of_ours}', shell: /bin/bash}}
    onLate: {report: {webhook: {url: {fromEnvVar: LATE_URL}}}}
    sla: {maxRuntimeSeconds: 90}
  - name: b
    command: c
    onFailure: {report: {webhook:, shell: ~}}
    onSuccess: {report: {webhook: {url: {value: 'http://127.0.0.1:1'}, headers: {X: {fromFile: x}, Y: 'y ${X}'}, body: '{\"text\": \"${text}\"}'}}}
",
    );
    let (a, b) = (&config.jobs[0], &config.jobs[1]);
    let webhook = a.reports.on_failure.webhook.as_ref().unwrap();
    assert_eq!(
        webhook.url.0,
        HiddenText::Written("https://srv.example/srv/x/hook".to_owned())
    );
    assert_eq!(webhook.secret, Some(SecretSource::File("secret".into())));
    let shell = a.reports.on_failure.shell.as_ref().unwrap();
    assert_eq!(
        shell.command,
        CommandConfig::Shell("echo ${no_variable_of_ours}".to_owned())
    );
    assert_eq!(
        (shell.shell.as_deref(), shell.timeout_ms),
        (Some("/bin/bash".as_ref()), 60_000)
    );
    let late = a.reports.on_late.webhook.as_ref().unwrap();
    assert_eq!(
        late.url.0,
        HiddenText::From(SecretSource::Variable("LATE_URL".to_owned()))
    );
    let sla = SlaConfig {
        late_after_ms: Some(600_000),
        max_runtime_ms: Some(90_000),
        max_time_since_success_ms: None,
    };
    assert_eq!(a.sla, sla);
    assert_eq!(
        (&b.reports.on_failure.webhook, &b.reports.on_failure.shell),
        (&None, &None)
    );
    let webhook = b.reports.on_success.webhook.as_ref().unwrap();
    assert!(webhook.body.is_some());
    assert_eq!(
        webhook.headers[1].value,
        HiddenText::Written("y /srv/x".to_owned())
    );
}

#[test]
fn what_may_be_a_secret_is_not_shown() {
    let config = good(
        "\
notify: {heartbeat: {url: 'https://hc.example.org/ping/token-1', every: 30s}}
jobs:
  - name: a
    command: c
    onFailure:
      report:
        webhook:
          url: https://hooks.example.org/services/token-2
          headers: {Authorization: Bearer token-3}
          secret: {fromEnvVar: S}
          body: '{\"token\": \"token-4\"}'
",
    );
    let shown = serde_json::to_value(&config).unwrap();
    assert!(!shown.to_string().contains("token-"), "{shown}");
    assert!(!format!("{config:?}").contains("token-1"), "{config:?}");
    assert_eq!(
        shown["jobs"][0]["reports"]["onFailure"]["webhook"],
        json!({"url": "https://hooks.example.org/…", "headers": [{"name": "Authorization"}], "secret": "(from a variable)"})
    );
    assert_eq!(
        shown["notify"]["heartbeat"],
        json!({"url": "https://hc.example.org/…", "everyMs": 30_000})
    );
}

fn check(keys: &str, expected: &str) {
    let found = job_faults(keys);
    assert!(
        found.iter().any(|fault| fault.contains(expected)),
        "{keys}: {found:?}"
    );
    assert_eq!(found.len(), 1, "{keys}: {found:?}");
}

/// What stands in a webhook, and the fault.
const FAULTY_WEBHOOKS: &[(&str, &str)] = &[
    ("", "job 'j': report.webhook: url is missing"),
    (
        "url: ftp://x",
        "job 'j': report.webhook: url must begin with http:// or https:// and name a host",
    ),
    ("url: 'http:///x'", "url must begin with"),
    ("url: 'http://a b'", "url must begin with"),
    ("url: {}", "give one of value, fromFile and fromEnvVar"),
    (
        "url: {value: a, fromFile: b}",
        "give one of value, fromFile and fromEnvVar",
    ),
    ("url: 'http://x/${NONE}'", "variable `NONE` is not set"),
    (
        "url: http://x, secret: hunter2",
        "report.webhook: secret: give fromFile or fromEnvVar [the secret itself must not stand in this file]",
    ),
    (
        "url: http://x, secret: {}",
        "report.webhook: secret: give fromFile or fromEnvVar",
    ),
    (
        "url: http://x, headers: {Webhook-Id: a}",
        "report.webhook: header 'Webhook-Id' is set by ductor",
    ),
    (
        "url: http://x, headers: {'a b': a}",
        "report.webhook: header 'a b' is no name of a header",
    ),
    (
        "url: http://x, headers: {A: a, a: b}",
        "report.webhook: header 'a' is given twice",
    ),
    ("url: http://x, headers: [a]", "must be a map"),
    (
        "url: http://x, method: PUT",
        "'webhook.method' is not supported yet",
    ),
    (
        "url: http://x, body: '${jb}'",
        "report.webhook: `${…}` in a body must name a field of the report [did you mean `${job}`?]",
    ),
    (
        "url: http://x, body: '${nothing_like_it}'",
        "[the fields are type, job, run_id, attempt",
    ),
    (
        "url: http://x, body: '{{name}}'",
        "report.webhook: body is not JSON when its fields are filled in",
    ),
    (
        "url: http://x, body: '{{name}}'",
        "[fields are written `${reason}` here",
    ),
    (
        "ulr: http://x, url: http://x",
        "unknown key `ulr` in `webhook` [did you mean `url`?]",
    ),
];

#[test]
fn every_faulty_report_is_named_with_its_rule() {
    let webhook = |inner: &str| format!("onFailure: {{report: {{webhook: {{{inner}}}}}}}");
    let shell = |inner: &str| format!("onSuccess: {{report: {{shell: {{{inner}}}}}}}");
    for (inner, expected) in FAULTY_WEBHOOKS {
        check(&webhook(inner), expected);
    }
    for (inner, expected) in [
        ("", "job 'j': report.shell: command is missing"),
        ("command: ' '", "job 'j': report.shell: command is empty"),
        (
            "command: c, timeout: 0",
            "job 'j': report.shell: timeout must be > 0 and at most 1h",
        ),
        (
            "command: c, shell: bash",
            "job 'j': report.shell: shell must be an absolute path",
        ),
    ] {
        check(&shell(inner), expected);
    }
    check(
        "onFailure: {report: {mail: {to: x}}}",
        "'report.mail' is not supported yet",
    );
    check("onSuccess: {retry: {}}", "unknown key `retry` in `onSuccess`");
    check(
        "onLate: {report: {shell: {command: c}}}",
        "job 'j': onLate requires sla",
    );
    let plain = "url: http://x, headers: {content-type: text/plain}, body: '{{name}}'";
    good(&format!("jobs: [{{name: j, command: c, {}}}]", webhook(plain)));
    let many: Vec<String> = (0..33).map(|n| format!("h{n}: x")).collect();
    let headers = format!("url: http://x, headers: {{{}}}", many.join(", "));
    check(&webhook(&headers), "headers has more than 32 entries");
}

#[test]
fn limits_must_be_positive() {
    for word in ["maxTimeSinceSuccess", "lateAfter", "maxRuntime"] {
        check(
            &format!("sla: {{{word}: 0}}"),
            &format!("job 'j': sla.{word} must be > 0"),
        );
        check(
            &format!("sla: {{{word}Seconds: -1}}"),
            &format!("job 'j': sla.{word} must be > 0"),
        );
        check(
            &format!("sla: {{{word}: 1, {word}Seconds: 1}}"),
            &format!("job 'j': sla: `{word}` and `{word}Seconds` are the same key"),
        );
        good(&format!(
            "jobs: [{{name: j, command: c, sla: {{{word}Seconds: }}}}]"
        ));
    }
    check("sla: x", "`sla` must be a map");
}

#[test]
fn a_heartbeat_is_checked() {
    for (text, expected) in [
        ("notify: {heartbeat: {}}", "notify.heartbeat needs a `url`"),
        (
            "notify: {heartbeat: {url: x}}",
            "notify.heartbeat.url must begin with http:// or https://",
        ),
        (
            "notify: {heartbeat: {url: 'http://x', every: 0}}",
            "notify.heartbeat.every must be between 1s and 24h",
        ),
        ("notify: {report: {}}", "'notify.report' is not supported yet"),
        ("notify: {heartbeats: {}}", "did you mean `heartbeat`?"),
    ] {
        let found = faults(text);
        assert!(
            found[0].contains(expected) && found.len() == 1,
            "{text}: {found:?}"
        );
    }
    let notify = good("notify: {heartbeat: {url: 'http://h/${X}'}}").notify;
    let heartbeat = notify.heartbeat.unwrap();
    assert_eq!(heartbeat.every_ms, 60_000);
    assert_eq!(heartbeat.url.0, HiddenText::Written("http://h//srv/x".to_owned()));
}
