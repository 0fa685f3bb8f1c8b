//! Keeps bundles in force: applies their files at the start, at each reload and when they change, and says of each whether what is
//! declared is what it says. What somebody changes by hand is shown, or put back.
//!
//! Several daemons may share one state. Applying is idempotent, so those with the same file do not disturb each other; with
//! different files the one that was put in force last counts, as with the rest of the configuration.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use super::bundle_files::{self, BundleFile, Stamp};
use super::reload::{Reloader, relative};
use crate::config::{BundleConfig, Fault, RoutingConfig};
use crate::domain::routing::bundle::{Action, Change, Facts, Step, failing, step};
use crate::domain::routing::fault;
use crate::engine::bundles as desk;
use crate::engine::changes::bundles::{No, Planned, Wish};
use crate::engine::core::Engine;
use crate::store::routing_rows::BundleLoad;
use crate::store::{ChangeError, StoreError, access, routing_live};
use crate::words::ids::TenantId;
use crate::words::limits;
use crate::words::time::Millis;

/// How often files are looked at.
const PERIOD: Duration = Duration::from_millis(limits::BUNDLE_LOOK_MS);
/// Times that an application is planned anew because something else was declared in between.
const TRIES: usize = 5;
/// Looks after which something that could not be applied is tried again, although nothing that it names has moved.
const LOOKS_BEFORE_RETRY: u32 = 15;

/// How it stands with a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BundleState {
    /// It was not looked at yet.
    Pending,
    /// What is declared is what the file says.
    Synced,
    /// Somebody has changed what is declared.
    Drifted,
    /// The file cannot be applied; the last good one stays in force.
    Failed,
}

impl BundleState {
    /// As the wire has it.
    pub fn word(self) -> &'static str {
        match self {
            BundleState::Pending => "pending",
            BundleState::Synced => "synced",
            BundleState::Drifted => "drifted",
            BundleState::Failed => "failed",
        }
    }
}

/// What is known about one bundle.
#[derive(Debug, Clone)]
pub struct BundleStanding {
    /// The file, from the folder of the configuration.
    pub path: String,
    /// Whose objects these are.
    pub tenant: String,
    /// The name in the file, once one could be read.
    pub name: Option<String>,
    /// Of what stands in the file.
    pub digest: Option<String>,
    /// How it stands.
    pub state: BundleState,
    /// Since when.
    pub since: Millis,
    /// When this daemon has applied it last.
    pub applied_at: Option<Millis>,
    /// Changes by hand are put back.
    pub enforce: bool,
    /// Why it failed, with places.
    pub faults: Vec<Fault>,
    /// What an application would change, the first of it.
    pub changes: Vec<Change>,
    /// How much that would be in all.
    pub differing: usize,
    /// Another daemon has put another file of this name in force since.
    pub other: Option<BundleLoad>,
}

/// What is known about all of them. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Bundles {
    inner: Arc<RwLock<Vec<BundleStanding>>>,
}

impl Bundles {
    /// All of them, in the order of the configuration.
    pub fn standing(&self) -> Vec<BundleStanding> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn tell(&self, standing: Vec<BundleStanding>) {
        *self.inner.write().unwrap_or_else(PoisonError::into_inner) = standing;
    }
}

/// The loop.
#[derive(Debug)]
pub struct Reconciler {
    engine: Engine,
    bundles: Bundles,
    folder: PathBuf,
    kept: Vec<Kept>,
}

/// One file that is kept in force.
#[derive(Debug)]
struct Kept {
    wanted: BundleConfig,
    standing: BundleStanding,
    /// The file that was read last.
    known: Option<Stamp>,
    /// Another one that may still be written.
    settling: Option<Option<Stamp>>,
    /// The newest good one.
    file: Option<Arc<BundleFile>>,
    /// What is wrong with the newest one.
    unreadable: Vec<Fault>,
    due: Option<Due>,
    /// The number of the newest declaration that was looked at.
    revision: Option<u64>,
    /// Looks since something failed.
    waited: u32,
}

/// It is to be applied.
#[derive(Debug, Default)]
struct Due {
    /// What had been put in force when it became due: whoever comes later, wins.
    since: Option<Option<BundleLoad>>,
}

/// What the store could not do now.
#[derive(Debug, thiserror::Error)]
enum NotNow {
    #[error(transparent)]
    Read(#[from] StoreError),
    #[error(transparent)]
    Write(#[from] ChangeError),
}

impl Reconciler {
    /// For the bundles that `bundles` tells of; `folder` is where files are named from.
    pub fn new(engine: &Engine, bundles: Bundles, folder: &Path) -> Reconciler {
        Reconciler {
            engine: engine.clone(),
            bundles,
            folder: folder.to_owned(),
            kept: Vec::new(),
        }
    }

    /// Works until the daemon stops.
    pub(super) async fn run(mut self, reloader: Reloader) {
        let mut configs = reloader.follow();
        let mut told = true;
        while !self.engine.is_stopping() {
            let config = told.then(|| configs.borrow_and_update().routing.clone());
            self.turn(config.as_ref()).await;
            let has_some = !self.kept.is_empty();
            tokio::select! {
                changed = configs.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    told = true;
                }
                () = tokio::time::sleep(PERIOD), if has_some => told = false,
                () = self.engine.until_stopping() => {}
            }
        }
    }

    /// Looks at all of them; at the start and at a reload, `told` is what the configuration says.
    pub async fn turn(&mut self, told: Option<&RoutingConfig>) {
        if let Some(routing) = told {
            self.take(routing);
        }
        for index in 0..self.kept.len() {
            if self.engine.is_stopping() {
                return;
            }
            if let Err(error) = self.attend(index, told.is_some()).await {
                tracing::debug!(cause = %error, "bundles wait for the store");
            }
        }
        let all = self.kept.iter().map(|kept| kept.standing.clone());
        self.bundles.tell(all.collect());
    }

    /// Goes on with what was known of the same file.
    fn take(&mut self, routing: &RoutingConfig) {
        let mut known: Vec<Kept> = std::mem::take(&mut self.kept);
        for wanted in &routing.bundles {
            let same =
                |kept: &Kept| (&kept.wanted.file, &kept.wanted.tenant) == (&wanted.file, &wanted.tenant);
            let mut kept = match known.iter().position(same) {
                Some(index) => known.remove(index),
                None => self.fresh(wanted),
            };
            kept.wanted = wanted.clone();
            kept.standing.enforce = routing.enforce;
            self.kept.push(kept);
        }
    }

    fn fresh(&self, wanted: &BundleConfig) -> Kept {
        Kept {
            standing: BundleStanding {
                path: relative(&self.folder, &wanted.file.display().to_string()),
                tenant: wanted.tenant.clone(),
                name: None,
                digest: None,
                state: BundleState::Pending,
                since: self.engine.now().wall,
                applied_at: None,
                enforce: false,
                faults: Vec::new(),
                changes: Vec::new(),
                differing: 0,
                other: None,
            },
            wanted: wanted.clone(),
            known: None,
            settling: None,
            file: None,
            unreadable: Vec::new(),
            due: None,
            revision: None,
            waited: 0,
        }
    }

    async fn attend(&mut self, index: usize, is_told: bool) -> Result<(), NotNow> {
        let is_read = self.look_at_file(index, is_told).await;
        let kept = &mut self.kept[index];
        if kept.file.is_none() {
            let faults = kept.unreadable.clone();
            self.stand(index, BundleState::Failed, faults);
            return Ok(());
        }
        let Some(tenant) = self.tenant_of(index).await? else {
            let kept = &self.kept[index];
            let message = format!("there is no tenant `{}`", kept.wanted.tenant);
            let place = kept.file.as_ref().map(|file| {
                let wrong = fault::Fault::new("", "tenant.not_found", message);
                file.placed(&wrong)
            });
            self.stand(index, BundleState::Failed, place.into_iter().collect());
            return Ok(());
        };
        let revision = self
            .engine
            .read(move |tx| routing_live::revision(tx, tenant))
            .await?;
        let kept = &mut self.kept[index];
        let is_failed = kept.standing.state == BundleState::Failed && kept.unreadable.is_empty();
        kept.waited += 1;
        let is_time = is_failed && kept.waited >= LOOKS_BEFORE_RETRY;
        if is_read || is_time || kept.revision != Some(revision) {
            kept.waited = 0;
            kept.revision = Some(revision);
            self.reconcile(index, tenant).await?;
        }
        Ok(())
    }

    /// Reads the file if it is another one; true if it was read. A file that may still be written is left alone for one more
    /// look, unless somebody asks for it.
    async fn look_at_file(&mut self, index: usize, is_told: bool) -> bool {
        let kept = &mut self.kept[index];
        let (path, name) = (kept.wanted.file.clone(), kept.standing.path.clone());
        let at = path.clone();
        let stamp = off_the_loop(move || bundle_files::stamp(&at)).await;
        if !is_told {
            if stamp == kept.known {
                kept.settling = None;
                return false;
            }
            if kept.settling != Some(stamp) {
                kept.settling = Some(stamp);
                return false;
            }
        }
        let read = off_the_loop(move || bundle_files::read(&path, &name)).await;
        kept.known = stamp;
        kept.settling = None;
        match read {
            Ok(file) => {
                let is_same = kept.file.as_ref().is_some_and(|known| known.digest == file.digest);
                if is_told || !is_same || kept.due.is_some() {
                    kept.due = Some(Due::default());
                }
                kept.unreadable = Vec::new();
                kept.standing.name = Some(file.document.name.clone());
                kept.standing.digest = Some(file.digest.clone());
                kept.file = Some(Arc::new(file));
            }
            Err(faults) => kept.unreadable = faults,
        }
        true
    }

    async fn tenant_of(&self, index: usize) -> Result<Option<TenantId>, NotNow> {
        let name = self.kept[index].wanted.tenant.clone();
        let all = self.engine.read(|tx| access::tenants(tx)).await?;
        Ok(all.into_iter().find(|(_, known)| *known == name).map(|(id, _)| id))
    }

    /// Another entry before this one is the same bundle.
    fn namesake(&self, index: usize) -> Option<&str> {
        let same = |kept: &&Kept| {
            (&kept.standing.name, &kept.wanted.tenant)
                == (&self.kept[index].standing.name, &self.kept[index].wanted.tenant)
        };
        let first = self.kept[..index].iter().find(same)?;
        Some(&first.standing.path)
    }

    async fn reconcile(&mut self, index: usize, tenant: TenantId) -> Result<(), NotNow> {
        let Some(file) = self.kept[index].file.clone() else {
            return Ok(());
        };
        if let Some(other) = self.namesake(index) {
            let fault = bundle_files::named_twice(&file, other);
            self.stand(index, BundleState::Failed, vec![fault]);
            return Ok(());
        }
        for _ in 0..TRIES {
            let looked = self.look(index, tenant, &file).await?;
            let planned = match looked {
                Ok(planned) => planned,
                Err(faults) => {
                    self.stand(index, BundleState::Failed, faults);
                    return Ok(());
                }
            };
            let load = desk::loaded(&self.engine, tenant, file.document.name.clone()).await?;
            let kept = &mut self.kept[index];
            if let Some(due) = &mut kept.due {
                // Somebody else has put a newer file in force while this one could not be.
                if due.since.get_or_insert_with(|| load.clone()) != &load {
                    kept.due = None;
                }
            }
            let is_own = load.as_ref().is_some_and(|load| load.digest == file.digest);
            kept.standing.other = load.filter(|_| !is_own);
            kept.note(&planned);
            let facts = Facts {
                is_due: kept.due.is_some(),
                differs: kept.standing.differing > 0,
                is_own,
                enforce: kept.standing.enforce,
            };
            match step(facts) {
                Step::Synced => self.settled(index, BundleState::Synced),
                Step::Drifted => self.settled(index, BundleState::Drifted),
                Step::Apply => match self.apply(index, tenant, &file, planned).await? {
                    Ok(()) => self.settled(index, BundleState::Synced),
                    Err(No::Stale) => continue,
                    Err(no) => {
                        let faults = faults_of(&file, no);
                        self.stand(index, BundleState::Failed, faults);
                    }
                },
            }
            return Ok(());
        }
        // Others declare objects all the time; the next look tries again.
        self.kept[index].revision = None;
        Ok(())
    }

    async fn look(
        &self,
        index: usize,
        tenant: TenantId,
        file: &BundleFile,
    ) -> Result<Result<Planned, Vec<Fault>>, NotNow> {
        let wanted = &self.kept[index].wanted;
        let wish = Wish {
            prune: wanted.prune,
            drain_to: wanted.drain_to.clone(),
            ..Wish::default()
        };
        let tenancy = self.engine.tenancy(tenant).await?;
        let looked = desk::look(&self.engine, tenancy, file.document.clone(), wish).await?;
        Ok(looked.map_err(|no| faults_of(file, no)))
    }

    /// Puts the file in force; one that is so already is only noted.
    async fn apply(
        &mut self,
        index: usize,
        tenant: TenantId,
        file: &BundleFile,
        planned: Planned,
    ) -> Result<Result<(), No>, NotNow> {
        let differing = self.kept[index].standing.differing;
        if differing > 0 {
            let failing = failing(&planned.tests);
            if !failing.is_empty() {
                return Ok(Err(No::Invalid(failing)));
            }
        }
        if let Some(first) = planned.conflicts.first() {
            return Ok(Err(No::Conflict(first.clone())));
        }
        let (name, digest) = (file.document.name.clone(), file.digest.clone());
        let kept = desk::keep(&self.engine, tenant, name, digest, planned).await?;
        if kept.is_ok() {
            let kept = &mut self.kept[index];
            if differing > 0 {
                let (path, bundle) = (&kept.standing.path, &file.document.name);
                let why = if kept.due.is_some() {
                    "applied"
                } else {
                    "put back what was changed by hand"
                };
                tracing::info!(%path, %bundle, "bundle: {why}, {differing} objects");
            }
            kept.due = None;
            kept.standing.applied_at = Some(self.engine.now().wall);
            kept.standing.other = None;
            kept.standing.changes.clear();
            kept.standing.differing = 0;
        }
        Ok(kept)
    }

    /// What there is was compared; a newest file that is not good is the worse news.
    fn settled(&mut self, index: usize, state: BundleState) {
        let unreadable = self.kept[index].unreadable.clone();
        if unreadable.is_empty() {
            self.stand(index, state, Vec::new());
        } else {
            self.stand(index, BundleState::Failed, unreadable);
        }
    }

    fn stand(&mut self, index: usize, state: BundleState, faults: Vec<Fault>) {
        let now = self.engine.now().wall;
        let standing = &mut self.kept[index].standing;
        let is_news = standing.state != state || standing.faults != faults;
        if standing.state != state {
            standing.since = now;
        }
        standing.state = state;
        standing.faults = faults;
        if !is_news {
            return;
        }
        let path = &standing.path;
        match state {
            BundleState::Failed => {
                let faults = standing.faults.iter().map(|fault| format!("\n  {fault}"));
                let faults: String = faults.collect();
                tracing::error!(%path, "the bundle cannot be applied; what is declared stays as it is:{faults}");
            }
            BundleState::Drifted => {
                let differing = standing.differing;
                tracing::warn!(%path, differing, "what is declared is not what the bundle says");
            }
            BundleState::Synced | BundleState::Pending => tracing::debug!(%path, "the bundle is in force"),
        }
    }
}

impl Kept {
    fn note(&mut self, planned: &Planned) {
        let news = || {
            let all = planned.plan.changes.iter();
            all.filter(|one| one.action != Action::Noop)
        };
        self.standing.differing = news().count();
        self.standing.changes = news().take(limits::BUNDLE_CHANGES_SHOWN_MAX).cloned().collect();
    }
}

/// Why nothing was planned or written, with places in the file.
fn faults_of(file: &BundleFile, no: No) -> Vec<Fault> {
    let wrong = match no {
        No::Invalid(faults) => faults,
        No::Conflict(fault) => vec![fault],
        No::Full(detail) => vec![fault::Fault::new("", "bundle.too_large", detail)],
        No::Moved(_) | No::Stale => Vec::new(),
    };
    wrong.iter().map(|wrong| file.placed(wrong)).collect()
}

/// Files are read where nobody waits for it.
async fn off_the_loop<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(defect) => std::panic::resume_unwind(defect.into_panic()),
    }
}
