//! Why a worker takes a request of no kind.

use toolhub_core::lang::LocalizedText;

use super::WorkerState;

impl WorkerState {
    /// Whether a request came after the time at which it had to begin, or that cannot be known.
    pub(super) fn is_late(&self, begin_by: i64) -> bool {
        self.member.clock.now().is_none_or(|now| now > begin_by)
    }

    /// Why a request with this time limit cannot begin here; `None` if it can.
    pub(super) fn refusal(&self, begin_by: i64) -> Option<LocalizedText> {
        if self.is_late(begin_by) {
            return Some(expired());
        }
        self.is_draining().then(ending)
    }
}

pub(super) fn other_version() -> LocalizedText {
    LocalizedText::new(
        "the worker is another version of toolhub: run the same version on all machines",
        "该工作进程是另一个版本的 toolhub：请在所有机器上运行相同的版本",
    )
}

pub(super) fn expired() -> LocalizedText {
    LocalizedText::new("the request expired before the worker received it", "请求已超时")
}

pub(super) fn ending() -> LocalizedText {
    LocalizedText::new("the worker is about to end", "该工作进程即将结束")
}

/// `setting` is the key of `[worker]` that allows more.
pub(super) fn full(setting: &str) -> LocalizedText {
    LocalizedText::new(
        format!("the worker is full: raise `{setting}` in `[worker]`, or start another one"),
        format!("该工作进程已满：请调大 `[worker]` 的 `{setting}`，或再启动一个工作进程"),
    )
}

pub(super) fn worker_stopped() -> LocalizedText {
    LocalizedText::new("its worker was stopped", "其工作进程已停止")
}

/// `setting` names the key that allows more, and `table` its table.
pub(super) fn over_time(setting: &str, table: &str) -> LocalizedText {
    LocalizedText::new(
        format!("it ran longer than its worker allows: raise `{setting}` in `[{table}]` of the worker"),
        format!("脚本运行时间超过其工作进程的限制：请调大该工作进程 `[{table}]` 的 `{setting}`"),
    )
}
