//! A request of an authenticated caller, with its parameters.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use http::HeaderMap;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use toolhub::{Gateways, Hub};
use toolhub_core::caller::ClientResponse;
use toolhub_core::json::fold_key;
use toolhub_core::{Lang, Principal, RawJson, Role, Roles};
use toolhub_mcp_gateway::PrincipalHandle;
use url::form_urlencoded;

use crate::browser_sessions::BrowserSessions;
use crate::event_response::PendingAnswers;
use crate::events::EventSource;
use crate::idempotency::IdempotencyKeys;
use crate::problem::Problem;

/// How a caller proved its identity.
#[derive(Debug, Clone)]
pub(crate) enum Credential {
    /// The session of a browser.
    Session {
        /// The token that requests of its pages carry if they change something.
        csrf: String,
    },
    /// A key, which is for the API only.
    Key,
}

/// An authenticated caller.
#[derive(Debug, Clone)]
pub(crate) struct AuthenticatedCaller {
    pub(crate) principal: Arc<Principal>,
    pub(crate) credential: Credential,
}

/// The query parameters of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct QueryParameters(Vec<(String, String)>);

impl QueryParameters {
    pub(crate) fn parse(text: Option<&str>) -> Self {
        Self(form_urlencoded::parse(text.unwrap_or_default().as_bytes()).into_owned().collect())
    }

    /// The first value that is not empty.
    pub(crate) fn get<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.values(name).find(|value| !value.is_empty())
    }

    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// A number within bounds, or the default.
    pub(crate) fn number(&self, name: &str, default: usize, max: usize) -> Result<usize, Problem> {
        let Some(text) = self.values(name).next() else { return Ok(default) };
        bounded_number(name, text.parse().unwrap_or_default(), max)
    }

    /// `true` or `false`; `false` if it is missing.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.values(name).next() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(Problem::bad_request(
                format!("`{name}` is `true` or `false`"),
                format!("`{name}` 应为 `true` 或 `false`"),
            )),
        }
    }

    /// A time in RFC 3339.
    pub(crate) fn time(&self, name: &str) -> Result<Option<SystemTime>, Problem> {
        let parse = |text: &str| {
            text.parse::<Timestamp>().map(SystemTime::from).map_err(|_| {
                Problem::bad_request(
                    format!("`{name}` is a time such as 2027-01-31T12:00:00Z"),
                    format!("`{name}` 应为时间，如 2027-01-31T12:00:00Z"),
                )
            })
        };
        self.get(name).map(parse).transpose()
    }

    /// The query with one parameter replaced or removed, for links.
    pub(crate) fn with(&self, name: &str, value: Option<&str>) -> String {
        let kept = self.0.iter().filter(|(own, value)| own != name && !value.is_empty());
        let mut output = form_urlencoded::Serializer::new(String::new());
        output.extend_pairs(kept.map(|(name, value)| (name.as_str(), value.as_str())));
        output.extend_pairs(value.map(|value| (name, value)));
        output.finish()
    }
}

/// A number from 1 to a maximum.
pub(crate) fn bounded_number<N>(name: &str, number: N, max: N) -> Result<N, Problem>
where
    N: Copy + PartialOrd + fmt::Display + From<u8>,
{
    match number >= N::from(1) && number <= max {
        true => Ok(number),
        false => Err(Problem::bad_request(
            format!("`{name}` is a number from 1 to {max}"),
            format!("`{name}` 应为 1 到 {max} 之间的数字"),
        )),
    }
}

/// Parses a JSON object.
fn object<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    // A structure would also be read from an array.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(Problem::bad_request("the body is not a JSON object", "请求体不是 JSON 对象"));
    }
    serde_json::from_slice(body).map_err(|error| {
        Problem::bad_request(
            format!("the body is not as expected: {error}"),
            format!("请求体不符合要求：{error}"),
        )
    })
}

/// A request of an authenticated caller.
pub(crate) struct ConsoleContext<'a> {
    pub(crate) gateways: &'a Arc<Gateways>,
    pub(crate) events: &'a EventSource,
    pub(crate) idempotency: &'a IdempotencyKeys,
    pub(crate) confirmations: &'a Arc<PendingAnswers<bool>>,
    /// The questions of servers that calls of pages wait for.
    pub(crate) questions: &'a Arc<PendingAnswers<ClientResponse>>,
    pub(crate) sessions: &'a Arc<BrowserSessions>,
    /// Whether browsers reach the hub over HTTPS.
    pub(crate) is_https: bool,
    /// The host name of the console on this machine.
    pub(crate) own_host: Option<&'a str>,
    pub(crate) caller: AuthenticatedCaller,
    /// The principal with its budget.
    pub(crate) handle: PrincipalHandle,
    pub(crate) lang: Lang,
    pub(crate) query: QueryParameters,
    /// The values of the placeholders in the path.
    pub(crate) path: Vec<String>,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: Bytes,
}

impl ConsoleContext<'_> {
    pub(crate) fn hub(&self) -> &Arc<Hub> {
        self.gateways.hub()
    }

    pub(crate) fn principal(&self) -> &Arc<Principal> {
        &self.caller.principal
    }

    pub(crate) fn has_role(&self, roles: impl Into<Roles>) -> bool {
        self.principal().roles.intersects(roles.into())
    }

    /// Whether the caller may read the calls of other principals.
    pub(crate) fn reads_all_calls(&self) -> bool {
        self.has_role(Role::Auditor)
    }

    /// Whether the caller may see the arguments that the owner fixed in a profile.
    pub(crate) fn sees_fixed_arguments(&self) -> bool {
        self.has_role([Role::Operator, Role::Auditor, Role::Owner].into_iter().collect::<Roles>())
    }

    /// The arguments of a call of a tool that the caller may see: without those that the owner fixed.
    pub(crate) fn visible_arguments(&self, tool: &str, arguments: &RawJson) -> RawJson {
        if self.sees_fixed_arguments() {
            return arguments.clone();
        }
        let fixed: Vec<String> =
            self.gateways.fixed_arguments(tool).iter().map(|name| fold_key(name)).collect();
        match arguments.object() {
            Some(mut members) if members.iter().any(|(name, _)| fixed.contains(&fold_key(name))) => {
                members.retain(|name| !fixed.contains(&fold_key(name)));
                members.into_raw()
            }
            _ => arguments.clone(),
        }
    }

    /// The first placeholder of the path.
    pub(crate) fn id(&self) -> &str {
        self.path.first().map(String::as_str).unwrap_or_default()
    }

    /// The body, which is a JSON object.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        object(&self.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_parameters_are_read_and_replaced() {
        let query = QueryParameters::parse(Some("tool=a%20b&empty=&limit=5&tool=c"));
        assert_eq!(query.get("tool"), Some("a b"));
        assert_eq!(query.get("empty"), None);
        assert_eq!(query.number("limit", 1, 10).unwrap(), 5);
        assert_eq!(query.number("other", 1, 10).unwrap(), 1);
        assert!(query.number("limit", 1, 4).is_err());
        assert!(query.number("tool", 1, 4).is_err());
        assert!(query.number("empty", 1, 4).is_err());
        assert!(query.flag("empty").is_err());
        assert!(!query.flag("other").unwrap());
        assert!(query.flag("tool").is_err());
        assert!(QueryParameters::parse(Some("all=true")).flag("all").unwrap());
        assert_eq!(query.with("limit", Some("7&8")), "tool=a+b&tool=c&limit=7%268");
        assert_eq!(query.with("tool", None), "limit=5");
    }
    #[test]
    fn body_is_an_object() {
        #[derive(serde::Deserialize)]
        struct Request {
            name: String,
        }
        assert_eq!(object::<Request>(b" \n{\"name\": \"a\"}").unwrap().name, "a");
        for body in ["", "[\"a\"]", "null", "{", "{\"name\": 1}", "{}"] {
            assert!(object::<Request>(body.as_bytes()).is_err(), "{body}");
        }
    }
}
