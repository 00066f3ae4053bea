//! `rows 4 to 6`, `columns B to D`, `第 4 到第 6 行`: the start and the count of a span of rows or columns.

use serde_json::Value as Json;

use crate::lexer::token::Token;
use crate::values::candidate::{ArgumentValue, MatchContext, ValueCandidate};
use crate::values::parameter::{Parameter, ValueType};

/// Score of a start or a count of a span.
const SPAN_SCORE: f32 = 4.0;
/// Score of a position that the request gives relative to another one.
const RELATIVE_POSITION_SCORE: f32 = 5.0;

pub(crate) fn candidates(parameter: &Parameter, context: &MatchContext<'_>) -> Vec<ValueCandidate> {
    let target = Target {
        column: parameter.has_word(&["col", "column"]),
        row: parameter.has_word(&["row", "line", "start", "offset"]),
        count: parameter.has_word(&["count", "limit", "num", "number"]),
    };
    if parameter.shape != ValueType::Integer || !(target.column || target.row || target.count) {
        return Vec::new();
    }
    let tokens = context.parsed.tokens.as_slice();
    let spans = (0..tokens.len()).filter_map(move |at| Span::at(Position { tokens, at }));
    spans.filter_map(|span| if target.count { span.count() } else { span.start(&target, context) }).collect()
}

/// What a parameter takes of a span, by the words of its name.
struct Target {
    column: bool,
    row: bool,
    count: bool,
}

/// A token and its neighbours.
#[derive(Clone, Copy)]
struct Position<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
}

impl<'a> Position<'a> {
    fn token(&self) -> &'a Token<'a> {
        &self.tokens[self.at]
    }

    /// The text of the token this many steps after this one; empty beyond the end.
    fn after(&self, step: usize) -> &'a str {
        self.tokens.get(self.at + step).map_or("", |token| token.text)
    }

    /// The text of the token this many steps before this one; empty beyond the start.
    fn before(&self, step: usize) -> &'a str {
        self.at.checked_sub(step).and_then(|at| self.tokens.get(at)).map_or("", |token| token.text)
    }

    /// Whether the nouns 行 or 列 follow.
    fn precedes_chinese_noun(&self) -> bool {
        matches!(self.after(1), "行" | "列")
    }
}

/// How the second ordinal of a span follows the first.
struct Joint {
    /// The steps from the first ordinal to the second.
    step: usize,
    /// Whether the words between them join them to a span.
    is_joined: bool,
}

impl Joint {
    fn after(position: Position<'_>, first: i64) -> Self {
        let is_next = |text: &str| ordinal(text) == Some(first + 1);
        let after = |step: usize| position.after(step);
        let skipped_mark = |step: usize| usize::from(after(step) == "第");
        // `columns E and F` are two adjacent columns.
        let beside = ["and", "和", "、"].contains(&after(1)) && is_next(after(2));
        let joined = beside || ["to", "through", "thru", "-", "–", "到", "至", "~"].contains(&after(1));
        // 第 5 行到第 15 行: the noun may be repeated.
        let chinese_noun_twice = position.precedes_chinese_noun()
            && (["到", "至"].contains(&after(2))
                || ["和", "与", "、"].contains(&after(2)) && is_next(after(3 + skipped_mark(3))));
        // `column C and column D`: the noun is repeated for each.
        let english_noun_twice = ["and", "&"].contains(&after(1))
            && ["column", "row"].iter().any(|word| after(2).eq_ignore_ascii_case(word))
            && is_next(after(3));
        let noun_twice = chinese_noun_twice || english_noun_twice;
        let skipped = skipped_mark(2) + if noun_twice { 1 + skipped_mark(3) } else { 0 };
        Self { step: 2 + skipped, is_joined: joined || noun_twice }
    }
}

/// Rows or columns that the request names by their ordinals.
struct Span<'a> {
    /// The token of the first ordinal.
    position: Position<'a>,
    first: i64,
    /// `None` for a single row or column.
    last: Option<i64>,
    /// The byte offset of its end.
    end: usize,
    is_column: bool,
    /// Whether the first ordinal is a letter, as of columns.
    is_letter: bool,
}

impl<'a> Span<'a> {
    /// The span that starts with the ordinal at this position, if the noun for rows or columns is beside it.
    fn at(position: Position<'a>) -> Option<Self> {
        let token = position.token();
        let first = ordinal(token.text)?;
        let Joint { step, is_joined } = Joint::after(position, first);
        let last = ordinal(position.after(step)).filter(|_| is_joined);
        let neighbours =
            [position.before(1), position.before(2), position.after(1), position.after(step + 1)];
        let named = |words: &[&str]| {
            neighbours.iter().any(|word| words.iter().any(|other| word.eq_ignore_ascii_case(other)))
        };
        let is_letter = token.text.starts_with(|c: char| c.is_ascii_alphabetic());
        let is_column = named(&["column", "columns", "列"]);
        let is_row = named(&["row", "rows", "line", "lines", "行"]);
        let fits = if is_letter { is_column && token.text.len() <= 2 } else { is_column || is_row };
        let end = if last.is_some() { position.tokens[position.at + step].end } else { token.end };
        fits.then_some(Self { position, first, last, end, is_column, is_letter })
    }

    /// The number of rows or columns. Its range is empty and after the start, so that start and count can be read from the same
    /// text.
    fn count(&self) -> Option<ValueCandidate> {
        let last = self.last.filter(|last| *last >= self.first)?;
        Some(ValueCandidate {
            value: ArgumentValue::FromRequest(Json::from(last - self.first + 1)),
            start: self.end,
            end: self.end,
            score: SPAN_SCORE,
        })
    }

    /// The first row or column, or the one after it if the request says to insert after it.
    fn start(&self, target: &Target, context: &MatchContext<'_>) -> Option<ValueCandidate> {
        let is_own =
            if self.is_column { target.column || (self.is_letter && !target.row) } else { !target.column };
        if !is_own {
            return None;
        }
        if self.last.is_none()
            && context.tool_words.iter().any(|word| word == "insert")
            && let Some((start, end)) = self.stated_as_predecessor(context.parsed.text)
        {
            let value = ArgumentValue::FromRequest(Json::from(self.first + 1));
            return Some(ValueCandidate { value, start, end, score: RELATIVE_POSITION_SCORE });
        }
        (self.last.is_some() || self.is_letter).then(|| ValueCandidate {
            value: ArgumentValue::FromRequest(Json::from(self.first)),
            start: self.position.token().start,
            end: self.end,
            score: SPAN_SCORE,
        })
    }

    /// `insert a row after row 5`, B 列后面插一列: the range of the text, if the position after the given one is meant.
    fn stated_as_predecessor(&self, text: &str) -> Option<(usize, usize)> {
        let Position { tokens, at } = self.position;
        let token = self.position.token();
        let step = [self.position.before(1), self.position.before(2)]
            .iter()
            .position(|word| ["after", "below", "beneath"].contains(&word.to_lowercase().as_str()));
        if let Some(step) = step {
            return Some((tokens[at - step - 1].start, token.end));
        }
        if !self.position.precedes_chinese_noun() {
            return None;
        }
        let after_words = ["后面", "之后", "后边", "右边", "右侧", "右面", "下面", "下方", "后", "下边"];
        let rest = tokens.get(at + 1).and_then(|noun| text.get(noun.end..)).unwrap_or_default().trim_start();
        let word = after_words.iter().find(|word| rest.starts_with(**word))?;
        Some((token.start, text.len() - rest.len() + word.len()))
    }
}

/// The position of a row from its number, or of a column from its letters.
fn ordinal(text: &str) -> Option<i64> {
    if text.len() <= 2 && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Some(text.bytes().fold(0, |sum, byte| sum * 26 + i64::from(byte - b'A') + 1));
    }
    text.parse().ok()
}
