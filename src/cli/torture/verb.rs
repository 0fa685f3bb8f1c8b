//! `ductor torture`: from the arguments to the verdict.

use std::path::PathBuf;
use std::sync::PoisonError;

use tokio::signal::unix::{SignalKind, signal};

use super::super::exit::Exit;
use super::super::failure::Failure;
use super::super::show::Show;
use super::args::TortureArguments;
use super::fleet::Fleet;
use super::plan::{self, Abilities};
use super::round::Stage;
use super::site::Site;
use super::told::{Head, Totals, round_line};
use super::verdict::Past;
use crate::os::clock::boottime_ms;
use crate::words::ids::EntryId;

/// How long new rounds begin if nothing is said.
const LENGTH_MS: u64 = 60_000;

/// Runs the whole test.
pub(crate) async fn torture(arguments: &TortureArguments, show: &Show) -> Result<Exit, Failure> {
    let site = Site::take(&arguments.dir)?;
    let seed = arguments.seed.unwrap_or_else(drawn);
    let daemons = usize::from(arguments.daemons);
    let why_not_filled = site.why_not_filled();
    let abilities = Abilities {
        daemons,
        planned_faults: cfg!(debug_assertions),
        fill: why_not_filled.is_none(),
    };
    let directory = site.root().display().to_string();
    let head = Head {
        directory: &directory,
        seed,
        daemons,
        not_tried: not_tried(abilities, why_not_filled),
    };
    if !show.json {
        head.tell(show)?;
    }
    let program = own_program()?;
    let mut stage = Stage {
        fleet: Fleet::new(&site, &program, daemons),
        site,
        program,
        books: super::load::Books::default(),
        past: Past::default(),
        seed,
        daemons,
        version: 1,
    };
    stage.write_config();
    let mut totals = Totals::default();
    let interrupted = tokio::select! {
        told = all_rounds(arguments, abilities, &mut stage, &mut totals, show) => {
            told?;
            false
        }
        told = asked_to_end() => {
            told?;
            true
        }
    };
    totals.refused = stage.books.lock().unwrap_or_else(PoisonError::into_inner).refused;
    if interrupted {
        return Ok(leave(stage, show));
    }
    let lost = !totals.findings.is_empty();
    let site = stage.site.clone();
    drop(stage);
    let clean = ending(&site, lost || arguments.keep);
    if show.json {
        show.json_line(&totals.document(&head, &clean))?;
    } else {
        totals.tell(seed, show)?;
        show.data(&format!("{clean}\n"))?;
    }
    Ok(if lost { Exit::Negative } else { Exit::Done })
}

/// Rounds until the time or their number is over or something is lost, and the settling.
async fn all_rounds(
    arguments: &TortureArguments,
    abilities: Abilities,
    stage: &mut Stage,
    totals: &mut Totals,
    show: &Show,
) -> Result<(), Failure> {
    let end = boottime_ms() + arguments.length.unwrap_or(LENGTH_MS);
    for number in 1.. {
        let over = match arguments.rounds {
            Some(rounds) => number > rounds,
            None => boottime_ms() >= end,
        };
        if over || !totals.findings.is_empty() {
            break;
        }
        let round = plan::round(stage.seed, number, abilities);
        let outcome = stage.round(&round).await;
        totals.add_round(&round);
        totals.add(&outcome);
        if !show.json {
            show.data(&round_line(&round, &outcome))?;
        }
    }
    if let Some(plant) = arguments.plant {
        stage.plant(plant);
    }
    // After a loss the store stays as it was found.
    if totals.findings.is_empty() {
        let outcome = stage.settle().await;
        totals.add(&outcome);
    }
    Ok(())
}

/// The binary by its path: a command of a job cannot be told `/proc/self/exe`.
fn own_program() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|error| Failure::Negative(format!("the path of this program cannot be found: {error}")))
}

/// A seed of chance, short enough to be typed again.
fn drawn() -> u64 {
    let [first, second, third, ..] = EntryId::random().0;
    u64::from(first) << 16 | u64::from(second) << 8 | u64::from(third)
}

fn not_tried(abilities: Abilities, why_not_filled: Option<&str>) -> Vec<String> {
    let mut sentences = Vec::new();
    if !abilities.planned_faults {
        sentences.push(
            "I/O errors at points of the code, moved clocks, bad locks (only a debug build knows them)"
                .to_owned(),
        );
    }
    if let Some(why) = why_not_filled {
        sentences.push(format!(
            "a full disk ({why}; mount one of up to 1 GiB for it and name it with --dir)"
        ));
    }
    sentences
}

async fn asked_to_end() -> Result<(), Failure> {
    let cannot = |error: std::io::Error| Failure::Negative(format!("signals cannot be received: {error}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
    tokio::select! {
        told = tokio::signal::ctrl_c() => told.map_err(cannot),
        _ = terminate.recv() => Ok(()),
    }
}

/// Ends everything at once; the commands that still run end by themselves in a moment.
fn leave(stage: Stage, show: &Show) -> Exit {
    let site = stage.site.clone();
    drop(stage);
    show.note(&format!(
        "interrupted; all daemons are ended, {} stays as it is and the next torture may take it over",
        site.root().display()
    ));
    Exit::Interrupted
}

/// What happens to the directory; the sentence about it.
fn ending(site: &Site, stays: bool) -> String {
    let shown = site.root().display();
    if stays {
        return format!(
            "{shown} stays as it is: state/, evidence/, logs/; the next torture may take it over."
        );
    }
    match site.clear() {
        Ok(()) => format!("{shown} is emptied again."),
        Err(error) => format!("{shown} could not be emptied: {error}."),
    }
}
