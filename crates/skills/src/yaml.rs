//! Parses YAML into a tree with line numbers. Size and depth are limited, since the input is untrusted and aliases can
//! expand.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput};
use serde_json::{Map, Number, Value};

/// Maximum nesting depth.
const MAX_DEPTH: usize = 32;
/// Maximum number of nodes, with aliases expanded.
const MAX_NODES: usize = 20_000;
/// Maximum bytes of text repeated by aliases: a long text with many aliases has few nodes.
const MAX_ALIASED_BYTES: usize = 1 << 20;

const TOO_LARGE: &str = "it is too large or nested too deeply";

/// A parse error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct YamlError {
    /// The line, from 1.
    pub(crate) line: usize,
    pub(crate) problem: String,
}

/// A node of a document.
#[derive(Debug, Clone)]
pub(crate) struct YamlNode {
    pub(crate) part: NodeContent,
    /// Its first line, from 1.
    pub(crate) line: usize,
}

#[derive(Debug, Clone)]
pub(crate) enum NodeContent {
    Scalar(Value),
    List(Vec<YamlNode>),
    Map(Vec<YamlMember>),
}

/// A key and its value.
#[derive(Debug, Clone)]
pub(crate) struct YamlMember {
    pub(crate) key: String,
    /// The line of the key.
    pub(crate) line: usize,
    pub(crate) node: YamlNode,
}

impl YamlNode {
    /// Returns the members of a mapping; empty for other nodes.
    pub(crate) fn members(&self) -> &[YamlMember] {
        match &self.part {
            NodeContent::Map(members) => members,
            NodeContent::Scalar(_) | NodeContent::List(_) => &[],
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&YamlMember> {
        self.members().iter().find(|member| member.key == key)
    }

    /// Returns the text of a string scalar.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.part {
            NodeContent::Scalar(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.part, NodeContent::Scalar(Value::Null))
    }

    /// Converts the node to a JSON value.
    pub(crate) fn value(&self) -> Value {
        match &self.part {
            NodeContent::Scalar(value) => value.clone(),
            NodeContent::List(items) => Value::Array(items.iter().map(Self::value).collect()),
            NodeContent::Map(members) => {
                let pairs = members.iter().map(|member| (member.key.clone(), member.node.value()));
                Value::Object(pairs.collect::<Map<_, _>>())
            }
        }
    }
}

/// Parses a text with a single document; an empty one is null.
pub(crate) fn parse(text: &str) -> Result<YamlNode, YamlError> {
    let mut reader =
        Reader { events: Parser::new_from_str(text), anchors: HashMap::new(), parts: 0, aliased: 0 };
    let mut root = None;
    loop {
        match reader.next()? {
            (Event::StreamEnd, _) => {
                return Ok(root.unwrap_or(YamlNode { part: NodeContent::Scalar(Value::Null), line: 1 }));
            }
            (Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd, _) => {}
            (_, span) if root.is_some() => {
                return Err(error_at(span, "a second document begins here"));
            }
            (event, span) => root = Some(reader.node(event, span, 0)?),
        }
    }
}

fn error_at(span: Span, problem: &str) -> YamlError {
    YamlError { line: span.start.line().max(1), problem: problem.to_owned() }
}

fn unreadable(error: &ScanError) -> YamlError {
    YamlError { line: error.marker().line().max(1), problem: error.info().to_owned() }
}

struct Reader<'a> {
    events: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, YamlNode>,
    parts: usize,
    /// Bytes of text repeated by aliases so far.
    aliased: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), YamlError> {
        match self.events.next() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => Err(unreadable(&error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<YamlNode, YamlError> {
        self.parts += 1;
        if depth > MAX_DEPTH || self.parts > MAX_NODES {
            return Err(error_at(span, TOO_LARGE));
        }
        let line = span.start.line().max(1);
        let (part, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let text = text.into_owned();
                let plain = style == ScalarStyle::Plain && tag.is_none_or(|tag| tag.suffix != "str");
                (NodeContent::Scalar(if plain { scalar(text) } else { Value::String(text) }), anchor)
            }
            Event::SequenceStart(anchor, _) => (self.list(depth)?, anchor),
            Event::MappingStart(anchor, _) => (self.map(depth)?, anchor),
            Event::Alias(anchor) => {
                let known = self.anchors.get(&anchor);
                let node = known.ok_or_else(|| error_at(span, "an alias without its anchor"))?;
                self.parts += size(node);
                self.aliased += text_bytes(node);
                if self.parts > MAX_NODES || self.aliased > MAX_ALIASED_BYTES {
                    return Err(error_at(span, TOO_LARGE));
                }
                (node.part.clone(), 0)
            }
            _ => (NodeContent::Scalar(Value::Null), 0),
        };
        let node = YamlNode { part, line };
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<NodeContent, YamlError> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd | Event::StreamEnd, _) => return Ok(NodeContent::List(items)),
                (event, span) => items.push(self.node(event, span, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<NodeContent, YamlError> {
        let mut members: Vec<YamlMember> = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd | Event::StreamEnd) {
                return Ok(NodeContent::Map(members));
            }
            // A key is always its text, whatever type it would have as a value.
            let key = match &event {
                Event::Scalar(text, ..) => text.clone().into_owned(),
                _ => return Err(error_at(span, "a key must be a plain word")),
            };
            let line = self.node(event, span, depth + 1)?.line;
            let (event, span) = self.next()?;
            let node = self.node(event, span, depth + 1)?;
            if let Some(first) = members.iter().find(|member| member.key == key) {
                let problem = format!("`{key}` is defined here and on line {}", first.line);
                return Err(YamlError { line, problem });
            }
            members.push(YamlMember { key, line, node });
        }
    }
}

fn size(node: &YamlNode) -> usize {
    match &node.part {
        NodeContent::Scalar(_) => 1,
        NodeContent::List(items) => 1 + items.iter().map(size).sum::<usize>(),
        NodeContent::Map(members) => 1 + members.iter().map(|member| 1 + size(&member.node)).sum::<usize>(),
    }
}

/// Total size of all keys and texts, in bytes.
fn text_bytes(node: &YamlNode) -> usize {
    match &node.part {
        NodeContent::Scalar(Value::String(text)) => text.len(),
        NodeContent::Scalar(_) => 0,
        NodeContent::List(items) => items.iter().map(text_bytes).sum(),
        NodeContent::Map(members) => {
            members.iter().map(|member| member.key.len() + text_bytes(&member.node)).sum()
        }
    }
}

/// Resolves a plain scalar by the core schema of YAML 1.2.
fn scalar(text: String) -> Value {
    match text.as_str() {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    number(&text).map_or(Value::String(text), Value::Number)
}

fn number(text: &str) -> Option<Number> {
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok().map(Number::from);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return u64::from_str_radix(digits, 8).ok().map(Number::from);
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        let without_plus = text.strip_prefix('+').unwrap_or(text);
        let small = without_plus.parse::<i64>().ok().map(Number::from);
        return small.or_else(|| without_plus.parse::<f64>().ok().and_then(Number::from_f64));
    }
    let numeric = unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        && unsigned.contains(|c: char| c.is_ascii_digit())
        && unsigned.chars().all(|c| c.is_ascii_digit() || ".eE+-".contains(c));
    numeric.then(|| text.parse::<f64>().ok().and_then(Number::from_f64)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn value(text: &str) -> Value {
        parse(text).unwrap().value()
    }

    #[test]
    fn parses_scalars_by_yaml_core_schema() {
        let text =
            "a: 1\nb: 1.5\nc: yes\nd: true\ne: ~\nf: 0x10\ng: 2026-01-02\nh: '1'\ni: 1.2.3\nj: -3\nk: 1e3\n";
        let expect = json!({"a": 1, "b": 1.5, "c": "yes", "d": true, "e": null, "f": 16, "g": "2026-01-02",
            "h": "1", "i": "1.2.3", "j": -3, "k": 1000.0});
        assert_eq!(value(text), expect);
    }

    #[test]
    fn records_line_numbers() {
        let tree = parse("a: 1\nb:\n  c: 2\n").unwrap();
        let b = tree.get("b").unwrap();
        assert_eq!((b.line, b.node.get("c").unwrap().line), (2, 3));
        assert_eq!(
            parse("a: 1\na: 2\n").unwrap_err(),
            YamlError { line: 2, problem: "`a` is defined here and on line 1".to_owned() }
        );
        assert_eq!(parse("a: b: c\n").unwrap_err().line, 1);
        assert!(parse("").unwrap().is_null());
    }

    #[test]
    fn rejects_alias_expansion_bombs() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let inner = vec![format!("*a{}", level - 1); 10].join(", ");
            text += &format!("a{level}: &a{level} [{inner}]\n");
        }
        assert!(parse(&text).unwrap_err().problem.contains("too large"));
        assert!(parse(&"[".repeat(100_000)).is_err());
        // Few nodes with long text: 100 kB of input that would expand to gigabytes.
        let long = |aliases: usize| {
            format!("a: &a \"{}\"\nb: [{}]\n", "x".repeat(100_000), vec!["*a"; aliases].join(", "))
        };
        assert!(parse(&long(5_000)).unwrap_err().problem.contains("too large"));
        assert!(parse(&long(3)).is_ok());
    }
}
