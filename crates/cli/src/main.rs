//! The `toolhub` program: `args` defines the command line, `commands` runs it, `render` prints, `terminal` reads answers.

mod app;
mod args;
mod commands;
mod completion;
mod exit;
mod hub_api;
mod render;
mod terminal;

use std::process::ExitCode;
use std::time::Duration;

/// jemalloc reuses the most recently freed memory first, which is still in the CPU cache, and handles memory that is freed by
/// another thread well.
#[cfg(all(unix, feature = "jemalloc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Timeout for blocking threads at exit.
const BLOCKING_TIMEOUT: Duration = Duration::from_secs(1);

/// Number of worker threads: at least 2, so that a blocked worker does not stop the others; more than 8 bring little benefit.
const MIN_WORKERS: usize = 2;
const MAX_WORKERS: usize = 8;

fn main() -> ExitCode {
    disable_huge_pages();
    if toolhub_sandbox::run_guard_if_requested() {
        return ExitCode::SUCCESS;
    }
    // A script host starts often and needs nothing of the program.
    if toolhub_script_host::run_if_requested() {
        return ExitCode::SUCCESS;
    }
    if completion::run_if_requested() {
        return ExitCode::SUCCESS;
    }
    let threads =
        std::thread::available_parallelism().map_or(MIN_WORKERS, usize::from).clamp(MIN_WORKERS, MAX_WORKERS);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    match runtime {
        Ok(runtime) => {
            let exit = runtime.block_on(commands::run(std::env::args_os().collect()));
            // Dropping the remaining tasks ends child processes; a thread that blocks on stdin is not awaited.
            runtime.shutdown_timeout(BLOCKING_TIMEOUT);
            toolhub_sandbox::stop_guard();
            exit
        }
        Err(_) => ExitCode::FAILURE,
    }
}

/// Disables transparent huge pages: with pages of 2 MiB a hub would use about twice the memory.
fn disable_huge_pages() {
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::thread::disable_transparent_huge_pages(true);
    }
}
