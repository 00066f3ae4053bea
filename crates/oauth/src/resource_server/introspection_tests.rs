//! Opaque tokens and tokens of issuers with introspection: what is sent, what is accepted, and how long answers are kept.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio_util::task::TaskTracker;
use toolhub_core::Secret;

use super::settings::{IntrospectionClient, ResourceServer, TrustedIssuer};
use super::test_issuer::{AUDIENCE, Fixture, HUB, TestIssuer};
use super::test_keys::merge;
use super::token_error::TokenErrorKind;
use super::verifier::{INTROSPECTION_LIFETIME, REFUSAL_LIFETIME, TokenVerifier};

const OPAQUE: &str = "opaque-token_1~+/==";

/// Lets the issuer call the token active, with the claims of a valid token and changes.
fn activate(fixture: &Fixture, token: &str, changes: &Value) {
    let answer = merge(&fixture.claims(&json!({"active": true, "token_type": "Bearer"})), changes);
    fixture.issuer.state().tokens.insert(token.to_owned(), answer);
}

fn requests(fixture: &Fixture) -> usize {
    fixture.issuer.state().introspections.len()
}

#[tokio::test]
async fn sends_token_with_basic_authentication_to_the_endpoint() {
    let fixture = Fixture::with_introspection();
    activate(&fixture, OPAQUE, &json!({"username": "ann", "iss": null}));
    let verified = fixture.verify(OPAQUE).await.unwrap();
    assert_eq!(verified.principal.id().to_string(), format!("oidc:{}#ann", fixture.issuer.url));
    assert_eq!(verified.principal.scopes, ["tools"]);
    let state = fixture.issuer.state();
    let [(authorization, form)] = &state.introspections[..] else { panic!("one request") };
    // `hub:1` and `se cret%`, form-encoded and joined.
    assert_eq!(authorization, "Basic aHViJTNBMTpzZStjcmV0JTI1");
    let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(form, &[field("token", OPAQUE), field("token_type_hint", "access_token")]);
    assert!(state.unexpected.is_empty() && state.key_requests == 0);
}

#[tokio::test]
async fn answer_is_kept_for_a_minute_at_most_and_never_past_expiry() {
    let fixture = Fixture::with_introspection();
    activate(&fixture, OPAQUE, &json!({}));
    let verified = fixture.verify(OPAQUE).await.unwrap();
    assert_eq!(
        verified.recheck.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs(),
        fixture.clock.now() + 60
    );
    assert!(verified.recheck < verified.expires);
    fixture.clock.advance(INTROSPECTION_LIFETIME.as_secs() - 1);
    fixture.assert_accepted(OPAQUE).await;
    assert_eq!(requests(&fixture), 1);
    assert!(fixture.verifier.is_current(&verified));
    // Revoked: noticed when the minute is over.
    fixture.issuer.state().tokens.clear();
    fixture.clock.advance(1);
    assert!(!fixture.verifier.is_current(&verified));
    fixture.assert_refused(OPAQUE, TokenErrorKind::Inactive).await;
    assert_eq!(requests(&fixture), 2);

    let now = fixture.clock.now();
    activate(&fixture, "short", &json!({"exp": now + 10}));
    fixture.assert_accepted("short").await;
    fixture.clock.advance(9);
    fixture.assert_accepted("short").await;
    assert_eq!(requests(&fixture), 3);
    fixture.clock.advance(1);
    fixture.assert_accepted("short").await;
    assert_eq!(requests(&fixture), 4, "an answer was kept past `exp`");
    // Within the clock skew each use is introspected; after it the token is refused, whatever the issuer states.
    fixture.clock.advance(59);
    fixture.assert_accepted("short").await;
    fixture.clock.advance(1);
    fixture.assert_refused("short", TokenErrorKind::Expired).await;

    activate(&fixture, "endless", &json!({"exp": null}));
    let endless = fixture.verify("endless").await.unwrap();
    assert_eq!(endless.expires, endless.recheck);
}

#[tokio::test]
async fn inactive_answer_is_kept_briefly() {
    let fixture = Fixture::with_introspection();
    for _ in 0..10 {
        fixture.assert_refused(OPAQUE, TokenErrorKind::Inactive).await;
    }
    assert_eq!(requests(&fixture), 1);
    activate(&fixture, OPAQUE, &json!({}));
    fixture.clock.advance(REFUSAL_LIFETIME.as_secs());
    fixture.assert_accepted(OPAQUE).await;
}

#[tokio::test]
async fn concurrent_uses_of_one_token_cause_one_request() {
    let fixture = Fixture::with_introspection();
    fixture.issuer.state().delay = Duration::from_millis(20);
    activate(&fixture, OPAQUE, &json!({}));
    let results = join_all((0..50).map(|_| fixture.verify(OPAQUE))).await;
    assert!(results.iter().all(Result::is_ok));
    let results = join_all((0..50).map(|_| fixture.verify("unknown"))).await;
    assert!(results.iter().all(Result::is_err));
    assert_eq!(requests(&fixture), 2);
}

#[tokio::test]
async fn rejects_active_token_for_another_audience_issuer_or_purpose() {
    let fixture = Fixture::with_introspection();
    for (number, (changes, kind)) in [
        (json!({"aud": null}), TokenErrorKind::Audience),
        (json!({"aud": "https://hub.example/mcp/finance"}), TokenErrorKind::Audience),
        (json!({"iss": "https://idp.example"}), TokenErrorKind::UnknownIssuer),
        (json!({"iss": 1}), TokenErrorKind::UnknownIssuer),
        (json!({"sub": null, "client_id": null}), TokenErrorKind::Subject),
        (json!({"exp": 1}), TokenErrorKind::Expired),
        (json!({"nbf": fixture.clock.now() + 100}), TokenErrorKind::NotYetValid),
        (json!({"token_type": "refresh_token"}), TokenErrorKind::NotAccessToken),
        (json!({"nonce": "n"}), TokenErrorKind::NotAccessToken),
        (json!({"token_type": "DPoP"}), TokenErrorKind::SenderConstrained),
        (json!({"cnf": {"x5t#S256": "x"}}), TokenErrorKind::SenderConstrained),
        (json!({"active": false}), TokenErrorKind::Inactive),
    ]
    .into_iter()
    .enumerate()
    {
        let token = format!("token-{number}");
        activate(&fixture, &token, &changes);
        fixture.assert_refused(&token, kind.clone()).await;
        fixture.assert_refused(&token, kind).await;
        assert_eq!(requests(&fixture), number + 1, "{changes}");
    }
    for (number, active) in [json!("true"), json!(1), json!(null), json!({})].into_iter().enumerate() {
        let token = format!("active-{number}");
        activate(&fixture, &token, &json!({"active": active}));
        assert!(matches!(fixture.verify(&token).await, Err(TokenErrorKind::Unavailable { .. })), "{active}");
    }
}

#[tokio::test]
async fn cached_opaque_token_is_refused_at_another_profile() {
    let fixture = Fixture::with_introspection();
    activate(&fixture, OPAQUE, &json!({}));
    fixture.assert_accepted(OPAQUE).await;
    let other = fixture.verifier.verify(OPAQUE, "https://hub.example/mcp").await;
    assert_eq!(other.map(drop).map_err(|error| error.kind), Err(TokenErrorKind::Audience));
    assert_eq!(requests(&fixture), 1);
}

/// A JWT of an issuer with introspection is introspected, and one that is wrong in itself is not even sent.
#[tokio::test]
async fn jwt_is_verified_by_its_signature_beside_introspection() {
    let fixture = Fixture::with_introspection();
    let token = fixture.token();
    fixture.assert_accepted(&token).await;
    // An issuer that calls a wrong JWT active is not asked.
    for (header, claims, kind) in [
        (json!({"typ": "JWT"}), json!({}), TokenErrorKind::Type),
        (json!({"alg": "HS256"}), json!({}), TokenErrorKind::Algorithm),
        (json!({"alg": "none"}), json!({}), TokenErrorKind::Algorithm),
        (json!({}), json!({"nonce": "n"}), TokenErrorKind::NotAccessToken),
        (json!({}), json!({"aud": "editor"}), TokenErrorKind::Audience),
    ] {
        let token = fixture.key.sign_with(&header, &fixture.claims(&claims));
        activate(&fixture, &token, &json!({}));
        fixture.assert_refused(&token, kind).await;
    }
    assert_eq!((requests(&fixture), fixture.issuer.state().key_requests), (0, 1));
}

#[tokio::test]
async fn failed_introspection_is_no_refusal_and_is_not_kept() {
    let fixture = Fixture::with_introspection();
    activate(&fixture, OPAQUE, &json!({}));
    for status in [500, 503, 401, 400] {
        fixture.issuer.state().introspection_status = Some(status);
        assert!(matches!(fixture.verify(OPAQUE).await, Err(TokenErrorKind::Unavailable { .. })), "{status}");
    }
    fixture.issuer.state().is_away = true;
    assert!(matches!(fixture.verify(OPAQUE).await, Err(TokenErrorKind::Unavailable { .. })));
    fixture.issuer.state().is_away = false;
    fixture.issuer.state().introspection_status = None;
    fixture.assert_accepted(OPAQUE).await;
}

#[tokio::test]
async fn issuer_without_metadata_is_looked_up_at_a_bounded_rate() {
    let fixture = Fixture::with_introspection();
    fixture.issuer.state().is_away = true;
    for number in 0..50 {
        let result = fixture.verify(&format!("token-{number}")).await;
        assert!(matches!(result, Err(TokenErrorKind::Unavailable { .. })));
    }
    assert_eq!(fixture.issuer.state().connections, 1);
    fixture.issuer.state().is_away = false;
    fixture.clock.advance(5);
    activate(&fixture, OPAQUE, &json!({}));
    fixture.assert_accepted(OPAQUE).await;
}

#[tokio::test]
async fn token_is_sent_only_to_the_configured_endpoint() {
    let other = TestIssuer::start();
    let client = IntrospectionClient {
        client_id: "hub".to_owned(),
        client_secret: Secret::new("secret"),
        endpoint: Some(format!("{}/introspect", other.url)),
    };
    let fixture = Fixture::with_settings(|issuer| issuer.introspection = Some(client.clone()));
    let answer = fixture.claims(&json!({"active": true}));
    other.state().tokens.insert(OPAQUE.to_owned(), answer);
    fixture.assert_accepted(OPAQUE).await;
    assert_eq!(other.state().introspections.len(), 1);
    assert_eq!(fixture.issuer.state().connections, 0);
    // With a second issuer that has none, opaque tokens go to this one alone; with two they would be ambiguous.
    let verifier = |issuers: Vec<TrustedIssuer>| {
        TokenVerifier::new(&ResourceServer { resource: HUB.to_owned(), issuers }, &TaskTracker::new())
    };
    let introspected =
        |url: &str| TrustedIssuer { introspection: Some(client.clone()), ..TrustedIssuer::new(url) };
    assert!(verifier(vec![introspected(&other.url), TrustedIssuer::new("https://b.example")]).is_ok());
    assert!(verifier(vec![introspected(&other.url), introspected(&fixture.issuer.url)]).is_err());
    assert!(
        verifier(vec![TrustedIssuer::new("https://b.example"), TrustedIssuer::new("https://b.example")])
            .is_err()
    );
}

#[tokio::test]
async fn opaque_token_is_refused_without_introspection() {
    let fixture = Fixture::new();
    for token in [OPAQUE, "a", "a.b", "a.b.c.d", "a.b.c.d.e"] {
        fixture.assert_refused(token, TokenErrorKind::Opaque).await;
    }
    for token in ["", "=", "a b", "a\r\nb", "a,b", "ä", "a=b", "\"a\""] {
        fixture.assert_refused(token, TokenErrorKind::Malformed).await;
    }
    assert_eq!(fixture.issuer.state().connections, 0);
    assert!(fixture.verifier.verify_cached(OPAQUE, AUDIENCE).is_none());
}

#[tokio::test]
async fn token_is_not_sent_to_the_target_of_a_redirect() {
    let (fixture, other) = (Fixture::with_introspection(), TestIssuer::start());
    other.state().tokens.insert(OPAQUE.to_owned(), fixture.claims(&json!({"active": true})));
    let own = format!("{}/elsewhere", fixture.issuer.url);
    for target in [format!("{}/introspect", other.url), own] {
        for status in [301, 302, 303, 307, 308] {
            fixture.issuer.state().redirects.insert("/realm/introspect", (status, target.clone()));
            let result = fixture.verify(OPAQUE).await;
            assert!(matches!(result, Err(TokenErrorKind::Unavailable { .. })), "{status} {target}");
        }
    }
    assert_eq!(other.state().connections, 0);
}
