//! Definitions, arguments and results pass through the gateway byte for byte. The generated JSON is chosen to be hard to
//! preserve; if `TOOLHUB_DATA` names a folder with data sets, the definitions of two thousand real servers
//! (`retrieval/toucan_catalogue`) are tested as well.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use toolhub_testkit::scripted::{Journal, Script};

use crate::raw_client::{ERAS, RawClient};
use crate::serving::{Serving, TEST_TIMEOUT, hub};

/// The number of generated tools, each with its own arguments and result.
const TOOLS: usize = 64;

/// The members of an object in order, each with its original text.
#[derive(Debug, PartialEq)]
struct Members(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    members.push((key, value.get().to_owned()));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl Members {
    fn of(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
    }

    fn get(&self, key: &str) -> &str {
        let found = self.0.iter().find(|(name, _)| name == key);
        &found.unwrap_or_else(|| panic!("no `{key}` in {self:?}")).1
    }

    /// Without `resultType`, which only marks a result as complete.
    fn without_type(mut self) -> Self {
        self.0.retain(|(key, _)| key != "resultType");
        self
    }
}

/// JSON strings with unnecessary escapes and characters of every UTF-8 length.
fn string() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z_$ .-]{1,6}",
        Just("\\u4f60\\u597d".to_owned()),
        Just("你好".to_owned()),
        Just("\\ud83d\\ude00".to_owned()),
        Just("😀".to_owned()),
        Just("\\/".to_owned()),
        Just("/".to_owned()),
        Just("\\u0041".to_owned()),
        Just("\\n\\t\\\"\\\\".to_owned()),
        Just("\\u2028".to_owned()),
        Just("\u{2028}".to_owned()),
        Just("\u{7f}\u{200b}é".to_owned()),
    ];
    prop::collection::vec(piece, 0..4).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

/// The allowed range of numbers.
#[derive(Clone, Copy)]
enum Numbers {
    Any,
    /// Schemas, and the values that are validated against them, are parsed as machine numbers, whose range is limited.
    Finite,
}

fn number(numbers: Numbers) -> impl Strategy<Value = String> {
    let largest = match numbers {
        Numbers::Any => "1e400",
        Numbers::Finite => "1e300",
    };
    prop_oneof![
        Just("123456789012345678901234567890".to_owned()),
        Just("-0".to_owned()),
        Just("-0.0".to_owned()),
        Just("1e2".to_owned()),
        Just("1E+2".to_owned()),
        Just("1.0".to_owned()),
        Just("1.10".to_owned()),
        Just(largest.to_owned()),
        Just("0.1000000000000000055511151231257827".to_owned()),
        Just("9007199254740993".to_owned()),
        Just("18446744073709551616".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>()
            .prop_filter("JSON has no others", |number| number.is_finite())
            .prop_map(|n| format!("{n:e}")),
    ]
}

/// Any JSON, with whitespace between some tokens.
fn json_text(numbers: Numbers) -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        number(numbers),
        number(numbers),
        string(),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let space = || prop_oneof![Just(""), Just(" "), Just("\t")];
        let list = (prop::collection::vec(inner.clone(), 0..4), space())
            .prop_map(|(items, space)| format!("[{space}{}]", items.join(&format!("{space},"))));
        prop_oneof![list, object(inner)]
    })
}

fn any_json() -> impl Strategy<Value = String> {
    json_text(Numbers::Any)
}

fn checked_json() -> impl Strategy<Value = String> {
    json_text(Numbers::Finite)
}

/// An object with unordered and possibly duplicate keys.
fn object(inner: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    prop::collection::vec((string(), inner), 0..4).prop_map(|members| {
        let members: Vec<String> =
            members.into_iter().map(|(key, value)| format!("{key} :{value}")).collect();
        format!("{{{}}}", members.join(", "))
    })
}

/// A generated tool, the arguments of its call, and its result.
#[derive(Debug)]
struct GeneratedTool {
    definition: String,
    arguments: String,
    result: String,
}

fn generated_tool(number: usize) -> impl Strategy<Value = GeneratedTool> {
    let definition = (any_json(), checked_json(), string(), any_json(), any::<bool>()).prop_map(
        move |(vendor, keyword, description, meta, first)| {
            let name = format!(r#""name":"odd_{number}""#);
            let schema = format!(
                r#""inputSchema" : {{"x-vendor":{keyword},"type":"object","$comment":"c","properties":{{}}}}"#
            );
            let rest = format!(
                r#""x-vendor":{vendor},"description":{description},"_meta":{{"z":{meta},"a":1.0}},"icons":[]"#
            );
            if first {
                format!("{{{name},{schema},{rest}}}")
            } else {
                format!("{{ {rest},{schema},{name} }}")
            }
        },
    );
    let result = (any_json(), any_json(), any_json(), string(), any::<bool>()).prop_map(
        |(structured, vendor, block, text, failed)| {
            format!(
                r#"{{"x-first":{vendor},"structuredContent":{{"value":{structured}}},"content":[{{"text":{text},"type":"text","x":{block}}},{{"type":"x-unknown","payload":{block}}},{{"type":"text","text":"plain"}}],"_meta":{{"example.org/m":{vendor}}},"isError":{failed}}}"#
            )
        },
    );
    // Results are forwarded with any keys. Definitions and arguments are interpreted by the gateway, so their keys must be
    // unique.
    let once = |text: &String| toolhub_core::json::key_problem(text).is_none();
    let definition = definition.prop_filter("a key is there once", once);
    let arguments = object(checked_json()).prop_filter("a key is there once", once);
    (definition, arguments, result).prop_map(|(definition, arguments, result)| GeneratedTool {
        definition,
        arguments,
        result,
    })
}

/// Deterministic, so that a failure is reproducible.
fn generated_tools() -> Vec<GeneratedTool> {
    let mut runner = TestRunner::deterministic();
    (0..TOOLS).map(|number| generated_tool(number).new_tree(&mut runner).unwrap().current()).collect()
}

/// The arguments of the last call that reached the server, as received.
fn arguments_in(journal: &Path, calls: usize) -> String {
    Journal::read(journal).wait_for(|journal| journal.count_method("tools/call") >= calls, TEST_TIMEOUT);
    let text = std::fs::read_to_string(journal).unwrap();
    let line = text.lines().rfind(|line| line.contains("\"tools/call\"")).unwrap();
    let message = Members::of(Members::of(line).get("message"));
    Members::of(message.get("params")).get("arguments").to_owned()
}

#[tokio::test]
async fn forwards_generated_json_unchanged() {
    let tools = generated_tools();
    let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
    for modern_server in [false, true] {
        let mut cli =
            hub("[native]\nenabled = false\n[profiles.default]\nexpose = \"all\"\nlossless = true\n");
        let journal = cli.folder().join("journal");
        let mut script = if modern_server { Script::modern() } else { Script::legacy() }.journal(&journal);
        for (number, generated_tool) in tools.iter().enumerate() {
            let reply = if modern_server {
                generated_tool.result.replacen('{', r#"{"resultType":"complete","#, 1)
            } else {
                generated_tool.result.clone()
            };
            let reply = std::collections::BTreeMap::from([("reply", raw(&reply))]);
            script =
                script.tool_text(&generated_tool.definition).on(&format!("tools/call:odd_{number}"), [reply]);
        }
        cli.server("s", &script);
        let serving = Serving::start(cli);
        let mut calls = 0;
        for era in ERAS {
            let client = RawClient::connect(&serving.url(), era).await;
            let answer = client.ask("1", "tools/list", "").await;
            let listed: Vec<Box<RawValue>> =
                serde_json::from_str(Members::of(answer.result()).get("tools")).unwrap();
            assert_eq!(listed.len(), tools.len(), "{era:?}");
            for (number, (generated_tool, listed)) in tools.iter().zip(&listed).enumerate() {
                assert_eq!(Members::of(listed.get()), Members::of(&generated_tool.definition), "{era:?}");
                let answer = client.call(&format!("odd_{number}"), &generated_tool.arguments).await;
                calls += 1;
                let (received, expected) =
                    (Members::of(answer.result()), Members::of(&generated_tool.result));
                assert_eq!(received.without_type(), expected, "{era:?}");
                assert_eq!(arguments_in(&journal, calls), generated_tool.arguments, "{era:?}");
            }
        }
    }
}

/// The definitions of real servers; a number makes their names unique.
fn catalogue(data: &Path) -> Vec<String> {
    let file = File::open(data.join("retrieval/toucan_catalogue/tools.jsonl.gz")).unwrap();
    let lines = BufReader::new(flate2::read::GzDecoder::new(file)).lines();
    let tools = lines.enumerate().map(|(number, line)| {
        let tool = Members::of(&line.unwrap());
        let (name, description, schema) = (tool.get("name"), tool.get("description"), tool.get("parameters"));
        let name = name.replacen('"', &format!("\"{number}_"), 1);
        // Many entries of the data set have no schema.
        let schema = if schema == "null" { r#"{"type":"object"}"# } else { schema };
        format!(r#"{{"description":{description},"name":{name},"inputSchema":{schema},"x-vendor":1.0}}"#)
    });
    tools.collect()
}

#[tokio::test]
#[ignore = "needs data: set `TOOLHUB_DATA` and run `cargo xtask test`"]
async fn forwards_definitions_of_real_servers_unchanged() {
    let data = std::env::var_os("TOOLHUB_DATA").map(PathBuf::from).expect("`TOOLHUB_DATA` is set");
    let definitions = catalogue(&data);
    let mut cli = hub("[native]\nenabled = false\n[profiles.default]\nexpose = \"all\"\n");
    let script = definitions
        .iter()
        .fold(Script::modern().set("page_size", 500), |script, definition| script.tool_text(definition));
    cli.server("s", &script);
    let serving = Serving::start(cli);
    let mut checked = 0;
    for era in ERAS {
        let client = RawClient::connect(&serving.url(), era).await;
        let answer = client.ask("1", "tools/list", "").await;
        let listed: Vec<Box<RawValue>> =
            serde_json::from_str(Members::of(answer.result()).get("tools")).unwrap();
        let listed: HashSet<&str> = listed.iter().map(|tool| tool.get()).collect();
        let lost: Vec<&String> = definitions.iter().filter(|one| !listed.contains(one.as_str())).collect();
        assert!(lost.is_empty(), "{era:?}: {} of {}: {:#?}", lost.len(), definitions.len(), lost.first());
        checked += listed.len();
    }
    assert!(checked == 2 * 14_982, "{checked}");
}

/// Over stdio a message is one line, with any line breaks of the client removed.
#[tokio::test]
async fn line_breaks_in_json_do_not_split_messages() {
    let serving = Serving::before(&Script::both().plain_tool("echo"), "");
    for era in ERAS {
        let client = RawClient::connect(&serving.url(), era).await;
        let answer = client.call("echo", "{\"a\":\n1,\r\n\"b\":[\n\n2\r]}").await;
        assert_eq!(answer.text().replace(' ', ""), r#"{"a":1,"b":[2]}"#, "{era:?}");
    }
}
