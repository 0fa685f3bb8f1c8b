//! Which blobs the rows name: the values of runs, and the answers that runs have not folded yet.
//!
//! The rows are the only record of it. They are walked a page at a time, each page on a snapshot of its own, so that a walk
//! through a large store holds no old pages back. A row that begins to name a blob while the walk is behind it cannot be
//! missed by a sweep: whoever writes it has made the blob young before.

use std::collections::BTreeMap;

use super::error::StoreError;
use super::table::Rows;
use super::tables::{FACTS, VALUES};
use crate::domain::payload::{Payload, Sha256Name};
use crate::store::graph_rows::StoredFact;

/// Rows read at once.
const PAGE: usize = 500;

/// Where a walk is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In the values, after this key.
    Values(Option<Vec<u8>>),
    /// In the facts, after this key.
    Facts(Option<Vec<u8>>),
}

impl Place {
    /// The beginning.
    pub const START: Place = Place::Values(None);
}

/// One page of a walk.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Blobs and their sizes, as the rows say.
    pub found: Vec<(Sha256Name, u64)>,
    /// Rows that cannot be read: nobody knows what they name.
    pub unreadable: usize,
}

impl Names {
    fn add(&mut self, payload: &Payload) {
        if let Payload::Blob { sha256, bytes } = payload {
            self.found.push((*sha256, *bytes));
        }
    }
}

/// The page at `place`, and where the next one is.
pub fn page(rows: &mut impl Rows, place: &Place) -> Result<(Names, Option<Place>), StoreError> {
    let mut names = Names::default();
    let next = match place {
        Place::Values(after) => {
            let page = rows.scan_each(&VALUES, &(), after.as_deref(), PAGE)?;
            let last = page.last().map(|row| row.key.clone());
            for row in page {
                match row.row {
                    Ok((_, value)) => names.add(&value.0),
                    Err(_) => names.unreadable += 1,
                }
            }
            Some(last.map_or(Place::Facts(None), |last| Place::Values(Some(last))))
        }
        Place::Facts(after) => {
            let page = rows.scan_each(&FACTS, &(), after.as_deref(), PAGE)?;
            let last = page.last().map(|row| row.key.clone());
            for row in page {
                match row.row {
                    Ok((_, StoredFact::Resume { value, .. })) => names.add(&value),
                    Ok(_) => {}
                    Err(_) => names.unreadable += 1,
                }
            }
            last.map(|last| Place::Facts(Some(last)))
        }
    };
    Ok((names, next))
}

/// All blobs that the readable rows of one snapshot name.
pub(super) fn all(rows: &mut impl Rows) -> Result<BTreeMap<Sha256Name, u64>, StoreError> {
    let mut named = BTreeMap::new();
    let mut place = Some(Place::START);
    while let Some(here) = place {
        let (part, next) = page(rows, &here)?;
        named.extend(part.found);
        place = next;
    }
    Ok(named)
}
