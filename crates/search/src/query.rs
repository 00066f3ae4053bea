//! A request as the index sees it: the terms it wants, how much, and how each was come by.

use std::mem;

use crate::dictionary::{Dictionary, Segment};
use crate::document::grams;
use crate::quotes;
use crate::related::Related;
use crate::settings::Settings;
use crate::tables::Tables;
use crate::text::{
    Run, Script, Stemmer, Term, TermMap, is_han, is_request_word, is_stop_gram, is_stop_word, runs,
};

/// Sentences past this many count as the last one.
pub(crate) const MOST_SENTENCES: usize = 32;

/// What ends a sentence.
const ENDS: [char; 9] = ['.', '!', '?', ';', '。', '；', '！', '？', '\n'];

/// A request past this size is cut: what it asks for is said by then, and the time must stay bounded.
const MOST_BYTES: usize = 8 << 10;

/// Words of less weight do not bring their relatives along.
const LEAST_RELATED: f32 = 0.3;

/// Nor do words past this many, as the time must stay bounded.
const MOST_RELATED: usize = 128;

/// Relatives of less weight change no order and cost time.
const LEAST_WEIGHT: f32 = 0.04;

/// How a term came into a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// It stands there.
    Said,
    /// It translates what stands there.
    Translated,
    /// It is close in meaning to what stands there.
    Related,
}

/// A term that a tool should have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) term: Term,
    pub(crate) weight: f32,
    pub(crate) origin: Origin,
    pub(crate) script: Script,
    /// In which sentences it stands, a bit for each.
    pub(crate) sentences: u32,
}

/// One word of a request with all that may stand for it: what a tool either has or lacks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Notion {
    pub(crate) weight: f32,
    /// Terms of which one is enough, with how fully each stands for the word.
    pub(crate) any: Vec<(Term, f32)>,
    /// Characters or pairs of which each stands for a part of the word.
    pub(crate) all: Vec<Term>,
}

/// The terms of a request.
#[derive(Debug, Default)]
pub(crate) struct Query {
    /// Each once, sorted by term.
    pub(crate) wanted: Vec<Wanted>,
    /// In the order of the request.
    pub(crate) notions: Vec<Notion>,
}

impl Query {
    /// Reads a request that was cut to size.
    pub(crate) fn read(text: &str, tables: &Tables, settings: &Settings) -> Self {
        let mut reader = Reader {
            settings,
            tables,
            stemmer: Stemmer::default(),
            places: TermMap::default(),
            wanted: Vec::new(),
            notions: Vec::new(),
            sentence: 0,
        };
        for part in quotes::parts(text) {
            let share = if part.quoted { settings.quoted } else { 1.0 };
            for (number, sentence) in part.text.split(ENDS).enumerate() {
                reader.sentence = (reader.sentence + usize::from(number > 0)).min(MOST_SENTENCES - 1);
                // The parts of an identifier come before the whole of it.
                let mut words: Vec<String> = Vec::new();
                runs(sentence, |run| match run {
                    Run::Word(word) => words.push(word.to_owned()),
                    Run::Compound(whole) => {
                        let parts = words.split_off(parts_of(whole, &words));
                        reader.words(&mem::take(&mut words), share);
                        reader.compound(whole, &parts, share);
                    }
                    Run::Han(han) => {
                        reader.words(&mem::take(&mut words), share);
                        reader.han(han, share);
                    }
                });
                reader.words(&words, share);
            }
        }
        reader.relate();
        reader.wanted.sort_unstable_by_key(|wanted| wanted.term);
        Self { wanted: reader.wanted, notions: reader.notions }
    }
}

/// As much of a request as is read.
pub(crate) fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MOST_BYTES)).unwrap_or(text)
}

struct Reader<'a> {
    settings: &'a Settings,
    tables: &'a Tables,
    stemmer: Stemmer,
    /// Where each term stands in `wanted`.
    places: TermMap<usize>,
    wanted: Vec<Wanted>,
    notions: Vec<Notion>,
    sentence: usize,
}

/// Where the parts of an identifier begin in the words that were read last.
fn parts_of(whole: &str, words: &[String]) -> usize {
    let mut left = whole.len();
    words.iter().rposition(|word| {
        left = left.saturating_sub(word.len());
        left == 0
    })
    .unwrap_or(words.len())
}

impl Reader<'_> {
    fn words(&mut self, words: &[String], share: f32) {
        words.iter().for_each(|word| self.word(word, share));
    }

    /// A name such as `PowerPoint` is one word where tools have it: its parts alone mean something else.
    fn compound(&mut self, whole: &str, parts: &[String], share: f32) {
        let term = Term::of(whole);
        self.want(whole, share, Origin::Said);
        if self.tables.postings.of(term).is_empty() {
            return self.words(parts, share);
        }
        self.notion(share, vec![(term, 1.0)], Vec::new());
        let part = self.settings.compound_part * share;
        for part_word in parts.iter().filter(|word| !is_stop_word(word)) {
            let stem = self.stemmer.stem(part_word);
            self.want(&stem, part, Origin::Said);
        }
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
        // A word that neither the language nor any tool knows may be a misspelt word of a name.
        let term = Term::of(&stem);
        if self.tables.postings.of(term).is_empty()
            && !Related::get().knows(term)
            && let Some(meant) = self.tables.vocabulary.near(word)
        {
            let meant = self.stemmer.stem(meant);
            self.want(&meant, weight * self.settings.typo, Origin::Said);
            return self.notion(weight, vec![(Term::of(&meant), 1.0)], Vec::new());
        }
        let related =
            Related::get().of(term).map(|(stem, closeness)| (Term::of(stem), closeness * closeness));
        self.notion(weight, [(term, 1.0)].into_iter().chain(related).collect(), Vec::new());
    }

    fn han(&mut self, han: &str, share: f32) {
        grams(han, |gram| {
            if !is_stop_gram(gram) {
                let single = gram.chars().nth(1).is_none();
                self.want(gram, if single { self.settings.character } else { 1.0 } * share, Origin::Said);
            }
        });
        for segment in Dictionary::get().segment(han) {
            self.translate(&segment, share);
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

    /// Notes a word once; a second time it says nothing new about whether a tool fits.
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
            let (weight, sentences) = (wanted.weight * scale, wanted.sentences);
            for (stem, closeness) in Related::get().of(wanted.term) {
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

    /// What is said twice counts more than once, and less than twice.
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
