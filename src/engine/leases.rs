//! Leases: renewed together every five seconds, given up in time when that cannot be done.
//!
//! The decisions are [`judge`], a pure function; the loop looks four times a second while a lease is held, and sleeps
//! otherwise.

use std::time::Duration;

use super::changes::renew::{self, Renewal};
use super::core::Engine;
use super::live::HeldLease;
use super::metrics::ResultLabel;
use crate::words::limits;
use crate::words::time::BootMillis;
use crate::worker::command::Stop;

/// What to do about one lease now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseVerdict {
    /// Nothing.
    Keep,
    /// It cannot be kept: end the process, SIGKILL within this time.
    GiveUp {
        /// Milliseconds.
        kill_within_ms: u64,
    },
}

/// Judges one lease: the process goes on undisturbed until the margin before its end.
pub fn judge(lease: &HeldLease, now: BootMillis) -> LeaseVerdict {
    let left = now.until(lease.until);
    if lease.lost || !lease.renewing || left > limits::LEASE_MARGIN_MS {
        return LeaseVerdict::Keep;
    }
    LeaseVerdict::GiveUp {
        kill_within_ms: left.saturating_sub(limits::LEASE_KILL_MARGIN_MS),
    }
}

/// When to try a renewal again after the n-th failure in a row.
pub fn pause_after(failures: u32) -> Duration {
    match failures {
        0 => Duration::from_millis(limits::RENEWAL_PERIOD_MS),
        1 => Duration::from_millis(250),
        2 => Duration::from_millis(500),
        _ => Duration::from_secs(1),
    }
}

/// The loop.
#[derive(Debug)]
pub struct LeaseKeeper {
    engine: Engine,
}

impl LeaseKeeper {
    /// For the leases of this engine.
    pub fn new(engine: Engine) -> LeaseKeeper {
        LeaseKeeper { engine }
    }

    /// Renews until the daemon has ended everything.
    pub async fn run(self) {
        tokio::join!(self.renewals(), self.deadlines());
    }

    async fn renewals(&self) {
        let mut failures = 0;
        loop {
            self.until_something_is_held().await;
            tokio::time::sleep(pause_after(failures)).await;
            failures = match self.renew_once().await {
                Ok(()) => 0,
                Err(cause) => {
                    self.report_failure(failures, &cause);
                    failures + 1
                }
            };
        }
    }

    async fn until_something_is_held(&self) {
        loop {
            let changed = self.engine.live.changed();
            if self
                .engine
                .live
                .leases()
                .iter()
                .any(|(_, lease)| lease.renewing && !lease.lost)
            {
                return;
            }
            changed.await;
        }
    }

    /// Renews everything in one change.
    pub async fn renew_once(&self) -> Result<(), String> {
        let held: Vec<(u64, HeldLease)> = self.engine.live.leases();
        let renewals: Vec<Renewal> = held
            .iter()
            .filter(|(_, lease)| lease.renewing && !lease.lost)
            .map(|(_, lease)| lease.renewal.clone())
            .collect();
        if renewals.is_empty() {
            return Ok(());
        }
        self.engine
            .store
            .faults()
            .check("renew.before")
            .map_err(|error| error.to_string())?;
        let node = self.engine.node.clone();
        let wanted = renewals.clone();
        let renewed = self
            .engine
            .store
            .change("renew", move |tx| renew::renew(tx, &node, &wanted))
            .await;
        let leases = renewed.map_err(|error| error.to_string())?;
        self.engine
            .metrics
            .lease_renewals
            .get_or_create(&ResultLabel {
                result: "ok".to_owned(),
            })
            .inc();
        for (renewal, lease) in renewals.iter().zip(leases) {
            match lease {
                Some(lease) => {
                    self.engine
                        .live
                        .update_lease(renewal.fence, |held| held.until = lease.until);
                }
                None => self.lost_to_another(renewal),
            }
        }
        Ok(())
    }

    /// The row has another owner, or none. If the completion was just written, there is nothing to end.
    fn lost_to_another(&self, renewal: &Renewal) {
        let Some(lease) = self.engine.live.get(renewal.fence).and_then(|live| live.lease) else {
            return;
        };
        if lease.lost || !lease.renewing {
            return;
        }
        self.give_up(renewal.fence, &lease, limits::LOST_KILL_MAX_MS);
    }

    fn give_up(&self, fence: u64, lease: &HeldLease, kill_within_ms: u64) {
        self.engine.live.update_lease(fence, |held| held.lost = true);
        if self.engine.live.stop(fence, &Stop::LeaseLost { kill_within_ms }) {
            let id = lease.entry;
            tracing::error!(entry_id = %id, fence, "pool lease lost for {id}; cancelling its process");
            self.engine
                .metrics
                .lease_renewals
                .get_or_create(&ResultLabel {
                    result: "lost".to_owned(),
                })
                .inc();
        }
    }

    async fn deadlines(&self) {
        loop {
            self.until_something_is_held().await;
            self.judge_all();
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }

    /// Gives up every lease that can no longer be kept.
    pub fn judge_all(&self) {
        let now = self.engine.now().boot;
        for (fence, lease) in self.engine.live.leases() {
            match judge(&lease, now) {
                LeaseVerdict::Keep => {}
                LeaseVerdict::GiveUp { kill_within_ms } => self.give_up(fence, &lease, kill_within_ms),
            }
        }
    }

    fn report_failure(&self, failures: u32, cause: &str) {
        self.engine.metrics.slot_renewal_failures.inc();
        self.engine
            .metrics
            .lease_renewals
            .get_or_create(&ResultLabel {
                result: "failed".to_owned(),
            })
            .inc();
        if failures != 0 && !failures.is_multiple_of(5) {
            return;
        }
        let now = self.engine.now().boot;
        let names: std::collections::BTreeSet<_> = self
            .engine
            .live
            .leases()
            .into_iter()
            .map(|(_, lease)| lease.renewal.slot_pool)
            .collect();
        for name in names {
            let left = self
                .engine
                .live
                .soonest_end(&name)
                .map_or(0, |end| now.until(end))
                / 1_000;
            tracing::warn!(slot_pool = %name, "pool {name}: renewal failed; {left} s of lease left: {cause}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::ids::EntryId;
    use crate::words::names::SlotPoolName;

    fn lease(until: u64) -> HeldLease {
        let slot_pool = SlotPoolName::new("p").unwrap();
        HeldLease {
            renewal: Renewal {
                slot_pool,
                seq: 1,
                fence: 1,
            },
            entry: EntryId([1; 16]),
            until: BootMillis(until),
            renewing: true,
            lost: false,
        }
    }

    #[test]
    fn a_lease_is_given_up_at_its_margin_and_killed_before_its_end() {
        assert_eq!(judge(&lease(30_000), BootMillis(24_999)), LeaseVerdict::Keep);
        assert_eq!(
            judge(&lease(30_000), BootMillis(25_000)),
            LeaseVerdict::GiveUp {
                kill_within_ms: 4_000
            }
        );
        assert_eq!(
            judge(&lease(30_000), BootMillis(29_500)),
            LeaseVerdict::GiveUp { kill_within_ms: 0 }
        );
        let ended = HeldLease {
            renewing: false,
            ..lease(30_000)
        };
        assert_eq!(judge(&ended, BootMillis(40_000)), LeaseVerdict::Keep);
        let lost = HeldLease {
            lost: true,
            ..lease(30_000)
        };
        assert_eq!(judge(&lost, BootMillis(40_000)), LeaseVerdict::Keep);
    }

    #[test]
    fn failed_renewals_are_repeated_soon() {
        let pauses: Vec<u128> = (0..5).map(|failures| pause_after(failures).as_millis()).collect();
        assert_eq!(pauses, [5_000, 250, 500, 1_000, 1_000]);
    }
}
