//! Binds the overrides of a profile to tools by source and original name, before names are assigned. The names that other
//! servers choose for their tools neither take an override over nor evade one.

use std::collections::hash_map::Entry as MapEntry;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use toolhub_core::source::SOURCE_SEPARATOR;
use toolhub_core::{Source, ToolName};
use toolhub_engine::reserved::hashed_name;
use toolhub_engine::{CatalogEntry, RoutingPolicy};

use crate::settings::ProfileSettings;

/// A tool: its source, and its name in the catalog.
pub(super) type ToolId = (Source, ToolName);

pub(super) fn id_of(entry: &CatalogEntry) -> ToolId {
    (entry.tool.source.clone(), entry.tool.name().clone())
}

/// The inputs of [`BoundOverrides::bind`].
pub(super) struct OverrideInputs<'a> {
    pub(super) profile: &'a ProfileSettings,
    /// The tools that the profile admits, grouped by name and in routing order.
    pub(super) groups: &'a [Vec<Arc<CatalogEntry>>],
    /// Whether tools of one name are offered as one tool.
    pub(super) is_shared: &'a dyn Fn(&[&Arc<CatalogEntry>]) -> bool,
    /// The ids of the configured sources, enabled or not.
    pub(super) sources: &'a [String],
    /// The sources to which overrides without a source were bound before.
    pub(super) holders: &'a HashMap<String, Source>,
    /// The configured order of the sources.
    pub(super) policy: &'a RoutingPolicy,
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
        let index = ToolIndex::new(inputs.groups);
        // A key with a source takes precedence over one without.
        let mut bare_keys = Vec::new();
        for key in inputs.profile.overrides.keys() {
            match index.read(key, inputs.sources) {
                Reading::Tool(id) => {
                    bound.keys.entry(id).or_insert_with(|| key.clone());
                }
                Reading::Absent => {}
                Reading::Bare => bare_keys.push(key),
            }
        }
        for key in bare_keys {
            bound.bind_bare(key, index.group(key), inputs);
        }
        bound
    }

    /// Binds an override without a source: to the native tool of that name, or to one server. That is the one to which it was bound
    /// before, as long as it is configured, or the first one in the configured order. A server that was never listed may offer the tool:
    /// if one comes before all others, there is no holder yet, however long it takes to answer.
    fn bind_bare(&mut self, key: &str, group: &[Arc<CatalogEntry>], inputs: &OverrideInputs<'_>) {
        let Some(overridden) = inputs.profile.overrides.get(key) else { return };
        let mut candidates: Vec<&Arc<CatalogEntry>> = group.iter().collect();
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
        let (holder_entries, others): (Vec<&Arc<CatalogEntry>>, Vec<&Arc<CatalogEntry>>) =
            candidates.into_iter().partition(|entry| entry.tool.source == holder);
        self.keys.extend(holder_entries.into_iter().map(|entry| (id_of(entry), key.to_owned())));
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
#[derive(Debug, PartialEq, Eq)]
enum Reading {
    /// This tool of the source that it names.
    Tool(ToolId),
    /// A source, which has no such tool.
    Absent,
    /// A tool without its source.
    Bare,
}

/// The tools of one source.
#[derive(Default)]
struct SourceTools<'a> {
    /// By the name in the catalog.
    by_name: HashMap<&'a str, &'a Arc<CatalogEntry>>,
    /// By the original name at the source.
    by_wire_name: HashMap<&'a str, &'a Arc<CatalogEntry>>,
}

/// The tools of a profile, by the names that keys of overrides use.
struct ToolIndex<'a> {
    groups: &'a [Vec<Arc<CatalogEntry>>],
    by_name: HashMap<&'a str, &'a [Arc<CatalogEntry>]>,
    by_source: HashMap<String, SourceTools<'a>>,
    /// By the qualified name with a hash. Computed only if a key looks like one, since it needs a digest of each tool.
    by_hash: OnceLock<HashMap<String, &'a Arc<CatalogEntry>>>,
}

impl<'a> ToolIndex<'a> {
    fn new(groups: &'a [Vec<Arc<CatalogEntry>>]) -> Self {
        let mut by_name: HashMap<&str, &[Arc<CatalogEntry>]> = HashMap::new();
        let mut by_source: HashMap<&Source, SourceTools<'a>> = HashMap::new();
        for group in groups {
            if let Some(first) = group.first() {
                by_name.entry(first.tool.name().as_str()).or_insert(group);
            }
            for entry in group {
                let tools = by_source.entry(&entry.tool.source).or_default();
                tools.by_name.entry(entry.tool.name().as_str()).or_insert(entry);
                tools.by_wire_name.entry(entry.tool.definition.wire_name().as_str()).or_insert(entry);
            }
        }
        let by_source = by_source.into_iter().map(|(source, tools)| (source.to_string(), tools)).collect();
        Self { groups, by_name, by_source, by_hash: OnceLock::new() }
    }

    /// The tools with this name in the catalog.
    fn group(&self, name: &str) -> &'a [Arc<CatalogEntry>] {
        self.by_name.get(name).copied().unwrap_or_default()
    }

    /// The tool with this qualified name with a hash. If several have it, the one of the source with the longest id is meant.
    fn with_hash(&self, key: &str) -> Option<&'a Arc<CatalogEntry>> {
        if !has_hash(key) {
            return None;
        }
        let by_hash = self.by_hash.get_or_init(|| {
            let mut by_hash: HashMap<String, &Arc<CatalogEntry>> = HashMap::new();
            let length = |entry: &CatalogEntry| entry.tool.source.to_string().len();
            for entry in self.groups.iter().flatten() {
                match by_hash.entry(hashed_name(&entry.tool.source, entry.tool.name().as_str())) {
                    MapEntry::Vacant(vacant) => {
                        vacant.insert(entry);
                    }
                    MapEntry::Occupied(mut known) if length(known.get()) < length(entry) => {
                        known.insert(entry);
                    }
                    MapEntry::Occupied(_) => {}
                }
            }
            by_hash
        });
        by_hash.get(key).copied()
    }

    /// Reads a key as a tool with its source: `source__tool`, or that with a hash. If several configured sources fit, the one with the
    /// longest id is meant, whichever tools the others offer.
    fn read(&self, key: &str, sources: &[String]) -> Reading {
        if let Some(entry) = self.with_hash(key) {
            return Reading::Tool(id_of(entry));
        }
        let rest_of = |source: &String| key.strip_prefix(source.as_str())?.strip_prefix(SOURCE_SEPARATOR);
        let named = sources.iter().filter_map(|source| Some((source, rest_of(source)?)));
        let Some((source, name)) = named.max_by_key(|(source, _)| source.len()) else { return Reading::Bare };
        let Some(tools) = self.by_source.get(source) else { return Reading::Absent };
        let SourceTools { by_name, by_wire_name } = tools;
        let matching_entry =
            by_name.get(name).or_else(|| by_wire_name.get(name)).or_else(|| by_name.get(key));
        matching_entry.map_or(Reading::Absent, |entry| Reading::Tool(id_of(entry)))
    }
}

/// Whether a name ends like one with a hash: in `_` and eight hexadecimal digits in lower case.
fn has_hash(name: &str) -> bool {
    let Some((_, tail)) = name.rsplit_once('_') else { return false };
    tail.len() == 8 && tail.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use toolhub_core::{RawJson, ServerId, Tool, ToolDefinition};
    use toolhub_engine::Catalog;

    use super::*;

    const SERVERS: [&str; 3] = ["a", "a__b", "c_"];

    /// The tool that a key means, found by comparing it with the names of every tool.
    fn scan(key: &str, groups: &[Vec<Arc<CatalogEntry>>], sources: &[String]) -> Reading {
        let entries = || groups.iter().flatten();
        let with_hash =
            entries().filter(|entry| hashed_name(&entry.tool.source, entry.tool.name().as_str()) == key);
        if let Some(entry) =
            with_hash.min_by_key(|entry| std::cmp::Reverse(entry.tool.source.to_string().len()))
        {
            return Reading::Tool(id_of(entry));
        }
        let rest_of = |source: &String| key.strip_prefix(source.as_str())?.strip_prefix(SOURCE_SEPARATOR);
        let named = sources.iter().filter_map(|source| Some((source, rest_of(source)?)));
        let Some((source, name)) = named.max_by_key(|(source, _)| source.len()) else { return Reading::Bare };
        let mut own = entries().filter(|entry| entry.tool.source.to_string() == *source);
        let found = own.find(|entry| [name, key].contains(&entry.tool.name().as_str()));
        found.map_or(Reading::Absent, |entry| Reading::Tool(id_of(entry)))
    }

    proptest! {
        #[test]
        fn index_reads_keys_like_a_scan_of_all_tools(
            offered in proptest::collection::vec((0..SERVERS.len(), "x|b__x|y_"), 0..9),
            key in "(a|a__b|c_)?(__)?(x|b__x|y_)",
        ) {
            let tools = offered.iter().map(|(index, name)| {
                let definition = ToolDefinition::parse(RawJson::from(json!({ "name": name }))).unwrap();
                Tool::new(Source::Server(ServerId::new(SERVERS[*index])), definition)
            });
            let groups: Vec<Vec<Arc<CatalogEntry>>> =
                Catalog::new(tools).iter().map(|entry| vec![Arc::clone(entry)]).collect();
            let sources = SERVERS.map(str::to_owned);
            let index = ToolIndex::new(&groups);
            let hashes = groups.iter().flatten().map(|entry| hashed_name(&entry.tool.source, entry.tool.name().as_str()));
            for key in hashes.chain([key]) {
                prop_assert_eq!(index.read(&key, &sources), scan(&key, &groups, &sources), "{}", key);
            }
        }
    }

    #[test]
    fn recognises_names_with_a_hash() {
        let hash = hashed_name(&Source::Server(ServerId::new("a__b")), "x");
        for (name, expect) in [
            (hash.as_str(), true),
            ("_00000000", true),
            ("a__x", false),
            ("a_0000000", false),
            ("a_000000000", false),
            ("a_0000000G", false),
            ("a_0000000A", false),
            ("00000000", false),
        ] {
            assert_eq!(has_hash(name), expect, "{name}");
        }
    }
}
