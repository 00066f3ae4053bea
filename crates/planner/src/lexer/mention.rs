//! Everything in a request that can be an argument, with byte offsets.

use jiff::civil::Date;

use crate::arithmetic::expression::Expression;
use crate::lexer::literal::Literal;
use crate::lexer::number::Number;
use crate::lexer::token::Token;
use crate::values::date::Moment;

/// The kind of a mention.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MentionValue {
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
    pub(crate) value: MentionValue,
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
    /// The source text of a mention.
    pub(crate) fn written(&self, mention: &Mention) -> &'a str {
        self.text.get(mention.start..mention.end).unwrap_or_default()
    }

    /// The index of the first token that ends after a byte offset.
    pub(crate) fn token_at(&self, byte: usize) -> usize {
        self.tokens.partition_point(|token| token.end <= byte)
    }
}
