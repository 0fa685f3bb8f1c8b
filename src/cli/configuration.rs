//! Finding, reading and judging the configuration, for every command that needs it.

use std::io::IsTerminal;
use std::path::PathBuf;

use crate::config::{self, Config, Fault, Override, Overrides, Paint, Search, Sources};
use crate::daemon::{self, Loader, Unusable};

use super::args::{ConfigArguments, ServeArguments};

/// A configuration that may be used, with where it came from.
#[derive(Debug)]
pub(super) struct Loaded {
    /// The configuration.
    pub(super) config: Config,
    /// The file or folder.
    pub(super) path: PathBuf,
    /// Warnings, rendered; empty = none.
    pub(super) warnings: String,
    /// The same, for the status.
    pub(super) findings: Vec<Fault>,
    /// Reads it again.
    pub(super) loader: Loader,
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Only these variables are read by a daemon.
pub(super) fn overrides(serve: &ServeArguments) -> Overrides {
    let pick = |flag: &'static str, value: &Option<String>, name: &'static str| {
        Override::choose((flag, value.clone()), (name, variable(name)))
    };
    Overrides {
        listen: pick("--listen", &serve.listen, "DUCTOR_LISTEN"),
        state_dir: pick("--state-dir", &serve.config.state_dir, "DUCTOR_STATE_DIR"),
        node_name: pick("--node", &serve.node, "DUCTOR_NODE"),
        log_level: pick("--log", &serve.log, "DUCTOR_LOG"),
        log_format: pick("--log-format", &serve.log_format, "DUCTOR_LOG_FORMAT"),
    }
}

/// Colours for faults on a terminal that wants them.
pub(super) fn paint(is_terminal: bool) -> Paint {
    if is_terminal && std::env::var_os("NO_COLOR").is_none() {
        Paint::Coloured
    } else {
        Paint::Plain
    }
}

/// Where the configuration is: the place that was named, or the first that has one.
pub(super) fn find(named: Option<PathBuf>) -> Result<PathBuf, Box<Fault>> {
    let path_of = |name: &str| variable(name).map(PathBuf::from);
    let search = Search {
        flag: named,
        variable: path_of("DUCTOR_CONFIG"),
        xdg_config_home: path_of("XDG_CONFIG_HOME"),
        home: path_of("HOME"),
    };
    search.find(&|path| path.exists())
}

/// Loads the configuration for a daemon; the error is the text to print.
pub(super) fn load(serve: &ServeArguments) -> Result<Loaded, String> {
    let paint = paint(std::io::stderr().is_terminal());
    let show = |faults: &[Fault], sources: &Sources| config::render(faults, sources, paint);
    let path = find(serve.config.config.clone()).map_err(|fault| show(&[*fault], &Sources::default()))?;
    let loader = Loader::new(path.clone(), overrides(serve));
    match loader.load_at_start() {
        Ok(daemon::Loaded {
            config,
            warnings,
            sources,
        }) => Ok(Loaded {
            config,
            path,
            warnings: show(&warnings, &sources),
            findings: warnings,
            loader,
        }),
        Err(Unusable { faults, sources }) => Err(show(&faults, &sources)),
    }
}

/// The same for a command that takes only the place of the configuration.
pub(super) fn load_for_tool(arguments: &ConfigArguments) -> Result<Loaded, String> {
    load(&ServeArguments {
        config: arguments.clone(),
        ..ServeArguments::default()
    })
}
