//! The command line: one file per noun. A thin client of the HTTP API, save for what works without a daemon.
//!
//! * `args` has the words, `run` the way from them to an exit code (`exit`), `session` what a command works with.
//! * `client` talks to the daemon as `caller`, `failure` is why it did not work, `fields` reads answers leniently.
//! * `show` writes, `table`, `paragraph` and `times` give it form; `log_text`, `sieve` and `event_text` read streams.
//! * `status`, `jobs`, `schedules`, `slots`, `runs`, `nodes`, `configure` are the nouns; `run_view`, `filter`, `follow`,
//!   `pauses` serve them; `workflows` with `workflow_files`, `workflow_view`,
//!   `workflow_diff` and `workflow_dry` is one too; `pools`, `recipients`, `rules`, `shadows` and `bundle` share `declared`; `graph` draws runs and workflows.
//! * Without a daemon: `serve`, `foreground` (`job run`), `doctor` (with `machine`), `backup`, `restore`, `check`, `init`,
//!   `torture`, `completions`, the preview of an expression
//!   in `schedule_next`; `configuration` finds and judges the file.

mod approvals;
mod args;
mod backup;
mod bundle;
mod bundle_status;
mod caller;
mod check;
mod client;
mod completions;
mod configuration;
mod configure;
mod dead_letters;
mod declared;
mod doctor;
mod event_text;
mod exit;
mod failure;
mod fields;
mod filter;
mod follow;
mod foreground;
mod graph;
mod init;
mod jobs;
mod keys;
mod log_text;
mod machine;
mod nodes;
mod paragraph;
mod pauses;
mod pools;
mod recipients;
mod restore;
mod route;
mod rules;
mod run;
mod run_again;
mod run_bulk;
mod run_cancel;
mod run_pin;
mod run_view;
mod runs;
mod schedule_next;
mod schedules;
mod serve;
mod session;
mod shadows;
mod show;
mod sieve;
mod slots;
mod status;
mod table;
mod times;
mod torture;
mod wall;
mod workflow_diff;
mod workflow_dry;
mod workflow_files;
mod workflow_run;
mod workflow_view;
mod workflows;

#[cfg(test)]
mod client_tests;

pub use run::run;
pub use torture::{STEP_WORD, run_step};
