//! Tables of cron under a daemon: what is good runs as cron ran it, what is faulty is told until it is mended.

use serde_json::Value;

use super::support::{Builder, Daemon, Place};
use super::ways::{ended, run_id, start};

const CONFIG: &str = concat!(
    // The verdict shall not hang on the disk of the machine.
    "state: {lowDiskBytes: 1}\n",
    "crontabs: [tab]\njobs:\n  - {name: own, command: 'true'}\n",
);

fn status(daemon: &Daemon) -> Value {
    daemon.get("/api/status").expect_status(200).json()["data"].clone()
}

fn output_of(daemon: &Daemon, job: &str) -> String {
    let run = run_id(&start(daemon, job));
    assert_eq!(ended(daemon, &run)["state"], "succeeded");
    let path = format!("/api/runs/{run}/steps/main/attempts/1/log");
    daemon.get(&path).expect_status(200).text()
}

fn names(daemon: &Daemon) -> Vec<String> {
    let config = daemon.get("/api/config").expect_status(200).json();
    let jobs = config["data"]["jobs"].as_array().unwrap();
    jobs.iter()
        .map(|job| job["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_line_runs_with_what_the_table_says() {
    let place = Place::new(CONFIG);
    let home = place.folder().display();
    let tab = format!(
        "HOME={home}\r\nGREETING = 'hi  there'\r\n# name: hello\r\n0 5 * * * echo \"$GREETING $(date +\\%F) $(pwd)\"\r\n1 5 * * * /bin/echo hi\r\n"
    );
    place.write("tab", &tab);
    let daemon = Builder::at(&place).start();
    assert_eq!(names(&daemon), ["own", "hello", "tab-5"]);
    let text = output_of(&daemon, "hello");
    assert!(text.contains("hi  there 20"), "{text}");
    assert!(text.contains(&home.to_string()), "{text}");
    assert!(!text.contains('\\') && !text.contains('\r'), "{text}");
    assert!(output_of(&daemon, "tab-5").contains("hi"));
}

#[test]
fn a_faulty_line_is_told_in_every_status_and_refuses_a_reload() {
    let place = Place::new(CONFIG);
    place.write("tab", "61 * * * * first\n# name: second\n0 5 * * * echo second\n");
    let daemon = Builder::at(&place).env("TZ", "America/New_York").start();
    assert_eq!(names(&daemon), ["own", "second"]);
    assert!(
        daemon.output().to_string().contains("tab:1:1"),
        "{}",
        daemon.output()
    );
    let verdict = "1 faulty line of a crontab does not run.";
    let shown = daemon.wait("the verdict", || {
        let shown = status(&daemon);
        (shown["verdict"] == verdict).then_some(shown)
    });
    let warnings = shown["configuration"]["warnings"].as_array().unwrap();
    let faulty = warnings
        .iter()
        .find(|warning| warning["severity"] == "warning")
        .unwrap();
    assert_eq!(
        (&faulty["pointer"], &faulty["code"]),
        (&"tab:1:1".into(), &"crontab/schedule".into())
    );
    let told = daemon.cli(&["status"]);
    assert!(
        told.stdout.contains("tab:1:1: minute: 61 is out of range"),
        "{told:?}"
    );
    let fires = shown["next_fires"].as_array().unwrap();
    let at = fires.iter().find(|fire| fire["job"] == "second").unwrap()["at"].to_string();
    // Five in the morning in New York is nine or ten in UTC.
    assert!(at.contains("T09:00") || at.contains("T10:00"), "{at}");

    let refused = daemon
        .request("POST", "/api/config:reload", &[], b"")
        .expect_status(422);
    assert_eq!(refused.json()["errors"][0]["pointer"], "tab:1:1");
    assert_eq!(names(&daemon), ["own", "second"]);

    place.write("tab", "1 * * * * first\n# name: second\n0 5 * * * echo second\n");
    let answer = daemon
        .request("POST", "/api/config:reload", &[], b"")
        .expect_status(200);
    assert_eq!(
        answer.json()["data"]["jobs"]["added"],
        serde_json::json!(["tab-1"])
    );
    assert!(
        status(&daemon)["verdict"]
            .as_str()
            .unwrap()
            .starts_with("All is well")
    );
}

#[test]
fn f5_an_edited_table_counts_at_the_reload_and_a_moved_line_is_another_job() {
    let place = Place::new(CONFIG);
    place.write("tab", "0 5 * * * a\n# name: kept\n0 6 * * * b\n");
    let daemon = Builder::at(&place).start();
    place.write(
        "tab",
        "# a comment moves all lines\n0 5 * * * a\n# name: kept\n0 7 * * * b\n",
    );
    assert_eq!(names(&daemon), ["own", "tab-1", "kept"]);
    let answer = daemon.cli(&["config", "reload"]).expect_status(0);
    for part in ["+ job tab-2", "- job tab-1", "kept"] {
        assert!(answer.stdout.contains(part), "{part}: {answer:?}");
    }
    assert_eq!(names(&daemon), ["own", "tab-2", "kept"]);
}
