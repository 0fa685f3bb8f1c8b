//! Peers: what other daemons of this state directory commit is acted on here as soon as the store shows it, and not only at
//! the next look of a loop: what may start now, what is to end, and a configuration that another one has loaded.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::book::Book;
use super::changes::cancel::ENDING;
use super::changes::complete::ending_sentence;
use super::changes::drift::{self, Drift};
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
pub struct Peers {
    engine: Engine,
    commits: watch::Receiver<u64>,
    /// The newest commit that was looked at.
    seen: u64,
    /// Whether another daemon lives, and when that was found out.
    others: (bool, Option<BootMillis>),
    /// The loads and the book for which the drift was found out.
    compared: Option<(u64, Arc<Book>)>,
}

/// What the newest commits say.
#[derive(Debug, Default)]
struct Heard {
    seen: u64,
    more: bool,
    loads: u64,
    may_start: bool,
    ends: Vec<(u64, String)>,
}

impl Peers {
    /// A loop that begins with the next commit.
    pub fn new(engine: Engine) -> Peers {
        let mut commits = engine.store.watch_sequence();
        let seen = *commits.borrow_and_update();
        Peers {
            engine,
            commits,
            seen,
            others: (false, None),
            compared: None,
        }
    }

    /// Looks at each commit, and once a second, until it is dropped: what another daemon wants ended is ended also while this
    /// one drains.
    pub async fn run(mut self) {
        let period = Duration::from_millis(limits::PASS_PERIOD_MS);
        loop {
            match self.look().await {
                Ok(true) => {}
                Ok(false) => {
                    tokio::time::sleep(Duration::from_millis(limits::PEERS_PACE_MS)).await;
                    drop(tokio::time::timeout(period, self.commits.changed()).await);
                }
                Err(error) => {
                    tracing::debug!(cause = %error, "what other daemons do cannot be read");
                    tokio::time::sleep(period).await;
                }
            }
        }
    }

    /// One look; true if there is more to look at.
    pub(super) async fn look(&mut self) -> Result<bool, StoreError> {
        let now = self.engine.now().boot;
        let is_old = |at: BootMillis| at.until(now) >= limits::PASS_PERIOD_MS;
        if self.others.1.is_none_or(is_old) {
            self.others = (self.engine.others_live(), Some(now));
        } else if !self.others.0 {
            return Ok(false);
        }
        let heard = if self.others.0 {
            let (engine, seen) = (self.engine.clone(), self.seen);
            self.engine.read(move |tx| hear(tx, &engine, seen)).await?
        } else {
            // Alone: everything was this daemon's own, and is done already.
            let seen = *self.commits.borrow_and_update();
            let loads = self.engine.read(drift::loads).await?;
            Heard {
                seen,
                loads,
                ..Heard::default()
            }
        };
        self.seen = heard.seen;
        for (fence, sentence) in heard.ends {
            self.engine.live.stop(fence, &Stop::Requested(sentence));
        }
        if heard.may_start {
            self.engine.wake.notify_one();
        }
        self.compare(heard.loads).await?;
        Ok(heard.more)
    }

    /// Finds out where this daemon differs, when somebody has loaded something else.
    async fn compare(&mut self, loads: u64) -> Result<(), StoreError> {
        let book = self.engine.book();
        let is_same = |(before, of): &(u64, Arc<Book>)| *before == loads && Arc::ptr_eq(of, &book);
        if self.compared.as_ref().is_some_and(is_same) {
            return Ok(());
        }
        let for_read = Arc::clone(&book);
        let drift = self.engine.read(move |tx| drift::find(tx, &for_read)).await?;
        let is_reloaded = self.compared.as_ref().is_some_and(|(_, of)| !Arc::ptr_eq(of, &book));
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
        loads: drift::loads(tx)?,
        ..Heard::default()
    };
    for ((sequence,), row) in rows.into_iter().filter_map(|each| each.row.ok()) {
        heard.seen = heard.seen.max(sequence);
        for item in &row.items {
            heard.may_start |= may_let_start(&item.topic);
            if item.topic == ENDING
                && let Some(sentence) = sentence_of(tx, engine, item)?
            {
                heard.ends.push((item.version, sentence));
            }
        }
    }
    Ok(heard)
}

/// True for what can make a step of this daemon claimable.
fn may_let_start(topic: &str) -> bool {
    const HEADS: [&str; 5] = ["pool.", "run.", "job.", "node.", "config."];
    topic != ENDING && HEADS.iter().any(|head| topic.starts_with(head))
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
