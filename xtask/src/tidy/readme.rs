//! Extracts the shell commands of this project from a Markdown document.

/// A command of this project, as written in the document.
#[derive(Debug, PartialEq)]
pub(super) struct Usage {
    pub(super) line: usize,
    pub(super) program: Program,
    /// The words after the name of the program.
    pub(super) words: Vec<Word>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Program {
    Toolhub,
    Xtask,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) quoted: bool,
}

const SHELL_LANGUAGES: &[&str] = &["sh", "bash", "console", "shell"];

pub(super) fn usages(markdown: &str) -> Vec<Usage> {
    let mut found = Vec::new();
    let mut fence: Option<Fence> = None;
    let mut lines = markdown.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        if let Some(open) = &fence {
            if open.is_closed_by(line) {
                fence = None;
            } else if open.shell {
                let mut command = line.trim().to_owned();
                while command.ends_with('\\') {
                    command.pop();
                    let Some((_, next)) = lines.next() else { break };
                    command.push_str(next.trim());
                }
                found.extend(commands(command.strip_prefix("$ ").unwrap_or(&command), index + 1));
            }
        } else if let Some(opened) = Fence::opened_by(line) {
            fence = Some(opened);
        } else {
            let spans = code_spans(line).into_iter().filter(|span| span.starts_with("toolhub "));
            found.extend(spans.flat_map(|span| commands(span, index + 1)));
        }
    }
    found
}

struct Fence {
    marker: String,
    shell: bool,
}

impl Fence {
    fn opened_by(line: &str) -> Option<Self> {
        let line = line.trim_start();
        let mark = line.chars().next().filter(|mark| "`~".contains(*mark))?;
        let language = line.trim_start_matches(mark);
        let marker = line[..line.len() - language.len()].to_owned();
        let opens = marker.len() >= 3 && !language.contains('`');
        let name = language.trim().split([' ', ',', '{']).next().unwrap_or_default();
        opens.then(|| Self { marker, shell: SHELL_LANGUAGES.contains(&name) })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim();
        line.starts_with(&self.marker) && line.trim_start_matches(&self.marker[..1]).is_empty()
    }
}

/// The contents of the inline code spans of a line.
fn code_spans(line: &str) -> Vec<&str> {
    let mut spans = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find('`') {
        let opened = &rest[start..];
        let inside = opened.trim_start_matches('`');
        let ticks = &opened[..opened.len() - inside.len()];
        let Some(end) = inside.find(ticks) else { break };
        spans.push(inside[..end].trim());
        rest = &inside[end + ticks.len()..];
    }
    spans
}

/// The commands of this project on a shell line, which may be parts of a pipeline or a list.
fn commands(line: &str, number: usize) -> Vec<Usage> {
    let words = split_words(line);
    let parts = words.split(|word| !word.quoted && ["|", "||", "&&", ";"].contains(&word.text.as_str()));
    parts.filter_map(|part| usage(part, number)).collect()
}

fn usage(words: &[Word], line: usize) -> Option<Usage> {
    let is_assignment = |word: &&Word| word.text.contains('=') && !word.text.starts_with('-');
    let words = &words[words.iter().take_while(is_assignment).count()..];
    let text = |index: usize| words.get(index).map(|word| word.text.as_str());
    let (program, rest) = match (text(0)?, text(1)) {
        ("toolhub", _) => (Program::Toolhub, &words[1..]),
        ("cargo", Some("xtask")) => (Program::Xtask, &words[2..]),
        ("cargo", Some("run")) => {
            let dashes = words.iter().position(|word| word.text == "--")?;
            (run_by_cargo(&words[2..dashes])?, &words[dashes + 1..])
        }
        _ => return None,
    };
    Some(Usage { line, program, words: rest.to_vec() })
}

/// The program that `cargo run` starts, if its help can be read.
fn run_by_cargo(options: &[Word]) -> Option<Program> {
    let choice =
        options.iter().position(|word| ["-p", "--package", "--bin", "--example"].contains(&&*word.text));
    match choice.map(|index| options.get(index + 1).map(|word| word.text.as_str())) {
        None | Some(Some("toolhub" | "toolhub-cli")) => Some(Program::Toolhub),
        Some(Some("xtask")) => Some(Program::Xtask),
        Some(_) => None,
    }
}

/// Splits a line into words like a shell, up to a comment or a redirection, without expansions.
fn split_words(line: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut current: Option<Word> = None;
    let mut quote: Option<char> = None;
    // The additional space terminates the last word.
    for c in line.chars().chain([' ']) {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                current.get_or_insert_with(empty_word).quoted = true;
            }
            None if c.is_whitespace() => {
                if let Some(word) = current.take() {
                    if is_end(&word) {
                        break;
                    }
                    words.push(word);
                }
            }
            _ => current.get_or_insert_with(empty_word).text.push(c),
        }
    }
    words
}

fn empty_word() -> Word {
    Word { text: String::new(), quoted: false }
}

fn is_end(word: &Word) -> bool {
    let text = word.text.as_str();
    let placeholder = text.starts_with('<') && text.contains('>');
    !word.quoted && !placeholder && ["#", ">", "<", "2>", "&>"].iter().any(|start| text.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extracts_commands_from_markdown() {
        let shell = |line: &str| format!("```sh\n{line}\n```\n");
        for (markdown, expect) in [
            (shell("toolhub tools"), "2 toolhub [tools]"),
            (shell("$ toolhub tools --json"), "2 toolhub [tools] [--json]"),
            (shell("  toolhub call t a=1 # why"), "2 toolhub [call] [t] [a=1]"),
            (shell("toolhub ask \"what | time\" > f"), "2 toolhub [ask] \"what | time\""),
            (shell("toolhub call \\\n  t --x"), "2 toolhub [call] [t] [--x]"),
            (shell("cat f | toolhub run && toolhub stats"), "2 toolhub [run]; 2 toolhub [stats]"),
            (shell("A=b toolhub tools"), "2 toolhub [tools]"),
            (shell("toolhub call <TOOL> --x"), "2 toolhub [call] [<TOOL>] [--x]"),
            (shell("cargo run --release -- tools"), "2 toolhub [tools]"),
            (shell("cargo run -p toolhub-cli -- tools"), "2 toolhub [tools]"),
            (shell("cargo run -p xtask -- tidy"), "2 xtask [tidy]"),
            (shell("cargo run --bin other -- tools"), ""),
            (shell("cargo run"), ""),
            (shell("cargo xtask test"), "2 xtask [test]"),
            (shell("cargo build\ntoolhubs x\nsee toolhub tools"), ""),
            ("```console\n$ toolhub a\nout\n$ toolhub b\n```".to_owned(), "2 toolhub [a]; 4 toolhub [b]"),
            ("```rust\ntoolhub tools\n```".to_owned(), ""),
            ("```\ntoolhub tools\n```".to_owned(), ""),
            ("````sh\n```\ntoolhub a\n````\ntoolhub b".to_owned(), "3 toolhub [a]"),
            ("- x\n  ~~~bash\n  toolhub a\n  ~~~\n".to_owned(), "3 toolhub [a]"),
            ("Run `toolhub a` or ``toolhub b``.".to_owned(), "1 toolhub [a]; 1 toolhub [b]"),
            ("`toolhub` and `xtoolhub a`, toolhub a, `open".to_owned(), ""),
        ] {
            let shown: Vec<String> = usages(&markdown).iter().map(show).collect();
            assert_eq!(shown.join("; "), expect, "{markdown}");
        }
    }

    fn show(usage: &Usage) -> String {
        let program = match usage.program {
            Program::Toolhub => "toolhub",
            Program::Xtask => "xtask",
        };
        let words = usage.words.iter().map(|word| match word.quoted {
            true => format!(" {:?}", word.text),
            false => format!(" [{}]", word.text),
        });
        format!("{} {program}{}", usage.line, words.collect::<String>())
    }
}
