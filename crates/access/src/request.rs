//! The input of a decision: an action and the resource that it concerns.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use toolhub_core::{Hints, RawJson, Source, Tool};

use crate::pattern::FoldedName;

/// An operation of a principal, about which is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action<'a> {
    /// List, search or describe an item. Decided as [`Decision::Allow`](crate::Decision::Allow) or
    /// [`Decision::Forbid`](crate::Decision::Forbid): an item is visible if some arguments, an approval or more scopes
    /// make its use possible.
    See,
    /// Call a tool.
    Call,
    /// Read a resource.
    Read,
    /// Get a prompt.
    GetPrompt,
    /// Complete an argument of a prompt or of a resource template.
    Complete,
    /// Subscribe to a resource.
    Subscribe,
    /// Load a skill.
    UseSkill,
    /// View the states of the hub and its servers.
    ViewStates,
    /// Add, change and remove servers, profiles and skills.
    ManageServers,
    /// Create and revoke keys of any principal.
    ManageKeys,
    /// Change principals, rules and the configuration.
    ManageRules,
    /// Approve or deny held calls.
    DecideHeldCalls,
    /// Approve or reject changed tool definitions.
    DecideChangedTools,
    /// Read the audit log.
    ReadAudit,
    /// Read the arguments and results of a recorded call.
    ReadPayload {
        /// The id of the principal that made the call.
        owner: &'a str,
    },
    /// Create and revoke the principal's own keys.
    ManageOwnKeys,
}

impl Action<'_> {
    /// Whether the action concerns one item of the catalog, so that rules apply.
    pub fn concerns_item(self) -> bool {
        self.item_kinds().is_some()
    }

    /// The kinds of items that the action may concern; `None` for administrative actions.
    pub(crate) fn item_kinds(self) -> Option<&'static [ItemKind]> {
        Some(match self {
            Self::See => &ItemKind::ALL,
            Self::Call => &[ItemKind::Tool],
            Self::Read | Self::Subscribe => &[ItemKind::Resource],
            Self::GetPrompt => &[ItemKind::Prompt],
            Self::Complete => &[ItemKind::Prompt, ItemKind::Resource],
            Self::UseSkill => &[ItemKind::Skill],
            Self::ViewStates
            | Self::ManageServers
            | Self::ManageKeys
            | Self::ManageRules
            | Self::DecideHeldCalls
            | Self::DecideChangedTools
            | Self::ReadAudit
            | Self::ReadPayload { .. }
            | Self::ManageOwnKeys => return None,
        })
    }
}

/// A kind of item that a source offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ItemKind {
    /// A tool, also one that a skill provides.
    Tool,
    /// A prompt.
    Prompt,
    /// A resource or a resource template.
    Resource,
    /// An Agent Skill.
    Skill,
}

impl ItemKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Tool, Self::Prompt, Self::Resource, Self::Skill];

    /// The name in the configuration and in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Skill => "skill",
        }
    }
}

/// The item that an action concerns, or the hub itself.
#[derive(Debug, Clone, Copy)]
pub struct AccessResource<'a> {
    /// The profile through which the item is used. `None` outside of profiles: a principal that is restricted to
    /// profiles cannot use the item then, and rules with `profiles` forbid and hold but do not grant.
    pub profile: Option<&'a str>,
    /// The kind of the item; `None` for the hub itself.
    pub kind: Option<ItemKind>,
    /// The source of the item.
    pub source: &'a Source,
    /// Every name of the item: in the catalog, at its server, and the URI of a resource. A rule that names any of them
    /// concerns the item.
    pub names: &'a [&'a str],
    /// The tags of the tool, also derived ones.
    pub tags: &'a [String],
    /// The effect hints of the tool.
    pub hints: Hints,
    /// The arguments that will be sent, after coercion and with fixed arguments; `{}` if the request has none. `None`
    /// if they are unknown: rules with `arguments` then forbid and hold but do not grant.
    pub arguments: Option<&'a RawJson>,
}

impl<'a> AccessResource<'a> {
    /// The hub itself, for administrative actions.
    pub fn hub() -> Self {
        const NATIVE: &Source = &Source::Native;
        Self {
            profile: None,
            kind: None,
            source: NATIVE,
            names: &[],
            tags: &[],
            hints: Hints::default(),
            arguments: None,
        }
    }

    /// An item with these names.
    pub fn item(kind: ItemKind, source: &'a Source, names: &'a [&'a str]) -> Self {
        Self { kind: Some(kind), source, names, ..Self::hub() }
    }

    /// A tool with these names, without tags and hints.
    pub fn tool(source: &'a Source, names: &'a [&'a str]) -> Self {
        Self::item(ItemKind::Tool, source, names)
    }

    /// A tool of the catalog; `names` are its [`tool_names`], and its name in the profile if that differs. The tags are
    /// the configured ones: derived tags are given by [`AccessResource::with_tags`].
    pub fn of_tool(tool: &'a Tool, names: &'a [&'a str]) -> Self {
        Self { tags: &tool.tags, hints: tool.hints(), ..Self::tool(&tool.source, names) }
    }

    /// The resource as used through a profile.
    #[must_use]
    pub fn in_profile(self, profile: &'a str) -> Self {
        Self { profile: Some(profile), ..self }
    }

    /// The resource with tags.
    #[must_use]
    pub fn with_tags(self, tags: &'a [String]) -> Self {
        Self { tags, ..self }
    }

    /// The resource with effect hints.
    #[must_use]
    pub fn with_hints(self, hints: Hints) -> Self {
        Self { hints, ..self }
    }

    /// The resource with the arguments of a call.
    #[must_use]
    pub fn with_arguments(self, arguments: &'a RawJson) -> Self {
        Self { arguments: Some(arguments), ..self }
    }
}

/// The names of a tool: in the catalog and at its server.
pub fn tool_names(tool: &Tool) -> [&str; 2] {
    [tool.name().as_str(), tool.definition.wire_name().as_str()]
}

/// A resource whose names are prepared for comparison with many rules.
#[derive(Debug)]
pub(crate) struct PreparedResource<'a> {
    pub(crate) kind: ItemKind,
    pub(crate) profile: Option<FoldedName<'a>>,
    pub(crate) server: FoldedName<'a>,
    /// All names, also those with `SERVER__` before them.
    pub(crate) names: Vec<FoldedName<'a>>,
    pub(crate) tags: Vec<FoldedName<'a>>,
    pub(crate) hints: Hints,
}

impl<'a> PreparedResource<'a> {
    /// Prepares a resource; `None` if it is the hub itself.
    pub(crate) fn new(resource: &AccessResource<'a>) -> Option<Self> {
        let kind = resource.kind?;
        let server = match resource.source {
            Source::Native => "native",
            Source::Skill => "skill",
            Source::Server(id) => id.as_str(),
        };
        let mut names = Vec::with_capacity(resource.names.len() * 2);
        for (position, name) in resource.names.iter().enumerate() {
            // The names in the catalog and at the server are often equal.
            if resource.names[..position].contains(name) {
                continue;
            }
            // `vis__read` of the server `evil` is not a tool of `vis`, although a rule that names it looks like that.
            let is_qualified = matches!(resource.source, Source::Server(_)) && name.contains("__");
            let bare = Cow::Borrowed(*name);
            names.push(if is_qualified { FoldedName::presumed(bare) } else { FoldedName::new(bare) });
            // `a__b__c` can be the tool `b__c` of `a`, and `c` of `a__b`; `a___b` that of `a`, and of `a_`.
            let is_ambiguous =
                is_qualified || (matches!(resource.source, Source::Server(_)) && name.starts_with('_'));
            let qualified = Cow::Owned([server, "__", name].concat());
            names.push(if is_ambiguous {
                FoldedName::ambiguous(qualified)
            } else {
                FoldedName::new(qualified)
            });
        }
        Some(Self {
            kind,
            profile: resource.profile.map(|profile| FoldedName::new(Cow::Borrowed(profile))),
            server: FoldedName::new(Cow::Borrowed(server)),
            names,
            tags: resource.tags.iter().map(|tag| FoldedName::new(Cow::Borrowed(tag.as_str()))).collect(),
            hints: resource.hints,
        })
    }
}
