//! Splits text into runs: a word, a part of an identifier, or a sequence of Chinese characters.

/// Maximum length of a word; longer sequences are keys, hashes or encoded data.
const MAX_WORD_CHARS: usize = 48;

/// A token of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TextRun<'a> {
    /// A word or one part of an identifier, in lowercase.
    Word(&'a str),
    /// A whole identifier, after its parts: `readfile` for `readFile`.
    Compound(&'a str),
    /// Chinese, Japanese or Korean text, which has no spaces between words.
    Han(&'a str),
}

/// The script of a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TermScript {
    /// Characters without spaces between words.
    Han,
    /// Words separated by spaces.
    Spaced,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CharacterKind {
    Lower,
    Upper,
    Digit,
}

/// Whether a character belongs to a script without spaces.
pub(crate) fn is_han(c: char) -> bool {
    matches!(c,
        '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3134f}' | '々')
}

/// Maps full-width letters and digits, common in Chinese text, to their ASCII forms.
fn half_width(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        '’' | '‘' => '\'',
        _ => c,
    }
}

/// Calls `sink` with every run of `text`, in order.
pub(crate) fn runs(text: &str, mut sink: impl FnMut(TextRun<'_>)) {
    let mut letters: Vec<char> = Vec::new();
    let mut han = String::new();
    let mut parts = Parts::default();
    for c in text.chars().map(half_width) {
        if is_han(c) {
            parts.emit(&mut letters, &mut sink);
            han.push(c);
            continue;
        }
        if !han.is_empty() {
            sink(TextRun::Han(&han));
            han.clear();
        }
        if c.is_alphanumeric() {
            letters.push(c);
        } else {
            parts.emit(&mut letters, &mut sink);
        }
    }
    parts.emit(&mut letters, &mut sink);
    if !han.is_empty() {
        sink(TextRun::Han(&han));
    }
}

/// Reusable buffers for splitting a word into its parts.
#[derive(Default)]
struct Parts {
    part: String,
    compound: String,
}

impl Parts {
    fn emit(&mut self, letters: &mut Vec<char>, sink: &mut impl FnMut(TextRun<'_>)) {
        if letters.is_empty() {
            return;
        }
        if letters.len() <= MAX_WORD_CHARS {
            self.cut(letters, sink);
        }
        letters.clear();
    }

    fn cut(&mut self, letters: &[char], sink: &mut impl FnMut(TextRun<'_>)) {
        self.part.clear();
        self.compound.clear();
        let mut count = 0;
        let mut previous = None;
        for (index, c) in letters.iter().enumerate() {
            let kind = kind(*c);
            let next = letters.get(index + 1).map(|c| self::kind(*c));
            if previous.is_some_and(|previous| is_border(previous, kind, next)) {
                sink(TextRun::Word(&self.part));
                self.part.clear();
                count += 1;
            }
            for small in c.to_lowercase() {
                self.part.push(small);
                self.compound.push(small);
            }
            previous = Some(kind);
        }
        sink(TextRun::Word(&self.part));
        if count > 0 {
            sink(TextRun::Compound(&self.compound));
        }
    }
}

fn kind(c: char) -> CharacterKind {
    if c.is_numeric() {
        CharacterKind::Digit
    } else if c.is_uppercase() {
        CharacterKind::Upper
    } else {
        CharacterKind::Lower
    }
}

/// `readFile` is split before F, `HTTPServer` before S, `base64` before 6; `IDs` and `PDFs` are not split.
fn is_border(previous: CharacterKind, kind: CharacterKind, next: Option<CharacterKind>) -> bool {
    match (previous, kind) {
        (CharacterKind::Lower, CharacterKind::Upper) => true,
        (CharacterKind::Upper, CharacterKind::Upper) => next == Some(CharacterKind::Lower),
        (a, b) => (a == CharacterKind::Digit) != (b == CharacterKind::Digit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &[&str]) {
        let mut found = Vec::new();
        runs(text, |run| {
            found.push(match run {
                TextRun::Word(word) => word.to_owned(),
                TextRun::Compound(compound) => format!("={compound}"),
                TextRun::Han(han) => format!("#{han}"),
            });
        });
        assert_eq!(found, expect, "{text}");
    }

    #[test]
    fn splits_identifiers() {
        check("read_data_from_excel", &["read", "data", "from", "excel"]);
        check("readDataFromExcel", &["read", "data", "from", "excel", "=readdatafromexcel"]);
        check("HTTPServer2", &["http", "server", "2", "=httpserver2"]);
        check("aws.s3-list", &["aws", "s", "3", "=s3", "list"]);
        check("Read the FILE!", &["read", "the", "file"]);
    }

    #[test]
    fn splits_chinese_from_latin_words() {
        check("帮我打开README文件", &["#帮我打开", "readme", "#文件"]);
        check("ＰＤＦ文档", &["pdf", "#文档"]);
    }

    #[test]
    fn skips_text_without_words() {
        check(&"x".repeat(300), &[]);
        check("", &[]);
        check("🙂 — …", &[]);
    }
}
