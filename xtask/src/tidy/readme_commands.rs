//! Rule: every command in the READMEs and in the book exists, with all flags it is used with.
use std::{collections::HashMap, path::Path};

use anyhow::Result;

use super::{
    Finding,
    cli_help::{Help, is_subcommand_name},
    readme::{Program, Usage, Word, usages},
    sources::Source,
};
use crate::{
    commands::COMMANDS,
    run::{self, Profile},
    workspace::Workspace,
};

const READMES: &[&str] = &["README.md", "README.zh-CN.md"];

pub(super) fn check(workspace: &Workspace, files: &[Source]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut hub_usages = Vec::new();
    for readme in READMES {
        if !files.iter().any(|file| file.path == Path::new(readme)) {
            findings.push(Finding::new(readme, 1, "is missing: write it"));
        }
    }
    for file in files.iter().filter(|file| is_document(&file.path)) {
        for usage in usages(&file.text) {
            match usage.program {
                Program::Toolhub => hub_usages.push((&file.path, usage)),
                Program::Xtask => findings
                    .extend(xtask_fault(&usage).map(|message| Finding::new(&file.path, usage.line, message))),
            }
        }
    }
    let Some((path, first)) = hub_usages.first() else { return Ok(findings) };
    let binary = match run::build(workspace, "toolhub-cli", "toolhub", Profile::Debug) {
        Ok(binary) => binary,
        // The other findings are still reported.
        Err(error) => {
            let message = format!("its commands cannot be checked, `toolhub` does not build: {error:#}");
            findings.push(Finding::new(*path, first.line, message));
            return Ok(findings);
        }
    };
    let mut helps = HelpCache { ask: |path: &[String]| ask(&binary, path), known: HashMap::new() };
    for (path, usage) in &hub_usages {
        if let Err(message) = check_words(&usage.words, &mut helps) {
            findings.push(Finding::new(*path, usage.line, message));
        }
    }
    Ok(findings)
}

/// Whether the file is a README or a page of the book.
fn is_document(path: &Path) -> bool {
    let is_page = path.starts_with("docs") && path.extension().is_some_and(|extension| extension == "md");
    is_page || READMES.iter().any(|readme| path == Path::new(readme))
}

fn xtask_fault(usage: &Usage) -> Option<String> {
    let word = usage.words.first().filter(|word| is_subcommand_name(&word.text))?;
    let known = COMMANDS.iter().any(|command| command.name == word.text);
    (!known).then(|| format!("`cargo xtask` has no command `{}`: correct it", word.text))
}

fn ask(binary: &Path, path: &[String]) -> Result<Help> {
    // In a narrow terminal the lists would be wrapped.
    let mut command = run::program(binary);
    run::read(command.args(path).arg("--help").env("COLUMNS", "200")).map(|text| Help::parse(&text))
}

/// Caches the help texts.
struct HelpCache<F> {
    ask: F,
    known: HashMap<Vec<String>, Result<Help, String>>,
}

impl<F: FnMut(&[String]) -> Result<Help>> HelpCache<F> {
    fn of(&mut self, path: &[String]) -> Result<Help, String> {
        if !self.known.contains_key(path) {
            let help = (self.ask)(path).map_err(|error| format!("{error:#}"));
            self.known.insert(path.to_vec(), help);
        }
        self.known[path].clone()
    }
}

/// Resolves the words along the tree of subcommands, up to the first error: after an unknown flag it is undefined
/// whether the next word is its value.
fn check_words<F: FnMut(&[String]) -> Result<Help>>(
    words: &[Word],
    helps: &mut HelpCache<F>,
) -> Result<(), String> {
    let mut path: Vec<String> = Vec::new();
    let mut help = helps.of(&path)?;
    let mut in_path = true;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        // Optional flags in a synopsis: `[--flag]`.
        let text = word.text.trim_matches(['[', ']']);
        if word.quoted {
            in_path = false;
        } else if text == "--" {
            break;
        } else if text.starts_with('-') {
            let flag = text.split('=').next().unwrap_or_default();
            if flag.starts_with("--") && !help.has_flag(flag) {
                return Err(format!("`{}` has no flag `{flag}`: correct it", command_line(&path)));
            }
            if flag == text && help.takes_value(flag) {
                words.next();
            }
        } else if in_path && help.subcommands.contains(text) {
            path.push(text.to_owned());
            help = helps.of(&path)?;
        } else {
            let expects_command = in_path && !help.subcommands.is_empty() && !help.takes_arguments;
            if expects_command && is_subcommand_name(text) {
                return Err(format!("`{}` has no command `{text}`: correct it", command_line(&path)));
            }
            in_path = false;
        }
    }
    Ok(())
}

fn command_line(path: &[String]) -> String {
    std::iter::once("toolhub").chain(path.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    const ROOT: &str = "Commands:\n  call     x\n  servers  x\n  broken   x\n\nOptions:\n      --home <DIR>  x\n  -v, --verbose  x\n";
    const CALL: &str = "Arguments:\n  [TOOL]  x\n\nOptions:\n      --args <JSON>  x\n      --json  x\n      --home <DIR>  x\n";
    const SERVERS: &str = "Commands:\n  list  x\n  add   x\n";

    fn fake(path: &[String]) -> Result<Help> {
        match path.join(" ").as_str() {
            "" => Ok(Help::parse(ROOT)),
            "call" => Ok(Help::parse(CALL)),
            "servers" => Ok(Help::parse(SERVERS)),
            "servers list" | "servers add" => Ok(Help::parse("")),
            other => bail!("`{other} --help` failed"),
        }
    }

    #[test]
    fn reports_unknown_commands_and_flags() {
        for (line, expect) in [
            ("call TOOL a=1 --args '{\"--x\": 1}' --json", ""),
            ("call tool --args=@file", ""),
            ("call tool [--json] --args JSON", ""),
            ("call tool --jsn", "`toolhub call` has no flag `--jsn`: correct it"),
            ("call tool -- --whatever", ""),
            ("--home demo call tool --json", ""),
            ("-v call --json", ""),
            ("--hme demo call", "`toolhub` has no flag `--hme`: correct it"),
            ("--json call", "`toolhub` has no flag `--json`: correct it"),
            ("cal tool", "`toolhub` has no command `cal`: correct it"),
            ("COMMAND", ""),
            ("0.1.0", ""),
            ("'cal'", ""),
            ("servers list", ""),
            ("servers list\\|add", ""),
            ("servers lst", "`toolhub servers` has no command `lst`: correct it"),
            ("servers add list --x", "`toolhub servers add` has no flag `--x`: correct it"),
            ("broken", "`broken --help` failed"),
        ] {
            let usages = usages(&format!("```sh\ntoolhub {line}\n```"));
            let mut helps = HelpCache { ask: fake, known: HashMap::new() };
            let fault = check_words(&usages[0].words, &mut helps).err();
            assert_eq!(fault.unwrap_or_default(), expect, "{line}");
        }
    }

    #[test]
    fn reports_unknown_xtask_commands() {
        for (line, expect) in
            [("tidy", false), ("", false), ("--help", false), ("COMMAND", false), ("tdy", true)]
        {
            let usages = usages(&format!("```sh\ncargo xtask {line}\n```"));
            assert_eq!(xtask_fault(&usages[0]).is_some(), expect, "{line}");
        }
    }
}
