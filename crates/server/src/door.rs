//! Who may come in: names of the host that are known, origins that are allowed, and tokens that tell who is calling.

use std::net::{IpAddr, SocketAddr};

use http::StatusCode;
use sha2::{Digest as _, Sha256};
use toolhub_mcp::gateway::{Heads, Principal};

/// A token that lets somebody in, kept as its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Who it is for.
    pub name: String,
    /// The SHA-256 of the token, as 64 hexadecimal digits.
    pub sha256: String,
}

/// The hash by which a token is known.
pub fn hash_of(token: &str) -> String {
    Sha256::digest(token.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Who may come in.
#[derive(Debug, Clone, Default)]
pub struct Door {
    /// Names under which the host may be called, beside those of this machine.
    pub hosts: Vec<String>,
    /// Origins that web pages may come from, beside those of this machine.
    pub origins: Vec<String>,
    /// Tokens; where there are none, nobody is asked for one.
    pub tokens: Vec<Token>,
    /// Whether only this machine can reach the address.
    pub local: bool,
}

/// Why somebody is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Host,
    Origin,
    NoToken,
    WrongToken,
}

impl Refusal {
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
            Self::NoToken | Self::WrongToken => StatusCode::UNAUTHORIZED,
        }
    }

    pub(crate) fn why(self) -> &'static str {
        match self {
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

/// Who came in before, and with what.
#[derive(Debug)]
pub(crate) struct Shown {
    host: Vec<u8>,
    authorization: Vec<u8>,
    pub(crate) who: Principal,
}

impl Door {
    /// The door of an address.
    #[must_use]
    pub fn at(mut self, address: SocketAddr) -> Self {
        self.local = address.ip().is_loopback();
        self
    }

    /// Whether somebody with these headers may ask here at all. A browser that asks beforehand shows no token.
    pub(crate) fn check_place(&self, headers: &dyn Heads) -> Result<(), Refusal> {
        if !text(headers, "host").is_none_or(|host| self.knows_host(host)) {
            return Err(Refusal::Host);
        }
        if !text(headers, "origin").is_none_or(|origin| self.allows_origin(origin)) {
            return Err(Refusal::Origin);
        }
        Ok(())
    }

    /// Who comes with these headers, or why they do not come in.
    pub(crate) fn admit(&self, headers: &dyn Heads) -> Result<Principal, Refusal> {
        self.check_place(headers)?;
        if self.tokens.is_empty() {
            return Ok(Principal::new("local"));
        }
        let shown = text(headers, "authorization").and_then(|value| value.split_once(' '));
        let shown = shown.filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
        let hash = shown.map(|(_, token)| hash_of(token.trim())).ok_or(Refusal::NoToken)?;
        // Every token is compared, so that the time tells nothing.
        let mut found = None;
        for token in &self.tokens {
            if same(token.sha256.to_ascii_lowercase().as_bytes(), hash.as_bytes()) {
                found = Some(Principal::new(token.name.as_str()));
            }
        }
        found.ok_or(Refusal::WrongToken)
    }

    /// The same for one that comes again over the same connection: what was shown before need not be looked at twice.
    pub(crate) fn admit_again(
        &self,
        headers: &dyn Heads,
        shown: &mut Option<Shown>,
    ) -> Result<Principal, Refusal> {
        let [host, origin, authorization] =
            ["host", "origin", "authorization"].map(|name| headers.value(name).unwrap_or_default());
        match shown {
            Some(shown)
                if shown.host == host && origin.is_empty() && same(&shown.authorization, authorization) =>
            {
                Ok(shown.who.clone())
            }
            shown => {
                let who = self.admit(headers)?;
                let (host, authorization) = (host.to_vec(), authorization.to_vec());
                *shown = Some(Shown { host, authorization, who: who.clone() });
                Ok(who)
            }
        }
    }

    fn knows_host(&self, host: &str) -> bool {
        // From elsewhere a token is needed, which no web page has.
        let anything = !self.local && self.hosts.is_empty();
        anything || is_local(name_in(host)) || self.hosts.iter().any(|known| same_host(known, host))
    }

    /// Whether a web page of that origin may call.
    pub(crate) fn allows_origin(&self, origin: &str) -> bool {
        let host = origin.split_once("://").filter(|(scheme, _)| ["http", "https"].contains(scheme));
        let local = host.is_some_and(|(_, host)| is_local(name_in(host)));
        local || self.origins.iter().any(|allowed| allowed.trim_end_matches('/') == origin)
    }
}

/// A header's value; one that is no text is none that anybody knows.
fn text<'a>(headers: &'a dyn Heads, name: &str) -> Option<&'a str> {
    headers.value(name).map(|_| headers.text(name).unwrap_or("\u{0}"))
}

fn same(one: &[u8], other: &[u8]) -> bool {
    let differing = one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
    one.len() == other.len() && differing == 0
}

fn same_host(known: &str, host: &str) -> bool {
    known.eq_ignore_ascii_case(host) || known.eq_ignore_ascii_case(name_in(host))
}

/// The host without its port.
fn name_in(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split_once(']').map_or(rest, |(name, _)| name);
    }
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

fn is_local(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, header};

    use super::*;

    fn admit(door: &Door, headers: &[(header::HeaderName, &str)]) -> Result<String, Refusal> {
        let headers: HeaderMap =
            headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        let (first, mut shown) = (door.admit(&headers), None);
        for _ in 0..2 {
            assert_eq!(door.admit_again(&headers, &mut shown), first);
        }
        first.map(|principal| principal.as_str().to_owned())
    }

    #[test]
    fn only_known_hosts_and_origins_come_in() {
        let door = Door {
            hosts: vec!["hub.example".to_owned()],
            origins: vec!["https://app.example".to_owned()],
            local: true,
            ..Door::default()
        };
        let check = |host: &str, origin: Option<&str>, expect: Result<&str, Refusal>| {
            let mut headers = vec![(header::HOST, host)];
            headers.extend(origin.map(|origin| (header::ORIGIN, origin)));
            assert_eq!(admit(&door, &headers).as_deref(), expect.as_deref(), "{host} {origin:?}");
        };
        check("127.0.0.1:7460", None, Ok("local"));
        check("localhost", Some("http://localhost:3000"), Ok("local"));
        check("[::1]:7460", None, Ok("local"));
        check("hub.example:7460", Some("https://app.example"), Ok("local"));
        check("evil.example", None, Err(Refusal::Host));
        check("localhost.evil.example", None, Err(Refusal::Host));
        check("127.0.0.1:7460", Some("https://evil.example"), Err(Refusal::Origin));
        check("127.0.0.1:7460", Some("null"), Err(Refusal::Origin));
        check("127.0.0.1:7460", Some("file://localhost"), Err(Refusal::Origin));
        check("127.0.0.1:7460", Some("http://localhost.evil.example"), Err(Refusal::Origin));
    }

    #[test]
    fn tokens_tell_who_is_calling() {
        let token = |name: &str, token: &str| Token { name: name.to_owned(), sha256: hash_of(token) };
        let door = Door { tokens: vec![token("ci", "one"), token("ann", "two")], ..Door::default() };
        let check = |shown: &str, expect: Result<&str, Refusal>| {
            let found = admit(&door, &[(header::AUTHORIZATION, shown)]);
            assert_eq!(found.as_deref(), expect.as_deref(), "{shown}");
        };
        check("Bearer one", Ok("ci"));
        check("bearer two", Ok("ann"));
        check("Bearer three", Err(Refusal::WrongToken));
        check("Basic one", Err(Refusal::NoToken));
        assert_eq!(admit(&door, &[]), Err(Refusal::NoToken));
    }
}
