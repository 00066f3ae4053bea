//! The numbers of the ranking, in one place, so that two settings can be compared.

use serde::{Deserialize, Serialize};

use crate::field::FIELD_COUNT;

/// How scores are made. The defaults were measured over all sets together; `docs/explanation/search.md` tells what each gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The weight of each field, in the order of [`crate::Field::ALL`].
    pub field_weights: [f32; FIELD_COUNT],
    /// How much a field's length counts against it, from 0 (not at all) to 1 (fully).
    pub field_lengths: [f32; FIELD_COUNT],
    /// How soon repetitions of a term in a definition stop to matter.
    pub saturation: f32,
    /// How much of its weight a term gains that the request has again.
    pub repeated: f32,
    /// How much a number in the request counts.
    pub number: f32,
    /// How much a word of asking counts ("help", "show").
    pub request_word: f32,
    /// How much the parts of a name in one word (`PowerPoint`) count if any tool has the whole.
    pub compound_part: f32,
    /// How much what stands in quotation marks counts.
    pub quoted: f32,
    /// How much a word counts that differs by one letter.
    pub typo: f32,
    /// How much a single Chinese character counts beside a pair.
    pub character: f32,
    /// How much a translated word counts beside one that was said.
    pub translation: f32,
    /// How much the translation of a single character counts beside that of a longer word.
    pub translated_character: f32,
    /// What each further gloss of a word counts beside the one before it.
    pub gloss_decay: f32,
    /// How a gloss of several words shares its weight: 0 gives each the whole, 1 an equal part.
    pub gloss_split: f32,
    /// How much a synonym counts beside the word that was said.
    pub synonym: f32,
    /// How much a related word counts beside one that was said, were it as close as can be.
    pub related: f32,
    /// Closeness from which on a word is related at all.
    pub related_floor: f32,
    /// How much the best sentence of a request counts beside the whole.
    pub sentence: f32,
    /// How much a tool gains all of whose name's words were asked for.
    pub name_coverage: f32,
    /// How much the words of a name count that stand one after the other in the request.
    pub phrase: f32,
    /// How much many successes with similar requests lift a tool.
    pub history: f32,
    /// How much closeness in meaning counts where a model is loaded.
    pub meaning: f32,
    /// The least confidence that the best tool fits; below it the answer is that none does.
    pub fit: f32,
}

impl Default for Settings {
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
            meaning: 3.0,
            fit: 0.1,
        }
    }
}
