//! Computes what `toolhub init` does with each client's file, from texts only: no file is read or written here.
//!
//! A server is removed from its client's file only if the user's own `mcp.json` contains the same server afterwards and the
//! client's file contains the hub; otherwise it is kept.

use toolhub::settings::Paths;
use toolhub_client_config as clients;
use toolhub_client_config::{
    Client, ClientEnvironment, ClientServer, ConfigError, ConfigLocation, EditError, ReadResult,
    TOOLHUB_FORMAT, TargetFile,
};
use toolhub_core::lang::LocalizedText;
use toolhub_core::{Lang, Localize as _, ServerId};

use crate::commands::servers::extras::{self, ExtraSettings};
use crate::commands::servers::import::is_toolhub;
use crate::commands::servers::transfer::server_summary;

/// The name of the hub in a client's file.
pub(crate) const HUB: &str = "toolhub";

/// The planned change of a client's server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PlannedChange {
    /// Added to `mcp.json` and removed from the client's file.
    Moved,
    /// Added to `mcp.json` and kept in the client's file.
    Copied(LocalizedText),
    /// Kept in the client's file only.
    Stays(LocalizedText),
}

impl PlannedChange {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Moved => "moved",
            Self::Copied(_) => "copied",
            Self::Stays(_) => "kept",
        }
    }

    pub(crate) fn why(&self) -> Option<&LocalizedText> {
        match self {
            Self::Moved => None,
            Self::Copied(why) | Self::Stays(why) => Some(why),
        }
    }
}

/// One server of a client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ServerPlan {
    pub(crate) id: String,
    pub(crate) placement: PlannedChange,
    /// Whether it is added to `mcp.json`.
    pub(crate) is_new: bool,
    pub(crate) summary: String,
    pub(crate) left_out: Vec<String>,
    pub(crate) notes: Vec<LocalizedText>,
}

/// Whether a client has the hub afterwards.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum HubConnection {
    /// The hub is added to its file.
    Added,
    /// The hub is in its file already.
    Present,
    /// The file is not changed.
    No(LocalizedText),
}

/// The planned changes of one client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClientPlan {
    pub(crate) client: Client,
    pub(crate) connection: HubConnection,
    pub(crate) servers: Vec<ServerPlan>,
    /// The new text of its file.
    pub(crate) text: String,
}

/// The state of planning, shared by all clients.
pub(crate) struct InitPlanner<'a> {
    pub(crate) paths: &'a Paths,
    pub(crate) environment: &'a ClientEnvironment,
    /// The entry of the hub.
    pub(crate) hub: &'a ClientServer,
    pub(crate) import: bool,
    pub(crate) connect: bool,
    pub(crate) lang: Lang,
    /// The new texts of `mcp.json` and `toolhub.toml`.
    pub(crate) servers: String,
    pub(crate) settings: String,
}

impl InitPlanner<'_> {
    /// Plans one client, and adds its servers to the texts.
    pub(crate) fn client(
        &mut self,
        location: &ConfigLocation,
        text: &str,
    ) -> Result<ClientPlan, ConfigError> {
        let format = location.client.format();
        let found = clients::read_servers(location, text, self.environment)?;
        let present = clients::raw_entries(format, &location.file, text)?;
        let target = |text| TargetFile { file: &location.file, text, format, replace: false };
        let (connection, with_hub) = match self.connect {
            true => self.connection(location, &found, &target(text))?,
            false => {
                let why = LocalizedText::new(
                    "its file is not changed (`--no-connect`)",
                    "不改动其文件（`--no-connect`）",
                );
                (HubConnection::No(why), text.to_owned())
            }
        };
        let mut servers = Vec::new();
        let found = if self.import { found } else { Vec::new() };
        for found in found {
            let id = match &found {
                Ok(server) if is_toolhub(&server.transport) => continue,
                Ok(server) => server.id.clone(),
                Err(unusable) => unusable.id.clone(),
            };
            // Entries in other parts of the file, such as for one project, are not planned.
            if present.contains_key(&id) && servers.iter().all(|known: &ServerPlan| known.id != id) {
                servers.push(self.server(found, id, &connection)?);
            }
        }
        let moved = |servers: &[ServerPlan]| -> Vec<String> {
            servers
                .iter()
                .filter(|server| server.placement == PlannedChange::Moved)
                .map(|server| server.id.clone())
                .collect()
        };
        let text = match clients::remove_servers(&target(&with_hub), &moved(&servers)) {
            Ok(text) => text,
            Err(EditError::Config(error)) => return Err(error),
            Err(EditError::Unsafe { why, .. }) => {
                for server in servers.iter_mut().filter(|server| server.placement == PlannedChange::Moved) {
                    server.placement = PlannedChange::Copied(why.message.clone());
                }
                with_hub
            }
        };
        Ok(ClientPlan { client: location.client, connection, servers, text })
    }

    /// How the hub is added to a client's file, and the resulting text.
    fn connection(
        &self,
        location: &ConfigLocation,
        found: &[ReadResult],
        target: &TargetFile<'_>,
    ) -> Result<(HubConnection, String), ConfigError> {
        let present = clients::raw_entries(target.format, target.file, target.text)?;
        let own = clients::entry_of(target.format, self.hub);
        let unchanged = |connection| Ok((connection, target.text.to_owned()));
        if present.get(HUB).is_some_and(|entry| Some(entry) == own.as_ref()) {
            let used = is_used(found);
            return unchanged(if used { HubConnection::Present } else { HubConnection::No(left_out()) });
        }
        if let Some(hub) = found.iter().flatten().find(|server| is_toolhub(&server.transport)) {
            let id = &hub.id;
            return unchanged(HubConnection::No(LocalizedText::new(
                format!("it starts toolhub already, in another way (`{id}`), and stays as it is"),
                format!("它已经以其他方式启动 toolhub（`{id}`），保持不变"),
            )));
        }
        if present.contains_key(HUB) {
            return unchanged(HubConnection::No(LocalizedText::new(
                format!("it has another server named `{HUB}`: rename that one first"),
                format!("其中已有另一个名为 `{HUB}` 的服务器：请先将其改名"),
            )));
        }
        match clients::merge_servers(target, std::slice::from_ref(self.hub)) {
            Ok(edited) => match edited.outcomes.first().and_then(|outcome| outcome.why.clone()) {
                Some(why) => unchanged(HubConnection::No(why)),
                None if is_used(&clients::read_servers(location, &edited.text, self.environment)?) => {
                    Ok((HubConnection::Added, edited.text))
                }
                None => unchanged(HubConnection::No(left_out())),
            },
            Err(EditError::Config(error)) => Err(error),
            Err(EditError::Unsafe { why, .. }) => {
                let (en, zh) = (why.message.localize(Lang::En), why.message.localize(Lang::Zh));
                let name = location.client.name();
                unchanged(HubConnection::No(LocalizedText::new(
                    format!("{en}: `toolhub servers export {name} --gateway` shows what to put into it"),
                    format!("{zh}：`toolhub servers export {name} --gateway` 会显示需要写入的内容"),
                )))
            }
        }
    }

    fn server(
        &mut self,
        found: ReadResult,
        id: String,
        connection: &HubConnection,
    ) -> Result<ServerPlan, ConfigError> {
        let stays = |why: LocalizedText, summary: String| ServerPlan {
            id: id.clone(),
            placement: PlannedChange::Stays(why),
            is_new: false,
            summary,
            left_out: Vec::new(),
            notes: Vec::new(),
        };
        let server = match found {
            Ok(server) => server,
            Err(unusable) => return Ok(stays(unusable.why, String::new())),
        };
        let summary = server_summary(&server, self.lang);
        if ServerId::RESERVED.contains(&id.as_str()) || id.trim().is_empty() {
            let why = LocalizedText::new(
                "this cannot be a server's name in toolhub",
                "此名称在 toolhub 中不能用作服务器名",
            );
            return Ok(stays(why, summary));
        }
        let own = clients::raw_entries(TOOLHUB_FORMAT, &self.paths.servers, &self.servers)?;
        let mut left_out = server.left_out.clone();
        let is_new = match own.get(&id) {
            Some(entry) if Some(entry) == clients::entry_of(TOOLHUB_FORMAT, &server).as_ref() => false,
            Some(_) => {
                let why = LocalizedText::new(
                    format!("toolhub has another server named `{id}`: rename one of them"),
                    format!("toolhub 中已有另一个名为 `{id}` 的服务器：请将其中一个改名"),
                );
                return Ok(stays(why, summary));
            }
            None => match self.add(&server)? {
                Ok(unwritten) => {
                    left_out.extend(unwritten);
                    true
                }
                Err(why) => return Ok(stays(why, summary)),
            },
        };
        let placement = match connection {
            HubConnection::No(why) => PlannedChange::Copied(why.clone()),
            _ if !server.notes.is_empty() || server.left_out.iter().any(|field| field.starts_with("${")) => {
                PlannedChange::Copied(LocalizedText::new(
                    "it needs something of you before toolhub can start it, so it stays in the client too",
                    "在 toolhub 能启动它之前需要你处理，因此在客户端中也保留",
                ))
            }
            _ => PlannedChange::Moved,
        };
        Ok(ServerPlan { id, placement, is_new, summary, left_out, notes: server.notes })
    }

    /// Adds a server to the texts. Returns the settings that were left out, or why it cannot be added.
    fn add(&mut self, server: &ClientServer) -> Result<Result<Vec<String>, LocalizedText>, ConfigError> {
        let target = TargetFile {
            file: &self.paths.servers,
            text: &self.servers,
            format: TOOLHUB_FORMAT,
            replace: false,
        };
        let edited = match clients::merge_servers(&target, std::slice::from_ref(server)) {
            Ok(edited) => edited,
            Err(EditError::Config(error) | EditError::Unsafe { why: error, .. }) => return Err(error),
        };
        if let Some(why) = edited.outcomes.first().and_then(|outcome| outcome.why.clone()) {
            return Ok(Err(why));
        }
        let mut extras: Vec<ExtraSettings> = ExtraSettings::of(server).into_iter().collect();
        self.settings = extras::written(&self.paths.config, &self.settings, &mut extras, false)?;
        self.servers = edited.text;
        Ok(Ok(extras.into_iter().flat_map(|extra| extra.left_out).collect()))
    }
}

/// Whether the client would use the hub: other parts of its file, such as a list of allowed servers, may exclude it.
fn is_used(found: &[ReadResult]) -> bool {
    found.iter().flatten().any(|server| server.id == HUB && server.enabled)
}

fn left_out() -> LocalizedText {
    LocalizedText::new(
        format!("its lists of allowed and excluded servers rule out `{HUB}`: change them first"),
        format!("其允许和排除服务器的列表不包括 `{HUB}`：请先修改"),
    )
}

/// Whether two plans make the same changes to every server of a client.
pub(crate) fn same_decisions(one: &ClientPlan, other: &ClientPlan) -> bool {
    one.connection == other.connection && one.servers == other.servers
}

/// The text of a new `toolhub.toml`. The file is created so that the entries of clients can name it.
pub(crate) const NEW_SETTINGS: &str = "# Settings of toolhub. Every key is optional.\n";
