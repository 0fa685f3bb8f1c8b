//! A crontab written anew as YAML: the same jobs, each key spelt out, what all have in common under `defaults`.

use std::fmt::Write as _;

use super::super::model::{CommandConfig, Config, DayMatch, EnvironmentEntry, JobConfig};
use super::super::source::Sources;
use super::line::{Line, lines, read_line};

const SHELL_DEFAULT: &str = "/bin/sh";

/// The YAML for a configuration that was read from crontabs alone. What it loads to are the same definitions.
pub fn crontab_as_yaml(config: &Config, sources: &Sources) -> String {
    let mut out = String::new();
    head(&mut out, config);
    let shared = Shared::of(&config.jobs);
    shared.write(&mut out);
    if config.jobs.is_empty() {
        out.push_str("jobs: []\n");
        return out;
    }
    out.push_str("jobs:\n");
    for (index, job) in config.jobs.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        let text = sources.text_of(&job.at.file).unwrap_or_default();
        for comment in comments_above(text, job) {
            let _ = writeln!(out, "  {}", shown_comment(comment));
        }
        shared.write_job(&mut out, job);
    }
    out
}

fn head(out: &mut String, config: &Config) {
    let names: Vec<&str> = config
        .crontabs
        .iter()
        .map(|crontab| crontab.path.as_str())
        .collect();
    let _ = writeln!(
        out,
        "{}",
        shown_comment(&format!("# Written from {}.", names.join(", ")))
    );
    let host = config
        .jobs
        .iter()
        .find(|job| job.timezone_from.as_deref().is_some_and(|from| from != "CRON_TZ"));
    if let Some((zone, from)) = host.and_then(|job| job.timezone.as_ref().zip(job.timezone_from.as_ref())) {
        let _ = writeln!(
            out,
            "# cron uses the zone of the machine; here it stands beside each job: {zone} (from {from})."
        );
    }
    if config.jobs.iter().any(|job| !job.labels.is_empty()) {
        out.push_str("# MAILTO is only a variable here: no mail is sent, output is kept with each run.\n");
    }
    out.push('\n');
}

/// What every job says.
struct Shared<'c> {
    timezone: Option<&'c str>,
    working_directory: Option<String>,
    shell: Option<String>,
    user: Option<&'c str>,
    /// The variables with which every list begins.
    environment: &'c [EnvironmentEntry],
}

impl<'c> Shared<'c> {
    fn of(jobs: &'c [JobConfig]) -> Self {
        let first = jobs.first().map_or(&[][..], |job| &job.launch.environment);
        let environment = jobs.iter().fold(first, |shared, job| {
            let count = shared
                .iter()
                .zip(&job.launch.environment)
                .take_while(|(one, other)| one == other)
                .count();
            &shared[..count]
        });
        Self {
            timezone: of_all(jobs, |job| job.timezone.as_deref()),
            working_directory: of_all(jobs, working_directory),
            shell: of_all(jobs, shell),
            user: of_all(jobs, |job| job.launch.user.as_deref()),
            environment,
        }
    }

    fn write(&self, out: &mut String) {
        let mut body = String::new();
        pair(&mut body, 2, "timezone", self.timezone);
        pair(&mut body, 2, "user", self.user);
        pair(&mut body, 2, "shell", self.shell.as_deref());
        pair(
            &mut body,
            2,
            "workingDirectory",
            self.working_directory.as_deref(),
        );
        environment(&mut body, 2, self.environment);
        if !body.is_empty() {
            let _ = write!(out, "defaults:\n{body}\n");
        }
    }

    fn write_job(&self, out: &mut String, job: &JobConfig) {
        let _ = writeln!(out, "  - name: {}", scalar(&job.name));
        if let Some(schedule) = &job.schedule {
            let _ = writeln!(out, "    schedule: {}", in_double_quotes(&schedule.text));
        }
        if job.day_match == Some(DayMatch::Or) {
            out.push_str("    dayMatch: or\n");
        }
        if self.timezone.is_none() {
            pair(out, 4, "timezone", job.timezone.as_deref());
        }
        if let CommandConfig::Shell(command) = &job.launch.command {
            pair(out, 4, "command", Some(command));
        }
        if self.user.is_none() {
            pair(out, 4, "user", job.launch.user.as_deref());
        }
        if self.shell.is_none() {
            pair(out, 4, "shell", shell(job).as_deref());
        }
        if self.working_directory.is_none() {
            pair(out, 4, "workingDirectory", working_directory(job).as_deref());
        }
        environment(out, 4, &job.launch.environment[self.environment.len()..]);
    }
}

/// The value that all jobs have.
fn of_all<'c, T: PartialEq>(jobs: &'c [JobConfig], value: impl Fn(&'c JobConfig) -> Option<T>) -> Option<T> {
    let first = value(jobs.first()?);
    jobs.iter()
        .all(|job| value(job) == first)
        .then_some(first)
        .flatten()
}

/// None is the default of a job, which need not be said.
fn shell(job: &JobConfig) -> Option<String> {
    let shell = job.launch.shell.to_string_lossy();
    (shell != SHELL_DEFAULT).then(|| shell.into_owned())
}

fn working_directory(job: &JobConfig) -> Option<String> {
    let path = job.launch.working_directory.as_ref()?;
    Some(unreplaced(&path.to_string_lossy()))
}

/// In YAML `${` would be replaced in these; a crontab has nothing like it.
fn unreplaced(text: &str) -> String {
    text.replace("${", "$${")
}

fn pair(out: &mut String, indent: usize, key: &str, value: Option<&str>) {
    if let Some(value) = value {
        let _ = writeln!(out, "{:indent$}{key}: {}", "", scalar(value));
    }
}

fn environment(out: &mut String, indent: usize, entries: &[EnvironmentEntry]) {
    if entries.is_empty() {
        return;
    }
    let _ = writeln!(out, "{:indent$}environment:", "");
    for entry in entries {
        let value = unreplaced(&entry.value);
        pair(out, indent + 2, &scalar(&entry.key), Some(&value));
    }
}

/// The comments directly above a job's line, without the one that names it.
fn comments_above<'t>(text: &'t str, job: &JobConfig) -> Vec<&'t str> {
    let above: Vec<&str> = lines(text)
        .take(job.at.line.saturating_sub(1))
        .map(|(_, line)| line)
        .collect();
    let mut comments: Vec<&str> = above
        .iter()
        .rev()
        .map_while(|line| match read_line(line, false) {
            Ok(Line::Comment) => Some(Some(line.trim())),
            Ok(Line::Name(_)) => Some(None),
            Ok(Line::Blank | Line::Variable { .. } | Line::Entry(_)) | Err(_) => None,
        })
        .flatten()
        .collect();
    comments.reverse();
    comments
}

/// A comment cannot carry what YAML does not count as text.
fn shown_comment(comment: &str) -> String {
    comment
        .chars()
        .map(|letter| if is_printable(letter) { letter } else { '\u{fffd}' })
        .collect()
}

fn is_printable(letter: char) -> bool {
    letter == '\t'
        || !(letter.is_control()
            || matches!(
                letter,
                '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
            ))
}

/// A text as one scalar on one line: without quotes where nobody could take it for anything else.
pub(super) fn scalar(text: &str) -> String {
    let is_word = !["null", "true", "false", "yes", "no", "on", "off"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word));
    let begins_plain = text
        .chars()
        .next()
        .is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '/' || letter == '_');
    let is_plain = is_word
        && begins_plain
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with([':', ' '])
        && text
            .chars()
            .all(|letter| letter == ' ' || letter.is_ascii_graphic());
    if is_plain {
        return text.to_owned();
    }
    let is_printed = text.chars().all(|letter| letter != '\t' && is_printable(letter));
    if is_printed && !text.contains('\'') && text.contains(['"', '\\']) {
        return format!("'{text}'");
    }
    in_double_quotes(text)
}

fn in_double_quotes(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\t' => quoted.push_str("\\t"),
            _ if is_printable(letter) => quoted.push(letter),
            _ => {
                let _ = write!(quoted, "\\U{:08x}", u32::from(letter));
            }
        }
    }
    quoted.push('"');
    quoted
}
