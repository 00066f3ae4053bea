//! Logins of people against a small issuer: what is sent, and which ID tokens are refused.

use serde_json::{Value, json};
use toolhub_core::{Role, Secret};

use super::identity::Person;
use super::person_login::{BegunLogin, LoginResponse};
use super::settings::{LoginClient, ResourceServer, TrustedIssuer};
use super::test_issuer::{Fixture, HUB};
use super::test_keys::TestKey;
use super::token_error::TokenErrorKind;
use super::verifier::TokenVerifier;

const REDIRECT: &str = "https://hub.example/console/callback";

fn fixture(secret: Option<&str>) -> Fixture {
    Fixture::with_settings(|issuer| {
        issuer.login =
            Some(LoginClient { client_id: "console".to_owned(), client_secret: secret.map(Secret::new) });
        issuer.roles.insert(Role::Owner, vec!["groups:admins".parse().unwrap()]);
    })
}

/// The claims of a valid ID token, with changes.
fn claims(fixture: &Fixture, begun: &BegunLogin, changes: &Value) -> Value {
    let id_token = json!({"aud": "console", "nonce": begun.nonce.expose(), "client_id": null, "scope": null, "name": "Ann"});
    let mut claims = fixture.claims(&id_token);
    claims.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    claims
}

async fn begin(fixture: &Fixture) -> BegunLogin {
    fixture.verifier.begin_login(&fixture.issuer.url, REDIRECT).await.unwrap().unwrap().0
}

fn response(begun: &BegunLogin) -> LoginResponse<'_> {
    let (code, state) = (Some("code"), Some(begun.state.expose()));
    LoginResponse { code, state, redirect: REDIRECT, ..LoginResponse::default() }
}

async fn finish(
    fixture: &Fixture,
    begun: &BegunLogin,
    response: LoginResponse<'_>,
) -> Result<Person, TokenErrorKind> {
    let finished = fixture.verifier.finish_login(&fixture.issuer.url, begun, response).await;
    finished.unwrap().map_err(|error| error.kind)
}

#[tokio::test]
async fn person_logs_in_with_pkce_state_and_nonce() {
    for secret in [None, Some("s:%")] {
        let fixture = fixture(secret);
        let begun = fixture.verifier.begin_login(&fixture.issuer.url, REDIRECT).await;
        let (begun, address) = begun.unwrap().unwrap();
        let parameter = |name: &str| {
            let found = address.query_pairs().find(|(own, _)| own == name);
            found.map(|(_, value)| value.into_owned()).unwrap_or_default()
        };
        assert_eq!(parameter("tenant"), "1", "the query of the endpoint stays");
        assert_eq!((parameter("response_type"), parameter("client_id")), ("code".into(), "console".into()));
        assert_eq!(parameter("redirect_uri"), REDIRECT);
        assert_eq!(
            (parameter("state"), parameter("nonce")),
            (begun.state.expose().to_owned(), begun.nonce.expose().to_owned())
        );
        assert_eq!(parameter("code_challenge"), crate::pkce::challenge_of(&begun.verifier));
        assert!(!address.as_str().contains(begun.verifier.expose()));
        fixture.issuer.state().id_token = fixture
            .key
            .sign_with(&json!({"typ": "JWT"}), &claims(&fixture, &begun, &json!({"groups": ["admins"]})));
        let ann = finish(&fixture, &begun, response(&begun)).await.unwrap();
        assert_eq!((ann.subject.as_str(), ann.display.as_str()), ("ann", "Ann"));
        let principal = fixture.verifier.person_principal(&ann).unwrap();
        assert_eq!(principal.roles.to_string(), "owner");
        let requests = fixture.issuer.state().token_requests.clone();
        let [(authorization, form)] = requests.as_slice() else { panic!("{requests:?}") };
        let sent = |name: &str| form.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
        assert_eq!(sent("code_verifier"), Some(begun.verifier.expose()));
        assert_eq!((sent("code"), sent("redirect_uri")), (Some("code"), Some(REDIRECT)));
        // A public client names itself; a confidential one proves itself.
        assert_eq!(sent("client_id").is_some(), secret.is_none());
        assert_eq!(authorization.starts_with("Basic "), secret.is_some());
        let elsewhere = Person { issuer: "https://other.example".to_owned(), ..ann };
        assert!(fixture.verifier.person_principal(&elsewhere).is_none());
    }
}

#[tokio::test]
async fn foreign_and_changed_id_tokens_are_refused() {
    let fixture = fixture(None);
    let begun = begin(&fixture).await;
    let now = fixture.clock.now();
    let cases = [
        (json!({"aud": "other"}), TokenErrorKind::Audience),
        (json!({"aud": []}), TokenErrorKind::Audience),
        (json!({"aud": null}), TokenErrorKind::Audience),
        (json!({"aud": ["console", "other"]}), TokenErrorKind::Audience),
        (json!({"aud": ["console", "other"], "azp": "other"}), TokenErrorKind::Audience),
        (json!({"azp": "other"}), TokenErrorKind::Audience),
        (json!({"azp": 1}), TokenErrorKind::Audience),
        (json!({"nonce": "other"}), TokenErrorKind::LoginState),
        (json!({"nonce": null}), TokenErrorKind::LoginState),
        (json!({"iss": "https://other.example"}), TokenErrorKind::UnknownIssuer),
        (json!({"exp": now - 61}), TokenErrorKind::Expired),
        (json!({"exp": null}), TokenErrorKind::Expired),
        (json!({"iat": now + 61}), TokenErrorKind::NotYetValid),
        (json!({"sub": null}), TokenErrorKind::Subject),
        (json!({"sub": "a\u{202e}"}), TokenErrorKind::Subject),
    ];
    for (changes, expected) in cases {
        let token = fixture.key.sign_with(&json!({"typ": "JWT"}), &claims(&fixture, &begun, &changes));
        fixture.issuer.state().id_token = token;
        assert_eq!(finish(&fixture, &begun, response(&begun)).await, Err(expected), "{changes}");
    }
    let valid = claims(&fixture, &begun, &json!({}));
    // An access token is not an ID token.
    fixture.issuer.state().id_token = fixture.key.sign_with(&json!({"typ": "at+jwt"}), &valid);
    assert_eq!(finish(&fixture, &begun, response(&begun)).await, Err(TokenErrorKind::Type));
    // Signed by another key with the same id.
    fixture.issuer.state().id_token = TestKey::ed25519("one").sign_with(&json!({"typ": "JWT"}), &valid);
    assert_eq!(finish(&fixture, &begun, response(&begun)).await, Err(TokenErrorKind::Signature));
    let token = fixture.key.sign_with(&json!({"typ": "JWT"}), &valid);
    let (_, rest) = token.split_once('.').unwrap();
    let unsigned = format!("eyJhbGciOiJub25lIn0.{}.", rest.split_once('.').unwrap().0);
    fixture.issuer.state().id_token = unsigned;
    assert_eq!(finish(&fixture, &begun, response(&begun)).await, Err(TokenErrorKind::Algorithm));
    fixture.issuer.state().id_token = token;
    assert!(finish(&fixture, &begun, response(&begun)).await.is_ok());
}

/// Nothing is sent to the issuer unless the response belongs to the login.
#[tokio::test]
async fn responses_of_other_logins_are_refused() {
    let fixture = fixture(None);
    fixture.issuer.state().metadata = json!({"authorization_response_iss_parameter_supported": true});
    let (begun, other) = (begin(&fixture).await, begin(&fixture).await);
    let url = fixture.issuer.url.clone();
    let named = LoginResponse { issuer: Some(&url), ..response(&begun) };
    let refused = TokenErrorKind::LoginRefused { code: "access_denied x".to_owned() };
    let cases = [
        (LoginResponse { state: Some(other.state.expose()), ..named }, TokenErrorKind::LoginState),
        (LoginResponse { state: None, ..named }, TokenErrorKind::LoginState),
        (LoginResponse { code: None, ..named }, TokenErrorKind::LoginState),
        (LoginResponse { issuer: Some("https://other.example"), ..named }, TokenErrorKind::UnknownIssuer),
        (LoginResponse { issuer: None, ..named }, TokenErrorKind::UnknownIssuer),
        (LoginResponse { error: Some("access_denied\nx"), ..named }, refused),
    ];
    for (response, expected) in cases {
        assert_eq!(finish(&fixture, &begun, response).await, Err(expected), "{response:?}");
    }
    assert!(fixture.issuer.state().token_requests.is_empty());
    // An issuer that never names itself cannot be told apart from others.
    fixture.issuer.state().metadata = json!({});
    let client = LoginClient { client_id: "console".to_owned(), client_secret: None };
    let trusted = |url: &str| TrustedIssuer { login: Some(client.clone()), ..TrustedIssuer::new(url) };
    let issuers = vec![trusted(&url), trusted("https://other.example")];
    let settings = ResourceServer { resource: HUB.to_owned(), issuers };
    let verifier = TokenVerifier::new(&settings, &fixture.tasks).unwrap();
    let (begun, _) = verifier.begin_login(&url, REDIRECT).await.unwrap().unwrap();
    let unnamed = verifier.finish_login(&url, &begun, response(&begun)).await.unwrap();
    assert_eq!(unnamed.map_err(|error| error.kind), Err(TokenErrorKind::UnknownIssuer));
    assert!(fixture.issuer.state().token_requests.is_empty());
    assert!(fixture.verifier.begin_login("https://other.example", REDIRECT).await.is_none());
}
