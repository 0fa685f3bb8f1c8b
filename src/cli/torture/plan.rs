//! The plan: what is done in each round, and when. Pure: a round follows from the seed, its number and what can be done here.

use std::fmt;

use crate::words::chance::Chance;

/// The shortest round.
const LENGTH_MS_MIN: u64 = 3_000;
/// The longest round.
const LENGTH_MS_MAX: u64 = 10_000;
/// Daemons are left alone for this long at the beginning of a round.
const FIRST_MS: u64 = 300;
/// Deeds of one round.
const DEEDS_MAX: u64 = 7;
/// Every round of this number is followed by a trial with a damaged copy.
const DAMAGE_EVERY: u64 = 5;

/// What can be done here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Abilities {
    /// Daemons, at least one.
    pub(super) daemons: usize,
    /// The binary knows planned faults: a debug build.
    pub(super) planned_faults: bool,
    /// The file system may be filled.
    pub(super) fill: bool,
}

/// One thing that is done to the daemons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// SIGKILL, and a start after a while.
    Kill { daemon: usize, down_ms: u64 },
    /// SIGKILL for all of them.
    KillAll { down_ms: u64 },
    /// SIGSTOP, and SIGCONT after a while.
    Freeze { daemon: usize, for_ms: u64 },
    /// SIGTERM, and a start after the end.
    Restart { daemon: usize, down_ms: u64 },
    /// A second daemon with the name of one that runs.
    Twin { daemon: usize },
    /// SIGHUP with a changed file.
    Reload,
    /// SIGHUP with a file that has a fault.
    BrokenReload,
    /// A planned fault at a point of the code.
    Fault {
        daemon: usize,
        point: &'static str,
        action: &'static str,
        for_ms: u64,
    },
    /// The process ends at a point of the code.
    KillAt { daemon: usize, point: &'static str },
    /// The wall clock of one daemon is moved.
    Clock {
        daemon: usize,
        offset_ms: i64,
        for_ms: u64,
    },
    /// A restart after which the trial of locks fails.
    LocksLie { daemon: usize },
    /// The file system is filled, and freed after a while.
    Fill { for_ms: u64 },
}

/// When, and what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Deed {
    /// Since the beginning of the round.
    pub(super) at_ms: u64,
    /// What.
    pub(super) act: Act,
}

/// How a round ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// SIGTERM: running commands are waited for.
    Stop,
    /// SIGKILL for all: the store is looked at as the crash left it.
    Kill,
}

/// A round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Round {
    /// From 1.
    pub(super) number: u64,
    /// How long it is.
    pub(super) length_ms: u64,
    /// In the order of time.
    pub(super) deeds: Vec<Deed>,
    /// How it ends.
    pub(super) end: End,
    /// Afterwards a copy of the store is damaged at this place, a fraction of its length in 1/2^32.
    pub(super) damage: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Kill,
    KillAll,
    Freeze,
    Restart,
    Twin,
    Reload,
    BrokenReload,
    Fault,
    KillAt,
    Clock,
    LocksLie,
    Fill,
}

const ALWAYS: [Kind; 7] = [
    Kind::Kill,
    Kind::Freeze,
    Kind::Restart,
    Kind::KillAll,
    Kind::Twin,
    Kind::Reload,
    Kind::BrokenReload,
];
const WITH_FAULTS: [Kind; 4] = [Kind::Fault, Kind::KillAt, Kind::Clock, Kind::LocksLie];

/// Points where the store, a renewal or a completion can be told to fail.
const FAULT_POINTS: [&str; 6] = [
    "store.commit",
    "store.begin",
    "store.read",
    "store.committed",
    "renew.before",
    "complete.before",
];
const FAULT_ACTIONS: [&str; 5] = ["error", "enospc", "eacces", "erofs", "stall:400"];
const KILL_POINTS: [&str; 5] = [
    "store.commit",
    "store.committed",
    "gate.before",
    "complete.before",
    "renew.before",
];
const OFFSETS_MS: [i64; 6] = [3_600_000, -3_600_000, 9_000, -30_000, 60_000, -700];

/// The round of that number.
pub(super) fn round(seed: u64, number: u64, abilities: Abilities) -> Round {
    let mut chance = Chance::part(seed, number);
    let length_ms = chance.between(LENGTH_MS_MIN, LENGTH_MS_MAX);
    let mut kinds = ALWAYS.to_vec();
    if abilities.planned_faults {
        kinds.extend(WITH_FAULTS);
    }
    if abilities.fill {
        // The first round has it: whoever mounted a small disk for this wants to see it full.
        kinds.insert(2, Kind::Fill);
    }
    // Two kinds take turns, so that a short test has met all of them; the others are drawn.
    let turn = usize::try_from(number * 2 % kinds.len() as u64).unwrap_or(0);
    let mut chosen = vec![kinds[turn], kinds[(turn + 1) % kinds.len()]];
    for _ in 0..chance.below(DEEDS_MAX - 1) {
        chosen.extend(chance.pick(&kinds).copied());
    }
    let mut deeds: Vec<Deed> = chosen
        .into_iter()
        .map(|kind| Deed {
            at_ms: chance.between(FIRST_MS, length_ms - FIRST_MS),
            act: act_of(kind, abilities.daemons, &mut chance),
        })
        .collect();
    deeds.sort_by_key(|deed| deed.at_ms);
    let end = if chance.one_in(3) { End::Kill } else { End::Stop };
    let damage = number
        .is_multiple_of(DAMAGE_EVERY)
        .then(|| u32::try_from(chance.below(1 << 32)).unwrap_or(0));
    Round {
        number,
        length_ms,
        deeds,
        end,
        damage,
    }
}

fn act_of(kind: Kind, daemons: usize, chance: &mut Chance) -> Act {
    let daemon = usize::try_from(chance.below(daemons as u64)).unwrap_or(0);
    let down_ms = chance.below(1_200);
    match kind {
        Kind::Kill => Act::Kill { daemon, down_ms },
        Kind::KillAll => Act::KillAll { down_ms },
        Kind::Freeze => Act::Freeze {
            daemon,
            for_ms: chance.between(500, 8_000),
        },
        Kind::Restart => Act::Restart { daemon, down_ms },
        Kind::Twin => Act::Twin { daemon },
        Kind::Reload => Act::Reload,
        Kind::BrokenReload => Act::BrokenReload,
        Kind::Fault => Act::Fault {
            daemon,
            point: chance.pick(&FAULT_POINTS).copied().unwrap_or_default(),
            action: chance.pick(&FAULT_ACTIONS).copied().unwrap_or_default(),
            for_ms: chance.between(200, 3_000),
        },
        Kind::KillAt => Act::KillAt {
            daemon,
            point: chance.pick(&KILL_POINTS).copied().unwrap_or_default(),
        },
        Kind::Clock => Act::Clock {
            daemon,
            offset_ms: chance.pick(&OFFSETS_MS).copied().unwrap_or_default(),
            for_ms: chance.between(500, 4_000),
        },
        Kind::LocksLie => Act::LocksLie { daemon },
        Kind::Fill => Act::Fill {
            for_ms: chance.between(300, 2_500),
        },
    }
}

/// The name of a daemon: `a` is the first.
pub(super) fn name_of(daemon: usize) -> String {
    let letter = u8::try_from(daemon).unwrap_or(0).saturating_add(b'a');
    char::from(letter).to_string()
}

fn seconds(ms: u64) -> String {
    format!("{}.{} s", ms / 1_000, ms % 1_000 / 100)
}

impl Act {
    /// The word under which deeds are counted.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Act::Kill { .. } => "kill",
            Act::KillAll { .. } => "kill_all",
            Act::Freeze { .. } => "freeze",
            Act::Restart { .. } => "restart",
            Act::Twin { .. } => "second_of_a_name",
            Act::Reload => "reload",
            Act::BrokenReload => "broken_reload",
            Act::Fault { .. } => "fault",
            Act::KillAt { .. } => "kill_at_a_point",
            Act::Clock { .. } => "clock",
            Act::LocksLie { .. } => "bad_locks",
            Act::Fill { .. } => "disk_full",
        }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Act::Kill { daemon, .. } => write!(out, "kill -9 {}", name_of(*daemon)),
            Act::KillAll { .. } => out.write_str("kill -9 all"),
            Act::Freeze { daemon, for_ms } => {
                write!(out, "freeze {} {}", name_of(*daemon), seconds(*for_ms))
            }
            Act::Restart { daemon, .. } => write!(out, "restart {}", name_of(*daemon)),
            Act::Twin { daemon } => write!(out, "second {}", name_of(*daemon)),
            Act::Reload => out.write_str("reload"),
            Act::BrokenReload => out.write_str("broken reload"),
            Act::Fault {
                daemon,
                point,
                action,
                for_ms,
            } => write!(
                out,
                "{point}={action} in {} {}",
                name_of(*daemon),
                seconds(*for_ms)
            ),
            Act::KillAt { daemon, point } => write!(out, "kill {} at {point}", name_of(*daemon)),
            Act::Clock {
                daemon,
                offset_ms,
                for_ms,
            } => {
                let sign = if *offset_ms < 0 { '-' } else { '+' };
                let (moved, time) = (seconds(offset_ms.unsigned_abs()), seconds(*for_ms));
                write!(out, "clock of {} {sign}{moved} for {time}", name_of(*daemon))
            }
            Act::LocksLie { daemon } => write!(out, "bad locks for {}", name_of(*daemon)),
            Act::Fill { for_ms } => write!(out, "disk full {}", seconds(*for_ms)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Abilities = Abilities {
        daemons: 3,
        planned_faults: true,
        fill: true,
    };

    #[test]
    fn a_round_follows_from_seed_and_number() {
        for number in 1..50 {
            assert_eq!(round(42, number, ALL), round(42, number, ALL));
        }
        assert_ne!(round(42, 1, ALL).deeds, round(43, 1, ALL).deeds);
        assert_ne!(round(42, 1, ALL).deeds, round(42, 2, ALL).deeds);
    }

    #[test]
    fn rounds_keep_their_bounds() {
        for seed in 0..20 {
            for number in 1..60 {
                let round = round(seed, number, ALL);
                assert!((LENGTH_MS_MIN..=LENGTH_MS_MAX).contains(&round.length_ms));
                assert!((2..=8).contains(&round.deeds.len()), "{round:?}");
                let times: Vec<u64> = round.deeds.iter().map(|deed| deed.at_ms).collect();
                assert!(times.is_sorted() && times.iter().all(|at| (300..round.length_ms).contains(at)));
                assert_eq!(round.damage.is_some(), number % 5 == 0);
                for deed in &round.deeds {
                    if let Act::Kill { daemon, .. } | Act::Freeze { daemon, .. } = deed.act {
                        assert!(daemon < 3);
                    }
                }
            }
        }
    }

    #[test]
    fn six_rounds_meet_every_kind() {
        for seed in 0..20 {
            let acts: Vec<String> = (1..=6)
                .flat_map(|number| round(seed, number, ALL).deeds)
                .map(|deed| deed.act.to_string())
                .collect();
            for word in [
                "kill -9 ",
                "kill -9 all",
                "freeze ",
                "restart ",
                "second ",
                "reload",
                "broken reload",
                "=",
                " at ",
                "clock of ",
                "bad locks",
                "disk full",
            ] {
                assert!(
                    acts.iter().any(|act| act.contains(word)),
                    "{word} with seed {seed}: {acts:?}"
                );
            }
        }
    }

    #[test]
    fn a_release_build_is_not_asked_for_planned_faults() {
        let few = Abilities {
            daemons: 1,
            planned_faults: false,
            fill: false,
        };
        for number in 1..200 {
            for deed in round(7, number, few).deeds {
                assert!(
                    !matches!(
                        deed.act,
                        Act::Fault { .. }
                            | Act::KillAt { .. }
                            | Act::Clock { .. }
                            | Act::LocksLie { .. }
                            | Act::Fill { .. }
                    ),
                    "{deed:?}"
                );
            }
        }
    }

    #[test]
    fn deeds_are_told_in_few_words() {
        let clock = Act::Clock {
            daemon: 1,
            offset_ms: -3_600_000,
            for_ms: 1_250,
        };
        assert_eq!(clock.to_string(), "clock of b -3600.0 s for 1.2 s");
        assert_eq!(
            Act::Kill {
                daemon: 0,
                down_ms: 5
            }
            .to_string(),
            "kill -9 a"
        );
    }
}
