//! Keys on real daemons: the first one, several daemons on one state directory, and secrets that are written nowhere.

use std::path::Path;

use serde_json::{Value, json};

use super::support::{Builder, Daemon, Place, Response, ductor};

const CONFIG: &str = "jobs:\n  - {name: job, command: echo ran}\n";

fn asked(daemon: &Daemon, key: &str, method: &str, path: &str, body: &Value) -> Response {
    let bearer = format!("Bearer {key}");
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    let body = if method == "GET" {
        String::new()
    } else {
        body.to_string()
    };
    daemon.request(method, path, &headers, body.as_bytes())
}

fn made(response: Response) -> String {
    response.expect_status(201).json()["data"]["key"]
        .as_str()
        .expect("a key")
        .to_owned()
}

fn first_key(daemon: &Daemon) -> String {
    made(daemon.post("/api/keys", &json!({"name": "admin", "scopes": ["admin"]})))
}

fn id_of(key: &str) -> &str {
    key.split('_').nth(1).expect("an id")
}

#[test]
fn all_daemons_see_a_new_and_a_revoked_key_at_once() {
    let place = Place::new(CONFIG);
    let first = Builder::at(&place).node("a").leave_store_unchecked().start();
    let second = Builder::at(&place).node("b").leave_store_unchecked().start();
    second.get("/jobs").expect_status(200);
    let admin = first_key(&first);
    // The other daemon hears of it by a datagram, within milliseconds, and looks four times a second anyway.
    second.wait("the end of open mode", || {
        (second.get("/jobs").status == 401).then_some(())
    });
    asked(&second, &admin, "GET", "/jobs", &Value::Null).expect_status(200);
    // Not more rounds: ten wrong keys a minute close the door of an address.
    for round in 0..5 {
        let wish = json!({"name": format!("k{round}"), "scopes": ["*:read"]});
        let key = made(asked(&first, &admin, "POST", "/api/keys", &wish));
        second.wait("the new key to open", || {
            (asked(&second, &key, "GET", "/jobs", &Value::Null).status == 200).then_some(())
        });
        let path = format!("/api/keys/{}", id_of(&key));
        asked(&second, &admin, "DELETE", &path, &json!({})).expect_status(200);
        // At the daemon that did it: from the answer on.
        asked(&second, &key, "GET", "/jobs", &Value::Null).expect_status(401);
        first.wait("the revoked key to open nothing", || {
            (asked(&first, &key, "GET", "/jobs", &Value::Null).status == 401).then_some(())
        });
    }
}

#[test]
fn without_keys_a_daemon_listens_on_this_machine_alone() {
    let place = Place::new(CONFIG);
    let config = place.config().display().to_string();
    let state = place.state().display().to_string();
    let line = [
        "serve",
        "--config",
        &config,
        "--state-dir",
        &state,
        "--listen",
        "0.0.0.0:0",
    ];
    let refused = ductor(&line).expect_status(2);
    for words in [
        "there are no keys yet",
        "ductor key create admin --scope admin",
        "auth.bootstrapKeyFile",
    ] {
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
}

#[test]
fn a_bootstrap_key_is_made_once_and_opens_everything() {
    let place = Place::new("");
    let file = place.folder().join("first.key");
    place.write_config(&format!(
        "{CONFIG}auth: {{bootstrapKeyFile: {}}}\n",
        file.display()
    ));
    let daemon = Builder::at(&place).start();
    let key = place
        .read("first.key")
        .expect("a start makes it")
        .trim()
        .to_owned();
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(daemon.get("/jobs").status, 401);
    asked(&daemon, &key, "GET", "/jobs", &Value::Null).expect_status(200);
    let daemon = daemon.restart();
    assert_eq!(place.read("first.key").unwrap().trim(), key, "the same one");
    let keys = asked(&daemon, &key, "GET", "/api/keys", &Value::Null).json();
    assert_eq!(keys["data"].as_array().unwrap().len(), 1, "{keys}");
    assert_eq!(keys["data"][0]["created_by"], "configuration");
}

/// Every file below a folder.
fn bytes_below(folder: &Path, found: &mut Vec<u8>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            bytes_below(&path, found);
        } else {
            found.extend(std::fs::read(&path).unwrap_or_default());
        }
    }
}

#[test]
fn no_secret_stands_in_the_state_directory_or_the_log() {
    let place = Place::new(CONFIG);
    let mut daemon = Builder::at(&place).env("DUCTOR_LOG", "trace").start();
    let admin = first_key(&daemon);
    let wish = json!({"name": "ci", "scopes": ["job:write"]});
    let other = made(asked(&daemon, &admin, "POST", "/api/keys", &wish));
    let session = daemon.request(
        "POST",
        "/api/session",
        &[("content-type", "application/json")],
        json!({"key": other}).to_string().as_bytes(),
    );
    let cookie = session.header("set-cookie").expect("a cookie").to_owned();
    let secret_of = |text: &str, mark: char| {
        let rest = text
            .split(mark)
            .nth(if mark == '_' { 2 } else { 1 })
            .expect("a secret");
        rest.split(';').next().unwrap_or_default().to_owned()
    };
    asked(&daemon, &other, "POST", "/jobs/job/start", &json!({})).expect_status(200);
    let secrets = [
        secret_of(&admin, '_'),
        secret_of(&other, '_'),
        secret_of(&cookie, '='),
    ];
    let said = daemon.output().stderr().join("\n") + &daemon.output().stdout().join("\n");
    assert_eq!(daemon.term(), Some(0));
    let mut stored = Vec::new();
    bytes_below(&place.state(), &mut stored);
    for secret in &secrets {
        assert!(secret.len() >= 40, "{secret}");
        assert!(!said.contains(secret), "in the log");
        let found = stored.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!found, "in the state directory");
    }
}
