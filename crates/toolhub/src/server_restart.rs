//! The restart of one server, on request of a person.

use std::sync::Arc;

use toolhub_core::audit::{AuditAction, AuditEvent, ChangeEvent, ChangeKind, ChangedObject};
use toolhub_core::lang::LocalizedText;
use toolhub_core::{BoxFuture, Lang, Localize as _, ToolError};
use toolhub_mcp_client::{RestartOutcome, ServerState};

use crate::hub::Hub;

impl Hub {
    /// Ends a server, closes its circuit breaker and starts it again, for the principal with this id. Returns `None` if there is no
    /// such server.
    pub fn restart_server<'a>(
        &'a self,
        id: &'a str,
        principal: &'a Arc<str>,
    ) -> BoxFuture<'a, Option<RestartOutcome>> {
        Box::pin(async move {
            let server = self.servers.find(id)?;
            let change = ChangeEvent {
                object: ChangedObject::Server,
                name: id.to_owned(),
                change: ChangeKind::Updated,
                sha256: None,
                detail: Some("restarted".to_owned()),
            };
            if let Err(error) =
                self.record_audit(AuditEvent::now(principal, AuditAction::Change(change))).await
            {
                let text = LocalizedText::new(error.localize(Lang::En), error.localize(Lang::Zh));
                let brief = text.clone();
                let (kind, stderr) = ("not_recorded".to_owned(), Vec::new());
                return Some(RestartOutcome::Failed { text, brief, kind, stderr });
            }
            self.stop_server(id).await;
            let text =
                |error: &ToolError| LocalizedText::new(error.localize(Lang::En), error.localize(Lang::Zh));
            Some(match self.list_server(id).await? {
                Ok(list) => {
                    let version = match server.status() {
                        ServerState::Connected { version, .. } => Some(version),
                        _ => None,
                    };
                    let (tools, skipped) = (list.tools.len(), list.skipped);
                    RestartOutcome::Works { tools, era: list.era, peer: list.peer, version, skipped }
                }
                Err(error) => RestartOutcome::Failed {
                    text: text(&error),
                    brief: LocalizedText::new(error.brief(Lang::En), error.brief(Lang::Zh)),
                    kind: error.kind().to_owned(),
                    stderr: error.stderr_tail().to_vec(),
                },
            })
        })
    }
}
