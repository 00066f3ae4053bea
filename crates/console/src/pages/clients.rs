//! The page that connects MCP clients.

use http::header;
use maud::{Markup, html};
use toolhub_core::{RawJson, RawObject};
use toolhub_server::Authenticator as _;

use super::layout::Frame;
use crate::api::overview::usable_profiles;
use crate::request::Context;

pub(crate) fn page(context: &Context<'_>, frame: &Frame<'_>) -> (String, Markup) {
    let title = frame.text("Clients", "客户端");
    // The server has checked the host.
    let host = context.headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    // The name of the console is for browsers only.
    let own = context.own_host.and_then(|own| host.strip_prefix(own));
    let host = own.map_or_else(|| host.to_owned(), |port| format!("127.0.0.1{port}"));
    let scheme = if context.is_https { "https" } else { "http" };
    let url = format!("{scheme}://{host}/mcp");
    let needs_key = context.gateways.access().is_required();
    let profiles = usable_profiles(context);
    let content = html! {
        h1 { (title) }
        p { (frame.text(
            "Every MCP client gets all tools of this hub from one address:",
            "任何 MCP 客户端都能从一个地址获得此 hub 的全部工具：",
        )) }
        pre.command { (url) }
        @if needs_key {
            p { (frame.text(
                "Clients need a key. Make one for each, and send it as a bearer token:",
                "客户端需要密钥。请为每个客户端生成一个，并作为 Bearer 令牌发送：",
            )) }
            pre.command { "toolhub keys new NAME --role caller" }
        }
        section.card {
            h2 { (frame.text("All clients on this machine", "本机的所有客户端")) }
            p { (frame.text(
                "This command finds the clients on this machine and connects them; `--undo` takes it back.",
                "此命令会找到本机的客户端并完成连接；`--undo` 可撤销。",
            )) }
            pre.command { "toolhub init" }
        }
        section.card {
            h2 { "Claude Code" }
            pre.command { "claude mcp add --transport http toolhub " (url) @if needs_key { " --header \"Authorization: Bearer KEY\"" } }
        }
        section.card {
            h2 { "Cursor, Windsurf, Gemini CLI" }
            (snippet(&mcp_servers("mcpServers", "url", &url, needs_key)))
        }
        section.card {
            h2 { "VS Code" }
            (snippet(&mcp_servers("servers", "url", &url, needs_key)))
        }
        section.card {
            h2 { (frame.text("Clients that start a program", "通过命令启动的客户端")) }
            pre.command { "toolhub serve --stdio" }
        }
        @if profiles.len() > 1 {
            section.card {
                h2 { (frame.text("Profiles", "配置档")) }
                p { (frame.text("Each profile has an address of its own:", "每个配置档都有自己的地址：")) }
                ul { @for profile in &profiles { li { code { (url) "/" (profile) } } } }
            }
        }
    };
    (title.to_owned(), content)
}

fn snippet(value: &RawJson) -> Markup {
    html! { pre.command { (toolhub_core::json::pretty(value.get())) } }
}

/// The configuration of a client, by the names of its members.
fn mcp_servers(member: &'static str, url_member: &'static str, url: &str, needs_key: bool) -> RawJson {
    let mut server = RawObject::default().with("type", "http").with(url_member, url);
    if needs_key {
        let headers = RawObject::default().with("Authorization", "Bearer KEY");
        server = server.with("headers", headers.into_raw());
    }
    let servers = RawObject::default().with("toolhub", server.into_raw());
    RawObject::default().with(member, servers.into_raw()).into_raw()
}
