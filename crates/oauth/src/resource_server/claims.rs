//! The claims of a token, or the answer of an introspection endpoint. No `Debug`: claims are personal data.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};

use super::token_error::TokenErrorKind;

/// Allowed difference between the clocks of the issuer and of this machine.
pub(super) const CLOCK_SKEW: Duration = Duration::from_secs(60);
/// Maximum of a time in seconds since 1970: the year 5138. Keeps sums of times in range.
const MAX_TIME_SECONDS: f64 = 1e11;

/// Claims by name.
pub(super) struct Claims(Map<String, Value>);

impl Claims {
    pub(super) fn new(members: Map<String, Value>) -> Self {
        Self(members)
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// The claim, if it is a string.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    /// The claim as a list: a string is a list of one. `None` if it is missing or has other elements.
    pub(super) fn list(&self, name: &str) -> Option<Vec<String>> {
        self.0.get(name).and_then(strings)
    }

    /// The strings of the claim with this name, or else at this path of nested objects, with dots in between.
    pub(super) fn list_at_path(&self, path: &str) -> Option<Vec<String>> {
        if let Some(value) = self.0.get(path) {
            return strings(value);
        }
        let mut parts = path.split('.');
        let first = self.0.get(parts.next()?)?;
        strings(parts.try_fold(first, |value, part| value.get(part))?)
    }

    /// The scopes of the token: `scope` (RFC 9068 §2.2.3, a text with spaces) or `scp` as some issuers call it.
    pub(super) fn scopes(&self) -> Vec<String> {
        let lists = ["scope", "scp"].iter().filter_map(|name| self.list(name)).flatten();
        let mut scopes: Vec<String> = Vec::new();
        for scope in
            lists.flat_map(|text| text.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>())
        {
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
        scopes
    }

    /// A time in seconds since 1970 (RFC 7519 §2, NumericDate).
    pub(super) fn time(&self, name: &str) -> Result<Option<SystemTime>, TokenErrorKind> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        let seconds = value.as_f64().filter(|seconds| (0.0..=MAX_TIME_SECONDS).contains(seconds));
        let seconds = seconds.ok_or(TokenErrorKind::Malformed)?;
        Ok(Some(UNIX_EPOCH + Duration::from_secs_f64(seconds)))
    }

    /// Checks `exp`, `nbf` and `iat`; returns `exp`.
    pub(super) fn check_times(&self, now: SystemTime) -> Result<Option<SystemTime>, TokenErrorKind> {
        let expires = self.time("exp")?;
        if expires.is_some_and(|expires| now >= expires + CLOCK_SKEW) {
            return Err(TokenErrorKind::Expired);
        }
        for name in ["nbf", "iat"] {
            if self.time(name)?.is_some_and(|start| start > now + CLOCK_SKEW) {
                return Err(TokenErrorKind::NotYetValid);
            }
        }
        Ok(expires)
    }
}

fn strings(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claims(value: Value) -> Claims {
        match value {
            Value::Object(members) => Claims::new(members),
            _ => panic!("not an object"),
        }
    }

    #[test]
    fn compares_times_with_clock_skew() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000_000);
        let check = |value: Value, expect: Option<TokenErrorKind>| {
            let text = value.to_string();
            assert_eq!(claims(value).check_times(now).err(), expect, "{text}");
        };
        check(json!({"exp": 999_941}), None);
        check(json!({"exp": 999_940}), Some(TokenErrorKind::Expired));
        check(json!({"exp": 999_940.5}), None);
        check(json!({"exp": 0}), Some(TokenErrorKind::Expired));
        check(json!({"nbf": 1_000_060}), None);
        check(json!({"nbf": 1_000_061}), Some(TokenErrorKind::NotYetValid));
        check(json!({"iat": 1_000_060}), None);
        check(json!({"iat": 1_000_061}), Some(TokenErrorKind::NotYetValid));
        for invalid in [
            json!("999999999"),
            json!(null),
            json!(-1),
            json!(1e300),
            json!([1]),
            json!(true),
            json!(u64::MAX),
        ] {
            for name in ["exp", "nbf", "iat"] {
                check(json!({name: invalid}), Some(TokenErrorKind::Malformed));
            }
        }
    }

    #[test]
    fn reads_scopes_and_nested_lists() {
        assert_eq!(claims(json!({"scope": "a b  a", "scp": ["c", "b"]})).scopes(), ["a", "b", "c"]);
        assert!(claims(json!({"scope": 1})).scopes().is_empty());
        let nested = claims(json!({"realm_access": {"roles": ["x"]}, "a.b": "literal", "a": {"b": "path"}}));
        assert_eq!(nested.list_at_path("realm_access.roles").unwrap(), ["x"]);
        assert_eq!(nested.list_at_path("a.b").unwrap(), ["literal"]);
        assert!(nested.list_at_path("realm_access").is_none() && nested.list_at_path("").is_none());
        assert!(claims(json!({"groups": ["a", 1]})).list_at_path("groups").is_none());
    }
}
