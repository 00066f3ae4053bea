//! `[script]` of `toolhub.toml`: the limits of scripts (`run_script`).

use serde::Deserialize;
use toolhub_script::ScriptLimits;

use super::size::ByteSize;
use super::span::DurationSetting;

/// `[script]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ScriptSettings {
    /// Whether the tool `run_script` exists; it does by default.
    pub enabled: Option<bool>,
    /// Processor time of a script.
    pub cpu: Option<DurationSetting>,
    /// The time of a script, including its calls.
    pub time: Option<DurationSetting>,
    /// Memory for the values of a script.
    pub memory: Option<ByteSize>,
    /// The maximum number of calls.
    pub calls: Option<u32>,
    /// The maximum number of calls at the same time.
    pub concurrent_calls: Option<usize>,
    /// The maximum size of value and log.
    pub output: Option<ByteSize>,
    /// The maximum number of scripts at the same time.
    pub max_running: Option<usize>,
    /// The number of processes that wait for a script.
    pub warm_hosts: Option<usize>,
}

/// Scripts at the same time.
const MAX_RUNNING: usize = 32;
/// Processes that wait for a script, after the first one.
const WARM_HOSTS: usize = 1;

impl ScriptSettings {
    /// Whether the tool `run_script` exists.
    pub fn is_enabled(&self) -> bool {
        self.enabled.unwrap_or(true)
    }

    /// The limits of a script.
    pub fn limits(&self) -> ScriptLimits {
        let defaults = ScriptLimits::default();
        let bytes = |size: ByteSize| usize::try_from(size.0).unwrap_or(usize::MAX);
        ScriptLimits {
            cpu: self.cpu.map_or(defaults.cpu, |span| span.0),
            wall: self.time.map_or(defaults.wall, |span| span.0),
            memory: self.memory.map_or(defaults.memory, |size| size.0),
            calls: self.calls.unwrap_or(defaults.calls),
            concurrent_calls: self.concurrent_calls.unwrap_or(defaults.concurrent_calls).max(1),
            output: self.output.map_or(defaults.output, bytes),
            ..defaults
        }
    }

    /// Scripts that run at the same time.
    pub fn max_running(&self) -> usize {
        self.max_running.unwrap_or(MAX_RUNNING).max(1)
    }

    /// Processes that wait for a script.
    pub fn warm_hosts(&self) -> usize {
        self.warm_hosts.unwrap_or(WARM_HOSTS)
    }
}
