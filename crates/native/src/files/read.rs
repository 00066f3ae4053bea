//! `read_file`: reads a text file, or some lines of it.

use std::io::{Read, Seek};

use cap_std::fs::File;
#[cfg(unix)]
use cap_std::fs::MetadataExt as _;
use encoding_rs::{Encoding, UTF_8};
use toolhub_core::lang::LocalizedText;
#[cfg(unix)]
use toolhub_core::open_databases::{self, FileIdentity};
use toolhub_core::{ToolError, ToolOutput};
use toolhub_macros::tool;

use super::decode::{self, DecodeError, FileType, Kind, Malformed, Page, PageOptions, Window};
use super::folders::{AllowedPath, Folders, unreadable};
use super::guess;
use crate::blocking::{self, Cancelled, Work};
use crate::localized_output::bracketed;

/// Maximum size of the text per call, in bytes.
const MAX_TEXT_BYTES: usize = 1 << 20;
/// Number of bytes inspected to determine the kind of a file.
const HEAD: u64 = 8 * 1024;

/// Reads a text file from the folders that are open to this tool.
///
/// At most 1 MiB is read at once; a note at the end says how to read on.
#[tool(read_only, idempotent, open_world = false, crate = crate::private)]
pub async fn read_file(
    #[state] folders: &Folders,
    #[doc = "Path of the file: relative to an allowed folder, or absolute inside one"] path: String,
    #[doc = "First line to read, counted from 1"]
    #[schemars(range(min = 1))]
    offset_line: Option<u64>,
    #[doc = "How many lines to read"]
    #[schemars(range(min = 1))]
    limit_lines: Option<u64>,
    #[doc = "First character to read of the first line, counted from 1: for lines that are longer than 1 MiB"]
    #[schemars(range(min = 1))]
    offset_char: Option<u64>,
    #[doc = "Encoding, such as `gbk`, `big5`, `utf-16le`, `shift_jis`; recognised if left out"]
    encoding: Option<String>,
) -> Result<ToolOutput, ToolError> {
    let folders = folders.clone();
    let window = Window {
        first: offset_line.unwrap_or(1).max(1),
        skip: offset_char.unwrap_or(1).max(1) - 1,
        lines: limit_lines.unwrap_or(u64::MAX).max(1),
        bytes: MAX_TEXT_BYTES,
    };
    let parts = blocking::run(Work::Files, move |cancelled| {
        let request = Request { path: &path, encoding: encoding.as_deref(), window, cancelled };
        request.read(&folders).map_err(ToolError::failed)
    });
    super::texts(parts.await?)
}

struct Request<'a> {
    path: &'a str,
    encoding: Option<&'a str>,
    window: Window,
    cancelled: &'a Cancelled,
}

impl Request<'_> {
    /// Returns the text and notes about it.
    fn read(&self, folders: &Folders) -> Result<Vec<LocalizedText>, LocalizedText> {
        let path = self.path;
        let named = self.encoding.map(|label| {
            Encoding::for_label(label.trim().as_bytes()).ok_or_else(|| {
                LocalizedText::new(
                    format!(
                        "there is no encoding `{label}`: use `utf-8`, `gbk`, `gb18030`, `big5`, `utf-16le` or the like"
                    ),
                    format!("没有编码 `{label}`：请使用 `utf-8`、`gbk`、`gb18030`、`big5`、`utf-16le` 等"),
                )
            })
        });
        let named = named.transpose()?;
        let allowed_path = folders.find(path)?;
        let mut file = open(&allowed_path, path)?;
        let mut head = Vec::new();
        (&mut file).take(HEAD).read_to_end(&mut head).map_err(|error| unreadable(path, &error))?;
        let (page, note) = match (decode::kind(&head), named) {
            (Kind::Marked(encoding), _) | (Kind::Plain | Kind::Binary(_), Some(encoding)) => {
                let page = self.page(&mut file, encoding, Malformed::Replace);
                (page.map_err(|error| self.decode_error(&error))?, None)
            }
            (Kind::Binary(file_type), None) => {
                return Err(binary(path, file_type, allowed_path.metadata.len()));
            }
            (Kind::Plain, None) => self.guess(&mut file)?,
        };
        self.describe(page, note)
    }

    /// Tries UTF-8 first, then guesses the encoding from the beginning of the file.
    fn guess(&self, file: &mut File) -> Result<(Page, Option<LocalizedText>), LocalizedText> {
        match self.page(file, UTF_8, Malformed::Refuse) {
            Ok(page) => return Ok((page, None)),
            Err(DecodeError::Malformed) => {}
            Err(error) => return Err(self.decode_error(&error)),
        }
        let mut sample = Vec::new();
        let read = file.rewind().and_then(|()| file.take(MAX_TEXT_BYTES as u64).read_to_end(&mut sample));
        read.map_err(|error| unreadable(self.path, &error))?;
        let Some(encoding) = guess::guess(&sample) else { return Err(self.unknown_encoding()) };
        let page = self.page(file, encoding, Malformed::Refuse).map_err(|error| self.decode_error(&error))?;
        let name = encoding.name();
        let note = LocalizedText::new(
            format!("read as {name}, as it is not UTF-8; give `encoding` if this looks wrong"),
            format!("按 {name} 读取（不是 UTF-8）；若显示有误，请给出 `encoding`"),
        );
        Ok((page, Some(note)))
    }

    /// Reads one page from the beginning of the file.
    fn page(
        &self,
        file: &mut File,
        encoding: &'static Encoding,
        malformed: Malformed,
    ) -> Result<Page, DecodeError> {
        file.rewind()?;
        decode::page(file, encoding, PageOptions { window: self.window, malformed }, self.cancelled)
    }

    fn decode_error(&self, error: &DecodeError) -> LocalizedText {
        match error {
            DecodeError::Malformed => self.unknown_encoding(),
            DecodeError::Cancelled => super::cancelled(),
            DecodeError::Io(error) => unreadable(self.path, error),
        }
    }

    fn unknown_encoding(&self) -> LocalizedText {
        let path = self.path;
        LocalizedText::new(
            format!(
                "`{path}` is not UTF-8, and what else it may be is not clear: give its `encoding`, such as `gb18030`, \
                 `big5`, `shift_jis` or `windows-1252`"
            ),
            format!(
                "`{path}` 不是 UTF-8，也无法确定是什么编码：请给出 `encoding`，例如 `gb18030`、`big5`、`shift_jis` 或 \
                 `windows-1252`"
            ),
        )
    }

    fn describe(&self, page: Page, note: Option<LocalizedText>) -> Result<Vec<LocalizedText>, LocalizedText> {
        let (path, Window { first, skip, .. }, last) = (self.path, self.window, page.last);
        if last < first && first > 1 {
            let lines = if last == 1 { "line" } else { "lines" };
            return Err(LocalizedText::new(
                format!("`{path}` has {last} {lines}: offset_line = {first} is past its end"),
                format!("`{path}` 只有 {last} 行：offset_line = {first} 已超出末尾"),
            ));
        }
        if page.skipped < skip {
            let (length, start) = (page.skipped, skip + 1);
            return Err(LocalizedText::new(
                format!("line {first} has {length} characters: offset_char = {start} is past its end"),
                format!("第 {first} 行只有 {length} 个字符：offset_char = {start} 已超出末尾"),
            ));
        }
        let notes: Vec<LocalizedText> =
            self.position(&page).into_iter().chain(malformed_note(page.unreadable)).chain(note).collect();
        Ok(std::iter::once(LocalizedText::from(page.text)).chain(bracketed(&notes)).collect())
    }

    /// A note with the lines of a page and where to read on; `None` if it is the whole file.
    fn position(&self, page: &Page) -> Option<LocalizedText> {
        let (Window { first, skip, .. }, last) = (self.window, page.last);
        if let Some(count) = page.cut {
            let next = skip + count + 1;
            return Some(LocalizedText::new(
                format!(
                    "line {last} is longer than 1 MiB: read on with offset_line = {last}, offset_char = {next}"
                ),
                format!("第 {last} 行超过 1 MiB：用 offset_line = {last}、offset_char = {next} 继续读取"),
            ));
        }
        let is_single = first == last;
        let (lines, lines_zh) = match is_single {
            true => (format!("line {first}"), format!("第 {first} 行")),
            false => (format!("lines {first} to {last}"), format!("第 {first} 至 {last} 行")),
        };
        if page.more {
            let next = last + 1;
            return Some(LocalizedText::new(
                format!("{lines}; there is more: read on with offset_line = {next}"),
                format!("{lines_zh}；后面还有：用 offset_line = {next} 继续读取"),
            ));
        }
        let end_zh = if is_single { "文件的最后一行" } else { "到文件末尾" };
        (first > 1).then(|| {
            LocalizedText::new(format!("{lines}, the last of the file"), format!("{lines_zh}，{end_zh}"))
        })
    }
}

fn malformed_note(count: usize) -> Option<LocalizedText> {
    (count > 0).then(|| {
        LocalizedText::new(
            format!("characters that could not be read, shown as �: {count}"),
            format!("无法读取、显示为 � 的字符：{count} 个"),
        )
    })
}

/// The error of a file that is not a text.
fn binary(path: &str, file_type: Option<&FileType>, bytes: u64) -> LocalizedText {
    let size = super::list::size(bytes);
    let (what, what_zh) = match file_type {
        Some(FileType { english, chinese, .. }) => (format!(": {english}"), format!("：{chinese}")),
        None => (String::new(), String::new()),
    };
    LocalizedText::new(
        format!(
            "`{path}` is a binary file{what} ({size}); only text can be read, in UTF-16 if `encoding` says so"
        ),
        format!("`{path}` 是二进制文件{what_zh}（{size}）；只能读取文本，若是 UTF-16 请用 `encoding` 注明"),
    )
}

fn open(allowed_path: &AllowedPath, path: &str) -> Result<File, LocalizedText> {
    if allowed_path.metadata.is_dir() {
        return Err(LocalizedText::new(
            format!("`{path}` is a folder: use `list_files`"),
            format!("`{path}` 是目录：请使用 `list_files`"),
        ));
    }
    // Opening a FIFO would block until a writer opens it.
    if !allowed_path.metadata.is_file() {
        return Err(LocalizedText::new(
            format!("`{path}` is no file that can be read"),
            format!("`{path}` 不是可读取的文件"),
        ));
    }
    #[cfg(unix)]
    let identity = FileIdentity { device: allowed_path.metadata.dev(), inode: allowed_path.metadata.ino() };
    #[cfg(unix)]
    if open_databases::is_open(identity) {
        return Err(LocalizedText::new(
            format!("`{path}` is the database of this hub, which no tool reads"),
            format!("`{path}` 是此 hub 的数据库，工具不能读取"),
        ));
    }
    allowed_path.dir.open(&allowed_path.inside).map_err(|error| {
        let hint =
            if super::folders::is_escape(&error) { " (it leads outside of the allowed folders)" } else { "" };
        LocalizedText::new(
            format!("`{path}` cannot be opened: {error}{hint}"),
            format!("无法打开 `{path}`：{error}{hint}"),
        )
    })
}
