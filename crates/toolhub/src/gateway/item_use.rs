//! The audit records of successful uses of resources, prompts and skills.

use toolhub_access::{Action, ItemKind};
use toolhub_core::audit::UseEvent;
use toolhub_core::{RawJson, Source};
use toolhub_mcp_gateway::{BackendMethod, BackendRequest};

use super::backend::HubBackend;
use super::profile_access::ProfileAccess;

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

impl HubBackend {
    /// The record of a successful use, with the server and the rule that allowed it.
    pub(super) async fn use_event(&self, used: ItemUse, access: &ProfileAccess) -> UseEvent {
        let ItemUse { method, item } = used;
        let (server, rule) = match method {
            BackendMethod::GetPrompt => {
                let prompt = self.prompt_named(&item).await;
                let server = prompt.as_ref().map(|entry| entry.server.id().clone());
                let rule = prompt.and_then(|entry| {
                    let source = Source::Server(entry.server.id().clone());
                    let names = entry.names();
                    let names = names.each_ref().map(String::as_str);
                    access.allowing_rule(Action::GetPrompt, ItemKind::Prompt, &source, &names)
                });
                (server, rule)
            }
            _ => match self.skill_of(&item, access).await {
                Some((server, name)) => {
                    let source = server.clone().map_or(Source::Skill, Source::Server);
                    let full =
                        server.as_ref().map_or_else(|| name.clone(), |server| format!("{server}:{name}"));
                    let names = [name.as_str(), full.as_str()];
                    (server, access.allowing_rule(Action::UseSkill, ItemKind::Skill, &source, &names))
                }
                None => {
                    let owner = self.owners(&item, access, Action::Read).await.into_iter().next();
                    let server = owner.map(|server| server.id().clone());
                    let rule = server.as_ref().and_then(|server| {
                        let source = Source::Server(server.clone());
                        access.allowing_rule(Action::Read, ItemKind::Resource, &source, &[&item])
                    });
                    (server, rule)
                }
            },
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
