//! The words of `ductor torture`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

const EXAMPLES: &str = "\
Examples:
  ductor torture --dir /mnt/data/trial
  ductor torture --dir trial --for 30m
  ductor torture --dir trial --rounds 20 --seed 42

Each round starts daemons on DIR, gives them work, kills, freezes and misleads
them, and then holds the store against what clients were told and what the
commands themselves saw. It needs no daemon of yours and touches none.

The seed makes the plan: the same deeds at the same moments. What the disk and
the scheduler make of them differs each time.

Exit codes: 0 nothing lost, 1 something was lost (DIR stays as it is),
2 wrong usage, 5 DIR holds something else, 130 interrupted.";

/// More daemons on one directory than this are no better a test.
pub(super) const DAEMONS_MAX: u8 = 9;

/// Arguments of `torture`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TortureArguments {
    /// An empty directory on the disk to test; made if it is not there, emptied at the end if nothing was lost.
    #[arg(long, value_name = "DIR")]
    pub(super) dir: PathBuf,
    /// How long new rounds begin [default: 1m].
    #[arg(long = "for", value_name = "TIME", value_parser = super::super::times::read_length, conflicts_with = "rounds")]
    pub(super) length: Option<u64>,
    /// So many rounds, instead of a time; 0 only starts, settles and checks.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub(super) rounds: Option<u64>,
    /// Makes the plan; drawn, and told, if it is not given.
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Daemons that share the directory.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=i64::from(DAEMONS_MAX)))]
    pub(super) daemons: u8,
    /// Leave the directory as it is even if nothing was lost.
    #[arg(long)]
    pub(super) keep: bool,
    /// Does something wrong on purpose, to see that it is found: a test of this test.
    #[arg(long, hide = true, value_enum)]
    pub(super) plant: Option<Plant>,
}

/// What is done wrong on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Plant {
    /// Two live copies of one run.
    Overlap,
    /// A start that the store does not have.
    LostStart,
    /// One command more than the slot pool has slots.
    SlotOverrun,
    /// A command whose fence is not above the last.
    OldFence,
}
