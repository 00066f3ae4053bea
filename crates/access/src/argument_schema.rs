//! The argument schema of a rule, compiled, and the arguments that it is compared with.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::{Map, Value};
use toolhub_core::RawJson;
use toolhub_core::lang::LocalizedText;
use toolhub_core::text::truncate;

use crate::schema_subset;
use crate::spellings::{MAX_COMPILED_PATTERN_BYTES, Spellings};

/// Maximum length of the validator's message in an error, in characters.
const MAX_VALIDATOR_MESSAGE_CHARS: usize = 200;

/// How arguments relate to a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The schema accepts them.
    Accepted,
    /// The schema rejects them.
    Rejected,
    /// They are absent, not an object, or ambiguous: a server may read them in another way.
    Unreadable,
}

/// A compiled argument schema.
#[derive(Debug)]
pub(crate) struct ArgumentSchema {
    /// Unique within a rule set.
    id: usize,
    schema: Map<String, Value>,
    validator: Validator,
    spellings: Spellings,
}

impl ArgumentSchema {
    /// Compiles a schema. Formats are checked, regular expressions take linear time, and nothing is fetched.
    fn compile(id: usize, schema: &Value) -> Result<Self, LocalizedText> {
        let Value::Object(members) = schema else {
            return Err(LocalizedText::new(
                "not an object: write a JSON Schema, such as `{ properties = { path = { pattern = \"^/data/\" } } }`",
                "不是对象：请写成 JSON Schema，例如 `{ properties = { path = { pattern = \"^/data/\" } } }`",
            ));
        };
        if let Some(depth) = RawJson::of(schema).too_deep() {
            return Err(LocalizedText::new(
                format!("the schema is nested {depth} deep"),
                format!("schema 嵌套过深（{depth} 层）"),
            ));
        }
        schema_subset::check(schema)?;
        let accepts_objects = match members.get("type") {
            Some(Value::String(name)) => name == "object",
            Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
            _ => true,
        };
        if !accepts_objects {
            return Err(LocalizedText::new(
                "the schema never matches: arguments are always an object",
                "该 schema 永远不会匹配：参数总是一个对象",
            ));
        }
        let options = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .offline()
            .should_validate_formats(true)
            .should_ignore_unknown_formats(false)
            .with_pattern_options(PatternOptions::regex().size_limit(MAX_COMPILED_PATTERN_BYTES));
        let validator = options.build(schema).map_err(|error| {
            let place = error.instance_path().as_str().to_owned();
            let reason = error.to_string();
            let reason = truncate(&reason, MAX_VALIDATOR_MESSAGE_CHARS).unwrap_or(reason);
            let at = |word: &str| if place.is_empty() { String::new() } else { format!("{word} `{place}`") };
            LocalizedText::new(
                format!("invalid JSON Schema{}: {reason}", at(" at")),
                format!("JSON Schema 无效{}：{reason}", at("，位于")),
            )
        })?;
        Ok(Self { id, schema: members.clone(), validator, spellings: Spellings::of(schema)? })
    }

    /// The schema as written.
    pub(crate) fn schema(&self) -> &Map<String, Value> {
        &self.schema
    }

    /// Compares arguments with the schema.
    pub(crate) fn judge(&self, arguments: &Arguments<'_>) -> Verdict {
        let (Some(raw), Some(value)) = (arguments.raw, arguments.value()) else { return Verdict::Unreadable };
        // Many rules share few schemas.
        let cached_verdict =
            arguments.verdicts.borrow().iter().find(|(schema, _)| *schema == self.id).copied();
        if let Some((_, verdict)) = cached_verdict {
            return verdict;
        }
        let verdict = if self.spellings.has_variant_in(raw) {
            Verdict::Unreadable
        } else if self.validator.is_valid(value) {
            Verdict::Accepted
        } else {
            Verdict::Rejected
        };
        arguments.verdicts.borrow_mut().push((self.id, verdict));
        verdict
    }
}

/// Compiles each distinct schema of a rule set once.
#[derive(Debug, Default)]
pub(crate) struct ArgumentSchemas(HashMap<String, Arc<ArgumentSchema>>);

impl ArgumentSchemas {
    pub(crate) fn compile(&mut self, schema: &Value) -> Result<Arc<ArgumentSchema>, LocalizedText> {
        // The order of keys is a part of the text, because it is listed.
        let text = schema.to_string();
        if let Some(compiled_schema) = self.0.get(&text) {
            return Ok(Arc::clone(compiled_schema));
        }
        let compiled = Arc::new(ArgumentSchema::compile(self.0.len(), schema)?);
        self.0.insert(text, Arc::clone(&compiled));
        Ok(compiled)
    }
}

/// The arguments of a call, parsed when a rule first needs them.
#[derive(Debug)]
pub(crate) struct Arguments<'a> {
    raw: Option<&'a RawJson>,
    parsed: OnceCell<Option<Value>>,
    /// The results so far, by the id of the schema. All schemas belong to one rule set.
    verdicts: RefCell<Vec<(usize, Verdict)>>,
}

impl<'a> Arguments<'a> {
    pub(crate) fn new(raw: Option<&'a RawJson>) -> Self {
        Self { raw, parsed: OnceCell::new(), verdicts: RefCell::default() }
    }

    /// The arguments, if they are an object that every parser reads alike.
    fn value(&self) -> Option<&Value> {
        let parse = || {
            let raw = self.raw.filter(|raw| raw.too_deep().is_none() && raw.key_problem().is_none())?;
            raw.decode::<Value>().ok().filter(Value::is_object)
        };
        self.parsed.get_or_init(parse).as_ref()
    }
}
