//! A YAML document as a tree with line numbers.

use std::collections::HashMap;
use std::path::Path;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};
use serde_json::{Map, Value};
use toolhub_core::lang::LocalizedText;

use crate::error::ConfigError;

/// Maximum nesting depth: more than any configuration file has, and safe for recursion.
const MAX_DEPTH: usize = 64;
/// Maximum number of nodes, with aliases expanded.
const MAX_NODES: usize = 200_000;

/// A node of the document.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// The content.
    pub(crate) content: NodeContent,
    /// The first line, from 0.
    pub(crate) line: usize,
    /// The indentation in characters.
    pub(crate) column: usize,
    /// Whether it is in flow style or an alias, so that it cannot be edited by lines.
    pub(crate) flow: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum NodeContent {
    Plain(String),
    Quoted(String),
    List(Vec<Node>),
    Object {
        members: Vec<(Node, Node)>,
        /// The first significant line after it, from 0.
        end: usize,
    },
}

impl Node {
    /// The key and value of a member of a mapping.
    pub(crate) fn get(&self, key: &str) -> Option<&(Node, Node)> {
        let NodeContent::Object { members, .. } = &self.content else { return None };
        members.iter().find(|(name, _)| name.text() == Some(key))
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.content {
            NodeContent::Plain(text) | NodeContent::Quoted(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.content, NodeContent::Plain(text) if scalar(text).is_null())
    }

    /// The value without positions.
    pub(crate) fn value(&self) -> Value {
        match &self.content {
            NodeContent::Plain(text) => scalar(text),
            NodeContent::Quoted(text) => Value::String(text.clone()),
            NodeContent::List(items) => Value::Array(items.iter().map(Self::value).collect()),
            NodeContent::Object { members, .. } => {
                let pair = |(key, value): &(Self, Self)| (key_text(key), value.value());
                Value::Object(members.iter().map(pair).collect::<Map<_, _>>())
            }
        }
    }
}

fn key_text(key: &Node) -> String {
    key.text().map_or_else(|| key.value().to_string(), str::to_owned)
}

/// Resolves a plain scalar by the core schema of YAML 1.2.
fn scalar(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    if let Ok(integer) = text.parse::<i64>() {
        return integer.into();
    }
    let numeric = text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first))
        && text.chars().all(|c| c.is_ascii_digit() || "+-.eE".contains(c));
    let float = text.parse::<f64>().ok().filter(|_| numeric).and_then(serde_json::Number::from_f64);
    float.map_or_else(|| Value::String(text.to_owned()), Value::Number)
}

/// Parses the single document of a text; `None` if there is none.
pub(crate) fn tree(file: &Path, text: &str) -> Result<Option<Node>, ConfigError> {
    let mut builder =
        Builder { events: Parser::new_from_str(text), file, text, anchors: HashMap::new(), nodes: 0 };
    let mut root = None;
    loop {
        match builder.next()? {
            (Event::StreamEnd, _) => return Ok(root),
            (Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd, _) => {}
            (_, span) if root.is_some() => {
                let message = LocalizedText::new(
                    "the file contains more than one YAML document",
                    "文件含有多个 YAML 文档",
                );
                return Err(builder.error_at(span, message));
            }
            (event, span) => root = Some(builder.node(event, span, 0)?),
        }
    }
}

struct Builder<'a> {
    events: Parser<'a, saphyr_parser::StrInput<'a>>,
    file: &'a Path,
    text: &'a str,
    anchors: HashMap<usize, Node>,
    nodes: usize,
}

impl<'a> Builder<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), ConfigError> {
        match self.events.next() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => Err(self.syntax_error(&error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn syntax_error(&self, error: &ScanError) -> ConfigError {
        let (position, message) = (error.marker(), error.info());
        ConfigError {
            file: self.file.to_owned(),
            position: Some((position.line(), position.col() + 1)),
            message: LocalizedText::new(
                format!("not valid YAML: {message}"),
                format!("不是有效的 YAML：{message}"),
            ),
        }
    }

    fn error_at(&self, span: Span, message: LocalizedText) -> ConfigError {
        let position = Some((span.start.line(), span.start.col() + 1));
        ConfigError { file: self.file.to_owned(), position, message }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, ConfigError> {
        self.nodes += 1;
        if depth > MAX_DEPTH || self.nodes > MAX_NODES {
            let message = LocalizedText::new(
                "the file is too large or too deep to be a config",
                "文件过大或嵌套过深，不像配置文件",
            );
            return Err(self.error_at(span, message));
        }
        // An alias cannot be edited: its content is at the anchor.
        let flow = matches!(event, Event::Alias(_)) || self.is_flow_style(span);
        let (content, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let text = text.into_owned();
                let string = tag.is_some_and(|tag| tag.suffix == "str");
                let plain = style == ScalarStyle::Plain && !string;
                (if plain { NodeContent::Plain(text) } else { NodeContent::Quoted(text) }, anchor)
            }
            Event::SequenceStart(anchor, _) => (self.list(depth)?, anchor),
            Event::MappingStart(anchor, _) => (self.object(depth)?, anchor),
            Event::Alias(anchor) => {
                let known = self.anchors.get(&anchor).cloned();
                let unknown = || LocalizedText::new("an alias without its anchor", "别名没有对应的锚点");
                let node = known.ok_or_else(|| self.error_at(span, unknown()))?;
                self.nodes += size(&node);
                (node.content, 0)
            }
            _ => (NodeContent::Plain(String::new()), 0),
        };
        let node =
            Node { content, line: span.start.line().saturating_sub(1), column: span.start.col(), flow };
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    /// Whether a collection is in flow style: it starts with a bracket, while a block starts at its first item.
    fn is_flow_style(&self, span: Span) -> bool {
        let line = self.text.lines().nth(span.start.line().saturating_sub(1)).unwrap_or_default();
        span.start != span.end && matches!(line.chars().nth(span.start.col()), Some('{' | '['))
    }

    fn list(&mut self, depth: usize) -> Result<NodeContent, ConfigError> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd | Event::StreamEnd, _) => return Ok(NodeContent::List(items)),
                (event, span) => items.push(self.node(event, span, depth + 1)?),
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<NodeContent, ConfigError> {
        let mut members = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd | Event::StreamEnd) {
                let end = span.start.line().saturating_sub(1);
                return Ok(NodeContent::Object { members, end });
            }
            let key = self.node(event, span, depth + 1)?;
            let (event, span) = self.next()?;
            members.push((key, self.node(event, span, depth + 1)?));
        }
    }
}

fn size(node: &Node) -> usize {
    match &node.content {
        NodeContent::List(items) => 1 + items.iter().map(size).sum::<usize>(),
        NodeContent::Object { members, .. } => {
            1 + members.iter().map(|(key, value)| size(key) + size(value)).sum::<usize>()
        }
        _ => 1,
    }
}
