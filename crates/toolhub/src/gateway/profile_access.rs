//! What a principal may see and use through a profile. Every surface of the gateway asks here, and only here the decision
//! point ([`toolhub_access`]) is asked.

use std::sync::Arc;

use toolhub_access::{Action, Decision, ItemKind, Permissions, Resource, tool_names};
use toolhub_core::{Principal, RawJson, ServerId, Source};
use toolhub_engine::Entry;
use toolhub_mcp_wire::Offer;

use super::offers::OfferedItem;

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
}

impl ProfileAccess {
    pub(super) fn new(permissions: Option<Permissions>, profile: Arc<str>, principal: &Principal) -> Self {
        let has_roles = !principal.roles.is_empty();
        Self { permissions, profile, principal: Arc::clone(principal.id()), has_roles }
    }

    /// The permissions, if anything is restricted.
    pub(super) fn permissions(&self) -> Option<&Permissions> {
        self.permissions.as_ref()
    }

    fn decide(&self, permissions: &Permissions, action: Action<'_>, resource: Resource<'_>) -> Decision {
        permissions.decide_for(&self.principal, action, &resource.in_profile(&self.profile))
    }

    /// Whether a tool of the catalog is visible.
    pub(super) fn sees_tool(&self, entry: &Entry) -> bool {
        let Some(permissions) = &self.permissions else { return true };
        let names = tool_names(&entry.tool);
        let resource = Resource::of_tool(&entry.tool, &names).with_tags(entry.tags());
        self.decide(permissions, Action::See, resource).is_allowed()
    }

    /// Whether a rule forbids a tool, whatever its arguments. The tools that find other tools need no rule that allows
    /// them: they reach only what is visible.
    pub(super) fn forbids_finder(&self, entry: &Entry) -> bool {
        let Some(permissions) = &self.permissions else { return false };
        let names = tool_names(&entry.tool);
        let resource = Resource::of_tool(&entry.tool, &names).with_tags(entry.tags());
        !self.has_roles
            || matches!(self.decide(permissions, Action::See, resource), Decision::Forbid { rule: Some(_) })
    }

    /// Decides about a call with the arguments that will be sent.
    pub(super) fn decide_call(&self, entry: &Entry, arguments: &RawJson) -> Decision {
        let Some(permissions) = &self.permissions else { return Decision::Allow { rule: None } };
        let names = tool_names(&entry.tool);
        let resource =
            Resource::of_tool(&entry.tool, &names).with_tags(entry.tags()).with_arguments(arguments);
        self.decide(permissions, Action::Call, resource)
    }

    /// Whether the principal may do this with a prompt, a resource or a skill of a source.
    pub(super) fn allows(&self, action: Action<'_>, kind: ItemKind, item: (&Source, &[&str])) -> bool {
        let Some(permissions) = &self.permissions else { return true };
        let (source, names) = item;
        self.decide(permissions, action, Resource::item(kind, source, names)).is_allowed()
    }

    /// Whether an item of a list is visible.
    pub(super) fn sees_item(&self, offer: Offer, item: &OfferedItem) -> bool {
        let (source, kind) = (Source::Server(item.server.id().clone()), kind_of(offer));
        self.allows(Action::See, kind, (&source, &[&item.key, &item.exposed_name]))
    }

    /// Whether a resource may be read, subscribed to or completed.
    pub(super) fn reads_resource(&self, server: &ServerId, uri: &str, action: Action<'_>) -> bool {
        self.allows(action, ItemKind::Resource, (&Source::Server(server.clone()), &[uri]))
    }

    /// Whether a prompt may be used or completed.
    pub(super) fn gets_prompt(&self, prompt: &OfferedItem, action: Action<'_>) -> bool {
        let source = Source::Server(prompt.server.id().clone());
        self.allows(action, ItemKind::Prompt, (&source, &[&prompt.key, &prompt.exposed_name]))
    }

    /// Whether any item of a source may be visible: no rule names this kind, or one allows all of its items.
    pub(super) fn sees_source(&self, offer: Offer, server: &ServerId) -> bool {
        let source = Source::Server(server.clone());
        self.allows(Action::See, kind_of(offer), (&source, &[""]))
    }

    /// Whether a skill may be listed and used; a skill of a server is named `server:skill`.
    pub(super) fn admits_skill(&self, name: &str) -> bool {
        let (source, own) = match name.split_once(':') {
            Some((server, own)) => (Source::from_name(server), own),
            None => (Source::Skill, name),
        };
        self.allows(Action::UseSkill, ItemKind::Skill, (&source, &[own, name]))
    }

    /// The input schema of a tool, narrowed by rules about arguments.
    pub(super) fn narrow_schema(&self, entry: &Entry, schema: &RawJson) -> Option<RawJson> {
        let permissions = self.permissions.as_ref()?;
        let names = tool_names(&entry.tool);
        let resource = Resource::of_tool(&entry.tool, &names).with_tags(entry.tags());
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
