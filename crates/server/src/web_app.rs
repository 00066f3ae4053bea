//! The interface between the server and a web application that it hosts beside the gateway, such as the console.

use std::net::IpAddr;

use axum::body::Body;
use http::{Request, Response};
use toolhub_core::BoxFuture;

/// A web application. The server checks the `Host` of its requests; the application authenticates them itself.
pub trait WebApp: Send + Sync {
    /// Whether requests for this path are for the application.
    fn serves(&self, path: &str) -> bool;

    /// The path as it may be logged: without secrets.
    fn loggable_path<'a>(&self, path: &'a str) -> &'a str;

    /// Responds to a request. The body has not been read yet.
    fn respond(&self, request: Request<Body>, client: IpAddr) -> BoxFuture<'_, Response<Body>>;
}
