//! Line editing with history for `chat` at a terminal.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use rustyline::error::ReadlineError;
use rustyline::history::{History as _, MemHistory};
use rustyline::{Config, Editor};
use tokio::sync::oneshot;

use crate::app::{App, register_interrupt};
use crate::exit::Interrupted;

/// The maximum number of history entries.
const MAX_HISTORY: usize = 1_000;

type EditResult = (Editor<(), MemHistory>, Result<String, ReadlineError>);

/// A line editor with the history of earlier conversations.
pub(crate) struct LineEditor {
    editor: Option<Editor<(), MemHistory>>,
    file: PathBuf,
}

impl LineEditor {
    /// Creates an editor; `None` unless standard input and output are terminals that support editing.
    pub(crate) fn open(data_dir: &Path) -> Option<Self> {
        if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
            return None;
        }
        // Pasted text is one input, even with several lines.
        let config = Config::builder().max_history_size(MAX_HISTORY).ok()?.bracketed_paste(true).build();
        let history = MemHistory::with_config(&config);
        let mut editor = Editor::<(), MemHistory>::with_history(config, history).ok()?;
        let file = data_dir.join("chat-history.jsonl");
        for line in std::fs::read_to_string(&file).unwrap_or_default().lines() {
            if let Ok(text) = serde_json::from_str::<String>(line) {
                let _ = editor.history_mut().add_owned(text);
            }
        }
        Some(Self { editor: Some(editor), file })
    }

    /// Reads one input; `None` at its end. Ctrl-C is reported as `Interrupted`.
    pub(crate) async fn read(&mut self, app: &App) -> Result<Option<String>, Interrupted> {
        let Some(mut editor) = self.editor.take() else { return Ok(None) };
        let terminal = TerminalMode::save();
        register_interrupt();
        let (sender, edited) = oneshot::channel::<EditResult>();
        // A detached thread: the process can exit while it blocks.
        std::thread::spawn(move || {
            let line = editor.readline("> ");
            let _ = sender.send((editor, line));
        });
        let edited = app.interruptible(edited).await;
        let (mut editor, line) = match edited {
            Ok(Ok(edited)) => edited,
            Ok(Err(_)) => return Ok(None),
            Err(interrupted) => {
                // A signal was received while the editor had the terminal in raw mode.
                terminal.restore();
                return Err(interrupted);
            }
        };
        let line = match line {
            Ok(line) => Ok(Some(line)),
            Err(ReadlineError::Interrupted) => Err(Interrupted),
            Err(_) => Ok(None),
        };
        if let Ok(Some(text)) = &line
            && !text.trim().is_empty()
            && editor.add_history_entry(text.as_str()).unwrap_or(false)
        {
            self.remember(text);
        }
        self.editor = Some(editor);
        line
    }

    /// Appends an input to the history file, which only its owner can read. Write errors are ignored.
    fn remember(&self, text: &str) {
        let Ok(line) = serde_json::to_string(text) else { return };
        let mut options = std::fs::File::options();
        let file = toolhub_private_files::open_private_file(&self.file, options.append(true).create(true));
        let _ = file.and_then(|mut file| writeln!(file, "{line}"));
    }
}

/// Saved terminal attributes.
struct TerminalMode {
    #[cfg(unix)]
    saved: Option<rustix::termios::Termios>,
}

impl TerminalMode {
    fn save() -> Self {
        Self {
            #[cfg(unix)]
            saved: rustix::termios::tcgetattr(std::io::stdin()).ok(),
        }
    }

    fn restore(&self) {
        #[cfg(unix)]
        if let Some(saved) = &self.saved {
            let now = rustix::termios::OptionalActions::Now;
            let _ = rustix::termios::tcsetattr(std::io::stdin(), now, saved);
        }
    }
}
