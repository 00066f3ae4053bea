//! The login of people at an identity provider. The secrets of a login that has begun are in a private cookie of the browser, so
//! that nothing is stored for browsers that never come back.

use axum::body::Body;
use http::request::Parts;
use http::{Response, StatusCode};
use toolhub::{BegunLogin, LoginResponse, Person};
use toolhub_core::audit::{AuditAction, AuditEvent, LoginEvent};
use toolhub_core::{Localize as _, Secret};
use url::form_urlencoded;

use crate::browser::{self, CookieKind, Cookies, Preferences, PrivateCookies};
use crate::pages::issuer_id;
use crate::request::QueryParameters;
use crate::{CONSOLE_PATH, Console, pages};

/// The path below the console to which identity providers lead back.
const CALLBACK: &str = "callback";

/// The content of the cookie: which provider, the secrets, and the page that was requested.
struct LoginCookie {
    issuer: String,
    begun: BegunLogin,
    next: String,
}

impl LoginCookie {
    fn text(&self) -> Secret {
        let BegunLogin { state, nonce, verifier } = &self.begun;
        let next: String = form_urlencoded::byte_serialize(self.next.as_bytes()).collect();
        let parts = [&issuer_id(&self.issuer), state.expose(), nonce.expose(), verifier.expose(), &next];
        Secret::new(parts.join("."))
    }

    /// Reads the cookie. The provider must be one of `issuers`.
    fn parse(text: &str, issuers: &[String]) -> Option<Self> {
        let mut parts = text.splitn(5, '.');
        let mut part = || parts.next().filter(|part| !part.is_empty());
        let id = part()?;
        let mut secret = || part().map(Secret::new);
        let begun = BegunLogin { state: secret()?, nonce: secret()?, verifier: secret()? };
        let next = parts.next().map(|next| QueryParameters::parse(Some(&format!("next={next}"))))?;
        let next = next.get("next").filter(|next| browser::is_relative(next)).unwrap_or_default().to_owned();
        let issuer = issuers.iter().find(|issuer| issuer_id(issuer) == id)?;
        Some(Self { issuer: issuer.clone(), begun, next })
    }
}

impl Console {
    /// The address to which identity providers lead back.
    fn callback_address(&self) -> String {
        let resource = self.gateways.access().public_url().unwrap_or_default();
        format!("{}{CONSOLE_PATH}/{CALLBACK}", resource.trim_end_matches('/'))
    }

    /// Leads a browser to the login page of an identity provider.
    pub(crate) async fn begin_login(
        &self,
        parts: &Parts,
        query: &QueryParameters,
        preferences: Preferences,
    ) -> Response<Body> {
        let access = self.gateways.access();
        let issuers = access.login_issuers();
        let wanted = query.get("issuer");
        let issuer = issuers.iter().find(|issuer| wanted.is_none_or(|id| issuer_id(issuer) == id));
        let Some(issuer) = issuer.filter(|_| self.accepts_sessions(&parts.headers)) else {
            return pages::login("", preferences, &issuers);
        };
        match access.begin_login(issuer, &self.callback_address()).await {
            Some(Ok((begun, address))) => {
                let next = query.get("next").filter(|next| browser::is_relative(next)).unwrap_or_default();
                let cookie = LoginCookie { issuer: issuer.clone(), begun, next: next.to_owned() };
                let mut response = browser::redirect(address.as_str());
                let cookies = PrivateCookies { request: &parts.headers, is_https: self.is_https() };
                cookies.set(response.headers_mut(), CookieKind::Login, &cookie.text());
                response
            }
            Some(Err(error)) => pages::failed_login(preferences, &error.localize(preferences.lang)),
            None => pages::login("", preferences, &issuers),
        }
    }

    /// Opens a session for a person who comes back from an identity provider.
    pub(crate) async fn finish_login(
        &self,
        parts: &Parts,
        query: &QueryParameters,
        preferences: Preferences,
    ) -> Response<Body> {
        let access = self.gateways.access();
        let cookie = Cookies::of(&parts.headers).private(CookieKind::Login, self.is_https());
        let cookie = cookie.and_then(|text| LoginCookie::parse(text, &access.login_issuers()));
        let Some(cookie) = cookie.filter(|_| self.accepts_sessions(&parts.headers)) else {
            let text = preferences.lang.choose(
                "This browser has not begun a login, or it took too long: log in again.",
                "此浏览器没有发起登录，或登录耗时过长：请重新登录。",
            );
            return pages::failed_login(preferences, text);
        };
        let redirect = self.callback_address();
        let login = LoginResponse {
            code: query.get("code"),
            state: query.get("state"),
            issuer: query.get("iss"),
            error: query.get("error"),
            redirect: &redirect,
        };
        let finished = access.finish_login(&cookie.issuer, &cookie.begun, login).await;
        let mut response = match finished {
            Some(Ok(person)) => self.open_session(person, parts, &cookie.next, preferences).await,
            Some(Err(error)) => pages::failed_login(preferences, &error.localize(preferences.lang)),
            None => pages::login("", preferences, &access.login_issuers()),
        };
        let cookies = PrivateCookies { request: &parts.headers, is_https: self.is_https() };
        cookies.remove(response.headers_mut(), CookieKind::Login);
        response
    }

    async fn open_session(
        &self,
        person: Person,
        parts: &Parts,
        next: &str,
        preferences: Preferences,
    ) -> Response<Body> {
        let Some(principal) = self.gateways.access().person_principal(&person) else {
            return pages::login("", preferences, &[]);
        };
        let mut login = LoginEvent { method: "oidc".to_owned(), accepted: true, reason: None, address: None };
        if principal.roles.is_empty() {
            login.accepted = false;
            login.reason = Some("no role".to_owned());
        }
        let is_accepted = login.accepted;
        let event = AuditEvent::now(principal.id(), AuditAction::Login(login));
        if let Err(error) = self.gateways.hub().record_audit(event).await {
            return browser::plain(StatusCode::SERVICE_UNAVAILABLE, &error.to_string());
        }
        if !is_accepted {
            let text = preferences.lang.choose(
                "You are known, but have no role at this hub. Its owner can give you one with `roles` in `[[auth.issuers]]`.",
                "已识别你的身份，但你在此 hub 中没有角色。hub 的所有者可以在 `[[auth.issuers]]` 的 `roles` 中授予。",
            );
            return pages::failed_login(preferences, text);
        }
        // Another session of this browser ends: the token is a new one with each login.
        if let Some(token) = Cookies::of(&parts.headers).session(self.is_https()) {
            let _ = self.sessions.end(token).await;
        }
        match self.sessions.create(Some(person)).await {
            Ok(token) => {
                let mut response = browser::redirect(&format!("./{next}"));
                let cookies = PrivateCookies { request: &parts.headers, is_https: self.is_https() };
                cookies.set(response.headers_mut(), CookieKind::Session, &token);
                response
            }
            Err(error) => {
                let text = format!("the session cannot be stored: {error}");
                browser::plain(StatusCode::INTERNAL_SERVER_ERROR, &text)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_round_trip_and_lead_to_known_providers_only() {
        let issuers = ["https://a.example".to_owned(), "https://b.example".to_owned()];
        let begun =
            BegunLogin { state: Secret::new("s"), nonce: Secret::new("n"), verifier: Secret::new("v") };
        let cookie = LoginCookie { issuer: issuers[1].clone(), begun, next: "tools?q=a.b%20c".to_owned() };
        let text = cookie.text();
        let parsed = LoginCookie::parse(text.expose(), &issuers).unwrap();
        assert_eq!((parsed.issuer.as_str(), parsed.next.as_str()), ("https://b.example", "tools?q=a.b%20c"));
        assert_eq!(parsed.begun.verifier.expose(), "v");
        assert!(LoginCookie::parse(text.expose(), &issuers[..1]).is_none());
        for wrong in ["", "....", "a.b.c.d.e", &text.expose().replacen(".s.", "..", 1)] {
            assert!(LoginCookie::parse(wrong, &issuers).is_none(), "{wrong}");
        }
        let elsewhere = text.expose().replace("tools", "%2F%2Fevil.example");
        assert_eq!(LoginCookie::parse(&elsewhere, &issuers).unwrap().next, "");
    }
}
