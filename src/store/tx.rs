//! The two kinds of transaction: a snapshot to read from, and the writer's own.

use redb::{
    ReadOnlyTable, ReadTransaction, ReadableTable, ReadableTableMetadata, Table as RawTable, TableDefinition,
    WriteTransaction,
};

use super::codec::{self, Record};
use super::error::StoreError;
use super::feed::{Counted, FeedItem};
use super::keys::Key;
use super::rows::Number;
use super::scribe::{Late, MadeRow, Scribe};
use super::table::{RawRow, Rows, Table};
use super::tables::{META, NAMES};
use crate::words::time::Now;

type Bytes = &'static [u8];

fn definition(index: usize) -> TableDefinition<'static, Bytes, Bytes> {
    TableDefinition::new(NAMES[index])
}

/// Why a change could not run to its end. Its transaction is rolled back; nothing of it is kept.
#[derive(Debug, Clone, thiserror::Error)]
#[error(transparent)]
pub struct Abort(#[from] pub StoreError);

/// A snapshot. It lives as long as one call of [`super::Store::read`] and never longer.
pub struct ReadTx {
    transaction: ReadTransaction,
    tables: Vec<Option<ReadOnlyTable<Bytes, Bytes>>>,
}

impl ReadTx {
    pub(super) fn new(transaction: ReadTransaction) -> ReadTx {
        ReadTx {
            transaction,
            tables: NAMES.iter().map(|_| None).collect(),
        }
    }

    /// The snapshot itself, for a copy of everything.
    pub(super) fn snapshot(&self) -> &ReadTransaction {
        &self.transaction
    }

    /// Rows of all tables.
    pub fn count_rows(&mut self) -> Result<u64, StoreError> {
        let mut rows = 0;
        for index in 0..NAMES.len() {
            rows += self.table(index)?.len()?;
        }
        Ok(rows)
    }

    fn table(&mut self, index: usize) -> Result<&ReadOnlyTable<Bytes, Bytes>, StoreError> {
        let cell = &mut self.tables[index];
        if cell.is_none() {
            *cell = Some(self.transaction.open_table(definition(index))?);
        }
        Ok(cell.as_ref().expect("just opened"))
    }
}

impl Rows for ReadTx {
    fn raw_look<T>(
        &mut self,
        table: usize,
        key: &[u8],
        look: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.table(table)?.get(key)?.map(|guard| look(guard.value())))
    }

    fn raw_span<T>(
        &mut self,
        table: usize,
        span: (&[u8], &[u8]),
        limit: usize,
        look: impl FnMut(&[u8], &[u8]) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        walk(self.table(table)?, span, limit, look)
    }

    fn raw_scan(
        &mut self,
        table: usize,
        prefix: &[u8],
        after: Option<&[u8]>,
        descending: bool,
        limit: usize,
    ) -> Result<Vec<RawRow>, StoreError> {
        scan(self.table(table)?, prefix, after, descending, limit)
    }
}

/// The writer's transaction: typed reads and writes, counters, the feed. `now` was read before it began.
pub struct Tx<'t> {
    transaction: &'t WriteTransaction,
    tables: Vec<Option<RawTable<'t, Bytes, Bytes>>>,
    now: Now,
    feed: Vec<FeedItem>,
    counted: Vec<Counted>,
    rows_written: u64,
    bytes_written: usize,
    /// Numbers of `meta` that were moved.
    moved: Vec<String>,
    scribe: Option<&'t Scribe>,
    /// Rows that are being made, and the tables that wait for them.
    late: Vec<Late>,
    late_tables: Vec<usize>,
}

impl std::fmt::Debug for Tx<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Tx")
            .field("rows_written", &self.rows_written)
            .finish_non_exhaustive()
    }
}

impl<'t> Tx<'t> {
    pub(super) fn new(transaction: &'t WriteTransaction, now: Now) -> Tx<'t> {
        Tx {
            transaction,
            tables: NAMES.iter().map(|_| None).collect(),
            now,
            feed: Vec::new(),
            counted: Vec::new(),
            rows_written: 0,
            bytes_written: 0,
            moved: Vec::new(),
            scribe: None,
            late: Vec::new(),
            late_tables: Vec::new(),
        }
    }

    /// The same with a second pair of hands.
    pub(super) fn with(mut self, scribe: &'t Scribe) -> Tx<'t> {
        self.scribe = Some(scribe);
        self
    }

    /// Puts rows of these tables, of about so many bytes, that are made beside this turn; they are there for whoever looks at
    /// one of the tables, and before the commit. A panic while they are made is one of the change.
    pub fn put_late(
        &mut self,
        tables: &[usize],
        about: usize,
        rows: impl FnOnce() -> Vec<MadeRow> + Send + 'static,
    ) -> Result<(), StoreError> {
        self.bytes_written += about;
        let Some(scribe) = self.scribe else {
            return self.put_made(rows());
        };
        self.late.push(scribe.make(rows));
        for table in tables {
            if !self.late_tables.contains(table) {
                self.late_tables.push(*table);
            }
        }
        Ok(())
    }

    /// Waits for the rows that are being made, and puts them.
    pub fn settle(&mut self) -> Result<(), StoreError> {
        self.late_tables.clear();
        for late in std::mem::take(&mut self.late) {
            self.put_made(late.rows())?;
        }
        Ok(())
    }

    fn put_made(&mut self, rows: Vec<MadeRow>) -> Result<(), StoreError> {
        for MadeRow { table, key, value } in rows {
            self.rows_written += 1;
            self.table(table)?.insert(key.as_slice(), value.as_slice())?;
        }
        Ok(())
    }

    /// Opens every table once, so that all of them exist in a new file.
    pub(super) fn create_tables(&mut self) -> Result<(), StoreError> {
        for index in 0..NAMES.len() {
            self.table(index)?;
        }
        Ok(())
    }

    fn table(&mut self, index: usize) -> Result<&mut RawTable<'t, Bytes, Bytes>, StoreError> {
        if self.late_tables.contains(&index) {
            self.settle()?;
        }
        let cell = &mut self.tables[index];
        if cell.is_none() {
            *cell = Some(self.transaction.open_table(definition(index))?);
        }
        Ok(cell.as_mut().expect("just opened"))
    }

    /// Both clocks, as they stood before the transaction began.
    pub fn now(&self) -> Now {
        self.now
    }

    /// Rows written or removed so far: what the row budget counts.
    pub fn rows_written(&self) -> u64 {
        self.rows_written
    }

    /// Bytes of their keys and values.
    pub fn bytes_written(&self) -> usize {
        self.bytes_written
    }

    /// Writes `record` under `key`.
    pub fn put<K: Key, R: Record>(
        &mut self,
        table: &Table<K, R>,
        key: &K,
        record: &R,
    ) -> Result<(), StoreError> {
        let key = key.encode();
        let value = codec::encode(record);
        self.rows_written += 1;
        self.bytes_written += key.len() + value.len();
        self.table(table.index)?
            .insert(key.as_slice(), value.as_slice())?;
        Ok(())
    }

    /// Removes the row under `key`; false if there was none.
    pub fn remove<K: Key, R: Record>(&mut self, table: &Table<K, R>, key: &K) -> Result<bool, StoreError> {
        let key = key.encode();
        let existed = self.table(table.index)?.remove(key.as_slice())?.is_some();
        self.rows_written += u64::from(existed);
        self.bytes_written += if existed { key.len() } else { 0 };
        Ok(existed)
    }

    /// Removes the row under a raw key, whether it can be read or not.
    pub(super) fn remove_key(&mut self, table: usize, key: &[u8]) -> Result<(), StoreError> {
        let existed = self.table(table)?.remove(key)?.is_some();
        self.rows_written += u64::from(existed);
        self.bytes_written += if existed { key.len() } else { 0 };
        Ok(())
    }

    /// Puts raw bytes under a raw key. Only for tests that damage a row on purpose.
    #[cfg(debug_assertions)]
    pub fn damage<K: Key, R: Record>(
        &mut self,
        table: &Table<K, R>,
        key: &K,
        bytes: &[u8],
    ) -> Result<(), StoreError> {
        let key = key.encode();
        self.rows_written += 1;
        self.table(table.index)?.insert(key.as_slice(), bytes)?;
        Ok(())
    }

    /// The next number of a counter; the first is 1.
    pub fn next_number(&mut self, counter: &str) -> Result<u64, StoreError> {
        let key = (counter.to_owned(),);
        let next = self.get(&META, &key)?.map_or(1, |number| number.0 + 1);
        self.write_number(counter, next)?;
        if !self.has_moved(counter) {
            self.moved.push(counter.to_owned());
        }
        Ok(next)
    }

    /// Writes a number of `meta`. It is no row of the budget: all of them stand in one page.
    pub(super) fn write_number(&mut self, name: &str, number: u64) -> Result<(), StoreError> {
        let (key, value) = ((name.to_owned(),).encode(), codec::encode(&Number(number)));
        self.bytes_written += key.len() + value.len();
        self.table(META.index)?.insert(key.as_slice(), value.as_slice())?;
        Ok(())
    }

    /// Tells the feed what changed. It is written with its cause, in the same commit.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "an id or a reference to one, as the caller has it"
    )]
    pub fn tell(&mut self, topic: &str, id: impl ToString, version: u64, detail: Option<&str>) {
        self.feed.push(FeedItem {
            topic: topic.to_owned(),
            id: id.to_string(),
            version,
            detail: detail.map(str::to_owned),
        });
    }

    /// True when the feed was told of this by this change, or by one that is written with it.
    pub fn has_told(&self, topic: &str) -> bool {
        self.feed.iter().any(|item| item.topic == topic)
    }

    /// Counts an end, if and when this commit lands.
    pub(super) fn count(&mut self, end: Counted) {
        self.counted.push(end);
    }

    pub(super) fn take_counted(&mut self) -> Vec<Counted> {
        std::mem::take(&mut self.counted)
    }

    pub(super) fn take_feed(&mut self) -> Vec<FeedItem> {
        std::mem::take(&mut self.feed)
    }

    pub(super) fn is_dirty(&self) -> bool {
        self.rows_written > 0
    }
}

impl Rows for Tx<'_> {
    fn has_moved(&self, number: &str) -> bool {
        self.moved.iter().any(|moved| moved == number)
    }

    fn raw_look<T>(
        &mut self,
        table: usize,
        key: &[u8],
        look: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.table(table)?.get(key)?.map(|guard| look(guard.value())))
    }

    fn raw_span<T>(
        &mut self,
        table: usize,
        span: (&[u8], &[u8]),
        limit: usize,
        look: impl FnMut(&[u8], &[u8]) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        walk(&*self.table(table)?, span, limit, look)
    }

    fn raw_scan(
        &mut self,
        table: usize,
        prefix: &[u8],
        after: Option<&[u8]>,
        descending: bool,
        limit: usize,
    ) -> Result<Vec<RawRow>, StoreError> {
        scan(&*self.table(table)?, prefix, after, descending, limit)
    }
}

fn walk<R: ReadableTable<Bytes, Bytes>, T>(
    table: &R,
    (first, last): (&[u8], &[u8]),
    limit: usize,
    mut look: impl FnMut(&[u8], &[u8]) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let rows = table.range::<&[u8]>(first..=last)?;
    rows.take(limit)
        .map(|row| {
            let (key, value) = row?;
            look(key.value(), value.value())
        })
        .collect()
}

/// The first key after every key that begins with `prefix`; `None` if there is none.
fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 255 {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}

fn scan<T: ReadableTable<Bytes, Bytes>>(
    table: &T,
    prefix: &[u8],
    after: Option<&[u8]>,
    descending: bool,
    limit: usize,
) -> Result<Vec<RawRow>, StoreError> {
    use std::ops::Bound;
    let end = prefix_end(prefix);
    let upper = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    let range: (Bound<&[u8]>, Bound<&[u8]>) = match (after, descending) {
        (None, _) => (Bound::Included(prefix), upper),
        (Some(key), false) => (Bound::Excluded(key), upper),
        (Some(key), true) => (Bound::Included(prefix), Bound::Excluded(key)),
    };
    let rows = table.range::<&[u8]>(range)?;
    let own =
        |row: Result<(redb::AccessGuard<'_, Bytes>, redb::AccessGuard<'_, Bytes>), redb::StorageError>| {
            let (key, value) = row?;
            Ok((key.value().to_vec(), value.value().to_vec()))
        };
    if descending {
        rows.rev().take(limit).map(own).collect()
    } else {
        rows.take(limit).map(own).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::prefix_end;

    #[test]
    fn a_prefix_ends_before_the_next_sibling() {
        assert_eq!(prefix_end(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(prefix_end(&[1, 255]), Some(vec![2]));
        assert_eq!(prefix_end(&[255, 255]), None);
        assert_eq!(prefix_end(b""), None);
    }
}
