//! Source and destination of a transfer: `move A to B`, 把 A 重命名为 B, regardless of the parameter names.

use serde_json::Value as Json;

use crate::lexer::file_extension::is_extension;
use crate::lexer::literal::Literal;
use crate::lexer::mention::{Mention, MentionValue, ParsedText};
use crate::values::candidate::{ArgumentValue, FAIR, GOOD, MatchContext, ValueCandidate};
use crate::values::parameter::Parameter;
use crate::values::role::Role;

/// The end of a transfer that a parameter denotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Source,
    Target,
}

/// A source path and its target path.
struct Transfer<'a> {
    source: &'a Mention,
    target: &'a Mention,
    /// Whether the wording marks the target as a folder.
    into: bool,
}

fn end_of(parameter: &Parameter) -> Option<End> {
    if parameter.role != Role::Path {
        return None;
    }
    if parameter.has_word(&["source", "src", "old", "from", "origin"]) {
        return Some(End::Source);
    }
    parameter.has_word(&["destination", "dest", "dst", "target", "new", "to"]).then_some(End::Target)
}

/// Candidates for a parameter that is one end of a transfer; `None` for other parameters.
pub(crate) fn candidates(parameter: &Parameter, context: &MatchContext<'_>) -> Option<Vec<ValueCandidate>> {
    let end = end_of(parameter)?;
    let transfers = transfers(context.parsed);
    if transfers.is_empty() {
        // 把它改名为 B, `rename it to B`: the only path is the target.
        return only_target(context.parsed).map(|mention| match end {
            End::Source => Vec::new(),
            End::Target => {
                let value = ArgumentValue::FromRequest(Json::from(mentioned_path(mention)));
                vec![ValueCandidate { value, start: mention.start, end: mention.end, score: GOOD + 1.0 }]
            }
        });
    }
    // A tool that fails if the destination exists needs the complete new path, not the folder.
    let tool_has_word = |word: &str| context.tool_words.iter().any(|other| other == word);
    let whole_path = tool_has_word("fail") && tool_has_word("destination");
    let found = transfers.into_iter().map(|transfer| {
        let (source, target) = (mentioned_path(transfer.source), mentioned_path(transfer.target));
        let (mention, value, score) = match end {
            End::Source => (transfer.source, source.to_owned(), GOOD + 1.0),
            End::Target => {
                let folder = target.ends_with('/') || transfer.into;
                let is_moved_in = has_ending(source) && (folder || !has_ending(target));
                let name = source.rsplit(['/', '\\']).next().unwrap_or_default();
                // `rename docs/a.md to b.md`: a file is renamed within its folder.
                let parent =
                    source.rfind('/').filter(|_| !target.contains(['/', '\\']) && renames(context.parsed));
                match (is_moved_in, folder && whole_path) {
                    (false, _) if parent.is_some() => {
                        let parent = &source[..parent.map_or(0, |at| at + 1)];
                        (transfer.target, format!("{parent}{target}"), GOOD + 1.0)
                    }
                    (false, _) => (transfer.target, target.to_owned(), GOOD + 1.0),
                    (true, true) => {
                        (transfer.target, format!("{}/{name}", target.trim_end_matches('/')), GOOD + 1.0)
                    }
                    // Ambiguous: the file may go into the folder or take its name.
                    (true, false) => (transfer.target, target.to_owned(), FAIR),
                }
            }
        };
        ValueCandidate {
            value: ArgumentValue::FromRequest(Json::from(value)),
            start: mention.start,
            end: mention.end,
            score,
        }
    });
    Some(found.collect())
}

/// Whether a parameter is a destination. Only explicit words give it a certain value.
pub(crate) fn is_target(parameter: &Parameter) -> bool {
    end_of(parameter) == Some(End::Target)
}

/// Whether the verb of the request is to rename.
fn renames(parsed: &ParsedText<'_>) -> bool {
    let lower = parsed.text.to_lowercase();
    ["rename", "重命名", "改名", "更名", "改个名", "改叫"].iter().any(|verb| lower.contains(verb))
}

fn mentioned_path(mention: &Mention) -> &str {
    match &mention.value {
        MentionValue::Literal(Literal::Path(text) | Literal::Quoted(text) | Literal::Code(text)) => text,
        _ => "",
    }
}

fn has_ending(path: &str) -> bool {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    name.rsplit_once('.').is_some_and(|(_, extension)| is_extension(&extension.to_lowercase()))
}

/// The only path of a text, if it is the target for a pronoun.
fn only_target<'a>(parsed: &'a ParsedText<'_>) -> Option<&'a Mention> {
    let is_path = |mention: &&Mention| matches!(mention.value, MentionValue::Literal(Literal::Path(_)));
    let mut paths = parsed.mentions.iter().filter(is_path);
    let target = paths.next().filter(|_| paths.next().is_none())?;
    let before = parsed.text.get(..target.start)?.trim_end().to_lowercase();
    let pronoun = ["它", "其"].iter().any(|word| before.contains(word))
        || before.split(|c: char| !c.is_alphanumeric()).any(|word| word == "it" || word == "that");
    let leads =
        ["为", "成", "到", "至", "叫", " to", " as", " into"].iter().any(|word| before.ends_with(word));
    (pronoun && leads).then_some(target)
}

/// The pairs of source and target paths in a text.
fn transfers<'a>(parsed: &'a ParsedText<'_>) -> Vec<Transfer<'a>> {
    let is_path = |mention: &&Mention| match &mention.value {
        MentionValue::Literal(Literal::Path(_)) => true,
        MentionValue::Literal(Literal::Quoted(text)) => text.contains(['/', '\\']) || has_ending(text),
        // `archive/2025`: a relative name with a slash beside a path.
        MentionValue::Literal(Literal::Code(text)) => text.contains('/'),
        _ => false,
    };
    let paths: Vec<&Mention> = parsed.mentions.iter().filter(is_path).collect();
    let mut found = Vec::new();
    for pair in paths.windows(2) {
        let [source, target] = pair else { continue };
        let between = parsed.text.get(source.end..target.start).unwrap_or_default().trim().to_lowercase();
        let after = parsed.text.get(target.end..).unwrap_or_default().trim_start();
        let plain = between.trim_start_matches("over ").trim_start_matches("file ").trim();
        let plain = plain.strip_prefix("in ").map_or(plain, |_| "into").trim();
        let plain = if plain == "in" { "into" } else { plain };
        let english =
            ["to", "into", "as", "->", "→", "to the folder", "into the folder", "to folder", "into folder"];
        let chinese = ["到", "为", "成", "至", "进", "入", "叫", "去"];
        let short = between.chars().count() <= 10 && !between.contains(['，', '。', ',', '、', '和']);
        if !(english.contains(&plain) || short && chinese.iter().any(|word| between.ends_with(word))) {
            continue;
        }
        let into = plain.starts_with("into")
            || plain.contains("folder")
            || between.ends_with(['进', '入'])
            || ["里", "下", "目录", "文件夹", "中", "folder", "directory"]
                .iter()
                .any(|word| after.starts_with(word));
        found.push(Transfer { source, target, into });
    }
    found
}

#[cfg(test)]
mod tests {
    use jiff::civil::Date;
    use serde_json::json;

    use super::*;
    use crate::lexer::labels;
    use crate::values::parameter::parameters;

    #[test]
    fn finds_source_and_destination_of_transfer() {
        let check = |text: &str, expect: &[&str], proven: bool| {
            let schema =
                json!({"properties": {"source": {"type": "string"}, "destination": {"type": "string"}}});
            let parsed = ParsedText::of(text, Date::constant(2026, 1, 15));
            let tool_words = ["fail", "destination"].map(str::to_owned).to_vec();
            let context = MatchContext { parsed: &parsed, stems: labels::stems(&parsed), tool_words };
            let read = parameters(&schema, "Moves a file");
            let found: Vec<ValueCandidate> = read
                .iter()
                .filter_map(|one| candidates(one, &context))
                .filter_map(|all| all.into_iter().next())
                .collect();
            let values: Vec<&str> = found
                .iter()
                .filter_map(|one| match &one.value {
                    ArgumentValue::FromRequest(value) => value.as_str(),
                    ArgumentValue::Result => None,
                })
                .collect();
            assert_eq!(values, expect, "{text}");
            assert_eq!(found.iter().all(|one| one.score >= GOOD), proven, "{text}");
        };
        check("Move /tmp/a.pdf to /srv/b.pdf", &["/tmp/a.pdf", "/srv/b.pdf"], true);
        check("把 a.txt 重命名为 b.txt", &["a.txt", "b.txt"], true);
        check("rename docs/a.md to b.md", &["docs/a.md", "docs/b.md"], true);
        check("move docs/a.md to b.md", &["docs/a.md", "b.md"], true);
        check("move a.txt into /srv/old", &["a.txt", "/srv/old/a.txt"], true);
        check("move a.txt to /srv/old", &["a.txt", "/srv/old"], false);
        check("move a.txt and b.txt", &[], true);
    }
}
