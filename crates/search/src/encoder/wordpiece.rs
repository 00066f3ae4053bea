//! The WordPiece tokenizer of an uncased BERT: splits a text into lowercase words without accents, then into the
//! longest known pieces.

use std::collections::HashMap;

use serde::Deserialize;
use unicode_normalization::UnicodeNormalization as _;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory as _};

use super::folder::Folder;
use super::shape::Shape;
use crate::embedding::EmbeddingError;

const LIST: &str = "vocab.txt";
const JSON: &str = "tokenizer.json";
const CONFIG: &str = "tokenizer_config.json";
/// Longer words become the unknown token.
const MAX_WORD_CHARS: usize = 100;

pub(super) struct WordPiece {
    /// Pieces that begin a word.
    starts: HashMap<Box<str>, usize>,
    /// Pieces that continue a word, without the prefix `##`.
    continuations: HashMap<Box<str>, usize>,
    unknown: usize,
    first: usize,
    last: usize,
    /// Including the special tokens at both ends.
    max_tokens: usize,
}

#[derive(Deserialize)]
struct TokenizerJson {
    model: TokenizerModel,
}

#[derive(Deserialize)]
struct TokenizerModel {
    #[serde(rename = "type")]
    kind: Option<String>,
    /// A list in models of other types.
    vocab: serde_json::Value,
}

#[derive(Deserialize)]
struct TokenizerConfig {
    do_lower_case: Option<bool>,
}

impl WordPiece {
    pub(super) fn read(folder: &Folder, shape: &Shape) -> Result<Self, EmbeddingError> {
        if let Some(TokenizerConfig { do_lower_case: Some(false) }) = folder.json(CONFIG)? {
            return Err(
                folder.wrong(CONFIG, "tells capitals from small letters; an uncased model is expected")
            );
        }
        if let Some(list) = folder.text(LIST)? {
            let pieces = list.lines().enumerate().map(|(at, piece)| (piece, at));
            return Self::of(pieces, shape).map_err(|what| folder.wrong(LIST, what));
        }
        let Some(TokenizerJson { model }) = folder.json(JSON)? else {
            return Err(
                folder.wrong(LIST, format_args!("is missing, and so is `{JSON}`; one of them is needed"))
            );
        };
        let wrong = |what| folder.wrong(JSON, what);
        if let Some(kind) = model.kind.filter(|kind| kind != "WordPiece") {
            return Err(wrong(format!("is of the kind `{kind}`, and only `WordPiece` can be run")));
        }
        let pieces: HashMap<String, usize> =
            serde_json::from_value(model.vocab).map_err(|error| wrong(format!("its vocabulary: {error}")))?;
        Self::of(pieces.iter().map(|(piece, at)| (piece.as_str(), *at)), shape).map_err(wrong)
    }

    fn of<'a>(pieces: impl Iterator<Item = (&'a str, usize)>, shape: &Shape) -> Result<Self, String> {
        let (mut starts, mut continuations) = (HashMap::new(), HashMap::new());
        for (piece, at) in pieces {
            if at >= shape.vocabulary {
                return Err(format!("has the piece {at}, and the model knows only {}", shape.vocabulary));
            }
            match piece.strip_prefix("##").filter(|rest| !rest.is_empty()) {
                Some(rest) => continuations.insert(rest.into(), at),
                None => starts.insert(piece.into(), at),
            };
        }
        let mark = |name: &str| starts.get(name).copied().ok_or_else(|| format!("has no `{name}`"));
        let (unknown, first, last) = (mark("[UNK]")?, mark("[CLS]")?, mark("[SEP]")?);
        Ok(Self { starts, continuations, unknown, first, last, max_tokens: shape.max_tokens })
    }

    /// The tokens of a text between the special tokens, at most as many as the model supports.
    pub(super) fn tokens(&self, text: &str) -> Vec<usize> {
        let limit = self.max_tokens - 1;
        let mut tokens = vec![self.first];
        let mut word = Word::default();
        let characters = text.chars().filter_map(cleaned).nfd();
        let characters = characters.filter(|c| c.general_category() != GeneralCategory::NonspacingMark);
        for character in characters.flat_map(char::to_lowercase) {
            let alone = stands_alone(character);
            if alone || character.is_whitespace() {
                self.cut(&mut word, &mut tokens);
            }
            if !character.is_whitespace() {
                word.push(character);
            }
            if alone {
                self.cut(&mut word, &mut tokens);
            }
            if tokens.len() >= limit {
                break;
            }
        }
        self.cut(&mut word, &mut tokens);
        tokens.truncate(limit);
        tokens.push(self.last);
        tokens
    }

    /// Adds the pieces of a word, and clears it.
    fn cut(&self, word: &mut Word, tokens: &mut Vec<usize>) {
        let known = tokens.len();
        let mut rest = if word.length > MAX_WORD_CHARS { "" } else { word.text.as_str() };
        let mut pieces = &self.starts;
        while let Some((token, length)) = longest(pieces, rest) {
            tokens.push(token);
            rest = &rest[length..];
            pieces = &self.continuations;
        }
        if !rest.is_empty() || word.length > MAX_WORD_CHARS {
            tokens.truncate(known);
            tokens.push(self.unknown);
        }
        word.text.clear();
        word.length = 0;
    }
}

/// The current word; characters beyond the limit are counted but not stored.
#[derive(Default)]
struct Word {
    text: String,
    length: usize,
}

impl Word {
    fn push(&mut self, character: char) {
        self.length += 1;
        if self.length <= MAX_WORD_CHARS {
            self.text.push(character);
        }
    }
}

/// The longest piece that is a prefix of a text, and its length in bytes.
fn longest(pieces: &HashMap<Box<str>, usize>, text: &str) -> Option<(usize, usize)> {
    let ends = text.char_indices().rev().map(|(at, character)| at + character.len_utf8());
    ends.map(|end| (pieces.get(&text[..end]), end)).find_map(|(token, end)| Some((*token?, end)))
}

/// Maps white space to a space, and removes invisible characters.
fn cleaned(character: char) -> Option<char> {
    match character {
        '\t' | '\n' | '\r' => Some(' '),
        '\u{fffd}' => None,
        _ if character.general_category_group() == GeneralCategoryGroup::Other => None,
        _ if character.is_whitespace() => Some(' '),
        _ => Some(character),
    }
}

/// Whether a character is a separate token: punctuation, all ASCII symbols, and Chinese characters.
fn stands_alone(character: char) -> bool {
    character.is_ascii_punctuation()
        || (!character.is_ascii() && character.general_category_group() == GeneralCategoryGroup::Punctuation)
        || matches!(
            character,
            '\u{3400}'..='\u{4dbf}'
                | '\u{4e00}'..='\u{9fff}'
                | '\u{f900}'..='\u{faff}'
                | '\u{20000}'..='\u{2a6df}'
                | '\u{2a700}'..='\u{2ceaf}'
                | '\u{2f800}'..='\u{2fa1f}'
        )
}
