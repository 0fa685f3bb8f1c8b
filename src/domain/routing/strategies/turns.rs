//! Strategies of turns: plain, interleaved and smooth.

use std::sync::Arc;

use super::contract::{Eligible, Fate, Round, Selection, Use};
use super::ladder::leaders;
use crate::domain::routing::candidate::Candidate;
use crate::domain::routing::explanation::RUNNERS_UP_MAX;
use crate::domain::routing::reason::Reason;
use crate::domain::routing::state::StageState;
use crate::words::ids::RecipientId;

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
    let nothing = StageState::default();
    let before = round.memory.states.get(&used.stage).map_or(&nothing, Arc::as_ref);
    let (turns, mut places) = moved_on(before, eligible, round.members);
    let total = eligible
        .iter()
        .fold(0_i64, |total, one| total.saturating_add(one.weight));
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
    let charged = round.charged(eligible, winner);
    let id = eligible[charged].id();
    if let Ok(at) = places.binary_search_by_key(&id, |(id, _)| *id) {
        places[at].1 = turns[charged].saturating_sub(total);
    }
    let state = StageState {
        cursor: before.cursor,
        level: before.level,
        members: places.into_iter().collect(),
    };
    selection.runners_up = first;
    selection.turns = turns;
    selection.states.push((used.stage.clone(), state));
    selection
}

/// Where each eligible one stands after moving on, and the same among all that is remembered from now on, sorted by id: who is
/// no member any more is forgotten, and members who are not eligible stay where they are. One walk over all three lists,
/// because all are sorted.
fn moved_on(
    before: &StageState,
    eligible: &[Eligible],
    members: &[Candidate],
) -> (Vec<i64>, Vec<(RecipientId, i64)>) {
    let mut turns = Vec::with_capacity(eligible.len());
    let mut places = Vec::with_capacity(eligible.len().max(before.members.len()));
    let mut known = before.members.iter().peekable();
    let mut moving = eligible.iter().peekable();
    for member in members {
        let id = member.recipient.id;
        while known.next_if(|(known, _)| **known < id).is_some() {}
        let stood = known.next_if(|(known, _)| **known == id).map(|(_, stood)| *stood);
        if let Some(one) = moving.next_if(|one| one.id() == id) {
            let turn = stood.unwrap_or(0).saturating_add(one.weight);
            turns.push(turn);
            places.push((id, turn));
        } else if let Some(stood) = stood {
            places.push((id, stood));
        }
    }
    (turns, places)
}
