//! Rewrites other forms of an order into the imperative that the rest of the planner parses: passives, phrasal verbs with a
//! separated particle, and unusual conjunctions between list items.

use crate::lexer::literal::{Literal, LiteralSpan};
use crate::lexer::literal_scanner;
use crate::lexer::token::{Token, TokenKind, tokenize};
use crate::rewrite::address;
use crate::rewrite::colloquial;
use crate::rewrite::coreference;
use crate::rewrite::idiom_rewrite;
use crate::rewrite::masked_text::{has_word, is_open, mask_literals};
use crate::rewrite::passive_rewrite::{self, PASSIVES, verb_of};
use crate::rewrite::reason_clause;
use crate::rewrite::remark;
use crate::rewrite::spelling;
use crate::rewrite::statement;
use crate::rewrite::verbless;
use crate::selection::verb_class::VERBS;
use crate::values::nested_path;

/// Applies all rewriting steps to the request.
pub(crate) fn rephrase(text: &str) -> String {
    let mut text = text.to_owned();
    let steps: [fn(&str) -> Option<String>; 18] = [
        address::remove,
        colloquial::plain,
        coreference::resolve,
        reason_clause::remove,
        statement::remove,
        idiom_rewrite::plain,
        negated_flags,
        passive_rewrite::to_imperatives,
        with_name,
        spelling::correct,
        joined,
        with_verbs,
        with_particle,
        passive_to_active,
        remark::remove_statement,
        remark::remove_reason,
        nested_path::joined,
        verbless::with_verbs,
    ];
    // A rewritten order may be the input of an earlier step.
    let coreference: [fn(&str) -> Option<String>; 5] = [
        reason_clause::remove,
        statement::remove,
        idiom_rewrite::plain,
        remark::remove_statement,
        remark::remove_reason,
    ];
    for step in steps.into_iter().chain(coreference) {
        if let Some(other) = step(&text) {
            text = other;
        }
    }
    text
}

/// ，不要进回收站: rewrites flags that are expressed as negations.
fn negated_flags(text: &str) -> Option<String> {
    const MAX_FLAGS: usize = 3;
    let first = negated_flag(text)?;
    Some((1..MAX_FLAGS).fold(first, |text, _| negated_flag(&text).unwrap_or(text)))
}

fn negated_flag(text: &str) -> Option<String> {
    const TABLE: &str = include_str!("../../data/negated_flags.tsv");
    let literals = literal_scanner::find(text);
    let masked = mask_literals(text, &literals);
    let rows = TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('\t'));
    rows.flat_map(|(plain, phrases)| {
        phrases.split_whitespace().map(move |phrase| (plain, phrase.replace('_', " ")))
    })
    .filter_map(|(plain, phrase)| masked.find(&phrase).map(|at| (at, phrase.len(), plain)))
    .max_by_key(|(_, length, _)| *length)
    .map(|(at, length, plain)| {
        let before = text[..at].trim_end();
        let before = ["，先", "，但", "先", "，", ",", " but", "-"]
            .iter()
            .find_map(|word| before.strip_suffix(word))
            .unwrap_or(before)
            .trim_end_matches([',', '，', ' ']);
        let gap = if plain.is_ascii() { " " } else { "，" };
        let rest = &text[at + length..];
        // The flag may be told twice: `permanently, it should not stay in the trash`.
        let others = format!("{} {}", &masked[..at], &masked[at + length..]);
        let resolve = has_word(&others, plain) || !plain.is_ascii() && others.contains(plain);
        let rest =
            if before.is_empty() { rest.trim_start_matches(['：', ':', '，', ',', ' ']) } else { rest };
        match (resolve, before.is_empty()) {
            (true, _) => format!("{before}{rest}"),
            (false, true) => format!("{rest}{gap}{plain}"),
            (false, false) => format!("{before}{gap}{plain}{rest}"),
        }
    })
}

/// `a.md plus b.md`, `a.md as well as b.md`: conjunctions that mean `and` between two literals of one kind.
fn joined(text: &str) -> Option<String> {
    const JOINTS: [(&str, &str); 10] = [
        ("plus", " and "),
        ("as well as", " and "),
        ("along with", " and "),
        ("together with", " and "),
        ("and also", " and "),
        ("plus also", " and "),
        ("还有", " 和 "),
        ("外加", " 和 "),
        ("连同", " 和 "),
        ("加上", " 和 "),
    ];
    let literals = literal_scanner::find(text);
    let mut result = text.to_owned();
    let mut changed = false;
    for pair in literals.windows(2).rev() {
        let between = text.get(pair[0].end..pair[1].start)?;
        let joint = JOINTS.iter().find(|(word, _)| between.trim().eq_ignore_ascii_case(word));
        let same = std::mem::discriminant(&pair[0].literal) == std::mem::discriminant(&pair[1].literal);
        if let Some((_, plain)) = joint.filter(|_| same && !matches!(pair[0].literal, Literal::Formula(_))) {
            result.replace_range(pair[0].end..pair[1].start, plain);
            changed = true;
        }
    }
    changed.then_some(result)
}

/// `move a to X and b to Y`: repeats the verb of the first part in a later part without a verb.
fn with_verbs(text: &str) -> Option<String> {
    const PREPOSITIONS: [&str; 4] = [" to ", " into ", " as ", " in "];
    let literals = literal_scanner::find(text);
    let masked = mask_literals(text, &literals);
    if let Some(other) = with_cells(text, &masked, &literals) {
        return Some(other);
    }
    let verb = masked
        .trim_start_matches("please ")
        .split(' ')
        .next()
        .filter(|verb| VERBS.english.contains_key(*verb))?;
    let [first, .., second] = literals.as_slice() else { return None };
    let between = masked.get(first.end..second.start)?;
    let preposition = PREPOSITIONS.iter().find(|word| between.starts_with(**word))?;
    let pair = literals.windows(2).find_map(|pair| {
        let (_, second) = (&pair[0], &pair[1]);
        let joint =
            [" and ", ", and ", ", "].iter().find(|joint| masked[..second.start].ends_with(**joint))?;
        let same = std::mem::discriminant(&first.literal) == std::mem::discriminant(&second.literal);
        let continues = masked.get(second.end..)?.starts_with(preposition);
        (same && continues && second.start > first.end).then_some((second.start, joint.len()))
    })?;
    let before = &text[..pair.0 - pair.1];
    Some(format!("{before} and then {verb} {}", &text[pair.0..]))
}

/// `put 120 in B3 and 85 in B4`: repeats the verb for each further value and its cell.
fn with_cells(text: &str, masked: &str, literals: &[LiteralSpan]) -> Option<String> {
    const WRITES: [&str; 5] = ["put", "write", "enter", "type", "fill"];
    let cells: Vec<&LiteralSpan> = literals
        .iter()
        .filter(|found| matches!(&found.literal, Literal::Cells(cells) if !cells.contains(':')))
        .collect();
    let head = masked.get(..cells.first()?.start)?;
    let verb = WRITES.iter().find(|verb| has_word(head, verb))?;
    let mut result = text.to_owned();
    let mut changed = false;
    for pair in cells.windows(2).rev() {
        let between = masked.get(pair[0].end..pair[1].start)?;
        let joint = [", and ", " and ", ", "].iter().find(|joint| between.starts_with(**joint));
        let inner = joint.and_then(|joint| between.strip_prefix(*joint));
        let value = inner.and_then(|inner| {
            [" in ", " into ", " to ", " at ", " in cell ", " into cell "]
                .iter()
                .find_map(|word| inner.strip_suffix(word))
        });
        let plain = value.is_some_and(|value| {
            let first = value.split(' ').next().unwrap_or_default();
            !value.is_empty()
                && value.split(' ').count() <= 4
                && !VERBS.english.contains_key(first)
                && first != "then"
                && !value.contains(',')
        });
        if let (Some(joint), true) = (joint, plain) {
            result.replace_range(pair[0].end..pair[0].end + joint.len(), &format!(" and then {verb} "));
            changed = true;
        }
    }
    // A file after the last cell applies to all cells.
    let last = cells.last().map_or(0, |cell| cell.end);
    let tail = text.get(last..)?.trim_end_matches(['.', '!']);
    let shared = [" on ", " in ", " of "].iter().find_map(|word| tail.strip_prefix(*word));
    let file = |found: &LiteralSpan| matches!(&found.literal, Literal::Path(_)) && found.start >= last;
    if let Some(shared) =
        shared.filter(|_| changed && literals.iter().filter(|found| file(found)).count() == 1)
        && result.ends_with(text.get(last..)?)
        && !literals.iter().any(|found| matches!(&found.literal, Literal::Path(_)) && found.start < last)
    {
        let head = &result[..result.len() - text.get(last..)?.len()];
        return Some(format!("In {shared}: {head}"));
    }
    changed.then_some(result)
}

/// `give X the name Y`, `copy X and call it Y`, `evt_5 moves to Y`: other forms of renaming and moving.
fn with_name(text: &str) -> Option<String> {
    let literals = literal_scanner::find(text);
    let masked = mask_literals(text, &literals);
    if is_open(&masked) {
        return None;
    }
    if let Some(start) = masked
        .strip_prefix("please ")
        .map_or(Some(0), |_| Some(7))
        .filter(|at| masked[*at..].starts_with("give "))
    {
        let at = masked.find(" the name ").or_else(|| masked.find(" the new name "))?;
        let after = at + masked[at..].find("name ")? + 5;
        return Some(format!("rename {} to {}", text.get(start + 5..at)?, text.get(after..)?));
    }
    let copies = ["copy", "duplicate", "clone"].iter().any(|verb| has_word(&masked, verb));
    for joint in [" and call it ", " and name it ", ", call it ", ", name it ", " and title it "] {
        if let Some(at) = masked.find(joint) {
            let word = if copies { " as " } else { " named " };
            return Some(format!("{}{word}{}", &text[..at], &text[at + joint.len()..]));
        }
    }
    // A thing, followed by its change.
    let first = literals.first().filter(|first| first.start == 0)?;
    let rest = masked.get(first.end..)?;
    let word = rest.strip_prefix(' ')?.split(' ').next()?;
    let verb = word.strip_suffix('s').filter(|verb| ["move", "shift", "change"].contains(verb))?;
    Some(format!("{verb} {}{}", &text[..first.end], &text[first.end + 1 + word.len()..]))
}

/// `check that one out`, `call evt_3 off`: moves a separated particle next to its verb.
fn with_particle(text: &str) -> Option<String> {
    const PARTICLES: [&str; 9] = ["out", "off", "down", "up", "over", "away", "in", "back", "forward"];
    const MAX_WORDS_BETWEEN: usize = 6;
    let literals = literal_scanner::find(text);
    let all = tokenize(text);
    let inside =
        |token: &Token<'_>| literals.iter().any(|found| found.start < token.end && token.start < found.end);
    for (at, token) in
        all.iter().enumerate().filter(|(_, token)| token.kind == TokenKind::Word && !inside(token))
    {
        let ends = |index: usize| {
            // `branch X off Y`: a single literal between verb and particle is unambiguous.
            let one = literals.iter().any(|found| {
                found.start == all[at + 1].start && found.end == all[index - 1].end && index > at + 1
            });
            one && !all.get(index + 1).is_some_and(&inside)
                || all.get(index + 1).is_none_or(|next| {
                    !inside(next) && (next.kind == TokenKind::Mark || next.is_any(&["and", "then", "please"]))
                })
        };
        let object = all[at + 1..].iter().take(MAX_WORDS_BETWEEN).take_while(|next| {
            inside(next)
                || next.kind != TokenKind::Mark
                || matches!(next.text, "\"" | "'" | "_" | "-" | "/" | ".")
        });
        let count = object.count();
        // `a branch X off main`: after an article the word is a noun.
        let noun = at.checked_sub(1).is_some_and(|before| {
            all[before].is_any(&["a", "an", "the", "new", "my", "this", "that", "another"])
        });
        let particle = (at + 2..=at + count).filter(|_| !noun).find(|index| {
            let word = &all[*index];
            word.is_any(&PARTICLES)
                && !inside(word)
                && ends(*index)
                && VERBS.english.contains_key(&format!("{} {}", token.text, word.text).to_lowercase())
        });
        if let Some(index) = particle {
            let (verb, object) = (&text[..token.end], text.get(token.end..all[index].start)?);
            let rest = &text[all[index].end..];
            // The name after `off` is the branch's starting point.
            let from = if all[index].is_word("off") && rest.starts_with(' ') { " from" } else { "" };
            return Some(format!("{verb} {}{}{from}{rest}", all[index].text, object.trim_end()));
        }
    }
    None
}

/// `X should be renamed to Y`, `I want X deleted`: moves the verb to the front.
fn passive_to_active(text: &str) -> Option<String> {
    const WISHES: [&str; 7] =
        ["i want ", "i need ", "i'd like ", "i would like ", "we want ", "we need ", "i'd love "];
    let literals = literal_scanner::find(text);
    let masked = mask_literals(text, &literals);
    if is_open(&masked) {
        return None;
    }
    let first_word = |from: usize| {
        let rest = masked.get(from..)?;
        let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        Some((rest[..end].to_owned(), from + end))
    };
    let rewrite = |prefix: &str, object: (usize, usize), participle: usize| {
        let (word, end) = first_word(participle)?;
        let verb = verb_of(&word)?;
        let object = text.get(object.0..object.1)?.trim();
        let rest = text.get(end..)?;
        let named = ["called", "named", "titled"].contains(&word.as_str());
        let joint = if named { " to" } else { "" };
        let rest = rest.strip_suffix(" from now on").unwrap_or(rest);
        (!object.is_empty()).then(|| format!("{prefix}{verb} {object}{joint}{rest}"))
    };
    if let Some((at, passive)) =
        PASSIVES.iter().filter_map(|passive| masked.find(passive).map(|at| (at, *passive))).min()
    {
        // `a.xlsx: the sheet X should …`: the text before a colon is kept.
        let start = masked[..at].rfind([':', ';', '.', ',']).map_or(0, |mark| mark + 1);
        let start = masked[start..].strip_prefix(" so ").map_or(start, |_| start + " so".len());
        let own = masked.get(start..at)?.trim_start();
        let begins_with_verb =
            own.split(' ').next().is_some_and(|word| VERBS.english.contains_key(word) || word == "please");
        if begins_with_verb || own.is_empty() {
            return None;
        }
        let prefix = if start == 0 { String::new() } else { format!("{} ", &text[..start]) };
        // `X is wrong and has to be deleted`: the statement before `and` is not part of the object.
        let verb_at = [" is ", " are ", " was ", " were "]
            .iter()
            .filter_map(|state| masked[start..at].find(state))
            .min();
        let end = verb_at
            .map(|verb_at| start + verb_at)
            .filter(|verb_at| masked[*verb_at..at].ends_with(" and") && !masked[*verb_at..at].contains('#'))
            .unwrap_or(at);
        let order = rewrite(&prefix, (start, end), at + passive.len())?;
        return Some(idiom_rewrite::leading_location(&order).unwrap_or(order));
    }
    let wish = WISHES.iter().find(|wish| masked.starts_with(**wish))?;
    let all = tokenize(text);
    // The participle directly follows the last literal or name of the object.
    let participle = all.iter().find(|token| {
        token.start > wish.len()
            && token.kind == TokenKind::Word
            && masked.get(token.start..token.end).is_some_and(|word| verb_of(word).is_some())
            && !masked[..token.start].trim_end().ends_with("the")
            && !masked[..token.start].trim_end().ends_with(',')
            && !["called", "named", "titled"].contains(&token.text.to_lowercase().as_str())
    })?;
    let object = masked.get(wish.len()..participle.start)?;
    let end = wish.len() + object.trim_end().strip_suffix("to be").unwrap_or(object).len();
    rewrite("", (wish.len(), end), participle.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewrites_passives_and_phrasal_verbs_as_imperatives() {
        let check = |text: &str, expect: &str| assert_eq!(rephrase(text), expect, "{text}");
        check("/tmp/a.txt should be renamed to /tmp/b.txt", "rename /tmp/a.txt to /tmp/b.txt");
        check(
            "a.xlsx: the sheet Stock should be called Inventory from now on",
            "a.xlsx: rename the sheet Stock to Inventory",
        );
        check("I want the sheet Old in a.xlsx deleted", "delete the sheet Old in a.xlsx");
        check("switch to dev and check that one out", "switch to dev and check out that one");
        check("call evt_3 off", "call off evt_3");
        check("I need a branch a/b off main", "I need a branch a/b off main");
        check("branch feature/xy off develop in /r", "branch off feature/xy from develop in /r");
        check("give the sheet A in a.xlsx the name B", "rename the sheet A in a.xlsx to B");
        check("make a copy of sheet A and call it B", "make a copy of sheet A as B");
        check("evt_5 moves to 2026-01-01", "move evt_5 to 2026-01-01");
        check("put 120 in B3 and 85 in B4", "put 120 in B3 and then put 85 in B4");
        check("in a.xlsx, put 1 in B3 and 2 in B4", "in a.xlsx, put 1 in B3 and then put 2 in B4");
        check("check out branch a/b in ~/code", "check out branch a/b in ~/code");
        check("read a.md plus b.md", "read a.md and b.md");
        check("move m-61 to Done and m-62 to Later", "move m-61 to Done and then move m-62 to Later");
        check("copy a.txt to b.txt and c.txt to d.txt", "copy a.txt to b.txt and then copy c.txt to d.txt");
        check("the sheet Old must not be deleted", "the sheet Old must not be deleted");
        check("should the sheet be deleted?", "should the sheet be deleted?");
        check("what is 5 plus 6", "what is 5 plus 6");
    }
}
