//! Rewrites phrases for reading something into plain requests: the changes of a commit, a file in a version, a web search,
//! the knowledge graph entries for a name.

use crate::lexer::literal::{Literal, LiteralSpan};
use crate::lexer::name::has_han;
use crate::lexer::token::is_han;
use crate::rewrite::masked_text::{has_word, read_masked};
use crate::selection::verb_class::VERBS;

/// Whether a code is a commit or a version: `9f3c2ab`, `v1.4.0`.
fn is_revision(found: &LiteralSpan) -> bool {
    let Literal::Code(code) = &found.literal else { return false };
    let hash = (7..=40).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_hexdigit());
    let version = code.strip_prefix(['v', 'V']).is_some_and(|rest| {
        rest.starts_with(|c: char| c.is_ascii_digit())
            && rest.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    });
    hash || version
}

fn is_folder(found: &LiteralSpan) -> bool {
    matches!(&found.literal, Literal::Path(path) if crate::lexer::implied::is_bare(path) || path.ends_with('/'))
}

/// 提交 9f3c2ab 里改了什么？仓库在 X, `what did commit 9f3c2ab of X change?`: shows a commit.
pub(crate) fn commit_changes(text: &str) -> Option<String> {
    const QUESTION_WORDS: [&str; 15] = [
        "改了什么",
        "改了啥",
        "改了哪些",
        "改动了什么",
        "动了什么",
        "改了些什么",
        "包含什么",
        "包含了什么",
        "went into",
        "what did commit",
        "what changed in commit",
        "what was changed in commit",
        "what does commit",
        "what's in commit",
        "what is in commit",
    ];
    let (literals, masked) = read_masked(text);
    let [first, second] = literals.as_slice() else { return None };
    let (revision, folder) = match (is_revision(first), is_folder(second)) {
        (true, true) => (first, second),
        _ if is_revision(second) && is_folder(first) => (second, first),
        _ => return None,
    };
    let before = masked[..revision.start].trim_end();
    let after = masked[revision.end..].trim_start();
    let named = ["commit", "提交", "版本", "revision"].iter().any(|word| before.ends_with(word))
        || ["这个提交", "这次提交", "那个提交", "那次提交", "这笔提交", "提交"]
            .iter()
            .any(|word| after.starts_with(word));
    let asks = QUESTION_WORDS.iter().any(|word| masked.contains(word));
    let other = ["分支", "branch", "compare", "对比", "相比", "since", "以来"]
        .iter()
        .any(|word| masked.contains(word));
    (named && asks && !other).then(|| {
        let (revision, folder) = (&text[revision.start..revision.end], &text[folder.start..folder.end]);
        format!("show commit {revision} of the repository {folder}")
    })
}

/// `How does X differ from the branch B?`: compares a repository with a branch.
pub(crate) fn branch_comparison(text: &str) -> Option<String> {
    let (literals, masked) = read_masked(text);
    let [folder, branch] = literals.as_slice() else { return None };
    let lead = ["how does ", "how do ", "in what way does ", "does "]
        .iter()
        .find(|lead| masked.starts_with(**lead) && folder.start >= lead.len())?;
    let kind = masked.get(lead.len()..folder.start)?;
    let named = ["", "the repo ", "the repository ", "the repo at ", "the repo in ", "the repository at "];
    let path = match &folder.literal {
        Literal::Path(_) => is_folder(folder),
        Literal::Code(code) => code.contains('/'),
        _ => false,
    };
    let between = masked.get(folder.end..branch.start)?;
    let joint = [
        " differ from ",
        " differ from the ",
        " differ from branch ",
        " differ from the branch ",
        " compare to ",
        " compare to the branch ",
    ];
    let revision = matches!(branch.literal, Literal::Code(_));
    (path && revision && named.contains(&kind) && joint.contains(&between)).then(|| {
        let (folder, branch) = (&text[folder.start..folder.end], &text[branch.start..branch.end]);
        format!("show the diff with {branch} in the repository {folder}")
    })
}

/// 先切换到 master 分支，再显示最近 2 条提交，仓库是 R: a repository at the end applies to all parts.
pub(crate) fn trailing_repository(text: &str) -> Option<String> {
    const LEADS: [&str; 14] = [
        "，仓库是",
        "，仓库在",
        "，仓库为",
        "，仓库路径是",
        "，仓库：",
        "，仓库地址是",
        "。仓库是",
        "。仓库在",
        "，仓库都是",
        "，代码库是",
        ", the repo is ",
        ". the repo is ",
        ". the repository is ",
        ". the repo is in ",
    ];
    let (literals, masked) = read_masked(text);
    let folder = literals.last().filter(|found| match &found.literal {
        Literal::Path(_) => is_folder(found),
        Literal::Code(code) => code.contains('/'),
        _ => false,
    })?;
    let ends = masked[folder.end..].trim_matches(['.', '。', ' ', '！']).is_empty();
    let head = masked[..folder.start].trim_end();
    let end = LEADS.iter().find_map(|lead| head.strip_suffix(lead.trim_end())).map(str::len)?;
    let prefix = masked.get(..end)?;
    let several = ["，再", "，然后", "，并", "，接着", "，最后", " and then ", ", then "]
        .iter()
        .any(|joint| prefix.contains(joint));
    let other = literals.iter().any(|found| found.end <= end && is_folder(found));
    let (text, folder) = (&text[..end], &text[folder.start..folder.end]);
    let text = text.strip_prefix('先').unwrap_or(text);
    (ends && several && !other).then(|| match has_han(prefix) {
        true => format!("在 {folder} 仓库里，{text}"),
        false => format!("In {folder}, {text}"),
    })
}

/// `check out main there`: names the kind of a common branch.
pub(crate) fn branch_checkout(text: &str) -> Option<String> {
    const BRANCHES: [&str; 8] =
        ["main", "master", "develop", "dev", "staging", "trunk", "production", "release"];
    let (_, masked) = read_masked(text);
    let (at, verb) =
        ["check out ", "checkout "].iter().find_map(|verb| masked.find(verb).map(|at| (at, *verb)))?;
    let is_whole_word = at == 0 || masked[..at].ends_with(' ');
    let start = at + verb.len();
    let branch = BRANCHES
        .iter()
        .filter(|branch| masked[start..].starts_with(**branch))
        .max_by_key(|branch| branch.len())?;
    let end = start + branch.len();
    let rest = masked.get(end..)?;
    let alone = rest.is_empty()
        || rest.starts_with(['.', ',', ';', '!'])
        || rest.starts_with(" there")
        || rest.starts_with(" in ")
        || rest.starts_with(" and ")
        || rest.starts_with(" again");
    (is_whole_word && alone)
        .then(|| format!("{}switch to the branch {}{}", &text[..at], &text[start..end], &text[end..]))
}

/// `the version of F that was in v1.8.0 of X`, v1.4.0 这个版本里的 F: shows a file of a commit.
pub(crate) fn file_of_version(text: &str) -> Option<String> {
    let (literals, masked) = read_masked(text);
    let [_, _, _] = literals.as_slice() else { return None };
    let revision = literals.iter().find(|found| is_revision(found))?;
    let folder = literals.iter().find(|found| is_folder(found))?;
    let file = |found: &&LiteralSpan| matches!(&found.literal, Literal::Path(path) if !path.starts_with(['/', '~']) && !crate::lexer::implied::is_bare(path));
    let file = literals.iter().find(file)?;
    let mentions_revision =
        ["version", "版本", "commit", "提交", "revision", "tag", "标签", "as of", "as it was", "looked"]
            .iter()
            .any(|word| masked.contains(word));
    let words = masked.split(|c: char| !c.is_ascii_alphabetic());
    let is_lookup =
        |classes: &std::collections::BTreeSet<&str>| classes.iter().any(|class| class.starts_with("look_"));
    let changes = words
        .filter(|word| !["commit", "tag", "version", "file"].contains(word))
        .any(|word| VERBS.english.get(word).is_some_and(|classes| !is_lookup(classes)));
    let changes_han = ["改成", "改为", "恢复", "删", "切换", "新建", "复制", "还原", "回退"]
        .iter()
        .any(|word| masked.contains(word));
    (mentions_revision && !changes && !changes_han).then(|| {
        let [revision, file, folder] = [revision, file, folder].map(|found| &text[found.start..found.end]);
        format!("show the file {file} of commit {revision} of the repository {folder}")
    })
}

/// `look up X on the web, ten results`: searches the web for X.
pub(crate) fn web_lookup(text: &str) -> Option<String> {
    const VERBS_OF_SEARCH: [&str; 5] = ["look up ", "search for ", "find ", "look for ", "google "];
    const WEB: [&str; 4] = [" on the web", " on the internet", " online", " on the net"];
    let (literals, masked) = read_masked(text);
    let start = ["please ", "can you ", "could you "]
        .iter()
        .find(|lead| masked.starts_with(**lead))
        .map_or(0, |lead| lead.len());
    let verb = VERBS_OF_SEARCH.iter().find(|verb| masked[start..].starts_with(**verb))?;
    let from = start + verb.len();
    let (at, web) = WEB.iter().find_map(|web| masked[from..].find(web).map(|at| (from + at, *web)))?;
    let query = masked.get(from..at)?;
    let plain = !query.is_empty() && query.split(' ').count() <= 8 && !query.contains([',', ';', '.']);
    let quoted = literals.iter().all(|found| matches!(found.literal, Literal::Quoted(_)));
    (plain && quoted && !has_word(query, "and"))
        .then(|| format!("search the web for {}{}", &text[from..at], &text[at + web.len()..]))
}

/// 沈薇 在知识图谱里都记了些什么？: searches the graph for a name.
pub(crate) fn graph_lookup(text: &str) -> Option<String> {
    const PLACES: [&str; 4] = ["在知识图谱里", "在知识图谱中", "在图谱里", "在图谱中"];
    const QUESTION_WORDS: [&str; 8] = [
        "记了些什么",
        "记了什么",
        "记录了什么",
        "存了什么",
        "存了些什么",
        "有什么内容",
        "有哪些信息",
        "有什么信息",
    ];
    let (at, place) = PLACES.iter().find_map(|place| text.find(place).map(|at| (at, *place)))?;
    let name = text[..at].trim();
    let rest = text[at + place.len()..].trim_start_matches(['都', '面', '，']);
    let asks = QUESTION_WORDS.iter().find_map(|asks| rest.strip_prefix(asks))?;
    let plain = (2..=12).contains(&name.chars().count())
        && name.chars().all(|c| is_han(c) || c.is_alphanumeric() || "“”".contains(c))
        && !["我", "请", "查", "看"].iter().any(|word| name.starts_with(word));
    let ends = asks.trim_matches(['？', '?', '。', '呢', '呀', ' ']).is_empty();
    (plain && ends).then(|| format!("{place}搜索“{}”", name.trim_matches(['“', '”'])))
}

/// 以 develop 为基础, 以“X”为说明提交, 把 F 加入 R 的暂存区: reorders the words around a name for the other rules.
pub(crate) fn reorder_base(text: &str) -> Option<String> {
    let (literals, masked) = read_masked(text);
    if let Some(at) = masked.find("以 ")
        && let Some(end) = masked[at..].find("为基础").map(|end| at + end)
    {
        let name = text.get(at + "以 ".len()..end)?.trim();
        let plain = !name.is_empty() && !name.contains([' ', '，']) && name.is_ascii();
        return plain.then(|| {
            let rest = text[end + "为基础".len()..].trim_start_matches(['，', ',', ' ']);
            format!("{}从 {name} {rest}", &text[..at])
        });
    }
    literals.iter().filter(|found| matches!(found.literal, Literal::Quoted(_))).find_map(|found| {
        let head = masked[..found.start].strip_suffix('以')?;
        let tail = ["为提交说明", "为提交信息", "为说明", "为信息"]
            .iter()
            .find_map(|word| masked[found.end..].strip_prefix(word).map(|_| word.len()))?;
        let (quoted, rest) = (&text[found.start..found.end], &text[found.end + tail..]);
        Some(format!("{}用{quoted}作为说明{rest}", &text[..head.len()]))
    })
}

/// 把 F 加入 R 仓库的暂存区: stages files in a repository.
pub(crate) fn staging(text: &str) -> Option<String> {
    const VERBS: [&str; 6] = ["加入到", "加入", "加到", "加进", "放进", "添加到"];
    let (literals, masked) = read_masked(text);
    let (at, verb) = VERBS.iter().find_map(|verb| masked.find(verb).map(|at| (at, *verb)))?;
    let repository = literals.iter().find(|found| found.start > at && is_folder(found))?;
    let between = masked.get(at + verb.len()..repository.start)?.trim();
    let rest = masked.get(repository.end..)?;
    let area = ["仓库的暂存区", "的暂存区", "仓库暂存区", "暂存区"]
        .iter()
        .find(|area| rest.trim_start().starts_with(**area))?;
    let end = text.len() - rest.trim_start().len() + area.len();
    let files = literals.first().filter(|found| found.end <= at)?;
    let start = masked[..files.start].rfind(['把', '将'])?;
    let named =
        text.get(files.start..at)?.trim().trim_end_matches("这两个文件").trim_end_matches("都").trim();
    let listed = masked.get(files.start..at)?.trim().chars().all(|c| "#和与、跟 ,，都这两个文件".contains(c));
    (between.is_empty() && listed).then(|| {
        let place = &text[repository.start..repository.end];
        format!("{}把 {named} 暂存到 {place}{}", &text[..start], &text[end..])
    })
}

/// `In my course repo under X, …`, `For the blog in X, …`: removes the description of a folder before its path.
pub(crate) fn folder_description(text: &str) -> Option<String> {
    let (literals, masked) = read_masked(text);
    let lead = ["in ", "for ", "inside "].iter().find(|lead| masked.starts_with(**lead))?;
    let folder = literals.first().filter(|found| is_folder(found))?;
    let prefix = masked.get(lead.len()..folder.start)?;
    let (words, _) = [" in ", " under ", " at "]
        .iter()
        .find_map(|joint| prefix.split_once(*joint).filter(|(_, rest)| rest.is_empty()))?;
    let count = words.split(' ').count();
    let plain = (2..=4).contains(&count)
        && ["the ", "my ", "our "].iter().any(|article| words.starts_with(article))
        && words.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b' ')
        && ![
            "sheet", "file", "branch", "entity", "event", "folder", "only", "other", "every", "workbook",
            "email",
        ]
        .iter()
        .any(|word| has_word(words, word));
    let comma = masked[folder.end..].starts_with(", ");
    (plain && comma && !has_han(&masked)).then(|| format!("In {}", &text[folder.start..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewrites_lookup_phrases() {
        let check = |step: fn(&str) -> Option<String>, text: &str, expect: Option<&str>| {
            assert_eq!(step(text).as_deref(), expect, "{text}");
        };
        check(
            commit_changes,
            "提交 9f3c2ab 里到底改了什么？仓库在 /srv/gateway。",
            Some("show commit 9f3c2ab of the repository /srv/gateway"),
        );
        check(commit_changes, "what changed since commit 9f3c2ab in /srv/gateway", None);
        check(
            file_of_version,
            "Show me the version of src/config.toml that was in v1.8.0 of the repository /srv/relay.",
            Some("show the file src/config.toml of commit v1.8.0 of the repository /srv/relay"),
        );
        check(file_of_version, "set the version in src/a.toml to v1.8.0 in /srv/relay", None);
        check(
            web_lookup,
            "look up heat pumps on the web, ten results",
            Some("search the web for heat pumps, ten results"),
        );
        check(web_lookup, "find a.txt on the web", None);
        check(graph_lookup, "沈薇 在知识图谱里都记了些什么？", Some("在知识图谱里搜索“沈薇”"));
        check(graph_lookup, "我们在知识图谱里都记了些什么？", None);
        check(
            reorder_base,
            "以 develop 为基础，在 /srv/a 新建分支 x-1",
            Some("从 develop 在 /srv/a 新建分支 x-1"),
        );
        check(
            staging,
            "先把 src/a.ts 加入 /srv/b 仓库的暂存区，再提交",
            Some("先把 src/a.ts 暂存到 /srv/b，再提交"),
        );
        check(
            folder_description,
            "In my course repo under ~/teaching/algebra, switch to main",
            Some("In ~/teaching/algebra, switch to main"),
        );
        check(folder_description, "In the only sheet in /data/a, delete row 3", None);
    }
}
