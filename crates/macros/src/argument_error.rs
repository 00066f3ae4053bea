//! The code for arguments that cannot be deserialized: repairs values that JSON Schema allows but serde rejects,
//! otherwise builds the error. The engine validates arguments against the schema before; this code is for callers that
//! do not, and for constraints that a schema cannot express.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;

use crate::function::Function;
use crate::options::Options;
use crate::schema_type::is_option;

/// The functions `__coerced`, for arguments with `2.0` in place of an integer, and `__argument_error`, for the error that lists
/// every invalid argument.
pub(crate) fn argument_error(function: &Function, options: &Options) -> TokenStream {
    let root = options.root();
    let tool = function.tool_name(options);
    let fields = function.arguments().map(|(argument, kind)| {
        let name = argument.name.unraw().to_string();
        let required = argument.default.is_none() && !is_option(kind);
        quote! {
            (#name, #required, |__value: &#root::core::RawJson| {
                __value.decode::<#kind>().err().map(|__error| ::std::string::ToString::to_string(&__error))
            })
        }
    });
    let words = words();
    quote! {
        type __Check = fn(&#root::core::RawJson) -> ::core::option::Option<::std::string::String>;
        const __FIELDS: &[(&str, bool, __Check)] = &[#(#fields),*];

        #[cold]
        fn __coerced(__arguments: &#root::core::RawJson) -> ::core::option::Option<__Arguments> {
            let mut __members = __arguments.object()?;
            for &(__name, _, __check) in __FIELDS {
                let ::core::option::Option::Some(__value) = __members.get(__name) else { continue };
                // Integers below 2^53 are exact in a float.
                let __whole = __value.get().parse::<f64>().ok();
                let __whole = __whole.filter(|__whole| __whole.fract() == 0.0 && __whole.abs() < 9e15);
                let ::core::option::Option::Some(__whole) = __whole else { continue };
                let __whole = #root::core::RawJson::of(&(__whole as i64));
                if __check(__value).is_some() && __check(&__whole).is_none() {
                    __members.set(__name, __whole);
                }
            }
            __members.into_raw().decode().ok()
        }

        #[cold]
        fn __argument_error(
            __arguments: &#root::core::RawJson,
            __error: &#root::serde_json::Error,
        ) -> #root::core::ToolError {
            use #root::core::error::{ArgumentProblem, ArgumentExpectation};
            let __short = |__value: &#root::core::RawJson| {
                ::core::option::Option::Some(__value.get().chars().take(80).collect::<::std::string::String>())
            };
            let __problem = |__argument: &str, __expected, __actual| ArgumentProblem {
                argument: ::std::borrow::ToOwned::to_owned(__argument),
                expected: __expected,
                actual: __actual,
            };
            let __members = __arguments.object().unwrap_or_default();
            let mut __problems = ::std::vec::Vec::new();
            for &(__name, __required, __check) in __FIELDS {
                match __members.get(__name) {
                    ::core::option::Option::None if __required && __arguments.is_object() => {
                        __problems.push(__problem(__name, ArgumentExpectation::Present, ::core::option::Option::None));
                    }
                    ::core::option::Option::None => {}
                    ::core::option::Option::Some(__value) => {
                        if let ::core::option::Option::Some(__text) = __check(__value) {
                            // Extracts the expectation from serde's message: after `expected`, before the position.
                            let __rule = __text.split(" at line ").next().unwrap_or_default();
                            let __rule = __rule.rsplit_once("expected ").map_or(__rule, |(_, __rule)| __rule);
                            let __rule = #words;
                            let __rule = ArgumentExpectation::Rule(::core::convert::Into::into(__rule));
                            __problems.push(__problem(__name, __rule, __short(__value)));
                        }
                    }
                }
            }
            for (__name, _) in __members.iter() {
                if __FIELDS.iter().all(|(__known, ..)| *__known != __name) {
                    let __absent = ArgumentExpectation::Absent { near: ::core::option::Option::None };
                    __problems.push(__problem(__name, __absent, ::core::option::Option::None));
                }
            }
            if __problems.is_empty() {
                let __rule = if __arguments.is_object() {
                    ArgumentExpectation::Rule(::core::convert::Into::into(::std::format!("readable ({__error})")))
                } else {
                    ArgumentExpectation::Type(::std::vec![::std::borrow::ToOwned::to_owned("object")])
                };
                __problems.push(__problem("", __rule, __short(__arguments)));
            }
            #root::core::ToolError::InvalidArguments {
                tool: #root::core::ToolName::new(#tool),
                problems: __problems,
            }
        }
    }
}

/// Converts a Rust type name in serde's message to JSON terms.
fn words() -> TokenStream {
    quote! {
        match __rule {
            "u8" => "an integer from 0 to 255",
            "u16" => "an integer from 0 to 65535",
            "u32" => "an integer from 0 to 4294967295",
            "u64" | "u128" | "usize" => "an integer from 0",
            "i8" => "an integer from -128 to 127",
            "i16" => "an integer from -32768 to 32767",
            "i32" => "an integer from -2147483648 to 2147483647",
            "i64" | "i128" | "isize" => "an integer",
            "f32" | "f64" => "a number",
            "a map" => "an object",
            "string or map" => "a string or an object",
            "unit" => "null",
            __other if __other.starts_with("a nonzero ") => "an integer other than 0",
            __other if __other.starts_with("struct ") => "an object",
            __other if __other.contains("tuple") => "an array of the right length",
            __other if __other.contains("sequence") => "an array",
            __other => __other,
        }
    }
}
