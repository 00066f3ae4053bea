//! The audit records of successful uses of resources, prompts and skills.

use toolhub_access::{Action, ItemKind};
use toolhub_core::audit::UseEvent;
use toolhub_core::{RawJson, ServerId, Source};
use toolhub_mcp_gateway::{BackendMethod, BackendRequest};

use super::profile_access::ProfileAccess;
use super::prompt_names::OfferedItem;

/// The use of an item that a request asks for.
pub(super) struct ItemUse {
    method: BackendMethod,
    item: String,
}

impl ItemUse {
    /// The use that a request asks for; `None` if it returns no content of an item.
    pub(super) fn of(request: &BackendRequest) -> Option<Self> {
        let key = match request.method {
            BackendMethod::ReadResource | BackendMethod::ReadDirectory | BackendMethod::GetSkill => "uri",
            BackendMethod::GetPrompt => "name",
            _ => return None,
        };
        let item = request.params.get(key).and_then(RawJson::text)?.into_owned();
        Some(Self { method: request.method, item })
    }
}

/// A result, and where it comes from.
#[derive(Debug)]
pub(super) struct SourcedResult {
    pub(super) result: RawJson,
    pub(super) source: ResultSource,
}

/// Where a result comes from.
#[derive(Debug)]
pub(super) enum ResultSource {
    /// The hub itself, or several servers.
    Hub,
    /// A file or the entry of a skill; of the hub itself if there is no server.
    Skill { server: Option<ServerId>, name: String },
    /// A server.
    Server(ServerId),
    /// A server, with one of its prompts.
    Prompt(Box<OfferedItem>),
}

impl SourcedResult {
    /// A result of the hub.
    pub(super) fn of_hub(result: RawJson) -> Self {
        Self { result, source: ResultSource::Hub }
    }

    /// A result of a server.
    pub(super) fn of_server(result: RawJson, server: &ServerId) -> Self {
        Self { result, source: ResultSource::Server(server.clone()) }
    }
}

impl ItemUse {
    /// The record of a successful use, with the server that answered and the rule that allowed it.
    pub(super) fn event(self, source: &ResultSource, access: &ProfileAccess) -> UseEvent {
        let Self { method, item } = self;
        let (server, rule) = match source {
            ResultSource::Hub => (None, None),
            ResultSource::Skill { server, name } => {
                let source = server.clone().map_or(Source::Skill, Source::Server);
                let full = server.as_ref().map_or_else(|| name.clone(), |server| format!("{server}:{name}"));
                let names = [name.as_str(), full.as_str()];
                let rule = access.allowing_rule(Action::UseSkill, ItemKind::Skill, &source, &names);
                (server.clone(), rule)
            }
            ResultSource::Server(server) => {
                let source = Source::Server(server.clone());
                let rule = access.allowing_rule(Action::Read, ItemKind::Resource, &source, &[&item]);
                (Some(server.clone()), rule)
            }
            ResultSource::Prompt(entry) => {
                let server = entry.server.id().clone();
                let names = entry.names();
                let names = names.each_ref().map(String::as_str);
                let source = Source::Server(server.clone());
                let rule = access.allowing_rule(Action::GetPrompt, ItemKind::Prompt, &source, &names);
                (Some(server), rule)
            }
        };
        let operation = match method {
            BackendMethod::GetPrompt => "get prompt",
            BackendMethod::GetSkill => "get skill",
            _ => "read",
        };
        UseEvent {
            operation: operation.to_owned(),
            item,
            server: server.map(|server| server.to_string()),
            rule: rule.map(|rule| rule.to_string()),
        }
    }
}
