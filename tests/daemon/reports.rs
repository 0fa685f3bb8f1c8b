//! Reports, sla and heartbeat on the real binary, against a receiver on loopback.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};

use super::support::{Answer, Builder, Daemon, Place, Received, Receiver, wait_until};
use super::ways::{ended, folder, lines, lives, run, run_id, start};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn place_with(receiver: &Receiver, text: &str) -> Place {
    let place = Place::new("jobs: []\n");
    write(&place, receiver, text);
    place.write("secret", &format!("{SECRET}\n"));
    place
}

fn write(place: &Place, receiver: &Receiver, text: &str) {
    let text = text
        .replace("FOLDER", &folder(place))
        .replace("HOOK", &receiver.url("hook/with-a-token"));
    place.write_config(&text);
}

/// The reports of a run, when none of them waits any more.
fn decided(daemon: &Daemon, id: &str, count: usize) -> Vec<Value> {
    daemon.wait("the reports to be decided", || {
        let reports = run(daemon, id)["reports"].as_array().cloned().unwrap_or_default();
        let all = reports.iter().all(|report| report["state"] != "waiting");
        (all && reports.len() == count).then_some(reports)
    })
}

fn metric(daemon: &Daemon, line: &str) -> Option<f64> {
    let text = daemon.get("/metrics").text();
    let line = text.lines().find(|found| found.starts_with(line))?;
    line.rsplit(' ').next()?.parse().ok()
}

fn signature(arrived: &Received) -> String {
    let key = STANDARD.decode(&SECRET[6..]).unwrap();
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(&key).unwrap();
    for part in [
        arrived.header("webhook-id"),
        ".",
        arrived.header("webhook-timestamp"),
        ".",
    ] {
        mac.update(part.as_bytes());
    }
    mac.update(&arrived.body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

const FAILS: &str = r#"server: {publicUrl: 'https://ops.example.org'}
jobs:
  - name: fails
    command: echo "token is $TOKEN"; echo 'it "broke"' >&2; exit 3
    secrets: [{name: TOKEN, fromFile: FOLDER/token}]
    onFailure:
      report: {webhook: {url: HOOK, secret: {fromFile: FOLDER/secret}, headers: {X-Team: 'the shop'}}}
    onSuccess:
      report: {webhook: {url: HOOK}}
"#;

#[test]
fn a_failed_run_sends_one_signed_report() {
    let receiver = Receiver::new(Answer::Status(204));
    let place = place_with(&receiver, FAILS);
    place.write("token", "correct-horse-battery\n");
    let mut daemon = Builder::at(&place).start();
    let id = run_id(&start(&daemon, "fails"));
    let reports = decided(&daemon, &id, 1);
    let arrived = receiver.received();
    assert_eq!(arrived.len(), 1, "{arrived:?}");
    let report = &arrived[0];
    assert_eq!(
        (report.method.as_str(), report.path.as_str()),
        ("POST", "/hook/with-a-token")
    );
    assert_eq!(report.header("content-type"), "application/json");
    assert_eq!(report.header("x-team"), "the shop");
    assert!(report.header("webhook-id").starts_with("msg_"), "{report:?}");
    assert_eq!(report.header("webhook-signature"), signature(report));
    let body = report.json();
    let text = format!("Job fails failed: exit code 3 (attempt 1 of {id})");
    for (field, expected) in [
        ("type", json!("job.attempt.failed")),
        ("job", json!("fails")),
        ("run_id", json!(id)),
        ("attempt", json!(1)),
        ("outcome", json!("failed")),
        ("reason", json!("exit code 3")),
        ("exit_code", json!(3)),
        ("scheduled_at", json!(null)),
        ("url", json!(format!("https://ops.example.org/ui/runs/{id}"))),
        ("text", json!(text)),
        ("stdout_tail", json!("token is ***\n")),
        ("stderr_tail", json!("it \"broke\"\n")),
    ] {
        assert_eq!(body[field], expected, "{field}: {body}");
    }
    assert_eq!(reports[0]["state"], "delivered");
    assert_eq!(
        (&reports[0]["on"], &reports[0]["tries"]),
        (&json!("onFailure"), &json!(1))
    );
    let shown = daemon.cli(&["run", "show", &id]).expect_status(0).stdout;
    assert!(
        shown.contains("onFailure") && shown.contains("delivered"),
        "{shown}"
    );
    assert_eq!(daemon.term(), Some(0));
    let mut files = Vec::new();
    super::secrets::files_below(&place.state(), &mut files);
    for part in ["with-a-token", &SECRET[6..], "correct-horse-battery"] {
        let holds = |bytes: &[u8]| bytes.windows(part.len()).any(|window| window == part.as_bytes());
        assert!(files.iter().all(|(_, bytes)| !holds(bytes)), "{part} is stored");
        assert!(!daemon.output().to_string().contains(part), "{part} is logged");
    }
}

#[test]
fn a_receiver_that_is_away_gets_the_same_report_later_and_after_a_kill() {
    let receiver = Receiver::new(Answer::HangUp);
    let place = place_with(
        &receiver,
        "jobs: [{name: a, command: exit 1, onPermanentFailure: {report: {webhook: {url: HOOK}}}}]\n",
    );
    let mut daemon = Builder::at(&place).start();
    let id = run_id(&start(&daemon, "a"));
    receiver.wait(1);
    receiver.answer(Answer::Status(503));
    receiver.wait(2);
    let reason = daemon.wait("the second try to be written", || {
        let report = run(&daemon, &id)["reports"][0].clone();
        (report["tries"] == 2).then(|| report["reason"].clone())
    });
    assert_eq!(reason, "the receiver answered 503 Service Unavailable");
    daemon.wait_log("Job a: its onPermanentFailure webhook report failed and is tried again");
    assert_eq!(
        metric(&daemon, "ductor_effects_pending{kind=\"webhook\"}"),
        Some(1.0)
    );
    let log = daemon.output().to_string();
    assert!(!log.contains("with-a-token"), "{log}");
    daemon.kill9();
    receiver.answer(Answer::Status(200));
    let daemon = daemon.restart();
    decided(&daemon, &id, 1);
    let arrived = receiver.received();
    assert!(arrived.len() >= 3, "{arrived:?}");
    let first = &arrived[0];
    for again in &arrived[1..] {
        assert_eq!(again.header("webhook-id"), first.header("webhook-id"));
        assert_eq!(again.json()["reason"], "exit code 1");
    }
    assert_eq!(
        metric(&daemon, "ductor_effects_pending{kind=\"webhook\"}"),
        Some(0.0)
    );
}

#[test]
fn a_report_that_nobody_takes_is_a_dead_letter_on_its_run() {
    let receiver = Receiver::new(Answer::Status(410));
    let place = place_with(
        &receiver,
        "jobs: [{name: a, command: exit 1, onFailure: {report: {webhook: {url: HOOK}}}}]\n",
    );
    let daemon = Builder::at(&place).start();
    let id = run_id(&start(&daemon, "a"));
    let reports = decided(&daemon, &id, 1);
    assert_eq!(reports[0]["state"], "dead");
    assert_eq!(reports[0]["reason"], "the receiver answered 410 Gone");
    assert_eq!(
        metric(&daemon, "ductor_dead_letters{kind=\"webhook\"}"),
        Some(1.0)
    );
    assert_eq!(
        metric(
            &daemon,
            "ductor_effects_delivered_total{kind=\"webhook\",result=\"refused\"}"
        ),
        Some(1.0)
    );
    assert_eq!(daemon.get("/api/status").json()["data"]["dead_letters"], 1);
    let shown = daemon.cli(&["run", "show", &id]).expect_status(0).stdout;
    assert!(shown.contains("dead") && shown.contains("410 Gone"), "{shown}");
    let shown = daemon.cli(&["status"]).stdout;
    assert!(shown.contains("1, see `ductor dlq ls`"), "{shown}");
    // The list of what was given up has it once, and by its id it is put away.
    let listed = daemon.cli(&["dlq", "ls"]).expect_status(0).stdout;
    assert!(listed.contains("410 Gone"), "{listed}");
    let list = daemon.get("/api/dead_letters").json();
    let letters = list["data"].as_array().unwrap();
    assert_eq!((letters.len(), &letters[0]["run"]), (1, &serde_json::json!(id)));
    let letter = letters[0]["id"].as_str().unwrap();
    daemon.cli(&["dlq", "discard", letter, "--yes"]).expect_status(0);
    daemon.cli(&["dlq", "show", letter]).expect_status(3);
}

#[test]
fn a_command_is_told_by_variables_and_standard_input() {
    let receiver = Receiver::new(Answer::Status(200));
    let place = place_with(
        &receiver,
        r#"jobs:
  - name: two words
    command: echo out; exit 4
    onFailure:
      report:
        shell:
          command: |
            cat > FOLDER/document
            echo "$DUCTOR_REPORT_JOB|$DUCTOR_REPORT_EXIT_CODE|$YACRON_JOB_NAME|$YACRON_FAIL_REASON|$CRONSTABLE_STDOUT" > FOLDER/told
  - name: hangs
    command: exit 1
    onFailure:
      report: {shell: {command: 'echo begun; echo $$ > FOLDER/pid; sleep 300 & sleep 300', timeout: 0.5}}
  - name: list
    command: 'true'
    onSuccess: {report: {shell: {command: [touch, FOLDER/touched]}}}
"#,
    );
    let daemon = Builder::at(&place).start();
    let id = run_id(&start(&daemon, "two%20words"));
    assert_eq!(decided(&daemon, &id, 1)[0]["state"], "delivered");
    assert_eq!(
        lines(&place, "told"),
        ["two words|4|two words|exit code 4|out", ""]
    );
    let document: Value = serde_json::from_str(&place.read("document").unwrap()).unwrap();
    assert_eq!(
        (&document["run_id"], &document["exit_code"]),
        (&json!(id), &json!(4))
    );
    let id = run_id(&start(&daemon, "list"));
    assert_eq!(decided(&daemon, &id, 1)[0]["state"], "delivered");
    assert!(place.read("touched").is_some());
    let id = run_id(&start(&daemon, "hangs"));
    let report = daemon.wait("the timeout", || {
        let report = run(&daemon, &id)["reports"][0].clone();
        (report["tries"].as_u64()? >= 1).then_some(report)
    });
    assert_eq!(report["reason"], "timeout of 0.5 s: begun");
    let pid = lines(&place, "pid")[0].clone();
    daemon.wait("its group to be gone", || (!lives(&pid)).then_some(()));
}

#[test]
fn only_ends_that_were_asked_for_are_told() {
    let receiver = Receiver::new(Answer::Status(200));
    let reports = ["onFailure", "onPermanentFailure", "onSuccess"]
        .map(|hook| format!("    {hook}: {{report: {{webhook: {{url: HOOK}}}}}}\n"))
        .concat();
    let place = place_with(
        &receiver,
        &format!(
            "jobs:\n  - name: ok\n    command: 'true'\n{reports}  - name: long\n    command: sleep 60\n    \
             killTimeout: 1\n    concurrencyPolicy: Replace\n{reports}  - name: again\n    command: exit 7\n    \
             onFailure:\n      retry: {{maximumRetries: 1, initialDelay: 0.1}}\n      report: {{webhook: {{url: HOOK}}}}\n    \
             onPermanentFailure: {{report: {{webhook: {{url: HOOK}}}}}}\n"
        ),
    );
    let daemon = Builder::at(&place).start();
    let first = run_id(&start(&daemon, "long"));
    daemon.wait("it to run", || {
        (run(&daemon, &first)["state"] == "running").then_some(())
    });
    let second = run_id(&start(&daemon, "long"));
    assert_eq!(ended(&daemon, &first)["state"], "cancelled");
    daemon.wait("the second to run", || {
        (run(&daemon, &second)["state"] == "running").then_some(())
    });
    daemon.post("/jobs/long/cancel", &json!({})).expect_status(200);
    assert_eq!(ended(&daemon, &second)["state"], "cancelled");
    let id = run_id(&start(&daemon, "ok"));
    decided(&daemon, &id, 1);
    let body = json!({"retries": true});
    let id = run_id(&daemon.post("/jobs/again/start", &body).json());
    assert_eq!(ended(&daemon, &id)["state"], "failed");
    decided(&daemon, &id, 3);
    let mut told: Vec<(String, Value, Value)> = receiver
        .received()
        .iter()
        .map(Received::json)
        .map(|body| {
            let word = body["type"].as_str().unwrap_or_default().to_owned();
            (word, body["job"].clone(), body["attempt"].clone())
        })
        .collect();
    told.sort_by_key(|(word, _, attempt)| (word.clone(), attempt.as_u64()));
    let again = json!("again");
    assert_eq!(
        told,
        [
            ("job.attempt.failed".to_owned(), again.clone(), json!(1)),
            ("job.attempt.failed".to_owned(), again.clone(), json!(2)),
            ("job.failed".to_owned(), again, json!(2)),
            ("job.succeeded".to_owned(), json!("ok"), json!(1)),
        ]
    );
}

#[test]
fn a_receiver_that_hangs_holds_up_no_other() {
    let silent = Receiver::new(Answer::Silence);
    let place = place_with(
        &silent,
        "jobs:\n  - {name: quiet, command: 'true', onSuccess: {report: {webhook: {url: HOOK}}}}\n  \
         - {name: loud, command: 'true', onSuccess: {report: {shell: {command: 'echo told >> FOLDER/told'}}}}\n",
    );
    let mut daemon = Builder::at(&place).start();
    for _ in 0..20 {
        start(&daemon, "quiet");
    }
    silent.wait(2);
    let id = run_id(&start(&daemon, "loud"));
    decided(&daemon, &id, 1);
    assert_eq!(lines(&place, "told"), ["told"]);
    assert_eq!(silent.received().len(), 2, "two at once for one job");
    // Deliveries that are under way do not keep the daemon from ending.
    assert_eq!(daemon.term(), Some(0));
}

#[test]
fn an_address_that_is_mended_is_used_for_what_waits() {
    let (away, back) = (
        Receiver::new(Answer::Status(500)),
        Receiver::new(Answer::Status(200)),
    );
    let config = "jobs: [{name: a, command: exit 1, onFailure: {report: {webhook: {url: HOOK}}}}]\n";
    let place = place_with(&away, config);
    let daemon = Builder::at(&place).start();
    let id = run_id(&start(&daemon, "a"));
    away.wait(1);
    write(&place, &back, config);
    let reloaded = daemon
        .post("/api/config:reload", &json!({}))
        .expect_status(200)
        .json();
    let changed = &reloaded["data"]["jobs"]["changed"][0];
    assert_eq!(
        changed,
        &json!({"name": "a", "keys": ["onFailure"]}),
        "{reloaded}"
    );
    let arrived = back.wait(1);
    assert_eq!(
        arrived[0].header("webhook-id"),
        away.received()[0].header("webhook-id")
    );
    decided(&daemon, &id, 1);
}

#[test]
fn a_heartbeat_is_sent_while_the_daemon_lives() {
    let receiver = Receiver::new(Answer::Status(500));
    let place = place_with(&receiver, "notify: {heartbeat: {url: HOOK, every: 1s}}\n");
    let mut daemon = Builder::at(&place).start();
    let arrived = receiver.wait(1);
    assert_eq!(
        (arrived[0].method.as_str(), arrived[0].path.as_str()),
        ("GET", "/hook/with-a-token")
    );
    daemon.wait_log("the heartbeat is not sent: the receiver answered 500 Internal Server Error");
    receiver.answer(Answer::Status(200));
    daemon.wait_log("the heartbeat is sent again");
    assert_eq!(daemon.output().count("the heartbeat is not sent"), 1);
    daemon.wait("it to be counted", || {
        metric(
            &daemon,
            "ductor_effects_delivered_total{kind=\"heartbeat\",result=\"delivered\"}",
        )
        .filter(|count| *count >= 1.0)
    });
    assert_eq!(daemon.term(), Some(0));
    let log = daemon.output().to_string();
    assert!(!log.contains("with-a-token"), "{log}");
}

#[test]
fn a_job_that_is_late_is_shown_everywhere_and_told_once() {
    let receiver = Receiver::new(Answer::Status(200));
    let place = place_with(
        &receiver,
        "state: {lowDiskBytes: 0}\njobs:\n  - name: slow\n    command: sleep 300\n    killTimeout: 1\n    sla: {maxRuntime: 1s}\n    \
         onLate: {report: {webhook: {url: HOOK, body: '{\"content\": \"${text}\"}'}}}\n",
    );
    let daemon = Builder::at(&place).start();
    assert_eq!(
        metric(&daemon, "ductor_schedule_overdue{job=\"slow\"}"),
        Some(0.0)
    );
    let id = run_id(&start(&daemon, "slow"));
    let late = wait_until(Duration::from_secs(60), || {
        daemon.get("/jobs/slow").json()["late"]
            .as_array()?
            .first()
            .cloned()
    });
    let late = late.expect("it is looked at every 15 s");
    assert_eq!(
        (&late["check"], &late["runId"]),
        (&json!("maxRuntime"), &json!(id))
    );
    let reason = late["reason"].as_str().unwrap();
    assert!(
        reason.starts_with(&format!("{id} has been running since")),
        "{reason}"
    );
    assert_eq!(
        metric(&daemon, "ductor_schedule_overdue{job=\"slow\"}"),
        Some(1.0)
    );
    let status = daemon.get("/api/status").json()["data"].clone();
    assert_eq!(status["verdict"], format!("Job slow is late: {reason}."));
    let told = receiver.wait(1)[0].json();
    assert_eq!(told, json!({"content": format!("Job slow is late: {reason}")}));
    let listed = daemon.cli(&["job", "ls"]).expect_status(0).stdout;
    assert!(listed.contains("late"), "{listed}");
    daemon.post("/jobs/slow/cancel", &json!({})).expect_status(200);
    ended(&daemon, &id);
    assert_eq!(receiver.received().len(), 1);
}

/// An alert of routing goes where its pool says, as far as the configuration lets it, and is signed like a report.
#[test]
fn an_alert_of_routing_is_signed_and_goes_where_the_guard_lets_it() {
    let receiver = Receiver::new(Answer::Status(204));
    let config = "egress: {allow: ['127.0.0.1']}\nrouting: {alertSecret: {fromFile: FOLDER/secret}}\n";
    let place = place_with(&receiver, config);
    let daemon = Builder::at(&place).start();
    let with = |url: &str| {
        let sla = json!({"enabled": true, "max_queue_time": "10ms", "alert_webhook_url": url});
        json!({"name": "desk", "config": {"sla": sla}})
    };
    let refused = daemon
        .post("/api/pools", &with("https://10.0.0.1/alerts"))
        .expect_status(422)
        .json();
    assert_eq!(refused["errors"][0]["code"], "url.forbidden", "{refused}");
    let made = daemon
        .post("/api/pools", &with(&receiver.url("alerts")))
        .expect_status(201)
        .json();
    let body = json!({"work": {"kind": "ticket"}, "pool_id": made["data"]["id"]});
    let decision = daemon.post("/api/route", &body).expect_status(200).json()["data"].clone();
    assert_eq!(decision["outcome"], "queued", "{decision}");
    let arrived = receiver.wait(1).remove(0);
    assert_eq!(
        (arrived.method.as_str(), arrived.path.as_str()),
        ("POST", "/alerts")
    );
    assert_eq!(
        arrived.json()["work_id"],
        decision["work_id"],
        "{}",
        arrived.json()
    );
    assert_eq!(arrived.header("webhook-signature"), signature(&arrived));
}
