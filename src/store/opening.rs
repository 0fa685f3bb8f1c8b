//! Opening the file: alone, together with other daemons, or alone until another one wants in.
//!
//! Who opens holds `want.lock` until the file is open, so openings come one after the other. In the mode `auto` a daemon
//! that finds nobody has the file alone (one sync for each commit); one that finds somebody asks it by a datagram to let
//! it in, and the holder looks at `want.lock` a few times a second anyway. The holder ends its batch, closes, and opens
//! the file again to share it. Once shared it stays shared until this daemon ends.

use std::sync::mpsc;
use std::time::Duration;

use redb::{ConcurrencyMode, Database};

use super::coordination::{self, HeldLock};
use super::disk;
use super::error::StoreError;
use super::handle::Shared;
use super::migrate;
use super::peers::Word;
use crate::os::clock::boottime_ms;
use crate::words::limits;

/// How the file may be shared: the configuration's `state.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StoreMode {
    /// Alone until another daemon wants in, shared from then on.
    #[default]
    Auto,
    /// Alone for life; others are refused.
    Exclusive,
    /// Shared from the start.
    Shared,
}

/// How the file is open now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// This process alone has it.
    Alone,
    /// Others may have it too.
    Together,
}

impl Sharing {
    /// The word of `state.mode` for it.
    pub fn word(self) -> &'static str {
        match self {
            Sharing::Alone => "exclusive",
            Sharing::Together => "shared",
        }
    }

    fn concurrency(self) -> ConcurrencyMode {
        match self {
            Sharing::Alone => ConcurrencyMode::ExclusiveWriter,
            Sharing::Together => ConcurrencyMode::MultiWriter,
        }
    }
}

/// Between two tries of something that another process holds.
const TRY_PAUSE: Duration = Duration::from_millis(5);
/// After so many tries it is worth a look whether anybody will let this daemon in at all.
const TRIES_BEFORE_LOOK: u32 = 40;

/// A file that was just opened.
pub(super) struct Opened {
    pub(super) database: Database,
    pub(super) sharing: Sharing,
}

impl Shared {
    /// [`Shared::open_file`] for the start: a peer that is stopped in the middle of a transaction would hold it up for ever,
    /// so it happens on a thread of its own, which is left behind when the time is over.
    pub(super) fn open_file_within(self: &std::sync::Arc<Shared>) -> Result<Opened, StoreError> {
        let (done, opened) = mpsc::channel();
        let own = std::sync::Arc::clone(self);
        std::thread::Builder::new()
            .name("store-open".to_owned())
            .spawn(move || done.send(own.open_file(own.options().joining, None)).ok())?;
        // The thread has its own time for every wait but the one for a stopped peer.
        let patience = self.options().joining + Duration::from_millis(limits::OPERATION_MS);
        opened.recv_timeout(patience).unwrap_or(Err(StoreError::Held))
    }

    /// Opens the file as the mode allows and brings it to the current format. `before` is how it was open last.
    pub(super) fn open_file(
        &self,
        patience: Duration,
        before: Option<Sharing>,
    ) -> Result<Opened, StoreError> {
        self.fail("store.open")?;
        let options = self.options();
        let want = HeldLock::take_within(&self.want_lock(), patience)?;
        let Some(_want) = want else {
            return Err(StoreError::InUse);
        };
        let alone = |this: &Shared| this.open_as(Sharing::Alone);
        let opened = match (options.mode, before) {
            (StoreMode::Exclusive, _) => alone(self),
            (StoreMode::Shared, _) | (StoreMode::Auto, Some(Sharing::Together)) => self.join(patience),
            (StoreMode::Auto, Some(Sharing::Alone) | None) => match alone(self) {
                Err(StoreError::InUse) => self.join(patience),
                other => other,
            },
        }?;
        migrate::bring_up(&opened.database, self.clock.now(), &options.directory)?;
        Ok(opened)
    }

    /// Opens the file to share it; whoever has it alone is asked to let others in, for as long as `patience`.
    fn join(&self, patience: Duration) -> Result<Opened, StoreError> {
        let end = deadline(patience);
        let mut tries: u32 = 0;
        loop {
            match self.open_as(Sharing::Together) {
                Err(StoreError::InUse) if boottime_ms() < end => {
                    self.peers.tell(Word::Want);
                    tries += 1;
                    if tries.is_multiple_of(TRIES_BEFORE_LOOK)
                        && coordination::is_kept_alone(&self.options().directory)
                    {
                        return Err(StoreError::InUse);
                    }
                    rest(TRY_PAUSE);
                }
                other => return other,
            }
        }
    }

    fn open_as(&self, sharing: Sharing) -> Result<Opened, StoreError> {
        let path = self.path();
        // A daemon whose directory was moved away is nobody in the one that stands there now.
        self.check_place()?;
        let options = self.options();
        let mut builder = Database::builder();
        builder
            .set_cache_size(options.cache_bytes)
            .set_concurrency_mode(sharing.concurrency());
        let database = if let Some(disk) = &options.disk {
            disk::open(disk, &builder)?
        } else if options.create && self.place().is_none() {
            disk::clear_unfinished(&path)?;
            builder.create(&path)?
        } else {
            // redb would make a new database of an empty file: what is gone is never replaced in silence.
            if std::fs::metadata(&path).map_or(0, |data| data.len()) == 0 {
                return Err(StoreError::Missing);
            }
            builder.open(&path)?
        };
        Ok(Opened { database, sharing })
    }

    /// Between two batches: closes the file and opens it again to share it. What reads meanwhile waits. False if that failed.
    pub(super) fn hand_over(&self) -> bool {
        let Some(database) = self.begin_hand_over() else {
            return true;
        };
        close_within(database, Duration::from_millis(limits::OPERATION_MS));
        let end = deadline(Duration::from_millis(limits::OPERATION_MS));
        loop {
            // The one who wants in holds `want.lock` until it has the file open, so it is not taken here.
            match self.open_as(Sharing::Together) {
                Ok(opened) => {
                    self.opened(opened);
                    tracing::info!("the store is shared with another daemon from now on");
                    return true;
                }
                Err(StoreError::InUse) if boottime_ms() < end && !self.queue.is_closed() => {
                    rest(TRY_PAUSE);
                }
                Err(error) => {
                    self.hand_over_failed(&error);
                    return false;
                }
            }
        }
    }

    fn want_lock(&self) -> std::path::PathBuf {
        self.options().directory.join("want.lock")
    }

    /// True while another daemon that has the file not open yet wants in.
    pub(super) fn somebody_wants_in(&self) -> bool {
        matches!(HeldLock::try_take(&self.want_lock()), Ok(None))
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a file that another process holds has no wake-up; openings only"
)]
fn rest(pause: Duration) {
    std::thread::sleep(pause);
}

/// A moment on the boot clock.
fn deadline(patience: Duration) -> u64 {
    boottime_ms().saturating_add(u64::try_from(patience.as_millis()).unwrap_or(u64::MAX / 2))
}

/// Closes the file. A read that is just beginning holds it for an instant; those that go on learn that it is closed.
pub(super) fn close_within(database: std::sync::Arc<Database>, patience: Duration) {
    let end = deadline(patience);
    let mut held = database;
    loop {
        match std::sync::Arc::try_unwrap(held) {
            Ok(database) => {
                if let Err(error) = database.close() {
                    tracing::warn!(cause = %error, "the store file could not be closed in order");
                }
                return;
            }
            Err(again) if boottime_ms() < end => {
                held = again;
                std::thread::yield_now();
            }
            // It closes when the last of them lets go.
            Err(_) => return,
        }
    }
}
