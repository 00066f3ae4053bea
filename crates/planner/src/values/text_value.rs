//! Selects the text for a parameter by the parameter's role and the words around the text.

use serde_json::Value as Json;

use crate::lexer::labels::{self, Label, LabelSpan};
use crate::lexer::lexicon;
use crate::lexer::mention::{Mention, MentionValue};
use crate::spreadsheet::cell_value;
use crate::spreadsheet::format_value;
use crate::spreadsheet::sheet;
use crate::spreadsheet::sheet_name;
use crate::values::candidate::{ArgumentValue, FAIR, GOOD, MatchContext, POOR, ValueCandidate};
use crate::values::choice;
use crate::values::date_time_value;
use crate::values::file_value;
use crate::values::location_value;
use crate::values::mail_folder;
use crate::values::mention_value;
use crate::values::message_value;
use crate::values::parameter::Parameter;
use crate::values::phrase::{self, Phrase};
use crate::values::relative_time_value;
use crate::values::revision_value;
use crate::values::role::Role;
use crate::values::transfer_value;

/// Candidates for a parameter with an enumeration in its schema.
pub(crate) fn chosen(
    parameter: &Parameter,
    context: &MatchContext<'_>,
    spans: &[LabelSpan],
) -> Vec<ValueCandidate> {
    let found = choice::chosen(&parameter.choices, &parameter.description, context.parsed, &context.stems);
    // `Accept, decline or …`: if the tool's description contains several of the values, each of them identifies a choice.
    let named = choice::named_by(&parameter.choices, &context.tool_words) > 1;
    found
        .into_iter()
        .map(|chosen| {
            let (start, end) = (chosen.span.start, chosen.span.end);
            // A value that is also a word of the tool is weak evidence: `search` for a tool that searches.
            let stem = labels::stem(context.parsed.text.get(start..end).unwrap_or_default());
            let value = chosen.value.as_str().map(labels::stem).unwrap_or_default();
            // `sorted by size`: the word after `by` is a choice.
            let before = context.parsed.text.get(..start).unwrap_or_default().trim_end();
            let by = before.ends_with(" by") || before.ends_with('按');
            let own = context.tool_words.contains(&stem) && (!named || stem == value) && !by;
            let label = context.labelled(spans, start, end) * 0.5;
            let score = chosen.span.strength + label - if own { 2.2 } else { 0.0 };
            ValueCandidate { value: ArgumentValue::FromRequest(chosen.value), start, end, score }
        })
        .collect()
}

pub(crate) fn candidates(
    parameter: &Parameter,
    context: &MatchContext<'_>,
    spans: &[LabelSpan],
) -> Vec<ValueCandidate> {
    if let Some(found) = transfer_value::candidates(parameter, context) {
        return found;
    }
    let mut found = by_role(parameter, context, spans);
    found.extend(format_value::number_format(parameter, context, spans));
    found.extend(format_value::number_formats(parameter, context));
    found.extend(file_value::current_folder(parameter, context));
    if parameter.role == Role::Place
        && let Some((start, end)) = location_value::find_room(context.parsed.text)
    {
        let value = ArgumentValue::FromRequest(Json::from(&context.parsed.text[start..end]));
        found.push(ValueCandidate { value, start, end, score: GOOD + 1.0 });
    }
    let kinds = choice::kinds(&parameter.words);
    if !kinds.is_empty() {
        let plain = Parameter { choices: kinds, ..parameter.clone() };
        found.extend(chosen(&plain, context, spans));
    }
    for mention in &context.parsed.mentions {
        let Some((text, base)) = mention_value::text_and_score(parameter, context, mention) else { continue };
        let mut label = context.labelled(spans, mention.start, mention.end).max(within(spans, mention));
        if parameter.examples.iter().any(|example| example.eq_ignore_ascii_case(&text)) {
            label += 0.8;
        }
        // A city and its country have separate ranges, so that they can go to two parameters.
        let written = context.parsed.written(mention);
        let (start, end) = match written.find(text.as_str()).filter(|_| mention.value == MentionValue::Place)
        {
            Some(at) => (mention.start + at, mention.start + at + text.len()),
            None => (mention.start, mention.end),
        };
        let value = ArgumentValue::FromRequest(Json::from(text));
        found.push(ValueCandidate { value, start, end, score: base + label });
    }
    if is_free(parameter.role) {
        found.extend(examples(parameter, context));
        found.extend(assigned(parameter, context, spans));
        found.extend(labelled(parameter, context, spans));
        found.extend(message_value::candidates(parameter, context, spans));
        found.extend(chunks(parameter, context));
    }
    found
}

/// Whether arbitrary words can be the value of this role.
fn is_free(role: Role) -> bool {
    matches!(
        role,
        Role::Query
            | Role::Text
            | Role::Name
            | Role::Other
            | Role::Id
            | Role::Language
            | Role::Unit
            | Role::Place
            | Role::Currency
            | Role::Folder
    )
}

/// `Premier League`: the score of a name that contains a label of the parameter.
fn within(spans: &[LabelSpan], mention: &Mention) -> f32 {
    let named = matches!(mention.value, MentionValue::Name | MentionValue::Place);
    let inside = |span: &&LabelSpan| {
        named && span.strength >= 1.4 && mention.start < span.start && span.end <= mention.end
    };
    spans.iter().filter(inside).map(|span| span.strength * 0.8).fold(0.0, f32::max)
}

/// The topic of a search in the tool's own data. Web searches use a longer query.
fn topic<'a>(context: &MatchContext<'a>) -> Option<(usize, &'a str)> {
    let others = ["web", "internet", "tool", "conversation"];
    let other = context.tool_words.iter().any(|word| others.contains(&word.as_str()));
    (!other).then(|| crate::values::topic::topic(context.parsed)).flatten()
}

/// The values that the text states for the role of a parameter, apart from single mentions.
fn by_role(parameter: &Parameter, context: &MatchContext<'_>, spans: &[LabelSpan]) -> Vec<ValueCandidate> {
    let parsed = context.parsed;
    let stated = |value: &str, start: usize, end: usize, score: f32| ValueCandidate {
        value: ArgumentValue::FromRequest(Json::from(value)),
        start,
        end,
        score,
    };
    match parameter.role {
        Role::Expression => parsed
            .expressions
            .iter()
            .map(|found| stated(&found.text, found.start, found.end, GOOD + 0.5))
            .collect(),
        Role::Sheet => sheet::find(context)
            .into_iter()
            .map(|found| {
                let label = context.labelled(spans, found.start, found.end).min(1.5);
                stated(found.text, found.start, found.end, GOOD + 0.3 + label)
            })
            .collect(),
        // The old and the new name of a sheet.
        Role::Name
            if parameter.has_word(&["old", "new", "source", "target"])
                && context.tool_words.iter().any(|word| word == "worksheet" || word == "sheet") =>
        {
            let named = |found: Phrase<'_>| stated(found.text, found.start, found.end, GOOD + 0.1);
            sheet::find(context).into_iter().map(named).collect()
        }
        Role::Zone => location_value::unknown(context)
            .into_iter()
            .map(|(start, end)| stated(&parsed.text[start..end], start, end, GOOD))
            .collect(),
        Role::Cell => cell_value::corners(parameter, context),
        Role::Date | Role::Time | Role::DateTime => date_time_value::candidates(parameter, context, spans),
        // An empty range: the query does not block other arguments. Their text is removed from it later.
        Role::Query if topic(context).is_some() => {
            topic(context).map(|(start, text)| stated(text, start, start, GOOD + 0.3)).into_iter().collect()
        }
        Role::Query => phrase::remainder(parsed)
            .map(|rest| {
                let (start, text, score) = query(parameter, context, &rest);
                stated(text, start, start, score)
            })
            .into_iter()
            .collect(),
        Role::Shift => relative_time_value::relative_times(context, spans),
        Role::Until => date_time_value::until(context),
        Role::Pattern => {
            let mut found = file_value::patterns(context);
            found.extend(file_value::named(context));
            found.extend(file_value::ending(context));
            found
        }
        Role::Language => spoken(&choice::LANGUAGES, parameter, context, spans),
        Role::Currency => spoken(&choice::CURRENCIES, parameter, context, spans),
        Role::Folder => match file_value::is_mail(context) {
            true => mail_folder::candidates(context),
            false => file_value::folders(context),
        },
        Role::Revision => revision_value::candidates(parameter, context),
        Role::Place if !parameter.required => location_value::separate_location(context)
            .or_else(|| {
                location_value::capitals(context)
                    .filter(|_| !parameter.has_word(&["city", "country", "state"]))
            })
            .map(|(start, end)| stated(&parsed.text[start..end], start, end, GOOD + 0.2))
            .into_iter()
            .collect(),
        Role::Mail | Role::Name | Role::Other if parameter.has_word(&["from", "sender"]) => {
            location_value::sender(context)
                .map(|(start, end)| stated(&parsed.text[start..end], start, end, GOOD + 0.5))
                .into_iter()
                .collect()
        }
        _ => Vec::new(),
    }
}

/// The query of a search: its start, its text and its score. `rest` is the request without its opening and closing words.
fn query<'a>(parameter: &Parameter, context: &MatchContext<'_>, rest: &Phrase<'a>) -> (usize, &'a str, f32) {
    if let Some((start, text)) = phrase::searched(rest, &context.tool_words) {
        return (start, text, GOOD + 0.2);
    }
    let spoken = context.parsed.text[..rest.start].to_lowercase();
    let topic_words = ["about ", "mention", "discuss", "聊过", "说过", "提过", "谈过", "聊到", "提到"];
    let mentions_topic = !parameter.required && topic_words.iter().any(|word| spoken.contains(word));
    (rest.start, rest.text, if mentions_topic { GOOD + 0.2 } else { FAIR })
}

/// Languages and currencies by name: as codes if the parameter expects codes, otherwise as written.
fn spoken(
    codes: &[&'static str],
    parameter: &Parameter,
    context: &MatchContext<'_>,
    spans: &[LabelSpan],
) -> Vec<ValueCandidate> {
    let shows = |example: &String| {
        let letters = example.chars().all(|c| c.is_ascii_alphabetic());
        letters && (example.len() == codes[0].len()) && codes.contains(&example.to_lowercase().as_str())
    };
    let described = parameter.description.to_lowercase();
    let wants_code = parameter.examples.iter().any(shows)
        || described.contains("code")
        || described.contains("代码")
        || parameter.role == Role::Currency;
    let upper = parameter.role == Role::Currency;
    choice::find_codes(codes, context.parsed, &context.stems)
        .into_iter()
        .filter_map(|chosen| {
            let (start, end) = (chosen.span.start, chosen.span.end);
            let written = context.parsed.text.get(start..end)?;
            let code = chosen.value.as_str()?;
            let value = match (wants_code, upper) {
                (true, true) => code.to_uppercase(),
                (true, false) => code.to_owned(),
                (false, _) => written.to_owned(),
            };
            let score = GOOD + context.labelled(spans, start, end);
            Some(ValueCandidate { value: ArgumentValue::FromRequest(Json::from(value)), start, end, score })
        })
        .collect()
}

/// Example values of the parameter that occur in the request.
fn examples(parameter: &Parameter, context: &MatchContext<'_>) -> Vec<ValueCandidate> {
    let mut found = Vec::new();
    // Examples also match similar words, and the first part of a compound: `gas-powered`.
    for token in &context.parsed.tokens {
        let is_similar = |example: &&String| !example.contains(' ') && labels::alike(example, token.text);
        if let Some(example) = parameter.examples.iter().find(is_similar) {
            let value = ArgumentValue::FromRequest(Json::from(example.as_str()));
            found.push(ValueCandidate { value, start: token.start, end: token.end, score: GOOD - 0.2 });
        }
    }
    for token in context.parsed.tokens.iter().filter(|token| token.text.contains('-')) {
        let first = token.text.split('-').next().unwrap_or_default();
        if let Some(example) =
            parameter.examples.iter().find(|example| example.len() > 2 && example.eq_ignore_ascii_case(first))
        {
            let value = ArgumentValue::FromRequest(Json::from(example.as_str()));
            found.push(ValueCandidate {
                value,
                start: token.start,
                end: token.start + first.len(),
                score: GOOD,
            });
        }
    }
    for example in parameter.examples.iter().filter(|example| example.chars().count() > 2) {
        let label = Label::new(&example.replace(' ', "_"), 1.0);
        for span in labels::find(&[label], context.parsed, &context.stems) {
            let stated = context.parsed.text.get(span.start..span.end).unwrap_or_default();
            let own = context.tool_words.contains(&labels::stem(stated));
            let score = if own { POOR } else { GOOD };
            let value = ArgumentValue::FromRequest(Json::from(example.as_str()));
            found.push(ValueCandidate { value, start: span.start, end: span.end, score });
        }
    }
    found
}

/// `change the location of X to Y`, 把 X 的地点改成 Y: the new value of a labelled field.
fn assigned(parameter: &Parameter, context: &MatchContext<'_>, spans: &[LabelSpan]) -> Vec<ValueCandidate> {
    if !matches!(parameter.role, Role::Text | Role::Name | Role::Other | Role::Place) {
        return Vec::new();
    }
    let text = context.parsed.text;
    let mut found = Vec::new();
    for span in spans.iter().filter(|span| span.strength >= 1.9) {
        let rest = text.get(span.end..).unwrap_or_default();
        let lower = rest.to_ascii_lowercase();
        let joints = [" to ", "改成", "改为", "改到", "设为", "设成", "换成", "更新为"];
        let Some((at, joint)) =
            joints.iter().filter_map(|joint| lower.find(joint).map(|at| (at, joint))).min()
        else {
            continue;
        };
        let between = &rest[..at];
        let of = between.trim();
        let plain = of.is_empty() || of.starts_with("of ") || of.starts_with("for ");
        if !plain || between.contains([',', '，', '。', ';']) || between.split_whitespace().count() > 5 {
            continue;
        }
        let start = span.end + at + joint.len();
        let start = start + text[start..].len() - text[start..].trim_start().len();
        let (from, to) = match sheet_name::quoted_at(context.parsed, Some(start), None) {
            Some(inner) => inner,
            None => {
                let rest = &text[start..];
                let ends = [", ", "，", "。", "; ", "；", " and ", " then ", "\n"];
                let end = ends.iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
                (start, start + rest[..end].trim_end_matches(['.', '!', '?', ' ']).len())
            }
        };
        if let Some(value) = text.get(from..to).filter(|value| !value.is_empty()) {
            let value = ArgumentValue::FromRequest(Json::from(value));
            found.push(ValueCandidate { value, start: from, end: to, score: GOOD + 1.8 });
        }
    }
    found
}

/// The text after one of the parameter's labels.
fn labelled(parameter: &Parameter, context: &MatchContext<'_>, spans: &[LabelSpan]) -> Vec<ValueCandidate> {
    let free = matches!(parameter.role, Role::Text | Role::Name | Role::Other | Role::Place | Role::Id);
    let mut found = Vec::new();
    for span in spans.iter().filter(|span| span.strength >= 1.2 && free) {
        let Some(phrase) = phrase::after_label(*span, context.parsed) else { continue };
        let own = phrase.text.split_whitespace().all(|word| context.tool_words.contains(&labels::stem(word)));
        // An ID contains a digit or a capital letter.
        let is_malformed = parameter.role == Role::Id
            && !phrase.text.contains(|c: char| c.is_ascii_digit() || c.is_uppercase());
        if own || is_malformed || lexicon::is_kind(phrase.text) {
            continue;
        }
        let value = ArgumentValue::FromRequest(Json::from(phrase.text));
        // `title it X`, 标题写 X: a verb or a sign between label and value confirms the label.
        let between = context.parsed.text.get(span.end..phrase.start).unwrap_or_default().trim();
        let label = context.parsed.text.get(span.start..span.end).unwrap_or_default().to_lowercase();
        let naming = ["named", "called", "titled", "名为", "叫做", "命名为", "名字叫", "取名"];
        // `…, location Main St 4`, ，地点 三号会议室: a label at the start of a clause introduces its value.
        let before = context.parsed.text.get(..span.start).unwrap_or_default().trim_end();
        let fronted = between.is_empty() && before.ends_with([',', '，', ';', '；', '、', '-', '(']);
        let is_assigned = [":", "：", "=", "it", "写", "叫", "为", "是", "写上", "叫做", "设为", "在"]
            .contains(&between)
            || naming.contains(&label.as_str()) && between.is_empty()
            || fronted && span.strength > 2.0;
        let score = 0.3 + span.strength * 0.6 + if is_assigned && span.strength > 1.5 { 0.8 } else { 0.0 };
        // The labelled text of a place is longer than the mention of its name: `Main St 4`.
        let score = if is_assigned && parameter.role == Role::Place { score + GOOD } else { score };
        found.push(ValueCandidate { value, start: phrase.start, end: phrase.end, score });
    }
    found
}

/// The words of a run before the tool's own words at its end.
fn modifier<'a>(context: &MatchContext<'_>, run: &'a str) -> Option<&'a str> {
    let own = |word: &str| context.tool_words.contains(&labels::stem(word));
    let mut trimmed = run;
    while let Some((head, _)) = trimmed.rsplit_once(' ').filter(|(_, last)| own(last)) {
        trimmed = head.trim_end();
    }
    (trimmed.len() < run.len() && !trimmed.split(' ').any(own)).then_some(trimmed)
}

/// Runs of words that are not the tool's own; they score highest after a preposition.
fn chunks(parameter: &Parameter, context: &MatchContext<'_>) -> Vec<ValueCandidate> {
    if !parameter.required
        || matches!(parameter.role, Role::Folder | Role::Currency | Role::Language | Role::Id | Role::Query)
    {
        return Vec::new();
    }
    let topic =
        matches!(parameter.role, Role::Query) || parameter.has_word(&["topic", "subject", "about", "text"]);
    let mut found = Vec::new();
    for chunk in phrase::chunks(context.parsed) {
        let own = chunk
            .text
            .split_whitespace()
            .filter(|word| context.tool_words.contains(&labels::stem(word)))
            .count();
        let words = chunk.text.split_whitespace().count();
        // A fragment of a quoted text or a name is not a value.
        let torn = context.parsed.mentions.iter().any(|mention| {
            let inside = mention.start <= chunk.start && chunk.end <= mention.end;
            inside && chunk.end - chunk.start + 2 < mention.end - mention.start
        });
        if own == words || torn || lexicon::is_kind(chunk.text) {
            continue;
        }
        // `rock concerts`, `a single room`: the modifier of the tool's own noun gives its kind.
        let named = context.parsed.mentions.iter().any(|mention| {
            let whole = !matches!(mention.value, MentionValue::Literal(_) | MentionValue::Moment(_));
            whole && mention.start < chunk.end && chunk.start < mention.end
        });
        if own > 0
            && !named
            && let Some(kind) = modifier(context, chunk.text)
        {
            let named = parameter
                .has_word(&["type", "genre", "category", "kind", "style", "class", "cuisine", "topic"]);
            let value = ArgumentValue::FromRequest(Json::from(kind));
            let end = chunk.start + kind.len();
            found.push(ValueCandidate {
                value,
                start: chunk.start,
                end,
                score: if named { 1.15 } else { 0.92 },
            });
        }
        let mut score = if own == 0 { 0.75 } else { POOR };
        match chunk.after.as_deref() {
            Some("about" | "regarding" | "on") if topic => score += 0.6,
            Some("in" | "at" | "from" | "to" | "near") if parameter.role == Role::Place => score += 0.4,
            Some("of" | "for" | "about" | "on") if parameter.role != Role::Place => score += 0.35,
            Some(_) => score += 0.1,
            None => {}
        }
        let value = ArgumentValue::FromRequest(Json::from(chunk.text));
        found.push(ValueCandidate { value, start: chunk.start, end: chunk.end, score });
    }
    found
}
