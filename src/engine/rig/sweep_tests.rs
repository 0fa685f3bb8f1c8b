//! The sweep of blobs on the rig: what a run names stays, what nobody names goes, and never too early.

use std::fs::{File, FileTimes};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::stage::Rig;
use crate::domain::payload::Sha256Name;
use crate::domain::workflow::graph::key::ValueName;
use crate::engine::blob_sweep::BlobSweep;
use crate::engine::changes::retire;
use crate::store::blobs::Swept;
use crate::store::{check, graphs};
use crate::words::ids::RunId;
use crate::words::limits;
use crate::words::names::JobName;

/// A value that does not fit a row.
fn large(filling: &str) -> Value {
    json!({"text": filling.repeat(40_000)})
}

fn echo(rig: &Rig) {
    rig.publish_graph(&json!({"family_slug": "echo", "steps": [
        {"ref": "say", "type": "STEP_TYPE_DATAFLOW", "args": {"operation": "project", "project": {"n": "1"}}}]}));
}

fn blob_of(rig: &Rig, run: RunId) -> Sha256Name {
    let value = rig.read(|tx| graphs::value(tx, run, &ValueName::Input));
    value.unwrap().blob().expect("it is large")
}

fn path_of(rig: &Rig, name: Sha256Name) -> PathBuf {
    let (name, root) = (name.to_string(), rig.engine.directory.root());
    root.join("blobs").join(&name[..2]).join(&name)
}

/// The blob was put there an age ago.
fn make_old(rig: &Rig, name: Sha256Name) {
    let file = File::options().write(true).open(path_of(rig, name)).unwrap();
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    file.set_times(FileTimes::new().set_modified(long_ago)).unwrap();
}

fn retire(rig: &Rig, run: RunId) {
    let due = vec![(JobName::new("echo").unwrap(), run)];
    let retired = rig.change(move |tx| retire::retire(tx, &due));
    assert_eq!(retired.gone, [run]);
}

/// A round, when it is time for one.
fn round(rig: &Rig, sweep: &mut BlobSweep) -> Swept {
    rig.clock().advance(limits::BLOB_SWEEP_PERIOD_MS);
    rig.wait(sweep.round(&rig.engine))
        .unwrap()
        .expect("it is time for a round")
}

#[test]
fn what_no_row_names_goes_in_the_second_round() {
    let rig = Rig::new(&[], &[]);
    echo(&rig);
    let (kept, _) = rig.begin_graph("echo", large("a"), 0);
    let (gone, _) = rig.begin_graph("echo", large("b"), 0);
    let (shared, _) = rig.begin_graph("echo", large("a"), 0);
    let (name, other) = (blob_of(&rig, kept), blob_of(&rig, gone));
    assert_eq!(blob_of(&rig, shared), name, "equal values are one file");
    let mut sweep = BlobSweep::default();
    make_old(&rig, name);
    make_old(&rig, other);
    assert_eq!(round(&rig, &mut sweep), Swept::default(), "both are named");

    retire(&rig, gone);
    retire(&rig, shared);
    let checked = rig.read(|tx| check::check_working(tx, &rig.engine.store.blobs()));
    assert_eq!((checked.findings.len(), checked.unnamed_blobs), (0, 1));
    assert_eq!(
        round(&rig, &mut sweep),
        Swept::default(),
        "it is seen without a name"
    );
    assert_eq!(
        rig.wait(sweep.round(&rig.engine)),
        Ok(None),
        "the next round is not due"
    );
    let swept = round(&rig, &mut sweep);
    assert_eq!(swept.blobs, [other]);
    assert!(swept.bytes > 40_000 && !path_of(&rig, other).exists());
    assert_eq!(rig.engine.metrics.blob_bytes_swept.get(), swept.bytes);
    for _ in 0..3 {
        assert_eq!(round(&rig, &mut sweep), Swept::default());
    }
    assert!(path_of(&rig, name).exists(), "a run has it");
    let checked = rig.read(|tx| check::check_working(tx, &rig.engine.store.blobs()));
    assert_eq!((checked.findings.len(), checked.unnamed_blobs), (0, 0));
}

#[test]
fn a_young_blob_is_never_taken_though_nobody_names_it() {
    let rig = Rig::new(&[], &[]);
    echo(&rig);
    let (run, _) = rig.begin_graph("echo", large("a"), 0);
    let name = blob_of(&rig, run);
    let mut sweep = BlobSweep::default();
    retire(&rig, run);
    make_old(&rig, name);
    assert_eq!(round(&rig, &mut sweep), Swept::default());
    // Somebody puts the same value again; the commit that will name it is still on its way.
    let text = large("a").to_string();
    rig.engine.store.blobs().put(&text).unwrap();
    for _ in 0..3 {
        assert_eq!(round(&rig, &mut sweep), Swept::default());
    }
    assert!(path_of(&rig, name).exists());
}

#[test]
fn two_daemons_sweep_the_same_area_and_a_backup_holds_both_up() {
    let rig = Rig::new(&[], &[]);
    echo(&rig);
    let other = rig.daemon("n-b");
    let (mut here, mut there) = (BlobSweep::default(), BlobSweep::default());
    let mut names = Vec::new();
    for filling in ["a", "b", "c", "d"] {
        let (run, _) = rig.begin_graph("echo", large(filling), 0);
        names.push(blob_of(&rig, run));
        retire(&rig, run);
    }
    for name in &names {
        make_old(&rig, *name);
    }
    assert_eq!(round(&rig, &mut here), Swept::default());
    rig.wait(there.round(&other.engine)).unwrap();
    let backup = rig.engine.store.blobs().keep_all().unwrap();
    assert_eq!(round(&rig, &mut here), Swept::default());
    drop(backup);
    rig.clock().advance(limits::BLOB_SWEEP_PERIOD_MS);
    let both = rig.wait(async { tokio::join!(here.round(&rig.engine), there.round(&other.engine)) });
    let mut gone = both.0.unwrap().unwrap().blobs;
    gone.extend(both.1.unwrap().unwrap().blobs);
    gone.sort_unstable();
    names.sort_unstable();
    assert_eq!(gone, names, "each went once");
}

#[test]
fn a_value_that_cannot_be_read_keeps_every_blob() {
    let rig = Rig::new(&[], &[]);
    echo(&rig);
    let (run, _) = rig.begin_graph("echo", large("a"), 0);
    let name = blob_of(&rig, run);
    make_old(&rig, name);
    rig.plan_damage();
    rig.change(move |tx| {
        let key = (super::stage::TENANT, run, "input".to_owned());
        tx.damage(&crate::store::tables::VALUES, &key, &[255, 1])?;
        Ok(())
    });
    let mut sweep = BlobSweep::default();
    for _ in 0..3 {
        assert_eq!(round(&rig, &mut sweep), Swept::default());
    }
    assert!(path_of(&rig, name).exists());
}

#[test]
fn a_row_that_names_a_missing_or_damaged_blob_is_found() {
    let rig = Rig::new(&[], &[]);
    echo(&rig);
    let (one, _) = rig.begin_graph("echo", large("a"), 0);
    let (two, _) = rig.begin_graph("echo", large("b"), 0);
    let (missing, damaged) = (blob_of(&rig, one), blob_of(&rig, two));
    std::fs::remove_file(path_of(&rig, missing)).unwrap();
    let mut bytes = std::fs::read(path_of(&rig, damaged)).unwrap();
    bytes[20] ^= 1;
    std::fs::write(path_of(&rig, damaged), &bytes).unwrap();
    let found = |rig: &Rig| {
        rig.read(|tx| check::check_working(tx, &rig.engine.store.blobs()))
            .findings
    };
    assert_eq!(
        found(&rig),
        [
            format!("blob {damaged} is damaged: its bytes have another hash"),
            format!("blob {missing} is missing from the state directory"),
        ]
    );
    std::fs::write(path_of(&rig, damaged), b"\"short\"").unwrap();
    let short = found(&rig);
    let tells = |finding: &String| finding.contains("has 7 bytes, a row says");
    assert!(short.iter().any(tells), "{short:?}");
}
