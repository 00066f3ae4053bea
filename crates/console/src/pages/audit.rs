//! The page of the audit log.

use maud::{Markup, html};
use toolhub_core::audit::AuditKind;

use super::layout::{Frame, next_link, time};
use crate::api::audit;
use crate::problem::Problem;
use crate::request::Context;

pub(crate) async fn page(context: &Context<'_>, frame: &Frame<'_>) -> Result<(String, Markup), Problem> {
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
                        option value=(kind.name()) selected[query.get("kind") == Some(kind.name())] { (kind.name()) }
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
            div.scroll tabindex="0" role="region" aria-label=(title) {
                table {
                    thead { tr {
                        th.number scope="col" { "#" }
                        th scope="col" { (frame.text("Time", "时间")) }
                        th scope="col" { (frame.text("Principal", "主体")) }
                        th scope="col" { (frame.text("Kind", "类别")) }
                        th scope="col" { (frame.text("Object", "对象")) }
                        th scope="col" { (frame.text("What happened", "事件")) }
                        th scope="col" { (frame.text("Reference", "编号")) }
                    } }
                    tbody {
                        @for record in &page.items {
                            tr {
                                td.number { (record.sequence) }
                                td { (time(&record.at)) }
                                td { bdi { (record.principal) } }
                                td { (record.kind) }
                                td { bdi { (record.object) } }
                                td { (record.state) }
                                td.muted { (record.reference.as_deref().unwrap_or_default()) }
                            }
                        }
                    }
                }
            }
            (next_link(context, page.next.as_deref(), frame.lang()))
        }
    };
    Ok((title.to_owned(), content))
}
