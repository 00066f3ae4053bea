//! The control tools as served to clients of a profile: `search_tools`, `describe_tool`, `call_tool` and `use_skill` reach only
//! the tools and skills that the profile shows, under the names it shows. Each call is checked here before it is passed to its
//! host.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use toolhub_core::error::UnknownTool;
use toolhub_core::finder::SearchResult;
use toolhub_core::lang::LocalizedText;
use toolhub_core::{CallerHandle, Coercion, Localize as _, RawJson, RawObject, ServerId, ToolError};
use toolhub_engine::coerce::coerce;
use toolhub_engine::{MAX_SUGGESTIONS, similar_names};
use toolhub_mcp_gateway::{GatewayCall, RpcError};

use super::answers::tool_error;
use super::backend::HubBackend;
use super::client_errors::error_for_clients;
use super::prepared_call::{PreparedCall, ScriptRole};
use super::script_tools::{search_signature, tool_declaration};
use super::target_kind::TargetKind;
use super::tool_lookup::{ToolLookup, ToolUse};
use super::view::{ToolTarget, View};
use crate::settings::Expose;

/// Default and maximum number of tools in a search result.
const DEFAULT_SEARCH_RESULTS: usize = 5;
const MAX_SEARCH_RESULTS: usize = 50;
/// Factor by which a search is deepened if several hits have the same name.
const DEPTH_FACTOR: usize = 4;

impl HubBackend {
    /// Runs a control tool. Checks apply to the arguments after coercion.
    pub(super) async fn control(
        &self,
        view: &View,
        target: &ToolTarget,
        call: GatewayCall,
    ) -> Result<RawJson, RpcError> {
        let arguments = match self.final_arguments(target, &call.arguments) {
            Ok(arguments) => arguments,
            Err(error) => return Ok(tool_error(&error_for_clients(&error, self.lang))),
        };
        let call_arguments = arguments.object().unwrap_or_default();
        let text =
            |key: &str| call_arguments.get(key).and_then(RawJson::text).unwrap_or_default().into_owned();
        match target.kind {
            TargetKind::Plain => self.call_target(view, target, call).await,
            TargetKind::Search => {
                let limit = call_arguments.get("limit").and_then(|limit| limit.decode::<usize>().ok());
                Ok(self
                    .search(
                        view,
                        &text("query"),
                        limit.unwrap_or(DEFAULT_SEARCH_RESULTS).clamp(1, MAX_SEARCH_RESULTS),
                    )
                    .await)
            }
            TargetKind::Describe => {
                let tool_name = text("name");
                let tool_name = tool_name.trim();
                let lookup = ToolLookup::named(ToolUse::Describe, tool_name);
                Ok(match self.find_tool(view, &call.caller, &lookup) {
                    Some(named_target) => self.described(tool_name, &named_target),
                    None => tool_error(&self.unknown(view, tool_name).message),
                })
            }
            TargetKind::Call => {
                let tool_name = text("name");
                let (tool_name, source) = (tool_name.trim(), text("source"));
                let lookup = ToolLookup { tool_use: ToolUse::Call, name: tool_name, source: &source };
                match self.find_tool(view, &call.caller, &lookup).as_deref() {
                    Some(named_target) if named_target.kind == TargetKind::Call => {
                        Ok(tool_error(&self_call_error().localize(self.lang)))
                    }
                    Some(named_target) => {
                        let inner =
                            call_arguments.get("arguments").cloned().unwrap_or_else(RawJson::empty_object);
                        let inner =
                            GatewayCall { name: tool_name.to_owned(), arguments: inner, caller: call.caller };
                        Box::pin(self.dispatch(view, named_target, inner)).await
                    }
                    None => Ok(tool_error(&self.not_found(view, tool_name, source.trim()))),
                }
            }
            TargetKind::UseSkill => {
                if let Err(unknown) = self.check_skill(&arguments, &call.caller) {
                    return Ok(tool_error(&unknown.localize(self.lang)));
                }
                let call = GatewayCall { arguments, ..call };
                let prepared = PreparedCall { call, coercion: Coercion::Off, script: ScriptRole::default() };
                self.run(view, target, prepared).await
            }
            TargetKind::RunScript => {
                let call = GatewayCall { arguments, ..call };
                let script = ScriptRole::default();
                self.run_script(target, PreparedCall { call, coercion: Coercion::Off, script }).await
            }
            TargetKind::SkillScript => self.run_script(target, self.prepared(target, call)).await,
        }
    }

    /// Checks that the caller may use the skill in the arguments of `use_skill`.
    pub(super) fn check_skill(
        &self,
        arguments: &RawJson,
        caller: &CallerHandle,
    ) -> Result<(), LocalizedText> {
        let members = arguments.object().unwrap_or_default();
        let skill = members.get("skill").and_then(RawJson::text).unwrap_or_default();
        let access = self.access_of_caller(caller);
        if !skill.trim().is_empty() && self.admits_skill(&skill, &access) {
            return Ok(());
        }
        if self.records_refusals(&access) && self.profile.admits_skill(&skill) {
            self.note_hidden(&access, "use skill", &skill);
        }
        Err(LocalizedText::new(format!("there is no skill `{skill}`"), format!("没有技能 `{skill}`")))
    }

    /// The error if `call_tool` names a tool that the profile does not show: unknown source, no such tool at the source, or
    /// unknown tool.
    fn not_found(&self, view: &View, name: &str, source: &str) -> String {
        if matches!(source, "" | "auto") {
            return self.unknown(view, name).message;
        }
        let sources: BTreeSet<String> = view.sources().map(ToString::to_string).collect();
        let error = if sources.contains(source) {
            let source_tools = view.names_at(source);
            ToolError::UnknownTool(Box::new(UnknownTool {
                tool: name.to_owned(),
                server: Some(ServerId::new(source)),
                near: similar_names(name, source_tools, MAX_SUGGESTIONS),
                ..UnknownTool::default()
            }))
        } else {
            let near = similar_names(source, sources.iter().map(String::as_str), MAX_SUGGESTIONS);
            ToolError::UnknownSource { name: source.to_owned(), near }
        };
        error_for_clients(&error, self.lang)
    }

    /// The arguments that a control tool receives: with the arguments fixed by the owner, coerced if the profile enables
    /// coercion, and validated against the tool's schema.
    pub(super) fn final_arguments(
        &self,
        target: &ToolTarget,
        call_arguments: &RawJson,
    ) -> Result<RawJson, ToolError> {
        let arguments = target.with_fixed(call_arguments.clone());
        let catalog = self.hub.catalog();
        let Some(entry) = catalog.named(target.tool.as_str()).find(|entry| target.is_served_by(&entry.tool))
        else {
            return Err(ToolError::Internal);
        };
        let checked = match entry.check(&arguments) {
            Err(error) if self.profile.coerce_arguments => {
                let coerced = coerce(entry.tool.definition.input_schema(), &arguments).ok_or(error);
                coerced.and_then(|coerced| entry.check(&coerced.arguments).map(|()| coerced.arguments))
            }
            checked => checked.map(|()| arguments),
        };
        // The error would list skills that the caller does not see.
        checked.map_err(|error| match target.kind {
            TargetKind::UseSkill => ToolError::failed(LocalizedText::new(
                "wrong arguments for `use_skill`: `skill` is the name of a listed skill, `file` one of its files",
                "`use_skill` 的参数有误：`skill` 是已列出的技能名，`file` 是其中的文件",
            )),
            _ => error,
        })
    }

    /// Whether clients of this profile call tools in scripts.
    fn is_code_mode(&self) -> bool {
        self.profile.expose == Expose::Code
    }

    /// The answer of `describe_tool`: the definition, or its declaration in TypeScript if scripts call it.
    fn described(&self, name: &str, target: &ToolTarget) -> RawJson {
        let definition = &target.definition;
        let declaration = tool_declaration(name, target).filter(|_| self.is_code_mode());
        let text = declaration.unwrap_or_else(|| toolhub_core::json::pretty_json(definition.get()));
        let block = RawObject::default().with("type", "text").with("text", text);
        let structured = RawObject::default().with("tools", RawJson::of(&[definition]));
        RawObject::default()
            .with("content", RawJson::of(&[block]))
            .with("structuredContent", structured)
            .into_raw()
    }

    async fn search(&self, view: &View, query: &str, limit: usize) -> RawJson {
        // Scores and confidence depend on all tools that are searched: hidden ones are left out before.
        let catalog = self.hub.catalog();
        let visible = Arc::new(catalog.filtered(|entry| view.name_of(&entry.tool).is_some()));
        let mut depth = limit.saturating_mul(DEPTH_FACTOR);
        let (search_result, hits) = loop {
            let search_result = self.hub.search_among(query, depth, Arc::clone(&visible)).await;
            let hits = visible_hits(view, &search_result, limit);
            let exhausted = !search_result.fits || search_result.hits.len() < depth;
            if hits.len() >= limit || exhausted {
                break (search_result, hits);
            }
            // Several tools may have the same name in the profile.
            depth = depth.saturating_mul(DEPTH_FACTOR * DEPTH_FACTOR);
        };
        let mut tools = Vec::new();
        let mut text = String::new();
        for (name, score) in &hits {
            let Some(target) = view.targets.get(*name) else { continue };
            let definition = target.definition.object().unwrap_or_default();
            let what = definition.get("description").and_then(|what| what.decode::<String>().ok());
            let what = what.unwrap_or_default();
            let line = what.split_whitespace().collect::<Vec<_>>().join(" ");
            let line = toolhub_core::text::truncate(&line, 160).unwrap_or(line);
            match search_signature(name, target).filter(|_| self.is_code_mode()) {
                Some(signature) => text.push_str(&format!("- {signature}: {line}\n")),
                None => text.push_str(&format!("- {name}: {line}\n")),
            }
            tools.push(
                RawObject::default()
                    .with("name", *name)
                    .with("description", what)
                    .with("score", RawJson::of(score)),
            );
        }
        text.push_str(&match hits.is_empty() {
            true => format!("no tool fits `{query}`"),
            false if self.is_code_mode() => "run_script calls them.".to_owned(),
            false => "describe_tool tells the arguments of one, call_tool calls it.".to_owned(),
        });
        let confidence = if search_result.fits { search_result.confidence } else { 0.0 };
        let block = RawObject::default().with("type", "text").with("text", text);
        let structured = RawObject::default()
            .with("tools", RawJson::of(&tools))
            .with("fits", !hits.is_empty())
            .with("confidence", RawJson::of(&confidence));
        RawObject::default()
            .with("content", RawJson::of(&[block]))
            .with("structuredContent", structured)
            .into_raw()
    }
}

/// The hits that the profile shows, best first, under the names it shows.
fn visible_hits<'v>(view: &'v View, search_result: &SearchResult, limit: usize) -> Vec<(&'v str, f64)> {
    let mut seen = HashSet::new();
    let named = search_result.fitting().iter().filter_map(|hit| Some((view.name_of(&hit.tool)?, hit.score)));
    named.filter(|(name, _)| seen.insert(*name)).take(limit).collect()
}

fn self_call_error() -> LocalizedText {
    LocalizedText::new(
        "`call_tool` calls other tools, not itself: name the tool that you mean",
        "`call_tool` 用来调用其他工具，不能调用自身：请给出要用的工具名",
    )
}
