//! Reads, lists, cancels and deletes stored responses.

use std::time::{Duration, Instant};

use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::{Value, json};
use toolhub_core::ports::StoreError;
use toolhub_core::responses::{ResponseUpdate, StoredResponse};

use crate::endpoint::{Endpoint, no_store};
use crate::error::{ApiError, json_response};
use crate::parameters::Parameters;
use crate::responses::final_state::as_cancelled;

/// How long a cancelled response may take to end, also at another hub, and how often it is looked at.
const CANCEL_TIME: Duration = Duration::from_secs(10);
const CANCEL_INTERVAL: Duration = Duration::from_millis(50);
/// After how many looks this hub tries to end a response that it does not run.
const ROUNDS_PER_ATTEMPT: u32 = 20;
/// Default and maximum number of listed input items.
const DEFAULT_INPUT_ITEMS: usize = 20;
const MAX_INPUT_ITEMS: usize = 100;

impl Endpoint<'_> {
    pub(crate) async fn read_response(self, id: &str) -> Result<Response<Body>, ApiError> {
        let mut query = Parameters::of_query(self.request.query.as_deref());
        let why = "read the response again until its status is final";
        for (name, neutral) in [("stream", "false"), ("starting_after", "")] {
            if query.take(name).is_some_and(|value| value != neutral) {
                return Err(ApiError::unsupported(name, why));
            }
        }
        query.accept(&["include", "include[]", "include_obfuscation"]);
        query.finish("")?;
        let stored = self.history().response(id).await?;
        let body: Value = serde_json::from_str(stored.body.get()).unwrap_or_default();
        Ok(json_response(StatusCode::OK, &body))
    }

    pub(crate) async fn delete_response(self, id: &str) -> Result<Response<Body>, ApiError> {
        let stored = self.history().response(id).await?;
        if !stored.status.is_final() {
            // A response that no hub ends in time is deleted nevertheless: the hub that works on it ends it when its write is refused.
            self.stop(stored).await?;
        }
        let store = self.services.gateways.hub().store().ok_or_else(no_store)?;
        let deleted = store.delete_response(id, self.principal().id()).await;
        match deleted.map_err(|error| ApiError::internal(error.to_string()))? {
            true => {
                Ok(json_response(StatusCode::OK, &json!({ "id": id, "object": "response", "deleted": true })))
            }
            false => Err(ApiError::not_found("response", id)),
        }
    }

    pub(crate) async fn cancel_response(self, id: &str) -> Result<Response<Body>, ApiError> {
        let stored = self.history().response(id).await?;
        let body: Value = serde_json::from_str(stored.body.get()).unwrap_or_default();
        if body["background"] != json!(true) {
            let message = "only background responses can be cancelled; close the connection of others (仅可取消后台响应)";
            return Err(ApiError::invalid("response_id", message));
        }
        let stored = match stored.status.is_final() {
            true => stored,
            false => self.stop(stored).await?,
        };
        // If it has not ended in time, its status says so.
        let body: Value = serde_json::from_str(stored.body.get()).unwrap_or_default();
        Ok(json_response(StatusCode::OK, &body))
    }

    /// Requests that the hub that works on a response cancels it, and waits a limited time until it has ended. Returns the
    /// response as it is then.
    async fn stop(&self, stored: StoredResponse) -> Result<StoredResponse, ApiError> {
        let store = self.services.gateways.hub().store().ok_or_else(no_store)?;
        let failed = |error: StoreError| ApiError::internal(error.to_string());
        let (id, since) = (stored.id.clone(), Instant::now());
        store.request_cancellation(&id, self.principal().id()).await.map_err(failed)?;
        let mut present = stored;
        for round in 0_u32.. {
            if present.status.is_final() || since.elapsed() >= CANCEL_TIME {
                break;
            }
            if self.services.jobs.has(&id) {
                self.services.jobs.cancel(&id);
            } else if round.is_multiple_of(ROUNDS_PER_ATTEMPT) {
                // It is this hub's own if its final state could not be stored. Another hub may have ended.
                let end = as_cancelled(present.clone());
                if store.update_response(end).await.map_err(failed)? == ResponseUpdate::OtherOwner {
                    self.services.recovery.wake();
                }
            }
            tokio::time::sleep(CANCEL_INTERVAL).await;
            present = self.history().response(&id).await?;
        }
        Ok(present)
    }

    pub(crate) async fn input_items(self, id: &str) -> Result<Response<Body>, ApiError> {
        let stored = self.history().response(id).await?;
        let mut items: Vec<Value> = serde_json::from_str(stored.input.get()).unwrap_or_default();
        let page = ItemPage::parse(self.request.query.as_deref())?;
        if !page.is_ascending {
            items.reverse();
        }
        if let Some(after) = page.after {
            let position = items.iter().position(|item| item["id"] == json!(after));
            let position = position.ok_or_else(|| ApiError {
                param: Some("after".to_owned()),
                ..ApiError::not_found("item", &after)
            })?;
            items.drain(..=position);
        }
        let limit = page.limit;
        let has_more = items.len() > limit;
        items.truncate(limit);
        let (first, last) = (items.first().map(|item| &item["id"]), items.last().map(|item| &item["id"]));
        let list = json!({ "object": "list", "data": items, "first_id": first, "last_id": last, "has_more": has_more });
        Ok(json_response(StatusCode::OK, &list))
    }
}

/// The part of the input items that is listed.
struct ItemPage {
    is_ascending: bool,
    after: Option<String>,
    limit: usize,
}

impl ItemPage {
    fn parse(query: Option<&str>) -> Result<Self, ApiError> {
        let mut query = Parameters::of_query(query);
        let is_ascending = match query.text("order")?.as_deref() {
            None | Some("desc") => false,
            Some("asc") => true,
            Some(_) => return Err(ApiError::invalid("order", "`order` is `asc` or `desc`")),
        };
        let after = query.text("after")?;
        let limit = match query.text("limit")?.map(|limit| limit.parse()) {
            None => DEFAULT_INPUT_ITEMS,
            Some(Ok(limit)) if (1..=MAX_INPUT_ITEMS).contains(&limit) => limit,
            Some(_) => {
                return Err(ApiError::invalid(
                    "limit",
                    format!("`limit` is a number from 1 to {MAX_INPUT_ITEMS}"),
                ));
            }
        };
        query.accept(&["include", "include[]"]);
        query.finish("")?;
        Ok(Self { is_ascending, after, limit })
    }
}
