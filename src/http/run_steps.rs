//! `GET /api/runs/{run}/steps`: the steps of a run by pages, also those of ten thousand branches.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::Uri;

use super::app::App;
use super::error::Problem;
use super::input;
use super::paging::{self, Page, Paging};
use super::param::{Kind, Param};
use super::runs::{self as run_views, StepView};
use super::waiting;
use crate::domain::workflow::run::StepPhase;
use crate::store::tables::STEPS;
use crate::store::{Rows, StoreError, runs};
use crate::words::ids::{RunId, TenantId};
use crate::words::limits;
use crate::words::names::StepRef;

const TENANT: TenantId = TenantId::DEFAULT;
/// Rows read at a time.
const CHUNK: usize = 256;

/// The filters of this list.
pub(super) const FILTERS: [Param; 2] = [
    Param::filter("state", Kind::OneOf(&StepPhase::WORDS), "Steps in this state."),
    Param::query(
        "of",
        Kind::Text,
        "Only what runs for each item of a scatter under this name of a step of its body.",
    ),
];

/// Which steps are wanted.
struct Asked {
    states: Vec<String>,
    of: Option<StepRef>,
    paging: Paging,
}

impl Asked {
    fn of(pairs: &[(String, String)], run: RunId) -> Result<Asked, Problem> {
        let states = paging::values(pairs, "state");
        if states
            .iter()
            .any(|state| !StepPhase::WORDS.contains(&state.as_str()))
        {
            let words = StepPhase::WORDS.join(", ");
            return Err(Problem::unreadable(format!("`state` must be one of {words}")));
        }
        let of = match input::last(pairs, "of") {
            None => None,
            Some(name) => {
                let step = StepRef::new(name);
                Some(step.ok_or_else(|| Problem::unreadable("`of` must be the name of a step"))?)
            }
        };
        let mut written = vec![("run", run.to_string())];
        written.extend(states.iter().map(|state| ("state", state.clone())));
        written.extend(of.iter().map(|of| ("of", of.to_string())));
        Ok(Asked {
            states,
            of,
            paging: Paging::of(pairs, "steps", &written, true)?,
        })
    }
}

/// Steps by their names.
pub(super) async fn list(
    State(app): State<App>,
    Path(text): Path<String>,
    uri: Uri,
) -> Result<Json<Page<StepView>>, Problem> {
    let id = run_views::id_of(&text)?;
    let pairs = paging::query(&uri, &FILTERS)?;
    let asked = Asked::of(&pairs, id)?;
    let after = match &asked.paging.after {
        None => None,
        Some(bytes) => {
            let name = std::str::from_utf8(bytes).ok().and_then(StepRef::new);
            Some(name.ok_or_else(|| Problem::unreadable("`pagination.cursor` is not one of this list"))?)
        }
    };
    let (for_read, book, now) = (app.clone(), app.engine.book(), app.engine.now().wall);
    let found = app
        .engine
        .read(move |tx| {
            let Some(run) = runs::by_id(tx, id)? else {
                return Ok(None);
            };
            let of_run = waiting::asked(tx, &for_read, &book, &run, now)?;
            page(tx, &of_run, &asked, after.clone()).map(Some)
        })
        .await?;
    found.map(Json).ok_or_else(|| run_views::not_found(&text))
}

fn page(
    rows: &mut impl Rows,
    of_run: &waiting::Asked<'_>,
    asked: &Asked,
    after: Option<StepRef>,
) -> Result<Page<StepView>, StoreError> {
    let id = of_run.run.id;
    let paging = &asked.paging;
    let bounds = asked.of.as_ref().map(Bounds::of);
    let begin = bounds.as_ref().map(|bounds| bounds.before.clone());
    // Oldest first, what runs for each item stands right behind the step's own name.
    let begin = begin.filter(|_| paging.ascending);
    let mut place = after.or(begin).map(|name| (TENANT, id, name));
    let mut data = Vec::new();
    let mut scanned = 0;
    loop {
        let scan = if paging.ascending {
            Rows::scan
        } else {
            Rows::scan_back
        };
        let found = scan(rows, &STEPS, &(TENANT, id), place.as_ref(), CHUNK)?;
        let is_last = found.len() < CHUNK;
        for (key, state) in found {
            let name = &key.2;
            if bounds
                .as_ref()
                .is_some_and(|bounds| bounds.are_passed(name, paging.ascending))
            {
                return Ok(paging.page(data, None));
            }
            let wanted = bounds.as_ref().is_none_or(|bounds| bounds.contain(name))
                && (asked.states.is_empty() || asked.states.iter().any(|word| word == state.phase.word()));
            if wanted && data.len() == paging.size {
                let last = place.as_ref().map(|(_, _, name)| name.as_str().as_bytes());
                return Ok(paging.page(data, last));
            }
            if wanted {
                let waits = waiting::of_step(rows, of_run, &state)?;
                data.push(run_views::step_view(rows, id, name, &state, waits)?);
            }
            scanned += 1;
            place = Some(key);
            if scanned == limits::PAGE_SCAN_MAX {
                let last = place.as_ref().map(|(_, _, name)| name.as_str().as_bytes());
                return Ok(paging.page(data, last));
            }
        }
        if is_last {
            return Ok(paging.page(data, None));
        }
    }
}

/// Where the names `STEP#…` lie among all names.
struct Bounds {
    before: StepRef,
    head: String,
}

impl Bounds {
    fn of(step: &StepRef) -> Bounds {
        Bounds {
            before: step.clone(),
            head: format!("{step}#"),
        }
    }

    fn contain(&self, name: &StepRef) -> bool {
        name.as_str().starts_with(&self.head)
    }

    /// No name of them comes any more.
    fn are_passed(&self, name: &StepRef, ascending: bool) -> bool {
        let is_behind = name.as_str() > self.head.as_str();
        !self.contain(name) && is_behind == ascending
    }
}
