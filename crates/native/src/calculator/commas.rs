//! The two meanings of a comma: thousands separator, or argument separator.

use toolhub_core::lang::LocalizedText;

use super::tokens::Token;

/// The error of a comma that separates neither.
pub(super) fn misplaced_comma() -> LocalizedText {
    LocalizedText::new(
        "`,` separates thousands, in groups of three, or the arguments of a function such as `max`: write the decimal \
         point as `.`",
        "`,` 用于分隔千位（每三位一组），或分隔 `max` 等函数的参数：小数点请写成 `.`",
    )
}

/// The three digits after the comma at `at`, if it separates thousands.
pub(super) fn thousands_at(tokens: &[Token], at: usize) -> Option<&str> {
    let before = tokens.get(..at)?;
    let [Token::Comma { spaced: false }, Token::Number(digits), ..] = tokens.get(at..)? else { return None };
    let Some(Token::Number(first)) = before.last() else { return None };
    // `1,234,567`: only the first group may have fewer than three digits.
    let follows = matches!(before, [.., Token::Number(_), Token::Comma { .. }, _]);
    let fits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let first_fits = fits(first) && if follows { first.len() == 3 } else { (1..=3).contains(&first.len()) };
    let integer = digits.split('.').next().unwrap_or_default();
    (first_fits && integer.len() == 3 && fits(integer)).then_some(digits)
}

/// Rejects `sum(1,234, 5)`, which is ambiguous.
pub(super) fn refuse_ambiguous(name: &str, tokens: &[Token]) -> Result<(), LocalizedText> {
    let commas = || (0..tokens.len()).filter(|at| matches!(tokens[*at], Token::Comma { .. }));
    let as_thousands = commas().any(|at| thousands_at(tokens, at).is_some());
    let spaced = commas().any(|at| matches!(tokens[at], Token::Comma { spaced: true }));
    if as_thousands && (spaced || matches!(name, "log" | "round")) {
        return Err(LocalizedText::new(
            format!("the commas of `{name}(…)` have two readings: leave out the separators of thousands"),
            format!("`{name}(…)` 中的逗号有两种读法：请去掉千位分隔符"),
        ));
    }
    Ok(())
}
