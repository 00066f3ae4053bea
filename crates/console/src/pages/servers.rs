//! The pages of servers.

use maud::{Markup, html};
use toolhub_core::Role;

use super::labels;
use super::layout::{PageFrame, state_label, time_element};
use super::table::{Column, cell_text, foreign_text, table};
use crate::api::servers::{self, Server, ServerDetail, StderrLog};
use crate::problem::Problem;
use crate::request::ConsoleContext;
use crate::route::encode_segment;

/// The columns of the list.
const COLUMNS: [Column; 7] = [
    Column::new("Name", "名称"),
    Column::new("State", "状态"),
    Column::new("Transport", "传输"),
    Column::new("Protocol version", "协议版本"),
    Column::number("Tools", "工具"),
    Column::number("Restarts", "重启"),
    Column::muted("Program", "程序"),
];

pub(crate) fn list(context: &ConsoleContext<'_>, frame: &PageFrame<'_>) -> (String, Markup) {
    let servers = servers::visible(context);
    let title = frame.text("Servers", "服务器");
    let manages = context.has_role(Role::Operator) || context.has_role(Role::Owner);
    let content = html! {
        h1 { (title) }
        @if servers.is_empty() {
            div.empty {
                p { (frame.text("No servers yet.", "还没有服务器。")) }
            }
        } @else {
            (table(frame, title, &COLUMNS, servers.iter().map(|server| row(frame, server))))
        }
        @if manages {
            section.card {
                h2 { (frame.text("Add a server", "添加服务器")) }
                div #add-server data-static="true" data-servers=(frame.api("servers")) data-page=(frame.link("servers")) {}
                details {
                    summary { (frame.text("In a terminal", "在终端中")) }
                    (how_to_add(frame))
                }
            }
        }
    };
    (title.to_owned(), content)
}

fn row(frame: &PageFrame<'_>, server: &Server) -> Vec<Markup> {
    vec![
        html! { a href=(frame.item("servers", &server.id)) { bdi { (server.id) } } },
        html! {
            (state_label(&server.state, labels::server_state(&server.state, frame.lang())))
            @if let Some(error) = &server.error { div.muted.small dir="auto" { (error) } }
        },
        cell_text(&server.transport),
        cell_text(version(frame, server)),
        cell_text(server.tools.map_or_else(|| "–".to_owned(), |tools| tools.to_string())),
        cell_text(server.restarts.to_string()),
        foreign_text(server.peer.as_deref().unwrap_or("–")),
    ]
}

fn version(frame: &PageFrame<'_>, server: &Server) -> String {
    labels::protocol_version(server.protocol_version.as_deref(), server.era.as_deref(), frame.lang())
}

/// The tools that are switched off, each with a button that switches it on.
fn switched_off(frame: &PageFrame<'_>, detail: &ServerDetail) -> Markup {
    let path = frame.api(&format!("servers/{}", encode_segment(&detail.server.id)));
    html! {
        section.card {
            h2 { (frame.text("Switched off", "已停用的工具")) " " span.count { (detail.disabled_tools.len()) } }
            ul.plain {
                @for tool in &detail.disabled_tools {
                    li {
                        bdi { (tool) } " "
                        button type="button" data-post=(path) data-method="PATCH"
                            data-body=(serde_json::json!({ "switch_on": tool }).to_string()) {
                            (frame.text("Switch on", "启用"))
                        }
                    }
                }
            }
        }
    }
}

fn how_to_add(frame: &PageFrame<'_>) -> Markup {
    html! {
        p { (frame.text(
            "A running hub picks up changes of its configuration at once. In a terminal:",
            "运行中的 hub 会立即应用配置的改动。在终端中运行：",
        )) }
        pre.command { "toolhub servers add NAME -- COMMAND\ntoolhub servers add NAME --url URL\ntoolhub init" }
        p.muted { (frame.text(
            "`toolhub init` imports the servers of Claude, Cursor, VS Code and other clients.",
            "`toolhub init` 可导入 Claude、Cursor、VS Code 等客户端中的服务器。",
        )) }
    }
}

pub(crate) fn item(context: &ConsoleContext<'_>, frame: &PageFrame<'_>) -> Result<(String, Markup), Problem> {
    let detail = servers::read(context)?;
    let server = &detail.server;
    let manages = context.has_role(Role::Operator) || context.has_role(Role::Owner);
    // A server that is reached by its URL has no process here.
    let log = (manages && server.transport == "stdio").then(|| servers::read_log(context)).transpose()?;
    let content = html! {
        p.crumbs { a href=(frame.link("servers")) { (frame.text("Servers", "服务器")) } }
        div.head {
            h1 { bdi { (server.id) } }
            (state_label(&server.state, labels::server_state(&server.state, frame.lang())))
            @if manages { (actions(frame, server)) }
        }
        @if let Some(error) = &server.error { p.problem dir="auto" { (error) } }
        dl.facts {
            (fact_row(frame.text("Transport", "传输"), &server.transport))
            @if !detail.reached_by.is_empty() { (fact_row(frame.text("Reached by", "连接方式"), &detail.reached_by)) }
            (fact_row(frame.text("Program", "程序"), server.peer.as_deref().unwrap_or("–")))
            (fact_row(frame.text("MCP protocol version", "MCP 协议版本"), &version(frame, server)))
            (fact_row(frame.text("Credentials", "凭据"), labels::credentials(&detail.credentials, frame.lang())))
            @if !detail.origin.is_empty() { (fact_row(frame.text("Configured in", "配置文件"), &detail.origin)) }
            @if let Some(at) = &server.listed_at {
                dt { (frame.text("Listed", "列出时间")) } dd { (time_element(at)) }
            }
            @if let Some(at) = &server.circuit_open_until {
                dt { (frame.text("Calls are tried again", "恢复调用时间")) } dd { (time_element(at)) }
            }
        }
        @if manages { (edit_card(frame, server)) }
        @if !detail.disabled_tools.is_empty() { (switched_off(frame, &detail)) }
        section.card {
            h2 { (frame.text("Tools", "工具")) " " span.count { (detail.tool_names.len()) } }
            @if detail.tool_names.is_empty() {
                p.muted { (frame.text("The list of tools has not been received yet.", "尚未获取到工具列表。")) }
            } @else {
                ul.columns {
                    @for name in &detail.tool_names { li { a href=(frame.item("tools", name)) { bdi { (name) } } } }
                }
            }
        }
        @if let Some(log) = &log { (standard_error(frame, log)) }
    };
    Ok((server.id.clone(), content))
}

/// The standard error of a server. That of an earlier run is folded: it says nothing about the server that runs now.
fn standard_error(frame: &PageFrame<'_>, log: &StderrLog) -> Markup {
    let lines = html! { pre.log tabindex="0" dir="auto" { @for line in &log.lines { (line) "\n" } } };
    html! {
        section.card {
            h2 { (frame.text("Standard error", "标准错误")) }
            @if log.is_earlier || log.lines.is_empty() {
                p.muted { (frame.text("Nothing was written.", "没有输出。")) }
            } @else {
                (lines)
            }
            @if log.is_earlier && !log.lines.is_empty() {
                details {
                    summary { (frame.text("Of an earlier run", "此前一次运行的输出")) }
                    (lines)
                }
            }
        }
    }
}

/// The form that changes the entry of a server. Scripts build it when it is opened.
fn edit_card(frame: &PageFrame<'_>, server: &Server) -> Markup {
    let path = frame.api(&format!("servers/{}", encode_segment(&server.id)));
    html! {
        details.card #edit {
            summary { (frame.text("Edit", "编辑")) }
            div #edit-server data-static="true" data-entry=(format!("{path}/entry")) data-test=(format!("{path}:test"))
                data-name=(server.id) data-enabled[server.state != "disabled"] {
                noscript { p.muted { (frame.text("Scripts are needed to change a server from here.", "在此修改服务器需要启用脚本。")) } }
            }
        }
    }
}

/// The buttons that change a server.
fn actions(frame: &PageFrame<'_>, server: &Server) -> Markup {
    let (id, path) = (&server.id, frame.api(&format!("servers/{}", encode_segment(&server.id))));
    let is_enabled = server.state != "disabled";
    let question = |en: &str, zh: &str| frame.text(en, zh).replace("NAME", id);
    html! {
        div.actions {
            @if is_enabled {
                button type="button" data-post=(format!("{path}:test"))
                    data-done=(frame.text(
                        "The server works: it is connected, and its tools are listed.",
                        "服务器工作正常：已连接，并已获取工具列表。",
                    )) {
                    (frame.text("Test", "测试"))
                }
                button type="button" data-post=(format!("{path}:restart"))
                    data-confirm=(question(
                        "Restart the server “NAME”? Requests that use it now are cut off.",
                        "重启服务器“NAME”？正在使用它的请求会被中断。",
                    )) data-confirm-action=(frame.text("Restart server", "重启服务器")) {
                    (frame.text("Restart", "重启"))
                }
                button type="button" data-post=(path) data-method="PATCH" data-body="{\"enabled\":false}"
                    data-confirm=(question(
                        "Disable the server “NAME”? Its tools are not offered until it is enabled again.",
                        "停用服务器“NAME”？重新启用之前不再提供它的工具。",
                    )) data-confirm-action=(frame.text("Disable server", "停用服务器")) {
                    (frame.text("Disable", "停用"))
                }
            } @else {
                button.primary type="button" data-post=(path) data-method="PATCH" data-body="{\"enabled\":true}" {
                    (frame.text("Enable", "启用"))
                }
            }
            a.button href="#edit" { (frame.text("Edit", "编辑")) }
            button type="button" data-post=(path) data-method="DELETE" data-then=(frame.link("servers"))
                data-confirm=(question(
                    "Remove the server “NAME” from its file? Its login and its approvals are removed, too.",
                    "从配置文件中移除服务器“NAME”？其登录和批准记录也会一并移除。",
                )) data-confirm-action=(frame.text("Remove server", "移除服务器")) {
                (frame.text("Remove", "移除"))
            }
        }
    }
}

pub(crate) fn fact_row(name: &str, value: &str) -> Markup {
    html! { dt { (name) } dd { bdi { (value) } } }
}
