//! What a principal may see and use through a profile. Every surface of the gateway decides through this module, and
//! only this module uses the decision point ([`toolhub_access`]).

use std::sync::Arc;

use toolhub_access::{AccessResource, Action, Decision, ItemKind, Permissions, tool_names};
use toolhub_core::{Principal, RawJson, ServerId, Source};
use toolhub_engine::CatalogEntry;
use toolhub_mcp_wire::Offer;

use super::assigned_names::ToolNames;
use super::prompt_names::{OfferedItem, offered_names};
use super::resource_uri::{UriReadings, has_dot_dot_segment};

/// The permissions of a principal within a profile.
#[derive(Debug, Clone)]
pub(super) struct ProfileAccess {
    /// `None` if no rule and no role restricts the principal.
    permissions: Option<Permissions>,
    profile: Arc<str>,
    /// The id of the principal.
    principal: Arc<str>,
    /// A principal without roles may see nothing.
    has_roles: bool,
    /// The names of the tools, if the profile assigns any.
    names: Option<Arc<ToolNames>>,
}

impl ProfileAccess {
    pub(super) fn new(
        permissions: Option<Permissions>,
        profile: Arc<str>,
        principal: &Principal,
        names: Option<Arc<ToolNames>>,
    ) -> Self {
        let has_roles = !principal.roles.is_empty();
        Self { permissions, profile, principal: Arc::clone(principal.id()), has_roles, names }
    }

    /// The same permissions with the names of a catalog.
    pub(super) fn with_names(&self, names: &Arc<ToolNames>) -> Self {
        Self { names: Some(Arc::clone(names)), ..self.clone() }
    }

    /// The permissions of a principal that nothing restricts.
    pub(super) fn unrestricted(&self) -> Self {
        Self { permissions: None, ..self.clone() }
    }

    /// The id of the principal.
    pub(super) fn principal(&self) -> &Arc<str> {
        &self.principal
    }

    /// All names of a tool: rules may also use the one that the owner assigned to this tool of this source.
    fn names<'a>(&'a self, entry: &'a CatalogEntry) -> Vec<&'a str> {
        let [own, wire] = tool_names(&entry.tool);
        let assigned_name = self.names.as_ref().and_then(|names| names.given_name(&entry.tool));
        [own, wire].into_iter().chain(assigned_name).collect()
    }

    /// The permissions, if anything is restricted.
    pub(super) fn permissions(&self) -> Option<&Permissions> {
        self.permissions.as_ref()
    }

    fn decide(
        &self,
        permissions: &Permissions,
        action: Action<'_>,
        resource: AccessResource<'_>,
    ) -> Decision {
        permissions.decide_for(&self.principal, action, &resource.in_profile(&self.profile))
    }

    /// Whether a tool of the catalog is visible.
    pub(super) fn sees_tool(&self, entry: &CatalogEntry) -> bool {
        let Some(permissions) = &self.permissions else { return true };
        let names = self.names(entry);
        let resource = AccessResource::of_tool(&entry.tool, &names).with_tags(entry.tags());
        self.decide(permissions, Action::See, resource).is_allowed()
    }

    /// Whether a rule forbids a tool, whatever its arguments. The tools that find other tools need no rule that allows
    /// them: they reach only what is visible.
    pub(super) fn forbids_finder(&self, entry: &CatalogEntry) -> bool {
        let Some(permissions) = &self.permissions else { return false };
        let names = self.names(entry);
        let resource = AccessResource::of_tool(&entry.tool, &names).with_tags(entry.tags());
        !self.has_roles
            || matches!(self.decide(permissions, Action::See, resource), Decision::Forbid { rule: Some(_) })
    }

    /// Whether the roles of the principal permit calls at all.
    pub(super) fn may_use(&self) -> bool {
        self.permissions.as_ref().is_none_or(Permissions::may_use)
    }

    /// Decides about a call with the arguments that will be sent.
    pub(super) fn decide_call(&self, entry: &CatalogEntry, arguments: &RawJson) -> Decision {
        let Some(permissions) = &self.permissions else { return Decision::Allow { rule: None } };
        let names = self.names(entry);
        let resource =
            AccessResource::of_tool(&entry.tool, &names).with_tags(entry.tags()).with_arguments(arguments);
        self.decide(permissions, Action::Call, resource)
    }

    /// Whether the principal may do this with a prompt, a resource or a skill.
    pub(super) fn allows(&self, action: Action<'_>, item: AccessResource<'_>) -> bool {
        let Some(permissions) = &self.permissions else { return true };
        self.decide(permissions, action, item).is_allowed()
    }

    /// Whether an item of a list is visible. Does not depend on the name that it is offered under, which depends on the items of
    /// other servers: rules may use each name that it could get.
    pub(super) fn sees_item(&self, offer: Offer, item: &OfferedItem) -> bool {
        self.permissions.is_none() || self.sees_key(offer, item.server.id(), &item.key)
    }

    /// Whether the item with this name or URI at its server is visible.
    pub(super) fn sees_key(&self, offer: Offer, server: &ServerId, key: &str) -> bool {
        if self.permissions.is_none() {
            return true;
        }
        let (source, kind) = (Source::Server(server.clone()), kind_of(offer));
        let names = offered_names(server, key);
        let names = names.each_ref().map(String::as_str);
        let is_seen = self.allows(Action::See, AccessResource::item(kind, &source, &names));
        is_seen && (offer != Offer::Resources || !self.forbids_reading(server, key))
    }

    /// Whether a rule forbids anything that a server may read in the URI of a listed resource.
    pub(super) fn forbids_reading(&self, server: &ServerId, uri: &str) -> bool {
        let Some(permissions) = &self.permissions else { return false };
        let Some(readings) = UriReadings::of(uri).filter(|_| !self.forbids_dot_dot(uri)) else { return true };
        let source = Source::Server(server.clone());
        readings.required.iter().flatten().chain(&readings.partial).any(|reading| {
            let names = [reading.as_str()];
            let resource = AccessResource::item(ItemKind::Resource, &source, &names);
            matches!(self.decide(permissions, Action::See, resource), Decision::Forbid { rule: Some(_) })
        })
    }

    /// Whether a principal that rules or roles restrict must not use a URI, or a value that a server inserts into one, because of
    /// a dot-dot segment: a server could leave the folder that a rule allows.
    pub(super) fn forbids_dot_dot(&self, text: &str) -> bool {
        self.permissions.is_some() && has_dot_dot_segment(text)
    }

    /// Whether a resource may be read, subscribed to or completed. A server may read another spelling as the same resource, so
    /// that everything that it may read must be allowed.
    pub(super) fn reads_resource(&self, server: &ServerId, uri: &str, action: Action<'_>) -> bool {
        let Some(permissions) = &self.permissions else { return true };
        let Some(readings) = UriReadings::of(uri).filter(|_| !self.forbids_dot_dot(uri)) else {
            return false;
        };
        let source = Source::Server(server.clone());
        let decide = |names: &[&str]| {
            self.decide(permissions, action, AccessResource::item(ItemKind::Resource, &source, names))
        };
        let is_allowed = |notations: &Vec<String>| {
            let names: Vec<&str> = notations.iter().map(String::as_str).collect();
            decide(&names).is_allowed()
        };
        let is_forbidden =
            |reading: &String| matches!(decide(&[reading]), Decision::Forbid { rule: Some(_) });
        readings.required.iter().all(is_allowed) && !readings.partial.iter().any(is_forbidden)
    }

    /// The rule that allows the use of an item, if a rule is needed.
    pub(super) fn allowing_rule(
        &self,
        action: Action<'_>,
        kind: ItemKind,
        source: &Source,
        names: &[&str],
    ) -> Option<Arc<str>> {
        let permissions = self.permissions.as_ref()?;
        match self.decide(permissions, action, AccessResource::item(kind, source, names)) {
            Decision::Allow { rule } => rule.map(|rule| rule.name),
            _ => None,
        }
    }

    /// Whether a prompt may be used or completed.
    pub(super) fn gets_prompt(&self, prompt: &OfferedItem, action: Action<'_>) -> bool {
        let source = Source::Server(prompt.server.id().clone());
        let names = prompt.names();
        let names = names.each_ref().map(String::as_str);
        self.allows(action, AccessResource::item(ItemKind::Prompt, &source, &names))
    }

    /// Whether any item of a source may be visible: no rule names this kind, or one allows all of its items.
    pub(super) fn sees_source(&self, offer: Offer, server: &ServerId) -> bool {
        let source = Source::Server(server.clone());
        self.allows(Action::See, AccessResource::item(kind_of(offer), &source, &[""]))
    }

    /// Whether a skill may be listed and used; a skill of a server is named `server:skill`.
    pub(super) fn admits_skill(&self, name: &str) -> bool {
        let (source, skill_name) = match name.split_once(':') {
            Some((server, skill_name)) => (Source::from_name(server), skill_name),
            None => (Source::Skill, name),
        };
        self.allows(Action::UseSkill, AccessResource::item(ItemKind::Skill, &source, &[skill_name, name]))
    }

    /// The input schema of a tool, narrowed by rules about arguments.
    pub(super) fn narrow_schema(&self, entry: &CatalogEntry, schema: &RawJson) -> Option<RawJson> {
        let permissions = self.permissions.as_ref()?;
        let names = self.names(entry);
        let resource = AccessResource::of_tool(&entry.tool, &names).with_tags(entry.tags());
        let narrowed = permissions.narrow_schema(&resource.in_profile(&self.profile), schema);
        (narrowed.get() != schema.get()).then_some(narrowed)
    }
}

fn kind_of(offer: Offer) -> ItemKind {
    match offer {
        Offer::Prompts => ItemKind::Prompt,
        Offer::Resources | Offer::ResourceTemplates => ItemKind::Resource,
    }
}
