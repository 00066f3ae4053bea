//! Checks arguments against a tool's JSON Schema, and describes problems so that a caller can fix them. The schema
//! comes from a server and the arguments from a caller, so that the work of a check is counted and bounded.

#[cfg(test)]
mod attacks;
mod budget;
mod canonical;
mod compile;
#[cfg(test)]
mod conformance;
mod draft;
mod evaluate;
mod explain;
mod number;
mod pattern;
mod plain;
mod references;
mod verdict;

use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::OnceLock;

use serde_json::Value;
use toolhub_core::RawJson;
use toolhub_core::error::{ArgumentExpectation, ArgumentProblem};
use toolhub_core::json::MAX_DEPTH;
use toolhub_core::lang::LocalizedText;
use toolhub_core::schema_keywords::remove_ill_formed;

use self::budget::BudgetExhausted;
pub(crate) use self::budget::StepBudget;
use self::compile::{CompiledSchema, compile};
use self::evaluate::Evaluation;
use self::explain::{Explainer, short};
use self::plain::PlainSchema;
use self::verdict::Verdict;

/// Bytes of arguments that are parsed into a tree in the time of one step.
const PARSED_BYTES_PER_STEP: usize = 1;

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Schema {
    /// The original text.
    raw: RawJson,
    /// Compiled on first use: it is large, and plain schemas may never need it.
    program: OnceLock<Result<CompiledSchema, String>>,
    /// The top-level properties, in order.
    properties: Vec<String>,
    names: HashSet<String>,
    /// The same schema in a form that is checked without parsing a tree, if it is plain enough.
    plain: Option<PlainSchema>,
}

/// Arguments to check, possibly against several schemas: parsed once, within one budget.
pub(crate) struct Instance<'a> {
    raw: &'a RawJson,
    tree: OnceCell<Value>,
    steps: &'a StepBudget,
}

impl<'a> Instance<'a> {
    pub(crate) fn new(raw: &'a RawJson, steps: &'a StepBudget) -> Self {
        Self { raw, tree: OnceCell::new(), steps }
    }

    /// The original text of the arguments.
    pub(crate) fn raw(&self) -> &'a RawJson {
        self.raw
    }

    /// The step budget.
    pub(crate) fn steps(&self) -> &'a StepBudget {
        self.steps
    }

    fn tree(&self) -> Result<&Value, BudgetExhausted> {
        if self.tree.get().is_none() {
            self.steps.spend_len(self.raw.get().len(), PARSED_BYTES_PER_STEP)?;
        }
        Ok(self.tree.get_or_init(|| self.raw.value()))
    }
}

impl Schema {
    /// Compiles a schema. References to other documents are never followed: they make the schema unusable. A keyword
    /// with an invalid value is ignored.
    pub(crate) fn compile(raw: &RawJson) -> Result<Self, String> {
        let mut schema = raw.value();
        let raw = if remove_ill_formed(&mut schema) { RawJson::from(schema.clone()) } else { raw.clone() };
        let properties: Vec<String> =
            schema["properties"].as_object().map(|map| map.keys().cloned().collect()).unwrap_or_default();
        let names = properties.iter().cloned().collect();
        // With alternatives at the top level, the properties of one of them are not those of the schema.
        let plain = PlainSchema::read(&schema).filter(|_| schema.get("anyOf").is_none());
        let program = OnceLock::new();
        if plain.is_none() {
            // An unusable schema must be detected before anything is sent.
            let _ = program.set(Ok(compile(&schema)?));
        }
        Ok(Self { raw, program, properties, names, plain })
    }

    fn program(&self) -> Result<&CompiledSchema, &String> {
        self.program.get_or_init(|| compile(&self.raw.value())).as_ref()
    }

    /// Whether the arguments are certainly valid: `Some(true)` if all of them are also declared. `None` means
    /// undecided.
    pub(crate) fn check_certain(&self, arguments: &RawJson) -> Option<bool> {
        self.plain.as_ref().filter(|_| arguments.is_object())?.fits(arguments.get())
    }

    /// Whether the schema declares an argument of this name.
    pub(crate) fn declares(&self, argument: &str) -> bool {
        self.names.contains(argument)
    }

    /// Checks arguments; every problem names the argument, the expectation and the actual value. Arguments that need
    /// more steps than their budget are rejected.
    pub(crate) fn check(&self, arguments: &Instance<'_>) -> Result<(), Vec<ArgumentProblem>> {
        let raw = arguments.raw;
        // This parser has the same depth limit as the one for trees, so that accepted arguments are not too deep.
        if self.check_certain(raw).is_some() {
            return Ok(());
        }
        let root_error = |expected| {
            vec![ArgumentProblem { argument: String::new(), expected, actual: Some(short(raw.get())) }]
        };
        // Evaluation recurses into the arguments, so that their depth is limited first.
        if raw.too_deep().is_some() {
            return Err(root_error(ArgumentExpectation::Rule(LocalizedText::new(
                format!("nested at most {MAX_DEPTH} deep"),
                format!("嵌套不超过 {MAX_DEPTH} 层的值"),
            ))));
        }
        if !raw.is_object() {
            return Err(root_error(ArgumentExpectation::Type(vec!["object".to_owned()])));
        }
        let program =
            self.program().map_err(|detail| root_error(ArgumentExpectation::Rule(short(detail).into())))?;
        let costly = |BudgetExhausted| {
            root_error(ArgumentExpectation::Rule(LocalizedText::new(
                "smaller or less nested: checking them against the schema takes too much work",
                "更小或嵌套更少的值：按 schema 检查它的计算量过大",
            )))
        };
        let tree = arguments.tree().map_err(costly)?;
        let verdict = Evaluation::new(program, arguments.steps).node(program.root, tree).map_err(costly)?;
        if verdict != Verdict::Invalid {
            return Ok(());
        }
        let explainer = Explainer { program, steps: arguments.steps, properties: &self.properties };
        Err(explainer.problems(tree))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolhub_core::{Lang, Localize};

    fn check(schema: &Schema, arguments: &RawJson) -> Result<(), Vec<ArgumentProblem>> {
        schema.check(&Instance::new(arguments, &StepBudget::for_bytes(arguments.get().len())))
    }

    fn problems(schema: Value, arguments: Value) -> Vec<String> {
        let schema = Schema::compile(&RawJson::from(schema)).unwrap();
        let found = check(&schema, &RawJson::from(arguments)).err().unwrap_or_default();
        found.iter().map(|problem| problem.localize(Lang::En)).collect()
    }

    #[test]
    fn problems_name_argument_expected_and_actual_value() {
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
    fn ignores_keywords_of_a_wrong_type() {
        let schema = json!({"type": "object", "required": ["n"], "properties": {
            "n": {"type": "integer", "minimum": "0", "maximum": 9, "required": true},
            "any": {"type": "any"},
        }, "additionalProperties": null});
        assert_eq!(problems(schema.clone(), json!({"n": -1, "any": [1], "more": 2})), [""; 0]);
        assert_eq!(problems(schema.clone(), json!({"n": 10})), ["`n` should be ≤ 9, got 10"]);
        assert_eq!(problems(schema, json!({})), ["`n` is missing"]);
    }

    #[test]
    fn never_fetches_remote_references() {
        for reference in ["http://127.0.0.1:9/schema", "file:///etc/hostname"] {
            let error = Schema::compile(&RawJson::from(json!({"$ref": reference}))).unwrap_err();
            assert!(!error.is_empty());
        }
    }

    /// A reference cycle must not hang: the schema is rejected, or the cycle has no effect.
    #[test]
    fn circular_references_terminate() {
        let circle =
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
        if let Ok(schema) = Schema::compile(&RawJson::from(circle)) {
            let _ = check(&schema, &RawJson::from(json!({"x": 1})));
        }
    }

    #[test]
    fn rejects_excessive_depth_before_validation() {
        let schema = Schema::compile(&RawJson::from(
            json!({"$defs": {"a": {"properties": {"a": {"$ref": "#/$defs/a"}}}}, "$ref": "#/$defs/a"}),
        ))
        .unwrap();
        let deep = format!("{}1{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
        assert!(check(&schema, &RawJson::parse(deep).unwrap()).is_err());
    }

    #[test]
    fn treats_unknown_dialect_as_default() {
        let schema = json!({"$schema": "https://example.com/none", "type": "object", "required": ["a"]});
        assert_eq!(problems(schema, json!({})), ["`a` is missing"]);
    }
}
