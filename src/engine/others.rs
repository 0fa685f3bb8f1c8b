//! What other daemons commit may be work for this one: slots that were freed, an entry that anybody may claim, a run that is
//! to be ended here, another configuration. Their commits wake the loops, and what only this daemon can do is done.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::book::Book;
use super::changes::cancel::ENDING;
use super::changes::complete::ending_sentence;
use super::changes::drift::{self, Drift};
use super::changes::nodes;
use super::core::Engine;
use crate::store::keys::Key;
use crate::store::tables::{CHANGES, LIVE_ATTEMPTS};
use crate::store::{FeedItem, ReadTx, Rows, StoreError};
use crate::words::ids::TenantId;
use crate::words::limits;
use crate::words::time::BootMillis;
use crate::worker::command::Stop;

/// Commits that are looked at together; more follow at once.
const COMMITS_MAX: usize = 500;
/// Names in one line of the log.
const NAMES_MAX: usize = 10;

/// The loop.
#[derive(Debug)]
pub struct Others {
    engine: Engine,
    foreign: watch::Receiver<u64>,
    /// The newest commit that was looked at.
    seen: u64,
    /// The loads and the book for which the drift was found out.
    compared: Option<(u64, Arc<Book>)>,
    looked_around: Option<BootMillis>,
}

/// What the newest commits say.
#[derive(Debug)]
struct Heard {
    seen: u64,
    more: bool,
    ends: Vec<(u64, String)>,
}

impl Others {
    /// A loop that begins with the next commit.
    pub fn new(engine: Engine) -> Others {
        let seen = *engine.store.watch_sequence().borrow();
        Others {
            foreign: engine.store.watch_foreign(),
            engine,
            seen,
            compared: None,
            looked_around: None,
        }
    }

    /// Wakes and looks when others have committed, and once a second, until it is dropped: what another daemon wants ended
    /// is ended also while this one drains. Many commits in a row are one reason to wake.
    pub async fn run(mut self) {
        let period = Duration::from_millis(limits::PASS_PERIOD_MS);
        loop {
            let moved = tokio::time::timeout(period, self.foreign.changed()).await;
            if moved.is_ok_and(|moved| moved.is_ok()) {
                self.engine.wake.notify_one();
                self.engine.wake_follow_ups.notify_one();
                self.engine.report_wake.notify_one();
                self.engine.mailboxes.look();
                self.engine.mailboxes.tasks.notify_waiters();
                self.engine.mailboxes.requests.notify_waiters();
                self.engine.mailboxes.ends.look();
                self.hear_all().await;
                tokio::time::sleep(Duration::from_millis(limits::FOREIGN_WAKE_MS)).await;
            }
            if let Err(error) = self.look_around().await {
                tracing::debug!(cause = %error, "whether others live cannot be noted");
            }
            if let Err(error) = self.compare().await {
                tracing::debug!(cause = %error, "what others have loaded cannot be read");
            }
        }
    }

    /// Acts on everything that was committed since the last look.
    pub(super) async fn hear_all(&mut self) {
        loop {
            let (engine, seen) = (self.engine.clone(), self.seen);
            let heard = self.engine.read(move |tx| hear(tx, &engine, seen)).await;
            let heard = match heard {
                Ok(heard) => heard,
                Err(error) => {
                    tracing::debug!(cause = %error, "what others have committed cannot be read");
                    return;
                }
            };
            let is_done = !heard.more || heard.seen == self.seen;
            self.seen = heard.seen;
            for (fence, sentence) in heard.ends {
                self.engine.live.stop(fence, &Stop::Requested(sentence));
            }
            if is_done {
                return;
            }
        }
    }

    /// Notes which daemons live and which are gone, once a second, when that has changed.
    pub(super) async fn look_around(&mut self) -> Result<(), StoreError> {
        let now = self.engine.now().boot;
        let is_recent = |at: BootMillis| at.until(now) < limits::PASS_PERIOD_MS;
        if self.looked_around.is_some_and(is_recent) {
            return Ok(());
        }
        self.looked_around = Some(now);
        let engine = self.engine.clone();
        let changed = self.engine.read(move |tx| {
            let (mut changed, mut working) = (Vec::new(), 0);
            for (name, was_gone) in nodes::known(tx)? {
                let is_own = name == engine.node;
                let is_gone = !is_own && engine.directory.is_node_free(&name);
                if !is_own && !is_gone && nodes::drain_of(tx, &name)?.is_none() {
                    working += 1;
                }
                if is_gone != was_gone {
                    changed.push((name, is_gone));
                }
            }
            engine.peers.found(working);
            Ok(changed)
        });
        let changed = changed.await?;
        if changed.is_empty() {
            return Ok(());
        }
        for (name, _) in changed.iter().filter(|(_, is_gone)| *is_gone) {
            tracing::info!("node {name} is gone");
        }
        let noted = self
            .engine
            .store
            .change("nodes", move |tx| nodes::note(tx, &changed));
        if let Err(error) = noted.await {
            tracing::debug!(cause = %error, "whether others live could not be noted");
        }
        Ok(())
    }

    /// Finds out where this daemon differs, when somebody has loaded something else.
    pub(super) async fn compare(&mut self) -> Result<(), StoreError> {
        let loads = self.engine.read(drift::loads).await?;
        let book = self.engine.book();
        let is_same = |(before, of): &(u64, Arc<Book>)| *before == loads && Arc::ptr_eq(of, &book);
        if self.compared.as_ref().is_some_and(is_same) {
            return Ok(());
        }
        let for_read = Arc::clone(&book);
        let drift = self.engine.read(move |tx| drift::find(tx, &for_read)).await?;
        let is_reloaded = self
            .compared
            .as_ref()
            .is_some_and(|(_, of)| !Arc::ptr_eq(of, &book));
        self.compared = Some((loads, book));
        let before = self.engine.drift.note(drift.clone());
        if *before != drift || (is_reloaded && !drift.is_empty()) {
            log(&drift);
        }
        Ok(())
    }
}

fn hear(tx: &mut ReadTx, engine: &Engine, seen: u64) -> Result<Heard, StoreError> {
    let rows = tx.scan_each(&CHANGES, &(), Some(&(seen,).encode()), COMMITS_MAX)?;
    let mut heard = Heard {
        seen,
        more: rows.len() == COMMITS_MAX,
        ends: Vec::new(),
    };
    for ((sequence,), row) in rows.into_iter().filter_map(|each| each.row.ok()) {
        heard.seen = heard.seen.max(sequence);
        for item in row.items.iter().filter(|item| item.topic == ENDING) {
            if let Some(sentence) = sentence_of(tx, engine, item)? {
                heard.ends.push((item.version, sentence));
            }
        }
    }
    Ok(heard)
}

/// Why an execution of this daemon is to end; `None` if it is another's.
fn sentence_of(tx: &mut ReadTx, engine: &Engine, item: &FeedItem) -> Result<Option<String>, StoreError> {
    let Some(live) = engine.live.get(item.version) else {
        return Ok(None);
    };
    let row = tx.get(&LIVE_ATTEMPTS, &(TenantId::DEFAULT, live.run, live.step))?;
    let row = row.filter(|row| row.claim.fence == item.version);
    Ok(row
        .and_then(|row| row.ending)
        .map(|ending| ending_sentence(ending.cause, &ending.by)))
}

fn log(drift: &Drift) {
    for (name, other) in &drift.slot_pools {
        let node = &other.node;
        tracing::warn!(slot_pool = %name, "pool {name}: configuration differs from node {node}");
    }
    let nodes: BTreeSet<&str> = drift.jobs.values().map(|other| other.node.as_str()).collect();
    for node in nodes {
        let of_node = drift.jobs.iter().filter(|(_, other)| other.node == node);
        let names: Vec<String> = of_node.map(|(name, _)| name.to_string()).collect();
        let shown = names[..names.len().min(NAMES_MAX)].join(", ");
        let rest = match names.len().saturating_sub(NAMES_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        tracing::warn!(
            "jobs configured in another way than node {node} has loaded them: {shown}{rest}; reload this node or that one"
        );
    }
    if drift.is_empty() {
        tracing::info!("the configuration of this node is the one that was loaded last");
    }
}
