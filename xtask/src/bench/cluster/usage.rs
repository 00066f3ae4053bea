//! What processes use: CPU time, also of a process with all its descendants, and proportional memory, from `/proc`.
use std::{collections::HashMap, fs, time::Duration};

use anyhow::{Context, Result};

use super::super::gateway::processor_time;

/// CPU time of some processes alone, without their children.
pub(super) fn cpu_of(pids: &[u32]) -> Result<Duration> {
    pids.iter().map(|pid| processor_time(*pid)).sum()
}

/// CPU time of a process and all its descendants, including those that have ended.
pub(super) fn cpu_of_tree(root: u32) -> Duration {
    let stats = all_stats();
    let ticks: u64 = descendants(root, &stats)
        .iter()
        .chain([&root])
        .filter_map(|pid| stats.get(pid))
        .map(|stat| stat.own_ticks + stat.ended_children_ticks)
        .sum();
    Duration::from_millis(ticks * 10)
}

/// The direct children of a process.
pub(super) fn children(parent: u32) -> Vec<u32> {
    all_stats().into_iter().filter(|(_, stat)| stat.parent == parent).map(|(pid, _)| pid).collect()
}

/// Proportional memory of a process in bytes: pages that several processes share are divided among them.
pub(super) fn proportional_memory(pid: u32) -> Result<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))
        .with_context(|| format!("the memory of process {pid} cannot be read"))?;
    parse_proportional(&text).context("no `Pss` in `smaps_rollup`")
}

/// The sum over processes; one that has ended in the meantime counts as 0.
pub(super) fn total_memory(pids: &[u32]) -> f64 {
    // The sum of no numbers would be -0.
    pids.iter().filter_map(|pid| proportional_memory(*pid).ok()).fold(0.0, |sum, memory| sum + memory)
}

/// The sum over a process and all its descendants.
pub(super) fn memory_of_tree(root: u32) -> f64 {
    let mut pids = descendants(root, &all_stats());
    pids.push(root);
    total_memory(&pids)
}

fn parse_proportional(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1024.0)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    /// In ticks of 10 ms, as the next field.
    own_ticks: u64,
    ended_children_ticks: u64,
}

/// The process name may contain any character, so the fields are read after the last `)`.
fn parse_stat(text: &str) -> Option<Stat> {
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(Stat {
        parent: fields.get(1)?.parse().ok()?,
        own_ticks: ticks(11)? + ticks(12)?,
        ended_children_ticks: ticks(13)? + ticks(14)?,
    })
}

fn all_stats() -> HashMap<u32, Stat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some((pid, parse_stat(&text)?))
    })
    .collect()
}

fn descendants(root: u32, stats: &HashMap<u32, Stat>) -> Vec<u32> {
    let (mut found, mut parents) = (Vec::new(), vec![root]);
    while let Some(parent) = parents.pop() {
        let children = stats.iter().filter(|(_, stat)| stat.parent == parent).map(|(pid, _)| *pid);
        let children: Vec<u32> = children.collect();
        found.extend(&children);
        parents.extend(children);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_files_of_the_kernel() {
        let text = "7 (a) b (c) S 3 7 7 0 -1 4194304 100 0 0 0 11 12 13 14 20 0 1 0 100 1000 10";
        let stat = Stat { parent: 3, own_ticks: 23, ended_children_ticks: 27 };
        assert_eq!(parse_stat(text), Some(stat));
        assert_eq!(parse_stat("7 (a) S 3"), None);
        assert_eq!(
            parse_proportional("0 ---p [rollup]\nRss: 9 kB\nPss:   3 kB\nPss_Anon: 1 kB\n"),
            Some(3072.0)
        );
    }

    #[test]
    fn finds_descendants_of_all_generations() {
        let stat = |parent| Stat { parent, own_ticks: 0, ended_children_ticks: 0 };
        let stats = HashMap::from([(1, stat(0)), (2, stat(1)), (3, stat(2)), (4, stat(1)), (5, stat(9))]);
        let mut found = descendants(1, &stats);
        found.sort_unstable();
        assert_eq!(found, [2, 3, 4]);
    }
}
