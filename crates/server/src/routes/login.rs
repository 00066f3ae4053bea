//! `/login`: the pages through which a caller of the gateway logs in to a server of the hub in a browser.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use toolhub_core::Secret;
use url::form_urlencoded;

use super::exchange::Exchange;
use crate::responses::{access_denied, empty, shutting_down, text, typed};
use crate::service::{LoginPage, LoginPageRequest, LoginStep};

/// The name of the cookie that binds a login to the browser that began it.
const COOKIE: &str = "toolhub_login";
const MAX_FORM_BYTES: usize = 32 << 10;
const FORM_TIMEOUT: Duration = Duration::from_secs(10);
/// No scripts, no frames, nothing from elsewhere.
const CONTENT_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Shows a link (GET), or begins its login with the credential of the caller (POST).
pub(super) async fn link(mut exchange: Exchange<'_>) -> Response<Body> {
    let Some(link) = exchange.profile.map(str::to_owned) else {
        return text(StatusCode::NOT_FOUND, "there is nothing here: a link to log in has an id");
    };
    let step = if exchange.parts.method == Method::POST {
        let Some(credential) = read_credential(&mut exchange).await else {
            return text(StatusCode::BAD_REQUEST, "this form has one field, `credential`");
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
pub(super) async fn callback(exchange: Exchange<'_>) -> Response<Body> {
    let query = exchange.parts.uri.query().unwrap_or_default().to_owned();
    respond(exchange, LoginStep::Finish { query }).await
}

async fn respond(exchange: Exchange<'_>, step: LoginStep) -> Response<Body> {
    let (shared, headers) = (exchange.shared, &exchange.parts.headers);
    if shared.draining.load(Ordering::Acquire) {
        return shutting_down();
    }
    let target = exchange.parts.uri.authority().map(Authority::as_str);
    if let Err(refusal) = shared.access.check_host(headers, target) {
        return access_denied(refusal, None);
    }
    let request = LoginPageRequest { step, cookie: cookie(headers) };
    match shared.service.login_page(request).await {
        Some(page) => render(page),
        None => empty(StatusCode::NOT_FOUND),
    }
}

fn render(page: LoginPage) -> Response<Body> {
    let status = StatusCode::from_u16(page.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = typed(status, "text/html; charset=utf-8", page.html);
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_POLICY));
    if let Some(cookie) = page.cookie {
        let secure = if cookie.secure { "; Secure" } else { "" };
        let text = format!(
            "{COOKIE}={}; Path={}; Max-Age={}; HttpOnly; SameSite=Lax{secure}",
            cookie.value.expose(),
            cookie.path,
            cookie.max_age.as_secs()
        );
        if let Ok(value) = HeaderValue::from_str(&text) {
            headers.insert(header::SET_COOKIE, value);
        }
    }
    response
}

/// The value of the login cookie.
fn cookie(headers: &HeaderMap) -> Option<Secret> {
    let mut pairs = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    pairs.find_map(|(name, value)| (name == COOKIE).then(|| Secret::new(value)))
}

/// The credential in the form: a key, or an access token.
async fn read_credential(exchange: &mut Exchange<'_>) -> Option<Secret> {
    let body = exchange.body.take()?;
    let bytes = tokio::time::timeout(FORM_TIMEOUT, to_bytes(body, MAX_FORM_BYTES)).await.ok()?.ok()?;
    let mut fields = form_urlencoded::parse(&bytes);
    fields.find_map(|(name, value)| (name == "credential").then(|| Secret::new(value.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_its_cookie_among_others() {
        let check = |values: &[&'static str], expected: Option<&str>| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::COOKIE, HeaderValue::from_static(value));
            }
            assert_eq!(cookie(&headers).as_ref().map(Secret::expose), expected, "{values:?}");
        };
        check(&["toolhub_login=a"], Some("a"));
        check(&["x=1; toolhub_login=a; y=2"], Some("a"));
        check(&["x=1", "toolhub_login=a"], Some("a"));
        check(&["toolhub_login2=a", "x"], None);
        check(&[], None);
    }
}
