//! Messages with duplicate keys: each is refused, or all decisions use the values that any JSON parser finds.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn code(text: &str) -> Result<(), (Option<String>, i64, String)> {
    let describe = |(id, error): Rejection| (id.map(|id| id.get().to_owned()), error.code, error.message);
    parse_message(&text.into()).map(drop).map_err(describe)
}

#[test]
fn rejects_duplicate_keys_by_name() {
    let check = |text: &str, id: Option<&str>, key: &str| {
        let (found, code, message) = code(text).unwrap_err();
        assert_eq!((found.as_deref(), code), (id, INVALID_REQUEST), "{text}");
        assert!(message.starts_with(&format!("duplicate key \"{key}\"")), "{text} {message}");
    };
    let call =
        |params: &str| format!(r#"{{"jsonrpc":"2.0","id":"i","method":"tools/call","params":{params}}}"#);
    check(&call(r#"{"name":"a","name":"b"}"#), Some("\"i\""), "name");
    check(&call(r#"{"name":"a","\u006eame":"b"}"#), Some("\"i\""), "name");
    check(&call(r#"{"arguments":{"p":1,"\u0070":2}}"#), Some("\"i\""), "p");
    check(&call(r#"{"_meta":{"a":1,"a":1}}"#), Some("\"i\""), "a");
    check(&call(r#"{"_meta":{},"_meta":{}}"#), Some("\"i\""), "_meta");
    check(&call(r#"{"arguments":[{"x":{"y":[{"z":1,"z":1}]}}]}"#), Some("\"i\""), "z");
    check(r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"m","params":{}}"#, None, "id");
    check(r#"{"jsonrpc":"2.0","method":"n","params":{"requestId":1,"requestId":2}}"#, None, "requestId");
    check(r#"{"jsonrpc":"2.0","id":1,"result":{"action":"a","action":"b"}}"#, Some("1"), "action");
    assert_eq!(code(&call(r#"{"\ud800":1}"#)).unwrap_err().1, INVALID_REQUEST);
    assert!(code(&call(r#"{"name":"a","arguments":{"name":"b"},"_meta":{"name":"c"}}"#)).is_ok());
}

/// The limits of the scanner on keys and depth do not affect the result.
#[test]
fn rejects_duplicate_keys_beyond_scanner_limits() {
    let request = |arguments: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"arguments":{arguments}}}}}"#)
    };
    let many = |last: usize| {
        let keys: Vec<String> = (0..200).chain([last]).map(|key| format!(r#""{key}":0"#)).collect();
        format!("{{{}}}", keys.join(","))
    };
    assert!(code(&request(&many(200))).is_ok());
    assert!(code(&request(&many(0))).is_err() && code(&request(&many(199))).is_err());
    for depth in [1, 7, 8, 9, 20, 60, 80] {
        let nested = |inner: &str| format!("{}{inner}{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
        assert!(code(&request(&nested(r#"{"k":1,"l":2}"#))).is_ok(), "{depth}");
        assert!(code(&request(&nested(r#"{"k":1,"k":2}"#))).is_err(), "{depth}");
        let outer = format!(r#"{{"k":{},"k":1}}"#, nested("{}"));
        assert!(code(&request(&outer)).is_err(), "{depth}");
    }
}

/// The first and the last member of that name, as parsers that keep the first or the last one read it.
fn first_and_last(object: &RawObject, key: &str) -> (Option<String>, Option<String>) {
    let text = object.clone().into_raw();
    let last = serde_json::from_str::<serde_json::Map<String, Value>>(text.get()).unwrap();
    let mut all = object.iter().filter(|(name, _)| *name == key).map(|(_, value)| value.value().to_string());
    (all.next(), last.get(key).map(Value::to_string))
}

fn any_params() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        r#""name""#,
        r#""\u006eame""#,
        r#""arguments""#,
        r#""argument\u0073""#,
        r#""taskId""#,
        r#""_meta""#,
        r#""p""#,
        r#""\u0070""#,
        r#""uri""#,
        r#""task\u0049d""#,
    ]);
    let leaf =
        prop::sample::select(vec!["1", "2", r#""a""#, r#""b""#, "null", "{}", "[]"]).prop_map(str::to_owned);
    let value = leaf.prop_recursive(3, 12, 4, move |inner| {
        let member = (key.clone(), inner).prop_map(|(key, value)| format!("{key}:{value}"));
        prop::collection::vec(member, 0..4).prop_map(|members| format!("{{{}}}", members.join(",")))
    });
    value.prop_filter("params are an object", |text| text.starts_with('{'))
}

proptest! {
    #[test]
    fn decisions_use_values_that_all_parsers_agree_on(params in any_params()) {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        let ambiguous = key_problem(&text).is_some();
        match parse_message(&text.as_str().into()) {
            Ok(ClientMessage::Request(_, RequestParams { members, meta })) => {
                prop_assert!(!ambiguous);
                for key in ["name", "arguments", "taskId", "p", "uri"] {
                    for object in [&members, &meta] {
                        let (first, last) = first_and_last(object, key);
                        prop_assert_eq!(first, last, "{} {}", key, text);
                    }
                    let decided = members.get(key).map(|value| value.value().to_string());
                    let parsed: Value = serde_json::from_str(&params).unwrap();
                    prop_assert_eq!(decided, parsed.get(key).map(Value::to_string));
                }
            }
            Ok(other) => prop_assert!(false, "{:?}", other),
            Err((_, error)) => prop_assert!(ambiguous && error.code == INVALID_REQUEST, "{}", text),
        }
    }
}
