//! Everything in a request that can be an argument, with byte offsets.

use jiff::civil::Date;

use crate::arithmetic::expression::{self, Expression};
use crate::lexer::literal::{self, Literal};
use crate::lexer::name;
use crate::lexer::number::{self, Number};
use crate::lexer::series;
use crate::lexer::token::{Token, tokens};
use crate::values::date::{self, Moment};
use crate::values::date_time_join;
use crate::values::holiday;

/// The kind of a mention.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Literal(Literal),
    Number(Number),
    Moment(Moment),
    Name,
    Place,
    /// A day with a name: `Christmas`.
    Holiday,
}

/// A part of a request that can be an argument.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mention {
    pub(crate) value: Value,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// An analysed text: its tokens, mentions and expressions.
#[derive(Debug, Clone)]
pub(crate) struct ParsedText<'a> {
    pub(crate) text: &'a str,
    pub(crate) tokens: Vec<Token<'a>>,
    /// Sorted by position and without overlaps.
    pub(crate) mentions: Vec<Mention>,
    /// Expressions over the same text. Their numbers are also in `mentions`.
    pub(crate) expressions: Vec<Expression>,
    /// The date to which `tomorrow` is relative.
    pub(crate) today: Date,
}

impl<'a> ParsedText<'a> {
    /// Analyses a text. Relative dates are resolved against `today`.
    pub(crate) fn of(text: &'a str, today: Date) -> Self {
        let all = tokens(text);
        let mut mentions: Vec<Mention> = literal::find(text)
            .into_iter()
            .map(|found| Mention { value: Value::Literal(found.literal), start: found.start, end: found.end })
            .collect();
        let in_literal: Vec<bool> = covered_tokens(&all, &mentions);
        let free = |at: usize| !in_literal.get(at).copied().unwrap_or(true);
        let mut dates = Vec::new();
        let mut at = 0;
        while at < all.len() {
            if let Some(after) = holiday::read(&all, at).filter(|after| (at..*after).all(free)) {
                let (start, end) = (all[at].start, all[after - 1].end);
                dates.push(Mention { value: Value::Holiday, start, end });
                at = after;
                continue;
            }
            match date::read(&all, at, today).filter(|when| (at..when.after).all(free)) {
                Some(when) => {
                    let (start, end) = (all[at].start, all[when.after - 1].end);
                    dates.push(Mention { value: Value::Moment(when.moment), start, end });
                    at = when.after;
                }
                None => at += 1,
            }
        }
        date_time_join::join(text, &mut dates);
        mentions.extend(dates);
        let is_taken = covered_tokens(&all, &mentions);
        let free = |at: usize| !is_taken.get(at).copied().unwrap_or(true);
        let expressions = expression::find(text, &all, &free);
        // `how many hours are in 3 days`: a duration inside an expression is an operand, not a date.
        mentions.retain(|mention| {
            let inside = |found: &Expression| found.start < mention.start && mention.end <= found.end;
            !matches!(mention.value, Value::Moment(_)) || !expressions.iter().any(inside)
        });
        let is_taken = covered_tokens(&all, &mentions);
        let free = |at: usize| !is_taken.get(at).copied().unwrap_or(true);
        let mut at = 0;
        let mut others: Vec<Mention> = Vec::new();
        while at < all.len() {
            if !free(at) {
                at += 1;
                continue;
            }
            if let Some(found) = number::read(text, &all, at).filter(|found| (at..found.after).all(free)) {
                let (start, end) = (all[found.first].start, all[found.after - 1].end);
                others.push(Mention { value: Value::Number(found.number), start, end });
                at = found.after;
            } else if let Some(name) = name::read(text, &all, at, &free) {
                let (start, mut end) = (all[at].start, all[name.after - 1].end);
                // `Germany's capital` mentions Germany. Without a word after it, `Luigi's` is the whole name.
                let owns =
                    all.get(name.after).is_some_and(|next| next.kind == crate::lexer::token::Kind::Word);
                for owner in ["'s", "’s"] {
                    if owns && text[start..end].ends_with(owner) {
                        end -= owner.len();
                    }
                }
                let value = if name.is_place { Value::Place } else { Value::Name };
                others.push(Mention { value, start, end });
                at = name.after;
            } else {
                at += 1;
            }
        }
        mentions.extend(others);
        mentions.sort_by_key(|mention| (mention.start, mention.end));
        mentions.dedup_by(|later, first| later.start < first.end);
        // The exponent in `m/s^2` is part of the unit.
        mentions.retain(|mention| {
            !matches!(mention.value, Value::Number(_)) || !text[..mention.start].ends_with('^')
        });
        let mut parsed = Self { text, tokens: all, mentions, expressions, today };
        parsed.weaken();
        parsed
    }

    /// `two numbers: 4 and 5`: drops a number that only gives the length of a list that follows.
    fn weaken(&mut self) {
        let lists: Vec<usize> = (0..self.mentions.len())
            .map(|at| series::range_around(self, at))
            .filter(|range| range.len() > 1)
            .map(|range| range.len())
            .collect();
        let literals =
            |find: fn(&Value) -> bool| self.mentions.iter().filter(|mention| find(&mention.value)).count();
        let tables = literals(|value| matches!(value, Value::Literal(Literal::Json(_))));
        let text = self.text;
        for mention in &mut self.mentions {
            let spelled = text
                .get(mention.start..mention.end)
                .is_some_and(|text| !text.starts_with(|c: char| c.is_ascii_digit()));
            if let Value::Number(number) = &mut mention.value
                && spelled
                && number.value.fract() == 0.0
                && (lists.contains(&(number.value as usize)) || tables == number.value as usize)
            {
                number.may_be_article = true;
            }
        }
    }

    /// The source text of a mention.
    pub(crate) fn written(&self, mention: &Mention) -> &'a str {
        self.text.get(mention.start..mention.end).unwrap_or_default()
    }

    /// The index of the first token that ends after a byte offset.
    pub(crate) fn token_at(&self, byte: usize) -> usize {
        self.tokens.partition_point(|token| token.end <= byte)
    }
}

fn covered_tokens(tokens: &[Token<'_>], mentions: &[Mention]) -> Vec<bool> {
    tokens
        .iter()
        .map(|token| mentions.iter().any(|mention| mention.start < token.end && token.start < mention.end))
        .collect()
}
