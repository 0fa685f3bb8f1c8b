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

/// So many rows for each that is wanted are gone through at most.
const PASSED_OVER: usize = 2;

/// A row as bytes: key, value.
pub type RawRow = (Vec<u8>, Vec<u8>);

/// Reads. `Tx` and `ReadTx` differ only in the raw calls.
pub trait Rows {
    /// Looks at the bytes under `key`, where they lie.
    #[doc(hidden)]
    fn raw_look<T>(
        &mut self,
        table: usize,
        key: &[u8],
        look: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, StoreError>;

    /// Looks at up to `limit` rows from the first key to the last, both included, in order.
    #[doc(hidden)]
    fn raw_span<T>(
        &mut self,
        table: usize,
        span: (&[u8], &[u8]),
        limit: usize,
        look: impl FnMut(&[u8], &[u8]) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError>;

    /// True when this transaction itself has moved a number of `meta`: it may still be rolled back, and then the same number
    /// comes again and means something else.
    fn has_moved(&self, _number: &str) -> bool {
        false
    }

    /// The bytes under `key`.
    fn raw_get(&mut self, table: usize, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.raw_look(table, key, <[u8]>::to_vec)
    }

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
        let found = self.raw_look(table.index, &key, |value| table.read_row(&key, value))?;
        Ok(found.transpose()?.map(|(_, record)| record))
    }

    /// The records under these keys, which are in order: rows between the first and the last are gone through, rather than
    /// looked up one by one, unless there are too many of others.
    fn get_all<K: Key, R: Record>(
        &mut self,
        table: &Table<K, R>,
        keys: &[K],
    ) -> Result<Vec<Option<R>>, StoreError> {
        let encoded: Vec<Vec<u8>> = keys.iter().map(Key::encode).collect();
        debug_assert!(encoded.is_sorted(), "keys are in order");
        let (Some(first), Some(last)) = (encoded.first(), encoded.last()) else {
            return Ok(Vec::new());
        };
        let limit = keys.len() * PASSED_OVER;
        let mut all: Vec<Option<R>> = keys.iter().map(|_| None).collect();
        let mut at = 0;
        let passed = self.raw_span(table.index, (first, last), limit, |key, value| {
            while encoded.get(at).is_some_and(|wanted| wanted.as_slice() < key) {
                at += 1;
            }
            if encoded.get(at).is_some_and(|wanted| wanted == key) {
                all[at] = Some(table.read_row(key, value)?.1);
                at += 1;
            }
            Ok(())
        })?;
        if passed.len() == limit {
            for (key, place) in keys.iter().zip(&mut all).skip(at) {
                *place = self.get(table, key)?;
            }
        }
        Ok(all)
    }

    /// True if there is a row under `key`, readable or not.
    fn has<K: Key, R>(&mut self, table: &Table<K, R>, key: &K) -> Result<bool, StoreError> {
        Ok(self.raw_look(table.index, &key.encode(), |_| ())?.is_some())
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
