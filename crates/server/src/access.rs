//! Access control: the accepted `Host` names, the allowed origins (protection against DNS rebinding), and bearer tokens,
//! which identify the principal.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use http::StatusCode;
use toolhub_core::Secret;
use toolhub_mcp_gateway::{HeaderLookup, PrincipalHandle, printable_text};

use crate::authenticator::{AuthenticatedToken, Authenticator, KeyTable, TokenRefusal, constant_time_eq};
use crate::authority::{Authority, of_origin};
use crate::revocation::{Recheck, StreamCredential};

/// The access rules of a server.
#[derive(Debug, Clone)]
pub struct ServerAccess {
    /// Accepted host names, in addition to those of the local machine.
    pub hosts: Vec<String>,
    /// Allowed origins of web pages, in addition to those of the local machine.
    pub origins: Vec<String>,
    /// Verifies tokens, if tokens are required.
    pub authenticator: Arc<dyn Authenticator>,
    /// Whether the server listens on a loopback address.
    pub local: bool,
}

impl Default for ServerAccess {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            origins: Vec::new(),
            authenticator: Arc::new(KeyTable::default()),
            local: false,
        }
    }
}

/// The parts of a request that decide about its access.
#[derive(Clone, Copy)]
pub(crate) struct AccessRequest<'a> {
    pub(crate) headers: &'a dyn HeaderLookup,
    /// The authority of the request target if that is in absolute form.
    pub(crate) target: Option<&'a str>,
    /// The profile that the path names.
    pub(crate) profile: Option<&'a str>,
}

/// After how many seconds a client should try again while an identity provider cannot be reached.
const UNAVAILABLE_SECONDS: u16 = 10;

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessRefusal {
    /// `Host` is missing, repeated or not a valid authority, or differs from that of the target (RFC 9112, 3.2).
    Authority,
    Host,
    Origin,
    Token(TokenRefusal),
}

impl AccessRefusal {
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Authority => StatusCode::BAD_REQUEST,
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
            Self::Token(TokenRefusal::Missing | TokenRefusal::Expired | TokenRefusal::Invalid) => {
                StatusCode::UNAUTHORIZED
            }
            Self::Token(TokenRefusal::Malformed) => StatusCode::BAD_REQUEST,
            Self::Token(TokenRefusal::Unavailable | TokenRefusal::NewKey { .. }) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        }
    }

    /// The value of `Retry-After`, in seconds.
    pub(crate) fn retry_after(self) -> Option<u16> {
        match self {
            Self::Token(TokenRefusal::Unavailable) => Some(UNAVAILABLE_SECONDS),
            Self::Token(TokenRefusal::NewKey { retry_after }) => Some(retry_after.max(1)),
            _ => None,
        }
    }

    pub(crate) fn why(self) -> &'static str {
        match self {
            Self::Authority => {
                "a request names its host once, as `Host: name` or `Host: name:port`; a full URL as its target must name \
                 the same"
            }
            Self::Host => {
                "this host is not known here: run `toolhub console` again for a link that works, or add the host to `hosts` in \
                 `[serve]` (此主机名未知：请重新运行 `toolhub console` 获取可用的链接，或把此主机名加入 `[serve]` 的 `hosts`)"
            }
            Self::Origin => "this origin is not allowed: add it to `origins` in `[serve]`",
            Self::Token(TokenRefusal::Missing) => {
                "a token is needed: send `Authorization: Bearer TOKEN`; ask the owner of this hub for a key, or log in \
                 (需要令牌：请发送 `Authorization: Bearer 令牌`；可向此 hub 的所有者索取密钥，或登录)"
            }
            Self::Token(TokenRefusal::Malformed) => {
                "send one `Authorization` header, in the form `Authorization: Bearer TOKEN`"
            }
            Self::Token(TokenRefusal::Expired) => {
                "this token has expired: log in again for a new one; if it is a key, ask the owner of this hub for a new key \
                 (此令牌已过期：请重新登录以获取新令牌；如为密钥，请向此 hub 的所有者索取新密钥)"
            }
            Self::Token(TokenRefusal::Invalid) => {
                "this token is not valid here: it is unknown, revoked or for another audience; ask the owner of \
                 this hub for a key, or log in again (此令牌在此处无效：未知、已吊销或受众不符；可向此 hub 的所有者索取密钥，\
                 或重新登录)"
            }
            Self::Token(TokenRefusal::Unavailable) => {
                "the identity provider that issued this token cannot be reached: try again later"
            }
            Self::Token(TokenRefusal::NewKey { .. }) => {
                "the key that signed this token is not known yet: try again after the time in `Retry-After`"
            }
        }
    }
}

/// The last successful check of a connection: what was checked, and the resulting principal.
#[derive(Debug)]
pub(crate) struct VerifiedCredentials {
    host: Vec<u8>,
    authorization: Vec<u8>,
    profile: Option<Box<str>>,
    /// The version of the authenticator.
    version: u64,
    recheck: Option<Instant>,
    pub(crate) principal: PrincipalHandle,
}

impl VerifiedCredentials {
    pub(crate) fn new(
        request: &AccessRequest<'_>,
        access: &ServerAccess,
        recheck: Option<Instant>,
        principal: PrincipalHandle,
    ) -> Self {
        let [host, authorization] =
            ["host", "authorization"].map(|name| single(request.headers, name).unwrap_or_default().to_vec());
        let (profile, version) = (request.profile.map(Into::into), access.authenticator.version());
        Self { host, authorization, profile, version, recheck, principal }
    }

    /// Whether the token is still valid: no key was changed since the check, and it need not be verified again.
    pub(crate) fn is_current(&self, access: &ServerAccess, now: Instant) -> bool {
        self.version == access.authenticator.version() && self.recheck.is_none_or(|at| now < at)
    }

    /// Whether a request has the same host, token and profile as the one that was checked, and no `Origin`.
    pub(crate) fn covers(&self, request: &AccessRequest<'_>) -> bool {
        let [host, authorization] =
            ["host", "authorization"].map(|name| single(request.headers, name).unwrap_or_default());
        request.headers.value("origin").is_none()
            && (authorization.is_empty() == request.headers.value("authorization").is_none())
            && !host.is_empty()
            && self.host == host
            && self.profile.as_deref() == request.profile
            && constant_time_eq(&self.authorization, authorization)
    }

    /// When the token must be verified again.
    pub(crate) fn recheck(&self) -> Option<Instant> {
        self.recheck
    }
}

impl ServerAccess {
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
    ) -> Result<(), AccessRefusal> {
        self.check_host(headers, target)?;
        let allowed = |origin: &[u8]| printable_text(origin).is_some_and(|origin| self.allows_origin(origin));
        if headers.value("origin").is_some() && !single(headers, "origin").is_some_and(allowed) {
            return Err(AccessRefusal::Origin);
        }
        Ok(())
    }

    /// Checks the host of a request.
    pub(crate) fn check_host(
        &self,
        headers: &dyn HeaderLookup,
        target: Option<&str>,
    ) -> Result<(), AccessRefusal> {
        let host = single(headers, "host").and_then(printable_text).and_then(Authority::parse);
        let host = host.ok_or(AccessRefusal::Authority)?;
        if let Some(target) = target
            && !Authority::parse(target).is_some_and(|target| target.same(&host))
        {
            return Err(AccessRefusal::Authority);
        }
        if !self.accepts_host(&host) {
            return Err(AccessRefusal::Host);
        }
        Ok(())
    }

    /// Checks host and origin, and returns the token of a request; `None` if no token is required.
    fn token<'a>(&self, request: &AccessRequest<'a>) -> Result<Option<&'a str>, AccessRefusal> {
        self.check_host_and_origin(request.headers, request.target)?;
        if !self.authenticator.is_required() {
            return Ok(None);
        }
        let refused = |refusal| Err(AccessRefusal::Token(refusal));
        if request.headers.value("authorization").is_none() {
            return refused(TokenRefusal::Missing);
        }
        let Some(credentials) = single(request.headers, "authorization").and_then(printable_text) else {
            return refused(TokenRefusal::Malformed);
        };
        let (scheme, token) = credentials.split_once(' ').unwrap_or((credentials, ""));
        if !scheme.eq_ignore_ascii_case("bearer") {
            return refused(TokenRefusal::Missing);
        }
        match token.trim() {
            "" => refused(TokenRefusal::Missing),
            token => Ok(Some(token)),
        }
    }

    /// Checks host, origin and token of a request without I/O. Returns `None` if no token is required. The result is
    /// preliminary if the token is refused as invalid: it may be one of an identity provider.
    pub(crate) fn admit(
        &self,
        request: &AccessRequest<'_>,
    ) -> Result<Option<AuthenticatedToken>, AccessRefusal> {
        let Some(token) = self.token(request)? else { return Ok(None) };
        let found = self.authenticator.find(token, request.profile);
        found.map(Some).ok_or(AccessRefusal::Token(TokenRefusal::Invalid))
    }

    /// Like [`Self::admit`], and verifies tokens of identity providers.
    pub(crate) async fn admit_or_verify(
        &self,
        request: &AccessRequest<'_>,
    ) -> Result<Option<AuthenticatedToken>, AccessRefusal> {
        let Some(token) = self.token(request)? else { return Ok(None) };
        if let Some(found) = self.authenticator.find(token, request.profile) {
            return Ok(Some(found));
        }
        self.authenticator.verify(token, request.profile).await.map(Some).map_err(AccessRefusal::Token)
    }

    /// What a stream that this request opens needs to verify its token again at `recheck`.
    pub(crate) fn stream_credential(
        &self,
        request: &AccessRequest<'_>,
        principal: &PrincipalHandle,
        recheck: Option<Instant>,
    ) -> StreamCredential {
        let token = self.token(request).ok().flatten();
        let recheck = recheck.zip(token).map(|(at, token)| Recheck {
            authenticator: Arc::clone(&self.authenticator),
            token: Secret::new(token),
            profile: request.profile.map(str::to_owned),
            at,
        });
        StreamCredential { principal: principal.clone(), recheck }
    }

    fn accepts_host(&self, host: &Authority<'_>) -> bool {
        // A server on a non-loopback address requires a token, which a web page does not have.
        let anything = !self.local && self.hosts.is_empty();
        anything || host.is_local() || self.hosts.iter().any(|known| host.matches(known))
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

#[cfg(test)]
mod tests {
    use http::{HeaderMap, header};

    use super::*;
    use crate::authenticator::{StaticKey, hash_of};

    fn request(headers: &HeaderMap) -> AccessRequest<'_> {
        AccessRequest { headers, target: None, profile: None }
    }

    fn admit(access: &ServerAccess, headers: &[(header::HeaderName, &str)]) -> Result<String, AccessRefusal> {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.append(name.clone(), value.parse().unwrap());
        }
        let name = |verified: Option<AuthenticatedToken>| {
            verified.map_or("local".to_owned(), |one| one.principal.display.clone())
        };
        access.admit(&request(&all)).map(name)
    }

    #[test]
    fn rejects_unknown_hosts_and_origins() {
        let access = ServerAccess {
            hosts: vec!["hub.example".to_owned()],
            origins: vec!["https://app.example".to_owned()],
            local: true,
            ..ServerAccess::default()
        };
        let check = |host: &str, origin: Option<&str>, expect: Result<&str, AccessRefusal>| {
            let mut headers = vec![(header::HOST, host)];
            headers.extend(origin.map(|origin| (header::ORIGIN, origin)));
            assert_eq!(admit(&access, &headers).as_deref(), expect.as_deref(), "{host} {origin:?}");
        };
        check("127.0.0.1:7460", None, Ok("local"));
        check("localhost", Some("http://localhost:3000"), Ok("local"));
        check("[::1]:7460", None, Ok("local"));
        check("hub.example:7460", Some("https://app.example"), Ok("local"));
        check("evil.example", None, Err(AccessRefusal::Host));
        for broken in
            ["", "[::1]evil.example", "user@localhost", "localhost:80abc", "localhost, evil.example"]
        {
            check(broken, None, Err(AccessRefusal::Authority));
        }
        for origin in [
            "http://[::1].evil.example",
            "http://user@localhost",
            "http://localhost:1/",
            "http://localhost, x",
        ] {
            check("localhost", Some(origin), Err(AccessRefusal::Origin));
        }
        check("localhost.evil.example", None, Err(AccessRefusal::Host));
        check("127.0.0.1:7460", Some("https://evil.example"), Err(AccessRefusal::Origin));
        check("127.0.0.1:7460", Some("null"), Err(AccessRefusal::Origin));
        check("127.0.0.1:7460", Some("file://localhost"), Err(AccessRefusal::Origin));
        check("127.0.0.1:7460", Some("http://localhost.evil.example"), Err(AccessRefusal::Origin));
    }

    #[test]
    fn identifies_principal_by_token() {
        let key = |name: &str, token: &str| StaticKey::of_caller(name, hash_of(token));
        let keys = KeyTable::from(vec![key("ci", "one"), key("ann", "two")]);
        let access = ServerAccess { authenticator: Arc::new(keys), ..ServerAccess::default() };
        let check = |credentials: &str, expect: Result<&str, AccessRefusal>| {
            let found =
                admit(&access, &[(header::HOST, "hub.example"), (header::AUTHORIZATION, credentials)]);
            assert_eq!(found.as_deref(), expect.as_deref(), "{credentials}");
        };
        check("Bearer one", Ok("ci"));
        check("bearer two", Ok("ann"));
        check("Bearer three", Err(AccessRefusal::Token(TokenRefusal::Invalid)));
        check("Basic one", Err(AccessRefusal::Token(TokenRefusal::Missing)));
        let host = (header::HOST, "hub.example");
        assert_eq!(
            admit(&access, std::slice::from_ref(&host)),
            Err(AccessRefusal::Token(TokenRefusal::Missing))
        );
        let twice = [host, (header::AUTHORIZATION, "Bearer one"), (header::AUTHORIZATION, "Bearer two")];
        assert_eq!(admit(&access, &twice), Err(AccessRefusal::Token(TokenRefusal::Malformed)));
    }

    /// A cached check applies to the same host, token and profile only, and not to repeated headers.
    #[test]
    fn cached_credentials_cover_only_the_same_request() {
        let access = ServerAccess { local: true, ..ServerAccess::default() };
        let mut headers = HeaderMap::new();
        headers.append(header::HOST, "localhost".parse().unwrap());
        headers.append(header::AUTHORIZATION, "Bearer one".parse().unwrap());
        let credentials =
            VerifiedCredentials::new(&request(&headers), &access, None, PrincipalHandle::local());
        let covers = |change: &dyn Fn(&mut HeaderMap)| {
            let mut headers = headers.clone();
            change(&mut headers);
            credentials.covers(&request(&headers))
        };
        assert!(covers(&|_| {}));
        assert!(!covers(&|headers| {
            headers.append(header::HOST, "evil.example".parse().unwrap());
        }));
        assert!(!covers(&|headers| {
            headers.remove(header::HOST);
        }));
        assert!(!covers(&|headers| {
            headers.remove(header::AUTHORIZATION);
        }));
        assert!(!covers(&|headers| {
            headers.append(header::AUTHORIZATION, "Bearer one".parse().unwrap());
        }));
        assert!(!covers(&|headers| {
            headers.insert(header::AUTHORIZATION, "Bearer two".parse().unwrap());
        }));
        assert!(!covers(&|headers| {
            headers.insert(header::ORIGIN, "http://localhost".parse().unwrap());
        }));
        let other = AccessRequest { profile: Some("ops"), ..request(&headers) };
        assert!(!credentials.covers(&other), "a token is verified for one profile");
    }

    #[test]
    fn credentials_must_be_verified_again_in_time() {
        let (access, headers, now) = (ServerAccess::default(), HeaderMap::new(), Instant::now());
        let second = std::time::Duration::from_secs(1);
        let credentials = |recheck| {
            VerifiedCredentials::new(&request(&headers), &access, recheck, PrincipalHandle::local())
        };
        assert!(credentials(None).is_current(&access, now));
        assert!(credentials(Some(now + second)).is_current(&access, now));
        assert!(!credentials(Some(now)).is_current(&access, now));
    }

    #[test]
    fn absolute_target_must_match_host() {
        let access = ServerAccess { local: true, ..ServerAccess::default() };
        let check = |host: &str, target: &str, expect: Result<(), AccessRefusal>| {
            let headers = HeaderMap::from_iter([(header::HOST, host.parse().unwrap())]);
            assert_eq!(access.check_host_and_origin(&headers, Some(target)), expect, "{host} {target}");
        };
        check("localhost:7460", "LOCALHOST:7460", Ok(()));
        check("[::1]:7460", "[0:0::1]:7460", Ok(()));
        check("localhost:7460", "evil.example", Err(AccessRefusal::Authority));
        check("localhost:7460", "localhost:7461", Err(AccessRefusal::Authority));
        check("localhost", "user@localhost", Err(AccessRefusal::Authority));
        check("evil.example", "evil.example", Err(AccessRefusal::Host));
    }
}
