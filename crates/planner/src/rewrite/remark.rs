//! Statements beside an order: `X is obsolete, remove it`, 这个表没用了，删掉吧. The subject of the statement becomes the object of
//! the order; the rest of the statement is dropped.

use crate::lexer::lexicon::{self, WordMatch};
use crate::lexer::literal_scanner;
use crate::lexer::name::has_han;
use crate::lexer::split;
use crate::lexer::token::{Token, TokenKind, is_han, tokenize};
use crate::rewrite::masked_text::{has_word, is_open, mask_literals};
use crate::selection::verb_class::VERBS;

/// Verbs of a statement about a thing.
const STATES: [&str; 36] = [
    " left us ",
    " left the ",
    " is ",
    " are ",
    " isn't ",
    " aren't ",
    " was ",
    " were ",
    " has ",
    " have ",
    " needs ",
    " need ",
    " looks ",
    " seems ",
    " contains ",
    " holds ",
    " got ",
    " became ",
    " clashes ",
    " overlaps ",
    " conflicts ",
    " collides ",
    " went ",
    " came ",
    " arrived ",
    " no longer ",
    " turned ",
    " belongs ",
    " keeps ",
    " shows ",
    " says ",
    " sounds ",
    " appears ",
    " feels ",
    " doesn't ",
    " hasn't ",
];
/// Other subjects of a statement that mentions the object of the order.
const SPEAKERS: [&str; 16] = [
    "i ",
    "i've ",
    "i'm ",
    "we ",
    "we've ",
    "we're ",
    "i have ",
    "he ",
    "she ",
    "they ",
    "my boss ",
    "someone ",
    "somebody ",
    "nobody ",
    "everybody ",
    "everyone ",
];
/// Words before the verb of the order.
const LEADS: [&str; 16] = [
    "so ",
    "please ",
    "pls ",
    "therefore ",
    "now ",
    "then ",
    "can you ",
    "could you ",
    "would you ",
    "kindly ",
    "just ",
    "go ahead and ",
    "let's ",
    "you can ",
    "you may ",
    "and ",
];
/// Words of a statement that restrict or forbid the order.
const BOUNDS: [&str; 14] = [
    "must",
    "mustn't",
    "shouldn't",
    "should",
    "may",
    "can't",
    "cannot",
    "only",
    "except",
    "don't",
    "never",
    "keep",
    "important",
    "wait",
];
/// Prepositions before a literal that is a location.
const PLACES: [&str; 6] = ["in", "on", "at", "under", "inside", "within"];

/// Final characters of a Chinese statement about a thing.
const HAN_ENDS: [char; 2] = ['了', '的'];
/// The maximum length of a Chinese predicate in characters.
const MAX_PREDICATE_CHARS: usize = 10;
const HAN_LEADS: [&str; 14] = [
    "就",
    "所以",
    "请",
    "麻烦你",
    "麻烦",
    "帮我",
    "给我",
    "直接",
    "可以",
    "那就",
    "你",
    "帮忙",
    "劳烦",
    "干脆",
];
const HAN_BOUNDS: [&str; 12] =
    ["别", "不能", "不许", "勿", "如果", "要是", "除了", "只", "吗", "谁", "怎么", "等"];

/// Removes a statement before an order and replaces the pronoun in the order with the statement's subject.
pub(crate) fn remove_statement(text: &str) -> Option<String> {
    if has_han(&mask_literals(text, &literal_scanner::find(text))) || !text.is_ascii() && has_han(text) {
        return chinese(text);
    }
    let literals = literal_scanner::find(text);
    let masked = mask_literals(text, &literals);
    if is_open(&masked.replace("isn't", "").replace("doesn't", "").replace("not ", "")) {
        return None;
    }
    let breaks = [", ", "; ", ": ", ". ", " - ", " – ", "! ", " so "];
    let mut places: Vec<(usize, usize)> = breaks
        .iter()
        .flat_map(|mark| masked.match_indices(mark).map(|(at, found)| (at, at + found.len())))
        .collect();
    places.sort_unstable();
    places.into_iter().find_map(|(head, rest)| {
        let mut from = rest;
        while let Some(lead) = LEADS.iter().find(|lead| masked[from..].starts_with(**lead)) {
            from += lead.len();
        }
        let order = masked.get(from..)?;
        let verb = order.split(|c: char| !c.is_ascii_alphabetic() && c != '-').next()?;
        let begins = VERBS.english.contains_key(verb) || split::is_verb(verb) || begins_phrase(order);
        (begins && !verb.starts_with("wh")).then(|| statement(text, &masked, head, from)).flatten()
    })
}

/// Whether a text starts with a verb of several words: `get rid of`.
fn begins_phrase(order: &str) -> bool {
    let words: Vec<&str> = order.split(' ').take(VERBS.longest.0).collect();
    (2..=words.len()).any(|count| VERBS.english.contains_key(&words[..count].join(" ")))
}

/// The order that starts at `order_start`, completed with the subject of the statement that ends at `statement_end`.
fn statement(text: &str, masked: &str, statement_end: usize, order_start: usize) -> Option<String> {
    let head = masked.get(..statement_end)?;
    let order = text.get(order_start..)?;
    let first = head.split(|c: char| !c.is_ascii_alphabetic() && c != '\'').next().unwrap_or_default();
    let no_subjects =
        ["what", "which", "is", "are", "does", "do", "can", "could", "please", "in", "on", "there", "here"];
    // `message 77104 keeps …`: a word that may be a verb is a noun before a number.
    let named = head[first.len()..].trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '#');
    let noun = ["message", "email", "mail", "branch"].contains(&first) && named;
    if VERBS.english.contains_key(first) && !noun
        || no_subjects.contains(&first)
        || BOUNDS.iter().any(|word| has_word(&head.replace(" is only a ", " is a "), word))
    {
        return None;
    }
    if let Some(speaker) = SPEAKERS.iter().find(|speaker| head.starts_with(**speaker)) {
        let own = literal_scanner::find(text.get(speaker.len()..statement_end)?);
        // `We no longer buy from Old Supplier Ltd, so remove that entity`: the only name.
        if own.is_empty() {
            let name = crate::rewrite::coreference::capital_name(text.get(..statement_end)?, &[])?;
            let entity = ["that entity", "this entity", "the entity", "that node"]
                .iter()
                .any(|kind| has_word(&masked[order_start..], kind));
            return entity.then(|| resolve_pronoun(order, &name)).flatten();
        }
        let [one] = own.as_slice() else { return None };
        let (start, end) = (speaker.len() + one.start, speaker.len() + one.end);
        let before = text.get(..start)?.trim_end();
        let last = before.rsplit(' ').next().unwrap_or_default().to_lowercase();
        if PLACES.contains(&last.as_str()) {
            let order = order.trim_end_matches(['.', '!', ' ']);
            return Some(format!("{order} {last} {}", &text[start..end]));
        }
        let kind = before.rfind(' ').map_or(0, |at| at + 1);
        let word_matches = lexicon::word_matches(&before[kind..], &tokenize(&before[kind..]), &|_| false);
        let is_kind = word_matches.iter().any(|word_match| !word_match.meaning.things.is_empty());
        return resolve_pronoun(order, &text[if is_kind { kind } else { start }..end]);
    }
    // `the location of evt_12 is now Room 9, please update it`: the statement gives the new value.
    if let Some(now) = head.find(" is now ").or_else(|| head.find(" should now be ")) {
        let verb = masked.get(order_start..)?.split(' ').next()?;
        let new_value =
            text.get(now + head[now..].find("now ")? + 4..statement_end)?.trim_start_matches("be ").trim();
        let subject = text.get(..now)?.trim();
        let changes = ["update", "change", "adjust", "correct", "fix"].contains(&verb);
        let bare = literal_scanner::find(order).is_empty() && order.split(' ').count() <= 5;
        return (changes && bare && subject.contains(" of "))
            .then(|| format!("change {subject} to {new_value}"));
    }
    let (at, _) = STATES.iter().filter_map(|state| head.find(state).map(|at| (at, state))).min()?;
    // The predicate must not contain names or literals that the order might need.
    let clause = text.get(at..statement_end)?;
    let inner = |c: char| c.is_ascii_digit() || c.is_uppercase();
    if clause.contains(inner) || masked.get(at..statement_end)?.contains('#') {
        return None;
    }
    let thing = text.get(..at)?.trim();
    resolve_pronoun(order, thing.strip_prefix("Both ").unwrap_or(thing))
}

/// The number of things in `A and B`, `A, B and C`.
fn members(thing: &str) -> usize {
    thing.split(" and ").flat_map(|part| part.split(", ")).filter(|part| !part.trim().is_empty()).count()
}

fn counted(word: &str) -> usize {
    ["two", "three", "four"].iter().position(|count| word.eq_ignore_ascii_case(count)).map_or(0, |at| at + 2)
}

/// Replaces the pronoun in an order with the thing it refers to.
fn resolve_pronoun(order: &str, thing: &str) -> Option<String> {
    let literals = literal_scanner::find(order);
    let free = |at: usize| !literals.iter().any(|found| found.start <= at && at < found.end);
    let all = tokenize(order);
    let thing_has_kind = !lexicon::word_matches(thing, &tokenize(thing), &|token| {
        literal_scanner::find(thing).iter().any(|found| found.start < token.end && token.start < found.end)
    })
    .is_empty();
    for (at, token) in
        all.iter().enumerate().filter(|(_, token)| token.kind == TokenKind::Word && free(token.start))
    {
        if token.is_any(&["it", "them"]) {
            return Some(format!("{}{thing}{}", &order[..token.start], &order[token.end..]));
        }
        if !token.is_any(&["that", "this", "the", "these", "those"]) {
            continue;
        }
        let next = all.get(at + 1).filter(|next| next.kind == TokenKind::Word && free(next.start));
        // `stage those two in …`, `delete these two entities`: all things of the statement.
        if token.is_any(&["these", "those"])
            && next.is_some_and(|next| next.is_any(&["two", "three", "four"]))
            && let Some(count) = next
            && members(thing) == counted(count.text)
        {
            let after = all.get(at + 2).filter(|after| after.kind == TokenKind::Word && free(after.start));
            let kind = after.filter(|after| {
                !lexicon::word_matches(after.text, &tokenize(after.text), &|_| false).is_empty()
                    || after.is_any(&["files", "things", "ones"])
            });
            let object = match kind {
                Some(kind) if !thing_has_kind => format!("the {} {thing}", kind.text),
                _ => thing.to_owned(),
            };
            let end = kind.map_or(count.end, |kind| kind.end);
            return Some(format!("{}{object}{}", &order[..token.start], &order[end..]));
        }
        if next.is_some_and(|next| next.is_any(&["one", "ones"])) {
            let end = all[at + 1].end;
            return Some(format!("{}{thing}{}", &order[..token.start], &order[end..]));
        }
        let kind = next
            .filter(|next| !lexicon::word_matches(next.text, &tokenize(next.text), &|_| false).is_empty());
        match kind {
            // `delete that mail`: a noun for a kind without a name after it refers to the thing in the statement.
            Some(kind)
                if !order[kind.end..]
                    .trim_start()
                    .starts_with(|c: char| c.is_ascii_uppercase() || c.is_ascii_digit()) =>
            {
                let object = match thing_has_kind {
                    true => thing.to_owned(),
                    false => format!("{} {thing}", &order[token.start..kind.end]),
                };
                return Some(format!("{}{object}{}", &order[..token.start], &order[kind.end..]));
            }
            None if token.is_any(&["that", "this"]) => {
                return Some(format!("{}{thing}{}", &order[..token.start], &order[token.end..]));
            }
            _ => {}
        }
    }
    None
}

/// Containers that an order may name before its verb: 从知识图谱里删了吧.
const HAN_CONTAINERS: [&str; 13] = [
    "从日历里",
    "从日历中",
    "从我的日历里",
    "从日历上",
    "从邮箱里",
    "从知识图谱里",
    "从图谱里",
    "知识图谱里",
    "图谱里",
    "从知识图谱中",
    "知识图谱中",
    "在知识图谱里",
    "从记忆里",
];
/// Words that may follow the verb of an order without an object.
const HAN_AFTER_VERB: [&str; 21] = [
    "整列",
    "整行",
    "这一列",
    "这一行",
    "这列",
    "这行",
    "掉",
    "了",
    "吧",
    "就行",
    "即可",
    "掉吧",
    "一下",
    "一下吧",
    "掉就行",
    "为",
    "成",
    "到",
    "进",
    "至",
    "入",
];

/// 账目.xlsx 里 2023年 这个工作表不要了，删掉吧: the Chinese equivalent.
fn chinese(text: &str) -> Option<String> {
    let literals = literal_scanner::find(text);
    let free = |at: usize| !literals.iter().any(|found| found.start <= at && at < found.end);
    let (comma, length) = text
        .char_indices()
        .find(|(at, c)| "，,。；;".contains(*c) && free(*at) && text[at + c.len_utf8()..].contains(is_han))
        .map(|(at, c)| (at, c.len_utf8()))?;
    let head = text.get(..comma)?.trim_end();
    let order = text.get(comma + length..)?.trim_start();
    if HAN_BOUNDS.iter().any(|word| text.match_indices(word).any(|(at, _)| free(at))) {
        return None;
    }
    let is_used = |token: &Token<'_>| !free(token.start);
    let word_matches = lexicon::word_matches(head, &tokenize(head), &is_used);
    let literal_ends: Vec<usize> =
        literals.iter().map(|found| found.end).filter(|end| *end <= comma).collect();
    let number = number_end(head);
    let last = subject_end(head, &word_matches, &literal_ends, number)?;
    let has_verb_before = word_matches.iter().any(|word_match| {
        !word_match.meaning.verbs.is_empty()
            && head
                .get(word_match.start..word_match.end)
                .is_some_and(|word| word_match.end <= last && !word.ends_with('了'))
    });
    let is_identified =
        !literals.is_empty() || head.contains("实体") || head.contains("节点") || number.is_some();
    let is_polite = ["请", "麻烦", "帮我", "帮忙", "劳烦"].iter().any(|lead| order.starts_with(lead));
    if !is_predicate(head.get(last..)?, is_polite) || has_verb_before || !is_identified {
        return None;
    }
    HanOrder::read(order).about(head.get(..last)?.trim())
}

/// The end of the number of a mail or an event: 邮件 3345 是垃圾邮件.
fn number_end(head: &str) -> Option<usize> {
    ["邮件", "日程", "会议"].iter().find_map(|kind| {
        let at = head.find(kind)? + kind.len();
        let rest = head[at..].trim_start();
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        (digits > 1).then_some(head.len() - rest.len() + digits)
    })
}

/// The end of the subject: that of its last literal or of the last noun for its kind.
fn subject_end(
    head: &str,
    word_matches: &[WordMatch],
    literal_ends: &[usize],
    number: Option<usize>,
) -> Option<usize> {
    let kinds = word_matches
        .iter()
        .filter(|word_match| !word_match.meaning.things.is_empty() && word_match.meaning.verbs.is_empty());
    let last = kinds.map(|word_match| word_match.end).chain(literal_ends.iter().copied()).max()?;
    // 邮件 3345 是垃圾邮件: a noun in the predicate is not another subject.
    let named_end = literal_ends.iter().copied().chain(number).max().unwrap_or(0);
    let precedes_predicate = head.get(named_end..).is_some_and(|rest| rest.trim_start().starts_with('是'));
    Some(if named_end > 0 && precedes_predicate { named_end } else { last })
}

/// Whether the words after a subject only state something about it: 不要了, 是垃圾邮件.
fn is_predicate(state: &str, has_polite_order: bool) -> bool {
    let is_short = state.chars().count() <= MAX_PREDICATE_CHARS;
    let is_plain = state.chars().all(|c| is_han(c) || c.is_whitespace());
    let is_something = state.trim().starts_with('是') && state.chars().count() <= 8;
    // 涉及隐私，请删除: a polite order after a predicate refers to the subject of the predicate.
    let keeps =
        ["留", "不要动", "还要", "重要", "先", "才", "再", "应"].iter().any(|word| state.contains(word));
    let is_reason = has_polite_order && state.chars().filter(|c| is_han(*c)).count() > 2 && !keeps;
    (state.ends_with(HAN_ENDS) || is_something || is_reason) && state.trim() != "的" && is_short && is_plain
}

/// A Chinese order without polite words: 从图谱里 永久 删除吧.
struct HanOrder<'a> {
    /// The container before the verb; may be empty.
    place: &'a str,
    /// The adverb before the verb; may be empty.
    manner: &'a str,
    /// From the verb or the pronoun on.
    action: &'a str,
}

impl<'a> HanOrder<'a> {
    fn read(mut order: &'a str) -> Self {
        while let Some(lead) = HAN_LEADS.iter().find(|lead| order.starts_with(**lead)) {
            order = order[lead.len()..].trim_start();
        }
        let container = HAN_CONTAINERS.iter().filter(|word| order.starts_with(**word));
        let (place, order) = order.split_at(container.map(|word| word.len()).max().unwrap_or(0));
        let order = order.trim_start_matches(['面', '的', '一', '并', '把', '给', '也', '都']).trim_start();
        // 请永久删除, 全部取消暂存: an adverb may precede the verb.
        let adverb = ["永久", "彻底", "全部", "统统", "全都"].iter().find(|word| order.starts_with(**word));
        let (manner, action) = order.split_at(adverb.map_or(0, |word| word.len()));
        Self { place, manner, action }
    }

    /// The order with its object; `None` if it has an object of its own and does not refer to the subject of the statement.
    fn about(&self, thing: &str) -> Option<String> {
        let Self { place, manner, action } = *self;
        for pronoun in ["把它", "将它", "把其", "将其", "把这个", "把那个", "它"] {
            if let Some(rest) = action.strip_prefix(pronoun) {
                return Some(format!("把 {thing} {}", rest.trim_start()));
            }
        }
        let own = lexicon::word_matches(action, &tokenize(action), &|_| false);
        let verb =
            own.first().filter(|word_match| word_match.start == 0 && !word_match.meaning.verbs.is_empty())?;
        let rest = action.get(verb.end..)?.replace('它', "");
        let rest = rest.trim_end_matches(['。', '！', '!', '.', ' ']);
        let after_verb = rest.trim_start_matches(|c: char| c.is_whitespace());
        let names_location = ["，仓库是", "，仓库在", "，仓库为", "，在", "，仓库"]
            .iter()
            .any(|word| after_verb.starts_with(word));
        let continues = names_location
            || HAN_AFTER_VERB.iter().any(|word| after_verb.starts_with(word))
            || after_verb.is_empty()
            || action[..verb.end].ends_with(['为', '成', '到', '进', '至', '入']);
        continues.then(|| format!("{place}把 {thing} {manner}{}{rest}", &action[..verb.end]))
    }
}

/// `cancel evt_40, nobody can make it`: removes a reason after an order.
pub(crate) fn remove_reason(text: &str) -> Option<String> {
    const REASONS: [&str; 14] = [
        "nobody ",
        "no one ",
        "everyone ",
        "everybody ",
        "because ",
        "since it",
        "as it",
        "they ",
        "he ",
        "she ",
        "it's no longer",
        "it is no longer",
        "we no longer",
        "i no longer",
    ];
    const HAN_REASONS: [&str; 8] = ["因为", "反正", "没人", "大家", "没有人", "用不着", "用不上", "以免"];
    const BINDING: [&str; 14] = [
        "only", "except", "but", "not", "just", "instead", "unless", "if", "when", "until", "first", "then",
        "and", "before",
    ];
    let literals = literal_scanner::find(text);
    let masked = mask_literals(text, &literals);
    let marks = [", ", " - ", " – ", ". ", "; ", "，", "。", "；"];
    let (at, start) =
        marks.iter().filter_map(|mark| masked.rfind(mark).map(|at| (at, at + mark.len()))).max()?;
    let reason = masked.get(start..)?.trim_start();
    let english = REASONS.iter().any(|word| reason.starts_with(word))
        && !BINDING.iter().any(|word| has_word(reason, word));
    let chinese = HAN_REASONS.iter().any(|word| reason.starts_with(word))
        && !["只", "除", "别", "就", "再"].iter().any(|word| reason.contains(word));
    let plain = !reason.contains(['#', '?', '？']) && !reason.contains(|c: char| c.is_ascii_digit());
    let head = masked.get(..at)?;
    let first = head.split(|c: char| !c.is_ascii_alphabetic() && c != '-').next().unwrap_or_default();
    let ordered = VERBS.english.contains_key(first)
        || split::is_verb(first)
        || has_han(head)
        || crate::rewrite::statement::begins_order(head);
    // `they asked for Apollo, too`: a clause with a name, or one that adds items, is not a reason.
    let original = text.get(start..)?.trim_start();
    let named = original
        .split(' ')
        .skip(1)
        .any(|word| word.starts_with(|c: char| c.is_ascii_uppercase()) && word != "I")
        || crate::rewrite::statement_words::asks_for_more(reason)
        || crate::rewrite::statement_words::retracts(reason);
    (plain && ordered && !named && (english || chinese)).then(|| text[..at].trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_statement_by_its_subject() {
        let check = |text: &str, expect: Option<&str>| {
            assert_eq!(remove_statement(text).as_deref(), expect, "{text}");
        };
        check(
            "the entity \"Old CRM\" is obsolete, remove it from the graph",
            Some("remove the entity \"Old CRM\" from the graph"),
        );
        check("AAMk-559 is just spam, delete that mail", Some("delete that mail AAMk-559"));
        check("event evt_905 is off, so delete it please", Some("delete event evt_905 please"));
        check("I've seen email m-77 already, so mark it as read", Some("mark email m-77 as read"));
        check(
            "I staged way too much in ~/work, please unstage all of it",
            Some("unstage all of it in ~/work"),
        );
        check("/in/a.pdf needs a better name: rename it to /in/b.pdf", Some("rename /in/a.pdf to /in/b.pdf"));
        check("if evt_40 has no attendees, delete it", None);
        check("the sheet Old is important, delete the sheet Tmp", None);
        check("is evt_40 off? delete it", None);
        check(
            "账目.xlsx 里 2023年 这个工作表不要了，删掉吧",
            Some("把 账目.xlsx 里 2023年 这个工作表 删掉吧"),
        );
        check("msg_31 别删，留着", None);
    }

    #[test]
    fn removes_reason_clauses() {
        let check = |text: &str, expect: Option<&str>| {
            assert_eq!(remove_reason(text).as_deref(), expect, "{text}");
        };
        check("cancel evt_40, nobody can make it", Some("cancel evt_40"));
        check("取消 evt_40，因为没人来", Some("取消 evt_40"));
        check("delete row 3, they only want row 4", None);
        check("delete row 3, everyone in row 4 stays", None);
        check("please delete row 3, nobody uses it", Some("please delete row 3"));
        check("please delete row 3, they asked for Apollo too", None);
    }
}
