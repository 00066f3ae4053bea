//! The command line: everything it does is in `cli`.

mod cli;

use std::process::ExitCode;
use std::time::Duration;

/// What was let go last is given out first, and is still in the processor's cache; and what goes from one thread to another
/// is no burden to it.
#[cfg(all(unix, feature = "jemalloc"))]
#[global_allocator]
static MEMORY: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// How long threads that cannot be interrupted may take to end.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// Threads: one that waits must not hold up the rest, and more than these would find little to do.
const LEAST: usize = 2;
const MOST: usize = 8;

fn main() -> ExitCode {
    stay_small();
    if toolhub_sandbox::run_reaper_if_requested() {
        return ExitCode::SUCCESS;
    }
    if cli::complete_if_requested() {
        return ExitCode::SUCCESS;
    }
    let threads = std::thread::available_parallelism().map_or(LEAST, usize::from).clamp(LEAST, MOST);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    match runtime {
        Ok(runtime) => {
            let exit = runtime.block_on(cli::run(std::env::args_os().collect()));
            // What still runs is dropped, which ends children; a thread that waits for the keyboard is not waited for.
            runtime.shutdown_timeout(LAST_WAIT);
            toolhub_sandbox::dismiss_guard();
            exit
        }
        Err(_) => ExitCode::FAILURE,
    }
}

/// Some systems give pages of two megabytes to whoever asks for memory, of which a hub mostly uses a part: it would take up
/// twice as much as it needs.
fn stay_small() {
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::thread::disable_transparent_huge_pages(true);
    }
}
