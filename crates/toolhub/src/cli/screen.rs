//! What people and programs see: answers on stdout, everything else on stderr, colours only on a terminal.

use std::io::{IsTerminal as _, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use toolhub_core::{Lang, RawJson, json};

use super::options::{Color, Global};

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
pub(crate) const ODD: Style = AnsiColor::Yellow.on_default();
pub(crate) const NAME: Style = AnsiColor::Cyan.on_default();

/// Where text goes.
#[derive(Debug)]
pub(crate) struct Screen {
    pub(crate) lang: Lang,
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    color: ColorChoice,
}

impl Screen {
    pub(crate) fn new(global: &Global, lang: Lang) -> Self {
        let color = match global.color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        };
        Self { lang, json: global.json, quiet: global.quiet, color }
    }

    /// A line of the answer. A reader that went away, as `head` does, is no error.
    pub(crate) fn line(&self, text: &str) {
        let mut out = AutoStream::new(std::io::stdout().lock(), self.color);
        let _ = writeln!(out, "{text}");
    }

    /// A line about the work.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            self.to_stderr(text);
        }
    }

    /// Something that may need attention.
    pub(crate) fn warn(&self, text: &str) {
        let (word, gap) = self.lang.pick(("warning:", " "), ("警告：", ""));
        self.note(&format!("{ODD}{word}{ODD:#}{gap}{text}"));
    }

    /// What went wrong.
    pub(crate) fn error(&self, text: &str) {
        let (word, gap) = self.lang.pick(("error:", " "), ("错误：", ""));
        self.to_stderr(&format!("{BAD}{word}{BAD:#}{gap}{text}"));
    }

    pub(crate) fn to_stderr(&self, text: &str) {
        let mut out = AutoStream::new(std::io::stderr().lock(), self.color);
        let _ = writeln!(out, "{text}");
    }

    /// A machine's answer: on several lines for people at a terminal, else as it is.
    pub(crate) fn json(&self, value: &RawJson) {
        if std::io::stdout().is_terminal() {
            self.line(&json::pretty(value.get()));
        } else {
            self.line(value.get());
        }
    }

    /// How wide the answer may be; `None` where it does not go to a terminal.
    pub(crate) fn width(&self) -> Option<usize> {
        let columns = || std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        std::io::stdout().is_terminal().then(|| terminal_width().or_else(columns).unwrap_or(100))
    }
}

#[cfg(unix)]
fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

#[cfg(not(unix))]
fn terminal_width() -> Option<usize> {
    None
}
