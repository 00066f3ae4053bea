//! The interface between the server and a web application that it hosts beside the gateway, such as the console.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use http::{Request, Response};
use toolhub_core::{BoxFuture, Principal};
use toolhub_mcp_gateway::{BudgetPermit, PrincipalHandle};

use crate::request_record::RequestRecord;
use crate::responses::rate_limited;

/// A web application. The server checks the `Host` of its requests, unless it is the application's own; the application authenticates them itself, and then
/// calls [`WebContext::start_request`].
pub trait WebApp: Send + Sync {
    /// Whether requests for this path are for the application.
    fn serves(&self, path: &str) -> bool;

    /// Whether a value of `Host` is a name of the application's own.
    fn is_own_host(&self, host: &str) -> bool;

    /// The path as it may be logged: without secrets.
    fn loggable_path<'a>(&self, path: &'a str) -> &'a str;

    /// Responds to a request. The body has not been read yet.
    fn respond<'a>(
        &'a self,
        request: Request<Body>,
        context: WebContext<'a>,
    ) -> BoxFuture<'a, Response<Body>>;
}

/// Finds the budgets of principals.
pub(crate) trait Budgets: Sync {
    /// The handle of a principal whose request comes from an address.
    fn handle_of(&self, principal: &Arc<Principal>, client: IpAddr) -> PrincipalHandle;
}

/// What the server provides for a request of a web application.
pub struct WebContext<'a> {
    budgets: &'a dyn Budgets,
    client: IpAddr,
    record: Mutex<Option<&'a mut RequestRecord>>,
}

impl std::fmt::Debug for WebContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebContext").field("client", &self.client).finish_non_exhaustive()
    }
}

impl<'a> WebContext<'a> {
    pub(crate) fn new(
        budgets: &'a dyn Budgets,
        client: IpAddr,
        record: Option<&'a mut RequestRecord>,
    ) -> Self {
        Self { budgets, client, record: Mutex::new(record) }
    }

    /// The address of the client, or of the reverse proxy before it.
    pub fn client(&self) -> IpAddr {
        self.client
    }

    /// Starts a request of an authenticated principal: it is named in the access log, and the request counts against its
    /// budget until the permit is dropped. Returns the response if the budget is exceeded.
    #[expect(clippy::result_large_err, reason = "the response is returned as it is")]
    pub fn start_request(
        &self,
        principal: &Arc<Principal>,
    ) -> Result<(PrincipalHandle, BudgetPermit), Response<Body>> {
        let handle = self.budgets.handle_of(principal, self.client);
        if let Some(record) = &mut *self.record.lock().unwrap_or_else(PoisonError::into_inner) {
            record.set_principal(&handle);
        }
        let permit = handle.start_request().map_err(rate_limited)?;
        Ok((handle, permit))
    }
}
