//! Calls in the console: two of them compared line by line, and searches in a long history.

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

/// A failed call names the source that was tried, and each call links the page of its tool while there is one.
#[tokio::test]
async fn list_names_sources_of_failed_calls_and_links_tools() {
    let failing = sheets().plain_tool("fail").on("tools/call:fail", json!([{"tool_error": "no such sheet"}]));
    let serving = Serving::before(&failing, "");
    let browser = Browser::open(&serving).await;
    for tool in ["fail", "read_sheet"] {
        let body = json!({"arguments": {}});
        assert_eq!(browser.post(&format!("tools/{tool}:call"), &body).send().await.unwrap().status(), 200);
    }
    let failed = browser.api("calls?tool=fail").await;
    assert_eq!(failed["items"][0]["tried"], json!(["s"]), "{failed}");
    for path in ["calls", ""] {
        let page = browser.page(path).await;
        let row = page.split("<tr>").find(|row| row.contains("no such sheet")).unwrap();
        assert!(row.contains("tools/fail\"><bdi>fail</bdi></a>"), "{row}");
        assert!(row.contains("<td data-label=\"Source\">s</td>"), "{row}");
    }
    // A tool that is gone has no page.
    let file = serving.cli().folder().join("mcp.json");
    std::fs::write(file, "{}").unwrap();
    for _ in 0..100 {
        if !browser.page("calls").await.contains("tools/fail") {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the tool is still linked");
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

/// A search without an index reads the history in parts. It may take several requests, and finds every call once.
#[tokio::test]
async fn search_finds_the_oldest_call_of_a_long_history() {
    let serving = Serving::before(&sheets(), "");
    let browser = Browser::open(&serving).await;
    let body = json!({"arguments": {"a": "needle"}});
    assert_eq!(browser.post("tools/read_sheet:call", &body).send().await.unwrap().status(), 200);
    let cli = serving.stop();
    {
        let file = cli.folder().join("home/toolhub.db");
        let database = rusqlite::Connection::open(file).unwrap();
        // Their ids are smaller than that of a real call, so that they are older. The first one has the text.
        let columns: Vec<String> = database
            .prepare(
                "SELECT name FROM pragma_table_info('calls') WHERE name NOT IN ('id', 'record', 'arguments')",
            )
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let columns = columns.join(", ");
        let copy = format!(
            "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 35000)
             INSERT INTO calls (record, arguments, {columns})
             SELECT printf('%018d', n), iif(n = 1, '{{\"a\":\"Old Needle\"}}', '{{}}'), {columns}
             FROM numbers, (SELECT {columns} FROM calls LIMIT 1)"
        );
        database.execute_batch(&copy).unwrap();
    }
    let serving = Serving::start(cli);
    let browser = Browser::open(&serving).await;
    let (mut found, mut cursor, mut requests) = (Vec::new(), String::new(), 0);
    loop {
        let page = browser.api(&format!("calls?text=NEEDLE{cursor}")).await;
        found.extend(
            page["items"].as_array().unwrap().iter().map(|call| call["id"].as_str().unwrap().to_owned()),
        );
        requests += 1;
        assert!(requests <= 5, "a request searches at least 10,000 calls");
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert!(found.len() == 2 && found[1] == "000000000000000001", "{found:?}");
    let html = browser.page("calls?text=old+needle").await;
    assert!(html.contains("data-continue") || html.contains("calls/000000000000000001"), "{html}");
    let history = serving.cli().run(&["history", "--text", "old needle", "--json"]).json();
    assert_eq!(history.as_array().unwrap().len(), 1, "{history}");
}
