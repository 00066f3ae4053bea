//! Orders with a verb that is in no table. The planner cannot interpret them and must not run a reading tool instead.

use crate::lexer::lexicon;
use crate::lexer::mention::{MentionValue, ParsedText};
use crate::lexer::name::has_han;
use crate::lexer::stop_words::is_stop;
use crate::lexer::token::{Token, TokenKind};

/// Words that confirm that the word before them is a verb.
const OBJECTS: [&str; 9] = ["the", "my", "this", "that", "these", "our", "it", "them", "me"];
/// Words that may precede the verb of an order.
const POLITE: [&str; 16] = [
    "please", "pls", "plz", "kindly", "now", "just", "can", "could", "would", "you", "hey", "hi", "ok",
    "okay", "then", "so",
];

/// Whether the request is an order with a verb that is in no table: `zap the folder X`, 把 X 搞砸.
pub(crate) fn is_order(parsed: &ParsedText<'_>) -> bool {
    let literal = |token: &Token<'_>| {
        parsed.mentions.iter().any(|mention| {
            matches!(mention.value, MentionValue::Literal(_))
                && mention.start < token.end
                && token.start < mention.end
        })
    };
    let word_matches = lexicon::word_matches(parsed.text, &parsed.tokens, &literal);
    english(parsed, &word_matches, &literal) || chinese(parsed, &word_matches, &literal)
}

fn english(
    parsed: &ParsedText<'_>,
    word_matches: &[lexicon::WordMatch],
    literal: &dyn Fn(&Token<'_>) -> bool,
) -> bool {
    if has_han(parsed.text) {
        return false;
    }
    // `the commits ought to be squashed`: a passive with a verb in no table.
    let lower = parsed.text.to_ascii_lowercase();
    let passive = crate::rewrite::passive_rewrite::PASSIVES
        .iter()
        .find_map(|words| lower.find(words).map(|at| at + words.len()));
    if let Some(word) = passive.and_then(|at| lower[at..].split(|c: char| !c.is_ascii_alphabetic()).next())
        && word.len() > 4
        && word.ends_with("ed")
        && crate::rewrite::passive_rewrite::verb_of(word).is_none()
        && !lower.contains('?')
    {
        return true;
    }
    let polite = |token: &&Token<'_>| token.is_any(&POLITE) || token.kind == TokenKind::Mark;
    let at = parsed.tokens.iter().take_while(polite).count();
    let (Some(verb), Some(object)) = (parsed.tokens.get(at), parsed.tokens.get(at + 1)) else {
        return false;
    };
    let known =
        word_matches.iter().any(|word_match| word_match.start <= verb.start && verb.start < word_match.end)
            || is_stop(verb.text)
            || crate::lexer::split::is_verb(verb.text);
    let close = parsed.text.get(verb.end..object.start) == Some(" ");
    verb.kind == TokenKind::Word
        && verb.text.bytes().all(|byte| byte.is_ascii_alphabetic())
        && !known
        && lexicon::misspelt(verb.text).is_none()
        && !literal(verb)
        && close
        && (object.is_any(&OBJECTS) || literal(object))
}

/// 把 and 将 mark the object of a verb: some verb must follow them.
fn chinese(
    parsed: &ParsedText<'_>,
    word_matches: &[lexicon::WordMatch],
    literal: &dyn Fn(&Token<'_>) -> bool,
) -> bool {
    let first = parsed.tokens.iter().enumerate().find(|(at, token)| {
        let next = parsed.tokens.get(at + 1).map_or("", |next| next.text);
        let word = matches!(next, "握" | "来" | "近" | "要" | "会" | "关" | "手" | "柄");
        matches!(token.text, "把" | "将") && !literal(token) && !word
    });
    let Some((_, token)) = first else { return false };
    let verb = |word_match: &lexicon::WordMatch| {
        word_match.start >= token.end && !word_match.meaning.verbs.is_empty()
    };
    !word_matches.iter().any(verb)
}

#[cfg(test)]
mod tests {
    use jiff::civil::Date;

    use super::*;

    #[test]
    fn detects_commands_with_unknown_verbs() {
        let check = |text: &str, expect: bool| {
            let parsed = ParsedText::of(text, Date::constant(2026, 1, 15));
            assert_eq!(is_order(&parsed), expect, "{text}");
        };
        check("defenestrate the folder /srv/a", true);
        check("please frobnicate /srv/a", true);
        check("把 /srv/a 扔进火里", true);
        check("the last three commits of /srv/a ought to be squashed into one", true);
        check("read the folder /srv/a", false);
        check("current time in Tokyo", false);
        check("把 /srv/a 列出来", false);
        check("将来的天气", false);
    }
}
