//! Programs that a launch may name, other than interpreters: shells, programs that start other programs, and task runners.

/// Shells with plain code or a script.
pub(super) const SHELLS: [&str; 7] = ["sh", "bash", "zsh", "dash", "ksh", "mksh", "ash"];
/// Shell builtins and keywords that can run code their arguments do not name.
pub(super) const BUILTINS: [&str; 12] =
    ["eval", "source", ".", "alias", "trap", "builtin", "command", "set", "shopt", "if", "for", "while"];
/// Programs that run their arguments in a container.
pub(in crate::trust) const CONTAINERS: [&str; 4] = ["docker", "docker-compose", "podman", "nerdctl"];
/// Interpreters.
const INTERPRETERS: [&str; 15] = [
    "python", "pythonw", "pypy", "py", "node", "nodejs", "tsx", "perl", "ruby", "php", "Rscript", "java",
    "deno", "lua", "luajit",
];
/// Programs of known forms besides shells, containers and interpreters.
const RUNNERS: [&str; 16] = [
    "env",
    "nohup",
    "nice",
    "timeout",
    "stdbuf",
    "npx",
    "pnpx",
    "bunx",
    "npm",
    "pnpm",
    "uv",
    "uvx",
    "pipx",
    "bun",
    "cmd",
    "powershell",
];
/// Version managers that start the program whose name they are linked by, as their configuration says.
pub(super) const VERSION_MANAGERS: [&str; 8] =
    ["mise", "rtx", "asdf", "proto", "aqua", "volta-shim", "devbox", "nodenv"];
/// Their files in the working directory and its parents.
pub(in crate::trust) const VERSION_FILES: [&str; 22] = [
    ".python-version",
    ".python-versions",
    ".node-version",
    ".nvmrc",
    ".ruby-version",
    ".java-version",
    ".go-version",
    ".php-version",
    ".perl-version",
    ".tool-versions",
    ".sdkmanrc",
    "mise.toml",
    "mise.local.toml",
    ".mise.toml",
    ".mise.local.toml",
    ".mise/config.toml",
    "mise/config.toml",
    ".config/mise.toml",
    ".config/mise/config.toml",
    ".rtx.toml",
    ".prototools",
    "aqua.yaml",
];
/// Programs that run tasks which a file of the project defines, or build its sources before they run them.
const TASK_RUNNERS: [&str; 11] =
    ["make", "gmake", "just", "task", "rake", "mage", "cargo", "go", "dotnet", "swift", "zig"];
/// Package managers whose arguments name a task of `package.json`, unless they start a package or a file.
const PACKAGE_MANAGERS: [&str; 4] = ["npm", "pnpm", "yarn", "bun"];
/// Their commands that start a task.
const TASK_COMMANDS: [&str; 6] = ["run", "start", "test", "run-script", "stop", "restart"];
/// Parts of names of packages whose programs load configuration or code of the working directory.
const LOADING: [&str; 42] = [
    "angular",
    "astro",
    "ava",
    "babel",
    "browser-sync",
    "biome",
    "concurrently",
    "cypress",
    "dev",
    "eslint",
    "expo",
    "fastmcp",
    "grunt",
    "gulp",
    "hatch",
    "inspector",
    "invoke",
    "jest",
    "just",
    "live",
    "mocha",
    "next",
    "nodemon",
    "nox",
    "nuxt",
    "nx",
    "parcel",
    "poetry",
    "postcss",
    "prettier",
    "proxy",
    "pytest",
    "rollup",
    "storybook",
    "stylelint",
    "supergateway",
    "tox",
    "turbo",
    "vite",
    "vitest",
    "webpack",
    "wrangler",
];

/// Whether there are known forms of launches of a program.
pub(in crate::trust) fn is_known(name: &str) -> bool {
    [&SHELLS[..], &CONTAINERS, &INTERPRETERS, &RUNNERS].iter().any(|names| names.contains(&name))
}

/// The name of the program that a word refers to, without folder, extension and version: `python` for `/usr/bin/python3.12`.
pub(in crate::trust) fn name_of(word: &str) -> String {
    let word = word.rsplit(['=', '/', '\\']).next().unwrap_or(word);
    let word = word.strip_suffix(".exe").or_else(|| word.strip_suffix(".cmd")).unwrap_or(word);
    let bare = word.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    // A word that consists of dots and digits is kept.
    if bare.is_empty() { word.to_owned() } else { bare.trim_end_matches('-').to_owned() }
}

/// Whether a program with these arguments runs tasks of the project.
pub(super) fn is_task(name: &str, rest: &[String]) -> bool {
    if TASK_RUNNERS.contains(&name) {
        return true;
    }
    let mut operands = rest.iter().map(String::as_str).filter(|word| !word.starts_with('-'));
    let first = operands.next();
    PACKAGE_MANAGERS.contains(&name)
        && first.is_some_and(|first| TASK_COMMANDS.contains(&first) || (name != "npm" && is_task_name(first)))
        // Options such as `--prefix` have values, so that the first word without a dash need not be the command.
        && rest.first().is_some_and(|word| !word.starts_with("--"))
}

fn is_task_name(word: &str) -> bool {
    const COMMANDS: [&str; 8] = ["exec", "x", "dlx", "create", "init", "node", "install", "add"];
    !COMMANDS.contains(&word) && !word.contains(['.', '/'])
}

/// Whether the name of a package, or of its program, is that of an MCP server, and not of a program that loads what it finds in
/// its working directory.
pub(super) fn is_server_name(name: &str) -> bool {
    let name = name.to_lowercase();
    let tokens: Vec<&str> =
        name.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()).collect();
    let serves = |part: &&str| part.contains("mcp") || part.starts_with("server") || part.ends_with("server");
    // The command line of the Python SDK is called `mcp`.
    name != "mcp" && tokens.iter().any(serves) && !tokens.iter().any(|part| LOADING.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_told_from_programs_that_load_local_files() {
        for name in [
            "@modelcontextprotocol/server-filesystem",
            "@playwright/mcp",
            "@upstash/context7-mcp",
            "mcp-server-git",
            "mcp_server_fetch",
            "mcp-remote",
            "acme-server",
        ] {
            assert!(is_server_name(name), "{name}");
        }
        for name in [
            "gulp",
            "tox",
            "mcp",
            "fastmcp",
            "webpack-dev-server",
            "live-server",
            "@eslint/mcp",
            "mcp-proxy",
            "make",
        ] {
            assert!(!is_server_name(name), "{name}");
        }
    }
}
