//! Whose queues are gone through next, so that whoever has very many delays nobody else: one of each tenant in turn, and within a
//! tenant one after the other.

use std::collections::BTreeMap;

use crate::words::ids::{RecipientPoolId, TenantId};

/// Who had the last turn, and which queue of each tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Served {
    tenant: Option<TenantId>,
    last: BTreeMap<TenantId, RecipientPoolId>,
}

impl Served {
    /// The queue of a tenant behind which its next one is looked for.
    pub fn last_of(&self, tenant: TenantId) -> Option<RecipientPoolId> {
        self.last.get(&tenant).copied()
    }

    /// The next queues out of those that are to be gone through, each list in the order in which its tenant's turns come.
    pub fn take(
        &mut self,
        stirred: &BTreeMap<TenantId, Vec<RecipientPoolId>>,
        limit: usize,
    ) -> Vec<(TenantId, RecipientPoolId)> {
        // Whoever has nothing to be gone through begins anew one day.
        self.last.retain(|tenant, _| stirred.contains_key(tenant));
        let is_later = |tenant: &TenantId| self.tenant.is_none_or(|last| *tenant > last);
        let mut order: Vec<TenantId> = stirred.keys().copied().collect();
        let first = order.iter().position(is_later).unwrap_or(0);
        order.rotate_left(first);
        let longest = stirred.values().map(Vec::len).max().unwrap_or(0);
        let mut taken = Vec::new();
        for round in 0..longest {
            for tenant in &order {
                let Some(next) = stirred[tenant].get(round) else {
                    continue;
                };
                if taken.len() == limit {
                    return taken;
                }
                taken.push((*tenant, *next));
                self.tenant = Some(*tenant);
                self.last.insert(*tenant, *next);
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(number: u8) -> RecipientPoolId {
        RecipientPoolId([number; 16])
    }

    fn stirred(all: &[(u32, &[u8])], served: &Served) -> BTreeMap<TenantId, Vec<RecipientPoolId>> {
        let lists = all.iter().map(|(tenant, numbers)| {
            let tenant = TenantId(*tenant);
            let mut queues: Vec<RecipientPoolId> = numbers.iter().map(|number| queue(*number)).collect();
            let last = served.last_of(tenant);
            let first = queues.iter().position(|id| last.is_none_or(|last| *id > last));
            queues.rotate_left(first.unwrap_or(0));
            (tenant, queues)
        });
        lists.collect()
    }

    #[test]
    fn each_tenant_has_its_turn_and_each_queue_of_it() {
        let mut served = Served::default();
        let all: &[(u32, &[u8])] = &[(0, &[1, 2, 3, 4, 5]), (7, &[1]), (9, &[8, 9])];
        let mut turns = Vec::new();
        for _ in 0..3 {
            let found = stirred(all, &served);
            turns.push(served.take(&found, 4));
        }
        let plain = |turn: &[(TenantId, RecipientPoolId)]| -> Vec<(u32, u8)> {
            turn.iter().map(|(tenant, id)| (tenant.0, id.0[0])).collect()
        };
        assert_eq!(plain(&turns[0]), [(0, 1), (7, 1), (9, 8), (0, 2)]);
        assert_eq!(plain(&turns[1]), [(7, 1), (9, 9), (0, 3), (9, 8)]);
        assert_eq!(plain(&turns[2]), [(0, 4), (7, 1), (9, 9), (0, 5)]);
    }

    #[test]
    fn one_that_floods_delays_another_by_one_queue() {
        let mut served = Served::default();
        let many: Vec<u8> = (0..200).collect();
        for turn in 0..100 {
            let found = stirred(&[(1, &many), (2, &[5])], &served);
            let taken = served.take(&found, 8);
            assert_eq!(taken.len(), 8, "turn {turn}");
            let place = taken.iter().position(|(tenant, _)| *tenant == TenantId(2));
            assert!(place.is_some_and(|place| place <= 1), "turn {turn}: {place:?}");
        }
        assert_eq!(served.take(&BTreeMap::new(), 8), []);
        assert_eq!(served.last_of(TenantId(1)), None);
    }
}
