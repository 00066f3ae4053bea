//! Checks profiles for names of tools, sources and skills that do not exist. Most of them are typing errors.

use toolhub_agent::ToolAllowlist;
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_core::{ControlProperty, ControlTool, RawJson, Source, ToolError};
use toolhub_engine::{CatalogEntry, MAX_SUGGESTIONS, similar_names};
use toolhub_mcp_gateway::{PortabilityError, make_portable};

use super::assigned_names::NameInputs;
use super::overrides::{AmbiguousOverride, AwaitedOverride};
use crate::hub::Hub;
use crate::settings::ProfileSettings;

impl Hub {
    /// Problems with names in the profiles of the gateway. Tools are checked only once all servers have been listed, since an
    /// unknown tool may belong to a server that has not.
    pub fn profile_problems(&self) -> Vec<LocalizedText> {
        let mut problems = Vec::new();
        let unlisted = self.not_in_catalog();
        let catalog = self.catalog();
        let names: Vec<&str> = catalog.iter().map(|entry| entry.tool.name().as_str()).collect();
        let all_listed = self.unlisted().is_empty();
        for (profile, settings) in &self.settings().profiles {
            let is_source = |name: &str| ["native", "skill"].contains(&name) || self.servers.contains(name);
            let servers = self.servers.load();
            let sources = servers.iter().map(|server| server.id().as_str()).chain(["native", "skill"]);
            let sources: Vec<&str> = sources.collect();
            let unknown = settings.servers.iter().filter(|name| !is_source(name)).map(String::as_str);
            problems.extend(unknown.map(|name| {
                let hint = hint(name, &sources, "toolhub servers list", "列出所有服务器");
                LocalizedText::new(
                    format!(
                        "`[profiles.{profile}] servers` names `{name}`, and no server is called that; {}",
                        hint.0
                    ),
                    format!("`[profiles.{profile}] servers` 中的 `{name}` 不是任何服务器的名称；{}", hint.1),
                )
            }));
            let policy = self.engine.policy();
            let unlisted: Vec<Source> = unlisted
                .iter()
                .filter(|id| settings.has_source(id.as_str()))
                .cloned()
                .map(Source::Server)
                .collect();
            let inputs = NameInputs {
                policy: &policy,
                profile: settings,
                sources: self.source_ids(),
                previous: None,
                all_listed: true,
                unlisted: &unlisted,
            };
            let bound = inputs.bound_overrides(&catalog);
            let withheld = bound.awaited.iter().filter(|bound_override| bound_override.is_withheld);
            problems.extend(withheld.map(|bound_override| awaited_override(profile, bound_override)));
            if all_listed {
                problems.extend(unknown_tools(profile, settings, &names));
                problems.extend(
                    bound
                        .ambiguous
                        .iter()
                        .map(|bound_override| ambiguous_override(profile, settings, bound_override)),
                );
            }
            if self.settings().auth.tokens.len() > 1 {
                let reserved = ControlTool::names_with(ControlProperty::OwnerData)
                    .filter(|name| settings.names_tool(name));
                problems.extend(reserved.map(|name| not_for_several(profile, name)));
            }
        }
        let left_out = catalog
            .iter()
            .filter_map(|entry| Some((entry, make_portable(entry.tool.definition.raw()).err()?)));
        problems.extend(left_out.map(|(entry, PortabilityError(why))| not_offered(entry, &why)));
        problems
    }
}

fn not_offered(entry: &CatalogEntry, why: &LocalizedText) -> LocalizedText {
    let (name, source) = (entry.tool.name(), &entry.tool.source);
    let (en, zh) = (why.localize(Lang::En), why.localize(Lang::Zh));
    let (call_en, call_zh) = match accepts_arguments(entry) {
        true => ("; `toolhub call` can call it", "；`toolhub call` 仍可调用"),
        false => ("", ""),
    };
    LocalizedText::new(
        format!(
            "`{name}` of `{source}` is not offered to clients of the gateway, which would refuse the whole list: {en} (`lossless = true` in a profile offers it{call_en})"
        ),
        format!(
            "`{source}` 的 `{name}` 不会提供给网关的客户端，否则它们会拒绝整个列表：{zh}（在配置方案中设置 `lossless = true` 可照常提供{call_zh}）"
        ),
    )
}

/// Whether the tool's schema can accept any arguments: it compiles and its root admits an object.
fn accepts_arguments(entry: &CatalogEntry) -> bool {
    match entry.check(&RawJson::empty_object()) {
        Ok(()) => true,
        Err(ToolError::InvalidArguments { problems, .. }) => {
            problems.iter().all(|problem| !problem.argument.is_empty())
        }
        Err(_) => false,
    }
}

fn not_for_several(profile: &str, name: &str) -> LocalizedText {
    LocalizedText::new(
        format!(
            "`[profiles.{profile}]` names `{name}`, which is not offered: `[auth] tokens` lets several callers in, and it would show each the results of the others"
        ),
        format!(
            "`[profiles.{profile}]` 指定了 `{name}`，但不会提供：`[auth] tokens` 允许多个调用方，它会让各方看到彼此的结果"
        ),
    )
}

fn awaited_override(profile: &str, awaited: &AwaitedOverride) -> LocalizedText {
    let AwaitedOverride { key, sources, .. } = awaited;
    let list = |between: &str| {
        let sources: Vec<String> = sources.iter().map(|source| format!("`{source}`")).collect();
        sources.join(between)
    };
    LocalizedText::new(
        format!(
            "`[profiles.{profile}] overrides` names `{key}` without its server: the tool is not offered before {} can be listed, which may have it and comes first; write `SERVER__{key}` to name the server",
            list(", ")
        ),
        format!(
            "`[profiles.{profile}] overrides` 中的 `{key}` 未指明服务器：{}顺序在前且可能提供该工具，在其工具列表获取成功之前不会提供该工具；请写成 `SERVER__{key}` 以指明服务器",
            list("、")
        ),
    )
}

fn ambiguous_override(
    profile: &str,
    settings: &ProfileSettings,
    ambiguous: &AmbiguousOverride,
) -> LocalizedText {
    let AmbiguousOverride { key, holder, others } = ambiguous;
    let list = |between: &str| {
        let others: Vec<String> = others.iter().map(|source| format!("`{source}`")).collect();
        others.join(between)
    };
    let fixes = settings.overrides.get(key).is_some_and(|overridden| !overridden.arguments.is_empty());
    let (withheld_en, withheld_zh) = match fixes {
        true => (", whose tool is not offered", "的工具不会提供"),
        false => (", whose tool stays as it is", "的工具保持原样"),
    };
    LocalizedText::new(
        format!(
            "`[profiles.{profile}] overrides` names `{key}`, which several servers offer: it applies to `{holder}`, not to {}{withheld_en}; write `{holder}__{key}` to name the server",
            list(", ")
        ),
        format!(
            "`[profiles.{profile}] overrides` 中的 `{key}` 由多个服务器提供：仅对 `{holder}` 生效，{}{withheld_zh}；请写成 `{holder}__{key}` 以指明服务器",
            list("、")
        ),
    )
}

/// Suggests similar names, in both languages; if there are none, the command that lists all names.
fn hint(name: &str, names: &[&str], command: &str, lists: &str) -> (String, String) {
    // Wildcards are ignored in the comparison.
    match similar_names(name.trim_matches('*'), names.iter().copied(), MAX_SUGGESTIONS) {
        similar if similar.is_empty() => (format!("`{command}` lists them"), format!("`{command}` {lists}")),
        similar => {
            let similar: Vec<String> = similar.iter().map(|similar| format!("`{similar}`")).collect();
            (format!("near to it: {}", similar.join(", ")), format!("相近的名称：{}", similar.join("、")))
        }
    }
}

fn unknown_tools(profile: &str, settings: &ProfileSettings, names: &[&str]) -> Vec<LocalizedText> {
    // A pattern may use the tool's own name, or its prefixed name if several sources have that name.
    let fits = |pattern: &str| {
        let bare_name = pattern.rsplit_once("__").map_or(pattern, |(_, bare_name)| bare_name);
        [pattern, bare_name]
            .iter()
            .any(|pattern| ToolAllowlist::new(vec![(*pattern).to_owned()]).without(names).next().is_none())
    };
    let renamed =
        |name: &str| settings.overrides.values().any(|overridden| overridden.name.as_deref() == Some(name));
    let overrides: Vec<String> = settings.overrides.keys().cloned().collect();
    let lists = [
        ("tools", &settings.tools),
        ("allow", &settings.allow),
        ("deny", &settings.deny),
        ("pinned", &settings.pinned),
        ("overrides", &overrides),
    ];
    let mut problems = Vec::new();
    for (key, list) in lists {
        let is_there = |name: &String| fits(name) || (["pinned", "deny"].contains(&key) && renamed(name));
        for name in list.iter().filter(|name| !is_there(name)) {
            let hint = hint(name, names, "toolhub tools", "列出所有工具");
            problems.push(LocalizedText::new(
                format!(
                    "`[profiles.{profile}] {key}` names `{name}`, and no tool is called that; {}",
                    hint.0
                ),
                format!("`[profiles.{profile}] {key}` 中的 `{name}` 不是任何工具的名称；{}", hint.1),
            ));
        }
    }
    problems
}
