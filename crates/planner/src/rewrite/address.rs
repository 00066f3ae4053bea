//! Polite addresses and headings before an order: `Task: …`, `Hi, please do this: …`, 任务：…. They say nothing about the order.

use crate::lexer::lexicon;
use crate::lexer::literal_scanner;
use crate::lexer::name::has_han;
use crate::lexer::token::tokenize;
use crate::rewrite::masked_text::mask_literals;
use crate::rewrite::statement::begins_order;

/// Words of a polite address or of a heading for an order. A head of such words only is harmless.
const ADDRESS_WORDS: [&str; 72] = [
    "please",
    "pls",
    "plz",
    "kindly",
    "hi",
    "hey",
    "hello",
    "dear",
    "ok",
    "okay",
    "so",
    "now",
    "then",
    "also",
    "and",
    "next",
    "first",
    "second",
    "third",
    "finally",
    "lastly",
    "step",
    "a",
    "an",
    "the",
    "my",
    "your",
    "new",
    "quick",
    "urgent",
    "small",
    "task",
    "tasks",
    "todo",
    "todos",
    "to-do",
    "request",
    "requests",
    "job",
    "jobs",
    "do",
    "this",
    "following",
    "steps",
    "thing",
    "things",
    "one",
    "two",
    "three",
    "four",
    "i",
    "i'd",
    "we",
    "need",
    "want",
    "like",
    "would",
    "could",
    "can",
    "you",
    "to",
    "for",
    "me",
    "us",
    "assistant",
    "toolhub",
    "claude",
    "chatgpt",
    "gpt",
    "computer",
    "gemini",
    "copilot",
];
/// The Chinese equivalents.
const HAN_ADDRESS: [&str; 60] = [
    "麻烦你",
    "麻烦您",
    "麻烦",
    "请求",
    "请",
    "帮我",
    "帮忙",
    "劳驾",
    "劳烦",
    "拜托",
    "你好",
    "您好",
    "嗨",
    "待办事项",
    "待办",
    "任务",
    "需求",
    "问题",
    "小助手",
    "助手",
    "助理",
    "机器人",
    "然后",
    "接着",
    "最后",
    "首先",
    "其次",
    "另外",
    "还有",
    "顺便",
    "以下",
    "下面",
    "如下",
    "第一步",
    "第二步",
    "第三步",
    "步骤",
    "几件事",
    "两件事",
    "三件事",
    "一件事",
    "事情",
    "操作",
    "执行",
    "一下",
    "我需要",
    "我想要",
    "我要",
    "我想",
    "需要",
    "你",
    "您",
    "我",
    "做",
    "的",
    "先",
    "再",
    "这",
    "个",
    "一",
];
/// Words with which a heading announces a new thing instead of an order: `new task: buy milk`.
const NEW_THINGS: [&str; 4] = ["new", "a", "an", "another"];

/// Returns the order after an address.
pub(crate) fn remove(text: &str) -> Option<String> {
    let masked = mask_literals(text, &literal_scanner::find(text));
    let marks = [": ", "：", ":", " - ", " – "];
    let (at, length) = marks
        .iter()
        .filter_map(|mark| masked.find(mark).map(|at| (at, mark.len())))
        .min_by_key(|(at, length)| (*at, std::cmp::Reverse(*length)))?;
    let (head, order) = (masked[..at].trim(), masked[at + length..].trim_start());
    let announces = english_words(head).any(|word| NEW_THINGS.contains(&word));
    let starts = begins_order(order) || begins_in_chinese(order);
    (!head.is_empty() && is_address(head) && !announces && starts)
        .then(|| text[text.len() - order.len()..].to_owned())
}

fn begins_in_chinese(order: &str) -> bool {
    let leads = ["请", "把", "将", "在", "给", "帮"];
    let first = lexicon::word_matches(order, &tokenize(order), &|_| false).into_iter().next();
    has_han(order)
        && (leads.iter().any(|lead| order.starts_with(lead))
            || first.is_some_and(|word_match| word_match.start == 0 && !word_match.meaning.verbs.is_empty()))
}

pub(crate) fn english_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '\'' | '-' | '#' | '_')))
        .filter(|word| word.contains(|c: char| c.is_alphanumeric() || c == '#'))
}

/// `Hi, please`, `task`, 请做以下几件事: a polite address or a heading for an order.
pub(crate) fn is_address(head: &str) -> bool {
    if !has_han(head) {
        return english_words(head).all(|word| {
            ADDRESS_WORDS.contains(&word) || word.len() < 3 && word.bytes().all(|c| c.is_ascii_digit())
        });
    }
    let mut rest = head;
    loop {
        rest = rest.trim_start_matches(|c: char| {
            c.is_whitespace() || c.is_ascii_digit() || matches!(c, '，' | ',' | '、' | '#')
        });
        match HAN_ADDRESS.iter().find_map(|word| rest.strip_prefix(word)) {
            Some(shorter) => rest = shorter,
            None => return rest.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_only_addresses_before_an_order() {
        let check = |text: &str, expect: Option<&str>| assert_eq!(remove(text).as_deref(), expect, "{text}");
        check("task: delete the file /a/b.txt", Some("delete the file /a/b.txt"));
        check("Hi, please do this: list /srv", Some("list /srv"));
        check("任务：删除文件 /a/b.txt", Some("删除文件 /a/b.txt"));
        check("请求：把 /a 移到 /b", Some("把 /a 移到 /b"));
        check("He said: delete the file /a/b.txt", None);
        check("new task: call the bank", None);
        check("日志：删除文件 /a/b.txt", None);
        check("two things: the time in Oslo and 3*4", None);
    }
}
