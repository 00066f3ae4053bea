//! Keeps the progress of a background response durable.

use std::sync::Arc;

use serde_json::Value;
use toolhub_core::RawJson;
use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::HubStore;
use toolhub_core::responses::{ResponseStatus, StoredResponse};

use crate::turn_log::TurnLog;

/// Writes a response to the store.
#[derive(Clone)]
pub(crate) struct Progress {
    pub(crate) store: Arc<dyn HubStore>,
    /// The response when it was created.
    pub(crate) stored: StoredResponse,
}

impl Progress {
    /// Writes the response as it is now, durably.
    pub(crate) async fn save(&self, log: &TurnLog) -> Result<(), LocalizedText> {
        let Some((status, body)) = log.with_response(|response| (response.status(), response.body())) else {
            return Ok(());
        };
        self.write(status, body).await
    }

    /// Writes the final response.
    pub(crate) async fn save_final(&self, log: &TurnLog, body: Value) -> Result<(), LocalizedText> {
        let Some(status) = log.with_response(|response| response.status()) else { return Ok(()) };
        self.write(status, body).await
    }

    async fn write(&self, status: ResponseStatus, body: Value) -> Result<(), LocalizedText> {
        let response = StoredResponse { status, body: RawJson::from(body), ..self.stored.clone() };
        match self.store.update_response(response).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(LocalizedText::new("the response was deleted", "此响应已被删除")),
            Err(error) => Err(LocalizedText::new(
                format!("the response could not be stored: {error}"),
                format!("无法保存响应：{error}"),
            )),
        }
    }
}
