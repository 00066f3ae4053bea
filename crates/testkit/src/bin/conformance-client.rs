//! `conformance-client URL`: toolhub as the client that the official MCP conformance suite looks at.

fn main() -> std::process::ExitCode {
    toolhub_testkit::conformance::run(std::env::args().skip(1))
}
