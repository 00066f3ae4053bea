//! `list_files`: the entries of a folder.

use std::io;
use std::path::Path;

use cap_std::fs::{Dir, DirEntry};
use toolhub_core::lang::LocalizedText;
use toolhub_core::{ToolError, ToolOutput};
use toolhub_macros::tool;

use super::folders::Folders;
use super::glob;
use crate::blocking::{self, Cancelled, Work};
use crate::localized_output::bracketed;

/// Maximum number of entries in the output.
const MAX_LISTED_ENTRIES: usize = 1_000;
/// Maximum number of entries read: sorting requires all of them.
const MAX_SEEN: usize = 50_000;
const MAX_DEPTH: usize = 32;

/// Lists files and folders, with sizes, in the folders that are open to this tool. Names of folders end with `/`.
///
/// Folders whose names start with a dot are listed but not searched.
#[tool(read_only, idempotent, open_world = false, crate = crate::private)]
pub async fn list_files(
    #[state] folders: &Folders,
    #[doc = "The folder: relative to an allowed folder, or absolute inside one; all allowed folders if left out"]
    path: Option<String>,
    #[doc = "Names to show, such as `*.md`, `report?.txt` or `docs/**/*.rs`"] pattern: Option<String>,
    #[doc = "Whether to list the folders inside, too"]
    #[default(false)]
    recursive: bool,
) -> Result<ToolOutput, ToolError> {
    let folders = folders.clone();
    let parts = blocking::run(Work::Files, move |cancelled| {
        let path = path.as_deref().map(str::trim).filter(|path| !path.is_empty() && *path != ".");
        let pattern = pattern.filter(|pattern| !pattern.is_empty());
        let recursive = recursive || pattern.as_deref().is_some_and(|pattern| pattern.contains('/'));
        let search = Search { pattern: pattern.as_deref(), recursive, cancelled };
        let roots: Vec<String> = folders.roots().map(|root| root.display().to_string()).collect();
        match path {
            Some(path) => search.list(&folders, path),
            None if roots.is_empty() => search.list(&folders, "."),
            None => search.list_all(&folders, &roots),
        }
        .map_err(ToolError::failed)
    });
    super::texts(parts.await?)
}

struct Search<'a> {
    pattern: Option<&'a str>,
    recursive: bool,
    cancelled: &'a Cancelled,
}

#[derive(Default)]
struct Listing {
    /// Paths for output, with sizes.
    entries: Vec<(String, Option<u64>)>,
    seen: usize,
    /// Reasons why the list is incomplete.
    gaps: Vec<LocalizedText>,
}

impl Search<'_> {
    fn list_all(&self, folders: &Folders, roots: &[String]) -> Result<Vec<LocalizedText>, LocalizedText> {
        let each: Result<Vec<Vec<LocalizedText>>, LocalizedText> =
            roots.iter().map(|root| self.list(folders, root)).collect();
        each.map(|texts| texts.into_iter().flatten().collect())
    }

    fn list(&self, folders: &Folders, path: &str) -> Result<Vec<LocalizedText>, LocalizedText> {
        let allowed_path = folders.find(path)?;
        if !allowed_path.metadata.is_dir() {
            return Err(LocalizedText::new(
                format!("`{path}` is no folder: use `read_file`"),
                format!("`{path}` 不是目录：请使用 `read_file`"),
            ));
        }
        let dir = allowed_path.dir.open_dir(&allowed_path.inside).map_err(|error| unopened(path, &error))?;
        let mut found = Listing::default();
        self.walk(&dir, "", &mut found);
        if self.cancelled.is_set() {
            return Err(super::cancelled());
        }
        Ok(found.describe(&allowed_path.display_path, self.pattern))
    }

    fn walk(&self, dir: &Dir, prefix: &str, found: &mut Listing) {
        let entries = match dir.entries() {
            Ok(entries) => entries,
            Err(error) => return found.gaps.push(unopened(prefix, &error)),
        };
        let mut within = Vec::new();
        for entry in entries.flatten() {
            if found.seen == MAX_SEEN || self.cancelled.is_set() {
                break;
            }
            found.seen += 1;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            let Some((is_dir, is_link, size)) = inspect(dir, &entry) else { continue };
            let display_path = if is_dir { format!("{path}/") } else { path.clone() };
            if self.pattern.is_none_or(|pattern| glob::matches(pattern, &path)) {
                found.entries.push((display_path.clone(), size));
            }
            // Following links could lead to a cycle.
            if is_dir && !is_link && self.recursive && !name.starts_with('.') {
                within.push((entry, display_path));
            }
        }
        for (entry, display_path) in within {
            if display_path.matches('/').count() > MAX_DEPTH {
                found.gaps.push(LocalizedText::new(
                    format!("`{display_path}` lies too deep"),
                    format!("`{display_path}` 层次太深"),
                ));
            } else if let Ok(inner) = entry.open_dir() {
                self.walk(&inner, &display_path, found);
            } else {
                found.gaps.push(LocalizedText::new(
                    format!("`{display_path}` cannot be opened"),
                    format!("无法打开 `{display_path}`"),
                ));
            }
        }
    }
}

/// The error of a folder that cannot be opened.
fn unopened(path: &str, error: &io::Error) -> LocalizedText {
    LocalizedText::new(format!("`{path}` cannot be opened: {error}"), format!("无法打开 `{path}`：{error}"))
}

/// Whether an entry is a folder, whether it is a link, and its size. A link that leads out of the folder counts as a
/// file without a size.
fn inspect(dir: &Dir, entry: &DirEntry) -> Option<(bool, bool, Option<u64>)> {
    let kind = entry.file_type().ok()?;
    let is_link = kind.is_symlink();
    let metadata = if is_link { dir.metadata(entry.file_name()) } else { entry.metadata() };
    let Ok(metadata) = metadata else { return Some((false, is_link, None)) };
    Some((metadata.is_dir(), is_link, metadata.is_file().then(|| metadata.len())))
}

impl Listing {
    /// The number of entries, the entries, and what is missing.
    fn describe(mut self, folder: &Path, pattern: Option<&str>) -> Vec<LocalizedText> {
        self.entries.sort_unstable();
        let (count, folder) = (self.entries.len(), folder.display());
        let of = pattern.map(|pattern| format!(" for `{pattern}`")).unwrap_or_default();
        let of_zh = pattern.map(|pattern| format!("符合 `{pattern}` 的 ")).unwrap_or_default();
        let head = match count {
            0 => LocalizedText::new(format!("{folder}: nothing{of}"), format!("{folder}：没有{of_zh}文件")),
            1 => LocalizedText::new(format!("{folder}: 1 entry{of}"), format!("{folder}：{of_zh}1 项")),
            _ => LocalizedText::new(
                format!("{folder}: {count} entries{of}"),
                format!("{folder}：{of_zh}{count} 项"),
            ),
        };
        let line = |(path, bytes): &(String, Option<u64>)| match bytes {
            Some(bytes) => format!("{path}  {}", size(*bytes)),
            None => path.clone(),
        };
        let lines: Vec<String> = self.entries.iter().take(MAX_LISTED_ENTRIES).map(line).collect();
        let lines = (!lines.is_empty()).then(|| LocalizedText::from(lines.join("\n")));
        if count > MAX_LISTED_ENTRIES {
            let omitted = count - MAX_LISTED_ENTRIES;
            self.gaps.push(LocalizedText::new(
                format!("{omitted} more are not shown: give a `pattern`, or the path of a folder inside"),
                format!("另有 {omitted} 项未显示：请给出 `pattern`，或其中某个目录的路径"),
            ));
        }
        if self.seen == MAX_SEEN {
            self.gaps.push(LocalizedText::new(
                format!("only the first {MAX_SEEN} entries were looked at"),
                format!("只查看了前 {MAX_SEEN} 项"),
            ));
        }
        std::iter::once(head).chain(lines).chain(bracketed(&self.gaps)).collect()
    }
}

/// Formats a size.
pub(super) fn size(bytes: u64) -> String {
    let mut amount = bytes as f64;
    for unit in ["KB", "MB", "GB"] {
        amount /= 1024.0;
        if amount < 1024.0 {
            return if bytes < 1024 { format!("{bytes} B") } else { format!("{amount:.1} {unit}") };
        }
    }
    format!("{:.1} TB", amount / 1024.0)
}
