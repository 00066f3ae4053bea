//! The route table of the JSON API. Routing, permission checks and the OpenAPI document come from it: a route without a
//! permission does not compile.

use axum::body::Body;
use futures_util::future::BoxFuture;
use http::{HeaderValue, Method, Response, StatusCode, header};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use toolhub_core::principal::PrincipalOrigin;
use toolhub_core::{Principal, Role};
use url::form_urlencoded;

use crate::problem::Problem;
use crate::request::ConsoleContext;

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Permission {
    /// Every authenticated principal. The handler returns only what concerns it.
    Authenticated,
    /// A principal with one of these roles.
    AnyOf(&'static [Role]),
    /// The local user.
    LocalUser,
}

impl Permission {
    /// Whether a principal may use the route.
    pub(crate) fn allows(self, principal: &Principal) -> bool {
        match self {
            Self::Authenticated => true,
            Self::AnyOf(needed) => needed.iter().any(|role| principal.roles.contains(*role)),
            Self::LocalUser => principal.origin == PrincipalOrigin::Local,
        }
    }
}

/// A query parameter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    /// The JSON Schema type.
    pub(crate) r#type: &'static str,
}

/// Creates the schema of a body.
pub(crate) type BodySchema = fn(&mut SchemaGenerator) -> Schema;
pub(crate) type Handler =
    for<'a> fn(&'a ConsoleContext<'a>) -> BoxFuture<'a, Result<Response<Body>, Problem>>;

/// A route.
#[derive(Clone, Copy)]
pub(crate) struct Route {
    pub(crate) method: Verb,
    /// The path below `/api/v1/`. `{…}` stands for one segment; `:verb` may follow it.
    pub(crate) path: &'static str,
    pub(crate) permission: Permission,
    pub(crate) summary: &'static str,
    pub(crate) parameters: &'static [Parameter],
    pub(crate) request: Option<BodySchema>,
    pub(crate) response: ResponseKind,
    pub(crate) handler: Handler,
}

/// The body of a successful response.
#[derive(Clone, Copy)]
pub(crate) enum ResponseKind {
    Json(BodySchema),
    /// Server-sent events.
    Events,
    /// Text of another type.
    Text(&'static str),
}

/// An HTTP method that the API uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Verb {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Whether requests may change something.
    pub(crate) fn writes(self) -> bool {
        self != Self::Get
    }
}

/// The schema of a type.
pub(crate) fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

impl Route {
    /// The values of the placeholders if the route has this path, which is percent-encoded.
    pub(crate) fn matches(&self, path: &str) -> Option<Vec<String>> {
        let mut values = Vec::new();
        let (mut own, mut given) = (self.path.split('/'), path.split('/'));
        loop {
            match (own.next(), given.next()) {
                (None, None) => return Some(values),
                (Some(own), Some(given)) => match own.strip_prefix('{') {
                    None if own == given => {}
                    Some(placeholder) => {
                        let (_, verb) = placeholder.split_once('}')?;
                        let value = given.strip_suffix(verb).filter(|value| !value.is_empty())?;
                        // A verb is part of the path, not of the value.
                        if verb.is_empty() && is_verb(value) {
                            return None;
                        }
                        values.push(decode(value));
                    }
                    None => return None,
                },
                _ => return None,
            }
        }
    }
}

/// Whether a segment ends with an unencoded `:verb`.
fn is_verb(segment: &str) -> bool {
    segment.contains(':')
}

/// Finds the route of a request. Returns the allowed methods if only the method is wrong.
pub(crate) fn find(
    routes: &'static [Route],
    method: &Method,
    path: &str,
) -> Result<(&'static Route, Vec<String>), Vec<&'static str>> {
    let mut allowed = Vec::new();
    for route in routes {
        let Some(values) = route.matches(path) else { continue };
        if route.method.name() == method.as_str() {
            return Ok((route, values));
        }
        allowed.push(route.method.name());
    }
    Err(allowed)
}

/// Encodes a value for a segment of a path, colons and slashes included.
pub(crate) fn encode_segment(value: &str) -> String {
    form_urlencoded::byte_serialize(value.as_bytes()).collect::<String>().replace('+', "%20")
}

impl Route {
    /// Decodes a segment of a path; `None` if it is empty.
    pub(crate) fn decode_segment(segment: &str) -> Option<String> {
        Some(decode(segment)).filter(|value| !value.is_empty())
    }
}

/// Decodes a segment of a path. Invalid UTF-8 is replaced, and then names nothing.
fn decode(segment: &str) -> String {
    // A plus sign stands for itself in a path.
    let pair =
        form_urlencoded::parse(format!("v={}", segment.replace('+', "%2B").replace('&', "%26")).as_bytes())
            .next()
            .map(|(_, value)| value.into_owned());
    pair.unwrap_or_default()
}

/// A JSON response.
pub(crate) fn json_response(status: StatusCode, body: &impl Serialize) -> Response<Body> {
    match serde_json::to_string(body) {
        Ok(text) => json_text(status, text),
        Err(_) => json_text(StatusCode::INTERNAL_SERVER_ERROR, "{}".to_owned()),
    }
}

/// A response of JSON text.
pub(crate) fn json_text(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(path: &'static str) -> Route {
        Route {
            method: Verb::Get,
            path,
            permission: Permission::Authenticated,
            summary: "",
            parameters: &[],
            request: None,
            response: ResponseKind::Events,
            handler: |_| Box::pin(std::future::ready(Err(Problem::unauthenticated()))),
        }
    }

    #[test]
    fn paths_match_by_segment_and_verb() {
        let check = |own: &'static str, path: &str, expected: Option<&[&str]>| {
            let found = route(own).matches(path);
            let found: Option<Vec<&str>> = found.as_ref().map(|all| all.iter().map(String::as_str).collect());
            assert_eq!(found.as_deref(), expected, "{own} {path}");
        };
        check("servers", "servers", Some(&[]));
        check("servers", "servers/", None);
        check("servers/{id}", "servers/a", Some(&["a"]));
        check("servers/{id}", "servers/", None);
        check("servers/{id}", "servers/a:restart", None);
        check("servers/{id}:restart", "servers/a:restart", Some(&["a"]));
        check("servers/{id}:restart", "servers/a", None);
        check("servers/{id}:restart", "servers/:restart", None);
        check("tools/{name}", "tools/a%2Fb%3Ac+d&e", Some(&["a/b:c+d&e"]));
        check("servers/{id}/log", "servers/a/log", Some(&["a"]));
        check("servers/{id}/log", "servers/a/b/log", None);
    }

    #[test]
    fn segments_round_trip() {
        for value in ["a", "a/b", "a:b", "a b+c&d=e%", "工具", "..", "😀\u{202e}"] {
            assert_eq!(decode(&encode_segment(value)), value);
            assert!(!encode_segment(value).contains(['/', ':']), "{value}");
        }
    }

    #[test]
    fn roles_are_checked() {
        let permission = Permission::AnyOf(&[Role::Operator, Role::Owner]);
        let key = |role: Role| Principal::of_key("ci").with_roles(role);
        assert!(permission.allows(&key(Role::Owner)));
        assert!(!permission.allows(&key(Role::Caller)));
        assert!(!permission.allows(&Principal::of_key("ci")));
        assert!(Permission::Authenticated.allows(&Principal::of_key("ci")));
        assert!(Permission::LocalUser.allows(&Principal::local()));
        assert!(!Permission::LocalUser.allows(&key(Role::Owner)));
    }
}
