//! Detects impossible numbers: NaN, infinity, or a probability above one.

use toolhub_core::lang::LocalizedText;

/// Problems with the numbers of a text.
pub(super) fn issues(text: &str) -> Vec<LocalizedText> {
    let mut issues = Vec::new();
    for word in text.split(|letter: char| letter.is_whitespace() || ",;:=，；：()[]{}\"".contains(letter))
    {
        if ["NaN", "nan", "-NaN", "inf", "-inf", "+inf", "-Infinity", "+Infinity"].contains(&word)
            || (word == "Infinity" && text.split_whitespace().count() <= 2)
        {
            issues.push(LocalizedText::new(
                format!("`{word}` is not a number"),
                format!("`{word}` 不是有效的数值"),
            ));
            break;
        }
    }
    if let Some(number) = invalid_probability(text) {
        issues.push(LocalizedText::new(
            format!("a probability of {number} is not between 0 and 1"),
            format!("概率 {number} 不在 0 到 1 之间"),
        ));
    }
    issues
}

/// A probability outside 0 to 1 that is not a percentage.
fn invalid_probability(text: &str) -> Option<f64> {
    let lower = text.to_lowercase();
    for key in ["probability", "概率"] {
        for (at, _) in lower.match_indices(key) {
            let after = &lower[at + key.len()..];
            let after = after.trim_start_matches(|letter: char| " :=为是isof：\t".contains(letter));
            let number: String = after
                .chars()
                .take_while(|letter| letter.is_ascii_digit() || "+-.".contains(*letter))
                .collect();
            let rest = after[number.len()..].trim_start();
            let trimmed = number.trim_end_matches('.');
            let Ok(value) = trimmed.parse::<f64>() else { continue };
            let percent = rest.starts_with(['%', '％', '‰', '/']) || rest.starts_with("percent");
            if !percent && !(0.0..=1.0).contains(&value) {
                return Some(value);
            }
        }
    }
    None
}
