//! Skills of servers: listed on demand, fetched one file at a time, and used only if a file matches its listed digest. An
//! outdated list is fetched again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;
use tokio::time::Instant;
use toolhub_core::lang::LocalizedText;
use toolhub_core::{BoxFuture, RawJson, ServerId};
use toolhub_mcp_client::Server;
use toolhub_mcp_client::skills::{SkillEntry, content_bytes};
use toolhub_mcp_wire::McpError;
use toolhub_skills::{MANIFEST, RemoteSkill, SkillFetcher, frontmatter_of};

use crate::server_set::ServerSet;

/// How long a list is cached.
const LIST_TTL: Duration = Duration::from_secs(300);
/// How long a failure is cached.
const RETRY_AFTER: Duration = Duration::from_secs(30);
/// Timeout for fetching a list.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum total size of cached files in bytes.
const MAX_CACHED_BYTES: usize = 16 << 20;

type Entries = Arc<Vec<Arc<SkillEntry>>>;

/// The skills of servers.
#[derive(Debug, Default)]
pub(crate) struct ServerSkills {
    servers: Arc<ServerSet>,
    /// `None` for a list that could not be fetched.
    lists: Mutex<HashMap<ServerId, (Instant, Option<Entries>)>>,
    /// Fetched files, by server and digest.
    files: Mutex<Files>,
}

#[derive(Debug, Default)]
struct Files {
    by_digest: HashMap<(ServerId, String), RawJson>,
    bytes: usize,
}

impl ServerSkills {
    pub(crate) fn new(servers: Arc<ServerSet>) -> Self {
        Self { servers, ..Self::default() }
    }

    fn lists(&self) -> MutexGuard<'_, HashMap<ServerId, (Instant, Option<Entries>)>> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The skills of a server; empty if it has none, `None` if the request fails.
    pub(crate) async fn list(&self, server: &Arc<Server>) -> Option<Arc<Vec<Arc<SkillEntry>>>> {
        if let Some((at, list)) = self.lists().get(server.id())
            && at.elapsed() < LIST_TTL
        {
            return list.clone();
        }
        let fetched = tokio::time::timeout(LIST_TIMEOUT, server.skills()).await;
        let list = fetched.ok().and_then(Result::ok);
        let list: Option<Entries> = list.map(|list| Arc::new(list.into_iter().map(Arc::new).collect()));
        // A failure is cached, too, but expires earlier than a list.
        let now = Instant::now();
        let at = match list {
            Some(_) => now,
            None => now.checked_sub(LIST_TTL - RETRY_AFTER).unwrap_or(now),
        };
        self.lists().insert(server.id().clone(), (at, list.clone()));
        list
    }

    /// The skills of a server; empty if it has none or the request fails.
    async fn of(&self, server: &Arc<Server>) -> Entries {
        self.list(server).await.unwrap_or_default()
    }

    /// The skills of these servers, in their order.
    pub(crate) async fn all(&self, servers: &[Arc<Server>]) -> Vec<(Arc<Server>, Arc<SkillEntry>)> {
        let lists = join_all(servers.iter().map(|server| self.of(server))).await;
        let pairs = servers.iter().zip(&lists);
        pairs
            .flat_map(|(server, list)| list.iter().map(|entry| (Arc::clone(server), Arc::clone(entry))))
            .collect()
    }

    /// The skills of connected servers, for a model.
    pub(crate) async fn of_connected(&self) -> Vec<RemoteSkill> {
        let serves = |server: &&Arc<Server>| server.supports_skills() == Some(true);
        let servers: Vec<Arc<Server>> = self.servers.load().iter().filter(serves).cloned().collect();
        self.all(&servers).await.iter().map(|(server, entry)| remote_skill(server, entry)).collect()
    }

    /// Whether a server listed a skill whose folder the URI is below, as `is_below` decides.
    pub(crate) fn contains_uri(&self, is_below: impl Fn(&str) -> bool) -> bool {
        self.lists()
            .values()
            .any(|(_, list)| list.iter().flat_map(|list| list.iter()).any(|entry| is_below(entry.root())))
    }

    /// Drops the cached list of a server, or of all servers.
    pub(crate) fn forget(&self, server: Option<&ServerId>) {
        self.lists().retain(|id, _| server.is_some_and(|server| server != id));
    }

    /// Reads a file and verifies its digest. If it does not match the list, the list is fetched again before the read fails.
    pub(crate) async fn read(
        &self,
        server: &Arc<Server>,
        entry: &Arc<SkillEntry>,
        uri: &str,
    ) -> Result<RawJson, LocalizedText> {
        let id = server.id();
        let cache_key = |entry: &SkillEntry| entry.file(uri).map(|file| (id.clone(), file.digest.clone()));
        let cached_file =
            cache_key(entry).and_then(|cache_key| self.files().by_digest.get(&cache_key).cloned());
        if let Some(cached_file) = cached_file {
            return Ok(cached_file);
        }
        let mut entry = Arc::clone(entry);
        let mut read = verified(server, &entry, uri).await;
        if matches!(&read, Err(McpError::Unreadable { .. })) && entry.files.is_some() {
            // The file may have changed since it was listed.
            let now = server.skill(&entry.uri).await.map_err(|error| refused(&error, id))?;
            if now.raw.get() != entry.raw.get() {
                entry = Arc::new(now);
                self.replace(id, &entry);
                read = verified(server, &entry, uri).await;
            }
        }
        let result = read.map_err(|error| refused(&error, id))?;
        if let Some(cache_key) = cache_key(&entry) {
            let mut files = self.files();
            let size = result.get().len();
            if files.bytes + size > MAX_CACHED_BYTES {
                *files = Files::default();
            }
            if size <= MAX_CACHED_BYTES {
                files.bytes += size;
                files.by_digest.insert(cache_key, result.clone());
            }
        }
        Ok(result)
    }

    fn replace(&self, server: &ServerId, new: &Arc<SkillEntry>) {
        if let Some((_, Some(list))) = self.lists().get_mut(server) {
            let other = list
                .iter()
                .map(|entry| if entry.uri == new.uri { Arc::clone(new) } else { Arc::clone(entry) });
            *list = Arc::new(other.collect());
        }
    }
}

async fn verified(server: &Arc<Server>, entry: &SkillEntry, uri: &str) -> Result<RawJson, McpError> {
    let result = server.skill_resource(entry, uri).await?;
    if uri == entry.uri {
        let bytes = content_bytes(&result).unwrap_or_default();
        let written = frontmatter_of(&String::from_utf8_lossy(&bytes)).map(Value::Object);
        if !written.is_some_and(|written| is_same_json(&written, &entry.frontmatter.value())) {
            let detail = format!("the frontmatter of `{uri}` is not what was listed");
            return Err(McpError::Unreadable { detail });
        }
    }
    Ok(result)
}

/// Whether two values are equal, regardless of the notation of numbers.
fn is_same_json(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same_json(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, value)| other.get(key).is_some_and(|other| is_same_json(value, other)))
        }
        _ => one == other,
    }
}

fn refused(error: &McpError, server: &ServerId) -> LocalizedText {
    use toolhub_core::{Lang, Localize as _};
    let error = error.clone().into_tool_error(server);
    LocalizedText::new(error.localize(Lang::En), error.localize(Lang::Zh))
}

/// A skill of a server as offered to a model.
fn remote_skill(server: &Server, entry: &SkillEntry) -> RemoteSkill {
    let below =
        |uri: &str| uri.strip_prefix(entry.root()).map(|path| path.trim_start_matches('/').to_owned());
    RemoteSkill {
        server: server.id().to_string(),
        name: entry.name.clone(),
        description: entry.description.clone(),
        uri: entry.uri.clone(),
        files: entry.files.iter().flatten().filter_map(|file| below(&file.uri)).collect(),
    }
}

impl SkillFetcher for ServerSkills {
    fn fetch<'a>(
        &'a self,
        skill: &'a RemoteSkill,
        file: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<u8>, LocalizedText>> {
        Box::pin(async move {
            let not_found = || {
                let name = skill.shown();
                LocalizedText::new(
                    format!("the skill `{name}` is not there any more"),
                    format!("技能 `{name}` 已不存在"),
                )
            };
            let server = self.servers.find(&skill.server).ok_or_else(not_found)?;
            let entries = self.of(&server).await;
            let entry = entries.iter().find(|entry| entry.uri == skill.uri).ok_or_else(not_found)?;
            let uri = match file {
                None => entry.uri.clone(),
                Some(file) => format!("{}/{}", entry.root(), file.trim_start_matches("./")),
            };
            let result = self.read(&server, entry, &uri).await?;
            content_bytes(&result).map_err(LocalizedText::from)
        })
    }
}

/// Whether a URI ends with the file name `SKILL.md`.
pub(crate) fn is_manifest(uri: &str) -> bool {
    uri.rsplit('/').next() == Some(MANIFEST)
}
