//! Whether a look before the writer's turn is worth its while. Where every decision moves what the next one has read, as in a turn
//! that all take part in, such looks are spoilt one after the other while many come at once: then the pass is made in the turn,
//! and only now and then somebody looks ahead, to see whether it is quieter.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::words::ids::{RecipientPoolId, TenantId};

/// Where work enters: the recipient pool that is asked for, or the rules of the tenant.
pub type Entrance = (TenantId, Option<RecipientPoolId>);

/// A look that was spoilt counts so much, one that held one less: its work was for nothing, and the writer waited.
const SPOILT_COSTS: u8 = 3;
/// All of them together count so much at most.
const SPOILT_MAX: u8 = 8;
/// From here on it is better not to look.
const SPOILT_MANY: u8 = 6;
/// One of so many looks all the same.
const TRIAL: u8 = 16;
/// Entrances that are remembered; beyond it all are forgotten.
const ENTRANCES_MAX: usize = 4_096;

#[derive(Debug, Clone, Copy, Default)]
struct Record {
    spoilt: u8,
    passed_by: u8,
}

/// What became of the looks at each entrance. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Rivalry {
    entrances: Arc<Mutex<BTreeMap<Entrance, Record>>>,
}

impl Rivalry {
    fn with<T>(&self, entrance: Entrance, look: impl FnOnce(&mut Record) -> T) -> T {
        let mut entrances = self.entrances.lock().unwrap_or_else(PoisonError::into_inner);
        if entrances.len() >= ENTRANCES_MAX && !entrances.contains_key(&entrance) {
            entrances.clear();
        }
        look(entrances.entry(entrance).or_default())
    }

    /// True when work that enters there should be looked at before the writer's turn.
    pub fn is_quiet(&self, entrance: Entrance) -> bool {
        self.with(entrance, |record| {
            if record.spoilt < SPOILT_MANY {
                return true;
            }
            record.passed_by = (record.passed_by + 1) % TRIAL;
            record.passed_by == 0
        })
    }

    /// A look has held until it was written, or was spoilt.
    pub fn note(&self, entrance: Entrance, has_held: bool) {
        self.with(entrance, |record| {
            record.spoilt = if has_held {
                record.spoilt.saturating_sub(1)
            } else {
                SPOILT_MAX.min(record.spoilt + SPOILT_COSTS)
            };
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spoilt_looks_end_and_are_tried_again() {
        let rivalry = Rivalry::default();
        let (here, there) = ((TenantId(1), None), (TenantId(1), Some(RecipientPoolId([1; 16]))));
        for _ in 0..SPOILT_MANY / SPOILT_COSTS {
            assert!(rivalry.is_quiet(here));
            rivalry.note(here, false);
        }
        let looks = |entrance| (0..160).filter(|_| rivalry.is_quiet(entrance)).count();
        assert_eq!((looks(here), looks(there)), (10, 160));
        for _ in 0..2 * SPOILT_MAX {
            rivalry.note(here, false);
        }
        for _ in 0..3 {
            assert_eq!(looks(here), 10);
            rivalry.note(here, true);
        }
        assert_eq!(looks(here), 160);
        // One in five is worth it, one in three is not.
        for (others, quiet) in [(4, true), (2, false)] {
            for _ in 0..20 {
                rivalry.note(here, false);
                (0..others).for_each(|_| rivalry.note(here, true));
            }
            assert_eq!(looks(here) == 160, quiet, "{others}");
        }
    }
}
