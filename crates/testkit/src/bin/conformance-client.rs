//! `conformance-client URL`: toolhub as the client under test of the official MCP conformance suite.

fn main() -> std::process::ExitCode {
    toolhub_testkit::conformance::run(std::env::args().skip(1))
}
