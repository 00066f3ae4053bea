//! Decodes text in any encoding, one window of lines at a time, so that memory use does not depend on the size of the
//! file.

use std::io::{self, Read};

use encoding_rs::{DecoderResult, Encoding};

use crate::blocking::Cancelled;

/// The requested lines, counted from 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub(super) first: u64,
    /// Characters of the first line to skip.
    pub(super) skip: u64,
    /// Maximum number of lines.
    pub(super) lines: u64,
    /// Maximum size of the text, in bytes.
    pub(super) bytes: usize,
}

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) text: String,
    /// The last line in it; less than the first requested line if the text ends before.
    pub(super) last: u64,
    /// Whether the text continues after it.
    pub(super) more: bool,
    /// The number of characters of the last line, if that line was cut.
    pub(super) cut: Option<u64>,
    /// The number of skipped characters of the first line: fewer than requested if the line is shorter.
    pub(super) skipped: u64,
    /// Number of malformed characters.
    pub(super) unreadable: usize,
}

/// How malformed bytes are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Malformed {
    Refuse,
    Replace,
}

/// Which lines of a text are read, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageOptions {
    pub(super) window: Window,
    pub(super) malformed: Malformed,
}

/// Why a text could not be decoded.
#[derive(Debug)]
pub(super) enum DecodeError {
    Malformed,
    Cancelled,
    Io(io::Error),
}

impl From<io::Error> for DecodeError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The kind of a file, by its first bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It starts with a byte order mark.
    Marked(&'static Encoding),
    /// Not a text; the type, if its magic number is known.
    Binary(Option<&'static FileType>),
    Plain,
}

/// A binary file type.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileType {
    /// The first bytes of such a file.
    magic: &'static [u8],
    pub(super) english: &'static str,
    pub(super) chinese: &'static str,
}

const fn file_type(magic: &'static [u8], english: &'static str, chinese: &'static str) -> FileType {
    FileType { magic, english, chinese }
}

pub(super) static FILE_TYPES: [FileType; 11] = [
    file_type(b"\x89PNG", "a PNG image", "PNG 图片"),
    file_type(b"\xff\xd8\xff", "a JPEG image", "JPEG 图片"),
    file_type(b"GIF8", "a GIF image", "GIF 图片"),
    file_type(b"%PDF", "a PDF document", "PDF 文档"),
    file_type(b"PK\x03\x04", "a ZIP archive or an Office document", "ZIP 压缩包或 Office 文档"),
    file_type(b"\xd0\xcf\x11\xe0", "an old Office document", "旧版 Office 文档"),
    file_type(b"\x1f\x8b", "a gzip archive", "gzip 压缩包"),
    file_type(b"\x7fELF", "a program", "程序"),
    file_type(b"MZ\x90", "a Windows program", "Windows 程序"),
    file_type(b"SQLite format 3", "an SQLite database", "SQLite 数据库"),
    file_type(b"Rar!", "a RAR archive", "RAR 压缩包"),
];

/// Determines the kind of a file.
pub(super) fn kind(head: &[u8]) -> Kind {
    if let Some((encoding, _)) = Encoding::for_bom(head) {
        return Kind::Marked(encoding);
    }
    match FILE_TYPES.iter().find(|file_type| head.starts_with(file_type.magic)) {
        Some(file_type) => Kind::Binary(Some(file_type)),
        None if head.contains(&0) => Kind::Binary(None),
        None => Kind::Plain,
    }
}

/// Reads the lines of a window.
pub(super) fn page(
    reader: &mut impl Read,
    encoding: &'static Encoding,
    PageOptions { window, malformed }: PageOptions,
    cancelled: &Cancelled,
) -> Result<Page, DecodeError> {
    let mut decoder = encoding.new_decoder_with_bom_removal();
    let mut lines = Lines::new(window);
    let mut bytes = vec![0; 64 * 1024];
    let mut text = vec![0; 64 * 1024 * 3 + 16];
    loop {
        if cancelled.is_set() {
            return Err(DecodeError::Cancelled);
        }
        let count = read_some(reader, &mut bytes)?;
        let mut rest = &bytes[..count];
        loop {
            let last = count == 0;
            let (result, read, written) = decoder.decode_to_utf8_without_replacement(rest, &mut text, last);
            rest = &rest[read..];
            // The decoder writes UTF-8; the check is cheap and avoids `unsafe`.
            lines.push(std::str::from_utf8(&text[..written]).unwrap_or_default());
            match result {
                DecoderResult::Malformed(..) if malformed == Malformed::Refuse && !lines.full => {
                    return Err(DecodeError::Malformed);
                }
                DecoderResult::Malformed(..) => {
                    lines.page.unreadable += usize::from(lines.is_inside());
                    lines.push("\u{fffd}");
                }
                DecoderResult::OutputFull => {}
                DecoderResult::InputEmpty if last => return Ok(lines.end()),
                DecoderResult::InputEmpty => break,
            }
            if lines.full {
                return Ok(lines.page);
            }
        }
    }
}

fn read_some(reader: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Collects the lines of a window from a text in pieces.
struct Lines {
    window: Window,
    page: Page,
    /// The line of the next character.
    line: u64,
    /// Whether that line has any characters yet.
    has_started: bool,
    full: bool,
}

impl Lines {
    fn new(window: Window) -> Self {
        let page = Page { text: String::new(), last: 0, more: false, cut: None, skipped: 0, unreadable: 0 };
        Self { window, page, line: 1, has_started: false, full: false }
    }

    fn is_inside(&self) -> bool {
        self.line >= self.window.first && !self.full
    }

    fn push(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            if self.full {
                return;
            }
            // There is text after the last requested line.
            if self.line >= self.window.first.saturating_add(self.window.lines) {
                (self.full, self.page.more) = (true, true);
                return;
            }
            let wanted = self.skip(piece);
            if self.line >= self.window.first && !self.append(wanted) {
                return;
            }
            self.has_started = true;
            if piece.ends_with('\n') {
                self.line += 1;
                self.has_started = false;
            }
        }
    }

    /// Removes the characters to skip from a piece of the first line.
    fn skip<'a>(&mut self, piece: &'a str) -> &'a str {
        let wanted = if self.line == self.window.first { self.window.skip - self.page.skipped } else { 0 };
        let line = piece.trim_end_matches('\n');
        let end = line.char_indices().nth(wanted as usize).map_or(line.len(), |(at, _)| at);
        self.page.skipped += line[..end].chars().count() as u64;
        &piece[end..]
    }

    /// Adds a piece of a line; `false` if it does not fit.
    fn append(&mut self, piece: &str) -> bool {
        let available = self.window.bytes - self.page.text.len();
        if piece.len() <= available {
            self.page.text.push_str(piece);
            self.page.last = self.line;
            return true;
        }
        (self.full, self.page.more) = (true, true);
        let whole_lines = self.page.text.rfind('\n').map(|at| at + 1);
        match whole_lines {
            // The line that does not fit is left for the next page.
            Some(end) if !self.page.text.is_empty() => {
                self.page.text.truncate(end);
                self.page.last = self.line - 1;
            }
            _ => {
                let end = piece.floor_char_boundary(available);
                self.page.text.push_str(&piece[..end]);
                self.page.last = self.line;
                self.page.cut = Some(self.page.text.chars().count() as u64);
            }
        }
        false
    }

    fn end(mut self) -> Page {
        if self.page.last == 0 {
            self.page.last = if self.has_started { self.line } else { self.line - 1 };
        }
        self.page
    }
}
