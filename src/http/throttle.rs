//! How often somebody may try: failed keys of an address, and requests of a key.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use crate::config::RateLimitConfig;
use crate::words::limits;
use crate::words::time::BootMillis;

/// Failed keys by address. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Failures {
    times: Arc<Mutex<BTreeMap<IpAddr, VecDeque<BootMillis>>>>,
}

/// What counts as one address: nobody has a single one of version 6.
fn place_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(whole) => {
            let [a, b, c, d, ..] = whole.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        IpAddr::V4(whole) => IpAddr::V4(whole),
    }
}

impl Failures {
    /// For how many seconds an address has to wait; `None` if it need not.
    pub(super) fn wait(&self, address: IpAddr, now: BootMillis) -> Option<u64> {
        let mut all = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let times = all.get_mut(&place_of(address))?;
        times.retain(|at| at.until(now) < limits::FAILED_KEYS_PERIOD_MS);
        let first = times.front().filter(|_| times.len() >= limits::FAILED_KEYS_MAX)?;
        let left = limits::FAILED_KEYS_PERIOD_MS - first.until(now);
        Some(left.div_ceil(1_000).max(1))
    }

    /// A key did not fit.
    pub(super) fn note(&self, address: IpAddr, now: BootMillis) {
        let mut all = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= limits::FAILED_ADDRESSES_MAX {
            all.retain(|_, times| {
                times
                    .back()
                    .is_some_and(|at| at.until(now) < limits::FAILED_KEYS_PERIOD_MS)
            });
        }
        if all.len() >= limits::FAILED_ADDRESSES_MAX {
            // Somebody has very many of them: the oldest failure is forgotten.
            let oldest = all.iter().min_by_key(|(_, times)| times.back().copied());
            if let Some(oldest) = oldest.map(|(address, _)| *address) {
                all.remove(&oldest);
            }
        }
        let times = all.entry(place_of(address)).or_default();
        times.push_back(now);
        if times.len() > limits::FAILED_KEYS_MAX {
            times.pop_front();
        }
    }
}

/// Requests by caller. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Rates {
    buckets: Arc<Mutex<BTreeMap<String, Bucket>>>,
}

/// What a caller may still ask at once, in thousandths of a request.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    left: u64,
    at: BootMillis,
}

impl Rates {
    /// Takes one request of whom the mark tells from all others; for how many seconds they have to wait if they may not have it.
    pub(super) fn take(&self, mark: &str, limit: RateLimitConfig, now: BootMillis) -> Result<(), u64> {
        let (full, per_ms) = (u64::from(limit.burst) * 1_000, u64::from(limit.per_second));
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if !buckets.contains_key(mark) {
            make_room(&mut buckets);
            buckets.insert(mark.to_owned(), Bucket { left: full, at: now });
        }
        let Some(bucket) = buckets.get_mut(mark) else {
            return Ok(());
        };
        let grown = bucket.at.until(now).saturating_mul(per_ms);
        bucket.left = bucket.left.saturating_add(grown).min(full);
        bucket.at = now;
        match bucket.left.checked_sub(1_000) {
            Some(left) => {
                bucket.left = left;
                Ok(())
            }
            None => Err((1_000 - bucket.left).div_ceil(per_ms * 1_000).max(1)),
        }
    }
}

/// An issuer may name very many: who has asked nothing for the longest time is forgotten.
fn make_room(buckets: &mut BTreeMap<String, Bucket>) {
    if buckets.len() < limits::RATED_CALLERS_MAX {
        return;
    }
    let mut times: Vec<BootMillis> = buckets.values().map(|bucket| bucket.at).collect();
    // The older half at once, so that it need not be done for each newcomer.
    let middle = times.len() / 2;
    let (_, median, _) = times.select_nth_unstable(middle);
    let median = *median;
    buckets.retain(|_, bucket| bucket.at > median);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tenth_failure_of_an_address_is_its_last_for_a_minute() {
        let failures = Failures::default();
        let address: IpAddr = "10.0.0.1".parse().unwrap();
        for second in 0..9 {
            failures.note(address, BootMillis(second * 1_000));
            assert_eq!(failures.wait(address, BootMillis(second * 1_000)), None);
        }
        failures.note(address, BootMillis(9_000));
        assert_eq!(failures.wait(address, BootMillis(9_000)), Some(51));
        assert_eq!(failures.wait(address, BootMillis(59_999)), Some(1));
        assert_eq!(
            failures.wait("10.0.0.2".parse().unwrap(), BootMillis(9_000)),
            None
        );
        assert_eq!(failures.wait(address, BootMillis(60_000)), None);
    }

    #[test]
    fn a_network_of_version_six_is_one_address() {
        let failures = Failures::default();
        for host in 1..=10 {
            failures.note(format!("2001:db8::{host}").parse().unwrap(), BootMillis(0));
        }
        assert!(
            failures
                .wait("2001:db8::99".parse().unwrap(), BootMillis(0))
                .is_some()
        );
        assert_eq!(
            failures.wait("2001:db8:0:1::1".parse().unwrap(), BootMillis(0)),
            None
        );
        let mapped: IpAddr = "::ffff:10.0.0.1".parse().unwrap();
        (0..10).for_each(|_| failures.note(mapped, BootMillis(0)));
        assert!(
            failures
                .wait("10.0.0.1".parse().unwrap(), BootMillis(0))
                .is_some()
        );
    }

    #[test]
    fn a_key_may_burst_and_then_goes_at_its_rate() {
        let limit = RateLimitConfig {
            per_second: 10,
            burst: 3,
        };
        let rates = Rates::default();
        let take = |ms: u64| rates.take("a", limit, BootMillis(ms));
        assert!((0..3).all(|_| take(0).is_ok()));
        assert_eq!(take(0), Err(1));
        assert_eq!(take(99), Err(1));
        assert!(take(100).is_ok() && take(100).is_err());
        assert!(rates.take("b", limit, BootMillis(100)).is_ok());
        assert!((0..3).all(|_| take(60_000).is_ok()) && take(60_000).is_err());
    }
    #[test]
    fn callers_that_rest_are_forgotten_before_there_are_too_many() {
        let limit = RateLimitConfig {
            per_second: 1,
            burst: 1,
        };
        let rates = Rates::default();
        for number in 0..limits::RATED_CALLERS_MAX + 10 {
            assert!(
                rates
                    .take(&format!("caller {number}"), limit, BootMillis(number as u64))
                    .is_ok()
            );
        }
        let last = limits::RATED_CALLERS_MAX + 9;
        assert!(
            rates
                .take(&format!("caller {last}"), limit, BootMillis(last as u64))
                .is_err()
        );
        assert!(rates.buckets.lock().unwrap().len() <= limits::RATED_CALLERS_MAX);
    }
}
