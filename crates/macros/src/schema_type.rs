//! Types of the hub without a schema, and their replacements in schemas.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{GenericArgument, PathArguments, Type, parse_quote};

/// The type whose schema describes `written`, if that is not `written` itself.
///
/// `RawJson` keeps numbers of any size, so tools use it as an argument type; the core crate does not depend on schema
/// crates.
pub(crate) fn schema_replacement(written: &Type, root: &TokenStream) -> Option<Type> {
    let mut replacement = written.clone();
    replace(&mut replacement, root).then_some(replacement)
}

fn replace(kind: &mut Type, root: &TokenStream) -> bool {
    let Type::Path(path) = kind else { return false };
    let Some(last) = path.path.segments.last_mut() else { return false };
    if let PathArguments::AngleBracketed(list) = &mut last.arguments {
        let mut changed = false;
        for argument in &mut list.args {
            if let GenericArgument::Type(inner) = argument {
                changed |= replace(inner, root);
            }
        }
        return changed;
    }
    let value = quote!(#root::serde_json::Value);
    if last.ident == "RawJson" {
        *kind = parse_quote!(#value);
    } else if last.ident == "RawObject" {
        *kind = parse_quote!(#root::serde_json::Map<::std::string::String, #value>);
    } else {
        return false;
    }
    true
}

/// Whether a type is written as `Option<…>`.
pub(crate) fn is_option(kind: &Type) -> bool {
    matches!(kind, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Option"))
}
