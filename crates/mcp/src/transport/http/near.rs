//! The short way to a server on this machine: plain HTTP, with no proxy, no redirect and no compression on it. What it
//! cannot do is left to the long way.

use std::net::IpAddr;
use std::sync::OnceLock;

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, Method, Request, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use reqwest::{Body, Response};
use toolhub_core::lang::Text;
use url::Url;

use super::client::{CONNECT_DEADLINE, root_cause};
use crate::error::McpError;

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
