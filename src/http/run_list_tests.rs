//! The filters of the list of runs, what a row says, and how far a page looks.

use serde_json::{Value, json};

use super::fixture::{BEGIN, Face};
use crate::domain::workflow::attempt::Outcome;
use crate::domain::workflow::run::{Run, RunState, StepPhase, StepState, Trigger};
use crate::store::rows::ReadyStep;
use crate::store::runs;
use crate::words::ids::RunId;
use crate::words::limits;
use crate::words::names::{JobName, StepRef};

async fn start(face: &Face, job: &str) -> String {
    let answer = face.post(&format!("/jobs/{job}/start")).await;
    answer.json()["runId"].as_str().unwrap().to_owned()
}

/// Runs that wait, one a second from the beginning; those of odd number were fired.
async fn put_runs(face: &Face, count: usize) {
    let runs: Vec<Run> = (0..count)
        .map(|number| {
            let created_at = BEGIN.plus(number as u64 * 1_000);
            Run {
                graph: None,
                id: RunId::fresh(),
                definition: JobName::new("timed").unwrap(),
                version: 1,
                trigger: if number % 2 == 1 {
                    Trigger::Schedule { instant: created_at }
                } else {
                    Trigger::Manual {
                        principal: "me".to_owned(),
                    }
                },
                node: None,
                created_at,
                record_version: 1,
                state: RunState::Pending,
            }
        })
        .collect();
    face.change(move |tx| {
        for run in &runs {
            let step = StepState {
                graph: None,
                step: StepRef::main(),
                attempt: 1,
                deaths: 0,
                phase: StepPhase::Ready {
                    since: run.created_at,
                },
            };
            let ready = ReadyStep {
                job: run.definition.clone(),
                node: None,
            };
            runs::insert(tx, run, &step, Some(&ready))?;
        }
        Ok(())
    })
    .await;
}

fn created(page: &Value) -> Vec<&str> {
    let runs = page["data"].as_array().unwrap().iter();
    runs.map(|run| run["created_at"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_filtered_by_time_trigger_pool_and_text() {
    let face = Face::new().await;
    put_runs(&face, 6).await;
    face.clock.advance(10_000);
    let (a, c) = (start(&face, "a").await, start(&face, "c").await);
    let seconds = async |query: &str| {
        let page = face.get(&format!("/api/runs?{query}")).await.json();
        created(&page)
            .iter()
            .map(|at| at[17..19].to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(seconds("since=6s").await, "10 10 05 04");
    assert_eq!(seconds("since=2025-11-29T18:00:03Z&until=6s").await, "03");
    assert_eq!(seconds("trigger=schedule").await, "05 03 01");
    assert_eq!(seconds("trigger=schedule&order=asc&since=7s").await, "03 05");
    assert_eq!(seconds("pool=p").await, "10");
    assert_eq!(seconds("pool=p&pool=q").await, "10 10");
    assert_eq!(seconds("q=IME&until=9s").await, "00");
    assert_eq!(seconds("where=trigger:manual%20until:9s").await, "00");
    let ids = async |query: &str| {
        let page = face.get(&format!("/api/runs?{query}")).await.json();
        let runs = page["data"].as_array().unwrap().clone();
        runs.into_iter()
            .map(|run| run["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    for order in ["asc", "desc"] {
        assert_eq!(
            ids(&format!("q={a}&order={order}")).await,
            std::slice::from_ref(&a)
        );
        assert_eq!(
            ids(&format!("q={}&order={order}&job=c", &a[..10])).await,
            std::slice::from_ref(&c)
        );
    }
    assert_eq!(ids("q=nothing").await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_filter_names_the_word_and_the_fix() {
    let face = Face::new().await;
    for (query, detail) in [
        (
            "state=faild",
            "`state`: `faild` is no state; did you mean `failed`?",
        ),
        (
            "trigger=cron",
            "`trigger`: `cron` is no trigger; there are schedule, manual, catchup, boot, run",
        ),
        (
            "since=soon",
            "`since`: `soon` is no time; write a length like 30s, 5m or 1h, or an instant like 2025-11-30T18:00:00Z",
        ),
        (
            "where=stat:failed",
            "`where`: unknown filter `stat`; did you mean `state`?",
        ),
        (
            "where=failed",
            "`where`: `failed` is no filter; did you mean `state:failed`?",
        ),
        ("q=", "`q`: `q` must have 1 to 128 bytes"),
        (
            "trigge=boot",
            "unknown query parameter `trigge`; did you mean `trigger`?",
        ),
    ] {
        let answer = face.get(&format!("/api/runs?{query}")).await;
        assert_eq!(
            (answer.status, &answer.json()["detail"]),
            (400, &json!(detail)),
            "{query}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_says_what_a_list_needs() {
    let face = Face::new().await;
    start(&face, "a").await;
    let claimed = face.pass(1).await.remove(0);
    face.clock.advance(1_500);
    face.complete(&claimed, Outcome::Succeeded).await;
    put_runs(&face, 2).await;
    let page = face.get("/api/runs").await.json();
    let row = |number: usize| {
        let row = &page["data"][number];
        json!([
            row["attempt"],
            row["duration_ms"],
            row["scheduled_at"],
            row["pool"]
        ])
    };
    assert_eq!(row(0), json!([1, null, "2025-11-29T18:00:01.000Z", null]));
    assert_eq!(row(1), json!([1, null, null, null]));
    assert_eq!(row(2), json!([1, 1_500, null, "p"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_looked_far_says_how_far() {
    let face = Face::new().await;
    start(&face, "c").await;
    put_runs(&face, limits::PAGE_SCAN_MAX + 10).await;
    let page = face.get("/api/runs?q=c").await.json();
    assert_eq!(created(&page), Vec::<&str>::new());
    assert_eq!(page["pagination"]["scanned_to"], "2025-11-29T18:00:10.000Z");
    let cursor = page["pagination"]["next_cursor"].as_str().unwrap();
    let page = face.get(&format!("/api/runs?q=c&cursor={cursor}")).await.json();
    assert_eq!(created(&page).len(), 1);
    assert_eq!(page["pagination"], json!({}));
}
