//! Catalogs of a few complete servers: their tools share a domain, so that most words of a request occur in most tools.

use std::collections::BTreeMap;

use serde::Serialize;
use toolhub_core::{Source, Tool};
use toolhub_search::{RankingSettings, SearchRequest, ToolIndex};

use crate::cases::{Rng, spread};
use crate::columns::{columns, percent};
use crate::sets::{Query, Set};

/// Number of requests per set and catalog.
const REQUESTS: usize = 240;
/// Numbers of servers beside those with the relevant tools.
const OTHERS: [usize; 4] = [0, 3, 15, 60];

#[derive(Default, Serialize)]
pub(crate) struct Row {
    set: String,
    others: usize,
    requests: usize,
    /// Requests with a relevant tool in first place, and among the first five.
    first: usize,
    among_five: usize,
    reciprocal_rank: f64,
    /// Requests with a confident ranking (`fits`), with the relevant servers in the catalog and without them.
    kept: usize,
    kept_without: usize,
}

/// The tools of each server of all sets.
type Servers = BTreeMap<Source, Vec<Tool>>;

pub(crate) fn measure(sets: &[Set], settings: &RankingSettings) -> Vec<Row> {
    let mut servers = Servers::new();
    for tool in sets.iter().flat_map(Set::tools).filter(|tool| matches!(tool.source, Source::Server(_))) {
        servers.entry(tool.source.clone()).or_default().push(tool);
    }
    let mut rows = Vec::new();
    for set in sets.iter().filter(|set| !set.queries.is_empty()) {
        let from_servers = |tool: &Tool| matches!(tool.source, Source::Server(_));
        if !set.tools.iter().any(|(_, tool)| from_servers(tool)) {
            continue;
        }
        for others in OTHERS {
            rows.push(row(set, &servers, others, settings));
        }
    }
    rows
}

fn row(set: &Set, servers: &Servers, others: usize, settings: &RankingSettings) -> Row {
    let mut row = Row { set: set.name.clone(), others, ..Row::default() };
    let mut rng = Rng::new();
    for query in spread(&set.queries, REQUESTS) {
        let right: Vec<&Source> = set.right_tools(query).map(|tool| &tool.source).collect();
        let is_right = |source: &Source| right.contains(&source);
        let other_sets: Vec<&Vec<Tool>> =
            servers.iter().filter(|(source, _)| !is_right(source)).map(|(_, tools)| tools).collect();
        let drawn: Vec<Tool> = (0..others)
            .filter_map(|_| other_sets.get(rng.below(other_sets.len())))
            .flat_map(|tools| tools.iter().cloned())
            .collect();
        let own = set.tools().filter(|tool| is_right(&tool.source));
        row.add(set, query, &ToolIndex::new(own.chain(drawn.iter().cloned()), settings.clone()));
        if others > 0 {
            let without = ToolIndex::new(drawn, settings.clone());
            row.kept_without += usize::from(without.rank(&SearchRequest::new(&query.query)).fits);
        }
    }
    row
}

impl Row {
    fn add(&mut self, set: &Set, query: &Query, index: &ToolIndex) {
        let ranking = index.rank(&SearchRequest::new(&query.query));
        let is_right = |tool: &Tool| set.id_of(tool).is_some_and(|id| query.relevant.iter().any(|r| r == id));
        let rank = ranking.hits.iter().position(|hit| is_right(hit.tool));
        self.requests += 1;
        self.first += usize::from(rank == Some(0));
        self.among_five += usize::from(rank.is_some_and(|rank| rank < 5));
        self.reciprocal_rank += rank.map_or(0.0, |rank| 1.0 / (rank + 1) as f64);
        self.kept += usize::from(ranking.fits);
    }
}

pub(crate) fn table(rows: &[Row]) -> String {
    let head = ["set", "other servers", "requests", "first", "among five", "MRR", "kept", "refused without"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for row in rows {
        let share = |count: usize| percent(count as f64 / row.requests.max(1) as f64);
        let mut line = vec![row.set.clone(), row.others.to_string(), row.requests.to_string()];
        line.extend([share(row.first), share(row.among_five)]);
        line.push(percent(row.reciprocal_rank / row.requests.max(1) as f64));
        line.push(share(row.kept));
        line.push(if row.others > 0 { share(row.requests - row.kept_without) } else { String::new() });
        lines.push(line);
    }
    columns(&lines)
}
