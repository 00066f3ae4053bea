//! Patterns for names, and how certain a match is.

use std::borrow::Cow;

use toolhub_core::json::fold_key;

/// How certain a match is. A presumed match holds and forbids, and never grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Certainty {
    /// Matches only if letter case is ignored, or by the assumption that a missing value is the dangerous one.
    Presumed,
    /// Matches exactly.
    Certain,
}

/// A name, with its form for comparison without letter case.
#[derive(Debug, Clone)]
pub(crate) struct FoldedName<'a> {
    text: Cow<'a, str>,
    /// `None` if equal to the text.
    folded: Option<Box<str>>,
    trust: NameTrust,
}

/// Whether a match with a name can grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameTrust {
    Always,
    /// Only for a rule that names the server: another server may have a tool of this name.
    WithServer,
    Never,
}

impl<'a> FoldedName<'a> {
    pub(crate) fn new(text: Cow<'a, str>) -> Self {
        let is_folded = text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
        let folded = (!is_folded).then(|| fold_key(&text).into());
        Self { text, folded, trust: NameTrust::Always }
    }

    /// A name that its server chose and that may look like one of another server: a match with it never grants.
    pub(crate) fn presumed(text: Cow<'a, str>) -> Self {
        Self { trust: NameTrust::Never, ..Self::new(text) }
    }

    /// A name whose parts can be read as another server and tool: a match with it grants only for a rule that names the server.
    pub(crate) fn ambiguous(text: Cow<'a, str>) -> Self {
        Self { trust: NameTrust::WithServer, ..Self::new(text) }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn folded(&self) -> &str {
        self.folded.as_deref().unwrap_or(&self.text)
    }
}

/// A literal part of a pattern, folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor<'a> {
    /// The pattern has no wildcard.
    Whole(&'a str),
    /// Names start with this text.
    Prefix(&'a str),
    /// Names end with this text.
    Suffix(&'a str),
    /// The pattern starts and ends with a wildcard.
    None,
}

/// A text of a rule that names are compared with.
#[derive(Debug)]
pub(crate) struct Pattern {
    name: FoldedName<'static>,
    /// Whether `*` stands for any text.
    has_wildcard: bool,
}

impl Pattern {
    /// A pattern in which `*` stands for any text.
    pub(crate) fn glob(text: &str) -> Self {
        Self { has_wildcard: text.contains('*'), ..Self::literal(text) }
    }

    /// A pattern without wildcards.
    pub(crate) fn literal(text: &str) -> Self {
        Self { name: FoldedName::new(Cow::Owned(text.to_owned())), has_wildcard: false }
    }

    pub(crate) fn text(&self) -> &str {
        self.name.text()
    }

    /// Compares a name. A name that matches exactly also matches without letter case, because characters are folded
    /// one by one.
    pub(crate) fn matches(&self, name: &FoldedName<'_>) -> Option<Certainty> {
        let compare =
            if self.has_wildcard { glob_matches } else { |pattern: &str, name: &str| pattern == name };
        if !compare(self.name.folded(), name.folded()) {
            return None;
        }
        let is_exact = compare(self.name.text(), name.text());
        Some(if is_exact { Certainty::Certain } else { Certainty::Presumed })
    }

    /// What every matching name has in common.
    pub(crate) fn anchor(&self) -> Anchor<'_> {
        let folded = self.name.folded();
        if !self.has_wildcard {
            return Anchor::Whole(folded);
        }
        let (prefix, suffix) = (folded.split('*').next(), folded.rsplit('*').next());
        match (prefix.unwrap_or_default(), suffix.unwrap_or_default()) {
            ("", "") => Anchor::None,
            ("", suffix) => Anchor::Suffix(suffix),
            (prefix, _) => Anchor::Prefix(prefix),
        }
    }
}

/// The best match of any name with any pattern.
pub(crate) fn match_any(patterns: &[Pattern], names: &[FoldedName<'_>]) -> Option<Certainty> {
    match_item_names(patterns, names, false)
}

/// The best match of any name of an item with any pattern of a rule; `names_server` if the rule names the server of the item.
pub(crate) fn match_item_names(
    patterns: &[Pattern],
    names: &[FoldedName<'_>],
    names_server: bool,
) -> Option<Certainty> {
    let is_trusted = |name: &FoldedName<'_>| match name.trust {
        NameTrust::Always => true,
        NameTrust::WithServer => names_server,
        NameTrust::Never => false,
    };
    let mut best = None;
    for pattern in patterns {
        for name in names {
            match pattern.matches(name) {
                Some(Certainty::Certain) if is_trusted(name) => return Some(Certainty::Certain),
                Some(Certainty::Certain | Certainty::Presumed) => best = Some(Certainty::Presumed),
                None => {}
            }
        }
    }
    best
}

/// Whether `*` in the pattern can stand for texts so that it equals the name. Time is at most the product of the
/// lengths: only the last `*` is ever extended.
fn glob_matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    // Most patterns of a large rule set differ in the last character already.
    if pattern.last().is_some_and(|last| *last != b'*' && name.last() != Some(last)) {
        return false;
    }
    let (mut at, mut position) = (0, 0);
    let mut restart: Option<(usize, usize)> = None;
    while position < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                restart = Some((at, position));
                at += 1;
            }
            Some(byte) if *byte == name[position] => {
                at += 1;
                position += 1;
            }
            _ => {
                let Some((star, start)) = restart else { return false };
                restart = Some((star, start + 1));
                at = star + 1;
                position = start + 1;
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stand_for_any_text() {
        let check = |pattern: &str, name: &str, expect: Option<Certainty>| {
            let name = FoldedName::new(Cow::Borrowed(name));
            assert_eq!(Pattern::glob(pattern).matches(&name), expect, "{pattern} {name:?}");
        };
        let (certain, presumed) = (Some(Certainty::Certain), Some(Certainty::Presumed));
        check("*", "", certain);
        check("a*", "a", certain);
        check("a*c", "abc", certain);
        check("a*c", "abcd", None);
        check("*delete*", "files__delete_all", certain);
        check("*ab*ab", "abab", certain);
        check("*ab*ab", "ab", None);
        check("a**b", "ab", certain);
        check("a?c", "abc", None);
        check("Delete_*", "delete_file", presumed);
        check("delete_*", "DELETE_FILE", presumed);
        check("\u{17f}end", "SEND", presumed);
        check("数据*", "数据库", certain);
        check("", "", certain);
    }

    #[test]
    fn a_literal_has_no_wildcards() {
        let pattern = Pattern::literal("a*");
        assert_eq!(pattern.matches(&FoldedName::new(Cow::Borrowed("ab"))), None);
        assert_eq!(pattern.anchor(), Anchor::Whole("a*"));
        assert_eq!(Pattern::glob("A*b*").anchor(), Anchor::Prefix("a"));
        assert_eq!(Pattern::glob("A*b").anchor(), Anchor::Prefix("a"));
        assert_eq!(Pattern::glob("*a*B").anchor(), Anchor::Suffix("b"));
        assert_eq!(Pattern::glob("*a*").anchor(), Anchor::None);
    }
}
