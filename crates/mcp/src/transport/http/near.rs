//! The short way to a server on this machine: plain HTTP, with no proxy, no redirect and no compression on it. What it
//! cannot do is left to the long way.

use std::io::Read as _;
use std::net::IpAddr;
use std::sync::OnceLock;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, HOST};
use http::{HeaderMap, Method, Request, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use reqwest::{Body, Response};
use toolhub_core::lang::Text;
use url::Url;

use super::answer::read_body;
use super::client::{CONNECT_DEADLINE, root_cause};
use crate::error::McpError;
use crate::transport::MAX_RESULT_BYTES;

/// The way to one endpoint.
#[derive(Debug)]
pub(super) struct Near {
    client: &'static Client<HttpConnector, Body>,
    uri: Uri,
    place: String,
}

/// The client that all servers on this machine share.
fn client() -> &'static Client<HttpConnector, Body> {
    static CLIENT: OnceLock<Client<HttpConnector, Body>> = OnceLock::new();
    CLIENT.get_or_init(|| {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_DEADLINE));
        Client::builder(TokioExecutor::new()).build(connector)
    })
}

/// What a server packed though nobody asked it to.
async fn unpacked(mut response: Response) -> Result<Response, McpError> {
    let packing = response.headers_mut().remove(CONTENT_ENCODING);
    if packing.as_ref().is_none_or(|packing| !["gzip", "x-gzip"].contains(&packing.to_str().unwrap_or(""))) {
        return Err(McpError::unreadable(format!("it packs its answers unasked: {packing:?}")));
    }
    let (status, headers) = (response.status(), response.headers().clone());
    let packed = read_body(response, MAX_RESULT_BYTES).await?;
    // It may be a bomb: no more is unpacked than may be read.
    let most = MAX_RESULT_BYTES as u64 + 1;
    let unpack = move || {
        let mut body = Vec::new();
        flate2::read::GzDecoder::new(&packed[..]).take(most).read_to_end(&mut body).map(|_| body)
    };
    let body =
        tokio::task::spawn_blocking(unpack).await.map_err(|error| McpError::unreadable(error.to_string()))?;
    let body = body.map_err(|error| McpError::unreadable(format!("it cannot be unpacked: {error}")))?;
    let mut whole = http::Response::new(Body::from(body));
    (*whole.status_mut(), *whole.headers_mut()) = (status, headers);
    Ok(Response::from(whole))
}

impl Near {
    /// The short way to an endpoint, where there is one.
    pub(super) fn to(url: &Url) -> Option<Self> {
        let host = url.host_str()?;
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let here = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
        let plain = url.scheme() == "http" && url.username().is_empty() && url.password().is_none();
        let place = format!("{host}:{}", url.port_or_known_default()?);
        let uri = url.as_str().split('#').next()?.parse().ok()?;
        (here && plain).then(|| Self { client: client(), uri, place })
    }

    /// Posts one message.
    pub(super) async fn post(&self, headers: HeaderMap, body: Bytes) -> Result<Response, McpError> {
        let mut request = Request::new(Body::from(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = headers;
        if let Some(authority) = self.uri.authority().and_then(|name| name.as_str().parse().ok()) {
            request.headers_mut().insert(HOST, authority);
        }
        match self.client.request(request).await {
            Ok(response) if response.headers().contains_key(CONTENT_ENCODING) => {
                unpacked(Response::from(response.map(Body::wrap))).await
            }
            Ok(response) => Ok(Response::from(response.map(Body::wrap))),
            Err(error) => {
                let cause = Text::from(format!("{} ({})", root_cause(&error), self.place));
                Err(match error.is_connect() {
                    true => McpError::connect(cause),
                    false => McpError::Lost { cause, stderr: Vec::new() },
                })
            }
        }
    }
}
