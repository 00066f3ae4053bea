//! Patterns for the tools that an agent may use: names, with `*` for any characters.

/// The tools an agent may use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolAllowlist(Option<Vec<String>>);

impl ToolAllowlist {
    /// Allows the tools that match one of the patterns; an empty list allows all tools.
    pub fn new(names: Vec<String>) -> Self {
        Self((!names.is_empty()).then_some(names))
    }

    /// Allows the tools that match one of the patterns; an empty list allows no tool.
    pub fn only(names: Vec<String>) -> Self {
        Self(Some(names))
    }

    /// Whether all tools are allowed.
    pub fn allows_all(&self) -> bool {
        self.0.is_none()
    }

    /// The patterns that match none of these names.
    pub fn without<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = &'a str> {
        let fits_none = |pattern: &&String| !names.iter().any(|name| fits(pattern, name));
        self.0.iter().flatten().filter(fits_none).map(String::as_str)
    }

    /// Whether the tool of that name is allowed.
    pub fn has(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|patterns| patterns.iter().any(|pattern| fits(pattern, name)))
    }
}

fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(rest) = name.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    let mut rest = rest;
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_names_and_wildcards() {
        let check = |patterns: &[&str], name: &str, expect: bool| {
            let allowlist = ToolAllowlist::new(patterns.iter().map(ToString::to_string).collect());
            assert_eq!(allowlist.has(name), expect, "{patterns:?} {name}");
        };
        check(&[], "anything", true);
        assert!(!ToolAllowlist::only(Vec::new()).has("anything"));
        check(&["calculate"], "calculate", true);
        check(&["calculate"], "calculate2", false);
        check(&["read_*", "get_time"], "read_sheet", true);
        check(&["read_*", "get_time"], "write_sheet", false);
        check(&["*sheet*"], "delete_sheet_rows", true);
        check(&["*"], "x", true);
        check(&["a*b*c"], "axxbyyc", true);
        check(&["a*b*c"], "axxc", false);
        check(&["ab*ba"], "aba", false);
    }
}
