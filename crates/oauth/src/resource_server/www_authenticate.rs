//! Writes the `Bearer` challenge of `WWW-Authenticate` (RFC 6750 §3, RFC 9728 §5.1).

use crate::scopes::{OFFLINE, Scopes};

/// A refusal and what the client needs to know about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BearerChallenge<'a> {
    /// The request has no token: status 401.
    MissingToken {
        /// The scopes to request.
        scopes: &'a [String],
    },
    /// The token was refused: status 401.
    InvalidToken {
        /// The scopes to request.
        scopes: &'a [String],
        /// The reason, see [`TokenError::description`](super::TokenError::description).
        description: &'a str,
    },
    /// The token lacks scopes: status 403.
    InsufficientScope {
        /// All scopes that the request needs, not only the missing ones.
        scopes: &'a [String],
    },
    /// The request is malformed, such as a token in the query: status 400.
    InvalidRequest {
        /// The reason.
        description: &'a str,
    },
}

impl BearerChallenge<'_> {
    /// The HTTP status of the response.
    pub fn status(&self) -> u16 {
        match self {
            Self::MissingToken { .. } | Self::InvalidToken { .. } => 401,
            Self::InsufficientScope { .. } => 403,
            Self::InvalidRequest { .. } => 400,
        }
    }

    /// The value of the header, with the URL of the metadata. Visible ASCII and spaces only.
    pub(super) fn header_value(&self, metadata_url: &str) -> String {
        let (error, scopes, description): (&str, &[String], &str) = match self {
            Self::MissingToken { scopes } => ("", scopes, ""),
            Self::InvalidToken { scopes, description } => ("invalid_token", scopes, description),
            Self::InsufficientScope { scopes } => ("insufficient_scope", scopes, ""),
            Self::InvalidRequest { description } => ("invalid_request", &[], description),
        };
        let scopes = join(scopes);
        let parameters = [
            ("error", error),
            ("error_description", description),
            ("resource_metadata", metadata_url),
            ("scope", &scopes),
        ];
        let present = parameters.iter().filter(|(_, value)| !value.is_empty());
        let parameters: Vec<String> =
            present.map(|(name, value)| format!("{name}={}", quote(value))).collect();
        format!("Bearer {}", parameters.join(", "))
    }
}

/// The scopes in order, without `offline_access` and without texts that are no scopes (RFC 6749 §3.3).
fn join(scopes: &[String]) -> String {
    let is_valid = |scope: &str| scope.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e));
    let valid = scopes.iter().map(String::as_str).filter(|scope| is_valid(scope) && *scope != OFFLINE);
    Scopes::default().with(valid).to_string()
}

/// A quoted string (RFC 9110 §5.6.4). Characters that it cannot contain are left out.
fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars().filter(|character| matches!(character, ' '..='~')) {
        if matches!(character, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use reqwest::header::{HeaderMap, HeaderValue, WWW_AUTHENTICATE};

    use super::*;
    use crate::challenge::Challenge;

    const METADATA: &str = "https://hub.example/.well-known/oauth-protected-resource/mcp";

    fn scopes(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn challenges_name_metadata_scopes_and_error() {
        let wanted = scopes("tools offline_access sheets:write tools");
        let check = |challenge: BearerChallenge<'_>, status: u16, expect: &str| {
            assert_eq!(challenge.status(), status);
            assert_eq!(challenge.header_value(METADATA), expect.replace("URL", METADATA));
        };
        check(
            BearerChallenge::MissingToken { scopes: &wanted },
            401,
            r#"Bearer resource_metadata="URL", scope="tools sheets:write""#,
        );
        check(BearerChallenge::MissingToken { scopes: &[] }, 401, r#"Bearer resource_metadata="URL""#);
        check(
            BearerChallenge::InvalidToken { scopes: &wanted, description: "the token has expired" },
            401,
            r#"Bearer error="invalid_token", error_description="the token has expired", resource_metadata="URL", scope="tools sheets:write""#,
        );
        check(
            BearerChallenge::InsufficientScope { scopes: &wanted },
            403,
            r#"Bearer error="insufficient_scope", resource_metadata="URL", scope="tools sheets:write""#,
        );
        check(
            BearerChallenge::InvalidRequest { description: "a \"token\" in\r\nthe query \\ 查询" },
            400,
            r#"Bearer error="invalid_request", error_description="a \"token\" inthe query \\ ", resource_metadata="URL""#,
        );
    }

    #[test]
    fn leaves_out_texts_that_are_no_scopes() {
        let wanted: Vec<String> =
            ["a b", "c\"", "d\\", "", "e\n", "作用域", "f"].iter().map(ToString::to_string).collect();
        assert_eq!(join(&wanted), "f");
    }

    proptest! {
        /// Whatever the settings contain, no parameter can be added, and our own parser of clients reads the value back.
        #[test]
        fn parser_of_clients_reads_any_challenge(scope in "\\PC{0,20}", description in "(?s).{0,40}", url in "[ -~]{1,40}") {
            let wanted = [scope, "last".to_owned()];
            let challenge = BearerChallenge::InvalidToken { scopes: &wanted, description: &description };
            let value = HeaderValue::from_str(&challenge.header_value(&url)).unwrap();
            let headers = HeaderMap::from_iter([(WWW_AUTHENTICATE, value)]);
            let read = Challenge::bearer(&headers).unwrap();
            prop_assert_eq!(read.resource_metadata.as_deref(), Some(url.as_str()));
            prop_assert_eq!(read.error.as_deref(), Some("invalid_token"));
            prop_assert_eq!(read.scopes, Scopes::parse(&join(&wanted)));
        }
    }
}
