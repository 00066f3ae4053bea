//! The token endpoint: codes with PKCE, refresh tokens for single use, and client credentials.

use axum::http::{HeaderMap, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::json;
use sha2::{Digest, Sha256};
use url::form_urlencoded::parse;

use super::OAuthState;
use super::authorization::{Access, AuthorizationState, Grant};
use super::endpoints::{json_with, status};

/// A URL-encoded form.
struct Form(Vec<(String, String)>);

impl Form {
    fn read(body: &[u8]) -> Self {
        Self(parse(body).into_owned().collect())
    }

    fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }
}

fn refuse(code: u16, error: &str, form: &Form) -> Response {
    // Some servers echo the parameters of a request; they must not appear in output even then.
    let description =
        format!("was given {} {} {}", form.get("refresh_token"), form.get("code"), form.get("code_verifier"));
    json_with(code, &json!({"error": error, "error_description": description}))
}

pub(super) async fn answer(oauth_state: &OAuthState, headers: &HeaderMap, body: &[u8]) -> Response {
    tokio::time::sleep(oauth_state.plan.token_delay).await;
    let form = Form::read(body);
    let mut authorization = oauth_state.authorization();
    let Some(client) = client_of(&authorization, headers, &form, oauth_state.plan.client_documents) else {
        return refuse(401, "invalid_client", &form);
    };
    if form.get("resource") != oauth_state.resource() {
        authorization
            .record_violation(format!("`resource` is `{}` at the token endpoint", form.get("resource")));
    }
    let grant = match form.get("grant_type") {
        "authorization_code" => redeem(&mut authorization, &form),
        "refresh_token" => refresh(&mut authorization, &form),
        "client_credentials" => {
            authorization.counts.by_client += 1;
            let scopes = form.get("scope").to_owned();
            authorization.last_scopes.clone_from(&scopes);
            Some(Grant {
                client: client.clone(),
                scopes,
                challenge: String::new(),
                redirect: String::new(),
                user: String::new(),
            })
        }
        _ => None,
    };
    match grant {
        Some(grant) if grant.client == client => {
            issue_tokens(oauth_state, &mut authorization, grant, form.get("grant_type"))
        }
        _ => refuse(400, "invalid_grant", &form),
    }
}

/// The authenticated client of a request.
fn client_of(
    authorization: &AuthorizationState,
    headers: &HeaderMap,
    form: &Form,
    by_document: bool,
) -> Option<String> {
    let basic =
        headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Basic "));
    let (id, secret) = match basic {
        Some(basic) => {
            let text = String::from_utf8(STANDARD.decode(basic).ok()?).ok()?;
            let (id, secret) = text.split_once(':')?;
            // Both are URL-encoded before they are joined (RFC 6749 §2.3.1).
            let plain = |text: &str| parse(text.as_bytes()).next().map(|(key, _)| key.into_owned());
            (plain(id)?, plain(secret))
        }
        None => (form.get("client_id").to_owned(), None),
    };
    match authorization.clients.get(&id) {
        Some(client) => (client.secret == secret).then_some(id),
        None => (by_document && id.starts_with("https://")).then_some(id),
    }
}

fn redeem(authorization: &mut AuthorizationState, form: &Form) -> Option<Grant> {
    authorization.counts.codes += 1;
    let grant = authorization.codes.remove(form.get("code"))?;
    let computed = URL_SAFE_NO_PAD.encode(Sha256::digest(form.get("code_verifier").as_bytes()));
    authorization.secrets.push(form.get("code_verifier").to_owned());
    if computed != grant.challenge || form.get("redirect_uri") != grant.redirect {
        authorization.record_violation("a code came back with another verifier or redirect");
        return None;
    }
    Some(grant)
}

fn refresh(authorization: &mut AuthorizationState, form: &Form) -> Option<Grant> {
    authorization.counts.refreshed += 1;
    let token = form.get("refresh_token").to_owned();
    if authorization.used_tokens.contains(&token) {
        // A reused refresh token may be stolen, so all tokens are revoked (OAuth 2.1 §4.3.1).
        authorization.counts.reused += 1;
        authorization.refresh.clear();
        authorization.access.clear();
        return None;
    }
    let grant = authorization.refresh.remove(&token)?;
    authorization.used_tokens.push(token);
    Some(grant)
}

fn issue_tokens(
    oauth_state: &OAuthState,
    authorization: &mut AuthorizationState,
    grant: Grant,
    kind: &str,
) -> Response {
    let access = authorization.secret("access");
    let scopes = oauth_state.plan.gives.map_or_else(|| grant.scopes.clone(), str::to_owned);
    let user = grant.user.clone();
    authorization.access.insert(access.clone(), Access { scopes: scopes.clone(), user });
    let mut answer = json!({
        "access_token": access, "token_type": "Bearer", "expires_in": oauth_state.plan.lifetime.as_secs(),
        "scope": scopes,
    });
    if oauth_state.plan.refresh && kind != "client_credentials" {
        let refresh = authorization.secret("refresh");
        authorization.refresh.insert(refresh.clone(), grant);
        answer["refresh_token"] = json!(refresh);
    }
    json_with(200, &answer)
}

/// Token revocation (RFC 7009).
pub(super) fn revoke(oauth_state: &OAuthState, body: &[u8]) -> Response {
    let mut authorization = oauth_state.authorization();
    if authorization.refresh.remove(Form::read(body).get("token")).is_some() {
        authorization.access.clear();
    }
    authorization.counts.revoked += 1;
    status(200)
}
