//! `search_tools`, `describe_tool` and `call_tool` as clients of a profile use them: they reach what the profile shows,
//! under the names it shows, and nothing else.

use std::collections::HashSet;

use toolhub_core::finder::Search;
use toolhub_core::lang::Text;
use toolhub_core::{RawJson, RawObject, Say as _};
use toolhub_mcp::gateway::{GatewayCall, RpcError};

use super::backend::{HubBackend, tool_error};
use super::view::{Target, View};

/// Tools that are found where nobody says how many, and at most.
const USUAL: usize = 5;
const MOST: usize = 50;
/// So many times as many are looked through where a profile shows only some.
const DEEPER: usize = 4;

impl HubBackend {
    /// What one of the three comes to; `None` where another tool is called.
    pub(super) async fn find(
        &self,
        view: &View,
        target: &Target,
        call: &GatewayCall,
    ) -> Option<Result<RawJson, RpcError>> {
        let name = target.tool.as_str();
        if !target.finds() {
            return None;
        }
        let given = call.arguments.object().unwrap_or_default();
        let text = |key: &str| given.get(key).and_then(|value| value.decode::<String>().ok());
        // What is missing or wrong is told by the tool's own check.
        match name {
            "search_tools" => {
                let query = text("query")?;
                let limit = given.get("limit").and_then(|limit| limit.decode::<usize>().ok());
                Some(Ok(self.search(view, &query, limit.unwrap_or(USUAL).clamp(1, MOST)).await))
            }
            "describe_tool" => {
                let wanted = text("name")?;
                Some(Ok(match view.targets.get(wanted.trim()) {
                    Some(found) => described(&found.definition),
                    None => tool_error(&self.unknown(view, wanted.trim()).message),
                }))
            }
            _ => {
                let wanted = text("name")?;
                let arguments = given.get("arguments").cloned().unwrap_or_else(RawJson::empty_object);
                let itself = Text::new(
                    "`call_tool` calls other tools, not itself: name the tool that you mean",
                    "`call_tool` 用来调用其他工具，不能调用自身：请给出要用的工具名",
                );
                Some(match view.targets.get(wanted.trim()) {
                    Some(found) if found.tool.as_str() == "call_tool" => {
                        Ok(tool_error(&itself.say(self.lang)))
                    }
                    Some(found) => {
                        let call = GatewayCall { name: wanted, arguments, caller: call.caller.clone() };
                        match Box::pin(self.find(view, found, &call)).await {
                            Some(found) => found,
                            None => self.call_target(found, call).await,
                        }
                    }
                    None => Ok(tool_error(&self.unknown(view, wanted.trim()).message)),
                })
            }
        }
    }

    async fn search(&self, view: &View, query: &str, limit: usize) -> RawJson {
        let mut depth = limit.saturating_mul(DEEPER);
        let (found, hits) = loop {
            let found = self.hub.search(query, depth).await;
            let hits = shown(view, &found, limit);
            let exhausted = !found.fits || found.hits.len() < depth;
            if hits.len() >= limit || exhausted {
                break (found, hits);
            }
            // What the profile shows may all stand behind what it does not.
            depth = depth.saturating_mul(DEEPER * DEEPER);
        };
        let mut tools = Vec::new();
        let mut text = String::new();
        for (name, score) in &hits {
            let Some(target) = view.targets.get(*name) else { continue };
            let definition = target.definition.object().unwrap_or_default();
            let what = definition.get("description").and_then(|what| what.decode::<String>().ok());
            let what = what.unwrap_or_default();
            let line = what.split_whitespace().collect::<Vec<_>>().join(" ");
            let line = toolhub_core::text::cut(&line, 160).unwrap_or(line);
            text.push_str(&format!("- {name}: {line}\n"));
            tools.push(
                RawObject::default()
                    .with("name", *name)
                    .with("description", what)
                    .with("score", RawJson::of(score)),
            );
        }
        text.push_str(&match hits.is_empty() {
            true => format!("no tool fits `{query}`"),
            false => "describe_tool tells the arguments of one, call_tool calls it.".to_owned(),
        });
        let block = RawObject::default().with("type", "text").with("text", text);
        let structured = RawObject::default()
            .with("tools", RawJson::of(&tools))
            .with("fits", !hits.is_empty())
            .with("confidence", RawJson::of(&found.confidence));
        RawObject::default()
            .with("content", RawJson::of(&[block]))
            .with("structuredContent", structured)
            .into_raw()
    }
}

/// What a profile shows of what was found, best first, under the names it shows.
fn shown<'v>(view: &'v View, found: &Search, limit: usize) -> Vec<(&'v str, f64)> {
    let mut seen = HashSet::new();
    let named = found.fitting().iter().filter_map(|hit| Some((view.name_of(&hit.tool)?, hit.score)));
    named.filter(|(name, _)| seen.insert(*name)).take(limit).collect()
}

fn described(definition: &RawJson) -> RawJson {
    let text = toolhub_core::json::pretty(definition.get());
    let block = RawObject::default().with("type", "text").with("text", text);
    let structured = RawObject::default().with("tools", RawJson::of(&[definition]));
    RawObject::default()
        .with("content", RawJson::of(&[block]))
        .with("structuredContent", structured)
        .into_raw()
}
