//! `toolhub init`: finds the MCP clients of this machine, imports their servers, adds the hub to the clients, tries one call, and
//! stores a record with which `--undo` reverts all of it.

pub(crate) mod files;
pub(crate) mod plan;
pub(crate) mod record;
pub(crate) mod report;
pub(crate) mod trial;
pub(crate) mod undo;
pub(crate) mod undone_file;

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use toolhub::settings::{Paths, Settings, load_servers};
use toolhub_client_config::{Client, ClientEnvironment, ClientServer, ConfigError, LockedFile};
use toolhub_core::Localize as _;
use toolhub_core::lang::LocalizedText;

use crate::app::App;
use crate::args::init::InitArgs;
use crate::commands::init::files::{
    InstalledClient, checked_path, client_environment, installed_clients, text_of, user_locations,
};
use crate::commands::init::plan::{ClientPlan, InitPlanner, NEW_SETTINGS, same_decisions};
use crate::commands::init::record::{FileChange, FileRole, InitRecord, InitRun};
use crate::commands::init::report::InitPlan;
use crate::commands::servers::export::hub_entry;
use crate::exit::{Exit, UsageError};
use crate::terminal::input::read_line;

pub(crate) async fn run(app: &App, args: &InitArgs) -> anyhow::Result<Exit> {
    let paths = app.paths()?.of_user(app.global.config.as_deref()).map_err(toolhub::BuildError::from)?;
    if args.undo {
        return undo::run(app, &paths, args.dry_run);
    }
    // An invalid configuration must not be written to.
    load_servers(&paths, &Settings::read(&paths)?)?;
    let environment = client_environment();
    let found = installed_clients(&environment);
    let chosen = match choose(app, args, &environment, &found).await? {
        Choice::Clients(chosen) => chosen,
        Choice::NoClients => return Ok(report::no_clients(app, &environment)),
        Choice::Declined => return Ok(declined(app)),
    };
    // The file is created if a client's entry names it.
    let config = (!args.no_connect || paths.config.is_file()).then_some(paths.config.as_path());
    let setup =
        Setup { app, args, paths: &paths, environment: &environment, hub: hub_entry(app, config, None)? };
    let texts = |file: &Path| text_of(file).map(Option::unwrap_or_default);
    let preview = setup.plan(&chosen, texts(&paths.servers)?, texts(&paths.config)?, texts);
    if args.dry_run {
        return Ok(report::dry_run(app, &paths, &preview));
    }
    if !args.yes {
        report::show(app, &preview, true);
        if preview.changes_something()
            && !app.confirm(app.lang().choose("Go ahead? [y/N] ", "继续吗？[y/N] ")).await?
        {
            return Ok(declined(app));
        }
    }
    let done = setup.apply(&chosen, &preview)?;
    let trial = trial::run(app, &setup.hub, &paths).await?;
    Ok(report::done(app, &paths, &done, args.yes, &trial))
}

fn declined(app: &App) -> Exit {
    app.screen.note(app.lang().choose("nothing was changed", "未做任何改动"));
    Exit::Failed
}

/// The clients to set up.
enum Choice {
    Clients(Vec<InstalledClient>),
    /// No client is installed.
    NoClients,
    /// The user selected none.
    Declined,
}

async fn choose(
    app: &App,
    args: &InitArgs,
    environment: &ClientEnvironment,
    found: &[InstalledClient],
) -> anyhow::Result<Choice> {
    let lang = app.lang();
    if !args.client.is_empty() {
        let chosen = named(app, args, environment, found)?;
        return must_agree(app, args).map(|()| Choice::Clients(chosen)).map_err(Into::into);
    }
    if found.is_empty() {
        return Ok(Choice::NoClients);
    }
    if args.all || args.dry_run {
        return must_agree(app, args).map(|()| Choice::Clients(found.to_vec())).map_err(Into::into);
    }
    if !has_terminal(app) {
        let names: Vec<&str> = found.iter().map(|found| found.client.name()).collect();
        let names = names.join(", ");
        return Err(UsageError(lang.choose(
            format!("there is no terminal for a prompt: choose with `--all` or `--client NAME` (found: {names}) and confirm with `--yes`; `--dry-run` shows what would change"),
            format!("没有可用于提示的终端：请用 `--all` 或 `--client 名称`（找到：{names}）选择，并用 `--yes` 同意；`--dry-run` 显示会改动什么"),
        ))
        .into());
    }
    report::list(app, found);
    loop {
        app.screen.prompt(lang.choose(
            "Which of them should use toolhub? [numbers such as 1,2; Enter for all; 0 for none] ",
            "哪些客户端要使用 toolhub？[编号，例如 1,2；回车表示全部；0 表示都不用] ",
        ));
        let Some(line) = app.interruptible(read_line()).await? else { return Ok(Choice::Declined) };
        let line = line.trim();
        match picked(line, found) {
            Some(chosen) if chosen.is_empty() => return Ok(Choice::Declined),
            Some(chosen) => return Ok(Choice::Clients(chosen)),
            None => app.screen.note(&lang.choose(
                format!("`{line}` is not in the list: write the numbers or names of clients"),
                format!("`{line}` 不在列表中：请写客户端的编号或名称"),
            )),
        }
    }
}

/// The clients named on the command line.
fn named(
    app: &App,
    args: &InitArgs,
    environment: &ClientEnvironment,
    found: &[InstalledClient],
) -> Result<Vec<InstalledClient>, UsageError> {
    let mut chosen: Vec<InstalledClient> = Vec::new();
    for name in &args.client {
        let client = Client::named(name).ok_or_else(|| UsageError(name.clone()))?;
        let Some(known) = found.iter().find(|found| found.client == client) else {
            let searched: Vec<String> = user_locations(client, environment)
                .iter()
                .map(|location| format!("`{}`", location.file.display()))
                .collect();
            let (title, searched) = (client.title(), searched.join(", "));
            return Err(UsageError(app.lang().choose(
                format!("{title} is not on this machine: looked for {searched}; `toolhub servers export {name} --gateway` writes that file even so"),
                format!("此计算机上没有 {title}：已查找 {searched}；仍要写入可用 `toolhub servers export {name} --gateway`"),
            )));
        };
        if chosen.iter().all(|chosen| chosen.client != client) {
            chosen.push(known.clone());
        }
    }
    Ok(chosen)
}

fn has_terminal(app: &App) -> bool {
    !app.screen.json && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Requires consent for changing files: at a terminal, or by `--yes`.
fn must_agree(app: &App, args: &InitArgs) -> Result<(), UsageError> {
    if args.yes || args.dry_run || has_terminal(app) {
        return Ok(());
    }
    Err(UsageError(
        app.lang()
            .choose(
                "there is no terminal for a prompt: add `--yes` to change the files, or `--dry-run` to see what would change",
                "没有可用于提示的终端：加 `--yes` 表示同意改动文件，或用 `--dry-run` 查看会改动什么",
            )
            .to_owned(),
    ))
}

/// Parses the user's selection of clients; `None` if it is invalid.
fn picked(line: &str, found: &[InstalledClient]) -> Option<Vec<InstalledClient>> {
    let entered: Vec<&str> =
        line.split([',', ' ', '，', '、', '\n', '\r', '\t']).filter(|word| !word.is_empty()).collect();
    match entered.as_slice() {
        [] => return Some(found.to_vec()),
        ["0" | "none" | "n" | "no"] => return Some(Vec::new()),
        ["all" | "a" | "全部"] => return Some(found.to_vec()),
        _ => {}
    }
    let mut chosen: Vec<InstalledClient> = Vec::new();
    for word in entered {
        let by_number = word.parse::<usize>().ok().and_then(|number| found.get(number.checked_sub(1)?));
        let one = by_number.or_else(|| found.iter().find(|found| found.client.name() == word))?;
        if chosen.iter().all(|known| known.client != one.client) {
            chosen.push(one.clone());
        }
    }
    Some(chosen)
}

/// The context of a run.
struct Setup<'a> {
    app: &'a App,
    args: &'a InitArgs,
    paths: &'a Paths,
    environment: &'a ClientEnvironment,
    /// The entry of the hub.
    hub: ClientServer,
}

impl Setup<'_> {
    /// Plans all clients. An unusable file affects only its client.
    fn plan(
        &self,
        chosen: &[InstalledClient],
        servers: String,
        mut settings: String,
        text_of: impl Fn(&Path) -> Result<String, ConfigError>,
    ) -> InitPlan {
        if settings.is_empty() && !self.args.no_connect {
            settings = NEW_SETTINGS.to_owned();
        }
        let mut planner = InitPlanner {
            paths: self.paths,
            environment: self.environment,
            hub: &self.hub,
            import: !self.args.no_import,
            connect: !self.args.no_connect,
            lang: self.app.lang(),
            servers,
            settings,
        };
        let mut clients = Vec::new();
        for found in chosen {
            let before = (planner.servers.clone(), planner.settings.clone());
            let plan = checked_path(&found.location.file, self.environment.home.as_deref())
                .and_then(|_| text_of(&found.location.file))
                .and_then(|text| planner.client(&found.location, &text));
            if plan.is_err() {
                (planner.servers, planner.settings) = before;
            }
            let plan = plan.map_err(|error| error.localize(self.app.lang()));
            clients.push((found.clone(), plan));
        }
        InitPlan { clients, servers: planner.servers, settings: planner.settings }
    }

    /// Applies the plan. The record is written first, then the user's own files, then those of the clients: at any time each
    /// server is in at least one of them.
    fn apply(&self, chosen: &[InstalledClient], preview: &InitPlan) -> anyhow::Result<InitPlan> {
        let (servers, settings) =
            (LockedFile::open(&self.paths.servers)?, LockedFile::open(&self.paths.config)?);
        let mut locked: Vec<(PathBuf, Result<LockedFile, ConfigError>)> = Vec::new();
        for found in chosen {
            locked.push((found.location.file.clone(), LockedFile::open(&found.location.file)));
        }
        let text_of = |file: &Path| match locked.iter().find(|(locked, _)| locked == file) {
            Some((_, Ok(locked))) => Ok(locked.text().to_owned()),
            Some((_, Err(error))) => Err(error.clone()),
            None => text_of(file).map(Option::unwrap_or_default),
        };
        let mut planned = self.plan(chosen, servers.text().to_owned(), settings.text().to_owned(), text_of);
        self.refuse_other_decisions(preview, &mut planned)?;
        let mut changes = Vec::new();
        let own = [
            (FileRole::Servers, &self.paths.servers, servers.text(), &planned.servers),
            (FileRole::Settings, &self.paths.config, settings.text(), &planned.settings),
        ];
        for (role, file, before, after) in own {
            self.note_change(&mut changes, role, None, file, before, after)?;
        }
        for (found, plan) in &planned.clients {
            let (Ok(plan), Some((_, Ok(locked)))) =
                (plan, locked.iter().find(|(file, _)| *file == found.location.file))
            else {
                continue;
            };
            let file = &found.location.file;
            self.note_change(
                &mut changes,
                FileRole::Client,
                Some(found.client),
                file,
                locked.text(),
                &plan.text,
            )?;
        }
        if changes.is_empty() {
            return Ok(planned);
        }
        let mut record = InitRecord::read(&self.paths.data_dir)?;
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        record.runs.push(InitRun { at, files: changes });
        record.write(&self.paths.data_dir)?;
        servers.write(&planned.servers)?;
        if settings.text() != planned.settings {
            settings.write(&planned.settings)?;
        }
        for (found, plan) in &mut planned.clients {
            let Some((_, Ok(locked))) = locked.iter().find(|(file, _)| *file == found.location.file) else {
                continue;
            };
            let written = plan.as_ref().map(|plan| locked.write(&plan.text));
            if let Ok(Err(error)) = written {
                *plan = Err(error.localize(self.app.lang()));
            }
        }
        Ok(planned)
    }

    /// Only the displayed plan is applied: a client whose servers changed in between is skipped.
    fn refuse_other_decisions(&self, preview: &InitPlan, planned: &mut InitPlan) -> Result<(), UsageError> {
        let changed = |(one, other): (&Result<ClientPlan, String>, &Result<ClientPlan, String>)| {
            matches!((one, other), (Ok(one), Ok(other)) if !same_decisions(one, other))
                || (one.is_err() && other.is_ok())
        };
        let pairs = preview.clients.iter().zip(&planned.clients);
        let Some((_, (found, _))) = pairs.into_iter().find(|((_, one), (_, other))| changed((one, other)))
        else {
            return Ok(());
        };
        let file = found.location.file.display();
        Err(UsageError(self.app.lang().choose(
            format!("`{file}` changed meanwhile, so nothing was changed: run `toolhub init` again"),
            format!("`{file}` 在此期间有改动，因此未做任何改动：请再次运行 `toolhub init`"),
        )))
    }

    fn note_change(
        &self,
        changes: &mut Vec<FileChange>,
        role: FileRole,
        client: Option<Client>,
        file: &Path,
        before: &str,
        after: &str,
    ) -> Result<(), ConfigError> {
        if before == after {
            return Ok(());
        }
        let real = match role {
            FileRole::Client => checked_path(file, self.environment.home.as_deref())?,
            _ => {
                file.canonicalize().or_else(|_| std::path::absolute(file)).unwrap_or_else(|_| file.to_owned())
            }
        };
        changes.push(FileChange {
            role,
            client: client.map(|client| client.name().to_owned()),
            file: std::path::absolute(file).unwrap_or_else(|_| file.to_owned()),
            real,
            before: file.exists().then(|| before.to_owned()),
            after: after.to_owned(),
        });
        Ok(())
    }
}

/// The hint for `--undo`.
pub(crate) fn undo_hint() -> LocalizedText {
    LocalizedText::new(
        "`toolhub init --undo` takes all of this back",
        "`toolhub init --undo` 可撤销以上全部改动",
    )
}

#[cfg(test)]
mod tests {
    use toolhub_client_config::{ConfigLocation, FileScope};

    use super::*;

    #[test]
    fn selects_clients_by_number_or_name() {
        let found: Vec<InstalledClient> = ["cursor", "codex"]
            .into_iter()
            .filter_map(Client::named)
            .map(|client| InstalledClient {
                client,
                location: ConfigLocation { client, file: PathBuf::from("x"), scope: FileScope::User },
            })
            .collect();
        let check = |line: &str, expect: Option<&[&str]>| {
            let picked = picked(line, &found)
                .map(|picked| picked.iter().map(|found| found.client.name()).collect::<Vec<_>>());
            assert_eq!(picked.as_deref(), expect, "{line:?}");
        };
        check("\n", Some(&["cursor", "codex"]));
        check("2\n", Some(&["codex"]));
        check("2, 1,2", Some(&["codex", "cursor"]));
        check("cursor", Some(&["cursor"]));
        check("0", Some(&[]));
        check("全部", Some(&["cursor", "codex"]));
        check("3", None);
        check("1 x", None);
    }
}
