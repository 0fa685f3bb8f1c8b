//! Backups of a daemon at work, what is restored of them, and a store of a format before this one.

use std::io::Read;
use std::time::Duration;

use ductor::store::migrate::FORMAT;
use serde_json::{Value, json};

use super::support::{Builder, Daemon, PATIENCE, Place, check_store_with_doctor, ductor, wait_until};
use super::ways::{folder, lines, lives, run, run_id, run_state, start};

const LOAD: &str = "\
pools: {p: {slots: 4, maxQueued: 5000}}
jobs:
  - {name: work, command: 'true', pool: p}
  - {name: copy, command: '. FOLDER/where; \"$DUCTOR\" --server \"$URL\" backup --to FOLDER/copy'}
";

fn text(path: &std::path::Path) -> &str {
    path.to_str().unwrap()
}

/// A job in ductor itself makes the backup while others run; on "another host" everything acknowledged is there.
#[test]
fn o3_backup_while_it_runs() {
    let place = Place::new("jobs: []\n");
    place.write_config(&LOAD.replace("FOLDER", &folder(&place)));
    let mut daemon = Builder::at(&place).start();
    let binary = env!("CARGO_BIN_EXE_ductor");
    place.write("where", &format!("DUCTOR={binary}\nURL={}\n", daemon.url()));
    let mut acknowledged: Vec<String> = (0..100).map(|_| run_id(&start(&daemon, "work"))).collect();
    let copy = run_id(&start(&daemon, "copy"));
    let mut later = Vec::new();
    while run_state(&daemon, &copy) != "succeeded" {
        assert_ne!(run_state(&daemon, &copy), "failed", "{}", run(&daemon, &copy));
        later.push(run_id(&start(&daemon, "work")));
    }
    assert!(!later.is_empty(), "it worked meanwhile");
    acknowledged.push(copy.clone());
    assert_eq!(daemon.term(), Some(0));

    let elsewhere = Place::new(&LOAD.replace("FOLDER", &folder(&place)));
    let file = place.folder().join("copy");
    let restored = ductor(&[
        "--json",
        "restore",
        text(&file),
        "--into",
        text(&elsewhere.state()),
    ]);
    let restored = restored.expect_status(0).json();
    assert_eq!(restored["data"]["clean"], true, "{restored}");
    assert!(
        restored["data"]["interrupted"].as_u64() >= Some(1),
        "the copy itself: {restored}"
    );
    check_store_with_doctor(&elsewhere).unwrap();
    let daemon = Builder::at(&elsewhere).start();
    for id in &acknowledged {
        assert_eq!(run(&daemon, id)["id"], id.as_str());
    }
    // What was under way is not taken up before its lease has lapsed here too.
    assert_eq!(run_state(&daemon, &copy), "running");
}

/// On the same machine, under the same name, beside the original.
#[test]
fn a_restored_daemon_touches_no_process_of_the_original() {
    let place = Place::new("jobs: []\n");
    let jobs = "pools: {p: {slots: 1}}\njobs:\n\
        \x20 - {name: pooled, pool: p, command: 'echo $$ >> FOLDER/pids; sleep 90', killTimeout: 1}\n\
        \x20 - {name: quick, command: 'true'}\n\
        \x20 - {name: alone, command: 'echo $$ >> FOLDER/pids; sleep 90', killTimeout: 1}\n";
    place.write_config(&jobs.replace("FOLDER", &folder(&place)));
    let original = Builder::at(&place).node("same").start();
    let ids = ["pooled", "alone"].map(|job| run_id(&start(&original, job)));
    let pids = wait_until(PATIENCE, || {
        Some(lines(&place, "pids")).filter(|pids| pids.len() == 2)
    });
    let pids = pids.expect("both run");
    let file = place.folder().join("copy");
    original.cli(&["backup", "--to", text(&file)]).expect_status(0);
    let elsewhere = Place::new(&jobs.replace("FOLDER", &folder(&place)));
    ductor(&["restore", text(&file), "--into", text(&elsewhere.state())]).expect_status(0);
    let restored = Builder::at(&elsewhere).node("same").start();
    // It has settled what its own name left before it listened; now it hunts, and works: a job that it starts ends.
    let ready = wait_until(PATIENCE, || (restored.get("/readyz").status == 200).then_some(()));
    assert!(ready.is_some());
    let id = run_id(&start(&restored, "quick"));
    let done = wait_until(PATIENCE, || {
        (run_state(&restored, &id) == "succeeded").then_some(())
    });
    assert!(done.is_some());
    for (pid, id) in pids.iter().zip(&ids) {
        assert!(lives(pid), "{pid} is a process of the original");
        assert_eq!(
            (run_state(&original, id), run_state(&restored, id)),
            ("running".to_owned(), "running".to_owned())
        );
    }
    for job in ["pooled", "alone"] {
        for daemon in [&original, &restored] {
            daemon
                .post(&format!("/jobs/{job}/cancel"), &json!({}))
                .expect_status(200);
        }
    }
    let gone = wait_until(PATIENCE, || (!pids.iter().any(|pid| lives(pid))).then_some(()));
    assert!(gone.is_some(), "the original ends its own");
}

#[test]
fn backups_by_the_command_line() {
    let place = Place::new("pools: {p: {slots: 1}}\njobs: [{name: work, command: 'true', pool: p}]\n");
    let daemon = Builder::at(&place).start();
    let file = |name: &str| place.folder().join(name);
    let backup = |daemon: &Daemon, name: &str| daemon.cli(&["backup", "--to", text(&file(name))]);
    let made = backup(&daemon, "a").expect_status(0);
    assert!(
        made.stdout.contains("blake3  ") && made.stdout.contains("while it works"),
        "{made:?}"
    );
    assert!(made.stderr.contains("Logs of attempts are not in it"), "{made:?}");
    let again = backup(&daemon, "a").expect_status(5);
    assert!(again.stderr.contains("is there already"), "{again:?}");
    backup(&daemon, "state/a").expect_status(5);
    backup(&daemon, "no/a").expect_status(1);
    assert_eq!(
        daemon.get("/api/backups").json()["data"]
            .as_array()
            .unwrap()
            .len(),
        1
    );

    // Without an address: the daemon that holds the directory listens somewhere else than the configuration says.
    let config = place.config();
    let by_files = |name: &str| {
        let state = place.state();
        ductor(&[
            "--json",
            "backup",
            "--to",
            text(&file(name)),
            "--config",
            text(&config),
            "--state-dir",
            text(&state),
        ])
    };
    let held = by_files("b").expect_status(1);
    assert!(
        held.stderr.contains("say where it listens with --server"),
        "{held:?}"
    );
    let mut daemon = daemon;
    assert_eq!(daemon.term(), Some(0));
    let made = by_files("b").expect_status(0).json();
    assert_eq!(made["data"]["state"], "done");

    let verified = ductor(&["--json", "restore", text(&file("b")), "--verify-only"])
        .expect_status(0)
        .json();
    assert_eq!(
        (&verified["data"]["clean"], &verified["data"]["blake3"]),
        (&json!(true), &made["data"]["blake3"])
    );
    ductor(&["restore", text(&file("b")), "--into", text(&place.state())]).expect_status(5);
    ductor(&["restore", text(&file("none")), "--verify-only"]).expect_status(1);
    ductor(&["restore", text(&config), "--into", text(&file("new"))]).expect_status(1);
    ductor(&["restore", text(&file("b"))]).expect_status(2);
    assert!(!file("new").exists());
}

fn unpacked(place: &Place) -> Value {
    let packed: &[u8] = include_bytes!("../fixtures/format-2.redb.gz");
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(packed)
        .read_to_end(&mut bytes)
        .unwrap();
    std::fs::write(place.state().join("ductor.redb"), bytes).unwrap();
    std::fs::write(place.state().join("format"), "2\n").unwrap();
    serde_json::from_str(include_str!("../fixtures/format-2.json")).unwrap()
}

/// What the last daemon of format 2 said of its ended runs, this one says too, and it goes on with the rest.
#[test]
fn a_directory_of_format_2_is_taken_over() {
    let place = Place::new("jobs: [{name: work, command: 'true'}]\n");
    let facts = unpacked(&place);
    let config = place.config();
    let doctor = ductor(&[
        "doctor",
        "--config",
        text(&config),
        "--state-dir",
        text(&place.state()),
    ]);
    assert!(
        doctor
            .stdout
            .contains("of format 2; the next start keeps a copy of it"),
        "{doctor:?}"
    );
    let daemon = Builder::at(&place).start();
    daemon.wait_log(&format!("the store has format 2 and is brought to {FORMAT}"));
    assert_eq!(daemon.get("/version").json()["schema"], FORMAT);
    assert_eq!(
        std::fs::read_to_string(place.state().join("format")).unwrap(),
        format!("{FORMAT}\n")
    );
    let ended = facts["runs"].as_array().unwrap().iter();
    let ended: Vec<&Value> = ended.filter(|fact| !fact["ended_at"].is_null()).collect();
    assert!(ended.len() > 20);
    for fact in ended {
        let seen = run(&daemon, fact["id"].as_str().unwrap());
        for name in ["job", "state", "reason", "created_at", "ended_at"] {
            assert_eq!(seen[name], fact[name], "{name}: {seen}");
        }
        assert_eq!(
            seen["steps"][0]["attempts"].as_array().unwrap().len(),
            fact["attempts"].as_array().unwrap().len()
        );
    }
    let id = run_id(&start(&daemon, "work"));
    let done = wait_until(Duration::from_secs(20), || {
        (run_state(&daemon, &id) == "succeeded").then_some(())
    });
    assert!(done.is_some());
    let copies = std::fs::read_dir(place.state()).unwrap();
    let copies: Vec<_> = { copies.map(|entry| entry.unwrap().path()) }
        .filter(|path| text(path).contains("ductor.format-2."))
        .collect();
    assert_eq!(copies.len(), 1, "{copies:?}");
    let verified = ductor(&["--json", "restore", text(&copies[0]), "--verify-only"]).expect_status(0);
    assert_eq!(verified.json()["data"]["format"], 2);
}

/// Nothing of a newer directory is touched, whoever looks at it.
#[test]
fn a_newer_directory_is_refused_by_all() {
    let place = Place::new("jobs: []\n");
    let mut daemon = Builder::at(&place).leave_store_unchecked().start();
    assert_eq!(daemon.term(), Some(0));
    drop(daemon);
    let (state, config, store) = (place.state(), place.config(), place.state().join("ductor.redb"));
    ductor::store::migrate::pretend_format(&store, 99).unwrap();
    std::fs::write(state.join("format"), "99\n").unwrap();
    let before = std::fs::read(&store).unwrap();
    let (file, new) = (place.folder().join("b"), place.folder().join("new"));
    let at = ["--config", text(&config), "--state-dir", text(&state)];
    let lines: [(&[&str], i32); 5] = [
        (
            &["serve", at[0], at[1], at[2], at[3], "--listen", "127.0.0.1:0"],
            1,
        ),
        (&["doctor", at[0], at[1], at[2], at[3]], 1),
        (&["backup", "--to", text(&file), at[0], at[1], at[2], at[3]], 1),
        (&["restore", text(&store), "--verify-only"], 1),
        (&["restore", text(&store), "--into", text(&new)], 1),
    ];
    for (line, status) in lines {
        let said = ductor(line).expect_status(status);
        let said = said.stdout + &said.stderr;
        assert!(
            said.contains(&format!("has format 99; this ductor reads up to {FORMAT}")),
            "{line:?}: {said}"
        );
        assert!(before == std::fs::read(&store).unwrap(), "{line:?} has written");
    }
    assert!(!file.exists() && !new.exists());
}
