//! `ductor init`: a first configuration, from a template, from a crontab, or around a file of cronstable. Works without
//! a daemon and never writes over a file.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;

use super::configuration;
use super::exit::Exit;
use super::failure::Failure;
use super::show::{Show, write_stderr};
use crate::config::{self, Form};
use crate::daemon::{self, Loaded, Unusable, definitions_of};

const EXAMPLES: &str = "\
Examples:
  ductor init                                  ductor.yaml with two jobs, here
  ductor init shop --template slots            shop/ductor.yaml, a slot pool
  ductor init shop --template dag              tasks that wait for each other
  crontab -l | ductor init --from-crontab -    your crontab, as YAML
  ductor init --from-crontab /etc/crontab --user-column
  ductor init --from-cronstable jobs.yaml      kept as it is, and included

A crontab need not be rewritten: `crontabs: [FILE]` in ductor.yaml reads it as
it is.

Exit codes: 0 written, 2 the file to move in has faults, 5 a file is there
already.";

/// The file that is written.
const NAME: &str = "ductor.yaml";

/// Arguments of `init`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct InitArguments {
    /// Where to write; made if it is not there.
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// What to begin with.
    #[arg(long, value_enum, default_value = "cron", conflicts_with_all = ["from_crontab", "from_cronstable"])]
    template: Template,
    /// Write the jobs of this crontab as YAML; `-` reads standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "from_cronstable")]
    from_crontab: Option<PathBuf>,
    /// The crontab has a sixth column with the user, as /etc/crontab has.
    #[arg(long, requires = "from_crontab")]
    user_column: bool,
    /// Copy this file of cronstable or yacron, and include it.
    #[arg(long, value_name = "FILE")]
    from_cronstable: Option<PathBuf>,
}

/// A configuration to begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Template {
    /// Jobs by the clock.
    Cron,
    /// Jobs that share a slot pool.
    Slots,
    /// Tasks that wait for each other.
    Dag,
}

impl Template {
    fn text(self) -> &'static str {
        match self {
            Template::Cron => include_str!("templates/cron.yaml"),
            Template::Slots => include_str!("templates/slots.yaml"),
            Template::Dag => include_str!("templates/dag.yaml"),
        }
    }
}

/// What is going to be written, and said about it.
struct Writing {
    /// Names in the directory, with their texts.
    files: Vec<(String, Vec<u8>)>,
    jobs: usize,
    dags: usize,
    /// What to do before the first start.
    before: Option<String>,
}

/// Writes it.
pub(super) fn init(arguments: &InitArguments, show: &Show) -> Result<Exit, Failure> {
    let made = match (&arguments.from_crontab, &arguments.from_cronstable) {
        (Some(file), _) => of_crontab(file, arguments.user_column, show),
        (None, Some(file)) => of_cronstable(file, &arguments.directory, show),
        (None, None) => of_template(arguments.template),
    };
    let writing = match made {
        Ok(writing) => writing,
        Err(Stopped::Faults(unusable)) => {
            tell(&unusable.faults, &unusable.sources);
            return Ok(Exit::Usage);
        }
        Err(Stopped::Failure(failure)) => return Err(failure),
    };
    let written = write(&arguments.directory, &writing.files)?;
    if show.json {
        show.json_line(&json!({"data": {"written": written, "jobs": writing.jobs, "dags": writing.dags}}))?;
        return Ok(Exit::Done);
    }
    for path in &written {
        show.data(&format!("wrote {path}\n"))?;
    }
    next_steps(arguments, &writing, show)?;
    Ok(Exit::Done)
}

/// Why nothing is written.
enum Stopped {
    Faults(Unusable),
    Failure(Failure),
}

impl From<Unusable> for Stopped {
    fn from(unusable: Unusable) -> Stopped {
        Stopped::Faults(unusable)
    }
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Stopped {
        Stopped::Failure(failure)
    }
}

fn of_template(template: Template) -> Result<Writing, Stopped> {
    let text = template.text();
    let loaded = daemon::load_text(NAME, text)?;
    Ok(Writing {
        files: vec![(NAME.to_owned(), text.as_bytes().to_vec())],
        jobs: loaded.config.jobs.len(),
        dags: loaded.config.dags.len(),
        before: None,
    })
}

fn of_crontab(file: &Path, user_column: bool, show: &Show) -> Result<Writing, Stopped> {
    let is_stdin = file == Path::new("-");
    let (path, name) = if is_stdin {
        (Path::new("/dev/stdin"), "crontab".to_owned())
    } else {
        (file, file.display().to_string())
    };
    let loaded = daemon::load_as(path, &name, Form::Crontab { user_column })?;
    let yaml = config::crontab_as_yaml(&loaded.config, &loaded.sources);
    let again = daemon::load_text(NAME, &yaml);
    if !again.is_ok_and(|again| defines_the_same(&loaded, &again)) {
        let sentence = format!(
            "{name} cannot be written as YAML without a change; read it as it is, with `crontabs`, and please report this"
        );
        return Err(Failure::Negative(sentence).into());
    }
    remark(&loaded, show);
    let count = loaded.config.jobs.len();
    let before = format!("take the {count} lines out of the crontab first, or cron runs them too");
    Ok(Writing {
        files: vec![(NAME.to_owned(), yaml.into_bytes())],
        jobs: count,
        dags: 0,
        before: (count > 0).then_some(before),
    })
}

fn defines_the_same(one: &Loaded, other: &Loaded) -> bool {
    let definitions = |loaded: &Loaded| definitions_of(&loaded.config).ok();
    definitions(one).is_some_and(|all| Some(all) == definitions(other))
}

fn of_cronstable(file: &Path, directory: &Path, show: &Show) -> Result<Writing, Stopped> {
    let shown = file.display().to_string();
    let loaded = daemon::load_as(file, &shown, Form::Cronstable)?;
    let name = included_name(file);
    let [source] = loaded.sources.files.as_slice() else {
        let sentence = format!(
            "{shown} includes other files: call it {name}, leave it where it is, and name it in `include`"
        );
        return Err(Failure::Usage(sentence).into());
    };
    let bytes = source.text.as_bytes().to_vec();
    remark(&loaded, show);
    let is_there = fs::canonicalize(file)
        .is_ok_and(|real| fs::canonicalize(directory.join(&name)).is_ok_and(|other| other == real));
    let quoted = serde_json::Value::from(name.as_str());
    let head = format!(
        "# The jobs stand in a file of cronstable, which is read as it is: its name says so. There both day fields must\n\
         # match, and `defaults` are its own. What ductor does not have is told by `ductor check`.\n\n\
         state:\n  path: ./state\n\ninclude:\n  - {quoted}\n"
    );
    let mut files = vec![(NAME.to_owned(), head.into_bytes())];
    if !is_there {
        files.push((name, bytes));
    }
    let jobs = loaded.config.jobs.len();
    let before = "end cronstable first, or it runs the jobs too".to_owned();
    Ok(Writing {
        files,
        jobs,
        dags: loaded.config.dags.len(),
        before: (jobs > 0).then_some(before),
    })
}

/// The name under which the form of a file is known.
fn included_name(file: &Path) -> String {
    let name = file
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    if Form::of(Path::new(&name)) == Form::Cronstable {
        return name;
    }
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    format!("{stem}.cronstable.yaml")
}

fn tell(faults: &[config::Fault], sources: &config::Sources) {
    let paint = configuration::paint(io::stderr().is_terminal());
    write_stderr(config::render(faults, sources, paint).as_bytes());
}

fn remark(loaded: &Loaded, show: &Show) {
    if !show.json && !loaded.warnings.is_empty() {
        tell(&loaded.warnings, &loaded.sources);
        write_stderr(b"\n");
    }
}

/// All files or none: what stands in the way is looked for before anything is made.
fn write(directory: &Path, files: &[(String, Vec<u8>)]) -> Result<Vec<String>, Failure> {
    let path_of = |name: &str| {
        if directory == Path::new(".") {
            PathBuf::from(name)
        } else {
            directory.join(name)
        }
    };
    let is_there = |path: &Path| path.symlink_metadata().is_ok();
    if let Some((name, _)) = files.iter().find(|(name, _)| is_there(&path_of(name))) {
        return Err(in_the_way(&path_of(name)));
    }
    let cannot = |path: &Path, error: &io::Error| {
        Failure::Negative(format!("{} cannot be written: {error}", path.display()))
    };
    fs::create_dir_all(directory).map_err(|error| cannot(directory, &error))?;
    let mut written = Vec::new();
    for (name, bytes) in files {
        let path = path_of(name);
        let mut file = match fs::File::create_new(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(in_the_way(&path)),
            Err(error) => return Err(cannot(&path, &error)),
        };
        if let Err(error) = file.write_all(bytes).and_then(|()| file.sync_all()) {
            // Half a file would stand in the way of the next try.
            fs::remove_file(&path).ok();
            return Err(cannot(&path, &error));
        }
        written.push(path.display().to_string());
    }
    Ok(written)
}

fn in_the_way(path: &Path) -> Failure {
    Failure::Conflict(format!(
        "{} is there already and is not written over; name another directory",
        path.display()
    ))
}

fn next_steps(arguments: &InitArguments, writing: &Writing, show: &Show) -> Result<(), Failure> {
    let counted = |count: usize, word: &str| match count {
        1 => format!("1 {word}"),
        many => format!("{many} {word}s"),
    };
    let jobs = match (writing.jobs, writing.dags) {
        (jobs, 0) => counted(jobs, "job"),
        (0, dags) => counted(dags, "dag"),
        (jobs, dags) => format!("{}, {}", counted(jobs, "job"), counted(dags, "dag")),
    };
    let place = if arguments.directory == Path::new(".") {
        String::new()
    } else {
        format!(" --config {}", arguments.directory.join(NAME).display())
    };
    let checked = place.replacen(" --config", "", 1);
    let mut text = format!("\n{jobs}. Next:\n");
    text.push_str(&format!("  ductor check{checked}\n"));
    if let Some(before) = &writing.before {
        text.push_str(&format!("  {before}\n"));
    }
    text.push_str(&format!("  ductor serve{place}\n"));
    text.push_str("  ductor status\n");
    show.data(&text)
}
