//! The home page: health, what waits for a decision, and the calls of the last days.

use maud::{Markup, PreEscaped, html};
use toolhub_core::principal::LOCAL;

use super::calls::call_table;
use super::layout::{NavItem, PageFrame, duration_text, state_label};
use crate::api::overview::{DayCount, Stats, read_stats};
use crate::api::servers::Server;
use crate::api::{calls, clients, held_calls, servers, tools};
use crate::problem::Problem;
use crate::request::ConsoleContext;

const RECENT_CALLS: usize = 8;
/// The size of the chart, in units of its view box.
const CHART_WIDTH: f64 = 280.0;
const CHART_HEIGHT: f64 = 64.0;

pub(crate) async fn page(
    context: &ConsoleContext<'_>,
    frame: &PageFrame<'_>,
) -> Result<(String, Markup), Problem> {
    let sees_states = NavItem::Servers.permission().allows(context.principal());
    let servers = if sees_states { servers::visible(context) } else { Vec::new() };
    let tools = tools::offered_tools(context, None).map_or(0, |tools| tools.len());
    let held = held_calls::visible(context, false).await?.len();
    let stats = if sees_states { Some(read_stats(context).await?) } else { None };
    let mut recent = calls::page(context).await?.page.items;
    recent.truncate(RECENT_CALLS);
    let failing: Vec<&Server> =
        servers.iter().filter(|server| ["failed", "circuit_open"].contains(&server.state.as_str())).collect();
    let steps = Steps {
        called: !recent.is_empty(),
        // `ready`: connected by an earlier run of the hub.
        server_works: servers.iter().any(|server| ["connected", "ready"].contains(&server.state.as_str())),
        client_connected: sees_states && has_seen_client(context).await?,
    };
    let is_new = sees_states && !(steps.called && steps.server_works && steps.client_connected);
    let title = frame.text("Home", "首页");
    let content = html! {
        h1 { (title) }
        @if is_new { (tour(frame, &steps)) }
        section.tiles aria-label=(frame.text("Overview", "概览")) {
            (tile(frame.text("Tools", "工具"), &tools.to_string(), &frame.link("tools")))
            @if sees_states {
                (tile(
                    frame.text("Servers", "服务器"),
                    &format!("{} / {}", servers.len() - failing.len(), servers.len()),
                    &frame.link("servers"),
                ))
            }
            (tile(frame.text("Waiting", "待审批"), &held.to_string(), &frame.link("waiting")))
            @if let Some(stats) = &stats {
                (tile(frame.text("Calls today", "今日调用"), &today(stats).to_string(), &frame.link("calls")))
                (tile(
                    frame.text("Successful calls: median · 95 %", "成功调用耗时：中位数 · 95 %"),
                    &latencies(stats),
                    &frame.link("calls"),
                ))
            }
        }
        @if !failing.is_empty() || held > 0 {
            section.card {
                h2 { (frame.text("Needs attention", "需要处理")) }
                ul.plain {
                    @for server in &failing {
                        li {
                            a href=(frame.item("servers", &server.id)) { (server.id) }
                            " "
                            span.muted { (server.error.as_deref().unwrap_or_default()) }
                        }
                    }
                    @if held > 0 {
                        li {
                            a href=(frame.link("waiting")) {
                                (frame.text("Calls that wait for a decision", "待审批的调用"))
                            }
                            " " span.count { (held) }
                        }
                    }
                }
            }
        }
        @if let Some(stats) = &stats { (chart(frame, &stats.days)) }
        section.card {
            h2 { (frame.text("Recent calls", "最近的调用")) }
            @if recent.is_empty() {
                p.muted { (frame.text("No calls yet.", "尚无调用。")) }
            } @else {
                (call_table(context, frame, &recent))
            }
        }
    };
    Ok((title.to_owned(), content))
}

fn tile(label: &str, value: &str, link: &str) -> Markup {
    html! {
        a.tile href=(link) {
            span.muted { (label) }
            strong { (value) }
        }
    }
}

fn today(stats: &Stats) -> u64 {
    stats.days.last().map_or(0, |day| day.succeeded + day.failed)
}

fn latencies(stats: &Stats) -> String {
    let shown = |ms: Option<f64>| ms.map_or_else(|| "–".to_owned(), duration_text);
    format!("{} · {}", shown(stats.p50_ms), shown(stats.p95_ms))
}

/// The first steps on a new hub that are done.
struct Steps {
    /// A tool was called.
    called: bool,
    /// A server could be connected.
    server_works: bool,
    /// An MCP client has connected.
    client_connected: bool,
}

/// Whether a client has connected since the hub was started, or has called a tool with a key before.
async fn has_seen_client(context: &ConsoleContext<'_>) -> Result<bool, Problem> {
    if !clients::read(context).is_empty() {
        return Ok(true);
    }
    Ok(calls::seen_callers(context).await?.iter().any(|caller| caller.principal != LOCAL))
}

/// The first steps on a new hub.
fn tour(frame: &PageFrame<'_>, steps: &Steps) -> Markup {
    let done = |is_done: bool| {
        html! { @if is_done { " " (state_label("succeeded", frame.text("done", "已完成"))) } }
    };
    html! {
        section.card {
            h2 { (frame.text("Three steps to a working hub", "三步上手")) }
            ol.steps {
                li {
                    a href=(frame.item("tools", "calculate")) {
                        (frame.text("Try a built-in tool", "试用内置工具"))
                    }
                    (done(steps.called))
                    p.muted { (frame.text(
                        "`calculate` works without any set-up.",
                        "`calculate` 无需任何配置即可使用。",
                    )) }
                }
                li {
                    a href=(frame.link("servers")) { (frame.text("Add a server", "添加服务器")) }
                    (done(steps.server_works))
                    p.muted { (frame.text("Any MCP server: a command or a URL.", "任意 MCP 服务器：命令或网址。")) }
                }
                li {
                    a href=(frame.link("clients")) { (frame.text("Connect a client", "连接客户端")) }
                    (done(steps.client_connected))
                    p.muted { (frame.text(
                        "Claude, Cursor, VS Code and others get all tools from one address.",
                        "Claude、Cursor、VS Code 等客户端可从一个地址获得全部工具。",
                    )) }
                }
            }
        }
    }
}

/// Calls by day, as bars and as a table.
fn chart(frame: &PageFrame<'_>, days: &[DayCount]) -> Markup {
    let most = days.iter().map(|day| day.succeeded + day.failed).max().unwrap_or(0);
    if most == 0 {
        return html! {};
    }
    html! {
        section.card {
            h2 { (frame.text("Calls by day", "每日调用")) }
            (bars(days, most))
            p.legend {
                span.key.good {} (frame.text("succeeded", "成功"))
                " "
                span.key.bad {} (frame.text("failed", "失败"))
            }
            details {
                summary { (frame.text("As a table", "以表格显示")) }
                table {
                    thead { tr {
                        th scope="col" { (frame.text("Day (UTC)", "日期（UTC）")) }
                        th.number scope="col" { (frame.text("Succeeded", "成功")) }
                        th.number scope="col" { (frame.text("Failed", "失败")) }
                    } }
                    tbody {
                        @for day in days.iter().rev() {
                            tr {
                                td { (day.date) }
                                td.number { (day.succeeded) }
                                td.number { (day.failed) }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "the height of a bar in a chart")]
fn bars(days: &[DayCount], most: u64) -> Markup {
    let width = CHART_WIDTH / days.len().max(1) as f64;
    let height =
        |count: u64| (count as f64 / most as f64 * CHART_HEIGHT).max(if count > 0 { 1.5 } else { 0.0 });
    let mut shapes = String::new();
    for (index, day) in days.iter().enumerate() {
        let (left, good, bad) = (index as f64 * width, height(day.succeeded), height(day.failed));
        let mut bar = |class: &str, bottom: f64, height: f64| {
            if height > 0.0 {
                let (top, wide) = (CHART_HEIGHT - bottom - height, width - 3.0);
                shapes.push_str(&format!(
                    "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{wide:.1}\" height=\"{height:.1}\" rx=\"1\"/>"
                ));
            }
        };
        bar("good", 0.0, good);
        bar("bad", good, bad);
    }
    // Numbers only: nothing here comes from a server.
    html! {
        (PreEscaped(format!(
            "<svg class=\"chart\" viewBox=\"0 0 {CHART_WIDTH} {CHART_HEIGHT}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">{shapes}</svg>"
        )))
    }
}
