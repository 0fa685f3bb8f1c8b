//! Workers: one file per kind of step. `process/` is what the command worker stands on; none of them names the store.

pub mod command;
pub mod environment;
pub mod http;
#[cfg(test)]
mod http_tests;
pub mod log_file;
pub mod log_search;
pub mod log_text;
pub mod mask;
pub mod outbound;
pub mod process;
pub mod secrets;
pub mod shim;
pub mod step_files;
mod verify;
