//! Splits an expression into tokens. Rejects input that fend must not get; [`super::plan`] parses the structure.

use toolhub_core::lang::LocalizedText;

use super::errors;

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A number as written, without thousands separators.
    Number(String),
    /// A unit, constant, function or operator in letters; also `%`, `'` and `"`.
    Word(String),
    /// An operator in symbols.
    Sign(&'static str),
    Open,
    Close,
    /// A comma, and whether white space is beside it.
    Comma {
        spaced: bool,
    },
    Semicolon,
}

/// Symbols, longest first.
const SIGNS: [&str; 12] = ["==", "!=", "//", "+", "-", "*", "/", "^", "!", "&", "|", "="];

/// Larger exponents produce numbers that fend would compute for too long without interruption; small fractions are even
/// slower.
const EXPONENTS: std::ops::RangeInclusive<i32> = -999..=9_999;

/// Splits a normalized expression into tokens.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, LocalizedText> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let token = match c {
            _ if c.is_whitespace() => {
                rest = &rest[c.len_utf8()..];
                if let Some(Token::Comma { spaced }) = tokens.last_mut() {
                    *spaced = true;
                }
                continue;
            }
            '(' => Token::Open,
            ')' => Token::Close,
            ';' => Token::Semicolon,
            ',' => Token::Comma { spaced: text[..text.len() - rest.len()].ends_with(char::is_whitespace) },
            '0'..='9' | '.' => {
                let (number, after) = number(rest)?;
                tokens.push(Token::Number(number));
                rest = after;
                continue;
            }
            'x' | 'X'
                if matches!(tokens.last(), Some(Token::Number(_)))
                    && rest[1..].starts_with(|c: char| c.is_ascii_digit()) =>
            {
                Token::Sign("*")
            }
            // `km/h` is one unit, whereas `km / h` divides everything before.
            '/' if matches!(tokens.last(), Some(Token::Word(_)))
                && !text[..text.len() - rest.len()].ends_with(char::is_whitespace)
                && rest[1..].starts_with(starts_word) =>
            {
                Token::Sign("per")
            }
            _ if starts_word(c) => {
                let (word, after) = word(rest, c);
                refuse_dice(word)?;
                tokens.push(Token::Word(word.to_owned()));
                rest = after;
                continue;
            }
            _ => {
                refuse(rest, c)?;
                let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
                let sign = sign.ok_or_else(|| {
                    LocalizedText::new(
                        format!("`{c}` has no meaning in an expression"),
                        format!("`{c}` 在表达式中没有意义"),
                    )
                })?;
                tokens.push(Token::Sign(sign));
                rest = &rest[sign.len()..];
                continue;
            }
        };
        tokens.push(token);
        rest = &rest[c.len_utf8()..];
    }
    Ok(tokens)
}

fn starts_word(c: char) -> bool {
    c.is_alphabetic() || c == '°' || stands_alone(c)
}

/// Whether a character is a token of its own.
fn stands_alone(c: char) -> bool {
    matches!(c, '%' | '‰' | '\'' | '"' | '$' | '€' | '£' | '¥' | '₩' | '₹')
}

fn word(rest: &str, first: char) -> (&str, &str) {
    let end = if stands_alone(first) {
        first.len_utf8()
    } else {
        let start = first.len_utf8();
        rest[start..]
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .map_or(rest.len(), |length| start + length)
    };
    rest.split_at(end)
}

/// Parses a number and returns the rest. `1.` is `1`; commas are handled by the plan.
fn number(rest: &str) -> Result<(String, &str), LocalizedText> {
    let end_of = |from: usize, fits: fn(char) -> bool| {
        rest[from..].find(|c: char| !fits(c)).map_or(rest.len(), |length| from + length)
    };
    let digit = |c: char| c.is_ascii_digit() || c == '_';
    let prefixed = ["0x", "0b", "0o"].iter().any(|prefix| rest.starts_with(prefix));
    if prefixed {
        let end = end_of(2, |c| c.is_ascii_alphanumeric() || c == '_');
        return Ok((rest[..end].to_owned(), &rest[end..]));
    }
    let integer_end = end_of(0, digit);
    let (mut text, mut end) = (rest[..integer_end].to_owned(), integer_end);
    if rest[end..].starts_with('.') {
        let fraction = end_of(end + 1, digit);
        if fraction > end + 1 {
            text.push_str(&rest[end..fraction]);
        } else if text.is_empty() {
            return Err(LocalizedText::new("`.` needs a digit beside it", "`.` 旁边要有数字"));
        }
        end = fraction;
    }
    let after = rest[end..].strip_prefix(['e', 'E']);
    let unsigned = after.map(|after| after.strip_prefix(['+', '-']).unwrap_or(after));
    if let Some(unsigned) = unsigned.filter(|unsigned| unsigned.starts_with(|c: char| c.is_ascii_digit())) {
        let stop = end_of(rest.len() - unsigned.len(), digit);
        let exponent: Option<i32> = rest[end + 1..stop].replace('_', "").parse().ok();
        if !exponent.is_some_and(|exponent| EXPONENTS.contains(&exponent)) {
            let (least, most) = EXPONENTS.into_inner();
            let number = &rest[..stop];
            return Err(LocalizedText::new(
                format!("`{number}` is out of range: exponents run from {least} to {most}"),
                format!("`{number}` 超出范围：指数须在 {least} 到 {most} 之间"),
            ));
        }
        text.push_str(&rest[end..stop]);
        end = stop;
    }
    Ok((text, &rest[end..]))
}

/// Rejects `2d6`: dice in fend produce a distribution, which may take too long.
fn refuse_dice(word: &str) -> Result<(), LocalizedText> {
    match word.strip_prefix('d') {
        Some(faces) if faces.starts_with(|c: char| c.is_ascii_digit()) => Err(errors::no_random_numbers()),
        _ => Ok(()),
    }
}

fn refuse(rest: &str, c: char) -> Result<(), LocalizedText> {
    Err(match c {
        '@' => {
            LocalizedText::new("there are no dates here: use `get_time`", "这里不处理日期：请使用 `get_time`")
        }
        ':' | '\\' => LocalizedText::new(
            format!("`{c}` has no meaning here: write a ratio as a division, and give functions by name"),
            format!("`{c}` 在这里没有意义：比例请写成除法，函数请写名称"),
        ),
        '<' | '>' if rest.starts_with("<<") || rest.starts_with(">>") => LocalizedText::new(
            "shifts are not known: multiply or divide by a power of 2",
            "不支持移位运算：请乘以或除以 2 的幂",
        ),
        '<' | '>' => LocalizedText::new(
            "numbers cannot be compared here: subtract one from the other",
            "这里不能比较大小：请用一个数减去另一个数",
        ),
        '=' if rest.starts_with("=>") => {
            LocalizedText::new("functions cannot be defined here", "这里不能定义函数")
        }
        '∞' => LocalizedText::new("there is no infinity here", "这里没有无穷大"),
        _ => return Ok(()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(text: &str) -> String {
        let show = |token: &Token| match token {
            Token::Number(text) | Token::Word(text) => text.clone(),
            Token::Sign(sign) => (*sign).to_owned(),
            Token::Open => "(".to_owned(),
            Token::Close => ")".to_owned(),
            Token::Comma { spaced } => if *spaced { ",_" } else { "," }.to_owned(),
            Token::Semicolon => ";".to_owned(),
        };
        match tokens(text) {
            Ok(tokens) => tokens.iter().map(show).collect::<Vec<_>>().join(" "),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn tokenizes_expressions() {
        let check = |input: &str, expect: &str| assert_eq!(render(input), expect, "{input}");
        check("1.5e-3*x2", "1.5e-3 * x2");
        check("1,234 , 5", "1 , 234 ,_ 5");
        check("5.km 2e 3E4", "5 km 2 e 3E4");
        check("0xff+.5", "0xff + .5");
        check("5'10\" to cm", "5 ' 10 \" to cm");
        check("20%of 50", "20 % of 50");
        check("3!!=6", "3 ! != 6");
        check("72°F", "72 °F");
        check("2x3.5 0x3", "2 * 3.5 0x3");
        check("1e99999", "error: `1e99999` is out of range: exponents run from -999 to 9999");
        check("1e-9999", "error: `1e-9999` is out of range: exponents run from -999 to 9999");
        check("km/h km / h $5//2", "km per h km / h $ 5 // 2");
        check("2d6", "error: there are no dice and no random numbers here");
        check(
            "a: a",
            "error: `:` has no meaning here: write a ratio as a division, and give functions by name",
        );
        check(".", "error: `.` needs a digit beside it");
        check("1 ~ 2", "error: `~` has no meaning in an expression");
    }
}
