//! Tools that call other tools, such as `run_script`: the port through which a running call makes further calls for its
//! caller.

use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::BoxFuture;
use crate::call_id::CallId;
use crate::control_tool::{ControlProperty, ControlTool};
use crate::error::ToolError;
use crate::json::RawJson;
use crate::lang::LocalizedText;
use crate::output::ToolOutput;
use crate::source::{SOURCE_SEPARATOR, Source};
use crate::tool::{ApprovalStatus, Tool};

/// A tool that a running call may use.
#[derive(Debug, Clone)]
pub struct NestedTool {
    /// Its unique name.
    pub name: String,
    /// Its server and its name there, if it belongs to one server.
    pub member: Option<(String, String)>,
    /// Its definition as the caller sees it.
    pub definition: RawJson,
    /// Whether a call changes nothing. A script of a skill cannot promise that: it depends on the tools that it calls.
    pub read_only: bool,
    /// Whether it is a script of a skill, which calls tools itself.
    pub is_script: bool,
}

impl NestedTool {
    /// A tool under a unique name. `None` if running calls do not use it: it is quarantined, or calls other tools itself.
    pub fn of(tool: &Tool, name: String) -> Option<Self> {
        let calls_tools =
            ControlTool::of(tool).is_some_and(|control| control.has(ControlProperty::CallsTools));
        if calls_tools || tool.approval == ApprovalStatus::Quarantined {
            return None;
        }
        let member = match &tool.source {
            // A name that is reserved for another tool has the server before it.
            Source::Server(id) => {
                let catalog_name = tool.name().as_str();
                let server_name = catalog_name
                    .strip_prefix(id.as_str())
                    .and_then(|rest| rest.strip_prefix(SOURCE_SEPARATOR));
                Some((id.to_string(), server_name.unwrap_or(catalog_name).to_owned()))
            }
            Source::Native | Source::Skill => None,
        };
        let read_only = tool.hints().read_only == Some(true) && !tool.is_script;
        let (definition, is_script) = (tool.definition.raw().clone(), tool.is_script);
        Some(Self { name, member, definition, read_only, is_script })
    }
}

/// The tools that a running call may use, sorted by name. One list serves all calls that see the same tools.
#[derive(Debug)]
pub struct NestedToolList(Vec<NestedTool>);

impl NestedToolList {
    /// A list of these tools. Of several with the same name, the first one stays.
    pub fn new(mut tools: Vec<NestedTool>) -> Self {
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        tools.dedup_by(|one, other| one.name == other.name);
        Self(tools)
    }

    /// The tool with this unique name.
    pub fn get(&self, name: &str) -> Option<&NestedTool> {
        let index = self.0.binary_search_by(|tool| tool.name.as_str().cmp(name)).ok()?;
        self.0.get(index)
    }

    /// All tools, sorted by name.
    pub fn iter(&self) -> std::slice::Iter<'_, NestedTool> {
        self.0.iter()
    }

    /// The tools that a script of a skill may use: scripts do not start further ones without end.
    #[must_use]
    pub fn without_scripts(self: &Arc<Self>) -> Arc<Self> {
        match self.0.iter().any(|tool| tool.is_script) {
            true => Arc::new(Self(self.0.iter().filter(|tool| !tool.is_script).cloned().collect())),
            false => Arc::clone(self),
        }
    }
}

impl<'a> IntoIterator for &'a NestedToolList {
    type Item = &'a NestedTool;
    type IntoIter = std::slice::Iter<'a, NestedTool>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// What all calls share that one call makes, however deep they are nested: a script cannot multiply its limits by calling
/// scripts of skills.
#[derive(Debug)]
pub struct NestedBudget {
    /// Bytes of results that are stored in full. Further results are stored shortened, so that a script that reads much does
    /// not fill the history.
    stored_bytes: AtomicUsize,
    calls: AtomicUsize,
    cpu: Mutex<CpuBudget>,
}

/// CPU time of a script and of the scripts that it calls, together.
#[derive(Debug)]
struct CpuBudget {
    limit: Duration,
    /// What the outermost script has used.
    outer: Duration,
    /// What scripts that it has called have used.
    inner: Duration,
    /// What scripts that run now may use.
    shared_out: Duration,
}

/// The CPU time that one inner script may use. What it has not used goes back with [`CpuShare::end`]; a share that is dropped
/// counts as used.
#[derive(Debug)]
pub struct CpuShare {
    budget: Arc<NestedBudget>,
    time: Duration,
    /// What counts as used.
    used: Duration,
}

/// The smallest share of CPU time with which a script is started.
const MIN_CPU_SHARE: Duration = Duration::from_millis(20);

impl CpuShare {
    /// The CPU time.
    pub fn time(&self) -> Duration {
        self.time
    }

    /// Ends the share of a script that has used so much.
    pub fn end(mut self, used: Duration) {
        self.used = used;
    }
}

impl Drop for CpuShare {
    fn drop(&mut self) {
        let mut cpu = self.budget.cpu();
        cpu.shared_out = cpu.shared_out.saturating_sub(self.time);
        cpu.inner = cpu.inner.saturating_add(self.used);
    }
}

impl NestedBudget {
    /// A budget of so many calls, so many bytes of their results, and so much CPU time.
    pub fn new(calls: usize, stored_bytes: usize, cpu: Duration) -> Arc<Self> {
        let cpu = CpuBudget {
            limit: cpu,
            outer: Duration::ZERO,
            inner: Duration::ZERO,
            shared_out: Duration::ZERO,
        };
        Arc::new(Self {
            stored_bytes: AtomicUsize::new(stored_bytes),
            calls: AtomicUsize::new(calls),
            cpu: Mutex::new(cpu),
        })
    }

    fn cpu(&self) -> MutexGuard<'_, CpuBudget> {
        self.cpu.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes half of the CPU time that is left, so that scripts that run at the same time never have more than all of it
    /// together. `None` if it is used up.
    pub fn take_cpu(self: &Arc<Self>) -> Option<CpuShare> {
        let mut cpu = self.cpu();
        let taken = cpu.outer.saturating_add(cpu.inner).saturating_add(cpu.shared_out);
        let remaining_time = cpu.limit.saturating_sub(taken);
        let time = remaining_time / 2;
        if time < MIN_CPU_SHARE {
            return None;
        }
        cpu.shared_out += time;
        drop(cpu);
        Some(CpuShare { budget: Arc::clone(self), time, used: time })
    }

    /// Sets the CPU time that the outermost script has used until now.
    pub fn set_outer_cpu(&self, used: Duration) {
        self.cpu().outer = used;
    }

    /// The CPU time that inner scripts have used which have ended.
    pub fn inner_cpu(&self) -> Duration {
        self.cpu().inner
    }

    /// Takes bytes for a result. Returns whether they are left; if not, none are taken.
    pub fn take_stored_bytes(&self, bytes: usize) -> bool {
        take(&self.stored_bytes, bytes)
    }

    /// Takes one call. Returns whether one was left.
    pub fn take_call(&self) -> bool {
        take(&self.calls, 1)
    }
}

fn take(remaining: &AtomicUsize, count: usize) -> bool {
    remaining
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |remaining| remaining.checked_sub(count))
        .is_ok()
}

/// What is known of the call that gets a port for nested calls.
#[derive(Debug, Clone, Default)]
pub struct NestedOrigin {
    /// The budget of the outermost call, if another call makes this one.
    pub budget: Option<Arc<NestedBudget>>,
    /// Whether the call may be resumed after a crash.
    pub may_resume: bool,
}

/// A call that a running call makes.
#[derive(Debug, Clone)]
pub struct NestedCall {
    /// The running call.
    pub parent: CallId,
    /// The budget of the running call, shared by all its calls.
    pub budget: Arc<NestedBudget>,
    /// The unique name of the tool.
    pub tool: String,
    /// The arguments: an object.
    pub arguments: RawJson,
}

/// The tools that a running call may use: those that its caller may use, with the same checks and confirmations.
pub trait NestedTools: Debug + Send + Sync {
    /// All tools. The list is made when it is requested: a call that waits for its turn holds none.
    fn tools(&self) -> BoxFuture<'_, Arc<NestedToolList>>;

    /// What is known of the running call.
    fn origin(&self) -> NestedOrigin {
        NestedOrigin::default()
    }

    /// Keeps a text about the calls that were made until the running call was interrupted, for its record.
    fn set_interruption(&self, _text: LocalizedText) {}

    /// The text of [`NestedTools::set_interruption`].
    fn interruption(&self) -> Option<LocalizedText> {
        None
    }

    /// Runs a call. Dropping the future cancels it.
    fn call(&self, call: NestedCall) -> BoxFuture<'_, Result<ToolOutput, ToolError>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_scripts_share_the_cpu_time_of_the_outermost_one() {
        let budget = NestedBudget::new(1, 1, Duration::from_secs(30));
        // Scripts at the same time never have more than all of it.
        let shares: Vec<CpuShare> = std::iter::from_fn(|| budget.take_cpu()).collect();
        let total: Duration = shares.iter().map(CpuShare::time).sum();
        assert!(shares.len() >= 8 && total < Duration::from_secs(30), "{shares:?}");
        // A script that is dropped before its end counts with its whole share.
        drop(shares);
        assert!(budget.take_cpu().is_none());
        // Scripts one after another give back what they do not use.
        let budget = NestedBudget::new(1, 1, Duration::from_secs(30));
        for _ in 0..100 {
            budget.take_cpu().unwrap().end(Duration::from_millis(100));
        }
        assert_eq!(budget.inner_cpu(), Duration::from_secs(10));
        budget.set_outer_cpu(Duration::from_secs(18));
        assert_eq!(budget.take_cpu().unwrap().time(), Duration::from_secs(1));
        budget.set_outer_cpu(Duration::from_secs(20));
        assert!(budget.take_cpu().is_none());
    }
}
