//! The baseline: a bare axum proxy with one pooled HTTP client that copies bytes without any checks.

use std::sync::Arc;

use anyhow::Result;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode, Uri};
use axum::serve::ListenerExt as _;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

use crate::tls;

type Out = (Client<HttpsConnector<HttpConnector>, Body>, Uri);

#[expect(clippy::print_stdout, reason = "the benchmark that starts it reads the address")]
pub(crate) async fn run(url: &str, certificate: Option<&str>) -> Result<()> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.enforce_http(false);
    let tls = match certificate {
        Some(certificate) => tls::client(certificate)?,
        None => ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth(),
    };
    let builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1();
    let connector = builder.wrap_connector(connector);
    let out: Out = (Client::builder(TokioExecutor::new()).build(connector), url.parse()?);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/mcp", listener.local_addr()?);
    let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
    Ok(axum::serve(listener, Router::new().fallback(pass).with_state(out)).await?)
}

async fn pass(State((client, uri)): State<Out>, mut request: Request) -> Response<Body> {
    *request.uri_mut() = uri;
    match client.request(request).await {
        Ok(response) => response.map(Body::new),
        Err(_) => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::BAD_GATEWAY;
            response
        }
    }
}
