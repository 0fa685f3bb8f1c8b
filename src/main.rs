//! The thin binary: a waiting process is dispatched before anything else, everything else is the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|word| word == "__exec") {
        return ductor::worker::shim::run();
    }
    ductor::cli::run()
}
