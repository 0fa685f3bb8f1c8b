//! A rule that is written is tried on the work that was routed last: one that was true for none of it may be meant otherwise.
//! That is looked for before the change, over a snapshot, and not for long; the writer waits for nothing.

use std::sync::Arc;
use std::time::Duration;

use super::changes::routing::world::{Tenancy, live_of};
use super::core::Engine;
use crate::domain::routing::candidate::{Candidate, Learned};
use crate::domain::routing::fault::Fault;
use crate::domain::routing::objects::{ActionKind, RecipientPool, Rule};
use crate::domain::routing::ready::ReadyRule;
use crate::domain::routing::sight::{Sight, Times};
use crate::domain::routing::trial;
use crate::domain::routing::work::Work;
use crate::expr::Program;
use crate::store::live_rows::WorkRow;
use crate::store::tables::ROUTED_WORK;
use crate::store::{Rows, StoreError, routing_objects};
use crate::words::ids::TenantId;
use crate::words::limits;
use crate::words::time::Micros;

/// Work that is read at once: a piece may be large.
const PAGE: usize = 64;
/// Members on whom a rule about recipients is tried.
const MEMBERS_MAX: usize = 200;

/// The warning, if the rule was true for none of the work that was routed last.
pub async fn warning(engine: &Engine, tenant: TenantId, rule: Rule) -> Result<Option<Fault>, StoreError> {
    if !rule.enabled {
        return Ok(None);
    }
    let tenancy = engine.tenancy(tenant).await?;
    let now = Micros::from(engine.now().wall);
    engine.read(move |tx| look(tx, &tenancy, rule.clone(), now)).await
}

/// What a rule is tried with.
struct Subject {
    program: Program,
    /// Empty where it reads the work alone.
    members: Vec<Candidate>,
    within: Option<RecipientPool>,
    rule: Rule,
}

/// The rule, compiled, with those whom it is asked of; none where nothing can be said of it.
fn subject(rows: &mut impl Rows, tenant: TenantId, rule: Rule) -> Result<Option<Subject>, StoreError> {
    let sees_recipient = matches!(rule.action.kind, ActionKind::Filter | ActionKind::Boost);
    let Ok(program) = ReadyRule::new(rule.clone()).program else {
        return Ok(None);
    };
    let within = match rule.attached_to {
        Some(of) => routing_objects::recipient_pool(rows, tenant, of)?,
        None => None,
    };
    let mut members = Vec::new();
    if sees_recipient && trial::reads_recipient(&program) {
        let Some(of) = rule.attached_to else {
            return Ok(None);
        };
        for id in routing_objects::members(rows, tenant, of)? {
            if members.len() == MEMBERS_MAX {
                // Somebody who was not asked may fit.
                return Ok(None);
            }
            if let Some(recipient) = routing_objects::recipient(rows, tenant, id)? {
                members.push(Candidate {
                    live: live_of(rows, tenant, &recipient)?,
                    recipient: Arc::new(recipient),
                    learned: Learned::default(),
                    bid: None,
                });
            }
        }
        if members.is_empty() {
            return Ok(None);
        }
    }
    Ok(Some(Subject {
        program,
        members,
        within,
        rule,
    }))
}

fn look(
    rows: &mut impl Rows,
    tenancy: &Tenancy,
    rule: Rule,
    now: Micros,
) -> Result<Option<Fault>, StoreError> {
    let tenant = tenancy.tenant;
    let Some(subject) = subject(rows, tenant, rule)? else {
        return Ok(None);
    };
    let began = tokio::time::Instant::now();
    let patience = Duration::from_millis(limits::RULE_LOOKS_BACK_MS);
    let (mut seen, mut place) = (0, None);
    while seen < limits::RULE_LOOKS_BACK_MAX {
        let page = rows.scan_back(&ROUTED_WORK, &(tenant,), place.as_ref(), PAGE)?;
        let is_last = page.len() < PAGE;
        for (key, WorkRow { work }) in page {
            place = Some(key);
            if began.elapsed() > patience {
                return Ok(None);
            }
            let Ok(work) = work.read::<Work>() else { continue };
            if subject.is_true(&work, &tenancy.name, now) {
                return Ok(None);
            }
            seen += 1;
        }
        if is_last {
            break;
        }
    }
    Ok((seen >= limits::RULE_LOOKS_BACK_MIN).then(|| subject.warning(seen)))
}

impl Subject {
    fn is_true(&self, work: &Work, tenant: &str, now: Micros) -> bool {
        let times = Times {
            now,
            waited_us: 0,
            attempt: 1,
        };
        let mut sight = Sight::of_work(work, times, tenant);
        if let Some(within) = &self.within {
            sight = sight.in_pool(within, 0, None);
        }
        let holds = |member| sight.truth(&self.program, member) == Ok(true);
        if self.members.is_empty() {
            return holds(None);
        }
        self.members.iter().any(|member| holds(Some(member)))
    }

    fn warning(&self, seen: usize) -> Fault {
        let of_whom = if self.members.is_empty() {
            String::new()
        } else {
            format!(" and the {} recipients that are members now", self.members.len())
        };
        let detail = format!(
            "rule `{}` is true for none of the last {seen} pieces of work{of_whom}",
            self.rule.name
        );
        Fault::new("/expression", "rule.never_true", detail).member("looked_at", seen)
    }
}
