//! `${VAR}` and `${VAR:-default}`, filled in from the environment when a server is started, never in the files.

/// Fills the variables in; the name of the first that is not set is the error.
pub fn expand(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((inside, tail)) = after.split_once('}') else {
            // No end: not a variable but text that happens to look like one.
            out.push_str("${");
            rest = after;
            continue;
        };
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        if !is_name(name) {
            out.push_str("${");
            rest = after;
            continue;
        }
        match (lookup(name).filter(|value| !value.is_empty()), default) {
            (Some(value), _) => out.push_str(&value),
            (None, Some(default)) => out.push_str(default),
            (None, None) => return Err(name.to_owned()),
        }
        rest = tail;
    }
    out.push_str(rest);
    Ok(out)
}

fn is_name(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|rest| rest.is_ascii_alphanumeric() || rest == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in() {
        let lookup = |name: &str| match name {
            "HOST" => Some("localhost".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let check = |text: &str, expect: Result<&str, &str>| {
            assert_eq!(expand(text, &lookup), expect.map(str::to_owned).map_err(str::to_owned), "{text}");
        };
        check("http://${HOST}:80", Ok("http://localhost:80"));
        check("${NONE:-a b}/${HOST}", Ok("a b/localhost"));
        check("${EMPTY:-x}", Ok("x"));
        check("${NONE:-}", Ok(""));
        check("${NONE}", Err("NONE"));
        check("$HOME ${ ${1x} ${open", Ok("$HOME ${ ${1x} ${open"));
        check("${中}", Ok("${中}"));
    }
}
