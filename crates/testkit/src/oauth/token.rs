//! The token endpoint: codes with PKCE, refresh tokens for single use, and client credentials.

use axum::http::{HeaderMap, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::json;
use sha2::{Digest, Sha256};
use url::form_urlencoded::parse;

use super::Stage;
use super::answers::{json_with, status};
use super::ledger::{Grant, Ledger};

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
    let said =
        format!("was given {} {} {}", form.get("refresh_token"), form.get("code"), form.get("code_verifier"));
    json_with(code, &json!({"error": error, "error_description": said}))
}

pub(super) async fn answer(stage: &Stage, headers: &HeaderMap, body: &[u8]) -> Response {
    tokio::time::sleep(stage.plan.token_delay).await;
    let form = Form::read(body);
    let mut ledger = stage.ledger();
    let Some(client) = client_of(&ledger, headers, &form, stage.plan.client_documents) else {
        return refuse(401, "invalid_client", &form);
    };
    if form.get("resource") != stage.resource() {
        ledger.complain(format!("`resource` is `{}` at the token endpoint", form.get("resource")));
    }
    let grant = match form.get("grant_type") {
        "authorization_code" => redeem(&mut ledger, &form),
        "refresh_token" => refresh(&mut ledger, &form),
        "client_credentials" => {
            ledger.counts.by_client += 1;
            let scopes = form.get("scope").to_owned();
            ledger.last_scopes.clone_from(&scopes);
            Some(Grant { client: client.clone(), scopes, challenge: String::new(), redirect: String::new() })
        }
        _ => None,
    };
    match grant {
        Some(grant) if grant.client == client => give(stage, &mut ledger, grant, form.get("grant_type")),
        _ => refuse(400, "invalid_grant", &form),
    }
}

/// The authenticated client of a request.
fn client_of(ledger: &Ledger, headers: &HeaderMap, form: &Form, by_document: bool) -> Option<String> {
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
    match ledger.clients.get(&id) {
        Some(client) => (client.secret == secret).then_some(id),
        None => (by_document && id.starts_with("https://")).then_some(id),
    }
}

fn redeem(ledger: &mut Ledger, form: &Form) -> Option<Grant> {
    ledger.counts.codes += 1;
    let grant = ledger.codes.remove(form.get("code"))?;
    let shown = URL_SAFE_NO_PAD.encode(Sha256::digest(form.get("code_verifier").as_bytes()));
    ledger.secrets.push(form.get("code_verifier").to_owned());
    if shown != grant.challenge || form.get("redirect_uri") != grant.redirect {
        ledger.complain("a code came back with another verifier or redirect");
        return None;
    }
    Some(grant)
}

fn refresh(ledger: &mut Ledger, form: &Form) -> Option<Grant> {
    ledger.counts.refreshed += 1;
    let token = form.get("refresh_token").to_owned();
    if ledger.spent.contains(&token) {
        // A reused refresh token may be stolen, so all tokens are revoked (OAuth 2.1 §4.3.1).
        ledger.counts.reused += 1;
        ledger.refresh.clear();
        ledger.access.clear();
        return None;
    }
    let grant = ledger.refresh.remove(&token)?;
    ledger.spent.push(token);
    Some(grant)
}

fn give(stage: &Stage, ledger: &mut Ledger, grant: Grant, kind: &str) -> Response {
    let access = ledger.secret("access");
    let scopes = stage.plan.gives.map_or_else(|| grant.scopes.clone(), str::to_owned);
    ledger.access.insert(access.clone(), scopes.clone());
    let mut answer = json!({
        "access_token": access, "token_type": "Bearer", "expires_in": stage.plan.lifetime.as_secs(),
        "scope": scopes,
    });
    if stage.plan.refresh && kind != "client_credentials" {
        let refresh = ledger.secret("refresh");
        ledger.refresh.insert(refresh.clone(), grant);
        answer["refresh_token"] = json!(refresh);
    }
    json_with(200, &answer)
}

/// Token revocation (RFC 7009).
pub(super) fn revoke(stage: &Stage, body: &[u8]) -> Response {
    let mut ledger = stage.ledger();
    if ledger.refresh.remove(Form::read(body).get("token")).is_some() {
        ledger.access.clear();
    }
    ledger.counts.revoked += 1;
    status(200)
}
