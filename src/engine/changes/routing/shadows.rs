//! Shadow campaigns over decisions that are written: looked at over a snapshot, counted in a commit of their own. Whoever
//! waits for a decision has had its answer by then, and nothing that a decision is made from is touched.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use super::super::campaigns;
use super::route::Wish;
use crate::domain::routing::campaign::{Campaign, StateMode, Status};
use crate::domain::routing::pass::{Ends, Passed};
use crate::domain::routing::shadow::{self, Opinion, Tally};
use crate::domain::routing::snapshot;
use crate::domain::routing::state::StageState;
use crate::store::live_rows::{CampaignRow, ShadowResult};
use crate::store::routing_live::{self, Lookup};
use crate::store::tables::{SHADOW_PENDING, SHADOW_RESULTS, SHADOW_STATES, SHADOW_TALLIES};
use crate::store::{Abort, Rows, StoreError, Tx, decisions, shadows};
use crate::words::ids::{CampaignId, DecisionId, RecipientId, RecipientPoolId, TenantId};
use crate::words::limits;

/// Has the campaigns of its recipient pool look at a decision that a strategy made.
pub(super) fn pend(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    wish: &Wish,
    passed: &Passed,
) -> Result<(), StoreError> {
    let decision = &passed.decision;
    // Whoever names the recipient has not asked a strategy, and what is offered goes to whoever claims it.
    let by_strategy = match passed.ends {
        Ends::Assigned(_) | Ends::Waits(_) => wish.request.recipient.is_none(),
        Ends::Offered(_) | Ends::Over => false,
    };
    match &decision.recipient_pool {
        Some(chosen) if by_strategy => shadows::pend(tx, tenant, chosen.id, (decision.id, decision.at)),
        Some(_) | None => Ok(()),
    }
}

type Key = (TenantId, DecisionId, CampaignId);
type States = BTreeMap<(RecipientPoolId, String), StageState>;

/// What was found of one pending row.
#[derive(Debug, Clone)]
enum Found {
    /// What the campaign says, in how many microseconds, and the winner of production.
    Said(Box<Opinion>, u64, Option<RecipientId>),
    /// It could not be evaluated.
    Failed(u64),
    /// It was before, and there may be a value now.
    Again,
    /// There is nothing to look at any more.
    Gone,
}

/// What one look has found, in the order in which it was decided.
#[derive(Debug, Clone, Default)]
pub struct Looked {
    found: Vec<(Key, Found)>,
}

impl Looked {
    /// There was nothing.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }
}

/// A campaign while it is looked at: its memory moves with each decision.
struct Judge {
    row: CampaignRow,
    campaign: Campaign,
    states: States,
}

impl Judge {
    fn of(rows: &mut impl Rows, tenant: TenantId, id: CampaignId) -> Result<Option<Judge>, StoreError> {
        let Some(row) = shadows::campaign(rows, tenant, id)? else {
            return Ok(None);
        };
        let campaign = row.typed(tenant, id)?;
        if campaign.status != Status::Running {
            return Ok(None);
        }
        let kept = rows.scan(&SHADOW_STATES, &(tenant, id), None, usize::MAX)?;
        let states = kept
            .into_iter()
            .map(|((_, _, of, stage), state)| ((of, stage), state))
            .collect();
        Ok(Some(Judge {
            row,
            campaign,
            states,
        }))
    }

    fn say(&mut self, produced: &(snapshot::Recalled, Passed)) -> Found {
        let (recalled, passed) = produced;
        let began = tokio::time::Instant::now();
        let said = shadow::opinion(
            &self.campaign.contender,
            &recalled.request,
            &recalled.read,
            &self.states,
            &passed.decision,
            self.campaign.state_mode == StateMode::Mirrored,
        );
        let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        match said {
            Ok(opinion) => {
                for (of, stage, state) in &opinion.states {
                    self.states.insert((*of, stage.clone()), state.clone());
                }
                let winner = passed.decision.winners.first().map(|winner| winner.recipient);
                Found::Said(Box::new(opinion), micros, winner)
            }
            Err(cause) => {
                tracing::debug!(campaign = %self.row.object.name, %cause, "a shadow evaluation failed");
                Found::Failed(micros)
            }
        }
    }
}

/// A decision, and what it was; nothing if it is gone.
type Produced = ((TenantId, DecisionId), Option<(snapshot::Recalled, Passed)>);

/// Looks at what is pending, the oldest decision of each tenant first.
pub fn look(rows: &mut impl Rows) -> Result<Looked, StoreError> {
    let began = tokio::time::Instant::now();
    let patience = Duration::from_millis(limits::SHADOWS_PER_CHANGE_MS);
    let pending = rows.scan(&SHADOW_PENDING, &(), None, limits::SHADOWS_PER_CHANGE_MAX)?;
    let mut judges: BTreeMap<(TenantId, CampaignId), Option<Judge>> = BTreeMap::new();
    let mut produced: Option<Produced> = None;
    let mut looked = Looked::default();
    for (key, _) in pending {
        if !looked.is_empty() && began.elapsed() > patience {
            break;
        }
        let (tenant, decision, id) = key;
        if rows.has(&SHADOW_RESULTS, &key)? {
            looked.found.push((key, Found::Again));
            continue;
        }
        let judge = match judges.entry((tenant, id)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(Judge::of(rows, tenant, id)?),
        };
        let Some(judge) = judge else {
            looked.found.push((key, Found::Gone));
            continue;
        };
        if produced.as_ref().is_none_or(|(of, _)| *of != (tenant, decision)) {
            produced = Some(((tenant, decision), decided(rows, tenant, decision)?));
        }
        let found = match &produced {
            Some((_, Some(produced))) => judge.say(produced),
            Some((_, None)) | None => Found::Gone,
        };
        looked.found.push((key, found));
    }
    Ok(looked)
}

/// A decision as its snapshot gives it again, with all that it read.
fn decided(
    rows: &mut impl Rows,
    tenant: TenantId,
    id: DecisionId,
) -> Result<Option<(snapshot::Recalled, Passed)>, StoreError> {
    let Some(row) = decisions::decision(rows, tenant, id)? else {
        return Ok(None);
    };
    let kept = decisions::source(rows, tenant, (id, &row))?;
    let recalled = kept.and_then(|kept| kept.recall().ok());
    Ok(recalled.and_then(|recalled| {
        let passed = recalled.replay().ok()?;
        Some((recalled, passed))
    }))
}

/// Counts what was found. What another daemon has counted meanwhile is left out.
pub fn commit(tx: &mut Tx<'_>, looked: &Looked) -> Result<(), Abort> {
    for (key, found) in &looked.found {
        if !tx.has(&SHADOW_PENDING, key)? {
            continue;
        }
        tx.remove(&SHADOW_PENDING, key)?;
        let (tenant, decision, id) = *key;
        let Some(row) = shadows::campaign(tx, tenant, id)? else {
            continue;
        };
        match found {
            Found::Gone => {}
            Found::Again => value(tx, tenant, decision, (id, &row))?,
            Found::Failed(micros) => {
                if let Some(campaign) = running(&row, tenant, id)? {
                    let mut tally = tally(tx, tenant, id)?;
                    tally.failed(*micros);
                    count(tx, tenant, (id, &row), &campaign, &tally)?;
                }
            }
            Found::Said(opinion, micros, winner) => {
                if let Some(campaign) = running(&row, tenant, id)? {
                    for (of, stage, state) in &opinion.states {
                        tx.put(&SHADOW_STATES, &(tenant, id, *of, stage.clone()), state)?;
                    }
                    let mut tally = tally(tx, tenant, id)?;
                    tally.add(opinion, *winner, *micros);
                    tx.put(&SHADOW_RESULTS, key, &result_of(opinion, row.began))?;
                    count(tx, tenant, (id, &row), &campaign, &tally)?;
                    value(tx, tenant, decision, (id, &row))?;
                }
            }
        }
    }
    Ok(())
}

fn result_of(opinion: &Opinion, began: u64) -> ShadowResult {
    ShadowResult {
        began,
        winner: opinion.winner,
        agrees: opinion.agrees,
        chance: opinion.chance,
        production_chance: opinion.production_chance,
        valued: false,
    }
}

fn running(row: &CampaignRow, tenant: TenantId, id: CampaignId) -> Result<Option<Campaign>, StoreError> {
    let campaign = row.typed(tenant, id)?;
    Ok(Some(campaign).filter(|campaign| campaign.status == Status::Running))
}

fn tally(rows: &mut impl Rows, tenant: TenantId, id: CampaignId) -> Result<Tally, StoreError> {
    Ok(rows.get(&SHADOW_TALLIES, &(tenant, id))?.unwrap_or_default())
}

/// Keeps the numbers, and ends the campaign where they say so.
fn count(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    (id, row): (CampaignId, &CampaignRow),
    campaign: &Campaign,
    tally: &Tally,
) -> Result<(), StoreError> {
    tx.put(&SHADOW_TALLIES, &(tenant, id), tally)?;
    if let Some(reason) = tally.stop_reason(campaign.max_micros) {
        campaigns::stop(tx, tenant, id, row, &reason)?;
    }
    Ok(())
}

/// Counts what the work was worth, once, if that is known by now.
fn value(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    decision: DecisionId,
    (id, row): (CampaignId, &CampaignRow),
) -> Result<(), StoreError> {
    let key = (tenant, decision, id);
    let Some(result) = tx.get(&SHADOW_RESULTS, &key)? else {
        return Ok(());
    };
    if result.valued || result.began != row.began {
        return Ok(());
    }
    let Some(value) = worth(tx, tenant, decision)? else {
        return Ok(());
    };
    let mut tally = tally(tx, tenant, id)?;
    tally.valued(result.agrees, result.chance, result.production_chance, value);
    tx.put(&SHADOW_TALLIES, &(tenant, id), &tally)?;
    tx.put(
        &SHADOW_RESULTS,
        &key,
        &ShadowResult {
            valued: true,
            ..result
        },
    )
}

/// What the work of the first winner was worth: 0 to 1.
fn worth(rows: &mut impl Rows, tenant: TenantId, decision: DecisionId) -> Result<Option<f64>, StoreError> {
    let Some(row) = decisions::decision(rows, tenant, decision)? else {
        return Ok(None);
    };
    for id in routing_live::by(rows, tenant, (Lookup::Decision, decision.0), usize::MAX)? {
        let Some(assignment) = routing_live::assignment(rows, tenant, id)? else {
            continue;
        };
        if row.winners.first() == Some(&assignment.recipient) {
            return Ok(assignment.value_micro.map(|micro| f64::from(micro) / 1_000_000.0));
        }
    }
    Ok(None)
}
