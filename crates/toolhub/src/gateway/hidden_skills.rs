//! Files of skills of servers that a principal may not use: they are on no surface for resources either, in no spelling of their
//! URIs.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::future::join_all;
use toolhub_core::ServerId;
use toolhub_mcp_client::Server;

use super::backend::HubBackend;
use super::profile_access::ProfileAccess;
use super::resource_uri::{canonical, is_within};

/// The scheme of skills that servers need not list.
const SKILL_SCHEME: &str = "skill://";

/// Which URIs of servers belong to skills that a principal may not use.
#[derive(Debug, Default)]
pub(super) struct HiddenSkills {
    /// Whether any skill can be hidden from the principal.
    is_restricted: bool,
    /// The canonical folders of hidden skills.
    hidden: Vec<String>,
    /// The canonical folders of the skills that the principal may use, with their servers.
    visible: Vec<(ServerId, String)>,
    /// Servers whose skills are unknown, since their lists could not be fetched.
    unknown: HashSet<ServerId>,
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
            for entry in list.iter() {
                let folder = canonical(entry.root());
                match self.admits_skill(&format!("{server}:{}", entry.name), access) {
                    true => skills.visible.push((server.clone(), folder)),
                    false => skills.hidden.push(folder),
                }
            }
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
        let uri = canonical(uri);
        if skills.hidden.iter().any(|folder| is_within(&uri, folder)) {
            return true;
        }
        // A server may have skills that it does not list. The name of a skill is that of its folder.
        let is_visible =
            skills.visible.iter().any(|(owner, folder)| owner == server && is_within(&uri, folder));
        let Some(path) = uri.strip_prefix(SKILL_SCHEME).filter(|_| !is_visible) else { return false };
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let names = path.split('/').filter(|name| !name.is_empty());
        let mut folders: Vec<&str> = names.collect();
        if folders.len() > 1 {
            folders.pop();
        }
        folders.into_iter().any(|name| !self.admits_skill(&format!("{server}:{name}"), access))
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
