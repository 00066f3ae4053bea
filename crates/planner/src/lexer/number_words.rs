//! Number words: `one hundred and five`, `twenty-three`, 二十三, 三千五. Units are parsed elsewhere.

use crate::lexer::token::{Token, TokenKind};

const SMALL: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] =
    ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
const ORDINALS: [&str; 10] =
    ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];
/// Nouns with an order: `second` before one of them is an ordinal, not a unit of time.
const ORDERED_NOUNS: [&str; 12] =
    ["row", "rows", "column", "columns", "line", "lines", "page", "pages", "sheet", "tab", "one", "item"];

/// `third row`: an ordinal. It counts only before a noun with an order.
pub(crate) fn ordinal_word(tokens: &[Token<'_>], at: usize) -> Option<f64> {
    let index = ORDINALS.iter().position(|word| tokens.get(at).is_some_and(|token| token.is_word(word)))?;
    tokens.get(at + 1).is_some_and(|next| next.is_any(&ORDERED_NOUNS)).then_some(index as f64 + 1.0)
}

/// `five`, `twenty-one`, `two hundred and six`, `a dozen`: the value, the index of the token after it, and whether it may be an
/// article.
pub(crate) fn read_english_number(tokens: &[Token<'_>], at: usize) -> Option<(f64, usize, bool)> {
    let (first, mut after) = below_hundred(tokens, at)?;
    let may_be_article = after == at + 1 && tokens[at].is_any(&["one", "zero"]);
    let (mut total, mut section, mut scaled) = (0.0, first, false);
    loop {
        if tokens.get(after).is_some_and(|token| token.is_word("hundred")) {
            (section, after, scaled) = (section * 100.0, after + 1, true);
            continue;
        }
        // `hundred and five`, `thousand two hundred`: a number after a scale is added.
        let joint = usize::from(scaled && tokens.get(after).is_some_and(|token| token.is_word("and")));
        if let Some((more, next)) = below_hundred(tokens, after + joint).filter(|_| scaled) {
            section += more;
            after = next;
            scaled = false;
            continue;
        }
        let thousand = tokens.get(after).is_some_and(|token| token.is_word("thousand"));
        let continues = below_hundred(tokens, after + 1).is_some();
        if thousand && continues {
            (total, section, after, scaled) = (section * 1000.0, 0.0, after + 1, true);
            continue;
        }
        break;
    }
    Some((total + section, after, may_be_article))
}

/// A number up to 99 and the index of the token after it.
fn below_hundred(tokens: &[Token<'_>], at: usize) -> Option<(f64, usize)> {
    let word = tokens.get(at).filter(|token| token.kind == TokenKind::Word)?.text.to_ascii_lowercase();
    if word == "dozen" {
        return Some((12.0, at + 1));
    }
    let small = |word: &str| SMALL.iter().position(|name| *name == word);
    let tens = |word: &str| TENS.iter().skip(2).position(|name| *name == word).map(|index| (index + 2) * 10);
    let value = match word.split_once('-') {
        Some((first, second)) => tens(first)? + small(second).filter(|ones| (1..10).contains(ones))?,
        None => match tens(&word) {
            Some(tens) => {
                let ones = tokens.get(at + 1).and_then(|next| small(&next.text.to_ascii_lowercase()));
                if let Some(ones) = ones.filter(|ones| (1..10).contains(ones)) {
                    return Some(((tens + ones) as f64, at + 2));
                }
                tens
            }
            None => small(&word)?,
        },
    };
    Some((value as f64, at + 1))
}

/// `三十二`, `两百`, `一千零五`, `三千五` (3500), `二〇二四`.
pub(crate) fn read_chinese_number(tokens: &[Token<'_>], at: usize) -> Option<(f64, usize, bool)> {
    let (mut total, mut section, mut digit) = (0f64, 0f64, None::<f64>);
    // The scale of a final digit: 三千五 is 3500, 三千零五 is 3005.
    let mut step = 1.0;
    let mut plain = String::new();
    let mut after = at;
    while let Some(token) = tokens.get(after).filter(|token| token.kind == TokenKind::Han) {
        match token.text {
            "零" | "〇" => {
                digit = None;
                step = 1.0;
                plain.push('0');
            }
            "十" | "百" | "千" => {
                let scale = match token.text {
                    "十" => 10.0,
                    "百" => 100.0,
                    _ => 1000.0,
                };
                if digit.is_none() && token.text != "十" {
                    break;
                }
                section += digit.take().unwrap_or(1.0) * scale;
                step = scale / 10.0;
                plain.clear();
                plain.push('x');
            }
            "万" | "亿" if after > at => {
                let scale = if token.text == "万" { 1e4 } else { 1e8 };
                total = (total + section + digit.take().unwrap_or(0.0)) * scale;
                section = 0.0;
                step = scale / 10.0;
                plain.clear();
                plain.push('x');
            }
            other => {
                let Some(value) = chinese_digit(other) else { break };
                digit = Some(f64::from(value));
                plain.push(char::from(b'0' + value));
            }
        }
        after += 1;
    }
    if after == at || (after == at + 1 && tokens[at].text == "零") {
        return None;
    }
    let value = match plain.parse::<f64>() {
        // 二〇二四 is read digit by digit.
        Ok(value) if plain.len() > 1 => value,
        _ => total + section + digit.unwrap_or(0.0) * step,
    };
    Some((value, after, after == at + 1 && tokens[at].text == "一"))
}

/// The digit of a Chinese numeral.
pub(crate) fn chinese_digit(text: &str) -> Option<u8> {
    let index = ["一", "二", "三", "四", "五", "六", "七", "八", "九"].iter().position(|one| *one == text);
    match text {
        "两" => Some(2),
        "〇" | "零" => Some(0),
        _ => index.and_then(|index| u8::try_from(index + 1).ok()),
    }
}

/// A number for an expression, in digits or words, and the number of its tokens.
pub(crate) fn read_operand(tokens: &[Token<'_>], at: usize) -> Option<(String, usize)> {
    let token = tokens.get(at)?;
    // 负五
    if token.is_word("负") {
        let (value, length) = read_operand(tokens, at + 1)?;
        return Some((format!("(-{value})"), length + 1));
    }
    let (value, length) = plain_operand(tokens, at)?;
    // 三分之一 is a fraction; 百分之十五 is a percentage.
    let parts = tokens.get(at + length).zip(tokens.get(at + length + 1));
    if parts.is_some_and(|(one, other)| one.is_word("分") && other.is_word("之"))
        && !["百", "千", "万"].iter().any(|share| token.is_word(share))
        && let Some((above, more)) = plain_operand(tokens, at + length + 2)
    {
        return Some((format!("({above} / {value})"), length + 2 + more));
    }
    Some((value, length))
}

fn plain_operand(tokens: &[Token<'_>], at: usize) -> Option<(String, usize)> {
    let token = tokens.get(at)?;
    let spelled = match token.kind {
        TokenKind::Number => return Some((token.text.replace(',', ""), 1)),
        TokenKind::Word => {
            read_english_number(tokens, at).map(|(value, after, _)| scaled(tokens, value, after))
        }
        TokenKind::Han => read_chinese_number(tokens, at).map(|(value, after, _)| (value, after)),
        TokenKind::Mark => None,
    };
    spelled.map(|(value, after)| (value.to_string(), after - at))
}

/// `two million`: applies the scale after a number word.
fn scaled(tokens: &[Token<'_>], value: f64, after: usize) -> (f64, usize) {
    let scales = [("thousand", 1e3), ("million", 1e6), ("billion", 1e9)];
    let found = scales.iter().find(|(name, _)| tokens.get(after).is_some_and(|token| token.is_word(name)));
    found.map_or((value, after), |(_, scale)| (value * scale, after + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::token::tokenize;

    #[test]
    fn parses_number_words() {
        let check = |text: &str, expect: &str| {
            let all = tokenize(text);
            let (found, length) = read_operand(&all, 0).unwrap();
            assert_eq!(found, expect, "{text}");
            assert_eq!(length, all.len(), "{text}");
        };
        check("twenty-three", "23");
        check("one hundred and five", "105");
        check("two thousand three hundred and forty", "2340");
        check("three million", "3000000");
        check("二十三", "23");
        check("三分之一", "(1 / 3)");
        check("4分之3", "(3 / 4)");
        check("负五", "(-5)");
        check("三千五", "3500");
        check("三千零五", "3005");
        check("一百五", "150");
        check("一万二", "12000");
        check("三百六十五", "365");
        check("1,200", "1200");
    }
}
