//! Temporary.
#[derive(Clone)]
pub struct App;
impl App {
    pub fn new(
        _: &crate::engine::core::Engine,
        _: crate::engine::dispatch::Unreadable,
        _: &crate::config::Config,
        _: std::net::SocketAddr,
    ) -> App {
        App
    }
}
pub async fn serve(_l: tokio::net::TcpListener, _a: App, stop: tokio_util::sync::CancellationToken) {
    stop.cancelled().await
}
