//! The live numbers of a recipient as its assignments come and go, and the same numbers computed anew from the assignments.
//! Derived, never free-running: both must agree.

use super::assignment::Assignment;
use super::live::Live;
use crate::words::time::Micros;

/// The daily window rolls from its first assignment.
pub const DAY_US: u64 = 24 * 3_600 * 1_000_000;

/// The numbers that follow from the assignments of a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// Open and accepted.
    pub current: u32,
    /// Their units.
    pub units: u64,
    /// Created since the window began.
    pub daily_count: u32,
}

impl Live {
    /// What is materialised here.
    pub fn counted(&self) -> Counted {
        Counted {
            current: self.current,
            units: self.units,
            daily_count: self.daily_count,
        }
    }

    /// One more assignment. The first at or after the end of the window begins another.
    #[must_use]
    pub fn charged(&self, now: Micros, units: u32) -> Live {
        let mut next = self.clone();
        next.current = next.current.saturating_add(1);
        next.units = next.units.saturating_add(u64::from(units));
        if next.daily_reset_at.is_none_or(|reset| now >= reset) {
            next.daily_count = 0;
            next.daily_reset_at = Some(now.plus(DAY_US));
        }
        next.daily_count = next.daily_count.saturating_add(1);
        next.last_assigned_at = Some(next.last_assigned_at.map_or(now, |last| last.max(now)));
        next
    }

    /// An assignment that was live has ended. One that no longer counts changes no number; the day is not refunded.
    #[must_use]
    pub fn released(&self, now: Micros, ended: &Assignment) -> Live {
        let mut next = self.clone();
        next.last_finished_at = Some(next.last_finished_at.map_or(now, |last| last.max(now)));
        if ended.seq > self.capacity_epoch {
            next.current = next.current.saturating_sub(1);
            next.units = next.units.saturating_sub(u64::from(ended.units));
        }
        next
    }

    /// Nothing up to this number counts any more.
    #[must_use]
    pub fn reset(&self, newest_seq: u64) -> Live {
        Live {
            current: 0,
            units: 0,
            daily_count: 0,
            capacity_epoch: newest_seq,
            ..self.clone()
        }
    }

    /// The row of an assignment that ended goes. It is old: the window that counted it is over, but its number still stands
    /// here while nothing began another.
    #[must_use]
    pub fn forgotten(&self, old: &Assignment) -> Live {
        let mut next = self.clone();
        if old.seq > self.capacity_epoch && self.counts_today(old) {
            next.daily_count = next.daily_count.saturating_sub(1);
        }
        next
    }

    /// It was made in the window that the daily count is of.
    fn counts_today(&self, assignment: &Assignment) -> bool {
        self.daily_reset_at
            .map(|reset| Micros(reset.0.saturating_sub_unsigned(DAY_US)))
            .is_some_and(|start| assignment.created_at >= start)
    }

    /// The same numbers from the assignments themselves.
    pub fn recounted<'a>(&self, assignments: impl Iterator<Item = &'a Assignment>) -> Counted {
        let mut counted = Counted::default();
        for assignment in assignments.filter(|one| one.seq > self.capacity_epoch) {
            if assignment.state.is_live() {
                counted.current = counted.current.saturating_add(1);
                counted.units = counted.units.saturating_add(u64::from(assignment.units));
            }
            if self.counts_today(assignment) {
                counted.daily_count = counted.daily_count.saturating_add(1);
            }
        }
        counted
    }
}

#[cfg(test)]
mod tests {
    use super::super::assignment::EndKind;
    use super::super::assignment::tests::assignment;
    use super::super::objects::RecipientState;
    use super::*;

    fn live() -> Live {
        Live::new(RecipientState::Available, Micros(0))
    }

    /// 11: the assignment one microsecond before and at `daily_reset_at`.
    #[test]
    fn the_daily_window_ends_at_its_microsecond() {
        let first = live().charged(Micros(1_000), 1);
        let reset = Micros(1_000).plus(DAY_US);
        assert_eq!((first.daily_count, first.daily_reset_at), (1, Some(reset)));
        let before = first.charged(Micros(reset.0 - 1), 1);
        assert_eq!((before.daily_count, before.daily_reset_at), (2, Some(reset)));
        let at = before.charged(reset, 1);
        assert_eq!((at.daily_count, at.daily_reset_at), (1, Some(reset.plus(DAY_US))));
        assert_eq!(at.current, 3);
    }

    /// 12: a reset, then the completion of an older assignment.
    #[test]
    fn an_older_assignment_changes_nothing_after_a_reset() {
        let (old, new) = (assignment(7), assignment(8));
        let reset = live().charged(Micros(1), 1).reset(7);
        assert_eq!(reset.counted(), Counted::default());
        let after = reset.released(Micros(2), &old);
        assert_eq!(after.counted(), Counted::default());
        let charged = after.charged(Micros(3), 1);
        assert_eq!(charged.released(Micros(4), &new).current, 0);
        assert_eq!(charged.released(Micros(4), &old).current, 1);
    }

    proptest::proptest! {
        /// 13, pure: random steps keep the materialised numbers equal to the recomputed ones.
        #[test]
        fn materialised_numbers_equal_recomputed_ones(steps in proptest::collection::vec((0_u8..5, 1_u32..5, proptest::num::u32::ANY), 0..200)) {
            let (mut live, mut all, mut now, mut seq) = (live(), Vec::new(), Micros(1), 0_u64);
            for (what, units, pick) in steps {
                now = now.plus(u64::from(pick) * 30_000);
                let opens: Vec<usize> = (0..all.len()).filter(|place| { let one: &Assignment = &all[*place]; one.state.is_live() }).collect();
                match what {
                    0 | 1 => {
                        seq += 1;
                        let mut one = assignment(seq);
                        one.units = units;
                        one.created_at = now;
                        live = live.charged(now, units);
                        all.push(one);
                    }
                    2 if !opens.is_empty() => {
                        let place = opens[pick as usize % opens.len()];
                        let kind = if pick % 2 == 0 { EndKind::Deadline } else { EndKind::Released };
                        live = live.released(now, &all[place]);
                        all[place] = all[place].expire(now, kind, "ductor", "").unwrap();
                    }
                    3 if pick % 5 == 0 => live = live.reset(seq),
                    4 => {
                        if let Some(place) = all.iter().position(|one| !one.state.is_live()) {
                            live = live.forgotten(&all.remove(place));
                        }
                    }
                    _ => {}
                }
                proptest::prop_assert_eq!(live.counted(), live.recounted(all.iter()));
            }
        }
    }
}
