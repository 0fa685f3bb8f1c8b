//! A member of a recipient pool as a decision sees it.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::live::Live;
use super::objects::Recipient;
use super::strategies::pacing::window_start;
use crate::words::time::Micros;

/// What is declared of a recipient, what it does now, and what was learned of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// As declared.
    pub recipient: Arc<Recipient>,
    /// What it does now.
    pub live: Live,
    /// What was learned of it in this recipient pool.
    pub learned: Learned,
    /// What it bids for this work.
    pub bid: Option<Bid>,
}

/// The members of a recipient pool: many passes look at the same ones, so they are shared until somebody changes them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Members(Arc<Vec<Candidate>>);

impl Members {
    /// The same, sorted by id.
    #[must_use]
    pub fn sorted(mut self) -> Members {
        if !self.0.is_sorted_by_key(|member| member.recipient.id) {
            self.sort_unstable_by_key(|member| member.recipient.id);
        }
        self
    }
}

impl Deref for Members {
    type Target = Vec<Candidate>;

    fn deref(&self) -> &Vec<Candidate> {
        &self.0
    }
}

impl DerefMut for Members {
    fn deref_mut(&mut self) -> &mut Vec<Candidate> {
        Arc::make_mut(&mut self.0)
    }
}

impl From<Vec<Candidate>> for Members {
    fn from(members: Vec<Candidate>) -> Members {
        Members(Arc::new(members))
    }
}

impl FromIterator<Candidate> for Members {
    fn from_iter<I: IntoIterator<Item = Candidate>>(members: I) -> Members {
        members.into_iter().collect::<Vec<_>>().into()
    }
}

impl<'m> IntoIterator for &'m Members {
    type Item = &'m Candidate;
    type IntoIter = std::slice::Iter<'m, Candidate>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<'m> IntoIterator for &'m mut Members {
    type Item = &'m mut Candidate;
    type IntoIter = std::slice::IterMut<'m, Candidate>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

/// What was learned of a recipient from the ends of its work in one recipient pool. One row for each pair.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// Ends with a value.
    pub n: f64,
    /// The sum of their values, each 0 to 1: successes. Failures are `n` less this.
    pub successes: f64,
    /// When these two were brought up to date: they fade with the strategy's half-life.
    pub faded_at: Option<Micros>,
    /// How long its work takes, peaks kept: microseconds.
    pub ewma_us: Option<f64>,
    /// When that was observed last.
    pub ewma_at: Option<Micros>,
    /// Assignments since the start of the pacing window.
    pub delivered: u64,
    /// When that window began.
    pub delivered_since: Option<Micros>,
}

/// An offer for one unit of work, in micros of its currency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bid {
    /// What it pays, or asks for.
    pub amount: i64,
    /// What the bid is worth after discounts; the ranks of auctions go by this.
    pub effective: i64,
    /// When it was made; the earlier wins a tie.
    pub at: Micros,
    /// Until when it holds.
    pub expires_at: Option<Micros>,
    /// How good its work is, in millionths.
    pub quality_micro: i64,
    /// How well it keeps its promises, in millionths.
    pub sla_micro: i64,
    /// What its wallet holds, where it must be covered.
    pub wallet: Option<i64>,
}

/// How fast what was learned is forgotten, by the strategies of a recipient pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forgetting {
    /// Of the time that work takes (`peak_ewma`, `sla_deadline`): microseconds.
    pub tau_us: u64,
    /// Of successes (`thompson`): microseconds; 0 for never.
    pub half_life_us: u64,
    /// The window of `quota_pacing`: microseconds.
    pub pacing_us: u64,
}

impl Default for Forgetting {
    fn default() -> Forgetting {
        Forgetting {
            tau_us: 10_000_000,
            half_life_us: 0,
            pacing_us: 24 * 3_600_000_000,
        }
    }
}

impl Learned {
    /// Work ended: how long it took, and what it was worth (0 to 1) where that was said.
    pub fn ended(&mut self, now: Micros, took_us: u64, value: Option<f64>, forgetting: Forgetting) {
        self.ewma_us = Some(peak(self.ewma_us, self.ewma_at, took_us, now, forgetting.tau_us));
        self.ewma_at = Some(now);
        if let Some(value) = value {
            let (successes, n) = self.faded(now, forgetting.half_life_us);
            self.successes = successes + value.clamp(0.0, 1.0);
            self.n = n + 1.0;
            self.faded_at = Some(now);
        }
    }

    /// It got work.
    pub fn assigned(&mut self, now: Micros, forgetting: Forgetting) {
        let start = window_start(now, forgetting.pacing_us);
        self.delivered = self.delivered_in(start) + 1;
        self.delivered_since = Some(start);
    }

    /// Assignments in the pacing window that began then.
    pub fn delivered_in(&self, start: Micros) -> u64 {
        if self.delivered_since == Some(start) {
            self.delivered
        } else {
            0
        }
    }

    /// Successes and ends, as far as they still count.
    pub fn faded(&self, now: Micros, half_life_us: u64) -> (f64, f64) {
        let keep = match (half_life_us, self.faded_at) {
            (0, _) | (_, None) => 1.0,
            (half, Some(at)) => (-std::f64::consts::LN_2 * super::numbers::real(now.since(at))
                / super::numbers::real(half))
            .exp(),
        };
        (self.successes * keep, self.n * keep)
    }

    /// The mean value of its work; `None` before the first.
    pub fn mean(&self) -> Option<f64> {
        (self.n > 0.0).then(|| self.successes / self.n)
    }
}

/// The peak exponential average: a rise counts at once, a fall with the time that passed.
pub fn peak(before: Option<f64>, at: Option<Micros>, observed_us: u64, now: Micros, tau_us: u64) -> f64 {
    let observed = super::numbers::real(observed_us);
    match (before, at) {
        (Some(average), Some(at)) if observed <= average => {
            let tau = super::numbers::real(tau_us.max(1));
            let keep = (-super::numbers::real(now.since(at)) / tau).exp();
            average * keep + observed * (1.0 - keep)
        }
        _ => observed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_counts_at_once_and_fades_with_time() {
        let mut learned = Learned::default();
        let fast = Forgetting::default();
        learned.ended(Micros(0), 100, None, fast);
        learned.ended(Micros(10), 5_000, None, fast);
        assert_eq!(learned.ewma_us, Some(5_000.0));
        learned.ended(Micros(10_000_010), 0, None, fast);
        let kept = learned.ewma_us.unwrap() / 5_000.0;
        assert!((kept - (-1.0_f64).exp()).abs() < 1e-12, "{kept}");
        assert_eq!((learned.n, learned.mean()), (0.0, None));
    }

    #[test]
    fn values_make_a_mean_that_fades_only_when_asked() {
        let mut learned = Learned::default();
        let half = Forgetting {
            half_life_us: 1_000,
            ..Forgetting::default()
        };
        learned.ended(Micros(0), 1, Some(1.0), half);
        learned.ended(Micros(1_000), 1, Some(0.0), half);
        assert!((learned.successes - 0.5).abs() < 1e-12 && (learned.n - 1.5).abs() < 1e-12);
        assert_eq!(learned.faded(Micros(9_000), 0).1.to_bits(), learned.n.to_bits());
    }
}
