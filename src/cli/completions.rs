//! `ductor completions SHELL`: the script that completes commands and flags. Works without a daemon.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::args::Arguments;
use super::exit::Exit;
use super::failure::Failure;
use super::show::write_data;

const EXAMPLES: &str = "\
Examples:
  ductor completions bash > ~/.local/share/bash-completion/completions/ductor
  ductor completions zsh > \"${fpath[1]}/_ductor\"
  ductor completions fish > ~/.config/fish/completions/ductor.fish";

/// Arguments of `completions`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CompletionsArguments {
    /// The shell.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Prints the script.
pub(super) fn completions(arguments: &CompletionsArguments) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "ductor", &mut script);
    write_data(&script)?;
    Ok(Exit::Done)
}
