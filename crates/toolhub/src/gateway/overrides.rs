//! Binds the overrides of a profile to tools by source and original name, before names are assigned. The names that other
//! servers choose for their tools neither take an override over nor evade one.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use toolhub_core::{Source, ToolName};
use toolhub_engine::reserved::hashed;
use toolhub_engine::{Entry, Policy};

use crate::settings::ProfileSettings;

/// Between the name of a source and that of its tool.
const SEPARATOR: &str = "__";

/// A tool: its source, and its name in the catalog.
pub(super) type ToolId = (Source, ToolName);

pub(super) fn id_of(entry: &Entry) -> ToolId {
    (entry.tool.source.clone(), entry.tool.name().clone())
}

/// The inputs of [`BoundOverrides::bind`].
pub(super) struct OverrideInputs<'a> {
    pub(super) profile: &'a ProfileSettings,
    /// The tools that the profile admits, grouped by name and in routing order.
    pub(super) groups: &'a [Vec<Arc<Entry>>],
    /// Whether tools of one name are offered as one tool.
    pub(super) is_shared: &'a dyn Fn(&[&Arc<Entry>]) -> bool,
    /// The ids of the configured sources, enabled or not.
    pub(super) sources: &'a [String],
    /// The sources to which overrides without a source were bound before.
    pub(super) holders: &'a HashMap<String, Source>,
    /// The configured order of the sources.
    pub(super) policy: &'a Policy,
    /// The sources of the profile that were never listed: each may offer any tool.
    pub(super) unlisted: &'a [Source],
}

/// An override without a source, while servers that come first may offer its tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AwaitedOverride {
    pub(super) key: String,
    /// The servers that were never listed and come before the first one that offers the tool.
    pub(super) sources: Vec<Source>,
    /// Whether the tool is not offered meanwhile, because the override has a name or fixed arguments.
    pub(super) is_withheld: bool,
}

impl OverrideInputs<'_> {
    /// The sources that were never listed and come before this one in the configured order.
    fn unlisted_before(&self, source: &Source) -> Vec<Source> {
        let limit = self.policy.rank(source);
        let is_before = |source: &&Source| {
            self.policy.rank(source).is_some_and(|rank| limit.is_none_or(|limit| rank < limit))
        };
        self.unlisted.iter().filter(is_before).cloned().collect()
    }
}

/// An override without a source whose tool several servers offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AmbiguousOverride {
    pub(super) key: String,
    /// The source to which it is bound.
    pub(super) holder: Source,
    /// The other servers that offer the tool.
    pub(super) others: Vec<Source>,
}

/// The overrides of a profile, by the tool to which each is bound.
#[derive(Debug, Default)]
pub(super) struct BoundOverrides {
    keys: HashMap<ToolId, String>,
    /// The sources to which overrides without a source are bound.
    pub(super) holders: HashMap<String, Source>,
    /// Tools that must not be offered: an override that fixes arguments has their name and is bound to another source, or it is
    /// not yet known to which one.
    withheld: HashSet<ToolId>,
    pub(super) ambiguous: Vec<AmbiguousOverride>,
    pub(super) awaited: Vec<AwaitedOverride>,
}

impl BoundOverrides {
    pub(super) fn bind(inputs: &OverrideInputs<'_>) -> Self {
        let mut bound = Self { holders: inputs.holders.clone(), ..Self::default() };
        if inputs.profile.overrides.is_empty() {
            return bound;
        }
        // A key with a source takes precedence over one without.
        let mut bare_keys = Vec::new();
        for key in inputs.profile.overrides.keys() {
            match qualified_tool(key, inputs) {
                Reading::Tool(id) => {
                    bound.keys.entry(id).or_insert_with(|| key.clone());
                }
                Reading::Absent => {}
                Reading::Bare => bare_keys.push(key),
            }
        }
        for key in bare_keys {
            bound.bind_bare(key, inputs);
        }
        bound
    }

    /// Binds an override without a source: to the native tool of that name, or to one server. That is the one to which it was bound
    /// before, as long as it is configured, or the first one in the configured order. A server that was never listed may offer the tool:
    /// if one comes before all others, there is no holder yet, however long it takes to answer.
    fn bind_bare(&mut self, key: &str, inputs: &OverrideInputs<'_>) {
        let Some(overridden) = inputs.profile.overrides.get(key) else { return };
        let named = |group: &&Vec<Arc<Entry>>| group.first().is_some_and(|it| it.tool.name().as_str() == key);
        let Some(group) = inputs.groups.iter().find(named) else { return };
        let mut candidates: Vec<&Arc<Entry>> = group.iter().collect();
        candidates.retain(|entry| !self.keys.contains_key(&id_of(entry)));
        let is_configured = |source: &&Source| inputs.sources.contains(&source.to_string());
        let before = self.holders.get(key).filter(is_configured).cloned();
        // The bare name of a native tool means that tool.
        if let Some(native) = candidates.iter().find(|entry| entry.tool.source == Source::Native) {
            self.keys.insert(id_of(native), key.to_owned());
            return;
        }
        let Some(first) = candidates.first().map(|entry| entry.tool.source.clone()) else { return };
        let fixes = !overridden.arguments.is_empty();
        let awaited = if before.is_none() { inputs.unlisted_before(&first) } else { Vec::new() };
        let is_awaited = !awaited.is_empty();
        if is_awaited {
            let is_withheld = fixes || overridden.name.is_some();
            self.awaited.push(AwaitedOverride { key: key.to_owned(), sources: awaited, is_withheld });
            if is_withheld {
                self.withheld.extend(candidates.iter().map(|entry| id_of(entry)));
                return;
            }
        }
        if candidates.len() > 1 && (inputs.is_shared)(&candidates) {
            self.keys.extend(candidates.iter().map(|entry| (id_of(entry), key.to_owned())));
            return;
        }
        let holder = before.unwrap_or(first);
        if !is_awaited {
            self.holders.insert(key.to_owned(), holder.clone());
        }
        let (own, others): (Vec<&Arc<Entry>>, Vec<&Arc<Entry>>) =
            candidates.into_iter().partition(|entry| entry.tool.source == holder);
        self.keys.extend(own.into_iter().map(|entry| (id_of(entry), key.to_owned())));
        if others.is_empty() {
            return;
        }
        if fixes {
            self.withheld.extend(others.iter().map(|entry| id_of(entry)));
        }
        self.ambiguous.push(AmbiguousOverride {
            key: key.to_owned(),
            holder,
            others: others.iter().map(|entry| entry.tool.source.clone()).collect(),
        });
    }

    /// The key of the override of a tool.
    pub(super) fn key_of(&self, id: &ToolId) -> Option<&str> {
        self.keys.get(id).map(String::as_str)
    }

    /// Whether a tool must not be offered.
    pub(super) fn withholds(&self, id: &ToolId) -> bool {
        self.withheld.contains(id)
    }

    /// The tools with an override, each with its key.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&ToolId, &str)> {
        self.keys.iter().map(|(id, key)| (id, key.as_str()))
    }
}

/// What a key names.
enum Reading {
    /// This tool of the source that it names.
    Tool(ToolId),
    /// A source, which has no such tool.
    Absent,
    /// A tool without its source.
    Bare,
}

/// Reads a key as a tool with its source: `source__tool`, or that with a hash. If several configured sources fit, the one with the
/// longest id is meant, whichever tools the others offer.
fn qualified_tool(key: &str, inputs: &OverrideInputs<'_>) -> Reading {
    let entries = || inputs.groups.iter().flatten();
    let with_hash = entries().filter(|entry| hashed(&entry.tool.source, entry.tool.name().as_str()) == key);
    if let Some(entry) = with_hash.min_by_key(|entry| Reverse(entry.tool.source.to_string().len())) {
        return Reading::Tool(id_of(entry));
    }
    let rest_of = |source: &String| key.strip_prefix(source.as_str())?.strip_prefix(SEPARATOR);
    let named = inputs.sources.iter().filter_map(|source| Some((source, rest_of(source)?)));
    let Some((source, name)) = named.max_by_key(|(source, _)| source.len()) else { return Reading::Bare };
    let own: Vec<&Arc<Entry>> = entries().filter(|entry| entry.tool.source.to_string() == *source).collect();
    let find = |fits: &dyn Fn(&Entry) -> bool| own.iter().find(|entry| fits(entry)).copied();
    let found = find(&|entry| entry.tool.name().as_str() == name)
        .or_else(|| find(&|entry| entry.tool.definition.wire_name().as_str() == name))
        .or_else(|| find(&|entry| entry.tool.name().as_str() == key));
    found.map_or(Reading::Absent, |entry| Reading::Tool(id_of(entry)))
}
