//! Connecting to servers for `servers test`, `add`, `refresh`, `restart` and `doctor`, and how the results are shown.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use toolhub::{Hub, ServerState, ToolError};
use toolhub_core::millis::duration_millis;
use toolhub_core::ports::CachedList;
use toolhub_core::{Lang, Localize as _, RawJson, RawObject};

use crate::app::App;
use crate::exit::Exit;
use crate::render::plural::plural;
use crate::render::screen::{BAD, DIM, GOOD, NAME};

/// The exit code of all tests. A server that requires a login counts as reachable.
pub(crate) fn exit_of(tests: &[ServerTest]) -> Exit {
    let failures: Vec<&TrialFailure> = tests.iter().filter_map(|test| test.result.as_ref().err()).collect();
    let logins = failures.iter().all(|failure| failure.needs_login);
    match (failures.is_empty(), logins) {
        (true, _) => Exit::Done,
        (false, true) => Exit::Failed,
        (false, false) => Exit::Unreachable,
    }
}

/// The result of testing one server.
pub(crate) struct ServerTest {
    pub(crate) id: String,
    pub(crate) took: Duration,
    pub(crate) result: Result<TestedServer, TrialFailure>,
    /// The negotiated MCP version.
    pub(crate) version: Option<String>,
    /// The last lines of its stderr.
    pub(crate) stderr: Vec<String>,
}

/// A server that works.
pub(crate) struct TestedServer {
    /// The number of its tools.
    pub(crate) tools: usize,
    pub(crate) era: String,
    pub(crate) peer: String,
    /// The tools that were left out, each with the reason.
    pub(crate) skipped: Vec<String>,
}

/// Why a server does not work.
pub(crate) struct TrialFailure {
    pub(crate) text: String,
    /// The text without the next step.
    pub(crate) brief: String,
    pub(crate) kind: String,
    pub(crate) needs_login: bool,
}

impl TrialFailure {
    pub(crate) fn new(error: &ToolError, lang: Lang) -> Self {
        Self {
            text: error.localize(lang),
            brief: error.brief(lang),
            kind: error.kind().to_owned(),
            needs_login: matches!(error, ToolError::LoginNeeded { .. }),
        }
    }
}

impl TestedServer {
    pub(crate) fn new(list: &CachedList, lang: Lang) -> Self {
        Self {
            tools: list.tools.len(),
            era: list.era.clone(),
            peer: list.peer.clone(),
            skipped: list.skipped.iter().map(|skipped| skipped.localize(lang)).collect(),
        }
    }
}

impl ServerTest {
    pub(crate) fn as_json(&self) -> RawObject {
        let tested = self.result.as_ref().ok();
        let failure = self.result.as_ref().err();
        RawObject::default()
            .with("id", self.id.as_str())
            .with("success", self.result.is_ok())
            .with("era", RawJson::of(&tested.map(|tested| &tested.era)))
            .with("peer", RawJson::of(&tested.map(|tested| &tested.peer)))
            .with("tools", RawJson::of(&tested.map(|tested| tested.tools)))
            .with("version", RawJson::of(&self.version))
            .with("skipped", RawJson::of(&tested.map(|tested| &tested.skipped)))
            .with("duration_ms", duration_millis(self.took))
            .with("error", RawJson::of(&failure.map(|failure| &failure.text)))
            .with("error_kind", RawJson::of(&failure.map(|failure| &failure.kind)))
            .with("stderr", RawJson::of(&self.stderr))
    }

    /// Prints the result of one server, alone.
    pub(crate) fn report(&self, app: &App) {
        match app.screen.json {
            true => app.screen.json(&self.as_json().into_raw()),
            false => self.show(app),
        }
    }

    pub(crate) fn show(&self, app: &App) {
        let (lang, id, millis) = (app.lang(), &self.id, self.took.as_millis());
        match &self.result {
            Ok(TestedServer { tools, era, peer, skipped }) => {
                let text = lang.choose(
                    format!("{} ({peer}, {era}, {millis} ms)", plural(*tools, "tool")),
                    format!("{tools} 个工具（{peer}，{era}，{millis} 毫秒）"),
                );
                app.screen.line(&format!("{GOOD}✓{GOOD:#} {NAME}{id}{NAME:#}  {text}"));
                for skipped in skipped {
                    app.screen.warn(
                        &lang.choose(format!("`{id}` skipped {skipped}"), format!("`{id}` 跳过 {skipped}")),
                    );
                }
            }
            Err(failure) => {
                app.screen.line(&format!("{BAD}✗{BAD:#} {NAME}{id}{NAME:#}  {}", failure.brief));
            }
        }
        // The stderr of a working server is shown only with `-v`.
        if self.result.is_err() || app.global.verbose > 0 {
            for line in &self.stderr {
                app.screen.line(&format!("    {DIM}{line}{DIM:#}"));
            }
        }
    }
}

/// Connects to these servers concurrently, and prints each result when it is available.
pub(crate) async fn test_all(app: &App, hub: &Hub, ids: Vec<String>) -> Vec<ServerTest> {
    let one = |id: String| async move {
        let started = Instant::now();
        let result = hub.list_server(&id).await?;
        let took = started.elapsed();
        let view = hub.servers().into_iter().find(|view| view.spec.id.as_str() == id)?;
        let version = match view.state {
            ServerState::Connected { version, .. } => Some(version),
            _ => None,
        };
        let stderr = match &result {
            Err(error) if view.stderr.is_empty() => error.stderr_tail().to_vec(),
            _ => view.stderr,
        };
        let lang = app.lang();
        let result = match &result {
            Ok(list) => Ok(TestedServer::new(list, lang)),
            Err(error) => Err(TrialFailure::new(error, lang)),
        };
        Some(ServerTest { id, took, result, version, stderr })
    };
    let mut under_way: FuturesUnordered<_> = ids.into_iter().map(one).collect();
    let mut tests = Vec::new();
    while let Some(test) = under_way.next().await {
        let Some(test) = test else { continue };
        if !app.screen.json {
            test.show(app);
        }
        tests.push(test);
    }
    tests
}
