//! Evaluates a compiled schema within a step budget. Every application of a subschema to a value is counted, and the
//! target of a reference is evaluated once per value, so that the work is at most the size of the schema times that
//! of the arguments. The budget bounds it further.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Number, Value};

use super::budget::{BudgetExhausted, StepBudget};
use super::compile::{AllowedValues, CompiledSchema, Keyword, Node, NodeId, Types};
use super::verdict::Verdict;
use super::{canonical, number};

/// Maximum nesting of subschema applications; bounds the stack.
const MAX_EVALUATION_DEPTH: usize = 640;
/// Steps for looking up and storing a verdict.
const MEMO_STEPS: u64 = 8;
/// Steps for inserting a name or an item into a set, or for wrapping a name as a value.
const COPY_STEPS: u64 = 16;

pub(super) type Evaluated = Result<Verdict, BudgetExhausted>;

/// One evaluation of a program.
pub(super) struct Evaluation<'p> {
    pub(super) program: &'p CompiledSchema,
    pub(super) steps: &'p StepBudget,
    /// Verdicts by node and address of the value; `None` while the evaluation is in progress.
    memo: HashMap<(NodeId, *const Value), Option<Verdict>>,
    memoize_all: bool,
    /// Names that were evaluated as values. They are kept alive, so that no other value gets their address.
    #[expect(clippy::vec_box, reason = "their addresses must not change when the list grows")]
    names: Vec<Box<Value>>,
    depth: usize,
}

/// The members or items of a value that a keyword has evaluated.
#[derive(Default)]
struct Marks<'v> {
    all: bool,
    names: HashSet<&'v str>,
    /// Number of leading items.
    prefix: usize,
    items: HashSet<usize>,
    /// Nodes whose marks are already included.
    visited: HashSet<NodeId>,
}

/// The marks that a walk adds to, and whether it is at the node whose keywords are computed.
struct Marking<'m, 'v> {
    marks: &'m mut Marks<'v>,
    outer: bool,
}

/// An array with its items.
#[derive(Clone, Copy)]
struct ArrayValue<'v> {
    items: &'v [Value],
    value: &'v Value,
}

/// An object with its members.
#[derive(Clone, Copy)]
pub(super) struct ObjectValue<'v> {
    pub(super) members: &'v Map<String, Value>,
    pub(super) value: &'v Value,
}

/// How many items of an array must match.
#[derive(Clone, Copy)]
struct CountBounds {
    min: u64,
    max: Option<u64>,
}

impl<'p> Evaluation<'p> {
    pub(super) fn new(program: &'p CompiledSchema, steps: &'p StepBudget) -> Self {
        let memoize_all = program.has_unevaluated;
        Self { program, steps, memo: HashMap::new(), memoize_all, names: Vec::new(), depth: 0 }
    }

    /// Evaluates for error messages, which visits values more than once: memoises every verdict.
    pub(super) fn explaining(program: &'p CompiledSchema, steps: &'p StepBudget) -> Self {
        Self { memoize_all: true, ..Self::new(program, steps) }
    }

    pub(super) fn node_of(&self, id: NodeId) -> &'p Node {
        static ANYTHING: Node = Node { keywords: Vec::new(), referenced: false, has_subschemas: false };
        self.program.nodes.get(id).unwrap_or(&ANYTHING)
    }

    /// Applies a subschema to a value.
    pub(super) fn node(&mut self, id: NodeId, value: &Value) -> Evaluated {
        self.steps.spend(1)?;
        let node = self.node_of(id);
        if node.keywords.is_empty() {
            return Ok(Verdict::Valid);
        }
        // Without subschemas, evaluating costs no more than a lookup.
        if !node.has_subschemas || !(node.referenced || self.memoize_all) {
            return self.keywords(node, value);
        }
        self.steps.spend(MEMO_STEPS)?;
        let key = (id, std::ptr::from_ref(value));
        match self.memo.get(&key) {
            Some(Some(verdict)) => return Ok(*verdict),
            // A reference cycle on the same value adds no constraint.
            Some(None) => return Ok(Verdict::Valid),
            None => {}
        }
        self.memo.insert(key, None);
        let verdict = self.keywords(node, value)?;
        self.memo.insert(key, Some(verdict));
        Ok(verdict)
    }

    fn keywords(&mut self, node: &'p Node, value: &Value) -> Evaluated {
        if self.depth >= MAX_EVALUATION_DEPTH {
            return Err(BudgetExhausted);
        }
        self.depth += 1;
        let mut verdict = Verdict::Valid;
        for keyword in &node.keywords {
            verdict = verdict.min(self.keyword(node, keyword, value)?);
            if verdict == Verdict::Invalid {
                break;
            }
        }
        self.depth -= 1;
        Ok(verdict)
    }

    /// Applies one keyword of a node to a value.
    pub(super) fn keyword(&mut self, node: &'p Node, keyword: &'p Keyword, value: &Value) -> Evaluated {
        self.steps.spend(1)?;
        match value {
            Value::String(text) => {
                if let Some(verdict) = self.string(keyword, text, value) {
                    return verdict;
                }
            }
            Value::Number(number) => {
                if let Some(valid) = number_fits(keyword, number) {
                    return Ok(valid);
                }
            }
            Value::Array(items) => {
                if let Some(verdict) = self.array(node, keyword, ArrayValue { items, value }) {
                    return verdict;
                }
            }
            Value::Object(members) => {
                if let Some(verdict) = self.object(node, keyword, ObjectValue { members, value }) {
                    return verdict;
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
        self.in_place(keyword, value)
    }

    /// Keywords for values of every type; all other keywords do not apply to this value.
    fn in_place(&mut self, keyword: &'p Keyword, value: &Value) -> Evaluated {
        Ok(match keyword {
            Keyword::Never => Verdict::Invalid,
            Keyword::Undecided => Verdict::Undecided,
            Keyword::Type(types) => has_type(types, value).into(),
            Keyword::Enum(options) => self.is_option(options, value)?.into(),
            Keyword::Reference(target) => self.node(*target, value)?,
            Keyword::AllOf(branches) => {
                let mut verdict = Verdict::Valid;
                for branch in branches {
                    verdict = verdict.min(self.node(*branch, value)?);
                    if verdict == Verdict::Invalid {
                        break;
                    }
                }
                verdict
            }
            Keyword::AnyOf(branches) => {
                let mut verdict = Verdict::Invalid;
                for branch in branches {
                    verdict = verdict.max(self.node(*branch, value)?);
                    if verdict == Verdict::Valid {
                        break;
                    }
                }
                verdict
            }
            Keyword::OneOf(branches) => {
                let (mut valid, mut undecided) = (0_usize, false);
                for branch in branches {
                    match self.node(*branch, value)? {
                        Verdict::Valid => valid += 1,
                        Verdict::Undecided => undecided = true,
                        Verdict::Invalid => {}
                    }
                    if valid > 1 {
                        break;
                    }
                }
                match (valid, undecided) {
                    (1, false) => Verdict::Valid,
                    (0 | 1, true) => Verdict::Undecided,
                    _ => Verdict::Invalid,
                }
            }
            Keyword::Not(schema) => self.node(*schema, value)?.not(),
            Keyword::If { condition, then, otherwise } => {
                let mut branch = |node: &Option<NodeId>| match node {
                    Some(node) => self.node(*node, value),
                    None => Ok(Verdict::Valid),
                };
                match branch(&Some(*condition))? {
                    Verdict::Valid => branch(then)?,
                    Verdict::Invalid => branch(otherwise)?,
                    Verdict::Undecided => {
                        let (then, otherwise) = (branch(then)?, branch(otherwise)?);
                        if then == otherwise { then } else { Verdict::Undecided }
                    }
                }
            }
            _ => Verdict::Valid,
        })
    }

    fn is_option(&self, options: &AllowedValues, value: &Value) -> Result<bool, BudgetExhausted> {
        let container = value.is_array() || value.is_object();
        if container && !options.containers {
            return Ok(false);
        }
        Ok(options.canonical.contains(&canonical::text(value, self.steps)?))
    }

    fn string(&mut self, keyword: &Keyword, text: &str, value: &Value) -> Option<Evaluated> {
        let length = |fits: &dyn Fn(u64) -> bool| {
            self.steps.spend_len(text.len(), 128)?;
            Ok(fits(count(text.chars().count())).into())
        };
        Some(match keyword {
            Keyword::MinLength(min) => length(&|length| length >= *min),
            Keyword::MaxLength(max) => length(&|length| length <= *max),
            Keyword::Pattern(id) => Ok(self.program.patterns.matches(*id, value, self.steps)),
            _ => return None,
        })
    }

    fn array(
        &mut self,
        node: &'p Node,
        keyword: &'p Keyword,
        ArrayValue { items, value }: ArrayValue<'_>,
    ) -> Option<Evaluated> {
        Some(match keyword {
            Keyword::MinItems(min) => Ok((count(items.len()) >= *min).into()),
            Keyword::MaxItems(max) => Ok((count(items.len()) <= *max).into()),
            Keyword::UniqueItems => self.unique(items),
            Keyword::Items { prefix, rest } => self.items(items, prefix, *rest),
            Keyword::Contains { node, min, max, .. } => {
                self.contains(items, *node, CountBounds { min: *min, max: *max })
            }
            Keyword::UnevaluatedItems(schema) => {
                self.unevaluated_items(node, *schema, ArrayValue { items, value })
            }
            _ => return None,
        })
    }

    fn items(&mut self, items: &[Value], prefix: &[NodeId], rest: Option<NodeId>) -> Evaluated {
        let mut verdict = Verdict::Valid;
        for (item, schema) in items.iter().zip(prefix) {
            verdict = verdict.min(self.node(*schema, item)?);
        }
        if let Some(rest) = rest {
            for item in items.iter().skip(prefix.len()) {
                if verdict == Verdict::Invalid {
                    break;
                }
                verdict = verdict.min(self.node(rest, item)?);
            }
        }
        Ok(verdict)
    }

    fn contains(&mut self, items: &[Value], schema: NodeId, bounds: CountBounds) -> Evaluated {
        let CountBounds { min, max } = bounds;
        let (mut valid, mut possible) = (0_u64, 0_u64);
        for item in items {
            match self.node(schema, item)? {
                Verdict::Valid => valid += 1,
                Verdict::Undecided => possible += 1,
                Verdict::Invalid => {}
            }
        }
        let fits = |count: u64| count >= min && max.is_none_or(|max| count <= max);
        Ok(match (possible, fits(valid)) {
            (0, fits) => fits.into(),
            _ if valid + possible < min || max.is_some_and(|max| valid > max) => Verdict::Invalid,
            _ => Verdict::Undecided,
        })
    }

    fn unique(&mut self, items: &[Value]) -> Evaluated {
        let mut seen = HashSet::with_capacity(items.len().min(1024));
        for item in items {
            self.steps.spend(COPY_STEPS)?;
            if !seen.insert(canonical::text(item, self.steps)?) {
                return Ok(Verdict::Invalid);
            }
        }
        Ok(Verdict::Valid)
    }

    fn object(
        &mut self,
        node: &'p Node,
        keyword: &'p Keyword,
        ObjectValue { members, value }: ObjectValue<'_>,
    ) -> Option<Evaluated> {
        let has = |name: &String| members.contains_key(name);
        Some(match keyword {
            Keyword::MinProperties(min) => Ok((count(members.len()) >= *min).into()),
            Keyword::MaxProperties(max) => Ok((count(members.len()) <= *max).into()),
            Keyword::PropertyNames(schema) => self.names(members, *schema),
            Keyword::Properties { .. } => self.properties(members, keyword),
            Keyword::Required(names) => {
                self.steps.spend_len(names.len(), 1).map(|()| names.iter().all(has).into())
            }
            Keyword::DependentRequired(dependencies) => {
                let names: usize = dependencies.iter().map(|(_, names)| names.len() + 1).sum();
                let holds = |(name, names): &(String, Vec<String>)| !has(name) || names.iter().all(has);
                self.steps.spend_len(names, 1).map(|()| dependencies.iter().all(holds).into())
            }
            Keyword::DependentSchemas(dependencies) => {
                self.dependent_schemas(dependencies, ObjectValue { members, value })
            }
            Keyword::UnevaluatedProperties(schema) => {
                self.unevaluated_properties(node, *schema, ObjectValue { members, value })
            }
            _ => return None,
        })
    }

    fn names(&mut self, members: &Map<String, Value>, schema: NodeId) -> Evaluated {
        let mut verdict = Verdict::Valid;
        for name in members.keys() {
            verdict = verdict.min(self.name(name, schema)?);
            if verdict == Verdict::Invalid {
                break;
            }
        }
        Ok(verdict)
    }

    /// Applies a subschema to the name of a member.
    pub(super) fn name(&mut self, name: &str, schema: NodeId) -> Evaluated {
        self.steps.spend(COPY_STEPS)?;
        self.steps.spend_len(name.len(), 64)?;
        let name = Box::new(Value::String(name.to_owned()));
        let verdict = self.node(schema, &name);
        self.names.push(name);
        verdict
    }

    fn properties(&mut self, members: &Map<String, Value>, keyword: &'p Keyword) -> Evaluated {
        let mut verdict = Verdict::Valid;
        for (name, value) in members {
            verdict = verdict.min(self.member(keyword, name, value)?);
            if verdict == Verdict::Invalid {
                break;
            }
        }
        Ok(verdict)
    }

    /// Applies `properties`, `patternProperties` and `additionalProperties` to one member.
    pub(super) fn member(&mut self, keyword: &'p Keyword, name: &str, value: &Value) -> Evaluated {
        let Keyword::Properties { named, patterns, additional } = keyword else { return Ok(Verdict::Valid) };
        self.steps.spend_len(name.len(), 64)?;
        let mut verdict = Verdict::Valid;
        // Whether one of the keywords applies to this name.
        let mut property_verdict = Verdict::Invalid;
        if let Some(schema) = named.get(name) {
            property_verdict = Verdict::Valid;
            verdict = self.node(*schema, value)?;
        }
        for (schema, matches) in self.matching(patterns, name)? {
            property_verdict = property_verdict.max(matches);
            verdict = verdict.min(match self.node(schema, value)? {
                Verdict::Invalid if matches == Verdict::Undecided => Verdict::Undecided,
                verdict => verdict,
            });
        }
        if let (Some(schema), Verdict::Invalid | Verdict::Undecided) = (additional, property_verdict) {
            verdict = verdict.min(match self.node(*schema, value)? {
                Verdict::Invalid if property_verdict == Verdict::Undecided => Verdict::Undecided,
                verdict => verdict,
            });
        }
        Ok(verdict)
    }

    /// The schemas of the patterns that match a name or may match it.
    fn matching(
        &mut self,
        patterns: &[(usize, NodeId)],
        name: &str,
    ) -> Result<Vec<(NodeId, Verdict)>, BudgetExhausted> {
        if patterns.is_empty() {
            return Ok(Vec::new());
        }
        self.steps.spend_len(patterns.len(), 1)?;
        let name = Value::String(name.to_owned());
        let verdicts = patterns
            .iter()
            .map(|(pattern, schema)| (*schema, self.program.patterns.matches(*pattern, &name, self.steps)));
        Ok(verdicts.filter(|(_, verdict)| *verdict != Verdict::Invalid).collect())
    }

    fn dependent_schemas(
        &mut self,
        dependencies: &[(String, NodeId)],
        ObjectValue { members, value }: ObjectValue<'_>,
    ) -> Evaluated {
        let mut verdict = Verdict::Valid;
        for (name, schema) in dependencies {
            self.steps.spend(1)?;
            if members.contains_key(name) {
                verdict = verdict.min(self.node(*schema, value)?);
            }
        }
        Ok(verdict)
    }

    fn unevaluated_properties(
        &mut self,
        node: &'p Node,
        schema: NodeId,
        ObjectValue { members, value }: ObjectValue<'_>,
    ) -> Evaluated {
        let mut verdict = Verdict::Valid;
        for name in self.unevaluated_names(node, ObjectValue { members, value })? {
            if let Some(member) = members.get(name) {
                verdict = verdict.min(self.node(schema, member)?);
            }
        }
        Ok(verdict)
    }

    /// The names of members that no keyword of a node has evaluated.
    pub(super) fn unevaluated_names<'v>(
        &mut self,
        node: &'p Node,
        ObjectValue { members, value }: ObjectValue<'v>,
    ) -> Result<Vec<&'v str>, BudgetExhausted> {
        let mut marks = Marks::default();
        self.mark(node, value, Marking { marks: &mut marks, outer: true })?;
        self.steps.spend_len(members.len(), 1)?;
        let member_names = members.keys().map(String::as_str);
        Ok(member_names.filter(|name| !marks.all && !marks.names.contains(name)).collect())
    }

    fn unevaluated_items(
        &mut self,
        node: &'p Node,
        schema: NodeId,
        ArrayValue { items, value }: ArrayValue<'_>,
    ) -> Evaluated {
        let mut marks = Marks::default();
        self.mark(node, value, Marking { marks: &mut marks, outer: true })?;
        let mut verdict = Verdict::Valid;
        for (index, item) in items.iter().enumerate() {
            self.steps.spend(1)?;
            if !marks.all && index >= marks.prefix && !marks.items.contains(&index) {
                verdict = verdict.min(self.node(schema, item)?);
            }
        }
        Ok(verdict)
    }

    /// Marks the parts of a value that the keywords of a node evaluate. `outer` is set for the node whose unevaluated
    /// parts are computed.
    fn mark<'v>(
        &mut self,
        node: &'p Node,
        value: &'v Value,
        Marking { marks, outer }: Marking<'_, 'v>,
    ) -> Result<(), BudgetExhausted> {
        if self.depth >= MAX_EVALUATION_DEPTH {
            return Err(BudgetExhausted);
        }
        self.depth += 1;
        for keyword in &node.keywords {
            self.steps.spend(1)?;
            match (keyword, value) {
                (Keyword::Properties { named, patterns, additional }, Value::Object(members)) => {
                    marks.all |= additional.is_some();
                    for name in members.keys() {
                        self.steps.spend(MEMO_STEPS)?;
                        self.steps.spend_len(name.len(), 64)?;
                        if named.contains_key(name) || !self.matching(patterns, name)?.is_empty() {
                            marks.names.insert(name);
                        }
                    }
                }
                (Keyword::Items { prefix, rest }, Value::Array(_)) => {
                    marks.all |= rest.is_some();
                    marks.prefix = marks.prefix.max(prefix.len());
                }
                (Keyword::Contains { node, marks: true, .. }, Value::Array(items)) => {
                    for (index, item) in items.iter().enumerate() {
                        if self.node(*node, item)? != Verdict::Invalid {
                            marks.items.insert(index);
                        }
                    }
                }
                (Keyword::UnevaluatedProperties(_), Value::Object(_))
                | (Keyword::UnevaluatedItems(_), Value::Array(_)) => marks.all |= !outer,
                (Keyword::Undecided, _) => marks.all = true,
                (Keyword::Reference(target), _) => self.mark_branch(*target, value, marks)?,
                (Keyword::AllOf(branches) | Keyword::AnyOf(branches) | Keyword::OneOf(branches), _) => {
                    for branch in branches {
                        self.mark_branch(*branch, value, marks)?;
                    }
                }
                (Keyword::DependentSchemas(dependencies), Value::Object(members)) => {
                    for (_, schema) in dependencies.iter().filter(|(name, _)| members.contains_key(name)) {
                        self.mark_branch(*schema, value, marks)?;
                    }
                }
                (Keyword::If { condition, then, otherwise }, _) => {
                    let holds = self.node(*condition, value)?;
                    if holds != Verdict::Invalid {
                        self.mark_branch(*condition, value, marks)?;
                    }
                    let taken = [(then, Verdict::Invalid), (otherwise, Verdict::Valid)];
                    for branch in
                        taken.iter().filter(|(_, not)| holds != *not).filter_map(|(branch, _)| **branch)
                    {
                        self.mark_branch(branch, value, marks)?;
                    }
                }
                _ => {}
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Marks the parts that a subschema of the same value evaluates, if the value is valid against it.
    fn mark_branch<'v>(
        &mut self,
        id: NodeId,
        value: &'v Value,
        marks: &mut Marks<'v>,
    ) -> Result<(), BudgetExhausted> {
        self.steps.spend(MEMO_STEPS)?;
        if marks.visited.insert(id) && self.node(id, value)? != Verdict::Invalid {
            self.mark(self.node_of(id), value, Marking { marks, outer: false })?;
        }
        Ok(())
    }
}

fn count(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

/// Whether a value has one of the types.
fn has_type(types: &Types, value: &Value) -> bool {
    types.names.iter().any(|name| match (name.as_str(), value) {
        ("null", Value::Null)
        | ("boolean", Value::Bool(_))
        | ("string", Value::String(_))
        | ("number", Value::Number(_))
        | ("array", Value::Array(_))
        | ("object", Value::Object(_)) => true,
        ("integer", Value::Number(number)) => {
            !number.is_f64()
                || types.integral_floats && number.as_f64().is_some_and(|float| float.fract() == 0.0)
        }
        _ => false,
    })
}

fn number_fits(keyword: &Keyword, value: &Number) -> Option<Verdict> {
    Some(match keyword {
        Keyword::Minimum { limit, exclusive } => {
            let order = number::compare(value, limit);
            (order == Ordering::Greater || !exclusive && order == Ordering::Equal).into()
        }
        Keyword::Maximum { limit, exclusive } => {
            let order = number::compare(value, limit);
            (order == Ordering::Less || !exclusive && order == Ordering::Equal).into()
        }
        Keyword::MultipleOf(of) => number::is_multiple(value, of),
        _ => return None,
    })
}
