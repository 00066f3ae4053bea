//! The interface between the server and the hub.

use std::sync::Arc;
use std::time::Duration;

use toolhub_core::{BoxFuture, Principal, Secret};
use toolhub_mcp_gateway::Gateway;

use crate::metrics_text::MetricsText;

/// The health of the hub.
#[derive(Debug, Clone, Default)]
pub struct Health {
    /// Whether it accepts requests.
    pub ready: bool,
    /// Short descriptions of the parts that do not work.
    pub degraded: Vec<String>,
}

/// A step of a caller's login to a server of the hub, in a browser.
#[derive(Debug)]
pub enum LoginStep {
    /// The caller opened a link.
    Show {
        /// The id of the link.
        link: String,
    },
    /// The caller proved who it is.
    Begin {
        /// The id of the link.
        link: String,
        /// The key or token that it entered.
        credential: Secret,
        /// The header `Origin`.
        origin: Option<String>,
    },
    /// The authorization server redirected the browser.
    Finish {
        /// The query of the redirect.
        query: String,
    },
}

/// A request for a page of such a login.
#[derive(Debug)]
pub struct LoginPageRequest {
    /// The step.
    pub step: LoginStep,
    /// The cookies of the browser that belong to logins, by name.
    pub cookies: Vec<(String, Secret)>,
}

/// A page of such a login.
#[derive(Debug, Clone)]
pub struct LoginPage {
    /// The HTTP status.
    pub status: u16,
    /// The page.
    pub html: String,
    /// The cookie to set.
    pub cookie: Option<LoginCookie>,
}

/// The cookie that binds a login to the browser that began it.
#[derive(Debug, Clone)]
pub struct LoginCookie {
    /// A name of its own for each link, so that two logins in one browser do not disturb each other.
    pub name: String,
    /// A random value.
    pub value: Secret,
    /// Whether it is sent over HTTPS only.
    pub secure: bool,
    /// How long the browser stores it.
    pub max_age: Duration,
}

/// A hub that can be served.
pub trait HubService: Send + Sync {
    /// Returns the gateway of a profile, or of the default profile.
    fn gateway(&self, profile: Option<&str>) -> Option<Arc<Gateway>>;

    /// Returns the name of the default profile.
    fn default_profile(&self) -> &str;

    /// Returns the names of the profiles, for error messages.
    fn profiles(&self) -> Vec<String>;

    /// Returns the current health, with the problems of all servers.
    fn health(&self) -> Health;

    /// Returns the problems that a principal may know of: those of servers of which it sees a tool, or all if it manages or audits
    /// the hub.
    fn visible_problems(&self, principal: &Arc<Principal>) -> Vec<String>;

    /// Returns a page of a caller's login to a server; `None` if there are no such logins.
    fn login_page(&self, request: LoginPageRequest) -> BoxFuture<'_, Option<LoginPage>> {
        drop(request);
        Box::pin(std::future::ready(None))
    }

    /// Adds the metrics of the hub, with the labels that a principal may see.
    fn write_metrics(&self, principal: &Arc<Principal>, out: &mut MetricsText);
}
