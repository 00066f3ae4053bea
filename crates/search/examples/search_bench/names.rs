//! Checks that every tool of the largest set is found by its name, exact and with one typo.

use std::collections::HashMap;

use anyhow::{Result, ensure};
use serde::Serialize;
use toolhub_search::{RankingSettings, SearchRequest, ToolIndex};

use crate::columns::{columns, percent};
use crate::sets::Set;

/// Names with fewer letters are not tested with a typo.
const MIN_NAME_CHARS: usize = 6;

/// Minimum share of names with one typo that rank among the first three. The others become the name of another tool.
const MIN_FOUND_WITH_TYPO: f64 = 0.995;

/// The results for one set.
#[derive(Serialize)]
pub(crate) struct Names {
    set: String,
    tools: usize,
    /// Number of definitions in the index; must equal `tools`.
    indexed: usize,
    ways: Vec<NameResults>,
}

#[derive(Serialize)]
struct NameResults {
    how: &'static str,
    writing: Spelling,
    names: usize,
    first: usize,
    first_three: usize,
    missed: Vec<String>,
}

impl Names {
    /// Returns an error if a requirement is violated. The requirements hold for arbitrary definitions.
    pub(crate) fn broken(&self) -> Result<()> {
        ensure!(self.indexed == self.tools, "{} of {} definitions are indexed", self.indexed, self.tools);
        for way in &self.ways {
            match way.writing {
                Spelling::Exact => {
                    ensure!(way.first == way.names, "{} of {} names come first", way.first, way.names);
                }
                Spelling::Typo => {
                    let share = way.first_three as f64 / way.names.max(1) as f64;
                    let (how, share_shown, missed) = (way.how, percent(share), &way.missed);
                    ensure!(
                        share >= MIN_FOUND_WITH_TYPO,
                        "{how}: {share_shown} % among three; missed {missed:?}"
                    );
                }
                Spelling::Words => {}
            }
        }
        Ok(())
    }
}

/// How a name is written in the request. The required rank depends on it.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum Spelling {
    Exact,
    Words,
    Typo,
}

pub(crate) fn measure(set: &Set, settings: &RankingSettings) -> Names {
    let index = ToolIndex::new(set.tools(), settings.clone());
    let mut shared: HashMap<&str, usize> = HashMap::new();
    for (_, tool) in &set.tools {
        *shared.entry(tool.name().as_str()).or_default() += 1;
    }
    let mut names: Vec<&str> =
        shared.into_iter().filter(|(_, count)| *count == 1).map(|(name, _)| name).collect();
    names.sort_unstable();
    let long: Vec<&str> = names
        .iter()
        .copied()
        .filter(|name| name.chars().filter(|c| c.is_alphabetic()).count() >= MIN_NAME_CHARS)
        .collect();
    let typo = Spelling::Typo;
    let ways = vec![
        find(&index, "as written", Spelling::Exact, &names, |name, _| name.to_owned()),
        find(&index, "in words", Spelling::Words, &names, |name, _| name.replace(['_', '-', '.'], " ")),
        find(&index, "one letter left out", typo, &long, |name, at| change(name, at, |_| Vec::new())),
        find(&index, "one letter doubled", typo, &long, |name, at| change(name, at, |c| vec![c, c])),
        find(&index, "one letter wrong", typo, &long, |name, at| {
            change(name, at, |c| vec![if c == 'x' { 'y' } else { 'x' }])
        }),
        find(&index, "two letters swapped", typo, &long, swap),
    ];
    Names { set: set.name.clone(), tools: set.tools.len(), indexed: index.len(), ways }
}

fn find(
    index: &ToolIndex,
    how: &'static str,
    writing: Spelling,
    names: &[&str],
    write: impl Fn(&str, usize) -> String,
) -> NameResults {
    let mut found =
        NameResults { how, writing, names: names.len(), first: 0, first_three: 0, missed: Vec::new() };
    for (number, name) in names.iter().enumerate() {
        let written = write(name, number);
        let ranking = index.rank(&SearchRequest::new(&written).limit(3));
        let rank = ranking.hits.iter().position(|hit| hit.tool.name().as_str() == *name);
        found.first += usize::from(rank == Some(0));
        found.first_three += usize::from(rank.is_some());
        if rank.is_none() && found.missed.len() < 10 {
            found.missed.push(format!("{written} for {name}"));
        }
    }
    found
}

/// Changes one letter of a name. `seed` selects the letter, so that all positions are covered.
fn change(name: &str, seed: usize, new: impl Fn(char) -> Vec<char>) -> String {
    let letters: Vec<char> = name.chars().collect();
    let places: Vec<usize> =
        (0..letters.len()).filter(|at| letters.get(*at).is_some_and(|c| c.is_alphabetic())).collect();
    let position = places.get(seed % places.len().max(1)).copied();
    letters
        .iter()
        .enumerate()
        .flat_map(|(at, c)| if Some(at) == position { new(*c) } else { vec![*c] })
        .collect()
}

fn swap(name: &str, seed: usize) -> String {
    let mut letters: Vec<char> = name.chars().collect();
    let differ = |at: &usize| match (letters.get(*at), letters.get(at + 1)) {
        (Some(a), Some(b)) => a.is_alphabetic() && b.is_alphabetic() && a != b,
        _ => false,
    };
    let places: Vec<usize> = (0..letters.len()).filter(differ).collect();
    if let Some(at) = places.get(seed % places.len().max(1)) {
        letters.swap(*at, at + 1);
    }
    letters.into_iter().collect()
}

pub(crate) fn table(names: &Names) -> String {
    let mut lines = vec![["name", "tried", "first", "among three"].map(str::to_owned).to_vec()];
    for found in &names.ways {
        let share = |count: usize| percent(count as f64 / found.names.max(1) as f64);
        lines.push(vec![
            found.how.to_owned(),
            found.names.to_string(),
            share(found.first),
            share(found.first_three),
        ]);
    }
    format!(
        "{}\n{} of {} definitions of {} are indexed\n",
        columns(&lines),
        names.indexed,
        names.tools,
        names.set
    )
}
