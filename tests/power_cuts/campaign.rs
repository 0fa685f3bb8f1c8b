//! Many cuts: each is a stretch of work, a moment in it, and a fate of what was not synced. What is left is opened by a fresh
//! store, checked whole, and compared with what was acknowledged; the opening itself is cut too.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ductor::store::check;
use ductor::store::rows::Number;
use ductor::store::tables::META;

use super::chance::Chance;
use super::disk::{CutKind, SimDisk};
use super::record::{CommitKind, Expected, Recording, close, open};
use super::work::Work;

/// How much is cut, at least.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) cuts: usize,
    /// Starts that are acknowledged. Chance says what a stretch does, so some need more cuts than others.
    pub(crate) starts: usize,
    /// Each of these is cut at least once.
    pub(crate) moments: &'static [&'static str],
    pub(crate) seed: u64,
    /// The disk says that it has synced and has not.
    pub(crate) lies: bool,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) cuts: usize,
    /// Starts that were acknowledged in all the stretches of work.
    pub(crate) starts: usize,
    pub(crate) by_commit: BTreeMap<&'static str, usize>,
    pub(crate) by_fate: BTreeMap<&'static str, usize>,
    pub(crate) by_moment: BTreeMap<&'static str, usize>,
    /// One sentence for each cut after which something was missing, broken or half done.
    pub(crate) lost: Vec<String>,
}

impl Outcome {
    fn count(&mut self, commit: CommitKind, fate: CutKind, moment: &'static str) {
        self.cuts += 1;
        *self.by_commit.entry(commit.word()).or_default() += 1;
        *self.by_fate.entry(fate.word()).or_default() += 1;
        *self.by_moment.entry(moment).or_default() += 1;
    }

    fn fulfils(&self, plan: &Plan) -> bool {
        let met = |moment: &&str| self.by_moment.contains_key(*moment);
        self.cuts >= plan.cuts && self.starts >= plan.starts && plan.moments.iter().all(met)
    }
}

/// Cuts of one stretch of work.
const CUTS_OF_A_STRETCH: usize = 40;
/// When so many times the cuts of the plan leave something out, that is a fault of the work or of the plan.
const PATIENCE: usize = 10;
/// Openings in a row that are cut themselves.
const REPAIRS_CUT: usize = 3;

/// Where a stretch of work begins.
struct Base {
    image: Vec<u8>,
    /// What its first opening is.
    opening: &'static str,
}

impl Base {
    /// An empty disk: the file is made.
    fn empty() -> Base {
        Base {
            image: Vec::new(),
            opening: "creation",
        }
    }
}

/// Cuts until the plan is fulfilled, or plainly cannot be.
pub(crate) fn run(plan: Plan) -> Outcome {
    let mut outcome = Outcome::default();
    let mut chance = Chance::seeded(plan.seed);
    let mut work = Work::new(&mut chance);
    let mut base = Base::empty();
    for stretch in 0.. {
        if outcome.fulfils(&plan) || outcome.cuts >= PATIENCE * plan.cuts {
            break;
        }
        let kind = CommitKind::ALL[stretch % CommitKind::ALL.len()];
        let (opening, changes) = (base.opening, 3 + chance.below(longest_of(stretch)));
        let made = guarded(|| Recording::make(base.image, kind, &mut work, changes, &mut chance));
        base = Base::empty();
        let recording = match made {
            Ok(recording) => recording,
            Err(why) => {
                outcome
                    .lost
                    .push(format!("stretch {stretch}, {}: {why}", kind.word()));
                continue;
            }
        };
        outcome.starts += recording.starts();
        if plan.lies {
            recording.disk.lie();
        }
        for _ in 0..CUTS_OF_A_STRETCH {
            let at = moment_of(&recording, &mut chance);
            let fate = chance.one_of(&CutKind::ALL);
            outcome.count(kind, fate, word_of(&recording, at, opening));
            let cut = Cut {
                recording: &recording,
                work: &work,
            };
            match guarded(|| cut.survives(at, fate, &mut chance, &mut outcome)) {
                // Some of what is left is where the next stretch begins.
                Ok(image) if chance.once_in(CUTS_OF_A_STRETCH / 4) => {
                    base = Base {
                        image,
                        opening: "opening",
                    };
                }
                Ok(_) => {}
                Err(why) => outcome.lost.push(format!(
                    "stretch {stretch}, {}, {} after request {at} of {}: {why}",
                    kind.word(),
                    fate.word(),
                    recording.disk.requests()
                )),
            }
        }
        if chance.once_in(5) {
            base = Base::empty();
        }
        if !base.image.is_empty() && chance.once_in(4) {
            match guarded(|| made_old(base.image, &work)) {
                Ok(old) => {
                    base = Base {
                        image: old,
                        opening: "migration",
                    };
                }
                Err(why) => {
                    outcome.lost.push(format!("after stretch {stretch}: {why}"));
                    base = Base::empty();
                }
            }
        }
    }
    outcome
}

/// Most stretches are short; each eighth is long enough for the file to grow.
fn longest_of(stretch: usize) -> usize {
    if stretch % 8 == 7 { 200 } else { 30 }
}

/// Every moment of a first start and its first changes, with every fate: how many, and what was lost.
pub(crate) fn first_start(kind: CommitKind, seed: u64) -> Outcome {
    let mut outcome = Outcome::default();
    let mut chance = Chance::seeded(seed);
    let mut work = Work::new(&mut chance);
    let recording = Recording::make(Vec::new(), kind, &mut work, 3, &mut chance).expect("an empty disk");
    let cut = Cut {
        recording: &recording,
        work: &work,
    };
    for at in 0..=recording.disk.requests() {
        for fate in CutKind::ALL {
            outcome.count(kind, fate, word_of(&recording, at, "creation"));
            if let Err(why) = guarded(|| cut.survives(at, fate, &mut chance, &mut outcome)) {
                outcome.lost.push(format!(
                    "{}, {} after request {at}: {why}",
                    kind.word(),
                    fate.word()
                ));
            }
        }
    }
    outcome
}

/// A panic is an answer too.
fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("it panicked: {}", text.unwrap_or_default()))
    })
}

/// Any moment; the opening and the closing are short, and are met often all the same.
fn moment_of(recording: &Recording, chance: &mut Chance) -> usize {
    let end = recording.disk.requests();
    let part = match chance.below(4) {
        0 => 0..recording.open_from,
        1 => recording.closing_from..end,
        _ => recording.open_from..recording.closing_from,
    };
    within(part, chance)
}

fn within(part: Range<usize>, chance: &mut Chance) -> usize {
    part.start + chance.below(part.len() + 1)
}

fn word_of(recording: &Recording, at: usize, opening: &'static str) -> &'static str {
    if at < recording.open_from {
        opening
    } else if at <= recording.closing_from {
        "work"
    } else {
        "closing"
    }
}

struct Cut<'c> {
    recording: &'c Recording,
    work: &'c Work,
}

impl Cut<'_> {
    /// Cuts there, opens what is left, and cuts the opening; the image that is left in the end, whose content is known.
    fn survives(
        &self,
        at: usize,
        fate: CutKind,
        chance: &mut Chance,
        outcome: &mut Outcome,
    ) -> Result<Vec<u8>, String> {
        let mut expected = self.recording.expected(at);
        let mut image = self.recording.disk.cut(at, fate, chance);
        for repair in 0..=REPAIRS_CUT {
            let disk = SimDisk::holding(image);
            // Who opens it next may do so in another way.
            let kind = if chance.once_in(3) {
                chance.one_of(&CommitKind::ALL)
            } else {
                self.recording.kind
            };
            let (found, open_from) = self
                .reopened(&disk, kind, &expected)
                .map_err(|why| format!("repair {repair} as {}: {why}", kind.word()))?;
            let fate = chance.one_of(&CutKind::ALL);
            if repair == REPAIRS_CUT || chance.once_in(2) {
                let at = within(open_from..disk.requests(), chance);
                return Ok(disk.cut(at, fate, chance));
            }
            let at = within(0..disk.requests(), chance);
            if at >= open_from {
                // Somebody may have read it.
                expected = Expected {
                    oldest: found,
                    newest: found,
                };
            }
            outcome.count(kind, fate, "repair");
            image = disk.cut(at, fate, chance);
        }
        unreachable!("the last repair returns")
    }

    /// Opens, compares, checks and closes: what was found, and the moment from which it was open.
    fn reopened(
        &self,
        disk: &SimDisk,
        kind: CommitKind,
        expected: &Expected,
    ) -> Result<(usize, usize), String> {
        let store = open(disk, kind, self.work).map_err(|error| format!("it does not open: {error}"))?;
        let open_from = disk.requests();
        let found = self.recording.recognize(&store, expected)?;
        let findings = store.read(check::check).map_err(|error| error.to_string())?;
        if !findings.is_empty() {
            return Err(format!("the check says {findings:?}"));
        }
        close(&store);
        Ok((found, open_from))
    }
}

/// The same file with the number of an older format in it.
fn made_old(image: Vec<u8>, work: &Work) -> Result<Vec<u8>, String> {
    let disk = SimDisk::holding(image);
    let store = open(&disk, CommitKind::Exclusive, work).map_err(|error| error.to_string())?;
    let written = store.change_blocking("old", |tx| {
        tx.put(&META, &("format".to_owned(),), &Number(1))?;
        Ok(())
    });
    written.map_err(|error| error.to_string())?;
    close(&store);
    Ok(disk.image())
}
