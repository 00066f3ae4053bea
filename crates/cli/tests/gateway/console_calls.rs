//! Calls in the console: two of them compared line by line.

use serde_json::json;

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
