//! Launches by package and container runners of known forms: `npx` and `uvx` with a server from a registry, `uv run` with a
//! script outside of a Python project, and `docker run` with an image. Options that name local files or projects are of no known
//! form.

use super::container_mounts::is_outside_project;
use super::interpreters::{form_of, is_script};
use super::programs::is_server_name;
use super::words::{LaunchContext, is_address, is_plain_word};
use crate::trust::files;

/// Files that make `uv` use a project or its environment.
const UV_PROJECT: [&str; 5] = ["pyproject.toml", "uv.toml", "setup.py", "setup.cfg", ".venv"];
/// Files with which Bun and pnpm load code, and with which Deno resolves packages to local ones.
const BUN_FILES: [&str; 1] = ["bunfig.toml"];
const PNPM_FILES: [&str; 4] = [".pnpmfile.cjs", ".pnpmfile.mjs", "pnpm-workspace.yaml", ".npmrc"];
const DENO_FILES: [&str; 4] = ["deno.json", "deno.jsonc", "package.json", "node_modules"];
/// Keys of `.npmrc` that choose no program and no local file.
const NPMRC_KEYS: [&str; 14] = [
    "always-auth",
    "audit",
    "auto-install-peers",
    "engine-strict",
    "fund",
    "legacy-peer-deps",
    "loglevel",
    "package-lock",
    "registry",
    "save-exact",
    "save-prefix",
    "shamefully-hoist",
    "strict-peer-dependencies",
    "strict-ssl",
];
/// Words that are arguments of many servers, although there may be programs of these names.
const ARGUMENTS: [&str; 14] = [
    "chrome", "chromium", "dir", "false", "firefox", "http", "info", "mcp", "msedge", "server", "sse",
    "stdio", "true", "webkit",
];
/// Options of `docker run` without a value.
const RUN_FLAGS: [&str; 11] = [
    "-i",
    "-t",
    "-it",
    "-ti",
    "-d",
    "--rm",
    "--init",
    "--interactive",
    "--tty",
    "--read-only",
    "--no-healthcheck",
];
/// Options of `docker run` whose value is the next word or follows `=`. Files that they name are bound; what they mount is checked.
const RUN_VALUES: [&str; 29] = [
    "-e",
    "--env",
    "--env-file",
    "-v",
    "--volume",
    "--mount",
    "--tmpfs",
    "--name",
    "--network",
    "--net",
    "-p",
    "--publish",
    "-u",
    "--user",
    "-w",
    "--workdir",
    "--pull",
    "--platform",
    "--entrypoint",
    "--add-host",
    "--hostname",
    "-h",
    "--memory",
    "-m",
    "--cpus",
    "--cap-drop",
    "--label",
    "-l",
    "--stop-timeout",
];
/// Prefixes of images that are read from local files (containers-transports(5)).
const LOCAL_IMAGES: [&str; 8] =
    ["dir", "oci", "oci-archive", "docker-archive", "docker-daemon", "containers-storage", "sif", "ostree"];

/// `npx [-y] PACKAGE …`, and the same of Bun and pnpm after their commands.
pub(super) fn is_npx(runner: &str, rest: &[String], context: &LaunchContext<'_>) -> bool {
    let mut words = rest;
    let mut packages = Vec::new();
    while let Some((word, after)) = words.split_first() {
        words = after;
        match word.as_str() {
            "--" => {
                return words.first().is_some_and(|first| !first.starts_with('-'))
                    && is_npx(runner, words, context);
            }
            "-y" | "--yes" | "-q" | "--quiet" | "--prefer-online" | "--prefer-offline" | "--offline"
            | "--bun" => {}
            "-p" | "--package" => {
                let Some((package, after)) = words.split_first() else { return false };
                packages.push(package.as_str());
                words = after;
            }
            _ => match word.strip_prefix("--package=") {
                Some(package) => packages.push(package),
                None if word.starts_with('-') => return false,
                None => {
                    let is_server = packages.is_empty() && starts_npm_server(word, words, context)
                        || !packages.is_empty()
                            && packages.iter().all(|package| npm_name(package).is_some())
                            && is_server_program(word, context)
                            && are_arguments(words, context);
                    return is_server && has_inert_npm_files(runner, word, context);
                }
            },
        }
    }
    false
}

fn starts_npm_server(package: &str, rest: &[String], context: &LaunchContext<'_>) -> bool {
    let Some(name) = npm_name(package) else { return false };
    if name == "tsx" {
        return form_of("tsx").is_some_and(|form| form.accepts(rest, context));
    }
    is_server_name(name) && are_arguments(rest, context)
}

/// The name of a package in the registry or in a repository on GitHub, without its version; `None` for everything else, such as
/// a path.
fn npm_name(package: &str) -> Option<&str> {
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
    };
    if let Some(repository) = package.strip_prefix("github:") {
        let (path, _) = repository.split_once('#').unwrap_or((repository, ""));
        return path.split('/').all(is_part).then_some(path);
    }
    let scope = package.strip_prefix('@').and_then(|rest| rest.split_once('/'));
    let (name, version) = match scope {
        Some((scope, rest)) if is_part(scope) => (rest, rest.split_once('@')),
        Some(_) => return None,
        None => (package, package.split_once('@')),
    };
    let bare = version.map_or(name, |(bare, _)| bare);
    let is_version =
        |version: &str| version.chars().all(|c| c.is_ascii_alphanumeric() || "._-^~+".contains(c));
    if !is_part(bare) || version.is_some_and(|(_, version)| !is_version(version)) {
        return None;
    }
    let cut = version.map_or(0, |(_, version)| version.len() + 1);
    package.get(..package.len() - cut)
}

/// Whether the files of the folder and its parents do not make the runner start something else than the package.
fn has_inert_npm_files(runner: &str, package: &str, context: &LaunchContext<'_>) -> bool {
    let is_inert = match runner {
        "npx" => context.searched(".npmrc").iter().all(|file| is_inert_npmrc(file)),
        "bunx" => !context.has_any(&BUN_FILES),
        _ => !context.has_any(&PNPM_FILES),
    };
    let is_other = |file: &std::path::PathBuf| {
        let Ok(Some((bytes, _))) = files::read(file) else { return false };
        let Ok(manifest) = serde_json::from_slice::<serde_json::Value>(&bytes) else { return false };
        // A program of the project itself is preferred to a package of the registry.
        let own = manifest.get("name").and_then(|name| name.as_str()).unwrap_or_default();
        match manifest.get("bin") {
            None => true,
            Some(serde_json::Value::Object(programs)) => !programs.contains_key(package),
            Some(_) => own != package && own.rsplit('/').next() != Some(package),
        }
    };
    is_inert && context.searched("package.json").iter().all(is_other)
}

fn is_inert_npmrc(file: &std::path::Path) -> bool {
    let Ok(Some((bytes, _))) = files::read(file) else { return false };
    let Ok(text) = std::str::from_utf8(&bytes) else { return false };
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    lines.into_iter().all(|line| {
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let (key, value) = (key.trim(), value.trim());
        let is_registry = key == "registry" || key.ends_with(":registry");
        let is_credential = key.starts_with("//") && key.contains(":_");
        let is_known = NPMRC_KEYS.contains(&key) || is_registry || is_credential;
        is_known && (!is_registry || value.starts_with("https://") || value.starts_with("http://"))
    })
}

/// `pipx run …`, in a folder without `__pypackages__` (PEP 582), whose programs it prefers to packages of the index.
pub(super) fn is_pipx(rest: &[String], context: &LaunchContext<'_>) -> bool {
    !context.has_any(&["__pypackages__"]) && is_uvx(rest, context)
}

/// `uvx [--from PACKAGE] PROGRAM …` and `uv tool run …`. They read no configuration of the working directory.
pub(super) fn is_uvx(rest: &[String], context: &LaunchContext<'_>) -> bool {
    let mut words = rest;
    let mut source = None;
    while let Some((word, after)) = words.split_first() {
        words = after;
        let (name, inner) =
            word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        match name {
            "-q" | "--quiet" | "--refresh" | "--isolated" | "--offline" | "--no-progress" => {}
            "--from" | "--with" | "--spec" | "--python" | "-p" | "--index-url" | "--default-index"
            | "--prerelease" => {
                let value = inner.or_else(|| words.first().map(String::as_str)).unwrap_or_default();
                if inner.is_none() {
                    words = words.get(1..).unwrap_or_default();
                }
                let is_remote = match name {
                    "--from" | "--with" | "--spec" => is_python_package(value) || is_remote(value, context),
                    "--python" | "-p" => is_python_version(value),
                    "--prerelease" => value.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'),
                    _ => is_remote(value, context),
                };
                if !is_remote {
                    return false;
                }
                if ["--from", "--spec"].contains(&name) {
                    source = Some(value);
                }
            }
            _ if word.starts_with('-') => return false,
            _ => {
                let program = word.split_once('@').map_or(word.as_str(), |(program, _)| program);
                let is_known = match source {
                    None => is_python_package(word) && is_server_name(program),
                    Some(source) if is_remote(source, context) => is_free(program, context),
                    Some(source) => {
                        (is_server_name(program) || source.starts_with(program) && is_server_name(source))
                            && is_free(program, context)
                    }
                };
                return is_known && are_arguments(words, context);
            }
        }
    }
    false
}

/// `uv [--directory FOLDER] run …`, in a folder that is no Python project for uv. `is_narrow` checks the program that is run.
pub(super) fn is_uv(
    rest: &[String],
    context: &LaunchContext<'_>,
    is_narrow: &dyn Fn(&[String]) -> bool,
) -> bool {
    let mut words = rest;
    while let Some((word, after)) = words.split_first() {
        words = after;
        match word.as_str() {
            "-q" | "--quiet" | "--offline" | "--no-progress" => {}
            "--directory" if words.first().is_some_and(|folder| !folder.starts_with('-')) => {
                words = words.get(1..).unwrap_or_default();
            }
            _ if word.starts_with("--directory=") => {}
            "tool" if words.first().is_some_and(|next| next == "run") => {
                return is_uvx(words.get(1..).unwrap_or_default(), context);
            }
            "run" => return !context.has_any(&UV_PROJECT) && runs_script(words, context, is_narrow),
            _ => return false,
        }
    }
    false
}

fn runs_script(
    mut words: &[String],
    context: &LaunchContext<'_>,
    is_narrow: &dyn Fn(&[String]) -> bool,
) -> bool {
    let mut is_script_next = false;
    while let Some((word, after)) = words.split_first() {
        match word.as_str() {
            "-q" | "--quiet" | "--offline" | "--no-project" | "--isolated" | "--no-progress" => words = after,
            "--script" | "-s" => {
                is_script_next = true;
                words = after;
            }
            "--with" | "--python" | "-p" => {
                let Some((value, after)) = after.split_first() else { return false };
                if !(is_python_package(value) || (word != "--with" && is_python_version(value))) {
                    return false;
                }
                words = after;
            }
            _ if word.starts_with('-') => return false,
            _ if is_script_next || is_script(word) => return context.is_script_of_project(word),
            _ => return is_narrow(words),
        }
    }
    false
}

/// A package of the index: a name with extras and a version. It cannot be a path or a URL.
fn is_python_package(package: &str) -> bool {
    package.starts_with(|c: char| c.is_ascii_alphanumeric())
        && package.chars().all(|c| c.is_ascii_alphanumeric() || "_-.[],=<>~!@*+".contains(c))
        && !is_script(package)
}

fn is_python_version(version: &str) -> bool {
    let bare = ["cpython", "pypy"].iter().find_map(|name| version.strip_prefix(name)).unwrap_or(version);
    bare.chars().all(|c| c.is_ascii_digit() || ".@-".contains(c))
}

/// Whether a word is the URL of something on another machine.
fn is_remote(word: &str, context: &LaunchContext<'_>) -> bool {
    const SCHEMES: [&str; 4] = ["https://", "http://", "git+https://", "git+ssh://"];
    SCHEMES.iter().any(|scheme| word.starts_with(scheme)) && is_address(word, context)
}

/// Whether a program of a package is a server, and not found elsewhere: runners prefer no program of the package if it has none
/// of this name.
fn is_server_program(word: &str, context: &LaunchContext<'_>) -> bool {
    is_server_name(word) && is_free(word, context)
}

/// Whether a word names neither a path nor a program of this machine.
fn is_free(word: &str, context: &LaunchContext<'_>) -> bool {
    !word.is_empty()
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
        && form_of(word).is_none()
        && !context.is_program(word)
}

/// Whether the arguments of a server are plain words that name no program.
fn are_arguments(words: &[String], context: &LaunchContext<'_>) -> bool {
    words.iter().all(|word| {
        let separates = |c: char| c.is_whitespace() || "\"',[]{}=".contains(c);
        let parts = word.split(separates).filter(|part| !part.is_empty() && !ARGUMENTS.contains(part));
        is_plain_word(word, context) && !parts.into_iter().any(|part| context.is_program(part))
    })
}

/// `deno run FILE`, and packages and URLs without local settings.
pub(super) fn is_deno(rest: &[String], context: &LaunchContext<'_>) -> bool {
    let Some((command, rest)) = rest.split_first() else { return false };
    let is_option = |word: &&String| word.starts_with('-');
    let Some(target) = rest.iter().find(|word| !is_option(word)) else { return false };
    let is_package = ["npm:", "jsr:"].iter().any(|head| target.starts_with(head));
    let is_target = is_script(target) && context.is_script_of_project(target)
        || (is_package || is_remote(target, context)) && !context.has_any(&DENO_FILES);
    command == "run" && is_target && form_of("deno").is_some_and(|form| form.accepts(rest, context))
}

/// `bun FILE`, `bun run FILE` and `bun x PACKAGE`.
pub(super) fn is_bun(rest: &[String], context: &LaunchContext<'_>) -> bool {
    if context.has_any(&BUN_FILES) {
        return false;
    }
    let rest = match rest.split_first() {
        Some((first, rest)) if first == "x" => return is_npx("bunx", rest, context),
        Some((first, rest)) if first == "run" => rest,
        _ => rest,
    };
    rest.first().is_some_and(|file| is_script(file) && context.is_script_of_project(file))
}

/// `docker [OPTION…] run [OPTION…] IMAGE …`: what follows the image applies inside of the container. The arguments are not
/// checked for plain words. Nothing of the project may be mounted.
pub(super) fn is_container_run(rest: &[String], context: &LaunchContext<'_>) -> bool {
    const FLAGS: [&str; 3] = ["-D", "--debug", "--tls"];
    const VALUED: [&str; 6] = ["-l", "--log-level", "-H", "--host", "-c", "--context"];
    let mut words = rest.iter().map(String::as_str);
    // The command is found after options of a fixed list only: others have values, or name files.
    loop {
        let Some(word) = words.next() else { return false };
        match word.split_once('=') {
            _ if FLAGS.contains(&word) => {}
            Some((name, _)) if VALUED.contains(&name) => {}
            None if VALUED.contains(&word) => drop(words.next()),
            None if word == "run" => break,
            _ => return false,
        }
    }
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            let transport = word.split_once(':').map_or("", |(transport, _)| transport);
            return !LOCAL_IMAGES.contains(&transport) && !word.starts_with(['.', '/']);
        }
        if RUN_FLAGS.contains(&word) {
            continue;
        }
        let option = match RUN_VALUES.contains(&word) {
            true => words.next().map(|value| (word, value)),
            false => with_value(word).filter(|(name, _)| RUN_VALUES.contains(name)),
        };
        if !option.is_some_and(|(name, value)| is_outside_project(name, value, context)) {
            return false;
        }
    }
    false
}

/// An option that contains its value: `--name=value`, `-nvalue` or `-n=value`.
fn with_value(word: &str) -> Option<(&str, &str)> {
    if word.starts_with("--") {
        return word.split_once('=');
    }
    let (name, value) = word.get(..2).zip(word.get(2..))?;
    Some((name, value.strip_prefix('=').unwrap_or(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_a_registry_are_told_from_local_ones() {
        for (package, name) in [
            ("acme-server@1.0.0", Some("acme-server")),
            ("@acme/server@^1.2", Some("@acme/server")),
            ("@acme/server", Some("@acme/server")),
            ("github:acme/mcp#v1", Some("acme/mcp")),
            ("./acme-server", None),
            ("../a", None),
            ("file:acme", None),
            ("acme@file:x", None),
            ("acme@./x", None),
            ("a/b", None),
            ("@a/../b", None),
            ("acme.tgz/x", None),
        ] {
            assert_eq!(npm_name(package), name, "{package}");
        }
        assert!(is_python_package("mcp[cli]==1.2") && is_python_package("mcp-server-git@latest"));
        for local in [".", "./x", "x/y", "file:///x", "x @ file:///y", "-e", "x.py"] {
            assert!(!is_python_package(local), "{local}");
        }
        assert!(is_python_version("3.12") && is_python_version("cpython@3.12"));
        assert!(!is_python_version("./python") && !is_python_version("/x/python"));
    }

    #[test]
    fn only_known_options_precede_an_image() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().to_owned()];
        let context =
            LaunchContext { folders: &folders, project: folder.path(), path: None, has_values: true };
        let check =
            |text: &str| is_container_run(&text.split(' ').map(str::to_owned).collect::<Vec<_>>(), &context);
        for text in [
            "run -i --rm image",
            "run -i --rm -e KEY --env A=b -v /opt/a:/b --name=x image sh -c x",
            "run -v/opt/a:/b -v=cache:/c --volume=/opt/a:/b:ro --mount type=tmpfs,dst=/t image -v .:/x",
            "--context remote run image",
            "run -eKEY ghcr.io/acme/server:1@sha256:ab",
        ] {
            assert!(check(text), "{text}");
        }
        for text in [
            "unshare ./run.sh",
            "compose up",
            "compose run x",
            "build .",
            "--config ./d run image",
            "--hooks-dir ./d run image",
            "--runtime ./r run image",
            "run --rootfs ./d",
            "run -v .:/app image",
            "run -v./x:/app image",
            "run -v=./x:/app image",
            "run -i --volume ./x:/app image",
            "run --volume=./x:/app image",
            "run --mount type=bind,src=./x,dst=/app image",
            "run --mount=type=bind,source=.,target=/app image",
            "run -itv .:/app image",
            "run -v",
            "run --runtime ./r image",
            "run oci-archive:x.tar",
            "run dir:x",
            "run ./x",
            "run",
            "exec x",
            "",
        ] {
            assert!(!check(text), "{text}");
        }
    }
}
