//! One stretch of work on a simulated disk, with what was known at each of its moments: which states had begun to be written,
//! which were acknowledged.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use ductor::store::migrate::FORMAT;
use ductor::store::rows::Number;
use ductor::store::tables::{self, META};
use ductor::store::{ReadTx, Rows, Store, StoreError, StoreMode, StoreOptions};

use super::chance::Chance;
use super::disk::SimDisk;
use super::work::{Told, Work};

/// How the file is open, and with it what a commit does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CommitKind {
    /// One daemon, one sync for each commit.
    Exclusive,
    /// One daemon, a large file: each commit carries what a repair needs.
    Quick,
    /// One daemon, now so and now so.
    Mixed,
    /// Two daemons on one file.
    Shared,
}

impl CommitKind {
    pub(crate) const ALL: [CommitKind; 4] = [
        CommitKind::Exclusive,
        CommitKind::Quick,
        CommitKind::Mixed,
        CommitKind::Shared,
    ];

    pub(crate) fn word(self) -> &'static str {
        match self {
            CommitKind::Exclusive => "exclusive",
            CommitKind::Quick => "quick_repair",
            CommitKind::Mixed => "mixed",
            CommitKind::Shared => "shared",
        }
    }

    fn prepare(self, disk: &SimDisk) {
        let large = matches!(self, CommitKind::Quick);
        disk.say_bytes(if large { LARGE } else { 0 });
    }

    fn mode(self) -> StoreMode {
        match self {
            CommitKind::Exclusive | CommitKind::Quick | CommitKind::Mixed => StoreMode::Exclusive,
            CommitKind::Shared => StoreMode::Shared,
        }
    }
}

/// Beyond this the writer makes every commit one with quick repair.
const LARGE: u64 = 300 << 20;

/// Opens the real store on a simulated disk.
pub(crate) fn open(disk: &SimDisk, kind: CommitKind, work: &Work) -> Result<Store, StoreError> {
    open_in(disk, kind, kind.mode(), work)
}

fn open_in(disk: &SimDisk, kind: CommitKind, mode: StoreMode, work: &Work) -> Result<Store, StoreError> {
    kind.prepare(disk);
    let options = StoreOptions {
        disk: Some(Arc::new(disk.clone())),
        cache_bytes: 1 << 20,
        mode,
        ..StoreOptions::in_directory(work.folder.path())
    };
    Store::open(options, Arc::new(work.clock.clone()))
}

/// Closes it in order.
pub(crate) fn close(store: &Store) {
    assert!(
        store.close(Duration::from_secs(60)),
        "the simulated disk never hangs"
    );
}

/// Everything that a store holds, as two numbers. The format's own row is not part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) sequence: u64,
    digest: u64,
}

impl Content {
    pub(crate) fn of(tx: &mut ReadTx) -> Result<Content, StoreError> {
        let number = |tx: &mut ReadTx, key: &str| {
            let row: Option<Number> = tx.get(&META, &(key.to_owned(),))?;
            Ok::<u64, StoreError>(row.map_or(0, |number| number.0))
        };
        let sequence = number(tx, "sequence")?;
        let mut hasher = DefaultHasher::new();
        for table in 0..tables::COUNT {
            for (key, value) in tx.raw_scan(table, &[], None, false, usize::MAX)? {
                let is_format = table == META.index() && key.windows(6).any(|part| part == b"format");
                if !is_format {
                    (table, key, value).hash(&mut hasher);
                }
            }
        }
        Ok(Content {
            sequence,
            digest: hasher.finish(),
        })
    }
}

/// One content that the store had.
struct Moment {
    content: Content,
    /// Requests to the disk before anything of it was asked.
    begun: usize,
    /// Requests to the disk when it was acknowledged.
    acknowledged: usize,
}

/// What somebody was told, from a moment on, until retention took it.
struct Fact {
    told: Told,
    from: usize,
    until: Option<usize>,
}

/// The stretch of work.
pub(crate) struct Recording {
    pub(crate) disk: SimDisk,
    pub(crate) kind: CommitKind,
    moments: Vec<Moment>,
    facts: Vec<Fact>,
    /// Requests to the disk when the last change was acknowledged; what follows is the closing.
    pub(crate) closing_from: usize,
    /// Requests to the disk when the file was open.
    pub(crate) open_from: usize,
}

/// What a store must hold that is opened after a cut.
pub(crate) struct Expected {
    pub(crate) oldest: usize,
    pub(crate) newest: usize,
}

/// The store under a stretch of work: one, or two that take turns by chance.
struct Stage {
    stores: Vec<Store>,
}

impl Stage {
    fn any(&self, chance: &mut Chance) -> &Store {
        &self.stores[chance.below(self.stores.len())]
    }
}

impl Recording {
    /// Works on this image for a while and closes in order.
    pub(crate) fn make(
        image: Vec<u8>,
        kind: CommitKind,
        work: &mut Work,
        changes: usize,
        chance: &mut Chance,
    ) -> Result<Recording, String> {
        let said = |error: StoreError| format!("it does not open: {error}");
        let is_new = image.is_empty();
        let disk = SimDisk::holding(image);
        // Now and then the first daemon has the file alone and hands it over when the second comes.
        let hands_over = kind == CommitKind::Shared && chance.once_in(3);
        let mode = if hands_over { StoreMode::Auto } else { kind.mode() };
        let first = open_in(&disk, kind, mode, work).map_err(said)?;
        if hands_over {
            first.listen("first").map_err(said)?;
        }
        let open_from = disk.requests();
        let mut stores = vec![first];
        if kind == CommitKind::Shared {
            stores.push(open(&disk, kind, work).map_err(said)?);
        }
        let stage = Stage { stores };
        let content = stage.stores[0].read(Content::of).expect("readable");
        let first = Moment {
            content,
            begun: 0,
            acknowledged: if is_new { open_from } else { 0 },
        };
        let mut recording = Recording {
            disk,
            kind,
            moments: vec![first],
            facts: Vec::new(),
            closing_from: 0,
            open_from,
        };
        for number in 0..changes {
            recording.work_on(&stage, work, number, chance);
        }
        recording.closing_from = recording.disk.requests();
        for store in &stage.stores {
            close(store);
        }
        Ok(recording)
    }

    fn work_on(&mut self, stage: &Stage, work: &mut Work, number: usize, chance: &mut Chance) {
        let store = stage.any(chance);
        if self.kind == CommitKind::Mixed {
            self.disk.say_bytes(chance.one_of(&[0, LARGE]));
        }
        let mut together = vec![if number == 0 {
            work.publish(chance)
        } else {
            work.next(store, chance)
        }];
        // A commit often has the changes of several callers.
        while chance.once_in(3) {
            together.push(work.next(store, chance));
        }
        let begun = self.disk.requests();
        let told = store.change_blocking("work", move |tx| {
            let mut told = Vec::new();
            for change in &mut together {
                told.extend(change(tx)?);
            }
            Ok(told)
        });
        let told = told.expect("the disk has no faults but the cut");
        let acknowledged = self.disk.requests();
        let content = stage.any(chance).read(Content::of).expect("readable");
        if content.sequence == self.moments[self.moments.len() - 1].content.sequence {
            return;
        }
        self.moments.push(Moment {
            content,
            begun,
            acknowledged,
        });
        self.tell(&told, stage.any(chance));
    }

    fn tell(&mut self, told: &[Told], store: &Store) {
        let now = self.moments.len() - 1;
        for fact in &mut self.facts {
            if fact.until.is_none() && !is_known(store, fact.told) {
                fact.until = Some(now);
            }
        }
        let fresh = told.iter().map(|told| Fact {
            told: *told,
            from: now,
            until: None,
        });
        self.facts.extend(fresh);
    }

    /// What must be there when the power goes behind the first `after` requests.
    pub(crate) fn expected(&self, after: usize) -> Expected {
        let acknowledged = |moment: &&Moment| moment.acknowledged <= after;
        let begun = |moment: &&Moment| moment.begun <= after;
        let oldest = self.moments.iter().take_while(acknowledged).count();
        let newest = self.moments.iter().take_while(begun).count();
        Expected {
            oldest: oldest.saturating_sub(1),
            newest: newest.saturating_sub(1),
        }
    }

    /// Which of the recorded contents the store has; an error in words if it has none of those expected.
    pub(crate) fn recognize(&self, store: &Store, expected: &Expected) -> Result<usize, String> {
        let said = |error: StoreError| format!("it cannot be read: {error}");
        let content = store.read(Content::of).map_err(said)?;
        let range = expected.oldest..=expected.newest;
        let same = |moment: &Moment| moment.content.sequence == content.sequence;
        let Some(found) = self.moments.iter().position(same) else {
            return Err(format!("it has the unknown sequence {}", content.sequence));
        };
        if !range.contains(&found) {
            return Err(format!(
                "it is at change {found}; {} was acknowledged and {} begun",
                expected.oldest, expected.newest
            ));
        }
        if self.moments[found].content != content {
            return Err(format!("it is at change {found} with other rows than then"));
        }
        let format: Option<Number> = store
            .read(|tx| tx.get(&META, &("format".to_owned(),)))
            .map_err(said)?;
        if format != Some(Number(u64::from(FORMAT))) {
            return Err(format!("its format is {format:?}"));
        }
        for fact in &self.facts {
            let held = fact.from <= found && fact.until.is_none_or(|until| found < until);
            if held && !is_known(store, fact.told) {
                return Err(format!("{:?} was acknowledged and is gone", fact.told));
            }
        }
        Ok(found)
    }

    /// The number of starts that were acknowledged.
    pub(crate) fn starts(&self) -> usize {
        self.facts.len()
    }
}

/// True if the run is there, and its entry, if it has one, knows it.
fn is_known(store: &Store, told: Told) -> bool {
    let found = store.read(|tx| {
        let run = ductor::store::runs::by_id(tx, told.run)?;
        let entry = match told.entry {
            None => None,
            Some(id) => ductor::store::entries::by_id(tx, id)?,
        };
        Ok(run.is_some()
            && told
                .entry
                .is_none_or(|_| entry.is_some_and(|entry| entry.run == told.run)))
    });
    found.expect("readable")
}
