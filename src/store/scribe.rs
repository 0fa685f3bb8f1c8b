//! A second pair of hands for the writer: rows whose bytes take their time are made beside its turn, and are there before its
//! commit. Whoever looks at a table that waits for some gets them first.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use super::codec::{self, Record};
use super::keys::Key;
use super::table::Table;

/// A row as it will be written.
#[derive(Debug)]
pub struct MadeRow {
    pub(super) table: usize,
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
}

impl MadeRow {
    /// The row of `record` under `key`.
    pub fn of<K: Key, R: Record>(table: &Table<K, R>, key: &K, record: &R) -> MadeRow {
        MadeRow {
            table: table.index,
            key: key.encode(),
            value: codec::encode(record),
        }
    }
}

type Task = Box<dyn FnOnce() + Send>;

/// The other thread, which is there once it was needed.
#[derive(Debug, Default)]
pub(super) struct Scribe {
    tasks: Mutex<Option<mpsc::Sender<Task>>>,
}

/// Rows that are being made.
#[derive(Debug)]
pub(super) struct Late(mpsc::Receiver<thread::Result<Vec<MadeRow>>>);

impl Late {
    /// Waits for them; a panic while they were made is one here.
    pub(super) fn rows(self) -> Vec<MadeRow> {
        let made = self.0.recv().expect("whoever makes them says how it went");
        made.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl Scribe {
    /// Has rows made: by the other thread, or here and now where there can be none.
    pub(super) fn make(&self, rows: impl FnOnce() -> Vec<MadeRow> + Send + 'static) -> Late {
        let (say, late) = mpsc::sync_channel(1);
        let task: Task = Box::new(move || {
            // Where the batch was rolled back nobody listens.
            drop(say.send(catch_unwind(AssertUnwindSafe(rows))));
        });
        if let Err(task) = self.hand_over(task) {
            task();
        }
        Late(late)
    }

    fn hand_over(&self, task: Task) -> Result<(), Task> {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if tasks.is_none() {
            *tasks = start();
        }
        match tasks.as_ref() {
            Some(sender) => sender.send(task).map_err(|unsent| unsent.0),
            None => Err(task),
        }
    }
}

/// The thread lives as long as somebody can give it something.
fn start() -> Option<mpsc::Sender<Task>> {
    let (sender, tasks) = mpsc::channel::<Task>();
    let work = move || tasks.iter().for_each(|task| task());
    let started = thread::Builder::new().name("store-scribe".to_owned()).spawn(work);
    match started {
        Ok(_) => Some(sender),
        Err(error) => {
            tracing::warn!(cause = %error, "the store's second thread does not start; the writer does its work");
            None
        }
    }
}
