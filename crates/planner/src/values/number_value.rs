//! Selects the number for a parameter by its label, unit, range and counted noun.

use serde_json::Value as Json;

use crate::lexer::labels::LabelSpan;
use crate::lexer::literal::Literal;
use crate::lexer::mention::{Mention, MentionValue};
use crate::lexer::number::{Number, json};
use crate::values::candidate::{ArgumentValue, MatchContext, ValueCandidate};
use crate::values::parameter::{Parameter, ValueType};
use crate::values::span_value;

/// The score of a number without further evidence.
const BARE_NUMBER_SCORE: f32 = 0.95;
/// Added if the number has a unit that the parameter's name or description mentions.
const UNIT_BONUS: f32 = 1.5;
/// Units of countable things.
const COUNTABLE_UNITS: [&str; 9] =
    ["item", "row", "column", "line", "page", "time", "step", "person", "ticket"];
/// Words before the number of items to take from a sorted list: `top 3`, `the latest seven`, 前 12 条, 最多 5 封.
const LEADS: [&str; 16] = [
    "top", "first", "max", "last", "latest", "recent", "newest", "most", "next", "past", "maximum", "前",
    "近", "新", "多", "后",
];
/// Subtracted for evidence against a number.
const CONTRADICTION_PENALTY: f32 = 0.7;

pub(crate) fn candidates(
    parameter: &Parameter,
    context: &MatchContext<'_>,
    label_spans: &[LabelSpan],
) -> Vec<ValueCandidate> {
    let mut found = span_value::candidates(parameter, context);
    found.extend(crate::values::duration::candidate(parameter, context));
    for mention in &context.parsed.mentions {
        let number = match &mention.value {
            MentionValue::Number(number) => number,
            // A quoted number.
            MentionValue::Literal(Literal::Quoted(text)) if text.parse::<f64>().is_ok() => &Number {
                value: text.parse().unwrap_or_default(),
                percent: false,
                unit: None,
                may_be_article: false,
                ordinal: false,
            },
            // `#42`: an issue number or the like.
            MentionValue::Literal(Literal::Code(text)) if text.parse::<u32>().is_ok() => &Number {
                value: text.parse().unwrap_or_default(),
                percent: false,
                unit: None,
                may_be_article: false,
                ordinal: false,
            },
            _ => continue,
        };
        let Some(value) = fitted(parameter, number) else { continue };
        let label = context.labelled(label_spans, mention.start, mention.end);
        let mut score = BARE_NUMBER_SCORE + label + bonus(parameter, number);
        // `top 3`, 前 3 条: the number of leading items.
        let before = context.parsed.token_at(mention.start).checked_sub(1);
        let leads = before.and_then(|at| context.parsed.tokens.get(at));
        // 最新的 10 封: skips the particle 的.
        let leads = match leads.filter(|token| token.text == "的") {
            Some(_) => before.and_then(|at| at.checked_sub(1)).and_then(|at| context.parsed.tokens.get(at)),
            None => leads,
        };
        let counted = number.unit.is_none_or(|unit| COUNTABLE_UNITS.contains(&unit.name()));
        // `15 most recent`, `10 latest`: the sort order may follow the number.
        let next = context.parsed.tokens.get(context.parsed.token_at(mention.end));
        let follows =
            next.is_some_and(|token| token.is_any(&["most", "latest", "newest", "recent", "last", "first"]));
        if (follows || leads.is_some_and(|token| token.is_any(&LEADS))) && counts(parameter) && counted {
            score += UNIT_BONUS;
        }
        // `the first 5 lines`, 最后 20 行: selects between `head` and `tail`.
        let stated = |words: &[&str]| leads.is_some_and(|token| token.is_any(words));
        let (first, last) =
            (stated(&["first", "top", "前", "头"]), stated(&["last", "final", "后", "末", "尾"]));
        if parameter.has_word(&["head"]) && first || parameter.has_word(&["tail"]) && last {
            score += UNIT_BONUS * 1.5;
        } else if parameter.has_word(&["head", "tail"]) {
            score -= CONTRADICTION_PENALTY;
        }
        score += bounds(parameter, context, mention);
        found.push(ValueCandidate {
            value: ArgumentValue::FromRequest(value),
            start: mention.start,
            end: mention.end,
            score,
        });
    }
    found
}

/// `no more than 2000 characters`, `from character 5000`, 从第 5000 个字符: the score that the words before a number add for a
/// parameter that limits a result or gives its offset. The description must contain the unit.
fn bounds(parameter: &Parameter, context: &MatchContext<'_>, mention: &Mention) -> f32 {
    const UPPER_BOUND_WORDS: [&str; 14] = [
        "no more than",
        "at most",
        "up to",
        "max",
        "maximum",
        "maximum of",
        "only the first",
        "the first",
        "first",
        "limit to",
        "limited to",
        "最多",
        "不超过",
        "前",
    ];
    const LOWER_BOUND_WORDS: [&str; 12] = [
        "from",
        "starting at",
        "starting from",
        "start at",
        "beginning at",
        "at",
        "after",
        "offset",
        "从第",
        "从",
        "第",
        "onwards from",
    ];
    let text = context.parsed.text;
    let before = text.get(..mention.start).unwrap_or_default().trim_end().to_lowercase();
    let after = text.get(mention.end..).unwrap_or_default().trim_start().to_lowercase();
    let description = parameter.description.to_lowercase();
    let unit = [("character", "字符"), ("char", "字"), ("byte", "字节"), ("line", "行")].into_iter().find(
        |(english, chinese)| {
            let is_close =
                |text: &str| text.starts_with(english) || text.trim_start_matches('个').starts_with(chinese);
            is_close(&after) || before.ends_with(english)
        },
    );
    // `from character 5000`: the unit may precede the number.
    let Some((english, _)) = unit.filter(|(english, _)| description.contains(english)) else { return 0.0 };
    let before = before.strip_suffix(english).unwrap_or(&before).trim_end();
    let preceded_by = |words: &[&str]| words.iter().any(|word| before.ends_with(word));
    let is_upper_bound = parameter.has_word(&["max", "limit", "length", "count", "size"]);
    let from = parameter.has_word(&["start", "offset", "begin", "index", "from"]);
    match (is_upper_bound, from) {
        (true, false) if preceded_by(&UPPER_BOUND_WORDS) => UNIT_BONUS,
        (false, true) if preceded_by(&LOWER_BOUND_WORDS) => UNIT_BONUS,
        (true, false) if preceded_by(&LOWER_BOUND_WORDS) => -UNIT_BONUS,
        (false, true) if preceded_by(&UPPER_BOUND_WORDS) => -UNIT_BONUS,
        _ => 0.0,
    }
}

/// Converts the number to the parameter's type and unit; `None` if it does not fit.
pub(crate) fn fitted(parameter: &Parameter, number: &Number) -> Option<Json> {
    let mut value = number.value * time_factor(parameter, number);
    if number.percent
        && matches!(parameter.shape, ValueType::Number | ValueType::Any)
        && wants_share(parameter)
    {
        // 5 % becomes 0.05; rounding removes floating-point noise.
        value = (value * 1e10 / 100.0).round() / 1e10;
    }
    let is_whole = value.fract() == 0.0;
    let fits = parameter.minimum.is_none_or(|least| value >= least)
        && parameter.maximum.is_none_or(|is_upper_bound| value <= is_upper_bound)
        && (is_whole || parameter.shape != ValueType::Integer);
    fits.then(|| json(value)).flatten()
}

/// `an hour` for a parameter in minutes: the conversion factor of a duration.
fn time_factor(parameter: &Parameter, number: &Number) -> f64 {
    let seconds = |name: &str| match name {
        "second" => Some(1.0),
        "minute" => Some(60.0),
        "hour" => Some(3600.0),
        "day" => Some(86400.0),
        _ => None,
    };
    let stated = number.unit.and_then(|unit| seconds(unit.name()));
    let expected = parameter
        .words
        .last()
        .and_then(|word| crate::lexer::units::of(word))
        .and_then(|unit| seconds(unit.name()));
    stated.zip(expected).map_or(1.0, |(stated, expected)| stated / expected)
}

/// Whether a percentage is passed as a fraction of one.
fn wants_share(parameter: &Parameter) -> bool {
    let description = parameter.description.to_lowercase();
    let says_percent = parameter.has_word(&["percent", "percentage", "pct"])
        || description.contains("percent")
        || description.contains("百分")
        || (description.contains('%') && !description.contains("0."));
    !says_percent || description.contains("decimal") || description.contains("小数")
}

/// Whether a parameter is a count.
fn counts(parameter: &Parameter) -> bool {
    parameter.has_word(&["count", "limit", "num", "number", "max", "top", "total", "quantity", "n", "size"])
}

fn bonus(parameter: &Parameter, number: &Number) -> f32 {
    let mut bonus = 0.0;
    let rate = parameter.has_word(&[
        "rate",
        "percent",
        "percentage",
        "ratio",
        "probability",
        "discount",
        "tax",
        "interest",
        "share",
    ]);
    let money = parameter.has_word(&[
        "price",
        "cost",
        "amount",
        "budget",
        "salary",
        "income",
        "revenue",
        "investment",
        "principal",
        "value",
        "payment",
    ]);
    let is_money =
        number.unit.is_some_and(|unit| ["dollar", "euro", "yuan", "yen", "pound"].contains(&unit.name()));
    if number.percent {
        bonus += if rate { 1.2 } else { -CONTRADICTION_PENALTY };
    } else if rate && (number.value > 1.0 || is_money) {
        bonus -= CONTRADICTION_PENALTY * 0.5;
    }
    let counts = counts(parameter);
    let places = parameter
        .has_word(&["row", "rows", "column", "col", "page", "index", "line", "position", "offset", "start"]);
    // A duration in another unit is converted to the parameter's unit.
    let timed = parameter.words.last().and_then(|word| crate::lexer::units::of(word)).is_some();
    if let Some(unit) = number.unit {
        let converted = timed && time_factor(parameter, number) != 1.0;
        if converted || counts && !number.ordinal && COUNTABLE_UNITS.contains(&unit.name()) {
            bonus += UNIT_BONUS;
        } else if places && !counts && COUNTABLE_UNITS.contains(&unit.name()) {
            // `5 rows` is a count; `row 5` and 第 5 行 are positions.
            bonus += if number.ordinal { UNIT_BONUS * 0.5 } else { -CONTRADICTION_PENALTY * 2.0 };
        } else if parameter.units.contains(&unit) {
            bonus += UNIT_BONUS;
        } else if is_money && money {
            bonus += UNIT_BONUS * 0.7;
        } else if !parameter.units.is_empty() && !parameter.units.iter().any(|other| other.name() == "item") {
            bonus -= CONTRADICTION_PENALTY * 0.6;
        }
    }
    let is_year =
        number.value.fract() == 0.0 && (1500.0..2101.0).contains(&number.value) && number.unit.is_none();
    if parameter.has_word(&["year", "years"]) && is_year {
        bonus += 1.0;
    } else if parameter.words.last().is_some_and(|word| word == "year")
        && !(100.0..2200.0).contains(&number.value)
    {
        bonus -= CONTRADICTION_PENALTY;
    }
    let wants_ordinal =
        parameter.has_word(&["row", "column", "col", "page", "index", "line", "position", "nth", "offset"]);
    if number.ordinal {
        bonus += if wants_ordinal { 0.4 } else { -CONTRADICTION_PENALTY * 0.5 };
    }
    if number.may_be_article {
        bonus -= CONTRADICTION_PENALTY * 1.6;
    }
    bonus
}
