//! Names of branches, tags and commits: words beside `branch` or 分支, and after `to`, `from` and `against`.

use serde_json::Value as Json;

use crate::lexer::literal::Literal;
use crate::lexer::mention::{MentionValue, ParsedText};
use crate::lexer::stop_words::is_stop;
use crate::lexer::token::{Token, TokenKind, is_han};
use crate::values::candidate::{ArgumentValue, GOOD, MatchContext, ValueCandidate};
use crate::values::parameter::Parameter;

/// Words directly before a name.
const LEADS: [&str; 22] = [
    "branch", "to", "into", "against", "with", "vs", "commit", "revision", "tag", "at", "ref", "分支", "到",
    "回", "和", "与", "跟", "比", "提交", "标签", "版本", "成",
];
/// Words directly before the name of a base.
const BASES: [&str; 8] = ["from", "off", "on", "从", "基于", "于", "base", "of"];
/// Words between a lead and the name.
const BETWEEN: [&str; 14] =
    ["called", "named", "the", "a", "new", ":", "：", "叫", "名", "为", "做", "是", "=", "branch"];
/// Words directly after a name.
const AFTER: [&str; 2] = ["branch", "分"];
/// Words in the position of a name that are not names.
const NO_NAMES: [&str; 28] = [
    "branch",
    "branches",
    "commit",
    "commits",
    "repo",
    "repository",
    "git",
    "it",
    "there",
    "changes",
    "message",
    "staged",
    "remote",
    "local",
    "lines",
    "context",
    "new",
    "create",
    "make",
    "start",
    "cut",
    "open",
    "off",
    "based",
    "called",
    "named",
    "everything",
    "all",
];

/// All names of branches, tags or commits that are candidates for a parameter.
pub(crate) fn candidates(parameter: &Parameter, context: &MatchContext<'_>) -> Vec<ValueCandidate> {
    let parsed = context.parsed;
    let is_base = parameter.has_word(&["base", "from", "source", "start"]);
    let mut found: Vec<ValueCandidate> = Vec::new();
    if let Some(of_file) = file_at(parameter, context) {
        found.push(of_file);
        return found;
    }
    for (at, token) in parsed.tokens.iter().enumerate() {
        let Some(end) = name_end(parsed, token) else { continue };
        if crate::values::relative_folder::is_folder(parsed, token.start, end) {
            continue;
        }
        let name = parsed.text.get(token.start..end).unwrap_or_default();
        if found.iter().any(|other| token.start < other.end)
            || NO_NAMES.contains(&name.to_lowercase().as_str())
        {
            continue;
        }
        // `want to look at commit X`: a verb is not a name.
        if !is_code(name) && crate::lexer::split::is_verb(name) {
            continue;
        }
        let lead = lead(parsed, at);
        let follows =
            |leads: &[&str]| lead.is_some_and(|lead| lead.is_any(leads)) || ends_with(parsed, at, leads);
        let next = parsed.tokens.get(parsed.token_at(end)).filter(|next| next.start >= end);
        let named = next.is_some_and(|next| next.is_any(&AFTER));
        let coded = is_code(name);
        let score = match (is_base, follows(&BASES)) {
            (true, true) => GOOD + 0.5,
            (true, false) => continue,
            (false, true) if !coded || has_new_name(parsed, at) => continue,
            (false, _) if follows(&LEADS) || named || is_called(parsed, at) => GOOD + 0.3,
            (false, _) if coded => GOOD,
            (false, _) => continue,
        };
        let value = ArgumentValue::FromRequest(Json::from(name));
        found.push(ValueCandidate { value, start: token.start, end, score });
    }
    found
}

/// `README.md as it was in v2.1`: a file at a commit, for a tool that takes both in one string.
fn file_at(parameter: &Parameter, context: &MatchContext<'_>) -> Option<ValueCandidate> {
    let tool_has_word = |word: &str| context.tool_words.iter().any(|other| other == word);
    if !parameter.has_word(&["revision"]) || !tool_has_word("path") || !tool_has_word("written") {
        return None;
    }
    let parsed = context.parsed;
    let file = parsed.mentions.iter().find_map(|mention| match &mention.value {
        MentionValue::Literal(Literal::Path(path))
            if !path.starts_with(['/', '~']) && !path.ends_with('/') =>
        {
            Some((mention, path))
        }
        _ => None,
    })?;
    let revision = parsed.tokens.iter().find_map(|token| {
        let end = name_end(parsed, token)?;
        let name = parsed.text.get(token.start..end)?;
        let apart = token.start >= file.0.end || end <= file.0.start;
        (is_code(name) && apart).then_some((token.start, end, name))
    })?;
    let value = ArgumentValue::FromRequest(Json::from(format!("{}:{}", revision.2, file.1)));
    let (start, end) = (revision.0.min(file.0.start), revision.1.max(file.0.end));
    Some(ValueCandidate { value, start, end, score: GOOD + 1.0 })
}

/// `create branch X from Y`: whether the request gives the name of a new branch as well.
fn has_new_name(parsed: &ParsedText<'_>, at: usize) -> bool {
    parsed.tokens[..at].iter().any(|token| token.is_word("branch"))
        || parsed.tokens[at..].windows(2).any(|pair| pair[0].text == "分" && pair[1].text == "支")
}

/// 建一个叫 X 的新分支: whether a naming verb precedes a name in a request about branches.
fn is_called(parsed: &ParsedText<'_>, at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|at| parsed.tokens.get(at));
    let called = before.is_some_and(|token| token.is_any(&["called", "named", "叫", "名", "为"]));
    called && (parsed.text.contains("分支") || parsed.tokens.iter().any(|token| token.is_word("branch")))
}

/// The end of the name that starts at a token; `None` if no name can start there.
fn name_end(parsed: &ParsedText<'_>, token: &Token<'_>) -> Option<usize> {
    let literal = parsed.mentions.iter().find(|mention| {
        matches!(mention.value, MentionValue::Literal(_))
            && mention.start < token.end
            && token.start < mention.end
    });
    if let Some(mention) = literal {
        let code =
            matches!(mention.value, MentionValue::Literal(Literal::Code(_))) && mention.start == token.start;
        return code.then(|| extended(parsed, mention.end));
    }
    (token.kind == TokenKind::Word && token.text.is_ascii() && !is_stop(token.text))
        .then(|| extended(parsed, token.end))
}

/// Extends a name with adjacent characters: `HEAD~2`, `v1.4^`, and Chinese characters after a separator: `feature/支付`.
fn extended(parsed: &ParsedText<'_>, end: usize) -> usize {
    let rest = parsed.text.get(end..).unwrap_or_default();
    let mut before = ' ';
    let more = rest
        .char_indices()
        .find(|(_, c)| {
            let joined = is_han(*c) && *c != '的' && ("/-_".contains(before) || is_han(before));
            let fits = c.is_ascii_alphanumeric() || "~^-_/.".contains(*c) || joined;
            before = *c;
            !fits
        })
        .map_or(rest.len(), |(at, _)| at);
    let name = rest[..more].trim_end_matches("分支");
    end + name.trim_end_matches(['.', '-', '/']).len()
}

/// Whether a name is certainly a revision: it contains a slash, or is a hash, a version or `HEAD`.
fn is_code(name: &str) -> bool {
    let hash = (7..=40).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_hexdigit())
        && name.bytes().any(|byte| byte.is_ascii_digit());
    let version = name.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    name.contains('/') || hash || version || name.starts_with("HEAD")
}

/// The word that introduces the name at a token.
fn lead<'a>(parsed: &'a ParsedText<'_>, at: usize) -> Option<&'a Token<'a>> {
    let mut at = at.checked_sub(1)?;
    // `branch called X`: skips words between lead and name, except `branch`, which is a lead itself.
    while parsed.tokens.get(at)?.is_any(&BETWEEN) && !parsed.tokens[at].is_word("branch") {
        at = at.checked_sub(1)?;
    }
    parsed.tokens.get(at)
}

/// Whether one of the Chinese leads stands directly before a name.
fn ends_with(parsed: &ParsedText<'_>, at: usize, leads: &[&str]) -> bool {
    let before = parsed.tokens.get(at).and_then(|token| parsed.text.get(..token.start)).unwrap_or_default();
    let before = before.trim_end().trim_end_matches(['：', ':', '叫', '为', '是']).trim_end();
    leads.iter().any(|lead| !lead.is_ascii() && before.ends_with(lead))
}

#[cfg(test)]
mod tests {
    use jiff::civil::Date;
    use serde_json::json;

    use super::*;
    use crate::lexer::labels;
    use crate::values::parameter::parameters;

    #[test]
    fn finds_branch_names() {
        let check = |name: &str, text: &str, expect: Option<&str>| {
            let schema = json!({"properties": {name: {"type": "string"}}});
            let parsed = ParsedText::of(text, Date::constant(2026, 1, 15));
            let context =
                MatchContext { parsed: &parsed, stems: labels::stems(&parsed), tool_words: Vec::new() };
            let found = candidates(&parameters(&schema, "")[0], &context);
            let best = found.iter().max_by(|a, b| a.score.total_cmp(&b.score));
            let best = best.map(|best| match &best.value {
                ArgumentValue::FromRequest(value) => value.as_str().unwrap_or_default().to_owned(),
                ArgumentValue::Result => String::new(),
            });
            assert_eq!(best.as_deref(), expect, "{text}");
        };
        check("branch_name", "new branch hotfix/2.4.1 off release/2.4 in /repos/shop", Some("hotfix/2.4.1"));
        check("branch_name", "make a new branch called fix-9 from main", Some("fix-9"));
        check("branch_name", "在 /srv/店 新建分支 feature/支付", Some("feature/支付"));
        check("branch_name", "checkout 到 feature/v2.0-重构 这个 branch", Some("feature/v2.0-重构"));
        check("branch_name", "switch /repos/shop to develop", Some("develop"));
        check("branch_name", "/srv/shop 切到 release/1.8", Some("release/1.8"));
        check("branch_name", "create a branch called fix-7 from main in /srv/shop", Some("fix-7"));
        check("base_branch", "create a branch called fix-7 from main in /srv/shop", Some("main"));
        check("base_branch", "从 release/3.0 拉一个新分支 hotfix/3.0.2", Some("release/3.0"));
        check("branch_name", "从 release/3.0 拉一个新分支 hotfix/3.0.2", Some("hotfix/3.0.2"));
        check("revision", "show commit HEAD~2 of /srv/shop", Some("HEAD~2"));
        check("revision", "show the changes", None);
    }
}
