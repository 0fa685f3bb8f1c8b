//! Bundles that the configuration keeps in force: applied, drifted, put back, failed with places; two daemons with two files.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::declared_tests::{data, send};
use super::fixture::Face;
use super::kept_bundles;
use crate::config::{Config, Overrides, RoutingConfig};
use crate::daemon::{Loader, Reconciler};

const DESK: &str = "\
apiVersion: ductor.io/v1
kind: RoutingBundle
metadata: { name: desk }
pools:
  - name: front
    config: { fallback: queue, queue_ttl_seconds: 600 }
recipients:
  - { name: Kim, pools: [front], external_id: k }
";

/// A folder with the files of a daemon, and its reconciler.
struct Daemon {
    folder: TempDir,
    reconciler: Reconciler,
    routing: RoutingConfig,
}

fn config_of(folder: &Path, text: &str) -> Config {
    let path = folder.join("ductor.yaml");
    std::fs::write(&path, text).unwrap();
    Loader::new(path, Overrides::default()).load().unwrap().config
}

impl Daemon {
    fn new(face: &Face, routing: &str, files: &[(&str, &str)]) -> Daemon {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let config = config_of(folder.path(), &format!("routing: {routing}\n"));
        Daemon {
            reconciler: Reconciler::new(&face.app.engine, face.app.reloader.bundles()),
            routing: config.routing,
            folder,
        }
    }

    fn write(&self, name: &str, text: &str) {
        // Another file in its place, as deployments do it: its stamp is another one at once.
        let (new, path) = (self.folder.path().join("new"), self.folder.path().join(name));
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, path).unwrap();
    }

    /// As at the start, and at a reload.
    async fn reload(&mut self) {
        let routing = self.routing.clone();
        self.reconciler.turn(Some(&routing)).await;
    }

    async fn look(&mut self) {
        self.reconciler.turn(None).await;
    }
}

async fn standing(face: &Face) -> Value {
    data(face, "/api/routing/bundles").await
}

async fn front(face: &Face) -> Value {
    data(face, "/api/pools").await[0].clone()
}

async fn ttl(face: &Face) -> Value {
    front(face).await["config"]["queue_ttl_seconds"].clone()
}

async fn by_hand(face: &Face, ttl: u32) {
    let id = front(face).await["id"].as_str().unwrap().to_owned();
    let body = json!({"config": {"queue_ttl_seconds": ttl}});
    let answer = send(face, "PATCH", &format!("/api/pools/{id}"), &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_applied_at_the_start_at_a_reload_and_when_it_changes() {
    let face = Face::new().await;
    let mut daemon = Daemon::new(&face, "{bundles: [desk.yaml]}", &[("desk.yaml", DESK)]);
    assert_eq!(standing(&face).await, json!([]));
    daemon.reload().await;
    assert_eq!(ttl(&face).await, 600);
    let one = standing(&face).await[0].clone();
    assert_eq!(
        (&one["status"], &one["path"], &one["name"]),
        (&json!("synced"), &json!("desk.yaml"), &json!("desk"))
    );
    assert!(one["applied_at"].is_string() && one["digest"].as_str().unwrap().starts_with("sha256:"));
    let audit = data(&face, "/api/audit").await;
    assert_eq!(audit[0]["what"], "applyBundle", "{audit}");
    assert_eq!(audit[0]["who"], "daemon n-a");
    // Twice the same changes nothing, not even the audit.
    daemon.reload().await;
    assert_eq!(data(&face, "/api/audit").await, audit);
    let version = front(&face).await["record_version"].clone();
    // A file that may still be written is left alone for one more look.
    daemon.write("desk.yaml", &DESK.replace("600", "700"));
    daemon.look().await;
    assert_eq!(ttl(&face).await, 600);
    daemon.look().await;
    assert_eq!(ttl(&face).await, 700);
    assert_eq!(
        front(&face).await["record_version"],
        json!(version.as_u64().unwrap() + 1)
    );
    assert_eq!(standing(&face).await[0]["status"], "synced");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_changed_by_hand_is_shown_and_put_back_by_a_reload() {
    let face = Face::new().await;
    let mut daemon = Daemon::new(&face, "{bundles: [desk.yaml]}", &[("desk.yaml", DESK)]);
    daemon.reload().await;
    by_hand(&face, 5).await;
    daemon.look().await;
    let one = standing(&face).await[0].clone();
    assert_eq!(
        (&one["status"], &one["differing"], &one["newer"]),
        (&json!("drifted"), &json!(1), &json!(null))
    );
    assert_eq!(
        one["changes"],
        json!([{"kind": "pool", "name": "front", "action": "update",
            "fields": [{"pointer": "/config/queue_ttl_seconds", "from": 5, "to": 600}]}])
    );
    assert_eq!(ttl(&face).await, 5, "it is only shown");
    daemon.reload().await;
    assert_eq!(
        (ttl(&face).await, standing(&face).await[0]["status"].clone()),
        (json!(600), json!("synced"))
    );
    // Somebody who puts it back by hand is believed too.
    by_hand(&face, 5).await;
    daemon.look().await;
    by_hand(&face, 600).await;
    daemon.look().await;
    assert_eq!(standing(&face).await[0]["status"], "synced");
}

#[tokio::test(flavor = "multi_thread")]
async fn enforcing_puts_back_what_is_changed_by_hand() {
    let face = Face::new().await;
    let mut daemon = Daemon::new(
        &face,
        "{enforce: true, bundles: [desk.yaml]}",
        &[("desk.yaml", DESK)],
    );
    daemon.reload().await;
    by_hand(&face, 5).await;
    daemon.look().await;
    assert_eq!(ttl(&face).await, 600);
    let one = standing(&face).await[0].clone();
    assert_eq!(
        (&one["status"], &one["enforce"], &one["changes"]),
        (&json!("synced"), &json!(true), &json!([]))
    );
    // Live values belong to nobody's file.
    let id = data(
        &face,
        &format!(
            "/api/pools/{}/recipients",
            front(&face).await["id"].as_str().unwrap()
        ),
    )
    .await[0]["id"]
        .clone();
    let path = format!("/api/recipients/{}/pause", id.as_str().unwrap());
    assert_eq!(send(&face, "POST", &path, &json!({})).await.status, 200);
    daemon.look().await;
    let shown = data(&face, &format!("/api/recipients/{}", id.as_str().unwrap())).await;
    assert_eq!(shown["state"], "RECIPIENT_STATE_PAUSED", "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_file_fails_with_line_and_column_and_the_last_good_one_stays() {
    let face = Face::new().await;
    let mut daemon = Daemon::new(&face, "{enforce: true, bundles: [desk.yaml]}", &[]);
    daemon.reload().await;
    let error = |one: &Value| one["errors"][0].clone();
    let missing = error(&standing(&face).await[0]);
    assert_eq!(missing["code"], "bundle.unreadable");
    assert_eq!(missing["detail"], "the file does not exist");
    daemon.write("desk.yaml", DESK);
    daemon.look().await;
    daemon.look().await;
    assert_eq!(standing(&face).await[0]["status"], "synced");
    for (text, code, line, column) in [
        (DESK.replace("external_id", "extrenal_id"), "field.unknown", 8, 34),
        (DESK.replace("apiVersion", "aversion"), "field.unknown", 1, 1),
        (format!("{DESK}pools: []\n"), "config/duplicate-key", 9, 1),
        (DESK.replace("[front]", "[back]"), "pool.not_found", 8, 26),
        (DESK.replace("kind: R", "kind: [R"), "config/syntax", 3, 9),
    ] {
        daemon.write("desk.yaml", &text);
        daemon.look().await;
        daemon.look().await;
        let one = standing(&face).await[0].clone();
        let found = error(&one);
        assert_eq!(
            (&one["status"], &found["code"]),
            (&json!("failed"), &json!(code)),
            "{one}"
        );
        assert_eq!(
            (&found["line"], &found["column"], &found["file"]),
            (&json!(line), &json!(column), &json!("desk.yaml")),
            "{one}"
        );
        // The last good one stays, and is enforced.
        by_hand(&face, 5).await;
        daemon.look().await;
        assert_eq!(ttl(&face).await, 600, "{code}");
    }
    daemon.write("desk.yaml", DESK);
    daemon.look().await;
    daemon.look().await;
    assert_eq!(standing(&face).await[0]["status"], "synced");
    assert_eq!(standing(&face).await[0]["errors"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_daemons_with_two_files_the_last_load_wins_and_nobody_fights() {
    let face = Face::new().await;
    let routing = "{enforce: true, bundles: [desk.yaml]}";
    let mut old = Daemon::new(&face, routing, &[("desk.yaml", DESK)]);
    let mut new = Daemon::new(&face, routing, &[("desk.yaml", &DESK.replace("600", "700"))]);
    old.reload().await;
    new.reload().await;
    for _ in 0..3 {
        old.look().await;
        let one = standing(&face).await[0].clone();
        assert_eq!(
            (&one["status"], &one["newer"]["node"]),
            (&json!("drifted"), &json!("n-a")),
            "{one}"
        );
        new.look().await;
        assert_eq!(standing(&face).await[0]["status"], "synced");
        assert_eq!(ttl(&face).await, 700);
    }
    // Changes by hand are put back by the one whose file counts.
    by_hand(&face, 5).await;
    old.look().await;
    assert_eq!(ttl(&face).await, 5);
    new.look().await;
    assert_eq!(ttl(&face).await, 700);
    // A reload is a newer word.
    old.reload().await;
    assert_eq!(ttl(&face).await, 600);
    new.look().await;
    assert_eq!(ttl(&face).await, 600);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_is_of_a_tenant_and_of_one_file() {
    let face = Face::new().await;
    let twice = "{bundles: [desk.yaml, again.yaml, {path: sales.yaml, tenant: sales}]}";
    let files = [("desk.yaml", DESK), ("again.yaml", DESK), ("sales.yaml", DESK)];
    let mut daemon = Daemon::new(&face, twice, &files);
    daemon.reload().await;
    let all = standing(&face).await;
    assert_eq!(
        all.as_array().unwrap().len(),
        2,
        "those of another tenant are not shown: {all}"
    );
    assert_eq!(all[1]["errors"][0]["code"], "bundle.twice");
    assert_eq!(all[1]["errors"][0]["line"], 3);
    let of_sales = |face: &Face| face.app.reloader.bundles().standing()[2].clone();
    assert_eq!(of_sales(&face).faults[0].code, "tenant.not_found");
    assert_eq!(
        send(&face, "POST", "/api/tenants", &json!({"name": "sales"}))
            .await
            .status,
        201
    );
    daemon.reload().await;
    assert_eq!(of_sales(&face).state.word(), "synced");
    assert_eq!(data(&face, "/api/pools").await.as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_file_no_longer_has_goes_with_prune_only() {
    let face = Face::new().await;
    let mut daemon = Daemon::new(
        &face,
        "{bundles: [{path: desk.yaml, prune: true}]}",
        &[("desk.yaml", DESK)],
    );
    daemon.reload().await;
    let without = DESK.split("recipients:").next().unwrap().to_owned();
    daemon.write("desk.yaml", &without);
    daemon.reload().await;
    let path = format!(
        "/api/pools/{}/recipients",
        front(&face).await["id"].as_str().unwrap()
    );
    assert_eq!(data(&face, &path).await, json!([]));
    assert_eq!(standing(&face).await[0]["status"], "synced");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_verdict_names_a_bundle_that_cannot_be_applied() {
    let face = Face::new().await;
    let mut daemon = Daemon::new(&face, "{bundles: [desk.yaml, gone.yaml]}", &[("desk.yaml", DESK)]);
    daemon.reload().await;
    assert_eq!(
        kept_bundles::complaint(&face.app).as_deref(),
        Some("The bundle gone.yaml cannot be applied; `ductor bundle status` says why.")
    );
    daemon.write(
        "gone.yaml",
        &DESK
            .replace("name: desk", "name: other")
            .replace("front", "back")
            .replace("external_id: k", "external_id: l"),
    );
    daemon.reload().await;
    assert_eq!(kept_bundles::complaint(&face.app), None);
}
