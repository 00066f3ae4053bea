//! Requests with and without a fitting tool: over the tools of their own set, over these without the relevant ones, and over
//! the tools of another set. Each over whole sets and over small catalogs drawn from them.

use toolhub_core::Tool;
use toolhub_search::{FitEvidence, RankingSettings, SearchRequest, ToolIndex};

use crate::sets::{Query, Set};

/// Number of requests per set over all its tools.
const REQUESTS: usize = 120;
/// Number of requests per set and size of small catalog.
const REQUESTS_PER_SMALL_SET: usize = 60;
/// Larger sets are skipped, because each request with removed tools needs an index of its own.
const MAX_TOOLS: usize = 5_000;
/// Sizes of small catalogs, as most users have them.
pub(crate) const SIZES: [usize; 3] = [16, 64, 256];

/// Whether the catalog contains a fitting tool.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The catalog contains the relevant tools.
    Own,
    /// The relevant tools are removed from the catalog.
    Removed,
    /// The request belongs to another set.
    Foreign,
}

/// The size of the catalog.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// All tools of the set.
    Whole,
    /// This many tools, drawn from the set.
    Drawn(usize),
}

/// One request over one catalog, and its result.
pub(crate) struct Case {
    pub(crate) set: String,
    /// The family of sets that the request is from.
    pub(crate) query_set: String,
    pub(crate) kind: Kind,
    pub(crate) size: Size,
    pub(crate) request: String,
    pub(crate) best: String,
    pub(crate) evidence: FitEvidence,
    pub(crate) confidence: f32,
    /// Whether a relevant tool is among the first ten.
    pub(crate) found: bool,
}

/// The origin of a set, the part of its name before `_`: sets of one origin share tools and requests.
pub(crate) fn family(set: &str) -> &str {
    set.split('_').next().unwrap_or(set)
}

/// Runs all cases.
pub(crate) fn gather(sets: &[Set], settings: &RankingSettings) -> Vec<Case> {
    let usable: Vec<&Set> =
        sets.iter().filter(|set| !set.queries.is_empty() && set.tools.len() <= MAX_TOOLS).collect();
    let mut cases = Vec::new();
    for set in &usable {
        let other_sets: Vec<&Set> =
            usable.iter().copied().filter(|other| family(&other.name) != family(&set.name)).collect();
        whole(set, &other_sets, settings, &mut cases);
        // A set must be clearly larger than the sample: at least 1.5 times its size.
        for size in SIZES.into_iter().filter(|size| size * 3 / 2 <= set.tools.len()) {
            sampled_cases(set, &other_sets, SampleOptions { size, settings }, &mut cases);
        }
    }
    cases
}

pub(crate) fn spread(queries: &[Query], count: usize) -> impl Iterator<Item = &Query> {
    queries.iter().step_by((queries.len() / count.max(1)).max(1)).take(count)
}

/// `count` requests of other sets, the same number from each.
fn requests_of_other_sets<'a>(
    other_sets: &[&'a Set],
    count: usize,
) -> impl Iterator<Item = (&'a str, &'a Query)> {
    let each = count / other_sets.len().max(1);
    other_sets.iter().flat_map(move |set| spread(&set.queries, each).map(|query| (family(&set.name), query)))
}

fn whole(set: &Set, other_sets: &[&Set], settings: &RankingSettings, cases: &mut Vec<Case>) {
    let index = ToolIndex::new(set.tools(), settings.clone());
    let own = family(&set.name);
    let mut note = |kind, (query_set, query): (&str, &Query), index: &ToolIndex| {
        cases.push(case(set, index, query_set, query, kind, Size::Whole));
    };
    for query in spread(&set.queries, REQUESTS) {
        note(Kind::Own, (own, query), &index);
        let others = set.tools.iter().filter(|(id, _)| !query.relevant.contains(id));
        let others = ToolIndex::new(others.map(|(_, tool)| tool.clone()), settings.clone());
        note(Kind::Removed, (own, query), &others);
    }
    for (query_set, query) in requests_of_other_sets(other_sets, REQUESTS) {
        note(Kind::Foreign, (query_set, query), &index);
    }
}

/// The parameters of a small catalog.
#[derive(Clone, Copy)]
struct SampleOptions<'a> {
    size: usize,
    settings: &'a RankingSettings,
}

fn sampled_cases(set: &Set, other_sets: &[&Set], drawing: SampleOptions<'_>, cases: &mut Vec<Case>) {
    let mut rng = Rng::new();
    let size = Size::Drawn(drawing.size);
    let index = |tools: &[Tool]| ToolIndex::new(tools.iter().cloned(), drawing.settings.clone());
    for query in spread(&set.queries, REQUESTS_PER_SMALL_SET) {
        let mut tools = sample_tools(set, query, drawing.size, &mut rng);
        let own = family(&set.name);
        cases.push(case(set, &index(&tools), own, query, Kind::Removed, size));
        let right = set.tools.iter().filter(|(id, _)| query.relevant.contains(id));
        tools.extend(right.map(|(_, tool)| tool.clone()));
        cases.push(case(set, &index(&tools), own, query, Kind::Own, size));
    }
    for (query_set, query) in requests_of_other_sets(other_sets, REQUESTS_PER_SMALL_SET) {
        let tools = sample_tools(set, query, drawing.size, &mut rng);
        cases.push(case(set, &index(&tools), query_set, query, Kind::Foreign, size));
    }
}

/// Draws `size` tools of a set that are not relevant for the request.
fn sample_tools(set: &Set, query: &Query, size: usize, rng: &mut Rng) -> Vec<Tool> {
    let mut places: Vec<usize> = Vec::new();
    while places.len() < size {
        let index = rng.below(set.tools.len());
        let right = set.tools.get(index).is_some_and(|(id, _)| query.relevant.contains(id));
        if !right && !places.contains(&index) {
            places.push(index);
        }
    }
    places.into_iter().filter_map(|index| set.tools.get(index).map(|(_, tool)| tool.clone())).collect()
}

fn case(set: &Set, index: &ToolIndex, query_set: &str, query: &Query, kind: Kind, size: Size) -> Case {
    let ranking = index.rank(&SearchRequest::new(&query.query));
    let is_right =
        |tool: &Tool| set.id_of(tool).is_some_and(|id| query.relevant.iter().any(|right| right == id));
    Case {
        set: set.name.clone(),
        query_set: query_set.to_owned(),
        kind,
        size,
        request: query.query.clone(),
        best: ranking.hits.first().map(|hit| hit.tool.name().to_string()).unwrap_or_default(),
        evidence: ranking.evidence,
        confidence: ranking.confidence,
        found: kind == Kind::Own && ranking.hits.iter().any(|hit| is_right(hit.tool)),
    }
}

/// A deterministic random number generator (xorshift).
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound.max(1)
    }
}
