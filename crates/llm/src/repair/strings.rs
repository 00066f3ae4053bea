//! Strings in any kind of quotes. The text after a quote decides whether it closes the string, since inner quotes are
//! often unescaped.

use super::quoting::{Quote, quote_at};
use super::{Ending, Reader, Repair, ValueContext};

impl Reader<'_, '_> {
    /// Parses the quoted string at this position; `false` if there is no quote.
    pub(super) fn string(&mut self, position: ValueContext) -> Option<bool> {
        let Some((quote, begin)) = quote_at(self.source, self.at) else { return Some(false) };
        if quote != Quote::Double {
            self.repairs.add(Repair::Quotes);
        }
        let before = self.out.len();
        self.out.push('"');
        let (start, rejected) = (begin, self.content(begin, quote, position)?);
        if let Some(first) = rejected {
            // The string is unclosed, so the first quote that was taken for a part of it closes it.
            self.out.truncate(before + 1);
            self.at = start;
            while self.at < first {
                self.character(quote)?;
            }
            self.at = first + quote.length_at(self.source, first);
        }
        self.out.push('"');
        if position == ValueContext::Argument {
            self.concatenated(position)?;
        }
        Some(true)
    }

    /// Writes the content. If the text ends first, returns the first quote that was taken for a part of the content.
    fn content(&mut self, begin: usize, quote: Quote, position: ValueContext) -> Option<Option<usize>> {
        self.at = begin;
        let mut rejected = None;
        let mut inner = false;
        loop {
            self.spend_steps(1)?;
            if self.source.char_at(self.at).is_none() {
                if rejected.is_none() {
                    self.cut(Ending::CutInside);
                }
                return Some(rejected);
            }
            let closing = quote.length_at(self.source, self.at);
            if closing > 0 {
                if quote.is_long() || self.closes(self.at + closing, position)? {
                    self.at += closing;
                    if inner {
                        self.repairs.add(Repair::InnerQuote);
                    }
                    return Some(None);
                }
                rejected.get_or_insert(self.at);
                inner = true;
            }
            self.character(quote)?;
        }
    }

    /// Writes one character or escape of the content.
    fn character(&mut self, quote: Quote) -> Option<()> {
        let character = self.source.char_at(self.at)?;
        self.at += character.len_utf8();
        if character != '\\' || quote == Quote::Gemma || quote == Quote::Escape {
            if character.is_control() {
                self.repairs.add(Repair::RawControl);
            }
            self.write_character(character);
            return Some(());
        }
        let Some(escaped) = self.source.char_at(self.at) else { return Some(()) };
        self.at += escaped.len_utf8();
        match escaped {
            '"' | '\\' | '/' => self.write_character(escaped),
            'b' => self.out.push_str("\\b"),
            'f' => self.out.push_str("\\f"),
            'n' => self.out.push_str("\\n"),
            'r' => self.out.push_str("\\r"),
            't' => self.out.push_str("\\t"),
            'u' => self.numeric_escape(4, "u"),
            'x' => self.numeric_escape(2, "x"),
            'U' => self.numeric_escape(8, "U"),
            '\'' | '`' | '_' | '$' | '’' | '“' | '”' => {
                self.repairs.add(Repair::Escape);
                self.write_character(escaped);
            }
            '\n' => self.repairs.add(Repair::Escape),
            other => {
                self.repairs.add(Repair::Escape);
                self.write_character('\\');
                self.write_character(other);
            }
        }
        Some(())
    }

    /// A numeric escape.
    fn numeric_escape(&mut self, digits: usize, letter: &str) {
        let number = |from: usize| u32::from_str_radix(self.source.slice(from, from + digits), 16).ok();
        let Some(high) = number(self.at) else {
            self.repairs.add(Repair::Escape);
            self.write_character('\\');
            self.out.push_str(letter);
            return;
        };
        let from = self.at;
        self.at += digits;
        if letter != "u" {
            self.repairs.add(Repair::Escape);
        }
        let pair = (0xd800..0xdc00).contains(&high) && self.source.slice(self.at, self.at + 2) == "\\u";
        let low = number(from + digits + 2).filter(|low| pair && (0xdc00..0xe000).contains(low));
        let code = match low {
            Some(low) => {
                self.at += digits + 2;
                0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)
            }
            None => high,
        };
        self.write_character(char::from_u32(code).unwrap_or('\u{fffd}'));
    }

    /// Adjacent strings are concatenated in Python: `'a' 'b'`.
    fn concatenated(&mut self, position: ValueContext) -> Option<()> {
        loop {
            let next = self.source.skip_space(self.at);
            let Some((quote, begin)) = quote_at(self.source, next) else { return Some(()) };
            if next == self.at {
                return Some(());
            }
            self.repairs.add(Repair::Literal);
            self.out.pop();
            if self.content(begin, quote, position)?.is_some() {
                return None;
            }
            self.out.push('"');
        }
    }

    /// Writes a string with quotes.
    pub(super) fn write_text(&mut self, text: &str) {
        self.out.push('"');
        for character in text.chars() {
            self.write_character(character);
        }
        self.out.push('"');
    }

    fn write_character(&mut self, character: char) {
        match character {
            '"' => self.out.push_str("\\\""),
            '\\' => self.out.push_str("\\\\"),
            '\n' => self.out.push_str("\\n"),
            '\r' => self.out.push_str("\\r"),
            '\t' => self.out.push_str("\\t"),
            control if (control as u32) < 0x20 => self.out.push_str(&format!("\\u{:04x}", control as u32)),
            other => self.out.push(other),
        }
    }
}
