//! Dead letters, pins and a disk without room, as callers meet them.

use serde_json::{Value, json};

use super::fixture::{BEGIN, Face};
use crate::domain::disk::Room;
use crate::domain::report::{Effect, EffectState, Facts, ReportKind, ReportTarget};
use crate::domain::slots::entry::reason;
use crate::domain::workflow::attempt::Outcome;
use crate::domain::workflow::run::Trigger;
use crate::engine::changes::complete::Holder;
use crate::engine::changes::start::{self, Started};
use crate::engine::changes::{dead, settle};
use crate::store::tables::{DEAD_STEPS, FIRES};
use crate::store::{Rows, effects, runs};
use crate::words::ids::{EffectId, EntryId, RunId, TenantId};
use crate::words::names::JobName;
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;

/// A report of job `a` that was given up.
async fn dead_report(face: &Face, at: Millis) -> String {
    let effect = face
        .change(move |tx| {
            let effect = Effect {
                seq: 0,
                id: EffectId::of_parts(&["report", &at.to_string()]),
                kind: ReportKind::Failure,
                target: ReportTarget::Webhook,
                job: JobName::new("a").unwrap(),
                run: None,
                created_at: at,
                facts: Facts::default(),
                state: EffectState::Dead {
                    at,
                    tries: 9,
                    reason: "nobody listens".to_owned(),
                },
            };
            Ok(effects::insert(tx, effect)?)
        })
        .await;
    format!("report-{}", effect.seq)
}

/// A run of `job` with which five daemons have died.
async fn poisoned(face: &Face, job: &str) -> (RunId, String) {
    face.post(&format!("/jobs/{job}/start")).await;
    let mut run = None;
    for _ in 1..=5 {
        let claimed = face.pass(1).await.remove(0);
        run = Some(claimed.run.id);
        let holder = Holder {
            run: claimed.run.id,
            step: claimed.step.clone(),
            fence: claimed.claim.fence,
        };
        face.change(move |tx| settle::settle(tx, &holder, reason::DAEMON_DIED, true).map(drop))
            .await;
    }
    let run = run.unwrap();
    (run, format!("step-{run}-main"))
}

async fn ids(face: &Face, query: &str) -> Vec<String> {
    let list = face.get(&format!("/api/dead_letters{query}")).await;
    assert_eq!(list.status, 200, "{}", list.text);
    let list = list.json();
    let each = list["data"].as_array().unwrap().iter();
    each.map(|letter| letter["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn both_kinds_are_one_list_by_pages() {
    let face = Face::new().await;
    assert_eq!(ids(&face, "").await, Vec::<String>::new());
    let (old, new) = (
        dead_report(&face, BEGIN).await,
        dead_report(&face, BEGIN.plus(5)).await,
    );
    let (run, step) = poisoned(&face, "free").await;
    assert_eq!(ids(&face, "").await, [step.clone(), new.clone(), old.clone()]);
    assert_eq!(ids(&face, "?kind=report").await, [new.clone(), old.clone()]);
    assert_eq!(ids(&face, "?kind=step").await, std::slice::from_ref(&step));
    assert_eq!(
        ids(&face, "?order=asc").await,
        [old.clone(), new.clone(), step.clone()]
    );
    assert_eq!(ids(&face, "?job=free").await, std::slice::from_ref(&step));
    assert_eq!(ids(&face, "?job=nobody").await, Vec::<String>::new());
    assert_eq!(face.get("/api/dead_letters?kind=other").await.status, 400);
    let mut found = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = face
            .get(&format!("/api/dead_letters?page_size=1{cursor}"))
            .await
            .json();
        found.push(page["data"][0]["id"].as_str().unwrap().to_owned());
        match page["pagination"]["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(found, [step.clone(), new, old.clone()]);
    let shown = face.get(&format!("/api/dead_letters/{step}")).await.json();
    assert_eq!(
        (
            &shown["data"]["kind"],
            &shown["data"]["tries"],
            &shown["data"]["run"]
        ),
        (&json!("step"), &json!(5), &json!(run.to_string()))
    );
    let shown = face.get(&format!("/api/dead_letters/{old}")).await.json();
    assert_eq!(shown["data"]["reason"], "nobody listens");
    let status = face.get("/api/status").await.json();
    assert_eq!(status["data"]["dead_letters"], 3);
    assert_eq!(
        status["data"]["poisoned_runs"][0]["run_id"],
        json!(run.to_string())
    );
    for wrong in ["report-99", "report-x", "step-run_0-main", "step-x", "x"] {
        for path in [
            wrong.to_owned(),
            format!("{wrong}:discard"),
            format!("{wrong}:retry"),
        ] {
            let answer = if path == wrong {
                face.get(&format!("/api/dead_letters/{path}")).await
            } else {
                face.post(&format!("/api/dead_letters/{path}")).await
            };
            assert_eq!(answer.status, 404, "{path}: {}", answer.text);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_is_delivered_anew_or_put_away_once() {
    let face = Face::new().await;
    let (first, second) = (
        dead_report(&face, BEGIN).await,
        dead_report(&face, BEGIN.plus(1)).await,
    );
    let retried = face.post(&format!("/api/dead_letters/{first}:retry")).await;
    assert_eq!(
        (retried.status, &retried.json()["data"]["state"]),
        (202, &json!("waiting"))
    );
    let due = face
        .app
        .engine
        .store
        .read(|tx| crate::engine::changes::deliver::due(tx, BEGIN.plus(1_000)))
        .unwrap();
    assert_eq!(due.now.len(), 1, "the courier finds it");
    assert_eq!(ids(&face, "").await, std::slice::from_ref(&second));
    assert_eq!(
        face.post(&format!("/api/dead_letters/{first}:retry"))
            .await
            .status,
        404
    );
    let away = face.post(&format!("/api/dead_letters/{second}:discard")).await;
    assert_eq!(
        (away.status, &away.json()["data"]["state"]),
        (200, &json!("discarded"))
    );
    assert_eq!(
        face.post(&format!("/api/dead_letters/{second}:discard"))
            .await
            .status,
        404
    );
    assert_eq!(ids(&face, "").await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_is_tried_again_by_a_new_run_and_its_letter_goes_with_that() {
    let face = Face::new().await;
    let (of, letter) = poisoned(&face, "free").await;
    let path = format!("/api/dead_letters/{letter}:retry");
    let key = [("idempotency-key", "k"), ("content-type", "application/json")];
    let again = face.send("POST", &path, &key, "").await;
    assert_eq!(
        (again.status, &again.json()["data"]["state"]),
        (201, &json!("begun")),
        "{}",
        again.text
    );
    let run = again.json()["data"]["run"].as_str().unwrap().to_owned();
    assert_eq!(
        again.header("location"),
        Some(format!("/api/runs/{run}").as_str())
    );
    let shown = face.get(&format!("/api/runs/{run}")).await.json();
    assert_eq!(shown["data"]["rerun_of"], json!(of.to_string()));
    assert_eq!(ids(&face, "").await, Vec::<String>::new());
    // The same wish again is answered as before and begins nothing.
    let same = face.send("POST", &path, &key, "").await;
    assert_eq!((same.status, same.json()), (201, again.json()));
    assert_eq!(face.post(&path).await.status, 404);
    assert_eq!(
        face.get(&format!("/api/runs/{of}")).await.json()["data"]["poisoned"],
        true,
        "what it was stays"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_of_a_run_go_with_it() {
    let face = Face::new().await;
    let (run, _) = poisoned(&face, "free").await;
    let job = JobName::new("free").unwrap();
    face.change(move |tx| Ok(crate::store::removal::begin(tx, &job, run, &mut 100)?))
        .await;
    assert_eq!(ids(&face, "").await, Vec::<String>::new());
    let other = RunId([7; 16]);
    face.change(move |tx| Ok(dead::tried_again(tx, other)?)).await;
    let left = face
        .app
        .engine
        .store
        .read(|tx| tx.scan(&DEAD_STEPS, &(TENANT,), None, 9));
    assert!(left.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_pinned_and_says_so() {
    let face = Face::new().await;
    let started = face.post("/jobs/free/start").await.json();
    let run = started["started"]
        .as_str()
        .map(|_| started["runId"].clone())
        .unwrap();
    let path = format!("/api/runs/{}", run.as_str().unwrap());
    let show = async || face.get(&path).await.json()["data"].clone();
    assert_eq!(show().await["pinned"], Value::Null);
    assert_eq!(show().await["should_continue_as_new"], false);
    let claimed = face.pass(1).await.remove(0);
    face.complete(&claimed, Outcome::Succeeded).await;
    let tag = face.get(&path).await.header("etag").unwrap().to_owned();
    let pinned = face
        .post_json(&format!("{path}:pin"), r#"{"reason": "for the audit"}"#)
        .await;
    assert_eq!(
        (pinned.status, &pinned.json()["data"]["pinned"]),
        (200, &json!(true))
    );
    let pin = show().await["pinned"].clone();
    assert_eq!(
        (&pin["by"], &pin["reason"]),
        (&json!("local"), &json!("for the audit"))
    );
    let anew = face.send("GET", &path, &[("if-none-match", &tag)], "").await;
    assert_eq!(anew.status, 200, "who has the old answer is told");
    let again = face
        .post_json(&format!("{path}:pin"), r#"{"reason": "other"}"#)
        .await;
    assert_eq!(
        again.json()["data"],
        pinned.json()["data"],
        "the first word stands"
    );
    let old = face
        .post_json(&format!("{path}:unpin"), r#"{"expected_version": 1}"#)
        .await;
    assert_eq!(old.status, 412, "{}", old.text);
    assert_eq!(face.post(&format!("{path}:unpin")).await.status, 200);
    assert_eq!(show().await["pinned"], Value::Null);
    let bad = face
        .post_json(&format!("{path}:pin"), r#"{"reason": 7, "why": 1}"#)
        .await;
    assert_eq!(bad.status, 422);
    assert_eq!(bad.json()["errors"].as_array().unwrap().len(), 2);
    let unknown = "/api/runs/run_00000000000000000000000000:pin";
    assert_eq!(face.post(unknown).await.status, 404);
}

fn room(free_bytes: u64) -> Room {
    Room {
        free_bytes,
        total_bytes: 1 << 40,
        free_files: Some(1 << 30),
    }
}

const MIB: u64 = 1 << 20;

/// A due moment gets its row, and the reason.
async fn fired_without_room(face: &Face) -> Started {
    let book = face.app.engine.book();
    let (name, at) = (JobName::new("timed").unwrap(), BEGIN.plus(3_600_000));
    let wish = start::Start {
        name: name.clone(),
        job: book.jobs[&name].clone(),
        trigger: Trigger::Schedule { instant: at },
        node: None,
        run: RunId::fresh(),
        entry: EntryId::random(),
        retries: false,
        boot: None,
        rules: face.app.engine.rules(),
    };
    let fired = face.change(move |tx| start::start(tx, &book, &wish)).await;
    let key = (TENANT, name, at, String::new());
    let row = face.app.engine.store.read(|tx| tx.get(&FIRES, &key)).unwrap();
    let shown = format!("{row:?}");
    assert!(shown.contains("no_room"), "{shown}");
    fired
}

#[tokio::test(flavor = "multi_thread")]
async fn without_room_no_run_begins_and_what_runs_goes_on() {
    let face = Face::new().await;
    let disk = face.app.engine.disk.clone();
    let running = face.post("/jobs/free/start").await.json()["runId"].clone();
    let claimed = face.pass(1).await.remove(0);
    let calm = json!({"family_slug": "calm", "steps": [{"ref": "s", "type": "STEP_TYPE_WAIT", "args": {"duration": "1s"}}]});
    face.post_json("/api/workflows", &calm.to_string()).await;
    face.post("/api/workflows/calm:publish").await;
    let ended = face.post("/api/workflows/calm/runs").await.json()["data"]["id"].clone();

    disk.note(Some(room(500 * MIB)), 512 * MIB);
    for path in ["/jobs/a/start", "/jobs/timed/start", "/api/workflows/calm/runs"] {
        let refused = face.post(path).await;
        assert_eq!(
            (refused.status, refused.header("retry-after")),
            (503, Some("1")),
            "{path}"
        );
        let problem = refused.json();
        assert_eq!(problem["code"], "UNAVAILABLE");
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            detail.starts_with("the disk of the state directory has too little room"),
            "{detail}"
        );
        assert!(
            !refused.text.contains("os error") && !refused.text.contains("/tmp"),
            "{}",
            refused.text
        );
    }
    let rerun = format!("/api/runs/{}:rerun", ended.as_str().unwrap());
    assert_eq!(face.post(&rerun).await.status, 503);
    assert_eq!(fired_without_room(&face).await, Started::NoRoom);
    // What runs ends as ever, and what is kept may go.
    face.complete(&claimed, Outcome::Succeeded).await;
    let id: RunId = running.as_str().unwrap().parse().unwrap();
    let run = face
        .app
        .engine
        .store
        .read(|tx| runs::by_id(tx, id))
        .unwrap()
        .unwrap();
    assert_eq!(run.state.word(), "succeeded");
    face.change(move |tx| Ok(crate::store::removal::begin(tx, &run.definition, id, &mut 100)?))
        .await;
    assert_eq!(face.get(&format!("/api/runs/{id}")).await.status, 404);

    // A little more is not enough; the file system's own word is.
    disk.note(Some(room(520 * MIB)), 512 * MIB);
    assert_eq!(face.post("/jobs/a/start").await.status, 503);
    let lack = face.get("/api/status").await.json()["data"]["disk"]["lack"].clone();
    assert_eq!(lack, "bytes");
    disk.note(Some(room(577 * MIB)), 512 * MIB);
    assert_eq!(face.post("/jobs/a/start").await.status, 202);
    assert_eq!(face.post("/api/workflows/calm/runs").await.status, 201);
    let lack = face.get("/api/status").await.json()["data"]["disk"]["lack"].clone();
    assert_eq!(lack, Value::Null);
}
