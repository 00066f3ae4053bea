//! Parses and validates a tool function; errors have the span of the offending code.

use proc_macro2::TokenStream;
use syn::{
    Attribute, Block, Error, Ident, Item, ItemFn, Result, ReturnType, Signature, Type, Visibility,
    ext::IdentExt, spanned::Spanned,
};

use crate::docs;
use crate::options::Options;
use crate::parameter::{Argument, Kind, Parameter};

/// A valid tool function.
pub(crate) struct Function {
    pub(crate) name: Ident,
    pub(crate) visibility: Visibility,
    pub(crate) description: Option<String>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) returns: ReturnType,
    pub(crate) body: Box<Block>,
    pub(crate) attributes: Attributes,
}

/// The attributes of the function, by destination.
#[derive(Default)]
pub(crate) struct Attributes {
    /// Doc comments, for the struct and the function.
    pub(crate) docs: Vec<Attribute>,
    /// `cfg` conditions, for all generated items.
    pub(crate) conditions: Vec<Attribute>,
    /// Other attributes, for the function.
    pub(crate) others: Vec<Attribute>,
}

impl Function {
    pub(crate) fn parse(item: TokenStream) -> Result<Self> {
        let item = syn::parse2::<Item>(item)?;
        let Item::Fn(ItemFn { attrs, vis, sig, block }) = item else {
            return Err(Error::new(item.span(), "`#[tool]` needs an async function"));
        };
        let mut problems = Problems::default();
        check_signature(&sig, &mut problems);
        let description = problems.record(docs::text(&attrs)).flatten();
        let mut parameters = Vec::new();
        for input in sig.inputs {
            parameters.extend(problems.record(Parameter::read(input)));
        }
        let states = parameters.iter().filter(|parameter| matches!(parameter.kind, Kind::State(_)));
        for second in states.skip(1) {
            problems.add(second.pattern.span(), "a tool has one state: put both in one struct");
        }
        problems.into_result()?;
        let mut attributes = Attributes::default();
        for attribute in attrs {
            if attribute.path().is_ident("doc") {
                attributes.docs.push(attribute);
            } else if attribute.path().is_ident("cfg") {
                attributes.conditions.push(attribute);
            } else {
                attributes.others.push(attribute);
            }
        }
        Ok(Self {
            name: sig.ident,
            visibility: vis,
            description,
            parameters,
            returns: sig.output,
            body: block,
            attributes,
        })
    }

    /// The parameters in the schema, with their types.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = (&Argument, &Type)> {
        self.parameters.iter().filter_map(|parameter| match &parameter.kind {
            Kind::Argument(argument) => Some((&**argument, &parameter.written_type)),
            _ => None,
        })
    }

    /// The name of the tool.
    pub(crate) fn tool_name(&self, options: &Options) -> String {
        options.name.clone().unwrap_or_else(|| self.name.unraw().to_string())
    }
}

fn check_signature(signature: &Signature, problems: &mut Problems) {
    let name = &signature.ident;
    if signature.asyncness.is_none() {
        problems
            .add(signature.fn_token.span(), &format!("a tool is an async function: write `async fn {name}`"));
    }
    if let Some(generic) = signature.generics.params.first() {
        problems.add(generic.span(), "a tool has no generics: its schema needs one type");
    }
    if let Some(clause) = &signature.generics.where_clause {
        problems.add(clause.span(), "a tool has no generics, and so no `where`");
    }
    if let Some(unsafety) = &signature.unsafety {
        problems.add(unsafety.span(), "a tool is safe to call: put the `unsafe` block inside");
    }
    if let Some(abi) = &signature.abi {
        problems.add(abi.span(), "a tool is a plain Rust function");
    }
}

/// Collects all errors, so that they are reported at once.
#[derive(Default)]
struct Problems(Option<Error>);

impl Problems {
    fn add(&mut self, span: proc_macro2::Span, message: &str) {
        self.push(Error::new(span, message));
    }

    fn push(&mut self, error: Error) {
        match &mut self.0 {
            Some(first) => first.combine(error),
            none => *none = Some(error),
        }
    }

    fn record<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    fn into_result(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}
