//! Finds a binary of this crate for tests of any crate, and builds it if it is missing or older than its source.

use std::{
    collections::HashMap,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

/// The path of a binary of this crate, such as `scripted-mcp`, in the profile of the running test.
#[must_use]
pub fn program(name: &'static str) -> PathBuf {
    static PROGRAMS: Mutex<Option<HashMap<&'static str, PathBuf>>> = Mutex::new(None);
    // Held during a build: other callers wait, and cargo would serialize builds anyway.
    let mut found = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    found.get_or_insert_default().entry(name).or_insert_with(|| find_or_build(name)).clone()
}

fn find_or_build(name: &str) -> PathBuf {
    let folder = profile_folder();
    let path = folder.join(format!("{name}{}", env::consts::EXE_SUFFIX));
    // Cargo builds the binaries of a crate only for its own tests, so for other crates it may be missing or stale.
    if !is_current(&path) {
        build(&folder, name);
    }
    assert!(path.is_file(), "`cargo build` left no program at `{}`", path.display());
    path
}

/// `target/debug` for a test in `target/debug/deps`.
pub(crate) fn profile_folder() -> PathBuf {
    let test = env::current_exe().expect("a test knows its own path");
    let folder = test.parent().expect("a program is in a folder");
    match folder.file_name() {
        Some(name) if name == "deps" || name == "examples" => {
            folder.parent().expect("`deps` has a parent").to_owned()
        }
        _ => folder.to_owned(),
    }
}

fn is_current(program: &Path) -> bool {
    let Some(built) = modified(program) else { return false };
    newest(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).is_none_or(|source| source <= built)
}

fn newest(folder: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    entries
        .filter_map(
            |entry| if entry.path().is_dir() { newest(&entry.path()) } else { modified(&entry.path()) },
        )
        .max()
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}

fn build(profile_folder: &Path, name: &str) {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args(["build", "--quiet", "-p", "toolhub-testkit"]);
    cargo.args(["--bin", name]);
    match profile_folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => {}
        Some(profile) => {
            cargo.args(["--profile", profile]);
        }
    }
    // `target/debug`, or `target/<triple>/debug` of a build with `--target`; `CACHEDIR.TAG` marks the target folder.
    let above = profile_folder.parent().expect("a profile's folder has a parent");
    if above.join("CACHEDIR.TAG").exists() {
        cargo.arg("--target-dir").arg(above);
    } else if let (Some(target), Some(triple)) = (above.parent(), above.file_name()) {
        cargo.arg("--target-dir").arg(target).arg("--target").arg(triple);
    }
    let status = cargo.status().expect("cargo starts");
    assert!(status.success(), "`cargo build --bin {name}` failed: {status}");
}
