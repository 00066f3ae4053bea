//! Repairs frontmatter that is invalid YAML but unambiguous: unquoted values with colons, tabs as indentation.

use std::fmt::Write as _;

/// A repaired line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Repair {
    /// The line, from 1.
    pub(crate) line: usize,
    /// The corrected line.
    pub(crate) remedy: String,
}

/// Characters that cannot start a plain scalar.
const BEGINNINGS: [char; 10] = ['@', '`', '%', '*', '&', '!', '{', '[', '|', '>'];

/// Quotes the values that need it. Returns the text and the repaired lines; line numbers do not change.
pub(crate) fn repair(text: &str) -> (String, Vec<Repair>) {
    let lines: Vec<&str> = text.lines().collect();
    let mut out: Vec<String> = Vec::new();
    let mut repairs = Vec::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let number = at + 1;
        at += 1;
        let plain = untabbed(line);
        let Some((key, value)) = pair(&plain) else {
            if plain != line.trim_end() && plain != *line {
                repairs.push(Repair { line: number, remedy: plain.clone() });
            }
            out.push(plain);
            continue;
        };
        // A value that continues on indented lines is one text, even with colons in it.
        let mut joined = value.to_owned();
        let mut more = 0;
        if plain.starts_with("description:") && !is_marked(value) {
            while let Some(next) = lines.get(at).filter(|next| next.starts_with([' ', '\t'])) {
                joined.push(' ');
                joined.push_str(next.trim());
                at += 1;
                more += 1;
            }
        }
        if needs_quotes(&joined) {
            let indent = &plain[..plain.len() - plain.trim_start().len()];
            let dash = if plain.trim_start().starts_with("- ") { "- " } else { "" };
            let quoted = format!("{indent}{dash}{key}: {}", quote_scalar(&joined));
            repairs.push(Repair { line: number, remedy: quoted.clone() });
            out.push(quoted);
            out.extend(std::iter::repeat_n(String::new(), more));
            continue;
        }
        if plain != *line {
            repairs.push(Repair { line: number, remedy: plain.clone() });
        }
        out.push(plain);
        out.extend(lines.iter().skip(at - more).take(more).map(|line| untabbed(line)));
    }
    (out.join("\n") + "\n", repairs)
}

/// Replaces each tab of the indentation by two spaces.
fn untabbed(line: &str) -> String {
    let words = line.trim_start_matches([' ', '\t']);
    let indent = &line[..line.len() - words.len()];
    if !indent.contains('\t') {
        return line.replace(":\t", ": ");
    }
    let blanks: usize = indent.chars().map(|c| if c == '\t' { 2 } else { 1 }).sum();
    " ".repeat(blanks) + &words.replace(":\t", ": ")
}

/// Returns key and value of a line that has both.
fn pair(line: &str) -> Option<(&str, &str)> {
    let words = line.trim_start();
    let words = words.strip_prefix("- ").unwrap_or(words);
    let (key, value) = words.split_once(':')?;
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
    let value = value.strip_prefix(' ')?.trim();
    (is_key && !value.is_empty()).then_some((key, value))
}

/// Whether a value is quoted or a block scalar.
fn is_marked(value: &str) -> bool {
    let closed = |quote: char| value.len() > 1 && value.starts_with(quote) && value.ends_with(quote);
    closed('"') || closed('\'') || value.starts_with(['|', '>'])
}

fn needs_quotes(value: &str) -> bool {
    let bracketed = |open: char, close: char| value.starts_with(open) && value.ends_with(close);
    if is_marked(value) || bracketed('[', ']') || bracketed('{', '}') {
        return false;
    }
    value.contains(": ")
        || value.ends_with(':')
        || value.starts_with(BEGINNINGS)
        || value.starts_with(['"', '\''])
}

/// Returns a text as a double-quoted YAML scalar.
pub(crate) fn quote_scalar(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            // YAML treats some of these as line breaks and rejects others.
            other if other.is_control() || matches!(other, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                let _ = write!(out, "\\u{:04x}", u32::from(other));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::parse;
    use serde_json::{Value, json};

    fn read(text: &str) -> (Value, Vec<usize>) {
        let (text, repairs) = repair(text);
        let value = parse(&text).unwrap_or_else(|error| panic!("{error:?} in {text}")).value();
        (value, repairs.into_iter().map(|repairs| repairs.line).collect())
    }

    #[test]
    fn keeps_quoted_texts_unchanged() {
        for text in ["", "a\rb", "a\u{85}b", "\u{2028}", "\u{feff}a", "\0\u{7}\u{1b}[31m", "\\\"\t\n", "世界"]
        {
            assert_eq!(parse(&quote_scalar(text)).unwrap().text(), Some(text), "{text:?}");
        }
    }

    #[test]
    fn repairs_unquoted_colons_and_tabs() {
        let check = |text: &str, expect: Value, lines: &[usize]| {
            assert_eq!(read(text), (expect, lines.to_vec()), "{text}");
        };
        check(
            "name: a\ndescription: Use when: the user says \"go\"\n",
            json!({"name": "a", "description": "Use when: the user says \"go\""}),
            &[2],
        );
        check(
            "description: 处理 PDF: 提取: 文本\nmetadata:\n\tauthor: me\n\tversion: \"1\"\n",
            json!({"description": "处理 PDF: 提取: 文本", "metadata": {"author": "me", "version": "1"}}),
            &[1, 3, 4],
        );
        check(
            "description: first: this\n  then: that\nlicense: MIT\n",
            json!({"description": "first: this then: that", "license": "MIT"}),
            &[1],
        );
        check(
            "a:\n  - description: d\n    name: x: y\n  - description: e: f\n    name: z\n",
            json!({"a": [{"description": "d", "name": "x: y"}, {"description": "e: f", "name": "z"}]}),
            &[3, 4],
        );
        check("description: `code` first\n", json!({"description": "`code` first"}), &[1]);
        check("description: @me\ntools: [a, b]\n", json!({"description": "@me", "tools": ["a", "b"]}), &[1]);
    }
}
