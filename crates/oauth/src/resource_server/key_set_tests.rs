//! Keys over time: rotation at the issuer, unknown key ids in great number, and an issuer that is away.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tokio_util::task::TaskTracker;

use super::key_set::{MAX_KEY_AGE, MIN_FETCH_INTERVAL, MIN_RETRY_INTERVAL, REFRESH_AGE};
use super::settings::{ResourceServer, TrustedIssuer};
use super::test_issuer::{AUDIENCE, Fixture, HUB, TestIssuer};
use super::test_keys::TestKey;
use super::token_error::TokenErrorKind;
use super::verifier::TokenVerifier;

/// A token whose `kid` is not in the key set.
fn with_unknown_key(fixture: &Fixture, number: usize) -> String {
    fixture.key.sign_with(&json!({"kid": format!("unknown-{number}")}), &fixture.claims(&json!({})))
}

#[tokio::test]
async fn concurrent_first_tokens_cause_one_fetch() {
    let fixture = Fixture::new();
    fixture.issuer.state().delay = Duration::from_millis(50);
    let tokens: Vec<String> =
        (0..50).map(|number| fixture.key.sign(&fixture.claims(&json!({"jti": number})))).collect();
    let results = join_all(tokens.iter().map(|token| fixture.verify(token))).await;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(fixture.issuer.state().key_requests, 1);
}

/// A fetch may take longer than the interval between two attempts.
#[tokio::test]
async fn second_fetch_does_not_start_during_the_first() {
    let fixture = Fixture::new();
    fixture.issuer.state().delay = Duration::from_millis(50);
    let (one, two) = (fixture.token(), fixture.key.sign(&fixture.claims(&json!({"jti": "2"}))));
    let waiting = fixture.verifier.verify(&one, AUDIENCE);
    tokio::pin!(waiting);
    assert!(futures_util::poll!(waiting.as_mut()).is_pending());
    fixture.clock.advance(MIN_RETRY_INTERVAL.as_secs());
    fixture.assert_accepted(&two).await;
    assert!(waiting.await.is_ok());
    fixture.settle().await;
    assert_eq!(fixture.issuer.state().key_requests, 1);
}

#[tokio::test]
async fn flood_of_unknown_key_ids_causes_no_flood_of_fetches() {
    let fixture = Fixture::new();
    fixture.assert_accepted(&fixture.token()).await;
    assert_eq!(fixture.issuer.state().key_requests, 1);
    for round in 0..3 {
        fixture.clock.advance(MIN_FETCH_INTERVAL.as_secs());
        let tokens: Vec<String> =
            (0..200).map(|number| with_unknown_key(&fixture, round * 1000 + number)).collect();
        let known: Vec<String> = (0..20)
            .map(|number| fixture.key.sign(&fixture.claims(&json!({"jti": round * 100 + number}))))
            .collect();
        let (results, known) = tokio::join!(
            join_all(tokens.iter().map(|token| fixture.verify(token))),
            join_all(known.iter().map(|token| fixture.verify(token))),
        );
        assert!(results.into_iter().all(|result| result.map(drop) == Err(TokenErrorKind::UnknownKey)));
        assert!(known.iter().all(Result::is_ok), "known keys are locked out");
        assert_eq!(fixture.issuer.state().key_requests, 2 + round);
        // Within the interval not even one more, and the answer comes at once.
        let old = fixture.key.sign_with(
            &json!({"kid": "removed"}),
            &fixture.claims(&json!({"iat": fixture.clock.now() - 20})),
        );
        for number in 0..100 {
            let retry_after = MIN_FETCH_INTERVAL;
            fixture
                .assert_refused(&with_unknown_key(&fixture, number), TokenErrorKind::NewKey { retry_after })
                .await;
            // Tokens that are older than the keys are refused for good, whatever others send.
            fixture.assert_refused(&old, TokenErrorKind::UnknownKey).await;
        }
        fixture.clock.advance(MIN_FETCH_INTERVAL.as_secs() - 1);
        let retry_after = Duration::from_secs(1);
        fixture
            .assert_refused(&with_unknown_key(&fixture, round), TokenErrorKind::NewKey { retry_after })
            .await;
        assert_eq!(fixture.issuer.state().key_requests, 2 + round);
    }
}

/// Tokens with a known key neither wait for a fetch nor are refused during one.
#[tokio::test]
async fn known_keys_do_not_wait_for_the_fetch_of_an_unknown_one() {
    let fixture = Fixture::new();
    fixture.assert_accepted(&fixture.token()).await;
    fixture.clock.advance(MIN_FETCH_INTERVAL.as_secs());
    fixture.issuer.state().delay = Duration::from_secs(3600);
    let unknown = with_unknown_key(&fixture, 1);
    let waiting = fixture.verifier.verify(&unknown, AUDIENCE);
    tokio::pin!(waiting);
    assert!(futures_util::poll!(waiting.as_mut()).is_pending());
    for number in 0..20 {
        let token = fixture.key.sign(&fixture.claims(&json!({"jti": number})));
        let result = fixture.verifier.verify(&token, AUDIENCE);
        tokio::pin!(result);
        assert!(futures_util::poll!(result).is_ready(), "waits for the fetch");
    }
}

#[tokio::test]
async fn cancelled_request_does_not_cancel_the_fetch() {
    let fixture = Fixture::new();
    let token = fixture.token();
    {
        let waiting = fixture.verifier.verify(&token, AUDIENCE);
        tokio::pin!(waiting);
        assert!(futures_util::poll!(waiting).is_pending());
    }
    fixture.settle().await;
    assert_eq!(fixture.issuer.state().key_requests, 1);
    fixture.issuer.state().is_away = true;
    fixture.assert_accepted(&token).await;
}

#[tokio::test]
async fn rotated_key_is_found_and_the_removed_one_refused() {
    let fixture = Fixture::new();
    let (old, next) = (fixture.token(), TestKey::p256("next"));
    let verified = fixture.verify(&old).await.unwrap();
    assert!(fixture.verifier.is_current(&verified));
    fixture.issuer.state().keys = vec![next.jwk()];
    fixture.clock.advance(MIN_FETCH_INTERVAL.as_secs());
    fixture.assert_accepted(&next.sign(&fixture.claims(&json!({})))).await;
    assert_eq!(fixture.issuer.state().key_requests, 2);
    // Also the cached token of the removed key is refused, and an open stream notices.
    assert!(!fixture.verifier.is_current(&verified));
    assert!(fixture.verifier.verify_cached(&old, AUDIENCE).is_none());
    fixture.assert_refused(&old, TokenErrorKind::UnknownKey).await;
}

/// A key that the provider added just after a fetch: its tokens are not refused as invalid, and are accepted after the next fetch.
#[tokio::test]
async fn token_of_a_new_key_is_asked_to_come_again() {
    let fixture = Fixture::new();
    fixture.assert_accepted(&fixture.token()).await;
    let next = TestKey::p256("next");
    fixture.issuer.state().keys.push(next.jwk());
    fixture.clock.advance(5);
    let token = next.sign(&fixture.claims(&json!({})));
    let refused = fixture.verifier.verify(&token, AUDIENCE).await.unwrap_err();
    assert!(refused.is_unavailable());
    assert_eq!(refused.retry_after(), Some(MIN_FETCH_INTERVAL - Duration::from_secs(5)));
    for changes in [json!({"iat": null}), json!({"iat": fixture.clock.now() + 11}), json!({"iat": "soon"})] {
        let other = next.sign(&fixture.claims(&changes));
        fixture.assert_refused(&other, TokenErrorKind::UnknownKey).await;
    }
    assert_eq!(fixture.issuer.state().key_requests, 1);
    fixture.clock.advance(MIN_FETCH_INTERVAL.as_secs() - 5);
    fixture.assert_accepted(&token).await;
    // A key that does not exist is refused as soon as the keys are newer than the token.
    let unknown = with_unknown_key(&fixture, 1);
    fixture.clock.advance(MIN_FETCH_INTERVAL.as_secs());
    fixture.assert_refused(&unknown, TokenErrorKind::UnknownKey).await;
    fixture.clock.advance(1);
    fixture.assert_refused(&unknown, TokenErrorKind::UnknownKey).await;
}

#[tokio::test]
async fn key_that_is_removed_without_a_successor_is_noticed_by_age() {
    let fixture = Fixture::new();
    let token = fixture.key.sign(&fixture.claims(&json!({"exp": fixture.clock.now() + 100_000})));
    fixture.assert_accepted(&token).await;
    fixture.issuer.state().keys.clear();
    fixture.clock.advance(REFRESH_AGE.as_secs());
    // The cached token starts the fetch in the background.
    fixture.assert_accepted(&token).await;
    fixture.settle().await;
    fixture.assert_refused(&token, TokenErrorKind::UnknownKey).await;
}

#[tokio::test]
async fn moved_key_set_is_found_by_age() {
    let fixture = Fixture::new();
    fixture.assert_accepted(&fixture.token()).await;
    fixture.issuer.state().metadata = json!({"jwks_uri": format!("{}/moved", fixture.issuer.url)});
    fixture.clock.advance(REFRESH_AGE.as_secs());
    fixture.assert_accepted(&fixture.token()).await;
    fixture.settle().await;
    assert_eq!(fixture.issuer.state().unexpected, ["/realm/moved"]);
}

#[tokio::test]
async fn same_key_id_with_another_key_is_found_by_age() {
    let fixture = Fixture::new();
    fixture.assert_accepted(&fixture.token()).await;
    let next = TestKey::ed25519(&fixture.key.id);
    fixture.issuer.state().keys = vec![next.jwk()];
    fixture.clock.advance(REFRESH_AGE.as_secs());
    fixture.assert_refused(&next.sign(&fixture.claims(&json!({}))), TokenErrorKind::Signature).await;
    fixture.settle().await;
    fixture.assert_accepted(&next.sign(&fixture.claims(&json!({})))).await;
    fixture.assert_refused(&fixture.token(), TokenErrorKind::Signature).await;
}

#[tokio::test]
async fn keys_stay_usable_for_a_day_while_the_issuer_is_away() {
    let fixture = Fixture::new();
    fixture.assert_accepted(&fixture.token()).await;
    fixture.issuer.state().is_away = true;
    let before = fixture.issuer.state().connections;
    fixture.clock.advance(MAX_KEY_AGE.as_secs() - 1);
    let token = fixture.token();
    fixture.assert_accepted(&token).await;
    fixture.settle().await;
    assert!(fixture.issuer.state().connections > before, "a fetch was tried");
    fixture.assert_accepted(&fixture.token()).await;
    // An unknown key may exist at the issuer: the answer is not that the token is invalid.
    assert!(
        fixture.verifier.verify(&with_unknown_key(&fixture, 1), AUDIENCE).await.unwrap_err().is_unavailable()
    );
    fixture.clock.advance(1);
    for token in [token, fixture.token()] {
        assert!(fixture.verifier.verify(&token, AUDIENCE).await.unwrap_err().is_unavailable());
    }
    fixture.issuer.state().is_away = false;
    fixture.clock.advance(MIN_RETRY_INTERVAL.as_secs());
    fixture.assert_accepted(&fixture.token()).await;
}

#[tokio::test]
async fn issuer_that_is_away_from_the_start_is_tried_at_a_bounded_rate() {
    let fixture = Fixture::new();
    fixture.issuer.state().is_away = true;
    for round in 1..4 {
        let tokens: Vec<String> = (0..100).map(|number| with_unknown_key(&fixture, number)).collect();
        let results = join_all(tokens.iter().map(|token| fixture.verify(token))).await;
        assert!(results.iter().all(|result| matches!(result, Err(TokenErrorKind::Unavailable { .. }))));
        // Each attempt ends at the first of the well-known URLs.
        assert_eq!(fixture.issuer.state().connections, round);
        fixture.clock.advance(MIN_RETRY_INTERVAL.as_secs());
    }
    fixture.issuer.state().is_away = false;
    fixture.assert_accepted(&fixture.token()).await;
}

#[tokio::test]
async fn token_without_key_id_is_verified_with_keys_of_its_algorithm() {
    let fixture = Fixture::new();
    fixture.issuer.state().keys.extend([TestKey::p256("two").jwk(), TestKey::ed25519("three").jwk()]);
    let claims = fixture.claims(&json!({}));
    fixture.assert_accepted(&fixture.key.sign_with(&json!({"kid": null}), &claims)).await;
    let other = TestKey::ed25519("one");
    fixture.assert_refused(&other.sign_with(&json!({"kid": null}), &claims), TokenErrorKind::Signature).await;
}

#[tokio::test]
async fn keys_are_not_fetched_from_other_networks_or_without_tls() {
    let fixture = Fixture::new();
    for location in
        ["http://attacker.example/keys", "file:///etc/passwd", "http://10.0.0.1/keys", "ftp://127.0.0.1/keys"]
    {
        fixture.issuer.state().metadata = json!({"jwks_uri": location});
        assert!(
            matches!(fixture.verify(&fixture.token()).await, Err(TokenErrorKind::Unavailable { .. })),
            "{location}"
        );
        fixture.clock.advance(MIN_RETRY_INTERVAL.as_secs());
    }
    let reject = |change: &dyn Fn(&mut TrustedIssuer)| {
        let mut issuer = TrustedIssuer::new("https://idp.example");
        change(&mut issuer);
        let settings = ResourceServer { resource: HUB.to_owned(), issuers: vec![issuer] };
        TokenVerifier::new(&settings, &TaskTracker::new()).is_err()
    };
    assert!(!reject(&|_| {}));
    assert!(reject(&|issuer| issuer.typ.clear()));
    for url in [
        "http://idp.example",
        "idp.example",
        "https://idp.example?a",
        "https://idp.example#a",
        "https://a:b@idp.example",
    ] {
        assert!(reject(&|issuer| issuer.url = url.to_owned()), "{url}");
    }
}

#[tokio::test]
async fn redirect_to_another_origin_is_not_followed() {
    let (fixture, other) = (Fixture::new(), TestIssuer::start());
    other.state().keys = vec![fixture.key.jwk()];
    for status in [301, 302, 303, 307, 308] {
        fixture.issuer.state().redirects.insert("/realm/keys", (status, format!("{}/keys", other.url)));
        assert!(
            matches!(fixture.verify(&fixture.token()).await, Err(TokenErrorKind::Unavailable { .. })),
            "{status}"
        );
        fixture.clock.advance(MIN_RETRY_INTERVAL.as_secs());
    }
    assert_eq!(other.state().connections, 0);
    fixture.issuer.state().redirects.clear();
    fixture.assert_accepted(&fixture.token()).await;
}

#[tokio::test]
async fn huge_key_set_is_refused_and_the_keys_before_stay() {
    let fixture = Fixture::new();
    fixture.assert_accepted(&fixture.token()).await;
    fixture.issuer.state().keys.push(json!({"kty": "RSA", "n": "A".repeat(1 << 20)}));
    fixture.clock.advance(REFRESH_AGE.as_secs());
    fixture.assert_accepted(&fixture.token()).await;
    fixture.settle().await;
    assert_eq!(fixture.issuer.state().key_requests, 2);
    fixture.assert_accepted(&fixture.token()).await;
    assert!(
        fixture.verifier.verify(&with_unknown_key(&fixture, 1), AUDIENCE).await.unwrap_err().is_unavailable()
    );
}

/// The paused clock advances to the timeout as soon as all tasks wait for the issuer.
#[tokio::test(start_paused = true)]
async fn issuer_that_never_answers_is_unavailable() {
    let fixture = Fixture::new();
    fixture.issuer.state().delay = Duration::from_secs(3600);
    let start = tokio::time::Instant::now();
    assert!(fixture.verifier.verify(&fixture.token(), AUDIENCE).await.unwrap_err().is_unavailable());
    assert!(start.elapsed() <= Duration::from_secs(11), "{:?}", start.elapsed());
}
