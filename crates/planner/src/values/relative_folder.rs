//! Relative paths with two components: `projects/thesis` looks like a branch name; the context decides whether it is a folder.

use crate::lexer::literal::Literal;
use crate::lexer::mention::{Mention, MentionValue, ParsedText};
use crate::values::parameter::Parameter;

/// Prefixes of branch and remote names.
const BRANCHES: [&str; 26] = [
    "feature",
    "features",
    "feat",
    "fix",
    "fixes",
    "bugfix",
    "hotfix",
    "release",
    "releases",
    "chore",
    "refactor",
    "spike",
    "origin",
    "upstream",
    "dev",
    "develop",
    "experiment",
    "exp",
    "wip",
    "perf",
    "ci",
    "style",
    "topic",
    "support",
    "task",
    "dependabot",
];
/// Prefixes of IANA time zone names.
const ZONES: [&str; 10] = [
    "africa",
    "america",
    "antarctica",
    "arctic",
    "asia",
    "atlantic",
    "australia",
    "europe",
    "pacific",
    "etc",
];
/// Words directly before a branch or a commit.
const REVISIONS: [&str; 22] = [
    "branch", "branches", "to", "onto", "against", "with", "vs", "from", "off", "called", "named", "commit",
    "revision", "tag", "than", "out", "checkout", "switch", "on", "base", "and", "ref",
];
const HAN_REVISIONS: [&str; 15] =
    ["分支", "到", "回", "从", "基于", "成", "为", "叫", "和", "与", "跟", "比", "切换", "切", "提交"];
/// Words directly before a folder.
const PLACES: [&str; 10] =
    ["in", "of", "inside", "within", "under", "for", "repo", "repository", "folder", "directory"];
const HAN_PLACES: [&str; 5] = ["在", "仓库", "目录", "项目", "文件夹"];
/// Words directly after a folder.
const HAN_AFTER: [&str; 9] = ["里", "中", "下", "上", "仓库", "这个仓库", "目录", "项目", "这个项目"];

/// Whether a name with a slash may be the value of a path parameter; a repository must be a folder.
pub(crate) fn fits(parameter: &Parameter, parsed: &ParsedText<'_>, mention: &Mention) -> bool {
    !parameter.has_word(&["repo", "repository", "project"]) || is_folder(parsed, mention.start, mention.end)
}

/// Whether a name with two components is a folder: its position is that of a place, or the request names no other folder, and
/// no adjacent word marks it as a branch.
pub(crate) fn is_folder(parsed: &ParsedText<'_>, start: usize, end: usize) -> bool {
    let text = parsed.text;
    let (Some(name), Some(before), Some(after)) = (text.get(start..end), text.get(..start), text.get(end..))
    else {
        return false;
    };
    let Some((first, _)) = name.split_once('/') else { return false };
    let first = first.to_ascii_lowercase();
    let before = before.trim_end().to_lowercase();
    let after = after.trim_start();
    let last = before.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    let revision = REVISIONS.contains(&last)
        || HAN_REVISIONS.iter().any(|word| before.ends_with(word))
        || ["branch", "分支"].iter().any(|word| after.starts_with(word));
    if revision || BRANCHES.contains(&first.as_str()) || ZONES.contains(&first.as_str()) {
        return false;
    }
    let placed = PLACES.contains(&last)
        || HAN_PLACES.iter().any(|word| before.ends_with(word))
        || HAN_AFTER.iter().any(|word| after.starts_with(word));
    let other = |mention: &Mention| {
        mention.start != start
            && match &mention.value {
                MentionValue::Literal(Literal::Path(path)) => crate::lexer::implied::is_bare(path),
                MentionValue::Literal(Literal::Code(code)) => code.contains('/'),
                _ => false,
            }
    };
    placed || !parsed.mentions.iter().any(other)
}

#[cfg(test)]
mod tests {
    use jiff::civil::Date;

    use super::*;

    #[test]
    fn distinguishes_relative_folders_from_branches() {
        let check = |text: &str, name: &str, expect: bool| {
            let parsed = ParsedText::of(text, Date::constant(2026, 1, 15));
            let start = text.find(name).unwrap_or_default();
            assert_eq!(is_folder(&parsed, start, start + name.len()), expect, "{text}");
        };
        check("show what is staged in projects/thesis", "projects/thesis", true);
        check("last 25 commits, infra/terraform", "infra/terraform", true);
        check("web/portal 最近 12 条提交记录", "web/portal", true);
        check("create the branch docs/typo in /srv/a", "docs/typo", false);
        check("create docs/typo in projects/alpha", "docs/typo", false);
        check("create docs/typo in projects/alpha", "projects/alpha", true);
        check("what is new in feature/login", "feature/login", false);
        check("把 projects/a 切换到 users/ann", "users/ann", false);
        check("time in Europe/Berlin", "Europe/Berlin", false);
    }
}
