//! Strategies of keys: the same key goes the same way.

use super::contract::{Eligible, Fate, Round, Selection, Use};
use super::dispatch;
use super::draws;
use super::ladder::{best_of, lost_by_score};
use super::load::highest;
use crate::domain::routing::reason::{Note, Reason};
use crate::domain::routing::state::Holder;
use crate::domain::routing::{numbers, seed};

/// The key of the work; its id where the expression fails.
fn key(used: &Use, round: &Round) -> String {
    let given = used.params.program("key").map(|program| round.sight.key(program));
    match given {
        Some(Ok(key)) => key,
        _ => round.work.id.to_string(),
    }
}

/// Weighted rendezvous: the same recipient for the same key, and few keys move when members come or go.
pub(super) fn consistent_hash(used: &Use, eligible: &[Eligible], round: &Round) -> Selection {
    let key = key(used, round);
    let standing = |one: &Eligible| seed::standing(&one.id(), &key, numbers::real_signed(one.weight) / 1e6);
    highest(eligible, &eligible.iter().map(standing).collect::<Vec<_>>())
}

/// Who had the key before; else the inner strategy, whose choice then holds the key.
pub(super) fn sticky(used: &Use, eligible: &[Eligible], round: &Round) -> Selection {
    let held = round.memory.holders.get(&used.stage);
    let holder = held
        .and_then(|held| held.holder.as_ref())
        .filter(|holder| round.now < holder.expires_at);
    let ttl_us = used.params.length_us("ttl");
    let place = holder.and_then(|holder| eligible.iter().position(|one| one.id() == holder.recipient));
    if let Some(winner) = place {
        let fate = |at| {
            if at == winner {
                Fate::Won
            } else {
                Fate::Not(lost_by_score(0.0, 1.0))
            }
        };
        let mut selection = Selection::of((0..eligible.len()).map(fate).collect());
        selection.how = Some("holder of its key");
        bind(&mut selection, used, round, eligible, winner, ttl_us);
        return selection;
    }
    let mut selection = dispatch::inner(used, eligible, round);
    selection.how = selection
        .how
        .or(used.inner.as_ref().map(|inner| inner.info.phrase));
    if let Some(holder) = holder {
        let is_member = round
            .members
            .binary_search_by(|member| member.recipient.id.cmp(&holder.recipient))
            .is_ok();
        selection.notes.push(Note::StickyHolderIneligible {
            holder: holder.recipient,
            reason: if is_member {
                String::new()
            } else {
                "gone".to_owned()
            },
        });
    }
    if holder.is_none() || used.params.truth("rebind") {
        let first = selection.winners().next();
        if let Some(winner) = first {
            bind(&mut selection, used, round, eligible, winner, ttl_us);
        }
    }
    selection
}

/// From now on this one holds the key.
fn bind(
    selection: &mut Selection,
    used: &Use,
    round: &Round,
    eligible: &[Eligible],
    winner: usize,
    ttl_us: u64,
) {
    if let Some(held) = round.memory.holders.get(&used.stage) {
        let holder = Holder {
            recipient: eligible[round.charged(eligible, winner)].id(),
            expires_at: round.now.plus(ttl_us),
        };
        selection
            .bound
            .push((used.stage.clone(), held.key.clone(), holder));
    }
}

/// Basis points of each candidate, by its id, external id or name.
fn shares(used: &Use, eligible: &[Eligible]) -> Vec<u64> {
    let of = |one: &Eligible| {
        let found = used
            .params
            .numbers("shares")
            .find(|(name, _)| is_named(one, name));
        found.map_or(0, |(_, share)| whole(share))
    };
    eligible.iter().map(of).collect()
}

fn whole(share: f64) -> u64 {
    numbers::micro(share).unsigned_abs() / 1_000_000
}

fn is_named(one: &Eligible, name: &str) -> bool {
    let recipient = &one.candidate.recipient;
    recipient.name == name
        || recipient.external_id.as_deref() == Some(name)
        || recipient.id.to_string() == name
}

/// Whose part of the 10,000 a point lies in.
fn owner<'s>(shares: impl Iterator<Item = (&'s str, u64)>, at: u64) -> Option<&'s str> {
    let mut sum = 0;
    for (name, share) in shares {
        sum += share;
        if at < sum {
            return Some(name);
        }
    }
    None
}

/// By shares of 10,000: by the hash of a key, or exactly, to whoever lacks most.
pub(super) fn percentage_split(used: &Use, eligible: &[Eligible], round: &Round) -> Selection {
    let shares = shares(used, eligible);
    let kept: Vec<usize> = (0..eligible.len()).filter(|at| shares[*at] > 0).collect();
    if kept.len() < eligible.len() {
        let some: Vec<Eligible> = kept.iter().map(|at| eligible[*at]).collect();
        if some.is_empty() {
            return Selection::of(vec![Fate::Not(Reason::WeightZero); eligible.len()]);
        }
        return percentage_split(used, &some, round).spread(&kept, eligible.len(), |_| Reason::WeightZero);
    }
    if used.params.truth("exact") {
        return exact_split(used, eligible, &shares, round);
    }
    let key = key(used, round);
    let total: u64 = shares.iter().sum();
    // All there: the point of the key among 10,000. Somebody is missing: the point lies among those who are left only
    // when it fell on the missing, so that the keys of the others stay where they are.
    let all = used
        .params
        .numbers("shares")
        .map(|(name, share)| (name, whole(share)));
    let winner = owner(all, seed::hash("split", &key) % 10_000)
        .and_then(|name| eligible.iter().position(|one| is_named(one, name)))
        .or_else(|| point(&shares, seed::hash("split again", &key) % total.max(1)));
    let mut selection = draws::drawn(eligible.len(), winner.unwrap_or(0), Vec::new());
    selection.drew = false;
    selection.chances = super::contract::Chances::Certain;
    selection.scores = shares.iter().map(|share| numbers::real(*share)).collect();
    selection
}

fn point(shares: &[u64], at: u64) -> Option<usize> {
    let mut sum = 0;
    shares.iter().position(|share| {
        sum += share;
        at < sum
    })
}

fn exact_split(used: &Use, eligible: &[Eligible], shares: &[u64], round: &Round) -> Selection {
    let mut state = round.memory.state(&used.stage);
    let given: i64 = state.members.values().sum();
    let lacks: Vec<i64> = eligible
        .iter()
        .zip(shares)
        .map(|(one, share)| share.cast_signed() * (given + 1) - state.of(one.id()) * 10_000)
        .collect();
    let mut selection = best_of(
        eligible,
        |left, right| lacks[right].cmp(&lacks[left]),
        |at| numbers::real_signed(lacks[at]) / 10_000.0,
    );
    let first = selection.winners().next();
    if let Some(winner) = first {
        *state
            .members
            .entry(eligible[round.charged(eligible, winner)].id())
            .or_insert(0) += 1;
    }
    selection.states.push((used.stage.clone(), state));
    selection
}
