//! Capacity, in whole numbers.

use super::candidate::Candidate;
use super::objects::RecipientPoolConfig;
use super::reason::Reason;
use crate::words::time::Micros;

/// Percent in millionths: a hundred of them.
const WHOLE: u128 = 100_000_000;

/// Assignments in the daily window that holds `now`: none when the window has ended.
pub fn daily_count(candidate: &Candidate, now: Micros) -> u32 {
    match candidate.live.daily_reset_at {
        Some(ends) if now < ends => candidate.live.daily_count,
        _ => 0,
    }
}

/// When the window ends, if there is one.
fn resets_at(candidate: &Candidate, now: Micros) -> Option<Micros> {
    candidate.live.daily_reset_at.filter(|ends| now < *ends)
}

/// How many more assignments it takes.
pub fn available(candidate: &Candidate, now: Micros) -> u32 {
    let recipient = &candidate.recipient;
    let open = recipient.max_concurrent.saturating_sub(candidate.live.current);
    match recipient.daily_limit {
        0 => open,
        limit => open.min(limit.saturating_sub(daily_count(candidate, now))),
    }
}

/// Why it has no room.
pub fn refusal(candidate: &Candidate, now: Micros) -> Option<Reason> {
    let (recipient, live) = (&candidate.recipient, &candidate.live);
    if live.current >= recipient.max_concurrent {
        return Some(Reason::CapacityConcurrent {
            current: live.current,
            max: recipient.max_concurrent,
        });
    }
    let count = daily_count(candidate, now);
    (recipient.daily_limit > 0 && count >= recipient.daily_limit).then(|| Reason::CapacityDaily {
        count,
        limit: recipient.daily_limit,
        resets_at: resets_at(candidate, now),
    })
}

/// What may be beyond capacity in one recipient pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Percent in millionths; 0 allows one above each limit of a recipient.
    percent_micro: u64,
    concurrent: Share,
    daily: Share,
}

/// One of the two limits, over all members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Share {
    limits: u128,
    over: u64,
}

impl Share {
    fn add(&mut self, used: u32, limit: u32) {
        self.limits += u128::from(limit);
        self.over += u64::from(used.saturating_sub(limit));
    }

    /// One more than now lies above the limits: whether that is too much.
    fn refuses(&self, percent_micro: u64) -> Option<Reason> {
        let budget = self.limits * u128::from(percent_micro) / WHOLE;
        let budget = u64::try_from(budget).unwrap_or(u64::MAX);
        (self.over + 1 > budget).then_some(Reason::CapacityOverBudget {
            over: self.over + 1,
            budget,
        })
    }
}

impl Budget {
    /// The budget of a recipient pool with these members; none when it allows nothing beyond capacity.
    pub fn of(config: &RecipientPoolConfig, members: &[Candidate], now: Micros) -> Budget {
        let mut budget = Budget {
            percent_micro: config.over_capacity_budget_micro,
            concurrent: Share::default(),
            daily: Share::default(),
        };
        for member in members {
            let recipient = &member.recipient;
            budget
                .concurrent
                .add(member.live.current, recipient.max_concurrent);
            if recipient.daily_limit > 0 {
                budget.daily.add(daily_count(member, now), recipient.daily_limit);
            }
        }
        budget
    }

    /// How far a recipient with this limit may go.
    fn most(&self, limit: u32) -> u64 {
        match (limit, self.percent_micro) {
            // It takes nothing, whatever the budget.
            (0, _) => 0,
            (limit, 0) => u64::from(limit) + 1,
            (limit, percent) => {
                let most = (u128::from(limit) * (WHOLE + u128::from(percent))).div_ceil(WHOLE);
                u64::try_from(most).unwrap_or(u64::MAX)
            }
        }
    }

    /// Why a member without room may not even go beyond its capacity.
    pub fn refusal(&self, candidate: &Candidate, now: Micros) -> Option<Reason> {
        let (recipient, live) = (&candidate.recipient, &candidate.live);
        let mut limits = vec![(live.current, recipient.max_concurrent, self.concurrent)];
        if recipient.daily_limit > 0 {
            limits.push((daily_count(candidate, now), recipient.daily_limit, self.daily));
        }
        for (used, limit, share) in limits {
            if used < limit {
                continue;
            }
            if limit == 0 {
                return refusal(candidate, now);
            }
            let most = self.most(limit);
            if u64::from(used) + 1 > most {
                return Some(Reason::CapacityOverBudget {
                    over: u64::from(used) + 1 - u64::from(limit),
                    budget: most - u64::from(limit),
                });
            }
            if self.percent_micro > 0
                && let Some(reason) = share.refuses(self.percent_micro)
            {
                return Some(reason);
            }
        }
        None
    }
}
