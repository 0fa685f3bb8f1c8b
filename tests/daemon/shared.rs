//! Several daemons open one state directory: how they let each other in, and what a stopped one does to the others.

use std::time::Duration;

use serde_json::json;

use super::support::{Builder, Daemon, Place, wait_until};
use super::ways::{ended, entries, folder, run_id, slots, start};

const JSON: &[(&str, &str)] = &[("content-type", "application/json")];

fn second(place: &Place, name: &str) -> Builder {
    Builder::at(place).node(name).leave_store_unchecked()
}

#[test]
fn op_timeout_no_late_effect() {
    let place = Place::new("");
    place.write_config(&format!(
        "pools: {{p: {{slots: 2}}}}\njobs:\n  - {{name: job, pool: p, command: 'echo ran >> {}/ran'}}\n",
        folder(&place)
    ));
    let fail = place.write("fail", "");
    let mut frozen = Builder::at(&place)
        .node("a")
        .env("DUCTOR_FAIL", format!("@{}", fail.display()))
        .start();
    let other = second(&place, "b").start();
    let first = run_id(&start(&other, "job"));
    ended(&other, &first);
    // The next commit of `a` stalls inside its transaction; there it is stopped.
    place.write("fail", "store.commit=once:stall:1500\n");
    wait_until(Duration::from_secs(10), || {
        place
            .read("fail")
            .is_some_and(|text| text.trim().is_empty())
            .then_some(())
    })
    .or_else(|| {
        // Nothing was committed by itself: a start does.
        let url = frozen.client();
        std::thread::spawn(move || drop(url.request("POST", "/jobs/job/start", JSON, b"{}")));
        wait_until(Duration::from_secs(10), || {
            place
                .read("fail")
                .is_some_and(|text| text.trim().is_empty())
                .then_some(())
        })
    })
    .expect("a commit of `a` stalls");
    frozen.freeze();
    let before = entries(&other, "p", "queued").len() + entries(&other, "p", "finished").len();
    let asked = ductor::os::clock::boottime_ms();
    let refused = other.post("/jobs/job/start", &json!({}));
    let took = ductor::os::clock::boottime_ms() - asked;
    assert_eq!(refused.status, 503, "{refused:?}");
    assert_eq!(refused.json()["error"], "pool state is unavailable");
    assert!(
        (4_900..8_000).contains(&took),
        "the bound is five seconds: {took} ms"
    );
    // What only reads waits for nobody.
    assert_eq!(slots(&other, "p")["used"], 0);
    let after = entries(&other, "p", "queued").len() + entries(&other, "p", "finished").len();
    assert_eq!(after, before);
    frozen.thaw();
    // Both go on, and nothing of what was refused happens later.
    for daemon in [&frozen, &other] {
        let id = daemon.wait("a start that is taken", || {
            let answer = daemon.post("/jobs/job/start", &json!({}));
            (answer.status == 202).then(|| run_id(&answer.json()))
        });
        assert_eq!(ended(daemon, &id)["state"], "succeeded");
    }
    let runs = other.get("/api/runs?job=job").expect_status(200).json();
    let runs = runs["data"].as_array().unwrap().len();
    let ran = super::ways::lines(&place, "ran").len();
    assert_eq!((runs, ran), (ran, runs), "each accepted start ran once");
    assert!(
        runs <= 4,
        "first, at most one that stalled, and two afterwards: {runs}"
    );
}

#[test]
fn a_daemon_that_shares_with_nobody_keeps_the_others_out_in_words() {
    let place = Place::new("state: {mode: exclusive}\njobs: []\n");
    let first = Builder::at(&place).node("a").start();
    let refused = second(&place, "b")
        .try_start()
        .err()
        .expect("the second is refused");
    assert_eq!(refused.status, Some(5), "{refused}");
    let said = refused.output.to_string();
    assert!(
        said.contains("is in use by another daemon, node a (pid "),
        "{said}"
    );
    assert!(said.contains("`state.mode: auto` in both"), "{said}");
    // The same, when only the holder wants it so.
    place.write_config("jobs: []\n");
    let refused = second(&place, "b")
        .try_start()
        .err()
        .expect("the second is refused");
    assert_eq!(refused.status, Some(5), "{refused}");
    let said = refused.output.to_string();
    assert!(said.contains("`state.mode: auto` in its configuration"), "{said}");
    drop(first);
    drop(second(&place, "b").start());
}

#[test]
fn a_second_daemon_joins_under_load_and_nothing_is_lost() {
    let place = Place::new("");
    place.write_config(&format!(
        "pools: {{p: {{slots: 4, maxQueued: 1000}}}}\njobs:\n  - {{name: job, pool: p, command: 'echo $DUCTOR_RUN_ID >> {}/ran'}}\n",
        folder(&place)
    ));
    let first = Builder::at(&place).node("a").leave_store_unchecked().start();
    let started = std::thread::scope(|scope| {
        let loads: Vec<_> = (0..3)
            .map(|_| {
                let client = first.client();
                scope.spawn(move || {
                    let mut ids = Vec::new();
                    for _ in 0..25 {
                        let answer = client.request("POST", "/jobs/job/start", JSON, b"{}").unwrap();
                        assert_eq!(answer.status, 202, "{answer:?}");
                        ids.push(run_id(&answer.json()));
                    }
                    ids
                })
            })
            .collect();
        let joined = second(&place, "b").start();
        let ids: Vec<String> = loads.into_iter().flat_map(|load| load.join().unwrap()).collect();
        for id in &ids {
            assert_eq!(ended(&joined, id)["state"], "succeeded");
        }
        ids
    });
    let mut ran = super::ways::lines(&place, "ran");
    ran.sort();
    let mut wanted = started;
    wanted.sort();
    assert_eq!(ran, wanted, "each ran once");
    drop(first);
}

#[test]
fn a_dead_daemon_frees_the_store_and_the_next_one_has_it_alone() {
    let place = Place::new("jobs:\n  - {name: job, command: 'true'}\n");
    let mut first = second(&place, "a").start();
    let mut other = second(&place, "b").start();
    let mode = |daemon: &Daemon| daemon.get("/api/status").json()["data"]["store"]["mode"].clone();
    assert_eq!((mode(&first), mode(&other)), (json!("shared"), json!("shared")));
    first.kill9();
    let id = run_id(&start(&other, "job"));
    assert_eq!(ended(&other, &id)["state"], "succeeded");
    other.kill9();
    let again = Builder::at(&place).node("a").start();
    assert_eq!(mode(&again), json!("exclusive"));
    assert_eq!(ended(&again, &id)["state"], "succeeded");
}
