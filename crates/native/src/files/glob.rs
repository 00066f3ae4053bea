//! Glob patterns for names: `*`, `?`, and `**` for any number of folders.

/// Whether a path matches a pattern. A pattern without `/` is matched against the name only.
pub(super) fn matches(pattern: &str, path: &str) -> bool {
    let path = if pattern.contains('/') { path } else { path.rsplit('/').next().unwrap_or(path) };
    let pattern: Vec<char> = pattern.trim_start_matches("./").chars().collect();
    let path: Vec<char> = path.chars().collect();
    fits(&pattern, &path)
}

/// Backtracks only to the last star: the time is at most the product of the lengths, per kind of star.
fn fits(pattern: &[char], path: &[char]) -> bool {
    let (mut p, mut t) = (0, 0);
    // The positions to resume at after one more character is matched by `*`, and by `**`.
    let mut star: Option<(usize, usize)> = None;
    let mut double: Option<(usize, usize)> = None;
    loop {
        if pattern[p..].starts_with(&['*', '*']) {
            p += 2;
            // `**/` also matches no folder.
            p += usize::from(pattern.get(p) == Some(&'/') && (t == 0 || path[t - 1] == '/'));
            double = Some((p, t));
            star = None;
            continue;
        }
        if pattern.get(p) == Some(&'*') {
            p += 1;
            star = Some((p, t));
            continue;
        }
        match (pattern.get(p), path.get(t)) {
            (None, None) => return true,
            (Some('?'), Some(c)) if *c != '/' => (p, t) = (p + 1, t + 1),
            (Some(a), Some(b)) if a == b => (p, t) = (p + 1, t + 1),
            _ => match (star, double) {
                (Some((after, from)), _) if path.get(from).is_some_and(|c| *c != '/') => {
                    star = Some((after, from + 1));
                    (p, t) = (after, from + 1);
                }
                (_, Some((after, from))) if from < path.len() => {
                    star = None;
                    double = Some((after, from + 1));
                    (p, t) = (after, from + 1);
                }
                _ => return false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names_and_paths() {
        let check = |pattern: &str, path: &str, expect: bool| {
            assert_eq!(matches(pattern, path), expect, "{pattern} {path}");
        };
        check("*.txt", "a.txt", true);
        check("*.txt", "docs/a.txt", true);
        check("*.txt", "a.txt.bak", false);
        check("报告*", "docs/报告2026.md", true);
        check("?.md", "中.md", true);
        check("?.md", "ab.md", false);
        check("docs/*.md", "docs/a.md", true);
        check("docs/*.md", "docs/sub/a.md", false);
        check("docs/**/*.md", "docs/sub/deep/a.md", true);
        check("docs/**/*.md", "docs/a.md", true);
        check("**/*.md", "a.md", true);
        check("**", "any/thing", true);
        check("a*b*c", "axxbxxc", true);
        check("a*b*c", "axxbxx", false);
        check("", "a", false);
        check("*", "", true);
        check("./*.md", "a.md", true);
        let many = "*a".repeat(200);
        check(&many, &"a".repeat(5_000), true);
        check(&(many + "b"), &"a".repeat(5_000), false);
    }
}
