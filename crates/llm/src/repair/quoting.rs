//! Quotes: their kinds, what closes each, and whether a quote ends its string or is part of it.

use super::{Reader, ValueContext, plain};
use crate::repair::SourceText;

/// A kind of quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quote {
    Double,
    Single,
    Backtick,
    /// “ … ”
    CurlyDouble,
    /// ‘ … ’
    CurlySingle,
    /// 「 … 」
    Corner,
    /// Python's `"""`.
    LongDouble,
    /// Python's `'''`.
    LongSingle,
    /// `<|"|>`, the quote of Gemma 4.
    Gemma,
    /// `<escape>`, the quote of FunctionGemma.
    Escape,
}

/// The quote at `at`, and the start of its content.
pub(super) fn quote_at(source: &SourceText<'_>, at: usize) -> Option<(Quote, usize)> {
    let first = source.char_at(at)?;
    let after = at + first.len_utf8();
    Some(match first {
        // `"""` begins a long string in Python; if it is not closed, it is an empty string and a quote.
        '"' if source.starts_with(at, "\"\"\"") && source.find(at + 3, "\"\"\"").is_some() => {
            (Quote::LongDouble, at + 3)
        }
        '\'' if source.starts_with(at, "'''") && source.find(at + 3, "'''").is_some() => {
            (Quote::LongSingle, at + 3)
        }
        '"' => (Quote::Double, after),
        '\'' => (Quote::Single, after),
        '＂' | '“' | '”' => (Quote::CurlyDouble, after),
        '＇' | '‘' | '’' => (Quote::CurlySingle, after),
        '`' => (Quote::Backtick, after),
        '「' => (Quote::Corner, after),
        '<' if source.starts_with(at, "<|\"|>") => (Quote::Gemma, at + 5),
        '<' if source.starts_with(at, "<escape>") => (Quote::Escape, at + 8),
        // Python's string prefixes.
        'r' | 'b' | 'f' | 'u' if matches!(source.char_at(after), Some('"' | '\'')) => {
            let (quote, begin) = quote_at(source, after)?;
            (quote, begin)
        }
        _ => return None,
    })
}

impl Quote {
    /// The length of the closing quote at `at`; 0 if there is none.
    pub(super) fn length_at(self, source: &SourceText<'_>, at: usize) -> usize {
        let fixed = |text: &str| if source.starts_with(at, text) { text.len() } else { 0 };
        match self {
            Self::LongDouble => fixed("\"\"\""),
            Self::LongSingle => fixed("'''"),
            Self::Gemma => fixed("<|\"|>"),
            Self::Escape => fixed("<escape>"),
            _ => match source.char_at(at) {
                Some(character) if self.ends_with(character) => character.len_utf8(),
                _ => 0,
            },
        }
    }

    fn ends_with(self, character: char) -> bool {
        match self {
            Self::Double => character == '"',
            Self::Single => character == '\'',
            Self::Backtick => character == '`',
            Self::CurlyDouble => matches!(character, '”' | '“' | '＂' | '"'),
            Self::CurlySingle => matches!(character, '’' | '＇' | '\''),
            Self::Corner => character == '」',
            Self::LongDouble | Self::LongSingle | Self::Gemma | Self::Escape => false,
        }
    }

    /// Whether the quote is unambiguous, so that it cannot be part of the string.
    pub(super) fn is_long(self) -> bool {
        matches!(self, Self::LongDouble | Self::LongSingle | Self::Gemma | Self::Escape)
    }
}

/// Maximum length of a key, in characters.
const MAX_KEY_BYTES: usize = 96;

impl Reader<'_, '_> {
    /// Whether a quote that ends at `after` closes its string, judged by the text after it.
    pub(super) fn closes(&mut self, after: usize, position: ValueContext) -> Option<bool> {
        if position == ValueContext::Key {
            return Some(true);
        }
        let next = self.source.skip_space(after);
        self.spend_steps(next - after + 1)?;
        let Some(character) = self.source.char_at(next) else { return Some(true) };
        let behind = next + character.len_utf8();
        Some(
            match (position, plain(character)) {
                (_, ',') => {
                    let then = self.source.skip_space(behind);
                    self.spend_steps(then - behind)?;
                    match position {
                        ValueContext::Member => self.member_follows(then)?,
                        ValueContext::Item => self.item_follows(then),
                        ValueContext::Argument | ValueContext::Key => self.argument_follows(then)?,
                    }
                }
                (ValueContext::Member, '}') => true,
                (ValueContext::Item, ']') => true,
                (ValueContext::Member | ValueContext::Item, close @ ('}' | ']' | ')')) => {
                    self.open.contains(&close)
                }
                (ValueContext::Argument, ')') => {
                    self.source.char_at(behind).is_none_or(|then| !then.is_alphanumeric())
                }
                (ValueContext::Argument, '+' | '.' | '%' | '*') => false,
                // A missing comma between two members: the next one is quoted or on a new line.
                (ValueContext::Member, '"' | '\'' | '“') => self.member_follows(next)?,
                (ValueContext::Member, _) => {
                    self.source.slice(after, next).contains('\n') && self.member_follows(next)?
                }
                (ValueContext::Item, '"' | '\'' | '“') => next > after,
                (ValueContext::Argument, '"' | '\'') => next > after,
                _ => false,
            } || (next > after
                && (self.source.starts_with(next, "//") || self.source.starts_with(next, "/*"))),
        )
    }

    /// Whether a member of an object, or the end of the object, is at `at`.
    fn member_follows(&mut self, at: usize) -> Option<bool> {
        let Some(first) = self.source.char_at(at) else { return Some(true) };
        if matches!(plain(first), '}' | ',' | '/' | '#' | '.') {
            return Some(true);
        }
        let quoted = matches!(first, '"' | '\'' | '“' | '”' | '‘' | '＂' | '`');
        let mut position = if quoted { at + first.len_utf8() } else { at };
        let mut count = 0_usize;
        let mut closed = !quoted;
        while let Some(character) = self.source.char_at(position) {
            count += 1;
            let colon = plain(character) == ':';
            if count > MAX_KEY_BYTES || matches!(character, '\n' | '{' | '}' | '[') {
                break;
            }
            if colon && closed && position > at {
                self.spend_steps(count)?;
                // A key with a colon begins the next member.
                return Some(true);
            }
            let ends = match (quoted, closed) {
                (true, false) => false,
                (true, true) => !character.is_whitespace(),
                (false, _) => !(character.is_alphanumeric() || matches!(character, '_' | '-' | '$' | '\\')),
            };
            if ends {
                break;
            }
            closed |= matches!(character, '"' | '\'' | '”' | '“' | '’' | '＂' | '`');
            position += character.len_utf8();
        }
        self.spend_steps(count)?;
        // At the end of the text a key may have begun.
        Some(position >= self.source.len() && quoted)
    }

    /// Whether an item of a list, or the end of the list, is at `at`.
    fn item_follows(&self, at: usize) -> bool {
        let Some(first) = self.source.char_at(at) else { return true };
        match plain(first) {
            '"' | '\'' | '“' | '”' | '‘' | '`' | '{' | '[' | '(' | ']' | ')' | '-' | '/' | '#' | '.' => {
                true
            }
            '<' => self.source.starts_with(at, "<|\"|>") || self.source.starts_with(at, "<escape>"),
            digit if digit.is_ascii_digit() => true,
            _ => ["true", "false", "null", "none"].iter().any(|word| self.source.starts_with(at, word)),
        }
    }

    /// Whether another argument, or the end of the arguments, is at `at`.
    fn argument_follows(&mut self, at: usize) -> Option<bool> {
        let mut position = at;
        let mut count = 0_usize;
        while let Some(character) = self.source.char_at(position) {
            count += 1;
            if !(character.is_alphanumeric() || matches!(character, '_' | '\\')) || count > MAX_KEY_BYTES {
                break;
            }
            position += character.len_utf8();
        }
        self.spend_steps(count)?;
        let then = self.source.skip_space(position);
        let next = self.source.char_at(then).map(plain);
        let positional = matches!(next, Some('"' | '\'' | '[' | '{' | ')' | '*' | '-'));
        Some(match next {
            None | Some('=') => true,
            _ if position == at => positional,
            Some(',' | ')') => self.source.slice(at, position).chars().all(|digit| digit.is_ascii_digit()),
            _ => false,
        })
    }
}
