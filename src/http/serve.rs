//! The server: accepts until it is told to stop, then lets running requests end, for two seconds at most.
//!
//! A client may not hold the daemon: heads must come within a time, and connections are bounded, so that descriptors are
//! left for the work.

use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::app::App;
use super::credentials::Peer;
use super::health;
use super::router::router;
use crate::os::rlimits::{self, Limit};
use crate::words::limits;

/// A connection that is kept alive, or a client that does not read, may not hold the end of the daemon.
const GRACE: Duration = Duration::from_secs(2);
/// After a failed accept (no descriptors left): others are closed meanwhile.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

type Service = TowerToHyperService<axum::Router>;

/// Serves until `stop`. Streams say `bye` and end.
pub async fn serve(listener: TcpListener, app: App, stop: CancellationToken) {
    let app = App {
        stop: stop.clone(),
        ..app
    };
    let checks = tokio::spawn(health::watch(app.clone()));
    let service = TowerToHyperService::new(router(app));
    let places = Arc::new(Semaphore::new(connections_max()));
    let mut connections = JoinSet::new();
    while let Some((stream, place)) = next(&listener, &places, &mut connections, &stop).await {
        connections.spawn(converse(stream, place, service.clone(), stop.clone()));
    }
    let all_end = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, all_end).await.is_err() {
        tracing::debug!("connections were still open at the end");
    }
    checks.abort();
}

/// A quarter of the descriptors that this process may have, and never more than the named limit.
fn connections_max() -> usize {
    let (soft, _) = rlimits::get(Limit::OpenFiles);
    let quarter = soft.map_or(usize::MAX, |files| {
        usize::try_from(files / 4).unwrap_or(usize::MAX)
    });
    quarter.clamp(16, limits::CONNECTIONS_MAX)
}

/// The next client with its place; `None` at the stop.
async fn next(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
    connections: &mut JoinSet<()>,
    stop: &CancellationToken,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    loop {
        let accept = async {
            let place = Arc::clone(places).acquire_owned().await.ok()?;
            Some((listener.accept().await, place))
        };
        tokio::select! {
            () = stop.cancelled() => return None,
            Some(_) = connections.join_next() => {}
            accepted = accept => match accepted? {
                (Ok((stream, _)), place) => return Some((stream, place)),
                (Err(error), _) => {
                    tracing::debug!(cause = %error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
}

async fn converse(stream: TcpStream, place: OwnedSemaphorePermit, service: Service, stop: CancellationToken) {
    let peer = stream.peer_addr().ok().map(|address| Peer(address.ip()));
    let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        if let Some(peer) = peer {
            request.extensions_mut().insert(peer);
        }
        service.call(request)
    });
    // Answers are small and wanted at once.
    stream.set_nodelay(true).ok();
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(limits::HEAD_READ_MS))
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::trace!(cause = %error, "a connection ended early");
    }
    drop(place);
}
