//! The readable folders, and the resolution of paths in them. Files are opened through `cap-std`, which resolves `..`
//! and links inside the folder: a path that leads out of it fails, even if files are replaced meanwhile.

use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata};
use toolhub_core::lang::LocalizedText;

use crate::suggest;

/// The folders that the file tools may read.
#[derive(Debug, Clone, Default)]
pub struct Folders {
    roots: Arc<[PathBuf]>,
    /// Folders that are never read, with symbolic links resolved.
    private: Arc<[PathBuf]>,
}

/// A path in an allowed folder.
pub(super) struct AllowedPath {
    pub(super) dir: Dir,
    /// The path relative to the folder.
    pub(super) inside: PathBuf,
    /// The path for messages.
    pub(super) display_path: PathBuf,
    pub(super) metadata: Metadata,
}

impl Folders {
    /// Allows these folders; relative ones start at the current directory, and `~` is the user's home.
    pub fn new(folders: Vec<PathBuf>) -> Self {
        let root = |folder: PathBuf| {
            let folder = at_home(&folder).unwrap_or(folder);
            let folder = std::path::absolute(&folder).unwrap_or(folder);
            // A link may precede `..`, so only the file system can resolve it.
            let winds = folder.components().any(|part| part == Component::ParentDir);
            if winds { folder.canonicalize().unwrap_or(folder) } else { folder }
        };
        Self { roots: folders.into_iter().map(root).collect(), private: Arc::default() }
    }

    /// Excludes folders: the hub's own data, such as keys and stored results, is not for tools.
    #[must_use]
    pub fn without(mut self, private: &[PathBuf]) -> Self {
        let resolved = |folder: &PathBuf| folder.canonicalize().unwrap_or_else(|_| folder.clone());
        self.private = private.iter().map(resolved).collect();
        self
    }

    /// Whether a path of an allowed folder leads into an excluded one.
    fn is_private(&self, root: &Path, dir: &Dir, inside: &Path) -> bool {
        if self.private.is_empty() {
            return false;
        }
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let path = root.join(dir.canonicalize(inside).unwrap_or_else(|_| inside.to_owned()));
        self.private.iter().any(|private| path.starts_with(private))
    }

    /// The folders, in order.
    pub fn roots(&self) -> impl Iterator<Item = &Path> {
        self.roots.iter().map(PathBuf::as_path)
    }

    /// Resolves `path`: a relative path is tried in each folder in order, an absolute one must be in a folder, and `~`
    /// is the user's home, as in a shell.
    pub(super) fn find(&self, path: &str) -> Result<AllowedPath, LocalizedText> {
        if self.roots.is_empty() {
            return Err(LocalizedText::new(
                "no folder may be read: list some in toolhub.toml, as `[native] folders = [\"…\"]`",
                "没有可读取的目录：请在 toolhub.toml 中写明，如 `[native] folders = [\"…\"]`",
            ));
        }
        let home = at_home(Path::new(path));
        let requested = home.as_deref().unwrap_or(Path::new(path));
        let (mut missing, mut closed) = (None, None);
        for root in &*self.roots {
            let Some(inside) = inside(root, requested) else { continue };
            let dir = match Dir::open_ambient_dir(root, ambient_authority()) {
                Ok(dir) => dir,
                // The file may be in the next folder.
                Err(error) => {
                    let folder = root.display();
                    closed.get_or_insert_with(|| {
                        LocalizedText::new(
                            format!("the folder `{folder}` cannot be opened: {error}"),
                            format!("无法打开目录 `{folder}`：{error}"),
                        )
                    });
                    continue;
                }
            };
            match dir.metadata(&inside) {
                Ok(_) if self.is_private(root, &dir, &inside) => return Err(self.outside(path)),
                Ok(metadata) => {
                    let winds = inside.components().any(|part| part == Component::ParentDir);
                    let plain = winds.then(|| dir.canonicalize(&inside).ok()).flatten();
                    let display_path = root.join(plain.as_ref().unwrap_or(&inside)).components().collect();
                    return Ok(AllowedPath { dir, inside, display_path, metadata });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    missing.get_or_insert_with(|| near_names(&dir, &inside));
                }
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                    missing.get_or_insert_with(Vec::new);
                }
                Err(error) if is_escape(&error) => return Err(self.outside(path)),
                Err(error) => return Err(unreadable(path, &error)),
            }
        }
        Err(match missing {
            None => closed.unwrap_or_else(|| self.outside(path)),
            Some(similar) => self.missing(path, &similar),
        })
    }

    fn missing(&self, path: &str, similar: &[String]) -> LocalizedText {
        let folders = self.named();
        if similar.is_empty() {
            return LocalizedText::new(
                format!("there is no `{path}` in {folders}; use `list_files` to see what there is"),
                format!("{folders} 中没有 `{path}`；可用 `list_files` 查看有哪些文件"),
            );
        }
        let similar = suggest::list(similar);
        LocalizedText::new(
            format!("there is no `{path}` in {folders}; did you mean {similar}?"),
            format!("{folders} 中没有 `{path}`；是否指 {similar}？"),
        )
    }

    fn outside(&self, path: &str) -> LocalizedText {
        let folders = self.named();
        LocalizedText::new(
            format!("`{path}` leads outside of the folders that may be read: {folders}"),
            format!("`{path}` 在可读取的目录之外：{folders}"),
        )
    }

    fn named(&self) -> String {
        suggest::list(self.roots.iter().map(|root| root.display()))
    }
}

/// The error of a path that cannot be read.
pub(super) fn unreadable(path: &str, error: &io::Error) -> LocalizedText {
    LocalizedText::new(format!("`{path}` cannot be read: {error}"), format!("无法读取 `{path}`：{error}"))
}

/// Expands a leading `~` to the user's home.
fn at_home(folder: &Path) -> Option<PathBuf> {
    Some(std::env::home_dir()?.join(folder.strip_prefix("~").ok()?))
}

/// The path of `requested` relative to `root`; `None` if it is absolute and outside.
fn inside(root: &Path, requested: &Path) -> Option<PathBuf> {
    let inside = if requested.is_absolute() {
        // The folder may be configured by a link and the path be given by its target, or the other way round.
        let canonical = root.canonicalize().ok();
        requested.strip_prefix(root).ok().or_else(|| requested.strip_prefix(canonical?).ok())?
    } else {
        requested
    };
    Some(if inside.as_os_str().is_empty() { PathBuf::from(".") } else { inside.to_owned() })
}

/// Whether `cap-std` rejected a path that leads out of its folder; such an error has no OS error code.
pub(super) fn is_escape(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}

/// Names in the folder of a missing file that are similar to its name, relative to the allowed folder.
fn near_names(dir: &Dir, missing: &Path) -> Vec<String> {
    let parent = missing.parent().filter(|parent| !parent.as_os_str().is_empty());
    let Ok(entries) = dir.read_dir(parent.unwrap_or(Path::new("."))) else { return Vec::new() };
    let names: Vec<String> = entries
        .flatten()
        .take(10_000)
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let requested = missing.file_name().map(OsStr::to_string_lossy).unwrap_or_default();
    let similar = suggest::nearest(&requested, names.iter().map(String::as_str));
    let join =
        |name: &str| parent.map_or_else(|| name.to_owned(), |parent| parent.join(name).display().to_string());
    similar.into_iter().map(join).collect()
}
