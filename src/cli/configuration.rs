//! Finding, reading and judging the configuration, for every command that needs it.

use std::io::IsTerminal;
use std::path::PathBuf;

use crate::config::{self, Config, Fault, Override, Overrides, Paint, Search, Sources};
use crate::daemon::{Schedules, short_secrets};

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
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Only these variables are read by a daemon.
fn overrides(serve: &ServeArguments) -> Overrides {
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

/// Loads the configuration for a daemon; the error is the text to print.
pub(super) fn load(serve: &ServeArguments) -> Result<Loaded, String> {
    let paint = if std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        Paint::Coloured
    } else {
        Paint::Plain
    };
    let path_of = |name: &str| variable(name).map(PathBuf::from);
    let search = Search {
        flag: serve.config.config.clone(),
        variable: path_of("DUCTOR_CONFIG"),
        xdg_config_home: path_of("XDG_CONFIG_HOME"),
        home: path_of("HOME"),
    };
    let nothing = Sources::in_memory(&[]);
    let show = |faults: &[Fault], sources: &Sources| config::render(faults, sources, paint);
    let path = search
        .find(&|path| path.exists())
        .map_err(|fault| show(&[*fault], &nothing))?;
    let environment = |name: &str| variable(name);
    let sources = Sources::read(&path, &environment).map_err(|faults| show(&faults, &nothing))?;
    match config::load_at_start(&sources, &environment, &overrides(serve), &Schedules) {
        Ok((mut config, mut warnings)) => {
            let short = short_secrets(&config);
            config
                .warnings
                .extend(short.iter().map(|fault| sources.without_folder(fault)));
            warnings.extend(short);
            let warnings = if warnings.is_empty() {
                String::new()
            } else {
                show(&warnings, &sources)
            };
            Ok(Loaded {
                config,
                path,
                warnings,
            })
        }
        Err(faults) => Err(show(&faults, &sources)),
    }
}

/// The same for a command that takes only the place of the configuration.
pub(super) fn load_for_tool(arguments: &ConfigArguments) -> Result<Loaded, String> {
    load(&ServeArguments {
        config: arguments.clone(),
        ..ServeArguments::default()
    })
}
