//! Backups and what is restored of them, at the level of files and rows.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::{ReadableTable, TableDefinition, TableHandle};
use tempfile::TempDir;

use super::backup::{self, BackupError, Source};
use super::coordination::{STORE_NAME, StateDirectory, UNFINISHED_NAME};
use super::migrate::{FORMAT, pretend_format};
use super::restore::{self, RestoreError};
use super::rows::Number;
use super::tables::{META, NODES, SLOT_POOLS};
use super::{Rows, Store, StoreOptions, check};
use crate::words::ids::TenantId;
use crate::words::limits;
use crate::words::names::{NodeName, SlotPoolName};
use crate::words::time::{Clock, ManualClock, Millis, SystemClock};

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Place {
        Place {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn open(&self) -> Store {
        let directory = StateDirectory::prepare(&self.state(), true).unwrap();
        let store = Store::open(StoreOptions::in_directory(&self.state()), Arc::new(SystemClock)).unwrap();
        directory.write_format().unwrap();
        store
    }

    fn names(&self) -> Vec<String> {
        names_in(self.folder.path())
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn count_up(store: &Store) -> u64 {
    store
        .change_blocking("count", |tx| {
            let number = tx.next_number("counted")?;
            tx.put(&META, &("twice".to_owned(),), &Number(number))?;
            Ok(number)
        })
        .unwrap()
}

/// Table, key and value of all rows.
fn all_rows(file: &Path) -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let source = Source::open(file).unwrap();
    let snapshot = source.snapshot().unwrap();
    let mut rows = Vec::new();
    for handle in snapshot.list_tables().unwrap() {
        let definition: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new(handle.name());
        for row in snapshot.open_table(definition).unwrap().iter().unwrap() {
            let (key, value) = row.unwrap();
            rows.push((
                handle.name().to_owned(),
                key.value().to_vec(),
                value.value().to_vec(),
            ));
        }
    }
    rows
}

#[test]
fn a_backup_has_every_row_also_those_that_cannot_be_read() {
    let place = Place::new();
    let store = place.open();
    count_up(&store);
    let key = (TenantId::DEFAULT, SlotPoolName::new("p").unwrap());
    store
        .change_blocking("damage", move |tx| {
            Ok(tx.damage(&SLOT_POOLS, &key, b"rubbish")?)
        })
        .unwrap();
    let file = place.file("backup");
    let made = backup::write(&store, &file).unwrap();
    assert!(store.close(std::time::Duration::from_secs(10)));
    let rows = all_rows(&file);
    assert_eq!(rows, all_rows(&place.state().join(STORE_NAME)));
    assert!(
        rows.iter()
            .any(|(table, _, value)| table == "slot_pools" && value == b"rubbish")
    );
    assert_eq!(made.rows, rows.len() as u64);
    assert_eq!(
        (made.format, made.bytes),
        (FORMAT, std::fs::metadata(&file).unwrap().len())
    );
    let hash = blake3::hash(&std::fs::read(&file).unwrap());
    assert_eq!(made.blake3, hash.to_hex().to_string());
    assert_eq!(place.names(), ["backup", "state"], "nothing else is left");
}

#[test]
fn a_backup_is_one_moment_while_others_write() {
    let place = Place::new();
    let store = place.open();
    let stop = Arc::new(AtomicBool::new(false));
    let writer = std::thread::spawn({
        let (store, stop) = (store.clone(), Arc::clone(&stop));
        move || {
            while !stop.load(Ordering::Relaxed) {
                count_up(&store);
            }
        }
    });
    for round in 0..10 {
        let acknowledged = count_up(&store);
        let file = place.file(&format!("backup-{round}"));
        backup::write(&store, &file).unwrap();
        let restored = place.file(&format!("restored-{round}"));
        restore::restore(&file, &restored, false, SystemClock.now()).unwrap();
        let again = Store::open(StoreOptions::in_directory(&restored), Arc::new(SystemClock)).unwrap();
        let of = |name: &str| again.read(|tx| tx.get(&META, &(name.to_owned(),))).unwrap();
        assert!(of("counted").unwrap().0 >= acknowledged);
        assert_eq!(of("counted"), of("twice"), "two rows of one commit");
    }
    stop.store(true, Ordering::Relaxed);
    writer.join().unwrap();
}

#[test]
fn a_backup_writes_over_nothing_and_leaves_nothing_half() {
    let place = Place::new();
    let store = place.open();
    let refused = |to: &Path| backup::write(&store, to).unwrap_err();
    std::fs::write(place.file("there"), "precious").unwrap();
    let error = refused(&place.file("there"));
    assert!(
        error.is_conflict() && matches!(error, BackupError::Exists(_)),
        "{error}"
    );
    assert_eq!(std::fs::read(place.file("there")).unwrap(), b"precious");
    std::os::unix::fs::symlink("nowhere", place.file("link")).unwrap();
    assert!(matches!(refused(&place.file("link")), BackupError::Exists(_)));
    for inside in ["state/backup", "state/logs/backup", "state/../state/backup"] {
        assert!(
            matches!(refused(&place.file(inside)), BackupError::Inside(_)),
            "{inside}"
        );
    }
    let error = refused(&place.file("no/where")).to_string();
    assert!(
        error.ends_with("its folder does not exist; make it first"),
        "{error}"
    );
    let error = refused(&place.file("there/below")).to_string();
    assert!(error.contains("cannot be made"), "{error}");
    // A folder in which nothing can be made.
    let error = refused(Path::new("/proc/backup"));
    assert!(
        matches!(error, BackupError::Unwritten { .. }) && !error.is_conflict(),
        "{error}"
    );
    assert_eq!(place.names(), ["link", "state", "there"]);
    assert_eq!(store.read(check::check).unwrap(), check::Findings::new());
}

#[test]
fn files_are_backed_up_when_no_daemon_has_them() {
    let place = Place::new();
    let error = backup::write_from_files(&place.state(), &place.file("backup")).unwrap_err();
    assert!(matches!(error, BackupError::NoStore(_)), "{error}");
    let store = place.open();
    count_up(&store);
    let error = backup::write_from_files(&place.state(), &place.file("backup")).unwrap_err();
    assert!(error.to_string().contains("in use by another process"), "{error}");
    drop(store);
    let made = backup::write_from_files(&place.state(), &place.file("backup")).unwrap();
    assert_eq!(made.rows, all_rows(&place.file("backup")).len() as u64);
    assert_eq!(place.names(), ["backup", "state"]);
}

fn image(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push((path.clone(), std::fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// The file `format` says so, or only the rows of the store do.
#[test]
fn a_newer_store_is_refused_with_nothing_written() {
    let place = Place::new();
    drop(place.open());
    let directory = StateDirectory::prepare(&place.state(), true).unwrap();
    drop(directory.lock_format().unwrap());
    let (store, file) = (place.state().join(STORE_NAME), place.file("backup"));
    pretend_format(&store, 99).unwrap();
    std::fs::copy(&store, &file).unwrap();
    let words = format!("has format 99; this ductor reads up to {FORMAT}");
    let before = image(place.folder.path());
    let mut told = vec![
        check::check_files(&place.state()).unwrap_err().to_string(),
        backup::write_from_files(&place.state(), &place.file("b"))
            .unwrap_err()
            .to_string(),
        restore::verify(&file, place.folder.path(), SystemClock.now())
            .unwrap_err()
            .to_string(),
        restore::restore(&file, &place.file("r"), true, SystemClock.now())
            .unwrap_err()
            .to_string(),
    ];
    let after = image(place.folder.path());
    let changed: Vec<_> = { before.iter().zip(&after) }
        .filter(|(one, other)| one != other)
        .map(|((path, _), _)| path)
        .collect();
    assert!(before.len() == after.len() && changed.is_empty(), "{changed:?}");
    // What opens it to write learns it from the rows, and writes none.
    let rows = all_rows(&store);
    let options = StoreOptions::in_directory(&place.state());
    told.push(
        Store::open(options, Arc::new(SystemClock))
            .unwrap_err()
            .to_string(),
    );
    assert_eq!(all_rows(&store), rows);
    std::fs::write(place.state().join("format"), "99\n").unwrap();
    std::fs::remove_dir_all(place.state().join("probes")).unwrap();
    let before = image(place.folder.path());
    told.push(
        StateDirectory::prepare(&place.state(), true)
            .unwrap_err()
            .to_string(),
    );
    assert!(before == image(place.folder.path()) && !place.state().join("probes").exists());
    for text in told {
        assert!(text.contains(&words), "{text}");
    }
}

#[test]
fn an_older_store_is_copied_before_it_is_brought_up() {
    let place = Place::new();
    let store = place.open();
    count_up(&store);
    drop(store);
    let file = place.state().join(STORE_NAME);
    pretend_format(&file, 2).unwrap();
    let older = all_rows(&file);
    std::fs::write(place.state().join("format"), "2\n").unwrap();
    let directory = StateDirectory::prepare(&place.state(), true).unwrap();
    assert!(directory.is_older());
    let lock = directory.lock_format().unwrap().unwrap();
    assert!(
        directory.share_format_lock().unwrap().is_none(),
        "the one that migrates is alone"
    );
    let store = place.open();
    lock.share().unwrap();
    assert!(directory.share_format_lock().unwrap().is_some());
    assert!(!directory.is_older());
    drop(store);
    let copies: Vec<String> = { names_in(&place.state()).into_iter() }
        .filter(|name| name.starts_with("ductor.format-2."))
        .collect();
    assert_eq!(copies.len(), 1, "{copies:?}");
    assert_eq!(all_rows(&place.state().join(&copies[0])), older);
    // A migration that is cut off finds its copy and makes no second one.
    pretend_format(&file, 2).unwrap();
    drop(place.open());
    assert_eq!(
        names_in(&place.state())
            .iter()
            .filter(|name| name.contains("format-2"))
            .count(),
        1
    );
    // And the copy is a backup like any other, of an older format.
    let verified = restore::verify(
        &place.state().join(&copies[0]),
        place.folder.path(),
        SystemClock.now(),
    );
    assert_eq!(verified.unwrap().format, 2);
    restore::restore(
        &place.state().join(&copies[0]),
        &place.file("again"),
        false,
        SystemClock.now(),
    )
    .unwrap();
}

#[test]
fn no_room_for_the_copy_is_no_migration() {
    let place = Place::new();
    drop(place.open());
    let file = place.state().join(STORE_NAME);
    pretend_format(&file, 2).unwrap();
    let rows = all_rows(&file);
    // Something that can neither be taken for the copy nor replaced by it.
    let sequence = 0;
    std::os::unix::fs::symlink(
        "nowhere",
        place.state().join(format!("ductor.format-2.{sequence}.redb")),
    )
    .unwrap();
    let options = StoreOptions::in_directory(&place.state());
    let error = Store::open(options, Arc::new(SystemClock))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("the copy that is kept before it is brought to"),
        "{error}"
    );
    assert_eq!(all_rows(&file), rows);
}

#[test]
fn a_restore_needs_an_empty_directory() {
    let place = Place::new();
    let store = place.open();
    let file = place.file("backup");
    backup::write(&store, &file).unwrap();
    let restore = |into: &Path| restore::restore(&file, into, false, SystemClock.now());
    let name = NodeName::new("n-a").unwrap();
    let directory = StateDirectory::prepare(&place.state(), true).unwrap();
    let mut lock = directory.try_lock_node(&name).unwrap().unwrap();
    lock.write_holder(42, "auto").unwrap();
    let error = restore(&place.state()).unwrap_err();
    assert!(error.is_conflict(), "{error}");
    assert!(
        error
            .to_string()
            .contains("in use by a daemon, node n-a (pid 42)"),
        "{error}"
    );
    let full = place.file("full");
    std::fs::create_dir(&full).unwrap();
    std::fs::write(full.join("a"), "b").unwrap();
    let error = restore(&full).unwrap_err();
    assert!(
        matches!(error, RestoreError::NotEmpty { .. }) && error.is_conflict(),
        "{error}"
    );
    assert_eq!(names_in(&full), ["a"]);
    let empty = place.file("empty");
    std::fs::create_dir(&empty).unwrap();
    let restored = restore(&empty).unwrap();
    assert_eq!(
        (restored.interrupted, restored.backup.checked.findings.len()),
        (0, 0)
    );
    assert_eq!(
        names_in(&empty),
        [
            "blobs",
            "ductor.redb",
            "format",
            "format.lock",
            "logs",
            "nodes",
            "probes"
        ]
    );
}

#[test]
fn what_is_no_backup_is_not_restored() {
    let place = Place::new();
    std::fs::write(place.file("text"), "a letter").unwrap();
    let new = place.file("new");
    let refused = |file: &Path| {
        restore::restore(file, &new, false, SystemClock.now())
            .unwrap_err()
            .to_string()
    };
    assert!(refused(&place.file("text")).ends_with("is no backup of ductor"));
    assert!(refused(place.folder.path()).ends_with("is no backup of ductor"));
    assert!(refused(&place.file("absent")).contains("cannot be read"));
    // A file of the same kind that another program has written.
    drop(redb::Database::create(place.file("foreign")).unwrap());
    assert!(refused(&place.file("foreign")).ends_with("is no backup of ductor"));
    let store = place.open();
    backup::write(&store, &place.file("backup")).unwrap();
    let whole = std::fs::read(place.file("backup")).unwrap();
    std::fs::write(place.file("half"), &whole[..whole.len() / 2]).unwrap();
    assert!(refused(&place.file("half")).contains("cannot be read"));
    assert!(!new.exists(), "nothing is left of a try");
    assert_eq!(place.names(), ["backup", "foreign", "half", "state", "text"]);
}

#[test]
fn a_damaged_backup_is_restored_only_on_demand() {
    let place = Place::new();
    let store = place.open();
    let key = (TenantId::DEFAULT, SlotPoolName::new("p").unwrap());
    store
        .change_blocking("damage", move |tx| {
            Ok(tx.damage(&SLOT_POOLS, &key, b"rubbish")?)
        })
        .unwrap();
    let file = place.file("backup");
    backup::write(&store, &file).unwrap();
    let verified = restore::verify(&file, place.folder.path(), SystemClock.now()).unwrap();
    assert_eq!(verified.checked.findings.len(), 1);
    let new = place.file("new");
    let refused = restore::restore(&file, &new, false, SystemClock.now()).unwrap_err();
    assert!(matches!(refused, RestoreError::Damaged(findings) if findings.len() == 1));
    assert!(!new.exists());
    restore::restore(&file, &new, true, SystemClock.now()).unwrap();
    assert!(new.join(STORE_NAME).exists());
}

#[test]
fn a_restore_that_was_cut_off_is_no_empty_store() {
    let place = Place::new();
    std::fs::create_dir(place.state()).unwrap();
    std::fs::write(place.state().join(UNFINISHED_NAME), "half").unwrap();
    let words = "did not finish; empty that directory and restore again";
    let error = StateDirectory::prepare(&place.state(), true)
        .unwrap_err()
        .to_string();
    assert!(error.contains(words), "{error}");
    let other = Place::new();
    backup::write(&other.open(), &place.file("backup")).unwrap();
    let refused = restore::restore(&place.file("backup"), &place.state(), false, SystemClock.now());
    assert!(refused.unwrap_err().to_string().contains(words));
    assert_eq!(names_in(&place.state()), [UNFINISHED_NAME]);
}

#[test]
fn the_clock_of_a_restore_is_the_one_that_it_is_given() {
    // Nothing of a restore depends on the time of this machine.
    let clock = ManualClock::at(Millis(5_000));
    let place = Place::new();
    let store = place.open();
    backup::write(&store, &place.file("backup")).unwrap();
    restore::restore(&place.file("backup"), &place.file("a"), false, clock.now()).unwrap();
    clock.advance(1_000);
    restore::restore(&place.file("backup"), &place.file("b"), false, clock.now()).unwrap();
    let rows = |name: &str| all_rows(&place.file(name).join(STORE_NAME));
    assert_eq!(rows("a"), rows("b"));
    let known = store.read(|tx| tx.scan_each(&NODES, &(), None, 10)).unwrap();
    assert!(known.is_empty() && limits::RESTORE_LEAP > 0);
}
