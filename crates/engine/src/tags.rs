//! Capability tags of tools, derived from their names and descriptions by a table of English and Chinese words. The
//! table is data, and users can extend it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use toolhub_core::{Tool, ToolDefinition};

/// The built-in table.
const TABLE: &str = include_str!("tags.tsv");

/// Read-only capabilities. A call by one of them must not reach a tool whose name indicates a change (`write_query`,
/// `set_time`), unless the configuration tags it explicitly.
const READING: [&str; 5] = ["search", "read", "extract", "calculate", "time"];
const WRITING: &str = "write";

static BUILT_IN: LazyLock<Vec<Row>> = LazyLock::new(|| TABLE.lines().filter_map(Row::parse).collect());

/// Derives the capabilities of tools.
#[derive(Debug, Clone, Default)]
pub struct Tagger {
    /// Configured rows; they precede the built-in ones.
    configured: Vec<Row>,
}

#[derive(Debug, Clone)]
struct Row {
    tags: Vec<String>,
    words: Vec<Word>,
}

/// A pattern to find in a name or a text.
#[derive(Debug, Clone)]
enum Word {
    /// A sequence of words.
    Words { words: Vec<String>, scope: MatchScope },
    /// A word prefix.
    Beginning(String),
    /// A substring: Chinese has no spaces between words.
    Characters(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MatchScope {
    Anywhere,
    NameOnly,
}

impl Row {
    fn parse(line: &str) -> Option<Self> {
        let line = line.split_once('#').map_or(line, |(before, _)| before);
        let mut columns = line.split('\t');
        let tags: Vec<String> = columns.next()?.split(',').map(|tag| tag.trim().to_owned()).collect();
        let words: Vec<Word> = columns.flat_map(str::split_whitespace).map(Word::parse).collect();
        (!words.is_empty()).then_some(Self { tags, words })
    }
}

impl Word {
    fn parse(text: &str) -> Self {
        let text = text.to_lowercase();
        if !text.is_ascii() {
            return Self::Characters(text);
        }
        if let Some(beginning) = text.strip_suffix('*') {
            return Self::Beginning(beginning.to_owned());
        }
        let (text, scope) = match text.strip_prefix('~') {
            Some(rest) => (rest, MatchScope::NameOnly),
            None => (text.as_str(), MatchScope::Anywhere),
        };
        let words = text.split(['+', ' ', '_', '-']).filter(|word| !word.is_empty());
        Self::Words { words: words.map(str::to_owned).collect(), scope }
    }

    fn is_in(&self, text: &PreparedText, scope: MatchScope) -> bool {
        match self {
            Self::Characters(characters) => text.lowercase.contains(characters.as_str()),
            Self::Beginning(beginning) => text.words.iter().any(|word| word.starts_with(beginning.as_str())),
            Self::Words { scope: MatchScope::NameOnly, .. } if scope == MatchScope::Anywhere => false,
            Self::Words { words, .. } => {
                !words.is_empty() && text.words.windows(words.len()).any(|window| window == words.as_slice())
            }
        }
    }
}

/// A text prepared for matching.
struct PreparedText {
    lowercase: String,
    words: Vec<String>,
}

impl PreparedText {
    fn new(text: &str) -> Self {
        Self { words: split(text), lowercase: text.to_lowercase() }
    }
}

/// Splits a name or a text into lowercase words, also at case changes: `readDataFromExcel`, `read_data`.
fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    for letter in text.chars() {
        let hump = letter.is_uppercase() && (before.is_lowercase() || before.is_ascii_digit());
        if (!letter.is_alphanumeric() || hump) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
        before = letter;
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// The first sentence of a description, at most 200 characters: it states what the tool does.
fn opening(description: &str) -> &str {
    let text = description.trim_start();
    let limit = text.char_indices().nth(200).map_or(text.len(), |(at, _)| at);
    let text = &text[..limit];
    let ends = ["。", "\n", ". ", "；"];
    let end = ends.iter().filter_map(|end| text.find(end)).min().unwrap_or(text.len());
    &text[..end]
}

impl Tagger {
    /// Creates a tagger with additional rows: a tag and its words.
    pub fn with(configured: &BTreeMap<String, Vec<String>>) -> Self {
        let row = |(tag, words): (&String, &Vec<String>)| Row {
            tags: vec![tag.to_lowercase()],
            words: words.iter().map(|word| Word::parse(word)).collect(),
        };
        Self { configured: configured.iter().map(row).collect() }
    }

    /// The capabilities of a tool: the configured tags, or else those derived from its name and description.
    pub fn tags_of(&self, tool: &Tool) -> Vec<String> {
        if !tool.tags.is_empty() {
            return tool.tags.clone();
        }
        self.derive(&tool.definition)
    }

    fn derive(&self, definition: &ToolDefinition) -> Vec<String> {
        let mut tags: Vec<String> = Vec::new();
        let mut changes = false;
        let name = format!("{} {}", definition.name(), definition.title().unwrap_or_default());
        let texts = [
            (PreparedText::new(&name), MatchScope::NameOnly),
            (PreparedText::new(opening(definition.description())), MatchScope::Anywhere),
        ];
        for (text, scope) in &texts {
            for row in self.configured.iter().chain(BUILT_IN.iter()) {
                if row.words.iter().any(|word| word.is_in(text, *scope)) {
                    for tag in &row.tags {
                        if !tags.contains(tag) {
                            tags.push(tag.clone());
                        }
                    }
                }
            }
            if *scope == MatchScope::NameOnly {
                changes = tags.iter().any(|tag| tag == WRITING) && definition.hints().read_only != Some(true);
            }
        }
        if changes {
            let is_configured = |tag: &String| self.configured.iter().any(|row| row.tags.contains(tag));
            tags.retain(|tag| is_configured(tag) || !READING.contains(&tag.as_str()));
        }
        tags
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolhub_core::{RawJson, Source};

    fn tool(name: &str, description: &str) -> Tool {
        let raw = RawJson::from(serde_json::json!({"name": name, "description": description}));
        Tool::new(Source::Native, ToolDefinition::parse(raw).unwrap())
    }

    #[test]
    fn derives_tags_from_names_and_texts_in_both_languages() {
        let check = |name: &str, description: &str, expect: &[&str]| {
            assert_eq!(Tagger::default().tags_of(&tool(name, description)), expect, "{name} {description}");
        };
        check("search_web", "Looks things up.", &["search", "web", "research"]);
        check("t1", "在互联网上搜索信息。", &["search", "web", "research"]);
        check("t2", "查找资料", &["search", "web", "research"]);
        check("calculate", "", &["calculate"]);
        check("t3", "计算表达式的值", &["calculate"]);
        check("get_time", "The time now", &["time", "read"]);
        check("t4", "返回当前时间", &["time"]);
        check("readDataFromExcel", "", &["read", "table"]);
        check("t5", "Translates a text. Not for files.", &["translate"]);
        check("bash", "Update your sheets", &[]);
        check("t6", "Reviews a pull request", &["git"]);
    }

    #[test]
    fn configured_tags_extend_and_override_derived_tags() {
        let own = BTreeMap::from([("travel".to_owned(), vec!["flight*".to_owned(), "机票".to_owned()])]);
        let tagger = Tagger::with(&own);
        assert_eq!(tagger.tags_of(&tool("book_flights", "")), ["travel"]);
        assert_eq!(tagger.tags_of(&tool("t", "预订机票")), ["travel"]);
        let explicit = Tool { tags: vec!["x".to_owned()], ..tool("search", "search") };
        assert_eq!(tagger.tags_of(&explicit), ["x"]);
    }

    #[test]
    fn a_tool_named_for_a_change_has_no_reading_capability() {
        let tags = |name: &str, description: &str| Tagger::default().tags_of(&tool(name, description));
        assert_eq!(tags("write_query", "Execute an INSERT on the SQLite database"), ["write", "database"]);
        assert_eq!(tags("set_time", "Sets the clock"), ["write"]);
        assert_eq!(
            tags("read_query", "Execute a SELECT on the SQLite database"),
            ["search", "read", "database"]
        );
        let raw = serde_json::json!({"name": "get_or_create_query", "annotations": {"readOnlyHint": true}});
        let hinted = Tool::new(Source::Native, ToolDefinition::parse(RawJson::from(raw)).unwrap());
        assert_eq!(Tagger::default().tags_of(&hinted), ["search", "read", "write"]);
        let own = BTreeMap::from([("search".to_owned(), vec!["write_query".to_owned()])]);
        assert!(Tagger::with(&own).tags_of(&tool("write_query", "")).contains(&"search".to_owned()));
    }

    #[test]
    fn tag_table_is_valid() {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
        for line in lines {
            assert_eq!(line.split('\t').count(), 3, "{line}");
            assert!(Row::parse(line).is_some(), "{line}");
        }
    }
}
