//! Parses the options of `#[tool(…)]`.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Error, Ident, LitBool, LitStr, Path, Result, Token, ext::IdentExt};

/// The options for hints, with their names in the definition.
const HINTS: [(&str, &str); 4] = [
    ("read_only", "readOnlyHint"),
    ("destructive", "destructiveHint"),
    ("idempotent", "idempotentHint"),
    ("open_world", "openWorldHint"),
];

const OPTION_NAMES: &str =
    "`name`, `title`, `read_only`, `destructive`, `idempotent`, `open_world` and `crate`";

/// The options of a tool.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) name: Option<String>,
    pub(crate) title: Option<String>,
    /// Names as in the definition.
    pub(crate) hints: Vec<(&'static str, bool)>,
    /// The module with the crates that the expansion needs.
    root: Option<Path>,
}

impl Options {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let list = Punctuated::<Setting, Token![,]>::parse_terminated.parse2(tokens)?;
        let mut options = Self::default();
        let mut seen: Vec<String> = Vec::new();
        for Setting { key, span, value } in list {
            if seen.contains(&key) {
                return Err(Error::new(span, format!("`{key}` is given twice")));
            }
            let hint = HINTS.iter().find(|(option, _)| *option == key);
            match (hint, key.as_str(), value) {
                (Some((_, name)), _, Value::None) => options.hints.push((name, true)),
                (Some((_, name)), _, Value::Flag(flag)) => options.hints.push((name, flag)),
                (Some(_), ..) => return Err(Error::new(span, format!("write `{key}` or `{key} = false`"))),
                (None, "name", Value::Text(text)) => options.name = Some(checked_name(&text)?),
                (None, "title", Value::Text(text)) => options.title = Some(text.value()),
                (None, "name" | "title", _) => {
                    return Err(Error::new(span, format!("write `{key} = \"…\"`")));
                }
                (None, "crate", Value::Path(path)) => options.root = Some(as_expansion(path)),
                (None, "crate", _) => return Err(Error::new(span, "write `crate = path::to::module`")),
                (None, ..) => {
                    return Err(Error::new(
                        span,
                        format!("unknown option `{key}`: there are {OPTION_NAMES}"),
                    ));
                }
            }
            seen.push(key);
        }
        Ok(options)
    }

    /// The path of the module with the crates that the expansion needs.
    pub(crate) fn root(&self) -> TokenStream {
        self.root.as_ref().map_or_else(|| quote!(::toolhub::__private), |path| quote!(#path))
    }
}

/// Marks a path as generated code, to which lints about paths do not apply.
fn as_expansion(mut path: Path) -> Path {
    for segment in &mut path.segments {
        // The span of `$crate` determines the crate it refers to.
        if segment.ident != "$crate" {
            segment.ident.set_span(Span::call_site());
        }
    }
    path
}

/// Accepts names that all known clients and models accept.
fn checked_name(name: &LitStr) -> Result<String> {
    let text = name.value();
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if (1..=64).contains(&text.len()) && text.chars().all(fits) {
        Ok(text)
    } else {
        Err(Error::new(name.span(), "a tool's name has 1 to 64 of the characters `A-Z a-z 0-9 _ - .`"))
    }
}

struct Setting {
    key: String,
    span: Span,
    value: Value,
}

enum Value {
    None,
    Flag(bool),
    Text(LitStr),
    Path(Path),
}

impl Parse for Setting {
    fn parse(input: ParseStream) -> Result<Self> {
        let key = input.call(Ident::parse_any)?;
        let value = if !input.peek(Token![=]) {
            Value::None
        } else {
            input.parse::<Token![=]>()?;
            if input.peek(LitStr) {
                Value::Text(input.parse()?)
            } else if input.peek(LitBool) {
                Value::Flag(input.parse::<LitBool>()?.value)
            } else {
                Value::Path(input.call(Path::parse_mod_style)?)
            }
        };
        Ok(Self { key: key.to_string(), span: key.span(), value })
    }
}
