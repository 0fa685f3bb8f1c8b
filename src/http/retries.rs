//! `POST /jobs/{job}/retries/cancel`: what waits for another attempt does not get one.

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::app::App;
use super::error::Problem;
use super::once::{self, Once};
use super::{input, jobs};
use crate::engine::desk;

/// What was ended.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RetriesCancelled {
    /// The job.
    job: String,
    /// Runs that waited for another attempt and have failed now. One that runs at this moment gets no other attempt either.
    runs: usize,
}

/// Cancels the retries of a job. Idempotent: where nothing waits, nothing ends.
pub(super) async fn cancel(
    State(app): State<App>,
    Path(name): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let work = async {
        let known = jobs::find(&app.engine.book(), &name)?;
        input::no_fields(&body)?;
        let shown = name.clone();
        let asked = once.ask(move |_, runs: &usize| {
            Ok(Some(once::ok(&RetriesCancelled {
                job: shown.clone(),
                runs: *runs,
            })))
        });
        let told = desk::cancel_retries(&app.engine, known.name, asked).await?;
        once::respond(told, |_| jobs::not_found(&name))
    };
    work.await.map_err(Problem::with_sentence)
}
