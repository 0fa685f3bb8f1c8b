//! What a pass reads, out of a snapshot or inside the writer's transaction. Outside, what earlier passes over the same snapshot
//! have decided lies over it, so that several of them can be written together.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::crew::Threads;
use super::shelf::{OfTenant, Shelf};
use crate::domain::routing::candidate::{Candidate, Members};
use crate::domain::routing::crew::Crew;
use crate::domain::routing::known::Known;
use crate::domain::routing::live::Live;
use crate::domain::routing::objects::{PipelineMode, Recipient, RecipientState, Trait};
use crate::domain::routing::pass::{Ends, Flow, Passed, World};
use crate::domain::routing::ready::{Prepared, ReadyRule};
use crate::domain::routing::snapshot::Declared;
use crate::domain::routing::state::{Holder, StageState};
use crate::domain::routing::work::Work;
use crate::store::routing_live::{self, Lookup};
use crate::store::tables::{
    LEARNED, RECIPIENT_LIVE, RECIPIENT_POOLS, STRATEGY_STATES, TENANT_SETTINGS, TENANTS,
};
use crate::store::{Rows, StoreError, memory, routing_objects};
use crate::words::ids::{DecisionId, RecipientId, RecipientPoolId, TenantId};
use crate::words::limits;
use crate::words::time::Micros;

/// The name of the first tenant, which needs no row.
const DEFAULT_NAME: &str = "default";

/// Whose world it is.
#[derive(Debug, Clone)]
pub struct Tenancy {
    /// The tenant.
    pub tenant: TenantId,
    /// Its name.
    pub name: String,
    /// Where work goes that no rule takes.
    pub default_recipient_pool: Option<RecipientPoolId>,
    /// How checks run where a recipient pool says nothing.
    pub pipeline_mode: PipelineMode,
}

impl Tenancy {
    /// That of a tenant; where it says nothing of how checks run, they run as the daemon has it.
    pub fn of(rows: &mut impl Rows, tenant: TenantId, mode: PipelineMode) -> Result<Tenancy, StoreError> {
        let name = match rows.get(&TENANTS, &(tenant,))? {
            Some(row) => row.name,
            None => DEFAULT_NAME.to_owned(),
        };
        let settings = rows.get(&TENANT_SETTINGS, &(tenant,))?.unwrap_or_default();
        let default_recipient_pool = match &settings.default_recipient_pool {
            Some(text) => recipient_pool_of(rows, tenant, text)?,
            None => None,
        };
        let own = [settings.pipeline_mode, mode, PipelineMode::Linear];
        let mut said = own.into_iter().filter(|mode| *mode != PipelineMode::Inherit);
        Ok(Tenancy {
            tenant,
            name,
            default_recipient_pool,
            pipeline_mode: said.next().unwrap_or(PipelineMode::Linear),
        })
    }
}

/// The recipient pool of a tenant that an id or a name means, if there is one.
pub fn recipient_pool_of(
    rows: &mut impl Rows,
    tenant: TenantId,
    text: &str,
) -> Result<Option<RecipientPoolId>, StoreError> {
    if let Ok(id) = text.parse::<RecipientPoolId>()
        && rows.has(&RECIPIENT_POOLS, &(tenant, id))?
    {
        return Ok(Some(id));
    }
    routing_objects::recipient_pool_named(rows, tenant, text)
}

/// What passes over one snapshot have decided, and nobody has written yet.
#[derive(Debug, Default)]
struct Overlay {
    live: BTreeMap<RecipientId, Live>,
    states: BTreeMap<(RecipientPoolId, String), Arc<StageState>>,
    holders: BTreeMap<(RecipientPoolId, String, String), Holder>,
    seen: BTreeMap<(RecipientPoolId, String), (DecisionId, Micros)>,
    assigned: BTreeMap<RecipientPoolId, u64>,
}

/// A snapshot, or the writer's transaction, as a pass sees it.
pub struct StoreWorld<'w, R> {
    rows: RefCell<&'w mut R>,
    tenancy: &'w Tenancy,
    of_tenant: Arc<OfTenant>,
    overlay: RefCell<Overlay>,
    tried: RefCell<Vec<(RecipientId, DecisionId)>>,
    began: tokio::time::Instant,
}

impl<'w, R: Rows> StoreWorld<'w, R> {
    /// The world of a tenant.
    pub fn new(
        rows: &'w mut R,
        shelf: &Shelf,
        tenancy: &'w Tenancy,
    ) -> Result<StoreWorld<'w, R>, StoreError> {
        let of_tenant = shelf.of(rows, tenancy.tenant)?;
        Ok(StoreWorld {
            rows: RefCell::new(rows),
            tenancy,
            of_tenant,
            overlay: RefCell::default(),
            tried: RefCell::default(),
            began: tokio::time::Instant::now(),
        })
    }

    /// The number of the newest change to declared objects that it knows.
    pub fn revision(&self) -> u64 {
        self.of_tenant.revision()
    }

    /// Whose it is.
    pub fn tenant_id(&self) -> TenantId {
        self.tenancy.tenant
    }

    /// A recipient pool with its rules and its pipeline.
    pub fn prepared(&self, id: RecipientPoolId) -> Result<Option<Arc<Prepared>>, StoreError> {
        self.recipient_pool(id)
    }

    /// The declared half of what a pass has read.
    pub(super) fn declared(&self, read: &Known) -> Arc<Declared> {
        self.of_tenant.declared(read)
    }

    /// Who had the work of the next pass before.
    pub fn set_tried(&self, tried: Vec<(RecipientId, DecisionId)>) {
        *self.tried.borrow_mut() = tried;
    }

    /// Reads what no pass asks for.
    pub fn read<T>(&self, read: impl FnOnce(&mut R) -> Result<T, StoreError>) -> Result<T, StoreError> {
        read(&mut self.rows.borrow_mut())
    }

    /// The next pass sees what this one has decided.
    pub fn lay_over(&self, passed: &Passed, units: u32) {
        let mut overlay = self.overlay.borrow_mut();
        let at = passed.decision.at;
        for (id, stage, state) in &passed.states {
            overlay
                .states
                .insert((*id, stage.clone()), Arc::new(state.clone()));
        }
        for (id, stage, key, holder) in &passed.bound {
            overlay
                .holders
                .insert((*id, stage.clone(), key.clone()), holder.clone());
        }
        if let Some((id, key, _)) = &passed.remember {
            overlay.seen.insert((*id, key.clone()), (passed.decision.id, at));
        }
        let Ends::Assigned(recipient_pool) = &passed.ends else {
            return;
        };
        for winner in &passed.decision.winners {
            let of_pool = passed.read.candidates.get(recipient_pool);
            let mut members = of_pool.into_iter().flatten();
            if let Some(found) = members.find(|one| one.recipient.id == winner.recipient) {
                overlay
                    .live
                    .insert(winner.recipient, found.live.charged(at, units));
                *overlay.assigned.entry(*recipient_pool).or_default() += 1;
            }
        }
    }

    /// The members with what they do now and what was learned of them, read in as few looks as their keys allow.
    fn read_candidates(
        &self,
        id: RecipientPoolId,
        members: &[Arc<Recipient>],
    ) -> Result<Vec<Candidate>, StoreError> {
        let tenant = self.tenancy.tenant;
        let lives: Vec<_> = members.iter().map(|member| (tenant, member.id)).collect();
        let learned: Vec<_> = members.iter().map(|member| (tenant, id, member.id)).collect();
        let (lives, learned) = self.read(|rows| {
            Ok((
                rows.get_all(&RECIPIENT_LIVE, &lives)?,
                rows.get_all(&LEARNED, &learned)?,
            ))
        })?;
        let overlay = self.overlay.borrow();
        let both = lives.into_iter().zip(learned);
        let all = members
            .iter()
            .zip(both)
            .map(|(member, (live, learned))| Candidate {
                live: match overlay.live.get(&member.id) {
                    Some(over) => over.clone(),
                    None => live.unwrap_or_else(|| idle(member)),
                },
                learned: learned.unwrap_or_default(),
                recipient: Arc::clone(member),
                bid: None,
            });
        Ok(all.collect())
    }
}

impl<R: Rows> World for StoreWorld<'_, R> {
    type Error = StoreError;

    fn tenant(&self) -> String {
        self.tenancy.name.clone()
    }

    fn default_recipient_pool(&self) -> Result<Option<RecipientPoolId>, StoreError> {
        Ok(self.tenancy.default_recipient_pool)
    }

    fn pipeline_mode(&self) -> Result<PipelineMode, StoreError> {
        Ok(self.tenancy.pipeline_mode)
    }

    fn tenant_rules(&self) -> Result<Arc<Vec<ReadyRule>>, StoreError> {
        self.read(|rows| self.of_tenant.rules(rows, self.tenancy.tenant))
    }

    fn recipient_pool(&self, id: RecipientPoolId) -> Result<Option<Arc<Prepared>>, StoreError> {
        self.read(|rows| self.of_tenant.recipient_pool(rows, self.tenancy.tenant, id))
    }

    fn recipient_pool_named(&self, name: &str) -> Result<Option<RecipientPoolId>, StoreError> {
        self.read(|rows| routing_objects::recipient_pool_named(rows, self.tenancy.tenant, name))
    }

    fn candidates(&self, id: RecipientPoolId) -> Result<Members, StoreError> {
        let members = self.read(|rows| self.of_tenant.members(rows, self.tenancy.tenant, id))?;
        self.read_candidates(id, &members).map(Members::from)
    }

    fn traits(&self) -> Result<Arc<Vec<Trait>>, StoreError> {
        self.read(|rows| self.of_tenant.traits(rows, self.tenancy.tenant))
    }

    fn stage_state(&self, id: RecipientPoolId, stage: &str) -> Result<Option<Arc<StageState>>, StoreError> {
        let key = (id, stage.to_owned());
        if let Some(state) = self.overlay.borrow().states.get(&key) {
            return Ok(Some(Arc::clone(state)));
        }
        let row =
            self.read(|rows| rows.get(&STRATEGY_STATES, &(self.tenancy.tenant, key.0, key.1.clone())))?;
        Ok(row.map(Arc::new))
    }

    fn holder(&self, id: RecipientPoolId, stage: &str, key: &str) -> Result<Option<Holder>, StoreError> {
        let over = (id, stage.to_owned(), key.to_owned());
        if let Some(holder) = self.overlay.borrow().holders.get(&over) {
            return Ok(Some(holder.clone()));
        }
        self.read(|rows| memory::holder(rows, self.tenancy.tenant, id, (stage, key)))
    }

    fn seen(&self, id: RecipientPoolId, dedup_key: &str) -> Result<Option<(DecisionId, Micros)>, StoreError> {
        if let Some(seen) = self.overlay.borrow().seen.get(&(id, dedup_key.to_owned())) {
            return Ok(Some(*seen));
        }
        let row = self.read(|rows| memory::seen(rows, self.tenancy.tenant, id, dedup_key))?;
        Ok(row.map(|row| (row.decision, row.seen_at)))
    }

    fn flow(&self, id: RecipientPoolId, since: Micros) -> Result<Flow, StoreError> {
        let tenant = self.tenancy.tenant;
        let mut flow = self.read(|rows| flow_of(rows, tenant, id, since))?;
        let over = self.overlay.borrow().assigned.get(&id).copied().unwrap_or(0);
        flow.open += over;
        flow.recent += over;
        Ok(flow)
    }

    fn tried_before(&self, _work: &Work) -> Result<Vec<(RecipientId, DecisionId)>, StoreError> {
        Ok(self.tried.borrow().clone())
    }

    fn crew(&self) -> &dyn Crew {
        &Threads
    }

    fn stopwatch(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// What a recipient does now; of one that never had anything, when it was created counts.
pub fn live_of(rows: &mut impl Rows, tenant: TenantId, recipient: &Recipient) -> Result<Live, StoreError> {
    let live = routing_live::live(rows, tenant, recipient.id)?;
    Ok(live.unwrap_or_else(|| idle(recipient)))
}

fn idle(recipient: &Recipient) -> Live {
    Live::new(RecipientState::Available, recipient.created_at)
}

/// What flowed through a recipient pool: counted over its newest assignments, as many as are counted at most.
fn flow_of(
    rows: &mut impl Rows,
    tenant: TenantId,
    id: RecipientPoolId,
    since: Micros,
) -> Result<Flow, StoreError> {
    let mut flow = Flow {
        open: routing_live::counts(rows, tenant, id)?.open,
        ..Flow::default()
    };
    let lookup = (Lookup::RecipientPool, id.0);
    let mut behind = None;
    while flow.recent < limits::FLOW_COUNTED_MAX as u64 {
        let page = routing_live::page_back(rows, tenant, lookup, behind, limits::PAGE_DEFAULT)?;
        let Some(last) = page.last().copied() else { break };
        behind = Some(last);
        for assignment in page {
            let Some(assignment) = routing_live::assignment(rows, tenant, assignment)? else {
                continue;
            };
            if assignment.created_at <= since {
                return Ok(flow);
            }
            flow.recent += 1;
            flow.oldest = Some(assignment.created_at);
        }
    }
    Ok(flow)
}
