//! Parts of a request that no step of a plan serves. They are reported, so that nothing is dropped silently.

use crate::assembly::coverage::{is_function_word, words_of};
use crate::lexer::labels;
use crate::lexer::lexicon;
use crate::lexer::split::Clause;
use crate::lexer::token::{TokenKind, tokenize};
use crate::selection::choice::Choice;

/// A clause that contributes no argument is reported if the weight of its unused words reaches this value: a word counts 1, a
/// Chinese character 0.5.
const MIN_UNUSED_WEIGHT: f32 = 1.0;

/// The clauses that no call serves. `calls` are the calls of the plan, each with the start offset of its source text.
pub(crate) fn parts(text: &str, clauses: &[Clause], calls: &[(usize, Choice)]) -> Vec<String> {
    if clauses.len() < 2 {
        return Vec::new();
    }
    let mut used: Vec<(usize, usize)> = Vec::new();
    let mut own: Vec<String> = Vec::new();
    for (start, choice) in calls {
        let slots = choice.assignment.slots.iter().flatten().filter(|slot| slot.end > slot.start);
        used.extend(slots.map(|slot| (start + slot.start, start + slot.end)));
        own.extend(words_of(choice));
    }
    let serves = |clause: &&Clause| {
        let phrase = &text[clause.start..clause.end];
        // The clause from which a call was read is served, even if all arguments come from earlier clauses.
        let read = calls.iter().any(|(start, _)| clause.start <= *start && *start < clause.end);
        let touched = read || used.iter().any(|(from, to)| *from < clause.end && clause.start < *to);
        // A clause with a verb or a noun that no call covers is unserved.
        let all = tokenize(phrase);
        let word_matches = lexicon::word_matches(phrase, &all, &|_| false);
        let foreign = word_matches.iter().filter(|word_match| is_foreign(word_match, calls)).count();
        let matched: Vec<(usize, usize)> = word_matches
            .iter()
            .filter(|word_match| is_own(word_match, calls))
            .map(|word_match| (word_match.start, word_match.end))
            .collect();
        let unused: f32 = all
            .iter()
            .filter(|token| !matched.iter().any(|(from, to)| *from < token.end && token.start < *to))
            .filter(|token| token.kind != TokenKind::Mark && !is_function_word(token))
            .filter(|token| !own.contains(&labels::stem(token.text)))
            .map(|token| if token.kind == TokenKind::Han { 0.5 } else { 1.0 })
            .sum();
        if touched { foreign == 0 } else { unused < MIN_UNUSED_WEIGHT && foreign == 0 }
    };
    let unserved_clauses = clauses.iter().filter(|clause| !serves(clause));
    unserved_clauses
        .map(|clause| text[clause.start..clause.end].trim().to_owned())
        .filter(|part| !part.is_empty())
        .collect()
}

/// 做成透视表: whether the name of a call's tool contains a word with the same meaning.
fn is_own(word_match: &lexicon::WordMatch, calls: &[(usize, Choice)]) -> bool {
    calls.iter().any(|(_, choice)| {
        let name = crate::values::parameter::name_words(choice.tool.name().as_str()).join(" ");
        lexicon::word_matches(&name, &tokenize(&name), &|_| false)
            .iter()
            .any(|other| other.meaning.things.iter().any(|row| word_match.meaning.things.contains(row)))
    })
}

/// Whether a word requests something that none of the calls does or mentions.
fn is_foreign(word_match: &lexicon::WordMatch, calls: &[(usize, Choice)]) -> bool {
    let certain = |row: &usize| lexicon::verb(*row).mark == Some('!');
    let is_marked = |row: &usize| lexicon::thing(*row).mark == Some('!');
    let meaning = &word_match.meaning;
    let verb = !meaning.verbs.is_empty() && meaning.verbs.iter().all(certain);
    let thing = !meaning.things.is_empty() && meaning.things.iter().all(is_marked);
    if !verb && !thing {
        return false;
    }
    !calls.iter().any(|(_, choice)| {
        let mut phrase = crate::values::parameter::name_words(choice.tool.name().as_str()).join(" ");
        phrase.push(' ');
        phrase.push_str(choice.tool.definition.description());
        for (parameter, slot) in choice.parameters.iter().zip(&choice.assignment.slots) {
            let Some(slot) = slot else { continue };
            // `with the comment "…"`: the name of an argument that has a value.
            phrase.push(' ');
            phrase.push_str(&parameter.words.join(" "));
            if let crate::values::candidate::ArgumentValue::FromRequest(value) = &slot.value {
                phrase.push(' ');
                phrase.push_str(&value.to_string());
            }
        }
        let all = tokenize(&phrase);
        let known = lexicon::word_matches(&phrase, &all, &|_| false);
        known.iter().any(|other| {
            other.meaning.verbs.iter().any(|row| meaning.verbs.contains(row))
                || other.meaning.things.iter().any(|row| meaning.things.contains(row))
        })
    })
}
