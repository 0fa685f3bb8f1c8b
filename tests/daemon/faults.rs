//! What a bad disk, a bad file or a second daemon does: its own clear error, and everything else goes on.

use std::time::Duration;

use serde_json::json;

use super::support::{Builder, Client, Daemon, Output, PATIENCE, Place, command, ductor, wait_until};
use super::ways::{ended, folder, lines, lives, run, run_id, start};

fn place_with(text: &str) -> Place {
    let place = Place::new("jobs: []\n");
    place.write_config(&text.replace("FOLDER", &folder(&place)));
    place
}

fn failing(place: &Place) -> (Daemon, std::path::PathBuf) {
    let fail = place.write("fail", "");
    let daemon = Builder::at(place)
        .env("DUCTOR_FAIL", format!("@{}", fail.display()))
        .start();
    (daemon, fail)
}

const HOLD: &str = concat!(
    "pools: {p: {slots: 1}}\njobs:\n",
    "  - {name: hold, pool: p, killTimeout: 2, command: 'echo $$ >> FOLDER/pids; trap \"echo term >> FOLDER/term\" TERM; while true; do sleep 0.1; done'}\n",
    "  - {name: quick, pool: p, command: 'true'}\n",
);

#[test]
fn node_name_taken() {
    let place = place_with("node: {name: alpha}\njobs: []\n");
    let first = Builder::at(&place).start();
    let refused = Builder::at(&place)
        .leave_store_unchecked()
        .try_start()
        .err()
        .expect("the name is taken");
    assert_eq!(refused.status, Some(5), "{refused:?}");
    let sentence = format!(
        "node name 'alpha' is in use by a running daemon (pid {})",
        first.pid()
    );
    assert!(format!("{refused:?}").contains(&sentence), "{refused:?}");
}

#[test]
fn a_port_in_use_is_refused_before_the_state_is_touched() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let place = place_with("jobs: []\n");
    let address = taken.local_addr().unwrap().to_string();
    let refused = ductor(&[
        "serve",
        "--config",
        place.config().to_str().unwrap(),
        "--state-dir",
        place.state().to_str().unwrap(),
        "--listen",
        &address,
    ]);
    assert_eq!(refused.status, 1, "{refused:?}");
    assert!(
        refused.stderr.contains(&format!("cannot listen on {address}")),
        "{refused:?}"
    );
    assert!(!place.state().join("ductor.redb").exists());
}

#[test]
fn a_newer_store_is_refused_in_words() {
    let place = place_with("jobs: []\n");
    let mut daemon = Builder::at(&place).start();
    assert_eq!(daemon.term(), Some(0));
    drop(daemon);
    ductor::store::migrate::pretend_format(&place.state().join("ductor.redb"), 99).unwrap();
    let refused = Builder::at(&place)
        .leave_store_unchecked()
        .try_start()
        .err()
        .expect("too new");
    assert_eq!(refused.status, Some(1), "{refused:?}");
    assert!(
        format!("{refused:?}").contains(&format!(
            "has format 99; this ductor reads up to {}",
            ductor::store::migrate::FORMAT
        )),
        "{refused:?}"
    );
}

#[test]
fn an_unusable_state_directory_is_refused() {
    let place = place_with("jobs: []\n");
    place.write("a-file", "");
    let below = place.folder().join("a-file").join("state");
    let refused = ductor(&[
        "serve",
        "--config",
        place.config().to_str().unwrap(),
        "--state-dir",
        below.to_str().unwrap(),
        "--listen",
        "127.0.0.1:0",
    ]);
    assert_eq!(refused.status, 1, "{refused:?}");
    assert!(refused.stderr.contains("cannot be used"), "{refused:?}");
}

#[test]
fn renewal_failure_tolerated() {
    let place = place_with(HOLD);
    let (daemon, fail) = failing(&place);
    let id = run_id(&start(&daemon, "hold"));
    wait_until(Duration::from_secs(10), || {
        (lines(&place, "pids").len() == 1).then_some(())
    })
    .unwrap();
    std::fs::write(&fail, "renew.before=error\n").unwrap();
    daemon.wait_log("pool p: renewal failed");
    // Several more tries fail; then the store answers again.
    daemon.wait("more failed renewals", || {
        let text = daemon.get("/metrics").text();
        let line = text
            .lines()
            .find(|line| line.starts_with("ductor_slot_renewal_failures_total "))?;
        line.rsplit(' ')
            .next()?
            .parse::<f64>()
            .ok()
            .filter(|count| *count >= 8.0)
    });
    std::fs::write(&fail, "").unwrap();
    daemon.wait("a renewal", || {
        let text = daemon.get("/metrics").text();
        let line = text
            .lines()
            .find(|line| line.starts_with("ductor_lease_renewals_total{result=\"ok\"}"))?;
        line.rsplit(' ')
            .next()?
            .parse::<f64>()
            .ok()
            .filter(|count| *count >= 1.0)
    });
    assert_eq!(super::ways::run_state(&daemon, &id), "running");
    assert!(lives(&lines(&place, "pids")[0]));
    assert_eq!(
        (lines(&place, "pids").len(), lines(&place, "term").len()),
        (1, 0),
        "nobody ran it again or ended it"
    );
    daemon.post("/jobs/hold/cancel", &json!({})).expect_status(200);
    ended(&daemon, &id);
}

#[test]
fn lease_unkeepable_kills_before_end() {
    let place = place_with(HOLD);
    let (daemon, fail) = failing(&place);
    start(&daemon, "hold");
    wait_until(Duration::from_secs(10), || {
        (lines(&place, "pids").len() == 1).then_some(())
    })
    .unwrap();
    std::fs::write(&fail, "renew.before=error\n").unwrap();
    let pid = lines(&place, "pids")[0].clone();
    let lease_end = super::ways::entries(&daemon, "p", "running")[0]["claim"]["leaseUntil"]
        .as_str()
        .unwrap()
        .to_owned();
    let gone = wait_until(Duration::from_secs(45), || (!lives(&pid)).then(now)).expect("the process ends");
    let end = ductor::words::time::parse_instant(&lease_end).unwrap().0;
    assert!(
        gone <= end + 1_000,
        "gone at {gone}, the lease seen first ended at {end}"
    );
    assert_eq!(lines(&place, "term").len(), 1, "SIGTERM came first");
    daemon.wait_log("cancelling its process");
    std::fs::write(&fail, "").unwrap();
    // It is put back and runs again.
    wait_until(Duration::from_secs(40), || {
        (lines(&place, "pids").len() == 2).then_some(())
    })
    .unwrap();
    daemon.post("/jobs/hold/cancel", &json!({})).expect_status(200);
}

fn now() -> i64 {
    use ductor::words::time::{Clock, SystemClock};
    SystemClock.now().wall.0
}

#[test]
fn o1_a_full_disk_answers_503_and_recovers() {
    let place = place_with(HOLD);
    let (daemon, fail) = failing(&place);
    let before = run_id(&start(&daemon, "quick"));
    ended(&daemon, &before);
    std::fs::write(&fail, "store.commit=enospc\n").unwrap();
    let refused = daemon.post("/jobs/quick/start", &json!({}));
    assert_eq!(refused.status, 503, "{refused:?}");
    assert_eq!(refused.json()["error"], "pool state is unavailable");
    let text = refused.text();
    assert!(
        !text.contains("space") && !text.contains(&folder(&place)),
        "no errno, no path: {text}"
    );
    std::fs::write(&fail, "").unwrap();
    let after = daemon.wait("the store again", || {
        let answer = daemon.post("/jobs/quick/start", &json!({}));
        (answer.status == 202).then(|| run_id(&answer.json()))
    });
    assert_eq!(ended(&daemon, &after)["state"], "succeeded");
    assert_eq!(run(&daemon, &before)["state"], "succeeded", "nothing was lost");
}

/// Found by `ductor torture` on a small tmpfs: what could not be logged ended the thread that wanted to log it.
#[test]
fn a_log_on_a_full_disk_does_not_end_the_store() {
    let place = place_with(HOLD);
    let fail = place.write("fail", "");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut serve = command();
    serve
        .args(["serve", "--listen", "127.0.0.1:0", "--config"])
        .arg(place.config())
        .arg("--state-dir")
        .arg(place.state());
    serve.env("DUCTOR_FAIL", format!("@{}", fail.display()));
    let mut child = serve
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(full)
        .spawn()
        .unwrap();
    let output = Output::collect(child.stdout.take().unwrap(), std::io::empty());
    let line = output.wait_for("http://", PATIENCE).expect("the address");
    let client = Client::new(&line[line.find("http://").unwrap()..]);
    let quick = || client.request("POST", "/jobs/quick/start", &[], b"").unwrap();
    std::fs::write(&fail, "store.commit=enospc\n").unwrap();
    assert_eq!(quick().status, 503);
    std::fs::write(&fail, "").unwrap();
    let again = wait_until(PATIENCE, || (quick().status == 202).then_some(()));
    std::process::Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status()
        .unwrap();
    let status = wait_until(PATIENCE, || child.try_wait().unwrap());
    child.kill().ok();
    again.expect("the store again");
    // Nor is a refusal another exit code because it cannot be told.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut refused = command();
    refused
        .args(["serve", "--listen", &address, "--config"])
        .arg(place.config());
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    assert_eq!(refused.stderr(full).status().unwrap().code(), Some(1));
    assert_eq!(status.and_then(|status| status.code()), Some(0));
}

#[test]
fn pool_unreadable_fails_closed() {
    use ductor::store::tables::SLOT_POOLS;
    use ductor::words::ids::TenantId;
    use ductor::words::names::SlotPoolName;
    let place = place_with(concat!(
        "pools: {bad: {slots: 1}, good: {slots: 1}}\njobs:\n",
        "  - {name: b, pool: bad, command: 'true'}\n  - {name: g, pool: good, command: 'true'}\n",
    ));
    let mut daemon = Builder::at(&place).leave_store_unchecked().start();
    let entry = start(&daemon, "b");
    ended(&daemon, &run_id(&entry));
    assert_eq!(daemon.term(), Some(0));
    let key = (TenantId::DEFAULT, SlotPoolName::new("bad").unwrap());
    let damage = [200u8, 1, 2, 3];
    with_store(&place, |store| {
        let key = key.clone();
        store
            .change_blocking("damage", move |tx| Ok(tx.damage(&SLOT_POOLS, &key, &damage)?))
            .unwrap();
    });
    let daemon = daemon.restart();
    let queue_id = entry["queueId"].as_str().unwrap();
    for answer in [
        daemon.post("/jobs/b/start", &json!({})),
        daemon.get("/pools"),
        daemon.post(&format!("/pools/bad/queue/{queue_id}/cancel"), &json!({})),
    ] {
        assert_eq!(answer.status, 503, "{answer:?}");
        assert_eq!(answer.json()["error"], "pool state is unavailable");
    }
    assert_eq!(
        ended(&daemon, &run_id(&start(&daemon, "g")))["state"],
        "succeeded"
    );
    let mut daemon = daemon;
    assert_eq!(daemon.term(), Some(0));
    with_store(&place, |store| {
        use ductor::store::Rows;
        let found = store.read(|tx| tx.get(&SLOT_POOLS, &key));
        assert!(
            found.unwrap_err().to_string().contains("version 200"),
            "the bytes are as they were"
        );
    });
}

fn with_store(place: &Place, work: impl FnOnce(&ductor::store::Store)) {
    use ductor::store::{Store, StoreOptions};
    use ductor::words::time::SystemClock;
    let store = Store::open(
        StoreOptions::in_directory(&place.state()),
        std::sync::Arc::new(SystemClock),
    )
    .unwrap();
    work(&store);
    assert!(store.close(Duration::from_secs(5)));
}

#[test]
fn a_state_directory_that_is_gone_is_noticed() {
    let place = place_with("pools: {p: {slots: 1}}\njobs:\n  - {name: a, pool: p, command: 'true'}\n");
    let daemon = Builder::at(&place).start();
    ended(&daemon, &run_id(&start(&daemon, "a")));
    let away = place.folder().join("away");
    std::fs::rename(place.state(), &away).unwrap();
    let refused = daemon.post("/jobs/a/start", &json!({}));
    assert_eq!(refused.status, 503, "{refused:?}");
    daemon.wait_log("the store file is no longer in the state directory");
    daemon.wait("it is not ready", || {
        (daemon.get("/readyz").status == 503).then_some(())
    });
    std::fs::rename(&away, place.state()).unwrap();
    let id = daemon.wait("the store again", || {
        let answer = daemon.post("/jobs/a/start", &json!({}));
        (answer.status == 202).then(|| run_id(&answer.json()))
    });
    assert_eq!(ended(&daemon, &id)["state"], "succeeded");
}

#[test]
fn a_store_that_is_gone_is_never_replaced_by_an_empty_one() {
    let place = place_with("jobs: []\n");
    let mut daemon = Builder::at(&place).start();
    assert_eq!(daemon.term(), Some(0));
    drop(daemon);
    let file = place.state().join("ductor.redb");
    for empty in [false, true] {
        std::fs::remove_file(&file).unwrap();
        if empty {
            std::fs::write(&file, "").unwrap();
        }
        let refused = Builder::at(&place)
            .leave_store_unchecked()
            .try_start()
            .err()
            .expect("no store");
        assert_eq!(refused.status, Some(1), "{refused:?}");
        assert!(format!("{refused:?}").contains("missing or empty although this state directory was used"));
        std::fs::write(&file, "x").unwrap();
    }
    std::fs::write(place.state().join("format"), "x\n").unwrap();
    let refused = Builder::at(&place)
        .leave_store_unchecked()
        .try_start()
        .err()
        .expect("no format");
    assert!(
        format!("{refused:?}").contains("`format` does not hold a number"),
        "{refused:?}"
    );
}

#[test]
fn a_head_that_does_not_come_ends_its_connection() {
    use std::io::{Read, Write};
    let daemon = Daemon::start("jobs:\n  - {name: a, command: 'true'}\n");
    let authority = daemon.client().authority().to_owned();
    let mut silent: Vec<std::net::TcpStream> = (0..100)
        .map(|_| {
            let mut stream = std::net::TcpStream::connect(&authority).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\n").unwrap();
            stream
        })
        .collect();
    assert_eq!(
        ended(&daemon, &run_id(&start(&daemon, "a")))["state"],
        "succeeded"
    );
    for stream in &mut silent {
        stream.set_read_timeout(Some(Duration::from_secs(45))).unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("closed by the daemon");
    }
}

#[test]
fn a_child_is_refused_a_lock_that_its_parent_holds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("probe.lock");
    let ask = || {
        let child = std::process::Command::new(env!("CARGO_BIN_EXE_ductor"))
            .arg(ductor::store::coordination::PROBE_WORD)
            .arg(&path)
            .status();
        child.unwrap().code()
    };
    assert_eq!(ask(), Some(1), "nobody holds it");
    let directory = ductor::store::coordination::StateDirectory::prepare(folder.path(), false).unwrap();
    let faults = ductor::os::failpoint::Faults::default();
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_ductor"));
    assert!(directory.locks_are_trustworthy(&faults, Some(program)));
    assert!(!directory.locks_are_trustworthy(&faults, Some(std::path::Path::new("/bin/true"))));
}

/// `workflows.md` 6: with too little room on the disk no new run begins, by hand or by schedule; what runs goes on; what is old
/// goes; and it begins again by itself.
#[test]
fn without_room_on_the_disk_no_run_begins_and_what_runs_goes_on() {
    let place = place_with(concat!(
        "state: {path: ./state, lowDiskBytes: 1MiB}\njobs:\n",
        "  - {name: long, command: 'while [ ! -e FOLDER/go ]; do sleep 0.05; done'}\n",
        "  - {name: quick, command: 'true'}\n",
        "  - {name: often, command: 'true', schedule: '@every 1s'}\n",
    ));
    let (daemon, fail) = failing(&place);
    let quick = || daemon.post("/jobs/quick/start", &json!({}));
    let long = run_id(&start(&daemon, "long"));
    std::fs::write(&fail, "disk.free=1000\n").unwrap();
    let refused = daemon.wait("that no run begins", || {
        let answer = quick();
        (answer.status == 503).then_some(answer)
    });
    assert!(refused.text().contains("too little room"), "{refused:?}");
    let fires = daemon.wait("a due moment that is skipped for it", || {
        let fires = daemon.get("/jobs/often/fires").text();
        fires.contains("no_room").then_some(fires)
    });
    assert!(fires.contains("too little room"), "{fires}");
    place.write("go", "");
    assert_eq!(ended(&daemon, &long)["state"], "succeeded");
    std::fs::write(&fail, "").unwrap();
    daemon.wait("that runs begin again", || (quick().status == 200).then_some(()));
}
