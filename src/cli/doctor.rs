//! `ductor doctor`: looks for trouble on this machine, one line each with a remedy. Makes nothing, changes nothing.
//!
//! The store is checked from its files, so its daemon must not run; opening them repairs what a kill left, as a start
//! would. A directory without a store stays one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use clap::Args;
use serde_json::{Value, json};

use super::args::{ConfigArguments, Global};
use super::client::Client;
use super::configuration;
use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::show::{Show, write_stderr};
use crate::config::Config;
use crate::os::disk::{FileSystem, Reach};
use crate::os::failpoint::Faults;
use crate::os::user;
use crate::store::coordination::StateDirectory;
use crate::store::{StoreError, check};

/// A clock before this is not set (2024-01-01).
const CLOCK_MIN_MS: i64 = 1_704_067_200_000;

/// Arguments of `doctor`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  ductor doctor\n  ductor doctor --store     reads the whole store, by the daemon if one runs"
)]
pub(super) struct DoctorArguments {
    /// Where the configuration and the state are.
    #[command(flatten)]
    pub(super) config: ConfigArguments,
    /// Read every row of the store and recompute every index.
    #[arg(long)]
    pub(super) store: bool,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Ok,
    Note,
    Bad,
}

/// One line.
#[derive(Debug, Clone)]
struct Line {
    what: &'static str,
    verdict: Verdict,
    text: String,
}

fn line(what: &'static str, verdict: Verdict, text: impl Into<String>) -> Line {
    Line {
        what,
        verdict,
        text: text.into(),
    }
}

/// What is said of a store whose daemon does not answer.
const HELD: &str = "a running daemon has it and does not answer here: say where it listens with --server";

/// Asks the daemon that holds the store: at the address that was given, or where the configuration makes it listen.
/// Not at both: another daemon would answer for its own store.
fn ask_the_holder(global: &Global, config: &Config) -> Vec<Line> {
    let server = global
        .server_given()
        .unwrap_or_else(|| address_of(config.server.listen));
    let answer = ask(&server, global);
    let Some(answer) = answer else {
        return vec![line("store", Verdict::Bad, HELD)];
    };
    let data = fields::data(&answer);
    let findings = fields::list(data, &["findings"]);
    if data["clean"].as_bool() == Some(true) {
        let rows = &data["rows"];
        let text = format!("clean ({rows} rows, checked by the running daemon)");
        return vec![line("store", Verdict::Ok, text)];
    }
    if findings.is_empty() {
        return vec![line("store", Verdict::Bad, HELD)];
    }
    let texts = findings.iter().filter_map(Value::as_str);
    texts.map(|text| line("store", Verdict::Bad, text)).collect()
}

/// Where a daemon that listens there is reached from this machine.
pub(super) fn address_of(listen: SocketAddr) -> String {
    let mut at = listen;
    match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => at.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => at.set_ip(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V4(_) | IpAddr::V6(_) => {}
    }
    format!("http://{at}")
}

/// `1 job`, `2 jobs`.
pub(super) fn counted(count: usize, noun: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{end}")
}

fn ask(server: &str, global: &Global) -> Option<Value> {
    let client = Client::new(server, &global.caller().ok()?).ok()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    let body = runtime
        .block_on(client.get(&["api", "store", "check"], &[]))
        .ok()?;
    Some(body.value)
}

/// Looks, tells, and says 1 when something is bad.
pub(super) fn doctor(arguments: &DoctorArguments, global: &Global, show: &Show) -> Exit {
    let loaded = match configuration::load_for_tool(&arguments.config) {
        Ok(loaded) => loaded,
        Err(text) => {
            write_stderr(text.as_bytes());
            return Exit::Usage;
        }
    };
    write_stderr(loaded.warnings.as_bytes());
    let config = &loaded.config;
    let (jobs, pools) = (config.jobs.len(), config.slot_pools.len());
    let counts = format!("{}, {}", counted(jobs, "job"), counted(pools, "slot pool"));
    let root = config.state.path.as_path();
    let mut lines = vec![
        line(
            "config",
            Verdict::Ok,
            format!("{}: {counts}", loaded.path.display()),
        ),
        clock(show),
        rights(root),
        disk(config),
        port(config.server.listen),
    ];
    lines.extend(locks(root));
    let mut of_store = store(root, arguments.store);
    if of_store.iter().any(|line| line.text == HELD) {
        of_store = ask_the_holder(global, config);
    }
    lines.extend(of_store);
    let bad = lines.iter().any(|line| line.verdict == Verdict::Bad);
    let told = if show.json {
        tell_json(&lines, show)
    } else {
        tell(&lines, show)
    };
    match told {
        Ok(()) if bad => Exit::Negative,
        Ok(()) => Exit::Done,
        Err(failure) => failure.exit(),
    }
}

fn tell(lines: &[Line], show: &Show) -> Result<(), Failure> {
    for line in lines {
        let word = match line.verdict {
            Verdict::Ok => show.state("ok  "),
            Verdict::Note => show.strong("note"),
            Verdict::Bad => show.strong("BAD "),
        };
        show.data(&format!("{word} {}: {}\n", line.what, line.text))?;
    }
    Ok(())
}

fn tell_json(lines: &[Line], show: &Show) -> Result<(), Failure> {
    let word = |verdict: Verdict| match verdict {
        Verdict::Ok => "ok",
        Verdict::Note => "note",
        Verdict::Bad => "bad",
    };
    let list: Vec<_> = lines
        .iter()
        .map(|line| json!({"check": line.what, "verdict": word(line.verdict), "detail": line.text}))
        .collect();
    show.json_line(&json!(list))
}

fn clock(show: &Show) -> Line {
    let now = show.now();
    let text = format!(
        "{}; schedules without a `timezone` are in UTC",
        show.face().instant(now)
    );
    if now.0 < CLOCK_MIN_MS {
        return line(
            "clock",
            Verdict::Bad,
            format!("{text}; this clock is not set, start a time service"),
        );
    }
    line("clock", Verdict::Ok, text)
}

fn rights(root: &Path) -> Line {
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
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
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

fn disk(config: &Config) -> Line {
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
            "{text}; below {} the daemon says that it is not ready: free some, or lower `state.lowDiskBytes`",
            bytes(low)
        );
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

fn port(listen: SocketAddr) -> Line {
    match TcpListener::bind(listen) {
        Ok(_) => line("port", Verdict::Ok, format!("{listen} is free")),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            let text =
                format!("{listen} is in use; if not by your own daemon, choose another with `server.listen`");
            line("port", Verdict::Note, text)
        }
        Err(error) => line(
            "port",
            Verdict::Bad,
            format!("{listen}: {error}; choose another with `server.listen`"),
        ),
    }
}

/// Tried only where a daemon has been: the trial writes a file.
fn locks(root: &Path) -> Option<Line> {
    let directory = StateDirectory::existing(root)?;
    let trusted = directory.locks_are_trustworthy(&Faults::default(), None);
    Some(if trusted {
        line("locks", Verdict::Ok, "an exclusive lock excludes")
    } else {
        let text = "exclusive locks do not exclude here (or the directory cannot be written): slot pools admit \
                    nothing; use a local disk";
        line("locks", Verdict::Bad, text)
    })
}

fn store(root: &Path, thorough: bool) -> Vec<Line> {
    let one = |verdict, text: String| vec![line("store", verdict, text)];
    let file = root.join("ductor.redb");
    let size = match std::fs::metadata(&file) {
        Ok(metadata) => bytes(metadata.len()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return one(
                Verdict::Ok,
                "there is none yet; `ductor serve` makes it".to_owned(),
            );
        }
        Err(error) => return one(Verdict::Bad, format!("{}: {error}", file.display())),
    };
    if !thorough {
        return one(
            Verdict::Ok,
            format!("{size}, not read; `ductor doctor --store` reads all of it"),
        );
    }
    match check::check_files(root) {
        Ok(checked) if checked.findings.is_empty() => {
            one(Verdict::Ok, format!("clean ({} rows, {size})", checked.rows))
        }
        Ok(checked) => {
            let findings = checked.findings.into_iter();
            let mut lines: Vec<Line> = findings.map(|text| line("store", Verdict::Bad, text)).collect();
            let remedy = "keep a copy of the state directory and report this; rows that cannot be read are skipped by the daemon";
            lines.push(line("store", Verdict::Note, remedy));
            lines
        }
        Err(StoreError::InUse) => one(Verdict::Bad, HELD.to_owned()),
        Err(error) => one(
            Verdict::Bad,
            format!("it cannot be read: {error}; keep a copy before anything else"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::sync::Arc;

    use super::*;
    use crate::store::{Store, StoreOptions};
    use crate::words::time::SystemClock;

    /// Answers one request.
    fn answering(body: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            assert!(stream.read(&mut [0; 4_096]).unwrap() > 0);
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        });
        format!("http://{address}")
    }

    #[test]
    fn the_daemon_that_holds_the_store_is_asked() {
        let ask = |body| ask_the_holder(&Global::of_server(&answering(body)), &Config::default());
        let lines = ask(r#"{"data":{"clean":true,"findings":[],"rows":7}}"#);
        assert_eq!(lines[0].verdict, Verdict::Ok);
        assert_eq!(lines[0].text, "clean (7 rows, checked by the running daemon)");
        let lines = ask(r#"{"data":{"clean":false,"findings":["runs: a row is missing"],"rows":7}}"#);
        assert_eq!(
            (lines[0].verdict, lines[0].text.as_str()),
            (Verdict::Bad, "runs: a row is missing")
        );
        assert_eq!(ask("{}")[0].verdict, Verdict::Bad);
        let nobody = Global::of_server("http://127.0.0.1:1");
        assert_eq!(ask_the_holder(&nobody, &Config::default())[0].text, HELD);
    }

    #[test]
    fn a_daemon_that_listens_everywhere_is_reached_here() {
        let check = |listen: &str, url: &str| assert_eq!(address_of(listen.parse().unwrap()), url);
        check("0.0.0.0:80", "http://127.0.0.1:80");
        check("[::]:80", "http://[::1]:80");
        check("10.0.0.1:80", "http://10.0.0.1:80");
        assert_eq!(
            (counted(1, "pool"), counted(2, "pool")),
            ("1 pool".to_owned(), "2 pools".to_owned())
        );
    }

    #[test]
    fn a_directory_without_a_store_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let lines = store(folder.path(), true);
        assert_eq!(lines[0].verdict, Verdict::Ok);
        assert!(lines[0].text.starts_with("there is none yet"), "{lines:?}");
        assert!(locks(folder.path()).is_none());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(rights(&folder.path().join("no/where")).verdict, Verdict::Ok);
    }

    #[test]
    fn a_held_store_is_told_and_a_closed_one_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let opened = Store::open(StoreOptions::in_directory(folder.path()), Arc::new(SystemClock)).unwrap();
        let lines = store(folder.path(), true);
        assert_eq!(lines[0].verdict, Verdict::Bad);
        assert!(lines[0].text.contains("a running daemon has it"), "{lines:?}");
        drop(opened);
        let lines = store(folder.path(), true);
        assert_eq!(lines[0].verdict, Verdict::Ok, "{lines:?}");
        assert!(lines[0].text.starts_with("clean (1 rows"), "{lines:?}");
    }

    #[test]
    fn what_is_no_store_is_told() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ductor.redb"), "rubbish").unwrap();
        let lines = store(folder.path(), true);
        assert_eq!(lines[0].verdict, Verdict::Bad, "{lines:?}");
        assert!(lines[0].text.starts_with("it cannot be read"), "{lines:?}");
    }

    #[test]
    fn sizes_are_written_for_people() {
        let table = [(12, "12 B"), (1_536, "1.5 KiB"), (5 << 30, "5.0 GiB")];
        for (count, text) in table {
            assert_eq!(bytes(count), text);
        }
    }
}
