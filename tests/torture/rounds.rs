//! A bounded share of the long run, with a seed that is printed: nothing may be lost.

use std::process::{Command, Stdio};

use serde_json::Value;

use super::support::{Answered, command};

/// Six rounds meet each kind of deed at least once.
const ROUNDS: &str = "6";

/// Another one in each run; `DUCTOR_TORTURE_SEED` repeats one.
fn seed() -> String {
    std::env::var("DUCTOR_TORTURE_SEED").unwrap_or_else(|_| {
        use ductor::words::time::{Clock, SystemClock};
        SystemClock.now().wall.0.rem_euclid(1_000_000).to_string()
    })
}

/// Runs it to its end, and shows everything if something was lost.
#[track_caller]
fn nothing_lost(mut command: Command, seed: &str) -> Value {
    println!("ductor torture --seed {seed}");
    let output = command.stdin(Stdio::null()).output().expect("start the binary");
    let answered = Answered {
        status: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    let told = answered.expect_status(0).json();
    assert_eq!(told["lost"], false, "{told}");
    told
}

#[test]
fn three_daemons_lose_nothing_in_six_rounds() {
    let folder = tempfile::tempdir().unwrap();
    let (site, seed) = (folder.path().join("site"), seed());
    let mut torture = command();
    torture
        .args(["torture", "--json", "--rounds", ROUNDS, "--seed", &seed, "--dir"])
        .arg(&site);
    let told = nothing_lost(torture, &seed);
    assert_eq!(
        (&told["rounds"], &told["daemons"]),
        (&6.into(), &3.into()),
        "{told}"
    );
    assert_eq!(told["damaged_copies"], 1, "{told}");
    for kind in [
        "kill",
        "kill_all",
        "freeze",
        "restart",
        "second_of_a_name",
        "reload",
        "broken_reload",
        "fault",
        "kill_at_a_point",
        "clock",
        "bad_locks",
    ] {
        assert!(told["deeds_by_kind"][kind].as_u64().is_some(), "{kind}: {told}");
    }
    let count = |name: &str| told[name].as_u64().unwrap();
    assert!(count("starts_acknowledged") > 30, "the load was no load: {told}");
    assert!(count("runs_ended") >= count("starts_acknowledged"), "{told}");
    assert!(count("executions_repeated") > 0, "no fault met a command: {told}");
    assert!(!site.exists(), "what was made for it goes with it");
}

#[test]
fn a_disk_that_is_really_full_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let seed = seed();
    // A mount in a namespace of its own ends with its last process, whatever happens here.
    let script = r#"mount -t tmpfs -o size=64m full "$1" && exec "$2" torture --json --rounds 3 --daemons 2 --seed "$3" --dir "$1""#;
    let program = command().get_program().to_owned();
    let mut inside = Command::new("unshare");
    inside.args(["--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    inside.arg(folder.path()).arg(&program).arg(&seed);
    let possible = Command::new("unshare")
        .args([
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            "mount -t tmpfs full \"$1\"",
            "sh",
        ])
        .arg(folder.path())
        .output();
    if !possible.is_ok_and(|output| output.status.success()) {
        println!("not tried: no small file system can be mounted here");
        return;
    }
    let told = nothing_lost(inside, &seed);
    let not_tried = told["not_tried"].to_string();
    assert!(!not_tried.contains("full disk"), "{told}");
    assert!(told["deeds_by_kind"]["disk_full"].as_u64().unwrap() > 0, "{told}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
