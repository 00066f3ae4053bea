//! Keeps the progress of a background response durable.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolhub_core::RawJson;
use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::{HubStore, StoreError};
use toolhub_core::responses::{ResponseStatus, ResponseUpdate, StoredResponse};

use crate::turn_log::TurnLog;

/// The pauses between attempts to write a final response.
const FINAL_WRITE_PAUSES: [Duration; 6] = [
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
    Duration::from_secs(20),
    Duration::from_secs(60),
];

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
        self.write(status, &body).await
    }

    /// Writes the final response. Repeats the write for a while if the store fails; after that, the response stays
    /// unfinished until it is cancelled or this process ends. A response that has ended or was taken over stays as it is.
    pub(crate) async fn save_final(&self, log: &TurnLog, body: &Value) {
        let Some(status) = log.with_response(|response| response.status()) else { return };
        for pause in FINAL_WRITE_PAUSES {
            if self.update(status, body).await.is_ok() {
                return;
            }
            tokio::time::sleep(pause).await;
        }
        // The last attempt.
        let _ = self.update(status, body).await;
    }

    async fn update(&self, status: ResponseStatus, body: &Value) -> Result<ResponseUpdate, StoreError> {
        let response = StoredResponse { status, body: RawJson::from(body.clone()), ..self.stored.clone() };
        self.store.update_response(response).await
    }

    async fn write(&self, status: ResponseStatus, body: &Value) -> Result<(), LocalizedText> {
        Err(match self.update(status, body).await {
            Ok(ResponseUpdate::Written) => return Ok(()),
            Ok(ResponseUpdate::Ended(status)) => LocalizedText::new(
                format!("the response has ended before, with the status `{}`", status.name()),
                format!("此响应已结束，状态为 `{}`", status.name()),
            ),
            Ok(ResponseUpdate::OtherOwner) => {
                LocalizedText::new("another hub has taken over the response", "此响应已由另一个 hub 接管")
            }
            Ok(ResponseUpdate::Missing) => LocalizedText::new("the response was deleted", "此响应已被删除"),
            Err(error) => LocalizedText::new(
                format!("the response could not be stored: {error}"),
                format!("无法保存响应：{error}"),
            ),
        })
    }
}
