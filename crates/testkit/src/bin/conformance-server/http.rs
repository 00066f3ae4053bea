//! Streamable HTTP: the SDK's transport on a loopback port, with validation of Host and Origin, and a way for a tool to
//! close the stream of its own response.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use futures_util::StreamExt as _;
use rmcp::model::Extensions;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use crate::handler::Server;
use crate::server_state::ServerState;
use crate::write_line;

/// Reconnection delay for clients whose stream was closed: short, since tests wait for it.
const RETRY: Duration = Duration::from_millis(200);

/// Serves until the process ends. The first line on stdout is the URL.
pub(crate) async fn serve(port: u16, server_state: Arc<ServerState>) -> anyhow::Result<()> {
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let config = StreamableHttpServerConfig::default().with_sse_retry(Some(RETRY)).with_allowed_origins([
        "http://localhost:*",
        "http://127.0.0.1:*",
        "http://[::1]:*",
    ]);
    let service: StreamableHttpService<Server, LocalSessionManager> =
        StreamableHttpService::new(move || Ok(Server::new(server_state.clone())), Default::default(), config);
    let router = axum::Router::new()
        .nest_service("/mcp", service)
        .layer(axum::middleware::from_fn(with_cuttable_stream));
    write_line(&mut std::io::stdout(), &url)?;
    axum::serve(listener, router).await?;
    Ok(())
}

/// Ends the response of the request with this extension, even if it is incomplete.
#[derive(Debug, Clone)]
struct Cut(CancellationToken);

async fn with_cuttable_stream(mut request: Request, next: Next) -> Response {
    let cut = CancellationToken::new();
    request.extensions_mut().insert(Cut(cut.clone()));
    let response = next.run(request).await;
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(cut.cancelled_owned())))
}

/// Closes the response stream of the request with these extensions; no effect over stdio.
pub(crate) fn cut_stream(extensions: &Extensions) {
    if let Some(Cut(cut)) = extensions.get::<Parts>().and_then(|parts| parts.extensions.get()) {
        cut.cancel();
    }
}
