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

/// An issuer with a key of its own.
struct Issuer(aws_lc_rs::signature::Ed25519KeyPair);

impl Issuer {
    fn new() -> Issuer {
        Issuer(aws_lc_rs::signature::Ed25519KeyPair::generate().expect("a key"))
    }

    /// Its public key, as `openssl pkey -pubout` writes it.
    fn pem(&self) -> String {
        use aws_lc_rs::encoding::AsDer;
        use aws_lc_rs::signature::KeyPair;
        use base64::Engine as _;
        let der = self.0.public_key().as_der().expect("a public key");
        let digits = base64::engine::general_purpose::STANDARD.encode(der.as_ref());
        format!("-----BEGIN PUBLIC KEY-----\n{digits}\n-----END PUBLIC KEY-----\n")
    }

    /// A token for `sub`, for an hour.
    fn token(&self, sub: &str, scope: &str) -> String {
        use base64::Engine as _;
        let now = ductor::words::time::Clock::now(&ductor::words::time::SystemClock).wall;
        let claims = json!({
            "iss": "https://login.example.com", "aud": "ductor", "sub": sub, "tenant": "acme", "scope": scope,
            "exp": now.0 / 1_000 + 3_600,
        });
        let part = |bytes: &[u8]| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes);
        let head = json!({"alg": "EdDSA", "typ": "JWT"}).to_string();
        let message = format!(
            "{}.{}",
            part(head.as_bytes()),
            part(claims.to_string().as_bytes())
        );
        let signature = self.0.sign(message.as_bytes());
        format!("{message}.{}", part(signature.as_ref()))
    }
}

#[test]
fn tokens_of_an_issuer_lock_the_daemon_and_a_reload_takes_its_next_key_in() {
    let (old, new) = (Issuer::new(), Issuer::new());
    let place = Place::new("");
    let file = place.write("issuer.pem", &old.pem());
    let with_issuer = format!(
        "{CONFIG}tenants:\n  - {{name: acme, routing: {{pipelineMode: dag}}}}\nauth:\n  issuers:\n    - issuer: https://login.example.com\n      \
         audience: ductor\n      algorithm: EdDSA\n      keyFile: {}\n",
        file.display()
    );
    place.write_config(&with_issuer);
    let mut daemon = Builder::at(&place).start();
    assert_eq!(daemon.get("/jobs").status, 401);
    let token = old.token("ann", "tenant:read pool:write pool:read system:write audit:read");
    assert_eq!(
        asked(&daemon, &token, "GET", "/api/pools", &Value::Null).json()["data"],
        json!([])
    );
    asked(&daemon, &token, "GET", "/api/keys", &Value::Null).expect_status(403);
    let tenant = asked(&daemon, &token, "GET", "/api/tenants/acme", &Value::Null)
        .expect_status(200)
        .json();
    assert_eq!(tenant["data"]["routing"]["pipeline_mode"], "dag");
    asked(&daemon, &token, "POST", "/api/pools", &json!({"name": "support"})).expect_status(201);
    let rows = asked(&daemon, &token, "GET", "/api/audit", &Value::Null).json();
    assert_eq!(
        rows["data"][0]["who"], "jwt:https://login.example.com#ann",
        "{rows}"
    );
    asked(
        &daemon,
        &new.token("ann", "pool:read"),
        "GET",
        "/api/pools",
        &Value::Null,
    )
    .expect_status(401);

    // A key that cannot be used keeps the file from being used; the running one goes on.
    place.write("issuer.pem", "nothing\n");
    daemon.signal("HUP");
    daemon.wait_log("was not reloaded");
    asked(&daemon, &token, "GET", "/api/pools", &Value::Null).expect_status(200);
    place.write("issuer.pem", &new.pem());
    daemon.signal("HUP");
    daemon.wait_log("configuration reloaded");
    daemon.wait("the next key to open", || {
        let token = new.token("ann", "pool:read");
        (asked(&daemon, &token, "GET", "/api/pools", &Value::Null).status == 200).then_some(())
    });
    asked(&daemon, &token, "GET", "/api/pools", &Value::Null).expect_status(401);

    // Its tenant stays, also without its issuer.
    place.write_config(CONFIG);
    daemon.signal("HUP");
    daemon.wait("the issuer to be gone", || {
        (daemon.get("/jobs").status == 200).then_some(())
    });
    daemon.get("/api/tenants/acme").expect_status(200);
    assert_eq!(daemon.term(), Some(0));
}
