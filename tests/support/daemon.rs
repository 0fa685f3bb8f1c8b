//! A running `ductor serve`: start, ask, signal, kill, restart. What is dropped is ended, by its own process id.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use super::cli::{self, Answered};
use super::http::{Client, Headers, Response};
use super::output::Output;
use super::place::Place;
use super::stream::EventStream;
use super::wait::{PATIENCE, wait_until};

/// Looks at the store after a clean end; a text is what is wrong with it.
pub(crate) type StoreCheck = fn(&Place) -> Result<(), String>;

/// How to start a daemon; kept, so that it can be started again.
#[derive(Clone)]
pub(crate) struct Builder {
    place: Place,
    environment: Vec<(OsString, OsString)>,
    arguments: Vec<OsString>,
    store_check: Option<StoreCheck>,
    start_timeout: Duration,
}

impl Builder {
    /// In a place that another daemon may share.
    pub(crate) fn at(place: &Place) -> Builder {
        Builder {
            place: place.clone(),
            environment: Vec::new(),
            arguments: Vec::new(),
            store_check: Some(check_store_with_doctor),
            start_timeout: PATIENCE,
        }
    }

    #[must_use]
    pub(crate) fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Builder {
        self.environment
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// A planned failure, `DUCTOR_FAIL`.
    #[must_use]
    pub(crate) fn fail_at(self, points: &str) -> Builder {
        self.env("DUCTOR_FAIL", points)
    }

    #[must_use]
    pub(crate) fn node(self, name: &str) -> Builder {
        self.args(&["--node", name])
    }

    #[must_use]
    pub(crate) fn args(mut self, arguments: &[impl AsRef<OsStr>]) -> Builder {
        self.arguments
            .extend(arguments.iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    #[must_use]
    pub(crate) fn store_check(mut self, check: StoreCheck) -> Builder {
        self.store_check = Some(check);
        self
    }

    /// For a test that has spoilt the store on purpose.
    #[must_use]
    pub(crate) fn leave_store_unchecked(mut self) -> Builder {
        self.store_check = None;
        self
    }

    #[must_use]
    pub(crate) fn start_timeout(mut self, timeout: Duration) -> Builder {
        self.start_timeout = timeout;
        self
    }

    /// Starts and waits for the printed URL; fails the test with the daemon's output if it does not come.
    #[track_caller]
    pub(crate) fn start(self) -> Daemon {
        self.try_start()
            .unwrap_or_else(|refused| panic!("the daemon did not start: {refused}"))
    }

    /// Starts a daemon that may refuse to: wrong config, node name taken.
    pub(crate) fn try_start(self) -> Result<Daemon, Refused> {
        let mut command = cli::command();
        command.arg("serve").arg("--config").arg(self.place.config());
        command
            .arg("--state-dir")
            .arg(self.place.state())
            .args(["--listen", "127.0.0.1:0"]);
        command
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(self.place.folder());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("start the binary");
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let output = Output::collect(stdout.expect("piped"), stderr.expect("piped"));
        let url = output.wait_stdout(self.start_timeout, first_url);
        let mut daemon = Daemon {
            started: self,
            child: Process(child),
            output,
            url: String::new(),
        };
        match url {
            Some(url) => {
                daemon.url = url;
                Ok(daemon)
            }
            None => Err(daemon.into_refused()),
        }
    }
}

/// The first `http://…` of a line, up to a space or a trailing mark.
fn first_url(line: &str) -> Option<String> {
    let from = &line[line.find("http://")?..];
    let ends = |mark: char| mark.is_whitespace() || mark.is_control() || "\"'<>(),;".contains(mark);
    let url = from.split(ends).next()?.trim_end_matches(['/', '.']);
    Some(url.to_owned())
}

/// A daemon that ended, or said nothing, before it printed a URL.
pub(crate) struct Refused {
    /// The exit code; `None` if it hung and was ended.
    pub(crate) status: Option<i32>,
    pub(crate) output: Output,
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "exit {:?}\n{}", self.status, self.output)
    }
}

impl fmt::Debug for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// A running daemon.
pub(crate) struct Daemon {
    started: Builder,
    child: Process,
    output: Output,
    url: String,
}

impl Daemon {
    /// A daemon in a fresh place with this config.
    #[track_caller]
    pub(crate) fn start(config: &str) -> Daemon {
        Daemon::builder(config).start()
    }

    pub(crate) fn builder(config: &str) -> Builder {
        Builder::at(&Place::new(config))
    }

    /// `http://127.0.0.1:PORT`
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn place(&self) -> &Place {
        &self.started.place
    }

    pub(crate) fn output(&self) -> &Output {
        &self.output
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.0.id()
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(&self.url)
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Response {
        self.request("GET", path, &[], b"")
    }

    #[track_caller]
    pub(crate) fn delete(&self, path: &str) -> Response {
        self.request("DELETE", path, &[], b"")
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &serde_json::Value) -> Response {
        self.send_json("POST", path, body)
    }

    #[track_caller]
    pub(crate) fn put(&self, path: &str, body: &serde_json::Value) -> Response {
        self.send_json("PUT", path, body)
    }

    #[track_caller]
    pub(crate) fn send_json(&self, method: &str, path: &str, body: &serde_json::Value) -> Response {
        self.request(
            method,
            path,
            &[("content-type", "application/json")],
            body.to_string().as_bytes(),
        )
    }

    /// Any request; fails the test with the daemon's output when the connection breaks. See [`Client::request`] for one that may.
    #[track_caller]
    pub(crate) fn request(&self, method: &str, path: &str, headers: Headers<'_>, body: &[u8]) -> Response {
        let answered = self.client().request(method, path, headers, body);
        answered.unwrap_or_else(|error| panic!("{method} {path}: {error}\n{}", self.output))
    }

    #[track_caller]
    pub(crate) fn events(&self, path: &str) -> EventStream {
        let opened = EventStream::open(&self.client(), path, &[]);
        opened.unwrap_or_else(|answer| panic!("GET {path}: {} {}", answer.status, answer.text()))
    }

    /// A client command against this daemon.
    pub(crate) fn cli(&self, arguments: &[&str]) -> Answered {
        self.cli_with_input(arguments, "")
    }

    pub(crate) fn cli_with_input(&self, arguments: &[&str], input: &str) -> Answered {
        let mut all = vec!["--server", &self.url];
        all.extend_from_slice(arguments);
        cli::ductor_with_input(&all, input)
    }

    /// Waits for a line of the daemon's output that contains `text`, and gives it back.
    #[track_caller]
    pub(crate) fn wait_log(&self, text: &str) -> String {
        let found = self.output.wait_for(text, PATIENCE);
        found.unwrap_or_else(|| panic!("no line with {text:?} in\n{}", self.output))
    }

    /// Asks until `probe` answers; fails the test with `what` and the daemon's output when it does not.
    #[track_caller]
    pub(crate) fn wait<T>(&self, what: &str, probe: impl FnMut() -> Option<T>) -> T {
        wait_until(PATIENCE, probe).unwrap_or_else(|| panic!("waited in vain for {what}\n{}", self.output))
    }

    /// Sends a signal by name, as in `kill -HUP`; fails the test when there is no process any more.
    #[track_caller]
    pub(crate) fn signal(&mut self, name: &str) {
        assert!(
            self.child.signal(name),
            "no daemon to send {name} to\n{}",
            self.output
        );
    }

    /// Stops the process until [`Daemon::thaw`].
    #[track_caller]
    pub(crate) fn freeze(&mut self) {
        self.signal("STOP");
    }

    #[track_caller]
    pub(crate) fn thaw(&mut self) {
        self.signal("CONT");
    }

    /// SIGKILL, and waits until the process is gone. Nothing is checked: a dead daemon's store is checked by the next one.
    pub(crate) fn kill9(&mut self) {
        self.child.kill();
        self.output.wait_end(Duration::from_secs(2));
    }

    /// SIGTERM, and waits for the drain; the exit code, and the store is checked if it is 0. `None` if a signal ended it.
    #[track_caller]
    pub(crate) fn term(&mut self) -> Option<i32> {
        // One that has just ended by itself has an exit code too.
        self.child.signal("TERM");
        self.wait_exit()
    }

    /// Waits for an end that something else has caused.
    #[track_caller]
    pub(crate) fn wait_exit(&mut self) -> Option<i32> {
        let status = self.child.wait(PATIENCE);
        let status = status.unwrap_or_else(|| panic!("the daemon does not end\n{}", self.output));
        self.output.wait_end(Duration::from_secs(2));
        if status.success() {
            self.check_store();
        }
        status.code()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.status().is_none()
    }

    /// The same daemon again: same config file, state directory, arguments and environment; a new port. A running one gets
    /// SIGTERM first.
    #[track_caller]
    pub(crate) fn restart(self) -> Daemon {
        self.restart_with(|builder| builder)
    }

    /// The same with other options: the failure that the first was started with taken away, say.
    #[track_caller]
    pub(crate) fn restart_with(mut self, change: impl FnOnce(Builder) -> Builder) -> Daemon {
        if self.is_running() {
            self.term();
        }
        change(self.started.clone()).start()
    }

    #[track_caller]
    fn check_store(&self) {
        let fault = self
            .started
            .store_check
            .and_then(|check| check(&self.started.place).err());
        if let Some(fault) = fault {
            panic!(
                "the store does not hold after a clean end: {fault}\n{}",
                self.output
            );
        }
    }

    fn into_refused(mut self) -> Refused {
        let status = self
            .child
            .wait(Duration::from_millis(200))
            .and_then(|status| status.code());
        self.child.kill();
        self.output.wait_end(Duration::from_secs(2));
        Refused {
            status,
            output: self.output.clone(),
        }
    }
}

/// Ends a daemon that still runs: by SIGTERM and with the check in a test that passes, at once in one that fails, whose
/// message then gets the daemon's output.
impl Drop for Daemon {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.child.kill();
            eprintln!("output of the daemon at {}:\n{}", self.url, self.output);
        } else if self.is_running() && !self.url.is_empty() {
            // A frozen one would not hear the other.
            self.child.signal("CONT");
            self.term();
        }
    }
}

/// Runs `ductor doctor --store`; two daemons in one place: only the last to end is worth checking, so use
/// [`Builder::leave_store_unchecked`] for the others.
pub(crate) fn check_store_with_doctor(place: &Place) -> Result<(), String> {
    let mut command = cli::command();
    command
        .arg("doctor")
        .arg("--store")
        .arg("--config")
        .arg(place.config());
    command
        .env("DUCTOR_STATE_DIR", place.state())
        .stdin(Stdio::null());
    let output = command
        .output()
        .map_err(|error| format!("start doctor: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Err(format!(
        "doctor: {}\n{}{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    ))
}

/// A child of this test; whatever happens, it is ended and reaped with its value.
struct Process(Child);

impl Process {
    fn status(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().expect("ask for the child's status")
    }

    fn wait(&mut self, timeout: Duration) -> Option<ExitStatus> {
        wait_until(timeout, || self.status())
    }

    /// False if the child has ended: its id may then be another's.
    fn signal(&mut self, name: &str) -> bool {
        if self.status().is_some() {
            return false;
        }
        let id = self.0.id().to_string();
        let status = Command::new("kill").arg(format!("-{name}")).arg(&id).status();
        status.expect("run kill").success()
    }

    fn kill(&mut self) {
        // Fails only for a child that has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
