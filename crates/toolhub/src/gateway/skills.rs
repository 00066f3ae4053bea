//! Skills as served to clients of the gateway: the hub's own and those of its servers in one list, each file with its digest and
//! size.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use toolhub_core::{Lang, Localize as _, RawJson, RawObject};
use toolhub_mcp_client::Server;
use toolhub_mcp_client::skills::SkillEntry;
use toolhub_mcp_gateway::RpcError;
use toolhub_skills::skill_file;

use super::backend::HubBackend;
use super::item_use::{ResultSource, SourcedResult};
use super::profile_access::ProfileAccess;
use super::resource_uri::{canonicalize_uri, has_one_reading, is_within};
use crate::skills::{ServedSkill, encode_path, is_manifest};

/// Page size of `skills/list`.
const PAGE_SIZE: usize = 100;
/// MIME type of a folder.
const FOLDER_MIME: &str = "inode/directory";

/// A skill as shown to clients.
struct ListedSkill {
    /// The URI of its `SKILL.md` at this gateway.
    uri: String,
    entry: RawJson,
    source: SkillSource,
}

enum SkillSource {
    Hub(Arc<ServedSkill>),
    Server(Arc<Server>, Arc<SkillEntry>),
}

impl ListedSkill {
    fn root(&self) -> &str {
        self.uri.strip_suffix("/SKILL.md").unwrap_or(&self.uri)
    }

    /// A result from this skill.
    fn answer(&self, result: RawJson) -> SourcedResult {
        let (server, name) = match &self.source {
            SkillSource::Hub(skill) => (None, skill.name.clone()),
            SkillSource::Server(server, entry) => (Some(server.id().clone()), entry.name.clone()),
        };
        SourcedResult { result, source: ResultSource::Skill { server, name } }
    }

    /// The URIs of its files at this gateway, with sizes in bytes.
    fn files(&self) -> Vec<(String, u64)> {
        match &self.source {
            SkillSource::Hub(skill) => skill.files.iter().map(|file| (file.uri.clone(), file.size)).collect(),
            SkillSource::Server(_, entry) => {
                let exposed_uri = |uri: &str| {
                    format!("{}{}", self.root(), uri.strip_prefix(entry.root()).unwrap_or_default())
                };
                entry.files.iter().flatten().map(|file| (exposed_uri(&file.uri), file.size)).collect()
            }
        }
    }
}

impl HubBackend {
    /// The skills of this profile, the hub's own first. If two have the same URI, the later one is shown below its server's name,
    /// so that it does not replace the earlier one.
    async fn shown_skills(&self, access: &ProfileAccess) -> Vec<ListedSkill> {
        let mut listed: Vec<ListedSkill> = self
            .own_skills(access)
            .await
            .into_iter()
            .map(|skill| ListedSkill {
                uri: skill.uri.clone(),
                entry: skill.entry.clone(),
                source: SkillSource::Hub(Arc::new(skill)),
            })
            .collect();
        for (server, entry) in self.hub.server_skills.all(&self.servers()).await {
            if !self.admits_skill(&format!("{}:{}", server.id(), entry.name), access) {
                continue;
            }
            // A URI below the name of another server belongs to that server, regardless of the order of the servers.
            let taken = listed.iter().any(|listed_skill| listed_skill.uri == entry.uri)
                || self.belongs_to_other_server(&server, &entry.uri);
            let taken_path = entry.uri.strip_prefix("skill://").filter(|_| taken);
            let uri = taken_path.map(|path| format!("skill://{}/{path}", encode_path(server.id().as_str())));
            let entry_shown = uri.as_ref().map(|uri| moved(&entry, uri));
            let shown_skill = ListedSkill {
                uri: uri.unwrap_or_else(|| entry.uri.clone()),
                entry: entry_shown.unwrap_or_else(|| entry.raw.clone()),
                source: SkillSource::Server(server, entry),
            };
            // Skips a skill whose URI is still not unique. URIs with another scheme are never prefixed.
            if !listed.iter().any(|listed_skill| listed_skill.uri == shown_skill.uri) {
                listed.push(shown_skill);
            }
        }
        listed
    }

    /// Whether the URI of a skill begins with the name of a server other than `server`.
    fn belongs_to_other_server(&self, server: &Server, uri: &str) -> bool {
        let first = uri.strip_prefix("skill://").and_then(|path| path.split('/').next());
        let named = |other: &&Arc<Server>| first == Some(encode_path(other.id().as_str()).as_str());
        self.hub.servers.load().iter().any(|other| other.id() != server.id() && named(&other))
    }

    /// The hub's own skills that the profile admits.
    async fn own_skills(&self, access: &ProfileAccess) -> Vec<ServedSkill> {
        if !self.profile.offers_skills() {
            return Vec::new();
        }
        let mut skills = self.hub.served_skills().await;
        skills.retain(|skill| self.admits_skill(&skill.name, access));
        skills
    }

    /// Whether the profile has a skill and the principal may use it.
    pub(super) fn admits_skill(&self, name: &str, access: &ProfileAccess) -> bool {
        self.profile.admits_skill(name) && access.admits_skill(name)
    }

    /// `skills/list`
    pub(super) async fn list_skills(
        &self,
        params: &RawObject,
        access: &ProfileAccess,
    ) -> Result<RawJson, RpcError> {
        let cursor = params.get("cursor").and_then(|cursor| cursor.decode::<String>().ok());
        let start = match cursor {
            None => 0,
            Some(cursor) => cursor
                .parse::<usize>()
                .map_err(|_| RpcError::invalid_params(format!("`{cursor}` is no cursor of this list")))?,
        };
        let listed = self.shown_skills(access).await;
        let page: Vec<&RawJson> =
            listed.iter().skip(start).take(PAGE_SIZE).map(|skill| &skill.entry).collect();
        let result = RawObject::default().with("skills", RawJson::of(&page));
        let next = start.saturating_add(PAGE_SIZE);
        Ok(match next < listed.len() {
            true => result.with("nextCursor", next.to_string()).into_raw(),
            false => result.into_raw(),
        })
    }

    /// `skills/get`
    pub(super) async fn get_skill(
        &self,
        uri: &str,
        access: &ProfileAccess,
    ) -> Result<SourcedResult, RpcError> {
        let skill = self.shown_skills(access).await.into_iter().find(|skill| skill.uri == uri);
        if let Some(skill) = skill {
            return Ok(skill.answer(RawObject::default().with("skill", skill.entry.clone()).into_raw()));
        }
        // A server may have skills that it does not list.
        if is_manifest(uri) && !access.forbids_dot_dot(uri) {
            let mut servers = self.servers();
            servers.retain(|server| server.supports_skills() == Some(true));
            for server in self.without_hidden_skills(servers, uri, access).await {
                if let Ok(entry) = server.skill(uri).await
                    && self.admits_skill(&format!("{}:{}", server.id(), entry.name), access)
                {
                    let result = RawObject::default().with("skill", entry.raw).into_raw();
                    let (server, name) = (Some(server.id().clone()), entry.name);
                    return Ok(SourcedResult { result, source: ResultSource::Skill { server, name } });
                }
            }
        }
        Err(RpcError::invalid_params(format!("No skill is served at {uri}")))
    }

    /// Whether a URI is, in any spelling, in the folder of a skill that a server listed.
    pub(super) fn belongs_to_skill(&self, uri: &str) -> bool {
        let uri = canonicalize_uri(uri);
        self.hub.server_skills.contains_uri(|folder| is_within(&uri, &canonicalize_uri(folder)))
    }

    /// Reads a file of a skill. Returns `None` if the URI belongs to no skill.
    pub(super) async fn read_skill_file(
        &self,
        uri: &str,
        access: &ProfileAccess,
    ) -> Option<Result<SourcedResult, RpcError>> {
        // It is refused like a resource that does not exist.
        if access.forbids_dot_dot(uri) {
            return None;
        }
        // Most URIs belong to no skill: skips listing the skills for them.
        let wanted = canonicalize_uri(uri);
        let servers = self.servers();
        let serve = |server: &&Arc<Server>| server.supports_skills() == Some(true);
        self.hub.server_skills.all(&servers.iter().filter(serve).cloned().collect::<Vec<_>>()).await;
        if !wanted.starts_with("skill:") && !self.belongs_to_skill(uri) {
            return None;
        }
        let listed = self.shown_skills(access).await;
        let is_below = |matching_skill: &&ListedSkill| {
            uri.strip_prefix(matching_skill.root()).is_some_and(|rest| rest.starts_with('/'))
        };
        let not_found = || {
            RpcError::invalid_params(format!("Resource not found: {uri}"))
                .with_data(RawObject::default().with("uri", uri))
        };
        // Another spelling of a file gets the file as it was listed and checked, and nothing else.
        let (matching_skill, file) = match listed.iter().find(is_below) {
            Some(matching_skill) => (matching_skill, uri.to_owned()),
            None => {
                let matching_skill = listed
                    .iter()
                    .find(|matching_skill| is_within(&wanted, &canonicalize_uri(matching_skill.root())))?;
                let mut files = matching_skill.files().into_iter().map(|(file, _)| file);
                match files.find(|file| canonicalize_uri(file) == wanted) {
                    Some(file) => (matching_skill, file),
                    None => return Some(Err(not_found())),
                }
            }
        };
        let read = match &matching_skill.source {
            SkillSource::Hub(skill) => hub_skill_file(skill, &file)
                .await
                .map(|result| if file == uri { result } else { renamed(&result, uri) }),
            // The files of such a skill are not listed: the server must not read another folder in the URI.
            SkillSource::Server(_, entry) if entry.files.is_none() && !has_one_reading(uri) => {
                Err(not_found())
            }
            SkillSource::Server(server, entry) => {
                let server_uri = format!(
                    "{}{}",
                    entry.root(),
                    file.strip_prefix(matching_skill.root()).unwrap_or_default()
                );
                let read = self.hub.server_skills.read(server, entry, &server_uri).await;
                read.map(|result| if server_uri == uri { result } else { renamed(&result, uri) })
                    .map_err(|why| RpcError::invalid_params(why.localize(Lang::En)))
            }
        };
        Some(read.map(|result| matching_skill.answer(result)))
    }

    /// `resources/directory/read`. Returns `None` if the URI is not a folder of a skill whose files are listed.
    pub(super) async fn read_skill_folder(
        &self,
        uri: &str,
        access: &ProfileAccess,
    ) -> Option<Result<SourcedResult, RpcError>> {
        if access.forbids_dot_dot(uri) {
            return None;
        }
        let listed = self.shown_skills(access).await;
        let files: Vec<(String, u64)> = listed.iter().flat_map(ListedSkill::files).collect();
        let not_a_folder = || RpcError::invalid_params(format!("{uri} is not a directory resource"));
        let is_below = |file: &str, folder: &str| {
            file.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let requested = uri.trim_end_matches('/');
        let mut folder = requested.to_owned();
        // Another spelling of a folder gets the folder as it was listed, and nothing else.
        if !files.iter().any(|(file, _)| is_below(file, requested)) {
            let wanted = canonicalize_uri(requested);
            let wanted = wanted.trim_end_matches('/');
            let is_in_skill = |skill: &ListedSkill| is_within(wanted, &canonicalize_uri(skill.root()));
            if !listed.iter().any(is_in_skill) {
                return None;
            }
            let folders = files.iter().flat_map(|(file, _)| {
                let ends = file.match_indices('/').map(|(at, _)| at).chain([file.len()]);
                ends.map(|end| &file[..end])
            });
            match folders
                .into_iter()
                .find(|existing| canonicalize_uri(existing).trim_end_matches('/') == wanted)
            {
                Some(existing) => existing.clone_into(&mut folder),
                None if has_one_reading(uri) => return None,
                None => return Some(Err(not_a_folder())),
            }
        }
        if files.iter().any(|(file, _)| *file == folder) {
            return Some(Err(not_a_folder()));
        }
        let mut children: Vec<Value> = Vec::new();
        for (file, size) in &files {
            let below = file.strip_prefix(&folder).and_then(|rest| rest.strip_prefix('/'));
            let Some(below) = below else { continue };
            let child = match below.split_once('/') {
                None => {
                    json!({"uri": file, "name": below, "mimeType": skill_file::mime_of(below), "size": size})
                }
                Some((name, _)) => {
                    json!({"uri": format!("{folder}/{name}"), "name": name, "mimeType": FOLDER_MIME})
                }
            };
            if !children.iter().any(|existing| existing["uri"] == child["uri"]) {
                children.push(child);
            }
        }
        if children.is_empty() {
            return None;
        }
        let result = RawJson::from(json!({"resources": children}));
        // A folder above several skills belongs to none of them.
        let skill = listed.iter().find(|skill| is_below(&folder, skill.root()));
        Some(Ok(match skill {
            Some(skill) => skill.answer(result),
            None => SourcedResult::of_hub(result),
        }))
    }

    /// The `SKILL.md` of each of the hub's own skills, as a resource.
    pub(super) async fn skill_resources(&self, access: &ProfileAccess) -> Vec<(String, RawJson)> {
        let skills = self.own_skills(access).await;
        let listed = skills.into_iter().map(|skill| {
            let size = skill.files.iter().find(|file| file.uri == skill.uri).map_or(0, |file| file.size);
            let item = json!({"uri": skill.uri, "name": skill.name, "description": skill.description,
                "mimeType": "text/markdown", "size": size});
            (skill.uri, RawJson::from(item))
        });
        listed.collect()
    }
}

async fn hub_skill_file(skill: &Arc<ServedSkill>, uri: &str) -> Result<RawJson, RpcError> {
    let unknown = || {
        RpcError::invalid_params(format!("Resource not found: {uri}"))
            .with_data(RawObject::default().with("uri", uri))
    };
    let file = skill.files.iter().find(|file| file.uri == uri).cloned().ok_or_else(unknown)?;
    let (skill, requested) = (Arc::clone(skill), file.clone());
    let bytes = match tokio::task::spawn_blocking(move || skill.read(&requested)).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(why)) => return Err(RpcError::invalid_params(why.localize(Lang::En))),
        Err(_) => return Err(RpcError::new(-32603, "the file could not be read")),
    };
    let content = RawObject::default().with("uri", uri).with("mimeType", skill_file::mime_of(&file.path));
    let content = match String::from_utf8(bytes) {
        Ok(text) => content.with("text", text),
        Err(error) => content.with("blob", STANDARD.encode(error.as_bytes())),
    };
    Ok(RawObject::default().with("contents", RawJson::of(&[content])).into_raw())
}

/// Rewrites the URIs of an entry to a new base.
fn moved(entry: &SkillEntry, uri: &str) -> RawJson {
    let root = uri.strip_suffix("/SKILL.md").unwrap_or(uri);
    let mut listed = entry.raw.object().unwrap_or_default().with("uri", uri);
    let files = listed.get("resources").and_then(|files| files.decode::<Vec<RawJson>>().ok());
    if let Some(files) = files {
        let files: Vec<RawJson> = files
            .into_iter()
            .map(|file| {
                let members = file.object().unwrap_or_default();
                let server_uri =
                    members.get("uri").and_then(|uri| uri.decode::<String>().ok()).unwrap_or_default();
                let below = server_uri.strip_prefix(entry.root()).unwrap_or_default();
                members.with("uri", format!("{root}{below}")).into_raw()
            })
            .collect();
        listed.set("resources", RawJson::of(&files));
    }
    listed.into_raw()
}

/// Sets the URI of the contents to the requested one.
fn renamed(result: &RawJson, uri: &str) -> RawJson {
    let members = result.object().unwrap_or_default();
    let contents = members.get("contents").and_then(|contents| contents.decode::<Vec<RawJson>>().ok());
    let contents = contents.unwrap_or_default().into_iter();
    let contents: Vec<RawObject> =
        contents.map(|content| content.object().unwrap_or_default().with("uri", uri)).collect();
    members.with("contents", RawJson::of(&contents)).into_raw()
}
