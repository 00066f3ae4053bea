//! The pages of tools: search, definition, trial, route and approval.

use maud::{Markup, html};
use toolhub_access::may_decide_changed_tools;
use toolhub_core::{Lang, Localize as _, Role, ServerId};

use super::layout::{PageFrame, duration_text, first_line, next_link, state_label, time_element};
use super::servers::fact_row;
use super::table::{Column, cell_text, foreign_text, table};
use super::{comparison, json_view, labels as words};
use crate::api::Page;
use crate::api::overview::ToolCount;
use crate::api::search::{self, Hit};
use crate::api::tools::{self, Explanation, Tool, ToolDetail};
use crate::problem::Problem;
use crate::request::ConsoleContext;
use crate::route::encode_segment;

const MAX_SHOWN_HITS: usize = 30;
const DESCRIPTION_CHARACTERS: usize = 160;

fn approval_label(name: &str, lang: Lang) -> Option<&'static str> {
    match name {
        "approved" => Some(lang.choose("approved", "已批准")),
        "changed" => Some(lang.choose("changed since it was approved", "批准后有改动")),
        "quarantined" => Some(lang.choose("held back: not what was approved", "已隔离：与批准的定义不同")),
        _ => None,
    }
}

/// Labels of a tool: its effects, its approval, its findings.
fn labels(frame: &PageFrame<'_>, tool: &Tool) -> Markup {
    let lang = frame.lang();
    html! {
        @if tool.hints.read_only == Some(true) { (state_label("", lang.choose("read-only", "只读"))) " " }
        @if tool.hints.destructive == Some(true) && tool.hints.read_only != Some(true) {
            (state_label("failed", lang.choose("destructive", "破坏性"))) " "
        } @else if tool.needs_confirmation && tool.hints.destructive.is_none() {
            (state_label("failed", lang.choose("destructive by its name", "名称有破坏性"))) " "
        }
        @if let Some(label) = approval_label(&tool.approval, lang) { (state_label(&tool.approval, label)) " " }
        @if tool.suspicious { (state_label("changed", lang.choose("suspicious", "可疑"))) }
    }
}

pub(crate) async fn list(
    context: &ConsoleContext<'_>,
    frame: &PageFrame<'_>,
) -> Result<(String, Markup), Problem> {
    let title = frame.text("Tools", "工具");
    let query = &context.query;
    let all = tools::offered_tools(context, query.get("profile"))?;
    let mut sources: Vec<String> =
        all.iter().flat_map(|tool| tool.sources.iter().map(ToString::to_string)).collect();
    sources.sort();
    sources.dedup();
    let wanted = query.get("q");
    let hits = match wanted {
        Some(text) => Some(search::find_tools(context, text, query.get("profile"), MAX_SHOWN_HITS).await?),
        None => None,
    };
    let page = match &hits {
        Some(_) => Page { items: Vec::new(), next: None },
        None => tools::page(context)?,
    };
    let content = html! {
        h1 { (title) " " span.count { (all.len()) } }
        form.filters role="search" {
            @if let Some(profile) = query.get("profile") { input type="hidden" name="profile" value=(profile); }
            label.wide {
                span { (frame.text("What should be done?", "想做什么？")) }
                input type="search" name="q" value=(wanted.unwrap_or_default()) data-focus="/"
                    placeholder=(frame.text("read a spreadsheet, 查询天气 …", "读取表格、查询天气、search the web …"));
            }
            label {
                span { (frame.text("Source", "来源")) }
                select name="source" {
                    option value="" { (frame.text("all", "全部")) }
                    @for source in &sources {
                        option value=(source) selected[query.get("source") == Some(source)] { (source) }
                    }
                }
            }
            button type="submit" { (frame.text("Search", "搜索")) }
            @if wanted.is_some() || query.get("source").is_some() { a href="?" { (frame.text("Clear", "清除")) } }
        }
        @match &hits {
            Some(hits) if hits.is_empty() => {
                div.empty { p { (frame.text("No tool fits.", "没有合适的工具。")) } }
            }
            Some(hits) => (hit_table(frame, hits, query.get("profile"))),
            None if page.items.is_empty() => {
                div.empty { p { (frame.text("No tools are visible to you here.", "此处没有你可见的工具。")) } }
            }
            None => {
                (tool_table(frame, &page.items, query.get("profile")))
                (next_link(context, page.next.as_deref(), frame.lang()))
            }
        }
    };
    Ok((title.to_owned(), content))
}

/// The columns of a list of tools.
const COLUMNS: [Column; 4] = [
    Column::new("Name", "名称"),
    Column::description("Description", "说明"),
    Column::new("Source", "来源"),
    Column::new("Labels", "标签"),
];
const SCORE: Column = Column::new("Score", "得分");
/// The columns of the statistics of a tool.
const STATISTICS_COLUMNS: [Column; 5] = [
    Column::new("Source", "来源"),
    Column::number("Succeeded", "成功"),
    Column::number("Failed", "失败"),
    Column::number("Median", "中位数"),
    Column::number("95 %", "95 %"),
];

fn tool_table(frame: &PageFrame<'_>, items: &[Tool], profile: Option<&str>) -> Markup {
    let rows = items.iter().map(|tool| tool_cells(frame, tool, profile));
    table(frame, frame.text("Tools", "工具"), &COLUMNS, rows)
}

fn tool_cells(frame: &PageFrame<'_>, tool: &Tool, profile: Option<&str>) -> Vec<Markup> {
    let link = frame.item("tools", &tool.name);
    let link =
        profile.map_or_else(|| link.clone(), |profile| format!("{link}?profile={}", encode_segment(profile)));
    vec![
        html! { a href=(link) { bdi { (tool.name) } } },
        foreign_text(first_line(&tool.description, DESCRIPTION_CHARACTERS)),
        cell_text(tool.sources.join(", ")),
        labels(frame, tool),
    ]
}

/// Hits with the parts of their scores.
fn hit_table(frame: &PageFrame<'_>, hits: &[Hit], profile: Option<&str>) -> Markup {
    let row = |hit: &Hit| {
        let mut cells = tool_cells(frame, &hit.tool, profile);
        cells.push(html! {
            details {
                summary { (format!("{:.2}", hit.score)) }
                ul.plain.small {
                    @for part in &hit.parts { li { (part.name) " " (format!("{:.2}", part.value)) } }
                }
            }
        });
        cells
    };
    let columns: Vec<Column> = COLUMNS.into_iter().chain([SCORE]).collect();
    table(frame, frame.text("Hits", "结果"), &columns, hits.iter().map(row))
}

pub(crate) async fn item(
    context: &ConsoleContext<'_>,
    frame: &PageFrame<'_>,
) -> Result<(String, Markup), Problem> {
    let detail = tools::read(context).await?;
    let name = &detail.tool.name;
    // A tool that cannot be routed now is still shown.
    let route = tools::explain_tool(context, context.query.get("profile"), name, None).await;
    let is_held_back = detail.tool.approval == "quarantined";
    let may_call = !is_held_back && (context.has_role(Role::Caller) || context.has_role(Role::Owner));
    let profile = context.query.get("profile");
    let content = html! {
        p.crumbs { a href=(frame.link("tools")) { (frame.text("Tools", "工具")) } }
        div.head {
            h1 { bdi { (name) } }
            (labels(frame, &detail.tool))
            @if context.has_role(Role::Operator) || context.has_role(Role::Owner) { (switches(frame, &detail)) }
        }
        @if let Some(title) = &detail.tool.title { p.subtitle dir="auto" { (title) } }
        p.description.pre-line dir="auto" { (detail.tool.description) }
        @for finding in &detail.findings {
            p.problem { (finding.why) " " q { (finding.quote) } " " span.muted { (finding.field) } }
        }
        (approval(context, frame, &detail))
        @if may_call { (trial(frame, &detail, profile)) }
        @match &route {
            _ if is_held_back => {}
            Ok(route) => (route_picture(frame, route)),
            Err(problem) => {
                section.card {
                    h2 { (frame.text("Route", "路由")) }
                    p.problem { (problem.detail.localize(frame.lang())) }
                }
            }
        }
        (statistics(frame, &detail))
        details.card {
            summary { (frame.text("Definition", "定义")) }
            (json_view::json(&detail.definition, frame.text("Definition", "定义")))
        }
    };
    Ok((name.clone(), content))
}

/// A button for each server that has the tool, which switches it off there.
fn switches(frame: &PageFrame<'_>, detail: &ToolDetail) -> Markup {
    let servers = detail.tool.sources.iter().filter(|source| !ServerId::RESERVED.contains(&source.as_str()));
    let body = serde_json::json!({ "switch_off": detail.catalog_name }).to_string();
    html! {
        div.actions {
            @for server in servers {
                @let question = match frame.lang() {
                    Lang::En => format!("Switch off “{}” of {server}? No client sees it any more, and the server is connected again. Its page switches it on.", detail.tool.name),
                    Lang::Zh => format!("停用 {server} 的“{}”？所有客户端都将看不到它，服务器会重新连接。可在服务器页面重新启用。", detail.tool.name),
                };
                button type="button" data-post=(frame.api(&format!("servers/{}", encode_segment(server)))) data-method="PATCH"
                    data-body=(body) data-then=(frame.item("servers", server)) data-confirm=(question)
                    data-confirm-action=(frame.text("Switch off tool", "停用工具")) {
                    (frame.text("Switch off", "停用"))
                }
            }
        }
    }
}

/// The form that calls the tool. Scripts build it from the schema.
fn trial(frame: &PageFrame<'_>, detail: &ToolDetail, profile: Option<&str>) -> Markup {
    let name = encode_segment(&detail.tool.name);
    let changes = detail.tool.hints.read_only != Some(true);
    let tool_name = &detail.tool.name;
    let question = match (detail.tool.hints.destructive, frame.lang()) {
        (Some(true), Lang::En) => format!("Call “{tool_name}”? It is marked destructive."),
        (Some(true), Lang::Zh) => format!("调用“{tool_name}”？它被标记为破坏性工具。"),
        (None, Lang::En) if detail.tool.needs_confirmation => {
            format!("Call “{tool_name}”? It has no hints, and its name says that it may destroy something.")
        }
        (None, Lang::Zh) if detail.tool.needs_confirmation => {
            format!("调用“{tool_name}”？该工具没有提示，但从名称看可能会造成破坏。")
        }
        (_, Lang::En) => {
            format!("Call “{tool_name}”? It is not marked read-only, so that it may change something.")
        }
        (_, Lang::Zh) => format!("调用“{tool_name}”？它未标记为只读，可能会改动数据。"),
    };
    html! {
        section.card {
            h2 { (frame.text("Try it", "试用")) }
            div #trial data-static="true"
                data-tool=(frame.api(&format!("tools/{name}")))
                data-calls=(frame.api("calls")) data-calls-page=(frame.link("calls")) data-questions=(frame.api("questions"))
                data-profile=[profile]
                data-confirm=[changes.then_some(question)]
                data-confirm-action=(frame.text("Call tool", "调用工具")) {
                noscript { p.muted { (frame.text("Scripts are needed to call a tool from here.", "在此调用工具需要启用脚本。")) } }
            }
        }
    }
}

/// The route of a call: its candidates in order, and the reasons.
fn route_picture(frame: &PageFrame<'_>, route: &Explanation) -> Markup {
    let strategy = words::strategy(&route.strategy, route.candidates.len(), frame.lang());
    html! {
        section.card {
            h2 { (frame.text("Route", "路由")) }
            p.muted { (frame.text("A call of this tool: ", "调用方式：")) (strategy) }
            ol.route {
                @for (index, candidate) in route.candidates.iter().enumerate() {
                    li class=(if index < route.batch { "first" } else { "later" }) {
                        strong { (candidate.source) } " " bdi { (candidate.tool) }
                        div.muted.small { (candidate.why) }
                    }
                }
            }
            @if !route.reasons.is_empty() {
                ul.plain.small { @for reason in &route.reasons { li { (reason) } } }
            }
        }
    }
}

fn statistics(frame: &PageFrame<'_>, detail: &ToolDetail) -> Markup {
    let shown = |ms: Option<f64>| cell_text(ms.map_or_else(|| "–".to_owned(), duration_text));
    let row = |one: &ToolCount| {
        vec![
            cell_text(&one.source),
            cell_text(one.succeeded.to_string()),
            cell_text(one.failed.to_string()),
            shown(one.p50_ms),
            shown(one.p95_ms),
        ]
    };
    html! {
        @if !detail.statistics.is_empty() {
            section.card {
                h2 { (frame.text("Calls", "调用统计")) }
                (table(frame, frame.text("Calls", "调用统计"), &STATISTICS_COLUMNS, detail.statistics.iter().map(row)))
                p.muted { (frame.text(
                    "Half of the successful calls took at most the median, 95 % of them at most the last number.",
                    "成功的调用中，一半的耗时不超过中位数，95 % 不超过最后一列。",
                )) }
            }
        }
    }
}

/// What was approved and what is there now, with the button that approves it.
fn approval(context: &ConsoleContext<'_>, frame: &PageFrame<'_>, detail: &ToolDetail) -> Markup {
    let (Some(before), Some(after)) = (&detail.approved_definition, &detail.source_definition) else {
        return html! {};
    };
    let may_approve = may_decide_changed_tools(context.principal().roles);
    let (old, new) = (json_view::indented(before), json_view::indented(after));
    let is_complete = old.is_complete && new.is_complete;
    let profile = context.query.get("profile").map(|profile| format!("?profile={}", encode_segment(profile)));
    let profile = profile.unwrap_or_default();
    let action = frame.api(&format!("tools/{}:approve{profile}", encode_segment(&detail.tool.name)));
    let body = serde_json::json!({ "digest": detail.digest }).to_string();
    let question = match frame.lang() {
        Lang::En => format!("Approve the new definition of “{}”?", detail.tool.name),
        Lang::Zh => format!("批准“{}”的新定义？", detail.tool.name),
    };
    // A page without the form is loaded again, with the form.
    let then = (detail.tool.approval == "quarantined").then(|| frame.item("tools", &detail.tool.name));
    html! {
        section.card {
            div.head {
                h2 { (frame.text("The definition has changed", "定义已改动")) }
                @if may_approve && is_complete {
                    div.actions {
                        button.primary type="button" data-post=(action) data-body=(body) data-then=[then]
                            data-confirm=(question) data-confirm-action=(frame.text("Approve definition", "批准定义")) {
                            (frame.text("Approve", "批准"))
                        }
                    }
                }
            }
            @if !is_complete { p.problem { (frame.text("The definition is too long to be shown: approve it with `toolhub tools approve`.", "定义过长，无法完整显示：请用 `toolhub tools approve` 批准。")) } }
            dl.facts {
                @if let Some(at) = &detail.approved_at {
                    dt { (frame.text("Approved", "批准时间")) } dd { (time_element(at)) }
                }
                (fact_row(frame.text("Digest now", "当前摘要"), &detail.digest))
            }
            (comparison::difference(&old.text, &new.text, frame.text("Changes", "改动")))
        }
    }
}
