//! Stores that older binaries have left, in `tests/fixtures`: they are opened, brought up, and say what they said.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use redb::{ReadableTableMetadata, TableDefinition, TableHandle};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::backup::Source;
use super::coordination::{STORE_NAME, StateDirectory};
use super::migrate::{self, FORMAT};
use super::tables as all;
use super::tx::ReadTx;
use super::{Rows, Store, StoreOptions, check, effects, entries, restore, runs};
use crate::domain::report::EffectState;
use crate::store::rows::Fire;
use crate::words::ids::{EntryId, RunId, TenantId};
use crate::words::names::{JobName, StepRef};
use crate::words::time::{Clock, Millis, SystemClock, parse_instant};

const STORE: &[u8] = include_bytes!("../../tests/fixtures/format-2.redb.gz");
const FACTS: &str = include_str!("../../tests/fixtures/format-2.json");
const TENANT: TenantId = TenantId::DEFAULT;

/// Tables without a row in the fixture: a step that needs no slots is claimed as soon as it is ready.
const EMPTY: [&str; 1] = ["ready_steps"];

struct Fixture {
    folder: TempDir,
}

impl Fixture {
    /// The state directory as the killed daemon left it.
    fn unpacked() -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(STORE)
            .read_to_end(&mut bytes)
            .unwrap();
        let fixture = Fixture { folder };
        std::fs::create_dir(fixture.state()).unwrap();
        std::fs::write(fixture.file(), bytes).unwrap();
        std::fs::write(fixture.state().join("format"), "2\n").unwrap();
        fixture
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn file(&self) -> PathBuf {
        self.state().join(STORE_NAME)
    }
}

fn instant(at: Option<Millis>) -> Value {
    at.map_or(Value::Null, |at| json!(at.to_string()))
}

/// The facts of a run as the fixture has them.
fn run_facts(tx: &mut ReadTx, id: RunId) -> Value {
    let run = runs::by_id(tx, id).unwrap().unwrap();
    let step = runs::step(tx, id, &StepRef::main()).unwrap().unwrap();
    let attempts = tx.scan(&all::ATTEMPTS, &(TENANT, id), None, 1_000).unwrap();
    let attempts: Vec<Value> = { attempts.iter() }
        .map(|((_, _, _, number, fence), attempt)| {
            let (outcome, ended_at) = (attempt.outcome.word(), attempt.ended_at.to_string());
            json!([
                number,
                fence,
                outcome,
                attempt.exit_code,
                attempt.reason,
                ended_at
            ])
        })
        .collect();
    let reports: Vec<Value> = { effects::of_run(tx, id, 50).unwrap().into_iter() }
        .map(|effect| {
            let tries = match effect.state {
                EffectState::Waiting { tries, .. }
                | EffectState::Delivered { tries, .. }
                | EffectState::Dead { tries, .. } => tries,
            };
            json!([effect.id.to_string(), effect.state.word(), tries])
        })
        .collect();
    json!({
        "id": id.to_string(), "job": run.definition.as_str(), "state": run.state.word(),
        "reason": run.state.reason(), "created_at": run.created_at.to_string(),
        "ended_at": instant(run.state.ended_at()), "version": run.record_version,
        "step": step.phase.word(), "attempt": step.attempt, "attempts": attempts, "reports": reports,
    })
}

fn entry_facts(tx: &mut ReadTx, fact: &Value) -> Value {
    let id: EntryId = fact[1].as_str().unwrap().parse().unwrap();
    let entry = entries::by_id(tx, id).unwrap().unwrap();
    json!([
        entry.slot_pool.as_str(),
        id.to_string(),
        entry.job.as_str(),
        entry.state.word(),
        entry.slots,
        entry.queued_at.to_string(),
        entry.state.claim().map(|claim| claim.fence),
    ])
}

fn fire_facts(tx: &mut ReadTx, fact: &Value) -> Value {
    let text = |at: usize| fact[at].as_str().unwrap();
    let (job, due) = (JobName::new(text(0)).unwrap(), parse_instant(text(1)).unwrap());
    let fires = tx
        .scan(&all::FIRES, &(TENANT, job.clone(), due), None, 10)
        .unwrap();
    let (outcome, code) = match fires.first().map(|(_, fire)| fire) {
        None => ("owed", None),
        Some(Fire::Run(_)) => ("run", None),
        Some(Fire::CaughtUp(_)) => ("caught_up", None),
        Some(Fire::Skipped { reason, .. } | Fire::Withdrawn { reason, .. }) => {
            ("skipped", Some(reason.clone()))
        }
    };
    json!([job.as_str(), due.to_string(), outcome, code])
}

fn assert_says_the_same(tx: &mut ReadTx) {
    let facts: Value = serde_json::from_str(FACTS).unwrap();
    let list = |name: &str| facts[name].as_array().unwrap().clone();
    assert!(list("runs").len() > 40 && list("entries").len() > 10 && list("fires").len() > 50);
    for fact in list("runs") {
        let id: RunId = fact["id"].as_str().unwrap().parse().unwrap();
        assert_eq!(run_facts(tx, id), fact);
    }
    for fact in list("entries") {
        assert_eq!(entry_facts(tx, &fact), fact);
    }
    for fact in list("fires") {
        assert_eq!(fire_facts(tx, &fact), fact);
    }
}

#[test]
fn a_store_of_format_2_says_what_it_said() {
    let fixture = Fixture::unpacked();
    let directory = StateDirectory::prepare(&fixture.state(), true).unwrap();
    assert!(directory.is_older());
    let store = Store::open(
        StoreOptions::in_directory(&fixture.state()),
        Arc::new(SystemClock),
    )
    .unwrap();
    store
        .read(|tx| {
            assert_eq!(check::check(tx)?, check::Findings::new());
            assert_says_the_same(tx);
            Ok(())
        })
        .unwrap();
    drop(store);
    let file = fixture.file();
    let snapshot = Source::open(&file).unwrap().snapshot().unwrap();
    assert_eq!(migrate::format_of(&snapshot).unwrap(), Some(FORMAT));
    let copy = { std::fs::read_dir(fixture.state()).unwrap() }
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_string_lossy().contains("ductor.format-2."))
        .expect("a copy from before");
    let snapshot = Source::open(&copy).unwrap().snapshot().unwrap();
    assert_eq!(
        migrate::format_of(&snapshot).unwrap(),
        Some(2),
        "the older binary can go on with it"
    );
}

#[test]
fn every_table_that_work_can_fill_has_rows_in_the_fixture() {
    let fixture = Fixture::unpacked();
    let source = Source::open(&fixture.file()).unwrap();
    let snapshot = source.snapshot().unwrap();
    assert_eq!(migrate::format_of(&snapshot).unwrap(), Some(2));
    let mut empty = Vec::new();
    for handle in snapshot.list_tables().unwrap() {
        let definition: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new(handle.name());
        if snapshot.open_table(definition).unwrap().len().unwrap() == 0 {
            empty.push(handle.name().to_owned());
        }
    }
    assert_eq!(empty, EMPTY);
}

#[test]
fn a_backup_of_format_2_is_verified_and_restored() {
    let fixture = Fixture::unpacked();
    let (now, before) = (SystemClock.now(), std::fs::read(fixture.file()).unwrap());
    let verified = restore::verify(&fixture.file(), fixture.folder.path(), now).unwrap();
    assert_eq!((verified.format, verified.checked.findings.len()), (2, 0));
    let into = fixture.folder.path().join("restored");
    let restored = restore::restore(&fixture.file(), &into, false, now).unwrap();
    assert_eq!(restored.interrupted, 3);
    assert!(
        before == std::fs::read(fixture.file()).unwrap(),
        "it needs a repair, and keeps needing it"
    );
    let store = Store::open(StoreOptions::in_directory(&into), Arc::new(SystemClock)).unwrap();
    store
        .read(|tx| {
            assert_says_the_same(tx);
            for (_, _, live) in runs::live(tx)? {
                assert!(live.claim.place.is_of_a_backup() && live.claim.process.is_none());
            }
            Ok(())
        })
        .unwrap();
}
