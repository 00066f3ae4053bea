//! Properties for arbitrary requests and schemas: planning never panics, is deterministic, and takes all values from the
//! request.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

mod fixed_finder;

use std::slice;

use proptest::prelude::*;
use serde_json::{Value, json};
use toolhub_planner::plan::{ArgumentSource, Plan};

use fixed_finder::planned;

/// Strings that resemble requests: words, numbers, literals and marks of both languages in random order.
fn request() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("read"),
        Just("and then"),
        Just("然后"),
        Just("把"),
        Just("的"),
        Just("sheet"),
        Just("表"),
        Just("Tokyo"),
        Just("东京"),
        Just("和"),
        Just("“hello”"),
        Just("'it's"),
        Just("A1:B2"),
        Just("=SUM(A1"),
        Just("a.xlsx"),
        Just("销售.xlsx"),
        Just("12,345.6%"),
        Just("$"),
        Just("三十二"),
        Just("百分之"),
        Just("twenty"),
        Just("next Monday"),
        Just("下午3点半"),
        Just("2024-02-31"),
        Just("[1, 2"),
        Just("]"),
        Just("{'a': 1}"),
        Just("x@y.zz"),
        Just("https://e.com/?q="),
        Just("to"),
        Just("from"),
        Just("^"),
        Just("sqrt of"),
        Just("\n1."),
        Just("；"),
        Just("１２＋３"),
        Just("é"),
        Just("🙂"),
        Just("C:\\x"),
        Just("第"),
        Just("行"),
        Just("in 3 days"),
        Just("name"),
    ];
    prop_oneof![
        proptest::collection::vec(piece, 0..14).prop_map(|pieces| pieces.join(" ")),
        proptest::collection::vec(any::<char>(), 0..40).prop_map(|chars| chars.into_iter().collect()),
        "[ -~]{0,60}",
        "[一-龥0-9a-zA-Z，。、：“” ]{0,40}",
    ]
}

/// Schemas of all kinds, including invalid ones.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": ["integer", "null"], "minimum": 3})),
        Just(json!({"type": "number", "description": "in percent, e.g. 5%"})),
        Just(json!({"type": "boolean"})),
        Just(json!({"enum": ["a", "celsius", 3, null]})),
        Just(json!({"type": "string", "format": "date-time"})),
        Just(json!({"type": "string", "description": "`3pm`, `tomorrow 15:30 New York`, `in 2 days`"})),
        Just(json!({"type": 7, "enum": "x", "required": {}})),
        Just(json!(true)),
        Just(json!({"anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "array"}}]})),
    ];
    let name = prop_oneof![
        Just("city"),
        Just("zone"),
        Just("start_cell"),
        Just("end_cell"),
        Just("sheet_name"),
        Just("filepath"),
        Just("query"),
        Just("count"),
        Just("expression"),
        Just("formula"),
        Just("to"),
        Just("date"),
        Just("数据"),
        Just(""),
        Just("a1"),
        Just("font_color"),
    ];
    let inner = leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            proptest::collection::vec(("[a-z_]{1,8}", inner), 0..3).prop_map(|members| {
                let required: Vec<&String> = members.iter().map(|(name, _)| name).collect();
                let properties: serde_json::Map<String, Value> = members.iter().cloned().collect();
                json!({"type": "object", "properties": properties, "required": required})
            }),
        ]
    });
    proptest::collection::vec((name, inner, any::<bool>()), 0..6).prop_map(|members| {
        let required: Vec<&str> = members.iter().filter(|member| member.2).map(|member| member.0).collect();
        let properties: serde_json::Map<String, Value> =
            members.iter().map(|(name, schema, _)| ((*name).to_owned(), schema.clone())).collect();
        json!({"type": "object", "properties": properties, "required": required})
    })
}

proptest! {
    #[test]
    fn plans_arbitrary_requests_deterministically(request in request(), schema in schema()) {
        let tools = [
            json!({"name": "do_it", "description": "Does it\nname: what it is called", "inputSchema": schema}),
            json!({"name": "read", "description": "Reads", "inputSchema": {"type": "object"}}),
        ];
        let first = planned(&request, &tools);
        let second = planned(&request, &tools);
        prop_assert_eq!(format!("{first:?}"), format!("{second:?}"));
        prop_assert!(!first.steps.is_empty() || !first.problems.is_empty());
        for (index, step) in first.steps.iter().enumerate() {
            for dependency in &step.dependencies {
                prop_assert!(first.steps[..index].iter().any(|earlier| earlier.id == *dependency));
            }
        }
    }

    #[test]
    fn takes_texts_only_from_the_request(request in request()) {
        let text = |required: bool| {
            let names = ["city", "name", "text", "title", "filepath", "note", "url", "sheet_name", "id"];
            let properties: serde_json::Map<String, Value> =
                names.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
            json!({"name": "note_down", "inputSchema": {"type": "object", "properties": properties, "required": if required { &names[..2] } else { &[] }}})
        };
        // Converting full-width characters to ASCII is the only change to a value.
        let narrow = |text: &str| -> String {
            text.chars().map(|c| match c {
                '！'..='～' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
                '\u{a0}' | '\u{3000}' => ' ',
                _ => c,
            }).collect()
        };
        let narrowed = narrow(&request);
        for required in [false, true] {
            for step in planned(&request, &[text(required)]).steps {
                for (name, slot) in step.arguments {
                    let ArgumentSource::Value(value) = slot else { continue };
                    let value: String = value.decode().unwrap();
                    let digits = value.chars().all(|c| c.is_ascii_digit() || ".-".contains(c));
                    prop_assert!(digits || narrowed.contains(&narrow(&value)), "{name} = {value}");
                }
            }
        }
    }

    #[test]
    fn does_not_prove_change_with_partially_parsed_list(
        names in proptest::collection::vec(prop_oneof![
            Just("Alpha"), Just("Beta7"), Just("Tom Reyes"), Just("旧仓库"), Just("'Salt and Pepper'"), Just("“和平公司”"),
        ], 1..4),
        joint in prop_oneof![Just(", "), Just(" and "), Just("、"), Just(" 和 "), Just(", and ")],
        more in prop_oneof![
            Just(""), Just(" and so on"), Just(" etc."), Just(" and the other two"), Just(" 等"), Just(" 和其他的"),
            Just(" except Beta7"), Just(" or Gamma"), Just(" and /tmp/a.txt"), Just(" and 3 more"),
        ],
    ) {
        let tool = json!({
            "name": "delete_entities",
            "description": "Deletes entities from the knowledge graph",
            "inputSchema": {
                "type": "object",
                "properties": {"entityNames": {"type": "array", "items": {"type": "string"}, "description": "Names of the entities to delete"}},
                "required": ["entityNames"],
            },
            "annotations": {"readOnlyHint": false, "destructiveHint": true},
        });
        let planned = planned(&format!("delete the entities {}{more}", names.join(joint)), &[tool]);
        let expected: Vec<&str> = names.iter().map(|name| name.trim_matches(['\'', '“', '”'])).collect();
        for step in planned.runnable() {
            prop_assert!(more.is_empty(), "{planned:?}");
            for (_, slot) in &step.arguments {
                let ArgumentSource::Value(value) = slot else { continue };
                prop_assert_eq!(value.value(), json!(expected.clone()));
            }
        }
    }

    #[test]
    fn takes_numbers_only_from_the_request(number in 2_u32..1_000_000, words in "[a-z ]{0,20}") {
        let tool = json!({"name": "wait", "inputSchema": {"type": "object", "properties": {"seconds": {"type": "integer"}}, "required": ["seconds"]}});
        let uses = |planned: &Plan| planned.steps.iter().all(|step| step.arguments.iter().any(|(name, slot)| {
            name == "seconds" && matches!(slot, ArgumentSource::Value(value) if value.get() == number.to_string())
        }));
        // Random words may form a question or name another thing; in that case the plan is empty.
        let by_chance = planned(&format!("{words} {number} seconds"), slice::from_ref(&tool));
        prop_assert!(uses(&by_chance), "{by_chance:?}");
        let plain = planned(&format!("wait {number} seconds"), &[tool]);
        prop_assert!(plain.steps.len() == 1 && uses(&plain), "{plain:?}");
    }
}
