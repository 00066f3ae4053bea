//! The terms of definitions and requests as indexed, so that other rankings can be compared over the same terms.

use toolhub_core::Tool;

use crate::definition;
use crate::document::terms;
use crate::text::Stemmer;

/// Splits texts into the terms of the index: stems of English words without stop words, parts of identifiers, single
/// Chinese characters and pairs of them. Each term is a hash of its text.
#[derive(Debug, Default)]
pub struct Tokenizer {
    stemmer: Stemmer,
}

impl Tokenizer {
    /// The terms of a text, in order, with repetitions.
    pub fn text(&mut self, text: &str) -> Vec<u64> {
        let mut found = Vec::new();
        terms(text, &mut self.stemmer, |term, _| found.push(term.bits()));
        found
    }

    /// The terms of all indexed texts of a definition: name, title, description, tags, source, and the names, texts
    /// and examples of parameters, without translations.
    pub fn tool(&mut self, tool: &Tool) -> Vec<u64> {
        let mut found = Vec::new();
        definition::texts(tool, |_, text| {
            terms(text, &mut self.stemmer, |term, _| found.push(term.bits()));
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use toolhub_core::{RawJson, Source, ToolDefinition};

    use super::*;

    #[test]
    fn requests_and_definitions_share_terms() {
        let definition = serde_json::json!({
            "name": "readFile",
            "description": "Reading the files of 文件夹",
            "inputSchema": {"type": "object", "properties": {"path": {"type": "string", "description": "where"}}},
        });
        let tool = Tool::new(Source::Native, ToolDefinition::parse(RawJson::of(&definition)).unwrap());
        let mut tokenizer = Tokenizer::default();
        let of_tool = tokenizer.tool(&tool);
        for shared in ["read", "files", "path", "ReadFile", "件夹"] {
            let terms = tokenizer.text(shared);
            assert!(terms.iter().all(|term| of_tool.contains(term)) && !terms.is_empty(), "{shared}");
        }
        assert!(tokenizer.text("the of").is_empty(), "stop words");
        assert!(!of_tool.contains(&tokenizer.text("delete")[0]));
        assert_eq!(tokenizer.text("read read").len(), 2, "repetitions count");
    }
}
