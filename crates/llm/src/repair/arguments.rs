//! The arguments of a Python-style call: `(city="Kyoto", days=3)`.

use super::{Ending, Reader, Repair, Repairs, SourceText, ValueContext, plain};

/// The content of the parentheses of a call.
#[derive(Debug, Clone)]
pub(crate) struct Arguments {
    /// The named arguments, as the text of a JSON object.
    pub(crate) named: String,
    /// The number of named arguments.
    pub(crate) count: usize,
    /// The positional arguments, each as JSON text.
    pub(crate) positional: Vec<String>,
    /// The offset after the closing parenthesis.
    pub(crate) end: usize,
    pub(crate) repairs: Repairs,
    pub(crate) ending: Ending,
    pub(crate) placeholder: bool,
}

impl Arguments {
    /// Parses the arguments whose opening parenthesis is at `at`.
    pub(crate) fn read(source: &SourceText<'_>, at: usize) -> Option<Self> {
        let mut reader = Reader::new(source, at);
        if reader.peek()? != '(' {
            return None;
        }
        reader.advance();
        reader.open.push(')');
        let read = reader.named_and_positional();
        source.spend(reader.at - at);
        let (count, positional) = read?;
        let named = format!("{{{}}}", reader.out);
        let (end, repairs) = (reader.at, reader.repairs);
        let (ending, placeholder) = (reader.ending, reader.placeholder);
        Some(Self { named, count, positional, end, repairs, ending, placeholder })
    }
}

impl Reader<'_, '_> {
    fn named_and_positional(&mut self) -> Option<(usize, Vec<String>)> {
        let (mut count, mut positional) = (0, Vec::new());
        loop {
            self.spend_steps(1)?;
            self.skip_space();
            let Some(character) = self.peek() else {
                self.cut(Ending::Unclosed);
                return Some((count, positional));
            };
            match character {
                ')' => {
                    self.advance();
                    return Some((count, positional));
                }
                ',' => self.advance(),
                // `**{…}`
                '*' => {
                    self.at += 1;
                }
                '.' | '…' if self.ellipsis() => {}
                _ => {
                    let before = self.out.len();
                    if let Some(name) = self.name_before_equals() {
                        if count > 0 {
                            self.out.push(',');
                        }
                        self.write_text(&name);
                        self.out.push(':');
                        if self.expression()? {
                            count += 1;
                        } else {
                            self.out.truncate(before);
                        }
                    } else {
                        if self.expression()? {
                            positional.push(self.out.get(before..)?.to_owned());
                        }
                        self.out.truncate(before);
                    }
                }
            }
        }
    }

    /// `name=`, or the variants `"name"=` and `name:`.
    fn name_before_equals(&mut self) -> Option<String> {
        let from = self.at;
        let quoted = matches!(self.source.char_at(from), Some('"' | '\''));
        let begin = if quoted { from + 1 } else { from };
        let mut at = begin;
        while let Some(character) = self.source.char_at(at) {
            if !(character.is_alphanumeric() || matches!(character, '_' | '\\' | '-')) {
                break;
            }
            at += character.len_utf8();
        }
        let name = self.source.slice(begin, at).replace('\\', "");
        if quoted && matches!(self.source.char_at(at), Some('"' | '\'')) {
            at += 1;
        }
        let equals = self.source.skip_space(at);
        self.spend_steps(equals - from + 1)?;
        let sign = self.source.char_at(equals).map(plain)?;
        let compares = self.source.starts_with(equals, "==");
        if name.is_empty() || compares || !matches!(sign, '=' | ':') {
            return None;
        }
        if sign == ':' {
            self.repairs.add(Repair::Quotes);
        }
        self.at = equals + 1;
        Some(name)
    }

    /// A literal, or an expression, which is kept as text.
    fn expression(&mut self) -> Option<bool> {
        self.skip_space();
        let (from, before) = (self.at, self.out.len());
        let (repairs, ending) = (self.repairs, self.ending);
        let read = self.value(ValueContext::Argument);
        let next = self.source.skip_space_and_comments(self.at).0;
        let follows = self.source.char_at(next).map(plain);
        if let (Some(found), true) = (read, matches!(follows, None | Some(',' | ')'))) {
            return Some(found);
        }
        // `[0] * 3`, `"a" + b`: expressions are not evaluated.
        self.out.truncate(before);
        (self.at, self.repairs, self.ending) = (from, repairs, ending);
        self.repairs.add(Repair::Literal);
        let text = self.raw_expression()?;
        self.write_text(&text);
        Some(true)
    }

    /// The text up to the comma or parenthesis that ends the argument, respecting nested brackets and quotes.
    fn raw_expression(&mut self) -> Option<String> {
        let from = self.at;
        let mut depth = 0_usize;
        let mut quote: Option<char> = None;
        while let Some(character) = self.source.char_at(self.at) {
            self.spend_steps(1)?;
            match (quote, character) {
                (Some(open), _) if open == character => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') => quote = Some(character),
                (None, '(' | '[' | '{') => depth += 1,
                (None, ')' | ']' | '}') if depth > 0 => depth -= 1,
                (None, ')') => break,
                (None, ',') if depth == 0 => break,
                _ => {}
            }
            self.at += character.len_utf8();
        }
        // Unclosed brackets or quotes: this is not a call.
        self.source.char_at(self.at)?;
        Some(self.source.slice(from, self.at).trim().to_owned())
    }
}
