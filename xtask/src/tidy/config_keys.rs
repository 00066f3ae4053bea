//! Checks that some test sets each key of `toolhub.toml`: an untested key may stop working unnoticed.

use super::{Finding, sources::Source};

/// The file that lists the known keys.
pub(super) const KEY_LIST_FILE: &str = "crates/toolhub/src/settings/known_keys.rs";
/// Keys that no test sets, each with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[(
    "private_network",
    "needs a server at a private address; `oauth::address` tests which addresses are private",
)];

pub(super) fn check(files: &[Source]) -> Vec<Finding> {
    let Some(list) = files.iter().find(|file| file.path.ends_with(KEY_LIST_FILE)) else { return Vec::new() };
    let tests: Vec<&str> = files.iter().filter_map(|file| test_text(file)).collect();
    let mut findings = Vec::new();
    for (line, key) in keys(&list.text) {
        let is_excepted = EXCEPTIONS.iter().any(|(excepted, _)| *excepted == key);
        let is_tested = tests.iter().any(|text| sets(text, key));
        if is_tested == is_excepted {
            let message = match is_tested {
                false => {
                    format!("no test sets `{key}`: write one, or name it with its reason in `EXCEPTIONS`")
                }
                true => format!("`{key}` is set by a test now: remove it from `EXCEPTIONS`"),
            };
            findings.push(Finding::new(KEY_LIST_FILE, line, message));
        }
    }
    findings
}

/// The test code of a file: the whole file in a folder `tests` or named `tests.rs`, else everything from `#[cfg(test)]` on.
fn test_text(file: &Source) -> Option<&str> {
    let path = file.path.to_string_lossy();
    let is_rust = path.starts_with("crates/") && path.ends_with(".rs");
    if !is_rust || path.ends_with(KEY_LIST_FILE) {
        return None;
    }
    if path.contains("/tests/") || path.ends_with("/tests.rs") {
        return Some(&file.text);
    }
    file.text.find("#[cfg(test)]").map(|at| &file.text[at..])
}

/// The string literals in the tables of keys, with their line numbers.
pub(super) fn keys(list: &str) -> Vec<(usize, &str)> {
    let mut keys = Vec::new();
    let mut is_table = false;
    for (number, line) in list.lines().enumerate() {
        // `USER_NAMED_TABLES` lists tables, `RENAMED` old names.
        let lists_keys = !line.starts_with("const USER_NAMED_TABLES") && !line.starts_with("const RENAMED");
        is_table |= line.starts_with("const ") && lists_keys;
        if is_table {
            let texts = line.split('"').skip(1).step_by(2);
            keys.extend(texts.filter(|text| !text.is_empty()).map(|text| (number + 1, text)));
        }
        is_table &= !line.trim_end().ends_with("];");
    }
    keys
}

/// Whether `text` sets `key` in TOML syntax: `key =`, `[key]`, `[key.…]`, `[….key]` or `[[key]]`.
fn sets(text: &str, key: &str) -> bool {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    text.match_indices(key).any(|(at, _)| {
        // A string literal contains a line break as the escape `\n`.
        let (before, after) = (&text[..at], &text[at + key.len()..]);
        let begins = before.ends_with("\\n") || !before.ends_with(is_word);
        let is_header = before.ends_with(['[', '.']) && after.starts_with([']', '.']);
        begins && (is_header || after.trim_start_matches(' ').starts_with('=') && !after.starts_with(" =="))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.to_owned() }
    }

    #[test]
    fn reports_key_that_no_test_sets() {
        let list = "const USER_NAMED_TABLES: [&str; 1] = [\"agents\"];\nconst A: [&str; 2] = [\n    \"bind\",\n    \"drain\",\n];\n\
                    fn f() { \"nothing\"; }\n";
        let check = |test: &str| {
            let files = [file(KEY_LIST_FILE, list), file("crates/cli/tests/a.rs", test)];
            check(&files).into_iter().map(|finding| (finding.line, finding.message)).collect::<Vec<_>>()
        };
        assert_eq!(check(r#"f("[serve]\nbind = \"x\"\ndrain=\"1s\"")"#), []);
        let found = check(r#"let rebind = 1; f("drain = 2 == bind")"#);
        assert_eq!(found.len(), 1);
        assert!(found[0].0 == 3 && found[0].1.contains("no test sets `bind`"), "{found:?}");
    }

    #[test]
    fn accepts_table_headers_as_set_keys() {
        for text in ["[limits]", "[serve.limits]", "[[limits]]", "limits = 1", "\\nlimits=2"] {
            assert!(sets(text, "limits"), "{text}");
        }
        for text in ["limits", "unlimits = 1", "limits == 1", "limits_of = 1"] {
            assert!(!sets(text, "limits"), "{text}");
        }
    }

    #[test]
    fn ignores_code_outside_of_tests() {
        assert_eq!(test_text(&file("crates/a/src/b.rs", "x = 1;")), None);
        assert_eq!(test_text(&file("crates/a/src/b.rs", "x\n#[cfg(test)]\ny")), Some("#[cfg(test)]\ny"));
        assert_eq!(test_text(&file("docs/a.md", "#[cfg(test)]")), None);
    }
}
