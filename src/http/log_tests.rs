//! Logs beyond one piece: looked through, and taken home whole.

use serde_json::json;

use super::fixture::Face;
use crate::domain::workflow::attempt::Outcome;
use crate::engine::changes::claim::Claimed;
use crate::words::limits;

async fn running(face: &Face, job: &str) -> (Claimed, String) {
    face.post(&format!("/jobs/{job}/start")).await;
    let claimed = face.pass(1).await.remove(0);
    let path = format!("/api/runs/{}/steps/main/attempts/1/log", claimed.run.id);
    (claimed, path)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_is_found_in_both_directions_and_goes_on() {
    let face = Face::new().await;
    let (claimed, log) = running(&face, "a").await;
    face.write_log(&claimed, "o one error\ne Error two\ni log is full\no three\n");
    let search = async |query: &str| {
        let answer = face.get(&format!("{log}/search?{query}")).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()["data"].clone()
    };
    let first = json!({"offset": 6, "line_offset": 0, "stream": "stdout", "line": "one error"});
    let second = json!({"offset": 14, "line_offset": 12, "stream": "stderr", "line": "Error two"});
    assert_eq!(
        search("q=error").await,
        json!({"matches": [first, second], "searched_to": 41, "done": true, "size": 46})
    );
    let page = search("q=error&limit=1").await;
    assert_eq!(
        (&page["matches"], &page["searched_to"], &page["done"]),
        (&json!([first]), &json!(7), &json!(false))
    );
    assert_eq!(search("q=error&limit=1&from=7").await["matches"], json!([second]));
    assert_eq!(
        search("q=error&direction=previous").await["matches"],
        json!([second, first])
    );
    assert_eq!(
        search("q=error&direction=previous&from=14").await["matches"],
        json!([first])
    );
    assert_eq!(search("q=Error&case=exact").await["matches"], json!([second]));
    assert_eq!(search("q=full").await["matches"][0]["stream"], "remark");
    assert_eq!(search("q=nothing").await["matches"], json!([]));
    for (query, detail) in [
        ("", "`q` must have 1 to 256 bytes without a line end"),
        ("q=a%0Ab", "`q` must have 1 to 256 bytes without a line end"),
        ("q=a&direction=up", "`direction` must be `next` or `previous`"),
        ("q=a&case=no", "`case` must be `ignore` or `exact`"),
        ("q=a&limit=0", "`limit` must be a number from 1 to 500"),
    ] {
        let answer = face.get(&format!("{log}/search?{query}")).await;
        assert_eq!(
            (answer.status, &answer.json()["detail"]),
            (400, &json!(detail)),
            "{query}"
        );
    }
    let other = log.replace("/attempts/1/", "/attempts/2/");
    assert_eq!(face.get(&format!("{other}/search?q=a")).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_downloaded_whole() {
    let face = Face::new().await;
    let (claimed, log) = running(&face, "a").await;
    let line = format!("o {}\n", "x".repeat(997));
    let size = usize::try_from(limits::LOG_CHUNK_MAX).unwrap() * 2 + 500;
    let raw = line.repeat(size / line.len()) + "e the end\ni 5 bytes are missing\n";
    face.write_log(&claimed, &raw);
    face.complete(&claimed, Outcome::Succeeded).await;
    let name = format!("attachment; filename=\"a-{}-attempt-1.log\"", claimed.run.id);
    let answer = face.get(&format!("{log}?download=raw")).await;
    assert_eq!((answer.status, answer.text.len()), (200, raw.len()));
    assert!(answer.text == raw, "the bytes of the file");
    assert_eq!(answer.header("content-disposition"), Some(name.as_str()));
    assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(
        answer.header("content-length"),
        Some(raw.len().to_string().as_str())
    );
    assert_eq!(answer.header("x-log-done"), Some("true"));
    let text = face.get(&format!("{log}?download=text")).await;
    let lines: Vec<&str> = text.text.lines().collect();
    assert_eq!(lines[0], "x".repeat(997));
    assert_eq!(lines[lines.len() - 2..], ["the end", "[5 bytes are missing]"]);
    assert_eq!(lines.len(), raw.lines().count());
    assert_eq!(text.header("content-disposition"), Some(name.as_str()));
    for query in ["", "?download=raw", "?download=text"] {
        let head = face.send("HEAD", &format!("{log}{query}"), &[], "").await;
        assert_eq!((head.status, head.text.as_str()), (200, ""), "{query}");
        assert_eq!(head.header("x-log-size"), Some(raw.len().to_string().as_str()));
    }
    assert_eq!(face.get(&format!("{log}?download=1")).await.status, 400);
    let end = face.get(&format!("{log}?offset=-10&limit=4")).await;
    assert_eq!(
        (end.text.as_str(), end.header("x-log-start")),
        ("e mi", Some((raw.len() - 10).to_string().as_str()))
    );
}
