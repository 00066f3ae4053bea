//! Rule: a function has no tuple as a parameter. Each parameter has its own name and type; many belong into a struct with named fields.
//! In tests, a parameter may have a tuple type, such as the expected values of a check.
use super::{Finding, size::is_tests, sources::Source};

pub(super) fn check(source: &Source) -> Vec<Finding> {
    if !source.is_rust() {
        return Vec::new();
    }
    let tests_start = tests_start(source);
    let starts = source.text.match_indices("fn ").filter(|(at, _)| is_function(&source.text[..*at]));
    let tuples = starts.filter_map(|(at, _)| {
        let list = parameter_list(&source.text[at..])?;
        let has_tuple =
            has_tuple_pattern(list) || (at < tests_start && parameters(list).into_iter().any(has_tuple_type));
        has_tuple.then(|| source.text[..at].lines().count())
    });
    let message = "takes a tuple: give each value a parameter of its own, or name the fields in a struct";
    tuples.map(|line| Finding::new(&source.path, line, message)).collect()
}

/// The offset from which a file contains tests only.
fn tests_start(source: &Source) -> usize {
    match is_tests(&source.path) {
        true => 0,
        false => source.text.rfind("\nmod tests {").unwrap_or(source.text.len()),
    }
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
fn has_tuple_pattern(list: &str) -> bool {
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

/// The parts of a list, separated by commas that are not between brackets.
fn parameters(list: &str) -> Vec<&str> {
    let (mut parameters, mut depth, mut start) = (Vec::new(), 0usize, 0);
    for (at, c) in outside_generics(list) {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parameters.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parameters.push(&list[start..]);
    parameters
}

/// Whether the type of a parameter is a tuple, or a reference to one.
fn has_tuple_type(parameter: &str) -> bool {
    let Some((_, text)) = parameter.split_once(": ") else { return false };
    let mut text = text.trim_start();
    while let Some(referenced) = text.strip_prefix('&') {
        text = referenced;
        if text.starts_with('\'') {
            text = text.split_once(' ').map_or("", |(_, rest)| rest);
        }
        text = text.strip_prefix("mut ").unwrap_or(text);
    }
    // `()` and `(dyn Trait + Send)` have no comma.
    text.strip_prefix('(').is_some_and(|elements| parameters(elements).len() > 1)
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
            ("fn plain(a: &[(u8, u8)], b: Vec<(u8, u8)>, c: [(u8, u8); 2]) {}", false),
            ("fn typed(a: u8, b: (u8, u8)) {}", true),
            ("fn reference(a: &'a mut (u8, u8)) {}", true),
            ("fn single(&self, a: (u8,)) {}", true),
            ("fn no_tuple(a: (), b: &(dyn Debug + Send)) -> (u8, u8) {}", false),
            ("fn function(a: impl Fn((u8, u8)) -> u8, b: &dyn Fn(u8, u8)) {}", false),
            ("fn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn check(expect: (u8, u8)) {}\n}\n", false),
            ("fn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn check((a, b): (u8, u8)) {}\n}\n", true),
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
