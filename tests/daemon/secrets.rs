//! Secrets through the daemon: the command has them, and nothing that people can read shows one.

use super::support::{Builder, Daemon, Place, wait_until};
use super::ways::{ended, folder, lines, run_id, start};

const PASSWORD: &str = "correct-horse-battery";
const KEY: &str = "-----BEGIN KEY-----\nZm9yIHRlc3Rz\nshort\n-----END KEY-----";
const TOKEN: &str = "token-of-the-daemon";

fn place_with(jobs: &str) -> Place {
    let place = Place::new("jobs: []\n");
    place.write_config(&format!("jobs:\n{}", jobs.replace("FOLDER", &folder(&place))));
    place.write("password", &format!("{PASSWORD}\n"));
    place.write("key.pem", &format!("{KEY}\n"));
    place
}

fn log_of(daemon: &Daemon, run: &str) -> String {
    daemon
        .get(&format!("/api/runs/{run}/steps/main/attempts/1/log"))
        .expect_status(200)
        .text()
}

/// Every file below the folder, whatever it is.
pub(super) fn files_below(folder: &std::path::Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, found);
        } else {
            // The end of a socket or a file that has just gone: nothing to read.
            found.extend(
                std::fs::read(&path)
                    .ok()
                    .map(|bytes| (path.display().to_string(), bytes)),
            );
        }
    }
}

fn holds(bytes: &[u8], part: &str) -> bool {
    bytes.windows(part.len()).any(|window| window == part.as_bytes())
}

/// The command knows nothing of the values: what is found of them has leaked.
const TALKS: &str = r#"  - name: talks
    secrets:
      - {name: PASSWORD, fromFile: password}
      - {name: KEY, fromFile: FOLDER/key.pem}
      - {name: TOKEN, fromEnvVar: DAEMON_TOKEN}
    command: |
      tr '\0' ' ' < /proc/$$/cmdline > FOLDER/cmdline
      tr '\0' '\n' < /proc/$$/environ | grep -c -x -F "PASSWORD=$(cat FOLDER/password)" > FOLDER/count
      echo "$PASSWORD"
      printf '%.7s' "$PASSWORD"; printf '%s\n' "${PASSWORD#???????}"
      echo "login with $PASSWORD now" >&2
      echo "$KEY"
      echo "only $(sed -n 2p FOLDER/key.pem) and short"
      printf 'no newline %s' "$TOKEN"
    verify:
      command: echo "verify has $PASSWORD and $TOKEN"; exit 3
"#;

#[test]
fn secret_masked() {
    let place = place_with(TALKS);
    let mut daemon = Builder::at(&place).env("DAEMON_TOKEN", TOKEN).start();
    let id = run_id(&start(&daemon, "talks"));
    let shown = ended(&daemon, &id);
    let reason = &shown["attempts"][0]["reason"];
    assert_eq!(reason, "verify: exit code 3: verify has *** and ***", "{shown}");
    let log = log_of(&daemon, &id);
    let said: Vec<&str> = log.lines().filter(|line| !line.starts_with('e')).collect();
    let expected = [
        "o ***",
        "o ***",
        "o ***",
        "o only *** and short",
        "O no newline ***",
        "i verify: verify has *** and ***",
    ];
    assert_eq!(said, expected, "{log}");
    assert!(log.contains("e login with *** now\n"), "{log}");
    assert!(lines(&place, "cmdline")[0].contains("/bin/sh -c"));
    assert_eq!(lines(&place, "count"), ["1"], "the process has it");
    let config = daemon.get("/api/config").json();
    assert_eq!(
        config["data"]["jobs"][0]["secrets"],
        serde_json::json!([{"name": "PASSWORD"}, {"name": "KEY"}, {"name": "TOKEN"}])
    );
    for (name, bytes) in everything_readable(&place, &mut daemon, &id) {
        for value in [PASSWORD, "Zm9yIHRlc3Rz", TOKEN] {
            assert!(!holds(&bytes, value), "{name} has {value}");
        }
    }
}

/// All that people may see of a run of the job `talks`; ends the daemon.
fn everything_readable(place: &Place, daemon: &mut Daemon, id: &str) -> Vec<(String, Vec<u8>)> {
    let of_run = [
        format!("/api/runs/{id}"),
        format!("/api/runs/{id}/steps/main/attempts/1/log"),
    ];
    let others = ["/api/runs", "/api/config", "/jobs", "/jobs/talks", "/metrics"].map(str::to_owned);
    let mut readable: Vec<(String, Vec<u8>)> = of_run
        .into_iter()
        .chain(others)
        .map(|path| (path.clone(), daemon.get(&path).expect_status(200).body))
        .collect();
    let told = daemon.cli(&["run", "logs", id]);
    readable.push(("run logs".to_owned(), (told.stdout + &told.stderr).into_bytes()));
    assert_eq!(daemon.term(), Some(0));
    readable.push(("daemon log".to_owned(), daemon.output().to_string().into_bytes()));
    readable.push(("cmdline".to_owned(), place.read("cmdline").unwrap().into_bytes()));
    let before = readable.len();
    files_below(&place.state(), &mut readable);
    let has_file = |end: &str| readable[before..].iter().any(|(name, _)| name.ends_with(end));
    assert!(
        has_file(".log") && has_file(".redb"),
        "{:?}",
        readable[before..]
            .iter()
            .map(|(name, _)| name)
            .collect::<Vec<_>>()
    );
    readable
}

#[test]
fn o7_masking_does_not_eat_the_log() {
    let place = place_with(concat!(
        "  - name: o7\n    secrets: [{name: JSON, fromFile: o7.json}, {name: SHORT, fromFile: short}]\n",
        "    command: echo '[{description,\"x\"},{vsn,\"1\"}]'; echo \"$JSON\"; echo a cat\n",
    ));
    place.write("o7.json", "{\n\"foo\": [\n\"bar\"\n]\n}");
    place.write("short", "a");
    let daemon = Builder::at(&place).start();
    let warning = "job 'o7': secret 'SHORT' is shorter than 8 characters and cannot be masked";
    daemon.wait_log("lint/short-secret");
    assert!(daemon.output().to_string().contains(warning));
    assert!(!daemon.output().to_string().contains("secret 'JSON'"));
    let id = run_id(&start(&daemon, "o7"));
    ended(&daemon, &id);
    assert_eq!(
        log_of(&daemon, &id),
        "o [{description,\"x\"},{vsn,\"1\"}]\no ***\no a cat\n"
    );
}

#[test]
fn a_missing_secret_is_a_launch_failure() {
    let place = place_with(concat!(
        "  - {name: file, command: 'true', secrets: [{name: S, fromFile: later}]}\n",
        "  - {name: variable, command: 'true', secrets: [{name: S, fromEnvVar: NOT_SET_ANYWHERE}]}\n",
    ));
    let daemon = Builder::at(&place).start();
    let missing = format!("file {}/later", folder(&place));
    for (job, part) in [
        ("file", missing.as_str()),
        ("variable", "variable NOT_SET_ANYWHERE is not set"),
    ] {
        let shown = ended(&daemon, &run_id(&start(&daemon, job)));
        let reason = shown["attempts"][0]["reason"].as_str().unwrap_or_default();
        assert!(
            reason.starts_with("launch failed: secret 'S': ") && reason.contains(part),
            "{shown}"
        );
        assert_eq!(shown["attempts"][0]["exit_code"], 127, "{shown}");
    }
    // Read at each launch: it may come later.
    place.write("later", "now-it-is-there");
    let shown = ended(&daemon, &run_id(&start(&daemon, "file")));
    assert_eq!(shown["state"], "succeeded", "{shown}");
}

/// What could begin a secret is held back, and nothing else.
#[test]
fn masked_output_is_still_live() {
    let place = place_with(concat!(
        "  - name: asks\n    secrets: [{name: PASSWORD, fromFile: password}]\n    killTimeout: 1\n",
        "    command: echo ready; printf 'as %s' $PASSWORD; while [ ! -e FOLDER/go ]; do sleep 0.05; done\n",
    ));
    let daemon = Builder::at(&place).start();
    let id = run_id(&start(&daemon, "asks"));
    let seen = wait_until(std::time::Duration::from_secs(10), || {
        let answer = daemon.get(&format!("/api/runs/{id}/steps/main/attempts/1/log"));
        (answer.status == 200 && answer.text() == "o ready\nO as ***\n").then_some(())
    });
    assert!(seen.is_some(), "{}", log_of(&daemon, &id));
    place.write("go", "");
    ended(&daemon, &id);
}
