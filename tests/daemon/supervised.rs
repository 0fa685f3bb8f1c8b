//! Under a supervisor that speaks systemd's notify protocol: ready, alive, reload, drain.

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use super::support::{Builder, Place, wait_until};
use super::ways::{ended, run_id, start};

/// Stands where systemd would.
struct Supervisor {
    socket: UnixDatagram,
    heard: Vec<String>,
}

impl Supervisor {
    fn at(place: &Place) -> Supervisor {
        let socket = UnixDatagram::bind(place.folder().join("notify")).unwrap();
        Supervisor {
            socket,
            heard: Vec::new(),
        }
    }

    /// The next message; `None` after so long a silence.
    fn next(&mut self, patience: Duration) -> Option<String> {
        let mut bytes = [0; 4096];
        self.socket.set_read_timeout(Some(patience)).unwrap();
        match self.socket.recv(&mut bytes) {
            Ok(length) => {
                let text = String::from_utf8(bytes[..length].to_vec()).unwrap();
                self.heard.push(text.clone());
                Some(text)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Waits for a message that begins so.
    #[track_caller]
    fn hears(&mut self, begin: &str) -> String {
        for _ in 0..200 {
            match self.next(Duration::from_secs(20)) {
                Some(text) if text.starts_with(begin) => return text,
                Some(_) => {}
                None => break,
            }
        }
        panic!("never heard {begin:?}, but {:?}", self.heard);
    }
}

const CONFIG: &str = concat!(
    "shutdown: {drainTimeout: 30}\n",
    "jobs:\n",
    "  - {name: asks, command: 'env'}\n",
    "  - {name: slow, killTimeout: 1, command: 'touch FOLDER/begun; while [ ! -e FOLDER/end ]; do sleep 0.05; done'}\n",
);

#[test]
fn a_supervisor_is_told_what_goes_on() {
    let place = Place::new("jobs: []\n");
    let folder = place.folder().display().to_string();
    let config = CONFIG.replace("FOLDER", &folder);
    place.write_config(&config);
    let mut supervisor = Supervisor::at(&place);
    let mut daemon = Builder::at(&place)
        .env("NOTIFY_SOCKET", place.folder().join("notify"))
        .env("WATCHDOG_USEC", "1000000")
        .start();
    assert_eq!(supervisor.hears("").trim_end(), "READY=1", "before anything else");
    supervisor.hears("STATUS=All is well");
    supervisor.hears("WATCHDOG=1");

    let run = run_id(&start(&daemon, "asks"));
    ended(&daemon, &run);
    let log = daemon
        .get(&format!("/api/runs/{run}/steps/main/attempts/1/log"))
        .text();
    assert!(log.contains("PATH="), "it prints its variables: {log}");
    for name in ["NOTIFY_SOCKET", "WATCHDOG_USEC"] {
        assert!(!log.contains(name), "a job could speak for the daemon: {log}");
    }

    place.write_config(&config.replace("name: asks", "nmae: asks"));
    daemon.signal("HUP");
    let reloading = supervisor.hears("RELOADING=1");
    let usec = reloading.trim_end().strip_prefix("RELOADING=1\nMONOTONIC_USEC=");
    assert!(
        usec.is_some_and(|usec| usec.parse::<u64>().is_ok()),
        "{reloading:?}"
    );
    supervisor.hears("READY=1");
    supervisor.hears("STATUS=The last reload was rejected");
    place.write_config(&config);

    start(&daemon, "slow");
    daemon.wait("it runs", || place.read("begun"));
    daemon.signal("TERM");
    supervisor.hears("STOPPING=1");
    assert_eq!(
        supervisor.hears("EXTEND_TIMEOUT_USEC=").trim_end(),
        "EXTEND_TIMEOUT_USEC=30000000"
    );
    supervisor.hears("STATUS=Draining: 1 still running");
    daemon.wait_log("waiting for 1 commands: slow");
    place.write("end", "");
    assert_eq!(daemon.wait_exit(), Some(0));
}

/// Its socket holds a few messages only, and then a send waits for a reader: the daemon must not.
#[test]
fn a_supervisor_that_does_not_read_holds_nobody_up() {
    let place = Place::new("jobs:\n  - {name: asks, command: 'true'}\n");
    let supervisor = Supervisor::at(&place);
    let filler = UnixDatagram::unbound().unwrap();
    filler.set_nonblocking(true).unwrap();
    let full = (0..10_000).any(|_| {
        filler
            .send_to(b"FILL=1", place.folder().join("notify"))
            .is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    });
    assert!(full, "a socket that takes anything");
    let mut daemon = Builder::at(&place)
        .env("NOTIFY_SOCKET", place.folder().join("notify"))
        .env("WATCHDOG_USEC", "100000")
        .start();
    for _ in 0..4 {
        daemon.signal("HUP");
        let run = run_id(&start(&daemon, "asks"));
        ended(&daemon, &run);
    }
    assert_eq!(daemon.term(), Some(0));
    drop(supervisor);
}

#[test]
fn a_store_that_does_not_answer_is_no_sign_of_life() {
    let place = Place::new("jobs: []\n");
    let plan = place.write("plan", "");
    let mut supervisor = Supervisor::at(&place);
    let daemon = Builder::at(&place)
        .env("NOTIFY_SOCKET", place.folder().join("notify"))
        .env("WATCHDOG_USEC", "1000000")
        .fail_at(&format!("@{}", plan.display()))
        .start();
    supervisor.hears("WATCHDOG=1");
    place.write("plan", "store.read=error\n");
    supervisor.hears("STATUS=Not ready");
    // Alive, it would speak twice in this time.
    let silence = wait_until(Duration::from_secs(20), || {
        supervisor
            .next(Duration::from_millis(1500))
            .is_none()
            .then_some(())
    });
    assert!(
        silence.is_some(),
        "it goes on saying that it lives: {:?}",
        supervisor.heard
    );
    place.write("plan", "");
    supervisor.hears("WATCHDOG=1");
    supervisor.hears("STATUS=All is well");
    drop(daemon);
}

#[test]
fn the_shipped_unit_fits_the_daemon() {
    let unit = include_str!("../../packaging/ductor.service");
    let lines: Vec<&str> = unit.lines().collect();
    for line in [
        "Type=notify",
        "ExecReload=/bin/kill -HUP $MAINPID",
        "StateDirectory=ductor",
        "KillMode=mixed",
        "Delegate=yes",
        "WatchdogSec=60",
        "#LoadCredential=api-token:/etc/ductor/api-token",
    ] {
        assert!(lines.contains(&line), "{line} is missing");
    }
    // What it starts is a command line that this binary takes.
    let start = lines
        .iter()
        .find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/ductor "));
    let words: Vec<&str> = start.unwrap().split(' ').chain(["--help"]).collect();
    super::support::ductor(&words).expect_status(0);
}
