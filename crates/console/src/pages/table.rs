//! Tables. Each cell repeats the name of its column: on narrow screens a row is a block in which the names stand before the cells.

use maud::{Markup, html};

use super::layout::PageFrame;

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    en: &'static str,
    zh: &'static str,
    class: Option<&'static str>,
}

impl Column {
    pub(crate) const fn new(en: &'static str, zh: &'static str) -> Self {
        Self { en, zh, class: None }
    }

    /// A column of numbers, which stand one below another.
    pub(crate) const fn number(en: &'static str, zh: &'static str) -> Self {
        Self { en, zh, class: Some("number") }
    }

    /// A column of less important texts.
    pub(crate) const fn muted(en: &'static str, zh: &'static str) -> Self {
        Self { en, zh, class: Some("muted") }
    }

    /// A column of long texts.
    pub(crate) const fn description(en: &'static str, zh: &'static str) -> Self {
        Self { en, zh, class: Some("description") }
    }
}

/// A table with a name for screen readers. Each row has a cell for each column.
pub(crate) fn table(
    frame: &PageFrame<'_>,
    name: &str,
    columns: &[Column],
    rows: impl IntoIterator<Item = Vec<Markup>>,
) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(name) {
            table {
                thead { tr {
                    @for column in columns {
                        th scope="col" class=[column.class.filter(|class| *class == "number")] {
                            (frame.text(column.en, column.zh))
                        }
                    }
                } }
                tbody {
                    @for row in rows {
                        tr {
                            @for (column, cell) in columns.iter().zip(row) {
                                td class=[column.class] data-label=(frame.text(column.en, column.zh)) { (cell) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A text as the content of a cell.
pub(crate) fn cell_text(text: impl AsRef<str>) -> Markup {
    html! { (text.as_ref()) }
}

/// A text of a server or a person as the content of a cell, in its own direction.
pub(crate) fn foreign_text(text: impl AsRef<str>) -> Markup {
    html! { bdi { (text.as_ref()) } }
}
