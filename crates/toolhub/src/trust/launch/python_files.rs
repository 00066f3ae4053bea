//! Files that Python loads instead of a module's source file: bytecode and native modules in the same folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// File extensions of native modules, which Python prefers to source files.
const NATIVE: [&str; 3] = [".so", ".pyd", ".dylib"];

/// Cached contents of folders. Each is read once.
#[derive(Default)]
pub(super) struct Folders {
    names: BTreeMap<PathBuf, Vec<String>>,
}

impl Folders {
    /// The files that Python may load instead of `source`, which need not exist.
    pub(super) fn shadowing_files(&mut self, source: &Path) -> Vec<PathBuf> {
        let (Some(folder), Some(name)) = (source.parent(), source.file_stem().and_then(|name| name.to_str()))
        else {
            return Vec::new();
        };
        let cache = folder.join("__pycache__");
        let is_cached = |file: &&String| {
            file.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')) && file.ends_with(".pyc")
        };
        let cached: Vec<PathBuf> =
            self.names(&cache).iter().filter(is_cached).map(|file| cache.join(file)).collect();
        let is_beside = |file: &&String| {
            file.strip_prefix(name)
                .is_some_and(|rest| rest == ".pyc" || NATIVE.iter().any(|ending| rest.ends_with(ending)))
        };
        let beside = self.names(folder).iter().filter(is_beside).map(|file| folder.join(file));
        beside.chain(cached).collect()
    }

    fn names(&mut self, folder: &Path) -> &[String] {
        self.names.entry(folder.to_owned()).or_insert_with(|| {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
        })
    }
}
