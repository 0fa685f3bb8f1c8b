//! Two stores on one file in one process: the kernel's locks keep them apart as they keep two daemons apart.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use super::coordination::{HeldLock, StateDirectory};
use super::opening::{Sharing, StoreMode};
use super::rows::Number;
use super::tables::META;
use super::{ChangeError, Rows, Store, StoreError, StoreOptions};
use crate::os::failpoint::Fault;
use crate::words::names::NodeName;
use crate::words::time::SystemClock;

const PATIENCE: Duration = Duration::from_secs(20);

fn options(folder: &Path, mode: StoreMode) -> StoreOptions {
    StoreOptions {
        mode,
        operation: Duration::from_millis(300),
        commit_grace: Duration::from_secs(10),
        ..StoreOptions::in_directory(folder)
    }
}

/// A daemon's store: its life lock is held, its socket is bound.
struct Member {
    store: Store,
    _life: HeldLock,
}

fn open(folder: &Path, name: &str, mode: StoreMode) -> Result<Member, StoreError> {
    let directory = StateDirectory::prepare(folder, true).unwrap();
    let word = if mode == StoreMode::Exclusive {
        "exclusive"
    } else {
        "auto"
    };
    let mut life = directory
        .try_lock_node(&NodeName::new(name).unwrap())
        .unwrap()
        .unwrap();
    life.write_holder(1, word).unwrap();
    let store = Store::open(options(directory.root(), mode), Arc::new(SystemClock))?;
    store.listen(name)?;
    Ok(Member { store, _life: life })
}

fn put(store: &Store, name: &'static str, number: u64) -> Result<(), ChangeError> {
    store.change_blocking("put", move |tx| {
        tx.put(&META, &(name.to_owned(),), &Number(number))?;
        Ok(())
    })
}

/// The same with the time of an operation.
fn put_in_time(store: &Store, name: &'static str) -> Result<(), ChangeError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(store.change("put", move |tx| {
        tx.put(&META, &(name.to_owned(),), &Number(99))?;
        Ok(())
    }))
}

fn get(store: &Store, name: &str) -> Option<u64> {
    let key = (name.to_owned(),);
    store
        .read(|tx| tx.get(&META, &key))
        .unwrap()
        .map(|number: Number| number.0)
}

fn wait_for<T: PartialEq + std::fmt::Debug>(
    mut watch: tokio::sync::watch::Receiver<T>,
    good: impl FnMut(&T) -> bool,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let waited =
        runtime.block_on(async { tokio::time::timeout(PATIENCE, watch.wait_for(good)).await.is_ok() });
    assert!(waited, "it did not move in time");
}

#[test]
fn the_first_has_it_alone_until_the_second_wants_in() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path(), "a", StoreMode::Auto).unwrap();
    assert_eq!(first.store.sharing(), Sharing::Alone);
    put(&first.store, "x", 1).unwrap();
    let second = open(folder.path(), "b", StoreMode::Auto).unwrap();
    assert_eq!(second.store.sharing(), Sharing::Together);
    assert_eq!(get(&second.store, "x"), Some(1));
    // The commits of the one are the other's news.
    let news = first.store.watch_foreign();
    let sequence = first.store.watch_sequence();
    put(&second.store, "y", 2).unwrap();
    wait_for(news, |seen| *seen > 0);
    let now = *second.store.watch_sequence().borrow();
    wait_for(sequence, |known| *known >= now);
    assert_eq!(get(&first.store, "y"), Some(2));
    assert_eq!(first.store.sharing(), Sharing::Together);
    put(&first.store, "x", 3).unwrap();
    assert_eq!(get(&second.store, "x"), Some(3));
    // Once shared it stays shared; a store that is opened with nobody about is alone again.
    assert!(second.store.close(PATIENCE));
    put(&first.store, "x", 4).unwrap();
    assert_eq!(first.store.sharing(), Sharing::Together);
    assert!(first.store.close(PATIENCE));
    drop((first, second));
    assert_eq!(
        open(folder.path(), "a", StoreMode::Auto).unwrap().store.sharing(),
        Sharing::Alone
    );
}

#[test]
fn reads_and_writes_go_on_through_a_hand_over() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path(), "a", StoreMode::Auto).unwrap();
    put(&first.store, "x", 0).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reads = 0;
            while !done.load(Ordering::Relaxed) {
                assert!(get(&first.store, "x").is_some());
                reads += 1;
            }
            reads
        });
        let writer = scope.spawn(|| {
            let mut writes = 0;
            while !done.load(Ordering::Relaxed) {
                writes += 1;
                put(&first.store, "x", writes).unwrap();
            }
            writes
        });
        let second = open(folder.path(), "b", StoreMode::Auto).unwrap();
        for number in 0..50 {
            put(&second.store, "z", number).unwrap();
        }
        done.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
        let written = writer.join().unwrap();
        assert_eq!(get(&second.store, "x"), Some(written));
    });
}

#[test]
fn a_store_that_is_kept_alone_refuses_others_soon() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path(), "a", StoreMode::Exclusive).unwrap();
    let before = crate::os::clock::boottime_ms();
    for mode in [StoreMode::Auto, StoreMode::Shared, StoreMode::Exclusive] {
        let refused = open(folder.path(), "b", mode).map(|_| ()).unwrap_err();
        assert!(matches!(refused, StoreError::InUse), "{refused}");
    }
    let took = crate::os::clock::boottime_ms() - before;
    assert!(took < 10_000, "nobody waits for what never comes: {took} ms");
    put(&first.store, "x", 1).unwrap();
    assert_eq!(first.store.sharing(), Sharing::Alone);
}

#[test]
fn whoever_wanted_in_and_went_away_leaves_the_holder_at_work() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path(), "a", StoreMode::Auto).unwrap();
    let want = HeldLock::try_take(&first.store.directory().join("want.lock"))
        .unwrap()
        .unwrap();
    // Noticed without any datagram.
    let mut number = 0;
    while first.store.sharing() == Sharing::Alone {
        number += 1;
        put(&first.store, "x", number).unwrap();
    }
    drop(want);
    put(&first.store, "x", number + 1).unwrap();
    assert_eq!(get(&first.store, "x"), Some(number + 1));
}

/// A change that stays inside its transaction until it is told to end.
fn hold(store: &Store) -> (mpsc::Sender<()>, std::thread::JoinHandle<Result<(), ChangeError>>) {
    let (release, released) = mpsc::channel::<()>();
    let (inside, is_inside) = mpsc::channel();
    let store = store.clone();
    let thread = std::thread::spawn(move || {
        store.change_blocking("hold", move |_| {
            inside.send(()).ok();
            released.recv().ok();
            Ok(())
        })
    });
    is_inside.recv_timeout(PATIENCE).unwrap();
    (release, thread)
}

#[test]
fn a_peer_that_is_stopped_inside_its_transaction_holds_up_writers_in_bounds_and_no_reader() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path(), "a", StoreMode::Auto).unwrap();
    let second = open(folder.path(), "b", StoreMode::Auto).unwrap();
    put(&first.store, "x", 1).unwrap();
    let (release, held) = hold(&second.store);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let refused = runtime.block_on(first.store.change("put", |tx| {
        tx.put(&META, &("late".to_owned(),), &Number(1))?;
        Ok(())
    }));
    assert!(matches!(refused, Err(ChangeError::Withdrawn)), "{refused:?}");
    assert_eq!(get(&first.store, "x"), Some(1), "a snapshot waits for nobody");
    // Who starts now waits for its turn too, and says what it waits for.
    let mut third = options(folder.path(), StoreMode::Auto);
    third.joining = Duration::from_millis(50);
    let joining = std::thread::spawn(move || Store::open(third, Arc::new(SystemClock)).map(|_| ()));
    release.send(()).unwrap();
    held.join().unwrap().unwrap();
    joining.join().unwrap().unwrap();
    put(&first.store, "x", 2).unwrap();
    assert_eq!(
        get(&second.store, "late"),
        None,
        "what was refused never happens later"
    );
    assert_eq!(get(&second.store, "x"), Some(2));
}

#[test]
fn a_failed_commit_is_not_taken_for_landed_because_another_daemon_wrote_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path(), "a", StoreMode::Shared).unwrap();
    let second = open(folder.path(), "b", StoreMode::Shared).unwrap();
    put(&first.store, "x", 1).unwrap();
    let faults = first.store.faults();
    faults.plan("store.commit", Fault::Error, 1);
    faults.plan("store.open", Fault::Error, 3);
    let failing = first.store.clone();
    let failing = std::thread::spawn(move || put(&failing, "x", 2));
    for number in 0..20 {
        put(&second.store, "z", number).unwrap();
    }
    let answer = failing.join().unwrap();
    assert!(matches!(answer, Err(ChangeError::Failed(_))), "{answer:?}");
    assert_eq!(get(&second.store, "x"), Some(1));
    // One that landed although its answer was lost is told as done.
    faults.plan("store.committed", Fault::Error, 1);
    put(&first.store, "x", 3).unwrap();
    assert_eq!(get(&second.store, "x"), Some(3));
}

#[test]
fn two_writers_under_load_take_turns() {
    let folder = tempfile::tempdir().unwrap();
    let members = [
        open(folder.path(), "a", StoreMode::Auto).unwrap(),
        open(folder.path(), "b", StoreMode::Auto).unwrap(),
    ];
    let done = AtomicBool::new(false);
    let count = |store: &Store, name: &'static str| {
        let mut writes = 0_u64;
        while !done.load(Ordering::Relaxed) {
            writes += 1;
            put(store, name, writes).unwrap();
            if writes == 300 {
                done.store(true, Ordering::Relaxed);
            }
        }
        writes
    };
    let counts = std::thread::scope(|scope| {
        let one = scope.spawn(|| count(&members[0].store, "x"));
        let two = scope.spawn(|| count(&members[1].store, "y"));
        [one.join().unwrap(), two.join().unwrap()]
    });
    assert!(
        counts.iter().all(|writes| *writes > 100),
        "each gets its turns: {counts:?}"
    );
    assert_eq!(get(&members[1].store, "x"), Some(counts[0]));
    assert_eq!(get(&members[0].store, "y"), Some(counts[1]));
    assert_eq!(
        get(&members[0].store, "sequence").unwrap(),
        counts.iter().sum::<u64>()
    );
}

#[test]
fn a_panic_of_the_writer_outside_of_any_change_ends_no_store() {
    let folder = tempfile::tempdir().unwrap();
    for mode in [StoreMode::Exclusive, StoreMode::Shared] {
        let member = open(folder.path(), "a", mode).unwrap();
        put(&member.store, "x", 1).unwrap();
        member.store.faults().plan("store.commit", Fault::Panic, 1);
        let answer = put(&member.store, "x", 2);
        assert!(matches!(answer, Err(ChangeError::Unknown)), "{answer:?}");
        put(&member.store, "y", 3).unwrap();
        assert_eq!(
            (get(&member.store, "x"), get(&member.store, "y")),
            (Some(1), Some(3))
        );
    }
}

#[test]
fn a_daemon_whose_directory_was_moved_away_is_nobody_in_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("state");
    let old = open(&place, "a", StoreMode::Auto).unwrap();
    put(&old.store, "x", 1).unwrap();
    std::fs::rename(&place, folder.path().join("state.old")).unwrap();
    assert!(matches!(
        put_in_time(&old.store, "x"),
        Err(ChangeError::Withdrawn)
    ));
    // Another daemon makes a new one there, and shares it.
    let new = open(&place, "b", StoreMode::Shared).unwrap();
    for number in 0..50 {
        put(&new.store, "z", number).unwrap();
        let read = old.store.read(|tx| tx.get(&META, &("z".to_owned(),)));
        assert!(matches!(read, Err(StoreError::NotOpen)), "{read:?}");
    }
    assert_eq!(get(&new.store, "x"), None);
    // Back at its place, it goes on.
    drop(new);
    std::fs::rename(&place, folder.path().join("state.new")).unwrap();
    std::fs::rename(folder.path().join("state.old"), &place).unwrap();
    put(&old.store, "y", 3).unwrap();
    assert_eq!((get(&old.store, "x"), get(&old.store, "y")), (Some(1), Some(3)));
}

#[test]
fn a_daemon_whose_life_lock_was_deleted_writes_nothing_more() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path(), "a", StoreMode::Shared).unwrap();
    put(&first.store, "x", 1).unwrap();
    std::fs::remove_file(folder.path().join("nodes/a.lock")).unwrap();
    let second = open(folder.path(), "a", StoreMode::Shared).unwrap();
    assert!(matches!(
        put_in_time(&first.store, "x"),
        Err(ChangeError::Withdrawn)
    ));
    put(&second.store, "y", 1).unwrap();
    assert_eq!(
        (get(&second.store, "x"), get(&second.store, "y")),
        (Some(1), Some(1))
    );
}

#[test]
fn it_is_known_for_how_long_nothing_could_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path(), "a", StoreMode::Shared).unwrap();
    let second = open(folder.path(), "b", StoreMode::Shared).unwrap();
    assert_eq!(first.store.turn_wait_ms(), 0);
    let (release, held) = hold(&second.store);
    let writer = first.store.clone();
    let waiting = std::thread::spawn(move || put(&writer, "x", 1));
    while first.store.turn_wait_ms() < 20 {
        std::thread::yield_now();
    }
    release.send(()).unwrap();
    held.join().unwrap().unwrap();
    waiting.join().unwrap().unwrap();
    assert_eq!(first.store.turn_wait_ms(), 0);
}
