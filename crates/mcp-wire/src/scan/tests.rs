//! Tests that the scanner and `serde_json` find the same in any text.

#[path = "../../../../fuzz/shared/json_text.rs"]
pub(crate) mod json_text;

use proptest::prelude::*;

use super::*;
use json_text::{any_text, broken};

fn scan_value(text: &str) -> Option<&str> {
    let mut scan = JsonScanner::new(text);
    let value = scan.value()?;
    scan.is_at_end().then_some(value)
}

fn parse_value(text: &str) -> Option<&str> {
    serde_json::from_str::<&RawValue>(text).ok().map(RawValue::get)
}

#[test]
fn scanner_agrees_with_serde_json_on_edge_cases() {
    for text in [
        "0",
        "-0",
        "-",
        "01",
        "1.",
        ".5",
        "1.5",
        "1e",
        "1e5",
        "1E+5",
        "1e+",
        "--1",
        "true",
        "tru",
        "trueish",
        "nul",
        "\"\"",
        "\"",
        "\"\\\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\ud800\"",
        "\"\\x\"",
        "\"\t\"",
        "\"\u{7f}\"",
        "{}",
        "{ }",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,}",
        "{\"a\":1 \"b\":2}",
        "{a:1}",
        "{1:1}",
        "[",
        "[]",
        "[,]",
        "[1,]",
        "[1 2]",
        "[1}",
        "{\"a\":[1}]",
        "[[],[{}]]",
        " 1 ",
        "1 2",
        "",
        " ",
        "}",
        "\u{feff}1",
        "\"0123456\"",
        "\"01234567\"",
        "\"012345678\"",
        "\"0123456\\n\"",
        "\"01234567\\n\"",
        "\"世界世界世界\"",
    ] {
        assert_eq!(scan_value(text), parse_value(text), "{text:?}");
    }
}

#[test]
fn scanner_leaves_deep_nesting_to_serde() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(scan_value(&nested(60)).is_some() && scan_value(&nested(70)).is_none());
    assert!(scan_value(&"[".repeat(1_000_000)).is_none());
    let objects = |depth: usize| "{\"a\":".repeat(depth) + "1" + &"}".repeat(depth);
    assert!(scan_value(&objects(60)).is_some() && scan_value(&objects(70)).is_none());
}

#[test]
fn has_member_checks_the_top_level_only() {
    let check = |text: &str, expect: Option<bool>| assert_eq!(has_member(text, "b"), expect, "{text}");
    check(r#"{"a":{"b":1}}"#, Some(false));
    check(r#" { "a" : "b" , "b" : 1 } "#, Some(true));
    check("{}", Some(false));
    check(r#"{"\u0062":1}"#, None);
    check("[]", None);
    check(r#"{"b":1} x"#, None);
}

#[test]
fn converts_scanned_text_to_raw_value() {
    assert_eq!(found("[1, 2]").map(RawValue::get), Some("[1, 2]"));
    assert_eq!(assembled_json(r#"{"a":1e2}"#.to_owned()).unwrap().get(), r#"{"a":1e2}"#);
}

proptest! {
    #[test]
    fn scanner_agrees_with_serde_json_on_valid_texts(text in any_text(), spaced in any::<bool>()) {
        let text = if spaced { format!(" \r\n\t{text} ") } else { text };
        prop_assert_eq!(scan_value(&text), parse_value(&text));
        prop_assert!(scan_value(&text).is_some());
    }

    #[test]
    fn scanner_agrees_with_serde_json_on_broken_texts(
        text in any_text(),
        at in any::<prop::sample::Index>(),
        with in "[\\[\\]{}\",:\\\\0-9a-z\u{0}\n ]{0,2}",
    ) {
        let text = broken(&text, at, &with);
        prop_assert_eq!(scan_value(&text), parse_value(&text), "{:?}", text);
    }
}
