//! The check of the places that runs hold or wait for among those of their definition and key, computed anew from the headers.

use std::collections::BTreeMap;

use super::check::{Findings, compare, every};
use super::error::StoreError;
use super::graph_rows::{KeyHolder, KeyWaiter};
use super::key_limits;
use super::keys::Key;
use super::tables::{KEY_COUNTS, KEY_HOLDERS, KEY_WAITERS, RUNS};
use super::tx::ReadTx;
use crate::domain::workflow::graph::key_limit::{KeyCount, KeyStand};

pub(super) fn check(tx: &mut ReadTx, findings: &mut Findings) -> Result<(), StoreError> {
    let mut counts: BTreeMap<Vec<u8>, KeyCount> = BTreeMap::new();
    let mut holders: BTreeMap<Vec<u8>, KeyHolder> = BTreeMap::new();
    let mut waiters: BTreeMap<Vec<u8>, KeyWaiter> = BTreeMap::new();
    let unreadable = every(tx, &RUNS, |(tenant, id), run| {
        let Some(place) = key_limits::place_of(&run) else {
            return;
        };
        let (job, key) = (run.definition.clone(), place.key.clone());
        let count = counts.entry((tenant, job.clone(), key.clone()).encode());
        let count = count.or_default();
        *count = count.with(place.stand);
        match place.stand {
            KeyStand::Holds | KeyStand::Leaves => {
                let leaves = place.stand == KeyStand::Leaves;
                holders.insert((tenant, job, key, id).encode(), KeyHolder { leaves });
            }
            KeyStand::Waits {
                number, replaceable, ..
            } => {
                let row = KeyWaiter {
                    run: id,
                    limit: place.limit,
                    replaceable,
                };
                waiters.insert((tenant, job, key, number).encode(), row);
            }
        }
    })?;
    if !unreadable.is_empty() {
        return Ok(());
    }
    let mut said = Findings::new();
    every(tx, &KEY_COUNTS, |key, row| {
        if counts.get(&key.encode()).is_some_and(|count| *count != row) {
            said.push(format!(
                "key_counts: {} of key `{}` are counted wrong",
                key.1, key.2
            ));
        }
    })?;
    every(tx, &KEY_HOLDERS, |key, row| {
        if holders.get(&key.encode()).is_some_and(|holder| *holder != row) {
            said.push(format!("key_holders: {} is said to leave, or to stay", key.3));
        }
    })?;
    every(tx, &KEY_WAITERS, |key, row| {
        if waiters.get(&key.encode()).is_some_and(|waiter| *waiter != row) {
            said.push(format!(
                "key_waiters: number {} of {} is another run",
                key.3, key.1
            ));
        }
    })?;
    findings.append(&mut said);
    compare(tx, &KEY_COUNTS, counts.into_keys().collect(), findings)?;
    compare(tx, &KEY_HOLDERS, holders.into_keys().collect(), findings)?;
    compare(tx, &KEY_WAITERS, waiters.into_keys().collect(), findings)
}
