//! Greetings and questions about the program itself, answered from the catalog without a plan.

use std::collections::BTreeMap;

use toolhub_core::Lang;
use toolhub_core::tool::ApprovalStatus;
use toolhub_engine::Catalog;

use crate::allowlist::ToolAllowlist;

/// Maximum number of tools listed per source.
const MAX_LISTED_TOOLS: usize = 6;

const GREETINGS: [&str; 20] = [
    "hello",
    "hi",
    "hey",
    "hello there",
    "hi there",
    "good morning",
    "good afternoon",
    "good evening",
    "thanks",
    "thank you",
    "你好",
    "您好",
    "嗨",
    "哈喽",
    "早上好",
    "下午好",
    "晚上好",
    "在吗",
    "谢谢",
    "你好啊",
];
const QUESTIONS: [&str; 22] = [
    "what can you do",
    "what can you do for me",
    "what do you do",
    "who are you",
    "what are you",
    "what is this",
    "how can you help me",
    "can you help me",
    "what tools do you have",
    "what tools are there",
    "which tools do you have",
    "how does this work",
    "你能做什么",
    "你可以做什么",
    "你会什么",
    "你会做什么",
    "你能帮我做什么",
    "你是谁",
    "你有什么功能",
    "你有哪些工具",
    "有哪些工具",
    "怎么用",
];

/// The answer to a greeting or to a question about the program; `None` for other requests.
pub(crate) fn answer(
    request: &str,
    catalog: &Catalog,
    allowlist: &ToolAllowlist,
    lang: Lang,
) -> Option<String> {
    if !is_about_the_program(request) {
        return None;
    }
    let mut sources: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for entry in catalog.iter() {
        let name = entry.tool.name().as_str();
        if allowlist.has(name) && entry.tool.approval != ApprovalStatus::Quarantined {
            sources.entry(entry.tool.source.to_string()).or_default().push(name);
        }
    }
    let mut lines = vec![
        lang.choose(
            "I find the tools for a request in words and run them. Without a language model, rules read the request.",
            "我按文字请求找到合适的工具并执行。没有语言模型时，由规则解读请求。",
        )
        .to_owned(),
    ];
    for (source, names) in &sources {
        let more = names.len().saturating_sub(MAX_LISTED_TOOLS);
        let names = names.iter().take(MAX_LISTED_TOOLS).copied().collect::<Vec<_>>().join(", ");
        lines.push(match more {
            0 => format!("  {source}: {names}"),
            more => lang.choose(
                format!("  {source}: {names} and {more} more"),
                format!("  {source}: {names} 等，另有 {more} 个"),
            ),
        });
    }
    lines.push(
        lang.choose(
            "Try `what time is it in Tokyo?`, `what is 15% of 80?`, or a call such as `calculate expression=23*47`. \
             `toolhub tools` lists all tools.",
            "可以试试“现在东京几点？”、“80 的 15% 是多少？”，或直接调用 `calculate expression=23*47`。\
             `toolhub tools` 列出全部工具。",
        )
        .to_owned(),
    );
    Some(lines.join("\n"))
}

fn is_about_the_program(request: &str) -> bool {
    let bare: String = request.to_lowercase().chars().filter(|c| !"?？!！.。,，~～".contains(*c)).collect();
    let bare = bare.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_greeting = |text: &str| GREETINGS.contains(&text) || QUESTIONS.contains(&text);
    // A greeting before a question: "hi what can you do", 你好你能做什么.
    let after_greeting = || {
        GREETINGS
            .iter()
            .any(|word| bare.strip_prefix(word).is_some_and(|rest| QUESTIONS.contains(&rest.trim())))
    };
    is_greeting(&bare) || after_greeting()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_greetings_and_nothing_else() {
        for request in [
            "hello",
            "Hi!",
            "你好",
            "您好！",
            "what can you do?",
            "你好，你能做什么？",
            "Hello, who are you?",
        ] {
            assert!(is_about_the_program(request), "{request}");
        }
        for request in
            ["hello world in A1", "say hello to Bob", "what can you do about row 3", "你好世界写入 A1", ""]
        {
            assert!(!is_about_the_program(request), "{request}");
        }
    }
}
