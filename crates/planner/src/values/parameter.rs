//! Tool parameters for the planner: type, labels, role and examples, derived from the JSON Schema.

use serde_json::{Map, Value};

use crate::lexer::labels::{self, Label};
use crate::lexer::name::has_han;
use crate::lexer::units::{self, Unit};
use crate::values::role::{Role, RoleEvidence};

/// The type of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ValueType {
    Text,
    Integer,
    Number,
    Boolean,
    List(Box<Parameter>),
    Object(Vec<Parameter>),
    Any,
}

/// A parameter of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    /// The words of its name in lowercase.
    pub(crate) words: Vec<String>,
    pub(crate) shape: ValueType,
    pub(crate) role: Role,
    pub(crate) required: bool,
    /// The allowed values; empty if any value is allowed.
    pub(crate) choices: Vec<Value>,
    pub(crate) description: String,
    pub(crate) minimum: Option<f64>,
    pub(crate) maximum: Option<f64>,
    pub(crate) labels: Vec<Label>,
    /// Units in its name or description.
    pub(crate) units: Vec<Unit>,
    /// Example values from its schema or description.
    pub(crate) examples: Vec<String>,
}

/// Schemas nested deeper than this are not filled.
const MAX_SCHEMA_DEPTH: usize = 4;
/// The maximum number of parameters per schema; the rest is ignored.
const MAX_PARAMETERS: usize = 64;

/// Words of names that carry no meaning beside other words.
const GENERIC: [&str; 22] = [
    "name", "value", "number", "id", "type", "num", "n", "of", "the", "in", "is", "input", "param", "str",
    "data", "info", "arg", "a", "list", "per", "by", "with",
];

/// The parameters of a schema in its order. `description` is the description of the tool, which often documents parameters that
/// the schema does not.
pub(crate) fn parameters(schema: &Value, description: &str) -> Vec<Parameter> {
    let mut schema = schema.clone();
    describe(&mut schema, description);
    let mut found = members(&schema, description, 0);
    add_described(&mut found);
    found
}

/// Adds parameter descriptions from the tool's description, one per line: `name: description`.
fn describe(schema: &mut Value, description: &str) {
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (name, schema) in properties.iter_mut() {
        let Some(schema) = schema.as_object_mut().filter(|schema| !schema.contains_key("description")) else {
            continue;
        };
        let documented = description.lines().find_map(|line| {
            let rest = line.trim().trim_start_matches(['-', '*', ' ', '`']).strip_prefix(name.as_str())?;
            let rest = rest.trim_start_matches('`').trim_start();
            let rest = match rest.strip_prefix('(') {
                Some(kind) => kind.split_once(')')?.1,
                None => rest,
            };
            rest.strip_prefix([':', '：']).map(str::trim)
        });
        if let Some(documented) = documented {
            schema.insert("description".to_owned(), Value::from(documented));
        }
    }
}

fn members(schema: &Value, tool_description: &str, depth: usize) -> Vec<Parameter> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Vec::new() };
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut found: Vec<Parameter> = properties
        .iter()
        .take(MAX_PARAMETERS)
        .filter_map(|(name, schema)| {
            Some(Parameter {
                required: required.contains(&name.as_str()),
                ..Parameter::read(name, schema.as_object()?, tool_description, depth)
            })
        })
        .collect();
    // `since` is no synonym of `from` beside a parameter `since`.
    let names: Vec<Label> =
        found.iter().map(|parameter| Label::new(&parameter.words.join("_"), NAME_STRENGTH)).collect();
    for (index, parameter) in found.iter_mut().enumerate() {
        let of_other = |label: &Label| {
            names.iter().enumerate().any(|(other, name)| other != index && name.words == label.words)
        };
        parameter.labels.retain(|label| label.strength >= NAME_STRENGTH || !of_other(label));
    }
    found
}

impl Parameter {
    /// The parameter itself and the members of its objects.
    pub(crate) fn with_members(&self) -> Vec<&Self> {
        let members = match &self.shape {
            ValueType::Object(members) => members.as_slice(),
            ValueType::List(item) => match &item.shape {
                ValueType::Object(members) => members.as_slice(),
                _ => &[],
            },
            _ => &[],
        };
        std::iter::once(self).chain(members).collect()
    }

    fn read(name: &str, schema: &Map<String, Value>, tool_description: &str, depth: usize) -> Self {
        let description = schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
        let title = schema.get("title").and_then(Value::as_str).unwrap_or_default();
        let words = name_words(name);
        // `anyOf` with null is a common way to mark a parameter as optional.
        let any_of = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(*key).and_then(Value::as_array));
        let inner = any_of.and_then(|kinds| {
            kinds
                .iter()
                .filter_map(Value::as_object)
                .find(|kind| kind.get("type").and_then(Value::as_str) != Some("null"))
        });
        let kind = inner.unwrap_or(schema);
        let listed = choices(kind).or_else(|| choices(schema));
        let choices = listed.unwrap_or_else(|| described_choices(&words, &description));
        let shape = shape(name, kind, tool_description, depth);
        let format = kind.get("format").and_then(Value::as_str).unwrap_or_default();
        let examples = examples(&description, kind);
        let role = Role::of(
            &words,
            &RoleEvidence { description: &description, format, tool_description, examples: &examples },
        );
        let bound = |key: &str| kind.get(key).and_then(Value::as_f64);
        let mut labels = labels_of(&words);
        if role == Role::Id {
            labels.extend(owner_labels(&description));
        }
        if has_han(&description) {
            labels.extend(chinese_labels(&description));
        }
        if has_han(title) {
            labels.extend(chinese_labels(title));
        }
        if has_han(name) {
            labels.push(Label::new(name, 3.0));
        }
        Self {
            name: name.to_owned(),
            role,
            required: false,
            choices,
            minimum: bound("minimum"),
            maximum: bound("maximum"),
            units: units_of(&words, &description),
            examples,
            words,
            shape,
            labels,
            description,
        }
    }

    /// Whether its name contains one of these words.
    pub(crate) fn has_word(&self, words: &[&str]) -> bool {
        self.words.iter().any(|word| words.contains(&word.as_str()))
    }
}

/// The lowercase words of a name in any case style: `startDate`, `start_date`, `start-date2`.
pub(crate) fn name_words(name: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut before = ' ';
    for c in name.chars() {
        let cut = !c.is_alphanumeric()
            || (c.is_uppercase() && before.is_lowercase())
            || (c.is_ascii_digit() != before.is_ascii_digit() && before.is_alphanumeric());
        if cut && found.last().is_some_and(|word| !word.is_empty()) {
            found.push(String::new());
        }
        if let Some(word) = found.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    found.retain(|word| !word.is_empty());
    let apart = ["filepath", "filename", "username", "timezone", "zipcode", "startdate", "enddate"];
    found
        .into_iter()
        .flat_map(|word| match apart.contains(&word.as_str()) {
            true => {
                let at = if word.starts_with("user") || word.starts_with("file") || word.starts_with("time") {
                    4
                } else if word.starts_with("start") {
                    5
                } else {
                    3
                };
                vec![word[..at].to_owned(), word[at..].to_owned()]
            }
            false => vec![word],
        })
        .collect()
}

fn choices(schema: &Map<String, Value>) -> Option<Vec<Value>> {
    let listed = schema.get("enum").and_then(Value::as_array)?;
    Some(listed.iter().filter(|value| !value.is_null()).cloned().collect())
}

/// `Which branches: 'local', 'remote' or 'all'`: the values that a description lists for a parameter such as `type` or `mode`.
fn described_choices(words: &[String], description: &str) -> Vec<Value> {
    let kinds = ["type", "kind", "mode", "order", "sort"];
    if !words.last().is_some_and(|word| kinds.contains(&word.as_str())) || description.contains("e.g") {
        return Vec::new();
    }
    let mut found: Vec<Value> = Vec::new();
    let mut rest = description;
    while let Some((_, after)) = rest.split_once('\'')
        && let Some((inner, after)) = after.split_once('\'')
    {
        if inner.is_empty() || !inner.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return Vec::new();
        }
        found.push(Value::from(inner));
        rest = after;
    }
    if found.len() > 1 { found } else { Vec::new() }
}

fn shape(name: &str, schema: &Map<String, Value>, tool_description: &str, depth: usize) -> ValueType {
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("any")
        }
        _ if schema.contains_key("properties") => "object",
        _ if schema.contains_key("items") => "array",
        _ if schema.contains_key("enum") => "string",
        _ => "any",
    };
    match kind {
        "string" => ValueType::Text,
        "integer" | "int" => ValueType::Integer,
        "number" | "float" | "double" => ValueType::Number,
        "boolean" | "bool" => ValueType::Boolean,
        "array" | "tuple" | "list" if depth < MAX_SCHEMA_DEPTH => {
            let empty = Map::new();
            let items = schema.get("items").and_then(Value::as_object).unwrap_or(&empty);
            ValueType::List(Box::new(Parameter::read(name, items, tool_description, depth + 1)))
        }
        "object" | "dict" if depth < MAX_SCHEMA_DEPTH => {
            ValueType::Object(members(&Value::Object(schema.clone()), tool_description, depth + 1))
        }
        _ => ValueType::Any,
    }
}

/// The strength of a parameter's own name as a label.
const NAME_STRENGTH: f32 = 3.0;
/// Words that introduce a name.
const NAMING: [&str; 8] = ["named", "called", "titled", "名为", "叫做", "命名为", "名字叫", "取名"];

fn labels_of(words: &[String]) -> Vec<Label> {
    let full_label = words.join("_");
    let mut found = vec![Label::new(&full_label, NAME_STRENGTH)];
    if words.len() > 1 && words.last().is_some_and(|word| word == "name" || word == "title") {
        found.extend(NAMING.iter().map(|name| Label::new(name, 2.4)));
    }
    found.extend(labels::family(&full_label).iter().map(|name| Label::new(name, 2.2)));
    if words.len() > 1 {
        for (index, word) in words.iter().enumerate() {
            let generic = GENERIC.contains(&word.as_str()) || word.len() < 2;
            if generic {
                continue;
            }
            let last = index + 1 == words.len();
            found.push(Label::new(word, if last { 1.9 } else { 1.6 }));
            found.extend(labels::family(word).iter().map(|name| Label::new(name, 1.2)));
        }
    }
    found
}

/// `The message's ID`, `ID of the order`: the noun that an ID identifies is a label of the parameter.
fn owner_labels(description: &str) -> Vec<Label> {
    let lower = description.to_lowercase();
    let head = lower.split([',', '.', ';', '，', '。']).next().unwrap_or_default();
    let owner = match head.split_once("'s id") {
        Some((owner, _)) => owner.rsplit(' ').next(),
        None => head.split_once("id of the ").and_then(|(_, owner)| owner.split(' ').next()),
    };
    let owner = owner.filter(|owner| owner.len() > 2 && owner.is_ascii()).map(str::to_owned);
    owner.map(|owner| Label::new(&owner, 1.9)).into_iter().collect()
}

/// The first words of a Chinese description are labels of the parameter.
fn chinese_labels(description: &str) -> Vec<Label> {
    let head: String = description.chars().take_while(|c| crate::lexer::token::is_han(*c)).take(8).collect();
    let mut found = Vec::new();
    for part in head.split(['的', '或', '和']) {
        let count = part.chars().count();
        if (1..=6).contains(&count) {
            found.push(Label::new(part, 2.2));
        }
        for ending in ["名称", "名", "地址", "编号", "号码", "内容", "日期", "时间", "数量", "类型"]
        {
            if let Some(stem) = part.strip_suffix(ending).filter(|stem| !stem.is_empty()) {
                found.push(Label::new(stem, 1.4));
            }
        }
    }
    found
}

/// The units of a parameter: from its name, otherwise from its description.
fn units_of(words: &[String], description: &str) -> Vec<Unit> {
    let mut found: Vec<Unit> =
        words.iter().filter(|word| word.len() > 1).filter_map(|word| units::of(word)).collect();
    if found.is_empty() {
        let lower = description.to_lowercase();
        let unit_words = lower.split(|c: char| !c.is_alphanumeric() && c != '/');
        found.extend(unit_words.filter(|word| word.len() > 1).filter_map(units::of));
        for han in ["小时", "分钟", "公里", "千米", "米", "公斤", "千克", "元", "天", "岁"] {
            if description.contains(han) {
                found.extend(units::of(han));
            }
        }
    }
    found.dedup();
    found
}

/// Examples in a description: after `e.g.`, `such as`, `like`, 例如, in quotes or backticks.
fn examples(description: &str, schema: &Map<String, Value>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for key in ["examples", "example"] {
        match schema.get(key) {
            Some(Value::Array(items)) => {
                found.extend(items.iter().filter_map(Value::as_str).map(str::to_owned));
            }
            Some(Value::String(text)) => found.push(text.clone()),
            _ => {}
        }
    }
    for (open, close) in [('\'', '\''), ('`', '`'), ('"', '"'), ('“', '”')] {
        let mut rest = description;
        while let Some((_, after)) = rest.split_once(open)
            && let Some((inner, after)) = after.split_once(close)
        {
            if (1..=40).contains(&inner.len()) {
                found.push(inner.to_owned());
            }
            rest = after;
        }
    }
    for mark in ["e.g.", "e.g", "such as", "for example", "like", "例如", "比如", "如"] {
        if let Some((_, after)) = description.split_once(mark) {
            let end = after.find([')', '）', ';', '。']).unwrap_or(after.len());
            let listed = after[..end].split([',', '、', '，']).flat_map(|part| part.split(" or "));
            found.extend(
                listed
                    .map(|part| part.trim_matches(|c: char| !c.is_alphanumeric()).to_owned())
                    .filter(|part| !part.is_empty() && part.chars().count() <= 30),
            );
        }
    }
    found.dedup();
    found.truncate(24);
    found
}

/// Adds words that occur in the description of only one parameter as labels of that parameter.
fn add_described(parameters: &mut [Parameter]) {
    let described: Vec<Vec<String>> = parameters
        .iter()
        .map(|parameter| {
            let words = parameter.description.split(|c: char| !c.is_alphabetic());
            words.filter(|word| word.len() > 3 && word.is_ascii()).map(labels::stem).take(24).collect()
        })
        .collect();
    for (index, parameter) in parameters.iter_mut().enumerate() {
        let own = |word: &&String| {
            let elsewhere =
                described.iter().enumerate().any(|(other, words)| other != index && words.contains(word));
            !elsewhere && !crate::lexer::stop_words::is_stop(word)
        };
        let extra: Vec<Label> =
            described[index].iter().filter(own).take(10).map(|word| Label::new(word, 0.7)).collect();
        parameter.labels.extend(extra);
    }
}
