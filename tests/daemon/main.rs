//! Black box: the real binary, real HTTP, kill -9 and restart.

#![allow(
    clippy::unwrap_used,
    reason = "tests; the lint's own exception does not see their helpers"
)]

#[path = "../support/mod.rs"]
mod support;

mod again;
mod backups;
mod bridge;
mod commands;
mod crash;
mod crontabs;
mod dags;
mod dags_seen;
mod definitions;
mod docs;
mod examples;
mod export;
mod faults;
mod graphs;
mod graphs_crash;
mod graphs_waits;
mod hostile_runs;
mod http_steps;
mod interpreter;
mod kept_bundles;
mod keys;
mod many;
mod matrix;
mod observed;
mod pages;
mod pools_page;
mod queues;
mod readme;
mod reload;
mod reports;
mod route_steps;
mod routing;
mod schedules;
mod secrets;
mod shared;
mod start;
mod supervised;
mod ways;
