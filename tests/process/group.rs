//! Ending groups: our own, with and without a leader, and those that a dead daemon left behind.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::workshop::{bounded, exe, exists, launch_shell, lives, pump_task, shell, until};
use ductor::os::proc::{self, ProcessIdentity, group_members, identity_of};
use ductor::worker::process::{GroupEnd, Running, Shim, StrangerEnd, close_after, end_stranger};
use tokio_util::sync::CancellationToken;

const LONG: Duration = Duration::from_secs(15);

/// Waits until the group has `count` living members and the marker file exists.
async fn settled(group: u32, count: usize) -> Vec<ProcessIdentity> {
    until("the group is complete", || {
        group_members(group).unwrap().len() == count
    })
    .await;
    group_members(group).unwrap()
}

async fn file_appears(path: &std::path::Path) {
    until("the command is ready", || path.exists()).await;
}

#[tokio::test]
async fn timeout_kills_grandchildren() {
    let mut running = launch_shell("sleep 300 & sleep 300 & sleep 300").await;
    let members = settled(running.identity().group, 4).await;
    assert_eq!(bounded(running.end_group(LONG)).await, GroupEnd::Gone);
    assert!(!members.iter().any(|member| lives(member.pid)));
    assert_eq!(running.exit().unwrap().code, -15);
    assert!(!exists(running.identity().pid), "reaped");
    assert_eq!(
        running.end_group(LONG).await,
        GroupEnd::Gone,
        "may be asked again"
    );
}

#[tokio::test]
async fn grandchildren_left_by_an_exited_leader_are_ended() {
    let mut running = launch_shell("sleep 300 & exit 3").await;
    assert_eq!(bounded(running.wait_exit()).await.unwrap().code, 3);
    let members = settled(running.identity().group, 1).await;
    assert!(exists(running.identity().pid), "the leader is not reaped yet");
    assert_eq!(bounded(running.end_group(LONG)).await, GroupEnd::Gone);
    assert!(!lives(members[0].pid));
    assert_eq!(
        bounded(running.wait_exit()).await.unwrap().code,
        3,
        "the exit is kept"
    );
}

#[tokio::test]
async fn a_command_alone_is_cleared_at_once() {
    for _ in 0..20 {
        let mut running = launch_shell("exit 0").await;
        bounded(running.wait_exit()).await.unwrap();
        let start = Instant::now();
        assert_eq!(running.end_group(LONG).await, GroupEnd::Gone);
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
        assert!(!exists(running.identity().pid));
    }
}

#[tokio::test]
async fn sigterm_then_grace_then_kill() {
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    let script = format!("trap '' TERM; : > {}; while :; do sleep 1; done", ready.display());
    let mut running = launch_shell(&script).await;
    file_appears(&ready).await;
    let start = Instant::now();
    let grace = Duration::from_millis(400);
    assert_eq!(bounded(running.end_group(grace)).await, GroupEnd::Gone);
    assert!(
        start.elapsed() >= grace && start.elapsed() < grace + Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(running.exit().unwrap().code, -9);
}

#[tokio::test]
async fn a_command_that_traps_sigterm_ends_cleanly() {
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    let script = format!(
        "trap 'exit 42' TERM; : > {}; while :; do sleep 0.05; done",
        ready.display()
    );
    let mut running = launch_shell(&script).await;
    file_appears(&ready).await;
    assert_eq!(bounded(running.end_group(LONG)).await, GroupEnd::Gone);
    assert_eq!(running.exit().unwrap().code, 42);
}

#[tokio::test]
async fn a_grandchild_that_ignores_sigterm_is_killed_after_its_leader_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    let script = format!(
        "(trap '' TERM; : > {}; while :; do sleep 1; done) & wait",
        ready.display()
    );
    let mut running = launch_shell(&script).await;
    file_appears(&ready).await;
    assert_eq!(
        bounded(running.end_group(Duration::from_millis(200))).await,
        GroupEnd::Gone
    );
    assert_eq!(running.exit().unwrap().code, -15);
    assert!(group_members(running.identity().group).unwrap().is_empty());
}

#[tokio::test]
async fn a_stopped_command_gets_its_sigterm() {
    let mut running = launch_shell("kill -STOP $$; exit 0").await;
    let pid = running.identity().pid;
    until("it has stopped", || proc::state_of(pid) == Some('T')).await;
    assert_eq!(bounded(running.end_group(LONG)).await, GroupEnd::Gone);
    assert_eq!(running.exit().unwrap().code, -15);
}

#[tokio::test]
async fn the_time_can_be_cut_while_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    let script = format!("trap '' TERM; : > {}; while :; do sleep 1; done", ready.display());
    let mut running = launch_shell(&script).await;
    file_appears(&ready).await;
    let patient = tokio::time::timeout(Duration::from_millis(100), running.end_group(Duration::MAX)).await;
    assert!(patient.is_err());
    assert_eq!(bounded(running.end_group(Duration::ZERO)).await, GroupEnd::Gone);
    assert_eq!(running.exit().unwrap().code, -9);
}

#[tokio::test]
async fn a_dropped_command_is_killed_and_reaped() {
    let running = launch_shell("sleep 300 & sleep 300").await;
    let members = settled(running.identity().group, 3).await;
    drop(running);
    until("all are gone", || !members.iter().any(|member| lives(member.pid))).await;
    until("the leader is reaped", || !exists(members[0].pid)).await;
}

#[tokio::test]
async fn a_child_that_left_the_group_and_holds_the_pipes_does_not_hold_us() {
    let mut running: Running = launch_shell("setsid sleep 300 & echo $!").await;
    let stop = CancellationToken::new();
    let task = pump_task(
        running.take_output().unwrap(),
        super::workshop::Collected::default(),
        &stop,
    );
    bounded(running.wait_exit()).await.unwrap();
    // Before it is in its own session it is a member of the group, and would be ended with it.
    let leader = running.identity().pid;
    until("it has left", || group_members(leader).unwrap().is_empty()).await;
    assert_eq!(bounded(running.end_group(LONG)).await, GroupEnd::Gone);
    let start = Instant::now();
    let grace = Duration::from_millis(200);
    let (sink, report) = close_after(task, &stop, grace).await.unwrap();
    assert!(
        start.elapsed() < grace + Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
    assert!(report.closed_early);
    let escaped: u32 = sink.stdout().trim().parse().unwrap();
    assert!(lives(escaped));
    assert!(
        Command::new("kill")
            .args(["-KILL", &escaped.to_string()])
            .status()
            .unwrap()
            .success()
    );
}

// Strangers. The test plays init for them: they are its children, but nobody of ductor's own holds them.

fn marks(fence: u64) -> Vec<(String, String)> {
    vec![
        ("DUCTOR_ENTRY_ID".to_owned(), "entry-1".to_owned()),
        ("DUCTOR_FENCE".to_owned(), fence.to_string()),
    ]
}

struct Stranger {
    child: Child,
    identity: ProcessIdentity,
}

impl Stranger {
    fn start(script: &str, fence: u64) -> Self {
        let mut command = Command::new("/bin/sh");
        command
            .arg("-c")
            .arg(script)
            .envs(marks(fence))
            .process_group(0)
            .stdin(Stdio::null());
        let child = command.spawn().unwrap();
        let identity = identity_of(child.id()).unwrap();
        Self { child, identity }
    }

    /// Whatever the test did not end.
    fn clear(mut self) {
        let group = format!("-{}", self.identity.group);
        let _gone = Command::new("kill")
            .args(["-KILL", "--", &group])
            .stderr(Stdio::null())
            .status();
        let _reaped = self.child.wait();
    }
}

fn other_start(identity: ProcessIdentity) -> ProcessIdentity {
    ProcessIdentity {
        start_ticks: identity.start_ticks - 1,
        ..identity
    }
}

#[tokio::test]
async fn a_stranger_with_a_living_leader_is_ended() {
    let mut stranger = Stranger::start("sleep 300 & sleep 300", 1);
    let members = settled(stranger.identity.group, 3).await;
    // No marks needed: the start time says it.
    assert_eq!(
        bounded(end_stranger(&stranger.identity, &[], LONG)).await,
        StrangerEnd::Gone
    );
    assert!(!members.iter().any(|member| lives(member.pid)));
    assert_eq!(stranger.child.wait().unwrap().signal(), Some(15));
    assert_eq!(
        bounded(end_stranger(&stranger.identity, &marks(1), LONG)).await,
        StrangerEnd::WasGone
    );
}

#[tokio::test]
async fn a_stranger_that_ignores_sigterm_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    let script = format!("trap '' TERM; : > {}; while :; do sleep 1; done", ready.display());
    let mut stranger = Stranger::start(&script, 2);
    file_appears(&ready).await;
    let end = bounded(end_stranger(
        &stranger.identity,
        &marks(2),
        Duration::from_millis(200),
    ))
    .await;
    assert_eq!(end, StrangerEnd::Gone);
    assert_eq!(stranger.child.wait().unwrap().signal(), Some(9));
}

#[tokio::test]
async fn leader_gone_children_alive() {
    let mut stranger = Stranger::start("sleep 300 & exit 0", 3);
    stranger.child.wait().unwrap();
    let members = settled(stranger.identity.group, 1).await;
    let wrong = bounded(end_stranger(&stranger.identity, &marks(4), LONG)).await;
    assert_eq!(wrong, StrangerEnd::WasGone, "the marks of another claim");
    assert!(lives(members[0].pid));
    assert_eq!(
        bounded(end_stranger(&stranger.identity, &[], LONG)).await,
        StrangerEnd::WasGone,
        "no marks"
    );
    assert!(lives(members[0].pid));
    assert_eq!(
        bounded(end_stranger(&stranger.identity, &marks(3), LONG)).await,
        StrangerEnd::Gone
    );
    assert!(!lives(members[0].pid));
}

#[tokio::test]
async fn pid_reused_is_not_signalled() {
    let stranger = Stranger::start("sleep 300 & sleep 300", 5);
    settled(stranger.identity.group, 3).await;
    let stored = other_start(stranger.identity);
    assert_eq!(
        bounded(end_stranger(&stored, &marks(6), LONG)).await,
        StrangerEnd::PidReused
    );
    assert_eq!(group_members(stranger.identity.group).unwrap().len(), 3);
    stranger.clear();
}

#[tokio::test]
async fn marks_in_the_environment_are_found_on_members_with_another_leader() {
    let mut stranger = Stranger::start("exec sleep 300", 7);
    let stored = other_start(stranger.identity);
    assert_eq!(
        bounded(end_stranger(&stored, &marks(7), LONG)).await,
        StrangerEnd::Gone
    );
    assert_eq!(stranger.child.wait().unwrap().signal(), Some(15));
}

#[tokio::test]
async fn numbers_that_mean_everybody_or_ourselves_are_never_signalled() {
    let own = identity_of(proc::own_pid()).unwrap();
    let end = bounded(end_stranger(&own, &[], Duration::ZERO)).await;
    assert!(matches!(end, StrangerEnd::WillNotEnd { .. }), "{end:?}");
    let nobody = ProcessIdentity {
        pid: u32::MAX,
        start_ticks: 1,
        group: u32::MAX,
    };
    assert_eq!(
        bounded(end_stranger(&nobody, &marks(1), LONG)).await,
        StrangerEnd::WasGone
    );
}

#[tokio::test]
async fn a_waiting_shim_of_a_dead_daemon_is_ended_by_its_identity() {
    let shim = Shim::spawn(exe()).unwrap();
    let identity = shim.identity();
    assert_eq!(
        bounded(end_stranger(&identity, &marks(1), LONG)).await,
        StrangerEnd::Gone
    );
    assert!(!shim.is_waiting());
    assert!(shim.launch(&shell("true")).await.is_err());
}
