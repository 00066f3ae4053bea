//! Extracts the searchable texts of a tool's definition, by field.

use serde_json::Value;
use toolhub_core::Tool;
use toolhub_core::text::byte_prefix;

use crate::field::Field;

/// Maximum depth of nested schemas; deeper ones carry no useful text.
const MAX_DEPTH: usize = 12;

/// Maximum size of the texts of a definition: the beginning states the purpose of the tool.
const MAX_DEFINITION_BYTES: usize = 48 << 10;

/// Calls `sink` with every searchable text of `tool`.
pub(crate) fn texts(tool: &Tool, mut sink: impl FnMut(Field, &str)) {
    let definition = &tool.definition;
    sink(Field::Name, definition.name().as_str());
    if let Some(title) = definition.title() {
        sink(Field::Title, byte_prefix(title, MAX_DEFINITION_BYTES));
    }
    sink(Field::Description, byte_prefix(definition.description(), MAX_DEFINITION_BYTES));
    for tag in &tool.tags {
        sink(Field::Tag, tag);
    }
    sink(Field::Source, &tool.source.to_string());
    let mut walk = Walk { sink: &mut sink, remaining: MAX_DEFINITION_BYTES };
    walk.schema(&definition.input_schema().value(), 0);
    if let Some(members) = definition.raw().object() {
        for key in ["examples", "inputExamples", "input_examples"] {
            if let Some(examples) = members.get(key) {
                walk.strings(Field::Example, &examples.value(), 0);
            }
        }
    }
}

struct Walk<'a, F> {
    sink: &'a mut F,
    remaining: usize,
}

impl<F: FnMut(Field, &str)> Walk<'_, F> {
    fn emit(&mut self, field: Field, text: &str) {
        if let Some(remaining) = self.remaining.checked_sub(text.len()) {
            self.remaining = remaining;
            (self.sink)(field, text);
        }
    }

    fn schema(&mut self, schema: &Value, depth: usize) {
        if depth > MAX_DEPTH || self.remaining == 0 {
            return;
        }
        match schema {
            Value::Object(members) => {
                for (key, value) in members {
                    self.member(key, value, depth);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.schema(item, depth + 1)),
            _ => {}
        }
    }

    fn member(&mut self, key: &str, value: &Value, depth: usize) {
        match (key, value) {
            ("properties", Value::Object(properties)) => {
                for (name, schema) in properties {
                    self.emit(Field::ParameterName, name);
                    self.schema(schema, depth + 1);
                }
            }
            ("description" | "title" | "const", Value::String(text)) if depth > 0 => {
                self.emit(Field::ParameterText, text);
            }
            ("enum", Value::Array(_)) => self.strings(Field::ParameterText, value, depth),
            ("examples" | "example", _) => self.strings(Field::Example, value, depth),
            ("default" | "required" | "$schema" | "$id", _) => {}
            _ => self.schema(value, depth + 1),
        }
    }

    fn strings(&mut self, field: Field, value: &Value, depth: usize) {
        if depth > MAX_DEPTH || self.remaining == 0 {
            return;
        }
        match value {
            Value::String(text) => self.emit(field, text),
            Value::Array(items) => items.iter().for_each(|item| self.strings(field, item, depth + 1)),
            Value::Object(members) => members.values().for_each(|item| self.strings(field, item, depth + 1)),
            _ => {}
        }
    }
}
