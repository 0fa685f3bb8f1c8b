//! What `ductor doctor` looks at beside the store: clock, zones, rights, disk, port, locks. One line each with a remedy.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::doctor::{Line, Verdict, counted, line};
use super::show::Show;
use crate::config::Config;
use crate::os::disk::{self, FileSystem, Reach};
use crate::os::failpoint::Faults;
use crate::os::{user, zone};
use crate::store::coordination::{STORE_NAME, StateDirectory};

/// A clock before this is not set (2024-01-01).
const CLOCK_MIN_MS: i64 = 1_704_067_200_000;
/// With fewer files left a busy day of logs does not fit.
const INODES_LOW: u64 = 10_000;

/// Is it set.
pub(super) fn clock(show: &Show) -> Line {
    let now = show.now();
    let text = show.face().instant(now);
    if now.0 < CLOCK_MIN_MS {
        return line(
            "clock",
            Verdict::Bad,
            format!("{text}; this clock is not set, start a time service"),
        );
    }
    line("clock", Verdict::Ok, text)
}

/// May the state directory be used.
pub(super) fn rights(root: &Path) -> Line {
    let shown = root.display();
    let metadata = match std::fs::metadata(root) {
        Ok(metadata) if metadata.is_dir() => metadata,
        Ok(_) => {
            return line(
                "rights",
                Verdict::Bad,
                format!("{shown} is no directory; choose another `state.path`"),
            );
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return line(
                "rights",
                Verdict::Ok,
                format!("{shown} does not exist yet; `ductor serve` makes it"),
            );
        }
        Err(error) => return line("rights", Verdict::Bad, format!("{shown}: {error}")),
    };
    let mode = metadata.mode() & 0o7777;
    let own = user::own_uid();
    if metadata.uid() != own && !user::is_root() {
        let text = format!(
            "{shown} belongs to user {} and you are {own}; run as that user, or chown it",
            metadata.uid()
        );
        return line("rights", Verdict::Note, text);
    }
    if mode & 0o002 != 0 {
        let text = format!("{shown} (mode {mode:03o}) can be written by everybody; chmod o-w it");
        return line("rights", Verdict::Bad, text);
    }
    for name in ["", STORE_NAME, "nodes", "logs", "probes"] {
        let path = root.join(name);
        match disk::may_write(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                let text = format!(
                    "{} may not be written ({error}); mend its owner or its mount, or choose another `state.path`",
                    path.display()
                );
                return line("rights", Verdict::Bad, text);
            }
            Ok(()) | Err(_) => {}
        }
    }
    line(
        "rights",
        Verdict::Ok,
        format!("{shown} (mode {mode:03o}) is yours"),
    )
}

/// The nearest directory that exists.
fn existing(root: &Path) -> &Path {
    root.ancestors()
        .find(|path| path.is_dir())
        .unwrap_or_else(|| Path::new("."))
}

/// Is there room, and on which kind of file system.
pub(super) fn disk(config: &Config) -> Line {
    let system = match FileSystem::of(existing(&config.state.path)) {
        Ok(system) => system,
        Err(error) => return line("disk", Verdict::Bad, format!("cannot be looked at: {error}")),
    };
    let text = format!(
        "{} free of {} ({})",
        bytes(system.free_bytes),
        bytes(system.total_bytes),
        system.type_name()
    );
    let low = config.state.low_disk_bytes;
    if system.free_bytes < low {
        let text = format!(
            "{text}; below {} no new run begins: free some, or lower `state.lowDiskBytes`",
            bytes(low)
        );
        return line("disk", Verdict::Note, text);
    }
    if let Some(files) = system.free_inodes.filter(|files| *files < INODES_LOW) {
        let text = format!("{text}, and only {files} more files (inodes) fit: remove some files");
        return line("disk", Verdict::Note, text);
    }
    match system.reach() {
        Reach::Network if !config.state.network => {
            let text = format!(
                "{text}: a network file system; use a local disk, or set `state.network: true` if its locks are reliable"
            );
            line("disk", Verdict::Bad, text)
        }
        Reach::Local | Reach::Network | Reach::Unsure => line("disk", Verdict::Ok, text),
    }
}

/// `1.5 KiB`.
pub(super) fn bytes(count: u64) -> String {
    let units = [
        (1_u64 << 40, "TiB"),
        (1 << 30, "GiB"),
        (1 << 20, "MiB"),
        (1 << 10, "KiB"),
    ];
    for (size, unit) in units {
        if count >= size {
            return format!("{}.{} {unit}", count / size, count % size * 10 / size);
        }
    }
    format!("{count} B")
}

/// The error is the line of a port that somebody has.
pub(super) fn port(listen: SocketAddr) -> Result<Line, Line> {
    match TcpListener::bind(listen) {
        Ok(_) => Ok(line("port", Verdict::Ok, format!("{listen} is free"))),
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            let text =
                format!("{listen} is in use; if not by your own daemon, choose another with `server.listen`");
            Err(line("port", Verdict::Note, text))
        }
        Err(error) => Ok(line(
            "port",
            Verdict::Bad,
            format!("{listen}: {error}; choose another with `server.listen`"),
        )),
    }
}

/// The zones of the jobs are in the program; that of the machine is for the eyes of a person.
pub(super) fn zones(config: &Config) -> Line {
    let of_jobs = config.jobs.iter().map(|job| job.timezone.as_deref());
    let of_dags = config.dags.iter().map(|dag| dag.timezone.as_deref());
    let named: BTreeSet<&str> = of_jobs.chain(of_dags).flatten().collect();
    let of_jobs = match named.len() {
        0 => "all schedules are in UTC, none has a `timezone`".to_owned(),
        count => format!(
            "{} of jobs known, schedules without a `timezone` are in UTC",
            counted(count, "zone")
        ),
    };
    match zone::host_zone() {
        Ok(host) => line(
            "zones",
            Verdict::Ok,
            format!("{of_jobs}; this machine is in {}", host.name),
        ),
        Err(why) => line(
            "zones",
            Verdict::Note,
            format!("{of_jobs}; the zone of this machine has no name ({why}): set TZ to see its times"),
        ),
    }
}

/// Tried only where a daemon has been: the trial writes a file.
pub(super) fn locks(root: &Path) -> Option<Line> {
    let directory = StateDirectory::existing(root)?;
    if let Ok(Some(option)) = disk::keeps_locks_local(root) {
        let text =
            format!("this mount keeps locks local (`{option}`): slot pools admit nothing; mount it without");
        return Some(line("locks", Verdict::Bad, text));
    }
    if disk::may_write(root).is_err() {
        return Some(line(
            "locks",
            Verdict::Note,
            "not tried: this user may not write here",
        ));
    }
    let trusted = directory.locks_are_trustworthy(&Faults::default(), None);
    Some(if trusted {
        let holders = directory.holders();
        let holders: Vec<String> = { holders.into_iter() }
            .map(|(name, pid)| match pid {
                Some(pid) => format!("{name} (pid {pid})"),
                None => name,
            })
            .collect();
        let text = match holders.len() {
            0 => "an exclusive lock excludes; no daemon lives here".to_owned(),
            _ => format!("an exclusive lock excludes; here lives {}", holders.join(", ")),
        };
        line("locks", Verdict::Ok, text)
    } else {
        let text = "exclusive locks do not exclude here: slot pools admit \
                    nothing; use a local disk";
        line("locks", Verdict::Bad, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_for_people() {
        let table = [(12, "12 B"), (1_536, "1.5 KiB"), (5 << 30, "5.0 GiB")];
        for (count, text) in table {
            assert_eq!(bytes(count), text);
        }
    }

    #[test]
    fn rights_are_looked_at_without_a_trace() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(rights(&folder.path().join("no/where")).verdict, Verdict::Ok);
        assert_eq!(rights(folder.path()).verdict, Verdict::Ok);
        let mode = |bits| std::os::unix::fs::PermissionsExt::from_mode(bits);
        std::fs::set_permissions(folder.path(), mode(0o777)).unwrap();
        let line = rights(folder.path());
        assert!(
            line.verdict == Verdict::Bad && line.text.contains("chmod o-w"),
            "{line:?}"
        );
        std::fs::write(folder.path().join("file"), "").unwrap();
        assert_eq!(rights(&folder.path().join("file")).verdict, Verdict::Bad);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_zones_of_jobs_are_counted_once() {
        let config = Config::default();
        assert!(zones(&config).text.starts_with("all schedules are in UTC"));
    }

    #[test]
    fn a_port_that_is_taken_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = port(listener.local_addr().unwrap()).unwrap_err();
        assert_eq!(taken.verdict, Verdict::Note, "{taken:?}");
        let free = port("127.0.0.1:0".parse().unwrap()).unwrap();
        assert_eq!(free.verdict, Verdict::Ok, "{free:?}");
        // An address of no machine here.
        let foreign = port("192.0.2.1:80".parse().unwrap()).unwrap();
        assert_eq!(foreign.verdict, Verdict::Bad, "{foreign:?}");
    }

    #[test]
    fn who_lives_here_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let directory = StateDirectory::prepare(folder.path(), true).unwrap();
        std::fs::write(directory.store_file(), "").unwrap();
        assert!(
            locks(folder.path())
                .unwrap()
                .text
                .ends_with("no daemon lives here")
        );
        let name = crate::words::names::NodeName::new("n-a").unwrap();
        let mut lock = directory.try_lock_node(&name).unwrap().unwrap();
        lock.write_holder(42, "auto").unwrap();
        assert!(
            locks(folder.path())
                .unwrap()
                .text
                .ends_with("here lives n-a (pid 42)")
        );
    }
}
