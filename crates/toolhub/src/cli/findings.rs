//! Formats whether a tool changed since it was approved, and suspicious findings about it.

use toolhub_core::tool::Trust;
use toolhub_core::{Lang, RawJson, RawObject, Say as _};
use toolhub_engine::Entry;
use toolhub_engine::definition_scan::{Finding, visible};

use super::app::App;
use super::screen::{BAD, ODD};
use super::table::{Cell, fold};

/// A short status of a tool for a list; empty if there is none.
pub(super) fn mark(entry: &Entry, lang: Lang) -> Cell {
    let mut words = Vec::new();
    match entry.tool.trust {
        Trust::Quarantined => words.push(lang.pick("held back", "已隔离")),
        Trust::Changed => words.push(lang.pick("changed", "有改动")),
        Trust::Unseen | Trust::Approved => {}
    }
    if !entry.findings().is_empty() {
        words.push(lang.pick("suspicious", "可疑"));
    }
    let style = if entry.tool.trust == Trust::Quarantined { BAD } else { ODD };
    Cell::new(words.join(lang.pick(", ", "、")), style)
}

/// The approval status of a tool; `None` if it was never approved.
pub(super) fn standing(trust: Trust, lang: Lang) -> Option<&'static str> {
    match trust {
        Trust::Unseen => None,
        Trust::Approved => Some(lang.pick("approved", "已批准")),
        Trust::Changed => Some(lang.pick("changed since it was approved", "批准后有改动")),
        Trust::Quarantined => {
            Some(lang.pick("held back: it is not what was approved", "已隔离：与批准的定义不同"))
        }
    }
}

/// Prints the findings, each on one or more lines.
pub(super) fn show(app: &App, findings: &[Finding], indent: &str) {
    let width = app.screen.width().map(|width| width.saturating_sub(indent.len() + 2));
    for finding in findings {
        let mut sign = "!";
        for line in fold(&finding.say(app.lang()), width) {
            app.screen.line(&format!("{indent}{ODD}{sign}{ODD:#} {line}"));
            sign = " ";
        }
    }
}

/// The findings as JSON.
pub(super) fn as_json(findings: &[Finding], lang: Lang) -> RawJson {
    let all: Vec<RawObject> = findings
        .iter()
        .map(|finding| {
            RawObject::default()
                .with("field", finding.field.as_str())
                .with("kind", finding.kind.name())
                .with("quote", finding.quote.as_str())
                .with("why", finding.why.say(lang))
        })
        .collect();
    RawJson::of(&all)
}

/// A tool as JSON, with its findings.
pub(super) fn described(entry: &Entry, lang: Lang) -> RawObject {
    let mut shown = entry.describe();
    if !entry.findings().is_empty() {
        let key = if shown.contains("suspicious") { "toolhub/suspicious" } else { "suspicious" };
        shown.set(key, as_json(entry.findings(), lang));
    }
    shown
}

/// Names for a warning: the first few, and the number of others.
pub(super) fn names<'a>(entries: impl Iterator<Item = &'a Entry>, lang: Lang) -> String {
    const SHOWN: usize = 5;
    let all: Vec<String> = entries
        .map(|entry| format!("`{}` ({})", visible(entry.tool.name().as_str()), entry.tool.source))
        .collect();
    let more = all.len().saturating_sub(SHOWN);
    let shown = all.into_iter().take(SHOWN).collect::<Vec<_>>().join(", ");
    match more {
        0 => shown,
        more => lang.pick(format!("{shown} and {more} more"), format!("{shown} 等，另有 {more} 个")),
    }
}
