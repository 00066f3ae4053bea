//! Takes the pictures of the console for the documents. `cargo xtask screenshots` writes them to `docs/images`; the test alone
//! writes them to the folder of build output.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolhub_testkit::scripted::Script;

use crate::hub::{ConsoleHub, command_line, draw, no_requests};

/// The folder for the pictures, if they are for the documents.
const FOLDER_VARIABLE: &str = "TOOLHUB_SCREENSHOTS";
/// All pictures together may take up this much of the repository.
const MAX_BYTES: u64 = 1_000_000;

fn tool(name: &str, description: &str) -> Value {
    json!({
        "name": name,
        "description": description,
        "annotations": {"readOnlyHint": true},
        "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}},
    })
}

/// A hub with some servers and calls.
fn hub() -> ConsoleHub {
    let mut cli = command_line("");
    let rates = json!([{"text": "EUR 1.00 = USD 1.08 = CNY 7.83"}]);
    let finance = Script::legacy()
        .tool(tool("fetch_rates", "Exchange rates of a day, from the central bank."))
        .tool(tool("list_invoices", "Invoices of a month with amount, customer and state."))
        .on("tools/call:fetch_rates", rates)
        .on("tools/call:list_invoices", json!([{"tool_error": "month 2026-13 does not exist"}]));
    cli.server("finance", &finance);
    let sketch = Script::legacy()
        .tool(draw())
        .tool(tool("list_layers", "Layers of the drawing, from bottom to top."))
        .on("tools/call:draw", json!([{"text": "Circle with radius 12.5 on layer 3, drawn in red."}]));
    cli.server("sketch", &sketch);
    let wiki = Script::legacy()
        .tool(tool("search_pages", "Pages of the team wiki that contain all words."))
        .tool(tool("read_page", "The text of a page as Markdown."));
    cli.server("wiki", &wiki);
    let broken = Script::legacy().on("initialize", json!([{"stderr": "cannot read key.pem"}, {"exit": 3}]));
    cli.server("archive", &broken);
    for server in ["finance", "sketch", "wiki"] {
        assert_eq!(cli.run(&["servers", "refresh", server]).code, Some(0));
    }
    // These two fail on purpose.
    cli.run(&["servers", "refresh", "archive"]);
    cli.run(&["call", "list_invoices", "query=2026-13"]);
    for args in [
        &["call", "search_pages", "query=release plan"][..],
        &["call", "read_page", "query=release plan"],
        &["call", "calculate", "expression=1299 * 1.19"],
        &["call", "get_time", "zone=Asia/Shanghai"],
        &["call", "list_layers"],
        &["call", "calculate", "expression=23 * 47"],
        &["call", "fetch_rates", "query=2026-11-17"],
    ] {
        let ran = cli.run(args);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    ConsoleHub::start(cli)
}

#[test]
fn pictures_of_the_documents() {
    let named = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from);
    let built = || Path::new(env!("CARGO_TARGET_TMPDIR")).join("console-pictures");
    let folder = named.unwrap_or_else(built);
    let picture = |name: &str, [lang, theme, path]: [&str; 3], height: u32| {
        let fill = path == "tools/draw";
        json!({"name": name, "lang": lang, "theme": theme, "path": path, "height": height, "fill": fill})
    };
    let pictures = [
        picture("console-home", ["en", "light", ""], 800),
        picture("console-try", ["en", "light", "tools/draw"], 960),
        picture("console-call", ["en", "dark", "calls"], 800),
        picture("console-home-zh", ["zh", "light", ""], 800),
        picture("console-try-zh", ["zh", "light", "tools/draw"], 960),
        picture("console-call-zh", ["zh", "dark", "calls"], 800),
    ];
    hub().run_scenario("documentation", json!({"folder": folder, "pictures": pictures}), no_requests);
    let sizes = pictures.iter().map(|picture| {
        let file = folder.join(format!("{}.webp", picture["name"].as_str().unwrap()));
        file.metadata().unwrap().len()
    });
    assert!(sizes.sum::<u64>() < MAX_BYTES, "the pictures are too large");
}
