//! Converts the errors of fend to errors with a correction. fend reports errors as English text only, so the text is
//! matched here, and nowhere else.

use std::time::Duration;

use toolhub_core::lang::LocalizedText;

use super::currencies::is_currency;
use super::errors;

/// Messages of fend without variable parts, each with the English and the Chinese error.
const FIXED: [(&str, &str, &str); 8] = [
    (
        "unable to get the current date",
        "there is no clock here: use `get_time`",
        "这里没有时钟：请使用 `get_time`",
    ),
    ("division by zero", "division by zero: the divisor comes to 0", "除数为零：除数的结果是 0"),
    ("modulo by zero", "modulo by zero: the divisor comes to 0", "对零取余：除数的结果是 0"),
    (
        "exponent too large",
        "exponent too large: calculate with the logarithm instead",
        "指数太大：请改用对数计算",
    ),
    (
        "value is too large",
        "value is too large: calculate with the logarithm instead",
        "数值太大：请改用对数计算",
    ),
    (
        "expected a number",
        "expected a number: an operand is missing, or is no number",
        "这里应是数字：缺少运算数，或者它不是数字",
    ),
    (
        "right-hand side of unit conversion has a numerical value",
        "right-hand side of unit conversion has a numerical value: name a unit alone after `to`",
        "换算的目标带有数值：`to` 之后只写单位",
    ),
    (
        "expected an object",
        "expected an object: `of` follows a percentage: `20% of 50`",
        "`of` 要跟在百分数之后：`20% of 50`",
    ),
];

/// Converts a message of fend. Returns other messages unchanged, in English.
pub(super) fn translate(message: &str, limit: Duration) -> LocalizedText {
    if let Some(name) = unknown_identifier(message) {
        return errors::unknown_identifier(name);
    }
    if let Some((_, english, chinese)) = FIXED.iter().find(|(known, ..)| *known == message) {
        return LocalizedText::new(*english, *chinese);
    }
    match message {
        "interrupted" => errors::time_limit_exceeded(limit),
        "exchange rates are not available" => no_exchange_rates(),
        "random numbers are not available" => errors::no_random_numbers(),
        "unexpected input found" | "expected a character" | "expected a token" | "error" => {
            errors::missing_operator_or_operand()
        }
        _ if message.split('\'').filter(|unit| is_currency(unit)).count() == 2 => no_exchange_rates(),
        _ if message.contains("expected a value, instead found") => LocalizedText::new(
            format!("{message}: an operand is missing"),
            format!("缺少运算数（{message}）"),
        ),
        _ if message.contains("must lie in the interval") => LocalizedText::new(
            format!("{message}: the argument is out of the function's range"),
            format!("参数超出了函数的范围（{message}）"),
        ),
        _ => match incompatible_units(message) {
            Some(chinese) => LocalizedText::new(message, chinese),
            None => LocalizedText::from(message),
        },
    }
}

/// Whether fend reports an unknown unit, constant or function.
pub(super) fn is_unknown_identifier(message: &str) -> bool {
    message.starts_with("unknown identifier")
}

/// The error of a conversion between currencies.
fn no_exchange_rates() -> LocalizedText {
    LocalizedText::new(
        "there are no exchange rates here: look up the rate, leave out the currency and multiply by the rate",
        "这里没有汇率：请先查出汇率，去掉货币单位后乘以汇率",
    )
}

fn unknown_identifier(message: &str) -> Option<&str> {
    message.strip_prefix("unknown identifier '")?.strip_suffix('\'')
}

/// The Chinese text of `cannot convert from s to m: units 'second' and 'meter' are incompatible`.
fn incompatible_units(message: &str) -> Option<String> {
    let rest = message.strip_prefix("cannot convert from ")?.strip_suffix("' are incompatible")?;
    let (from, rest) = rest.split_once(" to ")?;
    let (to, rest) = rest.split_once(": units '")?;
    let (from_base, to_base) = rest.split_once("' and '")?;
    Some(format!("无法把 {from} 换算成 {to}：单位 {from_base} 和 {to_base} 不相容"))
}

#[cfg(test)]
mod tests {
    use toolhub_core::lang::{Lang, Localize as _};

    use super::*;

    #[test]
    fn translates_messages_of_the_engine() {
        let check = |message: &str, english: &str, chinese: &str| {
            let error = translate(message, Duration::from_secs(2));
            assert_eq!(
                (error.localize(Lang::En).as_str(), error.localize(Lang::Zh).as_str()),
                (english, chinese)
            );
        };
        for (message, english, chinese) in FIXED {
            check(message, english, chinese);
            assert_ne!(english, chinese);
        }
        check(
            "cannot convert from s to m: units 'second' and 'meter' are incompatible",
            "cannot convert from s to m: units 'second' and 'meter' are incompatible",
            "无法把 s 换算成 m：单位 second 和 meter 不相容",
        );
        let no_rates = "there are no exchange rates here: look up the rate, leave out the currency and multiply by the rate";
        for message in [
            "exchange rates are not available",
            "cannot convert from $ to €: units '$' and '€' are incompatible",
        ] {
            check(message, no_rates, "这里没有汇率：请先查出汇率，去掉货币单位后乘以汇率");
        }
        check(
            "interrupted",
            "gave up after 2 s: the numbers get too many digits; use smaller exponents, or calculate with the logarithm",
            "计算 2 秒后放弃：位数太多；请用更小的指数，或改用对数计算",
        );
        check(
            "2 must lie in the interval [-1, 1]",
            "2 must lie in the interval [-1, 1]: the argument is out of the function's range",
            "参数超出了函数的范围（2 must lie in the interval [-1, 1]）",
        );
        check(
            "expected a value, instead found '*'",
            "expected a value, instead found '*': an operand is missing",
            "缺少运算数（expected a value, instead found '*'）",
        );
        check(
            "random numbers are not available",
            "there are no dice and no random numbers here",
            "这里没有骰子，也没有随机数",
        );
        check(
            "unexpected input found",
            "the expression cannot be read: an operator or an operand is missing",
            "无法读懂表达式：缺少运算符或运算数",
        );
        check(
            "unknown identifier 'sqr'",
            "`sqr` is not known: did you mean `sqrt`?",
            "不认识 `sqr`：是否指 `sqrt`？",
        );
        check("base must be at least 2", "base must be at least 2", "base must be at least 2");
    }
}
