//! A server with minimal work, so that benchmarks measure the gateway in front of it.

use std::io::{BufRead as _, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode, header};
use axum::serve::{Listener, ListenerExt as _};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::wire::{self, Message};

#[expect(clippy::print_stdout, reason = "the benchmark that starts it reads the address")]
pub(crate) async fn http(tools: usize, address: &str) -> Result<()> {
    let listener = TcpListener::bind((address, 0)).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
    let router = Router::new().fallback(respond).with_state(Arc::new(wire::tools(tools)));
    Ok(axum::serve(listener, router).await?)
}

/// The same over TLS.
#[expect(clippy::print_stdout, reason = "the benchmark that starts it reads the address")]
pub(crate) async fn https(tools: usize, address: &str, config: &Arc<ServerConfig>) -> Result<()> {
    let listener = TcpListener::bind((address, 0)).await?;
    println!("https://{}/mcp", listener.local_addr()?);
    let listener = TlsListener { listener, acceptor: TlsAcceptor::from(Arc::clone(config)) };
    let router = Router::new().fallback(respond).with_state(Arc::new(wire::tools(tools)));
    Ok(axum::serve(listener, router).await?)
}

/// Accepts connections after their TLS handshake, one after another.
struct TlsListener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let Ok((stream, address)) = self.listener.accept().await else { continue };
            let _ = stream.set_nodelay(true);
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

async fn respond(State(tools): State<Arc<String>>, request: Request) -> Response<Body> {
    let plain = |status| {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = status;
        response
    };
    let Ok(body) = to_bytes(request.into_body(), 1 << 20).await else {
        return plain(StatusCode::BAD_REQUEST);
    };
    let Ok(message) = serde_json::from_slice::<Message<'_>>(&body) else {
        return plain(StatusCode::BAD_REQUEST);
    };
    let Some(answer) = wire::answer(&message, &tools) else { return plain(StatusCode::ACCEPTED) };
    let mut response = Response::new(Body::from(answer));
    let kind = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    if message.method == "initialize" {
        // Without a session id, some gateways would start a session per call.
        let session = header::HeaderValue::from_static("one-for-all");
        response.headers_mut().insert("mcp-session-id", session);
    }
    response
}

pub(crate) fn stdio(tools: usize) -> Result<()> {
    let tools = wire::tools(tools);
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut line = String::new();
    while input.read_line(&mut line)? > 0 {
        if let Ok(message) = serde_json::from_str::<Message<'_>>(&line)
            && let Some(answer) = wire::answer(&message, &tools)
        {
            writeln!(output, "{answer}")?;
            output.flush()?;
        }
        line.clear();
    }
    Ok(())
}
