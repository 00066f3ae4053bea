//! A parameter of a tool function: an argument, the context of the call, or the state of the tool.

use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Expr, FnArg, Ident, Pat, PatIdent, Result, Token, Type, spanned::Spanned};

use crate::docs;

/// A parameter and its kind.
pub(crate) struct Parameter {
    /// The binding as written, including `mut`.
    pub(crate) pattern: PatIdent,
    pub(crate) kind: Kind,
    pub(crate) written_type: Type,
    /// Attributes that stay on the parameter.
    pub(crate) retained: Vec<Attribute>,
}

pub(crate) enum Kind {
    Argument(Box<Argument>),
    Context,
    /// The state of the tool.
    State(Box<Type>),
}

/// A parameter in the schema.
pub(crate) struct Argument {
    pub(crate) name: Ident,
    pub(crate) text: Option<String>,
    pub(crate) default: Option<Expr>,
    /// `#[schemars(…)]` as written.
    pub(crate) schemars: Vec<Attribute>,
}

impl Parameter {
    pub(crate) fn read(input: FnArg) -> Result<Self> {
        let FnArg::Typed(input) = input else {
            return Err(Error::new(
                input.span(),
                "a tool has no `self`: give it what it needs with `#[state] name: &T`",
            ));
        };
        let pattern = plain_name(&input.pat)?;
        let mut marks = MarkerAttributes::read(&input.attrs)?;
        let kind = match (&*input.ty, marks.state.take()) {
            (Type::Reference(reference), Some(_)) if reference.mutability.is_none() => {
                marks.reject_argument_markers("state is not an argument")?;
                Kind::State(reference.elem.clone())
            }
            (other, Some(_)) => {
                return Err(Error::new(other.span(), "`#[state]` needs a type of the form `&T`"));
            }
            (Type::Reference(reference), None)
                if is_context(&reference.elem) && reference.mutability.is_none() =>
            {
                marks.reject_argument_markers("the context is not an argument")?;
                Kind::Context
            }
            (owned, None) if is_context(owned) => {
                return Err(Error::new(owned.span(), "the context is borrowed: write `&CallContext`"));
            }
            (Type::Reference(reference), None) => {
                return Err(Error::new(
                    reference.span(),
                    "an argument must own its data: write `String` for `&str`, or mark the parameter `#[state]`",
                ));
            }
            (Type::ImplTrait(generic), None) => {
                return Err(Error::new(generic.span(), "a tool has no generics: its schema needs one type"));
            }
            _ => Kind::Argument(Box::new(Argument {
                name: pattern.ident.clone(),
                text: docs::text(&input.attrs)?,
                default: marks.default.take(),
                schemars: std::mem::take(&mut marks.schemars),
            })),
        };
        Ok(Self { pattern, kind, written_type: *input.ty, retained: marks.retained })
    }
}

fn plain_name(pattern: &Pat) -> Result<PatIdent> {
    match pattern {
        Pat::Ident(ident) if ident.by_ref.is_none() && ident.subpat.is_none() => Ok(ident.clone()),
        other => {
            Err(Error::new(other.span(), "a parameter of a tool is a plain name: it is what callers write"))
        }
    }
}

fn is_context(kind: &Type) -> bool {
    matches!(kind, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "CallContext"))
}

/// The attributes of a parameter, by destination.
#[derive(Default)]
struct MarkerAttributes {
    state: Option<()>,
    default: Option<Expr>,
    schemars: Vec<Attribute>,
    retained: Vec<Attribute>,
    /// The first attribute that is only valid on an argument.
    argument_marker: Option<proc_macro2::Span>,
}

impl MarkerAttributes {
    fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut marks = Self::default();
        for attribute in attributes {
            let name = attribute.path().get_ident().map(ToString::to_string).unwrap_or_default();
            match name.as_str() {
                "doc" => {}
                "state" => {
                    attribute.meta.require_path_only()?;
                    if marks.state.replace(()).is_some() {
                        return Err(Error::new(attribute.span(), "`#[state]` is given twice"));
                    }
                }
                "default" => {
                    let values = attribute
                        .parse_args_with(Punctuated::<Expr, Token![,]>::parse_terminated)
                        .map_err(|_| {
                        Error::new(attribute.span(), "write the value in parentheses: `#[default(10)]`")
                    })?;
                    let mut values = values.into_iter();
                    let (Some(value), None) = (values.next(), values.next()) else {
                        return Err(Error::new(attribute.span(), "`#[default(…)]` takes one value"));
                    };
                    if marks.default.replace(value).is_some() {
                        return Err(Error::new(attribute.span(), "`#[default(…)]` is given twice"));
                    }
                    marks.argument_marker.get_or_insert(attribute.span());
                }
                "schemars" => {
                    marks.schemars.push(attribute.clone());
                    marks.argument_marker.get_or_insert(attribute.span());
                }
                "allow" | "expect" | "warn" | "deny" | "forbid" => marks.retained.push(attribute.clone()),
                _ => {
                    return Err(Error::new(
                        attribute.span(),
                        "unknown attribute: a parameter takes `#[doc]`, `#[default(…)]`, `#[state]` and `#[schemars(…)]`",
                    ));
                }
            }
        }
        Ok(marks)
    }

    fn reject_argument_markers(&self, why: &str) -> Result<()> {
        match self.argument_marker {
            Some(span) => Err(Error::new(span, format!("{why}: this has no meaning here"))),
            None => Ok(()),
        }
    }
}
