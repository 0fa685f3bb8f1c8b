//! The format of the file, and the numbered steps that lead from an older one to the current one.
//!
//! A format is what a whole binary can read: its tables and the versions of their records. A record of an older version is
//! read by its own `decode`, row by row, so a step is needed only for what must be there before the first read.

use std::path::Path;

use redb::{Database, ReadTransaction, ReadableDatabase, TableDefinition, TableError};

use super::backup;
use super::blobs::Blobs;
#[cfg(debug_assertions)]
use super::codec;
use super::coordination::StateDirectory;
use super::error::StoreError;
use super::keys::Key;
use super::rows::{DeadStep, Number};
use super::table::Rows;
use super::tables::{DEAD_STEPS, META, POISONED_RUNS};
use super::tx::Tx;
use crate::os::failpoint::Faults;
use crate::words::limits;
use crate::words::time::Now;

/// The format that this binary writes. A change of it comes with a step below.
///
/// 2 has the tables of retries, marks and boots, and more variants at the end of some records; 3 has the tables of
/// backups and those that several daemons need between them; 4 has those of definitions of the API; 5 has those of
/// removals, pins and dead letters; 6 has those of routing, keys, tenants and audit; 7 has
/// those that snapshots of decisions share. Older ones are read as they are.
pub const FORMAT: u32 = 7;

/// One step: the format that it leads to, and what it does. Steps are run in order, in one transaction.
struct Step {
    to: u32,
    run: fn(&mut Tx<'_>) -> Result<(), StoreError>,
}

const STEPS: [Step; 7] = [
    Step {
        to: 1,
        run: |tx| tx.create_tables(),
    },
    Step {
        to: 2,
        run: |tx| tx.create_tables(),
    },
    Step {
        to: 3,
        run: |tx| tx.create_tables(),
    },
    Step {
        to: 4,
        run: |tx| tx.create_tables(),
    },
    Step {
        to: 5,
        run: |tx| {
            tx.create_tables()?;
            list_poisoned(tx)
        },
    },
    Step {
        to: 6,
        run: |tx| tx.create_tables(),
    },
    Step {
        to: 7,
        run: |tx| tx.create_tables(),
    },
];

/// Runs that were given up before there was a list of dead letters stand in it from now on.
fn list_poisoned(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    for ((tenant, run), row) in tx.scan(&POISONED_RUNS, &(), None, usize::MAX)? {
        let dead = DeadStep {
            job: row.job,
            at: row.at,
            deaths: limits::DAEMON_DEATHS_MAX,
        };
        tx.put(&DEAD_STEPS, &(tenant, run, row.step), &dead)?;
    }
    Ok(())
}

fn format_key() -> (String,) {
    ("format".to_owned(),)
}

/// The format number in a file; `None` in a new one.
pub(super) fn format_of(snapshot: &ReadTransaction) -> Result<Option<u32>, StoreError> {
    number_in_meta(snapshot, &format_key()).map(|number| number.map(as_format))
}

fn as_format(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn number_in_meta(snapshot: &ReadTransaction, key: &(String,)) -> Result<Option<u64>, StoreError> {
    let definition: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new(META.name());
    let table = match snapshot.open_table(definition) {
        Ok(table) => table,
        Err(TableError::TableDoesNotExist(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let key = key.encode();
    let Some(value) = table.get(key.as_slice())? else {
        return Ok(None);
    };
    let (_, Number(number)) = META.read_row(&key, value.value())?;
    Ok(Some(number))
}

/// Migrates the store of a directory whose format is older, before anybody opens it to work: a large one takes its time. The
/// caller has the format's lock alone.
pub fn migrate_files(directory: &StateDirectory, now: Now) -> Result<(), StoreError> {
    let database = backup::open_to_change(&directory.store_file())?;
    bring_up(&database, now, directory.root())?;
    database.close()?;
    Ok(())
}

/// Makes the tables of a new file, migrates an older one, refuses a newer one in words.
///
/// An older one is copied first, to a file of its own in `directory`; the older ductor can go on with it.
pub(super) fn bring_up(database: &Database, now: Now, directory: &Path) -> Result<(), StoreError> {
    let snapshot = database.begin_read()?;
    match format_of(&snapshot)? {
        Some(FORMAT) => return Ok(()),
        Some(found) if found > FORMAT => return Err(StoreError::TooNew { found, known: FORMAT }),
        Some(found) => {
            let copy = keep_a_copy(&snapshot, found, directory)?;
            tracing::info!(
                "the store has format {found} and is brought to {FORMAT}; {copy} keeps it as it was"
            );
        }
        None => {}
    }
    drop(snapshot);
    raise(database, now)
}

/// Copies the store as it is before a migration, once: a migration that was cut off finds its copy.
fn keep_a_copy(snapshot: &ReadTransaction, found: u32, directory: &Path) -> Result<String, StoreError> {
    let sequence = number_in_meta(snapshot, &("sequence".to_owned(),))?.unwrap_or(0);
    let name = format!("ductor.format-{found}.{sequence}.redb");
    let path = directory.join(&name);
    if path.exists() {
        return Ok(name);
    }
    let blobs = Blobs::of_state(directory, Faults::default());
    let _kept = blobs.keep_all()?;
    match backup::write_snapshot(snapshot, &blobs, &path) {
        Ok(_) => Ok(name),
        Err(error) => Err(StoreError::io(&format!(
            "it has format {found}, and the copy that is kept before it is brought to {FORMAT} failed: {error}"
        ))),
    }
}

/// Runs the steps that are missing, in one transaction.
pub(super) fn raise(database: &Database, now: Now) -> Result<(), StoreError> {
    let transaction = database.begin_write()?;
    let mut tx = Tx::new(&transaction, now);
    let found = tx
        .get(&META, &format_key())?
        .map_or(0, |number| as_format(number.0));
    for step in STEPS.iter().filter(|step| step.to > found) {
        (step.run)(&mut tx)?;
    }
    tx.put(&META, &format_key(), &Number(u64::from(FORMAT)))?;
    drop(tx);
    transaction.commit()?;
    Ok(())
}

/// Writes a format number of another time. Only for tests of refusals and migrations.
#[cfg(debug_assertions)]
pub fn pretend_format(path: &Path, number: u64) -> Result<(), StoreError> {
    let database = Database::builder().create(path)?;
    let transaction = database.begin_write()?;
    {
        let definition: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new(META.name());
        let mut table = transaction.open_table(definition)?;
        let key = format_key().encode();
        table.insert(key.as_slice(), codec::encode(&Number(number)).as_slice())?;
    }
    transaction.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_lead_to_the_current_format_without_a_gap() {
        let reached: Vec<u32> = STEPS.iter().map(|step| step.to).collect();
        let all: Vec<u32> = (1..=FORMAT).collect();
        assert_eq!(reached, all);
    }
}
