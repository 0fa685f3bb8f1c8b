//! Schedules over HTTP: what became of fires, why, what comes, and the calendar.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::fixture::{BEGIN, Face};
use crate::domain::schedule::{ParseOptions, Schedule};
use crate::domain::workflow::attempt::Outcome;
use crate::domain::workflow::definition::ScheduleText;
use crate::domain::workflow::definition::tests::sample;
use crate::engine::changes::{publish, start};
use crate::engine::schedules;
use crate::store::rows::{Fire, Owed};
use crate::store::tables::{FIRES, OWED};
use crate::words::ids::{RunId, TenantId};
use crate::words::names::{JobName, NodeName};
use crate::words::time::{Millis, parse_instant};

const TENANT: TenantId = TenantId::DEFAULT;

fn job(name: &str) -> JobName {
    JobName::new(name).unwrap()
}

fn at(text: &str) -> Millis {
    parse_instant(text).unwrap_or_else(|| panic!("{text}"))
}

/// Gives a job of the fixture a schedule.
fn schedule(face: &Face, name: &str, text: &str, zone: &str) {
    let options = ParseOptions {
        timezone: Some(zone),
        ..ParseOptions::default()
    };
    let schedule = Arc::new(Schedule::parse(text, options).unwrap());
    face.edit_book(|book| {
        book.jobs.get_mut(&job(name)).unwrap().schedule = Some(schedule);
    });
}

async fn skip(face: &Face, name: &str, instant: Millis, word: &'static str) {
    let name = job(name);
    face.change(move |tx| Ok(start::skip(tx, &name, instant, "", word)?))
        .await;
}

/// Fires a job now; the id of its run.
async fn fire(face: &Face, name: &str, instant: Millis) {
    let book = face.app.engine.book();
    schedules::fire_now(&face.app.engine, &book, &job(name), instant)
        .await
        .unwrap();
}

fn set_clock(face: &Face, instant: Millis) {
    let now = face.app.engine.now().wall;
    face.clock.step_wall(instant.0 - now.0);
}

fn texts<'a>(items: &'a Value, pointer: &str) -> Vec<&'a str> {
    let items = items.as_array().unwrap().iter();
    items
        .map(|item| item.pointer(pointer).and_then(Value::as_str).unwrap_or("-"))
        .collect()
}

/// 2026-10-25 has 25 hours in London; the list tells the two times of 01:15 apart.
#[tokio::test(flavor = "multi_thread")]
async fn c5_the_list_of_fires_shows_the_offset() {
    let face = Face::new().await;
    schedule(&face, "free", "*/15 * * * *", "Europe/London");
    let (from, to) = (at("2026-10-24T22:59:59Z"), at("2026-10-25T23:59:59Z"));
    let due = {
        let book = face.app.engine.book();
        let schedule = book.jobs[&job("free")].schedule.clone().unwrap();
        schedule.instants(from.0, to.0, 1_000)
    };
    assert_eq!(due.len(), 100);
    for instant in due {
        skip(&face, "free", Millis(instant), "still_running").await;
    }
    let list = face.get("/jobs/free/fires?limit=500").await.json();
    assert_eq!(list.as_array().unwrap().len(), 100);
    let local = texts(&list, "/local");
    let twice: Vec<&str> = local
        .iter()
        .filter(|text| text.contains("T01:15"))
        .copied()
        .collect();
    assert_eq!(twice, ["2026-10-25T01:15:00+00:00", "2026-10-25T01:15:00+01:00"]);
    assert_eq!(local.first(), Some(&"2026-10-25T23:45:00+00:00"), "newest first");
    assert!(
        texts(&list, "/timezone")
            .iter()
            .all(|zone| *zone == "Europe/London")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn fires_are_listed_with_their_runs_and_reasons() {
    let face = Face::new().await;
    for (minute, word) in [(1, "pool_full"), (2, "missed"), (3, "job_paused")] {
        skip(&face, "timed", BEGIN.plus(minute * 60_000), word).await;
    }
    fire(&face, "timed", BEGIN.plus(240_000)).await;
    let claimed = face.pass(1).await.remove(0);
    face.complete(&claimed, Outcome::Failed).await;
    let gone = RunId::fresh();
    let key = (TENANT, job("timed"), BEGIN.plus(300_000), String::new());
    face.change(move |tx| Ok(tx.put(&FIRES, &key, &Fire::Run(gone))?))
        .await;
    let damaged = (TENANT, job("timed"), BEGIN.plus(360_000), String::new());
    let for_row = damaged.clone();
    face.change(move |tx| Ok(tx.put(&FIRES, &for_row, &Fire::Run(gone))?))
        .await;
    face.damage(&FIRES, damaged).await;

    let list = face.get("/jobs/timed/fires").await.json();
    assert_eq!(
        texts(&list, "/outcome"),
        ["unreadable", "run", "run", "skipped", "skipped", "skipped"]
    );
    assert_eq!(
        (&list[1]["run"], &list[2]["run"]["state"], &list[2]["run"]["id"]),
        (
            &json!({"id": gone.to_string(), "state": null, "reason": null}),
            &json!("failed"),
            &json!(claimed.run.id.to_string())
        )
    );
    assert_eq!(
        list[5]["skipped"],
        json!({"code": "pool_full", "text": "the queue of its pool was full"})
    );
    assert_eq!(
        (&list[5]["instant"], &list[5]["local"], &list[5]["timezone"]),
        (
            &json!("2025-11-29T18:01:00.000Z"),
            &json!("2025-11-29T18:01:00+00:00"),
            &json!("UTC")
        )
    );
    let skipped = face.get("/jobs/timed/fires?outcome=skipped&limit=2").await.json();
    assert_eq!(texts(&skipped, "/skipped/code"), ["job_paused", "missed"]);
    let both = face
        .get("/jobs/timed/fires?outcome=skipped&outcome=run")
        .await
        .json();
    assert_eq!(both.as_array().unwrap().len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn fires_come_by_pages_and_their_questions_are_checked() {
    let face = Face::new().await;
    for minute in 0..7 {
        skip(&face, "timed", BEGIN.plus(minute * 60_000), "missed").await;
    }
    let mut seen = Vec::new();
    let mut path = "/api/schedules/timed/fires?pagination.page_size=3".to_owned();
    loop {
        let page = face.get(&path).await.json();
        seen.extend(texts(&page["data"], "/instant").into_iter().map(str::to_owned));
        let Some(cursor) = page["pagination"]["next_cursor"].as_str() else {
            break;
        };
        let other = format!("/api/schedules/timed/fires?outcome=run&pagination.cursor={cursor}");
        assert_eq!(face.get(&other).await.status, 400, "a cursor of another filter");
        path = format!("/api/schedules/timed/fires?pagination.page_size=3&pagination.cursor={cursor}");
    }
    assert_eq!(seen.len(), 7);
    assert!(seen.windows(2).all(|pair| pair[0] > pair[1]), "{seen:?}");
    for (path, status) in [
        ("/jobs/nobody/fires", 404),
        ("/jobs/timed/fires?limit=501", 400),
        ("/jobs/timed/fires?limit=0", 400),
        ("/jobs/timed/fires?outcome=refused", 400),
        ("/jobs/timed/fires?outcom=run", 400),
        ("/api/schedules/nobody/fires", 404),
        ("/api/schedules/timed/fires?pagination.cursor=zz", 400),
        ("/jobs/nobody/why?at=08:00", 404),
        ("/jobs/timed/why", 400),
        ("/jobs/timed/why?at=soon", 400),
        ("/api/schedules/nobody/why?at=08:00", 404),
        ("/api/schedules/timed/why?at=2026-02-30", 400),
    ] {
        assert_eq!(face.get(path).await.status, status, "{path}");
    }
    let unreadable = face.get("/jobs/timed/why?at=soon").await.sentence();
    assert!(
        unreadable.starts_with("`at`: `soon` is no time; write 08:00,"),
        "{unreadable}"
    );
    assert_eq!(
        face.get("/jobs/nobody/why?at=08:00").await.sentence(),
        "job 'nobody' not found"
    );
}

/// Stopped at 07:50, back at 09:35, asked for 08:00.
#[tokio::test(flavor = "multi_thread")]
async fn m3_why_says_that_a_fire_was_missed_and_what_comes_next() {
    let face = Face::new().await;
    schedule(&face, "free", "0 8 * * *", "UTC");
    set_clock(&face, at("2025-12-01T09:35:00Z"));
    skip(&face, "free", at("2025-12-01T08:00:00Z"), "missed").await;
    let why = face.get("/jobs/free/why?at=08:00").await.json();
    assert_eq!(
        (&why["code"], &why["instant"], &why["asked"]),
        (
            &json!("missed"),
            &json!("2025-12-01T08:00:00.000Z"),
            &json!("08:00")
        )
    );
    assert_eq!(
        why["sentence"],
        "The fire of 2025-12-01 08:00 UTC was missed: no daemon is known to have run then (noticed 2025-12-01 09:35 UTC). \
         Its onMissed is skip, so nothing makes up for it."
    );
    assert_eq!(why["after"]["instant"], "2025-12-02T08:00:00.000Z");
    let twin = face
        .get("/api/schedules/free/why?at=2025-12-01T08:00:00Z")
        .await
        .json();
    assert_eq!(twin["data"]["sentence"], why["sentence"]);
    let with_plus = face
        .get("/jobs/free/why?at=2025-12-01T09:00:00+01:00")
        .await
        .json();
    assert_eq!(with_plus["instant"], why["instant"], "an unencoded plus sign");
}

#[tokio::test(flavor = "multi_thread")]
async fn why_judges_by_the_schedule_in_force_then() {
    let face = Face::new().await;
    let written = |text: &str, enabled: bool| {
        let mut definition = sample("free", None);
        definition.enabled = enabled;
        definition.schedule = Some(ScheduleText {
            text: text.to_owned(),
            seconds: false,
            day_match: None,
            timezone: None,
        });
        definition
    };
    for (time, text, enabled) in [
        ("2025-12-01T00:00:00Z", "0 8 * * *", true),
        ("2025-12-02T00:00:00Z", "0 9 * * *", false),
        ("2025-12-03T00:00:00Z", "0 9 * * *", true),
    ] {
        set_clock(&face, at(time));
        let definition = written(text, enabled);
        face.change(move |tx| {
            let node = NodeName::new("n-a").unwrap();
            publish::publish(tx, &node, std::slice::from_ref(&definition), &BTreeMap::new())
        })
        .await;
    }
    schedule(&face, "free", "0 9 * * *", "UTC");
    set_clock(&face, at("2025-12-03T12:00:00Z"));
    let why = async |text: &str| face.get(&format!("/jobs/free/why?at={text}")).await.json();
    let first = why("2025-12-01T08:00:00Z").await;
    assert_eq!(first["code"], "no_daemon");
    assert_eq!(
        first["remarks"],
        json!(["The schedule in force then was `0 8 * * *`; it was replaced at 2025-12-02 00:00 UTC."])
    );
    assert_eq!(why("2025-12-02T09:00:00Z").await["code"], "disabled");
    let today = why("08:00").await;
    assert_eq!(
        (&today["code"], &today["remarks"]),
        (&json!("not_due"), &json!([]))
    );
    assert_eq!(why("2025-11-29T17:00:00Z").await["code"], "before_known");
    assert_eq!(
        face.get("/jobs/a/why?at=11:00").await.json()["code"],
        "manual_only"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_are_listed_with_what_was_and_what_comes() {
    let face = Face::new().await;
    schedule(&face, "free", "0 8 * * *", "America/New_York");
    let row = async || {
        let list = face.get("/api/schedules").await.json();
        assert_eq!(texts(&list["data"], "/name"), ["free", "timed"]);
        list["data"][1].clone()
    };
    let timed = row().await;
    assert_eq!(
        (&timed["expression"], &timed["description"], &timed["timezone"]),
        (&json!("0 * * * *"), &json!("every hour"), &json!("UTC"))
    );
    assert_eq!((&timed["last"], &timed["overdue"]), (&Value::Null, &json!(false)));
    assert_eq!(timed["next"]["instant"], "2025-11-29T19:00:00.000Z");
    set_clock(&face, at("2025-11-29T19:00:11Z"));
    let timed = row().await;
    assert_eq!(
        (&timed["overdue"], &timed["overdue_since"]["instant"]),
        (&json!(true), &json!("2025-11-29T19:00:00.000Z"))
    );
    let overdue = face.get("/api/schedules?overdue=true").await.json();
    assert_eq!(texts(&overdue["data"], "/name"), ["timed"]);
    skip(&face, "timed", at("2025-11-29T19:00:00Z"), "missed").await;
    let timed = row().await;
    assert_eq!(
        (&timed["overdue"], &timed["last"]["skipped"]["code"]),
        (&json!(false), &json!("missed"))
    );
    assert_eq!(face.get("/api/schedules?overdue=maybe").await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_fires_of_a_job_stand_on_two_clocks() {
    let face = Face::new().await;
    schedule(&face, "free", "30 2 * * *", "America/New_York");
    let path = "/api/schedules/free/next?count=2&second_timezone=Europe/London&from=2026-03-07T12:00:00Z";
    let next = face.get(path).await.json();
    assert_eq!(
        next["data"]["next"],
        json!([
            {"instant": "2026-03-08T07:00:00.000Z", "local": "2026-03-08T03:00:00-04:00", "second": "2026-03-08T07:00:00+00:00"},
            {"instant": "2026-03-09T06:30:00.000Z", "local": "2026-03-09T02:30:00-04:00", "second": "2026-03-09T06:30:00+00:00"},
        ])
    );
    assert_eq!(next["data"]["second_timezone"], "Europe/London");
    assert_eq!(
        texts(&next["data"]["lints"], "/code"),
        ["dst-skipped", "dst-skipped"],
        "this spring and the next"
    );
    for (path, status) in [
        ("/api/schedules/a/next", 404),
        ("/api/schedules/nobody/next", 404),
        ("/api/schedules/free/next?count=501", 400),
        ("/api/schedules/free/next?second_timezone=Mars/Olympus", 400),
        ("/api/schedules/free/next?from=noon", 400),
    ] {
        assert_eq!(face.get(path).await.status, status, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expression_is_previewed_and_its_fault_is_placed() {
    let face = Face::new().await;
    let ask = async |body: Value| face.post_json("/api/schedules:preview", &body.to_string()).await;
    let good = ask(json!({"expression": "0 0 13 * 5", "timezone": "Europe/Paris", "count": 1})).await;
    assert_eq!(good.status, 200);
    let data = &good.json()["data"];
    assert_eq!(
        (&data["description"], &data["timezone"], &data["next"][0]["local"]),
        (
            &json!("at 00:00 on day 13 or Fri"),
            &json!("Europe/Paris"),
            &json!("2025-12-05T00:00:00+01:00")
        )
    );
    assert_eq!(texts(&data["lints"], "/code"), ["day-or"]);
    let both = ask(json!({"expression": "0 0 13 * 5", "day_match": "and"}))
        .await
        .json();
    assert_eq!(
        (&both["data"]["description"], &both["data"]["lints"]),
        (&json!("at 00:00 on day 13 if it is Fri"), &json!([]))
    );
    let hashed = async |name: &str| {
        let body = json!({"expression": "H H * * *", "name": name});
        ask(body).await.json()["data"]["description"].clone()
    };
    assert_ne!(hashed("a").await, hashed("b").await);
    let bad = ask(json!({"expression": "0 60 * * *"})).await;
    let document = bad.json();
    assert_eq!(
        (
            bad.status,
            &document["errors"][0]["pointer"],
            &document["column"],
            &document["length"]
        ),
        (422, &json!("/expression"), &json!(2), &json!(2)),
        "{document}"
    );
    let zone = ask(json!({"expression": "@daily", "timezone": "Europe/Nowhere"}))
        .await
        .json();
    assert_eq!(zone["errors"][0]["pointer"], "/timezone");
    let many = ask(json!({"expresion": "@daily", "count": 0, "seconds": 1, "day_match": "xor"}))
        .await
        .json();
    assert_eq!(
        texts(&many["errors"], "/pointer"),
        ["/expresion", "/expression", "/seconds", "/day_match", "/count"]
    );
    assert_eq!(face.post_json("/api/schedules:preview", "[]").await.status, 422);
    let six =
        json!({"expression": "*/15 * * * * *", "seconds": true, "from": "2026-01-01T00:00:00Z", "count": 2});
    assert_eq!(
        texts(&ask(six).await.json()["data"]["next"], "/instant"),
        ["2026-01-01T00:00:15.000Z", "2026-01-01T00:00:30.000Z"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_calendar_has_the_next_fires_of_enabled_jobs() {
    let face = Face::new().await;
    schedule(&face, "free", "0 8 * * *", "America/New_York");
    schedule(&face, "off", "0 8 * * *", "UTC");
    let answer = face.get("/api/schedules.ics?count=2").await;
    assert_eq!(
        answer.header("content-type"),
        Some("text/calendar; charset=utf-8")
    );
    let starts: Vec<&str> = answer
        .text
        .lines()
        .filter_map(|line| line.strip_prefix("DTSTART:"))
        .collect();
    assert_eq!(
        starts,
        [
            "20251129T190000Z",
            "20251129T200000Z",
            "20251130T130000Z",
            "20251201T130000Z"
        ]
    );
    let one = face.get("/api/schedules.ics?job=free&count=1").await.text;
    assert_eq!(one.matches("BEGIN:VEVENT").count(), 1);
    assert!(one.contains("SUMMARY:free\r\n") && one.contains("at 08:00 (0 8 * * *\\, America/New_York)"));
    assert_eq!(face.get("/api/schedules.ics?job=nobody").await.status, 404);
    assert_eq!(face.get("/api/schedules.ics?count=501").await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moment_that_is_owed_stands_in_its_place_among_the_fires() {
    let face = Face::new().await;
    schedule(&face, "free", "* * * * *", "UTC");
    skip(&face, "free", BEGIN, "missed").await;
    let owed = Owed {
        run: None,
        not_before: BEGIN,
        refused: Some("pool queue is full".to_owned()),
    };
    let key = (TENANT, job("free"), BEGIN.plus(60_000), String::new());
    face.change(move |tx| Ok(tx.put(&OWED, &key, &owed)?)).await;
    fire(&face, "free", BEGIN.plus(120_000)).await;
    set_clock(&face, BEGIN.plus(180_000));
    let fires = face.get("/jobs/free/fires").await.json();
    assert_eq!(texts(&fires, "/outcome"), ["run", "owed", "skipped"]);
    let only = face.get("/jobs/free/fires?outcome=owed").await.json();
    assert_eq!(only.as_array().unwrap().len(), 1);
    let page = "/api/schedules/free/fires?pagination.page_size=1";
    let first = face.get(page).await.json();
    let cursor = first["pagination"]["next_cursor"].as_str().unwrap();
    let second = face
        .get(&format!("{page}&pagination.cursor={cursor}"))
        .await
        .json();
    assert_eq!(texts(&second["data"], "/outcome"), ["owed"]);
    let at = BEGIN.plus(60_000);
    let why = face.get(&format!("/jobs/free/why?at={at}")).await.json();
    assert_eq!(why["code"], "owed", "{why}");
}
