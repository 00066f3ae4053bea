//! The lines in which two texts differ, and two calls of a tool side by side.

use std::time::Duration;

use maud::{Markup, html};
use similar::{ChangeTag, TextDiff};
use toolhub_core::RawJson;

use super::layout::{PageFrame, time_element, time_text};
use super::{json_view, labels};
use crate::api::calls::{Call, CallDetail};

/// How long the comparison of two texts may take. Afterwards it finds fewer common lines.
const MAX_TIME: Duration = Duration::from_millis(200);

/// The lines of two texts: removed, added and common ones.
pub(crate) fn difference(old: &str, new: &str, label: &str) -> Markup {
    let diff = TextDiff::configure().timeout(MAX_TIME).diff_lines(old, new);
    html! {
        pre.diff tabindex="0" role="region" aria-label=(label) {
            @for change in diff.iter_all_changes() {
                @let line = change.value().trim_end_matches('\n');
                @match change.tag() {
                    ChangeTag::Insert => ins { "+ " (line) "\n" },
                    ChangeTag::Delete => del { "- " (line) "\n" },
                    ChangeTag::Equal => span { "  " (line) "\n" },
                }
            }
        }
    }
}

/// Other calls of the same tool to compare a call with.
pub(crate) fn choice(frame: &PageFrame<'_>, others: &[Call], chosen: Option<&str>) -> Markup {
    html! {
        @if !others.is_empty() {
            form.filters {
                label {
                    span { (frame.text("Compare with", "比较对象")) }
                    select name="with" {
                        @for other in others {
                            @let status = labels::call_status(&other.status, frame.lang());
                            // An option contains text alone. Scripts show the time in the time zone of the browser.
                            option value=(other.id) selected[chosen == Some(other.id.as_str())]
                                data-time=(other.started_at) data-state=(status) {
                                (time_text(&other.started_at)) " · " (status)
                            }
                        }
                    }
                }
                button type="submit" { (frame.text("Compare", "比较")) }
            }
        }
    }
}

/// The differences of two calls: an earlier or other one, and the one of the page.
pub(crate) fn calls(frame: &PageFrame<'_>, other: &CallDetail, own: &CallDetail) -> Markup {
    let result = |detail: &CallDetail| detail.result.clone().unwrap_or_else(RawJson::null);
    html! {
        section.card {
            h2 { (frame.text("Compared with the call of ", "与此次调用比较：")) (time_element(&other.call.started_at)) }
            p { a href=(frame.item("calls", &other.call.id)) { (frame.text("Open that call", "打开该次调用")) } }
            h3 { (frame.text("Arguments", "参数")) }
            (values(frame, &other.arguments, &own.arguments, frame.text("Arguments", "参数")))
            h3 { (frame.text("Result", "结果")) }
            (values(frame, &result(other), &result(own), frame.text("Result", "结果")))
        }
    }
}

fn values(frame: &PageFrame<'_>, old: &RawJson, new: &RawJson, label: &str) -> Markup {
    if old.get() == new.get() {
        return html! { p.muted { (frame.text("No difference.", "没有差异。")) } };
    }
    let (old, new) = (json_view::indented(old), json_view::indented(new));
    html! {
        @if !old.is_complete || !new.is_complete {
            p.muted { (frame.text("Long values are compared in part.", "较长的内容只比较开头部分。")) }
        }
        (difference(&old.text, &new.text, label))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_escaped_lines() {
        let shown = difference("a\n<b>\nc\n", "a\n<i>\nc\n", "x").into_string();
        assert!(
            shown.contains("<del>- &lt;b&gt;\n</del>") && shown.contains("<ins>+ &lt;i&gt;\n</ins>"),
            "{shown}"
        );
        assert!(shown.contains("<span>  a\n</span>"), "{shown}");
    }

    /// Texts that have nothing in common must not take long.
    #[test]
    fn comparison_of_long_texts_ends() {
        let text = |step: usize| (0..20_000).map(|line| format!("{}\n", line * step)).collect::<String>();
        let shown = difference(&text(3), &text(7), "x").into_string();
        assert!(shown.len() > 100_000);
    }
}
