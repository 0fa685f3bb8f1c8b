//! The daemons of a torture: children of this process, started, signalled and ended by their own handles.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use super::plan::name_of;
use super::site::{Site, VARIABLE};
use super::step::FOLDER_VARIABLE;
use crate::os::clock::boottime_ms;
use crate::os::signal::{Signal, signal_child};

/// A daemon that has not said its address after this time does not start.
const START_MS: u64 = 20_000;
/// A log beyond this size begins anew, and the one before is kept.
const LOG_BYTES_MAX: u64 = 16 << 20;
/// A start that failed under a fault is tried again after this time.
const RETRY_MS: u64 = 400;

/// Addresses of the daemons that have said one, by daemon.
pub(super) type Doors = Arc<Mutex<Vec<Option<String>>>>;

/// One daemon, in whatever state.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Member {
    child: Option<Child>,
    /// Where its own part of the printed text begins.
    printed_from: u64,
    started_at: u64,
    ready: bool,
    /// When it is started again.
    start_at: Option<u64>,
    /// When it goes on.
    frozen_until: Option<u64>,
    /// When its faults are taken away.
    faults_until: Option<u64>,
    /// Its end, of whatever kind, is of our making.
    may_end: bool,
    /// It was started, or lives, under a fault that may keep it from starting.
    hindered: bool,
    /// The trial of locks fails until the next start.
    bad_locks: bool,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Fleet {
    site: Site,
    program: PathBuf,
    members: Vec<Member>,
    doors: Doors,
    /// The disk is full until then.
    full_until: Option<u64>,
    /// What a daemon did that it must not, one sentence each.
    pub(super) findings: Vec<String>,
}

impl Fleet {
    pub(super) fn new(site: &Site, program: &Path, daemons: usize) -> Fleet {
        Fleet {
            site: site.clone(),
            program: program.to_owned(),
            members: (0..daemons).map(|_| Member::default()).collect(),
            doors: Arc::new(Mutex::new(vec![None; daemons])),
            full_until: None,
            findings: Vec::new(),
        }
    }

    pub(super) fn doors(&self) -> Doors {
        Arc::clone(&self.doors)
    }

    /// Starts all that are not there.
    pub(super) fn start_all(&mut self) {
        for daemon in 0..self.members.len() {
            if self.members[daemon].child.is_none() {
                self.start(daemon);
            }
        }
    }

    fn start(&mut self, daemon: usize) {
        let name = name_of(daemon);
        let started = spawn_as(
            &self.site,
            &self.program,
            &name,
            &name,
            Some(&self.site.faults(daemon)),
        );
        let full = self.full_until.is_some();
        let member = &mut self.members[daemon];
        member.start_at = None;
        member.hindered = full || member.faults_until.is_some();
        if !member.bad_locks && member.faults_until.is_none() {
            clear_faults(&self.site, daemon);
        }
        match started {
            Ok((child, printed_from)) => {
                member.child = Some(child);
                member.printed_from = printed_from;
                member.started_at = boottime_ms();
                member.ready = false;
                member.may_end = false;
            }
            Err(error) => self
                .findings
                .push(format!("daemon {name} cannot be started: {error}")),
        }
    }

    /// Notices what has happened, and does what is due. To be called often.
    pub(super) fn look(&mut self) {
        let now = boottime_ms();
        if self.full_until.is_some_and(|until| until <= now) {
            self.full_until = None;
            self.site.free();
        }
        for daemon in 0..self.members.len() {
            self.look_at(daemon, now);
        }
    }

    fn look_at(&mut self, daemon: usize, now: u64) {
        let due = |at: Option<u64>| at.is_some_and(|at| at <= now);
        if due(self.members[daemon].frozen_until) {
            self.thaw(daemon);
        }
        if due(self.members[daemon].faults_until) {
            self.members[daemon].faults_until = None;
            clear_faults(&self.site, daemon);
        }
        if let Some(status) = self.ended(daemon) {
            self.note_end(daemon, status, now);
        }
        // One that drains keeps its place until it is gone.
        if due(self.members[daemon].start_at) && !self.is_there(daemon) {
            self.start(daemon);
        }
        let member = &self.members[daemon];
        if member.child.is_some() && !member.ready {
            let url = self.printed_url(daemon);
            let late = now.saturating_sub(self.members[daemon].started_at) > START_MS;
            if let Some(url) = url {
                self.members[daemon].ready = true;
                self.set_door(daemon, Some(url));
            } else if late && self.members[daemon].frozen_until.is_none() && !self.members[daemon].hindered {
                let name = name_of(daemon);
                self.findings.push(format!(
                    "daemon {name} has said no address after {} s",
                    START_MS / 1_000
                ));
                self.members[daemon].started_at = now;
            }
        }
    }

    /// The status of one that has just ended.
    fn ended(&mut self, daemon: usize) -> Option<ExitStatus> {
        let member = &mut self.members[daemon];
        let status = member.child.as_mut()?.try_wait().ok().flatten()?;
        member.child = None;
        member.frozen_until = None;
        self.set_door(daemon, None);
        Some(status)
    }

    fn note_end(&mut self, daemon: usize, status: ExitStatus, now: u64) {
        let member = &mut self.members[daemon];
        let (ready, hindered) = (member.ready, member.hindered || member.faults_until.is_some());
        let killed = status.signal() == Some(9) && (member.may_end || hindered);
        // One that had not yet got to listening to signals simply ends.
        let early = status.signal() == Some(15) && member.may_end && !ready;
        let drained = early || status.success() && member.may_end;
        let refused_to_start = status.code() == Some(1) && !ready && hindered;
        // With a disk that refuses everything the store may not let itself be closed in time; that is an honest answer.
        let honest = status.code() == Some(1) && member.may_end && hindered;
        let retry = (refused_to_start || killed) && member.start_at.is_none() && !member.may_end;
        if retry {
            member.start_at = Some(now + RETRY_MS);
        }
        if !(killed || drained || refused_to_start || honest) {
            let name = name_of(daemon);
            self.findings.push(format!(
                "daemon {name} ended by itself: {status}; see logs/{name}.log"
            ));
        }
    }

    fn set_door(&self, daemon: usize, url: Option<String>) {
        if let Some(door) = self
            .doors
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_mut(daemon)
        {
            *door = url;
        }
    }

    fn printed_url(&self, daemon: usize) -> Option<String> {
        let path = self.site.log(&name_of(daemon), "out");
        url_in(&path, self.members[daemon].printed_from)
    }

    fn is_there(&self, daemon: usize) -> bool {
        self.members[daemon].child.is_some()
    }

    /// It has said its address, is not frozen and not about to end.
    pub(super) fn is_ready(&self, daemon: usize) -> bool {
        let member = &self.members[daemon];
        member.child.is_some() && member.ready && member.frozen_until.is_none() && !member.may_end
    }

    /// Every daemon is ready.
    pub(super) fn all_ready(&self) -> bool {
        (0..self.members.len()).all(|daemon| self.is_ready(daemon))
    }

    /// One is between its start and its address.
    pub(super) fn any_starting(&self) -> bool {
        self.members
            .iter()
            .any(|member| member.child.is_some() && !member.ready)
    }

    /// None is there.
    pub(super) fn all_gone(&self) -> bool {
        self.members.iter().all(|member| member.child.is_none())
    }

    fn signal(&self, daemon: usize, signal: Signal) {
        if let Some(child) = &self.members[daemon].child {
            signal_child(child, signal);
        }
    }

    /// SIGKILL; a start follows after that time, if one is given.
    pub(super) fn kill(&mut self, daemon: usize, down_ms: Option<u64>) {
        self.members[daemon].may_end = true;
        self.members[daemon].start_at = down_ms.map(|ms| boottime_ms() + ms);
        self.signal(daemon, Signal::Kill);
        let member = &mut self.members[daemon];
        if let Some(child) = &mut member.child {
            // It cannot refuse: this waits for the kernel only.
            child.wait().ok();
        }
        if let Some(status) = self.ended(daemon) {
            self.note_end(daemon, status, boottime_ms());
        }
    }

    /// SIGTERM; a start follows the end after that time, if one is given.
    pub(super) fn stop(&mut self, daemon: usize, down_ms: Option<u64>) {
        self.thaw(daemon);
        if self.is_there(daemon) {
            self.members[daemon].may_end = true;
            self.signal(daemon, Signal::Term);
        }
        // Tried as soon as the one before has gone.
        self.members[daemon].start_at = down_ms.map(|ms| boottime_ms() + ms);
    }

    /// SIGSTOP for a time.
    pub(super) fn freeze(&mut self, daemon: usize, for_ms: u64) {
        if self.is_there(daemon) {
            self.signal(daemon, Signal::Stop);
            self.members[daemon].frozen_until = Some(boottime_ms() + for_ms);
        }
    }

    fn thaw(&mut self, daemon: usize) {
        if self.members[daemon].frozen_until.take().is_some() {
            self.signal(daemon, Signal::Cont);
        }
    }

    /// SIGHUP for all.
    pub(super) fn reload(&self) {
        for daemon in 0..self.members.len() {
            if self.members[daemon].ready {
                self.signal(daemon, Signal::Hangup);
            }
        }
    }

    /// Plans faults for a daemon, one a line; those of before are replaced.
    pub(super) fn plan(&mut self, daemon: usize, lines: &str, for_ms: u64) {
        std::fs::write(self.site.faults(daemon), lines).ok();
        self.members[daemon].faults_until = Some(boottime_ms() + for_ms);
        self.members[daemon].bad_locks = false;
        self.members[daemon].hindered = true;
    }

    /// A restart after which locks cannot be trusted, until the next one.
    pub(super) fn mistrust_locks(&mut self, daemon: usize) {
        std::fs::write(self.site.faults(daemon), "lock.probe=error\n").ok();
        self.members[daemon].bad_locks = true;
        self.members[daemon].faults_until = None;
        self.stop(daemon, Some(0));
    }

    /// Fills the disk for a time.
    pub(super) fn fill(&mut self, for_ms: u64) {
        self.site.fill();
        self.full_until = Some(boottime_ms() + for_ms);
        for member in &mut self.members {
            member.hindered = true;
        }
    }

    /// The disk is full at the moment.
    pub(super) fn is_full(&self) -> bool {
        self.full_until.is_some()
    }

    /// Takes every fault away, and lets the frozen go on. Nothing is started any more.
    pub(super) fn relent(&mut self) {
        self.full_until = None;
        self.site.free();
        for daemon in 0..self.members.len() {
            self.thaw(daemon);
            clear_faults(&self.site, daemon);
            let member = &mut self.members[daemon];
            member.faults_until = None;
            member.bad_locks = false;
            member.start_at = None;
        }
    }

    /// Forgets that a fault was planned: from here on every end by itself is a finding.
    pub(super) fn expect_health(&mut self) {
        for member in &mut self.members {
            member.hindered = false;
        }
    }
}

/// Whatever happens to the torture, its daemons end with it.
impl Drop for Fleet {
    fn drop(&mut self) {
        for member in &mut self.members {
            if let Some(child) = &mut member.child {
                child.kill().ok();
                child.wait().ok();
            }
        }
        self.site.free();
    }
}

fn clear_faults(site: &Site, daemon: usize) {
    let path = site.faults(daemon);
    if std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() > 0) {
        std::fs::write(path, "").ok();
    }
}

/// Starts a daemon of that name, with its logs under another; with it the place where its printed text begins.
pub(super) fn spawn_as(
    site: &Site,
    program: &Path,
    name: &str,
    log: &str,
    faults: Option<&Path>,
) -> io::Result<(Child, u64)> {
    let out = grown(&site.log(log, "out"))?;
    let printed_from = out.metadata()?.len();
    let mut command = Command::new(program);
    let inherited = std::env::vars_os().map(|(name, _)| name);
    for variable in inherited.filter(|name| name.to_string_lossy().starts_with("DUCTOR_")) {
        command.env_remove(variable);
    }
    command.arg("serve").arg("--config").arg(site.config());
    command.args(["--listen", "127.0.0.1:0", "--log", "info", "--node", name]);
    command
        .env(VARIABLE, site_of_mark(site))
        .env(FOLDER_VARIABLE, site.evidence());
    command.current_dir(site.root());
    if let Some(faults) = faults {
        command.env("DUCTOR_FAIL", format!("@{}", faults.display()));
    }
    let child = command
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(grown(&site.log(log, "log"))?)
        .spawn()?;
    Ok((child, printed_from))
}

/// The value by which processes are known: a place inside another one belongs to that.
fn site_of_mark(site: &Site) -> String {
    let root = site.root();
    let outer = root
        .file_name()
        .filter(|name| *name == "damaged")
        .and(root.parent());
    outer.unwrap_or(root).display().to_string()
}

/// A file that is appended to.
fn grown(path: &Path) -> io::Result<File> {
    if std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > LOG_BYTES_MAX) {
        std::fs::rename(path, path.with_extension("before"))?;
    }
    OpenOptions::new().append(true).create(true).open(path)
}

/// The address that a daemon printed.
pub(super) fn url_in(path: &Path, from: u64) -> Option<String> {
    let mut file = File::open(path).ok()?;
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    // The line must be there whole.
    let (line, _) = text[text.find("http://")?..].split_once('\n')?;
    Some(line.trim().to_owned())
}
