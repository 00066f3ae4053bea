//! The parts of a record and the byte ranges that give them.

use crate::lexer::literal::Literal;
use crate::lexer::mention::{MentionValue, ParsedText};
use crate::lexer::stop_words::is_stop;
use crate::lexer::token::{TokenKind, is_han};

/// A byte range of the request.
pub(crate) type Span = (usize, usize);

/// The function of an object's member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemberFunction {
    Old,
    New,
    From,
    To,
    Type,
    Name,
    Texts,
}

/// Names of the container of all entities; never the name of an entity.
pub(crate) const CONTAINERS: [&str; 9] = [
    "knowledge graph",
    "the graph",
    "my memory",
    "the memory",
    "memory graph",
    "graph",
    "知识图谱",
    "图谱",
    "记忆库",
];

/// The text inside the quotes that start at a byte offset.
pub(crate) fn quoted_at(parsed: &ParsedText<'_>, start: usize) -> Option<Span> {
    crate::spreadsheet::sheet_name::quoted_at(parsed, Some(start), None)
}

/// The name after one of `words`, ignoring occurrences inside literals.
pub(crate) fn after_any(parsed: &ParsedText<'_>, words: &[&str]) -> Option<Span> {
    let lower = parsed.text.to_ascii_lowercase();
    words.iter().find_map(|word| {
        lower.match_indices(word).find_map(|(at, _)| {
            let is_whole_word = !word.is_ascii()
                || !lower[..at].ends_with(|c: char| c.is_ascii_alphanumeric())
                    && !lower[at + word.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            let inside = parsed.mentions.iter().any(|mention| {
                matches!(mention.value, MentionValue::Literal(_)) && mention.start <= at && at < mention.end
            });
            // `From Here`: a capitalised word inside a sentence is part of a name.
            let before = lower[..at].trim_end();
            let capital = parsed.text[at..].starts_with(|c: char| c.is_ascii_uppercase())
                && !(before.is_empty() || before.ends_with(['.', ':', ';', '!', '?']));
            (is_whole_word && !inside && !capital).then(|| thing_at(parsed, at + word.len())).flatten()
        })
    })
}

/// The name that starts at a byte offset, after introductory words.
pub(crate) fn thing_at(parsed: &ParsedText<'_>, from: usize) -> Option<Span> {
    let mut at = parsed.token_at(from);
    let announces = [
        "named", "called", ":", "：", "the", "a", "an", "叫", "名", "为", "是", "=", "entity", "node", "称",
        "name", "字",
    ];
    loop {
        // `the entity Node Exporter`: two capitalised words are a name.
        let named = |at: usize| {
            at > 0
                && [at, at + 1]
                    .iter()
                    .all(|at| parsed.tokens.get(*at).is_some_and(|token| token.is_capital()))
        };
        while parsed.tokens.get(at).is_some_and(|token| token.is_any(&announces)) && !named(at) {
            at += 1;
        }
        // `entity in the graph: X`: the location precedes the name.
        if let Some(past) = past_container(parsed, at) {
            at = past;
            continue;
        }
        // 给知识图谱里的 海棠项目: the container is not the name.
        let rest = parsed.tokens.get(at).and_then(|token| parsed.text.get(token.start..))?;
        let lower = rest.to_ascii_lowercase();
        let Some(container) = CONTAINERS.iter().find(|word| lower.starts_with(**word)) else { break };
        let after = rest[container.len()..].trim_start();
        let inside = ["里面的", "里的", "中的", "里面", "里", "中", "上的", "的"]
            .iter()
            .find(|word| after.starts_with(**word))?;
        at = parsed.token_at(parsed.text.len() - after.len() + inside.len());
    }
    let token = parsed.tokens.get(at)?;
    let mention =
        parsed.mentions.iter().find(|mention| mention.start <= token.start && token.start < mention.end);
    match mention.map(|mention| (&mention.value, mention)) {
        Some((MentionValue::Literal(Literal::Quoted(_)), _)) => return quoted_at(parsed, token.start),
        // `Link Nina Vogel`: if a mention starts with a capitalised verb, the name starts after the verb.
        Some((
            MentionValue::Literal(Literal::Code(_)) | MentionValue::Name | MentionValue::Place,
            mention,
        )) => {
            return Some((token.start, with_number(parsed, with_han(parsed, mention.end))));
        }
        Some((MentionValue::Literal(_) | MentionValue::Moment(_), _)) => return None,
        Some((MentionValue::Number(_) | MentionValue::Holiday, _)) | None => {}
    }
    match token.kind {
        TokenKind::Word if !is_stop(token.text) => Some((token.start, with_han(parsed, token.end))),
        TokenKind::Han => {
            let end = with_han(parsed, token.start);
            (end > token.start).then_some((token.start, end))
        }
        _ => None,
    }
}

/// `Boat 7`: a number of up to four digits after a name belongs to it.
fn with_number(parsed: &ParsedText<'_>, end: usize) -> usize {
    let next = parsed.tokens.get(parsed.token_at(end));
    let close = |token: &&crate::lexer::token::Token<'_>| {
        token.kind == TokenKind::Number
            && token.text.len() <= 4
            && parsed.text.get(end..token.start) == Some(" ")
    };
    next.filter(close).map_or(end, |token| token.end)
}

/// The end of a run of Chinese characters: a space, a mark or a function word.
fn with_han(parsed: &ParsedText<'_>, from: usize) -> usize {
    let rest = parsed.text.get(from..).unwrap_or_default();
    let ends = rest.find(|c: char| !(is_han(c) || c.is_ascii_alphanumeric())).unwrap_or(rest.len());
    let alone = crate::lexer::name::stands_alone(parsed.text, from, ends);
    let small = if alone { "的" } else { "的和与加添是到在里给把" };
    from + rest[..ends].find(|c: char| small.contains(c)).unwrap_or(ends)
}

/// The index of the token after `in the knowledge graph:`, if that phrase starts at token `at`.
pub(crate) fn past_container(parsed: &ParsedText<'_>, at: usize) -> Option<usize> {
    let token = parsed.tokens.get(at)?;
    let lower = parsed.text.get(token.start..)?.to_ascii_lowercase();
    let rest = ["in ", "to ", "into "].iter().find_map(|lead| lower.strip_prefix(lead))?;
    let rest = ["the ", "my ", "our "].iter().find_map(|word| rest.strip_prefix(word)).unwrap_or(rest);
    let container = CONTAINERS.iter().find(|word| rest.starts_with(**word))?;
    let rest = rest[container.len()..].trim_start();
    let rest = rest.strip_prefix(':').or_else(|| rest.strip_prefix(','))?;
    Some(parsed.token_at(parsed.text.len() - rest.len()))
}
