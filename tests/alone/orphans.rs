//! Reaping as PID 1 does: every child here that is not owned is fair game.

use std::process::Command;
use std::time::Duration;

use super::workshop::{exists, launch_shell, until};
use ductor::os::children::{reap_orphans, sigchld_is_ignored};
use ductor::os::proc::state_of;

#[tokio::test]
async fn orphans_are_reaped_and_the_children_of_others_are_not() {
    assert!(!sigchld_is_ignored().unwrap());
    assert_eq!(reap_orphans().unwrap(), 0);
    let owned = launch_shell("exit 5").await;
    let owned_pid = owned.identity().pid;
    let orphan = Command::new("true").spawn().unwrap().id();
    until("both are zombies", || {
        [owned_pid, orphan].iter().all(|&pid| state_of(pid) == Some('Z'))
    })
    .await;
    assert_eq!(reap_orphans().unwrap(), 1);
    assert!(!exists(orphan));
    assert_eq!(state_of(owned_pid), Some('Z'));
    assert_eq!(owned.wait_exit().await.unwrap().code, 5);
    let mut owned = owned;
    owned.end_group(Duration::ZERO).await;
    assert!(!exists(owned_pid));
    assert_eq!(reap_orphans().unwrap(), 0);
}
