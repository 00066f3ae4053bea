//! What browsers need: security headers, cookies, preferences and the check of requests that change something.

use std::time::Duration;

use axum::body::Body;
use http::{HeaderMap, HeaderValue, Response, StatusCode, Uri, header};
use toolhub_core::{Lang, Secret};

use crate::problem::Problem;
use crate::request::Query;

/// Nothing from elsewhere, and no script or style inside a page.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                              connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
const SESSION_COOKIE: &str = "toolhub_console";
/// Over HTTPS the prefix keeps other hosts of the same site from setting the cookie.
const HOST_PREFIX: &str = "__Host-";
const LANG_COOKIE: &str = "toolhub_lang";
const THEME_COOKIE: &str = "toolhub_theme";
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

/// The cookies of a request.
pub(crate) struct Cookies<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Cookies<'a> {
    pub(crate) fn of(headers: &'a HeaderMap) -> Self {
        let pairs = headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        Self(pairs.collect())
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        let mut named = self.0.iter().filter(|(own, _)| *own == name);
        let (_, value) = named.next()?;
        // Two cookies of one name: another host or path may have set one of them.
        named.next().is_none().then_some(value)
    }

    /// The token of the session.
    pub(crate) fn session(&self) -> Option<&'a str> {
        self.get(&format!("{HOST_PREFIX}{SESSION_COOKIE}")).or_else(|| self.get(SESSION_COOKIE))
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

/// The preferences of a visitor.
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
    let is_same_site = text("sec-fetch-site").is_none_or(|site| site == "same-origin");
    let has_token = text(CSRF_HEADER).is_some_and(|token| token.len() == csrf.len() && token == csrf);
    if is_same_site && has_token && is_same_origin() == Some(true) {
        return Ok(());
    }
    Err(Problem::forbidden(
        "this request did not come from a page of the console: reload the page and try again",
        "此请求不是来自控制台页面：请刷新页面后重试",
    ))
}

/// Sets the cookie of a session.
pub(crate) fn set_session(headers: &mut HeaderMap, token: &Secret, is_https: bool) {
    set_cookie(headers, &session_cookie(token.expose(), SESSION_MAX_AGE, is_https));
}

/// Removes the cookie of a session.
pub(crate) fn remove_session(headers: &mut HeaderMap, is_https: bool) {
    set_cookie(headers, &session_cookie("", Duration::ZERO, is_https));
}

fn session_cookie(value: &str, max_age: Duration, is_https: bool) -> String {
    let (prefix, attribute) = if is_https { (HOST_PREFIX, "; Secure") } else { ("", "") };
    let seconds = max_age.as_secs();
    format!("{prefix}{SESSION_COOKIE}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{attribute}")
}

fn set_cookie(headers: &mut HeaderMap, cookie: &str) {
    if let Ok(value) = HeaderValue::from_str(cookie) {
        headers.append(header::SET_COOKIE, value);
    }
}

/// Stores the language or theme, and returns to the page.
pub(crate) fn set_preferences(query: &Query, is_https: bool) -> Response<Body> {
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
fn is_relative(link: &str) -> bool {
    let path = link.split(['?', '#']).next().unwrap_or_default();
    !path.starts_with('/')
        && !path.contains([':', '\\'])
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
            assert_eq!(Cookies::of(&headers(values)).session(), expected, "{values:?}");
        };
        check(&[("cookie", "a=b; toolhub_console=x")], Some("x"));
        check(&[("cookie", "toolhub_console=x; toolhub_console=y")], None);
        check(&[("cookie", "toolhub_console=x"), ("cookie", "toolhub_console=x")], None);
        check(&[("cookie", "__Host-toolhub_console=x; toolhub_console=y")], Some("x"));
        check(&[("cookie", "my_toolhub_console=x")], None);
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
    }

    #[test]
    fn preferences_lead_back_to_the_console_only() {
        let location = |query: &str| {
            let response = set_preferences(&Query::parse(Some(query)), false);
            response.headers()[header::LOCATION].to_str().unwrap().to_owned()
        };
        assert_eq!(location("back=tools%3Ftext%3Da"), "./tools?text=a");
        for back in ["https://evil.example", "//evil.example", "/mcp", "a/../../mcp", "\\\\evil", "a\nb"] {
            let query = Query::default().with("back", Some(back));
            assert_eq!(location(&query), "./", "{back}");
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
