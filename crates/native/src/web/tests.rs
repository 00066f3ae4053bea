//! Unit tests of `search_web` without a service. Integration tests cover the HTTP exchange.

use reqwest::header::{HeaderMap, HeaderValue};
use toolhub_core::ToolError;
use toolhub_core::lang::{Lang, Localize};

use super::error_response::retry_after;
use super::language::Language;
use super::plain::plain;
use super::response::{Hit, ParseError};
use super::setup::{SearchConfig, WebSearch};
use super::{SearchProvider, brave, searxng, tavily};

#[test]
fn strips_markup_from_text() {
    let check = |input: &str, expect: &str| assert_eq!(plain(input), expect, "{input}");
    check("plain", "plain");
    check("<strong>Rust</strong> &amp; C++", "Rust & C++");
    check("it&#x27;s &quot;so&quot; &#8212; &hellip;&nbsp;end", "it's \"so\" — … end");
    check("上海<b>天气</b>预报&middot;7天", "上海天气预报·7天");
    check("one<br/>two<br>three<p class=\"x\">four</p>", "one two three four");
    check("a <SPAN style='x'>b</SPAN> <!-- c --> d", "a b d");
    check("  many \n\t lines \r\n", "many lines");
    // Not tags: types, comparisons, and decoded entities.
    check("Vec<String> and Option<B>", "Vec<String> and Option<B>");
    check("1 < 2 > 0, <b", "1 < 2 > 0, <b");
    check("&lt;b&gt; is bold", "<b> is bold");
    check("&amp;lt; &unknown; &", "&lt; &unknown; &");
    check("\u{1b}[31mred\u{7}", "[31mred");
    check("", "");
}

#[test]
fn formats_language_for_each_provider() {
    let check = |input: &str, expect: Option<(&str, &str)>| {
        let language = Language::parse(input);
        let actual = language.as_ref().map(|language| (language.searxng(), language.brave().to_owned()));
        assert_eq!(actual, expect.map(|(one, two)| (one.to_owned(), two.to_owned())), "{input}");
    };
    check("zh", Some(("zh", "zh-hans")));
    check("zh-CN", Some(("zh-CN", "zh-hans")));
    check("zh_TW.UTF-8", Some(("zh-TW", "zh-hant")));
    check("zh-Hans", Some(("zh-CN", "zh-hans")));
    check("zh-Hant", Some(("zh-TW", "zh-hant")));
    check("zh-Hant-HK", Some(("zh-HK", "zh-hant")));
    check("EN", Some(("en", "en")));
    check("en-GB", Some(("en-GB", "en-gb")));
    check("en-US", Some(("en-US", "en")));
    check("ja", Some(("ja", "jp")));
    check("pt", Some(("pt", "pt-br")));
    check("pt-PT", Some(("pt-PT", "pt-pt")));
    check("no", Some(("no", "nb")));
    for wrong in ["中文", "Chinese", "e", "en-", "en us", "zh-CN&x=1"] {
        check(wrong, None);
    }
}

fn hit(title: &str, url: &str, snippet: &str, published: Option<&str>) -> Hit {
    Hit {
        title: title.to_owned(),
        url: url.to_owned(),
        snippet: snippet.to_owned(),
        published: published.map(str::to_owned),
    }
}

#[test]
fn parses_incomplete_responses_partially() {
    let malformed = r#"[{"title": "no address"}, 7, null, {"url": " "}, {"url": "https://a.example/", "title": null, "content": 5},
        {"url": "https://b.example/\u001b[2J", "title": "<b>B</b>", "content": "x", "publishedDate": null, "pubdate": "2026-01-02"}]"#;
    let expect = [
        hit("https://a.example/", "https://a.example/", "", None),
        hit("B", "https://b.example/[2J", "x", Some("2026-01-02")),
    ];
    assert_eq!(searxng::read(format!("{{\"results\": {malformed}}}").as_bytes()).unwrap(), expect);
    assert_eq!(tavily::read(br#"{"results": []}"#).unwrap(), []);
    assert_eq!(tavily::read(br#"{"answer": "42"}"#).unwrap_err(), ParseError::MissingField("results"));
    assert_eq!(brave::read(br#"{"type": "search", "query": {"original": "x"}}"#).unwrap(), []);
    assert_eq!(
        brave::read(br#"{"type": "search", "web": {}}"#).unwrap_err(),
        ParseError::MissingField("web.results")
    );
    assert_eq!(brave::read(br#"{"hello": 1}"#).unwrap_err(), ParseError::MissingField("web"));
    assert!(matches!(searxng::read(b"<html>").unwrap_err(), ParseError::NotJson(_)));
    assert!(matches!(searxng::read(b"{\"results\": [\"\xff\"]}").unwrap_err(), ParseError::NotJson(_)));
    let silent = br#"{"results": [], "unresponsive_engines": [["google", "CAPTCHA"], ["bing"], 3]}"#;
    let engines = vec!["google (CAPTCHA)".to_owned(), "bing".to_owned()];
    assert_eq!(searxng::read(silent).unwrap_err(), ParseError::EnginesUnresponsive(engines));
}

#[test]
fn waits_for_exhausted_rate_limit_window() {
    let check = |remaining: &'static str, reset: &'static str, expect: Option<u64>| {
        let mut headers = HeaderMap::new();
        headers.insert("x-ratelimit-remaining", HeaderValue::from_static(remaining));
        headers.insert("x-ratelimit-reset", HeaderValue::from_static(reset));
        assert_eq!(brave::wait(&headers).map(|wait| wait.as_secs()), expect, "{remaining} {reset}");
    };
    check("0, 1200", "1, 1419704", Some(1));
    check("0, 0", "1, 1419704", Some(1_419_704));
    check("1, 2", "1, 3", None);
    check("", "soon", None);
}

#[test]
fn parses_retry_after_seconds_and_dates() {
    let check = |text: &str| {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", text.parse().unwrap());
        retry_after(&headers).map(|wait| wait.as_secs())
    };
    assert_eq!(check(" 17 "), Some(17));
    let printer = jiff::fmt::rfc2822::DateTimePrinter::new();
    let moment = |seconds: i64| {
        let moment = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(seconds);
        printer.timestamp_to_rfc9110_string(&moment).unwrap()
    };
    let actual = check(&moment(90));
    assert!(actual.is_some_and(|seconds| (60..=90).contains(&seconds)), "{actual:?}");
    // A date in the past, and invalid values.
    assert_eq!((check(&moment(-90)), check("soon"), check("-1")), (None, None, None));
}

/// The service that a search would use, or the error.
fn used(web: &WebSearch) -> String {
    match web.target() {
        Ok(target) => {
            let key = target.key.as_ref().map_or("no key", |key| key.expose());
            format!("{} {} {key}", target.provider.id(), target.url)
        }
        Err(failure) => failure.to_string(),
    }
}

#[test]
fn checks_environment_variables_in_order() {
    let check = |set: &[(&str, &str)], expect: &str| {
        let set: Vec<(String, String)> = set.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect();
        let lookup =
            move |name: &str| set.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let actual = used(&WebSearch::from_environment(&lookup));
        assert!(actual.starts_with(expect), "{actual}");
    };
    let (searxng, brave, tavily) =
        (("SEARXNG_URL", "http://h:1/s/"), ("BRAVE_API_KEY", " b1 "), ("TAVILY_API_KEY", "t1"));
    check(&[tavily, brave, searxng], "searxng http://h:1/s/search no key");
    check(&[tavily, brave], "brave https://api.search.brave.com/res/v1/web/search b1");
    check(&[tavily, ("BRAVE_API_KEY", " ")], "tavily https://api.tavily.com/search t1");
    check(&[], "no search service is set up");
    check(
        &[("SEARXNG_URL", "localhost:8080")],
        "the address of `searxng` is wrong: it is neither http nor https",
    );
    check(&[("BRAVE_API_KEY", "a\nb")], "`BRAVE_API_KEY` contains characters that a key cannot have");
}

#[test]
fn configured_provider_overrides_environment() {
    let lookup = |name: &str| match name {
        "SEARXNG_URL" => Some("http://env.example".to_owned()),
        "TAVILY_API_KEY" => Some("env".to_owned()),
        _ => None,
    };
    let check = |provider, url: &str, key: &str, expect: &str| {
        let input = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let choice = SearchConfig { provider, url: input(url), api_key: input(key) };
        let actual = used(&WebSearch::from_config(choice, &lookup));
        assert!(actual.starts_with(expect), "{actual}");
    };
    check(
        SearchProvider::Searxng,
        "https://x.example/search?a=1",
        "",
        "searxng https://x.example/search?a=1 no key",
    );
    check(SearchProvider::Searxng, "", "k", "searxng http://env.example/search k");
    check(SearchProvider::Tavily, "", "own", "tavily https://api.tavily.com/search own");
    check(SearchProvider::Tavily, "http://proxy/t", "", "tavily http://proxy/t/search env");
    check(SearchProvider::Brave, "", "", "`[web_search]` names `brave`, which needs a key");
    check(SearchProvider::Brave, "nonsense", "k", "the address of `brave` is wrong");
}

#[test]
fn debug_output_hides_secrets() {
    let choice = SearchConfig {
        provider: SearchProvider::Brave,
        url: Some("https://name:hunter2@x.example/?token=hunter3".to_owned()),
        api_key: Some("hunter4".to_owned()),
    };
    let mut rendered = format!("{choice:?}");
    let web = WebSearch::from_config(choice, &|_| None);
    rendered += &format!("{web:?} {:?} {}", web.target().unwrap().key, web.target().unwrap().location());
    assert!(!rendered.contains("hunter") && rendered.contains("x.example"), "{rendered}");
    assert_eq!(web.target().unwrap().hide("a hunter4 b hunter2 c"), "a … b … c");
    let wrong = SearchConfig {
        provider: SearchProvider::Searxng,
        url: Some("https://name:hunter2@x.example:port/".to_owned()),
        api_key: Some("hunter4".to_owned()),
    };
    let failure = WebSearch::from_config(wrong, &|_| None).target().unwrap_err();
    let rendered = format!("{failure} {failure:?} {}", failure.localize(Lang::Zh));
    assert!(!rendered.contains("hunter") && rendered.contains("地址不对"), "{rendered}");
}

#[test]
fn setup_instructions_are_localized() {
    let failure = ToolError::from(WebSearch::from_environment(&|_| None).target().unwrap_err());
    for (lang, begins) in [(Lang::En, "no search service"), (Lang::Zh, "还没有设置搜索服务")] {
        let text = failure.localize(lang);
        assert!(text.starts_with(begins), "{text}");
        for provider in SearchProvider::ALL {
            assert!(text.contains(&format!("provider = \"{}\"", provider.id())), "{text}");
            assert!(text.contains(&format!("export {}=", provider.variable())), "{text}");
        }
        assert!(text.contains("formats: [html, json]"), "{text}");
    }
}
