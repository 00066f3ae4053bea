//! `${VAR}` and `${VAR:-default}`, expanded from the environment when a server is started, never in files; and the scanner for
//! `${…}`.

/// A variable in our syntax.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Variable<'a> {
    pub(crate) name: &'a str,
    pub(crate) default: Option<&'a str>,
}

impl<'a> Variable<'a> {
    /// Parses the text between `${` and `}`.
    pub(crate) fn inner(inner: &'a str) -> Option<Self> {
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        is_variable_name(name).then_some(Self { name, default })
    }

    /// Parses a text that consists of one variable only.
    pub(crate) fn whole(text: &'a str) -> Option<Self> {
        let inner = text.strip_prefix("${")?.strip_suffix('}')?;
        Self::inner(inner).filter(|_| !inner.contains('}'))
    }
}

/// Whether this is a valid variable name.
pub(crate) fn is_variable_name(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|rest| rest.is_ascii_alphanumeric() || rest == '_')
}

/// Replaces each `${…}` for which `replace` returns a text. Otherwise, or without a closing brace, `${` is literal text, and
/// scanning continues after it.
pub(crate) fn map_braced<E>(
    text: &str,
    replace: &mut dyn FnMut(&str) -> Result<Option<String>, E>,
) -> Result<String, E> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let replaced = match after.split_once('}') {
            Some((inner, tail)) => replace(inner)?.map(|other| (other, tail)),
            None => None,
        };
        let (other, tail) = replaced.unwrap_or_else(|| ("${".to_owned(), after));
        out.push_str(&other);
        rest = tail;
    }
    out.push_str(rest);
    Ok(out)
}

/// Expands the variables. The error is the name of the first one that is not set.
pub fn expand_variables(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    map_braced(text, &mut |inner| {
        let Some(Variable { name, default }) = Variable::inner(inner) else { return Ok(None) };
        let value = lookup(name).filter(|value| !value.is_empty());
        value.or_else(|| default.map(str::to_owned)).map(Some).ok_or_else(|| name.to_owned())
    })
}

/// The names of the variables in a text.
pub fn variable_references(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    // Infallible, so there is no error to handle.
    let _ = map_braced::<std::convert::Infallible>(text, &mut |inner| {
        let variable = Variable::inner(inner);
        names.extend(variable.map(|variable| variable.name.to_owned()));
        Ok(variable.map(|_| String::new()))
    });
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_referenced_variables() {
        assert_eq!(variable_references("a ${B} ${C:-d}${ ${E} $F"), ["B", "C", "E"]);
    }

    #[test]
    fn expands_variables() {
        let lookup = |name: &str| match name {
            "HOST" => Some("localhost".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let check = |text: &str, expect: Result<&str, &str>| {
            assert_eq!(
                expand_variables(text, &lookup),
                expect.map(str::to_owned).map_err(str::to_owned),
                "{text}"
            );
        };
        check("http://${HOST}:80", Ok("http://localhost:80"));
        check("${NONE:-a b}/${HOST}", Ok("a b/localhost"));
        check("${EMPTY:-x}", Ok("x"));
        check("${NONE:-}", Ok(""));
        check("${NONE}", Err("NONE"));
        check("$HOME ${ ${1x} ${open", Ok("$HOME ${ ${1x} ${open"));
        check("${中}", Ok("${中}"));
        check("${ ${HOST}} ${a${HOST}", Ok("${ localhost} ${alocalhost"));
    }
}
