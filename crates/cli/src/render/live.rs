//! Live progress of an agent on a terminal: finished steps stay, running steps have a spinner.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use toolhub_core::{Event, EventKind, EventSink, Localize as _};
use toolhub_engine::definition_scan::escape_invisible;

use crate::render::screen::{BAD, DIM, GOOD, Screen};

/// Redraw interval of the spinner.
pub(crate) const FRAME_INTERVAL: Duration = Duration::from_millis(120);
const FRAMES: [char; 8] = ['⠋', '⠙', '⠸', '⠴', '⠦', '⠇', '⠏', '⠛'];

#[derive(Debug)]
struct RunningStep {
    text: String,
    since: Instant,
}

#[derive(Debug, Default)]
struct LiveState {
    steps: BTreeMap<String, RunningStep>,
    model: Option<RunningStep>,
    /// Whether the answer is being printed: then no status line may be drawn.
    suspend: bool,
}

/// The live progress of an agent.
#[derive(Debug)]
pub(crate) struct Live {
    screen: Arc<Screen>,
    state: Mutex<LiveState>,
}

impl Live {
    pub(crate) fn new(screen: Arc<Screen>) -> Self {
        Self { screen, state: Mutex::default() }
    }

    fn is_shown(&self) -> bool {
        !self.screen.quiet && !self.screen.json && std::io::stderr().is_terminal()
    }

    fn state(&self) -> MutexGuard<'_, LiveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks that the answer is being printed.
    pub(crate) fn suspend(&self) {
        self.screen.hide_status();
        self.state().suspend = true;
    }

    /// Redraws the running steps.
    pub(crate) fn draw(&self) {
        let state = self.state();
        if state.suspend {
            return;
        }
        let running: Vec<&RunningStep> = state.steps.values().chain(&state.model).collect();
        let Some(first) = running.first() else { return };
        let turns = first.since.elapsed().as_millis() / FRAME_INTERVAL.as_millis();
        let frame = FRAMES[usize::try_from(turns).unwrap_or_default() % FRAMES.len()];
        let labels: Vec<String> = running
            .iter()
            .map(|one| format!("{} {:.1} s", one.text, one.since.elapsed().as_secs_f32()))
            .collect();
        self.screen.status(&format!("{frame} {}", labels.join(" · ")));
    }
}

impl EventSink for Live {
    fn emit(&self, event: Event) {
        if !self.is_shown() {
            return;
        }
        let lang = self.screen.lang;
        let mut state = self.state();
        let since = Instant::now();
        match &event.kind {
            EventKind::StepStarted { step, description, tool } => {
                let tool = tool.as_ref().map(|tool| format!("{tool}: ")).unwrap_or_default();
                let text = match description.starts_with(tool.trim_end_matches(": ")) {
                    true => escape_invisible(description).into_owned(),
                    false => escape_invisible(&format!("{tool}{description}")).into_owned(),
                };
                state.suspend = false;
                state.steps.insert(step.clone(), RunningStep { text, since });
            }
            EventKind::StepFinished { step, took, error } => {
                let Some(done) = state.steps.remove(step) else { return };
                drop(state);
                let took = took.as_secs_f32();
                match error {
                    None => self
                        .screen
                        .to_stderr(&format!("{GOOD}✓{GOOD:#} {} {DIM}{took:.1} s{DIM:#}", done.text)),
                    Some(error) => self.screen.to_stderr(&format!(
                        "{BAD}✗{BAD:#} {} {DIM}{took:.1} s{DIM:#}: {}",
                        done.text,
                        escape_invisible(&error.localize(lang))
                    )),
                }
            }
            EventKind::ModelRequested { .. } => {
                let text = lang.choose("thinking", "思考中").to_owned();
                state.model = Some(RunningStep { text, since });
            }
            EventKind::ModelReplied { .. } | EventKind::ModelFailed { .. } => state.model = None,
            _ => {}
        }
    }
}
