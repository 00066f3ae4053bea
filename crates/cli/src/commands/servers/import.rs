//! `toolhub servers import`: imports servers of other MCP clients into `mcp.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toolhub::settings::{ConfigError, Paths, Settings, load_servers};
use toolhub_client_config as clients;
use toolhub_client_config::{
    Client, ClientEnvironment, ClientServer, ConfigLocation, EditError, FileScope, LockedFile, ReadResult,
    ServerAction, ServerOutcome, TOOLHUB_FORMAT, TargetFile, TransportSpec,
};
use toolhub_core::audit::ChangeKind;
use toolhub_core::lang::LocalizedText;
use toolhub_core::{Localize as _, RawJson, RawObject, ServerId};

use crate::app::App;
use crate::args::ImportArgs;
use crate::commands::servers::edit::audit_change;
use crate::commands::servers::extras::{self, ExtraSettings};
use crate::commands::servers::import_files;
use crate::commands::servers::transfer::{TransferReport, TransferRow, server_summary};
use crate::exit::Exit;

pub(crate) async fn run(app: &App, args: &ImportArgs) -> anyhow::Result<Exit> {
    let paths = app.paths()?;
    // An invalid configuration must not be written to.
    let (servers, _) = load_servers(&paths, &Settings::read(&paths)?)?;
    let environment = ClientEnvironment::current();
    let sources = import_files::find(app, args, &environment, &paths)?;
    let (own, settings) = (LockedFile::open(&paths.servers)?, LockedFile::open(&paths.config)?);
    let of_project = servers.iter().filter(|spec| spec.origin != paths.servers);
    let mut import = Import {
        app,
        args,
        dry_run: args.dry_run || (args.what.is_none() && !args.all),
        paths: &paths,
        environment,
        of_project: of_project.map(|spec| (spec.id.as_str().to_owned(), spec.origin.clone())).collect(),
        seen: BTreeMap::new(),
        text: own.text().to_owned(),
        settings: settings.text().to_owned(),
    };
    let mut reports = Vec::new();
    for (client, files) in &sources {
        reports.push(import.client(*client, files)?);
    }
    if !import.dry_run {
        own.write(&import.text)?;
        settings.write(&import.settings)?;
        app.keep_trust(&paths, &[&paths.servers, &paths.config]);
    }
    import.show_reports(&reports);
    // The files stay locked until they are complete.
    drop((own, settings));
    let written = reports.iter().flat_map(|report| &report.rows).filter(|row| row.is_written());
    for row in written.filter(|_| !import.dry_run) {
        audit_change(app, &row.outcome.id, ChangeKind::Updated, "imported").await;
    }
    Ok(reports.iter().map(TransferReport::exit).find(|exit| *exit != Exit::Done).unwrap_or(Exit::Done))
}

struct Import<'a> {
    app: &'a App,
    args: &'a ImportArgs,
    dry_run: bool,
    paths: &'a Paths,
    environment: ClientEnvironment,
    /// Servers in the project's own file.
    of_project: BTreeMap<String, PathBuf>,
    /// The file of each name imported in this run.
    seen: BTreeMap<String, PathBuf>,
    /// The new texts of `mcp.json` and `toolhub.toml`.
    text: String,
    settings: String,
}

impl Import<'_> {
    /// Imports the servers of one client.
    fn client(&mut self, client: Client, files: &[ConfigLocation]) -> anyhow::Result<TransferReport> {
        let file = files.first().map(|location| location.file.clone()).unwrap_or_default();
        let mut report =
            TransferReport { client, file, rows: Vec::new(), dry_run: self.dry_run, error: None };
        for location in files {
            let read = std::fs::read_to_string(&location.file)
                .map_err(|error| ConfigError::io(&location.file, &error))
                .and_then(|text| clients::read_servers(location, &text, &self.environment));
            match read {
                Ok(found) => {
                    for server in found {
                        let mut row = self.server(server, &location.file)?;
                        if matches!(location.scope, FileScope::Project(_)) && row.is_written() {
                            row.outcome.notes.push(project_server_note());
                        }
                        report.rows.push(row);
                    }
                }
                // An unreadable file is an error only if it was named; otherwise the other files are still imported.
                Err(error) if self.args.what.is_some() => return Err(error.into()),
                Err(error) => report.error = Some(error.localize(self.app.lang())),
            }
        }
        Ok(report)
    }

    /// Imports one server.
    fn server(&mut self, found: ReadResult, file: &Path) -> anyhow::Result<TransferRow> {
        let row =
            |outcome, summary| TransferRow { outcome, summary, file: file.to_owned(), settings: Vec::new() };
        let server = match found {
            Ok(server) => server,
            Err(unusable) => {
                let outcome = ServerOutcome::not_written(&unusable.id, ServerAction::Skipped, unusable.why);
                return Ok(row(outcome, String::new()));
            }
        };
        if let Some((action, why)) = self.objection(&server) {
            return Ok(row(ServerOutcome::not_written(&server.id, action, why), String::new()));
        }
        self.seen.insert(server.id.clone(), file.to_owned());
        let target = TargetFile {
            file: &self.paths.servers,
            text: &self.text,
            format: TOOLHUB_FORMAT,
            replace: self.args.replace,
        };
        let mut edited = match clients::merge_servers(&target, std::slice::from_ref(&server)) {
            Ok(edited) => edited,
            Err(EditError::Config(error) | EditError::Unsafe { why: error, .. }) => return Err(error.into()),
        };
        self.text = edited.text;
        let mut row = match edited.outcomes.pop() {
            Some(outcome) => row(outcome, server_summary(&server, self.app.lang())),
            None => row(
                ServerOutcome::not_written(&server.id, ServerAction::Skipped, LocalizedText::new("", "")),
                String::new(),
            ),
        };
        if row.is_written() {
            self.extras(&server, &mut row)?;
        }
        Ok(row)
    }

    /// Adds the settings of a server to `toolhub.toml`.
    fn extras(&mut self, server: &ClientServer, row: &mut TransferRow) -> anyhow::Result<()> {
        let mut extras: Vec<ExtraSettings> = ExtraSettings::of(server).into_iter().collect();
        self.settings = extras::written(&self.paths.config, &self.settings, &mut extras, self.args.replace)?;
        for extra in extras {
            row.settings = extra.settings;
            row.outcome.left_out.extend(extra.left_out);
        }
        Ok(())
    }

    /// Why a server is not imported, regardless of the contents of `mcp.json`.
    fn objection(&self, server: &ClientServer) -> Option<(ServerAction, LocalizedText)> {
        let id = server.id.as_str();
        if ServerId::RESERVED.contains(&id) || id.trim().is_empty() {
            let why = LocalizedText::new(
                "this cannot be a server's name here: rename it there, or add it by hand",
                "此名称在这里不能用作服务器名：请在原处改名，或手动添加",
            );
            return Some((ServerAction::Skipped, why));
        }
        if is_toolhub(&server.transport) {
            return Some((
                ServerAction::Skipped,
                LocalizedText::new("it is toolhub itself", "它就是 toolhub 自己"),
            ));
        }
        if let Some(first) = self.seen.get(id) {
            let first = first.display();
            let why = LocalizedText::new(
                format!("one of that name came from `{first}`"),
                format!("`{first}` 中已有同名服务器"),
            );
            return Some((ServerAction::Skipped, why));
        }
        let own = self.of_project.get(id).filter(|_| !self.args.replace)?.display();
        let why = LocalizedText::new(
            format!("it is defined in `{own}`, which is also read here"),
            format!("它在 `{own}` 中，这里也会读取"),
        );
        Some((ServerAction::Kept, why))
    }

    fn show_reports(&self, reports: &[TransferReport]) {
        let (screen, lang) = (&self.app.screen, self.app.lang());
        if screen.json {
            let all: Vec<RawObject> = reports.iter().map(|report| report.as_json(lang)).collect();
            match (all.as_slice(), &self.args.what) {
                ([one], Some(_)) => screen.json(&RawJson::of(one)),
                (all, _) => screen.json(&RawJson::of(&all)),
            }
            return;
        }
        reports.iter().for_each(|report| report.show(self.app));
        let written: usize = reports.iter().map(TransferReport::written).sum();
        let own = self.paths.servers.display();
        let settings = reports.iter().flat_map(|report| &report.rows).any(|row| !row.settings.is_empty());
        screen.note(&match (reports.is_empty(), self.args.what.is_none() && !self.args.all) {
            (true, _) => lang.choose(
                "no other client's servers were found".to_owned(),
                "没有找到其他客户端的服务器".to_owned(),
            ),
            (_, true) => lang.choose(
                "nothing was imported: name a client, as in `toolhub servers import cursor`, or add `--all`"
                    .to_owned(),
                "尚未导入：请指定客户端，例如 `toolhub servers import cursor`，或加 `--all`".to_owned(),
            ),
            _ if self.dry_run => lang.choose(
                format!("nothing was written; without `--dry-run`, {written} would go to `{own}`"),
                format!("未写入；去掉 `--dry-run` 会将 {written} 个写入 `{own}`"),
            ),
            _ if written == 0 => lang.choose("nothing was written".to_owned(), "未写入".to_owned()),
            _ => lang.choose(
                format!("{written} written to `{own}`; `toolhub servers test` connects to them"),
                format!("已将 {written} 个写入 `{own}`；`toolhub servers test` 可连接测试"),
            ),
        });
        if settings && !self.dry_run {
            let file = self.paths.config.display();
            screen.note(&lang.choose(
                format!("their timeouts, tools and logins are in `{file}`, under `[[servers]]`"),
                format!("其超时、工具和登录设置在 `{file}` 的 `[[servers]]` 中"),
            ));
        }
    }
}

/// A warning for servers of a project, which are not written by the user.
fn project_server_note() -> LocalizedText {
    LocalizedText::new(
        "it came with this folder's project, and is yours from now on: look at what it starts",
        "它来自此目录的项目，导入后即归你所有：请确认它会启动什么",
    )
}

/// Whether a server is toolhub itself, which would call itself recursively.
pub(crate) fn is_toolhub(transport: &TransportSpec) -> bool {
    let TransportSpec::Stdio(spec) = transport else { return false };
    Path::new(&spec.command).file_stem().is_some_and(|name| name == "toolhub")
        && spec.args.iter().any(|arg| arg == "serve")
}
