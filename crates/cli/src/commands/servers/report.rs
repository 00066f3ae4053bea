//! The state of a server as commands show it: of this run, of earlier runs, or of a running hub.

use std::time::SystemTime;

use toolhub::{Hub, ServerView};
use toolhub_core::millis::unix_millis;
use toolhub_core::{Lang, Localize as _, RawJson, RawObject};
use toolhub_mcp_client::last_lines;

use crate::app::App;
use crate::render::sanitize::Style;
use crate::render::screen::{BAD, BOLD, DIM, GOOD, NAME, ODD};
use crate::render::table::{Cell, Overflow, row_lines};

/// The state of a server.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerReport {
    pub(crate) id: String,
    pub(crate) transport: String,
    /// As [`ServerView::state_name`].
    pub(crate) state: String,
    pub(crate) era: Option<String>,
    /// The number of its tools.
    pub(crate) tools: Option<usize>,
    pub(crate) error: Option<String>,
    /// Consecutive failures.
    pub(crate) failures: u32,
    /// Until when its circuit breaker is open.
    pub(crate) open_until: Option<SystemTime>,
    pub(crate) peer: Option<String>,
    /// The negotiated version of MCP.
    pub(crate) version: Option<String>,
    /// The file that configures it.
    pub(crate) origin: String,
    pub(crate) listed_at: Option<SystemTime>,
    /// The number of restarts, if it was started in this run.
    pub(crate) restarts: Option<u32>,
    /// The last lines of its stderr.
    pub(crate) stderr: Vec<String>,
}

impl ServerReport {
    /// The state of a server of this process.
    pub(crate) fn new(hub: &Hub, server: &ServerView, lang: Lang) -> Self {
        let (failures, open_until) = server.failures();
        let version = server.protocol_version().map(str::to_owned);
        Self {
            id: server.spec.id.to_string(),
            transport: server.spec.transport.name().to_owned(),
            state: server.state_name().to_owned(),
            era: server.era().map(str::to_owned),
            tools: server.tool_count(),
            error: server.failure().map(|failure| failure.localize(lang)),
            failures,
            open_until,
            peer: server.peer().map(str::to_owned),
            origin: server.spec.origin.to_string_lossy().into_owned(),
            listed_at: server.list.as_ref().and_then(|list| list.listed_at),
            restarts: known_restarts(version.is_some(), server.restarts),
            version,
            stderr: stderr(hub, server),
        }
    }

    /// The state, with its problem.
    pub(crate) fn state_line(&self, lang: Lang) -> String {
        let (word, style) = self.state_word(lang);
        let remark = self.remark(lang);
        match remark.is_empty() {
            true => format!("{style}{word}{style:#}"),
            false => format!("{style}{word}{style:#}  {remark}"),
        }
    }

    fn state_word(&self, lang: Lang) -> (&'static str, Style) {
        match self.state.as_str() {
            "connected" => (lang.choose("connected", "已连接"), GOOD),
            "ready" => (lang.choose("ready", "就绪"), GOOD),
            "failed" => (lang.choose("failed", "失败"), BAD),
            "circuit_open" => (lang.choose("circuit open", "已熔断"), BAD),
            "slow" => (lang.choose("slow", "响应慢"), ODD),
            "disabled" => (lang.choose("disabled", "停用"), DIM),
            _ => (lang.choose("new", "未连接过"), ODD),
        }
    }

    pub(crate) fn row(&self, lang: Lang) -> Vec<Cell> {
        let (word, style) = self.state_word(lang);
        let dash = || "-".to_owned();
        vec![
            Cell::new(self.id.as_str(), NAME),
            Cell::from(self.transport.as_str()),
            Cell::new(word, style),
            Cell::from(self.era.clone().unwrap_or_else(dash)),
            Cell::from(self.tools.map_or_else(dash, |tools| tools.to_string())),
            Cell::from(self.remark(lang)),
        ]
    }

    /// The problem, if there is one.
    fn remark(&self, lang: Lang) -> String {
        let failure = self.error.clone().unwrap_or_default();
        let Some(open_until) = self.open_until else { return failure };
        let seconds = open_until.duration_since(SystemTime::now()).unwrap_or_default().as_secs() + 1;
        let failures = self.failures;
        lang.choose(
            format!("failed {failures} times in a row, tried again in {seconds} s: {failure}"),
            format!("连续失败 {failures} 次，{seconds} 秒后重试：{failure}"),
        )
    }

    pub(crate) fn details(&self, lang: Lang) -> Vec<String> {
        let mut facts: Vec<String> = self.peer.clone().into_iter().collect();
        facts.extend(self.version.as_ref().map(|version| format!("MCP {version}")));
        if let Some(at) = self.listed_at {
            let ago = ago(at, lang);
            facts.push(lang.choose(format!("listed {ago} ago"), format!("{ago}前列出")));
        }
        if let Some(restarts) = self.restarts {
            facts.push(lang.choose(format!("restarts: {restarts}"), format!("重启次数：{restarts}")));
        }
        let facts = Some(facts.join(lang.choose(", ", "，"))).filter(|facts| !facts.is_empty());
        let title = (!self.stderr.is_empty()).then(|| lang.choose("stderr:", "标准错误：").to_owned());
        let lines = self.stderr.iter().map(|line| format!("  {line}"));
        facts.into_iter().chain(title).chain(lines).collect()
    }

    pub(crate) fn as_json(&self) -> RawObject {
        let open_until = RawJson::of(&self.open_until.map(unix_millis));
        RawObject::default()
            .with("id", self.id.as_str())
            .with("transport", self.transport.as_str())
            .with("state", self.state.as_str())
            .with("era", RawJson::of(&self.era))
            .with("tools", RawJson::of(&self.tools))
            .with("error", RawJson::of(&self.error))
            .with("failures", u64::from(self.failures))
            .with("circuit_open_until_ms", open_until.clone())
            // The name before it was renamed.
            .with("left_alone_until_ms", open_until)
            .with("peer", RawJson::of(&self.peer))
            .with("origin", self.origin.as_str())
            .with("listed_at_ms", RawJson::of(&self.listed_at.map(unix_millis)))
            .with("restarts", RawJson::of(&self.restarts))
            .with("stderr", RawJson::of(&self.stderr))
    }
}

/// Prints the states of servers.
pub(crate) fn print(app: &App, servers: &[ServerReport]) {
    let lang = app.lang();
    if app.screen.json {
        let all: Vec<RawObject> = servers.iter().map(ServerReport::as_json).collect();
        app.screen.json(&RawJson::of(&all));
        return;
    }
    let head = lang.choose(
        ["ID", "TRANSPORT", "STATE", "ERA", "TOOLS", ""],
        ["名称", "传输", "状态", "协议", "工具", ""],
    );
    let mut rows = vec![head.iter().map(|text| Cell::new(*text, BOLD)).collect()];
    rows.extend(servers.iter().map(|server| server.row(lang)));
    let mut table = row_lines(&rows, "", app.screen.width(), Overflow::Fold).into_iter();
    table.by_ref().take(1).flatten().for_each(|head| app.screen.line(&head));
    for (lines, server) in table.zip(servers) {
        lines.iter().for_each(|line| app.screen.line(line));
        if app.global.verbose > 0 {
            for detail in server.details(lang) {
                app.screen.line(&format!("    {DIM}{detail}{DIM:#}"));
            }
        }
    }
}

/// The number of restarts, if the server was started in this run.
pub(crate) fn known_restarts(is_connected: bool, restarts: u32) -> Option<u32> {
    (is_connected || restarts > 0).then_some(restarts)
}

/// The last lines of its stderr: of this run, or of the last run with any output.
fn stderr(hub: &Hub, server: &ServerView) -> Vec<String> {
    if !server.stderr.is_empty() {
        return server.stderr.clone();
    }
    let log = std::fs::read(hub.paths().log_of(server.spec.id.as_str()));
    log.map(|bytes| last_lines(&bytes)).unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolhub_client_config::{StdioSpec, TransportSpec};
    use toolhub_core::ServerId;
    use toolhub_core::lang::LocalizedText;
    use toolhub_core::ports::CachedList;
    use toolhub_mcp_client::config::ServerSpec;
    use toolhub_mcp_wire::Era;

    use toolhub::ServerState;

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
            era: "legacy".to_owned(),
            peer: "peer 1".to_owned(),
            listed_at: Some(SystemTime::now()),
            ..CachedList::default()
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
            ServerState::CircuitOpen { cause: new(), retry_in: Duration::from_secs(1), failures: 5 };
        let check =
            |state: ServerState, list: Option<&CachedList>, expect: (&str, Option<&str>, Option<&str>)| {
                let stderr = Vec::new();
                let view = ServerView { spec: spec.clone(), state, list: list.cloned(), restarts: 0, stderr };
                let failure = view.failure().map(|failure| failure.localize(Lang::Zh));
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
