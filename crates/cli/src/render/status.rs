//! A status line on the terminal: servers being connected, and progress of a call.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use toolhub_core::{Event, EventKind, EventSink, Localize as _};

use crate::render::screen::Screen;

/// Updates the status line from events.
pub(crate) struct StatusLine {
    screen: Arc<Screen>,
    connecting: Mutex<BTreeSet<String>>,
}

impl StatusLine {
    pub(crate) fn new(screen: Arc<Screen>) -> Self {
        Self { screen, connecting: Mutex::default() }
    }

    fn show(&self, connecting: &BTreeSet<String>) {
        let lang = self.screen.lang;
        let names: Vec<&str> = connecting.iter().map(String::as_str).take(5).collect();
        let names = names.join(", ");
        let text = match connecting.len() {
            0 => return self.screen.hide_status(),
            1 => lang.choose(format!("connecting to {names} …"), format!("正在连接 {names} …")),
            many => lang.choose(
                format!("connecting to {many} servers: {names} …"),
                format!("正在连接 {many} 个服务器：{names} …"),
            ),
        };
        self.screen.status(&text);
    }
}

impl EventSink for StatusLine {
    fn emit(&self, event: Event) {
        let mut connecting = self.connecting.lock().unwrap_or_else(PoisonError::into_inner);
        match &event.kind {
            EventKind::Connecting { server } => {
                connecting.insert(server.to_string());
            }
            EventKind::Connected { server, .. } | EventKind::ConnectFailed { server, .. } => {
                connecting.remove(server.as_str());
            }
            EventKind::Progress { .. } => return self.screen.status(&event.kind.localize(self.screen.lang)),
            EventKind::CallFinished { .. } => return self.screen.hide_status(),
            _ => return,
        }
        self.show(&connecting);
    }
}
