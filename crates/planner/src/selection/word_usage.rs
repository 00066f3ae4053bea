//! How much of a request a tool explains: the share of its words that the tool knows, and of its mentions that are arguments.

use crate::assembly::assignment::Assignment;
use crate::assembly::coverage;
use crate::lexer::labels;
use crate::lexer::lexicon;
use crate::lexer::mention::{MentionValue, ParsedText};
use crate::lexer::name::has_han;
use crate::lexer::token::{Token, TokenKind};
use crate::selection::choice::Choice;
use crate::selection::tool_profile::Profile;
use crate::values::parameter;

/// Weight of a word that occurs only in the description.
const DESCRIPTION_WORD_WEIGHT: f32 = 0.8;

/// The share of the request's content words that occur in the tool's name, description or parameters. Words that are
/// arguments are not counted.
pub(super) fn known_words(choice: &Choice, profile: &Profile, parsed: &ParsedText<'_>) -> f32 {
    let mut own: Vec<String> = coverage::words_of(choice);
    let described = choice.parameters.iter().flat_map(|parameter| {
        parameter.description.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2)
    });
    own.extend(described.map(labels::stem));
    let is_used = |token: &Token<'_>| {
        parsed.mentions.iter().any(|mention| mention.start < token.end && token.start < mention.end)
    };
    let named: Vec<String> =
        parameter::name_words(choice.tool.name().as_str()).iter().map(|word| labels::stem(word)).collect();
    let (mut all, mut known) = (0usize, 0.0);
    for token in &parsed.tokens {
        if token.kind != TokenKind::Word || is_used(token) || coverage::is_function_word(token) {
            continue;
        }
        all += 1;
        let stem = labels::stem(token.text);
        known += match named.contains(&stem) {
            true => 1.0,
            false if own.contains(&stem) => DESCRIPTION_WORD_WEIGHT,
            false => 0.0,
        };
    }
    let word_matches = lexicon::word_matches(parsed.text, &parsed.tokens, &is_used);
    for word_match in
        word_matches.iter().filter(|word_match| has_han(&parsed.text[word_match.start..word_match.end]))
    {
        all += 1;
        known += if profile.knows(&word_match.meaning) { 1.0 } else { 0.0 };
    }
    if all == 0 { 0.5 } else { known / all as f32 }
}

/// If more than this share of the mentions is used, all are: shares are sums of floating-point numbers.
pub(super) const FULL_USE_THRESHOLD: f32 = 0.99;

/// The weighted share of the mentions in a text that are used as arguments.
pub(super) fn used(assignment: &Assignment, parsed: &ParsedText<'_>) -> f32 {
    let weight = |value: &MentionValue| match value {
        MentionValue::Literal(_) => 2.0,
        MentionValue::Number(number) if number.may_be_article => 0.2,
        MentionValue::Number(_) | MentionValue::Moment(_) | MentionValue::Place => 1.0,
        MentionValue::Name | MentionValue::Holiday => 0.8,
    };
    let all: f32 = parsed.mentions.iter().map(|mention| weight(&mention.value)).sum();
    let used: f32 = parsed
        .mentions
        .iter()
        .filter(|mention| assignment.uses(mention.start, mention.end))
        .map(|mention| weight(&mention.value))
        .sum();
    if all > 0.0 { used / all } else { 0.5 }
}
