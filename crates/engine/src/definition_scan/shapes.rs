//! Detects texts with a suspicious shape: moved out of view by whitespace, encoded, or URLs with credentials.

use toolhub_core::lang::LocalizedText;

use super::{FindingKind, TextFinding, quote_of};

/// Number of consecutive blanks that move text out of view.
const MIN_HIDING_BLANKS: usize = 48;
/// Number of empty lines that do so.
const MIN_HIDING_LINES: usize = 8;
/// Length from which a run of letters and digits is checked for an encoding.
const MIN_ENCODED_CHARS: usize = 96;

pub(super) fn scan(text: &str) -> Vec<TextFinding> {
    out_of_sight(text).into_iter().chain(encoded(text)).chain(address(text)).collect()
}

fn is_blank(character: char) -> bool {
    character.is_whitespace() || matches!(character, '\u{2800}' | '\u{200B}' | '\u{3164}')
}

/// Text after many blanks or many empty lines.
fn out_of_sight(text: &str) -> Option<TextFinding> {
    let (mut blanks, mut lines) = (0, 0);
    for (at, character) in text.char_indices() {
        if is_blank(character) {
            lines += usize::from(character == '\n');
            blanks = if character == '\n' { 0 } else { blanks + 1 };
            continue;
        }
        if (blanks >= MIN_HIDING_BLANKS || lines >= MIN_HIDING_LINES)
            && text[..at].chars().any(|before| !is_blank(before))
        {
            let (en, zh) = if lines >= MIN_HIDING_LINES {
                (format!("text behind {lines} line breaks"), format!("{lines} 个换行之后的文字"))
            } else {
                (format!("text behind {blanks} blanks"), format!("{blanks} 个空白之后的文字"))
            };
            return Some(TextFinding {
                kind: FindingKind::HiddenByWhitespace,
                quote: quote_of(&text[at..]),
                why: LocalizedText::new(format!("{en}, out of sight"), format!("{zh}，容易被忽略")),
            });
        }
        (blanks, lines) = (0, 0);
    }
    None
}

/// A run of base64 or hexadecimal characters.
fn encoded(text: &str) -> Option<TextFinding> {
    let belongs = |character: char| {
        character.is_ascii_alphanumeric() || matches!(character, '+' | '/' | '-' | '_' | '=')
    };
    let blob = text
        .split(|character: char| !belongs(character))
        .find(|run| run.len() >= MIN_ENCODED_CHARS && is_encoded(run))?;
    let length = blob.len();
    Some(TextFinding {
        kind: FindingKind::Encoded,
        quote: quote_of(&blob[..48]) + "…",
        why: LocalizedText::new(
            format!("{length} characters of encoded text that you cannot read"),
            format!("{length} 个字符的编码内容，无法直接读懂"),
        ),
    })
}

fn is_encoded(run: &str) -> bool {
    let count = |test: fn(&u8) -> bool| run.bytes().filter(test).count();
    let digits = count(u8::is_ascii_digit);
    let hexadecimal = run.bytes().all(|byte| byte.is_ascii_hexdigit()) && digits > 0;
    let mixed =
        count(u8::is_ascii_uppercase) * 10 > run.len() && count(u8::is_ascii_lowercase) * 10 > run.len();
    // Identifiers joined by `-` or `_` are long too, but have few digits.
    hexadecimal
        || (mixed && digits * 20 > run.len() && count(|byte| matches!(byte, b'-' | b'_')) * 12 < run.len())
}

/// A URL that contains a password.
fn address(text: &str) -> Option<TextFinding> {
    let start_of_url = text.match_indices("://").find_map(|(at, _)| {
        let scheme = text[..at].rsplit(|character: char| !character.is_ascii_alphanumeric()).next()?;
        let rest = &text[at + 3..];
        let authority = rest
            .split(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\'' | '`' | '<' | ')' | '?'))
            .next()?;
        let (login, _) = authority.rsplit_once('@')?;
        let (_, password) = login.split_once(':')?;
        (scheme.starts_with("http") && is_secret(password))
            .then(|| &text[at - scheme.len()..at + 3 + authority.len()])
    })?;
    let hidden = start_of_url
        .split_once("://")
        .and_then(|(scheme, rest)| Some(format!("{scheme}://…@{}", rest.rsplit_once('@')?.1)));
    Some(TextFinding {
        kind: FindingKind::Address,
        quote: quote_of(&hidden.unwrap_or_default()),
        why: LocalizedText::new("an address with a password in it", "地址中含有密码"),
    })
}

/// Whether a password is real, not a placeholder.
fn is_secret(password: &str) -> bool {
    let word = password.to_ascii_lowercase();
    let placeholder = ["pass", "pwd", "secret", "token", "key", "xxx", "***", "..."];
    !word.is_empty()
        && !word.contains(['{', '<', '[', '$', '%'])
        && !placeholder.iter().any(|part| word.contains(part))
}
