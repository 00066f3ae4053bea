//! Lists and objects: JSON literals, or enumerations as lists.

use serde_json::Value as Json;

use crate::lexer::file_extension::is_bare_file;
use crate::lexer::implied::is_bare;
use crate::lexer::labels::{self, LabelSpan};
use crate::lexer::lexicon;
use crate::lexer::literal::Literal;
use crate::lexer::mention::{Mention, MentionValue};
use crate::lexer::number;
use crate::lexer::series;
use crate::lexer::token::is_han;
use crate::spreadsheet::aggregation;
use crate::spreadsheet::cell_value;
use crate::spreadsheet::entry;
use crate::spreadsheet::header_value;
use crate::values::candidate::{ArgumentValue, FAIR, GOOD, MatchContext, POOR, ValueCandidate};
use crate::values::choice;
use crate::values::number_value;
use crate::values::parameter::{Parameter, ValueType};
use crate::values::phrase::{self, Phrase};
use crate::values::record_part;
use crate::values::record_value;
use crate::values::role::Role;

/// Candidates for a parameter that takes a list of `item`.
pub(crate) fn lists(
    parameter: &Parameter,
    item: &Parameter,
    context: &MatchContext<'_>,
    label_spans: &[LabelSpan],
) -> Vec<ValueCandidate> {
    if !item.choices.is_empty() || !parameter.choices.is_empty() {
        return chosen(parameter, item, context).into_iter().collect();
    }
    if let ValueType::List(inner) = &item.shape {
        return tables(item, inner, context, label_spans);
    }
    let mut found = Vec::new();
    if let ValueType::Object(members) = &item.shape {
        found.extend(record_value::candidates(members, context));
    }
    for (at, mention) in context.parsed.mentions.iter().enumerate() {
        found.extend(match &mention.value {
            MentionValue::Literal(Literal::Json(Json::Array(values))) => {
                let label = context.labelled(label_spans, mention.start, mention.end);
                json_array(values, item, mention, label)
            }
            _ => series_at(at, parameter, item, context, label_spans),
        });
    }
    if matches!(item.shape, ValueType::Text | ValueType::Any) {
        found.extend(aggregation::candidates(parameter, context));
        found.extend(named(parameter, context));
        found.extend(excluded(parameter, context));
        found.extend(labelled_items(context, label_spans));
        found.extend(chunked(parameter, context, label_spans));
    }
    found
}

/// The allowed values that the request mentions.
fn chosen(parameter: &Parameter, item: &Parameter, context: &MatchContext<'_>) -> Option<ValueCandidate> {
    let choices = if item.choices.is_empty() { &parameter.choices } else { &item.choices };
    let chosen = choice::chosen(choices, &parameter.description, context.parsed, &context.stems);
    let (first, last) = (chosen.first()?, chosen.last()?);
    let values: Vec<Json> = chosen.iter().map(|chosen| chosen.value.clone()).collect();
    Some(ValueCandidate {
        value: ArgumentValue::FromRequest(Json::Array(values)),
        start: first.span.start,
        end: last.span.end,
        score: GOOD + 1.0,
    })
}

/// Tables of one row, or of rows separated by semicolons. `row` is a list of `cell`.
fn tables(
    row: &Parameter,
    cell: &Parameter,
    context: &MatchContext<'_>,
    label_spans: &[LabelSpan],
) -> Vec<ValueCandidate> {
    let mut found = Vec::new();
    for mut candidate in lists(row, cell, context, label_spans) {
        if let ArgumentValue::FromRequest(value) = &mut candidate.value
            && !value.as_array().is_some_and(|rows| rows.iter().all(Json::is_array))
        {
            *value = Json::Array(vec![value.take()]);
        }
        // An unquoted number or name is not accepted as content: it may be the position to write to.
        let begins = context.parsed.text.get(candidate.start..).and_then(|text| text.chars().next());
        if begins.is_some_and(|first| "[({\"'“‘「『《`".contains(first)) {
            found.push(candidate);
        }
    }
    found.extend(rows(context));
    found.extend(entry::candidates(context));
    found.extend(header_value::candidate(context));
    found
}

/// A JSON array in the request, if its items fit. `label` is the strength of its label.
fn json_array(values: &[Json], item: &Parameter, mention: &Mention, label: f32) -> Option<ValueCandidate> {
    if !values.iter().all(|value| fits(item, value) || matches!(value, Json::Array(_))) {
        return None;
    }
    let value = ArgumentValue::FromRequest(Json::Array(values.to_vec()));
    Some(ValueCandidate { value, start: mention.start, end: mention.end, score: GOOD + label })
}

/// The enumeration that begins with the mention at this index: `a.txt, b.txt and c.txt`.
fn series_at(
    at: usize,
    parameter: &Parameter,
    item: &Parameter,
    context: &MatchContext<'_>,
    label_spans: &[LabelSpan],
) -> Option<ValueCandidate> {
    let range = series::range_around(context.parsed, at);
    if range.start != at {
        return None;
    }
    let members = &context.parsed.mentions[range];
    let is_suitable = |mention: &Mention| suits(parameter.role, &mention.value);
    let values: Option<Vec<Json>> = members
        .iter()
        .map(|mention| member(item, context, mention).filter(|_| is_suitable(mention)))
        .collect();
    let values = values?;
    if is_folder_beside_files(parameter, members, context) {
        return None;
    }
    // `two points`: the number of items is not an item.
    if matches!(members, [Mention { value: MentionValue::Number(number), .. }] if number.may_be_article) {
        return None;
    }
    let (start, end) = (members[0].start, members[members.len() - 1].end);
    let label = context.labelled(label_spans, start, end);
    // `cc` and `bcc` need an explicit label.
    if parameter.has_word(&["cc", "bcc"]) && label < 1.0 {
        return None;
    }
    let score = series_score(parameter, members) + label;
    Some(ValueCandidate { value: ArgumentValue::FromRequest(Json::Array(values)), start, end, score })
}

/// Whether the members contain an absolute folder and the request lists files: the folder is then not a file to stage.
fn is_folder_beside_files(parameter: &Parameter, members: &[Mention], context: &MatchContext<'_>) -> bool {
    let is_rooted_folder = |mention: &Mention| {
        path_of(mention).is_some_and(|path| path.starts_with(['/', '~']) && is_bare(path))
    };
    let is_file =
        |mention: &Mention| path_of(mention).is_some_and(|path| !is_bare(path) || is_bare_file(path));
    parameter.has_word(&["files", "file"])
        && members.iter().any(is_rooted_folder)
        && context.parsed.mentions.iter().any(is_file)
}

fn path_of(mention: &Mention) -> Option<&str> {
    match &mention.value {
        MentionValue::Literal(Literal::Path(path)) => Some(path),
        _ => None,
    }
}

/// The score of an enumeration, by the kinds and the number of its members.
fn series_score(parameter: &Parameter, members: &[Mention]) -> f32 {
    let is_mail = |mention: &Mention| matches!(mention.value, MentionValue::Literal(Literal::Mail(_)));
    if parameter.role == Role::Mail {
        // The name of a person is not an address.
        let takes_addresses = parameter.description.to_lowercase().contains("address");
        return if takes_addresses && !members.iter().any(is_mail) { POOR } else { GOOD };
    }
    // `m-30` is an ID, not a name.
    if parameter.has_word(&["names"]) && members.iter().all(|mention| is_numbered(&mention.value)) {
        return POOR;
    }
    if parameter.role == Role::Path && members.iter().all(|mention| path_of(mention).is_some()) {
        return GOOD;
    }
    match members.len() {
        1 if matches!(members[0].value, MentionValue::Literal(Literal::Quoted(_))) => FAIR,
        1 => FAIR - 0.2,
        2 => FAIR + 0.4,
        _ => GOOD,
    }
}

/// The text after a label, split into list items.
fn labelled_items(context: &MatchContext<'_>, label_spans: &[LabelSpan]) -> Vec<ValueCandidate> {
    let mut found = Vec::new();
    for span in label_spans.iter().filter(|span| span.strength >= 1.2) {
        let Some(first) = phrase::after_label(*span, context.parsed) else { continue };
        // An enumeration continues past the words that end a single phrase.
        let rest = context.parsed.text.get(first.start..).unwrap_or_default();
        let end = rest.find(['.', '?', '!', ';', '。', '？', '！', '；', '\n', ':']).unwrap_or(rest.len());
        let continues = match first.text.contains(is_han) {
            true => rest[..end].contains('、'),
            false => rest[..end].contains(',') || rest[..end].contains(" and "),
        };
        let end = if first.text.contains(is_han) { rest[..end].find('，').unwrap_or(end) } else { end };
        let reach = if continues { end } else { first.text.len() };
        let text = rest[..reach].trim();
        let members: Vec<Json> = series::members(text)
            .into_iter()
            .take_while(|member| member.split_whitespace().count() <= 4 && member.chars().count() <= 24)
            .map(Json::from)
            .collect();
        if members.is_empty() {
            continue;
        }
        let score = FAIR * 0.6 + span.strength * 0.5 + if members.len() > 1 { 0.4 } else { 0.0 };
        let end = first.start + text.len();
        found.push(ValueCandidate {
            value: ArgumentValue::FromRequest(Json::Array(members)),
            start: first.start,
            end,
            score,
        });
    }
    found
}

/// Adjacent runs of words: `the price of tomatoes and lettuce`.
fn chunked(
    parameter: &Parameter,
    context: &MatchContext<'_>,
    label_spans: &[LabelSpan],
) -> Vec<ValueCandidate> {
    if !parameter.required {
        return Vec::new();
    }
    let own =
        |text: &str| text.split_whitespace().all(|word| context.tool_words.contains(&labels::stem(word)));
    // A fragment of a path or an address is not a value.
    let torn = |chunk: &Phrase<'_>| {
        context.parsed.mentions.iter().any(|mention| {
            matches!(mention.value, MentionValue::Literal(_))
                && mention.start < chunk.end
                && chunk.start < mention.end
        })
    };
    let chunks: Vec<Phrase<'_>> =
        phrase::chunks(context.parsed).into_iter().filter(|chunk| !own(chunk.text) && !torn(chunk)).collect();
    let joined = |first: &Phrase<'_>, second: &Phrase<'_>| {
        let between = context.parsed.text.get(first.end..second.start).unwrap_or_default().trim();
        matches!(between, "and" | "," | ", and" | "or" | "and the" | "&")
    };
    let mut found = Vec::new();
    for (at, first) in chunks.iter().enumerate() {
        let mut last = at;
        while last + 1 < chunks.len() && joined(&chunks[last], &chunks[last + 1]) {
            last += 1;
        }
        let is_inner = at > 0 && joined(&chunks[at - 1], first);
        if last == at || is_inner {
            continue;
        }
        let values: Vec<Json> = chunks[at..=last].iter().map(|chunk| Json::from(chunk.text)).collect();
        let (start, end) = (first.start, chunks[last].end);
        let score = FAIR + 0.1 + context.labelled(label_spans, start, end) * 0.5;
        found.push(ValueCandidate {
            value: ArgumentValue::FromRequest(Json::Array(values)),
            start,
            end,
            score,
        });
    }
    found
}

/// `姓名、年龄；李雷、28` after a colon: rows of cells.
fn rows(context: &MatchContext<'_>) -> Vec<ValueCandidate> {
    let text = context.parsed.text;
    let mut found = Vec::new();
    // If there are several colons, the last one precedes the rows.
    for (at, mark) in text.rmatch_indices([':', '：']) {
        let start = at + mark.len();
        // The colon of `D:E` or of a formula does not introduce rows.
        let inside = context.parsed.mentions.iter().any(|mention| mention.start <= at && at < mention.end);
        let adjacent = mark == ":" && !text[start..].starts_with([' ', '\n', '[', '"']);
        if inside || adjacent && text[start..].starts_with(|c: char| c.is_ascii()) {
            continue;
        }
        let rest = &text[start..];
        let end = rest.find(['。', '\n', '?', '？']).unwrap_or(rest.len());
        let rows: Vec<Json> = rest[..end]
            .split(['；', ';'])
            .flat_map(|row| row.split(" / "))
            .map(|row| Json::Array(series::members(row).into_iter().map(cell_value::cell).collect()))
            .filter(|row| row.as_array().is_some_and(|cells| !cells.is_empty()))
            .collect();
        let cells = rows.first().and_then(Json::as_array).map_or(0, Vec::len);
        if cells > 1 || rows.len() > 1 {
            found.push(ValueCandidate {
                value: ArgumentValue::FromRequest(Json::Array(rows)),
                start,
                end: start + end,
                score: GOOD + 0.5,
            });
            break;
        }
    }
    found
}

fn fits(item: &Parameter, value: &Json) -> bool {
    match item.shape {
        ValueType::Integer => value.is_i64() || value.as_f64().is_some_and(|value| value.fract() == 0.0),
        ValueType::Number => value.is_number(),
        ValueType::Boolean => value.is_boolean(),
        ValueType::Text => value.is_string(),
        ValueType::Object(_) => value.is_object(),
        ValueType::List(_) | ValueType::Any => true,
    }
}

/// `m-30`, `evt_7`: one to four letters and a number.
fn is_numbered(value: &MentionValue) -> bool {
    let MentionValue::Literal(Literal::Code(code)) = value else { return false };
    let letters = code.bytes().take_while(u8::is_ascii_lowercase).count();
    let rest = code[letters..].trim_start_matches(['-', '_']);
    (1..=4).contains(&letters) && !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a list of this role can contain a value of this kind.
fn suits(role: Role, value: &MentionValue) -> bool {
    match (role, value) {
        (Role::Mail, MentionValue::Literal(Literal::Mail(_) | Literal::Quoted(_)) | MentionValue::Name) => {
            true
        }
        (Role::Mail, _)
        | (Role::Path | Role::Folder, MentionValue::Literal(Literal::Mail(_) | Literal::Url(_))) => false,
        (Role::Path | Role::Folder, MentionValue::Literal(_)) => !is_numbered(value),
        (Role::Path | Role::Folder, _) => false,
        (_, MentionValue::Literal(Literal::Mail(_))) => false,
        // A file or a cell is not a name.
        (
            _,
            MentionValue::Literal(
                Literal::Path(_) | Literal::Cells(_) | Literal::Formula(_) | Literal::Url(_),
            ),
        ) => role == Role::Url,
        _ => true,
    }
}

/// `nodes X and Y`, 实体 甲、乙: names after the noun for their kind, if the tool's words contain that noun.
fn named(parameter: &Parameter, context: &MatchContext<'_>) -> Vec<ValueCandidate> {
    if !parameter.has_word(&["names", "nodes", "entities", "ids", "items"]) {
        return Vec::new();
    }
    let parsed = context.parsed;
    let literal = |token: &crate::lexer::token::Token<'_>| {
        parsed.mentions.iter().any(|mention| {
            matches!(mention.value, MentionValue::Literal(_))
                && mention.start < token.end
                && token.start < mention.end
        })
    };
    let own = context.tool_words.join(" ");
    let rows: Vec<usize> = lexicon::word_matches(&own, &crate::lexer::token::tokenize(&own), &|_| false)
        .into_iter()
        .flat_map(|word_match| word_match.meaning.things)
        .collect();
    let word_matches = lexicon::word_matches(parsed.text, &parsed.tokens, &literal);
    let markers = word_matches
        .iter()
        .filter(|word_match| word_match.meaning.things.iter().any(|thing| rows.contains(thing)));
    let mut found = Vec::new();
    let container = |word_match: &&lexicon::WordMatch| {
        word_match
            .meaning
            .things
            .iter()
            .all(|thing| ["graph", "chart"].contains(&lexicon::thing(*thing).name))
    };
    for marker in markers.filter(|marker| !container(marker)) {
        found.extend(before_kind(parsed, marker));
        let mut names = Vec::new();
        let Some(first) = record_part::thing_at(parsed, marker.end) else { continue };
        // 知识图谱中删除实体: text that continues with a verb is not a name.
        let phrase = parsed.text.get(first.0..first.1).unwrap_or_default();
        let begins = lexicon::word_matches(phrase, &crate::lexer::token::tokenize(phrase), &|_| false);
        let quoted = parsed.text[..first.0].ends_with(['“', '"', '「', '\'', '『']);
        if !quoted
            && (phrase.starts_with(['中', '里', '上', '内'])
                || begins.first().is_some_and(|word_match| {
                    word_match.start == 0
                        && !word_match.meaning.verbs.is_empty()
                        && phrase.chars().all(|c| c.is_lowercase() || is_han(c))
                        && word_match.meaning.things.is_empty()
                }))
        {
            continue;
        }
        // 节点多了自然就连成网了: a sentence is not a name.
        if !quoted && phrase.chars().count() > 3 && phrase.contains(['了', '就', '吗']) {
            continue;
        }
        let mut last = first;
        names.push(first);
        loop {
            let rest = parsed.text.get(last.1..).unwrap_or_default();
            let trimmed = rest.trim_start_matches(|c: char| c.is_whitespace() || "\"'”’」』`".contains(c));
            let joint = ["、", "和", "与", ", and ", "and ", ", ", "，"]
                .iter()
                .find(|joint| trimmed.starts_with(**joint));
            let Some(joint) = joint else { break };
            let Some(next) = record_part::thing_at(parsed, parsed.text.len() - trimmed.len() + joint.len())
            else {
                break;
            };
            names.push(next);
            last = next;
        }
        let values: Vec<Json> =
            names.iter().filter_map(|(start, end)| parsed.text.get(*start..*end)).map(Json::from).collect();
        found.push(ValueCandidate {
            value: ArgumentValue::FromRequest(Json::Array(values)),
            start: first.0,
            end: last.1,
            score: GOOD + 0.5,
        });
    }
    found
}

/// 孙悦、周凯 这两个节点, `the Falcon Migration node`: names before the noun for their kind.
fn before_kind(
    parsed: &crate::lexer::mention::ParsedText<'_>,
    marker: &lexicon::WordMatch,
) -> Option<ValueCandidate> {
    let head = parsed.text.get(..marker.start)?.trim_end();
    let names: Vec<&str> = if parsed.text[marker.start..marker.end].is_ascii() {
        let named = parsed.mentions.iter().find(|mention| {
            matches!(mention.value, MentionValue::Name | MentionValue::Place) && mention.end == head.len()
        })?;
        let lead = head.get(..named.start)?.trim_end().to_lowercase();
        (lead.is_empty() || lead.ends_with("the") || lead.ends_with("for"))
            .then(|| vec![&head[named.start..]])?
    } else {
        let trimmed = head.trim_end_matches(|c: char| "这那两三四几个条都的俩些".contains(c));
        if trimmed.len() == head.len() || trimmed.is_empty() {
            return None;
        }
        let trimmed = trimmed.trim_end();
        // The names extend back to the word that introduces them.
        let lead = [
            "打开",
            "删除",
            "删掉",
            "查看",
            "看看",
            "展开",
            "把",
            "将",
            "从",
            "里面",
            "图谱里",
            "图谱中",
            "里的",
            "中的",
            "，",
            "：",
            "。",
        ]
        .iter()
        .filter_map(|word| trimmed.rfind(word).map(|at| at + word.len()))
        .max()
        .unwrap_or(0);
        series::members(trimmed.get(lead..)?.trim())
    };
    let plain = |name: &&str| {
        !name.is_empty()
            && name.chars().count() <= 20
            && !name.contains(['，', ',', '“', '"', '/', '的'])
            && (name.is_ascii() || !name.contains(' '))
    };
    if names.is_empty() || !names.iter().all(plain) {
        return None;
    }
    let start = names.first()?.as_ptr() as usize - parsed.text.as_ptr() as usize;
    let last = names.last()?;
    let end = last.as_ptr() as usize - parsed.text.as_ptr() as usize + last.len();
    let values = names.iter().map(|name| Json::from(*name)).collect();
    Some(ValueCandidate {
        value: ArgumentValue::FromRequest(Json::Array(values)),
        start,
        end,
        score: GOOD + 0.6,
    })
}

/// `without node_modules`, 排除 dist: the excluded items.
fn excluded(parameter: &Parameter, context: &MatchContext<'_>) -> Option<ValueCandidate> {
    if !parameter.has_word(&["exclude", "excluded", "ignore", "skip"]) {
        return None;
    }
    let text = context.parsed.text;
    let lower = text.to_ascii_lowercase();
    let words = [
        "without ",
        "excluding ",
        "except ",
        "ignoring ",
        "skipping ",
        "ignore ",
        "exclude ",
        "skip ",
        "排除",
        "忽略",
        "不含",
        "跳过",
        "不包括",
        "不包含",
        "leaving out ",
        "leave out ",
    ];
    if let Some(listed) = excluded_before(text) {
        return Some(listed);
    }
    let start = words.iter().filter_map(|word| lower.find(word).map(|at| at + word.len())).min()?;
    let rest = &text[start..];
    let end = rest.find([',', '，', '。', '?', '？']).unwrap_or(rest.len());
    let listed: Vec<Json> =
        series::members(rest[..end].trim_end_matches('.')).into_iter().map(Json::from).collect();
    (!listed.is_empty()).then(|| ValueCandidate {
        value: ArgumentValue::FromRequest(Json::Array(listed)),
        start,
        end: start + end,
        score: GOOD + 0.5,
    })
}

/// node_modules 和 dist 排除掉: excluded items before the verb, at the end of a clause.
fn excluded_before(text: &str) -> Option<ValueCandidate> {
    let verbs = ["排除掉", "排除", "忽略掉", "忽略", "跳过", "不要", "不看", "去掉", "除外"];
    let trimmed = text.trim_end_matches(['。', '！', '吧', ' ', '了']);
    let head = verbs.iter().find_map(|verb| trimmed.strip_suffix(verb))?.trim_end();
    let head = head.strip_suffix("都").or_else(|| head.strip_suffix("就")).unwrap_or(head).trim_end();
    let start = head
        .rfind(['，', ',', '。', '把'])
        .map_or(0, |at| at + head[at..].chars().next().map_or(1, char::len_utf8));
    let listed: Vec<&str> = series::members(head.get(start..)?.trim());
    let plain = |name: &&str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
    if start == 0 || listed.is_empty() || !listed.iter().all(plain) {
        return None;
    }
    let values = listed.into_iter().map(Json::from).collect();
    Some(ValueCandidate {
        value: ArgumentValue::FromRequest(Json::Array(values)),
        start,
        end: text.len(),
        score: GOOD + 0.6,
    })
}

fn member(item: &Parameter, context: &MatchContext<'_>, mention: &Mention) -> Option<Json> {
    match (&item.shape, &mention.value) {
        (ValueType::Integer | ValueType::Number, MentionValue::Number(number)) => {
            number_value::fitted(item, number)
        }
        (ValueType::Any, MentionValue::Number(number)) => number::json(number.value),
        (
            ValueType::Text | ValueType::Any,
            MentionValue::Literal(
                Literal::Quoted(text)
                | Literal::Mail(text)
                | Literal::Url(text)
                | Literal::Path(text)
                | Literal::Code(text),
            ),
        ) => Some(Json::from(text.clone())),
        (ValueType::Text | ValueType::Any, MentionValue::Name | MentionValue::Place) => {
            Some(Json::from(context.parsed.written(mention)))
        }
        _ => None,
    }
}
