//! The page of the audit log.

use maud::{Markup, html};
use toolhub_core::audit::AuditKind;

use super::labels;
use super::layout::{PageFrame, next_link, time_element};
use super::table::{Column, cell_text, foreign_text, table};
use crate::api::audit::{self, Record};
use crate::problem::Problem;
use crate::request::ConsoleContext;

const COLUMNS: [Column; 7] = [
    Column::number("#", "#"),
    Column::new("Time", "时间"),
    Column::new("Principal", "主体"),
    Column::new("Kind", "类别"),
    Column::new("Object", "对象"),
    Column::new("What happened", "事件"),
    Column::muted("Reference", "编号"),
];

fn row(frame: &PageFrame<'_>, record: &Record) -> Vec<Markup> {
    let lang = frame.lang();
    vec![
        cell_text(record.sequence.to_string()),
        time_element(&record.at),
        foreign_text(&record.principal),
        cell_text(labels::audit_kind(&record.kind, lang)),
        foreign_text(labels::audit_object(&record.kind, &record.object, lang)),
        foreign_text(labels::audit_state(&record.state, lang)),
        cell_text(record.reference.as_deref().unwrap_or_default()),
    ]
}

pub(crate) async fn page(
    context: &ConsoleContext<'_>,
    frame: &PageFrame<'_>,
) -> Result<(String, Markup), Problem> {
    let title = frame.text("Audit", "审计");
    if context.hub().audit().is_none() {
        let content = html! {
            h1 { (title) }
            div.empty {
                p { (frame.text("The audit log is off.", "审计日志未启用。")) }
                p.muted { (frame.text(
                    "Put this into toolhub.toml and restart `toolhub serve`:",
                    "请写入 toolhub.toml，并重新启动 `toolhub serve`：",
                )) }
                pre.command { "[audit]\nenabled = true" }
            }
        };
        return Ok((title.to_owned(), content));
    }
    let page = audit::page(context).await?;
    let query = &context.query;
    let content = html! {
        div.head {
            h1 { (title) }
            div.actions {
                button type="button" data-post=(frame.api("audit:verify")) data-show="text" {
                    (frame.text("Verify", "校验"))
                }
                a.button href=(frame.api("audit/export")) download { (frame.text("Export", "导出")) }
            }
        }
        form.filters role="search" {
            label {
                span { (frame.text("Kind", "类别")) }
                select name="kind" {
                    option value="" { (frame.text("all", "全部")) }
                    @for kind in AuditKind::ALL {
                        option value=(kind.name()) selected[query.get("kind") == Some(kind.name())] {
                            (labels::audit_kind(kind.name(), frame.lang()))
                        }
                    }
                }
            }
            label {
                span { (frame.text("Principal", "主体")) }
                input type="search" name="principal" value=(query.get("principal").unwrap_or_default());
            }
            button type="submit" { (frame.text("Filter", "筛选")) }
        }
        @if page.items.is_empty() {
            div.empty { p { (frame.text("No record fits.", "没有符合条件的记录。")) } }
        } @else {
            (table(frame, title, &COLUMNS, page.items.iter().map(|record| row(frame, record))))
            (next_link(context, page.next.as_deref(), frame.lang()))
        }
    };
    Ok((title.to_owned(), content))
}
