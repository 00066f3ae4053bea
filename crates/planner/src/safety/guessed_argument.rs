//! Checks whether an argument of a step was found by its role, or only taken because no other value was left.

use std::collections::BTreeSet;

use crate::lexer::filler;
use crate::lexer::lexicon;
use crate::lexer::literal::Literal;
use crate::lexer::mention::MentionValue;
use crate::safety::proof::{Claim, texts_in};
use crate::selection::choice::Choice;
use crate::selection::verb_class::{Verb, classes_of, verbs};
use crate::values::candidate::{ArgumentValue, GOOD, ValueCandidate};
use crate::values::parameter::{Parameter, ValueType, name_words};
use crate::values::role::Role;

/// Minimum score of an argument that was found by its role.
const MIN_ROLE_SCORE: f32 = GOOD - 0.1;
/// Minimum score of a sheet name that is otherwise a filler word.
const MIN_FILLER_NAME_SCORE: f32 = GOOD + 1.0;
/// Score by which an optional parameter may fit better the value of a required one.
const OPTIONAL_TOLERANCE: f32 = 0.2;
/// Minimum distance in score to another value of the same request.
const MIN_SCORE_DISTANCE: f32 = 0.5;

/// Quotes around the items of a list.
const QUOTES: &str = "\"'“”‘’「」『』`《》";
/// Separators between two items of a list, without blanks and quotes.
const JOINTS: [&str; 16] = [
    "", ",", "，", "、", "and", ",and", "&", "和", "与", "及", "以及", "跟", "、和", "，和", "还有", ",以及",
];
/// Words after the last item of a list that indicate further items or exceptions.
const GOES_ON: [&str; 20] = [
    "etc",
    "and so on",
    "and others",
    "and the other",
    "and the rest",
    "and more",
    "or ",
    "and all",
    "and any",
    "except",
    "but ",
    "等",
    "之类",
    "以及其",
    "和其",
    "还有其",
    "或",
    "除",
    "及其",
    "and also",
];

/// Words that refer to unnamed items.
const NO_MEMBERS: [&str; 24] = [
    "other",
    "others",
    "rest",
    "all",
    "everything",
    "every",
    "each",
    "these",
    "those",
    "them",
    "more",
    "ones",
    "remaining",
    "both",
    "其他",
    "其它",
    "其余",
    "别的",
    "剩下",
    "所有",
    "全部",
    "这些",
    "那些",
    "每个",
];

impl Claim<'_> {
    /// `write Date, City into A1 and B1`: an enumeration as the only value of several calls may be one value for each.
    fn repeated_list(&self, choice: &Choice) -> Option<String> {
        const JOINTS: [&str; 6] = [",", "，", "、", " and ", "和", ";"];
        let mut slots = choice.parameters.iter().zip(&choice.assignment.slots);
        let (parameter, _) = slots.find(|(parameter, slot)| {
            let list = matches!(parameter.shape, ValueType::List(_));
            let value = slot.as_ref().map(|slot| &slot.value);
            list && matches!(value, Some(ArgumentValue::FromRequest(value))
                if texts_in(value).iter().any(|text| JOINTS.iter().any(|joint| text.contains(joint))))
        })?;
        (self.calls.len() > 1).then(|| parameter.name.clone())
    }

    /// The first argument that was not found by its role, or that has an equally good alternative.
    pub(crate) fn guessed(&self, choice: &Choice) -> Option<String> {
        let used = |other: &ValueCandidate| {
            self.calls.iter().any(|call| call.assignment.uses(other.start, other.end))
                || other.end <= other.start
        };
        let others = |index: usize| choice.assignment.others.get(index).into_iter().flatten();
        if let Some(same) = same_ends(choice) {
            return Some(same);
        }
        if let Some(torn) = self.split_range(choice).or_else(|| self.repeated_list(choice)) {
            return Some(torn);
        }
        if self.lacks_aggregation(choice) {
            let sum = choice
                .parameters
                .iter()
                .find(|parameter| parameter.has_word(&["agg", "aggregation", "aggregate"]));
            return sum.map(|parameter| parameter.name.clone());
        }
        let renaming = Verb { classes: BTreeSet::from(["retitle", "rename"]), words: Vec::new() };
        let renames = classes_of(choice).classes.contains("retitle")
            && !verbs(self.parsed, &renaming, &self.stated()).is_empty();
        for (index, parameter) in choice.parameters.iter().enumerate() {
            let Some(slot) = &choice.assignment.slots[index] else { continue };
            if slot.end <= slot.start {
                continue;
            }
            let stated = self.parsed.text.get(slot.start..slot.end).unwrap_or_default();
            let short = stated.chars().nth(1).is_none();
            let small = filler::always().contains(stated)
                && (short || parameter.role != Role::Sheet || slot.score < MIN_FILLER_NAME_SCORE);
            if slot.score < least(parameter)
                || small
                || self.is_split(parameter, slot)
                || self.lacks_capitalised_word(parameter, slot)
            {
                return Some(parameter.name.clone());
            }
            let is_close =
                |other: &ValueCandidate| !used(other) && other.score + MIN_SCORE_DISTANCE > slot.score;
            if parameter.shape == ValueType::Text && parameter.required && others(index).any(is_close) {
                return Some(parameter.name.clone());
            }
            // The same words fit another parameter without a value: the request is ambiguous.
            let fits = |other: &ValueCandidate| {
                other.start < slot.end
                    && slot.start < other.end
                    && other.score + MIN_SCORE_DISTANCE > slot.score
            };
            // A required parameter has precedence over an optional one, unless that one fits better.
            let before = |other: usize| {
                let other = &choice.parameters[other];
                parameter.required
                    && !other.required
                    && (parameter.role != Role::Sheet || self.is_location(slot.start))
            };
            // `called X` is a name, and not a format.
            let titled =
                parameter.has_word(&["name", "title"]) && (renames || self.is_called(slot.start, choice));
            let better =
                |other: &ValueCandidate| fits(other) && other.score > slot.score + OPTIONAL_TOLERANCE;
            let empty = |other: usize| other != index && choice.assignment.slots[other].is_none();
            let rivals = |other: usize| match before(other) {
                true => others(other).any(better),
                false => others(other).any(fits),
            };
            let named = |other: usize| !titled || choice.parameters[other].has_word(&["name", "title"]);
            if (0..choice.parameters.len()).any(|other| empty(other) && named(other) && rivals(other)) {
                return Some(parameter.name.clone());
            }
        }
        None
    }

    /// The parameter whose value is one end of a range while its counterpart has an end of another range: `source_start` of
    /// one range with `source_end` of another.
    fn split_range(&self, choice: &Choice) -> Option<String> {
        let value = |name: &str| {
            let index = choice.parameters.iter().position(|parameter| parameter.name == name)?;
            match &choice.assignment.slots[index].as_ref()?.value {
                ArgumentValue::FromRequest(value) => value.as_str().map(str::to_owned),
                ArgumentValue::Result => None,
            }
        };
        let ranges = self.parsed.mentions.iter().filter_map(|mention| match &mention.value {
            MentionValue::Literal(Literal::Cells(cells)) => cells.split_once(':'),
            _ => None,
        });
        let ranges: Vec<(&str, &str)> = ranges.collect();
        choice.parameters.iter().find_map(|parameter| {
            let other = parameter.name.replace("start", "end");
            if other == parameter.name {
                return None;
            }
            let (start, end) = (value(&parameter.name)?, value(&other)?);
            let torn = ranges.iter().any(|(first, last)| (*first == start) != (*last == end));
            torn.then(|| parameter.name.clone())
        })
    }

    /// `the sheet On Hold`: whether a capitalised function word before a name is part of it.
    fn lacks_capitalised_word(&self, parameter: &Parameter, slot: &ValueCandidate) -> bool {
        let before = self.parsed.text.get(..slot.start).unwrap_or_default();
        let word = before.trim_end().rsplit(' ').next().unwrap_or_default();
        let inside = before.trim_end().len() > word.len()
            && !before.trim_end()[..before.trim_end().len() - word.len()]
                .trim_end()
                .ends_with(['.', '!', '?', ':', ';']);
        let named =
            self.parsed.text.get(slot.start..).is_some_and(|name| name.starts_with(char::is_uppercase));
        matches!(parameter.role, Role::Sheet | Role::Name | Role::Folder)
            && inside
            && named
            && before.ends_with(' ')
            && word.starts_with(|c: char| c.is_ascii_uppercase())
            && crate::lexer::stop_words::is_stop(word)
            && word.len() > 1
    }

    /// Whether a list may have been split wrongly: at an `and` among commas, inside a number, or with words of another part
    /// of the request.
    fn is_split(&self, parameter: &Parameter, slot: &ValueCandidate) -> bool {
        let ArgumentValue::FromRequest(value @ serde_json::Value::Array(_)) = &slot.value else {
            return false;
        };
        let stated = self.parsed.text.get(slot.start..slot.end).unwrap_or_default();
        if !matches!(parameter.shape, ValueType::List(_)) || stated.starts_with(['[', '{', '(']) {
            return false;
        }
        let is_quoted = stated.contains(['"', '“', '「', '\'', '‘', '『']);
        let digits = stated.as_bytes().windows(5).any(|part| {
            part[0].is_ascii_digit() && part[1] == b',' && part[2..].iter().all(u8::is_ascii_digit)
        });
        let mixed =
            stated.find(" and ").is_some_and(|at| stated[at..].contains(',') && stated[..at].contains(','))
                || stated.find('和').is_some_and(|at| stated[at..].contains('、'));
        let prose_words = ["in", "on", "to", "of", "with", "then", "into", "from", "at", "sheet", "cell"];
        let foreign = |text: &String| {
            let quoted = self.parsed.text.match_indices(text.as_str()).any(|(at, _)| {
                self.parsed.text[..at].ends_with(['"', '“', '「', '\'', '‘', '『', '`', '《'])
            });
            !quoted && text.split(' ').any(|word| prose_words.contains(&word.to_lowercase().as_str()))
        };
        digits
            || mixed
            || !is_quoted && texts_in(value).iter().any(foreign)
            || self.is_scattered(parameter, value)
    }

    /// Whether the items of a list of texts are not adjacent in the request, or the series continues after the last one.
    fn is_scattered(&self, parameter: &Parameter, value: &serde_json::Value) -> bool {
        let ValueType::List(item) = &parameter.shape else { return false };
        let serde_json::Value::Array(members) = value else { return false };
        if item.shape != ValueType::Text || members.is_empty() {
            return false;
        }
        let text = self.parsed.text;
        let joint = |gap: &str| {
            let bare: String = gap.chars().filter(|c| !c.is_whitespace() && !QUOTES.contains(*c)).collect();
            JOINTS.contains(&bare.to_lowercase().as_str())
        };
        let mut end: Option<usize> = None;
        for member in members {
            let Some(member) = member.as_str().filter(|member| !member.is_empty()) else { return true };
            let from = end.unwrap_or(0);
            let Some(at) = text.get(from..).and_then(|rest| rest.find(member)).map(|at| from + at) else {
                return true;
            };
            let quoted = text[..at].ends_with(|c: char| QUOTES.contains(c));
            let lower = member.to_lowercase();
            let vague = |word: &&str| match word.is_ascii() {
                true => lower.split(|c: char| !c.is_alphanumeric()).any(|part| part == *word),
                false => lower.contains(*word),
            };
            // `all@example.com` is an address.
            if !quoted && !member.contains('@') && NO_MEMBERS.iter().any(vague) {
                return true;
            }
            if end.is_some_and(|end| !joint(text.get(end..at).unwrap_or_default())) {
                return true;
            }
            end = Some(at + member.len());
        }
        let rest = text.get(end.unwrap_or(0)..).unwrap_or_default();
        let rest = rest.trim_start_matches(|c: char| c.is_whitespace() || QUOTES.contains(c)).to_lowercase();
        GOES_ON.iter().any(|word| rest.starts_with(word))
    }

    /// Whether a request names an aggregation, but the call does not.
    fn lacks_aggregation(&self, choice: &Choice) -> bool {
        let unsaid = choice.parameters.iter().zip(&choice.assignment.slots).any(|(parameter, slot)| {
            parameter.has_word(&["agg", "aggregation", "aggregate"]) && slot.is_none()
        });
        let lower = self.parsed.text.to_lowercase();
        let words = [
            "sum", "total", "average", "mean", "count", "max", "min", "汇总", "求", "合计", "总", "平均",
            "计数", "统计",
        ];
        unsaid && words.iter().any(|word| lower.contains(word))
    }

    /// `… to H1 on sheet Calc`, 明细 表的 A1:C5 …: whether a sheet is the location of everything and not a destination.
    fn is_location(&self, start: usize) -> bool {
        let before = self.parsed.text.get(..start).unwrap_or_default().to_lowercase();
        let mut before = before.trim_end_matches(|c: char| c.is_whitespace() || "\"'“‘「(（".contains(c));
        for word in ["sheet", "worksheet", "tab", "the", "工作表"] {
            before = before.strip_suffix(word).unwrap_or(before).trim_end();
        }
        let file = self.parsed.mentions.iter().any(|mention| {
            matches!(mention.value, MentionValue::Literal(Literal::Path(_))) && mention.end == before.len()
        });
        let last = before.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        file || ["on", "in", "of"].contains(&last) || before.ends_with(['的', '里', '中', '在', ',', '，'])
    }

    /// Whether the word before a byte offset announces a name.
    fn is_called(&self, start: usize, choice: &Choice) -> bool {
        let before = self.parsed.text.get(..start).unwrap_or_default();
        let before =
            before.trim_end_matches(|c: char| c.is_whitespace() || "\"'“‘「".contains(c)).to_lowercase();
        // 日程“面试”, `event 'Review'`: the text directly after the noun for the created object is its name.
        let name = name_words(choice.tool.name().as_str()).join(" ");
        let rows = |text: &str| lexicon::word_matches(text, &crate::lexer::token::tokenize(text), &|_| false);
        let own: Vec<usize> =
            rows(&name).into_iter().flat_map(|word_match| word_match.meaning.things).collect();
        let object = rows(&before).last().is_some_and(|word_match| {
            word_match.end == before.len()
                && word_match.meaning.things.iter().any(|thing| own.contains(thing))
        });
        object
            || [
                "called",
                "named",
                "叫",
                "叫做",
                "名为",
                "命名为",
                "名字是",
                "名称为",
                "名称",
                "名字",
                "表格名",
                ", name",
            ]
            .iter()
            .any(|word| before.ends_with(word))
    }
}

/// The parameter for a destination or new name whose value equals the source or old name: one of them was misread.
fn same_ends(choice: &Choice) -> Option<String> {
    let filled = || choice.parameters.iter().zip(&choice.assignment.slots);
    let value = |slot: &Option<ValueCandidate>| slot.as_ref().map(|slot| slot.value.clone());
    filled().find_map(|(parameter, slot)| {
        let goal = matches!(parameter.role, Role::Sheet | Role::Path | Role::Name)
            && parameter.has_word(&["new", "target", "destination"])
            && parameter.required;
        let same = filled().any(|(other, from)| {
            other.name != parameter.name
                && other.role == parameter.role
                && from.is_some()
                && value(from) == value(slot)
        });
        (goal && same && slot.is_some()).then(|| parameter.name.clone())
    })
}

/// The minimum score of an argument.
fn least(parameter: &Parameter) -> f32 {
    match (&parameter.shape, parameter.role) {
        // The score of a list or an object depends on its items.
        (ValueType::List(_), _) => 1.5,
        (ValueType::Object(_), _) => 1.0,
        (ValueType::Integer | ValueType::Number, _) => 1.2,
        (_, Role::Name | Role::Id | Role::Revision | Role::Other) => 1.5,
        _ => MIN_ROLE_SCORE,
    }
}
