//! Access control: the accepted `Host` names, the allowed origins (protection against DNS rebinding), and bearer tokens,
//! which identify the caller.

use std::net::SocketAddr;

use http::StatusCode;
use sha2::{Digest as _, Sha256};
use toolhub_mcp_gateway::{HeaderLookup, Principal, printable};

use crate::authority::{Authority, of_origin};

/// A bearer token, stored as its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The name of the principal that the token identifies.
    pub name: String,
    /// The SHA-256 of the token, as 64 hexadecimal digits.
    pub sha256: String,
}

/// Returns the SHA-256 of a token as lower-case hexadecimal digits.
pub fn hash_of(token: &str) -> String {
    Sha256::digest(token.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The access rules of a server.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Accepted host names, in addition to those of the local machine.
    pub hosts: Vec<String>,
    /// Allowed origins of web pages, in addition to those of the local machine.
    pub origins: Vec<String>,
    /// Accepted tokens. If empty, no token is required.
    pub tokens: Vec<Token>,
    /// Whether the server listens on a loopback address.
    pub local: bool,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// `Host` is missing, repeated or not a valid authority, or differs from that of the target (RFC 9112, 3.2).
    Authority,
    Host,
    Origin,
    NoToken,
    WrongToken,
}

impl Refusal {
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Authority => StatusCode::BAD_REQUEST,
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
            Self::NoToken | Self::WrongToken => StatusCode::UNAUTHORIZED,
        }
    }

    pub(crate) fn why(self) -> &'static str {
        match self {
            Self::Authority => {
                "a request names its host once, as `Host: name` or `Host: name:port`; a full URL as its target must name \
                 the same"
            }
            Self::Host => "this host is not known here: add it to `hosts` in `[serve]`",
            Self::Origin => "this origin is not allowed: add it to `origins` in `[serve]`",
            Self::NoToken => "a token is needed: `Authorization: Bearer TOKEN`",
            Self::WrongToken => {
                "this token is not known here: its hash must stand in `[[auth.tokens]]`; `toolhub serve --new-token \
                 NAME` makes one"
            }
        }
    }
}

/// The last successful check of a connection: the headers that were checked and the resulting principal.
#[derive(Debug)]
pub(crate) struct VerifiedCredentials {
    host: Vec<u8>,
    authorization: Vec<u8>,
    pub(crate) principal: Principal,
}

impl Access {
    /// Returns these rules for a server that listens on `address`.
    #[must_use]
    pub fn at(mut self, address: SocketAddr) -> Self {
        self.local = address.ip().is_loopback();
        self
    }

    /// Checks host and origin of a request. `target` is the authority of the request target if that is in absolute form.
    /// CORS preflight requests, which carry no token, are checked only by this. Applies to the fast path and to hyper
    /// alike.
    pub(crate) fn check_host_and_origin(
        &self,
        headers: &dyn HeaderLookup,
        target: Option<&str>,
    ) -> Result<(), Refusal> {
        let host = single(headers, "host").and_then(printable).and_then(Authority::parse);
        let host = host.ok_or(Refusal::Authority)?;
        if let Some(target) = target
            && !Authority::parse(target).is_some_and(|target| target.same(&host))
        {
            return Err(Refusal::Authority);
        }
        if !self.accepts_host(&host) {
            return Err(Refusal::Host);
        }
        let allowed = |origin: &[u8]| printable(origin).is_some_and(|origin| self.allows_origin(origin));
        if headers.value("origin").is_some() && !single(headers, "origin").is_some_and(allowed) {
            return Err(Refusal::Origin);
        }
        Ok(())
    }

    /// Checks host, origin and token of a request. Returns the name of the principal, or `None` if no token is required.
    pub(crate) fn admit(
        &self,
        headers: &dyn HeaderLookup,
        target: Option<&str>,
    ) -> Result<Option<&str>, Refusal> {
        self.check_host_and_origin(headers, target)?;
        if self.tokens.is_empty() {
            return Ok(None);
        }
        let credentials = single(headers, "authorization").and_then(printable);
        let credentials = credentials.and_then(|value| value.split_once(' '));
        let credentials = credentials.filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
        let hash = credentials.map(|(_, token)| hash_of(token.trim())).ok_or(Refusal::NoToken)?;
        // Compares every token, so that the duration does not reveal which one matched.
        let mut found = None;
        for token in &self.tokens {
            if same(token.sha256.to_ascii_lowercase().as_bytes(), hash.as_bytes()) {
                found = Some(token.name.as_str());
            }
        }
        found.map(Some).ok_or(Refusal::WrongToken)
    }

    /// Like [`Self::admit`], for further requests of a connection: returns the cached principal if `Host` and
    /// `Authorization` are the same as before and there is no `Origin`.
    pub(crate) fn admit_cached(
        &self,
        headers: &dyn HeaderLookup,
        credentials: &mut Option<VerifiedCredentials>,
        find: impl FnOnce(Option<&str>) -> Principal,
    ) -> Result<Principal, Refusal> {
        let [host, authorization] =
            ["host", "authorization"].map(|name| single(headers, name).unwrap_or_default());
        let plain = headers.value("origin").is_none()
            && (authorization.is_empty() == headers.value("authorization").is_none());
        match credentials {
            Some(credentials)
                if plain
                    && !host.is_empty()
                    && credentials.host == host
                    && same(&credentials.authorization, authorization) =>
            {
                Ok(credentials.principal.clone())
            }
            credentials => {
                let principal = find(self.admit(headers, None)?);
                let (host, authorization) = (host.to_vec(), authorization.to_vec());
                *credentials =
                    Some(VerifiedCredentials { host, authorization, principal: principal.clone() });
                Ok(principal)
            }
        }
    }

    fn accepts_host(&self, host: &Authority<'_>) -> bool {
        // A server on a non-loopback address requires a token, which a web page does not have.
        let anything = !self.local && self.hosts.is_empty();
        anything || host.is_local() || self.hosts.iter().any(|known| host.is(known))
    }

    /// Returns whether web pages of that origin may call this server.
    pub(crate) fn allows_origin(&self, origin: &str) -> bool {
        let local = of_origin(origin).is_some_and(|host| host.is_local());
        local || self.origins.iter().any(|allowed| allowed.trim_end_matches('/') == origin)
    }
}

/// Returns the value of a header that occurs exactly once.
fn single<'a>(headers: &'a dyn HeaderLookup, name: &str) -> Option<&'a [u8]> {
    let mut count = 0;
    headers.any(name, &mut |_| {
        count += 1;
        count > 1
    });
    headers.value(name).filter(|_| count == 1)
}

fn same(one: &[u8], other: &[u8]) -> bool {
    let differing = one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
    one.len() == other.len() && differing == 0
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, header};

    use super::*;

    fn admit(access: &Access, headers: &[(header::HeaderName, &str)]) -> Result<String, Refusal> {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.append(name.clone(), value.parse().unwrap());
        }
        let name = |name: Option<&str>| name.unwrap_or("local").to_owned();
        let (first, mut credentials) = (access.admit(&all, None).map(name), None);
        for _ in 0..2 {
            let again = access.admit_cached(&all, &mut credentials, |found| Principal::new(name(found)));
            assert_eq!(again.map(|principal| principal.as_str().to_owned()), first);
        }
        first
    }

    #[test]
    fn rejects_unknown_hosts_and_origins() {
        let access = Access {
            hosts: vec!["hub.example".to_owned()],
            origins: vec!["https://app.example".to_owned()],
            local: true,
            ..Access::default()
        };
        let check = |host: &str, origin: Option<&str>, expect: Result<&str, Refusal>| {
            let mut headers = vec![(header::HOST, host)];
            headers.extend(origin.map(|origin| (header::ORIGIN, origin)));
            assert_eq!(admit(&access, &headers).as_deref(), expect.as_deref(), "{host} {origin:?}");
        };
        check("127.0.0.1:7460", None, Ok("local"));
        check("localhost", Some("http://localhost:3000"), Ok("local"));
        check("[::1]:7460", None, Ok("local"));
        check("hub.example:7460", Some("https://app.example"), Ok("local"));
        check("evil.example", None, Err(Refusal::Host));
        for broken in
            ["", "[::1]evil.example", "user@localhost", "localhost:80abc", "localhost, evil.example"]
        {
            check(broken, None, Err(Refusal::Authority));
        }
        for origin in [
            "http://[::1].evil.example",
            "http://user@localhost",
            "http://localhost:1/",
            "http://localhost, x",
        ] {
            check("localhost", Some(origin), Err(Refusal::Origin));
        }
        check("localhost.evil.example", None, Err(Refusal::Host));
        check("127.0.0.1:7460", Some("https://evil.example"), Err(Refusal::Origin));
        check("127.0.0.1:7460", Some("null"), Err(Refusal::Origin));
        check("127.0.0.1:7460", Some("file://localhost"), Err(Refusal::Origin));
        check("127.0.0.1:7460", Some("http://localhost.evil.example"), Err(Refusal::Origin));
    }

    #[test]
    fn identifies_principal_by_token() {
        let token = |name: &str, token: &str| Token { name: name.to_owned(), sha256: hash_of(token) };
        let access = Access { tokens: vec![token("ci", "one"), token("ann", "two")], ..Access::default() };
        let check = |credentials: &str, expect: Result<&str, Refusal>| {
            let found =
                admit(&access, &[(header::HOST, "hub.example"), (header::AUTHORIZATION, credentials)]);
            assert_eq!(found.as_deref(), expect.as_deref(), "{credentials}");
        };
        check("Bearer one", Ok("ci"));
        check("bearer two", Ok("ann"));
        check("Bearer three", Err(Refusal::WrongToken));
        check("Basic one", Err(Refusal::NoToken));
        let host = (header::HOST, "hub.example");
        assert_eq!(admit(&access, std::slice::from_ref(&host)), Err(Refusal::NoToken));
        let twice = [host, (header::AUTHORIZATION, "Bearer one"), (header::AUTHORIZATION, "Bearer two")];
        assert_eq!(admit(&access, &twice), Err(Refusal::NoToken));
    }

    /// A cached check does not apply to a request that repeats a header with another value.
    #[test]
    fn cached_admission_does_not_cover_repeated_headers() {
        let access = Access { local: true, ..Access::default() };
        let (mut headers, mut credentials) = (HeaderMap::new(), None);
        let mut admit = |headers: &HeaderMap| {
            let found = access.admit_cached(headers, &mut credentials, |_| Principal::new("local"));
            found.map(|_| ())
        };
        assert_eq!(admit(&headers), Err(Refusal::Authority));
        headers.append(header::HOST, "localhost".parse().unwrap());
        assert_eq!(admit(&headers), Ok(()));
        headers.append(header::HOST, "evil.example".parse().unwrap());
        assert_eq!(admit(&headers), Err(Refusal::Authority));
        headers.remove(header::HOST);
        assert_eq!(admit(&headers), Err(Refusal::Authority));
    }

    #[test]
    fn absolute_target_must_match_host() {
        let access = Access { local: true, ..Access::default() };
        let check = |host: &str, target: &str, expect: Result<(), Refusal>| {
            let headers = HeaderMap::from_iter([(header::HOST, host.parse().unwrap())]);
            assert_eq!(access.check_host_and_origin(&headers, Some(target)), expect, "{host} {target}");
        };
        check("localhost:7460", "LOCALHOST:7460", Ok(()));
        check("[::1]:7460", "[0:0::1]:7460", Ok(()));
        check("localhost:7460", "evil.example", Err(Refusal::Authority));
        check("localhost:7460", "localhost:7461", Err(Refusal::Authority));
        check("localhost", "user@localhost", Err(Refusal::Authority));
        check("evil.example", "evil.example", Err(Refusal::Host));
    }
}
