//! Parses the `Bearer` challenge of a refused request in `WWW-Authenticate` (RFC 9110 §11.6.1, RFC 6750 §3, RFC 9728 §5.1).

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

use crate::scopes::Scopes;

/// Maximum length of a header; longer ones are ignored.
const MAX_HEADER_BYTES: usize = 8 << 10;

/// A `Bearer` challenge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Challenge {
    /// The URL of the protected resource metadata.
    pub(crate) resource_metadata: Option<String>,
    /// The scopes that the request requires.
    pub(crate) scopes: Scopes,
    /// The error code for the token.
    pub(crate) error: Option<String>,
}

impl Challenge {
    /// The challenge in the headers of a response, if there is one.
    pub(crate) fn bearer(headers: &HeaderMap) -> Option<Self> {
        let values = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        values.filter(|value| value.len() <= MAX_HEADER_BYTES).find_map(parse_header)
    }

    /// Whether the token is valid, but lacks scopes.
    pub(crate) fn lacks_scopes(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }
}

/// The first `Bearer` challenge of a header, which may hold several, each with any number of parameters.
fn parse_header(header: &str) -> Option<Challenge> {
    let mut found: Option<Challenge> = None;
    let mut in_bearer = false;
    let mut rest = header;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',', '=']);
        if rest.is_empty() {
            return found;
        }
        let (word, after) = split_token(rest);
        match after.trim_start_matches([' ', '\t']).strip_prefix('=') {
            Some(value) if !word.is_empty() => {
                let (value, after) = split_value(value.trim_start_matches([' ', '\t']));
                rest = after;
                if let Some(challenge) = found.as_mut().filter(|_| in_bearer) {
                    challenge.take(word, value);
                }
            }
            _ => {
                if in_bearer {
                    return found;
                }
                in_bearer = word.eq_ignore_ascii_case("Bearer");
                found = in_bearer.then(Challenge::default);
                // Skips a character that starts no token, so that the loop terminates.
                let step = rest.chars().next().map_or(0, char::len_utf8);
                rest = if word.is_empty() { &rest[step..] } else { after };
            }
        }
    }
}

impl Challenge {
    fn take(&mut self, name: &str, value: String) {
        match name.to_ascii_lowercase().as_str() {
            "resource_metadata" => self.resource_metadata = Some(value),
            "scope" => self.scopes = Scopes::parse(&value),
            "error" => self.error = Some(value),
            _ => {}
        }
    }
}

fn split_token(text: &str) -> (&str, &str) {
    let in_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~/:".contains(c);
    text.split_at(text.find(|c| !in_token(c)).unwrap_or(text.len()))
}

fn split_value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let (value, rest) = split_token(text);
        return (value.to_owned(), rest);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parses_bearer_challenges() {
        let check = |header: &str, expect: Option<(&str, &str, &str)>| {
            let found = parse_header(header).map(|challenge| {
                let part = |part: Option<String>| part.unwrap_or_default();
                (part(challenge.resource_metadata), challenge.scopes.to_string(), part(challenge.error))
            });
            let expect = expect.map(|(metadata, scope, error)| (metadata.into(), scope.into(), error.into()));
            assert_eq!(found, expect, "{header}");
        };
        check("Bearer", Some(("", "", "")));
        check(
            r#"Bearer resource_metadata="https://a.example/x?a=b,c", scope="files:read files:write""#,
            Some(("https://a.example/x?a=b,c", "files:read files:write", "")),
        );
        check(
            r#"Basic realm="a, Bearer b", bearer error = insufficient_scope ,SCOPE=x"#,
            Some(("", "x", "insufficient_scope")),
        );
        check(r#"Bearer error="a \"quoted\" one", Digest scope="no""#, Some(("", "", "a \"quoted\" one")));
        check("Negotiate dGVzdA==, Bearer scope=a", Some(("", "a", "")));
        check(r#"Bearer scope="unended"#, Some(("", "unended", "")));
        check("Basic realm=x", None);
        check("", None);
        check("\"?\"", None);
    }

    proptest! {
        #[test]
        fn parser_terminates_on_any_header(header in "[ -~]{0,80}") {
            let _ = parse_header(&header);
            let _ = parse_header(&format!("Bearer {header}"));
        }
    }
}
