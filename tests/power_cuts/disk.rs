//! A simulated disk: it knows what is safe and what is only written, and shows what a loss of power at any moment may leave.

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use ductor::store::disk::{Disk, DiskHandle, LockWish};

use super::chance::Chance;

/// Bytes that a disk writes whole or not at all.
const SECTOR: usize = 512;

/// One thing that was asked of the disk.
#[derive(Debug, Clone)]
enum Op {
    Write { at: usize, data: Arc<[u8]> },
    SetLength(usize),
    Sync,
}

/// What becomes of the writes that were not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CutKind {
    /// None is kept.
    Dropped,
    /// All are kept.
    Kept,
    /// Some are kept.
    Some,
    /// Some are kept, and the older of two may lie over the newer.
    Reordered,
    /// Some are kept, one of them in part: some of its sectors.
    TornSectors,
    /// Some are kept, one of them in part: its first bytes.
    TornPrefix,
}

impl CutKind {
    pub(crate) const ALL: [CutKind; 6] = [
        CutKind::Dropped,
        CutKind::Kept,
        CutKind::Some,
        CutKind::Reordered,
        CutKind::TornSectors,
        CutKind::TornPrefix,
    ];

    pub(crate) fn word(self) -> &'static str {
        match self {
            CutKind::Dropped => "dropped",
            CutKind::Kept => "kept",
            CutKind::Some => "some",
            CutKind::Reordered => "reordered",
            CutKind::TornSectors => "torn_sectors",
            CutKind::TornPrefix => "torn_prefix",
        }
    }
}

struct Lock {
    owner: u64,
    range: Range<u64>,
    alone: bool,
}

#[derive(Default)]
struct State {
    /// What readers see.
    file: Vec<u8>,
    /// What was safe when the log began.
    base: Vec<u8>,
    log: Vec<Op>,
    locks: Vec<Lock>,
    owners: u64,
}

struct Shared {
    state: Mutex<State>,
    unlocked: Condvar,
    said_bytes: AtomicU64,
    lies: AtomicBool,
}

/// The disk, with one file on it. Clones are the same disk.
#[derive(Clone)]
pub(crate) struct SimDisk(Arc<Shared>);

impl fmt::Debug for SimDisk {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SimDisk")
            .field("requests", &self.requests())
            .finish()
    }
}

impl SimDisk {
    /// A disk whose file holds this, safely.
    pub(crate) fn holding(image: Vec<u8>) -> SimDisk {
        let state = State {
            file: image.clone(),
            base: image,
            ..State::default()
        };
        SimDisk(Arc::new(Shared {
            state: Mutex::new(state),
            unlocked: Condvar::new(),
            said_bytes: AtomicU64::new(0),
            lies: AtomicBool::new(false),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("no holder panics")
    }

    /// Requests so far: the moments at which the power may go.
    pub(crate) fn requests(&self) -> usize {
        self.state().log.len()
    }

    /// The file claims to be that long; commits of a long one carry what a repair needs.
    pub(crate) fn say_bytes(&self, bytes: u64) {
        self.0.said_bytes.store(bytes, Ordering::Relaxed);
    }

    /// The disk says that it has synced and has not: what no store survives. For the test of the test.
    pub(crate) fn lie(&self) {
        self.0.lies.store(true, Ordering::Relaxed);
    }

    /// What the disk holds in the end.
    pub(crate) fn image(&self) -> Vec<u8> {
        self.state().file.clone()
    }

    /// What the disk holds after the power went behind the first `after` requests.
    pub(crate) fn cut(&self, after: usize, kind: CutKind, chance: &mut Chance) -> Vec<u8> {
        let state = self.state();
        let log = &state.log[..after];
        let synced = if self.0.lies.load(Ordering::Relaxed) {
            0
        } else {
            log.iter().rposition(|op| matches!(op, Op::Sync)).unwrap_or(0)
        };
        let mut image = state.base.clone();
        for op in &log[..synced] {
            apply(op, &mut image);
        }
        let unsynced: Vec<&Op> = log[synced..]
            .iter()
            .filter(|op| !matches!(op, Op::Sync))
            .collect();
        keep(&unsynced, kind, chance, &mut image);
        image
    }
}

fn apply(op: &Op, image: &mut Vec<u8>) {
    match op {
        Op::Write { at, data } => put(image, *at, data),
        Op::SetLength(length) => image.resize(*length, 0),
        Op::Sync => {}
    }
}

/// A write beyond the end lengthens the file: its length may have been lost, and the bytes not.
fn put(image: &mut Vec<u8>, at: usize, data: &[u8]) {
    if image.len() < at + data.len() {
        image.resize(at + data.len(), 0);
    }
    image[at..at + data.len()].copy_from_slice(data);
}

fn keep(unsynced: &[&Op], kind: CutKind, chance: &mut Chance, image: &mut Vec<u8>) {
    let mut kept: Vec<&Op> = match kind {
        CutKind::Dropped => return,
        CutKind::Kept => unsynced.to_vec(),
        CutKind::Some | CutKind::Reordered | CutKind::TornSectors | CutKind::TornPrefix => {
            // Now and then nearly all, or nearly none: one lost write among many is another case than half of them.
            let often = chance.one_of(&[2, 4, 16]);
            let mostly = chance.once_in(2);
            let some = unsynced.iter().copied();
            some.filter(|_| chance.once_in(often) != mostly).collect()
        }
    };
    if kind == CutKind::Reordered {
        chance.shuffle(&mut kept);
    }
    let tears = matches!(kind, CutKind::TornSectors | CutKind::TornPrefix);
    let torn = (tears && !kept.is_empty()).then(|| chance.below(kept.len()));
    for (number, op) in kept.into_iter().enumerate() {
        match op {
            Op::Write { at, data } if torn == Some(number) => tear(*at, data, kind, chance, image),
            Op::Write { .. } | Op::SetLength(_) | Op::Sync => apply(op, image),
        }
    }
}

fn tear(at: usize, data: &[u8], kind: CutKind, chance: &mut Chance, image: &mut Vec<u8>) {
    if kind == CutKind::TornPrefix {
        put(image, at, &data[..chance.below(data.len() + 1)]);
        return;
    }
    let mut begin = at;
    while begin < at + data.len() {
        let end = ((begin / SECTOR + 1) * SECTOR).min(at + data.len());
        if chance.once_in(2) {
            put(image, begin, &data[begin - at..end - at]);
        }
        begin = end;
    }
}

impl Disk for SimDisk {
    fn attach(&self) -> Box<dyn DiskHandle> {
        let mut state = self.state();
        state.owners += 1;
        let owner = state.owners;
        drop(state);
        Box::new(Handle {
            disk: self.clone(),
            owner,
        })
    }

    fn said_bytes(&self) -> u64 {
        self.0.said_bytes.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
struct Handle {
    disk: SimDisk,
    owner: u64,
}

fn place(offset: u64) -> usize {
    usize::try_from(offset).expect("a small file")
}

impl Lock {
    fn is_in_the_way(&self, owner: u64, range: &Range<u64>, alone: bool) -> bool {
        let touches = self.range.start < range.end && range.start < self.range.end;
        self.owner != owner && touches && (alone || self.alone)
    }
}

impl DiskHandle for Handle {
    fn length(&self) -> io::Result<u64> {
        Ok(self.disk.state().file.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.disk.state();
        let from = place(offset);
        let bytes = state.file.get(from..from + out.len());
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let op = Op::Write {
            at: place(offset),
            data: data.into(),
        };
        let mut state = self.disk.state();
        apply(&op, &mut state.file);
        state.log.push(op);
        Ok(())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        let op = Op::SetLength(place(length));
        let mut state = self.disk.state();
        apply(&op, &mut state.file);
        state.log.push(op);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.state().log.push(Op::Sync);
        Ok(())
    }

    fn lock(&self, range: Range<u64>, how: LockWish) -> io::Result<bool> {
        let mut state = self.disk.state();
        let in_the_way = |lock: &Lock| -> bool { lock.is_in_the_way(self.owner, &range, how.alone) };
        while state.locks.iter().any(in_the_way) {
            if !how.waits {
                return Ok(false);
            }
            state = self.disk.0.unlocked.wait(state).expect("no holder panics");
        }
        state.locks.push(Lock {
            owner: self.owner,
            range,
            alone: how.alone,
        });
        Ok(true)
    }

    fn unlock(&self, range: Range<u64>) -> io::Result<()> {
        let mut state = self.disk.state();
        let held = state
            .locks
            .iter()
            .position(|lock| lock.owner == self.owner && lock.range == range);
        state.locks.swap_remove(held.ok_or(io::ErrorKind::NotFound)?);
        self.disk.0.unlocked.notify_all();
        Ok(())
    }

    fn is_locked(&self, range: Range<u64>) -> io::Result<bool> {
        let state = self.disk.state();
        Ok(state
            .locks
            .iter()
            .any(|lock| lock.is_in_the_way(self.owner, &range, true)))
    }

    fn close(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        state.locks.retain(|lock| lock.owner != self.owner);
        self.disk.0.unlocked.notify_all();
        Ok(())
    }
}
