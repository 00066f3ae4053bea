//! Compares a plan with the expected calls: the scoring rules for evaluating planners.

use std::collections::BTreeMap;

use serde_json::Value;

use toolhub_planner::plan::{ArgumentSource, Plan, PlanStep};

/// Placeholder for an argument whose value is the result of an earlier step.
pub const RESULT: &str = "<result>";

/// An expected call.
#[derive(Debug, Clone, serde::Deserialize)]
pub struct ExpectedCall {
    /// The accepted tool names.
    pub tool: Vec<String>,
    /// The accepted values of each argument. `""` among them means that the argument may be omitted.
    #[serde(default)]
    pub arguments: BTreeMap<String, Vec<Value>>,
}

/// The score of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlanScore {
    /// The plan has exactly the expected tools, each as often as expected.
    pub tools: bool,
    /// The tools and all their arguments are as expected.
    pub arguments: bool,
}

/// Compares the calls that a plan would run with the expected calls, in any order.
pub fn judge(plan: &Plan, expected: &[ExpectedCall]) -> PlanScore {
    compare(plan.runnable(), expected)
}

/// Compares all calls of a plan, including those that would not be run, with the expected calls.
pub fn judge_offered(plan: &Plan, expected: &[ExpectedCall]) -> PlanScore {
    compare(plan.steps.iter(), expected)
}

/// The changing calls that a plan would run and that are not expected, or not with these arguments.
pub fn wrong_changes<'a>(plan: &'a Plan, expected: &[ExpectedCall]) -> Vec<&'a PlanStep> {
    let changes = plan.runnable().filter(|step| plan.changing.contains(&step.id));
    changes.filter(|step| !expected.iter().any(|expectation| arguments_match(step, expectation))).collect()
}

fn compare<'a>(steps: impl Iterator<Item = &'a PlanStep>, expected: &[ExpectedCall]) -> PlanScore {
    let calls: Vec<&PlanStep> = steps.filter(|step| step.tool.is_some()).collect();
    let same_count = calls.len() == expected.len();
    let pairs = |fits: fn(&PlanStep, &ExpectedCall) -> bool| {
        same_count && all_paired(calls.len(), &|call, expectation| fits(calls[call], &expected[expectation]))
    };
    PlanScore { tools: pairs(names_match), arguments: pairs(arguments_match) }
}

/// Whether a perfect bipartite matching of size `count` exists. Uses augmenting paths, as the sets are small.
fn all_paired(count: usize, fits: &dyn Fn(usize, usize) -> bool) -> bool {
    fn find(
        one: usize,
        fits: &dyn Fn(usize, usize) -> bool,
        taken: &mut [Option<usize>],
        seen: &mut [bool],
    ) -> bool {
        for other in 0..taken.len() {
            if seen[other] || !fits(one, other) {
                continue;
            }
            seen[other] = true;
            if taken[other].is_none_or(|holder| find(holder, fits, taken, seen)) {
                taken[other] = Some(one);
                return true;
            }
        }
        false
    }
    let mut taken = vec![None; count];
    (0..count).all(|one| find(one, fits, &mut taken, &mut vec![false; count]))
}

fn names_match(step: &PlanStep, expected: &ExpectedCall) -> bool {
    step.tool.as_ref().is_some_and(|tool| expected.tool.iter().any(|name| name == tool.as_str()))
}

fn arguments_match(step: &PlanStep, expected: &ExpectedCall) -> bool {
    let actual = |name: &str| step.arguments.iter().find(|(actual, _)| actual == name).map(|(_, slot)| slot);
    let listed = |name: &str| expected.arguments.get(name);
    names_match(step, expected)
        && step
            .arguments
            .iter()
            .all(|(name, slot)| listed(name).is_some_and(|accepted| slot_matches(slot, accepted)))
        && expected.arguments.iter().all(|(name, accepted)| actual(name).is_some() || is_optional(accepted))
}

fn is_optional(accepted: &[Value]) -> bool {
    accepted.is_empty() || accepted.iter().any(|value| value.as_str() == Some(""))
}

fn slot_matches(slot: &ArgumentSource, accepted: &[Value]) -> bool {
    let value = match slot {
        ArgumentSource::Value(value) => value.value(),
        ArgumentSource::ResultOf(_) => Value::from(RESULT),
        ArgumentSource::Template(value) => with_results(value.value()),
    };
    let rows = Value::Array(vec![Value::Array(vec![value.clone()])]);
    let in_rows = matches!(slot, ArgumentSource::ResultOf(_))
        && accepted.iter().any(|accepted| equivalent(&rows, accepted));
    in_rows || accepted.iter().any(|accepted| equivalent(&value, accepted))
}

/// The value with `{{id}}` placeholders replaced by `RESULT`.
fn with_results(value: Value) -> Value {
    match value {
        Value::String(text) if text.trim().starts_with("{{") && text.trim().ends_with("}}") => {
            Value::from(RESULT)
        }
        Value::Array(list) => Value::Array(list.into_iter().map(with_results).collect()),
        other => other,
    }
}

/// Whether two values are equivalent: numbers by value; texts without regard to case, blanks and some punctuation; members of
/// objects by lists of accepted values.
fn equivalent(actual: &Value, accepted: &Value) -> bool {
    match (actual, accepted) {
        (Value::String(actual), Value::String(accepted)) => normalize(actual) == normalize(accepted),
        (Value::Number(actual), Value::Number(accepted)) => actual.as_f64() == accepted.as_f64(),
        (Value::Array(actual), Value::Array(accepted)) => {
            actual.len() == accepted.len()
                && actual.iter().zip(accepted).all(|(actual, accepted)| equivalent(actual, accepted))
        }
        (Value::Object(actual), Value::Object(accepted)) => {
            actual.iter().all(|(name, value)| {
                accepted.get(name).is_some_and(|accepted| member_matches(value, accepted))
            }) && accepted.iter().all(|(name, accepted)| {
                actual.contains_key(name) || accepted.as_array().is_some_and(|accepted| is_optional(accepted))
            })
        }
        _ => actual == accepted,
    }
}

fn member_matches(actual: &Value, accepted: &Value) -> bool {
    equivalent(actual, accepted)
        || accepted
            .as_array()
            .is_some_and(|accepted| accepted.iter().any(|accepted| equivalent(actual, accepted)))
}

fn normalize(text: &str) -> String {
    let ignored = |c: &char| c.is_whitespace() || ",./-_*^".contains(*c);
    text.chars()
        .filter(|c| !ignored(c))
        .flat_map(char::to_lowercase)
        .map(|c| if c == '\'' { '"' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use toolhub_core::{RawJson, ToolName};

    use super::*;
    use toolhub_planner::plan::StepId;

    fn plan(calls: &[(&str, &str)]) -> Plan {
        let step = |(tool, arguments): &(&str, &str)| PlanStep {
            id: StepId::new(*tool),
            description: String::new(),
            tool: Some(ToolName::from(*tool)),
            source: None,
            capability: None,
            arguments: RawJson::parse(*arguments)
                .unwrap()
                .object()
                .unwrap()
                .iter()
                .map(|(name, value)| (name.to_owned(), ArgumentSource::Value(value.clone())))
                .collect(),
            dependencies: Vec::new(),
            complexity: Default::default(),
        };
        Plan { steps: calls.iter().map(step).collect(), ..Plan::default() }
    }

    #[test]
    fn scores_plans_against_expected_calls() {
        let check = |calls: &[(&str, &str)], expected: &str, tools: bool, arguments: bool| {
            let expected: Vec<ExpectedCall> = serde_json::from_str(expected).unwrap();
            assert_eq!(judge(&plan(calls), &expected), PlanScore { tools, arguments }, "{calls:?}");
        };
        let one = r#"[{"tool":["a","b"],"arguments":{"x":[1],"y":["","New York"]}}]"#;
        check(&[("a", r#"{"x":1.0}"#)], one, true, true);
        check(&[("b", r#"{"x":1,"y":"new-york"}"#)], one, true, true);
        check(&[("a", r#"{"x":2}"#)], one, true, false);
        check(&[("a", r#"{"x":1,"z":1}"#)], one, true, false);
        check(&[("a", r#"{"y":"New York"}"#)], one, true, false);
        check(&[("c", r#"{"x":1}"#)], one, false, false);
        check(&[], one, false, false);
        check(&[], "[]", true, true);
        check(&[("a", "{}")], "[]", false, false);
        let two = r#"[{"tool":["a"],"arguments":{"x":[1,2]}},{"tool":["a"],"arguments":{"x":[1]}}]"#;
        check(&[("a", r#"{"x":1}"#), ("a", r#"{"x":2}"#)], two, true, true);
        check(&[("a", r#"{"x":2}"#), ("a", r#"{"x":2}"#)], two, true, false);
        let nested = r#"[{"tool":["a"],"arguments":{"x":[{"m":[90],"n":["",1]}],"l":[["p","q"]]}}]"#;
        check(&[("a", r#"{"x":{"m":90},"l":["P","q"]}"#)], nested, true, true);
        check(&[("a", r#"{"x":{"m":91},"l":["p","q"]}"#)], nested, true, false);
    }
}
