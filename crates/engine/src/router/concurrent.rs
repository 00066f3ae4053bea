//! Selects the candidates that may run concurrently, their order, and whether they race or are merged.

use std::sync::Arc;

use toolhub_core::lang::LocalizedText;
use toolhub_core::source::SourceKind;

use super::policy::{RoutingPolicy, Strategy};
use crate::catalog::CatalogEntry;
use crate::score::{Score, Scores};

/// Candidates in execution order.
pub(super) struct OrderedCandidates<'a> {
    pub(super) strategy: Strategy,
    /// Number of leading candidates that start at the same time.
    pub(super) batch: usize,
    pub(super) entries: Vec<&'a Arc<CatalogEntry>>,
    /// Scores of the candidates that run concurrently; empty if none do.
    pub(super) scores: Vec<Score>,
}

/// Inputs of the selection.
pub(super) struct CandidateSelection<'a> {
    pub(super) policy: &'a RoutingPolicy,
    pub(super) scores: &'a Scores,
    /// The requested capability, if the call names one instead of a tool.
    pub(super) capability: Option<&'a str>,
    /// Seed for shuffling equally ranked candidates of a capability.
    pub(super) seed: u64,
}

impl CandidateSelection<'_> {
    /// Orders the candidates and selects the strategy. `group` is in routing order.
    pub(super) fn order_candidates<'a>(
        &self,
        group: Vec<&'a Arc<CatalogEntry>>,
        reasons: &mut Vec<LocalizedText>,
    ) -> OrderedCandidates<'a> {
        let (safe, other): (Vec<_>, Vec<_>) =
            group.iter().copied().partition(|entry| entry.tool.hints().may_repeat());
        if safe.len() < 2 {
            if group.len() > 1 {
                reasons.push(one_by_one(&other));
            }
            return OrderedCandidates {
                strategy: Strategy::First,
                batch: 1,
                entries: group,
                scores: Vec::new(),
            };
        }
        if self.capability.is_none() && !self.are_declared_equivalent(&group) {
            reasons.push(LocalizedText::new(
                "not declared in `[routing] equivalent`, so never run concurrently",
                "未在 `[routing] equivalent` 中声明等价，因此不会同时运行",
            ));
            return OrderedCandidates {
                strategy: Strategy::First,
                batch: 1,
                entries: group,
                scores: Vec::new(),
            };
        }
        let (strategy, why) = self.strategy(&safe);
        if strategy == Strategy::First {
            reasons.push(why);
            return OrderedCandidates { strategy, batch: 1, entries: group, scores: Vec::new() };
        }
        let (mut entries, scores) = self.order(safe, reasons);
        let all_merged = strategy == Strategy::Merge && entries.len() <= 2;
        let batch = if all_merged { entries.len() } else { self.policy.batch.clamp(1, entries.len()) };
        reasons.push(why);
        if entries.len() + other.len() > batch {
            reasons.push(LocalizedText::new(
                format!("the first {batch} run side by side, the rest one by one if all of them fail"),
                format!("前 {batch} 个同时运行；若全部失败，其余逐个尝试"),
            ));
        }
        if !other.is_empty() {
            reasons.push(one_by_one(&other));
        }
        entries.extend(other);
        OrderedCandidates { strategy, batch, entries, scores }
    }

    /// Whether the owner declares sources of this name equivalent: several servers, which are only candidates together if they
    /// are declared, or a server and the native tools. Equal names do not imply equal behaviour.
    fn are_declared_equivalent(&self, group: &[&Arc<CatalogEntry>]) -> bool {
        let servers: Vec<_> =
            group.iter().filter(|entry| entry.tool.source.kind() == SourceKind::Mcp).collect();
        match servers[..] {
            [server] => group.iter().all(|entry| {
                let source = &entry.tool.source;
                *source == server.tool.source || self.policy.are_equivalent(&server.tool.source, source)
            }),
            _ => true,
        }
    }

    /// Selects race or merge, with the reason.
    fn strategy(&self, safe: &[&Arc<CatalogEntry>]) -> (Strategy, LocalizedText) {
        if self.capability.is_some() && safe.len() <= 2 {
            return (
                Strategy::Merge,
                LocalizedText::new("two at most: all run, and are merged", "至多两个：全部运行并合并"),
            );
        }
        let tags: Vec<&str> = match self.capability {
            Some(capability) => vec![capability],
            None => shared_tags(safe),
        };
        let ruled = tags.iter().find_map(|tag| Some((tag, *self.policy.strategies.get(*tag)?)));
        match ruled {
            Some((tag, strategy)) => {
                let name = strategy.name();
                (
                    strategy,
                    LocalizedText::new(format!("`{tag}` tools: {name}"), format!("`{tag}` 类工具：{name}")),
                )
            }
            None if safe.len() == 2 => {
                (Strategy::Merge, LocalizedText::new("exactly two: merged", "恰好两个：合并结果"))
            }
            None => (
                Strategy::Race,
                LocalizedText::new(
                    "more than two: raced, the first success counts",
                    "多于两个：竞争，先成功者为准",
                ),
            ),
        }
    }

    /// Sorts by most recent success, then native before skill before MCP, then by score. Equal candidates of a
    /// capability are shuffled to spread the load; others keep the routing order.
    fn order<'a>(
        &self,
        mut safe: Vec<&'a Arc<CatalogEntry>>,
        reasons: &mut Vec<LocalizedText>,
    ) -> (Vec<&'a Arc<CatalogEntry>>, Vec<Score>) {
        if self.capability.is_some() {
            fastrand::Rng::with_seed(self.seed).shuffle(&mut safe);
        }
        let mut scored: Vec<(&Arc<CatalogEntry>, Score)> = safe
            .into_iter()
            .map(|entry| (entry, self.scores.of(&entry.tool.source, entry.tool.name())))
            .collect();
        let latest = scored.iter().filter_map(|(_, score)| score.last_success).max();
        scored.sort_by(|(left, left_score), (right, right_score)| {
            let key = |entry: &Arc<CatalogEntry>, score: &Score| {
                (latest.is_none() || score.last_success != latest, priority(entry))
            };
            key(left, left_score)
                .cmp(&key(right, right_score))
                .then(right_score.value.total_cmp(&left_score.value))
        });
        let equals = scored
            .windows(2)
            .any(|pair| priority(pair[0].0) == priority(pair[1].0) && pair[0].1.value == pair[1].1.value);
        if self.capability.is_some() && equals {
            let seed = self.seed;
            reasons.push(LocalizedText::new(
                format!("equals are shuffled (seed {seed})"),
                format!("条件相同者随机排序（种子 {seed}）"),
            ));
        }
        scored.into_iter().unzip()
    }
}

fn priority(entry: &CatalogEntry) -> u8 {
    match entry.tool.source.kind() {
        SourceKind::Native => 0,
        SourceKind::Skill => 1,
        SourceKind::Mcp => 2,
    }
}

/// The tags that all entries share, in the order of the first entry.
fn shared_tags<'a>(safe: &[&'a Arc<CatalogEntry>]) -> Vec<&'a str> {
    let Some((first, others)) = safe.split_first() else { return Vec::new() };
    let shared = first.tags().iter().filter(|tag| others.iter().all(|entry| entry.tags().contains(tag)));
    shared.map(String::as_str).collect()
}

fn one_by_one(other: &[&Arc<CatalogEntry>]) -> LocalizedText {
    let names = other.iter().map(|entry| entry.tool.source.to_string()).collect::<Vec<_>>().join(", ");
    if names.is_empty() {
        return LocalizedText::new("one after another", "依次尝试");
    }
    LocalizedText::new(
        format!("{names}: not known to be read-only or idempotent, so never run side by side or twice"),
        format!("{names}：未声明只读或幂等，因此不会同时运行，也不会重复运行"),
    )
}
