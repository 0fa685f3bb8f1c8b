//! Requests of workflows against a receiver on loopback: sensors that ask an address, and a daemon that dies while it waits
//! for an answer.

use std::net::TcpListener;

use serde_json::{Value, json};

use super::graphs::{begin, ended, publish, show, step_state};
use super::support::{Answer, Builder, Daemon, Place, Receiver};

fn place() -> Place {
    Place::new("jobs: []\negress: {allow: ['127.0.0.1']}\n")
}

fn sensor(url: &str, poke_timeout: &str, more: &Value) -> Value {
    let mut step = json!({"ref": "s", "type": "STEP_TYPE_SENSOR",
        "args": {"http": {"url": url}, "poke_interval": "1s", "poke_timeout": poke_timeout}});
    step.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    step
}

fn start(daemon: &Daemon, slug: &str, step: &Value) -> String {
    publish(daemon, &json!({"family_slug": slug, "steps": [step]}));
    begin(daemon, slug, &Value::Null)
}

fn error_code(daemon: &Daemon, run: &str) -> String {
    let shown = daemon.get(&format!("/api/runs/{run}/steps/s")).json();
    shown["data"]["error"]["code"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

fn attempts(shown: &Value) -> Vec<(u64, String)> {
    let attempts = shown["steps"][0]["attempts"].as_array().unwrap().iter();
    let each = attempts.map(|attempt| {
        let outcome = attempt["outcome"].as_str().unwrap().to_owned();
        (attempt["number"].as_u64().unwrap(), outcome)
    });
    each.collect()
}

#[test]
fn http_sensor_asks_until_it_is_met() {
    let place = place();
    let daemon = Builder::at(&place).start();
    let receiver = Receiver::new(Answer::Status(503));
    let run = start(&daemon, "met", &sensor(&receiver.url("s"), "1m", &json!({})));
    receiver.wait(1);
    daemon.wait("it to rest", || {
        (step_state(&daemon, &run, "s") == "waiting").then_some(())
    });
    // Whatever goes wrong on the way is no answer either.
    receiver.answer(Answer::HangUp);
    receiver.wait(2);
    receiver.answer(Answer::Status(404));
    receiver.wait(3);
    receiver.answer(Answer::Status(204));
    let shown = ended(&daemon, &run);
    assert_eq!(shown["state"], "succeeded", "{shown}");
    // A poke that was not met is no attempt.
    assert_eq!(attempts(&shown), [(1, "succeeded".to_owned())], "{shown}");
}

#[test]
fn http_sensor_waits_for_an_address_at_which_nobody_listens_yet() {
    let place = place();
    let daemon = Builder::at(&place).start();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", closed.local_addr().unwrap());
    drop(closed);
    let run = start(&daemon, "nobody", &sensor(&url, "2s", &json!({})));
    let shown = ended(&daemon, &run);
    assert_eq!(
        (&shown["state"], error_code(&daemon, &run).as_str()),
        (&json!("failed"), "sensor.timeout"),
        "{shown}"
    );
}

#[test]
fn http_sensor_fails_by_its_limits() {
    let place = place();
    let daemon = Builder::at(&place).start();
    let no = Receiver::new(Answer::Status(500));
    let silent = Receiver::new(Answer::Silence);
    let never = start(&daemon, "never", &sensor(&no.url("s"), "2s", &json!({})));
    let slow = json!({"timeouts": {"attempt": "300ms"}});
    let slow = start(&daemon, "slow", &sensor(&silent.url("s"), "1m", &slow));
    let total = json!({"timeouts": {"total": "1500ms"}});
    let total = start(&daemon, "total", &sensor(&no.url("s"), "1m", &total));
    // Not allowed, and not what an address is: nothing would change that.
    let denied = start(
        &daemon,
        "denied",
        &sensor("http://127.0.0.2:9/", "1m", &json!({})),
    );
    let wrong = start(&daemon, "wrong", &sensor("{{ 'no address' }}", "1m", &json!({})));
    for (run, code) in [
        (never, "sensor.timeout"),
        (slow, "timeout.attempt"),
        (total, "timeout.total"),
        (denied, "http.denied"),
        (wrong, "http.invalid"),
    ] {
        let shown = ended(&daemon, &run);
        assert_eq!(
            (&shown["state"], error_code(&daemon, &run).as_str()),
            (&json!("failed"), code),
            "{shown}"
        );
    }
    assert!(no.received().len() >= 4, "each was asked more than once");
}

#[test]
fn a_sensor_that_is_cancelled_between_two_pokes_asks_no_more() {
    let place = place();
    let daemon = Builder::at(&place).start();
    let receiver = Receiver::new(Answer::Status(503));
    let run = start(
        &daemon,
        "cancelled",
        &sensor(&receiver.url("s"), "1m", &json!({})),
    );
    receiver.wait(1);
    let cancelled = daemon.post(&format!("/api/runs/{run}:cancel"), &json!({}));
    assert!(matches!(cancelled.status, 200 | 202), "{cancelled:?}");
    assert_eq!(ended(&daemon, &run)["state"], "cancelled");
    let before = receiver.received().len();
    // The next one would come after a second; this run begins later and is asked for.
    let next = start(
        &daemon,
        "later",
        &sensor(&receiver.url("later"), "2s", &json!({})),
    );
    ended(&daemon, &next);
    let of_first = receiver.received().iter().filter(|one| one.path == "/s").count();
    assert_eq!(of_first, before);
}

/// The receiver cannot tell whether its answer arrived: it gets the same key again, and the attempt keeps its number.
#[test]
fn a_daemon_that_dies_during_a_request_sends_it_again_as_the_same_attempt() {
    let place = place();
    let mut daemon = Builder::at(&place).start();
    let receiver = Receiver::new(Answer::Silence);
    let step = json!({"ref": "s", "type": "STEP_TYPE_HTTP", "args": {"method": "POST", "url": receiver.url("pay"), "body": {"sum": 7}}});
    let run = start(&daemon, "pay", &step);
    receiver.wait(1);
    assert_eq!(step_state(&daemon, &run, "s"), "running");
    daemon.kill9();
    receiver.answer(Answer::Status(200));
    let daemon = daemon.restart();
    let shown = ended(&daemon, &run);
    assert_eq!(shown["state"], "succeeded", "{shown}");
    let requests = receiver.received();
    assert_eq!(requests.len(), 2);
    let keys: Vec<&str> = requests.iter().map(|one| one.header("idempotency-key")).collect();
    assert_eq!(keys, [format!("{run}/s"), format!("{run}/s")]);
    assert_eq!(requests[0].json(), requests[1].json());
    let found = attempts(&shown);
    assert_eq!(
        found,
        [(1, "lost".to_owned()), (1, "succeeded".to_owned())],
        "{shown}"
    );
    let lost = &show(&daemon, &run)["steps"][0]["attempts"][0];
    assert!(
        lost["reason"].as_str().is_some_and(|why| !why.is_empty()),
        "{lost}"
    );
    let history = daemon.get(&format!("/api/runs/{run}/history")).json();
    let lines = history["data"].as_array().unwrap().iter();
    let mut lines = lines.flat_map(|row| row["items"].as_array().unwrap());
    let said = lines.any(|line| line["step"] == "s" && line["what"] == "lost");
    assert!(said, "{history:#}");
}
