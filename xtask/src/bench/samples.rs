//! Measures the duration of several subjects alternately, most of them whole processes, and shows median and 90th percentile.
use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

use crate::table::Table;

pub(super) struct Subject {
    label: &'static str,
    run: Box<dyn FnMut() -> Result<Duration>>,
}

impl Subject {
    /// A subject that returns its own duration.
    pub(super) fn new(label: &'static str, run: impl FnMut() -> Result<Duration> + 'static) -> Self {
        Self { label, run: Box::new(run) }
    }

    /// A process, measured from start to exit.
    pub(super) fn process(label: &'static str, mut command: Command) -> Self {
        Self::new(label, move || time(&mut command))
    }
}

/// Runs the subjects alternately, so that other load on the machine affects all of them equally. The first one is the
/// reference for the others.
pub(super) fn measure(mut subjects: Vec<Subject>, rounds: usize) -> Result<Table> {
    let mut samples = vec![Vec::with_capacity(rounds); subjects.len()];
    // Round 0 warms the disk cache and is not counted.
    for round in 0..=rounds {
        for (subject, samples) in subjects.iter_mut().zip(&mut samples) {
            let elapsed = (subject.run)().with_context(|| format!("`{}`", subject.label))?;
            if round > 0 {
                samples.push(elapsed);
            }
        }
    }
    samples.iter_mut().for_each(|samples| samples.sort_unstable());
    let base = samples.first().map_or(Duration::ZERO, |samples| percentile(samples, 50));

    let mut table = Table::default();
    table.row(["command", "median ms", "p90 ms", "ratio"].map(str::to_owned));
    for (subject, samples) in subjects.iter().zip(&samples) {
        let median = percentile(samples, 50);
        let ratio = median.as_secs_f64() / base.as_secs_f64();
        let p90 = percentile(samples, 90);
        table.row([subject.label.to_owned(), milliseconds(median), milliseconds(p90), format!("{ratio:.2}")]);
    }
    Ok(table)
}

/// The duration of a process, which must succeed.
pub(super) fn time(command: &mut Command) -> Result<Duration> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let started = Instant::now();
    let status = command.status()?;
    let elapsed = started.elapsed();
    ensure!(status.success(), "it failed ({status})");
    Ok(elapsed)
}

/// The nearest-rank percentile of sorted samples.
pub(super) fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

pub(super) fn milliseconds(duration: Duration) -> String {
    format!("{:.2}", duration.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computes_percentiles() {
        for (count, percent, expect) in [
            (0, 50, 0),
            (1, 50, 1),
            (1, 90, 1),
            (2, 50, 1),
            (3, 50, 2),
            (10, 90, 9),
            (50, 50, 25),
            (50, 90, 45),
        ] {
            let sorted: Vec<Duration> = (1..=count).map(Duration::from_millis).collect();
            assert_eq!(percentile(&sorted, percent).as_millis(), expect, "{percent} % of {count}");
        }
    }
}
