//! `read_file`: a text file, or some lines of it.

use std::io::{Read, Seek};

use encoding_rs::Encoding;
use toolhub_core::{ToolError, ToolOutput};
use toolhub_macros::tool;

use super::decode::{self, DecodeError, Kind, Malformed, Page, Window};
use super::folders::{Folders, Place};
use crate::blocking::{self, Cancelled};

/// Text that is read at once.
const MAX_TEXT: usize = 1 << 20;
/// Bytes that are looked at to tell what a file is.
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
    #[doc = "Encoding, such as `gbk`, `big5`, `utf-16le`, `shift_jis`; recognised if left out"]
    encoding: Option<String>,
) -> Result<ToolOutput, ToolError> {
    let folders = folders.clone();
    let window = Window {
        first: offset_line.unwrap_or(1).max(1),
        lines: limit_lines.unwrap_or(u64::MAX).max(1),
        bytes: MAX_TEXT,
    };
    let parts = blocking::run(move |cancelled| {
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
    /// The text, and what is to be said about it.
    fn read(&self, folders: &Folders) -> Result<Vec<String>, String> {
        let path = self.path;
        let named = self.encoding.map(|label| {
            Encoding::for_label(label.trim().as_bytes()).ok_or_else(|| {
                format!("there is no encoding `{label}`: use `utf-8`, `gbk`, `gb18030`, `big5`, `utf-16le` or the like")
            })
        });
        let named = named.transpose()?;
        let place = folders.find(path)?;
        let mut file = open(&place, path)?;
        let mut head = Vec::new();
        let broken = |error: std::io::Error| format!("`{path}` cannot be read: {error}");
        (&mut file).take(HEAD).read_to_end(&mut head).map_err(broken)?;
        let (page, note) = match (decode::kind(&head), named) {
            (Kind::Marked(encoding), _) | (Kind::Plain | Kind::Binary(_), Some(encoding)) => {
                let page = self.page(&mut file, encoding, Malformed::Replace)?;
                (page, None)
            }
            (Kind::Binary(what), None) => {
                let what = what.map(|what| format!(": {what}")).unwrap_or_default();
                let size = super::list::size(place.metadata.len());
                return Err(format!(
                    "`{path}` is a binary file{what} ({size}); only text can be read, in UTF-16 if `encoding` says so"
                ));
            }
            (Kind::Plain, None) => self.guess(&mut file, &head)?,
        };
        self.describe(page, note)
    }

    /// UTF-8, or else GB18030 where that fits without a fault.
    fn guess(&self, file: &mut cap_std::fs::File, head: &[u8]) -> Result<(Page, Option<String>), String> {
        for encoding in decode::GUESSES.into_iter().filter(|encoding| decode::fits(encoding, head)) {
            match self.page(file, encoding, Malformed::Refuse) {
                Ok(page) if encoding == encoding_rs::UTF_8 => return Ok((page, None)),
                Ok(page) => {
                    let note = "read as GB18030, as it is not UTF-8; give `encoding` if this looks wrong";
                    return Ok((page, Some(note.to_owned())));
                }
                Err(message) if message.is_empty() => {}
                Err(message) => return Err(message),
            }
        }
        Err(format!(
            "`{}` is neither UTF-8 nor GB18030: give its `encoding`, such as `windows-1252`, `big5` or `shift_jis`",
            self.path
        ))
    }

    /// One page; the error is empty where the encoding does not fit.
    fn page(
        &self,
        file: &mut cap_std::fs::File,
        encoding: &'static Encoding,
        malformed: Malformed,
    ) -> Result<Page, String> {
        let broken = |error: std::io::Error| format!("`{}` cannot be read: {error}", self.path);
        file.rewind().map_err(broken)?;
        decode::page(file, encoding, (self.window, malformed), self.cancelled).map_err(|error| match error {
            DecodeError::Malformed => String::new(),
            DecodeError::Cancelled => "cancelled".to_owned(),
            DecodeError::Io(error) => broken(error),
        })
    }

    fn describe(&self, page: Page, note: Option<String>) -> Result<Vec<String>, String> {
        let (path, first, last) = (self.path, self.window.first, page.last);
        if last < first && first > 1 {
            return Err(format!("`{path}` has {last} lines: offset_line = {first} is past its end"));
        }
        let mut notes = Vec::new();
        if page.text.is_empty() {
            notes.push("the file is empty".to_owned());
        } else if page.cut {
            let next = last + 1;
            notes.push(format!(
                "line {last} is longer than 1 MiB and was cut; read on with offset_line = {next}"
            ));
        } else if page.more {
            let next = last + 1;
            notes.push(format!("lines {first} to {last}; there is more: read on with offset_line = {next}"));
        } else if first > 1 {
            notes.push(format!("lines {first} to {last}, the last of the file"));
        }
        if page.unreadable > 0 {
            notes.push(format!("characters that could not be read, shown as �: {}", page.unreadable));
        }
        notes.extend(note);
        let notes = (!notes.is_empty()).then(|| format!("[{}]", notes.join("; ")));
        let text = (!page.text.is_empty()).then_some(page.text);
        Ok(text.into_iter().chain(notes).collect())
    }
}

fn open(place: &Place, path: &str) -> Result<cap_std::fs::File, String> {
    if place.metadata.is_dir() {
        return Err(format!("`{path}` is a folder: use `list_files`"));
    }
    // Opening a pipe would wait for somebody to write to it.
    if !place.metadata.is_file() {
        return Err(format!("`{path}` is no file that can be read"));
    }
    place.dir.open(&place.inside).map_err(|error| {
        let hint =
            if super::folders::is_escape(&error) { " (it leads outside of the allowed folders)" } else { "" };
        format!("`{path}` cannot be opened: {error}{hint}")
    })
}
