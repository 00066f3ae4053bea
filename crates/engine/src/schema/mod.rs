//! Checking arguments against a tool's JSON Schema, and saying what is wrong in words a caller can act on.

#[cfg(test)]
mod attacks;
mod cost;
mod explain;
mod plain;

use std::sync::OnceLock;

use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;
use toolhub_core::RawJson;
use toolhub_core::error::{ArgumentProblem, Expected};
use toolhub_core::json::MAX_DEPTH;

use self::cost::is_explosive;
use self::explain::{Explainer, short};
use self::plain::Form;

/// With more unknown arguments than this no tree is made of them to find other problems.
const MAX_UNKNOWN: usize = 64;

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Schema {
    /// As it was written.
    raw: RawJson,
    /// Made when it is first needed: what is plain may never need it, and it is large.
    validator: OnceLock<Result<Validator, String>>,
    properties: Vec<String>,
    /// Whether no argument but these properties is allowed.
    closed: bool,
    /// Whether it has alternatives anywhere.
    alternatives: bool,
    /// The same, as far as it is plain enough to be checked without a tree.
    plain: Option<Form>,
}

impl Schema {
    /// Compiles a schema. References to other documents are never followed: they make the schema unusable.
    pub(crate) fn compile(raw: &RawJson) -> Result<Self, String> {
        let schema = raw.value();
        if is_explosive(&schema) {
            return Err("its references multiply without end".to_owned());
        }
        let properties =
            schema["properties"].as_object().map(|map| map.keys().cloned().collect()).unwrap_or_default();
        let closed = schema.get("additionalProperties") == Some(&Value::Bool(false))
            && schema.get("patternProperties").is_none();
        let alternatives = ["\"anyOf\"", "\"oneOf\""].iter().any(|word| raw.get().contains(word));
        // Where there are several ways at once, the properties of one of them are not those of the schema.
        let plain = Form::read(&schema).filter(|_| schema.get("anyOf").is_none());
        let validator = OnceLock::new();
        if plain.is_none() {
            // Whether it can be used at all is to be known before anything is sent.
            let _ = validator.set(Ok(validator_of(schema)?));
        }
        Ok(Self { raw: raw.clone(), validator, properties, closed, alternatives, plain })
    }

    fn validator(&self) -> Result<&Validator, &String> {
        self.validator.get_or_init(|| validator_of(self.raw.value())).as_ref()
    }

    /// Whether arguments certainly fit: where they do, whether every one of them is spoken of. `None` says nothing
    /// against them.
    pub(crate) fn surely_fits(&self, arguments: &RawJson) -> Option<bool> {
        self.plain.as_ref().filter(|_| arguments.is_object())?.fits(arguments.get())
    }

    /// Whether an argument of that name is spoken of.
    pub(crate) fn knows(&self, argument: &str) -> bool {
        self.properties.iter().any(|property| property == argument)
    }

    /// Checks arguments; every problem names the argument, what was expected and what came.
    pub(crate) fn check(&self, arguments: &RawJson) -> Result<(), Vec<ArgumentProblem>> {
        // What is read so is less deep than is allowed, since the reader has the same limit as that for trees.
        if self.surely_fits(arguments).is_some() {
            return Ok(());
        }
        let whole = |expected| {
            vec![ArgumentProblem { argument: String::new(), expected, came: Some(short(arguments.get())) }]
        };
        // The validator recurses with the instance, so depth is bounded before it sees one.
        if arguments.too_deep().is_some() {
            return Err(whole(Expected::Rule(format!("nested at most {MAX_DEPTH} deep"))));
        }
        if !arguments.is_object() {
            return Err(whole(Expected::Type(vec!["object".to_owned()])));
        }
        let validator = self.validator().map_err(|detail| whole(Expected::Rule(short(detail))))?;
        let explainer =
            Explainer { validator, properties: &self.properties, alternatives: self.alternatives };
        if let Some(members) = arguments.object().filter(|_| self.closed) {
            let unknown = || members.iter().map(|(name, _)| name).filter(|name| !self.knows(name));
            if unknown().nth(MAX_UNKNOWN).is_some() {
                let given = |known: &&String| members.contains(known);
                let given: Vec<&str> = self.properties.iter().filter(given).map(String::as_str).collect();
                return Err(explainer.unknown(unknown(), &given));
            }
        }
        let instance = arguments.value();
        if validator.is_valid(&instance) {
            return Ok(());
        }
        Err(explainer.problems(&instance))
    }
}

fn validator_of(mut schema: Value) -> Result<Validator, String> {
    match build(&schema, None) {
        Ok(validator) => Ok(validator),
        // A `$schema` nobody knows says nothing of the rest, which is most likely the default dialect.
        Err(_) if schema.get("$schema").is_some() => {
            if let Some(members) = schema.as_object_mut() {
                members.remove("$schema");
            }
            build(&schema, Some(Draft::Draft202012)).map_err(|error| error.to_string())
        }
        Err(error) => Err(error.to_string()),
    }
}

fn build(schema: &Value, draft: Option<Draft>) -> Result<Validator, Box<ValidationError<'static>>> {
    let mut options = jsonschema::options()
        .offline()
        .should_validate_formats(false)
        .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(100_000).size_limit(1 << 20));
    if let Some(draft) = draft {
        options = options.with_draft(draft);
    }
    options.build(schema).map_err(Box::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolhub_core::{Lang, Say};

    fn problems(schema: Value, arguments: Value) -> Vec<String> {
        let schema = Schema::compile(&RawJson::from(schema)).unwrap();
        let found = schema.check(&RawJson::from(arguments)).err().unwrap_or_default();
        found.iter().map(|problem| problem.say(Lang::En)).collect()
    }

    #[test]
    fn each_problem_names_argument_expectation_and_what_came() {
        let schema = json!({"type": "object", "additionalProperties": false, "required": ["filepath"], "properties": {
            "filepath": {"type": "string"},
            "rows": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}},
            "mode": {"enum": ["r", "w"]},
            "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        }});
        let check = |arguments: Value, expect: &[&str]| {
            assert_eq!(problems(schema.clone(), arguments.clone()), expect, "{arguments}");
        };
        check(json!({"filepath": "a"}), &[]);
        check(json!({}), &["`filepath` is missing"]);
        check(
            json!({"file_path": "a"}),
            &["there is no argument `file_path` (did you mean `filepath`?)", "`filepath` is missing"],
        );
        check(json!({"filepath": 3}), &["`filepath` should be string, got 3"]);
        check(
            json!({"filepath": "a", "rows": [{"n": 1}, {"n": "x"}]}),
            &["`rows[1].n` should be integer, got \"x\""],
        );
        check(json!({"filepath": "a", "rows": [{"n": 0}]}), &["`rows[0].n` should be ≥ 1, got 0"]);
        check(json!({"filepath": "a", "mode": "q"}), &["`mode` should be one of \"r\", \"w\", got \"q\""]);
        check(json!({"filepath": "a", "limit": "z"}), &["`limit` should be integer or null, got \"z\""]);
        check(json!([1]), &["the arguments should be object, got [1]"]);
    }

    #[test]
    fn remote_references_are_never_followed() {
        for reference in ["http://127.0.0.1:9/schema", "file:///etc/hostname"] {
            let error = Schema::compile(&RawJson::from(json!({"$ref": reference}))).unwrap_err();
            assert!(!error.is_empty());
        }
    }

    /// A circle that never gets further must not hang: it is refused, or checks nothing.
    #[test]
    fn circles_end() {
        let circle =
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
        if let Ok(schema) = Schema::compile(&RawJson::from(circle)) {
            let _ = schema.check(&RawJson::from(json!({"x": 1})));
        }
    }

    #[test]
    fn depth_is_bounded_before_the_validator_runs() {
        let schema = Schema::compile(&RawJson::from(
            json!({"$defs": {"a": {"properties": {"a": {"$ref": "#/$defs/a"}}}}, "$ref": "#/$defs/a"}),
        ))
        .unwrap();
        let deep = format!("{}1{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
        assert!(schema.check(&RawJson::parse(deep).unwrap()).is_err());
    }

    #[test]
    fn an_unknown_dialect_is_taken_for_the_default() {
        let schema = json!({"$schema": "https://example.com/none", "type": "object", "required": ["a"]});
        assert_eq!(problems(schema, json!({})), ["`a` is missing"]);
    }
}
