//! What is to be done, told from verbs: a tool that does something else is no answer, however well its words fit.

use std::sync::LazyLock;

use toolhub_core::Tool;

use super::labels;
use super::mention::Reading;
use super::name::has_han;
use super::parameter::words;
use super::token::Kind;

const TABLE: &str = include_str!("../../data/verbs.tsv");

/// A kind of deed.
struct Deed {
    /// Whether nothing else comes near it.
    alone: bool,
    english: Vec<String>,
    chinese: Vec<&'static str>,
}

static DEEDS: LazyLock<Vec<Deed>> = LazyLock::new(|| {
    let rows = TABLE.lines().filter(|line| !line.starts_with('#'));
    rows.map(|row| {
        let mut columns = row.split('\t');
        let name = columns.next().unwrap_or_default();
        let english = columns.next().unwrap_or_default().split_whitespace().map(labels::stem).collect();
        let chinese = columns.next().unwrap_or_default().split_whitespace().collect();
        Deed { alone: name.ends_with('!'), english, chinese }
    })
    .collect()
});

/// How a tool's deeds stand to what a text asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Agreement {
    /// It does that.
    Does,
    /// Nobody can tell.
    Unknown,
    /// It seems to do something else.
    Doubtful,
    /// It certainly does.
    DoesNot,
}

/// Whether a tool does what a text asks for.
pub(super) fn agreement(reading: &Reading<'_>, stems: &[String], tool: &Tool) -> Agreement {
    let asked = asked(reading, stems);
    if asked.is_empty() {
        return Agreement::Unknown;
    }
    let done = done(tool);
    if done.is_empty() {
        return Agreement::Unknown;
    }
    if asked.iter().any(|deed| done.contains(deed)) {
        return Agreement::Does;
    }
    if asked.iter().all(|deed| DEEDS[*deed].alone) { Agreement::DoesNot } else { Agreement::Doubtful }
}

/// The deeds that the first verb of a text stands for.
fn asked(reading: &Reading<'_>, stems: &[String]) -> Vec<usize> {
    let text = reading.text;
    if has_han(text) {
        // The verb that stands first, and of those at one place the longest.
        let mut best: Option<(usize, usize)> = None;
        for verb in DEEDS.iter().flat_map(|deed| &deed.chinese) {
            for (at, _) in text.match_indices(verb) {
                let inside = reading.mentions.iter().any(|mention| mention.start <= at && at < mention.end);
                let better =
                    best.is_none_or(|(first, length)| at < first || (at == first && verb.len() > length));
                if !inside && better {
                    best = Some((at, verb.len()));
                }
            }
        }
        if let Some((at, length)) = best {
            let verb = &text[at..at + length];
            return (0..DEEDS.len()).filter(|deed| DEEDS[*deed].chinese.contains(&verb)).collect();
        }
    }
    let polite = [
        "please", "can", "could", "would", "will", "you", "i", "want", "need", "to", "help", "me", "let",
        "us", "like", "just",
    ];
    let first =
        reading.tokens.iter().zip(stems).find(|(token, _)| {
            token.kind == Kind::Word && !polite.contains(&token.text.to_lowercase().as_str())
        });
    let Some((_, stem)) = first else { return Vec::new() };
    (0..DEEDS.len()).filter(|deed| DEEDS[*deed].english.contains(stem)).collect()
}

/// The deeds of a tool: those its name tells, else those its description begins with.
fn done(tool: &Tool) -> Vec<usize> {
    let by = |said: &[String], text: &str| -> Vec<usize> {
        let does = |deed: &Deed| {
            deed.english.iter().any(|verb| said.contains(verb))
                || deed.chinese.iter().any(|verb| text.contains(verb))
        };
        (0..DEEDS.len()).filter(|deed| does(&DEEDS[*deed])).collect()
    };
    let name: Vec<String> = words(tool.name().as_str()).iter().map(|word| labels::stem(word)).collect();
    let mut found = by(&name, tool.name().as_str());
    let description = tool.definition.description();
    let head = description.split(['.', '\n', '。']).find(|part| !part.trim().is_empty()).unwrap_or_default();
    let said: Vec<String> = head.split(|c: char| !c.is_alphanumeric()).map(labels::stem).collect();
    for deed in by(&said, head) {
        if !found.contains(&deed) {
            found.push(deed);
        }
    }
    found
}
