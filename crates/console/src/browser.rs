//! What browsers need: security headers, cookies, preferences and the check of requests that change something.

use std::net::IpAddr;
use std::time::Duration;

use axum::body::Body;
use http::{HeaderMap, HeaderValue, Response, StatusCode, Uri, header};
use toolhub_core::{Lang, Secret};

use crate::problem::Problem;
use crate::request::QueryParameters;

/// Nothing from elsewhere, and no script or style inside a page.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                              connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
/// Over HTTPS the prefix keeps other hosts of the same site from setting the cookie.
const HOST_PREFIX: &str = "__Host-";
const LANG_COOKIE: &str = "toolhub_lang";
const THEME_COOKIE: &str = "toolhub_theme";
/// How long a login at an identity provider may take.
const LOGIN_MAX_AGE: Duration = Duration::from_secs(600);
const SESSION_MAX_AGE: Duration = Duration::from_secs(7 * 86_400);
const PREFERENCE_MAX_AGE: Duration = Duration::from_secs(365 * 86_400);
/// The request header with the token of the page.
const CSRF_HEADER: &str = "x-csrf-token";

/// Adds the security headers of every response.
pub(crate) fn secure(headers: &mut HeaderMap) {
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, CONTENT_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// Whether a value of `Host` names this machine. Programs of other users may listen there on other ports.
pub(crate) fn is_loopback(host: &str) -> bool {
    let Ok(authority) = host.parse::<http::uri::Authority>() else { return true };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback() || ip.is_unspecified())
}

/// Whether a value of `Authorization` is a bearer token. Others are for reverse proxies.
pub(crate) fn is_bearer(value: &HeaderValue) -> bool {
    value.as_bytes().get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer "))
}

/// The port that a browser used. Cookies do not distinguish ports, so that the name of a cookie has to.
fn port_of(headers: &HeaderMap) -> u16 {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    host.parse::<http::uri::Authority>().ok().and_then(|host| host.port_u16()).unwrap_or_default()
}

/// The cookies of a request.
pub(crate) struct Cookies<'a> {
    pairs: Vec<(&'a str, &'a str)>,
    port: u16,
}

impl<'a> Cookies<'a> {
    pub(crate) fn of(headers: &'a HeaderMap) -> Self {
        let pairs = headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        Self { pairs: pairs.collect(), port: port_of(headers) }
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        let mut named = self.pairs.iter().filter(|(own, _)| *own == name);
        let (_, value) = named.next()?;
        // Two cookies of one name: another host or path may have set one of them.
        named.next().is_none().then_some(value)
    }

    /// The token of the session.
    pub(crate) fn session(&self, is_https: bool) -> Option<&'a str> {
        self.private(CookieKind::Session, is_https)
    }

    /// A private cookie. Over HTTPS only the one with the prefix counts, which other hosts cannot set.
    pub(crate) fn private(&self, kind: CookieKind, is_https: bool) -> Option<&'a str> {
        let prefix = if is_https { HOST_PREFIX } else { "" };
        self.get(&format!("{prefix}{}_{}", kind.name(), self.port))
    }
}

/// A colour theme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Theme {
    /// That of the system.
    Auto,
    Light,
    Dark,
}

impl Theme {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Self::Auto, Self::Light, Self::Dark].into_iter().find(|theme| theme.name() == name)
    }
}

/// The preferences of a browser.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Preferences {
    pub(crate) lang: Lang,
    pub(crate) theme: Theme,
}

impl Preferences {
    /// From cookies, else from `Accept-Language`.
    pub(crate) fn of(headers: &HeaderMap, default: Lang) -> Self {
        let cookies = Cookies::of(headers);
        let chosen = cookies.get(LANG_COOKIE).and_then(|lang| lang.parse::<Lang>().ok());
        let accepted = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
        let lang = chosen.or_else(|| accepted.and_then(accepted_lang)).unwrap_or(default);
        let theme = cookies.get(THEME_COOKIE).and_then(Theme::from_name).unwrap_or(Theme::Auto);
        Self { lang, theme }
    }
}

/// The first language of `Accept-Language` that there is. Browsers list them by preference.
fn accepted_lang(value: &str) -> Option<Lang> {
    value.split(',').find_map(|range| range.split(';').next()?.trim().parse::<Lang>().ok())
}

/// Checks a request that changes something: it must come from a page of the console, and carry the token of its session.
pub(crate) fn check_write(headers: &HeaderMap, csrf: &str) -> Result<(), Problem> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let is_same_origin = || {
        let origin = text("origin")?.parse::<Uri>().ok()?;
        let host = text("host")?;
        Some(origin.authority()?.as_str().eq_ignore_ascii_case(host))
    };
    // A browser sends each once; of two, a proxy could have checked the other one.
    let is_repeated = ["origin", "host", "sec-fetch-site", CSRF_HEADER]
        .iter()
        .any(|name| headers.get_all(*name).iter().count() > 1);
    let is_same_site = text("sec-fetch-site").is_none_or(|site| site == "same-origin");
    let has_token = text(CSRF_HEADER).is_some_and(|token| token.len() == csrf.len() && token == csrf);
    if !is_repeated && is_same_site && has_token && is_same_origin() == Some(true) {
        return Ok(());
    }
    Err(Problem::forbidden(
        "this request did not come from a page of the console: reload the page and try again",
        "此请求不是来自控制台页面：请刷新页面后重试",
    ))
}

/// A cookie that scripts cannot read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CookieKind {
    /// The token of a session.
    Session,
    /// The secrets of a login that has begun.
    Login,
}

impl CookieKind {
    fn name(self) -> &'static str {
        match self {
            Self::Session => "toolhub_console",
            Self::Login => "toolhub_login",
        }
    }

    fn max_age(self) -> Duration {
        match self {
            Self::Session => SESSION_MAX_AGE,
            Self::Login => LOGIN_MAX_AGE,
        }
    }
}

/// Sets and removes private cookies.
pub(crate) struct PrivateCookies<'a> {
    /// The headers of the request, whose port is part of the name.
    pub(crate) request: &'a HeaderMap,
    pub(crate) is_https: bool,
}

impl PrivateCookies<'_> {
    /// Sets a cookie.
    pub(crate) fn set(&self, headers: &mut HeaderMap, kind: CookieKind, value: &Secret) {
        set_cookie(headers, &self.text(kind, value.expose(), kind.max_age()));
    }

    /// Removes a cookie.
    pub(crate) fn remove(&self, headers: &mut HeaderMap, kind: CookieKind) {
        set_cookie(headers, &self.text(kind, "", Duration::ZERO));
    }

    fn text(&self, kind: CookieKind, value: &str, max_age: Duration) -> String {
        let (prefix, attribute) = if self.is_https { (HOST_PREFIX, "; Secure") } else { ("", "") };
        let (name, port, seconds) = (kind.name(), port_of(self.request), max_age.as_secs());
        format!("{prefix}{name}_{port}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{attribute}")
    }
}

fn set_cookie(headers: &mut HeaderMap, cookie: &str) {
    if let Ok(value) = HeaderValue::from_str(cookie) {
        headers.append(header::SET_COOKIE, value);
    }
}

/// Stores the language or theme, and returns to the page.
pub(crate) fn set_preferences(query: &QueryParameters, is_https: bool) -> Response<Body> {
    // Only a path below the console, so that a link cannot lead elsewhere.
    let back = query.get("back").filter(|back| is_relative(back)).unwrap_or_default();
    let mut response = redirect(&format!("./{back}"));
    let secure = if is_https { "; Secure" } else { "" };
    let seconds = PREFERENCE_MAX_AGE.as_secs();
    let lang = query.get("lang").filter(|lang| ["en", "zh"].contains(lang)).map(|lang| (LANG_COOKIE, lang));
    let theme = query.get("theme").filter(|theme| Theme::from_name(theme).is_some());
    for (name, value) in lang.into_iter().chain(theme.map(|theme| (THEME_COOKIE, theme))) {
        let cookie = format!("{name}={value}; Path=/; Max-Age={seconds}; SameSite=Lax{secure}");
        set_cookie(response.headers_mut(), &cookie);
    }
    response
}

/// Whether a link stays below the console: a path without a scheme, a host, or a way up.
pub(crate) fn is_relative(link: &str) -> bool {
    let path = link.split(['?', '#']).next().unwrap_or_default();
    !path.starts_with('/')
        && !path.contains([':', '\\', '%'])
        && path.split('/').all(|segment| segment != "..")
        && link.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A redirect to a relative path, which also works behind a path prefix.
pub(crate) fn redirect(location: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    if let Ok(value) = HeaderValue::from_str(location) {
        response.headers_mut().insert(header::LOCATION, value);
    }
    response
}

/// A page of HTML.
pub(crate) fn html(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// A response of one line.
pub(crate) fn plain(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(format!("{text}\n")));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn repeated_session_cookies_open_nothing() {
        let check = |values: &[(&'static str, &'static str)], expected: Option<&str>| {
            let host = [("host", "127.0.0.1:7")];
            let all: Vec<_> = host.iter().chain(values).copied().collect();
            assert_eq!(Cookies::of(&headers(&all)).session(false), expected, "{values:?}");
        };
        check(&[("cookie", "a=b; toolhub_console_7=x")], Some("x"));
        check(&[("cookie", "toolhub_console_7=x; toolhub_console_7=y")], None);
        check(&[("cookie", "toolhub_console_7=x"), ("cookie", "toolhub_console_7=x")], None);
        check(&[("cookie", "__Host-toolhub_console_7=x; toolhub_console_7=y")], Some("y"));
        let secure =
            headers(&[("host", "a:7"), ("cookie", "__Host-toolhub_console_7=x; toolhub_console_7=y")]);
        assert_eq!(Cookies::of(&secure).session(true), Some("x"));
        check(&[("cookie", "my_toolhub_console_7=x; toolhub_console_8=y")], None);
    }

    #[test]
    fn writes_need_origin_and_token() {
        let good = [("host", "127.0.0.1:1"), ("origin", "http://127.0.0.1:1"), ("x-csrf-token", "t")];
        let with = |name: &'static str, value: Option<&'static str>| {
            let kept = good.iter().copied().filter(|(own, _)| *own != name);
            let pairs: Vec<_> = kept.chain(value.map(|value| (name, value))).collect();
            check_write(&headers(&pairs), "t").is_ok()
        };
        assert!(with("other", None));
        assert!(with("sec-fetch-site", Some("same-origin")));
        for (name, value) in [
            ("origin", None),
            ("origin", Some("http://evil.example")),
            ("origin", Some("http://127.0.0.1:2")),
            ("origin", Some("null")),
            ("x-csrf-token", None),
            ("x-csrf-token", Some("u")),
            ("x-csrf-token", Some("")),
            ("host", None),
            ("sec-fetch-site", Some("same-site")),
            ("sec-fetch-site", Some("cross-site")),
        ] {
            assert!(!with(name, value), "{name} {value:?}");
        }
        for (name, value) in good {
            let pairs = [&good[..], &[(name, value)]].concat();
            assert!(check_write(&headers(&pairs), "t").is_err(), "{name} twice");
        }
    }

    #[test]
    fn preferences_lead_back_to_the_console_only() {
        let location = |query: &str| {
            let response = set_preferences(&QueryParameters::parse(Some(query)), false);
            response.headers()[header::LOCATION].to_str().unwrap().to_owned()
        };
        assert_eq!(location("back=tools%3Ftext%3Da"), "./tools?text=a");
        for back in [
            "https://evil.example",
            "//evil.example",
            "/mcp",
            "a/../../mcp",
            "%2e%2e/mcp",
            "\\\\evil",
            "a\nb",
        ] {
            let query = QueryParameters::default().with("back", Some(back));
            assert_eq!(location(&query), "./", "{back}");
        }
    }

    #[test]
    fn loopback_names_are_recognised() {
        for host in [
            "localhost",
            "LOCALHOST:1",
            "a.localhost:1",
            "127.0.0.1:7460",
            "127.9.9.9",
            "[::1]:1",
            "[::ffff:127.0.0.1]",
            "0.0.0.0",
            "localhost.",
            "",
        ] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["hub.example", "192.168.0.1:1", "localhost.example", "[2001:db8::1]:1"] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn language_comes_from_cookie_then_browser() {
        let lang = |pairs: &[(&'static str, &'static str)]| Preferences::of(&headers(pairs), Lang::En).lang;
        assert_eq!(lang(&[]), Lang::En);
        assert_eq!(lang(&[("accept-language", "fr, zh-CN;q=0.9, en;q=0.8")]), Lang::Zh);
        assert_eq!(lang(&[("accept-language", "zh"), ("cookie", "toolhub_lang=en")]), Lang::En);
    }
}
