//! Removes the reason for an order: `The client withdrew, so cancel …`, `…, since we sold the building`, 下午要发版，请…. A part
//! is removed if a conjunction marks it as a reason or a purpose and if it names nothing. The rest must prove a change by
//! itself; parts that restrict, forbid or ask are kept.

use crate::lexer::lexicon;
use crate::lexer::literal;
use crate::lexer::literal_scanner;
use crate::lexer::name::has_han;
use crate::lexer::token::{is_han, tokenize};
use crate::rewrite::masked_text::{free_text, has_word, mask_literals};
use crate::rewrite::statement::{begins_order, points_back};
use crate::rewrite::statement_words::{SUBJECTS, asks_for_more, binds, retracts};

/// Separators between a reason and its order.
const BREAKS: [&str; 8] =
    [", so please ", ", so ", "; so ", ": ", "; ", ". ", ", therefore ", " and therefore "];
/// Words that start a reason, in addition to the subjects of statements.
const OPENINGS: [&str; 11] =
    ["i'd", "i'll", "we'll", "they'll", "these", "both", "because", "since", "as", "a", "an"];
/// Conjunctions of a reason after an order; the next word must start a statement.
const AFTER: [&str; 4] = [", since ", ", because ", ", as ", " because "];
/// Phrases that start a purpose clause, with any continuation.
const PURPOSE: [&str; 10] = [
    "# i'll ",
    "# i will ",
    ", so that i can ",
    ", so that we can ",
    ", so i can ",
    ", so we can ",
    " so that i can ",
    " so that we can ",
    ". i'll ",
    ". i will ",
];
/// Words that start an order after a Chinese reason.
const HAN_ORDERS: [&str; 9] = ["请", "帮我", "帮忙", "麻烦", "劳驾", "我需要", "所以请", "所以", "拜托"];
const HAN_BINDING: [&str; 32] = [
    "别", "不能", "不许", "勿", "如果", "要是", "除", "只", "吗", "谁", "怎么", "不要", "不用", "先", "保留",
    "留", "其他", "其它", "剩", "或", "必须", "应该", "但", "假如", "万一", "的话", "注意", "什么", "哪",
    "几", "？", "把",
];
/// The maximum length of a reason in words and in Chinese characters.
const MAX_REASON_WORDS: usize = 14;
const MAX_REASON_CHARS: usize = 18;
/// Requests to read that repeat the previous one.
const REPEATS: [&str; 22] = [
    "，看差在哪",
    "，看看差在哪",
    "，看看差在哪里",
    "，看看有什么不同",
    "，看看有哪些不同",
    "，看哪里不一样",
    "？打开看看",
    "，打开看看",
    "？打开给我看看",
    "，打开给我看看",
    " and let me read it",
    " and let me see it",
    " and show it to me",
    "，给我看看里面的内容",
    "，看看里面的内容",
    "？读给我看看",
    "，读给我看看",
    "，读给我听",
    "，看看都记了什么",
    "，看看里面写了什么",
    "，我要对照着看",
    "让我确认",
];

/// Returns the request without its reason.
pub(crate) fn remove(text: &str) -> Option<String> {
    let literals = literal_scanner::find(text);
    let masked = mask_literals(text, &literals);
    // `First do this, then that`: the parts are already in order.
    if let Some(rest) = ["first ", "first, "].iter().find_map(|word| masked.strip_prefix(word))
        && masked.contains(" then ")
        && begins_order(rest)
    {
        return Some(text[text.len() - rest.len()..].to_owned());
    }
    if let Some(shorter) =
        repeated(text, &masked).or_else(|| of_each(text, &masked)).or_else(|| parenthesis(text, &masked))
    {
        return Some(shorter);
    }
    if has_han(&masked) {
        return chinese(text, &masked);
    }
    if let Some(shorter) = folder_for(text, &masked).or_else(|| needed_for(text, &masked)) {
        return Some(shorter);
    }
    let lead = leading(text, &masked);
    let rest = lead.as_deref().unwrap_or(text);
    trailing(rest).or(lead)
}

/// Whether a word starts the subject of a reason.
fn is_subject(word: &str) -> bool {
    SUBJECTS.contains(&word) || OPENINGS.contains(&word)
}

/// `Kim Lee starts in July`: whether a sentence begins with a name of two words and then a verb in the third person or the past.
fn is_about_person(original: &str, clause: &str) -> bool {
    let words: Vec<&str> = original.split(' ').collect();
    let [first, last, verb, ..] = words.as_slice() else { return false };
    let name = |word: &str| {
        word.starts_with(char::is_uppercase) && word.chars().skip(1).all(|c| c.is_ascii_lowercase())
    };
    let lower = |word: &str| word.bytes().all(|byte| byte.is_ascii_lowercase());
    let acts =
        lower(verb) && verb.len() > 2 && (verb.ends_with('s') || verb.ends_with("ed") || *verb == "left");
    let things = lexicon::word_matches(clause, &tokenize(clause), &|_| false);
    let orders = crate::selection::verb_class::VERBS.english.contains_key(first.to_lowercase().as_str());
    name(first)
        && name(last)
        && acts
        && !orders
        && !["keeps", "stays", "needs", "owns"].contains(verb)
        && things.iter().all(|word_match| word_match.meaning.things.is_empty())
        && !clause.contains('#')
        && !clause.contains(|c: char| c.is_ascii_digit() || "\"?:(".contains(c))
        && words.len() <= MAX_REASON_WORDS
        && !clause.contains("n't ")
        && !binds(clause)
}

/// Whether a clause has a verb of a statement, and so is not a noun phrase before a colon.
fn states(clause: &str) -> bool {
    [
        "has",
        "have",
        "is",
        "was",
        "are",
        "were",
        "left",
        "moved",
        "got",
        "became",
        "will",
        "no longer",
        "retired",
        "joined",
    ]
    .iter()
    .any(|verb| has_word(clause, verb))
}

/// Whether a clause contains no name, restriction, prohibition, question or order.
fn is_reason(clause: &str, original: &str) -> bool {
    is_reason_beside(clause, original, "")
}

/// The same, where the names of the clause may be those of the order.
fn is_reason_beside(clause: &str, original: &str, order: &str) -> bool {
    let words: Vec<&str> =
        clause.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty()).collect();
    let named = original
        .split_whitespace()
        .skip(usize::from(order.is_empty()))
        .map(|word| word.trim_end_matches([',', '.']))
        .filter(|word| word.starts_with(char::is_uppercase) && *word != "I" && !word.starts_with("I'"))
        .any(|word| !has_word(order, word) && !is_subject(&word.to_lowercase()));
    let plain = !clause.contains(['#', ':', '?', '"', '\'', '(', '='])
        || clause.contains('\'') && !clause.contains(['#', ':', '?', '"', '(', '=', '`']);
    plain
        && !named
        && !clause.contains(|c: char| c.is_ascii_digit())
        && words.len() <= MAX_REASON_WORDS
        && words.len() > 1
        && !clause.contains("n't ")
        && !binds(clause)
}

fn leading(text: &str, masked: &str) -> Option<String> {
    let until = free_text(masked);
    let mut places: Vec<(usize, usize)> = BREAKS
        .iter()
        .filter_map(|mark| masked.find(mark).map(|at| (at, at + mark.len())))
        .filter(|(at, _)| *at < until)
        .collect();
    places.sort_unstable_by_key(|(at, end)| (*at, std::cmp::Reverse(*end)));
    // `Because the course was called off, event 9 should be deleted`.
    if ["because ", "since "].iter().any(|word| masked.starts_with(word)) {
        places.extend(masked.find(", ").filter(|at| *at < until).map(|at| (at, at + 2)));
    }
    places.into_iter().find_map(|(head, rest)| {
        let clause = masked.get(..head)?;
        let order = masked.get(rest..)?;
        let first = clause.split_whitespace().next()?;
        let trimmed = order.strip_prefix("please ").unwrap_or(order);
        let adverb = trimmed.split(' ').next().filter(|word| word.ends_with("ly"));
        let trimmed = adverb.map_or(trimmed, |word| trimmed[word.len()..].trim_start());
        // `Tom Becker has changed teams. Remove the relation … Tom Becker …`: the order names the subject itself.
        let named = text.get(..head)?.split_whitespace().next()?;
        let is_repeated =
            named.starts_with(char::is_uppercase) && has_word(&text[rest..], named) && states(clause);
        // `Kim Lee starts in July. Create …`: a sentence about a person that names no kind of thing.
        let ends = masked[head..].starts_with(". ") && !masked[..head].contains(['.', ';', ':']);
        let person = ends && is_about_person(text.get(..head)?, clause) && !points_back(order);
        (((is_subject(first) && is_reason(clause, &text[..head]))
            || person
            || is_repeated && is_reason_beside(clause, &text[..head], &text[rest..]))
            && (begins_order(trimmed) || order.contains(" should be "))
            && !points_back(order))
        .then(|| text[rest..].trim_start().to_owned())
    })
}

fn trailing(text: &str) -> Option<String> {
    let literals = literal_scanner::find(text);
    let masked = mask_literals(text, &literals);
    let until = free_text(&masked);
    let after = AFTER.iter().filter_map(|mark| {
        let at = masked.rfind(mark)?;
        let next = masked[at + mark.len()..].split_whitespace().next()?;
        (is_subject(next) && next != "a" && next != "an").then_some((at, at + mark.len()))
    });
    let purpose = PURPOSE.iter().filter_map(|mark| {
        let at = masked.rfind(mark)?;
        Some((at + usize::from(mark.starts_with('#')), at + mark.len()))
    });
    let (at, start) = after.chain(purpose).min()?;
    let clause = masked.get(start..)?.trim_end_matches(['.', '!', ' ']);
    let clause = clause.trim_end_matches(" first");
    // `the body "…" I'll send it later`: a label with a quoted text ends with the quote.
    let quoted =
        literals.iter().any(|found| found.end == at && matches!(found.literal, literal::Literal::Quoted(_)));
    ((at < until || quoted)
        && !asks_for_more(clause)
        && !retracts(clause)
        && is_reason(clause, text.get(start..)?)
        && begins_order(masked.get(..at)?))
    .then(|| text[..at].trim_end().to_owned())
}

/// `Make the folder X for my next measurements`: the purpose of a new folder is irrelevant.
fn folder_for(text: &str, masked: &str) -> Option<String> {
    let makes = ["make ", "create ", "add ", "need a "].iter().any(|verb| masked.contains(verb));
    let folder = has_word(masked, "folder") || has_word(masked, "directory");
    // `a folder X to drop the extracts into`
    let into = masked.trim_end_matches(['.', '?', '!', ' ']).ends_with(" into");
    let at = ["# for my ", "# for our ", "# for the "]
        .iter()
        .find_map(|mark| masked.rfind(mark))
        .or_else(|| masked.rfind("# to ").filter(|_| into))?
        + 1;
    let clause = masked[at..].trim_end_matches(['.', '?', '!', ' ']).trim_end_matches(", please");
    (makes
        && folder
        && at <= free_text(masked)
        && clause.split(' ').count() <= 7
        && is_reason(clause.trim(), &text[at..]))
    .then(|| text[..at].to_owned())
}

/// `(I'll send it myself later)`: a remark in parentheses.
fn parenthesis(text: &str, masked: &str) -> Option<String> {
    let open = masked.find(" (")?;
    let close = open + masked[open..].find(')')?;
    let clause = masked.get(open + 2..close)?;
    let first = clause.split(' ').next()?;
    let own = ["i'll", "i", "we", "we'll", "i've", "i'm", "it's", "that's"].contains(&first);
    (own && !clause.contains('#')
        && !retracts(clause)
        && is_reason(clause, &text[open + 2..close])
        && open < free_text(masked))
    .then(|| format!("{}{}", &text[..open], &text[close + 1..]))
}

/// `For the timeout bug I need a branch X, please create it`: the purpose before a wish, and the order that repeats the wish.
fn needed_for(text: &str, masked: &str) -> Option<String> {
    const REPEATED: [&str; 6] = [
        ", please create it",
        ", please make it",
        ", so please create it",
        ", can you create it",
        ", so create it",
        "; please create it",
    ];
    let trimmed = masked.trim_end_matches(['.', '!', '?', ' ']);
    let end = REPEATED.iter().find_map(|order| trimmed.strip_suffix(order)).map(str::len);
    // `Before I file the ticket show me …`: the occasion of a request to read.
    if let Some(lead) = ["before i ", "before we "].iter().find(|lead| masked.starts_with(**lead)) {
        let at = [" show me ", " i'd need the ", " i need the ", " list "]
            .iter()
            .filter_map(|wish| masked.find(wish))
            .min()?;
        let clause = masked.get(lead.len()..at)?;
        let plain = clause.split(' ').count() <= 7
            && !clause.contains(['#', '.'])
            && !clause.contains(|c: char| c.is_ascii_digit());
        return plain.then(|| text[at..].trim_start().to_owned());
    }
    let start = ["for the ", "for my ", "for our ", "for a "]
        .iter()
        .find(|lead| masked.starts_with(**lead))
        .and_then(|_| {
            let at = [" i need ", " we need ", " i want ", ", i need ", ", we need "]
                .iter()
                .filter_map(|wish| masked.find(wish))
                .min()?;
            let clause = masked.get(..at)?;
            let plain = clause.split(' ').count() <= 6
                && !clause.contains(['#', ',', '.'])
                && !clause.contains(|c: char| c.is_ascii_digit())
                && !binds(clause);
            plain.then_some(at + 1)
        });
    let wished =
        start.is_some() || ["i need ", "we need ", "i want "].iter().any(|wish| masked.starts_with(wish));
    (wished && (start.is_some() || end.is_some())).then(|| {
        text[start.unwrap_or(0)..end.unwrap_or(text.len())].trim_start_matches([',', ' ']).to_owned()
    })
}

/// `Which folders do I have, and how many … in each?`: the question about each member belongs to the list.
fn of_each(text: &str, masked: &str) -> Option<String> {
    let lists = ["which ", "what ", "list ", "show "].iter().any(|word| masked.starts_with(word))
        || masked.contains("有哪些");
    let marks = [
        ", and how many ",
        "，每个",
        "？每个",
        "? how many ",
        "，各有多少",
        "，各自有多少",
        "，分别有多少",
        "？各有多少",
    ];
    let at = marks.iter().filter_map(|mark| masked.find(mark)).min()?;
    let tail = masked.get(at..)?;
    let each = has_word(tail, "each") || ["每个", "各", "分别"].iter().any(|word| tail.contains(word));
    (lists && each && !tail.contains('#') && masked[..at].contains(|c: char| c.is_alphabetic()))
        .then(|| text[..at].to_owned())
}

/// Removes a request to read at the end that repeats the previous one.
fn repeated(text: &str, masked: &str) -> Option<String> {
    let trimmed = masked.trim_end_matches(['.', '。', '!', '！', '?', '？', ' ']);
    let phrase = REPEATS.iter().find(|phrase| trimmed.ends_with(**phrase))?;
    let at = trimmed.len() - phrase.len();
    (at > 0 && at <= free_text(masked)).then(|| text[..at].to_owned())
}

/// Removes words in which 别 is not a prohibition.
fn loosened(clause: &str) -> String {
    [
        "跟别的",
        "和别的",
        "与别的",
        "别人",
        "分别",
        "特别",
        "区别",
        "级别",
        "类别",
        "识别",
        "个别",
        "性别",
        "鉴别",
    ]
    .iter()
    .fold(clause.to_owned(), |text, word| text.replace(word, ""))
}

fn chinese(text: &str, masked: &str) -> Option<String> {
    let until = free_text(masked);
    let plain = |clause: &str| {
        let clause = clause.trim();
        let count = clause.chars().filter(|c| is_han(*c)).count();
        (2..=MAX_REASON_CHARS).contains(&count)
            && !clause.contains(|c: char| c.is_ascii_alphanumeric() || "#“”\"「」：:".contains(c))
            && !HAN_BINDING.iter().any(|word| loosened(clause).contains(word))
    };
    let head = masked.find(['，', '。', '；', ',']).filter(|at| *at < until)?;
    let mark = masked[head..].chars().next()?.len_utf8();
    let (clause, order) = (&masked[..head], &masked[head + mark..]);
    let reason = ["由于", "因为"].iter().any(|word| clause.starts_with(word));
    // 大楼要检修，给 …: a clause without a verb or noun of the tables, before an order.
    let is_unknown = |clause: &str| lexicon::word_matches(clause, &tokenize(clause), &|_| false).is_empty();
    let begins = [
        "把",
        "将",
        "给 ",
        "在 ",
        "从 ",
        "新建",
        "创建",
        "建个",
        "建一个",
        "删除",
        "删掉",
        "取消",
        "发",
        "提交",
        "切换",
        "暂存",
        "回复",
        "标记",
        "移动",
    ];
    let aside = is_unknown(clause) && begins.iter().any(|word| order.trim_start().starts_with(word));
    let orders = reason
        || aside
        || clause.ends_with('了')
            && (order.contains('请')
                || ["把", "将", "在 ", "从 ", "给 ", "到 ", "新建", "创建"]
                    .iter()
                    .any(|word| order.trim_start().starts_with(word)))
        || HAN_ORDERS.iter().any(|word| order.trim_start().starts_with(word));
    let points = ["它", "他们", "她", "这些", "那些"].iter().any(|word| order.contains(word));
    if orders
        && plain(clause)
        && !points
        && (order.contains('#') || order.contains("实体 ") || order.contains("节点 "))
        && !HAN_ORDERS.iter().any(|word| clause.starts_with(word))
    {
        return Some(text[head + mark..].trim_start().to_owned());
    }
    // ，我等会儿要往里放东西: the user's own next action.
    let masked = masked.trim_end_matches(['。', '！', '!', ' ']);
    let tail = masked.rfind(['，', '。', '；']).filter(|at| *at < until && masked[*at..].len() > 6)?;
    let mark = masked[tail..].chars().next()?.len_utf8();
    let clause = &masked[tail + mark..];
    let own = [
        "我等会",
        "我待会",
        "我一会",
        "我之后",
        "我晚点",
        "我稍后",
        "我明天",
        "我要用",
        "我要重新",
        "我想重新",
        "我重新",
    ];
    let soon = ["我要", "我们要", "我得", "马上要"].iter().any(|word| clause.starts_with(word))
        && clause.ends_with('了');
    // ，排查完我再改回来: what the author does afterwards. 我再想想 takes the order back.
    let later = ["完我再", "后我再", "我再改回", "我再补"].iter().any(|word| clause.contains(word))
        && !["想", "考虑", "决定", "看看", "说", "问"].iter().any(|word| clause.contains(word));
    let wished = ["我要", "我得", "我想", "我好", "方便我"]
        .iter()
        .any(|word| clause.strip_prefix(word).is_some_and(is_unknown));
    ((soon || later || wished || own.iter().any(|word| clause.starts_with(word)))
        && plain(clause)
        && masked[..tail].contains('#'))
    .then(|| text[..tail].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_reasons_and_purposes_without_arguments() {
        let check = |text: &str, expect: Option<&str>| assert_eq!(remove(text).as_deref(), expect, "{text}");
        check(
            "The client withdrew, so please cancel the event evt-5512.",
            Some("cancel the event evt-5512."),
        );
        check(
            "The room has changed: set the location of event cal-1 to Hall 3",
            Some("set the location of event cal-1 to Hall 3"),
        );
        check(
            "Mark email 5590 as read, since I've already seen it on my phone.",
            Some("Mark email 5590 as read"),
        );
        check("Make a folder /data/h/2026 for the new case, please.", Some("Make a folder /data/h/2026"));
        check(
            "Because the course was called off, event 9 should be deleted",
            Some("event 9 should be deleted"),
        );
        check("下午要发版，请把 /srv/a 切换到 r1 分支", Some("请把 /srv/a 切换到 r1 分支"));
        check("由于主任临时出差，会议 EV-45 改到 2026-07-03", Some("会议 EV-45 改到 2026-07-03"));
        check(
            "Which mail folders do I have, and how many unread messages are in each?",
            Some("Which mail folders do I have"),
        );
    }

    #[test]
    fn keeps_reasons_that_restrict_forbid_or_name_arguments() {
        for text in [
            "The header must stay, so delete rows 2 to 5 of a.xlsx",
            "We only sold half of it, so delete row 3 of a.xlsx",
            "Row 4 is fine, so delete row 3 of a.xlsx",
            "Tom has not agreed: delete email 5590",
            "Find the emails since 2026-02-01",
            "delete row 3 of a.xlsx, as long as Tom agrees",
            "先不要提交，请把 /srv/a 切换到 r1 分支",
            "旧表没用了，请删除",
            "Delete email 5590. I'll do it myself later.",
            "delete email 5590, because Tom still needs it",
            "取消日程 ev-3，我再想想",
            "删除邮件 88213，我自己来",
            "Kim Lee keeps row 4. Delete row 3 of a.xlsx",
        ] {
            assert_eq!(remove(text), None, "{text}");
        }
    }
}
