//! Model outputs with the expected calls, from `texts.jsonl`, one per line; and invariants for any text: streaming gives the
//! same result as reading the whole text, nothing panics, and the run time is linear in the length.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::time::Duration;

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};
use toolhub_core::RawJson;
use toolhub_llm::formats::{KnownTool, KnownTools, ParsedOutput, StreamEvent, StreamReader, parse_output};

#[derive(Debug, Deserialize)]
struct Case {
    name: String,
    text: String,
    calls: Vec<Value>,
    tools: Option<Vec<Value>>,
    prose: Option<String>,
    /// The exact arguments of the only call.
    raw: Option<String>,
    #[serde(default)]
    cut: bool,
    /// Ignores leading and trailing whitespace of texts.
    #[serde(default)]
    loose: bool,
    #[serde(default)]
    unreadable: usize,
}

fn cases() -> Vec<Case> {
    let lines = include_str!("texts.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn known(case: &Case) -> KnownTools {
    let tools = case.tools.clone().unwrap_or_default();
    KnownTools::new(tools.into_iter().map(|tool| {
        KnownTool::new(tool["name"].as_str().unwrap(), Some(RawJson::from(tool["parameters"].clone())))
    }))
}

fn calls(reading: &ParsedOutput) -> Vec<Value> {
    let rendered = |call: &toolhub_core::model::ModelCall| json!({"name": call.tool.as_str(), "arguments": call.arguments.value()});
    reading.calls.iter().map(rendered).collect()
}

fn trimmed(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::from(text.trim()),
        Value::Array(items) => items.iter().map(trimmed).collect(),
        Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), trimmed(value))).collect(),
        other => other.clone(),
    }
}

#[test]
fn parses_expected_calls_of_every_sample() {
    let cases = cases();
    assert!(cases.len() >= 100, "{} texts", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        let reading = parse_output(&case.text, &known(case));
        let found = calls(&reading);
        let same = if case.loose {
            found.iter().map(trimmed).eq(case.calls.iter().map(trimmed))
        } else {
            found == case.calls
        };
        let right = match &case.raw {
            Some(raw) => reading.calls.len() == 1 && reading.calls[0].arguments.get() == raw,
            None => same,
        };
        let prose = case.prose.as_ref().is_none_or(|prose| reading.prose == *prose);
        if !right
            || !prose
            || reading.cut.is_some() != case.cut
            || reading.unreadable.len() != case.unreadable
        {
            wrong.push(format!("{}\n  text {:?}\n  got  {reading:?}", case.name, case.text));
        }
    }
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn reports_repairs_in_both_languages() {
    use toolhub_core::{Lang, Localize as _};
    let reading = parse_output("<tool_call>{'name': 'f', 'arguments': {'a': True,}}", &KnownTools::default());
    let notes = |lang| reading.calls[0].repaired.iter().map(|text| text.localize(lang)).collect::<Vec<_>>();
    assert!(notes(Lang::En).iter().any(|text| text.contains("comma")), "{:?}", notes(Lang::En));
    assert!(notes(Lang::Zh).iter().any(|text| text.contains("逗号")), "{:?}", notes(Lang::Zh));
    let clean =
        parse_output("<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", &KnownTools::default());
    assert!(clean.calls[0].repaired.is_empty(), "{:?}", clean.calls[0].repaired);
}

/// Reads a text in chunks. Returns the result and the prose emitted while streaming.
fn streamed(text: &str, known: &KnownTools, cuts: &[usize]) -> (ParsedOutput, String) {
    let mut reader = StreamReader::new(known);
    let (mut rendered, mut from) = (String::new(), 0);
    for &to in cuts.iter().chain([&text.len()]) {
        for event in reader.feed(&text[from..to]) {
            if let StreamEvent::Prose(prose) = event {
                rendered.push_str(&prose);
            }
        }
        from = to;
    }
    let (reading, rest) = reader.finish();
    rendered.push_str(&rest);
    (reading, rendered)
}

/// Whether emitted prose can turn out to be reasoning: the text closes a `think` element that it did not open.
fn retracts(text: &str) -> bool {
    text.contains("</think")
}

#[test]
fn streamed_parse_equals_whole_parse_at_any_split() {
    for case in cases() {
        let known = known(&case);
        let complete = parse_output(&case.text, &known);
        let places: Vec<usize> = case.text.char_indices().map(|(at, _)| at).skip(1).collect();
        let (reading, rendered) = streamed(&case.text, &known, &places);
        assert_eq!(calls(&reading), calls(&complete), "{}: character by character", case.name);
        if !retracts(&case.text) {
            assert_eq!(rendered, complete.prose, "{}: character by character", case.name);
        }
        for &cut in &places {
            let (reading, rendered) = streamed(&case.text, &known, &[cut]);
            assert_eq!(calls(&reading), calls(&complete), "{}: cut at {cut}", case.name);
            if !retracts(&case.text) {
                assert_eq!(rendered, complete.prose, "{}: cut at {cut}", case.name);
            }
        }
    }
}

#[test]
fn emits_prose_while_streaming() {
    let known = KnownTools::default();
    let mut reader = StreamReader::new(&known);
    let mut rendered = String::new();
    for word in ["It ", "is ", "sunny ", "in Kyoto", ".\nAnd ", "<b>warm</b>", " too. <tool", "_call>{\"na"] {
        for event in reader.feed(word) {
            match event {
                StreamEvent::Prose(prose) => rendered.push_str(&prose),
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(rendered, "It is sunny in Kyoto.\nAnd <b>warm</b> too. ");
}

/// The CPU time of this thread, independent of the load of the machine.
#[cfg(unix)]
fn computed() -> Duration {
    rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).try_into().unwrap()
}

/// Wall-clock time: the standard library does not offer the CPU time of a thread.
#[cfg(not(unix))]
fn computed() -> Duration {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed()
}

/// The minimum time for reading `text` over several runs.
fn time(text: &str) -> Duration {
    let known = KnownTools::new([KnownTool::new("f", None)]);
    let once = || {
        let started = computed();
        parse_output(text, &known);
        computed() - started
    };
    (0..3).map(|_| once()).min().unwrap_or_default()
}

#[test]
fn takes_linear_time() {
    let seeds = [
        "{",
        "[",
        "<",
        "<tool_call>",
        "<tool_call>{",
        "{\"a\":",
        "[\"",
        "f(",
        "[f(",
        "\"",
        "{\"name\": \"",
        "```\n",
        "<think>",
        "{'a': 'b' ",
        "f(x='",
        "</tool_call>",
        "<function=f><parameter=a>",
        "[TOOL_CALLS]",
        "{{",
        "[{\"a\" \"b\": 1} ",
        "Action: f\nAction Input: {",
        "<|channel|>",
        "\"\"\"",
        "{\"a\": \"\"\" ",
        "<arg_key>",
        "f\n{",
        "1. f(",
        "...",
        "`",
    ];
    for seed in seeds {
        let (short, long) = (seed.repeat(4_000 / seed.len()), seed.repeat(32_000 / seed.len()));
        let (one, eight) = (time(&short), time(&long));
        // Eight times the length; a quadratic reader would take sixty-four times as long.
        let most = one.max(Duration::from_millis(8)) * 24;
        assert!(eight < most, "{seed:?}: {one:?} for 4 kB, {eight:?} for 32 kB");
    }
}

fn fragment() -> impl Strategy<Value = String> {
    let marks = prop::sample::select(vec![
        "<tool_call>",
        "</tool_call>",
        "<think>",
        "</think>",
        "{\"name\": \"f\", \"arguments\": {\"a\": 1}}",
        "{",
        "}",
        "[",
        "]",
        "\"",
        "'",
        "\\",
        "f(a=1)",
        "[f(a='x')]",
        "```json\n",
        "```",
        "\n",
        "<function=f>",
        "<parameter=a>",
        "</parameter>",
        "</function>",
        "[TOOL_CALLS]",
        "[ARGS]",
        "<|im_start|>",
        "<tool_result>",
        "</tool_result>",
        "Action: f\n",
        "Action Input: ",
        "，",
        "：",
        "“",
        "…",
        "...",
        "//",
        "#",
        "<invoke name=\"f\">",
        "<arg_key>",
        "{\"a\": ",
        "True",
        ", ",
        "<|channel|>",
        "<|message|>",
        "to=functions.f",
        ">>>",
        "functools[",
        "例如",
        "`",
        "◁think▷",
        "<|\"|>",
        "- ",
        "f\n",
    ]);
    prop_oneof![4 => marks.prop_map(str::to_owned), 1 => "\\PC{0,6}"]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn parses_random_fragments_equally_at_any_split(parts in prop::collection::vec(fragment(), 0..24), seed in any::<u64>()) {
        let text: String = parts.concat();
        let known = KnownTools::new([KnownTool::new("f", None)]);
        for known in [&KnownTools::default(), &known] {
            let complete = parse_output(&text, known);
            let mut cuts: Vec<usize> = text.char_indices().map(|(at, _)| at).skip(1).collect();
            cuts.retain(|at| (seed >> (at % 64)) & 1 == 1);
            let (reading, rendered) = streamed(&text, known, &cuts);
            prop_assert_eq!(calls(&reading), calls(&complete), "{:?}", text);
            if !retracts(&text) {
                prop_assert_eq!(&rendered, &complete.prose, "{:?} cut at {:?}", text, cuts);
            }
            for call in &complete.calls {
                prop_assert!(call.arguments.is_object(), "{:?}", call);
            }
        }
    }

    #[test]
    fn parses_arbitrary_text_without_panic(text in any::<String>()) {
        parse_output(&text, &KnownTools::default());
        toolhub_llm::repair::repair_json(&text);
    }
}
