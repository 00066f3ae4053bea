//! Arguments from the command line: `key=value` typed by the tool's schema, and JSON from a text, a file or stdin.

use std::io::Read as _;

use serde_json::Value;
use toolhub_core::error::{ArgumentExpectation, ArgumentProblem};
use toolhub_core::{Lang, RawJson, RawObject};

use toolhub_engine::coerce::coerce;

use crate::exit::UsageError;

/// The maximum number of nested local references; more indicate a cycle.
const MAX_REFERENCES: usize = 32;

/// The JSON object of `--args`: a text, `@FILE`, or `-` for standard input.
pub(crate) fn parse_json_arguments(args: &str, lang: Lang) -> Result<RawJson, UsageError> {
    let read_error = |source: &str, error: std::io::Error| {
        UsageError(lang.choose(
            format!("the arguments in {source} could not be read: {error}"),
            format!("无法读取 {source} 中的参数：{error}"),
        ))
    };
    let (text, source) = match (args, args.strip_prefix('@')) {
        ("-", _) => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map_err(|error| read_error("-", error))?;
            (text, "-".to_owned())
        }
        (_, Some(file)) => {
            let source = format!("`{file}`");
            let text = std::fs::read_to_string(file).map_err(|error| read_error(&source, error))?;
            (text.trim_start_matches('\u{feff}').to_owned(), source)
        }
        _ => (args.to_owned(), "--args".to_owned()),
    };
    let raw = RawJson::parse(text.trim().to_owned()).map_err(|error| {
        UsageError(lang.choose(
            format!("the arguments in {source} are not valid JSON: {error}"),
            format!("{source} 中的参数不是有效的 JSON：{error}"),
        ))
    })?;
    if raw.is_object() {
        return Ok(raw);
    }
    Err(UsageError(lang.choose(
        format!("the arguments in {source} should be a JSON object, such as '{{\"key\": 1}}'"),
        format!("{source} 中的参数应为 JSON 对象，例如 '{{\"key\": 1}}'"),
    )))
}

/// Adds the pairs to `args`, each typed by `schema`.
pub(crate) fn with_pairs(
    args: Option<&RawJson>,
    pairs: &[String],
    schema: &RawJson,
    lang: Lang,
) -> Result<RawJson, PairError> {
    let definition = schema;
    let schema = SchemaTypes { root: schema.value() };
    let mut unknown_arguments = Vec::new();
    let mut object = args.and_then(RawJson::object).unwrap_or_default();
    let mut texts: Vec<(String, Vec<PairValue>)> = Vec::new();
    for pair in pairs {
        let (key, value) = pair.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
            if pair.starts_with('{') {
                return UsageError(lang.choose(
                    format!("give arguments as JSON with `--args '{pair}'`, or write each as key=value"),
                    format!("JSON 形式的参数请用 `--args '{pair}'`，或逐个写成 key=value"),
                ));
            }
            UsageError(lang.choose(
                format!("`{pair}` is not an argument: write it as key=value"),
                format!("`{pair}` 不是参数：请写成 key=value"),
            ))
        })?;
        let (key, given) = match key.strip_suffix(':') {
            Some(key) => {
                let raw = RawJson::parse(value.trim().to_owned()).map_err(|error| {
                    UsageError(lang.choose(
                        format!("the value of `{key}:=` is not valid JSON: {error}"),
                        format!("`{key}:=` 的值不是有效的 JSON：{error}"),
                    ))
                })?;
                (key, PairValue::Json(raw))
            }
            None => (key, PairValue::Text(value.to_owned())),
        };
        match texts.iter_mut().find(|(known, _)| known == key) {
            Some((_, values)) => values.push(given),
            None => texts.push((key.to_owned(), vec![given])),
        }
    }
    for (key, values) in texts {
        let path = schema.path(&key);
        if let Some(near) = schema.unknown_key(&path) {
            // A name that is similar to exactly one parameter is corrected by coercion, which is checked below.
            unknown_arguments.push(ArgumentProblem {
                argument: key.clone(),
                expected: ArgumentExpectation::Absent { near },
                actual: None,
            });
        }
        let value = schema.typed(schema.property(&path), &values).ok_or_else(|| {
            UsageError(lang.choose(
                format!("`{key}` is given {} times, but takes one value", values.len()),
                format!("`{key}` 给出了 {} 次，但只接受一个值", values.len()),
            ))
        })?;
        put(&mut object, &path, value);
    }
    let arguments = object.into_raw();
    if unknown_arguments.is_empty() {
        return Ok(arguments);
    }
    let coerced =
        coerce(definition, &arguments).and_then(|coerced| coerced.arguments.object()).unwrap_or_default();
    let is_relevant = |problem: &ArgumentProblem| coerced.is_empty() || coerced.contains(&problem.argument);
    match unknown_arguments.into_iter().find(is_relevant) {
        Some(problem) => Err(PairError::Unknown(problem)),
        None => Ok(arguments),
    }
}

/// Why pairs are rejected.
#[derive(Debug)]
pub(crate) enum PairError {
    /// Invalid syntax.
    Usage(UsageError),
    /// An argument that the schema does not define. Few schemas forbid those, but on the command line it is most likely a typing
    /// error: the tool would ignore it and do something unintended. `--args` accepts any argument.
    Unknown(ArgumentProblem),
}

impl From<UsageError> for PairError {
    fn from(error: UsageError) -> Self {
        Self::Usage(error)
    }
}

enum PairValue {
    Text(String),
    Json(RawJson),
}

fn put(object: &mut RawObject, path: &[&str], value: RawJson) {
    match path {
        [] => {}
        [key] => object.set((*key).to_owned(), value),
        [key, rest @ ..] => {
            let mut inner = object.get(key).and_then(RawJson::object).unwrap_or_default();
            put(&mut inner, rest, value);
            object.set((*key).to_owned(), inner);
        }
    }
}

/// Finds the type of an argument in its schema.
struct SchemaTypes {
    root: Value,
}

impl SchemaTypes {
    /// `a.b` is member `b` of argument `a`, unless there is an argument named `a.b`.
    fn path<'a>(&self, key: &'a str) -> Vec<&'a str> {
        let whole = self.member(&self.root, key).is_some();
        match key.split_once('.') {
            Some((first, _)) if !whole && self.member(&self.root, first).is_some() => {
                key.split('.').collect()
            }
            _ => vec![key],
        }
    }

    /// Returns `Some` if the schema does not define the argument but defines others; the inner value is the most similar defined
    /// name.
    fn unknown_key(&self, path: &[&str]) -> Option<Option<String>> {
        let properties = self.root.get("properties")?.as_object()?;
        let open = self.root.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false));
        let name = path.first()?;
        if open || self.root.get("patternProperties").is_some() || properties.contains_key(*name) {
            return None;
        }
        Some(toolhub_engine::similar_names(name, properties.keys().map(String::as_str), 1).pop())
    }

    fn property(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(&self.root, |schema, step| self.member(schema, step))
    }

    fn member<'a>(&'a self, schema: &'a Value, name: &str) -> Option<&'a Value> {
        self.resolve(schema).get("properties")?.get(name)
    }

    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let mut schema = schema;
        for _ in 0..MAX_REFERENCES {
            let target = schema.get("$ref").and_then(Value::as_str).and_then(|link| link.strip_prefix('#'));
            match target.and_then(|pointer| self.root.pointer(pointer)) {
                Some(next) => schema = next,
                None => break,
            }
        }
        schema
    }

    fn typed(&self, schema: Option<&Value>, values: &[PairValue]) -> Option<RawJson> {
        match values {
            [PairValue::Json(raw)] => Some(raw.clone()),
            [PairValue::Text(text)] => Some(self.one(schema, text)),
            several => {
                let schema = schema.map(|schema| self.resolve(schema));
                let list = schema.is_none_or(|schema| self.allows(schema, "array"));
                let plain = schema.is_none_or(|schema| self.takes_plain_items(schema, ""));
                let list = list && (plain || several.iter().all(|given| matches!(given, PairValue::Json(_))));
                let items = schema.and_then(|schema| self.items(schema));
                let item = |given: &PairValue| match given {
                    PairValue::Json(raw) => raw.clone(),
                    PairValue::Text(text) => self.one(items, text),
                };
                list.then(|| RawJson::of(&several.iter().map(item).collect::<Vec<_>>()))
            }
        }
    }

    fn one(&self, schema: Option<&Value>, text: &str) -> RawJson {
        let as_text = || RawJson::from(text);
        let as_json = RawJson::parse(text.trim().to_owned()).ok().filter(|raw| !raw.get().starts_with('"'));
        // Without a type, valid JSON is parsed as JSON.
        let Some(schema) = schema.map(|schema| self.resolve(schema)) else {
            return as_json.unwrap_or_else(as_text);
        };
        if let Some(options) = schema.get("enum").and_then(Value::as_array)
            && options.iter().any(|option| option.as_str() == Some(text))
        {
            return as_text();
        }
        let allowed = |kind: &str| self.allows(schema, kind);
        let fits = |raw: &RawJson| match raw.get().as_bytes().first() {
            Some(b'{') => allowed("object"),
            Some(b'[') => allowed("array"),
            Some(b't' | b'f') => allowed("boolean"),
            Some(b'n') => allowed("null"),
            _ => allowed("number") || allowed("integer"),
        };
        if let Some(raw) = as_json.filter(fits) {
            return raw;
        }
        match text.to_ascii_lowercase().as_str() {
            "true" | "false" if allowed("boolean") => RawJson::from(text.eq_ignore_ascii_case("true")),
            // A single value for a list of scalars. Invalid JSON and lists of lists are not converted: validation of the
            // arguments reports them.
            _ if allowed("array") && !allowed("string") && self.takes_plain_items(schema, text) => {
                RawJson::of(&[self.one(self.items(schema), text)])
            }
            _ => as_text(),
        }
    }

    fn takes_plain_items(&self, schema: &Value, text: &str) -> bool {
        let nested = self.items(schema).is_some_and(|items| {
            let plain = ["string", "number", "integer", "boolean"];
            !plain.iter().any(|kind| self.allows(items, kind))
        });
        !nested && !text.trim_start().starts_with(['[', '{'])
    }

    fn items<'a>(&'a self, schema: &'a Value) -> Option<&'a Value> {
        let own = schema.get("items");
        own.or_else(|| self.alternatives(schema).find_map(|branch| self.resolve(branch).get("items")))
    }

    fn alternatives<'a>(&'a self, schema: &'a Value) -> impl Iterator<Item = &'a Value> {
        ["anyOf", "oneOf"].into_iter().filter_map(|key| schema.get(key)?.as_array()).flatten()
    }

    /// Whether a schema accepts values of a type. A schema without types accepts all.
    fn allows(&self, schema: &Value, kind: &str) -> bool {
        let schema = self.resolve(schema);
        match schema.get("type") {
            Some(Value::String(only)) => only == kind,
            Some(Value::Array(several)) => several.iter().any(|one| one.as_str() == Some(kind)),
            _ => {
                let mut branches = self.alternatives(schema).peekable();
                branches.peek().is_none() || branches.any(|branch| self.allows(branch, kind))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn build(schema: Value, args: Option<&str>, pairs: &[&str]) -> Result<String, String> {
        let args = args
            .map(|text| parse_json_arguments(text, Lang::En))
            .transpose()
            .map_err(|error| error.to_string())?;
        let pairs: Vec<String> = pairs.iter().map(ToString::to_string).collect();
        with_pairs(args.as_ref(), &pairs, &RawJson::from(schema), Lang::En)
            .map(|raw| raw.get().to_owned())
            .map_err(|error| match error {
                PairError::Usage(error) => error.to_string(),
                PairError::Unknown(problem) => toolhub_core::Localize::localize(&problem, Lang::En),
            })
    }

    #[test]
    fn converts_pairs_by_schema_type() {
        let schema = json!({"$defs": {"Mode": {"enum": ["1", "fast"]}}, "properties": {
            "text": {"type": "string"}, "count": {"type": "integer"}, "flag": {"type": "boolean"},
            "list": {"type": "array", "items": {"type": "string"}}, "rows": {"type": "array", "items": {"type": "array"}},
            "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "mode": {"$ref": "#/$defs/Mode"},
            "names": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
            "opt": {"type": "object", "properties": {"n": {"type": "number"}}}, "any": {},
        }});
        let check = |pairs: &[&str], expect: &str| {
            assert_eq!(build(schema.clone(), None, pairs).as_deref(), Ok(expect), "{pairs:?}");
        };
        check(&["text=5"], r#"{"text":"5"}"#);
        check(&["text=a=b"], r#"{"text":"a=b"}"#);
        check(&["text={\"a\":1}"], r#"{"text":"{\"a\":1}"}"#);
        check(
            &["count=1234567890123456789012345678901234567890"],
            r#"{"count":1234567890123456789012345678901234567890}"#,
        );
        check(&["count=abc"], r#"{"count":"abc"}"#);
        check(&["flag=TRUE"], r#"{"flag":true}"#);
        check(&["list=a"], r#"{"list":["a"]}"#);
        check(&["list=a", "list=5"], r#"{"list":["a","5"]}"#);
        check(&["rows=[[1,\"名\"]]"], r#"{"rows":[[1,"名"]]}"#);
        check(&["maybe=null"], r#"{"maybe":null}"#);
        check(&["maybe=5"], r#"{"maybe":5}"#);
        check(&["mode=1"], r#"{"mode":"1"}"#);
        check(&["names=5"], r#"{"names":["5"]}"#);
        check(&["opt.n=1.50"], r#"{"opt":{"n":1.50}}"#);
        check(&["any=5"], r#"{"any":5}"#);
        check(&["rows=[[1"], r#"{"rows":"[[1"}"#);
        check(&["rows=hello"], r#"{"rows":"hello"}"#);
        check(&["list=[broken"], r#"{"list":"[broken"}"#);
        check(&["text:=[1]"], r#"{"text":[1]}"#);
    }

    #[test]
    fn pairs_override_args() {
        let schema = json!({"properties": {"a": {"type": "integer"}}});
        assert_eq!(build(schema, Some(r#"{"b": 1e2, "a": 1}"#), &["a=2"]).unwrap(), r#"{"b":1e2,"a":2}"#);
    }

    #[test]
    fn argument_errors_include_next_step() {
        let check = |args: Option<&str>, pairs: &[&str], expect: &str| {
            let error = build(json!({"properties": {"a": {"type": "string"}}}), args, pairs).unwrap_err();
            assert!(error.contains(expect), "{error}");
        };
        check(None, &["oops"], "`oops` is not an argument: write it as key=value");
        check(None, &["=x"], "write it as key=value");
        check(None, &["{\"a\":1}"], "give arguments as JSON with `--args '{\"a\":1}'`");
        check(None, &["a=1", "a=2"], "`a` is given 2 times");
        check(None, &["a:={"], "is not valid JSON");
        check(None, &["aa=1"], "there is no argument `aa` (did you mean `a`?)");
        check(None, &["zzz=1"], "there is no argument `zzz`");
        check(Some("[1]"), &[], "should be a JSON object");
        check(Some("{"), &[], "not valid JSON");
        check(Some("@/does/not/exist"), &[], "could not be read");
    }

    #[test]
    fn stops_at_circular_references() {
        let schema =
            json!({"$defs": {"a": {"$ref": "#/$defs/a"}}, "properties": {"x": {"$ref": "#/$defs/a"}}});
        assert_eq!(build(schema, None, &["x=1"]).unwrap(), r#"{"x":1}"#);
    }
}
