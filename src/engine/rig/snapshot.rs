//! The store as a test sees it: its interesting rows as text, and all of them as bytes.

use std::fmt::Write as _;

use super::stage::{BEGIN, Daemon};
use crate::domain::slots::entry::SlotEntry;
use crate::domain::workflow::run::Run;
use crate::store::keys::Key;
use crate::store::table::Table;
use crate::store::tables as all;
use crate::store::{Rows, runs};
use crate::words::ids::RunId;

impl Daemon {
    /// The raw rows of one table.
    pub(super) fn raw<K: Key, R>(&self, table: &Table<K, R>) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.read(|tx| tx.raw_scan(table.index(), &[], None, false, usize::MAX))
    }

    /// The raw rows of every table.
    pub(super) fn everything(&self) -> Vec<(usize, Vec<u8>, Vec<u8>)> {
        let tables = 0..=all::CHANGES.index();
        let rows = |table| self.read(|tx| tx.raw_scan(table, &[], None, false, usize::MAX));
        tables
            .flat_map(|table| {
                rows(table)
                    .into_iter()
                    .map(move |(key, value)| (table, key, value))
            })
            .collect()
    }

    /// The interesting tables as text, one line a row.
    pub(super) fn snapshot(&self) -> String {
        let mut text = String::new();
        self.read(|tx| {
            text.clear();
            for row in tx.scan_each(&all::SLOT_POOLS, &(), None, usize::MAX)? {
                match row.row {
                    Ok(((_, name), state)) => {
                        writeln!(
                            text,
                            "slot pool {name}: {} slots, draining to {:?}",
                            state.stored_slots, state.draining_to
                        )
                    }
                    Err(error) => writeln!(text, "slot pool: {error}"),
                }
                .unwrap();
            }
            for row in tx.scan_each(&all::SLOT_ENTRIES, &(), None, usize::MAX)? {
                match row.row {
                    Ok((_, entry)) => writeln!(text, "{}", entry_line(&entry)),
                    Err(error) => writeln!(text, "entry: {error}"),
                }
                .unwrap();
            }
            for row in tx.scan_each(&all::RUNS, &(), None, usize::MAX)? {
                match row.row {
                    Ok((_, run)) => writeln!(text, "{}", run_line(&run)),
                    Err(error) => writeln!(text, "run: {error}"),
                }
                .unwrap();
            }
            for (run, _, live) in runs::live(tx)? {
                writeln!(
                    text,
                    "live {} {} fence {} on {}",
                    number_of(run),
                    live.job,
                    live.claim.fence,
                    live.claim.node
                )
                .unwrap();
            }
            for ((_, job, instant, _), fire) in tx.scan(&all::FIRES, &(), None, usize::MAX)? {
                writeln!(text, "fire {job} +{}: {fire:?}", instant.since(BEGIN)).unwrap();
            }
            Ok(())
        });
        text
    }
}

fn entry_line(entry: &SlotEntry) -> String {
    let reason = entry
        .state
        .reason()
        .map(|why| format!(" ({why})"))
        .unwrap_or_default();
    format!(
        "entry {} {} of run {} in {}: {}{reason}, {} slots, priority {}, readmitted {}",
        entry.seq,
        entry.job,
        number_of(entry.run),
        entry.slot_pool,
        entry.state.word(),
        entry.slots,
        entry.priority,
        entry.readmitted
    )
}

fn run_line(run: &Run) -> String {
    let reason = run
        .state
        .reason()
        .map(|why| format!(" ({why})"))
        .unwrap_or_default();
    format!(
        "run {} {}: {}{reason}",
        number_of(run.id),
        run.definition,
        run.state.word()
    )
}

fn number_of(run: RunId) -> u128 {
    u128::from_be_bytes(run.0)
}
