//! The names under which a profile offers tools, and the tools to which its overrides are bound. They are the same for all
//! principals: what rules hide from one of them does not free a name for the tool of another server.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use toolhub_core::json::canonical_json;
use toolhub_core::{ControlProperty, ControlTool, RUN_SCRIPT, Source, Tool, ToolName};
use toolhub_engine::reserved::{hashed_name, qualified_name};
use toolhub_engine::{Catalog, CatalogEntry, RoutingPolicy};

use super::name_holders::{HeldNameBudget, NameHolders};
use super::overrides::{AwaitedOverride, BoundOverrides, OverrideInputs, ToolId, id_of};
use crate::settings::{ProfileSettings, ToolOverride};

/// The maximum length of a tool name that MCP allows, in bytes.
const MAX_SPEC_NAME_BYTES: usize = 128;

/// Whether a tool returns calls of all clients and the owner's conversations. Such a tool is offered only if the profile names it
/// and there is a single principal, since stored records do not contain their principal. Clients receive results in full and do
/// not need `read_result`.
pub(super) fn is_owner_tool(tool: &Tool) -> bool {
    ControlTool::of(tool).is_some_and(|control| control.has(ControlProperty::OwnerData))
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
    let (name, wire_name, source) =
        (tool.name().as_str(), tool.definition.wire_name().as_str(), &tool.source);
    let names = [
        name.to_owned(),
        wire_name.to_owned(),
        qualified_name(source, name),
        hashed_name(source, name),
        format!("{source}__{wire_name}"),
    ];
    names.iter().any(|name| profile.denies(name))
}

/// Whether the settings of a profile admit a tool, whatever its state and principal.
pub(super) fn would_offer(profile: &ProfileSettings, entry: &CatalogEntry) -> bool {
    let tags = if profile.tags.is_empty() { &[] } else { entry.tags() };
    !denied(&entry.tool, profile)
        && profile.has_source(&entry.tool.source.to_string())
        && profile.has_tool(entry.tool.name().as_str(), tags)
}

/// The inputs of the names of a profile.
pub(super) struct NameInputs<'a> {
    pub(super) policy: &'a RoutingPolicy,
    pub(super) profile: &'a ProfileSettings,
    /// The ids of the configured sources, enabled or not.
    pub(super) sources: Vec<String>,
    /// The previous names.
    pub(super) previous: Option<&'a ToolNames>,
    /// Whether all servers have been listed, or have failed once. Until then, which source has a name first depends on the order of
    /// their responses.
    pub(super) all_listed: bool,
    /// The sources of the profile that were never listed: each may offer any tool.
    pub(super) unlisted: &'a [Source],
}

impl NameInputs<'_> {
    /// Whether tools with the same name are offered as one: the owner declared their sources equivalent, each tool is
    /// read-only or idempotent, and their arguments are equal.
    fn is_shared(&self, group: &[&Arc<CatalogEntry>]) -> bool {
        let repeatable = |entry: &&Arc<CatalogEntry>| {
            let hints = entry.tool.hints();
            hints.read_only == Some(true) || hints.idempotent == Some(true)
        };
        let declared = |sources: &Vec<String>| {
            group.iter().all(|entry| sources.contains(&entry.tool.source.to_string()))
        };
        let schema = |entry: &Arc<CatalogEntry>| canonical_json(entry.tool.definition.input_schema().get());
        group.iter().all(repeatable)
            && self.policy.equivalent.iter().any(declared)
            && group.first().is_some_and(|first| group.iter().all(|entry| schema(entry) == schema(first)))
    }

    /// Whether this source may use the unprefixed name: no other source had it before.
    fn may_hold(&self, name: &str, source: &Source) -> bool {
        let holder = self.previous.and_then(|previous| previous.holders.get(name));
        holder.is_none_or(|holder| holder == source)
    }

    /// The tools that the profile admits, grouped by name. The tools of a group are in routing order; groups are ordered by their
    /// first tool. Tools whose definitions are held back are among them: another tool must not take their names.
    fn groups(&self, catalog: &Catalog) -> Vec<Vec<Arc<CatalogEntry>>> {
        let Self { policy, profile, .. } = self;
        let admitted = |entry: &&Arc<CatalogEntry>| {
            (!is_owner_tool(&entry.tool) || profile.names_tool(entry.tool.name().as_str()))
                && (!is_script_tool(&entry.tool) || profile.names_tool(RUN_SCRIPT))
                && would_offer(profile, entry)
        };
        let mut entries: Vec<((usize, usize), &Arc<CatalogEntry>)> = catalog
            .iter()
            .filter(admitted)
            .filter_map(|entry| Some((policy.rank(&entry.tool.source)?, entry)))
            .collect();
        entries.sort_by_key(|(rank, _)| *rank);
        let mut places: HashMap<&ToolName, usize> = HashMap::new();
        let mut groups: Vec<Vec<Arc<CatalogEntry>>> = Vec::new();
        for (_, entry) in entries {
            let order = *places.entry(entry.tool.name()).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[order].push(Arc::clone(entry));
        }
        groups
    }

    fn bind(&self, groups: &[Vec<Arc<CatalogEntry>>]) -> BoundOverrides {
        let none = HashMap::new();
        BoundOverrides::bind(&OverrideInputs {
            profile: self.profile,
            groups,
            is_shared: &|group| self.is_shared(group),
            sources: &self.sources,
            holders: self.previous.map_or(&none, |previous| &previous.override_holders),
            policy: self.policy,
            unlisted: self.unlisted,
        })
    }

    /// The overrides of the profile, bound to the tools of the catalog.
    pub(super) fn bound_overrides(&self, catalog: &Catalog) -> BoundOverrides {
        self.bind(&self.groups(catalog))
    }
}

/// A tool with the name under which the profile offers it.
#[derive(Debug)]
pub(super) struct NamedTool {
    pub(super) name: String,
    /// The tools that may serve it: one, or those of sources that the owner declared equivalent.
    pub(super) entries: Vec<Arc<CatalogEntry>>,
    /// The key of its override in the profile.
    override_key: Option<String>,
    /// Whether it is offered only in a mode that needs it: the profile's allow list omits it.
    pub(super) is_mode_only: bool,
}

impl NamedTool {
    /// Its override in the profile.
    pub(super) fn overridden<'p>(&self, profile: &'p ProfileSettings) -> Option<&'p ToolOverride> {
        profile.overrides.get(self.override_key.as_ref()?)
    }

    /// Whether the owner assigned a name to it.
    fn has_assigned_name(&self, profile: &ProfileSettings) -> bool {
        self.overridden(profile).is_some_and(|overridden| overridden.name.is_some())
    }

    /// Whether its name has the prefix of its source.
    fn is_prefixed(&self) -> bool {
        self.entries.first().is_some_and(|entry| entry.tool.name().as_str() != self.name)
    }
}

/// The names of the tools of a profile.
#[derive(Debug, Default)]
pub(super) struct ToolNames {
    /// In the order of the list.
    pub(super) tools: Vec<NamedTool>,
    /// Further names that calls may use, each with its source and the offered name: `source__tool` of every tool, and unprefixed
    /// names that a source had before another source offered the same name.
    pub(super) aliases: HashMap<String, (Source, String)>,
    /// The names that the owner assigned.
    given_names: HashMap<ToolId, String>,
    /// The source that had each name first. It keeps the name, so that no other source receives calls meant for it.
    holders: NameHolders<Source>,
    /// The sources to which overrides without a source are bound.
    override_holders: HashMap<String, Source>,
    /// The overrides that are bound once certain servers have been listed.
    pub(super) awaited_overrides: Vec<AwaitedOverride>,
    /// Whether all servers had been listed, or had failed once.
    pub(super) all_listed: bool,
}

impl ToolNames {
    pub(super) fn new(catalog: &Catalog, inputs: &NameInputs<'_>) -> Self {
        let profile = inputs.profile;
        let mut groups = inputs.groups(catalog);
        let admitted = groups.len();
        groups.extend(mode_tools(&groups, catalog, profile));
        let bound = inputs.bind(&groups);
        let mut named: Vec<NamedTool> = Vec::new();
        let mut budget = HeldNameBudget::new(inputs.previous.map(|previous| &previous.holders));
        for (index, group) in groups.into_iter().enumerate() {
            let is_mode_only = index >= admitted;
            named.extend(
                named_tools(group, &bound, inputs, &mut budget)
                    .into_iter()
                    .map(|tool| NamedTool { is_mode_only, ..tool }),
            );
        }
        let given_name = |key: &str| profile.overrides.get(key)?.name.clone();
        let given_names = bound.iter().filter_map(|(id, key)| Some((id.clone(), given_name(key)?)));
        let mut names = Self {
            tools: assign(named, profile),
            given_names: given_names.collect(),
            holders: inputs.previous.map(|previous| previous.holders.clone()).unwrap_or_default(),
            override_holders: bound.holders,
            awaited_overrides: bound.awaited,
            all_listed: inputs.all_listed,
            ..Self::default()
        };
        if inputs.all_listed {
            names.add_holders();
        }
        names.add_aliases(profile);
        names
    }

    /// The name that the owner assigned to a tool.
    pub(super) fn given_name(&self, tool: &Tool) -> Option<&str> {
        if self.given_names.is_empty() {
            return None;
        }
        self.given_names.get(&(tool.source.clone(), tool.name().clone())).map(String::as_str)
    }

    fn add_holders(&mut self) {
        let Self { tools, holders, .. } = self;
        for tool in &*tools {
            for entry in &tool.entries {
                let (source, catalog_name) = (&entry.tool.source, entry.tool.name().as_str());
                // The prefixed name stays reserved after the source is removed, so that no other source can take it.
                holders.hold(&qualified_name(source, catalog_name), source);
                if tool.entries.len() == 1 && catalog_name == tool.name {
                    holders.hold(catalog_name, source);
                }
            }
        }
    }

    fn add_aliases(&mut self, profile: &ProfileSettings) {
        let reserved = assigned_names(profile);
        let taken: HashSet<&str> =
            self.tools.iter().map(|tool| tool.name.as_str()).chain(reserved.iter().copied()).collect();
        let mut aliases = HashMap::new();
        for tool in &self.tools {
            for entry in &tool.entries {
                let (source, catalog_name) = (&entry.tool.source, entry.tool.name().as_str());
                let mut further = vec![qualified_name(source, catalog_name)];
                further.extend(prefixed_name(source, catalog_name));
                further.extend(
                    (self.holders.get(catalog_name) == Some(source)).then(|| catalog_name.to_owned()),
                );
                for name in further.into_iter().filter(|name| !taken.contains(name.as_str())) {
                    aliases.entry(name).or_insert_with(|| (source.clone(), tool.name.clone()));
                }
            }
        }
        self.aliases = aliases;
    }
}

/// The names that the owner assigns to tools.
fn assigned_names(profile: &ProfileSettings) -> HashSet<&str> {
    profile.overrides.values().filter_map(|overridden| overridden.name.as_deref()).collect()
}

/// Assigns the final names. A name that the owner assigned belongs to its tool, also while that tool is missing.
fn assign(named: Vec<NamedTool>, profile: &ProfileSettings) -> Vec<NamedTool> {
    let reserved = assigned_names(profile);
    let (assigned, others): (Vec<_>, Vec<_>) =
        named.into_iter().enumerate().partition(|(_, tool)| tool.has_assigned_name(profile));
    // A prefixed name takes precedence over a plain one: otherwise its meaning would depend on the order of the servers.
    let (prefixed, plain): (Vec<_>, Vec<_>) = others.into_iter().partition(|(_, tool)| tool.is_prefixed());
    let mut taken: HashSet<String> = HashSet::new();
    let mut tools: Vec<(usize, NamedTool)> = Vec::new();
    for (order, mut tool) in assigned.into_iter().chain(prefixed).chain(plain) {
        let Some(first) = tool.entries.first() else { continue };
        let (source, catalog_name) = (&first.tool.source, first.tool.name().as_str());
        let configured_name = tool.overridden(profile).and_then(|overridden| overridden.name.clone());
        let is_given = configured_name.is_some();
        let mut name = configured_name.unwrap_or_else(|| tool.name.clone());
        if !profile.lossless && !is_portable_name(&name) {
            name = hashed_name(source, catalog_name);
        }
        let is_free = |name: &String| !taken.contains(name) && !reserved.contains(name.as_str());
        if taken.contains(&name) || (!is_given && !is_free(&name)) {
            let free = [qualified_name(source, catalog_name), hashed_name(source, catalog_name)];
            let Some(other) = free.into_iter().find(is_free) else { continue };
            name = other;
        }
        if profile.denies(&name) {
            continue;
        }
        taken.insert(name.clone());
        tool.name = name;
        tools.push((order, tool));
    }
    tools.sort_by_key(|(order, _)| *order);
    tools.into_iter().map(|(_, tool)| tool).collect()
}

/// Names the tools of a group. Equal definitions do not make servers equivalent: a name belongs to one source, unless the owner
/// declared several equivalent. A native tool keeps its name; the others with that name get `source__name`. So do those of a source that
/// holds too many names.
fn named_tools(
    group: Vec<Arc<CatalogEntry>>,
    bound: &BoundOverrides,
    inputs: &NameInputs<'_>,
    budget: &mut HeldNameBudget<'_, Source>,
) -> Vec<NamedTool> {
    let Some(name) = group.first().map(|first| first.tool.name().as_str().to_owned()) else {
        return Vec::new();
    };
    for entry in &group {
        budget.admits(&qualified_name(&entry.tool.source, &name), &entry.tool.source);
    }
    let key = |entry: &Arc<CatalogEntry>| bound.key_of(&id_of(entry)).map(str::to_owned);
    let first_key = group.first().and_then(&key);
    let members: Vec<&Arc<CatalogEntry>> = group.iter().collect();
    let has_one_override = || members.iter().all(|entry| key(entry) == first_key);
    if members.len() > 1 && has_one_override() && inputs.is_shared(&members) {
        let override_key = first_key.clone();
        return vec![NamedTool { name, entries: group, override_key, is_mode_only: false }];
    }
    let is_alone = group.len() == 1;
    let mut name_of = |entry: &Arc<CatalogEntry>| {
        let source = &entry.tool.source;
        let may_hold = is_alone && inputs.may_hold(&name, source) && budget.admits(&name, source);
        let keeps = may_hold || *source == Source::Native;
        if keeps { name.clone() } else { qualified_name(source, &name) }
    };
    let offered = group.iter().filter(|entry| !bound.withholds(&id_of(entry)));
    offered
        .map(|entry| NamedTool {
            name: name_of(entry),
            entries: vec![Arc::clone(entry)],
            override_key: key(entry),
            is_mode_only: false,
        })
        .collect()
}

/// The tools of modes that the profile's allow list omits: without them the other tools could not be found. They reach only the
/// tools of the profile.
fn mode_tools(
    groups: &[Vec<Arc<CatalogEntry>>],
    catalog: &Catalog,
    profile: &ProfileSettings,
) -> Vec<Vec<Arc<CatalogEntry>>> {
    let is_mode_tool = |tool: &Tool| {
        ControlTool::of(tool).is_some_and(|control| {
            control.has(ControlProperty::SearchMode) || control.has(ControlProperty::CodeMode)
        })
    };
    let is_present = |tool: &Tool| {
        let mut entries = groups.iter().flatten();
        entries.any(|entry| entry.tool.source == Source::Native && entry.tool.name() == tool.name())
    };
    catalog
        .iter()
        .filter(|entry| is_mode_tool(&entry.tool))
        .filter(|entry| !denied(&entry.tool, profile) && !is_present(&entry.tool))
        .map(|entry| vec![Arc::clone(entry)])
        .collect()
}

/// Whether clients accept a name (2025-11-25, server/tools: tool names).
fn is_portable_name(name: &str) -> bool {
    let accepted = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    (1..=MAX_SPEC_NAME_BYTES).contains(&name.len()) && name.chars().all(accepted)
}

/// `source__name` with the source id unchanged, including non-ASCII characters. Returns `None` if the result could be ambiguous.
pub(super) fn prefixed_name(source: &Source, name: &str) -> Option<String> {
    let id = source.to_string();
    (!id.contains("__") && !id.ends_with('_')).then(|| format!("{id}__{name}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::json;
    use toolhub_core::{RawJson, ServerId, ToolDefinition};
    use toolhub_engine::ReservedNames;

    use super::super::name_holders::MAX_HELD_NAMES;
    use super::*;

    const SERVERS: [&str; 3] = ["good", "evil", "third"];

    /// The names that servers choose.
    const CHOSEN: &str =
        "pay|look|transfer|(good|evil|third)__(pay|look|transfer)|evil__good__pay|PAY|good_pay|p ay";

    fn server(id: &str) -> Source {
        Source::Server(ServerId::new(id))
    }

    /// The names that the servers offer, without those that they must not use.
    fn catalog(offered: &[(usize, String)]) -> Catalog {
        let reserved = ReservedNames::new(SERVERS);
        let mut seen = HashSet::new();
        let offered = offered.iter().filter(|(index, name)| {
            !reserved.reserves(&server(SERVERS[*index]), name) && seen.insert((*index, name.clone()))
        });
        Catalog::new(offered.map(|(index, name)| {
            let definition = ToolDefinition::parse(RawJson::from(json!({ "name": name }))).unwrap();
            Tool::new(server(SERVERS[*index]), definition)
        }))
    }

    fn profile(key: &str) -> ProfileSettings {
        let fixed = json!({ "account": "own" }).as_object().unwrap().clone();
        let overridden =
            ToolOverride { name: Some("transfer".to_owned()), arguments: fixed, ..ToolOverride::default() };
        ProfileSettings { overrides: [(key.to_owned(), overridden)].into(), ..ProfileSettings::default() }
    }

    fn names(
        catalog: &Catalog,
        profile: &ProfileSettings,
        order: &[&str],
        previous: Option<&ToolNames>,
    ) -> ToolNames {
        names_without(&[], catalog, profile, order, previous)
    }

    /// The names while these sources have not been listed.
    fn names_without(
        unlisted: &[Source],
        catalog: &Catalog,
        profile: &ProfileSettings,
        order: &[&str],
        previous: Option<&ToolNames>,
    ) -> ToolNames {
        let policy = RoutingPolicy {
            servers: order.iter().map(|id| ServerId::new(*id)).collect(),
            ..RoutingPolicy::default()
        };
        let sources = SERVERS.iter().map(ToString::to_string).collect();
        let inputs = NameInputs { policy: &policy, profile, sources, previous, all_listed: true, unlisted };
        ToolNames::new(catalog, &inputs)
    }

    /// Every name that calls may use, with the tool that it reaches.
    fn reached(names: &ToolNames) -> BTreeMap<String, ToolId> {
        let offered = names.tools.iter().map(|tool| (tool.name.clone(), id_of(&tool.entries[0])));
        let offered: BTreeMap<String, ToolId> = offered.collect();
        let aliases = names.aliases.iter().map(|(name, (_, shown))| (name.clone(), offered[shown].clone()));
        aliases.chain(offered.clone()).collect()
    }

    fn offers() -> impl Strategy<Value = Vec<(usize, String)>> {
        proptest::collection::vec((0..SERVERS.len(), CHOSEN), 0..12)
    }

    proptest! {
        /// Whatever names the servers choose, in whichever order they are configured: the override of `pay` of `good` applies to
        /// that tool and to no other one, and nothing else gets its name.
        #[test]
        fn an_override_with_a_server_applies_to_its_tool_only(
            offered in offers(),
            order in Just(SERVERS.to_vec()).prop_shuffle(),
        ) {
            let (catalog, profile) = (catalog(&offered), profile("good__pay"));
            let names = names(&catalog, &profile, &order, None);
            // A tool of `good` whose own name is `good__pay` is meant if there is no `pay`.
            let offers =
                |name: &str| catalog.named(name).any(|entry| entry.tool.source == server("good"));
            let own = if offers("pay") { "pay" } else { "good__pay" };
            let own = (server("good"), ToolName::from(own));
            for tool in &names.tools {
                let is_own = id_of(&tool.entries[0]) == own;
                prop_assert_eq!(tool.overridden(&profile).is_some(), is_own, "{:?}", tool);
                prop_assert_eq!(tool.name == "transfer", is_own, "{:?}", tool);
            }
            let is_offered = names.tools.iter().any(|tool| id_of(&tool.entries[0]) == own);
            prop_assert_eq!(is_offered, catalog.iter().any(|entry| id_of(entry) == own));
        }

        /// An override without a server has one holder, and its tool is offered by no other server.
        #[test]
        fn an_override_without_a_server_has_one_holder(
            offered in offers(),
            order in Just(SERVERS.to_vec()).prop_shuffle(),
        ) {
            let (catalog, profile) = (catalog(&offered), profile("pay"));
            let names = names(&catalog, &profile, &order, None);
            let first = order.iter().find(|id| catalog.named("pay").any(|entry| entry.tool.source == server(id)));
            let named_pay = names.tools.iter().filter(|tool| tool.entries[0].tool.name().as_str() == "pay");
            let holders: Vec<&Source> = named_pay
                .inspect(|tool| assert!(tool.overridden(&profile).is_some()))
                .map(|tool| &tool.entries[0].tool.source)
                .collect();
            let expected = first.map(|id| server(id));
            prop_assert_eq!(holders, expected.iter().collect::<Vec<_>>());
            let given = names.tools.iter().filter(|tool| tool.name == "transfer");
            prop_assert_eq!(given.count(), usize::from(first.is_some()));
        }

        /// Servers are listed one after another, in any order, and others have timed out: no other server than the first one in the
        /// configured order ever has the override, and none keeps it.
        #[test]
        fn an_override_waits_for_earlier_servers(
            offered in offers(),
            order in Just(SERVERS.to_vec()).prop_shuffle(),
            listed_in_order in Just(vec![0, 1, 2]).prop_shuffle(),
        ) {
            let profile = profile("pay");
            let complete = catalog(&offered);
            let first = order.iter().find(|id| complete.named("pay").any(|entry| entry.tool.source == server(id)));
            let first = first.map(|id| server(id));
            let mut previous: Option<ToolNames> = None;
            for count in 1..=SERVERS.len() {
                let is_listed = |index: &usize| listed_in_order[..count].contains(index);
                let so_far: Vec<(usize, String)> =
                    offered.iter().filter(|(index, _)| is_listed(index)).cloned().collect();
                let unlisted: Vec<Source> =
                    (0..SERVERS.len()).filter(|index| !is_listed(index)).map(|index| server(SERVERS[index])).collect();
                let names = names_without(&unlisted, &catalog(&so_far), &profile, &order, previous.as_ref());
                for tool in names.tools.iter().filter(|tool| tool.overridden(&profile).is_some()) {
                    prop_assert_eq!(Some(&tool.entries[0].tool.source), first.as_ref());
                }
                for holder in names.override_holders.values() {
                    prop_assert_eq!(Some(holder), first.as_ref());
                }
                previous = Some(names);
            }
            let overridden = previous.iter().flat_map(|names| &names.tools);
            let count = overridden.filter(|tool| tool.overridden(&profile).is_some()).count();
            prop_assert_eq!(count, usize::from(first.is_some()));
        }

        /// A name never reaches another server than before, whatever the servers offer later.
        #[test]
        fn a_name_stays_with_its_server(
            lists in proptest::collection::vec(offers(), 1..4),
            key in "pay|good__pay|none",
        ) {
            let profile = profile(&key);
            let mut owners: BTreeMap<String, Source> = BTreeMap::new();
            let mut previous: Option<ToolNames> = None;
            for offered in &lists {
                let names = names(&catalog(offered), &profile, &SERVERS, previous.as_ref());
                for (name, (source, _)) in reached(&names) {
                    let owner = owners.entry(name.clone()).or_insert_with(|| source.clone());
                    prop_assert_eq!(&*owner, &source, "{}", name);
                }
                previous = Some(names);
            }
        }
    }

    /// A server that offers other tools at each change holds a limited number of names; after that its tools have its prefix. The names
    /// of other servers stay as they are.
    #[test]
    fn a_server_that_renames_its_tools_holds_a_limited_number_of_names() {
        const TOOLS: usize = 4_000;
        let profile = ProfileSettings::default();
        let mut previous: Option<ToolNames> = None;
        let mut prefixed = Vec::new();
        for round in 0..4 {
            let own = (0..TOOLS).map(|number| (1, format!("tool_{round}_{number}")));
            let offered: Vec<(usize, String)> = own.chain([(0, "pay".to_owned())]).collect();
            let names = names(&catalog(&offered), &profile, &SERVERS, previous.as_ref());
            assert!(names.tools.iter().any(|tool| tool.name == "pay"));
            assert_eq!(names.tools.len(), TOOLS + 1);
            prefixed.push(names.tools.iter().filter(|tool| tool.is_prefixed()).count());
            previous = Some(names);
        }
        // Each tool that has its plain name holds two names.
        assert_eq!(prefixed, [0, 0, 2 * TOOLS + TOOLS - MAX_HELD_NAMES / 2, TOOLS]);
    }

    #[test]
    fn a_key_with_several_readings_means_the_longest_server() {
        let sources = ["evil", "evil__x"].map(str::to_owned);
        let definition = |name: &str| ToolDefinition::parse(RawJson::from(json!({ "name": name }))).unwrap();
        let catalog = Catalog::new([
            Tool::new(server("evil"), definition("x__b")),
            Tool::new(server("evil__x"), definition("b")),
        ]);
        let profile = profile("evil__x__b");
        let policy = RoutingPolicy {
            servers: sources.iter().map(|id| ServerId::new(id.as_str())).collect(),
            ..RoutingPolicy::default()
        };
        let inputs = NameInputs {
            policy: &policy,
            profile: &profile,
            sources: sources.to_vec(),
            previous: None,
            all_listed: true,
            unlisted: &[],
        };
        let names = ToolNames::new(&catalog, &inputs);
        assert_eq!(reached(&names)["transfer"], (server("evil__x"), ToolName::from("b")));
    }
}
