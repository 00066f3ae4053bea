//! Mends one malformed JSON text per line of input (each a JSON string) and prints what was meant, or `null`.
use std::io::{BufRead as _, Write as _};

fn main() -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let text: String = serde_json::from_str(&line?).unwrap_or_default();
        match toolhub_llm::repair::repair_json(&text) {
            Some(repaired) => {
                writeln!(out, "{}", serde_json::json!([repaired.json.get(), repaired.ending as u8]))?;
            }
            None => writeln!(out, "null")?,
        }
    }
    Ok(())
}
