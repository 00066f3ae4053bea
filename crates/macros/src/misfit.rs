//! The code that says what is wrong with arguments that could not be decoded. The engine checks arguments against the
//! schema before; this is for callers that do not, and for what no schema can say.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;

use crate::expand::{each_argument, tool_name};
use crate::function::Function;
use crate::options::Options;
use crate::schema_type::is_option;

/// The error for arguments that could not be decoded: it names every argument that does not fit.
pub(crate) fn misfit(function: &Function, options: &Options) -> TokenStream {
    let root = options.root();
    let tool = tool_name(function, options);
    let fields = each_argument(function).map(|(argument, kind)| {
        let name = argument.name.unraw().to_string();
        let required = argument.default.is_none() && !is_option(kind);
        quote! {
            (#name, #required, |__value: &#root::core::RawJson| {
                __value.decode::<#kind>().err().map(|__error| ::std::string::ToString::to_string(&__error))
            })
        }
    });
    quote! {
        #[cold]
        fn __misfit(
            __arguments: &#root::core::RawJson,
            __error: &#root::serde_json::Error,
        ) -> #root::core::ToolError {
            use #root::core::error::{ArgumentProblem, Expected};
            type __Check = fn(&#root::core::RawJson) -> ::core::option::Option<::std::string::String>;
            let __fields: &[(&str, bool, __Check)] = &[#(#fields),*];
            let __short = |__value: &#root::core::RawJson| {
                ::core::option::Option::Some(__value.get().chars().take(80).collect::<::std::string::String>())
            };
            let __problem = |__argument: &str, __expected, __came| ArgumentProblem {
                argument: ::std::borrow::ToOwned::to_owned(__argument),
                expected: __expected,
                came: __came,
            };
            let __members = __arguments.object().unwrap_or_default();
            let mut __problems = ::std::vec::Vec::new();
            for &(__name, __required, __check) in __fields {
                match __members.get(__name) {
                    ::core::option::Option::None if __required && __arguments.is_object() => {
                        __problems.push(__problem(__name, Expected::Present, ::core::option::Option::None));
                    }
                    ::core::option::Option::None => {}
                    ::core::option::Option::Some(__value) => {
                        if let ::core::option::Option::Some(__text) = __check(__value) {
                            // What serde expected stands after that word, and before the place in the text.
                            let __rule = __text.split(" at line ").next().unwrap_or_default();
                            let __rule = __rule.rsplit_once("expected ").map_or(__rule, |(_, __rule)| __rule);
                            let __rule = Expected::Rule(::std::borrow::ToOwned::to_owned(__rule));
                            __problems.push(__problem(__name, __rule, __short(__value)));
                        }
                    }
                }
            }
            for (__name, _) in __members.iter() {
                if __fields.iter().all(|(__known, ..)| *__known != __name) {
                    let __absent = Expected::Absent { near: ::core::option::Option::None };
                    __problems.push(__problem(__name, __absent, ::core::option::Option::None));
                }
            }
            if __problems.is_empty() {
                let __rule = if __arguments.is_object() {
                    Expected::Rule(::std::format!("readable ({__error})"))
                } else {
                    Expected::Type(::std::vec![::std::borrow::ToOwned::to_owned("object")])
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
