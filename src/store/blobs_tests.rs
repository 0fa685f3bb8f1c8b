//! Payloads beside the store: what is kept, what is refused, what a sweep takes, and what a backup carries.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use super::blobs::{BlobError, Blobs, BlobsChecked, Swept};
use super::coordination::StateDirectory;
use super::error::StoreError;
use super::restore::{self, RestoreError};
use super::{Store, StoreOptions, backup, check};
use crate::domain::payload::{Payload, Sha256Name};
use crate::os::failpoint::{Fault, Faults};
use crate::words::limits;
use crate::words::time::{Clock, Millis, SystemClock};

const HOUR: Duration = Duration::from_hours(1);

struct Place {
    folder: TempDir,
    faults: Faults,
    blobs: Blobs,
}

impl Place {
    fn new() -> Place {
        let (folder, faults) = (tempfile::tempdir().unwrap(), Faults::default());
        StateDirectory::prepare(&folder.path().join("state"), true).unwrap();
        let blobs = Blobs::of_state(&folder.path().join("state"), faults.clone());
        Place {
            folder,
            faults,
            blobs,
        }
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// All files of the blob area but its lock.
    fn files(&self) -> Vec<PathBuf> {
        files_in(&self.state().join("blobs"))
    }

    fn sweep(&self, payload: &Payload, is_named: bool, later: Duration, max: usize) -> Swept {
        let first = payload.blob().unwrap().0[0];
        let now = SystemClock.now().wall;
        let now = now.plus(u64::try_from(later.as_millis()).unwrap());
        { self.blobs.sweep(first, |_| Ok(is_named), HOUR, now, max) }.unwrap()
    }
}

fn files_in(blobs: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in std::fs::read_dir(blobs).unwrap() {
        let folder = folder.unwrap().path();
        if folder.is_dir() {
            files.extend(
                std::fs::read_dir(folder)
                    .unwrap()
                    .map(|file| file.unwrap().path()),
            );
        }
    }
    files.sort();
    files
}

/// A JSON text of so many bytes.
fn text_of(bytes: u64) -> String {
    format!("\"{}\"", "x".repeat(usize::try_from(bytes).unwrap() - 2))
}

#[test]
fn a_small_payload_stays_in_its_row_and_a_larger_one_is_a_file() {
    let place = Place::new();
    let small = text_of(limits::PAYLOAD_INLINE_BYTES_MAX);
    let kept = place.blobs.put(&small).unwrap();
    assert_eq!(kept.inline().unwrap().as_str(), small);
    assert_eq!(place.blobs.read(&kept).unwrap().as_str(), small);
    assert!(place.files().is_empty());

    let large = text_of(limits::PAYLOAD_INLINE_BYTES_MAX + 1);
    let kept = place.blobs.put(&large).unwrap();
    assert_eq!(place.blobs.put(&large).unwrap(), kept);
    let name = kept.blob().unwrap().to_string();
    let path = place.state().join("blobs").join(&name[..2]).join(&name);
    assert_eq!(place.files(), [path], "once, and nothing unfinished beside it");
    assert_eq!(place.blobs.read(&kept).unwrap().as_str(), large);
}

#[test]
fn a_payload_of_32_mib_is_kept_and_one_byte_more_is_not() {
    let place = Place::new();
    let largest = text_of(limits::PAYLOAD_BYTES_MAX);
    let kept = place.blobs.put(&largest).unwrap();
    assert_eq!(kept.bytes(), 32 << 20);
    assert_eq!(place.blobs.read(&kept).unwrap().as_str(), largest);
    let refused = place
        .blobs
        .put(&text_of(limits::PAYLOAD_BYTES_MAX + 1))
        .unwrap_err();
    assert_eq!(refused.code(), "payload.too_large");
    assert_eq!(
        refused.to_string(),
        "the payload has 33554433 bytes; at most 33554432 (32 MiB) are kept"
    );
    assert_eq!(place.files().len(), 1);
}

#[test]
fn what_is_no_json_is_refused() {
    let place = Place::new();
    assert_eq!(place.blobs.put("{").unwrap_err().code(), "payload.not_json");
    let long = "x".repeat(40_000);
    assert_eq!(place.blobs.put(&long).unwrap_err().code(), "payload.not_json");
    assert!(place.files().is_empty());
}

#[test]
fn a_missing_or_damaged_blob_is_an_error_that_names_it() {
    let place = Place::new();
    let kept = place.blobs.put(&text_of(50_000)).unwrap();
    let (path, name) = (place.files().remove(0), kept.blob().unwrap());
    let told = |what: &str| {
        let error = place.blobs.read(&kept).unwrap_err();
        assert!(
            error.to_string().starts_with(&format!("blob {name} is {what}")),
            "{error}"
        );
        error.code()
    };
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[7] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(told("damaged: its bytes have another hash"), "payload.damaged");
    std::fs::write(&path, &bytes[..9]).unwrap();
    assert_eq!(told("damaged: it has 9 bytes, not 50000"), "payload.damaged");
    // The same content heals what has another size.
    place.blobs.put(&text_of(50_000)).unwrap();
    assert_eq!(place.blobs.read(&kept).unwrap().as_str(), text_of(50_000));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(told("missing"), "payload.missing");
    // A row that is damaged may say any size.
    let absurd = Payload::Blob {
        sha256: Sha256Name([1; 32]),
        bytes: u64::MAX,
    };
    assert!(matches!(place.blobs.read(&absurd), Err(BlobError::Missing(_))));
}

#[test]
fn a_full_disk_leaves_no_half_file_and_the_next_try_works() {
    let place = Place::new();
    let large = text_of(100_000);
    for point in ["blobs.write", "blobs.sync", "blobs.rename"] {
        place.faults.plan(point, Fault::NoSpace, 1);
        let error = place.blobs.put(&large).unwrap_err();
        assert!(
            matches!(error, BlobError::Store(StoreError::NoSpace)),
            "{point}: {error}"
        );
        assert!(place.files().is_empty(), "{point}");
    }
    // The name is given, but whether it lasts is not known: nobody may name it yet.
    place.faults.plan("blobs.folder", Fault::Error, 2);
    assert!(place.blobs.put(&large).is_err());
    assert!(place.blobs.put(&large).is_err(), "also when it is there already");
    let kept = place.blobs.put(&large).unwrap();
    assert_eq!(place.blobs.read(&kept).unwrap().as_str(), large);
    place.faults.plan("blobs.read", Fault::Error, 1);
    assert_eq!(place.blobs.read(&kept).unwrap_err().code(), "store.unavailable");
}

#[test]
fn a_sweep_takes_what_is_old_and_not_named() {
    let place = Place::new();
    let kept = place.blobs.put(&text_of(20_000)).unwrap();
    let unfinished = place.files()[0].with_file_name(".partial-0");
    std::fs::write(&unfinished, "half").unwrap();
    assert_eq!(
        place.sweep(&kept, false, HOUR / 2, 10),
        Swept::default(),
        "too young"
    );
    assert_eq!(
        place.sweep(&kept, false, HOUR * 2, 0),
        Swept::default(),
        "no more than asked"
    );
    let swept = place.sweep(&kept, true, HOUR * 2, 10);
    assert_eq!((swept.blobs.len(), swept.unfinished), (0, 1));
    let swept = place.sweep(&kept, false, HOUR * 2, 10);
    assert_eq!(swept.blobs, [kept.blob().unwrap()]);
    assert_eq!((swept.bytes, swept.unfinished), (20_000, 0));
    assert!(place.files().is_empty());
}

#[test]
fn what_is_put_again_is_young_again() {
    let place = Place::new();
    let kept = place.blobs.put(&text_of(20_000)).unwrap();
    let long_ago = Duration::from_secs(1_000_000_000);
    let file = std::fs::File::options()
        .write(true)
        .open(&place.files()[0])
        .unwrap();
    file.set_modified(std::time::UNIX_EPOCH + long_ago).unwrap();
    // The row that will name it is not committed yet when the sweep comes.
    assert_eq!(place.blobs.put(&text_of(20_000)).unwrap(), kept);
    assert_eq!(place.sweep(&kept, false, Duration::ZERO, 10), Swept::default());
    // It is put between the question whether a row names it and the removal.
    file.set_modified(std::time::UNIX_EPOCH + long_ago).unwrap();
    let put_meanwhile = |_| {
        place.blobs.put(&text_of(20_000)).unwrap();
        Ok(false)
    };
    let now = SystemClock.now().wall;
    let swept = place
        .blobs
        .sweep(kept.blob().unwrap().0[0], put_meanwhile, HOUR, now, 10);
    assert_eq!(swept.unwrap(), Swept::default());
    assert!(place.blobs.read(&kept).is_ok());
    // A clock that stands before the file was made removes nothing.
    let swept = place
        .blobs
        .sweep(kept.blob().unwrap().0[0], |_| Ok(false), HOUR, Millis(0), 10);
    assert_eq!(swept.unwrap(), Swept::default());
}

#[test]
fn nothing_is_swept_while_a_backup_is_made() {
    let place = Place::new();
    let kept = place.blobs.put(&text_of(20_000)).unwrap();
    let backup = place.blobs.keep_all().unwrap();
    assert_eq!(place.sweep(&kept, false, HOUR * 2, 10), Swept::default());
    drop(backup);
    assert_eq!(place.sweep(&kept, false, HOUR * 2, 10).blobs.len(), 1);
}

#[test]
fn many_threads_put_the_same_and_other_payloads_while_sweeps_run() {
    let place = Place::new();
    let puts = |seed: u64| {
        let blobs = place.blobs.clone();
        move || {
            for round in 0..12 {
                let text = text_of(20_000 + (round + seed) % 4);
                let kept = blobs.put(&text).unwrap();
                assert_eq!(blobs.read(&kept).unwrap().as_str(), text);
            }
        }
    };
    let sweep = || {
        for first in 0..=u8::MAX {
            let now = SystemClock.now().wall;
            { place.blobs.sweep(first, |_| Ok(false), HOUR, now, 100) }.unwrap();
        }
    };
    std::thread::scope(|scope| {
        for seed in 0..3 {
            scope.spawn(puts(seed));
        }
        scope.spawn(sweep);
    });
    assert_eq!(place.files().len(), 4);
    assert!(
        place
            .blobs
            .check(&BTreeMap::new(), u64::MAX)
            .unwrap()
            .findings
            .is_empty()
    );
}

#[test]
fn the_check_compares_blobs_with_their_names_and_with_what_rows_say() {
    let place = Place::new();
    let (first, second) = (text_of(20_000), text_of(30_000));
    let kept = [
        place.blobs.put(&first).unwrap(),
        place.blobs.put(&second).unwrap(),
    ];
    let both = kept
        .each_ref()
        .map(|payload| (payload.blob().unwrap(), payload.bytes()));
    let named = BTreeMap::from(both);
    let check = |read_max| place.blobs.check(&named, read_max).unwrap();
    assert_eq!(check(u64::MAX), BlobsChecked::default());
    assert_eq!(check(25_000).unread, 1);
    let unnamed = place.blobs.check(&BTreeMap::from([both[0]]), u64::MAX).unwrap();
    assert_eq!((unnamed.findings.len(), unnamed.unnamed), (0, 1));
    let path = |payload: &Payload| {
        let name = payload.blob().unwrap().to_string();
        place.state().join("blobs").join(&name[..2]).join(&name)
    };
    std::fs::write(path(&kept[0]), "\"short\"").unwrap();
    std::fs::remove_file(path(&kept[1])).unwrap();
    let [damaged, missing] = both.map(|(name, _)| name);
    let mut expected = [
        format!("blob {damaged} is damaged: its bytes have another hash"),
        format!("blob {damaged} has 7 bytes, a row says 20000"),
        format!("blob {missing} is missing from the state directory"),
    ];
    expected.sort();
    let mut found = check(u64::MAX).findings;
    found.sort();
    assert_eq!(found, expected);
}

/// A state directory with a store and three blobs, one of which has several pieces.
fn filled() -> (Place, Vec<Payload>) {
    let place = Place::new();
    let store = Store::open(StoreOptions::in_directory(&place.state()), Arc::new(SystemClock)).unwrap();
    assert!(store.close(Duration::from_secs(10)));
    StateDirectory::prepare(&place.state(), true)
        .unwrap()
        .write_format()
        .unwrap();
    let sizes = [20_000, (1 << 20) - 4096, 5_000_000];
    let kept = sizes.map(|bytes| place.blobs.put(&text_of(bytes)).unwrap());
    (place, kept.to_vec())
}

#[test]
fn a_backup_carries_the_blobs_and_a_restore_makes_files_of_them() {
    let (place, kept) = filled();
    let file = place.folder.path().join("backup");
    let made = backup::write_from_files(&place.state(), &file).unwrap();
    assert_eq!(made.blobs, 3);
    let now = SystemClock.now();
    let verified = restore::verify(&file, place.folder.path(), now).unwrap();
    assert_eq!((verified.blobs, verified.checked.findings.len()), (3, 0));
    assert_eq!(verified.checked.rows, made.rows);

    let into = place.folder.path().join("restored");
    let restored = restore::restore(&file, &into, false, now).unwrap();
    assert_eq!(restored.backup.blobs, 3);
    let again = Blobs::of_state(&into, Faults::default());
    for payload in &kept {
        assert_eq!(again.read(payload).unwrap(), place.blobs.read(payload).unwrap());
    }
    assert_eq!(files_in(&into.join("blobs")).len(), 3, "and nothing unfinished");
    let store_bytes = std::fs::metadata(into.join("ductor.redb")).unwrap().len();
    assert!(
        store_bytes < 2_000_000,
        "the copies left the store: {store_bytes}"
    );
    assert!(check::check_files(&into).unwrap().findings.is_empty());
    // And the next backup is made of the files again.
    let second = backup::write_from_files(&into, &place.folder.path().join("second")).unwrap();
    assert_eq!(second.blobs, 3);
}

#[test]
fn a_damaged_blob_is_told_by_the_check_and_by_its_backup() {
    let (place, kept) = filled();
    let name = kept[2].blob().unwrap();
    let path = place
        .state()
        .join("blobs")
        .join(&name.to_string()[..2])
        .join(name.to_string());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[3_000_000] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let finding = format!("blob {name} is damaged: its bytes have another hash");
    assert_eq!(
        check::check_files(&place.state()).unwrap().findings,
        std::slice::from_ref(&finding)
    );

    let (file, into) = (
        place.folder.path().join("backup"),
        place.folder.path().join("restored"),
    );
    backup::write_from_files(&place.state(), &file).unwrap();
    let now = SystemClock.now();
    let verified = restore::verify(&file, place.folder.path(), now).unwrap();
    assert_eq!(verified.checked.findings, std::slice::from_ref(&finding));
    let refused = restore::restore(&file, &into, false, now);
    assert!(matches!(refused, Err(RestoreError::Damaged(found)) if found == [finding]));
    assert!(!into.exists());
    restore::restore(&file, &into, true, now).unwrap();
    let again = Blobs::of_state(&into, Faults::default());
    assert_eq!(again.read(&kept[2]).unwrap_err().code(), "payload.damaged");
    assert_eq!(again.read(&kept[1]).unwrap(), place.blobs.read(&kept[1]).unwrap());
}
