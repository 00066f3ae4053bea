//! Output of commands: results on stdout, everything else on stderr, colours only on a terminal.

use std::borrow::Cow;
use std::io::{IsTerminal as _, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::{AutoStream, ColorChoice};
use toolhub_core::{Lang, RawJson, json};

use crate::args::{Color, Global};
use crate::render::sanitize::{Breaks, Style, one_line, sanitized, sanitized_json, with_styles};
use crate::render::table::truncate_to_width;

pub(crate) const BOLD: Style = Style::Bold;
pub(crate) const DIM: Style = Style::Dim;
pub(crate) const GOOD: Style = Style::Good;
pub(crate) const BAD: Style = Style::Bad;
pub(crate) const ODD: Style = Style::Odd;
pub(crate) const NAME: Style = Style::Name;

/// The output streams and their options.
#[derive(Debug)]
pub(crate) struct Screen {
    pub(crate) lang: Lang,
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    color: ColorChoice,
    /// Set if output could not be written, for example to a full disk.
    lost: AtomicBool,
    /// Whether a status line is on the terminal.
    status: AtomicBool,
}

impl Screen {
    pub(crate) fn new(global: &Global, lang: Lang) -> Self {
        let color = match global.color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        };
        Self {
            lang,
            json: global.json,
            quiet: global.quiet,
            color,
            lost: AtomicBool::new(false),
            status: AtomicBool::new(false),
        }
    }

    /// Shows a temporary status line, on a terminal only.
    pub(crate) fn status(&self, text: &str) {
        if self.quiet || self.json || !std::io::stderr().is_terminal() {
            return;
        }
        let width = terminal_width().unwrap_or(80).saturating_sub(1);
        self.status.store(true, Ordering::Relaxed);
        let _ = write!(std::io::stderr().lock(), "\r\u{1b}[K{}", truncate_to_width(&one_line(text), width));
    }

    /// Removes the status line.
    pub(crate) fn hide_status(&self) {
        if self.status.swap(false, Ordering::Relaxed) {
            let _ = write!(std::io::stderr().lock(), "\r\u{1b}[K");
        }
    }

    /// Prints a line of the result. All printed text is sanitized by `sanitize::with_styles`, so that only styles of this program
    /// become escape sequences.
    pub(crate) fn line(&self, text: &str) {
        self.to_stdout(&with_styles(text, Breaks::Continued));
    }

    /// Prints multi-line text of this program with its own styles: help, completions.
    pub(crate) fn own_text(&self, text: &str) {
        self.to_stdout(text);
    }

    fn to_stdout(&self, text: &str) {
        self.hide_status();
        let mut out = AutoStream::new(std::io::stdout().lock(), self.color);
        self.check(writeln!(out, "{text}").and_then(|()| out.flush()));
    }

    /// Prints the output of a tool: unchanged to a pipe or file; on a terminal with control characters made visible.
    pub(crate) fn verbatim(&self, text: &str) {
        self.hide_status();
        let mut out = std::io::stdout().lock();
        let text = if out.is_terminal() { sanitized(text, Breaks::Kept) } else { Cow::Borrowed(text) };
        let end = if text.ends_with('\n') { "" } else { "\n" };
        self.check(write!(out, "{text}{end}").and_then(|()| out.flush()));
    }

    /// A closed pipe, as with `head`, is not an error.
    fn check(&self, written: std::io::Result<()>) {
        if written.is_err_and(|error| error.kind() != std::io::ErrorKind::BrokenPipe) {
            self.lost.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a part of the result could not be written.
    pub(crate) fn has_write_error(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Prints a message, unless `--quiet` is given.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            self.to_stderr(text);
        }
    }

    /// Something that may need attention.
    pub(crate) fn warn(&self, text: &str) {
        let (word, gap) = self.lang.choose(("warning:", " "), ("警告：", ""));
        self.note(&format!("{ODD}{word}{ODD:#}{gap}{text}"));
    }

    /// Prints an error.
    pub(crate) fn error(&self, text: &str) {
        let (word, gap) = self.lang.choose(("error:", " "), ("错误：", ""));
        self.to_stderr(&format!("{BAD}{word}{BAD:#}{gap}{text}"));
    }

    pub(crate) fn to_stderr(&self, text: &str) {
        self.hide_status();
        let mut out = AutoStream::new(std::io::stderr().lock(), self.color);
        let _ = writeln!(out, "{}", with_styles(text, Breaks::Continued));
    }

    /// Prints a prompt without a line break.
    pub(crate) fn prompt(&self, text: &str) {
        self.hide_status();
        let mut out = AutoStream::new(std::io::stderr().lock(), self.color);
        let _ = write!(out, "{}", with_styles(text, Breaks::Continued)).and_then(|()| out.flush());
    }

    /// Prints a part of a streamed answer.
    pub(crate) fn delta(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(sanitized(text, Breaks::Kept).as_bytes()).and_then(|()| out.flush());
    }

    /// Prints JSON: indented on a terminal, otherwise unchanged.
    pub(crate) fn json(&self, value: &RawJson) {
        match std::io::stdout().is_terminal() {
            true => self.json_line(&json::pretty_json(value.get())),
            false => self.json_line(value.get()),
        }
    }

    /// Prints JSON on one line.
    pub(crate) fn json_line(&self, value: &str) {
        self.hide_status();
        let mut out = std::io::stdout().lock();
        let sanitized = if out.is_terminal() { sanitized_json(value) } else { Cow::Borrowed(value) };
        self.check(writeln!(out, "{sanitized}").and_then(|()| out.flush()));
    }

    /// The width for results; `None` if stdout is not a terminal.
    pub(crate) fn width(&self) -> Option<usize> {
        let columns = || std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        std::io::stdout().is_terminal().then(|| terminal_width().or_else(columns).unwrap_or(100))
    }
}

#[cfg(unix)]
fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

#[cfg(not(unix))]
fn terminal_width() -> Option<usize> {
    None
}
