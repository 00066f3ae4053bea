//! The configuration of a model: dimensions, pooling, and maximum number of tokens.

use std::io::ErrorKind;
use std::ops::RangeInclusive;

use serde::Deserialize;

use super::folder::Folder;
use crate::embedding::EmbeddingError;

const CONFIG: &str = "config.json";
const POOLING: &str = "1_Pooling/config.json";
/// Maximum number of tokens of a text: the time grows faster than linearly, and descriptions state their purpose
/// early.
const MAX_TOKENS: usize = 256;

/// How the token vectors are combined into the vector of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pooling {
    /// Their mean.
    Mean,
    /// The vector of the first token (`[CLS]`).
    First,
}

/// The dimensions of a model.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    pub(super) hidden: usize,
    pub(super) heads: usize,
    pub(super) layers: usize,
    pub(super) intermediate: usize,
    pub(super) vocabulary: usize,
    pub(super) positions: usize,
    pub(super) types: usize,
    pub(super) epsilon: f32,
    pub(super) pooling: Pooling,
    /// Including the special tokens at both ends.
    pub(super) max_tokens: usize,
}

#[derive(Deserialize)]
struct Config {
    model_type: Option<String>,
    hidden_act: Option<String>,
    position_embedding_type: Option<String>,
    hidden_size: usize,
    num_attention_heads: usize,
    num_hidden_layers: usize,
    intermediate_size: usize,
    vocab_size: usize,
    max_position_embeddings: usize,
    type_vocab_size: usize,
    layer_norm_eps: Option<f32>,
}

#[derive(Deserialize)]
struct SentenceConfig {
    max_seq_length: Option<usize>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PoolingConfig {
    pooling_mode_cls_token: bool,
    pooling_mode_mean_tokens: bool,
}

impl Shape {
    pub(super) fn read(folder: &Folder) -> Result<Self, EmbeddingError> {
        let absent = || folder.io_error(CONFIG, ErrorKind::NotFound.into());
        let config: Config = folder.json(CONFIG)?.ok_or_else(absent)?;
        config.check().map_err(|what| folder.wrong(CONFIG, what))?;
        let sentence: Option<SentenceConfig> = folder.json("sentence_bert_config.json")?;
        let configured = sentence.and_then(|sentence| sentence.max_seq_length).unwrap_or(MAX_TOKENS);
        let pooling = match folder.json::<PoolingConfig>(POOLING)? {
            None => Pooling::Mean,
            Some(modes) => match (modes.pooling_mode_mean_tokens, modes.pooling_mode_cls_token) {
                (true, false) => Pooling::Mean,
                (false, true) => Pooling::First,
                _ => return Err(folder.wrong(POOLING, "either the mean or the first token is expected")),
            },
        };
        Ok(Self {
            hidden: config.hidden_size,
            heads: config.num_attention_heads,
            layers: config.num_hidden_layers,
            intermediate: config.intermediate_size,
            vocabulary: config.vocab_size,
            positions: config.max_position_embeddings,
            types: config.type_vocab_size,
            epsilon: config.layer_norm_eps.unwrap_or(1e-12),
            pooling,
            max_tokens: configured.min(MAX_TOKENS).min(config.max_position_embeddings).max(3),
        })
    }
}

impl Config {
    fn check(&self) -> Result<(), String> {
        for (key, value, expected) in [
            ("model_type", &self.model_type, "bert"),
            ("hidden_act", &self.hidden_act, "gelu"),
            ("position_embedding_type", &self.position_embedding_type, "absolute"),
        ] {
            if let Some(value) = value.as_deref().filter(|value| *value != expected) {
                return Err(format!("`{key}` is `{value}`, and only `{expected}` can be run"));
            }
        }
        // Large enough for the largest models of the family, and small enough that no product of two values
        // overflows.
        let sizes: [(&str, usize, RangeInclusive<usize>); 7] = [
            ("hidden_size", self.hidden_size, 1..=8192),
            ("num_attention_heads", self.num_attention_heads, 1..=512),
            ("num_hidden_layers", self.num_hidden_layers, 1..=128),
            ("intermediate_size", self.intermediate_size, 1..=65_536),
            ("vocab_size", self.vocab_size, 3..=1_000_000),
            ("max_position_embeddings", self.max_position_embeddings, 3..=65_536),
            ("type_vocab_size", self.type_vocab_size, 1..=64),
        ];
        for (key, value, range) in sizes {
            if !range.contains(&value) {
                return Err(format!("`{key}` is {value}, expected {} to {}", range.start(), range.end()));
            }
        }
        if self.hidden_size.is_multiple_of(self.num_attention_heads) {
            Ok(())
        } else {
            Err(format!(
                "`hidden_size` {} is not divisible by {} heads",
                self.hidden_size, self.num_attention_heads
            ))
        }
    }
}
