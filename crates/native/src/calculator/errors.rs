//! Errors that several submodules create.

use std::time::Duration;

use toolhub_core::lang::LocalizedText;

use super::functions;

/// The error of an expression without a valid structure.
pub(super) fn missing_operator_or_operand() -> LocalizedText {
    LocalizedText::new(
        "the expression cannot be read: an operator or an operand is missing",
        "无法读懂表达式：缺少运算符或运算数",
    )
}

/// The error of a calculation that exceeds the time limit.
pub(super) fn time_limit_exceeded(limit: Duration) -> LocalizedText {
    let seconds = limit.as_secs();
    LocalizedText::new(
        format!(
            "gave up after {seconds} s: the numbers get too many digits; use smaller exponents, or calculate with the \
             logarithm"
        ),
        format!("计算 {seconds} 秒后放弃：位数太多；请用更小的指数，或改用对数计算"),
    )
}

/// The error of dice and random numbers.
pub(super) fn no_random_numbers() -> LocalizedText {
    LocalizedText::new("there are no dice and no random numbers here", "这里没有骰子，也没有随机数")
}

/// The error of a call of an unknown function.
pub(super) fn unknown_function(name: &str) -> LocalizedText {
    match crate::suggest::nearest(name, functions::names()).first() {
        None if name.is_ascii() => {
            LocalizedText::new(format!("`{name}` is not a known function"), format!("没有函数 `{name}`"))
        }
        _ => unknown_identifier(name),
    }
}

/// The error of an unknown unit, constant or function.
pub(super) fn unknown_identifier(name: &str) -> LocalizedText {
    if !name.is_ascii() {
        return LocalizedText::new(
            format!(
                "`{name}` is not known: write units and functions in English, such as `km`, `kg`, `sqrt`"
            ),
            format!("不认识 `{name}`：单位和函数请用英文，例如 `km`、`kg`、`sqrt`"),
        );
    }
    match crate::suggest::nearest(name, functions::names()).first() {
        Some(suggestion) => LocalizedText::new(
            format!("`{name}` is not known: did you mean `{suggestion}`?"),
            format!("不认识 `{name}`：是否指 `{suggestion}`？"),
        ),
        None => LocalizedText::new(
            format!(
                "`{name}` is not known as a unit, constant or function; give it a value with `{name} = 1; …`"
            ),
            format!("`{name}` 不是已知的单位、常数或函数；可用 `{name} = 1; …` 给它赋值"),
        ),
    }
}
