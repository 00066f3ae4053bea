//! Rewrites questions and names that other rules read only in one order of words: two conversions in one sentence, units,
//! the state of a repository, IDs before their nouns, folders with a number.

use crate::lexer::literal::Literal;
use crate::lexer::name::has_han;
use crate::rewrite::masked_text::{free_text, has_word, is_open, read_masked};

/// `Convert 08:00 Warsaw time to Chicago time, and 19:00 Warsaw time to Manila time`: repeats what the second part leaves out.
pub(crate) fn double_conversion(text: &str) -> Option<String> {
    let (_, masked) = read_masked(text);
    let verb = ["convert ", "please convert "].iter().find(|verb| masked.starts_with(**verb))?;
    let (at, joint) =
        [", and ", " and ", "; "].iter().find_map(|joint| masked.find(joint).map(|at| (at, *joint)))?;
    let rest = &masked[at + joint.len()..];
    // `to Paris time and to Tokyo time`
    if rest.starts_with("to ") {
        let to = masked[..at].find(" to ")?;
        let source = text.get(verb.len()..to)?;
        return Some(format!("{} and then convert {source} {}", &text[..at], &text[at + joint.len()..]));
    }
    let timed = rest.starts_with(|c: char| c.is_ascii_digit()) && rest.contains(" to ");
    timed.then(|| format!("{} and then convert {}", &text[..at], &text[at + joint.len()..]))
}

/// `put email 5 in the folder Invoices 2026`: quotes a name with a number.
pub(crate) fn numbered_folder(text: &str) -> Option<String> {
    let (_, masked) = read_masked(text);
    let (at, lead) = ["the folder ", "the mail folder ", "folder "]
        .iter()
        .find_map(|lead| masked.find(lead).map(|at| (at, *lead)))?;
    let start = at + lead.len();
    let rest = text.get(start..)?;
    let name = rest.split(' ').next()?;
    let number = rest.get(name.len() + 1..)?;
    let number = &number[..number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len())];
    let end = start + name.len() + 1 + number.len();
    let named = name.starts_with(char::is_uppercase) && name.chars().all(char::is_alphanumeric);
    let ends = masked[end..].is_empty() || masked[end..].starts_with(['.', ',', ';', '!']);
    (named && ends && (2..=4).contains(&number.len()) && at < free_text(&masked))
        .then(|| format!("{}\"{name} {number}\"{}", &text[..start], &text[end..]))
}

/// 编号为 88120 的那封广告邮件: the noun of a thing before its number.
pub(crate) fn noun_before_number(text: &str) -> Option<String> {
    const LEADS: [&str; 5] = ["编号为", "编号是", "编号", "ID 为", "ID 是"];
    // 1093 的那封邮件: the label was left out.
    let bare = text.starts_with(|c: char| c.is_ascii_digit())
        && (text.contains(" 的那封") || text.contains(" 的这封"));
    let labelled = LEADS.iter().find_map(|lead| text.find(lead).map(|at| (at, *lead)));
    let (at, lead) = labelled.or(bare.then_some((0, "")))?;
    let rest = text[at + lead.len()..].trim_start();
    let length =
        rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_').unwrap_or(rest.len());
    let number = &rest[..length];
    let after = rest[length..].trim_start().strip_prefix('的')?;
    let (end, kind) = ["邮件", "日程", "会议", "邀请"]
        .iter()
        .filter_map(|kind| after.find(kind).map(|at| (at, *kind)))
        .min()?;
    let described =
        after[..end].chars().count() <= 6 && !after[..end].contains(['，', '。', '和', '、', '不', '除']);
    let numbered = number.contains(|c: char| c.is_ascii_digit());
    (described && numbered).then(|| {
        format!(
            "{}{kind} {number} {}",
            &text[..at],
            after[end + kind.len()..].trim_start_matches(['，', ' '])
        )
    })
}

/// `empty the staging area of R`: unstages everything.
pub(crate) fn unstage_all(text: &str) -> Option<String> {
    let (literals, masked) = read_masked(text);
    let (at, words) = [
        "empty the staging area of ",
        "empty the staging area in ",
        "clear the staging area of ",
        "empty the index of ",
    ]
    .iter()
    .find_map(|words| masked.find(words).map(|at| (at, *words)))?;
    let folder = literals.iter().any(|found| found.start == at + words.len());
    folder.then(|| format!("{}unstage everything in {}", &text[..at], &text[at + words.len()..]))
}

/// 客户.xlsx 中 模板 工作表，请复制为 华南: the object before a comma belongs to the polite order after it.
pub(crate) fn object_before_comma(text: &str) -> Option<String> {
    const VERBS: [&str; 15] = [
        "替换成",
        "替换为",
        "换成",
        "复制为",
        "复制到",
        "移到",
        "移动到",
        "重命名为",
        "改名为",
        "改成",
        "设成",
        "设为",
        "删除",
        "删掉",
        "合并",
    ];
    let (literals, masked) = read_masked(text);
    // B2:B30 的背景请设成黄色
    let inner = VERBS.iter().find_map(|verb| masked.find(&format!("请{verb}")));
    if let Some(at) =
        inner.filter(|at| masked[..*at].ends_with(|c: char| crate::lexer::token::is_han(c) || c == '#'))
    {
        return Some(format!("{}{}", &text[..at], &text[at + "请".len()..]));
    }
    let (comma, mark) = ["，请", ", 请", "，请帮我", "，麻烦"]
        .iter()
        .filter_map(|mark| masked.find(mark).map(|at| (at, *mark)))
        .max_by_key(|(_, mark)| mark.len())?;
    let order = masked[comma + mark.len()..].trim_start();
    let verb = VERBS.iter().any(|verb| order.starts_with(verb));
    let head = masked[..comma].trim();
    let object = literals.first().is_some_and(|found| found.start < comma);
    // The head is a noun phrase: it has no verb, no statement and no other clause.
    let word_matches =
        crate::lexer::lexicon::word_matches(head, &crate::lexer::token::tokenize(head), &|_| false);
    let noun = word_matches.iter().all(|word_match| word_match.meaning.verbs.is_empty())
        && !head.contains(['，', '。', '了', '是', '不', '把', '将', '在'])
        && head.ends_with(|c: char| c == '#' || "表行列格件夹域".contains(c));
    let start = text.len() - order.len();
    (verb && object && noun && comma < free_text(&masked))
        .then(|| format!("把 {} {}", text[..comma].trim(), &text[start..]))
}

/// R 最近 15 次提交的记录，调出来给我看看: a request to show what is named before a comma.
pub(crate) fn show_named(text: &str) -> Option<String> {
    const ENDS: [&str; 8] = [
        "，调出来给我看看",
        "，帮忙调出来",
        "，帮我调出来",
        "，调出来看看",
        "，调出来",
        "，列出来给我看看",
        "，拿给我看看",
        "，给我看看",
    ];
    let bare = text.trim_end_matches(['。', '！', ' ']);
    let head = ENDS.iter().find_map(|end| bare.strip_suffix(end))?;
    let plain = !head.contains(['，', '。', '；']) && !head.starts_with(['把', '将', '请', '帮', '先']);
    let word_matches =
        crate::lexer::lexicon::word_matches(head, &crate::lexer::token::tokenize(head), &|_| false);
    let verbless = !word_matches
        .first()
        .is_some_and(|word_match| word_match.start == 0 && !word_match.meaning.verbs.is_empty());
    let head = head.replace("次提交的记录", "次提交").replace("次提交记录", "次提交");
    (plain && verbless).then(|| format!("显示 {head}"))
}

/// `which files in R are still modified or untracked?`: the state of a repository.
pub(crate) fn repository_status(text: &str) -> Option<String> {
    let (literals, masked) = read_masked(text);
    let at = ["which files in ", "what files in "]
        .iter()
        .find_map(|lead| masked.find(lead).map(|at| at + lead.len()))?;
    let folder = literals.iter().find(|found| found.start == at)?;
    let rest = masked.get(folder.end..)?;
    let state = ["modified", "untracked", "uncommitted", "changed"].iter().any(|word| has_word(rest, word));
    let verb = rest.starts_with(" are ") || rest.starts_with(" have ");
    let plain =
        !rest.contains('#') && !["since", "last", "before", "after"].iter().any(|word| has_word(rest, word));
    (state && verb && plain && literals.len() == 1)
        .then(|| format!("show the git status of {}", &text[folder.start..folder.end]))
}

/// `what 12 miles are in kilometres`: a conversion of units.
pub(crate) fn unit_conversion(text: &str) -> Option<String> {
    let masked = text.to_ascii_lowercase();
    let rest = masked.strip_prefix("what ")?.trim_end_matches(['?', '.', ' ']);
    let (amount, unit) = [" are in ", " is in "].iter().find_map(|joint| rest.split_once(joint))?;
    let number = amount.split(' ').next()?;
    let plain = amount.split(' ').count() == 2 && unit.split(' ').count() <= 2;
    (number.parse::<f64>().is_ok() && plain).then(|| format!("convert {amount} to {unit}"))
}

/// `I would like ten web search results about X`: a web search.
pub(crate) fn web_search(text: &str) -> Option<String> {
    let (_, masked) = read_masked(text);
    let (at, words) = [
        " web search results about ",
        " web search results for ",
        " web search results on ",
        " web results about ",
        " web results for ",
    ]
    .iter()
    .find_map(|words| masked.find(words).map(|at| (at, *words)))?;
    let count = masked[..at].rsplit(' ').next()?;
    let query = text[at + words.len()..].trim_end_matches(['.', '!', '?', ' ']);
    let plain = masked[..at].split(' ').count() <= 6 && !query.contains([',', ';', '.']) && !has_han(text);
    (plain && !is_open(&masked)).then(|| format!("search the web for {query}, {count} results"))
}

/// `The customer of email 7086 is waiting for an answer; reply with 'X'`: the mail is named in the statement.
pub(crate) fn reply_to_mentioned_mail(text: &str) -> Option<String> {
    let (literals, masked) = read_masked(text);
    let (at, mark) = ["; ", ". ", ", so ", ", please ", ": "]
        .iter()
        .find_map(|mark| masked.find(mark).map(|at| (at, *mark)))?;
    let order = masked[at + mark.len()..].trim_start_matches("please ").trim_start_matches("so ");
    let order = order.strip_prefix("reply with ").or_else(|| order.strip_prefix("reply "))?;
    let body = text.len() - order.len();
    let quoted =
        literals.iter().find(|found| found.start == body && matches!(found.literal, Literal::Quoted(_)))?;
    let head = masked.get(..at)?;
    let (start, kind) = ["email ", "mail ", "message "]
        .iter()
        .find_map(|kind| head.find(kind).map(|start| (start + kind.len(), *kind)))?;
    let number = text.get(start..at)?.split([' ', ',']).next()?;
    let waits = ["waiting", "waits", "wants", "asked", "asks", "needs", "expects"]
        .iter()
        .any(|word| has_word(head, word));
    let numbered = number.contains(|c: char| c.is_ascii_digit());
    let ends = text[quoted.end..].trim_matches(['.', ' ', '!']).is_empty();
    (waits
        && numbered
        && ends
        && !is_open(head)
        && literals.iter().filter(|found| found.start < at).count() <= 1)
        .then(|| format!("reply to {kind}{number} with {}", &text[quoted.start..quoted.end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewrites_questions_and_names() {
        let check = |step: fn(&str) -> Option<String>, text: &str, expect: Option<&str>| {
            assert_eq!(step(text).as_deref(), expect, "{text}");
        };
        check(
            double_conversion,
            "Convert 15:00 New York time to Paris time and to Tokyo time.",
            Some(
                "Convert 15:00 New York time to Paris time and then convert 15:00 New York time to Tokyo time.",
            ),
        );
        check(
            numbered_folder,
            "put email m-4 in the folder Invoices 2026",
            Some("put email m-4 in the folder \"Invoices 2026\""),
        );
        check(numbered_folder, "put email m-4 in the folder Invoices 2026 please or not", None);
        check(
            noun_before_number,
            "编号为 88120 的那封广告邮件，请永久删除。",
            Some("邮件 88120 请永久删除。"),
        );
        check(
            repository_status,
            "tell me which files in /srv/a are still modified or untracked.",
            Some("show the git status of /srv/a"),
        );
        check(repository_status, "which files in /srv/a have changed since main?", None);
        check(unit_conversion, "what 12 miles are in kilometres.", Some("convert 12 miles to kilometres"));
        check(
            web_search,
            "I would like ten web search results about hydroponic lettuce.",
            Some("search the web for hydroponic lettuce, ten results"),
        );
        check(
            reply_to_mentioned_mail,
            "The customer of email 7086 is waiting for an answer; reply with 'It ships on Friday.'",
            Some("reply to email 7086 with 'It ships on Friday.'"),
        );
        check(reply_to_mentioned_mail, "If email 7086 is waiting for an answer; reply with 'x y'", None);
    }
}
