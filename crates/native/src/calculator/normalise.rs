//! Normalizes typed text: converts full-width and typographic characters to ASCII. [`super::tokens`] interprets it.

/// Phrases before an expression.
const REQUESTS: [&str; 17] = [
    "=",
    "what is ",
    "what's ",
    "how much is ",
    "calculate ",
    "compute ",
    "evaluate ",
    "please ",
    "请问",
    "请",
    "帮我",
    "计算",
    "算一下",
    "算",
    "求",
    ":",
    ",",
];

/// Phrases after an expression.
const QUESTIONS: [&str; 11] =
    ["等于多少", "等于几", "是多少", "是几", "得多少", "多少", "equals", "等于", "=", "?", "。"];

/// The expression in ASCII characters, without the question around it.
pub(super) fn normalise(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut in_superscript = false;
    for c in text.chars() {
        if let Some(digit) = superscript(c) {
            if !in_superscript {
                plain.push('^');
            }
            in_superscript = true;
            plain.push(digit);
            continue;
        }
        in_superscript = false;
        match replacement(c) {
            Some(words) => plain.push_str(words),
            None => plain.push(narrow(c)),
        }
    }
    let plain = plain.replace("**", "^");
    let question = strip_question(&plain);
    // Lines are separate statements if one of them is an assignment.
    if question.contains('=') { question.replace('\n', ";") } else { question.to_owned() }
}

fn strip_question(text: &str) -> &str {
    let mut text = text.trim();
    while let Some(rest) = REQUESTS.iter().find_map(|request| strip_prefix(text, request)) {
        text = rest.trim_start();
    }
    while let Some(rest) = QUESTIONS.iter().find_map(|question| text.strip_suffix(question)) {
        text = rest.trim_end();
    }
    text
}

fn strip_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (before, rest) = text.split_at_checked(prefix.len())?;
    before.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// Converts a full-width character to ASCII.
fn narrow(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xfee0).unwrap_or(c),
        '\u{3000}' => ' ',
        _ => c,
    }
}

fn superscript(c: char) -> Option<char> {
    let index = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺".chars().position(|known| known == c)?;
    "0123456789-+".chars().nth(index)
}

fn replacement(c: char) -> Option<&'static str> {
    Some(match c {
        '×' | '✕' | '✖' | '·' | '⋅' | '∙' | '•' | '∗' => "*",
        '÷' | '∕' | '⁄' => "/",
        '−' | '–' | '—' | '‒' | '﹣' | '‐' | '‑' => "-",
        '﹢' => "+",
        '［' | '【' | '[' | '｛' | '{' => "(",
        '］' | '】' | ']' | '｝' | '}' => ")",
        '、' => ",",
        '￥' => "¥",
        '￡' => "£",
        '≠' => "!=",
        '√' => " sqrt ",
        '∛' => " cbrt ",
        '′' | '’' | '‘' | '＇' => "'",
        '″' | '”' | '“' | '＂' => "\"",
        '½' => " 1/2",
        '⅓' => " 1/3",
        '⅔' => " 2/3",
        '¼' => " 1/4",
        '¾' => " 3/4",
        '℃' => "°C",
        '℉' => "°F",
        '\u{2126}' | '\u{3a9}' => "ohm",
        'μ' => "µ",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn normalizes_typed_text() {
        let check = |input: &str, expect: &str| assert_eq!(normalise(input), expect, "{input}");
        check("（１＋２）×３÷４", "(1+2)*3/4");
        check("5 − 3 – 1", "5 - 3 - 1");
        check("2**10", "2^10");
        check("50％", "50%");
        check("1，234，567", "1,234,567");
        check("1+1=", "1+1");
        check("1+1=？", "1+1");
        check("1+1 等于多少？", "1+1");
        check("=SUM", "SUM");
        check("What is 2+2?", "2+2");
        check("请问，计算：2+2 是多少", "2+2");
        check("5² + x⁻¹", "5^2 + x^-1");
        check("√16", "sqrt 16");
        check("1½", "1 1/2");
        check("【1+2】", "(1+2)");
        check("1==2", "1==2");
        check("a = 1\nb = 2\na + b", "a = 1;b = 2;a + b");
        check("1 +\n2", "1 +\n2");
        check("", "");
        check("=？=", "");
    }

    proptest! {
        #[test]
        fn keeps_plain_text_unchanged(text in any::<String>()) {
            let once = normalise(&text);
            prop_assert_eq!(normalise(&once), once);
        }
    }
}
