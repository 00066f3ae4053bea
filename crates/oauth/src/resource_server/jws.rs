//! Parses a compact JWS (RFC 7515 §7.1) with a JWT inside. Nothing in it is trusted before the signature is verified.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use super::claims::Claims;
use super::json_object::parse_object;
use super::token_error::TokenErrorKind;

/// Maximum length of a token.
pub(super) const MAX_TOKEN_BYTES: usize = 16 << 10;

/// The accepted signature algorithms. A symmetric algorithm or `none` cannot be represented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Rs256,
    Ps256,
    Es256,
    EdDsa,
}

impl Algorithm {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "PS256" => Some(Self::Ps256),
            "ES256" => Some(Self::Es256),
            "EdDSA" => Some(Self::EdDsa),
            _ => None,
        }
    }
}

/// A parsed token, not verified.
pub(super) struct Jws<'a> {
    pub(super) algorithm: Algorithm,
    pub(super) key_id: Option<String>,
    pub(super) typ: Option<String>,
    pub(super) claims: Claims,
    /// The bytes that are signed: header and payload as sent.
    pub(super) signed: &'a [u8],
    pub(super) signature: Vec<u8>,
}

impl<'a> Jws<'a> {
    /// Parses a token. Keys and key URLs in the header (`jwk`, `jku`, `x5c`, `x5u`) are never read.
    pub(super) fn parse(token: &'a str) -> Result<Self, TokenErrorKind> {
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenErrorKind::Malformed)?;
        let (header, payload) = signed.split_once('.').ok_or(TokenErrorKind::Malformed)?;
        let mut header = parse_object(&decode(header)?).ok_or(TokenErrorKind::Malformed)?;
        if header.contains_key("crit") {
            return Err(TokenErrorKind::CriticalHeader);
        }
        let algorithm = header.get("alg").and_then(Value::as_str).and_then(Algorithm::from_name);
        let algorithm = algorithm.ok_or(TokenErrorKind::Algorithm)?;
        let mut text = |name: &str| match header.remove(name) {
            Some(Value::String(text)) => Ok(Some(text)),
            None => Ok(None),
            Some(_) => Err(TokenErrorKind::Malformed),
        };
        let (key_id, typ) = (text("kid")?, text("typ")?);
        let claims = parse_object(&decode(payload)?).ok_or(TokenErrorKind::Malformed)?;
        let claims = Claims::new(claims);
        Ok(Self { algorithm, key_id, typ, claims, signed: signed.as_bytes(), signature: decode(signature)? })
    }

    /// Whether the header `typ` is one of the accepted values. Media types have no letter case (RFC 7515 §4.1.9).
    pub(super) fn has_type(&self, accepted: &[String]) -> bool {
        let typ = self.typ.as_deref();
        accepted.iter().any(|accepted| match typ {
            Some(typ) => !accepted.is_empty() && accepted.eq_ignore_ascii_case(typ),
            None => accepted.is_empty(),
        })
    }
}

/// Decodes base64url without padding. Only the canonical encoding of a value is accepted.
fn decode(text: &str) -> Result<Vec<u8>, TokenErrorKind> {
    URL_SAFE_NO_PAD.decode(text).map_err(|_| TokenErrorKind::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(header: &str, payload: &str) -> String {
        let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
        format!("{}.{}.AAAA", encode(header), encode(payload))
    }

    fn refusal(token: &str) -> Option<TokenErrorKind> {
        Jws::parse(token).err()
    }

    #[test]
    fn rejects_every_other_algorithm() {
        for name in [
            "none", "None", "NONE", "nOnE", "", "HS256", "HS512", "RS384", "RS512", "ES384", "ES256K",
            "rs256",
        ] {
            let header = format!(r#"{{"alg":"{name}"}}"#);
            assert_eq!(refusal(&token(&header, "{}")), Some(TokenErrorKind::Algorithm), "{name}");
        }
        for header in ["{}", r#"{"alg":null}"#, r#"{"alg":["RS256"]}"#, r#"{"alg":256}"#] {
            assert_eq!(refusal(&token(header, "{}")), Some(TokenErrorKind::Algorithm), "{header}");
        }
        assert!(refusal(&token(r#"{"alg":"RS256"}"#, "{}")).is_none());
    }

    #[test]
    fn rejects_critical_extensions_of_any_shape() {
        for value in [r#"["b64"]"#, "[]", "null", r#""exp""#] {
            let header = format!(r#"{{"alg":"RS256","crit":{value}}}"#);
            assert_eq!(refusal(&token(&header, "{}")), Some(TokenErrorKind::CriticalHeader), "{value}");
        }
    }

    #[test]
    fn rejects_ambiguous_json_and_base64() {
        let malformed = Some(TokenErrorKind::Malformed);
        let header = r#"{"alg":"RS256"}"#;
        assert_eq!(refusal(&token(r#"{"alg":"RS256","alg":"RS256"}"#, "{}")), malformed);
        assert_eq!(refusal(&token(r#"{"alg":"RS256","\u0061lg":"none"}"#, "{}")), malformed);
        assert_eq!(refusal(&token(header, r#"{"sub":"a","sub":"b"}"#)), malformed);
        assert_eq!(refusal(&token(header, r#"{"a":{"b":1,"b":2}}"#)), malformed);
        assert_eq!(refusal(&token(header, "[]")), malformed);
        assert_eq!(refusal(&token(r#"{"alg":"RS256","kid":1}"#, "{}")), malformed);
        assert_eq!(refusal(&token(r#"{"alg":"RS256","typ":["at+jwt"]}"#, "{}")), malformed);
        let valid = token(header, "{}");
        let (signed, _) = valid.rsplit_once('.').unwrap();
        // Padding, the other alphabet, white space, and bits after the last byte.
        for signature in
            ["AA==", "AAA=", "A+AA", "A/AA", "AA AA", "AA\nAA", "A", "AB", "AAB", "ä", "AAAA.AAAA"]
        {
            assert_eq!(refusal(&format!("{signed}.{signature}")), malformed, "{signature}");
        }
        for token in ["", ".", "..", "...", "a.b", "a.b.c"] {
            assert_eq!(refusal(token), malformed, "{token}");
        }
    }
}
