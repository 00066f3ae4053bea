//! Native tools: what a function must say of itself to be a tool. `#[tool]` writes this for you.

use serde::Serialize;
use serde_json::Value;

use crate::error::ToolError;
use crate::json::RawJson;
use crate::outcome::ToolOutput;
use crate::ports::{BoxFuture, CallContext};
use crate::tool::ToolDefinition;

/// A tool that runs inside this process.
pub trait NativeTool: Send + Sync + 'static {
    /// What it is. Asked once, when the tool is added.
    fn definition(&self) -> ToolDefinition;

    /// Runs it; the arguments were checked against the schema before.
    fn call<'a>(
        &'a self,
        arguments: RawJson,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// What a native tool may return.
pub trait IntoOutput {
    /// The output, or the failure.
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
