//! The queues of recipient pools, gone through because something has changed: oldest first within priority, aged work earlier,
//! and what still matches nobody is passed by. Passes are made outside of the writer, some at a time; each result is written by
//! itself if the item is still there.

use std::collections::BTreeMap;

use super::draft;
use super::route::{self, Judged, Wish};
use super::shelf::Shelf;
use super::world::{StoreWorld, Tenancy};
use super::write::Written;
use crate::domain::routing::pass::{Ends, Passed};
use crate::domain::routing::turns::Served;
use crate::domain::routing::waiting::{self, Place, WaitKind, Waiting};
use crate::store::live_rows::DrainRow;
use crate::store::tables::DRAINS;
use crate::store::{Abort, Rows, StoreError, Tx, access, routing_live, waiting_work};
use crate::words::ids::{DecisionId, RecipientPoolId, TenantId};
use crate::words::limits;
use crate::words::time::Micros;

/// One queue that is to be gone through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walk {
    /// Whose.
    pub tenant: TenantId,
    /// Which.
    pub recipient_pool: RecipientPoolId,
    /// How far it is.
    pub row: DrainRow,
}

/// The queues that are to be gone through next, of all tenants in turn.
pub fn walks(rows: &mut impl Rows, served: &mut Served, limit: usize) -> Result<Vec<Walk>, StoreError> {
    // Mostly there is nothing.
    if rows.scan(&DRAINS, &(), None, 1)?.is_empty() {
        return Ok(Vec::new());
    }
    let (mut stirred, mut found) = (BTreeMap::new(), BTreeMap::new());
    for (tenant, _) in access::tenants(rows)? {
        let last = served.last_of(tenant).map(|last| (tenant, last));
        let mut of_tenant = rows.scan(&DRAINS, &(tenant,), last.as_ref(), limit)?;
        if last.is_some() && of_tenant.len() < limit {
            let from_the_start = rows.scan(&DRAINS, &(tenant,), None, limit - of_tenant.len())?;
            of_tenant.extend(from_the_start);
        }
        let mut queues: Vec<RecipientPoolId> = Vec::with_capacity(of_tenant.len());
        for (key, row) in of_tenant {
            if found.insert(key, row).is_none() {
                queues.push(key.1);
            }
        }
        if !queues.is_empty() {
            stirred.insert(tenant, queues);
        }
    }
    let taken = served.take(&stirred, limit).into_iter();
    let walks = taken.filter_map(|(tenant, recipient_pool)| {
        let row = found.remove(&(tenant, recipient_pool))?;
        Some(Walk {
            tenant,
            recipient_pool,
            row,
        })
    });
    Ok(walks.collect())
}

/// What a part of a walk has found out.
#[derive(Debug, Clone, Default)]
pub struct Tried {
    /// Decisions over items that leave.
    decided: Vec<(Wish, Judged)>,
    /// Items that still wait, before and after.
    waiting: Vec<(Waiting, Waiting)>,
    /// The newest place that was passed, by lane.
    passed: Vec<Place>,
    /// Nothing is left behind that could be placed.
    is_done: bool,
}

/// What a part of a walk has written.
#[derive(Debug, Clone, Default)]
pub struct Drained {
    /// Decisions over work that no longer waits here.
    pub decided: Vec<Written>,
    /// Items that still wait.
    pub passed_by: usize,
}

/// Tries the next items of a queue over one snapshot.
pub fn look<R: Rows>(
    rows: &mut R,
    shelf: &Shelf,
    tenancy: &Tenancy,
    walk: &Walk,
    now: Micros,
) -> Result<Tried, StoreError> {
    let world = StoreWorld::new(rows, shelf, tenancy)?;
    let prepared = world.prepared(walk.recipient_pool)?;
    let age_step_us = prepared.map_or(0, |found| found.recipient_pool.config.age_step_us);
    let mut lanes = Lanes::new(&walk.row.passed);
    let mut tried = Tried::default();
    let counts = world.read(|rows| routing_live::counts(rows, walk.tenant, walk.recipient_pool))?;
    let (mut fresh, mut held, mut is_hopeless) = (counts.again, 0, false);
    for _ in 0..limits::ROUTING_ITEMS_PER_CHANGE_MAX {
        let next = world.read(|rows| lanes.next(rows, walk, now, age_step_us))?;
        // What came back has a pass whoever is there; for the rest one that found nobody speaks for all.
        let Some(place) = next.filter(|_| !is_hopeless || fresh > 0) else {
            tried.is_done = true;
            break;
        };
        let item = world.read(|rows| waiting_work::item(rows, walk.tenant, place.2))?;
        let Some(item) = item else { continue };
        let is_fresh = item.kind == WaitKind::Again;
        fresh = fresh.saturating_sub(u64::from(is_fresh));
        if is_hopeless && !is_fresh {
            continue;
        }
        let work = world.read(|rows| route::work_of(rows, walk.tenant, &item))?;
        let Some(work) = work else { continue };
        let units = work.units;
        let wish = Wish::again(&item, work, DecisionId::fresh());
        let judged = route::judge(&world, &wish, now)?;
        match &judged.outcome {
            Ok(passed) if still_waits(&item, passed) => {
                is_hopeless = waiting::is_hopeless(&draft::histogram(passed));
                tried.waiting.extend(seen(&wish, &item, passed));
            }
            Ok(passed) => {
                world.lay_over(passed, units);
                held += passed
                    .read
                    .candidates
                    .values()
                    .map(|members| members.len())
                    .sum::<usize>();
                let judged = judged.drawn_up(&world, &wish);
                tried.decided.push((wish, judged));
            }
            Err(_) => {}
        }
        if held > limits::ROUTING_CANDIDATES_HELD_MAX {
            break;
        }
    }
    tried.passed = lanes.passed;
    Ok(tried)
}

fn still_waits(item: &Waiting, passed: &Passed) -> bool {
    item.kind != WaitKind::Again && route::still_waits(item, passed)
}

/// An item that still waits shows why, and is woken when time may help it; nothing where both are as they were.
fn seen(wish: &Wish, item: &Waiting, passed: &Passed) -> Option<(Waiting, Waiting)> {
    let Ends::Waits(waits) = &passed.ends else {
        return None;
    };
    let seen = draft::waiting(wish, passed, waits);
    if seen.histogram == item.histogram && seen.wake_at == item.wake_at {
        return None;
    }
    let after = Waiting {
        histogram: seen.histogram,
        wake_at: seen.wake_at,
        record_version: item.record_version + 1,
        ..item.clone()
    };
    Some((item.clone(), after))
}

/// The lanes of a queue, one for each priority.
struct Lanes {
    heads: Vec<Vec<Place>>,
    behind: Vec<Option<Place>>,
    is_over: Vec<bool>,
    passed: Vec<Place>,
}

/// Places of a lane that are read at once.
const LANE_PAGE: usize = 64;

impl Lanes {
    fn new(passed: &[Place]) -> Lanes {
        let lanes = usize::from(waiting_work::LANES);
        let mut behind = vec![None; lanes];
        for place in passed {
            if let Some(lane) = behind.get_mut(usize::from(place.0)) {
                *lane = Some(*place);
            }
        }
        Lanes {
            heads: vec![Vec::new(); lanes],
            behind,
            is_over: vec![false; lanes],
            passed: passed.to_vec(),
        }
    }

    fn next(
        &mut self,
        rows: &mut impl Rows,
        walk: &Walk,
        now: Micros,
        age_step_us: u64,
    ) -> Result<Option<Place>, StoreError> {
        for priority in 0..waiting_work::LANES {
            let lane = usize::from(priority);
            if self.heads[lane].is_empty() && !self.is_over[lane] {
                let behind = (priority, self.behind[lane]);
                let mut page = waiting_work::lane(rows, walk.tenant, walk.recipient_pool, behind, LANE_PAGE)?;
                self.is_over[lane] = page.len() < LANE_PAGE;
                self.behind[lane] = page.last().copied().or(self.behind[lane]);
                page.reverse();
                self.heads[lane] = page;
            }
        }
        let heads: Vec<Option<Place>> = self.heads.iter().map(|lane| lane.last().copied()).collect();
        let Some(lane) = waiting::next_lane(&heads, now, age_step_us) else {
            return Ok(None);
        };
        let place = self.heads[lane].pop();
        if let Some(place) = place {
            self.passed.retain(|other| other.0 != place.0);
            self.passed.push(place);
        }
        Ok(place)
    }
}

/// Writes what a part of a walk has found out.
pub fn commit(
    tx: &mut Tx<'_>,
    shelf: &Shelf,
    tenancy: &Tenancy,
    walk: &Walk,
    tried: &Tried,
) -> Result<Drained, Abort> {
    let mut drained = Drained::default();
    for (wish, judged) in &tried.decided {
        let Some(known) = &wish.item else { continue };
        if !is_as_it_was(tx, walk.tenant, known)? {
            continue;
        }
        match route::commit_item(tx, shelf, tenancy, wish, judged)? {
            Some(written) => drained.decided.push(written),
            None => drained.passed_by += 1,
        }
    }
    for (before, after) in &tried.waiting {
        if is_as_it_was(tx, walk.tenant, before)? {
            waiting_work::replace(tx, walk.tenant, before, after)?;
        }
        drained.passed_by += 1;
    }
    let key = (walk.tenant, walk.recipient_pool);
    let now_there = tx.get(&DRAINS, &key)?;
    // An event during the walk begins another one; its row is there already.
    if now_there.is_some_and(|row| row.generation == walk.row.generation) {
        if tried.is_done {
            tx.remove(&DRAINS, &key)?;
        } else {
            let row = DrainRow {
                passed: tried.passed.clone(),
                ..walk.row.clone()
            };
            tx.put(&DRAINS, &key, &row)?;
        }
    }
    Ok(drained)
}

/// False for an item that was taken, cancelled, or tried by another daemon meanwhile.
fn is_as_it_was(rows: &mut impl Rows, tenant: TenantId, known: &Waiting) -> Result<bool, StoreError> {
    let item = waiting_work::item(rows, tenant, known.id)?;
    Ok(item.is_some_and(|item| item.record_version == known.record_version))
}
