//! Measures how much of a request the steps of a plan use. Unused words are reported, as the plan may be wrong.

use serde_json::Value as Json;
use toolhub_core::lang::LocalizedText;
use toolhub_core::shell;

use crate::lexer::labels::{self, LabelSpan};
use crate::lexer::lexicon;
use crate::lexer::mention::{MentionValue, ParsedText};
use crate::lexer::stop_words::is_stop;
use crate::lexer::token::{Token, TokenKind};
use crate::safety::doubt::MAX_SHOWN_WORDS;
use crate::safety::proof;
use crate::selection::choice::Choice;
use crate::values::candidate::{ArgumentValue, ValueCandidate};
use crate::values::flag;
use crate::values::parameter::{Parameter, ValueType};
use crate::values::role::Role;

/// Weights of a word and of a Chinese character; a Chinese word has two characters on average.
const WORD_WEIGHT: f32 = 1.0;
const CHARACTER_WEIGHT: f32 = 0.5;
/// Unused words are reported only from this weight and this share of the request.
const MIN_REPORTED_WEIGHT: f32 = 2.0;
const MIN_REPORTED_SHARE: f32 = 0.4;
/// A label counts as used from this closeness to its value.
const MIN_LABEL_CLOSENESS: f32 = 0.8;

/// Words of politeness and of questions, which are never arguments.
const IGNORED_WORDS: &str = " please thanks thank hello hi hey ok okay kindly quickly quick now currently right exactly only whole entire \
new name named called much long many everything something anything content contents value values data number numbers one two \
full complete first second finally later again back says say put set add use using work out look take go going left rest remaining afterwards afterward same starting begin completely permanently immediately thru want wanna gonna pls plz \
current today day days date time it's what's that's there's i'm word words text line lines inside within so well ";
/// The same in Chinese, by characters.
const IGNORED_CHARACTERS: &str = "的了吗呢吧啊呀哦嘛我你您他她它们咱请帮下一个这那是有在把将给用和与及或就都也还再先后到从里中上面内为成做要想能可以\
麻烦谢多少几什么怎样么哪现时间今天看得着过去来让叫名字值数据内容结果所全整份张条次第些点儿该其之于以并且然接同另外最一二三四五六七八九十两百千万号日月年周星期\
不会需应当如果那么只新好行列表格单元件夹出入写读改加查找告诉知道起来掉成进开始往块边左右按对分马立刻彻底剩余移除删区域";

/// The effect of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SideEffect {
    /// No change.
    None,
    /// Something is changed or created.
    Changed,
    /// Something is deleted.
    Destroyed,
}

/// A part of a request, and the step made from it.
pub(crate) struct PlannedPart<'a> {
    pub(crate) start: usize,
    pub(crate) choice: &'a Choice,
}

/// The words of a request that no step uses.
pub(crate) struct Unused {
    /// The words as written in the request.
    words: Vec<String>,
    /// Files, cells and quoted texts.
    literals: Vec<String>,
    /// The weight of the unused words, and of all words.
    lost: f32,
    all: f32,
}

impl Unused {
    /// The message about unused words, if there are many.
    pub(crate) fn doubt(&self) -> Option<LocalizedText> {
        let quoted = quoted(if self.is_much() { &self.words } else { &self.literals })?;
        Some(LocalizedText::new(
            format!("this may not be what was meant: {} of the request was not used", quoted.0),
            format!("这可能不是你的意思：请求中的 {} 没有用到", quoted.1),
        ))
    }

    /// The weight of the unused words.
    pub(crate) fn lost_weight(&self) -> f32 {
        self.lost
    }

    fn is_much(&self) -> bool {
        self.lost >= MIN_REPORTED_WEIGHT && self.lost >= self.all * MIN_REPORTED_SHARE
    }

    /// The reason not to run a step with this effect: it cannot be undone, and part of the request is unused. For a deletion,
    /// one unused word is enough.
    pub(crate) fn objection(&self, tool: &str, side_effect: SideEffect) -> Option<LocalizedText> {
        let too_much = match side_effect {
            SideEffect::None => false,
            SideEffect::Changed => self.is_much(),
            SideEffect::Destroyed => self.lost >= WORD_WEIGHT,
        };
        let quoted = quoted(if too_much { &self.words } else { &[] })?;
        let shown = shell::shell_quote(tool);
        Some(LocalizedText::new(
            format!(
                "nothing was run: `{tool}` changes something, and {} of the request was not understood; say it in other words, or use `toolhub call {shown}`",
                quoted.0
            ),
            format!(
                "没有执行：`{tool}` 会改动数据，但无法理解请求中的 {}；请换个说法，或使用 `toolhub call {shown}`",
                quoted.1
            ),
        ))
    }
}

/// The words for a message in English and in Chinese; `None` if there are none.
fn quoted(words: &[String]) -> Option<(String, String)> {
    let words: Vec<String> = words.iter().take(MAX_SHOWN_WORDS).map(|word| format!("`{word}`")).collect();
    (!words.is_empty()).then(|| (words.join(", "), words.join("、")))
}

/// A byte range of the request.
type ByteRange = (usize, usize);

/// Determines the words that the steps do not use.
pub(crate) fn unused(text: &str, parts: &[PlannedPart<'_>], parsed: &ParsedText<'_>) -> Unused {
    let used = used_ranges(text, parts, parsed);
    let own: Vec<String> = parts.iter().flat_map(|part| words_of(part.choice)).collect();
    let (mut all, mut lost) = (0.0, 0.0);
    let mut unused: Vec<ByteRange> = Vec::new();
    for token in parsed.tokens.iter().filter(|token| token.kind != TokenKind::Mark) {
        let weight = if token.kind == TokenKind::Han { CHARACTER_WEIGHT } else { WORD_WEIGHT };
        if covers(&used, token.start, token.end) {
            all += weight;
            continue;
        }
        if is_function_word(token) || own.contains(&labels::stem(token.text)) {
            continue;
        }
        all += weight;
        lost += weight;
        match unused
            .last_mut()
            .filter(|(_, end)| text.get(*end..token.start).is_some_and(|gap| gap.trim().is_empty()))
        {
            Some(last) => last.1 = token.end,
            None => unused.push((token.start, token.end)),
        }
    }
    // Unused files, cells and quoted texts are reported even if few.
    let literals: Vec<ByteRange> = parsed
        .mentions
        .iter()
        .filter(|mention| {
            matches!(mention.value, MentionValue::Literal(_)) && !covers(&used, mention.start, mention.end)
        })
        .map(|mention| (mention.start, mention.end))
        .collect();
    let texts = |places: &[ByteRange]| -> Vec<String> {
        places.iter().filter_map(|(start, end)| text.get(*start..*end)).map(str::to_owned).collect()
    };
    Unused { words: texts(&unused), literals: texts(&literals), lost, all }
}

/// The ranges that the steps use: values with their labels, expressions, words of the tables, and words without meaning.
fn used_ranges(text: &str, parts: &[PlannedPart<'_>], parsed: &ParsedText<'_>) -> Vec<ByteRange> {
    let mut used: Vec<ByteRange> = Vec::new();
    let stems = labels::stems(parsed);
    for part in parts {
        let slots = part.choice.parameters.iter().zip(&part.choice.assignment.slots);
        for (parameter, slot) in slots.filter_map(|(parameter, slot)| Some((parameter, slot.as_ref()?))) {
            used.extend(value_ranges(text, part, parameter, slot));
            used.extend(label_ranges(part, parameter, slot, parsed, &stems));
        }
    }
    let expressions = parsed.expressions.iter().map(|one| (one.start, one.end));
    let evaluated: Vec<ByteRange> = expressions.filter(|(start, end)| covers(&used, *start, *end)).collect();
    used.extend(evaluated);
    let word_matches = lexicon::word_matches(text, &parsed.tokens, &|_| false);
    used.extend(word_matches.iter().map(|word_match| (word_match.start, word_match.end)));
    used.extend(fillers(text, parsed));
    used
}

/// The ranges of the text that a value was taken from, or that repeat it.
fn value_ranges(
    text: &str,
    part: &PlannedPart<'_>,
    parameter: &Parameter,
    slot: &ValueCandidate,
) -> Vec<ByteRange> {
    let mut used = Vec::new();
    if slot.end > slot.start {
        used.push((part.start + slot.start, part.start + slot.end));
    }
    let ArgumentValue::FromRequest(value) = &slot.value else { return used };
    match value {
        // `rename A to Summary, then insert 2 rows on Summary`: a value may be mentioned again.
        Json::String(stated) if stated.chars().count() > 2 => {
            used.extend(text.match_indices(stated.as_str()).map(|(at, matched)| (at, at + matched.len())));
        }
        // The items of a list or object may be outside its range.
        Json::Array(_) | Json::Object(_) => {
            let texts = proof::texts_in(value).into_iter().filter(|text| text.chars().count() > 1);
            // A name that two parts of the request mention is used in both.
            used.extend(texts.filter_map(|matched| {
                let own = text.get(part.start..).and_then(|rest| rest.find(&matched));
                let at = own.map(|at| part.start + at).or_else(|| text.find(&matched))?;
                Some((at, at + matched.len()))
            }));
        }
        _ => {}
    }
    // A search query may cover the rest of the request.
    if parameter.role == Role::Query
        && let Some(query) = value.as_str()
        && let Some(at) = text.find(query)
    {
        used.push((at, at + query.len()));
    }
    used
}

/// ，主题“会议”: the ranges of a parameter's labels, which are used with its value.
fn label_ranges(
    part: &PlannedPart<'_>,
    parameter: &Parameter,
    slot: &ValueCandidate,
    parsed: &ParsedText<'_>,
    stems: &[String],
) -> Vec<ByteRange> {
    let (start, end) = (part.start + slot.start, part.start + slot.end);
    let beside = |span: &LabelSpan| {
        slot.end > slot.start && labels::closeness(*span, parsed, start, end) > MIN_LABEL_CLOSENESS
    };
    let mut spans: Vec<LabelSpan> =
        labels::find(&parameter.labels, parsed, stems).into_iter().filter(beside).collect();
    if parameter.shape == ValueType::Boolean {
        spans.extend(flag::find(parameter, parsed, stems));
    }
    spans.into_iter().map(|span| (span.start, span.end)).collect()
}

/// Chinese words of several characters without meaning: 这封, 直接.
fn fillers(text: &str, parsed: &ParsedText<'_>) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (at, token) in parsed.tokens.iter().enumerate().filter(|(_, token)| token.kind == TokenKind::Han) {
        let ends = parsed.tokens[at..].iter().take(4).take_while(|other| other.kind == TokenKind::Han);
        let ends: Vec<usize> = ends.skip(1).map(|other| other.end).collect();
        let known = |end: &&usize| {
            text.get(token.start..**end).is_some_and(|word| crate::lexer::filler::always().contains(word))
        };
        if let Some(end) = ends.iter().rev().find(known) {
            found.push((token.start, *end));
        }
    }
    found
}

/// Whether a word is never an argument.
pub(crate) fn is_function_word(token: &Token<'_>) -> bool {
    match token.kind {
        TokenKind::Han => IGNORED_CHARACTERS.contains(token.text),
        _ => is_stop(token.text) || IGNORED_WORDS.contains(&format!(" {} ", token.text.to_lowercase())),
    }
}

fn covers(used: &[(usize, usize)], start: usize, end: usize) -> bool {
    used.iter().any(|(from, to)| *from < end && start < *to)
}

/// The stems of the tool's name, description and parameter names.
pub(crate) fn words_of(choice: &Choice) -> Vec<String> {
    let described = choice.tool.definition.description();
    let mut words = crate::values::parameter::name_words(choice.tool.name().as_str());
    words.push(choice.tool.name().as_str().to_owned());
    words.extend(described.split(|c: char| !c.is_alphanumeric()).map(str::to_owned));
    words.extend(choice.parameters.iter().flat_map(|parameter| parameter.words.iter().cloned()));
    words.iter().filter(|word| word.len() > 2).map(|word| labels::stem(word)).collect()
}
