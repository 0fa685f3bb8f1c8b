//! The thin binary: a waiting process is dispatched before anything else, everything else is the command line.

use std::process::ExitCode;

use ductor::store::coordination::{PROBE_WORD, probe_as_child};

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|word| word == "__exec") {
        return ductor::worker::shim::run();
    }
    if std::env::args_os().nth(1).is_some_and(|word| word == PROBE_WORD) {
        let lock = std::env::args_os().nth(2).unwrap_or_default();
        let code = probe_as_child(std::path::Path::new(&lock));
        return ExitCode::from(u8::try_from(code).unwrap_or(1));
    }
    if std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == ductor::cli::STEP_WORD)
    {
        let words: Vec<String> = std::env::args_os()
            .skip(2)
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        return ductor::cli::run_step(&words);
    }
    ductor::cli::run()
}
