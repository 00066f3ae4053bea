//! Selects the scopes to request, and adds missing ones (2026-07-28, basic/authorization: scope selection strategy, step-up
//! authorization flow).

use std::fmt;

use serde::{Deserialize, Serialize};

/// A set of scopes in insertion order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Scopes(Vec<String>);

/// The inputs of the scope selection.
#[derive(Debug, Default)]
pub(crate) struct ScopeSelection<'a> {
    /// The scopes in the configuration.
    pub(crate) configured: &'a [String],
    /// The scopes of the challenge.
    pub(crate) challenged: Scopes,
    /// The scopes that the protected resource lists.
    pub(crate) supported: Option<&'a [String]>,
    /// The scopes requested before, and those found to be missing.
    pub(crate) before: Scopes,
    /// Whether the authorization server issues refresh tokens for `offline_access`.
    pub(crate) offline: bool,
}

pub(crate) const OFFLINE: &str = "offline_access";

impl Scopes {
    /// Parses a space-separated list.
    pub(crate) fn parse(text: &str) -> Self {
        Self::default().with(text.split_ascii_whitespace())
    }

    /// Adds the scopes that are not in the set yet.
    pub(crate) fn with<'a>(mut self, more: impl IntoIterator<Item = &'a str>) -> Self {
        for scope in more {
            if !scope.is_empty() && !self.0.iter().any(|known| known == scope) {
                self.0.push(scope.to_owned());
            }
        }
        self
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all of `others` are in the set.
    pub(crate) fn contains_all(&self, others: &Self) -> bool {
        others.0.iter().all(|other| self.0.contains(other))
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

impl ScopeSelection<'_> {
    /// The scopes to request: those of the challenge, otherwise those that the resource lists, otherwise none. Configured
    /// scopes replace the list. Scopes requested before are kept, so that no permission is lost.
    pub(crate) fn scopes(&self) -> Scopes {
        let own = Scopes::default().with(self.configured.iter().map(String::as_str));
        let needed = own.with(self.challenged.iter());
        let listed = self.supported.filter(|_| needed.is_empty() && self.before.is_empty());
        let chosen = needed.with(listed.into_iter().flatten().map(String::as_str)).with(self.before.iter());
        // Without scopes the server grants its default; requesting one would narrow it.
        let offline = self.offline && !chosen.is_empty();
        chosen.with(offline.then_some(OFFLINE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selects_scopes_as_specified() {
        let list = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let check = |configured: &str, challenged: &str, supported: Option<&str>, before: &str| {
            let (configured, supported) = (list(configured), supported.map(list));
            let choice = ScopeSelection {
                configured: &configured,
                challenged: Scopes::parse(challenged),
                supported: supported.as_deref(),
                before: Scopes::parse(before),
                offline: false,
            };
            choice.scopes().to_string()
        };
        assert_eq!(check("", "a b", Some("a b c"), ""), "a b");
        assert_eq!(check("", "", Some("a b c"), ""), "a b c");
        assert_eq!(check("", "", None, ""), "");
        assert_eq!(check("", "write", Some("read write"), "read"), "write read");
        assert_eq!(check("mine", "", Some("a b"), ""), "mine");
        assert_eq!(check("mine", "needed", Some("a b"), ""), "mine needed");
        let offline =
            ScopeSelection { challenged: Scopes::parse("a"), offline: true, ..ScopeSelection::default() };
        assert_eq!(offline.scopes().to_string(), "a offline_access");
        let offline = ScopeSelection { offline: true, ..ScopeSelection::default() };
        assert_eq!(offline.scopes().to_string(), "");
    }

    #[test]
    fn compares_scopes_as_sets() {
        let all = Scopes::parse("a b c");
        assert!(all.contains_all(&Scopes::parse("c a")) && all.contains_all(&Scopes::default()));
        assert!(!all.contains_all(&Scopes::parse("a d")));
        assert_eq!(Scopes::parse(" a  b a ").to_string(), "a b");
    }
}
