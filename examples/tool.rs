//! A tool in ten lines: its name, description and schema are derived from the function.
//!
//! `cargo run -p toolhub --example tool`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use serde_json::json;
use toolhub::{Hub, ToolCall, ToolError, tool};

/// Current weather for a city.
#[tool(read_only)]
async fn weather(#[doc = "City name"] city: String, days: Option<u8>) -> Result<String, ToolError> {
    Ok(format!("{city}: sunny for {} days", days.unwrap_or(1)))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hub = Hub::builder().tool(weather).one_shot().build().await?;
    let outcome = hub.call(ToolCall::new("weather", json!({"city": "Kyoto", "days": 3}))).await;
    println!("{}", outcome.result?.texts().0.join("\n"));
    hub.shutdown().await;
    Ok(())
}
