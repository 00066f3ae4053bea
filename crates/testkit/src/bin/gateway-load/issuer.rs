//! An issuer of one signed access token, so that benchmarks measure how the gateway verifies it.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, anyhow};
use axum::Router;
use axum::http::Uri;
use axum::response::IntoResponse as _;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::json;
use tokio::net::TcpListener;

/// Serves metadata and keys, and prints its URL and a token for this audience.
#[expect(clippy::print_stdout, reason = "the benchmark that starts it reads the address")]
pub(crate) async fn run(audience: &str) -> Result<()> {
    let invalid = |_| anyhow!("no key could be made");
    let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(invalid)?;
    let key = Ed25519KeyPair::from_pkcs8(key.as_ref()).map_err(|error| anyhow!("{error}"))?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let issuer = format!("http://{}", listener.local_addr()?);
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let claims = json!({"iss": issuer, "sub": "load", "aud": audience, "iat": now, "exp": now + 24 * 3600});
    let header = json!({"alg": "EdDSA", "typ": "at+jwt", "kid": "1"});
    let signed = format!("{}.{}", BASE64.encode(header.to_string()), BASE64.encode(claims.to_string()));
    let signature = BASE64.encode(key.sign(signed.as_bytes()));
    println!("{}", json!({"issuer": issuer, "token": format!("{signed}.{signature}")}));
    let x = BASE64.encode(key.public_key());
    let keys =
        json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "use": "sig", "kid": "1", "x": x}]}).to_string();
    let metadata = json!({
        "issuer": issuer, "jwks_uri": format!("{issuer}/keys"), "token_endpoint": format!("{issuer}/token"),
        "authorization_endpoint": format!("{issuer}/authorize"), "response_types_supported": ["code"],
    });
    let metadata = metadata.to_string();
    let router = Router::new().fallback(async move |uri: Uri| {
        let body = if uri.path() == "/keys" { keys.clone() } else { metadata.clone() };
        ([("content-type", "application/json")], body).into_response()
    });
    Ok(axum::serve(listener, router).await?)
}
