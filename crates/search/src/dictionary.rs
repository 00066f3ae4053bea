//! The Chinese–English dictionary: decompressed on first use, stored as sorted lines.

use std::collections::HashMap;
use std::io::Read as _;
use std::ops::Range;
use std::sync::LazyLock;

use flate2::read::GzDecoder;

/// CC-CEDICT, reduced; see `data/README.md`.
const COMPRESSED: &[u8] = include_bytes!("../data/cedict.txt.gz");

/// Our own table of words for software and services, which takes precedence.
const TOOL_WORDS: &str = include_str!("../data/tool_words.txt");

/// Maximum length of a headword, in characters.
const MAX_WORD_CHARS: usize = 6;

static DICTIONARY: LazyLock<Dictionary> = LazyLock::new(Dictionary::unpack);

/// Headwords with their glosses.
#[derive(Debug, Default)]
pub(crate) struct Dictionary {
    text: String,
    /// The start of each line; lines are sorted by headword.
    starts: Vec<u32>,
    /// The range of lines that begin with a character.
    by_character: HashMap<char, Range<u32>>,
    tool_words: HashMap<&'static str, &'static str>,
}

/// The glosses of a Chinese word, separated by semicolons, most common first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Glosses<'a> {
    /// From our own table.
    pub(crate) tool: &'a str,
    /// From the dictionary.
    pub(crate) general: &'a str,
}

impl<'a> Glosses<'a> {
    /// All glosses, ours first.
    pub(crate) fn iter(self) -> impl Iterator<Item = &'a str> {
        self.tool.split(';').chain(self.general.split(';')).filter(|gloss| !gloss.is_empty())
    }

    fn is_empty(self) -> bool {
        self.tool.is_empty() && self.general.is_empty()
    }
}

/// One word of a segmented Chinese text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Segment<'a> {
    pub(crate) word: &'a str,
    /// Empty for a character that no headword covers.
    pub(crate) glosses: Glosses<'static>,
}

impl Dictionary {
    /// The shared dictionary; the first call takes a few milliseconds.
    pub(crate) fn get() -> &'static Self {
        &DICTIONARY
    }

    fn unpack() -> Self {
        let mut text = String::new();
        // The data is part of the program; a test decompresses it completely.
        if GzDecoder::new(COMPRESSED).read_to_string(&mut text).is_err() {
            return Self::default();
        }
        let mut starts = vec![0];
        starts
            .extend(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at as u32 + 1));
        starts.pop();
        let entries = TOOL_WORDS.lines().filter(|line| !line.starts_with('#'));
        let tool_words = entries.filter_map(|line| line.split_once('\t')).collect();
        let mut by_character: HashMap<char, Range<u32>> = HashMap::new();
        for (number, start) in (0..).zip(&starts) {
            if let Some(first) = text.get(*start as usize..).and_then(|line| line.chars().next()) {
                by_character.entry(first).or_insert(number..number).end = number + 1;
            }
        }
        Self { text, starts, by_character, tool_words }
    }

    fn line(&self, start: u32) -> (&str, &str) {
        let rest = self.text.get(start as usize..).unwrap_or_default();
        let (headword, rest) = rest.split_once('\t').unwrap_or_default();
        (headword, rest.split_once('\n').map_or(rest, |(glosses, _)| glosses))
    }

    /// The glosses of a headword; empty for an unknown word.
    pub(crate) fn glosses(&self, word: &str) -> Glosses<'_> {
        let general = word.chars().next().and_then(|first| {
            let lines = self.by_character.get(&first)?;
            let starts = self.starts.get(lines.start as usize..lines.end as usize)?;
            let index = starts.binary_search_by(|start| self.line(*start).0.cmp(word)).ok()?;
            starts.get(index).map(|start| self.line(*start).1)
        });
        let tool = self.tool_words.get(word).copied().unwrap_or_default();
        Glosses { tool, general: general.unwrap_or_default() }
    }

    /// Whether a Chinese text begins with a word of our own table.
    pub(crate) fn begins_with_tool_word(&self, han: &str) -> bool {
        let ends = han.char_indices().map(|(at, c)| at + c.len_utf8()).take(MAX_WORD_CHARS);
        ends.filter_map(|end| han.get(..end)).any(|word| self.tool_words.contains_key(word))
    }

    /// Segments a Chinese text into as few words as possible, and among those solutions into the most even ones.
    pub(crate) fn segment<'a>(&'static self, han: &'a str) -> Vec<Segment<'a>> {
        let starts: Vec<usize> = han.char_indices().map(|(at, _)| at).chain([han.len()]).collect();
        let count = starts.len() - 1;
        // best[i]: the cost of the text from i on, and the end of its first word.
        let mut best: Vec<(u32, usize, Glosses<'static>)> = vec![(0, count, Glosses::default()); count + 1];
        for from in (0..count).rev() {
            let mut choice = (u32::MAX, from + 1, Glosses::default());
            for to in from + 1..=count.min(from + MAX_WORD_CHARS) {
                let (Some(start), Some(end)) = (starts.get(from), starts.get(to)) else { continue };
                let word = han.get(*start..*end).unwrap_or_default();
                let glosses = self.glosses(word);
                if glosses.is_empty() && to > from + 1 {
                    continue;
                }
                let own = match to - from {
                    1 if glosses.is_empty() => 40,
                    1 => 30,
                    2 => 19,
                    _ => 20,
                };
                let rest = best.get(to).map_or(0, |(cost, ..)| *cost);
                if own + rest < choice.0 {
                    choice = (own + rest, to, glosses);
                }
            }
            if let Some(slot) = best.get_mut(from) {
                *slot = choice;
            }
        }
        let mut segments = Vec::new();
        let mut at = 0;
        while at < count {
            let Some((_, to, glosses)) = best.get(at) else { break };
            let (Some(start), Some(end)) = (starts.get(at), starts.get(*to)) else { break };
            segments.push(Segment { word: han.get(*start..*end).unwrap_or_default(), glosses: *glosses });
            at = *to;
        }
        segments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decompresses_whole_dictionary() {
        let dictionary = Dictionary::get();
        assert!(dictionary.starts.len() > 90_000);
        let headwords: Vec<&str> = dictionary.starts.iter().map(|start| dictionary.line(*start).0).collect();
        assert!(headwords.is_sorted(), "the search in it needs sorted lines");
        assert!(headwords.iter().all(|word| !dictionary.glosses(word).is_empty()));
        assert!(dictionary.tool_words.len() > 350);
    }

    #[test]
    fn prefers_tool_glosses_over_dictionary() {
        let glosses: Vec<&str> = Dictionary::get().glosses("创建").iter().collect();
        assert_eq!(glosses.first(), Some(&"create"));
        assert!(glosses.contains(&"establish"));
        assert!(Dictionary::get().glosses("饕餮饕餮").is_empty());
    }

    #[test]
    fn segments_chinese_into_words() {
        let check = |han: &str, expect: &[&str]| {
            let words: Vec<&str> =
                Dictionary::get().segment(han).iter().map(|segment| segment.word).collect();
            assert_eq!(words, expect);
        };
        check("查询火车票", &["查询", "火车票"]);
        check("明天的天气预报", &["明天", "的", "天气预报"]);
        check("", &[]);
        check("ㄅ", &["ㄅ"]);
    }
}
