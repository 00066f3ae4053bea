//! Unquoted texts that continue to the end of the request: `message: bump version to 2.3`, 正文：明天见.

use serde_json::Value as Json;

use crate::lexer::labels::LabelSpan;
use crate::lexer::literal::Literal;
use crate::lexer::mention::{Mention, MentionValue};
use crate::lexer::name::has_han;
use crate::lexer::token::is_han;
use crate::values::candidate::{ArgumentValue, GOOD, MatchContext, ValueCandidate};
use crate::values::parameter::Parameter;
use crate::values::role::Role;

/// Signs and words between a label and its text.
const BEGINS: [&str; 9] = [":", "：", "=", "是", "为", "is", "写", "写着", "as"];
/// Words after a comma that start another argument.
const OTHERS: [&str; 47] = [
    "subject",
    "body",
    "message",
    "in",
    "repo",
    "to",
    "cc",
    "bcc",
    "title",
    "location",
    "start",
    "end",
    "description",
    "folder",
    "repository",
    "path",
    "file",
    "with",
    "at",
    "on",
    "from",
    "主题",
    "正文",
    "内容",
    "标题",
    "地点",
    "位置",
    "抄送",
    "密送",
    "收件人",
    "仓库",
    "时间",
    "说明",
    "备注",
    "文件",
    "路径",
    "在",
    "给",
    "留言",
    "描述",
    "名称",
    "类型",
    "写完",
    "然后",
    "再",
    "最后",
    "完了",
];

/// The score of a mail address for a parameter whose description mentions addresses. It is higher if the words around the
/// address give the parameter's direction (from or to), and negative for the opposite direction.
pub(crate) fn of_address(parameter: &Parameter, context: &MatchContext<'_>, mention: &Mention) -> f32 {
    let description = parameter.description.to_lowercase();
    if !["address", "sender", "recipient", "邮箱", "地址"].iter().any(|word| description.contains(word)) {
        return 0.0;
    }
    let text = context.parsed.text;
    let before = text.get(..mention.start).unwrap_or_default().trim_end().to_lowercase();
    let after = text.get(mention.end..).unwrap_or_default().trim_start().to_lowercase();
    let is_sender = ["from", "by", "来自", "收到"].iter().any(|word| before.ends_with(word))
        || ["发来", "寄来", "发的", "写的", "发给我", "给我", "的邮件", "的来信", "sent", "wrote"]
            .iter()
            .any(|word| after.starts_with(word));
    let goes = ["to", "for", "给", "发往"].iter().any(|word| before.ends_with(word));
    match parameter.has_word(&["from", "sender", "author"]) {
        true if is_sender => 2.2,
        true if goes => -1.0,
        true => 1.0,
        false if is_sender => -1.0,
        false => 1.0,
    }
}

/// Candidates for a free-text parameter: the text after one of its labels.
pub(crate) fn candidates(
    parameter: &Parameter,
    context: &MatchContext<'_>,
    label_spans: &[LabelSpan],
) -> Vec<ValueCandidate> {
    if let Some(sender) = sender(parameter, context) {
        return vec![sender];
    }
    let takes = parameter.role == Role::Text || parameter.has_word(&["subject", "title"]);
    if !takes {
        return Vec::new();
    }
    let text = context.parsed.text;
    let mut found = Vec::new();
    found.extend(after_name(parameter, context));
    for span in label_spans.iter().filter(|span| span.strength >= 1.9) {
        let rest = text.get(span.end..).unwrap_or_default();
        let trimmed = rest.trim_start();
        let before = text.get(..span.start).unwrap_or_default().trim_end();
        // ，正文 v3.2已提测: a label at the start of a clause introduces its value.
        let fronted = parameter.role == Role::Text
            && rest.starts_with(' ')
            && before.ends_with(['，', ',', '；', ';', '：', ':']);
        let begin =
            BEGINS.iter().filter(|begin| trimmed.starts_with(**begin)).max_by_key(|begin| begin.len());
        let Some(begin) = begin.copied().or(fronted.then_some("")) else {
            continue;
        };
        let message_rest = trimmed[begin.len()..].trim_start();
        let start = text.len() - message_rest.len();
        let word = !begin.is_empty() && begin.bytes().all(|byte| byte.is_ascii_alphabetic());
        let quoted = message_rest.starts_with(['"', '“', '「', '\'', '‘', '『', '`']);
        if quoted || message_rest.is_empty() || word && !trimmed[begin.len()..].starts_with(' ') {
            continue;
        }
        let message =
            message_rest[..end_of(message_rest)].trim_end_matches(['.', '。', '!', '！', ' ', ',', '，']);
        if message.is_empty() {
            continue;
        }
        let value = ArgumentValue::FromRequest(Json::from(message));
        found.push(ValueCandidate { value, start, end: start + message.len(), score: GOOD + 1.5 });
    }
    found
}

/// `Reply to mail 5520 with: works for me`, 回复邮件 88123：收到: the text after a colon that follows the ID of a mail.
fn after_name(parameter: &Parameter, context: &MatchContext<'_>) -> Option<ValueCandidate> {
    if parameter.role != Role::Text || !parameter.required {
        return None;
    }
    let parsed = context.parsed;
    let text = parsed.text;
    let (colon, mark) = text.char_indices().find(|(at, c)| {
        matches!(c, ':' | '：')
            && !parsed.mentions.iter().any(|mention| mention.start < *at && *at < mention.end)
    })?;
    let head = text.get(..colon)?.trim_end();
    let lower = head.to_lowercase();
    let named = parsed.mentions.iter().any(|mention| {
        mention.end == head.len()
            && matches!(
                mention.value,
                MentionValue::Literal(Literal::Code(_) | Literal::Mail(_)) | MentionValue::Number(_)
            )
    });
    let leads = [" with", " saying", " that says", "说", "回", "回复", "写", "答复"]
        .iter()
        .any(|word| lower.ends_with(word));
    let rest = text.get(colon + mark.len_utf8()..)?;
    let message_rest = rest.trim_start();
    let start = text.len() - message_rest.len();
    let labelled = OTHERS.iter().any(|word| message_rest.to_lowercase().starts_with(word));
    let quoted = message_rest.starts_with(['"', '“', '「', '\'', '‘', '『', '`']);
    let message = message_rest.get(..end_of(message_rest))?.trim_end_matches(['.', '。', ' ', ',', '，']);
    ((named || leads)
        && !labelled
        && !quoted
        && !message.is_empty()
        && (rest.starts_with(' ') || mark == '：'))
        .then(|| ValueCandidate {
            value: ArgumentValue::FromRequest(Json::from(message)),
            start,
            end: start + message.len(),
            score: GOOD + 1.2,
        })
}

/// 王芳 发来的邮件: the name of the sender before the verb.
fn sender(parameter: &Parameter, context: &MatchContext<'_>) -> Option<ValueCandidate> {
    if !parameter.has_word(&["from", "sender"]) || !parameter.description.to_lowercase().contains("sender") {
        return None;
    }
    let text = context.parsed.text;
    let at = ["发来", "寄来", "发的", "发给我"].iter().find_map(|word| text.find(word))?;
    let head = text.get(..at)?.trim_end();
    let start = head
        .char_indices()
        .rev()
        .take_while(|(_, c)| {
            (is_han(*c) || c.is_ascii_alphanumeric()) && !"把将下搜找查看有的给我".contains(*c)
        })
        .last()?
        .0;
    // 2026-04-10 起陈立发来的: a word of time before the name is not part of it.
    let message = head.get(start..)?;
    let name = ["之前", "之后", "以来", "以后", "以前", "起"]
        .iter()
        .find_map(|word| message.strip_prefix(word))
        .unwrap_or(message);
    let start = head.len() - name.len();
    let length = name.chars().count();
    (has_han(name) && (2..=6).contains(&length)).then(|| ValueCandidate {
        value: ArgumentValue::FromRequest(Json::from(name)),
        start,
        end: head.len(),
        score: GOOD + 1.0,
    })
}

/// The end of a text: a line break, a semicolon, or a comma before a word that starts another argument.
fn end_of(message_rest: &str) -> usize {
    let hard = message_rest.find(['\n', '；', '。']).unwrap_or(message_rest.len());
    let commas = message_rest[..hard].match_indices([',', '，']);
    let other = commas
        .map(|(at, mark)| (at, message_rest[at + mark.len()..].trim_start().to_lowercase()))
        .find(|(_, next)| {
            OTHERS.iter().any(|word| {
                next.strip_prefix(word)
                    .is_some_and(|after| !word.is_ascii() || !after.starts_with(char::is_alphanumeric))
            })
        });
    other.map_or(hard, |(at, _)| at)
}

/// `the mails 611, 612 and 613`: whether only other numbers stand between this number and the word for the identified things.
pub(crate) fn is_listed(parameter: &Parameter, context: &MatchContext<'_>, mention: &Mention) -> bool {
    const MAILS: [&str; 6] = ["mails", "emails", "messages", "mail", "email", "邮件"];
    let before = context.parsed.text.get(..mention.start).unwrap_or_default().to_lowercase();
    let head = before.trim_end_matches(|c: char| c.is_ascii_digit() || " ,，、和与".contains(c));
    let head = head.strip_suffix("and").unwrap_or(head);
    let head = head.trim_end_matches(|c: char| c.is_ascii_digit() || " ,，、和与".contains(c));
    parameter.has_word(&["email", "mail", "message"]) && MAILS.iter().any(|word| head.ends_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_free_text_before_next_argument() {
        let cut = |text: &'static str| &text[..end_of(text)];
        assert_eq!(cut("bump version to 2.3"), "bump version to 2.3");
        assert_eq!(cut("fix a, b and c, repo /srv/x"), "fix a, b and c");
        assert_eq!(cut("明天见，主题“问候”"), "明天见");
        assert_eq!(cut("fix; then push"), "fix; then push");
    }
}
