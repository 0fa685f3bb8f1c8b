//! The words of the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Clears units of work on one machine: scheduled jobs, slot pools, durable runs.
#[derive(Debug, Parser)]
#[command(name = "ductor", version, disable_help_subcommand = true)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the daemon.
    Serve(ServeArguments),
}

/// Where the configuration is and what is laid over it.
#[derive(Debug, Clone, Args)]
pub struct ConfigArguments {
    /// Configuration file, or a directory of them [env: DUCTOR_CONFIG].
    #[arg(long, value_name = "PATH")]
    pub config: Option<PathBuf>,
    /// State directory [env: DUCTOR_STATE_DIR].
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<String>,
}

/// Arguments of `serve`.
#[derive(Debug, Clone, Args)]
pub struct ServeArguments {
    /// Configuration and state directory.
    #[command(flatten)]
    pub config: ConfigArguments,
    /// Address to listen on [env: DUCTOR_LISTEN].
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Name of this daemon [env: DUCTOR_NODE].
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// Level, or filters like `info,ductor::store=debug` [env: DUCTOR_LOG].
    #[arg(long, value_name = "LEVEL")]
    pub log: Option<String>,
    /// pretty or json [env: DUCTOR_LOG_FORMAT].
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<String>,
}
