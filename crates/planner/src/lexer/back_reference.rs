//! Words that refer to earlier results and objects: `the first one`, `it`, 它.

/// Phrases that refer to an earlier result.
const RESULTS: [&str; 38] = [
    "save the text to",
    "save its contents to",
    "save its content to",
    "save the contents to",
    "save the content to",
    "save the page to",
    "内容保存到",
    "内容存到",
    "内容写到",
    "内容保存为",
    "把内容",
    "将内容",
    "its contents",
    "its content",
    "its text",
    "其内容",
    "它的内容",
    "what you get",
    "what you got",
    "what comes back",
    "what it returns",
    "what you find",
    "the response",
    "whatever comes back",
    "取到的",
    "抓到的",
    "拿到的",
    "the result",
    "the answer",
    "the output",
    "result of",
    "its result",
    "the sum",
    "that value",
    "结果",
    "答案",
    "得数",
    "计算值",
];
/// Pronouns for the object mentioned last.
const PRONOUNS: [&str; 8] = [" it ", " it,", " it.", " that ", " them ", "它", "其", "该"];

/// Whether a text refers to an earlier result.
pub(crate) fn refers_to_result(text: &str) -> bool {
    let lower = text.to_lowercase();
    RESULTS.iter().any(|words| lower.contains(words))
}

pub(crate) fn refers_to_object(text: &str) -> bool {
    let lower = format!(" {} ", text.to_lowercase());
    refers_to_result(text) || PRONOUNS.iter().any(|words| lower.contains(words))
}

/// Whether a text refers to an object mentioned before.
pub(crate) fn points_back(text: &str) -> bool {
    let lower = format!(" {} ", text.to_lowercase());
    [
        " it ",
        " that branch ",
        " the new branch ",
        " this branch ",
        " that one ",
        " this one ",
        " the new one ",
        "它",
        "该分支",
        "这个分支",
        "新分支",
        "过去",
    ]
    .iter()
    .any(|words| lower.contains(words))
}
