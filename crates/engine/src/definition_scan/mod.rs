//! What in a tool's definition should make its owner look twice: characters nobody sees, letters that pretend to be
//! others, text pushed out of sight, and words that are meant for the model. Pure; what follows from it is left to
//! whoever asks.

mod characters;
mod letters;
mod phrases;
mod shapes;
mod walk;

#[cfg(test)]
mod tests;

use toolhub_core::ToolDefinition;
use toolhub_core::lang::{Lang, Say, Text};

pub use characters::visible;

/// More than this is not told of one definition: whoever reads ten has seen enough.
const MAX_FINDINGS: usize = 16;
/// How much of what was found is quoted, in characters.
const QUOTED: usize = 120;

/// What kind of thing was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Characters that nobody sees.
    Invisible,
    /// Characters that steer a terminal.
    Control,
    /// Letters of one script that look like those of another.
    LookAlike,
    /// Text pushed out of sight by blanks.
    OutOfSight,
    /// Words that tell the model what to do.
    Instruction,
    /// Private files, or their way out.
    Secret,
    /// A long text that nobody can read.
    Encoded,
    /// An address that carries a password, or something away.
    Address,
    /// A member that is there twice, so that two readers may read two things.
    Twice,
    /// More text than was looked through.
    TooLong,
}

impl Kind {
    /// Its name, for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Invisible => "invisible",
            Self::Control => "control",
            Self::LookAlike => "look_alike",
            Self::OutOfSight => "out_of_sight",
            Self::Instruction => "instruction",
            Self::Secret => "secret",
            Self::Encoded => "encoded",
            Self::Address => "address",
            Self::Twice => "twice",
            Self::TooLong => "too_long",
        }
    }

    fn named(name: &str) -> Option<Self> {
        let all = [Self::Instruction, Self::Secret, Self::Address];
        all.into_iter().find(|kind| kind.name() == name)
    }
}

/// Something that should make the owner look twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where, such as `inputSchema.properties.path.description`.
    pub field: String,
    /// Of what kind.
    pub kind: Kind,
    /// What it says there, safe to print: what nobody sees is written as `<U+200B>`.
    pub quote: String,
    /// Why it matters.
    pub why: Text,
}

impl Say for Finding {
    fn say(&self, lang: Lang) -> String {
        let (field, quote, why) = (visible(&self.field), &self.quote, self.why.say(lang));
        lang.pick(format!("{why}: `{quote}` (in {field})"), format!("{why}：`{quote}`（在 {field}）"))
    }
}

/// What a look at one text found: where in it, of what kind, why.
struct Seen {
    kind: Kind,
    quote: String,
    why: Text,
}

/// Looks through the names, descriptions and all other texts of a definition.
pub fn look_through(definition: &ToolDefinition) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    walk::texts(definition.raw(), &mut |field, text| {
        let seen = match text {
            walk::Text::Written(text) => look_at(text),
            walk::Text::Twice(name) => vec![Seen {
                kind: Kind::Twice,
                quote: quote_of(name),
                why: Text::new(
                    "it is there twice, so the model may read another one than you",
                    "同名成员出现两次，模型读到的可能与你看到的不同",
                ),
            }],
            walk::Text::TooLong => vec![Seen {
                kind: Kind::TooLong,
                quote: "…".to_owned(),
                why: Text::new("there is more text than was looked through", "文字过多，之后的部分未经检查"),
            }],
        };
        for Seen { kind, quote, why } in seen {
            let known = findings.iter().any(|known| (known.kind, &known.quote) == (kind, &quote));
            if !known && findings.len() < MAX_FINDINGS {
                findings.push(Finding { field: field.to_owned(), kind, quote, why });
            }
        }
    });
    findings
}

fn look_at(text: &str) -> Vec<Seen> {
    let mut seen = characters::look(text);
    seen.extend(letters::look(text));
    seen.extend(shapes::look(text));
    seen.extend(phrases::look(text));
    seen
}

/// A text safe to print, and not too long.
fn quote_of(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(QUOTED) {
        Some((at, _)) => format!("{}…", visible(&text[..at])),
        None => visible(&text).into_owned(),
    }
}
