//! Tables of cron, read as they are: five fields or a nickname, in the system's own form a user, and the command up to
//! the end of the line.
//!
//! - `line` cuts one line into its parts: a pure function of text, as cron itself would cut it.
//! - `settings` is what the `NAME=value` lines above a line have set.
//! - `import` writes the jobs of a crontab as YAML.
//! - `table` walks the lines of a file and makes jobs of them; each faulty line is one fault and costs no other line.
//!
//! Whether a faulty line keeps the whole configuration from being used is decided in `load.rs`.

mod import;
mod line;
mod settings;
mod table;

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vixie_tests;

pub use import::crontab_as_yaml;
pub(super) use table::TableReader;
