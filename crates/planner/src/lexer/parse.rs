//! Analyses a text: finds its literals, dates, expressions, numbers and names.

use jiff::civil::Date;

use crate::arithmetic::expression::Expression;
use crate::arithmetic::recognize;
use crate::lexer::literal::Literal;
use crate::lexer::literal_scanner;
use crate::lexer::mention::{Mention, MentionValue, ParsedText};
use crate::lexer::name;
use crate::lexer::number;
use crate::lexer::series;
use crate::lexer::token::{Token, tokenize};
use crate::values::date;
use crate::values::date_time_join;
use crate::values::holiday;

impl<'a> ParsedText<'a> {
    /// Analyses a text. Relative dates are resolved against `today`.
    pub(crate) fn of(text: &'a str, today: Date) -> Self {
        let all = tokenize(text);
        let mut mentions: Vec<Mention> = literal_scanner::find(text)
            .into_iter()
            .map(|found| Mention {
                value: MentionValue::Literal(found.literal),
                start: found.start,
                end: found.end,
            })
            .collect();
        let in_literal: Vec<bool> = covered_tokens(&all, &mentions);
        let free = |at: usize| !in_literal.get(at).copied().unwrap_or(true);
        let mut dates = Vec::new();
        let mut at = 0;
        while at < all.len() {
            if let Some(after) = holiday::read(&all, at).filter(|after| (at..*after).all(free)) {
                let (start, end) = (all[at].start, all[after - 1].end);
                dates.push(Mention { value: MentionValue::Holiday, start, end });
                at = after;
                continue;
            }
            match date::read(&all, at, today).filter(|when| (at..when.after).all(free)) {
                Some(when) => {
                    let (start, end) = (all[at].start, all[when.after - 1].end);
                    dates.push(Mention { value: MentionValue::Moment(when.moment), start, end });
                    at = when.after;
                }
                None => at += 1,
            }
        }
        date_time_join::join(text, &mut dates);
        mentions.extend(dates);
        let is_taken = covered_tokens(&all, &mentions);
        let free = |at: usize| !is_taken.get(at).copied().unwrap_or(true);
        let expressions = recognize::find(text, &all, &free);
        // `how many hours are in 3 days`: a duration inside an expression is an operand, not a date.
        mentions.retain(|mention| {
            let inside = |found: &Expression| found.start < mention.start && mention.end <= found.end;
            !matches!(mention.value, MentionValue::Moment(_)) || !expressions.iter().any(inside)
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
                others.push(Mention { value: MentionValue::Number(found.number), start, end });
                at = found.after;
            } else if let Some(name) = name::read(text, &all, at, &free) {
                let (start, mut end) = (all[at].start, all[name.after - 1].end);
                // `Germany's capital` mentions Germany. Without a word after it, `Luigi's` is the whole name.
                let owns =
                    all.get(name.after).is_some_and(|next| next.kind == crate::lexer::token::TokenKind::Word);
                for owner in ["'s", "’s"] {
                    if owns && text[start..end].ends_with(owner) {
                        end -= owner.len();
                    }
                }
                let value = if name.is_place { MentionValue::Place } else { MentionValue::Name };
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
            !matches!(mention.value, MentionValue::Number(_)) || !text[..mention.start].ends_with('^')
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
        let literals = |find: fn(&MentionValue) -> bool| {
            self.mentions.iter().filter(|mention| find(&mention.value)).count()
        };
        let tables = literals(|value| matches!(value, MentionValue::Literal(Literal::Json(_))));
        let text = self.text;
        for mention in &mut self.mentions {
            let spelled = text
                .get(mention.start..mention.end)
                .is_some_and(|text| !text.starts_with(|c: char| c.is_ascii_digit()));
            if let MentionValue::Number(number) = &mut mention.value
                && spelled
                && number.value.fract() == 0.0
                && (lists.contains(&(number.value as usize)) || tables == number.value as usize)
            {
                number.may_be_article = true;
            }
        }
    }
}

fn covered_tokens(tokens: &[Token<'_>], mentions: &[Mention]) -> Vec<bool> {
    tokens
        .iter()
        .map(|token| mentions.iter().any(|mention| mention.start < token.end && token.start < mention.end))
        .collect()
}
