//! The kinds of objects that paths and identifiers imply by their form: a workbook, a folder, an event.

use crate::lexer::lexicon;
use crate::lexer::mention::ParsedText;
use crate::lexer::token::{Token, is_han, tokenize};

/// Whether a path has neither an extension nor a trailing separator.
pub(crate) fn is_bare(path: &str) -> bool {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    !name.is_empty() && !name.contains('.')
}

pub(crate) fn of_file(path: &str) -> &'static str {
    let ending = path.rsplit('.').next().unwrap_or_default().to_lowercase();
    match ending.as_str() {
        "xlsx" | "xls" | "xlsm" => "workbook",
        "jpg" | "jpeg" | "png" | "gif" | "webp" | "bmp" => "picture",
        "mp4" | "mov" | "avi" => "video",
        _ if path.ends_with('/') => "folder",
        _ => "file",
    }
}

/// `evt_310`, `msg-12`: the kinds of objects that the prefix of an identifier denotes.
pub(crate) fn of_code(code: &str) -> Vec<usize> {
    let letters: String = code.chars().take_while(char::is_ascii_lowercase).collect();
    let rest = &code[letters.len()..];
    if letters.len() < 2 || !rest.starts_with(['-', '_']) || !rest.contains(|c: char| c.is_ascii_digit()) {
        return Vec::new();
    }
    let word_matches = lexicon::word_matches(&letters, &tokenize(&letters), &|_| false);
    word_matches.into_iter().flat_map(|word_match| word_match.meaning.things).collect()
}

/// Whether a code has the form of a tool name: lower-case words joined by `_`.
pub(crate) fn is_tool_name(code: &str) -> bool {
    let plain = code.contains('_') && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    // `node_modules` does not begin with a verb.
    let first = code.split('_').next().unwrap_or_default();
    plain
        && lexicon::word_matches(first, &tokenize(first), &|_| false)
            .iter()
            .any(|word_match| !word_match.meaning.verbs.is_empty())
}

/// Whether a word is a proper name, such as a capitalised word inside a sentence.
pub(crate) fn is_own_name(parsed: &ParsedText<'_>, token: &Token<'_>) -> bool {
    if token.text.starts_with(is_han) {
        return is_han_name(parsed.text, token.start);
    }
    // `type server`: the name of a type implies no action.
    let before = parsed.text[..token.start].trim_end();
    if before.ends_with(" type") || before.ends_with("类型") {
        return true;
    }
    if !token.is_capital() || token.is_word("Excel") {
        return false;
    }
    let before = parsed.text[..token.start].trim_end();
    !(before.is_empty()
        || before.ends_with(['.', '?', '!', ':', ',', ';', '"', '，', '。', '：', '！', '？', '-', '\n'])
        || before.ends_with(is_han))
        && token.text.chars().skip(1).any(char::is_lowercase)
}

/// 删除实体 旧服务器, 支付网关 这个节点: Chinese characters between blanks beside the noun for their kind.
fn is_han_name(text: &str, at: usize) -> bool {
    let start = text[..at]
        .rfind(|c: char| !is_han(c))
        .map_or(0, |mark| mark + text[mark..].chars().next().map_or(1, char::len_utf8));
    let rest = &text[start..];
    let length = rest.find(|c: char| !is_han(c)).unwrap_or(rest.len());
    if !crate::lexer::name::stands_alone(text, start, length) {
        return false;
    }
    let (before, after) = (text[..start].trim_end(), text[start + length..].trim_start());
    ["实体", "节点", "名称", "名为", "叫"].iter().any(|kind| before.ends_with(kind))
        || ["这个节点", "这个实体", "那个节点", "那个实体", "节点", "实体"]
            .iter()
            .any(|kind| after.starts_with(kind))
}
