//! Reads, lists, cancels and deletes stored responses.

use std::time::Duration;

use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::{Value, json};
use toolhub_core::RawJson;
use toolhub_core::responses::{ResponseStatus, StoredResponse};

use crate::endpoint::{Endpoint, no_store};
use crate::error::{ApiError, json_response};
use crate::parameters::Parameters;

/// How long a cancelled response may take to end, and how often it is looked at.
const CANCEL_TIME: Duration = Duration::from_secs(5);
const CANCEL_INTERVAL: Duration = Duration::from_millis(20);
/// Default and maximum number of listed input items.
const DEFAULT_ITEMS: usize = 20;
const MAX_ITEMS: usize = 100;

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
            self.services.jobs.cancel(id);
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
        let mut body: Value = serde_json::from_str(stored.body.get()).unwrap_or_default();
        if body["background"] != json!(true) {
            let message = "only background responses can be cancelled; close the connection of others (仅可取消后台响应)";
            return Err(ApiError::invalid("response_id", message));
        }
        if stored.status.is_final() {
            return Ok(json_response(StatusCode::OK, &body));
        }
        if !self.services.jobs.cancel(id) {
            // No process works on it any more.
            body["status"] = json!(ResponseStatus::Cancelled.name());
            let store = self.services.gateways.hub().store().ok_or_else(no_store)?;
            let cancelled = StoredResponse {
                status: ResponseStatus::Cancelled,
                body: RawJson::from(body.clone()),
                ..stored
            };
            let updated = store.update_response(cancelled).await;
            updated.map_err(|error| ApiError::internal(error.to_string()))?;
            return Ok(json_response(StatusCode::OK, &body));
        }
        let ended = tokio::time::timeout(CANCEL_TIME, async {
            loop {
                let stored = self.history().response(id).await?;
                if stored.status.is_final() {
                    return Ok(stored);
                }
                tokio::time::sleep(CANCEL_INTERVAL).await;
            }
        });
        let stored = ended.await.map_err(|_| ApiError::internal("the response has not ended yet"))??;
        let body: Value = serde_json::from_str(stored.body.get()).unwrap_or_default();
        Ok(json_response(StatusCode::OK, &body))
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
            None => DEFAULT_ITEMS,
            Some(Ok(limit)) if (1..=MAX_ITEMS).contains(&limit) => limit,
            Some(_) => {
                return Err(ApiError::invalid("limit", format!("`limit` is a number from 1 to {MAX_ITEMS}")));
            }
        };
        query.accept(&["include", "include[]"]);
        query.finish("")?;
        Ok(Self { is_ascending, after, limit })
    }
}
