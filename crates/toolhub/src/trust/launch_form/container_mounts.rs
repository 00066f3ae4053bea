//! Folders of the host that options of `docker run` mount. The program in the container can load any file of them, so that a
//! launch is of a known form only if they neither lie in the project nor contain it.

use std::path::{Component, Path};

use super::entry_text::normalize_path;
use super::words::LaunchContext;

/// Options of a volume (`-v SOURCE:TARGET:OPTIONS`) that name no other folder.
const VOLUME_OPTIONS: [&str; 14] = [
    "ro",
    "rw",
    "z",
    "Z",
    "U",
    "nocopy",
    "cached",
    "consistent",
    "delegated",
    "private",
    "rprivate",
    "slave",
    "rslave",
    "rshared",
];
/// Types of mounts (`--mount type=TYPE,…`) whose source is the field `src`.
const MOUNT_TYPES: [&str; 3] = ["bind", "tmpfs", "volume"];
/// Fields of a mount that name no folder of the host.
const MOUNT_FIELDS: [&str; 12] = [
    "bind-nonrecursive",
    "bind-propagation",
    "consistency",
    "destination",
    "dst",
    "readonly",
    "relabel",
    "ro",
    "target",
    "tmpfs-mode",
    "tmpfs-size",
    "volume-nocopy",
];
/// Folders from which every process of the host, or the socket of a container engine, can be reached.
const SYSTEM_FOLDERS: [&str; 3] = ["/proc", "/run", "/var/run"];
/// The maximum number of entries of a folder among which sockets are searched.
#[cfg(unix)]
const MAX_ENTRIES: usize = 1_000;

/// Whether the value of an option of `docker run` mounts nothing of the project. Without the values of the variables this is not
/// known and not checked: then the launch is also checked with them.
pub(super) fn is_outside_project(option: &str, value: &str, context: &LaunchContext<'_>) -> bool {
    match option {
        "-v" | "--volume" => !context.has_values || is_volume_outside(value, context),
        "--mount" => !context.has_values || is_mount_outside(value, context),
        _ => true,
    }
}

fn is_volume_outside(value: &str, context: &LaunchContext<'_>) -> bool {
    // On Windows the source can start with a drive, such as `C:\`.
    let has_drive = value.starts_with(|c: char| c.is_ascii_alphabetic())
        && value.get(1..3).is_some_and(|start| [":\\", ":/"].contains(&start));
    let start = if has_drive { 2 } else { 0 };
    let colon = value.get(start..).and_then(|rest| rest.find(':')).map(|at| at + start);
    let Some((source, rest)) = colon.and_then(|at| value.get(..at).zip(value.get(at + 1..))) else {
        // A folder of the container alone.
        return value.starts_with('/');
    };
    let mut options = rest.split(':').skip(1).flat_map(|options| options.split(','));
    is_source_outside(source, context) && options.all(|option| VOLUME_OPTIONS.contains(&option))
}

fn is_mount_outside(value: &str, context: &LaunchContext<'_>) -> bool {
    !value.contains('"')
        && value.split(',').all(|field| {
            let (name, value) = field.split_once('=').unwrap_or((field, ""));
            match name.to_lowercase().as_str() {
                "type" => MOUNT_TYPES.contains(&value),
                "src" | "source" => is_source_outside(value, context),
                name => MOUNT_FIELDS.contains(&name),
            }
        })
}

/// Whether a source is the name of a volume, or an absolute path of neither the project nor a folder that contains it. Relative paths count from a folder of
/// the project.
fn is_source_outside(source: &str, context: &LaunchContext<'_>) -> bool {
    if is_volume_name(source) {
        return true;
    }
    let path = Path::new(source);
    if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
        return false;
    }
    let overlaps = |path: &Path| path.starts_with(context.project) || context.project.starts_with(path);
    let is_of_system = |path: &Path| SYSTEM_FOLDERS.iter().any(|folder| path.starts_with(folder));
    let named = normalize_path(path);
    if overlaps(&named) || is_of_system(&named) {
        return false;
    }
    match path.canonicalize() {
        Ok(real) => !overlaps(&real) && !is_of_system(&real) && !has_socket(&real),
        // The engine creates the folder, behind the links of its parents.
        Err(_) => {
            let above = path.ancestors().find_map(|above| above.canonicalize().ok());
            above.is_some_and(|above| !above.starts_with(context.project) && !is_of_system(&above))
        }
    }
}

/// Whether a source is the name of a volume of the engine. One letter is none.
fn is_volume_name(source: &str) -> bool {
    source.len() > 1
        && source.starts_with(|c: char| c.is_ascii_alphanumeric())
        && source.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
}

/// Whether a path is a socket or a folder with one: the container could start others by it.
#[cfg(unix)]
fn has_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    if std::fs::metadata(path).is_ok_and(|about| about.file_type().is_socket()) {
        return true;
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten().take(MAX_ENTRIES);
    entries.into_iter().any(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()))
}

#[cfg(not(unix))]
fn has_socket(_path: &Path) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_the_project_are_told_from_others() {
        let outer = tempfile::tempdir().unwrap();
        let top = outer.path().canonicalize().unwrap();
        let project = top.join("project");
        for folder in ["project/conf", "data", "engine"] {
            std::fs::create_dir_all(top.join(folder)).unwrap();
        }
        std::os::unix::fs::symlink(&project, top.join("link")).unwrap();
        std::os::unix::fs::symlink(top.join("data"), project.join("out")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(top.join("engine/docker.sock")).unwrap();
        let folders = [project.clone()];
        let context = LaunchContext { folders: &folders, project: &project, path: None, has_values: true };
        for (source, is_outside) in [
            ("TOP/data", true),
            ("TOP/data/new/folder", true),
            ("cache", true),
            ("cache.v1_2-a", true),
            ("TOP/project", false),
            ("TOP/project/conf", false),
            ("TOP/project/new", false),
            ("TOP/project/out", false),
            ("TOP/link", false),
            ("TOP/link/conf", false),
            ("TOP/link/new", false),
            ("TOP", false),
            ("TOP/data/../project", false),
            ("/", false),
            (".", false),
            ("./conf", false),
            ("conf/x", false),
            ("../project", false),
            ("~/x", false),
            ("x", false),
            ("/proc/self/cwd", false),
            ("/proc", false),
            ("/var/run/docker.sock", false),
            ("TOP/engine/docker.sock", false),
            ("TOP/engine", false),
        ] {
            let source = source.replace("TOP", &top.display().to_string());
            for (option, value) in [
                ("-v", format!("{source}:/app")),
                ("--volume", format!("{source}:/app:ro,z")),
                ("--mount", format!("type=bind,src={source},dst=/app,readonly")),
                ("--mount", format!("dst=/app,SOURCE={source},type=bind")),
            ] {
                assert_eq!(is_outside_project(option, &value, &context), is_outside, "{option} {value}");
            }
        }
        for (option, value, is_outside) in [
            ("-v", "/cache", true),
            ("-v", "cache", false),
            ("-v", "cache:/app:O,upperdir=/x", false),
            ("-v", "C:\\x:/app", false),
            ("--mount", "type=tmpfs,dst=/tmp", true),
            ("--mount", "type=glob,src=/srv/*,dst=/x", false),
            ("--mount", "type=volume,dst=/x,volume-opt=device=/srv", false),
            ("--mount", "type=bind,\"src=/srv\",dst=/x", false),
            ("-e", "./x", true),
        ] {
            assert_eq!(is_outside_project(option, value, &context), is_outside, "{option} {value}");
        }
        let without = LaunchContext { has_values: false, ..context };
        assert!(is_outside_project("-v", "x/data:/data", &without));
    }
}
