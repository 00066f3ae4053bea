//! Compiles a JSON Schema into nodes that are evaluated with a step budget. Every subschema is compiled once, so that
//! the result is no larger than the schema; references become node ids.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Number, Value};
use toolhub_core::schema_keywords::TYPES;

use super::budget::StepBudget;
use super::draft::Draft;
use super::pattern::{PatternId, Patterns};
use super::references::{ReferenceTarget, References};

pub(super) type NodeId = usize;

/// A compiled schema.
#[derive(Debug)]
pub(super) struct CompiledSchema {
    pub(super) nodes: Vec<Node>,
    pub(super) patterns: Patterns,
    pub(super) root: NodeId,
    /// Whether `unevaluatedProperties` or `unevaluatedItems` occurs: they evaluate subschemas of the same value again.
    pub(super) has_unevaluated: bool,
}

/// One subschema.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) keywords: Vec<Keyword>,
    /// Whether a reference targets this node. Only such nodes can be applied to the same value more than once.
    pub(super) referenced: bool,
    pub(super) has_subschemas: bool,
}

impl Node {
    /// Whether this is the schema `false`.
    pub(super) fn is_never(&self) -> bool {
        matches!(self.keywords[..], [Keyword::Never])
    }
}

#[derive(Debug)]
pub(super) enum Keyword {
    /// The schema `false`.
    Never,
    /// Cannot be decided here; the server decides.
    Undecided,
    Type(Types),
    Enum(AllowedValues),
    Minimum {
        limit: Number,
        exclusive: bool,
    },
    Maximum {
        limit: Number,
        exclusive: bool,
    },
    MultipleOf(Number),
    MinLength(u64),
    MaxLength(u64),
    Pattern(PatternId),
    MinItems(u64),
    MaxItems(u64),
    UniqueItems,
    Items {
        prefix: Vec<NodeId>,
        rest: Option<NodeId>,
    },
    Contains {
        node: NodeId,
        min: u64,
        max: Option<u64>,
        /// Whether items that match count as evaluated (2020-12).
        marks: bool,
    },
    MinProperties(u64),
    MaxProperties(u64),
    PropertyNames(NodeId),
    Properties {
        named: HashMap<String, NodeId>,
        patterns: Vec<(PatternId, NodeId)>,
        additional: Option<NodeId>,
    },
    Required(Vec<String>),
    DependentRequired(Vec<(String, Vec<String>)>),
    DependentSchemas(Vec<(String, NodeId)>),
    Reference(NodeId),
    AllOf(Vec<NodeId>),
    AnyOf(Vec<NodeId>),
    OneOf(Vec<NodeId>),
    Not(NodeId),
    If {
        condition: NodeId,
        then: Option<NodeId>,
        otherwise: Option<NodeId>,
    },
    UnevaluatedProperties(NodeId),
    UnevaluatedItems(NodeId),
}

impl Keyword {
    fn has_subschemas(&self) -> bool {
        matches!(
            self,
            Self::Items { .. }
                | Self::Contains { .. }
                | Self::PropertyNames(_)
                | Self::Properties { .. }
                | Self::DependentSchemas(_)
                | Self::Reference(_)
                | Self::AllOf(_)
                | Self::AnyOf(_)
                | Self::OneOf(_)
                | Self::Not(_)
                | Self::If { .. }
                | Self::UnevaluatedProperties(_)
                | Self::UnevaluatedItems(_)
        )
    }
}

/// The types that a value may have.
#[derive(Debug)]
pub(super) struct Types {
    pub(super) names: Vec<String>,
    /// Whether `1.0` is an integer: in every draft except draft 4.
    pub(super) integral_floats: bool,
}

/// The values of `enum` and `const`.
#[derive(Debug)]
pub(super) struct AllowedValues {
    pub(super) values: Vec<Value>,
    /// The canonical texts of `values`.
    pub(super) canonical: HashSet<String>,
    /// Whether one of them is an array or an object.
    pub(super) containers: bool,
}

/// Compiles a schema; the error states why it is unusable.
pub(super) fn compile(schema: &Value) -> Result<CompiledSchema, String> {
    let draft = Draft::of(schema);
    let references = References::collect(schema, draft)?;
    let mut compiler = Compiler {
        draft,
        references,
        nodes: Vec::new(),
        ids: HashMap::new(),
        pending: Vec::new(),
        patterns: Patterns::default(),
        has_unevaluated: false,
    };
    let root = compiler.node(schema);
    // References make the schema a graph; a work list keeps the stack flat.
    while let Some((id, schema)) = compiler.pending.pop() {
        let keywords = compiler.keywords(schema)?;
        if let Some(node) = compiler.nodes.get_mut(id) {
            node.has_subschemas = keywords.iter().any(Keyword::has_subschemas);
            node.keywords = keywords;
        }
    }
    let Compiler { nodes, patterns, has_unevaluated, .. } = compiler;
    Ok(CompiledSchema { nodes, patterns, root, has_unevaluated })
}

struct Compiler<'s> {
    draft: Draft,
    references: References<'s>,
    nodes: Vec<Node>,
    /// Node ids by the address of the subschema.
    ids: HashMap<*const Value, NodeId>,
    pending: Vec<(NodeId, &'s Value)>,
    patterns: Patterns,
    has_unevaluated: bool,
}

impl<'s> Compiler<'s> {
    fn node(&mut self, schema: &'s Value) -> NodeId {
        let next = self.nodes.len();
        let id = *self.ids.entry(std::ptr::from_ref(schema)).or_insert(next);
        if id == next {
            self.nodes.push(Node::default());
            self.pending.push((id, schema));
        }
        id
    }

    fn nodes(&mut self, key: &str, list: &'s Value) -> Result<Vec<NodeId>, String> {
        let list = list.as_array().ok_or_else(|| type_error(key, "a list of schemas"))?;
        Ok(list.iter().map(|schema| self.node(schema)).collect())
    }

    fn keywords(&mut self, schema: &'s Value) -> Result<Vec<Keyword>, String> {
        let members = match schema {
            Value::Bool(true) => return Ok(Vec::new()),
            Value::Bool(false) => return Ok(vec![Keyword::Never]),
            Value::Object(members) => members,
            _ => return Err("a schema in it is neither an object nor a boolean".to_owned()),
        };
        let mut keywords = Vec::new();
        self.reference(schema, members, &mut keywords)?;
        // Up to draft 7, a reference replaces its sibling keywords.
        if self.draft <= Draft::Seven && members.contains_key("$ref") {
            return Ok(keywords);
        }
        self.scalars(members, &mut keywords)?;
        self.arrays(members, &mut keywords)?;
        self.objects(members, &mut keywords)?;
        self.combinations(members, &mut keywords)?;
        Ok(keywords)
    }

    fn reference(
        &mut self,
        schema: &'s Value,
        members: &'s Map<String, Value>,
        keywords: &mut Vec<Keyword>,
    ) -> Result<(), String> {
        for key in ["$ref", "$dynamicRef", "$recursiveRef"] {
            let applies = match key {
                "$dynamicRef" => self.draft == Draft::V2020,
                "$recursiveRef" => self.draft == Draft::V2019,
                _ => true,
            };
            let Some(reference) = members.get(key).filter(|_| applies) else { continue };
            let reference = reference.as_str().ok_or_else(|| type_error(key, "a string"))?;
            match self.references.resolve(schema, key, reference)? {
                ReferenceTarget::Schema(target) => {
                    let id = self.node(target);
                    if let Some(node) = self.nodes.get_mut(id) {
                        node.referenced = true;
                    }
                    keywords.push(Keyword::Reference(id));
                }
                ReferenceTarget::Undecided => keywords.push(Keyword::Undecided),
            }
        }
        Ok(())
    }

    fn scalars(
        &mut self,
        members: &'s Map<String, Value>,
        keywords: &mut Vec<Keyword>,
    ) -> Result<(), String> {
        if let Some(types) = members.get("type") {
            let names =
                types_of(types).ok_or_else(|| type_error("type", "the name of a type, or a list of them"))?;
            keywords.push(Keyword::Type(Types { names, integral_floats: self.draft != Draft::Four }));
        }
        if let Some(values) = members.get("enum") {
            let values = values.as_array().ok_or_else(|| type_error("enum", "a list"))?;
            keywords.push(Keyword::Enum(options(values)));
        }
        if let Some(value) = members.get("const").filter(|_| self.draft >= Draft::Six) {
            keywords.push(Keyword::Enum(options(std::slice::from_ref(value))));
        }
        for (key, exclusive_key) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
            let bound = |limit: Number, exclusive: bool| match key {
                "minimum" => Keyword::Minimum { limit, exclusive },
                _ => Keyword::Maximum { limit, exclusive },
            };
            // In draft 4, the exclusive form is a boolean.
            let mut exclusive = false;
            match members.get(exclusive_key) {
                Some(Value::Bool(flag)) => exclusive = *flag,
                Some(Value::Number(limit)) => keywords.push(bound(limit.clone(), true)),
                Some(_) => return Err(type_error(exclusive_key, "a number")),
                None => {}
            }
            match members.get(key) {
                Some(Value::Number(limit)) => keywords.push(bound(limit.clone(), exclusive)),
                Some(_) => return Err(type_error(key, "a number")),
                None => {}
            }
        }
        match members.get("multipleOf") {
            Some(Value::Number(of)) if of.as_f64().is_some_and(|of| of > 0.0) => {
                keywords.push(Keyword::MultipleOf(of.clone()));
            }
            Some(_) => return Err(type_error("multipleOf", "a number above 0")),
            None => {}
        }
        keywords.extend(count(members, "minLength")?.map(Keyword::MinLength));
        keywords.extend(count(members, "maxLength")?.map(Keyword::MaxLength));
        if let Some(pattern) = members.get("pattern") {
            let pattern = pattern.as_str().ok_or_else(|| type_error("pattern", "a string"))?;
            keywords.push(Keyword::Pattern(self.patterns.add(pattern)));
        }
        Ok(())
    }

    fn arrays(&mut self, members: &'s Map<String, Value>, keywords: &mut Vec<Keyword>) -> Result<(), String> {
        keywords.extend(count(members, "minItems")?.map(Keyword::MinItems));
        keywords.extend(count(members, "maxItems")?.map(Keyword::MaxItems));
        match members.get("uniqueItems") {
            Some(Value::Bool(true)) => keywords.push(Keyword::UniqueItems),
            Some(Value::Bool(false)) | None => {}
            Some(_) => return Err(type_error("uniqueItems", "a boolean")),
        }
        let prefix_items = members.get("prefixItems").filter(|_| self.draft == Draft::V2020);
        let (prefix, rest) = match (prefix_items, members.get("items")) {
            (Some(prefix), rest) => (self.nodes("prefixItems", prefix)?, rest),
            // The form of `prefixItems` in older drafts.
            (None, Some(prefix @ Value::Array(_))) => {
                (self.nodes("items", prefix)?, members.get("additionalItems"))
            }
            (None, rest) => (Vec::new(), rest),
        };
        let rest = rest.map(|schema| self.node(schema));
        if !prefix.is_empty() || rest.is_some() {
            keywords.push(Keyword::Items { prefix, rest });
        }
        if let Some(schema) = members.get("contains").filter(|_| self.draft >= Draft::Six) {
            let counted = self.draft >= Draft::V2019;
            let min = count(members, "minContains")?.filter(|_| counted).unwrap_or(1);
            let max = count(members, "maxContains")?.filter(|_| counted);
            let marks = self.draft == Draft::V2020;
            keywords.push(Keyword::Contains { node: self.node(schema), min, max, marks });
        }
        Ok(())
    }

    fn objects(
        &mut self,
        members: &'s Map<String, Value>,
        keywords: &mut Vec<Keyword>,
    ) -> Result<(), String> {
        keywords.extend(count(members, "minProperties")?.map(Keyword::MinProperties));
        keywords.extend(count(members, "maxProperties")?.map(Keyword::MaxProperties));
        if let Some(schema) = members.get("propertyNames").filter(|_| self.draft >= Draft::Six) {
            keywords.push(Keyword::PropertyNames(self.node(schema)));
        }
        let mut named = HashMap::new();
        for (name, schema) in object(members, "properties")? {
            named.insert(name.clone(), self.node(schema));
        }
        let mut patterns = Vec::new();
        for (pattern, schema) in object(members, "patternProperties")? {
            patterns.push((self.patterns.add(pattern), self.node(schema)));
        }
        let additional = members.get("additionalProperties").map(|schema| self.node(schema));
        if !named.is_empty() || !patterns.is_empty() || additional.is_some() {
            keywords.push(Keyword::Properties { named, patterns, additional });
        }
        if let Some(names) = members.get("required") {
            keywords.push(Keyword::Required(strings("required", names)?));
        }
        let (mut required, mut schemas) = (Vec::new(), Vec::new());
        for key in ["dependencies", "dependentRequired", "dependentSchemas"] {
            if key != "dependencies" && self.draft < Draft::V2019 {
                continue;
            }
            for (name, dependency) in object(members, key)? {
                match dependency {
                    Value::Array(_) if key != "dependentSchemas" => {
                        required.push((name.clone(), strings(key, dependency)?));
                    }
                    schema => schemas.push((name.clone(), self.node(schema))),
                }
            }
        }
        if !required.is_empty() {
            keywords.push(Keyword::DependentRequired(required));
        }
        if !schemas.is_empty() {
            keywords.push(Keyword::DependentSchemas(schemas));
        }
        Ok(())
    }

    fn combinations(
        &mut self,
        members: &'s Map<String, Value>,
        keywords: &mut Vec<Keyword>,
    ) -> Result<(), String> {
        for (key, make) in [
            ("allOf", Keyword::AllOf as fn(Vec<NodeId>) -> Keyword),
            ("anyOf", Keyword::AnyOf),
            ("oneOf", Keyword::OneOf),
        ] {
            if let Some(list) = members.get(key) {
                keywords.push(make(self.nodes(key, list)?));
            }
        }
        if let Some(schema) = members.get("not") {
            keywords.push(Keyword::Not(self.node(schema)));
        }
        if let Some(condition) = members.get("if").filter(|_| self.draft >= Draft::Seven) {
            let condition = self.node(condition);
            let then = members.get("then").map(|schema| self.node(schema));
            let otherwise = members.get("else").map(|schema| self.node(schema));
            keywords.push(Keyword::If { condition, then, otherwise });
        }
        if self.draft >= Draft::V2019 {
            for (key, make) in [
                ("unevaluatedProperties", Keyword::UnevaluatedProperties as fn(NodeId) -> Keyword),
                ("unevaluatedItems", Keyword::UnevaluatedItems),
            ] {
                if let Some(schema) = members.get(key) {
                    keywords.push(make(self.node(schema)));
                    self.has_unevaluated = true;
                }
            }
        }
        Ok(())
    }
}

fn type_error(key: &str, expected: &str) -> String {
    format!("its `{key}` should be {expected}")
}

fn object<'s>(
    members: &'s Map<String, Value>,
    key: &str,
) -> Result<impl Iterator<Item = (&'s String, &'s Value)>, String> {
    match members.get(key) {
        Some(Value::Object(object)) => Ok(Some(object).into_iter().flatten()),
        Some(_) => Err(type_error(key, "an object")),
        None => Ok(None.into_iter().flatten()),
    }
}

fn strings(key: &str, list: &Value) -> Result<Vec<String>, String> {
    let list = list.as_array().ok_or_else(|| type_error(key, "a list of names"))?;
    list.iter()
        .map(|name| name.as_str().map(str::to_owned).ok_or_else(|| type_error(key, "a list of names")))
        .collect()
}

fn count(members: &Map<String, Value>, key: &str) -> Result<Option<u64>, String> {
    let Some(value) = members.get(key) else { return Ok(None) };
    let is_count = |number: f64| number.fract() == 0.0 && (0.0..1e15).contains(&number);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and in range")]
    let count =
        value.as_u64().or_else(|| value.as_f64().filter(|number| is_count(*number)).map(|n| n as u64));
    count.map(Some).ok_or_else(|| type_error(key, "a whole number from 0"))
}

fn types_of(types: &Value) -> Option<Vec<String>> {
    let known_type = |name: &Value| Some(name.as_str().filter(|name| TYPES.contains(name))?.to_owned());
    let mut names = match types {
        Value::Array(names) => names.iter().map(known_type).collect::<Option<Vec<String>>>()?,
        name => vec![known_type(name)?],
    };
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    Some(names)
}

fn options(values: &[Value]) -> AllowedValues {
    // Compiled once per schema, so that no budget is charged.
    let steps = StepBudget::unlimited();
    let canonical = values.iter().filter_map(|value| super::canonical::text(value, &steps).ok()).collect();
    let containers = values.iter().any(|value| value.is_array() || value.is_object());
    AllowedValues { values: values.to_vec(), canonical, containers }
}
