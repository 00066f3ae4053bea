//! Attacks with tokens: forged, for other purposes, and out of time. Each is refused for its own reason, and a valid token is
//! accepted beside it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tokio_util::task::TaskTracker;
use toolhub_core::Localize as _;
use toolhub_core::lang::Lang;

use super::jws::MAX_TOKEN_BYTES;
use super::settings::{ResourceServer, TrustedIssuer};
use super::test_issuer::{AUDIENCE, Fixture, HUB};
use super::test_keys::{TestKey, merge, signing_input};
use super::token_error::TokenErrorKind;
use super::verifier::TokenVerifier;

#[tokio::test]
async fn accepts_the_four_algorithms() {
    let fixture = Fixture::new();
    let (elliptic, rsa) = (TestKey::p256("two"), TestKey::rsa("three"));
    fixture.issuer.state().keys.extend([elliptic.jwk(), rsa.jwk()]);
    let claims = fixture.claims(&json!({}));
    fixture.assert_accepted(&fixture.key.sign(&claims)).await;
    fixture.assert_accepted(&elliptic.sign(&claims)).await;
    fixture.assert_accepted(&rsa.sign(&claims)).await;
    fixture.assert_accepted(&rsa.sign_with(&json!({"alg": "PS256"}), &claims)).await;
    fixture.assert_accepted(&rsa.sign_with(&json!({"typ": "Application/AT+JWT"}), &claims)).await;
    assert!(fixture.issuer.state().unexpected.is_empty());
}

#[tokio::test]
async fn describes_principal_and_expiry() {
    let fixture = Fixture::with_settings(|issuer| {
        issuer.roles.insert(toolhub_core::Role::Caller, vec!["scope:tools".parse().unwrap()]);
    });
    let token = fixture.key.sign(&fixture.claims(&json!({"name": "Ann", "groups": ["a"]})));
    let verified = fixture.verify(&token).await.unwrap();
    let principal = &verified.principal;
    assert_eq!(principal.id().to_string(), format!("oidc:{}#ann", fixture.issuer.url));
    assert_eq!((principal.display.as_str(), principal.roles.to_string().as_str()), ("Ann", "caller"));
    assert_eq!(
        (principal.groups.clone(), principal.scopes.clone()),
        (vec!["a".to_owned()], vec!["tools".to_owned()])
    );
    let expires = verified.expires.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    assert_eq!(expires, fixture.clock.now() + 660);
    assert_eq!(verified.recheck, verified.expires);
}

#[tokio::test]
async fn rejects_unsigned_tokens() {
    let fixture = Fixture::new();
    let claims = fixture.claims(&json!({})).to_string();
    for name in ["none", "None", "NONE", ""] {
        let header = merge(&fixture.key.header(), &json!({"alg": name})).to_string();
        fixture
            .assert_refused(&format!("{}.", signing_input(&header, &claims)), TokenErrorKind::Algorithm)
            .await;
        fixture.assert_refused(&fixture.key.sign_text(&header, &claims), TokenErrorKind::Algorithm).await;
    }
    let header = fixture.key.header().to_string();
    fixture.assert_refused(&format!("{}.", signing_input(&header, &claims)), TokenErrorKind::Signature).await;
    fixture.assert_refused(&signing_input(&header, &claims), TokenErrorKind::Opaque).await;
    fixture.assert_accepted(&fixture.token()).await;
}

#[tokio::test]
async fn rejects_hmac_with_the_public_key() {
    let fixture = Fixture::new();
    let rsa = TestKey::rsa("rsa");
    fixture.issuer.state().keys.push(rsa.jwk());
    let claims = fixture.claims(&json!({})).to_string();
    for secret in [rsa.public_bytes(), fixture.key.public_bytes()] {
        // With the symmetric algorithm, and with the HMAC in place of the announced signature.
        for (name, kind) in [("HS256", TokenErrorKind::Algorithm), ("RS256", TokenErrorKind::Signature)] {
            let input =
                signing_input(&json!({"alg": name, "typ": "at+jwt", "kid": "rsa"}).to_string(), &claims);
            let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &secret);
            let signature = URL_SAFE_NO_PAD.encode(ring::hmac::sign(&key, input.as_bytes()));
            fixture.assert_refused(&format!("{input}.{signature}"), kind).await;
        }
    }
    // A symmetric key in the set of the issuer is not used either.
    fixture.issuer.state().keys.push(json!({"kty": "oct", "kid": "oct", "k": "AAAA"}));
    fixture.assert_accepted(&rsa.sign(&fixture.claims(&json!({})))).await;
}

#[tokio::test]
async fn rejects_algorithm_of_another_key_type() {
    let fixture = Fixture::new();
    let (rsa, elliptic) = (TestKey::rsa("rsa"), TestKey::p256("p256"));
    let mut restricted = rsa.jwk();
    restricted["kid"] = json!("pss");
    restricted["alg"] = json!("PS256");
    fixture.issuer.state().keys.extend([rsa.jwk(), elliptic.jwk(), restricted]);
    let claims = fixture.claims(&json!({}));
    fixture.assert_accepted(&rsa.sign_with(&json!({"kid": "pss", "alg": "PS256"}), &claims)).await;
    for (kid, name) in
        [("rsa", "ES256"), ("rsa", "EdDSA"), ("p256", "RS256"), ("one", "ES256"), ("pss", "RS256")]
    {
        let token = rsa.sign_with(&json!({"kid": kid, "alg": name}), &claims);
        fixture.assert_refused(&token, TokenErrorKind::UnknownKey).await;
    }
    // The padding of the other RSA algorithm.
    let token = rsa.sign_with(&json!({"alg": "PS256"}), &claims);
    let header = rsa.header().to_string();
    let (_, signature) = token.rsplit_once('.').unwrap();
    let swapped = format!("{}.{signature}", signing_input(&header, &claims.to_string()));
    fixture.assert_refused(&swapped, TokenErrorKind::Signature).await;
}

#[tokio::test]
async fn ignores_keys_and_urls_in_the_header() {
    let fixture = Fixture::new();
    let attacker = TestKey::ed25519("one");
    let url = format!("{}/attacker", fixture.issuer.url);
    for changes in [
        json!({"jwk": attacker.jwk()}),
        json!({"jku": url}),
        json!({"x5u": url}),
        json!({"x5c": ["AAAA"]}),
        json!({"jku": url, "jwk": attacker.jwk(), "kid": null}),
    ] {
        let claims = fixture.claims(&json!({}));
        fixture.assert_refused(&attacker.sign_with(&changes, &claims), TokenErrorKind::Signature).await;
        // The parameters have no influence on a token that a key of the issuer has signed.
        fixture.assert_accepted(&fixture.key.sign_with(&changes, &claims)).await;
    }
    for kid in ["two", "../../keys", "one' OR 1=1", "https://attacker.example/key", ""] {
        // Older than the keys: it cannot be signed with a new one.
        let claims = fixture.claims(&json!({"iat": fixture.clock.now() - 60}));
        let token = attacker.sign_with(&json!({"kid": kid}), &claims);
        fixture.assert_refused(&token, TokenErrorKind::UnknownKey).await;
    }
    assert!(fixture.issuer.state().unexpected.is_empty(), "a URL of the token was fetched");
}

#[tokio::test]
async fn rejects_critical_header_extensions() {
    let fixture = Fixture::new();
    for crit in [json!(["b64"]), json!([]), json!(["exp"]), json!("b64")] {
        let token = fixture.key.sign_with(&json!({"crit": crit, "b64": false}), &fixture.claims(&json!({})));
        fixture.assert_refused(&token, TokenErrorKind::CriticalHeader).await;
    }
}

#[tokio::test]
async fn rejects_token_of_another_audience() {
    let fixture = Fixture::new();
    for audience in [
        json!("https://hub.example/mcp"),
        json!("https://hub.example/mcp/finance"),
        json!("https://hub.example/mcp/office/"),
        json!("https://hub.example/mcp/OFFICE"),
        json!(["https://other.example/mcp/office", ""]),
        json!([]),
        json!("*"),
        json!(null),
        json!({"a": AUDIENCE}),
        json!([AUDIENCE, 1]),
    ] {
        let token = fixture.key.sign(&fixture.claims(&json!({"aud": audience})));
        fixture.assert_refused(&token, TokenErrorKind::Audience).await;
    }
    for audience in [json!(AUDIENCE), json!(["https://other.example", AUDIENCE])] {
        fixture.assert_accepted(&fixture.key.sign(&fixture.claims(&json!({"aud": audience})))).await;
    }
}

#[tokio::test]
async fn rejects_cached_token_at_another_profile() {
    let fixture = Fixture::new();
    let token = fixture.token();
    for _ in 0..2 {
        fixture.assert_accepted(&token).await;
        let other = fixture.verifier.verify(&token, "https://hub.example/mcp/finance").await;
        assert_eq!(other.map_err(|error| error.kind).map(drop), Err(TokenErrorKind::Audience));
        assert!(fixture.verifier.verify_cached(&token, "https://hub.example/mcp").is_none());
        assert!(fixture.verifier.verify_cached(&token, "").is_none());
        assert!(fixture.verifier.verify_cached(&token, AUDIENCE).is_some());
    }
    let extra = Fixture::with_settings(|issuer| issuer.audiences = vec!["api://hub".to_owned()]);
    let token = extra.key.sign(&extra.claims(&json!({"aud": "api://hub"})));
    extra.assert_accepted(&token).await;
    extra
        .assert_refused(
            &extra.key.sign(&extra.claims(&json!({"aud": "api://hub2"}))),
            TokenErrorKind::Audience,
        )
        .await;
}

#[tokio::test]
async fn rejects_token_of_another_issuer() {
    let (fixture, other) = (Fixture::new(), Fixture::new());
    let url = &fixture.issuer.url;
    for issuer in
        [json!("https://idp.example"), json!(format!("{url}/")), json!(null), json!([url]), json!(1)]
    {
        let token = fixture.key.sign(&fixture.claims(&json!({"iss": issuer})));
        fixture.assert_refused(&token, TokenErrorKind::UnknownIssuer).await;
    }
    // With two trusted issuers, the key of one does not sign for the other.
    let issuers = vec![TrustedIssuer::new(url), TrustedIssuer::new(&other.issuer.url)];
    let settings = ResourceServer { resource: HUB.to_owned(), issuers };
    let clock = std::sync::Arc::clone(&fixture.clock);
    let verifier = TokenVerifier::with_clock(&settings, &TaskTracker::new(), clock).unwrap();
    let verify =
        async |token: String| verifier.verify(&token, AUDIENCE).await.map_err(|error| error.kind).map(drop);
    assert_eq!(verify(fixture.token()).await, Ok(()));
    assert_eq!(verify(other.token()).await, Ok(()));
    let forged = other.key.sign(&fixture.claims(&json!({})));
    assert_eq!(verify(forged).await, Err(TokenErrorKind::Signature));
}

#[tokio::test]
async fn rejects_metadata_of_another_issuer() {
    let fixture = Fixture::new();
    let url = fixture.issuer.url.clone();
    for issuer in ["https://idp.example".to_owned(), format!("{url}/"), String::new()] {
        fixture.issuer.state().metadata = json!({"issuer": issuer});
        let refused = fixture.verify(&fixture.token()).await;
        assert!(matches!(refused, Err(TokenErrorKind::Unavailable { .. })), "{issuer}");
        fixture.clock.advance(60);
    }
    assert_eq!(fixture.issuer.state().key_requests, 0);
    fixture.issuer.state().metadata = json!({});
    fixture.assert_accepted(&fixture.token()).await;
}

#[tokio::test]
async fn rejects_other_types_of_tokens() {
    let fixture = Fixture::new();
    for typ in [
        json!("JWT"),
        json!("jwt"),
        json!(null),
        json!("dpop+jwt"),
        json!("logout+jwt"),
        json!(""),
        json!("at+jwt "),
    ] {
        let token = fixture.key.sign_with(&json!({"typ": typ}), &fixture.claims(&json!({})));
        fixture.assert_refused(&token, TokenErrorKind::Type).await;
    }
}

#[tokio::test]
async fn rejects_id_token_even_if_its_type_is_accepted() {
    let fixture = Fixture::with_settings(|issuer| issuer.typ = vec!["JWT".to_owned(), String::new()]);
    for typ in [json!("JWT"), json!(null)] {
        let sign = |changes: &Value| fixture.key.sign_with(&json!({"typ": typ}), &fixture.claims(changes));
        fixture.assert_accepted(&sign(&json!({}))).await;
        for claims in [
            json!({"nonce": "n"}),
            json!({"at_hash": "h"}),
            json!({"c_hash": "h"}),
            json!({"token_use": "id"}),
        ] {
            fixture.assert_refused(&sign(&claims), TokenErrorKind::NotAccessToken).await;
        }
        // An ID token has the client as audience.
        fixture.assert_refused(&sign(&json!({"aud": "editor"})), TokenErrorKind::Audience).await;
    }
}

#[tokio::test]
async fn rejects_sender_constrained_token_as_bearer_token() {
    let fixture = Fixture::new();
    let token = fixture
        .key
        .sign(&fixture.claims(&json!({"cnf": {"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}})));
    fixture.assert_refused(&token, TokenErrorKind::SenderConstrained).await;
}

#[tokio::test]
async fn rejects_expired_token_with_a_minute_of_skew() {
    let fixture = Fixture::new();
    let now = fixture.clock.now();
    let sign = |exp: Value| fixture.key.sign(&fixture.claims(&json!({"exp": exp})));
    fixture.assert_accepted(&sign(json!(now - 59))).await;
    fixture.assert_refused(&sign(json!(now - 60)), TokenErrorKind::Expired).await;
    fixture.assert_refused(&sign(json!(0)), TokenErrorKind::Expired).await;
    fixture.assert_refused(&sign(json!(null)), TokenErrorKind::Expired).await;
    fixture.assert_refused(&sign(json!((now + 600).to_string())), TokenErrorKind::Malformed).await;
    fixture.assert_refused(&sign(json!(1e300)), TokenErrorKind::Malformed).await;
    fixture.assert_refused(&sign(json!(-1)), TokenErrorKind::Malformed).await;
}

#[tokio::test]
async fn rejects_token_that_is_not_valid_yet_with_a_minute_of_skew() {
    let fixture = Fixture::new();
    let now = fixture.clock.now();
    for name in ["nbf", "iat"] {
        let sign = |start: u64| fixture.key.sign(&fixture.claims(&json!({name: start})));
        fixture.assert_accepted(&sign(now + 60)).await;
        fixture.assert_refused(&sign(now + 61), TokenErrorKind::NotYetValid).await;
    }
}

#[tokio::test]
async fn cached_token_expires() {
    let fixture = Fixture::new();
    let token = fixture.token();
    fixture.assert_accepted(&token).await;
    fixture.clock.advance(659);
    let verified = fixture.verify(&token).await.unwrap();
    assert!(fixture.verifier.is_current(&verified));
    // Another verifier, such as that of changed settings, has not accepted it.
    let other = Fixture::new();
    other.assert_accepted(&other.token()).await;
    assert!(!other.verifier.is_current(&verified));
    assert!(fixture.verifier.verify_cached(&token, AUDIENCE).is_some());
    fixture.clock.advance(1);
    assert!(!fixture.verifier.is_current(&verified));
    assert!(fixture.verifier.verify_cached(&token, AUDIENCE).is_none());
    fixture.assert_refused(&token, TokenErrorKind::Expired).await;
}

#[tokio::test]
async fn cached_token_expires_when_the_wall_clock_is_set() {
    let fixture = Fixture::new();
    let token = fixture.token();
    fixture.assert_accepted(&token).await;
    fixture.clock.set_forward(660);
    assert!(fixture.verifier.verify_cached(&token, AUDIENCE).is_none());
    fixture.assert_refused(&token, TokenErrorKind::Expired).await;
}

#[tokio::test]
async fn empty_audience_opens_nothing() {
    let fixture = Fixture::new();
    let token = fixture.key.sign(&fixture.claims(&json!({"aud": ["", AUDIENCE]})));
    fixture.assert_accepted(&token).await;
    let result = fixture.verifier.verify(&token, "").await;
    assert_eq!(result.map(drop).map_err(|error| error.kind), Err(TokenErrorKind::Audience));
}

#[tokio::test]
async fn rejects_ambiguous_and_malformed_tokens() {
    let fixture = Fixture::new();
    let (header, claims) = (fixture.key.header().to_string(), fixture.claims(&json!({})).to_string());
    let twice = |text: &str, member: &str| format!("{},{member}}}", text.strip_suffix('}').unwrap());
    for (header, claims) in [
        (twice(&header, r#""alg":"EdDSA""#), claims.clone()),
        (twice(&header, r#""\u006bid":"one""#), claims.clone()),
        (header.clone(), twice(&claims, r#""sub":"root""#)),
        (header.clone(), twice(&claims, r#""a":[{"b":1,"b":2}]"#)),
        (header.clone(), format!("[{claims}]")),
        (header.clone(), format!("{claims}{claims}")),
        (format!("\u{feff}{header}"), claims.clone()),
    ] {
        fixture.assert_refused(&fixture.key.sign_text(&header, &claims), TokenErrorKind::Malformed).await;
    }
    let token = fixture.token();
    for changed in [
        format!("{token}="),
        format!("{token} "),
        format!(" {token}"),
        format!("{token}\n"),
        token.replace('.', ".."),
        format!("{token}%"),
    ] {
        assert!(fixture.verify(&changed).await.is_err(), "{changed}");
    }
    for subject in [json!(null), json!(""), json!(1)] {
        let token = fixture.key.sign(&fixture.claims(&json!({"sub": subject})));
        fixture.assert_refused(&token, TokenErrorKind::Subject).await;
    }
}

#[tokio::test]
async fn rejects_long_token() {
    let fixture = Fixture::new();
    let sign = |bytes: usize| fixture.key.sign(&fixture.claims(&json!({"padding": "x".repeat(bytes)})));
    let base = sign(0).len();
    fixture.assert_accepted(&sign((MAX_TOKEN_BYTES - base) / 4 * 3)).await;
    let long = sign(MAX_TOKEN_BYTES);
    fixture.assert_refused(&long, TokenErrorKind::TooLong).await;
    assert!(fixture.verifier.verify_cached(&long, AUDIENCE).is_none());
}

/// Errors, `Debug` of results and of the verifier contain neither tokens nor claims.
#[tokio::test]
async fn output_contains_neither_token_nor_claims() {
    let fixture = Fixture::with_introspection();
    let verified = Fixture::new();
    let personal =
        json!({"name": "Ann Personal", "email": "ann@personal.example", "sub": "subject-personal"});
    let result = verified.verify(&verified.key.sign(&verified.claims(&personal))).await.unwrap();
    let mut output = format!("{result:?} {:?} {:?}", verified.verifier, fixture.verifier);
    fixture.issuer.state().introspection_status = Some(500);
    for changes in [
        json!({"aud": "personal"}),
        json!({"exp": 1}),
        json!({"nonce": "personal"}),
        json!({"iss": "personal"}),
        json!({}),
    ] {
        for fixture in [&fixture, &verified] {
            let other = TestKey::ed25519("personal");
            let token = other.sign(&fixture.claims(&merge(&personal, &changes)));
            let error = fixture.verifier.verify(&token, AUDIENCE).await.unwrap_err();
            output += &format!("{error:?} {error} {} {}", error.localize(Lang::Zh), error.description());
            assert!(!output.contains(&token) && !output.contains(&token[..20]), "{output}");
        }
    }
    let opaque = fixture.verifier.verify("opaque-personal-token", AUDIENCE).await.unwrap_err();
    output += &format!("{opaque:?} {opaque}");
    assert!(!output.contains("ersonal") && !output.contains("se cret"), "{output}");
    assert!(output.contains(&fixture.issuer.url), "errors name the issuer");
}
