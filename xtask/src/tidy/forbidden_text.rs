//! Rule: no file contains the path of a home directory or the host name of a package registry.
use super::{Finding, sources::Source};

/// A line with this comment may contain such a path as an example.
const EXAMPLE: &str = "tidy: example path";

/// Split into parts, so that this file passes its own rule.
const HOSTS: &[&[&str]] = &[
    &["crates", "io"],
    &["static", "crates", "io"],
    &["pypi", "org"],
    &["registry", "npmjs", "org"],
    &["deb", "debian", "org"],
];

pub(super) fn check(source: &Source) -> Vec<Finding> {
    // Cargo writes the registry of each package into the lock file.
    let hosts: Vec<String> = match source.path.to_str() {
        Some("Cargo.lock") => Vec::new(),
        _ => HOSTS.iter().map(|parts| parts.join(".")).collect(),
    };
    let mut findings = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        let mut found = |message: &str| findings.push(Finding::new(&source.path, index + 1, message));
        if names_home(line) && !line.contains(EXAMPLE) {
            found("names a home folder: write a relative path, or `~`");
        }
        let lower = line.to_ascii_lowercase();
        if hosts.iter().any(|host| lower.contains(host)) {
            found("names the host of a package registry: say `the registry`, or leave it out");
        }
    }
    findings
}

fn names_home(line: &str) -> bool {
    let unix = |folder: &str, rest: fn(&str) -> bool| {
        let head = format!("/{folder}/");
        line.match_indices(&head).any(|(at, head)| starts_path(&line[..at]) && rest(&line[at + head.len()..]))
    };
    unix("root", |_| true)
        || unix("home", has_folder)
        || unix("Users", has_folder)
        || names_windows_home(line)
}

/// `dir/home/x` and `{dir}/home/x` are not absolute paths.
fn starts_path(before: &str) -> bool {
    let inside = |last: char| last.is_alphanumeric() || "_-.})]~*".contains(last);
    !before.ends_with(inside)
}

fn has_folder(rest: &str) -> bool {
    let name = rest.split(|c: char| c.is_whitespace() || "\"'`/".contains(c)).next().unwrap_or_default();
    !name.is_empty() && rest[name.len()..].starts_with('/')
}

fn names_windows_home(line: &str) -> bool {
    ["\\", "\\\\", "/"].iter().any(|separator| {
        let head = format!(":{separator}Users{separator}");
        line.match_indices(&head)
            .any(|(at, _)| line[..at].ends_with(|drive: char| drive.is_ascii_alphabetic()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cases contain `|` for `/` and `!` for `\`, so that this file passes its own rule.
    #[test]
    fn reports_paths_of_home_directories() {
        for (case, expect) in [
            ("see |root|.cargo", true),
            ("file:|||root|x", true),
            ("|home|ann|x", true),
            ("path = \"|Users|ann|x\"", true),
            ("C:!Users!ann", true),
            ("\"d:!!Users!!ann\"", true),
            ("C:|Users|ann", true),
            ("the |home| folder", false),
            ("|home|ann", false),
            ("|rooted|x", false),
            ("dir|root|x", false),
            ("{dir}|home|ann|x", false),
            ("$HOME|x and ~|x", false),
            ("GET |api|users|ann|x", false),
            ("D:!Userspace!x", false),
        ] {
            let line = case.replace('|', "/").replace('!', "\\");
            assert_eq!(names_home(&line), expect, "{line}");
        }
    }

    fn lines_found(path: &str, text: String) -> Vec<usize> {
        check(&Source { path: path.into(), text }).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn reports_hosts_except_in_the_lock_file() {
        for parts in HOSTS {
            let text = format!("a\nhttps://{}/x\n", parts.join("."));
            assert_eq!(lines_found("README.md", text.clone()), [2]);
            assert!(lines_found("Cargo.lock", text).is_empty());
        }
    }

    #[test]
    fn accepts_marked_examples() {
        let path = "|home|ann|x".replace('|', "/");
        assert_eq!(lines_found("a.rs", format!("{path}\n{path} // {EXAMPLE}\n")), [1]);
    }
}
