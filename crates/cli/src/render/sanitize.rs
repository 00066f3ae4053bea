//! Sanitizes text for display: text of others is made harmless, and only styles of this program become terminal styles.
//!
//! A style is written into a text as a mark with a random nonce of this process. No text from outside can contain the nonce, so a
//! forged style is shown as plain characters.

use std::borrow::Cow;
use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::OnceLock;

use toolhub_engine::definition_scan::escape_invisible;

/// Begins the mark of a style: a Unicode noncharacter.
const MARK: char = '\u{FDD0}';
/// Begins each further line of a text, so that it cannot be mistaken for a separate line.
const CONTINUED: &str = "\n  │ ";

/// The style of a text. `{style}` begins it, `{style:#}` ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Style {
    /// Default style.
    #[default]
    Plain,
    /// A heading.
    Bold,
    /// Less important text.
    Dim,
    /// Success.
    Good,
    /// Failure.
    Bad,
    /// Warning.
    Odd,
    /// A name.
    Name,
}

const STYLES: [(Style, char, &str); 6] = [
    (Style::Bold, 'b', "\u{1b}[1m"),
    (Style::Dim, 'd', "\u{1b}[2m"),
    (Style::Bad, 'r', "\u{1b}[31m"),
    (Style::Good, 'g', "\u{1b}[32m"),
    (Style::Odd, 'y', "\u{1b}[33m"),
    (Style::Name, 'c', "\u{1b}[36m"),
];
/// The letter of the mark that ends a style, and its escape sequence.
const END: (char, &str) = ('0', "\u{1b}[0m");

impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((_, letter, _)) = STYLES.iter().find(|(style, _, _)| style == self) else { return Ok(()) };
        let letter = if f.alternate() { END.0 } else { *letter };
        write!(f, "{MARK}{letter}{}", nonce())
    }
}

/// The nonce that no text from outside can contain.
fn nonce() -> &'static str {
    static NONCE: OnceLock<String> = OnceLock::new();
    NONCE.get_or_init(|| {
        // `RandomState` is seeded with random numbers of the operating system.
        let number = || std::hash::RandomState::new().build_hasher().finish();
        format!("{:016x}{:016x}", number(), number())
    })
}

/// How line breaks in a text are rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Breaks {
    /// Further lines begin with [`CONTINUED`].
    Continued,
    /// Unchanged, for texts that are expected to have several lines.
    Kept,
}

/// Renders a text for output: marks of this program become escape sequences, everything else is sanitized.
pub(crate) fn with_styles(text: &str, breaks: Breaks) -> String {
    let mut parts = text.split(MARK);
    let mut out = sanitized(parts.next().unwrap_or_default(), breaks).into_owned();
    for part in parts {
        match style_of(part) {
            Some((codes, rest)) => {
                out.push_str(codes);
                out.push_str(&sanitized(rest, breaks));
            }
            None => {
                out.push_str("<U+FDD0>");
                out.push_str(&sanitized(part, breaks));
            }
        }
    }
    out
}

/// The escape sequence of a mark, and the text after it.
fn style_of(part: &str) -> Option<(&'static str, &str)> {
    let mut letters = part.chars();
    let letter = letters.next()?;
    let rest = letters.as_str().strip_prefix(nonce())?;
    let codes = STYLES.iter().find(|(_, own, _)| *own == letter).map(|(_, _, codes)| *codes);
    codes.or((letter == END.0).then_some(END.1)).map(|codes| (codes, rest))
}

/// Replaces terminal escape sequences, invisible characters and bidirectional controls. Tabs are kept.
pub(crate) fn sanitized(text: &str, breaks: Breaks) -> Cow<'_, str> {
    let plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte) || matches!(byte, b'\t'));
    if plain {
        return Cow::Borrowed(text);
    }
    let line = |line: &str| {
        let line = line.strip_suffix('\r').unwrap_or(line);
        // Other line break characters, including a `\r` that was separated from its `\n`.
        let mut output = escape_invisible(line).into_owned();
        for (line_break, mark) in ESCAPED_BREAKS {
            if output.contains(line_break) {
                output = output.replace(line_break, mark);
            }
        }
        output
    };
    let joined = match breaks {
        Breaks::Continued => CONTINUED,
        Breaks::Kept => "\n",
    };
    Cow::Owned(text.split('\n').map(line).collect::<Vec<_>>().join(joined))
}

const ESCAPED_BREAKS: [(char, &str); 4] =
    [('\r', "<U+000D>"), ('\u{2028}', "<U+2028>"), ('\u{2029}', "<U+2029>"), (MARK, "<U+FDD0>")];

/// A text on one line: line breaks and tabs are escaped, too.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    let output = sanitized(text, Breaks::Kept);
    if !output.contains(['\n', '\t']) {
        return output;
    }
    Cow::Owned(output.replace('\n', "<U+000A>").replace('\t', "<U+0009>"))
}

/// JSON that is safe to print on a terminal: escapes further characters, which does not change its value.
pub(crate) fn sanitized_json(json: &str) -> Cow<'_, str> {
    if json.bytes().all(|byte| (b' '..=b'~').contains(&byte) || byte == b'\n') {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        let mut bytes = [0; 4];
        let text: &str = character.encode_utf8(&mut bytes);
        let keeps = character == '\n' || (character != MARK && sanitized(text, Breaks::Kept) == text);
        if keeps {
            out.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            out += &format!("\\u{unit:04x}");
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: [(&str, &str); 12] = [
        ("a\u{1b}[2Jb", "a<U+001B>[2Jb"),
        ("\u{1b}]0;title\u{7}", "<U+001B>]0;title<U+0007>"),
        ("a\rb", "a<U+000D>b"),
        ("a\u{8}b\u{7f}", "a<U+0008>b<U+007F>"),
        ("\u{9b}31m\u{85}", "<U+009B>31m<U+0085>"),
        ("\u{202e}a\u{2066}", "<U+202E>a<U+2066>"),
        ("a\u{200b}b\u{feff}", "a<U+200B>b<U+FEFF>"),
        ("a\u{2028}b\u{2029}", "a<U+2028>b<U+2029>"),
        ("a\n✓ all good", "a\n  │ ✓ all good"),
        ("a\r\n✓ all good", "a\n  │ ✓ all good"),
        ("\u{fdd0}g0000✓", "<U+FDD0>g0000✓"),
        ("\u{fdd0}", "<U+FDD0>"),
    ];

    #[test]
    fn escapes_control_sequences_in_untrusted_text() {
        for (text, expect) in HOSTILE {
            assert_eq!(with_styles(text, Breaks::Continued), expect, "{text:?}");
        }
        assert_eq!(one_line("a\n✓\tb"), "a<U+000A>✓<U+0009>b");
        assert_eq!(with_styles("a\n\tb\r\n", Breaks::Kept), "a\n\tb\n");
        let json = sanitized_json("{\"a\":\"\u{9b}\u{202e}\u{7f}\u{fdd0}中\"}");
        assert_eq!(json, "{\"a\":\"\\u009b\\u202e\\u007f\\ufdd0中\"}");
    }

    #[test]
    fn renders_own_styles_and_escapes_forged_ones() {
        let (bold, plain) = (Style::Bold, Style::Plain);
        let text = format!("{bold}x{bold:#} {plain}y{plain:#} \u{1b}[1mz");
        assert_eq!(with_styles(&text, Breaks::Continued), "\u{1b}[1mx\u{1b}[0m y <U+001B>[1mz");
    }
}
