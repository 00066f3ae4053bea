//! Tests that the scanner and `serde_json` find the same in any text.

use proptest::prelude::*;

use super::*;

/// JSON texts with unusual whitespace, escapes, all number formats and duplicate names.
pub(crate) fn any_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|flag| flag.to_string()),
        r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,3})?([eE][+-]?[0-9]{1,3})?",
        any_string(),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        let space = "[ \n\r\t]{0,3}";
        let item = (space, inner, space).prop_map(|(before, item, after)| before + &item + &after);
        let name = prop_oneof![any_string(), r#""[ab]""#];
        let member = (space, name, space, item.clone())
            .prop_map(|(before, name, after, item)| format!("{before}{name}{after}:{item}"));
        prop_oneof![
            prop::collection::vec(item, 0..5).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec(member, 0..5).prop_map(|members| format!("{{{}}}", members.join(","))),
            space.prop_map(|space| format!("{{{space}}}")),
            space.prop_map(|space| format!("[{space}]")),
        ]
    })
}

fn any_string() -> impl Strategy<Value = String> {
    prop_oneof![
        "\"[a-z世é\\[\\]{}:, ]{0,20}\"",
        r#""([a-z{}\[\],:é世]|\\[\\"/bfnrt]|\\u[0-9a-fA-F]{4}){0,12}""#,
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
    ]
}

/// The text with one position corrupted.
pub(crate) fn broken(text: &str, at: prop::sample::Index, with: &str) -> String {
    let mut places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    places.push(text.len());
    let at = *at.get(&places);
    let rest = text[at..].chars().skip(1 - with.len().min(1));
    text[..at].chars().chain(with.chars()).chain(rest).collect()
}

fn whole(text: &str) -> Option<&str> {
    let mut scan = Scan::new(text);
    let value = scan.value()?;
    scan.is_over().then_some(value)
}

fn slowly(text: &str) -> Option<&str> {
    serde_json::from_str::<&RawValue>(text).ok().map(RawValue::get)
}

#[test]
fn values_are_found_as_the_patient_reader_finds_them() {
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
        assert_eq!(whole(text), slowly(text), "{text:?}");
    }
}

#[test]
fn what_is_too_deep_is_left_to_others() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(whole(&nested(60)).is_some() && whole(&nested(70)).is_none());
    assert!(whole(&"[".repeat(1_000_000)).is_none());
    let objects = |depth: usize| "{\"a\":".repeat(depth) + "1" + &"}".repeat(depth);
    assert!(whole(&objects(60)).is_some() && whole(&objects(70)).is_none());
}

#[test]
fn members_are_found_where_they_are() {
    let check = |text: &str, expect: Option<bool>| assert_eq!(has_member(text, "b"), expect, "{text}");
    check(r#"{"a":{"b":1}}"#, Some(false));
    check(r#" { "a" : "b" , "b" : 1 } "#, Some(true));
    check("{}", Some(false));
    check(r#"{"\u0062":1}"#, None);
    check("[]", None);
    check(r#"{"b":1} x"#, None);
}

#[test]
fn what_was_found_is_a_value() {
    assert_eq!(found("[1, 2]").map(RawValue::get), Some("[1, 2]"));
    assert_eq!(put_together(r#"{"a":1e2}"#.to_owned()).unwrap().get(), r#"{"a":1e2}"#);
}

proptest! {
    #[test]
    fn whole_texts_are_read_alike(text in any_text(), spaced in any::<bool>()) {
        let text = if spaced { format!(" \r\n\t{text} ") } else { text };
        prop_assert_eq!(whole(&text), slowly(&text));
        prop_assert!(whole(&text).is_some());
    }

    #[test]
    fn broken_texts_are_read_alike(
        text in any_text(),
        at in any::<prop::sample::Index>(),
        with in "[\\[\\]{}\",:\\\\0-9a-z\u{0}\n ]{0,2}",
    ) {
        let text = broken(&text, at, &with);
        prop_assert_eq!(whole(&text), slowly(&text), "{:?}", text);
    }
}
