//! Free text in a request: the text after a label, between function words, or left as a search query.

use crate::lexer::labels::LabelSpan;
use crate::lexer::mention::ParsedText;
use crate::lexer::name::{has_han, stands_alone};
use crate::lexer::stop_words::is_stop;
use crate::lexer::token::{Token, TokenKind};
use crate::values::search_words::{CLOSINGS, FOUND_HAN, HAN_OPENINGS, OPENINGS, SEARCHING, SEARCHING_HAN};

/// A piece of free text with its byte range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Phrase<'a> {
    pub(crate) text: &'a str,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The preposition before it: `of`, `about`.
    pub(crate) after: Option<String>,
}

/// Prepositions before a noun phrase.
const BEFORE_THINGS: [&str; 14] =
    ["of", "about", "for", "on", "in", "at", "from", "to", "by", "with", "regarding", "near", "into", "as"];

/// Words and marks that end Chinese free text.
const HAN_ENDS: [&str; 16] =
    ["然后", "并且", "并", "再", "接着", "以及", "的", "到", "在", "给", "和", "吗", "呢", "用", "，", "。"];

/// The text after a label, up to the first word or mark that ends it.
pub(crate) fn after_label<'a>(span: LabelSpan, parsed: &ParsedText<'a>) -> Option<Phrase<'a>> {
    let mut at = parsed.token_at(span.end);
    let skips = |token: &Token<'_>| {
        token.is_any(&[
            "is", "as", "=", ":", "：", "to", "the", "named", "called", "of", "为", "是", "叫", "\"", "成",
            "a", "an", "写", "用", "做", "it", "them", "上", "在", "于",
        ])
    };
    while parsed.tokens.get(at).is_some_and(skips) {
        at += 1;
    }
    let first = parsed.tokens.get(at).filter(|first| first.kind != TokenKind::Mark)?;
    let mut end = first.start;
    // 3号会议室: a Chinese name may start with a number.
    let numbered = first.kind == TokenKind::Number
        && parsed
            .tokens
            .get(at + 1)
            .is_some_and(|next| next.kind == TokenKind::Han && next.start == first.end);
    // 302 会议室: a room after its number.
    let room_end = parsed.text.get(first.end..).and_then(|rest| {
        let trimmed = rest.trim_start();
        let kind = ["号会议室", "会议室", "室", "教室", "号楼", "楼"]
            .iter()
            .find(|kind| trimmed.starts_with(**kind))?;
        Some(first.end + rest.len() - trimmed.len() + kind.len())
    });
    if let Some(end) = room_end.filter(|_| first.kind == TokenKind::Number) {
        let text = parsed.text.get(first.start..end)?;
        return Some(Phrase { text, start: first.start, end, after: None });
    }
    if first.kind == TokenKind::Han || numbered {
        let rest = &parsed.text[first.start..];
        let stop = |c: char| c.is_whitespace() || (!c.is_alphanumeric() && !"-_·".contains(c));
        let mut length = rest.find(stop).unwrap_or(rest.len());
        let alone = stands_alone(parsed.text, first.start, length);
        for ending in HAN_ENDS {
            let inner = alone && !"的吗呢".contains(ending) && ending.chars().count() == 1;
            if let Some(found) = rest[..length].find(ending).filter(|found| *found > 0 && !inner) {
                length = found;
            }
        }
        end += length;
    } else {
        for token in &parsed.tokens[at..] {
            let gap = parsed.text.get(end..token.start).unwrap_or_default();
            // `3.2.1` and B1机房 are written without a blank.
            let adjacent = gap.is_empty() && token.start > first.start;
            let dot = adjacent
                && token.text == "."
                && parsed.text[token.end..].starts_with(|c: char| c.is_ascii_alphanumeric());
            if dot || adjacent && token.kind == TokenKind::Han && !HAN_ENDS.contains(&token.text) {
                end = token.end;
                continue;
            }
            let stops = token.kind == TokenKind::Mark
                || token.kind == TokenKind::Han
                || gap.contains('\n')
                || (token.kind == TokenKind::Word && is_stop(token.text) && !token.is_word("of"));
            if stops {
                break;
            }
            end = token.end;
        }
    }
    let text = parsed.text.get(first.start..end)?.trim();
    let text = text.trim_end_matches(" of");
    (!text.is_empty()).then(|| Phrase {
        text,
        start: first.start,
        end: first.start + text.len(),
        after: None,
    })
}

/// The runs of content words of an English text.
pub(crate) fn chunks<'a>(parsed: &ParsedText<'a>) -> Vec<Phrase<'a>> {
    let mut found = Vec::new();
    let mut open: Option<(usize, usize)> = None;
    let mut before: Option<String> = None;
    let mut close = |open: &mut Option<(usize, usize)>, before: &mut Option<String>| {
        if let Some((start, end)) = open.take()
            && let Some(text) = parsed.text.get(start..end)
        {
            found.push(Phrase { text, start, end, after: before.take() });
        }
    };
    for token in &parsed.tokens {
        let content = token.kind == TokenKind::Word && !is_stop(token.text);
        if content {
            open = Some((open.map_or(token.start, |(start, _)| start), token.end));
        } else {
            close(&mut open, &mut before);
            let article = token.is_any(&["a", "an", "the", "my", "some", "any", "all"]);
            if !article {
                before = token.is_any(&BEFORE_THINGS).then(|| token.text.to_lowercase());
            }
        }
    }
    close(&mut open, &mut before);
    found
}

/// Whether a part of a request only gives the number of results: `give me 10 results`, 搜 5 条.
fn only_counts(part: &str) -> bool {
    let counted =
        ["results", "links", "hits", "pages", "items", "条", "个结果", "篇", "个就", "thanks", "谢"];
    let lower = part.to_lowercase();
    let digits = part.contains(|c: char| c.is_ascii_digit() || "一二三四五六七八九十几两".contains(c));
    part.chars().count() < 26
        && ((digits && counted.iter().any(|word| lower.contains(word)))
            || lower.starts_with("thank")
            || lower.starts_with("谢"))
}

/// Whether a text consists only of words of a search request.
fn only_asks(text: &str) -> bool {
    let known = |word: &str| SEARCHING.contains(&format!(" {} ", word.to_lowercase()));
    let mut rest = text.trim();
    if !has_han(rest) {
        return rest
            .split(|c: char| !c.is_alphanumeric() && c != '\'')
            .filter(|word| !word.is_empty())
            .all(known);
    }
    while !rest.is_empty() {
        let listed =
            OPENINGS.iter().chain(&CLOSINGS).chain(&SEARCHING_HAN).chain(&["现在", "我", "你", "网"]);
        let Some(shorter) =
            listed.filter_map(|word| rest.strip_prefix(word)).min_by_key(|shorter| shorter.len())
        else {
            return false;
        };
        rest = shorter.trim_start_matches(|c: char| c.is_whitespace() || "，,。".contains(c));
    }
    true
}

/// Strips words of a search request from both ends.
pub(crate) fn without_searching(text: &str) -> &str {
    let mut text = text;
    let parts: Vec<&str> = text.split(['?', '？', '。', '，', '!', '！', ';', '；']).collect();
    if parts.len() > 1 {
        let is_distinctive =
            |part: &&&str| !part.trim().is_empty() && !only_counts(part.trim()) && !only_asks(part.trim());
        let distinctive: Vec<&&str> = parts.iter().filter(is_distinctive).collect();
        if let [single] = distinctive.as_slice() {
            text = single.trim();
        }
    }
    loop {
        let before = text;
        text = text.trim_start_matches(|c: char| c.is_whitespace() || ",:：、的".contains(c));
        for word in SEARCHING_HAN {
            if let Some(rest) = text.strip_prefix(word).filter(|rest| rest.trim().chars().nth(1).is_some()) {
                text = rest;
                break;
            }
        }
        let end = text.find(|c: char| c.is_whitespace()).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        let known = SEARCHING.contains(&format!(" {} ", word.to_lowercase().trim_end_matches([',', ':'])));
        if !word.is_empty() && known && !rest.trim().is_empty() {
            text = rest;
        }
        for word in FOUND_HAN {
            if let Some(rest) =
                text.trim_end().strip_suffix(word).filter(|rest| rest.trim().chars().nth(1).is_some())
            {
                text = rest;
            }
        }
        if text == before {
            return text.trim();
        }
    }
}

/// The query and its byte offset in a request that first names the place to search: `the knowledge graph for X`, 在 X
/// 文件夹里搜 Y.
pub(crate) fn searched<'a>(rest: &Phrase<'a>, tool_words: &[String]) -> Option<(usize, &'a str)> {
    let known = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        word.is_empty()
            || is_stop(word)
            || SEARCHING.contains(&format!(" {} ", word.to_lowercase()))
            || tool_words.contains(&crate::lexer::labels::stem(word))
            || crate::lexer::lexicon::word_matches(word, &crate::lexer::token::tokenize(word), &|_| false)
                .iter()
                .any(|word_match| !word_match.meaning.things.is_empty())
    };
    let known_thing =
        |word: &str| tool_words.contains(&crate::lexer::labels::stem(word)) || word.ends_with("mails");
    let english = [" for ", " about ", " mentioning ", " containing ", " regarding ", " with "];
    let joints =
        english.iter().flat_map(|joint| rest.text.match_indices(joint).map(|(at, _)| (at, at + joint.len())));
    let is_known_prefix = |(at, _): &(usize, usize)| rest.text[..*at].split_whitespace().all(known);
    let own = |(at, _): &(usize, usize)| rest.text[..*at].split_whitespace().any(known_thing);
    let after = joints.filter(is_known_prefix).filter(own).map(|(_, end)| end).max();
    let after = after.or_else(|| {
        let verbs = ["搜索", "搜一下", "搜", "查找", "查一下", "找一下", "检索", "关于"];
        let inside = ["里", "中", "上", "内"];
        verbs.iter().find_map(|verb| {
            let at = rest.text.find(verb)?;
            let led = inside.iter().any(|word| rest.text[..at].trim_end().ends_with(word));
            led.then_some(at + verb.len())
        })
    })?;
    let text = rest.text[after..].trim();
    let text = text.strip_prefix("the ").or_else(|| text.strip_prefix("一下")).unwrap_or(text).trim_start();
    let start = rest.start + (text.as_ptr() as usize - rest.text.as_ptr() as usize);
    let end = text.find([',', '，', '。', '?', '？']).unwrap_or(text.len());
    // `… and send it`: the next order is not part of the query.
    let next = text
        .match_indices(" and ")
        .find(|(at, _)| text[at + 5..].split_whitespace().next().is_some_and(crate::lexer::split::is_verb));
    let end = next.map_or(end, |(at, _)| end.min(at));
    // `… received before March`: the date is an argument of its own.
    let filters = [
        " received ",
        " sent ",
        " since ",
        " before ",
        " dated ",
        " that came ",
        " from ",
        " in the folder ",
    ];
    let end = filters.iter().filter_map(|word| text[..end].find(word)).min().unwrap_or(end);
    let mut text = text[..end].trim_end();
    for ending in [
        "相关的邮件",
        "有关的邮件",
        "的邮件",
        "相关的",
        "相关",
        "的节点",
        "的实体",
        "的日程",
        "的记录",
        "的内容",
    ] {
        text = text.strip_suffix(ending).unwrap_or(text).trim_end();
    }
    (!text.is_empty()).then_some((start, text))
}

/// The search query: the request without its opening and closing words.
pub(crate) fn remainder<'a>(parsed: &ParsedText<'a>) -> Option<Phrase<'a>> {
    let mut text = parsed.text.trim();
    loop {
        let before = text;
        text = text.trim_start_matches(|c: char| c.is_whitespace() || ",，:：、\"“".contains(c));
        for opening in OPENINGS {
            let Some(head) = text.get(..opening.len()) else { continue };
            let rest = &text[opening.len()..];
            let is_whole_word = has_han(opening) || rest.starts_with(|c: char| !c.is_alphanumeric());
            if head.eq_ignore_ascii_case(opening) && is_whole_word && !rest.trim().is_empty() {
                text = rest;
                break;
            }
        }
        if text == before {
            break;
        }
    }
    loop {
        let before = text;
        text = text.trim_end();
        for closing in CLOSINGS {
            // An English closing is a whole word.
            let is_whole_word = |rest: &&str| {
                !closing.starts_with(|c: char| c.is_ascii_alphabetic())
                    || !rest.ends_with(|c: char| c.is_ascii_alphanumeric())
            };
            let shorter = text.strip_suffix(closing).filter(|rest| !rest.trim().is_empty());
            if let Some(rest) = shorter.filter(is_whole_word) {
                text = rest;
            }
        }
        if text == before {
            break;
        }
    }
    // The rest may start with another search verb: 网上 查查 ….
    let mut text = without_searching(text.trim());
    while let Some(rest) = HAN_OPENINGS.iter().find_map(|word| text.strip_prefix(word)) {
        let rest = without_searching(rest.trim());
        if rest.chars().nth(1).is_none() || only_asks(rest) {
            break;
        }
        text = rest;
    }
    // Nothing is left to search for: 帮我搜一下, `search the web please`.
    if only_asks(text) {
        return None;
    }
    let start = text.as_ptr() as usize - parsed.text.as_ptr() as usize;
    (!text.is_empty()).then(|| Phrase { text, start, end: start + text.len(), after: None })
}

#[cfg(test)]
mod tests {
    use jiff::civil::Date;

    use super::*;

    #[test]
    fn extracts_search_query() {
        let check = |text: &str, expect: &str| {
            let parsed = ParsedText::of(text, Date::constant(2026, 1, 15));
            assert_eq!(remainder(&parsed).unwrap().text, expect, "{text}");
        };
        check("Please search the web for rust async books.", "rust async books");
        check("帮我搜索一下人工智能的最新进展", "人工智能的最新进展");
        check("请在网上查一下北京的天气？", "北京的天气");
        let nothing = ParsedText::of("帮我上网搜一下", Date::constant(2026, 1, 15));
        assert_eq!(remainder(&nothing), None);
    }

    #[test]
    fn splits_chunks_at_function_words() {
        let parsed =
            ParsedText::of("Find a historical law case about fraud in the city", Date::constant(2026, 1, 15));
        let found: Vec<_> =
            chunks(&parsed).into_iter().map(|chunk| (chunk.after.unwrap_or_default(), chunk.text)).collect();
        assert_eq!(
            found,
            [
                ("".to_owned(), "historical law case"),
                ("about".to_owned(), "fraud"),
                ("in".to_owned(), "city")
            ]
        );
    }
}
