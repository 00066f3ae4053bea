//! Programs and variables that can make a launch run files that its arguments do not name.

/// Shells.
pub(super) const SHELLS: [&str; 18] = [
    "sh",
    "bash",
    "zsh",
    "dash",
    "fish",
    "ksh",
    "mksh",
    "ash",
    "csh",
    "tcsh",
    "rbash",
    "yash",
    "nu",
    "xonsh",
    "elvish",
    "pwsh",
    "powershell",
    "cmd",
];
/// Shell builtins and keywords that can run code their arguments do not name.
pub(super) const BUILTINS: [&str; 12] =
    ["eval", "source", ".", "alias", "trap", "builtin", "command", "set", "shopt", "if", "for", "while"];
/// Programs that start other programs for the files or input that they process. Checked at any position.
pub(super) const STARTERS: [&str; 16] = [
    "find",
    "fd",
    "xargs",
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "sed",
    "parallel",
    "entr",
    "busybox",
    "toybox",
    "watchexec",
    "nodemon",
    "concurrently",
    "run-parts",
];
/// Programs that run code from files of the working directory. Checked if they are the command.
pub(super) const READERS: [&str; 33] = [
    "git",
    "hg",
    "svn",
    "gdb",
    "lldb",
    "emacs",
    "vim",
    "vi",
    "nvim",
    "ed",
    "ex",
    "nix",
    "nix-shell",
    "bazel",
    "gradle",
    "mvn",
    "scons",
    "cmake",
    "ctest",
    "ninja",
    "meson",
    "ant",
    "foreman",
    "honcho",
    "overmind",
    "tmux",
    "screen",
    "at",
    "batch",
    "crontab",
    "su",
    "script",
    "watch",
];
/// Programs that start the program named by one of their arguments.
pub(super) const WRAPPERS: [&str; 26] = [
    "env",
    "exec",
    "timeout",
    "nice",
    "nohup",
    "setsid",
    "stdbuf",
    "ionice",
    "time",
    "caffeinate",
    "sudo",
    "doas",
    "chrt",
    "taskset",
    "flock",
    "unshare",
    "chroot",
    "strace",
    "uv",
    "poetry",
    "pdm",
    "hatch",
    "pipenv",
    "dotenv",
    "mise",
    "direnv",
];
/// Programs that run their arguments in a container.
pub(super) const CONTAINERS: [&str; 4] = ["docker", "docker-compose", "podman", "nerdctl"];
/// Variables that contain code, or options that load files they do not name.
pub(super) const CODE_VARIABLES: [&str; 28] = [
    "PERL5DB",
    "LUA_PATH",
    "LUA_CPATH",
    "DOCKER_CONFIG",
    "PERL5OPT",
    "RUBYOPT",
    "LUA_INIT",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "SHELLOPTS",
    "BASHOPTS",
    "CDPATH",
    "IFS",
    "PYTHONINSPECT",
    "PYTHONPYCACHEPREFIX",
    "PYTHONBREAKPOINT",
    "PYTHONWARNINGS",
    "PYTHONHOME",
    "MAKEFLAGS",
    "MAKEFILES",
    "DOTNET_STARTUP_HOOKS",
    "CLASSPATH",
];
/// Prefixes of such variables.
pub(super) const CODE_PREFIXES: [&str; 4] = ["BASH_FUNC_", "LUA_INIT", "LUA_PATH_", "LUA_CPATH_"];
/// Variables that name folders from which any file may be loaded.
pub(super) const LIBRARY_PATHS: [&str; 6] = [
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "DYLD_LIBRARY_PATH",
    "DYLD_FRAMEWORK_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
    "PERL5LIB",
];
/// Variables, and prefixes of variables, whose values must be plain because programs interpret them as code or paths.
pub(super) const READ_AS_CODE: [&str; 7] = ["ENV", "PATH", "SHELL", "EDITOR", "VISUAL", "PAGER", "BROWSER"];
pub(super) const READ_AS_CODE_PREFIXES: [&str; 11] =
    ["BASH_", "GIT_", "LD_", "DYLD_", "NPM_CONFIG_", "UV_", "PIP_", "PYTHON", "NODE_", "RUBY", "LESS"];
/// Programs that run tasks which a file of the project defines.
const TASK_RUNNERS: [&str; 6] = ["make", "gmake", "just", "task", "rake", "mage"];
/// Package managers whose arguments name a task of `package.json`, unless they start a package or a file.
const PACKAGE_MANAGERS: [&str; 4] = ["npm", "pnpm", "yarn", "bun"];
/// Their commands that start a package.
const PACKAGE_COMMANDS: [&str; 4] = ["exec", "x", "dlx", "create"];
/// Programs with many names, which act by the name that they are started with.
const MULTI_CALL: [&str; 4] = ["busybox", "toybox", "coreutils", "snap"];

/// Whether a program with these arguments runs tasks of the project.
pub(super) fn is_task(name: &str, rest: &[&str]) -> bool {
    if TASK_RUNNERS.contains(&name) {
        return true;
    }
    let mut operands = rest.iter().filter(|word| !word.starts_with('-'));
    let is_file = |word: &&str| word.contains(['.', '/']);
    PACKAGE_MANAGERS.contains(&name)
        && match operands.next() {
            None => false,
            Some(&"run") => !(name == "bun" && operands.next().is_some_and(is_file)),
            Some(word) => !(PACKAGE_COMMANDS.contains(word) || (name == "bun" && is_file(word))),
        }
}

/// Whether this is a program with many names.
pub(super) fn is_multi_call(name: &str) -> bool {
    MULTI_CALL.contains(&name)
}

/// The interpreter or other special program whose name, with more after it, is the name of a program: `perl` for
/// `perl5.36-x86_64-linux-gnu`, and `vim` for `vim.tiny`. Only for names that are known to be programs, except for interpreters
/// with a version.
pub(super) fn interpreter_in(name: &str, is_program: bool) -> Option<&'static str> {
    let after = |known: &&'static str| name.strip_prefix(known).and_then(|rest| rest.chars().next());
    let interpreters = SHELLS.iter().chain(&CONTAINERS).copied().chain(super::interpreters::names());
    let versioned =
        interpreters.clone().filter(|known| after(known).is_some_and(|next| next.is_ascii_digit()));
    let special = interpreters.chain(STARTERS).chain(READERS).filter(|known| {
        is_program
            && after(known).is_some_and(|next| next.is_ascii_digit() || ['.', '-', '_'].contains(&next))
    });
    versioned.chain(special).max_by_key(|known| known.len())
}
