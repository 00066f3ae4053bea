//! Embeds the hub in a program: one catalog of built-in tools, skills and MCP servers, and a call that is validated, routed and
//! recorded.
//!
//! `cargo run -p toolhub --example embed`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use serde_json::json;
use toolhub::{Hub, ToolCall};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Reads your own `toolhub.toml` and `mcp.json`; `.config("FILE")` names another one. No server is started by this.
    let hub = Hub::builder().one_shot().build().await?;
    println!("{} tools in the catalog", hub.catalog().len());

    let call = ToolCall::new("calculate", json!({"expression": "15% of 80"}));
    let outcome = hub.call(call).await;
    match &outcome.result {
        Ok(output) => println!("calculate: {}", output.texts().0.join("\n")),
        Err(error) => println!("calculate failed: {error}"),
    }

    // Arguments are checked against the tool's schema before anything runs.
    let wrong = hub.call(ToolCall::new("calculate", json!({"expresion": "1+1"}))).await;
    if let Err(error) = &wrong.result {
        println!("refused: {error}");
    }

    // Ends the servers that calls have started.
    hub.shutdown().await;
    Ok(())
}
