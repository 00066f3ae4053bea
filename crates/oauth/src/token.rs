//! The token endpoint: exchanges a code, a refresh token or client credentials for tokens (RFC 6749 §4.1.3, §4.4, §6).

use std::time::Duration;

use reqwest::RequestBuilder;
use reqwest::header::CONTENT_TYPE;
use serde::Deserialize;
use toolhub_core::Secret;
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use crate::client::{ClientAuthMethod, RegisteredClient};
use crate::error::OAuthError;
use crate::fetch::LoginFetcher;
use crate::http_client::host_and_port;
use crate::record::Tokens;

/// A token endpoint and the client that uses it.
pub(crate) struct TokenEndpoint<'a> {
    pub(crate) fetch: &'a LoginFetcher,
    pub(crate) endpoint: &'a Url,
    pub(crate) client: &'a RegisteredClient,
}

/// A form field; secret values are marked.
pub(crate) enum FormField<'a> {
    Plain(&'a str, &'a str),
    Hidden(&'a str, &'a Secret),
}

#[derive(Deserialize)]
struct TokenResponse {
    access_token: Secret,
    #[serde(default)]
    token_type: Option<String>,
    #[serde(default)]
    expires_in: Option<Seconds>,
    #[serde(default)]
    refresh_token: Option<Secret>,
}

/// Some servers send the number as a string.
#[derive(Deserialize)]
#[serde(untagged)]
enum Seconds {
    Number(f64),
    Text(String),
}

impl Seconds {
    fn duration(&self) -> Option<Duration> {
        let seconds = match self {
            Self::Number(number) => *number,
            Self::Text(text) => text.trim().parse().ok()?,
        };
        Duration::try_from_secs_f64(seconds).ok()
    }
}

impl TokenEndpoint<'_> {
    /// Requests tokens.
    pub(crate) async fn request_tokens(&self, fields: &[FormField<'_>]) -> Result<Tokens, OAuthError> {
        let (request, secrets) = self.form(fields)?;
        let answer: TokenResponse = self.fetch.answer(request, self.endpoint, &secrets).await?;
        let kind = answer.token_type.unwrap_or_else(|| "bearer".to_owned());
        if !kind.eq_ignore_ascii_case("bearer") || answer.access_token.expose().is_empty() {
            let detail = "it gives no bearer token".to_owned();
            return Err(OAuthError::Unreadable { location: host_and_port(self.endpoint), detail });
        }
        let lifetime = answer.expires_in.and_then(|seconds| seconds.duration());
        Ok(Tokens::fresh(answer.access_token, answer.refresh_token, lifetime))
    }

    /// Revokes a token (RFC 7009). The response is ignored.
    pub(crate) async fn revoke_token(&self, token: &Secret) -> Result<(), OAuthError> {
        let (request, _) = self.form(&[FormField::Hidden("token", token)])?;
        super::fetch::send(request, self.endpoint).await.map(drop)
    }

    /// The form with the client authentication that the method requires, and the secrets in it.
    fn form<'f>(&'f self, fields: &[FormField<'f>]) -> Result<(RequestBuilder, Vec<&'f Secret>), OAuthError> {
        let RegisteredClient { id, secret, method, .. } = self.client;
        let mut secrets: Vec<&Secret> = secret.iter().collect();
        let mut form = Serializer::new(String::new());
        for field in fields {
            match field {
                FormField::Plain(name, value) => form.append_pair(name, value),
                FormField::Hidden(name, value) => {
                    secrets.push(value);
                    form.append_pair(name, value.expose())
                }
            };
        }
        let mut request = self.fetch.post(self.endpoint)?;
        match (method, secret) {
            (ClientAuthMethod::Basic, Some(secret)) => {
                // Both are form-encoded before they are joined (RFC 6749 §2.3.1).
                let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
                request = request.basic_auth(encoded(id), Some(encoded(secret.expose())));
            }
            (ClientAuthMethod::Post, Some(secret)) => {
                form.append_pair("client_id", id).append_pair("client_secret", secret.expose());
            }
            _ => {
                form.append_pair("client_id", id);
            }
        }
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form.finish());
        Ok((request, secrets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_lifetimes_as_number_or_string() {
        let check = |text: &str, expect: Option<u64>| {
            let answer: TokenResponse = serde_json::from_str(text).unwrap();
            let seconds = answer.expires_in.and_then(|seconds| seconds.duration()).map(|life| life.as_secs());
            assert_eq!(seconds, expect, "{text}");
        };
        check(r#"{"access_token": "a", "expires_in": 3600}"#, Some(3600));
        check(r#"{"access_token": "a", "expires_in": "60"}"#, Some(60));
        check(r#"{"access_token": "a", "expires_in": "soon"}"#, None);
        check(r#"{"access_token": "a", "expires_in": -5}"#, None);
        check(r#"{"access_token": "a"}"#, None);
        check(r#"{"access_token": "a", "expires_in": null}"#, None);
    }
}
