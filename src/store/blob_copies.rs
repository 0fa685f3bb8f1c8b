//! Blobs inside a backup, so that it stays one file: a table of pieces, (name, number of the piece) → bytes.
//!
//! A store has no such table: a restore makes files of it and drops it. A blob that is damaged is copied as it is, like a
//! row that cannot be read; the check of the backup says so.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};

use redb::{
    Database, ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition, TableError, WriteTransaction,
};
use sha2::{Digest, Sha256};

use super::blobs::{BlobError, Blobs};
use super::check::Findings;
use super::error::StoreError;
use crate::domain::payload::Sha256Name;

/// The name of the table; it stays reserved.
pub(super) const BLOBS_NAME: &str = "backup_blobs";
const BLOBS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new(BLOBS_NAME);
/// Bytes of a piece. With its key it just fits a page of the store, whose sizes are powers of two.
const PIECE_BYTES: usize = (1 << 20) - 4096;

/// Which side failed.
#[derive(Debug)]
pub(super) enum CopyFault {
    Unread(StoreError),
    Unwritten(StoreError),
}

/// The copies in a backup.
#[derive(Debug, Default)]
pub(super) struct CopiedBlobs {
    pub(super) names: BTreeSet<Sha256Name>,
    pub(super) findings: Findings,
}

fn key_of(sha256: Sha256Name, number: u32) -> [u8; 36] {
    let mut key = [0; 36];
    key[..32].copy_from_slice(&sha256.0);
    key[32..].copy_from_slice(&number.to_be_bytes());
    key
}

fn read_key(key: &[u8]) -> Option<Sha256Name> {
    let key: &[u8; 36] = key.try_into().ok()?;
    Some(Sha256Name(*key.first_chunk()?))
}

/// Copies all blobs of a state directory; without any there is no table. The lock of the blob area is held by the caller.
pub(super) fn put_in(blobs: &Blobs, transaction: &WriteTransaction) -> Result<u64, CopyFault> {
    fn unread(error: impl Into<StoreError>) -> CopyFault {
        CopyFault::Unread(error.into())
    }
    fn unwritten(error: impl Into<StoreError>) -> CopyFault {
        CopyFault::Unwritten(error.into())
    }
    let all = blobs.all().map_err(unread)?;
    if all.is_empty() {
        return Ok(0);
    }
    let mut table = transaction.open_table(BLOBS).map_err(unwritten)?;
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    for each in &all {
        let mut file = File::open(&each.path).map_err(unread)?;
        for number in 0.. {
            piece.clear();
            let mut some = (&mut file).take(PIECE_BYTES as u64);
            some.read_to_end(&mut piece).map_err(unread)?;
            if piece.is_empty() && number > 0 {
                break;
            }
            let key = key_of(each.sha256, number);
            let inserted = table.insert(key.as_slice(), piece.as_slice());
            inserted.map_err(unwritten)?;
            if piece.len() < PIECE_BYTES {
                break;
            }
        }
    }
    Ok(all.len() as u64)
}

/// Compares every copy with its name.
pub(super) fn check_in(snapshot: &ReadTransaction) -> Result<CopiedBlobs, StoreError> {
    let mut copied = CopiedBlobs::default();
    let table = match snapshot.open_table(BLOBS) {
        Ok(table) => table,
        Err(TableError::TableDoesNotExist(_)) => return Ok(copied),
        Err(error) => return Err(error.into()),
    };
    let mut open: Option<(Sha256Name, Sha256)> = None;
    for row in table.iter()? {
        let (key, piece) = row?;
        let Some(name) = read_key(key.value()) else {
            copied
                .findings
                .push(format!("{BLOBS_NAME}: a key is no name of a blob"));
            continue;
        };
        if open.as_ref().is_none_or(|(before, _)| *before != name) {
            copied.close(open.replace((name, Sha256::new())));
        }
        if let Some((_, hash)) = &mut open {
            hash.update(piece.value());
        }
    }
    copied.close(open);
    Ok(copied)
}

impl CopiedBlobs {
    fn close(&mut self, open: Option<(Sha256Name, Sha256)>) {
        let Some((sha256, hash)) = open else { return };
        self.names.insert(sha256);
        if hash.finalize().as_slice() != sha256.0 {
            let cause = "its bytes have another hash".to_owned();
            self.findings
                .push(BlobError::Damaged { sha256, cause }.to_string());
        }
    }
}

/// Makes files of the copies, and drops their table from the store that was a backup.
pub(super) fn take_out(database: &mut Database, blobs: &Blobs) -> Result<(), StoreError> {
    match database.begin_read()?.open_table(BLOBS) {
        Ok(_) => {}
        Err(TableError::TableDoesNotExist(_)) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    let transaction = database.begin_write()?;
    {
        let table = transaction.open_table(BLOBS)?;
        let mut next = table.first()?.and_then(|(key, _)| read_key(key.value()));
        while let Some(sha256) = next {
            let (first, last) = (key_of(sha256, 0), key_of(sha256, u32::MAX));
            blobs.make(sha256, |file| {
                for row in table.range(first.as_slice()..=last.as_slice())? {
                    file.write_all(row?.1.value())?;
                }
                Ok(())
            })?;
            let beyond = (
                std::ops::Bound::Excluded(last.as_slice()),
                std::ops::Bound::Unbounded,
            );
            let following = table.range::<&[u8]>(beyond)?.next().transpose()?;
            next = following.and_then(|(key, _)| read_key(key.value()));
        }
    }
    transaction.delete_table(BLOBS)?;
    transaction.commit()?;
    // The pages of the copies go back to the disk.
    database.compact().map_err(|error| StoreError::io(&error))?;
    Ok(())
}
