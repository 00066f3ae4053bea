//! The routing policy: the order of sources, and the strategy (race or merge) of each capability.

use std::collections::BTreeMap;

use toolhub_core::source::SourceKind;
use toolhub_core::suggest::{MAX_SUGGESTIONS, similar_names};
use toolhub_core::{ServerId, Source, ToolError};

/// Source names that models write by habit, regardless of the tool's actual source.
const GUESSED: [&str; 2] = ["native", "appflowy"];
/// Values of `source` that mean "unspecified".
const UNSPECIFIED: [&str; 2] = ["", "auto"];

/// The sources that the `source` of a call allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceFilter {
    /// No source is named.
    Any,
    /// A source is named, but ignored: models write this name by habit.
    Guessed,
    /// Only this source.
    Only(Source),
}

impl SourceFilter {
    /// The only allowed source, if there is one.
    pub fn only(&self) -> Option<&Source> {
        match self {
            Self::Only(source) => Some(source),
            Self::Any | Self::Guessed => None,
        }
    }
}

/// How several candidates are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Sequentially.
    First,
    /// Concurrently: the first success wins, and the others are cancelled.
    Race,
    /// Concurrently: all results are merged.
    Merge,
}

impl Strategy {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Race => "race",
            Self::Merge => "merge",
        }
    }

    /// The strategy of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::First, Self::Race, Self::Merge].into_iter().find(|strategy| strategy.name() == name)
    }
}

/// How calls are routed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutingPolicy {
    /// The kinds of sources, in the order they are tried.
    pub order: Vec<SourceKind>,
    /// The configured servers, in the order of the config file.
    pub servers: Vec<ServerId>,
    /// The strategy of each capability.
    pub strategies: BTreeMap<String, Strategy>,
    /// Number of candidates that start concurrently.
    pub batch: usize,
    /// Groups of source names whose tools of equal name are interchangeable: any of them may serve a call by name.
    pub equivalent: Vec<Vec<String>>,
}

impl Default for RoutingPolicy {
    fn default() -> Self {
        let strategies = [
            ("calculate", Strategy::Race),
            ("time", Strategy::Race),
            ("search", Strategy::Merge),
            ("extract", Strategy::Merge),
        ];
        Self {
            order: vec![SourceKind::Mcp, SourceKind::Skill, SourceKind::Native],
            servers: Vec::new(),
            strategies: strategies.map(|(tag, strategy)| (tag.to_owned(), strategy)).into(),
            batch: 3,
            equivalent: Vec::new(),
        }
    }
}

impl RoutingPolicy {
    /// The position of a source in the order; `None` if the source must not be used.
    pub fn rank(&self, source: &Source) -> Option<(usize, usize)> {
        let kind = self.order.iter().position(|kind| *kind == source.kind())?;
        let server = match source {
            Source::Server(id) => self.servers.iter().position(|server| server == id)?,
            Source::Native | Source::Skill => 0,
        };
        Some((kind, server))
    }

    /// A policy in which all of these servers are equivalent.
    pub fn equivalent_servers(servers: impl IntoIterator<Item = ServerId>) -> Self {
        let servers: Vec<ServerId> = servers.into_iter().collect();
        let equivalent = vec![servers.iter().map(|id| id.as_str().to_owned()).collect()];
        Self { servers, equivalent, ..Self::default() }
    }

    /// Whether the configuration declares two sources equivalent.
    pub fn are_equivalent(&self, one: &Source, other: &Source) -> bool {
        let (one, other) = (one.to_string(), other.to_string());
        self.equivalent.iter().any(|group| group.contains(&one) && group.contains(&other))
    }

    /// The sources that a call with this `source` may reach. An unknown name is an error: such a call must not reach a
    /// source that it does not name.
    pub fn source_filter(&self, source: Option<&str>) -> Result<SourceFilter, ToolError> {
        let Some(name) = source.filter(|name| !UNSPECIFIED.contains(name)) else {
            return Ok(SourceFilter::Any);
        };
        let skills = Source::Skill.to_string();
        if let Some(id) = self.servers.iter().find(|server| server.as_str() == name) {
            Ok(SourceFilter::Only(Source::Server(id.clone())))
        } else if GUESSED.contains(&name) {
            Ok(SourceFilter::Guessed)
        } else if name == skills {
            Ok(SourceFilter::Only(Source::Skill))
        } else {
            let names = self.servers.iter().map(ServerId::as_str).chain(GUESSED).chain([skills.as_str()]);
            let near = similar_names(name, names, MAX_SUGGESTIONS);
            Err(ToolError::UnknownSource { name: name.to_owned(), near })
        }
    }
}
