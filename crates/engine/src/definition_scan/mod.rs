//! Scans tool definitions for suspicious content: invisible characters, homoglyphs, text moved out of view, and
//! instructions to the model. Pure; the caller decides about the consequences.

mod characters;
mod letters;
mod phrases;
mod shapes;
mod walk;

#[cfg(test)]
mod tests;

use toolhub_core::ToolDefinition;
use toolhub_core::lang::{Lang, Localize, LocalizedText};

pub use characters::escape_invisible;

/// Maximum number of findings per definition.
const MAX_FINDINGS: usize = 16;
/// Maximum quoted characters.
const MAX_QUOTE_CHARS: usize = 120;

/// The kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FindingKind {
    /// Invisible characters.
    Invisible,
    /// Terminal control characters.
    Control,
    /// Homoglyphs: letters of one script that look like those of another.
    LookAlike,
    /// Text moved out of view by whitespace.
    HiddenByWhitespace,
    /// Instructions to the model.
    Instruction,
    /// Access to private files, or their exfiltration.
    Secret,
    /// A long encoded text.
    Encoded,
    /// A URL that contains a password or exfiltrates data.
    Address,
    /// A duplicate member: parsers differ in the one they use.
    DuplicateMember,
    /// More text than the scan limit.
    TooLong,
}

impl FindingKind {
    /// Machine-readable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Invisible => "invisible",
            Self::Control => "control",
            Self::LookAlike => "look_alike",
            Self::HiddenByWhitespace => "out_of_sight",
            Self::Instruction => "instruction",
            Self::Secret => "secret",
            Self::Encoded => "encoded",
            Self::Address => "address",
            Self::DuplicateMember => "twice",
            Self::TooLong => "too_long",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        let kinds = [Self::Instruction, Self::Secret, Self::Address];
        kinds.into_iter().find(|kind| kind.name() == name)
    }
}

/// A suspicious part of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its path, such as `inputSchema.properties.path.description`.
    pub field: String,
    /// Its kind.
    pub kind: FindingKind,
    /// The text, safe to print: invisible characters are written as `<U+200B>`.
    pub quote: String,
    /// Why it is suspicious.
    pub why: LocalizedText,
}

impl Localize for Finding {
    fn localize(&self, lang: Lang) -> String {
        let (field, quote, why) = (escape_invisible(&self.field), &self.quote, self.why.localize(lang));
        lang.choose(format!("{why}: `{quote}` (in {field})"), format!("{why}：`{quote}`（在 {field}）"))
    }
}

/// A finding in one text.
struct TextFinding {
    kind: FindingKind,
    quote: String,
    why: LocalizedText,
}

/// Scans the names, descriptions and all other texts of a definition.
pub fn scan_definition(definition: &ToolDefinition) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    walk::texts(definition.raw(), &mut |field, text| {
        let seen = match text {
            walk::Visited::Written(text) => scan_text(text),
            walk::Visited::DuplicateMember(name) => vec![TextFinding {
                kind: FindingKind::DuplicateMember,
                quote: quote_of(name),
                why: LocalizedText::new(
                    "it is there twice, so the model may read another one than you",
                    "同名成员出现两次，模型读到的可能与你看到的不同",
                ),
            }],
            walk::Visited::TooLong => vec![TextFinding {
                kind: FindingKind::TooLong,
                quote: "…".to_owned(),
                why: LocalizedText::new(
                    "there is more text than was looked through",
                    "文字过多，之后的部分未经检查",
                ),
            }],
        };
        for TextFinding { kind, quote, why } in seen {
            let is_repeated = findings.iter().any(|earlier| (earlier.kind, &earlier.quote) == (kind, &quote));
            if !is_repeated && findings.len() < MAX_FINDINGS {
                findings.push(Finding { field: field.to_owned(), kind, quote, why });
            }
        }
    });
    findings
}

fn scan_text(text: &str) -> Vec<TextFinding> {
    let mut seen = characters::scan(text);
    seen.extend(letters::scan(text));
    seen.extend(shapes::scan(text));
    seen.extend(phrases::scan(text));
    seen
}

/// A text that is safe to print, limited to `MAX_QUOTE_CHARS` characters.
fn quote_of(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(MAX_QUOTE_CHARS) {
        Some((at, _)) => format!("{}…", escape_invisible(&text[..at])),
        None => escape_invisible(&text).into_owned(),
    }
}
