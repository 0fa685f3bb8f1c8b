//! The desk for bundles: documents are compared over a snapshot, and applied as they were planned there.

use super::changes::bundles::{self, No, Planned, Wish};
use super::changes::declared::Wisher;
use super::changes::remember::{Asked, Told};
use super::changes::routing::world::Tenancy;
use super::core::Engine;
use crate::domain::routing::bundle::{Document, Topology};
use crate::store::{ChangeError, StoreError};
use crate::words::ids::{RuleId, TenantId};
use crate::words::time::Micros;

/// What became of an application.
pub type Applied = Result<Planned, No>;

/// Everything that a tenant has declared.
pub async fn topology(engine: &Engine, tenant: TenantId) -> Result<Result<Topology, No>, StoreError> {
    engine.read(move |tx| bundles::topology(tx, tenant)).await
}

/// What a document would change.
pub async fn look(
    engine: &Engine,
    tenancy: Tenancy,
    document: Document,
    wish: Wish,
) -> Result<Result<Planned, No>, StoreError> {
    let (now, egress) = (Micros::from(engine.now().wall), engine.book().egress.clone());
    engine
        .read(move |tx| {
            // Ids of all kinds of objects are made alike.
            let mut fresh = || RuleId::fresh().0;
            bundles::look(tx, &tenancy, &document, &wish, &egress, (now, &mut fresh))
        })
        .await
}

/// Writes what was planned, unless something was declared since.
pub async fn apply(
    engine: &Engine,
    by: Wisher,
    bundle: String,
    planned: Planned,
    mut asked: Asked<Applied>,
) -> Result<Told<Applied>, ChangeError> {
    let change = engine.store.change("apply bundle", move |tx| {
        asked.once(tx, |tx| {
            let applied = bundles::apply(tx, &by, &bundle, &planned)?;
            Ok(applied.map(|()| planned.clone()))
        })
    });
    change.await
}
