//! The user's page about pools and recipients is a promise: each of its commands is sent as it stands there, in its order, and
//! is answered with the shapes and codes that the page shows.

use serde_json::{Value, json};

use super::support::{Daemon, Response};

/// The commands of the page, word for word.
const PAGE: &str = include_str!("pools_page.sh");

/// One command.
struct Command {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: String,
}

/// Words as a shell takes them apart: quotes, and lines that go on.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (None, '\\') if letters.peek() == Some(&'\n') => {
                letters.next();
            }
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (Some(end), _) if letter == end => quote = None,
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// The commands in their order, with the names of this daemon's own things.
fn commands(names: &[(&str, &str)]) -> Vec<Command> {
    let text = PAGE.lines().filter(|line| !line.starts_with('#'));
    let text = text.collect::<Vec<_>>().join("\n");
    let mut found = Vec::new();
    for command in text.split("curl -s").skip(1) {
        let (mut method, mut path, mut body) = ("GET".to_owned(), String::new(), String::new());
        let mut headers = Vec::new();
        let mut words = words(command).into_iter();
        while let Some(word) = words.next() {
            let with_names = |text: String| {
                names
                    .iter()
                    .fold(text, |text, (name, value)| text.replace(name, value))
            };
            match word.as_str() {
                "-X" => method = words.next().unwrap(),
                "-d" => body = words.next().unwrap(),
                "-H" => {
                    let header = with_names(words.next().unwrap());
                    let (name, value) = header.split_once(": ").unwrap();
                    headers.push((name.to_owned(), value.to_owned()));
                }
                url => path = with_names(url.replace("https://api.ductor.io", "")),
            }
        }
        found.push(Command {
            method,
            path,
            headers,
            body,
        });
    }
    found
}

/// The commands of the page, and what they were answered.
struct Reader {
    daemon: Daemon,
    pool: String,
    recipient: String,
    next: usize,
}

impl Reader {
    fn sent(&self, command: &Command) -> Response {
        let headers: Vec<(&str, &str)> = command
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        self.daemon
            .request(&command.method, &command.path, &headers, command.body.as_bytes())
    }

    /// The next command of the page, which must be this one.
    fn reads(&mut self, method: &str, path: &str) -> Response {
        let names = [
            ("$POOL_ID", self.pool.as_str()),
            ("$RECIPIENT_ID", self.recipient.as_str()),
            ("$DUCTOR_API_KEY", "dk_none"),
            ("$DUCTOR_TENANT", "default"),
        ];
        let command = commands(&names).remove(self.next);
        self.next += 1;
        let path = path
            .replace("POOL", &self.pool)
            .replace("/RECIPIENT", &format!("/{}", self.recipient));
        assert_eq!(
            (command.method.as_str(), command.path.as_str()),
            (method, path.as_str())
        );
        self.sent(&command)
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Response {
        let path = path
            .replace("POOL", &self.pool)
            .replace("/RECIPIENT", &format!("/{}", self.recipient));
        match method {
            "GET" => self.daemon.get(&path),
            _ => self.daemon.send_json(method, &path, body),
        }
    }
}

/// Each field of the page's example is answered so; the answer may have more.
#[track_caller]
fn shows(answer: &Value, example: &Value) {
    for (name, value) in example.as_object().unwrap() {
        assert_eq!(&answer[name], value, "{name} of {answer}");
    }
}

#[test]
fn test_01_every_command_of_the_page_is_answered_as_it_shows() {
    let mut page = Reader {
        daemon: Daemon::start("jobs: []\n"),
        pool: String::new(),
        recipient: String::new(),
        next: 0,
    };
    let created = page.reads("POST", "/api/pools").expect_status(201);
    let example = json!({"name": "billing-agents", "status": "STATUS_ACTIVE", "strategy": "smooth_weighted_round_robin",
        "config": {"routing_mode": "auto", "default_timeout": "30s", "max_routing_depth": 3}, "recipient_ids": [],
        "record_version": 0, "description": "Tier-2 billing support", "metadata": {"team": "billing"}});
    let data = created.json()["data"].clone();
    shows(&data, &example);
    assert!(data["created_at"].as_str().unwrap().ends_with('Z'), "{data}");
    page.pool = data["id"].as_str().unwrap().to_owned();
    assert_eq!(
        created.header("location"),
        Some(format!("/api/pools/{}", page.pool).as_str())
    );

    let one = page.reads("GET", "/api/pools/POOL").expect_status(200);
    assert_eq!(one.json()["data"], data);
    assert!(
        one.header("etag").unwrap().starts_with("\"0"),
        "{:?}",
        one.headers
    );
    let listed = page.reads("GET", "/api/pools?status=STATUS_ACTIVE&pagination.page_size=50");
    assert_eq!(
        listed.expect_status(200).json(),
        json!({"data": [data], "pagination": {}})
    );
    let patched = page.reads("PATCH", "/api/pools/POOL").expect_status(200).json();
    let expected = json!({"strategy": "weighted_round_robin", "record_version": 1, "name": "billing-agents",
        "config": {"routing_mode": "auto", "default_timeout": "45s", "max_routing_depth": 3}});
    shows(&patched["data"], &expected);

    switches(&mut page);
    recipients(&mut page);
    assert_eq!(page.next, commands(&[]).len(), "every command was sent");
    leaves(&page);
}

/// `:set_enabled` with the version of the page: stale first, then the one that is read.
fn switches(page: &mut Reader) {
    let stale = page
        .reads("POST", "/api/pools/POOL:set_enabled")
        .expect_status(412)
        .json();
    assert_eq!(
        (&stale["title"], &stale["current_version"]),
        (&json!("Failed Precondition"), &json!(1))
    );
    assert_eq!(stale["code"], "FAILED_PRECONDITION");
    let unchanged = page.ask("GET", "/api/pools/POOL", &Value::Null).json();
    assert_eq!(
        (
            &unchanged["data"]["record_version"],
            &unchanged["data"]["config"]["kill_switch"]
        ),
        (&json!(1), &Value::Null)
    );
    // Three more changes, and it is the version of the page.
    for description in ["a", "b", "c"] {
        page.ask("PATCH", "/api/pools/POOL", &json!({"description": description}))
            .expect_status(200);
    }
    page.next -= 1;
    let off = page
        .reads("POST", "/api/pools/POOL:set_enabled")
        .expect_status(200)
        .json();
    assert_eq!(off["data"]["record_version"], 5);
    let config = &off["data"]["config"];
    assert_eq!(
        (&config["kill_switch"], &config["kill_switch_by"]),
        (&json!(true), &json!("local"))
    );
    assert_eq!(config["kill_switch_reason"], "provider outage — halting dispatch");
    let on = json!({"enabled": true, "expected_version": 0});
    let on = page
        .ask("POST", "/api/pools/POOL:set_enabled", &on)
        .expect_status(200)
        .json();
    assert_eq!(
        (
            &on["data"]["config"]["kill_switch"],
            &on["data"]["record_version"]
        ),
        (&json!(false), &json!(6))
    );
    let stats = page
        .ask("GET", "/api/pools/POOL/stats", &Value::Null)
        .expect_status(200)
        .json();
    let fields = [
        "pool_id",
        "total_recipients",
        "active_recipients",
        "total_capacity",
        "used_capacity",
        "utilization",
        "queue_depth",
        "updated_at",
    ];
    for field in fields {
        assert!(!stats["data"][field].is_null(), "{field} of {stats}");
    }
    let reset = page
        .ask("POST", "/api/pools/POOL/capacity/reset", &json!({}))
        .expect_status(200)
        .json();
    assert_eq!(reset["data"]["affected"], 0);
}

fn recipients(page: &mut Reader) {
    let created = page
        .reads("POST", "/api/pools/POOL/recipients")
        .expect_status(201)
        .json();
    let data = created["data"].clone();
    let example = json!({"name": "Jordan Reyes", "type": "agent", "external_id": "agent-4471",
        "state": "RECIPIENT_STATE_AVAILABLE", "weight": 2.0, "tags": ["billing", "spanish"],
        "attributes": {"skill": {"string_value": "billing"}, "seniority": {"number_value": 3},
            "vip_certified": {"bool_value": true}},
        "timezone": "America/Chicago", "pool_id": page.pool, "pool_ids": [page.pool]});
    shows(&data, &example);
    shows(
        &data["capacity"],
        &json!({"max_concurrent": 5, "daily_limit": 40, "current": 0, "daily_count": 0}),
    );
    data["id"].as_str().unwrap().clone_into(&mut page.recipient);
    let one = page.reads("GET", "/api/recipients/RECIPIENT").expect_status(200);
    assert_eq!(one.json()["data"], data);
    let listed = page.reads(
        "GET",
        "/api/pools/POOL/recipients?state=RECIPIENT_STATE_AVAILABLE",
    );
    assert_eq!(listed.expect_status(200).json()["data"], json!([data]));
    let patched = page
        .reads("PATCH", "/api/recipients/RECIPIENT")
        .expect_status(200)
        .json();
    shows(
        &patched["data"],
        &json!({"weight": 1.5, "external_id": "agent-4471"}),
    );
    shows(
        &patched["data"]["capacity"],
        &json!({"max_concurrent": 8, "daily_limit": 40}),
    );
    let paused = page
        .reads("POST", "/api/recipients/RECIPIENT/pause")
        .expect_status(200)
        .json();
    shows(
        &paused["data"],
        &json!({"state": "RECIPIENT_STATE_PAUSED", "pool_ids": [page.pool]}),
    );
    let resumed = page
        .reads("POST", "/api/recipients/RECIPIENT/resume")
        .expect_status(200)
        .json();
    assert_eq!(resumed["data"]["state"], "RECIPIENT_STATE_AVAILABLE");
}

/// What the page says of deletion without showing a command.
fn leaves(page: &Reader) {
    let gone = page
        .ask("DELETE", "/api/pools/POOL", &json!({}))
        .expect_status(200)
        .json();
    assert_eq!(
        (&gone["data"]["detached_recipients"], &gone["data"]["id"]),
        (&json!(1), &json!(page.pool))
    );
    let left = page
        .ask("GET", "/api/recipients/RECIPIENT", &Value::Null)
        .expect_status(200)
        .json();
    assert_eq!(
        (&left["data"]["pool_id"], &left["data"]["pool_ids"]),
        (&Value::Null, &json!([]))
    );
    page.ask("DELETE", "/api/recipients/RECIPIENT", &json!({}))
        .expect_status(200);
    let missing = page
        .ask("GET", "/api/recipients/RECIPIENT", &Value::Null)
        .expect_status(404)
        .json();
    assert_eq!(missing["errors"][0]["code"], "recipient.not_found");
}
