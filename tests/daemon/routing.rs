//! Live routing on the real binary: decisions, restarts in the middle, and what the command line says of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::interpreter::Dice;
use super::support::{Builder, Daemon, Place, wait_until};

fn made(daemon: &Daemon, path: &str, body: &Value) -> String {
    let answer = daemon.post(path, body).expect_status(201).json();
    answer["data"]["id"].as_str().unwrap().to_owned()
}

fn pool(daemon: &Daemon, name: &str, config: &Value) -> String {
    made(daemon, "/api/pools", &json!({"name": name, "config": config}))
}

fn member(daemon: &Daemon, pool: &str, name: &str, more: &Value) -> String {
    let mut body = more.clone();
    body["name"] = json!(name);
    made(daemon, &format!("/api/pools/{pool}/recipients"), &body)
}

fn route(daemon: &Daemon, pool: &str) -> Value {
    let body = json!({"work": {"kind": "ticket"}, "pool_id": pool});
    daemon.post("/api/route", &body).expect_status(200).json()["data"].clone()
}

/// 14 and 13 on the real binary: `kill -9` at random moments while clients route, complete and reject; whatever was acknowledged
/// is there, and all counts equal their rows.
#[test]
fn counts_equal_rows_after_kills_in_the_middle() {
    let mut dice = Dice::seeded();
    let place = Place::new("jobs: []\n");
    let mut daemon = Builder::at(&place).start();
    let of = pool(&daemon, "p", &json!({"default_timeout": "1s"}));
    for name in ["a", "b", "c"] {
        member(&daemon, &of, name, &json!({"capacity": {"max_concurrent": 6}}));
    }
    let mut acknowledged: Vec<String> = Vec::new();
    for _ in 0..8 {
        let (client, stop) = (daemon.client(), AtomicBool::new(false));
        let ms = 20 + dice.below(200) as u64;
        let heard = std::thread::scope(|scope| {
            let working = scope.spawn(|| {
                let mut heard = Vec::new();
                let body = json!({"work": {"kind": "t"}, "pool_id": of, "explain": "winners"}).to_string();
                let json = [("content-type", "application/json")];
                while !stop.load(Ordering::SeqCst) {
                    let Ok(answer) = client.request("POST", "/api/route", &json, body.as_bytes()) else {
                        continue;
                    };
                    if answer.status != 200 {
                        continue;
                    }
                    let decision = answer.json()["data"].clone();
                    heard.push(decision["id"].as_str().unwrap().to_owned());
                    let Some(id) = decision["winners"][0]["assignment_id"].as_str() else {
                        continue;
                    };
                    let verb = if heard.len() % 3 == 0 {
                        "reject"
                    } else {
                        "complete"
                    };
                    let path = format!("/api/assignments/{id}:{verb}");
                    drop(client.request("POST", &path, &json, b"{}"));
                }
                heard
            });
            wait_until(Duration::from_millis(ms), || None::<()>);
            daemon.kill9();
            stop.store(true, Ordering::SeqCst);
            working.join().unwrap()
        });
        acknowledged.extend(heard);
        daemon = daemon.restart();
        let check = daemon.get("/api/store/check").expect_status(200).json();
        assert_eq!(check["data"]["findings"], json!([]), "{check}");
    }
    assert!(!acknowledged.is_empty());
    for id in &acknowledged {
        daemon.get(&format!("/api/decisions/{id}")).expect_status(200);
    }
    let counted = daemon.cli(&["routing", "reconcile"]);
    assert_eq!(counted.status, 0, "{counted:?}");
}

/// 32 over a restart: the catchall is due while the daemon is down, and happens at the next start.
#[test]
fn a_catchall_is_due_across_a_restart() {
    let mut daemon = Daemon::start("jobs: []\n");
    let last = pool(&daemon, "last", &json!({}));
    member(&daemon, &last, "rescuer", &json!({}));
    let config = json!({"fallback": "catchall", "catchall_pool_id": last, "catchall_delay": "300ms"});
    let of = pool(&daemon, "p", &config);
    let deferred = route(&daemon, &of);
    assert_eq!(deferred["outcome"], "deferred_catchall", "{deferred}");
    daemon.kill9();
    daemon = daemon.restart();
    let work = deferred["work_id"].as_str().unwrap().to_owned();
    daemon.wait("the catchall", || {
        let found = daemon.get(&format!("/api/decisions?work_id={work}")).json();
        let newest = found["data"][0].clone();
        (newest["outcome"] == "assigned").then_some(newest)
    });
}

/// 33 on the real binary: nobody polls, and a recipient that comes online has the work at once.
#[test]
fn work_goes_to_who_comes_online() {
    let daemon = Daemon::start("jobs: []\n");
    let of = pool(&daemon, "p", &json!({}));
    let agent = member(&daemon, &of, "a", &json!({"state": "RECIPIENT_STATE_OFFLINE"}));
    assert_eq!(route(&daemon, &of)["outcome"], "queued");
    let waits = daemon
        .get(&format!("/api/queues/{of}/items"))
        .expect_status(200)
        .json();
    assert_eq!(
        waits["data"][0]["histogram"],
        json!({"state.offline": 1}),
        "{waits}"
    );
    daemon
        .post(&format!("/api/recipients/{agent}/resume"), &json!({}))
        .expect_status(200);
    daemon.wait("the assignment", || {
        let list = daemon
            .get(&format!("/api/assignments?recipient_id={agent}&state=open"))
            .json();
        (list["data"].as_array().unwrap().len() == 1).then_some(())
    });
}

/// The command line: a decision, a dry run and the explanation of each recipient, in 80 columns.
#[test]
fn the_command_line_decides_and_explains() {
    let daemon = Daemon::start("jobs: []\n");
    let of = pool(&daemon, "p", &json!({}));
    member(&daemon, &of, "Jordan Reyes", &json!({}));
    member(
        &daemon,
        &of,
        "Kim Osei",
        &json!({"state": "RECIPIENT_STATE_OFFLINE"}),
    );
    let file = daemon.place().write("work.json", "{\"kind\": \"ticket\"}");
    let file = file.to_str().unwrap();
    let tested = daemon.cli(&["route", "test", "--input", file, "--to-pool", &of]);
    assert_eq!(tested.status, 0, "{tested:?}");
    assert!(tested.stdout.contains("nothing was written"), "{tested:?}");
    let decided = daemon.cli(&["route", "decide", "--input", file, "--to-pool", &of]);
    assert_eq!(decided.status, 0, "{decided:?}");
    assert!(
        decided.stdout.contains("Jordan Reyes") && decided.stdout.contains("state.offline"),
        "{decided:?}"
    );
    let list = daemon.get("/api/decisions").expect_status(200).json();
    assert_eq!(list["data"].as_array().unwrap().len(), 1, "{list}");
    let id = list["data"][0]["id"].as_str().unwrap();
    let shown = daemon.cli(&["route", "show", id]);
    assert!(shown.stdout.contains("Jordan Reyes"), "{shown:?}");
    let replayed = daemon
        .post(&format!("/api/decisions/{id}:replay"), &json!({}))
        .expect_status(200)
        .json();
    assert_eq!(replayed["data"]["identical"], true, "{replayed}");
    let missing = daemon.cli(&["route", "show", "019ad0f2-7c11-7a3e-9b52-3c1e5a7d0a01"]);
    assert_eq!(missing.status, 3, "{missing:?}");
}

/// Shadow campaigns over HTTP: what they say is joined to the decision, and reported.
#[test]
fn a_campaign_says_what_it_would_have_decided() {
    let daemon = Daemon::start("jobs: []\n");
    let of = pool(&daemon, "p", &json!({"default_strategy": "round_robin"}));
    let who = member(&daemon, &of, "Jordan Reyes", &json!({}));
    let body = json!({"name": "trial", "pool_id": of, "candidate": {"strategy": "least_utilized"}, "status": "running"});
    let campaign = made(&daemon, "/api/shadow-campaigns", &body);
    let decision = route(&daemon, &of);
    assert_eq!(decision["shadow"], json!([]));
    let path = format!("/api/decisions/{}", decision["id"].as_str().unwrap());
    let said = daemon.wait("a shadow result", || {
        let found = daemon.get(&path).expect_status(200).json()["data"]["shadow"][0].clone();
        (!found.is_null()).then_some(found)
    });
    assert_eq!(
        said,
        json!({"campaign": "trial", "campaign_id": campaign, "winner": "Jordan Reyes", "winner_id": who, "agrees": true})
    );
    let report = daemon.get(&format!("/api/shadow-campaigns/{campaign}/report"));
    let report = report.expect_status(200).json()["data"].clone();
    assert_eq!((&report["n"], &report["agreement"]["k"]), (&json!(1), &json!(1)));
    assert_eq!(
        (&report["value"], &report["value_reason"]),
        (&Value::Null, &json!("no_overlap"))
    );
    let stopped = daemon.send_json(
        "PATCH",
        &format!("/api/shadow-campaigns/{campaign}"),
        &json!({"status": "stopped"}),
    );
    assert_eq!(stopped.expect_status(200).json()["data"]["status"], "stopped");
}

/// A step routes once for each attempt; one that waits goes on when its work is done, also through a kill.
#[test]
fn a_step_waits_until_its_work_is_done() {
    let place = Place::new("jobs: []\n");
    let daemon = Builder::at(&place).start();
    let of = pool(&daemon, "desk", &json!({}));
    member(&daemon, &of, "a", &json!({"capacity": {"max_concurrent": 10}}));
    let step = |name: &str, more: Value| {
        let mut args =
            json!({"work": {"kind": "'ticket'", "attributes": "{'shop': input.shop}"}, "pool": "desk"});
        for (key, value) in more.as_object().unwrap() {
            args[key] = value.clone();
        }
        json!({"ref": name, "type": "STEP_TYPE_ROUTE", "args": args})
    };
    let document = json!({"family_slug": "w",
        "steps": [step("decided", json!({})), step("done", json!({"wait": "completion"})),
            step("lost", json!({"wait": "completion"}))],
        "edges": [{"source_ref": "decided", "target_ref": "done"}, {"source_ref": "done", "target_ref": "lost"}]});
    super::graphs::publish(&daemon, &document);
    let run = super::graphs::begin(&daemon, "w", &json!({"shop": 7}));
    let state_of = |daemon: &Daemon, step: &str| super::graphs::step_state(daemon, &run, step);
    let open = |daemon: &Daemon, count: usize| {
        let listed = daemon
            .get("/api/assignments?state=open")
            .expect_status(200)
            .json();
        let all = listed["data"].as_array().unwrap().clone();
        (all.len() == count).then(|| all[0]["id"].as_str().unwrap().to_owned())
    };
    daemon.wait("a step that waits", || {
        (state_of(&daemon, "done") == "waiting").then_some(())
    });
    let assignment = daemon.wait("two assignments", || open(&daemon, 2));
    let mut daemon = daemon;
    daemon.kill9();
    let daemon = daemon.restart();
    assert_eq!(state_of(&daemon, "decided"), "succeeded");
    assert_eq!(state_of(&daemon, "done"), "waiting");
    let done = json!({"value": 0.5, "result": {"answer": 42}});
    daemon
        .post(&format!("/api/assignments/{assignment}:complete"), &done)
        .expect_status(200);
    daemon.wait("the next step", || {
        (state_of(&daemon, "lost") == "waiting").then_some(())
    });
    let shown = daemon
        .get(&format!("/api/runs/{run}/steps/done"))
        .expect_status(200)
        .json();
    let output = &shown["data"]["output"];
    assert_eq!(
        (
            &output["value"],
            &output["result"]["answer"],
            &output["assignment_id"]
        ),
        (&json!(0.5), &json!(42), &json!(assignment))
    );
    let last = daemon.wait("the last assignment", || open(&daemon, 2));
    let back = json!({"reason": "nobody can", "reroute": false});
    daemon
        .post(&format!("/api/assignments/{last}:return"), &back)
        .expect_status(200);
    let ended = super::graphs::ended(&daemon, &run);
    assert_eq!(ended["state"], "failed", "{ended}");
    assert!(ended.to_string().contains("nobody can"), "{ended}");
}
