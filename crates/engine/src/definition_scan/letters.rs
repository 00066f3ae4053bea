//! Homoglyphs: detects words that mix scripts, and maps homoglyphs to Latin letters.

use toolhub_core::lang::LocalizedText;

use super::characters::name;
use super::{FindingKind, TextFinding, quote_of};

/// Letters of other scripts, and the Latin letters that look identical.
const HOMOGLYPHS: [(&str, &str); 2] = [
    ("аеорсухіјѕһԁԛԝӏАВЕКМНОРСТУХІЅЈ", "aeopcyxijshdqwlABEKMHOPCTYXISJ"),
    ("οινυΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "oivuABEZHIKMNOPTYX"),
];

/// The plain letter that a character resembles, for people or a model.
pub(super) fn plain(character: char) -> char {
    match character {
        '\0'..='\u{7F}' => character,
        '’' | '‘' => '\'',
        '“' | '”' => '"',
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(u32::from(character) - 0xFEE0).unwrap_or(character),
        // Bold, italic, script and so on: thirteen alphabets of 26 capitals and 26 small letters.
        '\u{1D400}'..='\u{1D6A3}' => {
            let offset = (u32::from(character) - 0x1D400) % 52;
            let first = if offset < 26 { u32::from('A') } else { u32::from('a') - 26 };
            char::from_u32(first + offset).unwrap_or(character)
        }
        _ => lookalike_of(character).unwrap_or(character),
    }
}

fn lookalike_of(character: char) -> Option<char> {
    if !matches!(character, '\u{370}'..='\u{52F}') {
        return None;
    }
    HOMOGLYPHS.iter().find_map(|(foreign, latin)| {
        let at = foreign.chars().position(|letter| letter == character)?;
        latin.chars().nth(at)
    })
}

/// The first word that mixes Latin letters with homoglyphs.
pub(super) fn scan(text: &str) -> Option<TextFinding> {
    if !text.contains(|character| matches!(character, '\u{370}'..='\u{52F}')) {
        return None;
    }
    let words: Vec<&str> = text.split(|character: char| !character.is_alphabetic()).collect();
    // In a Russian text, a foreign word may have a Russian ending.
    let cyrillic = words.iter().any(|word| word.chars().count() > 2 && word.chars().all(is_cyrillic));
    let word = words.into_iter().find(|word| is_spoofed(word, cyrillic))?;
    let spelt: String = word
        .chars()
        .map(|letter| if lookalike_of(letter).is_some() { name(letter) } else { letter.to_string() })
        .collect();
    let read: String = word.chars().map(plain).collect();
    let read = quote_of(&read);
    Some(TextFinding {
        kind: FindingKind::LookAlike,
        quote: quote_of(&spelt),
        why: LocalizedText::new(
            format!("letters of another script that look like Latin ones: it reads `{read}` and is not"),
            format!("混入形似拉丁字母的其他文字：看似 `{read}`，其实不是"),
        ),
    })
}

fn is_spoofed(word: &str, in_cyrillic_text: bool) -> bool {
    let latin = word.chars().filter(char::is_ascii_alphabetic).count();
    let foreign = word.chars().filter(|letter| lookalike_of(*letter).is_some()).count();
    // Formulas combine a Greek letter with one or two Latin ones.
    if foreign == 0 || latin < 2 || (latin < 3 && !word.chars().any(is_cyrillic)) {
        return false;
    }
    let stem = word.trim_end_matches(is_cyrillic);
    !(in_cyrillic_text && stem.len() < word.len() && stem.is_ascii())
}

fn is_cyrillic(character: char) -> bool {
    matches!(character, '\u{400}'..='\u{52F}')
}
