//! Lists of objects in natural language: text replacements, entities with types and observations, relations.

use serde_json::{Map, Value as Json};

use crate::lexer::literal::Literal;
use crate::lexer::mention::{MentionValue, ParsedText};
use crate::lexer::token::is_han;
use crate::values::candidate::{ArgumentValue, GOOD, MatchContext, ValueCandidate};
use crate::values::parameter::{Parameter, ValueType};
use crate::values::record_list;
use crate::values::record_part::{MemberFunction, Span, after_any, quoted_at};
use crate::values::relation_value::{ends, relation_type, triple};

fn part_of(member: &Parameter) -> Option<MemberFunction> {
    if matches!(&member.shape, ValueType::List(item) if item.shape == ValueType::Text) {
        return member
            .has_word(&["observations", "contents", "notes", "facts", "texts", "observation"])
            .then_some(MemberFunction::Texts);
    }
    let has = |words: &[&str]| member.has_word(words);
    match member.shape {
        ValueType::Text if has(&["old", "find", "search", "before"]) => Some(MemberFunction::Old),
        ValueType::Text if has(&["new", "replace", "replacement", "after"]) => Some(MemberFunction::New),
        ValueType::Text if has(&["type", "kind"]) => Some(MemberFunction::Type),
        ValueType::Text if has(&["from", "source"]) => Some(MemberFunction::From),
        ValueType::Text if has(&["to", "target"]) => Some(MemberFunction::To),
        ValueType::Text if has(&["name", "entity"]) => Some(MemberFunction::Name),
        _ => None,
    }
}

/// A list with the object that the request describes.
pub(crate) fn candidates(members: &[Parameter], context: &MatchContext<'_>) -> Option<ValueCandidate> {
    let parsed = context.parsed;
    let needed = || members.iter().filter(|member| member.required);
    let parts: Vec<MemberFunction> = needed().map(part_of).collect::<Option<_>>()?;
    let has = |part: MemberFunction| parts.contains(&part);
    if has(MemberFunction::Name)
        && has(MemberFunction::Type)
        && !has(MemberFunction::From)
        && let Some(record_names) = record_list::record_names(parsed)
    {
        return record_list::candidate(
            &record_names,
            needed().map(|member| (member, part_of(member))),
            parsed,
        );
    }
    let mut found: Vec<(MemberFunction, Vec<Span>)> = Vec::new();
    if has(MemberFunction::Old) && has(MemberFunction::New) {
        let (old, new) = replacement(parsed)?;
        found.extend([(MemberFunction::Old, vec![old]), (MemberFunction::New, vec![new])]);
    } else if has(MemberFunction::From) && has(MemberFunction::To) {
        let (from, to) = match triple(parsed) {
            Some((from, to, relation)) if has(MemberFunction::Type) => {
                found.push((MemberFunction::Type, vec![relation]));
                (from, to)
            }
            _ => ends(parsed)?,
        };
        found.extend([(MemberFunction::From, vec![from]), (MemberFunction::To, vec![to])]);
    } else if let Some((kind, name)) = record_list::of_new_kind(parsed).filter(|_| has(MemberFunction::Type))
    {
        found.extend([(MemberFunction::Name, vec![name]), (MemberFunction::Type, vec![kind])]);
    } else {
        found.push((MemberFunction::Name, vec![name(parsed)?]));
    }
    if has(MemberFunction::Type) && !found.iter().any(|(part, _)| *part == MemberFunction::Type) {
        let relation = has(MemberFunction::From);
        let span = if relation { relation_type(parsed, &found) } else { after_any(parsed, &TYPES) };
        found.push((MemberFunction::Type, vec![span?]));
    }
    if has(MemberFunction::Texts) {
        let texts = texts(parsed, &found);
        // An entity with a type needs no observations.
        if texts.is_empty() && !has(MemberFunction::Type) {
            return None;
        }
        found.push((MemberFunction::Texts, texts));
    }
    let mut object = Map::new();
    for member in needed() {
        let (_, spans) = found.iter().find(|(part, _)| Some(*part) == part_of(member))?;
        let text_of = |span: &Span| parsed.text.get(span.0..span.1).map(|text| Json::from(text.trim()));
        let value = match member.shape {
            ValueType::List(_) => Json::Array(spans.iter().filter_map(text_of).collect()),
            _ => spans.first().and_then(text_of)?,
        };
        object.insert(member.name.clone(), value);
    }
    let (start, end) = *found.first()?.1.first()?;
    let value = ArgumentValue::FromRequest(Json::Array(vec![Json::Object(object)]));
    Some(ValueCandidate { value, start, end, score: GOOD + 1.0 })
}

/// `replace A with B`, 把 A 改成 B: the old text and the new text.
fn replacement(parsed: &ParsedText<'_>) -> Option<(Span, Span)> {
    let text = parsed.text;
    let free = |at: usize| !parsed.mentions.iter().any(|mention| mention.start < at && at < mention.end);
    let lower = text.to_ascii_lowercase();
    let english = [
        ("replace ", &[" with ", " by "][..]),
        ("substitute ", &[" with ", " by "][..]),
        ("swap out ", &[" for ", " with "][..]),
        ("swap ", &[" for ", " with "][..]),
        ("change ", &[" to ", " into "][..]),
        ("edit ", &[" to ", " into "][..]),
    ];
    for (verb, joints) in english {
        let Some(at) = lower.match_indices(verb).map(|(at, _)| at).find(|at| free(*at)) else { continue };
        let start = at + verb.len();
        let joint = joints.iter().find_map(|joint| {
            lower[start..]
                .match_indices(joint)
                .map(|(at, _)| (start + at, joint.len()))
                .find(|(at, _)| free(at + 1))
        });
        let Some((middle, length)) = joint else { continue };
        return Some((bare(parsed, start, middle)?, until_end(parsed, middle + length)?));
    }
    let chinese =
        ["替换成", "替换为", "改成", "改为", "换成", "换为", "修改为", "修改成", "更新为", "替换", "变成"];
    let (middle, verb) = chinese
        .iter()
        .filter_map(|verb| {
            text.match_indices(verb).map(|(at, _)| at).find(|at| free(*at)).map(|at| (at, *verb))
        })
        .min_by_key(|(at, verb)| (*at, std::cmp::Reverse(verb.len())))?;
    // config.toml 里的 A 换成 B: without 把, the old text starts after the file.
    let file = parsed.mentions.iter().find(|mention| {
        matches!(mention.value, MentionValue::Literal(Literal::Path(_))) && mention.end <= middle
    });
    let start = ["把", "将"]
        .iter()
        .filter_map(|word| text[..middle].rfind(word).map(|at| at + word.len()))
        .max()
        .or(file.map(|file| file.end))?;
    // 把 a.ini 里的 A 改成 B: the file and its postposition are not part of the old text.
    let inside = ["里面的", "里面", "中的", "里的", "里", "中"];
    let from = inside
        .iter()
        .filter_map(|word| text[start..middle].find(word).map(|at| start + at + word.len()))
        .filter(|at| free(*at))
        .max()
        .unwrap_or(start);
    Some((bare(parsed, from, middle)?, until_end(parsed, middle + verb.len())?))
}

/// A span without surrounding whitespace, quotes and introductory words.
fn bare(parsed: &ParsedText<'_>, start: usize, end: usize) -> Option<Span> {
    let text = parsed.text.get(start..end)?;
    let mut rest = text.trim_start();
    for word in [
        "every ",
        "all ",
        "the text ",
        "the word ",
        "the string ",
        "the line ",
        "text ",
        "the ",
        "文本",
        "文字",
        "所有的",
        "所有",
    ] {
        // `every` or `all` does not identify one exact text.
        let bounds = matches!(word, "every " | "all " | "所有的" | "所有");
        match rest.strip_prefix(word) {
            Some(_) if bounds => return None,
            Some(shorter) => rest = shorter,
            None => {}
        }
    }
    let start = end - rest.len();
    let inner = quoted_at(parsed, start);
    if let Some(inner) = inner {
        // Only quotes and whitespace may follow the quoted text.
        let after = parsed
            .text
            .get(inner.1..end)?
            .trim_matches(|c: char| c.is_whitespace() || "\"'”’」』`》".contains(c));
        return after.is_empty().then_some(inner);
    }
    let trimmed = rest.trim_end();
    let path =
        |literal: &Literal| matches!(literal, Literal::Path(_) | Literal::Quoted(_) | Literal::Cells(_));
    let other = parsed.mentions.iter().any(|mention| {
        matches!(&mention.value, MentionValue::Literal(literal) if path(literal))
            && mention.start < start + trimmed.len()
            && start < mention.end
    });
    (!trimmed.is_empty() && !other).then_some((start, start + trimmed.len()))
}

/// The replacement text: quoted, or up to a mark or the place of the replacement.
fn until_end(parsed: &ParsedText<'_>, start: usize) -> Option<Span> {
    let rest = parsed.text.get(start..)?;
    let start = start + rest.len() - rest.trim_start().len();
    if let Some(inner) = quoted_at(parsed, start) {
        return Some(inner);
    }
    let rest = parsed.text.get(start..)?;
    let ends = [" in ", " within ", " inside ", " of ", "，", "。", ", ", "；", "; ", " on ", "\n"];
    let end = ends.iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
    let end = rest[..end].trim_end_matches(['.', '!', '?', ' ']).len();
    (end > 0).then_some((start, start + end))
}

const TYPES: [&str; 8] = ["of type", "as type", "type", "类型为", "类型是", "类型：", "类型:", "类型"];
const NAMES: [&str; 22] = [
    "name is",
    "with the name",
    "with name",
    "名称为",
    "名称是",
    "名称",
    "person called",
    "person named",
    "company called",
    "company named",
    "entity named",
    "entity called",
    "the entity",
    "entity",
    "node",
    "实体名为",
    "实体叫",
    "实体：",
    "实体",
    "节点",
    "名为",
    "对象",
];
/// Ambiguous labels of a name, used if no other label gives one.
const PLAIN_NAMES: [&str; 2] = ["name", "名字"];
const OWNERS: [&str; 11] =
    ["observations of", "observation of", "that", "to", "about", "from", "of", "for", "on", "给", "为"];

/// The name of the entity.
fn name(parsed: &ParsedText<'_>) -> Option<Span> {
    before(parsed)
        .or_else(|| after_any(parsed, &NAMES))
        .or_else(|| of_observation(parsed))
        .or_else(|| after_any(parsed, &PLAIN_NAMES))
        .or_else(|| owner(parsed))
        .or_else(|| after_any(parsed, &OWNERS))
}

/// `Lena Park's note`, 陈刚 的“单身”这条观察: the owner before a possessive.
fn owner(parsed: &ParsedText<'_>) -> Option<Span> {
    let text = parsed.text;
    let named = parsed
        .mentions
        .iter()
        .filter(|mention| matches!(mention.value, MentionValue::Name | MentionValue::Place));
    let possessive = |mention: &&crate::lexer::mention::Mention| {
        text.get(mention.end..).is_some_and(|rest| rest.starts_with("'s ") || rest.starts_with("’s "))
    };
    if let Some(mention) = named.into_iter().find(possessive) {
        return Some((mention.start, mention.end));
    }
    let quoted = parsed.mentions.iter().find_map(|mention| match &mention.value {
        MentionValue::Literal(Literal::Quoted(_)) => {
            text.get(..mention.start)?.trim_end().strip_suffix('的').map(str::len)
        }
        _ => None,
    })?;
    let head = text.get(..quoted)?.trim_end();
    if let Some(named) = crate::spreadsheet::sheet_name::quoted_at(parsed, None, Some(head.len())) {
        return Some(named);
    }
    let start = head
        .char_indices()
        .rev()
        .take_while(|(_, c)| (is_han(*c) || c.is_alphanumeric()) && !"除掉删把将去从给里中".contains(*c))
        .last()?
        .0;
    (start < head.len() && !["他", "她", "它", "其"].contains(&&head[start..])).then_some((start, head.len()))
}

/// “王强”的观察, `Lena Park's observation`: the owner of an observation.
fn of_observation(parsed: &ParsedText<'_>) -> Option<Span> {
    let text = parsed.text;
    let at = ["的观察", "的一条观察", "的这条观察"].iter().find_map(|word| text.find(word))?;
    let head = text.get(..at)?.trim_end();
    let at = head.len();
    if let Some(quoted) = crate::spreadsheet::sheet_name::quoted_at(parsed, None, Some(head.len())) {
        return Some(quoted);
    }
    let start = head
        .char_indices()
        .rev()
        .take_while(|(_, c)| (is_han(*c) || c.is_alphanumeric()) && !"除掉删把将去从给里中".contains(*c))
        .last()?
        .0;
    (start < at && !["他", "她", "它", "其"].contains(&&head[start..])).then_some((start, at))
}

/// 王芳 这个实体, `Kestrel: add …`: the name before the noun for its kind or before a colon.
fn before(parsed: &ParsedText<'_>) -> Option<Span> {
    let text = parsed.text;
    let pointed =
        ["这个实体", "这个节点", "那个实体", "该实体", "那个节点"].iter().find_map(|word| text.find(word));
    let head = match pointed {
        Some(at) => text.get(..at)?.trim_end(),
        None => text.split_once(": ").map(|(head, _)| head).filter(|head| {
            parsed.mentions.iter().any(|mention| {
                matches!(mention.value, MentionValue::Name | MentionValue::Place)
                    && mention.start == 0
                    && mention.end == head.len()
            })
        })?,
    };
    // 给“消息网关”这个实体: the name is the text inside the quotes.
    if pointed.is_some()
        && let Some(quoted) = crate::spreadsheet::sheet_name::quoted_at(parsed, None, Some(head.len()))
    {
        return Some(quoted);
    }
    let start = head
        .rfind(|c: char| c.is_whitespace() || "把将给从，,".contains(c))
        .map_or(0, |at| at + head[at..].chars().next().map_or(1, char::len_utf8));
    let start = if pointed.is_some() { start } else { 0 };
    (start < head.len()).then_some((start, head.len()))
}

/// The quoted texts that belong to no other part.
fn texts(parsed: &ParsedText<'_>, found: &[(MemberFunction, Vec<Span>)]) -> Vec<Span> {
    let is_used = |span: &Span| {
        found.iter().flat_map(|(_, spans)| spans).any(|other| other.0 < span.1 && span.0 < other.1)
    };
    let quoted = parsed.mentions.iter().filter_map(|mention| match &mention.value {
        MentionValue::Literal(Literal::Quoted(_)) => quoted_at(parsed, mention.start),
        _ => None,
    });
    let quoted: Vec<Span> = quoted.filter(|span| !is_used(span)).collect();
    if !quoted.is_empty() {
        return quoted;
    }
    // 观察：会说法语: observations may follow their label without quotes.
    let labels = [
        "观察：",
        "观察:",
        "观察是",
        "观察为",
        "，观察 ",
        ",观察 ",
        "、观察 ",
        "observation:",
        "observations:",
        "note:",
        "fact:",
    ];
    let lower = parsed.text.to_ascii_lowercase();
    let value_start = labels.iter().find_map(|label| lower.find(label).map(|at| at + label.len()));
    let value_start = value_start.or_else(|| record_list::announced(&lower));
    let span = value_start.and_then(|at| record_list::to_end(parsed, at)).filter(|span| !is_used(span));
    span.or_else(|| statement_about(parsed, found)).into_iter().collect()
}

/// `remember that Nina works from Graz`: the statement about the name after `that`.
fn statement_about(parsed: &ParsedText<'_>, found: &[(MemberFunction, Vec<Span>)]) -> Option<Span> {
    let (_, name) = found
        .iter()
        .find_map(|(part, spans)| (*part == MemberFunction::Name).then(|| (part, spans.first())))?;
    let (start, end) = *name?;
    let before = parsed.text.get(..start)?.trim_end();
    if !before.ends_with(" that") {
        return None;
    }
    let rest = parsed.text.get(end..)?;
    let from = end + rest.len() - rest.trim_start().len();
    let last = from + parsed.text[from..].trim_end_matches(['.', '!', ' ']).len();
    // `that Tomasz manages Warehouse East` is a relation, not an observation.
    let relates = crate::values::relation_value::stated(parsed).is_some();
    (last > from && !relates).then_some((from, last))
}

#[cfg(test)]
mod tests {
    use jiff::civil::Date;
    use serde_json::json;

    use super::*;
    use crate::lexer::labels;
    use crate::values::parameter::parameters;

    fn read(members: &[(&str, bool)], text: &str) -> Option<Json> {
        let property = |list: bool| match list {
            true => json!({"type": "array", "items": {"type": "string"}}),
            false => json!({"type": "string"}),
        };
        let properties: Map<String, Json> =
            members.iter().map(|(name, list)| ((*name).to_owned(), property(*list))).collect();
        let required: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
        let members = parameters(&json!({"properties": properties, "required": required}), "");
        let parsed = ParsedText::of(text, Date::constant(2026, 1, 15));
        let context = MatchContext { parsed: &parsed, stems: labels::stems(&parsed), tool_words: Vec::new() };
        match candidates(&members, &context)?.value {
            ArgumentValue::FromRequest(value) => Some(value[0].clone()),
            ArgumentValue::Result => None,
        }
    }

    #[test]
    fn parses_text_replacements() {
        let edit = |text: &str| read(&[("oldText", false), ("newText", false)], text);
        let expect = |old: &str, new: &str| Some(json!({"oldText": old, "newText": new}));
        assert_eq!(
            edit("in a.yaml replace 'debug: true' with 'debug: false'"),
            expect("debug: true", "debug: false")
        );
        assert_eq!(edit("把 a.ini 里的 port=8080 改成 port=9090"), expect("port=8080", "port=9090"));
        assert_eq!(edit("in notes.txt change \"old\" to \"new\""), expect("old", "new"));
        assert_eq!(edit("replace all tabs with blanks in a.txt"), None);
        assert_eq!(edit("replace it"), None);
    }

    #[test]
    fn parses_entities_and_relations() {
        assert_eq!(
            read(
                &[("name", false), ("entityType", false), ("observations", true)],
                "Create an entity Mara Lindt of type person with the observation 'works in Basel'"
            ),
            Some(json!({"name": "Mara Lindt", "entityType": "person", "observations": ["works in Basel"]}))
        );
        assert_eq!(
            read(&[("entityName", false), ("contents", true)], "给实体 李静 加一条观察“周五远程办公”"),
            Some(json!({"entityName": "李静", "contents": ["周五远程办公"]}))
        );
        assert_eq!(
            read(
                &[("from", false), ("to", false), ("relationType", false)],
                "relate Tom Reyes to Nordwind Ltd with relation type works_at"
            ),
            Some(json!({"from": "Tom Reyes", "to": "Nordwind Ltd", "relationType": "works_at"}))
        );
        assert_eq!(read(&[("entityName", false), ("contents", true)], "add an observation"), None);
    }
}
