//! Opening: state directory, locks, store, identity, published configuration; and what the last daemon left.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::reload::{self, Reloader};
use super::{book, identity, run};
use crate::config::{Config, StateMode};
use crate::engine::changes::{nodes, publish};
use crate::engine::core::{Engine, EngineParts};
use crate::engine::hunt::Hunter;
use crate::os::failpoint::Faults;
use crate::store::coordination::{DirectoryError, HeldLock, StateDirectory, is_kept_alone};
use crate::store::migrate;
use crate::store::{ChangeError, Store, StoreError, StoreMode, StoreOptions};
use crate::words::limits;
use crate::words::names::NodeName;
use crate::words::time::{Clock, SystemClock};
use crate::worker::process::own_exe;

/// Why a daemon cannot open its state.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The configured name belongs to a running daemon.
    #[error("node name '{name}' is in use by a running daemon{}", holder_text(*holder))]
    NodeTaken {
        /// The name.
        name: NodeName,
        /// The pid in its lock file.
        holder: Option<u32>,
    },
    /// Another daemon has the store and shares it with nobody, or this one would.
    #[error(
        "state directory {path} is in use by another daemon{holder}; {remedy}, or give this one its own --state-dir"
    )]
    DirectoryTaken {
        /// Its name and pid, in words.
        holder: String,
        /// The directory as configured.
        path: String,
        /// What else could be done.
        remedy: &'static str,
    },
    /// Another daemon holds the store in the middle of something and does not go on.
    #[error(
        "state directory {path} is held by another daemon that does not go on{holder}: let it go on, or end it"
    )]
    DirectoryHeld {
        /// Its name and pid, in words.
        holder: String,
        /// The directory as configured.
        path: String,
    },
    /// The directory cannot be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The store cannot be opened.
    #[error("the store {path} cannot be opened: {cause}; keep a copy of it before you try anything")]
    Store {
        /// The file.
        path: String,
        /// Why.
        cause: StoreError,
    },
    /// Anybody could come in.
    #[error("{0}")]
    Unguarded(String),
    /// Anything else, in a sentence.
    #[error("{0}")]
    Other(String),
}

fn holder_text(holder: Option<u32>) -> String {
    holder.map_or_else(String::new, |pid| format!(" (pid {pid})"))
}

impl From<std::io::Error> for OpenError {
    fn from(error: std::io::Error) -> OpenError {
        OpenError::Other(error.to_string())
    }
}

impl From<StoreError> for OpenError {
    fn from(error: StoreError) -> OpenError {
        OpenError::Other(format!("the store failed at the start: {error}"))
    }
}

impl From<ChangeError> for OpenError {
    fn from(error: ChangeError) -> OpenError {
        OpenError::Other(error.to_string())
    }
}

/// An open daemon that does not work yet.
#[derive(Debug)]
pub struct Daemon {
    /// The parts that faces and loops share.
    pub engine: Engine,
    /// Held for life.
    node_lock: HeldLock,
    format_lock: HeldLock,
}

impl Daemon {
    /// Opens everything and settles what this node left before. Needs a runtime.
    pub async fn open(config: Config) -> Result<Daemon, OpenError> {
        let path: PathBuf = config.state.path.clone();
        let directory = StateDirectory::prepare(&path, config.state.network)?;
        let configured = match &config.node.name {
            Some(name) => {
                let (name, mut lock) = identity::take_configured(&directory, name)?;
                // Who waits for the store is known to others by then.
                lock.write_holder(crate::os::proc::own_pid(), mode_word(config.state.mode))?;
                Some((name, lock))
            }
            None => None,
        };
        let format_lock = directory.lock_format()?;
        let Some(format_lock) = format_lock else {
            return Err(OpenError::Other(format_taken(&directory, &path)));
        };
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let faults = Faults::default();
        let locks_trusted = trust_locks(&directory, &faults);
        let store = open_store(&config, &directory, &clock, faults)?;
        let place = identity::place()?;
        let generated = configured.is_none();
        let (node, mut node_lock) = match configured {
            Some(taken) => taken,
            None => identity::take_generated(&directory, &store, &place)?,
        };
        node_lock.write_holder(crate::os::proc::own_pid(), mode_word(config.state.mode))?;
        store.listen(node.as_str())?;
        directory.write_format()?;
        format_lock.share()?;
        let record = identity::record_of(&place, generated, clock.now());
        let name = node.clone();
        store
            .change("node", move |tx| nodes::introduce(tx, &name, &record))
            .await?;
        let book = published_book(&config, &store, node, locks_trusted).await?;
        let engine = Engine::new(EngineParts {
            store,
            book,
            clock,
            place,
            directory,
            log_bytes_max: limits::LOG_BYTES_MAX,
            program: own_exe(),
        });
        engine
            .disk
            .look(engine.directory.root(), config.state.low_disk_bytes);
        let settled = Hunter::new(engine.clone()).settle_own().await?;
        if settled > 0 {
            tracing::info!("{settled} interrupted executions of this node will run again");
        }
        let outdated = reload::withdraw_outdated(&engine).await?;
        if outdated > 0 {
            tracing::info!("{outdated} waiting entries of changed, disabled or removed jobs are cancelled");
        }
        Ok(Daemon {
            engine,
            node_lock,
            format_lock,
        })
    }

    /// Starts all loops. Retention keeps what the configuration in force says.
    pub fn start(&self, reloader: &Reloader) -> run::Loops {
        run::Loops::start(&self.engine, reloader)
    }

    /// Closes the store and gives the name back. The locks go with it.
    pub fn close(self) -> bool {
        let closed = self.engine.store.close(Duration::from_secs(10));
        drop(self.format_lock);
        drop(self.node_lock);
        closed
    }
}

/// Whether the locks of the state directory exclude, on this machine and on others; says so if not.
fn trust_locks(directory: &StateDirectory, faults: &Faults) -> bool {
    // A mount table that cannot be read is no reason for distrust; the probe is the real test on this machine.
    if let Ok(Some(option)) = crate::os::disk::keeps_locks_local(directory.root()) {
        tracing::error!(
            "the state directory is on a mount that keeps locks local (`{option}`); slot pools admit nothing"
        );
        return false;
    }
    let excludes = directory.locks_are_trustworthy(faults, Some(&own_exe()));
    if !excludes {
        tracing::error!("exclusive locks do not exclude in this state directory; slot pools admit nothing");
    }
    excludes
}

fn open_store(
    config: &Config,
    directory: &StateDirectory,
    clock: &Arc<dyn Clock>,
    faults: Faults,
) -> Result<Store, OpenError> {
    let cache_bytes = usize::try_from(config.state.cache_bytes).unwrap_or(usize::MAX);
    let options = StoreOptions {
        cache_bytes,
        mode: match config.state.mode {
            StateMode::Auto => StoreMode::Auto,
            StateMode::Exclusive => StoreMode::Exclusive,
            StateMode::Shared => StoreMode::Shared,
        },
        // A store that was there once and is gone is never replaced by an empty one.
        create: !directory.was_used(),
        faults,
        ..StoreOptions::in_directory(directory.root())
    };
    let holder = || holder_words(&directory.holders(), config.node.name.as_deref());
    let path = || config.state.path.display().to_string();
    let migrated = if directory.is_older() {
        migrate::migrate_files(directory, clock.now())
    } else {
        Ok(())
    };
    match migrated.and_then(|()| Store::open(options, Arc::clone(clock))) {
        Ok(store) => Ok(store),
        Err(StoreError::InUse) if config.state.mode == StateMode::Exclusive => {
            Err(OpenError::DirectoryTaken {
                path: path(),
                holder: holder(),
                remedy: "end it, or share the store: `state.mode: auto` in both",
            })
        }
        Err(StoreError::InUse) if is_kept_alone(directory.root()) => Err(OpenError::DirectoryTaken {
            path: path(),
            holder: holder(),
            remedy: "end it, or let it share the store: `state.mode: auto` in its configuration",
        }),
        Err(StoreError::InUse | StoreError::Held) => Err(OpenError::DirectoryHeld {
            path: path(),
            holder: suspect_words(&directory.holders(), config.node.name.as_deref()),
        }),
        Err(cause) => Err(OpenError::Store {
            path: directory.root().join("ductor.redb").display().to_string(),
            cause,
        }),
    }
}

/// Somebody has the lock that this start needs.
fn format_taken(directory: &StateDirectory, path: &std::path::Path) -> String {
    let path = path.display();
    if directory.is_older() && !directory.holders().is_empty() {
        return format!(
            "state directory {path} is in use by a daemon of an older version; end it first: this one brings the store to \
             its own format"
        );
    }
    format!("state directory {path} is being migrated, compacted or restored; try again when that is done")
}

fn mode_word(mode: StateMode) -> &'static str {
    match mode {
        StateMode::Auto => "auto",
        StateMode::Exclusive => "exclusive",
        StateMode::Shared => "shared",
    }
}

/// Which of the daemons that live here may be the one that does not go on: a stopped process is, otherwise all are named.
fn suspect_words(holders: &[(String, Option<u32>)], own: Option<&str>) -> String {
    let others = holders.iter().filter(|(name, _)| Some(name.as_str()) != own);
    let said = |(name, pid): &(String, Option<u32>)| match pid {
        Some(pid) => format!("node {name} (pid {pid})"),
        None => format!("node {name}"),
    };
    let is_stopped = |pid: &Option<u32>| matches!(pid.and_then(crate::os::proc::state_of), Some('T' | 't'));
    let (stopped, rest): (Vec<_>, Vec<_>) = others.partition(|(_, pid)| is_stopped(pid));
    match (&stopped[..], &rest[..]) {
        ([], []) => String::new(),
        ([], rest) => {
            let names: Vec<String> = rest.iter().map(|one| said(one)).collect();
            format!(", one of {}", names.join(", "))
        }
        (stopped, _) => {
            let names: Vec<String> = stopped.iter().map(|one| said(one)).collect();
            format!("; stopped is {}", names.join(", "))
        }
    }
}

fn holder_words(holders: &[(String, Option<u32>)], own: Option<&str>) -> String {
    let other = holders.iter().find(|(name, _)| Some(name.as_str()) != own);
    match other {
        None => String::new(),
        Some((name, None)) => format!(", node {name}"),
        Some((name, Some(pid))) => format!(", node {name} (pid {pid})"),
    }
}

async fn published_book(
    config: &Config,
    store: &Store,
    node: NodeName,
    locks_trusted: bool,
) -> Result<crate::engine::book::Book, OpenError> {
    let bad = |error: crate::words::names::BadName| OpenError::Other(error.to_string());
    let definitions = book::definitions_of(config).map_err(bad)?;
    let slot_pools = book::slot_pools_of(config).map_err(bad)?;
    let (to_publish, by) = (definitions.clone(), node.clone());
    let versions = store
        .change("publish", move |tx| {
            publish::publish(tx, &by, &to_publish, &slot_pools)
        })
        .await?;
    book::book_of(config, node, definitions, &versions, locks_trusted).map_err(bad)
}
