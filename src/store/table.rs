//! A typed table, and the reads that work the same inside a snapshot and inside a write transaction.

use std::marker::PhantomData;

use super::codec::{self, Record};
use super::error::StoreError;
use super::keys::Key;
use crate::words::ids;

/// A table of records `R` under keys `K`. All of them stand in `tables.rs`.
#[derive(Debug)]
pub struct Table<K, R> {
    pub(super) index: usize,
    pub(super) name: &'static str,
    marker: PhantomData<fn() -> (K, R)>,
}

impl<K, R> Table<K, R> {
    pub(super) const fn new(index: usize, name: &'static str) -> Table<K, R> {
        Table {
            index,
            name,
            marker: PhantomData,
        }
    }

    /// Its place among the tables, for raw scans.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The name in the file.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

impl<K: Key, R: Record> Table<K, R> {
    pub(super) fn read_row(&self, key: &[u8], value: &[u8]) -> Result<(K, R), StoreError> {
        let unreadable = |cause: String| StoreError::Unreadable {
            table: self.name,
            key: ids::hex(key),
            cause,
        };
        let typed_key = K::decode(key).ok_or_else(|| unreadable("its key is malformed".to_owned()))?;
        let record = codec::decode(value).map_err(unreadable)?;
        Ok((typed_key, record))
    }
}

/// A row as bytes: key, value.
pub type RawRow = (Vec<u8>, Vec<u8>);

/// Reads. `Tx` and `ReadTx` differ only in the two raw calls.
pub trait Rows {
    /// The bytes under `key`.
    fn raw_get(&mut self, table: usize, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Rows whose key begins with the prefix, in order.
    #[doc(hidden)]
    fn raw_scan(
        &mut self,
        table: usize,
        prefix: &[u8],
        after: Option<&[u8]>,
        descending: bool,
        limit: usize,
    ) -> Result<Vec<RawRow>, StoreError>;

    /// The record under `key`.
    fn get<K: Key, R: Record>(&mut self, table: &Table<K, R>, key: &K) -> Result<Option<R>, StoreError> {
        let key = key.encode();
        let Some(value) = self.raw_get(table.index, &key)? else {
            return Ok(None);
        };
        table.read_row(&key, &value).map(|(_, record)| Some(record))
    }

    /// True if there is a row under `key`, readable or not.
    fn has<K: Key, R>(&mut self, table: &Table<K, R>, key: &K) -> Result<bool, StoreError> {
        Ok(self.raw_get(table.index, &key.encode())?.is_some())
    }

    /// Up to `limit` rows whose keys begin with `prefix`, ascending, after the key `after`.
    fn scan<K: Key, R: Record, P: Key>(
        &mut self,
        table: &Table<K, R>,
        prefix: &P,
        after: Option<&K>,
        limit: usize,
    ) -> Result<Vec<(K, R)>, StoreError> {
        let after = after.map(Key::encode);
        let rows = self.raw_scan(table.index, &prefix.encode(), after.as_deref(), false, limit)?;
        rows.iter()
            .map(|(key, value)| table.read_row(key, value))
            .collect()
    }

    /// Up to `limit` rows whose keys begin with `prefix`, descending, before the key `before`.
    fn scan_back<K: Key, R: Record, P: Key>(
        &mut self,
        table: &Table<K, R>,
        prefix: &P,
        before: Option<&K>,
        limit: usize,
    ) -> Result<Vec<(K, R)>, StoreError> {
        let before = before.map(Key::encode);
        let rows = self.raw_scan(table.index, &prefix.encode(), before.as_deref(), true, limit)?;
        rows.iter()
            .map(|(key, value)| table.read_row(key, value))
            .collect()
    }

    /// Like [`Rows::scan`], but each row is readable or not by itself: one damaged row hides no other.
    fn scan_each<K: Key, R: Record, P: Key>(
        &mut self,
        table: &Table<K, R>,
        prefix: &P,
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<EachRow<K, R>>, StoreError> {
        let rows = self.raw_scan(table.index, &prefix.encode(), after, false, limit)?;
        Ok(rows
            .into_iter()
            .map(|(key, value)| EachRow {
                row: table.read_row(&key, &value),
                key,
            })
            .collect())
    }

    /// Like [`Rows::scan_back`], but each row is readable or not by itself.
    fn scan_each_back<K: Key, R: Record, P: Key>(
        &mut self,
        table: &Table<K, R>,
        prefix: &P,
        before: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<EachRow<K, R>>, StoreError> {
        let rows = self.raw_scan(table.index, &prefix.encode(), before, true, limit)?;
        Ok(rows
            .into_iter()
            .map(|(key, value)| EachRow {
                row: table.read_row(&key, &value),
                key,
            })
            .collect())
    }
}

/// One row of [`Rows::scan_each`].
#[derive(Debug)]
pub struct EachRow<K, R> {
    /// The key's bytes: where the next page begins.
    pub key: Vec<u8>,
    /// The row, or why it cannot be read.
    pub row: Result<(K, R), StoreError>,
}
