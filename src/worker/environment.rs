//! What a command is started with: its environment, folder, user and limits, resolved at each launch.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::process::{LaunchSpec, Program};
use super::secrets::Secrets;
use crate::domain::workflow::definition::{CommandLine, CommandStep};
use crate::os::rlimits::Limit;
use crate::os::supervisor;
use crate::os::user::{Accounts, Credentials, User, own_uid};
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
    let (credentials, account) = account_of(step)?;
    environment.extend(account.iter().flat_map(variables_of));
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
    let home = account.map(|account| account.home).or_else(own_home);
    let folder = step.working_directory.as_deref();
    spec.cwd = folder.map(|path| with_home(path, home.as_deref()));
    spec.credentials = credentials;
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

/// What the command runs as, and the entry of its user if one is named and there is one.
fn account_of(step: &CommandStep) -> Result<(Credentials, Option<User>), String> {
    if step.user.is_none() && step.group.is_none() {
        return Ok((Credentials::default(), None));
    }
    let accounts = Accounts::read().map_err(|error| format!("the accounts cannot be read: {error}"))?;
    let credentials = accounts
        .resolve(step.user.as_deref(), step.group.as_deref())
        .map_err(|error| error.to_string())?;
    let account = step.user.as_deref().and_then(|word| accounts.user(word)).cloned();
    Ok((credentials, account))
}

/// What a login would set: the daemon's own would send another user's command into the wrong home.
fn variables_of(account: &User) -> [(String, String); 3] {
    let home = account.home.to_string_lossy().into_owned();
    [
        ("HOME".to_owned(), home),
        ("USER".to_owned(), account.name.clone()),
        ("LOGNAME".to_owned(), account.name.clone()),
    ]
}

/// `~` at the start is the home of the daemon's user.
pub(super) fn expand_home(path: &str) -> PathBuf {
    if path.starts_with('~') {
        with_home(path, own_home().as_deref())
    } else {
        PathBuf::from(path)
    }
}

/// A service of the system may have no HOME; its user has one all the same.
fn own_home() -> Option<PathBuf> {
    let given = std::env::var_os("HOME").filter(|home| !home.is_empty());
    given.map(PathBuf::from).or_else(|| {
        let accounts = Accounts::read().ok()?;
        Some(accounts.user(&own_uid().to_string())?.home.clone())
    })
}

fn with_home(path: &str, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home.to_owned(),
        (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        (Some(_) | None, _) => PathBuf::from(path),
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
    fn a_tilde_is_the_home_of_whoever_runs_the_command() {
        let home = Some(Path::new("/var/ann"));
        for (path, home, expected) in [
            ("~", home, "/var/ann"),
            ("~/x", home, "/var/ann/x"),
            ("~bob/x", home, "~bob/x"),
            ("/x", home, "/x"),
            ("~/x", None, "~/x"),
        ] {
            assert_eq!(with_home(path, home), PathBuf::from(expected));
        }
        let accounts = Accounts::parse("ann:x:1000:1000::/var/ann:/bin/sh\n", "");
        let variables = variables_of(accounts.user("ann").unwrap());
        let variables = variables.map(|(key, value)| format!("{key}={value}"));
        assert_eq!(variables, ["HOME=/var/ann", "USER=ann", "LOGNAME=ann"]);
    }

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
