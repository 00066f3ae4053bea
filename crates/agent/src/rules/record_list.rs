//! Several things of one type in one request, and the words around the names of things: `two entities, type supplier: A and B`.

use serde_json::{Map, Value as Json};

use super::candidate::{Candidate, GOOD, Given};
use super::literal::Literal;
use super::mention::{Reading, Value};
use super::parameter::{Parameter, Shape};
use super::record_value::{CONTAINERS, Part, Span, after_any, thing_at};
use super::series;

/// Names and their common type.
pub(super) struct Several {
    names: Vec<Span>,
    kind: Span,
}

/// Words that say that several things follow.
const COUNTS: [&str; 12] =
    ["entities", "two ", "three ", "four ", "两个", "三个", "四个", "几个", "这些", "俩", "仨", "都是"];
const TYPES: [&str; 9] =
    ["of type", "type", "类型都是", "类型都为", "类型均为", "类型为", "类型是", "类型：", "类型"];

/// `two entities to the graph, type supplier: A and B`, 新增两个实体：甲 和 乙，类型都是“中间件”.
pub(super) fn several(reading: &Reading<'_>) -> Option<Several> {
    let text = reading.text;
    let lower = text.to_ascii_lowercase();
    if !COUNTS.iter().any(|word| lower.contains(word)) {
        return None;
    }
    let kind = after_any(reading, &TYPES)?;
    let quoted = reading
        .mentions
        .iter()
        .filter(|mention| matches!(mention.value, Value::Literal(Literal::Quoted(_))))
        .any(|mention| !(mention.start <= kind.0 && kind.1 <= mention.end));
    let (colon, mark) = text.char_indices().find(|(_, c)| matches!(c, ':' | '：'))?;
    let start = colon + mark.len_utf8();
    let rest = text.get(start..)?;
    let end = rest.find(['，', ',', '。', '.', ';', '；', '\n']).filter(|at| !rest[..*at].is_empty());
    // `A, B and C`: commas are between the names where `and` is after the last of them.
    let reach = match rest.find(" and ") {
        Some(at) => rest[at..].find(['.', ';', '\n', ',']).map_or(rest.len(), |end| at + end),
        None => end.unwrap_or(rest.len()),
    };
    let names: Vec<Span> = series::members(&rest[..reach])
        .into_iter()
        .map(|name| {
            let at = name.as_ptr() as usize - text.as_ptr() as usize;
            (at, at + name.len())
        })
        .collect();
    let plain = |span: &Span| {
        let name = &text[span.0..span.1];
        !name.is_empty()
            && name.chars().count() <= 24
            && name.split(' ').count() <= 4
            && !(span.0 < kind.1 && kind.0 < span.1)
    };
    (names.len() > 1 && names.iter().all(plain) && !quoted).then_some(Several { names, kind })
}

/// The list of objects for names of one type, of which nothing else is known.
pub(super) fn candidate<'a>(
    several: &Several,
    members: impl Iterator<Item = (&'a Parameter, Option<Part>)>,
    reading: &Reading<'_>,
) -> Option<Candidate> {
    let members: Vec<(&Parameter, Option<Part>)> = members.collect();
    let said = |span: &Span| reading.text.get(span.0..span.1).map(|text| Json::from(text.trim()));
    let mut objects = Vec::new();
    for name in &several.names {
        let mut object = Map::new();
        for (member, part) in &members {
            let value = match part {
                Some(Part::Name) => said(name)?,
                Some(Part::Type) => said(&several.kind)?,
                Some(Part::Texts) if matches!(member.shape, Shape::List(_)) => Json::Array(Vec::new()),
                _ => return None,
            };
            object.insert(member.name.clone(), value);
        }
        objects.push(Json::Object(object));
    }
    let (start, end) = (several.names.first()?.0, several.names.last()?.1);
    Some(Candidate { value: Given::Said(Json::Array(objects)), start, end, score: GOOD + 1.0 })
}

/// `new person: Priya Nair`: the type and the name of a new thing.
pub(super) fn of_new_kind(reading: &Reading<'_>) -> Option<(Span, Span)> {
    const OTHERS: [&str; 8] =
        ["entity", "node", "relation", "observation", "branch", "event", "fact", "entities"];
    let lower = reading.text.to_ascii_lowercase();
    let at = lower.find("new ").filter(|at| *at == 0 || !lower[..*at].ends_with(char::is_alphanumeric))? + 4;
    let rest = lower.get(at..)?;
    let length = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    let begins = [":", " called ", " named "].iter().find(|mark| rest[length..].starts_with(**mark))?;
    let word = &rest[..length];
    let name = thing_at(reading, at + length + begins.len())?;
    (length > 2 && !OTHERS.contains(&word)).then_some(((at, at + length), name))
}

/// The token after `in the knowledge graph:` where that stands at a token.
pub(super) fn past_container(reading: &Reading<'_>, at: usize) -> Option<usize> {
    let token = reading.tokens.get(at)?;
    let lower = reading.text.get(token.start..)?.to_ascii_lowercase();
    let rest = ["in ", "to ", "into "].iter().find_map(|lead| lower.strip_prefix(lead))?;
    let rest = ["the ", "my ", "our "].iter().find_map(|word| rest.strip_prefix(word)).unwrap_or(rest);
    let container = CONTAINERS.iter().find(|word| rest.starts_with(**word))?;
    let rest = rest[container.len()..].trim_start();
    let rest = rest.strip_prefix(':').or_else(|| rest.strip_prefix(','))?;
    Some(reading.token_at(reading.text.len() - rest.len()))
}

/// `one more observation for X in the graph: …`: where a text begins that is announced by its kind and a colon.
pub(super) fn announced(lower: &str) -> Option<usize> {
    let at = ["observation", "观察"].iter().find_map(|word| lower.find(word).map(|at| at + word.len()))?;
    let rest = &lower[at..];
    let (colon, length) =
        [": ", "："].iter().filter_map(|mark| rest.find(mark).map(|at| (at, mark.len()))).min()?;
    let between = &rest[..colon];
    (!between.contains([',', '，', '"', '“', '.']) && between.chars().count() < 40)
        .then_some(at + colon + length)
}

/// A text without quotes, up to the end of its sentence or to a quote.
pub(super) fn to_end(reading: &Reading<'_>, start: usize) -> Option<Span> {
    let rest = reading.text.get(start..)?;
    let start = start + rest.len() - rest.trim_start().len();
    let rest = reading.text.get(start..)?;
    let ends = ["，", "。", "；", "; ", ". ", ", ", "\n"];
    let end = ends.iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
    let end = rest[..end].trim_end_matches(['.', '!', ' ']).len();
    (end > 0 && !rest[..end].contains(['"', '“', '「'])).then_some((start, start + end))
}
