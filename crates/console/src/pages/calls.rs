//! The pages of calls.

use maud::{Markup, PreEscaped, html};
use toolhub::script_code;
use toolhub_core::shell::shell_quote;
use toolhub_core::{RawJson, RawObject, meta_keys};

use super::layout::{PageFrame, duration_text, first_line, next_link, state_label, time_element};
use super::servers::fact_row;
use super::table::{Column, cell_text, foreign_text, table};
use super::{comparison, json_view, labels};
use crate::api::Page;
use crate::api::calls::{self, Attempt, Call, CallDetail, CallPage};
use crate::api::offered_names::OfferedNames;
use crate::problem::Problem;
use crate::request::ConsoleContext;

/// The size of the chart of attempts, in units of its view box.
const CHART_WIDTH: f64 = 600.0;
const ROW_HEIGHT: f64 = 22.0;

/// The columns of a list of calls.
const COLUMNS: [Column; 6] = [
    Column::new("Time", "时间"),
    Column::new("Tool", "工具"),
    Column::new("State", "状态"),
    Column::number("Duration", "耗时"),
    Column::new("Source", "来源"),
    Column::muted("Caller", "调用方"),
];
/// The columns of the attempts of a call.
const ATTEMPT_COLUMNS: [Column; 4] = [
    Column::new("Source", "来源"),
    Column::new("Tool", "工具"),
    Column::new("State", "状态"),
    Column::number("Duration", "耗时"),
];

/// A table of calls.
pub(crate) fn call_table(context: &ConsoleContext<'_>, frame: &PageFrame<'_>, calls: &[Call]) -> Markup {
    let names = OfferedNames::new(context);
    let row = |call: &Call| {
        vec![
            html! {
                a href=(frame.item("calls", &call.id)) {
                    (time_element(&call.started_at)) " · " (frame.text("details", "详情"))
                }
            },
            html! { @if call.parent.is_some() { "↳ " } (tool_link(frame, &names, call)) },
            html! {
                (state_label(&call.status, labels::call_status(&call.status, frame.lang())))
                @if let Some(error) = &call.error { div.muted.small dir="auto" { (first_line(error, 120)) } }
            },
            cell_text(call.took_ms.map_or_else(|| "–".to_owned(), duration_text)),
            cell_text(sources(call)),
            foreign_text(&call.principal),
        ]
    };
    table(frame, frame.text("Calls", "调用"), &COLUMNS, calls.iter().map(row))
}

/// The name of the tool of a call, linked to its page if there is one.
fn tool_link(frame: &PageFrame<'_>, names: &OfferedNames, call: &Call) -> Markup {
    html! {
        @match names.of_call(call) {
            Some(name) => { a href=(frame.item("tools", name)) { bdi { (call.tool) } } }
            None => { bdi { (call.tool) } }
        }
    }
}

/// The link that opens the tool of a call with its arguments. Without the tool, a sentence says so.
fn again(frame: &PageFrame<'_>, names: &OfferedNames, call: &Call) -> Markup {
    html! {
        @match names.of_call(call) {
            Some(name) => {
                a.button href=(format!("{}?call={}", frame.item("tools", name), call.id)) {
                    (frame.text("Call again with these arguments", "用这些参数再次调用"))
                }
            }
            None => {
                span.muted { (frame.text(
                    "This tool is not offered now: its server was removed or disabled, or the tool was switched off or is held back.",
                    "此工具目前不可用：其服务器已移除或停用，或该工具已停用或被隔离。",
                )) }
                a.button href=(frame.link("tools")) { (frame.text("All tools", "全部工具")) }
            }
        }
    }
}

/// The sources of the result; of a call without a result, those that were tried.
fn sources(call: &Call) -> String {
    let shown = if call.sources.is_empty() { &call.tried } else { &call.sources };
    shown.join(", ")
}

pub(crate) async fn list(
    context: &ConsoleContext<'_>,
    frame: &PageFrame<'_>,
) -> Result<(String, Markup), Problem> {
    let CallPage { page, is_partial } = calls::page(context).await?;
    let title = frame.text("Calls", "调用");
    let query = &context.query;
    let is_filtered = ["tool", "source", "status", "principal", "text", "cursor"]
        .iter()
        .any(|name| query.get(name).is_some());
    let field = |name: &str, label: &str| {
        html! {
            label { span { (label) } input type="search" name=(name) value=(query.get(name).unwrap_or_default()); }
        }
    };
    let statuses = ["running", "succeeded", "failed", "unknown"];
    let content = html! {
        h1 { (title) }
        form.filters role="search" {
            (field("text", frame.text("Text", "文本")))
            (field("tool", frame.text("Tool (whole name)", "工具（完整名称）")))
            (field("source", frame.text("Source", "来源")))
            label {
                span { (frame.text("State", "状态")) }
                select name="status" {
                    option value="" { (frame.text("all", "全部")) }
                    @for status in statuses {
                        option value=(status) selected[query.get("status") == Some(status)] {
                            (labels::call_status(status, frame.lang()))
                        }
                    }
                }
            }
            @if context.reads_all_calls() { (field("principal", frame.text("Caller", "调用方"))) }
            button type="submit" { (frame.text("Filter", "筛选")) }
            @if is_filtered { a href="?" { (frame.text("Clear", "清除")) } }
        }
        @if page.items.is_empty() {
            div.empty {
                @if is_partial {
                    p { (frame.text("No newer call fits. Older calls are searched …", "较新的调用均不符合，正在查找更早的调用……")) }
                } @else if is_filtered {
                    p { (frame.text("No call fits these filters.", "没有符合条件的调用。")) }
                } @else {
                    p { (frame.text("No calls yet. Try a tool:", "尚无调用。试用一个工具：")) }
                    p { a.button href=(frame.item("tools", "calculate")) { "calculate" } }
                }
            }
        } @else {
            (call_table(context, frame, &page.items))
        }
        @if is_partial {
            (search_link(context, frame, &page))
        } @else {
            (next_link(context, page.next.as_deref(), frame.lang()))
        }
    };
    Ok((title.to_owned(), content))
}

/// The link that continues a search. A script follows it while nothing was found.
fn search_link(context: &ConsoleContext<'_>, frame: &PageFrame<'_>, page: &Page<Call>) -> Markup {
    let link = format!("?{}", context.query.with("cursor", page.next.as_deref()));
    html! {
        nav.pages aria-label=(frame.text("Pages", "分页")) {
            a.button href=(link) data-continue[page.items.is_empty()] {
                (frame.text("Search older calls", "查找更早的调用"))
            }
        }
    }
}

pub(crate) async fn item(
    context: &ConsoleContext<'_>,
    frame: &PageFrame<'_>,
) -> Result<(String, Markup), Problem> {
    let detail = calls::read(context).await?;
    let call = &detail.call;
    let chosen = context.query.get("with");
    let other = match chosen {
        Some(id) => Some(calls::find(context, id).await?),
        None => None,
    };
    let others = calls::others(context, call).await?;
    let mut names = OfferedNames::new(context);
    if names.of_call(call).is_none() {
        // It may belong to a server that has not been listed yet.
        context.gateways.wait_until_listed().await;
        names = OfferedNames::new(context);
    }
    let content = html! {
        p.crumbs { a href=(frame.link("calls")) { (frame.text("Calls", "调用")) } }
        div.head {
            h1 { (tool_link(frame, &names, call)) }
            (state_label(&call.status, labels::call_status(&call.status, frame.lang())))
            div.actions { (again(frame, &names, call)) }
        }
        @if let Some(error) = &call.error { p.problem dir="auto" { (error) } }
        dl.facts {
            dt { (frame.text("Started", "开始")) } dd { (time_element(&call.started_at)) }
            (fact_row(frame.text("Duration", "耗时"), &call.took_ms.map_or_else(|| "–".to_owned(), duration_text)))
            (fact_row(frame.text("Caller", "调用方"), &call.principal))
            // A call that fails before it is routed has neither.
            @if !detail.candidates.is_empty() {
                (fact_row(
                    frame.text("How it was run", "执行方式"),
                    labels::strategy(&detail.strategy, detail.candidates.len(), frame.lang()),
                ))
                (fact_row(frame.text("Possible sources", "候选来源"), &detail.candidates.join(", ")))
            }
            @if let Some(rule) = &detail.rule { (fact_row(frame.text("Allowed by rule", "依据规则"), rule)) }
            @if let Some(approver) = &detail.approver { (fact_row(frame.text("Approved by", "审批人"), approver)) }
            @if let Some(parent) = &call.parent {
                dt { (frame.text("Made by call", "发起调用")) }
                dd {
                    @match &detail.parent_id {
                        Some(id) => { a href=(frame.item("calls", id)) { (parent) } }
                        None => { (parent) }
                    }
                }
            }
            @if let Some(request) = &call.request { (fact_row(frame.text("Request", "请求"), request)) }
            (fact_row(frame.text("Record", "记录编号"), &call.id))
        }
        (comparison::choice(frame, &others, chosen))
        @if let Some(other) = &other { (comparison::calls(frame, other, &detail)) }
        @if !detail.attempts.is_empty() { (attempts(frame, &detail)) }
        @match script_code(&call.tool, &detail.arguments) {
            Some(code) => { (script(frame, &detail, &code)) }
            None => {
                section.card {
                    h2 { (frame.text("Arguments", "参数")) }
                    (json_view::json(&detail.arguments, frame.text("Arguments", "参数")))
                }
            }
        }
        @if let Some(nested) = detail.nested.as_ref().filter(|nested| !nested.is_empty()) {
            section.card {
                h2 { (frame.text("Calls that it made", "它发起的调用")) }
                (call_table(context, frame, nested))
            }
        }
        section.card {
            h2 { (frame.text("Result", "结果")) }
            @match &detail.result {
                Some(result) => { (json_view::result(result, frame)) }
                None => { p.muted { (frame.text("No result is stored.", "没有保存结果。")) } }
            }
        }
        (copies(frame, &detail))
    };
    Ok((call.tool.clone(), content))
}

/// The code of a script, its other arguments, and what it logged.
fn script(frame: &PageFrame<'_>, detail: &CallDetail, code: &str) -> Markup {
    let mut others = detail.arguments.object().unwrap_or_default();
    others.remove("code");
    let log = detail.result.as_ref().map(script_log).unwrap_or_default();
    html! {
        section.card {
            h2 { (frame.text("Script", "脚本")) }
            (json_view::text(code, frame.text("Script", "脚本")))
            @if !others.is_empty() {
                h3 { (frame.text("Other arguments", "其他参数")) }
                (json_view::json(&others.into_raw(), frame.text("Other arguments", "其他参数")))
            }
            @if !log.is_empty() {
                h3 { (frame.text("Log", "日志")) }
                (json_view::text(&log.join("\n"), frame.text("Log", "日志")))
            }
        }
    }
}

/// The lines that a script logged, as its result has them.
fn script_log(result: &RawJson) -> Vec<String> {
    let log = || {
        result.object()?.get("_meta")?.object()?.get(meta_keys::SCRIPT)?.object()?.get("log")?.decode().ok()
    };
    log().unwrap_or_default()
}

/// The attempts over time, as a chart and as a table.
fn attempts(frame: &PageFrame<'_>, detail: &CallDetail) -> Markup {
    let row = |attempt: &Attempt| {
        vec![
            cell_text(&attempt.source),
            foreign_text(&attempt.tool),
            html! {
                (state_label(&attempt.status, labels::call_status(&attempt.status, frame.lang())))
                @if let Some(error) = &attempt.error { div.muted.small dir="auto" { (error) } }
            },
            cell_text(duration_text(attempt.took_ms)),
        ]
    };
    html! {
        section.card {
            h2 { (frame.text("Attempts", "尝试记录")) }
            (waterfall(detail))
            (table(frame, frame.text("Attempts", "尝试记录"), &ATTEMPT_COLUMNS, detail.attempts.iter().map(row)))
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "positions in a chart")]
fn waterfall(detail: &CallDetail) -> Markup {
    // Attempts of other strategies start together; those of `first` one after another.
    let is_sequential = detail.strategy == "first";
    let sum: f64 = detail.attempts.iter().map(|attempt| attempt.took_ms).sum();
    let longest = detail.attempts.iter().map(|attempt| attempt.took_ms).fold(0.0, f64::max);
    let whole = if is_sequential { sum } else { longest }.max(0.001);
    let (mut shapes, mut begin) = (String::new(), 0.0);
    for (index, Attempt { status, took_ms, .. }) in detail.attempts.iter().enumerate() {
        let class = match status.as_str() {
            "succeeded" => "good",
            "failed" => "bad",
            _ => "dim",
        };
        let (x, width) = (begin / whole * CHART_WIDTH, (took_ms / whole * CHART_WIDTH).max(2.0));
        let y = index as f64 * ROW_HEIGHT + 4.0;
        shapes.push_str(&format!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"14\" rx=\"2\"/>"
        ));
        if is_sequential {
            begin += took_ms;
        }
    }
    let height = detail.attempts.len() as f64 * ROW_HEIGHT;
    html! {
        (PreEscaped(format!(
            "<svg class=\"chart waterfall\" viewBox=\"0 0 {CHART_WIDTH} {height}\" aria-hidden=\"true\">{shapes}</svg>"
        )))
    }
}

/// The call as commands and as a message.
fn copies(frame: &PageFrame<'_>, detail: &CallDetail) -> Markup {
    let (tool, arguments) = (&detail.call.tool, &detail.arguments);
    let command = format!("toolhub call {} --args {}", shell_quote(tool), shell_quote(arguments.get()));
    let params = RawObject::default().with("name", tool.as_str()).with("arguments", arguments.clone());
    let message = RawObject::default()
        .with("jsonrpc", "2.0")
        .with("id", RawJson::of(&1))
        .with("method", "tools/call")
        .with("params", params.into_raw())
        .into_raw();
    html! {
        details.card {
            summary { (frame.text("Copy as a command or a message", "复制为命令或消息")) }
            h3 { (frame.text("Command", "命令")) }
            pre.command { (command) }
            h3 { (frame.text("MCP message", "MCP 消息")) }
            pre.command { (message.get()) }
        }
    }
}
