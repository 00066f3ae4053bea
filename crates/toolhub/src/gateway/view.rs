//! The view of a profile on the catalog: which tools it shows, their names and descriptions, and the sources that serve each.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use toolhub_core::json::{canonical, folded};
use toolhub_core::tool::ApprovalStatus;
use toolhub_core::{FastMap, RUN_SCRIPT, RawJson, RawObject, Source, Tool, ToolName};
use toolhub_engine::reserved::{hashed, qualified};
use toolhub_engine::{Catalog, Entry, Policy};
use toolhub_mcp_gateway::{ToolList, portable};
use toolhub_skills::use_skill_definition;

use super::profile_access::ProfileAccess;
use super::script_tool_lists::ScriptToolLists;
use crate::settings::{Expose, Override, ProfileSettings};

/// With more tools than this, `auto` enables search.
const SEARCH_THRESHOLD: usize = 100;
/// The maximum length of a tool name (bytes).
const MAX_NAME_BYTES: usize = 128;
/// The tools for finding and calling other tools.
const FINDERS: [&str; 3] = ["search_tools", "describe_tool", "call_tool"];
/// The tools for finding other tools and calling them in scripts.
const CODE_TOOLS: [&str; 3] = ["search_tools", "describe_tool", RUN_SCRIPT];

/// How a call of a target is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// By the engine, like any tool.
    Plain,
    /// `search_tools`, restricted to the tools of the profile.
    Search,
    /// `describe_tool`, restricted to the tools of the profile.
    Describe,
    /// `call_tool`, restricted to the tools of the profile.
    Call,
    /// `use_skill`, restricted to the skills of the profile.
    UseSkill,
    /// `run_script`, restricted to the tools of the profile.
    RunScript,
    /// A script of a skill, restricted to the tools of the profile.
    SkillScript,
}

impl Kind {
    fn of(tool: &Tool) -> Self {
        match (&tool.source, tool.name().as_str()) {
            (Source::Native, "search_tools") => Self::Search,
            (Source::Native, "describe_tool") => Self::Describe,
            (Source::Native, "call_tool") => Self::Call,
            (Source::Native, RUN_SCRIPT) => Self::RunScript,
            (Source::Skill, use_skill_definition::NAME) => Self::UseSkill,
            (Source::Skill, _) if tool.is_script => Self::SkillScript,
            _ => Self::Plain,
        }
    }
}

/// How many principals the gateway distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Principals {
    /// All data belongs to one principal.
    One,
    /// A principal must not see the data of another.
    Several,
}

/// The tool behind an offered name.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) kind: Kind,
    /// Its name in the catalog.
    pub(super) tool: ToolName,
    /// The sources that may serve it.
    pub(super) among: Arc<[Source]>,
    /// Arguments fixed by the owner.
    fixed: Option<RawObject>,
    /// The definition as offered to clients.
    pub(super) definition: RawJson,
}

/// The tools that a profile shows.
#[derive(Debug)]
pub(super) struct View {
    pub(super) list: Arc<ToolList>,
    pub(super) targets: FastMap<String, Target>,
    /// The offered name of each tool.
    names: HashMap<(Source, ToolName), String>,
    /// Further names that calls may use: `source__tool` of every tool, and unprefixed names that a source had before another
    /// source offered the same name.
    aliases: HashMap<String, Target>,
    /// The source that had each name first. It keeps the name, so that no other source receives calls meant for it.
    holders: HashMap<String, Source>,
    /// Whether all servers had been listed when the view was built.
    pub(super) settled: bool,
    /// The tools for scripts.
    pub(super) script_tools: ScriptToolLists,
}

/// The inputs of a view.
pub(super) struct ViewOptions<'a> {
    pub(super) policy: &'a Policy,
    pub(super) profile: &'a ProfileSettings,
    /// What the principal may see.
    pub(super) access: &'a ProfileAccess,
    pub(super) principals: Principals,
    /// Groups of sources that the owner declared equivalent.
    pub(super) equivalent: &'a [Vec<String>],
    /// The previous view.
    pub(super) previous: Option<&'a View>,
    /// Whether all servers have been listed. Until then, which source has a name first depends on the order of their responses.
    pub(super) settled: bool,
}

impl ViewOptions<'_> {
    /// Whether tools with the same name are offered as one: the owner declared their sources equivalent, and each tool is
    /// read-only or idempotent.
    fn are_equivalent(&self, group: &[&Arc<Entry>]) -> bool {
        let repeatable = |entry: &&Arc<Entry>| {
            let hints = entry.tool.hints();
            hints.read_only == Some(true) || hints.idempotent == Some(true)
        };
        let declared = |sources: &Vec<String>| {
            group.iter().all(|entry| sources.contains(&entry.tool.source.to_string()))
        };
        group.iter().all(repeatable) && self.equivalent.iter().any(declared)
    }

    /// Whether this source may use the unprefixed name: no other source had it before.
    fn may_hold(&self, name: &str, source: &Source) -> bool {
        let holder = self.previous.and_then(|previous| previous.holders.get(name));
        holder.is_none_or(|holder| holder == source)
    }
}

impl View {
    pub(super) fn new(catalog: &Catalog, options: &ViewOptions<'_>) -> Self {
        let profile = options.profile;
        let mut exposed = ViewBuilder::default();
        let groups = groups(catalog, options);
        let mut named: Vec<(String, Vec<&Arc<Entry>>)> =
            groups.iter().flat_map(|group| named(group, options)).collect();
        let many = named.len() > SEARCH_THRESHOLD;
        // The tools that are listed beside the pinned ones, if not all are.
        let mode_tools = match profile.expose {
            Expose::All => None,
            Expose::Auto => many.then_some(FINDERS),
            Expose::Search => Some(FINDERS),
            Expose::Code => Some(CODE_TOOLS),
        };
        if let Some(tools) = mode_tools {
            add_mode_tools(&mut named, catalog, tools, options);
        }
        // A name assigned by the owner takes precedence over a tool that has the same name.
        let (overridden, others): (Vec<_>, Vec<_>) = named
            .into_iter()
            .enumerate()
            .partition(|(_, (name, entries))| has_assigned_name(name, entries, profile));
        // So does a prefixed name: otherwise its meaning would depend on the order of the servers.
        let (prefixed, plain): (Vec<_>, Vec<_>) = others.into_iter().partition(|(_, (name, entries))| {
            entries.first().is_some_and(|entry| entry.tool.name().as_str() != name.as_str())
        });
        for (order, (name, entries)) in overridden.into_iter().chain(prefixed).chain(plain) {
            exposed.add(order, name, &entries, options);
        }
        exposed.targets.sort_by_key(|(order, _, _)| *order);
        let is_of_mode = |target: &Target| {
            target.is_native() && mode_tools.is_some_and(|tools| tools.contains(&target.tool.as_str()))
        };
        // If a tool of the mode is missing, all tools are listed.
        let present = exposed.targets.iter().filter(|(_, _, target)| is_of_mode(target)).count();
        let is_reduced = mode_tools.is_some_and(|tools| present == tools.len());
        let listed = |name: &str, target: &Target| {
            !is_reduced
                || is_of_mode(target)
                || target.activates()
                || profile.pinned.iter().any(|pinned| pinned == name)
        };
        let list = ToolList::new(
            exposed
                .targets
                .iter()
                .map(|(_, name, target)| (name.as_str(), &target.definition, listed(name, target))),
        );
        let targets: FastMap<String, Target> =
            exposed.targets.into_iter().map(|(_, name, target)| (name, target)).collect();
        let mut view = Self {
            list: Arc::new(list),
            targets,
            names: exposed.names,
            aliases: HashMap::new(),
            holders: options.previous.map(|previous| previous.holders.clone()).unwrap_or_default(),
            settled: options.settled,
            script_tools: ScriptToolLists::default(),
        };
        if options.settled {
            view.add_holders();
        }
        view.add_aliases();
        view
    }

    fn add_holders(&mut self) {
        for ((source, tool), exposed) in &self.names {
            // The prefixed name stays reserved after the source is removed, so that no other source can take it.
            let prefixed = qualified(source, tool.as_str());
            self.holders.entry(prefixed).or_insert_with(|| source.clone());
            let alone = self.targets.get(exposed).is_some_and(|target| target.among.len() == 1);
            if alone && tool.as_str() == *exposed {
                self.holders.entry(tool.as_str().to_owned()).or_insert_with(|| source.clone());
            }
        }
    }

    fn add_aliases(&mut self) {
        for ((source, tool), exposed) in &self.names {
            let Some(target) = self.targets.get(exposed) else { continue };
            let mut further = vec![qualified(source, tool.as_str())];
            further.extend(prefixed_name(source, tool.as_str()));
            further
                .extend((self.holders.get(tool.as_str()) == Some(source)).then(|| tool.as_str().to_owned()));
            for name in further.into_iter().filter(|name| !self.targets.contains_key(name)) {
                self.aliases.insert(name, Target { among: Arc::from([source.clone()]), ..target.clone() });
            }
        }
    }

    /// The tool with that catalog name or offered name at one source.
    pub(super) fn target_at(&self, name: &str, source: &str) -> Option<Target> {
        let of_source = |((at, _), _): &(&(Source, ToolName), &String)| at.to_string() == source;
        let mut own = self.names.iter().filter(of_source);
        let ((at, _), exposed) =
            own.find(|((_, tool), exposed)| tool.as_str() == name || *exposed == name)?;
        let target = self.targets.get(exposed)?;
        Some(Target { among: Arc::from([at.clone()]), ..target.clone() })
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

    /// Resolves a name in a call.
    pub(super) fn target(&self, name: &str) -> Option<&Target> {
        self.targets.get(name).or_else(|| self.aliases.get(name))
    }

    /// The offered name of a tool, if it is offered.
    pub(super) fn name_of(&self, tool: &Tool) -> Option<&str> {
        self.names.get(&(tool.source.clone(), tool.name().clone())).map(String::as_str)
    }
}

impl Target {
    /// Whether a native tool serves it.
    pub(super) fn is_native(&self) -> bool {
        *self.among == [Source::Native]
    }

    /// Whether that tool of the catalog is among those that serve it.
    pub(super) fn is(&self, tool: &Tool) -> bool {
        *tool.name() == self.tool && self.among.contains(&tool.source)
    }

    /// Adds the arguments fixed by the owner, exactly once and at the end. Removes arguments of the client with the same name,
    /// ignoring case, since a server may parse names case-insensitively.
    pub(super) fn with_fixed(&self, arguments: RawJson) -> RawJson {
        let Some(fixed) = &self.fixed else { return arguments };
        let names: Vec<String> = fixed.iter().map(|(name, _)| folded(name)).collect();
        let mut all = arguments.object().unwrap_or_default();
        all.retain(|name| !names.contains(&folded(name)));
        fixed.iter().fold(all, |all, (name, value)| all.with(name.to_owned(), value.clone())).into_raw()
    }

    /// Whether this is `use_skill`, which is listed even if search is enabled.
    fn activates(&self) -> bool {
        self.kind == Kind::UseSkill
    }
}

/// Tools that return calls of all clients and the owner's conversations. They are offered only if the profile names them and
/// there is a single principal, since stored records do not contain their principal. Clients receive results in full and do not
/// need `read_result`.
pub(super) const OWNER_TOOLS: [&str; 2] = ["read_result", "get_conversation_history"];

fn is_owner_tool(tool: &Tool) -> bool {
    tool.source == Source::Native && OWNER_TOOLS.contains(&tool.name().as_str())
}

/// Whether this tool is listed only if the profile names it or is in code mode: other clients call tools themselves.
fn is_script_tool(tool: &Tool) -> bool {
    tool.source == Source::Native && tool.name().as_str() == RUN_SCRIPT
}

/// Whether the profile denies a tool by any of its names: in the catalog, at its source, or with a prefix.
fn denied(tool: &Tool, profile: &ProfileSettings) -> bool {
    if profile.deny.is_empty() {
        return false;
    }
    let (name, own, source) = (tool.name().as_str(), tool.definition.wire_name().as_str(), &tool.source);
    let names = [name.to_owned(), own.to_owned(), qualified(source, name), format!("{source}__{own}")];
    names.iter().any(|name| profile.denies(name))
}

/// Whether the settings of a profile admit a tool, whatever its state and principal.
pub(super) fn would_offer(profile: &ProfileSettings, entry: &Entry) -> bool {
    let tags = if profile.tags.is_empty() { &[] } else { entry.tags() };
    !denied(&entry.tool, profile)
        && profile.has_source(&entry.tool.source.to_string())
        && profile.has_tool(entry.tool.name().as_str(), tags)
}

/// Adds the tools of the mode if the profile's allow list omits them: without them the other tools could not be found. They reach
/// only the tools of the profile.
fn add_mode_tools<'a>(
    named: &mut Vec<(String, Vec<&'a Arc<Entry>>)>,
    catalog: &'a Catalog,
    tools: [&str; 3],
    options: &ViewOptions<'_>,
) {
    let is_of_mode = |tool: &Tool| tool.source == Source::Native && tools.contains(&tool.name().as_str());
    let is_present = |tool: &Tool| {
        named.iter().any(|(_, entries)| {
            entries.iter().any(|entry| is_of_mode(&entry.tool) && entry.tool.name() == tool.name())
        })
    };
    let missing: Vec<&Arc<Entry>> = catalog
        .iter()
        .filter(|entry| is_of_mode(&entry.tool) && entry.tool.trust != ApprovalStatus::Quarantined)
        .filter(|entry| !denied(&entry.tool, options.profile) && !is_present(&entry.tool))
        .filter(|entry| !options.access.forbids_finder(entry))
        .collect();
    named.extend(missing.into_iter().map(|entry| (entry.tool.name().as_str().to_owned(), vec![entry])));
}

/// The override of the profile for a tool.
fn find_override<'p>(
    name: &str,
    entries: &[&Arc<Entry>],
    profile: &'p ProfileSettings,
) -> Option<&'p Override> {
    let own = entries.first()?.tool.name().as_str();
    profile.overrides.get(name).or_else(|| profile.overrides.get(own))
}

/// Whether the owner assigned a name to the tool.
fn has_assigned_name(name: &str, entries: &[&Arc<Entry>], profile: &ProfileSettings) -> bool {
    find_override(name, entries, profile).is_some_and(|overridden| overridden.name.is_some())
}

#[derive(Default)]
struct ViewBuilder {
    /// Each with its position in the list.
    targets: Vec<(usize, String, Target)>,
    names: HashMap<(Source, ToolName), String>,
    taken: HashSet<String>,
}

impl ViewBuilder {
    fn add(&mut self, order: usize, name: String, entries: &[&Arc<Entry>], options: &ViewOptions<'_>) {
        let Some(first) = entries.first() else { return };
        let profile = options.profile;
        let own = first.tool.name();
        let overridden = find_override(&name, entries, profile);
        let mut name = overridden.and_then(|overridden| overridden.name.clone()).unwrap_or(name);
        if !profile.lossless && !is_portable_name(&name) {
            name = hashed(&first.tool.source, own.as_str());
        }
        if self.taken.contains(&name) {
            let source = &first.tool.source;
            let free = [qualified(source, own.as_str()), hashed(source, own.as_str())];
            let Some(other) = free.into_iter().find(|name| !self.taken.contains(name)) else { return };
            name = other;
        }
        if profile.denies(&name) {
            return;
        }
        let Some(definition) = offered(first, &name, overridden, options) else { return };
        self.taken.insert(name.clone());
        for entry in entries {
            self.names.insert((entry.tool.source.clone(), own.clone()), name.clone());
        }
        let fixed = overridden.filter(|overridden| !overridden.arguments.is_empty()).map(|overridden| {
            overridden
                .arguments
                .iter()
                .fold(RawObject::default(), |all, (key, value)| all.with(key.clone(), value.clone()))
        });
        let target = Target {
            // A call of a group may reach any of its tools, and a script among them needs the tools of its caller.
            kind: entries
                .iter()
                .find(|entry| entry.tool.is_script)
                .map_or(Kind::of(&first.tool), |entry| Kind::of(&entry.tool)),
            tool: own.clone(),
            among: entries.iter().map(|entry| entry.tool.source.clone()).collect(),
            fixed,
            definition,
        };
        self.targets.push((order, name, target));
    }
}

/// Whether clients accept a name (2025-11-25, server/tools: tool names).
fn is_portable_name(name: &str) -> bool {
    let accepted = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.chars().all(accepted)
}

/// The tools that a profile admits, grouped by name. The tools of a group are in routing order; groups are ordered by their first
/// tool.
fn groups<'a>(catalog: &'a Catalog, options: &ViewOptions<'_>) -> Vec<Vec<&'a Arc<Entry>>> {
    let ViewOptions { policy, profile, principals, access, .. } = *options;
    let shows_owners = |name: &str| principals == Principals::One && profile.names_tool(name);
    let admitted = |entry: &&Arc<Entry>| {
        entry.tool.trust != ApprovalStatus::Quarantined
            && (!is_owner_tool(&entry.tool) || shows_owners(entry.tool.name().as_str()))
            && (!is_script_tool(&entry.tool) || profile.names_tool(RUN_SCRIPT))
            && would_offer(profile, entry)
            && is_visible(entry, access)
    };
    let mut entries: Vec<((usize, usize), &Arc<Entry>)> = catalog
        .iter()
        .filter(admitted)
        .filter_map(|entry| Some((policy.rank(&entry.tool.source)?, entry)))
        .collect();
    entries.sort_by_key(|(rank, _)| *rank);
    let mut places: HashMap<&ToolName, usize> = HashMap::new();
    let mut groups: Vec<Vec<&Arc<Entry>>> = Vec::new();
    for (_, entry) in entries {
        let order = *places.entry(entry.tool.name()).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[order].push(entry);
    }
    groups
}

/// Whether the principal may see a tool. Forbidden tools are removed before names are assigned, so that the names of others
/// do not reveal them.
fn is_visible(entry: &Entry, access: &ProfileAccess) -> bool {
    match Kind::of(&entry.tool) {
        Kind::Plain | Kind::SkillScript => access.sees_tool(entry),
        Kind::Search | Kind::Describe | Kind::Call | Kind::RunScript => !access.forbids_finder(entry),
        // It is omitted if no skill is visible.
        Kind::UseSkill => true,
    }
}

/// Assigns the names of a group. Equal definitions do not make servers equivalent: a name belongs to one source, unless the owner
/// declared several equivalent. A native tool keeps its name; the others with that name get `source__name`.
fn named<'a>(group: &[&'a Arc<Entry>], options: &ViewOptions<'_>) -> Vec<(String, Vec<&'a Arc<Entry>>)> {
    let schema = |entry: &Arc<Entry>| canonical(entry.tool.definition.input_schema().get());
    let Some(first) = group.first() else { return Vec::new() };
    let name = first.tool.name().as_str();
    let equal = || group.iter().all(|entry| schema(entry) == schema(first));
    if group.len() > 1 && options.are_equivalent(group) && equal() {
        return vec![(name.to_owned(), group.to_vec())];
    }
    let name_of = |entry: &Arc<Entry>| {
        let source = &entry.tool.source;
        let alone = group.len() == 1 && options.may_hold(name, source);
        if alone || *source == Source::Native { name.to_owned() } else { qualified(source, name) }
    };
    group.iter().map(|entry| (name_of(entry), vec![*entry])).collect()
}

/// `source__name` with the source id unchanged, including non-ASCII characters. Returns `None` if the result could be ambiguous.
fn prefixed_name(source: &Source, name: &str) -> Option<String> {
    let id = source.to_string();
    (!id.contains("__") && !id.ends_with('_')).then(|| format!("{id}__{name}"))
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
    entry: &Entry,
    name: &str,
    overridden: Option<&Override>,
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
    let raw = match Kind::of(tool) {
        Kind::UseSkill => skills_offered(tool, options)?,
        // Rules about arguments concern the tools that these find and call.
        Kind::Search | Kind::Describe | Kind::Call | Kind::RunScript => tool.definition.raw().clone(),
        Kind::Plain | Kind::SkillScript if profile.lossless => definition(),
        Kind::Plain | Kind::SkillScript => portable(&definition()).ok()?,
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
fn without(schema: &RawJson, overridden: &Override) -> RawJson {
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
