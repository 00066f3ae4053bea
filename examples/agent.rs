//! An agent with your own model: any server with an OpenAI-compatible API, such as Ollama, llama.cpp, vLLM or LM
//! Studio.
//!
//! ```sh
//! export OPENAI_BASE_URL=http://127.0.0.1:11434/v1   # Ollama
//! export OPENAI_MODEL=qwen3
//! cargo run -p toolhub --example agent -- "how many km are 5 miles?"
//! ```

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use std::process::ExitCode;

use toolhub::settings::Settings;
use toolhub::{AskOptions, DenyAll, Hub};

const HOWTO: &str = "no model is set: start one, for example with `ollama run qwen3`, and run this again with
  OPENAI_BASE_URL=http://127.0.0.1:11434/v1 OPENAI_MODEL=qwen3
and OPENAI_API_KEY if it needs a key";

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let request = std::env::args().nth(1).unwrap_or_else(|| "how many km are 5 miles?".to_owned());
    if std::env::var_os("OPENAI_BASE_URL").is_none_or(|url| url.is_empty()) {
        eprintln!("{HOWTO}");
        return Ok(ExitCode::from(2));
    }

    // Without `[llm]` in the settings, the model is configured by environment variables.
    let hub = Hub::builder().settings(Settings::default()).one_shot().build().await?;

    // `DenyAll` denies all tools that are marked destructive; implement `Confirmation` to ask your user.
    let answer = hub.ask(&request, &AskOptions::default(), &DenyAll, &|_| {}).await?;
    for tool in answer.steps.iter().filter_map(|step| step.tool.as_ref()) {
        println!("called {tool}");
    }
    println!("{}", answer.text);
    hub.shutdown().await;
    Ok(ExitCode::SUCCESS)
}
