//! Formats whether a tool changed since it was approved, and suspicious findings about it.

use toolhub_core::tool::ApprovalStatus;
use toolhub_core::{Lang, Localize as _, RawJson, RawObject};
use toolhub_engine::CatalogEntry;
use toolhub_engine::definition_scan::{Finding, escape_invisible};

use crate::app::App;
use crate::render::screen::{BAD, ODD};
use crate::render::table::{Cell, wrap_text};

/// A short status of a tool for a list; empty if there is none.
pub(crate) fn mark(entry: &CatalogEntry, lang: Lang) -> Cell {
    let mut labels = Vec::new();
    match entry.tool.approval {
        ApprovalStatus::Quarantined => labels.push(lang.choose("held back", "已隔离")),
        ApprovalStatus::Changed => labels.push(lang.choose("changed", "有改动")),
        ApprovalStatus::Unseen | ApprovalStatus::Approved => {}
    }
    if !entry.findings().is_empty() {
        labels.push(lang.choose("suspicious", "可疑"));
    }
    let style = if entry.tool.approval == ApprovalStatus::Quarantined { BAD } else { ODD };
    Cell::new(labels.join(lang.choose(", ", "、")), style)
}

/// The approval status of a tool; `None` if it was never approved.
pub(crate) fn trust_label(trust: ApprovalStatus, lang: Lang) -> Option<&'static str> {
    match trust {
        ApprovalStatus::Unseen => None,
        ApprovalStatus::Approved => Some(lang.choose("approved", "已批准")),
        ApprovalStatus::Changed => Some(lang.choose("changed since it was approved", "批准后有改动")),
        ApprovalStatus::Quarantined => {
            Some(lang.choose("held back: it is not what was approved", "已隔离：与批准的定义不同"))
        }
    }
}

/// Prints the findings, each on one or more lines.
pub(crate) fn show(app: &App, findings: &[Finding], indent: &str) {
    let width = app.screen.width().map(|width| width.saturating_sub(indent.len() + 2));
    for finding in findings {
        let mut sign = "!";
        for line in wrap_text(&finding.localize(app.lang()), width) {
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
pub(crate) fn described(entry: &CatalogEntry, lang: Lang) -> RawObject {
    let mut output = entry.describe();
    if !entry.findings().is_empty() {
        let key = if output.contains("suspicious") { "toolhub/suspicious" } else { "suspicious" };
        output.set(key, as_json(entry.findings(), lang));
    }
    output
}

/// Names for a warning: the first few, and the number of others.
pub(crate) fn names<'a>(entries: impl Iterator<Item = &'a CatalogEntry>, lang: Lang) -> String {
    const MAX_LISTED_NAMES: usize = 5;
    let all: Vec<String> = entries
        .map(|entry| format!("`{}` ({})", escape_invisible(entry.tool.name().as_str()), entry.tool.source))
        .collect();
    let more = all.len().saturating_sub(MAX_LISTED_NAMES);
    let output = all.into_iter().take(MAX_LISTED_NAMES).collect::<Vec<_>>().join(", ");
    match more {
        0 => output,
        more => lang.choose(format!("{output} and {more} more"), format!("{output} 等，另有 {more} 个")),
    }
}
