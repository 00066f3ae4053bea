//! `toolhub servers list`: the state of the servers, without connecting to them. A command is short-lived, so the state is mostly
//! that stored by earlier runs; values that are not stored, such as the number of restarts, are shown only if this run has them.

use std::time::{SystemTime, UNIX_EPOCH};

use toolhub::{Hub, ServerState, ServerView};
use toolhub_core::{Lang, Localize as _, RawJson, RawObject};
use toolhub_mcp_client::last_lines;

use crate::app::App;
use crate::exit::Exit;
use crate::render::sanitize::Style;
use crate::render::screen::{BAD, BOLD, DIM, GOOD, NAME, ODD};
use crate::render::table::{Cell, Overflow, row_lines};

pub(crate) async fn run(app: &App) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let hub = app.hub().await?;
    let servers = hub.servers();
    if app.screen.json {
        let all: Vec<RawObject> = servers.iter().map(|server| as_json(hub, server, lang)).collect();
        app.screen.json(&RawJson::of(&all));
        return Ok(Exit::Done);
    }
    if servers.is_empty() {
        app.screen.line(lang.choose(
            "no servers yet; add one with `toolhub servers add NAME -- COMMAND` or `toolhub servers add NAME --url URL`",
            "还没有服务器；用 `toolhub servers add 名称 -- 命令` 或 `toolhub servers add 名称 --url 地址` 添加",
        ));
        return Ok(Exit::Done);
    }
    let head = lang.choose(
        ["ID", "TRANSPORT", "STATE", "ERA", "TOOLS", ""],
        ["名称", "传输", "状态", "协议", "工具", ""],
    );
    let mut rows = vec![head.iter().map(|text| Cell::new(*text, BOLD)).collect()];
    rows.extend(servers.iter().map(|server| row(server, lang)));
    let mut table = row_lines(&rows, "", (app.screen.width(), Overflow::Fold)).into_iter();
    table.by_ref().take(1).flatten().for_each(|head| app.screen.line(&head));
    for (lines, server) in table.zip(&servers) {
        lines.iter().for_each(|line| app.screen.line(line));
        if app.global.verbose > 0 {
            for detail in details(hub, server, lang) {
                app.screen.line(&format!("    {DIM}{detail}{DIM:#}"));
            }
        }
    }
    Ok(Exit::Done)
}

/// The state of a server, with its problem.
pub(crate) fn state_line(server: &ServerView, lang: Lang) -> String {
    let (word, style) = state_word(server, lang);
    let remark = remark(server, lang);
    match remark.is_empty() {
        true => format!("{style}{word}{style:#}"),
        false => format!("{style}{word}{style:#}  {remark}"),
    }
}

fn state_word(server: &ServerView, lang: Lang) -> (&'static str, Style) {
    match server.state_name() {
        "connected" => (lang.choose("connected", "已连接"), GOOD),
        "ready" => (lang.choose("ready", "就绪"), GOOD),
        "failed" => (lang.choose("failed", "失败"), BAD),
        "circuit_open" => (lang.choose("circuit open", "已熔断"), BAD),
        "slow" => (lang.choose("slow", "响应慢"), ODD),
        "disabled" => (lang.choose("disabled", "停用"), DIM),
        _ => (lang.choose("new", "未连接过"), ODD),
    }
}

pub(crate) fn row(server: &ServerView, lang: Lang) -> Vec<Cell> {
    let (word, style) = state_word(server, lang);
    let dash = || "-".to_owned();
    vec![
        Cell::new(server.spec.id.as_str(), NAME),
        Cell::from(server.spec.transport.name()),
        Cell::new(word, style),
        Cell::from(server.era().map_or_else(dash, str::to_owned)),
        Cell::from(server.tool_count().map_or_else(dash, |tools| tools.to_string())),
        Cell::from(remark(server, lang)),
    ]
}

/// The problem of a server, if it has one.
fn remark(server: &ServerView, lang: Lang) -> String {
    let failure = failure(server, lang).unwrap_or_default();
    let ServerState::CircuitOpen { left, failures, .. } = &server.state else { return failure };
    let seconds = left.as_secs() + 1;
    lang.choose(
        format!("failed {failures} times in a row, tried again in {seconds} s: {failure}"),
        format!("连续失败 {failures} 次，{seconds} 秒后重试：{failure}"),
    )
}

/// Consecutive failures, and until when the circuit breaker is open.
fn failures(server: &ServerView) -> (u32, Option<SystemTime>) {
    match (&server.state, &server.list) {
        (ServerState::CircuitOpen { left, failures, .. }, _) => (*failures, Some(SystemTime::now() + *left)),
        (_, Some(list)) => (list.failures, None),
        (_, None) => (0, None),
    }
}

fn failure(server: &ServerView, lang: Lang) -> Option<String> {
    server.failure().map(|failure| failure.localize(lang))
}

/// The number of restarts, if the server was started in this run.
fn restarts(server: &ServerView) -> Option<u32> {
    let connected = matches!(server.state, ServerState::Connected { .. });
    (connected || server.restarts > 0).then_some(server.restarts)
}

/// The last lines of its stderr: of this run, or of the last run with any output.
fn stderr(hub: &Hub, server: &ServerView) -> Vec<String> {
    if !server.stderr.is_empty() {
        return server.stderr.clone();
    }
    let log = std::fs::read(hub.places().log_of(server.spec.id.as_str()));
    log.map(|bytes| last_lines(&bytes)).unwrap_or_default()
}

fn listed_at(server: &ServerView) -> Option<SystemTime> {
    server.list.as_ref()?.listed_at
}

pub(crate) fn details(hub: &Hub, server: &ServerView, lang: Lang) -> Vec<String> {
    let mut facts: Vec<String> = server.peer().map(str::to_owned).into_iter().collect();
    if let ServerState::Connected { version, .. } = &server.state {
        facts.push(format!("MCP {version}"));
    }
    if let Some(at) = listed_at(server) {
        let ago = ago(at, lang);
        facts.push(lang.choose(format!("listed {ago} ago"), format!("{ago}前列出")));
    }
    if let Some(restarts) = restarts(server) {
        facts.push(lang.choose(format!("restarts: {restarts}"), format!("重启次数：{restarts}")));
    }
    let facts = Some(facts.join(lang.choose(", ", "，"))).filter(|facts| !facts.is_empty());
    let stderr_lines = stderr(hub, server);
    let title = (!stderr_lines.is_empty()).then(|| lang.choose("stderr:", "标准错误：").to_owned());
    facts.into_iter().chain(title).chain(stderr_lines.into_iter().map(|line| format!("  {line}"))).collect()
}

/// The approximate time since `at`.
pub(crate) fn ago(at: SystemTime, lang: Lang) -> String {
    let seconds = SystemTime::now().duration_since(at).unwrap_or_default().as_secs();
    match seconds {
        0..=119 => lang.choose(format!("{seconds} s"), format!("{seconds} 秒")),
        120..=7199 => lang.choose(format!("{} min", seconds / 60), format!("{} 分钟", seconds / 60)),
        7200..=172_799 => lang.choose(format!("{} h", seconds / 3600), format!("{} 小时", seconds / 3600)),
        _ => lang.choose(format!("{} days", seconds / 86400), format!("{} 天", seconds / 86400)),
    }
}

pub(crate) fn as_json(hub: &Hub, server: &ServerView, lang: Lang) -> RawObject {
    let millis = |at: SystemTime| at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
    let (failures, open_until) = failures(server);
    let open_until = RawJson::of(&open_until.map(millis));
    RawObject::default()
        .with("id", server.spec.id.as_str())
        .with("transport", server.spec.transport.name())
        .with("state", server.state_name())
        .with("era", RawJson::of(&server.era()))
        .with("tools", RawJson::of(&server.tool_count()))
        .with("error", RawJson::of(&failure(server, lang)))
        .with("failures", u64::from(failures))
        .with("circuit_open_until_ms", open_until.clone())
        // The name before it was renamed.
        .with("left_alone_until_ms", open_until)
        .with("peer", RawJson::of(&server.peer()))
        .with("origin", server.spec.origin.to_string_lossy().into_owned())
        .with("listed_at_ms", RawJson::of(&listed_at(server).map(millis)))
        .with("restarts", RawJson::of(&restarts(server)))
        .with("stderr", RawJson::of(&stderr(hub, server)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolhub_client_config::{StdioSpec, TransportSpec};
    use toolhub_core::ServerId;
    use toolhub_core::lang::LocalizedText;
    use toolhub_core::ports::CachedList;
    use toolhub_mcp_client::config::ServerSpec;
    use toolhub_mcp_wire::Era;

    use super::*;

    /// The state of this run takes precedence over that of earlier runs.
    #[test]
    fn renders_current_server_status() {
        let spec = ServerSpec::new(
            ServerId::new("s"),
            TransportSpec::Stdio(StdioSpec::default()),
            "mcp.json".into(),
        );
        let list = CachedList {
            fingerprint: String::new(),
            era: "legacy".to_owned(),
            peer: "peer 1".to_owned(),
            listed_at: Some(SystemTime::now()),
            ttl: None,
            tools: Vec::new(),
            skipped: Vec::new(),
            failure: None,
            failures: 0,
            late_at: None,
            late_after: None,
        };
        let old = LocalizedText::new("old", "旧");
        let failed = CachedList { failure: Some((SystemTime::now(), old)), ..list.clone() };
        let never = CachedList { listed_at: None, ..failed.clone() };
        let glanced = CachedList { late_at: Some(SystemTime::now()), failure: None, ..never.clone() };
        let slow = CachedList { late_after: Some(Duration::from_secs(8)), ..glanced.clone() };
        let new = || LocalizedText::new("new", "新");
        let connected =
            ServerState::Connected { era: Era::Modern, version: "v".to_owned(), peer: "p".to_owned() };
        let circuit_open =
            ServerState::CircuitOpen { cause: new(), left: Duration::from_secs(1), failures: 5 };
        let check =
            |state: ServerState, list: Option<&CachedList>, expect: (&str, Option<&str>, Option<&str>)| {
                let stderr = Vec::new();
                let view = ServerView { spec: spec.clone(), state, list: list.cloned(), restarts: 0, stderr };
                let failure = failure(&view, Lang::Zh);
                assert_eq!((view.state_name(), view.era(), failure.as_deref()), expect, "{view:?}");
            };
        check(ServerState::Idle, None, ("new", None, None));
        check(ServerState::Idle, Some(&list), ("ready", Some("legacy"), None));
        check(ServerState::Idle, Some(&failed), ("failed", Some("legacy"), Some("旧")));
        check(ServerState::Idle, Some(&never), ("failed", Some("legacy"), Some("旧")));
        check(ServerState::Idle, Some(&slow), ("slow", Some("legacy"), Some("调用等了它 8 s，它仍未就绪")));
        check(ServerState::Idle, Some(&glanced), ("new", Some("legacy"), None));
        check(ServerState::Failed(new()), Some(&list), ("failed", Some("legacy"), Some("新")));
        check(circuit_open, Some(&failed), ("circuit_open", Some("legacy"), Some("新")));
        check(connected, Some(&list), ("connected", Some("modern"), None));
    }
}
