//! From words to a command, and from its end to an exit code.

use std::process::ExitCode;

use clap::Parser;

use super::args::{Arguments, Command};
use super::exit::Exit;
use super::serve;

/// Runs the command line of this process.
pub fn run() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let code = if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Done
            };
            // Help goes to stdout, a usage error to stderr; a closed pipe is no reason to fail.
            error.print().ok();
            return code.into();
        }
    };
    let exit = match arguments.command {
        Command::Serve(arguments) => serve::serve(&arguments),
    };
    exit.into()
}
