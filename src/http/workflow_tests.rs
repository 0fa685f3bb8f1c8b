//! Definitions over HTTP: from a posted document to a published version.

use serde_json::{Value, json};

use super::fixture::{Answer, Face};
use crate::domain::workflow::definition::Definition;
use crate::store::Rows;
use crate::store::tables::DEFINITIONS;
use crate::words::ids::TenantId;
use crate::words::names::JobName;

/// The document of the specification, letter by letter.
const HELLO: &str = r#"{ "family_slug": "hello-world", "title": "Hello World",
  "input_schema": {"type": "object"},
  "steps": [
    {"ref": "greet", "type": "STEP_TYPE_DATAFLOW", "title": "Build greeting",
     "args": {"operation": "project", "project": {"message": "\"hello\""}}},
    {"ref": "pause", "type": "STEP_TYPE_WAIT", "title": "Short delay", "args": {"duration": "2s"}}],
  "edges": [{"source_ref": "greet", "target_ref": "pause", "type": "EDGE_TYPE_SUCCESS"}] }"#;

fn hello_with(change: impl FnOnce(&mut Value)) -> String {
    let mut document: Value = serde_json::from_str(HELLO).unwrap();
    change(&mut document);
    document.to_string()
}

async fn put(face: &Face, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut all = vec![("content-type", "application/json")];
    all.extend(headers);
    face.send("PUT", "/api/workflows/hello-world", &all, body).await
}

async fn publish(face: &Face) -> Answer {
    face.post("/api/workflows/hello-world:publish").await
}

fn data(answer: &Answer) -> Value {
    answer.json()["data"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn hello_world_is_posted_as_it_is_and_published() {
    let face = Face::new().await;
    let created = face.post_json("/api/workflows", HELLO).await;
    assert_eq!(
        (created.status, created.header("location")),
        (201, Some("/api/workflows/hello-world"))
    );
    let view = data(&created);
    assert_eq!(
        (&view["valid"], &view["draft"], &view["newest_version"]),
        (&json!(true), &json!(true), &Value::Null)
    );
    let published = publish(&face).await;
    assert_eq!(published.status, 200, "{}", published.text);
    let view = data(&published);
    assert_eq!((&view["version"], &view["already"]), (&json!(1), &json!(false)));
    let shown = face.get("/api/workflows/hello-world").await;
    assert!(
        shown.text.contains(HELLO),
        "it is kept letter by letter: {}",
        shown.text
    );
    assert_eq!(
        (shown.header("etag"), &data(&shown)["draft"]),
        (Some("\"2\""), &json!(false))
    );
    let key = (TenantId::DEFAULT, JobName::new("hello-world").unwrap(), 1);
    let stored = face
        .change(move |tx| Ok(tx.get(&DEFINITIONS, &key)?))
        .await
        .unwrap();
    let definition: Definition = stored.json.read().unwrap();
    assert_eq!(definition.graph.unwrap().steps.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_content_is_the_same_version() {
    let face = Face::new().await;
    face.post_json("/api/workflows", HELLO).await;
    let first = data(&publish(&face).await);
    let again = data(&publish(&face).await);
    assert_eq!(
        (&again["version"], &again["already"], &again["sha256"]),
        (&json!(1), &json!(true), &first["sha256"])
    );
    let same = data(&put(&face, &[], &hello_with(|_| {})).await);
    assert_eq!(
        (&same["draft"], &same["record_version"]),
        (&json!(false), &json!(2)),
        "other white space is no other document"
    );
    let other = hello_with(|document| document["steps"][1]["args"]["duration"] = json!("3s"));
    assert_eq!(data(&put(&face, &[], &other).await)["draft"], true);
    assert_eq!(data(&publish(&face).await)["version"], 2);
    put(&face, &[], HELLO).await;
    assert_eq!(
        data(&publish(&face).await)["version"],
        3,
        "back to what was before is a step ahead"
    );
    let versions = face
        .get("/api/workflows/hello-world/versions?page_size=2")
        .await
        .json();
    let numbers: Vec<_> = versions["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["version"].clone())
        .collect();
    assert_eq!(numbers, [3, 2]);
    let cursor = versions["pagination"]["next_cursor"].as_str().unwrap();
    let rest = face
        .get(&format!("/api/workflows/hello-world/versions?cursor={cursor}"))
        .await
        .json();
    assert_eq!(
        (
            rest["data"][0]["version"].clone(),
            rest["data"][0]["sha256"].clone()
        ),
        (json!(1), first["sha256"].clone())
    );
    let two = face.get("/api/workflows/hello-world/versions/2").await;
    assert_eq!(data(&two)["document"]["steps"][1]["args"]["duration"], "3s");
    assert_eq!(
        face.get("/api/workflows/hello-world/versions/4").await.status,
        404
    );
    assert_eq!(
        face.get("/api/workflows/hello-world/versions/x").await.status,
        404
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_told_whole_and_is_not_published() {
    let face = Face::new().await;
    let bad = hello_with(|document| {
        document["steps"][1]["typ"] = json!("x");
        document["edges"][0]["target_ref"] = json!("puase");
        document["steps"][0]["args"]["project"]["message"] = json!("steps.pause.output");
    });
    let expected = json!([
        {"pointer": "/steps/1/typ", "code": "workflow.unknown_key", "message": "unknown key `typ`; did you mean `type`?"},
        {"pointer": "/edges/0/target_ref", "code": "workflow.unknown_ref", "message": "there is no step `puase`; did you mean `pause`?"},
        {"pointer": "/steps/0/args/project/message", "code": "workflow.not_upstream",
         "message": "no way of edges leads from `pause` to `greet`, so it may not have run by then"}]);
    let said = face.post_json("/api/workflows:validate", &bad).await;
    assert_eq!((said.status, &data(&said)["findings"]), (200, &expected));
    let created = face.post_json("/api/workflows", &bad).await;
    assert_eq!(
        (created.status, &data(&created)["findings"]),
        (201, &expected),
        "a draft may be bad"
    );
    let said = face.post("/api/workflows/hello-world:validate").await;
    assert_eq!((said.status, &data(&said)["valid"]), (200, &json!(false)));
    let refused = publish(&face).await;
    let problem = refused.json();
    assert_eq!(
        (refused.status, problem["errors"].as_array().unwrap().len()),
        (422, 3)
    );
    assert_eq!(
        problem["detail"],
        "the draft cannot be published: 3 things are wrong with it"
    );
    assert_eq!(problem["errors"][1]["pointer"], "/edges/0/target_ref");
    assert_eq!(
        data(&face.post_json("/api/workflows/hello-world:validate", HELLO).await)["valid"],
        true
    );
    put(&face, &[], HELLO).await;
    assert_eq!(publish(&face).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_a_draft_is_refused() {
    let face = Face::new().await;
    for (body, status, code) in [
        ("{", 400, None),
        ("[1]", 422, Some("workflow.type")),
        ("{}", 422, Some("workflow.bad_slug")),
        (r#"{"family_slug": "Not a slug"}"#, 422, Some("workflow.bad_slug")),
    ] {
        let answer = face.post_json("/api/workflows", body).await;
        assert_eq!(answer.status, status, "{body}: {}", answer.text);
        assert_eq!(answer.json()["errors"][0]["code"].as_str(), code, "{body}");
    }
    let large = hello_with(|document| document["description"] = json!("x".repeat(600_000)));
    let answer = face.post_json("/api/workflows", &large).await;
    assert_eq!(
        (answer.status, answer.json()["errors"][0]["code"].clone()),
        (422, json!("workflow.limit"))
    );
    let other = put(
        &face,
        &[],
        &hello_with(|document| document["family_slug"] = json!("other")),
    )
    .await;
    assert_eq!(
        (other.status, other.json()["errors"][0]["code"].clone()),
        (422, json!("workflow.other_slug"))
    );
    let taken = face
        .post_json("/api/workflows", r#"{"family_slug": "free", "steps": []}"#)
        .await;
    assert_eq!(taken.status, 409);
    assert_eq!(
        taken.json()["detail"],
        "the configuration has a job of the name 'free'; give the workflow another family_slug"
    );
    assert_eq!(face.post_json("/api/workflows", HELLO).await.status, 201);
    let again = face.post_json("/api/workflows", HELLO).await;
    assert_eq!(
        (again.status, again.json()["code"].clone()),
        (409, json!("ALREADY_EXISTS"))
    );
    for missing in ["/api/workflows/nobody:publish", "/api/workflows/nobody:validate"] {
        assert_eq!(face.post(missing).await.status, 404, "{missing}");
    }
    assert_eq!(face.get("/api/workflows/nobody").await.status, 404);
    assert_eq!(face.get("/api/workflows/nobody/versions").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_version_changes_nothing() {
    let face = Face::new().await;
    assert_eq!(
        put(&face, &[("if-match", "\"1\"")], HELLO).await.status,
        412,
        "nothing is there yet"
    );
    assert_eq!(put(&face, &[], HELLO).await.status, 201);
    let other = hello_with(|document| document["title"] = json!("Other"));
    assert_eq!(put(&face, &[("if-match", "\"1\"")], &other).await.status, 200);
    let stale = put(&face, &[("if-match", "\"1\"")], HELLO).await;
    assert_eq!(
        (stale.status, stale.json()["current_version"].clone()),
        (412, json!(2))
    );
    let stale = face
        .post_json("/api/workflows/hello-world:publish", r#"{"expected_version": 1}"#)
        .await;
    assert_eq!(stale.status, 412);
    let good = face
        .post_json("/api/workflows/hello-world:publish", r#"{"expected_version": 2}"#)
        .await;
    assert_eq!(good.status, 200);
    let tag = face
        .get("/api/workflows/hello-world")
        .await
        .header("etag")
        .unwrap()
        .to_owned();
    let known = face
        .send(
            "GET",
            "/api/workflows/hello-world",
            &[("if-none-match", &tag)],
            "",
        )
        .await;
    assert_eq!(known.status, 304);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_is_answered_as_before() {
    let face = Face::new().await;
    let headers = [("content-type", "application/json"), ("idempotency-key", "k1")];
    let first = face.send("POST", "/api/workflows", &headers, HELLO).await;
    let again = face.send("POST", "/api/workflows", &headers, HELLO).await;
    assert_eq!((first.status, again.status), (201, 201));
    assert_eq!(
        (again.header("idempotency-replayed"), &again.text),
        (Some("true"), &first.text)
    );
    let key = [("idempotency-key", "k2")];
    let one = face
        .send("POST", "/api/workflows/hello-world:publish", &key, "")
        .await;
    let two = face
        .send("POST", "/api/workflows/hello-world:publish", &key, "")
        .await;
    assert_eq!(
        (one.text.clone(), two.header("idempotency-replayed")),
        (two.text.clone(), Some("true"))
    );
    assert_eq!(data(&two)["already"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deprecated_version_begins_no_more() {
    let face = Face::new().await;
    face.post_json("/api/workflows", HELLO).await;
    publish(&face).await;
    put(
        &face,
        &[],
        &hello_with(|document| document["title"] = json!("Second")),
    )
    .await;
    publish(&face).await;
    let deprecate = async |body: &str| face.post_json("/api/workflows/hello-world:deprecate", body).await;
    let done = deprecate(r#"{"version": 2}"#).await;
    assert_eq!(
        (
            done.status,
            &data(&done)["current_version"],
            &data(&done)["newest_version"]
        ),
        (200, &json!(1), &json!(2))
    );
    assert_eq!(
        data(&deprecate(r#"{"version": 2}"#).await)["record_version"],
        data(&done)["record_version"]
    );
    let two = data(&face.get("/api/workflows/hello-world/versions/2").await);
    assert_eq!(two["deprecated_by"], "local");
    assert_eq!(
        data(&deprecate(r#"{"version": 1}"#).await)["current_version"],
        Value::Null
    );
    let start = async |body: &str| face.post_json("/api/workflows/hello-world/runs", body).await;
    for (body, status) in [
        (r#"{"input": {}}"#, 409),
        (r#"{"input": {}, "version": 1}"#, 409),
        (r#"{"input": {}, "version": 7}"#, 404),
    ] {
        let answer = start(body).await;
        assert_eq!(answer.status, status, "{body}: {}", answer.text);
    }
    assert_eq!(deprecate(r#"{"version": 3}"#).await.status, 404);
    assert_eq!(deprecate(r#"{"version": "x"}"#).await.status, 422);
    assert_eq!(deprecate("{}").await.status, 422);
    let caller = r#"{"family_slug": "caller", "steps": [{"ref": "a", "type": "STEP_TYPE_SUBWORKFLOW", "args": {"family_slug": "hello-world"}}]}"#;
    let said = data(&face.post_json("/api/workflows:validate", caller).await);
    assert_eq!(said["findings"][0]["code"], "workflow.unknown_subworkflow");
    put(
        &face,
        &[],
        &hello_with(|document| document["title"] = json!("Third")),
    )
    .await;
    publish(&face).await;
    assert_eq!(
        data(&face.post_json("/api/workflows:validate", caller).await)["valid"],
        true
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn sub_workflows_are_followed_through_the_store() {
    let face = Face::new().await;
    let calls = |slug: &str, called: &str| {
        format!(
            r#"{{"family_slug": "{slug}", "steps": [{{"ref": "a", "type": "STEP_TYPE_SUBWORKFLOW", "args": {{"family_slug": "{called}"}}}}]}}"#
        )
    };
    face.post_json("/api/workflows", HELLO).await;
    publish(&face).await;
    let mut called = "hello-world".to_owned();
    for level in 1..=8 {
        let slug = format!("w{level}");
        face.post_json("/api/workflows", &calls(&slug, &called)).await;
        let done = face.post(&format!("/api/workflows/{slug}:publish")).await;
        assert_eq!(done.status, 200, "{}", done.text);
        called = slug;
    }
    face.post_json("/api/workflows", &calls("w9", "w8")).await;
    let deep = face.post("/api/workflows/w9:publish").await;
    assert_eq!(
        (deep.status, deep.json()["errors"][0]["code"].clone()),
        (422, json!("workflow.recursion"))
    );
    let near = data(
        &face
            .post_json("/api/workflows:validate", &calls("x", "helo-world"))
            .await,
    );
    assert_eq!(
        near["findings"][0]["message"],
        "there is no workflow `helo-world`; did you mean `hello-world`?"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn slot_pools_are_those_of_the_configuration() {
    let face = Face::new().await;
    let of = |pool: &str, slots: u32| {
        let step = json!({"ref": "a", "type": "STEP_TYPE_COMMAND", "args": {"command": "true"}, "slots": {"pool": pool, "slots": slots}});
        json!({"family_slug": "s", "steps": [step]}).to_string()
    };
    assert_eq!(
        data(&face.post_json("/api/workflows:validate", &of("p", 1)).await)["valid"],
        true
    );
    for (body, code) in [
        (of("p", 2), "workflow.too_many_slots"),
        (of("nowhere", 1), "workflow.unknown_slot_pool"),
    ] {
        assert_eq!(
            data(&face.post_json("/api/workflows:validate", &body).await)["findings"][0]["code"],
            code
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_and_drafts_are_compared() {
    let face = Face::new().await;
    face.post_json("/api/workflows", HELLO).await;
    publish(&face).await;
    let ask = async |query: &str| {
        face.get(&format!("/api/workflows/hello-world:diff?{query}"))
            .await
    };
    assert_eq!(data(&ask("from=1&to=1").await)["same"], true);
    put(
        &face,
        &[],
        &hello_with(|document| document["steps"][1]["args"]["duration"] = json!("1m")),
    )
    .await;
    let found = data(&ask("from=1&to=draft").await);
    let changed =
        json!([{"ref": "pause", "fields": [{"pointer": "/args/duration", "before": "2s", "after": "1m"}]}]);
    assert_eq!(
        (&found["same"], &found["steps"]["changed"]),
        (&json!(false), &changed)
    );
    for (query, status) in [
        ("from=1&to=2", 404),
        ("from=1", 400),
        ("from=1&to=x", 400),
        ("from=1&to=1&a=b", 400),
    ] {
        assert_eq!(ask(query).await.status, status, "{query}");
    }
    publish(&face).await;
    assert_eq!(ask("from=1&to=draft").await.status, 404, "nothing waits any more");
    assert_eq!(
        data(&ask("from=2&to=1").await)["steps"]["changed"][0]["fields"][0]["before"],
        "1m"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn workflows_are_listed_by_pages() {
    let face = Face::new().await;
    for name in ["wc", "wa", "wb"] {
        face.post_json(
            "/api/workflows",
            &format!(r#"{{"family_slug": "{name}", "title": "T {name}"}}"#),
        )
        .await;
    }
    let first = face.get("/api/workflows?page_size=2").await.json();
    let names = |page: &Value| {
        page["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["family_slug"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        (names(&first), first["data"][0]["title"].as_str()),
        ("wa wb".to_owned(), Some("T wa"))
    );
    let cursor = first["pagination"]["next_cursor"].as_str().unwrap();
    assert_eq!(
        names(&face.get(&format!("/api/workflows?cursor={cursor}")).await.json()),
        "wc"
    );
    assert_eq!(
        names(&face.get("/api/workflows?order=desc").await.json()),
        "wc wb wa"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_says_how_it_would_go() {
    let face = Face::new().await;
    face.post_json("/api/workflows", HELLO).await;
    let refused = face.post("/api/workflows/hello-world:dry_run").await;
    let problem = refused.json();
    assert_eq!(
        (refused.status, problem["errors"][0]["code"].clone()),
        (422, json!("schema")),
        "null is no object"
    );
    let found = face
        .post_json("/api/workflows/hello-world:dry_run", r#"{"input": {}}"#)
        .await;
    let found = data(&found);
    assert_eq!(
        (&found["state"], &found["waited_ms"]),
        (&json!("succeeded"), &json!(2_000))
    );
    assert_eq!(found["steps"][0]["output"], json!({"message": "hello"}));
    assert_eq!(found["steps"][1]["ref"], "pause");
    let task = json!({"family_slug": "t", "steps": [
        {"ref": "make", "type": "STEP_TYPE_TASK", "args": {"queue": "q", "input": "input"}},
        {"ref": "end", "type": "STEP_TYPE_SUCCEED", "args": {"output": "steps.make.output.n + input.n"}}],
        "edges": [{"source_ref": "make", "target_ref": "end"}]});
    let ask = async |more: Value| {
        let mut body = json!({"document": task, "input": {"n": 1}});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        face.post_json("/api/workflows:dry_run", &body.to_string()).await
    };
    let good = data(&ask(json!({"assume": {"make": {"n": 2}}})).await);
    assert_eq!(
        (&good["state"], &good["output"], &good["steps"][0]["assumed"]),
        (&json!("succeeded"), &json!(3), &json!(true))
    );
    let bad = data(&ask(json!({"fail": ["make"]})).await);
    assert_eq!(
        (&bad["state"], &bad["steps"][1]["state"]),
        (&json!("failed"), &json!("upstream_failed"))
    );
    for (more, pointer) in [
        (json!({"assume": {"mak": 1}}), "/assume/mak"),
        (json!({"fail": ["x"]}), "/fail"),
        (json!({"fail": "x"}), "/fail"),
        (json!({"assume": []}), "/assume"),
        (json!({"document": {"steps": []}}), "/document"),
    ] {
        let answer = ask(more).await;
        assert_eq!(
            (answer.status, answer.json()["errors"][0]["pointer"].clone()),
            (422, json!(pointer))
        );
    }
    assert_eq!(
        face.post_json("/api/workflows/hello-world:dry_run", r#"{"version": 1}"#)
            .await
            .status,
        404
    );
    assert_eq!(
        face.post_json("/api/workflows/hello-world:dry_run", r#"{"version": "x"}"#)
            .await
            .status,
        422
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_an_empty_object_where_an_object_is_wanted() {
    let face = Face::new().await;
    put(&face, &[], HELLO).await;
    publish(&face).await;
    let path = "/api/workflows/hello-world/runs";
    assert_eq!(face.post(path).await.status, 201);
    let list = face.post_json(path, r#"{"input": []}"#).await;
    assert_eq!(
        list.json()["errors"][0]["detail"],
        "must be of type object, and is a list"
    );
    let named = hello_with(|document| document["input_schema"]["required"] = json!(["name"]));
    put(&face, &[], &named).await;
    publish(&face).await;
    let missing = face.post(path).await;
    assert_eq!(missing.status, 422);
    assert!(
        missing.text.contains("name"),
        "what is missing is named: {}",
        missing.text
    );
}
