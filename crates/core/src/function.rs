//! Native tools: the trait that makes a function a tool. The `#[tool]` macro implements it.

use serde::Serialize;
use serde_json::Value;

use crate::error::ToolError;
use crate::json::RawJson;
use crate::outcome::ToolOutput;
use crate::ports::{BoxFuture, CallContext};
use crate::tool::ToolDefinition;

/// Number formats that schemars writes but other JSON Schema implementations do not support.
const NUMBER_FORMATS: [&str; 12] = [
    "int8", "int16", "int32", "int64", "int128", "uint8", "uint16", "uint32", "uint64", "uint128", "float",
    "double",
];

/// Reduces a schema to the subset that all frameworks support: optional arguments are not required instead of
/// nullable, and numbers have bounds instead of formats.
pub fn portable_schema(mut schema: Value) -> RawJson {
    simplify(&mut schema);
    RawJson::from(schema)
}

fn simplify(schema: &mut Value) {
    match schema {
        Value::Array(parts) => parts.iter_mut().for_each(simplify),
        Value::Object(members) => {
            if let Some(Value::Array(kinds)) = members.get("type") {
                let mut kinds: Vec<Value> = kinds.iter().filter(|kind| *kind != "null").cloned().collect();
                let kind = if kinds.len() == 1 { kinds.swap_remove(0) } else { Value::Array(kinds) };
                members.insert("type".to_owned(), kind);
                if let Some(Value::Array(values)) = members.get_mut("enum") {
                    values.retain(|value| !value.is_null());
                }
            }
            let format = members.get("format").and_then(Value::as_str);
            if format.is_some_and(|format| NUMBER_FORMATS.contains(&format)) {
                members.shift_remove("format");
            }
            if let Some(Value::Array(choices)) = members.get_mut("anyOf") {
                choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
                if let [Value::Object(only)] = &mut choices[..] {
                    let only = std::mem::take(only);
                    members.shift_remove("anyOf");
                    for (key, value) in only {
                        members.entry(key).or_insert(value);
                    }
                }
            }
            members.values_mut().for_each(simplify);
        }
        _ => {}
    }
}

/// A tool that runs inside this process.
pub trait NativeTool: Send + Sync + 'static {
    /// The definition. Called once, when the tool is added.
    fn definition(&self) -> ToolDefinition;

    /// Runs the tool; the arguments are already validated against the schema.
    fn call<'a>(
        &'a self,
        arguments: RawJson,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// Return types of native tools.
pub trait IntoOutput {
    /// Converts the value to an output or an error.
    fn into_output(self) -> Result<ToolOutput, ToolError>;
}

impl IntoOutput for ToolOutput {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        Ok(self)
    }
}

impl IntoOutput for String {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(self))
    }
}

impl IntoOutput for &str {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(self))
    }
}

impl IntoOutput for () {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text("done"))
    }
}

impl IntoOutput for Value {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        match self {
            Self::String(text) => Ok(ToolOutput::text(text)),
            other => Ok(ToolOutput::json(other)),
        }
    }
}

/// Any serialisable value as a structured output.
#[derive(Debug, Clone, Copy)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoOutput for Json<T> {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::json(RawJson::of(&self.0)))
    }
}

macro_rules! plain {
    ($($kind:ty)*) => {$(
        impl IntoOutput for $kind {
            fn into_output(self) -> Result<ToolOutput, ToolError> {
                Ok(ToolOutput::text(self.to_string()))
            }
        }
    )*};
}
plain!(bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 isize usize f32 f64);

impl<T: IntoOutput, E: Into<ToolError>> IntoOutput for Result<T, E> {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        self.map_err(Into::into)?.into_output()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn simplifies_optional_arguments_and_number_formats() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": ["string", "null"], "enum": ["x", "y", null]},
            "b": {"type": ["integer", "null"], "format": "uint8", "minimum": 1, "maximum": 255},
            "c": {"description": "d", "anyOf": [{"type": "array", "items": {"format": "double"}}, {"type": "null"}]},
            "format": {"type": "string", "format": "date"},
        }});
        let plain = json!({"type": "object", "properties": {
            "a": {"type": "string", "enum": ["x", "y"]},
            "b": {"type": "integer", "minimum": 1, "maximum": 255},
            "c": {"description": "d", "type": "array", "items": {}},
            "format": {"type": "string", "format": "date"},
        }});
        assert_eq!(portable_schema(schema).value(), plain);
    }
}
