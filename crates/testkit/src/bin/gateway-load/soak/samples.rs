//! Samples memory, descriptors and children of the gateway, and detects growth.

use std::fs;
use std::time::{Duration, Instant};

use toolhub_testkit::processes;

const SAMPLE_INTERVAL: Duration = Duration::from_millis(500);
/// The share of a run that is ignored: the gateway connects to its servers, and caches and allocator reserves fill up.
const WARM_UP_SHARE: f64 = 1.0 / 3.0;
/// Maximum growth of memory per minute after the warm-up: the slope of the least-squares line.
const MAX_MIB_PER_MINUTE: f64 = 1.0;
/// Maximum total growth after the warm-up in short runs: the allocator takes memory in steps of a few MiB, which depend on how many
/// calls happen to run at once.
const MAX_MIB: f64 = 8.0;
/// Maximum growth of descriptors and children between the first and the last third.
const MAX_GROWTH: f64 = 16.0;

#[derive(Clone, Copy)]
struct Sample {
    /// Since the first sample.
    seconds: f64,
    kilobytes: f64,
    descriptors: f64,
    children: f64,
}

/// All samples of a run, in order.
pub(super) struct Samples(Vec<Sample>);

/// The trend of memory after the warm-up.
#[derive(Clone, Copy)]
struct Trend {
    mib_per_minute: f64,
    /// The limit.
    max_mib_per_minute: f64,
    /// Standard error of the slope, if the deviations are independent.
    standard_error: f64,
}

impl Samples {
    /// Samples a process until `until`.
    pub(super) async fn take(pid: u32, until: Instant) -> Self {
        let (start, mut all) = (Instant::now(), Vec::new());
        while Instant::now() < until {
            all.extend(read_sample(pid, start.elapsed().as_secs_f64()));
            tokio::time::sleep(SAMPLE_INTERVAL).await;
        }
        Self(all)
    }

    /// The samples after the warm-up.
    fn steady(&self) -> &[Sample] {
        let first = (self.0.len() as f64 * WARM_UP_SHARE) as usize;
        self.0.get(first..).unwrap_or_default()
    }

    /// The medians of the first and of the last third after the warm-up.
    fn thirds(&self, of: impl Fn(&Sample) -> f64) -> (f64, f64) {
        let steady = self.steady();
        let third = (steady.len() / 3).max(1).min(steady.len());
        let median = |part: &[Sample]| {
            let mut values: Vec<f64> = part.iter().map(&of).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
        };
        (median(&steady[..third]), median(&steady[steady.len() - third..]))
    }

    /// The trend of memory; `None` with too few samples for a line.
    fn memory(&self) -> Option<Trend> {
        let points: Vec<(f64, f64)> =
            self.steady().iter().map(|sample| (sample.seconds / 60.0, sample.kilobytes / 1024.0)).collect();
        let (mib_per_minute, standard_error) = least_squares(&points)?;
        let minutes = points.last()?.0 - points.first()?.0;
        let max_mib_per_minute = MAX_MIB_PER_MINUTE.max(MAX_MIB / minutes);
        Some(Trend { mib_per_minute, max_mib_per_minute, standard_error })
    }

    /// Formats the trend of memory, and both thirds of each figure.
    pub(super) fn report(&self) -> String {
        let memory = self.thirds(|sample| sample.kilobytes / 1024.0);
        let descriptors = self.thirds(|sample| sample.descriptors);
        let children = self.thirds(|sample| sample.children);
        let trend = self.memory().map_or_else(String::new, |trend| {
            format!(
                "memory grows by {:.2} ± {:.2} MiB a minute (at most {:.2})\n",
                trend.mib_per_minute, trend.standard_error, trend.max_mib_per_minute
            )
        });
        format!(
            "{trend}first and last third: memory {:.1} and {:.1} MiB, descriptors {} and {}, children {} and {}",
            memory.0, memory.1, descriptors.0, descriptors.1, children.0, children.1
        )
    }

    /// Returns what grows beyond its limit.
    pub(super) fn faults(&self) -> Vec<String> {
        let Some(trend) = self.memory() else {
            return vec!["the gateway was not sampled".to_owned()];
        };
        let mut found = Vec::new();
        if trend.mib_per_minute > trend.max_mib_per_minute {
            found.push(format!(
                "memory grows by {:.2} MiB a minute, more than {:.2}",
                trend.mib_per_minute, trend.max_mib_per_minute
            ));
        }
        let mut check = |what: &str, (first, last): (f64, f64)| {
            if last > first + MAX_GROWTH {
                found.push(format!("{what} grow from {first} to {last}"));
            }
        };
        check("descriptors", self.thirds(|sample| sample.descriptors));
        check("children", self.thirds(|sample| sample.children));
        found
    }
}

/// The slope of the least-squares line through points, and its standard error. `None` for fewer than three points, or
/// if all have the same x.
fn least_squares(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let count = points.len() as f64;
    if points.len() < 3 {
        return None;
    }
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    if spread <= 0.0 {
        return None;
    }
    let slope = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>() / spread;
    let residual: f64 = points.iter().map(|(x, y)| (y - mean_y - slope * (x - mean_x)).powi(2)).sum();
    Some((slope, (residual / (count - 2.0) / spread).sqrt()))
}

fn read_sample(pid: u32, seconds: f64) -> Option<Sample> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes = resident.trim().trim_end_matches("kB").trim().parse().ok()?;
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as f64;
    Some(Sample { seconds, kilobytes, descriptors, children: processes::children_of(pid).len() as f64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of that many minutes with the given memory in MiB by minute, and noise of ±2 MiB.
    fn run(minutes: f64, memory: impl Fn(f64) -> f64) -> Samples {
        let count = (minutes * 60.0 / SAMPLE_INTERVAL.as_secs_f64()) as usize;
        let sample = |number: usize| {
            let seconds = number as f64 * SAMPLE_INTERVAL.as_secs_f64();
            let noise = [2.0, -1.0, 0.5, -2.0, 1.0, -0.5][number % 6];
            let kilobytes = (memory(seconds / 60.0) + noise) * 1024.0;
            Sample { seconds, kilobytes, descriptors: 40.0, children: 3.0 }
        };
        Samples((0..count).map(sample).collect())
    }

    fn slope(samples: &Samples) -> f64 {
        samples.memory().unwrap().mib_per_minute
    }

    #[test]
    fn slope_matches_linear_samples() {
        let (slope, error) = least_squares(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0), (3.0, 7.0)]).unwrap();
        assert!((slope - 2.0).abs() < 1e-12 && error < 1e-12, "{slope} {error}");
        // Computed by hand: means 1 and 2, slope (1 + 0 + 2) / 2, residuals 1/2, -1, 1/2.
        let (slope, error) = least_squares(&[(0.0, 1.0), (1.0, 1.0), (2.0, 4.0)]).unwrap();
        assert!((slope - 1.5).abs() < 1e-12 && (error - 0.75_f64.sqrt()).abs() < 1e-12, "{slope} {error}");
        assert!(least_squares(&[(0.0, 1.0), (1.0, 2.0)]).is_none());
        assert!(least_squares(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]).is_none());
    }

    #[test]
    fn accepts_flat_memory() {
        for minutes in [0.5, 15.0] {
            let samples = run(minutes, |_| 60.0);
            assert!(slope(&samples).abs() < 2.0 && samples.faults().is_empty(), "{:?}", samples.faults());
        }
    }

    #[test]
    fn ignores_growth_during_warm_up() {
        let samples = run(15.0, |minute| 40.0 + 60.0 * (minute / 4.0).min(1.0));
        assert!(samples.faults().is_empty(), "{:?}", samples.faults());
    }

    /// The leak of the long run is 18 MiB, which a relative limit of a quarter plus some MiB would allow.
    #[test]
    fn detects_leak_in_short_and_long_runs() {
        for (minutes, leak) in [(0.5, 16.0), (3.0, 3.0), (15.0, 1.2)] {
            let samples = run(minutes, |minute| 60.0 + leak * minute);
            assert!((slope(&samples) - leak).abs() < 1.0, "{}", slope(&samples));
            assert_eq!(samples.faults().len(), 1, "{minutes}: {:?}", samples.faults());
        }
    }

    #[test]
    fn detects_growing_descriptors_and_children() {
        let mut samples = run(3.0, |_| 60.0);
        let count = samples.0.len();
        for (number, sample) in samples.0.iter_mut().enumerate() {
            sample.descriptors += 60.0 * number as f64 / count as f64;
            sample.children += 60.0 * number as f64 / count as f64;
        }
        assert_eq!(samples.faults().len(), 2, "{:?}", samples.faults());
    }

    #[test]
    fn reports_missing_samples() {
        assert_eq!(Samples(Vec::new()).faults(), ["the gateway was not sampled"]);
    }
}
