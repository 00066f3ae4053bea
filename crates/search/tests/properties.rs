//! Properties for arbitrary texts: no panic, a deterministic order, and an incremental update that equals a rebuild.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use toolhub_core::{RawJson, ServerId, Source, Tool, ToolDefinition};
use toolhub_search::{RankingSettings, SearchRequest, ToolIndex};

#[derive(Debug, Clone)]
struct ToolCase {
    server: u8,
    name: String,
    description: String,
    parameter: String,
    tag: String,
}

fn server(number: u8) -> Source {
    Source::Server(ServerId::new(format!("server{number}")))
}

fn tool(tool_case: &ToolCase) -> Tool {
    let definition = serde_json::json!({
        "name": format!("n{}", tool_case.name),
        "description": tool_case.description,
        "inputSchema": {"type": "object", "properties": {tool_case.parameter.clone(): {"description": tool_case.description}}},
    });
    let mut tool =
        Tool::new(server(tool_case.server), ToolDefinition::parse(RawJson::of(&definition)).unwrap());
    tool.tags = vec![tool_case.tag.clone()];
    tool
}

/// Texts of words that match each other, unusual Unicode, and both languages.
fn text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        4 => prop::sample::select(vec!["read", "file", "weather", "bookTicket", "s3", "天气", "查询火车票", "“", "'", "."]),
        1 => Just("\u{feff}\u{202e}é\u{301}ǅßİ"),
    ];
    prop_oneof![
        3 => prop::collection::vec(word, 0..8).prop_map(|words| words.join(" ")),
        1 => "\\PC{0,40}",
        1 => any::<String>(),
    ]
}

fn tool_case() -> impl Strategy<Value = ToolCase> {
    (0..3_u8, text(), text(), text(), text()).prop_map(|(server, name, description, parameter, tag)| {
        ToolCase { server, name, description, parameter, tag }
    })
}

fn order(index: &ToolIndex, request: &str) -> Vec<(String, String, u32)> {
    let ranking = index.rank(&SearchRequest::new(request).limit(50));
    assert!(ranking.confidence.is_finite());
    ranking
        .hits
        .iter()
        .map(|hit| (hit.tool.source.to_string(), hit.tool.name().to_string(), hit.score.to_bits()))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn replacing_a_source_equals_rebuilding_the_index(
        before in prop::collection::vec(tool_case(), 0..12),
        after in prop::collection::vec(tool_case(), 0..6),
        changed in 0..3_u8,
        request in text(),
    ) {
        let after: Vec<ToolCase> = after.into_iter().map(|tool_case| ToolCase { server: changed, ..tool_case }).collect();
        let old = ToolIndex::new(before.iter().map(tool), RankingSettings::default());
        let replaced = old.replace_source(&server(changed), after.iter().map(tool)).unwrap();
        let unchanged = before.iter().filter(|tool_case| tool_case.server != changed);
        let rebuilt = ToolIndex::new(unchanged.chain(&after).map(tool), RankingSettings::default());
        prop_assert_eq!(replaced.len(), rebuilt.len());
        prop_assert_eq!(order(&replaced, &request), order(&rebuilt, &request));
    }

    #[test]
    fn ranking_is_independent_of_source_order(tool_case in prop::collection::vec(tool_case(), 0..12), request in text()) {
        let forward = ToolIndex::new(tool_case.iter().map(tool), RankingSettings::default());
        let mut by_server = tool_case;
        by_server.sort_by_key(|tool_case| std::cmp::Reverse(tool_case.server));
        let other = ToolIndex::new(by_server.iter().map(tool), RankingSettings::default());
        prop_assert_eq!(order(&forward, &request), order(&other, &request));
        prop_assert_eq!(order(&forward, &request), order(&forward, &request));
    }

    #[test]
    fn returns_hits_sorted_with_score_components(tool_case in prop::collection::vec(tool_case(), 0..12), request in text()) {
        let index = ToolIndex::new(tool_case.iter().map(tool), RankingSettings::default());
        let hits = index.rank(&SearchRequest::new(&request).limit(50)).hits;
        for pair in hits.windows(2) {
            prop_assert!(pair[0].score + 1e-2 >= pair[1].score);
        }
        for hit in hits {
            prop_assert!(hit.score.is_finite() && (hit.parts.sum() - hit.score).abs() < 1e-2);
        }
    }
}
