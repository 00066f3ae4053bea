//! Where a principal may use a URI. Each request with a URI of a resource is decided here, whatever its method.

use std::sync::Arc;

use toolhub_access::Action;
use toolhub_core::{RawJson, ServerId};
use toolhub_mcp_client::Server;
use toolhub_mcp_wire::Offer;

use super::backend::HubBackend;
use super::list_keys::ListKeys;
use super::profile_access::ProfileAccess;
use super::resource_uri::canonicalize_uri;

impl HubBackend {
    /// Those of these servers at which the principal may do this with a URI: with everything that the server could read in it, and
    /// with each resource that it lists in another spelling.
    pub(super) async fn permitted_servers(
        &self,
        mut servers: Vec<Arc<Server>>,
        uri: &str,
        access: &ProfileAccess,
        action: Action<'_>,
    ) -> Vec<Arc<Server>> {
        servers.retain(|server| access.reads_resource(server.id(), uri, action));
        // A rule may name a listed resource in another spelling than the canonical one.
        if access.permissions().is_some() && !servers.is_empty() {
            let requested = canonicalize_uri(uri);
            let listed = self.offers.keys(&servers, Offer::Resources).await;
            let is_forbidden = |server: &Arc<Server>, listed: &ListKeys| {
                let mut others = listed.spellings(&requested).filter(|spelling| *spelling != uri);
                others.any(|spelling| !access.reads_resource(server.id(), spelling, action))
            };
            let permitted =
                servers.into_iter().zip(listed).filter(|(server, listed)| !is_forbidden(server, listed));
            servers = permitted.map(|(server, _)| server).collect();
        }
        self.without_hidden_skills(servers, uri, access).await
    }

    /// Those of these servers at which a URI is not a file of a skill that the principal may not use. Only the skills of these
    /// servers are listed.
    pub(super) async fn without_hidden_skills(
        &self,
        mut servers: Vec<Arc<Server>>,
        uri: &str,
        access: &ProfileAccess,
    ) -> Vec<Arc<Server>> {
        let skills = self.hidden_skills(&servers, access).await;
        servers.retain(|server| !self.hides_resource(&skills, server.id(), uri, access));
        servers
    }

    /// Those of these servers at which the principal may read a folder. A folder is the same with and without a final slash.
    pub(super) async fn permitted_folders(
        &self,
        servers: Vec<Arc<Server>>,
        uri: &str,
        access: &ProfileAccess,
    ) -> Vec<Arc<Server>> {
        let mut servers = self.permitted_servers(servers, uri, access, Action::Read).await;
        let other = match uri.strip_suffix('/') {
            Some(without) => without.to_owned(),
            None => format!("{uri}/"),
        };
        servers.retain(|server| !access.forbids_reading(server.id(), &other));
        servers
    }

    /// The content of a folder at a server without the resources that the principal may not see.
    pub(super) async fn visible_content(
        &self,
        result: RawJson,
        server: &Arc<Server>,
        access: &ProfileAccess,
    ) -> RawJson {
        if access.permissions().is_none() && self.profile.deny.is_empty() {
            return result;
        }
        let Some(members) = result.object() else { return result };
        let Some(listed) = members.get("resources") else { return result };
        let skills = self.hidden_skills(std::slice::from_ref(server), access).await;
        let is_visible = |id: &ServerId, item: &RawJson| {
            let uri = item.object()?.get("uri")?.text()?.into_owned();
            let is_seen = access.sees_key(Offer::Resources, id, &uri);
            (is_seen && !self.hides_listed(&skills, id, &uri, access)).then_some(())
        };
        let mut items = listed.decode::<Vec<RawJson>>().unwrap_or_default();
        items.retain(|item| is_visible(server.id(), item).is_some());
        members.with("resources", RawJson::of(&items)).into_raw()
    }
}
