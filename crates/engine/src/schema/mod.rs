//! Checking arguments against a tool's JSON Schema, and saying what is wrong in words a caller can act on.

mod cost;
mod plain;

use std::sync::OnceLock;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;
use toolhub_core::RawJson;
use toolhub_core::error::{ArgumentProblem, Expected};
use toolhub_core::json::MAX_DEPTH;

use self::cost::is_explosive;
use self::plain::Form;
use crate::near::near_names;

/// More problems than this are not worth reading.
const MOST_PROBLEMS: usize = 8;
/// A value in a message is cut to this many characters.
const LONGEST_VALUE: usize = 80;

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Schema {
    /// As it was written.
    raw: RawJson,
    /// Made when it is first needed: what is plain may never need it, and it is large.
    validator: OnceLock<Result<Validator, String>>,
    properties: Vec<String>,
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
        // Where there are several ways at once, the properties of one of them are not those of the schema.
        let plain = Form::read(&schema).filter(|_| schema.get("anyOf").is_none());
        let validator = OnceLock::new();
        if plain.is_none() {
            // Whether it can be used at all is to be known before anything is sent.
            let _ = validator.set(Ok(validator_of(schema)?));
        }
        Ok(Self { raw: raw.clone(), validator, properties, plain })
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
        let instance = arguments.value();
        let validator = self.validator().map_err(|detail| whole(Expected::Rule(detail.clone())))?;
        if validator.is_valid(&instance) {
            return Ok(());
        }
        let errors = validator.iter_errors(&instance).take(MOST_PROBLEMS);
        let problems: Vec<_> = errors.flat_map(|error| self.explain(&error, &instance)).collect();
        Err(problems)
    }

    fn explain(&self, error: &ValidationError<'_>, arguments: &Value) -> Vec<ArgumentProblem> {
        let path = path_of(error.instance_path().as_str());
        let came = Some(short(&error.instance().to_string()));
        let one = |expected| vec![ArgumentProblem { argument: path.clone(), expected, came: came.clone() }];
        match error.kind() {
            ValidationErrorKind::Required { property } => {
                let name = property.as_str().map_or_else(|| property.to_string(), str::to_owned);
                vec![ArgumentProblem {
                    argument: join(&path, &name),
                    expected: Expected::Present,
                    came: None,
                }]
            }
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
                let explain = |name: &String| ArgumentProblem {
                    argument: join(&path, name),
                    expected: Expected::Absent { near: self.meant(name, &path, arguments) },
                    came: None,
                };
                unexpected.iter().map(explain).collect()
            }
            ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
                match alternatives(context, error) {
                    Some(types) => one(Expected::Type(types)),
                    None => one(Expected::Rule("one of the forms its schema allows".to_owned())),
                }
            }
            kind => one(expected(kind).unwrap_or_else(|| Expected::Rule(error.to_string()))),
        }
    }

    /// The parameter that an unknown argument was probably meant for: a near name that is not given itself.
    fn meant(&self, name: &str, path: &str, arguments: &Value) -> Option<String> {
        if !path.is_empty() {
            return None;
        }
        let free = self.properties.iter().map(String::as_str).filter(|known| arguments.get(known).is_none());
        near_names(name, free, 1).pop()
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

fn expected(kind: &ValidationErrorKind) -> Option<Expected> {
    let rule = |text: String| Some(Expected::Rule(text));
    match kind {
        ValidationErrorKind::Type { kind } => Some(Expected::Type(types_of(kind))),
        ValidationErrorKind::Enum { options } => {
            let options =
                options.as_array().map(|all| all.iter().map(|option| short(&option.to_string())).collect());
            Some(Expected::OneOf(options.unwrap_or_default()))
        }
        ValidationErrorKind::Constant { expected_value } => {
            Some(Expected::OneOf(vec![short(&expected_value.to_string())]))
        }
        ValidationErrorKind::Minimum { limit } => rule(format!("≥ {limit}")),
        ValidationErrorKind::Maximum { limit } => rule(format!("≤ {limit}")),
        ValidationErrorKind::ExclusiveMinimum { limit } => rule(format!("> {limit}")),
        ValidationErrorKind::ExclusiveMaximum { limit } => rule(format!("< {limit}")),
        ValidationErrorKind::Pattern { pattern } => rule(format!("text matching /{pattern}/")),
        _ => None,
    }
}

fn types_of(kind: &TypeKind) -> Vec<String> {
    match kind {
        TypeKind::Single(one) => vec![one.to_string()],
        TypeKind::Multiple(many) => many.iter().map(|one| one.to_string()).collect(),
    }
}

/// The types that would have done, where every alternative failed for the value's type alone.
fn alternatives(context: &[Vec<ValidationError<'_>>], parent: &ValidationError<'_>) -> Option<Vec<String>> {
    let mut types = Vec::new();
    for branch in context {
        let [error] = branch.as_slice() else { return None };
        let ValidationErrorKind::Type { kind } = error.kind() else { return None };
        if error.instance_path().as_str() != parent.instance_path().as_str() {
            return None;
        }
        types.extend(types_of(kind));
    }
    types.dedup();
    Some(types)
}

/// A JSON pointer as people write a path: `/data/0/name` is `data[0].name`.
fn path_of(pointer: &str) -> String {
    pointer.split('/').skip(1).fold(String::new(), |path, step| {
        let step = step.replace("~1", "/").replace("~0", "~");
        if step.bytes().all(|byte| byte.is_ascii_digit()) && !path.is_empty() {
            format!("{path}[{step}]")
        } else {
            join(&path, &step)
        }
    })
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn short(text: &str) -> String {
    if text.chars().count() <= LONGEST_VALUE {
        return text.to_owned();
    }
    text.chars().take(LONGEST_VALUE - 1).chain(['…']).collect()
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
