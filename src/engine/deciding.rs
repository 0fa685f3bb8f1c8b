//! A decision from the question to what is written: judged over one snapshot, beside others, then written in one change where
//! what was read still holds. `router` decides for the faces, `http_steps` for steps of runs, both through here.

use std::sync::Arc;

use super::changes::remember::{Asked, Told};
use super::changes::routing::route::{self, Judged, Routed, Wish};
use super::changes::routing::world::{StoreWorld, Tenancy};
use super::changes::routing::write::Written;
use super::core::Engine;
use crate::domain::routing::pass::Request;
use crate::store::{ChangeError, StoreError};
use crate::words::ids::DecisionId;
use crate::words::time::Micros;

/// The store did not answer.
#[derive(Debug, thiserror::Error)]
pub enum RouterError {
    /// A read.
    #[error(transparent)]
    Read(#[from] StoreError),
    /// A change.
    #[error(transparent)]
    Change(#[from] ChangeError),
}

/// Decides over one snapshot; nothing is written.
pub async fn judge(engine: &Engine, tenancy: Arc<Tenancy>, wish: Wish) -> Result<Judged, StoreError> {
    judge_for(engine, tenancy, wish, false).await
}

/// The same, and all is drawn up that can be made of it before it is written.
pub(super) async fn draw_up(
    engine: &Engine,
    tenancy: Arc<Tenancy>,
    wish: Wish,
) -> Result<Judged, StoreError> {
    judge_for(engine, tenancy, wish, true).await
}

async fn judge_for(
    engine: &Engine,
    tenancy: Arc<Tenancy>,
    wish: Wish,
    to_write: bool,
) -> Result<Judged, StoreError> {
    let (shelf, now) = (engine.routing.clone(), Micros::from(engine.now().wall));
    let began = tokio::time::Instant::now();
    let judged = engine
        .read(move |tx| {
            let world = StoreWorld::new(tx, &shelf, &tenancy)?;
            let judged = route::judge(&world, &wish, now)?;
            Ok(if to_write {
                judged.drawn_up(&world, &wish)
            } else {
                judged
            })
        })
        .await;
    engine.metrics.routing.observe("judge", began.elapsed());
    judged
}

/// Decides, and writes all that follows.
pub async fn route(
    engine: &Engine,
    tenancy: Tenancy,
    request: Request,
    mut asked: Asked<Routed>,
) -> Result<Told<Routed>, RouterError> {
    let tenancy = Arc::new(tenancy);
    let wish = Wish {
        asked_at: Micros::from(engine.now().wall),
        ..Wish::fresh(request, DecisionId::fresh())
    };
    let entrance = wish.entrance(tenancy.tenant);
    let judged = if engine.routing.rivalry.is_quiet(entrance) {
        let judged = draw_up(engine, Arc::clone(&tenancy), wish.clone()).await?;
        if let Err(no) = judged.outcome {
            return Ok(Told::Now(Routed::Not(no), None));
        }
        Some(Arc::new(judged))
    } else {
        None
    };
    // Taken apart here in the end, and not in the writer's turn.
    let _kept = judged.clone();
    let shelf = engine.routing.clone();
    let began = tokio::time::Instant::now();
    let told = engine
        .store
        .change("route", move |tx| {
            asked.once(tx, |tx| {
                route::commit(tx, &shelf, &tenancy, &wish, judged.as_deref())
            })
        })
        .await?;
    engine.metrics.routing.observe("commit", began.elapsed());
    if let Told::Now(Routed::Decided(written), _) = &told {
        note(engine, written);
    }
    Ok(told)
}

/// Counts a decision and says what people should know of it.
pub(super) fn note(engine: &Engine, written: &Written) {
    let decision = &written.decision;
    let name = decision
        .recipient_pool
        .as_ref()
        .map_or("", |chosen| chosen.name.as_str());
    engine.metrics.routing.decided(name, decision.outcome.word());
    engine.metrics.routing.rule_errors(name, written.rule_errors);
    for (id, code) in &written.zero_match {
        engine.metrics.routing.zero_match(code);
        tracing::debug!(recipient_pool = %id, code, "every candidate of a pool was rejected by one code");
    }
}
