//! Compares parsed calls with the expected ones by the rules of the function-calling leaderboards: names ignore dots and
//! underscores, strings ignore case and punctuation, and an argument may have any of its acceptable values.
use serde_json::Value;

/// The expected calls of a text.
pub(super) enum Expect {
    /// Exactly these calls, in this order.
    Exactly(Value),
    /// A truncated call, with its name and its first argument.
    Truncated { name: String, argument: String },
    /// These calls in any order, each as `{name: {argument: [acceptable values]}}`; the value `""` marks an optional argument.
    OneOfMany(Value),
}

impl Expect {
    pub(super) fn is_satisfied(&self, calls: &Value) -> bool {
        let Some(calls) = calls.as_array() else { return false };
        match self {
            Self::Exactly(expected) => {
                let expected = expected.as_array().map(Vec::as_slice).unwrap_or_default();
                let same = |(call, expected): (&Value, &Value)| {
                    call["name"] == expected["name"] && equal(&call["arguments"], &expected["arguments"])
                };
                calls.len() == expected.len() && calls.iter().zip(expected).all(same)
            }
            Self::Truncated { name, argument } => match calls.as_slice() {
                [call] => call["name"] == name.as_str() && call["arguments"].get(argument).is_some(),
                _ => false,
            },
            Self::OneOfMany(expected) => {
                let expected = expected.as_array().map(Vec::as_slice).unwrap_or_default();
                let mut unmatched: Vec<&Value> = calls.iter().collect();
                calls.len() == expected.len()
                    && expected.iter().all(|expected| {
                        let found = unmatched.iter().position(|call| accepted(call, expected));
                        found.map(|place| unmatched.remove(place)).is_some()
                    })
            }
        }
    }
}

/// Equality that ignores the notation of numbers.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|same| equal(value, same)))
        }
        _ => one == other,
    }
}

fn accepted(call: &Value, expected: &Value) -> bool {
    let Some((name, arguments)) = expected.as_object().and_then(|object| object.iter().next()) else {
        return false;
    };
    let same_name = call["name"].as_str().is_some_and(|actual| normalize(actual) == normalize(name));
    same_name && members_accepted(&call["arguments"], arguments)
}

fn members_accepted(actual: &Value, accepted: &Value) -> bool {
    let (Some(actual), Some(accepted)) = (actual.as_object(), accepted.as_object()) else { return false };
    let fits = |(key, value): (&String, &Value)| {
        accepted.get(key).is_some_and(|options| options_of(options).iter().any(|option| close(value, option)))
    };
    let optional = |options: &Value| options_of(options).contains(&Value::from(""));
    actual.iter().all(fits)
        && accepted.iter().all(|(key, options)| actual.contains_key(key) || optional(options))
}

fn options_of(options: &Value) -> &[Value] {
    options.as_array().map_or_else(|| std::slice::from_ref(options), Vec::as_slice)
}

fn close(value: &Value, option: &Value) -> bool {
    match (value, option) {
        (Value::String(value), Value::String(option)) => normalize(value) == normalize(option),
        (Value::Array(values), Value::Array(options)) => {
            values.len() == options.len()
                && values.iter().zip(options).all(|(value, option)| close(value, option))
        }
        (Value::Object(_), Value::Object(_)) => members_accepted(value, option),
        _ => equal(value, option),
    }
}

/// Normalizes a string as the leaderboards do: without spaces and punctuation, in lower case.
fn normalize(text: &str) -> String {
    let kept =
        text.chars().filter(|character| !matches!(character, ' ' | ',' | '.' | '/' | '-' | '_' | '*' | '^'));
    kept.flat_map(char::to_lowercase)
        .map(|character| if character == '\'' { '"' } else { character })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn accepts_calls_that_match_expected_options() {
        let expected = Expect::OneOfMany(json!([
            {"math.power": {"base": [3], "exponent": [4.0], "mod": ["", 1]}},
            {"find": {"place": ["New York, NY", "NYC"], "options": [{"open": [true], "price": ["", 5]}]}}
        ]));
        let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
        let power = call("math_power", json!({"base": 3, "exponent": 4}));
        let find = call("find", json!({"place": "new york NY", "options": {"open": true}}));
        assert!(expected.is_satisfied(&json!([find, power])));
        assert!(!expected.is_satisfied(&json!([power])));
        assert!(!expected.is_satisfied(&json!([
            power,
            call("find", json!({"place": "Boston", "options": {"open": true}}))
        ])));
        assert!(!expected.is_satisfied(&json!([
            power,
            call("find", json!({"place": "NYC", "options": {"open": true}, "x": 1}))
        ])));
        let truncated = Expect::Truncated { name: "find".to_owned(), argument: "place".to_owned() };
        assert!(truncated.is_satisfied(&json!([call("find", json!({"place": "N"}))])));
        assert!(!truncated.is_satisfied(&json!([call("find", json!({}))])));
    }
}
