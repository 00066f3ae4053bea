//! The page that connects MCP clients: the address of the hub, what to write into the file of each client, and the callers that
//! have used the hub.

use std::path::{Path, PathBuf};

use http::header;
use maud::{Markup, html};
use toolhub_client_config::{
    Client, ClientEnvironment, ClientServer, Extras, FileScope, HttpSpec, OperatingSystem, ServerAction,
    StdioSpec, TargetFile, TransportSpec, config_locations, merge_servers,
};
use toolhub_core::Role;
use toolhub_core::principal::LOCAL;
use toolhub_core::shell::shell_quote;
use toolhub_server::Authenticator as _;

use super::layout::{PageFrame, time_element};
use super::table::{Column, cell_text, foreign_text, table};
use crate::api::calls::{self, SeenCaller};
use crate::api::clients::{self, ConnectedClient};
use crate::api::overview::usable_profiles;
use crate::problem::Problem;
use crate::request::ConsoleContext;

/// Stands for a key in snippets.
const KEY_PLACEHOLDER: &str = "KEY";

const CLIENT_COLUMNS: [Column; 6] = [
    Column::new("Client", "客户端"),
    Column::new("Version", "版本"),
    Column::new("Caller", "调用方"),
    Column::new("Profile", "配置方案"),
    Column::new("Protocol", "协议"),
    Column::new("Connected", "最近连接"),
];

const CALLER_COLUMNS: [Column; 3] = [
    Column::new("Caller", "调用方"),
    Column::new("Last call", "最近调用"),
    Column::number("Calls", "调用次数"),
];

pub(crate) async fn page(
    context: &ConsoleContext<'_>,
    frame: &PageFrame<'_>,
) -> Result<(String, Markup), Problem> {
    let title = frame.text("Clients", "客户端");
    let public = public_url(context);
    let is_guessed = public.is_none();
    let url = public.unwrap_or_else(|| requested_url(context));
    let needs_key = context.gateways.access().is_required();
    let program = program(context);
    let profiles = usable_profiles(context);
    let callers = calls::seen_callers(context).await?;
    let content = html! {
        h1 { (title) }
        // Behind a proxy with a path prefix, scripts correct the address.
        div #connections data-gateway=[is_guessed.then_some(&url)] data-gateway-path=(frame.link("../mcp")) {
            p { (frame.text(
                "Every MCP client gets all tools of this hub from one address:",
                "任何 MCP 客户端都能从一个地址获得此 hub 的全部工具：",
            )) }
            pre.command { (url) }
            p { (frame.text(
                "A key identifies a client: the hub then knows who calls, can limit what each client may do, and can lock one out.",
                "密钥用于识别客户端：hub 据此得知是谁在调用，可以限制各客户端的权限，也可以单独吊销。",
            )) " " @if needs_key {
                (frame.text(
                    "Clients need one here. Make one for each: the buttons below show it once, in the text for the client.",
                    "此 hub 要求使用密钥。请为每个客户端生成一个：下方按钮会显示一次，并填入该客户端的配置。",
                ))
            } @else {
                (frame.text(
                    "This hub needs none now. With the first key that you make, every client needs one.",
                    "此 hub 目前不要求密钥。生成第一个密钥后，所有客户端都需要密钥。",
                ))
            } }
            p { (frame.text(
                "If the file of a client exists already, add the entry `toolhub` to the servers in it and leave the rest as it is. Restart the client afterwards: most clients read their file when they start.",
                "如果客户端的配置文件已存在，请把 `toolhub` 一项加入其中的服务器列表，其余内容保持不变。随后重启客户端：多数客户端只在启动时读取配置。",
            )) }
            section.card {
                h2 { (frame.text("All clients on this machine", "本机的所有客户端")) }
                p { (frame.text(
                    "This command finds the clients on this machine and connects them; `--undo` takes it back.",
                    "此命令会找到本机的客户端并完成连接；`--undo` 可撤销。",
                )) }
                pre.command { "toolhub init" }
            }
            @for client in Client::all() { (card(context, frame, client, &Reach { url: &url, program: &program })) }
            section.card {
                h2 { (frame.text("Clients that start a program", "通过命令启动的客户端")) }
                pre.command { (command_line(&program)) }
            }
            @if profiles.len() > 1 {
                section.card {
                    h2 { (frame.text("Profiles", "配置方案")) }
                    p { (frame.text("Each profile has an address of its own:", "每个配置方案都有自己的地址：")) }
                    ul { @for profile in &profiles { li { code { (url) "/" (profile) } } } }
                }
            }
        }
        (connected(frame, &clients::read(context)))
        (seen(frame, &callers))
    };
    Ok((title.to_owned(), content))
}

/// The address of `/mcp` in the configuration.
fn public_url(context: &ConsoleContext<'_>) -> Option<String> {
    let public = context.gateways.access().public_url()?;
    Some(format!("{}/mcp", public.trim_end_matches('/').trim_end_matches("/mcp")))
}

/// The address of `/mcp` at the host that the browser uses.
fn requested_url(context: &ConsoleContext<'_>) -> String {
    // The server has checked the host.
    let host = context.headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    // The name of the console is for browsers only.
    let own = context.own_host.and_then(|own| host.strip_prefix(own));
    let host = own.map_or_else(|| host.to_owned(), |port| format!("127.0.0.1{port}"));
    let scheme = if context.is_https { "https" } else { "http" };
    format!("{scheme}://{host}/mcp")
}

/// The ways to reach the hub.
struct Reach<'a> {
    /// The address of `/mcp`.
    url: &'a str,
    /// The program that serves a client which starts it.
    program: &'a StdioSpec,
}

/// `toolhub serve --stdio`. Desktop applications do not search the `PATH` of a shell, so that the user of this machine gets the
/// path of the running program, with the options for its configuration.
fn program(context: &ConsoleContext<'_>) -> StdioSpec {
    let paths = context.hub().paths();
    let own =
        is_local(context).then(|| Some((toolhub::program_path().ok()?, paths.options().ok()?))).flatten();
    let (command, mut args) = match own {
        Some((program, options)) => (program.display().to_string(), options),
        None => ("toolhub".to_owned(), Vec::new()),
    };
    args.extend(["serve".to_owned(), "--stdio".to_owned()]);
    StdioSpec { command, args, ..StdioSpec::default() }
}

/// Whether the page is for the user of this machine.
fn is_local(context: &ConsoleContext<'_>) -> bool {
    &**context.principal().id() == LOCAL
}

/// A program with its arguments, for a shell.
fn command_line(program: &StdioSpec) -> String {
    let words: Vec<_> =
        std::iter::once(&program.command).chain(&program.args).map(|word| shell_quote(word)).collect();
    words.join(" ")
}

/// What to do for one client: its file, the text for it, and a key.
fn card(context: &ConsoleContext<'_>, frame: &PageFrame<'_>, client: Client, reach: &Reach<'_>) -> Markup {
    let url = reach.url;
    let needs_key = context.gateways.access().is_required();
    let snippet_id = format!("snippet-{}", client.name());
    let snippet = snippet(client, reach, needs_key);
    html! {
        section.card {
            div.head {
                h2 { (client.title()) }
                @if context.has_role(Role::Owner) && snippet.has_address {
                    div.actions { (key_button(context, frame, client, &snippet_id)) }
                }
            }
            @if client.name() == "claude-code" {
                p { (frame.text("In a terminal:", "在终端中运行：")) }
                pre.command { "claude mcp add --transport http toolhub " (url) @if needs_key { " --header \"Authorization: Bearer " (KEY_PLACEHOLDER) "\"" } }
                p { (frame.text("Or in its file:", "或写入其文件：")) }
            }
            (files(context, frame, client))
            @if !snippet.has_address {
                p.muted { (frame.text(
                    "This client starts a program, which must be on the machine of the client:",
                    "此客户端通过命令启动程序，程序须在客户端所在的机器上：",
                )) }
            }
            pre.command id=(snippet_id) { (snippet.text) }
        }
    }
}

/// The files of a client: on this machine for its user, otherwise on each system.
fn files(context: &ConsoleContext<'_>, frame: &PageFrame<'_>, client: Client) -> Markup {
    let file = |environment: &ClientEnvironment| user_file(client, environment);
    html! {
        p {
            (frame.text("File: ", "文件："))
            @if is_local(context) {
                @if let Some(file) = file(&ClientEnvironment::current()) { code { bdi { (file.display()) } } }
            } @else {
                @for (system, name) in [(OperatingSystem::Linux, "Linux"), (OperatingSystem::MacOs, "macOS"), (OperatingSystem::Windows, "Windows")] {
                    @if let Some(file) = file(&sample_environment(system)) {
                        span.muted { (name) " " } code { bdi { (file.display()) } } " "
                    }
                }
            }
        }
    }
}

/// The file of the user that a client reads first.
fn user_file(client: Client, environment: &ClientEnvironment) -> Option<PathBuf> {
    let location =
        config_locations(client, environment).into_iter().find(|location| location.scope == FileScope::User);
    location.map(|location| location.file)
}

/// The environment of a machine that is not known.
fn sample_environment(system: OperatingSystem) -> ClientEnvironment {
    let home = Some(PathBuf::from("~"));
    ClientEnvironment { system, home, folder: PathBuf::new(), named: std::collections::BTreeMap::new() }
}

/// The text for the file of a client.
struct Snippet {
    text: String,
    /// Whether it names the address of the hub; some clients can only start a program.
    has_address: bool,
}

fn snippet(client: Client, reach: &Reach<'_>, needs_key: bool) -> Snippet {
    let key = ("Authorization".to_owned(), format!("Bearer {KEY_PLACEHOLDER}"));
    let headers = needs_key.then_some(key).into_iter().collect();
    let address = TransportSpec::Http(HttpSpec { url: reach.url.to_owned(), headers });
    if let Some(text) = written(client, address) {
        return Snippet { text, has_address: true };
    }
    let text = written(client, TransportSpec::Stdio(reach.program.clone())).unwrap_or_default();
    Snippet { text, has_address: false }
}

/// The file of a client that has no other server. `None` if the client cannot use the transport.
fn written(client: Client, transport: TransportSpec) -> Option<String> {
    let server = ClientServer {
        id: "toolhub".to_owned(),
        transport,
        enabled: true,
        extras: Extras::default(),
        left_out: Vec::new(),
        notes: Vec::new(),
    };
    let target = TargetFile { file: Path::new(""), text: "", format: client.format(), replace: false };
    let merged = merge_servers(&target, &[server]).ok()?;
    let is_added = merged.outcomes.iter().all(|outcome| outcome.action == ServerAction::Added);
    is_added.then(|| merged.text.trim_end().to_owned())
}

/// The button that makes a key for a client.
fn key_button(context: &ConsoleContext<'_>, frame: &PageFrame<'_>, client: Client, snippet: &str) -> Markup {
    let access = context.gateways.access();
    let known: Vec<String> = access.keys().into_iter().map(|key| key.principal.display.clone()).collect();
    let names = std::iter::once(client.name().to_owned())
        .chain((2..).map(|number| format!("{}-{number}", client.name())));
    let name = names.take(known.len() + 1).find(|name| !known.contains(name)).unwrap_or_default();
    let question = match access.is_required() {
        true => frame.text(
            "Make the key “NAME” with the role `caller`, which may call tools? It is shown once, in the text for the client.",
            "生成密钥“NAME”（角色 `caller`，可调用工具）？密钥只显示一次，并填入该客户端的配置。",
        ),
        false => frame.text(
            "Make the key “NAME” with the role `caller`, which may call tools? It is the first key: from now on every client needs one.",
            "生成密钥“NAME”（角色 `caller`，可调用工具）？这是第一个密钥：此后所有客户端都需要密钥。",
        ),
    };
    let body = serde_json::json!({ "name": name, "roles": ["caller"] }).to_string();
    html! {
        button type="button" data-post=(frame.api("keys")) data-body=(body) data-secret="key" data-snippet=(snippet)
            data-confirm=(question.replace("NAME", &name)) data-confirm-action=(frame.text("Make key", "生成密钥")) {
            (frame.text("Make a key for NAME", "为 NAME 生成密钥").replace("NAME", client.title()))
        }
    }
}

/// The clients that have connected.
fn connected(frame: &PageFrame<'_>, clients: &[ConnectedClient]) -> Markup {
    let row = |client: &ConnectedClient| {
        let name = client.title.as_ref().unwrap_or(&client.name);
        let link = format!("{}?{}", frame.link("calls"), query("principal", &client.principal));
        vec![
            foreign_text(name),
            foreign_text(&client.version),
            html! { a href=(link) { (foreign_text(&client.principal)) } },
            foreign_text(&client.profile),
            foreign_text(&client.protocol),
            time_element(&client.seen_at),
        ]
    };
    html! {
        section.card {
            h2 { (frame.text("Connected since the hub was started", "自 hub 启动以来连接过的客户端")) }
            @if clients.is_empty() {
                p.muted { (frame.text("No MCP client has connected yet.", "还没有 MCP 客户端连接过。")) }
            } @else {
                (table(frame, frame.text("Connected clients", "已连接的客户端"), &CLIENT_COLUMNS, clients.iter().map(row)))
                p.muted { (frame.text(
                    "Clients state their name and version themselves; the caller is what the hub has verified.",
                    "名称和版本由客户端自行声明；调用方由 hub 验证。",
                )) }
            }
        }
    }
}

/// The callers of the last calls.
fn seen(frame: &PageFrame<'_>, callers: &[SeenCaller]) -> Markup {
    let row = |caller: &SeenCaller| {
        let link = format!("{}?{}", frame.link("calls"), query("principal", &caller.principal));
        vec![
            html! { a href=(link) { (foreign_text(&caller.principal)) } },
            time_element(&caller.last_at),
            cell_text(caller.calls.to_string()),
        ]
    };
    html! {
        section.card {
            h2 { (frame.text("Seen lately", "最近使用过的调用方")) }
            @if callers.is_empty() {
                p.muted { (frame.text("No client has called a tool yet.", "还没有客户端调用过工具。")) }
            } @else {
                (table(frame, frame.text("Callers", "调用方"), &CALLER_COLUMNS, callers.iter().map(row)))
                p.muted { (frame.text(
                    "Of the last 500 calls. A client is told apart by its key: `local` are programs without one.",
                    "统计最近 500 次调用。客户端按密钥区分：`local` 表示未使用密钥的程序。",
                )) }
            }
        }
    }
}

fn query(name: &str, value: &str) -> String {
    url::form_urlencoded::Serializer::new(String::new()).append_pair(name, value).finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_a_file_and_a_text() {
        for client in Client::all() {
            for system in [OperatingSystem::Linux, OperatingSystem::MacOs, OperatingSystem::Windows] {
                let file = user_file(client, &sample_environment(system));
                assert!(file.is_some_and(|file| file.starts_with("~")), "{client:?} {system:?}");
            }
            let args = vec!["serve".to_owned(), "--stdio".to_owned()];
            let program =
                StdioSpec { command: "/opt/toolhub/bin/toolhub".to_owned(), args, ..StdioSpec::default() };
            let reach = Reach { url: "http://127.0.0.1:1/mcp", program: &program };
            let Snippet { text, has_address } = snippet(client, &reach, true);
            assert!(text.contains("toolhub"), "{client:?}: {text}");
            assert!(has_address || text.contains("/opt/toolhub/bin/toolhub"), "{client:?}: {text}");
            assert!(
                !has_address || (text.contains("http://127.0.0.1:1/mcp") && text.contains("KEY")),
                "{client:?}: {text}"
            );
        }
    }
}
