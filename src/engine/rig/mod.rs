//! The rig: the engine's changes over a real store in a folder of its own, a clock that is set by hand, invented
//! processes, several daemons, planned faults. Every rig ends with the check of the whole store.
//!
//! `stage` has the rig itself, `snapshot` what a test sees of its store, `jobs` the small builders of a book; each other
//! file holds the tests of one area.

mod jobs;
mod snapshot;
mod stage;

mod admission_events;
mod admission_model;
mod admission_tests;
mod again_tests;
mod bridge_tests;
mod crash_tests;
mod drift_tests;
mod fault_tests;
mod fire_tests;
mod graph_cost_tests;
mod graph_replay_tests;
mod graph_stage;
mod graph_tests;
mod history_tests;
mod key_limit_tests;
mod late_tests;
mod lease_tests;
mod load_tests;
mod many_tests;
mod model_tests;
mod object_check_tests;
mod queue_tests;
mod removal_tests;
mod report_tests;
mod restore_tests;
mod retention_tests;
mod retry_tests;
mod rollback_tests;
mod route_step_tests;
mod routing_claim_tests;
mod routing_stage;
mod routing_tests;
mod schedule_tests;
mod shadow_tests;
mod sweep_tests;
mod task_tests;
