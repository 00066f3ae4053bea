//! Checks that a number in a call is all that the request states. A member of a series or of a range, a count, a number with
//! a suffix and a difference must not fill a parameter for a single number.

use crate::safety::number_bound;
use crate::values::parameter::name_words;

/// A number in a text.
#[derive(Debug, Clone, PartialEq)]
struct Numeral {
    value: f64,
    start: usize,
    end: usize,
}

/// A text with its numbers, and the numbers of the calls made from it.
struct NumberContext<'a> {
    own: &'a str,
    all: &'a [Numeral],
    others: &'a [f64],
}

/// Why a number differs from the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberMismatch {
    /// No call uses the other members of the series.
    Part,
    /// The number is a count, but the parameter takes a position.
    Count,
    /// The number has a suffix or unit that the parameter does not take.
    Suffix,
    /// The number is a difference.
    Difference,
    Negative,
    /// The number is a bound or an approximation.
    Bound,
}

const SMALL: [&str; 10] = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
const HAN: [&str; 11] = ["一", "二", "三", "四", "五", "六", "七", "八", "九", "十", "两"];
/// Separators between the members of a series, without repeated nouns.
const JOINTS: [&str; 20] = [
    "and", ",", ", and", "&", "-", "–", "—", "to", "through", "till", "until", "~", "～", "到", "至", "和",
    "、", "与", "及", "跟",
];
const NOUNS: [&str; 14] = [
    "rows", "row", "columns", "column", "lines", "line", "the", "number", "no.", "#", "第", "行", "列", "条",
];
const POSITIONS: [&str; 9] = ["row", "col", "column", "line", "index", "position", "page", "number", "id"];
const COUNTED: [&str; 12] =
    ["rows", "columns", "cols", "lines", "pages", "items", "entries", "行", "列", "条", "页", "个"];
/// Words of parameters that take a difference or an amount.
const AMOUNTS: [&str; 18] = [
    "by",
    "delta",
    "offset",
    "shift",
    "amount",
    "count",
    "step",
    "increment",
    "change",
    "minutes",
    "seconds",
    "hours",
    "days",
    "duration",
    "timeout",
    "percent",
    "rate",
    "limit",
];
const NEVER_NEGATIVE: [&str; 12] =
    ["row", "col", "column", "line", "index", "page", "count", "limit", "price", "quantity", "size", "width"];
const DIFFERENCES: [&str; 12] =
    ["增加", "减少", "上调", "下调", "提高", "降低", "涨价", "降价", "加价", "涨", "调高", "调低"];
/// Suffixes directly after a number that do not change its meaning.
const ENDINGS: [&str; 7] = ["st", "nd", "rd", "th", "px", "pt", "x"];

/// Why the number of a parameter is not all that a text states. `others` are all numbers of the changing calls. `own` is the
/// text in lower case, without quoted parts.
pub(crate) fn mismatch(own: &str, parameter: &str, value: f64, others: &[f64]) -> Option<NumberMismatch> {
    let named = name_words(parameter);
    let is = |list: &[&str]| named.iter().any(|word| list.contains(&word.as_str()));
    if value < 0.0 && is(&NEVER_NEGATIVE) {
        return Some(NumberMismatch::Negative);
    }
    let all = numerals(own);
    let same = |a: f64, b: f64| (a - b).abs() < 1e-9;
    let word_matches: Vec<usize> = (0..all.len()).filter(|at| same(all[*at].value, value)).collect();
    let hundredths = |one: &Numeral| {
        let after = own[one.end..].trim_start();
        after.starts_with('%')
            || after.starts_with("percent")
            || own[..one.start].trim_end().ends_with("百分之")
    };
    let percent = all.iter().any(|one| hundredths(one) && same(one.value, value * 100.0));
    if percent && !is(&AMOUNTS) {
        return Some(NumberMismatch::Suffix);
    }
    let takes_bound = is(&number_bound::PARAMETERS);
    if word_matches.is_empty() && !takes_bound && number_bound::is_stated(own) {
        return Some(NumberMismatch::Bound);
    }
    let context = NumberContext { own, all: &all, others };
    let found: Vec<Option<NumberMismatch>> =
        word_matches.iter().map(|at| classify(&context, *at, &is)).collect();
    // One unobjectionable occurrence of the number is enough.
    match found.iter().any(Option::is_none) {
        true => None,
        false => found.into_iter().flatten().next(),
    }
}

/// The same for a number in a text parameter, of which only a bound is known to be wrong.
pub(crate) fn bound_of_text(own: &str, parameter: &str, text: &str) -> Option<NumberMismatch> {
    let value: f64 = text.trim().parse().ok()?;
    let takes_bound =
        name_words(parameter).iter().any(|word| number_bound::PARAMETERS.contains(&word.as_str()));
    let all = numerals(own);
    let mut found = all.iter().filter(|one| (one.value - value).abs() < 1e-9).peekable();
    let is_bound =
        found.peek().is_some() && found.all(|one| number_bound::touches(&own[..one.start], &own[one.end..]));
    (is_bound && !takes_bound).then_some(NumberMismatch::Bound)
}

fn classify(context: &NumberContext<'_>, at: usize, is: &dyn Fn(&[&str]) -> bool) -> Option<NumberMismatch> {
    let NumberContext { own, all, others } = *context;
    let one = &all[at];
    let (before, after) = (&own[..one.start], &own[one.end..]);
    if !is(&number_bound::PARAMETERS) && number_bound::touches(before, after) {
        return Some(NumberMismatch::Bound);
    }
    let same = |a: f64, b: f64| (a - b).abs() < 1e-9;
    let times = |expected: f64| others.iter().filter(|value| same(**value, expected)).count();
    let used = |other: &Numeral| {
        // Rows 3 to 5 are 3 rows: the count must not be taken from the number of the first row.
        let across = (other.value - one.value).abs() + 1.0;
        times(other.value) > 0 || times(across) > usize::from(same(across, one.value))
    };
    // `1,5` is one number in some languages.
    let adjacent = |left: &Numeral, right: &Numeral| {
        let plural = own[..left.start].trim_end().ends_with(['s', '第', '行', '列']);
        matches!(&own[left.end..right.start], "," | ".") && !plural
    };
    let mut neighbours = Vec::new();
    neighbours.extend(at.checked_sub(1).map(|left| (left, at)));
    neighbours.extend((at + 1 < all.len()).then_some((at, at + 1)));
    for (left, right) in neighbours {
        let other = if left == at { right } else { left };
        let (left, right) = (&all[left], &all[right]);
        if adjacent(left, right) || is_joint(&own[left.end..right.start]) && !used(&all[other]) {
            return Some(NumberMismatch::Part);
        }
    }
    let ordinal = before.trim_end().ends_with('第');
    let next = after.trim_start();
    let counted = COUNTED.iter().any(|noun| {
        next.strip_prefix(noun).is_some_and(|rest| {
            !noun.is_ascii() || !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')
        })
    });
    if counted && !ordinal && is(&POSITIONS) {
        return Some(NumberMismatch::Count);
    }
    let suffix: String = after.chars().take_while(|c| c.is_ascii_alphabetic() || *c == '%').collect();
    let unit = ["kg", "k", "m", "万", "千", "亿", "million", "thousand", "percent"].iter().any(|unit| {
        next.strip_prefix(unit)
            .is_some_and(|rest| !unit.is_ascii() || !rest.starts_with(|c: char| c.is_alphanumeric()))
    });
    if (!suffix.is_empty() && !ENDINGS.contains(&suffix.as_str()) || unit) && !is(&AMOUNTS) {
        return Some(NumberMismatch::Suffix);
    }
    let lead = before.trim_end();
    let by = lead.ends_with(" by")
        || DIFFERENCES.iter().any(|word| {
            lead.ends_with(word) || lead.strip_suffix('了').is_some_and(|lead| lead.ends_with(word))
        });
    let higher = ["higher", "lower", "more", "less", "cheaper"].iter().any(|word| next.starts_with(word));
    ((by || higher) && !is(&AMOUNTS)).then_some(NumberMismatch::Difference)
}

fn is_joint(between: &str) -> bool {
    let mut left = between.trim().to_owned();
    for noun in NOUNS {
        left = match noun.is_ascii() {
            true => left.split_whitespace().filter(|word| *word != noun).collect::<Vec<_>>().join(" "),
            false => left.replace(noun, " "),
        };
    }
    JOINTS.contains(&left.trim())
}

/// The numbers of a text, in digits and in number words.
fn numerals(text: &str) -> Vec<Numeral> {
    let mut found: Vec<Numeral> = Vec::new();
    let mut at = 0;
    while let Some(letter) = text[at..].chars().next() {
        let word = text[..at]
            .chars()
            .next_back()
            .is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '/'));
        let end = match letter {
            '0'..='9' if !word => digits(text, at),
            _ => at,
        };
        if end > at {
            let digits = text[at..end].replace(',', "");
            let negative = text[..at].ends_with('-')
                && text[..at - 1].chars().next_back().is_none_or(char::is_whitespace);
            if let Ok(value) = digits.parse::<f64>() {
                let start = if negative { at - 1 } else { at };
                found.push(Numeral { value: if negative { -value } else { value }, start, end });
            }
            at = end;
            continue;
        }
        let han = HAN.iter().position(|digit| text[at..].starts_with(digit));
        let small = SMALL.iter().position(|name| {
            !word
                && text[at..]
                    .strip_prefix(name)
                    .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
        });
        if let Some((index, length)) = han
            .map(|index| (if index == 10 { 1 } else { index }, HAN[index].len()))
            .or(small.map(|index| (index, SMALL[index].len())))
        {
            let value = u32::try_from(index + 1).map_or(0.0, f64::from);
            found.push(Numeral { value, start: at, end: at + length });
            at += length;
            continue;
        }
        at += letter.len_utf8();
    }
    found
}

/// The end of the number that begins at `start`, including thousands groups and decimals.
fn digits(text: &str, start: usize) -> usize {
    let run = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let mut end = start + run(start);
    while text[end..].starts_with(',') && run(end + 1) == 3 {
        end += 4;
    }
    if text[end..].starts_with('.') && run(end + 1) > 0 {
        end += 1 + run(end + 1);
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_single_member_of_series() {
        for text in [
            "delete rows 3 and 4 of a.xlsx",
            "delete rows 3-5 of a.xlsx",
            "delete row 3 and row 4 of a.xlsx",
            "delete rows 3 to 5",
            "delete rows 3, 4 and 5",
            "删除第3行和第4行",
            "删除第3到5行",
            "删除第3、4行",
        ] {
            assert_eq!(mismatch(text, "row", 3.0, &[3.0]), Some(NumberMismatch::Part), "{text}");
        }
        assert_eq!(mismatch("delete rows 3-5 of a.xlsx", "start_row", 3.0, &[3.0, 3.0]), None);
        assert_eq!(mismatch("delete rows 3 and 4", "row", 3.0, &[3.0, 4.0]), None);
        assert_eq!(mismatch("delete row 3 of a.xlsx", "row", 3.0, &[3.0]), None);
    }

    #[test]
    fn rejects_count_as_position() {
        for (text, value) in
            [("delete 3 rows of a.xlsx", 3.0), ("delete two rows", 2.0), ("删除 a.xlsx 的两行", 2.0)]
        {
            assert_eq!(mismatch(text, "row", value, &[value]), Some(NumberMismatch::Count), "{text}");
        }
        assert_eq!(mismatch("insert 3 rows", "count", 3.0, &[3.0]), None);
        assert_eq!(mismatch("删除第 3 行", "row", 3.0, &[3.0]), None);
    }

    #[test]
    fn rejects_numbers_without_their_suffix_or_difference() {
        for (text, value, expect) in [
            ("set the price of to 5k", 5.0, NumberMismatch::Suffix),
            ("set the price of to 5kg", 5.0, NumberMismatch::Suffix),
            ("set the price of to 5 kg", 5.0, NumberMismatch::Suffix),
            ("set the price of to 5%", 0.05, NumberMismatch::Suffix),
            ("set the price of to 5 percent", 0.05, NumberMismatch::Suffix),
            ("set the price of to 1,5", 1.0, NumberMismatch::Part),
            ("set the price of to 1.234,50", 50.0, NumberMismatch::Part),
            ("change the price of by 5", 5.0, NumberMismatch::Difference),
            ("把的价格上调5", 5.0, NumberMismatch::Difference),
            ("set the price to -5", -5.0, NumberMismatch::Negative),
        ] {
            assert_eq!(mismatch(text, "price", value, &[value]), Some(expect), "{text}");
        }
        assert_eq!(mismatch("set the price of to 1,250", "price", 1250.0, &[1250.0]), None);
        assert_eq!(mismatch("set the price of to 5.25.", "price", 5.25, &[5.25]), None);
    }

    #[test]
    fn rejects_bounds_and_approximations() {
        for text in [
            "set the price of to under 5",
            "set the price of to ~5",
            "set the price of to <5",
            "set the price of to ≥ 5",
            "set the price of to at least $5",
            "set the price of to almost 5",
            "set the price of to no more than 5",
            "set the price of to 5+",
            "set the price of to 5-ish",
            "set the price of to 5 eur or less",
            "set the price of to 5 dollars max",
            "set the price of to 5, tops",
            "set the price of to 5 give or take",
            "把 的价格设为 5 以上",
            "把 的价格设为 5 元以下",
            "把 的价格设为 5 以内",
            "把 的价格设为 5 起",
            "把 的价格设为 5 块左右",
            "把 的价格设为 5 上下",
            "把 的价格设为 5 多",
            "把 的价格设为不到 5",
            "把 的价格设为至少5",
            "把 的价格设为将近 5 元",
            "把 的价格设为五以上",
        ] {
            assert_eq!(mismatch(text, "price", 5.0, &[5.0]), Some(NumberMismatch::Bound), "{text}");
        }
        for text in ["set the price of to nearly five hundred", "把 的价格设为五百左右"] {
            assert_eq!(mismatch(text, "price", 500.0, &[500.0]), Some(NumberMismatch::Bound), "{text}");
        }
        for text in [
            "set the price of to 5",
            "set the price of to 5 eur",
            "set the price of to 5, please",
            "change the price of 4 -> 5",
            "把 的价格设为 5 元",
            "把 的价格设为 5，起名为 a",
        ] {
            assert_eq!(mismatch(text, "price", 5.0, &[5.0]), None, "{text}");
        }
        assert_eq!(mismatch("insert 3 rows above row 5", "start_row", 5.0, &[5.0, 3.0]), None);
        assert_eq!(mismatch("show at most 5", "limit", 5.0, &[5.0]), None);
    }
}
