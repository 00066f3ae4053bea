//! `/login`: the pages through which a caller of the gateway logs in to a server of the hub in a browser.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use toolhub_core::Secret;
use url::form_urlencoded;

use super::exchange::RouteExchange;
use crate::responses::{access_denied, empty_response, shutting_down, text_response, typed_response};
use crate::service::{LoginPage, LoginPageRequest, LoginStep};

/// The beginning of the names of the cookies that bind logins to the browsers that began them. Over HTTPS the prefix `__Host-`
/// keeps other hosts of the same site from setting one.
const COOKIE_PREFIXES: [&str; 2] = ["toolhub_login_", "__Host-toolhub_login_"];
const MAX_FORM_BYTES: usize = 32 << 10;
const FORM_TIMEOUT: Duration = Duration::from_secs(10);
/// No scripts, no frames, nothing from elsewhere.
const CONTENT_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Shows a link (GET), or begins its login with the credential of the caller (POST).
pub(super) async fn link(mut exchange: RouteExchange<'_>) -> Response<Body> {
    let Some(link) = exchange.profile.map(str::to_owned) else {
        return text_response(StatusCode::NOT_FOUND, "there is nothing here: a link to log in has an id");
    };
    let step = if exchange.parts.method == Method::POST {
        let Some(credential) = read_credential(&mut exchange).await else {
            return text_response(StatusCode::BAD_REQUEST, "this form has one field, `credential`");
        };
        let origin = exchange.parts.headers.get(header::ORIGIN);
        let origin = origin.and_then(|origin| origin.to_str().ok()).map(str::to_owned);
        LoginStep::Begin { link, credential, origin }
    } else {
        LoginStep::Show { link }
    };
    respond(exchange, step).await
}

/// Ends a login with the response of the authorization server.
pub(super) async fn callback(exchange: RouteExchange<'_>) -> Response<Body> {
    let query = exchange.parts.uri.query().unwrap_or_default().to_owned();
    respond(exchange, LoginStep::Finish { query }).await
}

async fn respond(exchange: RouteExchange<'_>, step: LoginStep) -> Response<Body> {
    let (shared, headers) = (exchange.shared, &exchange.parts.headers);
    if shared.draining.load(Ordering::Acquire) {
        return shutting_down();
    }
    let target = exchange.parts.uri.authority().map(Authority::as_str);
    if let Err(refusal) = shared.access.check_host(headers, target) {
        return access_denied(refusal, None);
    }
    let request = LoginPageRequest { step, cookies: cookies(headers) };
    match shared.service.login_page(request).await {
        Some(page) => render(page),
        None => empty_response(StatusCode::NOT_FOUND),
    }
}

fn render(page: LoginPage) -> Response<Body> {
    let status = StatusCode::from_u16(page.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = typed_response(status, "text/html; charset=utf-8", page.html);
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_POLICY));
    if let Some(cookie) = page.cookie {
        let [plain, secure] = COOKIE_PREFIXES;
        let (prefix, attribute) = if cookie.secure { (secure, "; Secure") } else { (plain, "") };
        let (name, value) = (&cookie.name, cookie.value.expose());
        let seconds = cookie.max_age.as_secs();
        let text =
            format!("{prefix}{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{attribute}");
        if let Ok(value) = HeaderValue::from_str(&text) {
            headers.insert(header::SET_COOKIE, value);
        }
    }
    response
}

/// The cookies of logins, without their prefixes.
fn cookies(headers: &HeaderMap) -> Vec<(String, Secret)> {
    let pairs = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    let own = pairs.filter_map(|(name, value)| {
        let name = COOKIE_PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix))?;
        Some((name.to_owned(), Secret::new(value)))
    });
    own.collect()
}

/// The credential in the form: a key, or an access token.
async fn read_credential(exchange: &mut RouteExchange<'_>) -> Option<Secret> {
    let body = exchange.body.take()?;
    let bytes = tokio::time::timeout(FORM_TIMEOUT, to_bytes(body, MAX_FORM_BYTES)).await.ok()?.ok()?;
    let mut fields = form_urlencoded::parse(&bytes);
    fields.find_map(|(name, value)| (name == "credential").then(|| Secret::new(value.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_its_cookies_among_others() {
        let check = |values: &[&'static str], expected: &[(&str, &str)]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::COOKIE, HeaderValue::from_static(value));
            }
            let found = cookies(&headers);
            let found: Vec<_> = found.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
            assert_eq!(found, expected, "{values:?}");
        };
        check(&["toolhub_login_1=a"], &[("1", "a")]);
        check(&["x=1; toolhub_login_1=a; __Host-toolhub_login_2=b"], &[("1", "a"), ("2", "b")]);
        check(&["x=1", "toolhub_login_1=a", "toolhub_login_1=b"], &[("1", "a"), ("1", "b")]);
        check(&["toolhub_logins=a", "x", "my_toolhub_login_1=b"], &[]);
        check(&[], &[]);
    }

    /// With `no-referrer` browsers send `Origin: null` with the form, which is refused.
    #[test]
    fn pages_let_the_browser_name_their_origin() {
        let page = render(LoginPage { status: 200, html: String::new(), cookie: None });
        assert_eq!(page.headers()[header::REFERRER_POLICY], "same-origin");
    }
}
