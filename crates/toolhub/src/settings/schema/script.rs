//! The schema of `[script]`.

use serde_json::Value;

use super::{count, duration, flag, size, table};

pub(super) fn script() -> Value {
    table(
        "Scripts that call tools (`run_script`)",
        [
            ("enabled", flag("Whether the tool `run_script` exists (default: true)")),
            ("cpu", duration("Processor time of a script (default: 30s)")),
            ("time", duration("Time of a script, with its calls (default: 10m)")),
            ("memory", size("Memory for the values of a script (default: 64MiB)")),
            ("calls", count(0, "Calls of a script (default: 100)")),
            ("concurrent_calls", count(1, "Calls of a script at the same time (default: 8)")),
            ("output", size("Value and log of a script (default: 256KiB)")),
            ("max_running", count(1, "Scripts at the same time (default: 32)")),
            ("warm_hosts", count(0, "Processes that wait for a script, of a running gateway (default: 1)")),
        ],
    )
}
