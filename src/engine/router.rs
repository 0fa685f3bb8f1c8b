//! The router: what the faces ask of live routing, and the loop that tries waiting work again and does what time does.
//!
//! It never polls: a commit of this daemon or another moves the sequence of the store, and the nearest timer is slept for. What
//! is to be tried again stands in rows, so that nothing is lost by a stop and several daemons may share it; each result is
//! written only where its item is as it was.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::changes::remember::{Asked, Told};
use super::changes::routing::assignments::{self, Act, Acted};
use super::changes::routing::claims::{self, Claimed};
use super::changes::routing::drain::{self, Drained, Walk};
use super::changes::routing::reconcile::{self, Looked};
use super::changes::routing::timers::{self, Due};
use super::changes::routing::waiting;
use super::changes::routing::world::Tenancy;
use super::core::Engine;
use super::deciding::note;
pub use super::deciding::{RouterError, judge, route};
use crate::domain::routing::turns::Served;
use crate::domain::routing::waiting::Waiting;
use crate::store::{ChangeError, ReadTx};
use crate::words::ids::{AssignmentId, ClaimQueueId, RecipientId, RecipientPoolId, TenantId, WaitingId};
use crate::words::limits;
use crate::words::time::Micros;

/// Somebody does something with an assignment.
pub async fn act(
    engine: &Engine,
    tenant: TenantId,
    id: AssignmentId,
    wanted: (Act, String),
    mut asked: Asked<Acted>,
) -> Result<Told<Acted>, ChangeError> {
    let (act, by) = wanted;
    let told = engine.store.change("assignment", move |tx| {
        asked.once(tx, |tx| assignments::act(tx, tenant, id, &act, &by))
    });
    told.await
}

/// A recipient claims one offer, or the next one.
pub async fn claim(
    engine: &Engine,
    tenancy: Tenancy,
    (queue, item): (ClaimQueueId, Option<WaitingId>),
    recipient: RecipientId,
    mut asked: Asked<Claimed>,
) -> Result<Told<Claimed>, ChangeError> {
    let shelf = engine.routing.clone();
    let told = engine.store.change("claim", move |tx| {
        asked.once(tx, |tx| match item {
            Some(item) => claims::claim(tx, &shelf, &tenancy, (queue, item), recipient),
            None => claims::next(tx, &shelf, &tenancy, queue, recipient),
        })
    });
    told.await
}

/// An operator takes work out of its queue.
pub async fn cancel(
    engine: &Engine,
    tenant: TenantId,
    (recipient_pool, item): (RecipientPoolId, WaitingId),
    mut asked: Asked<Option<Waiting>>,
) -> Result<Told<Option<Waiting>>, ChangeError> {
    let told = engine.store.change("cancel item", move |tx| {
        asked.once(tx, |tx| waiting::cancel(tx, tenant, recipient_pool, item))
    });
    told.await
}

/// Computes the numbers of all recipients of a tenant anew, and puts right what differs.
pub async fn reconcile(
    engine: &Engine,
    tenant: TenantId,
    mut asked: Asked<Looked>,
) -> Result<Told<Looked>, RouterError> {
    let looked = engine.read(move |tx| reconcile::look(tx, tenant)).await?;
    let whose: Vec<RecipientId> = looked.differing.iter().map(|one| one.recipient).collect();
    let told = engine.store.change("reconcile", move |tx| {
        asked.once(tx, |tx| {
            Ok(Looked {
                recipients: looked.recipients,
                differing: reconcile::repair(tx, tenant, &whose)?,
            })
        })
    });
    Ok(told.await?)
}

/// The loop.
#[derive(Debug)]
pub struct Router {
    engine: Engine,
    served: Mutex<Served>,
}

/// What one turn has found.
#[derive(Debug, Default)]
struct Turn {
    worked: bool,
    next: Option<Micros>,
}

/// After a turn that found nothing, many commits in a row are looked at together.
const BREATH: Duration = Duration::from_millis(limits::FOREIGN_WAKE_MS);
/// A turn that the store could not take is tried again.
const PAUSE: Duration = Duration::from_secs(1);
/// Queues of one turn, so that each gets its share, and what is stirred meanwhile waits for no more than that.
const WALKS_PER_TURN: usize = 8;

impl Router {
    /// A loop over this engine.
    pub fn new(engine: Engine) -> Router {
        Router {
            engine,
            served: Mutex::default(),
        }
    }

    /// Works until the daemon stops.
    pub async fn run(self) {
        let mut sequence = self.engine.store.watch_sequence();
        while !self.engine.is_stopping() {
            sequence.mark_unchanged();
            let turn = match self.turn().await {
                Ok(turn) if turn.worked => continue,
                Ok(turn) => turn,
                Err(error) => {
                    tracing::debug!(cause = %error, "waiting work waits for the store");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            let wait = turn.next.map(|at| self.until(at));
            tokio::select! {
                () = sleep_for(wait) => {}
                moved = sequence.changed() => {
                    if moved.is_err() {
                        return;
                    }
                    tokio::time::sleep(BREATH).await;
                }
                () = self.engine.until_stopping() => {}
            }
        }
    }

    /// From now until an instant. The wall clock may be set: so long a wait is looked at again in between.
    fn until(&self, at: Micros) -> Duration {
        let now = Micros::from(self.engine.now().wall);
        let us = at.since(now).saturating_add(1_000);
        Duration::from_micros(us.min(limits::ROUTING_LOOK_AGAIN_MS * 1_000))
    }

    /// Fires what is due and goes through what is stirred, once.
    async fn turn(&self) -> Result<Turn, RouterError> {
        let due = self.fire_due().await?;
        let before = self.served.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let read = move |tx: &mut ReadTx| {
            let mut served = before.clone();
            let walks = drain::walks(tx, &mut served, WALKS_PER_TURN)?;
            Ok((walks, served))
        };
        let (walks, served) = self.engine.read(read).await?;
        *self.served.lock().unwrap_or_else(PoisonError::into_inner) = served;
        let worked = !due.now.is_empty() || !walks.is_empty();
        for walk in walks {
            self.walk(walk).await?;
        }
        Ok(Turn {
            worked,
            next: due.next,
        })
    }

    async fn fire_due(&self) -> Result<Due, RouterError> {
        let now = Micros::from(self.engine.now().wall);
        let due = self.engine.read(move |tx| timers::due(tx, now)).await?;
        if due.now.is_empty() {
            return Ok(due);
        }
        let firing = due.now.clone();
        let change = self
            .engine
            .store
            .change("routing timers", move |tx| timers::fire(tx, &firing));
        change.await?;
        self.engine.report_wake.notify_one();
        Ok(due)
    }

    /// One part of one walk.
    async fn walk(&self, walk: Walk) -> Result<(), RouterError> {
        let tenancy = Arc::new(self.engine.tenancy(walk.tenant).await?);
        let now = Micros::from(self.engine.now().wall);
        let (copies, for_read, part) = (self.engine.routing.clone(), Arc::clone(&tenancy), walk.clone());
        let found = self
            .engine
            .read(move |tx| drain::look(tx, &copies, &for_read, &part, now))
            .await?;
        let copies = self.engine.routing.clone();
        let change = self.engine.store.change("drain", move |tx| {
            drain::commit(tx, &copies, &tenancy, &walk, &found)
        });
        let Drained { decided, .. } = change.await?;
        for written in &decided {
            note(&self.engine, written);
        }
        Ok(())
    }

    /// Everything that can be done now, for tests: until a turn finds nothing.
    #[cfg(test)]
    pub(super) async fn settle(&self) -> Result<Option<Micros>, RouterError> {
        loop {
            let turn = self.turn().await?;
            if !turn.worked {
                return Ok(turn.next);
            }
        }
    }
}

async fn sleep_for(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => std::future::pending().await,
    }
}
