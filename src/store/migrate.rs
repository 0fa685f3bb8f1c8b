//! The format of the file, and the numbered steps that lead from an older one to the current one.

use redb::Database;

#[cfg(debug_assertions)]
use super::codec;
use super::error::StoreError;
#[cfg(debug_assertions)]
use super::keys::Key;
use super::rows::Number;
use super::table::Rows;
use super::tables::META;
use super::tx::Tx;
use crate::words::time::Now;

/// The format that this binary writes. A change of it comes with a step below.
///
/// 2 has the tables of retries, marks and boots, and more variants at the end of some records; 3 the tables that several
/// daemons need between them. Older ones are read as they are.
pub const FORMAT: u32 = 3;

/// Makes the tables of a new file, migrates an older one, refuses a newer one in words.
pub(super) fn bring_up(database: &Database, now: Now) -> Result<(), StoreError> {
    let transaction = database.begin_write()?;
    let mut tx = Tx::new(&transaction, now);
    let key = ("format".to_owned(),);
    let found = tx
        .get(&META, &key)?
        .map(|number: Number| u32::try_from(number.0).unwrap_or(u32::MAX));
    match found {
        Some(FORMAT) => {
            drop(tx);
            drop(transaction.abort());
            Ok(())
        }
        Some(found) if found > FORMAT => Err(StoreError::TooNew { found, known: FORMAT }),
        Some(_) | None => {
            tx.create_tables()?;
            tx.put(&META, &key, &Number(u64::from(FORMAT)))?;
            drop(tx);
            transaction.commit()?;
            Ok(())
        }
    }
}

/// Writes a format number of the future. Only for the test of the refusal.
#[cfg(debug_assertions)]
pub fn pretend_format(path: &std::path::Path, number: u64) -> Result<(), StoreError> {
    let database = Database::builder().create(path)?;
    let transaction = database.begin_write()?;
    {
        let definition: redb::TableDefinition<'_, &[u8], &[u8]> = redb::TableDefinition::new(META.name());
        let mut table = transaction.open_table(definition)?;
        let key = ("format".to_owned(),).encode();
        table.insert(key.as_slice(), codec::encode(&Number(number)).as_slice())?;
    }
    transaction.commit()?;
    Ok(())
}
