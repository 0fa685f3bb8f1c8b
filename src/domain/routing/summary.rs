//! A decision in one sentence, and who was closest.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "values and reasons are asked for the few kinds that matter; every other one is answered alike"
)]

use super::decision::Outcome;
use super::duration;
use super::explanation::{Explanation, NearestMiss, Verdict};
use super::numbers;
use super::reason::{Note, Reason};
use super::strategies;

/// One sentence for people.
pub(super) fn sentence(
    outcome: Outcome,
    recipient_pool: &str,
    explanation: &Explanation,
    notes: &[Note],
) -> String {
    let winners: Vec<&Verdict> = explanation
        .candidates
        .iter()
        .filter(|verdict| verdict.reason.is_none())
        .collect();
    if !winners.is_empty() {
        return won(outcome, &winners, explanation);
    }
    let ending = match outcome {
        Outcome::Queued => format!("it waits in {recipient_pool}"),
        Outcome::Overflowed => format!("it went on and waits in {recipient_pool}"),
        Outcome::Escalated => format!("it was escalated and waits in {recipient_pool}"),
        Outcome::DeferredCatchall => format!("it waits in {recipient_pool} for its catchall"),
        Outcome::Offered | Outcome::QueuedForClaim => return format!("Offered in {recipient_pool}."),
        Outcome::Dropped => dropped(explanation, notes),
        Outcome::DepthExceeded => "it hopped too often".to_owned(),
        Outcome::PoolUnroutable if recipient_pool.is_empty() => unroutable(notes),
        Outcome::PoolUnroutable => return format!("{recipient_pool} does not route now."),
        Outcome::NoRuleMatched => {
            return "No rule chose a pool, and the tenant has no default pool.".to_owned();
        }
        Outcome::Duplicate => return format!("{recipient_pool} has had this work before."),
        Outcome::Error => return format!("The strategy of {recipient_pool} cannot be used{}.", lack(notes)),
        Outcome::Assigned | Outcome::AssignedOverCapacity | Outcome::Broadcast | Outcome::Invalid => {
            outcome.word().to_owned()
        }
    };
    let considered = explanation.considered();
    let histogram = explanation.histogram();
    let most = histogram.iter().max_by_key(|(_, count)| **count);
    match most {
        Some((code, count)) => format!("Nobody of {considered}: {ending}; {code} for {count}."),
        None if considered == 0 && !explanation.hops.is_empty() => format!("Nobody is a member: {ending}."),
        None => format!("Nobody: {ending}."),
    }
}

/// What was chosen is named: whoever reads this wants to let it route again.
fn unroutable(notes: &[Note]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for note in notes {
        if let Note::Skipped { recipient_pool } = note
            && !names.contains(&recipient_pool.as_str())
        {
            names.push(recipient_pool);
        }
    }
    match names.as_slice() {
        [] => "nothing that was chosen routes now".to_owned(),
        [one] => format!("{one} was chosen, and does not route now"),
        [.., _] => format!("{} were chosen, and none routes now", names.join(", ")),
    }
}

/// What the strategy lacks.
fn lack(notes: &[Note]) -> String {
    for note in notes {
        if let Note::Unusable { pointer, detail } = note {
            return format!(": {pointer}: {detail}");
        }
    }
    String::new()
}

fn dropped(explanation: &Explanation, notes: &[Note]) -> String {
    for note in notes {
        if let Note::QueueExpired { waited_us, .. } = note {
            return format!("it waited {} and was dropped", duration::print(*waited_us));
        }
    }
    match explanation
        .rules
        .iter()
        .rev()
        .find(|line| line.result && line.target.is_none())
    {
        Some(line) => format!("the rule {} drops it", line.rule),
        None => "it was dropped".to_owned(),
    }
}

fn won(outcome: Outcome, winners: &[&Verdict], explanation: &Explanation) -> String {
    let names: Vec<&str> = winners
        .iter()
        .take(3)
        .map(|verdict| verdict.recipient.name.as_str())
        .collect();
    let mut text = names.join(", ");
    if winners.len() > names.len() {
        text += &format!(" and {} more", winners.len() - names.len());
    }
    let pick = explanation.stages.iter().rev().find(|line| line.kind == "pick");
    let phrase = pick
        .and_then(|line| match (&line.with, line.how) {
            (_, Some(how)) => Some(how),
            (Some((_, strategy)), None) => strategies::info(strategy).map(|info| info.phrase),
            (None, None) => None,
        })
        .unwrap_or("chosen");
    let hop = explanation.hops.last();
    let (eligible, considered) = hop.map_or((0, 0), |hop| (hop.eligible, hop.considered));
    text += &format!(": {phrase} among {eligible} of {considered} eligible");
    if outcome == Outcome::AssignedOverCapacity {
        text += ", beyond its capacity";
    }
    let wants = wants(explanation);
    if !wants.is_empty() {
        text += "; ";
        text += &wants;
    }
    text += ".";
    text
}

/// What the work required that somebody did not have.
fn wants(explanation: &Explanation) -> String {
    let mut seen: Vec<String> = Vec::new();
    for reason in explanation
        .candidates
        .iter()
        .filter_map(|verdict| verdict.reason.as_ref())
    {
        let wanted = match reason {
            Reason::TraitMissing { key, want } | Reason::TraitMismatch { key, want, .. } => {
                match want.as_str() {
                    Some(text) => format!("{key} {text} required"),
                    None => format!("{key} {want} required"),
                }
            }
            _ => continue,
        };
        if !seen.contains(&wanted) && seen.len() < 3 {
            seen.push(wanted);
        }
    }
    seen.join(", ")
}

/// Who was closest: the first runner-up, else whoever came furthest.
pub(super) fn nearest_miss(explanation: &Explanation) -> Option<NearestMiss> {
    let losers = explanation
        .candidates
        .iter()
        .filter(|verdict| verdict.reason.is_some());
    let key = |verdict: &&Verdict| {
        let lost = verdict.reason.as_ref().is_some_and(Reason::is_lost);
        let place = if verdict.place == 0 {
            u32::MAX
        } else {
            verdict.place
        };
        (
            verdict.hop,
            lost,
            verdict.stage,
            std::cmp::Reverse(place),
            std::cmp::Reverse(verdict.also.len()),
        )
    };
    // The first of equals: candidates come sorted by id.
    let best = losers.rev().max_by_key(key)?;
    let reason = best.reason.as_ref()?;
    Some(NearestMiss {
        recipient: best.recipient.clone(),
        would_win_if: missing(reason, best.place),
    })
}

fn missing(reason: &Reason, place: u32) -> String {
    match reason {
        Reason::LostTurn { .. } if place <= 1 => "one more pick: its turn is next".to_owned(),
        Reason::LostTurn { .. } => format!("{place} more picks"),
        Reason::LostSample => "the draw had fallen on it".to_owned(),
        Reason::LostTie { on } => format!("it were first by {}: it is equal in all else", on.word()),
        Reason::LostClaim { .. } => "it claims first".to_owned(),
        Reason::LostScore { margin, .. } => {
            format!("its number were better by {}", numbers::rounded(*margin))
        }
        Reason::CapacityConcurrent { .. } => "one of its assignments ends".to_owned(),
        Reason::CapacityDaily { resets_at, .. } => match resets_at {
            Some(at) => format!("its day were over, at {at}"),
            None => "its daily limit were higher".to_owned(),
        },
        Reason::ScheduleClosed {
            opens_at: Some(at), ..
        } => format!("its windows were open, from {at}"),
        Reason::StateOffline { .. } => "it were online".to_owned(),
        Reason::StateBusy { .. } | Reason::StatePaused { .. } => "it were available".to_owned(),
        Reason::Cooldown { until } => format!("its cooldown were over, at {until}"),
        Reason::TraitMissing { key, want } | Reason::TraitMismatch { key, want, .. } => {
            format!("its {key} were {want}")
        }
        Reason::RuleFalse { rule, .. } => format!("the rule {rule} were true for it"),
        Reason::WeightZero => "its weight were above 0".to_owned(),
        other => format!("{} did not hold", other.code()),
    }
}
