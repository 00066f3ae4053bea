//! What people and programs see: answers on stdout, everything else on stderr, colours only on a terminal.

use std::borrow::Cow;
use std::io::{IsTerminal as _, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use toolhub_core::{Lang, RawJson, json};
use toolhub_engine::suspicion::visible;

use super::options::{Color, Global};
use super::table::fit;

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
    /// An answer that could not be written, as on a full disk.
    lost: AtomicBool,
    /// Whether a line that will not stay is on the terminal.
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

    /// A line that will not stay, on a terminal only.
    pub(crate) fn status(&self, text: &str) {
        if self.quiet || self.json || !std::io::stderr().is_terminal() {
            return;
        }
        let width = terminal_width().unwrap_or(80).saturating_sub(1);
        self.status.store(true, Ordering::Relaxed);
        let _ = write!(std::io::stderr().lock(), "\r\u{1b}[K{}", fit(&visible(text), width));
    }

    /// Takes that line away.
    pub(crate) fn hide_status(&self) {
        if self.status.swap(false, Ordering::Relaxed) {
            let _ = write!(std::io::stderr().lock(), "\r\u{1b}[K");
        }
    }

    /// A line of the answer.
    pub(crate) fn line(&self, text: &str) {
        self.hide_status();
        let mut out = AutoStream::new(std::io::stdout().lock(), self.color);
        self.check(writeln!(out, "{text}").and_then(|()| out.flush()));
    }

    /// What a tool gave, on lines of its own: byte for byte into a pipe or a file; on a terminal, which it could steer,
    /// with its control characters shown.
    pub(crate) fn verbatim(&self, text: &str) {
        self.hide_status();
        let mut out = std::io::stdout().lock();
        let text = if out.is_terminal() { Cow::Owned(visible_lines(text)) } else { Cow::Borrowed(text) };
        let end = if text.ends_with('\n') { "" } else { "\n" };
        self.check(write!(out, "{text}{end}").and_then(|()| out.flush()));
    }

    /// A reader that went away, as `head` does, is no error; anything else is.
    fn check(&self, written: std::io::Result<()>) {
        if written.is_err_and(|error| error.kind() != std::io::ErrorKind::BrokenPipe) {
            self.lost.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a part of the answer could not be written.
    pub(crate) fn lost_something(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// A line about the work.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            self.to_stderr(text);
        }
    }

    /// Something that may need attention. It may quote what others wrote, so it is made safe to print.
    pub(crate) fn warn(&self, text: &str) {
        let (word, gap) = self.lang.pick(("warning:", " "), ("警告：", ""));
        self.note(&format!("{ODD}{word}{ODD:#}{gap}{}", visible(text)));
    }

    /// What went wrong, made safe to print.
    pub(crate) fn error(&self, text: &str) {
        let (word, gap) = self.lang.pick(("error:", " "), ("错误：", ""));
        self.to_stderr(&format!("{BAD}{word}{BAD:#}{gap}{}", visible(text)));
    }

    pub(crate) fn to_stderr(&self, text: &str) {
        self.hide_status();
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

/// Control characters shown as marks, line breaks and tabs as they are.
pub(crate) fn visible_lines(text: &str) -> String {
    let shown = |line: &str| line.split('\t').map(visible).collect::<Vec<_>>().join("\t");
    text.split('\n').map(|line| shown(line.strip_suffix('\r').unwrap_or(line))).collect::<Vec<_>>().join("\n")
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
