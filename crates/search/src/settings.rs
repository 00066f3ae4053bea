//! The parameters of the ranking, in one place, so that two settings can be compared.

use serde::{Deserialize, Serialize};

use crate::field::FIELD_COUNT;

/// The parameters of the ranking. The defaults were tuned over all test sets together; `docs/explanation/search.md`
/// documents the effect of each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RankingSettings {
    /// The weight of each field, in the order of [`crate::Field::ALL`].
    pub field_weights: [f32; FIELD_COUNT],
    /// Length normalisation of each field, from 0 (none) to 1 (full).
    pub field_lengths: [f32; FIELD_COUNT],
    /// Saturation of term frequency (BM25 `k1`).
    pub saturation: f32,
    /// Additional share of its weight for a term that the request repeats.
    pub repeated: f32,
    /// Weight of a number in the request.
    pub number: f32,
    /// Weight of a request word ("help", "show").
    pub request_word: f32,
    /// Weight of the parts of a compound name (`PowerPoint`) if any tool has the whole.
    pub compound_part: f32,
    /// Weight of quoted text.
    pub quoted: f32,
    /// Weight of a word that differs by one letter.
    pub typo: f32,
    /// Weight of a single Chinese character relative to a pair.
    pub character: f32,
    /// Weight of a translated word relative to a word of the request.
    pub translation: f32,
    /// Weight of the translation of a single character relative to that of a longer word.
    pub translated_character: f32,
    /// Weight of each further gloss of a word relative to the previous one.
    pub gloss_decay: f32,
    /// How the words of a gloss share its weight: 0 gives each the whole weight, 1 an equal part.
    pub gloss_split: f32,
    /// Weight of a synonym relative to the word of the request.
    pub synonym: f32,
    /// Weight of a related word of maximum closeness relative to a word of the request.
    pub related: f32,
    /// Minimum closeness of related words.
    pub related_floor: f32,
    /// Weight of the best sentence of a request relative to the whole.
    pub sentence: f32,
    /// Bonus for a tool whose name is completely covered by the request.
    pub name_coverage: f32,
    /// Weight of a name whose words are consecutive in the request.
    pub phrase: f32,
    /// Maximum bonus for successes with similar requests.
    pub history: f32,
    /// Weight of similarity in meaning, if a model is loaded.
    pub semantic_weight: f32,
    /// Minimum confidence that the best tool is relevant; below it the result is that none is.
    pub min_confidence: f32,
}

impl Default for RankingSettings {
    fn default() -> Self {
        Self {
            //             name title descr. p.name p.text tags source examples translation
            field_weights: [3.0, 2.0, 2.0, 1.0, 0.6, 1.0, 1.0, 0.5, 0.4],
            field_lengths: [0.4, 0.4, 0.6, 0.6, 0.7, 0.5, 0.3, 0.7, 0.6],
            saturation: 1.2,
            repeated: 0.15,
            number: 0.2,
            request_word: 0.3,
            compound_part: 0.2,
            quoted: 0.3,
            typo: 0.7,
            character: 0.8,
            translation: 1.0,
            translated_character: 0.5,
            gloss_decay: 0.7,
            gloss_split: 0.3,
            synonym: 0.4,
            related: 0.4,
            related_floor: 0.3,
            sentence: 0.3,
            name_coverage: 0.25,
            phrase: 0.2,
            history: 0.3,
            semantic_weight: 3.0,
            min_confidence: 0.1,
        }
    }
}
