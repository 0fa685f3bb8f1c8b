//! The stream of changes: what it sends, how it goes on, and when it says that everything must be loaded anew.

use serde_json::{Value, json};

use super::fixture::Face;
use crate::domain::workflow::attempt::Outcome;
use crate::store::Rows;
use crate::store::tables::{CHANGES, META};
use crate::words::limits;

/// One event: its kind, its id, its data.
type Event = (String, Option<String>, Value);

fn events(text: &str) -> Vec<Event> {
    let blocks = text.split("\n\n").filter(|block| block.contains("data:"));
    blocks
        .map(|block| {
            let of = |name: &str| {
                block
                    .lines()
                    .find_map(|line| line.strip_prefix(name))
                    .map(str::to_owned)
            };
            let data = serde_json::from_str(&of("data: ").unwrap()).unwrap();
            (of("event: ").unwrap_or_default(), of("id: "), data)
        })
        .collect()
}

fn topics(events: &[Event]) -> Vec<&str> {
    events
        .iter()
        .filter_map(|(_, _, data)| data["topic"].as_str())
        .collect()
}

/// All that a stream sends until the daemon stops, which it does once `work` is done.
async fn followed(
    face: &Face,
    path: &str,
    headers: &[(&str, &str)],
    work: impl Future<Output = ()>,
) -> String {
    let seats = || face.app.streams.load(std::sync::atomic::Ordering::SeqCst);
    let stopping = async {
        while seats() == 0 {
            tokio::task::yield_now().await;
        }
        work.await;
        face.app.stop.cancel();
    };
    let (answer, ()) = tokio::join!(face.send("GET", path, headers, ""), stopping);
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    assert_eq!(seats(), 0, "a seat is given back");
    answer.text
}

async fn newest(face: &Face) -> u64 {
    let read = |tx: &mut crate::store::ReadTx| tx.get(&META, &("sequence".to_owned(),));
    face.app.engine.read(read).await.unwrap().unwrap().0
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_are_told_as_they_happen() {
    let face = Face::new().await;
    face.post("/jobs/free/start").await;
    let text = followed(&face, "/api/stream", &[], async {
        face.post("/jobs/a/start").await;
        let claimed = face.pass(2).await;
        face.post_json("/pools/p/pause", "{\"note\": \"why\"}").await;
        for one in &claimed {
            face.complete(one, Outcome::Succeeded).await;
        }
    })
    .await;
    assert!(text.starts_with("retry: 2000\n"), "{text}");
    let all = events(&text);
    let (bye, told) = all.split_last().unwrap();
    assert_eq!((bye.0.as_str(), &bye.2), ("bye", &json!({})));
    let seen = topics(told);
    for topic in [
        "run.changed",
        "pool.entry.queued",
        "pool.entry.claimed",
        "pool.paused",
        "pool.entry.finished",
    ] {
        assert!(seen.contains(&topic), "{topic}: {seen:?}");
    }
    let paused = told
        .iter()
        .find(|(_, _, data)| data["topic"] == "pool.paused")
        .unwrap();
    assert_eq!(
        (&paused.2["id"], &paused.2["detail"]),
        (&json!("p"), &json!("why"))
    );
    // The start before the stream is not told; the places rise.
    assert_eq!(
        seen.iter().filter(|topic| **topic == "pool.entry.queued").count(),
        1
    );
    let place = |id: &Option<String>| {
        let (sequence, index) = id.as_deref().unwrap().split_once('.').unwrap();
        (sequence.parse::<u64>().unwrap(), index.parse::<u64>().unwrap())
    };
    assert!(
        told.windows(2).all(|pair| place(&pair[0].1) < place(&pair[1].1)),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_goes_on_where_it_ended() {
    let face = Face::new().await;
    let before = newest(&face).await;
    face.post("/jobs/a/start").await;
    face.post("/jobs/b/start").await;
    let start = format!("/api/stream?after={before}.9");
    face.app.stop.cancel();
    let whole = events(&face.get(&start).await.text);
    assert!(whole.len() > 4, "{whole:?}");
    for (place, (_, id, _)) in whole.iter().enumerate().filter(|(_, event)| event.1.is_some()) {
        let id = id.as_deref().unwrap();
        let headers = [("last-event-id", id)];
        let rest = events(&face.send("GET", &start, &headers, "").await.text);
        assert_eq!(rest, whole[place + 1..], "after {id}, and the header wins");
    }
    let some = events(&face.get(&format!("{start}&topics=slots,nodes")).await.text);
    assert!(
        topics(&some).iter().all(|topic| topic.starts_with("pool.")),
        "{some:?}"
    );
    assert_eq!(topics(&some).len(), 2);
    for bad in ["after=x", "topics=keys", "topic=runs"] {
        assert_eq!(face.get(&format!("/api/stream?{bad}")).await.status, 400, "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_is_gone_means_load_anew() {
    let face = Face::new().await;
    face.post("/jobs/a/start").await;
    let first = newest(&face).await;
    face.post("/jobs/b/start").await;
    face.change(move |tx| {
        tx.remove(&CHANGES, &(first,))?;
        tx.remove(&CHANGES, &(first - 1,))?;
        Ok(())
    })
    .await;
    face.app.stop.cancel();
    let newest = newest(&face).await;
    for gone in ["1.0".to_owned(), format!("{}.0", newest + 1)] {
        let answer = face.get(&format!("/api/stream?after={gone}")).await;
        let all = events(&answer.text);
        assert_eq!(all[0].0, "resync", "{gone}: {}", answer.text);
        assert_eq!(all[0].1, Some(format!("{newest}.0")), "{gone}");
        assert_eq!(all[1].0, "bye", "{gone}");
    }
    let kept = events(&face.get(&format!("/api/stream?after={first}.0")).await.text);
    assert_ne!(kept[0].0, "resync");
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_have_a_limit() {
    let face = Face::new().await;
    face.app
        .streams
        .store(limits::STREAMS_MAX, std::sync::atomic::Ordering::SeqCst);
    let answer = face.get("/api/stream").await;
    assert_eq!(
        (answer.status, &answer.json()["code"]),
        (429, &json!("RESOURCE_EXHAUSTED"))
    );
    assert_eq!(answer.header("retry-after"), Some("1"));
}
