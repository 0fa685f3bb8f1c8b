//! Reload: reads all files, judges them, and puts them in force in one step, or leaves everything as it is.
//!
//! Whoever needs the configuration asks the [`Reloader`] for the one in force; jobs and slot pools go by the engine's shelf.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::{Mutex, watch};

use super::book;
use super::difference::{Difference, SettingChange, keep_running};
use super::loader::{Loaded, Unusable};
use super::reconciler::Bundles;
use super::tenants;
use crate::config::{self, Config, Fault, Paint, Place, Sources};
use crate::domain::workflow::definition::Definition;
use crate::engine::changes::retire::{Keep, KeepAudit, KeepLogs};
use crate::engine::changes::{outdated, publish};
use crate::engine::core::Engine;
use crate::engine::metrics::ResultLabel;
use crate::os::supervisor;
use crate::store::ChangeError;
use crate::words::limits;
use crate::words::names::{BadName, JobName};
use crate::words::time::Millis;

/// Reads the configuration anew; blocks on the disk.
pub type Read = dyn Fn() -> Result<Loaded, Unusable> + Send + Sync;

/// The configuration in force, and the way to another. Clones share it.
#[derive(Clone)]
pub struct Reloader {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    read: Box<Read>,
    folder: PathBuf,
    /// Held by the reload that works; the next one waits for it.
    turn: Mutex<()>,
    standing: RwLock<Standing>,
    in_force: watch::Sender<Arc<Config>>,
    keep: watch::Sender<Keep>,
    bundles: Bundles,
}

/// What is known about the configuration in force.
#[derive(Debug, Clone)]
pub struct Standing {
    /// Since when.
    pub since: Millis,
    /// Findings that did not keep it from being used, with files named from the configuration's folder.
    pub warnings: Vec<Fault>,
    /// Settings whose new values wait for a restart.
    pub needs_restart: Vec<SettingChange>,
    /// The last reload was refused.
    pub rejected: Option<Rejected>,
}

/// A reload that changed nothing, and why.
#[derive(Debug, Clone)]
pub struct Rejected {
    /// The first refusal since the last good load.
    pub since: Millis,
    /// The newest refusal.
    pub at: Millis,
    /// What is wrong, with files named from the configuration's folder.
    pub faults: Vec<Fault>,
    /// The same for people, with carets.
    pub rendered: String,
}

/// A reload that is in force.
#[derive(Debug, Clone)]
pub struct Reloaded {
    /// What changed.
    pub difference: Difference,
    /// Waiting entries that were cancelled, because their job was changed, disabled or removed.
    pub cancelled_entries: usize,
    /// Findings that do not keep it from being used.
    pub warnings: Vec<Fault>,
}

/// Why a reload changed nothing.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReloadError {
    /// The files are not good.
    #[error("the configuration is not good; the running one stays in force")]
    Rejected(Rejected),
    /// The store did not take it.
    #[error("the store could not record the configuration; the running one stays in force")]
    Store,
    /// The daemon is going.
    #[error("the daemon is draining; the next one reads the configuration at its start")]
    Draining,
}

impl std::fmt::Debug for Reloader {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Reloader")
            .field("folder", &self.inner.folder)
            .finish_non_exhaustive()
    }
}

impl Reloader {
    /// Begins with what the daemon was started with. `folder` is where files are named from in answers.
    pub fn new(engine: &Engine, loaded: Loaded, folder: &Path, read: Box<Read>) -> Reloader {
        let standing = Standing {
            since: engine.now().wall,
            warnings: loaded
                .warnings
                .iter()
                .map(|fault| named_from(folder, fault))
                .collect(),
            needs_restart: Vec::new(),
            rejected: None,
        };
        let keep = keep_of(&loaded.config);
        Reloader {
            inner: Arc::new(Inner {
                engine: engine.clone(),
                read,
                folder: folder.to_owned(),
                turn: Mutex::new(()),
                standing: RwLock::new(standing),
                in_force: watch::Sender::new(Arc::new(loaded.config)),
                keep: watch::Sender::new(keep),
                bundles: Bundles::default(),
            }),
        }
    }

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.inner.in_force.borrow())
    }

    /// Tells of each configuration that comes into force.
    pub fn follow(&self) -> watch::Receiver<Arc<Config>> {
        self.inner.in_force.subscribe()
    }

    /// What retention keeps, now and after each reload.
    pub(super) fn follow_keep(&self) -> watch::Receiver<Keep> {
        self.inner.keep.subscribe()
    }

    /// What is known about the bundles that it names.
    pub fn bundles(&self) -> Bundles {
        self.inner.bundles.clone()
    }

    /// What is known about it.
    pub fn standing(&self) -> Standing {
        let standing = self.inner.standing.read();
        standing.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads all files and puts them in force, or changes nothing. Goes on to its end when the caller leaves.
    pub async fn reload(&self) -> Result<Reloaded, ReloadError> {
        let own = self.clone();
        let work = tokio::spawn(async move {
            let _turn = own.inner.turn.lock().await;
            supervisor::reloading();
            let result = own.inner.work().await;
            supervisor::ready();
            result
        });
        match work.await {
            Ok(result) => result,
            Err(defect) => std::panic::resume_unwind(defect.into_panic()),
        }
    }
}

impl Inner {
    async fn work(self: &Arc<Self>) -> Result<Reloaded, ReloadError> {
        if self.engine.is_stopping() {
            return Err(ReloadError::Draining);
        }
        let own = Arc::clone(self);
        let read = tokio::task::spawn_blocking(move || (own.read)()).await;
        let loaded = match read {
            Ok(Ok(loaded)) => loaded,
            Ok(Err(unusable)) => return Err(self.reject(&unusable)),
            Err(defect) => std::panic::resume_unwind(defect.into_panic()),
        };
        let result = self.apply(loaded).await;
        self.count(if result.is_ok() { "applied" } else { "failed" });
        result
    }

    async fn apply(&self, loaded: Loaded) -> Result<Reloaded, ReloadError> {
        let Loaded {
            config: mut read,
            warnings,
            sources,
        } = loaded;
        let running = Arc::clone(&self.in_force.borrow());
        let named = |definitions: Vec<Definition>| -> BTreeMap<JobName, Definition> {
            let named = definitions.into_iter().map(|job| (job.name.clone(), job));
            named.collect()
        };
        let defect = |error: BadName| self.not_recorded(&error.to_string());
        let definitions = book::definitions_of(&read).map_err(defect)?;
        let (old_jobs, new_jobs) = (in_force_jobs(&self.engine), named(definitions.clone()));
        let difference = Difference::between((&running, &old_jobs), (&read, &new_jobs));
        keep_running(&running, &mut read);
        let slot_pools = book::slot_pools_of(&read).map_err(defect)?;
        let (to_publish, by) = (definitions.clone(), self.engine.node.clone());
        let published = self.engine.store.change("publish", move |tx| {
            publish::publish(tx, &by, &to_publish, &slot_pools)
        });
        let versions = published
            .await
            .map_err(|error| self.not_recorded(&error.to_string()))?;
        let current = self.engine.book();
        let (node, trusted) = (current.node.clone(), current.locks_trusted);
        let book = book::book_of(&read, node, definitions, &versions, trusted).map_err(defect)?;
        let made = tenants::make(&self.engine, &read).await;
        made.map_err(|why| self.not_recorded(&why))?;
        // From here on nothing can fail: it is in force.
        self.engine.shelf.replace(book);
        self.keep.send_replace(keep_of(&read));
        self.in_force.send_replace(Arc::new(read));
        let cancelled_entries = withdraw_outdated(&self.engine).await.unwrap_or_else(|error| {
            // They are judged again when they are the head of their queue.
            tracing::warn!(cause = %error, "waiting entries of changed jobs are cancelled later");
            0
        });
        self.engine.wake.notify_one();
        tracing::info!(
            cancelled_entries,
            "configuration reloaded: {}",
            difference.summary()
        );
        if !warnings.is_empty() {
            let text = config::render(&warnings, &sources, Paint::Plain);
            tracing::warn!(findings = %format!("\n{text}"), "the configuration in force has warnings");
        }
        let warnings: Vec<Fault> = warnings
            .iter()
            .map(|fault| named_from(&self.folder, fault))
            .collect();
        self.stand(Standing {
            since: self.engine.now().wall,
            warnings: warnings.clone(),
            needs_restart: difference.needs_restart.clone(),
            rejected: None,
        });
        Ok(Reloaded {
            difference,
            cancelled_entries,
            warnings,
        })
    }

    fn stand(&self, standing: Standing) {
        *self.standing.write().unwrap_or_else(PoisonError::into_inner) = standing;
    }

    fn count(&self, result: &str) {
        let label = ResultLabel {
            result: result.to_owned(),
        };
        self.engine.metrics.config_reloads.get_or_create(&label).inc();
    }

    /// Everything stays; the log, the answer and the status say why.
    fn reject(&self, unusable: &Unusable) -> ReloadError {
        let Unusable { faults, sources } = unusable;
        let errors = faults.iter().filter(|fault| fault.is_error()).count();
        let text = config::render(faults, sources, Paint::Plain);
        tracing::error!(
            errors,
            faults = %format!("\n{text}"),
            "the configuration is not good and was not reloaded; the running one stays in force"
        );
        let faults: Vec<Fault> = faults
            .iter()
            // Remarks are in the log; what has to be mended is the answer.
            .filter(|fault| fault.is_error())
            .map(|fault| named_from(&self.folder, fault))
            .collect();
        let sources = sources.renamed(|name| relative(&self.folder, name));
        self.count("rejected");
        ReloadError::Rejected(self.note_rejection(faults, &sources))
    }

    fn note_rejection(&self, faults: Vec<Fault>, sources: &Sources) -> Rejected {
        let at = self.engine.now().wall;
        let mut standing = self.standing.write().unwrap_or_else(PoisonError::into_inner);
        let rejected = Rejected {
            since: standing.rejected.as_ref().map_or(at, |before| before.since),
            at,
            rendered: config::render(&faults, sources, Paint::Plain),
            faults,
        };
        standing.rejected = Some(rejected.clone());
        rejected
    }

    /// The files are good and the store did not take them: nothing has changed, and another try may succeed.
    fn not_recorded(&self, cause: &str) -> ReloadError {
        tracing::error!(
            cause,
            "the configuration could not be recorded; the running one stays in force"
        );
        let at = Place::whole("the state directory");
        let message = "the store could not record the configuration";
        let fault =
            Fault::error("config/not-recorded", &at, message).with_help("reload again when it answers");
        self.note_rejection(vec![fault], &Sources::default());
        ReloadError::Store
    }
}

fn keep_of(config: &Config) -> Keep {
    Keep {
        runs: config.retention.runs,
        age_ms: config.retention.age_ms,
        logs: KeepLogs {
            age_ms: config.retention.logs.age_ms,
            bytes: config.retention.logs.bytes,
        },
        audit: KeepAudit {
            age_ms: config.retention.audit.age_ms,
            count: config.retention.audit.count,
        },
    }
}

fn in_force_jobs(engine: &Engine) -> BTreeMap<JobName, Definition> {
    let book = engine.book();
    let jobs = book.jobs.iter();
    jobs.map(|(name, job)| (name.clone(), (*job.definition).clone()))
        .collect()
}

/// Cancels what waits for a definition that is not in force any more (T5), a bounded number in one change.
pub(super) async fn withdraw_outdated(engine: &Engine) -> Result<usize, ChangeError> {
    let found = match engine.read(outdated::find).await {
        Ok(found) => found,
        Err(error) => {
            tracing::warn!(cause = %error, "waiting entries of changed jobs could not be looked for");
            return Ok(0);
        }
    };
    let mut ended = 0;
    for slice in found.chunks(limits::MAINTENANCE_ROWS_MAX) {
        let slice = slice.to_vec();
        let change = engine
            .store
            .change("outdated entries", move |tx| outdated::withdraw(tx, &slice));
        ended += change.await?;
    }
    Ok(ended)
}

/// A file as answers name it: from the configuration's folder, never by its place on the machine.
fn relative(folder: &Path, name: &str) -> String {
    let path = Path::new(name);
    let short = path
        .strip_prefix(folder)
        .ok()
        .filter(|rest| !rest.as_os_str().is_empty());
    let last = path.file_name().map(Path::new);
    short.or(last).unwrap_or(path).display().to_string()
}

/// The fault with its files named so, and without the words of the operating system.
fn named_from(folder: &Path, fault: &Fault) -> Fault {
    let place = |at: &Place| Place {
        file: relative(folder, &at.file).into(),
        ..at.clone()
    };
    let mut named = fault.clone();
    named.at = place(&fault.at);
    named.related = fault
        .related
        .iter()
        .map(|(at, sentence)| (place(at), sentence.clone()))
        .collect();
    if named.code == "config/unreadable"
        && let Some((sentence, _)) = fault.message.split_once(": ")
    {
        named.message = format!("{sentence} (the daemon's log says why)");
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_from_the_folder_of_the_configuration() {
        for (folder, name, expected) in [
            ("/etc/d", "/etc/d/ductor.yaml", "ductor.yaml"),
            ("/etc/d", "/etc/d/more/a.yaml", "more/a.yaml"),
            ("config", "config/ductor.yaml", "ductor.yaml"),
            ("", "ductor.yaml", "ductor.yaml"),
            ("/etc/d", "/etc/other/b.crontab", "b.crontab"),
            ("/etc/d", "--listen", "--listen"),
        ] {
            assert_eq!(relative(Path::new(folder), name), expected);
        }
    }
}
