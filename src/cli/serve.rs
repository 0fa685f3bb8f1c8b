//! `ductor serve`: opens, listens, works until a signal, drains, closes.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use super::args::ServeArguments;
use super::configuration::{self, Loaded};
use super::exit::Exit;
use crate::config::LogFormat;
use crate::daemon::{self, Daemon, Drained, OpenError, ReloadError, Reloader};
use crate::dashboard::WebFiles;
use crate::engine::core::Engine;

/// Runs the daemon to its end.
pub(super) fn serve(arguments: &ServeArguments) -> Exit {
    let loaded = match configuration::load(arguments) {
        Ok(loaded) => loaded,
        Err(text) => {
            eprint(&text);
            return Exit::Usage;
        }
    };
    if !loaded.warnings.is_empty() {
        eprint(&loaded.warnings);
    }
    let set_level = start_logging(&loaded);
    let web_files = match web_files(arguments.web_dir.as_deref()) {
        Ok(web_files) => web_files,
        Err(text) => {
            eprint(&text);
            return Exit::Usage;
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            eprint(&format!("error: the runtime cannot start: {error}\n"));
            return Exit::Negative;
        }
    };
    let exit = runtime.block_on(work(loaded, set_level, web_files));
    // A disk that hangs must not keep the process alive.
    runtime.shutdown_timeout(Duration::from_secs(1));
    exit
}

fn eprint(text: &str) {
    // The macro would panic where nothing can be written: the exit code still says what the matter is.
    anstream::stderr().write_all(text.as_bytes()).ok();
}

/// The dashboard of the binary, or of a folder that has a page in it.
fn web_files(folder: Option<&Path>) -> Result<WebFiles, String> {
    let web_files = WebFiles::new(folder.map(Path::to_owned));
    match folder {
        Some(folder) if web_files.get("index.html").is_none() => Err(format!(
            "error: --web-dir {} has no index.html that can be read; name the folder `web` of the sources, or leave it out\n",
            folder.display()
        )),
        Some(_) | None => Ok(web_files),
    }
}

/// Sets another level while the daemon runs.
type SetLevel = Box<dyn Fn(&str) + Send>;

fn filter_of(level: &str) -> EnvFilter {
    EnvFilter::try_new(level).unwrap_or_else(|_| EnvFilter::new("info"))
}

fn start_logging(loaded: &Loaded) -> SetLevel {
    let logging = &loaded.config.logging;
    let (builder, first) = (
        // A log that cannot be written (its disk is full) is no reason to panic, which the remark about it would do.
        tracing_subscriber::fmt()
            .with_writer(std::io::stderr)
            .log_internal_errors(false),
        filter_of(&logging.level),
    );
    let terminal = std::io::stderr().is_terminal();
    let pretty = match logging.format {
        LogFormat::Pretty => true,
        LogFormat::Json => false,
        LogFormat::Auto => terminal,
    };
    let (started, set_level): (_, SetLevel) = if pretty {
        let builder = builder
            .with_target(false)
            .with_ansi(terminal)
            .with_env_filter(first);
        let builder = builder.with_filter_reloading();
        let handle = builder.reload_handle();
        let set = move |level: &str| drop(handle.reload(filter_of(level)));
        (builder.try_init(), Box::new(set))
    } else {
        let builder = builder.json().flatten_event(true).with_env_filter(first);
        let builder = builder.with_filter_reloading();
        let handle = builder.reload_handle();
        let set = move |level: &str| drop(handle.reload(filter_of(level)));
        (builder.try_init(), Box::new(set))
    };
    if let Err(error) = started {
        eprint(&format!("warning: logging cannot start: {error}\n"));
    }
    set_level
}

/// The level of each configuration that comes into force.
async fn follow_level(reloader: Reloader, set_level: SetLevel) {
    let mut changes = reloader.follow();
    while changes.changed().await.is_ok() {
        let level = changes.borrow_and_update().logging.level.clone();
        set_level(&level);
    }
}

fn exit_of(error: &OpenError) -> Exit {
    match error {
        OpenError::NodeTaken { .. } | OpenError::DirectoryTaken { .. } | OpenError::DirectoryHeld { .. } => {
            Exit::Conflict
        }
        OpenError::Unguarded(_) => Exit::Usage,
        OpenError::Directory(_) | OpenError::Store { .. } | OpenError::Other(_) => Exit::Negative,
    }
}

async fn work(loaded: Loaded, set_level: SetLevel, web_files: WebFiles) -> Exit {
    // First of all: a signal that comes early waits, and does not end us.
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => {
            eprint(&format!("error: signals cannot be received: {error}\n"));
            return Exit::Negative;
        }
    };
    // The port next: a second daemon by mistake must not even touch the state directory.
    let listen = loaded.config.server.listen;
    let listener = match TcpListener::bind(listen).await {
        Ok(listener) => listener,
        Err(error) => {
            eprint(&format!(
                "error: cannot listen on {listen}: {error}; choose another with --listen\n"
            ));
            return Exit::Negative;
        }
    };
    let daemon = match Daemon::open(loaded.config.clone()).await {
        Ok(daemon) => daemon,
        Err(error) => {
            eprint(&format!("error: {error}\n"));
            return exit_of(&error);
        }
    };
    let address = listener.local_addr().unwrap_or(listen);
    if let Err(error) = daemon::doors::open(&daemon.engine, &loaded.config, address).await {
        eprint(&format!("error: {error}\n"));
        daemon.close();
        return exit_of(&error);
    }
    let reloader = reloader_of(&daemon.engine, &loaded);
    let stop = CancellationToken::new();
    let loops = daemon.start(&reloader);
    let app =
        crate::http::App::new(&daemon.engine, loops.unreadable(), &reloader, address).with_web(web_files);
    let web = tokio::spawn(crate::http::serve(listener, app.clone(), stop.clone()));
    announce(&loaded, &daemon, address);
    tokio::spawn(follow_level(reloader.clone(), set_level));
    let supervised = tokio::spawn(daemon::attend(daemon.engine.clone(), move || {
        let app = app.clone();
        async move { app.pulse().await }
    }));
    signals.until_end(&daemon.engine, &reloader).await;
    tracing::info!("stopping: no new work; running commands are waited for");
    let patience = Duration::from_millis(reloader.config().shutdown.drain_timeout_ms);
    let engine = daemon.engine.clone();
    let drained = loops.drain(patience, signals.until_end(&engine, &reloader)).await;
    if let Drained::Ended(count) = drained {
        tracing::warn!("{count} commands were ended and will run again");
    }
    stop.cancel();
    if tokio::time::timeout(Duration::from_secs(3), web).await.is_err() {
        tracing::debug!("some connections did not end in time");
    }
    supervised.abort();
    if !daemon.close() {
        tracing::error!("the store could not be closed in time; what was acknowledged is on disk");
        return Exit::Negative;
    }
    tracing::info!("stopped");
    Exit::Done
}

fn reloader_of(engine: &Engine, loaded: &Loaded) -> Reloader {
    let read = loaded.loader.clone();
    let first = daemon::Loaded {
        config: loaded.config.clone(),
        warnings: loaded.findings.clone(),
        sources: crate::config::Sources::default(),
    };
    Reloader::new(
        engine,
        first,
        loaded.loader.folder(),
        Box::new(move || read.load()),
    )
}

fn announce(loaded: &Loaded, daemon: &Daemon, address: std::net::SocketAddr) {
    let state = daemon.engine.directory.root().display();
    let node = &daemon.engine.node;
    let config = loaded.path.display();
    let text = format!(
        "ductor {}\n  dashboard  http://{address}\n  state      {state}\n  node       {node}\n  config     {config}\n",
        env!("CARGO_PKG_VERSION")
    );
    let mut out = anstream::stdout();
    // A closed stdout is no reason to end a daemon.
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
}

/// The signals that a daemon answers.
struct Signals {
    term: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
    report: tokio::signal::unix::Signal,
    child: tokio::signal::unix::Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Signals> {
        Ok(Signals {
            term: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            report: signal(SignalKind::user_defined1())?,
            child: signal(SignalKind::child())?,
        })
    }

    /// Resolves at the next TERM or INT; answers the others meanwhile.
    async fn until_end(&mut self, engine: &Engine, reloader: &Reloader) {
        let is_first_process = crate::os::proc::own_pid() == 1;
        loop {
            tokio::select! {
                _ = self.term.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hangup.recv() => drop(tokio::spawn(reload(reloader.clone()))),
                _ = self.report.recv() => report(engine),
                _ = self.child.recv() => {
                    if is_first_process && let Err(error) = crate::os::children::reap_orphans() {
                        tracing::debug!(cause = %error, "orphans could not be reaped");
                    }
                }
            }
        }
    }
}

/// SIGHUP: what came of it stands in the log already, unless it was not even tried.
async fn reload(reloader: Reloader) {
    if let Err(error @ ReloadError::Draining) = reloader.reload().await {
        tracing::warn!("SIGHUP: {error}");
    }
}

/// SIGUSR1: the state of the process as one JSON document in the log.
fn report(engine: &Engine) {
    let store = engine.store.stats();
    let state = serde_json::json!({
        "passes": engine.metrics.passes(),
        "running": engine.live.jobs(),
        "stopping": engine.is_stopping(),
        "store": {
            "commits": store.commits, "changes": store.changes, "faults": store.faults,
            "waiting": store.waiting, "fileBytes": store.file_bytes, "mode": store.mode,
        },
        "openFiles": crate::os::proc::own_open_files().unwrap_or(0),
        "residentBytes": crate::os::proc::own_rss_bytes().unwrap_or(0),
    });
    tracing::info!(state = %state, "state of the process");
}
