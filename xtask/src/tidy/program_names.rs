//! Rule: no crate starts a program by its bare name. The system would also search relative folders of `PATH`, which may belong to
//! an untrusted project.
use super::{Finding, sources::Source};

/// Crates whose programs run for tests alone.
const EXCEPTIONS: [&str; 1] = ["crates/testkit/"];

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let path = source.path.to_string_lossy();
    let is_checked = path.starts_with("crates/")
        && path.contains("/src/")
        && source.is_rust()
        && !path.ends_with("tests.rs")
        && !EXCEPTIONS.iter().any(|start| path.starts_with(start));
    if !is_checked {
        return Vec::new();
    }
    let code = source.text.lines().enumerate().take_while(|(_, line)| !line.starts_with("#[cfg(test)]"));
    code.filter(|(_, line)| !line.trim_start().starts_with("//") && starts_bare_name(line))
        .map(|(index, _)| {
            let message = "a program by its bare name: find it with `toolhub_core::system_program`";
            Finding::new(&source.path, index + 1, message.to_owned())
        })
        .collect()
}

fn starts_bare_name(line: &str) -> bool {
    line.split("Command::new(\"").skip(1).any(|rest| !rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_bare_names_outside_tests() {
        let findings =
            |path: &str, text: &str| check(&Source { path: path.into(), text: text.to_owned() }).len();
        let line = "let child = Command::new(\"git\").spawn();\n";
        assert_eq!(findings("crates/core/src/a.rs", line), 1);
        assert_eq!(findings("crates/core/src/a.rs", &format!("#[cfg(test)]\nmod tests {{}}\n{line}")), 0);
        assert_eq!(findings("crates/core/tests/a.rs", line), 0);
        assert_eq!(findings("crates/testkit/src/a.rs", line), 0);
        assert_eq!(
            findings("crates/core/src/a.rs", "Command::new(\"/bin/sh\")\n//! Command::new(\"x\")\n"),
            0
        );
    }
}
