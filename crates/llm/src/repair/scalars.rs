//! Numbers, literals and unquoted strings.

use super::{Ending, Reader, Repair, ValueContext};

impl Reader<'_, '_> {
    /// Parses the value at this position; `false` if there is none.
    pub(super) fn value(&mut self, position: ValueContext) -> Option<bool> {
        self.spend_steps(1)?;
        self.skip_space();
        let Some(character) = self.peek() else {
            self.cut(Ending::CutInside);
            return Some(false);
        };
        if matches!(character, '{' | '[' | '(') {
            self.container()?;
            return Some(true);
        }
        if self.string(position)? {
            return Some(true);
        }
        if self.ellipsis() {
            self.out.push_str("null");
            return Some(true);
        }
        self.bare(position)
    }

    /// A value without quotes: a number, a literal or a string.
    fn bare(&mut self, position: ValueContext) -> Option<bool> {
        let from = self.at;
        let mut depth = 0_usize;
        while let Some(character) = self.peek() {
            let ends = match character {
                '(' => {
                    depth += 1;
                    false
                }
                ')' if depth > 0 => {
                    depth -= 1;
                    false
                }
                ',' => depth == 0,
                '}' | ']' | ')' | '\n' => true,
                // A comment after the value.
                '/' => self.source.starts_with(self.at, " //") || self.source.starts_with(self.at, "//"),
                '#' => true,
                _ => false,
            };
            if ends && !(character == '/' && self.source.slice(from, self.at).ends_with(':')) {
                break;
            }
            self.spend_steps(1)?;
            self.at += self.source.char_at(self.at).map_or(1, char::len_utf8);
        }
        let word = self.source.slice(from, self.at).trim_end();
        self.at = from + word.len();
        if word.is_empty() {
            return None;
        }
        if self.at >= self.source.len() && word.contains(char::is_whitespace) {
            self.cut(Ending::CutInside);
        }
        if let Some(literal) = literal(word) {
            if literal != word {
                self.repairs.add(Repair::Literal);
            }
            self.out.push_str(literal);
        } else if serde_json::from_str::<&serde_json::value::RawValue>(word).is_ok() {
            self.out.push_str(word);
        } else if let Some(number) = number(word) {
            self.repairs.add(Repair::Number);
            self.out.push_str(&number);
        } else {
            self.repairs.add(if position == ValueContext::Argument {
                Repair::Literal
            } else {
                Repair::Quotes
            });
            let text = word.replace("\\_", "_");
            self.write_text(&text);
        }
        Some(true)
    }
}

/// Converts a literal of JSON, Python or JavaScript.
fn literal(word: &str) -> Option<&'static str> {
    Some(match word {
        "true" | "True" | "TRUE" => "true",
        "false" | "False" | "FALSE" => "false",
        "null" | "None" | "NULL" | "Null" | "undefined" | "NaN" | "nan" => "null",
        _ => return None,
    })
}

/// Converts a number in a notation that is invalid in JSON; `None` if it is not certainly a number.
fn number(word: &str) -> Option<String> {
    let (sign, digits) = match word.as_bytes().first()? {
        b'-' => ("-", word.get(1..)?),
        b'+' => ("", word.get(1..)?),
        _ => ("", word),
    };
    if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        return u128::from_str_radix(hex, 16).ok().map(|value| format!("{sign}{value}"));
    }
    // `1_000` is a number in Python; `007` is an identifier rather than a number.
    let plain: String = digits.chars().filter(|&character| character != '_').collect();
    let spelled = match plain.split_once('.') {
        Some(("", fraction)) => format!("{sign}0.{fraction}"),
        Some((integer, "")) => format!("{sign}{integer}.0"),
        _ => format!("{sign}{plain}"),
    };
    let looks = plain.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    (looks && serde_json::from_str::<serde_json::Number>(&spelled).is_ok()).then_some(spelled)
}
