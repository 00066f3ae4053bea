//! The topic of a search, if the request names it: `anything about X`, 跟 X 有关的.

use crate::lexer::mention::ParsedText;
use crate::spreadsheet::sheet_name;

/// Words before the topic.
const ABOUT: [&str; 13] = [
    " mention ",
    " mentions ",
    " talk about ",
    " about ",
    " regarding ",
    " concerning ",
    " related to ",
    " relating to ",
    " to do with ",
    " mentioning ",
    " that mention ",
    " that mentions ",
    " containing the word ",
];
/// Words and marks that end the topic.
const ENDS: [&str; 16] = [
    ", ",
    ". ",
    "? ",
    "?",
    "; ",
    " in the ",
    " in my ",
    " from ",
    " since ",
    " before ",
    " received ",
    " sent ",
    " and then ",
    " then ",
    " between ",
    " please",
];
const HAN_LEADS: [&str; 4] = ["跟", "和", "与", "同"];
const HAN_TAILS: [&str; 6] = ["有关", "相关", "沾边", "有联系", "有关系", "有关联"];

/// The byte offset and the text of the topic.
pub(crate) fn topic<'a>(parsed: &ParsedText<'a>) -> Option<(usize, &'a str)> {
    english(parsed).or_else(|| chinese(parsed)).or_else(|| inside(parsed))
}

/// 在图谱里查 采购: the text after a location and a search verb.
fn inside<'a>(parsed: &ParsedText<'a>) -> Option<(usize, &'a str)> {
    let text = parsed.text;
    let leads = ["里查", "里找", "中查", "中找", "里面查", "里面找", "里查一下", "里找一下"];
    let start = leads.iter().filter_map(|lead| text.find(lead).map(|at| at + lead.len())).max()?;
    let rest = text.get(start..)?.trim_start();
    let topic = rest.trim_end_matches(['。', '？', '?', '！']);
    let plain = !topic.is_empty()
        && topic.chars().count() <= 12
        && !topic.contains(['，', '的', '和', '“'])
        && !parsed.mentions.iter().any(|mention| mention.end > start);
    plain.then_some((text.len() - rest.len(), topic))
}

fn is_free(parsed: &ParsedText<'_>, at: usize) -> bool {
    !parsed.mentions.iter().any(|mention| mention.start <= at && at < mention.end)
}

fn english<'a>(parsed: &ParsedText<'a>) -> Option<(usize, &'a str)> {
    let lower = parsed.text.to_ascii_lowercase();
    let start = ABOUT
        .iter()
        .flat_map(|word| lower.match_indices(word).map(|(at, word)| (at, at + word.len())))
        .filter(|(at, _)| is_free(parsed, *at))
        .map(|(_, end)| end)
        .max()?;
    if let Some((from, to)) = sheet_name::quoted_at(parsed, Some(start), None) {
        return Some((from, &parsed.text[from..to]));
    }
    let rest = parsed.text.get(start..)?;
    let start = start + if rest.starts_with("the ") { 4 } else { 0 };
    let rest = parsed.text.get(start..)?;
    let end = ENDS.iter().filter_map(|end| lower[start..].find(end)).min().unwrap_or(rest.len());
    let verb = rest[..end]
        .match_indices(" and ")
        .find(|(at, _)| rest[at + 5..].split(' ').next().is_some_and(crate::lexer::split::is_verb))
        .map_or(end, |(at, _)| at);
    let text = rest[..verb].trim_end_matches(['.', '!', ' ', ',']);
    (!text.is_empty()).then_some((start, text))
}

fn chinese<'a>(parsed: &ParsedText<'a>) -> Option<(usize, &'a str)> {
    let text = parsed.text;
    let end = HAN_TAILS.iter().filter_map(|tail| text.find(tail)).filter(|at| is_free(parsed, *at)).min()?;
    let head = text.get(..end)?.trim_end();
    let (at, lead) = HAN_LEADS
        .iter()
        .filter_map(|lead| head.rfind(lead).map(|at| (at, lead.len())))
        .filter(|(at, _)| is_free(parsed, *at))
        .max()?;
    let inner = head.get(at + lead..)?;
    let start = at + lead + inner.len() - inner.trim_start().len();
    let topic = text.get(start..head.len())?;
    let trimmed = topic.trim_matches(|c: char| "“”\"「」".contains(c));
    let start = start + topic.find(trimmed)?;
    (!trimmed.is_empty() && trimmed.chars().count() <= 30).then_some((start, trimmed))
}

#[cfg(test)]
mod tests {
    use jiff::civil::Date;

    use super::*;

    #[test]
    fn extracts_search_topic() {
        let check = |text: &str, expect: Option<&str>| {
            let parsed = ParsedText::of(text, Date::constant(2026, 1, 15));
            assert_eq!(topic(&parsed).map(|(_, text)| text), expect, "{text}");
        };
        check("look through the graph for anything about solar panels", Some("solar panels"));
        check("find mails about \"VPN outage\" and then open the first one", Some("VPN outage"));
        check("图谱里有没有跟 物流 有关的节点", Some("物流"));
        check("list the folders", None);
    }
}
