//! Rounds decimal digits for display: fend rounds incorrectly if the last digit is a zero, so more digits are requested
//! and rounded here.

use super::steps::Precision;

/// Default number of decimal places, and of significant digits for smaller numbers.
const DEFAULT_DIGITS: usize = 10;

/// Additional decimal places requested from fend, so that the displayed ones are correct.
pub(super) const EXTRA_DIGITS: usize = 40;

/// The precision of a displayed number.
#[derive(Debug, Clone, Copy)]
pub(super) struct DigitLimits {
    pub(super) precision: Precision,
    /// Maximum number of significant digits.
    pub(super) trusted: usize,
}

/// Rounds every decimal number in fend's output.
pub(super) fn round_all(text: &str, limits: DigitLimits) -> String {
    // The parts of a complex number share a magnitude: one that is tiny compared to the other is noise.
    let is_complex = text.contains(" + ") || text.contains(" - ");
    let small = if is_complex { Small::DecimalPlaces } else { Small::Significant };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, number) = rest.split_at(start);
        let end = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
        // Skips exponents and names such as `m^2` and `log10`.
        let in_word =
            before.ends_with(|c: char| c.is_alphanumeric() || c == '^' || c == '_') || before.ends_with("^-");
        out.push_str(before);
        let (number, after) = number.split_at(end);
        out.push_str(&if in_word { number.to_owned() } else { round(number, limits, small) });
        rest = after;
    }
    out.push_str(rest);
    out
}

/// How a number below 1 is rounded by default.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Small {
    DecimalPlaces,
    Significant,
}

/// Rounds a decimal number, half up; removes trailing zeros unless a number of digits was requested.
fn round(number: &str, limits: DigitLimits, small: Small) -> String {
    let DigitLimits { precision, trusted } = limits;
    let (integer, fraction) = number.split_once('.').unwrap_or((number, ""));
    let leading = fraction.len() - fraction.trim_start_matches('0').len();
    let is_small = integer.bytes().all(|digit| digit == b'0');
    let significant = |count: usize| match is_small {
        true => (leading + count) as isize,
        false => count as isize - integer.len() as isize,
    };
    let keep = match precision {
        Precision::Decimal(count) => count as isize,
        Precision::Significant(count) => significant(count),
        _ if is_small && small == Small::Significant => significant(DEFAULT_DIGITS),
        _ => DEFAULT_DIGITS as isize,
    };
    let keep = if trusted == usize::MAX { keep } else { keep.min(significant(trusted)) };
    let digits: Vec<u8> = integer.bytes().chain(fraction.bytes()).collect();
    let cut = (integer.len() as isize + keep).clamp(0, digits.len() as isize) as usize;
    let up = digits.get(cut).is_some_and(|digit| *digit >= b'5');
    let mut rounded = digits[..cut].to_vec();
    // A leading zero takes the carry of `9.99`.
    rounded.insert(0, b'0');
    if up {
        for digit in rounded.iter_mut().rev() {
            if *digit < b'9' {
                *digit += 1;
                break;
            }
            *digit = b'0';
        }
    }
    rounded.resize(rounded.len().max(integer.len() + 1), b'0');
    let text: String = rounded.iter().map(|digit| char::from(*digit)).collect();
    let (integer, fraction) = text.split_at(text.len().min(integer.len() + 1));
    let integer = integer.trim_start_matches('0');
    let integer = if integer.is_empty() { "0" } else { integer };
    let fraction = match precision {
        Precision::Decimal(_) => fraction,
        _ => fraction.trim_end_matches('0'),
    };
    if fraction.is_empty() { integer.to_owned() } else { format!("{integer}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rounds_half_up() {
        let check = |input: &str, precision: Precision, expect: &str| {
            assert_eq!(round_all(input, DigitLimits { precision, trusted: usize::MAX }), expect);
        };
        // With ten places, fend returns `0.2` for the first.
        check("approx. 0.1000000000999", Precision::Unspecified, "approx. 0.1000000001");
        check("approx. 8.824977827076287", Precision::Unspecified, "approx. 8.8249778271");
        check("approx. 0.99999999999999", Precision::Unspecified, "approx. 1");
        check("approx. 9.99999999999", Precision::Unspecified, "approx. 10");
        check(
            "approx. 0.000000000000333333333333333",
            Precision::Unspecified,
            "approx. 0.0000000000003333333333",
        );
        check(
            "approx. 1.41421356237309536752 + 0.33333333333333333333i",
            Precision::Decimal(3),
            "approx. 1.414 + 0.333i",
        );
        check("approx. 27.777777777777 m / s^2", Precision::Decimal(2), "approx. 27.78 m / s^2");
        check("approx. 0.0000000000000001224064253 + 2i", Precision::Unspecified, "approx. 0 + 2i");
        check("-2.5", Precision::Decimal(0), "-3");
        check("2.50001", Precision::Decimal(2), "2.50");
        check("123456.789", Precision::Significant(3), "123000");
        check("99999", Precision::Significant(2), "100000");
        check("0.00012345", Precision::Significant(2), "0.00012");
        check("no numbers", Precision::Unspecified, "no numbers");
        check("33.333333333333333%", Precision::Unspecified, "33.3333333333%");
        let trusted = DigitLimits { precision: Precision::Decimal(20), trusted: 15 };
        assert_eq!(round_all("1.41421356237309536752", trusted), "1.41421356237310");
    }

    proptest! {
        #[test]
        fn rounding_matches_integer_arithmetic(value in 0_u64..1_000_000_000_000, precision in 0_usize..9) {
            let (integer, fraction) = (value / 1_000_000_000, value % 1_000_000_000);
            let text = format!("{integer}.{fraction:09}");
            let scale = 10_u64.pow(9 - precision as u32);
            let rounded = (value + scale / 2) / scale;
            let unit = 10_u64.pow(precision as u32);
            let expect = if precision == 0 {
                rounded.to_string()
            } else {
                format!("{}.{:0precision$}", rounded / unit, rounded % unit)
            };
            prop_assert_eq!(round_all(&text, DigitLimits { precision: Precision::Decimal(precision), trusted: usize::MAX }), expect);
        }
    }
}
