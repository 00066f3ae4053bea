//! Unusual and hostile definitions: no panic, bounded time, and every tool is found by its name.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolhub_core::{RawJson, ServerId, Source, Tool, ToolDefinition};
use toolhub_search::{RankingSettings, SearchRequest, ToolIndex};

/// Texts that real servers send, and some that only a hostile server would send.
fn odd_texts() -> Vec<String> {
    let mut texts: Vec<String> = [
        "",
        " \t\r\n ",
        "\u{0}\u{1}\u{7f}",
        "\u{feff}byte order mark",
        "\u{202e}txet desrever\u{202c}",
        "قراءة الملف من القرص",
        "קרא את הקובץ",
        "ไฟล์อ่านข้อมูล",
        "फ़ाइल पढ़ें",
        "👩‍👩‍👧‍👦🇨🇳🏳️‍🌈",
        "e\u{301}\u{302}\u{303}\u{304}\u{305}",
        "ﬁle ǅungla İstanbul ßtraße ΣΊΣΥΦΟΣ",
        "ＦＵＬＬ　ＷＩＤＴＨ",
        "𝓯𝓪𝓷𝓬𝔂 𝕿𝖊𝖝𝖙",
        "読み込む 読み取り ファイル",
        "파일 읽기",
        "読\u{fe0f}む\u{200d}",
        "a.b.c.d/e:f-g_h i",
        "____----....",
        "\"unclosed 'quotes “and 「brackets",
        "<b>html</b> &amp; {\"json\": [1, 2]} ```code```",
        "C:\\Windows\\System32 https://example.com/?q=%E4%BD%A0",
        "1234567890 0x7f 1e309 -0",
    ]
    .map(str::to_owned)
    .to_vec();
    texts.push("word ".repeat(2_000));
    texts.push("字".repeat(10_000));
    texts.push("x".repeat(10_000));
    texts.push("A".repeat(500) + &"b.".repeat(4_000));
    texts.push("🙂".repeat(2_500));
    texts
}

/// Schemas of many shapes, most of which are not valid JSON Schema.
fn odd_schemas(text: &str) -> Vec<Value> {
    let wide: Map<String, Value> = (0..3_000)
        .map(|number| (format!("field_{number}"), json!({"type": "string", "description": text})))
        .collect();
    let deep = (0..40).fold(
        json!({"type": "string"}),
        |inner, level| json!({"type": "object", "properties": {format!("level{level}"): inner}}),
    );
    let long: Vec<String> = (0..5_000).map(|number| format!("value {number}")).collect();
    vec![
        json!({"type": "object", "properties": {"": {"description": text}}}),
        json!({"type": "object", "properties": []}),
        json!({"type": "object", "properties": "none"}),
        json!({"type": "object", "properties": {"a": null, "b": true, "c": 7, "d": text, "e": [text]}}),
        json!({"type": ["object", "null", 3], "properties": {"a": {"type": ["string", "array", {}]}}}),
        json!({"type": "object", "required": text, "properties": {"a": {"enum": [null, 1, true, {}, text]}}}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        json!({"properties": {"self": {"$ref": "#"}, "far": {"$ref": "https://example.com/schema.json#/x"}}}),
        json!({"anyOf": [{"oneOf": [{"allOf": [{"not": {"properties": {"deep": {"const": text}}}}]}]}]}),
        json!({"type": "object", "properties": {"properties": {"properties": {"properties": {}}}}}),
        json!({"type": "object", "properties": {"description": {"description": {"description": text}}}}),
        json!({"type": "object", "examples": [[[[text]]], {"a": {"b": text}}], "default": text}),
        json!({"type": "object", "properties": {"pick": {"enum": long}}}),
        json!({"type": "object", "properties": wide}),
        deep,
    ]
}

fn tool(name: &str, definition: Value) -> Tool {
    let mut definition = definition;
    definition["name"] = name.into();
    let source = Source::Server(ServerId::new(format!("server{}", name.len() % 5)));
    Tool::new(source, ToolDefinition::parse(RawJson::of(&definition)).unwrap())
}

/// All odd texts in all texts of a definition, and all odd schemas, each in a tool with a unique name.
fn unusual_tools() -> Vec<Tool> {
    let mut tools = Vec::new();
    let mut add = |definition: Value| {
        let name =
            format!("{}_tool_{}", ["get", "sendAll", "x-y", "部署", "Ünï"][tools.len() % 5], tools.len());
        tools.push(tool(&name, definition));
    };
    for text in odd_texts() {
        add(json!({"description": text}));
        add(json!({"title": text, "annotations": {"title": text}}));
        add(json!({"inputSchema": {"type": "object", "properties": {text.clone(): {"description": text}}}}));
        add(json!({"description": text, "examples": [text], "inputExamples": {"a": text}}));
    }
    for text in ["plain words", "中文说明", "🙂"] {
        for schema in odd_schemas(text) {
            add(json!({"inputSchema": schema}));
        }
    }
    // Texts of the wrong JSON type, if the definition can be parsed.
    for malformed in [Value::Null, json!(7), json!(["a"]), json!({"en": "a"})] {
        let definition =
            json!({"name": "odd_kind", "description": malformed, "title": malformed, "inputSchema": {}});
        if ToolDefinition::parse(RawJson::of(&definition)).is_ok() {
            add(definition);
        }
    }
    tools
}

#[test]
fn finds_every_definition_by_name() {
    let tools = unusual_tools();
    let index = ToolIndex::new(tools.iter().cloned(), RankingSettings::default());
    assert_eq!(index.len(), tools.len());
    for tool in &tools {
        let name = tool.name().as_str();
        for request in [name.to_owned(), format!("please call {name} for me"), format!("用 {name} 处理")] {
            let ranking = index.rank(&SearchRequest::new(&request));
            let first = ranking.hits.first().map(|hit| hit.tool.name().as_str());
            assert_eq!(first, Some(name), "{request}");
            assert!(ranking.fits, "{request}: {:?}", ranking.evidence);
        }
    }
}

#[test]
fn accepts_unusual_request_texts() {
    let index = ToolIndex::new(unusual_tools(), RankingSettings::default());
    for text in odd_texts() {
        for request in [text.clone(), format!("get {text} 天气"), format!("\"{text}\"")] {
            let ranking = index.rank(&SearchRequest::new(&request).limit(1_000));
            assert!((0.0..=1.0).contains(&ranking.confidence), "{request}: {}", ranking.confidence);
            assert!(ranking.hits.iter().all(|hit| hit.score.is_finite()), "{request}");
            let order = |ranking: &toolhub_search::Ranking<'_>| -> Vec<(String, u32)> {
                let shown =
                    |hit: &toolhub_search::RankedTool<'_>| (hit.tool.name().to_string(), hit.score.to_bits());
                ranking.hits.iter().map(shown).collect()
            };
            let repeated = index.rank(&SearchRequest::new(&request).limit(1_000));
            assert_eq!(order(&ranking), order(&repeated), "{request}");
        }
    }
}

/// The CPU time of this thread, which is independent of the load of the machine.
#[cfg(unix)]
fn computed() -> Duration {
    rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).try_into().unwrap()
}

/// Wall-clock time: the standard library provides no CPU time of a thread.
#[cfg(not(unix))]
fn computed() -> Duration {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed()
}

fn fastest(work: impl Fn()) -> Duration {
    let once = |_| {
        let start = computed();
        work();
        computed() - start
    };
    (0..5).map(once).min().unwrap_or_default()
}

#[test]
fn takes_linear_time() {
    let request = |count: usize| "read 一份文件 and sendMail_now. ".repeat(count);
    let index = ToolIndex::new(unusual_tools(), RankingSettings::default());
    let _ = index.rank(&SearchRequest::new(&request(1)));
    let short = fastest(|| drop(index.rank(&SearchRequest::new(&request(40)))));
    let long = fastest(|| drop(index.rank(&SearchRequest::new(&request(40_000)))));
    assert!(long < short * 60 + Duration::from_millis(20), "{short:?} for 1 kB, {long:?} for 1 MB");

    let described = |count: usize| {
        tool("large", json!({"description": "read 一份文件 and sendMail_now. ".repeat(count)}))
    };
    let build = |tool: &Tool| fastest(|| drop(ToolIndex::new([tool.clone()], RankingSettings::default())));
    let (short, long) = (build(&described(100)), build(&described(100_000)));
    assert!(long < short * 60 + Duration::from_millis(20), "{short:?} for 3 kB, {long:?} for 3 MB");
}

/// Arbitrary nested JSON, also in place of a schema.
fn any_json() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        4 => prop::sample::select(vec!["properties", "description", "enum", "type", "$ref", "items", "anyOf", "examples", ""]),
        1 => Just("名前"),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        prop::sample::select(odd_texts()).prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6).prop_map(|members| {
                members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>().into()
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn searches_any_valid_definition(
        schemas in prop::collection::vec((any_json(), any_json(), any_json()), 1..8),
        request in any::<String>(),
    ) {
        let definitions = schemas.into_iter().enumerate().filter_map(|(number, (schema, text, examples))| {
            let name = format!("wild_{number}");
            let document = json!({
                "name": name, "description": text, "title": text, "inputSchema": schema, "examples": examples,
            });
            let definition = ToolDefinition::parse(RawJson::of(&document)).ok()?;
            Some((name, Tool::new(Source::Native, definition)))
        });
        let (names, tools): (Vec<String>, Vec<Tool>) = definitions.unzip();
        let index = ToolIndex::new(tools, RankingSettings::default());
        prop_assert_eq!(index.len(), names.len());
        prop_assert!(index.rank(&SearchRequest::new(&request)).confidence.is_finite());
        for name in &names {
            let ranking = index.rank(&SearchRequest::new(name));
            prop_assert_eq!(ranking.hits.first().map(|hit| hit.tool.name().as_str()), Some(name.as_str()));
        }
    }
}
