//! Relations in natural language: both ends and the type.

use crate::lexer::literal::Literal;
use crate::lexer::mention::{MentionValue, ParsedText};
use crate::lexer::name::has_han;
use crate::values::record_part::{MemberFunction, Span, after_any, quoted_at, thing_at};

const RELATIONS: [&str; 17] = [
    "relation type",
    "relation called",
    "relation named",
    "relationship called",
    "with the relation",
    "relation of type",
    "of type",
    "as type",
    "relationship",
    "关系类型为",
    "关系类型是",
    "关系类型",
    "关系：",
    "关系为",
    "关系是",
    "类型",
    "relation",
];

/// 关系：张伟 就职于 星河科技, `relation: Tom works_at Acme`, 甲 到 乙 的 就职于 关系: both ends of a relation and its type.
pub(crate) fn triple(parsed: &ParsedText<'_>) -> Option<(Span, Span, Span)> {
    if let Some(stated) = stated(parsed).or_else(|| quoted(parsed)) {
        return Some(stated);
    }
    let text = parsed.text;
    let part = |word: &str| {
        let start = word.as_ptr() as usize - text.as_ptr() as usize;
        (start, start + word.len())
    };
    let lower = text.to_ascii_lowercase();
    let labels = ["关系：", "关系:", "relation: ", "relationship: ", "relation ", "关系 "];
    if let Some(at) = labels.iter().find_map(|label| lower.find(label).map(|at| at + label.len())) {
        // `this relation in the graph: Tom works_at Acme`: the location precedes the relation.
        let at = crate::values::record_part::past_container(parsed, parsed.token_at(at))
            .and_then(|token| parsed.tokens.get(token))
            .map_or(at, |token| token.start);
        if let Some(named) = named_ends(text, at) {
            return Some(named);
        }
        let rest = outside(text.get(at..)?).trim().trim_end_matches(['。', '.', '！', '!']);
        // `relation of type 'backs'`, `relation 'owns' from A to B`: the ends are in another part of the request.
        let first = rest.split(' ').next().unwrap_or_default().to_ascii_lowercase();
        if ["of", "type", "from", "between", "to", "called", "named", "that"].contains(&first.as_str())
            || first.starts_with(['\'', '"', '“', '‘', '「'])
        {
            return None;
        }
        let words: Vec<&str> = rest
            .split([' ', '→'])
            .flat_map(|word| word.split("->"))
            .map(str::trim)
            .filter(|word| !word.is_empty())
            .collect();
        if let [from, relation, to] = words.as_slice() {
            return Some((part(from), part(to), part(relation)));
        }
        // `Tom Reyes works_at Nordwind Ltd`: the only word with an underscore is the type.
        let middle =
            words.iter().position(|word| word.contains('_')).filter(|at| *at > 0 && *at + 1 < words.len())?;
        let (from, relation, to) = (&words[..middle], words[middle], &words[middle + 1..]);
        let span_of = |words: &[&str]| (part(words[0]).0, part(words[words.len() - 1]).1);
        let plain = words.iter().filter(|word| word.contains('_')).count() == 1 && words.len() < 8;
        return plain.then(|| (span_of(from), span_of(to), part(relation)));
    }
    // 甲 和 乙 的关系是 R
    if let Some((at, label)) = ["的关系是", "的关系为", "的关系：", "之间的关系是"]
        .iter()
        .find_map(|label| text.find(label).map(|at| (at, *label)))
    {
        let relation = text.get(at + label.len()..)?.trim().trim_end_matches(['。', '！']);
        let head = text.get(..at)?.trim_end();
        let start = head
            .rfind(['，', '：', ':', '里', '。'])
            .map_or(0, |mark| mark + head[mark..].chars().next().map_or(1, char::len_utf8));
        let (from, to) = ["和", "与", "跟"].iter().find_map(|joint| head.get(start..)?.split_once(*joint))?;
        let (from, to) = (from.trim(), to.trim());
        let plain = |name: &str| !name.is_empty() && name.chars().count() <= 20 && !name.contains(' ');
        return (plain(relation) && plain(from) && plain(to)).then(|| (part(from), part(to), part(relation)));
    }
    // 甲 到 乙 的 R 关系
    let end = text.rfind("关系")?;
    let head = text.get(..end)?.trim_end();
    let (head, relation) = head.rsplit_once('的')?;
    let relation = relation.trim().trim_matches(|c: char| "“”\"「」".contains(c));
    let joint = ["到", "和", "与", "跟", "→"]
        .iter()
        .filter_map(|word| head.rfind(word).map(|at| (at, word.len())))
        .max()?;
    let to = head.get(joint.0 + joint.1..)?.trim();
    let quotes = |c: char| "“”\"「」".contains(c);
    let to = to.strip_suffix("之间").unwrap_or(to).trim().trim_matches(quotes);
    let from = head.get(..joint.0)?.trim_end();
    let from =
        from.rsplit([' ', '里', '中', '除', '掉', '从', '把', '将']).next()?.trim().trim_matches(quotes);
    let plain =
        |name: &str| !name.is_empty() && name.chars().count() <= 20 && !name.contains(['，', ',', '。']);
    (plain(relation) && plain(to) && plain(from)).then(|| (part(from), part(to), part(relation)))
}

/// `that Tomasz manages Warehouse East`: two names with one verb between them, and nothing else.
pub(crate) fn stated(parsed: &ParsedText<'_>) -> Option<(Span, Span, Span)> {
    let text = parsed.text;
    named_ends(text, text.find(" that ")? + 6)
}

/// “甲”到“乙”之间类型为“丙”的关系: three quoted texts, both ends and the type.
fn quoted(parsed: &ParsedText<'_>) -> Option<(Span, Span, Span)> {
    let quoted: Vec<_> = parsed
        .mentions
        .iter()
        .filter(|mention| matches!(mention.value, MentionValue::Literal(Literal::Quoted(_))))
        .collect();
    let [from, to, kind] = quoted.as_slice() else { return None };
    let joint = parsed.text.get(from.end..to.start)?.trim();
    let relation_text = parsed.text.get(to.end..kind.start)?.trim();
    let known = ["之间类型为", "之间类型是", "之间的类型为", "类型为", "之间关系类型为", "的关系类型为"];
    let ends = parsed.text.get(kind.end..)?.trim_start().starts_with("的关系");
    let span = |at: usize| quoted_at(parsed, at);
    (["到", "和", "与", "跟"].contains(&joint) && known.contains(&relation_text) && ends)
        .then(|| Some((span(from.start)?, span(to.start)?, span(kind.start)?)))
        .flatten()
}

/// The text before its container: `… from the knowledge graph`.
fn outside(text: &str) -> &str {
    let lower = text.to_ascii_lowercase();
    let leads = [" from ", " in ", " to ", " into ", " out of ", " off "];
    let end = crate::values::record_part::CONTAINERS
        .iter()
        .flat_map(|container| {
            leads
                .iter()
                .flat_map(move |lead| ["", "the ", "my ", "our "].map(|word| (*lead, word, *container)))
        })
        .filter_map(|(lead, word, container)| lower.find(&format!("{lead}{word}{container}")))
        .min();
    &text[..end.unwrap_or(text.len())]
}

/// `Tomasz manages Warehouse East` at a byte offset: two names with one verb between them, and nothing else.
fn named_ends(text: &str, start: usize) -> Option<(Span, Span, Span)> {
    let trimmed = outside(text.get(start..)?).trim_end_matches(['.', '!', ' ']);
    let words: Vec<&str> = trimmed.split(' ').collect();
    let capital = |word: &&str| word.starts_with(char::is_uppercase) && !word.contains([',', '"', ':']);
    let middle = words.iter().position(|word| !capital(word))?;
    let (from, to) = (words.get(..middle)?, words.get(middle + 1..)?);
    let verb = words.get(middle)?;
    let is_verb = verb.len() > 3
        && (verb.ends_with('s') || verb.contains('_'))
        && verb.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let named = |words: &[&str]| !words.is_empty() && words.len() < 5 && words.iter().all(capital);
    let end = start + trimmed.len();
    let first = start + from.join(" ").len();
    (named(from) && named(to) && is_verb)
        .then(|| ((start, first), (first + verb.len() + 2, end), (first + 1, first + 1 + verb.len())))
}

/// `relate A to B`, `from A to B`, `between A and B`, 从 A 到 B, A 和 B 之间: both ends of a relation.
pub(crate) fn ends(parsed: &ParsedText<'_>) -> Option<(Span, Span)> {
    let lower = parsed.text.to_ascii_lowercase();
    let frames = [
        ("relate ", " to "),
        ("link ", " to "),
        ("connect ", " to "),
        ("link ", " with "),
        ("connect ", " with "),
        ("link ", " and "),
        ("connect ", " and "),
        ("from ", " to "),
        ("between ", " and "),
        ("从", "到"),
        ("把", "和"),
        ("将", "和"),
        ("在", "和"),
        ("在", "与"),
        ("建立", "到"),
    ];
    arrow(parsed).or_else(|| {
        frames.iter().find_map(|(before, joint)| {
            let start = lower.find(before)? + before.len();
            let first = thing_at(parsed, start)?;
            let rest = lower.get(first.1..)?;
            let quote = rest.len() - rest.trim_start_matches(|c: char| "\"'”’」』`".contains(c)).len();
            let second = rest[quote..].trim_start().strip_prefix(joint.trim())?;
            let second = thing_at(parsed, parsed.text.len() - second.len())?;
            (first != second).then_some((first, second))
        })
    })
}

/// 陈静 -> 数据中台: both ends of an arrow.
fn arrow(parsed: &ParsedText<'_>) -> Option<(Span, Span)> {
    let text = parsed.text;
    let (at, length) =
        ["->", "→", "=>"].iter().find_map(|arrow| text.find(arrow).map(|at| (at, arrow.len())))?;
    let head = text.get(..at)?.trim_end();
    let stop = |c: char| "，,：:；;。\n".contains(c) || c.is_whitespace() && has_han(head);
    let start =
        head.rfind(stop).map_or(0, |mark| mark + head[mark..].chars().next().map_or(1, char::len_utf8));
    let rest = text.get(at + length..)?;
    let from = at + length + rest.len() - rest.trim_start().len();
    let rest = rest.trim_start();
    let end = from + rest.find(|c: char| "，,；;。\n".contains(c)).unwrap_or(rest.len());
    let (first, second) = ((start, head.len()), (from, end));
    (first.0 < first.1 && second.0 < second.1).then_some((first, second))
}

/// The type of a relation: the text after its label, otherwise the only code or quoted text that is not one of its ends.
pub(crate) fn relation_type(parsed: &ParsedText<'_>, found: &[(MemberFunction, Vec<Span>)]) -> Option<Span> {
    let is_used = |span: &Span| {
        found.iter().flat_map(|(_, spans)| spans).any(|other| other.0 < span.1 && span.0 < other.1)
    };
    if let Some(span) = after_any(parsed, &RELATIONS).filter(|span| !is_used(span)) {
        return Some(span);
    }
    let mut others = parsed.mentions.iter().filter_map(|mention| match &mention.value {
        MentionValue::Literal(Literal::Code(_)) => Some((mention.start, mention.end)),
        MentionValue::Literal(Literal::Quoted(_)) => quoted_at(parsed, mention.start),
        _ => None,
    });
    let first = others.by_ref().find(|span| !is_used(span))?;
    others.all(|span| is_used(&span)).then_some(first)
}
