//! Regular expressions, matched by an engine with linear time. Unsupported patterns (look-around, back-references,
//! very large ones) are not tested: the server tests them.

use std::collections::HashMap;

use jsonschema::{PatternOptions, Validator};
use serde_json::{Value, json};

use super::budget::StepBudget;
use super::verdict::Verdict;

/// Maximum length of a tested pattern.
const MAX_PATTERN_BYTES: usize = 4 << 10;
/// Maximum number of compiled patterns per schema.
const MAX_PATTERNS: usize = 256;
/// Size limits of compiled patterns, in bytes; the size bounds the engine's time per byte of text.
const SIZES: [usize; 4] = [2 << 10, 16 << 10, 128 << 10, 1 << 20];
/// Maximum total size of the compiled patterns of a schema, in bytes.
const MAX_TOTAL_BYTES: usize = 4 << 20;
/// Fixed steps of a match, beside those for the text.
const STEPS_PER_MATCH: u64 = 40;
/// The worst case of the engine is its size times the length of the text: 2 KiB are about 80 states, each visited
/// once per byte.
const BYTES_PER_STEP: usize = 128;

pub(super) type PatternId = usize;

/// The patterns of a schema.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    ids: HashMap<String, PatternId>,
    compiled: Vec<Pattern>,
    total: usize,
}

#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) text: String,
    /// With the number of steps per byte.
    engine: Option<(Validator, u64)>,
}

impl Patterns {
    pub(super) fn add(&mut self, text: &str) -> PatternId {
        let next = self.compiled.len();
        let id = *self.ids.entry(text.to_owned()).or_insert(next);
        if id == next {
            let engine = if next < MAX_PATTERNS { self.compile(text) } else { None };
            self.compiled.push(Pattern { text: text.to_owned(), engine });
        }
        id
    }

    fn compile(&mut self, text: &str) -> Option<(Validator, u64)> {
        if text.len() > MAX_PATTERN_BYTES {
            return None;
        }
        // Compile time is proportional to the size limit, so that small limits are tried first.
        for size in SIZES {
            if self.total + size > MAX_TOTAL_BYTES {
                return None;
            }
            self.total += size;
            let options = PatternOptions::regex().size_limit(size);
            let schema = json!({"pattern": text});
            if let Ok(validator) =
                jsonschema::options().offline().with_pattern_options(options).build(&schema)
            {
                return Some((validator, u64::try_from(size / BYTES_PER_STEP).unwrap_or(u64::MAX)));
            }
        }
        None
    }

    pub(super) fn text(&self, id: PatternId) -> &str {
        self.compiled.get(id).map_or("", |pattern| &pattern.text)
    }

    /// Whether a string matches. Undecided if the pattern is not supported or too few steps are left.
    pub(super) fn matches(&self, id: PatternId, string: &Value, steps: &StepBudget) -> Verdict {
        let len = string.as_str().map_or(0, str::len);
        let Some((engine, per_byte)) = self.compiled.get(id).and_then(|pattern| pattern.engine.as_ref())
        else {
            return Verdict::Undecided;
        };
        let len = u64::try_from(len).unwrap_or(u64::MAX);
        if !steps.spend_pattern(len.saturating_mul(*per_byte).saturating_add(STEPS_PER_MATCH)) {
            return Verdict::Undecided;
        }
        Verdict::from(engine.is_valid(string))
    }
}
