//! Calls in the console: two of them compared line by line.

use serde_json::{Value, json};

use crate::console::{Browser, sheets};
use crate::serving::Serving;

#[tokio::test]
async fn calls_are_compared() {
    let serving = Serving::before(&sheets(), "");
    let browser = Browser::open(&serving).await;
    for value in ["<first>", "second"] {
        let body = json!({"arguments": {"a": value}});
        assert_eq!(browser.post("tools/read_sheet:call", &body).send().await.unwrap().status(), 200);
    }
    let calls = browser.api("calls?tool=read_sheet").await;
    let ids: Vec<&str> =
        calls["items"].as_array().unwrap().iter().map(|call| call["id"].as_str().unwrap()).collect();
    let [new, old] = ids[..] else { panic!("{calls}") };
    let page = browser.page(&format!("calls/{new}?with={old}")).await;
    assert!(page.contains("<del>-   &quot;a&quot;: &quot;&lt;first&gt;&quot;\n</del>"), "{page}");
    assert!(page.contains("<ins>+   &quot;a&quot;: &quot;second&quot;\n</ins>"), "{page}");
    let unknown = browser.get(&format!("/console/calls/{new}?with=0")).send().await.unwrap();
    assert_eq!(unknown.status(), 404);
}

/// A plan names steps, arguments and what is missing, and runs nothing.
#[tokio::test]
async fn plans_run_nothing() {
    let serving = Serving::before(&sheets(), "[llm]\nenabled = false\n");
    let browser = Browser::open(&serving).await;
    for request in ["calculate 6*7", "计算 6*7"] {
        let plan = browser.post("plan", &json!({ "request": request })).send().await.unwrap();
        let plan: Value = plan.json().await.unwrap();
        assert_eq!(plan["steps"][0]["tool"], "calculate", "{plan}");
        assert_eq!(plan["steps"][0]["may_change"], false, "{plan}");
        assert!(plan["steps"][0]["arguments"].to_string().contains("6 * 7"), "{plan}");
        assert_eq!(plan["problems"], json!([]), "{plan}");
    }
    let empty = browser.post("plan", &json!({ "request": " " })).send().await.unwrap();
    assert_eq!(empty.status(), 400);
    assert_eq!(browser.api("calls").await["items"], json!([]));
}
