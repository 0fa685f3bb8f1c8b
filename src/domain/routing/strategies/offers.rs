//! Strategies for several at once: offers that the first claim takes, and an assignment for each.

use super::contract::{Eligible, Fan, Fate, Round, Selection, Use};
use super::ladder::{ladder, leaders};
use crate::domain::routing::numbers;
use crate::domain::routing::reason::Reason;

/// The first `most` by the ladder.
fn first(eligible: &[Eligible], most: u64) -> Vec<usize> {
    let most = usize::try_from(most).unwrap_or(usize::MAX).min(eligible.len());
    if most == eligible.len() {
        return (0..most).collect();
    }
    leaders(eligible.len(), most, |left, right| {
        ladder(&eligible[left], &eligible[right]).0
    })
}

/// Offered to all, or to the first `fanout` by the ladder.
pub(super) fn shark_tank(used: &Use, eligible: &[Eligible], _round: &Round) -> Selection {
    let fan = first(eligible, used.params.count("fanout"));
    let open = Reason::LostClaim {
        claimed_by: None,
        at: None,
    };
    let mut selection = Selection::of(vec![Fate::Not(open); eligible.len()]);
    let mut to: Vec<_> = fan.into_iter().map(|at| eligible[at].id()).collect();
    to.sort_unstable();
    selection.fan = Some(Fan {
        to,
        window_us: used.params.length_us("window"),
    });
    selection
}

/// An assignment for each of the first `max`; fewer than `min` is nobody.
pub(super) fn broadcast(used: &Use, eligible: &[Eligible], _round: &Round) -> Selection {
    let (min, count) = (used.params.count("min"), eligible.len() as u64);
    if count < min {
        let few = Reason::ScoreBelowMin {
            score: numbers::real(count),
            min: numbers::real(min),
        };
        return Selection::of(vec![Fate::Not(few); eligible.len()]);
    }
    let chosen = first(eligible, used.params.count("max"));
    let mut fates: Vec<Option<Fate>> = vec![None; eligible.len()];
    for at in &chosen {
        fates[*at] = Some(Fate::Won);
    }
    let last = chosen.last().copied().unwrap_or(0);
    let fates = fates.into_iter().enumerate().map(|(at, fate)| {
        fate.unwrap_or_else(|| {
            let on = ladder(&eligible[last], &eligible[at]).1;
            Fate::Not(Reason::LostTie { on })
        })
    });
    Selection::of(fates.collect())
}
