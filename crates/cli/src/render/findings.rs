//! Formats whether a tool changed since it was approved, and suspicious findings about it.

use toolhub_core::tool::Trust;
use toolhub_core::{Lang, Localize as _, RawJson, RawObject};
use toolhub_engine::Entry;
use toolhub_engine::definition_scan::{Finding, visible};

use crate::app::App;
use crate::render::screen::{BAD, ODD};
use crate::render::table::{Cell, fold};

/// A short status of a tool for a list; empty if there is none.
pub(crate) fn mark(entry: &Entry, lang: Lang) -> Cell {
    let mut words = Vec::new();
    match entry.tool.trust {
        Trust::Quarantined => words.push(lang.choose("held back", "已隔离")),
        Trust::Changed => words.push(lang.choose("changed", "有改动")),
        Trust::Unseen | Trust::Approved => {}
    }
    if !entry.findings().is_empty() {
        words.push(lang.choose("suspicious", "可疑"));
    }
    let style = if entry.tool.trust == Trust::Quarantined { BAD } else { ODD };
    Cell::new(words.join(lang.choose(", ", "、")), style)
}

/// The approval status of a tool; `None` if it was never approved.
pub(crate) fn trust_label(trust: Trust, lang: Lang) -> Option<&'static str> {
    match trust {
        Trust::Unseen => None,
        Trust::Approved => Some(lang.choose("approved", "已批准")),
        Trust::Changed => Some(lang.choose("changed since it was approved", "批准后有改动")),
        Trust::Quarantined => {
            Some(lang.choose("held back: it is not what was approved", "已隔离：与批准的定义不同"))
        }
    }
}

/// Prints the findings, each on one or more lines.
pub(crate) fn show(app: &App, findings: &[Finding], indent: &str) {
    let width = app.screen.width().map(|width| width.saturating_sub(indent.len() + 2));
    for finding in findings {
        let mut sign = "!";
        for line in fold(&finding.localize(app.lang()), width) {
            app.screen.line(&format!("{indent}{ODD}{sign}{ODD:#} {line}"));
            sign = " ";
        }
    }
}

/// The findings as JSON.
pub(crate) fn as_json(findings: &[Finding], lang: Lang) -> RawJson {
    let all: Vec<RawObject> = findings
        .iter()
        .map(|finding| {
            RawObject::default()
                .with("field", finding.field.as_str())
                .with("kind", finding.kind.name())
                .with("quote", finding.quote.as_str())
                .with("why", finding.why.localize(lang))
        })
        .collect();
    RawJson::of(&all)
}

/// A tool as JSON, with its findings.
pub(crate) fn described(entry: &Entry, lang: Lang) -> RawObject {
    let mut shown = entry.describe();
    if !entry.findings().is_empty() {
        let key = if shown.contains("suspicious") { "toolhub/suspicious" } else { "suspicious" };
        shown.set(key, as_json(entry.findings(), lang));
    }
    shown
}

/// Names for a warning: the first few, and the number of others.
pub(crate) fn names<'a>(entries: impl Iterator<Item = &'a Entry>, lang: Lang) -> String {
    const MAX_NAMES: usize = 5;
    let all: Vec<String> = entries
        .map(|entry| format!("`{}` ({})", visible(entry.tool.name().as_str()), entry.tool.source))
        .collect();
    let more = all.len().saturating_sub(MAX_NAMES);
    let shown = all.into_iter().take(MAX_NAMES).collect::<Vec<_>>().join(", ");
    match more {
        0 => shown,
        more => lang.choose(format!("{shown} and {more} more"), format!("{shown} 等，另有 {more} 个")),
    }
}
