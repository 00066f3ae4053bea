//! Environment variables that change which code a program loads, or the addresses that it connects to. Names are compared in upper case: some
//! programs read them in any case (`npm_config_*`, `http_proxy`).

use std::path::Path;

use super::interpreters::are_node_options;
use super::words::{LaunchContext, MAX_WORD_BYTES, is_address};

/// Variables that contain code or options, or name files whose contents name further files. A launch with one of them is of no
/// known form.
const CODE: [&str; 101] = [
    "AWKLIBPATH",
    "AWKPATH",
    "BASHOPTS",
    "BUNDLE_GEMFILE",
    "CC",
    "CDPATH",
    "CLASSPATH",
    "CLOJURE_OPTS",
    "COMPOSE_FILE",
    "CXX",
    "DOCKER_CONFIG",
    "DOTNET_STARTUP_HOOKS",
    "ELIXIR_ERL_OPTIONS",
    "EMACSLOADPATH",
    "ERL_AFLAGS",
    "ERL_FLAGS",
    "ERL_LIBS",
    "ERL_ZFLAGS",
    "EXINIT",
    "FPATH",
    "GCONV_PATH",
    "GEM_HOME",
    "GEM_PATH",
    "GOENV",
    "GOFLAGS",
    "GRADLE_OPTS",
    "GST_PLUGIN_PATH",
    "GTK_MODULES",
    "GTK_PATH",
    "GUILE_LOAD_PATH",
    "IFS",
    "INPUTRC",
    "JAVA_OPTS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "KRB5_CONFIG",
    "KUBECONFIG",
    "LESSOPEN",
    "LESSCLOSE",
    "LIBGL_DRIVERS_PATH",
    "LUA_CPATH",
    "LUA_INIT",
    "LUA_PATH",
    "MAKEFILES",
    "MAKEFLAGS",
    "MAVEN_ARGS",
    "MAVEN_OPTS",
    "MFLAGS",
    "MYVIMRC",
    "NPM_EXECPATH",
    "NVIM_APPNAME",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "PERL5DB",
    "PERL5OPT",
    "PERL_MB_OPT",
    "PERL_MM_OPT",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "PYTHONBREAKPOINT",
    "PYTHONEXECUTABLE",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONPLATLIBDIR",
    "PYTHONPYCACHEPREFIX",
    "PYTHONSTARTUP",
    "PYTHONWARNINGS",
    "QT_PLUGIN_PATH",
    "QT_QPA_PLATFORM_PLUGIN_PATH",
    "RBENV_VERSION",
    "RPROFILE",
    "RUBYOPT",
    "RUSTC",
    "RUSTFLAGS",
    "RUSTDOCFLAGS",
    "RUSTUP_TOOLCHAIN",
    "R_ENVIRON",
    "R_ENVIRON_USER",
    "R_PROFILE",
    "R_PROFILE_USER",
    "SBT_OPTS",
    "SHELLOPTS",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "TCLLIBPATH",
    "TERMINFO",
    "TERMINFO_DIRS",
    "TOX_CONFIG_FILE",
    "TSLIB_PLUGINDIR",
    "VIMINIT",
    "XDG_DATA_DIRS",
    "XDG_CONFIG_DIRS",
    "_JAVA_OPTIONS",
    "_PYTHON_SYSCONFIGDATA_NAME",
];
/// Prefixes of such variables.
const CODE_PREFIXES: [&str; 54] = [
    "AQUA_",
    "ASDF_",
    "BABEL_",
    "BASH_FUNC_",
    "BUILDAH_",
    "BUN_",
    "BUNDLE_",
    "CARGO_",
    "COMPOSE_",
    "CONDA_",
    "CONTAINERS_",
    "COMPLUS_",
    "CORECLR_",
    "COREPACK_",
    "DENO_",
    "DEVBOX_",
    "DIRENV_",
    "DOTNET_",
    "ELECTRON_",
    "GIO_",
    "GIT_",
    "HATCH_",
    "JULIA_",
    "LD_",
    "DYLD_",
    "LUA_CPATH_",
    "LUA_INIT",
    "LUA_PATH_",
    "MISE_",
    "NIX_",
    "NODENV_",
    "NODE_",
    "NPM_",
    "NVM_",
    "PDM_",
    "PIPENV_",
    "PIPX_",
    "PIP_",
    "PIXI_",
    "PNPM_",
    "POETRY_",
    "PROTO_",
    "PYENV_",
    "PYTHON",
    "RTX_",
    "RUBY",
    "RUSTC_",
    "TSX_",
    "TS_NODE_",
    "UV_",
    "VIRTUALENV_",
    "VOLTA_",
    "VK_",
    "YARN_",
];
/// Variables with such a prefix whose value, if it is plain, is data, a file that is bound, or a folder that is bound as a whole.
const PLAIN: [&str; 53] = [
    "LD_PRELOAD",
    "DYLD_INSERT_LIBRARIES",
    "NODE_DEBUG",
    "NODE_EXTRA_CA_CERTS",
    "NODE_PATH",
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "NPM_CONFIG_AUDIT",
    "NPM_CONFIG_FUND",
    "NPM_CONFIG_PREFER_OFFLINE",
    "NPM_CONFIG_PROGRESS",
    "NPM_CONFIG_REGISTRY",
    "NPM_CONFIG_STRICT_SSL",
    "NPM_CONFIG_UPDATE_NOTIFIER",
    "NPM_TOKEN",
    "PIP_DISABLE_PIP_VERSION_CHECK",
    "PIP_EXTRA_INDEX_URL",
    "PIP_INDEX_URL",
    "PIP_NO_CACHE_DIR",
    "PIP_NO_INPUT",
    "PIP_QUIET",
    "PYTHONDEVMODE",
    "PYTHONFAULTHANDLER",
    "PYTHONHASHSEED",
    "PYTHONLEGACYWINDOWSSTDIO",
    "PYTHONMALLOC",
    "PYTHONNOUSERSITE",
    "PYTHONOPTIMIZE",
    "PYTHONPATH",
    "PYTHONSAFEPATH",
    "PYTHONTRACEMALLOC",
    "PYTHONUSERBASE",
    "PYTHONVERBOSE",
    "RUBYLIB",
    "UV_DEFAULT_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_HTTP_TIMEOUT",
    "UV_INDEX_URL",
    "UV_LINK_MODE",
    "UV_NATIVE_TLS",
    "UV_NO_CACHE",
    "UV_NO_CONFIG",
    "UV_OFFLINE",
    "UV_PRERELEASE",
    "UV_QUIET",
    "BASH_ENV",
    "BROWSER",
    "EDITOR",
    "ENV",
    "MANPAGER",
    "PAGER",
    "PATH",
    "SHELL",
    "VISUAL",
];
/// Variables that name folders from which any file may be loaded: these must lie outside of the project.
const LIBRARY_PATHS: [&str; 7] = [
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "DYLD_LIBRARY_PATH",
    "DYLD_FRAMEWORK_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
    "DYLD_FALLBACK_FRAMEWORK_PATH",
    "PERL5LIB",
];
/// Variables that are shown in addition: they name a folder with startup files, or redirect connections.
const SHOWN: [&str; 20] = [
    "ALL_PROXY",
    "CURL_CA_BUNDLE",
    "CURL_HOME",
    "FTP_PROXY",
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "PERLLIB",
    "REQUESTS_CA_BUNDLE",
    "SSLKEYLOGFILE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "USERPROFILE",
    "VIRTUAL_ENV",
    "WGETRC",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "AWS_CONFIG_FILE",
    "ZDOTDIR",
];
/// Further variables like those in [`PLAIN`] that change neither code nor connections, and are not shown as suspicious.
const INERT: [&str; 20] = [
    "DENO_NO_PROMPT",
    "DENO_NO_UPDATE_CHECK",
    "DOTNET_CLI_TELEMETRY_OPTOUT",
    "DOTNET_NOLOGO",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_TERMINAL_PROMPT",
    "NODE_ENV",
    "NODE_NO_WARNINGS",
    "NPM_CONFIG_LOGLEVEL",
    "NPM_CONFIG_OFFLINE",
    "NPM_CONFIG_YES",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONIOENCODING",
    "PYTHONUNBUFFERED",
    "PYTHONUTF8",
    "UV_NO_PROGRESS",
    "LESS",
];

/// Whether a variable can change the code that a program loads or the peers that it connects to.
pub(in crate::trust) fn is_loader(name: &str) -> bool {
    let name = name.to_uppercase();
    let name = name.as_str();
    !INERT.contains(&name)
        && (is_code(name)
            || PLAIN.contains(&name)
            || LIBRARY_PATHS.contains(&name)
            || SHOWN.contains(&name)
            || name.ends_with("_PROXY"))
}

fn is_code(name: &str) -> bool {
    CODE.contains(&name)
        || name.starts_with("BASH_")
        || CODE_PREFIXES.iter().any(|head| name.starts_with(head))
}

/// Whether a launch with this variable can be of a known form: the files and folders that its value names are bound.
pub(super) fn is_plain_variable(name: &str, value: &str, context: &LaunchContext<'_>) -> bool {
    let name = name.to_uppercase();
    let is_path = |c: char| {
        c.is_alphanumeric() || "_-./:=,@%+~#^ ".contains(c) || (cfg!(windows) && "\\;()".contains(c))
    };
    let is_plain = value.len() <= MAX_WORD_BYTES && value.chars().all(is_path);
    match name.as_str() {
        "NODE_OPTIONS" => are_node_options(value, context),
        name if LIBRARY_PATHS.contains(&name) => {
            is_plain && !std::env::split_paths(value).any(|part| context.is_in_project(Path::new(&part)))
        }
        name if PLAIN.contains(&name) || INERT.contains(&name) => is_plain || is_address(value, context),
        name => value.is_empty() || !is_code(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_load_code_are_recognized_in_any_case() {
        for name in [
            "NODE_OPTIONS",
            "PYTHONPATH",
            "PYTHONSTARTUP",
            "LD_PRELOAD",
            "LD_AUDIT",
            "GIT_SSH_COMMAND",
            "GIT_CONFIG_GLOBAL",
            "npm_config_script_shell",
            "NPM_CONFIG_NODE_OPTIONS",
            "UV_CONFIG_FILE",
            "UV_PYTHON",
            "PIP_CONFIG_FILE",
            "DENO_DIR",
            "BUN_OPTIONS",
            "RUBYOPT",
            "RUBYLIB",
            "PERL5OPT",
            "PERL5LIB",
            "JAVA_TOOL_OPTIONS",
            "JDK_JAVA_OPTIONS",
            "DOTNET_STARTUP_HOOKS",
            "BASH_ENV",
            "ENV",
            "ZDOTDIR",
            "MISE_CONFIG_FILE",
            "DIRENV_CONFIG",
            "SSL_CERT_FILE",
            "https_proxy",
            "socks_proxy",
            "PATH",
            "Path",
            "HOME",
            "XDG_CONFIG_HOME",
            "OPENSSL_CONF",
            "GCONV_PATH",
            "DYLD_INSERT_LIBRARIES",
            "CORECLR_PROFILER_PATH",
            "_JAVA_OPTIONS",
            "PROMPT_COMMAND",
            "BASH_FUNC_ls%%",
        ] {
            assert!(is_loader(name), "{name}");
        }
        for name in ["API_KEY", "LOG_LEVEL", "DATA_DIR", "NODE_ENV", "PYTHONUNBUFFERED", "LANG", "PORT"] {
            assert!(!is_loader(name), "{name}");
        }
    }
}
