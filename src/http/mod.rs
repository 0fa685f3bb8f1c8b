//! The HTTP face: one page of routes (`router`), one file per noun, one document for every refusal (`error`).
//!
//! A request passes `front` before it is routed: its id, who may call from where, its body, its time. Handlers load from a
//! snapshot or hand a wish to `engine::desk`; they decide nothing about work. Slot pool and job endpoints without a prefix
//! have plain bodies in `camelCase`, everything under `/api` has `{"data": …}` in `snake_case`. The dashboard is one page with its
//! files (`pages`). Who calls, and whether they may, is `caller`.

mod app;
mod assignments;
mod audit;
mod backups;
mod bridge;
mod bundles;
mod calendar;
mod caller;
mod claims;
mod config;
mod credentials;
mod dags;
mod dead_letters;
mod decision_shapes;
mod decisions;
mod declared;
mod declared_shapes;
mod dry_runs;
mod endings;
mod error;
mod failing;
mod fires;
mod front;
mod graph;
mod head;
mod health;
mod input;
mod job_detail;
mod job_list;
mod jobs;
mod kept_bundles;
mod keys;
mod live_routing;
#[cfg(test)]
mod live_routing_tests;
mod log_search;
mod logs;
mod metrics;
mod nodes;
mod once;
mod openapi;
mod operation;
mod origin;
mod overview;
mod pages;
mod paging;
mod param;
mod pauses;
mod recipient_pools;
mod recipients;
mod replay;
mod retries;
mod route;
mod router;
mod routing;
mod routing_metrics;
mod routing_queues;
mod rule_trials;
mod rules;
mod run_again;
mod run_bulk;
mod run_list;
mod run_pins;
mod run_signals;
mod run_start;
mod run_steps;
mod run_values;
mod run_waiting;
mod runs;
mod schedules;
mod serve;
mod sessions;
mod shadow_campaigns;
mod shapes;
mod slots;
mod start;
mod status;
mod step_lines;
mod store_check;
mod strategies;
mod stream;
mod tail;
mod tenants;
mod throttle;
mod timeline;
mod traits;
mod upcoming;
mod version;
mod waiting;
mod waits;
mod week;
mod why;
mod workflow_list;
mod workflow_versions;
mod workflows;

#[cfg(test)]
mod access_tests;
#[cfg(test)]
mod backup_tests;
#[cfg(test)]
mod bundle_tests;
#[cfg(test)]
mod dead_letter_tests;
#[cfg(test)]
mod declared_list_tests;
#[cfg(test)]
mod declared_tests;
#[cfg(test)]
mod endings_tests;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod front_tests;
#[cfg(test)]
mod graph_tests;
#[cfg(test)]
mod hostile_routing_tests;
#[cfg(test)]
mod job_list_tests;
#[cfg(test)]
mod kept_bundle_tests;
#[cfg(test)]
mod key_tests;
#[cfg(test)]
mod log_tests;
#[cfg(test)]
mod metrics_tests;
#[cfg(test)]
mod once_tests;
#[cfg(test)]
mod openapi_tests;
#[cfg(test)]
mod overview_tests;
#[cfg(test)]
mod pages_tests;
#[cfg(test)]
mod rule_trial_tests;
#[cfg(test)]
mod rule_warning_tests;
#[cfg(test)]
mod run_again_tests;
#[cfg(test)]
mod run_bulk_tests;
#[cfg(test)]
mod run_list_tests;
#[cfg(test)]
mod run_steps_tests;
#[cfg(test)]
mod run_tests;
#[cfg(test)]
mod schedule_tests;
#[cfg(test)]
mod slot_tests;
#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod system_tests;
#[cfg(test)]
mod tenant_tests;
#[cfg(test)]
mod token_tests;
#[cfg(test)]
mod workflow_tests;

pub use app::App;
pub use router::router;
pub use serve::serve;
