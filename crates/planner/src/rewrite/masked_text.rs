//! Matching of words in a text whose literals are masked.

use crate::lexer::literal::LiteralSpan;
use crate::lexer::literal_scanner;

/// Words that leave open whether something is to be done. A request that contains one is not rewritten.
const CONDITIONAL_WORDS: [&str; 16] = [
    "if", "unless", "when", "once", "until", "whether", "not", "never", "should i", "except", "or", "did",
    "don't", "why", "how", "who",
];

/// Replaces each byte of a literal with `#` and lowercases the rest. Byte offsets stay valid.
pub(crate) fn mask_literals(text: &str, literals: &[LiteralSpan]) -> String {
    let mut bytes = text.to_ascii_lowercase().into_bytes();
    for found in literals {
        bytes[found.start..found.end].fill(b'#');
    }
    String::from_utf8(bytes).unwrap_or_default()
}

/// Whether a text leaves open what is to be done.
pub(crate) fn is_open(masked: &str) -> bool {
    masked.contains(['?', '？'])
        || masked.contains("n't ")
        || CONDITIONAL_WORDS.iter().any(|word| has_word(masked, word))
}

pub(crate) fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let letter = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '\'');
        !letter(text[..at].chars().next_back()) && !letter(text[at + word.len()..].chars().next())
    })
}

/// Labels of free text. The text after a label is not changed.
const LABELS: [&str; 25] = [
    "message:",
    "msg:",
    "body:",
    "text:",
    "content:",
    "contents:",
    "saying:",
    "saying ",
    "with:",
    "note:",
    "subject ",
    "subject:",
    "body ",
    "message \"",
    "observation:",
    "正文",
    "内容：",
    "内容:",
    "内容 ",
    "信息",
    "主题",
    "标题",
    "留言",
    "说：",
    "写着",
];

/// Byte offset of the first free text in a masked request.
pub(crate) fn free_text(masked: &str) -> usize {
    // 回复邮件 m2：好的，周三见: the text of a reply is free text.
    let answer = ["回复", "答复", "回信", "reply"].iter().find_map(|verb| {
        let from = masked.find(verb)?;
        ["：", ": "]
            .iter()
            .filter_map(|mark| masked[from..].find(mark).map(|at| from + at + mark.len()))
            .min()
    });
    LABELS
        .iter()
        .filter_map(|label| {
            // A label is a whole word.
            let is_whole_word = |at: &usize| {
                !label.is_ascii() || !masked[..*at].ends_with(|c: char| c.is_ascii_alphanumeric())
            };
            let ends = |at: usize| at + label.len();
            masked
                .match_indices(label)
                .map(|(at, _)| at)
                .find(|at| is_whole_word(at) && !is_closed(&masked[ends(*at)..]))
                .map(ends)
        })
        .chain(answer)
        .min()
        .unwrap_or(masked.len())
}

/// 正文“…”，: whether the value of a label is one literal with the end of its part after it.
fn is_closed(after: &str) -> bool {
    let value = after.trim_start_matches(['是', '为', '写', '：', ':', ' ']);
    let rest = value.trim_start_matches('#');
    rest.len() < value.len()
        && (rest.is_empty()
            || rest.starts_with(['，', ',', '。', '；', ';', '.'])
            || [" and ", " with ", " to "].iter().any(|joint| rest.starts_with(joint)))
}

pub(crate) fn read_masked(text: &str) -> (Vec<LiteralSpan>, String) {
    let literals = literal_scanner::find(text);
    let masked = mask_literals(text, &literals);
    (literals, masked)
}
