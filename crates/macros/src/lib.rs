//! The attribute `#[tool]`. `toolhub-core` defines the trait of a tool; this crate generates its implementation.

mod argument_error;
mod docs;
mod expand;
mod function;
mod options;
mod parameter;
mod schema_type;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

/// Turns an async function into a tool.
///
/// ```ignore
/// /// Current weather for a city.
/// #[tool(read_only)]
/// async fn weather(#[doc = "City name"] city: String, days: Option<u8>) -> Result<String, ToolError> { … }
/// ```
///
/// The function becomes a unit struct of the same name and visibility that implements `NativeTool`, so that `weather`
/// is a value that can be passed to the hub; `weather::run(city, days)` still calls the function.
///
/// # Options
///
/// - `name = "…"`: the tool's name, if it differs from the function's.
/// - `title = "…"`: the display name.
/// - `read_only`, `destructive`, `idempotent`, `open_world`: the MCP hints of the tool; `= false` negates a hint.
///   Omitted hints are absent from the definition.
/// - `crate = path`: the module with the crates that the expansion needs; the default is `::toolhub::__private`.
///
/// # Parameters
///
/// Their types must implement `serde::Deserialize` and `schemars::JsonSchema`, without borrowed data. An argument that
/// is not a parameter is an error.
///
/// - `Option<T>`: optional.
/// - a doc comment or `#[doc = "…"]`: the description of the parameter in the schema.
/// - `#[default(expression)]`: the value of an omitted argument. It is included in the schema if its type can be
///   serialized.
/// - `#[schemars(…)]`: passed on, for ranges and patterns.
/// - `&CallContext`: the context of the call; not in the schema.
/// - `#[state] name: &T`: state of the tool; not in the schema. The struct becomes `weather(Arc<T>)`.
///
/// The function's result is any type that implements `IntoOutput`.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(options.into(), item.into()).unwrap_or_else(|error| error.into_compile_error()).into()
}
