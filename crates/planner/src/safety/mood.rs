//! Detects sentences that contain a verb of change but are not orders: questions about permission or state, statements of the
//! user's intention, and reports of past actions.

use std::collections::BTreeSet;

use crate::selection::verb_class::VERBS;

/// Words that may precede the first significant word.
const LEADS: [&str; 16] = [
    "please", "hi", "hey", "hello", "so", "and", "then", "ok", "okay", "well", "now", "but", "also",
    "actually", "thanks", "just",
];
/// Openings of questions about a permission, a state or an opinion.
const ASKS: [&str; 31] = [
    "can i",
    "can we",
    "could i",
    "could we",
    "may i",
    "may we",
    "might i",
    "might we",
    "must i",
    "must we",
    "am i",
    "are we",
    "is",
    "isn't",
    "are there",
    "aren't",
    "does",
    "doesn't",
    "do i",
    "do we",
    "did",
    "would it",
    "will it",
    "can it",
    "could it",
    "shall",
    "should",
    "has",
    "have i",
    "have we",
    "was",
];
/// Verbs after `can I` that make it a polite order (`can I get …`).
const FIRST_PERSON_VERBS: [&str; 5] = ["get", "have", "ask", "see", "trouble"];
/// Words that mark a question as a polite order.
const POLITE: [&str; 21] = [
    "you",
    "please",
    "pls",
    "plz",
    "mind",
    "kindly",
    "get",
    "have",
    "be",
    "帮",
    "请",
    "麻烦",
    "劳驾",
    "你",
    "您",
    "给我",
    "替我",
    "拜托",
    "能不能把",
    "能不能给",
    "能不能将",
];
/// Endings of Chinese sentences that only request consent to an order.
const CONSENT: [&str; 9] = ["好吗", "行吗", "可以吗", "成吗", "好么", "可以么", "行么", "好不好", "行不行"];
/// Openings of sentences that state an intention.
const INTENT: [&str; 29] = [
    "i will",
    "i'll",
    "we will",
    "we'll",
    "let me",
    "i am going to",
    "i'm going to",
    "we are going to",
    "we're going to",
    "i am about to",
    "i'm about to",
    "we are about to",
    "we're about to",
    "i plan to",
    "we plan to",
    "i intend to",
    "i might",
    "we might",
    "i may",
    "we may",
    "i could",
    "he will",
    "she will",
    "they will",
    "i am planning to",
    "i'm planning to",
    "i would",
    "i shall",
    "we shall",
];
const INTENT_HAN: [&str; 14] = [
    "我会",
    "我将",
    "我来",
    "我们会",
    "我们将",
    "我们来",
    "我打算",
    "我们打算",
    "我准备",
    "我们准备",
    "让我",
    "我去",
    "我自己",
    "我马上",
];
/// Subjects of sentences that report a past action.
const TELLERS: [&str; 7] = ["我们", "他们", "我", "他", "她", "你", "同事"];
const ALREADY: [&str; 6] = ["刚刚", "刚才", "刚", "已经", "已", "昨天"];

/// The reason why a sentence is not an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Question,
    Intent,
    Report,
}

/// Returns the mood of the first sentence that contains a verb of change and is not an order. `own` is the lowercase request
/// without quoted text.
pub(crate) fn first(own: &str) -> Option<Mood> {
    let mut rest = own.trim();
    while !rest.is_empty() {
        let end = rest.find(['.', '!', '?', ';', '。', '！', '？', '；', '\n']).unwrap_or(rest.len());
        // A dot inside a name or a number does not end a sentence.
        let end = sentence_end(rest, end);
        let mark = rest[end..].chars().next();
        if let Some(mood) = of(rest[..end].trim(), mark) {
            return Some(mood);
        }
        rest = mark.map_or("", |mark| rest[end + mark.len_utf8()..].trim_start());
    }
    None
}

fn sentence_end(text: &str, mut end: usize) -> usize {
    while text[end..].starts_with('.') && text[end + 1..].starts_with(|c: char| !c.is_whitespace()) {
        let from = end + 1;
        end = text[from..]
            .find(['.', '!', '?', ';', '。', '！', '？', '；', '\n'])
            .map_or(text.len(), |at| from + at);
    }
    end
}

fn of(sentence: &str, mark: Option<char>) -> Option<Mood> {
    let words: Vec<&str> = sentence
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | '，' | ':' | '：'))
        .filter(|word| !word.is_empty())
        .skip_while(|word| LEADS.contains(word))
        .collect();
    let plain = words.join(" ");
    let begins = |phrases: &[&'static str]| {
        phrases.iter().copied().find(|phrase| {
            plain.strip_prefix(phrase).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        })
    };
    if !has_change(sentence) {
        return None;
    }
    let marked = matches!(mark, Some('?' | '？'));
    if let Some(phrase) = begins(&ASKS) {
        let next = plain[phrase.len()..].split_whitespace().next().unwrap_or_default();
        let first_person = phrase.ends_with(" i") || phrase.ends_with(" we");
        if !(first_person && FIRST_PERSON_VERBS.contains(&next)) {
            return Some(Mood::Question);
        }
        return None;
    }
    if let Some(phrase) = begins(&INTENT) {
        let mut next = plain[phrase.len()..].split_whitespace();
        let verb =
            next.find(|word| !["just", "now", "then", "also", "soon", "probably", "maybe"].contains(word));
        return verb.is_some_and(is_change).then_some(Mood::Intent);
    }
    if let Some(phrase) = INTENT_HAN.iter().find(|phrase| sentence.starts_with(**phrase))
        && !sentence[phrase.len()..].contains(['，', ','])
    {
        return Some(Mood::Intent);
    }
    if is_reported(sentence) {
        return Some(Mood::Report);
    }
    let is_question = sentence.ends_with(['吗', '么']) && !sentence.ends_with("什么");
    let consent = CONSENT.iter().any(|end| {
        sentence
            .strip_suffix(end)
            .is_some_and(|rest| rest.trim_end().ends_with(['，', ',', '吧', '了', '下']))
    });
    let polite = POLITE.iter().any(|word| match word.is_ascii() {
        true => words.contains(word),
        false => sentence.contains(word),
    });
    ((is_question || marked) && !consent && !polite).then_some(Mood::Question)
}

/// `Please don't delete …`: whether a request starts with a prohibition and contains no verb that reads.
pub(crate) fn only_forbids(own: &str) -> bool {
    let rest = own.trim().strip_prefix("please ").unwrap_or(own.trim());
    let denied = ["don't ", "do not ", "never "].iter().find_map(|word| rest.strip_prefix(word));
    let is_lookup =
        ["show", "list", "read", "tell", "give", "just", "instead", "but", "only", "find", "what", "which"];
    denied.is_some_and(|rest| {
        let mut words = rest.split(|c: char| !c.is_alphanumeric() && c != '\'');
        words.clone().next().is_some_and(is_change) && !words.any(|word| is_lookup.contains(&word))
    })
}

/// 我删除了…: whether the sentence reports a past action.
fn is_reported(sentence: &str) -> bool {
    let Some(rest) = TELLERS.iter().find_map(|teller| sentence.strip_prefix(teller)) else { return false };
    let rest = ALREADY.iter().find_map(|word| rest.strip_prefix(word)).unwrap_or(rest);
    (1..=3).any(|count| {
        let end = rest.char_indices().nth(count).map_or(rest.len(), |(at, _)| at);
        VERBS.chinese.contains_key(&rest[..end]) && rest[end..].starts_with('了')
    })
}

/// Whether one of these verb classes changes something, that is, does more than read.
fn changes(classes: &BTreeSet<&'static str>) -> bool {
    classes.iter().any(|class| !class.starts_with("look_"))
}

/// Whether an English word is a verb that changes something.
fn is_change(word: &str) -> bool {
    VERBS.english.get(word).is_some_and(changes)
}

fn has_change(sentence: &str) -> bool {
    let word = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        let forms = [Some(word), word.strip_suffix("ed"), word.strip_suffix('d'), word.strip_suffix("led")];
        forms.into_iter().flatten().any(is_change)
    };
    sentence.split_whitespace().any(word)
        || VERBS.chinese.iter().any(|(verb, classes)| changes(classes) && sentence.contains(verb))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn does_not_take_question_about_change_for_command() {
        for request in [
            "can i delete row 3 of a.xlsx?",
            "can we cancel order",
            "could i cancel order",
            "is the price of set to 5?",
            "may i remove user bob?",
            "remove user bob?",
            "能删除 a.xlsx 第3行吗",
            "可以删除 a.xlsx 第3行吗？",
            "删除 a.xlsx 第3行吗？",
        ] {
            assert_eq!(first(request), Some(Mood::Question), "{request}");
        }
        for request in [
            "can you delete row 3 of a.xlsx?",
            "could you please cancel order?",
            "could the folder a be renamed to b, please?",
            "能帮我删除 a.xlsx 第3行吗？",
            "把第3行删了，可以吗？",
            "delete row 3 of a.xlsx",
            "what is in a.xlsx?",
        ] {
            assert_eq!(first(request), None, "{request}");
        }
    }

    #[test]
    fn does_not_take_statement_of_intent_or_past_for_command() {
        for request in
            ["i will remove user bob", "let me remove user bob", "we'll delete row 3", "我会删除用户 bob"]
        {
            assert_eq!(first(request), Some(Mood::Intent), "{request}");
        }
        assert_eq!(first("我删除了用户 bob"), Some(Mood::Report));
        assert_eq!(first("我已经删了第3行"), Some(Mood::Report));
        for request in
            ["i want you to remove user bob", "let me know what is in a.txt", "i'll be away, delete row 3"]
        {
            assert_eq!(first(request), None, "{request}");
        }
    }
}
