//! The command line: everything it does is in `cli`.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    match runtime {
        Ok(runtime) => {
            let exit = runtime.block_on(cli::run(std::env::args_os().collect()));
            // A thread that waits for the keyboard is not waited for.
            runtime.shutdown_background();
            exit
        }
        Err(_) => ExitCode::FAILURE,
    }
}
