//! What /proc says about processes: identity, state, group, environment.
//!
//! A pid alone names nothing for long. [`ProcessIdentity`] adds the start time in kernel ticks, which together with the boot
//! id is unique; it survives `exec`. All readers treat "vanished while I was reading" as "not there", never as an error.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;

use serde::{Deserialize, Serialize};

/// One process, beyond reuse of its number within one boot and pid namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessIdentity {
    pub pid: u32,
    /// Start time in kernel ticks since boot (field 22 of `/proc/PID/stat`).
    pub start_ticks: u64,
    /// Process-group id.
    pub group: u32,
}

/// The fields of `/proc/PID/stat` that we use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    pub identity: ProcessIdentity,
    /// `R`, `S`, `D`, `T`, `Z`, `X`, …
    pub state: char,
    pub parent: u32,
    pub session: u32,
    pub threads: u64,
    /// CPU time of the process and of its children that were waited for.
    pub cpu_ticks: u64,
}

/// Milliseconds of a tick of [`ProcessStat::cpu_ticks`]: 100 a second is what the kernel promises to programs on every
/// architecture but Alpha.
pub const TICK_MS: u64 = 10;

impl ProcessStat {
    /// Nothing of it runs any more: a zombie or gone.
    ///
    /// A process whose first thread has ended shows `Z` while its other threads live on; it is not dead.
    pub fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x') && self.threads <= 1
    }

    /// `text` is the content of `/proc/PID/stat`. The name (second field) may hold spaces, parentheses, line ends and
    /// bytes that are not UTF-8; everything after the last `)` is plain.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let open = text.iter().position(|&byte| byte == b'(')?;
        let close = text.iter().rposition(|&byte| byte == b')')?;
        let pid = std::str::from_utf8(&text[..open]).ok()?.trim().parse().ok()?;
        let rest = std::str::from_utf8(text.get(close + 1..)?).ok()?;
        // Field numbers of proc(5) start at 1; `rest` starts with field 3. Ascending use only.
        let mut fields = rest.split_ascii_whitespace().zip(3..);
        let mut field = |number: usize| fields.find(|(_, at)| *at == number).map(|(text, _)| text);
        let state = field(3)?.chars().next()?;
        let parent = field(4)?.parse().ok()?;
        let group = field(5)?.parse().ok()?;
        let session = field(6)?.parse().ok()?;
        let mut ticks = |number: usize| field(number)?.parse::<u64>().ok();
        let cpu_ticks = ticks(14)? + ticks(15)? + ticks(16)? + ticks(17)?;
        let threads = field(20)?.parse().ok()?;
        let start_ticks = field(22)?.parse().ok()?;
        let identity = ProcessIdentity {
            pid,
            start_ticks,
            group,
        };
        Some(Self {
            identity,
            state,
            parent,
            session,
            threads,
            cpu_ticks,
        })
    }
}

/// `/proc/PID/stat` of a process, zombies included; `None` when there is no such process.
pub fn stat_of(pid: u32) -> io::Result<Option<ProcessStat>> {
    // Always shorter than this, and the kernel answers in one read.
    let mut text = [0; 2048];
    let length = match File::open(format!("/proc/{pid}/stat")).and_then(|mut file| file.read(&mut text)) {
        Ok(length) => length,
        Err(error) if has_vanished(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let stat = ProcessStat::parse(&text[..length]).map(Some);
    stat.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("/proc/{pid}/stat is unreadable"),
        )
    })
}

/// Identity of a process that exists now (a zombie exists); `None` when there is none or it cannot be read.
pub fn identity_of(pid: u32) -> Option<ProcessIdentity> {
    stat_of(pid).ok().flatten().map(|stat| stat.identity)
}

/// State letter of a process, see proc(5).
pub fn state_of(pid: u32) -> Option<char> {
    stat_of(pid).ok().flatten().map(|stat| stat.state)
}

/// The very process of `identity` still exists: same number, same start time. A zombie counts.
pub fn is_same_process(identity: &ProcessIdentity) -> bool {
    identity_of(identity.pid).is_some_and(|found| found.start_ticks == identity.start_ticks)
}

/// Own pid.
pub fn own_pid() -> u32 {
    std::process::id()
}

/// Members of a process group that are not dead (see [`ProcessStat::is_dead`]), ascending.
///
/// One pass over /proc that reads every `stat`. (`getpgid` would be cheaper, but for a kernel thread or a process whose
/// group is outside our pid namespace it answers 0, which rustix takes for impossible.) A member that forks while we look
/// can be missed: ask again, or signal the group once more.
pub fn group_members(group: u32) -> io::Result<Vec<ProcessIdentity>> {
    let mut members = Vec::new();
    for_each_stat(|stat| {
        if stat.identity.group == group && !stat.is_dead() {
            members.push(stat.identity);
        }
    })?;
    members.sort_unstable_by_key(|member| member.pid);
    Ok(members)
}

/// Children of `parent` that are zombies (used to reap orphans).
pub fn zombie_children(parent: u32) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for_each_stat(|stat| {
        if stat.parent == parent && stat.is_dead() {
            found.push(stat.identity.pid);
        }
    })?;
    Ok(found)
}

/// All `marks` (key, value) stand in the environment the process was started with.
///
/// `Ok(false)` for a process that is gone or a zombie; `Err(PermissionDenied)` when we may not look, which is *not* a no.
pub fn environ_has(pid: u32, marks: &[(String, String)]) -> io::Result<bool> {
    let Some(environ) = read_vanishing(&format!("/proc/{pid}/environ"))? else {
        return Ok(false);
    };
    let entries: Vec<&[u8]> = environ.split(|&byte| byte == 0).collect();
    let has = |(key, value): &(String, String)| entries.iter().any(|entry| is_entry(entry, key, value));
    Ok(!marks.is_empty() && marks.iter().all(has))
}

/// Processes that are not dead and were started with this variable, ascending. Those whose environment we may not read are
/// not among them: they belong to somebody else.
pub fn marked_processes(key: &str, value: &str) -> io::Result<Vec<ProcessIdentity>> {
    let marks = [(key.to_owned(), value.to_owned())];
    let mut found = Vec::new();
    for_each_stat(|stat| {
        if !stat.is_dead() && matches!(environ_has(stat.identity.pid, &marks), Ok(true)) {
            found.push(stat.identity);
        }
    })?;
    found.sort_unstable_by_key(|process| process.pid);
    Ok(found)
}

/// Resident memory of this process in bytes.
pub fn own_rss_bytes() -> io::Result<u64> {
    rss_bytes(own_pid())
}

/// Resident memory of a process in bytes.
pub fn rss_bytes(pid: u32) -> io::Result<u64> {
    status_bytes(pid, "VmRSS")
}

/// A field of `/proc/PID/status` that counts kibibytes, in bytes.
fn status_bytes(pid: u32, name: &'static str) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let kib = status_field(&status, name).and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    kib.map(|kib| kib * 1024)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("no {name}")))
}

/// The most resident memory that `pid` or one of its living descendants has had so far, of at most `processes_max`
/// processes. Without the kernel's list of children only `pid` itself is looked at.
pub fn tree_peak_bytes(pid: u32, processes_max: usize) -> Option<u64> {
    let (mut waiting, mut looked_at, mut peak) = (vec![pid], 0, None);
    while let Some(pid) = waiting.pop().filter(|_| looked_at < processes_max) {
        looked_at += 1;
        peak = peak.max(status_bytes(pid, "VmHWM").ok());
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let children = children.unwrap_or_default();
        waiting.extend(
            children
                .split_ascii_whitespace()
                .filter_map(|child| child.parse::<u32>().ok()),
        );
    }
    peak
}

/// Number of open file descriptors of this process.
pub fn own_open_files() -> io::Result<usize> {
    // The listing itself holds one.
    Ok(fs::read_dir("/proc/self/fd")?.count().saturating_sub(1))
}

/// A field of the text of `/proc/PID/status`, trimmed.
pub(super) fn status_field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .map(str::trim)
}

/// Inode behind `/proc/self/ns/<kind>`, whose link text is `kind:[inode]`.
pub(super) fn namespace_inode(kind: &str) -> io::Result<u64> {
    let link = fs::read_link(format!("/proc/self/ns/{kind}"))?;
    let text = link.to_string_lossy();
    let inode = text
        .rsplit_once('[')
        .and_then(|(_, tail)| tail.strip_suffix(']')?.parse().ok());
    inode.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("unexpected namespace link {text}"),
        )
    })
}

/// All processes, as of the moment each is read.
fn for_each_stat(mut visit: impl FnMut(&ProcessStat)) -> io::Result<()> {
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = std::str::from_utf8(name.as_bytes())
            .ok()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        match stat_of(pid) {
            Ok(Some(stat)) => visit(&stat),
            Ok(None) => {}
            // A /proc mounted with hidepid: somebody else's process.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_entry(entry: &[u8], key: &str, value: &str) -> bool {
    entry
        .strip_prefix(key.as_bytes())
        .and_then(|rest| rest.strip_prefix(b"="))
        == Some(value.as_bytes())
}

/// The content of a /proc file, or `None` when its process vanished before or during the read.
fn read_vanishing(path: &str) -> io::Result<Option<Vec<u8>>> {
    let mut content = Vec::with_capacity(512);
    match File::open(path).and_then(|mut file| file.read_to_end(&mut content)) {
        Ok(_) => Ok(Some(content)),
        Err(error) if has_vanished(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn has_vanished(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAIL: &str = "S 10 42 40 0 -1 4194560 1 0 0 0 1 2 3 4 20 0 3 0 987654 1 1";

    #[test]
    fn stat_is_read_whatever_the_name_of_the_program_is() {
        for name in ["sh", "a b", "a) R 1 2 3", "((", ")", "", "x\ny"] {
            let stat = ProcessStat::parse(format!("42 ({name}) {TAIL}").as_bytes()).unwrap();
            assert_eq!(
                stat.identity,
                ProcessIdentity {
                    pid: 42,
                    start_ticks: 987_654,
                    group: 42
                },
                "{name:?}"
            );
            assert_eq!(
                (
                    stat.state,
                    stat.parent,
                    stat.session,
                    stat.threads,
                    stat.cpu_ticks
                ),
                ('S', 10, 40, 3, 10),
                "{name:?}"
            );
        }
        let mut bytes = b"42 (\xff\xfe) ".to_vec();
        bytes.extend_from_slice(TAIL.as_bytes());
        assert!(ProcessStat::parse(&bytes).is_some());
    }

    #[test]
    fn broken_stat_is_refused() {
        for text in ["", "42", "42 (sh", "42 (sh)", "42 (sh) S 1 2", "x (sh) S 10 42"] {
            assert_eq!(ProcessStat::parse(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn a_zombie_with_living_threads_is_not_dead() {
        let check = |state: &str, threads: u32, expected: bool| {
            let text = format!("42 (sh) {state} 10 42 40 0 -1 0 1 0 0 0 0 0 0 0 20 0 {threads} 0 9 1 1");
            assert_eq!(
                ProcessStat::parse(text.as_bytes()).unwrap().is_dead(),
                expected,
                "{state} {threads}"
            );
        };
        check("Z", 1, true);
        check("X", 0, true);
        check("Z", 2, false);
        check("S", 1, false);
        check("D", 1, false);
        check("T", 1, false);
    }

    #[test]
    fn own_process_is_found() {
        let own = identity_of(own_pid()).unwrap();
        assert_eq!(own.pid, own_pid());
        assert!(is_same_process(&own));
        assert!(!is_same_process(&ProcessIdentity {
            start_ticks: own.start_ticks + 1,
            ..own
        }));
        assert!(group_members(own.group).unwrap().contains(&own));
        assert!(own_rss_bytes().unwrap() > 0);
        assert!(tree_peak_bytes(own_pid(), 1) >= own_rss_bytes().ok());
        assert_eq!(tree_peak_bytes(u32::MAX, 1), None);
        assert!(matches!(state_of(own_pid()), Some('R' | 'S')));
        assert_eq!(identity_of(u32::MAX), None);
    }

    #[test]
    fn environment_entries_match_whole() {
        assert!(is_entry(b"A=1", "A", "1"));
        assert!(!is_entry(b"A=12", "A", "1"));
        assert!(!is_entry(b"AB=1", "A", "1"));
        assert!(!is_entry(b"A", "A", ""));
        assert!(is_entry(b"A=", "A", ""));
        assert!(!environ_has(own_pid(), &[]).unwrap());
        assert!(!environ_has(own_pid(), &[("DUCTOR_NOT_SET".to_owned(), "1".to_owned())]).unwrap());
    }
}
