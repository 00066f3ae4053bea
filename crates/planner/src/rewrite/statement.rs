//! Statements beside an order that contain nothing the order needs: `Disk is nearly full. List /var/cache`, ，老板出差. They
//! are removed, except for statements that restrict, forbid or ask.

use crate::lexer::lexicon;
use crate::lexer::literal;
use crate::lexer::literal_scanner;
use crate::lexer::name::has_han;
use crate::lexer::split;
use crate::lexer::token::{is_han, tokenize};
use crate::rewrite::masked_text::{free_text, has_word, is_open, mask_literals};
use crate::rewrite::statement_words::{SUBJECTS, asks_for_more, binds, loosened, retracts};
use crate::selection::verb_class::VERBS;

/// Marks and words between a statement and the order after it.
const BREAKS: [&str; 11] = [". ", "! ", "... ", "… ", "…", "; ", " - ", " – ", ", so ", " so ", ", "];
/// Words that start the subject of a statement, in addition to pronouns and articles.
const OPENINGS: [&str; 13] = [
    "that's",
    "these",
    "those",
    "colleagues",
    "somehow",
    "turns",
    "looks",
    "seems",
    "boss",
    "customer",
    "client",
    "management",
    "bit",
];
/// Verbs of statements.
const STATES: [&str; 30] = [
    "is", "are", "was", "were", "has", "have", "had", "isn't", "aren't", "wasn't", "needs", "need", "got",
    "gets", "keeps", "keep", "looks", "seems", "became", "went", "left", "came", "broke", "fell", "wants",
    "want", "asked", "asks", "moved", "says",
];
/// Verbs of a remark without a subject.
const CLASHES: [&str; 4] = ["clashes", "overlaps", "conflicts", "collides"];
/// Irregular past forms after a personal pronoun.
const IRREGULAR: [&str; 22] = [
    "hit", "sold", "saw", "read", "sent", "had", "did", "went", "made", "took", "found", "wrote", "paid",
    "bought", "met", "spoke", "forgot", "told", "heard", "lost", "gave", "knew",
];
/// Words that select or keep items for the order beside a statement. A reason after `because` may contain them.
const PICKING: [&str; 15] = [
    "just",
    "first",
    "should",
    "may",
    "important",
    "keeping",
    "stay",
    "stays",
    "remain",
    "leave",
    "both",
    "all",
    "every",
    "second",
    "last",
];
/// The maximum length of a statement in words.
const MAX_STATEMENT_WORDS: usize = 14;
/// The maximum length of a Chinese statement in characters.
const MAX_STATEMENT_CHARS: usize = 16;

/// Marks between Chinese clauses.
const HAN_BREAKS: [char; 10] = ['，', ',', '。', '；', ';', '！', '!', '…', '、', '：'];
/// Words of a Chinese clause that restrict, forbid, ask or order.
const HAN_BINDING: [&str; 48] = [
    "别", "不能", "不许", "勿", "如果", "要是", "除", "只", "吗", "谁", "怎么", "等", "不要", "不用", "先",
    "保留", "留", "再", "以前", "其他", "其它", "剩", "也", "或", "把", "将", "请", "帮", "给", "麻烦", "吧",
    "一下", "我要", "？", "?", "必须", "应该", "不对", "但", "假如", "万一", "的话", "注意", "什么", "哪",
    "几", "要", "看",
];

/// Removes the statements before and after an order.
pub(crate) fn remove(text: &str) -> Option<String> {
    let literals = literal_scanner::find(text);
    if has_han(&mask_literals(text, &literals)) {
        return chinese(text);
    }
    let without_lead = leading(text);
    let rest = without_lead.as_deref().unwrap_or(text);
    trailing(rest).or(without_lead)
}

/// Whether a text is only a statement: it contains no name, number, restriction, question or order.
fn is_statement(clause: &str) -> bool {
    let clause = clause.trim().trim_end_matches(['.', '!', ',', ';', '…', ' ']);
    let words: Vec<&str> =
        clause.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty()).collect();
    let Some(first) = words.first() else { return false };
    let plain =
        !clause.contains(['#', ':', '?', '"', '(', '=']) && !clause.contains(|c: char| c.is_ascii_digit());
    let last = words.last().copied().unwrap_or_default();
    let past =
        |word: &str| word.len() > 4 && word.ends_with("ed") && !["called", "named", "titled"].contains(&word);
    let states = words.iter().any(|word| {
        STATES.contains(word)
            || CLASHES.contains(word)
            || word.ends_with("'s")
            || word.ends_with("'re")
            || word.ends_with("'ve")
            || is_subject(first) && (past(word) || IRREGULAR.contains(word))
    }) || past(last);
    // A statement with an indefinite pronoun and `can`.
    let states = states || ["nobody", "everyone", "everybody"].contains(first) && words.contains(&"can");
    let orders = VERBS.english.contains_key(*first) || split::is_verb(first);
    plain
        && words.len() <= MAX_STATEMENT_WORDS
        && !binds(clause)
        && !PICKING.iter().any(|word| has_word(&loosened(clause), word))
        && !clause.contains("n't ")
        && states
        && (is_subject(first) || !orders)
}

/// `Thanks, that was all I needed`: whether a whole request is only thanks or a remark.
pub(crate) fn is_remark(request: &str) -> bool {
    let lower = request.trim().to_lowercase();
    let leads = [
        "thanks",
        "thank you",
        "that was ",
        "that web page ",
        "that's ",
        "this was ",
        "it was ",
        "ok thanks",
        "great, ",
    ];
    leads.iter().any(|lead| lower.starts_with(lead)) && !lower.contains('?')
}

/// Whether a text starts with an order, after polite words.
pub(crate) fn begins_order(masked: &str) -> bool {
    const LEADS: [&str; 15] = [
        "please ",
        "pls ",
        "so ",
        "you can ",
        "you may ",
        "therefore ",
        "can you ",
        "could you ",
        "would you ",
        "just ",
        "now ",
        "then ",
        "let's ",
        "go ahead and ",
        "kindly ",
    ];
    let mut rest = masked.trim_start();
    while let Some(shorter) =
        LEADS.iter().find_map(|lead| rest.strip_prefix(lead)).or_else(|| past_place(rest))
    {
        rest = shorter;
    }
    let first =
        rest.split(|c: char| !c.is_ascii_alphabetic() && c != '-' && c != '\'').next().unwrap_or_default();
    let two: Vec<&str> = rest.split(' ').take(3).collect();
    let phrase = (2..=two.len()).any(|count| VERBS.english.contains_key(&two[..count].join(" ")));
    VERBS.english.contains_key(first)
        || split::is_verb(first)
        || phrase
        || lexicon::word_matches(rest, &tokenize(rest), &|_| false)
            .first()
            .is_some_and(|word_match| word_match.start == 0 && !word_match.meaning.verbs.is_empty())
}

/// `In #, replace …`, `as a dry run, …`: the text after a leading location or manner.
fn past_place(masked: &str) -> Option<&str> {
    let lead =
        ["in ", "on ", "for ", "inside ", "as a dry run"].iter().find(|lead| masked.starts_with(**lead))?;
    // `in # replace …`
    let trimmed = masked[lead.len()..].trim_start_matches('#');
    if trimmed.len() < masked.len() - lead.len() && trimmed.starts_with(' ') {
        return Some(trimmed.trim_start());
    }
    let (head, rest) = masked.split_once(", ")?;
    let plain = head.split(' ').count() <= 8 && !head.contains(['.', ';', '?']);
    (plain && (head.contains('#') || lead.starts_with("as a "))).then_some(rest)
}

/// Whether a text contains a pronoun that refers to an earlier sentence.
pub(crate) fn points_back(masked: &str) -> bool {
    // `make them a folder`: `them` is the recipient and not a reference.
    let plain = masked
        .replace(" them a ", " ")
        .replace(" him a ", " ")
        .replace(" her a ", " ")
        .replace(" it's ", " ")
        .replace(" saying that ", " ");
    ["it", "them", "him", "her", "that one", "this one", "those", "these", "that"]
        .iter()
        .any(|word| has_word(&plain, word))
}

fn leading(text: &str) -> Option<String> {
    let literals = literal_scanner::find(text);
    let masked = mask_literals(text, &literals);
    let until = free_text(&masked);
    let mut places: Vec<(usize, usize)> = BREAKS
        .iter()
        .flat_map(|mark| masked.match_indices(mark).map(|(at, found)| (at, at + found.len())))
        .filter(|(at, _)| *at < until)
        .collect();
    places.sort_unstable_by_key(|(at, end)| (*at, std::cmp::Reverse(*end)));
    // Removes the longest run of statements before an order.
    places.into_iter().rev().find_map(|(head, rest)| {
        let (clause, order) = (masked.get(..head)?, masked.get(rest..)?);
        // A name may be the object of the order.
        let mut words =
            text.get(..head)?.split(|c: char| c.is_whitespace() || c == '.').filter(|word| !word.is_empty());
        let first = words.next().unwrap_or_default();
        let named = words.any(|word| {
            word.starts_with(char::is_uppercase)
                && word != "I"
                && !word.starts_with("I'")
                && word != first
                && !is_subject(&word.to_lowercase())
        });
        let sentences = clause.split(['.', '!', '…', ';']).filter(|part| !part.trim().is_empty());
        let is_plain = !named
            && !clause.trim().is_empty()
            && sentences.clone().count() > 0
            && sentences
                .clone()
                .all(|part| is_statement(part) || part.trim().len() < 6 && !part.contains('#'));
        let names_literal = order.trim_start().starts_with('#') || order.contains('?') && order.contains('#');
        (is_plain
            && (begins_order(order) || names_literal && !is_open(&order.replace('?', "")))
            && !points_back(order))
        .then(|| text[rest..].trim_start().to_owned())
    })
}

fn trailing(text: &str) -> Option<String> {
    const STARTS: [&str; 46] = [
        "i'd like to read",
        "i want to read",
        "i need whatever",
        "everything in it was",
        "it has",
        "that was",
        "this was",
        "this is",
        "they have",
        "i want to compare",
        "i want to check",
        "i want to look",
        "i want to see",
        "i'd like to compare",
        "i have",
        "we have",
        "it's",
        "it is",
        "that's",
        "i'm",
        "we're",
        "they're",
        "he's",
        "she's",
        "i've",
        "we've",
        "i'll",
        "we'll",
        "i need",
        "we need",
        "i already",
        "we already",
        "the boss",
        "my boss",
        "boss",
        "the team",
        "the client",
        "the customer",
        "people",
        "i think",
        "it was",
        "they",
        "he",
        "she",
        "somebody",
        "someone",
    ];
    let literals = literal_scanner::find(text);
    let masked = mask_literals(text, &literals);
    let until = free_text(&masked);
    let marks = [", ", " - ", " – ", ". ", "; ", "! ", "? "];
    let (at, start) =
        marks.iter().filter_map(|mark| masked.rfind(mark).map(|at| (at, at + mark.len()))).max()?;
    let clause = masked.get(start..)?;
    let things = lexicon::word_matches(clause, &tokenize(clause), &|_| false);
    let names = things.iter().any(|word_match| !word_match.meaning.things.is_empty());
    let upper = text.get(start..)?.split(' ').skip(1).any(|word| word.starts_with(char::is_uppercase));
    let quoted =
        literals.iter().any(|found| found.end == at && matches!(found.literal, literal::Literal::Quoted(_)));
    // What was done, and what a thing is, may be said in words for kinds of things.
    let names = names && !reports(clause) && !identifies(clause);
    ((start <= until || quoted)
        && (STARTS.iter().any(|word| has_word(clause, word) && clause.starts_with(word))
            || reports(clause)
            || declares(clause))
        && (is_statement(clause) || is_apposition(clause))
        && !asks_for_more(clause)
        && !retracts(clause)
        && !names
        && !upper
        && begins_order(masked.get(..at)?))
    .then(|| text[..at].trim_end().to_owned())
}

/// `delete emails 1 and 2, all newsletters`: whether a part is an apposition of one plural noun.
fn is_apposition(clause: &str) -> bool {
    let words: Vec<&str> = clause.trim_end_matches(['.', '!', ' ']).split(' ').collect();
    matches!(words.as_slice(), ["all" | "both", noun] if noun.ends_with('s') && noun.len() > 3)
}

/// `it's just an ad`, `that was the taxi`: whether a clause tells what a thing is.
fn identifies(clause: &str) -> bool {
    [
        "it's ",
        "it is ",
        "it was ",
        "that's ",
        "that was ",
        "that is ",
        "this was ",
        "they're ",
        "they are ",
        "those are ",
    ]
    .iter()
    .any(|lead| clause.starts_with(lead))
}

/// `reception keeps asking for it`, `the projector is dead`: whether a clause has a subject and then the verb of a statement.
fn declares(clause: &str) -> bool {
    const PREPOSITIONS: [&str; 24] = [
        "in", "on", "at", "to", "from", "with", "as", "of", "for", "by", "into", "under", "about", "and",
        "or", "then", "starting", "using", "subject", "body", "location", "title", "type", "until",
    ];
    const MAX_SUBJECT_WORDS: usize = 7;
    let words: Vec<&str> = clause.split(' ').collect();
    let first = words.first().copied().unwrap_or_default();
    let verb = words.iter().position(|word| {
        [
            "is", "are", "was", "were", "has", "have", "keeps", "looks", "seems", "needs", "wants", "got",
            "went", "broke",
        ]
        .contains(word)
    });
    // `decline the invite, clashes with payroll`
    let clashes = CLASHES.contains(&first) && words.get(1) == Some(&"with");
    let subject = (is_subject(first) || !split::is_verb(first) && !VERBS.english.contains_key(first))
        && !PREPOSITIONS.contains(&first)
        && first.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'\'');
    clashes
        || is_apposition(clause)
        || subject
            && verb.is_some_and(|verb| (1..=MAX_SUBJECT_WORDS).contains(&verb) && words.len() > verb + 1)
}

/// `I added the wrong files`: whether a clause starts with a personal pronoun and a verb in the past tense.
fn reports(clause: &str) -> bool {
    let mut words = clause.split(' ');
    let person = words.next().is_some_and(|word| ["i", "we", "he", "she", "they"].contains(&word));
    person
        && words
            .next()
            .is_some_and(|word| word.len() > 4 && word.ends_with("ed") || IRREGULAR.contains(&word))
}

/// ，他转正了: removes clauses that contain nothing an order needs.
fn chinese(text: &str) -> Option<String> {
    let literals = literal_scanner::find(text);
    let free = |at: usize| !literals.iter().any(|found| found.start <= at && at < found.end);
    let masked = mask_literals(text, &literals);
    let until = free_text(&masked);
    let mut clauses: Vec<(usize, usize, usize)> = Vec::new();
    let mut start = 0;
    for (at, mark) in text.char_indices() {
        if HAN_BREAKS.contains(&mark) && free(at) {
            clauses.push((start, at, at + mark.len_utf8()));
            start = at + mark.len_utf8();
        }
    }
    clauses.push((start, text.len(), text.len()));
    if clauses.len() < 2 {
        return None;
    }
    let is_statement_clause = |(start, end, _): &(usize, usize, usize)| {
        let clause = masked.get(*start..*end).unwrap_or_default().trim();
        let word_matches = lexicon::word_matches(clause, &tokenize(clause), &|_| false);
        let states = clause.ends_with(['了', '啦', '的', '着'])
            || ["老板", "领导", "客户", "他", "她", "我", "大家", "刚才", "刚刚", "反正", "因为", "毕竟"]
                .iter()
                .any(|word| clause.starts_with(word))
            || clause.starts_with('是');
        let past = ["刚才", "刚刚", "之前", "昨天", "不小心", "手滑", "上次", "前几天"]
            .iter()
            .any(|word| clause.starts_with(word));
        let known =
            |word: &str| past && word.is_ascii() || !VERBS.chinese.contains_key(word.trim_end_matches('了'));
        let orders = word_matches.iter().any(|word_match| {
            let word = clause.get(word_match.start..word_match.end).unwrap_or_default();
            !word_match.meaning.things.is_empty() || !word_match.meaning.verbs.is_empty() && !known(word)
        });
        *start < until
            && !clause.is_empty()
            && clause.chars().count() <= MAX_STATEMENT_CHARS
            && clause.chars().filter(|c| is_han(*c)).count() >= 2
            && !clause.contains('#')
            && !clause
                .contains(|c: char| c.is_ascii_digit() || c.is_ascii_uppercase() || "“”\"「」：:".contains(c))
            && !HAN_BINDING.iter().any(|word| clause.contains(word))
            && states
            && !orders
    };
    let remaining: Vec<&(usize, usize, usize)> =
        clauses.iter().filter(|clause| !is_statement_clause(clause)).collect();
    if remaining.len() == clauses.len() || remaining.is_empty() {
        return None;
    }
    // The antecedent of 它 or 他 may be in one of the clauses.
    if ["他", "她", "它", "其"]
        .iter()
        .any(|word| remaining.iter().any(|(start, end, _)| masked[*start..*end].contains(word)))
    {
        return None;
    }
    let mut result = String::new();
    for (start, _, end) in &remaining {
        result.push_str(&text[*start..*end]);
    }
    let result = result
        .trim()
        .trim_end_matches(['，', ',', '；', '、'])
        .trim_start_matches(['…', '，', '。'])
        .to_owned();
    result.contains(|c: char| c.is_alphanumeric()).then_some(result)
}

/// Whether a word starts the subject of a statement.
fn is_subject(word: &str) -> bool {
    SUBJECTS.contains(&word) || OPENINGS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_statements_without_arguments() {
        let check = |text: &str, expect: Option<&str>| assert_eq!(remove(text).as_deref(), expect, "{text}");
        check("Disk is nearly full. List /var/cache with sizes", Some("List /var/cache with sizes"));
        check("Room's flooded, ugh. Move event ev_3 to 2026-12-09", Some("Move event ev_3 to 2026-12-09"));
        check("delete email 88213, it's spam", Some("delete email 88213"));
        check("取消日程 ev-501，老板出差", Some("取消日程 ev-501"));
        check("线上又超时了…从 main 拉个分支 hotfix/a", Some("从 main 拉个分支 hotfix/a"));
        check("nobody can make it, cancel event ev-3092", Some("cancel event ev-3092"));
        check("bin email a9-220, it's just an ad", Some("bin email a9-220"));
        check(
            "rename /in/a.csv to /in/b.csv, reception keeps asking for it",
            Some("rename /in/a.csv to /in/b.csv"),
        );
        check("delete email 88213, that was a joke", None);
        check("delete email 88213, Tom is still reading it", None);
        check("delete email 88213, nobody has confirmed it yet", None);
        check("delete row 3 of a.xlsx, the header is needed", None);
        check("delete row 3 of a.xlsx, the second one is fine", None);
        check("Row 4 is fine. Delete row 3", None);
        check("The header stays. Delete rows 1 to 5 of a.xlsx", None);
        check("delete rows 1 to 5, it's only the header that stays", None);
        check("这个表没用了，删掉吧", None);
        check("第一行要保留，删掉 a.xlsx 的其余行", None);
    }
}
