//! Describes why arguments are invalid, with a bounded number of problems of bounded length. The step budget bounds
//! the time.

use std::fmt;
use std::fmt::Write as _;

use serde_json::{Map, Value};
use toolhub_core::error::{ArgumentExpectation, ArgumentProblem};
use toolhub_core::lang::LocalizedText;
use toolhub_core::suggest::similar_names;

use super::budget::{BudgetExhausted, StepBudget};
use super::compile::{CompiledSchema, Keyword, Node, NodeId};
use super::evaluate::{Evaluation, ObjectValue};
use super::verdict::Verdict;

/// Maximum number of listed problems; further ones are counted.
const MAX_PROBLEMS: usize = 8;
/// Maximum characters of a value or a name in a message.
const MAX_VALUE_CHARS: usize = 80;
/// Maximum characters of a rule in a message.
const MAX_RULE_CHARS: usize = 240;
/// Maximum number of listed allowed values.
const MAX_OPTIONS: usize = 16;
/// Maximum number of parameters among which similar names are searched.
const MAX_COMPARED_NAMES: usize = 512;

/// The inputs for explaining why arguments are invalid.
pub(super) struct Explainer<'a> {
    pub(super) program: &'a CompiledSchema,
    pub(super) steps: &'a StepBudget,
    /// The names of the top-level properties.
    pub(super) properties: &'a [String],
}

impl<'a> Explainer<'a> {
    /// The problems of invalid arguments.
    pub(super) fn problems(&self, arguments: &'a Value) -> Vec<ArgumentProblem> {
        let mut search = Search {
            explainer: self,
            evaluation: Evaluation::explaining(self.program, self.steps),
            problems: Problems::default(),
            arguments,
        };
        let complete = search.node(self.program.root, arguments, Path::Root).is_ok();
        let mut argument_problems = search.problems;
        if argument_problems.listed_problems.is_empty() {
            let rule = match complete {
                true => LocalizedText::new(AS_THE_SCHEMA_SAYS.0, AS_THE_SCHEMA_SAYS.1),
                false => LocalizedText::new(
                    "as its schema says; they are too large to tell which part is not",
                    "符合其 schema 的值；参数过大，无法指出是哪一部分不符",
                ),
            };
            argument_problems.add(|| problem("", ArgumentExpectation::Rule(rule), None));
        }
        argument_problems.into_list()
    }

    /// The parameter that an unknown argument was probably meant for: a similar name that is not given itself.
    fn suggestion(&self, name: &str, object: &Value) -> Option<String> {
        if self.properties.len() > MAX_COMPARED_NAMES {
            return None;
        }
        let free =
            self.properties.iter().map(String::as_str).filter(|property| object.get(property).is_none());
        similar_names(name, free, 1).pop()
    }
}

/// The path of a value in the arguments.
#[derive(Clone, Copy)]
enum Path<'a> {
    Root,
    Member(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl Path<'_> {
    /// The path in the form `data[0].name`.
    fn text(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Member(parent, name) => {
                let path = parent.text();
                // The rest would be cut off anyway.
                if path.len() > 4 * MAX_VALUE_CHARS { path } else { join(&path, &short(name)) }
            }
            Self::Item(parent, index) => format!("{}[{index}]", parent.text()),
        }
    }
}

/// Searches for all problems.
struct Search<'a, 'e> {
    explainer: &'e Explainer<'a>,
    evaluation: Evaluation<'a>,
    problems: Problems,
    arguments: &'a Value,
}

impl<'a> Search<'a, '_> {
    /// Adds the problems of a value that is invalid against a subschema.
    fn node(&mut self, id: NodeId, value: &Value, path: Path<'_>) -> Result<(), BudgetExhausted> {
        if self.problems.is_full() {
            self.problems.more += 1;
            return Ok(());
        }
        let node = self.evaluation.node_of(id);
        for keyword in &node.keywords {
            if self.evaluation.keyword(node, keyword, value)? == Verdict::Invalid {
                self.keyword(node, keyword, value, path)?;
            }
        }
        Ok(())
    }

    /// Adds the problems of a value, if it is invalid.
    fn unless_valid(&mut self, id: NodeId, value: &Value, path: Path<'_>) -> Result<(), BudgetExhausted> {
        match self.evaluation.node(id, value)? {
            Verdict::Invalid => self.node(id, value, path),
            Verdict::Undecided | Verdict::Valid => Ok(()),
        }
    }

    fn keyword(
        &mut self,
        node: &'a Node,
        keyword: &'a Keyword,
        value: &Value,
        path: Path<'_>,
    ) -> Result<(), BudgetExhausted> {
        match (keyword, value) {
            (Keyword::Reference(target), _) => self.node(*target, value, path)?,
            (Keyword::AllOf(branches), _) => {
                for branch in branches {
                    self.unless_valid(*branch, value, path)?;
                }
            }
            (Keyword::AnyOf(branches), _) => self.alternatives(branches, value, path)?,
            (Keyword::OneOf(branches), _) => {
                let mut valid = 0;
                for branch in branches {
                    valid += usize::from(self.evaluation.node(*branch, value)? == Verdict::Valid);
                }
                if valid > 1 {
                    self.rule(
                        format_args!("exactly one of the forms its schema allows, not several"),
                        format_args!("其 schema 允许的形式中恰好一种，而不是多种"),
                        value,
                        path,
                    );
                } else {
                    self.alternatives(branches, value, path)?;
                }
            }
            (Keyword::If { condition, then, otherwise }, _) => {
                let holds = self.evaluation.node(*condition, value)? == Verdict::Valid;
                if let Some(branch) = if holds { then } else { otherwise } {
                    self.node(*branch, value, path)?;
                }
            }
            (Keyword::DependentSchemas(dependencies), Value::Object(members)) => {
                for (_, schema) in dependencies.iter().filter(|(name, _)| members.contains_key(name)) {
                    self.unless_valid(*schema, value, path)?;
                }
            }
            (Keyword::Items { prefix, rest }, Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    if let Some(schema) = prefix.get(index).or(rest.as_ref()) {
                        self.unless_valid(*schema, item, Path::Item(&path, index))?;
                    }
                }
            }
            (Keyword::Properties { .. }, Value::Object(members)) => self.members(keyword, members, path)?,
            (Keyword::UnevaluatedProperties(schema), Value::Object(members)) => {
                for name in self.evaluation.unevaluated_names(node, ObjectValue { members, value })? {
                    if let Some(member) = members.get(name) {
                        self.member(*schema, name, member, path)?;
                    }
                }
            }
            (Keyword::Required(names), Value::Object(members)) => {
                for name in names.iter().filter(|name| !members.contains_key(*name)) {
                    self.missing(name, path);
                }
            }
            (Keyword::DependentRequired(dependencies), Value::Object(members)) => {
                for (_, names) in dependencies.iter().filter(|(name, _)| members.contains_key(name)) {
                    for name in names.iter().filter(|name| !members.contains_key(*name)) {
                        self.missing(name, path);
                    }
                }
            }
            (Keyword::PropertyNames(schema), Value::Object(members)) => {
                for name in members.keys() {
                    if self.evaluation.name(name, *schema)? == Verdict::Invalid {
                        let name = short(name);
                        self.rule(
                            format_args!("without a name like `{name}`"),
                            format_args!("不含 `{name}` 这样名称的对象"),
                            value,
                            path,
                        );
                    }
                }
            }
            _ => self.problems.add(|| {
                let expected = self.explainer.expected(keyword);
                problem(&path.text(), expected, Some(short_json(value)))
            }),
        }
        Ok(())
    }

    fn members(
        &mut self,
        keyword: &'a Keyword,
        members: &Map<String, Value>,
        path: Path<'_>,
    ) -> Result<(), BudgetExhausted> {
        let Keyword::Properties { named, patterns, additional } = keyword else { return Ok(()) };
        let is_never = |schema: &NodeId| self.evaluation.node_of(*schema).is_never();
        let closed = additional.filter(is_never).filter(|_| patterns.is_empty());
        for (name, member) in members {
            // There may be very many unknown names, and all are counted.
            if let Some(never) = closed.filter(|_| !named.contains_key(name)) {
                self.explainer.steps.spend(1)?;
                self.member(never, name, member, path)?;
                continue;
            }
            if self.evaluation.member(keyword, name, member)? != Verdict::Invalid {
                continue;
            }
            match named.get(name).or(additional.as_ref()) {
                Some(schema) if self.evaluation.node(*schema, member)? == Verdict::Invalid => {
                    self.member(*schema, name, member, path)?;
                }
                // One of the patterns applies to the name.
                _ => self.rule(
                    format_args!("what the schema allows for such a name"),
                    format_args!("schema 对这类名称所允许的值"),
                    member,
                    Path::Member(&path, name),
                ),
            }
        }
        Ok(())
    }

    /// The problems of one invalid member.
    fn member(
        &mut self,
        schema: NodeId,
        name: &str,
        value: &Value,
        path: Path<'_>,
    ) -> Result<(), BudgetExhausted> {
        if !self.evaluation.node_of(schema).is_never() {
            return self.unless_valid(schema, value, Path::Member(&path, name));
        }
        let (explainer, arguments) = (self.explainer, self.arguments);
        self.problems.add(|| {
            let near = match path {
                Path::Root => explainer.suggestion(name, arguments),
                _ => None,
            };
            problem(&Path::Member(&path, name).text(), ArgumentExpectation::Absent { near }, None)
        });
        Ok(())
    }

    fn missing(&mut self, name: &str, path: Path<'_>) {
        self.problems.add(|| problem(&Path::Member(&path, name).text(), ArgumentExpectation::Present, None));
    }

    /// Adds a problem with a rule, given in English and Chinese.
    fn rule(&mut self, en: fmt::Arguments<'_>, zh: fmt::Arguments<'_>, value: &Value, path: Path<'_>) {
        self.problems.add(|| {
            let expected = rule(en, zh);
            problem(&path.text(), expected, Some(short_json(value)))
        });
    }

    /// No alternative is valid: reports the accepted types, if every alternative failed only because of the type.
    fn alternatives(
        &mut self,
        branches: &[NodeId],
        value: &Value,
        path: Path<'_>,
    ) -> Result<(), BudgetExhausted> {
        let mut types: Vec<String> = Vec::new();
        for branch in branches {
            match self.wrong_type(*branch, value)? {
                Some(names) => {
                    for name in names {
                        if !types.contains(name) {
                            types.push(name.clone());
                        }
                    }
                }
                None => {
                    self.rule(
                        format_args!("one of the forms its schema allows"),
                        format_args!("其 schema 允许的形式之一"),
                        value,
                        path,
                    );
                    return Ok(());
                }
            }
        }
        self.problems
            .add(|| problem(&path.text(), ArgumentExpectation::Type(types), Some(short_json(value))));
        Ok(())
    }

    /// The types that a subschema accepts, if a value is invalid only because of its type.
    fn wrong_type(&mut self, id: NodeId, value: &Value) -> Result<Option<&'a [String]>, BudgetExhausted> {
        let mut node = self.evaluation.node_of(id);
        // Maximum number of references followed.
        for _ in 0..8 {
            let mut failed = None;
            for keyword in &node.keywords {
                if self.evaluation.keyword(node, keyword, value)? == Verdict::Invalid
                    && failed.replace(keyword).is_some()
                {
                    return Ok(None);
                }
            }
            match failed {
                Some(Keyword::Type(types)) => return Ok(Some(&types.names)),
                Some(Keyword::Reference(target)) => node = self.evaluation.node_of(*target),
                _ => return Ok(None),
            }
        }
        Ok(None)
    }
}

impl Explainer<'_> {
    /// The expectation of a keyword that constrains a single value.
    fn expected(&self, keyword: &Keyword) -> ArgumentExpectation {
        match keyword {
            Keyword::Type(types) => ArgumentExpectation::Type(types.names.clone()),
            Keyword::Enum(options) => {
                let mut listed: Vec<String> =
                    options.values.iter().take(MAX_OPTIONS).map(short_json).collect();
                if options.values.len() > MAX_OPTIONS {
                    listed.push(format!("… ({})", options.values.len()));
                }
                ArgumentExpectation::OneOf(listed)
            }
            Keyword::Minimum { limit, exclusive: false } => in_both(format_args!("≥ {limit}")),
            Keyword::Minimum { limit, exclusive: true } => in_both(format_args!("> {limit}")),
            Keyword::Maximum { limit, exclusive: false } => in_both(format_args!("≤ {limit}")),
            Keyword::Maximum { limit, exclusive: true } => in_both(format_args!("< {limit}")),
            Keyword::MultipleOf(of) => rule(format_args!("a multiple of {of}"), format_args!("{of} 的倍数")),
            Keyword::Pattern(id) => {
                let pattern = self.program.patterns.text(*id);
                rule(format_args!("text matching /{pattern}/"), format_args!("匹配 /{pattern}/ 的文本"))
            }
            Keyword::MinLength(min) => {
                rule(format_args!("at least {min} characters long"), format_args!("至少 {min} 个字符"))
            }
            Keyword::MaxLength(max) => {
                rule(format_args!("at most {max} characters long"), format_args!("至多 {max} 个字符"))
            }
            Keyword::MinItems(min) => {
                rule(format_args!("at least {min} items long"), format_args!("至少 {min} 项的数组"))
            }
            Keyword::MaxItems(max) => {
                rule(format_args!("at most {max} items long"), format_args!("至多 {max} 项的数组"))
            }
            Keyword::UniqueItems => {
                rule(format_args!("without repeated items"), format_args!("没有重复项的数组"))
            }
            Keyword::Contains { min, max: None, .. } => rule(
                format_args!("a list with at least {min} items of the form that its schema requires"),
                format_args!("至少有 {min} 项符合其 schema 的数组"),
            ),
            Keyword::Contains { min, max: Some(max), .. } => rule(
                format_args!("a list with {min} to {max} items of the form that its schema requires"),
                format_args!("有 {min} 到 {max} 项符合其 schema 的数组"),
            ),
            Keyword::MinProperties(min) => {
                rule(format_args!("at least {min} members"), format_args!("至少 {min} 个成员的对象"))
            }
            Keyword::MaxProperties(max) => {
                rule(format_args!("at most {max} members"), format_args!("至多 {max} 个成员的对象"))
            }
            Keyword::UnevaluatedItems(_) => {
                rule(format_args!("without further items"), format_args!("没有多余项的数组"))
            }
            Keyword::Not(_) => rule(
                format_args!("not of a form that its schema excludes"),
                format_args!("其 schema 未排除的值"),
            ),
            _ => rule(format_args!("{}", AS_THE_SCHEMA_SAYS.0), format_args!("{}", AS_THE_SCHEMA_SAYS.1)),
        }
    }
}

/// The expectation where no keyword can be named.
const AS_THE_SCHEMA_SAYS: (&str, &str) = ("as its schema says", "符合其 schema 的值");

/// An expectation in English and Chinese.
fn rule(en: fmt::Arguments<'_>, zh: fmt::Arguments<'_>) -> ArgumentExpectation {
    ArgumentExpectation::Rule(LocalizedText::new(clipped(en, MAX_RULE_CHARS), clipped(zh, MAX_RULE_CHARS)))
}

/// An expectation that reads the same in every language.
fn in_both(text: fmt::Arguments<'_>) -> ArgumentExpectation {
    rule(text, text)
}

/// The first problems, and the number of further ones.
#[derive(Default)]
struct Problems {
    listed_problems: Vec<ArgumentProblem>,
    more: usize,
}

impl Problems {
    fn is_full(&self) -> bool {
        self.listed_problems.len() >= MAX_PROBLEMS
    }

    /// Adds a problem; builds it only if it is listed.
    fn add(&mut self, make: impl FnOnce() -> ArgumentProblem) {
        if self.is_full() {
            self.more += 1;
        } else {
            self.listed_problems.push(make());
        }
    }

    fn into_list(mut self) -> Vec<ArgumentProblem> {
        if self.more > 0 {
            self.listed_problems.push(problem("", ArgumentExpectation::More(self.more), None));
        }
        self.listed_problems
    }
}

fn problem(argument: &str, expected: ArgumentExpectation, actual: Option<String>) -> ArgumentProblem {
    ArgumentProblem { argument: short(argument), expected, actual }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn short_json(value: &Value) -> String {
    clipped(value, MAX_VALUE_CHARS)
}

pub(super) fn short(text: &str) -> String {
    clipped(text, MAX_VALUE_CHARS)
}

/// Formats a value up to a limit and stops there.
fn clipped(value: impl fmt::Display, max_chars: usize) -> String {
    let mut clip = Clip { text: String::new(), remaining_chars: max_chars, complete: true };
    let _ = write!(clip, "{value}");
    if !clip.complete {
        clip.text.pop();
        clip.text.push('…');
    }
    clip.text
}

/// A writer that accepts a limited number of characters.
struct Clip {
    text: String,
    remaining_chars: usize,
    complete: bool,
}

impl fmt::Write for Clip {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            if self.remaining_chars == 0 {
                self.complete = false;
                return Err(fmt::Error);
            }
            self.remaining_chars -= 1;
            self.text.push(character);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncates_only_long_texts() {
        assert_eq!(short(&"x".repeat(MAX_VALUE_CHARS)), "x".repeat(MAX_VALUE_CHARS));
        let cut = short(&"长".repeat(MAX_VALUE_CHARS + 1));
        assert_eq!((cut.chars().count(), cut.chars().last()), (MAX_VALUE_CHARS, Some('…')));
        let (data, first) = (Path::Member(&Path::Root, "data"), 0);
        let first = Path::Item(&data, first);
        assert_eq!(Path::Item(&Path::Member(&first, "name/x"), 1).text(), "data[0].name/x[1]");
    }
}
