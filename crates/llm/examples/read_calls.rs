//! Reads `{"text", "tools"?}` lines and prints the calls found in each, for measuring the readers alone.
use std::io::{BufRead as _, Write as _};

use toolhub_core::RawJson;
use toolhub_llm::formats::{KnownTool, KnownTools, parse_output};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let line: serde_json::Value = serde_json::from_str(&line?)?;
        let tools = line["tools"].as_array().cloned().unwrap_or_default();
        let known = KnownTools::new(tools.iter().map(|tool| {
            let schema = tool.get("parameters").map(|schema| RawJson::from(schema.clone()));
            KnownTool::new(tool["name"].as_str().unwrap_or_default(), schema)
        }));
        let reading = parse_output(line["text"].as_str().unwrap_or_default(), &known);
        let calls: Vec<_> = reading
            .calls
            .iter()
            .map(|call| serde_json::json!({"name": call.tool.as_str(), "arguments": call.arguments.value()}))
            .collect();
        writeln!(
            out,
            "{}",
            serde_json::json!({"calls": calls, "unreadable": reading.unreadable.len(), "prose": reading.prose})
        )?;
    }
    Ok(())
}
