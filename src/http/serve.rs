//! The server: accepts until it is told to stop, then lets running requests end, for two seconds at most.

use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::app::App;
use super::health;
use super::router::router;

/// A connection that is kept alive, or a client that does not read, may not hold the end of the daemon.
const GRACE: Duration = Duration::from_secs(2);

/// Serves until `stop`. Streams say `bye` and end.
pub async fn serve(listener: TcpListener, app: App, stop: CancellationToken) {
    let app = App {
        stop: stop.clone(),
        ..app
    };
    let checks = tokio::spawn(health::watch(app.clone()));
    let until = stop.clone().cancelled_owned();
    let server = axum::serve(listener, router(app)).with_graceful_shutdown(until);
    let too_long = async {
        stop.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        ended = server.into_future() => {
            if let Err(error) = ended {
                tracing::error!(cause = %error, "the HTTP server ended");
            }
        }
        () = too_long => tracing::debug!("connections were still open at the end"),
    }
    checks.abort();
}
