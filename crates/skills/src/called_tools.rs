//! The tools that a script names, found in its text: what its author lets it call, for a person who decides about it. What it may
//! call is decided when it calls.

use std::collections::BTreeSet;

/// The calls that occur in the text of a script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CalledTools {
    /// The tools as it writes them, such as `tools.shop.list_orders`.
    pub names: BTreeSet<String>,
    /// Whether it may call others, whose names it computes.
    pub has_others: bool,
}

impl CalledTools {
    /// Reads the text of a script. Names in comments and strings count, too.
    pub fn in_script(code: &str) -> Self {
        let mut found = Self::default();
        for (at, _) in code.match_indices("tools") {
            let before = code.get(..at).unwrap_or_default().trim_end().chars().next_back();
            let rest = code.get(at + "tools".len()..).unwrap_or_default();
            if before.is_some_and(|c| {
                is_name(c) && !code.get(..at).unwrap_or_default().ends_with(char::is_whitespace)
            }) || before == Some('.')
                || rest.starts_with(is_name)
            {
                continue;
            }
            match member(rest) {
                Some((first, rest)) => {
                    let second =
                        rest.strip_prefix('.').map(|rest| name_of(rest).0).filter(|name| !name.is_empty());
                    let name = second.map_or_else(|| first.clone(), |second| format!("{first}.{second}"));
                    found
                        .names
                        .insert(format!("tools{}{name}", if name.starts_with('[') { "" } else { "." }));
                }
                None => found.has_others = true,
            }
        }
        found
    }
}

/// The member that a text accesses first, and the text behind it. `None` if its name is computed.
fn member(rest: &str) -> Option<(String, &str)> {
    let rest = rest.trim_start();
    if let Some(inside) = rest.strip_prefix('[') {
        let inside = inside.trim_start();
        let quote = inside.chars().next().filter(|c| ['"', '\''].contains(c))?;
        let (name, behind) = inside.get(1..)?.split_once(quote)?;
        let behind = behind.trim_start().strip_prefix(']')?;
        return Some((format!("[\"{name}\"]"), behind));
    }
    let rest = rest.strip_prefix("?.").or_else(|| rest.strip_prefix('.'))?;
    let (name, behind) = name_of(rest.trim_start());
    (!name.is_empty()).then(|| (name.to_owned(), behind))
}

fn name_of(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c| !is_name(c)).unwrap_or(text.len()))
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_named_tools_and_computed_names() {
        let check = |code: &str, names: &[&str], has_others: bool| {
            let found = CalledTools::in_script(code);
            assert_eq!(found.names.iter().map(String::as_str).collect::<Vec<_>>(), names, "{code}");
            assert_eq!(found.has_others, has_others, "{code}");
        };
        check("await tools.shop.list_orders({})", &["tools.shop.list_orders"], false);
        check("return tools.calculate({ a: 1 })", &["tools.calculate"], false);
        check(
            "await tools['get-item']({}); tools[ \"a\" ].b()",
            &["tools[\"a\"].b", "tools[\"get-item\"]"],
            false,
        );
        check("tools[input.name]({})", &[], true);
        check("const { shop } = tools; shop.x()", &[], true);
        check("my_tools.a(); x.tools.b(); toolset.c()", &[], false);
        check("", &[], false);
    }
}
