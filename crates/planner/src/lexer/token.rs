//! Splits a request into words, numbers, Chinese characters and marks, without interpreting them.

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Word,
    Number,
    /// One Chinese character.
    Han,
    /// One character of any other kind.
    Mark,
}

/// A piece of a request with its byte range.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) kind: TokenKind,
}

impl Token<'_> {
    pub(crate) fn is_word(&self, word: &str) -> bool {
        self.text.eq_ignore_ascii_case(word)
    }

    pub(crate) fn is_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is_word(word))
    }

    /// Whether it is a word that starts with a capital letter.
    pub(crate) fn is_capital(&self) -> bool {
        self.kind == TokenKind::Word && self.text.starts_with(char::is_uppercase)
    }
}

pub(crate) fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '々' | '〇')
}

fn is_letter(c: char) -> bool {
    c.is_alphanumeric() && !is_han(c)
}

/// The tokens of a text in order, without whitespace.
pub(crate) fn tokenize(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..)
        && let Some(first) = rest.chars().next()
    {
        let (kind, length) = match first {
            c if c.is_whitespace() => {
                at += c.len_utf8();
                continue;
            }
            c if is_han(c) => (TokenKind::Han, c.len_utf8()),
            c if c.is_ascii_digit() => (TokenKind::Number, number_length(rest)),
            c if is_letter(c) => (TokenKind::Word, word_length(rest)),
            c => (TokenKind::Mark, c.len_utf8()),
        };
        found.push(Token { text: &rest[..length], start: at, end: at + length, kind });
        at += length;
    }
    found
}

/// The length of a number: digits with a decimal point, and with commas between groups of three.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut at = 0;
    let mut has_point = false;
    loop {
        if digit(at) {
            at += 1;
        } else if bytes.get(at) == Some(&b'.') && digit(at + 1) && !has_point {
            has_point = true;
            at += 1;
        } else if bytes.get(at) == Some(&b',')
            && !has_point
            && at <= 3 + 4 * bytes[..at].iter().filter(|byte| **byte == b',').count()
            && (1..=3).all(|next| digit(at + next))
            && !digit(at + 4)
        {
            at += 4;
        } else {
            return at;
        }
    }
}

/// The length of a word: letters, digits, and marks inside words: `it's`, `gluten-free`, `math.gcd`, `my_data`.
fn word_length(text: &str) -> usize {
    let mut end = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let joins = matches!(c, '\'' | '’' | '-' | '_' | '.' | '&')
            && at > 0
            && chars.peek().is_some_and(|(_, next)| is_letter(*next));
        if !(is_letter(c) || joins || c == '_') {
            break;
        }
        end = at + c.len_utf8();
    }
    end
}

/// Converts full-width letters, digits and operators to their ASCII forms, which schemas and calculators expect.
pub(crate) fn narrow(text: &str) -> String {
    let narrow = |c: char| match c {
        '０'..='９' | 'Ａ'..='Ｚ' | 'ａ'..='ｚ' | '＋' | '－' | '＊' | '／' | '＝' | '％' | '．' => {
            char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c)
        }
        '\u{a0}' | '\u{3000}' => ' ',
        _ => c,
    };
    text.chars().map(narrow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_text_into_tokens() {
        let check = |text: &str, expect: &[&str]| {
            assert_eq!(tokenize(text).iter().map(|token| token.text).collect::<Vec<_>>(), expect, "{text}");
        };
        check("It's 1,234.5 km.", &["It's", "1,234.5", "km", "."]);
        check("[1,2,300]", &["[", "1", ",", "2,300", "]"]);
        check("5kg of gluten-free math.gcd", &["5", "kg", "of", "gluten-free", "math.gcd"]);
        check("读取A1的值", &["读", "取", "A1", "的", "值"]);
        check("12,3456", &["12", ",", "3456"]);
        assert_eq!(narrow("２３＊４７，好"), "23*47，好");
    }
}
