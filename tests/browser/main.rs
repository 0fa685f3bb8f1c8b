//! The dashboard in headless Chromium: the scripts beside this file, run by Node against the binary that was just built.
//! A target with its own `main`, since libtest would swallow the notice that there is no browser.

use std::env;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// The names under which distributions have it.
const CHROMIUMS: &[&str] = &["chromium", "chromium-browser", "google-chrome"];
/// The oldest Node that playwright-core runs on.
const NODE_MIN: u32 = 20;

fn main() -> ExitCode {
    let asked = Asked::read(env::args().skip(1));
    if asked.list {
        return ExitCode::SUCCESS;
    }
    match Tools::find() {
        Ok(tools) => run(&tools, &asked),
        Err(missing) => without_browser(&missing),
    }
}

fn without_browser(missing: &str) -> ExitCode {
    if env::var_os("DUCTOR_REQUIRE_BROWSER").is_some_and(|value| value == "1") {
        say(&format!(
            "FAILED browser tests: {missing}, and DUCTOR_REQUIRE_BROWSER=1"
        ));
        return ExitCode::FAILURE;
    }
    say(&format!("SKIPPED browser tests: {missing}"));
    ExitCode::SUCCESS
}

fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// What the command line chooses: words that a name contains, as libtest has it. Its other options mean nothing here.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    words: Vec<String>,
    list: bool,
}

impl Asked {
    fn read(arguments: impl Iterator<Item = String>) -> Asked {
        let mut asked = Asked::default();
        let mut is_value = false;
        for argument in arguments {
            if is_value {
                is_value = false;
            } else if argument == "--list" {
                asked.list = true;
            } else if argument.starts_with('-') {
                is_value =
                    ["--skip", "--test-threads", "--format", "--color", "-Z"].contains(&argument.as_str());
            } else {
                asked.words.push(argument);
            }
        }
        asked
    }
}

/// Where everything is.
#[derive(Debug)]
struct Tools {
    node: PathBuf,
    chromium: PathBuf,
    scripts: PathBuf,
}

impl Tools {
    /// A text is what is missing, and what to do.
    fn find() -> Result<Tools, String> {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
        let chromium = chromium()?;
        let node = in_path("node").ok_or("node not found (install Node 20 or newer)")?;
        let version = version_of(&node).ok_or("node does not say its version")?;
        if version < NODE_MIN {
            return Err(format!("node is version {version}, {NODE_MIN} is needed"));
        }
        if !scripts
            .join("node_modules/playwright-core/package.json")
            .is_file()
        {
            return Err("playwright-core not found (run `npm ci` in tests/browser)".to_owned());
        }
        Ok(Tools {
            node,
            chromium,
            scripts,
        })
    }
}

fn chromium() -> Result<PathBuf, String> {
    const HINT: &str = "(set DUCTOR_CHROMIUM)";
    if let Some(named) = env::var_os("DUCTOR_CHROMIUM").filter(|named| !named.is_empty()) {
        let named = PathBuf::from(named);
        return if named.is_file() {
            Ok(named)
        } else {
            Err(format!("chromium not found at {} {HINT}", named.display()))
        };
    }
    let found = CHROMIUMS.iter().find_map(|name| in_path(name));
    found.ok_or_else(|| format!("chromium not found {HINT}"))
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// The first number of `v20.11.0`.
fn version_of(node: &Path) -> Option<u32> {
    let output = Command::new(node).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.trim()
        .trim_start_matches('v')
        .split('.')
        .next()?
        .parse()
        .ok()
}

/// Hands over what the scripts print, and judges by their exit code and their closing line: scripts that end early, or run
/// nothing, have passed nothing.
fn run(tools: &Tools, asked: &Asked) -> ExitCode {
    let mut command = Command::new(&tools.node);
    command.arg(tools.scripts.join("run.mjs")).args(&asked.words);
    command
        .env("DUCTOR_BIN", env!("CARGO_BIN_EXE_ductor"))
        .env("DUCTOR_CHROMIUM", &tools.chromium)
        .env("DUCTOR_PICTURES", pictures())
        .env_remove("DUCTOR_WEB_DIR")
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            say(&format!("FAILED browser tests: node does not start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut closing = None;
    for line in lines.map_while(Result::ok) {
        closing = closing_counts(&line).or(closing);
        // Unbuffered, so that a test that hangs is seen to hang.
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
    let ended = child.wait().expect("our own child");
    match closing {
        Some((_, 0)) if ended.success() => ExitCode::SUCCESS,
        Some(_) => ExitCode::FAILURE,
        None => {
            say(&format!(
                "FAILED browser tests: the scripts did not come to their end: {ended}"
            ));
            ExitCode::FAILURE
        }
    }
}

/// The passed and failed of `12 passed, 0 failed`.
fn closing_counts(line: &str) -> Option<(u32, u32)> {
    let (passed, failed) = line.split_once(" passed, ")?;
    Some((
        passed.parse().ok()?,
        failed.strip_suffix(" failed")?.parse().ok()?,
    ))
}

/// Beside what cargo builds, wherever that is.
fn pictures() -> OsString {
    let binary = Path::new(env!("CARGO_BIN_EXE_ductor"));
    let target = binary
        .parent()
        .and_then(Path::parent)
        .unwrap_or(Path::new("target"));
    target.join("browser").into_os_string()
}
