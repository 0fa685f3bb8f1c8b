//! Rows that are made beside the writer's turn are there for everybody who looks, and hurt nobody but their change.

use std::sync::mpsc;

use super::rows::Number;
use super::scribe::MadeRow;
use super::tables::META;
use super::{Abort, ChangeError, Rows, Store, StoreOptions, Tx};
use crate::words::time::SystemClock;

/// What is said of the size of late rows.
const ABOUT: usize = 1_000;

fn store(folder: &tempfile::TempDir) -> Store {
    std::fs::create_dir_all(folder.path().join("nodes")).unwrap();
    Store::open(
        StoreOptions::in_directory(folder.path()),
        std::sync::Arc::new(SystemClock),
    )
    .unwrap()
}

fn key(name: &str) -> (String,) {
    (name.to_owned(),)
}

fn number(rows: &mut impl Rows, name: &str) -> Option<u64> {
    rows.get(&META, &key(name)).unwrap().map(|number| number.0)
}

/// Puts a row late, which is made when `go` says so.
fn late(tx: &mut Tx<'_>, name: &'static str, go: mpsc::Receiver<u64>) -> Result<(), Abort> {
    Ok(tx.put_late(&[META.index()], ABOUT, move || {
        let number = go.recv().expect("somebody says so");
        vec![MadeRow::of(&META, &key(name), &Number(number))]
    })?)
}

#[test]
fn late_rows_are_there_for_who_looks_and_after_the_commit() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let (say, go) = mpsc::channel();
    let mut go = Some(go);
    let seen = store.change_blocking("late", move |tx| {
        let say = say.clone();
        late(tx, "a", go.take().expect("it runs once"))?;
        // The size of the batch counts them already.
        assert!(tx.bytes_written() >= ABOUT);
        // They are still being made; whoever looks waits for them.
        say.send(7).expect("it listens");
        let seen = number(tx, "a");
        let (say, go) = mpsc::channel();
        late(tx, "b", go)?;
        say.send(8).expect("it listens");
        Ok(seen)
    });
    assert_eq!(seen.unwrap(), Some(7));
    let both = store.read(|tx| Ok::<_, super::StoreError>((number(tx, "a"), number(tx, "b"))));
    assert_eq!(both.unwrap(), (Some(7), Some(8)));
}

/// Three changes in one batch: the second one's rows cannot be made.
#[test]
fn late_rows_that_panic_hurt_their_change_only() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (open, gate) = mpsc::channel::<()>();
    let mut gate = Some(gate);
    let (first, bad, last, ()) = runtime.block_on(async {
        let first = store.change("first", move |tx| {
            // All three are in the queue when the gate opens; when it runs again, it is open.
            let _ = gate.take().map(|gate| gate.recv());
            tx.put_late(&[META.index()], 0, || {
                vec![MadeRow::of(&META, &key("first"), &Number(1))]
            })?;
            Ok(())
        });
        let bad = store.change("bad", |tx| {
            tx.put_late(&[META.index()], 0, || panic!("a defect"))?;
            tx.put(&META, &key("beside the bad"), &Number(2))?;
            Ok(())
        });
        let last = store.change("last", |tx| {
            tx.put(&META, &key("last"), &Number(3))?;
            Ok(())
        });
        tokio::join!(first, bad, last, async {
            open.send(()).expect("the first waits");
        })
    });
    assert!(first.is_ok() && last.is_ok(), "{first:?} {last:?}");
    assert!(matches!(bad, Err(ChangeError::Panicked(_))), "{bad:?}");
    let found = store.read(|tx| {
        let names = ["first", "beside the bad", "last"];
        Ok::<_, super::StoreError>(names.map(|name| number(tx, name)))
    });
    assert_eq!(found.unwrap(), [Some(1), None, Some(3)]);
}

/// Wanted rows are found beside many others and few, at the ends and where there are none.
#[test]
fn rows_are_read_together_as_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let name = |number: u64| key(&format!("row {number:04}"));
    store
        .change_blocking("rows", move |tx| {
            for number in (0..2_000).filter(|number| number % 3 != 0) {
                tx.put(&META, &name(number), &Number(number))?;
            }
            // Damage among the others hides no row that is wanted.
            tx.damage(&META, &name(101), b"?")?;
            Ok(())
        })
        .unwrap();
    let spreads: [&[u64]; 7] = [
        &[],
        &[5],
        &[0, 1, 2, 3, 4],
        &[99, 100, 102, 103],
        &[1, 700, 1_400, 1_999],
        &[10, 11, 1_900, 1_901, 1_902],
        &[2_000, 3_000],
    ];
    for spread in spreads {
        let keys: Vec<(String,)> = spread.iter().map(|number| name(*number)).collect();
        let (together, single) = store
            .read(|tx| {
                let together = tx.get_all(&META, &keys)?;
                let single: Result<Vec<_>, _> = keys.iter().map(|key| tx.get(&META, key)).collect();
                Ok::<_, super::StoreError>((together, single?))
            })
            .unwrap();
        assert_eq!(together, single, "{spread:?}");
        let there = spread
            .iter()
            .filter(|number| **number < 2_000 && **number % 3 != 0);
        assert_eq!(together.iter().flatten().count(), there.count(), "{spread:?}");
    }
}
