//! Files of skills of servers that a principal may not use: they are on no surface for resources either, in no spelling of their
//! URIs.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::future::join_all;
use toolhub_core::ServerId;
use toolhub_mcp_client::Server;

use super::backend::HubBackend;
use super::profile_access::ProfileAccess;
use super::resource_uri::{UriReadings, canonicalize_uri, has_one_reading, is_within};

/// The scheme of skills that servers need not list.
const SKILL_SCHEME: &str = "skill://";

/// Which URIs of servers belong to skills that a principal may not use.
#[derive(Debug, Default)]
pub(super) struct HiddenSkills {
    /// Whether any skill can be hidden from the principal.
    is_restricted: bool,
    /// The folders of the listed skills.
    folders: Vec<SkillFolder>,
    /// Servers whose skills are unknown, since their lists could not be fetched.
    unknown: HashSet<ServerId>,
}

/// The folder of a skill that a server lists.
#[derive(Debug)]
struct SkillFolder {
    server: ServerId,
    /// As the server spells it.
    root: String,
    /// Without a final slash.
    canonical: String,
    is_visible: bool,
}

impl HiddenSkills {
    /// Whether a URI of a server is in the folder of a listed skill that the principal may use; `None` if it is in none. The
    /// innermost folder decides. Skills whose folders differ in spelling only are used by their exact spelling.
    fn is_visible(&self, server: &ServerId, uri: &str) -> Option<bool> {
        let wanted = canonicalize_uri(uri);
        let is_around =
            |folder: &&SkillFolder| folder.server == *server && is_within(&wanted, &folder.canonical);
        let around: Vec<&SkillFolder> = self.folders.iter().filter(is_around).collect();
        let depth = around.iter().map(|folder| folder.canonical.len()).max()?;
        let innermost = || around.iter().filter(move |folder| folder.canonical.len() == depth);
        let is_spelled = |folder: &&&SkillFolder| is_within(uri, &folder.root);
        if innermost().all(|folder| folder.is_visible) {
            return Some(true);
        }
        let spelled: Vec<_> = innermost().filter(is_spelled).collect();
        Some(has_one_reading(uri) && !spelled.is_empty() && spelled.iter().all(|folder| folder.is_visible))
    }
}

impl HubBackend {
    /// The skills of these servers that the principal may not use. Fetches lists that are not known yet.
    pub(super) async fn hidden_skills(
        &self,
        servers: &[Arc<Server>],
        access: &ProfileAccess,
    ) -> HiddenSkills {
        if access.permissions().is_none() && self.profile.deny.is_empty() {
            return HiddenSkills::default();
        }
        let mut skills = HiddenSkills { is_restricted: true, ..HiddenSkills::default() };
        let may_have = servers.iter().filter(|server| server.supports_skills() != Some(false));
        let lists =
            may_have.map(|server| async move { (server.id(), self.hub.server_skills.list(server).await) });
        for (server, list) in join_all(lists).await {
            let Some(list) = list else {
                skills.unknown.insert(server.clone());
                continue;
            };
            skills.folders.extend(list.iter().map(|entry| SkillFolder {
                server: server.clone(),
                root: entry.root().to_owned(),
                canonical: canonicalize_uri(entry.root()).trim_end_matches('/').to_owned(),
                is_visible: self.admits_skill(&format!("{server}:{}", entry.name), access),
            }));
        }
        skills
    }

    /// Whether a listed resource of a server is a file of a hidden skill.
    pub(super) fn hides_listed(
        &self,
        skills: &HiddenSkills,
        server: &ServerId,
        uri: &str,
        access: &ProfileAccess,
    ) -> bool {
        if !skills.is_restricted {
            return false;
        }
        if let Some(is_visible) = skills.is_visible(server, uri) {
            return !is_visible;
        }
        let readings = UriReadings::of(uri).map(|readings| readings.partial).unwrap_or_default();
        if readings.iter().any(|reading| skills.is_visible(server, reading) == Some(false)) {
            return true;
        }
        // A server may have skills that it does not list. The name of a skill is that of its folder.
        let is_hidden = |uri: &str| {
            let uri = canonicalize_uri(uri);
            let Some(path) = uri.strip_prefix(SKILL_SCHEME) else { return false };
            let path = path.split(['?', '#']).next().unwrap_or_default();
            let mut folders: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
            if folders.len() > 1 {
                folders.pop();
            }
            folders.into_iter().any(|name| !self.admits_skill(&format!("{server}:{name}"), access))
        };
        is_hidden(uri) || readings.iter().any(|reading| is_hidden(reading))
    }

    /// Whether a resource of a server must not be used, since it is a file of a hidden skill, or could be one.
    pub(super) fn hides_resource(
        &self,
        skills: &HiddenSkills,
        server: &ServerId,
        uri: &str,
        access: &ProfileAccess,
    ) -> bool {
        skills.unknown.contains(server) || self.hides_listed(skills, server, uri, access)
    }
}
