//! All that match: finds them in bounded reads, and acts on them in changes of a bounded size. What one change did is done,
//! whatever happens to the next.

use std::sync::Arc;

use super::book::Book;
use super::changes::matching::{self, Done, Found, Task};
use super::changes::remember::Ticket;
use super::changes::start::Start;
use super::core::Engine;
use crate::domain::workflow::bulk::{self, BulkWish, Deed, Matched};
use crate::domain::workflow::filter::RunFilter;
use crate::domain::workflow::run::Trigger;
use crate::store::{ChangeError, StoreError};
use crate::words::ids::{EntryId, RunId, digest_of_parts, hex};
use crate::words::limits;
use crate::worker::command::Stop;

/// What matches, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// The runs, with what would happen to each.
    pub matched: Vec<Matched>,
    /// There are more of them, or there may be.
    pub truncated: bool,
}

/// Looks what matches a filter that was narrowed for the wish.
pub async fn survey(engine: &Engine, wish: BulkWish, filter: &RunFilter) -> Result<Survey, StoreError> {
    let mut matched = Vec::new();
    let (mut after, mut scanned) = (None, 0);
    let truncated = loop {
        let filter = filter.clone();
        let read = engine.read(move |tx| matching::find(tx, wish, &filter, after, limits::PAGE_SCAN_MAX));
        let Found {
            matched: more,
            more_after,
            scanned: looked,
        } = read.await?;
        matched.extend(more);
        scanned += looked;
        if matched.len() > limits::BULK_RUNS_MAX {
            matched.truncate(limits::BULK_RUNS_MAX);
            break true;
        }
        if more_after.is_none() || scanned >= limits::BULK_SCAN_MAX {
            break more_after.is_some();
        }
        after = more_after;
    };
    bulk::collapse(&mut matched);
    Ok(Survey { matched, truncated })
}

/// Who wishes it, and under which key.
#[derive(Debug, Clone)]
pub struct Wisher {
    /// Who.
    pub principal: String,
    /// Under it no job begins twice, not even over a crash.
    pub ticket: Option<Ticket>,
}

/// Acts on what was found. Runs that have moved on since then are left alone.
pub async fn act(
    engine: &Engine,
    matched: &[Matched],
    filter: &RunFilter,
    wisher: &Wisher,
) -> Result<Done, ChangeError> {
    let mut done = Done::default();
    for batch in matched.chunks(limits::BULK_RUNS_PER_CHANGE) {
        let book = engine.book();
        let tasks = batch.iter().filter_map(|run| task(engine, &book, run, wisher));
        let tasks: Vec<Task> = tasks.collect();
        match change(engine, &book, filter, wisher, tasks.clone()).await {
            Err(ChangeError::Failed(error)) if error.is_row_fault() => {
                // One run that cannot be changed keeps no other from it.
                for task in tasks {
                    let id = task.run();
                    match change(engine, &book, filter, wisher, vec![task]).await {
                        Err(ChangeError::Failed(error)) if error.is_row_fault() => {
                            tracing::error!(run = %id, cause = %error, "this run cannot be changed");
                            done.refused.push((id, "its rows cannot be read".to_owned()));
                        }
                        other => done.add(other?),
                    }
                }
            }
            other => done.add(other?),
        }
    }
    Ok(done)
}

fn task(engine: &Engine, book: &Book, run: &Matched, wisher: &Wisher) -> Option<Task> {
    Some(match run.deed {
        Deed::Cancel => Task::Cancel(run.id),
        Deed::Retry => Task::Retry(run.id),
        Deed::Rerun => Task::Rerun {
            of: run.id,
            start: start_of(engine, book, run, wisher).map(Box::new),
            ticket: wisher.ticket.map(|ticket| Ticket {
                key: digest_of_parts(&["rerun", &hex(&ticket.key), run.job.as_str()]),
                ..ticket
            }),
        },
        Deed::Collapsed => return None,
    })
}

fn start_of(engine: &Engine, book: &Book, run: &Matched, wisher: &Wisher) -> Result<Start, String> {
    let name = &run.job;
    let Some(job) = book.jobs.get(name) else {
        return Err(format!("job '{name}' is not configured any more"));
    };
    if !job.definition.enabled {
        return Err(format!("job '{name}' is disabled"));
    }
    Ok(Start {
        name: name.clone(),
        job: job.clone(),
        trigger: Trigger::Rerun {
            principal: wisher.principal.clone(),
            of: run.id,
        },
        node: Some(engine.node.clone()),
        run: RunId::fresh(),
        entry: EntryId::random(),
        retries: false,
        boot: None,
        rules: engine.rules(),
    })
}

async fn change(
    engine: &Engine,
    book: &Arc<Book>,
    filter: &RunFilter,
    wisher: &Wisher,
    tasks: Vec<Task>,
) -> Result<Done, ChangeError> {
    let (for_change, filter, by) = (Arc::clone(book), filter.clone(), wisher.principal.clone());
    let names: Vec<(RunId, String)> = tasks.iter().filter_map(Task::job).collect();
    let done = engine
        .store
        .change("matching runs", move |tx| {
            matching::act(tx, &for_change, (&filter, &by), &tasks)
        })
        .await?;
    for fence in &done.fences {
        let sentence = format!("cancelled by {}", wisher.principal);
        engine.live.stop(*fence, &Stop::Requested(sentence));
    }
    for begun in &done.begun {
        if let Some((_, name)) = names.iter().find(|(run, _)| *run == begun.run) {
            engine.metrics.count_started(name, "manual");
        }
    }
    engine.wake.notify_one();
    engine.wake_follow_ups.notify_one();
    Ok(done)
}
