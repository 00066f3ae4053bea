//! What a principal may see and use through a profile. Every surface of the gateway asks here, and only here the decision
//! point ([`toolhub_access`]) is asked.

use std::collections::HashMap;
use std::sync::Arc;

use toolhub_access::{Action, Decision, ItemKind, Permissions, Resource, tool_names};
use toolhub_core::{Principal, RawJson, ServerId, Source};
use toolhub_engine::Entry;
use toolhub_engine::reserved::{hashed, qualified};
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
    /// The names that the profile gives to tools, by their own names.
    renamed: Arc<RenamedTools>,
}

/// The names that a profile gives to tools, by their own names.
pub(super) type RenamedTools = HashMap<String, String>;

impl ProfileAccess {
    pub(super) fn new(
        permissions: Option<Permissions>,
        profile: Arc<str>,
        principal: &Principal,
        renamed: &Arc<RenamedTools>,
    ) -> Self {
        let (has_roles, renamed) = (!principal.roles.is_empty(), Arc::clone(renamed));
        Self { permissions, profile, principal: Arc::clone(principal.id()), has_roles, renamed }
    }

    /// The permissions of a principal that nothing restricts.
    pub(super) fn unrestricted(&self) -> Self {
        Self { permissions: None, ..self.clone() }
    }

    /// The id of the principal.
    pub(super) fn principal(&self) -> &Arc<str> {
        &self.principal
    }

    /// All names of a tool: rules may also use the one that the profile gives to it.
    fn names<'a>(&'a self, entry: &'a Entry) -> Vec<&'a str> {
        let [own, wire] = tool_names(&entry.tool);
        let qualified = || format!("{}__{own}", entry.tool.source);
        let given = self.renamed.get(own).or_else(|| match self.renamed.is_empty() {
            true => None,
            false => self.renamed.get(&qualified()),
        });
        [own, wire].into_iter().chain(given.map(String::as_str)).collect()
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
        let names = self.names(entry);
        let resource = Resource::of_tool(&entry.tool, &names).with_tags(entry.tags());
        self.decide(permissions, Action::See, resource).is_allowed()
    }

    /// Whether a rule forbids a tool, whatever its arguments. The tools that find other tools need no rule that allows
    /// them: they reach only what is visible.
    pub(super) fn forbids_finder(&self, entry: &Entry) -> bool {
        let Some(permissions) = &self.permissions else { return false };
        let names = self.names(entry);
        let resource = Resource::of_tool(&entry.tool, &names).with_tags(entry.tags());
        !self.has_roles
            || matches!(self.decide(permissions, Action::See, resource), Decision::Forbid { rule: Some(_) })
    }

    /// Whether the roles of the principal permit calls at all.
    pub(super) fn may_use(&self) -> bool {
        self.permissions.as_ref().is_none_or(Permissions::may_use)
    }

    /// Decides about a call with the arguments that will be sent.
    pub(super) fn decide_call(&self, entry: &Entry, arguments: &RawJson) -> Decision {
        let Some(permissions) = &self.permissions else { return Decision::Allow { rule: None } };
        let names = self.names(entry);
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

    /// Whether an item of a list is visible. Does not depend on the name that it is offered under, since names are assigned
    /// among visible items only: rules may use each name that it could get.
    pub(super) fn sees_item(&self, offer: Offer, item: &OfferedItem) -> bool {
        self.permissions.is_none() || self.sees_key(offer, item.server.id(), &item.key)
    }

    /// Whether the item with this name or URI at its server is visible.
    pub(super) fn sees_key(&self, offer: Offer, server: &ServerId, key: &str) -> bool {
        if self.permissions.is_none() {
            return true;
        }
        let (source, kind) = (Source::Server(server.clone()), kind_of(offer));
        let (qualified, hashed) = (qualified(&source, key), hashed(&source, key));
        self.allows(Action::See, kind, (&source, &[key, &qualified, &hashed]))
    }

    /// Whether a resource may be read, subscribed to or completed.
    pub(super) fn reads_resource(&self, server: &ServerId, uri: &str, action: Action<'_>) -> bool {
        if self.permissions.is_none() {
            return true;
        }
        let source = Source::Server(server.clone());
        let allows = |uri: &str| self.allows(action, ItemKind::Resource, (&source, &[uri]));
        // A server may read another spelling as the same resource, so that both must be allowed.
        allows(uri) && plain_uri(uri).is_none_or(|plain| allows(&plain))
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
        let names = self.names(entry);
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

/// The usual spelling of a URI: without encoded letters, dot segments, repeated slashes and the host `localhost` of a file.
/// Returns `None` if it is spelled so already.
fn plain_uri(uri: &str) -> Option<String> {
    let mut decoded = String::with_capacity(uri.len());
    let mut rest = uri;
    while let Some(at) = rest.find('%') {
        decoded.push_str(&rest[..at]);
        let digits = rest.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let unreserved = digits.filter(|byte| byte.is_ascii_alphanumeric() || b"-._~/".contains(byte));
        match unreserved {
            Some(byte) => decoded.push(char::from(byte)),
            None => decoded.push_str(&rest[at..(at + 1).min(rest.len())]),
        }
        rest = rest.get(at + if unreserved.is_some() { 3 } else { 1 }..).unwrap_or_default();
    }
    decoded.push_str(rest);
    let (scheme, path) = decoded.split_once("://")?;
    let path = match scheme.eq_ignore_ascii_case("file") {
        true => path.strip_prefix("localhost/").map_or_else(|| path.to_owned(), |path| format!("/{path}")),
        false => path.to_owned(),
    };
    let mut segments: Vec<&str> = Vec::new();
    for (index, segment) in path.split('/').enumerate() {
        match segment {
            "" if index > 0 => {}
            "." => {}
            ".." => {
                if segments.len() > 1 {
                    segments.pop();
                }
            }
            segment => segments.push(segment),
        }
    }
    let trailing = if path.ends_with('/') && path.len() > 1 { "/" } else { "" };
    let plain = format!("{}://{}{trailing}", scheme.to_ascii_lowercase(), segments.join("/"));
    (plain != uri).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_spellings_of_a_uri_have_one_plain_form() {
        for other in [
            "file:///%73ecret/a",
            "file:///pub/../secret/a",
            "file:///pub/%2e%2e/secret/a",
            "file:////secret/a",
            "file://localhost/secret/a",
            "FILE:///secret/./a",
            "file:///pub%2f..%2fsecret/a",
        ] {
            assert_eq!(plain_uri(other).as_deref(), Some("file:///secret/a"), "{other}");
        }
        for plain in ["file:///secret/a", "note://x/a", "note://x/", "memo:a", "x://h/%E4%B8%AD%", "x://h"] {
            assert_eq!(plain_uri(plain), None, "{plain}");
        }
    }
}
