//! Rule: a function has no tuple as a parameter. Each parameter has its own name and type; many belong into a struct with named fields.
use super::{Finding, sources::Source};

pub(super) fn check(source: &Source) -> Vec<Finding> {
    if !source.is_rust() {
        return Vec::new();
    }
    let starts = source.text.match_indices("fn ").filter(|(at, _)| is_function(&source.text[..*at]));
    let tuples = starts.filter_map(|(at, _)| {
        let list = parameter_list(&source.text[at..])?;
        has_tuple(list).then(|| source.text[..at].lines().count())
    });
    let message = "takes a tuple: give each value a parameter of its own, or name the fields in a struct";
    tuples.map(|line| Finding::new(&source.path, line, message)).collect()
}

/// Whether `fn` after this text starts a function, and is not part of a comment, a text or another word.
fn is_function(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default();
    !line.contains("//") && !line.contains('"') && !line.ends_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// What stands between the parentheses after a function's name and its generic parameters.
fn parameter_list(function: &str) -> Option<&str> {
    let open = outside_generics(function).find(|(_, c)| *c == '(')?.0;
    let mut depth = 0usize;
    let close = function[open..].char_indices().find(|(_, c)| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth == 0
    })?;
    Some(&function[open + 1..open + close.0])
}

/// Whether one of the parameters is a pattern that takes a tuple apart. The strategies of `proptest!` (`(a, b) in …`) are not
/// parameters.
fn has_tuple(list: &str) -> bool {
    let mut depth = 0usize;
    let mut is_start = true;
    for (at, c) in outside_generics(list) {
        if is_start && c == '(' {
            let after = list[at..].split_once(')').map_or("", |(_, after)| after.trim_start());
            if after.starts_with(':') {
                return true;
            }
        }
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        is_start = depth == 0 && (c == ',' || (is_start && c.is_whitespace()));
    }
    false
}

/// The characters that are not between angle brackets.
fn outside_generics(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut depth = 0usize;
    let mut previous = ' ';
    text.char_indices().filter(move |(_, c)| {
        let is_arrow = previous == '-';
        previous = *c;
        match c {
            '<' => depth += 1,
            '>' if !is_arrow && depth > 0 => {
                depth -= 1;
                return false;
            }
            _ => {}
        }
        depth == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_tuples_among_the_parameters() {
        for (text, expect) in [
            ("fn plain(a: (u8, u8), b: &[(u8, u8)]) {}", false),
            ("fn pair((a, b): (u8, u8)) {}", true),
            ("fn second(\n    &self,\n    (a, b): (u8, u8),\n) {}", true),
            ("fn generic<F: Fn((u8, u8)) -> u8>(call: F, map: HashMap<u8, (u8, u8)>) {}", false),
            ("fn generic<F: Fn(u8) -> u8>(call: F, (a, b): (u8, u8)) {}", true),
            ("fn after_map(map: HashMap<u8, u8>, (a, b): (u8, u8)) {}", true),
            ("fn strategy((a, b) in pairs(), c in any::<u8>()) {}", false),
            ("let closure = |(a, b): (u8, u8)| a;", false),
            ("// fn comment((a, b): (u8, u8)) {}", false),
            ("let text = \"fn f((a, b): (u8, u8)) {}\";", false),
        ] {
            let source = Source { path: "crates/a/src/b.rs".into(), text: text.to_owned() };
            assert_eq!(!check(&source).is_empty(), expect, "{text}");
        }
    }
}
