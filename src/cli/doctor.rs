//! `ductor doctor`: looks for trouble on this machine, one line each with a remedy. Makes nothing, changes nothing.
//!
//! The store is checked by the daemon that has it, else from its files; opening them repairs what a kill left, as a start
//! would. A directory without a store stays one. What is looked at beside the store is in `machine`.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::args::{ConfigArguments, Global};
use super::client::Client;
use super::configuration;
use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::machine::{self, bytes};
use super::show::{Show, write_stderr};
use crate::config::Config;
use crate::store::coordination::{StateDirectory, UNFINISHED_NAME};
use crate::store::migrate::FORMAT;
use crate::store::{StoreError, check};

/// How long the check of a whole store may take.
const ANSWER: Duration = Duration::from_secs(40);
/// How long somebody at the port has to say who he is.
const GLANCE: Duration = Duration::from_secs(3);

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
pub(super) enum Verdict {
    Ok,
    Note,
    Bad,
}

/// One line.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// What was looked at.
    pub(super) what: &'static str,
    /// How bad it is.
    pub(super) verdict: Verdict,
    /// What was seen, and what to do.
    pub(super) text: String,
}

/// One line.
pub(super) fn line(what: &'static str, verdict: Verdict, text: impl Into<String>) -> Line {
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
    let answer = ask(&server, global, &["api", "store", "check"], ANSWER);
    let Some(answer) = answer else {
        return vec![line("store", Verdict::Bad, HELD)];
    };
    let data = fields::data(&answer);
    let findings = fields::list(data, &["findings"]);
    if data["clean"].as_bool() == Some(true) {
        let rows = &data["rows"];
        let count = |name| data[name].as_u64().unwrap_or(0);
        let blobs = of_blobs(count("unnamed_blobs"), count("unread_blobs"));
        let text = format!("clean ({rows} rows, checked by the running daemon{blobs})");
        return vec![line("store", Verdict::Ok, text)];
    }
    if findings.is_empty() {
        return vec![line("store", Verdict::Bad, HELD)];
    }
    let texts = findings.iter().filter_map(Value::as_str);
    texts.map(|text| line("store", Verdict::Bad, text)).collect()
}

/// What is worth saying of the files of large values when nothing is wrong with them.
fn of_blobs(unnamed: u64, unread: u64) -> String {
    let mut text = String::new();
    if unnamed > 0 {
        write!(
            text,
            "; values that no run has any more, to be removed: {unnamed}"
        )
        .ok();
    }
    if unread > 0 {
        write!(
            text,
            "; large values of which only the size was compared: {unread}"
        )
        .ok();
    }
    text
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

fn ask(server: &str, global: &Global, path: &[&str], patience: Duration) -> Option<Value> {
    let client = Client::new(server, &global.caller().ok()?).ok()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    let asked = async { tokio::time::timeout(patience, client.get(path, &[])).await };
    Some(runtime.block_on(asked).ok()?.ok()?.value)
}

/// The port is free, or the daemon of this very directory has it.
fn port(global: &Global, config: &Config) -> Line {
    let listen = config.server.listen;
    let in_use = match machine::port(listen) {
        Ok(line) => return line,
        Err(in_use) => in_use,
    };
    let answer = ask(&address_of(listen), global, &["api", "status"], GLANCE);
    let node = answer.and_then(|answer| fields::text(fields::data(&answer), &["node"]));
    let holders = StateDirectory::existing(&config.state.path).map(|directory| directory.holders());
    match node {
        Some(node) if holders.is_some_and(|all| all.iter().any(|(name, _)| *name == node)) => line(
            "port",
            Verdict::Ok,
            format!("{listen} is where your daemon listens (node {node})"),
        ),
        Some(node) => line(
            "port",
            Verdict::Note,
            format!(
                "{listen} is in use by another ductor (node {node}); choose another port with `server.listen`"
            ),
        ),
        None => in_use,
    }
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
        machine::clock(show),
        machine::zones(config),
        machine::rights(root),
        machine::disk(config),
        port(global, config),
    ];
    lines.extend(machine::locks(root));
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

fn store(root: &Path, thorough: bool) -> Vec<Line> {
    let one = |verdict, text: String| vec![line("store", verdict, text)];
    if root.join(UNFINISHED_NAME).exists() {
        let text = "a restore did not finish here; empty the state directory and restore again";
        return one(Verdict::Bad, text.to_owned());
    }
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
    let directory = StateDirectory::existing(root).map(|directory| directory.format());
    match directory {
        Some(Ok(Some(found))) if found > FORMAT => {
            let text =
                format!("it has format {found}; this ductor reads up to {FORMAT}: use the newer version");
            return one(Verdict::Bad, text);
        }
        Some(Ok(Some(found))) if found < FORMAT => {
            let text = format!(
                "{size} of format {found}; the next start keeps a copy of it and brings it to {FORMAT}"
            );
            return one(Verdict::Note, text);
        }
        Some(Err(error)) => return one(Verdict::Bad, format!("{error}; put the number back")),
        Some(Ok(_)) | None => {}
    }
    if !thorough {
        return one(
            Verdict::Ok,
            format!("{size}, not read; `ductor doctor --store` reads all of it"),
        );
    }
    match check::check_files(root) {
        Ok(checked) if checked.findings.is_empty() => {
            let blobs = of_blobs(checked.unnamed_blobs, checked.unread_blobs);
            one(
                Verdict::Ok,
                format!("clean ({} rows, {size}{blobs})", checked.rows),
            )
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
    use std::net::TcpListener;
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
        assert!(machine::locks(folder.path()).is_none());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
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
    fn the_port_of_the_own_daemon_is_no_trouble() {
        let folder = tempfile::tempdir().unwrap();
        let directory = StateDirectory::prepare(folder.path(), true).unwrap();
        std::fs::write(directory.store_file(), "").unwrap();
        let _lock = directory
            .try_lock_node(&crate::words::names::NodeName::new("n-a").unwrap())
            .unwrap();
        let mut config = Config::default();
        config.state.path = folder.path().to_path_buf();
        let mut said = |body| {
            let listen = answering(body).trim_start_matches("http://").parse().unwrap();
            config.server.listen = listen;
            port(&Global::of_server("http://127.0.0.1:1"), &config)
        };
        let own = said(r#"{"data":{"node":"n-a"}}"#);
        assert_eq!(own.verdict, Verdict::Ok, "{own:?}");
        let other = said(r#"{"data":{"node":"n-b"}}"#);
        assert!(other.text.contains("another ductor (node n-b)"), "{other:?}");
        let stranger = said("{}");
        assert!(stranger.text.contains("is in use"), "{stranger:?}");
        assert_eq!((other.verdict, stranger.verdict), (Verdict::Note, Verdict::Note));
    }

    #[test]
    fn a_store_of_another_format_is_told() {
        let folder = tempfile::tempdir().unwrap();
        drop(Store::open(StoreOptions::in_directory(folder.path()), Arc::new(SystemClock)).unwrap());
        let check = |format: &str, verdict, words: &str| {
            std::fs::write(folder.path().join("format"), format).unwrap();
            for thorough in [false, true] {
                let line = store(folder.path(), thorough).remove(0);
                assert_eq!(line.verdict, verdict, "{line:?}");
                assert!(line.text.contains(words), "{line:?}");
            }
        };
        check("99\n", Verdict::Bad, "has format 99; this ductor reads up to");
        check("1\n", Verdict::Note, "of format 1; the next start keeps a copy");
        check("rubbish", Verdict::Bad, "does not hold a number");
        std::fs::write(folder.path().join(UNFINISHED_NAME), "").unwrap();
        check("3\n", Verdict::Bad, "a restore did not finish here");
    }

    #[test]
    fn what_is_no_store_is_told() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ductor.redb"), "rubbish").unwrap();
        let lines = store(folder.path(), true);
        assert_eq!(lines[0].verdict, Verdict::Bad, "{lines:?}");
        assert!(lines[0].text.starts_with("it cannot be read"), "{lines:?}");
    }
}
