//! Chinese numerals in dates and durations.

/// Parses an integer in digits or Chinese numerals: `15`, `十五`, `两百零三`.
pub(super) fn parse(text: &str) -> Option<i64> {
    if text.is_empty() {
        return None;
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok();
    }
    let (mut total, mut digit) = (0_i64, None);
    for c in text.chars() {
        if let Some(value) = digit_value(c) {
            // `二〇二六` is written digit by digit.
            digit = Some(digit.unwrap_or(0_i64).checked_mul(10)?.checked_add(value)?);
        } else {
            let scale = match c {
                '十' | '拾' => 10,
                '百' => 100,
                '千' => 1_000,
                '万' => {
                    total = total.checked_add(digit.take().unwrap_or(0))?.checked_mul(10_000)?;
                    continue;
                }
                _ => return None,
            };
            total = total.checked_add(digit.take().unwrap_or(1).checked_mul(scale)?)?;
        }
    }
    total.checked_add(digit.unwrap_or(0))
}

/// Whether a character may be part of a number.
pub(super) fn is_numeral(c: char) -> bool {
    c.is_ascii_digit() || digit_value(c).is_some() || matches!(c, '十' | '拾' | '百' | '千' | '万')
}

fn digit_value(c: char) -> Option<i64> {
    if let Some(digit) = c.to_digit(10) {
        return Some(digit.into());
    }
    Some(match c {
        '零' | '〇' => 0,
        '一' | '壹' => 1,
        '二' | '两' | '俩' => 2,
        '三' => 3,
        '四' => 4,
        '五' => 5,
        '六' => 6,
        '七' => 7,
        '八' => 8,
        '九' => 9,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_numerals() {
        let check = |input: &str, expect: Option<i64>| assert_eq!(parse(input), expect, "{input}");
        check("15", Some(15));
        check("十", Some(10));
        check("十五", Some(15));
        check("二十", Some(20));
        check("两百零三", Some(203));
        check("三千五百", Some(3_500));
        check("一万二千", Some(12_000));
        check("二〇二六", Some(2026));
        check("", None);
        check("天", None);
        check("99999999999999999999", None);
    }
}
