//! Every route on one page. `/~verb` is the inner form of `:verb`; `front` rewrites it, and refuses it from outside.

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};

use super::app::App;
use super::error::Problem;
use super::{
    config, fires, front, health, jobs, logs, metrics, nodes, pauses, run_list, runs, schedules, slots,
    start, status, store_check, tail, why,
};

/// The whole face.
pub fn router(app: App) -> Router {
    let routes = Router::new()
        // Jobs.
        .route("/jobs", get(jobs::list))
        .route("/jobs/{job}", get(jobs::show))
        .route("/jobs/{job}/start", post(start::start))
        .route("/jobs/{job}/cancel", post(jobs::cancel))
        .route("/jobs/{job}/pause", post(pauses::pause_job))
        .route("/jobs/{job}/resume", post(pauses::resume_job))
        .route("/jobs/{job}/fires", get(fires::of_job))
        .route("/jobs/{job}/why", get(why::of_job))
        // Schedules.
        .route("/api/schedules", get(schedules::list))
        .route("/api/schedules/~preview", post(schedules::preview_expression))
        .route("/api/schedules.ics", get(schedules::ics))
        .route("/api/schedules/{job}/next", get(schedules::next))
        .route("/api/schedules/{job}/fires", get(fires::of_schedule))
        .route("/api/schedules/{job}/why", get(why::of_schedule))
        // Slot pools.
        .route("/pools", get(slots::list))
        .route("/pools/{pool}", get(slots::show))
        .route("/pools/{pool}/pause", post(pauses::pause_pool))
        .route("/pools/{pool}/resume", post(pauses::resume_pool))
        .route("/pools/{pool}/queue/{entry}", get(slots::show_entry))
        .route("/pools/{pool}/queue/{entry}/cancel", post(slots::cancel_entry))
        // Runs.
        .route("/api/runs", get(run_list::list))
        .route("/api/runs/{run}", get(runs::show))
        .route("/api/runs/{run}/~cancel", post(runs::cancel))
        .route(
            "/api/runs/{run}/steps/{step}/attempts/{attempt}/log",
            get(logs::read),
        )
        .route(
            "/api/runs/{run}/steps/{step}/attempts/{attempt}/log/tail",
            get(tail::follow),
        )
        // The daemon.
        .route("/api/status", get(status::show))
        .route("/api/config", get(config::show))
        .route("/api/config/~reload", post(config::reload))
        .route("/api/nodes", get(nodes::list))
        .route("/api/store/check", get(store_check::run))
        .route("/livez", get(health::live))
        .route("/readyz", get(health::ready))
        .route("/healthz", get(health::ready))
        .route("/version", get(health::version))
        .route("/metrics", get(metrics::scrape));
    let routes = routes
        .route_layer(from_fn(front::note_route))
        .fallback(async || Problem::not_found("there is nothing at this path"))
        .method_not_allowed_fallback(async || {
            Problem::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "this path does not know this method",
            )
        })
        .with_state(app.clone());
    // The front must see a request before it is routed, so it stands around a router of its own.
    Router::new()
        .fallback_service(routes)
        .layer(from_fn_with_state(app, front::front))
}
