//! Backups on request: one at a time, beside the work, and a row about each.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::core::Engine;
use crate::store::backup::{self, Backup, BackupError};
use crate::store::rows::{BackupResult, BackupRow};
use crate::store::tables::BACKUPS;
use crate::store::{Abort, Rows, StoreError, Tx};
use crate::words::limits;
use crate::words::names::NodeName;
use crate::words::time::Millis;

/// A backup that is made, or was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupNews {
    /// When it began; with the daemon's name it tells one from another.
    pub began_at: Millis,
    /// The daemon that made it.
    pub node: NodeName,
    /// Where it is to be.
    pub path: String,
    /// Who asked.
    pub by: String,
    /// When it ended and how; `None` while it is made.
    pub end: Option<(Millis, BackupResult)>,
}

/// The backup that is made now, or was the last one here. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Backups {
    newest: Arc<Mutex<Option<BackupNews>>>,
}

impl Backups {
    fn lock(&self) -> MutexGuard<'_, Option<BackupNews>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a backup does not begin.
#[derive(Debug)]
pub enum NotBegun {
    /// Another one is being made; to this path.
    Running(String),
    /// Its target cannot be meant.
    Target(BackupError),
}

/// Begins a backup. What is received changes when it ends.
pub async fn begin(
    engine: &Engine,
    known: &Backups,
    to: PathBuf,
    by: &str,
) -> Result<watch::Receiver<BackupNews>, NotBegun> {
    let (state, target) = (engine.store.directory().to_path_buf(), to.clone());
    let looked = tokio::task::spawn_blocking(move || backup::check_target(&target, &state)).await;
    match looked {
        Ok(result) => result.map_err(NotBegun::Target)?,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
    let news = BackupNews {
        began_at: engine.now().wall,
        node: engine.node.clone(),
        path: to.display().to_string(),
        by: by.to_owned(),
        end: None,
    };
    {
        let mut newest = known.lock();
        if let Some(other) = newest.as_ref().filter(|news| news.end.is_none()) {
            return Err(NotBegun::Running(other.path.clone()));
        }
        *newest = Some(news.clone());
    }
    let (sender, receiver) = watch::channel(news.clone());
    // It ends by itself: a caller that goes away does not end it.
    drop(tokio::spawn(make(
        engine.clone(),
        known.clone(),
        to,
        news,
        sender,
    )));
    Ok(receiver)
}

async fn make(
    engine: Engine,
    known: Backups,
    to: PathBuf,
    mut news: BackupNews,
    sender: watch::Sender<BackupNews>,
) {
    let store = engine.store.clone();
    let made = tokio::task::spawn_blocking(move || backup::write(&store, &to)).await;
    let result = match made {
        Ok(Ok(made)) => done(&made),
        Ok(Err(error)) => BackupResult::Failed {
            reason: error.to_string(),
        },
        Err(_) => BackupResult::Failed {
            reason: "a defect in ductor ended it; please report this".to_owned(),
        },
    };
    match &result {
        BackupResult::Done { bytes, rows, .. } => {
            tracing::info!(bytes, rows, "a backup is at {}", news.path);
        }
        BackupResult::Failed { reason } => tracing::error!("a backup failed: {reason}"),
    }
    news.end = Some((engine.now().wall, result));
    remember(&engine, &news).await;
    *known.lock() = Some(news.clone());
    sender.send_replace(news);
}

fn done(made: &Backup) -> BackupResult {
    BackupResult::Done {
        bytes: made.bytes,
        blake3: made.blake3.clone(),
        rows: made.rows,
    }
}

async fn remember(engine: &Engine, news: &BackupNews) {
    let (key, Some((ended_at, result))) = ((news.began_at, news.node.clone()), news.end.clone()) else {
        return;
    };
    let row = BackupRow {
        path: news.path.clone(),
        by: news.by.clone(),
        ended_at,
        result,
    };
    let written = engine
        .store
        .change("backup", move |tx| record(tx, &key, &row))
        .await;
    if let Err(error) = written {
        tracing::warn!(cause = %error, "a backup could not be recorded");
    }
}

/// Writes the row of a backup; the oldest ones go.
fn record(tx: &mut Tx<'_>, key: &(Millis, NodeName), row: &BackupRow) -> Result<(), Abort> {
    tx.put(&BACKUPS, key, row)?;
    let kept = tx.scan_each_back(&BACKUPS, &(), None, limits::BACKUPS_KEPT_MAX + 16)?;
    for old in kept.into_iter().skip(limits::BACKUPS_KEPT_MAX) {
        if let Ok((key, _)) = old.row {
            tx.remove(&BACKUPS, &key)?;
        }
    }
    tx.tell("node.changed", &key.1, 0, Some("backup"));
    Ok(())
}

/// Backups of all daemons, newest first; also the one that this daemon makes now.
pub fn all(rows: &mut impl Rows, known: &Backups) -> Result<Vec<BackupNews>, StoreError> {
    let stored = rows.scan_each_back(&BACKUPS, &(), None, limits::BACKUPS_KEPT_MAX)?;
    let stored = stored.into_iter().filter_map(|each| each.row.ok());
    let mut found: Vec<BackupNews> = stored
        .map(|((began_at, node), row)| BackupNews {
            began_at,
            node,
            path: row.path,
            by: row.by,
            end: Some((row.ended_at, row.result)),
        })
        .collect();
    let own = known.lock().clone();
    // One whose row could not be written is known here all the same.
    if let Some(own) = own
        && !found
            .iter()
            .any(|news| (news.began_at, &news.node) == (own.began_at, &own.node))
    {
        found.push(own);
        found.sort_by_key(|news| std::cmp::Reverse(news.began_at));
    }
    Ok(found)
}

/// When the newest backup that worked ended.
pub fn last_success(rows: &mut impl Rows) -> Result<Option<Millis>, StoreError> {
    let stored = rows.scan_each_back(&BACKUPS, &(), None, limits::BACKUPS_KEPT_MAX)?;
    let ends = stored.into_iter().filter_map(|each| {
        let (_, row) = each.row.ok()?;
        matches!(row.result, BackupResult::Done { .. }).then_some(row.ended_at)
    });
    Ok(ends.max())
}
