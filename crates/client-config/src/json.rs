//! JSON with comments: parsed leniently, and edited without changing any other byte.

use std::path::Path;

use jsonc_parser::cst::{CstInputValue, CstRootNode};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};

use crate::error::ConfigError;
use crate::source::{Entries, Obstacle, SourceFile, not_an_object};

pub(crate) fn parse(file: &Path, text: &str) -> Result<Value, ConfigError> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default())
        .map_err(|error| ConfigError::jsonc(file, text, &error))?;
    match parsed.value.map(Value::from) {
        None => Ok(Value::Object(Map::new())),
        Some(document) if document.is_object() => Ok(document),
        Some(_) => Err(not_an_object(file, &[])),
    }
}

pub(crate) fn insert(source: SourceFile<'_>, path: &[&str], entries: &Entries) -> Result<String, Obstacle> {
    let SourceFile { file, text } = source;
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let root = CstRootNode::parse(text, &ParseOptions::default())
        .map_err(|error| ConfigError::jsonc(file, text, &error))?;
    let mut object = root.object_value_or_create().ok_or_else(|| not_an_object(file, &[]))?;
    for (depth, key) in path.iter().enumerate() {
        let inner = object.object_value_or_create(key).ok_or_else(|| not_an_object(file, &path[..=depth]))?;
        object.ensure_multiline();
        object = inner;
    }
    for (id, members) in entries {
        let value = input_of(&Value::Object(members.clone()));
        match object.get(id) {
            Some(existing) => existing.set_value(value),
            None => drop(object.append(id, value)),
        }
    }
    object.ensure_multiline();
    let mut text = root.to_string();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

pub(crate) fn remove(source: SourceFile<'_>, path: &[&str], ids: &[&str]) -> Result<String, Obstacle> {
    let SourceFile { file, text } = source;
    let root = CstRootNode::parse(text, &ParseOptions::default())
        .map_err(|error| ConfigError::jsonc(file, text, &error))?;
    let mut object = root.object_value().ok_or_else(|| not_an_object(file, &[]))?;
    for (depth, key) in path.iter().enumerate() {
        object = object.object_value(key).ok_or_else(|| not_an_object(file, &path[..=depth]))?;
    }
    for id in ids {
        if let Some(property) = object.get(id) {
            property.remove();
        }
    }
    Ok(root.to_string())
}

fn input_of(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(list) => CstInputValue::Array(list.iter().map(input_of).collect()),
        Value::Object(members) => CstInputValue::Object(
            members.iter().map(|(name, value)| (name.clone(), input_of(value))).collect(),
        ),
    }
}
