//! `ductor check`: everything that is wrong with a configuration, or what it says. Works without a daemon.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::args::ServeArguments;
use super::configuration;
use super::doctor::counted;
use super::exit::Exit;
use super::failure::Failure;
use super::show::{Fit, Show, dash};
use super::table::{Kind, Table};
use super::times;
use crate::config::{self, Config, Fault, Origin, Paint, Severity, Sources};
use crate::daemon::{Checked, Loader, NextFire, next_fires};
use crate::words::time::Millis;

const EXAMPLES: &str = "\
Without PATH the configuration is found as `ductor serve` finds it. Several
PATHs are checked one by one; a directory of files is one configuration.

Examples:
  ductor check
  ductor check --strict config/*.yaml   for a build: warnings fail too
  ductor check --show-origin            who said so: a file, a flag, nobody

Exit codes: 0 good, 2 not good (with --strict: warnings are not good).";

/// Arguments of `check`.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[command(after_help = EXAMPLES)]
pub(super) struct CheckArguments {
    /// Configuration files, or directories of them.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Fail on warnings too.
    #[arg(long)]
    strict: bool,
    /// Also print each value in force and where it comes from.
    #[arg(long)]
    show_origin: bool,
    /// Print the JSON Schema of the file, for editors.
    #[arg(long, conflicts_with = "paths")]
    print_schema: bool,
    /// Print the reference page of all keys.
    #[arg(long, conflicts_with_all = ["paths", "print_schema"], hide = true)]
    print_reference: bool,
}

/// Checks, tells, and says 2 when something is not good.
pub(super) fn check(arguments: &CheckArguments, show: &Show) -> Result<Exit, Failure> {
    if arguments.print_schema {
        show.data(&config::schema())?;
        return Ok(Exit::Done);
    }
    if arguments.print_reference {
        show.data(&config::reference())?;
        return Ok(Exit::Done);
    }
    let named: Vec<Option<PathBuf>> = match arguments.paths.as_slice() {
        [] => vec![None],
        paths => paths.iter().cloned().map(Some).collect(),
    };
    let mut exit = Exit::Done;
    let mut views = Vec::new();
    for (index, named) in named.into_iter().enumerate() {
        let Seen {
            path,
            checked,
            origins,
        } = look(named, arguments.show_origin);
        if !is_good(&checked, arguments.strict) {
            exit = Exit::Usage;
        }
        if show.json {
            let mut view = view(&path, &checked, arguments.strict, show.now());
            if arguments.show_origin {
                view["origins"] = origins.iter().map(origin_view).collect();
            }
            views.push(view);
            continue;
        }
        show.data(if index == 0 { "" } else { "\n" })?;
        tell(&path, &checked, arguments.strict, show)?;
        if !origins.is_empty() {
            show.data("\n")?;
            show.table(&origins_table(&origins))?;
        }
    }
    if show.json {
        show.json_line(&json!({"data": views}))?;
    }
    Ok(exit)
}

/// One configuration that was looked at.
struct Seen {
    path: PathBuf,
    checked: Checked,
    origins: Vec<Origin>,
}

fn look(named: Option<PathBuf>, show_origin: bool) -> Seen {
    let path = match configuration::find(named) {
        Ok(path) => path,
        Err(fault) => {
            let checked = Checked {
                config: None,
                findings: vec![*fault],
                sources: Sources::default(),
                bundles: Sources::default(),
            };
            return Seen {
                path: PathBuf::from("ductor.yaml"),
                checked,
                origins: Vec::new(),
            };
        }
    };
    let loader = Loader::new(path.clone(), configuration::overrides(&ServeArguments::default()));
    let checked = loader.check();
    let origins = if show_origin {
        loader.origins(&checked)
    } else {
        Vec::new()
    };
    Seen {
        path,
        checked,
        origins,
    }
}

fn origins_table(origins: &[Origin]) -> Table {
    let mut table = Table::new(&[
        ("KEY", Kind::Whole),
        ("VALUE", Kind::Sentence),
        ("FROM", Kind::Whole),
    ]);
    for origin in origins {
        table.row(&[origin.key.clone(), origin.value.clone(), origin.from.clone()]);
    }
    table
}

fn is_good(checked: &Checked, strict: bool) -> bool {
    let worst = if strict {
        Severity::Warning
    } else {
        Severity::Error
    };
    checked.config.is_some() && checked.findings.iter().all(|finding| finding.severity > worst)
}

fn tell(path: &Path, checked: &Checked, strict: bool, show: &Show) -> Result<(), Failure> {
    let paint = if show.paints() {
        Paint::Coloured
    } else {
        Paint::Plain
    };
    let findings = config::render(&checked.findings, &checked.sources.and(&checked.bundles), paint);
    if !findings.is_empty() {
        show.data(&format!("{findings}\n"))?;
    }
    let path = path.display();
    let counts = counts_of(&checked.findings);
    let counted = if counts.is_empty() {
        String::new()
    } else {
        format!(" ({counts})")
    };
    match &checked.config {
        Some(config) if is_good(checked, strict) => {
            show.data(&format!("{} is good{counted}: {}.\n", path, sizes_of(config)))?;
            summary(config, show)
        }
        Some(_) if strict => show.data(&format!("{path} is not good by --strict: {counts}.\n")),
        Some(_) => show.data(&format!("{path} is not good: {counts}.\n")),
        None => show.data(&format!("{path} cannot be used: {counts}.\n")),
    }
}

fn counts_of(findings: &[Fault]) -> String {
    let words = [
        (Severity::Error, "error"),
        (Severity::Warning, "warning"),
        (Severity::Note, "note"),
    ];
    let counts = words.into_iter().filter_map(|(severity, word)| {
        let count = findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .count();
        (count > 0).then(|| counted(count, word))
    });
    counts.collect::<Vec<_>>().join(", ")
}

fn sizes_of(config: &Config) -> String {
    let disabled = config.jobs.iter().filter(|job| !job.enabled).count();
    let mut sizes = counted(config.jobs.len(), "job");
    if disabled > 0 {
        sizes.push_str(&format!(" ({disabled} disabled)"));
    }
    if !config.dags.is_empty() {
        let tasks = config.dags.iter().map(|dag| dag.tasks.len()).sum();
        let (dags, tasks) = (counted(config.dags.len(), "dag"), counted(tasks, "task"));
        sizes.push_str(&format!(", {dags} with {tasks}"));
    }
    sizes.push_str(&format!(", {}", counted(config.slot_pools.len(), "slot pool")));
    if !config.routing.bundles.is_empty() {
        sizes.push_str(&format!(", {}", counted(config.routing.bundles.len(), "bundle")));
    }
    sizes
}

fn summary(config: &Config, show: &Show) -> Result<(), Failure> {
    if !config.slot_pools.is_empty() {
        let mut table = Table::new(&[
            ("SLOT POOL", Kind::Whole),
            ("SLOTS", Kind::Number),
            ("MAX QUEUED", Kind::Number),
        ]);
        for slots in &config.slot_pools {
            table.row(&[
                slots.name.clone(),
                slots.slots.to_string(),
                slots.max_queued.to_string(),
            ]);
        }
        show.data("\n")?;
        show.table(&table)?;
    }
    if config.jobs.is_empty() && config.dags.is_empty() {
        return Ok(());
    }
    let now = show.now();
    let fires = next_fires(config, now);
    show.data("\n")?;
    show.fitting(|fit| jobs_table(&fires, now, fit))
}

fn jobs_table(fires: &[NextFire], now: Millis, fit: Fit) -> Table {
    let has_dags = fires.iter().any(|fire| fire.tasks.is_some());
    let mut columns = vec![
        (if has_dags { "JOB OR DAG" } else { "JOB" }, Kind::Whole),
        ("SCHEDULE", Kind::Sentence),
        ("NEXT FIRE", Kind::Whole),
    ];
    match fit {
        Fit::Wide => columns.extend([("IN", Kind::Whole), ("ZONE", Kind::Whole)]),
        Fit::Narrow => columns.push(("ZONE", Kind::Whole)),
        Fit::Least => columns.push(("ZONE", Kind::Below)),
    }
    let mut table = Table::new(&columns);
    for fire in fires {
        let schedule = fire.schedule.clone().unwrap_or_else(|| "by hand".to_owned());
        let mut cells = vec![fire.job.clone(), schedule, when(fire)];
        if fit == Fit::Wide {
            cells.push(fire.at.map_or_else(dash, |at| times::relative(at, now)));
        }
        cells.push(fire.zone.clone().unwrap_or_default());
        table.row(&cells);
    }
    table
}

fn when(fire: &NextFire) -> String {
    match (&fire.local, &fire.schedule) {
        (Some(local), _) => local.replacen('T', " ", 1),
        (None, _) if !fire.enabled => "disabled".to_owned(),
        (None, Some(_)) => "never".to_owned(),
        (None, None) => dash(),
    }
}

fn origin_view(origin: &Origin) -> Value {
    json!({"key": origin.key, "value": origin.value, "from": origin.from})
}

fn view(path: &Path, checked: &Checked, strict: bool, now: Millis) -> Value {
    let mut view = json!({
        "path": path.display().to_string(),
        "good": is_good(checked, strict),
        "findings": checked.findings,
    });
    if let Some(config) = &checked.config {
        let (jobs, dags): (Vec<NextFire>, Vec<NextFire>) = next_fires(config, now)
            .into_iter()
            .partition(|fire| fire.tasks.is_none());
        let fire_view = |fire: NextFire| {
            json!({
                "name": fire.job, "enabled": fire.enabled, "schedule": fire.schedule, "words": fire.words,
                "timezone": fire.zone, "next": fire.at.map(|at| at.to_string()), "next_local": fire.local,
            })
        };
        let jobs = jobs.into_iter().map(fire_view);
        let dags = dags.into_iter().map(|fire| {
            let tasks = fire.tasks;
            let mut view = fire_view(fire);
            view["tasks"] = json!(tasks);
            view
        });
        let pools = config.slot_pools.iter();
        let pools = pools
            .map(|slots| json!({"name": slots.name, "slots": slots.slots, "max_queued": slots.max_queued}));
        view["jobs"] = jobs.collect();
        view["dags"] = dags.collect();
        view["pools"] = pools.collect();
    }
    view
}
