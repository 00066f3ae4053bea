//! Embeds the hub in a program: one catalog of built-in tools, skills and MCP servers, and a call that is validated,
//! routed and logged.
//!
//! `cargo run -p toolhub --example embed`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use serde_json::json;
use toolhub::{Hub, ToolCall};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Reads your `toolhub.toml` and `mcp.json`; `.config("FILE")` selects another file. This does not start any
    // server.
    let hub = Hub::builder().one_shot().build().await?;
    println!("{} tools in the catalog", hub.catalog().len());

    let call = ToolCall::new("calculate", json!({"expression": "15% of 80"}));
    let outcome = hub.call(call).await;
    match &outcome.result {
        Ok(output) => println!("calculate: {}", output.texts().0.join("\n")),
        Err(error) => println!("calculate failed: {error}"),
    }

    // Arguments are validated against the tool's schema before execution.
    let wrong = hub.call(ToolCall::new("calculate", json!({"expresion": "1+1"}))).await;
    if let Err(error) = &wrong.result {
        println!("refused: {error}");
    }

    // Stops the servers that were started by calls.
    hub.shutdown().await;
    Ok(())
}
