//! A test that cannot fail is worth nothing: each kind of wrong is planted, and must be found. And what it may not touch.

use std::path::Path;
use std::process::Stdio;

use super::support::{Answered, Output, PATIENCE, command, ductor, wait_until};

fn torture(site: &Path, more: &[&str]) -> Answered {
    let site = site.to_str().unwrap();
    let mut words = vec!["torture", "--dir", site, "--daemons", "1", "--rounds", "0"];
    words.extend(more);
    ductor(&words)
}

#[track_caller]
fn is_found(plant: &str, sentence: &str) {
    let folder = tempfile::tempdir().unwrap();
    let site = folder.path().join("site");
    let told = torture(&site, &["--plant", plant]).expect_status(1);
    assert!(told.stdout.contains("LOST: "), "{}", told.stdout);
    let text = told.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(sentence), "{}", told.stdout);
    assert!(text.contains("stays as it is"), "{}", told.stdout);
    assert!(
        site.join("state").join("ductor.redb").exists(),
        "it is left to be looked at"
    );
    // And it can be taken over.
    let clean = torture(&site, &[]).expect_status(0);
    assert!(clean.stdout.contains("Nothing lost"), "{}", clean.stdout);
}

#[test]
fn a_planted_overlap_is_found() {
    is_found("overlap", "two live copies of this run");
}

#[test]
fn a_planted_lost_start_is_found() {
    is_found(
        "lost-start",
        "of job small was acknowledged (key planted) and is not in the store",
    );
}

#[test]
fn a_planted_slot_overrun_is_found() {
    is_found("slot-overrun", "pool planted: more than its 3 slots in use");
}

#[test]
fn a_planted_old_fence_is_found() {
    is_found("old-fence", "its fence is not above the last one, 7");
}

#[test]
fn a_directory_of_somebody_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("thesis"), "mine").unwrap();
    let refused = torture(folder.path(), &[]).expect_status(5);
    assert!(
        refused.stderr.contains("was not made by a torture"),
        "{}",
        refused.stderr
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn an_interrupt_ends_every_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let site = folder.path().join("site");
    let mut torture = command();
    torture
        .args(["torture", "--for", "10m", "--seed", "1", "--dir"])
        .arg(&site);
    torture
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = torture.spawn().unwrap();
    let output = Output::collect(child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let url = || std::fs::read_to_string(site.join("logs").join("a.out")).ok();
    wait_until(PATIENCE, || url().filter(|text| text.contains("http://"))).expect("a daemon");
    let pid = child.id().to_string();
    std::process::Command::new("kill")
        .args(["-INT", &pid])
        .status()
        .unwrap();
    let status = wait_until(PATIENCE, || child.try_wait().unwrap()).expect("its end");
    assert_eq!(status.code(), Some(130), "{output}");
    let mark = site.canonicalize().unwrap().display().to_string();
    let left = || ductor::os::proc::marked_processes("TORTURE_SITE", &mark).unwrap();
    wait_until(PATIENCE, || left().is_empty().then_some(())).expect("no process is left");
}
