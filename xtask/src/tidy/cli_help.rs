//! Parses the output of `--help` into subcommands and flags.
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default)]
pub(super) struct Help {
    pub(super) subcommands: BTreeSet<String>,
    /// Whether positional arguments are accepted in addition to subcommands.
    pub(super) takes_arguments: bool,
    flags: BTreeSet<String>,
    /// The flags whose value is the next word.
    with_value: BTreeSet<String>,
}

impl Help {
    pub(super) fn parse(text: &str) -> Self {
        let mut help = Self::default();
        for line in text.lines() {
            help.flags.extend(long_flags(line).map(str::to_owned));
            help.takes_arguments |= line.trim_end() == "Arguments:";
            if let Some(name) = subcommand(line) {
                help.subcommands.insert(name.to_owned());
            }
            if line.trim_start().starts_with('-') {
                help.with_value.extend(flags_with_value(line));
            }
        }
        help
    }

    pub(super) fn has_flag(&self, flag: &str) -> bool {
        self.flags.contains(flag)
    }

    pub(super) fn takes_value(&self, flag: &str) -> bool {
        self.with_value.contains(flag)
    }
}

/// Parses `  name  about` under any heading: two spaces before the name, and at least two or nothing after it.
fn subcommand(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("  ")?;
    let end = rest.find(' ').unwrap_or(rest.len());
    let (name, after) = rest.split_at(end);
    (is_subcommand_name(name) && (after.is_empty() || after.starts_with("  "))).then_some(name)
}

pub(super) fn is_subcommand_name(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    word.starts_with(|c: char| c.is_ascii_lowercase()) && word.chars().all(plain)
}

fn long_flags(line: &str) -> impl Iterator<Item = &str> {
    let in_flag = |c: char| c.is_ascii_alphanumeric() || c == '-';
    line.split(move |c: char| !in_flag(c)).filter(|word| word.len() > 2 && word.starts_with("--"))
}

/// Returns `-c` and `--config` for `  -c, --config <FILE>  about`. An optional value, `[=<X>]`, is not a separate
/// word.
fn flags_with_value(line: &str) -> Vec<String> {
    let declaration = line.trim_start().split("  ").next().unwrap_or_default();
    match declaration.split_once(" <") {
        Some((names, _)) => names.split(", ").map(str::to_owned).collect(),
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_help_text() {
        let help = Help::parse(
            "One place for tools\n\nUsage: toolhub [OPTIONS] <COMMAND>\n\nCommands:\n  tools    List them\n  \
             servers  MCP servers\n  completions\n          Shell completions\n\nArguments:\n  [TOOL]  one\n\n\
             Options:\n  -c, --config <FILE>  Its file, not --home\n      --color[=<WHEN>]\n  -h, --help  Print\n\n\
             Examples:\n  toolhub tools\n",
        );
        assert_eq!(Vec::from_iter(&help.subcommands), ["completions", "servers", "tools"]);
        assert!(help.takes_arguments);
        for (flag, known, valued) in [
            ("--config", true, true),
            ("-c", false, true),
            ("--color", true, false),
            ("--help", true, false),
            ("--conf", false, false),
        ] {
            assert_eq!((help.has_flag(flag), help.takes_value(flag)), (known, valued), "{flag}");
        }
    }
}
