//! How much a recipient may claim: so many in a sliding period, so many unfinished. Pure.

use super::objects::ClaimBudget;
use crate::words::time::Micros;

/// The budget does not allow another claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exhausted {
    /// Claims that count.
    pub used: u32,
    /// The limit that is met.
    pub limit: u32,
    /// When the next claim is possible; none while unfinished ones are the cause.
    pub resets_at: Option<Micros>,
}

/// From when on claims count at `now`: those at this instant do not.
pub fn period_start(budget: &ClaimBudget, now: Micros) -> Micros {
    Micros(now.0.saturating_sub_unsigned(budget.per_us))
}

/// Whether there may be one more. `claims` are the instants of this recipient's claims, oldest first; `open` are those
/// unfinished.
pub fn admit(budget: &ClaimBudget, claims: &[Micros], open: u32, now: Micros) -> Result<(), Exhausted> {
    let start = period_start(budget, now);
    let counted: Vec<Micros> = claims.iter().copied().filter(|at| *at > start).collect();
    let used = u32::try_from(counted.len()).unwrap_or(u32::MAX);
    if used >= budget.limit {
        // As many have to leave the period as are too many.
        let leaves = counted.get(counted.len().saturating_sub(budget.limit as usize));
        return Err(Exhausted {
            used,
            limit: budget.limit,
            resets_at: leaves.map(|at| at.plus(budget.per_us)),
        });
    }
    if budget.max_open > 0 && open >= budget.max_open {
        return Err(Exhausted {
            used: open,
            limit: budget.max_open,
            resets_at: None,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(limit: u32, per_us: u64, max_open: u32) -> ClaimBudget {
        ClaimBudget {
            limit,
            per_us,
            max_open,
        }
    }

    #[test]
    fn claims_count_over_the_period_that_ends_now() {
        let two = budget(2, 100, 0);
        let claims = [Micros(0), Micros(50)];
        assert_eq!(admit(&two, &claims[..1], 0, Micros(60)), Ok(()));
        let exhausted = admit(&two, &claims, 0, Micros(60)).unwrap_err();
        assert_eq!((exhausted.used, exhausted.limit), (2, 2));
        assert_eq!(exhausted.resets_at, Some(Micros(100)));
        assert!(admit(&two, &claims, 0, Micros(99)).is_err());
        assert_eq!(admit(&two, &claims, 0, Micros(100)), Ok(()));
    }

    #[test]
    fn a_limit_that_became_smaller_waits_for_enough_to_leave() {
        let claims = [Micros(0), Micros(10), Micros(20)];
        let exhausted = admit(&budget(1, 100, 0), &claims, 0, Micros(30)).unwrap_err();
        assert_eq!(exhausted.resets_at, Some(Micros(120)));
    }

    #[test]
    fn unfinished_claims_are_bounded_too() {
        let exhausted = admit(&budget(9, 100, 1), &[], 1, Micros(0)).unwrap_err();
        assert_eq!((exhausted.used, exhausted.resets_at), (1, None));
    }
}
