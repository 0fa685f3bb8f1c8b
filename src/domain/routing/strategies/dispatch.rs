//! The way to the strategies.

use super::contract::{Eligible, Round, Selection, Use};
use super::{Kind, ladder, turns};

/// Who gets the work. There is at least one eligible candidate.
pub fn select(used: &Use, eligible: &[Eligible], round: &Round) -> Selection {
    match used.info.kind {
        Kind::RoundRobin => turns::round_robin(used, eligible, round),
        Kind::SmoothWeightedRoundRobin => turns::smooth(used, eligible, round),
        _ => ladder::by_ladder(eligible),
    }
}
