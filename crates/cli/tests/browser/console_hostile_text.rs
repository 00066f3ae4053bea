//! A server whose every text tries to become markup or a script.

use serde_json::{Value, json};
use toolhub_testkit::scripted::Script;

use crate::hub::{ConsoleHub, command_line, no_requests};

/// Texts that run `hostileScriptRan()` if a page takes them as markup, a script or a link, and texts with unusual characters.
fn payloads() -> Vec<String> {
    [
        "<img src=x onerror=hostileScriptRan()>",
        "\"><svg onload=hostileScriptRan()>",
        "'><svg onload=hostileScriptRan()>",
        "</textarea><script>hostileScriptRan()</script>",
        "</script><script>hostileScriptRan()</script>",
        "</title></style><script>hostileScriptRan()</script>",
        "--><script>hostileScriptRan()</script>",
        "javascript:hostileScriptRan()",
        "<a href=javascript:hostileScriptRan()>x</a>",
        "<iframe srcdoc='<script>parent.hostileScriptRan()</script>'>",
        "\u{202E}<base href=//example.com/>\u{2066}",
        "\u{0000}<meta http-equiv=refresh content='0;url=javascript:hostileScriptRan()'>",
        "${hostileScriptRan()} {{hostileScriptRan()}}",
        "👩‍👩‍👧‍👦🏳️‍🌈😀",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// A text without a place to break a line.
fn long_word() -> String {
    "W".repeat(10_000)
}

/// All payloads in one text.
fn hostile() -> String {
    payloads().join(" ")
}

/// A property for each payload, which is its name, its title, its description, its default and its choices.
fn properties() -> Value {
    let mut properties = serde_json::Map::new();
    for (index, payload) in payloads().into_iter().enumerate() {
        let mut property =
            json!({"type": "string", "title": payload, "description": payload, "examples": [payload]});
        match index % 4 {
            0 => property["enum"] = json!([payload, "other", hostile()]),
            1 => property["default"] = json!(payload),
            2 => property["format"] = json!(payload),
            _ => property["pattern"] = json!(".*"),
        }
        properties.insert(payload, property);
    }
    let variant = json!({"title": hostile(), "type": "object", "required": [hostile()], "properties": {
        hostile(): {"const": hostile()}
    }});
    let other = json!({"title": "other", "type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}});
    properties.insert("union".to_owned(), json!({"oneOf": [variant, other]}));
    Value::Object(properties)
}

/// A tool with long words in all places. Its arguments are too long to be stored in full.
fn long_tool() -> Value {
    let long =
        json!({"type": "string", "title": long_word(), "description": long_word(), "default": long_word()});
    json!({"name": "long", "title": long_word(), "description": long_word(), "inputSchema": {
        "type": "object",
        "properties": {long_word(): long, "choice": {"enum": [long_word(), "other"]}}
    }})
}

fn tool(name: &str) -> Value {
    json!({"name": name, "title": hostile(), "description": hostile(), "inputSchema": {
        "type": "object", "title": hostile(), "description": hostile(), "properties": properties(),
        "required": [payloads()[0], payloads()[1]]
    }})
}

/// A result with every kind of content.
fn result(is_error: bool) -> Value {
    // `<svg xmlns="http://www.w3.org/2000/svg" onload="parent.hostileScriptRan()"/>`
    let svg = "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIG9ubG9hZD0icGFyZW50Lmhvc3RpbGVTY3JpcHRSYW4oKSIvPg==";
    let pixel = "R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==";
    let mut content: Vec<Value> =
        payloads().into_iter().map(|payload| json!({"type": "text", "text": payload})).collect();
    content.extend([
        json!({"type": "image", "data": svg, "mimeType": "image/svg+xml"}),
        json!({"type": "image", "data": pixel, "mimeType": "image/gif"}),
        json!({"type": "image", "data": pixel, "mimeType": "image/png\" onerror=\"hostileScriptRan()"}),
        json!({"type": "image", "data": "x\" onerror=\"hostileScriptRan()", "mimeType": "image/png"}),
        json!({"type": "image", "data": "AAAA", "mimeType": "text/html,<script>parent.hostileScriptRan()</script>"}),
        json!({"type": "audio", "data": pixel, "mimeType": hostile()}),
        json!({"type": "resource_link", "uri": "javascript:hostileScriptRan()", "name": hostile(), "title": hostile(),
            "description": hostile(), "mimeType": hostile()}),
        json!({"type": "resource", "resource": {"uri": "javascript:hostileScriptRan()", "mimeType": "text/html",
            "text": hostile()}}),
        json!({"type": hostile(), "text": hostile()}),
    ]);
    let structured: serde_json::Map<String, Value> =
        payloads().into_iter().map(|payload| (payload.clone(), json!([payload, {"a": payload}]))).collect();
    json!({"content": content, "structuredContent": structured, "isError": is_error})
}

/// A result with long words in all kinds of content.
fn long_result() -> Value {
    json!({"structuredContent": {long_word(): long_word()}, "content": [
        {"type": "text", "text": long_word()},
        {"type": "resource_link", "uri": long_word(), "name": long_word()}
    ]})
}

#[test]
fn hostile_text_stays_text() {
    let text = format!("{} {}", hostile(), long_word());
    let error = json!({"code": -32000, "message": text, "data": {"reason": hostile()}});
    let named = payloads()[1].clone();
    let script = Script::legacy()
        .set("name", &text)
        .set("instructions", hostile())
        .set("stderr", [hostile()])
        .tool(tool("result"))
        .tool(tool("failure"))
        .tool(tool("error"))
        .tool(tool("dies"))
        .tool(tool(&named))
        .tool(long_tool())
        .on("tools/call:long", json!([{"reply": long_result()}]))
        .on("tools/call:result", json!([{"reply": result(false)}]))
        .on("tools/call:failure", json!([{"reply": result(true)}]))
        .on("tools/call:error", json!([{"stderr": hostile()}, {"error": error}]))
        .on("tools/call:dies", json!([{"stderr": text}, {"exit": 1}]));
    let mut cli = command_line("[audit]\nenabled = true\n");
    cli.server("hostile", &script);
    let refused = json!({"error": {"code": -32000, "message": text}});
    cli.server("refusing", &Script::legacy().on("initialize", json!([{"stderr": hostile()}, refused])));
    let refreshed = cli.run(&["servers", "refresh", "hostile"]);
    assert_eq!(refreshed.code, Some(0), "{refreshed:?}");
    cli.run(&["servers", "refresh", "refusing"]);
    let mut hub = ConsoleHub::start(cli);
    let paths = [
        "",
        "tools",
        "tools?q=%3Cimg+src%3Dx+onerror%3DhostileScriptRan()%3E",
        "tools?source=%22%3E%3Csvg+onload%3DhostileScriptRan()%3E",
        "tools/%3Cimg%20src%3Dx%20onerror%3DhostileScriptRan()%3E",
        "servers",
        "servers/hostile",
        "servers/refusing",
        "servers/%22%3E%3Csvg%20onload%3DhostileScriptRan()%3E",
        "calls?text=%22%3E%3Csvg+onload%3DhostileScriptRan()%3E&tool=%3Cimg+src%3Dx+onerror%3DhostileScriptRan()%3E",
        "waiting",
        "ask",
        "skills",
        "profiles",
        "clients",
        "access",
        "audit?principal=%22%3E%3Csvg+onload%3DhostileScriptRan()%3E",
        "%3Cimg%20src%3Dx%20onerror%3DhostileScriptRan()%3E",
    ];
    let shown = payloads()[0].clone();
    let call = |tool: &str, shown: &str| json!({"tool": tool, "shown": shown});
    let long = "W".repeat(100);
    let details = json!({
        "paths": paths,
        "calls": [
            call("result", &shown),
            call("failure", &shown),
            call("error", &shown),
            call("dies", "stopped"),
            call("long", &long),
        ],
        "shown": shown,
    });
    hub.run_scenario("hostile_text", details, no_requests);
}
