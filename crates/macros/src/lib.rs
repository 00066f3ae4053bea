//! The attribute `#[tool]`. What a tool is stands in `toolhub-core`; this crate only writes the code that says so.

mod docs;
mod expand;
mod function;
mod misfit;
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
/// The function becomes a unit struct of the same name and visibility that implements `NativeTool`, so that
/// `weather` is a value which can be handed to the hub; `weather::run(city, days)` still calls the function.
///
/// # Options
///
/// - `name = "…"`: the tool's name, where it is not the function's.
/// - `title = "…"`: a name for people.
/// - `read_only`, `destructive`, `idempotent`, `open_world`: what the tool does to the world; `= false` says that
///   it does not. What is left out is left unsaid.
/// - `crate = path`: where the crates that the expansion needs are found; `::toolhub::__private` unless given.
///
/// # Parameters
///
/// Their types need `serde::Deserialize` and `schemars::JsonSchema`, and own what they hold. An argument that is
/// not a parameter is an error.
///
/// - `Option<T>`: may be left out.
/// - a doc comment or `#[doc = "…"]`: the parameter's text in the schema.
/// - `#[default(expression)]`: the value of an argument that is left out. It stands in the schema where its type
///   can be serialised.
/// - `#[schemars(…)]`: handed on, for ranges and patterns.
/// - `&CallContext`: the call at hand; not in the schema.
/// - `#[state] name: &T`: something the tool holds; not in the schema. The struct becomes `weather(Arc<T>)`.
///
/// The function's result is anything that implements `IntoOutput`.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(options.into(), item.into()).unwrap_or_else(|error| error.into_compile_error()).into()
}
