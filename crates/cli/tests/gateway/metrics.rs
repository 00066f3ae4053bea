//! The metrics of the gateway in Prometheus format, each with a help text.

use std::collections::HashSet;

use serde_json::json;
use toolhub_testkit::scripted::Script;

use crate::raw_client::{Era, RawClient};
use crate::serving::Serving;

/// The metric family of a sample; the parts of a histogram belong to one family.
fn family<'a>(sample: &'a str, histograms: &HashSet<&str>) -> &'a str {
    let name = sample.split(['{', ' ']).next().unwrap();
    let base_name = ["_bucket", "_sum", "_count"].iter().find_map(|part| name.strip_suffix(part));
    base_name.filter(|base_name| histograms.contains(base_name)).unwrap_or(name)
}

#[tokio::test]
async fn metrics_have_help_and_count_events() {
    let fails = json!([{"tool_error": "no"}]);
    let script = Script::both().plain_tool("echo").plain_tool("broken").on("tools/call:broken", fails);
    let serving = Serving::before(&script, "");
    let client = RawClient::connect(&serving.url(), Era::Legacy).await;
    for _ in 0..3 {
        assert_eq!(client.call("echo", "{}").await.text(), "{}");
    }
    assert_eq!(client.call("broken", "{}").await.text(), "no");

    let metrics = serving.get("/metrics").await;
    let (mut meant, mut kinds, mut histograms) = (HashSet::new(), HashSet::new(), HashSet::new());
    let mut samples = HashSet::new();
    for line in metrics.lines() {
        let fields: Vec<&str> = line.splitn(4, ' ').collect();
        match fields[..] {
            ["#", "HELP", name, help] => assert!(help.ends_with('.') && meant.insert(name), "{line}"),
            ["#", "TYPE", name, kind] => {
                assert!(meant.contains(name) && kinds.insert(name), "{line}");
                if kind == "histogram" {
                    histograms.insert(name);
                }
            }
            _ => {
                assert!(kinds.contains(family(line, &histograms)) && samples.insert(line), "{line}");
                let value = line.rsplit(' ').next().unwrap();
                assert!(value.parse::<f64>().is_ok_and(|value| value >= 0.0), "{line}");
            }
        }
    }
    for expected in [
        r#"toolhub_calls_total{result="succeeded"} 3"#,
        r#"toolhub_calls_total{result="failed"} 1"#,
        r#"toolhub_sessions{profile="default"} 1"#,
        r#"toolhub_server_restarts_total{server="s"} 0"#,
        r#"toolhub_http_requests_total{status="5xx"} 0"#,
        "toolhub_call_details_lost_total 0",
        "toolhub_http_requests_under_way 1",
    ] {
        assert!(samples.contains(expected), "{expected} is not in\n{metrics}");
    }
}
