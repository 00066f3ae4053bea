//! `search_web` against local services that reply like SearXNG, Brave and Tavily: the requests, the parsed results, every kind
//! of failure, and the whole path through the program.
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

mod service;

use std::fs;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use service::{Reply, Service};
use toolhub::{Lang, Localize as _, NativeTool as _, RawJson, ToolError, ToolOutput};
use toolhub_core::ports::NullSink;
use toolhub_core::{CallContext, CallId};
use toolhub_native::{SearchConfig, SearchProvider, WebSearch, search_web};
use toolhub_testkit::{CommandLine, CommandOutput};

const KEY: &str = "key-4711-secret";

fn web(provider: SearchProvider, url: &str) -> WebSearch {
    let choice = SearchConfig { provider, url: Some(url.to_owned()), api_key: Some(KEY.to_owned()) };
    WebSearch::from_config(choice, &|_| None)
}

async fn search(web: WebSearch, arguments: Value) -> Result<ToolOutput, ToolError> {
    let context = CallContext {
        call: CallId::generate(),
        conversation: None,
        caller: None,
        events: Arc::new(NullSink),
        nested: None,
    };
    search_web(Arc::new(web)).call(RawJson::from(arguments), &context).await
}

fn searxng_answer() -> Value {
    json!({
        "query": "上海天气", "number_of_results": 0,
        "results": [
            {"url": "https://weather.example/上海", "title": "上海天气预报 &amp; 空气质量", "content": "今天<b>多云</b>，15~22℃",
             "publishedDate": "2026-03-01T08:00:00", "engine": "bing", "engines": ["bing"], "score": 4.0, "category": "general"},
            {"url": "https://b.example/", "title": "B", "content": "", "publishedDate": null},
            {"url": "https://c.example/", "title": "C"},
        ],
        "answers": [], "corrections": [], "infoboxes": [], "suggestions": ["上海 天气 15天"], "unresponsive_engines": [["google", "timeout"]],
    })
}

fn brave_answer() -> Value {
    json!({
        "type": "search",
        "query": {"original": "rust 1.95", "more_results_available": true},
        "web": {"type": "search", "results": [
            {"title": "Announcing <strong>Rust</strong> 1.95", "url": "https://blog.rust-lang.org/1.95", "description": "The team&#x27;s news: Vec<String> &lt;3",
             "page_age": "2026-04-16T00:00:00", "age": "April 16, 2026", "language": "en", "family_friendly": true},
            {"title": "Docs", "url": "https://doc.rust-lang.org/"},
        ]},
    })
}

fn tavily_answer() -> Value {
    json!({
        "query": "q", "answer": null, "images": [], "response_time": 1.2, "request_id": "1",
        "results": [
            {"title": "一", "url": "https://one.example/", "content": "第一段\n\n第二段", "score": 0.9, "raw_content": null},
            {"title": "二", "url": "https://two.example/", "content": "x", "published_date": "Mon, 02 Mar 2026 10:00:00 GMT"},
        ],
    })
}

#[tokio::test]
async fn searxng_request_and_response() {
    let service = Service::answering(Reply::json(200, &searxng_answer()));
    let arguments = json!({"query": " 上海天气 ", "count": 2, "language": "zh-Hans", "freshness": "week"});
    let output =
        search(web(SearchProvider::Searxng, &format!("{}/searx/", service.url)), arguments).await.unwrap();
    let request = service.only();
    assert_eq!((request.method.as_str(), request.path.as_str()), ("GET", "/searx/search"));
    let expect = [("format", "json"), ("language", "zh-CN"), ("q", "上海天气"), ("time_range", "week")];
    assert!(request.query.iter().map(|(a, b)| (a.as_str(), b.as_str())).eq(expect), "{:?}", request.query);
    assert_eq!(request.headers["authorization"], format!("Bearer {KEY}"));
    // Headers that the limiter of SearXNG requires.
    assert!(request.headers["accept"].contains("text/html"), "{request:?}");
    assert_eq!(request.headers["accept-language"], "zh-CN");

    assert_eq!(
        output.structured().unwrap().value(),
        json!({"provider": "searxng", "query": "上海天气", "results": [
            {"title": "上海天气预报 & 空气质量", "url": "https://weather.example/上海", "snippet": "今天多云，15~22℃", "published": "2026-03-01T08:00:00"},
            {"title": "B", "url": "https://b.example/", "snippet": ""},
        ]})
    );
    assert_eq!(
        output.texts().0,
        [
            "1. 上海天气预报 & 空气质量\n   https://weather.example/上海\n   [2026-03-01T08:00:00]\n   今天多云，15~22℃\n\n2. B\n   https://b.example/"
        ]
    );
}

#[tokio::test]
async fn searxng_needs_neither_key_nor_language() {
    let service = Service::answering(Reply::json(200, &json!({"results": []})));
    let choice =
        SearchConfig { provider: SearchProvider::Searxng, url: Some(service.url.clone()), api_key: None };
    let output = search(WebSearch::from_config(choice, &|_| None), json!({"query": "x"})).await.unwrap();
    assert_eq!(output.texts().0, ["nothing was found for `x`"]);
    assert_eq!(output.structured().unwrap().value()["results"], json!([]));
    let request = service.only();
    assert!(!request.headers.contains_key("authorization"), "{request:?}");
    assert!(
        !request.query.contains_key("language") && !request.query.contains_key("time_range"),
        "{request:?}"
    );
}

#[tokio::test]
async fn sends_credentials_of_the_url() {
    let service = Service::answering(Reply::json(200, &searxng_answer()));
    let url = service.url.replace("http://", "http://name:pass@");
    let choice = SearchConfig { provider: SearchProvider::Searxng, url: Some(url), api_key: None };
    search(WebSearch::from_config(choice, &|_| None), json!({"query": "x"})).await.unwrap();
    assert_eq!(service.only().headers["authorization"], "Basic bmFtZTpwYXNz");
}

#[tokio::test]
async fn brave_request_and_response() {
    let service = Service::answering(Reply::json(200, &brave_answer()));
    let arguments = json!({"query": "rust 1.95", "language": "ja", "freshness": "month"});
    let output = search(web(SearchProvider::Brave, &service.url), arguments).await.unwrap();
    let request = service.only();
    assert_eq!((request.method.as_str(), request.path.as_str()), ("GET", "/res/v1/web/search"));
    let expect = [
        ("count", "5"),
        ("freshness", "pm"),
        ("q", "rust 1.95"),
        ("result_filter", "web"),
        ("search_lang", "jp"),
    ];
    assert!(request.query.iter().map(|(a, b)| (a.as_str(), b.as_str())).eq(expect), "{:?}", request.query);
    assert_eq!(request.headers["x-subscription-token"], KEY);
    assert!(!request.headers.contains_key("authorization"), "{request:?}");
    assert_eq!(
        output.structured().unwrap().value(),
        json!({"provider": "brave", "query": "rust 1.95", "results": [
            {"title": "Announcing Rust 1.95", "url": "https://blog.rust-lang.org/1.95",
             "snippet": "The team's news: Vec<String> <3", "published": "2026-04-16T00:00:00"},
            {"title": "Docs", "url": "https://doc.rust-lang.org/", "snippet": ""},
        ]})
    );
}

#[tokio::test]
async fn tavily_request_and_response() {
    let service = Service::answering(Reply::json(200, &tavily_answer()));
    let arguments = json!({"query": "查一下", "count": 20, "language": "zh", "freshness": "year"});
    let output = search(web(SearchProvider::Tavily, &service.url), arguments).await.unwrap();
    let request = service.only();
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/search"));
    assert_eq!(request.headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(request.headers["content-type"], "application/json");
    assert_eq!(
        serde_json::from_str::<Value>(&request.body).unwrap(),
        json!({"query": "查一下", "max_results": 20, "search_depth": "basic", "topic": "general", "time_range": "year"})
    );
    assert_eq!(
        output.structured().unwrap().value()["results"],
        json!([
            {"title": "一", "url": "https://one.example/", "snippet": "第一段 第二段"},
            {"title": "二", "url": "https://two.example/", "snippet": "x", "published": "Mon, 02 Mar 2026 10:00:00 GMT"},
        ])
    );
}

/// The error of a search, in both languages; neither may contain the key.
async fn failure(web: WebSearch) -> (String, String) {
    let error = search(web, json!({"query": "x"})).await.unwrap_err();
    assert_eq!(error.kind(), "tool_failed");
    let (en, zh) = (error.localize(Lang::En), error.localize(Lang::Zh));
    assert!(!format!("{en}{zh}{error:?}").contains(KEY), "{error:?}");
    assert_ne!(en, zh);
    (en, zh)
}

fn with_headers(status: u16, headers: &[(&'static str, &str)], body: &Value) -> Reply {
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Reply::Http(status, headers, body.to_string())
}

#[tokio::test]
async fn distinguishes_http_error_statuses() {
    use SearchProvider::{Brave, Searxng, Tavily};
    let wrong_key = json!({"type": "ErrorResponse", "error": {"status": 422, "code": "SUBSCRIPTION_TOKEN_INVALID",
        "detail": "The provided subscription token is invalid."}});
    let limit = json!({"type": "ErrorResponse", "error": {"status": 429, "code": "RATE_LIMITED",
        "detail": "Request rate limit exceeded for plan"}});
    let wrong_lang = json!({"type": "ErrorResponse", "error": {"status": 422, "code": "VALIDATION",
        "detail": "Unable to validate request parameter(s)"}});
    let unauthorized = json!({"detail": {"error": format!("Unauthorized: wrong key {KEY}.")}});
    let used_up = json!({"detail": {"error": "This request exceeds your plan's set usage limit."}});
    let resets = [("X-RateLimit-Remaining", "0, 1990"), ("X-RateLimit-Reset", "1, 1419704")];
    let cases = [
        (
            Brave,
            with_headers(422, &[], &wrong_key),
            &[
                "Brave Search does not accept the key from `api_key` in `[web_search]` (HTTP status 422) (\"The provided subscription token is invalid.\")",
            ][..],
            "请检查这个密钥",
        ),
        (
            Brave,
            with_headers(403, &[], &json!({})),
            &["does not accept the key", "HTTP status 403"],
            "不接受来自 `api_key`",
        ),
        (
            Brave,
            with_headers(422, &[], &wrong_lang),
            &["answered with HTTP status 422 (\"Unable to validate request parameter(s)\")"],
            "HTTP 状态 422",
        ),
        (
            Brave,
            with_headers(429, &resets, &limit),
            &["limited the rate of requests", "Request rate limit exceeded for plan", "try again in 1 s"],
            "请在 1 秒后再试",
        ),
        (
            Tavily,
            with_headers(401, &[], &unauthorized),
            &["Tavily does not accept the key", "Unauthorized: wrong key …."],
            "Tavily 不接受",
        ),
        (
            Tavily,
            with_headers(429, &[("Retry-After", "17")], &used_up),
            &["HTTP status 429", "try again in 17 s"],
            "请在 17 秒后再试",
        ),
        (
            Tavily,
            with_headers(432, &[], &used_up),
            &["HTTP status 432", "exceeds your plan's set usage limit"],
            "HTTP 状态 432",
        ),
        (
            Searxng,
            with_headers(403, &[], &json!({})),
            &["does not answer with JSON", "`formats: [html, json]`", "settings.yml"],
            "`formats: [html, json]`",
        ),
        (Searxng, with_headers(401, &[], &json!({})), &["requires a login"], "要求登录"),
        (
            Searxng,
            with_headers(429, &[], &json!({})),
            &["limited the rate of requests", "try again later", "`pass_ip`"],
            "请稍后再试",
        ),
        (Searxng, with_headers(404, &[], &json!({})), &["HTTP status 404; check the `url`"], "请检查 `url`"),
        (Searxng, Reply::Http(502, vec![], "<html>nginx".to_owned()), &["HTTP status 502"], "HTTP 状态 502"),
    ];
    for (provider, reply, english, chinese) in cases {
        let service = Service::answering(reply);
        let (en, zh) = failure(web(provider, &service.url)).await;
        for part in english {
            assert!(en.contains(part), "{en}");
        }
        assert!(zh.contains(chinese), "{zh}");
        service.only();
    }
}

#[tokio::test]
async fn distinguishes_unreadable_responses() {
    let page = vec![("Content-Type", "text/html; charset=utf-8".to_owned())];
    let large = format!("{{\"results\": []{}}}", " ".repeat(3 << 20));
    let silent = json!({"results": [], "unresponsive_engines": [["google", "Suspended: CAPTCHA"], ["bing", "timeout"]]});
    let cases = [
        (Reply::Http(200, page, "<!doctype html><p>hello".to_owned()), "a web page in place of JSON", "网页"),
        (
            Reply::Http(200, vec![], "{\"results\": [".to_owned()),
            "could not be read: EOF while parsing",
            "无法读懂",
        ),
        (Reply::json(200, &json!({"error": "x"})), "could not be read: no `results`", "无法读懂"),
        (Reply::Http(200, vec![], large), "more than 2 MiB", "超过 2 MiB"),
        (Reply::BreakOff, "broke off", "中断"),
        (Reply::json(200, &silent), "none of the engines", "google (Suspended: CAPTCHA), bing (timeout)"),
    ];
    for (reply, english, chinese) in cases {
        let service = Service::answering(reply);
        let (en, zh) = failure(web(SearchProvider::Searxng, &service.url)).await;
        assert!(en.contains(english), "{en}");
        assert!(zh.contains(chinese), "{zh}");
    }
    // Large, but within the limit.
    let body = format!("{{\"results\": []{}}}", " ".repeat(1 << 20));
    let service = Service::answering(Reply::Http(200, vec![], body));
    search(web(SearchProvider::Searxng, &service.url), json!({"query": "x"})).await.unwrap();
}

// The service ends when its client disconnects, which needs a worker thread that the test does not block.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn names_unreachable_or_silent_service() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://name:{KEY}@{nobody}");
    let (en, zh) = failure(web(SearchProvider::Tavily, &url)).await;
    assert!(en.starts_with(&format!("the search service at `{nobody}` could not be reached: ")), "{en}");
    assert!(zh.starts_with(&format!("无法连接搜索服务 `{nobody}`")), "{zh}");

    let service = Service::answering(Reply::Never);
    let (en, zh) =
        failure(web(SearchProvider::Brave, &service.url).with_deadline(Duration::from_millis(300))).await;
    assert!(en.ends_with("did not answer within 0.3 s"), "{en}");
    assert!(zh.ends_with("在 0.3 秒内没有回答"), "{zh}");
}

#[tokio::test]
async fn follows_redirects_only_within_the_service() {
    let elsewhere = Service::answering(Reply::json(200, &searxng_answer()));
    let location = format!("{}/search?q=x", elsewhere.url);
    let service = Service::answering(with_headers(302, &[("Location", &location)], &json!({})));
    let (en, _) = failure(web(SearchProvider::Searxng, &service.url)).await;
    let address = elsewhere.url.trim_start_matches("http://");
    assert!(en.contains(&format!("sends its callers on to `{address}`")), "{en}");
    assert_eq!(elsewhere.received().len(), 0);

    let moved = Service::start(|request| match request.path.as_str() {
        "/search" => with_headers(307, &[("Location", "/new/search")], &json!({})),
        _ => Reply::json(200, &tavily_answer()),
    });
    search(web(SearchProvider::Tavily, &moved.url), json!({"query": "q"})).await.unwrap();
    let paths: Vec<String> = moved.received().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/search", "/new/search"]);
}

#[tokio::test]
async fn rejects_invalid_queries_without_request() {
    let service = Service::answering(Reply::json(200, &searxng_answer()));
    let check = async |arguments: Value, en: &str, zh: &str| {
        let error = search(web(SearchProvider::Searxng, &service.url), arguments).await.unwrap_err();
        assert!(error.localize(Lang::En).contains(en) && error.localize(Lang::Zh).contains(zh), "{error:?}");
    };
    check(json!({"query": "  "}), "`query` is empty", "`query` 为空").await;
    check(json!({"query": "天".repeat(2000)}), "has 6000 bytes", "超过 2000").await;
    check(json!({"query": "x", "language": "中文"}), "not `中文`", "而不是 `中文`").await;
    assert_eq!(service.received().len(), 0);
}

fn cli() -> CommandLine {
    CommandLine::new(env!("CARGO_BIN_EXE_toolhub"))
}

fn configured(text: &str) -> CommandLine {
    let cli = cli();
    fs::write(cli.folder().join("toolhub.toml"), text).unwrap();
    cli
}

/// Runs the program with additional environment variables.
fn run_with(cli: &CommandLine, variables: &[(&str, &str)], args: &[&str]) -> CommandOutput {
    let output = cli.command(args).envs(variables.iter().copied()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    CommandOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[test]
fn search_web_command_returns_results() {
    let service = Service::answering(Reply::json(200, &brave_answer()));
    let cli = configured(&format!(
        "[web_search]\nprovider = \"brave\"\nurl = \"{}\"\napi_key = \"${{MY_KEY}}\"\n",
        service.url
    ));
    let args = ["call", "search_web", "query=rust 1.95", "count=1", "freshness=day", "--trace"];
    // The configuration takes precedence over the environment.
    let ran = run_with(&cli, &[("MY_KEY", KEY), ("SEARXNG_URL", "http://127.0.0.1:9")], &args);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        ran.stdout,
        "1. Announcing Rust 1.95\n   https://blog.rust-lang.org/1.95\n   [2026-04-16T00:00:00]\n   The team's news: Vec<String> <3\n"
    );
    assert!(!ran.stderr.contains(KEY), "{ran:?}");
    let request = service.only();
    assert_eq!(request.headers["x-subscription-token"], KEY);
    assert_eq!((request.query["count"].as_str(), request.query["freshness"].as_str()), ("1", "pd"));
}

#[test]
fn search_web_command_uses_service_of_the_environment() {
    let service = Service::answering(Reply::json(200, &searxng_answer()));
    let cli = cli();
    let variables = [("SEARXNG_URL", service.url.as_str()), ("TAVILY_API_KEY", KEY)];
    let ran = run_with(&cli, &variables, &["call", "search_web", "query=上海天气", "--json"]);
    let outcome = ran.json();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(outcome["structuredContent"]["provider"], "searxng");
    assert_eq!(outcome["structuredContent"]["results"].as_array().unwrap().len(), 3);
    assert!(!service.only().headers.contains_key("authorization"));
}

#[test]
fn search_web_command_explains_setup_without_service() {
    let cli = cli();
    let check = |lang: &str, begins: &str| {
        let ran = cli.run(&["call", "search_web", "query=x", "--lang", lang]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
        assert!(ran.stderr.contains(begins), "{ran:?}");
        for line in ["provider = \"searxng\"", "provider = \"brave\"", "api_key = \"${TAVILY_API_KEY}\""] {
            assert!(ran.stderr.contains(line), "{ran:?}");
        }
    };
    check("en", "no search service is set up");
    check("zh", "还没有设置搜索服务");
    let listed = cli.run(&["tools"]).stdout;
    assert!(listed.contains("search_web"), "{listed}");
}

#[test]
fn reports_invalid_settings_and_arguments() {
    let check = |settings: &str, args: &[&str], code: i32, says: &str| {
        let cli = configured(settings);
        let args = [&["call", "search_web"], args].concat();
        let ran = cli.run(&args);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(ran.stderr.contains(says) && !ran.stderr.contains("hunter2"), "{ran:?}");
    };
    let query = ["query=x"];
    check("[web_search]\nprovider = \"google\"\n", &query, 2, "line 2, column 12: unknown variant `google`");
    check("[web_search]\nurl = \"x\"\n", &query, 2, "missing field `provider`");
    check("[web_search]\nprovider = \"brave\"\napi_key = 76543\n", &query, 2, "a secret should be a string");
    check(
        "[web_search]\nprovider = \"brave\"\napi_key = \"${NONE}\"\n",
        &query,
        1,
        "uses ${NONE}, which is not set",
    );
    check(
        "[web_search]\nprovider = \"tavily\"\n",
        &query,
        1,
        "write `api_key = \"…\"` there, or set `TAVILY_API_KEY`",
    );
    check(
        "[web_search]\nprovider = \"searxng\"\nurl = \"http://a:hunter2@127.0.0.1:x\"\n",
        &query,
        1,
        "the address of `searxng` is wrong: invalid port number",
    );
    check("[web_search]\nprovider = \"brave\"\nkey = \"hunter2\"\n", &query, 1, "needs a key");
    check("", &["query=x", "count=21"], 1, "`count`");
    check("", &["query=x", "count=0"], 1, "`count`");
    check("", &["query=x", "freshness=hour"], 1, "one of \"day\", \"week\", \"month\", \"year\"");
    check("", &["count=2"], 1, "`query` is missing");
}
