//! The view of a profile on the catalog: which of its named tools a principal sees, their definitions, and the sources that serve
//! each.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use toolhub_core::json::fold_key;
use toolhub_core::tool::ApprovalStatus;
use toolhub_core::{ControlProperty, ControlTool, FastMap, RawJson, RawObject, Source, Tool, ToolName};
use toolhub_engine::{Catalog, CatalogEntry, Projection};
use toolhub_mcp_gateway::{ToolList, make_portable};
use toolhub_skills::use_skill_definition;

use super::assigned_names::{NamedTool, ToolNames, is_owner_tool, prefixed_name};
use super::overrides::{ToolId, id_of};
use super::profile_access::ProfileAccess;
use super::script_tool_lists::ScriptToolLists;
use super::target_kind::TargetKind;
use crate::settings::{Expose, ProfileSettings, ToolOverride};

/// With more tools than this, `auto` enables search.
const SEARCH_THRESHOLD: usize = 100;

/// How many principals the gateway distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PrincipalCount {
    /// All data belongs to one principal.
    One,
    /// A principal must not see the data of another.
    Several,
}

/// The tool behind an offered name.
#[derive(Debug, Clone)]
pub(super) struct ToolTarget {
    pub(super) kind: TargetKind,
    /// Its name in the catalog.
    pub(super) tool: ToolName,
    /// The sources that may serve it.
    pub(super) sources: Arc<[Source]>,
    /// Arguments fixed by the owner.
    fixed: Option<RawObject>,
    /// The definition as offered to clients.
    pub(super) definition: RawJson,
}

/// The tools that a profile shows.
#[derive(Debug)]
pub(super) struct View {
    pub(super) list: Arc<ToolList>,
    pub(super) targets: FastMap<String, ToolTarget>,
    /// The offered name of each tool.
    names: HashMap<ToolId, String>,
    /// Further names that calls may use.
    aliases: HashMap<String, ToolTarget>,
    /// The catalog that it was built from.
    catalog: Arc<Catalog>,
    /// The offered tools with their offered texts and schemas.
    shown: OnceLock<Arc<Catalog>>,
    /// The tools for scripts.
    pub(super) script_tools: ScriptToolLists,
}

/// The inputs of a view.
pub(super) struct ViewOptions<'a> {
    pub(super) profile: &'a ProfileSettings,
    /// What the principal may see.
    pub(super) access: &'a ProfileAccess,
    pub(super) principals: PrincipalCount,
}

impl ViewOptions<'_> {
    /// Whether the principal may see a tool and use its definition.
    fn shows(&self, entry: &CatalogEntry) -> bool {
        let is_visible = match TargetKind::of(&entry.tool) {
            TargetKind::Plain | TargetKind::SkillScript => self.access.sees_tool(entry),
            TargetKind::Search | TargetKind::Describe | TargetKind::Call | TargetKind::RunScript => {
                !self.access.forbids_finder(entry)
            }
            // It is omitted if no skill is visible.
            TargetKind::UseSkill => true,
        };
        is_visible
            && entry.tool.approval != ApprovalStatus::Quarantined
            && (!is_owner_tool(&entry.tool) || self.principals == PrincipalCount::One)
    }
}

/// A tool under its offered name, with those of its sources that the principal sees.
struct VisibleTool<'a> {
    tool: &'a NamedTool,
    entries: Vec<&'a Arc<CatalogEntry>>,
}

impl<'a> VisibleTool<'a> {
    fn of(tool: &'a NamedTool, options: &ViewOptions<'_>) -> Option<Self> {
        let entries: Vec<&Arc<CatalogEntry>> =
            tool.entries.iter().filter(|entry| options.shows(entry)).collect();
        (!entries.is_empty()).then_some(Self { tool, entries })
    }
}

impl View {
    /// The part of the named tools that a principal sees. Names are not assigned again.
    pub(super) fn new(catalog: Arc<Catalog>, names: &ToolNames, options: &ViewOptions<'_>) -> Self {
        let profile = options.profile;
        let mut visible: Vec<VisibleTool<'_>> =
            names.tools.iter().filter_map(|tool| VisibleTool::of(tool, options)).collect();
        let many = visible.iter().filter(|visible| !visible.tool.is_mode_only).count() > SEARCH_THRESHOLD;
        // The mode whose tools are listed beside the pinned ones, if not all are.
        let mode = match profile.expose {
            Expose::All => None,
            Expose::Auto => many.then_some(ControlProperty::SearchMode),
            Expose::Search => Some(ControlProperty::SearchMode),
            Expose::Code => Some(ControlProperty::CodeMode),
        };
        let mode_tools: Vec<&str> = mode.into_iter().flat_map(ControlTool::names_with).collect();
        let is_mode_tool_name = |name: &str| mode_tools.contains(&name);
        visible.retain(|VisibleTool { tool, entries }| {
            !tool.is_mode_only || entries.iter().any(|entry| is_mode_tool_name(entry.tool.name().as_str()))
        });
        let targets: Vec<(&str, ToolTarget)> = visible
            .iter()
            .filter_map(|visible| Some((visible.tool.name.as_str(), target_of(visible, options)?)))
            .collect();
        let is_mode_tool =
            |target: &ToolTarget| target.is_native() && is_mode_tool_name(target.tool.as_str());
        // If a tool of the mode is missing, all tools are listed.
        let present = targets.iter().filter(|(_, target)| is_mode_tool(target)).count();
        let is_reduced = mode.is_some() && present == mode_tools.len();
        let listed = |name: &str, target: &ToolTarget| {
            !is_reduced
                || is_mode_tool(target)
                || target.activates()
                || profile.pinned.iter().any(|pinned| pinned == name)
        };
        let list = ToolList::new(
            targets.iter().map(|(name, target)| (*name, &target.definition, listed(name, target))),
        );
        let targets: FastMap<String, ToolTarget> =
            targets.into_iter().map(|(name, target)| (name.to_owned(), target)).collect();
        let mut offered = HashMap::new();
        for VisibleTool { tool, entries } in visible {
            if targets.contains_key(&tool.name) {
                offered.extend(entries.iter().map(|entry| (id_of(entry), tool.name.clone())));
            }
        }
        let alias = |(name, (source, offered)): (&String, &(Source, String))| {
            let target = targets.get(offered).filter(|target| target.sources.contains(source))?;
            Some((name.clone(), ToolTarget { sources: Arc::from([source.clone()]), ..target.clone() }))
        };
        Self {
            list: Arc::new(list),
            aliases: names.aliases.iter().filter_map(alias).collect(),
            targets,
            names: offered,
            catalog,
            shown: OnceLock::new(),
            script_tools: ScriptToolLists::default(),
        }
    }

    /// The catalog that it was built from.
    pub(super) fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The offered tools under their names in the catalog, with the texts and schemas that clients see.
    pub(super) fn shown_catalog(&self) -> &Arc<Catalog> {
        self.shown.get_or_init(|| {
            Arc::new(self.catalog.projected(|entry| {
                let target = self.name_of(&entry.tool).and_then(|name| self.targets.get(name));
                let Some(target) = target else { return Projection::Omit };
                let own = &entry.tool.definition;
                if target.definition.get() == own.raw().get() {
                    return Projection::Keep;
                }
                // The hints and tags of the owner, and those derived from the original definition, remain.
                let tags = entry.tags().to_vec();
                own.with_shown(&target.definition).map_or(Projection::Omit, |definition| {
                    let definition = Arc::new(definition);
                    Projection::Replace(Tool { definition, tags, ..entry.tool.clone() })
                })
            }))
        })
    }

    /// The target of a tool, at its source only.
    pub(super) fn target_of(&self, tool: &Tool) -> Option<ToolTarget> {
        let target = self.targets.get(self.name_of(tool)?)?;
        Some(ToolTarget { sources: Arc::from([tool.source.clone()]), ..target.clone() })
    }

    /// The tool with that offered name, or else with that catalog name, at one source.
    pub(super) fn target_at(&self, name: &str, source: &str) -> Option<ToolTarget> {
        let at_source = |target: &ToolTarget| {
            let at = target.sources.iter().find(|at| at.to_string() == source)?;
            Some(ToolTarget { sources: Arc::from([at.clone()]), ..target.clone() })
        };
        if let Some(target) = self.target(name).and_then(at_source) {
            return Some(target);
        }
        let is_named = |(at, tool): &&ToolId| tool.as_str() == name && at.to_string() == source;
        let id = self.names.keys().find(is_named)?;
        at_source(self.targets.get(self.names.get(id)?)?)
    }

    /// The sources of the shown tools, with duplicates.
    pub(super) fn sources(&self) -> impl Iterator<Item = &Source> {
        self.names.keys().map(|(source, _)| source)
    }

    /// The offered names of the tools of a source.
    pub(super) fn names_at(&self, source: &str) -> impl Iterator<Item = &str> {
        let own = self.names.iter().filter(move |((at, _), _)| at.to_string() == source);
        own.map(|(_, exposed)| exposed.as_str())
    }

    /// Whether a tool with this name in the catalog is shown, under whichever name.
    pub(super) fn has_tool(&self, catalog_name: &str) -> bool {
        self.names.keys().any(|(_, tool)| tool.as_str() == catalog_name)
    }

    /// Resolves a name in a call.
    pub(super) fn target(&self, name: &str) -> Option<&ToolTarget> {
        self.targets.get(name).or_else(|| self.aliases.get(name))
    }

    /// The offered name of a tool, if it is offered.
    pub(super) fn name_of(&self, tool: &Tool) -> Option<&str> {
        self.names.get(&(tool.source.clone(), tool.name().clone())).map(String::as_str)
    }
}

impl ToolTarget {
    /// Whether a native tool serves it.
    pub(super) fn is_native(&self) -> bool {
        *self.sources == [Source::Native]
    }

    /// Whether that tool of the catalog is among those that serve it.
    pub(super) fn is_served_by(&self, tool: &Tool) -> bool {
        *tool.name() == self.tool && self.sources.contains(&tool.source)
    }

    /// Adds the arguments fixed by the owner, exactly once and at the end. Removes arguments of the client with the same name,
    /// ignoring case, since a server may parse names case-insensitively.
    pub(super) fn with_fixed(&self, arguments: RawJson) -> RawJson {
        let Some(fixed) = &self.fixed else { return arguments };
        let names: Vec<String> = fixed.iter().map(|(name, _)| fold_key(name)).collect();
        let mut all = arguments.object().unwrap_or_default();
        all.retain(|name| !names.contains(&fold_key(name)));
        fixed.iter().fold(all, |all, (name, value)| all.with(name.to_owned(), value.clone())).into_raw()
    }

    /// Whether this is `use_skill`, which is listed even if search is enabled.
    fn activates(&self) -> bool {
        self.kind == TargetKind::UseSkill
    }
}

/// The target of a visible tool; `None` if it cannot be offered.
fn target_of(visible: &VisibleTool<'_>, options: &ViewOptions<'_>) -> Option<ToolTarget> {
    let VisibleTool { tool, entries } = visible;
    let first = entries.first()?;
    let overridden = tool.overridden(options.profile);
    let definition = offered(first, &tool.name, overridden, options)?;
    let fixed = overridden.filter(|overridden| !overridden.arguments.is_empty()).map(|overridden| {
        overridden
            .arguments
            .iter()
            .fold(RawObject::default(), |all, (key, value)| all.with(key.clone(), value.clone()))
    });
    Some(ToolTarget {
        // A call of a group may reach any of its tools, and a script among them needs the tools of its caller.
        kind: entries
            .iter()
            .find(|entry| entry.tool.is_script)
            .map_or(TargetKind::of(&first.tool), |entry| TargetKind::of(&entry.tool)),
        tool: first.tool.name().clone(),
        sources: entries.iter().map(|entry| entry.tool.source.clone()).collect(),
        fixed,
        definition,
    })
}

/// The definition of `use_skill` with the skills that the profile admits; `None` if it admits none.
fn skills_offered(tool: &Tool, options: &ViewOptions<'_>) -> Option<RawJson> {
    let mut skills = use_skill_definition::listed(&tool.definition);
    skills.retain(|(name, _)| options.profile.admits_skill(name) && options.access.admits_skill(name));
    use_skill_definition::definition(&skills).map(|definition| definition.raw().clone())
}

/// The definition as offered: unchanged unless there is an override, a new name, or a rule about its arguments. Returns `None` if it
/// cannot be offered.
fn offered(
    entry: &CatalogEntry,
    name: &str,
    overridden: Option<&ToolOverride>,
    options: &ViewOptions<'_>,
) -> Option<RawJson> {
    let (tool, profile) = (&entry.tool, options.profile);
    let definition = || match options.access.narrow_schema(entry, tool.definition.input_schema()) {
        None => tool.definition.raw().clone(),
        Some(schema) => {
            let mut members = tool.definition.raw().object().unwrap_or_default();
            members.set("inputSchema", schema);
            members.into_raw()
        }
    };
    let raw = match TargetKind::of(tool) {
        TargetKind::UseSkill => skills_offered(tool, options)?,
        // Rules about arguments concern the tools that these find and call.
        TargetKind::Search | TargetKind::Describe | TargetKind::Call | TargetKind::RunScript => {
            tool.definition.raw().clone()
        }
        TargetKind::Plain | TargetKind::SkillScript if profile.lossless => definition(),
        TargetKind::Plain | TargetKind::SkillScript => make_portable(&definition()).ok()?,
    };
    if overridden.is_none() && name == tool.name().as_str() {
        return Some(raw);
    }
    let mut members = raw.object().unwrap_or_default();
    members.set("name", name);
    let Some(overridden) = overridden else {
        // The name no longer identifies the server, because characters were replaced: the description names it.
        let is_prefixed =
            prefixed_name(&tool.source, tool.name().as_str()).is_some_and(|whole| whole == name);
        if !is_prefixed && !profile.lossless {
            members
                .set("description", format!("[{}] {}", tool.source, tool.definition.description()).as_str());
        }
        return Some(members.into_raw());
    };
    if let Some(title) = &overridden.title {
        members.set("title", title.as_str());
    }
    if let Some(description) = &overridden.description {
        members.set("description", description.as_str());
    }
    if !overridden.arguments.is_empty() {
        let schema = options.access.narrow_schema(entry, tool.definition.input_schema());
        let schema = schema.unwrap_or_else(|| tool.definition.input_schema().clone());
        members.set("inputSchema", without(&schema, overridden));
    }
    Some(members.into_raw())
}

/// Removes the arguments fixed by the owner from a schema.
fn without(schema: &RawJson, overridden: &ToolOverride) -> RawJson {
    let mut schema = schema.object().unwrap_or_default();
    if let Some(mut properties) = schema.get("properties").and_then(RawJson::object) {
        overridden.arguments.keys().for_each(|key| properties.remove(key));
        schema.set("properties", properties);
    }
    if let Some(required) = schema.get("required").and_then(|list| list.decode::<Vec<String>>().ok()) {
        let left: Vec<String> =
            required.into_iter().filter(|key| !overridden.arguments.contains_key(key)).collect();
        schema.set("required", RawJson::of(&left));
    }
    schema.into_raw()
}
