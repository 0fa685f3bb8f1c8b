//! What a command is started with: its environment, folder, user and limits, resolved at each launch.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::process::{LaunchSpec, Program};
use super::secrets::Secrets;
use crate::domain::workflow::definition::{CommandLine, CommandStep};
use crate::os::rlimits::Limit;
use crate::os::supervisor;
use crate::os::user::Accounts;
use crate::words::limits;

/// Resolves `step` into a launch message. `marks` are the daemon's own variables; nothing overrides them.
/// The error is the sentence after `launch failed: `. Reads files: call it from a blocking context.
pub fn resolve(
    step: &CommandStep,
    script: &CommandLine,
    secrets: &Secrets,
    marks: &[(String, String)],
) -> Result<LaunchSpec, String> {
    let mut environment: BTreeMap<String, String> = std::env::vars_os()
        // A variable that is no text cannot be carried in the launch message.
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(key, _)| !key.starts_with("DUCTOR_") && !supervisor::VARIABLES.contains(&key.as_str()))
        .collect();
    if let Some(path) = &step.env_file {
        environment.extend(read_env_file(&expand_home(path))?);
    }
    environment.extend(step.environment.iter().cloned());
    environment.extend(secrets.variables().iter().cloned());
    environment.extend(marks.iter().cloned());
    let program = match script {
        CommandLine::Shell(script) => Program::Shell {
            shell: PathBuf::from(&step.shell),
            script: script.clone(),
        },
        CommandLine::List(words) => Program::List(words.clone()),
    };
    let mut spec = LaunchSpec::new(program, environment.into_iter().collect());
    spec.cwd = step.working_directory.as_deref().map(expand_home);
    if step.user.is_some() || step.group.is_some() {
        let accounts = Accounts::read().map_err(|error| format!("the accounts cannot be read: {error}"))?;
        spec.credentials = accounts
            .resolve(step.user.as_deref(), step.group.as_deref())
            .map_err(|error| error.to_string())?;
    }
    for (key, value) in &step.resource_limits {
        let limit = limit_of(key).ok_or_else(|| format!("unknown resource limit `{key}`"))?;
        spec.limits.push((limit, *value));
    }
    Ok(spec)
}

fn limit_of(key: &str) -> Option<Limit> {
    match key {
        "cpuSeconds" => Some(Limit::CpuSeconds),
        "memory" => Some(Limit::Memory),
        "processes" => Some(Limit::Processes),
        "openFiles" => Some(Limit::OpenFiles),
        "fileSize" => Some(Limit::FileSize),
        "core" => Some(Limit::Core),
        _ => None,
    }
}

/// `~` at the start is the home of the daemon's user.
pub(super) fn expand_home(path: &str) -> PathBuf {
    let home = || std::env::var_os("HOME").map(PathBuf::from);
    match path.strip_prefix('~') {
        Some("") => home().unwrap_or_else(|| PathBuf::from(path)),
        Some(rest) if rest.starts_with('/') => home().map_or_else(
            || PathBuf::from(path),
            |home| home.join(rest.trim_start_matches('/')),
        ),
        Some(_) | None => PathBuf::from(path),
    }
}

fn read_env_file(path: &Path) -> Result<Vec<(String, String)>, String> {
    let shown = path.display();
    let size = std::fs::metadata(path)
        .map_err(|error| format!("envFile {shown}: {error}"))?
        .len();
    if size > limits::ENV_FILE_BYTES_MAX {
        return Err(format!(
            "envFile {shown}: {size} bytes, at most {}",
            limits::ENV_FILE_BYTES_MAX
        ));
    }
    let text = std::fs::read_to_string(path).map_err(|error| format!("envFile {shown}: {error}"))?;
    parse_env_file(&text).map_err(|line| format!("envFile {shown}, line {line}: expected KEY=VALUE"))
}

/// KEY=VALUE lines, blank lines and `#` comments; the number of the first other line is the error.
fn parse_env_file(text: &str) -> Result<Vec<(String, String)>, usize> {
    let mut variables = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (key, value) = line.split_once('=').ok_or(number + 1)?;
        let key = key.trim();
        if key.is_empty() || key.contains(char::is_whitespace) || value.contains('\0') {
            return Err(number + 1);
        }
        variables.push((key.to_owned(), unquote(value.trim()).to_owned()));
    }
    Ok(variables)
}

fn unquote(value: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inner) = value
            .strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote))
        {
            return inner;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_env_file_is_read_line_by_line() {
        let text = "# comment\n\nA=1\n B = two words \nC=\"quoted\"\nD='x=y'\nE=\r\n";
        let read = parse_env_file(text).unwrap();
        let pairs: Vec<(&str, &str)> = read
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        assert_eq!(
            pairs,
            [
                ("A", "1"),
                ("B", "two words"),
                ("C", "quoted"),
                ("D", "x=y"),
                ("E", "")
            ]
        );
        assert_eq!(parse_env_file("A=1\nnonsense"), Err(2));
        assert_eq!(parse_env_file("A B=1"), Err(1));
    }
}
