//! Keeps the progress of a background response durable.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::{HubStore, StoreError};
use toolhub_core::responses::{ResponseStatus, ResponseUpdate, StoredResponse};
use toolhub_core::{BoxFuture, RawJson};

use super::final_state::as_failed;
use crate::turn_log::TurnLog;

/// The pauses between attempts to write a final response. The last one is repeated.
const FINAL_WRITE_PAUSES: [Duration; 5] = [
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
    Duration::from_secs(20),
];
/// After how many failed attempts a substitute is written too, if the store accepts it.
const ATTEMPTS_BEFORE_SUBSTITUTE: usize = 6;

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

    /// Writes the final response, and repeats the write until the store answers or this process ends. A response that has ended
    /// or was taken over stays as it is. One that the store rejects, although it stores another one in its place, ends as failed.
    pub(crate) async fn save_final(&self, status: ResponseStatus, body: Value) {
        repeat(
            || Box::pin(self.update(status, &body)),
            |error| {
                let why = format!("the result could not be stored: {error} (无法保存结果)");
                self.store.update_response(as_failed(self.stored.clone(), &why))
            },
        )
        .await;
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

/// Repeats a write until the store answers. After some attempts `substitute` is tried behind each: if the store answers that one,
/// it rejects the write itself.
async fn repeat<'a>(
    write: impl Fn() -> BoxFuture<'a, Result<ResponseUpdate, StoreError>>,
    substitute: impl Fn(StoreError) -> BoxFuture<'a, Result<ResponseUpdate, StoreError>>,
) {
    for attempt in 1.. {
        let Err(error) = write().await else { return };
        if attempt >= ATTEMPTS_BEFORE_SUBSTITUTE && substitute(error).await.is_ok() {
            return;
        }
        let pause = FINAL_WRITE_PAUSES.get(attempt - 1).or(FINAL_WRITE_PAUSES.last());
        tokio::time::sleep(pause.copied().unwrap_or_default()).await;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::future::ready;

    use tokio::time::Instant;

    use super::*;

    fn unreachable() -> Result<ResponseUpdate, StoreError> {
        Err(StoreError("unreachable".into()))
    }

    /// A store that is away for hours loses no result.
    #[tokio::test(start_paused = true)]
    async fn final_response_is_written_when_the_store_is_back() {
        let (since, back) = (Instant::now(), Duration::from_hours(3));
        let (written, substitutes) = (Cell::new(0), Cell::new(0));
        let is_back = || since.elapsed() >= back;
        repeat(
            || match is_back() {
                true => {
                    written.set(written.get() + 1);
                    Box::pin(ready(Ok(ResponseUpdate::Written)))
                }
                false => Box::pin(ready(unreachable())),
            },
            |_| {
                substitutes.set(substitutes.get() + 1);
                Box::pin(ready(if is_back() { Ok(ResponseUpdate::Written) } else { unreachable() }))
            },
        )
        .await;
        assert_eq!(written.get(), 1);
        assert!(substitutes.get() > 100, "{}", substitutes.get());
        assert!(since.elapsed() < back + Duration::from_secs(60), "{:?}", since.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn rejected_final_response_ends_as_failed() {
        let (attempts, reason) = (Cell::new(0), RefCell::new(String::new()));
        repeat(
            || {
                attempts.set(attempts.get() + 1);
                Box::pin(ready(Err(StoreError("too large".into()))))
            },
            |error| {
                reason.replace(error.to_string());
                Box::pin(ready(Ok(ResponseUpdate::Written)))
            },
        )
        .await;
        assert_eq!(
            (attempts.get(), reason.take()),
            (ATTEMPTS_BEFORE_SUBSTITUTE, "the store failed: too large".to_owned())
        );
    }
}
