//! Strategies of proptest for JSON texts, valid and corrupted ones.

use proptest::prelude::*;

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
