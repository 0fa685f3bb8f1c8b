//! What the routes of all kinds of declared objects do alike: one that is changed has an id, a version and somebody who wants it;
//! a list is walked by pages, in the order of the ids, which is that of their creation.

use std::str::FromStr;

use axum::response::Response;
use serde_json::{Map, Value};

use super::app::App;
use super::caller::Caller;
use super::error::Problem;
use super::once::Once;
use super::paging::{Page, Paging};
use super::routing::{self, change, guarded_fields, guarded_query, wisher};
use crate::engine::changes::declared::{Outcome, Wisher};
use crate::store::codec::Record;
use crate::store::keys::Key;
use crate::store::table::Table;
use crate::store::{Abort, Rows, StoreError, Tx};
use crate::words::ids::TenantId;
use crate::words::limits;

/// A kind of declared objects.
pub(super) trait Declared: 'static {
    /// What names one.
    type Id: Clone + FromStr + Send + 'static;
    /// As codes call it.
    const KIND: &'static str;

    /// The version of one.
    fn version(tx: &mut Tx<'_>, tenant: TenantId, id: &Self::Id) -> Result<Option<u64>, StoreError>;
}

/// One object, and who wants something of it.
pub(super) struct Wanted<D: Declared> {
    by: Wisher,
    id: D::Id,
}

impl<D: Declared> Wanted<D> {
    /// What is no id names nothing.
    pub(super) fn of(app: &App, caller: &Caller, text: &str) -> Result<Wanted<D>, Problem> {
        Ok(Wanted {
            by: wisher(app, caller),
            id: routing::id_of::<D::Id>(D::KIND, text)?,
        })
    }

    /// Changes it, if it has the version that was expected.
    pub(super) async fn change<F>(
        self,
        app: &App,
        once: Once,
        name: &'static str,
        mut work: F,
    ) -> Result<Response, Problem>
    where
        F: FnMut(&mut Tx<'_>, &Wisher, D::Id) -> Result<Outcome, Abort> + Send + 'static,
    {
        let Wanted { by, id } = self;
        let (tenant, of) = (by.tenant, id.clone());
        let version = move |tx: &mut Tx<'_>| D::version(tx, tenant, &of);
        let work = move |tx: &mut Tx<'_>| work(tx, &by, id.clone());
        change(app, once, name, version, work).await
    }

    /// Changes the fields that are sent.
    pub(super) async fn patch<F>(
        self,
        app: &App,
        once: Once,
        body: &[u8],
        (name, mut work): (&'static str, F),
    ) -> Result<Response, Problem>
    where
        F: FnMut(&mut Tx<'_>, &Wisher, D::Id, Map<String, Value>) -> Result<Outcome, Abort> + Send + 'static,
    {
        let (once, sent) = guarded_fields(once, body)?;
        let work = move |tx: &mut Tx<'_>, by: &Wisher, id: D::Id| work(tx, by, id, sent.clone());
        self.change(app, once, name, work).await
    }

    /// Removes it; the version that is expected stands in the query or in the body.
    pub(super) async fn delete<F>(
        self,
        app: &App,
        once: Once,
        (pairs, body): (&[(String, String)], &[u8]),
        (name, work): (&'static str, F),
    ) -> Result<Response, Problem>
    where
        F: FnMut(&mut Tx<'_>, &Wisher, D::Id) -> Result<Outcome, Abort> + Send + 'static,
    {
        let once = guarded_query(once.expecting(body)?, pairs)?;
        self.change(app, once, name, work).await
    }
}

/// The id behind which a page begins.
pub(super) fn place_of(paging: &Paging) -> Option<[u8; 16]> {
    paging.after.as_deref().and_then(|bytes| bytes.try_into().ok())
}

/// An id of bytes, and the bytes of an id.
type IdBytes<I> = (fn([u8; 16]) -> I, fn(I) -> [u8; 16]);

/// A page of those rows of a tenant that `shown` shows; at most `most` are looked at.
pub(super) fn page<R: Rows, I: Copy, T: Record>(
    rows: &mut R,
    table: &Table<(TenantId, I), T>,
    (tenant, paging, most): (TenantId, &Paging, usize),
    (id_of, bytes_of): IdBytes<I>,
    mut shown: impl FnMut(&mut R, I, &T) -> Result<Option<Value>, StoreError>,
) -> Result<Page<Value>, StoreError>
where
    (TenantId, I): Key,
{
    let scan = if paging.ascending {
        Rows::scan
    } else {
        Rows::scan_back
    };
    let mut place = place_of(paging).map(|id| (tenant, id_of(id)));
    let (mut found, mut last, mut looked) = (Vec::new(), None, 0);
    while looked < most {
        let batch = scan(rows, table, &(tenant,), place.as_ref(), limits::PAGE_DEFAULT)?;
        if batch.is_empty() {
            break;
        }
        for ((_, id), row) in batch {
            looked += 1;
            place = Some((tenant, id));
            let Some(view) = shown(rows, id, &row)? else {
                continue;
            };
            if found.len() == paging.size {
                return Ok(paging.page(found, last.as_ref().map(<[u8; 16]>::as_slice)));
            }
            found.push(view);
            last = Some(bytes_of(id));
        }
    }
    Ok(paging.page(found, None))
}
