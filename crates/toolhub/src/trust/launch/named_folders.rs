//! Folders of the project that an entry names in a variable or an option. A program loads any file of such a folder, so that the
//! folder is bound as a whole, unless the name is known to be one of data. The folder may appear only later: then its files do.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use toolhub_client_config::StdioSpec;

use crate::trust::launch_form::assignments::Assignment;
use crate::trust::launch_form::entry_text::{expand_if_set, normalize_path};
use crate::trust::launch_form::programs::CONTAINERS;

/// Names of variables and options, without dashes, whose value is data or the folder that the program works on.
const DATA: [&str; 54] = [
    "allow_dir",
    "allow_read",
    "allow_write",
    "allowed_dir",
    "allowed_directories",
    "allowed_paths",
    "c",
    "chdir",
    "cwd",
    "data",
    "data_dir",
    "data_path",
    "database",
    "database_path",
    "db",
    "db_path",
    "dir",
    "directory",
    "docs",
    "docs_dir",
    "download_dir",
    "folder",
    "folders",
    "input",
    "input_dir",
    "log_dir",
    "log_path",
    "logs",
    "memory_file_path",
    "mount",
    "notes_dir",
    "o",
    "out",
    "out_dir",
    "output",
    "output_dir",
    "output_path",
    "path",
    "prefix",
    "project",
    "project_dir",
    "project_path",
    "project_root",
    "repo",
    "repo_path",
    "repository",
    "root",
    "root_dir",
    "upload_dir",
    "vault",
    "vault_path",
    "work_dir",
    "workspace",
    "workspace_folder",
];
/// Variables whose folders are bound in another way: only the files that are loaded from there.
const BOUND_OTHERWISE: [&str; 4] = ["PATH", "VIRTUAL_ENV", "UV_PROJECT_ENVIRONMENT", "PWD"];

/// The folders that variables name, in each folder of the project that the launch may be in. The first base is its working
/// directory.
pub(super) fn of_variables(
    assignments: &[Assignment],
    bases: &[PathBuf],
    project: &Path,
) -> BTreeSet<PathBuf> {
    let named = |name: &str| !BOUND_OTHERWISE.contains(&name) && !is_data(name);
    let values: BTreeSet<&str> = assignments
        .iter()
        .filter(|assignment| named(&assignment.name))
        .map(|assignment| assignment.value.as_str())
        .collect();
    let inside = bases.iter().skip(1).filter(|base| base.starts_with(project));
    let bases: Vec<&PathBuf> = bases.first().into_iter().chain(inside).collect();
    values
        .iter()
        .flat_map(|value| bases.iter().flat_map(move |base| folders_of(value, base, project)))
        .collect()
}

/// The folders that options name. Installed packages and build output in them need not be bound: an option often names a whole
/// project, such as `--from .`.
pub(super) fn of_options(spec: &StdioSpec, work: &Path, project: &Path) -> BTreeSet<PathBuf> {
    let command = expand_if_set(&spec.command);
    let name = Path::new(&command).file_name().unwrap_or_default();
    let is_container = CONTAINERS.iter().any(|known| name == *known);
    let args: Vec<String> = spec.args.iter().map(|arg| expand_if_set(arg)).collect();
    let mut values: Vec<&str> = Vec::new();
    let mut option: Option<&str> = None;
    // Of a container runner only the options before its command: what follows applies inside of the container.
    for arg in args.iter().take_while(|arg| !is_container || arg.starts_with('-')) {
        let named = option.take();
        match (arg.strip_prefix('-'), arg.split_once('=')) {
            (Some(_), Some((name, value))) => values.extend((!is_data(name)).then_some(value)),
            (Some(letters), None) => {
                // A value that directly follows a single letter: `-I./lib`.
                values.extend(letters.get(1..).filter(|_| !letters.starts_with('-')));
                option = Some(arg);
            }
            // Text with spaces is code (`sh -c`), whose folders are those that it changes to.
            (None, _) if arg.contains(char::is_whitespace) => {}
            (None, _) => values.extend(named.filter(|name| !is_data(name)).map(|_| arg.as_str())),
        }
    }
    values.into_iter().flat_map(|value| folders_of(value, work, project)).collect()
}

fn is_data(name: &str) -> bool {
    match name {
        // Settings, but `-C` is the working directory.
        "-c" => false,
        // A module, whose files are bound.
        "-m" => true,
        name => DATA.contains(&name.trim_start_matches('-').to_lowercase().replace('-', "_").as_str()),
    }
}

/// The folders that a value names, if the project can change them.
fn folders_of(value: &str, work: &Path, project: &Path) -> BTreeSet<PathBuf> {
    let separates = |c: char| c.is_whitespace() || [',', ';', '=', '"', '\''].contains(&c);
    let lists = std::env::split_paths(value).map(|path| path.to_string_lossy().into_owned());
    let words = value.split(separates).map(str::to_owned);
    let texts: BTreeSet<String> = lists.chain(words).filter(|text| !text.is_empty()).collect();
    let paths = texts.iter().map(|text| (work.join(text), Path::new(text).is_relative()));
    let is_of_project = |(path, is_relative): &(PathBuf, bool)| {
        let inside = |path: &Path| path.starts_with(project);
        *is_relative || inside(&normalize_path(path)) || path.canonicalize().is_ok_and(|real| inside(&real))
    };
    paths.filter(is_of_project).map(|(path, _)| path).filter(|path| path.is_dir()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::launch_form::assignments::launch_assignments;

    #[test]
    fn binds_folders_of_variables_and_options_but_not_data() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("x")).unwrap();
        let check = |args: &[&str], env: &[(&str, &str)]| {
            let spec = StdioSpec {
                command: "server".to_owned(),
                args: args.iter().map(|arg| (*arg).to_owned()).collect(),
                env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
                ..StdioSpec::default()
            };
            let bases = [root.clone()];
            !of_variables(&launch_assignments(&spec, &[]), &bases, &root).is_empty()
                || !of_options(&spec, &root, &root).is_empty()
        };
        for name in [
            "HOME",
            "PYTHONUSERBASE",
            "PERLLIB",
            "RUBYLIB",
            "ZDOTDIR",
            "XDG_CONFIG_HOME",
            "npm_config_prefix",
            "ANY",
        ] {
            assert!(check(&[], &[(name, "./x")]) && check(&[], &[(name, "/opt:x")]), "{name}");
        }
        for args in [
            &["-c", "x"][..],
            &["-Ix"],
            &["-I", "x"],
            &["--plugins=x"],
            &["--plugins", "./x"],
            &["--config", "x"],
        ] {
            assert!(check(args, &[]), "{args:?}");
        }
        // Controls: data, files, folders that do not exist or are not of the project, and what the program works on.
        for args in
            [&["x"][..], &["--data-dir", "x"], &["--directory=x"], &["--plugins", "y"], &["--lib", "/usr"]]
        {
            assert!(!check(args, &[]), "{args:?}");
        }
        for (name, value) in
            [("DATA_DIR", "./x"), ("PROJECT_ROOT", "."), ("MODE", "y"), ("HOME", "/usr"), ("PATH", "./x")]
        {
            assert!(!check(&[], &[(name, value)]), "{name}={value}");
        }
    }
}
