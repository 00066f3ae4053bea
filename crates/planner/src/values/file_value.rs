//! Finds file names and folders in a request that contains no path: `txt files in logs`.

use serde_json::Value as Json;

use crate::lexer::labels::{self, Label};
use crate::lexer::literal::Literal;
use crate::lexer::mention::MentionValue;
use crate::lexer::stop_words;
use crate::lexer::token::{Token, TokenKind};
use crate::values::candidate::{ArgumentValue, GOOD, MatchContext, ValueCandidate};
use crate::values::parameter::Parameter;
use crate::values::role::Role;

/// `xlsx files`, `markdown 文件`: glob patterns from an extension.
pub(crate) fn patterns(context: &MatchContext<'_>) -> Vec<ValueCandidate> {
    let tokens = &context.parsed.tokens;
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let after = tokens.get(at + 1).map_or("", |next| next.text).to_lowercase();
        let kinds = [
            "file",
            "files",
            "格",
            "文",
            "的",
            "图",
            "照",
            "image",
            "images",
            "picture",
            "pictures",
            "photo",
            "photos",
            "document",
            "documents",
            "script",
            "scripts",
            "log",
            "logs",
        ];
        let is_files = kinds.contains(&after.as_str());
        let lower = token.text.to_lowercase();
        let ending = match lower.as_str() {
            "markdown" => "md",
            "python" => "py",
            "rust" => "rs",
            "javascript" => "js",
            "excel" => "xlsx",
            "text" => "txt",
            other if crate::lexer::file_extension::is_extension(other) && other.len() > 1 => other,
            _ => continue,
        };
        if is_files {
            let value = ArgumentValue::FromRequest(Json::from(format!("*.{ending}")));
            found.push(ValueCandidate { value, start: token.start, end: token.end, score: GOOD + 0.2 });
        }
    }
    found
}

/// `files that end in .toml`, 以 .log 结尾的文件: glob patterns from an extension with its dot.
pub(crate) fn ending(context: &MatchContext<'_>) -> Option<ValueCandidate> {
    let text = context.parsed.text;
    text.match_indices('.').find_map(|(at, _)| {
        let word = &text[at + 1..];
        let length = word.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(word.len());
        let before = text[..at].chars().next_back();
        let alone =
            before.is_none_or(|c| c.is_whitespace() || crate::lexer::token::is_han(c) || "“\"'".contains(c));
        let known = crate::lexer::file_extension::is_extension(&word[..length].to_ascii_lowercase());
        let inside = context.parsed.mentions.iter().any(|mention| {
            matches!(mention.value, MentionValue::Literal(_)) && mention.start < at && at < mention.end
        });
        (alone && known && !inside).then(|| ValueCandidate {
            value: ArgumentValue::FromRequest(Json::from(format!("*.{}", &word[..length]))),
            start: at,
            end: at + 1 + length,
            score: GOOD + 0.2,
        })
    })
}

/// `files named X`, 叫 X 的文件: the name of a file to find.
pub(crate) fn named(context: &MatchContext<'_>) -> Vec<ValueCandidate> {
    let tokens = &context.parsed.tokens;
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let plain =
            token.kind == TokenKind::Word && token.text.is_ascii() && !stop_words::is_stop(token.text);
        let before =
            |step: usize| at.checked_sub(step).and_then(|at| tokens.get(at)).map_or("", |token| token.text);
        let called =
            ["named", "called", "叫", "为", "做"].iter().any(|word| before(1).eq_ignore_ascii_case(word));
        let rest = &context.parsed.text[token.end..];
        let file = rest.trim_start().starts_with("的文件")
            || ["file", "files"].contains(&before(2).to_lowercase().as_str());
        if plain && called && file {
            let value = ArgumentValue::FromRequest(Json::from(token.text));
            found.push(ValueCandidate { value, start: token.start, end: token.end, score: GOOD + 0.2 });
        }
    }
    found
}

/// Whether a tool is about mail, whose folders have names instead of paths.
pub(crate) fn is_mail(context: &MatchContext<'_>) -> bool {
    context.tool_words.iter().any(|word| word == "email" || word == "mail" || word == "mailbox")
}

/// `the current directory`, 当前目录: the current folder, for a parameter that takes a folder or a repository.
pub(crate) fn current_folder(parameter: &Parameter, context: &MatchContext<'_>) -> Option<ValueCandidate> {
    const HERE: [&str; 14] = [
        "the current directory",
        "current directory",
        "the current folder",
        "this directory",
        "this folder",
        "this repo",
        "this repository",
        "the current repo",
        "当前目录",
        "当前文件夹",
        "这个目录",
        "当前仓库",
        "本仓库",
        "这个仓库",
    ];
    let takes = parameter.role == Role::Folder
        || parameter.role == Role::Path && parameter.has_word(&["repo", "repository", "directory", "folder"]);
    let parsed = context.parsed;
    let path = |literal: &MentionValue| matches!(literal, MentionValue::Literal(Literal::Path(_)));
    if !takes || parsed.mentions.iter().any(|mention| path(&mention.value)) {
        return None;
    }
    let lower = parsed.text.to_ascii_lowercase();
    let (start, word) = HERE.iter().filter_map(|word| lower.find(word).map(|at| (at, *word))).next()?;
    let value = ArgumentValue::FromRequest(Json::from("."));
    Some(ValueCandidate { value, start, end: start + word.len(), score: GOOD })
}

/// A word beside `folder` or 目录.
pub(crate) fn folders(context: &MatchContext<'_>) -> Vec<ValueCandidate> {
    let labels: Vec<Label> =
        ["folder", "directory", "文件夹", "目录", "under"].iter().map(|name| Label::new(name, 1.0)).collect();
    let mut found = Vec::new();
    for span in labels::find(&labels, context.parsed, &context.stems) {
        let at = context.parsed.token_at(span.start);
        let before = at.checked_sub(1).and_then(|at| context.parsed.tokens.get(at));
        let after = context.parsed.tokens.get(context.parsed.token_at(span.end));
        let is_under = context
            .parsed
            .text
            .get(span.start..span.end)
            .is_some_and(|text| text.eq_ignore_ascii_case("under"));
        let useful = |token: &&Token<'_>| {
            token.kind == TokenKind::Word
                && !stop_words::is_stop(token.text)
                && token.text.is_ascii()
                && !token.is_any(&["files", "file", "list"])
        };
        let token = if is_under { after.filter(useful) } else { before.filter(useful) };
        if let Some(token) = token {
            let value = ArgumentValue::FromRequest(Json::from(token.text));
            found.push(ValueCandidate { value, start: token.start, end: token.end, score: GOOD + 0.2 });
        }
    }
    // `all txt files in logs, …`: the folder after `files in`.
    for window in context.parsed.tokens.windows(3) {
        let [files, inside, folder] = window else { continue };
        let plain =
            folder.kind == TokenKind::Word && folder.text.is_ascii() && !stop_words::is_stop(folder.text);
        if files.is_any(&["files", "file"])
            && inside.is_any(&["in", "inside", "from"])
            && plain
            && !folder.is_any(&["order", "alphabetical", "total"])
        {
            let value = ArgumentValue::FromRequest(Json::from(folder.text));
            found.push(ValueCandidate { value, start: folder.start, end: folder.end, score: GOOD });
        }
    }
    // docs 里所有的 md 文件: the folder before 里.
    for window in context.parsed.tokens.windows(2) {
        let [folder, inside] = window else { continue };
        let plain =
            folder.kind == TokenKind::Word && folder.text.is_ascii() && !stop_words::is_stop(folder.text);
        let files = context.parsed.text[inside.end..].contains("文件");
        let known = crate::lexer::file_extension::is_extension(&folder.text.to_lowercase());
        if plain && files && !known && matches!(inside.text, "里" | "下" | "中" | "内") {
            let value = ArgumentValue::FromRequest(Json::from(folder.text));
            found.push(ValueCandidate { value, start: folder.start, end: folder.end, score: GOOD });
        }
    }
    // `which files are in scripts?`: the last word after `in`.
    if let [.., inside, last] = context
        .parsed
        .tokens
        .iter()
        .filter(|token| token.kind != TokenKind::Mark)
        .collect::<Vec<_>>()
        .as_slice()
        && inside.is_any(&["in", "inside", "within"])
        && last.kind == TokenKind::Word
        && last.text.is_ascii()
        && !stop_words::is_stop(last.text)
        && !last.is_any(&[
            "there",
            "here",
            "order",
            "detail",
            "english",
            "chinese",
            "total",
            "full",
            "folder",
            "directory",
        ])
    {
        let value = ArgumentValue::FromRequest(Json::from(last.text));
        found.push(ValueCandidate { value, start: last.start, end: last.end, score: GOOD });
    }
    found
}

/// Whether the request contains a path without quotes.
pub(crate) fn has_plain_path(context: &MatchContext<'_>) -> bool {
    context
        .parsed
        .mentions
        .iter()
        .any(|mention| matches!(mention.value, MentionValue::Literal(Literal::Path(_))))
}

/// Whether a parameter takes a repository and the request contains a folder that may be one, so that a file does not qualify.
pub(crate) fn names_repository(parameter: &Parameter, context: &MatchContext<'_>) -> bool {
    let folder = |path: &str| {
        crate::lexer::implied::is_bare(path) && !crate::lexer::file_extension::is_bare_file(path)
    };
    parameter.has_word(&["repo", "repository", "project"])
        && context.parsed.mentions.iter().any(
            |mention| matches!(&mention.value, MentionValue::Literal(Literal::Path(path)) if folder(path)),
        )
}
