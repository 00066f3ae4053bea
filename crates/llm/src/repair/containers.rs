//! Objects, lists and tuples, with missing or wrong separators and brackets.

use toolhub_core::json::MAX_DEPTH;

use super::{Ending, Reader, Repair, ValueContext};

/// The result of searching for another member.
enum Next {
    Member,
    End,
}

impl Reader<'_, '_> {
    /// Parses the object, list or tuple at this position.
    pub(super) fn container(&mut self) -> Option<()> {
        match self.peek()? {
            '{' => self.object(),
            '[' => self.list(']'),
            '(' => self.list(')'),
            _ => None,
        }
    }

    fn enter(&mut self, close: char) -> Option<()> {
        if self.open.len() >= MAX_DEPTH {
            return None;
        }
        self.open.push(close);
        self.advance();
        Some(())
    }

    /// Whether `close` closes an outer container.
    fn closes_outer(&self, close: char) -> bool {
        self.open.iter().rev().skip(1).any(|&outer| outer == close)
    }

    fn object(&mut self) -> Option<()> {
        self.enter('}')?;
        self.skip_space();
        if self.peek() == Some('{') {
            // `{{"name": …}}`: templates escape braces by doubling them.
            self.repairs.add(Repair::DoubledBraces);
            self.object()?;
            self.skip_space();
            if self.peek() == Some('}') {
                self.advance();
            }
            self.open.pop();
            return Some(());
        }
        self.out.push('{');
        let mut count = 0_usize;
        while let Next::Member = self.next_member('}')? {
            self.spend_steps(1)?;
            let before = self.out.len();
            if count > 0 {
                self.out.push(',');
            }
            if self.member()? {
                count += 1;
            } else {
                self.out.truncate(before);
            }
        }
        self.out.push('}');
        self.open.pop();
        Some(())
    }

    /// Parses a member; `false` if it has no value.
    fn member(&mut self) -> Option<bool> {
        self.key()?;
        self.skip_space();
        match self.peek() {
            Some(':') => self.advance(),
            Some('=') => {
                self.repairs.add(Repair::MissingComma);
                self.advance();
                if self.peek() == Some('>') {
                    self.advance();
                }
            }
            None => {
                self.cut(Ending::CutInside);
                return Some(false);
            }
            Some('"' | '\'' | '{' | '[' | '“' | '0'..='9') => self.repairs.add(Repair::MissingComma),
            // Not a member of an object.
            Some(_) => return None,
        }
        self.out.push(':');
        self.skip_space();
        match self.peek() {
            None => {
                self.cut(Ending::CutInside);
                return Some(false);
            }
            Some(',' | '}') => {
                self.repairs.add(Repair::NoValue);
                return Some(false);
            }
            Some(_) => {}
        }
        if !self.value(ValueContext::Member)? {
            return Some(false);
        }
        Some(true)
    }

    fn key(&mut self) -> Option<()> {
        if self.string(ValueContext::Key)? {
            return Some(());
        }
        let from = self.at;
        while let Some(character) = self.peek() {
            let inside =
                character.is_alphanumeric() || matches!(character, '_' | '-' | '.' | '$' | '\\' | '@');
            if !inside {
                break;
            }
            self.at += self.source.char_at(self.at).map_or(1, char::len_utf8);
        }
        let key = self.source.slice(from, self.at).replace('\\', "");
        if key.is_empty() {
            return None;
        }
        self.repairs.add(Repair::Quotes);
        self.write_text(&key);
        Some(())
    }

    pub(super) fn list(&mut self, close: char) -> Option<()> {
        self.enter(close)?;
        let before = self.out.len();
        self.out.push('[');
        let (mut count, mut commas) = (0_usize, 0_usize);
        loop {
            let seen = self.at;
            let next = self.next_member(close)?;
            commas += usize::from(self.source.slice(seen, self.at).contains([',', '，', '、']));
            if let Next::End = next {
                break;
            }
            self.spend_steps(1)?;
            let before = self.out.len();
            if count > 0 {
                self.out.push(',');
            }
            if self.value(ValueContext::Item)? {
                count += 1;
            } else {
                self.out.truncate(before);
            }
        }
        self.out.push(']');
        self.open.pop();
        if close == ')' {
            self.repairs.add(Repair::Literal);
            // `(5)` is a number in parentheses, `(5,)` a tuple.
            if count == 1 && commas == 0 {
                self.out.pop();
                self.out.remove(before);
            }
        }
        Some(())
    }

    /// Moves to the next member, or past the end of the container closed by `close`.
    fn next_member(&mut self, close: char) -> Option<Next> {
        let first = matches!(self.out.chars().next_back(), Some('{' | '['));
        let mut commas = 0_usize;
        loop {
            self.spend_steps(1)?;
            self.skip_space();
            let Some(character) = self.peek() else {
                self.cut(Ending::Unclosed);
                return Some(Next::End);
            };
            match character {
                ',' | ';' => {
                    commas += 1;
                    self.advance();
                }
                _ if character == close => {
                    if commas > 0 {
                        self.repairs.add(Repair::ExtraComma);
                    }
                    self.advance();
                    return Some(Next::End);
                }
                '}' | ']' | ')' if self.closes_outer(character) => {
                    self.repairs.add(Repair::Unclosed);
                    return Some(Next::End);
                }
                '}' | ']' | ')' => {
                    self.repairs.add(Repair::ExtraBrace);
                    self.advance();
                }
                // An object cannot contain an object without a key, so the outer one is unclosed.
                '{' if close == '}' => {
                    self.repairs.add(Repair::Unclosed);
                    return self.closes_outer(']').then_some(Next::End);
                }
                '.' | '…' if self.ellipsis() => {}
                _ => {
                    if commas == 0 && !first {
                        self.repairs.add(Repair::MissingComma);
                    } else if commas > 1 || (commas == 1 && first) {
                        self.repairs.add(Repair::ExtraComma);
                    }
                    return Some(Next::Member);
                }
            }
        }
    }

    /// Skips `...`, a placeholder.
    pub(super) fn ellipsis(&mut self) -> bool {
        let length = if self.source.starts_with(self.at, "...") {
            3
        } else if self.source.starts_with(self.at, "…") {
            '…'.len_utf8()
        } else {
            return false;
        };
        self.placeholder = true;
        self.at += length;
        true
    }
}
