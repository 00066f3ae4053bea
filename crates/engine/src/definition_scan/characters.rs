//! Detects invisible characters and terminal control characters, except where a script or an emoji requires them; and
//! escapes texts for printing.

use std::borrow::Cow;
use std::ops::Range;

use toolhub_core::lang::LocalizedText;

use super::{FindingKind, TextFinding};

/// Number of characters quoted around a suspicious one.
const QUOTE_CONTEXT_CHARS: usize = 24;
/// Maximum number of quoted characters of a run.
const MAX_QUOTED_RUN_CHARS: usize = 6;
/// The flags that are encoded with tag characters.
const FLAGS: [&str; 3] = ["gbeng", "gbsct", "gbwls"];

/// Why a character is suspicious in its context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CharacterClass {
    Control,
    Unseen,
    Direction,
    Tag,
    Selector,
    PrivateUse,
}

/// A run of characters that are suspicious for the same reason.
#[derive(Debug, Clone)]
struct Run {
    class: CharacterClass,
    range: Range<usize>,
    count: usize,
}

/// Escapes every suspicious character as `<U+200B>`, so that the text is safe to print on a terminal.
pub fn escape_invisible(text: &str) -> Cow<'_, str> {
    let Some(mut output) = escaped(text) else { return Cow::Borrowed(text) };
    // A joiner that was part of an emoji is suspicious once the character before it is escaped. Each round escapes at least one.
    while let Some(further) = escaped(&output) {
        output = further;
    }
    Cow::Owned(output)
}

/// The text with its suspicious characters escaped; `None` if it has none.
fn escaped(text: &str) -> Option<String> {
    let runs = runs(text);
    if runs.is_empty() {
        return None;
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut from = 0;
    for run in runs {
        out.push_str(&text[from..run.range.start]);
        text[run.range.clone()].chars().for_each(|character| out.push_str(&name(character)));
        from = run.range.end;
    }
    out.push_str(&text[from..]);
    Some(out)
}

pub(super) fn name(character: char) -> String {
    format!("<U+{:04X}>", u32::from(character))
}

/// One finding per kind of suspicious character.
pub(super) fn scan(text: &str) -> Vec<TextFinding> {
    let runs = runs(text);
    let mut seen: Vec<(CharacterClass, TextFinding)> = Vec::new();
    for run in &runs {
        if seen.iter().any(|(class, _)| *class == run.class) {
            continue;
        }
        let count = runs.iter().filter(|other| other.class == run.class).map(|other| other.count).sum();
        let kind =
            if run.class == CharacterClass::Control { FindingKind::Control } else { FindingKind::Invisible };
        let why = why(run.class, count, &hidden(text, &runs));
        seen.push((run.class, TextFinding { kind, quote: quote(text, run), why }));
    }
    seen.into_iter().map(|(_, seen)| seen).collect()
}

fn why(class: CharacterClass, count: usize, hidden: &str) -> LocalizedText {
    let (en, zh) = match class {
        CharacterClass::Control => {
            ("control characters, which can rewrite what a terminal shows", "控制字符，可改写终端显示")
        }
        CharacterClass::Unseen => ("invisible characters", "不可见字符"),
        CharacterClass::Direction => (
            "characters that turn the direction of writing, so that it reads other than it is",
            "改变书写方向的字符，显示与实际不同",
        ),
        CharacterClass::Tag => {
            ("tag characters, which are invisible and which a model reads", "标签字符：人看不见而模型能读到")
        }
        CharacterClass::Selector => (
            "variation selectors that select nothing, which can carry hidden text",
            "多余的变体选择符，可夹带隐藏文字",
        ),
        CharacterClass::PrivateUse => {
            ("private-use characters, which mean nothing to others", "私用区字符，对他人没有意义")
        }
    };
    let (hidden_en, hidden_zh) = match (class, hidden.is_empty()) {
        (CharacterClass::Tag, false) => (format!(", here `{hidden}`"), format!("，内容为 `{hidden}`")),
        _ => (String::new(), String::new()),
    };
    LocalizedText::new(format!("{count} × {en}{hidden_en}"), format!("{count} 个{zh}{hidden_zh}"))
}

/// The text encoded in tag characters.
fn hidden(text: &str, runs: &[Run]) -> String {
    let tags = runs.iter().filter(|run| run.class == CharacterClass::Tag);
    let letters = tags.flat_map(|run| text[run.range.clone()].chars()).filter_map(decode_tag);
    letters.take(super::MAX_QUOTE_CHARS).collect()
}

/// The visible character that a tag character encodes.
pub(super) fn decode_tag(character: char) -> Option<char> {
    let code = u32::from(character).checked_sub(0xE0000)?;
    char::from_u32(code).filter(|letter| (' '..='~').contains(letter))
}

/// A run with its context.
fn quote(text: &str, run: &Run) -> String {
    let before =
        text[..run.range.start].char_indices().rev().nth(QUOTE_CONTEXT_CHARS - 1).map_or(0, |(at, _)| at);
    let after = text[run.range.end..]
        .char_indices()
        .nth(QUOTE_CONTEXT_CHARS)
        .map_or(text.len(), |(at, _)| run.range.end + at);
    let class: String = text[run.range.clone()].chars().take(MAX_QUOTED_RUN_CHARS).map(name).collect();
    let more = if run.count > MAX_QUOTED_RUN_CHARS { "…" } else { "" };
    let flat = |text: &str| escape_invisible(text).replace(['\n', '\t', '\r'], " ");
    format!("{}{class}{more}{}", flat(&text[before..run.range.start]), flat(&text[run.range.end..after]))
}

fn runs(text: &str) -> Vec<Run> {
    let steers = |byte: u8| byte.is_ascii_control() && !matches!(byte, b'\n' | b'\t');
    if text.is_ascii() && !text.bytes().any(steers) {
        return Vec::new();
    }
    let characters: Vec<(usize, char)> = text.char_indices().collect();
    let right_to_left = characters.iter().any(|(_, character)| is_right_to_left(*character));
    let mut runs: Vec<Run> = Vec::new();
    let mut at = 0;
    while let Some((start, character)) = characters.get(at).copied() {
        let flag = flag_length(&characters, at);
        if flag > 0 {
            at += flag;
            continue;
        }
        at += 1;
        let context = Around {
            before: at.checked_sub(2).and_then(|before| Some(characters.get(before)?.1)),
            after: characters.get(at).map(|(_, after)| *after),
            right_to_left,
        };
        let Some(class) = context.class(character) else { continue };
        let end = start + character.len_utf8();
        match runs.last_mut() {
            Some(run) if run.class == class && run.range.end == start => {
                run.range.end = end;
                run.count += 1;
            }
            _ => runs.push(Run { class, range: start..end, count: 1 }),
        }
    }
    runs
}

/// The number of characters of a subdivision flag at this position, which is encoded with tag characters.
fn flag_length(characters: &[(usize, char)], at: usize) -> usize {
    if characters.get(at).is_none_or(|(_, character)| *character != '\u{1F3F4}') {
        return 0;
    }
    let letters: String =
        characters[at + 1..].iter().take(5).filter_map(|(_, tag)| decode_tag(*tag)).collect();
    let ends = characters.get(at + 6).is_some_and(|(_, character)| *character == '\u{E007F}');
    if ends && FLAGS.contains(&letters.as_str()) { 7 } else { 0 }
}

/// The context that decides whether a character is suspicious.
struct Around {
    before: Option<char>,
    after: Option<char>,
    right_to_left: bool,
}

impl Around {
    fn class(&self, character: char) -> Option<CharacterClass> {
        let (before, after) = (self.before.unwrap_or('\0'), self.after.unwrap_or('\0'));
        match character {
            '\n' | '\t' => None,
            '\r' if after == '\n' => None,
            '\0'..='\u{1F}' | '\u{7F}'..='\u{9F}' => Some(CharacterClass::Control),
            // Separates words in scripts without spaces.
            '\u{200B}' if is_unspaced(before) || is_unspaced(after) => None,
            // Persian, Urdu and the scripts of India need both joiners; emoji sequences use the second.
            '\u{200C}' | '\u{200D}' if is_joining(before) => None,
            '\u{200D}' if is_pictorial(before) && is_pictorial(after) => None,
            '\u{200E}' | '\u{200F}' | '\u{61C}' if self.right_to_left => None,
            '\u{200E}' | '\u{200F}' | '\u{61C}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => {
                Some(CharacterClass::Direction)
            }
            '\u{AD}'
            | '\u{34F}'
            | '\u{115F}'
            | '\u{1160}'
            | '\u{17B4}'
            | '\u{17B5}'
            | '\u{180E}'
            | '\u{200B}'..='\u{200D}'
            | '\u{2060}'..='\u{2065}'
            | '\u{206A}'..='\u{206F}'
            | '\u{3164}'
            | '\u{FEFF}'
            | '\u{FFA0}'
            | '\u{FFF9}'..='\u{FFFB}'
            | '\u{1D173}'..='\u{1D17A}' => Some(CharacterClass::Unseen),
            '\u{E0000}'..='\u{E007F}' => Some(CharacterClass::Tag),
            // A single variation selector after an emoji, a symbol, a digit or an ideograph is legitimate; several,
            // or one after a letter, are not.
            '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}' => {
                let selects =
                    !is_selector(before) && !before.is_ascii_alphabetic() && !before.is_whitespace();
                (!selects || before == '\0').then_some(CharacterClass::Selector)
            }
            '\u{E000}'..='\u{F8FF}' | '\u{F0000}'..='\u{FFFFD}' | '\u{100000}'..='\u{10FFFD}' => {
                Some(CharacterClass::PrivateUse)
            }
            _ => None,
        }
    }
}

fn is_selector(character: char) -> bool {
    matches!(character, '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}')
}

/// Thai, Lao, Burmese and Khmer.
fn is_unspaced(character: char) -> bool {
    matches!(character, '\u{E00}'..='\u{EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}')
}

/// Scripts whose letters change with their neighbours: Arabic and related scripts, those of India, Mongolian.
fn is_joining(character: char) -> bool {
    matches!(character, '\u{600}'..='\u{8FF}' | '\u{900}'..='\u{DFF}' | '\u{1800}'..='\u{18AF}' | '\u{FB50}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFE}')
}

fn is_right_to_left(character: char) -> bool {
    matches!(character, '\u{590}'..='\u{8FF}' | '\u{FB1D}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFE}' | '\u{10800}'..='\u{10FFF}' | '\u{1E800}'..='\u{1EFFF}')
        && character != '\u{61C}'
}

/// Emoji, their components, and the variation selector that may end one.
fn is_pictorial(character: char) -> bool {
    matches!(character, '\u{A9}' | '\u{AE}' | '\u{2190}'..='\u{2BFF}' | '\u{3030}' | '\u{303D}' | '\u{FE0F}' | '\u{1F000}'..='\u{1FAFF}')
}
