//! All that match: finds them in bounded reads, and acts on them in changes of a bounded size. What one change did is done,
//! whatever happens to the next.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::book::Book;
use super::changes::graph::{Begin, Ready};
use super::changes::matching::{self, Done, Found, Task};
use super::changes::remember::Ticket;
use super::changes::start::Start;
use super::changes::try_again::{self, NotTried};
use super::core::Engine;
use super::moving;
use crate::domain::disk;
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
    let mut repeated = BTreeSet::new();
    let truncated = loop {
        let (filter, mut known) = (filter.clone(), std::mem::take(&mut repeated));
        let read = engine.read(move |tx| {
            let place = (after, limits::PAGE_SCAN_MAX);
            let found = matching::find(tx, wish, &filter, place, &mut known)?;
            Ok((found, std::mem::take(&mut known)))
        });
        let (found, known) = read.await?;
        repeated = known;
        let Found {
            matched: more,
            more_after,
            scanned: looked,
        } = found;
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
    let book = engine.book();
    bulk::collapse(&mut matched, |name| book.jobs.contains_key(name));
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
        let mut tasks: Vec<Task> = Vec::new();
        for run in batch {
            let Some(task) = task(engine, &book, run, wisher).await? else {
                continue;
            };
            let weight: usize = tasks.iter().map(Task::weight).sum();
            if weight > 0 && weight + task.weight() > limits::BULK_ROWS_PER_CHANGE {
                let ready = std::mem::take(&mut tasks);
                done.add(change_some(engine, &book, filter, wisher, ready).await?);
            }
            tasks.push(task);
        }
        done.add(change_some(engine, &book, filter, wisher, tasks).await?);
    }
    Ok(done)
}

/// All of them in one change, or each in its own where one cannot be changed.
async fn change_some(
    engine: &Engine,
    book: &Arc<Book>,
    filter: &RunFilter,
    wisher: &Wisher,
    tasks: Vec<Task>,
) -> Result<Done, ChangeError> {
    let mut done = Done::default();
    match change(engine, book, filter, wisher, tasks.clone()).await {
        Err(ChangeError::Failed(error)) if error.is_row_fault() => {
            // One run that cannot be changed keeps no other from it.
            for task in tasks {
                let id = task.run();
                match change(engine, book, filter, wisher, vec![task]).await {
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
    Ok(done)
}

async fn task(
    engine: &Engine,
    book: &Book,
    run: &Matched,
    wisher: &Wisher,
) -> Result<Option<Task>, ChangeError> {
    // Under the same key nothing begins twice.
    let ticket = |word: &str, what: &str| {
        wisher.ticket.map(|ticket| Ticket {
            key: digest_of_parts(&[word, &hex(&ticket.key), what]),
            ..ticket
        })
    };
    Ok(Some(match run.deed {
        Deed::Cancel => Task::Cancel(run.id),
        Deed::Retry => Task::Retry(run.id),
        Deed::Rerun => Task::Rerun {
            of: run.id,
            start: start_of(engine, book, run, wisher).map(Box::new),
            ticket: ticket("rerun", run.job.as_str()),
        },
        Deed::Again => Task::Again {
            of: run.id,
            begin: again_of(engine, run, wisher).await?,
            ticket: ticket("again", &run.id.to_string()),
        },
        Deed::Collapsed => return Ok(None),
    }))
}

/// What a new run takes over of another one, read and computed before the change.
async fn again_of(
    engine: &Engine,
    run: &Matched,
    wisher: &Wisher,
) -> Result<Result<Arc<Begin>, String>, ChangeError> {
    if engine.rules().no_room {
        return Ok(Err(disk::NO_ROOM.to_owned()));
    }
    let (id, principal) = (run.id, wisher.principal.clone());
    let read = moving::at_desk(engine, move |tx, desk| {
        try_again::prepare(tx, desk, id, None, &principal)
    });
    match read.await {
        Ok(Ok(begin)) => Ok(Ok(Arc::new(begin))),
        Ok(Err(NotTried::Refused(why))) => Ok(Err(why)),
        Ok(Err(NotTried::NotFound)) => Ok(Err("it is not there any more".to_owned())),
        Err(error) if error.is_row_fault() => {
            tracing::error!(run = %run.id, cause = %error, "this run cannot be read");
            Ok(Err("its rows cannot be read".to_owned()))
        }
        Err(error) => Err(ChangeError::Failed(error)),
    }
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
    let mut ready = Ready::default();
    for task in &tasks {
        if let Task::Again { begin: Ok(begin), .. } = task {
            ready.add(&begin.graph, &begin.changes, &begin.children);
        }
    }
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
    // Runs of graphs: what was begun wants workers, what was cancelled has a letter.
    engine.mailboxes.look();
    engine.rouse(&ready);
    Ok(done)
}
