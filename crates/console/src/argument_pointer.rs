//! The JSON pointer of an argument, from its path in the messages of the validator.

use serde_json::Value;

/// The JSON pointer of a path such as `data[0].name`. A name may contain dots and brackets itself, so the path is read along
/// the arguments; a part that they do not have ends at the next dot or bracket.
pub fn argument_pointer(path: &str, arguments: &Value) -> String {
    let mut pointer = String::new();
    let (mut rest, mut value) = (path, Some(arguments));
    while !rest.is_empty() {
        let (token, after) = match value.and_then(|value| member(rest, value)) {
            Some(name) => rest.split_at(name.len()),
            None => first_part(rest),
        };
        value = value.and_then(|value| match value {
            Value::Array(items) => items.get(token.parse::<usize>().ok()?),
            other => other.get(token),
        });
        pointer.push('/');
        pointer.push_str(&token.replace('~', "~0").replace('/', "~1"));
        rest = after.strip_prefix('.').unwrap_or(after);
    }
    pointer
}

/// The longest name of a member with which a path begins.
fn member<'a>(path: &str, value: &'a Value) -> Option<&'a str> {
    let names = value.as_object()?.keys().filter(|name| {
        let after = path.strip_prefix(name.as_str());
        !name.is_empty() && after.is_some_and(|after| after.is_empty() || after.starts_with(['.', '[']))
    });
    names.map(String::as_str).max_by_key(|name| name.len())
}

/// The name or the index at the start of a path, and what follows.
fn first_part(path: &str) -> (&str, &str) {
    if let Some(item) = path.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        return item;
    }
    let end = path.find(['.', '[']).filter(|end| *end > 0);
    path.split_at(end.unwrap_or(path.len()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_of_arguments_become_json_pointers() {
        let arguments = json!({
            "data": [{"name": 1}],
            "a~b/c": 1,
            "a.b": {"c[0]": [1]},
            "a": {"b": 1},
            "x[y": [[1, 2, 3]],
            "[0]": 1,
        });
        for (path, expected) in [
            ("", ""),
            ("a", "/a"),
            ("data[0].name", "/data/0/name"),
            ("data[0].missing", "/data/0/missing"),
            ("missing.inner[3].x", "/missing/inner/3/x"),
            ("a~b/c", "/a~0b~1c"),
            ("a.b", "/a.b"),
            ("a.b.c[0][0]", "/a.b/c[0]/0"),
            ("a.c", "/a/c"),
            ("x[y[0][2]", "/x[y/0/2"),
            ("[0]", "/[0]"),
            ("[1][2]", "/1/2"),
            ("[unclosed", "/[unclosed"),
            (".dotted", "/.dotted"),
        ] {
            assert_eq!(argument_pointer(path, &arguments), expected, "{path}");
        }
    }
}
