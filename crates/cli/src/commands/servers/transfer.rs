//! The output of `import` and `export`: names and kinds of servers, but no values.

use std::path::PathBuf;

use toolhub_client_config::{Client, ClientServer, ServerAction, ServerOutcome, TransportSpec};
use toolhub_core::{Lang, Localize as _, RawJson, RawObject};

use crate::app::App;
use crate::exit::Exit;
use crate::render::screen::{BAD, BOLD, DIM, GOOD, NAME};
use crate::render::table::{Cell, Overflow, row_lines};

/// The results for the servers of one client.
pub(crate) struct TransferReport {
    pub(crate) client: Client,
    /// The client's file.
    pub(crate) file: PathBuf,
    pub(crate) rows: Vec<TransferRow>,
    /// Whether nothing was written.
    pub(crate) dry_run: bool,
    /// Why a file of the client could not be read.
    pub(crate) error: Option<String>,
}

/// The result for one server.
pub(crate) struct TransferRow {
    pub(crate) outcome: ServerOutcome,
    /// A short description.
    pub(crate) summary: String,
    /// The client's file that contains or contained it.
    pub(crate) file: PathBuf,
    /// The settings written to `toolhub.toml`.
    pub(crate) settings: Vec<String>,
}

/// A short description of a server, without anything that may be a secret.
pub(crate) fn server_summary(server: &ClientServer, lang: Lang) -> String {
    let names = |pairs: &[(String, String)]| {
        let names: Vec<&str> = pairs.iter().map(|(name, _)| name.as_str()).collect();
        names.join(", ")
    };
    let (mut text, label, names) = match &server.transport {
        TransportSpec::Stdio(spec) => {
            let count = spec.args.len();
            let text = match count {
                0 => spec.command.clone(),
                1 => lang
                    .choose(format!("{}, 1 argument", spec.command), format!("{}，1 个参数", spec.command)),
                _ => lang.choose(
                    format!("{}, {count} arguments", spec.command),
                    format!("{}，{count} 个参数", spec.command),
                ),
            };
            (text, lang.choose("env", "环境变量"), names(&spec.env))
        }
        TransportSpec::Http(spec) | TransportSpec::Sse(spec) => {
            (host(&spec.url), lang.choose("headers", "请求头"), names(&spec.headers))
        }
    };
    if !names.is_empty() {
        text += &lang.choose(format!("; {label}: {names}"), format!("；{label}：{names}"));
    }
    if !server.enabled {
        text += lang.choose("; disabled", "；已停用");
    }
    text
}

/// A URL without parts that may be secrets: user info, path and query.
fn host(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "…".to_owned() };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}")
}

impl TransferReport {
    /// The exit code: `Failed` if there were servers and none of them could be used.
    pub(crate) fn exit(&self) -> Exit {
        let skipped = self.rows.iter().all(|row| row.outcome.action == ServerAction::Skipped);
        match &self.error {
            Some(_) => Exit::Usage,
            None if skipped && !self.rows.is_empty() => Exit::Failed,
            None => Exit::Done,
        }
    }

    /// How many servers were written.
    pub(crate) fn written(&self) -> usize {
        self.rows.iter().filter(|row| row.is_written()).count()
    }

    pub(crate) fn as_json(&self, lang: Lang) -> RawObject {
        let servers: Vec<RawObject> = self.rows.iter().map(|row| row.as_json(lang)).collect();
        let object = RawObject::default()
            .with("client", self.client.name())
            .with("file", self.file.to_string_lossy().into_owned())
            .with("dry_run", self.dry_run)
            .with("servers", RawJson::of(&servers));
        match &self.error {
            Some(error) => object.with("error", error.as_str()),
            None => object,
        }
    }

    pub(crate) fn show(&self, app: &App) {
        let lang = app.lang();
        app.screen.line(&format!(
            "{BOLD}{}{BOLD:#}  {DIM}{}{DIM:#}",
            self.client.title(),
            self.file.display()
        ));
        if let Some(error) = &self.error {
            app.screen.line(&format!("  {BAD}✗{BAD:#} {error}"));
        }
        let rows: Vec<Vec<Cell>> = self.rows.iter().map(|row| row.cells(lang, self.dry_run)).collect();
        let table = row_lines(&rows, "  ", app.screen.width(), Overflow::Cut);
        for (lines, row) in table.iter().zip(&self.rows) {
            lines.iter().for_each(|line| app.screen.line(line));
            let left_out = row.outcome.left_out.join(", ");
            if !left_out.is_empty() {
                let text =
                    lang.choose(format!("not carried over: {left_out}"), format!("未能带过来：{left_out}"));
                app.screen.line(&format!("      {text}"));
            }
            for note in &row.outcome.notes {
                app.screen.line(&format!("      {}", note.localize(lang)));
            }
        }
    }
}

impl TransferRow {
    /// Whether it was written to the file.
    pub(crate) fn is_written(&self) -> bool {
        matches!(self.outcome.action, ServerAction::Added | ServerAction::Replaced)
    }

    fn as_json(&self, lang: Lang) -> RawObject {
        let outcome = &self.outcome;
        let mut object = RawObject::default()
            .with("id", outcome.id.as_str())
            .with("action", outcome.action.name())
            .with("file", self.file.to_string_lossy().into_owned());
        if let Some(why) = &outcome.why {
            object.set("why", why.localize(lang));
        }
        object.set("left_out", RawJson::of(&outcome.left_out));
        if !self.settings.is_empty() {
            object.set("settings", RawJson::of(&self.settings));
        }
        if !outcome.notes.is_empty() {
            let notes: Vec<String> = outcome.notes.iter().map(|note| note.localize(lang)).collect();
            object.set("notes", RawJson::of(&notes));
        }
        object
    }

    fn cells(&self, lang: Lang, dry_run: bool) -> Vec<Cell> {
        let (mark, style) = match self.outcome.action {
            ServerAction::Added | ServerAction::Replaced => ("✓", GOOD),
            ServerAction::Kept => ("=", DIM),
            ServerAction::Skipped => ("✗", BAD),
        };
        let word = match (self.outcome.action, dry_run) {
            (ServerAction::Added, false) => lang.choose("added", "已添加"),
            (ServerAction::Added, true) => lang.choose("to add", "将添加"),
            (ServerAction::Replaced, false) => lang.choose("replaced", "已替换"),
            (ServerAction::Replaced, true) => lang.choose("to replace", "将替换"),
            (ServerAction::Kept, false) => lang.choose("kept", "已保留"),
            (ServerAction::Kept, true) => lang.choose("to keep", "将保留"),
            (ServerAction::Skipped, false) => lang.choose("skipped", "已跳过"),
            (ServerAction::Skipped, true) => lang.choose("to skip", "将跳过"),
        };
        let why = self.outcome.why.as_ref().map_or_else(|| self.summary.clone(), |why| why.localize(lang));
        vec![Cell::new(mark, style), Cell::new(self.outcome.id.as_str(), NAME), word.into(), why.into()]
    }
}

#[cfg(test)]
mod tests {
    use toolhub_client_config::{Extras, HttpSpec, StdioSpec};

    use super::*;

    fn server(transport: TransportSpec, enabled: bool) -> ClientServer {
        let (left_out, notes) = (Vec::new(), Vec::new());
        ClientServer { id: "a".to_owned(), transport, enabled, extras: Extras::default(), left_out, notes }
    }

    #[test]
    fn summary_omits_secret_values() {
        let pairs = vec![("API_KEY".to_owned(), "s3cret".to_owned())];
        let args = vec!["--token=s3cret".to_owned(), "s3cret".to_owned()];
        let spec = StdioSpec { command: "uvx".to_owned(), args, env: pairs.clone(), ..StdioSpec::default() };
        let stdio = server(TransportSpec::Stdio(spec), true);
        assert_eq!(server_summary(&stdio, Lang::En), "uvx, 2 arguments; env: API_KEY");
        assert_eq!(server_summary(&stdio, Lang::Zh), "uvx，2 个参数；环境变量：API_KEY");
        let url = "https://me:s3cret@mcp.example.com:8080/s3cret?key=s3cret".to_owned();
        let http = server(TransportSpec::Http(HttpSpec { url, headers: pairs }), false);
        assert_eq!(
            server_summary(&http, Lang::En),
            "https://mcp.example.com:8080; headers: API_KEY; disabled"
        );
    }
}
