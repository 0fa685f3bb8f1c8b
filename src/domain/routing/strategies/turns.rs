//! Strategies of turns: plain, interleaved and smooth.

use super::contract::{Eligible, Fate, Round, Selection, Use};
use super::ladder::leaders;
use crate::domain::routing::explanation::RUNNERS_UP_MAX;
use crate::domain::routing::reason::Reason;
use crate::domain::routing::state::StageState;

/// The smallest id behind the cursor, else the smallest.
pub(super) fn round_robin(used: &Use, eligible: &[Eligible], round: &Round) -> Selection {
    let mut state = round.memory.state(&used.stage);
    let start = match state.cursor {
        None => 0,
        Some(cursor) => eligible.partition_point(|one| one.id() <= cursor) % eligible.len(),
    };
    let mut selection = in_order(eligible.len(), start);
    state.cursor = Some(eligible[round.charged(eligible, start)].id());
    selection.states.push((used.stage.clone(), state));
    selection
}

/// Interleaved turns: the level falls from the highest weight by the greatest common divisor at each round, and whoever
/// weighs at least the level is picked in its turn.
pub(super) fn interleaved(used: &Use, eligible: &[Eligible], round: &Round) -> Selection {
    let mut state = round.memory.state(&used.stage);
    let count = eligible.len();
    let highest = eligible.iter().map(|one| one.weight).max().unwrap_or(1);
    let step = eligible
        .iter()
        .fold(0, |divisor, one| greatest_divisor(divisor, one.weight))
        .max(1);
    let mut level = state.level.min(highest);
    let mut next = match state.cursor {
        None => 0,
        Some(cursor) => eligible.partition_point(|one| one.id() <= cursor) % count,
    };
    for _ in 0..count.saturating_mul(4) {
        if next == 0 {
            level -= step;
            if level <= 0 {
                level = highest;
            }
        }
        if eligible[next].weight >= level {
            let mut selection = in_order(count, next);
            (state.cursor, state.level) = (Some(eligible[round.charged(eligible, next)].id()), level);
            selection.states.push((used.stage.clone(), state));
            return selection;
        }
        next = (next + 1) % count;
    }
    smooth(used, eligible, round)
}

fn greatest_divisor(left: i64, right: i64) -> i64 {
    if right == 0 {
        left
    } else {
        greatest_divisor(right, left % right)
    }
}

/// `start` wins; the others stand as far behind as their turn is away.
fn in_order(count: usize, start: usize) -> Selection {
    let away = |at: usize| i64::try_from((at + count - start) % count).unwrap_or(i64::MAX);
    let fates = (0..count).map(|at| {
        if at == start {
            return Fate::Won;
        }
        Fate::Not(Reason::LostTurn {
            current: -away(at),
            winner_current: 0,
        })
    });
    let mut selection = Selection::of(fates.collect());
    selection.runners_up = (1..=RUNNERS_UP_MAX.min(count - 1))
        .map(|behind| (start + behind) % count)
        .collect();
    selection
}

/// Each eligible member moves on by its weight; the one furthest on wins and goes back by all weights. The own tie rule is
/// the smallest id. The sum over all members stays 0.
pub(super) fn smooth(used: &Use, eligible: &[Eligible], round: &Round) -> Selection {
    let mut state = round.memory.state(&used.stage);
    keep_members(&mut state, round);
    let mut total = 0_i64;
    let mut turns = Vec::with_capacity(eligible.len());
    for one in eligible {
        let current = state.of(one.id()).saturating_add(one.weight);
        total = total.saturating_add(one.weight);
        turns.push(current);
    }
    let order = |left: usize, right: usize| turns[right].cmp(&turns[left]).then(left.cmp(&right));
    let mut first = leaders(eligible.len(), RUNNERS_UP_MAX + 1, order);
    let winner = first.remove(0);
    let fates = turns.iter().enumerate().map(|(at, current)| {
        if at == winner {
            return Fate::Won;
        }
        Fate::Not(Reason::LostTurn {
            current: *current,
            winner_current: turns[winner],
        })
    });
    let mut selection = Selection::of(fates.collect());
    for (one, current) in eligible.iter().zip(&turns) {
        state.members.insert(one.id(), *current);
    }
    let charged = round.charged(eligible, winner);
    state
        .members
        .insert(eligible[charged].id(), turns[charged].saturating_sub(total));
    selection.runners_up = first;
    selection.turns = turns;
    selection.states.push((used.stage.clone(), state));
    selection
}

/// Who is no member any more is forgotten.
fn keep_members(state: &mut StageState, round: &Round) {
    state.keep(|id| {
        let place = round
            .members
            .binary_search_by(|member| member.recipient.id.cmp(&id));
        place.is_ok()
    });
}
