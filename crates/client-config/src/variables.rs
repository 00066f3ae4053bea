//! Converts `${…}` in values of other clients into our syntax. Never expands a variable.

use std::convert::Infallible;

use crate::expand;
pub(crate) use crate::expand::{Variable, is_variable_name};

/// Converts a text into a valid variable name: `api-key` becomes `API_KEY`.
pub(crate) fn to_variable_name(text: &str) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = text.chars().map(word).collect();
    if is_variable_name(&name) { name } else { format!("_{name}") }
}

/// A variable in our syntax. A default that contains `}` is omitted.
pub(crate) fn format_variable(name: &str, default: Option<&str>) -> String {
    match default.filter(|default| !default.contains('}')) {
        Some(default) => format!("${{{name}:-{default}}}"),
        None => format!("${{{name}}}"),
    }
}

/// Replaces each `${…}` for which `replace` returns a text.
pub(crate) fn map_braced(text: &str, replace: &mut dyn FnMut(&str) -> Option<String>) -> String {
    let Ok(mapped) = expand::map_braced::<Infallible>(text, &mut |inner| Ok(replace(inner)));
    mapped
}

/// Replaces each bare `$NAME` for which `replace` returns a text; `${…}` is unchanged.
pub(crate) fn map_bare(text: &str, replace: &mut dyn FnMut(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = after.find(|c| !word(c)).unwrap_or(after.len());
        let (name, tail) = after.split_at(end);
        match replace(name).filter(|_| is_variable_name(name)) {
            Some(other) => out.push_str(&other),
            None => out += &format!("${name}"),
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}

/// Whether a text contains a variable in our syntax.
pub(crate) fn has_variables(text: &str) -> bool {
    let mut found = false;
    map_braced(text, &mut |inner| {
        found |= Variable::inner(inner).is_some();
        None
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_only_our_variable_syntax() {
        assert_eq!(Variable::whole("${A:-b c}"), Some(Variable { name: "A", default: Some("b c") }));
        assert_eq!(Variable::whole("${A}"), Some(Variable { name: "A", default: None }));
        for text in ["x${A}", "${A}x", "${A}${B}", "${env:A}", "$A", "${}", "${中}"] {
            assert_eq!(Variable::whole(text), None, "{text}");
        }
        assert!(has_variables("a ${B} c") && !has_variables("$B ${env:B} ${"));
        assert_eq!(
            (to_variable_name("api-key").as_str(), to_variable_name("1x").as_str()),
            ("API_KEY", "_1X")
        );
        assert_eq!(format_variable("A", Some("b}")), "${A}");
    }

    #[test]
    fn keeps_unknown_variables_unchanged() {
        let mut upper = |inner: &str| inner.strip_prefix("env:").map(|name| format!("<{name}>"));
        assert_eq!(map_braced("a${env:B}${c}${", &mut upper), "a<B>${c}${");
        let mut bare = |name: &str| Some(format!("${{{name}}}"));
        assert_eq!(map_bare("$A-$B_1 ${C} $ $5 末$", &mut bare), "${A}-${B_1} ${C} $ $5 末$");
    }
}
