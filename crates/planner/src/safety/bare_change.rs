//! Changing calls without values, such as `clear_cache`. No argument shows that the request is about the tool, so its verb has to
//! be an order, and its object has to be named.

use crate::lexer::labels;
use crate::lexer::lexicon;
use crate::lexer::name::has_han;
use crate::lexer::stop_words::is_stop;
use crate::lexer::token::{is_han, tokenize};
use crate::plan::{ArgumentSource, PlanStep};
use crate::rewrite::masked_text::has_word;
use crate::rewrite::statement::begins_order;
use crate::selection::verb_class::VERBS;
use crate::values::parameter::name_words;

/// Words of tool names that mean everything, and the words of requests that prove them.
const ALL: [&str; 6] = ["all", "every", "everything", "entire", "whole", "complete"];
const HAN_ALL: [&str; 6] = ["所有", "全部", "一切", "整个", "全体", "全数"];
/// Pronouns and possessives. Beside one of them, `all` is not everything.
const POINTING: [&str; 14] = [
    "this", "that", "these", "those", "it", "its", "them", "their", "his", "her", "my", "our", "your", "mine",
];
const HAN_POINTING: [&str; 7] = ["这", "那", "它", "他", "她", "我的", "其"];
/// Words before the verb of an order.
const LEADS: [&str; 30] = [
    "please ",
    "pls ",
    "plz ",
    "kindly ",
    "can you ",
    "could you ",
    "would you ",
    "will you ",
    "just ",
    "now ",
    "then ",
    "so ",
    "and ",
    "also ",
    "hey ",
    "hi ",
    "ok ",
    "okay ",
    "let's ",
    "go ahead and ",
    "you can ",
    "i want you to ",
    "i'd like you to ",
    "i need you to ",
    "i want to ",
    "i'd like to ",
    "i need to ",
    "help me ",
    "finally ",
    "first ",
];
const HAN_LEADS: [&str; 26] = [
    "请",
    "麻烦你",
    "麻烦",
    "帮我",
    "帮忙",
    "劳驾",
    "给我",
    "然后",
    "接着",
    "最后",
    "再",
    "先",
    "立刻",
    "立即",
    "马上",
    "直接",
    "现在",
    "你",
    "能不能",
    "可以",
    "并",
    "就",
    "我要",
    "我想",
    "全部",
    "彻底",
];
/// Characters before a Chinese verb that make it a report, a state or a negation.
const HAN_STATES_BEFORE: [&str; 17] =
    ["已", "已经", "被", "刚", "没", "未", "不", "是", "才", "早", "曾", "会", "在", "应", "该", "都", "了"];
/// Characters after a Chinese verb that make it a report or a noun.
const HAN_STATES_AFTER: [&str; 13] =
    ["过", "的", "得", "率", "完", "失败", "成功", "中", "之后", "后", "时", "前", "记录"];
/// Chinese words for objects of such tools that are in no table of kinds.
const HAN_OBJECTS: [(&str, &[&str]); 11] = [
    ("data", &["数据", "资料"]),
    ("history", &["历史", "记录"]),
    ("log", &["日志"]),
    ("trash", &["回收站", "垃圾箱", "废纸篓"]),
    ("bin", &["回收站", "垃圾箱"]),
    ("memory", &["内存", "记忆"]),
    ("session", &["会话"]),
    ("queue", &["队列"]),
    ("cookie", &["cookie"]),
    ("cart", &["购物车"]),
    ("clipboard", &["剪贴板", "剪切板"]),
];

/// Whether a step gets no value of the request: its arguments are missing or only flags.
pub(crate) fn is_bare(step: &PlanStep) -> bool {
    step.arguments.iter().all(|(_, slot)| match slot {
        ArgumentSource::Value(raw) => raw.value().is_boolean(),
        ArgumentSource::ResultOf(_) | ArgumentSource::Template(_) => false,
    })
}

/// Whether a request orders a tool without values. `own` is the original request and `plain` the rewritten one, both in lower
/// case without quoted parts.
pub(crate) fn is_ordered(own: &str, plain: &str, tool: &str) -> bool {
    let name = name_words(tool);
    let Some(verb) = name.iter().take(3).find(|word| VERBS.tools.contains_key(word.as_str())) else {
        // `browser_screenshot`: the name has no verb, so that any order may be meant.
        let is_order = |text: &str| parts(text).into_iter().any(begins_order);
        return (is_order(plain) || is_order(own) || has_han(own)) && names_object(own, &name, "");
    };
    let is_order = orders(plain, verb) || own != plain && orders(own, verb);
    is_order && !is_reported(own, verb) && names_object(own, &name, verb)
}

/// The parts of a request that may be orders.
fn parts(text: &str) -> Vec<&str> {
    text.split(['.', '!', '?', ';', ',', ':', '，', '。', '；', '！', '？', '：', '\n'])
        .flat_map(|part| part.split(" and "))
        .flat_map(|part| part.split(" then "))
        .map(str::trim)
        .collect()
}

/// Whether a verb of a request has the meaning of the tool's verb.
fn fits(classes: &std::collections::BTreeSet<&'static str>, verb: &str) -> bool {
    VERBS.tools.get(verb).is_some_and(|own| !own.is_disjoint(classes))
}

/// Whether a part of a request starts with the verb, or has it in the position of a Chinese order.
fn orders(text: &str, verb: &str) -> bool {
    parts(text).into_iter().any(|part| starts_with_verb(part, verb) || orders_in_chinese(part, verb))
}

fn starts_with_verb(part: &str, verb: &str) -> bool {
    let mut rest = part;
    while let Some(shorter) = LEADS.iter().find_map(|lead| rest.strip_prefix(lead)) {
        rest = shorter.trim_start();
    }
    let all: Vec<&str> = rest.split_whitespace().take(VERBS.longest.0).collect();
    let ordered = (1..=all.len()).any(|count| {
        let phrase = all[..count].join(" ");
        phrase == verb || VERBS.english.get(&phrase).is_some_and(|classes| fits(classes, verb))
    });
    // `clear is the cache`: the word is no verb.
    let next = all.get(1).copied().unwrap_or_default();
    ordered && !["is", "are", "was", "were", "as", "to", "of"].contains(&next)
}

/// The byte ranges of Chinese verbs with the meaning of the tool's verb.
fn han_verbs<'a>(text: &'a str, verb: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
    VERBS
        .chinese
        .iter()
        .filter(move |(_, classes)| fits(classes, verb))
        .flat_map(move |(word, _)| text.match_indices(word).map(|(at, found)| (at, at + found.len())))
}

fn orders_in_chinese(part: &str, verb: &str) -> bool {
    let mut rest = part;
    while let Some(shorter) = HAN_LEADS.iter().find_map(|lead| rest.strip_prefix(lead)) {
        rest = shorter.trim_start();
    }
    let found: Vec<(usize, usize)> = han_verbs(rest, verb).collect();
    found.iter().any(|(start, end)| {
        let (before, after) = (rest[..*start].trim_end(), rest[*end..].trim_start());
        let is_led = ["把", "将"].iter().any(|word| before.contains(word));
        let is_asked = ["一下", "掉", "吧"].iter().any(|word| after.starts_with(word));
        before.is_empty() || is_led || is_asked
    })
}

/// 缓存已清空, 缓存清空了: whether every Chinese verb of the tool's meaning stands in a report.
fn is_reported(own: &str, verb: &str) -> bool {
    let mut found = han_verbs(own, verb).peekable();
    let is_led = ["把", "将", "请", "帮", "麻烦", "吧"].iter().any(|word| own.contains(word));
    let reported = |(start, end): (usize, usize)| {
        let (before, after) = (own[..start].trim_end(), own[end..].trim_start());
        HAN_STATES_BEFORE.iter().any(|word| before.ends_with(word))
            || HAN_STATES_AFTER.iter().any(|word| after.starts_with(word))
            || after.starts_with('了') && !is_led
    };
    found.peek().is_some() && found.any(reported)
}

/// Whether a request names the object of a tool, and everything of it if the tool takes everything.
fn names_object(own: &str, name: &[String], verb: &str) -> bool {
    let objects: Vec<&String> = name.iter().filter(|word| *word != verb && !is_stop(word)).collect();
    let takes_all = name.iter().any(|word| ALL.contains(&word.as_str()));
    if takes_all {
        let says_all =
            ALL.iter().any(|word| has_word(own, word)) || HAN_ALL.iter().any(|word| own.contains(word));
        let points = POINTING.iter().any(|word| has_word(own, word))
            || HAN_POINTING.iter().any(|word| own.replace("其他", "").contains(word));
        if !says_all || points {
            return false;
        }
    }
    // The last noun of a compound is its head.
    match objects.iter().rev().find(|word| !ALL.contains(&word.as_str())) {
        Some(object) => names(own, object, verb),
        None => true,
    }
}

fn names(own: &str, object: &str, verb: &str) -> bool {
    let stem = labels::stem(object);
    if own.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| labels::stem(word) == stem) {
        return true;
    }
    if has_han(object) {
        return own.contains(object);
    }
    let kinds = |text: &str| -> Vec<usize> {
        let found = lexicon::word_matches(text, &tokenize(text), &|_| false);
        found.into_iter().flat_map(|word_match| word_match.meaning.things).collect()
    };
    let own_kinds = kinds(object);
    if kinds(own).iter().any(|kind| own_kinds.contains(kind)) {
        return true;
    }
    if let Some((_, listed)) = HAN_OBJECTS.iter().find(|(word, _)| labels::stem(word) == stem) {
        return listed.iter().any(|word| own.contains(word));
    }
    // A Chinese word for an object that is in no table: some word beside the verb, fillers and pronouns.
    own_kinds.is_empty() && has_other_han(own, verb)
}

/// Whether a text contains two Chinese characters that belong neither to a verb nor to a filler.
fn has_other_han(own: &str, verb: &str) -> bool {
    let mut rest = own.to_owned();
    let mut known: Vec<&str> =
        VERBS.chinese.iter().filter(|(_, classes)| fits(classes, verb)).map(|(word, _)| *word).collect();
    known.extend(HAN_LEADS.iter().chain(&HAN_POINTING));
    known.extend(crate::lexer::filler::always().iter().map(String::as_str).filter(|word| has_han(word)));
    known.sort_by_key(|word| std::cmp::Reverse(word.len()));
    for word in known {
        rest = rest.replace(word, " ");
    }
    rest.chars().filter(|c| is_han(*c)).count() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_need_verb_in_order_position_and_object() {
        for (request, tool) in [
            ("clear the cache", "clear_cache"),
            ("please clear the cache", "clear_cache"),
            ("could you clear the cache?", "clear_cache"),
            ("task: clear the cache", "clear_cache"),
            ("wipe the cache", "clear_cache"),
            ("清空缓存", "clear_cache"),
            ("请清空缓存", "clear_cache"),
            ("把缓存清空", "clear_cache"),
            ("把缓存清空了吧", "clear_cache"),
            ("缓存清空一下", "clear_cache"),
            ("清空购物车", "clear_cart"),
            ("take a screenshot of the full page", "browser_screenshot"),
            ("delete all data", "delete_all_data"),
            ("delete all the data", "delete_all_data"),
            ("删除所有数据", "delete_all_data"),
            ("删除全部数据", "delete_all_data"),
        ] {
            assert!(is_ordered(request, request, tool), "{request}");
        }
        for (request, tool) in [
            ("clear", "clear_cache"),
            ("clear it", "clear_cache"),
            ("wipe", "clear_cache"),
            ("wipe this", "clear_cache"),
            ("the cache is clear", "clear_cache"),
            ("that is all clear to me", "clear_cache"),
            ("our cache looks clear", "clear_cache"),
            ("清空", "clear_cache"),
            ("清空这个", "clear_cache"),
            ("缓存已清空", "clear_cache"),
            ("缓存清空了", "clear_cache"),
            ("缓存是清空的", "clear_cache"),
            ("缓存没清空", "clear_cache"),
            ("delete", "delete_all_data"),
            ("delete this", "delete_all_data"),
            ("delete my data", "delete_all_data"),
            ("delete the data in it", "delete_all_data"),
            ("delete all this data", "delete_all_data"),
            ("delete data", "delete_all_data"),
            ("delete everything", "delete_all_data"),
            ("删除", "delete_all_data"),
            ("删除这个", "delete_all_data"),
            ("删除我的数据", "delete_all_data"),
            ("全部删除", "delete_all_data"),
            ("清掉它", "clear_cart"),
        ] {
            assert!(!is_ordered(request, request, tool), "{request}");
        }
    }
}
