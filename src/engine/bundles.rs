//! The desk for bundles: documents are compared over a snapshot, and applied as they were planned there; by somebody who asks,
//! or by a daemon that keeps a file in force.

use super::changes::audit::{self, By};
use super::changes::bundles::{self, No, Planned, Wish};
use super::changes::declared::Wisher;
use super::changes::remember::{Asked, Told};
use super::changes::routing::world::Tenancy;
use super::core::Engine;
use crate::domain::routing::bundle::{Action, Document, Topology};
use crate::store::routing_rows::BundleLoad;
use crate::store::tables::BUNDLE_LOADS;
use crate::store::{ChangeError, Rows, StoreError};
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

/// What a daemon has put in force last as the bundle of a name.
pub async fn loaded(
    engine: &Engine,
    tenant: TenantId,
    bundle: String,
) -> Result<Option<BundleLoad>, StoreError> {
    engine
        .read(move |tx| tx.get(&BUNDLE_LOADS, &(tenant, bundle.clone())))
        .await
}

/// Writes what was planned for a file that this daemon keeps in force, and that it was this one.
pub async fn keep(
    engine: &Engine,
    tenant: TenantId,
    bundle: String,
    digest: String,
    planned: Planned,
) -> Result<Result<(), No>, ChangeError> {
    let node = engine.node.clone();
    let by = Wisher {
        tenant,
        principal: format!("daemon {node}"),
        egress: engine.book().egress.clone(),
    };
    let change = engine.store.change("keep bundle", move |tx| {
        if let Err(no) = bundles::apply(tx, &by, &bundle, &planned)? {
            return Ok(Err(no));
        }
        let key = (tenant, bundle.clone());
        let before = tx.get(&BUNDLE_LOADS, &key)?;
        if before.is_none_or(|before| before.digest != digest) {
            let load = BundleLoad {
                node: node.clone(),
                digest: digest.clone(),
                at: tx.now().wall,
            };
            tx.put(&BUNDLE_LOADS, &key, &load)?;
        }
        if planned.plan.changes.iter().any(|one| one.action != Action::Noop) {
            let by = By {
                tenant,
                who: by.principal.clone(),
                key: None,
                request: String::new(),
                what: "applyBundle".to_owned(),
                thing: format!("bundle {bundle}"),
            };
            let (before, after) = (&planned.plan.digest_current, &planned.plan.digest_after);
            audit::write(tx, &by, None, Some(before), Some(after))?;
        }
        Ok(Ok(()))
    });
    change.await
}
