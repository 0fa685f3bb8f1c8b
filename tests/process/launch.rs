//! From a waiting shim to a command: gate, failure, environment, limits, user.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::workshop::{PATH, bounded, exe, exists, launch, list, run, shell, until};
use ductor::os::proc::identity_of;
use ductor::os::rlimits::Limit;
use ductor::os::user::{Credentials, is_root};
use ductor::worker::process::{GroupEnd, Shim};

#[test]
fn a_shim_without_a_message_exits_125() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    drop(ours);
    let shim = |stdin: Stdio| {
        Command::new(exe())
            .arg("__exec")
            .stdin(stdin)
            .status()
            .unwrap()
            .code()
    };
    assert_eq!(shim(OwnedFd::from(theirs).into()), Some(125));
    assert_eq!(shim(Stdio::null()), Some(125));
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    std::io::Write::write_all(&mut ours, &[200, 0, 0, 0, b'{']).unwrap();
    drop(ours);
    assert_eq!(shim(OwnedFd::from(theirs).into()), Some(125));
}

#[tokio::test]
async fn a_dropped_shim_ends_and_leaves_no_zombie() {
    let shims: Vec<Shim> = (0..5).map(|_| Shim::spawn(exe()).unwrap()).collect();
    let pids: Vec<u32> = shims.iter().map(|shim| shim.identity().pid).collect();
    assert!(shims.iter().all(Shim::is_waiting));
    drop(shims);
    until("all are reaped", || !pids.iter().any(|&pid| exists(pid))).await;
}

#[test]
fn a_shim_dropped_outside_the_runtime_is_reaped_too() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let shim = runtime.block_on(async { Shim::spawn(exe()).unwrap() });
    let pid = shim.identity().pid;
    drop(shim);
    runtime.block_on(until("it is reaped", || !exists(pid)));
}

#[tokio::test]
async fn identity_is_known_before_the_command_begins_and_stays() {
    let shim = Shim::spawn(exe()).unwrap();
    let identity = shim.identity();
    assert_eq!(identity.group, identity.pid);
    assert_eq!(identity_of(identity.pid), Some(identity));
    let mut running = shim.launch(&shell("sleep 300")).await.unwrap();
    assert_eq!(running.identity(), identity);
    assert_eq!(identity_of(identity.pid), Some(identity));
    assert_eq!(running.exit(), None);
    assert_eq!(running.end_group(Duration::from_secs(5)).await, GroupEnd::Gone);
    assert_eq!(running.exit().unwrap().code, -15);
    assert!(!exists(identity.pid));
}

#[tokio::test]
async fn what_cannot_start_says_why_and_has_run_nothing() {
    let mut no_folder = shell("true");
    no_folder.cwd = Some(PathBuf::from("/absent/folder"));
    let mut no_shell = shell("true");
    no_shell.program = ductor::worker::process::Program::Shell {
        shell: "/absent/sh".into(),
        script: "true".into(),
    };
    let mut bad_key = shell("true");
    bad_key.env.push(("A=B".to_owned(), String::new()));
    let mut bad_limit = shell("true");
    bad_limit.limits = vec![(Limit::OpenFiles, 1 << 60)];
    for (spec, text) in [
        (
            list(&["/absent/program", "x"]),
            "cannot execute '/absent/program': No such file or directory",
        ),
        (
            list(&["absent-program"]),
            "cannot execute 'absent-program': No such file or directory",
        ),
        (
            list(&["/etc/passwd"]),
            "cannot execute '/etc/passwd': Permission denied",
        ),
        (list(&[]), "command is empty"),
        (
            no_folder,
            "cannot enter working directory '/absent/folder': No such file or directory",
        ),
        (no_shell, "cannot execute '/absent/sh': No such file or directory"),
        (bad_key, "environment key 'A=B' is invalid"),
        (
            bad_limit,
            "cannot set resource limit openFiles to 1152921504606846976: ",
        ),
    ] {
        let shim = Shim::spawn(exe()).unwrap();
        let pid = shim.identity().pid;
        let failure = bounded(shim.launch(&spec)).await.unwrap_err();
        assert!(failure.message.starts_with(text), "{}", failure.message);
        until("the shim is reaped", || !exists(pid)).await;
    }
}

#[tokio::test]
async fn a_killed_shim_is_noticed() {
    let shim = Shim::spawn(exe()).unwrap();
    let pid = shim.identity().pid;
    assert!(
        Command::new("kill")
            .args(["-KILL", &pid.to_string()])
            .status()
            .unwrap()
            .success()
    );
    until("it is seen", || !shim.is_waiting()).await;
    let failure = bounded(shim.launch(&shell("true"))).await.unwrap_err();
    assert!(
        failure.message.starts_with("the waiting process has ended"),
        "{}",
        failure.message
    );
}

#[tokio::test]
async fn environment_folder_and_limits_are_exactly_as_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let mut spec =
        shell("env | sort; pwd; ulimit -n; ulimit -t; ulimit -c; ulimit -f; ulimit -v; ulimit -H -n");
    spec.env = vec![
        ("PATH".to_owned(), PATH.to_owned()),
        ("GREETING".to_owned(), "two words \"quoted\" ü".to_owned()),
    ];
    spec.cwd = Some(path.clone());
    spec.limits = vec![
        (Limit::OpenFiles, 77),
        (Limit::CpuSeconds, 1234),
        (Limit::Core, 0),
        (Limit::FileSize, 512 * 4096),
        (Limit::Memory, 1 << 30),
    ];
    let (code, stdout) = run(&spec).await;
    assert_eq!(code, 0);
    assert!(stdout.contains("GREETING=two words \"quoted\" ü\n"), "{stdout}");
    assert!(!stdout.contains("CARGO"), "{stdout}");
    assert!(
        stdout.ends_with(&format!("{}\n77\n1234\n0\n4096\n1048576\n77\n", path.display())),
        "{stdout}"
    );
}

#[tokio::test]
async fn only_the_three_streams_are_open_and_stdin_is_empty() {
    // Whoever started the test may have left descriptors open over exec; those are not ours to close.
    let inherited = |number: &u32| {
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).unwrap_or_default();
        let flags = info
            .lines()
            .find_map(|line| line.strip_prefix("flags:"))
            .map(str::trim);
        flags.is_some_and(|flags| u32::from_str_radix(flags, 8).unwrap() & 0o2_000_000 == 0)
    };
    let mut wanted: Vec<u32> = (3..1024).filter(inherited).collect();
    wanted.extend([0, 1, 2]);
    wanted.sort_unstable();
    let (code, stdout) = run(&shell("readlink /proc/$$/fd/0; cat; ls /proc/$$/fd")).await;
    assert_eq!(code, 0);
    let (stdin, open) = stdout.split_once('\n').unwrap();
    assert_eq!(stdin, "/dev/null");
    let mut open: Vec<u32> = open.lines().map(|line| line.parse().unwrap()).collect();
    open.sort_unstable();
    assert_eq!(open, wanted);
}

#[tokio::test]
async fn a_list_is_executed_as_it_is() {
    let (code, stdout) = run(&list(&["printf", "%s|", "a b", "$HOME", "*"])).await;
    assert_eq!((code, stdout.as_str()), (0, "a b|$HOME|*|"));
}

#[tokio::test]
async fn exit_codes_and_signals() {
    for (script, code) in [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 255", 255),
        ("kill -9 $$", -9),
        ("kill -TERM $$", -15),
    ] {
        assert_eq!(run(&shell(script)).await.0, code, "{script}");
    }
}

#[tokio::test]
async fn signals_are_as_in_a_fresh_process() {
    // SIGPIPE must end a writer whose reader has gone, and no signal may be blocked.
    let (_, stdout) = run(&list(&["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"])).await;
    let masks: Vec<u64> = stdout
        .lines()
        .map(|line| u64::from_str_radix(&line[8..], 16).unwrap())
        .collect();
    // posix_spawn of glibc leaves its own two signals, 32 and 33, ignored.
    let reserved = 0b11 << 31;
    assert_eq!((masks[0], masks[1] & !reserved), (0, 0), "{stdout}");
}

#[tokio::test]
async fn a_tight_memory_limit_with_a_large_environment_does_not_abort_the_shim() {
    let mut spec = shell("true");
    spec.env
        .extend((0..30).map(|number| (format!("FILLER_{number}"), "x".repeat(40_000))));
    // So small that nothing can be mapped any more, not even the shim's own heap could grow.
    spec.limits = vec![(Limit::Memory, 1 << 20)];
    match launch(&spec).await {
        Ok(running) => {
            let code = bounded(running.wait_exit()).await.unwrap().code;
            assert!([127, -9, -11].contains(&code), "{code}");
        }
        Err(failure) => assert!(
            failure.message.starts_with("cannot execute"),
            "{}",
            failure.message
        ),
    }
}

#[tokio::test]
async fn a_command_too_long_for_the_kernel_is_a_launch_failure() {
    let mut spec = shell("true");
    spec.env.push(("FILLER".to_owned(), "x".repeat(3 << 20)));
    let failure = bounded(launch(&spec)).await.unwrap_err();
    assert!(
        failure
            .message
            .starts_with("cannot execute '/bin/sh': Argument list too long"),
        "{}",
        failure.message
    );
}

#[tokio::test]
async fn user_and_groups_are_changed_by_root_and_refused_to_others() {
    let mut spec = shell("id -u; id -g; id -G; grep -E '^Uid' /proc/$$/status");
    spec.credentials = Credentials {
        uid: Some(4711),
        gid: Some(4712),
        groups: Some(vec![4712, 4713]),
    };
    if is_root() {
        let (code, stdout) = run(&spec).await;
        assert_eq!(
            (code, stdout.as_str()),
            (0, "4711\n4712\n4712 4713\nUid:\t4711\t4711\t4711\t4711\n")
        );
    } else {
        let failure = bounded(launch(&spec)).await.unwrap_err();
        assert!(
            failure
                .message
                .starts_with("cannot become user 4711 group 4712: "),
            "{}",
            failure.message
        );
    }
}

#[tokio::test]
async fn a_cancelled_launch_leaves_nothing_running() {
    let shim = Shim::spawn(exe()).unwrap();
    let pid = shim.identity().pid;
    let spec = shell("sleep 300");
    let launching = shim.launch(&spec);
    // Polled once at most: the message may be out already.
    let _cut = tokio::time::timeout(Duration::ZERO, launching).await.map(drop);
    until("it is gone", || !exists(pid)).await;
}
