//! `scripted-mcp stdio SCRIPT` and `scripted-mcp http SCRIPT [--port P]`: an MCP server controlled by a script.

fn main() -> std::process::ExitCode {
    toolhub_testkit::scripted::play(std::env::args_os().skip(1))
}
