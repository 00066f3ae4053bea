//! What the gateway takes of the machine while it runs: memory, descriptors and children, and whether that grows.

use std::fs;
use std::time::{Duration, Instant};

use toolhub_testkit::processes;

const EVERY: Duration = Duration::from_millis(500);
/// How much more there may be in the last third than in the first: memory as a share and beside it in kilobytes, since
/// caches fill and memory that was freed is kept for a while; the others as a count.
const SHARE: f64 = 1.25;
const KILOBYTES: f64 = 24.0 * 1024.0;
const COUNT: f64 = 16.0;

#[derive(Clone, Copy)]
struct Sample {
    kilobytes: f64,
    descriptors: f64,
    children: f64,
}

/// All that was seen.
pub(super) struct Samples(Vec<Sample>);

impl Samples {
    /// Looks at a process until then.
    pub(super) async fn take(pid: u32, until: Instant) -> Self {
        let mut all = Vec::new();
        while Instant::now() < until {
            if let Some(sample) = look(pid) {
                all.push(sample);
            }
            tokio::time::sleep(EVERY).await;
        }
        Self(all)
    }

    /// The medians of the first and of the last third.
    fn thirds(&self, of: impl Fn(&Sample) -> f64) -> (f64, f64) {
        // At first it meets its servers and fills what it keeps at hand.
        let steady = &self.0[self.0.len() / 10..];
        let third = (steady.len() / 3).max(1).min(steady.len());
        let median = |part: &[Sample]| {
            let mut values: Vec<f64> = part.iter().map(&of).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
        };
        (median(&steady[..third]), median(&steady[steady.len() - third..]))
    }

    /// Both thirds of each, side by side.
    pub(super) fn report(&self) -> String {
        let memory = self.thirds(|sample| sample.kilobytes / 1024.0);
        let descriptors = self.thirds(|sample| sample.descriptors);
        let children = self.thirds(|sample| sample.children);
        format!(
            "first and last third: memory {:.1} and {:.1} MiB, descriptors {} and {}, children {} and {}",
            memory.0, memory.1, descriptors.0, descriptors.1, children.0, children.1
        )
    }

    /// What grows.
    pub(super) fn faults(&self) -> Vec<String> {
        if self.0.is_empty() {
            return vec!["the gateway was not seen".to_owned()];
        }
        let mut found = Vec::new();
        let mut check = |what: &str, (first, last): (f64, f64), most: f64| {
            if last > most {
                found.push(format!("{what} grow from {first} to {last}"));
            }
        };
        let memory = self.thirds(|sample| sample.kilobytes);
        check("kilobytes", memory, memory.0 * SHARE + KILOBYTES);
        let descriptors = self.thirds(|sample| sample.descriptors);
        check("descriptors", descriptors, descriptors.0 + COUNT);
        let children = self.thirds(|sample| sample.children);
        check("children", children, children.0 + COUNT);
        found
    }
}

fn look(pid: u32) -> Option<Sample> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes = resident.trim().trim_end_matches("kB").trim().parse().ok()?;
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as f64;
    Some(Sample { kilobytes, descriptors, children: processes::children_of(pid).len() as f64 })
}
