//! The way to the strategies.

use super::contract::{Eligible, Round, Selection, Use};
use super::{Kind, bandits, bids, draws, keyed, ladder, load, matching, nested, offers, pacing, turns};
use crate::domain::routing::reason::Reason;

/// Who gets the work. There is at least one eligible candidate; where weights count, a weight of 0 leaves.
pub fn select(used: &Use, eligible: &[Eligible], round: &Round) -> Selection {
    if used.info.uses_weight && eligible.iter().any(|one| one.weight <= 0) {
        let kept: Vec<usize> = (0..eligible.len())
            .filter(|at| eligible[*at].weight > 0)
            .collect();
        return matching::some(&kept, eligible, |some, _| run(used, some, round)).spread(
            &kept,
            eligible.len(),
            |_| Reason::WeightZero,
        );
    }
    run(used, eligible, round)
}

/// The choice of the strategy inside of another.
pub(super) fn inner(used: &Use, eligible: &[Eligible], round: &Round) -> Selection {
    match &used.inner {
        Some(inner) => select(inner, eligible, round),
        None => ladder::by_ladder(eligible),
    }
}

fn run(used: &Use, eligible: &[Eligible], round: &Round) -> Selection {
    let strategy = match used.info.kind {
        Kind::RoundRobin => turns::round_robin,
        Kind::WeightedRoundRobin => turns::interleaved,
        Kind::SmoothWeightedRoundRobin => turns::smooth,
        Kind::Random => draws::random,
        Kind::WeightedRandom => draws::weighted_random,
        Kind::LeastLoaded => load::least_loaded,
        Kind::MostAvailable => load::most_available,
        Kind::LeastUtilized => load::least_utilized,
        Kind::WeightedLeastRequest => load::weighted_least_request,
        Kind::PowerOfTwoChoices => draws::power_of_two,
        Kind::PeakEwma => draws::peak_ewma,
        Kind::LongestIdle => load::longest_idle,
        Kind::Priority => nested::priority,
        Kind::Sticky => keyed::sticky,
        Kind::ConsistentHash => keyed::consistent_hash,
        Kind::SkillMatch => matching::skill_match,
        Kind::Nearest => matching::nearest,
        Kind::HighestBid => bids::highest_bid,
        Kind::SecondPrice => bids::second_price,
        Kind::LowestCost => bids::lowest_cost,
        Kind::PercentageSplit => keyed::percentage_split,
        Kind::EpsilonGreedy => bandits::epsilon_greedy,
        Kind::Ucb1 => bandits::ucb1,
        Kind::Thompson => bandits::thompson,
        Kind::QuotaPacing => pacing::quota_pacing,
        Kind::CapacityAware => nested::capacity_aware,
        Kind::Fair | Kind::AvailabilityFallback => load::plain,
        Kind::SlaDeadline => pacing::sla_deadline,
        Kind::SharkTank => offers::shark_tank,
        Kind::Broadcast => offers::broadcast,
    };
    strategy(used, eligible, round)
}
