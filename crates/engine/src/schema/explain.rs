//! What is wrong with arguments, in a bounded number of problems of a bounded length, found in bounded time: the arguments
//! come from callers, and what is told of them must not cost more than they did.

use std::fmt::{self, Write as _};

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{ValidationError, Validator};
use serde_json::Value;
use toolhub_core::error::{ArgumentProblem, Expected};

use crate::near::near_names;

/// More problems than this are counted and not told.
const MAX_PROBLEMS: usize = 8;
/// A value or a name in a message is cut to this many characters.
const MAX_VALUE_CHARS: usize = 80;
/// A rule in a message is cut to this many characters.
const MAX_RULE_CHARS: usize = 240;
/// More allowed values than this are not listed.
const MAX_OPTIONS: usize = 16;
/// The validator collects every problem there is before it tells the first. In arguments of more values than this only one
/// is looked for.
const MAX_EXPLAINED_VALUES: usize = 10_000;

/// What is needed to explain why arguments do not fit.
pub(super) struct Explainer<'a> {
    pub(super) validator: &'a Validator,
    /// The names of the schema's own properties.
    pub(super) properties: &'a [String],
    /// Whether the schema has alternatives: all problems of all of them are collected even where one is looked for.
    pub(super) alternatives: bool,
}

impl Explainer<'_> {
    /// The problems of arguments that do not fit.
    pub(super) fn problems(&self, arguments: &Value) -> Vec<ArgumentProblem> {
        let mut found = Problems::default();
        if values_in(arguments, MAX_EXPLAINED_VALUES) < MAX_EXPLAINED_VALUES {
            for error in self.validator.iter_errors(arguments) {
                self.explain(&error, arguments, &mut found);
            }
        } else if self.alternatives {
            let rule = "as its schema says; they are too large to tell which part is not";
            found.add(|| problem("", Expected::Rule(rule.to_owned()), None));
        } else if let Err(error) = self.validator.validate(arguments) {
            self.explain(&error, arguments, &mut found);
        }
        found.into_list()
    }

    /// The problems of arguments whose names are not all known.
    pub(super) fn unknown<'n>(
        &self,
        names: impl Iterator<Item = &'n str>,
        given: &[&str],
    ) -> Vec<ArgumentProblem> {
        let mut found = Problems::default();
        for name in names {
            found.add(|| {
                let near = self.meant(name, |known| given.contains(&known));
                problem(name, Expected::Absent { near }, None)
            });
        }
        found.into_list()
    }

    fn explain(&self, error: &ValidationError<'_>, arguments: &Value, found: &mut Problems) {
        let path = || path_of(error.instance_path().as_str());
        let one = |expected: Expected| problem(&path(), expected, Some(short_json(error.instance())));
        match error.kind() {
            ValidationErrorKind::Required { property } => found.add(|| {
                let name = property.as_str().map_or_else(|| short_json(property), str::to_owned);
                problem(&join(&path(), &name), Expected::Present, None)
            }),
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
                for name in unexpected {
                    found.add(|| {
                        let path = path();
                        let near = match path.is_empty() {
                            true => self.meant(name, |known| arguments.get(known).is_some()),
                            false => None,
                        };
                        problem(&join(&path, name), Expected::Absent { near }, None)
                    });
                }
            }
            ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
                found.add(|| match alternatives(context, error) {
                    Some(types) => one(Expected::Type(types)),
                    None => one(Expected::Rule("one of the forms its schema allows".to_owned())),
                });
            }
            kind => found.add(|| {
                one(expected(kind).unwrap_or_else(|| Expected::Rule(clipped(error, MAX_RULE_CHARS))))
            }),
        }
    }

    /// The parameter that an unknown argument was probably meant for: a near name that is not given itself.
    fn meant(&self, name: &str, given: impl Fn(&str) -> bool) -> Option<String> {
        let free = self.properties.iter().map(String::as_str).filter(|known| !given(known));
        near_names(name, free, 1).pop()
    }
}

/// The first problems, and how many more there are.
#[derive(Default)]
struct Problems {
    told: Vec<ArgumentProblem>,
    more: usize,
}

impl Problems {
    /// Adds one; it is made only if it is told.
    fn add(&mut self, make: impl FnOnce() -> ArgumentProblem) {
        if self.told.len() < MAX_PROBLEMS {
            self.told.push(make());
        } else {
            self.more += 1;
        }
    }

    fn into_list(mut self) -> Vec<ArgumentProblem> {
        if self.more > 0 {
            self.told.push(problem("", Expected::More(self.more), None));
        }
        self.told
    }
}

fn problem(argument: &str, expected: Expected, came: Option<String>) -> ArgumentProblem {
    ArgumentProblem { argument: short(argument), expected, came }
}

/// How many values there are in a value, counted up to a limit.
fn values_in(value: &Value, limit: usize) -> usize {
    let mut count = 1;
    match value {
        Value::Array(items) => {
            for item in items {
                if count >= limit {
                    return limit;
                }
                count += values_in(item, limit - count);
            }
        }
        Value::Object(members) => {
            for member in members.values() {
                if count >= limit {
                    return limit;
                }
                count += values_in(member, limit - count);
            }
        }
        _ => {}
    }
    count
}

fn expected(kind: &ValidationErrorKind) -> Option<Expected> {
    let rule = |text: fmt::Arguments<'_>| Some(Expected::Rule(clipped(text, MAX_RULE_CHARS)));
    match kind {
        ValidationErrorKind::Type { kind } => Some(Expected::Type(types_of(kind))),
        ValidationErrorKind::Enum { options } => {
            let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
            let mut listed: Vec<String> = options.iter().take(MAX_OPTIONS).map(short_json).collect();
            if options.len() > MAX_OPTIONS {
                listed.push(format!("… ({})", options.len()));
            }
            Some(Expected::OneOf(listed))
        }
        ValidationErrorKind::Constant { expected_value } => {
            Some(Expected::OneOf(vec![short_json(expected_value)]))
        }
        ValidationErrorKind::Minimum { limit } => rule(format_args!("≥ {limit}")),
        ValidationErrorKind::Maximum { limit } => rule(format_args!("≤ {limit}")),
        ValidationErrorKind::ExclusiveMinimum { limit } => rule(format_args!("> {limit}")),
        ValidationErrorKind::ExclusiveMaximum { limit } => rule(format_args!("< {limit}")),
        ValidationErrorKind::Pattern { pattern } => rule(format_args!("text matching /{pattern}/")),
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
    types.truncate(MAX_OPTIONS);
    Some(types)
}

/// A JSON pointer as people write a path: `/data/0/name` is `data[0].name`.
fn path_of(pointer: &str) -> String {
    let mut path = String::new();
    for step in pointer.split('/').skip(1) {
        // What is behind that is cut off in any case.
        if path.len() > 4 * MAX_VALUE_CHARS {
            break;
        }
        let step = short(&step.replace("~1", "/").replace("~0", "~"));
        if step.bytes().all(|byte| byte.is_ascii_digit()) && !path.is_empty() {
            let _ = write!(path, "[{step}]");
        } else {
            path = join(&path, &step);
        }
    }
    path
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

/// The beginning of a text that is not made any further.
fn clipped(shown: impl fmt::Display, most: usize) -> String {
    let mut clip = Clip { text: String::new(), left: most, whole: true };
    let _ = write!(clip, "{shown}");
    if !clip.whole {
        clip.text.pop();
        clip.text.push('…');
    }
    clip.text
}

/// Takes so many characters, and refuses the rest.
struct Clip {
    text: String,
    left: usize,
    whole: bool,
}

impl fmt::Write for Clip {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            if self.left == 0 {
                self.whole = false;
                return Err(fmt::Error);
            }
            self.left -= 1;
            self.text.push(character);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_and_short_ones_are_not() {
        assert_eq!(short(&"x".repeat(MAX_VALUE_CHARS)), "x".repeat(MAX_VALUE_CHARS));
        let cut = short(&"长".repeat(MAX_VALUE_CHARS + 1));
        assert_eq!((cut.chars().count(), cut.chars().last()), (MAX_VALUE_CHARS, Some('…')));
        assert_eq!(path_of("/data/0/name~1x/1"), "data[0].name/x[1]");
    }

    #[test]
    fn values_are_counted_up_to_a_limit() {
        let value = serde_json::json!({"a": [1, 2, {"b": 3}], "c": null});
        assert_eq!(values_in(&value, 100), 7);
        assert_eq!(values_in(&value, 4), 4);
    }
}
