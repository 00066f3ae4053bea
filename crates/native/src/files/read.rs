//! `read_file`: reads a text file, or some lines of it.

use std::io::{Read, Seek};

use cap_std::fs::File;
use encoding_rs::{Encoding, UTF_8};
use toolhub_core::lang::LocalizedText;
use toolhub_core::{ToolError, ToolOutput};
use toolhub_macros::tool;

use super::decode::{self, DecodeError, Kind, Malformed, Page, Window};
use super::folders::{Folders, Place};
use super::guess;
use crate::blocking::{self, Cancelled, Work};
use crate::in_chinese::{bracketed, in_chinese};

/// Maximum size of the text per call, in bytes.
const MAX_TEXT: usize = 1 << 20;
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
        bytes: MAX_TEXT,
    };
    let parts = blocking::run(Work::Files, move |cancelled| {
        let request = Request { path: &path, encoding: encoding.as_deref(), window, cancelled };
        request.read(&folders).map_err(|error| ToolError::failed(in_chinese(error)))
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
    fn read(&self, folders: &Folders) -> Result<Vec<LocalizedText>, String> {
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
        (&mut file).take(HEAD).read_to_end(&mut head).map_err(|error| self.broken(&error))?;
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
            (Kind::Plain, None) => self.guess(&mut file)?,
        };
        self.describe(page, note)
    }

    /// Tries UTF-8 first, then guesses the encoding from the beginning of the file.
    fn guess(&self, file: &mut File) -> Result<(Page, Option<String>), String> {
        match self.page(file, UTF_8, Malformed::Refuse) {
            Ok(page) => return Ok((page, None)),
            Err(message) if message.is_empty() => {}
            Err(message) => return Err(message),
        }
        let mut sample = Vec::new();
        let read = file.rewind().and_then(|()| file.take(MAX_TEXT as u64).read_to_end(&mut sample));
        read.map_err(|error| self.broken(&error))?;
        let guessed =
            guess::guess(&sample).map(|encoding| (encoding, self.page(file, encoding, Malformed::Refuse)));
        match guessed {
            Some((encoding, Ok(page))) => {
                let name = encoding.name();
                let note = format!("read as {name}, as it is not UTF-8; give `encoding` if this looks wrong");
                Ok((page, Some(note)))
            }
            Some((_, Err(message))) if !message.is_empty() => Err(message),
            _ => Err(format!(
                "`{}` is not UTF-8, and what else it may be is not clear: give its `encoding`, such as `gb18030`, `big5`, \
                 `shift_jis` or `windows-1252`",
                self.path
            )),
        }
    }

    /// Reads one page; the error is empty if the encoding does not fit.
    fn page(
        &self,
        file: &mut File,
        encoding: &'static Encoding,
        malformed: Malformed,
    ) -> Result<Page, String> {
        file.rewind().map_err(|error| self.broken(&error))?;
        decode::page(file, encoding, (self.window, malformed), self.cancelled).map_err(|error| match error {
            DecodeError::Malformed => String::new(),
            DecodeError::Cancelled => "cancelled".to_owned(),
            DecodeError::Io(error) => self.broken(&error),
        })
    }

    fn broken(&self, error: &std::io::Error) -> String {
        format!("`{}` cannot be read: {error}", self.path)
    }

    fn describe(&self, page: Page, note: Option<String>) -> Result<Vec<LocalizedText>, String> {
        let (path, Window { first, skip, .. }, last) = (self.path, self.window, page.last);
        if last < first && first > 1 {
            let lines = if last == 1 { "line" } else { "lines" };
            return Err(format!("`{path}` has {last} {lines}: offset_line = {first} is past its end"));
        }
        if page.skipped < skip {
            let (length, start) = (page.skipped, skip + 1);
            return Err(format!(
                "line {first} has {length} characters: offset_char = {start} is past its end"
            ));
        }
        let lines = if first == last { format!("line {first}") } else { format!("lines {first} to {last}") };
        let mut notes = Vec::new();
        if let Some(count) = page.cut {
            let next = skip + count + 1;
            notes.push(format!(
                "line {last} is longer than 1 MiB: read on with offset_line = {last}, offset_char = {next}"
            ));
        } else if page.more {
            let next = last + 1;
            notes.push(format!("{lines}; there is more: read on with offset_line = {next}"));
        } else if first > 1 {
            notes.push(format!("{lines}, the last of the file"));
        }
        if page.unreadable > 0 {
            notes.push(format!("characters that could not be read, shown as �: {}", page.unreadable));
        }
        notes.extend(note);
        Ok(std::iter::once(LocalizedText::from(page.text)).chain(bracketed(notes)).collect())
    }
}

fn open(place: &Place, path: &str) -> Result<File, String> {
    if place.metadata.is_dir() {
        return Err(format!("`{path}` is a folder: use `list_files`"));
    }
    // Opening a FIFO would block until a writer opens it.
    if !place.metadata.is_file() {
        return Err(format!("`{path}` is no file that can be read"));
    }
    place.dir.open(&place.inside).map_err(|error| {
        let hint =
            if super::folders::is_escape(&error) { " (it leads outside of the allowed folders)" } else { "" };
        format!("`{path}` cannot be opened: {error}{hint}")
    })
}
