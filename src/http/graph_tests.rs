//! Pictures of graphs over HTTP.

use serde_json::{Value, json};

use super::fixture::Face;

fn document(change: impl FnOnce(&mut Value)) -> String {
    let mut document = json!({
        "family_slug": "hello-world", "title": "Hello World",
        "steps": [
            {"ref": "greet", "type": "STEP_TYPE_DATAFLOW", "title": "Build greeting",
             "args": {"operation": "project", "project": {"message": "\"hello\""}}},
            {"ref": "pause", "type": "STEP_TYPE_WAIT", "args": {"duration": "1h"}},
            {"ref": "alarm", "type": "STEP_TYPE_WAIT", "args": {"duration": "1h"}}],
        "edges": [
            {"source_ref": "greet", "target_ref": "pause", "type": "EDGE_TYPE_SUCCESS"},
            {"source_ref": "greet", "target_ref": "alarm", "type": "EDGE_TYPE_FAILURE"}]
    });
    change(&mut document);
    document.to_string()
}

async fn graph(face: &Face, path: &str) -> Value {
    let answer = face.get(path).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["data"].clone()
}

fn refs(graph: &Value) -> Vec<&str> {
    let nodes = graph["nodes"].as_array().unwrap().iter();
    nodes.map(|node| node["ref"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_stands_in_the_picture_of_its_version() {
    let face = Face::new().await;
    face.post_json("/api/workflows", &document(|_| {})).await;
    face.post("/api/workflows/hello-world:publish").await;
    let definition = graph(&face, "/api/workflows/hello-world/graph").await;
    assert_eq!(refs(&definition), ["greet", "pause", "alarm"]);
    let greet = &definition["nodes"][0];
    assert_eq!(
        (&greet["title"], &greet["type"], &greet["state"]),
        (
            &json!("Build greeting"),
            &json!("STEP_TYPE_DATAFLOW"),
            &Value::Null
        )
    );
    let started = face.post_json("/api/workflows/hello-world/runs", "{}").await;
    let id = started.json()["data"]["id"].as_str().unwrap().to_owned();
    let run = graph(&face, &format!("/api/runs/{id}/graph")).await;
    let states: Vec<&Value> = run["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| &node["state"])
        .collect();
    assert_eq!(states, ["succeeded", "waiting", "skipped"]);
    let taken: Vec<&Value> = run["edges"]
        .as_array()
        .unwrap()
        .iter()
        .map(|edge| &edge["taken"])
        .collect();
    assert_eq!(taken, [&json!(true), &json!(false)]);
    for (one, other) in ["nodes", "edges"].iter().flat_map(|part| {
        let of = |graph: &Value| graph[*part].as_array().unwrap().clone();
        of(&definition).into_iter().zip(of(&run))
    }) {
        for place in ["x", "y", "width", "height", "points"] {
            assert_eq!(one[place], other[place], "what happens moves nothing");
        }
    }
    face.send(
        "PUT",
        "/api/workflows/hello-world",
        &[("content-type", "application/json")],
        &document(|document| {
            document["steps"].as_array_mut().unwrap().pop();
            document["edges"].as_array_mut().unwrap().pop();
        }),
    )
    .await;
    face.post("/api/workflows/hello-world:publish").await;
    let later = graph(&face, &format!("/api/runs/{id}/graph")).await;
    assert_eq!(later, run, "a run keeps its version");
    assert_eq!(
        refs(&graph(&face, "/api/workflows/hello-world/graph").await),
        ["greet", "pause"]
    );
    let first = graph(&face, "/api/workflows/hello-world/graph?version=1").await;
    assert_eq!(first, definition);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_draft_what_can_be_read_is_drawn() {
    let face = Face::new().await;
    let loose = document(|document| document["edges"][1]["target_ref"] = json!("gone"));
    face.post_json("/api/workflows", &loose).await;
    let drawn = graph(&face, "/api/workflows/hello-world/graph?version=draft").await;
    assert_eq!(
        (refs(&drawn).len(), drawn["edges"].as_array().unwrap().len()),
        (3, 1)
    );
    let round = document(|document| {
        document["edges"][1] =
            json!({"source_ref": "pause", "target_ref": "greet", "type": "EDGE_TYPE_ALWAYS"});
    });
    face.send(
        "PUT",
        "/api/workflows/hello-world",
        &[("content-type", "application/json")],
        &round,
    )
    .await;
    let refused = face.get("/api/workflows/hello-world/graph").await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    let detail = refused.json()["detail"].as_str().unwrap().to_owned();
    assert_eq!(
        detail,
        "this graph cannot be drawn: the steps form a cycle: greet -> pause"
    );
    for (path, status) in [
        ("/api/workflows/hello-world/graph?version=1", 404),
        ("/api/workflows/nobody/graph", 404),
        ("/api/workflows/hello-world/graph?version=x", 400),
        ("/api/runs/run_01m8mkpq69exbrk7xf3n14zqhg/graph", 404),
    ] {
        assert_eq!(face.get(path).await.status, status, "{path}");
    }
}
