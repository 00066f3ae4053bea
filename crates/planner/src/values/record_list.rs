//! Several things of one type in one request, and the words around their names: `two entities, type supplier: A and B`.

use serde_json::{Map, Value as Json};

use crate::lexer::literal::Literal;
use crate::lexer::mention::{MentionValue, ParsedText};
use crate::lexer::series;
use crate::values::candidate::{ArgumentValue, GOOD, ValueCandidate};
use crate::values::parameter::{Parameter, ValueType};
use crate::values::record_part::{CONTAINERS, MemberFunction, Span, after_any, thing_at};

/// Names with their types.
pub(crate) struct RecordNames(Vec<(Span, Span)>);

/// Words that announce several things.
const COUNTS: [&str; 12] =
    ["entities", "two ", "three ", "four ", "两个", "三个", "四个", "几个", "这些", "俩", "仨", "都是"];
const TYPES: [&str; 9] =
    ["of type", "type", "类型都是", "类型都为", "类型均为", "类型为", "类型是", "类型：", "类型"];
/// Words between a name and its own type.
const OWN_TYPES: [&str; 8] =
    [" of type ", " (type ", " as type ", " (a ", "（类型为", "（类型是", "（类型", " (类型"];
/// Words between the names and their common type, without a colon before the names.
const COMMON_TYPES: [&str; 5] = [", of type ", " of type ", ", type ", "，类型", " 类型"];

/// `two entities to the graph, type supplier: A and B`, 新增两个实体：甲 和 乙，类型都是“中间件”.
pub(crate) fn record_names(parsed: &ParsedText<'_>) -> Option<RecordNames> {
    let text = parsed.text;
    let lower = text.to_ascii_lowercase();
    if !COUNTS.iter().any(|word| lower.contains(word)) {
        return None;
    }
    let quoted_beside = |kinds: &[Span]| {
        let quoted = parsed
            .mentions
            .iter()
            .filter(|mention| matches!(mention.value, MentionValue::Literal(Literal::Quoted(_))));
        quoted
            .into_iter()
            .any(|mention| !kinds.iter().any(|kind| mention.start <= kind.0 && kind.1 <= mention.end))
    };
    let span_of = |part: &str| {
        let at = part.as_ptr() as usize - text.as_ptr() as usize;
        (at, at + part.len())
    };
    let plain = |span: &Span| {
        let name = &text[span.0..span.1];
        !name.is_empty() && name.chars().count() <= 24 && name.split(' ').count() <= 4
    };
    let colon = text.char_indices().find(|(_, c)| matches!(c, ':' | '：'));
    if let Some((colon, mark)) = colon {
        // `A of type X and B of type Y`: each name has its own type.
        let rest = text.get(colon + mark.len_utf8()..)?.trim_end_matches(['.', '。', '!', ' ']);
        let pairs: Option<Vec<(Span, Span)>> = series::members(rest)
            .into_iter()
            .map(|member| {
                let (name, kind) = OWN_TYPES.iter().find_map(|word| member.split_once(word))?;
                let kind = kind.trim().trim_end_matches([')', '）']);
                Some((span_of(name.trim()), span_of(kind)))
            })
            .collect();
        if let Some(pairs) = pairs.filter(|pairs| pairs.len() > 1) {
            let kinds: Vec<Span> = pairs.iter().map(|(_, kind)| *kind).collect();
            let sound = pairs.iter().all(|(name, kind)| plain(name) && plain(kind));
            return (sound && !quoted_beside(&kinds)).then_some(RecordNames(pairs));
        }
    }
    let kind = after_any(parsed, &TYPES)?;
    let listed = match colon {
        Some((colon, mark)) => {
            let rest = text.get(colon + mark.len_utf8()..)?;
            let end = rest.find(['，', ',', '。', '.', ';', '；', '\n']).filter(|at| !rest[..*at].is_empty());
            // `A, B and C`: commas before an `and` separate names.
            let reach = match rest.find(" and ") {
                Some(at) => rest[at..].find(['.', ';', '\n', ',']).map_or(rest.len(), |end| at + end),
                None => end.unwrap_or(rest.len()),
            };
            &rest[..reach]
        }
        // `two entities in the graph, A and B, of type X`: the names precede their type.
        None => {
            let start = lower.find("entities").map(|at| at + "entities".len())?;
            let end = COMMON_TYPES.iter().filter_map(|word| lower[start..].find(word)).min()? + start;
            let rest = text.get(start..end)?;
            let rest = past_place(rest).trim_start_matches([',', ' ']);
            ["called ", "named "].iter().find_map(|word| rest.strip_prefix(word)).unwrap_or(rest)
        }
    };
    let names: Vec<Span> = series::members(listed).into_iter().map(span_of).collect();
    let apart = |span: &Span| plain(span) && !(span.0 < kind.1 && kind.0 < span.1);
    (names.len() > 1 && names.iter().all(apart) && !quoted_beside(&[kind]))
        .then(|| RecordNames(names.into_iter().map(|name| (name, kind)).collect()))
}

/// Skips `in the knowledge graph` at the start of a text.
fn past_place(text: &str) -> &str {
    let rest = text.trim_start();
    let lower = rest.to_ascii_lowercase();
    let lead = ["in ", "to ", "into ", "for "].iter().find(|lead| lower.starts_with(**lead));
    let Some(lead) = lead else { return rest };
    let article = ["the ", "my ", "our "].iter().find(|word| lower[lead.len()..].starts_with(**word));
    let start = lead.len() + article.map_or(0, |word| word.len());
    let container = CONTAINERS.iter().find(|word| lower[start..].starts_with(**word));
    container.map_or(rest, |container| &rest[start + container.len()..])
}

/// The list of objects for names with types, without observations.
pub(crate) fn candidate<'a>(
    record_names: &RecordNames,
    members: impl Iterator<Item = (&'a Parameter, Option<MemberFunction>)>,
    parsed: &ParsedText<'_>,
) -> Option<ValueCandidate> {
    let members: Vec<(&Parameter, Option<MemberFunction>)> = members.collect();
    let text_of = |span: &Span| parsed.text.get(span.0..span.1).map(|text| Json::from(text.trim()));
    let mut objects = Vec::new();
    for (name, kind) in &record_names.0 {
        let mut object = Map::new();
        for (member, part) in &members {
            let value = match part {
                Some(MemberFunction::Name) => text_of(name)?,
                Some(MemberFunction::Type) => text_of(kind)?,
                Some(MemberFunction::Texts) if matches!(member.shape, ValueType::List(_)) => {
                    Json::Array(Vec::new())
                }
                _ => return None,
            };
            object.insert(member.name.clone(), value);
        }
        objects.push(Json::Object(object));
    }
    let (start, end) = (record_names.0.first()?.0.0, record_names.0.last()?.0.1);
    Some(ValueCandidate {
        value: ArgumentValue::FromRequest(Json::Array(objects)),
        start,
        end,
        score: GOOD + 1.0,
    })
}

/// `new person: Priya Nair`, `a person called Priya Nair`, `Priya Nair … as a person`: the type and the name of a new thing.
pub(crate) fn of_new_kind(parsed: &ParsedText<'_>) -> Option<(Span, Span)> {
    const OTHERS: [&str; 15] = [
        "entity",
        "node",
        "relation",
        "observation",
        "branch",
        "event",
        "fact",
        "entities",
        "sheet",
        "file",
        "folder",
        "workbook",
        "directory",
        "thing",
        "type",
    ];
    let lower = parsed.text.to_ascii_lowercase();
    let word_at = |at: usize| {
        let rest = &lower[at..];
        let length = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        (length > 2 && !OTHERS.contains(&&rest[..length])).then_some(length)
    };
    let is_whole_word = |at: usize| at == 0 || !lower[..at].ends_with(char::is_alphanumeric);
    let named = [
        ("new ", &[":", " called ", " named "][..]),
        ("a ", &[" called ", " named "]),
        ("an ", &[" called ", " named "]),
    ];
    for (lead, marks) in named {
        for (at, _) in lower.match_indices(lead).filter(|(at, _)| is_whole_word(*at)) {
            let at = at + lead.len();
            let Some(length) = word_at(at) else { continue };
            let Some(mark) = marks.iter().find(|mark| lower[at + length..].starts_with(**mark)) else {
                continue;
            };
            let name = thing_at(parsed, at + length + mark.len())?;
            return Some(((at, at + length), name));
        }
    }
    // `add X to the knowledge graph as a person`
    let graph = lower.find("graph").map(|at| at + "graph".len())?;
    let kind = [" as a ", " as an "]
        .iter()
        .find_map(|lead| lower[graph..].strip_prefix(lead).map(|_| graph + lead.len()))?;
    let length = word_at(kind)?;
    let ends = lower[kind + length..].chars().next().is_none_or(|c| ",.;".contains(c));
    let verb = ["add ", "put ", "record ", "store ", "save "];
    let start = verb
        .iter()
        .find_map(|verb| lower.find(verb).filter(|at| is_whole_word(*at)).map(|at| at + verb.len()))?;
    let name = thing_at(parsed, start)?;
    let placed = [" to the ", " in the ", " into the ", "' to the ", "' in the ", "\" to the ", "\" in the "]
        .iter()
        .any(|lead| lower[name.1..].starts_with(lead));
    (ends && placed && name.1 < graph).then_some(((kind, kind + length), name))
}

/// `one more observation for X in the graph: …`: the start of a text after its kind and a colon.
pub(crate) fn announced(lower: &str) -> Option<usize> {
    let at = ["observation", "观察"].iter().find_map(|word| lower.find(word).map(|at| at + word.len()))?;
    let rest = &lower[at..];
    let (colon, length) =
        [": ", "："].iter().filter_map(|mark| rest.find(mark).map(|at| (at, mark.len()))).min()?;
    let between = &rest[..colon];
    (!between.contains([',', '，', '"', '“', '.']) && between.chars().count() < 40)
        .then_some(at + colon + length)
}

/// The span of an unquoted text up to the end of its clause; `None` if it contains a quote.
pub(crate) fn to_end(parsed: &ParsedText<'_>, start: usize) -> Option<Span> {
    let rest = parsed.text.get(start..)?;
    let start = start + rest.len() - rest.trim_start().len();
    let rest = parsed.text.get(start..)?;
    let ends = ["，", "。", "；", "; ", ". ", ", ", "\n"];
    let end = ends.iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
    let end = rest[..end].trim_end_matches(['.', '!', ' ']).len();
    (end > 0 && !rest[..end].contains(['"', '“', '「'])).then_some((start, start + end))
}
