//! The expansion of a tool function. Names that the expansion introduces start with two underscores: a tool is a unit
//! struct in lower case, and a local variable of the same name would not compile.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Expr, ExprLit, Lit, LitStr, Result, ReturnType, Type, ext::IdentExt, spanned::Spanned};

use crate::argument_error::argument_error;
use crate::function::Function;
use crate::options::Options;
use crate::parameter::{Argument, Kind};
use crate::schema_type::schema_replacement;

/// Expands a `#[tool]`.
pub(crate) fn expand(options: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let options = Options::parse(options)?;
    let function = Function::parse(item)?;
    let structure = structure(&function);
    let run = run(&function);
    let conditions = &function.attributes.conditions;
    let name_guard = name_guard(&function);
    let arguments = arguments(&function, &options.root());
    let tool = tool(&function, &options);
    Ok(quote! {
        #structure
        #run
        #(#conditions)*
        const _: () = {
            #name_guard
            #arguments
            #tool
        };
    })
}

/// Functions that shadow unit structs of the same name. Local variables may shadow functions, but not unit structs, so
/// this tool and others in its scope may have the names of variables in the derived code.
fn name_guard(function: &Function) -> TokenStream {
    let mut names = vec![format_ident!("schema"), format_ident!("generator"), format_ident!("d")];
    if !names.contains(&function.name) {
        names.push(function.name.clone());
    }
    quote! {
        #(
            #[allow(dead_code, non_snake_case, reason = "it only hides a name")]
            fn #names() {}
        )*
    }
}

/// The struct of the tool.
fn structure(function: &Function) -> TokenStream {
    let Function { name, visibility, .. } = function;
    let (docs, conditions) = (&function.attributes.docs, &function.attributes.conditions);
    let text = name.unraw().to_string();
    let states = function.parameters.iter().filter_map(|parameter| match &parameter.kind {
        Kind::State(state) => Some(state),
        _ => None,
    });
    let fields: Vec<_> = states.map(|state| quote!((#visibility ::std::sync::Arc<#state>))).collect();
    let copy = fields.is_empty().then(|| quote!(, ::core::marker::Copy));
    quote! {
        #(#docs)*
        #(#conditions)*
        #[allow(non_camel_case_types, reason = "the tool has the name of the function")]
        #[derive(::core::clone::Clone #copy)]
        #visibility struct #name #(#fields)*;

        // Implemented by hand, since the state need not implement `Debug`.
        #(#conditions)*
        impl ::core::fmt::Debug for #name {
            fn fmt(&self, __formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                __formatter.write_str(#text)
            }
        }
    }
}

/// The function itself, which stays callable, and the defaults of its parameters.
fn run(function: &Function) -> TokenStream {
    let Function { name, visibility, returns, body, .. } = function;
    let (docs, conditions) = (&function.attributes.docs, &function.attributes.conditions);
    let others = &function.attributes.others;
    let parameters = function.parameters.iter().map(|parameter| {
        let (retained, pattern, kind) = (&parameter.retained, &parameter.pattern, &parameter.written_type);
        quote!(#(#retained)* #pattern: #kind)
    });
    let defaults = function.arguments().filter_map(|(argument, kind)| {
        Some(default_function(&default_name(&argument.name), kind, argument.default.as_ref()?))
    });
    quote! {
        #(#conditions)*
        impl #name {
            #(#defaults)*

            #(#docs)*
            #(#others)*
            #[allow(clippy::too_many_arguments, clippy::unused_async, reason = "a tool is async, and called by name")]
            #visibility async fn run(#(#parameters),*) #returns #body
        }
    }
}

/// The struct that the arguments are deserialized into.
fn arguments(function: &Function, root: &TokenStream) -> TokenStream {
    let tool = &function.name;
    let fields = function.arguments().map(|(argument, kind)| {
        let Argument { name, text, schemars, .. } = argument;
        let text = text.as_ref().map(|text| quote!(#[schemars(description = #text)]));
        let with = schema_replacement(kind, root).map(|replacement| {
            let replacement = literal(&replacement);
            quote!(#[schemars(with = #replacement)])
        });
        let default = argument.default.as_ref().map(|_| {
            let path = default_name(name);
            let path = literal(&quote!(#tool::#path));
            quote!(#[serde(default = #path)])
        });
        quote!(#text #with #default #(#schemars)* #name: #kind)
    });
    let serde = literal(&quote!(#root::serde));
    let schemars = literal(&quote!(#root::schemars));
    quote! {
        #[derive(#root::serde::Deserialize, #root::schemars::JsonSchema)]
        #[serde(crate = #serde, deny_unknown_fields)]
        #[schemars(crate = #schemars)]
        struct __Arguments { #(#fields),* }
    }
}

fn default_function(path: &Ident, kind: &Type, value: &Expr) -> TokenStream {
    let value = match value {
        // `#[default("km")]` for a `String`.
        Expr::Lit(ExprLit { lit: Lit::Str(_), .. }) => {
            quote_spanned!(value.span()=> ::core::convert::Into::into(#value))
        }
        value => value.to_token_stream(),
    };
    quote! {
        #[allow(non_snake_case, reason = "the parameter has the name that its author chose")]
        fn #path() -> #kind { #value }
    }
}

/// The implementation of `NativeTool`.
fn tool(function: &Function, options: &Options) -> TokenStream {
    let root = options.root();
    let name = &function.name;
    let definition = definition(function, options);
    let argument_error = argument_error(function, options);
    let values = function.parameters.iter().map(|parameter| match &parameter.kind {
        Kind::Argument(argument) => {
            let name = &argument.name;
            quote!(__arguments.#name)
        }
        Kind::Context => quote!(__context),
        Kind::State(_) => quote!(&self.0),
    });
    let result = match &function.returns {
        ReturnType::Default => proc_macro2::Span::call_site(),
        ReturnType::Type(_, kind) => kind.span(),
    };
    // Uses the span of the return type, so that the compiler reports a wrong type there.
    let converted = quote_spanned!(result=> #root::core::IntoOutput::into_output(__result));
    quote! {
        impl #root::core::NativeTool for #name {
            #definition

            fn call<'__call>(
                &'__call self,
                __arguments: #root::core::RawJson,
                __context: &'__call #root::core::CallContext,
            ) -> #root::core::BoxFuture<
                '__call,
                ::core::result::Result<#root::core::ToolOutput, #root::core::ToolError>,
            > {
                ::std::boxed::Box::pin(async move {
                    #[allow(unused_variables, reason = "a tool may have no arguments")]
                    let __arguments = match __arguments.decode::<__Arguments>() {
                        ::core::result::Result::Ok(__decoded) => __decoded,
                        ::core::result::Result::Err(__error) => match __coerced(&__arguments) {
                            ::core::option::Option::Some(__decoded) => __decoded,
                            ::core::option::Option::None => {
                                return ::core::result::Result::Err(__argument_error(&__arguments, &__error));
                            }
                        },
                    };
                    let __result = #name::run(#(#values),*).await;
                    #converted
                })
            }
        }

        #argument_error
    }
}

fn definition(function: &Function, options: &Options) -> TokenStream {
    let root = options.root();
    let name = function.tool_name(options);
    let title = options.title.as_ref().map(|title| quote!(.with("title", #title)));
    let description = function.description.as_ref().map(|text| quote!(.with("description", #text)));
    let hints = options.hints.iter().map(|(hint, value)| quote!(.with(#hint, #value)));
    let annotations = (!options.hints.is_empty())
        .then(|| quote!(.with("annotations", #root::core::RawObject::default() #(#hints)*)));
    // Some model APIs reject a schema without `properties`.
    let properties = function.arguments().next().is_none().then(|| {
        quote! {
            __schema.insert(
                ::std::borrow::ToOwned::to_owned("properties"),
                #root::serde_json::Value::Object(::core::default::Default::default()),
            );
        }
    });
    quote! {
        fn definition(&self) -> #root::core::ToolDefinition {
            // Inlined, so that a model sees the values of an enum at the parameter.
            let mut __schema = #root::schemars::generate::SchemaSettings::draft2020_12()
                .with(|__settings| __settings.inline_subschemas = true)
                .into_generator()
                .into_root_schema_for::<__Arguments>();
            __schema.remove("$schema");
            __schema.remove("title");
            #properties
            let __definition = #root::core::RawObject::default()
                .with("name", #name)
                #title
                #description
                .with("inputSchema", #root::core::function::portable_schema(__schema.to_value()))
                #annotations;
            match #root::core::ToolDefinition::parse(__definition.into_raw()) {
                ::core::result::Result::Ok(__parsed) => __parsed,
                // Fails only if the schema is too large or too deep: a bug in the program, found at its start.
                ::core::result::Result::Err(__error) => {
                    ::core::panic!("tool `{}` cannot be used: {}", #name, __error)
                }
            }
        }
    }
}

fn default_name(argument: &Ident) -> Ident {
    format_ident!("__default_{}", argument.unraw())
}

/// A path or type as a string literal, for attributes of serde and schemars.
fn literal(tokens: &impl ToTokens) -> LitStr {
    LitStr::new(&tokens.to_token_stream().to_string(), proc_macro2::Span::call_site())
}
