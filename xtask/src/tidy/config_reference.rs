//! Rule: the reference of `toolhub.toml` describes every existing key, and no other.
use std::path::Path;

use super::{
    Finding,
    config_keys::{KEY_LIST_FILE, keys},
    sources::Source,
};

const PAGES: &[&str] = &["docs/reference/config.md", "docs/zh/reference/config.md"];
/// The tables of keys begin at the first heading with this prefix.
const BEGINNING: &str = "## `[";
/// The tables of keys end at this heading.
const END: &str = "## `mcp.json`";
/// Keys of tables that are not in the list: overrides, tokens, `[limits.result]` and grants of skills.
const OTHERS: &[&str] = &[
    "name",
    "title",
    "description",
    "arguments",
    "sha256",
    "roles",
    "profiles",
    "expires",
    "per_day",
    "revoked",
    "groups_claim",
    "typ",
    "audiences",
    "private_network",
    "introspection",
    "endpoint",
    "effect",
    "groups",
    "principals",
    "kinds",
    "scope",
    "calculate",
    "time",
    "search",
    "hits",
    "history",
    "skills",
    "other",
    "read",
    "write",
    "network",
    "environment",
];

pub(super) fn check(files: &[Source]) -> Vec<Finding> {
    let find = |path: &str| files.iter().find(|file| file.path == Path::new(path));
    let Some(list) = find(KEY_LIST_FILE) else { return Vec::new() };
    let keys = keys(&list.text);
    let mut findings = Vec::new();
    for page in PAGES {
        match find(page) {
            Some(file) => findings.extend(faults(page, &file.text, &keys)),
            None => findings.push(Finding::new(page, 1, "is missing: it names every key of `toolhub.toml`")),
        }
    }
    findings
}

fn faults(page: &str, text: &str, keys: &[(usize, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let names = keys.iter().map(|(_, key)| *key).chain(OTHERS.iter().copied());
    for name in names.filter(|name| !is_named(text, name)) {
        findings.push(Finding::new(page, 1, format!("does not name the key `{name}`: describe it")));
    }
    let lines = text.lines().enumerate().skip_while(|(_, line)| !line.starts_with(BEGINNING));
    for (index, line) in lines.take_while(|(_, line)| *line != END) {
        let key = line.strip_prefix("| `").and_then(|rest| rest.split_once("` |"));
        let Some((key, _)) = key else { continue };
        if !OTHERS.contains(&key) && !keys.iter().any(|(_, known)| *known == key) {
            findings.push(Finding::new(page, index + 1, format!("names `{key}`, which is no key")));
        }
    }
    findings
}

/// Whether a page contains the key in backticks, or the table in a heading.
fn is_named(text: &str, name: &str) -> bool {
    text.lines().any(|line| {
        let heading = || line.trim_start_matches('#').trim().trim_matches(['`', '[', ']']);
        line.contains(&format!("`{name}`"))
            || line.starts_with("##") && heading().split('.').any(|part| part == name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_missing_and_unknown_keys() {
        let others: String = OTHERS.iter().map(|key| format!("| `{key}` | |\n")).collect();
        let check = |text: &str| {
            let keys = [(1, "serve"), (2, "bind"), (3, "auth")];
            let found = faults("page", &format!("{text}\n{others}"), &keys);
            found.into_iter().map(|finding| finding.message).collect::<Vec<_>>()
        };
        assert_eq!(check("## `[serve]`\n| `bind` | |\n### `[[auth.tokens]]`"), [""; 0]);
        assert_eq!(
            check("## `[serve]`\n## `[[auth.tokens]]`"),
            ["does not name the key `bind`: describe it"]
        );
        let text = "## `[serve]`\n## `[[auth.tokens]]`\n| `bind` | |\n| `bnd` | |";
        assert_eq!(check(text), ["names `bnd`, which is no key"]);
        assert_eq!(check(&text.replace("| `bnd`", "## `mcp.json`\n| `bnd`")), [""; 0]);
    }
}
