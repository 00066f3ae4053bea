//! State shared by all commands: the screen, the lazily built hub, and the handling of Ctrl-C.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use toolhub::settings::{ConfigError, Paths, folder_note};
use toolhub::trust::RunTrust;
use toolhub::{BuildError, Hub, HubBuilder, NotificationBus, ScriptHost, ServerState, ServerView};
use toolhub_core::lang::LocalizedText;
use toolhub_core::{Lang, Localize, RawJson, RawObject};
use toolhub_engine::definition_scan::escape_invisible;

use crate::args::Global;
use crate::exit::{Exit, Interrupted, UsageError};
use crate::hub_api::error::HubError;
use crate::render::live::Live;
use crate::render::screen::{ODD, Screen};
use crate::render::status::StatusLine;
use crate::render::trace::TracePrinter;
use crate::terminal::elicitation::TerminalHandler;
use crate::terminal::input::read_line;

pub(crate) struct App {
    pub(crate) global: Global,
    pub(crate) screen: Arc<Screen>,
    pub(crate) live: Arc<Live>,
    hub: OnceCell<Hub>,
    interrupt: CancellationToken,
    /// Whether the notice of unused parts of the folder has been printed.
    folder_noted: AtomicBool,
    /// Whether servers are only listed, not called.
    lists: AtomicBool,
    /// Whether the command itself reports warnings about the configuration and the store.
    reports_notes: AtomicBool,
    /// Whether servers of a running `toolhub serve` are used.
    uses_running_hub: AtomicBool,
    /// When the command was started: `--timeout` counts from here.
    pub(crate) started: Instant,
    /// Whether the timeout of the command has expired, so that servers are not stopped gracefully.
    pub(crate) overdue: AtomicBool,
}

/// How long servers may take to stop after the timeout of a command has expired.
const OVERDUE_GRACE: Duration = Duration::from_millis(200);

impl App {
    pub(crate) fn new(global: Global, lang: Lang) -> Self {
        let screen = Arc::new(Screen::new(&global, lang));
        let live = Arc::new(Live::new(Arc::clone(&screen)));
        let (hub, interrupt) = (OnceCell::new(), CancellationToken::new());
        Self {
            global,
            screen,
            live,
            hub,
            interrupt,
            folder_noted: AtomicBool::new(false),
            lists: AtomicBool::new(false),
            reports_notes: AtomicBool::new(false),
            uses_running_hub: AtomicBool::new(false),
            started: Instant::now(),
            overdue: AtomicBool::new(false),
        }
    }

    pub(crate) fn lang(&self) -> Lang {
        self.screen.lang
    }

    /// The folders that are trusted for this run, by `--trust` or `TOOLHUB_TRUST`.
    pub(crate) fn run_trust(&self) -> RunTrust {
        let mut trust = RunTrust::from_variable(std::env::var_os("TOOLHUB_TRUST").as_deref());
        trust.current_folder |= self.global.trust;
        trust
    }

    /// The locations of the files. Prints the notice of unused parts of the current folder once, even with `--quiet`.
    pub(crate) fn paths(&self) -> Result<Paths, BuildError> {
        let config = self.global.config.as_deref();
        let trust = self.run_trust();
        let ignored = trust.ignored.first().map(|path| {
            let path = path.display();
            LocalizedText::new(
                format!("`TOOLHUB_TRUST` names `{path}`, which trusts nothing: write an absolute path, or `1` for the current folder"),
                format!("`TOOLHUB_TRUST` 中的 `{path}` 不起作用：请写绝对路径，或用 `1` 表示当前目录"),
            )
        });
        let paths = Paths::find_trusting(config, self.global.home.as_deref(), &trust)?;
        if !self.folder_noted.swap(true, Ordering::Relaxed) {
            let (word, gap) = self.lang().choose(("note:", " "), ("注意：", ""));
            for notice in ignored.into_iter().chain(paths.workspace.notice(config)) {
                let notice = notice.localize(self.lang());
                self.screen.to_stderr(&format!("{ODD}{word}{ODD:#}{gap}{}", escape_invisible(&notice)));
            }
        }
        Ok(paths)
    }

    /// Keeps a trusted folder trusted after this command changed `edited`.
    pub(crate) fn keep_trust(&self, paths: &Paths, edited: &[&Path]) {
        if let Err(why) = paths.workspace.keep_trust(edited) {
            self.screen.warn(&why.localize(self.lang()));
        }
    }

    /// Declares that servers are only listed. They receive the same capabilities as from `serve`, since some offer certain tools
    /// only to clients with sampling, elicitation or roots, and the lists are shared. A call declares nothing, since this process
    /// does not answer requests of servers.
    pub(crate) fn declare_list_only(&self) {
        self.lists.store(true, Ordering::Relaxed);
    }

    /// Includes warnings about the configuration and the store in the result of the command instead of printing them.
    pub(crate) fn report_notes(&self) {
        self.reports_notes.store(true, Ordering::Relaxed);
    }

    /// Reaches servers through a running `toolhub serve` with the same configuration, unless `--no-hub` is given.
    pub(crate) fn use_running_hub(&self) {
        self.uses_running_hub.store(!self.global.no_hub, Ordering::Relaxed);
    }

    /// The hub, built on first use.
    pub(crate) async fn hub(&self) -> Result<&Hub, BuildError> {
        self.hub
            .get_or_try_init(|| async {
                let mut builder = script_hosted(Hub::builder().paths(self.paths()?).one_shot());
                if self.uses_running_hub.load(Ordering::Relaxed) {
                    builder = builder.use_running_hub();
                }
                builder = match self.lists.load(Ordering::Relaxed) {
                    true => builder.handler(Arc::new(NotificationBus::default())),
                    false => {
                        let handler = TerminalHandler::new(Arc::clone(&self.screen), Arc::clone(&self.live));
                        builder.handler(Arc::new(handler))
                    }
                };
                if self.global.trace || self.global.verbose > 0 {
                    builder = builder
                        .listen(Arc::new(TracePrinter::new(Arc::clone(&self.screen), self.global.trace)));
                } else {
                    builder = builder.listen(Arc::new(StatusLine::new(Arc::clone(&self.screen))));
                    builder = builder.listen(Arc::<Live>::clone(&self.live));
                }
                let hub = builder.build().await?;
                if !self.reports_notes.load(Ordering::Relaxed) {
                    for note in hub.notes() {
                        self.screen.warn(&note.localize(self.lang()));
                    }
                }
                Ok(hub)
            })
            .await
    }

    /// Runs `work` until it completes or Ctrl-C is pressed, which drops and so cancels it.
    pub(crate) async fn interruptible<T>(&self, work: impl Future<Output = T>) -> Result<T, Interrupted> {
        // Before the work starts a server: until the handlers are registered, a signal kills this process but not the server.
        let mut stopped = StopSignal::register();
        tokio::select! {
            done = work => Ok(done),
            () = stopped.recv() => {
                self.interrupt.cancel();
                Err(Interrupted)
            }
        }
    }

    /// Prompts the user for confirmation.
    pub(crate) async fn confirm(&self, question: &str) -> anyhow::Result<bool> {
        self.screen.prompt(question);
        let line = self.interruptible(read_line()).await?.unwrap_or_default();
        Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes" | "是" | "好" | "同意"))
    }

    /// Shuts the hub down. A second Ctrl-C ends the graceful shutdown: dropping the servers kills them.
    pub(crate) async fn close(&self) {
        if let Some(hub) = self.hub.get() {
            self.note_folder(hub);
            let overdue = self.overdue.load(Ordering::Relaxed);
            tokio::select! {
                () = hub.close() => {}
                () = tokio::time::sleep(OVERDUE_GRACE), if overdue => {}
                () = stop_signal() => {}
            }
            hub.remove_native_tools();
        }
    }

    /// Warns if a server that was started in this run was not started in the current folder.
    fn note_folder(&self, hub: &Hub) {
        let servers = hub.servers();
        // An open circuit is the state of earlier runs.
        let was_started =
            |view: &&ServerView| !matches!(view.state, ServerState::Idle | ServerState::CircuitOpen { .. });
        let started = servers.iter().filter(was_started).map(|view| &view.spec);
        if !self.reports_notes.load(Ordering::Relaxed)
            && let Some(note) = folder_note(started, hub.paths())
        {
            self.screen.warn(&note.localize(self.lang()));
        }
    }

    /// Prints an error. Returns the exit code.
    pub(crate) fn fail(&self, error: &anyhow::Error) -> Exit {
        let lang = self.lang();
        if error.is::<Interrupted>() {
            self.screen.warn(lang.choose("interrupted", "已中断"));
            return Exit::Interrupted;
        }
        let mut kind = None;
        let (text, exit) = if let Some(error) = error.downcast_ref::<BuildError>() {
            (error.localize(lang), Exit::Usage)
        } else if let Some(error) = error.downcast_ref::<HubError>() {
            kind = Some(error.kind());
            (error.localize(lang), Exit::from(error))
        } else if let Some(error) = error.downcast_ref::<ConfigError>() {
            (error.localize(lang), Exit::Usage)
        } else if let Some(error) = error.downcast_ref::<UsageError>() {
            (error.to_string(), Exit::Usage)
        } else {
            (format!("{error:#}"), Exit::Failed)
        };
        if self.screen.json {
            let kind = kind.unwrap_or(if exit == Exit::Usage { "usage" } else { "internal" });
            let meta = RawObject::default().with("error_kind", kind);
            let json = RawObject::default()
                .with("success", false)
                .with("result", RawJson::null())
                .with("error", text.as_str())
                .with("_meta", meta);
            self.screen.json(&json.into_raw());
        }
        self.screen.error(&text);
        exit
    }

    /// Returns `exit`, or `Failed` if the output could not be written.
    pub(crate) fn with_write_check(&self, exit: Exit) -> Exit {
        if self.screen.has_write_error() {
            self.screen.error(self.lang().choose("the answer could not be written", "无法写出结果"));
            return Exit::Failed;
        }
        exit
    }
}

/// Lets a hub run scripts, in processes of this program.
pub(crate) fn script_hosted(builder: HubBuilder) -> HubBuilder {
    match ScriptHost::of_current_program() {
        Ok(host) => builder.script_host(host),
        Err(_) => builder,
    }
}

/// Registers the handler of Ctrl-C early. A line editor saves the current handler and restores it when it ends: a handler
/// registered in between would be lost, and the next Ctrl-C would kill the process.
pub(crate) fn register_interrupt() {
    #[cfg(unix)]
    {
        let _ = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt());
    }
}

/// Waits for Ctrl-C, SIGTERM or SIGHUP.
pub(crate) async fn stop_signal() {
    StopSignal::register().recv().await;
}

/// Ctrl-C, SIGTERM and SIGHUP. Until it is registered they terminate the process.
#[derive(Debug)]
pub(crate) struct StopSignal {
    #[cfg(unix)]
    signals: Option<[tokio::signal::unix::Signal; 3]>,
}

impl StopSignal {
    /// Registers the handlers.
    pub(crate) fn register() -> Self {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
            let signals: Result<Vec<_>, _> = kinds.into_iter().map(signal).collect();
            Self { signals: signals.ok().and_then(|signals| signals.try_into().ok()) }
        }
        #[cfg(not(unix))]
        Self {}
    }

    /// Waits for the next signal.
    pub(crate) async fn recv(&mut self) {
        #[cfg(unix)]
        if let Some([interrupt, terminate, hangup]) = &mut self.signals {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            return;
        }
        let _ = tokio::signal::ctrl_c().await;
    }
}
