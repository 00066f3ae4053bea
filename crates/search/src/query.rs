//! A parsed request: the wanted terms, their weights and their origins.

use std::mem;

use crate::dictionary::{Dictionary, Segment};
use crate::document::grams;
use crate::quotes;
use crate::related::Related;
use crate::settings::Settings;
use crate::synonyms::Synonyms;
use crate::tables::Tables;
use crate::text::{
    Run, Script, Stemmer, Term, TermMap, is_han, is_measure_word, is_request_word, is_stop_gram,
    is_stop_word, runs,
};

/// Maximum number of sentences; further ones count as part of the last.
pub(crate) const MOST_SENTENCES: usize = 32;

/// Characters that end a sentence.
const ENDS: [char; 9] = ['.', '!', '?', ';', '。', '；', '！', '？', '\n'];

/// Maximum size of a request; bounds the time, and the beginning states its purpose.
const MOST_BYTES: usize = 8 << 10;

/// Minimum weight of a word whose synonyms are added; excludes, for example, the third gloss of a Chinese word.
const LEAST_WITH_SYNONYMS: f32 = 0.5;

/// Minimum weight of a word whose related words are added.
const LEAST_RELATED: f32 = 0.3;

/// Maximum number of words whose related words are added; bounds the time.
const MOST_RELATED: usize = 128;

/// Minimum weight of a related word; lower ones do not affect the order.
const LEAST_WEIGHT: f32 = 0.04;

/// Chinese prepositions and postpositions of a place: 在 … 里, 从 … 中.
const PREPOSITIONS: [char; 5] = ['在', '从', '到', '往', '向'];
const POSTPOSITIONS: [char; 5] = ['里', '中', '上', '下', '内'];

/// The origin of a term in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// Contained in the request.
    Said,
    /// A translation of a word in the request.
    Translated,
    /// Related to a word in the request.
    Related,
}

/// A term that a tool should contain.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) term: Term,
    pub(crate) weight: f32,
    pub(crate) origin: Origin,
    pub(crate) script: Script,
    /// The sentences that contain it, one bit each.
    pub(crate) sentences: u32,
}

/// One word of a request with its alternatives; a tool either contains it or not.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Notion {
    pub(crate) weight: f32,
    /// Alternative terms, one of which is enough, with how fully each represents the word.
    pub(crate) any: Vec<(Term, f32)>,
    /// Characters or pairs, each of which represents a part of the word.
    pub(crate) all: Vec<Term>,
}

/// The terms of a request.
#[derive(Debug, Default)]
pub(crate) struct Query {
    /// Each term once, sorted.
    pub(crate) wanted: Vec<Wanted>,
    /// In the order of the request.
    pub(crate) notions: Vec<Notion>,
}

impl Query {
    /// Parses a request that `cut` has limited.
    pub(crate) fn read(text: &str, tables: &Tables, settings: &Settings) -> Self {
        let mut reader = Reader {
            settings,
            tables,
            stemmer: Stemmer::default(),
            places: TermMap::default(),
            wanted: Vec::new(),
            notions: Vec::new(),
            sentence: 0,
            after_preposition: false,
        };
        for part in quotes::parts(text) {
            let share = if part.quoted { settings.quoted } else { 1.0 };
            for (number, sentence) in part.text.split(ENDS).enumerate() {
                reader.sentence = (reader.sentence + usize::from(number > 0)).min(MOST_SENTENCES - 1);
                reader.sentence(sentence, share);
            }
        }
        reader.relate();
        reader.wanted.sort_unstable_by_key(|wanted| wanted.term);
        Self { wanted: reader.wanted, notions: reader.notions }
    }
}

/// Limits a request to the maximum size.
pub(crate) fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MOST_BYTES)).unwrap_or(text)
}

/// The index of the first part of an identifier among the preceding words.
fn start_of_parts(words: &[String], whole: &str) -> usize {
    let mut left = whole.len();
    let is_first = |word: &String| {
        left = left.saturating_sub(word.len());
        left == 0
    };
    words.iter().rposition(is_first).unwrap_or(words.len())
}

/// Removes the postposition from Chinese text after a name and a preposition (在 PPT 里加一页), which would otherwise form
/// another word with the following text (里加, Riga). Words of our own table (上传) are kept.
fn without_postposition(han: &str) -> &str {
    match han.strip_prefix(POSTPOSITIONS) {
        Some(rest) if !Dictionary::get().begins_with_tool_word(han) => {
            rest.strip_prefix(['面', '边', '头']).unwrap_or(rest)
        }
        _ => han,
    }
}

struct Reader<'a> {
    settings: &'a Settings,
    tables: &'a Tables,
    stemmer: Stemmer,
    /// The index of each term in `wanted`.
    places: TermMap<usize>,
    wanted: Vec<Wanted>,
    notions: Vec<Notion>,
    sentence: usize,
    /// Whether the last Chinese text ended in a preposition of place.
    after_preposition: bool,
}

impl Reader<'_> {
    fn sentence(&mut self, sentence: &str, share: f32) {
        // An identifier follows its parts, so that words are buffered until it is clear that none follows.
        let mut waiting: Vec<String> = Vec::new();
        runs(sentence, |run| match run {
            Run::Word(word) => waiting.push(word.to_owned()),
            Run::Compound(whole) => {
                let parts = waiting.split_off(start_of_parts(&waiting, whole));
                self.words(&mem::take(&mut waiting), share);
                self.compound(whole, &parts, share);
            }
            Run::Han(han) => {
                self.words(&waiting, share);
                self.han(&waiting.pop().unwrap_or_default(), han, share);
                waiting.clear();
            }
        });
        self.words(&waiting, share);
    }

    fn words(&mut self, words: &[String], share: f32) {
        words.iter().for_each(|word| self.word(word, share));
    }

    /// A name such as `PowerPoint` is one word if any tool has it. Its parts ("point") then have little weight,
    /// because they mean something else on their own.
    fn compound(&mut self, whole: &str, parts: &[String], share: f32) {
        self.want(whole, share, Origin::Said);
        let term = Term::of(whole);
        if self.tables.postings.of(term).is_empty() {
            return self.words(parts, share);
        }
        self.notion(share, self.standing_for(term), Vec::new());
        for part in parts.iter().filter(|part| !is_stop_word(part)) {
            let stem = self.stemmer.stem(part);
            self.want(&stem, self.settings.compound_part * share, Origin::Said);
        }
    }

    /// A term with its synonyms and related words, and how fully each represents it.
    fn standing_for(&self, term: Term) -> Vec<(Term, f32)> {
        let synonyms = Synonyms::get().of(term).iter().map(|other| (*other, self.settings.synonym));
        let related =
            Related::get().of(term).map(|(stem, closeness)| (Term::of(stem), closeness * closeness));
        [(term, 1.0)].into_iter().chain(synonyms).chain(related).collect()
    }

    fn word(&mut self, word: &str, share: f32) {
        if is_stop_word(word) {
            return;
        }
        if word.bytes().all(|byte| byte.is_ascii_digit()) {
            return self.want(word, self.settings.number * share, Origin::Said);
        }
        let weight = share * if is_request_word(word) { self.settings.request_word } else { 1.0 };
        let stem = self.stemmer.stem(word);
        self.want(&stem, weight, Origin::Said);
        // A word that occurs neither in the language nor in any tool may be a misspelled word of a name.
        let term = Term::of(&stem);
        if self.tables.postings.of(term).is_empty()
            && !Related::get().knows(term)
            && let Some(meant) = self.tables.vocabulary.near(word)
        {
            let meant = self.stemmer.stem(meant);
            self.want(&meant, weight * self.settings.typo, Origin::Said);
            return self.notion(weight, vec![(Term::of(&meant), 1.0)], Vec::new());
        }
        self.notion(weight, self.standing_for(term), Vec::new());
    }

    /// Parses a Chinese text; `before` is the preceding word, which may be a number.
    fn han(&mut self, before: &str, han: &str, share: f32) {
        grams(han, |gram| {
            if !is_stop_gram(gram) {
                let single = gram.chars().nth(1).is_none();
                self.want(gram, if single { self.settings.character } else { 1.0 } * share, Origin::Said);
            }
        });
        let words = if self.after_preposition { without_postposition(han) } else { han };
        self.after_preposition = han.ends_with(PREPOSITIONS);
        let mut before = before;
        for segment in Dictionary::get().segment(words) {
            if !is_measure_word(before, segment.word) {
                self.translate(&segment, share);
            }
            before = segment.word;
        }
    }

    fn translate(&mut self, segment: &Segment<'_>, share: f32) {
        if is_stop_gram(segment.word) {
            return;
        }
        let single = segment.word.chars().nth(1).is_none();
        let own = share * if single { self.settings.translated_character } else { 1.0 };
        let mut weight = own * self.settings.translation;
        let mut any = Vec::new();
        for gloss in segment.glosses.iter() {
            let words = || gloss.split(' ').filter(|word| !is_stop_word(word));
            let each = weight / (words().count().max(1) as f32).powf(self.settings.gloss_split);
            for word in words() {
                let stem = self.stemmer.stem(word);
                self.want(&stem, each, Origin::Translated);
                any.push((Term::of(&stem), each / own));
            }
            weight *= self.settings.gloss_decay;
        }
        let mut all = Vec::new();
        grams(segment.word, |gram| {
            if single || gram.chars().nth(1).is_some() {
                all.push(Term::of(gram));
            }
        });
        self.notion(own, any, all);
    }

    /// Adds a word once; repetitions do not affect whether a tool is relevant.
    fn notion(&mut self, weight: f32, any: Vec<(Term, f32)>, all: Vec<Term>) {
        let notion = Notion { weight, any, all };
        if weight > 0.0
            && !self.notions.iter().any(|known| known.any == notion.any && known.all == notion.all)
        {
            self.notions.push(notion);
        }
    }

    fn relate(&mut self) {
        let (scale, floor) = (self.settings.related, self.settings.related_floor);
        if scale <= 0.0 {
            return;
        }
        let mut left = MOST_RELATED;
        for place in 0..self.wanted.len() {
            let Some(wanted) = self.wanted.get(place) else { continue };
            if wanted.script == Script::Han || wanted.weight < LEAST_RELATED || left == 0 {
                continue;
            }
            left -= 1;
            let (own, term, sentences) = (wanted.weight, wanted.term, wanted.sentences);
            let synonyms = if own < LEAST_WITH_SYNONYMS { &[] } else { Synonyms::get().of(term) };
            for other in synonyms {
                self.add(Wanted {
                    term: *other,
                    weight: own * self.settings.synonym,
                    origin: Origin::Related,
                    script: Script::Spaced,
                    sentences,
                });
            }
            let weight = own * scale;
            for (stem, closeness) in Related::get().of(term) {
                let weight = weight * (closeness - floor) / (1.0 - floor);
                if weight < LEAST_WEIGHT {
                    continue;
                }
                self.add(Wanted {
                    term: Term::of(stem),
                    weight,
                    origin: Origin::Related,
                    script: Script::Spaced,
                    sentences,
                });
            }
        }
    }

    fn want(&mut self, text: &str, weight: f32, origin: Origin) {
        let script = if text.starts_with(is_han) { Script::Han } else { Script::Spaced };
        self.add(Wanted { term: Term::of(text), weight, origin, script, sentences: 1 << self.sentence });
    }

    /// A repeated term counts more than once, but less than twice.
    fn add(&mut self, wanted: Wanted) {
        if wanted.weight <= 0.0 {
            return;
        }
        if let Some(known) = self.places.get(&wanted.term).and_then(|place| self.wanted.get_mut(*place)) {
            let (more, less) = (known.weight.max(wanted.weight), known.weight.min(wanted.weight));
            known.weight = more + self.settings.repeated * less;
            known.origin = known.origin.min(wanted.origin);
            known.sentences |= wanted.sentences;
            return;
        }
        self.places.insert(wanted.term, self.wanted.len());
        self.wanted.push(wanted);
    }
}
