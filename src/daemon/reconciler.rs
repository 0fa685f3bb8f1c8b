//! Keeps bundles in force: applies their files at the start, at each reload and when they change, and says of each whether what is
//! declared is what it says. What somebody changes by hand is shown, or put back.
//!
//! Several daemons may share one state. Applying is idempotent, so those with the same file do not disturb each other; with
//! different files the one that was put in force last counts, as with the rest of the configuration.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use super::bundle_files::{self, BundleFile, Stamp};
use super::reload::Reloader;
use crate::config::{BundleConfig, Fault, Place, RoutingConfig};
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
/// Looks at files alone, after which the store is looked at too.
const QUIET_LOOKS_MAX: u32 = 4;

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
    /// The file, as the configuration names it.
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
    settling: Option<Seen>,
    /// What stands in it, until it is applied.
    next: Option<Next>,
    /// What was applied last.
    good: Option<Arc<BundleFile>>,
    /// What is wrong with the newest file.
    wrong: Vec<Fault>,
    /// The number of the newest declaration that was looked at.
    revision: Option<u64>,
    /// When that was.
    compared_at: Millis,
}

/// A file as one look has found it; nothing where there was none.
#[derive(Debug, PartialEq)]
struct Seen(Option<Stamp>);

/// What was in force at some time; nothing if nothing was.
#[derive(Debug, PartialEq)]
struct InForce(Option<BundleLoad>);

/// A file that is to be applied.
#[derive(Debug)]
struct Next {
    file: Arc<BundleFile>,
    /// What had been put in force when it was read: whoever comes later, wins.
    since: Option<InForce>,
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
    /// Tells `bundles` how it stands.
    pub fn new(engine: &Engine, bundles: Bundles) -> Reconciler {
        Reconciler {
            engine: engine.clone(),
            bundles,
            kept: Vec::new(),
        }
    }

    /// Works until the daemon stops.
    pub(super) async fn run(mut self, reloader: Reloader) {
        let mut configs = reloader.follow();
        let mut sequence = self.engine.store.watch_sequence();
        let mut told = true;
        let mut quiet = 0;
        while !self.engine.is_stopping() {
            let config = told.then(|| configs.borrow_and_update().routing.clone());
            // Commits of other daemons are not always heard of at once.
            let has_moved = sequence.has_changed().unwrap_or(true) || quiet >= QUIET_LOOKS_MAX;
            sequence.mark_unchanged();
            quiet = if has_moved { 0 } else { quiet + 1 };
            self.pass(config.as_ref(), has_moved).await;
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
    #[cfg(test)]
    pub async fn turn(&mut self, told: Option<&RoutingConfig>) {
        self.pass(told, true).await;
    }

    /// The same; unless something has moved in the store, only files are looked at.
    async fn pass(&mut self, told: Option<&RoutingConfig>, has_moved: bool) {
        if let Some(routing) = told {
            self.take(routing);
        }
        for index in 0..self.kept.len() {
            if self.engine.is_stopping() {
                return;
            }
            if let Err(error) = self.attend(index, told.is_some(), has_moved).await {
                tracing::debug!(cause = %error, "bundles wait for the store");
                self.kept[index].revision = None;
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
                path: wanted.path.clone(),
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
            next: None,
            good: None,
            wrong: Vec::new(),
            revision: None,
            compared_at: Millis(0),
        }
    }

    async fn attend(&mut self, index: usize, is_told: bool, has_moved: bool) -> Result<(), NotNow> {
        let is_read = self.look_at_file(index, is_told).await;
        let kept = &self.kept[index];
        if !is_read && !has_moved && kept.revision.is_some() {
            return Ok(());
        }
        if kept.next.is_none() && kept.good.is_none() {
            let wrong = kept.wrong.clone();
            self.stand(index, BundleState::Failed, wrong);
            return Ok(());
        }
        let Some(tenant) = self.tenant_of(index).await? else {
            let message = format!("there is no tenant `{}`", self.kept[index].wanted.tenant);
            let at = Place::whole(&self.kept[index].standing.path);
            let wrong = vec![Fault::error("tenant.not_found", &at, message)];
            self.stand(index, BundleState::Failed, wrong);
            // Once there is one, it is a tenant without declarations.
            self.kept[index].revision = None;
            return Ok(());
        };
        let revision = self
            .engine
            .read(move |tx| routing_live::revision(tx, tenant))
            .await?;
        let now = self.engine.now().wall;
        let kept = &mut self.kept[index];
        // What it names and is no declared object may be there by now, like a workflow.
        let is_time = kept.next.is_some() && now.since(kept.compared_at) >= limits::BUNDLE_RETRY_MS;
        if is_read || is_time || kept.revision != Some(revision) {
            kept.compared_at = now;
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
            if kept.settling != Some(Seen(stamp)) {
                kept.settling = Some(Seen(stamp));
                return false;
            }
        }
        let read = off_the_loop(move || bundle_files::read(&path, &name)).await;
        kept.known = stamp;
        kept.settling = None;
        match read {
            Ok(file) => {
                kept.wrong = Vec::new();
                kept.standing.name = Some(file.document.name.clone());
                kept.standing.digest = Some(file.digest.clone());
                let is_so = kept.good.as_ref().is_some_and(|good| good.digest == file.digest);
                kept.next = (is_told || !is_so).then(|| Next {
                    file: Arc::new(file),
                    since: None,
                });
            }
            Err(faults) => {
                kept.next = None;
                kept.wrong = faults;
            }
        }
        true
    }

    async fn tenant_of(&self, index: usize) -> Result<Option<TenantId>, NotNow> {
        let name = self.kept[index].wanted.tenant.clone();
        let all = self.engine.read(access::tenants).await?;
        Ok(all
            .into_iter()
            .find(|(_, known)| *known == name)
            .map(|(id, _)| id))
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

    /// Applies the newest file, or looks whether the one that was applied last still holds.
    async fn reconcile(&mut self, index: usize, tenant: TenantId) -> Result<(), NotNow> {
        if let Some(next) = &self.kept[index].next {
            let file = Arc::clone(&next.file);
            let compared = match self.namesake(index) {
                Some(other) => Compared::Wrong(vec![bundle_files::named_twice(&file, other)]),
                None => self.compare(index, tenant, &file).await?,
            };
            let kept = &mut self.kept[index];
            match compared {
                Compared::Is(state) => {
                    kept.next = None;
                    kept.good = Some(file);
                    kept.wrong = Vec::new();
                    self.stand(index, state, Vec::new());
                    return Ok(());
                }
                Compared::Wrong(faults) => kept.wrong = faults,
                Compared::Busy => return Ok(()),
            }
        }
        let (state, faults) = match self.kept[index].good.clone() {
            None => (BundleState::Failed, Vec::new()),
            Some(good) => match self.compare(index, tenant, &good).await? {
                Compared::Is(state) => (state, Vec::new()),
                Compared::Wrong(faults) => (BundleState::Failed, faults),
                Compared::Busy => return Ok(()),
            },
        };
        // A newest file that is not good is the worse news.
        let wrong = self.kept[index].wrong.clone();
        if wrong.is_empty() {
            self.stand(index, state, faults);
        } else {
            self.stand(index, BundleState::Failed, wrong);
        }
        Ok(())
    }

    /// Compares a file with what is declared, and does what follows from that.
    async fn compare(
        &mut self,
        index: usize,
        tenant: TenantId,
        file: &Arc<BundleFile>,
    ) -> Result<Compared, NotNow> {
        for _ in 0..TRIES {
            let planned = match self.look(index, tenant, file).await? {
                Ok(planned) => planned,
                Err(no) => return Ok(Compared::Wrong(faults_of(file, no))),
            };
            let load = desk::loaded(&self.engine, tenant, file.document.name.clone()).await?;
            let facts = self.kept[index].note(file, &planned, load);
            match step(facts) {
                Step::Synced => return Ok(Compared::Is(BundleState::Synced)),
                Step::Drifted => return Ok(Compared::Is(BundleState::Drifted)),
                Step::Apply => match self.apply(index, tenant, file, planned).await? {
                    Ok(()) => return Ok(Compared::Is(BundleState::Synced)),
                    Err(No::Stale) => {}
                    Err(no) => return Ok(Compared::Wrong(faults_of(file, no))),
                },
            }
        }
        // Others declare objects all the time; the next look tries again.
        self.kept[index].revision = None;
        Ok(Compared::Busy)
    }

    async fn look(
        &self,
        index: usize,
        tenant: TenantId,
        file: &BundleFile,
    ) -> Result<Result<Planned, No>, NotNow> {
        let wanted = &self.kept[index].wanted;
        let wish = Wish {
            prune: wanted.prune,
            drain_to: wanted.drain_to.clone(),
            ..Wish::default()
        };
        let tenancy = self.engine.tenancy(tenant).await?;
        let looked = desk::look(&self.engine, tenancy, file.document.clone(), wish);
        Ok(looked.await?)
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
                let why = if kept.next.is_some() {
                    "applied"
                } else {
                    "put back what was changed by hand"
                };
                tracing::info!(%path, %bundle, "bundle: {why}; objects that differed: {differing}");
            }
            kept.standing.applied_at = Some(self.engine.now().wall);
            kept.standing.other = None;
            kept.standing.changes.clear();
            kept.standing.differing = 0;
        }
        Ok(kept)
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

/// What came of comparing.
enum Compared {
    Is(BundleState),
    Wrong(Vec<Fault>),
    /// It is to be done again.
    Busy,
}

impl Kept {
    /// Notes what an application would change, and says what is known.
    fn note(&mut self, file: &BundleFile, planned: &Planned, load: Option<BundleLoad>) -> Facts {
        let news = || {
            let all = planned.plan.changes.iter();
            all.filter(|one| one.action != Action::Noop)
        };
        self.standing.differing = news().count();
        self.standing.changes = news().take(limits::BUNDLE_CHANGES_SHOWN_MAX).cloned().collect();
        // Somebody else may have put a newer file in force while this one could not be.
        let is_due = self.next.as_mut().is_some_and(|next| {
            let before = next.since.get_or_insert_with(|| InForce(load.clone()));
            next.file.digest == file.digest && before.0 == load
        });
        let is_own = load.as_ref().is_some_and(|load| load.digest == file.digest);
        self.standing.other = load.filter(|_| !is_own);
        Facts {
            is_due,
            differs: self.standing.differing > 0,
            is_own,
            enforce: self.standing.enforce,
        }
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
