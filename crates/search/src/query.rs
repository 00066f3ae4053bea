//! A parsed request: the wanted terms, their weights and their origins.

use std::mem;

use toolhub_core::text::byte_prefix;

use crate::dictionary::{Dictionary, Segment};
use crate::document::grams;
use crate::quotes;
use crate::related::Related;
use crate::settings::RankingSettings;
use crate::synonyms::Synonyms;
use crate::tables::Tables;
use crate::text::{
    Stemmer, Term, TermMap, TermScript, TextRun, is_han, is_measure_word, is_request_word, is_stop_gram,
    is_stop_word, runs,
};

/// Maximum number of sentences; further ones count as part of the last.
pub(crate) const MAX_SENTENCES: usize = 32;

/// Characters that end a sentence.
const ENDS: [char; 9] = ['.', '!', '?', ';', '。', '；', '！', '？', '\n'];

/// Maximum size of a request; bounds the time, and the beginning states its purpose.
const MAX_QUERY_BYTES: usize = 8 << 10;

/// Minimum weight of a word whose synonyms are added; excludes, for example, the third gloss of a Chinese word.
const MIN_SYNONYM_WEIGHT: f32 = 0.5;

/// Minimum weight of a word whose related words are added.
const MIN_RELATED_WEIGHT: f32 = 0.3;

/// Maximum number of words whose related words are added; bounds the time.
const MAX_RELATED: usize = 128;

/// Minimum weight of a related word; lower ones do not affect the order.
const MIN_WEIGHT: f32 = 0.04;

/// Chinese prepositions and postpositions of a place: 在 … 里, 从 … 中.
const PREPOSITIONS: [char; 5] = ['在', '从', '到', '往', '向'];
const POSTPOSITIONS: [char; 5] = ['里', '中', '上', '下', '内'];

/// The origin of a term in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TermOrigin {
    /// Contained in the request.
    Literal,
    /// A translation of a word in the request.
    Translated,
    /// Related to a word in the request.
    Related,
}

/// A term that a tool should contain.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QueryTerm {
    pub(crate) term: Term,
    pub(crate) weight: f32,
    pub(crate) origin: TermOrigin,
    pub(crate) script: TermScript,
    /// The sentences that contain it, one bit each.
    pub(crate) sentences: u32,
}

/// One word of a request with its alternatives; a tool either contains it or not.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Concept {
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
    pub(crate) wanted: Vec<QueryTerm>,
    /// In the order of the request.
    pub(crate) concepts: Vec<Concept>,
}

impl Query {
    /// Parses a request that `cut` has limited.
    pub(crate) fn read(text: &str, tables: &Tables, settings: &RankingSettings) -> Self {
        let mut reader = Reader {
            settings,
            tables,
            stemmer: Stemmer::default(),
            places: TermMap::default(),
            wanted: Vec::new(),
            concepts: Vec::new(),
            sentence: 0,
            after_preposition: false,
        };
        for part in quotes::parts(text) {
            let share = if part.quoted { settings.quoted } else { 1.0 };
            for (number, sentence) in part.text.split(ENDS).enumerate() {
                reader.sentence = (reader.sentence + usize::from(number > 0)).min(MAX_SENTENCES - 1);
                reader.sentence(sentence, share);
            }
        }
        reader.add_related();
        reader.wanted.sort_unstable_by_key(|wanted| wanted.term);
        Self { wanted: reader.wanted, concepts: reader.concepts }
    }
}

/// The part of a request that is used.
pub(crate) fn used_part(text: &str) -> &str {
    byte_prefix(text, MAX_QUERY_BYTES)
}

/// The index of the first part of an identifier among the preceding words.
fn start_of_parts(words: &[String], compound: &str) -> usize {
    let mut remaining = compound.len();
    let is_first = |word: &String| {
        remaining = remaining.saturating_sub(word.len());
        remaining == 0
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
    settings: &'a RankingSettings,
    tables: &'a Tables,
    stemmer: Stemmer,
    /// The index of each term in `wanted`.
    places: TermMap<usize>,
    wanted: Vec<QueryTerm>,
    concepts: Vec<Concept>,
    sentence: usize,
    /// Whether the last Chinese text ended in a preposition of place.
    after_preposition: bool,
}

impl Reader<'_> {
    fn sentence(&mut self, sentence: &str, share: f32) {
        // An identifier follows its parts, so that words are buffered until it is clear that none follows.
        let mut waiting: Vec<String> = Vec::new();
        runs(sentence, |run| match run {
            TextRun::Word(word) => waiting.push(word.to_owned()),
            TextRun::Compound(compound) => {
                let parts = waiting.split_off(start_of_parts(&waiting, compound));
                self.words(&mem::take(&mut waiting), share);
                self.compound(compound, &parts, share);
            }
            TextRun::Han(han) => {
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
    fn compound(&mut self, compound: &str, parts: &[String], share: f32) {
        self.add_term(compound, share, TermOrigin::Literal);
        let term = Term::of(compound);
        if self.tables.postings.of(term).is_empty() {
            return self.words(parts, share);
        }
        self.concept(share, self.alternatives(term), Vec::new());
        for part in parts.iter().filter(|part| !is_stop_word(part)) {
            let stem = self.stemmer.stem(part);
            self.add_term(&stem, self.settings.compound_part * share, TermOrigin::Literal);
        }
    }

    /// A term with its synonyms and related words, and how fully each represents it.
    fn alternatives(&self, term: Term) -> Vec<(Term, f32)> {
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
            return self.add_term(word, self.settings.number * share, TermOrigin::Literal);
        }
        let weight = share * if is_request_word(word) { self.settings.request_word } else { 1.0 };
        let stem = self.stemmer.stem(word);
        self.add_term(&stem, weight, TermOrigin::Literal);
        // A word that occurs neither in the language nor in any tool may be a misspelled word of a name.
        let term = Term::of(&stem);
        if self.tables.postings.of(term).is_empty()
            && !Related::get().knows(term)
            && let Some(meant) = self.tables.vocabulary.similar(word)
        {
            let meant = self.stemmer.stem(meant);
            self.add_term(&meant, weight * self.settings.typo, TermOrigin::Literal);
            return self.concept(weight, vec![(Term::of(&meant), 1.0)], Vec::new());
        }
        self.concept(weight, self.alternatives(term), Vec::new());
    }

    /// Parses a Chinese text; `before` is the preceding word, which may be a number.
    fn han(&mut self, before: &str, han: &str, share: f32) {
        grams(han, |gram| {
            if !is_stop_gram(gram) {
                let single = gram.chars().nth(1).is_none();
                self.add_term(
                    gram,
                    if single { self.settings.character } else { 1.0 } * share,
                    TermOrigin::Literal,
                );
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
                self.add_term(&stem, each, TermOrigin::Translated);
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
        self.concept(own, any, all);
    }

    /// Adds a word once; repetitions do not affect whether a tool is relevant.
    fn concept(&mut self, weight: f32, any: Vec<(Term, f32)>, all: Vec<Term>) {
        let concept = Concept { weight, any, all };
        if weight > 0.0
            && !self.concepts.iter().any(|known| known.any == concept.any && known.all == concept.all)
        {
            self.concepts.push(concept);
        }
    }

    fn add_related(&mut self) {
        let (scale, floor) = (self.settings.related, self.settings.related_floor);
        if scale <= 0.0 {
            return;
        }
        let mut remaining = MAX_RELATED;
        for index in 0..self.wanted.len() {
            let Some(wanted) = self.wanted.get(index) else { continue };
            if wanted.script == TermScript::Han || wanted.weight < MIN_RELATED_WEIGHT || remaining == 0 {
                continue;
            }
            remaining -= 1;
            let (own, term, sentences) = (wanted.weight, wanted.term, wanted.sentences);
            let synonyms = if own < MIN_SYNONYM_WEIGHT { &[] } else { Synonyms::get().of(term) };
            for other in synonyms {
                self.add(QueryTerm {
                    term: *other,
                    weight: own * self.settings.synonym,
                    origin: TermOrigin::Related,
                    script: TermScript::Spaced,
                    sentences,
                });
            }
            let weight = own * scale;
            for (stem, closeness) in Related::get().of(term) {
                let weight = weight * (closeness - floor) / (1.0 - floor);
                if weight < MIN_WEIGHT {
                    continue;
                }
                self.add(QueryTerm {
                    term: Term::of(stem),
                    weight,
                    origin: TermOrigin::Related,
                    script: TermScript::Spaced,
                    sentences,
                });
            }
        }
    }

    fn add_term(&mut self, text: &str, weight: f32, origin: TermOrigin) {
        let script = if text.starts_with(is_han) { TermScript::Han } else { TermScript::Spaced };
        self.add(QueryTerm { term: Term::of(text), weight, origin, script, sentences: 1 << self.sentence });
    }

    /// A repeated term counts more than once, but less than twice.
    fn add(&mut self, wanted: QueryTerm) {
        if wanted.weight <= 0.0 {
            return;
        }
        if let Some(known) = self.places.get(&wanted.term).and_then(|index| self.wanted.get_mut(*index)) {
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
