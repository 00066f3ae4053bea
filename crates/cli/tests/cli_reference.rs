//! Keeps the second part of `docs/reference/cli.md` and of its Chinese counterpart equal to the help of the program.
//! `WRITE_DOCS=1 cargo test -p toolhub-cli --test cli_reference` regenerates it.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The texts of a page in one language.
struct Language {
    code: &'static str,
    page: &'static str,
    full_stop: &'static str,
    global: &'static str,
    accepted: &'static str,
    commands: &'static str,
    columns: [&'static str; 3],
}

const ENGLISH: Language = Language {
    code: "en",
    page: "docs/reference/cli.md",
    full_stop: ".",
    global: "Global options",
    accepted: "These options are accepted by every command.",
    commands: "Commands",
    columns: ["command", "argument", "option"],
};
const CHINESE: Language = Language {
    code: "zh",
    page: "docs/zh/reference/cli.md",
    full_stop: "。",
    global: "全局选项",
    accepted: "所有命令都接受以下选项。",
    commands: "命令",
    columns: ["命令", "参数", "选项"],
};

/// The sections of a help text, with rows of a name and a description.
#[derive(Default)]
struct Help {
    about: String,
    usage: Vec<String>,
    commands: Vec<(String, String)>,
    arguments: Vec<(String, String)>,
    options: Vec<(String, String)>,
    global: Vec<(String, String)>,
}

impl Help {
    fn of(path: &[String], language: &Language) -> Self {
        let ran = Command::new(env!("CARGO_BIN_EXE_toolhub"))
            .args(path)
            .args(["--lang", language.code, "--help"])
            .env("COLUMNS", "1000")
            .output()
            .unwrap();
        assert!(ran.status.success(), "{path:?}: {ran:?}");
        Self::parse(&String::from_utf8(ran.stdout).unwrap())
    }

    fn parse(text: &str) -> Self {
        let mut help = Self { about: text.lines().next().unwrap().to_owned(), ..Self::default() };
        let mut section = String::new();
        for line in text.lines().skip(1) {
            let usage = line.strip_prefix("Usage: ").or_else(|| line.strip_prefix("用法："));
            if let Some(usage) = usage {
                help.usage.push(usage.to_owned());
                section = "Usage".to_owned();
            } else if line.trim().is_empty() {
                section.clear();
            } else if !line.starts_with(' ') {
                section = line.trim_end_matches([':', '：']).to_owned();
            } else if section == "Usage" {
                help.usage.push(line.trim().to_owned());
            } else if let Some(rows) = help.rows(&section) {
                let (name, about) = line.trim().split_once("  ").unwrap_or((line.trim(), ""));
                rows.push((name.to_owned(), about.trim().to_owned()));
            }
        }
        help
    }

    fn rows(&mut self, section: &str) -> Option<&mut Vec<(String, String)>> {
        match section {
            "Commands" | "命令" => Some(&mut self.commands),
            "Arguments" | "参数" => Some(&mut self.arguments),
            "Options" | "选项" => Some(&mut self.options),
            "Global options" | "全局选项" => Some(&mut self.global),
            _ => None,
        }
    }
}

fn table(column: &str, rows: &[(String, String)]) -> String {
    let mut out = format!("| {column} | |\n|---|---|\n");
    for (name, about) in rows {
        writeln!(out, "| `{}` | {} |", name.replace('|', "\\|"), about.replace('|', "\\|")).unwrap();
    }
    out
}

fn add_command(out: &mut String, path: &[String], language: &Language) {
    let help = Help::of(path, language);
    let (level, name) = ("#".repeat(path.len() + 1), path.join(" "));
    let (about, usage) = (help.about + language.full_stop, help.usage.join("\n"));
    write!(out, "\n{level} `toolhub {name}`\n\n{about}\n\n```text\n{usage}\n```\n").unwrap();
    let rows = [&help.commands, &help.arguments, &help.options];
    for (column, rows) in language.columns.iter().zip(rows) {
        if !rows.is_empty() {
            write!(out, "\n{}", table(column, rows)).unwrap();
        }
    }
    for (command, _) in &help.commands {
        add_command(out, &[path, std::slice::from_ref(command)].concat(), language);
    }
}

fn generated(language: &Language) -> String {
    let mut root = Help::of(&[], language);
    root.commands.retain(|(name, _)| name != "help");
    let (global, accepted, commands) = (language.global, language.accepted, language.commands);
    let mut out = format!("## {global}\n\n{accepted}\n\n{}", table(language.columns[2], &root.global));
    write!(out, "\n## {commands}\n\n{}", table(language.columns[0], &root.commands)).unwrap();
    for (command, _) in &root.commands {
        add_command(&mut out, std::slice::from_ref(command), language);
    }
    out
}

fn check(language: &Language) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(language.page);
    let page = fs::read_to_string(&file).unwrap();
    let (head, rest) = page.split_at(page.find(&format!("## {}\n", language.global)).unwrap());
    let expected = generated(language);
    if std::env::var_os("WRITE_DOCS").is_some() {
        fs::write(&file, format!("{head}{expected}")).unwrap();
    } else {
        assert!(
            rest == expected,
            "{} is not what the program says: set WRITE_DOCS=1 and commit",
            language.page
        );
    }
}

#[test]
fn reference_has_the_help_of_every_command() {
    check(&ENGLISH);
}

#[test]
fn chinese_reference_has_the_help_of_every_command() {
    check(&CHINESE);
}
