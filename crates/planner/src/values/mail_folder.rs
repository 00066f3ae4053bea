//! Names of mail folders: `to the Receipts folder`, `to Done`, 移到 归档 文件夹.

use serde_json::Value as Json;

use crate::lexer::mention::ParsedText;
use crate::lexer::stop_words::is_stop;
use crate::lexer::token::TokenKind;
use crate::spreadsheet::sheet_name::quoted_at;
use crate::values::candidate::{ArgumentValue, GOOD, MatchContext, ValueCandidate};

const CHINESE_NOUN: &str = "文件夹";
const ENGLISH_NOUN: &str = "folder";

/// A byte range of the request.
type ByteRange = (usize, usize);

/// The names of folders in the request; a well-known folder such as `inbox` counts only if no name stands beside a noun or a verb.
pub(crate) fn candidates(context: &MatchContext<'_>) -> Vec<ValueCandidate> {
    let parsed = context.parsed;
    let named = |range: ByteRange| candidate(parsed.text, range, GOOD + 0.2);
    let mut ranges = beside_chinese_noun(parsed.text);
    ranges.extend(move_destinations(parsed));
    ranges.extend(quoted_beside_english_noun(parsed));
    let mut found: Vec<ValueCandidate> = ranges.into_iter().filter_map(named).collect();
    if found.is_empty() {
        found.extend(well_known(parsed.text).and_then(|range| candidate(parsed.text, range, GOOD + 0.1)));
    }
    found.extend(beside_english_word(parsed).into_iter().filter_map(named));
    found
}

/// `None` for an empty range.
fn candidate(text: &str, range: ByteRange, score: f32) -> Option<ValueCandidate> {
    let (start, end) = range;
    let name = text.get(start..end).filter(|name| !name.is_empty())?;
    Some(ValueCandidate { value: ArgumentValue::FromRequest(Json::from(name)), start, end, score })
}

/// 归档文件夹, 文件夹 归档: the names before and after each Chinese noun.
fn beside_chinese_noun(text: &str) -> Vec<ByteRange> {
    let nouns = text.match_indices(CHINESE_NOUN);
    nouns
        .flat_map(|(at, noun)| [name_before(text, at), name_after(text, at + noun.len())])
        .flatten()
        .collect()
}

fn name_before(text: &str, end: usize) -> Option<ByteRange> {
    let head = text[..end].trim_end_matches(|c: char| c.is_whitespace() || "”\"」".contains(c));
    let name = head
        .char_indices()
        .rev()
        .take_while(|(_, c)| c.is_alphanumeric() && !"到在进入至从把移去".contains(*c));
    let (start, _) = name.last()?;
    (!is_question_or_pronoun(&head[start..])).then_some((start, head.len()))
}

/// 移到文件夹 归档: the name may follow the noun, after a space, a quote or a colon.
fn name_after(text: &str, start: usize) -> Option<ByteRange> {
    let rest = &text[start..];
    let name = rest.trim_start_matches(|c: char| c.is_whitespace() || "“\"「：:".contains(c));
    let lead = rest.len() - name.len();
    let end = name.find(|c: char| !c.is_alphanumeric()).unwrap_or(name.len());
    let particle = |c: char| "里中下的吗呢吧了有".contains(c);
    let is_name = lead > 0 && end > 0 && !name.starts_with(particle) && !is_question_or_pronoun(&name[..end]);
    is_name.then_some((start + lead, start + lead + end))
}

/// 哪个文件夹, 我的文件夹: words before the noun that are no name.
fn is_question_or_pronoun(name: &str) -> bool {
    ["哪", "什么", "我", "邮", "所有", "全部", "新", "一个", "几个", "列"]
        .iter()
        .any(|word| name.contains(word))
}

/// 移到“存档”: the quoted destination of each verb that moves.
fn move_destinations(parsed: &ParsedText<'_>) -> Vec<ByteRange> {
    let verbs = ["移到", "移至", "移动到", "放到", "放进", "归到", "归入", "转到", "挪到", "归档到", "移入"];
    let quoted_after = |verb: &&str| {
        parsed.text.match_indices(*verb).find_map(|(at, verb)| {
            let rest = parsed.text[at + verb.len()..].trim_start();
            quoted_at(parsed, Some(parsed.text.len() - rest.len()), None)
        })
    };
    verbs.iter().filter_map(quoted_after).collect()
}

/// `the folder "Tax 2026"`, `the "Tax 2026" folder`: a quoted name beside the noun.
fn quoted_beside_english_noun(parsed: &ParsedText<'_>) -> Vec<ByteRange> {
    let lower = parsed.text.to_ascii_lowercase();
    let quoted_beside = |at: usize| {
        let rest = &parsed.text[at + ENGLISH_NOUN.len()..];
        let rest =
            ["called ", "named "].iter().fold(rest.trim_start(), |rest, word| rest.trim_start_matches(word));
        let after = quoted_at(parsed, Some(parsed.text.len() - rest.len()), None);
        after.or_else(|| quoted_at(parsed, None, Some(parsed.text[..at].trim_end().len())))
    };
    lower.match_indices(ENGLISH_NOUN).filter_map(|(at, _)| quoted_beside(at)).collect()
}

/// A folder that every mailbox has.
fn well_known(text: &str) -> Option<ByteRange> {
    let lower = text.to_ascii_lowercase();
    let names = ["inbox", "收件箱", "已发送", "草稿箱", "垃圾箱", "发件箱", "spam folder", "sent folder"];
    names.iter().find_map(|name| {
        let start = lower.find(name)?;
        Some((start, start + name.trim_end_matches(" folder").len()))
    })
}

/// `the Receipts folder`, `folder Receipts`, `to Done`: an unquoted word.
fn beside_english_word(parsed: &ParsedText<'_>) -> Vec<ByteRange> {
    let mut found = Vec::new();
    for pair in parsed.tokens.windows(2) {
        let [lead, name] = pair else { continue };
        if name.is_word(ENGLISH_NOUN)
            && lead.kind == TokenKind::Word
            && !is_stop(lead.text)
            && !lead.is_any(&["another", "mail", "email", "new", "right", "same", "given"])
        {
            found.push((lead.start, lead.end));
        }
        let named = parsed.tokens.iter().any(|token| token.start > name.start && token.is_word(ENGLISH_NOUN));
        let folder = lead.is_word(ENGLISH_NOUN) && name.kind == TokenKind::Word && !is_stop(name.text);
        if lead.is_any(&["to", "into"]) && name.is_capital() && !named || folder {
            found.push((name.start, name.end));
        }
    }
    found
}
